"""Rulers: fixed public cells over all numbers, or all dates, to find bounds that a schema does not give."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf, log2, log10

import numpy as np

from privsyn.answers.arrays import Floats, Ints
from privsyn.table.grid import GUARD

PARTS = 2
"""Cells between a power of two and the next: more make tighter bounds, but noisier octaves. Of 1, 2, 4 and 8
parts, 2 did well on tables of 6,000 to 50,000 rows; 8 lost the bounds of the small one."""

LEAST, MOST = -30, 62
"""Powers of two where a ruler of real numbers begins and ends."""

CLOSER = 64
"""Cells of a ruler for a second look, between bounds that a first one found."""

FIRST_YEAR, LAST_YEAR = 1900, 2100
"""Of the ruler of dates: what lies outside belongs to its first and last month."""


@dataclass(frozen=True, eq=False)
class Ruler:
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
    ) -> Ruler:
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
        >>> whole = Ruler.numbers(decimals=0, dtype=np.dtype("float64"))
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
    def dates(cls, unit: str) -> Ruler:
        """The months of two centuries, in days or seconds since 1970.

        >>> days = Ruler.dates("D")
        >>> len(days.lows), days.lows[[840, 841]].tolist()  # from January 1970
        (2412, [0.0, 31.0])
        """
        months = np.arange(f"{FIRST_YEAR}-01", f"{LAST_YEAR + 1}-02", dtype="datetime64[M]")
        starts = months.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(np.int64)
        years = months.astype("datetime64[Y]").astype(np.int64)
        return cls(starts[:-1].astype(np.float64), starts[1:].astype(np.float64) - 1, years[:-1])

    def between(self, first: int, last: int, *, step: float | None) -> Ruler:
        """Up to `CLOSER` cells of equal width from a cell to another.

        Parameters
        ----------
        first, last : int
        step : float or None
            The cells begin at multiples of it; None for real numbers.

        Examples
        --------
        >>> whole = Ruler.numbers(decimals=0, dtype=np.dtype("float64"))
        >>> years = whole.between(*whole.find(np.array([1900, 2015])).tolist(), step=1.0)
        >>> years.lows[:3].tolist(), float(years.highs[-1])
        ([1536.0, 1544.0, 1552.0], 2047.0)
        """
        low, high = float(self.lows[first]), float(self.highs[last])
        if step is None:
            edges = np.linspace(low, high, CLOSER + 1)
            return Ruler(edges[:-1], edges[1:], np.arange(CLOSER))
        points = round((high - low) / step) + 1
        edges = np.unique(np.linspace(0, points, CLOSER + 1).astype(np.int64))
        decimals = max(0, -floor(log10(step)))
        lows, highs = low + edges[:-1] * step, low + (edges[1:] - 1) * step
        return Ruler(np.round(lows, decimals), np.round(highs, decimals), np.arange(len(lows)))

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
