"""A look-up table is public: its keys are the values of columns, and it comes out as it went in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from same_model import assert_same_model

from privsyn import Categorical, Database, InputError, Numerical, PrivSyn, Schema, Table, load
from privsyn.studies.publication.public_page import render

ZONES = pd.DataFrame(
    {
        "zone": [10, 20, 30, 40],
        "name": ["NA", "007", "ä, b", None],
        "area": [1.5, 2.0, None, 0.1],
        "since": pd.to_datetime(["2020-01-02"] * 4),
        "town": [True, False, True, True],
    }
)
HOMES, TRIPS = Schema({"zone": Categorical()}), Schema({"km": Numerical(0, 9, integer=True)})
ENDS = {"origin": "zones", "end": "zones"}


def database(zones=ZONES, homes=HOMES, trips=TRIPS, ends=ENDS, key="zone"):
    return Database(
        {
            "zones": Table(public=zones, key=key),
            "homes": Table(homes, key="home"),
            "trips": Table(trips, parent="homes", link="home", lookups=ends),
        }
    )


def tables_of(homes=300, seed=0):
    rng = np.random.default_rng(seed)
    root = pd.DataFrame({"home": range(homes), "zone": rng.choice([10, 20], homes)})
    trips = pd.DataFrame({"home": np.repeat(root["home"], 2).to_numpy()})
    trips["origin"] = np.repeat(root["zone"], 2).to_numpy()
    trips["end"] = pd.array(rng.choice([30, 40], 2 * homes), "Int64")
    trips["km"] = rng.integers(0, 10, 2 * homes)
    return {"homes": root, "trips": trips}


TABLES = tables_of()


@pytest.fixture(scope="module")
def model():
    return PrivSyn(9.0, 1e-6, database(), seed=1).fit(TABLES)


@pytest.mark.slow
def test_every_value_is_a_key_and_the_public_table_comes_out_as_it_is(model, tmp_path):
    made = model.sample(seed=2)
    assert list(made) == ["homes", "trips", "zones"]
    pd.testing.assert_frame_equal(made["zones"], ZONES)
    for table, column in (("homes", "zone"), ("trips", "origin"), ("trips", "end")):
        assert made[table][column].dropna().isin(ZONES["zone"]).all()
        assert made[table][column].dtype == TABLES[table][column].dtype
    assert made["trips"]["end"].isin([30, 40]).mean() > 0.9
    joined = made["trips"].merge(made["homes"], on="home")
    assert (joined["origin"] == joined["zone"]).mean() > 0.8
    model.save(tmp_path / "model")
    again = load(tmp_path / "model").sample(seed=2)
    assert list(again) == list(made)
    for name, table in made.items():
        pd.testing.assert_frame_equal(again[name], table)
    made["zones"].loc[0, "name"] = "changed"
    assert model.sample(3)["zones"]["name"][0] == "NA"


@pytest.mark.slow
def test_nothing_is_asked_of_it_and_the_ledger_names_it(model):
    assert {spend.what.split(":")[0] for spend in model.ledger_.spends} == {"homes", "trips"}
    assert sum("the table 'zones'" in fact for fact in model.ledger_.public_inputs) == 1
    assert list(model.release_.tables) == ["homes", "trips"]
    other = PrivSyn(9.0, 1e-6, database(ZONES[["zone"]]), seed=1).fit(TABLES)
    for name, release in other.release_.tables.items():
        assert release.fitted.total == model.release_.tables[name].fitted.total
        assert other.sample(9, seed=1)[name].equals(model.sample(9, seed=1)[name])


@pytest.mark.slow
def test_a_cell_that_is_no_key_counts_as_any_value_that_is_not_listed():
    """It is missing where the dtype can hold that, and else the first key."""
    trips, homes = TABLES["trips"].copy(), TABLES["homes"].copy()
    trips.loc[:99, "end"], homes.loc[:9, "zone"] = 99, -1
    as_missing, as_first = trips.copy(), homes.copy()
    as_missing.loc[:99, "end"], as_first.loc[:9, "zone"] = pd.NA, 10
    one, two = (
        PrivSyn(9.0, 1e-6, database(), seed=1).fit({"homes": root, "trips": rows})
        for root, rows in ((homes, trips), (as_first, as_missing))
    )
    assert_same_model(one.release_.packed(), two.release_.packed())
    assert one.sample(seed=1)["trips"]["end"].isna().any()


def test_a_declared_list_may_be_a_part_of_the_keys(model):
    homes, trips = Schema({"zone": Categorical([20, 10])}), Schema({"km": TRIPS.columns["km"]})
    made = PrivSyn(9.0, 1e-6, database(homes=homes, trips=trips), seed=1).fit(TABLES)
    assert made.release_.tables["homes"].codec.schema.columns["zone"].values == (20, 10)
    assert made.release_.tables["trips"].codec.schema.columns["end"].values == (10, 20, 30, 40)


def test_without_a_schema_names_and_lookups_say_where_a_column_leads():
    tables = {"homes": TABLES["homes"].rename(columns={"zone": "zone_id"}), "trips": TABLES["trips"]}
    zones = ZONES.rename(columns={"zone": "zone_id"})  # without a look-up, identifiers by their name
    made = PrivSyn(9.0, 1e-6, database(zones, None, None, key="zone_id"), seed=1).fit(tables).sample(20)
    assert made["homes"]["zone_id"].isin(zones["zone_id"]).all()
    assert made["trips"]["origin"].isin(zones["zone_id"]).all()


def test_two_public_tables_may_lead_from_one_table():
    kinds = pd.DataFrame({"kind": ["a", "b"]})
    tables = {**TABLES, "trips": TABLES["trips"].assign(kind=["a", "b"] * 300)}
    whole = database(trips=Schema({**TRIPS.columns, "kind": Categorical()})).tables
    both = Database({**whole, "kinds": Table(public=kinds, key="kind")})
    made = PrivSyn(9.0, 1e-6, both, seed=1).fit(tables).sample(20)
    assert made["trips"]["kind"].isin(["a", "b"]).all()
    assert made["kinds"].equals(kinds)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zones.csv", "zones.parquet", "zones.duckdb::zones", "zones.sqlite"])
def test_a_file_of_any_format_comes_out_with_the_tables(tmp_path, name):
    from privsyn.table.io.read_in_memory import read_in_memory
    from privsyn.table.io.write import write_table

    columns = ["zone", "name", "area"]
    write_table(ZONES[columns], tmp_path / name)
    fitted = PrivSyn(5.0, 1e-6, database(tmp_path / name), seed=1).fit(TABLES)
    assert fitted.sample(9)["zones"].astype(object).equals(ZONES[columns].astype(object))
    schema = Schema({"zone": Categorical([10, 20, 30, 40]), "name": Categorical()}, missing=[])
    for out in ("made", "made.duckdb", "made.sqlite"):
        shapes = fitted.release_.sample_into(tmp_path / out, 9)
        assert shapes["zones"] == (4, 3)
        written = tmp_path / out / "zones.csv" if out == "made" else f"{tmp_path / out}::zones"
        found = read_in_memory(written, None if out == "made.duckdb" else schema).frame
        assert found["zone"].tolist() == [10, 20, 30, 40]
    text = (tmp_path / "made" / "zones.csv").read_text().splitlines()
    assert text[1:] == ["10,NA,1.5", "20,007,2.0", '30,"ä, b",', "40,,0.1"]


# --- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"zones": "none.csv"}, "table 'zones': .*none.csv"),
        ({"zones": "none.txt"}, "table 'zones': .*the ending is none of"),
        ({"zones": object()}, "table 'zones': a table is a pandas"),
        ({"zones": ZONES, "key": "zon"}, "table 'zones': it has no column 'zon', .* did you mean 'zone'"),
        ({"zones": pd.concat([ZONES, ZONES[:1]])}, "its key 'zone' is the same in rows 1 and 5"),
        ({"zones": ZONES.assign(zone=[1, None, 2, 3])}, "'zones': its key 'zone' is missing in row 2"),
        ({"zones": ZONES.assign(zone=ZONES["since"])}, "'zone' is neither text nor a number in row 1"),
        ({"zones": ZONES[:0]}, "table 'zones': it has no row"),
        ({"zones": ZONES.assign(name=[[1], [2], [3], [4]])}, "column 'name': a model file cannot hold"),
        ({"zones": ZONES.assign(zone=["a", "b", "c", "d"])}, "'zone': its dtype is int64, which cannot hold"),
        ({"homes": Schema({"zone": Categorical([10, 50])})}, "'zone': 50 is no key of 'zones'"),
        ({"homes": Schema({"zone": Categorical(other="x")})}, "'zone': 'x' is no key of 'zones'"),
        ({"homes": Schema({"zone": Numerical(0, 99)})}, "'zone': its values are keys of 'zones': declare it"),
        ({"ends": {"origin": "zones"}}, "table 'trips': the schema does not know column 2 of the table"),
        ({"ends": {**ENDS, "start": "zones"}}, "table 'trips': .*'start'"),
        ({"trips": None, "ends": {"start": "zones"}}, "no column 'start', which lookups names"),
        ({"zones": ZONES.assign(home=1)}, "its 'home' is called like the key of 'homes', whose rows are"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(changes, complaint):
    with refuses(complaint):
        PrivSyn(1.0, 1e-6, database(**changes)).fit(TABLES)


def test_a_public_table_to_which_no_column_leads_is_refused():
    homes, tables = TABLES["homes"].rename(columns={"zone": "area"}), TABLES
    unused = database(homes=Schema({"area": Categorical([10, 20])}), trips=None, ends={})
    with pytest.raises(InputError, match="table 'zones': no column leads to it: name one in lookups"):
        PrivSyn(1.0, 1e-6, unused).fit({**tables, "homes": homes})


def test_a_name_that_two_public_tables_have_is_refused():
    both = Database({**database().tables, "areas": Table(public=ZONES, key="zone")})
    with pytest.raises(InputError, match="'zone' is the key of 'zones' and 'areas': say in lookups which"):
        PrivSyn(1.0, 1e-6, both).fit(TABLES)
    tables = {**both.tables, "homes": Table(HOMES, key="home", lookups={"zone": "areas"})}
    made = PrivSyn(5.0, 1e-6, Database(tables), seed=1).fit(TABLES).sample(3)
    assert list(made) == ["homes", "trips", "zones", "areas"]


PLACES = (
    ("homes.csv", "homes.csv"),
    ("linked.csv", "homes.csv"),
    ("hard.csv", "homes.csv"),
    ("homes.duckdb", "homes.duckdb::homes"),
    ("homes.sqlite::homes", "homes.sqlite"),
    ("homes", "homes/part.parquet"),
    ("homes/part.parquet", "homes"),
)


@pytest.mark.parametrize(("public", "private"), PLACES)
def test_the_public_table_is_never_the_private_one(public, private, tmp_path):
    """What is looked up is published as it is."""
    from privsyn.table.io.write import write_table

    (tmp_path / "homes").mkdir()
    for place in ("homes.csv", "homes.duckdb::homes", "homes.sqlite::homes", "homes/part.parquet"):
        write_table(TABLES["homes"], tmp_path / place)
    (tmp_path / "linked.csv").symlink_to(tmp_path / "homes.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "homes.csv")
    whole = database(str(tmp_path / public), key="home", homes=None, ends={})
    with pytest.raises(InputError, match="'homes' is private, and the look-up table 'zones' too"):
        PrivSyn(1.0, 1e-6, whole).fit({**TABLES, "homes": tmp_path / private})


def test_nor_in_a_folder_or_in_memory(tmp_path):
    for name, table in TABLES.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    for public, tables in ((tmp_path / "homes.csv", tmp_path), (TABLES["homes"], TABLES)):
        whole = database(public, key="home", homes=None, ends={})
        with pytest.raises(InputError, match="'homes' is private, and the look-up table 'zones' too"):
            PrivSyn(1.0, 1e-6, whole).fit(tables)
    with pytest.raises(InputError, match="the table 'zones' is public, and the schema has it: leave it out"):
        PrivSyn(1.0, 1e-6, database()).fit({**TABLES, "zones": ZONES})


@pytest.mark.slow
def test_one_file_may_have_both_public_and_private_tables(tmp_path):
    from privsyn.table.io.write import write_table

    path = tmp_path / "all.duckdb"
    for name, table in {**TABLES, "zones": ZONES[["zone"]]}.items():
        write_table(table, f"{path}::{name}")
    made = PrivSyn(5.0, 1e-6, database(f"{path}::zones"), seed=1).fit(path)
    assert list(made.sample(3)) == ["homes", "trips", "zones"]


def test_the_page_counts_private_tables_and_public_ones_beside_them():
    """The page of one table with a public one said "1 linked table"."""
    alone = Database({"zones": Table(public=ZONES, key="zone"), "homes": Table(HOMES, key="home")})
    page = render(PrivSyn(5.0, 1e-6, alone, seed=0).fit({"homes": TABLES["homes"]}).release_)
    assert "Counts of a table, beside 1 public table, of a private database" in page
    page = render(PrivSyn(5.0, 1e-6, database(), seed=0).fit(TABLES).release_)
    assert "Counts of 2 linked tables, beside 1 public table, of a private database" in page
