"""Screen Table and people: the file, then six questions; the columns are folded behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from privsyn.app.choices import ABOUT, CSV_SETTINGS, Choices
from privsyn.app.column_entries import KINDS, Entry, Form, field
from privsyn.app.session import Session
from privsyn.app.workspace import HERE, tables_of
from privsyn.errors import InputError, plural
from privsyn.table.io.formats import SHEETS, holds_tables, sheets_in
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.about import read_about

ANSWERS = ("protects", "unit", "order", "target", "public", *ABOUT)
"""The fields of the questions about all tables. What was refused stays on the screen."""

RULES_SHOWN, NAMES_SHOWN = 4, 12
"""Most rules and most columns with listed values that are shown at once: the others are folded."""


# The file


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
        "together": "" if database is None or sheets_in(database) else "All together, as they are linked",
        "sheets": SHEETS,
    }


def choose(session: Session, form: Form) -> str:
    """Take a file or folder of the start folder."""
    return open_file(session, session.workspace.inside(field(form, "file")))


def choose_table(session: Session, form: Form) -> str:
    """Take a table of the database that was chosen, or all tables together."""
    database, name = session.database, field(form, "table")
    together = [] if database is None or sheets_in(database) else [""]
    if database is None or name not in (*together, *tables_of(database)):
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
    return "tables" if session.chosen.linked else "people"


def reread(session: Session, form: Form) -> str:
    """Read the names again, of a CSV that is written in another way."""
    typed: dict[str, Any] = {
        name: field(form, name)
        for name in (*(name for name, _, _ in CSV_SETTINGS), "encoding")
        if field(form, name)  # a blank between thousands is one
    }
    if typed.get("delimiter") == "tab":
        typed["delimiter"] = "\t"
    typed["header"] = typed.get("header") == str(True)
    choices = session.chosen
    return _opened(session, choices.path, choices.inside, CsvFormat(**typed))


# The questions


def show_people(session: Session) -> dict[str, Any]:
    """Show the questions, and a row for each column of a table, first those that need the person."""
    choices, start = session.chosen, session.workspace.start
    table = choices.table
    protects = "person" if choices.unit or choices.linked else "row" if choices.protects else ""
    answers = {"protects": protects, "unit": choices.unit or "", "order": choices.order or ""}
    answers |= {"target": choices.target or ""}
    answers |= {"public": "" if choices.public is None else str(choices.public.relative_to(start))}
    answers |= {name: choices.about.get(name, "") for name in ABOUT}
    typed, session.refused = answers | session.refused, {}
    notice, session.notice = session.notice, ""
    waiting = {name: len(private.waiting()) for name, private in choices.private.items()}
    plain, proposed = [entry.name for entry in table.plain_columns()], table.proposed()
    return {
        "choices": choices,
        "table": table,
        "typed": typed,
        "notice": notice,
        "about": ABOUT,
        "listed": _like(choices, session),
        "kinds": KINDS,
        "waiting": table.waiting(),
        "numbers": {entry.name: number for number, entry in enumerate(table.entries)},
        "columns": sorted(table.entries, key=lambda entry: not table.needs_person(entry)),
        "folded": plain,
        "naming": [entry for entry in table.entries if entry.names_values and entry.name not in table.keys],
        "names_shown": NAMES_SHOWN,
        "tables": [*choices.private],
        "need": {name: f"{number} to do" if number else "" for name, number in waiting.items()},
        "proposed": proposed,
        "accepted": [rule.line for number, rule in enumerate(proposed) if number in table.accepted],
        "rules_shown": RULES_SHOWN,
        "csv_settings": CSV_SETTINGS,
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


def draft(session: Session, form: Form) -> str:
    """Draft the columns from the rows, which the person asked for. The answers are kept, columns are not."""
    _take_answers(session, form)
    session.chosen.draft(session.chosen.persons or None)
    return "tables" if session.chosen.linked else "people"


def draft_rules(session: Session, form: Form) -> str:
    """Look for rules from row to row of a person, which the person asked for. Columns and ticks stay."""
    save_people(session, form)
    session.chosen.draft_rules()
    return "people"


def save_people(session: Session, form: Form) -> str:
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
        table.constant = tuple(name for name in table.steady if name in form.get("constant", ()))
        table.rules, table.missing = field(form, "rules"), tuple(form.get("mark", ()))
        offered, unnamed = form.get("offered", ()), form.get("unnamed", ())
        table.entries = [
            replace(entry, unnamed=entry.name in unnamed) if entry.name in offered else entry
            for entry in table.entries
        ]
        pairs = {int(number) for number in form.get("pair", ()) if number.isdecimal()}
        table.important = [pair for number, pair in enumerate(table.important) if number in pairs]
        if added := [field(form, name) for name in ("first", "second") if field(form, name)]:
            if len(set(added)) < 2 or not set(added) <= set(table.names):
                raise InputError("choose two different columns")
            table.important.append(added)
    _take_answers(session, form)
    choices.schema()
    return "people"


def _take_answers(session: Session, form: Form) -> None:
    """Take whom to protect, what it is for, and who publishes. An answer that the form lacks stays."""
    choices = session.chosen
    session.refused = {name: field(form, name) for name in ANSWERS if name in form}
    if "protects" in form:
        protects, unit = field(form, "protects"), field(form, "unit")
        if protects not in ("row", "person"):
            raise InputError("say whom to protect: one row, or one person with all rows")
        if protects == "person" and not choices.linked and unit not in choices.table.names:
            raise InputError("choose the column that names the persons")
        if not choices.linked:
            links = {"link": unit, "order": field(form, "order")} if protects == "person" else {}
            if unit and unit == field(form, "order"):
                raise InputError(
                    "the column of persons gives their rows no order: choose another one, or none"
                )
            choices.table.name_persons({setting: column for setting, column in links.items() if column})
        choices.protects = True
    if "target" in form:
        choices.target = field(form, "target") or None
    if "public" in form:
        name = field(form, "public")
        public = session.workspace.inside(name) if name else None
        if public is not None and _is_part(public, choices.path):
            raise InputError("the public table is the private table itself: choose one that anybody may read")
        choices.public = public
    about = {name: field(form, name).strip() for name in ABOUT if name in form}
    about = {name: words for name, words in (choices.about | about).items() if words}
    read_about(about or None)  # raises if a word is not of its form
    choices.about, session.refused = about, {}


def show_table(session: Session, form: Form) -> str:
    """Keep what was typed, and show another table."""
    save_people(session, form)
    session.chosen.show(field(form, "do").partition(" ")[2])
    return "people"


def confirm_all(session: Session, form: Form) -> str:
    """Confirm all columns of a table, or the rest: the person says that what stands there is public."""
    save_people(session, form)
    table = session.chosen.table
    before = len(table.waiting())
    table.confirm(plain=field(form, "do").endswith("rest"))
    waiting = len(table.waiting())
    still = f"{plural(waiting, 'column')} still to be confirmed" if waiting else "Nothing is left to confirm"
    session.notice = f"You confirmed {plural(before - waiting, 'column')} together. {still}."
    return "people"


def leave_people(session: Session, form: Form) -> str:
    """Go on to the next table, or beyond, if nothing needs a person any more."""
    save_people(session, form)
    choices = session.chosen
    if not choices.protects and not choices.linked:
        raise InputError("say whom to protect: one row, or one person with all rows")
    if waiting := choices.table.waiting():
        raise InputError(f"look at {_named(waiting)} first: confirm what may be public, or change it")
    choices.table.seen = True
    for name, table in choices.private.items():
        if table.waiting() or not table.seen:
            choices.show(name)
            return "people"
    choices.settings()  # raises if they cannot work
    choices.protects = True
    return "run"


def _named(entries: Sequence[Entry]) -> str:
    names = ", ".join(repr(entry.name) for entry in entries[:3])
    return names + (f" and {len(entries) - 3} more columns" if len(entries) > 3 else "")
