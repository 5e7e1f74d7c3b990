"""Rows that a database counts: the same codes, the same answers and the same model as in memory."""

from dataclasses import replace
from itertools import product

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from replay import Answers, moved
from same_model import assert_same_model
from sqlglot import exp
from table.engine.databases import POSTGRES, SQLITE, in_duckdb, in_postgres, in_sqlite

from privsyn import Categorical, Datetime, Increasing, Numerical, PrivSyn, Schema, Time
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.steps import Heap
from privsyn.table.engine.codes import Coding, names_of
from privsyn.table.engine.dialects import DIALECTS
from privsyn.table.engine.engine_table import EngineTable
from privsyn.table.engine.scales import scale_of
from privsyn.table.engine.steps import steps_of
from privsyn.table.io.arrow import frame_of
from privsyn.table.io.read_in_batches import read_in_batches


def assert_same_codes(table, rows, column, **settings):
    """Fail unless SQL gives each row of a table of ibis the codes that the codec gives to the same rows."""
    engine_table = EngineTable.of(table)
    frame = frame_of(rows.cast(engine_table.types), "the table")
    schema = column if isinstance(column, Schema) else Schema(dict.fromkeys(rows.column_names, column))
    codec = Codec.for_table(schema, frame, **settings)
    coding = Coding(engine_table.relation, engine_table.types, engine_table.engine.dialect, codec)
    result = table.get_backend().raw_sql(engine_table.engine.dialect.write(coding.query()))
    assert sorted(result.fetchall()) == sorted(map(tuple, codec.encode(frame).codes.tolist()))
    assert list(names_of(codec)) == list(codec.domain.names)


INF, NAN = float("inf"), float("nan")
EDGES = [None, NAN, INF, -INF, 0.0, -0.0, 5e-324, 1.7e308, -1.7e308, 0.1, 0.3, 0.1 + 0.2, 2.5, 49.995, 50.0]
MOMENTS = [
    "2015-01-01",
    "2015-01-01T23:59:59.999999",
    "2016-02-29T12:30:00",
    "2016-12-31T23:59:59",
    "1890-05-05",
    "9999-12-31T23:59:59",
    "0001-01-01",
    "2015-06-07T00:00:30",
    "2015-06-07T00:00:30.000001",
]
TIMES = pa.array(np.array(MOMENTS, "datetime64[us]"))

KINDS = {
    "reals": (Numerical(-3, 50), pa.array(EDGES, pa.float64())),
    "decimals in doubles": (Numerical(0, 50, decimals=2), pa.array(EDGES, pa.float64())),
    "floats": (Numerical(0, 50, decimals=1), pa.array(EDGES, pa.float64()).cast(pa.float32())),
    "no missing cells": (Numerical(0, 50, nullable=False), pa.array(EDGES, pa.float64())),
    "integers": (
        Numerical(-5, 20, integer=True),
        pa.array([None, -128, -6, -5, 0, 7, 19, 20, 21, 127], pa.int8()),
    ),
    "wide integers": (
        Numerical(0, 10**12),
        pa.array([None, -(2**63), 2**63 - 1, 0, 10**6, 10**12, 2**53 + 1]),
    ),
    "unsigned": (Numerical(0, 2**63), pa.array([0, 2**64 - 1, 2**63, 5, None], pa.uint64())),
    "steps": (Numerical(0, 1000, step=50), pa.array([None, 24, 25, 26, 74, 75, 76, 975, 1000, 2000])),
    "decimals": (
        Numerical(0, 99, decimals=2),
        pa.array([None, 0, 1.25, 98.99, 300, -3]).cast(pa.decimal128(9, 2)),
    ),
    "dates": (
        Datetime("2015-01-01", "2016-12-31"),
        TIMES.cast(pa.timestamp("s"), safe=False).cast(pa.date32(), safe=False),
    ),
    "times by day": (Datetime("2015-01-01", "2016-12-31"), TIMES),
    "times by minute": (Datetime("2015-01-01 00:00", "2016-12-31 23:59", unit="min"), TIMES),
    "times by hour": (Datetime("2015-01-01 00:00", "2016-12-31 23:00", unit="h"), TIMES),
    "marks": (
        Datetime("1900-01-01", "2016-12-31", missing=["9999-12-31 23:59:59", "2016-02-29 12:30:00"]),
        TIMES,
    ),
    "UTC": (
        Datetime("2015-01-01 00:00", "2016-12-31 00:00", unit="s"),
        TIMES.cast(pa.timestamp("us", "UTC")),
    ),
    "clock": (
        Time("08:00", "20:00", unit="m"),
        pa.array([0, 8 * 3600 * 10**6 + 59, 86399 * 10**6, None], pa.time64("us")),
    ),
    "text": (
        Categorical(["b", "a", "é", "", "Z"]),
        pa.array(["a", "A", "é", "", None, "Z", "z ", "b ", "zz"]),
    ),
    "pooled": (Categorical(["b", "a"], other="a"), pa.array(["a", "x", None, "b"])),
    "many texts": (
        Categorical([f"{i:x}" for i in range(300)]),
        pa.array([f"{i:x}" for i in range(0, 600, 7)]),
    ),
    "truth": (Categorical([True, False]), pa.array([True, False, None])),
    "listed integers": (Categorical([3, 1, -7]), pa.array([1, 3, -7, 2, None])),
    "listed reals": (Categorical([0.0, 0.5, 0.1]), pa.array(EDGES, pa.float64())),
}


