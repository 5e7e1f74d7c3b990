"""What no count shows is drawn: dependence inside groups, places inside merged codes, means of tails."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from privsyn.inference.ordered.tilt import Trend
from privsyn.inference.posterior.cells import WITH_COLUMN, draw_inside
from privsyn.inference.posterior.tables import DrawnPlaces, draw_margins
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.recoding import Merging


def codes_in_groups(codes, groups):
    return np.repeat(np.arange(groups, dtype=np.int32), codes // groups)


def test_the_shape_inside_groups_is_drawn_and_their_sums_are_kept():
    """Rank correlation of the first group's codes with the other column: mean 0, deviation about the prior's.

    Of 400 draws, five standard errors of the mean are 0.05, of the deviation 18 %.
    """
    group = codes_in_groups(16, 4)
    grouping = Grouping((group, group))
    table = Marginal(Domain(("a", "b"), (16, 16), (16, 16)), np.full((16, 16), 10.0))
    rng, found = np.random.default_rng(0), []
    for _ in range(400):
        drawn = draw_inside(table, grouping, rng)
        np.testing.assert_allclose(grouping.join(drawn.counts), 160.0)
        first = drawn.counts[:4] / drawn.counts[:4].sum()
        ranks = [np.linspace(-1, 1, size) for size in first.shape]
        scale = np.sqrt(np.mean(ranks[0] ** 2) * np.mean(ranks[1] ** 2))
        found.append(float(ranks[0] @ first @ ranks[1]) / scale)
    assert abs(np.mean(found)) < 0.05
    assert 0.75 * WITH_COLUMN < np.std(found) < 1.25 * WITH_COLUMN


def test_a_pair_that_was_measured_code_by_code_keeps_its_shape():
    table = Marginal(Domain(("a", "b"), (5, 3), (5, 0)), np.arange(15.0).reshape(5, 3))
    each = Grouping(tuple(np.arange(size, dtype=np.int32) for size in (5, 3)))
    np.testing.assert_array_equal(draw_inside(table, each, np.random.default_rng(0)).counts, table.counts)


def test_codes_without_records_do_not_break_the_shape_inside_a_group():
    counts = np.zeros((8, 8))
    counts[0] = counts[5] = 100.0
    group = codes_in_groups(8, 2)
    table = Marginal(Domain(("a", "b"), (8, 8), (8, 8)), counts)
    drawn = draw_inside(table, Grouping((group, group)), np.random.default_rng(0))
    assert np.isfinite(drawn.counts).all()
    assert drawn.total == pytest.approx(counts.sum())


def copula_records(rho, rows=20_000, codes=256, groups=4):
    """Records of a Gaussian copula in merged codes, and the scores that they come from."""
    scores = np.random.default_rng(1).multivariate_normal([0, 0], [[1, rho], [rho, 1]], rows)
    fine = np.minimum((norm.cdf(scores) * codes).astype(np.int32), codes - 1)
    domain = Domain(("a", "b"), (codes, codes), (codes, codes))
    merged = Domain(("a", "b"), (groups, groups), (groups, groups))
    group, share = codes_in_groups(codes, groups), np.full(codes, groups / codes)
    return Merging(domain, merged, (group, group), (share, share)), Records(domain, fine)


def inside_the_last_group(merging, fine):
    codes = fine.codes
    last = (codes >= 192).all(axis=1)
    return float(np.corrcoef(codes[last].T)[0, 1])


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_places_in_merged_codes_depend_on_each_other_as_strongly_as_drawn(strength):
    """3,400 records lie in both last groups: five standard errors of their correlation are 0.09."""
    merging, fine = copula_records(0.8)
    drawn = DrawnPlaces(merging.original, merging.merged, merging.groups, merging.shares, strength)
    records = merging.merge(fine)
    restored = drawn.restore(records, np.random.default_rng(2))
    np.testing.assert_array_equal(drawn.merge(restored).codes, records.codes)
    wanted = strength * inside_the_last_group(merging, fine)
    assert abs(inside_the_last_group(merging, restored) - wanted) < 0.09
    assert inside_the_last_group(merging, fine) > 0.3


def test_dependent_places_keep_the_shares_of_original_codes():
    """Places are stratified inside each merged code: each count is its share, up to 2 records."""
    merging, fine = copula_records(0.8)
    drawn = DrawnPlaces(merging.original, merging.merged, merging.groups, merging.shares, 1.5)
    restored = drawn.restore(merging.merge(fine), np.random.default_rng(3))
    counts = np.bincount(restored.codes[:, 0], minlength=256).reshape(4, 64)
    expected = counts.sum(axis=1, keepdims=True) / 64
    assert np.abs(counts - expected).max() < 2


def test_the_mean_place_in_a_merged_code_is_drawn():
    """In standard deviations of a uniform place; five standard errors of 400 deviations are 18 %."""
    merging, _ = copula_records(0.0)
    rng, place = np.random.default_rng(4), (np.arange(64) - 31.5) / np.sqrt(64**2 / 12)
    found = [float(DrawnPlaces.draw(merging, rng).shares[0][:64] @ place) for _ in range(400)]
    assert abs(np.mean(found)) < 0.12
    assert 0.35 < np.std(found) < 0.6


def test_one_constant_column_does_not_break_dependent_places():
    merging, fine = copula_records(0.5, rows=500)
    codes = np.array(merging.merge(fine).codes)
    codes[:, 1] = 0
    drawn = DrawnPlaces(merging.original, merging.merged, merging.groups, merging.shares, 1.0)
    restored = drawn.restore(Records(merging.merged, codes), np.random.default_rng(0))
    np.testing.assert_array_equal(drawn.merge(restored).codes, codes)


def test_a_mean_that_a_far_cell_decides_is_drawn_about_its_measurement():
    """100 of 20,000 rows are measured in a cell that the estimate has nearly empty, with a noise of 50 rows.

    Bounds of the mean are five of its standard errors; five of the deviation are 25 %.
    """
    domain = Domain(("a",), (5,), (5,))
    released = Marginal(domain, np.array([10_000.0, 5_000, 4_000, 999, 1]))
    measured = Marginal(domain, np.array([10_000.0, 5_000, 4_000, 900, 100]))
    number = np.array([0.0, 1, 2, 3, 100])
    noise = np.diag(np.full(5, 50.0))
    rng, found = np.random.default_rng(0), []
    for _ in range(200):
        (drawn,) = draw_margins([Measurement(measured, 2500.0)], [released], [noise], rng, {"a": number})
        assert drawn.total == pytest.approx(released.total)
        found.append(float(drawn.counts @ number / drawn.total))
    spread = np.sqrt(released.counts @ (number - released.counts @ number / 20_000) ** 2 / 20_000)
    released_mean = float(released.counts @ number / 20_000)
    measured_mean = float(measured.counts @ number / 20_000)
    share = (0.05 * spread) ** 2 / ((0.05 * spread) ** 2 + (50 * 100 / 20_000) ** 2)
    wanted = released_mean + share * (measured_mean - released_mean)
    assert abs(np.mean(found) - wanted) < 5 * np.std(found) / np.sqrt(200)
    assert 0.6 < np.std(found) / (np.sqrt(share) * 0.25) < 1.3


def test_mean_ranks_in_parts_are_drawn_about_the_measurement():
    """A column that rises only among the last eighth of the other: Spearman's correlation alone misses that.

    The estimate is independent. Noise of 5 rows in a cell of 50 leaves 5 % of the departure open.
    """
    size = 8
    flat = np.full((size, size), 50.0)
    true = flat.copy()
    true[-1] += np.linspace(-35, 35, size)
    true[0] += np.linspace(-35, 35, size)  # and so among the first: the correlation of all stays 0
    true[3:5] -= np.linspace(-35, 35, size)
    domain = Domain(("a", "b"), (size, size), (size, size))
    each = Grouping(tuple(np.arange(size, dtype=np.int32) for _ in range(2)))
    margins = tuple(Marginal(domain, flat).project((name,)) for name in "ab")
    rank = np.linspace(-1, 1, size)
    rng, found = np.random.default_rng(0), []
    for _ in range(100):
        noisy = true + 5.0 * rng.standard_normal(true.shape)
        trend = Trend.draw(Marginal(domain, flat), each, noisy, np.full(true.shape, 25.0), rng)
        drawn = trend.impose(Marginal(domain, flat), margins)
        found.append(float(drawn.counts[-1] @ rank))
    assert 0.85 < np.mean(found) / float(true[-1] @ rank) < 1.1
