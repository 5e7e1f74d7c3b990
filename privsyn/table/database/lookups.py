"""Look-up tables: public tables of a database, whose keys are the values of columns of private ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from privsyn.errors import InputError, about, did_you_mean, safe_repr
from privsyn.files import check_file
from privsyn.table.database.database import Database
from privsyn.table.database.declared import Table
from privsyn.table.encoding.dtypes import dtype_text, parse_dtype
from privsyn.table.io.csv_table import PLAIN, CsvTable, read_text
from privsyn.table.io.formats import Location, plain
from privsyn.table.io.guessed_columns import guess_columns
from privsyn.table.io.output_type import PANDAS, OutputType
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.kinds.keys import Key, columns_of, key_in_words
from privsyn.table.schema.columns import Categorical, Column
from privsyn.table.schema.schema import Schema, check_column_names

MOST_BYTES = 2**28
"""Of the file of a public table, all of which is in the model (268 MB)."""


@dataclass(frozen=True, eq=False, repr=False)
class LookupTable:
    """A public table.

    Parameters
    ----------
    frame : pandas.DataFrame
    key : str or tuple of str
        The columns whose values identify its rows.
    source : str
        The name of its file, if it was read from one: the ledger names it.
    form : OutputType
        The types that a database declares.

    Raises
    ------
    InputError
        If there is no such column, a key is missing or comes twice, or a model file cannot hold the table.

    Examples
    --------
    >>> drugs = LookupTable(pd.DataFrame({"drug": ["epoetin", "ibuprofen"], "price": [90.0, 4.5]}), "drug")
    >>> drugs.keys
    ('epoetin', 'ibuprofen')
    """

    frame: pd.DataFrame
    key: Key
    source: str = ""
    form: OutputType = PANDAS

    def __post_init__(self) -> None:
        check_column_names(self.frame.columns)
        for name in columns_of(self.key):
            if name not in self.frame.columns:
                raise InputError(
                    f"it has no column {name!r}, which is its key{did_you_mean(name, self.frame.columns)}"
                )
            for number, key in enumerate(self.cells(name), 1):
                if not isinstance(key, str | bool | int | float):
                    problem = "is missing" if key is None else "is neither text nor a number"
                    raise InputError(f"its key {name!r} {problem} in row {number}")
        if not self.keys:
            raise InputError("it has no row, so no key either")
        first: dict[Any, int] = {}
        for number, key in enumerate(self.keys, 1):  # no cell is shown: it may be another file by mistake
            if first.setdefault(key, number) < number:
                words = repr(key_in_words(self.key))
                raise InputError(f"its key {words} is the same in rows {first[key]} and {number}")

    @classmethod
    def of(cls, public: Any, key: Key) -> LookupTable:
        """Return the table at a path, or a table in memory; one of this class as it is.

        Categories become their values, and an index is left out.
        """
        if isinstance(public, cls):
            return public
        frame, form = _read(public)
        categories = {name: cells for name, cells in frame.items() if hasattr(cells, "cat")}
        texts = {str(name): cells.astype(cells.cat.categories.dtype) for name, cells in categories.items()}
        source = Location.of(public).file.name if isinstance(public, str | PathLike) else ""
        lookup = cls(frame.assign(**texts).reset_index(drop=True), key, source, form)
        for name, cells in lookup.frame.items():
            with about(f"column {name!r}"):
                back = _column(_plain_column(cells))
                if not back.equals(cells):
                    raise InputError("a model file cannot hold its cells: leave it out, or make it text")
        return lookup

    @cached_property
    def keys(self) -> tuple[Any, ...]:
        """The keys, whole numbers as such; those of several columns as tuples."""
        columns = [self.cells(name) for name in columns_of(self.key)]
        return columns[0] if len(columns) == 1 else tuple(zip(*columns, strict=True))

    def cells(self, name: str) -> tuple[Any, ...]:
        """Return the cells of a column as keys, None where one is missing."""
        cells = map(plain, self.frame[name].tolist())
        return tuple(int(key) if isinstance(key, float) and key.is_integer() else key for key in cells)

    def listed_in(self, column: Column, name: str) -> Categorical:
        """Return a column of a private table whose values are keys of this one, which is called `name`."""
        if not isinstance(column, Categorical):
            raise InputError(f"its values are keys of {name!r}: declare it as Categorical(), or rename it")
        listing = column if column.is_public else replace(column, values=self.keys)
        keys = set(self.keys)
        stranger = next((value for value in listing.listed if value not in keys), None)
        if stranger is not None:
            raise InputError(f"{safe_repr(stranger)} is no key of {name!r}: list keys alone, or no value")
        return listing

    def as_kind(self, kind: Literal["pandas", "polars", "pyarrow"]) -> Any:
        """Return a copy of the table in another kind."""
        return OutputType(kind).cast(self.frame.copy(), Schema({}))

    def to_plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        columns = {str(name): _plain_column(cells) for name, cells in self.frame.items()}
        for name in self.form.declared.keys() & columns.keys():
            columns[name]["declared"] = self.form.declared[name]
        return columns

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], key: Key) -> LookupTable:
        """Return the table that `to_plain` wrote."""
        key = tuple(key) if isinstance(key, list) else key  # as JSON has it
        frame = pd.DataFrame({name: _column(column) for name, column in plain.items()})
        declared = {name: column["declared"] for name, column in plain.items() if "declared" in column}
        return cls(frame, key, form=OutputType(declared=declared))


def check_size(path: Path) -> None:
    """Refuse a file that is no public table: a device, or a very large one. Folders are read elsewhere."""
    if path.is_dir():
        return
    check_file(path)
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path}: is larger than {MOST_BYTES / 1e6:,.0f} MB: is it the right file?")


def _read(public: Any) -> tuple[pd.DataFrame, OutputType]:
    """Return a table, and the types that a database declares.

    In a file of text only the empty cell is missing: NA is a country.
    """
    if isinstance(public, str | PathLike):
        location = Location.of(public)
        check_size(location.file)
        if not location.format.typed:
            text = read_text(location)
            missing = dict.fromkeys(text.column_names, ("",))
            columns = guess_columns([text], missing, PLAIN)
            form = OutputType(declared=location.format.door.declared(location, PLAIN).types)
            return CsvTable(location, columns, missing, (), (), PLAIN).frame(text), form
    return read_in_memory(public).frame, PANDAS


def is_same_table(first: Any, second: Any) -> bool:
    """Return whether both are one table in memory, or paths that may lead to one table.

    A path that names no table of a file means its only one, whichever that is. A folder has all files in it.
    """
    if not (isinstance(first, str | PathLike) and isinstance(second, str | PathLike)):
        return first is second
    locations = Location.of(first), Location.of(second)
    files, parts = [location.file for location in locations], {location.inside for location in locations}
    if not (_is_within(*files) or _is_within(*files[::-1])):
        return False
    return len(parts) == 1 or not all(parts)


def _is_within(file: Path, folder: Path) -> bool:
    """Return whether a file is the other one, by any name, or in that folder."""
    if file.resolve().is_relative_to(folder.resolve()):
        return True
    return file.exists() and folder.exists() and file.samefile(folder)


def with_lookups(database: Database) -> Database:
    """Return the database with its look-up tables read. Columns that lead there list the keys.

    No private row is read.
    """
    public: dict[str, Table] = {}
    for name, table in database.public.items():
        with about(f"table {name!r}"):
            public[name] = replace(table, public=LookupTable.of(table.public, table.key))
    database = replace(database, tables={**database.tables, **public})
    for name, table in database.public.items():
        with about(f"table {name!r}"):
            _check_lookups_of(table, database)
            _check_without_private_keys(table, database)
    tables: dict[str, Table] = {}
    for name, table in database.private.items():
        if table.schema is not None and (table.schema.columns or table.lookups):
            with about(f"table {name!r}"):
                tables[name] = replace(table, schema=with_keys(database, name, table.schema, table.schema))
    return replace(database, tables={**database.tables, **tables})


def _check_lookups_of(table: Table, database: Database) -> None:
    """Refuse a public table with a cell that leads to no row of another one. Neither is private."""
    for column, lookup in table.lookups.items():
        if column not in table.public.frame:
            raise InputError(f"it has no column {column!r}, which lookups names: correct one of them")
        keys = {*database.tables[lookup].public.keys}
        cells = table.public.cells(column)
        if number := next((n for n, cell in enumerate(cells, 1) if cell is not None and cell not in keys), 0):
            raise InputError(
                f"its {column!r} in row {number} is no key of {lookup!r}: correct it, or the lookups"
            )


def _check_without_private_keys(table: Table, database: Database) -> None:
    """Refuse a public table with a column that is called like the key of a private table.

    It is published as it is, and would say which real rows of the private table there are. Names decide, so
    that no refusal follows from a private row.
    """
    columns = {*map(str, table.public.frame.columns)}.difference(columns_of(table.key), table.lookups)
    for name, private in database.private.items():
        keys = [column for column in private.key_columns if column not in private.data_of_key]
        if keys and columns.issuperset(keys):
            raise InputError(
                f"its {key_in_words(tuple(keys))!r} is called like the key of {name!r}, whose rows are"
                " protected, and a public table is published as it is: leave it out of the file, or rename"
                " it there if it names something else"
            )


def with_keys(database: Database, name: str, schema: Schema, declared: Schema | None) -> Schema:
    """Return a schema in which each column that leads to a look-up table lists the keys.

    A column that is not declared becomes one of listed values, whatever its name and dtype imply.
    """
    declared_columns, columns = {} if declared is None else declared.columns, dict(schema.columns)
    for column, lookup in database.looked_up(name, schema.columns).items():
        with about(f"column {column!r}"):
            keys: LookupTable = database.tables[lookup].public
            listing = keys.listed_in(declared_columns.get(column, Categorical()), lookup)
            in_key = column in database.tables[name].data_of_key  # no cell of a key is missing
            columns[column] = replace(listing, nullable=False) if in_key else listing
    return replace(schema, columns=columns)


def check_all_looked_up(database: Database, schemas: Mapping[str, Schema]) -> None:
    """Refuse a look-up table to which no column leads, and that leads to none: a name may be misspelled."""
    used = set[str]()
    for name, schema in schemas.items():
        used.update(database.looked_up(name, schema.columns).values())
    for name, table in database.public.items():
        used.update((name, *table.lookups.values()) if table.lookups else ())
    for name, table in database.public.items():
        if name not in used:
            raise InputError(
                f"table {name!r}: no column leads to it: name one in lookups, or call one"
                f" {key_in_words(table.key)!r}"
            )


def _plain_column(cells: pd.Series) -> dict[str, Any]:
    """Return the dtype of a column, and its cells as text, numbers and booleans."""
    as_is = (str, int, float, type(None))
    listed = [cell if isinstance(cell, as_is) else str(cell) for cell in map(plain, cells.tolist())]
    return {"dtype": dtype_text(cells.dtype), "cells": listed}


def _column(plain: Mapping[str, Any]) -> pd.Series:
    """Return the column that `_plain_column` wrote."""
    if plain["dtype"] is None:
        raise InputError("a model file cannot hold its dtype: convert it")
    return pd.Series(list(plain["cells"]), dtype=parse_dtype(plain["dtype"]))
