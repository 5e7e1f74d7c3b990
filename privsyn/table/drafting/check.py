"""Count the cells that do not fit a schema and the rows that break its constraints. Not private."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.drafting.draft import is_csv, without
from privsyn.table.encoding.encoders import missing_cells
from privsyn.table.enforcement.repair import rows_that_keep
from privsyn.table.io.csv_text import read_text
from privsyn.table.io.persons import persons_of
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.schema.columns import Ordinal
from privsyn.table.schema.constraint import kind_of
from privsyn.table.schema.schema import Schema


class Broken(str):
    """A line about a constraint that rows break: the schema says what is not true."""

    __slots__ = ()


class Unfit(str):
    """A line about a column of which no cell fits: its kind, values or bounds are wrong."""

    __slots__ = ()


def check_schema(table: object, schema: Schema, *, unit: str | None = None) -> list[str]:
    """Return a line for each column with cells that do not fit, and for each constraint that rows break.

    NOT PRIVATE: each line counts private rows, and is for the owner only. Every readable cell fits a column
    whose values or bounds are left to be found. A line about a constraint that rows break is `Broken`, one
    about a column of which no cell fits is `Unfit`.

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
    whole = read_in_memory(table, schema, unit=unit).frame
    frame = without(unit, whole)
    lines = [f"column {name!r}: free text, left out of the synthetic table" for name in schema.dropped]
    open_schema = OpenSchema.of(schema, frame)
    lines += _of_cells(table, open_schema, frame)
    lines += _of_constraints(open_schema, frame)
    if unit is not None and (nobodys := int((persons_of(whole, unit) < 0).sum())):
        lines.append(f"column {unit!r}: {nobodys} of {len(whole)} rows have no identifier and are dropped")
    return lines


def _of_cells(table: object, open_schema: OpenSchema, frame: pd.DataFrame) -> list[str]:
    """Return how many cells do not fit each column; if it has no public values, how many are unreadable."""
    coded = open_schema.schema.coded
    public = {name for name, column in coded.items() if column.is_public}
    counts = Codec.for_table(open_schema.fill({}, {}), frame).misfits(frame) if public else {}
    unreadable = _unreadable(table, open_schema.schema, frame)
    lines = []
    for name, column in coded.items():
        if count := (counts[name] if name in public else 0) + unreadable.get(name, 0):
            blank = int(missing_cells(frame[name]).sum()) - unreadable.get(name, 0) if column.nullable else 0
            kind = Unfit if count == len(frame) - blank else str
            fate = column.fate if name in public else "become missing"
            lines.append(kind(f"column {name!r}: {count} of {len(frame)} cells do not fit: they {fate}"))
    if lines or public:
        return lines or ["every cell fits"]
    return ["nothing to check in the cells: values and bounds are all left to be found under privacy"]


def _unreadable(table: object, schema: Schema, frame: pd.DataFrame) -> dict[str, int]:
    """Count, for each column of a CSV, the cells of text that could not be read and became missing."""
    if not is_csv(table):
        return {}
    text = read_text(Path(cast(str, table)), schema.csv)
    counts = {}
    for name, column in schema.coded.items():
        marks = pa.array(schema.markers(name), pa.string())
        blank = pc.sum(pc.is_in(text[name], value_set=marks)).as_py() or 0
        counts[name] = int(frame[name].isna().sum()) - blank if column.nullable else 0
    return counts


def _of_constraints(open_schema: OpenSchema, frame: pd.DataFrame) -> list[str]:
    """Return how many rows break each constraint."""
    schema = open_schema.fill({}, _widest(open_schema))
    if not schema.constraints:
        return []
    numbers = Codec.for_table(schema, frame).read(frame)
    for name, column in schema.coded.items():
        if column.fixed_decimals is not None:  # single precision is off
            with np.errstate(over="ignore"):  # a warning would be about a cell
                numbers[name] = np.round(numbers[name], column.fixed_decimals)
    for name in open_schema.values:  # a value that is left to be found is no missing cell
        unlisted = np.isnan(numbers[name]) & ~missing_cells(frame[name])
        numbers[name] = np.where(unlisted, -1.0, numbers[name])
    return [
        Broken(
            f"constraint {place} ({kind_of(constraint)}: {', '.join(map(repr, constraint.columns))}): "
            f"{broken} of {len(frame)} rows break it, and no synthetic row will"
        )
        for place, constraint in enumerate(schema.constraints, 1)
        if (broken := int((~rows_that_keep(schema.coded, constraint, numbers)).sum()))
    ] or ["every row keeps every constraint"]


def _widest(open_schema: OpenSchema) -> dict[str, tuple[float, float]]:
    """Return bounds for columns that have none, in which every cell can be read."""
    columns, dtypes = cast(Mapping[str, Ordinal], open_schema.schema.columns), open_schema.dtypes
    return {name: columns[name].widest(dtypes[name]).bounds for name in open_schema.bounds}
