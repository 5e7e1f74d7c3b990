"""The rows of a CSV file, each cell as text.

Which bytes are a row is for the CSV grammar to say: a quoted cell may hold commas and ends of lines, so a
quote that is not closed takes the rows after it with it. That the file is well-formed is therefore taken as
public, and said; what is seen not to be is refused.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, cast

import pyarrow as pa
from pyarrow import csv as arrow_csv

from privsyn.errors import InputError
from privsyn.table.io.first_line import first_line, is_gzip, not_text, read_header, unreadable
from privsyn.table.schema.csv_dialect import DELIMITERS, CsvFormat

PLAIN = CsvFormat()
"""How programs write a CSV."""

LONGEST_ROW = 2**26
"""Bytes of UTF-8: the reader's block. That no row is longer is a public input (`csv_file.WELL_FORMED`).

A row of up to this length is always read. A longer one is refused, unless it ends in the second block.
"""

_NUMBER = re.compile(r"\s*[-+]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][-+]?[0-9]+)?\s*")

_SPELT = {"\t": r"\t"}


def read_text(path: Path, spelling: CsvFormat = PLAIN) -> pa.Table:
    """Every cell of a CSV file as text, an empty one as empty text. A blank line is no record."""
    empty = pa.table({name: pa.array([], pa.string()) for name in check_text(path, spelling)})
    return pa.concat_tables([empty, *walk_text(path, spelling)])


def check_text(path: Path, spelling: CsvFormat) -> list[str]:
    """The names in the header of a CSV file.

    A file that is seen not to be well-formed is refused, in words that quote none of it.
    """
    _check_quotes(path)
    return read_header(path, spelling)


def walk_text(path: Path, spelling: CsvFormat) -> Iterator[pa.Table]:
    """The cells of a CSV file as text, some rows at a time."""
    names = read_header(path, spelling)
    complaint = f"{path}: its header cannot be read: write one name for each column, with commas between"
    try:
        with ExitStack() as stack:
            packing = "gzip" if is_gzip(path) else None
            batches: Iterable[pa.RecordBatch] = ()
            if _has_rows(path):
                stream = stack.enter_context(pa.input_stream(str(path), compression=packing))
                batches = stack.enter_context(_reader(stream, names, spelling))
            for batch in batches:
                if batch.schema.names != names:
                    break
                yield pa.Table.from_batches([batch])
            else:
                complaint = ""
    except Exception as error:  # its text quotes the row
        if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
            complaint = not_text(path, spelling)
        elif "straddling" in str(error):  # a row goes on beyond the block after the one that it begins in
            complaint = (
                f"{path}: some row is longer than {LONGEST_ROW >> 20} MiB, the most that a row may have:"
                " leave out the column of long texts"
            )
        else:
            complaint = (
                f"{path}: not a table: some row is longer or shorter than the header, or the file is damaged"
            )
    if complaint:
        raise InputError(complaint)


def _reader(stream: pa.NativeFile, names: Sequence[str], spelling: CsvFormat) -> arrow_csv.CSVStreamingReader:
    return arrow_csv.open_csv(
        stream,
        read_options=arrow_csv.ReadOptions(block_size=LONGEST_ROW, encoding=spelling.encoding),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True, delimiter=spelling.delimiter),
        convert_options=arrow_csv.ConvertOptions(
            column_types={name: pa.string() for name in names}, strings_can_be_null=False
        ),
    )


def _check_quotes(path: Path) -> None:
    """Refuse a file in which some quote must be open: closed ones and doubled ones come in pairs."""
    quotes, complaint = 0, ""
    try:
        with _open(path) as file:
            while block := file.read(2**20):
                quotes += block.count(b'"')
    except (OSError, EOFError, zlib.error) as error:
        complaint = unreadable(path, error)
    if quotes % 2:
        complaint = f"{path}: some quote is not closed: a quote within a cell is doubled, and the cell quoted"
    if complaint:
        raise InputError(complaint)


def _has_rows(path: Path) -> bool:
    """Whether anything but blank lines follows the header."""
    with _open(path) as file:
        file.read(len(first_line(path)))
        return any(block.strip(b"\r\n") for block in iter(partial(file.read, 2**20), b""))


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path) if is_gzip(path) else path.open("rb"))


def check_header(path: Path, names: Sequence[str], known: Collection[str] = ()) -> None:
    """Refuse a first line that looks like a row, or that is cut at another sign than the file's.

    The names of columns are public: they are printed, and head the synthetic table. So the complaint quotes
    none of them, for they may be somebody's row.

    Parameters
    ----------
    path : path
    names : sequence of str
    known : names that somebody said are names: in a schema, as identifiers

    Examples
    --------
    >>> check_header(Path("people.csv"), ["age", "sex"])
    >>> check_header(Path("years.csv"), ["2019", "2020"], known=["2019", "2020"])
    """
    unknown = [name for name in names if name not in known]
    if len(names) == 1 and unknown and (sign := next((s for s in DELIMITERS if s in names[0]), None)):
        raise InputError(
            f"{path}: is taken for one column, but its first line has another delimiter:"
            f' say csv: {{delimiter: "{_SPELT.get(sign, sign)}"}} in the schema'
        )
    if any(_NUMBER.fullmatch(name) for name in unknown):
        raise InputError(
            f"{path}: its first line looks like a row, not like the names of columns:"
            " add a header, or name the columns in a schema"
        )
    if any(not name.strip() for name in unknown):
        raise InputError(
            f"{path}: its first line leaves a column without a name, or is a row: add the name, or a header"
            " (pandas leaves out its index by to_csv(..., index=False))"
        )
