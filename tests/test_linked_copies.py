"""A copy of a column above has its cell in every synthetic row, costs nothing, and is not read."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command import run
from same_model import assert_same_model

from privsyn import Categorical, Database, Datetime, InputError, Numerical, PrivSyn, Schema, Table, load
from privsyn.evaluation.integrity import broken_rules
from privsyn.evaluation.linked_rows import LinkedRows
from privsyn.studies.publication.links import rules
from privsyn.table.database.yaml_form import database_from_plain, database_to_plain

HOMES = Schema(
    {
        "zone": Numerical(0, 80, integer=True),
        "kind": Categorical(["flat", "house"]),
        "built": Datetime("1999-01-01", "2003-01-01"),
    }
)
TOTAL = Schema({**HOMES.columns, "total": Numerical(0, 900, integer=True)})
COPIES = Database(
    {
        "homes": Table(HOMES, key="home"),
        "people": Table(
            Schema({"age": Numerical(0, 99, integer=True)}), key="person", parent="homes", link="home",
            constraints=["zone == homes.zone", "homes.kind == people.`class`"],
        ),
        "trips": Table(
            Schema({"mode": Categorical(["bike", "car"])}), parent="people", link="person",
            constraints=["trips.house == people.home", "built == homes.built", "zone == homes.zone"],
        ),
    }
)  # fmt: skip


def private(rows=150, seed=0):
    """Homes, people there, and their trips; what is copied is equal to the cell above in each row."""
    rng = np.random.default_rng(seed)
    homes = pd.DataFrame({"home": rng.permutation(rows) + 500, "zone": rng.integers(1, 60, rows)})
    homes["kind"] = rng.choice(["flat", "house"], rows)
    homes["built"] = pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D")
    at = np.repeat(np.arange(rows), rng.integers(0, 4, rows))
    people = pd.DataFrame({"person": np.arange(len(at)), "home": homes["home"].to_numpy()[at]})
    people = people.assign(age=rng.integers(0, 90, len(at)), zone=homes["zone"].to_numpy()[at].astype("int8"))
    people["class"] = homes["kind"].to_numpy()[at]
    of = np.repeat(np.arange(len(at)), rng.integers(0, 4, len(at)))
    trips = pd.DataFrame({"person": of, "house": people["home"].to_numpy()[of]})
    trips = trips.assign(mode=rng.choice(["bike", "car"], len(of)), built=homes["built"].to_numpy()[at][of])
    trips["zone"] = homes["zone"].to_numpy()[at][of]
    return {"homes": homes, "people": people, "trips": trips}


@cache
def fitted():
    """A model of 40 homes that two tests ask and none changes."""
    return PrivSyn(3.0, 1e-6, COPIES, seed=0).fit(private(40))


def unequal(tables):
    """How many rows differ from what they copy."""
    homes = tables["homes"].set_index("home")
    people = tables["people"].merge(homes, left_on="home", right_index=True, suffixes=("", "_above"))
    above = people.set_index("person")[["home", "built", "zone_above"]]
    trips = tables["trips"].merge(above, left_on="person", right_index=True, suffixes=("", "_above"))
    assert len(people)
    assert len(trips)
    pairs = [(people, "zone", "zone_above"), (people, "class", "kind"), (trips, "house", "home")]
    pairs += [(trips, "built", "built_above"), (trips, "zone", "zone_above")]
    return [int((frame[one].astype(str) != frame[other].astype(str)).sum()) for frame, one, other in pairs]


def test_no_private_cell_of_a_copy_is_read_and_it_costs_nothing(tmp_path):
    """Other private cells make the same bytes, in CSV too. Without the columns the questions are the same."""
    tables, other = private(40), private(40)
    other["people"]["zone"], other["trips"]["house"] = np.int8(77), np.arange(len(other["trips"]))
    other["people"]["class"] = "neither"
    one, two = fitted().release_, PrivSyn(3.0, 1e-6, COPIES, seed=0).fit(other).release_
    assert_same_model(one.packed(), two.packed())
    for given, folder in ((tables, tmp_path / "one"), (other, tmp_path / "two")):
        folder.mkdir()
        for name, table in given.items():
            table.astype({"zone": object} if "zone" in table else {}).replace({"zone": {77: "none"}}).to_csv(
                folder / f"{name}.csv", index=False
            )
    bare = Database({name: replace(table, schema=None) for name, table in COPIES.tables.items()})
    for database in (COPIES, bare):
        packed = {
            PrivSyn(3.0, 1e-6, database, seed=0).fit(tmp_path / name).release_.packed()
            for name in ("one", "two")
        }
        assert len(packed) == 1
    schemas = {name: table.schema.without(table.copied) for name, table in COPIES.tables.items()}
    apart = {
        name: replace(table, constraints=(), schema=schemas[name]) for name, table in COPIES.tables.items()
    }
    without = {name: table.drop(columns=[*COPIES.tables[name].copied]) for name, table in tables.items()}
    three = PrivSyn(3.0, 1e-6, Database(apart), seed=0).fit(without)
    assert [spend.what for spend in three.ledger_.spends] == [spend.what for spend in one.ledger.spends]


def test_a_copy_has_the_kind_of_the_column_above_and_is_written_and_read():
    assert COPIES.tables["people"].schema.columns["zone"] == HOMES.columns["zone"]
    assert database_from_plain(database_to_plain(COPIES)) == COPIES
    assert database_to_plain(COPIES)["tables"]["people"]["constraints"] == [
        "zone == homes.zone",
        "`class` == homes.kind",
    ]
    assert COPIES.copied_keys("trips") == {"house": ("homes", "home")}


def test_the_page_says_so_and_rows_that_differ_are_counted():
    tables, model = private(40), fitted()
    assert ("people", "zone == homes.zone, copied from the synthetic row above") in rules(model.release_)
    tables["people"].loc[:4, "zone"] = 99
    counted = []
    for frames in (tables, model.sample(seed=2)):
        found = broken_rules(frames, LinkedRows.of(frames, COPIES)[0], COPIES)
        counted.append([found["people: zone == homes.zone"], found["people: `class` == homes.kind"]])
    assert counted == [[5, 0], [0, 0]]


def test_a_table_of_copies_alone_has_rows():
    """Its rows are counted, and no cell of them."""
    people = replace(COPIES.tables["people"], schema=None, key=None, constraints=["zone == homes.zone"])
    database = Database({"homes": COPIES.tables["homes"], "people": people})
    tables = private()
    tables = {"homes": tables["homes"], "people": tables["people"][["home", "zone"]]}
    made = PrivSyn(3.0, 1e-6, database, seed=0).fit(tables).sample(seed=1)
    joined = made["people"].merge(made["homes"], on="home", suffixes=("", "_above"))
    assert len(joined) > 100
    assert (joined["zone"] == joined["zone_above"]).all()


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ("size == homes.zone", "table 'people': 'size == homes.zone': the table has no column 'size'"),
        ("zone == homes.size", "table 'people': 'zone == homes.size': no cell of homes.size is counted"),
    ],
)
def test_before_anything_is_asked_a_copy_without_a_column_is_refused(rule, complaint):
    database = Database({
        "homes": Table(key="home"),
        "people": Table(key="person", parent="homes", link="home", constraints=[rule]),
    })  # fmt: skip
    tables = {name: table for name, table in private().items() if name != "trips"}
    with pytest.raises(InputError, match=re.escape(complaint)):
        PrivSyn(3.0, 1e-6, database).fit(tables)


@pytest.mark.parametrize(
    ("name", "rules", "complaint"),
    [
        (
            "trips",
            {"constraints": ["zone == people.zone"]},
            "'zone' follows from another table itself: name that one",
        ),
        (
            "trips",
            {"constraints": ["people.person == homes.zone"]},
            "it names no column of 'trips', which would be",
        ),
        (
            "people",
            {"constraints": ["zone == homes.zone == homes.kind"]},
            "it names no column of 'people', which",
        ),
        (
            "homes",
            {"schema": TOTAL, "constraints": ["total == sum(people.zone)"]},
            "sum(people.zone): 'zone' follows from another",
        ),
        (
            "homes",
            {"derive": {"last": "max(people.zone)"}},
            "max(people.zone): 'zone' follows from another table",
        ),
    ],
)
def test_a_rule_about_a_copy_that_would_be_none_is_refused(name, rules, complaint):
    with pytest.raises(InputError, match=re.escape(complaint)):
        Database({**COPIES.tables, name: replace(COPIES.tables[name], **rules)})


NARROW = ("int8", "Int64", "str", "bool", "datetime64[ns]", "category")
ODD = ("complex128", "Sparse[int64]", "longdouble")
ARROW = (pa.decimal256(60, 2), pa.null(), pa.list_(pa.int8()), pa.date32(), pa.decimal128(4, 2))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*NARROW, *ODD, *map(pd.ArrowDtype, ARROW)], ids=str)
def test_a_copy_that_its_own_type_does_not_hold_has_that_of_the_column_above(tmp_path, kind):
    """Whatever the private type is, nothing fails after the budget is spent; the cells are those above."""
    wide = Table(Schema({"zone": Numerical(0, 80_000, integer=True)}), key="home")
    people = Table(parent="homes", link="home", constraints=["zone == homes.zone"])
    rng = np.random.default_rng(0)
    homes = pd.DataFrame({"home": range(90), "zone": rng.integers(0, 80_000, 90)})
    cells = pd.Series([0] * 90).astype(kind) if isinstance(kind, str) else pd.Series([None] * 90, dtype=kind)
    tables = {"homes": homes, "people": pd.DataFrame({"home": range(90), "zone": cells})}
    model = PrivSyn(3.0, 1e-6, Database({"homes": wide, "people": people}), seed=0)
    model.fit(tables).save(tmp_path / "model")
    for name, ending in (("made", ".parquet"), ("made.duckdb", ".duckdb")):
        load(tmp_path / "model").sample_into(tmp_path / name, seed=1, ending=ending)
    made = load(tmp_path / "model").sample(seed=1)
    joined = made["people"].merge(made["homes"], on="home", suffixes=("", "_above"))
    assert len(joined) > 50
    assert (joined["zone"] == joined["zone_above"]).all()


def test_names_that_python_would_change_are_saved_as_they_are(tmp_path):
    names = ["\u00b5g", "Gro\u0308\u00dfe", "a implies b", "class"]
    homes = Table(Schema(dict.fromkeys(names, Categorical(["p", "q"]))), key="home")
    people = Table(parent="homes", link="home", constraints=[f"`{name}` == homes.`{name}`" for name in names])
    tables = {"homes": pd.DataFrame({"home": range(90)} | dict.fromkeys(names, ["p", "q"] * 45))}
    tables["people"] = tables["homes"].copy()
    PrivSyn(3.0, 1e-6, Database({"homes": homes, "people": people}), seed=0).fit(tables).save(
        tmp_path / "model"
    )
    made = load(tmp_path / "model").sample(seed=1)["people"]
    assert [*made] == ["home", *names]


def test_a_draft_proposes_copies_and_a_database_declares_copied_keys(tmp_path, capsys):
    tables, folder = private(), tmp_path / "private"
    folder.mkdir()
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    draft = run(capsys, "schema", folder).out
    for line in (
        "zone == homes.zone",
        "`class` == homes.kind",
        "house == homes.home",
        "built == homes.built",
    ):
        assert re.search(rf"^    #- '?{re.escape(line)}'?  # READ: [\d,]+ rows$", draft, re.MULTILINE), line
    assert draft.count("#- zone == homes.zone") == 2  # of people and of trips: none is a copy of a copy
    assert "constant: [" not in draft
    schema = tmp_path / "schema.yaml"
    schema.write_text(re.sub(r"^    #-", "    -", draft, flags=re.MULTILINE))
    done = run(capsys, "schema", folder, "--check", schema)
    assert done.code == 0, done.err
    made = tmp_path / "made.sqlite"
    done = run(capsys, "synth", folder, made, "--schema", schema, "--epsilon", "3")
    assert done.code == 0, done.err
    with closing(sqlite3.connect(made)) as file:
        assert {each[2:5] for each in file.execute("PRAGMA foreign_key_list(trips)")} == {
            ("people", "person", "person"),
            ("homes", "house", "home"),
        }
        written = {name: pd.read_sql_query(f"SELECT * FROM {name}", file) for name in tables}  # noqa: S608
    assert unequal(written) == [0] * 5
