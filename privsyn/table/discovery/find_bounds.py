"""Bounds from noisy counts: the first and the last cell of a grid that hold nearly all rows.

`BoundsQuestion` counts the rows of each cell; the functions read its noisy answers.

Bounds begin with the run of cells that is the most significant, and each end moves outwards by one of these
rules. They differ as grids do: cells that double in width, cells of equal width, and a second look at few
cells.

===========================  =====================================================  =======================
grid                         an end moves outwards                                  function
===========================  =====================================================  =======================
any                          to the next significant run, over next cells that      `_further`
                             are above their noise
numbers, whose cells double  by the tail of a power law: rows of two cells fall by  `_thinned`
                             the same factor as those of the two cells before
numbers, on one side of 0    to 0, if the cells span a large factor                 `_with_zero`
dates, of cells as wide      by the cells in which noise can hide the density of    `extent_of_dates`
                             the outer rows
second grid                  by one cell; if noise can hide more rows, not at all   `cluster`
===========================  =====================================================  =======================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf, log, sqrt

import numpy as np

from privsyn.marginals.domain import Floats, Ints, Mask, Numbers
from privsyn.table.discovery.tally import RowCells, Tally
from privsyn.table.encoding.bounds_cells import BoundsGrid
from privsyn.table.encoding.encoders import OrderedEncoder
from privsyn.table.schema.columns import Ordinal

Extent = tuple[int, int] | None
"""First and last cell, both included; None if no cell is significant."""

RUN_LENGTHS = (*(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128), *(192, 256, 384, 512, 768, 1024))
"""Lengths of the runs of cells that are tested together. A column may spread its rows over many cells, and
none of them alone is above the noise: births of a century are in 1,200 months."""

# What is significant, in standard deviations of the noise.

SIGNIFICANT_RUN = 4.8
"""A run of cells. Of 20,000 grids of noise, 1 in 450 for real numbers, 1 in 1,100 for whole numbers and 1 in
100 for dates had such a run. Then the bounds are too wide, which costs only accuracy."""

SIGNIFICANT_FIRST_RUN = 4.2
"""The first run of numbers, without which bounds are invented. 1 in 27 grids of noise for real numbers, and
1 in 55 for whole numbers, had such a run."""

FAR_CELLS, SIGNIFICANT_FAR_RUN = 6, 6.0
"""A run that lies that many cells from all that was found; in a grid of numbers, by a factor of 64. Few
columns have one, and there are many such cells: with 4.8, 7 of 2,040 columns of five tables had bounds that
were wrong by factors of thousands. No run is far if only 0 was found, which has no scale: most rows of many
columns are 0."""

SIGNIFICANT_RARE_RUN = 7.0
"""A run of cells that few columns use: very large and very small numbers, and dates before 1900 or after
2109."""

SIGNIFICANT_MIRRORED_RUN = 3.5
"""A run of numbers of the same sizes as those found, with the other sign."""

SIGNIFICANT_NEXT_CELLS = 2.5
"""The next cell, the one after it, or both together. A false cell makes the bounds too wide by one cell; a
missed cell clips some rows."""

SIGNIFICANT_CELL, SIGNIFICANT_NEXT_CELL = 4.0, 1.5
"""A cell of the second grid, and one next to it."""

# The tail of a power law, in a grid of numbers.

TAIL_DISCOUNT = 1.0
"""Standard deviations that are taken off two cells beyond the last significant one."""

TAIL_ROWS = 10.0
"""Rows in two cells: a tail ends where fewer are expected. Wide bounds cost little, as tails are fitted."""

STEEPEST_TAIL, SLOWEST_TAIL = 0.1, 0.9
"""Shares of the rows of two cells that the next two hold. With a smaller share there is no tail."""

LONGEST_TAIL = 6
"""Most cells of a tail: a factor of 8. With 12, rare wild bounds cost more than tails gained."""

# Rows of dates that noise hides.

HIDING_DEVIATIONS = 3.0
"""Standard deviations of the noise of some cells of dates, which may hide as many rows. With it and
`LONGEST_HIDDEN`, bounds of 20,000 dates of birth or hire cut 0.1 % to 0.3 % of them (median of 60 runs, sigma
60), and at most 3.5 %. Before, they cut 14 % to 86 %."""

LONGEST_HIDDEN = 0.75
"""Most cells by which a run of dates is extended for what noise may hide, in parts of its length."""

# Numbers on one side of zero.

CELLS_TO_ZERO = 6
"""Bounds that span as many cells, a factor of 8, begin at zero: they are a seventh longer at most."""

CLEAR_FIRST_CELL = 8.0
"""Standard deviations of a first cell after which they do not: the next cell of a tail would be seen."""

# The second grid: what may lie outside the cells found.

OUTSIDE_DEVIATIONS = 1.5
"""Standard deviations of the noise of the cells outside. If more rows lie there, the bounds stay unchanged.
By noise alone they do in 1 of 15 columns. In the others, a tail of up to that number of rows may be
clipped."""

OUTSIDE_SHARE = 0.005
"""Share of the rows that may also lie outside bounds that a second grid of powers of two narrows."""

HIDDEN_SHARE = 0.5
"""Share of the rows found. If noise can hide more rows outside, the bounds stay unchanged. In eight tables of
numbers at epsilon 1, right clusters had 0.06 to 0.39, and wrong ones 0.88 to 2.6."""

NARROW_SHARE = 1 / 2
"""Share of the cells. Bounds are narrowed only if the rows lie in fewer cells. Otherwise there is little to
gain, and a thin tail may be lost."""

# Crowds.

CROWD_ROWS, CROWD_WIDTH, CROWD_DISTANCE = 0.2, 1 / 256, 8
"""A crowd has more than a fifth of the rows, in less than a 256th of the range. The next rows are more than
eight times as far from it as it is wide."""


@dataclass(frozen=True)
class RequiredBounds:
    """An interval that the bounds of a column must contain.

    Parameters
    ----------
    low, high : float
        Numbers or seconds. By default the interval is empty.
    strict : bool
        Whether the bounds must reach a step further.
    """

    low: float = inf
    high: float = -inf
    strict: bool = False

    def joined(self, low: float, high: float, *, strict: bool) -> RequiredBounds:
        """Return the smallest interval that contains this one and another."""
        return RequiredBounds(min(low, self.low), max(high, self.high), strict or self.strict)

    def within(self, column: Ordinal) -> Ordinal:
        """Return the column with bounds that contain the interval."""
        low, high = self.low / column.scale, self.high / column.scale
        if column.scale > 1:  # days
            low, high = np.floor(low), np.ceil(high)
        step, bounds = self.strict * column.resolution, column.bounds
        return column.covering(min(low - step, bounds[0]), max(high + step, bounds[1]))


@dataclass(frozen=True, eq=False)
class GridCells(RowCells):
    """The cell of a grid in which the number of a row lies."""

    column: str
    encoder: OrderedEncoder
    grid: BoundsGrid

    @property
    def encoders(self) -> dict[str, OrderedEncoder]:
        """The encoder of the column."""
        return {self.column: self.encoder}

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.grid.lows)

    def positions(self, numbers: Numbers) -> Floats:
        """Return the number of each row."""
        return numbers[self.column]

    def cell(self, positions: Floats) -> Ints:
        """Return the cell of each number."""
        return self.grid.find(positions)


@dataclass(frozen=True, eq=False)
class BoundsQuestion(Tally):
    """How many rows lie in each cell of the grid of each column: of the first grids, or of the second."""

    columns: Mapping[str, GridCells]

    @property
    def cells(self) -> Mapping[str, GridCells]:
        """The cells of each column."""
        return self.columns


def extent(noisy: Ints, sigma: float, *, zero: int | None = None) -> Extent:
    """Return the first and the last cell of the bounds.

    They contain the run of cells that exceeds its noise most, if it is significant. On both sides they extend
    to the next significant run, and over significant next cells. A few rows far from all others are clipped.
    Testing runs of many lengths is a scan statistic (Glaz, Naus and Wallenstein, 2001).

    Parameters
    ----------
    noisy : integer array of shape (cells,)
    sigma : float
        Standard deviation of the noise in each cell.
    zero : int, optional
        The cell of zero, of a grid whose cells grow by a constant factor on both sides. Then a tail that
        thins out is continued, and runs of the same distance on both sides of zero are tested together:
        zero may divide the numbers, and lies in the midst of many cells of tiny numbers.

    Examples
    --------
    >>> extent(np.array([9, 3, 80, 900, 70, 2, -8, 60]), 10.0)
    (2, 7)
    >>> extent(np.array([9, 3, 80, 900, 70, 2, -8, 30]), 10.0)
    (2, 4)
    >>> extent(np.array([-3, 7, 30, 31, 29, 30, 2, -8]), 10.0)
    (2, 5)
    >>> extent(np.array([900, 800, 500, 240, 120, 20, 25, -8, 3, 5, 1]), 10.0, zero=0)
    (0, 6)
    >>> extent(np.array([-2, 30, 40, 2, -3, 1, 4, -5, 35, 25, 3]), 10.0, zero=5)
    (1, 9)
    >>> [extent(np.array([900, few, 3, -8, 4, 5, -4, 7, 3, 52]), 10.0, zero=0) for few in (5, 300)]
    [(0, 9), (0, 1)]
    """
    height, first, end = _highest_run(noisy)
    one_side = True
    if zero is not None:
        below, above = noisy[:zero][::-1], noisy[zero + 1 :]
        cells = min(len(below), len(above))
        both, _, farthest = _highest_run(below[:cells] + above[:cells])  # at the same distance from zero
        if both > sqrt(2) * height:
            one_side = False
            height, first, end = both / sqrt(2), zero - farthest, zero + farthest + 1
    if height <= (SIGNIFICANT_RUN if zero is None else SIGNIFICANT_FIRST_RUN) * sigma:
        return None
    alone = first == zero and end == first + 1
    before = _further(noisy[:first][::-1], sigma, alone=alone)
    first, end = first - before, end + _further(noisy[end:], sigma, alone=alone)
    if zero is not None:
        if (
            one_side
            and first < zero < end
            and _highest_run(noisy[first:zero])[0] <= SIGNIFICANT_MIRRORED_RUN * sigma
        ):
            first = zero
        before, after = _thinned(noisy[::-1], len(noisy) - first, sigma), _thinned(noisy, end, sigma)
        before = min(before, first - zero) if first >= zero else before
        first, end = _with_zero(noisy, first - before, end + after, zero, sigma)
    return first, end - 1


def extent_of_dates(noisy: Ints, sigma: float) -> Extent:
    """Return the first and the last month, or year, of the bounds of dates.

    They contain the cells of `extent`, and those on both sides whose rows noise may hide: dates are often
    spread over many cells of equal width, none of which stands out.

    Next to the run, k cells hold k d rows if the density d of its outer part goes on. Noise of standard
    deviation sigma sqrt(k) hides them up to ``k = (h sigma / d)^2``, where h is `HIDING_DEVIATIONS`. Before
    that, the run is extended, at most by its own length, to where the sum of what lies outside is highest in
    standard deviations of its noise, if that is above `SIGNIFICANT_NEXT_CELLS`.

    >>> extent_of_dates(np.array([-2, 3, 80, 900, 70, 2, -8, 60]), 10.0)
    (2, 7)
    >>> noisy = np.array([3, -9, 4, 8, 20, 22, 19, 21, 20, 18, 22, 20, 9, 8, 10, 9, -8, 2, -3, 1, 9, -9])
    >>> extent(noisy, 9.0), extent_of_dates(noisy, 9.0)
    ((4, 11), (3, 12))
    """
    run = extent(noisy, sigma)
    if run is None:
        return None
    first, end = run[0], run[1] + 1
    length = end - first
    before, after = noisy[max(first - length, 0) : first][::-1], noisy[end : end + length]
    first, end = first - _sum_goes_on(before, sigma), end + _sum_goes_on(after, sigma)
    reach, inside = max(ceil(LONGEST_HIDDEN * (end - first)), 1), noisy[first:end]
    low, high = first - _hidden(inside, reach, sigma), end + _hidden(inside[::-1], reach, sigma)
    return max(low, 0), min(high, len(noisy)) - 1


def _sum_goes_on(noisy: Ints, sigma: float) -> int:
    """Return how many cells from the first on have the highest sum in standard deviations, if it is clear."""
    if not len(noisy):
        return 0
    heights = np.cumsum(noisy) / np.sqrt(np.arange(1, len(noisy) + 1))
    best = int(heights.argmax())
    return best + 1 if heights[best] > SIGNIFICANT_NEXT_CELLS * sigma else 0


def _hidden(noisy: Ints, reach: int, sigma: float) -> int:
    """Return how many cells before the first of a run may hold rows that noise hides, at most `reach`.

    Let d1 and d2 be the rows per cell in the first and the second quarter of the run. The density d before
    the run is taken to be d1 min(d1 / d2, 1): it falls on as it fell within the run.
    """
    quarter = (len(noisy) + 3) // 4
    outer, inner = (float(noisy[part : part + quarter].sum()) / quarter for part in (0, quarter))
    density = outer * min(outer / inner, 1.0) if min(outer, inner) > 0 else outer
    hiding = HIDING_DEVIATIONS * sigma
    return min(int((hiding / density) ** 2), reach) if density * reach > hiding else reach


def divided_extent(noisy: Ints, sigma: float, zero: int) -> Extent:
    """Return the `extent` in a second grid; None if rows that the first grid has found would lie outside."""
    cells = extent(noisy, sigma, zero=zero)
    if cells is None:
        return None
    first, last = cells
    inside = noisy[first : last + 1]
    by_chance = OUTSIDE_DEVIATIONS * sigma * sqrt(len(noisy) - len(inside))
    return cells if noisy.sum() - inside.sum() <= by_chance + OUTSIDE_SHARE * noisy.sum() else None


def _highest_run(noisy: Ints) -> tuple[float, int, int]:
    """Return the largest sum of a run over the root of its length, and the run's first cell and end."""
    sums = np.concatenate([[0], np.cumsum(noisy)])
    runs = []
    for length in RUN_LENGTHS:
        if length <= len(noisy):
            heights = (sums[length:] - sums[:-length]) / sqrt(length)
            first = int(heights.argmax())
            runs.append((float(heights[first]), first, first + length))
    return max(runs, default=(-inf, 0, 0))


