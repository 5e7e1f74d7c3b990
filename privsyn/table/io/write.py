"""Write tables to files, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from pathlib import Path
from shutil import copyfile
from typing import Any

import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError, replace_errors
from privsyn.files import atomic_path, check_new_folder, check_target, new_folder
from privsyn.table.io.arrow import with_text_for_null
from privsyn.table.io.csv_output import write_csv
from privsyn.table.io.formats import (
    CSV,
    ENDINGS,
    NOTHING,
    PARQUET,
    SEPARATOR,
    DeclaredTable,
    Location,
    ending_of,
    holds_tables,
)
from privsyn.table.io.output_type import PANDAS, OutputType
from privsyn.table.io.parquet import write_parquet
from privsyn.table.io.read_in_memory import LoadedTable, check_excel_safe, read_in_memory
from privsyn.table.schema.schema import Schema


def write_table(
    table: Any,
    path: str | PathLike[str],
    schema: Schema | None = None,
    form: OutputType = PANDAS,
    *,
    excel_safe: bool = False,
    declared: DeclaredTable = NOTHING,
) -> tuple[int, int]:
    """Write a whole table; see `write_blocks`."""
    return write_blocks(iter([table]), path, schema, form, excel_safe=excel_safe, declared=declared)


def write_blocks(
    blocks: Iterator[Any],
    path: str | PathLike[str],
    schema: Schema | None = None,
    form: OutputType = PANDAS,
    *,
    excel_safe: bool = False,
    declared: DeclaredTable = NOTHING,
) -> tuple[int, int]:
    """Write blocks of rows to a file, all of them or nothing.

    A missing cell of a CSV file is written as an empty cell. The same table gives the same bytes in CSV and
    Parquet; a table in a database is written into a copy of it, which replaces the database.

    Parameters
    ----------
    blocks : iterator of pandas, polars or pyarrow tables
        At least one, all of the same columns and types. The index of a data frame is left out.
    path : str or path
        Ends in one of `ENDINGS`.
    schema : Schema, optional
        Says how a CSV is written: dates, decimals, separators.
    form : OutputType, optional
        The types of a Parquet file.
    excel_safe : bool
        In a CSV, put an apostrophe before each text that a spreadsheet would run as a formula.
    declared : DeclaredTable, optional
        The keys of a table in a database. The tables to which it is linked are there already.

    Returns
    -------
    (rows, columns) : tuple of int
    """
    location = Location.of(path)
    check_excel_safe(path, excel_safe=excel_safe)
    rows, columns = 0, 0

    def read() -> Iterator[LoadedTable]:
        nonlocal rows, columns
        for block in blocks:
            source = read_in_memory(block)
            rows, columns = rows + len(source.frame), len(source.frame.columns)
            yield source if form is PANDAS else replace(source, form=form)

    with atomic_path(location.file) as part:
        if location.format is PARQUET:
            write_parquet(_arrow_of(read(), schema, location), part)
        elif location.format is not CSV:
            with_types = replace(declared, types=form.declared)
            rows_read = _arrow_of(read(), schema, location) if location.format.arrow else _frames_of(read())
            location.format.door.write(rows_read, part, location, form.labels, with_types)
        else:
            packed = ending_of(path) == ".csv.gz"
            write_csv(_frames_of(read()), part, Path(path), schema, packed=packed, excel_safe=excel_safe)
    return rows, columns


def check_for_tables(path: str | PathLike[str]) -> None:
    """Refuse a path at which `write_tables` cannot write."""
    if not holds_tables(path) and str(path).lower().endswith(ENDINGS):
        raise InputError(f"{path} is the name of one table: several are written into a folder or a database")
    (check_target if holds_tables(path) else check_new_folder)(path)


def write_tables(
    tables: Mapping[str, tuple[Any, Schema | None, OutputType, DeclaredTable]],
    path: str | PathLike[str],
    ending: str = ".csv",
    *,
    excel_safe: bool = False,
) -> dict[str, tuple[int, int]]:
    """Write several tables into a database or a new folder, all of them or nothing.

    Parameters
    ----------
    tables : mapping of a name to a table, its schema and its type, and how it is linked
        A database declares keys, and a column of which the schema says that no cell is missing as NOT NULL.
    path : str or path
        Ends in .duckdb or .sqlite, or is a folder that does not exist yet or is empty.
    ending : str
        Of the files in a folder.
    excel_safe : bool

    Returns
    -------
    dict of a name to (rows, columns)
    """
    with ExitStack() as stack:
        order = _after_their_targets({name: table[3] for name, table in tables.items()})
        if holds_tables(path):
            part, location = stack.enter_context(atomic_path(path)), Location.of(path)
            if location.file.exists():
                copyfile(path, part)
                location.format.door.drop(part, location, order[::-1])
            paths = {name: f"{part}{SEPARATOR}{name}" for name in tables}
        else:
            part = stack.enter_context(new_folder(path))
            paths = {name: str(part / f"{name}{ending}") for name in tables}
        shapes = {}
        for name in order:
            table, schema, form, links = tables[name]
            declared = replace(links, never_missing=_never_missing(table, schema, links))
            shapes[name] = write_table(
                table, paths[name], schema, form, excel_safe=excel_safe, declared=declared
            )
        return {name: shapes[name] for name in tables}


def _after_their_targets(tables: Mapping[str, DeclaredTable]) -> list[str]:
    """Return the tables, each after those to which its foreign keys lead; those in a circle come last.

    >>> links = {("artist",): ("artists", ("artist",))}
    >>> _after_their_targets({"albums": DeclaredTable(("album",), links), "artists": DeclaredTable()})
    ['artists', 'albums']
    """
    targets = {
        name: {target for target, _ in table.links.values() if target in tables}
        for name, table in tables.items()
    }
    order, waiting = list[str](), list(tables)
    while waiting:
        ready = [name for name in waiting if not targets[name] - {*order, name}]
        order += ready or waiting
        waiting = [name for name in waiting if name not in order]
    return order


def _never_missing(table: Any, schema: Schema | None, links: DeclaredTable) -> list[str]:
    """Return the columns that are NOT NULL: those that the schema says so of, and the link to the parent.

    If a cell is missing in spite of that, a database would refuse the table, so it is not declared.
    """
    columns = {} if schema is None else schema.columns
    names = [name for name, column in columns.items() if not getattr(column, "nullable", True)]
    frame = read_in_memory(table).frame
    return [name for name in (*names, *links.never_missing) if name in frame and frame[name].notna().all()]


def _frames_of(blocks: Iterator[LoadedTable]) -> Iterator[pd.DataFrame]:
    return (block.frame for block in blocks)


def _arrow_of(blocks: Iterator[LoadedTable], schema: Schema | None, location: Location) -> Iterator[pa.Table]:
    """Yield blocks as tables of Arrow. Blocks without types of their own follow the first."""
    types, mixed = None, f"{location}: some column mixes types: write .csv"
    for block in blocks:
        with replace_errors(mixed, (pa.ArrowException, ValueError, TypeError)):
            if schema is None or block.form.types is None:
                table = pa.Table.from_pandas(block.frame, types, preserve_index=False)
            else:
                table = block.form.arrow(block.frame, schema)
        types = types or with_text_for_null(table.schema)
        yield table


def stacked(blocks: Iterator[pd.DataFrame]) -> pd.DataFrame:
    """Return blocks of rows as one table."""
    first, *rest = blocks
    return pd.concat([first, *rest], ignore_index=True) if rest else first
