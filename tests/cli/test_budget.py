"""Each run of `synth` is recorded, or refused before it reads a row; `privsyn budget` says what was spent."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import CANARY, run, run_apart

from privsyn.budget.account import Account
from privsyn.budget.runs import Spent, runs_in, spent
from privsyn.private.ledger import Ledger

SETTINGS = ("--epsilon", 1, "--schema", "schema.yaml")
SYNTH = ("synth", "data.csv", "out.csv", *SETTINGS)
FILE = Path("data.csv.budget.jsonl")
POLICY = "epsilon: 2\ndelta: 1e-8\ncontact: Anna, a@b.org\n"


def refused(outcome):
    """The one line of a run that was refused."""
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("privsyn: ")
    assert outcome.err.count("\n") == 1
    return outcome.err


@pytest.mark.slow
def test_a_run_is_recorded_if_somebody_keeps_a_file(folder, capsys):
    assert run(capsys, *SYNTH).code == 0
    assert not FILE.exists()
    first = run(capsys, *SYNTH, "--budget", FILE, "--ledger", "ledger.json")
    said = f"{FILE}: spent on this table so far: epsilon 1 at delta 1e-09, 1 release"
    assert first.out.splitlines()[-1] == said
    (only,) = runs_in(FILE)
    assert only.ledger == Ledger.from_json(Path("ledger.json").read_text())
    assert (only.data, only.out, only.policy) == ("data.csv", "out.csv", None)
    second = run(capsys, *SYNTH)
    assert second.out.splitlines()[-1].endswith("epsilon 1.408 at delta 2e-09, 2 releases")
    assert CANARY not in FILE.read_text()
    told = run(capsys, "budget", "data.csv")
    assert told.code == 0
    assert len(told.out.splitlines()) == 3
    assert (
        f"{only.id} {only.when} {only.by}: epsilon 1 at delta 1e-09 for one row: data.csv to out.csv\n"
        in told.out
    )


def test_the_command_needs_no_table_and_no_file(folder, capsys):
    told = run(capsys, "budget", "nothing.duckdb::orders")
    assert told.code == 0
    assert told.out.splitlines() == [
        "nothing.duckdb.budget.jsonl: there is no such file, so nothing was recorded; `privsyn synth"
        " --budget` begins one",
        "spent on this table so far: nothing",
    ]
    Path("privsyn.policy.yaml").write_text(POLICY)
    assert run(capsys, "budget", "data.csv").out.splitlines()[2:] == [
        "privsyn.policy.yaml allows epsilon 2 at delta 1e-08 in all: epsilon 2 at delta 1e-08 is left",
        "for more, ask Anna, a@b.org",
    ]
    Path("x.jsonl").write_text("damaged\n")
    assert "x.jsonl: line 1 is damaged" in refused(run(capsys, "budget", "data.csv", "--budget", "x.jsonl"))


def test_a_release_is_withdrawn_by_the_id_of_its_run(folder, capsys):
    assert run(capsys, *SYNTH, "--budget", FILE).code == 0
    (only,) = runs_in(FILE)
    told = run(capsys, "budget", "data.csv")
    assert told.out.split()[0] == only.id
    reason = "ages were\x1b[31m shifted by a year"
    done = run(capsys, "budget", "data.csv", "--withdraw", only.id, "--reason", reason)
    assert (done.code, done.err) == (0, "")
    first, total = done.out.splitlines()
    assert "; WITHDRAWN " in first
    assert r"ages were\x1b[31m shifted by a year" in first
    assert total == told.out.splitlines()[-1]
    assert run(capsys, "budget", "data.csv").out == done.out
    assert "is withdrawn already" in refused(
        run(capsys, "budget", "data.csv", "--withdraw", only.id, "--reason", "again")
    )
    for half in (("--withdraw", only.id), ("--reason", "an error")):
        assert "give both, or neither" in refused(run(capsys, "budget", "data.csv", *half))


KILLED = """
import os, signal
from privsyn import synthesizer
synthesizer.learn_table = lambda *arguments, **options: os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_run_that_is_killed_counts_in_full(folder, capsys):
    killed = run_apart(*SYNTH, "--budget", FILE, before=KILLED)
    assert killed.code == -signal.SIGKILL
    assert not Path("out.csv").exists()
    assert spent(FILE) == {"one row": Spent(1, 1.0, 1e-9, 0, 1)}
    said = run(capsys, *SYNTH).out.splitlines()[-1]
    assert said.endswith(
        "2 at delta 2e-09, 2 releases, 1 of them without an end, counted in full"
    )  # the sum of both promises
    assert "it did not end, or is at work" in run(capsys, "budget", "data.csv").out


