"""A codebook as the text of a schema file, and as a `Schema` or `Database`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from textwrap import indent
from typing import Any

from privsyn.errors import InputError, about
from privsyn.table.codebooks.codebook import Codebook, CodebookTable
from privsyn.table.codebooks.declare import LEFT_OPEN, Declared, declare
from privsyn.table.codebooks.layout import CodebookLayout, PlacedTable
from privsyn.table.codebooks.readers import read_file
from privsyn.table.database.database import Database
from privsyn.table.database.yaml_form import database_from_plain
from privsyn.table.io.formats import SEPARATOR
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.kinds.keys import plain_key
from privsyn.table.schema.about import TO_FILL, About
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_comments import comment, wrapped
from privsyn.table.schema.yaml_file import constraint_lines, declares_tables, dump, from_plain, parse, to_yaml

HEADER = """\
# SCHEMA, made from the codebook {file} ({kind}). No row was read.
# What stands here is public because the codebook is. If its ranges or lists were made from the rows, as some
# programs make them, ask whether that codebook was published. "{open}" is what it lacks: a run finds it
# under privacy, for a part of the budget. Add it here if anybody may know it.
"""

SEVERAL = (
    "The rows of {persons} are the persons, who are protected with all rows that belong to them.{chosen} Keys"
    " and links are those of the codebook. Tables that it lists and this schema lacks stand at the end."
)


def read_codebook(path: str | PathLike[str], table: str | None = None) -> Schema | Database:
    """Return what a public codebook says of a table as a `Schema`, or of linked tables as a `Database`.

    No row is read. What the codebook lacks is left open, as in a schema without values or bounds.

    Parameters
    ----------
    path : path
        A ``datapackage.json`` or Table Schema of Frictionless, metadata of CSVW, a JSON Schema, a
        DDI-Codebook, a file of SPSS, Stata or SAS, a data dictionary of REDCap, or a script of SQL. The last
        three need the extra ``codebooks``, as DDI does.
    table : str, optional
        One of several tables. Default: all, linked by their keys.

    Raises
    ------
    InputError
        If it is no codebook, or what it says contradicts itself.
    """
    return _as_declared(codebook_text(path if table is None else f"{path}{SEPARATOR}{table}"))


def _as_declared(text: str) -> Schema | Database:
    """Return what the text of a schema file declares."""
    plain = parse(text)
    return database_from_plain(plain) if declares_tables(plain) else from_plain(plain)


def located(location: str | PathLike[str]) -> tuple[Path, str | None]:
    """Return the file of a codebook, and the table that is named after it.

    >>> located("datapackage.json::people")
    (PosixPath('datapackage.json'), 'people')
    """
    file, _, table = str(location).partition(SEPARATOR)
    return Path(file), table or None


def codebook_text(
    location: str | PathLike[str],
    persons: str | None = None,
    public: Collection[str] = (),
    also: Collection[str] = (),
    *,
    folder: Path | None = None,
) -> str:
    """Return what a codebook says as the text of a schema file.

    Parameters
    ----------
    location : path, or path and table
        As ``datapackage.json`` or ``datapackage.json::people``.
    persons, public, also : as for a draft of several tables
    folder : Path, optional
        Where the schema will be: paths of public tables begin there. Default: the working folder.
    """
    path, name = located(location)
    codebook = read_file(path)
    header = HEADER.format(file=path.name, kind=codebook.kind, open=LEFT_OPEN) + about_lines(codebook)
    with about(str(path)):
        if name is not None or len(codebook.tables) == 1:
            if persons is not None or public or also:
                option = "--persons" if persons is not None else "--public" if public else "--also"
                raise InputError(f"{option}: it names one of several tables, and this is one")
            table = codebook.table(name)
            text = header + table_text(table, columns_of(table))
            _as_declared(text)
            return text
        layout = CodebookLayout.of(codebook, persons, public, also)
        text = header + _several(layout, path, folder or Path())
        _as_declared(text)
        return text


def about_lines(codebook: Codebook) -> str:
    """Return the lines of `about:`: title, publisher, licence and contact, those of another form as comments.

    If the codebook has none of them, they are lines to be filled in.

    >>> print(about_lines(Codebook(kind="DDI", tables={}, title="Visits", licence="see the site")), end="")
    about: {title: Visits}
    # The codebook's licence, which has another form: see the site
    """
    words: dict[str, Any] = {}
    lines = ""
    for name in ("title", "publisher", "licence", "contact"):
        if not (text := getattr(codebook, name)):
            continue
        try:
            words |= About(**{name: text}).to_plain()
        except InputError:
            lines += comment(f"The codebook's {name}, which has another form: {text}")
    return (dump({"about": words}, flow=None) if words else TO_FILL) + lines


def columns_of(table: CodebookTable, *, labelled: bool = False) -> dict[str, Declared]:
    """Return the columns of a table as declared."""
    return {column.name: declare(column, labelled=labelled) for column in table.columns}


def table_text(table: CodebookTable, columns: Mapping[str, Declared], rules: Collection[str] = ()) -> str:
    """Return the lines of a schema of one table; `rules` are about other tables, too."""
    schema = replace(schema_of_columns(table, columns), constraints=())
    notes = {
        name: "\n".join(line for note in declared.notes for line in wrapped(note))
        for name, declared in columns.items()
        if declared.notes
    }
    lines = "".join(map(comment, filter(None, (table.label, *table.remarks))))
    if columns:
        lines += to_yaml(schema, notes)
    else:
        lines += (to_yaml(Schema({}, csv=table.csv)) if table.csv != CsvFormat() else "") + "columns: {}\n"
    listed = [*rules, *_constraints(table, columns)]
    if listed:
        lines += "constraints:\n" + "\n".join(constraint_lines(listed)) + "\n"
    return lines


def schema_of_columns(table: CodebookTable, columns: Mapping[str, Declared]) -> Schema:
    """Return the schema of some columns of a table, with the constraints on them alone."""
    kinds = {name: declared.column for name, declared in columns.items()}
    values = {str(value) for declared in columns.values() for value in declared.column.listed}
    marks = [mark for mark in table.missing if mark not in values]  # a listed value is no mark
    return Schema(kinds, missing=marks, csv=table.csv, constraints=_constraints(table, columns))


def _constraints(table: CodebookTable, columns: Mapping[str, Declared]) -> list[str]:
    """Return the constraints of which both sides are columns of data."""
    return [rule for rule in table.constraints if _is_about(rule, columns)]


def _is_about(rule: str, columns: Mapping[str, Declared]) -> bool:
    """Return whether both sides of a comparison are columns of data."""
    sides = (
        side.strip(" `") for side in rule.replace("<=", "<").replace(">=", ">").replace(">", "<").split("<")
    )
    return all(side in columns and isinstance(columns[side].column, Coded) for side in sides)


def _several(layout: CodebookLayout, path: Path, folder: Path) -> str:
    """Return the lines of a schema of several tables."""
    chosen = " CHOSEN by names and keys; --persons names another." if layout.chosen else ""
    text = comment(SEVERAL.format(persons=layout.persons, chosen=chosen)) + "tables:\n"
    for name in layout.names:
        with about(f"table {name!r}"):
            columns = columns_of(layout.codebook.tables[name])
            placed = layout.placed(name, columns)
            text += indent(f"{dump({name: None}, flow=False).replace(' null', '')}", "  ")
            text += indent(_placed_text(placed, columns), "    ")
    for name in layout.public:
        table = layout.codebook.tables[name]
        if not table.file or not layout.key_of(name):
            lacking = "file" if not table.file else "key"
            raise InputError(f"--public {name!r}: the codebook names no {lacking} of it")
        file = os.path.relpath(path.parent / table.file, folder)
        plain = {"public": file, "key": plain_key(layout.key_of(name))}
        text += indent(comment(f"{name} is public, as --public says: it is published as it is."), "  ")
        text += f"  {name}: {dump(plain, flow=True).strip()}\n"
    for name, why in layout.outside.items():
        text += indent(comment(f"NOT DECLARED: the table {name}. {why}"), "  ")
    return text


def _placed_text(placed: PlacedTable, columns: Mapping[str, Declared]) -> str:
    columns = {**columns, **placed.columns}
    data = {name: declared for name, declared in columns.items() if name not in placed.no_data}
    lines = "".join(map(comment, placed.remarks))
    for name, setting in placed.links.items():
        lines += f"{name}: {dump(setting, flow=None)}".removesuffix("...\n")
    return lines + table_text(placed.table, data, placed.rules)
