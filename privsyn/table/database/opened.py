"""Open the tables of a database: to which row of its parent, and to whose rows, each row belongs.

All of it is private. What is known of a row depends on the rows of the same person alone: on its own cells,
on the rows above it, and on those below it. A row that belongs to nobody is left out. Whether it does, its
link and the keys of its parent's table decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.abilities import CLUSTER, check_abilities
from privsyn.errors import InputError, about, did_you_mean, replace_errors
from privsyn.marginals.counting import ranks
from privsyn.marginals.domain import Floats, Ints, Mask
from privsyn.table.database.database import Database
from privsyn.table.database.declared import Table
from privsyn.table.database.lookups import check_all_looked_up, is_same_table, with_keys
from privsyn.table.database.summaries import ANY, CHANGES, COUNT, EVER, START, Derived
from privsyn.table.discovery.open_schema import declared_or_by_names
from privsyn.table.encoding.dtypes import Dtype, family, hint_of, its, shown_dtype, with_missing
from privsyn.table.encoding.encoders import STRAY
from privsyn.table.encoding.parsing import alone, number
from privsyn.table.enforcement.forbidden import Forbidden, MissingWhen
from privsyn.table.io.formats import tables_in
from privsyn.table.io.identifiers import NOBODY, check_unit_column, codes_of, identifiers, order_keys
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.source import RawTable
from privsyn.table.kinds.keys import Key, columns_of
from privsyn.table.schema.columns import Categorical, Coded, Column, Numerical, Ordinal, column_of
from privsyn.table.schema.constraint import Constraint
from privsyn.table.schema.schema import Schema

MOST_ROWS = 100_000
"""Upper bound of a column of numbers of child rows. Of `rows_of` a child, a released one is used instead."""

FEW = 4
"""Numbers of child rows of which rules say that there are fewer changes."""

YES, NO = "yes", "no"
ROW = "row"
"""The derived column of a table that has only keys. All its values are equal."""

Shuffle = Callable[[Ints], Ints]
"""Returns the places of the rows, person by person, each person's in random order."""


def rows_of(table: str) -> str:
    """Return the name of the column that has the number of rows of a child table.

    >>> rows_of("visits")
    'count(visits)'
    """
    return str(Derived(COUNT, table))


@dataclass(frozen=True, eq=False, repr=False)
class LinkedTable:
    """One table of a database.

    Parameters
    ----------
    source : RawTable
        With all columns, keys too.
    unit : str or tuple of str
        The columns by which rows belong to something: the link or, in the root, the key.
    prints : tuple of arrays
        The fingerprints of `unit`.
    persons : integer array of shape (rows,)
        The same code for all rows of a person, `NOBODY` where a row belongs to none.
    parents : integer array of shape (rows,)
        The place of the parent's row; in the root, that of the row itself.
    keys : array of shape (rows,), optional
        By which the rows of a parent are sorted.
    also : tuple of str
        Columns that are no data, besides `unit`.
    added : pandas.DataFrame
        The derived columns: one row for each row.
    schema : Schema, optional
        Of the data and the derived columns.
    computed_above : mapping of a column that is computed from rows above to its kind
        Public: declared, or by its name and dtype. No cell of it is read.
    """

    source: RawTable
    unit: Key
    prints: tuple[Ints, ...]
    persons: Ints
    parents: Ints
    keys: Floats | None
    also: tuple[str, ...]
    added: pd.DataFrame
    schema: Schema
    computed_above: Mapping[str, Coded] = field(default_factory=dict)


def named_tables(database: Database, tables: object) -> dict[str, Any]:
    """Return the private tables by name, before any is opened.

    Parameters
    ----------
    database : Database
        As declared: a look-up table that is private too would be published as it is, so it is refused.
    tables : mapping of a name to a table, or path of a folder, DuckDB or SQLite file
    """
    if isinstance(tables, str | PathLike):
        tables = tables_in(tables, database.names)
    if not isinstance(tables, Mapping):
        raise InputError("a database is fitted to a mapping of names to tables, such as {'persons': persons}")
    for name, data in tables.items():
        if name in database.public:
            raise InputError(f"the table {name!r} is public, and the schema has it: leave it out")
        if name not in database.tables:
            raise InputError(
                f"there is no table {name!r} in the database{did_you_mean(name, database.tables)}"
            )
        for lookup, table in database.public.items():
            if is_same_table(data, table.public):
                raise InputError(
                    f"the table {name!r} is private, and the look-up table {lookup!r} too: give another one"
                )
    return dict(tables)


