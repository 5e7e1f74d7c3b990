"""Writers of the kinds of file: blocks of rows, each written as it comes."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privsyn.errors import InputError
from privsyn.table.csv_text import PLAIN
from privsyn.table.dtypes import family
from privsyn.table.form import Source
from privsyn.table.formulas import without_formulas
from privsyn.table.schema import Schema
from privsyn.table.spelling import spelt


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
