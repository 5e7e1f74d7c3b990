"""Count a column of times as several attributes: the date, the time of day, the day of the week.

Some years have more minutes than a column has cells, so the time of day would be lost. As an attribute of its
own it survives, and so does what other columns have to do with it. In every table it is one column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from privsyn.marginals.domain import Floats, Ints, Mask
from privsyn.table.encoding.encoders import STRAY, CategoricalEncoder, Encoder
from privsyn.table.encoding.grid import Grid
from privsyn.table.encoding.steps import DAY, Crowd
from privsyn.table.encoding.time_encoders import DatetimeEncoder, TimeEncoder
from privsyn.table.schema.box import Span
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.draws import Cells
from privsyn.table.schema.schema import Schema


def parts(name: str, column: Coded) -> tuple[str, ...]:
    """Return the names of the attributes of a column that is counted in cycles.

    >>> from privsyn import Datetime
    >>> parts("at", Datetime("2015-01-01 00:00", "2016-01-01", unit="min"))
    ('at (date)', 'at (time of day)', 'at (day of week)')
    """
    named = ("date", "time of day", "day of week")[: len(column.counted_cycles) + 1]
    return tuple(f"{name} ({part})" for part in named)


IN_A_DAY = 288
"""Cells of the time of day, of five minutes each; one for each point if there are fewer."""


def splittable(schema: Schema, unsplit: Collection[str | None] = ()) -> tuple[str, ...]:
    """Return the columns of times that are counted as several attributes. Public.

    They have `counted_cycles`, and are none of `unsplit`, such as the target. Constraints name them at most
    in one order, such as `Increasing`. Of its columns, the column from which all others are encoded as gaps
    is split. Rows that break any other constraint are repaired as whole columns.

    >>> from privsyn import Datetime
    >>> splittable(Schema({"at": Datetime("2015-01-01 00:00", "2016-01-01 08:00")}))
    ('at',)
    """
    named = Counter(name for constraint in schema.constraints for name in constraint.columns)
    in_one_order = {
        name
        for constraint in schema.constraints
        if constraint.orders() and all(named[name] == 1 for name in constraint.columns)
        for name in constraint.columns
    }
    unsplit = {*unsplit, *(named.keys() - in_one_order)}
    return tuple(
        name
        for name, column in schema.coded.items()
        if name not in unsplit and column.counted_cycles and not {*parts(name, column)} & {*schema.columns}
    )


@dataclass(frozen=True, eq=False)
class DateOf(DatetimeEncoder):
    """The date of each time, in days since 1970."""

    times: DatetimeEncoder = field(kw_only=True)

    def read(self, cells: pd.Series) -> Floats:
        """Return the days."""
        return np.floor(_read(self.times, cells) / DAY)


@dataclass(frozen=True, eq=False)
class TimeOf(TimeEncoder):
    """The time of day of each time, in seconds since midnight."""

    times: DatetimeEncoder = field(kw_only=True)

    def read(self, cells: pd.Series) -> Floats:
        """Return the seconds."""
        return _read(self.times, cells) % DAY


@dataclass(frozen=True, eq=False)
class DayOfWeek(CategoricalEncoder):
    """The day of the week of each time."""

    times: DatetimeEncoder = field(kw_only=True)

    def encode(self, cells: pd.Series) -> Ints:
        """Return the days since Monday."""
        days = np.floor(_read(self.times, cells) / DAY)
        return np.where(np.isnan(days), STRAY, _weekday(np.nan_to_num(days))).astype(np.int64)


DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _weekday(days: Floats) -> Floats:
    """Return the days since Monday of days since 1970, which began on a Thursday."""
    return (days + 3) % 7


def _read(times: DatetimeEncoder, cells: pd.Series) -> Floats:
    """Return the point of the grid nearest to each time, NaN if it is missing. Each row is read alone."""
    numbers, grid = times.read(cells), times.grid
    points = np.rint((np.clip(numbers, grid.low, grid.high) - grid.low) * grid.scale)
    return np.round(grid.low + points / grid.scale)


def encoders_of_parts(times: DatetimeEncoder) -> tuple[Encoder, ...]:
    """Return the encoders of the date, the time of day and the day of the week of a column."""
    low, high = (float(np.floor(bound / DAY)) for bound in (times.grid.low, times.grid.high))
    crowds = tuple(
        Crowd(heap.low // DAY, heap.high // DAY) for heap in times.grid.heaps if isinstance(heap, Crowd)
    )
    days = replace(Grid.exact(low, high, decimals=0, bins=times.grid.bins), heaps=crowds).fine()
    step = 1 / times.grid.scale
    clock = Grid.exact(0, DAY - step, decimals=0, bins=1, step=step)
    bins = min(clock.points, IN_A_DAY)
    cuts = tuple((np.arange(bins + 1) * clock.points // bins).tolist())
    clock = replace(clock, bins=bins, cuts=cuts, heaps=times.grid.heaps)
    return (
        DateOf(days, times.dtype, "D", times=times),
        TimeOf(clock, times.dtype, 1, "text", times=times),
        DayOfWeek(pd.Series(DAYS), times=times),
    )


def join(
    drawn: Sequence[Floats], room: tuple[Floats, Floats], grid: Grid | None, rng: np.random.Generator
) -> Floats:
    """Return the time of each row from its parts; NaN where the date is missing.

    The date is moved to the nearest date of the day of the week, if one lies in its `room`. A date without a
    time of day gets that of another row. A time out of bounds is moved by a day.

    >>> grid = Grid.exact(3600, 200_000, decimals=0, bins=2)
    >>> dates = np.array([0.0, 1.0, np.nan])
    >>> join((dates, np.array([60.0, 7200.0, 5.0])), (dates, dates), grid, None).tolist()
    [86460.0, 93600.0, nan]
    """
    if grid is None:
        raise ValueError("a column without a grid has no parts")
    date, clock = np.array(drawn[0]), np.array(drawn[1])
    if len(drawn) > 2:
        nearest = (drawn[2] - _weekday(date) + 3) % 7 - 3
        moved = np.zeros(len(date), np.bool_)
        for week in (0, 7, -7):
            there = date + nearest + week
            fits = ~moved & (room[0] <= there) & (there <= room[1])
            moved |= fits
            nearest = np.where(fits, nearest + week, nearest)
        date = np.where(moved, date + nearest, date)
    absent = np.flatnonzero(np.isnan(clock) & ~np.isnan(date))
    if len(absent):
        clocks = clock[~np.isnan(clock)]
        clock[absent] = rng.choice(clocks, len(absent)) if len(clocks) else 0.0
    numbers = date * DAY + clock
    numbers += DAY * ((numbers < grid.low).astype(float) - (numbers > grid.high))
    return np.clip(numbers, grid.low, grid.high)


def whole_cells(dates: Cells) -> Cells:
    """Return the cells of a column of times by the cells of its dates."""
    return replace(dates, lows=dates.lows * DAY, highs=dates.highs * DAY + DAY - 1, grid=None)


def split_given(
    numbers_by_column: Mapping[str, Floats], split: Mapping[str, tuple[str, ...]]
) -> dict[str, Floats]:
    """Return given numbers with the attributes of each column in `split` in its place."""
    attributes: dict[str, Floats] = {}
    for name, numbers in numbers_by_column.items():
        if name in split:
            days = np.floor(numbers / DAY)
            attributes |= zip(split[name], (days, numbers % DAY, _weekday(days)), strict=False)
        else:
            attributes[name] = numbers
    return attributes


def split_spans(spans: Mapping[str, Span], split: Mapping[str, tuple[str, ...]]) -> dict[str, Span]:
    """Return spans with those of the dates in place of each column in `split`, and of times of one day."""
    spans_of_parts: dict[str, Span] = {}
    for name, span in spans.items():
        if name not in split:
            spans_of_parts[name] = span
            continue
        lows, highs = np.floor(span.lows / DAY), np.floor(span.highs / DAY)
        spans_of_parts[split[name][0]] = replace(span, lows=lows, highs=highs)
        if (lows == highs).all():
            spans_of_parts[split[name][1]] = replace(span, lows=span.lows % DAY, highs=span.highs % DAY)
    return spans_of_parts


def times_within(grid: Grid | None, days: Floats, span: Span, rng: np.random.Generator) -> Floats:
    """Return a time in a span for each day that lies in it only in part, NaN for whole days."""
    if grid is None:
        raise ValueError("a column without a grid has no times")
    lows, highs = np.maximum(span.lows[0], days * DAY), np.minimum(span.highs[0], days * DAY + DAY - 1)
    drawn = grid.between(lows, highs, rng)
    low, high = (np.full(len(days), end[0]) for end in (span.lows, span.highs))
    drawn = np.where(np.isnan(drawn), grid.between(low, high, rng), drawn)  # no point lies in the day's part
    return np.where(highs - lows < DAY - 1, drawn, np.nan)


def both_or_neither_missing(cells: Mapping[str, Cells], names: tuple[str, str]) -> Mask:
    """Return which pairs of groups of two attributes a row can have: both are missing, or neither."""
    held = []
    for part in names:
        missing, groups = np.isnan(cells[part].lows), cells[part].groups
        held.append(
            [np.bincount(groups[codes], minlength=cells[part].merged) > 0 for codes in (missing, ~missing)]
        )
    (missing_first, present_first), (missing_second, present_second) = held
    return np.outer(missing_first, missing_second) | np.outer(present_first, present_second)


def named_with(schema: Schema, name: str) -> set[str]:
    """Return the columns that constraints name together with one."""
    naming = [constraint.columns for constraint in schema.constraints if name in constraint.columns]
    return {column for columns in naming for column in columns} - {name}
