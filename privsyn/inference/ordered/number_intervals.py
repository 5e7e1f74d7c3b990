r"""Means, quantiles and rank correlations of ordered attributes, with 95 % intervals.

Like intervals of counts (`fitted`), these use only the noisy answers, whose noise is known. The
estimates use the released tables, which are usually more accurate. A pair is moved until its correlation lies
in the interval (`concordance`). Where an estimate still lies outside, the interval is extended to it.

The noise of a weighted sum of cells is taken as normal. With a delta of 0 the noise of a cell is a Laplace
variable, of which at least 93 % lie within the normal interval of 95 %; of sums, nearly 95 %.

- A mean is a ratio of two sums of noisy counts; its variance follows by the delta method. Tables measured in
  groups of codes make the noise of sums smaller than if cells were independent: see `noise_factor`. Where
  persons have many rows, errors in common make it larger: see `all_rows.Weights`. No count shows where the
  numbers of a cell lie in it: their mean is uniform over the cell, and independent of other cells.
  About the mean m of the numbers that the release draws there it has the variance
  :math:`w^2 / 12 + (m - c)^2`, with c the middle of the cell and w its width. It cannot leave the cell. A
  narrower prior held the mean of a column with 93 % of the numbers at its end, and the others in four wide
  cells, in 13 of 30 runs.
- A quantile x of order q is the smallest number with :math:`F(x) \ge q`. A cell is in its interval unless the
  noisy count below the cell is too large for that, or the count up to its end too small.
- Spearman's correlation follows from a weighted sum of the noisy cells of a pair. Coarse groups hide part of
  the correlation. The Gaussian copula restores it: its sum and its correlation both increase with its
  parameter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor, hypot, log2, sqrt

import numpy as np

from privsyn.inference.fitted import ROUNDING, TWO_SIDED, with_rounding
from privsyn.inference.prior.copula import TERMS, hermite
from privsyn.marginals.domain import Codes, Floats, keep
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.tolerances import TINY_COUNT

LEAST_TOTAL = 4.0
"""Standard deviations: if the noisy number of records is smaller, nothing is known."""

LEAST_SQUARED, MOST_SQUARED = 1e-120, 1e120  # sums of squares of numbers in between are doubles
EVENLY = 1 / 12  # variance of a number that may be anywhere in a cell of length 1

PARAMETERS: Floats = np.linspace(-0.99, 0.99, 199)  # of the copula; Mehler's sum is not accurate beyond
POWERS: Floats = PARAMETERS[:, np.newaxis] ** np.arange(TERMS)


@dataclass(frozen=True)
class Interval:
    """An estimate, and a 95 % interval for the true number. NaN where unknown."""

    estimate: float
    low: float
    high: float

    def extended(self) -> Interval:
        """Return the interval, extended to the estimate if this lies outside: it covers at least as often."""
        return replace(self, low=min(self.low, self.estimate), high=max(self.high, self.estimate))


@dataclass(frozen=True, eq=False)
class NumberedCells:
    """The numbers in the merged ordered codes of an attribute.

    Parameters
    ----------
    lows, highs : array of shape (codes,)
        Smallest and largest number of each code, in increasing order.
    middles : array of shape (codes,)
        Mean number of the records that are drawn with each code.
    """

    lows: Floats
    highs: Floats
    middles: Floats

    def __post_init__(self) -> None:
        keep(self, "lows", "highs", "middles")
        if not ((self.lows <= self.middles) & (self.middles <= self.highs)).all():
            raise ValueError("a middle lies outside its cell")

    @classmethod
    def of(cls, lows: Floats, highs: Floats, group: Codes, shares: Floats) -> NumberedCells:
        """Return the merged cells.

        Parameters
        ----------
        lows, highs, group, shares : arrays of shape (fine codes,)
            Smallest and largest number of each fine code, its merged code, and its share of the records of
            this code. They are all 0 if missing cells share the code and have all of its records: then its
            fine codes are alike.

        Examples
        --------
        Half of the records have 0, the others are spread over 6 to 12:

        >>> ends = np.array([0.0, 6.0]), np.array([0.0, 12.0])
        >>> cells = NumberedCells.of(*ends, np.array([0, 0]), np.array([0.5, 0.5]))
        >>> cells.middles.tolist(), cells.deviations.round(2).tolist()
        ([4.5], [3.77])
        """
        shares = np.where(np.bincount(group, shares)[group] > 0, shares, 1.0)
        shares = shares / np.bincount(group, shares)[group]
        unit = squarable_unit(lows, highs)
        lows, highs = lows / unit, highs / unit
        centres = lows / 2 + highs / 2
        middles = np.bincount(group, shares * centres)
        ends = np.flatnonzero(np.diff(group, append=-1))
        first, last = lows[np.append(0, ends[:-1] + 1)], highs[ends]
        return cls(unit * first, unit * last, np.asarray(unit * np.clip(middles, first, last), np.float64))

    @property
    def deviations(self) -> Floats:
        """Standard deviation of the mean number of each code, about its middle."""
        centres = self.lows / 2 + self.highs / 2
        return np.hypot(sqrt(EVENLY) * (self.highs - self.lows), self.middles - centres)

    def divided(self, unit: float) -> NumberedCells:
        """Return the same cells in another unit."""
        return NumberedCells(*(values / unit for values in (self.lows, self.highs, self.middles)))


def squarable_unit(lows: Floats, highs: Floats) -> float:
    """Return a power of two in which the squares of numbers neither overflow nor vanish; nearly always 1.

    >>> squarable_unit(np.zeros(1), np.array([90.0])), squarable_unit(np.zeros(1), np.array([1e300])) > 1e299
    (1.0, True)
    """
    largest = max(float(np.abs(lows).max(initial=0.0)), float(np.abs(highs).max(initial=0.0)))
    return 1.0 if largest == 0 or LEAST_SQUARED < largest < MOST_SQUARED else 2.0 ** floor(log2(largest))


def mean_interval(
    measured: Measurement, released: Marginal, cells: NumberedCells, factor: Floats
) -> Interval:
    """Return the interval of a mean.

    Parameters
    ----------
    measured : Measurement
        Of one attribute; codes beyond the cells are not numbers.
    released : Marginal
    cells : NumberedCells
    factor : array of shape (cells, cells)
        F of `noise_factor`: the noise in the measured counts is F z, with z standard normal.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> counts = Marginal(Domain(("a",), (2,), ordered=(2,)), np.array([300.0, 100.0]))
    >>> ends = np.array([0.0, 4.0])
    >>> noise = np.diag([10.0, 10.0])
    >>> cells = NumberedCells(ends, ends, ends)
    >>> found = mean_interval(Measurement(counts, 100.0), counts, cells, noise)
    >>> found.estimate, round(found.low, 3), round(found.high, 3)
    (1.0, 0.845, 1.155)
    """
    size = len(cells.middles)
    unit = squarable_unit(cells.lows, cells.highs)
    cells = cells.divided(unit)
    counts, factor = measured.marginal.counts[:size], factor[:size]
    shares = released.counts[:size] / max(released.counts[:size].sum(), TINY_COUNT)
    estimate, total = float(shares @ cells.middles), float(counts.sum())
    if total <= LEAST_TOTAL * float(_deviation(np.ones(size), factor)):
        return Interval(unit * estimate, unit * float(cells.lows[0]), unit * float(cells.highs[-1]))
    mean = float(counts @ cells.middles) / total
    noise = float(noise_variance(cells.middles - mean, factor)) / total**2
    rooms = cells.middles - cells.lows, cells.highs - cells.middles
    inside = (shares * np.minimum(cells.deviations, room) for room in rooms)
    moved = (TWO_SIDED * sqrt(float(away @ away)) for away in inside)
    reaches = (float(shares @ room) for room in rooms)  # if all numbers are at that end of their cell
    low, high = (hypot(TWO_SIDED * sqrt(noise), min(pair)) for pair in zip(moved, reaches, strict=True))
    ends = max(mean - low, cells.lows[0]), min(mean + high, cells.highs[-1])
    return Interval(unit * estimate, unit * ends[0], unit * ends[1])


def noise_variance(weights: Floats, factor: Floats) -> Floats:
    """Return the variance of the noise in sums of cells with `weights` (..., cells).

    Answers are rounded, but not the exact counts of cells without noise.
    """
    rounding = ROUNDING * (weights**2 * factor.any(axis=1)).sum(-1)
    return np.asarray(((weights @ factor) ** 2).sum(-1) + rounding)


def _deviation(weights: Floats, factor: Floats) -> Floats:
    return np.asarray(np.sqrt(noise_variance(weights, factor)))


def within_cells(released: Marginal, cells: NumberedCells) -> float:
    """Return how far a mean can move if records lie elsewhere in their cells."""
    counts = released.counts[: len(cells.middles)]
    away = np.maximum(cells.highs - cells.middles, cells.middles - cells.lows)
    return float(counts / max(counts.sum(), TINY_COUNT) @ away)


def quantile_interval(
    measured: Measurement, released: Marginal, cells: NumberedCells, factor: Floats, share: float
) -> Interval:
    """Return the interval of a quantile. It ends where cells end, and is valid for every private table.

    The true cell is in the interval with a probability of at least 0.95; the parameters are as for a mean.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> counts = Marginal(Domain(("a",), (100,), ordered=(100,)), np.full(100, 50.0))
    >>> points = np.arange(100.0)
    >>> cells = NumberedCells(points, points, points)
    >>> quantile_interval(Measurement(counts, 25.0), counts, cells, 5 * np.eye(100), 0.5)
    Interval(estimate=49.0, low=49.0, high=50.0)
    """
    size = len(cells.middles)
    counts = np.maximum(released.counts[:size], 0.0)  # rounding may leave less, and sums must not fall
    expected = np.cumsum(counts)
    cell = int(np.searchsorted(expected, share * expected[-1] * (1 - 1e-12)))
    before = expected[cell] - counts[cell]
    inside = (share * expected[-1] - before) / max(counts[cell], TINY_COUNT)
    low, high = cells.lows[cell], cells.highs[cell]
    estimate = float(low + min(max(inside, 0.0), 1.0) * (high - low))

    weights = np.tri(size) - share  # sum the records up to each cell, less the share of all
    excess = weights @ measured.marginal.counts[:size]
    error = TWO_SIDED * _deviation(weights, factor[:size])
    enough = np.append((excess + error >= 0)[:-1], True)  # all records are below the last end
    short = np.append(True, (excess - error < 0)[:-1])
    accepted = np.flatnonzero(enough & short)
    if not accepted.size:  # the noise is no number: nothing is known of the quantile
        return Interval(estimate, float(cells.lows[0]), float(cells.highs[-1]))
    return Interval(estimate, float(cells.lows[accepted[0]]), float(cells.highs[accepted[-1]]))


@dataclass(frozen=True, eq=False)
class Ranks:
    """The ranks of the numbers of one attribute.

    Parameters
    ----------
    merged : integer array of shape (codes,)
        The merged code of each ordered code, in which tables are released.
    shares : array of shape (codes,)
        Share of the records of each code.
    middles : array of shape (codes,)
        Mean rank of the records of each code, as a share of all, minus one half.
    integrals : array of shape (codes, TERMS)
        See `hermite`.
    """

    merged: Codes
    shares: Floats
    middles: Floats
    integrals: Floats

    def __post_init__(self) -> None:
        keep(self, "merged", "shares", "middles", "integrals")

    @classmethod
    def of(cls, one_way: Marginal, merged: Codes) -> Ranks:
        """Return the ranks of an attribute with these released counts, as fine as possible."""
        counts = one_way.counts[: len(merged)] + TINY_COUNT
        shares = counts / counts.sum()
        return cls(merged, shares, np.cumsum(shares) - shares / 2 - 0.5, hermite(one_way))

    @classmethod
    def after(cls, merging: Merging, one_way: Marginal) -> Ranks:
        """Return the ranks of an attribute whose codes were merged; `one_way` has the merged codes."""
        (axis,), original = merging.original.axes(one_way.attributes), merging.original
        ordered = original.ordered[axis]
        merged = merging.groups[axis][:ordered]
        counts = np.zeros(original.sizes[axis])
        counts[:ordered] = one_way.counts[merged] * merging.shares[axis][:ordered]
        return cls.of(Marginal(original.project(one_way.attributes), counts), merged)

    def in_groups(self, groups: Codes) -> Ranks:
        """Return the same codes, each with the mean rank of its group."""
        group = groups[self.merged]
        means = np.bincount(group, self.shares * self.middles) / np.bincount(group, self.shares)
        return replace(self, middles=means[group])

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the ranks."""
        return sqrt(float(self.shares @ self.middles**2))

    @property
    def coefficients(self) -> Floats:
        """Return the Hermite coefficients of the ranks."""
        return self.middles @ self.integrals


