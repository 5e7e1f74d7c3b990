"""Print a summary of the results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from privsyn.arguments import BETTER, is_weak
from privsyn.cli.common.terminal import say
from privsyn.errors import NOT_FOUND, plural, printable, short
from privsyn.private.find_values import summary
from privsyn.private.run_ledger import (
    PUBLIC,
    RECORDED,
    RunLedger,
    acceptance_lines,
    not_randomised,
    over_time_lines,
    randomised_cells,
)

if TYPE_CHECKING:
    from privsyn.release.losses.kinds import Loss
    from privsyn.release.release import Release
    from privsyn.release.table_model import TableModel


LONG = 400
"""Characters of a line on losses, none of which is left out."""

MOST, WIDEST = 10, 120
"""Lines after a run, and characters of each, unless somebody asks for all."""

LEAST_OF_REST = 4
"""Of what is not always shown, such as smaller losses, the fewest lines: files do not crowd it out."""

MOST_PARTS = 3
"""Lines in which one that is always shown may go on: names of many columns end with dots."""

WIDTH, LEAST_OF_FACT = 300, 80
"""Characters of the facts that were taken as public, together and of each."""

LIST = r"(\b(?:values|bounds|grids) of |found for: )((?:[^;,]+, ){2})([^;]+)"
"""A list of names in a line on what was looked for. Pages of names would hide what follows."""

WRITTEN = {
    "--model": "the model; `privsyn sample` draws from it at no further cost in privacy",
    "--ledger": "all queries of the table, with their noise and cost",
    "--public-report": "the released counts, with error bars",
    "--sheet": "the data sheet; complete the lines with TODO",
    "--statement": "a draft of the statement; complete the lines with TODO",
    "--json": "all the numbers. They are of the real table: not private either",
    "--report": "both tables side by side. It READS THE REAL TABLE: not private, keep it there",
}
"""What is in the file of each option."""


class Line(NamedTuple):
    """A line of a summary. Of too many, those of a small rank are shown, and those of rank 0 always."""

    text: str
    rank: int = 0


def show_summary(lines: Sequence[Line], *, verbose: bool, model: Path | None = None) -> None:
    """Print some `MOST` lines of at most `WIDEST` characters, and how to see all; or all lines.

    What goes on in the next line is indented, so no name of a file or column can begin a line. Another run to
    see all lines would spend epsilon again. A `model` that is saved tells the losses for nothing.
    """
    if verbose:
        for line in lines:
            say(*indented(printable(line.text), LONG, break_long_words=False))
        return
    shortened: list[Line] = []
    is_cut = False
    for line in lines:
        text = printable(line.text)
        limit = 1 if line.rank else MOST_PARTS
        parts = indented(text, WIDEST, max_lines=limit, placeholder=" ...")
        shortened += [Line(part, line.rank) for part in parts]
        is_cut |= len(parts) < len(indented(text, WIDEST))
    length = max(MOST, sum(not line.rank for line in shortened) + LEAST_OF_REST + 1)
    if is_cut or len(shortened) > length:
        ranked = sorted(range(len(shortened)), key=lambda index: shortened[index].rank)
        chosen = {*ranked[: length - 1]} | {index for index, line in enumerate(shortened) if not line.rank}
        hidden = len(shortened) - len(chosen)
        more = f"{plural(hidden, 'more line')}: " if hidden else ""
        how = "--verbose shows all; another run costs epsilon again, `privsyn sample` of a --model does not"
        if model is not None:
            how = f"`privsyn sample {printable(str(model))} OUT --verbose` shows what was lost, at no cost"
        shortened = [shortened[index] for index in sorted(chosen)]
        shortened.append(Line(f"{more}{how}"))
    say(*(line.text for line in shortened))


def table_lines(
    shapes: Mapping[str, tuple[int, int]], out: Path, release: Release, *, estimated: bool
) -> list[Line]:
    """Return the size of each table, and where it is. One table has the name ""."""
    ledger, lines = release.ledger, list[Line]()
    for name, (rows, columns) in shapes.items():
        if name:
            table = release.database.tables[name]
            link = "" if table.parent is None else f", linked to {table.parent}"
            link = link if table.public is None else ", public, as it is"
            note = ""
            if estimated and table.public is None:
                note = f" (a private estimate, give or take {_give_or_take(release.tables[name])})"
            text = f"{out}: {name}: {plural(rows, 'row')}{note}, {plural(columns, 'column')}{link}"
            lines.append(Line(text))
            continue
        estimate = (
            "the table's own number" if ledger.counts_all_rows else "how many rows of the table were kept"
        )
        model = release.table()
        give_or_take = f"{estimate}, give or take {_give_or_take(model)}"
        note = f" (a private estimate of {give_or_take})" if estimated and not ledger.all_local else ""
        if estimated and model.fitted.totals:
            note = " (as in the known totals)"
        lines.append(Line(f"{out}: {plural(rows, 'row')}{note}, {plural(columns, 'column')}"))
    return lines


def _give_or_take(model: TableModel) -> str:
    """Return how far the private number of rows of a table may be, in words, at least one row."""
    return f"{max(model.fitted.reach_of_total(laplace=model.has_laplace_noise), 1):,.0f}"


def show_tables(
    shapes: Mapping[str, tuple[int, int]], out: Path, release: Release, *, estimated: bool
) -> None:
    """Print the size of each table, and where it is."""
    say(*(line.text for line in table_lines(shapes, out, release, estimated=estimated)))


def outlook_lines(release: Release) -> tuple[list[Line], list[Line]]:
    """Return the verdict on each table, the worst first, and how good its parts are."""
    from privsyn.release.accuracy.outlook import Outlook

    database = release.database
    outlooks = {table: Outlook.of(release.tables[table]) for table in database.shown}
    worst = sorted(outlooks, key=lambda table: -outlooks[table].worst_level)
    verdicts = [Line(database.headed(table, outlooks[table].verdict)) for table in worst]
    details = [Line(database.headed(table, outlook.detail), 3) for table, outlook in outlooks.items()]
    return verdicts, details


def file_lines(files: Mapping[str, Path | None]) -> list[str]:
    """Return what is in each of the files, which are given by option."""
    paths = {content: files.get(option) for option, content in WRITTEN.items()}
    return [f"{path}: {content}" for content, path in paths.items() if path is not None]


def digest_lines(model: Path | None) -> list[Line]:
    """Return the SHA-256 of a saved model, if there is one."""
    return [] if model is None else [Line(f"{model}: SHA-256 {sha256(model.read_bytes()).hexdigest()}", 4)]


def show_files(files: Mapping[str, Path | None]) -> None:
    """Print what is in each of the files, which are given by option."""
    say(*file_lines(files))


def show_losses(losses: Sequence[Loss], *, verbose: bool = False) -> None:
    """Print what the run did to the columns, the worst first; a line with many names goes on in the next."""
    from privsyn.release.losses.lines import lines_of

    for line in map(printable, lines_of(losses, in_full=verbose)):
        say(*indented(line, LONG, break_long_words=False))


def indented(text: str, width: int, **options: Any) -> list[str]:
    """Return a text in lines of at most a width, all but the first indented; options are those of `wrap`."""
    return wrap(text, width, subsequent_indent="  ", break_on_hyphens=False, **options)


def show_privacy(ledger: RunLedger, *, spent_before: bool = False) -> None:
    """Print the privacy guarantee, or that there is none; of a saved model, that nothing more is spent."""
    say(*privacy_lines(ledger, spent_before=spent_before))
    if not spent_before:
        say(*search_lines(ledger))


def privacy_lines(ledger: RunLedger, *, spent_before: bool = False) -> list[str]:
    """Return the privacy guarantee, or that there is none."""
    if ledger.elsewhere is not None:
        return [f"privacy: the counts were measured elsewhere: {printable(ledger.elsewhere)}"]
    paid = "no further privacy cost: the model's" if spent_before else "privacy:"
    promise = f"{paid} epsilon {ledger.promised_epsilon:g} at delta {ledger.promised_delta:g}"
    if ledger.all_local:
        promise += f" for {randomised_cells(ledger)}, by the respondents' randomised response"
    if ledger.unchanged:
        promise += f"; NOT PRIVATE: {not_randomised(ledger)}"
    if ledger.unit is not None or ledger.root is not None:
        promise += f" for {ledger.protects}"
    lines = [promise if ledger.unchanged else ledger.warning or promise]
    lines += over_time_lines(ledger)
    if is_weak(ledger.promised_epsilon, ledger.promised_delta):
        lines.append(f"THIS PROMISES NEXT TO NOTHING: {BETTER}")
    if ledger.local and not ledger.all_local:
        cells = f"these cells of one {ledger.record}"
        lines.append(f"randomised by the respondents: epsilon {ledger.local_epsilon:g} for {cells}")
    if ledger.recorded is False and not spent_before:
        lines.append(RECORDED[False])
    return lines


def search_lines(ledger: RunLedger) -> list[str]:
    """Return a line on what was looked for, if anything was; the ledger has all names of its lists."""
    if ledger.elsewhere is not None or (looked_for := summary(ledger)) is None:
        return []
    return [re.sub(LIST, lambda m: f"{m[1]}{m[2][:-2]} and {m[3].count(', ') + 1} more", looked_for)]


def show_acceptance(ledger: RunLedger) -> None:
    """Print the verdict on the criteria, if there are any. It follows from noisy answers."""
    for line in acceptance_lines(ledger):
        say(line)


def show_not_accepted(ledger: RunLedger) -> None:
    """Print the verdict if a criterion was not met: the owner decided not to publish such a release."""
    if ledger.acceptance is not None and not ledger.acceptance.met:
        show_acceptance(ledger)


def show_refused(ledger: RunLedger, out: Path, model: Path | None) -> None:
    """Print that no table was written, and where the model is."""
    say(f"{out}: not written: a criterion is not met")
    if model is not None:
        say(f"{model}: the model, for your own eyes: its epsilon is spent, its ledger has the verdict")
    show_privacy(ledger)


def show_no_signal(why: str, ledger: RunLedger, out: Path, model: Path) -> None:
    """Print that no table was written for want of signal, and where the model is."""
    say(f"{out}: not written: {why}")
    say(f"{model}: the model; its epsilon is spent. `privsyn sample {model} OUT --rows N` shows the noise")
    show_privacy(ledger)


def public_input_line(ledger: RunLedger) -> str:
    """Return unusual facts that the run took as public; "" without any. The ledger has all in full."""
    facts = [
        short(fact) for fact in ledger.public_inputs if fact not in PUBLIC and not fact.startswith(NOT_FOUND)
    ]
    return in_short("taken as public", facts) if facts else ""


def in_short(subject: str, facts: Sequence[str]) -> str:
    """Return facts in about `WIDTH` characters; what follows a colon stays if it is names.

    Names that are too many are cut, a fact is not.

    >>> in_short("taken as public", ["that it is CSV: quotes closed", "that these are whole: 'a', 'b'"])
    "taken as public: that it is CSV; that these are whole: 'a', 'b' (all in the ledger)"
    >>> in_short("taken as public", ["that these are whole: " + ", ".join(["'name'"] * 99), "that it is CSV"])
    "taken as public: that these are whole: 'name', 'name', ...; that it is CSV (all in the ledger)"
    """
    heads = [fact if ": '" in fact else fact.partition(": ")[0] for fact in map(printable, facts)]
    limit = max(WIDTH // len(heads), LEAST_OF_FACT)
    texts = [head if len(head) <= limit else _cut(head, limit) for head in heads]
    pointer = "" if texts == list(facts) else " (all in the ledger)"
    return f"{subject}: {'; '.join(texts)}{pointer}"


def _cut(fact: str, limit: int) -> str:
    """Return a fact with the first names behind its colon, two at least, in about as many characters."""
    words, colon, names = fact.partition(": ")
    listed = names.split(", ")
    fitting = accumulate((len(name) + 2 for name in listed), initial=len(words))
    number = max(sum(length <= limit for length in fitting) - 1, 2)
    return f"{words}{colon}{', '.join(listed[:number])}, ..." if number < len(listed) else fact
