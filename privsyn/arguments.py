"""Checks of what callers pass: each returns the value in its one form, or refuses it in one line."""

from __future__ import annotations

import re
from collections.abc import Collection
from math import inf, isfinite, nan
from numbers import Real

import numpy as np

from privsyn.errors import InputError, safe_repr

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_MEMORY = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([kKmMgGtT]?[bB])")


def check_whole(name: str, value: object, *, least: int = 0) -> int:
    """`value` as an int of at least `least`; ``InputError`` says what was given instead.

    >>> check_whole("n", np.uint8(3))
    3
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is a whole number of at least {least}; got {safe_repr(value)}")
    return int(value)


def check_bytes(name: str, value: object) -> int:
    """An amount of memory in bytes, given as such or as text with a unit.

    >>> check_bytes("memory", "1.5 GB"), check_bytes("memory", 64 * 2**20)
    (1500000000, 67108864)
    """
    if isinstance(value, str) and (found := _MEMORY.fullmatch(value.strip())):
        size, unit = found.groups()
        return int(float(size) * _UNITS[unit.upper()])
    if isinstance(value, str):
        raise InputError(f'{name} is a number of bytes, or text such as "4GB"; got {safe_repr(value)}')
    return check_whole(name, value)


def check_finite(name: str, value: object) -> float:
    """A finite number, of whatever type, as the double nearest to it.

    >>> check_finite("delta", np.float32(0.5))
    0.5
    """
    try:
        double = float(value) if isinstance(value, Real) and not isinstance(value, bool) else nan
    except OverflowError:
        double = inf
    if not isfinite(double):
        raise InputError(f"{name} is a finite number; got {safe_repr(value)}")
    return double


def check_column(what: str, name: object, names: Collection[str]) -> None:
    """Refuse what is none of the columns to be synthesised.

    >>> check_column("target", "income", ("age", "sex"))
    Traceback (most recent call last):
    privsyn.errors.InputError: target 'income': there is no such column among those to be synthesised
    """
    if not isinstance(name, str) or name not in names:
        raise InputError(f"{what} {safe_repr(name)}: there is no such column among those to be synthesised")


def check_unit(unit: object, rows_per_unit: object, names: Collection[str]) -> None:
    """Refuse half of the two settings, and identifiers that would be synthesised with the other `names`."""
    if unit is None:
        if rows_per_unit is not None:
            raise InputError(
                "rows_per_unit needs unit, the column that names the person: give both or neither"
            )
        return
    if not isinstance(unit, str):
        raise InputError(f"unit is the name of a column; got {safe_repr(unit)}")
    if rows_per_unit is None:
        raise InputError(
            "unit needs rows_per_unit, the most rows kept of one person:"
            " as many as most are publicly known to have; twice as many, twice the noise"
        )
    check_whole("rows_per_unit", rows_per_unit, least=1)
    if unit in names:
        raise InputError(
            f"unit {unit!r} is a column of the schema: leave it out, identifiers are not synthesised"
        )
