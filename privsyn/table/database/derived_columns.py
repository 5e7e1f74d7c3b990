"""Columns that a table has of the rows below it: their names, their kinds, and their rules.

They follow from what a `Database` declares. No row is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from privsyn.table.database.computed_above import CONSTANT
from privsyn.table.database.database import Database
from privsyn.table.database.declared import Table
from privsyn.table.database.summaries import ANY, CHANGES, COUNT, START, Derived
from privsyn.table.enforcement.forbidden import Forbidden
from privsyn.table.schema.columns import Numerical
from privsyn.table.schema.constraint import Columns, Constraint

MOST_ROWS = 100_000
"""Upper bound of a column of numbers of child rows. Of `rows_of` a child, a released one is used instead."""

FEW = 4
"""Numbers of child rows of which rules say that there are fewer changes."""


def rows_of(table: str) -> str:
    """Return the name of the column that has the number of rows of a child table.

    >>> rows_of("visits")
    'count(visits)'
    """
    return str(Derived(COUNT, table))


def summaries_of(database: Database, name: str) -> dict[str, Derived]:
    """Return the derived columns of a table, each with the summary of child rows that it is."""
    table, children = database.tables[name], database.children(name)
    summaries = {rows_of(child): Derived(COUNT, child) for child in children} | dict(table.derive)
    further = [(*constants(database, child), *of_lasting(database, child)) for child in children]
    return summaries | {str(summary): summary for summary in chain(table.computed.values(), *further)}


def constants(database: Database, name: str) -> tuple[Derived, ...]:
    """Return the columns of the parent that have what is the same in all rows of a child table."""
    return tuple(Derived(ANY, name, column) for column in database.tables[name].constant)


def constant_of(table: str, column: str) -> str:
    """Return the name of the column of the parent with what is the same in all rows of a child table.

    >>> constant_of("rows", "born")
    'any(rows.born)'
    """
    return str(Derived(ANY, table, column))


def with_constants(database: Database, name: str, kinds: Mapping[str, Columns]) -> dict[str, Columns]:
    """Return the kinds of columns of tables with those that rules of a table know as constant.

    Parameters
    ----------
    database : Database
    name : str
        The table that has the rules.
    kinds : mapping of a table above to the kinds of its columns, derived ones too
    """
    table, above = database.tables[name], dict(kinds)
    of_parent = kinds.get(table.parent or "", {})
    above[CONSTANT] = {
        column: of_parent[constant_of(name, column)]
        for column in table.constant
        if constant_of(name, column) in of_parent
    }
    return above


def of_lasting(database: Database, name: str) -> tuple[Derived, ...]:
    """Return the columns of the parent that say how the lasting columns of a child table begin and change."""
    columns = database.tables[name].lasting
    summaries = ((start_of(name, column), changes_of(name, column)) for column in columns)
    return tuple(chain.from_iterable(summaries))


def start_of(table: str, column: str) -> Derived:
    """Return the column of the parent with the first cell of a lasting column of a child table."""
    return Derived(START, table, column)


def changes_of(table: str, column: str) -> Derived:
    """Return the column of the parent that says how often a lasting column of a child table changes."""
    return Derived(CHANGES, table, column)


def fewer_than_rows(changes: str, rows: str) -> list[Constraint]:
    """Return rules by which a column of numbers of changes is below that of numbers of rows.

    They name the first `FEW` numbers of rows. With more rows, few persons change with each row.
    """
    return [
        Forbidden({rows: {"high": number}, changes: {"low": max(number, 1)}}) for number in range(1, FEW + 1)
    ]


def number_of_rows(child: Table, limit: int) -> Numerical:
    """Return the column of numbers of rows of a child table, which are at most `limit` and keep its rule.

    >>> number_of_rows(Table(parent="homes", link="home", children="1.."), 9).bounds
    (1.0, 9.0)
    """
    fewest, largest = (0, None) if child.children is None else child.children
    high = max(fewest, limit if largest is None else min(largest, limit))
    return Numerical(fewest, high, integer=True, nullable=False)


def number_of_changes(rows: float) -> Numerical:
    """Return the column of numbers of changes among at most `rows` rows of a parent.

    >>> number_of_changes(9).bounds
    (0.0, 8.0)
    """
    return Numerical(0, max(rows - 1, 1), integer=True, nullable=False)
