"""Kinds of column that are times: what all have, times of day and lengths of time. Dates are in `dates`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError, about, safe_repr
from privsyn.marginals.domain import Floats
from privsyn.table.encoding import steps
from privsyn.table.encoding.dtypes import Dtype, Family, family, its
from privsyn.table.encoding.grid import Grid
from privsyn.table.encoding.parsing import clock_seconds, span_seconds
from privsyn.table.encoding.time_encoders import MIDNIGHT, DurationEncoder, TimeEncoder
from privsyn.table.encoding.time_format import SpanFormat, is_of_digits, spell_time
from privsyn.table.kinds import column_settings as settings
from privsyn.table.kinds.csv_format import CsvFormat, as_texts
from privsyn.table.kinds.ordinal import Ordinal

UNITS = {"s": "whole seconds", "m": "whole minutes", "h": "whole hours", "D": "whole days"}


class Timed(Ordinal):
    """A column of times, which are whole units, and multiples of a step if one is given."""

    unit: Any
    step: Any

    @abstractmethod
    def since(self, value: Any) -> timedelta:
        """Return the time from where the clock begins to a value; refuse a value of another kind."""

    @abstractmethod
    def at(self, since: timedelta) -> Any:
        """Return the value that long after the clock begins."""

    def number_of(self, value: Any) -> float:
        """Return the whole units since the clock began."""
        return float(self.since(value) // self._unit)

    def neighbour(self, value: Any, by: int) -> Any:
        """Return the value of one unit before or after."""
        return self.at(self.since(value) + by * self._unit)

    @property
    def _unit(self) -> timedelta:
        return timedelta(seconds=steps.SECONDS[self.unit or "D"])

    @property
    def in_steps(self) -> str:
        """The step in words, after a noun; empty if there is none."""
        return "" if self.step is None else f" in steps of {self.step}"

    @property
    def scale(self) -> float:
        """The seconds in a unit."""
        return float(steps.SECONDS[self.unit or "s"])

    @property
    def grid_step(self) -> float | None:
        """The units in a step."""
        return None if self.step is None else steps.step_seconds(self.step) / self.scale

    def lattices(self, dtype: Dtype) -> tuple[steps.Lattice, ...]:
        """Return the days, hours, minutes and parts of them that are coarser than the unit and the step."""
        return steps.coarser(
            [steps.Lattice(lattice.step / self.scale) for lattice in steps.TIMES], self.grid_step or 1.0
        )

    def on_lattice(self, step: float, dtype: Dtype) -> Self | None:
        """Return the column with this step."""
        return replace(self, step=steps.step_text(round(step * self.scale)))

    @property
    def _grid(self) -> Grid:
        return Grid.exact(*self.bounds, decimals=0, bins=self.bins, step=self.grid_step)


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
    format : str, optional
        How times are written in a column of text, or of whole numbers, or in a CSV, such as ``"%H:%M"`` or
        ``"%-I:%M %p"``, as for `Datetime`. Default: ``08:30:00``.
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
    format: str | None = field(default=None, kw_only=True)
    objects: Literal["time", "text"] = field(default="time", kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        settings.one_of("unit", self.unit, ("s", "m", "h"))
        settings.one_of("objects", self.objects, ("time", "text"))
        settings.normalise_shared(self)
        if self.format is not None:
            settings.normalise(self, format=settings.clock_format(self.format))
        if self.step is not None:
            settings.normalise(self, step=steps.time_step(self.step, unit=self.unit))
        last = timedelta(days=1, seconds=-steps.SECONDS[self.unit])
        low = settings.clock_time("00:00" if self.low is None else self.low)
        high = settings.clock_time(str(last) if self.high is None else self.high)
        _check_units(_since_midnight(low), _since_midnight(high), self.unit)
        settings.normalise(self, low=low, high=high)
        self.bounds  # noqa: B018  # refuses bounds without a multiple of the step

    def neighbour(self, value: Any, by: int) -> time:
        """Return the time of one unit before or after; refuse one on another day."""
        with about(f"{safe_repr(value)} is at the end of the day"):
            moved: time = super().neighbour(value, by)
            return moved

    @property
    def noun(self) -> str:
        """What is counted in which unit."""
        return f"times of day in {UNITS[self.unit]}{self.in_steps}"

    def since(self, value: Any) -> timedelta:
        """Return the time since midnight."""
        return _since_midnight(settings.clock_time(value))

    def at(self, since: timedelta) -> time:
        """Return the time of day."""
        return settings.clock_time(str(since))

    def as_typed(self, cells: pd.Series) -> pd.Series:
        """Return texts as times of day."""
        return self._times(clock_seconds(cells.tolist(), self.format)).set_axis(cells.index)

    def make_encoder(self, dtype: Dtype, family: Family) -> TimeEncoder:
        """Return the encoder; refuse a dtype without times of day."""
        digits = family in ("integer", "real") and is_of_digits(self.format)
        if family not in ("time", "text", "object") and not digits:
            raise InputError(f"{its(dtype)}, not times of day: convert it to text such as 08:30")
        return TimeEncoder(self._grid, dtype, steps.SECONDS[self.unit], self.objects, self.format)

    def read_texts(self, texts: Sequence[str | None], csv_format: CsvFormat) -> pd.Series:
        """Return times of day; missing for a text that is none."""
        return self._times(clock_seconds(texts, self.format))

    def _times(self, seconds: Floats) -> pd.Series:
        times = pa.array(np.nan_to_num(seconds).astype(np.int32), pa.time32("s"), mask=np.isnan(seconds))
        return pd.Series(pd.array(times, dtype=pd.ArrowDtype(pa.time32("s"))))

    def write_texts(self, cells: pd.Series, csv_format: CsvFormat) -> pd.Series:
        """Return times as text in the format of the column."""
        pattern = self.format
        if pattern is None or family(cells.dtype) != "time":
            return super().write_texts(cells, csv_format)

        def spelled(at: time) -> str:
            return spell_time(datetime.combine(MIDNIGHT, at), pattern)

        return as_texts(cells, cells.map(spelled, na_action="ignore"))

    def to_plain(self, subject: str) -> dict[str, Any]:
        """Leave out the bounds of a whole day."""
        day = Time(unit=self.unit)
        whole_day = {"low": settings.plain_value("", day.low), "high": settings.plain_value("", day.high)}
        return {key: value for key, value in super().to_plain(subject).items() if value != whole_day.get(key)}


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
    format : str, optional
        How lengths are written in a column of text or in a CSV, in days ``%D``, hours ``%H``, minutes ``%M``
        and seconds ``%S``: ``"%-H:%M:%S"`` for 26:03:04, ``"%-Mm %-Ss"`` for 90m 5s, or ``"ISO 8601"`` for
        PT1H30M. The largest of them has all the time that smaller ones leave. Default: ``1 days 02:03:04``.
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
    format: str | None = field(default=None, kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        settings.one_of("unit", self.unit, tuple(steps.SECONDS))
        settings.normalise_shared(self)
        if self.form is not None and self.form.step > steps.SECONDS[self.unit]:
            raise InputError(f"format {safe_repr(self.format)} leaves out units of {self.unit!r}")
        if self.step is not None:
            settings.normalise(self, step=steps.time_step(self.step, unit=self.unit, divides_day=False))
        low, high = settings.both_or_neither(self.low, self.high)
        if low is None:
            return
        low, high = settings.length_of_time(low), settings.length_of_time(high)
        _check_units(low, high, self.unit)
        settings.normalise(self, low=low, high=high)
        self.bounds  # noqa: B018  # as for `Time`

    @property
    def form(self) -> SpanFormat | None:
        """How lengths are written as text; None if as pandas does."""
        return None if self.format is None else SpanFormat(self.format)

    @property
    def noun(self) -> str:
        """What is counted in which unit."""
        return f"lengths of time in {UNITS[self.unit]}{self.in_steps}"

    def since(self, value: Any) -> timedelta:
        """Return the length of time itself."""
        return settings.length_of_time(value)

    def at(self, since: timedelta) -> timedelta:
        """Return the length of time."""
        return since

    def as_typed(self, cells: pd.Series) -> pd.Series:
        """Return texts as lengths of time."""
        return _spans(span_seconds(cells.tolist(), self.form)).set_axis(cells.index)

    def make_encoder(self, dtype: Dtype, family: Family) -> DurationEncoder:
        """Return the encoder; refuse a dtype without lengths of time."""
        if family not in ("duration", "text", "object"):
            raise InputError(f"{its(dtype)}, not lengths of time: convert it with pandas.to_timedelta")
        return DurationEncoder(self._grid, dtype, steps.SECONDS[self.unit], self.form)

    def read_texts(self, texts: Sequence[str | None], csv_format: CsvFormat) -> pd.Series:
        """Return lengths of time; NaT for a text that is none."""
        return _spans(span_seconds(texts, self.form))

    def write_texts(self, cells: pd.Series, csv_format: CsvFormat) -> pd.Series:
        """Return lengths as text in the format of the column."""
        form = self.form
        if form is None or family(cells.dtype) != "duration":
            return super().write_texts(cells, csv_format)
        seconds = cells.dt.total_seconds()
        return as_texts(cells, seconds.map(form.spell, na_action="ignore"))

    @property
    def limits(self) -> tuple[float, float]:
        """The longest length of time that every dtype can hold, of either sign."""
        longest = float(settings.LONGEST // timedelta(seconds=steps.SECONDS[self.unit]))
        return -longest, longest

    def with_bounds(self, bounds: tuple[float, float] | None, *, integers: bool) -> Self:
        """Return the column with these bounds, by default none and one step."""
        unit = timedelta(seconds=steps.SECONDS[self.unit])
        low, high = bounds or (0.0, 1.0)
        if self.grid_step is not None:
            low, high = steps.multiples_around(low, high, self.grid_step, 0)
        return replace(self, low=unit * int(low), high=unit * int(high))


def _spans(seconds: Floats) -> pd.Series:
    """Return seconds as lengths of time, NaT for NaN. Longer ones than any bound are clipped, each alone.

    NumPy would warn of a text with too many digits, and make any length of it.
    """
    longest = settings.LONGEST.total_seconds()
    lengths = np.clip(np.nan_to_num(seconds), -longest, longest).astype("timedelta64[s]")
    return pd.Series(lengths).mask(np.isnan(seconds))


def _since_midnight(at: time) -> timedelta:
    return timedelta(hours=at.hour, minutes=at.minute, seconds=at.second)


def _check_units(low: timedelta, high: timedelta, unit: str) -> None:
    if low > high:
        raise InputError(f"low {low} is above high {high}")
    for bound in (low, high):
        if bound % timedelta(seconds=steps.SECONDS[unit]):
            raise InputError(f"the bound {bound} is not a whole number of steps of unit {unit!r}")
