"""Span: a set of values of one column, as numbers.

Constraints are enforced on numbers. A listed value is its place in the list, a date is in days or seconds
since 1970, and a missing cell is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privsyn.marginals.types import Floats, Mask, keep
from privsyn.table.schema.columns import Coded


@dataclass(frozen=True, eq=False)
class Span:
    """Disjoint closed intervals in increasing order, with or without missing cells.

    Examples
    --------
    >>> span = Span(np.array([0.0, 5.0]), np.array([2.0, 5.0]), missing=True)
    >>> span.holds(np.array([1.0, 3.0, 5.0, np.nan])).tolist()
    [True, False, True, True]
    """

    lows: Floats
    highs: Floats
    missing: bool

    def __post_init__(self) -> None:
        keep(self, "lows", "highs", dtype=np.float64)
        if self.lows.ndim != 1 or self.lows.shape != self.highs.shape:
            raise ValueError(f"{self.lows.shape} low ends, {self.highs.shape} high ones")

    @classmethod
    def of(cls, column: Coded, values: object) -> Span:
        """Return the values that a condition names: one value, a tuple of them, or a range."""
        if isinstance(values, Mapping):
            return cls(*column.intervals_of(values), missing=False)
        values = values if isinstance(values, tuple) else (values,)
        found = np.unique([column.number_of(value) for value in values if value is not None])
        return cls(found, found, missing=None in values)

    @property
    def is_about_missing(self) -> bool:
        """Whether the span holds all missing cells and no others, or all others and none that is missing."""
        present = self.lows.tolist() == [-np.inf] and self.highs.tolist() == [np.inf]
        return present is not self.missing and (present or not len(self.lows))

    def holds(self, numbers: Floats) -> Mask:
        """Return which of the numbers are in the span."""
        return np.where(np.isnan(numbers), self.missing, self.covers(numbers, numbers))

    def covers(self, lows: Floats, highs: Floats) -> Mask:
        """Return which intervals lie completely within the span; NaN does if missing cells do."""
        if not len(self.lows):
            return np.isnan(lows) & self.missing
        last = np.searchsorted(self.lows, lows, side="right") - 1
        inside = (last >= 0) & (highs <= self.highs[last])
        return np.where(np.isnan(lows), self.missing, inside)

    def touches(self, lows: Floats, highs: Floats) -> Mask:
        """Return which intervals share a number with the span; NaN does if missing cells are in it.

        >>> span = Span(np.array([0.0, 5.0]), np.array([2.0, 5.0]), missing=False)
        >>> span.touches(np.array([2.0, 3.0, 4.0, np.nan]), np.array([3.0, 4.0, 9.0, np.nan])).tolist()
        [True, False, True, False]
        """
        if not len(self.lows):
            return np.isnan(lows) & self.missing
        first = np.searchsorted(self.highs, lows)
        shared = (first < len(self.highs)) & (self.lows[np.minimum(first, len(self.lows) - 1)] <= highs)
        return np.where(np.isnan(lows), self.missing, shared)

    @property
    def ends(self) -> list[float]:
        """The ends of the intervals."""
        return [*self.lows.tolist(), *self.highs.tolist()]
