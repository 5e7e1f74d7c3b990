"""How often the error bars of a release hold: writes docs/coverage.md.

    python experiments/error_bars.py --folder DATA [--data adult,nltcs,hmeq] [--runs 200] [--eps 1]

Each run has noise of its own. The intervals of all cells of all tables that it measured are looked up in the
true counts, and expected errors are set beside those that came about. Runs that error_bars.csv holds already
are not repeated, so that it may be stopped and started again. Seeded, and so NOT PRIVATE.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from runs import DELTA, Row, markdown, parser, resumed
from tables import Table, read

from privsyn import PrivSyn, Release

HERE = Path(__file__).parent
HEADS = (
    "table",
    "epsilon",
    "columns",
    "runs",
    "tables",
    "hold",
    "+-",
    "expected",
    "found",
    "expected / found",
)
PAGE, ROWS = HERE.parent / "docs" / "coverage.md", HERE / "error_bars.csv"


def run(table: Table, epsilon: float, seed: int) -> Iterator[Row]:
    """A row a number of columns: cells, how many intervals hold, errors expected and come about."""
    release = PrivSyn(epsilon, DELTA, table.schema, seed=seed).fit(table.frame).release_
    for order, tables in release.accuracy_.tables.groupby("order"):
        cells, held, found = 0, 0, []
        for columns in tables["columns"]:
            counts = release.accuracy_.counts(*columns)
            true = true_counts(release, table.frame, columns).ravel()
            cells += len(counts)
            held += int(((counts["low"] <= true) & (true <= counts["high"])).sum())
            found.append((counts["estimate"] - true).abs().sum() / 2 / len(table.frame))
        yield {
            "columns": order,
            "tables": len(tables),
            "cells": cells,
            "held": held,
            "expected": tables["expected_error"].mean(),
            "found": np.mean(found),
        }


def true_counts(release: Release, frame: pd.DataFrame, columns: tuple[str, ...]) -> np.ndarray:
    """The real counts of one table's cells, in the codes and groups in which the release counted them."""
    merging = release.fitted.merging
    names = list(release.codec.names)
    codes = release.codec.encode(frame).codes
    places = [merging.groups[names.index(name)][codes[:, names.index(name)]] for name in columns]
    shape = merging.merged.project(columns).shape
    counts = np.bincount(np.ravel_multi_index(places, shape), minlength=int(np.prod(shape))).reshape(shape)
    (grouping,) = (c.measured.grouping for c in release.fitted.certainties if c.attributes == columns)
    return grouping.join(counts)


def page(rows: pd.DataFrame) -> str:
    """The means as Markdown."""
    lines = []
    for (name, epsilon, order), group in rows.groupby(["data", "epsilon", "columns"], sort=False):
        shares = group["held"] / group["cells"]
        expected, found = group["expected"].mean(), group["found"].mean()
        numbers = [
            f"{epsilon:g}",
            f"{order}",
            f"{len(group)}",
            f"{group['tables'].mean():.0f}",
            f"{group['held'].sum() / group['cells'].sum():.2%}",
            f"{shares.std() / np.sqrt(len(group)):.2%}",
            f"{expected:.4f}",
            f"{found:.4f}",
            f"{expected / found:.2f}",
        ]
        lines.append([name, *numbers])
    head = f"""# Do the error bars hold?

Every release says how far it may be off (`model.accuracy_`). Here its 95 % intervals are looked up in the
true counts of real tables, over many runs with noise of their own: the share that holds, of all cells of all
tables with that number of columns, with the standard error of that share (over runs). Beside it stands the
total variation that was expected of the estimates, and that which came about. Intervals come from known noise
and hold 95 times in a hundred whatever the table is like. The expected error comes from a model of the table;
the last column says how far it may be trusted. Tables of three and more columns are measured where they pay,
and expected errors of those are but a rough idea.

What an interval is: it holds the number of real rows in one cell (after clipping), computed
from the measurement of that table and its noise ([and more](persons.md), if persons have many rows). It never
reaches below 0 (Feldman and Cousins 1998). The estimate beside it uses all measurements, and errs less as a
rule. Where it lies outside, the interval is extended to it. Of many cells one in twenty intervals fails. None
of it says anything of the chance that the rows of a synthetic table add. It is arithmetic on released answers
and costs no privacy.

Intervals of one column hold whether or not the private rows keep the constraints of the schema. Tables of
two and more columns do not count rows that break a constraint on them. The expected error of a column
includes what the constraints change in its estimate. `privsyn report` draws synthetic rows as well: the
errors on its page include what the constraints and the drawing change in them.

Tables of few cells, such as those of nltcs, are measured by their [residuals](how.md#what-is-asked). They
state the noise of independent cells, which is more than theirs: their intervals hold more often than 95
times in a hundred.

delta {DELTA:g}, privsyn {", ".join(sorted(rows["version"].unique()))}; made by

    python experiments/error_bars.py --folder DATA --data nltcs,hmeq,br2000,adult

"""
    return head + markdown(HEADS, lines)


def main() -> None:
    """Run what has not been run, and write the page."""
    asking = parser(__doc__, data="adult,nltcs,hmeq", eps="1", seeds="0")
    asking.add_argument("--runs", type=int, default=200)
    settings = asking.parse_args()
    table = cache(partial(read, settings.folder))
    asked = (
        {"data": name, "epsilon": epsilon, "seed": seed}
        for name in settings.data
        for epsilon in settings.eps
        for seed in range(settings.runs)
    )
    rows = resumed(ROWS, asked, lambda one: run(table(one["data"]), one["epsilon"], one["seed"]))
    PAGE.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
