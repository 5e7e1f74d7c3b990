"""Columns that are computed from their row and from rows above it, such as an age from a year of birth."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about
from privsyn.marginals.domain import Floats, Numbers
from privsyn.table.database.summaries import Side, side_of, text_of
from privsyn.table.encoding.dtypes import Dtype, family, holds_missing, with_missing
from privsyn.table.enforcement.compared import ComparedRule
from privsyn.table.enforcement.elapsed import Elapsed
from privsyn.table.enforcement.sum_within import SumWithin
from privsyn.table.enforcement.total import Total
from privsyn.table.kinds.ordinal import ordinal_of
from privsyn.table.schema.columns import Coded, Datetime, Ordinal
from privsyn.table.schema.constraint import Columns, Constraint
from privsyn.table.schema.expressions import ExpressionReader
from privsyn.table.schema.rules import ROUNDING

T = TypeVar("T")

CONSTANT = ""
"""In the place of a table: the columns of the own one that are the same in all rows of one parent.

They are counted with the parent, so a row knows them as it knows the rows above."""


@dataclass(frozen=True)
class ComputedAbove:
    """Requires a column to be computed from columns of its row and of rows above it.

    It is a `Total`, or the time between two dates of `Elapsed`, some of whose parts stand in tables above.

    Parameters
    ----------
    side : (table or None, column)
        The column that is computed. In a `Database` it is of the table that has the rule.
    parts : tuple of ((table or None, column), factor)
        Of the time between two dates, the end with 1 and the start with -1.
    unit : str
        The unit of the time between two dates. "" for a weighted sum.

    Examples
    --------
    >>> rule = ComputedAbove((None, "age"), (((None, "year"), 1), (("persons", "born"), -1)))
    >>> print(rule)
    age == year - persons.born
    """

    side: Side
    parts: tuple[tuple[Side, float], ...]
    unit: str = ""

    def __post_init__(self) -> None:
        with about(repr(str(self))):
            self._constraint()  # refuses a column that is computed from itself
            if not all(factor for _, factor in self.parts):
                raise InputError("a part of it has the factor 0: leave that part out")

    def __str__(self) -> str:
        terms = sum_in_words(self.parts)
        return f"{text_of(self.side)} == {f'{self.unit}({terms})' if self.unit else terms}"

    @classmethod
    def with_constants(cls, constraint: Constraint, constant: Collection[str]) -> ComputedAbove | None:
        """Return what a constraint of one row computes from columns that are constant; None if it does not.

        >>> ComputedAbove.with_constants(Total("age", {"year": 1, "born": -1}), ["born"]).constant
        ('born',)
        """
        if isinstance(constraint, Elapsed):
            factors: Mapping[str, float] = {constraint.end: 1, constraint.start: -1}
        elif isinstance(constraint, Total) and not constraint.constant:
            factors = constraint.factors
        else:
            return None
        if constraint.column in constant:
            return None
        parts = tuple((((CONSTANT if name in constant else None), name), f) for name, f in factors.items())
        return cls((None, constraint.column), parts, getattr(constraint, "unit", ""))

    def with_constant(self, constant: Collection[str], parent: str | None) -> ComputedAbove:
        """Return the same rule, whose parts that stand with the parent are the table's constant columns."""
        parts = tuple(
            ((CONSTANT if table == parent and name in constant else table, name), factor)
            for (table, name), factor in self.parts
        )
        return replace(self, parts=parts)

    def solved(self, held: Collection[str]) -> ComputedAbove:
        """Return the same equation, solved for a column of the table that is not `held`, if it computes one.

        >>> born, age = Total("year", {"born": 1, "age": 1}), ["year", "born"]
        >>> print(ComputedAbove.with_constants(born, ["born"]).solved(age))
        age == year - born
        """
        if self.unit or self.column not in held:
            return self
        free = (side for side, factor in self.parts if abs(factor) == 1 and side[0] is None)
        side = next((side for side in free if side[1] not in held), None)
        if side is None:
            return self
        sign = dict(self.parts)[side]
        rest = tuple((part, -sign * factor) for part, factor in self.parts if part != side)
        return replace(self, side=side, parts=((self.side, sign), *rest))

    def named_with(self, parent: str) -> str:
        """Return the rule as text in which constant columns have the name of the parent.

        >>> rule = ComputedAbove.with_constants(Total("age", {"year": 1, "born": -1}), ["born"])
        >>> print(rule, "and", rule.named_with("persons"))
        age == year - born and age == year - persons.born
        """
        parts = tuple(
            ((parent if table == CONSTANT else table, name), factor) for (table, name), factor in self.parts
        )
        return str(replace(self, parts=parts))

    @property
    def column(self) -> str:
        """The column that is computed."""
        return self.side[1]

    @property
    def is_within_table(self) -> bool:
        """Whether all columns are of the table that has the rule."""
        return all(table is None for (table, _), _ in (*self.parts, (self.side, 1)))

    @property
    def parts_here(self) -> tuple[str, ...]:
        """The parts that are columns of the table that has the rule."""
        return tuple(column for (table, column), _ in self.parts if table is None)

    @property
    def above(self) -> tuple[tuple[str, str], ...]:
        """The parts that stand in tables above: the table and its column."""
        return tuple((table, column) for (table, column), _ in self.parts if table)

    @property
    def constant(self) -> tuple[str, ...]:
        """The parts that are the same in all rows of one parent."""
        return tuple(column for (table, column), _ in self.parts if table == CONSTANT)

    def seen_from(self, table: str) -> ComputedAbove:
        """Return the same rule of a table: its own columns have no table."""
        side, *parts = (
            (None if side[0] == table else side[0], side[1])
            for side in (self.side, *(part for part, _ in self.parts))
        )
        factors = (factor for _, factor in self.parts)
        return replace(self, side=side, parts=tuple(zip(parts, factors, strict=True)))

    def named(self, find: Callable[[str | None, str], T | None]) -> dict[str, T]:
        """Return what belongs to each column of the rule, by its name in the rule; unknown ones are left out.

        Parameters
        ----------
        find : callable
            Returns what belongs to a column, given its table, None for the table that has the rule, and its
            name; None if it is not known.
        """
        sides = (self.side, *(part for part, _ in self.parts))
        return {text_of(side): value for side in sides if (value := find(*side)) is not None}

    def kinds(self, columns: Columns, above: Mapping[str, Columns]) -> dict[str, Coded]:
        """Return the kind of each column of the rule, by its name in the rule; unknown ones are left out.

        Parameters
        ----------
        columns : mapping of a column of the table to its kind
        above : mapping of each table above to the same
            That of `CONSTANT` has the constant columns of the table.
        """
        return self.named(
            lambda table, column: (columns if table is None else above.get(table, {})).get(column)
        )

    def constraint(self, columns: Columns) -> Constraint:
        """Return the constraint on columns by their names in the rule."""
        constraint = self._constraint()
        if isinstance(columns[constraint.column], Datetime):  # else the days would be computed
            return constraint
        return constraint.meant(columns)[0]

    def _constraint(self) -> Total | Elapsed:
        column, factors = text_of(self.side), {text_of(part): factor for part, factor in self.parts}
        if self.unit:
            end, start = factors
            return Elapsed(column, start, end, unit=self.unit)  # type: ignore[arg-type]  # it checks the unit
        return Total(column, factors)

    def with_bounds(self, columns: Columns) -> Columns:
        """Return the columns; the computed one has the bounds that follow from its parts if it has none."""
        return {**columns, **self.constraint(columns).derive(columns)}

    def kind(self, columns: Columns) -> Coded:
        """Return the computed column, with the bounds that follow from its parts if it has none."""
        return self.with_bounds(columns)[text_of(self.side)]

    def check(self, columns: Columns) -> None:
        """Refuse columns that cannot be computed so, or whose bounds some rows could not keep.

        Raises
        ------
        InputError
            If bounds of the computed column are narrower than those of its parts allow, and for some row
            above no value of its own part keeps them, or it has more than one own part; or if it is whole and
            its parts are not.
        """
        with about(repr(str(self))):
            filled = self.with_bounds(columns)
            is_whole = filled[text_of(self.side)].fixed_decimals == 0
            if is_whole and self.constraint(filled).computation(filled).decimals != 0:
                raise InputError(
                    f"{self.column!r} is whole, and not all its parts are: say integer: true of these"
                )
            within = self.within(filled)
            if within is None:
                return
            advice = f"widen the bounds of {self.column!r}, or leave them out"
            if len(self.parts_here) != 1:
                raise InputError(f"its parts may add up to numbers beyond its bounds: {advice}")
            name, factor = _factor_here(self, within)
            column, rest = ordinal_of(columns[name]), {n: f for n, f in within.factors.items() if n != name}
            low, high = sorted(factor * end for end in column.bounds)
            rest_of_sum = SumWithin(rest, within.low, within.high)
            smallest, largest = rest_of_sum.reach([ordinal_of(columns[part]).bounds for part in rest])
            slack = ROUNDING * max(abs(within.low), abs(within.high))
            if high + smallest < within.low - slack or low + largest > within.high + slack:
                raise InputError(
                    f"below some rows above no value of {self.parts_here[0]!r} keeps {self.column!r} within"
                    f" its bounds: {advice}"
                )
            if within.high - within.low < abs(factor) * column.resolution:
                raise InputError(f"its bounds are narrower than a step of {self.parts_here[0]!r}: {advice}")

    def within(self, columns: Columns) -> SumWithin | None:
        """Return the rule that keeps the sum within the bounds of the computed column, if one is needed."""
        rules = self.constraint(columns).rules(columns)
        return next((rule for rule in rules if isinstance(rule, SumWithin)), None)

    def limits(self, columns: Columns, numbers: Numbers) -> Iterator[tuple[ComparedRule, Ordinal, Floats]]:
        """Yield what keeps the computed column within its bounds: a floor and a ceiling of the own part.

        Let x be the own part, f its factor, and s the sum of the other parts, which are known. Then
        low <= f x + s <= high means (low - s) / f <= x <= (high - s) / f, with the ends exchanged if f < 0.

        Yields
        ------
        rule : ComparedRule
        column : Ordinal
            The own part.
        ends : array of shape (rows,)
            What the rule compares it with, in each row. NaN where a part above is missing.
        """
        within = self.within(columns)
        if within is None:
            return
        name, factor = _factor_here(self, within)
        (part_here,) = self.parts_here
        rest = sum((f * numbers[part] for part, f in within.factors.items() if part != name), np.array(0.0))
        slack = ROUNDING * max(abs(within.low), abs(within.high))
        ends = [(within.low - slack - rest) / factor, (within.high + slack - rest) / factor]
        for end, side in zip(ends if factor > 0 else ends[::-1], ("least", "largest"), strict=True):
            limit = f"{side} {part_here} of {self}"
            names = (limit, part_here) if side == "least" else (part_here, limit)
            rule = ComparedRule(dict.fromkeys(names, 1.0), strict=False, drawn_column=part_here)
            yield rule, ordinal_of(columns[name]), np.asarray(end)

    def cells(self, columns: Columns, numbers: Numbers, dtype: Dtype) -> pd.Series:
        """Return the cells of the computed column; missing where a part is.

        Parameters
        ----------
        columns : mapping of the name of each column in the rule to its kind
            All bounds are known.
        numbers : mapping of the name of each part to an array of shape (rows,)
        dtype : dtype
            If it has no missing cells or no fractions, and the column needs them, the cells have the dtype
            beside it that has them.
        """
        computed = self.constraint(columns).computation(columns).make(numbers)
        missing = np.isnan(computed)
        if family(dtype) == "nothing":  # no private cell was there, and none is made
            return pd.Series([None] * len(computed), dtype=dtype)
        if family(dtype) == "integer" and (computed[~missing] % 1).any():
            dtype = np.dtype(np.float64)
        if missing.any() and not holds_missing(dtype):
            dtype = with_missing(pd.Series([], dtype=dtype)).dtype
        kind = ordinal_of(columns[text_of(self.side)])
        return kind.encoder(dtype).decode(np.where(missing, kind.bounds[0], computed), missing)


