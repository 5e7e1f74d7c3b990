"""Elapsed: a column that is the time between two dates, such as an age."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Ints, Numbers
from privsyn.table.encoding.steps import DAY
from privsyn.table.enforcement.sum_within import SumWithin
from privsyn.table.kinds.column_settings import one_of
from privsyn.table.kinds.ordinal import ordinal_of
from privsyn.table.schema.columns import Coded, Datetime, Duration, Numerical
from privsyn.table.schema.constraint import CONSTRAINTS, Columns, Constraint, check_names
from privsyn.table.schema.rules import ROUNDING, Computation, Rule

SECONDS: Mapping[str, int] = {"days": DAY, "hours": 3600, "minutes": 60, "seconds": 1}
MONTHS: Mapping[str, int] = {"years": 12, "months": 1}
UNITS = (*MONTHS, *SECONDS)


@dataclass(frozen=True)
class Elapsed(Constraint):
    """Computes the time from one date to another, without a query of the private table.

    Years and months are completed ones, as a person counts an age: the number grows on the birthday. Who is
    born on 29 February has the birthday on 1 March in other years. Other units are completed where the column
    is whole (``integer=True``), and fractions elsewhere. The time is below 0 if the end is before the start.

    Parameters
    ----------
    column : str
        Numbers, or lengths of time, which have a unit of their own.
    start, end : str
        Columns of dates, with or without a time of day. If one is missing, so is the time.
    unit : {"years", "months", "days", "hours", "minutes", "seconds"}

    Examples
    --------
    >>> Elapsed("age", "born", "seen", unit="years").columns
    ('seen', 'born', 'age')
    """

    column: str
    start: str
    end: str
    unit: Literal["years", "months", "days", "hours", "minutes", "seconds"] = field(
        default="days", kw_only=True
    )
    derives_last: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("unit", self.unit, UNITS)
        check_names("column, start and end", self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The end, the start, and last the time between them."""
        return (self.end, self.start, self.column)

    @property
    def computes(self) -> str:
        """The column of the time."""
        return self.column

    def meant(self, columns: Columns) -> list[Constraint]:
        """Return days between dates without a time of day as a sum, which can count the days themselves."""
        dates = [columns.get(name) for name in (self.start, self.end)]
        if self.unit != "days" or not isinstance(columns.get(self.column), Numerical):
            return [self]
        in_days = all(isinstance(date, Datetime) and date.unit == "D" for date in dates)
        total: Any = CONSTRAINTS["total"]
        return [total(self.column, {self.end: 1, self.start: -1}) if in_days else self]

    def derive(self, columns: Columns) -> Columns:
        """Return the column with the bounds that follow from those of the dates."""
        column: Any = columns[self.column]
        if not isinstance(column, Numerical | Duration):
            raise InputError(f"column {self.column!r} is neither numerical nor a duration")
        if isinstance(column, Numerical) and column.step not in (None, 1):
            raise InputError(f"{self.column!r} is computed, and has a step: leave the step out")
        for name in (self.end, self.start):
            if not isinstance(columns[name], Datetime):
                raise InputError(f"column {name!r} is no date: the time is counted between two dates")
        if not (columns[self.start].is_public and columns[self.end].is_public):
            if column.is_public:
                raise InputError(f"leave out the bounds of {self.column!r}, or give those of both dates")
            return {}
        elapsed = self.computation(columns)
        starts, ends = (np.array(columns[name].bounds) for name in (self.start, self.end))
        low, high = elapsed.make({self.start: starts[::-1], self.end: ends}).tolist()
        if not column.is_public:
            if isinstance(column, Duration):
                return {self.column: column.with_bounds((low, high), integers=True)}
            integers = elapsed.decimals == 0
            low, high = (int(low), int(high)) if integers else (low, high)
            return {self.column: replace(column, low=low, high=high)}
        is_apart = high < column.bounds[0] or low > column.bounds[1]
        if is_apart or (elapsed.months and (low < column.bounds[0] or high > column.bounds[1])):
            raise InputError(
                f"by its dates {self.column!r} goes from {low:g} to {high:g}, beyond its bounds: widen them,"
                " or leave them out"
            )
        return {}

    def explain(self) -> str:
        """Return what the constraint does, in plain English."""
        return f"{self.column} is the time from {self.start} to {self.end}, in {self.unit}."

    def rules(self, columns: Columns) -> list[Rule]:
        """Return no rule, as the column is computed, unless the time may lie beyond the column's bounds.

        Bounds of months and years are not narrower than those that follow from the dates.
        """
        if not all(columns[name].is_public for name in self.columns):
            return []
        elapsed = self.computation(columns)
        if elapsed.months:
            return []
        end, start = (scale / elapsed.seconds for scale in elapsed.scales)
        low, high = ordinal_of(columns[self.column]).bounds
        if elapsed.decimals == 0:  # completed: the next whole number is not reached
            high += max(1 - min(end, start), 0)
        within = SumWithin({self.end: end, self.start: -start}, low, high)
        first, last = within.reach([ordinal_of(columns[name]).bounds for name in within.columns])
        return [within] if first < low or last > high else []

    def computation(self, columns: Columns) -> ElapsedTime:
        """Return the difference of the dates in the unit."""
        by = self.end, self.start
        column = columns[self.column]
        end, start = (ordinal_of(columns[name]).scale for name in by)
        months, seconds = MONTHS.get(self.unit, 0), float(SECONDS.get(self.unit, DAY))
        if isinstance(column, Duration):  # it has a unit of its own
            months, seconds = 0, column.scale
        integers = months or end % seconds == start % seconds == 0
        decimals = 0 if integers else column.fixed_decimals
        return ElapsedTime(self.column, by, (end, start), seconds, months, decimals)


@dataclass(frozen=True, eq=False)
class ElapsedTime(Computation):
    """Computes the time between two dates.

    Parameters
    ----------
    column, by, decimals : as for every computation
    scales : pair of float
        The seconds in a unit of each date.
    seconds : float
        The seconds in a unit of the time, unless it is counted in months.
    months : int
        The months in a unit of the time; 0 if it is counted in seconds.
    """

    column: str
    by: tuple[str, ...]
    scales: tuple[float, float]
    seconds: float
    months: int
    decimals: int | None

    def make(self, numbers: Numbers) -> Floats:
        """Return the time of each row; NaN where a date is missing."""
        end, start = (numbers[name] * scale for name, scale in zip(self.by, self.scales, strict=True))
        if not self.months:
            elapsed = (end - start) / self.seconds
            if self.decimals is None:
                return elapsed
            return np.floor(elapsed) if self.decimals == 0 else np.round(elapsed, self.decimals)
        present = ~np.isnan(end - start)
        (last, rest), (first, begun) = (_month(np.where(present, at, 0.0)) for at in (end, start))
        months = last - first - (rest < begun)
        return np.where(present, months // self.months, np.nan)

    def tolerance(self, column: Coded, numbers: Numbers) -> Floats:
        """Return the largest difference allowed; fractions may be rounded or cut off."""
        if self.decimals is None:
            return ROUNDING * (1 + np.abs(self.make(numbers)))
        return np.array(10.0**-self.decimals if self.decimals else 0.5)


def _month(seconds: Floats) -> tuple[Ints, Floats]:
    """Return the month since 1970, and the seconds since it began."""
    months = np.floor(seconds / DAY).astype(np.int64).astype("datetime64[D]").astype("datetime64[M]")
    return months.astype(np.int64), seconds - months.astype("datetime64[s]").astype(np.int64)
