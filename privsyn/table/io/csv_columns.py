"""A CSV file as a table: every cell is read as text, and becomes what the schema says it is.

A CSV has no dtypes, and to guess them from the rows would let one odd cell change a whole column. So a cell
is converted by itself, as the schema says; what cannot be read is missing. Only without a schema are types
read off the file, and that is said: it becomes a public fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.table.encoding.dtypes import TEXT
from privsyn.table.encoding.parsing import number
from privsyn.table.encoding.read_texts import read_texts
from privsyn.table.io.csv_text import LONGEST_ROW, PLAIN, check_header, check_text, read_text, walk_text
from privsyn.table.schema.columns import Categorical, Column, Identifier, Numerical, Ordinal, Text
from privsyn.table.schema.csv_dialect import CsvFormat
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.time_columns import Datetime

MARKS = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None", "none")
"""Texts taken for a missing cell where no schema says which are."""

Guess = Categorical | Numerical | Datetime
"""What is made of the cells where no schema says it."""

WELL_FORMED = (
    "that the file is well-formed CSV in UTF-8: quotes closed, every row as long as the header,"
    f" none of more than {LONGEST_ROW >> 20} MiB"
)
"""What every CSV file is taken to be, in the ledger's words."""

_WHOLE = r"^[-+]?(0|[1-9][0-9]{0,14})$"
_REAL = r"^[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_FLAG = r"^(?i:true|false)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?$"


@dataclass(frozen=True)
class CsvTable:
    """What the cells of a CSV file are taken for.

    Parameters
    ----------
    path : path
    columns : mapping of each name in the header to its Column
    marks : mapping of each name to the texts that stand for a missing cell
    public_inputs : tuple of str
        A sentence for each fact about the rows that is taken as public.
    unit : str, optional
        The column of identifiers, left as the text it is: an identifier has no type to be guessed.
    spelling : CsvFormat
    """

    path: Path
    columns: Mapping[str, Column]
    marks: Mapping[str, Sequence[str]]
    public_inputs: tuple[str, ...]
    unit: str | None
    spelling: CsvFormat

    @classmethod
    def open(cls, path: Path, schema: Schema | None, unit: str | None = None) -> CsvTable:
        """Look at the header and, for a column that the schema does not know, at the cells."""
        spelling = PLAIN if schema is None else schema.csv
        names = check_text(path, spelling)
        known: dict[str, Column] = (
            {} if schema is None else {n: c for n, c in schema.columns.items() if n in names}
        )
        more = () if schema is None else schema.missing
        marks = dict.fromkeys(names, (*MARKS, *more))
        if schema is not None:
            marks |= {name: schema.markers(name) for name in known}
        if unit in names:
            known |= {unit: Categorical()}
        check_header(path, names, known)
        guessed = _guess(path, {name: marks[name] for name in names if name not in known}, spelling)
        columns = {name: known[name] if name in known else guessed[name] for name in names}
        return cls(path, columns, marks, (WELL_FORMED, *_facts(guessed)), unit, spelling)

    @property
    def schema(self) -> Schema | None:
        """The columns but for that of identifiers; None if there is no other."""
        kinds = {name: column for name, column in self.columns.items() if name != self.unit}
        return Schema(kinds) if kinds else None

    def frame(self, text: pa.Table) -> pd.DataFrame:
        """Rows of text as what they are taken for, each cell by itself."""
        cells = {name: _blank(text[name], self.marks[name]) for name in self.columns}
        typed = {name: _typed(cells[name], column, self.spelling) for name, column in self.columns.items()}
        return pd.DataFrame(typed, copy=False)


def read_csv(
    path: Path, schema: Schema | None, unit: str | None = None
) -> tuple[pd.DataFrame, tuple[str, ...], Schema | None]:
    """The table in a CSV file, a sentence for each fact about its rows taken as public, and its columns."""
    table = CsvTable.open(path, schema, unit)
    return table.frame(read_text(path, table.spelling)), table.public_inputs, table.schema


def no_rows(names: Iterable[str], schema: Schema | None) -> pd.DataFrame:
    """A table of no rows, as it would be read; what the schema does not say is text."""
    known = {} if schema is None else schema.columns
    nothing = pa.chunked_array([pa.array([], pa.string())])
    return pd.DataFrame({name: _typed(nothing, known.get(name, Categorical()), PLAIN) for name in names})


