"""Rulers: fixed public cells over all numbers, or all dates, to find bounds that a schema does not give."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf, log2, log10

import numpy as np
import numpy.typing as npt

from privsyn.marginals.types import Floats, Ints
from privsyn.table.schema.time_columns import FIRST_YEAR, LAST_YEAR
from privsyn.table.schema.validation import GUARD

PARTS = 2
"""Cells between a power of two and the next: more make tighter bounds, but noisier octaves. Of 1, 2, 4 and 8
parts, 2 did well on tables of 6,000 to 50,000 rows; 8 lost the bounds of the small one."""

LEAST, MOST = -30, 62
"""Powers of two where a ruler of real numbers begins and ends."""

CLOSER = 64
"""Cells of a ruler for a second look, between bounds that a first one found."""

Extent = tuple[int, int] | None
"""First and last cell, both included; None where nothing stands out."""

STANDS_OUT = 4.5
"""Standard deviations. By noise alone some cell or block exceeds it in one ruler of dates in 110, in one of
numbers in 500; then the bounds are too wide, which costs accuracy and no more."""

CONTINUES = 2.5
"""Standard deviations by which a block goes on from its neighbour. To be wrong here makes the bounds too wide
by a block; to miss one clips some rows."""

CLEAR = 4.0
"""Standard deviations by which a cell shows that rows lie in it."""

GOES_ON = 1.5
"""Standard deviations of a cell next to those: it is taken for one of them."""

LEFT_OUT = 1.5
"""Standard deviations: with more rows outside these cells the bounds stay as they are. So they do by noise
alone in one column of 15, and in the others a tail of so many rows may be clipped."""

NARROW = 1 / 2
"""Of the cells: bounds are drawn closer where the rows lie in fewer. Else little is to be gained, and a thin
tail to be lost."""


@dataclass(frozen=True, eq=False)
class BoundsGrid:
    """Cells that cover all numbers, each number in one of them.

    Parameters
    ----------
    lows, highs : float arrays of shape (cells,)
        The least and the greatest number of each cell; a real cell's greatest is the next one's least.
    blocks : integer array of shape (cells,)
        Neighbouring cells that are looked at together: an octave, a year.
    """

    lows: Floats
    highs: Floats
    blocks: Ints

    @classmethod
    def numbers(
        cls, *, decimals: int | None, dtype: np.dtype, limits: tuple[float, float] = (-inf, inf)
    ) -> BoundsGrid:
        """Zero, and cells that double in width with every power of two, of either sign.

        Parameters
        ----------
        decimals : int or None
            Of every number, 0 for whole ones; None for reals.
        dtype : numpy floating-point type
            In which the numbers are coded: the ruler ends where it could not tell them apart.
        limits : pair of float
            The least and the greatest that there can be.

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
        octaves = np.floor(np.log2(starts)).astype(np.int64) - first + 1
        lows = _tidy(np.concatenate([-ends[::-1], [0.0], starts]) * step, decimals)
        highs = _tidy(np.concatenate([-starts[::-1], [0.0], ends]) * step, decimals)
        blocks = np.concatenate([-octaves[::-1], [0], octaves])
        kept = (highs >= limits[0]) & (lows <= limits[1])
        return cls(np.maximum(lows[kept], limits[0]), np.minimum(highs[kept], limits[1]), blocks[kept])

    @classmethod
    def dates(cls, unit: str) -> BoundsGrid:
        """The months of two centuries, in days or seconds since 1970.

        >>> days = BoundsGrid.dates("D")
        >>> len(days.lows), days.lows[[840, 841]].tolist()  # from January 1970
        (2412, [0.0, 31.0])
        """
        months = np.arange(f"{FIRST_YEAR}-01", f"{LAST_YEAR + 1}-02", dtype="datetime64[M]")
        starts = months.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(np.int64)
        years = months.astype("datetime64[Y]").astype(np.int64)
        return cls(starts[:-1].astype(np.float64), starts[1:].astype(np.float64) - 1, years[:-1])

    def between(self, first: int, last: int, *, step: float | None) -> BoundsGrid:
        """Up to `CLOSER` cells of equal width from a cell to another.

        Parameters
        ----------
        first, last : int
        step : float or None
            The cells begin at multiples of it; None for real numbers.

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
            return BoundsGrid(edges[:-1], edges[1:], np.arange(CLOSER))
        points = round((high - low) / step) + 1
        edges = np.unique(np.linspace(0, points, CLOSER + 1).astype(np.int64))
        decimals = max(0, -floor(log10(step)))
        lows, highs = low + edges[:-1] * step, low + (edges[1:] - 1) * step
        return BoundsGrid(np.round(lows, decimals), np.round(highs, decimals), np.arange(len(lows)))

    def span(self, first: int, last: int) -> tuple[float, float]:
        """The least number of one cell and the greatest of another."""
        return float(self.lows[first]), float(self.highs[last])

    def find(self, numbers: Floats) -> Ints:
        """The cell of each number; what lies beyond all cells belongs to the last one."""
        cells = np.searchsorted(self.lows, numbers, side="right") - 1
        return np.clip(cells, 0, len(self.lows) - 1)

    def count(self, numbers: Floats) -> Ints:
        """How many numbers lie in each cell; NaN in none. Private."""
        return np.bincount(self.find(numbers[~np.isnan(numbers)]), minlength=len(self.lows)).astype(np.int64)


def _tidy(numbers: Floats, decimals: int | None) -> Floats:
    return numbers if decimals is None else np.round(numbers, decimals)


def extent(noisy: Ints, blocks: Ints, sigma: float) -> Extent:
    """First and last cell that matter.

    The rows end with the outermost block that stands out, by all its cells together or by one of them, or
    with those that continue it; within the last the outermost cells are left out as long as they do not
    amount to anything together. So a few rows far from all others do not count: what is beyond is clipped.

    Parameters
    ----------
    noisy : integer array of shape (cells,)
    blocks : integer array of shape (cells,)
        The block of each cell, rising.
    sigma : float
        Standard deviation of the noise in each cell.

    Examples
    --------
    >>> extent(np.array([9, 3, 80, 900, 70, 2, -8, 60]), np.array([0, 0, 1, 1, 1, 1, 2, 2]), 10.0)
    (2, 7)
    >>> extent(np.array([9, 3, 80, 900, 70, 2, -8, 30]), np.array([0, 0, 1, 1, 1, 1, 2, 2]), 10.0)
    (2, 4)
    """
    _, block, sizes = np.unique(blocks, return_inverse=True, return_counts=True)
    height = np.bincount(block, noisy) / (sigma * np.sqrt(sizes))
    stands_out = height > STANDS_OUT
    stands_out[block[noisy > STANDS_OUT * sigma]] = True
    found = np.flatnonzero(stands_out)
    if not found.size:
        return None
    low, high = int(found[0]), int(found[-1])
    while low > 0 and height[low - 1] > CONTINUES:
        low -= 1
    while high < len(height) - 1 and height[high + 1] > CONTINUES:
        high += 1
    first, last = np.flatnonzero(block == low), np.flatnonzero(block == high)[::-1]
    return _edge(noisy, first, sigma), _edge(noisy, last, sigma)


def _edge(noisy: Ints, cells: npt.NDArray[np.intp], sigma: float) -> int:
    """The first of these cells with which those passed amount to something, or that does so alone."""
    sums = np.cumsum(noisy[cells]) > CONTINUES * sigma * np.sqrt(np.arange(1, len(cells) + 1))
    return int(cells[np.argmax(sums | (noisy[cells] > CONTINUES * sigma))])


def cluster(noisy: Ints, sigma: float) -> Extent:
    """First and last cell of a few that hold all rows, and one more on either side; None if they are many.

    Examples
    --------
    >>> noisy = np.array([5, -9, 8, 3, -4, 14, 90, 60, 2, 11, -3, 1, 4, 0, -6, 7] + 16 * [0, -1])
    >>> cluster(noisy, 10.0)
    (5, 8)
    >>> cluster(np.array([90, 60, 2, 14, 30, 60]), 10.0) is None
    True
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
    left_out = noisy.sum() - noisy[low : high + 1].sum()
    if high - low >= NARROW * len(noisy) or left_out > LEFT_OUT * sigma * np.sqrt(outside):
        return None
    return low, high
