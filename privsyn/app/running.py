"""Screen Run: how much privacy it costs, what to expect, what was spent before, and one button."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from privsyn.app.choices import (
    ALL_EPSILONS,
    COMMAND,
    EPSILONS,
    RUN_SCHEMA,
    SCHEMA,
    Choices,
    percent_of_guesses,
)
from privsyn.app.column_entries import Form, field
from privsyn.app.command import Command
from privsyn.app.job import STAGES, Job
from privsyn.app.session import Session
from privsyn.arguments import MUCH_DELTA, MUCH_EPSILON, is_weak
from privsyn.errors import InputError, replace_errors
from privsyn.files import check_file

LARGEST_ERROR = 0.5
"""Errors from this share on have bars of the same length: such a table is noise."""

AMOUNTS = ("epsilon", "delta", "rows")
"""The numbers that are typed. What was refused stays on the screen."""


def show_run(session: Session) -> dict[str, Any]:
    """Show epsilon, the errors to expect and what was spent before, or the progress. No row is read."""
    is_running = session.job is not None and session.job.running
    choices = (session.ran if is_running else None) or session.chosen
    command = Command(choices)
    before, spent = command.spent()
    expectations, notes = ((), ()) if is_running else _expected(choices)
    amounts = {"epsilon": f"{choices.epsilon:g}", "delta": f"{choices.delta:g}"}
    amounts |= {"rows": "" if choices.rows is None else str(choices.rows)}
    typed, session.refused = amounts | session.refused, {}
    return {
        "choices": choices,
        "command": command,
        "formats": choices.formats,
        "stages": list(STAGES.values()),
        "job": session.job,
        "made": session.made,
        "open": [
            f"{name}.{entry.name}" if name else entry.name
            for name, table in choices.private.items()
            for entry in table.entries
            if entry.is_open and entry.name not in table.keys
        ],
        "epsilons": EPSILONS,
        "all_epsilons": ALL_EPSILONS,
        "guesses": [percent_of_guesses(epsilon, choices.delta) for epsilon in ALL_EPSILONS],
        "guess": percent_of_guesses(choices.epsilon, choices.delta),
        "typed": typed,
        "step": min(range(len(EPSILONS)), key=lambda step: abs(EPSILONS[step] - choices.epsilon)),
        "expectations": expectations,
        "notes": notes,
        "largest": LARGEST_ERROR,
        "before": before,
        "spent": spent,
    }


def _expected(choices: Choices) -> tuple[Any, tuple[str, ...]]:
    """Return the errors to expect and remarks on them, or why such a run cannot be planned."""
    try:
        planned = choices.plan()
    except InputError as error:  # what was chosen stays on the screen
        return (), (str(error),)
    return planned.expectations, planned.notes


def save_run(session: Session, form: Form) -> str:
    """Keep epsilon, delta, the format and the number of rows, and show the errors to expect."""
    choices = session.chosen
    session.refused = {name: field(form, name) for name in AMOUNTS if name in form}
    tried = deepcopy(choices)
    with replace_errors("epsilon and delta are numbers, such as 1.5 and 1e-9", ValueError):
        tried.epsilon, tried.delta = (
            float(field(form, name, str(amount)).replace(",", "."))
            for name, amount in (("epsilon", choices.epsilon), ("delta", choices.delta))
        )
    if is_weak(tried.epsilon, tried.delta) or not (tried.epsilon > 0 and 0 <= tried.delta < 1):
        raise InputError(
            f"give an epsilon above 0 and of {MUCH_EPSILON:g} at most, and a delta from 0 to {MUCH_DELTA:g}"
        )
    with replace_errors("the number of rows is a whole number, or nothing", ValueError):
        tried.rows = int(field(form, "rows")) if field(form, "rows").strip() else None
    if field(form, "ending") in choices.formats:
        tried.ending = field(form, "ending")
    tried.settings()  # raises if it cannot work: the choices of before stay
    session.choices, session.refused = tried, {}
    return "run"


def start(session: Session, form: Form) -> str:
    """Start the run: from now on epsilon may be spent."""
    if session.job is not None and session.job.running:
        return "run"
    if session.made and "again" not in form:
        raise InputError("say first that epsilon is spent once more")
    save_run(session, form)
    choices = session.chosen
    if choices.waiting():
        raise InputError("some columns were not confirmed: go back to them")
    choices.plan()  # raises if it cannot work
    if not choices.path.is_dir():
        check_file(choices.path)
    session.end()
    folder = session.workspace.empty_run()
    (folder / COMMAND).write_text(f"{Command(choices).text}\n", encoding="utf-8")
    if text := choices.schema_text():
        (folder / SCHEMA).write_text(text, encoding="utf-8")
    if choices.linked:
        (folder / RUN_SCHEMA).write_text(choices.schema_text(folder), encoding="utf-8")
    session.ran = deepcopy(choices)
    session.ran.show(choices.persons)
    session.job = Job(Command(choices).run(), folder, keeps=(session.workspace.lock,))
    session.workspace.taken = False
    return "run"


def cancel(session: Session, form: Form) -> str:
    """Stop the run. Before the first question nothing is spent."""
    if session.job is not None:
        session.job.end()
    return "run"
