"""The coder of dates and times, in whole days or seconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from privsyn.marginals.types import Floats, Mask
from privsyn.table.encoding.dtypes import TICKS, family, tick, zone
from privsyn.table.encoding.encoders import OrderedEncoder
from privsyn.table.encoding.parsing import clock_seconds, moments, span_seconds

Times = npt.NDArray[np.datetime64]

CALENDAR = np.array(["0001-01-03", "9999-12-29"], dtype="datetime64[s]")
"""Between these a time can be put on the clock of any zone; beyond, pandas fails."""

MIDNIGHT = datetime(1970, 1, 1)


@dataclass(frozen=True, eq=False)
class DatetimeEncoder(OrderedEncoder):
    """Dates or times between bounds, in days or seconds since 1970 on the clock of the column's own zone."""

    unit: str
    format: str | None = None
    objects: Literal["text", "date", "datetime"] = "text"

    def read(self, cells: pd.Series) -> Floats:
        """The days or seconds, what is finer being cut off."""
        if family(cells.dtype) == "datetime":
            seconds = self._near(_instants(cells))
            if zone(cells.dtype) is not None:
                seconds = _on_the_wall(seconds, zone(cells.dtype))
        else:
            seconds = moments(cells.tolist(), self.format)
        units = seconds.astype(f"datetime64[{self.unit}]")
        return np.where(np.isnat(units), np.nan, units.astype(np.int64))

    def _near(self, seconds: Times) -> Times:
        """Times moved to the bounds but for two days: no clock is that far from UTC, and no sum overflows."""
        bounds = np.array([self.grid.low, self.grid.high]).astype(np.int64).astype(f"datetime64[{self.unit}]")
        low, high = bounds.astype("datetime64[s]") + np.array([-2, 2], dtype="timedelta64[D]")
        return np.clip(seconds, low, high)

    def cells(self, numbers: Floats, missing: Mask) -> pd.Series:
        """The times; in a column of text, and of objects unless they are more, as text."""
        units = numbers.astype(np.int64).astype(f"datetime64[{self.unit}]")
        if family(self.dtype) != "datetime":
            return pd.Series(self._objects(units), dtype=self.dtype).mask(missing)
        times = pd.Series(units.astype("datetime64[s]")).mask(missing)
        if zone(self.dtype) is not None:  # a time that the clock skips moves forward; of two alike, the first
            first = np.ones(len(times), dtype=bool)
            times = times.dt.tz_localize(zone(self.dtype), ambiguous=first, nonexistent="shift_forward")
        return times.astype(self.dtype)

    def _objects(self, units: Times) -> list[Any]:
        if family(self.dtype) == "object" and self.objects != "text":
            return units.astype("datetime64[D]" if self.objects == "date" else "datetime64[s]").tolist()
        if self.format is None:
            return np.datetime_as_string(units).tolist()
        return [at.strftime(self.format) for at in units.tolist()]


def _instants(cells: pd.Series) -> Times:
    """Dates or times in whole seconds, in UTC if they have a zone. Through integers: Python's years end."""
    unit = tick(cells.dtype)
    if isinstance(cells.dtype, pd.ArrowDtype):
        whole = pa.int32() if pa.types.is_date32(cells.dtype.pyarrow_dtype) else pa.int64()
        filled = pa.array(cells.array).cast(whole).cast(pa.int64()).fill_null(np.iinfo(np.int64).min)  # NaT
        times = filled.to_numpy().view(f"datetime64[{unit}]")
    else:
        zoned = zone(cells.dtype) is not None
        times = (cells.dt.tz_convert("UTC").dt.tz_localize(None) if zoned else cells).to_numpy()
    if unit == "D":
        return times.astype("datetime64[s]")
    seconds = times.astype(np.int64) // TICKS[unit]
    return np.where(np.isnat(times), np.datetime64("NaT", "s"), seconds.astype("datetime64[s]"))


def _on_the_wall(seconds: Times, zone: Any) -> Times:
    """What the clock of a zone shows at times of UTC, within the calendar."""
    times = pd.Series(np.clip(seconds, *CALENDAR))
    return times.dt.tz_localize("UTC").dt.tz_convert(zone).dt.tz_localize(None).to_numpy()


@dataclass(frozen=True, eq=False)
class DurationEncoder(OrderedEncoder):
    """Lengths of time between bounds, in steps of so many seconds."""

    step: int

    def read(self, cells: pd.Series) -> Floats:
        """The whole steps in each length of time."""
        if family(cells.dtype) != "duration":
            return np.floor(span_seconds(cells.tolist()) / self.step)
        if isinstance(cells.dtype, pd.ArrowDtype):
            return _steps(cells, cells.dtype.pyarrow_dtype.unit, self.step)
        ticks = cells.to_numpy()
        return np.where(
            np.isnat(ticks),
            np.nan,
            ticks.astype(np.int64) // (TICKS[np.datetime_data(ticks.dtype)[0]] * self.step),
        )

    def cells(self, numbers: Floats, missing: Mask) -> pd.Series:
        """The lengths of time; in a column of objects, as Python's own."""
        seconds = numbers.astype(np.int64) * self.step
        if family(self.dtype) == "object":
            return pd.Series([timedelta(seconds=s) for s in seconds.tolist()], dtype=object).mask(missing)
        if isinstance(self.dtype, pd.ArrowDtype):
            drawn = pa.array(seconds, pa.duration("s"), mask=missing).cast(self.dtype.pyarrow_dtype)
            return pd.Series(pd.array(drawn, dtype=self.dtype))
        return pd.Series(seconds.astype("timedelta64[s]")).mask(missing).astype(self.dtype)


@dataclass(frozen=True, eq=False)
class TimeEncoder(OrderedEncoder):
    """Times of day between bounds, in steps of so many seconds since midnight."""

    step: int
    objects: Literal["time", "text"]

    def read(self, cells: pd.Series) -> Floats:
        """The whole steps since midnight."""
        if family(cells.dtype) == "time":
            return _steps(cells, self.dtype.pyarrow_dtype.unit, self.step)
        return np.floor(clock_seconds(cells.tolist()) / self.step)

    def cells(self, numbers: Floats, missing: Mask) -> pd.Series:
        """The times; as text to the second, where the column holds that."""
        seconds = numbers.astype(np.int64) * self.step
        if family(self.dtype) == "time":
            drawn = pa.array(seconds.astype(np.int32), pa.time32("s"), mask=missing)
            return pd.Series(pd.array(drawn.cast(self.dtype.pyarrow_dtype), dtype=self.dtype))
        times = [(MIDNIGHT + timedelta(seconds=s)).time() for s in seconds.tolist()]
        if family(self.dtype) == "object" and self.objects == "time":
            return pd.Series(times, dtype=object).mask(missing)
        return pd.Series([time.isoformat(at) for at in times], dtype=self.dtype).mask(missing)


def _steps(cells: pd.Series, unit: str, step: int) -> Floats:
    """The whole steps in ticks of an Arrow type, NaN where a cell is missing."""
    whole = pa.array(cells.array)
    ticks = whole.cast(pa.int32()).cast(pa.int64()) if whole.type.bit_width == 32 else whole.cast(pa.int64())
    steps = ticks.fill_null(0).to_numpy(zero_copy_only=False) // (TICKS[unit] * step)
    return np.where(cells.isna().to_numpy(), np.nan, steps)