def _factor_here(rule: ComputedAbove, within: SumWithin) -> tuple[str, float]:
    """Return the name of the one own part in the rule, and its factor."""
    (part_here,) = rule.parts_here
    name = text_of((None, part_here))
    return name, within.factors[name]


def sum_in_words(parts: Iterable[tuple[Side, float]]) -> str:
    """Return a weighted sum as it stands in an expression.

    >>> sum_in_words([((None, "year"), -1), (("persons", "born"), 0.5)])
    '-year + 0.5 * persons.born'
    """
    terms = "".join(_term(text_of(part), factor) for part, factor in parts)
    return terms.removeprefix(" + ") if terms.startswith(" + ") else f"-{terms[3:]}"


def _term(name: str, factor: float) -> str:
    """Return a term of a sum with its sign.

    >>> _term("a", 1), _term("b", -0.5)
    (' + a', ' - 0.5 * b')
    """
    size = "" if abs(factor) == 1 else f"{abs(factor):.15g} * "
    return f" {'-' if factor < 0 else '+'} {size}{name}"


class SideReader(ExpressionReader):
    """Reads computations whose columns may stand behind the names of their tables."""

    forms = (
        "write a weighted sum of columns, as in age == year - persons.born, or the time between two dates, as"
        " in age == years(seen - persons.born)"
    )

    def __init__(self) -> None:
        super().__init__({})
        self.sides = dict[str, Side]()

    def column(self, node: ast.expr) -> str:
        """Return the name of a column in a rule, and note its table."""
        side = side_of(self, node)
        self.sides[text_of(side)] = side
        return text_of(side)

    def computed_above(self, lhs: ast.expr, rhs: ast.expr) -> ComputedAbove:
        """Return the rule that computes the column that stands alone on one side."""
        constraint = self.computed(lhs, rhs)
        *names, column = constraint.columns
        factors: Mapping[str, float] = dict.fromkeys(names, 1)
        if isinstance(constraint, Elapsed):
            factors = {constraint.end: 1, constraint.start: -1}
        elif isinstance(constraint, Total):
            factors = constraint.factors
            if constraint.constant:
                raise InputError("a sum across tables has columns and factors alone, no other number")
        parts = tuple((self.sides[name], factor) for name, factor in factors.items())
        return ComputedAbove(self.sides[column], parts, getattr(constraint, "unit", ""))


