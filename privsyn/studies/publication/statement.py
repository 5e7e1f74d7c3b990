"""The statement why a person cannot be found again: a draft for an office, from ledger and attacks."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

from privsyn.arguments import check_path, check_release
from privsyn.errors import InputError, replace_errors
from privsyn.files import atomic_path, read_text
from privsyn.pages.sections import render
from privsyn.release.release import Release
from privsyn.studies.publication.relationships import in_plain_words, in_values
from privsyn.synthesizer import PrivSyn

THRESHOLD = 0.09
"""The largest probability of re-identification in clinical reports that Health Canada and EMA accept."""

WEAK = 0.75
"""From three right guesses in four on, the draft calls the bound weak: an attacker is nearer to knowing than
to a toss of a coin."""


def statement(
    release: Release[Any] | PrivSyn, path: str | PathLike[str], *, attacks: str | PathLike[str] | None = None
) -> None:
    """Write a draft of the statement why a person cannot be found again in the synthetic rows.

    It says what the ledger promises and what attacks found. It does not call the table anonymous: whether the
    law does is for the office to decide, which completes the lines with TODO.

    Parameters
    ----------
    release : Release or PrivSyn
        The result of `load`, or a fitted model.
    path : path
        A Markdown file.
    attacks : path, optional
        The numbers of `privsyn attack --json`. They are of real rows, so that section is not private.

    Raises
    ------
    InputError
        If the release makes no promise of its own, the file of attacks is none, or a file cannot be written.
    """
    text = drafted(check_release(release), None if attacks is None else read_attacks(attacks))
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")


def drafted(release: Release[Any], attacks: dict[str, Any] | None = None) -> str:
    """Return the statement as text."""
    ledger = release.ledger
    if ledger.elsewhere is not None:
        raise InputError("the counts were measured elsewhere: the statement is for whoever measured them")
    if ledger.warning is not None:
        raise InputError("the run is NOT PRIVATE, so there is nothing to state: run again without a seed")
    odds = in_plain_words(ledger)
    values = {
        "about": release.about,
        "attacks": attacks,
        "database": release.database,
        "digest": release.digest,
        "dropped": [
            release.database.shown_column(name, column)
            for name in release.database.shown
            for column in release.tables[name].codec.dropped
        ],
        "ledger": in_values(ledger),
        "odds": odds,
        "threshold": THRESHOLD,
        "weak": odds is not None and odds["guess"] >= WEAK,
    }
    return render("statement.md", values)


def read_attacks(path: str | PathLike[str]) -> dict[str, Any]:
    """Return the results of attacks that `Risks.to_json` wrote, the largest risk first."""
    file = Path(check_path(path))
    problem = f"{file}: has no results of attacks: give the file of `privsyn attack --json`"
    text = read_text(file)
    with replace_errors(problem):
        plain = json.loads(text)
        lines: list[dict[str, Any]] = [
            {
                "name": str(name),
                "real": float(risk["train"]["successes"]) / float(risk["train"]["attacks"]),
                "held_out": float(risk["control"]["successes"]) / float(risk["control"]["attacks"]),
                "attacks": int(risk["train"]["attacks"]),
                "risk": float(risk["risk"]),
                "low": float(risk["interval"][0]),
                "high": float(risk["interval"][1]),
            }
            for name, risk in plain["attacks"].items()
        ]
        verdict, whom = str(plain["verdict"]), str(plain["whom"])
        lines.sort(key=lambda line: -line["risk"])
        return {"lines": lines, "verdict": verdict, "whom": whom, "highest": lines[0]}
