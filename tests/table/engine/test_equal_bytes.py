"""Models of schemas of many kinds: counted in a database they have the same bytes as read in memory."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pytest
from command import run
from refusals import refuses
from same_model import assert_same_model
from table.engine.databases import in_duckdb, in_postgres, in_sqlite

from privsyn import (
    Categorical,
    Datetime,
    Determined,
    Duration,
    Forbidden,
    Increasing,
    MissingWhen,
    Numerical,
    PrivSyn,
    Schema,
    Text,
    Time,
)
from privsyn.table.engine.engine_table import EngineTable
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.schema.yaml_file import to_yaml

pytestmark = pytest.mark.filterwarnings("ignore")

ROWS = 300


def cells():
    """Return columns of many types; of numbers and times some lie outside all bounds."""
    rng = np.random.default_rng(5)

    def some(values, kind=None):
        return pa.array(values, kind, mask=rng.random(ROWS) < 0.1)

    age, loan = rng.integers(-3, 110, ROWS), rng.integers(0, 90, ROWS)
    at = np.datetime64("2014-12-30", "us") + rng.integers(0, 3 * 10**13, ROWS)
    town = rng.choice(["Rome", "Zürich", "it's", "", "?"], ROWS)
    return {
        "age": some(age),
        "loan": some(loan),
        "paid": some(loan - rng.integers(-5, 60, ROWS)),
        "rest": some(rng.integers(0, 20, ROWS)),
        "pay": some(rng.lognormal(6, 1, ROWS)),
        "price": some(rng.gamma(2, 20, ROWS).round(2)),
        "rate": some(rng.choice([0.0, 0.25, 1.5, np.nan], ROWS)),
        "cost": some((rng.integers(0, 900_000, ROWS) / 100).round(2)).cast(pa.decimal128(9, 2)),
        "single": some(rng.gamma(2, 9, ROWS).astype("f4"), pa.float32()),
        "town": some(town.tolist(), pa.string()),
        "land": some(np.where(town == "Rome", "Italy", "other").tolist(), pa.string()),
        "code": some(rng.choice([3, -9, 44], ROWS)),
        "fit": some(rng.random(ROWS) < 0.4),
        "day": some(at.astype("datetime64[D]")),
        "due": some(at.astype("datetime64[D]") + rng.integers(-9, 90, ROWS)),
        "at": some(at),
        "until": some(at + rng.integers(-(10**10), 10**12, ROWS)),
        "utc": some(at, pa.timestamp("us", "UTC")),
        "clock": some(rng.integers(0, 86_400, ROWS) * 10**6, pa.time64("us")),
        "note": some([f"note {number}" for number in range(ROWS)]),
        "written": some(np.datetime_as_string(at.astype("datetime64[D]")).tolist()),
        "digits": some((20150100 + rng.integers(1, 32, ROWS)).tolist()),
        "span": pa.array(rng.integers(0, 10**9, ROWS), pa.duration("us")),
        "who": pa.array(np.arange(ROWS) // 2),
    }


@dataclass(frozen=True)
class Case:
    """A schema, its settings, and the databases besides DuckDB that have its types, or that are asked."""

    columns: dict[str, Any]
    constraints: tuple[Any, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    databases: tuple[str, ...] = ("sqlite", "postgres")
    missing: Any = ()

    @property
    def schema(self):
        return Schema(self.columns, constraints=self.constraints, missing=self.missing)

    def rows(self):
        return pa.table({name: cells for name, cells in CELLS.items() if name in self.columns})


CELLS = cells()
AGE, TOWN = Numerical(0, 99, integer=True), Categorical(["Rome", "Zürich", "it's", ""])
FIT, CODE = Categorical([True, False]), Categorical([3, -9, 44])
UNTIL = {name: Datetime("2015-01-01 00:00", "2016-06-30 00:00", unit="s") for name in ("at", "until")}
DAYS = {name: Datetime("2015-01-01", "2016-06-30") for name in ("day", "due")}
CENTS = {name: Numerical(0, 900, decimals=2) for name in ("price", "pay")}
LOANS = {name: Numerical(0, 100, integer=True) for name in ("loan", "paid", "rest")}
TYPED = ("postgres",)  # SQLite has no such type
LANDS = {"Rome": "Italy", "Zürich": "other", "it's": "other", "": "other"}

CASES = {
    "lists": Case({"town": TOWN, "land": Categorical(["Italy", "other"]), "code": CODE}),
    "whole numbers": Case({"age": AGE, "loan": Numerical(0, 99), "town": TOWN}),
    "real numbers": Case({"pay": Numerical(0, 2000), "price": Numerical(-5, 100)}),
    "decimals": Case({"price": Numerical(0, 100, decimals=2), "pay": Numerical(0, 5000, decimals=1)}),
    "decimals of the database": Case({"cost": Numerical(0, 9000, decimals=2), "age": AGE}, databases=TYPED),
    "steps": Case({"pay": Numerical(0, 2000, step=50), "loan": Numerical(0, 90, step=10)}),
    "bins": Case({"pay": Numerical(0, 2000, bins=7), "age": Numerical(0, 99, bins=100)}),
    "singles": Case({"single": Numerical(0, 50, decimals=1), "age": AGE}, databases=TYPED),
    "listed reals": Case({"rate": Categorical([0.0, 0.25, 1.5]), "age": AGE}),
    "dates": Case({**DAYS, "town": TOWN}, databases=TYPED),
    "times by day": Case({"at": DAYS["day"], "town": TOWN}, databases=TYPED),
    "times with their parts": Case({"at": UNTIL["at"], "fit": FIT}, databases=TYPED),
    "times with their hours": Case(
        {"at": Datetime("2015-01-01 00:00", "2016-06-30 00:00", unit="h", cycles=["day"]), "fit": FIT},
        databases=TYPED,
    ),
    "times of UTC": Case({"utc": UNTIL["at"], "fit": FIT}, databases=TYPED),
    "times of day": Case({"clock": Time("08:00", "20:00", unit="m"), "fit": FIT}, databases=TYPED),
    "truth": Case({"fit": FIT, "age": AGE, "town": TOWN}, databases=TYPED),
    "none missing": Case({"age": replace(AGE, nullable=False), "town": replace(TOWN, nullable=False)}),
    "nullable=False": Case({"age": AGE, "town": TOWN, "code": CODE}, settings={"nullable": False}),
    "marks": Case({"town": Categorical(["Rome", "Zürich", "it's"]), "age": AGE}, missing=["?", ""]),
    "other": Case({"town": Categorical(["Rome", "else"], other="else"), "code": CODE}),
    "ordered": Case({"town": Categorical(["Rome", "it's", ""], ordered=True), "age": AGE}),
    "gaps of whole numbers": Case({**LOANS, "town": TOWN}, (Increasing(["paid", "loan"]),)),
    "gaps of cents": Case({**CENTS, "town": TOWN}, (Increasing(["price", "pay"]),)),
    "gaps of days": Case({**DAYS, "town": TOWN}, (Increasing(["day", "due"]),), databases=TYPED),
    "gaps of seconds": Case(
        {**UNTIL, "fit": FIT}, (Increasing(["at", "until"], strict=True),), databases=TYPED
    ),
    "forbidden": Case(
        {"age": AGE, "town": TOWN, "code": CODE},
        (Forbidden({"age": {"high": 17}, "town": ["Rome"]}), MissingWhen("code", {"town": [""]})),
    ),
    "determined": Case(
        {"town": TOWN, "land": Categorical(["Italy", "other"]), "age": AGE},
        (Determined("land", "town", LANDS),),
    ),
    "an order with a sum": Case({**LOANS, "age": AGE}, ("loan == paid + rest", "loan <= age")),
    "computed": Case({**LOANS, "town": TOWN}, ("loan == paid + rest",)),
    "target": Case(
        {"age": AGE, "town": TOWN, "code": CODE, "pay": Numerical(0, 2000)}, settings={"target": "town"}
    ),
    "important": Case(
        {"age": AGE, "town": TOWN, "code": CODE, "pay": Numerical(0, 2000)},
        settings={"important": [["age", "town"], ["code", "pay", "town"]]},
    ),
    "totals": Case(
        {"town": replace(TOWN, nullable=False), "age": AGE, "code": CODE},
        settings={"totals": pa.table({"town": ["Rome", "Zürich", "it's", ""], "count": [60, 60, 60, 120]})},
    ),
    "a public table": Case(
        {"age": AGE, "town": TOWN},
        settings={"public": pa.table({"age": [*range(90)] * 3, "town": ["Rome", "Zürich", ""] * 90})},
    ),
    "delta 0": Case({"age": AGE, "town": TOWN, "pay": Numerical(0, 2000)}, settings={"delta": 0.0}),
    "criteria": Case(
        {"age": AGE, "town": TOWN, "code": CODE},
        settings={"accept": [{"margin": ["town", "code"], "error": 0.2}]},
    ),
    "randomised": Case(
        {"town": replace(TOWN, keep=0.5), "code": replace(CODE, keep=0.7)},
        settings={"epsilon": None, "delta": 0.0},
    ),
    "one randomised": Case({"town": replace(TOWN, keep=0.5), "age": AGE}),
    "generated": Case({"note": Text(), "town": TOWN, "age": AGE}),
    "published": Case({"age": AGE, "town": TOWN, "code": CODE}, settings={"method": "published"}),
    "published, exponential": Case(
        {"age": AGE, "town": TOWN, "code": CODE},
        settings={"method": "published", "parameters": {"select": "exponential"}},
    ),
}

QUICK = ("real numbers", "determined", "other", "criteria", "randomised")
"""Of these one is fitted in DuckDB in the quick lane too."""


def stored(rows, database, request):
    """Return a table of ibis with these rows."""
    if database == "postgres":
        return in_postgres(request.getfixturevalue("postgres"), rows)
    return (in_duckdb if database == "duckdb" else in_sqlite)(rows)


def each():
    """Yield every case in every database that has its types."""
    for name, case in CASES.items():
        for database in ("duckdb", *case.databases):
            is_quick = name in QUICK and database == "duckdb"
            yield pytest.param(name, database, marks=() if is_quick else pytest.mark.slow("each case"))


@pytest.mark.parametrize(("name", "database"), [*each()])
def test_a_model_from_a_database_has_the_bytes_of_one_from_memory(name, database, request):
    case = CASES[name]
    there = EngineTable.of(stored(case.rows(), database, request))
    here = read_in_batches(case.rows().cast(there.types))
    here = replace(here, form=there.form, public_inputs=there.public_inputs, once=there.once)
    models, samples = [], []
    for rows in (here, there):
        model = PrivSyn(**{"epsilon": 2.0, "delta": 1e-9, "seed": 3, **case.settings}, schema=case.schema)
        models.append(model.fit(rows).release_.packed())
        samples.append(model.sample(50, seed=1))
    assert_same_model(*models)
    assert samples[0].equals(samples[1])


LEFT_OPEN = "write all values and bounds into the schema"
WITH = {"unit": {"unit": "who"}, "accept": {"accept": [{"margin": ["town"], "error": 0.2}]}}
REFUSED = [
    ("duckdb", Case({"written": DAYS["day"]}), "'written': .*its cells are text there", (*WITH,)),
    ("sqlite", Case({"written": DAYS["day"]}), "'written': .*its cells are text there", (*WITH,)),
    (
        "duckdb",
        Case({"digits": replace(DAYS["day"], format="%Y%m%d")}),
        "'digits': .*dates are written as numbers there",
        (*WITH,),
    ),
    ("duckdb", Case({"span": Duration("0s", "900s")}), "'span': .*its type there", (*WITH,)),
    ("duckdb", Case({"cost": Categorical()}), "'cost': .*are neither text nor numbers", ("accept",)),
    ("duckdb", Case({"age": Numerical()}, settings=WITH["unit"]), LEFT_OPEN, ()),
    ("postgres", Case({"age": Numerical()}, settings=WITH["unit"]), LEFT_OPEN, ()),
]


@pytest.mark.parametrize(
    ("database", "case", "words", "settings"),
    [
        (database, case, words, settings)
        for database, case, words, more in REFUSED
        for settings in (case.settings, *map(WITH.get, more))
    ],
)
def test_what_a_database_cannot_count_is_refused_before_anything_is_spent(
    database, case, words, settings, request, tmp_path, capsys
):
    log, columns = [], {**case.columns, "town": TOWN}
    names = [*columns, "who"]
    schema = Schema(
        columns if "unit" in settings else {**columns, "who": Text()}, constraints=case.constraints
    )
    rows = pa.table({name: CELLS[name] for name in names})
    table = EngineTable.of(stored(rows, database, request), log.append)
    model = PrivSyn(1.0, 1e-9, schema, **settings)
    with refuses(words):
        model.fit(table)
    assert log in ([], ['PRAGMA table_info("people")'])  # of the catalogue, in SQLite
    assert not hasattr(model, "release_")
    if database != "duckdb":
        return
    file, accept = tmp_path / "shop.duckdb", tmp_path / "accept.yaml"
    with duckdb.connect(file) as connection:
        connection.execute("CREATE TABLE people AS FROM rows")
    (tmp_path / "s.yaml").write_text(to_yaml(schema))
    accept.write_text("criteria: [{margin: [town], error: 0.2}]")
    options = {"unit": ("--unit", "who"), "accept": ("--accept", accept)}
    budget = tmp_path / "shop.duckdb.people.budget.jsonl"
    budget.write_text("")
    outcome = run(
        capsys,
        *(
            "synth",
            f"duckdb://{file}",
            tmp_path / "out.parquet",
            "--table",
            "people",
            "--sql",
            tmp_path / "log",
        ),
        *("--schema", tmp_path / "s.yaml", "--epsilon", 1, "--delta", 1e-9),
        *(option for setting in settings for option in options[setting]),
    )
    assert (outcome.code, len(outcome.err.splitlines())) == (2, 1)
    assert re.search(words, outcome.err)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["accept.yaml", "s.yaml", "shop.duckdb", budget.name]
    )
    assert not budget.read_text()


def test_a_column_without_a_declared_type_is_refused():
    """Ibis reads its type from the first row, which is private. A view may have such columns too."""
    connection = ibis.sqlite.connect()
    connection.con.execute("CREATE TABLE people (age INTEGER, job)")
    connection.con.execute("INSERT INTO people VALUES (7, 'x')")
    schema = Schema({"age": Numerical(0, 9, integer=True), "job": Categorical(["x"])})
    table = connection.table("people")
    for rows in (table, table.filter(table.age > 3)):
        with refuses("column 'job': the database declares no type for it"):
            PrivSyn(1.0, 1e-9, schema).fit(rows)
    with refuses("a query in SQL has no declared types in SQLite"):
        PrivSyn(1.0, 1e-9, schema).fit(connection.sql("SELECT age, 'x' AS job FROM people"))
