"""Rows from a schema alone keep its rules and keys, are uniform, and need no table."""

from __future__ import annotations

from math import sqrt

import pandas as pd
import pytest
from command import run
from hospital import SCHEMA as HOSPITAL
from refusals import refuses

import privsyn
from privsyn import Categorical, Datetime, Duration, Identifier, Numerical, Schema, Text, Time
from privsyn.errors import ColumnWarning

STANDARD_DEVIATIONS = 6  # more happens with a probability below 1e-8

PEOPLE = Schema(
    {
        "id": Identifier("P{}"),
        "sex": Categorical(["F", "M"], nullable=False),
        "age": Numerical(0, 99, integer=True, nullable=False),
        "hours": Numerical(0, 9, integer=True, nullable=False),
        "total": Numerical(integer=True),
        "pay": Numerical(),
        "start": Datetime("2015-01-01", "2020-01-01"),
        "end": Datetime(),
        "married": Categorical(["no", "yes"], nullable=False),
        "spouse": Categorical(),
        "at": Time(),
        "stay": Duration(),
        "note": Text(),
    },
    constraints=[
        "start <= end",
        "spouse is missing iff married == 'no'",
        "total == age + hours",
        "age < 18 implies married == 'no'",
    ],
)


def test_rows_keep_the_rules_and_have_placeholders_for_what_is_open():
    rows = 2000
    with pytest.warns(ColumnWarning, match="note"):
        table = privsyn.dummy(PEOPLE, rows, seed=1)
    assert list(table) == [name for name in PEOPLE.columns if name != "note"]
    assert (table["id"] == [f"P{number}" for number in range(1, rows + 1)]).all()
    assert not (table["start"] > table["end"]).any()
    assert (table["spouse"].isna() == (table["married"] == "no")).all()
    assert (table["total"] == table["age"] + table["hours"]).all()
    assert not ((table["age"] < 18) & (table["married"] == "yes")).any()
    assert set(table["spouse"].dropna()) == {"value 1", "value 2", "value 3"}
    assert table["pay"].between(0, 100).sum() == table["pay"].notna().sum() > 0.9 * rows
    again = privsyn.dummy(PEOPLE.without(["note"]), rows, seed=1)
    pd.testing.assert_frame_equal(table, again)


def test_each_value_is_as_frequent_as_any_other():
    rows = 4000
    schema = Schema({"a": Categorical(list("wxyz"), nullable=False), "n": Numerical(0, 1000, nullable=False)})
    table = privsyn.dummy(schema, rows, seed=2)
    slack = STANDARD_DEVIATIONS * sqrt(rows * 0.25 * 0.75)
    assert (abs(table["a"].value_counts() - rows / 4) <= slack).all()
    quarters = pd.cut(table["n"], [-1, 250, 500, 750, 1001]).value_counts()
    assert (abs(quarters - rows / 4) <= slack + rows / 100).all()  # a cell may lie in two quarters
    both = pd.crosstab(table["a"], table["n"] > 500)  # columns are independent
    assert (abs(both - rows / 8) <= STANDARD_DEVIATIONS * sqrt(rows / 8) + rows / 100).all(axis=None)


def test_linked_tables_have_keys_that_lead_to_rows_and_keep_their_rules(tmp_path):
    (tmp_path / "schema.yaml").write_text(HOSPITAL)
    pd.DataFrame({"drug": ["a", "b", "c"], "price": [1, 2, 3]}).to_csv(tmp_path / "drugs.csv", index=False)
    tables = privsyn.dummy(tmp_path / "schema.yaml", 60, seed=3)
    patients, visits, drugs = tables["patients"], tables["visits"], tables["prescriptions"]
    assert len(patients) == 60
    assert patients["patient_id"].is_unique
    assert visits["patient_id"].isin(patients["patient_id"]).all()
    assert drugs["visit_id"].isin(visits["visit_id"]).all()
    assert drugs["drug"].dropna().isin(tables["drugs"]["drug"]).all()
    assert not (visits["arrived"] > visits["left"]).any()
    assert visits.groupby("patient_id").size().max() <= 4


def test_the_command_says_that_the_rows_say_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(
        "columns:\n  a: {kind: categorical, values: [x, y]}\n  b: {kind: numerical}\n"
    )
    done = run(capsys, "dummy", "s.yaml", "out.csv", "--rows", "50", "--seed", "1")
    assert (done.code, done.err) == (0, "")
    assert "DUMMY ROWS" in done.out
    assert "They say nothing of any data" in done.out.replace("\n", " ")
    assert "leaves them open: b" in done.out
    first = (tmp_path / "out.csv").read_bytes()
    assert pd.read_csv("out.csv").shape == (50, 2)
    assert run(capsys, "dummy", "s.yaml", "out.csv").code == 2  # it exists
    assert run(capsys, "dummy", "s.yaml", "out.csv", "--rows", "50", "--seed", "1", "--force").code == 0
    assert (tmp_path / "out.csv").read_bytes() == first


def test_what_no_row_can_be_made_of_is_refused(tmp_path):
    with refuses("declares no column"):
        privsyn.dummy(Schema({}, csv=privsyn.CsvFormat(delimiter=";")))
    with refuses("rows"):
        privsyn.dummy(PEOPLE, -1)
    with pytest.raises(privsyn.InputError, match="no such file"):
        privsyn.dummy(tmp_path / "nothing.yaml")
