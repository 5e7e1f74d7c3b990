"""Find bounds that a schema leaves out, from noisy counts in fixed public cells over all numbers or dates."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, inf, log, log2, log10, sqrt

import numpy as np

from privsyn.marginals.types import Floats, Ints
from privsyn.table.schema.time_columns import FIRST_YEAR, LAST_YEAR
from privsyn.table.schema.validation import GUARD

PARTS = 2
"""Cells between a power of two and the next. More cells make tighter bounds, but noisier counts. Of 1, 2, 4
and 8, 2 did well on tables of 6,000 to 50,000 rows; 8 lost the bounds of the smallest table."""

LEAST, MOST = -30, 62
"""Powers of two where a grid of real numbers begins and ends."""

CLOSER = 64
"""Cells of the second grid, between the bounds that the first grid found."""

Extent = tuple[int, int] | None
"""First and last cell, both included; None if no cell is significant."""

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Lengths of the runs of cells that are tested together. A column may spread its rows over many cells, and
none of them alone is above the noise."""

STANDS_OUT = 4.8
"""Standard deviations at which a run of cells is significant. Of 20,000 grids of noise, 1 in 450 for real
numbers, 1 in 1,100 for whole numbers and 1 in 100 for dates had such a run. Then the bounds are too wide,
which costs only accuracy."""

FOUND = 4.2
"""The same for the first run of numbers, without which bounds are invented. 1 in 36 grids of noise for real
numbers, and 1 in 80 for whole numbers, had such a run."""

CONTINUES = 2.5
"""Standard deviations at which the next cell, the one after it, or both together extend the bounds. A false
cell makes them too wide by one cell; a missed cell clips some rows."""

CLEAR = 4.0
"""Standard deviations at which a cell of the second grid is significant."""

GOES_ON = 1.5
"""Standard deviations at which a cell next to a significant one is included."""

DOUBTED = 1.0
"""Standard deviations that are taken off two cells beyond the last significant one."""

FEW = 10.0
"""Rows in two cells: a tail ends where fewer are expected. Wide bounds cost little, as tails are fitted."""

STEEPEST, SLOWEST = 0.1, 0.9
"""Shares of the rows of two cells that the next two hold. With a smaller share there is no tail."""

FARTHEST = 6
"""Most cells of a tail: a factor of 8. With 12, rare wild bounds cost more than tails gained."""

LEFT_OUT = 1.5
"""Standard deviations. If more rows lie outside the cells found, the bounds stay unchanged. By noise alone
they do in 1 of 15 columns. In the others, a tail of up to that number of rows may be clipped."""

HIDDEN = 0.5
"""Share of the rows found. If noise can hide more rows outside, the bounds stay unchanged. In eight tables of
numbers at epsilon 1, right clusters had 0.06 to 0.39, and wrong ones 0.88 to 2.6."""

NARROW = 1 / 2
"""Share of the cells. Bounds are narrowed only if the rows lie in fewer cells. Otherwise there is little to
gain, and a thin tail may be lost."""


