"""How often the error bars of a release hold: writes docs/coverage.md.

    python experiments/coverage.py --folder DATA [--data adult,nltcs,hmeq] [--runs 200] [--eps 1]

Each run has noise of its own. The intervals of all cells of all tables that it measured are looked up in the
true counts, and expected errors are set beside those that came about. Runs that coverage.csv holds already
are not repeated, so that it may be stopped and started again. Seeded, and so NOT PRIVATE.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from tables import Table, add_data_argument, read

from privsyn import PrivSyn, Release

HERE = Path(__file__).parent
PAGE, ROWS = HERE.parent / "docs" / "coverage.md", HERE / "coverage.csv"
DELTA = 1e-9


def run(table: Table, epsilon: float, seed: int) -> Iterator[dict[str, object]]:
    """A row a number of columns: cells, how many intervals hold, errors expected and come about."""
    release = PrivSyn(epsilon, DELTA, table.schema, seed=seed).fit(table.frame).release_
    for order, tables in release.accuracy.tables.groupby("order"):
        cells, held, found = 0, 0, []
        for columns in tables["columns"]:
            counts, true = release.accuracy.counts(*columns), true_counts(release, table.frame, columns)
            cells += len(counts)
            held += int(((counts["low"] <= true) & (true <= counts["high"])).sum())
            found.append((counts["estimate"] - true).abs().sum() / 2 / len(table.frame))
        yield {
            "data": table.name,
            "epsilon": epsilon,
            "seed": seed,
            "columns": order,
            "tables": len(tables),
            "cells": cells,
            "held": held,
            "expected": tables["expected_error"].mean(),
            "found": np.mean(found),
            "version": version("privsyn"),
        }


def true_counts(release: Release, frame: pd.DataFrame, columns: tuple[str, ...]) -> np.ndarray:
    """The real counts of one table's cells, in the codes of the release."""
    merging = release.learnt.merging
    names = list(release.codec.names)
    codes = release.codec.encode(frame).codes
    places = [merging.groups[names.index(name)][codes[:, names.index(name)]] for name in columns]
    shape = merging.merged.project(columns).shape
    return np.bincount(np.ravel_multi_index(places, shape), minlength=int(np.prod(shape)))


def page(rows: pd.DataFrame) -> str:
    """The means as Markdown."""
    lines = []
    for (name, epsilon, order), group in rows.groupby(["data", "epsilon", "columns"], sort=False):
        shares = group["held"] / group["cells"]
        spread = shares.std() / np.sqrt(len(group))
        expected, found = group["expected"].mean(), group["found"].mean()
        lines.append(
            f"| {name} | {epsilon:g} | {order} | {len(group)} | {group['tables'].mean():.0f} |"
            f" {group['held'].sum() / group['cells'].sum():.2%} | {spread:.2%} |"
            f" {expected:.4f} | {found:.4f} | {expected / found:.2f} |"
        )
    head = f"""# Do the error bars hold?

Every release says how far it may be off (`model.accuracy_`). Here its 95 % intervals are looked up in the
true counts of real tables, over many runs with noise of their own: the share that holds, of all cells of all
tables of so many columns, with the standard error of that share (over runs). Beside it stands the total
variation that was expected of the estimates, and that which came about. Intervals come from known noise and
hold 95 times in a hundred whatever the table is like. The expected error comes from a model of the table; the
last column says how far it may be trusted. Tables of three and more columns are measured where they pay, and
expected errors of those are but a rough idea.

What an interval is: it holds the number of real rows in one cell (after clipping, and of the rows that were
kept, where a person may have many), by what was heard of that very table and its noise. It never reaches
below 0 (Feldman and Cousins 1998). The estimate beside it draws on all else that was heard, errs less as a
rule, and may lie outside. Of many cells one in twenty intervals fails. None of it says anything of the chance
that the rows of a synthetic table add. It is arithmetic on released answers and costs no privacy.

delta {DELTA:g}, privsyn {", ".join(sorted(rows["version"].unique()))}; made by

    python experiments/coverage.py --folder DATA

| table | epsilon | columns | runs | tables | intervals that hold | +- | expected | found | expected / found |
|---|---|---|---|---|---|---|---|---|---|
"""
    return head + "\n".join([*lines, ""])


def main() -> None:
    """Run what has not been run, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_argument(parser)
    parser.add_argument("--data", default="adult,nltcs,hmeq")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--eps", default="1")
    parser.add_argument("--rows", type=Path, default=ROWS)
    settings = parser.parse_args()
    rows = pd.read_csv(settings.rows) if settings.rows.exists() else pd.DataFrame()
    done = set() if rows.empty else set(zip(rows["data"], rows["epsilon"], rows["seed"], strict=True))
    for name in settings.data.split(","):
        table = read(settings.folder, name)
        for epsilon in map(float, settings.eps.split(",")):
            for seed in range(settings.runs):
                if (name, epsilon, seed) not in done:
                    rows = pd.concat([rows, pd.DataFrame(run(table, epsilon, seed))], ignore_index=True)
                    rows.to_csv(settings.rows, index=False, float_format="%.6g")
    PAGE.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
