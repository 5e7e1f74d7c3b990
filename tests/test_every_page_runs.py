"""Every command and every example of every page runs, in order, in a folder that was empty before.

A reader has nothing but what the page says. So each page runs in an empty folder, block by block:

- `python` is executed; with `>>>` it is a doctest. A `text` block behind it is what it prints.
- `console` has commands behind `$`. What stands below one is what it prints: `...` stands for any lines.
  Numbers may differ as much as noise makes them. If the last line begins with `privsyn: `, it is refused.
- `bash` is a script.
- Any block with `title="FILE"` is a file that the reader writes. Other `yaml` and `json` is part of one.
- `text` and `sql` are for reading. `r` is run by tests/test_r.py, where R is installed.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import yaml
from fences import Block, blocks_of
from threadpoolctl import threadpool_limits

from privsyn.account import budget_file
from privsyn.cli.main import main
from privsyn.private import randomness

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])
LANGUAGES = {"python", "console", "bash", "yaml", "json", "text", "sql", "r"}
QUICK = {"local.md", "privacy.md"}

INSTALLS = re.compile(r"(python -m )?pip install ")  # tests/test_wheel.py installs what is published
CANNOT_RUN = {
    "SparkSession": "needs a Spark session: tests/table/io/test_spark_source.py has the same",
    "privsyn app": "serves a page until it is closed: tests/app starts it",
    "privsyn reconstruct --people 512": "solves linear programmes for half a minute; with 128 people it runs",
    "docker ": "needs Docker, and the network",
    "make wheelhouse": "downloads with the network: tests/test_package.py has the rest of it",
    "pipx ": "needs pipx, and the index",
    "uvx ": "needs uv, and the index",
    "make sbom": "builds what is published, with the network: a step of `make release`",
}
"""What begins a command, or is in an example, that no test can run, and why."""
MEASURED = {"performance.md": "measures tables of up to 100 million rows, for hours, in the source folder"}
"""Pages whose commands repeat measurements."""
PROCESSES = "owners.md"
"""The page whose scripts start processes: tests/owners and tests/collectors have a test of each block."""

ID, TIME, WHO = r"\b[0-9a-f]{16}\b", r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", r"\b[\w.-]+@[\w.-]+"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
TOLERANCE = 0.2
"""Relative difference of a number that is shown from that of a run: noise, and times of machines."""


def commands_of(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command behind a `$`, and the lines that are shown below it."""
    lines = text.replace("\\\n", " ").splitlines()
    begins = [place for place, line in enumerate(lines) if line.startswith("$ ")]
    for place, end in pairwise([*begins, len(lines)]):
        yield lines[place].removeprefix("$ "), lines[place + 1 : end]


def without_numbers(line: str) -> tuple[str, list[float]]:
    """Return a line with marks for what differs from run to run, and its numbers.

    >>> without_numbers("out.csv:  1,200 rows,  epsilon 0.5")
    ('out.csv: # rows, epsilon #', [1200.0, 0.5])
    """
    for pattern, mark in ((ID, "ID"), (TIME, "TIME"), (WHO, "WHO")):
        line = re.sub(pattern, mark, line)
    numbers = [float(number.replace(",", "")) for number in NUMBER.findall(line)]
    return " ".join(NUMBER.sub("#", line).split()), numbers


def is_like(shown: str, said: str) -> bool:
    """Return whether a line is what the page shows, but for noise in its numbers."""
    (words, numbers), (others, found) = without_numbers(shown), without_numbers(said)
    return words == others and all(
        abs(a - b) <= TOLERANCE * max(a, b) + 1e-12 for a, b in zip(numbers, found, strict=True)
    )


def is_shown(shown: list[str], said: list[str]) -> bool:
    """Return whether lines are those that the page shows, where `...` stands for any lines."""
    if not shown:
        return not said
    if shown[0].strip() == "...":
        return any(is_shown(shown[1:], said[skipped:]) for skipped in range(len(said) + 1))
    return bool(said) and is_like(shown[0], said[0]) and is_shown(shown[1:], said[1:])