@dataclass(frozen=True, eq=False)
class BoundsGrid:
    """Cells that cover all numbers; each number is in one cell.

    Parameters
    ----------
    lows, highs : float arrays of shape (cells,)
        The smallest and the largest number of each cell. Cells of reals share their ends.
    """

    lows: Floats
    highs: Floats

    @classmethod
    def numbers(
        cls, *, decimals: int | None, dtype: np.dtype, limits: tuple[float, float] = (-inf, inf)
    ) -> BoundsGrid:
        """Return zero, and cells on both sides that double in width with every power of two.

        Parameters
        ----------
        decimals : int or None
            Number of decimals, 0 for whole numbers; None for reals.
        dtype : numpy floating-point type
            Type of the encoded numbers. The grid ends where the type cannot resolve them.
        limits : pair of float
            The smallest and the largest possible number.

        Examples
        --------
        >>> whole = BoundsGrid.numbers(decimals=0, dtype=np.dtype("float64"))
        >>> cells = whole.find(np.array([-17, 0, 1, 2, 24]))
        >>> (cells - cells[1]).tolist(), whole.lows[cells].tolist(), whole.highs[cells].tolist()
        ([-8, 0, 1, 2, 9], [-23.0, 0.0, 1.0, 2.0, 24.0], [-16.0, 0.0, 1.0, 2.0, 31.0])
        """
        first, last = LEAST, min(MOST, floor(log2(float(np.finfo(dtype).max))))
        step = 1.0
        if decimals is not None:  # so that every bound passes `check_decimals`
            first, last = 0, np.finfo(dtype).nmant - (0 if decimals == 0 else 2 + floor(log2(GUARD)))
            step = 10.0**-decimals
        starts = np.array([2.0**e * (1 + part / PARTS) for e in range(first, last) for part in range(PARTS)])
        starts = starts if decimals is None else np.unique(np.ceil(starts))
        ends = np.append(starts[1:], 2.0**last) - (0 if decimals is None else 1)
        lows = _tidy(np.concatenate([-ends[::-1], [0.0], starts]) * step, decimals)
        highs = _tidy(np.concatenate([-starts[::-1], [0.0], ends]) * step, decimals)
        kept = (highs >= limits[0]) & (lows <= limits[1])
        return cls(np.maximum(lows[kept], limits[0]), np.minimum(highs[kept], limits[1]))

    @classmethod
    def dates(cls, unit: str) -> BoundsGrid:
        """Return the months of two centuries, in days or seconds since 1970.

        >>> days = BoundsGrid.dates("D")
        >>> len(days.lows), days.lows[[840, 841]].tolist()  # from January 1970
        (2412, [0.0, 31.0])
        """
        months = np.arange(f"{FIRST_YEAR}-01", f"{LAST_YEAR + 1}-02", dtype="datetime64[M]")
        starts = months.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(np.int64)
        return cls(starts[:-1].astype(np.float64), starts[1:].astype(np.float64) - 1)

    def between(self, first: int, last: int, *, step: float | None) -> BoundsGrid:
        """Return up to `CLOSER` cells of equal width, from the first cell to the last.

        Parameters
        ----------
        first, last : int
        step : float or None
            Each cell begins at a multiple of the step; None for reals.

        Examples
        --------
        >>> whole = BoundsGrid.numbers(decimals=0, dtype=np.dtype("float64"))
        >>> years = whole.between(*whole.find(np.array([1900, 2015])).tolist(), step=1.0)
        >>> years.lows[:3].tolist(), float(years.highs[-1])
        ([1536.0, 1544.0, 1552.0], 2047.0)
        """
        low, high = float(self.lows[first]), float(self.highs[last])
        if step is None:
            edges = np.linspace(low, high, CLOSER + 1)
            return BoundsGrid(edges[:-1], edges[1:])
        points = round((high - low) / step) + 1
        edges = np.unique(np.linspace(0, points, CLOSER + 1).astype(np.int64))
        decimals = max(0, -floor(log10(step)))
        lows, highs = low + edges[:-1] * step, low + (edges[1:] - 1) * step
        return BoundsGrid(np.round(lows, decimals), np.round(highs, decimals))

    def span(self, first: int, last: int) -> tuple[float, float]:
        """Return the smallest number of one cell and the largest of another."""
        return float(self.lows[first]), float(self.highs[last])

    def find(self, numbers: Floats) -> Ints:
        """Return the cell of each number; the outermost cell for numbers beyond all cells."""
        cells = np.searchsorted(self.lows, numbers, side="right") - 1
        return np.clip(cells, 0, len(self.lows) - 1)

    def count(self, numbers: Floats) -> Ints:
        """Return the count of numbers in each cell; NaN is in none. Private."""
        return np.bincount(self.find(numbers[~np.isnan(numbers)]), minlength=len(self.lows)).astype(np.int64)


def _tidy(numbers: Floats, decimals: int | None) -> Floats:
    return numbers if decimals is None else np.round(numbers, decimals)


