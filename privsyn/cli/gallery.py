"""`privsyn gallery`: models of public tables that come with the package."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.common.options import Force
from privsyn.cli.common.terminal import say


def gallery(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A published model. Default: list all.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The web page. Default: NAME.html in this folder."),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    force: Force = False,
) -> None:
    """List published models, or open the page of one: no private table is needed."""
    from privsyn.errors import InputError
    from privsyn.release.published.models import PUBLISHED, published

    if name is None:
        if out is not None:
            raise InputError("--out is about one page: name a model, such as privsyn gallery adult")
        say("Models of public tables, made with epsilon 1. Each name can be used as a MODEL:")
        for model in PUBLISHED:
            say("", f"{model.name}: {model.title}", f"  from {model.source}")
            say(f'  privsyn ask {model.name} "{model.question}"')
        say("", "privsyn gallery NAME opens a page; privsyn sample NAME out.csv --rows 1000 draws rows")
        return
    import privsyn
    from privsyn.cli.common import progress_bars, summary
    from privsyn.cli.common.outputs import check_outputs, check_page

    path = published(name).path
    page = Path(f"{name}.html") if out is None else out
    check_outputs({"--out": page}, inputs=(path,), force=force)
    check_page("--out", page)
    with progress_bars.waiting("writing the page"):
        privsyn.report(privsyn.load(path), page)
    summary.show_files({"--public-report": page})
    if browser:
        webbrowser.open(page.resolve().as_uri())
