"""The lane of judges that others wrote: how it asks them, and how it decides. None of them is needed here."""

from __future__ import annotations

import json
import re
from math import inf, nan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scripts import imported, needed

ROOT = Path(__file__).parents[1]

pytestmark = needed


@pytest.fixture(scope="module")
def scripts():
    with imported("judge", "judges") as scripts:
        yield scripts


def found(judges, *, figures=None, table="privsyn", seed=0):
    """Rows of all judges that meet every floor, unless `figures` says otherwise."""
    return [
        {
            "seed": seed,
            "table": table,
            "judge": judge,
            "figures": {f.name: f.floor for f in judges.FIGURES if f.judge == judge} | (figures or {}),
            "versions": {judge: "1.0", "pandas": "2.0"},
        }
        for judge in judges.JUDGES
    ]


def test_each_floor_decides_alone_and_for_the_worst_seed(scripts):
    judges = scripts["judges"]
    assert judges.breaches(found(judges)) == []
    for figure in judges.FIGURES:
        beyond = figure.floor + 1e-9 if figure.at_most else figure.floor - 1e-9
        rows = [*found(judges), *found(judges, figures={figure.name: beyond}, seed=1)]
        (line,) = judges.breaches(rows)
        assert figure.name in line
        assert figure.reason in line


@pytest.mark.parametrize("value", [nan, None])
def test_a_figure_that_is_missing_meets_no_floor(scripts, value):
    judges = scripts["judges"]
    for figure in judges.FIGURES:
        good = -inf if figure.at_most else inf
        for order in ([nan, good], [good, nan]):
            assert not figure.is_met(figure.worst(order))
    if value is None:
        rows = found(judges)
        del rows[0]["figures"][judges.FIGURES[0].name]
        with pytest.raises(KeyError, match=judges.FIGURES[0].name):
            judges.breaches(rows)


def test_the_page_shows_median_worst_and_both_yardsticks(scripts):
    judges = scripts["judges"]
    figure = judges.FIGURES[0]
    rows = [
        *(
            row
            for seed, value in enumerate((975.0, 973.0, 971.0))
            for row in found(judges, figures={figure.name: value}, seed=seed)
        ),
        *found(judges, figures={figure.name: 988.0}, table="redrawn"),
        *found(judges, figures={figure.name: 922.0}, table="independent"),
    ]
    line = next(line for line in judges.table_of(rows).splitlines() if figure.name in line)
    assert [cell.strip() for cell in line.split("|")][3:7] == ["**973**", "971", "988", "922"]
    page = (judges.ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page.count("<!-- judges: begin -->\n") == page.count("<!-- judges: end -->\n") == 1
    assert all(figure.name in page for figure in judges.FIGURES)


def test_every_judge_has_an_environment_in_the_makefile_and_a_function(scripts, tmp_path):
    judge, judges = scripts["judge"], scripts["judges"]
    (pins,) = re.findall(r"^JUDGE_PACKAGES := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    pinned = dict(pin.split("-") for pin in pins.split())
    assert set(pinned) == set(judges.JUDGES) == set(judge.JUDGES)
    python = tmp_path / f"sdnist-{pinned['sdnist']}" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert judges.interpreter("sdnist", tmp_path) == python
    with pytest.raises(SystemExit, match="make judges"):
        judges.interpreter("anonymeter", tmp_path)


def test_a_judge_is_asked_in_its_own_process(scripts, tmp_path):
    judges = scripts["judges"]
    python = tmp_path / "python"
    answer = {"figures": {"quality": 0.9}, "versions": {"sdmetrics": "0.32.0"}}
    python.write_text(f"#!/bin/sh\necho a warning\necho '{json.dumps(answer)}'\n")
    python.chmod(0o755)
    rows = pd.DataFrame({"a": [1, 2]})
    assert judges.verdict(python, "sdmetrics", [rows] * 3, tmp_path, 0) == answer
    python.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(Exception, match="exit status 1"):
        judges.verdict(python, "sdmetrics", [rows] * 3, tmp_path, 0)


def test_rows_held_out_are_not_in_the_table_that_is_made(scripts):
    judges = scripts["judges"]
    rows = pd.DataFrame({"a": np.arange(1000)})
    real, control = judges.split(rows, 0, judges.HELD_OUT)
    assert sorted([*real["a"], *control["a"]]) == list(range(1000))
    assert not set(real["a"]) & set(control["a"])
    assert len(judges.split(rows, 0, 0)[1]) == 0


def test_bins_hold_equal_shares_of_the_real_rows_and_the_same_numbers_of_both_tables(scripts):
    binned = scripts["judge"].binned
    real = pd.Series([0] * 60 + list(range(1, 41)))
    bins, same = binned(real, real)
    assert (bins == same).all()
    assert len(set(bins[:60])) == 1
    assert np.bincount(bins)[bins[60] + 1 :] == pytest.approx(5, abs=1)  # cells of 100
    _, other = binned(real, pd.Series([-5, 0, 40, 99]))
    assert other.tolist() == [bins[0], bins[0], 19, 19]


def test_codes_are_the_same_for_the_same_text_and_a_new_text_has_its_own(scripts):
    real = pd.DataFrame({"a": ["x", "y", None], "n": [1.0, None, 3.0]})
    made = pd.DataFrame({"a": ["y", "z", "x"], "n": [None, 2.0, 3.0]})
    of_real, of_made = scripts["judge"].coded(real, made)
    assert of_real["a"].tolist() == [0, 1, -1]
    assert of_made["a"].tolist() == [1, 2, 0]
    assert (of_real["n"].tolist(), of_made["n"].tolist()) == ([1, -1, 3], [-1, 2, 3])
