"""`privsyn ask`: what a saved model answers to questions in words, each with a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privsyn.cli.common.options import Force
from privsyn.cli.common.terminal import say
from privsyn.errors import InputError, about, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privsyn.release.questions.answers import Answer

ENDINGS = ".csv", ".parquet", ".json"


def ask(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model of `privsyn synth --model`.")],
    question: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUESTION",
            # Typer reads words in brackets as markup and drops them.
            help="'share of CONDITION', 'number of CONDITION', 'mean of COLUMN', 'median of COLUMN' or"
            " 'correlation of COLUMN and COLUMN'. A share or a mean may end with 'among CONDITION'. With"
            " linked tables, begin with 'TABLE: '.",
        ),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Questions, one a line, or as a list in YAML (.yaml)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a table of the answers: .csv, .parquet or .json."),
    ] = None,
    force: Force = False,
) -> None:
    """Answer questions about the private table from a model, each with a verdict, at no further cost."""
    from privsyn.cli.common.outputs import check_outputs
    from privsyn.release.release import load

    if out is not None and out.suffix.lower() not in ENDINGS:
        raise InputError(f"--out {out}: let its name end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    check_outputs({"--out": out}, inputs=(model, questions), force=force)
    texts = [*(question or []), *([] if questions is None else _read(questions))]
    if not texts:
        raise InputError('ask a question, such as "share of age >= 65", or give a file: --questions FILE')
    release = load(model)
    answers = [release.ask(text) for text in texts]
    if out is None:
        say(*map(str, answers))
    else:
        _write(answers, out)
        say(f"{out}: {plural(len(answers), 'answer')}")


def _read(path: Path) -> list[str]:
    """Return the questions of a file: its lines without comments, or a list in YAML."""
    from privsyn.files import check_file, read_text
    from privsyn.table.schema.yaml_file import parse

    check_file(path)
    text = read_text(path)
    if path.suffix.lower() not in (".yaml", ".yml"):
        return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    with about(str(path)):
        listed = parse(text)
        if isinstance(listed, list):  # "- visits: mean of days" is a mapping in YAML
            listed = [
                ": ".join(map(str, *item.items())) if isinstance(item, dict) and len(item) == 1 else item
                for item in listed
            ]
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            raise InputError("give a list of questions: a line '- share of age >= 65' for each")
        return listed


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
