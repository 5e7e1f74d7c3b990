"""Test on public facts alone that results can be written, before any budget is spent. No row is read."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.io.output_type import PANDAS, OutputType
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.read_in_memory import ending_of, read_columns
from privsyn.table.io.write import write_table
from privsyn.table.schema.schema import Schema


def rehearse(
    data: Path, out: Path, schema: Schema | None, *, unit: str | None, rows: int | None, report: bool
) -> None:
    """Refuse a run whose results could not be written or loaded after epsilon is spent.

    It refuses a schema that a model file cannot hold, a listed value that `out` cannot hold, a dtype too
    small for the identifiers of `rows` rows, and a report without its libraries. `fit` checks the table.
    """
    if report:
        import privsyn.evaluation.models
        import privsyn.evaluation.report  # noqa: F401
    codec = None
    with suppress(Exception):  # `fit` reports files that cannot be read
        head, form = _columns(data, schema, unit)
        codec = Codec.for_table(OpenSchema.of(schema, head).fill({}, {}), head, fine=True)
    if codec is None:
        return
    plain, back = json.dumps(codec.to_dict()), None
    with suppress(Exception):
        back = Codec.from_dict(json.loads(plain))
    if back != codec:
        raise InputError("the schema does not come back from a model file as it was: please report this")
    _write(codec, form, out, rows)


def _columns(data: Path, schema: Schema | None, unit: str | None) -> tuple[pd.DataFrame, OutputType]:
    """Return a table with the names and dtypes of the columns, without the unit column, and its type."""
    if ending_of(data) == ".parquet":
        table = read_in_batches(data)
        head, form = table.head, table.form
    else:
        head, form = read_columns(data, schema), PANDAS
    return head.drop(columns=[] if unit is None else unit, errors="ignore"), form


def _write(codec: Codec, form: OutputType, out: Path, rows: int | None) -> None:
    """Write a few rows in the format of `out` to a temporary file."""
    specimen = codec.specimen(np.random.default_rng(0))
    if rows is not None:
        codec.specimen(
            np.random.default_rng(0), max(rows - len(specimen), 0)
        )  # are there enough identifiers?
    complaint = ""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, f"rehearsal{ending_of(out)}")
        try:
            write_table(
                form.only(set(codec.names).difference(codec.dropped)).cast(specimen, codec.schema),
                place,
                codec.schema,
                form,
            )
        except InputError as error:
            complaint = str(error).replace(str(place), str(out))
    if complaint:
        raise InputError(complaint)