@pytest.mark.parametrize("fine", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_duckdb_gives_each_cell_the_code_that_it_has_in_memory(kind, fine):
    column, cells = KINDS[kind]
    rows = pa.table({"x": cells, "X ": cells})
    heaps = {"x": (Heap(5, 0, 0.5),)} if kind == "reals" else {}
    assert_same_codes(in_duckdb(rows), rows, column, fine=fine, heaps=heaps)


@pytest.mark.parametrize("kind", [kind for kind, (_, cells) in KINDS.items() if cells.type in POSTGRES])
def test_postgres_gives_each_cell_the_code_that_it_has_in_memory(kind, postgres):
    column, cells = KINDS[kind]
    rows = pa.table({"x": cells})
    assert_same_codes(in_postgres(postgres, rows), rows, column, fine=True)


@pytest.mark.parametrize("kind", [kind for kind, (_, cells) in KINDS.items() if cells.type in SQLITE])
def test_sqlite_gives_each_cell_the_code_that_it_has_in_memory(kind):
    column, cells = KINDS[kind]
    rows = pa.table({"x": cells})
    assert_same_codes(in_sqlite(rows), rows, column, fine=True)


@pytest.mark.parametrize("database", ["duckdb", "sqlite", "postgres"])
@pytest.mark.parametrize("column", [Numerical(-3, 1e7), Numerical(0, 50, decimals=2), Numerical(1e-9, 1e-5)])
def test_the_doubles_on_both_sides_of_each_threshold_have_their_own_codes(database, column, request):
    scale = scale_of(pa.float64())
    encoder = column.encoder(np.dtype("float64")).fine((), 32)
    thresholds = steps_of(lambda numbers: encoder.encode(scale.cells(numbers)), scale.ends).thresholds
    assert len(thresholds) > 200
    rows = pa.table({"x": scale.array(np.concatenate([thresholds - 1, thresholds]))})
    if database == "postgres":
        table = in_postgres(request.getfixturevalue("postgres"), rows)
    else:
        table = in_duckdb(rows) if database == "duckdb" else in_sqlite(rows)
    assert_same_codes(table, rows, column, fine=True)


def stays(rows=400, seed=0):
    """Return dates and times of stays, some of them out of order, missing or without an end."""
    rng = np.random.default_rng(seed)
    start = np.datetime64("2015-01-01", "us") + rng.integers(-(10**14), 10**14, rows)
    end = start + rng.integers(-(10**13), 10**14, rows)
    paid = (end + rng.integers(-(10**13), 10**13, rows)).astype("datetime64[D]")
    end[::7] = np.datetime64("9999-12-31", "us")
    masks = [rng.random(rows) < 0.2 for _ in range(3)]
    days = pa.array(end.astype("datetime64[D]"), mask=masks[1])
    return pa.table(
        {
            "start": pa.array(start, mask=masks[0]),
            "end": days,
            "paid": pa.array(paid, mask=masks[2]),
            "low": pa.array(rng.integers(-5, 30, rows), mask=masks[0]),
            "high": pa.array(rng.integers(0, 300, rows), mask=masks[1]),
            "paid in": pa.array(np.append(rng.gamma(2, 50, rows - 5), EDGES[1:6]).round(2), mask=masks[0]),
            "loan": pa.array(rng.gamma(2, 100, rows), mask=masks[1]),
        }
    )


ORDERS = {
    "days": (["end", "paid"], {}, False),
    "seconds and days": (["start", "end", "paid"], {}, False),
    "strict": (["start", "end"], {}, True),
    "complete": (["start", "end", "paid"], {"nullable": False}, False),
    "integers": (["low", "high"], {}, True),
    "cents and reals": (["low", "paid in", "loan"], {}, False),
    "cents": (["paid in", "high"], {}, True),
}


@pytest.mark.parametrize("database", ["duckdb", "postgres"])
@pytest.mark.parametrize("order", ORDERS)
def test_gaps_have_the_codes_that_they_have_in_memory(order, database, request):
    names, settings, strict = ORDERS[order]
    rows = stays().select(names)
    ends = {"missing": ["9999-12-31"], **settings}
    kinds = {
        "start": Datetime("2013-01-01 00:00", "2016-12-31 00:00", unit="s", **settings),
        "end": Datetime("2013-01-01", "2017-12-31", **ends),
        "paid": Datetime("2014-01-01", "2018-12-31", **ends),
        "low": Numerical(0, 20, integer=True, **settings),
        "high": Numerical(0, 250, integer=True, **settings),
        "paid in": Numerical(0, 200, decimals=2, **settings),
        "loan": Numerical(0, 1000, **settings),
    }
    schema = Schema({name: kinds[name] for name in names}, constraints=[Increasing(names, strict=strict)])
    connection = request.getfixturevalue("postgres") if database == "postgres" else None
    table = in_duckdb(rows) if connection is None else in_postgres(connection, rows)
    assert_same_codes(table, rows, schema, fine=True, without_gaps=())


def survey(rows=2000, seed=0):
    """Return a table of many kinds of columns and its schema, which leaves nothing open."""
    rng = np.random.default_rng(seed)
    when = np.datetime64("2015-01-01", "s") + rng.integers(0, 3 * 10**7, rows)
    table = pa.table(
        {
            "age": pa.array(rng.integers(0, 100, rows), pa.int64(), mask=rng.random(rows) < 0.1),
            "pay": rng.lognormal(7, 1, rows),
            "sex": pa.array(rng.choice(["F", "M"], rows)),
            "at": pa.array(when),
            "day": pa.array(when.astype("datetime64[D]")),
            "fit": pa.array(rng.random(rows) < 0.3),
        }
    )
    schema = Schema(
        {
            "age": Numerical(0, 99, integer=True),
            "pay": Numerical(0, 20_000),
            "sex": Categorical(["F", "M"]),
            "at": Datetime("2015-01-01 00:00", "2015-12-31 00:00", unit="s"),
            "day": Datetime("2015-01-01", "2015-12-31"),
            "fit": Categorical([True, False]),
        }
    )
    return table, schema


def test_a_fit_in_duckdb_is_the_fit_in_memory():
    table, schema = survey()
    counted_there = EngineTable.of(in_duckdb(table))
    in_memory = read_in_batches(table)
    in_memory = replace(in_memory, form=counted_there.form, public_inputs=counted_there.public_inputs)
    models = [PrivSyn(1.0, 1e-9, schema=schema, seed=7).fit(rows) for rows in (in_memory, counted_there)]
    assert_same_model(*(model.release_.packed() for model in models))


@pytest.mark.slow
@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_parses_what_it_is_sent(name):
    import sqlglot

    table, schema = survey(rows=5)
    codec = Codec.for_table(schema, frame_of(table.slice(0, 0), "the table"), fine=True)
    dialect = DIALECTS[name]
    if not dialect.has_times:
        pytest.skip("has no dates")
    relation = sqlglot.select("*").from_("people").subquery("raw")
    query = Coding(relation, table.schema, dialect, codec).query()
    for statement in (dialect.create("codes", query), dialect.drop("codes")):
        assert len(sqlglot.parse(statement, dialect=name)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-9, 0])
