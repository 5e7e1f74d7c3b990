"""``python -m mutations [word ...]``: plant each bug in a tree of its own and see the tests fail.

First the tests must pass on a clean copy of the package. That run also compiles everything once: the trees of
the bugs are hard links to the clean copy, compiled code included; only the files with the bug are new. Each
run is a fork of this process, which has imported the libraries. A bug whose place is not found is an error:
it would be "caught" by nothing. So is a bug that crashes: it would be caught by any test. With words, only
the bugs whose name or functions contain all of them are planted.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mutations.edits import edited
from mutations.planted import BUGS, Bug

ROOT = Path(__file__).parents[2]
PARALLEL = 2
LONGEST = 300  # seconds: a hang is no catch
CLEAN = 1800  # seconds for all tests together, with compiling
PASSED, FAILED = 0, 1  # what pytest exits with
# Of a run that took too long, a bug that is no code, and one without a place
HUNG, CRASHED, LOST = (-1, -2, -3)
CRASHES = re.compile(r" - (?:Name|UnboundLocal|Attribute|Import|ModuleNotFound|Syntax|Type)Error\b")
LIBRARIES = (
    *(
        "jsonschema",
        "mpmath",
        "networkx",
        "numba",
        "pandas",
        "pyarrow.compute",
        "pyarrow.csv",
        "pyarrow.parquet",
    ),
    *("pytest", "scipy.optimize", "scipy.stats", "sklearn.ensemble", "typer.main", "yaml"),
)
SETTINGS = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "COLUMNS": "1000",  # pytest cuts its lines, and with them the kind of error
}


class Task(NamedTuple):
    """Tests to run in a tree, for at most `longest` seconds."""

    tree: Path
    tests: Sequence[str]
    longest: float = LONGEST
    options: tuple[str, ...] = ("--hypothesis-profile=thorough",)


def main(words: Sequence[str] = ()) -> int:
    """Plant all bugs, two at a time, and count those that are caught."""
    bugs = [bug for bug in BUGS if all(word in bug.name or word in str(bug.edits) for word in words)]
    tests = sorted({test for bug in bugs for test in bug.tests})
    os.environ |= SETTINGS
    for library in LIBRARIES:
        importlib.import_module(library)
    with tempfile.TemporaryDirectory() as folder:
        clean = Path(folder) / "clean"
        copy(clean)
        parts = filter(None, (tests[start::PARALLEL] for start in range(PARALLEL)))
        for _, (code, first) in run(Task(clean, part, CLEAN, ()) for part in parts):
            if code != PASSED:
                sys.stdout.write(
                    f"without any bug the tests fail (pytest exits {code}, {first}): fix that first\n"
                )
                return 1

        caught: list[bool] = []

        def trees() -> Iterator[Task]:
            for number, bug in enumerate(bugs):
                tree = Path(folder) / str(number)
                copy(tree, clean, os.link)
                try:
                    plant(bug, tree)
                except LookupError as lost:
                    caught.append(_told(bug, LOST, str(lost)))
                else:
                    yield Task(tree, bug.tests)

        for task, (code, first) in run(trees()):
            caught.append(_told(bugs[int(task.tree.name)], code, first))
            shutil.rmtree(task.tree)
    sys.stdout.write(f"{sum(caught)}/{len(bugs)} caught\n")
    return 0 if all(caught) else 1


def copy(tree: Path, source: Path = ROOT, how: Callable[[str, str], object] = shutil.copy2) -> None:
    """Copy or link the package, its tests and their settings, with whatever was compiled of them."""
    tree.mkdir()
    for name in ("privsyn", "tests"):
        shutil.copytree(source / name, tree / name, copy_function=how)
    how(str(source / "pyproject.toml"), str(tree / "pyproject.toml"))


def plant(bug: Bug, tree: Path) -> None:
    """Write a bug into a tree, in new files; a ``LookupError`` if its place is not there exactly once."""
    for edit in bug.edits:
        path, name = found(edit.where, tree)
        text = edited(path.read_text(encoding="utf-8"), name, edit.old, edit.new)
        path.unlink()  # the file may be a link: what it leads to stays as it is
        path.write_text(text + "\n", encoding="utf-8")


def found(where: str, tree: Path) -> tuple[Path, str]:
    """Return the file of the longest part of a dotted name that is a module, and the rest of the name."""
    parts = where.split(".")
    for size in range(len(parts), 0, -1):
        path = tree.joinpath(*parts[:size]).with_suffix(".py")
        if path.is_file():
            return path, ".".join(parts[size:])
    raise LookupError(f"there is no module of {where}")


def run(tasks: Iterable[Task]) -> Iterator[tuple[Task, tuple[int, str]]]:
    """Yield, for each task, the exit code of pytest and the first test that failed: `PARALLEL` at a time."""
    waiting, running = iter(tasks), dict[int, tuple[Task, float]]()
    while True:
        while len(running) < PARALLEL and (task := next(waiting, None)) is not None:
            running[_fork(task)] = task, time.monotonic() + task.longest
        if not running:
            return
        for process, (task, end) in list(running.items()):
            ended, status = os.waitpid(process, os.WNOHANG)
            is_late = time.monotonic() > end
            if ended or is_late:
                del running[process]
                with suppress(ProcessLookupError):
                    os.killpg(process, signal.SIGKILL)  # and what the tests started
                yield task, _ended(task, status) if ended else (HUNG, f"not done after {task.longest} s")
        time.sleep(0.02)


def _fork(task: Task) -> int:
    """Run tests in a fork of this process, and return its number."""
    output = _output(task)
    if process := os.fork():
        return process
    code = CRASHED
    try:
        os.setsid()
        with output.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.chdir(task.tree)
        trees = [str(task.tree), str(task.tree / "tests")]
        sys.path[:] = [
            *trees,
            *(path for path in sys.path if not Path(path or ".").is_relative_to(ROOT) or ".venv" in path),
        ]
        os.environ["PYTHONPATH"] = os.pathsep.join(trees)
        import pytest

        code = pytest.main(["-qxp", "no:cacheprovider", *task.options, *task.tests])
        sys.stdout.flush()
    finally:
        os._exit(code)


def _output(task: Task) -> Path:
    return task.tree.with_name(f"{task.tree.name}-{hash(task.tests[0])}.txt")


def _ended(task: Task, status: int) -> tuple[int, str]:
    failed = re.search(r"^(?:FAILED|ERROR) (.*)", _output(task).read_text(errors="replace"), re.MULTILINE)
    return os.waitstatus_to_exitcode(status), failed[1] if failed else "no test failed"


def _told(bug: Bug, code: int, first: str) -> bool:
    """Whether a bug was caught, after saying so."""
    verdicts = {FAILED: "caught", PASSED: "MISSED", HUNG: "HUNG", LOST: "NOT FOUND"}
    verdict = verdicts.get(code, f"BROKEN (pytest exits {code})")
    if code == FAILED and CRASHES.search(first):
        code, verdict = CRASHED, "CRASHED"
    sys.stdout.write(f"{verdict}: {bug.name}\n        {first}\n")
    sys.stdout.flush()
    return code == FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
