"""`privsyn plan`: estimate the error and cost of a run, without reading a row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.common.options import (
    Decimal,
    Delimiter,
    Delta,
    Encoding,
    Epsilon,
    RowsPerUnit,
    Thousands,
    Unit,
    read_public,
)
from privsyn.cli.common.terminal import say_text


def plan(
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="The table (no row is read), or a schema (.yaml) alone."),
    ],
    epsilon: Epsilon,
    delta: Delta = 1e-9,
    schema: Annotated[Path | None, typer.Option(help="Public facts about the columns, as YAML.")] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="A rough, public number of rows: do not count the private ones."),
    ] = None,
    unit: Unit = None,
    rows_per_unit: RowsPerUnit = None,
    target: Annotated[str | None, typer.Option(help="A column that models predict from the others.")] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
) -> None:
    """Estimate error, time and memory of a run before any budget is spent. It reads no row of DATA."""
    import privsyn
    from privsyn.cli.common.outputs import check_table
    from privsyn.cli.common.persons import check_unit_options
    from privsyn.errors import InputError

    alone = data.suffix.lower() in (".yaml", ".yml")
    if not alone:
        check_table(data)
    if alone and schema is not None:
        raise InputError(f"{data}: is a schema: leave out --schema, or give the table")
    path = data if alone else schema
    public = read_public(path, delimiter, encoding, decimal, thousands)
    check_unit_options(None if alone else data, public, unit, rows_per_unit)
    found = privsyn.plan(
        None if alone else data,
        epsilon,
        delta,
        public,
        rows=rows,
        unit=unit,
        rows_per_unit=rows_per_unit,
        target=target,
    )
    say_text(str(found))
