"""What the package for R needs of Python: tables in plain lists, and errors and warnings as texts.

Lists need no compiled interface between R and NumPy, so any reticulate works with any NumPy.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import privsyn
from privsyn import InputError

DEFECT = "internal error ({}): please report it"
"""The text of an unexpected error may quote a cell, so only its type is shown."""

TYPES = {"logical": pa.bool_(), "integer": pa.int32(), "double": pa.float64(), "text": pa.string()}

TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Units of time in a second."""


def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, list[str], str | None]:
    """Call a function of privsyn. Return its value, the texts of its warnings, and that of its error."""
    value, error = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = function(*arguments, **options)
        except InputError as refusal:
            error = str(refusal)
        except Exception as defect:
            error = DEFECT.format(type(defect).__name__)
    texts = [str(warning.message) for warning in caught if _is_ours(warning.category)]
    return value, texts, error


def _is_ours(category: type[Warning]) -> bool:
    return category.__module__.split(".")[0] == "privsyn"  # the text of another may quote a cell


def table(columns: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    """Return a table. Each column has a kind, its values, and which of them are missing."""
    return pa.table({name: _array(**column) for name, column in columns.items()})


def _array(
    kind: str,
    values: Sequence[Any],
    missing: Sequence[bool],
    levels: Sequence[str] = (),
    ordered: bool = False,
    zone: str = "UTC",
) -> pa.Array:
    mask = np.array(missing, bool)
    match kind:
        case "factor":
            codes = pa.array(values, pa.int32(), mask=mask)
            return pa.DictionaryArray.from_arrays(codes, pa.array(levels, pa.string()), ordered=ordered)
        case "date":
            return pa.array(values, pa.int32(), mask=mask).cast(pa.date32())
        case "time":
            microseconds = [round(1e6 * seconds) for seconds in values]
            return pa.array(microseconds, pa.int64(), mask=mask).cast(pa.timestamp("us", zone))
        case _:
            return pa.array(values, TYPES[kind], mask=mask)


def columns(rows: pa.Table) -> dict[str, dict[str, Any]]:
    """Return each column of a table as lists: its kind, values, which of them are missing, and levels."""
    return {name: _plain(rows[name]) for name in rows.column_names}


def _plain(column: pa.ChunkedArray) -> dict[str, Any]:
    cells = column.combine_chunks()
    kind, empty, levels = "text", "", []
    if pa.types.is_dictionary(cells.type):
        kind, empty, levels, cells = "factor", 0, cells.dictionary.to_pylist(), cells.indices
    elif pa.types.is_boolean(cells.type):
        kind, empty = "logical", False
    elif pa.types.is_date(cells.type):
        kind, empty, cells = "date", 0.0, cells.cast(pa.int32())
    elif pa.types.is_timestamp(cells.type):
        ticks, per_second = cells.cast(pa.int64()).to_pylist(), TICKS[cells.type.unit]
        cells = pa.array([None if tick is None else tick / per_second for tick in ticks], pa.float64())
        kind, empty = "time", 0.0
    elif pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type):
        kind, empty, cells = "number", 0.0, cells.cast(pa.float64(), safe=False)
    else:
        cells = cells.cast(pa.string())
    values = [empty if cell is None else cell for cell in cells.to_pylist()]
    return {"kind": kind, "values": values, "missing": cells.is_null().to_pylist(), "levels": levels}


def schema(columns: Mapping[str, Mapping[str, Any]]) -> privsyn.Schema:
    """Return a schema. Each column has a kind and, if they are public, its values."""
    kinds = {
        "categorical": privsyn.Categorical,
        "numerical": privsyn.Numerical,
        "datetime": privsyn.Datetime,
        "identifier": privsyn.Identifier,
        "text": privsyn.Text,
    }
    return privsyn.Schema(
        {
            name: kinds[column["kind"]](*([list(column["values"])] if "values" in column else []))
            for name, column in columns.items()
        }
    )


def listed(column: Any) -> list[Any] | None:
    """Return the values of a column of a schema; None if it is not one of listed values or categories."""
    if not isinstance(column, privsyn.Categorical):
        return None
    return [] if column.values is None else [*map(str, column.values)]


def answers(answer: Any) -> dict[str, Any]:
    """Return an answer, or several ones, as a column of each field."""
    rows = answer if isinstance(answer, tuple) else (answer,)
    names = "question", "estimate", "low", "high", "verdict", "rows", "independent", "reason"
    fields = {name: [getattr(row, name) for row in rows] for name in names}
    return {name: [*map(_cell, cells)] for name, cells in fields.items()}


def _cell(cell: Any) -> float | str:
    return float(cell) if isinstance(cell, int | float | np.number) else str(cell)


def scores(results: privsyn.Scores) -> dict[str, Any]:
    """Return the scores of a comparison as columns, and the verdict."""
    labelled = results.table()
    tables = "synthetic", "real", "held_out", "independent"
    numbers = {table: [float(getattr(score, table)) for _, score in labelled.values()] for table in tables}
    rows = {"metric": [*labelled], "label": [label for label, _ in labelled.values()], **numbers}
    return {"table": rows, "verdict": results.verdict}


def write_json(plain: Any, path: str) -> None:
    """Write plain data as JSON."""
    Path(path).write_text(json.dumps(plain, ensure_ascii=False, indent=1), encoding="utf-8")


def read_json(path: str) -> Any:
    """Read plain data from JSON."""
    return json.loads(Path(path).read_text(encoding="utf-8"))
