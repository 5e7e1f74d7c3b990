"""Datetime: a column of dates or times."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any, Literal, Self, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError, safe_repr
from privsyn.marginals.domain import Floats
from privsyn.table.encoding.bounds_cells import BoundsGrid
from privsyn.table.encoding.drafted_times import date_formats, fitting_zones
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
from privsyn.table.encoding.number_bounds import FEW_ROWS, coarsest_step
from privsyn.table.encoding.parsing import distinct, moments
from privsyn.table.encoding.steps import DAY, TIMES, step_text, time_step
from privsyn.table.encoding.time_encoders import DatetimeEncoder
from privsyn.table.encoding.time_format import (
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

SOME_YEARS, MANY_YEARS = 2, 10
"""Dates that range over at least 2 years are drafted with bounds at ends of half-years; from 10, of years."""

EARLIEST, LATEST = 1800, 2200
"""Years between which dates are taken for dates: 9999-12-31 and 0001-01-01 usually stand for no date."""

MOST_MARKS, LEAST_BESIDE = 3, 5
"""Most marks for no date, and how many times as many dates there are as different ones of other years."""

PERIODS = {1: "month", 6: "half-year", 12: "year"}

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

    def at(self, since: timedelta) -> datetime:
        """Return the date; the first or the last one of the calendar beyond it."""
        return EPOCH + min(max(since, datetime.min - EPOCH), datetime.max.replace(microsecond=0) - EPOCH)

    def with_bounds(self, found: tuple[float, float] | None, *, whole: bool) -> Self:
        """Return the column with these bounds, by default January 1970."""
        unit = self.unit or "D"
        if found is None:
            return replace(self, low="1970-01-01", high="1970-01-31", unit=unit)
        low, high = np.array(found).astype(np.int64).astype(f"datetime64[{unit}]")
        return replace(self, low=low, high=high, unit=unit)

    @classmethod
    def draft(cls, present: pd.Series, nullable: bool, known: Collection[str | None] = ()) -> Self | None:
        """Return a column for dates or times, with bounds at ends of months, half-years or years.

        `known` are formats of other columns: they say which number is the day if the cells do not.
        """
        kind = family(present.dtype)
        if present.empty or kind not in ("datetime", "text", "object", "integer", "real"):
            return None
        formats = date_formats(present)
        if len(formats) > 1:
            read_alike = {standard(pattern) for pattern in known if pattern is not None}
            formats = [pattern for pattern in formats if pattern and standard(pattern) in read_alike]
        if len(formats) != 1:
            return None
        pattern, zone = formats[0], None
        if pattern is not None and has_offset(pattern):
            zone = next(iter(fitting_zones(present, pattern)), "UTC")
        counts = present.value_counts(sort=False)
        read = moments(counts.index.tolist(), pattern, zone)
        years = read.astype("datetime64[Y]").astype(np.int64) + 1970
        unread, far = np.isnat(read), (years < EARLIEST) | (years > LATEST)
        far = far & ~unread if LEAST_BESIDE * (far & ~unread).sum() < (~far).sum() else np.zeros_like(far)
        are_days = (read[~unread] == read[~unread].astype("datetime64[D]")).all()
        length = 10 if are_days else 19  # strftime writes the year 1 as 1
        common = np.sort(read[far & (counts >= FEW_ROWS)]).tolist()
        marks = [
            at.isoformat(" ")[:length] if pattern is None else _spelled(pattern, zone, at) for at in common
        ]
        if kind in ("integer", "real"):
            marks += [f"{int(number)}" for number in counts.index[unread & (counts >= FEW_ROWS)]]
        settings: dict[str, Any] = {"format": pattern, "missing": marks[:MOST_MARKS]}
        settings["nullable"] = nullable or bool((unread | far).any())
        read = read[~unread & ~far]
        low, last = _around(read.min(), read.max())
        if _shows_days(pattern) or (read == read.astype("datetime64[D]")).all():
            return cls(low, last, **settings)
        step = coarsest_step(read.astype("datetime64[s]").astype(np.float64), TIMES, 2)
        high = datetime.combine(last, time(23, 59, 59))
        text = None if step is None else step_text(int(step))
        return cls(low, high, step=text, zone=zone, **settings)

    @property
    def data_type(self) -> str:
        """Whether the dates have times."""
        return "Date" if self.unit == "D" else "DateTime"

    def like(self, other: Self) -> Self:
        """Return the column with the bounds and the unit of another one."""
        return replace(self, low=other.low, high=other.high, unit=other.unit)

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
        places, found = distinct(cells)
        seconds = self._moments(found)
        days = np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64) / DAY)
        return np.append(days, np.nan)[places]

    def own_grid(self, dtype: Dtype) -> Grid:
        """Return the grid of the encoder."""
        return self._grid

    def grid_around(self, low: float, high: float, *, whole: bool) -> Grid:
        """Return the grid of the days."""
        return plain_grid(np.floor(low), np.floor(high), whole=True, bins=self.bins)

    def facts_read(self, cells: pd.Series) -> list[str]:
        """Return the format, the years and the step."""
        offsets = f"the offsets are those of {self.zone}, and perhaps of other zones"
        return [
            *([] if self.format is None else ["format"]),
            *([] if self.zone is None else [offsets]),
            f"first and last {PERIODS[_months_between(*self._ends(cells))]}",
            *([] if self.step is None else [f"all multiples of {self.step}"]),
        ]

    def _ends(self, cells: pd.Series) -> tuple[np.datetime64, np.datetime64]:
        """Return the first and the last date within the bounds."""
        seconds = self.numbers(cells)
        low, high = (self.since(bound).total_seconds() for bound in (self.low, self.high))
        inside = seconds[(seconds >= low) & (seconds <= high)]
        first, last = (inside.min(), inside.max()) if len(inside) else (low, high)
        return np.datetime64(int(first), "s"), np.datetime64(int(last), "s")

    def numbers(self, cells: pd.Series) -> Floats:
        """Return the seconds since 1970."""
        codes, values = pd.factorize(cells)
        read = self._moments(pd.Index(values).tolist())
        seconds = np.append(read, np.datetime64("NaT", "s")).astype("datetime64[s]")[codes]
        return np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64).astype(np.float64))

    def make_encoder(self, dtype: Dtype, family: Family) -> DatetimeEncoder:
        """Return the encoder; refuse a dtype without dates, or one that cannot hold the bounds."""
        if family in ("integer", "real") and is_of_digits(self.format):
            self._check_digits(dtype)
        elif family not in ("datetime", "text", "object"):
            raise InputError(f"{its(dtype)}, not dates: convert it with pandas.to_datetime")
        bounds = np.array([self.low, self.high], dtype="datetime64[s]")
        ticks = TICKS.get(tick(dtype), 1) if family == "datetime" else 1
        if max(map(abs, bounds.astype(np.int64).tolist())) >= 2**63 // ticks:
            raise InputError(f"{its(dtype)}, which cannot hold the bounds {bounds[0]} to {bounds[1]}")
        marks = tuple(self._moments([text])[0] for text in self.missing)
        return DatetimeEncoder(self._grid, dtype, str(self.unit), self.format, self.objects, self.zone, marks)

    def _check_digits(self, dtype: Dtype) -> None:
        """Refuse a dtype of numbers that cannot hold dates that are written as digits."""
        digits = len(spell_time(EPOCH, cast(str, self.format)))
        number = number_type(dtype)
        most = np.iinfo(number).max if number.kind in "iu" else 2 ** (np.finfo(number).nmant + 1)
        if 10**digits > most:
            raise InputError(f"{its(dtype)}, too small for dates of {digits} digits")

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
        return as_texts(cells, cells.map(partial(_spelled, self.format, self.zone), na_action="ignore"))

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
        days_only = self.unit is not None or holds_days(dtype) or _shows_days(self.format)
        return filled if days_only else filled._with_times()

    def _with_times(self) -> Self:
        """Return a column of dates with the times of its days, in seconds."""
        low, high = cast(datetime, self.low), cast(datetime, self.high)
        return replace(self, low=low, high=datetime.combine(high, time(23, 59, 59)), unit="s", step=None)

    def on_lattice(self, step: float, dtype: Dtype) -> Self | None:
        """Return the column with this step, in the units of the column; dates without times are days."""
        return super().on_lattice(step, dtype) if self.unit != "D" else None

    def to_plain(self, what: str) -> dict[str, Any]:
        """Leave out a unit that follows from the bounds and the step."""
        plain = super().to_plain(what)
        if (self.is_public or self.step) and Datetime(self.low, self.high, step=self.step).unit == self.unit:
            del plain["unit"]
        return plain


def _shows_days(pattern: str | None) -> bool:
    """Return whether dates in this format have no time of day."""
    return pattern is not None and not any(hour in standard(pattern) for hour in ("%H", "%I"))


def _spelled(pattern: str, zone: str | None, at: datetime) -> str:
    moment = at.to_pydatetime(warn=False) if isinstance(at, pd.Timestamp) else at
    return spell_time(in_zone(moment, zone), pattern)


def _months_between(first: np.datetime64, last: np.datetime64) -> int:
    """Return the months to whose ends bounds around two dates are rounded."""
    years = (last - first) / np.timedelta64(365, "D")
    return 1 if years < SOME_YEARS else 6 if years < MANY_YEARS else 12


def _around(first: np.datetime64, last: np.datetime64) -> tuple[datetime, datetime]:
    """Return the first day of the first month, half-year or year, and the last day of the last one.

    >>> _around(np.datetime64("2019-10-02"), np.datetime64("2020-03-28"))
    (datetime.datetime(2019, 10, 1, 0, 0), datetime.datetime(2020, 3, 31, 0, 0))
    >>> _around(np.datetime64("2014-10-17"), np.datetime64("9999-12-31"))
    (datetime.datetime(2014, 1, 1, 0, 0), datetime.datetime(9999, 12, 31, 0, 0))
    """
    months = _months_between(first, last)
    # The months are counted from January 1970, so half-years and years begin at their multiples.
    low = first.astype("datetime64[M]").astype(np.int64) // months * months
    high = last.astype("datetime64[M]").astype(np.int64) // months * months + months
    ends = np.array([low, high]).astype("datetime64[M]").astype("datetime64[D]") - np.array([0, 1])
    first_day, last_day = ends.astype("datetime64[s]").tolist()
    return first_day, last_day
