"""Databases on the command line: what they declare, and rules of linked tables that SQL checks."""

import sqlite3
from contextlib import closing

import duckdb
import pytest
from command import run
from hospital import KEYS, SCHEMA, hospital, store

from privsyn.table.io.formats import Location

RULED = SCHEMA.replace("[arrived <= left]", '[arrived <= left, "arrived >= patients.born"]')

BROKEN = {
    "a patient's key twice": "select count(*) - count(distinct patient_id) from patients",
    "a visit's key twice": "select count(*) - count(distinct visit_id) from visits",
    "a visit without its patient": "select count(*) from visits where patient_id is null"
    " or patient_id not in (select patient_id from patients)",
    "a prescription without its visit": "select count(*) from prescriptions where visit_id is null"
    " or visit_id not in (select visit_id from visits)",
    "an unknown drug": "select count(*) from prescriptions where drug not in (select drug from drugs)",
    "a position that is not 1, 2, 3": "select count(*) from (select position, row_number() over"
    " (partition by visit_id order by position) as place from prescriptions) numbered"
    " where position <> place",
    "a visit that ends too early": 'select count(*) from visits where "left" < arrived',
    "a visit before birth": "select count(*) from visits join patients using (patient_id)"
    " where arrived < born",
    "a birth out of bounds": "select count(*) from patients where born < '1925-01-01' or born > '2019-12-31'",
    "an arrival out of bounds": "select count(*) from visits"
    " where arrived < '2020-01-01' or arrived >= '2025-01-01'",
    "an end out of bounds": "select count(*) from visits where \"left\" >= '2025-04-01'",
    "another sex": "select count(*) from patients where sex not in ('f', 'm')",
    "another region": "select count(*) from patients where region not in ('east', 'north', 'south', 'west')",
    "another ward": "select count(*) from visits"
    " where ward not in ('dialysis', 'eyes', 'maternity', 'surgery')",
    "a truth value that is none": "select count(*) from visits where cast(urgent as integer) not in (0, 1)",
    "a cost out of bounds": "select count(*) from visits where cost < 0 or cost > 20000",
    "a cost with three decimals": "select count(*) from visits"
    " where abs(cost * 100 - round(cost * 100)) > 0.001",
    "days out of bounds": "select count(*) from prescriptions"
    " where days < 1 or days > 90 or days <> round(days)",
}
"""How many rows break each rule of the schema, and of its keys."""


def opened(path):
    """Open a database, or the files of a folder as one."""
    if path.suffix == ".sqlite":
        return closing(sqlite3.connect(path))
    base = duckdb.connect(str(path) if path.suffix else ":memory:")
    for file in sorted(path.iterdir()) if path.is_dir() else ():
        base.execute(f"create view {file.stem} as from '{file}'")
    return base


TABLES = hospital(150)


def prepare(folder, kind, schema=RULED):
    """Write the hospital into a folder or database, and its schema; return where it is."""
    TABLES["drugs"].to_csv(folder / "drugs.csv", index=False)
    (folder / "hospital.yaml").write_text(schema)
    place = folder / f"in{kind}"
    if kind.startswith("."):
        store(TABLES, place, KEYS)
        return place
    place.mkdir()
    for name, table in TABLES.items():
        write = table.to_csv if kind == "csv" else table.to_parquet
        write(place / f"{name}.{kind}", index=False)
    return place


@pytest.mark.slow("each case")
@pytest.mark.parametrize("kind", [".duckdb", ".sqlite", "csv", "parquet"])
def test_every_rule_of_a_hospital_holds_in_sql(tmp_path, monkeypatch, capsys, kind):
    monkeypatch.chdir(tmp_path)
    place, out = prepare(tmp_path, kind), tmp_path / f"out{kind}"
    done = run(capsys, "synth", place, out, "--epsilon", 5, "--schema", "hospital.yaml", "--seed", 1)
    assert done.code == 0, done.err
    with opened(place) as real, opened(out) as made:
        broken = {
            name: tuple(base.execute(sql).fetchone()[0] for base in (real, made))
            for name, sql in BROKEN.items()
        }
        rows = {name: made.execute(f"select count(*) from {name}").fetchone()[0] for name in TABLES}  # noqa: S608
    assert broken == dict.fromkeys(BROKEN, (0, 0))
    assert min(rows.values()) > 50
    assert rows["drugs"] == len(TABLES["drugs"])


