"""Write synthetic rows as CSV: every cell as the schema says, and no byte that tells the time or a name."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from privsyn.errors import replace_errors
from privsyn.table.encoding.dtypes import family
from privsyn.table.encoding.parsing import is_missing
from privsyn.table.io.csv_table import PLAIN
from privsyn.table.io.formulas import has_text, without_formulas
from privsyn.table.schema.schema import Schema


def write_csv(
    frames: Iterator[pd.DataFrame],
    part: Path,
    path: Path,
    schema: Schema | None,
    *,
    packed: bool,
    excel_safe: bool,
) -> None:
    """Write blocks of rows to `part`, which will become `path`, in the dialect of the schema."""
    dialect = PLAIN if schema is None else schema.csv
    unwritable = f"{path}: some text cannot be written in {dialect.encoding}: choose utf-8"
    with replace_errors(unwritable, UnicodeEncodeError), part.open("wb") as raw, ExitStack() as stack:
        # The header has no name and no time, so that the same table gives the same bytes.
        gz = gzip.GzipFile("", "wb", fileobj=raw, compresslevel=6, mtime=0) if packed else None
        binary = raw if gz is None else stack.enter_context(gz)
        text = stack.enter_context(io.TextIOWrapper(binary, encoding=dialect.encoding, newline=""))
        for index, block in enumerate(frames):
            frame = block if schema is None else formatted(block, schema)
            if excel_safe:
                frame = without_formulas(frame, block.select_dtypes("number").columns)
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
    cells = chain(frame.columns, *(cells.unique() for _, cells in frame.items() if has_text(cells)))
    return csv.QUOTE_NONNUMERIC if any("\r" in str(cell) for cell in cells) else csv.QUOTE_MINIMAL


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
