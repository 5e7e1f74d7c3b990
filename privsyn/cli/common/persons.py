"""Check `--unit` and `--rows-per-unit` before settings are made, in the spelling of the command line."""

from __future__ import annotations

from pathlib import Path

from privsyn.errors import InputError
from privsyn.table.io.persons import check_unit_column
from privsyn.table.io.read_in_memory import read_columns
from privsyn.table.schema.schema import Schema


def check_unit_options(
    data: Path | None, schema: Schema | None, unit: str | None, rows_per_unit: int | None
) -> None:
    """Refuse one option without the other; report a column that the table does not have first."""
    if unit is None and rows_per_unit is not None:
        raise InputError("--rows-per-unit needs --unit, the column that identifies the person: give both")
    if unit is not None and rows_per_unit is None:
        if data is not None:
            check_unit_column(read_columns(data, schema).columns, unit)
        raise InputError(
            "--unit needs --rows-per-unit, the most rows kept per person: give a number that is publicly"
            " known to be enough for most people; twice the rows mean twice the noise"
        )
