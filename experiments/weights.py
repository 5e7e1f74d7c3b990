"""How often intervals of weighted shares and means hold, in a made survey: numbers of docs/inference.md.

    python experiments/weights.py [--rows 5000,20000] [--runs 50]

Each run makes a survey and fits it at epsilon 1. Weights lie between 0.2 and 8, and depend on the answers:
who votes yes is older, earns more, and has a weight that is a third of that of others; who lives in the south
has a larger one. The truth is that of the made rows, weighted and not. One row a run and statistic goes to
experiments/weights.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from runs import DELTA, Row, markdown, resumed, write_section

from privsyn import Categorical, Numerical, PrivSyn, Schema, Weight

CSV = Path(__file__).with_suffix(".csv")
EPSILON = 1.0
BOUNDS = 0.2, 8.0
SCHEMA = Schema(
    {
        "vote": Categorical(["yes", "no"], nullable=False),
        "region": Categorical(list("NESW"), nullable=False),
        "age": Numerical(18, 90, integer=True, nullable=False),
        "income": Numerical(200, 20_000, integer=True, nullable=False),
        "w": Weight(*BOUNDS),
    }
)
SHARES = ("vote == 'yes'", "region == 'S'", "age >= 65")
MEANS = ("age", "income")
HEADS = (
    "rows",
    "statistic",
    "runs",
    "weighted intervals that hold",
    "mean width",
    "times the noise of rows",
    "unweighted intervals that hold the weighted truth",
    "that hold that of the rows",
)


def survey(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return a sample whose weights depend on the answers."""
    age, region = rng.integers(18, 90, rows), rng.integers(0, 4, rows)
    yes = rng.random(rows) < 0.2 + 0.4 * (age > 50) + 0.1 * (region == 1)
    income = np.exp(rng.normal(7.5, 0.5, rows) + 0.3 * yes).clip(200, 20_000).astype(int)
    logarithm = rng.normal(0.3, 0.5, rows) - 1.2 * yes + 0.3 * (region == 2) - 0.0004 * (income - 2000)
    return pd.DataFrame(
        {
            "vote": np.where(yes, "yes", "no"),
            "region": np.array(list("NESW"))[region],
            "age": age,
            "income": income,
            "w": np.exp(logarithm).clip(*BOUNDS),
        }
    )


def make(case: Row) -> Iterator[Row]:
    """Fit a survey, and yield each statistic with its intervals and its truth."""
    table = survey(case["rows"], np.random.default_rng(case["seed"]))
    accuracy = PrivSyn(EPSILON, DELTA, SCHEMA, seed=case["seed"]).fit(table).accuracy_
    answers = [
        *((f"share of {text}", accuracy.share, text, table.eval(text).astype(float)) for text in SHARES),
        *((f"mean of {name}", accuracy.mean, name, table[name]) for name in MEANS),
    ]
    for statistic, estimate, text, numbers in answers:
        weighted, in_rows = estimate(text, weighted=True), estimate(text)
        yield {
            "statistic": statistic,
            "truth": float(np.average(numbers, weights=table["w"])),
            "low": weighted["low"],
            "high": weighted["high"],
            "truth_of_rows": float(numbers.mean()),
            "low_of_rows": in_rows["low"],
            "high_of_rows": in_rows["high"],
        }


def section(rows: pd.DataFrame) -> str:
    """Return how often the intervals hold, for each number of rows and statistic."""
    lines = []
    for (number, statistic), runs in rows.groupby(["rows", "statistic"], sort=False):
        holds = runs["truth"].between(runs["low"], runs["high"])
        of_rows = runs["truth_of_rows"].between(runs["low_of_rows"], runs["high_of_rows"])
        misled = runs["truth"].between(runs["low_of_rows"], runs["high_of_rows"])
        widths = runs["high"] - runs["low"], runs["high_of_rows"] - runs["low_of_rows"]
        noise = float(((widths[0] / widths[1]) ** 2).median())
        shares = [f"{share.mean():.0%}" for share in (misled, of_rows)]
        numbers = [f"{holds.mean():.0%}", f"{widths[0].mean():.3g}", f"{noise:.1f}"]
        lines.append([f"{number:,}", statistic, str(len(runs)), *numbers, *shares])
    return markdown(HEADS, lines)


def main() -> None:
    """Run what the command line asks for, and write the section from all rows."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rows", default="5000,20000")
    options.add_argument("--runs", type=int, default=50)
    settings = options.parse_args()
    numbers = map(int, settings.rows.split(","))
    cases = [{"rows": number, "seed": seed} for number, seed in product(numbers, range(settings.runs))]
    rows = resumed(CSV, cases, make)
    write_section("inference.md", "weights", section(rows))


if __name__ == "__main__":
    main()
