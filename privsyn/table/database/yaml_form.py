"""A database from plain data, from a YAML file with ``tables:``, or from one table of the rows of persons."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from privsyn.errors import InputError, about
from privsyn.table.database.database import PERSONS, ROWS, Database
from privsyn.table.database.declared import Table, about_columns_above
from privsyn.table.database.rules import is_of_table
from privsyn.table.database.summaries import COUNT
from privsyn.table.kinds.column_settings import check_keys
from privsyn.table.kinds.keys import plain_key
from privsyn.table.schema.about import read_about
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import SETTINGS, as_schema, from_plain, read_public, to_plain

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


def as_database(schema: object) -> Database:
    """Return a database, given as such, as the path of a YAML file, or as the schema of a table, or None."""
    if isinstance(schema, str | PathLike):
        schema = read_public(schema, database_from_plain)
    return schema if isinstance(schema, Database) else Database.of_one(as_schema(schema))


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
            links = {setting: plain_table[setting] for setting in LINKS if setting in plain_table}
            rest = {setting: value for setting, value in plain_table.items() if setting not in LINKS}
            if isinstance(rules := rest.get("constraints"), list):
                links["constraints"] = [rule for rule in rules if is_of_table(rule)]
                if within := [rule for rule in rules if not is_of_table(rule)]:
                    rest["constraints"] = within
                else:
                    del rest["constraints"]
            only_keys = rest == {"columns": {}}  # what a single table cannot be
            with about_columns_above(links.get("parent")):
                schema = Schema({}) if only_keys else from_plain(rest) if rest else None
            tables[name] = Table(schema, **links)
    return Database(tables, bare=bare, about=read_about(plain.get("about")))


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
            schema["constraints"] = [*map(str, table.constraints), *schema.get("constraints", ())]
        tables[name] = links | schema
    above = {} if database.about is None else {"about": database.about.to_plain()}
    return {**above, "tables": tables}


def persons_and_rows(
    unit: str, schema: Any, order: str | None = None, derive: Mapping[str, str] | None = None
) -> Database:
    """Return the database of one table whose rows belong to persons: a root without columns, and the rows.

    >>> from privsyn import Numerical
    >>> database = persons_and_rows("who", Schema({"paid": Numerical(0, 9)}), derive={"spent": "sum(paid)"})
    >>> database.names, str(database.tables["persons"].derive["spent"])
    (('persons', 'rows'), 'sum(rows.paid)')
    """
    summaries: dict[str, object] = dict(derive or {})
    for name, text in summaries.items():
        if isinstance(text, str):  # count() and sum(paid) are about the rows
            count = f"{COUNT}({ROWS})"
            summaries[name] = count if text == f"{COUNT}()" else text.replace("(", f"({ROWS}.", 1)
    persons = Table(Schema({}), key=unit, derive=summaries)
    rows = Table(schema, parent=PERSONS, link=unit, order=order)
    return Database({PERSONS: persons, ROWS: rows}, single=ROWS)
