"""A table of a database comes out with the types that the database declares: they are public."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from privsyn import Database, PrivSyn, Table, load
from privsyn.cli.main import main
from privsyn.table.io.sqlite_table import is_type

TYPES = {
    "small": "SMALLINT",
    "big": "BIGINT",
    "price": "DECIMAL(9,2)",
    "rate": "DOUBLE PRECISION",
    "town": "VARCHAR(20)",
    "born": "DATE",
    "seen": "DATETIME",
    "paid": "BOOLEAN",
    "note": "",
}


def shop(path, rows=300):
    """Write two linked tables, and a look-up table, into a database of SQLite."""
    rng = np.random.default_rng(0)
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE zones (zone SMALLINT PRIMARY KEY, label VARCHAR(9), area DECIMAL(5,1))")
        base.executemany("INSERT INTO zones VALUES (?, ?, ?)", [(1, "north", 2.5), (2, "south", 4)])
        columns = ", ".join(f"{name} {its}" for name, its in TYPES.items())
        base.execute(f"CREATE TABLE people (id BIGINT PRIMARY KEY, zone SMALLINT, {columns})")
        for place in range(rows):
            cells = [
                int(rng.integers(0, 9)),
                int(rng.integers(0, 99)),
                float(rng.integers(100, 999)) / 4,
                float(rng.random()),
                str(rng.choice(["Rome", "Oslo"])),
                f"20{rng.integers(10, 20)}-03-0{rng.integers(1, 9)}",
                f"2020-03-01 10:0{rng.integers(0, 9)}:00",
                bool(rng.integers(0, 2)),
                "x",
            ]
            marks = ", ".join("?" * (len(cells) + 2))
            base.execute(f"INSERT INTO people VALUES ({marks})", [place, 1 + place % 2, *cells])  # noqa: S608
        base.execute(
            "CREATE TABLE visits (visit INTEGER PRIMARY KEY, id BIGINT REFERENCES people, cost NUMERIC(7,2))"
        )
        base.executemany("INSERT INTO visits VALUES (?, ?, ?)", [(n, n, n / 4) for n in range(rows)])
    return path


def types_in(path, table):
    with closing(sqlite3.connect(path)) as base:
        return {name: its for _, name, its, *_ in base.execute(f"PRAGMA table_info({table})")}


@pytest.mark.slow
def test_a_table_of_sqlite_keeps_its_declared_types_also_in_a_saved_model(tmp_path):
    shop(tmp_path / "t.sqlite")
    model = PrivSyn(epsilon=5, delta=1e-6, seed=1).fit(f"{tmp_path}/t.sqlite::people")
    model.save(tmp_path / "m.privsyn")
    load(tmp_path / "m.privsyn").sample_to(f"{tmp_path}/out.sqlite::people", 50, seed=1)
    expected = {"id": "BIGINT", "zone": "SMALLINT"} | TYPES | {"note": "TEXT"}
    assert types_in(tmp_path / "out.sqlite", "people") == expected
    with closing(sqlite3.connect(tmp_path / "out.sqlite")) as base:
        assert {
            *base.execute("SELECT typeof(small), typeof(price), typeof(town), length(born) FROM people")
        } <= {("integer", number, "text", 10) for number in ("integer", "real")}


@pytest.mark.slow
def test_the_command_keeps_the_declared_types(tmp_path, capsys):
    shop(tmp_path / "t.sqlite")
    out = f"{tmp_path}/out.sqlite"
    assert main(["synth", f"{tmp_path}/t.sqlite::people", f"{out}::people", "--epsilon", "5"]) == 0
    assert types_in(out, "people")["price"] == "DECIMAL(9,2)"
    query = f"{tmp_path}/t.sqlite::select price, small + 1 more from people"  # noqa: S608
    assert main(["synth", query, f"{out}::some", "--epsilon", "5"]) == 0
    assert types_in(out, "some") == {"price": "DECIMAL(9,2)", "more": "INTEGER"}
    capsys.readouterr()


@pytest.mark.slow
def test_linked_tables_of_sqlite_keep_their_declared_types(tmp_path):
    path = shop(tmp_path / "t.sqlite")
    tables = {
        "zones": Table(public=f"{path}::zones", key="zone"),
        "people": Table(key="id"),
        "visits": Table(key="visit", parent="people", link="id"),
    }
    model = PrivSyn(5.0, 1e-6, Database(tables), seed=1).fit(path)
    model.save(tmp_path / "m.privsyn")
    load(tmp_path / "m.privsyn").sample_into(tmp_path / "out.sqlite", 40, seed=1)
    for table in tables:
        expected = types_in(path, table) | ({"note": "TEXT"} if table == "people" else {})
        assert types_in(tmp_path / "out.sqlite", table) == expected


def test_no_text_of_a_model_file_is_run_as_sql():
    assert all(map(is_type, ["INT", "varchar (20)", "NATIONAL CHARACTER(3)", "DECIMAL(9, 2)", "geo_point"]))
    others = ["", "INT, b INT", "INT)", "INT --", "INT DEFAULT 1", "INT CHECK (1)", "INT AS (1)", "select"]
    assert not any(map(is_type, others))


@pytest.mark.slow
def test_linked_tables_of_duckdb_keep_their_types_also_those_of_their_keys(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path, out = tmp_path / "t.duckdb", tmp_path / "out.duckdb"
    with duckdb.connect(str(path)) as base:
        base.execute(
            "CREATE TABLE people (id USMALLINT PRIMARY KEY, pay DECIMAL(9,2), born DATE, few TINYINT)"
        )
        base.execute(
            "INSERT INTO people SELECT i, i / 4, date '2020-01-01' + (i % 9)::int, i % 5 FROM range(200) t(i)"
        )
        base.execute(
            "CREATE TABLE visits (visit INTEGER PRIMARY KEY, id USMALLINT REFERENCES people (id), cost FLOAT)"
        )
        base.execute("INSERT INTO visits SELECT i, i, i / 8 FROM range(200) t(i)")
    tables = {"people": Table(key="id"), "visits": Table(key="visit", parent="people", link="id")}
    model = PrivSyn(5.0, 1e-6, Database(tables), seed=1).fit(path)
    model.save(tmp_path / "m.privsyn")
    load(tmp_path / "m.privsyn").sample_into(out, 40, seed=1)
    types = {}
    for file in (path, out):
        with duckdb.connect(str(file), read_only=True) as base:
            types[file] = {name: [str(its) for its in base.table(name).types] for name in tables}
    assert types[path] == types[out]