def test_a_policy_makes_the_file_and_refuses_a_run_that_exceeds_it(folder, capsys):
    Path("privsyn.policy.yaml").write_text(POLICY)
    assert run(capsys, *SYNTH).code == 0
    (only,) = runs_in(FILE)
    limits = {"epsilon": 2, "delta": 1e-8, "epsilon_of_a_release": None, "unit": None}
    assert only.policy == {**limits, "file": "privsyn.policy.yaml"}
    before = FILE.read_bytes()
    assert refused(run(capsys, "synth", "data.csv", "other.csv", "--epsilon", 1.5)) == (
        "privsyn: privsyn.policy.yaml: allows epsilon 2 in all, and 1 is left: this run asks for 1.5: give"
        " --epsilon 1 or less; or ask Anna, a@b.org\n"
    )
    assert "leave out --seed" in refused(run(capsys, *SYNTH, "--seed", 1))
    assert FILE.read_bytes() == before
    assert not Path("other.csv").exists()


def test_a_policy_is_not_evaded_by_a_new_budget_file(folder, capsys):
    Path("privsyn.policy.yaml").write_text(POLICY)
    Path("limits").mkdir()
    assert run(capsys, *SYNTH, "--budget", FILE).code == 0
    FILE.rename("limits/data.csv.budget.jsonl")
    elsewhere = (*SYNTH, "--budget", "limits/data.csv.budget.jsonl")
    assert "privsyn.policy.yaml needs it beside the table" in refused(run(capsys, *elsewhere))
    Path("privsyn.policy.yaml").rename("limits/privsyn.policy.yaml")  # as of an upload
    given = ("--policy", "limits/privsyn.policy.yaml")
    assert run(capsys, *elsewhere, *given).code == 0
    assert "needs it beside" in refused(run(capsys, *SYNTH, *given, "--budget", "new.jsonl"))


@pytest.mark.parametrize("data", ["data.csv", "nothing.csv", "table.parquet", "shop.duckdb::orders"])
def test_a_policy_refuses_before_anything_is_read(folder, capsys, data):
    """Also where the table cannot be read, or is not there."""
    Path("data.csv").write_bytes(b"\xff\x00")
    Path("table.parquet").write_bytes(b"\xff\x00")
    Path("limits.yaml").write_text("epsilon: 2\ndelta: 1e-8\nepsilon_of_a_release: 0.5\nunit: who\n")
    synth = ("synth", data, "out.csv", "--epsilon", 1, "--policy", "limits.yaml")
    assert "give --unit who" in refused(run(capsys, *synth))
    said = refused(run(capsys, *synth, "--unit", "who"))
    assert "limits.yaml: allows epsilon 0.5 for a release: this run asks for 1: give --epsilon 0.5" in said
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["data.csv", "table.parquet", "limits.yaml", "schema.yaml"]
    )


def test_what_is_refused_after_reading_and_before_measuring_spends_nothing(folder, capsys):
    Path("privsyn.policy.yaml").write_text(POLICY)
    Path("data.csv").write_text('age,job\n1,"open')
    assert run(capsys, *SYNTH).code == 2
    assert not FILE.exists()


