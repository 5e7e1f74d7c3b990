"""Compare what two commits make of the same tables, byte by byte: `make same BASE=commit`.

A change of structure must change no result. The seeded runs of runs.py are done with both commits, on this
machine and with the same packages, and all files are compared. Bytes may differ between processors and
between versions of packages: the results of the other commit are kept in .same until the folder is deleted.
With words, only the runs are done whose names contain one of them: `RUNS="linked identifiers"`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections import defaultdict
from pathlib import Path
from shutil import rmtree

ROOT = Path(__file__).parents[2]
OUT = ROOT / ".same"
SHOWN = 6
"""Runs that are named for each file that differs."""


def main(base: str, *words: str) -> int:
    """Do the runs with a commit and with this checkout, and return 1 if a file differs."""
    commit = git("rev-parse", "--short", f"{base}^{{commit}}").decode().strip()
    folders = OUT / f"results-{commit}", OUT / "results"
    rmtree(folders[1], ignore_errors=True)
    runs = [
        start(checkout, folder, words)
        for checkout, folder in zip((checkout_of(commit), ROOT), folders, strict=True)
    ]
    if any(run.wait() for run in runs):
        return 1
    before, after = map(files, folders)
    if words:
        done = {path.partition("/")[0] for path in after}
        before = {path: content for path, content in before.items() if path.partition("/")[0] in done}
    differ = defaultdict(list)
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            run, _, name = path.partition("/")
            differ[name].append(run)
    sys.stdout.write(f"{len(before)} files of {commit}, {len(after)} of this checkout\n")
    for name, found in differ.items():
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        sys.stdout.write(f"{name} differs in {', '.join(found[:SHOWN])}{more}\n")
    sys.stdout.write(f"they differ: diff -r {folders[0]} {folders[1]}\n" if differ else "all are equal\n")
    return int(bool(differ))


def git(*words: str) -> bytes:
    """Return what git prints."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout


def checkout_of(commit: str) -> Path:
    """Return a folder with the files of a commit."""
    folder = OUT / commit
    if not folder.exists():
        folder.mkdir(parents=True)
        subprocess.run(["tar", "-x", "-C", str(folder)], input=git("archive", commit), check=True)
    return folder


def start(checkout: Path, folder: Path, words: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """Start the runs with the package of a checkout, but for those that the folder has."""
    settings = {"PYTHONPATH": str(checkout), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    runs = Path(__file__).with_name("runs.py")
    return subprocess.Popen([sys.executable, str(runs), str(folder), *words], env=os.environ | settings)


def files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of each file, and of each member of a saved model, by run and name."""
    found = {}
    for path in folder.rglob("*.*"):
        name = str(path.relative_to(folder))
        if name.endswith(".budget.jsonl"):  # it says when a run was
            continue
        if path.suffix == ".privsyn":
            with zipfile.ZipFile(path) as archive:
                found |= {f"{name}, {member}": archive.read(member) for member in archive.namelist()}
        else:
            found[name] = path.read_bytes()
    return found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