def _with_zero(noisy: Ints, first: int, end: int, zero: int, sigma: float) -> tuple[int, int]:
    """Return cells on one side of zero, extended to zero if they span a large factor, and beyond if need be.

    The many cells of small numbers hold few rows each, and hide the other side.
    """
    if first <= zero < end:
        return first, end
    if zero >= end:
        size = len(noisy)
        low, high = _with_zero(noisy[::-1], size - end, size - first, size - 1 - zero, sigma)
        return size - high, size - low
    height, _, last = _highest_run(noisy[max(2 * zero + 1 - end, 0) : max(2 * zero + 1 - first, 0)][::-1])
    if height > SIGNIFICANT_MIRRORED_RUN * sigma:
        return max(2 * zero + 1 - first - last, 0), end
    hidden = end - first >= CELLS_TO_ZERO and noisy[first] < CLEAR_FIRST_CELL * sigma
    return (zero if hidden else first), end


def _thinned(noisy: Ints, end: int, sigma: float) -> int:
    """Return how many cells after `end` a tail takes whose cells hold fewer and fewer rows.

    Two cells and the next two say by how much they thin out. Each cell is twice as wide as the one before
    the last, so this is the tail of a power law. A standard deviation is taken off, so that bounds after
    which nothing is seen mostly stay.
    """
    inner, outer = float(noisy[max(end - 2, 0) : end].sum()), float(noisy[end : end + 2].sum())
    fall = (outer - TAIL_DISCOUNT * sqrt(2) * sigma) / inner if inner > TAIL_ROWS else 0.0
    if fall <= STEEPEST_TAIL:
        return 0
    cells = 2 * log(inner / TAIL_ROWS) / -log(min(fall, SLOWEST_TAIL))
    return min(ceil(cells), LONGEST_TAIL, len(noisy) - end)