def open_tables(database: Database, tables: Mapping[str, Any], shuffle: Shuffle) -> dict[str, LinkedTable]:
    """Open all tables of a database, each after its parent. No row is counted.

    Parameters
    ----------
    database : Database
    tables : mapping of a name to a table
        Each as for `privsyn.table.io.read_in_batches`. If the root has no columns of data, it may be left
        out: then every link of its children is a person.
    shuffle : callable
        Of the rows with the same key in the root, the first in its order is kept.
    """
    sources = _sources(database, tables)
    opened: dict[str, LinkedTable] = {}
    for name in database.names:
        with about(f"table {name!r}"):
            opened[name] = _linked_table(database, name, sources[name], opened, shuffle)
    check_all_looked_up(database, {name: linked.schema for name, linked in opened.items()})
    for name in database.names:
        with about(f"table {name!r}"):
            for column, rule in database.tables[name].copied.items():
                above, its = rule.above
                if column not in opened[name].source.head.columns:
                    raise InputError(f"{str(rule)!r}: the table has no column {column!r}: correct the name")
                if its not in (*database.tables[above].keys, *opened[above].schema.coded):
                    raise InputError(
                        f"{str(rule)!r}: no cell of {rule.name} is counted, so there is none to copy"
                    )
    for name in reversed(database.names):
        with about(f"table {name!r}"):
            opened[name] = _with_summaries(database, name, opened)
    for name, linked in opened.items():
        if columns := database.tables[name].elsewhere:  # they follow from another table, and are not read
            computed, without = _computed_above(name, database, linked), linked.schema.without(columns)
            also = (*linked.also, *columns)
            opened[name] = replace(linked, also=also, schema=without, computed_above=computed)
    return opened


def _sources(database: Database, tables: Mapping[str, Any]) -> dict[str, RawTable]:
    sources = {}
    for name, table in database.private.items():
        if name in tables:
            with about(f"table {name!r}"):
                sources[name] = _source(table, tables[name])
    missing = [name for name in database.private if name not in sources]
    name, root = database.root, database.tables[database.root]
    if missing == [name] and not root.has_data and len(root.key_columns) == 1:
        # The root has a row for each link of its children. The dtypes of the links alone decide its own.
        children = database.children(name)
        links = [sources[child].column(database.tables[child].link_columns[0]) for child in children]
        if all(family(link.dtype) in ("integer", "real") for link in links):
            every: Any = pd.concat(links, ignore_index=True).dropna().drop_duplicates()
        else:  # categories follow from the rows, and only equal ones of two tables could be joined
            names = pa.chunked_array(list(map(identifiers, links)), pa.large_binary()).unique().drop_null()
            texts = [identifier.decode("utf-8", "surrogatepass") for identifier in names.to_pylist()]
            every = pd.Categorical.from_codes(np.arange(len(texts)), pd.Index(texts, dtype=object))
        sources[name] = read_in_batches(pd.DataFrame({root.key_columns[0]: every}))
    elif missing:
        raise InputError(
            f"the table {missing[0]!r} is missing: in a folder its file is called {missing[0]}.csv, or with"
            " the ending of another format"
        )
    return sources


def _source(table: Table, data: Any) -> RawTable:
    schema = table.schema if table.has_data or table.schema != Schema({}) else None  # it may say how to read
    order = () if table.only_order is None else (table.only_order,)  # its type is not guessed either
    source = read_in_batches(data, schema, unit=(*table.keys, *order, *table.copied))
    check_abilities([CLUSTER], {"tables": not source.near})
    for setting in ("key", "link", "order"):
        for name in columns_of(getattr(table, setting)):
            check_unit_column(source.head.columns, name, setting)
    source.require_again("how its rows are linked")
    column = None if table.schema is None else table.schema.columns.get(table.order or "")
    listed = getattr(column, "values", None) or ()
    if listed and all(isinstance(value, str) for value in listed):
        cells = pd.DataFrame({table.order: [*listed]})
        if np.isnan(order_keys(table.order or "", iter([cells]))).all():  # it would order nothing
            raise InputError(f"order {table.order!r} has texts: name a column of numbers or times")
    return source


