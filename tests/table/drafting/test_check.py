"""A check of a schema tells its owner how many rows break which constraint, and takes what `synth` takes."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml
from command import run, visible
from hypothesis import given
from strategies import tables
from table.enforcement.test_constraints import COLUMNS, SETS, table

from privsyn import (
    Categorical,
    Datetime,
    Determined,
    Forbidden,
    Increasing,
    MissingWhen,
    Numerical,
    PrivSyn,
    Schema,
    Total,
)
from privsyn.studies.publication.data_sheet import render as render_sheet
from privsyn.studies.publication.public_page import render
from privsyn.table.drafting.draft import check_schema
from privsyn.table.schema.yaml_file import to_plain


def broken(lines):
    """The number of rows that the lines say break each constraint."""
    sentences = [
        re.match(r"constraint (\d+) \(.*\): ([\d,]+) of [\d,]+ rows break it", line) for line in lines
    ]
    return {int(match[1]): int(match[2].replace(",", "")) for match in sentences if match}


@pytest.mark.parametrize("name", [name for name, (constraints, _) in SETS.items() if len(constraints) == 1])
def test_a_check_counts_the_rows_that_break_a_constraint(name):
    (constraint,), kept = SETS[name]
    rows = table()
    breaks = ~np.asarray(kept(rows))
    if isinstance(constraint, Determined | Total):  # a row that lacks a cell keeps it, and will be completed
        breaks &= rows[list(constraint.columns)].notna().all(axis=1)
    lines = check_schema(rows, Schema(COLUMNS, constraints=[constraint]))
    assert broken(lines) == ({1: breaks.sum()} if breaks.any() else {})
    assert ("every row keeps every constraint" in lines) == (not breaks.any())


def test_each_of_several_constraints_is_counted():
    rows = pd.DataFrame({"a": [1, 5, 9], "b": [2, 4, 9], "c": [1, 1, 1]})
    schema = Schema(
        {name: Numerical(0, 9, integer=True) for name in "abc"},
        constraints=[Increasing(["c", "a"]), Increasing(["a", "b"]), Forbidden({"a": 9, "b": {"low": 3}})],
    )
    assert check_schema(rows, schema) == [
        "every cell fits",
        "constraint 2 (increasing: 'a', 'b'): 1 of 3 rows break it, and no synthetic row will",
        "constraint 3 (forbidden: 'a', 'b'): 1 of 3 rows break it, and no synthetic row will",
    ]


def test_constraints_on_columns_without_values_or_bounds_are_checked():
    """`fit` finds what these columns hold; the check once refused the schema."""
    rows = pd.DataFrame(
        {
            "job": ["none", "baker", "none", None],
            "code": [3, 1, 3, 2],
            "boss": ["Ann", "Bo", None, None],
            "from": pd.to_datetime(["1960-05-01", "1999-01-01", "2010-01-01", None]),
            "to": pd.to_datetime(["1959-05-01", "1999-01-01", "2011-01-01", "2000-01-01"]),
            "gross": [100.5, 7.25, 3.0, np.nan],
            "tax": [0.5, 0.25, 1.0, 1.0],
            "net": [100.0, 7.0, 3.0, 5.0],
        }
    )
    dates = {"from": Datetime(), "to": Datetime()}
    schema = Schema(
        {"job": Categorical(), "code": Categorical(), "boss": Categorical()}
        | dates
        | {name: Numerical() for name in ("gross", "tax", "net")},
        constraints=[
            MissingWhen("boss", {"job": "none"}),
            MissingWhen("boss", {"code": 1}, only=True),
            Increasing(["from", "to"]),
            Total("net", {"gross": 1, "tax": -1}),
            Forbidden({"job": None, "boss": None}),
        ],
    )
    lines = check_schema(rows, schema)
    assert lines[0].startswith("nothing to check in the cells")
    assert broken(lines) == {1: 1, 2: 3, 3: 1, 4: 1, 5: 1}


def test_sums_of_reals_in_single_precision_are_kept():
    parts = np.random.default_rng(0).random((1000, 2)) * 1e6
    rows = pd.DataFrame({"a": parts[:, 0], "b": parts[:, 1], "sum": parts.sum(axis=1)}).astype(np.float32)
    columns = {"a": Numerical(0, 1e6), "b": Numerical(0, 1e6), "sum": Numerical()}
    schema = Schema(columns, constraints=[Total("sum", ["a", "b"])])
    assert "every row keeps every constraint" in check_schema(rows, schema)
    rows.loc[:9, "sum"] += 100
    assert broken(check_schema(rows, schema)) == {1: 10}


@pytest.mark.slow
@given(tables())
def test_a_check_fails_on_no_table(drawn):
    schema, frame = drawn
    one, other = [*frame.columns, frame.columns[0]][:2]
    nowhere = Forbidden(dict.fromkeys((one, other)))
    bare = {
        name: Numerical(format=column.format) if isinstance(column, Numerical) else type(column)()
        for name, column in schema.columns.items()
    }
    for columns in (schema.columns, bare):
        lines = check_schema(frame, replace(schema, columns=columns, constraints=[nowhere]))
        assert lines[-1].endswith(("no synthetic row will", "every row keeps every constraint"))


def test_the_command_names_each_constraint_and_says_that_it_is_not_private(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame(
        {"born": [1950, 1960, 1970] * 9, "died": [2000, 1950, 2001] * 9, "spouse": list("xyz") * 9}
    )
    rows.to_csv("t.csv", index=False)
    years = {name: Numerical(1900, 2020, integer=True) for name in ("born", "died")}
    schema = Schema(
        years | {"spouse": Categorical()},
        constraints=[Increasing(["born", "died"]), MissingWhen("spouse", {"born": 1950})],
    )
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(to_plain(schema)))
    checked = run(capsys, "schema", "t.csv", "--check", "s.yaml")
    assert checked.code == 1
    assert checked.out.splitlines() == [
        "every cell fits",
        "constraint 1 (increasing: 'born', 'died'): 9 of 27 rows break it, and no synthetic row will",
        "constraint 2 (missing: 'born', 'spouse'): 9 of 27 rows break it, and no synthetic row will",
    ]
    assert "NOT PRIVATE" in checked.err
    assert checked.err.splitlines()[-1].startswith(
        "privsyn: s.yaml: rows break a constraint or rule: correct"
    )
    assert run(capsys, "synth", "t.csv", "o.csv", "--epsilon", 20, "--schema", "s.yaml").code == 0


@pytest.mark.parametrize(("bounds", "fate"), [({}, "become missing"), ({"low": 0, "high": 9}, "are clipped")])
def test_a_check_fails_if_no_cell_of_a_column_fits(bounds, fate, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema = {"a": {"kind": "numerical", **bounds}, "b": {"kind": "numerical"}}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({"columns": schema}))
    (tmp_path / "t.csv").write_text("a,b\n" + "x,1\n" * 9 + ",y\n")
    checked = run(capsys, "schema", "t.csv", "--check", "s.yaml")
    assert checked.code == 1
    one, other = checked.out.splitlines()
    assert one.startswith(f"column 'a': 9 of 10 cells do not fit: they {fate}")
    assert other == "column 'b': 1 of 10 cells do not fit: they become missing"
    assert "no cell of a column fits: correct its kind, values or bounds" in checked.err
    (tmp_path / "t.csv").write_text("a,b\n" + "x,1\n" * 9 + "2,y\n")  # one cell fits
    assert run(capsys, "schema", "t.csv", "--check", "s.yaml").code == 0


def test_a_missing_cell_that_becomes_the_lower_bound_is_said_to():
    rows = pd.DataFrame({"debt": [1.0, None, 3.0]})
    assert check_schema(rows, Schema({"debt": Numerical(0, 9, nullable=False)})) == [
        "column 'debt': 1 of 3 cells do not fit: they are clipped to the bounds, or the lower bound if"
        " missing or unreadable"
    ]


def test_a_total_that_is_off_says_by_how_much():
    """Half a cent of rounding and a wrong column were the same line."""
    columns = {name: Numerical(0, high, decimals=3) for name, high in zip("abc", (99, 99, 198), strict=True)}
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 1.0], "c": [2.0, 3.005, 4.0]})
    said = check_schema(frame, Schema(columns, constraints=["c == a + b"]))[-1]
    assert said.endswith("1 of 3 rows break it, by 0.01 at most, and no synthetic row will")


def test_a_step_that_a_run_makes_coarser_is_told_where_the_column_is_described():
    """Nearly all numbers are multiples of 50: the run takes this step, and the others are rounded."""
    rng, rows = np.random.default_rng(0), 20_000
    coarse, fine = rng.integers(0, 2000, rows) * 50, rng.integers(0, 4000, rows) * 25
    table = pd.DataFrame({"pay": np.where(np.arange(rows) % 200, coarse, fine), "kept": fine})
    schema = Schema(dict.fromkeys(table, Numerical(0, 100_000, step=25, integer=True)))
    off = int((table["pay"] % 50 > 0).sum())
    assert check_schema(table, schema) == [
        "every cell fits",
        f"column 'pay': its step is 25, and {off} of 20,000 numbers are no multiples of 50: a run that finds"
        " this step rounds them to it",
    ]
    release = PrivSyn(2.0, 1e-9, schema, seed=0).fit(table).release_
    page = visible(render(release))
    assert "rounded to multiples of 50; mean" in page
    assert "in steps of 50 from 0 to 100000; others are clipped. A cell may be missing. Noisy counts" in page
    assert "| pay | numerical | 0 to 100000, rounded to multiples of 50 |" in render_sheet(release)