@pytest.mark.parametrize("database", ["duckdb", "postgres"])
@pytest.mark.filterwarnings("ignore")
def test_a_row_that_leaves_moves_nothing_further_than_the_ledger_says(database, delta, request):
    rows, schema = survey(200)

    def fitted(table, released=None):
        if database == "postgres":
            there = in_postgres(request.getfixturevalue("postgres"), table)
        else:
            there = in_duckdb(table)
        answers = Answers(released)
        with answers.run():
            return PrivSyn(20.0, delta, schema, seed=5, allow_weak_privacy=True).fit(there), answers

    whole, asked = fitted(rows)
    worst = []
    for leaver in (0, 77):
        rest = pa.concat_tables([rows.slice(0, leaver), rows.slice(leaver + 1)])
        without, asked_again = fitted(rest, asked.released)
        assert without.ledger_ == whole.ledger_
        assert_same_model(whole.release_.packed(), without.release_.packed())
        steps = zip(whole.ledger_.spends, asked.exact, asked_again.exact, strict=True)
        worst += [moved(some, others, spend.law) / spend.sensitivity for spend, some, others in steps]
    assert 0.9 < max(worst) <= 1 + 1e-12


MIXED = [7, -3, 21, 3.7, 4.5, 14.7, 1e300, INF, -INF, 2.0, "abc", "", "7 km", b"\x00\xff", b"", None]
LOOSE = {
    "integers": Numerical(0, 20, integer=True),
    "bins": Numerical(0, 20, bins=7),
    "decimals": Numerical(0, 20, decimals=1),
    "list": Categorical([7, -3, 2]),
}


