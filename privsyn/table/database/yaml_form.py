"""A database from plain data, from a YAML file with ``tables:``, or from one table of the rows of persons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from privsyn.errors import InputError, about
from privsyn.table.database.computed_above import ComputedAbove
from privsyn.table.database.database import PERSONS, ROWS, Database
from privsyn.table.database.declared import Table
from privsyn.table.database.rules import about_columns_above, is_of_table
from privsyn.table.database.summaries import COUNT
from privsyn.table.kinds.column_settings import check_keys
from privsyn.table.kinds.keys import plain_key
from privsyn.table.schema.about import read_about
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import (
    SETTINGS,
    as_schema,
    declares_tables,
    from_plain,
    read_yaml,
    to_plain,
)

LINKS = (
    "key",
    "parent",
    "link",
    "order",
    "derive",
    "lookups",
    "dealt",
    "constant",
    "one",
    "children",
    "public",
)
"""What a table of a YAML file may have besides its schema."""

ABOVE = ("about", "tables")
"""What a file of several tables may have that is about them all."""


OF_PERSONS = ("constant", "one", "children")
"""What one table may have besides its schema, if its rows belong to persons."""


def as_database(schema: object) -> Database:
    """Return a database, given as such, as the path of a YAML file, or as the schema of a table, or None.

    A `Table` is one table with rules on the rows of each person.
    """
    if isinstance(schema, str | PathLike):
        schema = read_yaml(schema, declared_from_plain)
    if isinstance(schema, Table):
        settings = (setting for setting in LINKS if setting not in OF_PERSONS and getattr(schema, setting))
        if setting := next(settings, None):
            raise InputError(f"one table alone takes no {setting!r}: leave it out, or give a Database")
        return Database.of_one(schema)
    return schema if isinstance(schema, Database) else Database.of_one(as_schema(schema))


def declared_from_plain(plain: Any) -> Database:
    """Return what a file declares: tables, or one table with rules on the rows of each person."""
    if not isinstance(plain, Mapping) or declares_tables(plain):
        return (
            database_from_plain(plain) if isinstance(plain, Mapping) else Database.of_one(from_plain(plain))
        )
    return Database.of_one(_table_from_plain(plain, OF_PERSONS))


def database_from_plain(plain: Mapping[str, Any], *, bare: bool = False) -> Database:
    """Return the database that `database_to_plain` or a person wrote; `bare` as in `Database`."""
    if of_tables := [str(key) for key in plain if key in (*LINKS, *SETTINGS) and key not in ABOVE]:
        raise InputError(f"'{of_tables[0]}:' belongs to one table: write it there, as in tables: visits: ...")
    check_keys(plain, ABOVE, needed=("tables",))
    plain_tables = plain["tables"]
    if not isinstance(plain_tables, Mapping):
        raise InputError("'tables:' is a mapping of names to tables")
    tables = {}
    for name, plain_table in plain_tables.items():
        with about(f"table {name!r}"):
            if not isinstance(plain_table, Mapping):
                raise InputError("a table is a mapping such as {key: person_id, columns: {...}}")
            check_keys(plain_table, (*LINKS, *SETTINGS))
            tables[name] = _table_from_plain(plain_table, LINKS)
    return Database(tables, bare=bare, about=read_about(plain.get("about")))


def _table_from_plain(plain: Mapping[str, Any], settings: Sequence[str]) -> Table:
    """Return a table with its schema, and with the settings of a `Table` that it may have."""
    links = {setting: plain[setting] for setting in settings if setting in plain}
    rest = {setting: value for setting, value in plain.items() if setting not in settings}
    if isinstance(rules := rest.get("constraints"), list):
        links["constraints"] = [rule for rule in rules if is_of_table(rule)]
        if within := [rule for rule in rules if not is_of_table(rule)]:
            rest["constraints"] = within
        else:
            del rest["constraints"]
    if settings is OF_PERSONS:
        return Table(from_plain(rest), **links)
    only_keys = rest == {"columns": {}}  # what a single table cannot be
    with about_columns_above(links.get("parent")):
        schema = Schema({}) if only_keys else from_plain(rest) if rest else None
    return Table(schema, **links)


def database_to_plain(database: Database) -> dict[str, Any]:
    """Return plain data for YAML and JSON.

    >>> from privsyn import Numerical
    >>> database_to_plain(Database({"persons": Table(Schema({"age": Numerical(0, 9)}), key="person")}))
    {'tables': {'persons': {'key': 'person', 'columns': {'age': {'kind': 'numerical', 'low': 0, 'high': 9}}}}}
    """
    tables = {}
    for name, table in database.tables.items():
        links: dict[str, Any] = {
            setting: plain_key(getattr(table, setting)) for setting in LINKS[:4] if getattr(table, setting)
        }
        if table.derive:
            links["derive"] = {column: str(summary) for column, summary in table.derive.items()}
        lists = {"constant": list(table.constant), "one": list(map(str, table.one))}
        links |= {
            name: value
            for name, value in ({"lookups": dict(table.lookups), "dealt": dict(table.dealt)} | lists).items()
            if value
        }
        if table.children is not None:
            links["children"] = "..".join("" if end is None else str(end) for end in table.children)
        if table.public is not None:
            links["public"] = str(table.public) if isinstance(table.public, PathLike) else table.public
        schema = {} if table.schema is None else {"columns": {}, **to_plain(table.schema)}
        if table.constraints:
            rules = [
                rule.named_with(table.parent or "") if isinstance(rule, ComputedAbove) else str(rule)
                for rule in table.stated
            ]
            schema["constraints"] = [*rules, *schema.get("constraints", ())]
        tables[name] = links | schema
    above = {} if database.about is None else {"about": database.about.to_plain()}
    return {**above, "tables": tables}


def persons_and_rows(
    unit: str, database: Database, order: str | None = None, derive: Mapping[str, str] | None = None
) -> Database:
    """Return the database of one table whose rows belong to persons: a root without columns, and the rows.

    >>> from privsyn import Numerical
    >>> paid = Database.of_one(Schema({"paid": Numerical(0, 9)}))
    >>> database = persons_and_rows("who", paid, derive={"spent": "sum(paid)"})
    >>> database.names, str(database.tables["persons"].derive["spent"])
    (('persons', 'rows'), 'sum(rows.paid)')
    """
    summaries: dict[str, object] = dict(derive or {})
    for name, text in summaries.items():
        if isinstance(text, str):  # count() and sum(paid) are about the rows
            count = f"{COUNT}({ROWS})"
            summaries[name] = count if text == f"{COUNT}()" else text.replace("(", f"({ROWS}.", 1)
    persons = Table(Schema({}), key=unit, derive=summaries)
    rows = database.tables[ROWS]  # who has no row is no person of such a table
    children = (1, None) if rows.children is None else rows.children
    rows = replace(rows, parent=PERSONS, link=unit, order=order, children=children)
    return Database({PERSONS: persons, ROWS: rows}, single=ROWS)
