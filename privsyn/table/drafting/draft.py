"""Draft a schema for a person to review, or count what does not fit one. Not private."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from os import PathLike
from typing import TypeGuard

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.errors import InputError, plural
from privsyn.files import closing_files
from privsyn.marginals.domain import Ints
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.broken_constraints import (
    BROKEN,
    NO_CELL_FITS,
    Misfit,
    numbers_of,
    rows_that_break,
)
from privsyn.table.discovery.lattices import LatticeQuestion, grid_of
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.encoding.dtypes import TEXT, Family, family
from privsyn.table.encoding.encoders import missing_cells
from privsyn.table.enforcement.total import Total
from privsyn.table.inferred.columns import UNIQUE, infer_columns
from privsyn.table.inferred.time_formats import are_midnights
from privsyn.table.io.csv_output import formatted
from privsyn.table.io.csv_table import (
    PLAIN,
    check_header,
    follows_delimiters,
    marks_in,
    read_header,
    read_text,
)
from privsyn.table.io.formats import CSV, Location, is_typed
from privsyn.table.io.guessed_columns import ANY_TEXT
from privsyn.table.io.identifiers import persons_of
from privsyn.table.io.missing_marks import ALL_MARKS, ANSWERS, MARKS, without_marks
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.read_in_memory import LoadedTable, read_columns, read_in_memory
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.columns import Categorical, Coded, Column, Numerical, Ordinal, column_of
from privsyn.table.schema.constraint import kind_of
from privsyn.table.schema.implied import by_names
from privsyn.table.schema.schema import Schema

_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")
"""A number as all programs write it: 4.7 and 4.70 differ in nothing that is said."""

_DIGITS = re.compile(r"\d+")

FEWEST = 5
"""Cells of a form from which it is shown, as many as of a bound or a value in a draft."""

BY_DEFAULT: dict[Family | None, str] = {
    "datetime": r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?",
    "boolean": "True|False",
}
"""How cells of a CSV are written if no schema says otherwise."""


def draft_schema(
    table: object, *, unit: str | None = None, read: bool = True, csv: CsvFormat = PLAIN
) -> Schema:
    """Return a schema that fits a table. It reads the rows, so it is not private before a person reviews it.

    A column of few distinct texts gets a list of these. Numbers and dates get bounds: a list would lose their
    order. Bounds are rounded outwards, except for whole numbers in a short range. Values of fewer than five
    rows are neither listed nor exact bounds. A column named like an identifier is drafted as one and not
    read.

    Parameters
    ----------
    table : data frame or path, as for `read_in_memory`
    unit : str, optional
        The column of identifiers, which is left out of the schema.
    read : bool
        If false, no row is read: kinds follow from the dtypes. For a CSV only the names are known.
    csv : CsvFormat
        How a CSV file is written. The draft says so too.

    Examples
    --------
    >>> ages = [*range(17, 93)] * 5
    >>> people = pd.DataFrame({"id": range(380), "age": ages, "sex": ["F", "M"] * 190})
    >>> draft = draft_schema(people)
    >>> age = draft.columns["age"]
    >>> age.low, age.high, age.integer, age.nullable
    (17, 92, True, False)
    >>> draft.columns["sex"].values, draft.columns["id"]
    (('F', 'M'), Identifier(format=None, pattern=None))
    >>> draft_schema(people, read=False).columns["age"].low is None
    True
    """
    if read:
        return draft_with_rows(table, unit, csv)[0]
    declared = None
    if is_text(table):  # the columns of a CSV are text
        location = Location.of(table)
        names = read_header(location, csv)
        check_header(location, names, dialect=csv)
        head = without(unit, pd.DataFrame({name: [] for name in names}, dtype=TEXT))
    else:
        head = without(unit, read_columns(table))
        with closing_files():
            listed = read_in_batches(table).form.listed() if isinstance(table, str | PathLike) else {}
        if listed:
            dtypes = {str(name): dtype for name, dtype in head.dtypes.items()}
            declared = Schema({name: listed.get(name, column_of(dtype)) for name, dtype in dtypes.items()})
    return replace(by_names(head, declared), csv=csv)


def draft_with_rows(
    table: object, unit: str | None, csv: CsvFormat
) -> tuple[Schema, pd.DataFrame, dict[str, tuple[str, ...]]]:
    """Return the draft, the rows with texts of numbers and dates read, and `spelling_remarks`."""
    loaded, csv = loaded_rows(table, unit, csv)
    return draft_of_rows(table, loaded, without(unit, loaded.frame), csv)


def loaded_rows(table: object, unit: str | None, csv: CsvFormat) -> tuple[LoadedTable, CsvFormat]:
    """Return all rows of a table, and how a CSV is written."""
    csv = with_blanks(table, csv)
    form = None if csv == PLAIN else Schema({}, csv=csv)
    return read_in_memory(table, form, unit=unit), csv


def draft_of_rows(
    table: object,
    loaded: LoadedTable,
    frame: pd.DataFrame,
    csv: CsvFormat,
    declared: Mapping[str, Column] | None = None,
) -> tuple[Schema, pd.DataFrame, dict[str, tuple[str, ...]]]:
    """Return the draft of a table that was read; see `draft_with_rows`.

    Parameters
    ----------
    table : as for `draft_schema`
    loaded : LoadedTable
    frame : pandas.DataFrame
        Its rows, with the columns to be drafted.
    csv : CsvFormat
    declared : mapping of a column to its kind, optional
        Of one of several tables, whose keys were found: other columns that are named like identifiers are
        ones if nearly all cells differ.
    """
    columns, frame, unread = infer_columns(
        as_written(table, frame, csv),
        in_file=is_text(table),
        labelled=loaded.form.listed(),
        declared=declared,
    )
    written = {} if loaded.schema is None else loaded.schema.coded
    columns = {name: _with_zeros(column, written.get(name)) for name, column in columns.items()}
    texts, missing = None, tuple[str, ...]()
    if is_text(table) and columns:
        location = Location.of(table)
        texts = read_text(location, csv) if location.format is CSV else None
        marks = marks_in(location, csv)
        missing = tuple(mark for mark in MARKS if any(mark in used for used in marks.values()))
        columns = {
            name: _with_answers(column, marks[name]) if written.get(name, ANY_TEXT) != ANY_TEXT else column
            for name, column in columns.items()
        }
    schema = Schema(columns, missing=missing, csv=csv)
    return schema, frame, spelling_remarks(schema, unread, texts)


def _with_zeros(column: Column, guessed: Column | None) -> Column:
    """Return a column of whole numbers as the file writes them: 1.0, if all have a decimal 0."""
    form = guessed.format if isinstance(guessed, Numerical) else None
    if form is not None and isinstance(column, Numerical):
        return replace(column, format=column.format or form)
    if form is not None and isinstance(column, Categorical):
        return replace(column, values=tuple(map(float, column.listed)) or None)
    return column


def _with_answers(column: Column, marks: Collection[str]) -> Column:
    """Return a column that is not of text with those of `ANSWERS` that stand for its missing cells."""
    answers = tuple(answer for answer in ANSWERS if answer in marks)
    if not answers or not isinstance(column, Coded):
        return column
    return replace(column, missing=(*column.missing, *answers))


def with_blanks(table: object, csv: CsvFormat) -> CsvFormat:
    """Return the format of a CSV, with the blanks that follow its delimiters."""
    if not is_text(table) or Location.of(table).format is not CSV or csv.blank:
        return csv
    # Before its rows are read:
    check_header(Location.of(table), read_header(Location.of(table), csv), dialect=csv)
    if follows_delimiters(Location.of(table), csv):
        return replace(csv, blank=True)
    text = read_text(Location.of(table), csv)
    columns = text.column_names[1:]
    rows = text.num_rows * len(columns)
    begun = sum(pc.sum(pc.starts_with(text[name], " ")).as_py() or 0 for name in columns)
    return replace(csv, blank=True) if rows and begun >= UNIQUE * rows else csv


def as_written(table: object, frame: pd.DataFrame, csv: CsvFormat) -> pd.DataFrame:
    """Return the rows with the texts of times and truth values, if no default would write them so."""
    frame = frame.copy(deep=False)
    typed = [str(name) for name, cells in frame.items() if family(cells.dtype) in BY_DEFAULT]
    if not typed or not is_text(table) or Location.of(table).format is not CSV:
        return frame
    text = read_text(Location.of(table), csv)
    for name in typed:
        cells = without_marks(text[name], ALL_MARKS).to_pandas()
        default = BY_DEFAULT[family(frame[name].dtype)]
        unread = cells.notna().sum() > frame[name].notna().sum()
        if unread or not cells.dropna().str.fullmatch(default).all() or are_midnights(cells.dropna()):
            frame[name] = cells.astype(TEXT).set_axis(frame.index)
    return frame


def without(unit: str | None, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table without the column of identifiers; refuse one that `fit` would refuse."""
    if unit is None:
        return frame
    persons_of(frame, unit)
    return frame.drop(columns=unit)


