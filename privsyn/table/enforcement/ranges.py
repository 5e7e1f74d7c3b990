"""Span: some of the values of one column, as numbers.

Constraints are kept on numbers: a listed value is its place in the list, a number itself, a time the days or
seconds since 1970, and a missing cell NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from privsyn.errors import InputError, safe_repr
from privsyn.marginals.types import Floats, Mask, keep
from privsyn.table.schema.columns import Categorical, Coded, Numerical
from privsyn.table.schema.time_columns import SECONDS, Datetime, Duration, Time
from privsyn.table.schema.validation import clock_time, length_of_time, time_bounds

EPOCH = datetime(1970, 1, 1)
HARDLY = 2.0**-20  # of the bounds' distance


@dataclass(frozen=True, eq=False)
class Span:
    """Closed intervals, in order and apart, with or without the missing cells.

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
    def of(cls, column: Coded, said: object) -> Span:
        """The values that a condition names: one, a tuple of them, or a range."""
        if isinstance(said, Mapping):
            return cls(*_range(column, said), missing=False)
        values = said if isinstance(said, tuple) else (said,)
        found = np.unique([number_of(column, value) for value in values if value is not None])
        return cls(found, found, missing=None in values)

    def holds(self, numbers: Floats) -> Mask:
        """Which of the numbers are in it."""
        return np.where(np.isnan(numbers), self.missing, self.covers(numbers, numbers))

    def covers(self, lows: Floats, highs: Floats) -> Mask:
        """Which intervals lie within it as a whole; one of NaN does if missing does."""
        if not len(self.lows):
            return np.isnan(lows) & self.missing
        last = np.searchsorted(self.lows, lows, side="right") - 1
        inside = (last >= 0) & (highs <= self.highs[last])
        return np.where(np.isnan(lows), self.missing, inside)

    @property
    def ends(self) -> list[float]:
        """The ends of the intervals."""
        return [*self.lows.tolist(), *self.highs.tolist()]


def number_of(column: Coded, value: Any) -> float:
    """A value that a constraint names, as a number; refused where the column does not have it."""
    match column:
        case Categorical():
            try:
                return float(column.values.index(value))  # type: ignore[union-attr]
            except ValueError:
                raise InputError(f"{safe_repr(value)} is not one of its values") from None
        case Numerical():
            if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
                raise InputError(f"{safe_repr(value)} is not a number")
            return float(value)
        case Datetime():
            return _units(column, value)
        case Time():
            return (datetime.combine(EPOCH, clock_time(value)) - EPOCH) // _step(column)
        case Duration():
            return length_of_time(value) // _step(column)


def bounds_of(column: Coded) -> tuple[float, float]:
    """The least and the largest number of a column whose values or bounds are known."""
    match column:
        case Categorical():
            return 0.0, len(column.values) - 1.0  # type: ignore[arg-type]
        case Numerical():
            return float(column.low), float(column.high)  # type: ignore[arg-type]
        case Datetime():
            return _units(column, column.low), _units(column, column.high)
        case Time() | Duration():
            return float(column.steps[0]), float(column.steps[1])


def step_of(column: Coded) -> float:
    """The least distance of two numbers of a column; where they are real, one that hardly shows."""
    if not isinstance(column, Numerical) or column.is_whole:
        return 1.0
    low, high = bounds_of(column)
    return max((high - low) * HARDLY, 1e-300) if column.decimals is None else 10.0**-column.decimals


def _range(column: Coded, said: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """A range, either end of which may be left out, as one interval; of listed numbers each that is in it."""
    if isinstance(column, Categorical):
        low, high = said.get("low", -np.inf), said.get("high", np.inf)
        values: Any = column.values
        try:
            places = np.flatnonzero([low <= value <= high for value in values]).astype(np.float64)
        except TypeError:
            raise InputError("a range wants numbers or dates: list the values") from None
        return places, places
    low = number_of(column, said["low"]) if "low" in said else -np.inf
    high = number_of(column, said["high"]) if "high" in said else np.inf
    if low > high:
        raise InputError("the low end of a range is above its high end")
    return np.array([low]), np.array([high])


def _units(column: Datetime, value: Any) -> float:
    moment, _ = time_bounds(value, value)
    seconds = (moment - EPOCH).total_seconds()
    return float(seconds // SECONDS[column.unit or "D"])


def _step(column: Time | Duration) -> timedelta:
    return timedelta(seconds=SECONDS[column.unit])