def _linked_table(
    database: Database, name: str, source: RawTable, opened: Mapping[str, LinkedTable], shuffle: Shuffle
) -> LinkedTable:
    """Return a table without derived columns; its parent was opened before."""
    table = database.tables[name]
    unit = table.link or table.key
    if unit is None:
        raise InputError("a table without a parent needs a key, which identifies a person")
    prints = tuple(source.fingerprints(unit))
    codes, keys = np.concatenate(prints), None
    if table.parent is None:
        of_keys, persons = codes_of(codes), np.full(len(codes), NOBODY)
        order = shuffle(of_keys)
        chosen = order[np.diff(of_keys[order], prepend=NOBODY) != 0]
        persons[chosen] = of_keys[chosen]
        parents = np.where(persons == NOBODY, -1, np.arange(len(persons)))
    else:
        above = opened[table.parent]
        parents = _places(above, database.tables[table.parent].key, codes)
        persons = np.append(above.persons, NOBODY)[parents]  # the last for the place -1
        if table.order is not None:
            declared = None if table.schema is None else table.schema.columns.get(table.order)
            pattern = getattr(declared, "format", None)
            read = partial(order_keys, table.order, pattern=pattern)
            keys = np.concatenate(source.only(table.order).results(read))
    no_data = dict.fromkeys((*table.keys, *columns_of(table.only_order)))
    also = tuple(column for column in no_data if column not in columns_of(unit))
    nothing = pd.DataFrame(index=range(len(codes)))
    schema = _schema(database, name, source, (*columns_of(unit), *also))
    return LinkedTable(source, unit, prints, persons, parents, keys, also, nothing, schema)


def _places(above: LinkedTable, key: Key, links: Ints) -> Ints:
    """Return the place of the row with each key in the table above, -1 where there is none."""
    prints = above.prints if key == above.unit else tuple(above.source.fingerprints(key))
    codes = codes_of(np.concatenate([*prints, links]))
    keys, wanted = codes[: len(above.persons)], codes[len(above.persons) :]
    rows_of_keys = np.full(int(codes.max(initial=0)) + 1, -1)
    keyed = np.flatnonzero((keys != NOBODY) & (above.persons != NOBODY))[::-1]  # of two, the first
    rows_of_keys[keys[keyed]] = keyed
    return np.where(wanted == NOBODY, -1, rows_of_keys[wanted])


def _schema(database: Database, name: str, source: RawTable, no_data: tuple[str, ...]) -> Schema:
    """Return the schema of the columns of data."""
    table = database.tables[name]
    if table.schema is not None and not table.schema.columns:
        return table.schema
    head = source.head.drop(columns=[*no_data])
    for column in table.lookups:
        if column not in head.columns:
            raise InputError(f"the table has no column {column!r}, which lookups names: correct one of them")
    by_names = declared_or_by_names(table.schema, head, source.schema)
    return by_names if table.schema is not None else with_keys(database, name, by_names, None)


def with_columns_that_last(database: Database, opened: Mapping[str, LinkedTable]) -> dict[str, LinkedTable]:
    """Return opened tables with the derived columns of all that lasts by the rules of `database`.

    The tables were opened by a database without some of these rules.
    """
    tables = dict[str, LinkedTable]()
    for name, linked in opened.items():
        summaries = {
            column: summary
            for column, summary in summaries_of(database, name).items()
            if column not in linked.schema.columns and summary.how in (START, CHANGES)
        }
        tables[name] = _summed_up(database, name, opened, summaries) if summaries else linked
    return tables


def _with_summaries(database: Database, name: str, opened: Mapping[str, LinkedTable]) -> LinkedTable:
    """Return the table with its derived columns: the number of rows of each child table, and `derive`."""
    table, linked = database.tables[name], _summed_up(database, name, opened, summaries_of(database, name))
    if {*linked.schema.coded} - {*table.elsewhere}:
        return linked
    schema = linked.schema  # of a table of keys: its rows are counted
    row = {ROW: Categorical([YES], nullable=False)}
    return replace(
        linked,
        added=linked.added.assign(**{ROW: YES}),
        schema=replace(schema, columns={**schema.columns, **row}),
    )


def _summed_up(
    database: Database, name: str, opened: Mapping[str, LinkedTable], summaries: Mapping[str, Derived]
) -> LinkedTable:
    """Return the table with derived columns."""
    table, linked = database.tables[name], opened[name]
    added, columns = linked.added.copy(), dict[str, Column]()
    rules: list[Constraint] = []
    for column, summary in summaries.items():
        if column in linked.schema.columns:
            raise InputError(f"{column!r} is a column of the table and a derived one: rename one of them")
        added[column], columns[column] = _summary(summary, opened[summary.table], len(linked.persons))
        if summary.how == COUNT:
            columns[column] = number_of_rows(database.tables[summary.table], MOST_ROWS)
        kind = columns[column]
        may_have_none = database.tables[summary.table].fewest_children == 0
        if summary.how in (ANY, START) and isinstance(kind, Coded) and may_have_none:
            rules += () if kind.nullable else [MissingWhen(column, {rows_of(summary.table): 0}, only=True)]
            columns[column] = replace(kind, nullable=True)
        if summary.how == CHANGES:
            rules += fewer_than_rows(column, rows_of(summary.table))
        for total in (name for name, computation in table.computed.items() if computation == summary):
            columns[column], declared = kind, linked.schema.columns.get(total)
            if isinstance(declared, Numerical) and isinstance(kind, Numerical) and declared.is_public:
                columns[column] = replace(declared, nullable=False)
    schema, columns = linked.schema, {**linked.schema.columns, **columns}
    schema = replace(schema, columns=columns, constraints=(*schema.constraints, *rules))
    return replace(linked, added=added, schema=schema)


