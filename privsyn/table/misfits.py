"""What a schema would do to the rows, for the owner's eyes only: it reads and counts private cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.table.codec import Codec
from privsyn.table.csv_text import read_text
from privsyn.table.draft import is_csv, without
from privsyn.table.kinds import Categorical, Coded, Text
from privsyn.table.persons import persons_of
from privsyn.table.schema import Schema
from privsyn.table.sources import read_table
from privsyn.table.unknown import Unknown


def check_schema(table: object, schema: Schema, *, unit: str | None = None) -> list[str]:
    """What the schema would do to the rows, in lines for the owner's eyes only: they count private cells.

    Examples
    --------
    >>> from privsyn import Numerical
    >>> check_schema(pd.DataFrame({"age": [17, 44, 300]}), Schema({"age": Numerical(0, 120)}))
    ["column 'age': 1 of 3 cells do not fit and become clipped, or missing if unreadable"]
    """
    whole = read_table(table, schema, unit=unit).frame
    frame = without(unit, whole)
    left_out = [
        f"column {name!r}: free text, left out of the synthetic table"
        for name, column in schema.columns.items()
        if isinstance(column, Text)
    ]
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
    return [*left_out, *(lines or ["every cell fits"])]


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
    if not is_csv(table):
        return {}
    text = read_text(Path(cast(str, table)), schema.csv)
    counts = {}
    for name in schema.columns:
        marks = pa.array(schema.markers(name), pa.string())
        blank = pc.sum(pc.is_in(text[name], value_set=marks)).as_py() or 0
        counts[name] = int(frame[name].isna().sum()) - blank if schema.coded[name].nullable else 0
    return counts
