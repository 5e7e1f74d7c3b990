"""Remarks on a release depend on released counts alone."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
import yaml
from command import run


def test_a_column_of_a_wrong_kind_is_reported_after_the_run_and_by_sample(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.arange(2000)
    frame = pd.DataFrame({"age": rows % 90, "ward": np.where(rows % 2, "x", "y"), "day": "2020-01-01"})
    frame.assign(half=np.where(rows % 2, "7", "?")).to_csv("t.csv", index=False)
    known = {"kind": "numerical", "low": 0, "high": 99}
    columns = {"age": known, "ward": known, "day": {"kind": "numerical"}, "half": known}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({"columns": columns}))
    options = ("--epsilon", 1, "--schema", "s.yaml", "--seed", 1, "--model", "m.privsyn")
    for command in (("synth", "t.csv", "o.csv", *options), ("sample", "m.privsyn", "again.csv")):
        done = run(capsys, *command)
        assert done.code == 0
        (line,) = [line for line in done.out.splitlines() if "entirely missing" in line]
        assert line == (
            "entirely missing in the synthetic table, or nearly: ward, day;"
            " does the schema give the right kind?"
        )


def test_bounds_that_were_found_are_printed_and_those_of_the_schema_are_not(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.arange(4000)
    pd.DataFrame({"age": rows % 60, "pay": rows % 1000 + 0.5}).to_csv("t.csv", index=False)
    columns = {"age": {"kind": "numerical"}, "pay": {"kind": "numerical", "low": 0, "high": 2000}}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({"columns": columns}))
    done = run(capsys, "synth", "t.csv", "o.csv", "--epsilon", 1, "--schema", "s.yaml", "--seed", 1)
    (line,) = [line for line in done.out.splitlines() if "bounds found" in line]
    said = "numbers beyond the bounds found are clipped to them: age 0 to 64; give bounds in a schema if more"
    assert line == f"{said} are known"


@pytest.mark.slow
def test_the_lists_of_a_wide_table_do_not_hide_the_closing_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"measurement_{place}" for place in range(40)]
    pd.DataFrame({name: np.arange(500) % 2 for name in names}).to_csv("t.csv", index=False)
    done = run(capsys, "synth", "t.csv", "o.csv", "--epsilon", 1, "--seed", 1, "--ledger", "l.json")
    lines = done.out.splitlines()
    assert max(map(len, lines)) < 400
    assert sum("measurement_39" in line for line in lines) == 0
    assert sum("... (all in the ledger)" in line for line in lines) == 2
    assert "'measurement_39'" in str(json.loads((tmp_path / "l.json").read_text())["public_inputs"])


def test_whole_numbers_that_become_text_are_reported_after_the_run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.arange(3000)
    zips = np.where(rows % 5, 98001 + rows % 3, 98100 + rows % 300)
    pd.DataFrame({"zip": zips, "own": zips, "few": 7 + rows % 3}).to_csv("t.csv", index=False)
    kind = {"kind": "categorical"}
    columns = {"zip": kind, "own": {**kind, "other": "other"}, "few": {**kind, "values": ["7", "8", "9"]}}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({"columns": columns}))
    done = run(capsys, "synth", "t.csv", "o.csv", "--epsilon", 1, "--schema", "s.yaml", "--seed", 1)
    assert done.code == 0
    assert "\nrare values come out as '(other)', so that the column is text: zip\n" in done.out
    assert "(other)" in set(pd.read_csv("o.csv", dtype=str)["zip"])


def test_numbers_that_are_named_like_codes_are_reported_after_the_run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.arange(3000)
    pd.DataFrame({"zipcode": 98001 + rows % 70, "price": rows % 90}).to_csv("t.csv", index=False)
    done = run(capsys, "synth", "t.csv", "o.csv", "--epsilon", 1, "--seed", 1)
    line = "taken as amounts, though named like codes: zipcode; {kind: categorical} in a schema keeps codes"
    assert line in done.out.splitlines()
    columns = {"zipcode": {"kind": "categorical"}, "price": {"kind": "numerical"}}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({"columns": columns}))
    done = run(capsys, "synth", "t.csv", "p.csv", "--epsilon", 1, "--schema", "s.yaml")
    assert "named like codes" not in done.out


def test_columns_that_are_mostly_other_are_reported_with_their_share(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.arange(3000)
    few, many = [f"f{row % 3}" for row in rows], [f"m{row % 900}" if row % 4 else "m" for row in rows]
    pd.DataFrame({"few": few, "many": many, "place": many, "own": many}).to_csv("t.csv", index=False)
    own = {"kind": "categorical", "values": ["m", "other"], "other": "other"}
    columns = {"few": {"kind": "categorical"}, "many": {"kind": "categorical"}, "own": own}
    columns["place"] = {"kind": "categorical", "other": "elsewhere"}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump({"columns": columns}))
    options = ("--epsilon", 1, "--schema", "s.yaml", "--seed", 1)
    done = run(capsys, "synth", "t.csv", "o.csv", *options)
    assert "values that few rows share" not in done.out
    (line,) = [line for line in done.out.splitlines() if "too few" in line]
    assert re.sub("7[0-9]%", "75%", line) == (
        "too few rows share a value: many (75% of the cells are (other)), place (75% of the cells are"
        " elsewhere); give the right kind, or list public values"
    )


def test_columns_of_which_some_values_are_replaced_are_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.arange(3000)
    town = np.where(rows < 2700, "Rome", [f"u{row}" for row in rows])
    pd.DataFrame({"town": town, "kind": np.where(rows % 2, "a", "b")}).to_csv("t.csv", index=False)
    done = run(capsys, "synth", "t.csv", "o.csv", "--epsilon", 2, "--seed", 1)
    (line,) = [line for line in done.out.splitlines() if "few rows share" in line]
    assert re.sub(r"\b(9|1[01])%", "10%", line) == (
        "values that few rows share are replaced: town (10% of the cells are (other)); list public values in"
        " a schema to keep them"
    )
