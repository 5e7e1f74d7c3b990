"""Binning: join the fine cells of a number to a few groups, by their expected counts.

A fixed grid is either too coarse for a spike or too fine for the noise. So numbers are first counted in many
fine cells and runs of them. All later tables use groups of neighbouring cells: of about equal
mass in the bulk, ever longer in the tails. Careless bounds so cost a few groups only. Within a group, cells
are drawn by their expected counts. This reads released counts only and costs no privacy.

A column is counted in fine cells, in runs of eight cells, and in runs of eight runs: hierarchical counts. The
noise of many cells adds up: the sum of half a column's cells is far noisier than one count of it. Runs show
where the records are, and cells show which values are frequent. The counts are combined in two steps.
Upwards, each run gets the least-squares estimate from its own count and those of its children (Hay et al.,
PVLDB 2010). Downwards, the children of a run share its records evenly by width, unless their counts stand out
of the noise; those are shrunk towards even shares (James and Stein 1961). So the noise of empty cells stays
within runs that hold records.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from privsyn.inference.consistency import norm_sub
from privsyn.marginals.domain import Codes, Domain, Floats, Ints, keep
from privsyn.marginals.marginal import Grouping
from privsyn.marginals.recoding import Merging
from privsyn.marginals.tolerances import SMALLEST, TINY_COUNT

NO_CELLS: Ints = np.zeros(0, np.int64)

STEP = 1.5
"""Price of a step of the density: STEP * ln(cells) noise variances of squared deviations. A spike needs two
steps, so with 1,000 cells it must stand out by about 5 standard deviations."""

CLEAR_GROUP = 4.0
"""Standard deviations of noise: a group with fewer records is too noisy alone."""

PERHAPS = 0.5
"""Standard deviations of noise from which zero or a bound has its own group. If it is empty, it is joined."""

HEAVY = 1 / 32
"""Share of the records: an interval that holds twice as much is halved."""

DOMINANT = 1 / 4
"""Share of the records: a cell with more is a group of its own, whatever lies beside it. Else a group of a
spike and a long range would have its mean anywhere in the range."""

WHISKER = 1.5  # interquartile ranges (Tukey, Exploratory Data Analysis, 1977)

SPIKE = 2.0
"""Ratio of a cell's density to its neighbours' from which it is a spike. Spikes are joined last."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Public layout of the ordered codes of an attribute.

    Parameters
    ----------
    widths : float array of shape (codes,)
        Number of grid points in each code.
    groups : int
        Largest number of groups after joining.
    second : int
        First code of a second part, such as values beside distances; no group and no tail goes across. 0 if
        there is one part.
    starts : integer array, optional
        Codes at which a group begins, because a rule tells them from those below.
    marks : integer array, optional
        Codes of zero and of the bounds that are one number each, beside codes that are many numbers.
    """

    widths: Floats
    groups: int
    second: int = 0
    starts: Ints = field(default_factory=lambda: NO_CELLS)
    marks: Ints = field(default_factory=lambda: NO_CELLS)

    def __post_init__(self) -> None:
        keep(self, "widths", dtype=np.float64)
        keep(self, "starts")
        keep(self, "marks")
        if not (self.widths > 0).all() or self.groups < 1:
            raise ValueError(f"{self.groups} groups of widths of which some are not above 0")

    @property
    def parts(self) -> tuple[slice, ...]:
        """The codes of each part."""
        return (slice(0, self.second), slice(self.second, None)) if self.second else (slice(None),)


def join_cells(expected: Floats, sigma: float, axis: Axis, alone: Collection[int] = ()) -> Codes:
    """Return the group of each cell.

    Parameters
    ----------
    expected : float array of shape (cells,)
        Expected counts, at least 0.
    sigma : float
        Standard deviation of the noise in a cell, in records.
    axis : Axis
    alone : collection of int, optional
        Cells that are groups of their own; see `marks_alone`. An axis of two parts has none.

    Examples
    --------
    A spike, a plateau, and an empty tail:

    >>> expected = np.array([900.0, 50, 50, 50, 50, 0, 0, 0, 0, 0])
    >>> join_cells(expected, 4.0, Axis(np.ones(10), 4)).tolist()
    [0, 1, 1, 2, 3, 3, 3, 3, 3, 3]

    A group begins at a required cell, even if it holds no record:

    >>> join_cells(expected, 4.0, Axis(np.ones(10), 4, starts=np.array([9]))).tolist()
    [0, 1, 1, 2, 2, 2, 2, 2, 2, 3]
    """
    if axis.second:
        shares = [expected[part].sum() / max(expected.sum(), TINY_COUNT) for part in axis.parts]
        first, second = (
            join_cells(expected[part], sigma, Axis(axis.widths[part], max(round(axis.groups * share), 2)))
            for part, share in zip(axis.parts, shares, strict=True)
        )
        return np.concatenate([first, first.max() + 1 + second]).astype(np.int32)
    dominant = expected >= DOMINANT * expected.sum()
    records = expected.sum(where=~dominant)
    enough = expected >= max(CLEAR_GROUP * sigma, records / axis.groups)
    density = np.concatenate([[0.0], expected / axis.widths, [0.0]])
    dense = density[1:-1] >= SPIKE * np.maximum(density[:-2], density[2:])
    dense |= dominant
    spikes, required = {*np.flatnonzero(enough & dense).tolist(), *alone}, {*axis.starts.tolist()}
    single = [edge for cell in spikes for edge in (cell, cell + 1)]
    edges = np.union1d(_intervals(expected, axis), [*single, *required])
    # Runs are cut where they reach half of their records, repeatedly while both parts have enough.
    threshold = max(CLEAR_GROUP * sigma, HEAVY * records)
    below = np.concatenate([[0.0], np.cumsum(expected)])
    runs, open_ = [], list(pairwise([*edges[edges < len(expected)].astype(np.int64).tolist(), len(expected)]))
    while open_:
        start, end = open_.pop()
        half = (below[start] + below[end]) / 2
        cut = start + 1 + int(np.argmin(np.abs(below[start + 1 : end] - half))) if end - start > 1 else start
        if min(below[cut] - below[start], below[end] - below[cut]) >= threshold:
            open_ += [(start, cut), (cut, end)]
        else:
            runs.append(start)
    runs.sort()
    # Neighbours are joined until there are few enough groups: fewest records first, spikes last.
    sums = np.add.reduceat(expected, runs).tolist()
    while len(runs) > max(axis.groups, len(required) + 1):
        costs = [
            (beside[1] in required, not spikes.isdisjoint(beside), sum(counts))
            for beside, counts in zip(pairwise(runs), pairwise(sums), strict=True)
        ]
        index = costs.index(min(costs))
        del runs[index + 1]
        sums[index] += sums.pop(index + 1)
    starts = np.array(runs, np.int64)
    return (np.searchsorted(starts, np.arange(len(expected)), side="right") - 1).astype(np.int32)


def marks_alone(counts: Floats, sigma: float, axis: Axis) -> list[int]:
    """Return the cells of zero and of both bounds that are perhaps not empty.

    Many records often have such a value: 0 is no income, and 99,999 stands for all that is beyond. They may
    be too few to stand out of the noise of fine cells, and too many to be spread over a long range.

    Parameters
    ----------
    counts : array of shape (cells,)
        Noisy.
    sigma : float
        Standard deviation of the noise in a cell, in records.
    axis : Axis

    Examples
    --------
    >>> axis = Axis(np.array([1.0, 9, 1, 9, 1]), 4, marks=np.array([0, 2, 4]))
    >>> marks_alone(np.array([0.0, 90, 40, 4, 25]), 10.0, axis)
    [2, 4]
    """
    density = np.pad(np.maximum(counts, 0.0) / axis.widths, 1, "reflect")
    beside = (density[:-2] + density[2:]) / 2  # at an end, that of its one neighbour
    excess = counts - beside * axis.widths
    return [mark for mark in axis.marks.tolist() if excess[mark] > PERHAPS * sigma]


def fit_steps(counts: Floats, sigma: float, widths: Floats) -> Floats:
    """Return the expected counts of a piecewise constant density: least squares with a price per step.

    Dynamic programming over the position of the last step finds the exact optimum. The density is not
    negative.

    Examples
    --------
    >>> fit_steps(np.array([9.0, 11, 10, 30, 31, 29]), 1.0, np.ones(6)).tolist()
    [10.0, 10.0, 10.0, 30.0, 30.0, 30.0]
    """
    cells = len(counts)
    price = STEP * np.log(max(cells, 2)) * sigma**2
    products, squares = widths * counts, widths**2
    # The sum of squared counts is constant: a piece saves the part that its density explains.
    best, last = np.zeros(cells + 1), np.zeros(cells + 1, np.int64)
    for end in range(1, cells + 1):
        # Cumulate backwards from the end. Differences of sums would cancel for narrow cells beside wide ones.
        product, square = (np.cumsum(x[end - 1 :: -1])[::-1] for x in (products, squares))
        costs = best[:end] - np.maximum(product, 0.0) ** 2 / square + price
        last[end] = np.argmin(costs)
        best[end] = costs[last[end]]
    expected, end = np.empty(cells), cells
    while end > 0:
        start = last[end]
        square = squares[start:end].sum()
        density = max(products[start:end].sum(), 0.0) / square
        expected[start:end] = density * widths[start:end]
        end = start
    return expected


def _intervals(expected: Floats, axis: Axis) -> Ints:
    """Return the first cells of `axis.groups` equal intervals of the bulk, and of ever longer ones beyond.

    The bulk lies within the whiskers. Beyond it, each interval is as long as all between it and the median.
    """
    ends = np.cumsum([0.0, *axis.widths])
    below = np.cumsum([0.0, *np.maximum(expected, TINY_COUNT)])
    first, median, third = np.interp([0.25, 0.5, 0.75], below / below[-1], ends)
    reach = WHISKER * max(third - first, axis.widths.min())
    low, high = max(first - reach, 0.0), min(third + reach, ends[-1])
    edges = [*np.linspace(low, high, axis.groups + 1)[:-1]]
    for start, sign in ((high, 1.0), (low, -1.0)):
        while 0 < start < ends[-1]:
            edges.append(start)
            start += sign * max(abs(start - median), axis.widths.min())
    return np.unique(np.searchsorted(ends[:-1], [0.0, *edges], side="right") - 1)


BRANCHES = 8
"""Children of a run; the last run has the rest."""

LEVELS = 3  # cells, runs, and runs of runs
BEYOND = 2.0  # standard deviations of the noise's energy, below which the children share evenly


def runs(cells: int) -> Codes:
    """Return the run of each of some neighbouring cells.

    >>> runs(17).tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    return np.minimum(np.arange(cells) // BRANCHES, max(cells // BRANCHES, 1) - 1).astype(np.int32)


def in_runs(domain: Domain, names: Collection[str]) -> Merging:
    """Return the merging of the ordered codes of some attributes to runs."""
    groups = []
    for name, ordered in domain.ordered_of.items():
        group = runs(ordered) if name in names else np.arange(ordered, dtype=np.int32)
        nominal = np.arange(domain.size_of[name] - ordered, dtype=np.int32) + group.max(initial=-1) + 1
        groups.append(np.concatenate([group, nominal]))
    shares = tuple(1 / np.bincount(group)[group] for group in groups)
    return Merging(domain, Grouping(tuple(groups)).domain(domain), tuple(groups), shares)


def expected_cells(
    levels: Sequence[tuple[Floats, Floats]], widths: Floats, total: float, frequent: Ints = NO_CELLS
) -> Floats:
    """Return the expected number of records in each cell, at least 0 and with the total.

    Parameters
    ----------
    levels : sequence of (counts, variances)
        Noisy counts of the cells, of their runs, of the runs of these, and so on.
    widths : array of shape (cells,)
    total : float
    frequent : integer array, optional
        Cells of frequent numbers. They have what was counted; the others share the rest.

    Examples
    --------
    A spike, and a run of which nothing but noise is seen:

    >>> cells, noise = np.zeros(16), np.full(16, 25.0)
    >>> cells[[2, 9]] = 98.0, 8.0
    >>> levels = [(cells, noise), (np.array([99.0, 1.0]), noise[:2])]
    >>> expected_cells(levels, np.ones(16), 100.0).round().tolist()
    [0.0, 0.0, 97.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    if frequent.size:
        alone = np.zeros(len(widths))
        alone[frequent] = np.maximum(levels[0][0][frequent], 0.0)
        alone *= min(total / max(float(alone.sum()), TINY_COUNT), 1.0)
        rest = expected_cells(*_without(levels, widths, alone, frequent), total - float(alone.sum()))
        return alone + rest
    estimates, spans = [levels[0]], [np.asarray(widths, np.float64)]
    for counts, variances in levels[1:]:
        run = runs(len(spans[-1]))
        sums, noise = (np.bincount(run, values).astype(np.float64) for values in estimates[-1])
        gain = noise / np.maximum(noise + variances, SMALLEST)
        estimates.append((sums + gain * (counts - sums), gain * variances))
        spans.append(np.bincount(run, spans[-1]).astype(np.float64))
    cells = _shared(total, *estimates[-1], spans[-1])
    for (counts, variances), span in zip(estimates[-2::-1], spans[-2::-1], strict=True):
        starts = np.flatnonzero(np.diff(runs(len(span)), prepend=-1))[1:]
        parts = (np.split(values, starts) for values in (counts, variances, span))
        cells = np.concatenate([_shared(*family) for family in zip(cells.tolist(), *parts, strict=True)])
    return cells


def _without(
    levels: Sequence[tuple[Floats, Floats]], widths: Floats, alone: Floats, frequent: Ints
) -> tuple[list[tuple[Floats, Floats]], Floats]:
    """Return levels and widths without the records of frequent numbers, whose cells are as good as empty."""
    (counts, variances), *above = ((c.copy(), v.copy()) for c, v in levels)
    taken, doubt, thin = alone, np.zeros(len(widths)), np.array(widths, np.float64)
    doubt[frequent] = variances[frequent]
    counts[frequent], variances[frequent], thin[frequent] = 0.0, SMALLEST, SMALLEST
    for run_counts, noise in above:
        run = runs(len(taken))
        taken, doubt = (np.bincount(run, values).astype(np.float64) for values in (taken, doubt))
        run_counts -= taken
        noise += doubt
    return [(counts, variances), *above], thin


def _shared(total: float, counts: Floats, variances: Floats, widths: Floats) -> Floats:
    """Return the part of a run's records that each of its children gets."""
    even = widths * (total / widths.sum())
    if len(counts) < 2 or total <= 0:
        return even
    noise = np.maximum(variances, SMALLEST)
    departures = counts - even
    departures = departures - noise * (departures.sum() / noise.sum())
    energy, freedom = float(np.sum(departures**2 / noise)), len(counts) - 1
    if energy < freedom + BEYOND * np.sqrt(2 * freedom):
        return even
    return norm_sub(even + (1 - max(freedom - 2, 0) / energy) * departures, total)
