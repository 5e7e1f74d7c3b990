"""Intervals of means, quantiles and correlations cover the true numbers, for noise that is planted."""

import numpy as np
import pytest
import reference
from scipy.stats import binom

from privsyn.inference.measured_columns import Estimate
from privsyn.inference.ordered.concordance import within_intervals
from privsyn.inference.ordered.number_intervals import (
    NumberedCells,
    Ranks,
    _spearman,
    correlation_interval,
    mean_interval,
    quantile_interval,
    within_cells,
)
from privsyn.marginals.domain import Domain
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Grouping, Marginal, Measurement, groups_at
from privsyn.marginals.structural_zeros import NO_ZEROS

RUNS = 2000
"""A coverage of 0.95 is found outside 0.92 to 0.98 with a probability below 1e-8 (its sd is 0.005)."""

SIZE = 60
ONE = Domain(("a",), (SIZE + 1,), ordered=(SIZE,))
POINTS = np.arange(SIZE) * 2.0 - 10
CELLS = NumberedCells(POINTS, POINTS, POINTS)


def skewed(rng, rows):
    """Counts of a skewed column with an empty tail and missing cells."""
    codes = np.minimum(rng.gamma(2.0, 5.0, rows).astype(int), SIZE - 1)
    return np.append(np.bincount(codes, minlength=SIZE), 300.0)


def noisy(counts, sigma, rng):
    return np.rint(counts + rng.normal(0, sigma, counts.shape))


def independent(sigma):
    """The factor of independent noise in all cells."""
    return sigma * np.eye(SIZE + 1)


@pytest.mark.parametrize(("rows", "sigma"), [(2000, 10.0), (500, 4.0), (20_000, 60.0)])
def test_intervals_of_a_mean_hold_as_often_as_they_say(rows, sigma):
    rng = np.random.default_rng(0)
    counts = skewed(rng, rows)
    truth, hits = counts[:SIZE] @ POINTS / rows, 0
    released = Marginal(ONE, counts)
    for _ in range(RUNS):
        measured = Measurement(Marginal(ONE, noisy(counts, sigma, rng)), sigma**2)
        found = mean_interval(measured, released, CELLS, independent(sigma))
        hits += found.low <= truth <= found.high
    assert found.estimate == pytest.approx(truth)
    assert 0.92 < hits / RUNS < 0.98


def test_intervals_of_a_mean_hold_with_laplace_noise():
    rng = np.random.default_rng(5)
    counts = skewed(rng, 2000)
    truth, hits = counts[:SIZE] @ POINTS / 2000, 0
    released = Marginal(ONE, counts)
    for _ in range(RUNS):
        answers = np.rint(counts + rng.laplace(0, 10 / np.sqrt(2), counts.shape))
        found = mean_interval(Measurement(Marginal(ONE, answers), 100.0), released, CELLS, independent(10.0))
        hits += found.low <= truth <= found.high
    assert 0.92 < hits / RUNS < 0.98


@pytest.mark.slow
def test_intervals_of_a_mean_hold_if_means_in_cells_vary_as_assumed():
    """Their mean is anywhere in a cell, which matters more here than the noise."""
    rng = np.random.default_rng(7)
    size, sigma = 6, 10.0
    domain, middles, counts = Domain(("a",), (size,), ordered=(size,)), np.arange(6) * 12.0, np.full(6, 300.0)
    cells = NumberedCells(middles - 6, middles + 6, middles)
    released, hits = Marginal(domain, counts), 0
    for _ in range(RUNS):
        places = middles + rng.uniform(-6, 6, size)
        measured = Measurement(Marginal(domain, noisy(counts, sigma, rng)), sigma**2)
        found = mean_interval(measured, released, cells, sigma * np.eye(size))
        hits += found.low <= places @ counts / counts.sum() <= found.high
    assert 0.92 < hits / RUNS < 0.98


