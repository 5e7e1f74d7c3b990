"""Total: a column that is a weighted sum of others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from privsyn.errors import InputError, safe_repr
from privsyn.marginals.domain import Floats, Numbers
from privsyn.table.encoding.steps import decimals_of_step
from privsyn.table.enforcement.elapsed import Elapsed
from privsyn.table.enforcement.sum_within import SumWithin
from privsyn.table.schema.columns import Coded, Datetime, Duration, Numerical
from privsyn.table.schema.constraint import Columns, Constraint, Order, check_names
from privsyn.table.schema.rules import ROUNDING, Computation, Rule

FIRST_DAY, LAST_DAY = (int(np.datetime64(end, "D").astype(np.int64)) for end in ("0001-01-01", "9999-12-31"))
"""In days since 1970."""

CENTURY = 36_525
"""Days."""


@dataclass(frozen=True)
class Total(Constraint):
    """Computes a column as a weighted sum of others, without a query of the private table.

    Parameters
    ----------
    column : str
    of : list of str, or mapping of str to number
        The parts. A mapping gives each part a factor; -1 subtracts it. If a part is missing, so is the total.
        Dates without a time of day may be subtracted from each other: the total is a number of days. A date
        that is the sum of another and days is the same constraint: the days are computed, unless they have
        bounds, which the difference of any two dates would not keep. Then the date is computed. `Elapsed`
        counts the time between two dates in other units.
    constant : number, optional
        Added to the sum: shares that add up to 1 are 1 less the others. Not of dates.

    Examples
    --------
    >>> Total("net", {"gross": 1, "tax": -1}).columns
    ('gross', 'tax', 'net')
    """

    column: str
    of: Sequence[str] | Mapping[str, float]
    constant: float = field(default=0, kw_only=True)
    derives_last: ClassVar[bool] = True

    def __post_init__(self) -> None:
        factors = (
            dict(self.of) if isinstance(self.of, Mapping) else dict.fromkeys(check_names("of", self.of), 1)
        )
        named = {f"factor of part {name!r}": factor for name, factor in factors.items()}
        for title, number in (named | {"constant": self.constant}).items():
            if isinstance(number, bool) or not isinstance(number, int | float) or not np.isfinite(number):
                raise InputError(f"the {title} is a number, not {safe_repr(number)}")
        object.__setattr__(self, "of", MappingProxyType(factors))
        check_names("column and of", self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The parts, and last the total."""
        return (*self.of, self.column)

    @property
    def factors(self) -> Mapping[str, float]:
        """The factor of each part."""
        return self.of  # type: ignore[return-value]

    @property
    def computable(self) -> set[str]:
        """The parts for which the sum can be solved: no cell is multiplied."""
        return {name for name, factor in self.factors.items() if abs(factor) == 1}

    @property
    def computes(self) -> str:
        """The total's column."""
        return self.column

    def meant(self, columns: Columns) -> list[Constraint]:
        """Return the sum solved for its number if the total is a date; of a duration, the time elapsed."""
        total, factors = self.column, dict(self.factors)
        if self.constant:
            return [self]
        dates = {name for name in self.columns if isinstance(columns.get(name), Datetime)}
        numbers = [name for name, factor in factors.items() if name not in dates and abs(factor) == 1]
        if total in dates and numbers:
            factor = factors.pop(numbers[0])
            days = Total(numbers[0], {total: factor, **{name: -factor * n for name, n in factors.items()}})
            if self._counts_days(days, columns):
                return [self]
            total, factors = days.column, dict(days.factors)
        if (
            isinstance(columns.get(total), Duration)
            and sorted(factors.values()) == [-1, 1]
            and dates == {*factors}
        ):
            start, end = sorted(factors, key=factors.__getitem__)
            return [Elapsed(total, start, end)]
        return [Total(total, factors)]

    def kept_in_order(self, columns: Columns) -> Iterator[Order]:
        """Yield the total and each part to which the others only add, or from which they only take."""
        for part in (name for name, factor in self.factors.items() if factor == 1):
            rest = {name: columns[name] for name in self.factors if name != part}
            if not all(isinstance(column, Numerical) and column.is_public for column in rest.values()):
                continue
            ends = [[self.factors[name] * end for end in column.bounds] for name, column in rest.items()]
            lowest, highest = (self.constant + sum(map(end, ends)) for end in (min, max))
            if lowest >= 0:
                yield part, self.column, lowest > 0
            elif highest <= 0:
                yield self.column, part, highest < 0

    def derive(self, columns: Columns) -> Columns:
        """Return the total with the bounds that follow from its parts."""
        total: Any = columns[self.column]
        parts: dict[str, Any] = {name: columns[name] for name in self.factors}
        dates = {name: part for name, part in parts.items() if isinstance(part, Datetime)}
        for name, part in {self.column: total, **parts}.items():
            if not isinstance(part, Numerical | Datetime):
                raise InputError(f"column {name!r} is not numerical: a total and its parts are")
        if isinstance(total, Numerical) and not self._keeps_step(total, parts):
            raise InputError(
                f"{self.column!r} is computed, and its parts do not add up to multiples of its step: leave"
                " the step out"
            )
        of_date = isinstance(total, Datetime) and _is_one_date(self.factors, {*dates})
        if self.constant and (dates or isinstance(total, Datetime)):
            raise InputError("a sum of dates has no constant: give a column of days")
        if sum(self.factors[name] for name in dates) != 0 and not of_date:
            raise InputError(
                "dates cannot be added or multiplied: subtract each from another, as in days == end - start,"
                " or add days to one, as in end == start + days"
            )
        for name, part in (dates | ({self.column: total} if of_date else {})).items():
            if part.is_public and part.unit != "D":
                raise InputError(
                    f"{name!r} has times of day: say the unit, such as {self.column} == hours(end - start)"
                )
        if not all(part.is_public for part in parts.values()):
            if total.is_public:
                raise InputError(f"leave out the bounds of {self.column!r}, or give those of all its parts")
            days = [part for name, part in parts.items() if name not in dates and part.is_public]
            if of_date and any(max(map(abs, part.bounds)) > CENTURY for part in days):
                # The date that is found under privacy, moved by these days, might not fit its type.
                raise InputError(
                    f"{self.column!r}: give bounds of the other date, or shorter ones of the days"
                )
            return {}
        ends = [
            sorted(n * end for end in (part.bounds if name in dates else (part.low, part.high)))
            for name, n in self.factors.items()
            for part in (parts[name],)
        ]
        low, high = (self.constant + sum(end[k] for end in ends) for k in (0, 1))
        decimals = self._decimals(columns)
        if decimals is not None:
            low, high = round(low, decimals), round(high, decimals)
        low, high = (int(low), int(high)) if decimals == 0 else (float(low), float(high))
        if of_date:
            return self._date_within(total, low, high)
        if not total.is_public:
            return {self.column: replace(total, low=low, high=high)}
        if total.integer and decimals != 0:
            raise InputError(f"{self.column!r} is whole, but not all its parts are: give integer or decimals")
        if high < total.low or low > total.high:
            raise InputError(
                f"by its parts {self.column!r} goes from {low} to {high}, beyond its bounds {total.low} to "
                f"{total.high}: widen them, or leave them out{self._as_a_date(dates)}"
            )
        return {}

    def _keeps_step(self, total: Numerical, parts: Mapping[str, Any]) -> bool:
        """Return whether each sum is a multiple of the total's step, to which others would be rounded."""
        if total.step is None:
            return True
        decimals = {
            name: 0 if isinstance(part, Datetime) else part.fixed_decimals for name, part in parts.items()
        }
        steps = {
            name: part.step or 10.0 ** -(decimals[name] or 0)
            for name, part in parts.items()
            if isinstance(part, Numerical)
        }
        times = [n * steps.get(name, 1.0) / total.step for name, n in self.factors.items()]
        times.append(self.constant / total.step)
        return None not in decimals.values() and all(abs(n - round(n)) < ROUNDING for n in times)

    def _counts_days(self, days: Total, columns: Columns) -> bool:
        """Return whether the days have bounds that differences of the dates need not keep.

        Then they are counted, and the date is computed from them; `days` is the same sum, solved for them.
        """
        parts = [columns.get(name) for name in self.columns]
        if any(not isinstance(part, Numerical | Datetime) for part in parts):
            return False
        dates = {name for name in self.factors if isinstance(columns[name], Datetime)}
        public = all(columns[name].is_public for name in {*self.factors} - dates)
        if not public or not _is_one_date(self.factors, dates):
            return False
        try:
            days.derive(columns)
        except InputError:
            return True
        return bool(days.rules(columns))

    def _date_within(self, total: Datetime, low: float, high: float) -> Columns:
        """Return a date with the bounds that follow from its parts, in days since 1970."""
        if low < FIRST_DAY or high > LAST_DAY:
            raise InputError(f"by its parts {self.column!r} leaves the years 1 to 9999: give narrower bounds")
        first, last = (str(np.datetime64(int(end), "D")) for end in (low, high))
        if not total.is_public:
            return {self.column: replace(total, low=first, high=last)}
        if high < total.bounds[0] or low > total.bounds[1]:
            raise InputError(
                f"by its parts {self.column!r} goes from {first} to {last}, beyond its bounds: widen them, or"
                " leave them out"
            )
        return {}

    def _as_a_date(self, dates: Collection[str]) -> str:
        """Return how to say the same of a number of days that keeps its bounds."""
        if set(dates) != {*self.factors} or sorted(self.factors.values()) != [-1, 1]:
            return ""
        start, end = sorted(dates, key=self.factors.__getitem__)
        return f"; {end} == {start} + {self.column} keeps them"

    def explain(self) -> str:
        """Return what the constraint does, in plain English."""
        terms = (name if factor == 1 else f"{factor:g} * {name}" for name, factor in self.factors.items())
        number = [f"{self.constant:g}"] if self.constant else []
        return f"{self.column} is the sum {' + '.join([*number, *terms])}."

    def rules(self, columns: Columns) -> list[Rule]:
        """Return no rule, as the column is computed, unless the sum may lie beyond the column's bounds."""
        total: Any = columns[self.column]
        parts: list[Any] = [columns[name] for name in self.factors]
        if not all(column.is_public for column in (total, *parts)):
            return []
        within = SumWithin(self.factors, *(end - self.constant for end in total.bounds))
        low, high = within.reach([part.bounds for part in parts])
        return [within] if low < within.low or high > within.high else []

    def computation(self, columns: Columns) -> SumOf:
        """Return the sum."""
        return SumOf(self.column, self.factors, self._decimals(columns), self.constant)

    def _decimals(self, columns: Columns) -> int | None:
        """Return the number of decimals of the sum; None for reals."""
        largest = decimals_of_number(self.constant)
        for name, factor in self.factors.items():
            decimals = columns[name].fixed_decimals
            if float(factor) != round(factor) or decimals is None or largest is None:
                return None
            largest = max(largest, decimals)
        return largest


