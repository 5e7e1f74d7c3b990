"""`privsyn report`: write the public page of a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model of `privsyn synth --model`.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The web page, one file.")],
    sheet: Annotated[
        Path | None, typer.Option(help="Write a data sheet with metadata (JSON-LD) too, as Markdown.")
    ] = None,
) -> None:
    """Write the released counts, error bars and privacy cost to a web page, as public as MODEL."""
    import privsyn
    from privsyn.cli.common.console import show_files, show_privacy
    from privsyn.cli.common.outputs import check_markdown, check_outputs, check_page

    check_outputs({"OUT": out, "--sheet": sheet}, inputs=(model,))
    check_page("OUT", out)
    check_markdown("--sheet", sheet)
    release = privsyn.load(model)
    privsyn.report(release, out)
    show_files({"--public-report": out})
    if sheet is not None:
        privsyn.sheet(release, sheet)
    show_files({"--sheet": sheet})
    show_privacy(release.ledger, spent_before=True)
