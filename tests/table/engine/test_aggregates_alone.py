"""What crosses the connection: counts of cells, and nothing when it breaks."""

import json
import re

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from command import run
from table.engine.databases import in_duckdb

from privsyn import Categorical, Numerical, PrivSyn, Schema
from privsyn.errors import InputError
from privsyn.table.engine.engine import BITS, TRANSACTION, Engine
from privsyn.table.engine.engine_table import EngineTable

COUNTS = re.compile(
    r"SELECT \d+ AS number, cell, COUNT\(\*\) AS rows_counted FROM \(SELECT [^;]* AS cell"
    r" FROM privsyn_\w+\) AS coded WHERE NOT cell IS NULL GROUP BY cell"
)
FINER = re.compile(
    r"WITH finer AS \(SELECT cell, COUNT\(\*\) AS rows_counted FROM \(SELECT [^;]* AS cell FROM privsyn_\w+\)"
    r" AS coded GROUP BY cell\) "
)
SUMS = re.compile(
    r"SELECT \d+ AS number, cell, CAST\(SUM\(rows_counted\) AS BIGINT\) AS rows_counted FROM"
    r" \(SELECT [^;]* AS cell, rows_counted FROM finer\) AS coded WHERE NOT cell IS NULL GROUP BY cell"
)
"""The statements that add up counts inside the database, and answer with the sums alone."""

SILENT = re.compile(
    r"(CREATE TEMPORARY TABLE privsyn_\w+ AS|DROP TABLE IF EXISTS privsyn_|BEGIN|COMMIT|ROLLBACK"
    r"|SET perfect_ht_threshold = \d+$)"
)
"""Statements without an answer."""

SCHEMA = Schema({"age": Numerical(0, 99, integer=True), "sex": Categorical(["F", "M"])})


class Answer:
    """The result of a statement, of which rows are taken only if they are counts."""

    def __init__(self, result, limit):
        self._result, self._limit = result, limit

    def fetchnumpy(self):
        columns = self._result.fetchnumpy()
        assert len(columns) == 3
        for column in columns.values():
            assert np.issubdtype(np.asarray(column).dtype, np.integer)
            assert len(column) <= self._limit
        return columns

    def close(self):
        pass


class Connection:
    """A backend of ibis that refuses every statement whose answer is more than counts.

    Parameters
    ----------
    backend : ibis backend
    breaks_at : int, optional
        The statement at which the connection breaks.
    """

    def __init__(self, backend, breaks_at=None):
        self._backend, self.sent, self.breaks_at = backend, [], breaks_at
        self.name, self.dialect, self.compiler = backend.name, backend.dialect, backend.compiler

    def raw_sql(self, statement):
        self.sent.append(statement)
        if len(self.sent) == self.breaks_at:
            raise ConnectionError("the cell 'Ann, 44' could not be sent")
        if SILENT.match(statement):
            assert " RETURNING " not in statement
            return self._backend.raw_sql(statement)
        finer = FINER.match(statement)
        form = SUMS if finer else COUNTS
        parts = statement[finer.end() if finer else 0 :].split(" UNION ALL ")
        assert statement in (TRANSACTION, BITS) or all(form.fullmatch(part) for part in parts)
        return Answer(self._backend.raw_sql(statement), limit=101 * 3 + 100)


class Guarded:
    """A table of ibis behind a `Connection`."""

    def __init__(self, table, breaks_at=None):
        self._table, self.connection = table, Connection(table.get_backend(), breaks_at)

    def get_backend(self):
        return self.connection

    def schema(self):
        return self._table.schema()

    def op(self):
        return self._table.op()

    def __getattr__(self, name):
        return getattr(self._table, name)


def people(rows=500):
    rng = np.random.default_rng(0)
    return pa.table({"age": rng.integers(0, 120, rows), "sex": rng.choice(["F", "M", "?"], rows)})


def test_only_counts_of_cells_come_back():
    guarded = Guarded(in_duckdb(people()))
    log = []
    table = EngineTable.of(guarded, log.append)
    PrivSyn(1.0, 1e-9, schema=SCHEMA, seed=0).fit(table)
    assert log == guarded.connection.sent
    assert sum(statement.startswith("SELECT") for statement in log) >= 2
    assert log[-2].startswith("DROP TABLE")
    assert log[-1] == "SET perfect_ht_threshold = 12"


def test_a_connection_that_breaks_at_any_statement_ends_the_run_in_one_line():
    guarded = Guarded(in_duckdb(people()))
    PrivSyn(1.0, 1e-9, schema=SCHEMA, seed=0).fit(EngineTable.of(guarded))
    sent = guarded.connection.sent
    needed = [index for index, statement in enumerate(sent, 1) if not statement.startswith("DROP")][:-1]
    assert len(needed) >= 7
    for breaks_at in needed:
        model = PrivSyn(1.0, 1e-9, schema=SCHEMA, seed=0)
        with pytest.raises(InputError, match="the database did not answer a query") as error:
            model.fit(EngineTable.of(Guarded(in_duckdb(people()), breaks_at)))
        assert "Ann" not in str(error.value)
        assert error.value.__context__ is None
        assert not hasattr(model, "release_")


