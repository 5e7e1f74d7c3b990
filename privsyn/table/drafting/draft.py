"""Draft a schema from the rows, or from names and dtypes alone, for a person to review."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.marginals.types import Floats
from privsyn.table.discovery.open_schema import by_names
from privsyn.table.drafting.number_bounds import FEW_NUMBERS, FEW_ROWS, are_codes, bounds_of
from privsyn.table.drafting.order import Order
from privsyn.table.encoding.dtypes import TEXT, Dtype, family, number_type
from privsyn.table.encoding.heaps import NUMBERS, TIMES, Lattice
from privsyn.table.encoding.parsing import moments
from privsyn.table.encoding.steps import step_text
from privsyn.table.io.csv_header import check_header, read_header
from privsyn.table.io.csv_table import marks_in
from privsyn.table.io.csv_text import PLAIN
from privsyn.table.io.persons import persons_of
from privsyn.table.io.read_in_memory import ending_of, read_columns, read_in_memory
from privsyn.table.schema.columns import Categorical, Coded, Column, Identifier, Numerical, Text
from privsyn.table.schema.csv_format import CsvFormat
from privsyn.table.schema.header import can_name, names_rows
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.time_columns import Datetime, Duration, Time

FEW_TEXTS = 200
"""Most distinct values of a column of text that is drafted as a list, unless most of them occur once."""

HUGE = 1e300  # range of numbers: larger ones may overflow when their bounds are rounded
MOST_DECIMALS = 6

COARSE = 5
"""A step is drafted if it is at least this many times that of the decimals."""

DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d")
"""Formats of dates that are drafted besides ISO 8601, each also with a time of day."""

STEPS = tuple(sorted((*NUMBERS, Lattice(0.25)), key=lambda lattice: -lattice.step))
"""Grids that a draft may propose, the coarsest first."""


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
    if not read:
        return replace(by_names(without(unit, _empty(table, csv))), csv=csv)
    return draft_with_rows(table, unit, csv)[0]


def draft_with_rows(table: object, unit: str | None, csv: CsvFormat) -> tuple[Schema, pd.DataFrame]:
    """Return the draft from the rows, and the rows."""
    form = None if csv == PLAIN else Schema({}, csv=csv)
    frame = without(unit, read_in_memory(table, form, unit=unit).frame)
    columns = {cast(str, name): _draft_column(cast(str, name), cells) for name, cells in frame.items()}
    order = Order(frame)
    for name, column in columns.items():
        if isinstance(column, Numerical) and frame[name].nunique() <= FEW_NUMBERS and order.is_code(name):
            columns[name] = _listed(frame[name].dropna(), column.nullable) or column
    missing = marks_in(Path(cast(str, table)), csv) if is_csv(table) else ()
    return Schema(columns, missing=missing, csv=csv), frame


def without(unit: str | None, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table without the column of identifiers; refuse one that `fit` would refuse."""
    if unit is None:
        return frame
    persons_of(frame, unit)
    return frame.drop(columns=unit)


def is_csv(table: object) -> bool:
    """Return whether a table is a CSV file."""
    return isinstance(table, str | PathLike) and ending_of(table) != ".parquet"


def _empty(table: object, csv: CsvFormat) -> pd.DataFrame:
    """Return the names and dtypes of a table without reading a row. Columns of a CSV are text."""
    if is_csv(table):
        path = Path(cast(str, table))
        check_header(path, names := read_header(path, csv))
        return pd.DataFrame({name: [] for name in names}, dtype=TEXT)
    return read_columns(table)


def _draft_column(name: str, cells: pd.Series) -> Column:
    if names_rows(name) and can_name(cells.dtype):
        return Identifier()
    if family(cells.dtype) == "binary":
        return Text()
    present = cells.dropna()
    nullable = len(present) < len(cells)
    for propose in (_number, _moment, _clock, _span, _listed):
        column: Coded | None = propose(present, nullable)
        if column is not None and _works(column, cells.dtype):
            return column
    return Categorical(nullable=nullable)


def _works(column: Coded, dtype: Dtype) -> bool:
    try:
        column.encoder(dtype)
    except InputError:
        return False
    return True


