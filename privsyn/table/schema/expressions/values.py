"""Sets of values of one column, written as in a condition of `Forbidden`: comparisons, and what two share."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import numpy as np

from privsyn.errors import InputError, about, safe_repr
from privsyn.table.encoding.steps import SECONDS
from privsyn.table.schema.column_settings import clock_time, length_of_time, time_bounds
from privsyn.table.schema.columns import Categorical, Coded, Datetime, Duration, Numerical
from privsyn.table.schema.time_columns import Timed

PRESENT: Final = "any value that is not missing"

Values = Any
"""Listed values, a range, `PRESENT`, or None for a missing cell."""

OPPOSITE = {"==": "!=", "<": ">=", "<=": ">", "in": "not in"}
OPPOSITE |= {opposite: sign for sign, opposite in OPPOSITE.items()}
COMPARES = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def compared(column: Coded, sign: str, value: Any) -> list[Values]:
    """Return the values for which a comparison is true, as disjoint sets.

    A missing cell makes every comparison false, and its opposite too.

    >>> compared(Numerical(0, 99, integer=True), "<", 15)
    [{'high': 14}]
    >>> compared(Numerical(0, 99, integer=True), "!=", 15)
    [{'high': 14}, {'low': 16}]
    >>> compared(Categorical(["a", "b", "c"]), "!=", "b")
    [('a', 'c')]
    """
    given = value if sign in ("in", "not in") else (value,)
    if not isinstance(column, Categorical) or (column.is_public and sign not in COMPARES):
        for each in given:
            column.number_of(each)  # refuses a value that the column cannot have
    if sign in ("==", "in"):
        return [tuple(dict.fromkeys(given))]
    if isinstance(column, Categorical):
        return _of_listed(column, sign, value)
    if sign in ("<", "<=", ">", ">="):
        end = value if len(sign) == 2 else _next(column, value, -1 if sign == "<" else 1)
        return [{"high" if sign[0] == "<" else "low": end}]
    points = sorted(set(given), key=column.number_of)
    lows = [None, *(_next(column, point, 1) for point in points)]
    highs = [*(_next(column, point, -1) for point in points), None]
    ranges = [_range(low, high) for low, high in zip(lows, highs, strict=True)]
    return [ends for ends in ranges if not _is_empty(column, ends)]


def both(column: Coded, one: Values, other: Values) -> Values:
    """Return what two sets of values share; an empty tuple if they share nothing.

    >>> both(Numerical(0, 99), {"low": 3}, {"low": 5, "high": 9})
    {'low': 5, 'high': 9}
    >>> both(Numerical(0, 99), {"low": 3}, (1, 4)), both(Numerical(0, 99), None, PRESENT)
    ((4,), ())
    """
    if one is None or other is None:
        return None if one is other else ()
    if one is PRESENT or other is PRESENT:
        return other if one is PRESENT else one
    if isinstance(one, tuple) or isinstance(other, tuple):
        listed, rest = (one, other) if isinstance(one, tuple) else (other, one)
        return tuple(value for value in listed if _contains(column, rest, value))
    lows = [ends["low"] for ends in (one, other) if "low" in ends]
    highs = [ends["high"] for ends in (one, other) if "high" in ends]
    low = max(lows, key=column.number_of, default=None)
    high = min(highs, key=column.number_of, default=None)
    ends = _range(low, high)
    return () if _is_empty(column, ends) else ends


def all_values(name: str, column: Coded) -> Values:
    """Return every value of a column except missing; refuse a column whose values are left to be found."""
    if not column.is_public:
        raise InputError(f"{name!r}: {column.public_hint}, or say when only one column is missing")
    if isinstance(column, Categorical):
        return tuple(column.values or ())
    ordinal: Any = column
    return {"low": ordinal.low, "high": ordinal.high}


def _of_listed(column: Categorical, sign: str, value: Any) -> list[Values]:
    if column.values is None:
        raise InputError(f"{sign} needs the list of values: Categorical([...])")
    if sign in ("!=", "not in"):
        excluded = [column.number_of(each) for each in (value if sign == "not in" else (value,))]
        kept = tuple(v for place, v in enumerate(column.values) if place not in excluded)
        return [kept] if kept else []
    values: Any = column.values
    if not all(type(each) in (int, float) for each in (value, *values)):
        raise InputError(f"{sign} needs numbers or dates: list the values, as in ['a', 'b']")
    kept = tuple(each for each in values if COMPARES[sign](each, value))
    return [kept] if kept else []


def _next(column: Coded, value: Any, by: int) -> Any:
    """Return the next value below or above: the nearest that the column can have, or a nearer one."""
    if isinstance(column, Timed):
        step = timedelta(seconds=SECONDS[column.unit or "D"])
        if isinstance(column, Datetime):
            return time_bounds(value, value)[0] + by * step
        if isinstance(column, Duration):
            return length_of_time(value) + by * step
        since = timedelta(hours=(at := clock_time(value)).hour, minutes=at.minute, seconds=at.second)
        text = str(since + by * step)
        with about(f"{safe_repr(value)} is at the end of the day"):
            return clock_time(text)
    decimals = replace(column, step=None).fixed_decimals if isinstance(column, Numerical) else None
    if decimals is None:
        return float(np.nextafter(value, by * np.inf))
    if round(value, decimals) != value:
        return value  # no number of the column lies there
    after = round(value + by * 10**-decimals, decimals)
    return int(after) if decimals == 0 else after


def _range(low: Any, high: Any) -> dict[str, Any]:
    return {end: value for end, value in (("low", low), ("high", high)) if value is not None}


def _is_empty(column: Coded, ends: Mapping[str, Any]) -> bool:
    return len(ends) == 2 and column.number_of(ends["low"]) > column.number_of(ends["high"])


def _contains(column: Coded, values: Any, value: Any) -> bool:
    if isinstance(values, tuple):
        return value in values
    number = column.number_of(value)
    low = column.number_of(values["low"]) if "low" in values else -np.inf
    high = column.number_of(values["high"]) if "high" in values else np.inf
    return bool(low <= number <= high)
