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
from privsyn.table.database.computed_above import CONSTANT, ComputedAbove
from privsyn.table.database.constant_sums import ConstantSum
from privsyn.table.database.database import Database
from privsyn.table.database.declared import Table
from privsyn.table.database.lookups import with_lookups
from privsyn.table.database.summaries import text_of
from privsyn.table.database.synthetic import places_above
from privsyn.table.discovery.broken_constraints import BROKEN, Misfit, numbers_of, rows_that_break
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.encoding.dtypes import family
from privsyn.table.enforcement.repair import rows_that_keep
from privsyn.table.inferred.columns import infer_schema
from privsyn.table.schema.columns import Coded, Column, Datetime, Numerical
from privsyn.table.schema.constraint import kind_of
from privsyn.table.schema.rules import ROUNDING
from privsyn.table.schema.schema import Schema, declared

ORDERED: Mapping[str | None, Column] = {"integer": Numerical(), "real": Numerical(), "datetime": Datetime()}
"""What a column without a declaration is, by its family of dtypes."""


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
        columns = infer_schema(data).columns if schema is None else schema.coded
        if schema is None:  # a rule means numbers, also where all rows have the same or there is no row
            columns = {name: ORDERED.get(family(data.dtypes[name]), kind) for name, kind in columns.items()}
        filled_schema = replace(schema or Schema({}), columns=columns)
        with about(f"table {name!r}"):
            filled, numbers = numbers_of(OpenSchema.of(filled_schema, data), data)
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
    broken = {}
    for name, rows in columns.items():
        for constraint, times in rows_that_break(rows.schema, rows.numbers) if within else ():
            broken[f"{name}: {', '.join(constraint.columns)} ({kind_of(constraint)})"] = times
        broken |= {f"{name}: {rule}": times for rule, times in _broken_across_rows(name, columns, database)}
        for column, target in database.tables[name].dealt.items():
            nowhere = frames[name][column].take(links.rows[name]).notna() & (links.dealt[name, column] < 0)
            broken[f"{name}: {column} is a key of {target}"] = int(nowhere.sum())
    return broken


def has_rules(database: Database, *, within: bool) -> bool:
    """Return whether a database declares rules about several rows, or `within` a table."""
    tables = database.private.values()
    across = any(
        table.constraints or table.constant or table.one or table.dealt or children_of(table, database)
        for table in tables
    )
    return across or (within and any(table.schema and table.schema.constraints for table in tables))


def children_of(table: Table, database: Database) -> tuple[int, int | None] | None:
    """Return how many rows each row of the parent has; None if nothing is declared.

    That the persons of one table have a row there is no rule.
    """
    fewest, largest = table.children or (0, None)
    return None if (fewest, largest) == (int(database.single is not None), None) else (fewest, largest)


def _broken_across_rows(
    name: str, columns: Mapping[str, Columns], database: Database
) -> Iterator[tuple[str, int]]:
    """Yield each rule of a table about several rows, in words, and how often it is broken."""
    table, child_rows = database.tables[name], columns[name]
    links = {table_name: table_rows.parent for table_name, table_rows in columns.items()}
    rows_here = np.arange(len(child_rows.parent))
    rows_above = dict(places_above(database, name, links, rows_here))
    for comparison in table.compared:
        above, column = comparison.above
        rule = comparison.enforced(
            child_rows.schema.ordinal(comparison.column), columns[above].schema.ordinal(column)
        )
        numbers = {
            comparison.column: child_rows.numbers[comparison.column],
            comparison.name: columns[above].numbers[column][rows_above[above]],
        }
        yield str(comparison), int((~rule.holds(numbers)).sum())
    for column, copied in table.copied.items():
        above, original = copied.above
        cells = [child_rows.cells[column], columns[above].cells[original].take(rows_above[above])]
        codes = pd.factorize(pd.concat(cells, ignore_index=True))[0]  # of a missing cell -1
        yield str(copied), int((codes[: len(cells[0])] != codes[len(cells[0]) :]).sum())
    yield from _computed_above(name, columns, database, rows_above)
    for column, summary in table.computed.items():
        rows, declared = columns[summary.table], child_rows.numbers[column]
        summed = np.ones(len(rows.parent)) if summary.column is None else rows.numbers[summary.column]
        computed = np.bincount(rows.parent, np.nan_to_num(summed), minlength=len(declared))
        resolution = child_rows.schema.coded[column].resolution
        error = np.abs(computed - declared)
        off = error > np.maximum(resolution / 2, ROUNDING * np.abs(computed))  # NaN breaks no rule
        yield f"{column} == {summary}", int(off.sum())
    if table.parent is None:
        return
    up, parents = table.parent, len(columns[table.parent].parent)
    number = np.bincount(child_rows.parent, minlength=parents)
    if (children := children_of(table, database)) is not None:
        fewest, largest = children
        words = (
            f"at least {fewest}"
            if largest is None
            else f"{fewest} to {largest}"
            if largest > fewest
            else str(fewest)
        )
        few_or_many = (number < fewest) | (number > (np.inf if largest is None else largest))
        yield f"{words} for each row of {up}", int(few_or_many.sum())
    for life in table.kept_lives:
        broken = life.broken(child_rows.schema.coded, child_rows.numbers, child_rows.parent)
        yield str(life), int(broken.sum())
    for column in table.constant:
        values = pd.factorize(child_rows.cells[column], use_na_sentinel=False)[0]
        changed = (np.diff(child_rows.parent) == 0) & (np.diff(values) != 0)
        yield f"one {column} for each row of {up}", len(np.unique(child_rows.parent[1:][changed]))
    for total in table.constant_sums:
        yield f"{total} in the rows of one row of {up}", _parents_with_several(total, child_rows)
    for only_one in table.one:
        has = _equal(child_rows, only_one.column, only_one.value)
        wrong = (number > 0) & (np.bincount(child_rows.parent, has, minlength=parents) != 1)
        if only_one.first:
            first = np.flatnonzero(np.diff(child_rows.parent, prepend=-1))
            wrong[child_rows.parent[first]] |= ~has[first]
        yield f"{only_one} in one row for each row of {up}", int(wrong.sum())


