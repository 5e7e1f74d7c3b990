"""Tables in and out: data frames, Arrow tables, and files by their ending."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privsyn.errors import InputError
from privsyn.files import check_file
from privsyn.table.io.arrow import frame_of, readable
from privsyn.table.io.arrow_schema import public_columns, public_schema
from privsyn.table.io.csv_columns import no_rows, read_csv
from privsyn.table.io.csv_text import PLAIN
from privsyn.table.io.first_line import read_header
from privsyn.table.io.frame_type import FrameType, Source
from privsyn.table.io.parquet_folder import is_folder, parts_of
from privsyn.table.schema.schema import Schema

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
    return Source(frame_of(table, "the table"), form=FrameType.of(table, polars))


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
        return readable(source.iloc[:0])
    if not isinstance(source, str | PathLike):
        return frame_of(_arrow_of(source).schema.empty_table(), "the table")
    path = Path(source)
    if ending_of(path) == ".parquet":
        return frame_of(parquet_schema(parts_of(path)).empty_table(), str(path))
    check_file(path)
    return no_rows(read_header(path, PLAIN if schema is None else schema.csv), schema)


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


def parquet_schema(files: Sequence[Path]) -> pa.Schema:
    """Return the schema of the first file of a table; refuse files of other columns or types.

    Files may differ in what depends on their rows: metadata, an index, the width of a dictionary's indices.
    """
    schemas = [_schema_of(file) for file in files]
    columns = [public_schema(schema) for schema in schemas]
    for file, its in zip(files, columns, strict=True):
        if not its.equals(columns[0]):
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
        form = replace(FrameType.of(table), kind="pandas")
        return Source(frame_of(table, str(path)), form=form)
    check_file(path)
    return Source(*read_csv(path, schema, unit))


def _read_parquet(path: Path) -> pa.Table:
    with suppress(Exception), pq.ParquetFile(path) as file:
        return public_columns(file.read())
    raise InputError(f"{path}: not a Parquet file, or a damaged one")