@pytest.fixture
def shop(tmp_path):
    """Return the URL of a database of DuckDB with a table of people, and the options of a run."""
    file, schema = tmp_path / "shop.duckdb", tmp_path / "s.yaml"
    connection = duckdb.connect(str(file))
    rows = people()  # noqa: F841 - DuckDB finds it by its name
    connection.execute("CREATE TABLE people AS FROM rows")
    connection.close()
    schema.write_text(
        "columns:\n  age: {kind: numerical, low: 0, high: 99, integer: true}\n"
        "  sex: {kind: categorical, values: [F, M]}\n"
    )
    out = tmp_path / "out.parquet"
    return (f"duckdb://{file}", out, "--schema", schema, "--epsilon", 1, "--delta", 1e-9)


def test_the_command_counts_in_a_database_and_logs_what_it_sends(shop, tmp_path, capsys):
    log = tmp_path / "log.sql"
    outcome = run(capsys, "synth", *shop, "--sql", log)  # its only table
    assert outcome.code == 0, outcome.err
    assert pa.parquet.read_table(tmp_path / "out.parquet").column_names == ["age", "sex"]
    statements = log.read_text().split(";\n")
    assert sum(statement.startswith("CREATE TEMPORARY TABLE") for statement in statements) == 2
    assert (tmp_path / "shop.duckdb.budget.jsonl").exists()


def test_a_run_that_breaks_is_charged_once_at_most(shop, tmp_path, capsys, monkeypatch):
    count, calls = Engine.count, []

    def breaks(engine, source, cells):
        calls.append(cells)
        if len(calls) == 2:
            raise InputError("the database went away")
        return count(engine, source, cells)

    monkeypatch.setattr(Engine, "count", breaks)
    broken = run(capsys, "synth", *shop, "--table", "people")
    assert (broken.code, "went away" in broken.err) == (2, True)
    assert not (tmp_path / "out.parquet").exists()
    outcome = run(capsys, "synth", *shop, "--table", "people")
    assert outcome.code == 0, outcome.err
    lines = (tmp_path / "shop.duckdb.budget.jsonl").read_text().splitlines()
    assert sum("begins" in json.loads(line) for line in lines) == 2
    assert sum("ends" in json.loads(line) for line in lines) == 1  # one without an end counts in full


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("postgres://me:secret@127.0.0.1:1/shop", "--table", "people", "--no-budget"), "no connection"),
        (("postgres://me:secret@127.0.0.1:1/shop", "--table", "people"), "give --budget FILE.jsonl"),
        (("postgres://me:se[secret@host/shop", "--no-budget"), "the URL of the database cannot be read"),
        (("duckdb:///no/such.duckdb", "--table", "people"), "there is no such file"),
        (
            ("mysql://me:secret@127.0.0.1:1/shop", "--table", "people", "--no-budget"),
            "cannot be counted in 'mysql'",
        ),
        (("people.csv", "--table", "people"), "--table: is for the URL of a database"),
        (("people.csv", "--sql", "log.sql"), "--sql: is for the URL of a database"),
    ],
)
def test_what_is_no_database_is_refused_in_one_line(arguments, words, shop, capsys):
    data, *options = arguments
    outcome = run(capsys, "synth", data, *shop[1:], *options)
    assert (outcome.code, words in outcome.err) == (2, True), outcome.err
    assert "secret" not in outcome.err


def test_a_file_has_one_account_by_whatever_name_it_is_counted(shop, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url, out, *options = shop
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "privsyn.policy.yaml").write_text("epsilon: 20\ndelta: 1e-6\nepsilon_of_a_release: 1\n")
    names = [url, "duckdb://shop.duckdb", "duckdb:///shop.duckdb", "shop.duckdb::people"]
    for name, folder in zip(names, [".", "elsewhere", ".", "elsewhere"], strict=True):
        table = [] if "::" in name else ["--table", "people"]
        outcome = run(capsys, "synth", name, tmp_path / folder / out.name, *options, *table, "--force")
        assert outcome.code == 0, outcome.err
    outcome = run(capsys, "synth", url, out, *options, "--table", "people", "--force", "--epsilon", 1.5)
    assert (outcome.code, "allows epsilon 1 for a release" in outcome.err) == (2, True), outcome.err
    assert len(list(tmp_path.rglob("*.budget.jsonl"))) == 1


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("schema",), "only `privsyn synth` takes the URL of a database"),
        (("schema", "--table", "people"), "only `privsyn synth` counts in a database"),
        (("evaluate", "out.parquet"), "only `privsyn synth` takes the URL of a database"),
        (("plan", "--epsilon", 1), "only `privsyn synth` takes the URL of a database"),
        (("budget",), "only `privsyn synth` takes the URL of a database"),
    ],
)
def test_other_commands_refuse_a_url_and_do_not_show_its_password(command, words, capsys):
    name, *options = command
    outcome = run(capsys, name, "postgres://me:secret@127.0.0.1:1/shop", *options)
    assert (outcome.code, words in outcome.err, "secret" in outcome.err) == (2, True, False), outcome.err


def test_a_table_that_is_not_there_is_refused(shop, capsys):
    outcome = run(capsys, "synth", *shop, "--table", "peple")
    assert (outcome.code, "--table peple: there is no such table" in outcome.err) == (2, True)