def test_an_interval_moves_no_number_out_of_its_cell():
    """The last cell is long, and its numbers are drawn at its start: they may lie higher, but not lower."""
    domain, counts = Domain(("a",), (2,), ordered=(2,)), np.array([900.0, 100.0])
    cells = NumberedCells(np.array([0.0, 10]), np.array([0.0, 1010]), np.array([0.0, 12]))
    released, exact = Marginal(domain, counts), Measurement(Marginal(domain, counts), 0.0)
    found = mean_interval(exact, released, cells, np.zeros((2, 2)))
    assert (found.low, found.high) == pytest.approx((1.2 - 0.1 * 2, 1.2 + 0.1 * 998))
    cells = NumberedCells(np.array([0.0, 10]), np.array([0.0, 1010]), np.array([0.0, 310]))
    found = mean_interval(exact, released, cells, np.zeros((2, 2)))
    inside = np.hypot(1000 / np.sqrt(12), 310 - 510)  # anywhere, about the mean that is drawn
    assert (found.low, found.high) == pytest.approx((31 - 0.1 * 300, 31 + 1.96 * 0.1 * inside), rel=1e-4)


def test_a_mean_allows_for_the_chance_of_single_records_in_their_cells():
    """Exact counts of one record a cell: the records lie anywhere in their cells.

    Without chance, two of three intervals held. Error probability 2e-7.
    """
    size, runs, rng = 30, 2000, np.random.default_rng(4)
    domain, lows = Domain(("a",), (size,), ordered=(size,)), np.arange(size, dtype=np.float64)
    counts = Marginal(domain, np.ones(size))
    cells = NumberedCells(lows, lows + 1, lows + 0.5)
    found = mean_interval(Measurement(counts, 0.0), counts, cells, np.zeros((size, size)))
    means = (lows + rng.random((runs, size))).mean(axis=1)
    held = int(((found.low <= means) & (means <= found.high)).sum())
    assert binom.ppf(1e-7, runs, 0.95) <= held <= binom.ppf(1 - 1e-7, runs, 0.98)


def test_the_mean_of_a_code_of_several_cells_is_anywhere_in_it():
    lows, highs = np.array([0.0, 1, 2, 3]), np.array([1.0, 2, 3, 103])
    cells = NumberedCells.of(lows, highs, np.array([0, 0, 1, 1]), np.array([1.0, 0, 0.9, 0.1]))
    assert cells.lows.tolist() == [0, 2]
    assert cells.highs.tolist() == [2, 103]
    assert cells.middles == pytest.approx([0.5, 0.9 * 2.5 + 0.1 * 53])
    off = cells.middles - [1, 52.5]
    assert cells.deviations == pytest.approx(np.hypot([2 / np.sqrt(12), 101 / np.sqrt(12)], off))


def test_a_code_that_missing_cells_fill_is_even():
    cells = NumberedCells.of(np.array([0.0, 4]), np.array([0.0, 4]), np.array([0, 0]), np.zeros(2))
    assert cells.middles.tolist() == [2.0]
    assert cells.deviations == pytest.approx(4 / np.sqrt(12))


@pytest.mark.slow
def test_intervals_use_what_is_known_of_coarse_sums():
    """Sums of 10 cells are known as well as a cell: intervals hold as often, at less than half the width."""
    rng = np.random.default_rng(6)
    counts, sigma, group = skewed(rng, 2000), 10.0, np.append(np.arange(SIZE) // 10, SIZE // 10)
    known = (group[:, np.newaxis] == group) / 30.0
    covariance = np.linalg.inv(np.eye(SIZE + 1) / sigma**2 + known)
    factor = np.linalg.cholesky(covariance)
    middle = np.searchsorted(np.cumsum(counts[:SIZE]), counts[:SIZE].sum() / 2)
    truths, hits, widths = (counts[:SIZE] @ POINTS / 2000, POINTS[middle]), np.zeros(2), []
    released = Marginal(ONE, counts)
    for _ in range(RUNS):
        answers = Marginal(ONE, np.rint(counts + factor @ rng.normal(size=SIZE + 1)))
        measured = Measurement(answers, np.diag(covariance))
        found = [
            mean_interval(measured, released, CELLS, factor),
            quantile_interval(measured, released, CELLS, factor, 0.5),
        ]
        hits += [one.low <= truth <= one.high for one, truth in zip(found, truths, strict=True)]
        alone = mean_interval(measured, released, CELLS, np.diag(np.sqrt(np.diag(covariance))))
        widths.append((found[0].high - found[0].low) / (alone.high - alone.low))
    assert 0.92 < hits[0] / RUNS < 0.98
    assert hits[1] / RUNS > 0.92
    assert max(widths) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.05, 0.25, 0.5, 0.75, 0.95])
