"""A draft schema, made by looking at the rows; what a schema would do to them. Both for the owner alone."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.errors import InputError
from privsyn.table.cells import moments
from privsyn.table.codec import Codec
from privsyn.table.coders import make_coder
from privsyn.table.csv_file import marks_in, read_text
from privsyn.table.dtypes import Dtype, family, number_type
from privsyn.table.persons import persons_of
from privsyn.table.schema import Categorical, Coded, Datetime, Numerical, Schema
from privsyn.table.schema_file import to_yaml
from privsyn.table.sources import ending_of, read_table
from privsyn.table.unknown import Unknown

FEW_NUMBERS = 20
"""A column of at most so many different numbers is listed."""

FEW_TEXTS = 200
"""A column of at most so many different texts is listed, unless most of them come once."""

MOST_DECIMALS = 6

HEADER = """\
# DRAFT, made by looking at the rows of the private table. It is not public until a person has made it so.
# Every value, bound and "nullable: false" below was read off the rows. Review each line: whatever stands here
# is treated as known to everybody. Replace what only the rows could tell by what anybody may know (from a
# codebook, a form, a law), and delete this comment.
"""


def draft_schema(table: object, *, unit: str | None = None) -> Schema:
    """A schema that fits a table. It reads the rows: nothing in it is private until a person has reviewed it.

    Few values are listed; numbers and dates get bounds rounded outwards; text of many values is left without
    a list.

    Parameters
    ----------
    table : data frame or path, as for `read_table`
    unit : str, optional
        The column of identifiers, which has no place in a schema.

    Examples
    --------
    >>> draft = draft_schema(pd.DataFrame({"age": range(17, 93), "sex": ["F", "M"] * 38}))
    >>> age = draft.columns["age"]
    >>> age.low, age.high, age.integer, age.nullable
    (10, 100, True, False)
    >>> draft.columns["sex"].values
    ('F', 'M')
    """
    frame = _without(unit, read_table(table, unit=unit).frame)
    columns = {cast(str, name): _draft_column(cells) for name, cells in frame.items()}
    return Schema(columns, missing=_marks(table))


def draft_text(table: object, *, unit: str | None = None) -> str:
    """The draft as the text of a schema file, which begins by saying what it is."""
    return HEADER + to_yaml(draft_schema(table, unit=unit))


def check_schema(table: object, schema: Schema, *, unit: str | None = None) -> list[str]:
    """What the schema would do to the rows, in lines for the owner's eyes only: they count private cells."""
    whole = read_table(table, schema, unit=unit).frame
    frame = _without(unit, whole)
    schema = Unknown.of(schema, frame).schema
    columns = {name: column for name, column in schema.coded.items() if column.is_public}
    if not columns:
        return ["nothing to check: the schema gives no values or bounds, they are found under privacy"]
    schema = replace(schema, columns=columns)
    frame = frame[[name for name in frame.columns if name in columns]]
    changed = Codec.for_table(schema, frame).misfits(frame)
    for name, count in _unreadable(table, schema, frame).items():
        changed[name] += count
    lines = [
        f"column {name!r}: {count} of {len(frame)} cells do not fit and become {_fate(columns[name])}"
        for name, count in changed.items()
        if count
    ]
    if unit is not None and (nobodys := int((persons_of(whole, unit) < 0).sum())):
        lines.append(f"column {unit!r}: {nobodys} of {len(whole)} rows have no identifier and are dropped")
    return lines or ["every cell fits"]


def _without(unit: str | None, frame: pd.DataFrame) -> pd.DataFrame:
    """The columns that a schema tells of."""
    if unit is None:
        return frame
    persons_of(frame, unit)  # refuses what `fit` will refuse
    return frame.drop(columns=unit)


def _fate(column: Coded) -> str:
    if isinstance(column, Categorical):
        if column.other is not None:
            return repr(column.other)
        return "missing" if column.nullable else "the first value listed"
    return "clipped" + (
        ", or missing if unreadable" if column.nullable else ", or the lower bound if unreadable"
    )


def _unreadable(table: object, schema: Schema, frame: pd.DataFrame) -> dict[str, int]:
    """How many cells of a CSV file hold text that became missing because its column cannot mean it."""
    if not _is_csv(table):
        return {}
    text = read_text(Path(cast(str, table)), schema.csv)
    counts = {}
    for name in schema.columns:
        blank = (
            pc.sum(pc.is_in(text[name], value_set=pa.array(schema.markers(name), pa.string()))).as_py() or 0
        )
        counts[name] = int(frame[name].isna().sum()) - blank if schema.coded[name].nullable else 0
    return counts


