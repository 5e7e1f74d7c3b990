"""The first run compiles loops in two processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import run
from hospital import SCHEMA

from privsyn.cli.common import compiling
from privsyn.cli.common.compiling import compile_ahead, loops_compiled_ahead

COMMAND = [sys.executable, "-P", "-m", "privsyn.cli.common.compiling"]


class Second:
    """A second process that has ended."""

    commands: list[list[str]]

    def __init__(self, command, **_):
        self.commands.append(command)

    def wait(self):
        return 0


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """The commands of the second processes; the code and its compiled loops are in an empty folder."""
    code = tmp_path / "privsyn" / "synthesis" / "_kernels.py"
    code.parent.mkdir(parents=True)
    code.touch()
    os.utime(code, (1000, 1000))
    monkeypatch.setattr(Second, "commands", [], raising=False)
    monkeypatch.setattr(subprocess, "Popen", Second)
    monkeypatch.setattr(compiling, "__file__", str(tmp_path / "privsyn" / "cli" / "common" / "compiling.py"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    return Second.commands


@pytest.mark.parametrize("given", [True, False])
def test_a_second_process_compiles_unless_newer_loops_than_the_code_are_kept(
    begun, tmp_path, monkeypatch, given
):
    folder = tmp_path / "kept" / "synthesis_1" if given else tmp_path / "privsyn/synthesis/__pycache__"
    folder.mkdir(parents=True)
    if given:
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    compile_ahead()
    assert begun == [COMMAND]
    index = folder / "_kernels.resample-85.py311.nbi"
    index.touch()
    os.utime(index, (999, 999))  # of an older version
    compile_ahead()
    assert len(begun) == 2
    os.utime(index, (1001, 1001))
    compile_ahead()
    assert len(begun) == 2


def test_nothing_begins_if_compiled_loops_would_be_kept_elsewhere(begun, monkeypatch):
    """Each run would start a process that finds all loops compiled."""
    monkeypatch.setattr(compiling.os, "access", lambda *_: False)
    compile_ahead()
    assert not begun


def test_a_run_goes_on_if_no_second_process_can_be_started(begun, monkeypatch):
    asked = []

    def refuse(command, **_):
        asked.append(command)
        raise BlockingIOError

    monkeypatch.setattr(subprocess, "Popen", refuse)
    compile_ahead()
    assert asked == [COMMAND]


def test_a_run_goes_on_if_the_code_is_in_no_folder(begun, tmp_path, monkeypatch):
    """Such as in a zip file."""
    monkeypatch.setattr(compiling, "__file__", str(tmp_path / "app.zip/privsyn/cli/common/compiling.py"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compile_ahead()
    assert not begun


@pytest.mark.parametrize("arguments", [("synth", "none.csv", "out.csv", "--epsilon", 1), ("app", "none")])
def test_the_commands_that_fit_compile_ahead(arguments, folder, capsys, monkeypatch):
    called = []
    monkeypatch.setattr(compiling, "compile_ahead", lambda: called.append(1))
    assert run(capsys, *arguments).code == 2
    assert called == [1]


@pytest.mark.slow
def test_the_second_process_keeps_each_of_its_loops_and_imports_nothing_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    (tmp_path / "random.py").write_text("raise SystemExit(1)")
    subprocess.run(COMMAND, check=True, cwd=tmp_path)
    names = {path.name.split("-")[0].removeprefix("_kernels.") for path in Path(tmp_path).rglob("*.nbi")}
    assert names == {loop.__name__ for loop, _ in loops_compiled_ahead()}
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("they are kept already"))
    compile_ahead()


LATER = """
import sys
sys.path.append({tests!r})
from numba.core import event
import privsyn
import hospital
from privsyn.cli.survey import survey

class Compiling(event.Listener):
    def on_start(self, event):
        print("compiles", event.data)
    def on_end(self, event):
        pass

with event.install_listener("numba:compile", Compiling()):
    privsyn.PrivSyn(1.0, target="happy", seed=1).fit(survey()).sample()
    privsyn.PrivSyn.paper(1.0, seed=1).fit(survey()).sample()
    tables = hospital.hospital(200)
    tables.pop("drugs").to_csv("drugs.csv", index=False)
    privsyn.PrivSyn(9.0, schema="hospital.yaml", seed=1).fit(tables).sample()
"""


@pytest.mark.slow
def test_after_the_command_no_run_compiles_anything(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    program = [sys.executable, "-W", "ignore"]
    ran = subprocess.run(
        [*program, "-m", "privsyn", "compile"], env=environment, capture_output=True, text=True, check=True
    )
    assert re.fullmatch(rf"{tmp_path / 'kept'}: \d\d compiled loops, in \d+ s\n", ran.stdout)
    (tmp_path / "hospital.yaml").write_text(SCHEMA)
    code = LATER.format(tests=str(Path(__file__).parents[1]))
    later = subprocess.run(
        [*program, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (later.returncode, later.stdout) == (0, ""), later.stderr
