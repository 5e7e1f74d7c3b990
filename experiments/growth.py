"""How time and memory of a fit grow with rows and with columns. The numbers are in docs/performance.md.

    python experiments/growth.py --scratch FOLDER [--rows 10000,...] [--columns 10,...]

Tables are those of `python -m benchmarks wide`. Each is fitted from Parquet in a process of its own, with its
schema and at most 2 GB, at epsilon 1. An exponent is the slope of the logarithms over the larger half of the
runs. There, what does not grow (imports, compiled code) matters least. A finished run is not made again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import yaml
from runs import Row, markdown, resumed, write_section

ROOT = Path(__file__).parents[1]
CSV = Path(__file__).with_suffix(".csv")
COLUMNS, ROWS = 20, 50_000
"""Columns of the tables that grow in rows, and rows of those that grow in columns."""

HEADS = ("rows", "columns", "time", "processor time", "peak memory", "time of reading the file")
GB = 1e9 / 1024  # KiB, the unit of ru_maxrss


def describe(table: Path) -> None:
    """Print a schema of the table as YAML, and the seconds of reading it, in a process that may grow."""
    first = next(pq.ParquetFile(table).iter_batches(200_000)).to_pandas()
    listed = {
        name: {"kind": "categorical", "values": sorted(first[name].unique()), "nullable": False}
        for name in first
    }
    begun = time.perf_counter()
    for batch in pq.ParquetFile(table).iter_batches():
        del batch
    sys.stdout.write(yaml.safe_dump({"columns": listed, "seconds": time.perf_counter() - begun}))


def make(case: Row, scratch: Path) -> Row:
    """Make a table, fit it and delete it. Return time and memory of the process, and the time of reading."""
    table, schema = scratch / "growth.parquet", scratch / "growth.yaml"

    def run(*words: str | Path) -> str:
        return subprocess.run(
            [sys.executable, *words], check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True
        ).stdout

    run("-m", "benchmarks", "wide", str(case["columns"]), str(case["rows"]), table)
    described = yaml.safe_load(run(__file__, "--describe", table))
    schema.write_text(yaml.safe_dump({"columns": described["columns"]}))
    begun = time.perf_counter()
    fit = [sys.executable, "-m", "benchmarks", "fit", table, "--schema", schema]
    child = subprocess.Popen(fit, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"fit of {case} ended with {child.returncode}")
    table.unlink()
    return {
        "wall": wall,
        "processor": used.ru_utime + used.ru_stime,
        "memory": used.ru_maxrss / GB,
        "reading": described["seconds"],
    }


def exponent(sizes: pd.Series, found: pd.Series) -> float:
    """Return the slope of log(found) over log(size) in the larger half of the runs."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes.to_numpy()[half:]), np.log(found.to_numpy()[half:]), 1)[0])


def series(found: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the runs that grow in rows and those that grow in columns, smallest first."""
    grown = {
        "rows": found[found["columns"] == COLUMNS],
        "columns": found[(found["rows"] == ROWS) & (found["columns"] != COLUMNS)],
    }
    return {size: runs.sort_values(size) for size, runs in grown.items()}


def section(rows_of_runs: pd.DataFrame) -> str:
    """Return the tables of runs and of exponents."""
    lines = [
        [
            f"{run.rows:,}",
            f"{run.columns:,}",
            f"{run.wall:.1f} s",
            f"{run.processor:.1f} s",
            f"{run.memory:.2f} GB",
            f"{run.reading:.2f} s",
        ]
        for runs in series(rows_of_runs).values()
        for run in runs.itertuples()
    ]
    exponents = [
        [size, *(f"{exponent(runs[size], runs[kind]):.2f}" for kind in ("processor", "memory"))]
        for size, runs in series(rows_of_runs).items()
    ]
    grows = markdown(("grows in", "exponent of processor time", "exponent of memory"), exponents)
    return f"{markdown(HEADS, lines)}\n{grows}"


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    numbers = {"type": lambda text: [int(part) for part in text.split(",")]}
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--describe", type=Path, help="used by the script itself")
    parser.add_argument("--rows", default=[10**k for k in range(4, 9)], **numbers)
    parser.add_argument("--columns", default=[10, 30, 100, 300, 1000], **numbers)
    settings = parser.parse_args()
    if settings.describe is not None:
        describe(settings.describe)
        return
    tables = [{"rows": n, "columns": COLUMNS} for n in settings.rows]
    tables += [{"rows": ROWS, "columns": d} for d in settings.columns]
    rows = resumed(CSV, tables, lambda case: [make(case, settings.scratch)])
    write_section("performance.md", "growth", section(rows))


if __name__ == "__main__":
    main()
