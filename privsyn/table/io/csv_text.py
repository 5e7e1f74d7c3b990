"""The rows of a CSV file, each cell as text.

A quoted cell may hold commas and line ends. A quote that is not closed therefore swallows the rows after it.
So "the file is well-formed" is a public input, listed in the ledger, and a file that is not is refused.
Whoever writes CSV correctly writes a well-formed file, whatever the cells are. A NUL byte is different: it
may be in a cell, so to refuse it would reveal a row. It is refused in the header alone, where binary files
and UTF-16 have it too.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, cast

import pyarrow as pa
from pyarrow import csv as arrow_csv

from privsyn.errors import InputError, replace_errors
from privsyn.table.io.csv_header import (
    DAMAGED,
    first_line,
    is_gzip,
    not_text,
    read_header,
    shown,
    unreadable,
)
from privsyn.table.schema.csv_format import CsvFormat

PLAIN = CsvFormat()
"""The dialect that programs write by default."""

LONGEST_ROW = 2**26
"""Bytes of UTF-8: the reader's block. That no row is longer is a public input (`csv_table.well_formed`).

A row of up to this length is always read. A longer one is refused, unless it ends in the second block.
"""


def read_text(path: Path, dialect: CsvFormat = PLAIN) -> pa.Table:
    """Return every cell of a CSV file as text, an empty one as empty text. A blank line is no row."""
    empty = pa.table({name: pa.array([], pa.string()) for name in check_text(path, dialect)})
    return pa.concat_tables([empty, *walk_text(path, dialect)])


def check_text(path: Path, dialect: CsvFormat) -> list[str]:
    """Return the names in the header of a CSV file; refuse a file with an open quote, without quoting it."""
    quotes = 0
    with replace_errors(partial(unreadable, path), DAMAGED), _open(path) as file:
        while block := file.read(2**20):
            quotes += block.count(b'"')
    if quotes % 2:  # a quoted cell has two, and each quote within it is doubled
        raise InputError(
            f"{path}: some quote is not closed: put the cell in quotes and double each quote within it"
        )
    return read_header(path, dialect)


def walk_text(path: Path, dialect: CsvFormat) -> Iterator[pa.Table]:
    """Yield the cells of a CSV file as text, a block of rows at a time."""
    names = read_header(path, dialect)
    with replace_errors(partial(_message, path, dialect)), ExitStack() as stack:
        batches: Iterable[pa.RecordBatch] = ()
        if _has_rows(path):
            compression = "gzip" if is_gzip(path) else None
            stream = stack.enter_context(pa.input_stream(str(path), compression=compression))
            batches = stack.enter_context(_reader(stream, names, dialect))
        for batch in batches:
            if batch.schema.names != names:
                raise InputError(
                    f"{path}: its header cannot be read: write one name for each column, separated by"
                    f" {shown(dialect.delimiter)}"
                )
            yield pa.Table.from_batches([batch])


def _message(path: Path, dialect: CsvFormat, error: Exception) -> str:
    """Return the message for a file that Arrow cannot read; Arrow's own quotes the row."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
        return not_text(path, dialect)
    if "straddling" in str(error):  # a row does not end in the block after the one in which it begins
        return (
            f"{path}: some row is longer than {LONGEST_ROW >> 20} MiB, the longest that is read:"
            " leave out the column of long texts"
        )
    return (
        f"{path}: not a table with --delimiter {shown(dialect.delimiter)}: some row is longer or shorter than"
        " the header, or the file is damaged"
    )


def _reader(stream: pa.NativeFile, names: Sequence[str], dialect: CsvFormat) -> arrow_csv.CSVStreamingReader:
    return arrow_csv.open_csv(
        stream,
        read_options=arrow_csv.ReadOptions(block_size=LONGEST_ROW, encoding=dialect.encoding),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True, delimiter=dialect.delimiter),
        convert_options=arrow_csv.ConvertOptions(
            column_types={name: pa.string() for name in names}, strings_can_be_null=False
        ),
    )


def _has_rows(path: Path) -> bool:
    """Return whether anything but blank lines follows the header."""
    with _open(path) as file:
        file.read(len(first_line(path)))
        return any(block.strip(b"\r\n") for block in iter(partial(file.read, 2**20), b""))


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path) if is_gzip(path) else path.open("rb"))