def extent(noisy: Ints, sigma: float, *, growing: bool = False) -> Extent:
    """Return the first and the last cell of the bounds.

    They contain the run of cells that exceeds its noise most, if it is significant. On both sides they extend
    to the next significant run, and over next cells that exceed `CONTINUES`. A few rows far from all others
    are clipped. Testing runs of many lengths is a scan statistic (Glaz, Naus and Wallenstein, 2001).

    Parameters
    ----------
    noisy : integer array of shape (cells,)
    sigma : float
        Standard deviation of the noise in each cell.
    growing : bool
        Whether cells grow by a constant factor, so that a tail that thins out can be continued.

    Examples
    --------
    >>> extent(np.array([9, 3, 80, 900, 70, 2, -8, 60]), 10.0)
    (2, 7)
    >>> extent(np.array([9, 3, 80, 900, 70, 2, -8, 30]), 10.0)
    (2, 4)
    >>> extent(np.array([-3, 7, 30, 31, 29, 30, 2, -8]), 10.0)
    (2, 5)
    >>> extent(np.array([900, 800, 500, 240, 120, 20, 25, -8, 3, 5, 1]), 10.0, growing=True)
    (0, 6)
    """
    height, first, end = _highest_run(noisy)
    if height <= (FOUND if growing else STANDS_OUT) * sigma:
        return None
    first, end = first - _further(noisy[:first][::-1], sigma), end + _further(noisy[end:], sigma)
    if growing:
        before, after = _thinned(noisy[::-1], len(noisy) - first, sigma), _thinned(noisy, end, sigma)
        first, end = first - before, end + after
    return first, end - 1


def _highest_run(noisy: Ints) -> tuple[float, int, int]:
    """Return the largest sum of a run over the root of its length, and the run's first cell and end."""
    sums = np.concatenate([[0], np.cumsum(noisy)])
    runs = []
    for length in LENGTHS:
        if length <= len(noisy):
            heights = (sums[length:] - sums[:-length]) / sqrt(length)
            first = int(heights.argmax())
            runs.append((float(heights[first]), first, first + length))
    return max(runs, default=(-inf, 0, 0))


def _thinned(noisy: Ints, end: int, sigma: float) -> int:
    """Return how many cells after `end` a tail takes whose cells hold fewer and fewer rows.

    Two cells and the next two say by how much they thin out. Each cell is twice as wide as the one before
    the last, so this is the tail of a power law. A standard deviation is taken off, so that bounds after
    which nothing is seen mostly stay.
    """
    inner, outer = float(noisy[max(end - 2, 0) : end].sum()), float(noisy[end : end + 2].sum())
    fall = (outer - DOUBTED * sqrt(2) * sigma) / inner if inner > FEW else 0.0
    if fall <= STEEPEST:
        return 0
    cells = 2 * log(inner / FEW) / -log(min(fall, SLOWEST))
    return min(ceil(cells), FARTHEST, len(noisy) - end)


def _further(noisy: Ints, sigma: float) -> int:
    """Return how many of the cells next to significant ones, from the inside outwards, are included too."""
    end = 0
    while end < len(noisy):
        height, _, last = _highest_run(noisy[end:])
        near, _, nearest = _highest_run(noisy[end : end + 2])
        if height > STANDS_OUT * sigma:
            end += last
        elif near > CONTINUES * sigma:
            end += nearest
        else:
            break
    return end


def cluster(noisy: Ints, sigma: float) -> Extent:
    """Return the first and the last of a few cells that hold all rows, with one more cell on either side.

    Return None if no cell is significant, or if narrowing gains little (`NARROW`), loses rows (`LEFT_OUT`) or
    may lose many (`HIDDEN`).

    Examples
    --------
    >>> noisy = np.array([5, -9, 8, 3, -4, 14, 900, 600, 2, 11, -3, 1, 4, 0, -6, 7] + 16 * [0, -1])
    >>> cluster(noisy, 10.0)
    (5, 8)
    >>> cluster(np.array([90, 60, 2, 14, 30, 60]), 10.0) is None, cluster(noisy, 100.0) is None
    (True, True)
    """
    clear = np.flatnonzero(noisy > CLEAR * sigma)
    if not clear.size:
        return None
    low, high, last = int(clear[0]), int(clear[-1]), len(noisy) - 1
    while low > 0 and noisy[low - 1] > GOES_ON * sigma:
        low -= 1
    while high < last and noisy[high + 1] > GOES_ON * sigma:
        high += 1
    low, high = max(low - 1, 0), min(high + 1, last)
    outside = len(noisy) - (high - low + 1)
    inside = noisy[low : high + 1].sum()
    by_chance = LEFT_OUT * sigma * np.sqrt(outside)
    if high - low >= NARROW * len(noisy) or noisy.sum() - inside > by_chance or by_chance > HIDDEN * inside:
        return None
    return low, high
