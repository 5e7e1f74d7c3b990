"""The rows of public tables, linked by their keys as the rows of the private tables are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from privsyn.errors import InputError, plural, short
from privsyn.marginals.domain import Ints
from privsyn.private.contribution import random_order
from privsyn.release.public_table import PublicTable, about_foreign, about_misfits, foreign_columns
from privsyn.table.codec.codec import Codec
from privsyn.table.database.database import Database
from privsyn.table.database.declared import Table
from privsyn.table.database.derived_columns import constants, rows_of, summaries_of
from privsyn.table.database.linked_table import LinkedTable
from privsyn.table.database.opened import ROW, open_tables
from privsyn.table.io.identifiers import NOBODY
from privsyn.table.schema.schema import Schema

ORPHANS = "; {} that lead to nobody are left out"

Codecs = Mapping[str, Codec]


@dataclass(frozen=True, eq=False)
class LinkedFrame:
    """The rows of a public table that lead to somebody, those of one parent together and in their order.

    Parameters
    ----------
    frame : pandas.DataFrame
        With all columns of the codec. A column that the public tables lack has a value that says nothing.
    parents, roots : integer arrays of shape (rows,)
        The place of the parent's row, and of the row of the root.
    columns : frozenset of str
        The columns that the public tables have.
    left_out : str
        What the ledger says of the other rows.
    """

    frame: pd.DataFrame
    parents: Ints
    roots: Ints
    columns: frozenset[str]
    left_out: str


def linked_frames(
    tables: Mapping[str, PublicTable], database: Database, codecs: Codecs
) -> dict[str, LinkedFrame]:
    """Return the rows of public tables, linked by their keys.

    Rows that do not fit the schema are left out first, so that numbers and sums of rows are those of the
    others. A table whose parent is lacking is left out. A root that is lacking has a row for each link of its
    children.

    Parameters
    ----------
    tables : mapping of the name of a private table to a PublicTable
    database : Database
        Of the private tables.
    codecs : mapping of each private table to its Codec

    Raises
    ------
    InputError
        If a table lacks a column of keys or of the order, or has cells of another type.
    """
    valid = {name: _ValidRows.of(name, table, database, codecs) for name, table in tables.items()}
    declared, rng = _declared(valid, database, codecs), np.random.default_rng(0)
    opened = open_tables(
        declared,
        {name: cells.frame for name, cells in valid.items() if name in declared.tables},
        lambda persons: random_order(persons, lambda size: rng.integers(2**63, size=size, dtype=np.uint64)),
    )
    frames = dict[str, LinkedFrame]()
    positions = dict[str, Ints]()  # of each row among those that are kept; -1 if it is left out
    for name, table in opened.items():
        cells = valid.get(name, _ValidRows(pd.DataFrame(index=range(len(table.persons)))))
        parent = declared.tables[name].parent
        rows, parents = _linked_rows(table, None if parent is None else positions[parent], rng)
        positions[name] = np.full(len(table.persons), -1)
        positions[name][rows] = np.arange(len(rows))
        orphans = len(table.persons) - len(rows)
        left_out = cells.left_out + (ORPHANS.format(plural(orphans, "row")) if orphans else "")
        frames[name] = LinkedFrame(
            _all_columns(codecs[name], cells.frame, table.added).iloc[rows].reset_index(drop=True),
            parents,
            parents if parent is None else frames[parent].roots[parents],
            cells.columns | frozenset(table.added.columns),
            left_out,
        )
    return frames


@dataclass(frozen=True, eq=False)
class _ValidRows:
    """The rows of a public table that have only values of the schema.

    Parameters
    ----------
    frame : pandas.DataFrame
        Keys, columns of data in the codec's dtypes, and columns of which rows above have a summary.
    columns : frozenset of str
        The columns of data that the table has.
    left_out : str
        What the ledger says of the other rows.
    """

    frame: pd.DataFrame
    columns: frozenset[str] = field(default_factory=frozenset)
    left_out: str = ""

    @classmethod
    def of(cls, name: str, table: PublicTable, database: Database, codecs: Codecs) -> _ValidRows:
        """Return the rows of a table, before they are linked."""
        declared, present = database.tables[name], frozenset(table.rows.columns)
        needed: dict[str | None, str] = dict.fromkeys(declared.link_columns, "which rows belong together")
        needed |= {declared.order: "in which order rows are"}
        needed |= dict.fromkeys(declared.key_columns if database.children(name) else (), "which row it is")
        for column, purpose in needed.items():
            if column is not None and column not in present:
                raise InputError(f"{short(table.title)}: it has no column {column!r}, which says {purpose}")
        derived = {*summaries_of(database, name), ROW}  # they follow from rows below, or say nothing
        data_columns = [column for column in codecs[name].schema.coded if column not in derived]
        frame, misfits = table.cells(codecs[name], {column: column for column in data_columns})
        for column, original in constants(database, name).items():  # the row above has its codes
            if column in present:
                cells, further = table.cells(codecs[str(declared.parent)], {original: column})
                frame, misfits = frame.assign(**{column: cells[original]}), misfits.join(further)
        needed_for_links = dict.fromkeys((*declared.keys, declared.order))  # a key's number may be the order
        if foreign := [column for column in foreign_columns(misfits) if column not in needed_for_links]:
            valid = cls.of(name, table.without(foreign), database, codecs)
            return replace(valid, left_out=about_foreign(foreign) + valid.left_out)
        keys = [key for key in needed_for_links if key in present and key not in frame]
        frame = frame.join(table.rows[keys])[~misfits.any(axis=1)].reset_index(drop=True)
        return cls(frame, present.intersection(frame.columns), about_misfits(misfits))


def _declared(valid: Mapping[str, _ValidRows], database: Database, codecs: Codecs) -> Database:
    """Return how the public tables are linked: their keys, columns and summaries, without any rule."""
    tables = dict[str, Table]()
    linked = [database.root]
    for name in database.names[1:]:
        if name in valid and database.tables[name].parent in linked:
            linked.append(name)
    for name in linked:
        declared, columns = database.tables[name], dict(codecs[name].schema.columns)
        columns |= {
            column: codecs[str(declared.parent)].schema.columns[original]
            for column, original in constants(database, name).items()
        }
        data = valid[name].frame.columns if name in valid else ()
        derive = {
            column: summary
            for column, summary in summaries_of(database, name).items()
            if summary.table in linked
            and column != rows_of(summary.table)
            and (summary.column is None or summary.column in valid[summary.table].columns)
        }
        tables[name] = Table(
            Schema({column: columns[column] for column in data if column in columns}),
            key=declared.key,
            parent=declared.parent,
            link=declared.link,
            order=declared.order,
            derive=derive,
        )
    return Database(tables)


def _linked_rows(table: LinkedTable, positions: Ints | None, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the rows that lead to somebody, parent by parent, and the place of each one's parent.

    Rows of a parent are in their order; without one, and among equals, it is random, as in private tables.
    """
    if positions is None:
        rows = np.flatnonzero(table.persons != NOBODY)
        return rows, np.arange(len(rows))
    parents = np.append(positions, -1)[table.parents]  # the last for the place -1
    rows = np.flatnonzero(parents >= 0)
    keys = np.zeros(len(rows)) if table.keys is None else table.keys[rows]
    rows = rows[np.lexsort((rng.random(len(rows)), keys, parents[rows]))]
    return rows, parents[rows]


def _all_columns(codec: Codec, cells: pd.DataFrame, added: pd.DataFrame) -> pd.DataFrame:
    """Return all columns of a codec in its dtypes, for rows with these cells and derived columns."""
    specimen = codec.specimen(np.random.default_rng(0))
    columns = {
        name: added[name].astype(specimen[name].dtype).reset_index(drop=True)
        if name in added
        else cells[name]
        if name in cells
        else specimen[name].iloc[[0] * len(cells)].reset_index(drop=True)
        for name in codec.names
        if name in specimen
    }
    return pd.DataFrame(columns, index=cells.index).reindex(columns=[*codec.names])
