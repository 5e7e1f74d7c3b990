"""`privsyn randomize`, and `privsyn synth` on what it wrote."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from command import run

from privsyn.private.run_ledger import RunLedger

SCHEMA = """\
columns:
  smokes: {kind: categorical, values: ['no', 'yes'], nullable: false}
  job: {kind: categorical, values: [baker, clerk, miller], nullable: false}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    answers = {"smokes": rng.choice(["no", "yes"], 500), "job": rng.choice(["baker", "clerk"], 500)}
    pd.DataFrame(answers).to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_randomised_table_its_ledger_and_its_schema_are_written(folder, capsys):
    done = run(capsys, "randomize", "data.csv", "sent.csv", "--schema", "schema.yaml", "--keep", ".75")
    assert (done.code, done.err) == (0, "")
    assert "job: keep 0.75 of 3 values: epsilon 2.3026" in done.out
    assert (
        "privacy: epsilon 4.2485 at delta 0 for the randomised cells of one record ('smokes', 'job')"
        in done.out
    )
    ledger = RunLedger.from_json((folder / "sent.csv.ledger.json").read_text())
    assert [promise.column for promise in ledger.local] == ["smokes", "job"]
    before, after = pd.read_csv("data.csv"), pd.read_csv("sent.csv")
    assert after.shape == before.shape
    assert 0.6 < (after == before).to_numpy().mean() < 0.97
    done = run(
        capsys, "synth", "sent.csv", "out.csv", "--schema", "sent.csv.schema.yaml", "--ledger", "l.json"
    )
    assert (done.code, done.err) == (0, "")
    assert "out.csv: 500 rows, 2 columns" in done.out
    assert "that the respondents randomised 'smokes', 'job'" in done.out.replace("\n", " ")
    assert json.loads((folder / "l.json").read_text())["promise"] == {
        "epsilon": ledger.promised_epsilon,
        "delta": 0,
    }


def test_columns_without_keep_stay_unchanged_and_are_named(folder, capsys):
    text = SCHEMA.replace("'yes'], nullable: false", "'yes'], nullable: false, keep: 0.5")
    (folder / "schema.yaml").write_text(text)
    done = run(capsys, "randomize", "data.csv", "sent.parquet", "--schema", "schema.yaml")
    assert done.code == 0
    assert "NOT RANDOMISED, in sent.parquet unchanged: job" in done.out
    assert (
        "privacy: epsilon 1.09861 at delta 0 for the randomised cells of one record ('smokes'),"
        " by the respondents' randomised response; NOT PRIVATE: NOT RANDOMISED, exact: 'job'\n" in done.out
    )
    ledger = json.loads((folder / "sent.parquet.ledger.json").read_text())
    assert (ledger["private"], ledger["local"]["unchanged"]) == (False, ["job"])
    assert pd.read_parquet("sent.parquet")["job"].tolist() == pd.read_csv("data.csv")["job"].tolist()
    done = run(capsys, "synth", "sent.parquet", "out.csv", "--schema", "sent.parquet.schema.yaml")
    assert (done.code, done.err) == (
        2,
        "privsyn: give --epsilon, the privacy budget: column 'job' is not randomised\n",
    )
    done = run(
        capsys, "synth", "sent.parquet", "out.csv", "--schema", "sent.parquet.schema.yaml", "--epsilon", 1
    )
    assert done.code == 0
    assert "randomised by the respondents: epsilon 1.09861 for these cells of one record" in done.out


def test_answers_are_not_randomised_twice_by_mistake(folder, capsys):
    command = ("randomize", "data.csv", "sent.csv", "--schema", "schema.yaml", "--keep", "0.5")
    assert run(capsys, *command).code == 0
    first = (folder / "sent.csv").read_text()
    again = run(capsys, *command)
    assert again.code == 2
    assert "sent.csv: exists already" in again.err
    assert (folder / "sent.csv").read_text() == first
    assert run(capsys, *command, "--force").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--schema", "schema.yaml"), "no column is to be randomised: give keep, such as 0.75"),
        (("--schema", "schema.yaml", "--keep", "1"), "keep is a probability above 0 and below 1"),
        (("--keep", "0.5"), "--schema"),
    ],
)
def test_mistakes_are_one_line_and_leave_no_file(folder, capsys, arguments, message):
    done = run(capsys, "randomize", "data.csv", "sent.csv", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err
    assert sorted(path.name for path in folder.iterdir()) == ["data.csv", "schema.yaml"]
