"""Write tables to files, a block of rows at a time."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path
from shutil import copyfile
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from privsyn.errors import InputError, replace_errors
from privsyn.files import atomic_path, check_new_folder, check_target, new_folder
from privsyn.table.encoding.dtypes import family
from privsyn.table.encoding.parsing import is_missing
from privsyn.table.io.csv_table import PLAIN
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
from privsyn.table.io.read_in_memory import LoadedTable, check_excel_safe, read_in_memory
from privsyn.table.schema.schema import Schema

BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Beginnings of a cell that a spreadsheet may run as a formula (OWASP, "CSV Injection")."""


def write_parquet(blocks: Iterator[LoadedTable], part: Path, path: Path, schema: Schema | None) -> None:
    """Write blocks to `part`, which will become `path`, in the types of the first."""
    from pyarrow.parquet import ParquetWriter  # not needed for a table in CSV

    mixed = f"{path}: some column mixes types, which Parquet cannot hold: write .csv"
    types = None
    with ExitStack() as stack:
        for block in blocks:
            with replace_errors(mixed, (pa.ArrowException, ValueError, TypeError)):
                if schema is None or block.form.types is None:
                    table = pa.Table.from_pandas(block.frame, types, preserve_index=False)
                else:
                    table = block.form.arrow(block.frame, schema)
            if types is None:
                types = _without_nulls(table.schema)
                writer = stack.enter_context(ParquetWriter(part, types))
            writer.write_table(table.cast(types))


def _without_nulls(types: pa.Schema) -> pa.Schema:
    """Return the types with text for null: a column of objects may be all missing in the first block only."""
    for index, field in enumerate(types):
        if pa.types.is_null(field.type):
            types = types.set(index, field.with_type(pa.string()))
    return types


def write_csv(
    blocks: Iterator[LoadedTable],
    part: Path,
    path: Path,
    schema: Schema | None,
    *,
    packed: bool,
    excel_safe: bool,
) -> None:
    """Write blocks to `part`, which will become `path`, in the dialect of the schema."""
    dialect = PLAIN if schema is None else schema.csv
    unwritable = f"{path}: some text cannot be written in {dialect.encoding}: choose utf-8"
    with replace_errors(unwritable, UnicodeEncodeError), part.open("wb") as raw, ExitStack() as stack:
        # The header has no name and no time, so that the same table gives the same bytes.
        gz = gzip.GzipFile("", "wb", fileobj=raw, compresslevel=6, mtime=0) if packed else None
        binary = raw if gz is None else stack.enter_context(gz)
        text = stack.enter_context(io.TextIOWrapper(binary, encoding=dialect.encoding, newline=""))
        for index, block in enumerate(blocks):
            frame = block.frame if schema is None else formatted(block.frame, schema)
            if excel_safe:
                frame = without_formulas(frame, block.frame.select_dtypes("number").columns)
            frame = _with_blanks(frame) if dialect.blank else frame
            every = dialect.quoting == "all"
            bare = None if every or dialect.encoding != "utf-8" else _bare(frame, dialect.delimiter)
            rest = frame if bare is None else frame.iloc[:0]
            rest.to_csv(
                text,
                header=index == 0,
                index=False,
                sep=dialect.delimiter,
                lineterminator="\n",
                quoting=csv.QUOTE_NONNUMERIC if every else _quoting(rest),
            )
            if bare is not None:
                text.flush()
                options = {"include_header": False, "delimiter": dialect.delimiter, "quoting_style": "none"}
                arrow_csv.write_csv(bare, binary, arrow_csv.WriteOptions(**options))
        text.flush()


