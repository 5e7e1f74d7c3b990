"""What a person sees: progress while the work goes on, and in the end a few lines on what was done."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich import progress as rich_progress
from rich.console import Console

from privsyn.cli.terminal import say
from privsyn.errors import plural, printable
from privsyn.private.discovery import summary
from privsyn.private.ledger import NOT_PRIVATE, Ledger
from privsyn.progress import Progress
from privsyn.synthesizer import PUBLIC
from privsyn.table.schema.columns import Categorical
from privsyn.table.schema.schema import Schema

MUCH_EPSILON, MUCH_DELTA = 100.0, 1e-3
"""Beyond either, a promise is one by its form alone."""

COUNTED = "{task.completed:.0f} of {task.total:.0f} {task.description}"


@contextmanager
def progress() -> Iterator[Progress | None]:
    """A bar for each stage on a terminal's standard error, gone when all is done; None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.BarColumn(),
        rich_progress.TimeElapsedColumn(),
    )
    with rich_progress.Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, int] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = int(bars.add_task(printable(stage)))
            bars.update(tasks[stage], completed=done, total=total)  # type: ignore[arg-type]

        yield report


@contextmanager
def countdown() -> Iterator[Progress]:
    """How much is done and how long the rest will take: a bar on a terminal, in a pipe a line a step."""
    if sys.stderr.isatty():
        columns = (
            rich_progress.TextColumn(COUNTED, markup=False),
            rich_progress.BarColumn(),
            rich_progress.TimeElapsedColumn(),
            rich_progress.TextColumn("left:"),
            rich_progress.TimeRemainingColumn(),
        )
        with rich_progress.Progress(*columns, console=Console(stderr=True)) as bars:

            def update(stage: str, done: int, total: int) -> None:
                task = bars.task_ids[0] if bars.task_ids else bars.add_task("", total=total)
                bars.update(task, description=printable(stage), completed=done, total=total)

            yield update
        return
    steps: list[tuple[float, int]] = []

    def report(stage: str, done: int, total: int) -> None:
        steps.append((time.monotonic(), done))
        (begun, before), (now, _) = steps[0], steps[-1]
        pace = (now - begun) / max(done - before, 1)
        left = f", about {pace * (total - done):.0f} s left" if before < done < total else ""
        say(f"{done} of {total} {stage}{left}", err=True)

    yield report


def show_files(
    shape: tuple[int, int],
    out: Path,
    spent: Ledger,
    *,
    estimated: bool,
    model: Path | None = None,
    ledger: Path | None = None,
) -> None:
    """Say what was written, and where."""
    rows, columns = shape
    number = "the table's own number" if spent.unit is None else "how many rows of the table were kept"
    note = f" (a private estimate of {number})" if estimated else ""
    say(f"{out}: {plural(rows, 'row')}{note}, {plural(columns, 'column')}")
    if model is not None:
        say(f"{model}: the model; `privsyn sample` draws from it at no further cost in privacy")
    if ledger is not None:
        say(f"{ledger}: what was asked of the table, with which noise, and what it cost")


def show_public_report(path: Path | None) -> None:
    """Say where the public report is, if there is one."""
    if path is not None:
        say(f"{path}: what was released, and how sure it is")


def show_report(path: Path) -> None:
    """Say where the comparison is."""
    say(f"{path}: both tables side by side. It READS THE REAL TABLE: not private, keep it there")


def show_numbers(path: Path) -> None:
    """Say where the numbers of a comparison are."""
    say(f"{path}: all the numbers. They are of the real table: not private either")


def show_dropped(names: Sequence[str]) -> None:
    """Say which columns were left out."""
    if names:
        say(f"left out, being free text: {', '.join(names)}")


def show_identifiers(names: Sequence[str]) -> None:
    """Say which columns were taken for identifiers by their names alone."""
    if names:
        say(f"made anew, being called like identifiers: {', '.join(names)}; a schema can say otherwise")


def show_nothing_found(asked: Schema | None, released: Schema) -> None:
    """Say in which columns no value was found; the release says so too, in which all values are one."""
    names = [
        name
        for name, column in released.coded.items()
        if isinstance(column, Categorical)
        and column.values == (column.other,)
        and (asked is None or not asked.coded[name].is_public)
    ]
    if names:
        say(f"no value was found in: {', '.join(names)}; raise epsilon or list them in a schema")


def show_privacy(ledger: Ledger) -> None:
    """Say what is promised, or what spoils the promise, and what was taken as public beyond the usual."""
    promise = f"privacy: epsilon {ledger.promised_epsilon:g} at delta {ledger.promised_delta:g}"
    if ledger.unit is not None:
        promise += f" for all rows of one {ledger.unit}, at most {ledger.rows_per_unit} each kept"
    say(promise if ledger.private else NOT_PRIVATE)
    if ledger.promised_epsilon > MUCH_EPSILON or ledger.promised_delta > MUCH_DELTA:
        say(
            "THIS PROMISES NEXT TO NOTHING: take an epsilon of 10 at most,"
            " and a delta far below one in the number of people"
        )
    if (found := summary(ledger)) is not None:
        say(found)
    for fact in ledger.public_inputs:
        if fact not in PUBLIC:
            say(f"taken as public: {fact}")
