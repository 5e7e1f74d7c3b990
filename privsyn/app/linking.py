"""Screen Tables: how several tables hang together, whose rows are the persons, and which anybody may know."""

from __future__ import annotations

from typing import Any

from privsyn.app.choices import CSV_SETTINGS, Choices
from privsyn.app.column_entries import Form
from privsyn.app.session import Session
from privsyn.app.table_choices import LEFT_OUT, PRIVATE, PUBLIC, TableChoices
from privsyn.errors import InputError
from privsyn.pages.diagram import Box, diagram
from privsyn.pages.sections import many

PERSONS, OTHERS = "persons", "rows of "
"""What the rows of a private table are: the persons, or rows of another table, whose name follows."""


def show_tables(session: Session) -> dict[str, Any]:
    """Show the diagram, and for each table what its rows are and how they are linked."""
    choices = session.chosen
    problem = choices.problem_of_links()
    return {
        "choices": choices,
        "wrong": problem,
        "drawing": diagram("The tables and how they are linked", boxes(choices)),
        "roles": {name: role_of(table) for name, table in choices.tables.items()},
        "csv_settings": CSV_SETTINGS,
    }


def role_of(table: TableChoices) -> str:
    """Return what the rows of a table are, as the form says it."""
    parent = table.links.get("parent")
    return table.use if table.use != PRIVATE else f"{OTHERS}{parent}" if parent else PERSONS


def boxes(choices: Choices) -> list[Box]:
    """Return what the diagram says of each table, each after its parent. No number of rows is in it."""
    drawn: dict[str, Box] = {}
    private = choices.private
    waiting = [name for name in private if private[name].links.get("parent") not in private]
    while waiting:
        name = waiting.pop(0)
        table = private[name]
        parent = table.links.get("parent") if table.links.get("parent") in private else None
        lines = ["the persons"] if name == choices.persons else []
        lines += [f"key {_named(table.links['key'])}"] if table.links.get("key") else []
        lines += [f"in the order of {table.links['order']}"] if table.links.get("order") else []
        lines.append(many(len(set(table.names) - {*table.keys}), "column"))
        label = _named(table.links.get("link") or "no column leads there")
        drawn[name] = Box(name, lines, parent, label, _lookups(choices, table))
        waiting += [below for below in private if private[below].links.get("parent") == name]
    public = [table for table in choices.tables.values() if table.use == PUBLIC]
    return [
        *drawn.values(),
        *(
            Box(table.name, [f"key {_named(table.links.get('key', ''))}", "public, as it is"], public=True)
            for table in public
        ),
    ]


def _lookups(choices: Choices, table: TableChoices) -> dict[str, str]:
    """Return the public table to which each column leads: as drafted, and those with the name of its key."""
    public = {name: lookup for name, lookup in choices.tables.items() if lookup.use == PUBLIC}
    by_name = {lookup.links.get("key"): name for name, lookup in public.items()}
    leads = {column: by_name[column] for column in table.names if column in by_name}
    return leads | {column: lookup for column, lookup in table.lookups.items() if lookup in public}


def _named(columns: Any) -> str:
    return ", ".join(columns) if isinstance(columns, list) else str(columns)


def draft_links(session: Session, form: Form) -> str:
    """Draft links and columns from the rows of all tables, which the person asked for."""
    persons = form.get("persons", [""])[0]
    session.chosen.draft(persons or None)
    return "tables"


def save_links(session: Session, form: Form) -> str:
    """Keep what was chosen about the links."""
    choices = session.chosen
    if form.get("tables", [""])[0] != choices.listed:  # another tab may show what was chosen before
        raise InputError("this form was for other tables: here are those chosen last")
    for number, (name, table) in enumerate(choices.tables.items()):
        if f"role-{number}" in form:
            end = f"-{number}"  # of the names of the table's fields
            fields = {name.removesuffix(end): values for name, values in form.items() if name.endswith(end)}
            _take(table, fields, choices)
        if choices.at == name and table.use != PRIVATE:
            choices.at = next(iter(choices.private), name)
    return "tables"


def _take(table: TableChoices, form: Form, choices: Choices) -> None:
    """Take what the form says of one table, by the names of its fields."""
    role = form["role"][0]
    links = dict(table.links)
    for setting in ("key", "link", "order"):
        column = form.get(setting, [""])[0]
        if column != _named(links.get(setting) or ""):  # a key of several columns stays as it is
            links[setting] = column if column in table.names else ""
    parent = role.removeprefix(OTHERS) if role.startswith(OTHERS) else ""
    links["parent"] = parent if parent in choices.tables and parent != table.name else ""
    if not links["parent"]:
        links["link"] = links["order"] = ""
    table.use = (
        PUBLIC if "public" in form and table.may_be_public else LEFT_OUT if role == LEFT_OUT else PRIVATE
    )
    table.links = {setting: column for setting, column in links.items() if column}
    table.taken = {name for name in form.get("summary", ()) if name in table.summaries}
    table.confirmed = "confirmed" in form
    table.more = form.get("more", [table.more])[0]


def leave_links(session: Session, form: Form) -> str:
    """Go on to the columns, if the links are clear and confirmed."""
    save_links(session, form)
    if problem := session.chosen.problem_of_links():
        raise InputError(problem)
    return "people"
