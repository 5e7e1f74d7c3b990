"""What must hold in linked tables: keys, orders and rules of a database. It counts rows: NOT PRIVATE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import about, plural
from privsyn.evaluation.linked_rows import Frames, LinkedRows, read_tables
from privsyn.marginals.domain import Floats, Ints, Mask
from privsyn.table.database.declared import Database
from privsyn.table.database.lookups import with_lookups
from privsyn.table.database.synthetic import places_above
from privsyn.table.discovery.broken_constraints import Broken, numbers_of, rows_that_break
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.inferred.columns import infer_schema
from privsyn.table.schema.constraint import kind_of
from privsyn.table.schema.rules import ROUNDING
from privsyn.table.schema.schema import Schema, declared


@dataclass(frozen=True, eq=False)
class Columns:
    """The rows of one table that belong to somebody, sorted by parent and by order.

    Parameters
    ----------
    schema : Schema
        With all values and bounds.
    cells : pandas.DataFrame
        With keys and links.
    numbers : mapping of str to float array
        The cells as constraints read them.
    parent : integer array
        The place of each row's row in the parent's table.
    """

    schema: Schema
    cells: pd.DataFrame
    numbers: Mapping[str, Floats]
    parent: Ints

    @classmethod
    def of(cls, name: str, frames: Frames, links: LinkedRows, database: Database) -> Columns:
        """Return the rows of a table."""
        table, cells = database.tables[name], frames[name].take(links.rows[name])
        schema, parent = declared(table.schema), links.parent[name]
        schema = None if schema is None else schema.without(table.copied)
        data = cells.drop(columns=[*table.keys, *table.copied]) if schema is None else cells[[*schema.coded]]
        if not len(data.columns) or (schema is None and table.schema is not None):  # it has keys alone
            return cls(Schema({}), cells, {}, parent)
        whole = infer_schema(data) if schema is None else replace(schema, columns=schema.coded)
        with about(f"table {name!r}"):
            filled, numbers = numbers_of(OpenSchema.of(whole, data), data)
        return cls(filled, cells, numbers, parent)


def broken_rules(
    frames: Frames, links: LinkedRows, database: Database, *, within: bool = True
) -> dict[str, int]:
    """Return each rule that a database declares, with its table, and how often it is broken.

    Comparisons and constraints within a table are broken by rows, all others by rows of the parent. A row
    that belongs to nobody breaks no rule across tables: it is counted as an orphan. Nor does a missing cell,
    except in a copy of a cell that is there.
    Without `within`, constraints within a table are left out.
    """
    if not has_rules(database, within=within):
        return {}
    columns = {name: Columns.of(name, frames, links, database) for name in database.names}
    found = {}
    for name, own in columns.items():
        for constraint, times in rows_that_break(own.schema, own.numbers) if within else ():
            found[f"{name}: {', '.join(constraint.columns)} ({kind_of(constraint)})"] = times
        found |= {f"{name}: {rule}": times for rule, times in _across(name, columns, database)}
    return found


def has_rules(database: Database, *, within: bool) -> bool:
    """Return whether a database declares rules about several rows, or `within` a table."""
    tables = database.private.values()
    across = any(table.constraints or table.constant or table.one or table.children for table in tables)
    return across or (within and any(table.schema and table.schema.constraints for table in tables))


def _across(name: str, columns: Mapping[str, Columns], database: Database) -> Iterator[tuple[str, int]]:
    """Yield each rule of a table about several rows, in words, and how often it is broken."""
    table, own = database.tables[name], columns[name]
    links, rows_here = {each: of.parent for each, of in columns.items()}, np.arange(len(own.parent))
    places = dict(places_above(database, name, links, rows_here))
    for comparison in table.compared:
        above, column = comparison.above
        rule = comparison.enforced(
            own.schema.ordinal(comparison.column), columns[above].schema.ordinal(column)
        )
        numbers = {
            comparison.column: own.numbers[comparison.column],
            comparison.name: columns[above].numbers[column][places[above]],
        }
        yield str(comparison), int((~rule.holds(numbers)).sum())
    for column, copied in table.copied.items():
        above, its = copied.above
        cells = [own.cells[column], columns[above].cells[its].take(places[above])]
        codes = pd.factorize(pd.concat(cells, ignore_index=True))[0]  # of a missing cell -1
        yield str(copied), int((codes[: len(cells[0])] != codes[len(cells[0]) :]).sum())
    for column, summary in table.computed.items():
        rows, given = columns[summary.table], own.numbers[column]
        summed = np.ones(len(rows.parent)) if summary.column is None else rows.numbers[summary.column]
        found = np.bincount(rows.parent, np.nan_to_num(summed), minlength=len(given))
        resolution = own.schema.coded[column].resolution
        error = np.abs(found - given)
        off = error > np.maximum(resolution / 2, ROUNDING * np.abs(found))  # NaN breaks no rule
        yield f"{column} == {summary}", int(off.sum())
    if table.parent is None:
        return
    up, parents = table.parent, len(columns[table.parent].parent)
    number = np.bincount(own.parent, minlength=parents)
    if table.children is not None:
        least, most = table.children
        words = f"at least {least}" if most is None else f"{least} to {most}" if most > least else str(least)
        few_or_many = (number < least) | (number > (np.inf if most is None else most))
        yield f"{words} for each row of {up}", int(few_or_many.sum())
    for column in table.constant:
        values = pd.factorize(own.cells[column], use_na_sentinel=False)[0]
        changed = (np.diff(own.parent) == 0) & (np.diff(values) != 0)
        yield f"one {column} for each row of {up}", len(np.unique(own.parent[1:][changed]))
    for one in table.one:
        has = _equal(own, one.column, one.value)
        wrong = (number > 0) & (np.bincount(own.parent, has, minlength=parents) != 1)
        if one.first:
            first = np.flatnonzero(np.diff(own.parent, prepend=-1))
            wrong[own.parent[first]] |= ~has[first]
        yield f"{one} in one row for each row of {up}", int(wrong.sum())


def _equal(own: Columns, name: str, value: object) -> Mask:
    """Return which cells have a value, which a file may spell as text."""
    column = own.schema.coded[name]
    if value in column.listed:
        return np.asarray(own.numbers[name] == column.number_of(value))
    return np.asarray(own.cells[name].astype(str) == str(value))


def check_rules(tables: Any, database: Database) -> list[str]:
    """Return how often the private rows break each rule about several rows that a database declares.

    NOT PRIVATE: each line counts private rows, and is for the owner only. `check_tables` counts all else.
    """
    if not has_rules(database, within=False):  # no row is read
        return []
    database = with_lookups(database)
    frames = read_tables("private", tables, database, unit=None)
    rules = broken_rules(frames, LinkedRows.of(frames, database)[0], database, within=False)
    return [
        Broken(f"table {name!r}:{rule}: broken {plural(times, 'time')}, and by no synthetic row")
        for (name, _, rule), times in ((words.partition(":"), times) for words, times in rules.items())
        if times
    ] or ["every row keeps every rule about several rows"]
