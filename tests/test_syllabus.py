"""Each of the 33 tasks of docs/differential-privacy.md runs, and prints what stands beside it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from fences import blocks_of
from test_every_page_runs import programs, without_numbers  # noqa: F401  a fixture

PAGE = Path(__file__).parents[1] / "docs" / "differential-privacy.md"
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| (.+?) \| (.*?) ?\|$", re.M)
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))
TOLERANCE = 0.02
"""Relative difference of a number from the one on the page. Draws of noise are on 10,000, with sigma 6."""


def test_there_are_33_tasks():
    assert [int(number) for number, *_ in ROWS] == [*range(1, 34)]


@pytest.fixture(scope="module")
def names():
    """The names of the block that the lines need."""
    (setup,) = (block for block in blocks_of(PAGE) if block.title == "setup.py")
    scope = {}
    exec(compile(setup.text, "setup.py", "exec"), scope)  # noqa: S102 - our own page
    return scope


def typed(cell):
    """The code of a cell."""
    return re.fullmatch(r"`(.*)`", cell)[1]


def rows(*, commands):
    return [
        pytest.param(typed(line), typed(output), id=f"{number} {title}")
        for number, title, line, output in ROWS
        if line.startswith("`$ ") == commands
    ]


def is_like(shown, printed):
    """Return whether a text is the one shown, but for noise and rounding in its numbers."""
    (words, numbers), (printed_words, printed_numbers) = without_numbers(shown), without_numbers(printed)
    return words == printed_words and printed_numbers == pytest.approx(numbers, rel=TOLERANCE)


def plainly(value):
    """Return the text of a value with four digits of each number."""
    text = re.sub(r"np\.\w+\((.*?)\)", r"\1", repr(value))
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: str(float(f"{float(number[0]):.4g}")), text)


@pytest.mark.filterwarnings("default")  # a table is fitted several times
@pytest.mark.parametrize(("line", "output"), rows(commands=False))
def test_a_line_has_the_value_beside_it(line, output, names):
    assert is_like(output, plainly(eval(line, names)))  # noqa: S307 - our own page


@pytest.mark.slow("each case")
@pytest.mark.parametrize(("line", "output"), rows(commands=True))
def test_a_command_prints_the_line_beside_it(line, output, programs, tmp_path):  # noqa: F811
    for block in blocks_of(PAGE):
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    root, path = str(PAGE.parents[1]), os.environ["PATH"]
    imported = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{path}", "PYTHONPATH": imported}
    is_of_source = "experiments/" in line  # a command for the source folder, with packages for development
    if is_of_source:
        pytest.importorskip("phe")
    ran = subprocess.run(
        shlex.split(line.removeprefix("$ ")),
        cwd=root if is_of_source else tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert any(is_like(output, printed) for printed in ran.stdout.splitlines()), ran.stdout
