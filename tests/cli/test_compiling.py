"""The first run compiles loops in two processes, and says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from privsyn.cli.common import compiling


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """The commands of the second processes; compiled loops are kept in an empty folder."""
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: commands.append(command))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return commands


def test_a_second_process_compiles_if_no_loop_is_compiled_yet(begun, tmp_path):
    compiling.begin()
    assert begun == [[sys.executable, "-m", "privsyn.cli.common.compiling"]]
    kept = tmp_path / "synthesis_1"
    kept.mkdir()
    (kept / "_kernels.resample-85.py311.nbi").touch()
    compiling.begin()
    assert len(begun) == 1


def test_nothing_begins_if_compiled_loops_would_be_kept_elsewhere(begun, monkeypatch):
    """Each run would start a process that finds all loops compiled."""
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(compiling.os, "access", lambda *_: False)
    compiling.begin()
    assert not begun


@pytest.mark.slow
def test_the_first_run_finds_what_the_second_process_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    subprocess.run([sys.executable, "-m", "privsyn.cli.common.compiling"], check=True)
    names = {path.name.split("-")[0].removeprefix("_kernels.") for path in Path(tmp_path).rglob("*.nbi")}
    assert names == {loop.__name__ for loop, _ in compiling.loops()}
