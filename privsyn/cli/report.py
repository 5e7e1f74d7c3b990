"""`privsyn report`: write the public page of a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `privsyn synth --model` kept.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The web page, in one file.")],
) -> None:
    """Write what was released, its error bars and its cost on a web page: as public as MODEL is."""
    import privsyn
    from privsyn.cli.console import show_privacy, show_public_report
    from privsyn.cli.outputs import check_outputs, check_page

    check_outputs({"OUT": out}, inputs=(model,))
    check_page("OUT", out)
    release = privsyn.load(model)
    privsyn.report(release, out)
    show_public_report(out)
    show_privacy(release.ledger)
