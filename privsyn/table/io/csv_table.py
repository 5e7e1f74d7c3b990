"""A CSV file as a table: every cell is read as text and converted as the schema says.

A CSV has no dtypes. To guess them from the rows would let one odd cell change a whole column. So each cell
is converted alone, and one that cannot be read is missing. Only without a schema are types guessed from the
file. They then become public inputs, which the ledger lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.table.io.csv_text import LONGEST_ROW, PLAIN, check_header, check_text, read_text, walk_text
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.columns import Categorical, Column, Datetime, Numerical
from privsyn.table.schema.schema import Schema

MARKS = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None", "none")
"""Texts that stand for a missing cell if no schema says which do."""

GUESSES: Mapping[Column, str] = {
    Numerical(integer=True): "whole numbers",
    Numerical(integer=False): "real numbers",
    Categorical([False, True]): "true and false",
    Datetime(unit="D"): "dates",
    Datetime(unit="s"): "times",
    Categorical(): "text",
}
"""What is guessed from the cells without a schema, and its name; text if nothing else fits."""

_FLAG = r"^(?i:true|false)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?)?$"


def well_formed(dialect: CsvFormat) -> str:
    """Return what the ledger says about every CSV file."""
    return (
        f"that the file is well-formed CSV in {dialect.encoding.upper()}: quotes closed, every row as long as"
        f" the header, none of more than {LONGEST_ROW >> 20} MiB"
    )


@dataclass(frozen=True)
class CsvTable:
    """How the cells of a CSV file are read.

    Parameters
    ----------
    path : path
    columns : mapping of each name in the header to its Column
    missing : mapping of each name to the texts that stand for a missing cell
    public_inputs : tuple of str
        A sentence for each fact about the rows that is taken as public.
    unit : str, optional
        The column of identifiers, which stays text.
    dialect : CsvFormat
    """

    path: Path
    columns: Mapping[str, Column]
    missing: Mapping[str, Sequence[str]]
    public_inputs: tuple[str, ...]
    unit: str | None
    dialect: CsvFormat

    @classmethod
    def open(cls, path: Path, schema: Schema | None, unit: str | None = None) -> CsvTable:
        """Read the header and, for columns that the schema does not declare, the cells."""
        dialect = PLAIN if schema is None else schema.csv
        names = check_text(path, dialect)
        known: dict[str, Column] = {}
        missing: dict[str, Sequence[str]] = dict.fromkeys(names, MARKS)
        if schema is not None:
            known = {name: column for name, column in schema.columns.items() if name in names}
            missing = dict.fromkeys(names, (*MARKS, *schema.missing))
            missing |= {name: schema.markers(name) for name in known}
        if unit in names:
            known |= {unit: Categorical()}
        check_header(path, names, known)
        guessed = _guess(path, {name: missing[name] for name in names if name not in known}, dialect)
        columns = {name: known[name] if name in known else guessed[name] for name in names}
        return cls(path, columns, missing, (well_formed(dialect), *_facts(guessed)), unit, dialect)

    @property
    def schema(self) -> Schema | None:
        """Return the columns without that of identifiers, or None if there is no other."""
        kinds = {name: column for name, column in self.columns.items() if name != self.unit}
        return Schema(kinds, csv=self.dialect) if kinds else None

    def frame(self, text: pa.Table) -> pd.DataFrame:
        """Return rows of text as a data frame, each cell converted alone."""
        typed = {
            name: column.read_cells(_blank(text[name], self.missing[name]), self.dialect)
            for name, column in self.columns.items()
        }
        return pd.DataFrame(typed, copy=False)


def read_csv(
    path: Path, schema: Schema | None, unit: str | None = None
) -> tuple[pd.DataFrame, tuple[str, ...], Schema | None]:
    """Return the table in a CSV file, its `public_inputs`, and its columns."""
    table = CsvTable.open(path, schema, unit)
    return table.frame(read_text(path, table.dialect)), table.public_inputs, table.schema


def no_rows(names: Iterable[str], schema: Schema | None) -> pd.DataFrame:
    """Return a table without rows, in the dtypes of the schema; other columns are text."""
    known = {} if schema is None else schema.columns
    empty = pa.chunked_array([pa.array([], pa.string())])
    return pd.DataFrame({name: known.get(name, Categorical()).read_cells(empty, PLAIN) for name in names})


def marks_in(path: Path, dialect: CsvFormat = PLAIN) -> tuple[str, ...]:
    """Return which of `MARKS` the file uses, without the empty cell. It reads the rows."""
    text = read_text(path, dialect)
    cells = {
        mark for name in text.column_names for mark in pc.unique(text[name]).to_pylist() if mark in MARKS[1:]
    }
    return tuple(mark for mark in MARKS if mark in cells)


def _blank(cells: pa.ChunkedArray, marks: Sequence[str]) -> pa.ChunkedArray:
    """Return the cells with null in place of the texts that stand for missing."""
    return pc.if_else(
        pc.is_in(cells, value_set=pa.array(marks, pa.string())), pa.scalar(None, pa.string()), cells
    )


def _guess(path: Path, missing: Mapping[str, Sequence[str]], dialect: CsvFormat) -> dict[str, Column]:
    """Return for each column the first kind that all its cells match."""
    kinds = dict(zip((*_numbers(dialect), _FLAG, _DATE, _TIME), GUESSES, strict=False))
    matching, present = {name: list(kinds) for name in missing}, set()
    for text in walk_text(path, dialect) if missing else ():
        for name, patterns in matching.items():
            cells = _blank(text[name], missing[name])
            if cells.null_count < len(cells):
                present.add(name)
            matching[name] = [
                p for p in patterns if pc.all(pc.match_substring_regex(cells, p)).as_py() is not False
            ]
    return {
        name: kinds[patterns[0]] if patterns and name in present else Categorical()
        for name, patterns in matching.items()
    }


def _numbers(dialect: CsvFormat) -> tuple[str, str]:
    """Return the patterns of whole and of real numbers. Groups of digits are of three, unlike those of dates.

    >>> _numbers(CsvFormat(point=",", thousands="."))[0]
    '^[-+]?(0|[1-9][0-9]{0,14}|[1-9][0-9]{0,2}([.][0-9]{3}){1,4})$'
    """
    groups = "" if dialect.thousands is None else f"|[1-9][0-9]{{0,2}}([{dialect.thousands}][0-9]{{3}})"
    whole = rf"^[-+]?(0|[1-9][0-9]{{0,14}}{groups and groups + '{1,4}'})$"
    digits = rf"(0|[1-9][0-9]*{groups and groups + '+'})([{dialect.point}][0-9]*)?|[{dialect.point}][0-9]+"
    return whole, rf"^[-+]?({digits})([eE][-+]?[0-9]+)?$"


def _facts(guessed: Mapping[str, Column]) -> Iterator[str]:
    """Yield a sentence for each kind that was guessed, and one for the texts that stand for missing."""
    kinds: dict[str, list[str]] = {}
    for name, column in guessed.items():
        kinds.setdefault(GUESSES[column], []).append(repr(name))
    for kind, names in kinds.items():
        yield f"that these columns are of {kind} (read off the file): {', '.join(names)}"
    if guessed:
        yield f"that these texts stand for a missing cell, as the empty one does: {' '.join(MARKS[1:])}"