class Reader:
    """Does what a page says, in the folder where it is."""

    def __init__(self, page: Path, module: ModuleType, programs: Path, capfd: pytest.CaptureFixture[str]):
        self.page, self.names, self.programs, self.capfd = page, module.__dict__, programs, capfd
        self.printed: list[str] = []
        """What the block before printed, if it was Python."""

    def read(self, block: Block) -> None:
        """Do what one block says."""
        where = f"{self.page.name}:{block.line}"
        printed, self.printed = self.printed, []
        if any(mark in block.text for mark in CANNOT_RUN if block.language == "python"):
            return
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            self.printed = self._python(block, where)
        elif block.language == "console":
            for command, shown in commands_of(block.text):
                self._command(command, [line for line in shown if line.strip()], where)
        elif block.language == "bash":
            self._shell(block.text, where)
        elif block.language == "yaml":
            yaml.safe_load(block.text)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "text" and printed:
            shown = [line for line in block.text.splitlines() if line.strip()]
            assert is_shown(shown, printed), f"{where} shows what is not printed:\n" + "\n".join(printed)

    def _python(self, block: Block, where: str) -> list[str]:
        printed = io.StringIO()
        if block.text.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(block.text, self.names, where, where, block.line)
            test.globs = self.names  # else a copy: later blocks would not see what this one assigns
            runner = doctest.DocTestRunner()
            runner.run(test, out=printed.write, clear_globs=False)
            assert not runner.failures, printed.getvalue()
            return []
        with threadpool_limits(1), contextlib.redirect_stdout(printed):
            exec(compile(block.text, where, "exec"), self.names)  # noqa: S102 - our own pages
        return [line for line in printed.getvalue().splitlines() if line.strip()]

    def _command(self, command: str, shown: list[str], where: str) -> None:
        if INSTALLS.match(command) or command.startswith(tuple(CANNOT_RUN)) or self.page.name in MEASURED:
            return
        refused = bool(shown) and shown[-1].startswith("privsyn: ")
        said = (
            self._privsyn(command, refused, where)
            if self._is_simple(command)
            else self._shell(command, where)
        )
        said = [line for line in said if line.strip()]
        assert not shown or is_shown(shown, said), f"{where}: {command}: does not print this:\n" + "\n".join(
            said
        )

    @staticmethod
    def _is_simple(command: str) -> bool:
        return command.startswith("privsyn ") and not re.search(r"[|<>;&{]", command.partition("#")[0])

    def _privsyn(self, command: str, refused: bool, where: str) -> list[str]:
        self.capfd.readouterr()
        code = main(shlex.split(command, comments=True)[1:])
        out, err = self.capfd.readouterr()
        assert code == 2 * refused, f"{where}: {command}: exit status {code}\n{out}{err}"
        return (out + err).splitlines()

    def _shell(self, script: str, where: str) -> list[str]:
        path = os.pathsep.join([str(self.programs), os.environ["PATH"]])
        python = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PATH": path, "PYTHONPATH": python}
        ran = subprocess.run(
            ["bash", "-e", "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert ran.returncode == 0, (
            f"{where}: {script}: exit status {ran.returncode}\n{ran.stdout}{ran.stderr}"
        )
        return (ran.stdout + ran.stderr).splitlines()


@pytest.fixture
def programs(tmp_path):
    """A folder with the commands `privsyn` and `python` of this environment."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, typed in (("python", ""), ("privsyn", " -m privsyn")):
        (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{typed} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def same_noise(monkeypatch):
    """The same noise in each run, so that what a page shows is compared with one run and not with chance."""
    stream = np.random.default_rng(0)
    monkeypatch.setattr(randomness, "os", SimpleNamespace(urandom=stream.bytes))
    monkeypatch.setattr(np.random.bit_generator, "randbits", lambda k: int.from_bytes(stream.bytes(k // 8)))


def cases() -> list:
    """Return all pages with blocks. Those that take long are slow."""
    slow = pytest.mark.slow("each case")
    pages = [page for page in PAGES if blocks_of(page) and page.name != PROCESSES]
    return [pytest.param(page, id=page.name, marks=() if page.name in QUICK else slow) for page in pages]


@pytest.mark.filterwarnings("default")  # of other packages, in code that is not ours
@pytest.mark.parametrize("page", cases())
@pytest.mark.usefixtures("same_noise")
def test_a_page_runs_as_it_is_written(page, module, programs, tmp_path, monkeypatch, capfd):
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    ids = iter(dict.fromkeys(re.findall(ID, page.read_text(encoding="utf-8"))))
    secrets = SimpleNamespace(token_hex=lambda size: next(ids, "0" * 2 * size))
    monkeypatch.setattr(budget_file, "secrets", secrets)
    reader = Reader(page, module, programs, capfd)
    for block in blocks_of(page):
        reader.read(block)


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("same_noise")
def test_the_page_for_engineers_says_whether_to_train(module, programs, tmp_path, monkeypatch, capfd):
    """Before, the useful table of the page was called useless. The whole page is slow."""
    page = ROOT / "docs" / "engineer.md"
    monkeypatch.chdir(tmp_path)
    fitted, *blocks = (block for block in blocks_of(page) if block.language == "python")
    reader = Reader(page, module, programs, capfd)
    for block in (fitted, *(block for block in blocks if "sweep(model, " in block.text)):
        reader.read(block)
    expected = module.expected
    assert not expected.useless
    assert expected.score_low <= expected.score <= expected.score_high


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page):
    """So that no command is left out, because it looks like an output."""
    typed = re.compile(r"^(\$ |privsyn [a-z-]+ [^A-Z\[]*$)", re.M)
    for block in blocks_of(page):
        where = f"{page.name}:{block.line}"
        assert block.language in LANGUAGES, where
        assert "=" not in block.title, f"{where}: {block.title}"
        assert block.language != "text" or not typed.search(block.text), where
        assert block.language != "console" or block.text.startswith("$ "), where
    assert page.read_text(encoding="utf-8").count("```") == 2 * len(blocks_of(page))


@pytest.mark.parametrize("mark", CANNOT_RUN)
def test_what_cannot_run_is_on_a_page(mark):
    """A reason that no page needs any more goes."""
    assert any(mark in block.text for page in PAGES for block in blocks_of(page))


def test_what_is_shown_is_compared():
    said = [
        "out.csv: 1,203 rows",
        "spent: epsilon 0.6346",
        "5c0f3a9e77d2b164 2026-11-26T15:55:19Z me@here: done",
    ]
    assert is_shown(["out.csv: 1,190 rows", "...", "0000000000000000 2020-01-01T00:00:00Z a@b: done"], said)
    assert not is_shown(["out.csv: 1,190 rows"], said)  # the rest is missing
    assert not is_shown(["...", "spent: epsilon 1.9", "..."], said)
    assert not is_shown(["out.csv: 1,203 records", "..."], said)
