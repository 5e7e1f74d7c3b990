"""Columns that are computed with rows above follow from them in every synthetic row, and cost nothing."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from privsyn import Categorical, Database, Datetime, Numerical, PrivSyn, Schema, Table, evaluate, load
from privsyn.table.database.yaml_form import as_database, database_from_plain, database_to_plain
from privsyn.table.drafting.linked import LinkedDraft
from privsyn.table.io.formats import every_table
from privsyn.table.schema.yaml_file import dump

PERSONS = Table(
    Schema({
        "born": Numerical(1930, 1989, integer=True),
        "hired": Datetime("2000-01-01", "2009-12-31", nullable=False),
        "bonus": Numerical(0, 10, step=0.1),
    }),
    key="person",
)  # fmt: skip
VISITS = Table(
    Schema({
        "year": Numerical(1995, 2014, integer=True),
        "age": Numerical(18, 75, integer=True),  # of the parts 6 to 84
        "seen": Datetime("2010-01-01", "2018-12-31", nullable=False),
        "since": Numerical(),
        "pay": Numerical(decimals=1),
        "base": Numerical(0, 99, integer=True),
        "due": Datetime(),
        "sort": Categorical(["a", "b"]),
    }),
    key="visit", parent="persons", link="person", order="seen",
    constraints=[
        "visits.age == visits.year - persons.born",
        "since == years(seen - persons.hired)",
        "base + 2 * persons.bonus == pay",
        "due == persons.hired + base",
    ],
)  # fmt: skip
DOSES = Table(
    Schema({
        "at": Numerical(1995, 2014, integer=True),
        "age": Numerical(0, 99, integer=True),
        "late": Numerical(),
    }),
    parent="visits", link="visit",
    constraints=["age == at - persons.born", "late == at - visits.year"],
)  # fmt: skip
COMPUTED = {"visits": ["age", "since", "pay", "due"], "doses": ["age", "late"]}
DATABASE = Database({"persons": PERSONS, "visits": VISITS, "doses": DOSES})


def private_tables(persons=400):
    rng = np.random.default_rng(0)
    born = pd.Series(rng.integers(1930, 1990, persons)).astype("Int64")
    root = pd.DataFrame({
        "person": range(persons),
        "born": born.mask(rng.random(persons) < 0.1),
        "hired": pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 3650, persons), "D"),
        "bonus": (rng.integers(0, 101, persons) / 10).round(1),
    })  # fmt: skip
    visits = pd.DataFrame({"person": np.repeat(np.arange(persons), rng.integers(0, 4, persons))})
    above, rows = root.take(visits["person"]).reset_index(drop=True), len(visits)
    visits["visit"] = np.arange(rows)
    visits["year"] = rng.integers(1995, 2015, rows)
    visits["age"] = (visits["year"] - above["born"]).astype("Int64")
    visits["seen"] = pd.Timestamp("2010-01-01") + pd.to_timedelta(rng.integers(0, 3000, rows), "D")
    visits["since"] = years(visits["seen"], above["hired"])
    visits["base"] = rng.integers(0, 100, rows)
    visits["pay"] = (visits["base"] + 2 * above["bonus"]).round(1)
    visits["due"] = above["hired"] + pd.to_timedelta(visits["base"], "D")
    visits["sort"] = rng.choice(["a", "b"], rows)
    doses = pd.DataFrame({"visit": np.repeat(np.arange(rows), rng.integers(0, 3, rows))})
    visit = visits.take(doses["visit"]).reset_index(drop=True)
    doses["at"] = rng.integers(1995, 2015, len(doses))
    doses["age"] = doses["at"] - root["born"].take(visit["person"]).reset_index(drop=True)
    doses["late"] = doses["at"] - visit["year"]
    return {"persons": root, "visits": visits, "doses": doses}


def years(end, start):
    """Completed years, as a person counts an age."""
    before = (end.dt.month < start.dt.month) | (
        (end.dt.month == start.dt.month) & (end.dt.day < start.dt.day)
    )
    return (end.dt.year - start.dt.year - before).astype("int64")


def expected(tables):
    """The computed columns of a database of these tables."""
    visits = tables["visits"].merge(tables["persons"], on="person", suffixes=("", "_above"))
    doses = tables["doses"].merge(visits, on="visit", suffixes=("", "_above"))
    return {
        ("visits", "age"): visits["year"] - visits["born"],
        ("visits", "since"): years(visits["seen"], visits["hired"]),
        ("visits", "pay"): visits["base"] + 2 * visits["bonus"],
        ("visits", "due"): visits["hired"] + pd.to_timedelta(visits["base"], "D"),
        ("doses", "age"): doses["at"] - doses["born"],
        ("doses", "late"): doses["at"] - doses["year"],
    }


def is_computed(tables):
    """Assert that all computed columns follow from the rows, and are missing where a part is."""
    for (name, column), computed in expected(tables).items():
        cells = tables[name][column]
        assert cells.isna().tolist() == computed.isna().tolist(), (name, column)
        if column == "due":
            assert (cells == computed).all()
        else:
            present = cells.notna()
            pair = (of_column[present].astype(float) for of_column in (cells, computed))
            np.testing.assert_allclose(*pair, atol=1e-9)
    assert tables["visits"]["age"].dropna().between(18, 75).all()


@pytest.fixture(scope="module")
def private():
    return private_tables()


@pytest.fixture(scope="module")
def model(private):
    return PrivSyn(9.0, 1e-6, DATABASE, seed=1).fit(private)


def test_every_synthetic_row_keeps_the_formulas_and_the_bounds(model, private, tmp_path):
    made = model.sample(seed=2)
    is_computed(made)
    assert made["visits"]["age"].isna().any()  # of persons without a year of birth
    for name, table in private.items():
        assert made[name].dtypes.to_dict() == table.dtypes.to_dict()
    is_computed(model.sample(150, seed=3))
    is_computed(model.sample(50, given={"born": (1980, 1989)}, seed=3))
    model.save(tmp_path / "linked.privsyn")
    again = load(tmp_path / "linked.privsyn").sample(seed=2)
    for name, table in made.items():
        pd.testing.assert_frame_equal(again[name], table)


@pytest.mark.slow
def test_no_private_cell_of_a_computed_column_is_read(model, private):
    rng = np.random.default_rng(5)
    other = {name: table.copy() for name, table in private.items()}
    for name, columns in COMPUTED.items():
        for column in columns:
            other[name][column] = rng.permutation(other[name][column].to_numpy())
            other[name][column] = other[name][column].astype(private[name][column].dtype)
    made = PrivSyn(9.0, 1e-6, DATABASE, seed=1).fit(other).sample(seed=2)
    for name, table in model.sample(seed=2).items():
        pd.testing.assert_frame_equal(made[name], table)
    questions = str(model.ledger_.to_dict())
    assert not any(f"'{column}'" in questions for column in ("since", "late"))


def test_bounds_limit_the_free_part_below_each_row_above(model):
    visits = model.sample(seed=4)["visits"].merge(model.sample(seed=4)["persons"], on="person")
    old = visits["born"] <= 1935
    assert visits["year"][old].max() <= 2010
    assert visits["year"][visits["born"] == 1989].ge(2007).all()


@pytest.mark.slow
def test_evaluate_counts_private_rows_that_break_it(private):
    broken = {name: table.copy() for name, table in private.items()}
    inside = private["visits"]["age"].between(18, 75).fillna(False).to_numpy(bool)
    broken["visits"].loc[np.flatnonzero(inside)[:7], "age"] += 30
    beyond = private["visits"]["age"].notna().to_numpy(bool) & ~inside  # parts of which no row can be made
    (line,) = (
        line for line in str(evaluate(broken, private, DATABASE)).splitlines() if "age == year" in line
    )
    times = [int(text.replace(",", "")) for text in line.split()[-2:]]
    assert times == [beyond.sum(), beyond.sum() + 7]


def test_answers_name_the_parts_of_a_computed_column(model):
    accuracy = model.accuracy_
    for ask in (
        lambda: accuracy.mean("visits: age"),
        lambda: accuracy.share("visits: age >= 40"),
        lambda: accuracy.counts("visits: age"),
        lambda: model.release_.ask("mean of since"),
        lambda: model.release_.ask("visits: share of age >= 40"),
        lambda: model.release_.ask("visits: median of age"),
        lambda: model.release_.ask("visits: correlation of age and base"),
    ):
        with refuses("is not decided: it is computed with columns of rows above"):
            ask()


def test_yaml_and_pickle_keep_the_formulas(tmp_path):
    (tmp_path / "formulas.yaml").write_text(dump(database_to_plain(DATABASE), flow=False))
    for same in (
        pickle.loads(pickle.dumps(DATABASE)),
        database_from_plain(database_to_plain(DATABASE)),
        as_database(tmp_path / "formulas.yaml"),
    ):
        assert same.tables["visits"].computed_above == DATABASE.tables["visits"].computed_above
        assert list(map(str, same.tables["doses"].constraints)) == [
            "age == at - persons.born",
            "late == at - visits.year",
        ]


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        (["age == year - person.born"], "'person' is no table above 'visits'; did you mean 'persons'"),
        (["age == year - persons.bron"], "'persons' has no column 'bron'; did you mean 'born'"),
        (["age == yaer - persons.born"], "'visits' has no column 'yaer'; did you mean 'year'"),
        (["agee == year - persons.born"], "'agee' is no column of the table that is counted"),
        (["persons.born == year - base"], "it computes no column of 'visits': move it to its table"),
        (["age == year - persons.born", "age >= 18"], "'age' is computed with rows above: .* bounds"),
        (["age == year - persons.born", "since <= age"], "'age' is computed with rows above"),
        (["age == year - persons.born", "age rises"], "'age' is computed with rows above"),
        (["age == year - persons.born", "base == age + persons.born"], "'age' is computed with rows above"),
        (["age == year - persons.born", "age == base + persons.born"], "two rules say"),
        (["seen == persons.hired + base"], "'seen' is computed with rows above"),
        (["base == year + persons.bonus"], "'base' is whole, (but|and) not all its parts are"),
        (["sort == year - persons.born"], "column 'sort' is not numerical"),
        (["age == year - persons.hired"], "dates cannot be added or multiplied"),
        (["age == age - persons.born"], "different column names"),
        (["age == year - persons.born + 1"], "a sum across tables has columns and factors alone"),
        (["age == decades(seen - persons.hired)"], "unit 'decades' is none of years"),
        (["age == year - year + persons.born"], "the factor 0"),
        (["age == year + base - persons.born"], "beyond its bounds: widen the bounds of 'age'"),
        (["age == year - persons.born", "year >= persons.born"], "'year' must keep 'age' within its bounds"),
        (["since == years(seen - persons.hired)", "age == years(seen - persons.hired)"], "widen them"),
    ],
)  # fmt: skip
def test_a_formula_that_cannot_hold_is_refused(constraints, words):
    with refuses(words):
        Database({"persons": PERSONS, "visits": replace(VISITS, constraints=constraints)})


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((18, 30), "below some rows above no value of 'year' keeps 'age' within its bounds"),
        ((90, 99), "by its parts 'age' goes from 6 to 84"),
    ],
)
def test_bounds_that_some_rows_cannot_keep_are_refused(bounds, words):
    columns = {**VISITS.schema.columns, "age": Numerical(*bounds, integer=True)}
    with refuses(words):
        Database({"persons": PERSONS, "visits": replace(VISITS, schema=Schema(columns))})


def test_a_computed_column_needs_a_parent_and_no_column_above_that_follows_itself():
    with refuses("this table has no parent"):
        Database({"persons": replace(PERSONS, constraints=["born == bonus - visits.year"])})
    with refuses("'age' follows from another table itself: name that one"):
        Database({
            "persons": PERSONS,
            "visits": VISITS,
            "doses": replace(DOSES, constraints=["late == at - visits.age"]),
        })  # fmt: skip


@pytest.mark.parametrize("rule", ["age == year - born", "age >= born", "born > 1950 implies age < 60"])
def test_a_rule_on_a_column_of_the_table_above_without_its_table_says_how_to_name_it(rule, tmp_path):
    words = "no column 'born'.*if it is a column of persons, write persons.born"
    with refuses(words):
        replace(VISITS, constraints=[rule])
    database = database_to_plain(DATABASE)
    database["tables"]["visits"]["constraints"] = [rule]
    with refuses(words):
        database_from_plain(database)


def test_a_formula_within_one_table_joins_its_schema():
    schema = Schema({name: Numerical(0, 9, integer=True) for name in ("a", "b")} | {"c": Numerical()})
    table = Table(schema, parent="persons", link="person", constraints=["visits.c == visits.a - visits.b"])
    database = Database({"persons": PERSONS, "visits": table})
    assert "c" in database.tables["visits"].schema.computed


@pytest.mark.parametrize("dtype", ["int8", "float32", "Int16"])
def test_a_computed_column_keeps_its_dtype_if_that_holds_it(dtype):
    rng = np.random.default_rng(0)
    root = pd.DataFrame({"key": range(60), "x": pd.array(rng.integers(0, 9, 60), "Int64")})
    root.loc[0, "x"] = pd.NA
    child = pd.DataFrame({"key": rng.integers(0, 60, 300), "y": rng.integers(0, 9, 300)})
    child["z"] = pd.Series(np.arange(300) % 9).astype(dtype)
    number = Numerical(0, 8, integer=True)
    database = Database({
        "a": Table(Schema({"x": number}), key="key"),
        "b": Table(
            Schema({"y": number, "z": Numerical()}), parent="a", link="key", constraints=["z == y + a.x"]
        ),
    })  # fmt: skip
    made = PrivSyn(9.0, 1e-6, database, seed=0).fit({"a": root, "b": child}).sample(seed=0)
    joined = made["b"].merge(made["a"], on="key")
    assert (joined["z"].astype("Int64") == joined["y"] + joined["x"]).all()
    missing = made["b"]["z"].isna().any()
    assert str(made["b"]["z"].dtype) == ("Int8" if missing and dtype == "int8" else dtype)


def test_the_draft_proposes_what_nearly_all_rows_compute(private, tmp_path):
    rng = np.random.default_rng(0)
    visits = private["visits"].copy()
    visits["interview"] = visits["age"] - rng.integers(0, 2, len(visits))
    visits.loc[:3, "age"] = 40
    visits.rename(columns={"person": "persons_id"}).to_csv(tmp_path / "visits.csv", index=False)
    private["persons"].rename(columns={"person": "persons_id"}).to_csv(tmp_path / "persons.csv", index=False)
    text, _ = LinkedDraft.read(every_table(tmp_path)).text()
    proposals = {line.split("==")[0].strip("# -"): line for line in text.splitlines() if "#- " in line}
    assert "age == year - persons.born" in proposals["age"]
    assert "break it" in proposals["age"]
    assert "break it; none of them by more than one" in proposals["interview"]
    visits["interview"] = visits["age"] - (rng.random(len(visits)) < 0.8)
    visits.rename(columns={"person": "persons_id"}).to_csv(tmp_path / "visits.csv", index=False)
    assert "interview == " not in LinkedDraft.read(every_table(tmp_path)).text()[0]
    assert "since == years(seen - persons.hired)" in proposals["since"]
    assert "base == days(due - persons.hired)" in proposals["base"]  # due is the order