def is_text(table: object) -> TypeGuard[str | PathLike[str]]:
    """Return whether a table is a file whose cells are read as text."""
    return not is_typed(table)


def check_schema(
    table: object, schema: Schema, *, unit: str | None = None, no_data: tuple[str, ...] = ()
) -> list[str]:
    """Return a line for each column with cells that do not fit, and for each constraint that rows break.

    NOT PRIVATE: each line counts private rows, and is for the owner only. Every readable cell fits a column
    whose values or bounds are left to be found. A line about a constraint that rows break, or a column of
    which no cell fits, is a `Misfit`. Columns of `no_data` are keys of one of several tables.

    Examples
    --------
    >>> from privsyn import Increasing, Numerical
    >>> columns = {"low": Numerical(0, 120), "high": Numerical(0, 120)}
    >>> schema = Schema(columns, constraints=[Increasing(["low", "high"])])
    >>> for line in check_schema(pd.DataFrame({"low": [17, 44, 300], "high": [18, 40, 101]}), schema):
    ...     print(line)
    column 'low': 1 of 3 cells do not fit: they are clipped to the bounds, or missing if unreadable
    constraint 1 (increasing: 'low', 'high'): 2 of 3 rows break it, and no synthetic row will
    """
    if unit is not None and unit in schema.columns:
        raise InputError(f"{unit!r} identifies persons: remove it from the schema, it is not synthesised")
    table_read = read_in_memory(table, schema, unit=no_data or unit).frame
    frame = without(unit, table_read).drop(columns=[*no_data])
    lines = [f"column {name!r}: free text, left out of the synthetic table" for name in schema.dropped]
    open_schema = OpenSchema.of(schema, frame)
    lines += _of_cells(table, open_schema, frame)
    lines += _of_steps(open_schema, frame)
    lines += _of_constraints(open_schema, frame)
    if unit is not None and (nobodys := rows_of_nobody(unit, persons_of(table_read, unit))):
        lines.append(nobodys)
    return lines


