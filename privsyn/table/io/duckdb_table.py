"""Tables and queries of DuckDB. The database is opened to be read only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from privsyn.errors import InputError, replace_errors, unless_own
from privsyn.files import close_at_end
from privsyn.table.io.formats import NOTHING, DeclaredTable, Labels, Location, TypedFile, query_fact, quoted
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

COMMENTS = """
SELECT table_name, column_name, comment FROM duckdb_columns() WHERE comment IS NOT NULL
UNION ALL SELECT table_name, '', comment FROM duckdb_tables() WHERE comment IS NOT NULL
"""

TABLES_AND_VIEWS = "SELECT table_name, table_type FROM information_schema.tables ORDER BY table_name"

ROWS_OF_BATCH = 2**17
"""Rows of a batch."""


def open_typed(location: Location, _: Schema | None) -> TypedFile:
    """Return the columns of a table, view or query, and its rows.

    A view or query is run once, into a temporary table, when its rows are asked for: if it were run again, it
    could return other rows, or the same ones in another order. Its types follow from those of the tables. Its
    own access to other files is switched off. The values of an ENUM are not public: they are often made from
    the rows.
    """
    import duckdb

    bad_query = (
        f"{location.file}: the query does not run: is it one SELECT that DuckDB knows, on tables there?"
    )
    with replace_errors(unless_own(f"{location.file}: not a DuckDB database, or damaged, locked or newer")):
        base = duckdb.connect(
            str(location.file), read_only=True, config={"enable_external_access": "false", "threads": "1"}
        )
        close_at_end(base.close)  # else the database stays locked
        tables = dict(base.execute(TABLES_AND_VIEWS).fetchall())
        query, view = location.query, ""
        if not query:
            name = location.choose(list(tables))
            query, view = f"FROM {quoted(name)}", "" if tables[name] == "BASE TABLE" else name
    no_columns = bad_query if location.query or view else f"{location.file}: the columns cannot be read"
    with replace_errors(unless_own(no_columns)):
        if location.query:
            statements: list[Any] = duckdb.extract_statements(query)
            if len(statements) != 1 or statements[0].type.name != "SELECT":
                raise InputError("a query must be one SELECT")
        schema = base.sql(query).limit(0).to_arrow_table().schema

    @cache
    def rows() -> str:
        """Run a view or query, once, and return the query of its result."""
        if not (location.query or view):
            return query
        with replace_errors(bad_query):
            base.execute(f"CREATE TEMP TABLE privsyn_query AS {query}")
        return "FROM temp.privsyn_query"

    walk = _batches(base, rows, f"{location.file}: the rows cannot be read to their end")
    return TypedFile(schema, walk, public_inputs=query_fact(location, view))


@contextmanager
def _read_only(location: Location) -> Iterator[DuckDBPyConnection]:
    """Yield a connection that reads what a database declares."""
    import duckdb

    wrong = f"{location.file}: not a DuckDB database, or damaged, locked or newer"
    with (
        replace_errors(wrong, duckdb.Error),
        duckdb.connect(
            str(location.file), read_only=True, config={"enable_external_access": "false"}
        ) as base,
    ):
        yield base


def tables_and_views(location: Location) -> list[str]:
    """Return the names of the tables and views of a database; no row is read."""
    with _read_only(location) as base:
        return [name for name, _ in base.execute(TABLES_AND_VIEWS).fetchall()]


def catalogue(location: Location) -> dict[str, DeclaredTable]:
    """Return what the database declares of its tables, by name; no row is read, and views are no tables."""
    with _read_only(location) as base:
        names = base.execute("SELECT table_name FROM duckdb_tables() ORDER BY table_name").fetchall()
        result = base.execute("FROM duckdb_constraints()")
        columns = [str(constraint[0]) for constraint in result.description]
        constraints = [dict(zip(columns, row, strict=True)) for row in result.fetchall()]
        listed = base.execute(COMMENTS).fetchall()
    keys = {
        constraint["table_name"]: constraint["constraint_column_names"]
        for constraint in constraints
        if _is(constraint, "PRIMARY KEY")
    }
    links: dict[str, dict[tuple[str, ...], tuple[str, tuple[str, ...]]]] = {}
    for constraint in constraints:
        columns_here: list[str] = constraint["constraint_column_names"]
        columns_there: list[str] = constraint.get("referenced_column_names") or []
        if _is(constraint, "FOREIGN KEY") and columns_there:  # version 1.1 does not say where to
            there = constraint["referenced_table"], tuple(columns_there)
            links.setdefault(constraint["table_name"], {})[tuple(columns_here)] = there
    return {
        name: DeclaredTable(
            tuple(keys.get(name, ())),
            links.get(name, {}),
            {column: text for table, column, text in listed if table == name},
        )
        for (name,) in names
    }


def _is(constraint: dict[str, Any], kind: str) -> bool:
    return bool(constraint["constraint_type"] == kind)


def _batches(
    base: DuckDBPyConnection, rows: Callable[[], str], failed: str
) -> Callable[[], Iterator[pa.RecordBatch]]:
    def walk() -> Iterator[pa.RecordBatch]:
        query = rows()
        with replace_errors(failed):
            relation: Any = base.sql(query)
            named = "to_arrow_reader" if hasattr(relation, "to_arrow_reader") else "fetch_arrow_reader"  # 1.4
            yield from getattr(relation, named)(ROWS_OF_BATCH)

    return walk


def write(
    tables: Iterator[pa.Table], part: Path, location: Location, _: Labels, declared: DeclaredTable = NOTHING
) -> None:
    """Write a table into a copy of the database, or into a new one. A table of that name is replaced."""
    import duckdb

    name = location.copy_to(part)
    if location.file.exists():
        drop(part, location, [location.table])
    with replace_errors(location.unwritable, duckdb.Error), duckdb.connect(str(part)) as base:
        there = {its for (its,) in base.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        # DuckDB takes no key of a table that comes later, or of the same one while rows come in.
        links = {columns: target for columns, target in declared.links.items() if target[0] in there}
        declared = replace(declared, links=links)
        for number, table in enumerate(tables):
            base.register("privsyn_block", table)
            if not number:
                columns = [_column(base, field, table, declared) for field in table.schema]
                base.execute(f"CREATE TABLE {name} ({', '.join(columns + declared.sql)})")
            base.execute(f"INSERT INTO {name} FROM privsyn_block")
            base.unregister("privsyn_block")


def drop(part: Path, location: Location, names: Collection[str]) -> None:
    """Remove tables, each before those that it refers to. No row of them stays in the file."""
    import duckdb

    with replace_errors(location.unwritable, duckdb.Error):
        with duckdb.connect(str(part)) as base:
            listed = base.execute("SELECT lower(table_name) FROM duckdb_tables()").fetchall()
            there = [name for name in names if (name.lower(),) in listed]
            for name in there:
                base.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
        if not there:
            return
        fresh = part.with_name(f"{part.name}.compact")  # in the old file, rows of a dropped table remain
        try:
            with duckdb.connect() as base:
                for file, name, options in ((part, "before", " (READ_ONLY)"), (fresh, "after", "")):
                    base.execute(f"ATTACH {_text(str(file))} AS {name}{options}")
                base.execute("COPY FROM DATABASE before TO after")
            fresh.replace(part)
        finally:
            fresh.unlink(missing_ok=True)


def _text(value: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def _column(base: DuckDBPyConnection, field: pa.Field, table: pa.Table, declared: DeclaredTable) -> str:
    """Return a column as a line of CREATE TABLE."""
    keys = {
        column: (table_there, column_there)
        for columns, (table_there, columns_there) in declared.links.items()
        for column, column_there in zip(columns, columns_there, strict=True)
    }
    if field.name in keys:  # DuckDB refuses a key of another type
        table_there, key = keys[field.name]
        kind = str(base.sql(f"SELECT {quoted(key)} FROM {quoted(table_there)} LIMIT 0").types[0])  # noqa: S608
    else:
        kind = _type(base, field, table)
    return f"{quoted(field.name)} {kind}{' NOT NULL' * (field.name in declared.not_null)}"


def _type(base: DuckDBPyConnection, field: pa.Field, table: pa.Table) -> str:
    """Return the type of a column: an ENUM of its categories, if it has any that are text."""
    if pa.types.is_dictionary(field.type) and table.num_rows:
        values = table[field.name].chunk(0).dictionary.to_pylist()
        if values and all(isinstance(value, str) for value in values):
            return f"ENUM ({', '.join(map(_text, values))})"
    relation = base.sql(f"SELECT {quoted(field.name)} FROM privsyn_block LIMIT 0")  # noqa: S608
    return str(relation.types[0])
