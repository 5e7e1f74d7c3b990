"""Read a whole table: data frames, Arrow tables, and files by their ending."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError, replace_errors
from privsyn.files import check_file
from privsyn.table.io.arrow import empty_table, frame_of, readable
from privsyn.table.io.csv_header import read_header
from privsyn.table.io.csv_table import no_rows, read_csv
from privsyn.table.io.csv_text import PLAIN
from privsyn.table.io.output_type import PANDAS, OutputType
from privsyn.table.io.parquet import is_folder, parquet_schema, parts_of, read_parquet
from privsyn.table.schema.schema import Schema

ENDINGS = (".csv", ".csv.gz", ".parquet")

_BETTER = {"Int128": "Int64 or Float64", "UInt128": "UInt64 or Float64", "Object": "String"}
"""Types of polars that are not supported, each with others that are."""

LONGEST_NAME = 200
"""Characters: a longer text is hardly a path, and may be the table itself."""


@dataclass(frozen=True, eq=False)
class LoadedTable:
    """A table in memory.

    Parameters
    ----------
    frame : pandas.DataFrame
    public_inputs : tuple of str
        A sentence for the ledger about each fact about the rows that is taken as public, in addition to
        schema and dtypes.
    schema : Schema, optional
        How a file without dtypes was read: the schema's columns, or kinds guessed from the file.
    form : OutputType
        Which kind of table it was.
    """

    frame: pd.DataFrame
    public_inputs: tuple[str, ...] = ()
    schema: Schema | None = None
    form: OutputType = PANDAS


def read_in_memory(source: object, schema: Schema | None = None, *, unit: str | None = None) -> LoadedTable:
    """Return a table from memory or from files.

    Parameters
    ----------
    source : pandas, polars or pyarrow table, object that exports an Arrow stream, str or path
        A path ends in one of `ENDINGS`, or leads to a folder of Parquet files. DuckDB's relations and other
        tables with ``__arrow_c_stream__`` are read as Arrow tables, polars' lazy frames are collected.
    schema : Schema, optional
        Says how the cells of a CSV file are read. Without it their types are guessed from the file.
    unit : str, optional
        The column of identifiers, whose type is not guessed.

    Notes
    -----
    Arrow and Parquet have one type for integers, whether a cell is missing or not. So have the columns here:
    ``Int64`` for int64, ``boolean`` for bool. pandas' own choice would depend on the cells.

    Examples
    --------
    >>> read_in_memory(pa.table({"a": [1, None]})).frame.dtypes["a"]
    Int64Dtype()
    """
    if isinstance(source, pd.DataFrame):
        return LoadedTable(readable(source))
    if isinstance(source, str | PathLike):
        path = Path(source)
        if ending_of(path) == ".parquet":
            table = read_parquet(parts_of(path))
            return LoadedTable(frame_of(table, str(path)), form=replace(OutputType.of(table), kind="pandas"))
        check_file(path)
        return LoadedTable(*read_csv(path, schema, unit))
    if type(source).__module__.startswith("polars") and hasattr(source, "collect"):
        with replace_errors("the lazy frame cannot be collected: collect it yourself to see why"):
            source = source.collect()
    table = arrow_of(source)
    polars = source if hasattr(source, "to_arrow") else None
    return LoadedTable(frame_of(table, "the table"), form=OutputType.of(table, polars))


def arrow_of(source: Any) -> pa.Table:
    """Return polars' table in types that every pyarrow knows, or the table of an Arrow stream."""
    no_table = (
        f"a table is a pandas or polars DataFrame, a pyarrow Table or a path, not a {type(source).__name__}"
    )
    if type(source).__name__ == "Series":  # its name is not shown: a row's name is the label of that row
        no_table = "a Series is no table: give a data frame, as df[['age']] for one column"
    if hasattr(source, "to_arrow"):
        for name, dtype in dict(getattr(source, "schema", {})).items():
            _check_polars(name, dtype)
        table = source.to_arrow()
        if isinstance(table, pa.Table):
            return table
    elif hasattr(source, "__arrow_c_stream__"):
        with replace_errors(no_table):
            return pa.table(source)
    raise InputError(no_table)


def _check_polars(name: str, dtype: Any) -> None:
    """Refuse types of polars that Arrow lacks, also inside others. Of Python objects Arrow gets addresses."""
    its = type(dtype).__name__  # an Enum would show its values
    if its in _BETTER:
        raise InputError(
            f"column {name!r}: the polars type {its} is not supported: cast it to {_BETTER[its]},"
            " or leave the column out"
        )
    inside = [getattr(dtype, "inner", None), *(field.dtype for field in getattr(dtype, "fields", ()))]
    for kind in inside:
        if kind is not None:
            _check_polars(name, kind)


def read_columns(source: object, schema: Schema | None = None) -> pd.DataFrame:
    """Return the columns of `source` without rows: names and dtypes, as far as they are public.

    Of a Parquet file only its schema is read. Of a CSV only its header is read, and the dtypes are those of
    the schema. `source` may also be a schema.
    """
    if isinstance(source, Schema):
        return no_rows(source.columns, source)
    if isinstance(source, pd.DataFrame):
        return readable(source.iloc[:0])
    if hasattr(source, "collect_schema"):  # polars, lazy or not
        source = source.collect_schema().to_frame()
    if not isinstance(source, str | PathLike):
        return frame_of(empty_table(arrow_of(source).schema, "the table"), "the table")
    path = Path(source)
    if ending_of(path) == ".parquet":
        return frame_of(empty_table(parquet_schema(parts_of(path)), str(path)), str(path))
    check_file(path)
    return no_rows(read_header(path, PLAIN if schema is None else schema.csv), schema)


def ending_of(path: str | PathLike[str]) -> str:
    """Return which of `ENDINGS` a path has, ``.parquet`` for a folder; an `InputError` if none.

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
    """Refuse the option for spreadsheets where the file is no CSV."""
    if excel_safe and ending_of(path) == ".parquet":
        raise InputError(f"{path}: only a CSV can be made safe for spreadsheets: choose .csv or .csv.gz")
