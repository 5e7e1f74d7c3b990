"""Boxes: values of some columns that occur together, and the spans of numbers that they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any, Final, Self

import numpy as np

from privsyn.errors import InputError, about
from privsyn.marginals.domain import Floats, Mask, Numbers, keep
from privsyn.table.encoding.grid import constants_of
from privsyn.table.kinds.column_settings import plain_value
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.constraint import Columns, check_names, python_value

PRESENT: Final = "any value that is not missing"

Values = Any
"""Listed values, a range ``{"low": a, "high": b}`` with one end or both, `PRESENT`, or None for missing."""

Box = Mapping[str, Values]
"""Values of some columns that occur together."""


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
    def of(cls, column: Coded, values: Values) -> Self:
        """Return the numbers of the values of a box."""
        if values is PRESENT:
            return cls(np.array([-np.inf]), np.array([np.inf]), missing=False)
        if isinstance(values, Mapping):
            return cls(*column.intervals_of(values), missing=False)
        values = values if isinstance(values, tuple) else (values,)
        numbers = np.unique([column.number_of(value) for value in values if value is not None])
        return cls(numbers, numbers, missing=None in values)

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

    def covers_points(self, lows: Floats, highs: Floats, step: float) -> Mask:
        """Return which intervals lie within the span, if their ends stand for all reals half a step around.

        A constant is its nearest point. It is in the span, or not, as its end says.

        >>> above = Span(np.array([5e-324]), np.array([np.inf]), missing=False)
        >>> above.covers_points(np.array([0.0, 0.01]), np.array([0.0, 9.0]), 0.01).tolist()
        [False, True]
        """
        constants = constants_of(self.lows), constants_of(self.highs)
        moved_lows = constants[0] + np.where(self.lows == constants[0], -step / 2, step / 2)
        moved_highs = constants[1] + np.where(self.highs == constants[1], step / 2, -step / 2)
        return type(self)(moved_lows, moved_highs, missing=self.missing).covers(lows, highs)

    def ends_outside(self, step: float) -> tuple[float, float]:
        """Return the nearest numbers below and above the span: a step away, or the constants of open ends.

        >>> Span(np.array([5e-324]), np.array([7.0]), missing=False).ends_outside(0.5)
        (0.0, 7.5)
        """
        low, high = (constants_of(end)[0] for end in (self.lows[:1], self.highs[-1:]))
        return (
            float(low) if low < self.lows[0] else float(self.lows[0] - step),
            float(high) if high > self.highs[-1] else float(self.highs[-1] + step),
        )

    def intersection(self, span: Self) -> Self:
        """Return the numbers, and missing cells, that are in both spans.

        >>> ages = Span([0.0, 50.0], [40.0, 60.0], missing=True)
        >>> ages = ages.intersection(Span([30.0], [55.0], missing=False))
        >>> ages.lows.tolist(), ages.highs.tolist(), ages.missing
        ([30.0, 50.0], [40.0, 55.0], False)
        """
        lows = np.maximum.outer(self.lows, span.lows).ravel()
        highs = np.minimum.outer(self.highs, span.highs).ravel()
        is_some, missing = lows <= highs, self.missing and span.missing
        return type(self)(lows[is_some], highs[is_some], missing=missing)

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

    def cuts(self, lows: Floats, highs: Floats) -> Mask:
        """Return which intervals lie partly within the span: it begins or ends inside them.

        >>> span = Span(np.array([5.0]), np.array([7.0]), missing=False)
        >>> lows, highs = np.array([0.0, 0, 6, 7, 5]), np.array([9.0, 4, 9, 9, 7])
        >>> span.cuts(lows, highs).tolist()
        [True, False, True, True, False]
        """
        lows, highs = lows[:, np.newaxis], highs[:, np.newaxis]
        starts, stops = (self.lows > lows) & (self.lows <= highs), (self.highs >= lows) & (self.highs < highs)
        return np.asarray((starts | stops).any(axis=1))

    def union(self, span: Self) -> Self:
        """Return the numbers, and missing cells, that are in one of the spans or in both.

        >>> span = Span([0.0], [2.0], missing=True).union(Span([1.0, 5.0], [3.0, 6.0], missing=False))
        >>> span.lows.tolist(), span.highs.tolist(), span.missing
        ([0.0, 5.0], [3.0, 6.0], True)
        """
        lows, highs = np.append(self.lows, span.lows), np.append(self.highs, span.highs)
        order = np.argsort(lows, kind="stable")
        lows, reach = lows[order], np.maximum.accumulate(highs[order])
        starts = np.append(True, lows[1:] > reach[:-1])
        return type(self)(
            lows[starts], reach[np.append(starts[1:], True)], missing=self.missing or span.missing
        )

    @property
    def outside(self) -> Self:
        """All numbers outside the span, without missing: a missing cell keeps a constraint."""
        lows = np.append(-np.inf, np.nextafter(self.highs, np.inf))
        highs = np.append(np.nextafter(self.lows, -np.inf), np.inf)
        return type(self)(lows, highs, missing=False)


ALL = Span(np.array([-np.inf]), np.array([np.inf]), missing=True)
"""All values."""


def spans_of(columns: Columns, box: Box) -> dict[str, Span]:
    """Return the numbers of each column of a box."""
    spans = {}
    for name, values in box.items():
        with about(f"column {name!r}"):
            spans[name] = Span.of(columns[name], values)
    return spans


def in_all(spans: Mapping[str, Span], numbers: Numbers) -> Mask:
    """Return which rows lie in the span of every column."""
    return reduce(np.logical_and, (span.holds(numbers[name]) for name, span in spans.items()))


def check_box(box: object) -> Box:
    """Return a box that a person wrote as `when`, in normal form and read-only."""
    if not isinstance(box, Mapping) or not box:
        raise InputError('when: give a mapping of columns to values, such as {"married": "no"}')
    check_names("when", tuple(box))
    normal_form = {}
    for name, values in box.items():
        with about(f"when: {name!r}"):
            normal_form[name] = check_values(values)
            if isinstance(normal_form[name], Mapping):  # ends as written, so that they are equal when read
                normal_form[name] = plain_value("when", normal_form[name])
    return MappingProxyType(normal_form)


def check_values(values: object) -> Values:
    """Return the values of one column of a box in normal form."""
    if isinstance(values, Mapping):
        ends = {end: python_value(value) for end, value in values.items() if value is not None}
        if not ends or set(values) - {"low", "high"}:
            raise InputError("a range has low, high or both")
        return ends
    if isinstance(values, list | set | frozenset | tuple):
        return tuple(python_value(value) for value in values)
    return python_value(values)