def _parents_with_several(total: ConstantSum, rows: Columns) -> int:
    """Return how many parents have rows with different sums. Of a missing cell nothing is known."""
    sums = total.sums(rows.schema.coded, rows.numbers)
    has = ~np.isnan(sums)
    sums, parents = sums[has], rows.parent[has]
    changed = np.abs(np.diff(sums)) > ROUNDING * np.maximum(np.abs(sums[1:]), 1.0)
    return len(np.unique(parents[1:][changed & (np.diff(parents) == 0)]))


def _computed_above(
    name: str, columns: Mapping[str, Columns], database: Database, rows_above: Mapping[str, Ints]
) -> Iterator[tuple[str, int]]:
    """Yield each rule that computes a column of a table with rows above, and how many rows break it."""
    child_rows, schema = columns[name], database.tables[name].schema
    kinds_above = {table: columns[table].schema.coded for table in rows_above}
    kinds_above[CONSTANT] = child_rows.schema.coded

    def numbers(table: str | None, column: str) -> Floats:
        if table in (None, CONSTANT):
            return child_rows.numbers[column]
        return columns[table].numbers[column][rows_above[table]]

    for rule in database.tables[name].stated:
        if not isinstance(rule, ComputedAbove):
            continue
        kind: Column | None = ORDERED.get(family(child_rows.cells[rule.column].dtype))
        if schema is not None:
            kind = schema.columns.get(rule.column)
        kinds = rule.kinds(child_rows.schema.coded, kinds_above)
        if isinstance(kind, Coded):  # if it has no bounds, any number fits
            kinds[text_of(rule.side)] = kind
        keeping = rows_that_keep(kinds, rule.constraint(kinds), rule.named(numbers))
        yield str(rule), int((~keeping).sum())


def _equal(rows: Columns, name: str, value: object) -> Mask:
    """Return which cells have a value, which a file may spell as text."""
    column = rows.schema.coded[name]
    if value in column.listed:
        return np.asarray(rows.numbers[name] == column.number_of(value))
    return np.asarray(rows.cells[name].astype(str) == str(value))


def check_rules(tables: Any, database: Database) -> list[str]:
    """Return how often the private rows break each rule about several rows that a database declares.

    NOT PRIVATE: each line counts private rows, and is for the owner only. `check_tables` counts all else.
    """
    if not has_rules(database, within=False):  # no row is read
        return []
    database = with_lookups(database)
    frames = read_tables("private", tables, database)
    rules = broken_rules(frames, LinkedRows.of(frames, database)[0], database, within=False)
    return [
        Misfit(
            f"{'' if database.single else f'table {name!r}: '}{rule.strip()}: broken {plural(times, 'time')},"
            " and by no synthetic row",
            BROKEN,
        )
        for (name, _, rule), times in ((words.partition(":"), times) for words, times in rules.items())
        if times
    ] or ["every row keeps every rule about several rows"]