def _computed_above(name: str, database: Database, linked: LinkedTable) -> dict[str, Coded]:
    """Return the kinds of the columns that are computed from rows above; refuse one that is not there."""
    computed: dict[str, Coded] = {}
    for column, rule in database.tables[name].computed_above.items():
        kind, dtype = linked.schema.columns.get(column), linked.source.head.dtypes.get(column)
        if dtype is None or not isinstance(kind, Coded):
            problem = f"{str(rule)!r}: {name!r} has no column {column!r} of numbers or times"
            raise InputError(f"{problem}: correct the name or its kind")
        if kind.kept_dtype(dtype) is None:
            raise InputError(f"{str(rule)!r}: column {column!r}: {its(dtype)}: {hint_of(dtype)}")
        computed[column] = kind
    return computed


def summaries_of(database: Database, name: str) -> dict[str, Derived]:
    """Return the derived columns of a table, each with the summary of child rows that it is."""
    table, children = database.tables[name], database.children(name)
    summaries = {rows_of(child): Derived(COUNT, child) for child in children} | dict(table.derive)
    further = [(*constants(database, child), *of_lasting(database, child)) for child in children]
    return summaries | {str(summary): summary for summary in chain(table.computed.values(), *further)}


def constants(database: Database, name: str) -> tuple[Derived, ...]:
    """Return the columns of the parent that have what is the same in all rows of a child table."""
    return tuple(Derived(ANY, name, column) for column in database.tables[name].constant)


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


def positions(parents: Ints, keys: Floats | None = None) -> Ints:
    """Return the position of each row among those of its parent, from 0, in the order of their keys.

    >>> positions(np.array([4, 4, 2, 4]), np.array([3.0, 1.0, 7.0, 2.0])).tolist()
    [2, 0, 0, 1]
    """
    order = np.lexsort((np.zeros(len(parents)) if keys is None else keys, parents))
    ranks_in_parent = np.empty(len(parents), np.int64)
    ranks_in_parent[order] = ranks(parents[order])
    return ranks_in_parent


def _summary(summary: Derived, child: LinkedTable, rows: int) -> tuple[Any, Column]:
    """Return the summary of the rows of each parent, and the kind of such a column.

    A row of the parent is summed up from rows of the same person.
    """
    if summary.column is None:
        counts = np.bincount(child.parents[child.parents >= 0], minlength=rows)
        return counts, number_of_rows(Table(), MOST_ROWS)
    column = child.schema.columns.get(summary.column)
    if column is None:
        raise InputError(f"derive: {summary.table!r} has no column {summary.column!r}")
    dtype = child.source.head[summary.column].dtype  # public; categories of all cells follow from the rows
    cells, kind = child.source.column(summary.column), column_of(dtype)
    if summary.how == ANY:
        if not isinstance(column, Coded):
            raise InputError(
                f"constant: no cell of {summary.table}.{summary.column} is counted: leave it out"
            )
        # A row of the parent has one such value, and it is of a row of the same person: whoever is removed
        # changes one row of the root and the rows below it, as before.
        return _first(cells, child.parents, rows), replace(column, nullable=column.may_be_missing(dtype))
    if summary.how in (START, CHANGES):
        return _along(summary, cells, child, rows, column)
    if summary.how not in (EVER, "sum", "mean"):
        if not isinstance(column, Ordinal) or not isinstance(column, type(kind)):
            raise InputError(
                f"{summary}: {summary.column!r} is no column of numbers or times: {_as_read(dtype)}"
            )
        return _chosen(summary, cells, child, rows), replace(column, nullable=True)
    numbers = None
    if isinstance(column, Numerical) and isinstance(kind, Numerical):
        numbers = column.widest(dtype).encoder(dtype).read(cells)
    if summary.how == EVER:
        if isinstance(column, Ordinal) and numbers is None:
            raise InputError(f"derive: ever is about listed values and numbers, not {summary.column!r}")
        equal = _are(cells, summary.value or "") if numbers is None else numbers == number(summary.value)
        ever = np.bincount(child.parents[equal & (child.parents >= 0)], minlength=rows) > 0
        return np.where(ever, YES, NO), Categorical([NO, YES], nullable=False)
    if numbers is None:
        raise InputError(f"{summary}: {summary.column!r} is no column of numbers: {_as_read(dtype)}")
    has = ~np.isnan(numbers) & (child.parents >= 0)
    # NumPy counts in integers if no row has a number, and that would show.
    sums = np.bincount(child.parents[has], numbers[has], minlength=rows).astype(np.float64)
    if summary.how == "sum":
        return np.where(np.isnan(sums), 0.0, sums), Numerical(nullable=False)
    counts = np.bincount(child.parents[has], minlength=rows)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return means, Numerical(getattr(column, "low", None), getattr(column, "high", None))


