"""Tables in and out: data frames, Arrow tables, and files by their ending."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privsyn.errors import InputError
from privsyn.table.arrow_cells import frame_of, readable
from privsyn.table.csv_file import no_rows, read_csv
from privsyn.table.csv_text import PLAIN, read_header
from privsyn.table.folder import is_folder, parts_of
from privsyn.table.form import PANDAS, Form, Source
from privsyn.table.schema import Schema
from privsyn.table.writers import write_csv, write_parquet

ENDINGS = (".csv", ".csv.gz", ".parquet")

LONGEST_NAME = 200
"""Characters: a longer text is hardly a path, and may be the table itself."""


def read_table(source: object, schema: Schema | None = None, *, unit: str | None = None) -> Source:
    """A table from wherever it is.

    Parameters
    ----------
    source : pandas.DataFrame, polars.DataFrame, pyarrow.Table, str or path
        A path ends in one of `ENDINGS`, or leads to a folder of Parquet files.
    schema : Schema, optional
        Says what the cells of a CSV file are. Without it their types are read off the file.
    unit : str, optional
        The column of identifiers, of which no type is guessed.

    Notes
    -----
    Arrow and Parquet have one type for integers, whether a cell is missing or not, and so have the columns
    here: ``Int64`` for int64, ``boolean`` for bool. pandas' own choice would depend on the cells.

    Examples
    --------
    >>> read_table(pa.table({"a": [1, None]})).frame.dtypes["a"]
    Int64Dtype()
    """
    if isinstance(source, pd.DataFrame):
        return Source(readable(source))
    if isinstance(source, str | PathLike):
        return _read_file(Path(source), schema, unit)
    table = _arrow_of(source)
    polars = source if hasattr(source, "to_arrow") else None
    return Source(frame_of(table, "the table"), form=Form.of(table, polars))


def _arrow_of(source: Any) -> pa.Table:
    """The table of polars, in types that every pyarrow knows, or of whatever else speaks Arrow's protocol."""
    table = None
    if hasattr(source, "to_arrow"):
        table = source.to_arrow()
    elif hasattr(source, "__arrow_c_stream__"):
        with suppress(Exception):  # its text may quote a cell
            table = pa.table(source)
    if isinstance(table, pa.Table):
        return table
    if type(source).__name__ == "Series":  # its name is not shown: a row's is the label of that row
        raise InputError("a Series is no table: give a data frame, as df[['age']] for one column")
    raise InputError(
        f"a table is a pandas or polars DataFrame, a pyarrow Table or a path, not a {type(source).__name__}"
    )


def read_columns(source: object, schema: Schema | None = None) -> pd.DataFrame:
    """A table of no rows with the columns of `source`: their names and dtypes, as far as they are public.

    Of a Parquet file only its schema is read, of a CSV only its header, the types being the schema's; a
    schema alone is enough.
    """
    if isinstance(source, Schema):
        return no_rows(source.columns, source)
    if isinstance(source, pd.DataFrame):
        return source.iloc[:0]
    if not isinstance(source, str | PathLike):
        return frame_of(_arrow_of(source).schema.empty_table(), "the table")
    path = Path(source)
    if ending_of(path) == ".parquet":
        return frame_of(parquet_schema(parts_of(path)).empty_table(), str(path))
    check_file(path)
    return no_rows(read_header(path, PLAIN if schema is None else schema.csv), schema)


def write_table(
    table: Any,
    path: str | PathLike[str],
    schema: Schema | None = None,
    form: Form = PANDAS,
    *,
    excel_safe: bool = False,
) -> tuple[int, int]:
    """Write a table to a file, all of it or nothing; see `write_blocks`."""
    return write_blocks(iter([table]), path, schema, form, excel_safe=excel_safe)


def write_blocks(
    blocks: Iterator[Any],
    path: str | PathLike[str],
    schema: Schema | None = None,
    form: Form = PANDAS,
    *,
    within: Path | None = None,
    excel_safe: bool = False,
) -> tuple[int, int]:
    """Write a table that comes in blocks of rows, each as it comes, to a file: all of it or nothing.

    A missing cell of a CSV file is written as an empty cell. The same table gives the same bytes.

    Parameters
    ----------
    blocks : iterator of pandas, polars or pyarrow tables
        At least one, all of the same columns and types. The index of a data frame is left out.
    path : str or path
        Ends in one of `ENDINGS`.
    schema : Schema, optional
        Says how a CSV is written: dates, decimals, separators.
    form : Form, optional
        Says the types of a Parquet file.
    within : path, optional
        The folder in which the file is until it is whole, on the same disk; by default that of `path`.
    excel_safe : bool
        In a CSV, put an apostrophe before each text that a spreadsheet would run as a formula.

    Returns
    -------
    The numbers of rows and of columns.
    """
    ending = ending_of(path)
    check_excel_safe(path, excel_safe=excel_safe)
    rows, columns = 0, 0

    def read() -> Iterator[Source]:
        nonlocal rows, columns
        for block in blocks:
            source = read_table(block)
            rows, columns = rows + len(source.frame), len(source.frame.columns)
            yield source if form is PANDAS else replace(source, form=form)

    with atomic_path(path, within) as part:
        if ending == ".parquet":
            write_parquet(read(), part, Path(path), schema)
        else:
            packed = ending == ".csv.gz"
            write_csv(read(), part, Path(path), schema, packed=packed, excel_safe=excel_safe)
    return rows, columns