def test_intervals_of_a_quantile_hold_at_least_as_often_as_they_say(share):
    """A quantile is in the interval if its cell is, so coarse cells make the interval hold more often."""
    rng = np.random.default_rng(1)
    counts = skewed(rng, 20_000)
    truth = POINTS[np.searchsorted(np.cumsum(counts[:SIZE]), share * counts[:SIZE].sum())]
    released = Marginal(ONE, counts)
    hits = 0
    for _ in range(RUNS):
        measured = Measurement(Marginal(ONE, noisy(counts, 200.0, rng)), 200.0**2)
        found = quantile_interval(measured, released, CELLS, independent(200.0), share)
        hits += found.low <= truth <= found.high
    assert found.estimate == truth
    assert hits / RUNS > 0.92


@pytest.mark.slow
def test_intervals_of_a_quantile_are_no_wider_than_they_need_be():
    """With fine cells, 95 % of the intervals hold, not 98."""
    rng = np.random.default_rng(2)
    size, sigma = 200, 15.0
    domain = Domain(("a",), (size,), ordered=(size,))
    points = np.arange(float(size))
    counts = np.full(size, 5.0)
    released, cells = Marginal(domain, counts), NumberedCells(points, points, points)
    hits = 0
    for _ in range(RUNS):
        measured = Measurement(Marginal(domain, noisy(counts, sigma, rng)), sigma**2)
        found = quantile_interval(measured, released, cells, sigma * np.eye(size), 0.5)
        hits += found.low <= 99 <= found.high
    assert 0.92 < hits / RUNS < 0.98


def pair(rng, rows, correlation, size):
    """A sample of a Gaussian copula: its counts in fine cells, and its own rank correlation."""
    x = rng.normal(size=rows)
    y = correlation * x + np.sqrt(1 - correlation**2) * rng.normal(size=rows)
    ranks = [np.argsort(np.argsort(side)) for side in (x, y)]
    a, b = (rank * size // rows for rank in ranks)
    table = np.bincount(a * size + b, minlength=size * size).reshape(size, size)
    return table.astype(float), float(np.corrcoef(*ranks)[0, 1])


@pytest.mark.slow("each case")
@pytest.mark.parametrize(
    ("rows", "correlation", "level", "sigma"),
    [(1000, 0.5, 2, 15.0), (1000, -0.7, 4, 10.0), (500, 0.0, 2, 1.0), (1000, 0.3, 8, 8.0)],
)
def test_intervals_of_a_correlation_hold_as_often_as_they_say(rows, correlation, level, sigma):
    """The truth is the correlation of the private rows, not of the law that they were drawn from."""
    rng = np.random.default_rng(3)
    size, hits = 32, 0
    domain = Domain(("a", "b"), (size, size), ordered=(size, size))
    even = Marginal(domain.project(("a",)), np.full(size, rows / size))
    group = groups_at(even, level)
    ranks = Ranks.of(even, np.arange(size, dtype=np.int32))
    grouping = Grouping((group, group))
    coarse = grouping.domain(domain)
    for _ in range(RUNS):
        table, truth = pair(rng, rows, correlation, size)
        counts = noisy(grouping.join(table), sigma, rng)
        measured = Measurement(Marginal(coarse, counts), sigma**2, grouping)
        found = correlation_interval(measured, Marginal(domain, table), (ranks, ranks))
        hits += found.low <= truth <= found.high
    assert found.estimate == pytest.approx(truth, abs=0.02)
    assert 0.92 < hits / RUNS < 0.98


def test_intervals_narrow_with_the_noise_and_give_up_where_it_drowns_the_records():
    counts = skewed(np.random.default_rng(4), 2000)
    released = Marginal(ONE, counts)
    widths = []
    for sigma in (1.0, 10.0):
        found = mean_interval(Measurement(released, sigma**2), released, CELLS, independent(sigma))
        widths.append(found.high - found.low)
    assert widths[0] < widths[1] / 8
    lost = Measurement(released, 1e10)
    found = mean_interval(lost, released, CELLS, independent(1e5))
    assert (found.low, found.high) == (POINTS[0], POINTS[-1])
    found = quantile_interval(lost, released, CELLS, independent(1e5), 0.5)
    assert (found.low, found.high) == (POINTS[0], POINTS[-1])


def test_a_strong_correlation_has_an_interval_up_to_one():
    size = 16
    domain = Domain(("a", "b"), (size, size), ordered=(size, size))
    same = Marginal(domain, np.diag(np.full(size, 100.0)))
    ranks = Ranks.of(same.project(("a",)), np.arange(size, dtype=np.int32))
    found = correlation_interval(Measurement(same, 1.0), same, (ranks, ranks))
    assert found.estimate == pytest.approx(1)
    assert 0.9 < found.low < found.high == 1


def test_records_inside_cells_move_a_mean_by_their_width_at_most():
    domain = Domain(("a",), (2,), ordered=(2,))
    cells = NumberedCells(np.array([0.0, 10]), np.array([8.0, 10]), np.array([4.0, 10]))
    assert within_cells(Marginal(domain, np.array([75.0, 25])), cells) == pytest.approx(3.0)


def spiked(rng, size):
    """Return the shares of a column of which most records often have one code."""
    shares = rng.gamma(0.5, 1.0, size) + 1e-3
    shares[rng.integers(size)] += 10 ** rng.uniform(-1, 1.5) * shares.sum()
    return shares / shares.sum()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(100), 2082])  # with 2082 the strongest correlations do not differ
