"""Values, bounds, grids and spreads that a database is asked for: as in memory, and no rare value crosses."""

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from refusals import refuses
from same_model import assert_same_model
from sqlglot import column, exp, parse, select
from table.engine.databases import in_duckdb, in_postgres, in_sqlite

from privsyn import Categorical, Datetime, Numerical, PrivSyn, Schema
from privsyn.table.discovery.frequent import Points
from privsyn.table.discovery.lattices import LatticeCells
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.encoding.steps import NUMBERS, TIMES
from privsyn.table.engine.arithmetic import Traced
from privsyn.table.engine.dialects import DIALECTS
from privsyn.table.engine.engine import Engine
from privsyn.table.engine.engine_table import EngineTable
from privsyn.table.engine.search import Search
from privsyn.table.io.arrow import frame_of
from privsyn.table.io.read_in_batches import read_in_batches


def people(rows=1500, *, dates=True, seed=0):
    """Return a table of which nothing is declared but kinds and rules, and its schema."""
    rng = np.random.default_rng(seed)
    wide = np.where(rng.random(rows) < 0.1, np.nan, 10.0 ** rng.uniform(-40, 40, rows))
    wide[:8] = [0.0, -0.0, 1e300, -1e300, 5e-324, np.inf, -np.inf, 2.0**60]
    jobs = [None if number > 90 else f"job {number}" for number in rng.zipf(1.5, rows).tolist()]
    day = rng.integers(10_000, 20_000, rows)
    columns = {
        "age": (rng.integers(17, 90, rows), Numerical()),
        "price": (np.where(rng.random(rows) < 0.3, 12.99, rng.gamma(2, 20, rows).round(2)), Numerical()),
        "wide": (wide, Numerical()),
        "loan": (rng.gamma(2, 100, rows).round(2), Numerical()),
        "paid": (rng.gamma(2, 50, rows).round(2), Numerical()),
        "town": (
            pa.array(rng.choice(["Rome", "Zürich", "", "żółw", "?", "a b "], rows).tolist()),
            Categorical(),
        ),
        "job": (pa.array(jobs), Categorical()),
        "code": (rng.choice([3, -9, 44, 10**15], rows), Categorical()),
        "rate": (rng.choice([0.0, -0.0, 0.5, np.nan, 2.5], rows), Categorical()),
    }
    rules = ["paid <= loan"]
    if dates:
        later = day + rng.gamma(1, 50, rows).astype(np.int64)
        columns["born"] = pa.array(day.astype("datetime64[D]")), Datetime()
        columns["seen"] = pa.array(later.astype("datetime64[D]")), Datetime()
        columns["at"] = pa.array(rng.integers(0, 2 * 10**15, rows).astype("datetime64[us]")), Datetime()
        rules.append("born <= seen")
    table = pa.table({name: cells for name, (cells, _) in columns.items()})
    return table, Schema({name: kind for name, (_, kind) in columns.items()}, missing="?", constraints=rules)


@pytest.fixture(params=["duckdb", "sqlite", "postgres"])
def stored(request):
    """Return a function that stores rows in a database, and whether it has dates."""
    if request.param == "postgres":
        return partial(in_postgres, request.getfixturevalue("postgres")), True
    return (in_duckdb, True) if request.param == "duckdb" else (in_sqlite, False)


def fitted_in(store, rows, schema, **settings):
    """Return the saved models of a fit in memory and of one in a database."""
    there = EngineTable.of(store(rows))
    here = replace(read_in_batches(rows), form=there.form, public_inputs=there.public_inputs)
    return [PrivSyn(5.0, 1e-9, schema=schema, seed=3, **settings).fit(source) for source in (here, there)]


@pytest.mark.slow("each case")  # the quick lane has the counts of the same questions, in the next test
@pytest.mark.filterwarnings("ignore::privsyn.errors.LossWarning")
def test_what_is_found_in_a_database_is_what_is_found_in_memory(stored):
    store, dates = stored
    rows, schema = people(800, dates=dates)
    names = [name for name in ("price", "town", "job", "code", "rate", "at") if name in rows.column_names]
    rows, schema = rows.select(names), Schema({name: schema.columns[name] for name in names}, missing="?")
    here, there = fitted_in(store, rows, schema)
    assert {spend.what.partition(" of ")[0] for spend in there.ledger_.spends} > {"values", "bounds", "grids"}
    assert_same_model(here.release_.packed(), there.release_.packed())


def test_each_count_of_a_search_is_that_of_memory(stored):
    store, dates = stored
    rows, schema = people(dates=dates)
    there, frame = EngineTable.of(store(rows)), frame_of(rows, "the table")
    open_schema = OpenSchema.of(schema, frame)
    bounds = dict.fromkeys(("age", "price", "wide", "loan", "paid"), (0.0, 1000000.0))
    dates = {
        name: (np.datetime64("1990-01-01"), np.datetime64("2030-01-01")) for name in ("born", "seen", "at")
    }
    filled = open_schema.fill(
        {}, {name: ends for name, ends in (bounds | dates).items() if name in open_schema.bounds}
    )
    there.check_search(open_schema)
    questions = [
        open_schema.bounds_question(open_schema.grids),
        open_schema.lattices(filled),
        open_schema.spreads(filled),
    ]
    assert all(question.cells for question in questions)
    counted = there.tally(questions, None)
    for question, counts in zip(questions, counted, strict=True):
        expected = question.count(frame)
        assert counts.keys() == expected.keys()
        for name in expected:
            assert np.array_equal(counts[name], expected[name]), name


