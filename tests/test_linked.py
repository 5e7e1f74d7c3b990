"""Linked tables come out with the columns and types they went in with. Keys match and orders hold."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from replay import Answers
from test_random_databases import KEYS, kept

from privsyn import Categorical, Database, Datetime, InputError, Numerical, PrivSyn, Schema, Table, load
from privsyn.methods import reading
from privsyn.release.release import Release
from privsyn.table.database.derived_columns import rows_of
from privsyn.table.database.opened import open_tables, positions

HOMES, TRIPS = Schema({"region": Categorical(["n", "s"])}), Schema({"km": Numerical(0, 50, integer=True)})
DATABASE = Database(
    {
        "homes": Table(HOMES, key="home"),
        "trips": Table(TRIPS, key="trip", parent="homes", link="home", order="number"),
        "stops": Table(Schema({"shop": Categorical([False, True])}), parent="trips", link="trip"),
    }
)


def tables_of(homes=40, seed=0):
    """Homes with trips, which have stops."""
    rng = np.random.default_rng(seed)
    root = pd.DataFrame({"home": np.arange(homes) + 100, "region": rng.choice(["n", "s"], homes)})
    trips = pd.DataFrame({"home": np.repeat(root["home"], rng.integers(0, 4, homes)).to_numpy()})
    trips.insert(0, "trip", [f"t{place}" for place in range(len(trips))])
    trips["number"] = trips.groupby("home").cumcount() + 1
    trips["km"] = rng.integers(0, 51, len(trips))
    stops = pd.DataFrame({"trip": np.repeat(trips["trip"], rng.integers(0, 3, len(trips))).to_numpy()})
    stops["shop"] = rng.random(len(stops)) < 0.5
    return {"homes": root, "trips": trips, "stops": stops}


TABLES = tables_of()


@pytest.fixture(scope="module")
def model():
    return PrivSyn(5.0, 1e-6, DATABASE, seed=1).fit(TABLES)


# --- several tables ----------------------------------------------------------------------------------------


def test_columns_of_other_tables_cannot_be_given_and_a_message_says_what_can(model):
    root = model.release_.database.root
    child = next(name for name in model.release_.tables if name != root)
    column = next(iter(model.release_.tables[child].codec.schema.coded))
    for name in (column, f"{child}.{column}"):
        with pytest.raises(
            InputError, match=f"it is a column of '{child}', and only those of '{root}' can be"
        ):
            model.sample(9, given={name: 1})


def test_roots_may_be_given(model):
    made = model.sample(9, given={"region": "n"}, seed=2)
    assert made["homes"]["region"].tolist() == ["n"] * 9
    kept(DATABASE, TABLES, made)
    with pytest.raises(InputError, match="'homes'"):
        model.sample(9, given={"km": 3})


def test_the_ledger_names_the_tables_and_holds_the_budget(model):
    ledger = model.ledger_
    asked = {spend.what.split(":")[0] for spend in ledger.spends}
    assert asked == {"homes", "trips", "stops"}
    assert ledger.rho == pytest.approx(ledger.budget, rel=1e-9)
    assert ledger.unit == "home"
    assert sum("never share one" in fact or "share a key" in fact for fact in ledger.public_inputs) == 2


def test_rows_that_belong_to_nobody_are_not_counted(monkeypatch):
    monkeypatch.setattr(reading, "best_bound", lambda *_: 50)
    homes, trips, stops = (table.astype(object) for table in TABLES.values())
    more = {
        "homes": pd.concat([homes, pd.DataFrame({"home": [None, None], "region": "n"})]),
        "trips": pd.concat([trips, pd.DataFrame({"home": [9, None], "trip": "x", "number": 1, "km": 1})]),
        "stops": pd.concat([stops, pd.DataFrame({"trip": ["x", "nowhere", None], "shop": True})]),
    }
    more = {
        name: table.astype(TABLES[name].dtypes.replace({np.dtype("int64"): "Int64"}))
        for name, table in more.items()
    }
    answers = Answers()
    with answers.run():
        ledger = PrivSyn(5.0, 1e-6, DATABASE, seed=1).fit(more).ledger_
    for spend, exact in zip(ledger.spends, answers.exact, strict=True):
        name, _, what = spend.what.partition(": ")
        if what == "one-way counts of every attribute":
            assert exact[0].sum() % len(TABLES[name]) == 0  # each attribute has each row once
        if what == "rows per person":
            of = (
                TABLES["trips"]["home"] if name == "trips" else TABLES["stops"].merge(TABLES["trips"])["home"]
            )
            assert exact[0].sum() == of.nunique()


@pytest.mark.slow
def test_derived_columns_are_measured_and_left_out():
    derive = {"far": "sum(trips.km)", "last": "last(trips.km)", "shop": "ever(trips.bus == True)"}
    schema = Schema({"km": Numerical(0, 50, integer=True), "bus": Categorical([False, True])})
    database = Database(
        {
            "homes": Table(HOMES, key="home", derive=derive),
            "trips": Table(schema, parent="homes", link="home", order="number"),
        }
    )
    trips = TABLES["trips"].drop(columns="trip").assign(bus=TABLES["trips"]["km"] > 25)
    fitted = PrivSyn(50.0, 1e-6, database, seed=1).fit({"homes": TABLES["homes"], "trips": trips})
    assert {"far", "last", "shop"} < set(fitted.release_.tables["homes"].codec.names)
    kept(database, {"homes": TABLES["homes"], "trips": trips}, fitted.sample(5))


DERIVED = {
    "far": ("sum(trips.km)", [7.0, 0.0, 5.0]),
    "mean": ("mean(trips.km)", [3.5, None, 5.0]),
    "least": ("min(trips.km)", [3, None, 5]),
    "most": ("max(trips.km)", [4, None, 5]),
    "first": ("first(trips.km)", [4, None, 5]),
    "last": ("last(trips.km)", [3, None, 5]),
    "bus": ("ever(trips.mode == bus)", ["yes", "no", "no"]),
    "trips": ("count(trips)", [2, 0, 1]),
}


def test_a_derived_column_says_what_it_is_of_the_rows_of_each_parent():
    derive = {name: text for name, (text, _) in DERIVED.items()}
    trips = Table(None, parent="homes", link="home", order="day")
    database = Database({"homes": Table(HOMES, key="home", derive=derive), "trips": trips})
    homes = pd.DataFrame({"home": [1, 2, 3], "region": "n"})
    rows = pd.DataFrame(
        {"home": [1, 9, 3, 1], "day": [2, 0, 1, 1], "km": [3, 50, 5, 4], "mode": list("caab")}
    )
    rows["mode"] = rows["mode"].map({"a": "tram", "b": "bus", "c": "car"})
    opened = open_tables(database, {"homes": homes, "trips": rows}, lambda codes: np.arange(len(codes)))
    assert opened["trips"].parents.tolist() == [0, -1, 2, 0]
    added = opened["homes"].added
    assert added.pop(rows_of("trips")).tolist() == [2, 0, 1]
    for name, (_, expected) in DERIVED.items():
        found = added[name].astype(object)
        assert found.where(found.notna(), None).tolist() == expected, name
    assert positions(opened["trips"].parents, opened["trips"].keys)[[0, 2, 3]].tolist() == [1, 0, 0]


def test_a_table_may_have_only_keys():
    """How many of its rows belong to each row of the parent shows there; they cost almost nothing."""
    homes = pd.DataFrame({"home": range(500), "region": ["n", "s"] * 250})
    members = pd.DataFrame({"home": np.repeat(range(500), [3, 1] * 250)})
    region = Schema({"region": Categorical(["n", "s"])})
    tables = {"homes": Table(region, key="home"), "members": Table(parent="homes", link="home")}
    model = PrivSyn(5.0, 1e-9, Database(tables), seed=0).fit({"homes": homes, "members": members})
    made = model.sample(seed=0)
    assert made["members"].columns.tolist() == ["home"]
    each = (
        made["members"].merge(made["homes"]).groupby("region").size() / made["homes"]["region"].value_counts()
    )
    assert each["n"] == pytest.approx(3, rel=0.2)
    assert each["s"] == pytest.approx(1, rel=0.2)
    spends = model.ledger_.spends
    assert sum(s.rho for s in spends if s.what.startswith("members")) < 0.1 * model.ledger_.budget


def test_of_equal_keys_in_the_root_one_row_has_all_that_belongs_to_them():
    homes = pd.DataFrame({"home": [5, 6, 5], "region": ["n", "s", "s"]})
    trips = TABLES["trips"][:3].assign(home=[5, 5, 6])
    for order, place in (([0, 1, 2], 0), ([2, 1, 0], 2)):
        words = np.argsort(order)  # by which rows of equal keys are sorted
        tables = {"homes": homes, "trips": trips, "stops": TABLES["stops"]}
        opened = open_tables(DATABASE, tables, lambda codes, words=words: np.lexsort((words, codes)))
        assert opened["trips"].parents.tolist() == [place, place, 1]
        assert opened["homes"].persons[2 - place] == -1


# --- one table of persons ----------------------------------------------------------------------------------


def visits(people=60, seed=3):
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), rng.integers(1, 6, people))
    table = pd.DataFrame({"ill": rng.choice(["cold", "flu"], len(who)), "who": who})
    table["t"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, len(who)), "D")
    table["cost"] = rng.integers(0, 90, len(who))
    return table.sample(frac=1, random_state=1).reset_index(drop=True)


VISITS = visits()
OF_VISITS = Schema(
    {
        "ill": Categorical(["cold", "flu"]),
        "t": Datetime("2020-01-01", "2020-12-31"),
        "cost": Numerical(0, 90, integer=True),
    }
)


@pytest.mark.slow("each case")
@pytest.mark.parametrize(("kind", "schema"), [*zip(KEYS, cycle([OF_VISITS, None]), strict=False)])
def test_rows_of_a_person_have_one_new_identifier(kind, schema, tmp_path):
    table = VISITS.assign(who=KEYS[kind](VISITS["who"]))
    derive = {"spent": "sum(cost)", "last": "last(t)", "flu": "ever(ill == flu)", "visits": "count()"}
    fitted = PrivSyn(50.0, 1e-6, schema, unit="who", identifiers=True, order="t", derive=derive, seed=1)
    made = fitted.fit(table).sample(20, seed=3)
    assert list(made.columns) == list(table.columns)
    assert made.drop(columns="who").dtypes.equals(table.drop(columns="who").dtypes)
    assert made["who"].dtype == ("str" if kind == "category" else table["who"].dtype)
    assert made["who"].nunique() <= 20
    assert all(of.is_monotonic_increasing for _, of in made.groupby("who")["t"])
    fitted.save(tmp_path / "model")
    pd.testing.assert_frame_equal(load(tmp_path / "model").sample(20, seed=3), made)
    assert 1 < len(fitted.sample(seed=1)) / fitted.sample(seed=1)["who"].nunique() < 5


# --- refusals ----------------------------------------------------------------------------------------------


def changed(**tables):
    return {**TABLES, **tables}


def without(column):
    return changed(trips=TABLES["trips"].drop(columns=column))


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        (TABLES["homes"], "mapping of names to tables"),
        (changed(cars=TABLES["homes"]), "there is no table 'cars' in the database"),
        ({"homes": TABLES["homes"], "trips": TABLES["trips"]}, "the table 'stops' is missing"),
        ({"trips": TABLES["trips"], "stops": TABLES["stops"]}, "the table 'homes' is missing"),
        (without("home"), "table 'trips': the table has no column 'home'"),
        (without("trip"), "table 'trips': the table has no column 'trip'"),
        (without("number"), "the table has no column 'number'"),
        (without("km"), "table 'trips': .*'km'"),
        (changed(homes=TABLES["homes"].assign(home=1.5 > 1)), "table 'homes': column 'home': an identifier"),
    ],
)
def test_tables_that_do_not_fit_are_refused_in_one_line(tables, complaint):
    with refuses(complaint):
        PrivSyn(1.0, 1e-6, DATABASE).fit(tables)


@pytest.mark.parametrize(
    ("derive", "complaint"),
    [
        ("sum(ill)", "no column of numbers"),
        ("sum(t)", "'t' is no column of numbers"),
        ("mean(t)", "'t' is no column of numbers"),
        ("sum(nothing)", "no column 'nothing'"),
        ("half(ill)", "no summary of rows"),
    ],
)
def test_a_summary_that_cannot_be_is_refused_in_one_line(derive, complaint):
    for schema in (OF_VISITS, None):
        with refuses(complaint):
            PrivSyn(1.0, 1e-6, schema, unit="who", identifiers=True, derive={"a": derive}).fit(VISITS)


@pytest.mark.parametrize(
    "name", ["position", "rows of the person", "second previous km", "next row's km", "homes.region"]
)
def test_a_column_with_the_name_of_a_link_is_refused_in_one_line(name):
    trips = Table(Schema({**TRIPS.columns, name: HOMES.columns["region"]}), parent="homes", link="home")
    database = Database({"homes": Table(HOMES, key="home"), "trips": trips})
    rows = TABLES["trips"][["home", "km"]].assign(**{name: "n"})
    with pytest.raises(InputError, match="has a name that links need: rename it"):
        PrivSyn(5.0, 1e-6, database).fit({"homes": TABLES["homes"], "trips": rows})


def test_a_place_for_tables_is_refused_before_they_are_made(model, tmp_path, monkeypatch):
    """Large tables take minutes to make."""
    (tmp_path / "note.txt").touch()
    monkeypatch.setattr(Release, "sample", lambda *_, **__: pytest.fail("tables are made"))
    for path, complaint in (
        (tmp_path, "is not empty"),
        (tmp_path / "note.txt", "is a file"),
        (tmp_path / "none" / "made.duckdb", "create it first"),
    ):
        with pytest.raises(InputError, match=complaint):
            model.release_.sample_into(path)


def test_what_is_for_one_table_is_refused_for_several(model, tmp_path):
    for call in (model.sample_blocks, lambda: model.sample_to(tmp_path / "t.csv"), model.outlook):
        with pytest.raises(InputError, match="is for one table"):
            next(iter(call()))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 3.0, 10.0])
def test_shares_of_child_rows_do_not_lean_towards_rare_values(epsilon):
    """They did, by .01 to .02: more rows are kept of a person whose rows are unlike, and no interval knew it.

    Of four values, two hardly differ between persons, one depends on the number of rows, and one is rare.
    Seeded.
    """
    rng = np.random.default_rng(0)
    many = rng.poisson(rng.gamma(2, 5, 8000))
    homes = pd.DataFrame({"home": range(8000), "sort": rng.choice(["f", "m"], 8000)})
    rows = pd.DataFrame({"home": np.repeat(homes["home"], many)}).reset_index(drop=True)
    own = np.clip(0.5 + 0.4 * np.sin(7.0 * homes["home"]) - 0.02 * (many - 10), 0.05, 0.95)
    chances = {"x": 0.7, "y": 0.8, "z": own[rows["home"]].to_numpy(), "w": 0.03}
    for name, chance in chances.items():
        rows[name] = rng.random(len(rows)) < chance
    binary = Categorical([False, True])
    tables = {
        "homes": Table(Schema({"sort": Categorical(["f", "m"])}), key="home"),
        "rows": Table(Schema(dict.fromkeys(chances, binary)), parent="homes", link="home"),
    }
    model = PrivSyn(epsilon, 1e-9, Database(tables), seed=0).fit({"homes": homes, "rows": rows})
    made = model.sample(seed=0)["rows"]
    for name, least in {"x": 0.006, "y": 0.006, "z": 0.01, "w": 0.005}.items():
        found, true = model.accuracy_.share(f"rows: {name} == True"), rows[name].mean()
        assert abs(found["estimate"] - true) < least * (3 if epsilon == 1 else 1)
        assert found["low"] - 0.002 <= true <= found["high"] + 0.002
        assert abs(made[name].mean() - found["estimate"]) < 0.002
