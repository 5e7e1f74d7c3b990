"""``python -m mutations [word ...]``: plant each bug in a tree of its own and see the tests fail.

First the tests must pass on a clean copy of the package. That run also compiles everything once: the trees of
the bugs are hard links to the clean copy, compiled code included; only the files with the bug are new. A bug
whose place is no longer found is an error: it would be "caught" by nothing. So is a bug that crashes: it
would be caught by any test. With words, only the bugs whose name or files contain all of them are planted.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutations.planted import BUGS, Bug

ROOT = Path(__file__).parents[2]
PARALLEL = 2
LONGEST = 300  # seconds: a hang is no catch
CLEAN = 1800  # seconds for all tests together, with compiling
PASSED, FAILED = 0, 1  # what pytest exits with
HUNG, CRASHED = -1, -2  # what a run that took too long, or a bug that is no code, is given
CRASHES = re.compile(r" - (?:Name|UnboundLocal|Attribute|Import|ModuleNotFound|Syntax|Type)Error\b")


def main(words: Sequence[str] = ()) -> int:
    """Plant all bugs, two at a time, and count those that are caught."""
    bugs = [bug for bug in BUGS if all(word in bug.name or word in str(bug.edits) for word in words)]
    tests = sorted({test for bug in bugs for test in bug.tests})
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(PARALLEL) as pool:
        clean = Path(folder) / "clean"
        copy(clean)
        for code, first in pool.map(run, [clean] * PARALLEL, _shared_out(tests), [CLEAN] * PARALLEL):
            if code != PASSED:
                sys.stdout.write(
                    f"without any bug the tests fail (pytest exits {code}, {first}): fix that first\n"
                )
                return 1

        def caught(bug: Bug) -> tuple[int, str]:
            tree = Path(folder) / str(BUGS.index(bug))
            copy(tree, clean, os.link)
            plant(bug, tree)
            ended = run(tree, bug.tests)
            shutil.rmtree(tree)
            return ended

        ends = [_told(bug, *ended) for bug, ended in zip(bugs, pool.map(caught, bugs), strict=True)]
    sys.stdout.write(f"{sum(ends)}/{len(bugs)} caught\n")
    return 0 if all(ends) else 1


def copy(tree: Path, source: Path = ROOT, how: Callable[[str, str], object] = shutil.copy2) -> None:
    """Copy or link the package, its tests and their settings, with whatever was compiled of them."""
    tree.mkdir()
    for name in ("privsyn", "tests"):
        shutil.copytree(source / name, tree / name, copy_function=how)
    how(str(source / "pyproject.toml"), str(tree / "pyproject.toml"))


def plant(bug: Bug, tree: Path) -> None:
    """Write a bug into a tree, in new files; a ``LookupError`` if its place is not there exactly once."""
    for edit in bug.edits:
        path = tree / edit.file
        text = path.read_text(encoding="utf-8")
        if text.count(edit.old) != 1:
            raise LookupError(f"{bug.name}: found {text.count(edit.old)} times in {edit.file}: {edit.old!r}")
        path.unlink()  # the file may be a link: what it leads to stays as it is
        path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")


def run(tree: Path, tests: Iterable[str], longest: float = LONGEST) -> tuple[int, str]:
    """Return the exit code of pytest in a tree, and the first test that failed; `longest` is in seconds."""
    thorough = "--hypothesis-profile=thorough"
    command = [sys.executable, "-m", "pytest", "-qxp", "no:cacheprovider", thorough, *tests]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, (tree, tree / "tests"))),
        "OPENBLAS_NUM_THREADS": "1",
        "COLUMNS": "1000",  # pytest cuts its lines, and with them the kind of error
    }
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=longest
        )
    except subprocess.TimeoutExpired:
        return HUNG, f"not done after {longest} s"
    failed = re.search(r"^(?:FAILED|ERROR) (.*)", done.stdout, re.MULTILINE)
    return done.returncode, failed[1] if failed else "no test failed"


def _shared_out(tests: Sequence[str]) -> list[Sequence[str]]:
    """The tests in as many parts as there are processes; a part without tests would be all tests."""
    return [tests[start::PARALLEL] or tests for start in range(PARALLEL)]


def _told(bug: Bug, code: int, first: str) -> bool:
    """Whether a bug was caught, after saying so."""
    verdict = {FAILED: "caught", PASSED: "MISSED", HUNG: "HUNG"}.get(code, f"BROKEN (pytest exits {code})")
    if code == FAILED and CRASHES.search(first):
        code, verdict = CRASHED, "CRASHED"
    sys.stdout.write(f"{verdict}: {bug.name}\n        {first}\n")
    sys.stdout.flush()
    return code == FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
