"""Checks of what callers pass: each returns the value in its one form, or refuses it in one line."""

from __future__ import annotations

from math import inf, isfinite, nan
from numbers import Real

import numpy as np

from privsyn.errors import InputError, shown


def check_whole(name: str, value: object, *, least: int = 0) -> int:
    """`value` as an int of at least `least`; ``InputError`` says what was given instead.

    >>> check_whole("n", np.uint8(3))
    3
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is a whole number of at least {least}; got {shown(value)}")
    return int(value)


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
        raise InputError(f"{name} is a finite number; got {shown(value)}")
    return double
