"""The statements of whole runs in the dialects of engines that cannot be run here: sqlglot parses each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from refusals import refuses
from sqlglot import exp, parse_one, select
from table.engine.test_engine_table import survey
from table.engine.test_linked import homes_trips_stops

from privsyn import PrivSyn
from privsyn.table.engine.dialects import DIALECTS
from privsyn.table.engine.engine import Engine
from privsyn.table.engine.engine_table import EngineTable
from privsyn.table.io.arrow import empty_table, frame_of
from privsyn.table.io.output_type import OutputType

pytestmark = pytest.mark.filterwarnings("ignore")


@dataclass(eq=False)
class Silent:
    """A backend that finds no row: all its answers are empty."""

    name: str
    sent: list[str] = field(default_factory=list)

    def raw_sql(self, statement: str) -> list[Any]:
        self.sent.append(statement)
        return []


def table_in(engine, rows, name):
    empty = empty_table(rows.schema, "the table")
    return EngineTable(
        frame_of(empty, "the table"),
        form=OutputType.of(empty),
        near=False,
        once=True,
        engine=engine,
        relation=select("*").from_(name).subquery("raw"),
        types=rows.schema,
    )


def statements(dialect, tables, **settings):
    """Return what is sent in a fit of tables without rows."""
    engine = Engine(Silent(dialect))
    found = {name: table_in(engine, pa.table(rows), name) for name, rows in tables.items()}
    (one, *more) = found.values()
    PrivSyn(5.0, 1e-9, seed=0, **settings).fit(found if more else one)
    return engine._backend.sent


def one_table():
    rows, schema = survey(60)
    return {"people": rows}, {"schema": schema}


def persons():
    rows, schema = survey(60)
    return {"people": rows.append_column("who", pa.array(np.arange(60) // 3))}, {
        "schema": schema,
        "unit": "who",
    }


def linked():
    tables, database = homes_trips_stops(homes=20)
    return tables, {"schema": database}


@pytest.mark.slow
@pytest.mark.parametrize("made", [one_table, persons, linked])
@pytest.mark.parametrize("dialect", ["snowflake", "spark", "tsql"])
def test_every_statement_of_a_run_is_parsed(dialect, made):
    tables, settings = made()
    counts = 0
    for statement in statements(dialect, tables, **settings):
        parsed = parse_one(statement, dialect=dialect)
        assert not isinstance(parsed, exp.Command) or statement.startswith(("CACHE", "UNCACHE"))
        if isinstance(parsed, exp.Select) and parsed.args.get("into") is None:  # it has an answer
            assert [name.lower() for name in parsed.named_selects] == ["number", "cell", "rows_counted"]
            counts += 1
    assert counts


@pytest.mark.parametrize("dialect", [name for name, dialect in DIALECTS.items() if not dialect.keeps])
def test_an_engine_without_temporary_tables_is_refused(dialect):
    with refuses("keeps no temporary table"):
        Engine(Silent(dialect))