def test_an_estimate_of_a_correlation_lies_in_its_own_interval(seed):
    """Columns with spikes, pairs that exclude each other, groups of 2 x 2; the estimate is any wrong table.

    It moves to the interval, unless the margins do not allow it, and no further than to its end.
    """
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(2, 13, 2).tolist())
    domain, rows = Domain(("a", "b"), sizes, ordered=sizes), int(10 ** rng.uniform(3, 5))
    true = np.outer(*(spiked(rng, size) for size in sizes)) * rng.gamma(rng.choice([0.3, 5.0]), 1.0, sizes)
    if seed % 3 == 0:  # no record is away from both spikes
        true *= ~np.outer(
            true.sum(axis=1) < true.sum(axis=1).max(), true.sum(axis=0) < true.sum(axis=0).max()
        )
    true = Marginal(domain, true * rows / true.sum())
    sides = tuple(true.project((name,)) for name in "ab")
    level = int(rng.choice([2, 4, 32]))
    groups = Grouping(tuple(groups_at(side, level) for side in sides))
    sigma = 10 ** rng.uniform(0, 2)
    counts = noisy(groups.join(true.counts), sigma, rng)
    answer = Measurement(Marginal(groups.domain(domain), counts), sigma**2, groups)
    wrong = np.outer(*(side.counts for side in sides)) / rows
    wrong = fit_margins(Marginal(domain, wrong * np.exp(rng.normal(0, 1, sizes))), sides)

    merging, pair = reference.unmerged(domain), Estimate(wrong, measured=answer, margins=sides)
    moved = within_intervals([pair], sides, merging, NO_ZEROS)[0].table
    ranks = tuple(Ranks.after(merging, side) for side in sides)
    before, after = (correlation_interval(answer, table, ranks) for table in (wrong, moved))
    assert (before.low, before.high) == (after.low, after.high)
    for side in sides:
        assert moved.project(side.attributes).counts == pytest.approx(side.counts, abs=2e-3 * rows)
    if before.low <= before.estimate <= before.high:
        assert moved is wrong
        return
    lowest, highest = (_extreme(sides, order) for order in (-1, 1))
    low, high = min(after.low, highest), max(after.high, lowest)
    assert low - 0.02 <= after.estimate <= high + 0.02
    if lowest < after.low < after.high < highest:
        assert after.low - 1e-6 <= after.estimate <= after.high + 1e-6
    assert after.extended().low <= after.estimate <= after.extended().high


def _extreme(sides, order):
    """Return the largest (1) or smallest (-1) Spearman correlation that two columns allow."""
    first, second = (np.cumsum(side.counts / side.total) for side in sides)
    if order < 0:
        second = 1 - np.append(0.0, second[:-1])[::-1]
    table = np.diff(np.minimum.outer(np.append(0.0, first), np.append(0.0, second)), axis=0)
    table = np.diff(table, axis=1)
    return _spearman(table[:, ::order] if order < 0 else table)


def test_a_quantile_of_counts_that_rounding_left_below_zero_is_a_cell():
    """Of two cells, one of 0 and one of -1e-15 rows, the median once was in a third."""
    counts = Marginal(Domain(("a",), (2,), ordered=(2,)), np.array([0.0, -1e-15]))
    points = np.arange(2.0)
    cells = NumberedCells(points, points, points)
    interval = quantile_interval(Measurement(counts, 25.0), counts, cells, 5 * np.eye(2), 0.5)
    assert 0 <= interval.low <= interval.estimate <= interval.high <= 1
