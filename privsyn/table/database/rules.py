"""Rules across tables: what holds between a row and those above it, below it, or beside it.

They are public. One that is about columns of one table alone belongs to the schema of that table.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from math import inf

from privsyn.errors import InputError, about, did_you_mean, replace_errors, safe_repr
from privsyn.table.database.computed_above import ComputedAbove, SideReader, is_computation
from privsyn.table.database.constant_sums import ConstantSum
from privsyn.table.database.life_sentences import read_life
from privsyn.table.database.lives import LifeRule
from privsyn.table.database.summaries import FORM, Computed, Side, side_of, text_of
from privsyn.table.enforcement.compared import ComparedRule
from privsyn.table.schema.columns import Coded, Ordinal
from privsyn.table.schema.condition import MIRRORED, NO_COLUMN, SIGNS, Reader
from privsyn.table.schema.constraint import Order
from privsyn.table.schema.schema import Schema

ORDERS, EQUAL = ("<", "<=", ">", ">="), "=="


@dataclass(frozen=True)
class ColumnComparison:
    """Requires a column never to pass a column of a row above it, or to be equal to it.

    Parameters
    ----------
    lhs, rhs : (table or None, column)
        In a `Database`, the left one is of the table that has the rule, and the right one of a table above.
    sign : one of "<", "<=", ">", ">=", "=="
        A column that is equal is a copy: it may be a key or a link of the table above, too.

    Examples
    --------
    >>> print(ColumnComparison((None, "arrived"), ">=", ("persons", "born")))
    arrived >= persons.born
    """

    lhs: Side
    sign: str
    rhs: Side

    def __str__(self) -> str:
        return f"{text_of(self.lhs)} {self.sign} {text_of(self.rhs)}"

    @property
    def is_within_table(self) -> bool:
        """Whether both columns are of the table that has the rule."""
        return self.lhs[0] is None and self.rhs[0] is None

    @property
    def column(self) -> str:
        """The column of the table that has the rule."""
        return self.lhs[1]

    @property
    def above(self) -> tuple[str, str]:
        """The table above, and its column."""
        return self.rhs[0] or "", self.rhs[1]

    @property
    def name(self) -> str:
        """What the column above is called in rules on rows of the table."""
        return ".".join(self.above)

    @property
    def strict(self) -> bool:
        """Whether equal values are forbidden."""
        return len(self.sign) == 1

    def enforced(self, column: Ordinal, above: Ordinal) -> ComparedRule:
        """Return the rule as it is enforced on drawn rows, given both columns."""
        order = -1 if self.sign[0] == ">" else 1
        scales = [(self.column, column.scale), (self.name, above.scale)]
        return ComparedRule(dict(scales[::order]), self.strict, self.column)

    def seen_from(self, table: str) -> ColumnComparison:
        """Return the same rule of a table: its own columns have no table, and the left one is its own."""
        lhs, rhs = ((None if side[0] == table else side[0], side[1]) for side in (self.lhs, self.rhs))
        if lhs[0] is not None:
            return ColumnComparison(rhs, MIRRORED[self.sign], lhs)
        return ColumnComparison(lhs, self.sign, rhs)

    def needed(self, above: Ordinal) -> tuple[float, float]:
        """Return how far the bounds of the own column must reach, so that rows below any row have a value.

        They are the largest lower bound and the least upper one, of which one is infinite: numbers, or
        seconds. If the rule is strict, the bounds must reach a step further.
        """
        low, high = (end * above.scale for end in above.bounds)
        return (inf, high) if self.sign[0] == ">" else (low, -inf)

    def check(self, below: Coded | None, above: Coded | None) -> None:
        """Refuse columns that cannot be compared, or whose bounds leave some rows no value; None is unknown.

        Rows below any row above must have a value. So the bounds of the own column reach as far as those of
        the other one.
        """
        columns = [column for column in (below, above) if column is not None]
        if not all(isinstance(column, Ordinal) for column in columns) or len(set(map(type, columns))) > 1:
            raise InputError(f"{str(self)!r}: columns that are compared are both numbers, or both dates")
        if not (isinstance(below, Ordinal) and isinstance(above, Ordinal)):
            return
        if not (below.is_public and above.is_public):
            return
        low, high = (end / below.scale for end in self.needed(above))
        step = self.strict * below.resolution
        if not (below.bounds[0] <= low - step and high + step <= below.bounds[1]):
            raise InputError(
                f"{str(self)!r}: below some values of {self.name!r} no value of {self.column!r} can stand:"
                f" let bounds of {self.column!r} reach {'beyond' if self.strict else 'to'} the others"
            )


def check_between(
    floor: ColumnComparison, ceiling: ColumnComparison, *, ordered: bool, strictly: bool
) -> None:
    """Refuse two rules on one column if no value may lie between those of the two columns above.

    Parameters
    ----------
    floor, ceiling : ColumnComparison
        The column is at least one column above, and at most another one.
    ordered, strictly : bool
        Whether the first one is never above the second one, and whether it is always below.
    """
    if not ordered or floor.strict + ceiling.strict > strictly:
        relation = "<" if floor.strict or ceiling.strict else "<="
        advice = f"let a constraint say that {floor.name} {relation} {ceiling.name}"
        if floor.strict and ceiling.strict and strictly:
            advice = "let one of them allow equal values"
        raise InputError(
            f"{str(floor)!r} and {str(ceiling)!r} may leave a row no value: {advice}, or drop one of them"
        )


def orders(schema: Schema | None) -> Iterator[Order]:
    """Yield the pairs of columns that constraints keep in order."""
    if schema is not None:
        yield from chain.from_iterable(
            constraint.kept_in_order(schema.columns) for constraint in schema.constraints
        )


def following(schema: Schema | None, rule: ColumnComparison) -> Iterator[ColumnComparison]:
    """Yield the same rule on each column that an order puts beyond the own one, as it keeps the rule too."""
    reached, pending = {rule.column}, [rule]
    while pending:
        rule = pending.pop()
        floor = rule.sign[0] == ">"
        for low, high, strict in orders(schema):
            near, far = (low, high) if floor else (high, low)
            if near == rule.column and far not in reached:
                sign = rule.sign[0] if strict else rule.sign
                pending.append(replace(rule, lhs=(None, far), sign=sign))
                reached.add(far)
                yield pending[-1]


def names_tables(text: object) -> bool:
    """Return whether an expression names a column with its table.

    >>> names_tables("arrived >= persons.born"), names_tables("days <= 2.5")
    (True, False)
    """
    if isinstance(text, str) and Computed.read(text) is not None:
        return True
    reader = Reader({})
    with suppress(InputError):
        text = reader.unquoted(text)
    for part in re.split(r"\b(?:implies|iff)\b", text) if isinstance(text, str) else ():
        with suppress(InputError):
            tree = reader.parse(part)
            if any(isinstance(node, ast.Attribute) for node in ast.walk(tree)):
                return True
    return False


def is_of_table(text: object) -> bool:
    """Return whether a constraint is about several rows, and so of a table of a database, not of its schema.

    >>> [is_of_table(text) for text in ("year rises", "year - age is constant", "arrived >= persons.born")]
    [True, True, True]
    >>> is_of_table("days <= 2.5")
    False
    """
    return ConstantSum.read(text) is not None or read_life(text) is not None or names_tables(text)


Rule = ColumnComparison | Computed | ComputedAbove | ConstantSum | LifeRule
"""A rule about several rows: of several tables, or of one parent."""


def read_across(constraints: Sequence[object]) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """Return the rules about several rows that expressions mean, and the expressions on single rows.

    >>> read_across(["persons.born <= arrived <= left"])[1]
    ('arrived <= left',)
    """
    if isinstance(constraints, str) or not isinstance(constraints, Sequence):
        raise InputError('constraints are a list of text, as in ["arrived >= persons.born"]')
    rules: list[Rule] = []
    expressions: list[str] = []
    for constraint in constraints:
        if isinstance(constraint, Rule):
            rules.append(constraint)
        elif not isinstance(constraint, str):
            raise InputError(
                f"a constraint of a table is text; {safe_repr(constraint)} belongs to its schema"
            )
        elif (constant := ConstantSum.read(constraint)) is not None:
            rules.append(constant)
        elif (life := read_life(constraint)) is not None:
            rules.append(life)
        elif (computed := Computed.read(constraint)) is not None:
            rules.append(computed)
        elif names_tables(constraint):
            with about(repr(constraint[:100])):
                reader = SideReader()
                with replace_errors(f"it is no comparison of two columns: {FORM}", InputError):
                    tree = reader.parse(reader.unquoted(constraint))
                read = list(_equalities_and_orders(reader, tree))
            rules += [rule for rule in read if not rule.is_within_table]
            expressions += [str(rule) for rule in read if rule.is_within_table]
        else:
            expressions.append(constraint)
    return tuple(rules), tuple(expressions)


def _equalities_and_orders(reader: SideReader, node: ast.expr) -> Iterator[ColumnComparison | ComputedAbove]:
    """Yield the comparisons of two columns, and the computed columns, that an expression joins."""
    match node:
        case ast.BoolOp(ast.And(), values):
            for value in values:
                yield from _equalities_and_orders(reader, value)
        case ast.Compare(first, ops, comparators) if {SIGNS[type(op)] for op in ops} <= {*ORDERS, EQUAL}:
            for (lhs, rhs), op in zip(pairwise([first, *comparators]), ops, strict=True):
                sign = SIGNS[type(op)]
                if sign == EQUAL and is_computation([lhs, rhs]):
                    yield reader.computed_above(lhs, rhs)
                else:
                    yield ColumnComparison(side_of(reader, lhs), sign, side_of(reader, rhs))
        case _:
            raise InputError(f"it is no comparison of two columns: {FORM}")


def check_column(table: str, column: str, columns: Sequence[str] | None) -> None:
    """Refuse a column that a table has not; `columns` is None if its columns follow from the data."""
    if columns is not None and column not in columns:
        raise InputError(f"{table!r} has no column {column!r}{did_you_mean(column, columns)}")


def about_columns_above(parent: str | None) -> AbstractContextManager[None]:
    """Say of a rule that names no column of its table how it names one of the table above.

    >>> try:
    ...     with about_columns_above("persons"):
    ...         Schema(constraints=["age >= born"], columns={})
    ... except InputError as error:
    ...     print(str(error).rpartition("; ")[2])
    if it is a column of persons, write persons.age
    """

    def message(error: Exception) -> str:
        column = re.search(NO_COLUMN.format("'([^']+)'"), str(error))
        if parent is None or column is None:
            return str(error)
        return f"{error}; if it is a column of {parent}, write {parent}.{column[1]}"

    return replace_errors(message, InputError)
