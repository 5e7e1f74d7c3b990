"""Open the tables of a database: to which row of its parent, and to whose rows, each row belongs.

All of it is private. What is known of a row depends on the rows of the same person alone: on its own cells,
on the rows above it, and on those below it. A row that belongs to nobody is left out. Whether it does, its
link and the keys of its parent's table decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.abilities import CLUSTER, check_abilities
from privsyn.errors import InputError, about, did_you_mean
from privsyn.marginals.counting import ranks
from privsyn.marginals.domain import Floats, Ints
from privsyn.table.database.child_summaries import YES, summary_of
from privsyn.table.database.database import Database
from privsyn.table.database.declared import Table
from privsyn.table.database.derived_columns import (
    MOST_ROWS,
    fewer_than_rows,
    no_more_rows_than_values,
    number_of_rows,
    rows_of,
    summaries_of,
)
from privsyn.table.database.linked_table import LinkedTable
from privsyn.table.database.lookups import check_all_looked_up, is_same_table, with_keys
from privsyn.table.database.summaries import ANY, CHANGES, COUNT, SAME, START, Derived
from privsyn.table.encoding.dtypes import family, hint_of, its
from privsyn.table.enforcement.forbidden import MissingWhen
from privsyn.table.engine.engine_table import EngineTable, open_table
from privsyn.table.engine.rows_in_order import RowsInOrder, identity_of
from privsyn.table.io.formats import tables_in
from privsyn.table.io.identifiers import NOBODY, check_unit_column, codes_of, identifiers, order_keys
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.source import RawTable
from privsyn.table.kinds.keys import Key, columns_of
from privsyn.table.schema.columns import Categorical, Coded, Column, Numerical
from privsyn.table.schema.constraint import Constraint
from privsyn.table.schema.implied import declared_or_by_names
from privsyn.table.schema.schema import Schema

ROW = "row"
"""The derived column of a table that has only keys. All its values are equal."""

ELSEWHERE = (
    "a database counts the rows below each row, and computes no other summary of them: leave it out, or give"
    " the tables as files"
)

Shuffle = Callable[[Ints], Ints]
"""Returns the places of the rows, person by person, each person's in random order."""


def named_tables(database: Database, tables: object) -> dict[str, Any]:
    """Return the private tables by name, before any is opened.

    Parameters
    ----------
    database : Database
        As declared: a look-up table that is private too would be published as it is, so it is refused.
    tables : mapping of a name to a table, or path of a folder, DuckDB or SQLite file
    """
    if isinstance(tables, str | PathLike):
        tables = tables_in(tables, database.names, database.may_lack)
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


def open_tables(
    database: Database, tables: Mapping[str, Any], shuffle: Shuffle, secret: Callable[[], str] = str
) -> dict[str, LinkedTable]:
    """Open all tables of a database, each after its parent. No row is counted.

    Parameters
    ----------
    database : Database
    tables : mapping of a name to a table
        Each as for `privsyn.table.io.read_in_batches`. If the root has no columns of data, it may be left
        out: then every link of its children is a person.
    shuffle : callable
        Of the rows with the same key in the root, the first in its order is kept.
    secret : callable
        Draws the key by which a database sorts rows, if the tables are in one.
    """
    sources = _through_one_engine(_sources(database, tables))
    key = secret() if isinstance(sources[database.root], EngineTable) else ""
    opened: dict[str, LinkedTable] = {}
    for name in database.names:
        with about(f"table {name!r}"):
            source = sources[name]
            opened[name] = (
                _linked_elsewhere(database, name, source, opened, key)
                if isinstance(source, EngineTable)
                else _linked_table(database, name, source, opened, shuffle)
            )
    check_all_looked_up(database, {name: linked.schema for name, linked in opened.items()})
    for name in database.names:
        with about(f"table {name!r}"):
            for column, rule in database.tables[name].copied.items():
                above, original = rule.above
                if column not in opened[name].source.head.columns:
                    raise InputError(f"{str(rule)!r}: the table has no column {column!r}: correct the name")
                if original not in (*database.tables[above].keys, *opened[above].schema.coded):
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


def _through_one_engine(sources: dict[str, RawTable]) -> dict[str, RawTable]:
    """Return the tables of one database through one connection; refuse tables that are at several places."""
    engines = [source.engine if isinstance(source, EngineTable) else None for source in sources.values()]
    first = engines[0]
    if any(engine is not first and not (engine and first and engine.is_at(first)) for engine in engines):
        raise InputError("linked tables are all in one database, or all are read: give all of them alike")
    if first is None:
        return sources
    return {name: replace(source, engine=first) for name, source in sources.items()}  # type: ignore[call-arg]