def _with_blanks(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with a blank before each cell and each name but those of the first column."""

    def spelled(cell: Any) -> str:
        return " " if is_missing(cell) else f" {cell}"

    first, *names_after = frame.columns
    return pd.DataFrame(
        {first: frame[first], **{f" {name}": frame[name].map(spelled) for name in names_after}}
    )


def _bare(frame: pd.DataFrame, delimiter: str) -> pa.Table | None:
    """Return the table if Arrow writes it with the same bytes as pandas, seven times as fast; else None.

    That is so for text and whole numbers of which no cell needs quotes. pandas quotes the only cell of a row
    if it is empty.
    """
    families = {family(dtype) for dtype in frame.dtypes}
    if len(frame.columns) < 2 or not families <= {"integer", "text"}:
        return None
    table = pa.Table.from_pandas(frame, preserve_index=False)
    special = f'["\r\n{re.escape(delimiter)}]'
    for cells in table.columns:
        if pa.types.is_integer(cells.type):
            continue
        if pc.any(pc.match_substring_regex(pc.unique(cells), special)).as_py():
            return None
    return table


def _quoting(frame: pd.DataFrame) -> Literal[0, 2]:
    """Quote all cells if one holds a lone carriage return: Python's csv leaves it bare, as a line end."""
    cells = chain(frame.columns, *(cells.unique() for _, cells in frame.items() if _has_text(cells)))
    return csv.QUOTE_NONNUMERIC if any("\r" in str(cell) for cell in cells) else csv.QUOTE_MINIMAL


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
            write_parquet(read(), part, Path(path), schema)
        elif location.format is not CSV:
            blocks_of = _arrow_of if location.format.arrow else _frames_of
            with_types = replace(declared, types=form.declared)
            location.format.door.write(blocks_of(read(), schema), part, location, form.labels, with_types)
        else:
            packed = ending_of(path) == ".csv.gz"
            write_csv(read(), part, Path(path), schema, packed=packed, excel_safe=excel_safe)
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
        order = sorted(tables, key=lambda name: bool(tables[name][3].links))  # look-up tables first
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


def _never_missing(table: Any, schema: Schema | None, links: DeclaredTable) -> list[str]:
    """Return the columns that are NOT NULL: those that the schema says so of, and the link to the parent.

    If a cell is missing in spite of that, a database would refuse the table, so it is not declared.
    """
    columns = {} if schema is None else schema.columns
    names = [name for name, column in columns.items() if not getattr(column, "nullable", True)]
    frame = read_in_memory(table).frame
    return [name for name in (*names, *links.never_missing) if name in frame and frame[name].notna().all()]


def _frames_of(blocks: Iterator[LoadedTable], _: Schema | None) -> Iterator[pd.DataFrame]:
    return (block.frame for block in blocks)


def _arrow_of(blocks: Iterator[LoadedTable], schema: Schema | None) -> Iterator[pa.Table]:
    for block in blocks:
        with replace_errors(
            "some column mixes types: write .csv", (pa.ArrowException, ValueError, TypeError)
        ):
            if schema is None or block.form.types is None:
                yield pa.Table.from_pandas(block.frame, preserve_index=False)
            else:
                yield block.form.arrow(block.frame, schema)


def stacked(blocks: Iterator[pd.DataFrame]) -> pd.DataFrame:
    """Return blocks of rows as one table."""
    first, *rest = blocks
    return pd.concat([first, *rest], ignore_index=True) if rest else first


def formatted(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return the table with numbers and dates as text where the schema gives their format.

    Examples
    --------
    >>> from privsyn import Numerical
    >>> frame = pd.DataFrame({"price": [2.5, None]})
    >>> formatted(frame, Schema({"price": Numerical(0, 9, decimals=2)}))["price"].tolist()
    ['2.50', None]

    Whole numbers stay whole where a missing cell has turned them into floats:

    >>> frame = pd.DataFrame({"age": [25.0, None]})
    >>> formatted(frame, Schema({"age": Numerical(integer=True)}))["age"].tolist()
    ['25', None]
    """
    columns = {
        name: schema.columns[name].write_texts(frame[name], schema.csv)
        if name in schema.columns
        else schema.csv.texts(frame[name])
        for name in frame.columns
    }
    return pd.DataFrame(columns, copy=False)


def without_formulas(frame: pd.DataFrame, numbers: Collection[str] = ()) -> pd.DataFrame:
    """Return the table with an apostrophe before each text that begins like a formula, names included.

    A formula after an apostrophe gets another one, so different texts stay different.

    Parameters
    ----------
    frame : pandas.DataFrame
    numbers : collection of str
        Columns of numbers, which may be text (``-1,5``) and are no formulas.

    Examples
    --------
    >>> frame = pd.DataFrame({"note": ["=1+1", "a=b", None], "gain": ["-5", "3", "4"]})
    >>> without_formulas(frame, ["gain"]).fillna("").to_numpy().tolist()
    [["'=1+1", '-5'], ['a=b', '3'], ['', '4']]
    """
    columns = {
        _escaped(name): cells
        if name in numbers or not _has_text(cells)
        else cells.astype(object).map(_escaped)
        for name, cells in frame.items()
    }
    return pd.DataFrame(columns, copy=False)


def with_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table without the apostrophes of `without_formulas`.

    >>> with_formulas(pd.DataFrame({"'=a": ["'=1+1", "''=b", "'c", None]})).fillna("").to_dict("list")
    {'=a': ['=1+1', "'=b", "'c", '']}
    """
    columns = {
        _unescaped(name): cells.map(_unescaped) if family(cells.dtype) in ("text", "object") else cells
        for name, cells in frame.items()
    }
    return pd.DataFrame(columns, copy=False)


def _has_text(cells: pd.Series) -> bool:
    return family(cells.dtype) in ("text", "object", "category")


def _escaped(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip("'").startswith(BEGINNINGS) else cell


def _unescaped(cell: Any) -> Any:
    return cell[1:] if isinstance(cell, str) and cell[:1] == "'" and _escaped(cell) != cell else cell