def test_no_value_crosses_whose_votes_are_too_few():
    names = ["Ann"] * 700 + ["Bob"] * 500 + [f"unique {number}" for number in range(300)]
    answers = []

    class Watched(Engine):
        """An engine that keeps what comes back."""

        def values_at(self, table, ranks):
            answers.append(super().values_at(table, ranks))
            return answers[-1]

    table = EngineTable.of(in_duckdb(pa.table({"name": names, "age": np.arange(1500) % 90})))
    log = []
    watched = Watched(table.engine._backend, log.append)
    PrivSyn(3.0, 1e-9, schema=Schema({"name": Categorical(), "age": Numerical(0, 89)}), seed=0).fit(
        replace(table, engine=watched)
    )
    assert {name for answer in answers for name in answer} == {"Ann", "Bob"}
    reads = [text for text in log if text.startswith("SELECT") and "value" in text.partition(" FROM ")[0]]
    assert reads
    assert all("WHERE cell IN (" in text for text in reads)  # a value is read by its rank alone


EDGES = [
    *(
        0.0,
        -0.0,
        5e-324,
        1e-310,
        0.5,
        1.5,
        2.5,
        0.1 + 0.2,
        1 / 3,
        2.0**46 + 0.5,
        2.0**52,
        7.1e18,
        1e300,
        -1e300,
    ),
    *(np.nextafter(number * 0.05, side) for number in range(-20, 20) for side in (-np.inf, 0.0, np.inf)),
    *(number * 0.05 for number in range(-20, 20)),
]


@pytest.mark.parametrize("function", ["numbers", "floats", "times", "points"])
def test_the_arithmetic_of_lattices_is_the_same_to_the_last_bit(stored, function):
    rng = np.random.default_rng(0)
    numbers = np.concatenate([EDGES, rng.gamma(2, 50, 900).round(2), 10.0 ** rng.uniform(-12, 18, 900)])
    table = stored[0](pa.table({"x": numbers}))

    def positions(cells):
        if function == "points":
            return Points.between(-50.0, 5000.0, 0.05).positions(cells, np.dtype(float))
        dtype = np.dtype("f4" if function == "floats" else "f8")
        encoder = Numerical(0, 1).encoder(dtype)
        listed = TIMES if function == "times" else NUMBERS
        return LatticeCells("x", encoder, listed).positions({"x": cells})

    engine = Engine(table.get_backend())
    sql = positions(Traced(column("x", quoted=True), engine.dialect.name)).sql
    query = select(exp.alias_(sql, "y"), exp.alias_(column("x", quoted=True), "x")).from_("people")
    result = table.get_backend().raw_sql(engine.dialect.write(query)).fetchall()
    found = np.array([[np.nan if cell is None else cell for cell in row] for row in result], float)
    assert np.array_equal(found[:, 0], positions(found[:, 1]), equal_nan=True)
    assert len(found) == len(numbers)


@pytest.mark.parametrize(
    ("kind", "cells", "line"),
    [
        (Categorical(), pa.array([1.25, 2]).cast(pa.decimal128(9, 2)), "neither text nor numbers"),
        (Numerical(), pa.array([1.25, 2]).cast(pa.decimal128(18, 2)), "other digits"),
        (Datetime(), pa.array([0]).cast(pa.timestamp("us", "Asia/Tokyo")), "time zone is not UTC"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_any_query(kind, cells, line):
    log = []
    rows = pa.table({"x": cells})
    table = EngineTable.of(in_duckdb(rows), log.append)
    table = replace(table, types=rows.schema, head=frame_of(rows.slice(0, 0), "the table"))
    with refuses(line):
        PrivSyn(1.0, 1e-9, schema=Schema({"x": kind})).fit(table)
    assert not log


@pytest.mark.parametrize("name", ["privsyn_rows", "PRIVSYN_Person", "privsyn_0_0"])
def test_no_column_is_taken_for_one_that_queries_add(name):
    """Summed in place of the number of rows, `privsyn_rows` would move a count by the number in a cell."""
    log = []
    with refuses(f"column '{name}': names that begin with privsyn_"):
        EngineTable.of(in_duckdb(pa.table({name: [100] * 9})), log.append)
    assert not log


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, dialect in DIALECTS.items() if dialect.keeps])
def test_every_dialect_parses_a_search(name):
    rows, schema = people(9, dates=DIALECTS[name].has_times)
    open_schema = OpenSchema.of(
        replace(schema, columns={"age": Numerical(), "price": Numerical()}, constraints=[]),
        frame_of(rows.select(["age", "price"]), "the table"),
    )
    search = Search(select("*").from_("people").subquery("raw"), rows.schema, DIALECTS[name])
    lattices = open_schema.lattices(open_schema.fill({}, {"price": (0.0, 1000.0)}))
    for cells in (*open_schema.bounds_question(open_schema.grids).cells.values(), *lattices.cells.values()):
        counted = search.cells(cells)
        for query, _ in DIALECTS[name].counts(search.source(), [counted.sql], [counted.size]):
            assert len(parse(query, dialect=name)) == 1


def test_a_collation_puts_no_spellings_together_and_the_log_has_no_rank():
    table = in_duckdb(pa.table({"name": ["Ann"] * 400 + ["ann"] * 400 + ["ANN"] + ["Bo"] * 400}))
    connection = table.get_backend()
    connection.raw_sql('CREATE TABLE folded ("name" VARCHAR COLLATE NOCASE)')
    connection.raw_sql("INSERT INTO folded FROM people")
    log = []
    rows = EngineTable.of(connection.table("folded"), log.append)
    model = PrivSyn(5.0, 1e-6, schema=Schema({"name": Categorical()}), seed=0).fit(rows)
    assert {*model.sample(2000, seed=0)["name"].drop_null().to_pylist()} == {"Ann", "Bo", "ann"}
    reads = [text for text in log if text.startswith("SELECT cell, value FROM")]
    assert reads
    assert all(text.endswith("WHERE cell IN (...)") for text in reads)