def rows_of_nobody(unit: str, persons: Ints) -> str:
    """Return how many rows have no identifier, given the person of each row, -1 without one; "" if none.

    >>> rows_of_nobody("who", np.array([0, 1, -1, 1]))
    "column 'who': 1 of 4 rows have no identifier and are dropped"
    """
    nobodys = int((persons < 0).sum())
    dropped = f"column {unit!r}: {nobodys} of {len(persons)} rows have no identifier and are dropped"
    return dropped if nobodys else ""


def _of_cells(table: object, open_schema: OpenSchema, frame: pd.DataFrame) -> list[str]:
    """Return how many cells do not fit each column; if it has no public values, how many are unreadable.

    Cells of text in a CSV are unreadable if they became missing and are no marks of a missing cell.
    """
    schema = open_schema.schema
    public = {name for name, column in schema.coded.items() if column.is_public}
    counts = Codec.for_table(open_schema.fill({}, {}), frame).misfits(frame) if public else {}
    text = read_text(Location.of(table), schema.csv) if is_text(table) else None
    lines = []
    for name, column in schema.coded.items():
        blank = int(missing_cells(frame[name]).sum()) if column.nullable else 0
        unreadable = 0
        if text is not None and column.nullable:
            marks = pa.array(schema.markers(name), pa.string())
            marked = pc.sum(pc.is_in(text[name], value_set=marks)).as_py() or 0
            unreadable = int(frame[name].isna().sum()) - marked
        if count := (counts[name] if name in public else 0) + unreadable:
            fate = column.fate if name in public else "become missing"
            line = f"column {name!r}: {count:,} of {len(frame):,} cells do not fit: they {fate}"
            none_fits = count == len(frame) - (blank - unreadable)
            lines.append(Misfit(line, NO_CELL_FITS) if none_fits else line)
    if lines or public:
        return lines or ["every cell fits"]
    return ["nothing to check in the cells: values and bounds are all left to be found under privacy"]


def _of_steps(open_schema: OpenSchema, frame: pd.DataFrame) -> list[str]:
    """Return a line for each column with a step of which a run finds a coarser one.

    A run finds it in noisy counts; see `LatticeQuestion`. Here the counts are exact.
    """
    columns = {name: column for name, column in open_schema.schema.coded.items() if column.is_public}
    question = LatticeQuestion.of(Schema(columns), open_schema.dtypes, {})
    lines = []
    for name, counts in question.count(frame).items():
        column, (_, listed) = columns[name], question.columns[name]
        grid = grid_of(counts, 0.0, listed)
        if isinstance(column, Numerical) and column.step is not None and grid is not None:
            off = int(counts[[*(not lattice.within(grid) for lattice in listed), True]].sum())
            lines.append(
                f"column {name!r}: its step is {column.step:g}, and {off:,} of {len(frame):,} numbers are no"
                f" multiples of {grid.step:g}: a run that finds this step rounds them to it"
            )
    return lines


