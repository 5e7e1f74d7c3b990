"""Tables and queries of SQLite. A column may hold cells of any type: each is read as text, alone."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError, replace_errors, unless_own
from privsyn.table.encoding.dtypes import family
from privsyn.table.encoding.number_format import NumberFormat
from privsyn.table.io.formats import (
    BLOCK,
    NOTHING,
    DeclaredColumns,
    DeclaredTable,
    Formats,
    Labels,
    Location,
    plain,
    query_fact,
    quoted,
    text_of,
)
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.columns import Categorical, Column, Datetime, Numerical

TABLES_AND_VIEWS = "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"

_READS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
_VOLATILE = (
    "random",
    "randomblob",
    "load_extension",
    "last_insert_rowid",
    "changes",
    "total_changes",
    "current_date",
    "current_time",
    "current_timestamp",
)

_DECLARED: tuple[tuple[str, Column], ...] = (
    ("BOOL", Categorical([False, True])),
    ("INT", Numerical(integer=True)),
    ("CHAR", Categorical()),
    ("TEXT", Categorical()),
    ("CLOB", Categorical()),
    ("TIMESTAMP", Datetime(unit="s")),
    ("DATETIME", Datetime(unit="s")),
    ("DATE", Datetime(unit="D")),
    ("REAL", Numerical(integer=False)),
    ("FLOA", Numerical(integer=False)),
    ("DOUB", Numerical(integer=False)),
    ("NUMERIC", Numerical(integer=False)),
    ("DECIMAL", Numerical(integer=False)),
)
"""A part of a declared type, and the column that it means. The first part that a type contains counts."""

_TYPES = {"boolean": "BOOLEAN", "integer": "INTEGER", "real": "REAL", "decimal": "REAL"}


def _allow(action: int, _first: Any, name: Any, *_: Any) -> int:
    """Allow a query to read alone, and nothing that would give other rows the next time."""
    if action in _READS:
        return sqlite3.SQLITE_OK
    allowed = action == sqlite3.SQLITE_FUNCTION and str(name).lower() not in _VOLATILE
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


@contextmanager
def _opened(location: Location) -> Iterator[tuple[sqlite3.Connection, str, str]]:
    """Yield a connection that reads only, the query of the table, and its name if it is a view."""
    failed = f"{location.file}: not a SQLite database, or a damaged or locked one"
    if location.query:
        failed = (
            f"{location.file}: the query does not run: is it one SELECT that SQLite knows, without random()?"
        )
    uri = f"file:{quote(str(location.file.absolute()))}?mode=ro"
    with (
        replace_errors(unless_own(failed)),
        closing(sqlite3.connect(uri, uri=True, check_same_thread=False)) as connection,
    ):
        connection.text_factory = bytes  # text that is not UTF-8 must not fail
        listed = connection.execute(TABLES_AND_VIEWS)
        kinds = {name.decode("utf-8", "replace"): kind for name, kind in listed}
        names = [name for name in kinds if not name.startswith("sqlite_")]
        if "'now'" in location.query.lower():
            raise InputError(
                f"{location.file}: a query must give the same rows each time, so it cannot use 'now'"
            )
        if location.query:
            yield connection, location.query, ""
        else:
            name = location.choose(names)
            view = name if kinds[name] == b"view" else ""
            yield connection, f"SELECT * FROM {quoted(name)}", view  # noqa: S608


@contextmanager
def _read_only(location: Location) -> Iterator[sqlite3.Connection]:
    """Yield a connection that reads what a database declares."""
    wrong = f"{location.file}: not a SQLite database, or a damaged or locked one"
    uri = f"file:{quote(str(location.file.absolute()))}?mode=ro"
    with replace_errors(wrong, sqlite3.Error), closing(sqlite3.connect(uri, uri=True)) as connection:
        yield connection


def tables_and_views(location: Location) -> list[str]:
    """Return the names of the tables and views of a database; no row is read."""
    with _read_only(location) as connection:
        return [name for name, _ in connection.execute(TABLES_AND_VIEWS)]


def catalogue(location: Location) -> dict[str, DeclaredTable]:
    """Return what the database declares of its tables, by name; no row is read, and views are no tables."""
    with _read_only(location) as connection:
        question = (
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        names = [name for (name,) in connection.execute(question)]
        listed = {name: connection.execute(f"PRAGMA table_info({quoted(name)})").fetchall() for name in names}
        keys = {
            name: [column for _, column, *_, part in sorted(columns, key=lambda column: column[-1]) if part]
            for name, columns in listed.items()
        }
        foreign = {
            name: connection.execute(f"PRAGMA foreign_key_list({quoted(name)})").fetchall() for name in names
        }
    tables = {}
    for name in names:
        columns: dict[int, list[tuple[str, str, str]]] = {}
        for number, position, table_there, column_here, key, *_ in foreign[name]:
            primary = keys.get(table_there, [])  # by default the primary key of the other table
            there = key or (primary[position] if position < len(primary) else "")
            columns.setdefault(number, []).append((column_here, table_there, there))
        links = {
            tuple(here for here, _, _ in link): (link[0][1], tuple(there for _, _, there in link))
            for link in columns.values()
        }
        tables[name] = DeclaredTable(tuple(keys[name]), links)
    return tables


def header(location: Location, _: CsvFormat) -> list[str]:
    """Return the names of the columns; no row is read."""
    with _opened(location) as (connection, query, _view):
        connection.set_authorizer(_allow)
        return [column[0] for column in connection.execute(f"SELECT * FROM ({query}) LIMIT 0").description]  # noqa: S608


def declared(location: Location, _: CsvFormat) -> DeclaredColumns:
    """Return the columns whose type the database declares, and what is taken as public. No row is read."""
    with _opened(location) as (connection, query, view):
        connection.execute(f"CREATE TEMP VIEW privsyn_query AS {query}")
        listed = connection.execute("PRAGMA table_info(privsyn_query)").fetchall()
    types = {
        name.decode(): " ".join((written or b"").decode("utf-8", "replace").split())
        for _, name, written, *_ in listed
    }
    columns = {
        name: next((kind for word, kind in _DECLARED if word in written.upper()), None)
        for name, written in types.items()
    }
    return DeclaredColumns(
        {name: kind for name, kind in columns.items() if kind is not None},
        {name: written for name, written in types.items() if written},
        query_fact(location, view),
    )


def texts(
    location: Location, dialect: CsvFormat, formats: Formats, only: Collection[str] | None = None
) -> Iterator[pa.Table]:
    """Yield the cells as text, as they would be in a CSV; of some columns `only`, but in the same order.

    To select these columns in SQL could give the rows in the order of an index.
    """
    with _opened(location) as (connection, query, _view):
        connection.set_authorizer(_allow)
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description]
        while rows := cursor.fetchmany(BLOCK):
            columns = {
                name: _column_of_text([row[at] for row in rows], dialect, formats.get(name))
                for at, name in enumerate(names)
                if only is None or name in only
            }
            yield pa.table(columns)


def _column_of_text(cells: list[Any], dialect: CsvFormat, form: str | NumberFormat | None) -> pa.Array:
    """Return each cell as `text_of` writes it; columns of one type are written faster.

    >>> _column_of_text([7, None, -1], CsvFormat(), None).to_pylist()
    ['7', '', '-1']
    >>> _column_of_text([b"a", 2.0, 2.5], CsvFormat(), None).to_pylist()
    ['a', '2', '2.5']
    """
    kinds = {*map(type, cells)} - {type(None)}
    if kinds == {int} and form is None and dialect.spells_plainly:
        return pa.array(cells, pa.int64()).cast(pa.string()).fill_null("")
    if kinds == {bytes}:
        with suppress(pa.ArrowInvalid):  # not UTF-8
            return pa.array(cells, pa.binary()).cast(pa.string()).fill_null("")
    if len(kinds) > 1:  # 2 and 2.0 are equal, and may be written in different ways
        return pa.array([text_of(cell, dialect, form) for cell in cells], pa.string())
    texts = {cell: text_of(cell, dialect, form) for cell in {*cells}}
    return pa.array([texts[cell] for cell in cells], pa.string())


def write(
    frames: Iterator[pd.DataFrame],
    part: Path,
    location: Location,
    _: Labels,
    declared: DeclaredTable = NOTHING,
) -> None:
    """Write a table into a copy of the database, or into a new one. A table of that name is replaced."""
    name = location.copy_to(part)
    drop(part, location, [location.table])
    with (
        replace_errors(location.unwritable, (sqlite3.Error, OverflowError)),
        closing(sqlite3.connect(part)) as connection,
    ):
        for number, frame in enumerate(frames):
            if not number:
                types = {
                    name: written if is_type(written := declared.types.get(name, "")) else _type(frame[name])
                    for name in frame.columns
                }
                columns = [
                    f"{quoted(str(name))} {written}{' NOT NULL' * (name in declared.not_null)}"
                    for name, written in types.items()
                ]
                connection.execute(f"CREATE TABLE {name} ({', '.join(columns + declared.sql)})")
            rows = zip(*(_cells(frame[n]) for n in frame.columns), strict=True)
            marks = ", ".join("?" * len(frame.columns))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)  # noqa: S608
        connection.commit()


def drop(part: Path, location: Location, names: Collection[str]) -> None:
    """Remove tables from a database. No row of them stays in its file."""
    with (
        replace_errors(location.unwritable, sqlite3.Error),
        closing(sqlite3.connect(part)) as connection,
        connection,
    ):
        connection.execute("PRAGMA secure_delete = ON")
        for name in names:
            connection.execute(f"DROP TABLE IF EXISTS {quoted(name)}")


_TYPE = re.compile(r"[a-z_][a-z0-9_ ]{0,99}(\( ?[0-9]{1,9}( ?, ?[0-9]{1,9})? ?\))?", re.IGNORECASE)
"""What a declared type looks like."""


def is_type(text: str) -> bool:
    """Return whether SQLite takes a text as the type of a column, all of it and nothing else.

    A model file may hold any text, and a database may have a type of quoted keywords.

    >>> is_type("DECIMAL(9, 2)"), is_type("double precision"), is_type("INT NOT NULL"), is_type("select")
    (True, True, False, False)
    """
    if not _TYPE.fullmatch(text):
        return False
    with suppress(sqlite3.Error), closing(sqlite3.connect(":memory:")) as base:
        base.execute(f"CREATE TABLE t (a {text})")
        (column,) = base.execute("PRAGMA table_info(t)")
        return "".join(column[2].split()) == "".join(text.split())
    return False


def _type(cells: pd.Series) -> str:
    kind = family(cells.dtype)
    if kind == "datetime":
        present = cells.dropna()
        return "DATE" if all(_cell(value) == str(_cell(value))[:10] for value in present) else "TIMESTAMP"
    return _TYPES.get(str(kind), "TEXT")


def _cells(cells: pd.Series) -> Iterable[Any]:
    """Return the cells as SQLite stores them: numbers, each distinct text or time, or each other cell alone.

    >>> _cells(pd.Series([2, None], dtype="Int64")), _cells(pd.Series(["a", None, "a"]))
    ([2, None], ['a', None, 'a'])
    """
    kind = family(cells.dtype)
    if kind in ("integer", "real", "boolean"):
        return list(cells.astype(object).where(cells.notna(), None))
    if kind not in ("text", "datetime"):
        return map(_cell, cells.astype(object))
    codes, values = pd.factorize(cells)
    stored = [*map(_cell, values.astype(object)), None]
    return [stored[code] for code in codes]


def _cell(value: Any) -> Any:
    value = plain(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return text_of(value, CsvFormat())