def check_computed_above(
    rules: Sequence[ComputedAbove],
    columns_here: Columns,
    above: Mapping[str, Columns],
    ruled: Collection[str],
) -> tuple[str, ...]:
    """Refuse rules of a table that its columns contradict; return the parts that are limited.

    A part is limited if it must keep a computed column within its bounds.

    Parameters
    ----------
    rules : sequence of ComputedAbove
    columns_here : mapping of a column of the table to its kind
    above : mapping of each table above to the same
        A rule with a column that is not known yet is not checked.
    ruled : collection of str
        The columns that are compared with others of the table or of tables above: limits from two sides may
        leave a row no value.
    """
    limited: list[str] = []
    for rule in rules:
        columns = rule.kinds(columns_here, above)
        if len(columns) > len(rule.parts):
            rule.check(columns)
            if rule.within(rule.with_bounds(columns)) is not None:
                (column,) = rule.parts_here
                if column in ruled or column in limited:
                    raise InputError(
                        f"{str(rule)!r}: {column!r} must keep {rule.column!r} within its bounds, and has"
                        f" another rule: widen the bounds of {rule.column!r}, or leave them out"
                    )
                limited.append(column)
    return tuple(limited)


def is_computation(sides: Sequence[ast.expr]) -> bool:
    """Return whether one side of an equality is more than a column, such as a sum."""
    return any(isinstance(side, ast.BinOp | ast.UnaryOp | ast.Call) for side in sides)
