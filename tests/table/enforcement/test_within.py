"""Places that lie in regions: the rows of the hierarchy, what is refused, and that no row breaks it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from privsyn import Categorical, Numerical, PrivSyn, Schema, Within, load, read_schema
from privsyn.table.schema.yaml_file import to_yaml

PLACES = {"N1": "North", "N2": "North", "S1": "South", "S2": "South"}
ROWS = list(PLACES.items())
COLUMNS = {"place": Categorical([*PLACES]), "region": Categorical(["North", "South"]), "n": Numerical(0, 9)}


def frame(rows=ROWS):
    return pd.DataFrame(rows, columns=["place", "region"])


def test_every_form_of_the_table_gives_the_same_rows(tmp_path):
    frame().assign(more=1).to_csv(tmp_path / "places.csv", index=False)
    text = to_yaml(Schema(COLUMNS)) + "constraints:\n- {within: {place: region}, table: places.csv}\n"
    (tmp_path / "schema.yaml").write_text(text)
    forms = [
        Schema(COLUMNS, constraints=[Within({"place": "region"}, table)])
        for table in (ROWS, frame(), frame([*ROWS, *ROWS]), str(tmp_path / "places.csv"))
    ]
    forms.append(read_schema(tmp_path / "schema.yaml"))
    for schema in forms:
        assert schema.constraints[0].rows == tuple(ROWS)
        assert schema == forms[0]
    assert pickle.loads(pickle.dumps(forms[0])) == forms[0]
    (tmp_path / "again.yaml").write_text(to_yaml(forms[0]))
    assert read_schema(tmp_path / "again.yaml") == forms[0]
    assert "each place lies in one region, in a list of 4 rows" in forms[0].explain()


def test_several_levels_are_one_constraint_each():
    levels = frame().assign(country="Land")
    columns = {**COLUMNS, "country": Categorical()}
    schema = Schema(columns, constraints=[Within({"place": "region", "region": "country"}, levels)])
    assert [constraint.columns for constraint in schema.constraints] == [
        ("place", "region"),
        ("region", "country"),
    ]
    assert schema.columns["country"].values == ("Land",)
    assert schema.constraints[1].rows == (("North", "Land"), ("South", "Land"))


@pytest.mark.parametrize(
    ("within", "table", "words"),
    [
        ({"place": "region"}, [*ROWS, ("N1", "South")], "place 'N1' lies in 'North' and in 'South'"),
        ({"place": "region"}, ROWS[:3], "does not say in which 'region' place 'S2' lies"),
        ({"place": "region"}, None, "in which 'region' each 'place' lies is not given"),
        ({"place": "region"}, [*ROWS, ("N3", "North")], "'N3' is not one of its values"),
        ({"place": "place"}, ROWS, "give different column names"),
        ({"place": "regoin"}, ROWS, "no column 'regoin'; did you mean 'region'"),
        ({"place": "region", "region": "n"}, ROWS, "rows are those of one pair of columns"),
        ("place", ROWS, "within maps columns to columns"),
        ({}, ROWS, "within maps columns to columns"),
        ({"place": "region"}, 3, "table: give the path of a CSV file, or a data frame"),
        ({"place": "region"}, pd.DataFrame({"place": ["N1"]}), "the data frame has no column 'region'"),
    ],
)
def test_a_hierarchy_that_is_none_is_refused(within, table, words):
    rows = frame().assign(n=1.0)
    with refuses(words):
        PrivSyn(1.0, schema=Schema(COLUMNS, constraints=[Within(within, table)])).fit(rows)


@pytest.mark.slow
def test_no_row_breaks_the_hierarchy_and_the_ledger_names_its_file(tmp_path):
    generator = np.random.default_rng(0)
    rows = frame().sample(500, replace=True, random_state=0).reset_index(drop=True)
    rows["n"] = generator.integers(0, 10, 500).astype(float)
    rows.loc[:40, "region"] = "South"  # rows of the private table may break it
    frame().to_csv(tmp_path / "places.csv", index=False)
    schema = Schema(COLUMNS, constraints=[Within({"place": "region"}, tmp_path / "places.csv")])
    model = PrivSyn(1.0, schema=schema, seed=0).fit(rows)
    assert any("the table in the file 'places.csv'" in fact for fact in model.ledger_.public_inputs)
    model.save(tmp_path / "model.privsyn")
    for made in (model.sample(2000, seed=1), load(tmp_path / "model.privsyn").sample(2000, seed=1)):
        known = made.dropna(subset=["place", "region"])
        assert (known["place"].map(PLACES) == known["region"]).all()
        assert known["region"].nunique() == 2
