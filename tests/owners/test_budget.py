"""`privsyn owner` records its run beside its own table, once if it is resumed, and obeys a policy."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run
from owners.meeting import CrashError, Meeting, met, together
from owners.test_processes import SCHEMA
from owners.test_rounds import table

from privsyn.account.budget_file import runs_in
from privsyn.cli.main import main
from privsyn.private.run_ledger import RunLedger

PEERS = "localhost:7000,localhost:7001,localhost:7002"
POLICY = "epsilon: 1\ndelta: 1e-8\ncontact: Anna\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three tables, each in a folder of its own with a policy."""
    monkeypatch.chdir(tmp_path)
    Path("schema.yaml").write_text(SCHEMA)
    for party in range(3):
        Path(str(party)).mkdir()
        table(party, 300).drop(columns="who").to_csv(f"{party}/t.csv", index=False)
        Path(f"{party}/privsyn.policy.yaml").write_text(POLICY)
    return tmp_path


def command(party, *further):
    words = (
        f"owner {party}/t.csv --schema schema.yaml --party {party} --peers {PEERS} --model {party}.privsyn"
    )
    return [*words.split(), "--epsilon", "1", "--ledger", f"{party}.json", *further]


def recorded(party):
    return runs_in(Path(f"{party}/t.csv.budget.jsonl"))


@pytest.mark.slow
@pytest.mark.parametrize("crash", [None, (1, 7, "after")])
def test_each_owner_records_its_run_once_also_if_it_is_resumed(folder, capsys, crash):
    def owner(party):
        code = main(command(party))
        if code and not Path(f"{party}.privsyn").exists():
            raise CrashError  # the same command again
        return code

    assert together(Meeting(3, crash), owner) == [0, 0, 0]
    assert len({Path(f"{party}.privsyn").read_bytes() for party in range(3)}) == 1
    for party in range(3):
        (only,) = recorded(party)
        assert (only.epsilon, only.data, only.out) == (1.0, "t.csv", f"{party}.privsyn")
        assert only.ledger is not None
        assert RunLedger.from_json(Path(f"{party}.json").read_text()).recorded is True
    with met(Meeting(3)):
        assert "exists already" in run(capsys, *command(1)).err
        assert run(capsys, *command(1, "--force")).code == 0  # all its sums are there: it resumes the run
    assert len(recorded(1)) == 1
    refused = run(capsys, *command(1, "--force", "--folder", "new"))
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "allows epsilon 1 in all, and 0 is left" in refused.err
    assert not Path("new").exists()


def test_a_policy_refuses_an_owner_before_anything_is_made(folder, capsys):
    for wrong in (("--epsilon", "2"), ("--no-budget",), ("--budget", "elsewhere.jsonl")):
        refused = run(capsys, *command(0, *wrong))
        assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert sorted(path.name for path in folder.iterdir()) == ["0", "1", "2", "schema.yaml"]
    assert not recorded(0)


@pytest.mark.slow
def test_an_owner_that_keeps_no_budget_file_has_the_same_model(folder, capsys):
    Path("2/privsyn.policy.yaml").unlink()
    assert (
        together(Meeting(3), lambda party: main(command(party, *["--no-budget"] * (party == 2)))) == [0] * 3
    )
    assert len({Path(f"{party}.privsyn").read_bytes() for party in range(3)}) == 1
    assert not recorded(2)
    assert RunLedger.from_json(Path("2.json").read_text()).recorded is False
    assert "NOT RECORDED" in capsys.readouterr().out
