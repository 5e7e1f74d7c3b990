"""Do what a newcomer does with a built file, far from this checkout, and print how long each step takes.

`make release` runs it: `newcomer.py dist/privsyn-*.whl`. A fresh environment, an empty home and no compiled
code; then the ten lines of README.md and its command lines, as they are written. A source distribution is
unpacked first, and some of its own tests run last.
"""

from __future__ import annotations

import csv
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
ROWS = 5_000
SMOKE = ("tests/test_kernels.py", "tests/test_saved_models.py", "tests/test_first_scripts.py")
TESTS_NEED = ("hypothesis", "jsonschema", "networkx", "pytest", "pytest-xdist")


def main() -> None:
    """Go through the steps for each file; a step that fails ends the program."""
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            go_through(Path(name).resolve(), Path(folder))


def go_through(built: Path, folder: Path) -> None:
    """Install one file and follow the page that is in it."""
    home = folder / "home"
    home.mkdir()
    path = f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    here = partial(_timed, env={**kept, "HOME": str(home), "PATH": path})
    sys.stdout.write(f"{built.name}\n")
    here("environment", [sys.executable, "-m", "venv", folder / "venv"], folder)
    if built.suffix == ".whl":
        source, page = folder, ROOT / "README.md"
        here("install", ["pip", "install", "--quiet", f"{built}[demo]"], folder)
    else:
        with tarfile.open(built) as files:
            files.extractall(folder, filter="data")
        (source,) = folder.glob("privsyn-*")
        page = source / "README.md"
        here("install", ["pip", "install", "--quiet", ".[demo]"], source)
    work = folder / "work"
    work.mkdir()
    _adult(work / "adult.csv")
    text = page.read_text(encoding="utf-8")
    lines = re.search(r"^## Ten lines\n.*?^```python\n(.*?)^```", text, re.M | re.S)[1]
    here("ten lines", ["python", "-c", lines], work)
    here("ten lines, again", ["python", "-c", lines], work)
    for typed in re.findall(r"^\$ (privsyn .*)$", text, re.M):
        here(typed.partition(" -")[0], ["sh", "-c", typed], work)
    if source != folder:
        here("install what these tests need", ["pip", "install", "--quiet", *TESTS_NEED], source)
        here("some of its tests", ["python", "-m", "pytest", "-q", *SMOKE], source)


def _timed(step: str, command: list[str | Path], folder: Path, *, env: dict[str, str]) -> None:
    start = time.perf_counter()
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    sys.stdout.write(f"  {time.perf_counter() - start:6.1f} s  {step}\n")
    sys.stdout.flush()
    if ran.returncode:
        sys.exit(f"{ran.stdout}{ran.stderr}")


def _adult(path: Path) -> None:
    """Write random rows with the columns of Adult: the page's `adult.csv` is not ours to give away."""
    columns = yaml.safe_load((ROOT / "datasets" / "adult" / "schema.yaml").read_text())["columns"]
    rng = random.Random(0)  # noqa: S311 - no secret
    draw: list[Callable[[], object]] = [
        partial(rng.choice, column["values"])
        if "values" in column
        else partial(rng.randint, int(column["low"]), int(column["high"]))
        for column in columns.values()
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(columns), *([one() for one in draw] for _ in range(ROWS))])


if __name__ == "__main__":
    main()
