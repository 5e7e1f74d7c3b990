"""`privsyn plan`: estimate the error and cost of a run, without reading a row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.common.options import CSV, Given, read_public, settings_options, takes
from privsyn.cli.common.terminal import say_text

PLANNED = ("epsilon", "delta", "schema", "unit", "rows_per_unit", "target")
"""The settings that change what is to be expected."""


@takes(settings=settings_options(*PLANNED, required=["epsilon"]), csv=CSV)
def plan(
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="The table (no row is read), or a schema (.yaml) alone."),
    ],
    *,
    settings: Given,
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="A rough, public number of rows: do not count the private ones."),
    ] = None,
    csv: Given,
) -> None:
    """Estimate error, time and memory of a run before any budget is spent. It reads no row of DATA."""
    import privsyn
    from privsyn.cli.common.outputs import check_table
    from privsyn.errors import InputError

    alone = data.suffix.lower() in (".yaml", ".yml")
    if not alone:
        check_table(data)
    if alone and settings["schema"] is not None:
        raise InputError(f"{data}: is a schema: leave out --schema, or give the table")
    settings["schema"] = read_public(data if alone else settings["schema"], csv)
    say_text(str(privsyn.plan(None if alone else data, rows=rows, **settings)))
