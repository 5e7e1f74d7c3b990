"""Channels: unbiased counts and their variance, against exact enumeration and repeated draws."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

from privsyn.inference.consistency import combine_one_ways
from privsyn.marginals.channel import NO_CHANNELS, Channel, Channels
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.private.local_privacy import randomised
from privsyn.private.randomness import seeded_bits

DOMAIN = Domain(("a", "b", "c"), (3, 2, 4))
KEPT = {"a": 0.5, "c": 0.75}
CHANNELS = Channels.for_domain(KEPT, DOMAIN)
COUNTS = np.array(
    [[[30.0, 1, 5, 0], [2, 9, 14, 6]], [[3, 0, 0, 8], [25, 7, 1, 4]], [[0, 0, 2, 0], [1, 3, 50, 9]]]
)
MERGING = Merging(
    DOMAIN,
    Domain(DOMAIN.names, (2, 2, 2)),
    (np.array([0, 1, 0]), np.array([0, 1]), np.array([1, 0, 1, 1])),
    (np.array([0.5, 1, 0.5]), np.ones(2), np.array([0.2, 1, 0.3, 0.5])),
)
Z = 5.1  # standard normal: exceeded in either direction with probability 3.4e-7


def matrix(name):
    """P(code after | code before) of one attribute, from its definition."""
    size = DOMAIN.project((name,)).sizes[0]
    keep = KEPT.get(name, 1.0)
    return keep * np.eye(size) + (1 - keep) / size


def joint(names):
    found = np.ones((1, 1))
    for name in names:
        found = np.kron(found, matrix(name))
    return found


def test_what_is_observed_on_average_is_made_unbiased_again():
    table = Marginal(DOMAIN, COUNTS)
    seen = CHANNELS.observed(table)
    assert np.allclose(seen.counts.ravel(), joint("abc") @ COUNTS.ravel())
    assert np.allclose(CHANNELS.unbiased(Measurement(seen, 0.0)).marginal.counts, COUNTS)


def test_the_variance_is_that_of_every_respondent_enumerated():
    """Each respondent's estimate is a column of the inverse, drawn with the probabilities of the channel."""
    channel, inverse = joint("abc"), np.linalg.inv(joint("abc"))
    mean = inverse @ channel
    exact = sum(n * (inverse**2 @ channel[:, j] - mean[:, j] ** 2) for j, n in enumerate(COUNTS.ravel()) if n)
    found = CHANNELS.unbiased(Measurement(CHANNELS.observed(Marginal(DOMAIN, COUNTS)), 0.0))
    assert np.allclose(found.variance.ravel(), exact)


def test_the_noise_in_no_margin_is_that_of_every_respondent_enumerated():
    """Centred along every axis, the stated variance of independent cells is what enumeration gives."""
    names = ("a", "b", "c")
    sizes = DOMAIN.sizes
    centre = np.ones((1, 1))
    for size in sizes:
        centre = np.kron(centre, np.eye(size) - 1 / size)
    channel, inverse = joint(names), centre @ np.linalg.inv(joint(names))
    mean = inverse @ channel
    exact = sum(n * (inverse**2 @ channel[:, j] - mean[:, j] ** 2) for j, n in enumerate(COUNTS.ravel()))
    exact += inverse**2 @ np.full(24, 7.0)
    found = CHANNELS.beside_margins(Measurement(CHANNELS.observed(Marginal(DOMAIN, COUNTS)), 7.0))
    assert np.allclose(found.variance.ravel() * np.prod([1 - 1 / size for size in sizes]), exact)
    assert np.allclose(found.marginal.counts, COUNTS)


def test_noise_in_the_counts_goes_through_the_same_inverse():
    noise = np.arange(1.0, 25).reshape(DOMAIN.shape)
    seen = CHANNELS.observed(Marginal(DOMAIN, COUNTS))
    more = (
        CHANNELS.unbiased(Measurement(seen, noise)).variance
        - CHANNELS.unbiased(Measurement(seen, 0.0)).variance
    )
    assert np.allclose(more.ravel(), np.linalg.inv(joint("abc")) ** 2 @ noise.ravel())


