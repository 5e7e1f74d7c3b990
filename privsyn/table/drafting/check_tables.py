"""Count what does not fit the schema of several tables. Not private."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from privsyn.errors import about, plural
from privsyn.marginals.domain import Ints
from privsyn.table.database.database import Database
from privsyn.table.database.linked_table import LinkedTable
from privsyn.table.database.lookups import with_lookups
from privsyn.table.database.opened import named_tables, open_tables
from privsyn.table.discovery.broken_constraints import NO_ORDER, NO_PARENT, SHARED_KEY, Misfit
from privsyn.table.drafting.draft import check_schema
from privsyn.table.io.identifiers import NOBODY, codes_of
from privsyn.table.io.source import RawTable
from privsyn.table.kinds.keys import key_in_words


def check_tables(data: str | os.PathLike[str], database: Database) -> list[str]:
    """Return what does not fit the schema of several tables: rows without a parent, repeated keys, and cells.

    NOT PRIVATE: each line counts private rows, and is for the owner only. The lines about cells are those of
    `check_schema`. A line about a table of which no row has a parent or an order, or about keys that two
    persons share, is a `Misfit`.
    """
    database, locations = with_lookups(database), named_tables(database, data)
    opened = open_tables(database, locations, lambda persons: np.argsort(persons, kind="stable"))
    lines: list[str] = []
    for name in database.names:
        table = database.tables[name]
        table_lines = [*_of_keys(name, opened[name], database), *_of_parents(name, opened, database)]
        schema = None if table.schema is None else table.schema.without(table.copied)
        if schema is not None and schema.coded:
            keys = tuple(key for key in (*table.keys, table.only_order, *table.copied) if key is not None)
            with about(f"table {name!r}"):
                table_lines += check_schema(locations[name], schema, no_data=keys)
        for line in table_lines:
            named = f"table {name!r}: {line}"
            lines.append(Misfit(named, line.advice) if isinstance(line, Misfit) else named)
    return lines


def _of_keys(name: str, linked: LinkedTable, database: Database) -> Iterator[str]:
    """Yield how many rows there are, and how many have no key of their own."""
    table = database.tables[name]
    yield plural(len(linked.persons), "row")
    columns, words = table.key_columns, key_in_words(table.key)
    if not columns or not {*columns} <= {*linked.source.head}:
        return
    names = {*columns} if database.children(name) else {*columns} - {*table.data_of_key}
    codes = _codes_of_key(linked.source, columns, names)
    missing = int((codes == NOBODY).sum())
    if repeated := len(codes) - missing - len(np.unique(codes[codes != NOBODY])):
        fate = "of each key one row is kept" if table.parent is None else "rows below belong to one of them"
        yield f"the key {words!r} of {plural(repeated, 'row')} is that of another row: {fate}"
    # If one of two persons with the same key leaves, the rows below are the other's.
    valid = (codes != NOBODY) & (linked.persons != NOBODY)
    pairs = np.unique(np.stack([codes[valid], linked.persons[valid]]), axis=1)
    if (times := int((np.bincount(pairs[0]) > 1).sum())) and database.children(name):
        line = f"the key {words!r} is the same in rows of two persons, {plural(times, 'time')}:"
        yield Misfit(f"{line} the promise does not hold for them", SHARED_KEY)
    if missing:
        fate = "left out" if table.parent is None else "without rows below them"
        yield f"{plural(missing, 'row')} without the key {words!r}: {fate}"


def _codes_of_key(source: RawTable, columns: Sequence[str], identifiers: Collection[str]) -> Ints:
    """Return the same code for rows with the same key, `NOBODY` where a cell of it is missing.

    Columns that are no `identifiers` are compared as data.
    """
    codes = [
        codes_of(np.concatenate(source.fingerprints(column)))
        if column in identifiers
        else pd.factorize(source.column(column))[0]
        for column in columns
    ]
    rows = np.stack(codes, axis=1)
    both = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    return np.where((rows < 0).any(axis=1), NOBODY, both)


def _of_parents(name: str, opened: Mapping[str, LinkedTable], database: Database) -> Iterator[str]:
    """Yield how many rows have no parent, how many rows a parent has, and how many have no order."""
    table, linked = database.tables[name], opened[name]
    if table.parent is None:
        return
    missing = codes_of(np.concatenate(linked.prints)) == NOBODY
    orphans = (linked.parents < 0) & ~missing
    rows, above = len(linked.parents), opened[table.parent]
    for text, where in (
        (f"name no row of {table.parent!r} in {key_in_words(table.link)!r}", orphans),
        (f"have no {key_in_words(table.link)!r}", missing),
        (
            f"belong to a row of {table.parent!r} that is left out",
            (linked.persons == NOBODY) & (linked.parents >= 0),
        ),
    ):
        if count := int(where.sum()):
            line = f"{count:,} of {plural(rows, 'row')} {text}: they are left out"
            yield Misfit(line, NO_PARENT) if count == rows else line
    counts = np.bincount(linked.parents[linked.parents >= 0], minlength=len(above.parents))
    if len(counts):
        yield (
            f"rows per row of {table.parent!r}: mean {counts.mean():.2f}, median {np.median(counts):g},"
            f" maximum {counts.max():,}; {int((counts == 0).sum()):,} have none"
        )
    if linked.keys is not None and (unknown := int(np.isnan(linked.keys).sum())):
        if unknown < rows:
            yield f"{plural(unknown, 'row')} without the order {table.order!r}: they come last"
        else:
            line = f"no row has a number or time in its order {table.order!r}: rows come in any order"
            yield Misfit(line, NO_ORDER)