@pytest.mark.slow("each case")
@pytest.mark.parametrize("kind", [".duckdb", ".sqlite"])
def test_a_database_declares_its_keys_and_what_is_never_missing(tmp_path, monkeypatch, capsys, kind):
    """Also where tables with such keys are replaced."""
    monkeypatch.chdir(tmp_path)
    place = prepare(tmp_path, kind, SCHEMA.replace("decimals: 2", "decimals: 2, nullable: false"))
    out = f"out{kind}"
    more = ("--epsilon", 5, "--schema", "hospital.yaml", "--model", "m.privsyn")
    assert run(capsys, "synth", place, out, *more).code == 0
    for again in (("synth", place, out, *more[:-2]), ("sample", "m.privsyn", out, "--rows", 50)):
        refused = run(capsys, *again)
        assert (refused.code, "already: give another name, or --force" in refused.err) == (2, True)
    assert run(capsys, "sample", "m.privsyn", out, "--rows", 50, "--force").code == 0
    declared = Location.of(out).format.door.catalogue(Location.of(out))
    assert {name: (of.key, of.links) for name, of in declared.items()} == {
        name: (
            () if key is None else (key,),
            {(column,): (other, (KEYS[other][0],)) for column, other in links.items()},
        )
        for name, (key, links) in KEYS.items()
    }
    never = {
        "patients": {"patient_id"},
        "visits": {"visit_id", "patient_id", "cost"},
        "prescriptions": {"visit_id"},
        "drugs": {"drug"},
    }
    with opened(tmp_path / out) as base:
        for name, columns in never.items():
            types = base.execute(f"pragma table_info('{name}')").fetchall()
            assert {column for _, column, _, must, *_ in types if must} == columns
        assert base.execute("select count(*) from patients").fetchone() == (50,)


@pytest.mark.slow("each case")
@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_keys_of_several_columns_go_from_a_database_to_a_database(tmp_path, capsys, kind):
    with opened(tmp_path / f"wide.{kind}") as base:
        base.execute("create table homes (home int primary key, region text)")
        base.execute("create table trips (home int, day int, km int, primary key (home, day))")
        own = "foreign key (home, day) references trips (home, day)"
        base.execute(f"create table stops (home int, day int, town text, {own})")
        for home in range(60):
            base.execute("insert into homes values (?, 'n')", [home])
            base.execute("insert into trips values (?, 1, 5), (?, 2, 6)", [home, home])
            base.execute("insert into stops values (?, 1, 'a'), (?, 1, 'b')", [home, home])
        base.commit()
    place, made, schema = tmp_path / f"wide.{kind}", tmp_path / f"made.{kind}", tmp_path / "wide.yaml"
    assert run(capsys, "schema", place, "-o", schema).code == 0
    assert {"    key: [home, day]", "    link: [home, day]"} <= {*schema.read_text().splitlines()}
    command = ("synth", place, made, "--epsilon", 5, "--seed", 1, "--schema", schema, "--no-budget")
    assert run(capsys, *command).code == 0
    declared = Location.of(made).format.door.catalogue(Location.of(made))
    assert declared["trips"].key == ("home", "day")
    assert declared["stops"].links == {("home", "day"): ("trips", ("home", "day"))}
    with opened(made) as base:
        orphans = "from stops left join trips using (home, day) where trips.km is null"
        assert base.execute(f"select count(*) {orphans}").fetchone() == (0,)
        counts = base.execute("select count(*), count(distinct (home * 1000 + day)) from trips").fetchone()
        assert counts[0] == counts[1] > 10
