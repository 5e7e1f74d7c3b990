"""Columns of dates, times of day and lengths of time, inferred from cells. Not private."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, time, timedelta
from typing import Any, Literal

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.table.encoding import steps
from privsyn.table.encoding.dtypes import family
from privsyn.table.encoding.parsing import clock_seconds, moments, span_seconds
from privsyn.table.encoding.steps import TIMES, step_text
from privsyn.table.encoding.time_format import SpanFormat, has_offset, standard
from privsyn.table.inferred.number_bounds import FEW_ROWS, coarsest_step
from privsyn.table.inferred.time_formats import clock_format_of, date_formats, fitting_zones, span_format_of
from privsyn.table.kinds.dates import Datetime, shows_days, spell_date
from privsyn.table.kinds.times import Duration, Time

SPAN_UNITS: dict[int, Literal["s", "m", "h", "D"]] = {1: "s", 60: "m", 3600: "h", 86_400: "D"}

MOST_STEP = 3600
"""Longest step of times of day that is drafted, in seconds."""

SOME_YEARS, MANY_YEARS = 2, 10
"""Dates that range over at least 2 years are drafted with bounds at ends of half-years; from 10, of years."""

EARLIEST, LATEST = 1800, 2200
"""Years between which dates are taken for dates: 9999-12-31 and 0001-01-01 usually stand for no date."""

MOST_MARKS, LEAST_BESIDE = 3, 5
"""Most marks for no date, and how many times as many dates there are as different ones of other years."""

PERIODS = {1: "month", 6: "half-year", 12: "year"}


def infer_dates(
    present: pd.Series, nullable: bool, formats_beside: Collection[str | None] = ()
) -> Datetime | None:
    """Return a column for dates or times, with bounds at ends of months, half-years or years.

    `formats_beside` are formats of other columns: they say which number is the day if the cells do not.
    """
    kind = family(present.dtype)
    if present.empty or kind not in ("datetime", "text", "object", "integer", "real"):
        return None
    formats = date_formats(present)
    if len(formats) > 1:
        read_alike = {standard(pattern) for pattern in formats_beside if pattern is not None}
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
        at.isoformat(" ")[:length] if pattern is None else spell_date(pattern, zone, at) for at in common
    ]
    if kind in ("integer", "real"):
        marks += [f"{int(number)}" for number in counts.index[unread & (counts >= FEW_ROWS)]]
    settings: dict[str, Any] = {"format": pattern, "missing": marks[:MOST_MARKS]}
    settings["nullable"] = nullable or bool((unread | far).any())
    read = read[~unread & ~far]
    low, last = _around(read.min(), read.max())
    if shows_days(pattern) or (read == read.astype("datetime64[D]")).all():
        return Datetime(low, last, **settings)
    step = coarsest_step(read.astype("datetime64[s]").astype(np.float64), TIMES, 2)
    high = datetime.combine(last, time(23, 59, 59))
    text = None if step is None else step_text(int(step))
    return Datetime(low, high, step=text, zone=zone, **settings)


def months_between(first: np.datetime64, last: np.datetime64) -> int:
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
    months = months_between(first, last)
    # The months are counted from January 1970, so half-years and years begin at their multiples.
    low = first.astype("datetime64[M]").astype(np.int64) // months * months
    high = last.astype("datetime64[M]").astype(np.int64) // months * months + months
    ends = np.array([low, high]).astype("datetime64[M]").astype("datetime64[D]") - np.array([0, 1])
    first_day, last_day = ends.astype("datetime64[s]").tolist()
    return first_day, last_day


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