def marks_in(path: Path) -> tuple[str, ...]:
    """Which of the usual marks for a missing cell the file uses, but for the empty cell. Reads the rows."""
    text = read_text(path)
    cells = {
        mark for name in text.column_names for mark in pc.unique(text[name]).to_pylist() if mark in MARKS[1:]
    }
    return tuple(mark for mark in MARKS if mark in cells)


def _blank(cells: pa.ChunkedArray, marks: Sequence[str]) -> pa.ChunkedArray:
    """The cells with null for every mark that stands for missing."""
    return pc.if_else(
        pc.is_in(cells, value_set=pa.array(marks, pa.string())), pa.scalar(None, pa.string()), cells
    )


def _guess(path: Path, marks: Mapping[str, Sequence[str]], spelling: CsvFormat) -> dict[str, Guess]:
    """For each of some columns the first kind that all its cells agree with."""
    kinds: dict[str, Guess] = {
        _WHOLE: Numerical(integer=True),
        _REAL: Numerical(integer=False),
        _FLAG: Categorical([False, True]),
        _DATE: Datetime(unit="D"),
        _TIME: Datetime(unit="s"),
    }
    left, seen = {name: list(kinds) for name in marks}, set()
    for text in walk_text(path, spelling) if marks else ():
        for name, patterns in left.items():
            cells = _blank(text[name], marks[name])
            if cells.null_count < len(cells):
                seen.add(name)
            left[name] = [
                p for p in patterns if pc.all(pc.match_substring_regex(cells, p)).as_py() is not False
            ]
    return {
        name: kinds[patterns[0]] if patterns and name in seen else Categorical()
        for name, patterns in left.items()
    }


def _facts(guessed: Mapping[str, Guess]) -> Iterator[str]:
    """A sentence for each kind that was read off the file, and one for what stood for a missing cell."""
    kinds: dict[str, list[str]] = {}
    for name, column in guessed.items():
        kinds.setdefault(_kind(column), []).append(repr(name))
    for kind, names in kinds.items():
        yield f"that these columns are of {kind} (read off the file): {', '.join(names)}"
    if guessed:
        yield f"that these texts stand for a missing cell, as the empty one does: {' '.join(MARKS[1:])}"


def _kind(column: Guess) -> str:
    if isinstance(column, Numerical):
        return "whole numbers" if column.integer else "real numbers"
    if isinstance(column, Datetime):
        return "times" if column.unit == "s" else "dates"
    return "text" if column.values is None else "true and false"


def _typed(cells: pa.ChunkedArray, column: Column, spelling: CsvFormat) -> pd.Series:
    """The cells in the dtype that the column calls for, as a pandas series."""
    match column:
        case Categorical(values=None) | Text():
            return cells.to_pandas().astype(TEXT)
        case Categorical():
            return _listed(cells, tuple(cast(Any, column.values)), column.other, spelling)
        case Identifier():  # its cells are not read: its type follows from the schema
            return pd.Series([None] * len(cells), dtype="Int64" if column.format is None else TEXT)
        case Ordinal():
            return read_texts(column, cells.to_pylist(), spelling)
        case _:
            raise TypeError(f"no reader of text for a {type(column).__name__}")


def _listed(cells: pa.ChunkedArray, values: tuple[Any, ...], other: Any, spelling: CsvFormat) -> pd.Series:
    """The listed value that each text stands for, `other` for none."""
    types = {type(value) for value in values}
    if types == {str}:
        return cells.to_pandas().astype(TEXT)
    written: dict[Any, Any] = {number(value): value for value in values if type(value) in (int, float)}
    written |= {str(value).lower(): value for value in values if isinstance(value, bool)}
    written |= {str(value): value for value in reversed(values)}
    meaning = {text: _meaning(text, written, other, spelling) for text in pc.unique(cells).to_pylist()}
    if types == {bool}:
        dtype = "boolean"
    elif types == {int} and all(-(2**63) <= value < 2**63 for value in values):
        dtype = "Int64"
    else:
        dtype = "float64" if types == {float} or types == {int, float} else "object"
    return pd.Series([meaning[text] for text in cells.to_pylist()], dtype=dtype)


def _meaning(text: str | None, written: dict[Any, Any], other: Any, spelling: CsvFormat) -> Any:
    """The value that is written so, or as a number (``1.0`` for 1), or in other letters (``TRUE``)."""
    if text is None:
        return None
    return written.get(
        text, written.get(text.lower(), written.get(number(spelling.plain_number(text)), other))
    )