def _number(present: pd.Series, nullable: bool) -> Coded | None:
    """Return a column for numbers, with bounds; None for two numbers, or for codes."""
    kind = family(present.dtype)
    if kind == "object":
        present = present if present.map(lambda cell: type(cell) in (int, float)).all() else present[:0]
    elif kind not in ("integer", "real", "decimal"):
        return None
    numbers = np.asarray(present.astype(np.float64), np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return None
    with np.errstate(over="ignore"):
        decimals = next(
            (d for d in range(MOST_DECIMALS + 1) if (np.round(numbers, d) == numbers).all()), None
        )
    low, high = float(numbers.min()), float(numbers.max())
    if not high - low < HUGE:
        return None  # `Numerical` needs a finite range, also once bounds are rounded outwards
    step = None
    if decimals is not None and kind != "decimal":
        step = _step(numbers, STEPS, COARSE / 10**decimals)
    if kind != "decimal" and are_codes(numbers, step or (0.0 if decimals is None else 10.0**-decimals)):
        return None
    low, high = bounds_of(numbers, whole=decimals == 0 and kind != "decimal")
    if step is not None:  # to the grid: multiples of the step that hold all numbers
        first, last = math.ceil(round(low / step, 6)), math.floor(round(high / step, 6))
        low, high = round(first * step, decimals), round(last * step, decimals)
    if kind == "integer":
        limits = np.iinfo(number_type(present.dtype))
        low, high = max(low, limits.min), min(high, limits.max)
    try:
        if decimals == 0 and kind != "decimal":
            step = None if step is None else int(step)
            return Numerical(int(low), int(high), integer=True, step=step, nullable=nullable)
        if kind == "decimal":
            return Numerical(low, high, decimals=decimals, nullable=nullable)
        decimals = decimals if step is None else None
        return Numerical(low, high, integer=False, decimals=decimals, step=step, nullable=nullable)
    except InputError:
        return None  # too many digits to be a quantity


def _step(numbers: Floats, lattices: Sequence[Lattice], least: float) -> float | None:
    """Return the coarsest step of which all numbers are multiples; None if it is below `least`.

    >>> _step(np.array([20_000.0, 50_000.0]), NUMBERS, 5), _step(np.array([1.0, 2.0]), NUMBERS, 5)
    (10000.0, None)
    """
    found = (
        lattice.step
        for lattice in lattices
        if not lattice.offset and lattice.holds(numbers, np.dtype(np.float64)).all()
    )
    step = next(found, 0.0)
    return step if step >= least and numbers.any() else None


def _moment(present: pd.Series, nullable: bool) -> Coded | None:
    """Return a column for dates or times, with bounds at the ends of years."""
    kind = family(present.dtype)
    if present.empty or kind not in ("datetime", "text", "object"):
        return None
    formats = date_formats(present)
    if len(formats) != 1:
        return None
    pattern = formats[0]
    read = moments(present.drop_duplicates().tolist(), pattern)
    first, last = read.min().item().year, read.max().item().year
    if (read == read.astype("datetime64[D]")).all():
        return Datetime(datetime(first, 1, 1), datetime(last, 12, 31), format=pattern, nullable=nullable)
    step = _step(read.astype("datetime64[s]").astype(np.float64), TIMES, 2)
    high = datetime(last, 12, 31, 23, 59, 59)
    text = None if step is None else step_text(int(step))
    return Datetime(datetime(first, 1, 1), high, step=text, format=pattern, nullable=nullable)


def date_formats(present: pd.Series) -> list[str | None]:
    """Return the formats that read all cells as dates; None stands for ISO 8601, which comes alone.

    >>> date_formats(pd.Series(["31.01.2020"])), date_formats(pd.Series(["01/02/2020"]))
    (['%d.%m.%Y'], ['%d/%m/%Y', '%m/%d/%Y'])
    """
    times = ("", " %H:%M", " %H:%M:%S") if family(present.dtype) == "text" else ()
    try:
        cells = present.drop_duplicates().tolist()
    except TypeError:
        return []  # cells that are lists
    found: list[str | None] = []
    for pattern in (None, *(day + clock for day in DATES for clock in times)):
        # Most texts are no dates, and one shows it.
        if not any(np.isnat(moments(some, pattern)).any() for some in (cells[:1], cells)):
            found.append(pattern)
            if pattern is None:
                break
    return found


def _clock(present: pd.Series, nullable: bool) -> Coded | None:
    """Return a column for a dtype of times of day."""
    return Time(nullable=nullable) if family(present.dtype) == "time" else None


def _span(present: pd.Series, nullable: bool) -> Coded | None:
    """Return a column for lengths of time, with bounds rounded outwards to days, or to hours below a day."""
    if family(present.dtype) != "duration" or present.empty:
        return None
    lengths = present.astype("timedelta64[s]")
    low, high = lengths.min().to_pytimedelta(), lengths.max().to_pytimedelta()
    step = timedelta(days=1) if max(high, -low) > timedelta(days=1) else timedelta(hours=1)
    try:
        return Duration(low // step * step, -(-high // step) * step, nullable=nullable)
    except InputError:
        return None  # longer than `Duration` allows


def _listed(present: pd.Series, nullable: bool) -> Coded | None:
    """Return a column for few distinct values, sorted or in the order of its categories; none is rare."""
    kind = family(present.dtype)
    if kind == "boolean":
        return Categorical([False, True], nullable=nullable)
    try:
        rows_of = dict(present.value_counts(sort=False).items())
    except TypeError:
        return None  # cells that are lists
    values = present.cat.categories.tolist() if kind == "category" else present.drop_duplicates().tolist()
    values = [value for value in values if not isinstance(value, float) or math.isfinite(value)]
    if not values or not {type(value) for value in values} <= {str, bool, int, float}:
        return None
    if len(values) > FEW_TEXTS or (len(values) > FEW_NUMBERS and 10 * len(values) > len(present)):
        return None
    rare = {value for value in values if rows_of[value] < FEW_ROWS}
    # Categories without rows are listed if no other is rare; beside rare ones they would show which are.
    if any(rows_of[value] for value in rare) and set(values) != {0, 1}:  # these two reveal nothing
        values, nullable = [value for value in values if value not in rare], True
        if len(values) < 2:
            return None
    if kind == "real" and all(value == round(value) and abs(value) < 2**53 for value in values):
        values = [int(value) for value in values]
    if kind != "category":
        values.sort(key=lambda value: (type(value).__name__, value))
    return Categorical(values, nullable=nullable)
