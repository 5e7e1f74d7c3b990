"""The first line of a CSV file, read byte by byte: what follows it is a row, and no byte of that is read."""

from __future__ import annotations

import csv
import io
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from privsyn.errors import InputError
from privsyn.table.schema.csv_dialect import CsvFormat
from privsyn.table.schema.validation import check_names

LONGEST_LINE = 2**20
"""Bytes: names of 50,000 columns. A file without any end of line would take long to read byte by byte."""


def read_header(path: Path, spelling: CsvFormat) -> list[str]:
    """Return the names of the columns of a CSV file; no row is read.

    Raises
    ------
    InputError
        If the file cannot be read so far, or the line holds no names that a table can have.
    """
    complaint = f"{path}: is empty: its first line is to hold the names of the columns"
    names: list[str] = []
    try:
        text = first_line(path).decode("utf-8-sig" if spelling.encoding == "utf-8" else spelling.encoding)
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=spelling.delimiter)
        names = next((row for row in rows if row), [])
    except UnicodeDecodeError:
        complaint = not_text(path, spelling)
    except (csv.Error, OSError, EOFError, zlib.error) as error:
        complaint = unreadable(path, error)
    if not names:
        raise InputError(complaint)
    if any("\n" in name or "\r" in name for name in names):  # as a rule rows, after a quote left open
        raise InputError(
            f"{path}: its header does not end with its line: close its quotes, or rename a column"
        )
    check_names(names, f"{path}: ")
    return names


def first_line(path: Path) -> bytes:
    """Return the bytes of a file up to the end of its first line, and of blank lines before it.

    A packed file is unpacked byte by byte too, until the line has come out.

    Raises
    ------
    OSError, EOFError, zlib.error
        If the file cannot be read so far.
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
    """Whether a file is packed, by its name."""
    return path.name.lower().endswith(".gz")


def not_text(path: Path, spelling: CsvFormat) -> str:
    """Say that a file has another encoding."""
    return f"{path}: not text in {spelling.encoding.upper()}: save it so, or say its encoding in the schema"


def unreadable(path: Path, error: Exception) -> str:
    """Say why a file cannot be read; the text of `error` may quote a row."""
    return f"{path}: cannot be read as CSV ({getattr(error, 'strerror', None) or 'it is damaged or no text'})"


def _bytes(file: IO[bytes]) -> Iterator[bytes]:
    while byte := file.read(1):
        yield byte


def _unpacked(file: IO[bytes]) -> Iterator[bytes]:
    """The bytes in a gzip file, which may be several joined into one."""
    unzip, whole = zlib.decompressobj(wbits=31), True
    for packed in _bytes(file):
        if whole:
            unzip = zlib.decompressobj(wbits=31)
        some = unzip.decompress(packed)
        yield from (some[place : place + 1] for place in range(len(some)))
        whole = unzip.eof
    if not whole:
        raise EOFError
