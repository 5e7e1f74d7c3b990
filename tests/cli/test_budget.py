"""Each run of `synth` is recorded, or refused before it reads a row; `privsyn budget` says what was spent."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import CANARY, run, run_apart

from privsyn import load
from privsyn.account.account import Account
from privsyn.account.budget_file import Run, Spent, runs_in, spent
from privsyn.private.run_ledger import RunLedger

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


def total(outcome):
    """The sentence on what was spent on the table, which may go on in the next line."""
    lines = outcome.out.splitlines()
    (index,) = [index for index, line in enumerate(lines) if "spent on this table so far" in line]
    is_cut = lines[index].endswith((":", ","))
    return " ".join(line.strip() for line in lines[index : index + 1 + is_cut])


@pytest.mark.slow
def test_a_run_is_recorded_beside_its_table(folder, capsys):
    first = run(capsys, *SYNTH, "--ledger", "ledger.json")
    said = f"{FILE}: spent on this table so far: epsilon 1 at delta 1e-09, 1 release"
    assert total(first) == said
    (only,) = runs_in(FILE)
    assert only.ledger == RunLedger.from_json(Path("ledger.json").read_text())
    assert only.ledger.recorded is True
    assert (only.data, only.out, only.policy) == ("data.csv", "out.csv", None)
    second = run(capsys, *SYNTH, "--force")
    assert total(second).endswith("epsilon 1.408 at delta 2e-09, 2 releases")
    assert CANARY not in FILE.read_text()
    told = run(capsys, "budget", "data.csv")
    assert told.code == 0
    assert len(told.out.splitlines()) == 3
    assert (
        f"{only.id} {only.when} {only.by}: epsilon 1 at delta 1e-09 for one row: data.csv to out.csv\n"
        in told.out
    )


@pytest.mark.slow
def test_a_run_that_is_not_recorded_says_so_in_its_ledger_and_model(folder, capsys):
    pages = ("--public-report", "public.html", "--sheet", "sheet.md")
    files = ("--ledger", "ledger.json", "--model", "m.privsyn", *pages)
    done = run(capsys, *SYNTH, "--no-budget", *files)
    assert (done.code, FILE.exists()) == (0, False)
    assert "NOT RECORDED in a budget file" in done.out
    for ledger in (RunLedger.from_json(Path("ledger.json").read_text()), load("m.privsyn").ledger):
        assert ledger.recorded is False
        assert "NOT RECORDED in a budget file" in str(ledger)
    for page in pages[1::2]:
        assert "NOT RECORDED in a budget file" in Path(page).read_text()
    Path("privsyn.policy.yaml").write_text(POLICY)
    declined = run(capsys, *SYNTH, "--no-budget", "--force")
    assert "privsyn.policy.yaml needs the budget file" in refused(declined)
    both = run(capsys, *SYNTH, "--no-budget", "--budget", "b.jsonl", "--force")
    assert "exclude each other" in refused(both)


def test_where_nothing_can_be_written_beside_the_table_one_line_says_what_to_do(folder, capsys, monkeypatch):
    Path("private").mkdir()
    Path("data.csv").rename("private/data.csv")
    temporary = tempfile.TemporaryFile

    def denied(*arguments, **options):
        if Path(options["dir"]).name == "private":
            raise PermissionError(13, "Permission denied")
        return temporary(*arguments, **options)

    monkeypatch.setattr("tempfile.TemporaryFile", denied)
    said = refused(run(capsys, "synth", "private/data.csv", "out.csv", *SETTINGS))
    assert "give --budget FILE in another folder, or --no-budget to keep none" in said
    Path("private/privsyn.policy.yaml").write_text(POLICY)
    said = refused(run(capsys, "synth", "private/data.csv", "out.csv", *SETTINGS))
    assert "privsyn.policy.yaml needs the budget file there: make the folder writable" in said
    Path("private/privsyn.policy.yaml").unlink()
    elsewhere = ("synth", "private/data.csv", "out.csv", *SETTINGS, "--budget", "b.jsonl")
    assert run(capsys, *elsewhere).code == 0
    assert len(runs_in(Path("b.jsonl"))) == 1
    assert [path.name for path in Path("private").iterdir()] == ["data.csv"]
    assert "there is no such file" in refused(run(capsys, "synth", "none/data.csv", "new.csv", *SETTINGS))


@pytest.mark.slow
def test_a_file_elsewhere_is_used_from_then_on(folder, capsys):
    Path("central").mkdir()
    assert run(capsys, *SYNTH, "--budget", "central/b.jsonl").code == 0
    assert json.loads(FILE.read_text()) == {"kept_in": str(folder / "central" / "b.jsonl")}
    assert run(capsys, *SYNTH, "--force").code == 0
    assert len(runs_in(Path("central/b.jsonl"))) == 2
    assert "2 releases" in run(capsys, "budget", "data.csv").out
    other = refused(run(capsys, *SYNTH, "--force", "--budget", "new.jsonl"))
    assert "central/b.jsonl: leave out --budget" in other
    Path("central/b.jsonl").rename("central/moved.jsonl")
    assert "which is not there: restore it" in refused(run(capsys, *SYNTH, "--force"))


WAYS = {
    "budget file beside the policy": (
        ("t.csv", "--policy", "p/privsyn.policy.yaml", "--budget", "p/t.csv.budget.jsonl"),
        ("t.csv", "--policy", "p/privsyn.policy.yaml"),
    ),
    "the other way round": (
        ("t.csv", "--policy", "p/privsyn.policy.yaml"),
        ("t.csv", "--policy", "p/privsyn.policy.yaml", "--budget", "p/t.csv.budget.jsonl"),
    ),
    "a copy of the policy": (
        ("t.csv", "--policy", "p/privsyn.policy.yaml", "--budget", "p/t.csv.budget.jsonl"),
        ("t.csv", "--policy", "q/copy.yaml", "--budget", "q/t.csv.budget.jsonl"),
    ),
    "a copy of the policy, without a budget file": (
        ("t.csv", "--policy", "p/privsyn.policy.yaml", "--budget", "p/t.csv.budget.jsonl"),
        ("t.csv", "--policy", "q/copy.yaml"),
    ),
    "a symbolic link to the table": (
        ("t.csv", "--policy", "p/privsyn.policy.yaml", "--budget", "p/t.csv.budget.jsonl"),
        ("q/link.csv", "--policy", "p/privsyn.policy.yaml"),
    ),
    "a linked folder": (
        ("t.csv", "--policy", "p/privsyn.policy.yaml"),
        ("linked/t.csv", "--policy", "p/privsyn.policy.yaml"),
    ),
    "a relative path": (
        ("p/../t.csv", "--policy", "p/privsyn.policy.yaml"),
        ("t.csv", "--policy", "q/../p/privsyn.policy.yaml"),
    ),
    "a run before there was a policy": (("t.csv",), ("t.csv", "--policy", "p/privsyn.policy.yaml")),
    "a table of a database": (
        ("shop.sqlite::t", "--policy", "p/privsyn.policy.yaml", "--budget", "p/shop.sqlite.budget.jsonl"),
        ("shop.sqlite", "--policy", "p/privsyn.policy.yaml"),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_two_runs_do_not_both_pass_where_one_may(folder, capsys, way):
    Path("p").mkdir()
    Path("q").mkdir()
    Path("linked").symlink_to(folder, target_is_directory=True)
    Path("data.csv").rename("t.csv")
    Path("q/link.csv").symlink_to(folder / "t.csv")
    with closing(sqlite3.connect("shop.sqlite")) as base:
        pd.read_csv("t.csv").to_sql("t", base, index=False)
    for place in ("p/privsyn.policy.yaml", "q/copy.yaml"):
        Path(place).write_text("epsilon: 1\ndelta: 1e-8\n")
    first, second = WAYS[way]
    assert run(capsys, "synth", first[0], "a.csv", *SETTINGS, *first[1:]).code == 0
    done = run(capsys, "synth", second[0], "b.csv", *SETTINGS, *second[1:])
    assert (done.code, Path("b.csv").exists()) == (2, False)


def test_runs_in_both_places_are_added_up(folder, capsys):
    """As an older version may have left them."""
    Path("p").mkdir()
    Path("p/privsyn.policy.yaml").write_text(POLICY)
    for place in (FILE, Path("p", FILE)):
        Account(place, Run(1.0, 1e-9, None, False, "data.csv", "out.csv")).begin()
    done = run(capsys, *SYNTH, "--policy", "p/privsyn.policy.yaml")
    assert "allows epsilon 2 in all, and 0 is left" in refused(done)
    told = run(capsys, "budget", "data.csv", "--policy", "p/privsyn.policy.yaml")
    assert "epsilon 2 at delta 2e-09, 2 releases" in told.out


def test_the_command_needs_a_table_or_its_file(folder, capsys):
    assert refused(run(capsys, "budget", "nothing.duckdb::orders")) == (
        "privsyn: nothing.duckdb::orders: there is no such table, and nothing.duckdb.budget.jsonl was never"
        " begun: check the name\n"
    )
    assert run(capsys, "budget", "data.csv").out.splitlines() == [
        "data.csv.budget.jsonl: there is no such file, so nothing was recorded; `privsyn synth` begins one",
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
from privsyn.methods import run_of_tables as run
run.learn_table = lambda *arguments, **options: os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_run_that_is_killed_counts_in_full(folder, capsys):
    killed = run_apart(*SYNTH, "--budget", FILE, before=KILLED)
    assert killed.code == -signal.SIGKILL
    assert not Path("out.csv").exists()
    assert spent(FILE) == {"one row": Spent(1, 1.0, 1e-9, 0, 1)}
    said = total(run(capsys, *SYNTH))
    # The sum of both promises
    assert said.endswith("2 at delta 2e-09, 2 releases, 1 of them without an end, counted in full")
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
    Path("out.csv").unlink()
    FILE.rename("limits/data.csv.budget.jsonl")
    elsewhere = (*SYNTH, "--budget", "limits/data.csv.budget.jsonl")
    assert "privsyn.policy.yaml needs the budget file beside the table" in refused(run(capsys, *elsewhere))
    Path("privsyn.policy.yaml").rename("limits/privsyn.policy.yaml")  # as of an upload
    given = ("--policy", "limits/privsyn.policy.yaml")
    assert run(capsys, *elsewhere, *given).code == 0
    assert "runs on this table are recorded in" in refused(
        run(capsys, *SYNTH, *given, "--budget", "new.jsonl")
    )


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
        "folder.jsonl": "folder.jsonl: is a folder or device, not a file",
    }.items():
        Path("folder.jsonl").mkdir(exist_ok=True)
        assert words in refused(run(capsys, *SYNTH, "--budget", name))
    both = run(capsys, *SYNTH, "--budget", "b.jsonl", "--ledger", "b.jsonl")
    assert "--ledger b.jsonl: is the budget file too: give it a name of its own" in refused(both)
    FILE.touch()
    other = refused(run(capsys, *SYNTH, "--budget", "b.jsonl"))
    assert f"are recorded in {FILE}: leave out --budget" in other
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
    said = total(run(capsys, *SYNTH, "--seed", 1, "--budget", FILE))
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
    homes = pd.DataFrame({"home": range(1000), "region": rng.choice(["n", "s"], 1000)})
    homes.to_csv(tmp_path / "in" / "homes.csv", index=False)
    trips = pd.DataFrame({"home": np.repeat(range(1000), 2), "km": rng.integers(0, 10, 2000)})
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
    assert total(done) == (
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
    persons = (*one, "privsyn.policy.yaml", "--unit", "home", "--rows-per-unit", 2)
    mixed = refused(run(capsys, *persons))  # the rows of the folder are these
    assert "a run before protects all rows of 'homes' with one 'home'" in mixed
    Path("in.budget.jsonl").rename("before.jsonl")
    assert run(capsys, *persons).code == 0
    assert run(capsys, *persons, "--identifiers", "--force").code == 0
    assert [each.unit for each in runs_in(Path("in/trips.csv.budget.jsonl"))] == ["home", "home"]
    assert "2 releases" in run(capsys, "budget", "in").out
    assert "a run before protects" in refused(run(capsys, *linked[:2], "new", *linked[3:]))


def test_randomised_columns_spend_nothing_and_beside_others_no_policy_counts_them(folder, capsys):
    Path("answers.csv").write_text("smokes,age\n" + "yes,1\nno,2\n" * 200)
    smokes = "smokes: {kind: categorical, values: ['no', 'yes'], nullable: false, keep: 0.75}"
    age = "age: {kind: numerical, low: 0, high: 9, integer: true}"
    Path("some.yaml").write_text(f"columns: {{{smokes}, {age}}}")
    Path("all.yaml").write_text(f"columns: {{{smokes}}}")
    Path("privsyn.policy.yaml").write_text(POLICY)
    some = ("synth", "answers.csv", "out.csv", "--epsilon", 1, "--schema", "some.yaml")
    assert "does not count columns that respondents randomised" in refused(run(capsys, *some))
    Path("linked.yaml").write_text(f"tables: {{homes: {{key: home, columns: {{{smokes}}}}}}}")
    linked = ("synth", "in", "made", "--epsilon", 1, "--schema", "linked.yaml")
    assert "does not count columns that respondents randomised" in refused(run(capsys, *linked))
    pd.read_csv("answers.csv")[["smokes"]].to_csv("answers.csv", index=False)
    alone = ("synth", "answers.csv", "out.csv", "--schema", "all.yaml")
    assert run(capsys, *alone).code == 0
    assert not Path("answers.csv.budget.jsonl").exists()
    assert "nothing is asked, so nothing is spent" in refused(run(capsys, *alone, "--budget", "a.jsonl"))


def test_what_a_run_begins_with_depends_on_no_row(folder, capsys, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    lines = []
    for rows in (300, 150):
        pd.read_csv("data.csv")[:rows].to_csv("data.csv", index=False)
        assert run(capsys, *SYNTH, "--force").code == 0
        begins, ends = map(json.loads, FILE.read_text().splitlines())
        lines.append({**begins, "when": ""})
        assert list(ends) == ["ends", "ledger"]
        FILE.unlink()
    assert lines[0] == lines[1]
