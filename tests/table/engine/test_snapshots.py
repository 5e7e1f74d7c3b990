"""All questions see the same rows: in a transaction of their own, or in one that the caller has begun."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from refusals import refuses
from table.engine.databases import in_duckdb, in_postgres, in_sqlite

from privsyn import Categorical, PrivSyn, Schema
from privsyn.table.engine.dialects import DIALECTS
from privsyn.table.engine.engine import NO_SNAPSHOT
from privsyn.table.engine.engine_table import EngineTable

ROWS = pa.table({"sex": ["F", "M", None, "F"] * 50})
SCHEMA = Schema({"sex": Categorical(["F", "M"])})


def stored(database, request):
    if database == "postgres":
        return in_postgres(request.getfixturevalue("postgres"), ROWS)
    return (in_duckdb if database == "duckdb" else in_sqlite)(ROWS)


def sent(table):
    """Return what is sent in a fit."""
    log = []
    PrivSyn(1.0, 1e-9, SCHEMA, seed=0).fit(EngineTable.of(table, log.append))
    return log


@pytest.mark.parametrize("database", ["duckdb", "sqlite", "postgres"])
def test_a_transaction_of_the_caller_serves_and_stays_open(database, request):
    table = stored(database, request)
    connection, begin = table.get_backend().con, DIALECTS[database].begin
    assert {begin, "COMMIT"} <= {*sent(table)}
    connection.execute(begin)
    try:
        connection.execute("CREATE TABLE made_by_the_caller (x INTEGER)")
        assert "COMMIT" not in sent(table)
    finally:
        connection.execute("ROLLBACK")
    with pytest.raises(Exception, match="made_by_the_caller"):
        connection.execute("SELECT * FROM made_by_the_caller")


@pytest.mark.parametrize("ours", [True, False])
def test_a_transaction_of_postgres_that_may_see_other_rows_is_refused(ours, postgres, monkeypatch):
    table = EngineTable.of(in_postgres(postgres, ROWS))
    if ours:
        monkeypatch.setattr(table.engine, "dialect", replace(table.engine.dialect, begin="BEGIN"))
    else:
        postgres.con.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        with refuses(NO_SNAPSHOT):
            PrivSyn(1.0, 1e-9, SCHEMA).fit(table)
    finally:
        postgres.con.execute("ROLLBACK")
