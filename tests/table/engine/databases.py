"""Databases of the tests, behind ibis: DuckDB, SQLite, and a PostgreSQL that is started here."""

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import ibis
import pyarrow as pa

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@contextmanager
def running_postgres():
    """Start a server in a folder of its own, and yield the URL of its database; None where there is none."""
    if not PROGRAMS or (os.getuid() == 0 and shutil.which("runuser") is None):
        yield None
        return
    as_other = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []  # it refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="privsyn-postgres-"))
    try:
        if as_other:
            shutil.chown(folder, "postgres")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]

        def run(program, *arguments, check=True):
            command = [*as_other, str(PROGRAMS[-1] / program), *arguments]
            subprocess.run(command, check=check, capture_output=True, cwd="/", timeout=120)

        data = folder / "data"
        run("initdb", "-D", str(data), "-U", "reader", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        run("pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgres://reader@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "stop", check=False)  # a test may have done so
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def in_duckdb(table, name="people"):
    """Return a table of ibis with these rows in DuckDB."""
    connection = ibis.duckdb.connect()
    connection.con.register("arrow_rows", table)
    connection.raw_sql(f"CREATE TABLE {name} AS FROM arrow_rows")
    return connection.table(name)


def in_sqlite(table, name="people"):
    """Return a table of ibis with these rows in SQLite."""
    connection = ibis.sqlite.connect()
    types = ", ".join(f'"{field.name}" {SQLITE[field.type]}' for field in table.schema)
    connection.con.execute(f"CREATE TABLE {name} ({types})")
    marks = ", ".join("?" * len(table.schema))
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    connection.con.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)  # noqa: S608
    connection.con.commit()
    return connection.table(name)


def in_postgres(connection, table, name="people"):
    """Return a table of ibis with these rows in PostgreSQL."""
    connection.raw_sql(f"DROP TABLE IF EXISTS {name}").close()
    types = ", ".join(f'"{field.name}" {POSTGRES[field.type]}' for field in table.schema)
    connection.raw_sql(f"CREATE TABLE {name} ({types})").close()
    with connection.con.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            copy.write_row(row)
    return connection.table(name)


SQLITE = {pa.float64(): "REAL", pa.int64(): "INTEGER", pa.string(): "TEXT"}
"""The types that SQLite has for those of Arrow."""

POSTGRES = {
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.decimal128(9, 2): "numeric(9, 2)",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.string(): "text",
    pa.time64("us"): "time",
    pa.timestamp("s"): "timestamp(0)",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
}
"""The types that PostgreSQL has for those of Arrow."""
