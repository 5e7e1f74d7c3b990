"""Show the progress of a run: as bars on a terminal, as lines in a pipe, or as JSON for programs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from privsyn.cli.common.compiling import announced
from privsyn.cli.common.options import ProgressFormat
from privsyn.cli.common.terminal import Lasting, say
from privsyn.errors import printable
from privsyn.progress import Progress


@contextmanager
def progress(form: ProgressFormat = ProgressFormat.BAR) -> Iterator[Progress | None]:
    """Yield a function that shows a progress bar for each stage on a terminal; None in a pipe.

    For programs it prints a line of JSON for each step. Standard error may have other lines too, none of
    which begins with a brace.
    """
    if form is ProgressFormat.JSON:
        yield lambda stage, done, total: say(
            json.dumps({"stage": stage, "done": done, "total": total}), err=True
        )
        return
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich_progress
    from rich.console import Console

    columns = (
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TextColumn("left:"),
        rich_progress.TimeRemainingColumn(),
    )
    console = Console(file=Lasting(sys.stderr))  # type: ignore[arg-type]
    with rich_progress.Progress(*columns, console=console, transient=True) as bars, announced():
        tasks: dict[str, int] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = int(bars.add_task(printable(stage)))
            bars.update(tasks[stage], completed=done, total=total)  # type: ignore[arg-type]

        yield report


@contextmanager
def waiting(work: str) -> Iterator[None]:
    """Show on a terminal the name of work that cannot report progress, until it ends."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(file=Lasting(sys.stderr)).status(work):  # type: ignore[arg-type]
        yield


@contextmanager
def countdown() -> Iterator[Progress]:
    """Yield the function of `progress`; in a pipe, a function that prints a line for each step."""
    with progress() as bars:
        yield bars or _lines()


def _lines() -> Progress:
    steps: list[tuple[float, int]] = []

    def report(stage: str, done: int, total: int) -> None:
        steps.append((time.monotonic(), done))
        (begun, before), (now, _) = steps[0], steps[-1]
        pace = (now - begun) / max(done - before, 1)
        remaining = f", about {pace * (total - done):.0f} s left" if before < done < total else ""
        say(f"{done} of {total} {stage}{remaining}", err=True)

    return report