def _as_read(dtype: Dtype) -> str:
    return f"its dtype here is {shown_dtype(dtype)}; convert it first, or give the file"


def _first(cells: pd.Series, parents: Ints, rows: int) -> Any:
    """Return the first cell of each parent that is not missing; missing if there is none."""
    rows_present = np.flatnonzero((parents >= 0) & cells.notna().to_numpy())
    parents_present, first = np.unique(parents[rows_present], return_index=True)
    taken = np.full(rows, -1)
    taken[parents_present] = rows_present[first]
    nullable = with_missing(cells)
    # Of objects that are all text, pandas would else make another dtype, which tells that no other is there.
    return pd.Series(pd.api.extensions.take(nullable.array, taken, allow_fill=True), dtype=nullable.dtype)


def _along(summary: Derived, cells: pd.Series, child: LinkedTable, rows: int, column: Column) -> Any:
    """Return the first cell of each parent, or how often its cells change, and the kind of such a column.

    Both follow from the rows of one parent, which are rows of one person. So a person changes them in the
    row of the root, or in the rows below it, as other columns of these rows.
    """
    if not (isinstance(column, Coded) and column.lists_values and column.is_public):
        raise InputError(f"{summary}: declare {summary.column!r} as categorical, with its list of values")
    order = np.lexsort((np.arange(len(cells)) if child.keys is None else child.keys, child.parents))
    order = order[np.searchsorted(child.parents[order], 0) :]
    parents = child.parents[order]
    begins = np.diff(parents, prepend=-1) != 0
    if summary.how == START:
        taken = np.full(rows, -1)
        taken[parents[begins]] = order[begins]
        nullable = with_missing(cells)
        values = pd.api.extensions.take(nullable.array, taken, allow_fill=True)
        kind = replace(column, nullable=column.may_be_missing(cells.dtype))
        return pd.Series(values, dtype=nullable.dtype), kind
    codes = codes_of_listed(child, str(summary.column))[0][order]
    changes = ~begins & (np.diff(codes, prepend=-1) != 0)
    return np.bincount(parents[changes], minlength=rows), number_of_changes(MOST_ROWS)


def codes_of_listed(linked: LinkedTable, column: str) -> tuple[Ints, int]:
    """Return the code of each cell of a column with a public list of values, and the number of codes.

    The codes are private. Cells that are missing or not listed have the last code.
    """
    cells, kind = linked.source.column(column), linked.schema.coded[column]
    encoder = kind.encoder(cells.dtype)
    codes = encoder.encode(cells)
    return np.where(codes == STRAY, encoder.size, codes), encoder.size + 1


def _chosen(summary: Derived, cells: pd.Series, child: LinkedTable, rows: int) -> Any:
    """Return the least, largest, first or last cell of each parent, missing if there is none.

    The dtype follows from that of the cells. Of integers of NumPy it is one with missing cells: else pandas
    would take floats if any parent is without rows.
    """
    cells = with_missing(cells)
    order = np.lexsort((np.arange(len(cells)) if child.keys is None else child.keys, child.parents))
    order = order[np.searchsorted(child.parents[order], 0) :]
    with replace_errors(f"derive: no {summary.how} of {summary.column!r} was found: please report this"):
        groups = cells.iloc[order].groupby(child.parents[order])
        return getattr(groups, summary.how)().reindex(range(rows)).array


def _are(cells: pd.Series, text: str) -> Mask:
    """Return which cells have this text. Each follows from its own cell: pandas writes times by all of them.

    >>> _are(pd.Series([True, None, b"x", "True"], dtype=object), "True").tolist()
    [True, False, False, True]
    """
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return np.append(_are(pd.Series(cells.cat.categories), text), np.False_)[cells.cat.codes]
    return np.array(
        [alone(lambda value: str(value) == text, cell, False) for cell in cells.tolist()], np.bool_
    )
