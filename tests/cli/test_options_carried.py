"""Commands that describe the same run take the same options: a user carries them from one to the other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from command import run

SCHEMA = """\
columns:
  sex: {kind: categorical, values: [F, M], nullable: false}
  year: {kind: numerical, low: 2000, high: 2009, integer: true, nullable: false}
  ward: {kind: categorical, values: [a, b], nullable: false}
"""
OF_PERSONS = ("--unit", "who", "--identifiers", "--order", "year")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(400), 3)
    rows = pd.DataFrame(
        {"who": who, "sex": np.array(["F", "M"])[who % 2], "year": 2000 + np.arange(1200) % 3}
    )
    rows["ward"] = rng.choice(["a", "b"], 1200)
    rows.to_csv("rows.csv", index=False)
    rows.assign(who=who + 400, ward="a").to_csv("control.csv", index=False)
    (tmp_path / "rows.yaml").write_text(f"{SCHEMA}constant: [sex]\n")
    (tmp_path / "plain.yaml").write_text(SCHEMA)
    return tmp_path


def test_the_options_of_persons_go_with_every_command(folder, capsys):
    schema = "--schema", "rows.yaml"
    run_of = (*schema, *OF_PERSONS, "--epsilon", 5)
    for words in (
        ("schema", "rows.csv", *OF_PERSONS),
        ("schema", "rows.csv", "--check", "rows.yaml", *OF_PERSONS),
        (
            "plan",
            "rows.csv",
            *run_of,
            "--rows",
            1200,
            "--rows-per-parent",
            "rows=3",
            "--seed",
            0,
            "--memory",
            "1GB",
        ),
        ("synth", "rows.csv", "out.csv", *run_of, "--seed", 0, "--no-budget"),
        ("evaluate", "rows.csv", "out.csv", *schema, *OF_PERSONS),
        ("attack", "rows.csv", "out.csv", "control.csv", *schema, *OF_PERSONS),
        ("sweep", "rows.csv", *run_of, "--seeds", 1, "--out", "sweep.csv", "--no-models"),
    ):
        done = run(capsys, *words)
        assert done.code == 0, (words, done.err)
    plan = run(capsys, "plan", "rows.csv", *run_of, "--rows", 1200, "--rows-per-parent", "rows=3").out
    assert "400 rows of persons" in plan
    assert pd.read_csv("sweep.csv")["children_mean"].notna().all()


def test_a_sweep_of_rows_holds_persons_out(folder, capsys):
    words = (
        "rows.csv",
        "--schema",
        "plain.yaml",
        "--unit",
        "who",
        "--epsilon",
        5,
        "--seeds",
        1,
        "--no-models",
    )
    assert run(capsys, "sweep", *words, "--out", "sweep.csv").code == 0
    (real_rows,) = pd.read_csv("sweep.csv")["real_rows"]
    assert real_rows == 0.8 * 1200  # of whole persons: 320 of 400 with three rows each
    assert run(capsys, "sweep", *words, "--out", "again.csv", "--identifiers", "--rows-per-unit", 2).code == 0


def test_a_schema_without_its_unit_says_what_to_do(folder, capsys):
    done = run(capsys, "schema", "rows.csv", "--check", "plain.yaml")
    assert done.code == 2
    assert "a column that says whose rows they are is named by --unit, not in the schema" in done.err


def test_a_wrong_option_names_those_that_write_a_file(capsys):
    """They follow from the options themselves, whatever their help says."""
    done = run(capsys, "evaluate", "a.csv", "b.csv", "--output", "page.html")
    assert "the options that write a file are --json, --report" in done.err
    assert "--plot, --long" not in run(capsys, "sweep", "a.csv", "--output", "x").err  # it has --out