def _further(noisy: Ints, sigma: float, *, alone: bool, far: bool = True) -> int:
    """Return how many of the cells next to significant ones, from the inside outwards, are included too.

    With `alone` only the cell of 0 was significant. Without `far`, runs that lie far from all that was found
    are left out.
    """
    end = 0
    while end < len(noisy):
        height, first, last = _highest_run(noisy[end:] if far else noisy[end : end + FAR_CELLS])
        if far and first >= FAR_CELLS and height <= SIGNIFICANT_FAR_RUN * sigma and (end or not alone):
            height, _, last = _highest_run(noisy[end : end + FAR_CELLS])
        near, _, nearest = _highest_run(noisy[end : end + 2])
        if height > SIGNIFICANT_RUN * sigma:
            end += last
        elif near > SIGNIFICANT_NEXT_CELLS * sigma:
            end += nearest
        else:
            break
    return end


def usual(noisy: Ints, sigma: float, is_rare: Mask) -> Ints:
    """Return counts without the noise in cells that few columns use: 0, unless rows stand out there.

    Otherwise bounds of ordinary columns would more often reach to where noise looks like rows.

    >>> usual(np.array([40, -8, 900, 30, -20]), 10.0, np.array([True, True, False, True, True])).tolist()
    [0, 0, 900, 0, 0]
    >>> usual(np.array([400, -8, 900, 30, -20]), 10.0, np.array([True, True, False, True, True])).tolist()
    [400, -8, 900, 0, 0]
    """
    counts = noisy.copy()
    ends = np.flatnonzero(np.diff(is_rare, prepend=False, append=False))
    for first, end in ends.reshape(-1, 2).tolist():
        if _highest_run(noisy[first:end])[0] <= SIGNIFICANT_RARE_RUN * sigma:
            counts[first:end] = 0
    return counts


