"""The screens: one question each, with what it shows and what its buttons do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader

from privsyn.app.choices import (
    ALL_EPSILONS,
    COMMAND,
    CSV_SETTINGS,
    EPSILONS,
    OUTPUTS,
    RUN_SCHEMA,
    SCHEMA,
    Choices,
    percent_of_guesses,
)
from privsyn.app.column_entries import KINDS, Entry, Form, in_the_form
from privsyn.app.command import Command
from privsyn.app.comparison import COMPARISON, compare, show_compare, stop_comparing
from privsyn.app.job import STAGES, Job
from privsyn.app.linking import draft_links, leave_links, save_links, show_tables
from privsyn.app.quality import quality_of
from privsyn.app.results import ALL, listed, size
from privsyn.app.session import Session
from privsyn.app.workspace import HERE, tables_of
from privsyn.arguments import MUCH_DELTA, MUCH_EPSILON, is_weak
from privsyn.errors import InputError, replace_errors
from privsyn.files import check_file
from privsyn.pages.sections import FOLDER as PAGES
from privsyn.pages.sections import environment
from privsyn.table.io.formats import holds_tables
from privsyn.table.kinds.csv_format import CsvFormat

TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True)
class Screen:
    """One screen: its name in the address, its title, and what it shows and does.

    Parameters
    ----------
    name, title : str
    question : str
        The one question that it asks.
    show : callable
        Returns what the template shows, by name.
    actions : mapping of a button to a callable
        Each takes the form, and returns the name of the next screen.
    ready : callable
        Whether it can be shown yet.
    tab_of : str
        The screen that it is a tab of. It is no step of its own.
    linked : bool
        Whether it is about several tables, and no step for one.
    """

    name: str
    title: str
    question: str
    show: Callable[[Session], dict[str, Any]]
    actions: Mapping[str, Callable[[Session, Form], str]]
    ready: Callable[[Session], bool]
    tab_of: str = ""
    linked: bool = False


def field(form: Form, name: str, default: str = "") -> str:
    """Return the value of a field that has one."""
    return form.get(name, [default])[0]


# 1. Choose


def show_choose(session: Session) -> dict[str, Any]:
    """List the tables and folders of the start folder, or the tables of the chosen database."""
    database = session.database
    tables = [] if database is None else tables_of(database)
    workspace = session.workspace
    return {
        "listed": workspace.listed(),
        "folders": workspace.folders(),
        "here": HERE,
        "database": database and database.name,
        "tables": tables,
    }


def choose(session: Session, form: Form) -> str:
    """Take a file or folder of the start folder."""
    return open_file(session, session.workspace.inside(field(form, "file")))


def choose_table(session: Session, form: Form) -> str:
    """Take a table of the database that was chosen, or all tables together."""
    database, name = session.database, field(form, "table")
    if database is None or name not in ("", *tables_of(database)):
        raise InputError("choose a table that is in the list")
    return _opened(session, database, name)


def open_file(session: Session, path: Path) -> str:
    """Begin with a file or folder. A database with several tables asks for one of them or all."""
    if path.is_file() and tables_of(path):
        session.database = path
        return "choose"
    return _opened(session, path)


def _opened(session: Session, path: Path, inside: str = "", csv: CsvFormat | None = None) -> str:
    """Begin with one table, or with several; return the next screen."""
    session.open(path, inside, csv)
    return "tables" if session.chosen.linked else "columns"


# 2. Columns


def show_columns(session: Session) -> dict[str, Any]:
    """Show a row for each column of a table."""
    choices = session.chosen
    table = choices.table
    waiting = {name: len(private.waiting()) for name, private in choices.private.items()}
    return {
        "choices": choices,
        "table": table,
        "kinds": KINDS,
        "waiting": table.waiting(),
        "numbers": {entry.name: number for number, entry in enumerate(table.entries)},
        "folded": [entry.name for entry in table.plain_columns()],
        "tables": [*choices.private],
        "need": {name: f"{number} to do" if number else "" for name, number in waiting.items()},
        "proposed": table.proposed(),
        "csv_settings": CSV_SETTINGS,
    }


def reread(session: Session, form: Form) -> str:
    """Read the names again, of a CSV that is written in another way."""
    typed: dict[str, Any] = {
        name: field(form, name)
        for name in (*(name for name, _, _ in CSV_SETTINGS), "encoding")
        if field(form, name)  # a blank between thousands is one
    }
    if typed.get("delimiter") == "tab":
        typed["delimiter"] = "\t"
    choices = session.chosen
    return _opened(session, choices.path, choices.inside, CsvFormat(**typed))


def draft(session: Session, form: Form) -> str:
    """Draft the columns from the rows, which the person asked for."""
    session.chosen.draft(session.chosen.persons or None)
    return "tables" if session.chosen.linked else "columns"


def save_columns(session: Session, form: Form) -> str:
    """Keep what was typed."""
    choices, table = session.chosen, session.chosen.table
    if field(form, "table") != table.data:  # another tab may show a table that was chosen before
        raise InputError("this form was for another table: here are the columns of the one chosen last")
    shown = {int(number) for number in form.get("shown", ()) if number.isdecimal()}
    table.entries = [
        entry.changed(form, number) if number in shown else entry
        for number, entry in enumerate(table.entries)
    ]
    if "relations" in form:  # the part of the form with constraints and pairs was shown
        # By what they say: a page that is older than a draft would tick others by their places.
        ticked = {line.replace("\r\n", "\n") for line in form.get("accept", ())}
        table.accepted = {number for number, rule in enumerate(table.proposed()) if rule.line in ticked}
        table.rules, table.missing = field(form, "rules"), tuple(form.get("mark", ()))
        pairs = {int(number) for number in form.get("pair", ()) if number.isdecimal()}
        table.important = [pair for number, pair in enumerate(table.important) if number in pairs]
        if added := [field(form, name) for name in ("first", "second") if field(form, name)]:
            if len(set(added)) < 2 or not set(added) <= set(table.names):
                raise InputError("choose two different columns")
            table.important.append(added)
    choices.schema()
    return "columns"


def show_table(session: Session, form: Form) -> str:
    """Keep what was typed, and show another table."""
    save_columns(session, form)
    session.chosen.show(field(form, "do").partition(" ")[2])
    return "columns"


def confirm_all(session: Session, form: Form) -> str:
    """Confirm all columns of a table, or the rest: the person says that what stands there is public."""
    save_columns(session, form)
    session.chosen.table.confirm(plain=field(form, "do").endswith("rest"))
    return "columns"


def leave_columns(session: Session, form: Form) -> str:
    """Go on to the next table, or beyond, if no column needs a person any more."""
    save_columns(session, form)
    choices = session.chosen
    if waiting := choices.table.waiting():
        raise InputError(f"look at {_named(waiting)} first: confirm what may be public, or change it")
    choices.table.seen = True
    for name, table in choices.private.items():
        if table.waiting() or not table.seen:
            choices.show(name)
            return "columns"
    return "promise"


def _named(entries: Sequence[Entry]) -> str:
    names = ", ".join(repr(entry.name) for entry in entries[:3])
    return names + (f" and {len(entries) - 3} more columns" if len(entries) > 3 else "")


# 3. Whom and how much


def show_promise(session: Session) -> dict[str, Any]:
    """Show whom the promise protects, epsilon, and what errors to expect. No row is read."""
    choices, start = session.chosen, session.workspace.start
    fields = {
        "protects": "person" if choices.unit or choices.linked else "row" if choices.protects else "",
        "unit": choices.unit or "",
    }
    fields |= {
        "epsilon": f"{choices.epsilon:g}",
        "delta": f"{choices.delta:g}",
        "target": choices.target or "",
        "public": "" if choices.public is None else str(choices.public.relative_to(start)),
    }
    typed, session.refused = fields | session.refused, {}
    guesses = [percent_of_guesses(epsilon, choices.delta) for epsilon in ALL_EPSILONS]
    try:
        planned = choices.plan()
        expectations, notes = planned.expectations, planned.notes
    except InputError as error:  # such a promise cannot be planned; what was chosen stays on the screen
        expectations, notes = (), (str(error),)
    return {
        "choices": choices,
        "listed": _like(choices, session),
        "epsilons": EPSILONS,
        "all_epsilons": ALL_EPSILONS,
        "guesses": guesses,
        "guess": percent_of_guesses(choices.epsilon, choices.delta),
        "typed": typed,
        "step": min(range(len(EPSILONS)), key=lambda step: abs(EPSILONS[step] - choices.epsilon)),
        "expectations": expectations,
        "largest": LARGEST_ERROR,
        "notes": notes,
    }


def _like(choices: Choices, session: Session) -> list[str]:
    """Return what may be a public table like the private one; of several, a folder or a database."""
    workspace = session.workspace
    names = workspace.listed()
    if choices.linked:
        names = [*(folder for folder in workspace.folders() if folder != HERE), *filter(holds_tables, names)]
    return [name for name in names if not _is_part(workspace.start / name, choices.path)]


def _is_part(path: Path, of_path: Path) -> bool:
    return path == of_path or of_path in path.parents


LARGEST_ERROR = 0.5
"""Errors from this share on have bars of the same length: such a table is noise."""


def save_promise(session: Session, form: Form) -> str:
    """Keep the promise and the target, and show the errors to expect."""
    choices, session.refused = session.chosen, {name: field(form, name) for name in PROMISE}
    protects, unit = field(form, "protects"), field(form, "unit")
    if protects not in ("row", "person"):
        raise InputError("say whom to protect: one row, or one person with all rows")
    if protects == "person" and not choices.linked and unit not in choices.table.names:
        raise InputError("choose the column that names the persons")
    with replace_errors("epsilon and delta are numbers, such as 1.5 and 1e-9", ValueError):
        epsilon, delta = (float(field(form, name).replace(",", ".")) for name in ("epsilon", "delta"))
    target, name = field(form, "target") or None, field(form, "public")
    public = session.workspace.inside(name) if name else None
    if public is not None and _is_part(public, choices.path):
        raise InputError("the public table is the private table itself: choose one that anybody may read")
    if is_weak(epsilon, delta) or not (epsilon > 0 and 0 <= delta < 1):
        raise InputError(
            f"give an epsilon above 0 and of {MUCH_EPSILON:g} at most, and a delta from 0 to {MUCH_DELTA:g}"
        )
    tried = deepcopy(choices)
    tried.epsilon, tried.delta, tried.target, tried.public = epsilon, delta, target, public
    if not choices.linked:
        tried.table.links = {"link": unit} if protects == "person" else {}
    tried.protects = True
    tried.settings()  # raises if it cannot work: the promise of before stays
    session.choices, session.refused = tried, {}
    return "promise"


PROMISE = ("protects", "unit", "epsilon", "delta", "target", "public")
"""The fields of the promise. What was refused stays on the screen."""


def leave_promise(session: Session, form: Form) -> str:
    """Go on to the last look, if such a run can be planned."""
    save_promise(session, form)
    session.chosen.plan()  # raises if it cannot work
    return "run"


# 4. Run


def show_run(session: Session) -> dict[str, Any]:
    """Show the last look, or the progress of the run."""
    working = session.job is not None and session.job.running
    choices = (session.ran if working else None) or session.chosen
    command = Command(choices)
    before, spent = command.spent()
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
        "guess": percent_of_guesses(choices.epsilon, choices.delta),
        "before": before,
        "spent": spent,
    }


def start(session: Session, form: Form) -> str:
    """Start the run: from now on epsilon may be spent."""
    choices = session.chosen
    if session.job is not None and session.job.running:
        return "run"
    if session.made and "again" not in form:
        raise InputError("say first that epsilon is spent once more")
    if field(form, "ending") in choices.formats:
        choices.ending = field(form, "ending")
    with replace_errors("the number of rows is a whole number, or nothing", ValueError):
        choices.rows = int(field(form, "rows")) if field(form, "rows").strip() else None
    if choices.waiting():
        raise InputError("some columns were not confirmed: go back to them")
    choices.settings()
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


# 5. Look


def show_look(session: Session) -> dict[str, Any]:
    """Show the synthetic rows of a table beside the estimates of the release."""
    choices, job = session.made_from, session.job
    if job is None:
        raise InputError("there is no run yet")
    at = choices.at
    if (job, at) not in session.quality:
        model = session.results / OUTPUTS["--model"]
        session.quality[job, at] = quality_of(model, session.results / choices.out, at)
    facts = {"choices": choices, "tables_shown": [*choices.private], "messages": job.messages}
    return facts | session.quality[job, at]


def look_at(session: Session, form: Form) -> str:
    """Show another table."""
    session.made_from.show(field(form, "do").partition(" ")[2])
    return "look"


# 6. Take


def show_take(session: Session) -> dict[str, Any]:
    """List the files."""
    compared = (session.results / COMPARISON).is_file()
    private = COMPARISON if compared and session.comparison is not None else ""
    choices = session.made_from
    command = Command(choices)
    _, spent = command.spent()
    files = {"files": listed(session.results), "all": ALL, "private": private}
    return {"choices": choices, "command": command, "spent": spent} | files


def forget(session: Session, form: Form) -> str:
    """Remove all files and choices, once the person has said that nothing more is needed."""
    if "sure" not in form:
        raise InputError("say first that you have taken what you need")
    session.forget()
    return "choose"


SCREENS = {
    screen.name: screen
    for screen in (
        Screen(
            "choose",
            "Choose",
            "Which table?",
            show_choose,
            {"choose": choose, "table": choose_table},
            lambda session: True,
        ),
        Screen(
            "tables",
            "Tables",
            "How do the tables hang together?",
            show_tables,
            {"reread": reread, "draft": draft_links, "save": save_links, "next": leave_links},
            lambda session: session.choices is not None and session.choices.linked,
            linked=True,
        ),
        Screen(
            "columns",
            "Columns",
            "What are its columns?",
            show_columns,
            {
                "reread": reread,
                "draft": draft,
                "save": save_columns,
                "show": show_table,
                "confirm": confirm_all,
                "next": leave_columns,
            },
            lambda session: session.choices is not None and not session.choices.problem_of_links(),
        ),
        Screen(
            "promise",
            "Whom and how much",
            "Whom does it protect, and how well?",
            show_promise,
            {"save": save_promise, "next": leave_promise},
            lambda session: session.choices is not None and session.choices.complete,
        ),
        Screen(
            "run",
            "Run",
            "May it start?",
            show_run,
            {"start": start, "cancel": cancel},
            lambda session: session.choices is not None and session.choices.protects,
        ),
        Screen(
            "look",
            "Look",
            "Is it good enough?",
            show_look,
            {"show": look_at},
            lambda session: session.made,
        ),
        Screen(
            "compare",
            "Compare",
            "How far is it from the real rows?",
            show_compare,
            {"compare": compare, "stop": stop_comparing},
            lambda session: session.made,
            tab_of="look",
        ),
        Screen(
            "take", "Take", "What do you keep?", show_take, {"forget": forget}, lambda session: session.made
        ),
    )
}
"""All screens, in the order of a person's way through them."""


def render(name: str, session: Session, values: dict[str, Any]) -> str:
    """Return a screen as HTML."""
    templates = environment()
    templates.loader = FileSystemLoader([TEMPLATES, PAGES])
    templates.filters |= {"size": size, "in_the_form": in_the_form}
    is_linked = session.choices is not None and session.choices.linked
    screens = [
        (screen, screen.ready(session))
        for screen in SCREENS.values()
        if not screen.tab_of and (is_linked or not screen.linked)
    ]
    problem, session.problem = session.problem, ""
    page = templates.get_template(f"{name}.html")
    return page.render(values, screen=SCREENS[name], screens=screens, problem=problem)
