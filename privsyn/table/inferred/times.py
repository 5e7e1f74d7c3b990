"""Columns of times of day and of lengths of time, inferred from cells. Not private."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.table.encoding import steps
from privsyn.table.encoding.dtypes import family
from privsyn.table.encoding.parsing import clock_seconds, span_seconds
from privsyn.table.encoding.time_format import SpanFormat
from privsyn.table.inferred.number_bounds import coarsest_step
from privsyn.table.inferred.time_formats import clock_format_of, span_format_of
from privsyn.table.kinds.times import Duration, Time

SPAN_UNITS: dict[int, Literal["s", "m", "h", "D"]] = {1: "s", 60: "m", 3600: "h", 86_400: "D"}

MOST_STEP = 3600
"""Longest step of times of day that is drafted, in seconds."""


def infer_times(present: pd.Series, nullable: bool) -> Time | None:
    """Return a column for a dtype of times of day, or for texts that are times in one format."""
    if family(present.dtype) == "time":
        return Time(nullable=nullable)
    written = clock_format_of(present)
    if written is None:
        return None
    seconds = clock_seconds(present.drop_duplicates().tolist(), written)
    read = seconds[~np.isnan(seconds)]
    unit: Literal["s", "m"] = "m" if (read % 60 == 0).all() else "s"
    step = coarsest_step(read, steps.TIMES, 2 * steps.SECONDS[unit])
    text = None if step is None or step > MOST_STEP else steps.step_text(int(step))
    nullable = nullable or len(read) < len(seconds)
    return Time(unit=unit, step=text, format=written, nullable=nullable)


def infer_durations(present: pd.Series, nullable: bool) -> Duration | None:
    """Return a column of lengths of time; bounds are rounded outwards to days, or hours below a day."""
    if present.empty:
        return None
    written = span_format_of(present)
    unit: Literal["s", "m", "h", "D"] = "s"
    if family(present.dtype) == "duration":
        lengths = present.astype("timedelta64[s]")
        low, high = lengths.min().to_pytimedelta(), lengths.max().to_pytimedelta()
    elif written is not None:
        seconds = span_seconds(present.drop_duplicates().tolist(), SpanFormat(written))
        nullable = nullable or bool(np.isnan(seconds).any())
        low, high = (timedelta(seconds=float(end(seconds))) for end in (np.nanmin, np.nanmax))
        unit = SPAN_UNITS[SpanFormat(written).step]
    else:
        return None
    step = timedelta(days=1) if max(high, -low) > timedelta(days=1) else timedelta(hours=1)
    try:
        bounds = low // step * step, -(-high // step) * step
        return Duration(*bounds, unit=unit, format=written, nullable=nullable)
    except InputError:
        return None  # longer than `Duration` allows