def crowd(noisy: Ints, sigma: float, lows: Floats, highs: Floats) -> Extent:
    """Return the cells of a crowd: many rows in a tiny part of the range, with nothing near them.

    An open end such as 9999-12-31, or a code such as 1e9, makes the range so wide that nearly all other rows
    would fall into a few cells.

    Parameters
    ----------
    noisy : integer array of shape (cells,)
        Counts of the cells within the bounds.
    sigma : float
        Standard deviation of the noise in each cell.
    lows, highs : arrays of shape (cells,)

    Returns
    -------
    first, last : int
        None if there is no crowd.

    Examples
    --------
    >>> lows = np.array([*2.0 ** np.arange(40), 2.0**40])
    >>> noisy = np.where((lows > 30) & (lows < 200), 900, 0) + np.where(lows == 2.0**38, 90, 0)
    >>> crowd(noisy[:-1], 5.0, lows[:-1], lows[1:])
    (5, 7)
    """
    total, range_ = float(noisy.sum()), float(highs[-1] - lows[0])
    runs = _clusters(noisy, sigma)
    ends_before = [-inf, *(float(highs[end - 1]) for _, end in runs[:-1])]
    starts_after = [*(float(lows[first]) for first, _ in runs[1:]), inf]
    largest, most_rows = None, CROWD_ROWS * total
    for (first, end), before, after in zip(runs, ends_before, starts_after, strict=False):
        low, high, rows = float(lows[first]), float(highs[end - 1]), float(noisy[first:end].sum())
        is_alone = min(low - before, after - high) > CROWD_DISTANCE * (high - low)
        if low < high and high - low < range_ * CROWD_WIDTH and is_alone and rows > most_rows:
            largest, most_rows = (first, end - 1), rows
    return largest


