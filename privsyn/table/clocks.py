"""Coders of lengths of time and of times of day, in whole steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.answers.arrays import Floats, Mask
from privsyn.table.cells import clock_seconds, span_seconds
from privsyn.table.columns import Ordered
from privsyn.table.dtypes import TICKS, family

MIDNIGHT = datetime(1970, 1, 1)


@dataclass(frozen=True, eq=False)
class Length(Ordered):
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
class Clock(Ordered):
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
