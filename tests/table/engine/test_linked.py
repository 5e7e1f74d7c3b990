"""Linked tables in a database: the same answers as in memory, each row linked and bounded there."""

from __future__ import annotations

from contextlib import contextmanager

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command import run
from refusals import refuses
from replay import Answers, moved
from same_model import assert_same_model
from table.engine.databases import in_duckdb, in_postgres, in_sqlite

from privsyn import Categorical, Database, Datetime, Numerical, PrivSyn, Schema, Table
from privsyn.methods import reading
from privsyn.methods.run_of_tables import Run
from privsyn.owners.party import Alone

pytestmark = pytest.mark.filterwarnings("ignore")

ZONES, MODES = Categorical(["a", "b", "c"]), Categorical(["car", "bus"])


def homes_trips_stops(seed=0, homes=300):
    """Three tables, each below the other, whose rows have an order."""
    rng = np.random.default_rng(seed)
    of_trips = np.repeat(np.arange(homes), rng.integers(0, 4, homes))
    of_stops = np.repeat(np.arange(len(of_trips)), rng.integers(0, 3, len(of_trips)))
    tables = {
        "homes": {"home": np.arange(homes), "zone": rng.choice(ZONES.values, homes)},
        "trips": {
            "trip": np.arange(len(of_trips)) + 5,
            "home": of_trips,
            "day": rng.permutation(len(of_trips)),
            "km": rng.integers(0, 100, len(of_trips)),
        },
        "stops": {
            "trip": of_stops + 5,
            "mode": rng.choice(MODES.values, len(of_stops)),
            "number": rng.permutation(len(of_stops)),
        },
    }
    database = Database(
        {
            "homes": Table(Schema({"zone": ZONES}), key="home"),
            "trips": Table(
                Schema({"km": Numerical(0, 99, integer=True)}),
                key="trip",
                parent="homes",
                link="home",
                order="day",
            ),
            "stops": Table(Schema({"mode": MODES}), parent="trips", link="trip", order="number"),
        }
    )
    return tables, database


def pupils_of_schools(seed=1, pupils=300):
    """A root of keys alone, text as keys, and links that lead nowhere; two tables below one."""
    rng = np.random.default_rng(seed)
    names = np.array([f"p{number:03d}" for number in range(pupils)])
    tables = {"pupils": {"pupil": names}}
    for name, kind in (("marks", "mark"), ("visits", "why")):
        links = [*np.repeat(names, rng.integers(0, 3, pupils)), "p999", None, "NA"]
        days = np.datetime64("2020-01-01") + rng.permutation(2 * len(links))[: len(links)]
        cells = rng.choice(["x", "y", "z"], len(links))
        tables[name] = {"pupil": links, "day": days.astype("datetime64[s]"), kind: cells}
    kinds = {"marks": "mark", "visits": "why"}
    children = {
        name: Table(
            Schema({kind: Categorical(["x", "y", "z"]), "day": Datetime("2020-01-01", "2024-12-31")}),
            parent="pupils",
            link="pupil",
            order="day",
        )
        for name, kind in kinds.items()
    }
    return tables, Database({"pupils": Table(Schema({}), key="pupil"), **children})


def courses(seed=2, students=200):
    """A key and link of two columns; the order is no column of data."""
    rng = np.random.default_rng(seed)
    student = np.repeat(np.arange(students), 2)
    course = np.tile([1, 2], students)
    rows = np.repeat(np.arange(2 * students), rng.integers(0, 3, 2 * students))
    tables = {
        "students": {"student": np.arange(students), "sex": rng.choice(["f", "m"], students)},
        "courses": {"student": student, "course": course, "grade": rng.integers(1, 7, 2 * students)},
        "tests": {
            "student": student[rows],
            "course": course[rows],
            "at": rng.permutation(len(rows)),
            "points": rng.integers(0, 30, len(rows)),
        },
    }
    database = Database(
        {
            "students": Table(Schema({"sex": Categorical(["f", "m"])}), key="student"),
            "courses": Table(
                Schema({"grade": Numerical(1, 6, integer=True)}),
                key=["student", "course"],
                parent="students",
                link="student",
                order="course",
            ),
            "tests": Table(
                Schema({"points": Numerical(0, 29, integer=True)}),
                parent="courses",
                link=["student", "course"],
                order="at",
            ),
        }
    )
    return tables, database


