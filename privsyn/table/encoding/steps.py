"""Steps: the public distance of which all numbers or times of a column are multiples."""

from __future__ import annotations

import re
from datetime import timedelta
from math import ceil, floor
from typing import Any

from privsyn.errors import InputError, safe_repr

MAX_DECIMALS = 12

SECONDS = {"s": 1, "m": 60, "h": 3600, "D": 86400}
"""Seconds in a step of each unit."""

DAY = SECONDS["D"]

_TEXT = re.compile(r"([0-9]{1,6}) ?(s|min|h|d)")

_UNITS = {"d": DAY, "h": 3600, "min": 60, "s": 1}

ON_GRID = 1e-6
"""Largest distance, in steps, at which a bound counts as a multiple of the step."""


def number_step(step: object, *, integer: bool | None, decimals: int | None) -> float:
    """Return the step of a column of numbers; refuse one with too many decimals.

    >>> number_step(10_000, integer=None, decimals=None), number_step(0.05, integer=None, decimals=None)
    (10000, 0.05)
    """
    if isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step < float("inf"):
        raise InputError(f"step is a number above 0, not {safe_repr(step)}")
    if decimals is not None:
        raise InputError("step and decimals exclude each other: give one of them")
    if decimals_of_step(step) is None:
        raise InputError(f"step {safe_repr(step)} has more than {MAX_DECIMALS} decimals")
    if integer and step != round(step):
        raise InputError(f"the step of whole numbers is whole, not {safe_repr(step)}")
    return step


def decimals_of_step(step: float) -> int | None:
    """Return how many decimals the multiples of a step have; None if these are too many.

    >>> decimals_of_step(100), decimals_of_step(0.25), decimals_of_step(1 / 3)
    (0, 2, None)
    """
    return next((d for d in range(MAX_DECIMALS + 1) if step > 0 and round(step, d) == step), None)


def time_step(step: object, *, unit: str | None = None, divides_day: bool = True) -> str:
    """Return the step of a column of times as text.

    Parameters
    ----------
    step : str or datetime.timedelta
    unit : str, optional
        The unit of the column: the step is a multiple of it.
    divides_day : bool
        Whether a day must be a multiple of the step.

    Examples
    --------
    >>> time_step("60 min"), time_step("15min"), time_step(timedelta(days=1))
    ('1h', '15min', '1d')
    """
    seconds = 0
    if isinstance(step, timedelta) and not step.microseconds:
        seconds = step.days * DAY + step.seconds
    elif isinstance(step, str) and (match := _TEXT.fullmatch(step.strip())):
        seconds = int(match[1]) * _UNITS[match[2]]
    if seconds <= 0:
        raise InputError(f"step is a length of time such as 30s, 15min, 1h or 1d, not {safe_repr(step)}")
    if divides_day and DAY % seconds:
        raise InputError(f"a day is no whole number of steps of {safe_repr(step)}")
    if unit is not None and seconds % SECONDS[unit]:
        raise InputError(f"step {safe_repr(step)} is no whole number of units {unit!r}")
    return step_text(seconds)


def step_text(seconds: int) -> str:
    """Return a number of seconds as the text of a step, in the largest unit."""
    unit, size = next((unit, size) for unit, size in _UNITS.items() if seconds % size == 0)
    return f"{seconds // size}{unit}"


def step_seconds(text: str) -> int:
    """Return the seconds in a step that `time_step` wrote.

    >>> step_seconds("15min")
    900
    """
    match: Any = _TEXT.fullmatch(text)
    return int(match[1]) * _UNITS[match[2]]


def multiples_within(low: float, high: float, step: float, decimals: int) -> tuple[float, float]:
    """Return the first and the last multiple of a step within bounds.

    >>> multiples_within(17, 90, 5, 0), multiples_within(0.02, 0.31, 0.05, 2)
    ((20.0, 90.0), (0.05, 0.3))
    """
    first, last = ceil(low / step - ON_GRID), floor(high / step + ON_GRID)
    if first > last:
        raise InputError(f"no multiple of the step lies between {safe_repr(low)} and {safe_repr(high)}")
    return round(first * float(step), decimals) + 0.0, round(last * float(step), decimals) + 0.0


def multiples_around(low: float, high: float, step: float, decimals: int) -> tuple[float, float]:
    """Return the last multiple of a step up to one bound, and the first from the other."""
    first, last = floor(low / step + ON_GRID), ceil(high / step - ON_GRID)
    return round(first * float(step), decimals) + 0.0, round(last * float(step), decimals) + 0.0
