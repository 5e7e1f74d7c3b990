"""``python -m mutations``: plant each bug in a copy of the package and see the tests fail.

First the tests must pass on an untouched copy. A bug whose place is no longer found is an error: it would be
"caught" by nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutations.planted import BUGS, Bug

ROOT = Path(__file__).parents[2]
LONGEST = 300  # seconds: a hang is no catch
PASSED, FAILED = 0, 1  # what pytest exits with; anything else is a mistake of ours


def main() -> int:
    """Plant all bugs, two at a time, and count those that are caught."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        tests = tuple(sorted({test for bug in BUGS for test in bug.tests}))
        code, first = _run(Path(folder) / "untouched", None, tests)
        if code != PASSED:
            sys.stdout.write(
                f"without any bug the tests fail (pytest exits {code}, {first}): mend that first\n"
            )
            return 1
        places = [Path(folder) / str(number) for number in range(len(BUGS))]
        ends = list(pool.map(_run, places, BUGS, [bug.tests for bug in BUGS]))
    for bug, (code, first) in zip(BUGS, ends, strict=True):
        verdict = {FAILED: "caught", PASSED: "MISSED"}.get(code, f"BROKEN (pytest exits {code})")
        sys.stdout.write(f"{verdict}: {bug.name}\n        {first}\n")
    caught = [code for code, _ in ends].count(FAILED)
    sys.stdout.write(f"{caught}/{len(BUGS)} caught\n")
    return 0 if caught == len(BUGS) else 1


def plant(bug: Bug, root: Path) -> None:
    """Write a bug into the copy at `root`; a ``LookupError`` if its place is not there exactly once."""
    for edit in bug.edits:
        path = root / edit.file
        text = path.read_text(encoding="utf-8")
        if text.count(edit.old) != 1:
            raise LookupError(f"{bug.name}: found {text.count(edit.old)} times in {edit.file}: {edit.old!r}")
        path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")


def copy(root: Path) -> None:
    """The package, its tests and their settings."""
    root.mkdir()
    leave = shutil.ignore_patterns("__pycache__")
    for name in ("privsyn", "tests"):
        shutil.copytree(ROOT / name, root / name, ignore=leave)
    for name in ("pyproject.toml",):
        shutil.copy(ROOT / name, root)


def _run(root: Path, bug: Bug | None, tests: tuple[str, ...]) -> tuple[int, str]:
    """The exit code of pytest on a copy with the bug in it, and the first test that failed."""
    copy(root)
    if bug is not None:
        plant(bug, root)
    command = [sys.executable, "-m", "pytest", "-qxp", "no:cacheprovider", *tests]
    paths = os.pathsep.join(map(str, (root, root / "tests")))
    environment = os.environ | {
        "PYTHONPATH": paths,
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST
        )
    finally:
        shutil.rmtree(root)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return done.returncode, failed[1] if failed else "no test failed"


if __name__ == "__main__":
    sys.exit(main())