def _sources(database: Database, tables: Mapping[str, Any]) -> dict[str, RawTable]:
    sources: dict[str, RawTable] = {}
    for name, table in database.private.items():
        if name in tables:
            with about(f"table {name!r}"):
                sources[name] = _source(table, tables[name])
    missing = [name for name in database.private if name not in sources]
    name, root = database.root, database.tables[database.root]
    if missing == [name] == [database.may_lack]:
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
    source = open_table(data, schema, unit=(*table.keys, *order, *table.copied))
    check_abilities([CLUSTER], {"tables": not (source.near or isinstance(source, EngineTable))})
    for setting in ("key", "link", "order"):
        for name in columns_of(getattr(table, setting)):
            check_unit_column(source.head.columns, name, setting)
    for name in table.dealt:
        check_unit_column(source.head.columns, name, "dealt")
    if isinstance(source, EngineTable):
        return source
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
    unit = table.link or table.key or ()
    prints = tuple(source.fingerprints(unit))
    codes, keys = np.concatenate(prints), None
    if not unit:  # a row that nothing leads to is a person: its place depends on no other row
        persons = parents = np.arange(len(codes))
    elif table.parent is None:
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


def _linked_elsewhere(
    database: Database, name: str, source: EngineTable, opened: Mapping[str, LinkedTable], secret: str
) -> LinkedTable:
    """Return a table of a database that counts its rows, without derived columns. No row is read."""
    table = database.tables[name]
    unit = table.link or table.key
    if unit is None:
        raise InputError("a database that counts the rows needs a key in the table without a parent")
    no_data = dict.fromkeys((*table.keys, *columns_of(table.only_order)))
    also = tuple(column for column in no_data if column not in columns_of(unit))
    key = table.key if database.children(name) or table.parent is None else None
    rows = RowsInOrder.linked(
        source,
        identity_of(source, unit, secret),
        None if key is None else identity_of(source, key, secret),
        (*columns_of(unit), *columns_of(key), *also, *table.elsewhere),
        table.order,
        None if table.parent is None else opened[table.parent].elsewhere,
    )
    none, nothing = np.zeros(0, np.int64), pd.DataFrame(index=range(0))
    schema = _schema(database, name, source, (*columns_of(unit), *also))
    return LinkedTable(source, unit, (), none, none, None, also, nothing, schema, elsewhere=rows)


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
    schema, elsewhere = linked.schema, linked.elsewhere  # of a table of keys: its rows are counted
    row = {ROW: Categorical([YES], nullable=False)}
    return replace(
        linked,
        added=linked.added.assign(**{ROW: YES}),
        schema=replace(schema, columns={**schema.columns, **row}),
        elsewhere=None if elsewhere is None else elsewhere.with_constant(ROW, YES),
    )


def _summed_up(
    database: Database, name: str, opened: Mapping[str, LinkedTable], summaries: Mapping[str, Derived]
) -> LinkedTable:
    """Return the table with derived columns."""
    table, linked = database.tables[name], opened[name]
    added, columns = linked.added.copy(), dict[str, Column]()
    elsewhere = linked.elsewhere
    rules: list[Constraint] = []
    for column, summary in summaries.items():
        if column in linked.schema.columns:
            raise InputError(f"{column!r} is a column of the table and a derived one: rename one of them")
        if elsewhere is not None and (below := opened[summary.table].elsewhere) is not None:
            if summary.how != COUNT:
                raise InputError(f"{column!r}: {ELSEWHERE}")
            elsewhere = elsewhere.with_number(column, below)
        added[column], columns[column] = summary_of(summary, opened[summary.table], len(linked.persons))
        if summary.how == COUNT:
            columns[column] = number_of_rows(database.tables[summary.table], MOST_ROWS)
            rules += no_more_rows_than_values(database, summary.table, opened[summary.table].schema.coded)
        kind = columns[column]
        may_have_none = database.tables[summary.table].fewest_children == 0
        if summary.how in (ANY, SAME, START) and isinstance(kind, Coded) and may_have_none:
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
    return replace(linked, added=added, schema=schema, elsewhere=elsewhere)


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


def positions(parents: Ints, keys: Floats | None = None) -> Ints:
    """Return the position of each row among those of its parent, from 0, in the order of their keys.

    >>> positions(np.array([4, 4, 2, 4]), np.array([3.0, 1.0, 7.0, 2.0])).tolist()
    [2, 0, 0, 1]
    """
    order = np.lexsort((np.zeros(len(parents)) if keys is None else keys, parents))
    ranks_in_parent = np.empty(len(parents), np.int64)
    ranks_in_parent[order] = ranks(parents[order])
    return ranks_in_parent
