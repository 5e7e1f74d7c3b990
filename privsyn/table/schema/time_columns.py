"""Kinds of column that are times: dates, times of day and lengths of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from typing import Literal

import numpy as np

from privsyn.errors import InputError, safe_repr
from privsyn.table.schema.validation import (
    both_or_neither,
    clock_time,
    length_of_time,
    normalise,
    normalise_shared,
    one_of,
    time_bounds,
    time_format,
)

SECONDS = {"s": 1, "m": 60, "h": 3600, "D": 86400}
"""In a step of each unit."""


@dataclass(frozen=True)
class Datetime:
    """A column of dates or times between public bounds; what lies outside is clipped to them.

    Parameters
    ----------
    low, high : str, date, datetime or numpy.datetime64, optional
        The public bounds, both included; text in ISO form. Times are those of the clock on the wall in the
        column's own time zone, in whole seconds. Left out: they are not public, and are found under privacy,
        to the month.
    unit : {"D", "s"}, optional
        The step: days or seconds. Left out: days, if neither bound has a time of day, or none is given.
    format : str, optional
        How text says a date, in a column of text or in a CSV: as ``datetime.strftime`` knows it, such as
        ``"%d.%m.%Y"``. Left out: in ISO form.
    objects : {"text", "date", "datetime"}
        What a column of Python objects holds.
    bins, nullable, missing
        As for `Numerical`.

    Examples
    --------
    >>> Datetime("2015-01-01", "2020-12-31").unit
    'D'
    >>> Datetime("2015-01-01 08:00", "2015-01-01 18:00").unit
    's'
    """

    low: str | date | np.datetime64 | None = None
    high: str | date | np.datetime64 | None = None
    unit: Literal["D", "s"] | None = field(default=None, kw_only=True)
    format: str | None = field(default=None, kw_only=True)
    objects: Literal["text", "date", "datetime"] = field(default="text", kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        normalise_shared(self)
        one_of("objects", self.objects, ("text", "date", "datetime"))
        if self.format is not None:
            normalise(self, format=time_format(self.format))
        if self.unit is not None and (not isinstance(self.unit, str) or self.unit not in ("D", "s")):
            raise InputError(f"unit {safe_repr(self.unit)} is neither 'D' (days) nor 's' (seconds)")
        low, high = both_or_neither(self.low, self.high)
        if low is None:
            return
        low, high = time_bounds(low, high)
        dates_only = low.time() == high.time() == time()
        if self.unit == "D" and not dates_only:
            raise InputError("unit 'D' wants bounds without a time of day")
        normalise(self, low=low, high=high, unit=self.unit or ("D" if dates_only else "s"))

    @property
    def is_public(self) -> bool:
        """Whether the bounds are given."""
        return self.low is not None


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
        normalise_shared(self)
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
        normalise_shared(self)
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


def _since_midnight(at: time) -> timedelta:
    return timedelta(hours=at.hour, minutes=at.minute, seconds=at.second)


def _check_steps(low: timedelta, high: timedelta, unit: str) -> None:
    if low > high:
        raise InputError(f"low {low} is above high {high}")
    for bound in (low, high):
        if bound % timedelta(seconds=SECONDS[unit]):
            raise InputError(f"the bound {bound} is not a whole number of steps of unit {unit!r}")