def decimals_of_number(number: float) -> int | None:
    """Return how many decimals a number has; None if these are too many to count.

    >>> decimals_of_number(1), decimals_of_number(-0.25), decimals_of_number(1 / 3)
    (0, 2, None)
    """
    return decimals_of_step(abs(number)) if number else 0


def solved_for_widest(
    total: Total,
    columns: Columns,
    can_hold: Mapping[str, bool],
    widths: Mapping[str, float],
    candidates: Collection[str],
) -> Total:
    """Return the sum, solved for its widest column.

    Noise in the counts of the parts adds up in the column that is computed. Beside the range of the widest it
    is small; beside that of a difference of two large numbers, such as a profit, it is not.

    Parameters
    ----------
    total : Total
    columns : mapping of each column to its description
    can_hold : mapping of each column to whether it may have missing cells
    widths : mapping of each column to the range, or the spread, of its numbers
    candidates : collection of str
        The parts that may be computed in place of the sum.

    Examples
    --------
    >>> columns = dict.fromkeys(["profit", "revenue", "costs"], Numerical(integer=True))
    >>> profit, complete = Total("profit", {"revenue": 1, "costs": -1}), dict.fromkeys(columns, False)
    >>> widths = {"profit": 250, "revenue": 1000, "costs": 900}
    >>> solved_for_widest(profit, columns, complete, widths, profit.computable).explain()
    'revenue is the sum profit + costs.'
    """
    widest, solved = total.column, total
    for name, factor in total.factors.items():
        if name not in candidates or widths[name] <= widths[widest]:
            continue
        terms = {total.column: factor} | {n: -factor * f for n, f in total.factors.items() if n != name}
        candidate = Total(name, terms, constant=-factor * total.constant)
        decimals, fixed = candidate._decimals(columns), columns[name].fixed_decimals
        holds = fixed is None or (decimals is not None and fixed >= decimals)
        if holds and can_hold[name] >= max(can_hold[n] for n in terms):
            widest, solved = name, candidate
    return solved


def _is_one_date(factors: Mapping[str, float], dates: Collection[str]) -> bool:
    """Return whether a sum of dates and days is a date: that of one of them, moved by days."""
    return sum(factor for name, factor in factors.items() if name in dates) == 1


@dataclass(frozen=True, eq=False)
class SumOf(Computation):
    """Computes a column as the sum of others, each times its factor."""

    column: str
    factors: Mapping[str, float]
    decimals: int | None
    constant: float = 0

    @property
    def by(self) -> tuple[str, ...]:
        """The columns of the sum."""
        return tuple(self.factors)

    def make(self, numbers: Numbers) -> Floats:
        """Return the sum of each row; NaN where a part is missing."""
        total = sum((numbers[name] * n for name, n in self.factors.items()), np.array(float(self.constant)))
        return total if self.decimals is None else np.round(total, self.decimals) + 0.0

    def tolerance(self, column: Coded, numbers: Numbers) -> Floats:
        """Return the largest difference allowed; if the sum is real, it covers the rounding of each part."""
        if column.fixed_decimals is not None:
            return super().tolerance(column, numbers)
        sizes = (abs(n * numbers[name]) for name, n in self.factors.items())
        return ROUNDING * sum(sizes, np.array(abs(float(self.constant))))
