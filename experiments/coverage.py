"""How often the error bars of a release hold: writes docs/coverage.md.

    python experiments/coverage.py [--runs 200] [--eps 0.2,1,5]

Three made-up tables whose truth is known: few values and much dependence (`chain`), many values of which most
pairs never occur (`sparse`), and numbers in bins beside categories with missing cells (`mixed`). Each run has
noise of its own; the intervals of all cells are looked up in the true counts, and expected errors are set
beside those that came about. Seeded, and so NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from privsyn import Categorical, Numerical, PrivSyn, Schema

PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"
DELTA = 1e-6


def chain(rng: np.random.Generator) -> tuple[pd.DataFrame, Schema]:
    """2,000 rows of six yes-or-no answers, each like the one before in four of five rows."""
    columns = [rng.integers(0, 2, 2000)]
    for _ in range(5):
        columns.append(np.where(rng.random(2000) < 0.8, columns[-1], 1 - columns[-1]))
    names = list("abcdef")
    table = pd.DataFrame({name: np.array(["no", "yes"])[c] for name, c in zip(names, columns, strict=True)})
    return table, Schema({name: Categorical(["no", "yes"], nullable=False) for name in names})


def sparse(rng: np.random.Generator) -> tuple[pd.DataFrame, Schema]:
    """3,000 rows of four columns of 20 values, ever rarer; the second is a function of the first."""
    codes = np.minimum(rng.geometric(0.25, (3000, 4)) - 1, 19)
    codes[:, 1] = (codes[:, 0] * 7) % 20
    values = [f"v{place}" for place in range(20)]
    table = pd.DataFrame({name: np.array(values)[codes[:, j]] for j, name in enumerate("abcd")})
    return table, Schema({name: Categorical(values, nullable=False) for name in "abcd"})


def mixed(rng: np.random.Generator) -> tuple[pd.DataFrame, Schema]:
    """5,000 rows: an age, an income that grows with it, a city that decides much, and missing cells."""
    age = rng.integers(18, 90, 5000)
    city = rng.choice(["north", "south", "west"], 5000, p=[0.6, 0.3, 0.1])
    income = np.round(rng.gamma(3.0, 300.0 + 10 * age) * np.where(city == "west", 2, 1))
    table = pd.DataFrame({"age": age, "city": city, "income": income})
    table.loc[rng.random(5000) < 0.1, "city"] = None
    return table, Schema(
        {
            "age": Numerical(18, 90, integer=True, bins=18, nullable=False),
            "city": Categorical(["north", "south", "west"]),
            "income": Numerical(0, 20_000, bins=12),
        }
    )


TABLES = {make.__name__: make for make in (chain, sparse, mixed)}


def runs(name: str, epsilon: float, number: int) -> Iterator[dict[str, float]]:
    """A row a run and a number of columns: share of intervals that hold, errors expected and come about."""
    table, schema = TABLES[name](np.random.default_rng(1))
    truth: dict[tuple[str, ...], np.ndarray] = {}
    for seed in range(number):
        accuracy = PrivSyn(epsilon, DELTA, schema, seed=seed).fit(table).accuracy_
        for order, tables in accuracy.tables.groupby("order"):
            held, expected, found = [], tables["expected_error"].mean(), []
            for columns in tables["columns"]:
                cells = accuracy.counts(*columns)
                if columns not in truth:
                    truth[columns] = true_counts(table, schema, list(columns), cells)
                true = truth[columns]
                held.append((cells["low"] <= true) & (true <= cells["high"]))
                found.append((cells["estimate"] - true).abs().sum() / 2 / len(table))
            yield {
                "table": name,
                "epsilon": epsilon,
                "columns": order,
                "held": float(np.concatenate(held).mean()),
                "expected": float(expected),
                "found": float(np.mean(found)),
            }


def true_counts(table: pd.DataFrame, schema: Schema, columns: list[str], cells: pd.DataFrame) -> np.ndarray:
    """The real counts of the cells, by their labels."""
    labels = pd.DataFrame({name: label(table[name], schema.columns[name]) for name in columns})
    counts = labels.value_counts().reindex(pd.MultiIndex.from_frame(cells[columns]), fill_value=0)
    return counts.to_numpy()


def label(cells: pd.Series, column: Categorical | Numerical) -> pd.Series:
    """Each cell by the label that the release gives it."""
    if isinstance(column, Categorical):
        return cells.astype(object).where(cells.notna(), "(missing)")
    width = (column.high - column.low) / column.bins
    if column.integer:  # 73 whole numbers in 18 bins, cut at b * 73 // 18
        points = int(column.high - column.low) + 1
        edges = column.low + np.arange(column.bins + 1) * points // column.bins
        firsts, lasts = edges[:-1], edges[1:] - 1
    else:
        firsts = column.low + width * np.arange(column.bins)
        lasts, edges = firsts + width, np.append(firsts, column.high)
    words = [f"{a:.6g} to {b:.6g}" if a != b else f"{a:.6g}" for a, b in zip(firsts, lasts, strict=True)]
    places = np.clip(np.searchsorted(edges, cells, side="right") - 1, 0, column.bins - 1)
    return pd.Series(np.array(words, dtype=object)[places], index=cells.index)


def page(rows: pd.DataFrame, number: int, command: str) -> str:
    """The means as Markdown."""
    groups = rows.groupby(["table", "epsilon", "columns"], sort=False)
    lines = [
        f"| {name} | {epsilon:g} | {order} | {group['held'].mean():.1%} | {group['expected'].mean():.4f} |"
        f" {group['found'].mean():.4f} | {group['expected'].mean() / group['found'].mean():.2f} |"
        for (name, epsilon, order), group in groups
    ]
    return f"""# Do the error bars hold?

Every release says how far it may be off (`model.accuracy_`). Over {number} runs of each line, with
noise afresh in each: the share of 95 % intervals that hold the true count, over all cells of all tables of so
many columns, and the total variation that was expected of the estimates beside that which came about. The
intervals come from known noise and hold 95 times in a hundred whatever the table is like. The expected error
comes from a model of the table; the last column says how far it may be trusted: for one and two columns to within
a half as a rule, for three and more (of which few are measured, in few of the runs) only for a rough idea.

What an interval is: it holds the number of real rows in one cell (after clipping, and of the rows that were kept,
where a person may have many), by what was heard of that very table and its noise. It never reaches below 0
(Feldman and Cousins 1998). The estimate beside it draws on all else that was heard, errs less as a rule, and may
lie outside. Of many cells one in twenty intervals fails. None of it says anything of the chance that the rows of a
synthetic table add. It is arithmetic on released answers and costs no privacy.

privsyn {version("privsyn")}, delta {DELTA:g}; the tables are described in the script. Made by

    {command}

| table | epsilon | columns | intervals that hold | expected error | error | expected / found |
|---|---|---|---|---|---|---|
""" + "\n".join([*lines, ""])


def main() -> None:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--eps", default="0.2,1,5")
    settings = parser.parse_args()
    epsilons = [float(epsilon) for epsilon in settings.eps.split(",")]
    rows = [row for name in TABLES for epsilon in epsilons for row in runs(name, epsilon, settings.runs)]
    command = " ".join(["python experiments/coverage.py", *sys.argv[1:]])
    PAGE.write_text(page(pd.DataFrame(rows), settings.runs, command), encoding="utf-8")


if __name__ == "__main__":
    main()