def _marks(table: object) -> tuple[str, ...]:
    return marks_in(Path(cast(str, table))) if _is_csv(table) else ()


def _is_csv(table: object) -> bool:
    return isinstance(table, str | PathLike) and ending_of(table) != ".parquet"


def _draft_column(cells: pd.Series) -> Coded:
    present = cells.dropna()
    nullable = len(present) < len(cells)
    for propose in (_number, _time, _listed):
        column: Coded | None = propose(present, nullable)
        if column is not None and _works(column, cells.dtype):
            return column
    return Categorical(nullable=nullable)


def _works(column: Coded, dtype: Dtype) -> bool:
    try:
        make_coder(column, dtype)
    except InputError:
        return False
    return True


def _number(present: pd.Series, nullable: bool) -> Coded | None:
    """A column of many different numbers, with bounds rounded outwards."""
    if family(present.dtype) == "object":
        present = present if present.map(lambda cell: type(cell) in (int, float)).all() else present[:0]
    elif family(present.dtype) not in ("integer", "real"):
        return None
    numbers = present.to_numpy(dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if len(np.unique(numbers)) <= FEW_NUMBERS:
        return None
    decimals = next((d for d in range(MOST_DECIMALS + 1) if (np.round(numbers, d) == numbers).all()), None)
    low, high = _outwards(float(numbers.min()), float(numbers.max()))
    if family(present.dtype) == "integer":
        limits = np.iinfo(number_type(present.dtype))
        low, high = max(low, limits.min), min(high, limits.max)
    try:
        if decimals == 0:
            return Numerical(int(low), int(high), integer=True, nullable=nullable)
        return Numerical(low, high, integer=False, decimals=decimals, nullable=nullable)
    except InputError:
        return None  # too many digits to be a quantity


def _outwards(low: float, high: float) -> tuple[float, float]:
    """Round numbers around two numbers, no wider apart than needed to be round.

    >>> _outwards(17, 90), _outwards(0, 4356), _outwards(47.1559, 47.7776)
    ((10.0, 90.0), (0.0, 4500.0), (47.1, 47.8))
    """
    magnitude = math.floor(math.log10(high - low))
    leading = (high - low) / 10.0**magnitude
    step = 10.0**magnitude / (5 if leading < 2 else 2 if leading < 5 else 1)
    digits = max(0, 1 - magnitude)
    return round(math.floor(low / step) * step, digits), round(math.ceil(high / step) * step, digits)


def _time(present: pd.Series, nullable: bool) -> Coded | None:
    """A column of dates or times, with bounds at the ends of years."""
    kind = family(present.dtype)
    if present.empty or kind not in ("datetime", "text", "object"):
        return None
    try:
        read = moments(present.drop_duplicates().tolist())
    except TypeError:
        return None  # cells that are lists
    if np.isnat(read).any():
        return None
    first, last = read.min().item().year, read.max().item().year
    if (read == read.astype("datetime64[D]")).all():
        return Datetime(datetime(first, 1, 1), datetime(last, 12, 31), nullable=nullable)
    return Datetime(datetime(first, 1, 1), datetime(last, 12, 31, 23, 59, 59), nullable=nullable)


def _listed(present: pd.Series, nullable: bool) -> Coded | None:
    """A column of few values, sorted, or in the order of its categories."""
    kind = family(present.dtype)
    if kind == "boolean":
        return Categorical([False, True], nullable=nullable)
    try:
        values = present.cat.categories.tolist() if kind == "category" else present.drop_duplicates().tolist()
    except TypeError:
        return None  # cells that are lists
    values = [value for value in values if not isinstance(value, float) or math.isfinite(value)]
    if not values or not {type(value) for value in values} <= {str, bool, int, float}:
        return None
    if len(values) > FEW_TEXTS or (len(values) > FEW_NUMBERS and 10 * len(values) > len(present)):
        return None
    if kind == "real" and all(value == round(value) and abs(value) < 2**53 for value in values):
        values = [int(value) for value in values]
    if kind != "category":
        values.sort(key=lambda value: (type(value).__name__, value))
    return Categorical(values, nullable=nullable)
