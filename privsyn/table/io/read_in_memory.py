"""Read a whole table: data frames, Arrow tables, files by their ending, and features with a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError, replace_errors, safe_repr
from privsyn.files import check_file, closing_files
from privsyn.table.encoding.dtypes import is_wide_float
from privsyn.table.io.arrow import check_type, check_types, empty_table, frame_of, plain_cells, readable
from privsyn.table.io.csv_table import PLAIN, no_rows, read_csv, read_header
from privsyn.table.io.formats import PARQUET, Location, TypedFile
from privsyn.table.io.output_type import PANDAS, OutputType
from privsyn.table.io.parquet import UNPACKED, parquet_schema, parts_of, read_parquet
from privsyn.table.kinds.keys import columns_of
from privsyn.table.schema.columns import column_of
from privsyn.table.schema.schema import Schema

_BETTER = {"Int128": "Int64 or Float64", "UInt128": "UInt64 or Float64", "Object": "String"}
"""Types of polars that are not supported, each with others that are."""


LAZY, STREAM = "that the lazy frame can be collected", "that the Arrow stream can be read to its end"
"""What is public about a table that is computed when it is read: one odd cell may make that fail."""


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


def read_in_memory(
    source: object, schema: Schema | None = None, *, unit: str | tuple[str, ...] | None = None
) -> LoadedTable:
    """Return a table from memory or from files.

    Parameters
    ----------
    source : pandas, polars or pyarrow table, object that exports an Arrow stream, str or path
        A path ends in one of `formats.ENDINGS`, or leads to a folder of Parquet files. In a workbook or
        database it is ``shop.duckdb::orders``. DuckDB's relations and other tables with
        ``__arrow_c_stream__`` are read as Arrow tables, polars' lazy frames are collected.
    schema : Schema, optional
        Says how the cells of a CSV file are read. Without it their types are guessed from the file.
    unit : str or tuple of str, optional
        The columns of identifiers, whose types are not guessed.

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
        location = Location.of(source)
        if location.format is PARQUET:
            table = read_parquet(parts_of(location.file))
            form = replace(OutputType.of(table), kind="pandas")
            return LoadedTable(frame_of(table, str(source)), (UNPACKED,), form=form)
        check_file(location.file)
        if location.format.typed:
            with closing_files():
                opened = open_typed(location, schema)
                table = pa.Table.from_batches(opened.batches(), opened.schema)
            frame = frame_of(table, str(location))
            schema_of_labels, form = known_of(
                opened, frame.drop(columns=list(columns_of(unit)), errors="ignore")
            )
            return LoadedTable(frame, opened.public_inputs, schema_of_labels, form)
        return LoadedTable(*read_csv(location, schema, columns_of(unit)))
    public: tuple[str, ...] = ()
    if type(source).__module__.startswith("polars") and hasattr(source, "collect"):
        public = (LAZY,)
        with replace_errors("the lazy frame cannot be collected: collect it yourself to see why"):
            source = source.collect()
    elif not isinstance(source, pa.Table) and not hasattr(source, "to_arrow"):
        public = (STREAM,)
    table = arrow_of(source)
    polars = source if hasattr(source, "to_arrow") else None
    return LoadedTable(frame_of(table, "the table"), public, form=OutputType.of(table, polars))


def open_typed(location: Location, schema: Schema | None) -> TypedFile:
    """Return the columns and rows of a file that has types; refuse types that are not supported."""
    opened: TypedFile = location.format.door.open_typed(location, schema)
    check_types(opened.schema, str(location))
    return opened


def known_of(opened: TypedFile, head: pd.DataFrame) -> tuple[Schema | None, OutputType]:
    """Return what the value labels of a file say about its columns, if it has any, and its output type.

    A list of labels is metadata, which the ledger declares public. The rows had no part in it.
    """
    form = replace(OutputType.of(opened.schema.empty_table()), kind="pandas", labels=dict(opened.labels))
    listed = form.listed()
    columns = {str(name): listed.get(str(name), column_of(dtype)) for name, dtype in head.dtypes.items()}
    return (Schema(columns) if opened.labels and columns else None), form


