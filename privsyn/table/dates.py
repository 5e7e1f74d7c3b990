"""The coder of dates and times, in whole days or seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from privsyn.answers.arrays import Floats, Mask
from privsyn.table.cells import moments
from privsyn.table.columns import Ordered
from privsyn.table.dtypes import TICKS, family, tick, zone

Times = npt.NDArray[np.datetime64]

CALENDAR = np.array(["0001-01-03", "9999-12-29"], dtype="datetime64[s]")
"""Between these a time can be put on the clock of any zone; beyond, pandas fails."""


@dataclass(frozen=True, eq=False)
class Moment(Ordered):
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
