"""`privsyn app`: a page in the browser, from a file to a publishable table."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.common.terminal import say


def app(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where the tables are. Default: this folder.")
    ] = Path(),
    *,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    idle: Annotated[float, typer.Option(min=1, help="Minutes without a request after which it stops.")] = 60,
    upload: Annotated[float, typer.Option(min=0.001, help="The largest upload, in GB.")] = 4,
) -> None:
    """Open a page on this machine: make a synthetic table in the browser, without a line of code."""
    from privsyn.cli.common import compiling
    from privsyn.errors import replace_errors

    with replace_errors("the page needs privsyn[app]: run pip install 'privsyn[app]'", ImportError):
        from privsyn.app.server import App, serve, show_in_browser
    from privsyn.app.workspace import Workspace

    compiling.compile_ahead()
    workspace = Workspace(folder)
    page = App(workspace, upload)

    def ready() -> None:
        say("Open this address in a browser. It works once, on this machine alone:", "", f"  {page.address}")
        say("", "Ctrl-C ends the page and removes uploads and results that you did not take.")
        if browser:
            show_in_browser(page)

    try:
        with _hang_up_ends_in_order():
            serve(page, idle_minutes=idle, ready=ready)
    finally:
        with _undisturbed():  # a run has 20 s to write what was paid for
            page.close()
            workspace.close()
        for model in workspace.kept:
            say(f"{model}: a model that was paid for and not taken; `privsyn sample` draws from it")


@contextmanager
def _hang_up_ends_in_order() -> Iterator[None]:
    """End the page as Ctrl-C does if its terminal is closed."""
    before = signal.getsignal(signal.SIGHUP)
    if before is signal.SIG_DFL:  # `nohup` ignores it
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore further signals to end: a terminal that is closed sends several."""
    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(kind, signal.SIG_IGN) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)
