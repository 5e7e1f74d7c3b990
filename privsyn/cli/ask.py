"""`privsyn ask`: what a saved model answers to questions in words, each with a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privsyn.cli.common.options import WRITES, Force
from privsyn.cli.common.terminal import MISTAKE, say
from privsyn.errors import InputError, about, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privsyn.release.questions.answer import Answer

ENDINGS = ".csv", ".parquet", ".json"


def ask(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model of `privsyn synth --model`.")],
    question: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUESTION",
            # Typer reads words in brackets as markup and drops them.
            help="'share of CONDITION', 'number of CONDITION', 'number of rows', 'mean of COLUMN', 'median of"
            " COLUMN' or 'correlation of COLUMN and COLUMN'. A share or a mean may end with 'among"
            " CONDITION', and with weights of rows begin with 'weighted'. With linked tables, begin with"
            " 'TABLE: '.",
        ),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Questions, one a line, or as a list in YAML (.yaml)."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Answer each share or mean for each value of a column, or each quarter of its numbers. With"
            " linked tables also of a table above: 'TABLE: COLUMN'.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            rich_help_panel=WRITES,
            help="Write a table of the answers: .csv, .parquet or .json.",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Answer questions about the private table from a model, each with a verdict, at no further cost.

    A question that cannot be read has no answer, and the exit status is 2; the others are answered.
    """
    from privsyn.cli.common.outputs import check_outputs
    from privsyn.release.questions.answer import Answer
    from privsyn.release.questions.answers import shown
    from privsyn.release.release import load

    if out is not None and out.suffix.lower() not in ENDINGS:
        raise InputError(f"--out {out}: let its name end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    check_outputs({"--out": out}, inputs=(model, questions), force=force)
    entries = [("", text) for text in question or []] + ([] if questions is None else _read(questions))
    if not entries:
        raise InputError('ask a question, such as "share of age >= 65", or give a file: --questions FILE')
    release, answers, refused = load(model), list[Answer](), 0
    if not release.ledger.counts_all_rows:
        rows = plural(release.ledger.rows_per_unit or 1, "row")
        say(f"answers are about the rows that were kept: at most {rows} of one person", err=True)
    for origin, text in entries:
        try:
            answered = [release.ask(text)] if by is None else release.ask(text, by=by)
        except InputError as error:
            if len(entries) == 1 and not origin:
                raise
            refused += 1
            problem = str(error).removeprefix(f"{shown(text)}: ")
            answers.append(Answer.refused(text, problem))
            say(f"privsyn: {origin}{error}", err=True)
            continue
        answers += answered
        if out is None:
            say(*map(str, answered))
    if out is not None:
        _write(answers, out)
        without = f", and {plural(refused, 'question')} without one" if refused else ""
        say(f"{out}: {plural(len(answers) - refused, 'answer')}{without}")
    if refused:
        raise typer.Exit(MISTAKE)


def _read(path: Path) -> list[tuple[str, str]]:
    """Return the places and texts of the questions in a file: lines without comments, or a YAML list."""
    from privsyn.files import check_file, read_text
    from privsyn.table.schema.yaml_file import parse

    check_file(path)
    text = read_text(path)
    if path.suffix.lower() not in (".yaml", ".yml"):
        return [
            (f"{path}, line {number}: ", line.strip())
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
    with about(str(path)):
        listed = parse(text)
        if isinstance(listed, list):  # "- visits: mean of days" is a mapping in YAML
            listed = [
                ": ".join(map(str, *item.items())) if isinstance(item, dict) and len(item) == 1 else item
                for item in listed
            ]
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            raise InputError("give a list of questions: a line '- share of age >= 65' for each")
        return [(f"{path}, question {number}: ", item) for number, item in enumerate(listed, 1)]


def _write(answers: Sequence[Answer], out: Path) -> None:
    """Write a row for each answer; times stand as text."""
    import json

    import pandas as pd

    from privsyn.cli.common.outputs import staged

    rows = [
        {
            name: None if pd.isna(cell) else float(cell) if isinstance(cell, float | int) else str(cell)
            for name, cell in answer.to_dict().items()
        }
        for answer in answers
    ]
    with staged({"--out": out}) as parts:
        part = parts["--out"]
        if out.suffix.lower() == ".json":
            part.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
            return
        frame = pd.DataFrame(rows)
        for name in frame:
            if any(isinstance(cell, str) for cell in frame[name]):
                frame[name] = frame[name].map(lambda cell: None if pd.isna(cell) else str(cell))
        if out.suffix.lower() == ".csv":
            frame.to_csv(part, index=False)
        else:
            frame.to_parquet(part, index=False)