def arrow_of(source: Any) -> pa.Table:
    """Return polars' table in types that every pyarrow knows, or the table of an Arrow stream."""
    no_table = (
        f"a table is a pandas or polars DataFrame, a pyarrow Table or a path, not a {type(source).__name__}"
    )
    if isinstance(source, Mapping):
        no_table = (
            "a dict is no table: of columns, give pd.DataFrame(...); of tables, say how they are linked, as"
            " PrivSyn(schema=Database({...})), which `privsyn schema FOLDER` drafts"
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
        if hasattr(source, "columns"):  # an array has none
            no_table = "the Arrow stream cannot be read to its end: read it yourself to see why"
        with replace_errors(no_table):
            return pa.table(source)
    raise InputError(no_table)


def _check_polars(name: str, dtype: Any) -> None:
    """Refuse types of polars that Arrow lacks, also inside others. Of Python objects Arrow gets addresses."""
    type_name = type(dtype).__name__  # an Enum would show its values
    if type_name in _BETTER:
        raise InputError(
            f"column {name!r}: the polars type {type_name} is not supported: cast it to {_BETTER[type_name]},"
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
    location = Location.of(source)
    if location.format is PARQUET:
        return frame_of(empty_table(parquet_schema(parts_of(location.file)), str(source)), str(source))
    check_file(location.file)
    if location.format.typed:
        with closing_files():
            opened = open_typed(location, schema)
        return frame_of(empty_table(opened.schema, str(location)), str(location))
    return no_rows(read_header(location, PLAIN if schema is None else schema.csv), schema)


def digest(rows: pd.DataFrame) -> str:
    """Return the SHA-256 of public rows as a CSV file has them, so that everybody can compute it again."""
    return f"SHA-256 {sha256(rows.to_csv(index=False).encode()).hexdigest()}"


def check_excel_safe(path: str | PathLike[str], *, excel_safe: bool) -> None:
    """Refuse the option for spreadsheets where the file is none. A sheet of Excel is always safe."""
    if excel_safe and Location.of(path).format.name not in ("CSV", "Excel"):
        raise InputError(f"{path}: only a CSV can be made safe for spreadsheets: choose .csv or .csv.gz")


NAMELESS = "target"
"""The name of a target that has none."""


def as_frame(table: Any) -> Any:
    """Return a matrix of NumPy as a data frame with the columns x0, x1, ...; any other table unchanged.

    The dtype of the matrix is that of the columns: no cell decides it.

    >>> as_frame(np.eye(2)).columns.tolist()
    ['x0', 'x1']
    """
    if hasattr(type(table), "tocsr"):  # of SciPy; a frame of Spark has attributes of any name
        raise InputError(
            "a sparse matrix is no table: give the columns as they were before they were encoded, and encode"
            " synthetic rows"
        )
    if not isinstance(table, np.ndarray):
        return table
    if table.ndim != 2:
        raise InputError(f"an array must have rows and columns; this one has {table.ndim} dimensions")
    # Without a dtype, pandas would take one from the cells.
    return pd.DataFrame(table, columns=[f"x{index}" for index in range(table.shape[1])], dtype=table.dtype)


def with_target(features: Any, target: Any) -> tuple[Any, str]:
    """Return the features with the target as a further column, and the name of that column.

    Parameters
    ----------
    features : pandas or polars DataFrame, pyarrow Table, or NumPy matrix
    target : pandas or polars Series, NumPy or Arrow array, with as many values
        Rows are matched by their place; a pandas index is not used. A target without a name is called
        "target". It must have a type of its own, because a type that is taken from the cells would reveal
        one of them. A list has none.

    Raises
    ------
    InputError
        If the lengths differ, the name is already a column, the target has no type, or the table is of
        another kind.

    Examples
    --------
    >>> with_target(pd.DataFrame({"age": [20, 30]}), np.array([0, 1]))[0].columns.tolist()
    ['age', 'target']
    """
    features = as_frame(features)
    if isinstance(target, pd.DataFrame) and len(target.columns) == 1:
        target = target.iloc[:, 0]
    name = NAMELESS if (name_of_target := getattr(target, "name", None)) is None else name_of_target
    if not isinstance(name, str):
        raise InputError(f"the name of the target must be text; got {safe_repr(name)}: rename it")
    columns = getattr(features, "column_names", getattr(features, "columns", ()))
    if name in list(columns):
        raise InputError(
            f"the target {name!r} is already a column: pass the table alone and target={name!r},"
            " or remove the column"
        )
    if not isinstance(features, pd.DataFrame | pa.Table) and not hasattr(features, "hstack"):
        raise InputError(
            f"a target cannot be joined to a {type(features).__name__}: pass one table that contains it,"
            " and target=... with its name"
        )
    if not _has_type(target, features):
        raise InputError(
            f"a target of type {type(target).__name__} has no public type of its values: give a Series with a"
            " dtype, or a NumPy array whose dtype is not object"
        )
    if is_wide_float(dtype := getattr(target, "dtype", None)):
        raise InputError(f"column {name!r}: its dtype is {dtype}: convert it to float64")
    if hasattr(target, "to_arrow") and not hasattr(features, "hstack"):  # of polars
        target = arrow_of(target.to_frame(name))[name]
    if isinstance(target, pd.Series):
        target = readable(target.to_frame(name))[name]
    if isinstance(target, pa.Array | pa.ChunkedArray):
        check_type(name, target.type)
        target = plain_cells(target)
    with replace_errors("the target must have one value for each row of the table"):
        if getattr(target, "ndim", 1) != 1:
            raise ValueError
        return _joined(features, name, target), name


def without_target(synthetic: Any, name: str, features: Any, target: Any) -> tuple[Any, Any]:
    """Return the features and the target of a synthetic table: the reverse of `with_target`.

    Parameters
    ----------
    synthetic : pandas or polars DataFrame, or pyarrow Table
        Rows whose target is missing are left out.
    name : str
        The column of the target.
    features, target : what `with_target` took
        Where these are arrays of NumPy, arrays are returned.

    Examples
    --------
    >>> table = pd.DataFrame({"x0": [2.0, 3.0], "target": [0.0, None]})
    >>> without_target(table, "target", np.eye(1), np.zeros(1))
    (array([[2.]]), array([0.]))
    """
    if isinstance(synthetic, pa.Table):
        synthetic = synthetic.filter(synthetic[name].is_valid())
        return synthetic.drop_columns([name]), synthetic[name]
    if not isinstance(synthetic, pd.DataFrame):  # of polars
        synthetic = synthetic.drop_nulls(name)
        return synthetic.drop(name), synthetic[name]
    synthetic = synthetic.dropna(subset=[name])
    rows, cells = synthetic.drop(columns=name), synthetic[name]
    is_matrix, is_array = (isinstance(source, np.ndarray) for source in (features, target))
    return rows.to_numpy() if is_matrix else rows, cells.to_numpy() if is_array else cells


def _has_type(target: Any, features: Any) -> bool:
    """Return whether the type of the values is known without looking at them.

    A pandas Series of objects stays one in a pandas table. Arrow and polars would choose a type by its cells.
    """
    if isinstance(target, pa.Array | pa.ChunkedArray):
        return True
    if isinstance(target, pd.Series) and isinstance(features, pd.DataFrame):
        return True
    return str(getattr(target, "dtype", "object")).lower() != "object"


def _joined(features: Any, name: str, target: Any) -> Any:
    if isinstance(features, pd.DataFrame):
        if isinstance(target, pa.ChunkedArray):
            target = pd.Series(target, dtype=pd.ArrowDtype(target.type))
        # With the index of the table, pandas neither aligns the rows nor chooses another dtype.
        return features.assign(**{name: pd.Series(target).set_axis(features.index)})
    if isinstance(features, pa.Table):
        typed = isinstance(target, pa.ChunkedArray)
        return features.append_column(name, target if typed else pa.array(target))
    import polars as pl

    return features.hstack([pl.Series(name, target)])
