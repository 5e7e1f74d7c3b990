"""Writers of the kinds of file: blocks of rows, each written as it comes."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privsyn.errors import InputError
from privsyn.files import atomic_path
from privsyn.table.encoding.dtypes import OBJECT, family
from privsyn.table.io.csv_text import PLAIN
from privsyn.table.io.formulas import without_formulas
from privsyn.table.io.frame_type import PANDAS, FrameType, Source
from privsyn.table.io.read import check_excel_safe, ending_of, read_table
from privsyn.table.schema.columns import Numerical
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.time_columns import Datetime


def write_parquet(blocks: Iterator[Source], part: Path, path: Path, schema: Schema | None) -> None:
    """Write blocks to `part`, which is to become `path`, in the types of the first."""
    mixed, types = False, None
    with ExitStack() as stack:
        for block in blocks:
            try:
                if schema is None or block.form.types is None:
                    table = pa.Table.from_pandas(block.frame, types, preserve_index=False)
                else:
                    table = block.form.arrow(block.frame, schema)
            except (pa.ArrowException, ValueError, TypeError):
                mixed = True
                break
            if types is None:
                types = _without_nulls(table.schema)
                writer = stack.enter_context(pq.ParquetWriter(part, types))
            writer.write_table(table.cast(types))
    if mixed:
        raise InputError(f"{path}: some column mixes types, which Parquet cannot hold: write .csv")


def _without_nulls(types: pa.Schema) -> pa.Schema:
    """The types of a first block; a column of objects that is all missing there may hold text in the next."""
    for place, field in enumerate(types):
        if pa.types.is_null(field.type):
            types = types.set(place, field.with_type(pa.string()))
    return types


def write_csv(
    blocks: Iterator[Source],
    part: Path,
    path: Path,
    schema: Schema | None,
    *,
    packed: bool,
    excel_safe: bool,
) -> None:
    """Write blocks to `part`, which is to become `path`, spelt as the schema says; see `without_formulas`."""
    spelling = PLAIN if schema is None else schema.csv
    unwritable = False
    with part.open("wb") as raw, ExitStack() as stack:
        # No name and no time in the header, so that the same table gives the same bytes.
        gz = gzip.GzipFile("", "wb", fileobj=raw, compresslevel=6, mtime=0) if packed else None
        binary = raw if gz is None else stack.enter_context(gz)
        text = stack.enter_context(io.TextIOWrapper(binary, encoding=spelling.encoding, newline=""))
        try:
            for place, block in enumerate(blocks):
                frame = block.frame if schema is None else spelt(block.frame, schema)
                if excel_safe:
                    frame = without_formulas(frame, block.frame.select_dtypes("number").columns)
                frame.to_csv(
                    text,
                    index=False,
                    header=place == 0,
                    sep=spelling.delimiter,
                    lineterminator="\n",
                    quoting=csv.QUOTE_NONNUMERIC if spelling.quoting == "all" else _quoting(frame),
                )
            text.flush()
        except UnicodeEncodeError:  # its text quotes the cell
            unwritable = True
    if unwritable:
        raise InputError(f"{path}: some text cannot be written in {spelling.encoding}: choose utf-8")


def _quoting(frame: pd.DataFrame) -> Literal[0, 2]:
    """Python's csv leaves a lone carriage return bare, which readers take for the end of a row: quote all."""
    texts = [name for name, dtype in frame.dtypes.items() if family(dtype) in ("text", "object", "category")]
    cells = chain(frame.columns, *(frame[name].unique() for name in texts))
    return csv.QUOTE_NONNUMERIC if any("\r" in str(cell) for cell in cells) else csv.QUOTE_MINIMAL


def write_table(
    table: Any,
    path: str | PathLike[str],
    schema: Schema | None = None,
    form: FrameType = PANDAS,
    *,
    excel_safe: bool = False,
) -> tuple[int, int]:
    """Write a table to a file, all of it or nothing; see `write_blocks`."""
    return write_blocks(iter([table]), path, schema, form, excel_safe=excel_safe)


def write_blocks(
    blocks: Iterator[Any],
    path: str | PathLike[str],
    schema: Schema | None = None,
    form: FrameType = PANDAS,
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


def spelt(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The table with its numbers and dates as text, where the schema says how they look.

    Examples
    --------
    >>> frame = pd.DataFrame({"price": [2.5, None]})
    >>> spelt(frame, Schema({"price": Numerical(0, 9, decimals=2)}))["price"].tolist()
    ['2.50', None]

    Whole numbers stay so where a missing cell has made floats of them:

    >>> spelt(pd.DataFrame({"age": [25.0, None]}), Schema({"age": Numerical(integer=True)}))["age"].tolist()
    ['25', None]
    """
    columns = {name: _spelt(frame[name], name, schema) for name in frame.columns}
    return pd.DataFrame(columns, copy=False)


def _spelt(cells: pd.Series, name: str, schema: Schema) -> pd.Series:
    column, kind = schema.columns.get(name), family(cells.dtype)
    if isinstance(column, Datetime) and column.format is not None and kind == "datetime":
        return _texts(cells, cells.dt.strftime(column.format))
    if kind not in ("integer", "real"):
        return cells
    decimals = None
    if isinstance(column, Numerical) and kind == "real":
        decimals = 0 if column.integer else column.decimals
    if decimals is None and schema.csv.spells_plainly:
        return cells
    texts = cells.map(str if decimals is None else f"{{:.{decimals}f}}".format, na_action="ignore")
    return _texts(cells, texts.map(schema.csv.spell, na_action="ignore"))


def _texts(cells: pd.Series, texts: pd.Series) -> pd.Series:
    return texts.astype(OBJECT).mask(cells.isna(), None)