def test_the_budget_file_is_no_other_file_and_can_be_written(folder, capsys):
    for name, words in {
        "data.csv": "is JSON Lines: let its name end in .jsonl",
        "none/b.jsonl": "the budget file none/b.jsonl: there is no folder none",
        "folder.jsonl": "folder.jsonl: cannot be read (Is a directory)",
    }.items():
        Path("folder.jsonl").mkdir(exist_ok=True)
        assert words in refused(run(capsys, *SYNTH, "--budget", name))
    both = run(capsys, *SYNTH, "--budget", "b.jsonl", "--ledger", "b.jsonl")
    assert "--ledger b.jsonl: is the budget file too: give it a name of its own" in refused(both)
    FILE.touch()
    other = refused(run(capsys, *SYNTH, "--budget", "b.jsonl"))
    assert f"{FILE} is kept already: leave out --budget" in other
    assert run(capsys, *SYNTH, "--budget", f"./{FILE}").code == 0


def test_a_file_that_cannot_be_written_is_refused_before_any_work(folder, capsys, monkeypatch):
    FILE.touch()
    open_ = os.open

    def denied(path, *arguments, **options):
        if Path(path).name == FILE.name:
            raise PermissionError(13, "Permission denied")
        return open_(path, *arguments, **options)

    monkeypatch.setattr(os, "open", denied)
    said = refused(run(capsys, *SYNTH))
    assert said == f"privsyn: {FILE}: cannot be read and written (Permission denied)\n"


def test_a_damaged_file_is_refused_before_any_work(folder, capsys):
    FILE.write_text("damaged\n")
    assert f"{FILE}: line 1 is damaged" in refused(run(capsys, *SYNTH))
    assert FILE.read_text() == "damaged\n"
    assert not Path("out.csv").exists()