def correlation_interval(measured: Measurement, released: Marginal, sides: tuple[Ranks, Ranks]) -> Interval:
    """Return the interval of Spearman's correlation of two ordered attributes.

    It assumes a Gaussian copula inside the groups of the measurement. The finer the groups, the less this
    matters.

    Parameters
    ----------
    measured : Measurement
        Noisy counts of the pair, optionally in groups.
    released : Marginal
        Released counts of the pair, in merged codes.
    sides : tuple of Ranks
    """
    estimate = correlation_of(released.counts, sides)
    every = measured.grouping.of_codes(released.domain.shape)
    coarse = [side.in_groups(group) for side, group in zip(sides, every, strict=True)]
    weights = np.outer(*(_by_group(side, group) for side, group in zip(coarse, every, strict=True)))
    block = tuple(map(slice, weights.shape))
    counts, noise = measured.marginal.counts[block], with_rounding(measured.variance[block])
    total, spread = float(counts.sum()), coarse[0].deviation * coarse[1].deviation
    if total <= LEAST_TOTAL * sqrt(float(noise.sum())) or not spread > 0:
        return Interval(estimate, -1.0, 1.0)
    fine_spread = sides[0].deviation * sides[1].deviation
    sums = POWERS @ (coarse[0].coefficients * coarse[1].coefficients)
    correlations = POWERS @ (sides[0].coefficients * sides[1].coefficients) / fine_spread
    # At independence. Elsewhere a strong correlation may change nothing, to the last digit.
    moved, by = (float(np.gradient(curve)[len(PARAMETERS) // 2]) for curve in (sums, correlations))
    if not min(moved, by) > 0:  # one of the attributes has a single group
        return Interval(estimate, -1.0, 1.0)
    slope = moved / by
    # The records' own correlation differs from the copula's by chance, less so the finer the groups.
    chance = max(1 + (spread / slope) ** 2 - 2 * spread / slope * spread / fine_spread, 0.0) / total
    seen = float((weights * counts).sum()) / total
    error = sqrt(float((noise * (weights - seen) ** 2).sum()) / total**2 + chance * slope**2)
    increasing = np.maximum.accumulate(sums)
    low = np.interp(seen - TWO_SIDED * error, increasing, correlations, left=-1.0, right=correlations[-1])
    high = np.interp(seen + TWO_SIDED * error, increasing, correlations, left=correlations[0], right=1.0)
    return Interval(estimate, float(np.clip(low, -1.0, 1.0)), float(np.clip(high, -1.0, 1.0)))


def _by_group(side: Ranks, group: Codes) -> Floats:
    """Return the rank of each group of ordered codes, of ranks that are equal inside the groups."""
    groups = group[side.merged]
    ranks = np.empty(int(groups.max()) + 1)
    ranks[groups] = side.middles
    return ranks


def correlation_of(counts: Floats, sides: tuple[Ranks, Ranks]) -> float:
    """Return Spearman's correlation among the records that have an order in both attributes."""
    return _spearman(counts[tuple(slice(int(side.merged.max()) + 1) for side in sides)])


def _spearman(table: Floats) -> float:
    """Return Spearman's correlation of a table of counts, with middle ranks; 0 if an attribute is constant.

    >>> round(_spearman(np.array([[0.0, 5.0], [5.0, 0.0]])), 9)
    -1.0
    """
    shares = table / max(table.sum(), TINY_COUNT)
    sides = shares.sum(axis=1), shares.sum(axis=0)
    x, y = (np.cumsum(side) - side / 2 - 0.5 for side in sides)
    scale = float((sides[0] @ x**2) * (sides[1] @ y**2))
    return float(x @ shares @ y) / sqrt(scale) if scale > 1e-30 else 0.0