@pytest.fixture(params=["duckdb", "sqlite", "postgres"])
def stored(request):
    """Return what stores tables in one database, and returns those of ibis and those of memory."""
    url = request.getfixturevalue("postgres") if request.param == "postgres" else ""

    def store(tables):
        here = {name: pa.table(columns) for name, columns in tables.items()}
        first, *others = here
        one = {
            "duckdb": lambda: in_duckdb(here[first], first),
            "sqlite": lambda: in_sqlite(here[first], first),
            "postgres": lambda: in_postgres(url, here[first], first),
        }[request.param]()
        there = {first: one}
        for name in others:
            there[name] = copied(one.get_backend(), here[name], name, request.param, url)
        return there, here

    return store


def copied(connection, table, name, kind, url):
    """Return one more table of a database."""
    if kind == "duckdb":
        connection.con.register(f"rows_of_{name}", table)
        connection.raw_sql(f"CREATE TABLE {name} AS FROM rows_of_{name}")
    elif kind == "sqlite":
        table.to_pandas().to_sql(name, connection.con, index=False)
    else:
        in_postgres(url, table, name)
    return connection.table(name)


@contextmanager
def bounded(bound):
    """Choose a bound, and ask nothing of what lasts, which no database is asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "best_bound", lambda *_: bound)
        patch.setattr(Run, "candidates", lambda *_: {})
        patch.setattr(Alone, "bits", lambda _: lambda size: np.arange(size, dtype=np.uint64))
        yield


def fitted(tables, database, bound, released=None):
    answers = Answers(released)
    with bounded(bound), answers.run():
        return PrivSyn(20.0, 1e-9, database, seed=3, allow_weak_privacy=True).fit(tables), answers


@pytest.mark.slow
@pytest.mark.parametrize("made", [homes_trips_stops, pupils_of_schools, courses])
def test_answers_about_linked_tables_are_those_of_memory(stored, made):
    tables, database = made()
    there, here = stored(tables)
    if made is pupils_of_schools and there["pupils"].get_backend().name == "sqlite":
        with refuses("column 'day'"):  # SQLite has no times
            fitted(there, database, 99)
        return
    (ours, ours_asked), (theirs, theirs_asked) = fitted(there, database, 99), fitted(here, database, 99)
    assert [spend.what for spend in ours.ledger_.spends] == [spend.what for spend in theirs.ledger_.spends]
    for some, others, spend in zip(ours_asked.exact, theirs_asked.exact, ours.ledger_.spends, strict=True):
        assert all(map(np.array_equal, some, others)), spend.what
    assert {*ours.sample(seed=1)} == {*tables}


@pytest.mark.slow
@pytest.mark.parametrize("bound", [1, 2])
def test_whoever_leaves_linked_tables_moves_nothing_further_than_the_ledger_says(stored, bound):
    tables, database = homes_trips_stops(homes=60)
    many = np.arange(20)
    tables["trips"] = {
        name: np.concatenate([cells, more])
        for (name, cells), more in zip(
            tables["trips"].items(), (many + 1000, many * 0 + 7, many * 0 + 5, many * 0 + 9), strict=True
        )
    }
    whole, asked = fitted(stored(tables)[0], database, bound)
    worst = []
    for leaver in (7, 11):
        frames = {name: pd.DataFrame(columns) for name, columns in tables.items()}
        gone = frames["trips"].loc[frames["trips"]["home"] == leaver, "trip"]
        rest = {
            "homes": frames["homes"][frames["homes"]["home"] != leaver],
            "trips": frames["trips"][frames["trips"]["home"] != leaver],
            "stops": frames["stops"][~frames["stops"]["trip"].isin(gone)],
        }
        columns = {name: frame.to_dict("list") for name, frame in rest.items()}
        without, asked_again = fitted(stored(columns)[0], database, bound, asked.released)
        assert without.ledger_ == whole.ledger_
        assert_same_model(whole.release_.packed(), without.release_.packed())
        steps = zip(whole.ledger_.spends, asked.exact, asked_again.exact, strict=True)
        worst += [moved(some, others, spend.law) / spend.sensitivity for spend, some, others in steps]
    assert 0.9 < max(worst) <= 1 + 1e-12


def test_of_equal_keys_in_the_root_one_row_is_counted(stored):
    tables = {
        "homes": {"home": [1, 1, 2, None], "zone": ["a", "b", "c", "a"]},
        "trips": {"home": [1, 1, 2, 3]},
    }
    database = Database(
        {
            "homes": Table(Schema({"zone": ZONES}), key="home"),
            "trips": Table(Schema({}), parent="homes", link="home"),
        }
    )
    asked = fitted(stored(tables)[0], database, 9)[1]
    assert asked.exact[0][0][:3].tolist() == [1, 1, 0]  # trips: one person has one row, one has two
    assert asked.exact[2][0][:4].sum() == 2  # homes


DERIVED = Table(Schema({"zone": ZONES}), key="home", derive={"furthest": "max(trips.km)"})
TRIPS = Table(Schema({"km": Numerical(0, 99)}), parent="homes", link="home", order="day")


@pytest.mark.parametrize(
    ("database", "day", "message"),
    [
        (
            Database({"homes": DERIVED, "trips": TRIPS}),
            [1, 2],
            "'furthest': a database counts the rows below",
        ),
        (
            Database({"homes": Table(Schema({"zone": ZONES}), key="home"), "trips": TRIPS}),
            ["1", "2"],
            "order 'day': a database does not sort texts as times",
        ),
    ],
)
def test_what_no_database_computes_is_refused_by_name(database, day, message):
    homes = in_duckdb(pa.table({"home": [1], "zone": ["a"]}), "homes")
    trips = pa.table({"home": [1, 1], "km": [3, 4], "day": day})
    with refuses(message):
        tables = {"homes": homes, "trips": copied(homes.get_backend(), trips, "trips", "duckdb", "")}
        PrivSyn(1.0, 1e-9, database).fit(tables)


def test_the_command_counts_linked_tables_in_a_database(tmp_path, capsys):
    file, schema, log = tmp_path / "shop.duckdb", tmp_path / "s.yaml", tmp_path / "log.sql"
    connection = duckdb.connect(str(file))
    connection.execute(
        "CREATE TABLE homes AS SELECT i AS home, ['a', 'b'][1 + i % 2] AS zone FROM range(90) r(i)"
    )
    connection.execute("CREATE TABLE trips AS SELECT i % 90 AS home, i % 10 AS km FROM range(200) r(i)")
    connection.close()
    schema.write_text(
        "tables:\n  homes:\n    key: home\n    columns: {zone: {kind: categorical, values: [a, b]}}\n"
        "  trips:\n    parent: homes\n    link: home\n"
        "    columns: {km: {kind: numerical, low: 0, high: 9, integer: true}}\n"
    )
    options = ("--schema", schema, "--epsilon", 1, "--delta", 1e-9, "--sql", log)
    outcome = run(capsys, "synth", f"duckdb:///{file}", tmp_path / "out", *options)
    assert outcome.code == 0, outcome.err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["homes.csv", "trips.csv"]
    assert "'...'" in log.read_text()  # the key of the order


def test_tables_at_several_places_are_refused():
    homes = in_duckdb(pa.table({"home": [1], "zone": ["a"]}), "homes")
    trips = pa.table({"home": [1, 1], "km": [3, 4], "day": [1, 2]})
    database = Database({"homes": Table(Schema({"zone": ZONES}), key="home"), "trips": TRIPS})
    for table in (trips, in_duckdb(trips, "trips")):
        with refuses("all in one database"):
            PrivSyn(1.0, 1e-9, database).fit({"homes": homes, "trips": table})