def _of_constraints(open_schema: OpenSchema, frame: pd.DataFrame) -> list[str]:
    """Return how many rows break each constraint, and a total of numbers by which power of ten at most.

    The largest deviation itself would be that of one row.
    """
    if not open_schema.schema.constraints:
        return []
    schema, numbers = numbers_of(open_schema, frame)
    lines: list[str] = []
    for number, (constraint, broken) in enumerate(rows_that_break(schema, numbers), 1):
        if not broken:
            continue
        by_how_much = ""
        numeric = all(isinstance(schema.columns[name], Numerical) for name in constraint.columns)
        if isinstance(constraint, Total) and numeric:
            parts = [factor * numbers[name] for name, factor in constraint.factors.items()]
            off = np.abs(numbers[constraint.column] - np.sum(parts, axis=0) - constraint.constant)
            largest = np.max(off, initial=0.0, where=np.isfinite(off))
            by_how_much = f", by {10.0 ** np.ceil(np.log10(largest)):g} at most" if largest else ""
        names = ", ".join(map(repr, constraint.columns))
        broken_by = f"{broken:,} of {len(frame):,} rows break it{by_how_much}, and no synthetic row will"
        lines.append(Misfit(f"constraint {number} ({kind_of(constraint)}: {names}): {broken_by}", BROKEN))
    return lines or ["every row keeps every constraint"]


def spelling_remarks(
    schema: Schema, unread: Mapping[str, int], texts: pa.Table | None
) -> dict[str, tuple[str, ...]]:
    """Return for each column of text which cells come out missing, and which are written in another way.

    A draft is read by the owner, but a cell of few rows is none of those that it quotes. So digits are shown
    as 9, a run of them as one, and a form only if at least `FEWEST` cells have it.

    Parameters
    ----------
    schema : Schema
        The draft.
    unread : mapping of a column to the number of its cells that are not read
        Of a table whose cells are no texts.
    texts : pyarrow.Table, optional
        The cells of a CSV file.

    Examples
    --------
    >>> from privsyn.table.schema.columns import Numerical
    >>> schema = Schema({"change": Numerical(-5, 5, integer=True)})
    >>> many, few = (pa.table({"change": cells}) for cells in (["+3", "-2", "+1", "+4", "+5", "+2"], ["+3"]))
    >>> print(*spelling_remarks(schema, {}, many)["change"])
    READ: REWRITTEN, 5 cells such as '+9' will come out as '9'.
    >>> print(*spelling_remarks(schema, {}, few)["change"])
    READ: REWRITTEN, 1 cell will come out in another way.
    """
    if texts is None:
        return {name: (_others(cells),) for name, cells in unread.items() if cells}
    return {name: tuple(_remarks(name, schema, texts[name])) for name in schema.coded}


def _remarks(name: str, schema: Schema, texts: pa.ChunkedArray) -> Iterator[str]:
    """Yield how many cells come out missing, and how many as another text, with the usual form of these."""
    counts = pc.value_counts(without_marks(texts, schema.markers(name)).drop_null())
    values, rows = counts.field("values"), np.array(counts.field("counts"))
    read = schema.coded[name].read_cells(pa.chunked_array([values]), schema.csv)
    if isinstance(schema.coded[name], Ordinal) and (lost := int(rows[read.isna()].sum())):
        yield _others(lost)
    written = formatted(pd.DataFrame({name: read}), schema)[name].astype(str)
    forms: dict[tuple[str, str], int] = {}
    cells = zip(values.to_pylist(), written, read.notna(), rows.tolist(), strict=True)
    for text, cell, is_read, count in cells:
        if is_read and text != cell and not _is_same_number(text, cell):
            form = _DIGITS.sub("9", text), _DIGITS.sub("9", cell)
            forms[form] = forms.get(form, 0) + count
    if forms:
        text, cell = max(forms, key=lambda form: forms[form])
        ending = f"as {cell!r}" if text != cell else "with other digits"
        number, shown = plural(sum(forms.values()), "cell"), forms[text, cell] >= FEWEST
        example = f" such as {text!r} will come out {ending}" if shown else " will come out in another way"
        yield f"READ: REWRITTEN, {number}{example}."


def _others(cells: int) -> str:
    """Return the remark on cells that are not read."""
    return f"READ: OTHERS, {plural(cells, 'cell')} written in another way. Such cells become missing."


def _is_same_number(text: str, cell: str) -> bool:
    """Return whether two texts are one number, both written plainly."""
    return bool(_PLAIN.fullmatch(text) and _PLAIN.fullmatch(cell) and float(text) == float(cell))
