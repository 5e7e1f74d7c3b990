"""Datetime: a column of dates or times."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from privsyn.errors import InputError, safe_repr
from privsyn.marginals.domain import Floats
from privsyn.table.encoding.bounds_cells import BoundsGrid
from privsyn.table.encoding.dtypes import (
    TICKS,
    Dtype,
    Family,
    days_of,
    family,
    holds_days,
    its,
    number_type,
    tick,
)
from privsyn.table.encoding.grid import Grid
from privsyn.table.encoding.parsing import distinct, moments
from privsyn.table.encoding.steps import DAY, time_step
from privsyn.table.encoding.time_encoders import DatetimeEncoder
from privsyn.table.encoding.time_format import (
    POINT,
    has_offset,
    in_zone,
    is_of_digits,
    spell_time,
    standard,
    zone_of,
)
from privsyn.table.kinds import column_settings as settings
from privsyn.table.kinds.csv_format import CsvFormat, as_texts
from privsyn.table.kinds.ordinal import plain_grid
from privsyn.table.kinds.times import Timed

EPOCH = datetime(1970, 1, 1)

FOUR_DIGITS = 1000
"""The first year that `strftime` of every platform writes with four digits."""

CYCLES: tuple[list[str], ...] = ([], ["day"], ["day", "week"])

LEAST_WEEKS = 8
"""In a shorter range of times the cells of the dates are single days."""

LEAST_DAYS = 7
"""A shorter range of times has few cells in a day, and stays one attribute."""


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
        a step below a day. A column that a constraint names is one attribute, unless the other columns of an
        `Increasing` are measured from it, and no other constraint names them.
    format : str, optional
        How dates are written in a column of text or in a CSV, in the terms of ``datetime.strftime``, such as
        ``"%d.%m.%Y"``. ``%-d``, ``%-m``, ``%-H`` and ``%-I`` have no leading zeros, ``%P`` is am or pm
        in small letters, ``%:z`` an offset such as +02:00, and ``%L`` milliseconds. A format of digits alone,
        such as ``"%Y%m%d"``, also reads a column of numbers. Default: ISO form.
    zone : str, optional
        The zone of times with an offset, such as ``"Europe/Berlin"``, ``"UTC"`` or ``"+02:00"``. They
        are counted on its clock. It needs a `format` with ``%z`` or ``%:z``, and such a format needs a zone.
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
    zone: str | None = field(default=None, kw_only=True)
    objects: Literal["text", "date", "datetime"] = field(default="text", kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        settings.normalise_shared(self)
        settings.one_of("objects", self.objects, ("text", "date", "datetime"))
        if self.cycles is not None:
            if isinstance(self.cycles, str) or [*self.cycles] not in CYCLES:
                raise InputError(f"cycles are [day, week], [day] or [], not {safe_repr(self.cycles)}")
            settings.normalise(self, cycles=tuple(self.cycles))
        if self.format is not None:
            settings.normalise(self, format=settings.date_format(self.format))
        if self.zone is not None:
            zone_of(self.zone)
        if has_offset(self.format) != (self.zone is not None):
            raise InputError(
                "times with an offset need both, a format with %z or %:z, and a zone such as Europe/Berlin"
            )
        if self.unit is not None:
            settings.one_of("unit", self.unit, ("D", "h", "min", "s"))
        if self.unit in ("h", "min"):
            settings.normalise(self, step=f"1{self.unit}" if self.step is None else self.step, unit="s")
        if self.step is not None:
            settings.normalise(self, step=time_step(self.step, unit=self.unit))
        low, high = settings.both_or_neither(self.low, self.high)
        if low is None:
            if self.step is not None:
                settings.normalise(self, unit=self.unit or ("D" if self.step == "1d" else "s"))
            return
        low, high = settings.time_bounds(low, high)
        dates_only = low.time() == high.time() == time()
        if self.unit == "D" and not dates_only:
            raise InputError("unit 'D' needs bounds without a time of day")
        whole_days = dates_only and self.step in (None, "1d")
        settings.normalise(self, low=low, high=high, unit=self.unit or ("D" if whole_days else "s"))
        self.bounds  # noqa: B018  # refuses bounds without a multiple of the step

    @property
    def noun(self) -> str:
        """Whether the dates have a time of day."""
        noun = "dates" if self.unit in ("D", None) else "dates with a time of day"
        return f"{noun}{self.in_steps}"

    def since(self, value: Any) -> timedelta:
        """Return the time since 1970."""
        return settings.time_bounds(value, value)[0] - EPOCH

    def constant_of(self, value: Any) -> Any:
        """Return a date in ISO form that is written in the format of the column; others as they are.

        Text that ISO reads is ISO, as in a schema.

        >>> column = Datetime("2020-01-01", "2021-12-31", format="%d.%m.%Y")
        >>> column.constant_of("31.12.2020"), column.constant_of("2020-12-31"), column.constant_of("soon")
        ('2020-12-31', '2020-12-31', 'soon')
        >>> Datetime("2020-01-01", "2021-12-31", format="%Y%m%d").constant_of(20201231)
        '2020-12-31'
        """
        is_number = isinstance(value, int) and not isinstance(value, bool) and is_of_digits(self.format)
        if self.format is None or not (isinstance(value, str) or is_number):
            return value
        with suppress(InputError):
            self.since(value)
            return value
        moment = self._moments([str(value)])[0]
        if np.isnat(moment):
            return value
        return str(moment.astype("datetime64[D]") if shows_days(self.format) else moment)

    def value_of(self, text: str) -> Any:
        """Return the time that a text means, in ISO form or in the format of the column."""
        return self.constant_of(text)

    def at(self, since: timedelta) -> datetime:
        """Return the date; the first or the last one of the calendar beyond it."""
        return EPOCH + min(max(since, datetime.min - EPOCH), datetime.max.replace(microsecond=0) - EPOCH)

    def with_bounds(self, bounds: tuple[float, float] | None, *, integers: bool) -> Self:
        """Return the column with these bounds, by default January 1970."""
        unit = self.unit or "D"
        if bounds is None:
            return replace(self, low="1970-01-01", high="1970-01-31", unit=unit)
        low, high = np.array(bounds).astype(np.int64).astype(f"datetime64[{unit}]")
        return replace(self, low=low, high=high, unit=unit)

    @property
    def data_type(self) -> str:
        """Whether the dates have times."""
        return "Date" if self.unit == "D" else "DateTime"

    def like(self, column: Self) -> Self:
        """Return the column with the bounds and the unit of another one."""
        return replace(self, low=column.low, high=column.high, unit=column.unit)

    def high_end(self, value: Any) -> Any:
        """Return the last second of a day that the high end of a range names without a time."""
        if self.unit != "s":
            return value
        if isinstance(value, str) and len(value.strip()) == len("2020-12-31"):
            return f"{value.strip()} 23:59:59"
        return datetime.combine(value, time(23, 59, 59)) if type(value) is date else value

    compared_as = "date"

    def measured(self, cells: pd.Series) -> Floats:
        """Return the cells as days since 1970 in local time, as written."""
        indices, values = distinct(cells)
        seconds = self._moments(values)
        days = np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64) / DAY)
        return np.append(days, np.nan)[indices]

    def own_grid(self, dtype: Dtype) -> Grid:
        """Return the grid of the encoder."""
        return self._grid

    def grid_around(self, low: float, high: float, *, integers: bool) -> Grid:
        """Return the grid of the days."""
        return plain_grid(np.floor(low), np.floor(high), integers=True, bins=self.bins)

    def numbers(self, cells: pd.Series) -> Floats:
        """Return the seconds since 1970."""
        codes, values = pd.factorize(cells)
        read = self._moments(pd.Index(values).tolist())
        seconds = np.append(read, np.datetime64("NaT", "s")).astype("datetime64[s]")[codes]
        return np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64).astype(np.float64))

    def make_encoder(self, dtype: Dtype, family: Family) -> DatetimeEncoder:
        """Return the encoder; refuse a dtype without dates, or one that cannot hold the bounds."""
        if family in ("integer", "real") and is_of_digits(self.format):
            digits = len(spell_time(EPOCH, str(self.format)).removesuffix(POINT))
            number = number_type(dtype)
            largest = np.iinfo(number).max if number.kind in "iu" else 2 ** (np.finfo(number).nmant + 1)
            if 10**digits > largest:
                raise InputError(f"{its(dtype)}, too small for dates of {digits} digits")
        elif family not in ("datetime", "text", "object"):
            raise InputError(f"{its(dtype)}, not dates: convert it with pandas.to_datetime")
        bounds = np.array([self.low, self.high], dtype="datetime64[s]")
        ticks = TICKS.get(tick(dtype), 1) if family == "datetime" else 1
        if max(map(abs, bounds.astype(np.int64).tolist())) >= 2**63 // ticks:
            raise InputError(f"{its(dtype)}, which cannot hold the bounds {bounds[0]} to {bounds[1]}")
        marks = tuple(self._moments([text])[0] for text in self.missing)
        return DatetimeEncoder(self._grid, dtype, str(self.unit), self.format, self.objects, self.zone, marks)

    def as_typed(self, cells: pd.Series) -> pd.Series:
        """Return texts, or numbers of digits, as dates."""
        return pd.Series(pd.to_datetime(self.numbers(cells), unit="s"), cells.index)

    def _moments(self, cells: Sequence[object]) -> np.ndarray:
        return moments(cells, self.format, self.zone)

    def read_texts(self, texts: Sequence[str | None], csv_format: CsvFormat) -> pd.Series:
        """Return dates; NaT for a text that is none."""
        return pd.Series(self._moments(texts))

    def write_texts(self, cells: pd.Series, csv_format: CsvFormat) -> pd.Series:
        """Return dates as text in the format of the column."""
        if self.format is None or family(cells.dtype) != "datetime":
            return super().write_texts(cells, csv_format)
        if self.zone is None and standard(self.format) == self.format and cells.dt.year.min() >= FOUR_DIGITS:
            return as_texts(cells, cells.dt.strftime(self.format))
        return as_texts(cells, cells.map(partial(spell_date, self.format, self.zone), na_action="ignore"))

    @property
    def counted_cycles(self) -> tuple[str, ...]:
        """The day and the week, or those that the schema names, if a step below a day and the range allow."""
        low, high = self.bounds
        is_short = high - low <= LEAST_DAYS * DAY
        if self.cycles == () or self.unit != "s" or (self.grid_step or 1) >= DAY or is_short:
            return ()
        return tuple(self.cycles or ("day", "week")[: 1 + (high - low > LEAST_WEEKS * 7 * DAY)])

    def bounds_cells(self, dtype: Dtype) -> BoundsGrid:
        """Return the months, decades and centuries in which dates are counted."""
        return BoundsGrid.dates(self.unit or "D", *days_of(dtype))

    def widest(self, dtype: Dtype) -> Self:
        """Return the column with bounds from the first to the last day that the dtype can hold."""
        low, high = days_of(dtype)
        return replace(self, low=low, high=high, unit=self.unit or "D")

    def finest(self, filled: Self, dtype: Dtype) -> Self:
        """Return the completed column; with the times of its days if nothing says that it has none."""
        days_only = self.unit is not None or holds_days(dtype) or shows_days(self.format)
        if days_only:
            return filled
        last: Any = filled.high
        return replace(filled, high=datetime.combine(last, time(23, 59, 59)), unit="s", step=None)

    def on_lattice(self, step: float, dtype: Dtype) -> Self | None:
        """Return the column with this step, in the units of the column; dates without times are days."""
        return super().on_lattice(step, dtype) if self.unit != "D" else None

    def to_plain(self, subject: str) -> dict[str, Any]:
        """Leave out a unit that follows from the bounds and the step."""
        plain = super().to_plain(subject)
        if (self.is_public or self.step) and Datetime(self.low, self.high, step=self.step).unit == self.unit:
            del plain["unit"]
        return plain


def shows_days(pattern: str | None) -> bool:
    """Return whether dates in this format have no time of day."""
    return pattern is not None and not any(hour in standard(pattern) for hour in ("%H", "%I"))


def spell_date(pattern: str, zone: str | None, at: datetime) -> str:
    """Return a date as text in a format, on the clock of a zone."""
    moment = at.to_pydatetime(warn=False) if isinstance(at, pd.Timestamp) else at
    return spell_time(in_zone(moment, zone), pattern)