def test_merged_codes_have_a_channel_of_their_own():
    merged = CHANNELS.merge(MERGING)
    table = Marginal(DOMAIN, COUNTS)
    seen = MERGING.merge_table(CHANNELS.observed(table))
    assert np.allclose(seen.counts, merged.observed(MERGING.merge_table(table)).counts)
    found = merged.unbiased(Measurement(seen, 0.0)).marginal.counts
    assert np.allclose(found, MERGING.merge_table(table).counts)


def test_tables_counted_in_groups_of_codes_are_made_unbiased_too():
    groups = (np.array([0, 1, 1]), np.array([0, 1]), np.array([0, 0, 1, 1]))
    seen, true = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    observed = CHANNELS.observed(Marginal(DOMAIN, COUNTS)).counts
    for a, b, c in product(*map(range, DOMAIN.shape)):
        seen[groups[0][a], groups[1][b], groups[2][c]] += observed[a, b, c]
        true[groups[0][a], groups[1][b], groups[2][c]] += COUNTS[a, b, c]
    measured = Measurement(Marginal(Domain(DOMAIN.names, (2, 2, 2)), seen), 0.0, Grouping(groups))
    assert np.allclose(CHANNELS.unbiased(measured).marginal.counts, true)


def test_a_column_of_a_pair_has_the_counts_and_the_variance_of_the_column_alone():
    """Combined after randomisation, all tables say the same, so nothing is counted twice."""
    seen = Measurement(CHANNELS.observed(Marginal(DOMAIN, COUNTS)), 0.0)
    alone = [seen.project((name,)) for name in DOMAIN]
    for one, other in zip(combine_one_ways(DOMAIN, (seen, *alone)), alone, strict=True):
        first, second = CHANNELS.unbiased(one), CHANNELS.unbiased(other)
        assert np.allclose(first.marginal.counts, second.marginal.counts)
        assert np.allclose(first.variance, second.variance)


def test_columns_that_were_not_randomised_stay_as_they_are():
    measured = Measurement(Marginal(DOMAIN.project(("b",)), np.array([5.0, -1.0])), 4.0)
    assert CHANNELS.unbiased(measured) is measured
    assert NO_CHANNELS.unbiased(measured) is measured
    assert not NO_CHANNELS.random(("a", "b"))
    assert CHANNELS.random(("b", "c"))
    assert CHANNELS.signal(("a", "b", "c")) == 0.5**2 * 0.75**2


@pytest.mark.parametrize("keep", [0.9, 0.5])
def test_repeated_draws_are_unbiased_with_the_stated_variance(keep):
    """Two-sided: means within 5.1 standard errors, variances within chi-squared quantiles of 2e-8."""
    rng, times = np.random.default_rng(5), 400
    domain = Domain(("a", "b"), (3, 2))
    true = np.array([[60.0, 10], [5, 30], [0, 45]])
    cells = np.repeat(np.arange(6), true.ravel().astype(int))
    columns = [np.tile(cells // 2, times), np.tile(cells % 2, times)]
    drawn = [
        randomised(c, size, keep, seeded_bits(rng)) for c, size in zip(columns, domain.sizes, strict=True)
    ]
    run = np.repeat(np.arange(times), len(cells))
    seen = np.bincount(run * 6 + drawn[0] * 2 + drawn[1], minlength=6 * times).reshape(times, 3, 2)
    channels = Channels.for_domain({"a": keep, "b": keep}, domain)
    found = np.array(
        [
            channels.unbiased(Measurement(Marginal(domain, table.astype(float)), 0.0)).marginal.counts
            for table in seen
        ]
    )
    expected = channels.unbiased(Measurement(channels.observed(Marginal(domain, true)), 0.0)).variance
    assert (np.abs(found.mean(axis=0) - true) < Z * np.sqrt(expected / times)).all()
    low, high = chi2.ppf([2e-8, 1 - 2e-8], times - 1) / (times - 1)
    ratio = found.var(axis=0, ddof=1) / expected
    assert ((low < ratio) & (ratio < high)).all()


def test_a_variance_is_never_negative():
    channels = Channels({name: Channel(0.9, np.full(2, 0.5)) for name in "ab"})
    corner = np.array([[100.0, 0], [0, 0]])
    measured = Measurement(Marginal(Domain(("a", "b"), (2, 2)), corner), 0.0)
    assert (channels.unbiased(measured).variance > 0).all()
