"""The statement is drafted from ledger and attacks, and promises no more than these say."""

from __future__ import annotations

import json
import math
from statistics import NormalDist

import pandas as pd
import pytest
from refusals import refuses

from privsyn import Categorical, PrivSyn, Schema, statement
from privsyn.cli.main import main
from privsyn.evaluation.attacks.risks import Rate, Risk, Risks

SCHEMA = Schema({"a": Categorical(["x", "y"])}, about={"title": "Visits <b>", "publisher": "Office"})
TABLE = pd.DataFrame({"a": ["x", "y"] * 200})
ATTACKS = {
    "infer a": Risk(Rate(450, 500), Rate(400, 500), Rate(250, 500)),
    "link two halves of a row": Risk(Rate(10, 500), Rate(11, 500), Rate(9, 500)),
}


@pytest.fixture
def release():
    return PrivSyn(1.0, 0.0, SCHEMA).fit(TABLE).release_


def test_the_bound_is_that_of_the_promise_and_no_table_is_called_anonymous(release, tmp_path):
    statement(release, tmp_path / "s.md")
    text = (tmp_path / "s.md").read_text()
    assert text.startswith("# Why a person cannot be found again: Visits &lt;b&gt;\n")
    guess = math.e / (1 + math.e)  # of randomised response with epsilon 1
    assert f"right with probability at most **{guess:.1%}**" in text
    contents = math.e**2 / (1 + math.e**2)  # one content goes and another comes: two neighbours
    assert f"right with probability at most **{contents:.1%}**" in text
    assert "now and later, as long as nobody can predict" in text
    assert "epsilon 1 and delta 0." in text
    assert release.digest in text
    assert text.count("TODO") >= 8
    assert "is anonymous" not in text
    assert "This bound is weak" not in text


def test_the_largest_risk_stands_beside_the_threshold_and_is_said_to_be_of_real_rows(release, tmp_path):
    risks = Risks(500, 500, 500, ("a",), (), ATTACKS)
    (tmp_path / "attacks.json").write_text(risks.to_json())
    statement(release, tmp_path / "s.md", attacks=tmp_path / "attacks.json")
    text = (tmp_path / "s.md").read_text()
    section = text.partition("## 5.")[2].partition("## 6.")[0]
    worst = ATTACKS["infer a"]
    assert "keep this section in the office" in section
    assert "at most 0.09" in section
    assert f"largest one is {worst.value:.1%}" in section.replace("\n", " ")
    assert section.index("infer a") < section.index("link two halves")
    assert "A LEAK" in section


def test_a_weak_promise_is_called_weak(tmp_path):
    model = PrivSyn(8.0, 1e-6, SCHEMA).fit(TABLE)
    statement(model, tmp_path / "s.md")
    text = (tmp_path / "s.md").read_text()
    assert "**This bound is weak.**" in text
    assert f"at most **{NormalDist().cdf(model.ledger_.mu):.1%}**" in text


def test_without_a_promise_or_with_another_file_there_is_no_statement(release, tmp_path):
    with refuses("NOT PRIVATE, so there is nothing to state"):
        statement(PrivSyn(1.0, 1e-6, SCHEMA, seed=0).fit(TABLE), tmp_path / "s.md")
    (tmp_path / "scores.json").write_text(json.dumps({"attacks": {}}))
    with refuses("has no results of attacks"):
        statement(release, tmp_path / "s.md", attacks=tmp_path / "scores.json")
    assert not (tmp_path / "s.md").exists()


def test_the_command_writes_a_draft(release, tmp_path, capsys):
    release.save(tmp_path / "m.privsyn")
    assert main(["statement", str(tmp_path / "m.privsyn"), str(tmp_path / "s.md")]) == 0
    assert "complete the lines with TODO" in capsys.readouterr().out
    assert main(["statement", str(tmp_path / "m.privsyn"), str(tmp_path / "s.md")]) == 2