def stacked(blocks: Iterator[pd.DataFrame]) -> pd.DataFrame:
    """Blocks of rows as one table."""
    first, *rest = blocks
    return pd.concat([first, *rest], ignore_index=True) if rest else first


def ending_of(path: str | PathLike[str]) -> str:
    """Which of `ENDINGS` a path has, or that of the files in a folder; an `InputError` if none.

    >>> ending_of("a.b/table.CSV.gz")
    '.csv.gz'
    """
    if is_folder(Path(path)):
        return ".parquet"
    text = str(path)
    for ending in ENDINGS:
        if text.lower().endswith(ending):
            return ending
    where = "" if "\n" in text or len(text) > LONGEST_NAME else f"{text}: "  # else a table, not its path
    raise InputError(f"{where}the ending is none of {', '.join(ENDINGS)}")


def check_excel_safe(path: str | PathLike[str], *, excel_safe: bool) -> None:
    """Refuse to make safe for spreadsheets what is no CSV."""
    if excel_safe and ending_of(path) == ".parquet":
        raise InputError(f"{path}: only a CSV can be made safe for spreadsheets: choose .csv or .csv.gz")


@contextmanager
def atomic_path(path: str | PathLike[str], within: Path | None = None) -> Iterator[Path]:
    """A place to write a file that gets its name only when all is well, and else vanishes.

    Yields
    ------
    Path
        A new name with the same ending, in the same folder or `within` another one of the same disk.
    """
    target = Path(os.path.realpath(path))
    part = (within or target.parent) / f".{secrets.token_hex(4)}-{target.name[-64:]}"
    try:
        check_target(path)
        yield part
        part.replace(target)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "the disk failed"  # in no library's words
        raise InputError(f"{path}: cannot be written ({reason})") from None
    finally:
        with suppress(OSError):
            part.unlink()


def check_target(path: str | PathLike[str]) -> None:
    """Refuse a path at which no file can be."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"{path}: is a folder: give a file name in it")
    if target.exists() and not target.is_file():  # a rename would put a file in a device's place
        raise InputError(f"{path}: is not a file: give the name of one")
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}: create it first")


def check_file(path: Path) -> None:
    """Refuse a path that leads to no file, or to one that cannot be read."""
    complaint = ""
    try:
        if not path.exists():
            complaint = "there is no such file"
        elif not path.is_file():
            complaint = "is a folder or device, not a file"
        else:
            with path.open("rb") as file:
                file.read(1)
    except OSError as error:
        complaint = f"cannot be read ({error.strerror})"
    if complaint:
        raise InputError(f"{path}: {complaint}")


def parquet_schema(files: Sequence[Path]) -> pa.Schema:
    """The one schema of the Parquet files of a table."""
    schemas = [_schema_of(file) for file in files]
    for file, schema in zip(files, schemas, strict=True):
        if not schema.equals(schemas[0]):
            raise InputError(f"{file}: other columns or types than {files[0].name}: write all files alike")
    return schemas[0]


def _schema_of(path: Path) -> pa.Schema:
    check_file(path)
    with suppress(Exception), pq.ParquetFile(path) as file:
        return file.schema_arrow
    raise InputError(f"{path}: not a Parquet file, or a damaged one")


def _read_file(path: Path, schema: Schema | None, unit: str | None) -> Source:
    if ending_of(path) == ".parquet":
        files = parts_of(path)
        parquet_schema(files)  # refuses files that are not alike
        table = pa.concat_tables([_read_parquet(file) for file in files])
        form = replace(Form.of(table), kind="pandas")
        return Source(frame_of(table, str(path)), form=form)
    check_file(path)
    return Source(*read_csv(path, schema, unit))


def _read_parquet(path: Path) -> pa.Table:
    with suppress(Exception), pq.ParquetFile(path) as file:
        return file.read()
    raise InputError(f"{path}: not a Parquet file, or a damaged one")
