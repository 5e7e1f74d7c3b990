"""How often the error bars of a release hold: writes a section of docs/inference.md.

    python experiments/error_bars.py --folder DATA [--data adult,nltcs,hmeq,hmeq:found] [--runs 200] [--eps 1]

Each run has noise of its own. The intervals of all cells of all tables that it measured are looked up in the
true counts, and expected errors are set beside those that came about. Those of means, quantiles and
correlations are compared with the numbers, clipped to the bounds. Of NAME:found the release has no schema.
Runs that error_bars.csv holds already are not repeated, so that it may be stopped and started again. Seeded,
and so NOT PRIVATE.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from runs import DELTA, Row, command, markdown, parser, resumed, write_section
from tables import Table, read

from privsyn import Numerical, PrivSyn, Release

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
FOUND, NUMBERS = ":found", ("means", "quantiles", "correlations")
HEADS_OF_NUMBERS = "table", "bounds", "epsilon", "of", "runs", "intervals", "hold", "+-"
OF_NUMBERS = """
### Means, quantiles and correlations

The same for [numbers](#how-far-off-may-it-be), clipped to the bounds of the release. The bounds
are those of the table itself, as if they were public, or were found under privacy. The interval of a quantile
ends where cells end, and so holds more often. Found bounds leave out rows at ends that noise hides, and no
interval knows of these.

"""
ROWS = HERE / "error_bars.csv"


def run(table: Table, epsilon: float, seed: int) -> Iterator[Row]:
    """A row a number of columns: cells, how many intervals hold, errors expected and come about."""
    release = PrivSyn(epsilon, DELTA, table.schema, seed=seed).fit(table.frame).release_
    yield from numbers(release, table.frame)
    if table.schema is None:
        return
    for order, tables in release.accuracy_.tables.groupby("order"):
        cells, held, errors = 0, 0, []
        for columns in tables["columns"]:
            counts = release.accuracy_.counts(*columns)
            true = true_counts(release, table.frame, columns).ravel()
            cells += len(counts)
            held += int(((counts["low"] <= true) & (true <= counts["high"])).sum())
            errors.append((counts["estimate"] - true).abs().sum() / 2 / len(table.frame))
        yield {
            "columns": f"{order}",
            "tables": len(tables),
            "cells": cells,
            "held": held,
            "expected": tables["expected_error"].mean(),
            "found": np.mean(errors),
        }


def numbers(release: Release, frame: pd.DataFrame) -> Iterator[Row]:
    """A row for means, for quantiles and for correlations: intervals, and how many hold."""
    kinds = release.codec.schema.columns
    real = pd.DataFrame(
        {
            name: frame[name].clip(float(kind.low), float(kind.high))
            for name, kind in kinds.items()
            if isinstance(kind, Numerical) and name in frame and is_numeric_dtype(frame[name])
        }
    )
    accuracy, ranks = release.accuracy_, real.corr("spearman")
    true = {
        "means": [real[name].mean() if name in real else np.nan for name in accuracy.means["column"]],
        "quantiles": [
            real[name].dropna().quantile(share, "higher") if name in real else np.nan
            for name, share in accuracy.quantiles[["column", "share"]].itertuples(index=False)
        ],
        "correlations": [
            ranks.loc[a, b] if {a, b} <= {*real} else np.nan for a, b in accuracy.correlations["columns"]
        ],
    }
    for what, values in true.items():
        intervals = getattr(accuracy, what).assign(true=values)
        intervals = intervals[intervals["covered"].astype(bool) & intervals["true"].notna()]
        if len(intervals):
            held = (intervals["low"] <= intervals["true"]) & (intervals["true"] <= intervals["high"])
            yield {"columns": what, "cells": len(intervals), "held": int(held.sum())}


def true_counts(release: Release, frame: pd.DataFrame, columns: tuple[str, ...]) -> np.ndarray:
    """The real counts of one table's cells, in the codes and groups in which the release counted them."""
    merging = release.fitted.merging
    names = list(release.codec.names)
    codes = release.codec.encode(frame).codes
    positions = [merging.groups[names.index(name)][codes[:, names.index(name)]] for name in columns]
    shape = merging.merged.project(columns).shape
    counts = np.bincount(np.ravel_multi_index(positions, shape), minlength=int(np.prod(shape))).reshape(shape)
    (grouping,) = (c.measured.grouping for c in release.fitted.certainties if c.attributes == columns)
    return grouping.join(counts)


def section(rows: pd.DataFrame) -> str:
    """The means as Markdown."""
    lines, of_numbers = [], []
    for (name, epsilon, kind), group in rows.groupby(["data", "epsilon", "columns"], sort=False):
        runs, shares = f"{len(group)}", group["held"] / group["cells"]
        holds = f"{group['held'].sum() / group['cells'].sum():.2%}", f"{shares.sem():.2%}"
        if kind in NUMBERS:
            bounds = "found" if name.endswith(FOUND) else "given"
            number = f"{group['cells'].mean():.0f}"
            of_numbers.append([name.removesuffix(FOUND), bounds, f"{epsilon:g}", kind, runs, number, *holds])
            continue
        expected, actual = group["expected"].mean(), group["found"].mean()
        errors = f"{expected:.4f}", f"{actual:.4f}", f"{expected / actual:.2f}"
        number = f"{group['tables'].mean():.0f}"
        lines.append([name, f"{epsilon:g}", kind, runs, number, *holds, *errors])
    head = f"""Delta {DELTA:g}, privsyn {", ".join(sorted(rows["version"].unique()))}; made by

    {command()}

"""
    return head + markdown(HEADS, lines) + OF_NUMBERS + markdown(HEADS_OF_NUMBERS, of_numbers)


def table_of(folder: Path | None, name: str) -> Table:
    """The table; without its schema if the name says that bounds are to be found."""
    table = read(folder, name.removesuffix(FOUND))
    return table._replace(schema=None) if name.endswith(FOUND) else table


def main() -> None:
    """Run what has not been run, and write the page."""
    asking = parser(__doc__, data="adult,nltcs,hmeq", eps="1", seeds="0")
    asking.add_argument("--runs", type=int, default=200)
    settings = asking.parse_args()
    table = cache(partial(table_of, settings.folder))
    cases = (
        {"data": name, "epsilon": epsilon, "seed": seed}
        for name in settings.data
        for epsilon in settings.eps
        for seed in range(settings.runs)
    )
    rows = resumed(ROWS, cases, lambda case: run(table(case["data"]), case["epsilon"], case["seed"]))
    write_section("inference.md", "error-bars", section(rows))


if __name__ == "__main__":
    main()
