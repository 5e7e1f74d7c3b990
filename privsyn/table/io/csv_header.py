"""The names in the first line of a CSV file. It is read byte by byte, so no byte of a row is read."""

from __future__ import annotations

import csv
import io
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO

from privsyn.errors import InputError, replace_errors
from privsyn.table.schema.csv_format import DELIMITERS, CsvFormat
from privsyn.table.schema.header import check_column_names

LONGEST_LINE = 2**20
"""Bytes, enough for 50,000 names. To read a file without line ends byte by byte would take long."""

DAMAGED = (csv.Error, OSError, EOFError, zlib.error)
"""Errors of a file that cannot be read as CSV."""

_NUMBER = re.compile(r"\s*[-+]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][-+]?[0-9]+)?\s*")


def read_header(path: Path, dialect: CsvFormat) -> list[str]:
    """Return the names of the columns of a CSV file without reading a row.

    Raises
    ------
    InputError
        If the line cannot be read, or holds no names that a table can have.
    """
    encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
    with (
        replace_errors(partial(unreadable, path), DAMAGED),
        replace_errors(not_text(path, dialect), UnicodeDecodeError),
    ):
        text = first_line(path).decode(encoding)
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=dialect.delimiter)
        names = next((row for row in rows if row), [])
    if "\0" in text:
        raise InputError(
            f"{path}: its header has a NUL byte, so it is no CSV, or one in UTF-16: save it as CSV in UTF-8"
        )
    if not names:
        raise InputError(f"{path}: is empty: its first line must hold the names of the columns")
    if any("\n" in name or "\r" in name for name in names):  # usually rows, after a quote left open
        raise InputError(
            f"{path}: its header does not end with its line: close its quotes, or rename a column"
        )
    check_column_names(names, f"{path}: ")
    return names


def check_header(path: Path, names: Sequence[str], known: Collection[str] = ()) -> None:
    """Refuse a first line that looks like a row, or that has another delimiter.

    The names of columns are public: they are printed and stand in the synthetic table. A refused line may be
    somebody's row, so the message quotes nothing of it.

    Parameters
    ----------
    path : path
    names : sequence of str
    known : names that are declared, in a schema or as the column of identifiers

    Examples
    --------
    >>> check_header(Path("people.csv"), ["age", "sex"])
    >>> check_header(Path("years.csv"), ["2019", "2020"], known=["2019", "2020"])
    """
    unknown = [name for name in names if name not in known]
    if len(names) == 1 and unknown and (found := next((s for s in DELIMITERS if s in names[0]), None)):
        sign, spelled = shown(found), shown(found, '"')
        raise InputError(
            f"{path}: the header looks like it is separated by {sign}: use --delimiter {sign},"
            f" or write csv: {{delimiter: {spelled}}} in the schema"
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


def first_line(path: Path) -> bytes:
    """Return the bytes of a file up to the end of its first line that is not blank.

    A gzip file is unpacked byte by byte too.

    Raises
    ------
    OSError, EOFError, zlib.error
        If the file cannot be read.
    """
    line = bytearray()
    with path.open("rb", buffering=0) as file:
        for byte in _unpacked(file) if is_gzip(path) else _bytes(file):
            line += byte
            if byte in (b"\n", b"\r") and line.removeprefix(BOM_UTF8).strip(b"\r\n"):
                break
            if len(line) > LONGEST_LINE:
                raise InputError(f"{path}: its first line is longer than 1 MB: is it a CSV file?")
    return bytes(line)


def is_gzip(path: Path) -> bool:
    """Return whether a file is compressed, by its name."""
    return path.name.lower().endswith(".gz")


def not_text(path: Path, dialect: CsvFormat) -> str:
    """Return the message for a file in another encoding."""
    other = "cp1252" if dialect.encoding == "utf-8" else "utf-8"
    return (
        f"{path}: not text in {dialect.encoding.upper()}: use --encoding, such as --encoding {other}"
        f" (in the schema, csv: {{encoding: {other}}}), or save it in {dialect.encoding.upper()}"
    )


def shown(delimiter: str, quote: str = "'") -> str:
    r"""Return a delimiter as it is typed in a shell, or in double quotes as in YAML.

    >>> print(shown(";"), shown("\t"))
    ';' '\t'
    """
    return quote + delimiter.replace("\t", r"\t") + quote


def unreadable(path: Path, error: Exception) -> str:
    """Return the message for a file that cannot be read, without the error's text, which may quote a row."""
    return f"{path}: cannot be read as CSV ({getattr(error, 'strerror', None) or 'it is damaged or no text'})"


def _bytes(file: IO[bytes]) -> Iterator[bytes]:
    while byte := file.read(1):
        yield byte


def _unpacked(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes in a gzip file, which may be several joined into one."""
    unzip, is_complete = zlib.decompressobj(wbits=31), True
    for packed in _bytes(file):
        if is_complete:
            unzip = zlib.decompressobj(wbits=31)
        unpacked = unzip.decompress(packed)
        yield from (unpacked[place : place + 1] for place in range(len(unpacked)))
        is_complete = unzip.eof
    if not is_complete:
        raise EOFError
