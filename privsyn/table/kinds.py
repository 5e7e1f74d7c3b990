"""More kinds of column: times of day and lengths of time, and columns that are never counted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import time, timedelta
from typing import Literal

import numpy as np

from privsyn.errors import InputError, shown
from privsyn.table.checks import (
    both_or_neither,
    clock_time,
    count,
    flag,
    length_of_time,
    marks,
    normalise,
    one_of,
)

MAX_BINS = 2**20

SECONDS = {"s": 1, "m": 60, "h": 3600, "D": 86400}
"""In a step of each unit."""

_FORMAT = re.compile(r"[^{}]*\{(:0?[0-9]{0,3}[dxX]?)?\}[^{}]*")
"""Text around one number."""


@dataclass(frozen=True)
class Time:
    """A column of times of day between public bounds; what lies outside is clipped to them.

    Parameters
    ----------
    low, high : str or datetime.time
        The bounds, both included, in whole steps; the whole day if left out.
    unit : {"s", "m", "h"}
        The step: seconds, minutes or hours.
    objects : {"time", "text"}
        What a column of Python objects holds.
    bins, nullable, missing
        As for `Numerical`.

    Examples
    --------
    >>> Time(high="18:00", unit="m").high
    datetime.time(18, 0)
    """

    low: str | time | None = None
    high: str | time | None = None
    unit: Literal["s", "m", "h"] = field(default="s", kw_only=True)
    objects: Literal["time", "text"] = field(default="time", kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        one_of("unit", self.unit, ("s", "m", "h"))
        one_of("objects", self.objects, ("time", "text"))
        normalise(self, nullable=flag("nullable", self.nullable), missing=marks(self.missing))
        normalise(self, bins=count("bins", self.bins, 1, MAX_BINS))
        step = SECONDS[self.unit]
        last = timedelta(days=1, seconds=-step)
        low = clock_time("00:00" if self.low is None else self.low)
        high = clock_time(str(last) if self.high is None else self.high)
        _check_steps(_since_midnight(low), _since_midnight(high), self.unit)
        normalise(self, low=low, high=high)

    @property
    def is_public(self) -> bool:
        """The bounds of a day are known to everybody."""
        return True

    @property
    def steps(self) -> tuple[int, int]:
        """The bounds in steps since midnight."""
        low, high = (_since_midnight(clock_time(bound)) for bound in (self.low, self.high))
        step = timedelta(seconds=SECONDS[self.unit])
        return low // step, high // step


@dataclass(frozen=True)
class Duration:
    """A column of lengths of time between public bounds; what lies outside is clipped to them.

    Parameters
    ----------
    low, high : str, datetime.timedelta or numpy.timedelta64, optional
        The public bounds, both included, in whole steps; text such as ``"2 days 03:00:00"``. Left out: they
        are not public, and are found under privacy.
    unit : {"s", "m", "h", "D"}
        The step: seconds, minutes, hours or days.
    bins, nullable, missing
        As for `Numerical`.

    Examples
    --------
    >>> Duration("0:00", "1 day", unit="m").steps
    (0, 1440)
    """

    low: str | timedelta | np.timedelta64 | None = None
    high: str | timedelta | np.timedelta64 | None = None
    unit: Literal["s", "m", "h", "D"] = field(default="s", kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        one_of("unit", self.unit, tuple(SECONDS))
        normalise(self, nullable=flag("nullable", self.nullable), missing=marks(self.missing))
        normalise(self, bins=count("bins", self.bins, 1, MAX_BINS))
        low, high = both_or_neither(self.low, self.high)
        if low is None:
            return
        low, high = length_of_time(low), length_of_time(high)
        _check_steps(low, high, self.unit)
        normalise(self, low=low, high=high)

    @property
    def is_public(self) -> bool:
        """Whether the bounds are given."""
        return self.low is not None

    @property
    def steps(self) -> tuple[int, int]:
        """The bounds in steps."""
        step = timedelta(seconds=SECONDS[self.unit])
        low, high = (length_of_time(bound) // step for bound in (self.low, self.high))
        return low, high


@dataclass(frozen=True)
class Identifier:
    """A column that names the row. Its cells are never looked at: new names are made for synthetic rows.

    Parameters
    ----------
    format : str, optional
        Text around one running number, as in ``"CUST-{:06d}"``. Left out: whole numbers from 1 where the
        dtype holds numbers, and in a CSV; random UUIDs where it holds text.

    Examples
    --------
    >>> Identifier("CUST-{:06d}").format.format(7)
    'CUST-000007'
    """

    format: str | None = None

    def __post_init__(self) -> None:
        if self.format is None:
            return
        if not isinstance(self.format, str) or not _FORMAT.fullmatch(self.format):
            raise InputError(
                f"format {shown(self.format)} is not text around one number, such as 'CUST-{{:06d}}'"
            )

    @property
    def is_public(self) -> bool:
        """Nothing of it is private."""
        return True


@dataclass(frozen=True)
class Text:
    """A column of free text, which is left out of the synthetic table. Its cells are never looked at.

    Examples
    --------
    >>> Text().is_public
    True
    """

    @property
    def is_public(self) -> bool:
        """Nothing of it is told."""
        return True


def _since_midnight(at: time) -> timedelta:
    return timedelta(hours=at.hour, minutes=at.minute, seconds=at.second)


def _check_steps(low: timedelta, high: timedelta, unit: str) -> None:
    if low > high:
        raise InputError(f"low {low} is above high {high}")
    for bound in (low, high):
        if bound % timedelta(seconds=SECONDS[unit]):
            raise InputError(f"the bound {bound} is not a whole number of steps of unit {unit!r}")
