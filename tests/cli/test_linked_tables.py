"""Several tables on the command line: a folder or a database in, one of the same kind out, all or nothing."""

import json
import re
import sqlite3
from contextlib import closing

import duckdb
import numpy as np
import pandas as pd
import pytest
from command import run

from privsyn import load
from privsyn.table.io.write import write_table

SCHEMA = """
tables:
  homes:
    key: home
    columns:
      region: {kind: categorical, values: [n, s]}
  trips:
    key: trip
    parent: homes
    link: home
    order: day
    columns:
      km: {kind: numerical, low: 0, high: 9, integer: true}
"""
RULED = """
tables:
  homes:
    key: home
    constraints: [homes.all == sum(trips.km)]
    columns:
      all: {kind: numerical, low: 0, high: 27, integer: true}
      region: {kind: categorical, values: [n, s]}
  trips:
    key: trip
    parent: homes
    link: home
    order: day
    children: 1..3
    constant: [bus]
    columns:
      bus: {kind: categorical, values: [a, b]}
      km: {kind: numerical, low: 0, high: 9, integer: true}
"""
NUMBERS = "numerical, low: 0, high: 9, integer: true"
EPSILON = ("--epsilon", 2, "--schema", "homes.yaml")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    homes = pd.DataFrame({"home": range(200), "region": rng.choice(["n", "s"], 200)})
    trips = pd.DataFrame({"home": np.repeat(range(200), 2), "trip": range(400), "day": [1, 2] * 200})
    trips["km"] = rng.integers(0, 10, 400)
    (tmp_path / "in").mkdir()
    for name, table in (("homes", homes), ("trips", trips)):
        table.to_csv(tmp_path / "in" / f"{name}.csv", index=False)
        write_table(table, tmp_path / f"in.duckdb::{name}")
        write_table(table, tmp_path / f"in.sqlite::{name}")
    (tmp_path / "homes.yaml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_goes_in_and_a_folder_comes_out(folder, capsys):
    done = run(capsys, "synth", "in", "out", *EPSILON, "--model", "m.privsyn", "--ledger", "l.json")
    assert done.code == 0, done.err
    homes, trips = (pd.read_csv(folder / "out" / f"{name}.csv") for name in ("homes", "trips"))
    assert homes.columns.tolist() == ["home", "region"]
    assert trips.columns.tolist() == ["home", "trip", "day", "km"]
    assert trips["home"].isin(homes["home"]).all()
    size = rf"out: trips: {len(trips):,} rows \(a private estimate, give or take [1-9][0-9,]*\)"
    assert re.search(f"{size}, 4 columns, linked to homes", done.out)
    assert "for all rows of 'homes' with one 'home', and all rows that lead to them\n" in done.out
    assert (folder / "l.json").exists()
    assert sorted(path.name for path in folder.iterdir() if "out" in path.name) == ["out"]
    done = run(capsys, "sample", "m.privsyn", "few", "--rows", 5)
    assert done.code == 0
    assert len(pd.read_csv(folder / "few" / "homes.csv")) == 5


def test_rows_that_memory_cannot_hold_are_refused_before_anything_is_spent(folder, capsys):
    done = run(capsys, "synth", "in", "out", *EPSILON, "--rows", 10**10, "--model", "m.privsyn")
    assert done.code == 2
    assert "10,000,000,000 rows do not fit in memory: with the rows that belong to them" in done.err
    names = {word for path in folder.iterdir() for word in path.name.split(".")}
    assert names.isdisjoint({"out", "m", "budget"})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_database_goes_in_and_a_database_comes_out(folder, capsys, kind):
    done = run(capsys, "synth", f"in.{kind}", f"out.{kind}", *EPSILON)
    assert done.code == 0, done.err
    if kind == "duckdb":
        with duckdb.connect(str(folder / "out.duckdb")) as database:
            found = database.execute("select count(*) from trips anti join homes using (home)").fetchone()
        assert found == (0,)


def test_keys_and_order_of_sqlite_keep_their_types(folder, capsys):
    """They came out as TEXT."""
    said = "create table t (trip integer primary key, home bigint, day int, km integer, paid boolean)"
    with closing(sqlite3.connect(folder / "in.sqlite")) as base, base:
        base.execute("alter table trips rename to old")
        base.execute(said.replace(" t ", " trips ", 1))
        base.execute("insert into trips select trip, home, day, km, day = 1 from old")
        base.execute("drop table old")
    (folder / "homes.yaml").write_text(SCHEMA + "      paid: {kind: categorical, values: [false, true]}\n")
    done = run(capsys, "synth", "in.sqlite", "out.sqlite", *EPSILON, "--seed", 1)
    assert done.code == 0, done.err
    with closing(sqlite3.connect(folder / "out.sqlite")) as base:
        types = {name: kind for _, name, kind, *_ in base.execute("pragma table_info(trips)")}
        stored = base.execute("select distinct typeof(trip), typeof(home), typeof(day) from trips").fetchall()
        paid = base.execute("select count(paid) * 1.0 / count(*), avg(paid) from trips").fetchone()
    assert types == {
        "trip": "INTEGER",
        "home": "bigint",
        "day": "INT",
        "km": "INTEGER",
        "paid": "boolean",
    }
    assert stored == [("integer", "integer", "integer")]
    assert paid[0] > 0.9  # 0 and 1 were read as missing cells
    assert abs(paid[1] - 0.5) < 0.2


@pytest.mark.slow
def test_a_report_compares_the_tables_that_were_written(folder, capsys):
    done = run(capsys, "synth", "in", "out", *EPSILON, "--report", "r.html")
    assert done.code == 0, done.err
    assert "r.html: both tables side by side. It READS THE REAL TABLE" in done.out
    page = (folder / "r.html").read_text()
    assert all(f"{len(pd.read_csv(path)):,}" in page for path in (folder / "out").glob("*.csv"))
    assert "trips" in page


def test_rules_across_tables_hold_in_the_files(folder, capsys):
    (folder / "homes.yaml").write_text(RULED)
    for name, more in (("homes", {"all": 1}), ("trips", {"bus": "b"})):
        path = folder / "in" / f"{name}.csv"
        pd.read_csv(path).assign(**more).to_csv(path, index=False)
    done = run(capsys, "synth", "in", "out", *EPSILON)
    assert done.code == 0, done.err
    homes, trips = (pd.read_csv(folder / "out" / f"{name}.csv") for name in ("homes", "trips"))
    assert homes["home"].isin(trips["home"]).all()
    assert trips.groupby("home")["km"].sum().reindex(homes["home"]).tolist() == homes["all"].tolist()
    for old, new, text in (
        ("sum(trips.km)", "sum(trip.km)", "'homes': 'all': 'trip' is no table whose parent is 'homes'"),
        ("[bus]", "[buses]", "'trips': 'buses' is no column of the table that is counted; did you mean"),
        ("constant", "constraints: [km >= homes.al]\n    constant", "'homes' has no column 'al'"),
        ("children: 1..3", "children: 3..1", "children is a number or a range such as 1.. or 1..4"),
    ):
        (folder / "homes.yaml").write_text(RULED.replace(old, new))
        done = run(capsys, "synth", "in", "other", *EPSILON)
        assert (done.code, text in done.err, len(done.err.splitlines())) == (2, True, 1), done.err
    assert not (folder / "other").exists()


@pytest.mark.slow
def test_a_look_up_table_comes_out_as_it_is(folder, capsys):
    (folder / "public").mkdir()
    (folder / "public" / "regions.csv").write_text("region,name\ns,NA\nn,007\nw,west\n")
    path = folder / "public" / "homes.yaml"
    listed = SCHEMA.replace("{kind: categorical, values: [n, s]}", "{kind: categorical}")
    path.write_text(listed + "  regions: {public: regions.csv, key: region}\n")
    done = run(capsys, "synth", "in", "out", "--epsilon", 2, "--schema", path, "--model", "m.privsyn")
    assert done.code == 0, done.err
    assert "out: regions: 3 rows, 2 columns, public, as it is" in done.out
    facts = load(folder / "m.privsyn").ledger.public_inputs
    assert "the table 'regions' of the file 'regions.csv': it is among the synthetic tables as it is" in facts
    assert run(capsys, "sample", "m.privsyn", "few.duckdb", "--rows", 5).code == 0
    assert (folder / "out" / "regions.csv").read_text() == (folder / "public" / "regions.csv").read_text()
    with duckdb.connect(str(folder / "few.duckdb")) as database:
        found = database.execute("select count(*) from homes semi join regions using (region)").fetchone()
    assert found == (5,)


def test_a_look_up_table_is_not_the_private_one_nor_written_over(folder, capsys):
    looked = SCHEMA.replace("{kind: categorical, values: [n, s]}", "{kind: categorical}")
    for public, out, text in (
        ("in/homes.csv, key: home", "out", "'homes' is private, and the look-up table 'regions' too"),
        ("in.duckdb::homes, key: home", "in.duckdb", "in.duckdb: is an input too"),
        ("none.csv, key: region", "out", "table 'regions': none.csv: there is no such file"),
        ("{a: 1}, key: region", "out", "public is the path of a table"),
    ):
        (folder / "homes.yaml").write_text(looked + f"  regions: {{public: {public}}}\n")
        done = run(capsys, "synth", "in", out, *EPSILON)
        assert (done.code, text in done.err, len(done.err.splitlines())) == (2, True, 1), done.err
    assert not (folder / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "text"),
    [
        (("in", "in", *EPSILON), "in is not empty: several tables are written into a new folder"),
        (("in", "homes.yaml", *EPSILON), "homes.yaml is a file"),
        (("in", "no/out", *EPSILON), "there is no folder"),
        (("in", "out.csv", *EPSILON), "out.csv is the name of one table: several are written into a folder"),
        (("none", "out", *EPSILON), "none: there is no such folder or file"),
        (("in.duckdb", "in.duckdb", *EPSILON), "OUT in.duckdb: is an input too"),
        (("in.sqlite", "no/out.sqlite", *EPSILON), "there is no folder no"),
        (("in", "out", *EPSILON, "--model", "homes.yaml", "--force"), "homes.yaml: is an input too"),
        (("in/homes.csv", "out", *EPSILON), "is one table, and several are declared"),
        (("in", "out", "--epsilon", 2), "of linked tables give a schema too, which `privsyn schema` drafts"),
        (
            ("in", "out", "--epsilon", 2, "--schema", "one.yaml"),
            "is a folder of several tables, and the schema is of one: give its file, or a schema of linked",
        ),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(folder, capsys, typed, text):
    (folder / "one.yaml").write_text("columns: {region: {kind: categorical, values: [n, s]}}")
    before = sorted(path.name for path in folder.iterdir())
    done = run(capsys, "synth", *typed)
    assert done.code == 2
    assert text in done.err
    assert len(done.err.splitlines()) == 1
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("command", ["synth none t.csv --epsilon 1", "plan none --epsilon 1", "schema none"])
def test_a_folder_that_does_not_exist_is_named_as_such_without_a_schema_too(folder, capsys, command):
    done = run(capsys, *command.split())
    assert (done.code, done.err) == (2, "privsyn: none: there is no such folder or file\n")


@pytest.mark.parametrize("name", ["--model", "--ledger", "--sheet", "--budget"])
def test_nothing_but_the_tables_is_in_their_folder(folder, capsys, name):
    """The model is written first: the folder would not be empty any more, with epsilon spent."""
    (folder / "out").mkdir()
    file = {"--sheet": "out/file.md", "--budget": "out/file.jsonl"}.get(name, "out/file")
    done = run(capsys, "synth", "in", "out", *EPSILON, name, file)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert f"{file}: the folder out is for the tables alone" in done.err
    assert not list((folder / "out").iterdir())


def test_what_is_remarkable_about_a_column_names_its_table(folder, capsys):
    """Here a list of wrong values: the noise that is found instead is at most a few of 400 cells."""
    wrong = SCHEMA.replace("numerical, low: 0, high: 9, integer: true", "time")
    third = "key: home\n    derive: {number: count(trips)}\n"
    (folder / "homes.yaml").write_text(wrong.replace("key: home\n", third, 1))
    done = run(
        capsys, "synth", "in", "out", "--epsilon", 20, "--schema", "homes.yaml", "--seed", 1, "--verbose"
    )
    assert done.code == 0, done.err
    assert re.search(
        r"^trips.km: (9.|100)% of the cells are missing in the table, infinite or unreadable$", done.out, re.M
    )
    assert "homes: 3 columns counted, 1 not, at epsilon 20" in done.out
    assert "may help" in done.out
    assert "a target" not in done.out  # linked tables take none


@pytest.mark.slow
def test_the_verdict_and_size_of_each_table_are_never_left_out(folder, capsys):
    """So many lines say what was lost that others are left out. A saved model says all of them again."""
    for name in ("stops", "fares"):
        frame = pd.DataFrame({"trip": range(400)}).assign(**{f"name_{n}": "x" for n in range(9)})
        frame.to_csv(folder / "in" / f"{name}.csv", index=False)
        with (folder / "homes.yaml").open("a") as schema:
            schema.write(f"  {name}: {{parent: trips, link: trip}}\n")
    done = run(capsys, "synth", "in", "out", *EPSILON, "--seed", 1, "--model", "m.privsyn")
    assert done.code == 0, done.err
    assert "more line" in done.out
    assert "`privsyn sample m.privsyn OUT --verbose` shows" in done.out
    again = run(capsys, "sample", "m.privsyn", "again", "--verbose")
    for name in ("homes", "trips", "stops", "fares"):
        for text in (done.out, again.out):
            assert re.search(rf"^{name}: (Yes|Roughly|No)\b", text, re.M), (name, text)
            assert re.search(rf"^(out|again): {name}: [0-9,]+ rows? \(a private estimate, give", text, re.M)


def test_each_table_has_one_file(folder, capsys):
    (folder / "in" / "homes.parquet").touch()
    done = run(capsys, "synth", "in", "out", *EPSILON)
    assert (done.code, "homes.csv and homes.parquet are both the table 'homes'" in done.err) == (2, True)
    (folder / "in" / "homes.parquet").unlink()
    (folder / "in" / "trips.csv").unlink()
    done = run(capsys, "synth", "in", "out", *EPSILON)
    assert done.code == 2
    assert "'trips' is missing: in a folder its file is called trips.csv" in done.err
    assert not (folder / "out").exists()


def test_an_order_without_a_number_is_refused(folder, capsys):
    """Each row would come last: its listed values are texts."""
    listed = SCHEMA.replace("order: day", "order: km").replace(NUMBERS, "@}\n      day: {kind: text")
    for kind, code in (("categorical, values: [few, many]", 2), ("categorical, values: ['7', many]", 0)):
        (folder / "homes.yaml").write_text(listed.replace("@", kind))
        done = run(capsys, "synth", "in", "out", *EPSILON)
        assert done.code == code, done.err
        assert ("order 'km' has texts: name a column of numbers or times" in done.err) == (code == 2)
        assert (folder / "out").exists() == (code == 0)


def test_a_column_that_was_not_found_names_its_table(folder, capsys):
    """`km` of `homes` is listed, that of `trips` is not, and noise hides it: error below 1e-7."""
    homes = pd.read_csv(folder / "in" / "homes.csv")
    homes.assign(km="a").to_csv(folder / "in" / "homes.csv", index=False)
    listed = SCHEMA.replace("[n, s]}", "[n, s]}\n      km: {kind: categorical, values: [a, b]}")
    (folder / "homes.yaml").write_text(listed.replace(NUMBERS, "categorical"))
    done = run(
        capsys, "synth", "in", "out", *EPSILON[2:], "--epsilon", 0.01, "--seed", 1, "--model", "m.privsyn"
    )
    assert done.code == 1, done.err  # the rows are noise alone, so no table is written
    assert "no values or bounds were found for: trips.km; unless" in done.out
    model = load(folder / "m.privsyn")
    assert model.not_found == ("trips.km",)
    assert model.tables["homes"].accuracy_.not_found == ()


@pytest.mark.parametrize("command", ["evaluate", "attack"])
def test_what_several_tables_do_not_take_is_refused_in_one_line(folder, capsys, command):
    many, linked = 2 if command == "evaluate" else 3, ("--schema", "homes.yaml")
    refused = [("--unit", "home"), ("--order", "day"), ("--delimiter", ";")]
    refused += [("--target", "km"), ("--test", "in")] if many == 2 else []
    for given, text in [
        (("in",) * many, "in: is a folder without a file"),
        (("in/trips.csv",) * many + linked, "in/trips.csv: is one table, and several are declared"),
        (("none",) + ("in",) * (many - 1) + linked, "none: there is no such folder"),
        (("in",) + ("no.duckdb",) * (many - 1) + linked, "no.duckdb: there is no such file"),
        *[(("in",) * many + linked + each, f"linked tables take no {each[0]}: ") for each in refused],
    ]:
        done = run(capsys, command, *given)
        assert (done.code, text in done.err, done.err.count("\n")) == (2, True, 1), (given, done.err)


@pytest.mark.slow
def test_linked_tables_are_compared_from_wherever_they_are(folder, capsys):
    done = run(capsys, "synth", "in", "out.duckdb", *EPSILON, "--seed", 0)
    assert done.code == 0, done.err
    compare = ("--schema", "homes.yaml", "--model", "linear")
    done = run(capsys, "evaluate", "in", "out.duckdb", *compare, "--json", "s.json", "--report", "r.html")
    assert done.code == 0, done.err
    assert "All 3 hold in the synthetic tables: keys, order and rules, 0 broken." in done.out
    assert "how many trips each row of homes has" in done.out
    alike = json.loads((folder / "s.json").read_text())["linked"]["alike"]
    assert alike.keys() == {"homes", "trips"}
    assert alike["trips"]["next"].keys() >= {"synthetic", "real", "independent"}
    assert "NOT PRIVATE" in done.out
    assert "Not private" in (folder / "r.html").read_text()


def test_a_draft_that_leaves_out_a_table_says_so(folder, capsys):
    pd.DataFrame({"x": [1.5, 1.5]}).to_csv(folder / "in" / "notes.csv", index=False)
    done = run(capsys, "schema", "in", "-o", "draft.yaml")
    assert done.code == 0, done.err
    assert "privsyn: not drafted: 1 table; see NOT DRAFTED in the draft" in done.err
    assert "NOT DRAFTED: the table notes." in (folder / "draft.yaml").read_text()


def test_a_sample_of_several_tables_takes_values_of_the_rows_without_a_parent(folder, capsys):
    assert run(capsys, "synth", "in", "out", *EPSILON, "--model", "m.privsyn").code == 0
    assert run(capsys, "sample", "m.privsyn", "few", "--given", "region=n", "--rows", 30).code == 0
    homes = pd.read_csv(folder / "few" / "homes.csv")
    assert set(homes["region"]) == {"n"}
    assert set(pd.read_csv(folder / "few" / "trips.csv")["home"]) <= set(homes["home"])


@pytest.mark.slow
@pytest.mark.parametrize("source", ["in", "in.duckdb", "in.sqlite"])
def test_a_draft_is_a_schema_with_which_the_tables_are_made(folder, capsys, source):
    draft = run(capsys, "schema", source)
    assert draft.code == 0, draft.err
    assert "this draft comes from the private rows; review every line" in draft.err
    assert "parent: homes" in draft.out
    written = run(capsys, "schema", source, "-o", "draft.yaml")
    assert written.out == ""
    assert "draft.yaml: this draft comes from the private rows" in written.err
    assert (folder / "draft.yaml").read_text() == draft.out
    assert run(capsys, "schema", source, "-o", "draft.yaml").code == 2  # it may have been reviewed
    out = f"out{(folder / source).suffix}"
    done = run(capsys, "synth", source, out, "--epsilon", 2, "--schema", "draft.yaml")
    assert done.code == 0, done.err
    assert "trips: " in done.out
    assert "linked to homes" in done.out


@pytest.mark.slow
def test_a_draft_says_how_the_files_are_written(folder, capsys):
    """Also that of a table that has only keys."""
    (folder / "german").mkdir()
    for name, columns in (("homes", ["home"]), ("trips", ["home", "trip", "day", "km"])):
        table = pd.read_csv(folder / "in" / f"{name}.csv")[columns]
        table.to_csv(folder / "german" / f"{name}.csv", sep=";", index=False)
    stops = pd.DataFrame({"stop": range(400), "trip": range(400)})
    stops.to_csv(folder / "german" / "stops.csv", sep=";", index=False)
    assert run(capsys, "schema", "german", "--delimiter", ";", "-o", "draft.yaml").code == 0
    assert (folder / "draft.yaml").read_text().count("csv: {delimiter: ;}") == 3
    done = run(capsys, "synth", "german", "out", "--epsilon", 20, "--schema", "draft.yaml", "--seed", 0)
    assert done.code == 0, done.err
    done = run(capsys, "schema", "german", "--check", "draft.yaml")
    assert done.code == 0, done.err
    done = run(capsys, "schema", "german", "--check", "draft.yaml", "--delimiter", ";")
    assert (done.code, "linked tables take no --delimiter: say it in the schema" in done.err) == (2, True)


def test_a_draft_of_one_table_of_several_is_as_before(folder, capsys):
    for source in ("in/trips.csv", "in.duckdb::trips"):
        draft = run(capsys, "schema", source)
        assert draft.code == 0
        assert "tables:" not in draft.out


def test_a_check_of_several_tables_is_for_the_owner(folder, capsys):
    checked = run(capsys, "schema", "in", "--check", "homes.yaml")
    assert checked.code == 0, checked.err
    assert "NOT PRIVATE, for the owner's eyes only" in checked.err
    assert "'trips': rows per row of 'homes': mean 2.00, median 2, maximum 2; 0 have none" in checked.out
    (folder / "homes.yaml").write_text(SCHEMA.replace("low: 0, high: 9", "low: 1, high: 9"))
    trips = pd.read_csv(folder / "in" / "trips.csv")
    trips.assign(home=trips["home"] + 1000).to_csv(folder / "in" / "trips.csv", index=False)
    checked = run(capsys, "schema", "in", "--check", "homes.yaml")
    assert checked.code == 1
    assert "table 'trips': 400 of 400 rows name no row of 'homes' in 'home': they are left out" in checked.out
    assert "no row of a table has a parent: correct the link" in checked.err


def test_a_check_counts_how_often_rules_about_several_rows_are_broken(folder, capsys):
    for least, times in ((1, 0), (3, 200)):
        counted = SCHEMA.replace("    order: day", f"    order: day\n    children: {least}..4")
        (folder / "homes.yaml").write_text(counted)
        checked = run(capsys, "schema", "in", "--check", "homes.yaml")
        assert checked.code == bool(times), checked.err
        said = f"table 'trips': {least} to 4 for each row of homes: broken {times} times, and by no synthetic"
        assert (said in checked.out) == bool(times)
        assert ("every row keeps every rule about several rows" in checked.out) == (not times)
    assert "rows break a constraint or rule" in checked.err


def test_a_check_fails_if_two_persons_share_a_key(folder, capsys):
    trips = pd.read_csv(folder / "in" / "trips.csv")
    trips.assign(trip=trips["trip"] // 4).to_csv(folder / "in" / "trips.csv", index=False)
    (folder / "in" / "stops.csv").write_text("trip\n1\n1\n")
    (folder / "homes.yaml").write_text(SCHEMA + "  stops: {parent: trips, link: trip, columns: {}}\n")
    checked = run(capsys, "schema", "in", "--check", "homes.yaml")
    assert checked.code == 1, checked.err
    assert "table 'trips': the key 'trip' is the same in rows of two persons, 100 times" in checked.out
    assert "rows of two persons share a key" in checked.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "text"),
    [
        (
            ("in", "--unit", "home"),
            "--unit: in has several tables: leave it out (the persons are the rows of one table",
        ),
        (
            ("in.duckdb", "--from-dtypes"),
            "their keys are found in the rows), or draft one, as in.duckdb::homes",
        ),
        (("in", "--check", "homes.yaml", "--unit", "home"), "linked tables take no --unit: the persons are"),
        (("in/homes.csv", "--check", "homes.yaml"), "is one table, and several are declared"),
        (("none.duckdb",), "none.duckdb: there is no such file"),
        (("bad.sqlite",), "bad.sqlite: not a SQLite database"),
        (("bad.duckdb",), "bad.duckdb: not a DuckDB database"),
        (("none",), "none: there is no such folder or file"),
        (("one",), "is a folder without a file that ends in .parquet"),
    ],
)
def test_a_mistake_in_a_draft_is_one_line(folder, capsys, typed, text):
    (folder / "one").mkdir()
    for name in ("bad.sqlite", "bad.duckdb"):
        (folder / name).write_text("no database")
    done = run(capsys, "schema", *typed)
    assert (done.code, text in done.err, len(done.err.splitlines())) == (2, True, 1), done.err
    assert not (folder / "draft.yaml").exists()


def test_a_check_fails_if_no_row_has_an_order(folder, capsys):
    """No column is declared, so no format of its dates is known."""
    trips = pd.read_csv(folder / "in" / "trips.csv")
    trips["day"] = ["31.01.2020", "2020-02-01"] * 200
    trips.to_csv(folder / "in" / "trips.csv", index=False)
    checked = run(capsys, "schema", "in", "--check", "homes.yaml")
    assert (checked.code, "200 rows without the order 'day': they come last" in checked.out) == (0, True)
    trips.assign(day="31.01.2020").to_csv(folder / "in" / "trips.csv", index=False)
    checked = run(capsys, "schema", "in", "--check", "homes.yaml")
    assert checked.code == 1
    assert "table 'trips': no row has a number or time in its order 'day'" in checked.out
    assert "no row of a table has an order: name a column of numbers or times" in checked.err
    assert run(capsys, "synth", "in", "out", *EPSILON).code == 0  # an error would depend on the rows


def test_columns_that_matter_most_are_named_under_their_table(folder, capsys):
    more = "      bus: {kind: categorical, values: [a, b]}\n    important: [[km, bus]]\n"
    trips = pd.read_csv(folder / "in" / "trips.csv").assign(bus="a")
    trips.to_csv(folder / "in" / "trips.csv", index=False)
    (folder / "homes.yaml").write_text(SCHEMA + more)
    done = run(capsys, "synth", "in", "out", *EPSILON, "--ledger", "l.json")
    assert done.code == 0, done.err
    assert "trips.km x trips.bus" in (folder / "l.json").read_text()
    (folder / "homes.yaml").write_text(f"important: [[km, bus]]\n{SCHEMA}")
    done = run(capsys, "synth", "in", "other", *EPSILON)
    assert (done.code, "'important:' belongs to one table: write it there" in done.err) == (2, True), done.err


def test_without_rules_about_several_rows_a_check_reads_no_table_for_them(folder, capsys, monkeypatch):
    monkeypatch.setattr(
        "privsyn.evaluation.integrity.read_tables", lambda *_args, **_named: pytest.fail("read")
    )
    assert run(capsys, "schema", "in", "--check", "homes.yaml").code == 0
