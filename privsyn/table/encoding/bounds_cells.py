"""BoundsGrid: fixed public cells over all numbers or dates, in which they are counted to find bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor, inf, log2, log10, sqrt

import numpy as np

from privsyn.marginals.domain import Floats, Ints
from privsyn.table.encoding.grid import GUARD

FIRST_YEAR, LAST_YEAR = 1900, 2100
"""Between these years the bounds of dates are found; dates outside belong to the first and last month."""

MONTHS = 12
"""Months of a year."""

PARTS = 2
"""Cells between a power of two and the next. More cells make tighter bounds, but noisier counts. Of 1, 2, 4
and 8, 2 did well on tables of 6,000 to 50,000 rows; 8 lost the bounds of the smallest table."""

LEAST, MOST = -30, 62
"""Powers of two where a grid of real numbers begins and ends."""

MARGIN, HIDDEN = 2.0, 0.01
"""Standard deviations of the noise in a cell, and the share of the numbers. If that much noise may hide more
numbers, bounds of whole numbers are widened: the counts of the column decide later."""

HINT = 1.0
"""Standard deviations of the noise that two cells after 0 and 1 exceed if the column may be no flag. Of flags
16 in 100 are then counted up to 3, and the counts of the column decide."""

SMALL = 64.0
"""Widened bounds of whole numbers above zero begin at zero if they end before this number."""

CLOSER = 64
"""Cells of the second grid, between the bounds that the first grid found."""


@dataclass(frozen=True, eq=False)
class BoundsGrid:
    """Cells that cover all numbers; each number is in one cell.

    Parameters
    ----------
    lows, highs : float arrays of shape (cells,)
        The smallest and the largest number of each cell. Cells of reals share their ends.
    in_a_year : int
        Number of cells in a year, which may be counted as one cell; 1 if the cells are not of dates.
    around_zero : bool
        Whether the cells grow on both sides of zero.
    """

    lows: Floats
    highs: Floats
    in_a_year: int = 1
    around_zero: bool = True

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
        lows, highs = starts[:-1].astype(np.float64), starts[1:].astype(np.float64) - 1
        return cls(lows, highs, in_a_year=MONTHS, around_zero=False)

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

    def joined(self, cells: int) -> BoundsGrid:
        """Return the grid of which each cell is that many neighbouring cells."""
        return replace(self, lows=self.lows[::cells], highs=self.highs[cells - 1 :: cells])

    def span(self, first: int, last: int) -> tuple[float, float]:
        """Return the smallest number of one cell and the largest of another."""
        return float(self.lows[first]), float(self.highs[last])

    def widened(self, first: int, last: int, noisy: Ints, sigma: float) -> tuple[int, int]:
        """Return the cells with one more on both sides, for whole numbers, where noise can hide some.

        Numbers on one side of zero stay there. Small ones begin at zero. To 1, or to 0 and 1, only 0 is
        added: most such columns are flags. If there is a `HINT` of 2 or 3, these are added too.

        >>> whole = BoundsGrid.numbers(decimals=0, dtype=np.dtype("float64"))
        >>> noisy = np.zeros(len(whole.lows), np.int64)
        >>> noisy[whole.zero + 2 : whole.zero + 4] = 900
        >>> first, last = whole.zero + 2, whole.zero + 3
        >>> [whole.span(*whole.widened(first, last, noisy, sigma)) for sigma in (5.0, 90.0)]
        [(2.0, 3.0), (0.0, 5.0)]
        """
        hides = MARGIN * sigma > HIDDEN * float(noisy[first : last + 1].sum())
        if self.zero <= first and self.lows[last] <= 1:
            three = self.zero + 3
            hint = float(noisy[three - 1 : three + 1].sum()) > HINT * sqrt(2) * sigma
            return self.zero, three if hides and hint else last
        if not hides:
            return first, last
        low = max(first - 1, self.zero if first >= self.zero else 0)
        high = min(last + 1, self.zero if last <= self.zero and first < self.zero else len(self.lows) - 1)
        return (self.zero if low > self.zero and self.highs[high] < SMALL else low), high

    def bounds_of(self, first: int, last: int) -> tuple[float, float]:
        """Return the `span` of cells; of a single whole number, from it to the next one towards 0.

        The other number of a flag may be too rare to be seen. Of 0, the next number is 1.

        >>> whole = BoundsGrid.numbers(decimals=0, dtype=np.dtype("float64"))
        >>> [whole.bounds_of(cell, cell) for cell in (whole.zero, whole.zero + 1)]
        [(0.0, 1.0), (0.0, 1.0)]
        """
        if first == last and self.lows[first] == self.highs[first]:
            further = first + (1 if self.lows[first] <= 0 else -1)
            if 0 <= further < len(self.lows) and self.lows[further] == self.highs[further]:
                first, last = min(first, further), max(last, further)
        return self.span(first, last)

    @property
    def zero(self) -> int:
        """The cell of zero, or the first cell of a grid of larger numbers."""
        return int(self.find(np.zeros(1))[0])

    def find(self, numbers: Floats) -> Ints:
        """Return the cell of each number; the outermost cell for numbers beyond all cells."""
        cells = np.searchsorted(self.lows, numbers, side="right") - 1
        return np.clip(cells, 0, len(self.lows) - 1)

    def count(self, numbers: Floats) -> Ints:
        """Return the count of numbers in each cell; NaN is in none. Private."""
        return np.bincount(self.find(numbers[~np.isnan(numbers)]), minlength=len(self.lows)).astype(np.int64)


def _tidy(numbers: Floats, decimals: int | None) -> Floats:
    return numbers if decimals is None else np.round(numbers, decimals)
