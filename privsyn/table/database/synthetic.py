"""Synthetic rows and other tables: limits on their numbers, columns that follow from there, and new keys."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.marginals.counting import block_of, ranks
from privsyn.marginals.domain import Floats, Integers, Ints
from privsyn.marginals.recoding import Merging
from privsyn.table.codec.codec import Codec
from privsyn.table.database.computed_above import CONSTANT, ComputedAbove
from privsyn.table.database.database import Database
from privsyn.table.database.derived_columns import constants, same_in_all_rows, with_constants
from privsyn.table.database.summaries import COUNT, Derived
from privsyn.table.encoding.dtypes import Dtype, family, holds_missing, parse_dtype
from privsyn.table.enforcement.compared import KnownAbove
from privsyn.table.io.formats import DeclaredTable
from privsyn.table.schema.columns import Coded, Column
from privsyn.table.schema.constraint import Columns
from privsyn.table.schema.schema import Schema


@dataclass(frozen=True, eq=False)
class SyntheticRows:
    """Synthetic rows of a table, as the tables below need them.

    Parameters
    ----------
    frame : pandas.DataFrame
        Own and derived columns.
    codes : mapping of an attribute to an array of shape (rows,)
        In merged codes.
    parents : integer array of shape (rows,)
        The place of the parent's row; in the root, that of the row itself. Rows of one parent stand together.
    roots : integer array of shape (rows,)
        The place of the row of the root.
    dealt : mapping of a column to an array
        The place of the row to which a column that is dealt leads; -1 where there is none.
    """

    frame: pd.DataFrame
    codes: Mapping[str, Integers]
    parents: Ints
    roots: Ints
    dealt: Mapping[str, Ints] = field(default_factory=dict)

    @classmethod
    def of(
        cls, codec: Codec, merging: Merging, frame: pd.DataFrame, parents: Ints, roots: Ints
    ) -> SyntheticRows:
        """Return the rows with the codes of their cells."""
        cells = frame.reindex(columns=[*codec.names])  # free text was left out; no cell of it is read
        records = merging.merge(codec.encode(cells))
        return cls(frame, dict(zip(records.domain, block_of(records), strict=True)), parents, roots)


Codecs = Mapping[str, Codec]
Made = Mapping[str, SyntheticRows]


def known_above(
    name: str,
    database: Database,
    codecs: Codecs,
    made: Made,
    rows_above: Mapping[str, Ints],
    computed_above: Columns,
) -> KnownAbove:
    """Return which numbers of the rows above no number of a row may pass.

    Parameters
    ----------
    name : str
        The table of the rows.
    database : Database
    codecs, made : mapping of each table to its codec, and to its synthetic rows
    rows_above : mapping of each table above to the place of each row's row there
    computed_above : mapping of a column of the table that is computed from rows above to its kind
    """
    rules, numbers, columns = [], {}, {}
    for comparison in database.tables[name].compared:
        table, column = comparison.above
        codec, frame = codecs[table], made[table].frame
        columns[comparison.name] = codec.schema.ordinal(column)
        numbers[comparison.name] = codec.read(frame[[column]])[column][rows_above[table]]
        own_column = codecs[name].schema.ordinal(comparison.column)
        rules.append(comparison.enforced(own_column, columns[comparison.name]))
    for rule in database.tables[name].computed_above.values():
        kinds = _kinds(rule, name, database, codecs, computed_above)
        parts = _parts(rule, name, database, codecs, made, rows_above)
        for limit, own_column, ends in rule.limits(kinds, parts):
            rules.append(limit)
            columns[limit.above], numbers[limit.above] = own_column, ends
    return KnownAbove.of(rules, numbers, columns)


def _kinds(
    rule: ComputedAbove, name: str, database: Database, codecs: Codecs, computed_above: Columns
) -> dict[str, Coded]:
    """Return the kind of each column of a rule of the table `name`, by its name in the rule."""
    coded = {table: codec.schema.coded for table, codec in codecs.items()}
    return rule.kinds({**coded[name], **computed_above}, with_constants(database, name, coded))


def _parts(
    rule: ComputedAbove,
    name: str,
    database: Database,
    codecs: Codecs,
    made: Made,
    rows_above: Mapping[str, Ints],
) -> dict[str, Floats]:
    """Return the numbers of the parts, by their names in a rule of the table `name`.

    Columns of the table itself are left out if its rows are not made yet.
    """

    def numbers(table: str | None, column: str) -> Floats | None:
        if table == CONSTANT:
            table, column = database.tables[name].parent, same_in_all_rows(database, name)[column]
        if (table is None and name not in made) or (table, column) == rule.side:
            return None
        codec, rows = codecs[table or name], made[table or name]
        cells = codec.as_compared([column], rows.frame)[column]
        return cells if table is None else cells[rows_above[table]]

    return rule.named(numbers)


def places_above(
    database: Database, name: str, parents: Mapping[str, Ints], rows: Ints
) -> Iterator[tuple[str, Ints]]:
    """Yield each table above with the place of each row's row there, the nearest table first.

    Parameters
    ----------
    database : Database
    name : str
        The table of the rows.
    parents : mapping of a table to the place of the parent's row of each of its rows
    rows : integer array of shape (rows,)
        The rows, by their places in the table.

    Examples
    --------
    >>> from privsyn import Table
    >>> tables = {"homes": Table(key="home"), "people": Table(parent="homes", link="home")}
    >>> parents, people = {"people": np.array([0, 0, 4])}, np.arange(3)
    >>> [(table, at.tolist()) for table, at in places_above(Database(tables), "people", parents, people)]
    [('homes', [0, 0, 4])]
    """
    for below, above in pairwise((name, *database.above(name))):
        rows = parents[below][rows]
        yield above, rows


def cells_elsewhere(
    name: str,
    database: Database,
    codecs: Codecs,
    made: Made,
    dtypes: Mapping[str, str],
    computed_above: Columns,
) -> dict[str, pd.Series]:
    """Return the columns of a synthetic table whose cells follow from the rows of others, in their dtypes.

    All of it is computed from synthetic rows.
    """
    table, rows, cells_by_column = database.tables[name], made[name], dict[str, pd.Series]()
    for column, original in constants(database, name).items():
        cells = made[table.parent or ""].frame[original].take(rows.parents).reset_index(drop=True)
        dtype = parse_dtype(dtypes[column])
        cells_by_column[column] = cells if holds_missing(dtype) else cells.astype(dtype)
    keys = database.copied_keys(name)
    parents = {table_name: table_rows.parents for table_name, table_rows in made.items()}
    rows_above = dict(places_above(database, name, parents, np.arange(len(rows.parents))))
    for column, rule in table.copied.items():
        if column in keys:
            cells_by_column[column] = key_cells(*keys[column], database, made, rows_above, dtypes[column])
        else:
            above, original = rule.above
            cells = made[above].frame[original].take(rows_above[above]).reset_index(drop=True)
            dtype_text = dtypes[column]
            cells_by_column[column] = _in_dtype(cells, parse_dtype(dtype_text)) if dtype_text else cells
    for column, summary in table.computed.items():
        dtype, sums = parse_dtype(dtypes[column]), _summed(summary, codecs, made, len(rows.parents))
        exact = family(dtype) in ("integer", "boolean")
        cells_by_column[column] = _in_dtype(sums, dtype) if exact else sums.astype(dtype)
    for column, computation in table.computed_above.items():
        kinds = _kinds(computation, name, database, codecs, computed_above)
        numbers = _parts(computation, name, database, codecs, made, rows_above)
        cells_by_column[column] = computation.cells(kinds, numbers, parse_dtype(dtypes[column]))
    return cells_by_column


HELD = ("integer", "real", "boolean", "text", "object", "datetime", "duration", "time")
"""The families of dtypes that every format writes."""


def _in_dtype(cells: pd.Series, dtype: Dtype) -> pd.Series:
    """Return cells in a dtype; as they are if it does not hold them, such as fractions or large numbers.

    >>> [str(_in_dtype(pd.Series(cells), np.dtype("int8")).dtype) for cells in ([3.0], [3.5], [300])]
    ['int8', 'float64', 'int64']
    """
    if family(dtype) not in HELD:  # the values of a category are those of the column above
        return cells
    with suppress(TypeError, ValueError, OverflowError, NotImplementedError, pa.ArrowException):
        held = cells.astype(dtype)
        if ((held == cells) | (held.isna() & cells.isna())).all():
            return held
    return cells


def _summed(summary: Derived, codecs: Codecs, made: Made, parents: int) -> pd.Series:
    """Return the sum of a column of the child rows of each row, or their number."""
    rows, codec = made[summary.table], codecs[summary.table]
    if summary.how == COUNT or summary.column is None:
        return pd.Series(np.bincount(rows.parents, minlength=parents))
    numbers, grid = codec.read(rows.frame[[summary.column]])[summary.column], codec.grid(summary.column)
    has = ~np.isnan(numbers)
    sums = np.bincount(rows.parents[has], numbers[has], minlength=parents)
    decimals = None if grid is None else grid.decimals
    return pd.Series(sums if decimals is None else np.round(sums, decimals))  # exact, whatever the order


def schema_of(name: str, database: Database, codecs: Codecs, computed_above: Columns) -> Schema:
    """Return the columns of a synthetic table, with those that follow from other tables."""
    table, schema = database.tables[name], codecs[name].schema
    columns: dict[str, Column] = dict(computed_above)
    columns |= {column: schema.columns[str(summary)] for column, summary in table.computed.items()}
    for column, original in constants(database, name).items():
        columns[column] = codecs[table.parent or ""].schema.columns[original]
    for column in {*table.copied} - {*database.copied_keys(name)}:
        above, original = table.copied[column].above
        columns[column] = codecs[above].schema.columns[original]
    return replace(schema, columns={**schema.columns, **columns}) if columns else schema


def key_cells(
    name: str, column: str, database: Database, made: Made, rows: Mapping[str, Ints], dtype: str
) -> pd.Series:
    """Return the cells of a column of a key, which is data or numbers the rows, in a dtype.

    Parameters
    ----------
    name, column : str
        As `Database.origin` returns them: the column is not part of the link.
    database, made
    rows : mapping of a table to an array
        Which rows of it are asked for.
    dtype : str
        Of the column in which they will be.
    """
    table, its_rows = database.tables[name], made[name]
    if column in table.data_of_key:
        cells = its_rows.frame[column].take(rows[name]).reset_index(drop=True)
        return _in_dtype(cells, parse_dtype(dtype)) if dtype else cells
    every = np.arange(len(its_rows.parents))
    numbers = ranks(its_rows.parents) if table.is_numbered_by_parent else every
    return new_keys(numbers[rows[name]], dtype)


def dealt_rows(rows: int, targets: int, rng: np.random.Generator, *, earlier: bool) -> Ints:
    """Return the place of a random row of another table for each row; -1 where there is none.

    With `earlier`, both tables are the same, and it is a row before: no circle comes about, and the first row
    has none.

    >>> places = dealt_rows(4, 4, np.random.default_rng(0), earlier=True)
    >>> places[:2].tolist(), bool((places < np.arange(4)).all())
    ([-1, 0], True)
    """
    if not targets:
        return np.full(rows, -1)
    if not earlier:
        return rng.integers(targets, size=rows)
    return np.concatenate([[-1], rng.integers(np.arange(1, rows))])


def declared_table(name: str, database: Database, columns: Collection[str]) -> DeclaredTable:
    """Return what a database declares of a synthetic table that has these columns of data.

    Nothing of it comes from rows: keys and links are in the schema. All of them hold: keys are numbered, a
    link is the key of a parent, and the cells of a column with a look-up table are missing or keys there.
    """
    table = database.tables[name]
    linked = {} if table.parent is None else {table.link_columns: table.parent}
    linked |= {(column,): target for column, target in table.dealt.items()}
    copies = {(column,): above for column, (above, _) in database.copied_keys(name).items()}
    lookups = database.looked_up(name, columns) if table.public is None else table.lookups
    looked_up = {(column,): lookup for column, lookup in lookups.items()}
    links = {
        names: (lookup, its_key)
        for names, lookup in (linked | copies | looked_up).items()
        if len(its_key := database.tables[lookup].key_columns) == len(names)
    }
    return DeclaredTable(table.key_columns, links, never_missing=table.keys)


def dtype_of_keys(dtype: Any) -> str:
    """Return the dtype of new keys: whole numbers, or text where the private ones are not numbers."""
    if family(dtype) in ("integer", "real"):
        return "Int64" if pd.api.types.is_extension_array_dtype(dtype) else "int64"
    return "str"


def new_keys(rows: Ints, dtype: str) -> pd.Series:
    """Return keys from 1 up, in a `dtype_of_keys`."""
    kind: Any = dtype  # the stubs list no text of a dtype that is not known before
    return pd.Series(rows + 1).astype(kind)
