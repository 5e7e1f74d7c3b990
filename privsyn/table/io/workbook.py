"""Workbooks of Excel, read cell by cell. No cell can make reading fail: an invalid cell is missing.

openpyxl reads the names of the sheets, and the styles, which say which numbers are dates. Its own reader of
cells raises at an invalid number or date, and at a shared text that the workbook lacks.
"""

from __future__ import annotations

import zipfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from openpyxl.reader.excel import ExcelReader
from openpyxl.styles.stylesheet import apply_stylesheet
from openpyxl.utils import coordinate_to_tuple
from openpyxl.utils.datetime import from_excel, from_ISO8601
from openpyxl.xml.constants import SHARED_STRINGS, SHEET_MAIN_NS
from openpyxl.xml.functions import iterparse

from privsyn.errors import InputError
from privsyn.files import UnpackedLimit
from privsyn.table.encoding.parsing import alone

LIMIT = UnpackedLimit(2**26, 100)
"""A workbook of a real table unpacks to 5 to 20 times its size."""

MOST_TEXTS = 2**28
"""Bytes of the texts that cells share, unpacked (256 MB). They are in memory; the rows are not."""

PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How the members of a workbook may be packed. Of these Python unpacks no more than the directory says."""

Row = tuple[Any, ...]


def _tag(name: str) -> str:
    return f"{{{SHEET_MAIN_NS}}}{name}"


ROWS, ROW, CELL, VALUE, INLINE = map(_tag, ("sheetData", "row", "c", "v", "is"))
SHARED_TABLE, SHARED, RUN, TEXT = map(_tag, ("sst", "si", "r", "t"))


def check_size(file: Path) -> None:
    """Refuse a workbook that is made to fill the memory. Its directory alone is read."""
    with zipfile.ZipFile(file) as packed:
        members = packed.infolist()
    if any(member.compress_type not in PACKED for member in members):
        raise InputError(f"{file}: its parts are packed in a way that workbooks do not use: save it again")
    LIMIT.check(file, sum(member.file_size for member in members))
    texts = sum(member.file_size for member in members if "sharedstrings" in member.filename.lower())
    if texts > MOST_TEXTS:
        raise InputError(
            f"{file}: holds more than {MOST_TEXTS / 1e6:,.0f} MB of text: save the sheet as .csv"
        )


class Workbook:
    """A workbook whose sheets are read row by row. Closing it closes the file.

    Parameters
    ----------
    file : Path

    Raises
    ------
    InputError
        If it would take far more memory than a workbook of its size.
    Exception
        Any, if the file is no workbook.
    """

    def __init__(self, file: Path) -> None:
        check_size(file)
        reader = ExcelReader(file, read_only=True, data_only=True, keep_links=False)
        self._archive = reader.archive
        try:
            reader.read_manifest()
            reader.read_workbook()
            apply_stylesheet(reader.archive, reader.wb)  # which styles are those of dates
            self._book = reader.wb
            self._texts = self._shared_texts(reader.package.find(SHARED_STRINGS))
            sheets = [(sheet.name, part.target) for sheet, part in reader.parser.find_sheets()]
            parts = {*reader.archive.namelist()}
            self.sheets = {name: part for name, part in sheets if part in parts and "chart" not in part}
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._archive.close()

    def rows(self, sheet: str) -> Generator[Row, None, None]:
        """Yield the cells of each row of a sheet, None where one is missing or not sound."""
        with self._archive.open(self.sheets[sheet]) as file:
            for row in _elements(file, ROW, ROWS):
                yield self._row(row)

    def _shared_texts(self, part: Any) -> list[str | None]:
        """Return the texts that cells share, None for one that is not sound."""
        if part is None:
            return []
        with self._archive.open(part.PartName[1:]) as file:
            return [alone(_text, node, None) for node in _elements(file, SHARED, SHARED_TABLE)]

    def _row(self, row: Element) -> Row:
        """Return the cells of a row. A cell without a valid column follows the cell before it."""
        cells: dict[int, Any] = {}
        column = 0
        for cell in row.iterfind(CELL):
            column = alone(_column, cell, column + 1)
            cells[column] = alone(self._cell, cell, None)
        return tuple(cells.get(column) for column in range(1, max(cells, default=0) + 1))

    def _cell(self, cell: Any) -> Any:
        """Return the value of a cell; raise any exception if it is not sound."""
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            return _text(cell.find(INLINE))
        text = cell.findtext(VALUE) or None
        if text is None or kind not in ("n", "s", "b", "d"):
            return text
        if kind == "n":
            style = int(cell.get("s", 0))
            number = float(text) if {*".eE"}.intersection(text) else int(text)
            if style not in self._book._date_formats:
                return number
            return from_excel(number, self._book.epoch, timedelta=style in self._book._timedelta_formats)
        if kind == "s":
            index = int(text)
            if index < 0:  # it would count from the end
                raise ValueError("no text has this number")
            return self._texts[index]
        return bool(int(text)) if kind == "b" else from_ISO8601(text)


def _elements(file: Any, tag: str, parent: str) -> Iterator[Element]:
    """Yield the elements with a tag, one after the other: memory holds one of them."""
    within: Element | None = None
    for event, element in iterparse(file, events=("start", "end")):
        if event == "start":
            within = element if element.tag == parent else within
        elif element.tag == tag:
            yield element
            (element if within is None else within).clear()


def _text(node: Any) -> str:
    """Return the text of an element, without its formats and phonetic signs."""
    parts = [*node.iterfind(TEXT), *(part for run in node.iterfind(RUN) for part in run.iterfind(TEXT))]
    return "".join(part.text or "" for part in parts).replace("x005F_", "")


def _column(cell: Any) -> int:
    return int(coordinate_to_tuple(cell.get("r"))[1])
