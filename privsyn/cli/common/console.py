"""Print progress, and a summary of the results."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from privsyn.arguments import BETTER, is_weak
from privsyn.cli.common.compiling import announced
from privsyn.cli.common.options import ProgressFormat
from privsyn.cli.common.terminal import Lasting, say
from privsyn.errors import NOT_FOUND, plural, printable
from privsyn.private.find_values import summary
from privsyn.private.ledger import (
    PUBLIC,
    RECORDED,
    Ledger,
    acceptance_lines,
    not_randomised,
    protects,
    randomised_cells,
)
from privsyn.private.spend import ROWS_PER_PERSON
from privsyn.progress import Progress

if TYPE_CHECKING:
    from privsyn.release.losses.kinds import Loss
    from privsyn.release.release import Release
    from privsyn.synthesizer import PrivSyn


LONG = 400
"""Characters of a line on losses, none of which is left out."""

WIDTH = 100
"""Characters of a line of facts."""

LIST = r"(\b(?:values|bounds|grids) of |found for: )((?:[^;,]+, ){2})([^;]+)"
"""A list of names in a line on what was looked for. Pages of names would hide what follows."""

WRITTEN = {
    "--model": "the model; `privsyn sample` draws from it at no further cost in privacy",
    "--ledger": "all queries of the table, with their noise and cost",
    "--public-report": "the released counts, with error bars",
    "--sheet": "the data sheet; complete the lines with TODO",
    "--json": "all the numbers. They are of the real table: not private either",
    "--report": "both tables side by side. It READS THE REAL TABLE: not private, keep it there",
}
"""What is in the file of each option."""


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


def show_tables(
    shapes: Mapping[str, tuple[int, int]], out: Path, release: Release, *, estimated: bool
) -> None:
    """Print the size of each table, and where it is. One table has the name ""."""
    ledger = release.ledger
    for name, (rows, columns) in shapes.items():
        if name:
            table = release.database.tables[name]
            link = "" if table.parent is None else f", linked to {table.parent}"
            link = link if table.public is None else ", public, as it is"
            say(f"{out}: {name}: {plural(rows, 'row')}, {plural(columns, 'column')}{link}")
            continue
        questions = [spend.what for spend in ledger.spends]
        stands_for_all = ledger.unit is None or any(
            question.endswith(ROWS_PER_PERSON) for question in questions
        )
        number = "the table's own number" if stands_for_all else "how many rows of the table were kept"
        note = f" (a private estimate of {number})" if estimated and not ledger.all_local else ""
        say(f"{out}: {plural(rows, 'row')}{note}, {plural(columns, 'column')}")


def show_outlook(fitted: PrivSyn) -> None:
    """Print how good each table is likely to be."""
    release = fitted.release_
    for table, outlook in release.outlooks(fitted.target).items():
        say(release.database.headed(table, outlook))


def show_files(files: Mapping[str, Path | None]) -> None:
    """Print what is in each of the files, which are given by option."""
    for option, content in WRITTEN.items():
        if (path := files.get(option)) is not None:
            say(f"{path}: {content}")


def show_losses(losses: Sequence[Loss]) -> None:
    """Print what the run did to the columns, the worst first; a line with many names goes on in the next."""
    from privsyn.release.losses.lines import lines_of

    for line in map(printable, lines_of(losses)):
        say(*wrap(line, LONG, break_long_words=False, break_on_hyphens=False))


def show_privacy(ledger: Ledger, *, spent_before: bool = False) -> None:
    """Print the privacy guarantee, or that there is none; of a saved model, that nothing more is spent."""
    if ledger.elsewhere is not None:
        say(f"privacy: the counts were measured elsewhere: {printable(ledger.elsewhere)}")
        return
    paid = "no further privacy cost: the model's" if spent_before else "privacy:"
    promise = f"{paid} epsilon {ledger.promised_epsilon:g} at delta {ledger.promised_delta:g}"
    if ledger.all_local:
        promise += f" for {randomised_cells(ledger)}, by the respondents' randomised response"
    if ledger.unchanged:
        promise += f"; NOT PRIVATE: {not_randomised(ledger)}"
    if ledger.unit is not None:
        promise += f" for {protects(ledger.unit, ledger.root)}"
    say(promise if ledger.unchanged else ledger.warning or promise)
    if is_weak(ledger.promised_epsilon, ledger.promised_delta):
        say(f"THIS PROMISES NEXT TO NOTHING: {BETTER}")
    if ledger.local and not ledger.all_local:
        cells = f"these cells of one {ledger.record}"
        say(f"randomised by the respondents: epsilon {ledger.local_epsilon:g} for {cells}")
    if ledger.recorded is False and not spent_before:
        say(RECORDED[False])
    if not spent_before and (looked_for := summary(ledger)) is not None:
        # the first names of its lists; the ledger has all
        say(re.sub(LIST, lambda m: f"{m[1]}{m[2][:-2]} and {m[3].count(', ') + 1} more", looked_for))


def show_acceptance(ledger: Ledger) -> None:
    """Print the verdict on the criteria, if there are any. It follows from noisy answers."""
    for line in acceptance_lines(ledger):
        say(line)


def show_not_accepted(ledger: Ledger) -> None:
    """Print the verdict if a criterion was not met: the owner decided not to publish such a release."""
    if ledger.acceptance is not None and not ledger.acceptance.met:
        show_acceptance(ledger)


def show_refused(ledger: Ledger, out: Path, model: Path | None) -> None:
    """Print that no table was written, and where the model is."""
    say(f"{out}: not written: a criterion is not met")
    if model is not None:
        say(f"{model}: the model, for your own eyes: its epsilon is spent, its ledger has the verdict")
    show_privacy(ledger)


def show_no_signal(why: str, ledger: Ledger, out: Path, model: Path) -> None:
    """Print that no table was written for want of signal, and where the model is."""
    say(f"{out}: not written: {why}")
    say(f"{model}: the model; its epsilon is spent. `privsyn sample {model} OUT --rows N` shows the noise")
    show_privacy(ledger)


def show_public_inputs(ledger: Ledger) -> None:
    """Print unusual facts that the run took as public, in two lines at most. The ledger has all in full."""
    facts = [fact for fact in ledger.public_inputs if fact not in PUBLIC and not fact.startswith(NOT_FOUND)]
    if facts:
        say(*two_lines("taken as public", facts))


def two_lines(subject: str, facts: Sequence[str]) -> list[str]:
    """Return facts in at most two lines of `WIDTH` characters; what follows a colon stays if it is names.

    >>> two_lines("taken as public", ["that it is CSV: quotes closed", "that these are whole: 'a', 'b'"])
    ["taken as public: that it is CSV; that these are whole: 'a', 'b' (all in the ledger)"]
    >>> [len(line) <= WIDTH for line in two_lines("taken as public", ["that " + "these words " * 30])]
    [True, True]
    """
    heads = [fact if ": '" in fact else fact.partition(": ")[0] for fact in map(printable, facts)]
    pointer = "" if heads == list(facts) else " (all in the ledger)"
    text = f"{subject}: {'; '.join(heads)}{pointer}"
    return wrap(text, WIDTH, max_lines=2, placeholder=" ... (all in the ledger)", break_on_hyphens=False)
