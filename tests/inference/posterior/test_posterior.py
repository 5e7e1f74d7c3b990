"""Draws of the tables: they agree, vary as the noise does, and lie about the measurement."""

from __future__ import annotations

import numpy as np
import pytest

from privsyn.inference.fitted import Fitted, one_way_certainty, table_certainties
from privsyn.inference.measured_columns import Estimate
from privsyn.inference.posterior.tables import Posterior, noise_factor
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import StructuralZeros

SIGMA = 10.0
COUNTS = np.array([[900.0, 300.0, 300.0], [300.0, 600.0, 600.0]])
DRAWS = 400


def fitted(counts=COUNTS, sigma=SIGMA, ordered=(0, 0), shift=0.0):
    """A release of one pair whose measurement is off by `shift` along its interaction."""
    domain = Domain(("a", "b"), counts.shape, ordered)
    identity = tuple(np.arange(size, dtype=np.int32) for size in counts.shape)
    merging = Merging(domain, domain, identity, tuple(np.ones(size) for size in counts.shape))
    table = Marginal(domain, counts)
    margins = tuple(table.project((name,)) for name in domain.names)
    combined = tuple(Measurement(m, sigma**2) for m in margins)
    off = np.zeros(counts.shape)
    off[:2, :2] = [[shift, -shift], [-shift, shift]]
    pair = Measurement(Marginal(domain, counts + off), sigma**2)
    estimate = Estimate(table, measured=pair, posterior_variance=pair.variance)
    certainties = (
        *map(one_way_certainty, combined, margins),
        *table_certainties([estimate], combined),
    )
    return Fitted(merging, margins, (table,), table.total, certainties)


def draws(release, possible=None, count=DRAWS):
    posterior = Posterior(release) if possible is None else Posterior(release, possible)
    return [posterior.draw(np.random.default_rng(seed)) for seed in range(count)]


@pytest.mark.parametrize("ordered", [(0, 0), (2, 3)])
def test_the_tables_of_a_draw_agree_and_are_not_negative(ordered):
    for one in draws(fitted(sigma=300.0, ordered=ordered), count=20):
        (pair,) = one.marginals
        assert pair.counts.min() >= 0
        for margin in one.one_ways:
            np.testing.assert_allclose(pair.project(margin.attributes).counts, margin.counts, atol=1e-3)
            assert margin.total == pytest.approx(COUNTS.sum())


@pytest.mark.slow
def test_draws_vary_as_much_as_the_noise_in_a_pair_and_no_more():
    """Interaction of a 2 x 2 corner: the sum of four cells' noise, of which margins are known better.

    The variance of 400 draws has a relative standard error of 7 %; bounds are 5 of them apart.
    """
    interaction = np.array([[1.0, -1, 0], [-1, 1, 0]])
    found = [float((one.marginals[0].counts * interaction).sum()) for one in draws(fitted())]
    assert 0.65 < np.var(found) / (4 * SIGMA**2) < 1.35


@pytest.mark.slow
def test_draws_lie_about_the_measurement_and_not_about_the_shrunk_estimate():
    """A bias of a tenth of the shift would be 6 standard errors of the mean of the draws."""
    shift = 50.0
    found = [one.marginals[0].counts - COUNTS for one in draws(fitted(shift=shift))]
    moved = np.mean([(d[0, 0] - d[0, 1] - d[1, 0] + d[1, 1]) / 4 for d in found])
    assert abs(moved - shift) < 0.1 * shift


@pytest.mark.slow
def test_a_cell_below_its_noise_stays_near_the_estimate():
    small = np.array([[1000.0, 5.0], [1000.0, 1000.0]])
    found = np.mean([one.marginals[0].counts[0, 1] for one in draws(fitted(small, sigma=100.0))])
    assert 2.0 < found < 15.0  # clipped normal noise would give 40


@pytest.mark.slow
def test_a_correlation_of_ranks_is_drawn_about_the_measurement():
    """Even where most cells lie below their noise."""
    place = np.arange(8)
    near = np.exp(-((place[:, np.newaxis] - place) ** 2) / 4)
    true = 4000 * near / near.sum()
    flat = np.outer(true.sum(axis=1), true.sum(axis=0)) / true.sum()
    release = fitted(flat, sigma=40.0, ordered=(8, 8))
    measured = Measurement(Marginal(release.marginals[0].domain, true), 40.0**2)
    one_ways = tuple(c.measured for c in release.certainties[:2])
    estimate = Estimate(release.marginals[0], measured=measured, posterior_variance=measured.variance)
    (pair,) = table_certainties([estimate], one_ways)
    release = Fitted(
        release.merging, release.one_ways, release.marginals, release.total, (*release.certainties[:2], pair)
    )

    def trend(counts):
        centred = place - 3.5
        return float(centred @ counts @ centred / counts.sum())

    found = np.mean([trend(one.marginals[0].counts) for one in draws(release, count=100)])
    assert 0.85 < found / trend(true) < 1.1


def test_structural_zeros_hold_in_every_draw():
    counts = np.array([[900.0, 0.0], [400.0, 700.0]])
    release = fitted(counts, sigma=100.0)
    zeros = StructuralZeros(((release.merging.merged, counts > 0),))
    assert all(one.marginals[0].counts[0, 1] == 0 for one in draws(release, zeros, count=20))


def test_the_noise_of_a_combined_one_way_has_the_stated_variances_and_smaller_sums():
    """Cells with variance 100; a pair knows the sums of 4 cells each with variance 20."""
    domain = Domain(("a",), (8,), (8,))
    group = np.repeat([0, 1], 4).astype(np.int32)
    grouped = Domain(("a", "b"), (2, 2), (2, 0))
    halves = np.arange(2, dtype=np.int32)
    pair = Measurement(Marginal(grouped, np.full((2, 2), 50.0)), 10.0, Grouping((group, halves)))
    information = (group[:, np.newaxis] == group) / 20.0
    exact = np.linalg.inv(np.eye(8) / 100.0 + information)
    combined = Measurement(Marginal(domain, np.full(8, 25.0)), np.diag(exact))
    factor = noise_factor(combined, [pair])
    np.testing.assert_allclose(factor @ factor.T, exact, rtol=1e-3)
    assert (factor @ factor.T)[:4, :4].sum() < 20.0 < np.diag(exact)[:4].sum()
