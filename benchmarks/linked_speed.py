"""How time and memory of linked tables grow: processor seconds and peak memory of a fit and of sampling.

    python -m benchmarks.linked_speed                              # all lines of docs/performance.md
    python -m benchmarks.linked_speed --roots 100000 --columns 4

Persons have 10 visits each on average, and visits 3 prescriptions. Half of the columns of a table are texts
and half are numbers, which hang together by a hidden class of each row. Visits have a date too, by which they
are in order. The files, the fit and the sample are each made by a process of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from privsyn import Categorical, Database, Datetime, Numerical, PrivSyn, Schema, Table, load

CLASSES = 6
VALUES = (2, 3, 5, 8)  # of a column of texts
RUNS = ((10_000, 4), (30_000, 4), (100_000, 4), (10_000, 8), (10_000, 16))
"""Numbers of persons, and of columns of each table."""


def kinds(columns: int) -> dict[str, Categorical | Numerical]:
    """Return the columns of a table that every table has."""
    return {
        f"c{j}": Numerical(0, 99, integer=True, nullable=False)
        if j % 2
        else Categorical([f"value {v}" for v in range(VALUES[j // 2 % len(VALUES)])], nullable=False)
        for j in range(columns)
    }


def database(columns: int) -> Database:
    """Return the schema of the three tables."""
    own = kinds(columns)
    date = {"arrived": Datetime("2020-01-01", "2024-12-31", nullable=False)}
    visit = {"key": "visit", "parent": "persons", "link": "person", "order": "arrived"}
    return Database(
        {
            "persons": Table(Schema(own), key="person"),
            "visits": Table(Schema(date | own), **visit),
            "prescriptions": Table(Schema(own), parent="visits", link="visit"),
        }
    )


def make(folder: Path, roots: int, columns: int) -> None:
    """Write the tables."""
    rng = np.random.default_rng(0)

    def below(hidden: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the parents and the hidden classes of the rows below rows of these classes."""
        parents = np.repeat(np.arange(len(hidden)), rng.poisson(rates[hidden]))
        same = rng.random(len(parents)) < 0.7
        return parents, np.where(same, hidden[parents], rng.integers(0, CLASSES, len(parents)))

    def cells(hidden: np.ndarray) -> dict[str, object]:
        found: dict[str, object] = {}
        for j, (name, kind) in enumerate(kinds(columns).items()):
            if isinstance(kind, Categorical):
                shifted = hidden + j + rng.geometric(0.6, len(hidden))
                found[name] = pd.Categorical.from_codes(shifted % len(kind.values), kind.values)
            else:
                found[name] = np.clip(rng.normal(10 + 15 * ((hidden + j) % CLASSES), 12), 0, 99).astype(int)
        return found

    def write(name: str, table: dict[str, object]) -> None:
        pd.DataFrame(table).to_parquet(folder / f"{name}.parquet", index=False, row_group_size=200_000)

    persons = rng.integers(0, CLASSES, roots)
    write("persons", {"person": np.arange(roots), **cells(persons)})
    person, visits = below(persons, np.linspace(5, 15, CLASSES))
    days = rng.exponential(40 + 60 * visits / CLASSES)
    since = pd.Series(days).groupby(person).cumsum().clip(upper=1800)
    arrived = pd.Timestamp("2020-01-01") + pd.to_timedelta(since.round(), "D")
    write("visits", {"person": person, "visit": np.arange(len(person)), "arrived": arrived, **cells(visits)})
    visit, prescriptions = below(visits, np.linspace(1, 5, CLASSES))
    write("prescriptions", {"visit": visit, **cells(prescriptions)})


def fit(folder: Path, columns: int, memory: str) -> None:
    """Fit the tables and save the model beside them."""
    model = PrivSyn(1.0, 1e-9, schema=database(columns), memory=memory, seed=0)
    model.fit(folder / "real").save(folder / "model.privsyn")


def sample(folder: Path) -> None:
    """Write synthetic tables."""
    load(folder / "model.privsyn").sample_into(folder / "made", seed=0, ending=".parquet")


def measured(*words: object) -> tuple[float, float]:
    """Run one step in a process of its own; return its processor seconds and its peak memory in GB."""
    child = subprocess.Popen([sys.executable, "-m", "benchmarks.linked_speed", *map(str, words)])
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{words[0]} ended with {child.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def run(roots: int, columns: int, memory: str, scratch: Path | None) -> None:
    """Make tables, fit them and sample; print a line."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        measured("--step", "make", "--folder", folder, "--roots", roots, "--columns", columns)
        numbers = [
            *measured("--step", "fit", "--folder", folder, "--columns", columns, "--memory", memory),
            *measured("--step", "sample", "--folder", folder),
        ]
    said = "| {:,} | {} | {:.0f} s | {:.2f} GB | {:.0f} s | {:.2f} GB |".format(roots, columns, *numbers)
    print(said, flush=True)  # noqa: T201


def main() -> None:
    """Run all sizes, or one; or one step of a run, as the script itself asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linked_speed", description=__doc__)
    parser.add_argument("--roots", type=int)
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--step", choices=["make", "fit", "sample"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step == "make":
        (given.folder / "real").mkdir()
        make(given.folder / "real", given.roots, given.columns)
    elif given.step == "fit":
        fit(given.folder, given.columns, given.memory)
    elif given.step == "sample":
        sample(given.folder)
    else:
        print("| persons | columns | fit | peak | sample | peak |\n|---|---|---|---|---|---|", flush=True)  # noqa: T201
        for roots, columns in RUNS if given.roots is None else ((given.roots, given.columns),):
            run(roots, columns, given.memory, given.scratch)


if __name__ == "__main__":
    main()
