"""The budget file: two lines a run, the first before any question; what was spent; damage; two at once."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from command import forkserver
from refusals import refuses
from test_progress import RUNS, each_run

from privsyn import InputError, PrivSyn
from privsyn.account import account
from privsyn.account.account import Account, summary, withdraw
from privsyn.account.budget_file import Run, Spent, beside, name_of, runs_in, spent
from privsyn.account.policy import Policy
from privsyn.private.ledger import Ledger
from privsyn.private.run_ledger import RunLedger
from privsyn.private.spend import QueryLog

BEGINS = ["begins", "epsilon", "delta", "unit", "seeded", "data", "out", "policy", "when", "by", "version"]


def run(epsilon=1.0, delta=1e-9, unit=None, *, seeded=False):
    return Run(epsilon, delta, unit, seeded, "people.csv", "made.csv")


def ledger(of):
    rows = None if of.unit is None else 3
    promise = (of.epsilon, of.delta, "gaussian" if of.delta else "pure")
    return RunLedger(
        (),
        *promise,
        "entropy",
        not of.seeded,
        (),
        unit=of.unit,
        rows_per_unit=rows,
        root=of.root,
        other_roots=tuple(of.other_roots.items()),
    )


def recorded(path, *runs, policy=None):
    """Record runs that end."""
    for each in runs:
        account = Account(path, each, policy)
        account.begin()
        account.end(ledger(each))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "people.csv.budget.jsonl"


def test_where_files_cannot_be_locked_no_run_begins(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows
    with refuses("on Windows: WSL"):
        recorded(path, run())


def test_a_run_is_two_lines_and_only_its_user_can_read_them(path):
    of = run()
    recorded(path, of)
    begins, ends = map(json.loads, path.read_text().splitlines())
    assert list(begins) == BEGINS
    assert begins["begins"] == ends["ends"] == of.id
    assert ends == {"ends": of.id, "ledger": ledger(of).to_dict()}
    assert begins["by"].count("@") == 1
    assert time.strptime(begins["when"], "%Y-%m-%dT%H:%M:%SZ")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert runs_in(path)[0].ledger == ledger(of)


def test_what_runs_spent_is_what_their_ledgers_promise_together(path):
    recorded(path, run(1.0), run(0.5))
    joint = Ledger.compose([ledger(run(1.0)), ledger(run(0.5))])
    assert spent(path) == {"one row": Spent(2, joint.epsilon, joint.delta, 0)}
    assert joint.epsilon < 1.2
    assert summary(path)[-1].endswith(": epsilon 1.107 at delta 2e-09, 2 releases")  # rounded up


def test_a_run_that_did_not_end_counts_in_full(path):
    recorded(path, run(1.0))
    Account(path, run(0.5)).begin()
    assert spent(path) == {"one row": Spent(2, 1.5, 2e-9, 0, 1)}
    assert "it did not end, or is at work: counts in full" in summary(path)[1]


def test_seeded_runs_and_other_units_are_apart(path):
    recorded(path, run(1.0), run(2.0, seeded=True), run(0.5, unit="who"), run(4.0, seeded=True, unit="who"))
    assert spent(path) == {"one row": Spent(1, 1.0, 1e-9, 1), "all rows of one 'who'": Spent(1, 0.5, 1e-9, 1)}
    assert "NOT PRIVATE: the run had a seed" in summary(path)[1]
    assert summary(path)[-1] == (
        "spent on this table so far: for one row: epsilon 1 at delta 1e-09, 1 release; NOT PRIVATE: 1 run"
        " with a seed; for all rows of one 'who': epsilon 0.5 at delta 1e-09, 1 release; NOT PRIVATE: 1 run"
        " with a seed"
    )


def test_pure_and_gaussian_runs_compose(path):
    recorded(path, run(1.0), run(0.5, 0.0))
    ((_, found),) = spent(path).items()
    assert (found.epsilon, found.delta) == pytest.approx((1.5, 1e-9), rel=0.1)


def test_no_file_and_an_empty_file_say_that_nothing_was_spent(path):
    assert (spent(path), summary(path)) == ({}, ["spent on this table so far: nothing"])
    path.touch()
    assert (spent(path), summary(path)) == ({}, ["spent on this table so far: nothing"])
    recorded(path, run())
    assert summary(path)[-1].endswith(": epsilon 1 at delta 1e-09, 1 release")


# --- withdrawal --------------------------------------------------------------------------------------------


def test_a_withdrawn_run_counts_as_before_and_is_shown_as_withdrawn(path):
    """Also a run that did not end, or is at work and ends later."""
    first, second = run(1.0), run(0.5)
    recorded(path, first)
    account = Account(path, second)
    account.begin()
    before, content = spent(path), path.read_bytes()
    withdraw(path, first.id, "the consent of a school was missing")
    withdraw(path, second.id[:12], "a bug in the schema")
    assert spent(path) == before
    assert path.read_bytes().startswith(content)  # only appended to
    lines = summary(path)
    assert lines[-1].endswith("2 releases, 1 of them without an end, counted in full")
    for line, of, reason in zip(lines, (first, second), ("the consent of a", "a bug in"), strict=False):
        withdrawal = next(each.withdrawal for each in runs_in(path) if each.id == of.id)
        assert line.startswith(f"{of.id} {of.when} {of.by}: epsilon ")
        assert f"; WITHDRAWN {withdrawal.when} by {withdrawal.by}: {reason}" in line
    plain = json.loads(path.read_text().splitlines()[3])
    assert list(plain) == ["withdraws", "reason", "when", "by"]
    assert time.strptime(plain["when"], "%Y-%m-%dT%H:%M:%SZ")
    account.end(ledger(second))
    assert [each.withdrawal is None for each in runs_in(path)] == [False, False]
    joint = Ledger.compose([ledger(first), ledger(second)])
    assert spent(path) == {"one row": Spent(2, joint.epsilon, joint.delta, 0)}


def test_a_policy_gives_nothing_back_for_a_withdrawn_run(path, tmp_path):
    of, policy = run(1.0), Policy(tmp_path / "policy.yaml", 1.5, 1e-5)
    recorded(path, of)
    withdraw(path, of.id, "an error")
    with pytest.raises(InputError, match=r"and 0\.5 is left"):
        Account(path, run(1.0), policy).check()


def test_a_withdrawal_of_no_run_of_several_or_of_one_twice_is_refused_and_changes_nothing(path):
    first, second = (replace(run(), id=name) for name in ("ab01", "ab02"))
    recorded(path, first, second)
    withdraw(path, "ab01", "an error")
    content = path.read_bytes()
    for name, words in {
        "ab": "2 runs begin with 'ab'",
        "ff": "no run has the id 'ff'",
        "": "no run has the id ''",
        "ab01": "ab01 is withdrawn already: WITHDRAWN ",
    }.items():
        with pytest.raises(InputError, match=words):
            withdraw(path, name, "an error")
    with pytest.raises(InputError, match="--reason: say why"):
        withdraw(path, "ab02", " ")
    assert path.read_bytes() == content
    with pytest.raises(InputError, match="No such file"):
        withdraw(path.with_name("none.jsonl"), "ab01", "an error")


# --- damage ------------------------------------------------------------------------------------------------


def plain(**changed):
    return json.dumps(run().to_plain() | changed)


DAMAGES = {
    "no JSON": "spent: 1",
    "a list": "[]",
    "no run": "{}",
    "epsilon is text": plain(epsilon="1"),
    "epsilon is nothing": plain(epsilon=0),
    "epsilon is no number": plain(epsilon=float("nan")),
    "delta is all": plain(delta=1),
    "who is a number": plain(by=3),
    "seeded is a number": plain(seeded=0),
    "another key": plain(rows=300),
    "a key is missing": json.dumps({key: value for key, value in run().to_plain().items() if key != "by"}),
    "an end without a beginning": json.dumps({"ends": "x", "ledger": ledger(run()).to_dict()}),
    "a byte that is no text": "\udcff",
    **{
        f"a withdrawal: {what}": json.dumps(
            {"withdraws": "THE RUN", "reason": "r", "when": "w", "by": "b"} | changed
        )
        for what, changed in {
            "of no run": {"withdraws": "x"},
            "another key": {"rows": 3},
            "no reason": {"reason": " "},
            "a reason that is a number": {"reason": 3},
        }.items()
    },
    "a withdrawal by nobody": json.dumps({"withdraws": "THE RUN", "reason": "r", "when": "w"}),
}


@pytest.mark.parametrize("line", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_refused_in_one_line_and_left_as_it_is(line, path):
    of = run()
    recorded(path, of)
    line = line.replace("THE RUN", of.id).encode(errors="surrogateescape")
    content = path.read_bytes() + line + b"\n" + plain().encode() + b"\n"
    path.write_bytes(content)
    account = Account(path, run())
    for act in (lambda: spent(path), lambda: summary(path), account.check, account.begin):
        with refuses(r"people\.csv\.budget\.jsonl: line 3 is damaged"):
            act()
    assert path.read_bytes() == content


def test_a_ledger_of_another_run_and_a_second_beginning_or_end_are_damage(path):
    recorded(path, run())
    begins, ends = path.read_text().splitlines()
    of = run(2.0)
    first = json.dumps(of.to_plain())
    other = json.dumps({"ends": of.id, "ledger": ledger(run(0.1)).to_dict()})
    for lines in ([first, other], [begins, ends, begins], [begins, ends, ends]):
        path.write_text("".join(f"{line}\n" for line in lines))
        with pytest.raises(InputError, match=f"line {len(lines)} is damaged"):
            spent(path)


def test_a_second_withdrawal_of_a_run_is_damage(path):
    of = run()
    recorded(path, of)
    withdraw(path, of.id, "an error")
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")
    with pytest.raises(InputError, match="line 4 is damaged"):
        spent(path)


def test_a_line_that_was_cut_is_refused_with_what_to_do(path):
    recorded(path, run())
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"begins": "12')
    with pytest.raises(InputError, match=r"line 3 was not written to its end: .* delete that line"):
        Account(path, run()).begin()
    path.write_bytes(whole)
    recorded(path, run())


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_line_that_cannot_be_written_leaves_the_file_as_it_was(path, failure, monkeypatch):
    """And the run does not begin."""
    recorded(path, run())
    before = path.read_bytes()

    def fail(handle):
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((InputError, KeyboardInterrupt)) as error:
        Account(path, run()).begin()
    assert isinstance(error.value, KeyboardInterrupt) or "No space left on device" in str(error.value)
    assert path.read_bytes() == before


def test_persons_of_linked_tables_and_of_one_table_have_totals_of_their_own(path):
    """Their promises do not add up: the rows of one 'who' in one table are not all that a person has."""
    recorded(path, run(1.0, unit="who"))
    recorded(path, replace(run(0.5, unit="who"), root="people"))
    recorded(path, replace(run(2.0, unit="who"), root="people", other_roots={"staff": "id"}))
    people = "all rows of 'people' with one 'who', and all rows that lead to them"
    staff = "all rows of 'staff' with one 'id', and all rows that lead to them, but not what other rows say"
    assert {kind: each.epsilon for kind, each in spent(path).items()} == {
        "all rows of one 'who'": 1.0,
        people: 0.5,
        f"{people}; or {staff} of them": 2.0,
    }


def test_a_file_that_was_deleted_gets_no_end(path):
    account = Account(path, run())
    account.begin()
    path.unlink()
    with pytest.raises(InputError, match="No such file"):
        account.end(ledger(account.run))
    assert not path.exists()


# --- before the first question -----------------------------------------------------------------------------


@pytest.mark.slow
@each_run
def test_a_run_begins_on_the_disk_before_its_first_question_and_its_ledger_fits(
    table, settings, path, monkeypatch
):
    """Of one table, persons, and linked tables: what begins is what the ledger promises."""
    database = settings["schema"] if hasattr(settings["schema"], "tables") else None
    unit = settings.get("unit") if database is None else database.tables[database.root].key
    root = None if database is None else database.root
    account, lines = Account(path, replace(run(1.0, 1e-6, unit), root=root)), []
    charge = QueryLog.charge

    def charged(*arguments, **options):
        lines.append(path.read_text().count("\n"))
        return charge(*arguments, **options)

    monkeypatch.setattr(QueryLog, "charge", charged)
    model = PrivSyn(1.0, 1e-6, progress=account.watch(None), **settings).fit(table)
    assert set(lines) == {1}
    account.end(model.ledger_)
    assert runs_in(path)[0].ledger == model.ledger_
    assert account.so_far == f"{path}: {summary(path)[-1]}"


def test_nothing_is_recorded_without_a_file_and_progress_goes_on():
    account = Account(None, run())
    account.check()
    account.end(ledger(account.run))
    assert account.watch(None) is None
    assert account.watch(print) is print
    assert account.so_far == ""


def test_a_refusal_at_measuring_asks_nothing(path, tmp_path):
    """A run at once has used up the budget since the check."""
    table, settings = RUNS["one table"]
    policy = Policy(tmp_path / "policy.yaml", 1.5, 1e-5)
    account = Account(path, run(1.0, 1e-6), policy)
    account.check()
    recorded(path, run(1.0, 1e-6))
    steps = []

    def report(stage, done, total):
        steps.append(stage)

    with pytest.raises(InputError, match=r"allows epsilon 1\.5 in all, and 0\.5 is left"):
        PrivSyn(1.0, 1e-6, progress=account.watch(report), **settings).fit(table)
    assert steps == ["reading", "reading", "measuring"]  # it is reported first: who stops there counts it
    assert len(runs_in(path)) == 1


# --- two at once -------------------------------------------------------------------------------------------


def begin_slowly(path, barrier, results):
    """Try to begin a run, and let others try between the check and the line."""
    check = Policy.check

    def slow(self, *runs):
        check(self, *runs)
        time.sleep(0.1)

    Policy.check = slow
    barrier.wait(60)
    try:
        Account(path, run(1.0), Policy(Path("policy.yaml"), 3.0, 1.0e-3)).begin()
    except InputError as error:
        results.put(str(error))
    else:
        results.put("")


@pytest.mark.slow
def test_of_processes_at_once_no_more_begin_than_the_policy_allows(path):
    context = forkserver("privsyn.account.account")
    results, barrier = context.Queue(), context.Barrier(6)
    processes = [context.Process(target=begin_slowly, args=(path, barrier, results)) for _ in range(6)]
    for process in processes:
        process.start()
    said = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
    assert said.count("") == 3
    assert all("no more can be released" in text for text in said if text)
    assert spent(path) == {"one row": Spent(3, 3.0, pytest.approx(3e-9), 0, 3)}


def test_a_line_that_is_being_written_is_not_read_in_part(path):
    recorded(path, run())
    done, seen = path.read_bytes(), []
    with account._locked(path, os.O_APPEND) as file:
        file.write(b'{"begins"')
        reader = Thread(target=lambda: seen.append(spent(path)))
        reader.start()
        reader.join(0.2)
        assert not seen
        file.truncate(len(done))
    reader.join(60)
    assert seen == [{"one row": Spent(1, 1.0, 1e-9, 0)}]


# --- places ------------------------------------------------------------------------------------------------


def test_the_file_is_beside_the_table_the_database_or_the_folder(tmp_path, monkeypatch):
    (tmp_path / "tables").mkdir()
    (tmp_path / "link.csv").symlink_to("tables/people.csv")
    for data, place in {
        "people.csv": "people.csv.budget.jsonl",
        "shop.duckdb::orders": "shop.duckdb.budget.jsonl",
        "shop.duckdb::select * from 'a/b'": "shop.duckdb.budget.jsonl",
        "shop.sqlite": "shop.sqlite.budget.jsonl",
        "tables": "tables.budget.jsonl",
        "link.csv": "tables/people.csv.budget.jsonl",
    }.items():
        assert beside(tmp_path / data) == tmp_path / place
    monkeypatch.chdir(tmp_path / "tables")
    assert beside(Path()) == tmp_path / "tables.budget.jsonl"
    assert name_of(Path()) == "tables"


def test_a_user_without_a_name_is_a_number(path, monkeypatch):
    def nobody():
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nobody)
    recorded(path, run())
    assert runs_in(path)[0].by.startswith(f"{os.getuid()}@")
