"""Sheets of Excel workbooks. A sheet has no types: each cell is read as text and converted alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError, replace_errors, unless_own
from privsyn.table.io.formats import DeclaredColumns, DeclaredTable, Formats, Labels, Location, plain, text_of
from privsyn.table.kinds.csv_format import CsvFormat

if TYPE_CHECKING:
    from privsyn.table.io.workbook import Workbook

AT_ONCE = 4096
"""Rows of a block. A cell takes some 15 microseconds: whoever needs the first rows does not wait for more."""

MOST_ROWS = 2**20 - 1
"""Rows of a sheet without its header."""

FACTS = (
    "that the file is a whole workbook, of sound XML, and not of far more text than a table of its size",
    "that the sheet has no cell to the right of its header",
)


@contextmanager
def _rows(location: Location) -> Iterator[Iterator[tuple[Any, ...]]]:
    """Yield the rows of a sheet. A formula has the value that was computed last."""
    with _workbook(location) as book, closing(book.rows(location.choose(list(book.sheets)))) as rows:
        yield rows


@contextmanager
def _workbook(location: Location) -> Iterator[Workbook]:
    """Yield an open workbook."""
    from privsyn.table.io.workbook import Workbook  # needs openpyxl

    damaged = f"{location.file}: not an Excel workbook (.xlsx), or a damaged one"
    with replace_errors(unless_own(damaged)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles that openpyxl does not know
            book = Workbook(location.file)
        try:
            yield book
        finally:
            book.close()


def sheets(location: Location) -> list[str]:
    """Return the names of the sheets of a workbook."""
    with _workbook(location) as book:
        return list(book.sheets)


def header(location: Location, _: CsvFormat) -> list[str]:
    """Return the names of the columns, which are in the first row that is not blank."""
    with _rows(location) as rows:
        filled = (cells for cells in map(_names, rows) if cells)
        names = next(filled, [])
        # It is public that no row is longer than the header (`FACTS`), so this error shows nothing of a row.
        if len(names) == 1 and len(next(filled, [])) > 1:
            raise InputError(
                f"{location}: the first row of the sheet has one cell, as a title has, but it must hold the"
                " names of the columns: delete the rows above the names in Excel, save, and choose it again"
            )
    return names


def _names(row: tuple[Any, ...]) -> list[str]:
    while row and row[-1] is None:
        row = row[:-1]
    return ["" if cell is None else str(cell) for cell in row]


def declared(_: Location, dialect: CsvFormat) -> DeclaredColumns:
    """Return no column, for a sheet has no types, and what is taken as public about every sheet."""
    return DeclaredColumns(public_inputs=FACTS)


def texts(
    location: Location, dialect: CsvFormat, formats: Formats, _only: Collection[str] | None = None
) -> Iterator[pa.Table]:
    """Yield the cells as text, as they would be in a CSV."""
    with _rows(location) as rows:
        names: list[str] = []
        block: list[list[str]] = []
        spell: list[Callable[[Any], str]] = []
        for row in rows:
            if all(cell is None for cell in row):
                continue
            if not names:
                names = _names(row)
                spell = [partial(text_of, dialect=dialect, form=formats.get(name)) for name in names]
                continue
            if any(cell is not None for cell in row[len(names) :]):
                raise InputError(f"{location}: some row is longer than the header")
            cells = [*row[: len(names)], *[None] * (len(names) - len(row))]
            block.append([write(cell) for write, cell in zip(spell, cells, strict=True)])
            if len(block) == AT_ONCE:
                yield _table(names, block)
                block = []
        if block:
            yield _table(names, block)


def _table(names: list[str], rows: list[list[str]]) -> pa.Table:
    return pa.table([pa.array(cells, pa.string()) for cells in zip(*rows, strict=True)], names=names)


def write(
    frames: Iterator[pd.DataFrame], part: Path, location: Location, _: Labels, _declared: DeclaredTable
) -> None:
    """Write a workbook of one sheet. Text is stored as text, also if it begins like a formula."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    with replace_errors(f"{location}: no sheet of Excel can have that name", ValueError):
        sheet = book.create_sheet(location.inside or "Sheet1")
    book.properties.created = book.properties.modified = datetime(2000, 1, 1)

    def stored(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        cell = WriteOnlyCell(sheet, value)
        cell.data_type = "s"  # never "f", a formula
        return cell

    unwritable = f"{location}: some cell cannot be stored in a sheet (control characters, dates): write .csv"
    rows, head = 0, False
    with replace_errors(unless_own(unwritable)):
        for frame in frames:
            if not head:
                sheet.append([stored(str(name)) for name in frame.columns])
                head = True
            if (rows := rows + len(frame)) > MOST_ROWS:
                raise InputError(
                    f"{location}: a sheet of Excel holds {MOST_ROWS:,} rows: write another format"
                )
            for row in zip(*(frame[name].astype(object) for name in frame.columns), strict=True):
                sheet.append([stored(plain(value)) for value in row])
        book.save(part)
