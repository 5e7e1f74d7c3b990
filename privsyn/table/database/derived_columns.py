"""Columns that a table has of the rows below it: their names, their kinds, and their rules.

They follow from what a `Database` declares. No row is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from math import inf

import numpy as np

from privsyn.errors import InputError
from privsyn.table.database.computed_above import CONSTANT
from privsyn.table.database.database import Database
from privsyn.table.database.declared import Table
from privsyn.table.database.summaries import ANY, CHANGES, COUNT, SAME, START, Derived
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
    """Return the derived columns of a table, each with the summary of child rows that it is.

    Raises
    ------
    InputError
        If two of them have one name.
    """
    table, children = database.tables[name], database.children(name)
    named = [(rows_of(child), Derived(COUNT, child)) for child in children]
    named += [*table.derive.items(), *((str(summary), summary) for summary in table.computed.values())]
    for child in children:
        declared = database.tables[child]
        further = [Derived(ANY, child, column) for column in declared.constant]
        further += [Derived(SAME, child, rule.name) for rule in declared.constant_sums]
        further += [Derived(how, child, column) for column in declared.lasting for how in (START, CHANGES)]
        named += [(name_above(database, summary), summary) for summary in further]
    summaries = dict[str, Derived]()
    for column, summary in named:
        if summaries.setdefault(column, summary) != summary:
            raise InputError(f"two derived columns are called {column!r}: rename one of them")
    return summaries


def name_above(database: Database, summary: Derived) -> str:
    """Return the name of the column of the parent that sums up child rows, in words that a user knows.

    Where a user gave one table alone, its rows have no name.

    >>> from privsyn.table.database.yaml_form import persons_and_rows
    >>> persons = persons_and_rows("who", Database.of_one())
    >>> name_above(persons, Derived(ANY, "rows", "born")), name_above(persons, Derived(START, "rows", "job"))
    ('born', 'first(job)')
    """
    text = str(summary)
    return text if database.shown_name(summary.table) else text.replace(f"{summary.table}.", "", 1)


def constants(database: Database, name: str) -> dict[str, str]:
    """Return the columns that are the same in all rows of one parent, each with its name in the parent."""
    return {
        column: name_above(database, Derived(ANY, name, column)) for column in database.tables[name].constant
    }


def sums_above(database: Database, name: str) -> dict[str, str]:
    """Return the sums that are the same in all rows of one parent, each with its name in the parent."""
    sums = (rule.name for rule in database.tables[name].constant_sums)
    return {total: name_above(database, Derived(SAME, name, total)) for total in sums}


def same_in_all_rows(database: Database, name: str) -> dict[str, str]:
    """Return what is the same in all rows of one parent, each with its name there: columns, and sums."""
    return constants(database, name) | sums_above(database, name)


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
        column: of_parent[original]
        for column, original in same_in_all_rows(database, name).items()
        if original in of_parent
    }
    return above


def of_lasting(database: Database, name: str) -> tuple[str, ...]:
    """Return the columns of the parent that say how the lasting columns of a child table begin and change."""
    columns = database.tables[name].lasting
    summaries = ((start_of(database, name, column), changes_of(database, name, column)) for column in columns)
    return tuple(chain.from_iterable(summaries))


def start_of(database: Database, table: str, column: str) -> str:
    """Return the column of the parent with the first cell of a lasting column of a child table."""
    return name_above(database, Derived(START, table, column))


def changes_of(database: Database, table: str, column: str) -> str:
    """Return the column of the parent that says how often a lasting column of a child table changes."""
    return name_above(database, Derived(CHANGES, table, column))


def fewer_than_rows(changes: str, rows: str) -> list[Constraint]:
    """Return rules by which a column of numbers of changes is below that of numbers of rows.

    They name the first `FEW` numbers of rows. With more rows, few persons change with each row.
    """
    return [
        Forbidden({rows: {"high": number}, changes: {"low": max(number, 1)}}) for number in range(1, FEW + 1)
    ]


def no_more_rows_than_values(database: Database, name: str, columns: Columns) -> list[Constraint]:
    """Return rules by which rows of the parent have no more child rows than values are left to these.

    Let a column x of the child rows never repeat, and compute another one, x + s, x - s or s - x, where s
    is the same in all rows of one parent. If bounds of both leave n values of x for some s, there are n rows
    at most. As in `fewer_than_rows`, n goes to `FEW`.

    Parameters
    ----------
    database : Database
    name : str
        The child table.
    columns : mapping of its columns to their kinds
    """
    table, rules = database.tables[name], list[Constraint]()
    alone = {names for rule in table.kept_lives if len(names := rule.differing) == 1}
    for rule in table.computed_above.values():
        factors = dict(rule.parts)
        if rule.unit or len(factors) != 2 or len(rule.constant) != 1 or rule.parts_here not in alone:
            continue
        (part,), (same,) = rule.parts_here, rule.constant
        kinds = columns.get(part), columns.get(rule.column)
        if not all(isinstance(kind, Numerical) and kind.is_public and kind.integer for kind in kinds):
            continue
        if {*map(abs, factors.values())} != {1}:
            continue
        (low, high), bounds = (kind.bounds for kind in kinds if isinstance(kind, Numerical))
        low, high = sorted(factors[None, part] * end for end in (low, high))  # of -x in s - x
        sign = factors[CONSTANT, same]
        for n in range(1, 1 + min(FEW, int(high - low), int(np.ptp(bounds)))):
            # Of x + sign s <= bounds[1] no more than n values are left if sign s > bounds[1] - low - n.
            above, below = bounds[1] - low - n + 1, bounds[0] - high + n - 1
            ends = ({"low": above}, {"high": below}) if sign > 0 else ({"high": -above}, {"low": -below})
            original = same_in_all_rows(database, name)[same]
            rules += [Forbidden({rows_of(name): {"low": n + 1}, original: end}) for end in ends]
    return rules


def most_rows_by_rules(child: Table, columns: Columns) -> float:
    """Return how many rows of a child table each row of the parent has at most, by public rules of lives.

    A rule such as ``year rises`` leaves as many rows as there are values, if these are public.

    Parameters
    ----------
    child : Table
    columns : mapping of a name to a kind
        The columns of the child table, as far as they are known.

    Examples
    --------
    >>> rising = Table(parent="homes", link="home", order="year", constraints=["year rises"])
    >>> year = Numerical(1, 3, integer=True, nullable=False)
    >>> most_rows_by_rules(rising, {"year": year}), most_rows_by_rules(rising, {})
    (3.0, inf)
    """
    limits = (rule.most_rows(columns) for rule in child.kept_lives if columns.keys() >= {*rule.columns})
    return min(limits, default=inf)


def fewest_cells(database: Database) -> int:
    """Return the least number of cells of a row of the root and the rows below it, by what is public.

    How many rows are below it is private, unless `children` says that there are some.

    >>> from privsyn import Schema
    >>> seen = Schema({"day": Numerical(1, 9), "cost": Numerical(0, 9)})
    >>> visits = Table(seen, parent="patients", link="id", children="2..")
    >>> fewest_cells(Database({"patients": Table(Schema({}), key="id"), "visits": visits}))
    5
    """
    fewest = dict[str, int]()
    for name in (database.root, *(name for name in database.names if database.root in database.above(name))):
        table = database.tables[name]
        fewest[name] = fewest[table.parent] * table.fewest_children if table.parent else 1
    columns = {
        name: len(summaries_of(database, name)) + len(schema.columns if schema else ())
        for name in fewest
        for schema in [database.tables[name].schema]
    }
    return sum(fewest[name] * columns[name] for name in fewest)


def number_of_rows(child: Table, limit: float) -> Numerical:
    """Return the column of numbers of rows of a child table, which are at most `limit` and keep `children`.

    >>> number_of_rows(Table(parent="homes", link="home", children="1.."), 9).bounds
    (1.0, 9.0)
    """
    fewest, largest = (0, None) if child.children is None else child.children
    high = max(fewest, int(limit if largest is None else min(largest, limit)))
    return Numerical(fewest, high, integer=True, nullable=False)


def number_of_changes(rows: float) -> Numerical:
    """Return the column of numbers of changes among at most `rows` rows of a parent.

    >>> number_of_changes(9).bounds
    (0.0, 8.0)
    """
    return Numerical(0, max(rows - 1, 1), integer=True, nullable=False)
