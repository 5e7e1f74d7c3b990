"""Compare the errors that `plan` expects of linked tables with those of runs: a table in docs/persons.md.

    python experiments/linked_plan.py BENCH

BENCH is the folder of the bench (linked.py); its data lie beside it. A plan gets the shape of the tables as
public facts: rows of the root, rows of each parent, and whether each parent has at least one. The seeds make
the runs repeatable and NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path

import numpy as np
from linked_scores import bench_of, halves

from privsyn import Database, Schema, Table, plan

DELTA, EPSILONS, SEEDS = 1e-9, (1.0, 5.0), (0, 1, 2)
SHAPES = {
    "cdnow": (18_856, {"purchases": 2.96}),
    "semcog": (15_638, {"persons": 1.83}),
    "travel": (1_600, {"persons": 2.63, "tours": 1.33, "trips": 2.52}),
}
MAY_BE_NONE = ("tours",)
SCORES = {"pair": "within", "parent_child": "parent_child", "next": "next", "children": "children"}


def database_of(bench, side: dict) -> Database:
    """Return what is public about the tables of a set."""
    return Database(
        {
            name: Table(
                Schema(bench.columns_of(table)),
                **{part: table.get(part) for part in ("key", "parent", "link", "order")},
                children="1.." if "parent" in table and name not in MAY_BE_NONE else None,
            )
            for name, table in side["tables"].items()
        }
    )


def planned(side: dict, database: Database, data: str, epsilon: float) -> dict[str, float]:
    """Return the expected scores: means over as many pairs of columns as the bench compares."""
    rows, per_parent = SHAPES[data]
    tables = plan(database, epsilon, DELTA, rows=rows, rows_per_parent=per_parent).expectations[0].tables
    columns = {name: len(table["columns"]) for name, table in side["tables"].items()}
    found: dict[str, list[tuple[float, int]]] = {}
    for table in tables:
        own, above = columns[table.name], columns.get(table.parent or "", 0)
        pairs = {
            "pair": own * (own - 1) // 2,
            "parent_child": own * above,
            "next": own**2,
            "children": 1 + above,
        }
        for what, number in pairs.items():
            if what in table.errors:
                found.setdefault(what, []).append((table.errors[what], number))
    means = {}
    for what, each in found.items():
        errors, weights = zip(*each, strict=True)
        means[SCORES[what]] = float(np.average(errors, weights=weights))
    return means


def measured(bench, side: dict, train: dict, test: dict, epsilon: float) -> dict[str, float]:
    """Return the mean scores of runs."""
    runs = []
    for seed in SEEDS:
        made = bench.ours(side, train, epsilon, DELTA, seed)
        made = {name: bench.typed(made[name], table) for name, table in side["tables"].items()}
        runs.append(bench.score(side, train, made, test))
    known = [score for score in SCORES.values() if score in runs[0]]
    return {score: float(np.mean([run[score] for run in runs])) for score in known}


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bench", type=Path)
    bench = bench_of(parser.parse_args().bench)
    sys.stdout.write("| | " + " | ".join(SCORES.values()) + " |\n|" + "---|" * (len(SCORES) + 1) + "\n")
    for data, epsilon in product(SHAPES, EPSILONS):
        side, train, test = halves(bench, data)
        database = database_of(bench, side)
        expected = planned(side, database, data, epsilon)
        found = measured(bench, side, train, test, epsilon)
        both = [f"{expected[s]:.3f} / {found[s]:.3f}" if s in expected else "" for s in SCORES.values()]
        sys.stdout.write(f"| {data}, epsilon {epsilon:g} | " + " | ".join(both) + " |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
