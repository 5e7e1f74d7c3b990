"""How good are forecasts of what models learn? Writes a section of docs/engineer.md.

    python experiments/forecast.py --folder DATA [--data adult,hmeq] [--eps 0.2,1,5] [--seeds 0,1,2]

A fifth of each table is held out, and at most 10,000 of the other rows are the private table. The drop that
`privsyn.sweep` of the release expects is compared with the one that is found: gradient boosting learns from
the private and from the synthetic rows, and is tested on the held-out ones. A score below that of a guess
counts as a guess. Tables are read as in tables.py, or from NAME.train.csv.gz and NAME.test.csv.gz in
DATA/numbers. One row for each run goes to forecast.csv; runs that it holds are not repeated. Seeded, and so
NOT PRIVATE. It takes a quarter of an hour.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from runs import DELTA, Row, command, markdown, parser, resumed, write_section
from tables import Table, read

from privsyn import Categorical, Numerical, PrivSyn, Schema, sweep
from privsyn.evaluation.encoding import code_together
from privsyn.evaluation.models import Task, learning

HERE = Path(__file__).parent
RUNS = HERE / "forecast.csv"
DATA = "insurance,obesity,hmeq,abalone,wine,kc-house,nltcs,br2000,adult"
MOST_ROWS = 10_000
GUESS = {"auc": 0.5, "r2": 0.0}


def numbers(folder: Path, name: str) -> Table:
    """Return a table whose bounds and lists are public: NAME.json says them."""
    about = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    parts = [
        pd.read_csv(folder / f"{name}.{part}.csv.gz", keep_default_na=False, dtype=str)
        for part in ("train", "test")
    ]
    frame, columns = pd.concat(parts, ignore_index=True), {}
    for c in about["columns"]:
        if c["kind"] == "numerical":
            frame[c["name"]] = pd.to_numeric(frame[c["name"]])
            columns[c["name"]] = Numerical(c["low"], c["high"], integer=c["integer"], nullable=False)
        else:
            columns[c["name"]] = Categorical(c["values"], nullable=False)
    return Table(name, frame, Schema(columns), about["target"])


def table(asked: argparse.Namespace, name: str) -> Table:
    """Return the table from the folder, or from its folder of numbers."""
    folder = asked.folder / "numbers"
    return numbers(folder, name) if (folder / f"{name}.train.csv.gz").exists() else read(asked.folder, name)


def found(table: Table, train: pd.DataFrame, synthetic: pd.DataFrame, test: pd.DataFrame) -> Row:
    """Return the scores on held-out rows of what was learnt from real and from synthetic rows."""
    view, (*tables, tested) = code_together([train, synthetic, test], table.schema)
    task = Task.of(view, tables[0], table.target)
    measure = "r2" if task.classes is None else "auc"
    scores = [learning(view, task, one, tested, ("boosting",))[f"boosting_{measure}"].value for one in tables]
    real, learnt = np.maximum(scores, GUESS[measure]).tolist()
    return {"measure": measure, "real": real, "found_score": learnt, "found_drop": real - learnt}


def main() -> None:
    """Make all runs, and write their rows and the page."""
    settings = parser(__doc__, data=DATA, eps="0.2,1,5", seeds="0,1,2").parse_args()
    tables: dict[str, Table] = {}

    def make(case: Row) -> Iterator[Row]:
        name, seed = case["data"], case["seed"]
        this = tables.setdefault(name, table(settings, name))
        mixed = this.frame.sample(frac=1, random_state=seed)
        cut = round(0.8 * len(mixed))
        train, test = mixed[: min(cut, MOST_ROWS)], mixed[cut : cut + MOST_ROWS]
        model = PrivSyn(case["epsilon"], DELTA, this.schema, target=this.target, seed=seed).fit(train)
        expected = sweep(model, target=this.target, models=["boosting"]).iloc[0]
        scores = found(this, train, model.sample(len(train), seed=seed), test)
        yield {
            "rows": len(train),
            **scores,
            "score": expected["score"],
            "drop": expected["drop"],
            "useless": bool(expected["useless"]),
        }

    keys = ("data", "epsilon", "seed")
    runs = (dict(zip(keys, run, strict=True)) for run in product(settings.data, settings.eps, settings.seeds))
    write_section("engineer.md", "forecast", section(resumed(RUNS, runs, make)))


def section(rows: pd.DataFrame) -> str:
    """Return how well the forecasts agree, and the means of each table and epsilon."""
    heads = ("table", "epsilon", "observed score", "expected score", "observed drop", "expected drop")
    means = rows.groupby(["data", "epsilon"])[["found_score", "score", "found_drop", "drop"]].mean()
    lines = [[data, f"{eps:g}", *(f"{x:.3f}" for x in row)] for (data, eps), *row in means.itertuples()]
    hopeless = rows[rows["useless"]]
    return f"""{agreement(rows)}
These were {len(rows)} runs with {rows["data"].nunique()} tables. Drops are compared where the forecast does
not call the table useless. It does so in {len(hopeless)} runs, in which models reached {means_of(hopeless)}.
Means over up to {rows["seed"].nunique()} seeds:

{markdown(heads, lines)}
Made by `{command()}`.
"""


def means_of(rows: pd.DataFrame) -> str:
    """Return the mean found score of each measure, in words."""
    scores = rows.groupby("measure")["found_score"].mean()
    return " and ".join(f"an {measure.upper()} of {score:.2f}" for measure, score in scores.items())


def agreement(rows: pd.DataFrame) -> str:
    """Return correlation, bias and error of the forecasts, for all runs and for each measure."""
    heads = (
        "",
        "runs",
        "correlation",
        "mean of expected - observed",
        "root mean square",
        "90 % of observed - expected",
    )
    clear, lines = rows[~rows["useless"]], []
    for score, observed, expected, runs in (
        ("score", "found_score", "score", rows),
        ("drop", "found_drop", "drop", clear),
    ):
        for name, part in (("all", runs), *runs.groupby("measure")):
            off = part[expected] - part[observed]
            low, high = np.quantile(-off, [0.05, 0.95])
            lines.append(
                [
                    f"{score}, {name if name == 'all' else name.upper()}",
                    f"{len(part)}",
                    f"{part[expected].corr(part[observed]):.2f}",
                    f"{off.mean():+.3f}",
                    f"{np.sqrt((off**2).mean()):.3f}",
                    f"{low:+.2f} to {high:+.2f}",
                ]
            )
    return markdown(heads, lines)


if __name__ == "__main__":
    main()