def test_no_result_is_lost_if_the_end_cannot_be_written(folder, capsys, monkeypatch):
    """The run counts in full then."""
    fsync, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) > 2:  # the first line and the name of the file
            monkeypatch.setattr(os, "fsync", fsync)
            raise OSError(28, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", full)
    done = run(capsys, *SYNTH, "--budget", FILE)
    assert done.code == 0
    assert f"privsyn: {FILE}: cannot be read and written (No space left on device)" in done.err
    assert "the run counts in full there" in done.err
    assert len(pd.read_csv("out.csv"))
    assert FILE.read_text().count("\n") == 1
    assert spent(FILE) == {"one row": Spent(1, 1.0, 1e-9, 0, 1)}


def test_a_model_is_kept_before_its_run_is_ended_in_the_file(folder, capsys, monkeypatch):
    """Whoever stops there, where a run may wait for another one, loses a line and no result."""

    def stopped(account, ledger):
        raise KeyboardInterrupt

    monkeypatch.setattr(Account, "end", stopped)
    done = run(capsys, *SYNTH, "--budget", FILE, "--model", "model.privsyn")
    assert done.code == 130
    assert "written: model.privsyn; `privsyn sample model.privsyn OUT`" in done.err
    assert run(capsys, "sample", "model.privsyn", "again.csv").code == 0
    assert spent(FILE) == {"one row": Spent(1, 1.0, 1e-9, 0, 1)}


def test_a_seeded_run_is_recorded_as_not_private(folder, capsys):
    said = run(capsys, *SYNTH, "--seed", 1, "--budget", FILE).out.splitlines()[-1]
    assert said.endswith("so far: epsilon 0 at delta 0, 0 releases; NOT PRIVATE: 1 run with a seed")
    assert json.loads(FILE.read_text().splitlines()[0])["seeded"] is True


def test_a_run_that_is_not_accepted_is_spent_too(folder, capsys):
    Path("criteria.yaml").write_text("criteria: [{margin: [age, pay], error: 0.0001}]\n")
    done = run(capsys, *SYNTH, "--accept", "criteria.yaml", "--budget", FILE)
    assert done.code == 1
    assert f"{FILE}: spent on this table so far: epsilon 1 at delta 1e-09, 1 release" in done.out


@pytest.mark.slow
def test_persons_and_linked_tables_are_recorded_with_what_they_protect(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    (tmp_path / "in").mkdir()
    homes = pd.DataFrame({"home": range(200), "region": rng.choice(["n", "s"], 200)})
    homes.to_csv(tmp_path / "in" / "homes.csv", index=False)
    trips = pd.DataFrame({"home": np.repeat(range(200), 2), "km": rng.integers(0, 10, 400)})
    trips.to_csv(tmp_path / "in" / "trips.csv", index=False)
    trip = "columns: {km: {kind: numerical, low: 0, high: 9, integer: true}}"
    (tmp_path / "one.yaml").write_text(trip)
    home = "columns: {region: {kind: categorical, values: [n, s]}}"
    (tmp_path / "all.yaml").write_text(
        f"tables: {{homes: {{key: home, {home}}}, trips: {{parent: homes, link: home, {trip}}}}}"
    )
    monkeypatch.chdir(tmp_path)
    Path("privsyn.policy.yaml").write_text("epsilon: 2\ndelta: 1e-8\nunit: home\n")
    linked = ("synth", "in", "made", "--epsilon", 1, "--schema", "all.yaml")
    done = run(capsys, *linked)
    assert done.out.splitlines()[-1] == (
        "in.budget.jsonl: spent on this table so far: for all rows of 'homes' with one 'home', and all rows"
        " that lead to them: epsilon 1 at delta 1e-09, 1 release"
    )
    begun = runs_in(Path("in.budget.jsonl"))[0]
    assert (begun.unit, begun.root) == ("home", "homes")
    assert "allows epsilon 2 in all, and 1 is left" in refused(
        run(capsys, "synth", "in", "again", "--epsilon", 1.5, "--schema", "all.yaml")
    )
    assert not Path("again").exists()
    one = ("synth", "in/trips.csv", "out.csv", "--epsilon", 1, "--schema", "one.yaml", "--policy")
    persons = (*one, "privsyn.policy.yaml", "--unit", "home")
    assert run(capsys, *persons).code == 0
    assert run(capsys, *persons, "--identifiers").code == 0
    assert [each.unit for each in runs_in(Path("in/trips.csv.budget.jsonl"))] == ["home", "home"]


def test_randomised_columns_spend_nothing_and_beside_others_no_policy_counts_them(folder, capsys):
    Path("answers.csv").write_text("smokes,age\n" + "yes,1\nno,2\n" * 200)
    smokes = "smokes: {kind: categorical, values: ['no', 'yes'], nullable: false, keep: 0.75}"
    age = "age: {kind: numerical, low: 0, high: 9, integer: true}"
    Path("some.yaml").write_text(f"columns: {{{smokes}, {age}}}")
    Path("all.yaml").write_text(f"columns: {{{smokes}}}")
    Path("privsyn.policy.yaml").write_text(POLICY)
    some = ("synth", "answers.csv", "out.csv", "--epsilon", 1, "--schema", "some.yaml")
    assert "does not count columns that respondents randomised" in refused(run(capsys, *some))
    pd.read_csv("answers.csv")[["smokes"]].to_csv("answers.csv", index=False)
    alone = ("synth", "answers.csv", "out.csv", "--schema", "all.yaml")
    assert run(capsys, *alone).code == 0
    assert not Path("answers.csv.budget.jsonl").exists()
    assert "nothing is asked, so nothing is spent" in refused(run(capsys, *alone, "--budget", "a.jsonl"))


def test_what_a_run_begins_with_depends_on_no_row(folder, capsys, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    lines = []
    for rows in (300, 30):
        pd.read_csv("data.csv")[:rows].to_csv("data.csv", index=False)
        assert run(capsys, *SYNTH, "--budget", FILE).code == 0
        begins, ends = map(json.loads, FILE.read_text().splitlines())
        lines.append({**begins, "when": ""})
        assert list(ends) == ["ends", "ledger"]
        FILE.unlink()
    assert lines[0] == lines[1]
