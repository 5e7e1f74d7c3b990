"""Kinds of column that are times: dates, times of day and lengths of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from typing import Any, Literal, Self, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError, safe_repr
from privsyn.table.encoding.bounds_cells import FIRST_YEAR, LAST_YEAR, BoundsGrid
from privsyn.table.encoding.dtypes import TICKS, Dtype, Family, family, its, tick
from privsyn.table.encoding.grid import Grid
from privsyn.table.encoding.heaps import TIMES, Lattice, coarser
from privsyn.table.encoding.parsing import clock_seconds, moments, span_seconds
from privsyn.table.encoding.steps import SECONDS, multiples_around, step_seconds, step_text, time_step
from privsyn.table.encoding.time_encoders import DatetimeEncoder, DurationEncoder, TimeEncoder
from privsyn.table.schema.column_base import Ordinal
from privsyn.table.schema.column_settings import (
    LONGEST,
    both_or_neither,
    clock_time,
    length_of_time,
    normalise,
    normalise_shared,
    one_of,
    time_bounds,
    time_format,
)
from privsyn.table.schema.csv_format import CsvFormat
from privsyn.table.schema.plain_values import plain_value

EPOCH = datetime(1970, 1, 1)

UNITS = {"s": "whole seconds", "m": "whole minutes", "h": "whole hours", "D": "whole days"}


class Timed(Ordinal):
    """A column of times, which are whole units, and multiples of a step if one is given."""

    unit: Any
    step: Any

    @property
    def in_steps(self) -> str:
        """The step in words, after a noun; empty if there is none."""
        return "" if self.step is None else f" in steps of {self.step}"

    @property
    def scale(self) -> float:
        """The seconds in a unit."""
        return float(SECONDS[self.unit or "s"])

    @property
    def grid_step(self) -> float | None:
        """The units in a step."""
        return None if self.step is None else step_seconds(self.step) / self.scale

    def lattices(self, dtype: Dtype) -> tuple[Lattice, ...]:
        """Return the days, hours, minutes and parts of them that are coarser than the unit and the step."""
        return coarser([Lattice(lattice.step / self.scale) for lattice in TIMES], self.grid_step or 1.0)

    def on_lattice(self, step: float, dtype: Dtype) -> Self | None:
        """Return the column with this step."""
        return replace(self, step=step_text(round(step * self.scale)))  # type: ignore[type-var]

    @property
    def _grid(self) -> Grid:
        return Grid.exact(*self.bounds, decimals=0, bins=self.bins, step=self.grid_step)


CYCLES: tuple[list[str], ...] = ([], ["day"], ["day", "week"])


@dataclass(frozen=True)
class Datetime(Timed):
    """A column of dates or times between public bounds. Values outside are clipped to them.

    Parameters
    ----------
    low, high : str, date, datetime or numpy.datetime64, optional
        The public bounds, both included; text in ISO form. Times are in whole seconds, on the clock of the
        column's own time zone. Default: they are found under privacy, to the month.
    unit : {"D", "h", "min", "s"}, optional
        The step: days, hours, minutes or seconds. Default: days, unless a bound has a time of day.
    step : str, optional
        All times are multiples of it, counted from midnight, such as ``"15min"`` or ``"1h"``. A time between
        two multiples is taken to the nearer one.
    cycles : list, optional
        ``["day"]`` counts the date and the time of day as two attributes, so that the time of day and what it
        has to do with other columns survive; ``["day", "week"]`` the day of the week too; ``[]`` counts one.
        Default: the day if the times range over more than a week, and the week over more than eight. It needs
        a step below a day. A column that a constraint names is one attribute, unless it is the start of an
        `Increasing` and no other constraint names its columns.
    format : str, optional
        How dates are written in a column of text or in a CSV, in the terms of ``datetime.strftime``, such as
        ``"%d.%m.%Y"``. Default: ISO form.
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
    unit: Literal["D", "h", "min", "s"] | None = field(default=None, kw_only=True)
    step: str | None = field(default=None, kw_only=True)
    cycles: Sequence[str] | None = field(default=None, kw_only=True)
    format: str | None = field(default=None, kw_only=True)
    objects: Literal["text", "date", "datetime"] = field(default="text", kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        normalise_shared(self)
        one_of("objects", self.objects, ("text", "date", "datetime"))
        if self.cycles is not None:
            if isinstance(self.cycles, str) or [*self.cycles] not in CYCLES:
                raise InputError(f"cycles are [day, week], [day] or [], not {safe_repr(self.cycles)}")
            normalise(self, cycles=tuple(self.cycles))
        if self.format is not None:
            normalise(self, format=time_format(self.format))
        if self.unit is not None:
            one_of("unit", self.unit, ("D", "h", "min", "s"))
        if self.unit in ("h", "min"):
            normalise(self, step=f"1{self.unit}" if self.step is None else self.step, unit="s")
        if self.step is not None:
            step = time_step(self.step, unit=self.unit)
            normalise(self, step=step, unit=self.unit or ("D" if step == "1d" else "s"))
        low, high = both_or_neither(self.low, self.high)
        if low is None:
            return
        low, high = time_bounds(low, high)
        dates_only = low.time() == high.time() == time()
        if self.unit == "D" and not dates_only:
            raise InputError("unit 'D' needs bounds without a time of day")
        normalise(self, low=low, high=high, unit=self.unit or ("D" if dates_only else "s"))
        self.bounds  # noqa: B018  # refuses bounds without a multiple of the step

    @property
    def noun(self) -> str:
        """Whether the dates have a time of day."""
        noun = "dates" if self.unit in ("D", None) else "dates with a time of day"
        return f"{noun}{self.in_steps}"

    def number_of(self, value: Any) -> float:
        """Return the days or seconds since 1970."""
        moment, _ = time_bounds(value, value)
        return float((moment - EPOCH).total_seconds() // SECONDS[self.unit or "D"])

    def with_bounds(self, found: tuple[float, float] | None, *, whole: bool) -> Self:
        """Return the column with these bounds, by default January 1970."""
        unit = self.unit or "D"
        if found is None:
            return replace(self, low="1970-01-01", high="1970-01-31", unit=unit)
        low, high = np.array(found).astype(np.int64).astype(f"datetime64[{unit}]")
        return replace(self, low=low, high=high, unit=unit)

    def make_encoder(self, dtype: Dtype, family: Family) -> DatetimeEncoder:
        """Return the encoder; refuse a dtype without dates, or one that cannot hold the bounds."""
        if family not in ("datetime", "text", "object"):
            raise InputError(f"{its(dtype)}, not dates: convert it with pandas.to_datetime")
        bounds = np.array([self.low, self.high], dtype="datetime64[s]")
        ticks = TICKS.get(tick(dtype), 1) if family == "datetime" else 1
        if max(map(abs, bounds.astype(np.int64).tolist())) >= 2**63 // ticks:
            raise InputError(f"{its(dtype)}, which cannot hold the bounds {bounds[0]} to {bounds[1]}")
        return DatetimeEncoder(self._grid, dtype, str(self.unit), self.format, self.objects)

    def read_texts(self, texts: Sequence[str | None], csv_format: CsvFormat) -> pd.Series:
        """Return dates; NaT for a text that is none."""
        return pd.Series(moments(texts, self.format))

    def bounds_cells(self, dtype: Dtype) -> BoundsGrid:
        """Return the months in which dates are counted."""
        return BoundsGrid.dates(self.unit or "D")

    def widest(self, dtype: Dtype) -> Self:
        """Return the column with bounds from the first to the last year in which bounds are found."""
        return replace(self, low=f"{FIRST_YEAR}-01-01", high=f"{LAST_YEAR}-12-31", unit=self.unit or "D")

    def finest(self, filled: Self, dtype: Dtype) -> Self:
        """Return the completed column; with the times of its days if nothing says that it has none."""
        dates_only = self.unit is not None or (family(dtype) == "datetime" and tick(dtype) == "D")
        return filled if dates_only else filled._with_times()

    def _with_times(self) -> Self:
        """Return a column of dates with the times of its days, in seconds."""
        low, high = cast(datetime, self.low), cast(datetime, self.high)
        return replace(self, low=low, high=datetime.combine(high, time(23, 59, 59)), unit="s", step=None)

    def on_lattice(self, step: float, dtype: Dtype) -> Self | None:
        """Return the column with this step; of dates, which were counted in seconds, perhaps with times."""
        if self.unit != "D":
            return super().on_lattice(step, dtype)
        text = step_text(round(step))
        return self if text == "1d" else replace(self._with_times(), step=text)

    def to_plain(self, what: str) -> dict[str, Any]:
        """Leave out a unit that follows from the bounds and the step."""
        plain = super().to_plain(what)
        if (self.is_public or self.step) and Datetime(self.low, self.high, step=self.step).unit == self.unit:
            del plain["unit"]
        return plain


@dataclass(frozen=True)
class Time(Timed):
    """A column of times of day between public bounds. Values outside are clipped to them.

    Parameters
    ----------
    low, high : str or datetime.time
        The bounds, both included, in whole steps. Default: the whole day.
    unit : {"s", "m", "h"}
        The unit: seconds, minutes or hours.
    step : str, optional
        As for `Datetime`.
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
    step: str | None = field(default=None, kw_only=True)
    objects: Literal["time", "text"] = field(default="time", kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        one_of("unit", self.unit, ("s", "m", "h"))
        one_of("objects", self.objects, ("time", "text"))
        normalise_shared(self)
        if self.step is not None:
            normalise(self, step=time_step(self.step, unit=self.unit))
        last = timedelta(days=1, seconds=-SECONDS[self.unit])
        low = clock_time("00:00" if self.low is None else self.low)
        high = clock_time(str(last) if self.high is None else self.high)
        _check_units(_since_midnight(low), _since_midnight(high), self.unit)
        normalise(self, low=low, high=high)
        self.bounds  # noqa: B018  # refuses bounds without a multiple of the step

    @property
    def noun(self) -> str:
        """What is counted in which unit."""
        return f"times of day in {UNITS[self.unit]}{self.in_steps}"

    def number_of(self, value: Any) -> float:
        """Return the whole steps since midnight."""
        return float(_since_midnight(clock_time(value)) // timedelta(seconds=SECONDS[self.unit]))

    def make_encoder(self, dtype: Dtype, family: Family) -> TimeEncoder:
        """Return the encoder; refuse a dtype without times of day."""
        if family not in ("time", "text", "object"):
            raise InputError(f"{its(dtype)}, not times of day: convert it to text such as 08:30")
        return TimeEncoder(self._grid, dtype, SECONDS[self.unit], self.objects)

    def read_texts(self, texts: Sequence[str | None], csv_format: CsvFormat) -> pd.Series:
        """Return times of day; missing for a text that is none."""
        seconds = clock_seconds(texts)
        times = pa.array(np.nan_to_num(seconds).astype(np.int32), pa.time32("s"), mask=np.isnan(seconds))
        return pd.Series(pd.array(times, dtype=pd.ArrowDtype(pa.time32("s"))))

    def to_plain(self, what: str) -> dict[str, Any]:
        """Leave out the bounds of a whole day."""
        day = Time(unit=self.unit)
        whole_day = {"low": plain_value("", day.low), "high": plain_value("", day.high)}
        return {key: value for key, value in super().to_plain(what).items() if value != whole_day.get(key)}


@dataclass(frozen=True)
class Duration(Timed):
    """A column of lengths of time between public bounds. Values outside are clipped to them.

    Parameters
    ----------
    low, high : str, datetime.timedelta or numpy.timedelta64, optional
        The public bounds, both included, in whole steps; text such as ``"2 days 03:00:00"``. Default: they
        are found under privacy.
    unit : {"s", "m", "h", "D"}
        The unit: seconds, minutes, hours or days.
    step : str, optional
        As for `Datetime`.
    bins, nullable, missing
        As for `Numerical`.

    Examples
    --------
    >>> Duration("0:00", "1 day", unit="m").bounds
    (0.0, 1440.0)
    """

    low: str | timedelta | np.timedelta64 | None = None
    high: str | timedelta | np.timedelta64 | None = None
    unit: Literal["s", "m", "h", "D"] = field(default="s", kw_only=True)
    step: str | None = field(default=None, kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        one_of("unit", self.unit, tuple(SECONDS))
        normalise_shared(self)
        if self.step is not None:
            normalise(self, step=time_step(self.step, unit=self.unit, divides_day=False))
        low, high = both_or_neither(self.low, self.high)
        if low is None:
            return
        low, high = length_of_time(low), length_of_time(high)
        _check_units(low, high, self.unit)
        normalise(self, low=low, high=high)
        self.bounds  # noqa: B018  # as for `Time`

    @property
    def noun(self) -> str:
        """What is counted in which unit."""
        return f"lengths of time in {UNITS[self.unit]}{self.in_steps}"

    def number_of(self, value: Any) -> float:
        """Return the whole steps in a length of time."""
        return float(length_of_time(value) // timedelta(seconds=SECONDS[self.unit]))

    def make_encoder(self, dtype: Dtype, family: Family) -> DurationEncoder:
        """Return the encoder; refuse a dtype without lengths of time."""
        if family not in ("duration", "object"):
            raise InputError(f"{its(dtype)}, not lengths of time: convert it with pandas.to_timedelta")
        return DurationEncoder(self._grid, dtype, SECONDS[self.unit])

    def read_texts(self, texts: Sequence[str | None], csv_format: CsvFormat) -> pd.Series:
        """Return lengths of time; NaT for a text that is none."""
        seconds = span_seconds(texts)
        return pd.Series(np.nan_to_num(seconds).astype("timedelta64[s]")).mask(np.isnan(seconds))

    @property
    def limits(self) -> tuple[float, float]:
        """The longest length of time that every dtype can hold, of either sign."""
        most = float(LONGEST // timedelta(seconds=SECONDS[self.unit]))
        return -most, most

    def with_bounds(self, found: tuple[float, float] | None, *, whole: bool) -> Self:
        """Return the column with these bounds, by default none and one step."""
        unit = timedelta(seconds=SECONDS[self.unit])
        low, high = found or (0.0, 1.0)
        if self.grid_step is not None:
            low, high = multiples_around(low, high, self.grid_step, 0)
        return replace(self, low=unit * int(low), high=unit * int(high))


def _since_midnight(at: time) -> timedelta:
    return timedelta(hours=at.hour, minutes=at.minute, seconds=at.second)


def _check_units(low: timedelta, high: timedelta, unit: str) -> None:
    if low > high:
        raise InputError(f"low {low} is above high {high}")
    for bound in (low, high):
        if bound % timedelta(seconds=SECONDS[unit]):
            raise InputError(f"the bound {bound} is not a whole number of steps of unit {unit!r}")
