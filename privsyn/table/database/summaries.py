"""Summaries of the rows below each row, and columns that are such summaries."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from keyword import iskeyword
from unicodedata import normalize

from privsyn.errors import InputError, about, safe_repr
from privsyn.table.schema.condition import Reader

Side = tuple[str | None, str]
"""A table and a column of it; None is the table that has the rule."""

FORM = (
    "across tables write one by <, <=, >, >= or ==, as in visits.arrived >= persons.born, or a sum, as in"
    " age == year - persons.born"
)

EVER, COUNT, SUM, ANY, SAME = "ever", "count", "sum", "any", "same"
CHANGES, START = "changes", "start"
FIRST = "first"
SUMMARIES = (COUNT, "sum", "mean", "min", "max", FIRST, "last", EVER, CHANGES)
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
        One of `SUMMARIES`, or `ANY`: the cell of any child row, of a column in which all have the same. Or
        `SAME`: the sum of a `ConstantSum`, whose name is the column, in any child row. Or `START`: the cell
        of the first child row, even if it is missing.
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
        match = SUMMARY.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None or match["how"] not in SUMMARIES:
            raise InputError(
                f"{safe_repr(text)} is no summary of rows: write one such as count(visits),"
                " sum(purchases.dollars), last(visits.arrived) or ever(visits.ward == surgery)"
            )
        how, table, column, value = match.group("how", "table", "column", "value")
        if (column is None) != (how == COUNT) or (value is None) != (how != EVER):
            raise InputError(f"{text!r}: count takes a table, ever a column and a value, all others a column")
        return cls(how, table.strip(), column and column.strip(), value and value.strip())

    def __str__(self) -> str:
        column = "" if self.column is None else f".{self.column}"
        if self.how in (ANY, SAME):
            return f"{self.table}{column}"
        value = "" if self.value is None else f" == {self.value}"
        how = FIRST if self.how == START else self.how
        return f"{how}({self.table}{column}{value})"


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
        return f"{text_of(self.side)} == {self.summary}"

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
        lhs, sign, rhs = text.partition("==")
        match = SUMMARY.fullmatch(rhs.strip())
        if not sign or match is None or match["how"] not in SUMMARIES:
            return None
        with about(repr(text[:100])):
            reader = Reader({})
            return cls(side_of(reader, reader.parse(reader.unquoted(lhs))), Derived.of(rhs))


def text_of(side: Side) -> str:
    """Return a column as it stands in an expression."""
    return ".".join(part if _is_plain(part) else f"`{part}`" for part in side if part)


def _is_plain(name: str) -> bool:
    """Return whether Python reads a name as it is: it changes some characters, such as the micro sign."""
    return name.isidentifier() and not iskeyword(name) and normalize("NFKC", name) == name


def side_of(reader: Reader, node: ast.expr) -> Side:
    """Return the column that a side names, with its table if it is named too."""
    match node:
        case ast.Name(column):
            return None, reader.quoted.get(column, column)
        case ast.Attribute(ast.Name(table), column):
            return reader.quoted.get(table, table), reader.quoted.get(column, column)
    raise InputError(f"one side is no column: {FORM}")
