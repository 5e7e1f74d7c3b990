"""Encode dates, times of day and durations, in whole days or seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from privsyn.marginals.domain import Floats, Mask
from privsyn.table.encoding.dtypes import CALENDAR, TICKS, Dtype, family, tick, zone
from privsyn.table.encoding.encoders import OrderedEncoder
from privsyn.table.encoding.parsing import clock_seconds, moments, span_seconds
from privsyn.table.encoding.time_format import PANDAS_SPAN, POINT, SpanFormat, in_zone, spell_time
from privsyn.table.encoding.words import SECONDS_IN_A_DAY, date_range, number_range, span_range

Times = npt.NDArray[np.datetime64]

DAY_BEFORE, DAY_AFTER = np.array(CALENDAR, "datetime64[s]") + np.array([-1, 2], "timedelta64[D]")
"""A day before and after the calendar. Times outside count as missing; some programs write infinity so."""

CONVERTIBLE = np.array(["0001-01-03", "9999-12-29"], dtype="datetime64[s]")
"""Range of times that pandas can convert to any time zone; beyond, it fails."""

MIDNIGHT = datetime(1970, 1, 1)


@dataclass(frozen=True, eq=False)
class DatetimeEncoder(OrderedEncoder):
    """Encodes dates or times within bounds, in days or seconds since 1970 in the column's time zone."""

    unit: str
    format: str | None = None
    objects: Literal["text", "date", "datetime"] = "text"
    written_zone: str | None = None
    marks: tuple[np.datetime64, ...] = ()

    def range_words(self, low: float, high: float) -> str:
        """Return a range of dates as text, with the time of day if it is short."""
        return date_range(low, high, 1 if self.unit == "D" else SECONDS_IN_A_DAY)

    def distance_words(self, low: float, high: float) -> str:
        """Return a range of numbers of days, or of lengths of time, as text."""
        return number_range(low, high, 0) if self.unit == "D" else span_range(low, high)

    def read(self, cells: pd.Series) -> Floats:
        """Return days or seconds, rounded down; NaN for the dates that stand for none."""
        if family(cells.dtype) == "datetime":
            unit, times = tick(cells.dtype), instants(cells)
            if unit == "D":
                seconds = times.astype("datetime64[s]")
            else:  # down to whole seconds
                in_seconds = (times.astype(np.int64) // TICKS[unit]).astype("datetime64[s]")
                seconds = np.where(np.isnat(times), np.datetime64("NaT", "s"), in_seconds)
            seconds = self._near(self._without_marks(seconds))
            if zone(cells.dtype) is not None:  # from UTC to local time; beyond `CONVERTIBLE` as at its end
                inside = np.clip(seconds, *CONVERTIBLE)
                local = pd.Series(inside).dt.tz_localize("UTC").dt.tz_convert(zone(cells.dtype))
                seconds = local.dt.tz_localize(None).to_numpy() + (seconds - inside)
        else:
            seconds = self._without_marks(moments(cells.tolist(), self.format, self.written_zone))
        units = seconds.astype(f"datetime64[{self.unit}]")
        return np.where(np.isnat(units), np.nan, units.astype(np.int64))

    def _without_marks(self, seconds: Times) -> Times:
        """Return times, NaT for those that stand for none."""
        marks = np.array(self.marks, dtype="datetime64[s]")
        return np.where(np.isin(seconds, marks), np.datetime64("NaT", "s"), seconds)

    def _near(self, seconds: Times) -> Times:
        """Clip times to the bounds plus two days. No zone is that far from UTC, and no sum overflows.

        Times beyond the calendar become missing, each alone.
        """
        seconds = np.where((seconds < DAY_BEFORE) | (seconds > DAY_AFTER), np.datetime64("NaT", "s"), seconds)
        bounds = np.array([self.grid.low, self.grid.high]).astype(np.int64).astype(f"datetime64[{self.unit}]")
        low, high = bounds.astype("datetime64[s]") + np.array([-2, 2], dtype="timedelta64[D]")
        return np.clip(seconds, low, high)

    def decode(self, numbers: Floats, missing: Mask) -> pd.Series:
        """Return the times in the column's dtype; as text in a column of text, or of objects by default."""
        units = numbers.astype(np.int64).astype(f"datetime64[{self.unit}]")
        if family(self.dtype) in ("integer", "real"):  # of dates that are written as digits
            return _as_numbers(self._objects(units), self.dtype, missing)
        if family(self.dtype) != "datetime":
            return pd.Series(self._objects(units), dtype=self.dtype).mask(missing)
        times = pd.Series(units.astype("datetime64[s]")).mask(missing)
        if zone(self.dtype) is not None:  # skipped times move forward; the first of two equal times
            first = np.ones(len(times), dtype=bool)
            inside = times.clip(*CONVERTIBLE)
            local = inside.dt.tz_localize(zone(self.dtype), ambiguous=first, nonexistent="shift_forward")
            times = local + (times - inside)
        return times.astype(self.dtype)

    def _objects(self, units: Times) -> list[Any]:
        if family(self.dtype) == "object" and self.objects != "text":
            return units.astype("datetime64[D]" if self.objects == "date" else "datetime64[s]").tolist()
        if self.format is None:
            return np.datetime_as_string(units).tolist()
        times = units.astype("datetime64[s]").tolist()
        return [spell_time(in_zone(at, self.written_zone), self.format) for at in times]


def _as_numbers(texts: Sequence[str], dtype: Dtype, missing: Mask) -> pd.Series:
    """Return texts of digits in a dtype of numbers, without a way through floats for whole ones."""
    numbers = np.array([int(text.removesuffix(POINT)) for text in texts], np.int64)
    if family(dtype) == "real":
        return pd.Series(numbers.astype(np.float64), dtype=dtype).mask(missing)
    return pd.Series(numbers).astype(dtype).mask(missing)


def instants(cells: pd.Series) -> Times:
    """Return times in the dtype's unit, in UTC if they have a zone. Python's years end, so use integers."""
    if isinstance(cells.dtype, pd.ArrowDtype):
        width = pa.int32() if pa.types.is_date32(cells.dtype.pyarrow_dtype) else pa.int64()
        filled = pa.array(cells.array).cast(width).cast(pa.int64()).fill_null(np.iinfo(np.int64).min)  # NaT
        return filled.to_numpy().view(f"datetime64[{tick(cells.dtype)}]")
    zoned = zone(cells.dtype) is not None
    return (cells.dt.tz_convert("UTC").dt.tz_localize(None) if zoned else cells).to_numpy()


@dataclass(frozen=True, eq=False)
class _StepEncoder(OrderedEncoder):
    """Encodes times in steps of `step` seconds."""

    step: int

    def range_words(self, low: float, high: float) -> str:
        """Return a range of times as text."""
        return self.distance_words(low, high)

    def distance_words(self, low: float, high: float) -> str:
        """Return a range of lengths of time as text."""
        return span_range(low, high, self.step)


@dataclass(frozen=True, eq=False)
class DurationEncoder(_StepEncoder):
    """Encodes durations within bounds, in steps of `step` seconds."""

    form: SpanFormat | None = None

    def read(self, cells: pd.Series) -> Floats:
        """Return the whole steps in each duration."""
        if family(cells.dtype) != "duration":
            return np.floor(span_seconds(cells.tolist(), self.form) / self.step)
        if isinstance(cells.dtype, pd.ArrowDtype):
            return _steps(cells, cells.dtype.pyarrow_dtype.unit, self.step)
        ticks = cells.to_numpy()
        return np.where(
            np.isnat(ticks),
            np.nan,
            ticks.astype(np.int64) // (TICKS[np.datetime_data(ticks.dtype)[0]] * self.step),
        )

    def decode(self, numbers: Floats, missing: Mask) -> pd.Series:
        """Return the durations; Python's `timedelta` in a column of objects, and text in one of text."""
        seconds = numbers.astype(np.int64) * self.step
        if family(self.dtype) == "text" or (family(self.dtype) == "object" and self.form is not None):
            form = self.form or SpanFormat(PANDAS_SPAN)
            return pd.Series(list(map(form.spell, seconds.tolist())), dtype=self.dtype).mask(missing)
        if family(self.dtype) == "object":
            return pd.Series([timedelta(seconds=s) for s in seconds.tolist()], dtype=object).mask(missing)
        if isinstance(self.dtype, pd.ArrowDtype):
            drawn = pa.array(seconds, pa.duration("s"), mask=missing).cast(self.dtype.pyarrow_dtype)
            return pd.Series(pd.array(drawn, dtype=self.dtype))
        return pd.Series(seconds.astype("timedelta64[s]")).mask(missing).astype(self.dtype)


@dataclass(frozen=True, eq=False)
class TimeEncoder(_StepEncoder):
    """Encodes times of day within bounds, in steps of `step` seconds since midnight."""

    objects: Literal["time", "text"]
    format: str | None = None

    def read(self, cells: pd.Series) -> Floats:
        """Return the whole steps since midnight."""
        if family(cells.dtype) == "time":
            return _steps(cells, self.dtype.pyarrow_dtype.unit, self.step)
        return np.floor(clock_seconds(cells.tolist(), self.format) / self.step)

    def decode(self, numbers: Floats, missing: Mask) -> pd.Series:
        """Return the times; in a column of text as their format says, by default to the second."""
        seconds = numbers.astype(np.int64) * self.step
        if family(self.dtype) == "time":
            drawn = pa.array(seconds.astype(np.int32), pa.time32("s"), mask=missing)
            return pd.Series(pd.array(drawn.cast(self.dtype.pyarrow_dtype), dtype=self.dtype))
        times = [(MIDNIGHT + timedelta(seconds=s)).time() for s in seconds.tolist()]
        if family(self.dtype) == "object" and self.objects == "time" and self.format is None:
            return pd.Series(times, dtype=object).mask(missing)
        texts = [spell_time(datetime.combine(MIDNIGHT, at), self.format or "%H:%M:%S") for at in times]
        if family(self.dtype) in ("integer", "real"):
            return _as_numbers(texts, self.dtype, missing)
        return pd.Series(texts, dtype=self.dtype).mask(missing)


def _steps(cells: pd.Series, unit: str, step: int) -> Floats:
    """Return the whole steps in the ticks of an Arrow type; NaN where a cell is missing."""
    array = pa.array(cells.array)
    ticks = array.cast(pa.int32()).cast(pa.int64()) if array.type.bit_width == 32 else array.cast(pa.int64())
    steps = ticks.fill_null(0).to_numpy(zero_copy_only=False) // (TICKS[unit] * step)
    return np.where(cells.isna().to_numpy(), np.nan, steps)