@pytest.mark.parametrize(
    ("declared", "kind"),
    [("INTEGER", "integers"), ("INTEGER", "steps"), ("INTEGER", "list"), *product(["REAL"], LOOSE)],
)
def test_a_cell_of_another_type_than_its_column_has_the_code_of_the_file(kind, declared, tmp_path):
    rows = [(cell,) for cell in MIXED]
    column = LOOSE.get(kind, Numerical(0, 20, step=10))
    assert_codes_of_the_file(tmp_path / "people.sqlite", Schema({"x": column}), declared, rows)


def test_distances_of_cells_of_other_types_are_those_of_the_file(tmp_path):
    rows = [(first, second) for first in MIXED for second in MIXED]
    whole = LOOSE["integers"]
    schema = Schema({"x": whole, "y": whole}, constraints=[Increasing(["x", "y"])])
    assert_codes_of_the_file(tmp_path / "people.sqlite", schema, "INTEGER", rows, without_gaps=())


def assert_codes_of_the_file(file, schema, declared, rows, **settings):
    """Fail unless each cell has the code in SQLite that it has when the file is read."""
    connection = ibis.sqlite.connect(file)
    names = list(schema.columns)
    connection.con.execute(f"CREATE TABLE people ({', '.join(f'{name} {declared}' for name in names)})")
    marks = ", ".join("?" * len(names))
    connection.con.executemany(f"INSERT INTO people VALUES ({marks})", rows)  # noqa: S608
    connection.con.commit()
    there, here = EngineTable.of(connection.table("people")), read_in_batches(file, schema)
    frame = pd.DataFrame({name: here.column(name) for name in names})
    codec = Codec.for_table(schema, there.head, fine=True, **settings)
    counted = connection.raw_sql(there.engine.dialect.write(there.coding(codec).query())).fetchall()
    codec = Codec.for_table(schema, here.head, fine=True, **settings)
    assert counted == list(map(tuple, codec.encode(frame).codes.tolist()))


def test_values_of_a_column_of_integers_are_integers_alone():
    connection = ibis.sqlite.connect()
    connection.con.execute("CREATE TABLE people (x INTEGER)")
    cells = [(cell,) for cell in MIXED * 200]
    connection.con.executemany("INSERT INTO people VALUES (?)", cells)
    model = PrivSyn(8.0, 1e-6, schema=Schema({"x": Categorical()}), seed=0)
    model.fit(EngineTable.of(connection.table("people")))
    assert {*model.sample(400, seed=0)["x"].to_pylist()} == {7, -3, 21, 2, None}


@pytest.mark.parametrize(
    ("name", "sizes", "ranges"),
    [
        ("postgres", [9] * 10, [range(8), range(8, 10)]),
        ("duckdb", [9] * 10, [range(10)]),
        ("duckdb", [9] * 65, [range(64), range(64, 65)]),
        ("spark", [600_000, 400_000, 5, 3_000_000, 5], [range(2), range(2, 3), range(3, 4), range(4, 5)]),
        ("sqlite", [], []),
    ],
)
def test_no_query_counts_too_many_tables_or_cells(name, sizes, ranges):
    cells = [exp.column(f"x{number}") for number in range(len(sizes))]
    queries = DIALECTS[name].counts(exp.to_table("people"), cells, sizes)
    assert [numbers for _, numbers in queries] == ranges


def test_the_ledger_says_on_whose_rows_a_view_may_depend():
    people = in_duckdb(pa.table({"x": [1, 2]}))
    people.get_backend().raw_sql("CREATE VIEW sums AS SELECT SUM(x) AS x FROM people")
    for table in (people, people.filter(people.x > 1), people.get_backend().table("sums")):
        assert any("a view or query depends on" in fact for fact in EngineTable.of(table).public_inputs)
