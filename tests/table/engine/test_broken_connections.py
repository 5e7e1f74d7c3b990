"""A PostgreSQL that breaks off at each statement of a run: one line, no cell in it, and one charge a run."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import ibis
import pytest
from command import run
from table.engine.databases import in_postgres, running_postgres
from table.engine.test_aggregates_alone import people

from privsyn.table.engine.engine import FAILED, Engine

YAML = """\
columns:
  age: {kind: numerical, low: 0, high: 99, integer: true}
  sex: {kind: categorical, values: [F, M]}
"""


class Runs:
    """Runs of `privsyn synth` on one table of PostgreSQL, beside one budget file.

    Parameters
    ----------
    connection : ibis backend
    folder : Path
    capsys, patch : fixtures
    """

    def __init__(self, connection, folder, capsys, patch):
        self.connection, self.folder, self.capsys, self.patch = connection, folder, capsys, patch
        in_postgres(connection, people(), "broken")
        (folder / "s.yaml").write_text(YAML)
        self.sent: list[str] = []

    def __call__(self, kill=lambda _: None, at=0):
        """Return the outcome of a run whose server or connection is killed before a statement."""
        run_statement = Engine._result
        self.sent = []

        def breaking(engine, statement):
            self.sent.append(statement)
            if len(self.sent) == at:
                kill(engine._backend.con.info.backend_pid)
            return run_statement(engine, statement)

        url = f"postgres://reader@127.0.0.1:{self.connection.con.info.port}/postgres"
        out = self.folder / "out.parquet"
        options = ("--table", "broken", "--schema", self.folder / "s.yaml", "--epsilon", 1, "--delta", 1e-9)
        options += ("--budget", self.folder / "broken.budget.jsonl", "--force")
        with self.patch.context() as patch:
            patch.setattr(Engine, "_result", breaking)
            return run(self.capsys, "synth", url, out, *options)

    def budget(self):
        """Return what `privsyn budget` shows: the lines of runs, and the total epsilon."""
        *runs, total = run(self.capsys, "budget", self.folder / "broken").out.splitlines()
        return runs, total


@pytest.fixture
def runs(postgres, tmp_path, capsys, monkeypatch):
    return Runs(postgres, tmp_path, capsys, monkeypatch)


def terminated(connection):
    """Return what ends the session of a process of the server."""

    def kill(process):
        connection.con.execute("SELECT pg_terminate_backend(%s, 5000)", [process])

    return kill


def assert_ends_in_one_line(outcome):
    assert outcome.code == 2
    assert outcome.err.splitlines()[-1].endswith(FAILED)
    assert not re.search(r"[FM?]'|privsyn_|Traceback", outcome.err)


@pytest.mark.slow("each case")
def test_a_session_that_ends_at_any_statement_ends_the_run_and_charges_it_once(runs, postgres):
    assert runs().code == 0
    statements = runs.sent
    (runs.folder / "out.parquet").unlink()
    needed = [at for at, text in enumerate(statements, 1) if not text.startswith("DROP")]
    assert len(needed) >= 6
    assert len(needed) < len(statements)  # the last ones only clean up
    for number, at in enumerate(needed, 2):
        assert_ends_in_one_line(runs(terminated(postgres), at))
        assert not (runs.folder / "out.parquet").exists()
        lines, total = runs.budget()
        assert ["it did not end" in line for line in lines] == [False] + [True] * (number - 1)
        assert f"epsilon {number} at delta {number}e-09, {number} releases" in total
    assert runs(terminated(postgres), len(statements)).code == 0
    assert "it did not end" not in runs.budget()[0][-1]


@pytest.mark.slow("each case")
def test_a_server_that_is_stopped_ends_the_run_in_one_line(tmp_path, capsys, monkeypatch):
    with running_postgres() as url:
        if url is None:
            pytest.skip("no PostgreSQL to count in: apt-get install postgresql")
        connection = ibis.connect(url)
        runs = Runs(connection, tmp_path, capsys, monkeypatch)
        (folder,) = connection.con.execute("SHOW data_directory").fetchone()
        server = int((Path(folder) / "postmaster.pid").read_text().split()[0])

        def kill(_):
            os.kill(server, signal.SIGQUIT)  # pg_ctl stop -m immediate

        assert_ends_in_one_line(runs(kill, at=5))
        connection.disconnect()
        lines, total = runs.budget()
        assert "it did not end" in lines[0]
        assert "epsilon 1 at delta 1e-09, 1 release" in total
        assert not (tmp_path / "out.parquet").exists()
