"""Summaries of the rows below a row, and rules across tables: what holds between a row and those above it.

Rules are public. One that is about columns of one table alone belongs to the schema of that table.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any

from privsyn.errors import InputError, about, did_you_mean, replace_errors, safe_repr
from privsyn.table.schema.columns import Coded, Ordinal
from privsyn.table.schema.condition import MIRRORED, SIGNS, Reader

EVER, COUNT, SUM, ANY = "ever", "count", "sum", "any"
SUMMARIES = (COUNT, "sum", "mean", "min", "max", "first", "last", EVER)
"""How a derived column sums up the rows of a child table."""

SUMMARY = re.compile(
    r"(?P<how>[a-z]+)\((?P<table>[^.()]+)(?:\.(?P<column>[^=()]+?)(?: *== *(?P<value>.+))?)?\)"
)


@dataclass(frozen=True)
class Derived:
    """How a derived column sums up the child rows of each row.

    Parameters
    ----------
    how : str
        One of `SUMMARIES`, or `ANY`: the cell of any child row, of a column in which all have the same.
    table : str
        A child table.
    column : str, optional
        The column that is summarised; `count` has none.
    value : str, optional
        With `ever`, the value that one of the rows must have.

    Examples
    --------
    >>> Derived.of("sum(purchases.dollars)")
    Derived(how='sum', table='purchases', column='dollars', value=None)
    >>> str(Derived.of("ever(visits.ward == surgery)"))
    'ever(visits.ward == surgery)'
    """

    how: str
    table: str
    column: str | None = None
    value: str | None = None

    @classmethod
    def of(cls, text: object) -> Derived:
        """Return the summary that an expression describes; raise an `InputError` if it describes none."""
        found = SUMMARY.fullmatch(text.strip()) if isinstance(text, str) else None
        if found is None or found["how"] not in SUMMARIES:
            raise InputError(
                f"{safe_repr(text)} is no summary of rows: write one such as count(visits),"
                " sum(purchases.dollars), last(visits.arrived) or ever(visits.ward == surgery)"
            )
        how, table, column, value = found.group("how", "table", "column", "value")
        if (column is None) != (how == COUNT) or (value is None) != (how != EVER):
            raise InputError(f"{text!r}: count takes a table, ever a column and a value, all others a column")
        return cls(how, table.strip(), column and column.strip(), value and value.strip())

    def __str__(self) -> str:
        column = "" if self.column is None else f".{self.column}"
        value = "" if self.value is None else f" == {self.value}"
        return f"{self.how}({self.table}{column}{value})"


ORDERS = ("<", "<=", ">", ">=")

Side = tuple[str | None, str]
"""A table and a column of it; None is the table that has the rule."""


@dataclass(frozen=True)
class Comparison:
    """Requires a column never to pass a column of a row above it.

    Parameters
    ----------
    left, right : (table or None, column)
        In a `Database`, the left one is of the table that has the rule, and the right one of a table above.
    sign : one of "<", "<=", ">", ">="

    Examples
    --------
    >>> print(Comparison((None, "arrived"), ">=", ("persons", "born")))
    arrived >= persons.born
    """

    left: Side
    sign: str
    right: Side

    def __str__(self) -> str:
        return f"{_text(self.left)} {self.sign} {_text(self.right)}"

    @property
    def is_own(self) -> bool:
        """Whether both columns are of the table that has the rule."""
        return self.left[0] is None and self.right[0] is None

    @property
    def column(self) -> str:
        """The column of the table that has the rule."""
        return self.left[1]

    @property
    def above(self) -> tuple[str, str]:
        """The table above, and its column."""
        return self.right[0] or "", self.right[1]

    @property
    def name(self) -> str:
        """What the column above is called in rules on rows of the table."""
        return ".".join(self.above)

    @property
    def strict(self) -> bool:
        """Whether equal values are forbidden."""
        return len(self.sign) == 1

    def of(self, table: str) -> Comparison:
        """Return the same rule of a table: its own columns have no table, and the left one is its own."""
        left, right = ((None if side[0] == table else side[0], side[1]) for side in (self.left, self.right))
        if left[0] is not None:
            return Comparison(right, MIRRORED[self.sign], left)
        return Comparison(left, self.sign, right)

    def needed(self, own: Ordinal, other: Ordinal) -> tuple[float, float]:
        """Return how far the bounds of the own column must reach, so that rows below any row have a value.

        They are the largest lower bound and the least upper one, of which one is infinite. If the rule is
        strict, the bounds must reach a step further.
        """
        low, high = (end * other.scale / own.scale for end in other.bounds)
        return (inf, high) if self.sign[0] == ">" else (low, -inf)

    def check(self, own: Coded | None, other: Coded | None) -> None:
        """Refuse columns that cannot be compared, or whose bounds leave some rows no value; None is unknown.

        Rows below any row above must have a value. So the bounds of the own column reach as far as those of
        the other one.
        """
        for column in (own, other):
            if column is not None and not isinstance(column, Ordinal):
                raise InputError(f"{str(self)!r}: columns that are compared are both numbers, or both dates")
        if not (isinstance(own, Ordinal) and isinstance(other, Ordinal)):
            return
        if type(own) is not type(other):
            raise InputError(f"{str(self)!r}: columns that are compared are both numbers, or both dates")
        if not (own.is_public and other.is_public):
            return
        low, high = self.needed(own, other)
        step = self.strict * own.resolution
        if not (own.bounds[0] <= low - step and high + step <= own.bounds[1]):
            raise InputError(
                f"{str(self)!r}: below some values of {self.name!r} no value of {self.column!r} can stand:"
                f" let bounds of {self.column!r} reach {'beyond' if self.strict else 'to'} the others"
            )


@dataclass(frozen=True)
class Computed:
    """Requires a column to be the sum of a column of the child rows, or their number.

    Parameters
    ----------
    side : (table or None, column)
    summary : Derived

    Examples
    --------
    >>> print(Computed((None, "total"), Derived("sum", "items", "price")))
    total == sum(items.price)
    """

    side: Side
    summary: Derived

    def __post_init__(self) -> None:
        if self.summary.how not in (SUM, COUNT):
            raise InputError(f"{str(self)!r}: a column is computed by sum or count of the rows below")

    def __str__(self) -> str:
        return f"{_text(self.side)} == {self.summary}"

    @property
    def column(self) -> str:
        """The column that is computed."""
        return self.side[1]

    @classmethod
    def read(cls, text: str) -> Computed | None:
        """Return the rule that an expression means, None if it means another one.

        >>> Computed.read("n == count(items)").summary, Computed.read("age == years(seen - born)")
        (Derived(how='count', table='items', column=None, value=None), None)
        """
        left, sign, right = text.partition("==")
        found = SUMMARY.fullmatch(right.strip())
        if not sign or found is None or found["how"] not in SUMMARIES:
            return None
        with about(repr(text[:100])):
            reader = Reader({})
            return cls(_side(reader, reader.parse(reader.unquoted(left))), Derived.of(right))


def _text(side: Side) -> str:
    """Return a column as it stands in an expression."""
    return ".".join(each if each.isidentifier() else f"`{each}`" for each in side if each is not None)


def names_tables(text: object) -> bool:
    """Return whether an expression names a column with its table.

    >>> names_tables("arrived >= persons.born"), names_tables("days <= 2.5")
    (True, False)
    """
    if isinstance(text, str) and Computed.read(text) is not None:
        return True
    reader = Reader({})
    for part in re.split(r"\b(?:implies|iff)\b", text) if isinstance(text, str) else ():
        with suppress(InputError):
            tree = reader.parse(reader.unquoted(part))
            if any(isinstance(node, ast.Attribute) for node in ast.walk(tree)):
                return True
    return False


Rule = Comparison | Computed
"""A rule across tables."""


def read_across(said: Sequence[object]) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """Return the rules across tables that expressions mean, and the expressions on columns of one table.

    >>> read_across(["persons.born <= arrived <= left"])[1]
    ('arrived <= left',)
    """
    if isinstance(said, str) or not isinstance(said, Sequence):
        raise InputError('constraints are a list of text, as in ["arrived >= persons.born"]')
    rules: list[Rule] = []
    own: list[str] = []
    for each in said:
        if isinstance(each, Comparison | Computed):
            rules.append(each)
        elif not isinstance(each, str):
            raise InputError(f"a constraint of a table is text; {safe_repr(each)} belongs to its schema")
        elif (computed := Computed.read(each)) is not None:
            rules.append(computed)
        elif names_tables(each):
            with about(repr(each[:100])):
                found = list(_comparisons(each))
            rules += [rule for rule in found if not rule.is_own]
            own += [str(rule) for rule in found if rule.is_own]
        else:
            own.append(each)
    return tuple(rules), tuple(own)


def _comparisons(text: str) -> Iterator[Comparison]:
    """Yield the comparisons of two columns that an expression joins."""
    reader = Reader({})

    def facts(node: ast.expr) -> Iterator[Comparison]:
        match node:
            case ast.BoolOp(ast.And(), values):
                for value in values:
                    yield from facts(value)
            case ast.Compare(left, ops, comparators) if {SIGNS[type(op)] for op in ops} <= {*ORDERS}:
                for (one, other), op in zip(pairwise([left, *comparators]), ops, strict=True):
                    yield Comparison(_side(reader, one), SIGNS[type(op)], _side(reader, other))
            case _:
                raise InputError(f"it is no comparison of two columns: {FORM}")

    with replace_errors(f"it is no comparison of two columns: {FORM}", InputError):
        tree = reader.parse(reader.unquoted(text))
    yield from facts(tree)


def _side(reader: Reader, node: ast.expr) -> Side:
    """Return the column that a side names, with its table if it is named too."""
    match node:
        case ast.Name(column):
            return None, reader.quoted.get(column, column)
        case ast.Attribute(ast.Name(table), column):
            return reader.quoted.get(table, table), reader.quoted.get(column, column)
    raise InputError(f"one side is no column: {FORM}")


FORM = "across tables write one by <, <=, > or >=, as in visits.arrived >= persons.born"


def check_column(table: str, column: str, known: Sequence[str] | None) -> None:
    """Refuse a column that a table has not; `known` is None if its columns follow from the data."""
    if known is not None and column not in known:
        raise InputError(f"{table!r} has no column {column!r}{did_you_mean(column, known)}")


def read_children(said: object) -> tuple[int, int | None]:
    """Return the least and the largest number of child rows of each row of the parent.

    >>> read_children("1.."), read_children("1..4"), read_children(2), read_children((0, 3))
    ((1, None), (1, 4), (2, 2), (0, 3))
    """
    ends: Any = said if isinstance(said, list | tuple) else (said, said)
    if isinstance(said, str):
        first, dots, last = (part.strip() for part in said.partition(".."))
        ends = [int(end) if end.isdecimal() else end or None for end in (first, last if dots else first)]
    if len(ends) == 2:
        low, high = 0 if ends[0] is None else ends[0], ends[1]
        if type(low) is int and low >= 0 and (high is None or (type(high) is int and high >= max(low, 1))):
            return low, high
    raise InputError(f"children is a number or a range such as 1.. or 1..4, not {safe_repr(said)}")
