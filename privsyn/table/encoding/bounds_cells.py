"""BoundsGrid: fixed public cells over all numbers or dates, in which they are counted to find bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor, inf, log2, log10, sqrt

import numpy as np

from privsyn.marginals.domain import Floats, Ints, Mask
from privsyn.table.encoding.dtypes import CALENDAR
from privsyn.table.encoding.grid import GUARD

YEARS = (*range(100, 1500, 100), *range(1500, 1900, 10), *range(2110, 2300, 10), *range(2300, 10_000, 100))
"""Where cells of dates begin besides the first day: centuries, and decades nearer to the present. In between
are months: few tables have other dates, and each cell more is one more in which noise may look like dates."""

FIRST_MONTH, AFTER_MONTHS = np.datetime64("1900-01"), np.datetime64("2110-01")
"""The first month that is a cell, and the first after them that is not."""

MONTHS = 12
"""Months of a year."""

PARTS = 2
"""Cells between a power of two and the next. More cells make tighter bounds, but noisier counts. Of 1, 2, 4
and 8, 2 did well on tables of 6,000 to 50,000 rows; 8 lost the bounds of the smallest table."""

LOWEST_POWER, HIGHEST_POWER = -30, 64
"""Powers of two between which a grid of real numbers has `PARTS` cells each. Few columns have others."""

BLOCK = 32
"""Powers of two in a cell beyond: only a column with such numbers pays for a second grid that divides it."""

LARGEST = float(np.nextafter(2.0**1023, 0))
"""The largest bound: the distance of two such bounds is finite."""

MARGIN, HIDDEN = 2.0, 0.01
"""Standard deviations of the noise in a cell, and the share of the numbers. If that much noise may hide more
numbers, bounds of whole numbers are widened: the counts of the column decide later."""

HINT = 1.0
"""Standard deviations of the noise that two cells after 0 and 1 exceed if the column may be no flag. Of flags
16 in 100 are then counted up to 3, and the counts of the column decide."""

CLEAR, FEW_BESIDE = 4.0, 0.5
"""Standard deviations of the noise that a cell exceeds whose numbers are clear; and the share of the rows in
the cell of 1 that may lie beside it if numbers are whole. By noise, 1 in 8 columns of flags has more there
if 1 is just clear, and 1 in 3,000 columns of reals around 1 has fewer."""

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
    coarser : integer array
        The first cell of each cell of the coarser grid in which years are cells; empty if there is none.
    is_wide : boolean array
        Which cells are so wide that a second grid divides them; empty if none is.
    is_rare : boolean array
        Which cells are of numbers or dates that few columns have; empty if none is.
    around_zero : bool
        Whether the cells grow on both sides of zero.
    """

    lows: Floats
    highs: Floats
    coarser: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    is_wide: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    is_rare: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    around_zero: bool = True

    @classmethod
    def numbers(
        cls, *, decimals: int | None, dtype: np.dtype, limits: tuple[float, float] = (-inf, inf)
    ) -> BoundsGrid:
        """Return zero, and cells on both sides that double in width with every power of two.

        Very small and very large numbers have wider cells (`BLOCK`), up to the ends of the type.

        Parameters
        ----------
        decimals : int or None
            Number of decimals, 0 for whole numbers; None for reals.
        dtype : numpy floating-point type
            Type of the encoded numbers. Whole numbers that it cannot resolve have cells like those of reals.
        limits : pair of float
            The smallest and the largest possible number.

        Examples
        --------
        >>> whole = BoundsGrid.numbers(decimals=0, dtype=np.dtype("float64"))
        >>> cells = whole.find(np.array([-17, 0, 1, 2, 24]))
        >>> (cells - cells[1]).tolist(), whole.lows[cells].tolist(), whole.highs[cells].tolist()
        ([-8, 0, 1, 2, 9], [-23.0, 0.0, 1.0, 2.0, 24.0], [-16.0, 0.0, 1.0, 2.0, 31.0])
        """
        # The cells above zero are single numbers or tiny cells, then parts of powers of two, then wide cells.
        info = np.finfo(dtype)
        largest, step = min(float(info.max), LARGEST), 0.0 if decimals is None else 10.0**-decimals
        wide = 2.0 ** np.arange(HIGHEST_POWER, info.maxexp - 1, BLOCK)
        if decimals is None:
            exact = np.zeros(0)
            tiny = 2.0 ** np.arange(LOWEST_POWER - BLOCK, info.minexp - 1, -BLOCK)[::-1]
            parts = tiny, _halves(LOWEST_POWER, HIGHEST_POWER), wide
            rare = True, False, True
        else:
            last = info.nmant - (0 if decimals == 0 else 2 + floor(log2(GUARD)))
            exact, after = np.unique(np.ceil(_halves(0, last))) * step, 2.0**last * step
            halves = _halves(floor(log2(after)), HIGHEST_POWER)
            parts = exact, np.append(after, halves[halves > after]), wide
            rare = False, True, True
            if decimals > 0 and info.bits < 64:  # a type that is too coarse for decimals there
                parts, largest = (exact, np.zeros(0), np.zeros(0)), after
        starts = np.concatenate(parts)
        sizes, inside = [len(part) for part in parts], starts < largest
        is_wide, is_rare = np.repeat([decimals is None, False, True], sizes), np.repeat(rare, sizes)
        starts, is_wide, is_rare = starts[inside], is_wide[inside], is_rare[inside]
        ends = np.append(starts[1:], largest)
        if decimals is not None:
            starts[: len(exact)] = np.round(starts[: len(exact)], decimals)
            ends[: len(exact)] = np.round(ends[: len(exact)] - step, decimals)
        lows = np.concatenate([-ends[::-1], [0.0], starts])
        highs = np.concatenate([-starts[::-1], [0.0], ends])
        is_wide, is_rare = (np.concatenate([side[::-1], [False], side]) for side in (is_wide, is_rare))
        inside = (highs >= limits[0]) & (lows <= limits[1])
        lows, highs = np.maximum(lows[inside], limits[0]), np.minimum(highs[inside], limits[1])
        return cls(lows, highs, is_wide=is_wide[inside], is_rare=is_rare[inside])

    @classmethod
    def dates(
        cls, unit: str, first: np.datetime64 = CALENDAR[0], last: np.datetime64 = CALENDAR[1]
    ) -> BoundsGrid:
        """Return centuries, decades, and the months from 1900 to 2109, in days or seconds since 1970.

        Parameters
        ----------
        unit : "D" or "s"
        first, last : numpy.datetime64
            The days that the dtype can hold.

        Examples
        --------
        >>> days = BoundsGrid.dates("D")
        >>> place = int(days.find(np.zeros(1))[0])
        >>> len(days.lows), days.lows[[place, place + 1]].tolist()  # January and February of 1970
        (2671, [0.0, 31.0])
        """
        coarse = np.array([np.datetime64(f"{year:04d}-01", "M") for year in YEARS])
        months = np.union1d(coarse, np.arange(FIRST_MONTH, AFTER_MONTHS))
        days = np.union1d(months.astype("datetime64[D]"), [CALENDAR[0]])
        days = np.append(np.maximum(days[days <= last], first), last + 1)
        days = days[np.searchsorted(days, first, side="right") - 1 :]
        months = days[:-1].astype("datetime64[M]")
        inside = (months >= FIRST_MONTH) & (months < AFTER_MONTHS)
        coarser = np.flatnonzero(~inside | (months.astype(np.int64) % MONTHS == 0))
        starts = days.astype(f"datetime64[{unit}]").astype(np.float64)
        return cls(starts[:-1], starts[1:] - 1, coarser, ~inside, ~inside, around_zero=False)

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
        if step is None or (high - low) / step >= 2.0**52:
            edges = np.linspace(low, high, CLOSER + 1)
            return BoundsGrid(edges[:-1], edges[1:], around_zero=False)
        points = round((high - low) / step) + 1
        edges = np.unique(np.linspace(0, points, CLOSER + 1).astype(np.int64))
        decimals = max(0, -floor(log10(step)))
        lows, highs = low + edges[:-1] * step, low + (edges[1:] - 1) * step
        return BoundsGrid(np.round(lows, decimals), np.round(highs, decimals), around_zero=False)

    def divided(self, first: int, last: int) -> BoundsGrid:
        """Return the cells from the first to the last, each wide one divided at powers of two.

        >>> reals = BoundsGrid.numbers(decimals=None, dtype=np.dtype("float64"))
        >>> first, last = reals.find(np.array([1e-300, 3.0])).tolist()
        >>> reals.divided(first, first).lows[:3].tolist() == [2.0**-1022, 1.5 * 2.0**-1022, 2.0**-1021]
        True
        """
        lows = [self.lows[first : last + 1]]
        for cell in range(first, last + 1):
            ends = sorted((abs(self.lows[cell]), abs(self.highs[cell])))
            if self.is_wide[cell]:
                inner = _halves(floor(log2(ends[0])), floor(log2(ends[1])) + 1)
                inner = inner[(ends[0] < inner) & (inner < ends[1])]
                lows.append(inner if self.lows[cell] >= 0 else -inner)
        starts = np.unique(np.concatenate(lows))
        return BoundsGrid(starts, np.append(starts[1:], self.highs[last]))

    def by_year(self) -> BoundsGrid:
        """Return the grid in which years are cells in place of months."""
        lasts = np.append(self.coarser[1:], len(self.lows)) - 1
        is_wide = self.is_wide[self.coarser]
        lows, highs = self.lows[self.coarser], self.highs[lasts]
        return BoundsGrid(lows, highs, is_wide=is_wide, is_rare=is_wide, around_zero=False)

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
            two, three = self.find(np.array([2.0, 3.0])).tolist()
            hint = float(noisy[[two, three]].sum()) > HINT * sqrt(2) * sigma
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
        >>> reals = BoundsGrid.numbers(decimals=None, dtype=np.dtype("float64"))
        >>> reals.bounds_of(reals.zero, reals.zero)
        (0.0, 1.0)
        """
        if self.around_zero and not self.has_points and first == last == self.zero:
            return 0.0, 1.0
        if first == last and self.lows[first] == self.highs[first]:
            further = first + (1 if self.lows[first] <= 0 else -1)
            if 0 <= further < len(self.lows) and self.lows[further] == self.highs[further]:
                first, last = min(first, further), max(last, further)
        return self.span(first, last)

    def whole_bounds_of(self, first: int, last: int) -> tuple[float, float]:
        """Return the first and the last whole number in cells of reals, and 0 and 1 for a single one of them.

        >>> reals = BoundsGrid.numbers(decimals=None, dtype=np.dtype("float64"))
        >>> cells = reals.find(np.array([0, 1, 5.0])).tolist()
        >>> [reals.whole_bounds_of(cells[0], cell) for cell in cells]
        [(0.0, 1.0), (0.0, 1.0), (0.0, 5.0)]
        """
        low, high = self.span(first, last)
        low, high = float(ceil(low)), float(high if last == self.zero else ceil(high) - 1)
        return (0.0, 1.0) if low >= high and 0 <= low <= 1 else (min(low, high), max(low, high))

    def looks_whole(self, noisy: Ints, sigma: float) -> bool:
        """Return whether counts of reals look like those of whole numbers.

        Either only 0 is clear; or numbers from 1 on are, and 0 or 2, and few or none lie beside 1. Of reals
        that are spread over the cells from 1/2 to 2, twice as many would lie in the others as in that of 1.

        >>> reals = BoundsGrid.numbers(decimals=None, dtype=np.dtype("float64"))
        >>> def look(*numbers):
        ...     noisy = np.bincount(reals.find(np.array(numbers)), minlength=len(reals.lows)) * 90
        ...     return reals.looks_whole(noisy, 9.0)
        >>> look(0, 1), look(1, 2, 3), look(0), look(0, 0.7, 1.1, 1.7), look(1.1, 1.2), look(5, 6)
        (True, True, True, False, False, False)
        """
        cells = self.find(np.array([0.5, 0.75, 1.5, 1.0, 0.0, 2.0]))
        beside, clear = float(noisy[cells[:3]].sum()), noisy > CLEAR * sigma
        if clear[self.zero] and clear.sum() == 1:
            return True
        has_next = clear[cells[3]] and clear[cells[4:]].any()
        return bool(has_next and beside < FEW_BESIDE * noisy[cells[3]])

    @property
    def has_points(self) -> bool:
        """Whether single numbers around zero have cells of their own, as whole ones have."""
        beside = min(self.zero + 1, len(self.lows) - 1)
        return bool(self.lows[beside] == self.highs[beside])

    @property
    def zero(self) -> int:
        """The cell of zero, or the first cell of a grid of larger numbers."""
        return int(self.find(np.zeros(1))[0])

    def find(self, numbers: Floats) -> Ints:
        """Return the cell of each number; the outermost cell for numbers beyond all cells."""
        cells = np.searchsorted(self.lows, numbers, side="right") - 1
        return np.clip(cells, 0, len(self.lows) - 1)


def _halves(first: int, last: int) -> Floats:
    """Return where the `PARTS` cells of each power of two begin."""
    return np.array([2.0**e * (1 + part / PARTS) for e in range(first, last) for part in range(PARTS)])