def _clusters(noisy: Ints, sigma: float, start: int = 0) -> list[tuple[int, int]]:
    """Return the first cell and the end of each cluster of rows, from left to right."""
    height, first, end = _highest_run(noisy)
    if height <= SIGNIFICANT_RUN * sigma:
        return []
    first -= _further(noisy[:first][::-1], sigma, alone=False, far=False)
    end += _further(noisy[end:], sigma, alone=False, far=False)
    before, after = _clusters(noisy[:first], sigma, start), _clusters(noisy[end:], sigma, start + end)
    return [*before, (start + first, start + end), *after]


def cluster(noisy: Ints, sigma: float) -> Extent:
    """Return the first and the last of a few cells that hold all rows, with one more cell on either side.

    Return None if no cell is significant, or if narrowing gains little (`NARROW_SHARE`), loses rows
    (`OUTSIDE_DEVIATIONS`) or may lose many (`HIDDEN_SHARE`).

    Examples
    --------
    >>> noisy = np.array([5, -9, 8, 3, -4, 14, 900, 600, 2, 11, -3, 1, 4, 0, -6, 7] + 16 * [0, -1])
    >>> cluster(noisy, 10.0)
    (5, 8)
    >>> cluster(np.array([90, 60, 2, 14, 30, 60]), 10.0) is None, cluster(noisy, 100.0) is None
    (True, True)
    """
    clear = np.flatnonzero(noisy > SIGNIFICANT_CELL * sigma)
    if not clear.size:
        return None
    low, high, last = int(clear[0]), int(clear[-1]), len(noisy) - 1
    while low > 0 and noisy[low - 1] > SIGNIFICANT_NEXT_CELL * sigma:
        low -= 1
    while high < last and noisy[high + 1] > SIGNIFICANT_NEXT_CELL * sigma:
        high += 1
    low, high = max(low - 1, 0), min(high + 1, last)
    outside = len(noisy) - (high - low + 1)
    inside = noisy[low : high + 1].sum()
    by_chance = OUTSIDE_DEVIATIONS * sigma * np.sqrt(outside)
    if (
        high - low >= NARROW_SHARE * len(noisy)
        or noisy.sum() - inside > by_chance
        or by_chance > HIDDEN_SHARE * inside
    ):
        return None
    return low, high
