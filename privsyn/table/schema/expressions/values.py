"""Sets of values of one column, written as in a condition of `Forbidden`: comparisons, and what two share."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np

from privsyn.errors import InputError
from privsyn.table.kinds.ordinal import ends_of
from privsyn.table.schema.columns import Coded, Ordinal

PRESENT: Final = "any value that is not missing"

Values = Any
"""Listed values, a range, `PRESENT`, or None for a missing cell."""

OPPOSITE = {"==": "!=", "<": ">=", "<=": ">", "in": "not in"}
OPPOSITE |= {opposite: sign for sign, opposite in OPPOSITE.items()}


def compared(column: Coded, sign: str, value: Any) -> list[Values]:
    """Return the values for which a comparison is true, as disjoint sets.

    A missing cell makes every comparison false, and its opposite too.

    >>> from privsyn import Categorical, Numerical
    >>> compared(Numerical(0, 99, integer=True), "<", 15)
    [{'high': 14}]
    >>> compared(Numerical(0, 99, integer=True), "!=", 15)
    [{'high': 14}, {'low': 16}]
    >>> compared(Categorical(["a", "b", "c"]), "!=", "b")
    [('a', 'c')]
    """
    return column.compared(sign, value if sign in ("in", "not in") else (value,))


def both(column: Coded, one: Values, other: Values) -> Values:
    """Return what two sets of values share; an empty tuple if they share nothing.

    >>> from privsyn import Numerical
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
    ends = ends_of(low, high)
    return () if cast(Ordinal, column).is_empty(ends) else ends


def all_values(name: str, column: Coded) -> Values:
    """Return every value of a column except missing; refuse a column whose values are left to be found."""
    if not column.is_public:
        raise InputError(f"{name!r}: {column.public_hint}, or say when only one column is missing")
    return column.all_values


def _contains(column: Coded, values: Any, value: Any) -> bool:
    if isinstance(values, tuple):
        return value in values
    number = column.number_of(value)
    low = column.number_of(values["low"]) if "low" in values else -np.inf
    high = column.number_of(values["high"]) if "high" in values else np.inf
    return bool(low <= number <= high)
