"""A table that grows by month, published each month: both tables of docs/composition.md.

    python experiments/continual.py --folder DATA [--months 2,12] [--seeds 0,1]

Rows are shuffled and cut into months of equal size; or ordered by education and much noise, so that months
drift. Nobody is in two months. Seeded, and so NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import sys
from statistics import mean

import numpy as np
import pandas as pd
from runs import DELTA, markdown
from tables import Table, add_data_argument, read

from privsyn import PrivSyn, Release, Schema, evaluate
from privsyn.private.accounting import epsilon_for, rho_for

EPSILON = 1.0
HEADS = ("table", "months", "one run at the end", "a run for each month's rows", "all rows again each month")
GROWN = ("month", "alone", "since the month before")
DRIFTING, MONTH, TESTED = 12, 3_000, 8_000  # months, rows of each, and rows to test models on
SHOWN = (2, 4, 6, 8, 10, 12)
DRIFT = 0.6  # standard deviation that is added to ranks of education from 0 to 1, by which rows are ordered


def fitted(frame: pd.DataFrame, schema: Schema, epsilon: float, seed: int) -> Release:
    """One release."""
    return PrivSyn(epsilon, DELTA, schema, seed=seed).fit(frame).release_


def error(frame: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema) -> float:
    """Mean total variation of all pairs."""
    return evaluate(frame, synthetic, schema, models=False).pair_mean.synthetic


def months(frame: pd.DataFrame, schema: Schema, parts: int, seed: int) -> tuple[float, float]:
    """Errors of the whole table: of all months' samples together, and of the last run on all rows."""
    cut = np.array_split(np.random.default_rng(seed).permutation(len(frame)), parts)
    made = [
        fitted(frame.iloc[rows].reset_index(drop=True), schema, EPSILON, seed + 100 * part).sample(seed=seed)
        for part, rows in enumerate(cut)
    ]
    share = epsilon_for(rho_for(EPSILON, DELTA, "gaussian") / parts, DELTA, "gaussian")
    last = fitted(frame, schema, share, seed).sample(seed=seed)
    return error(frame, pd.concat(made, ignore_index=True), schema), error(frame, last, schema)


def drifting(table: Table, seed: int) -> tuple[list[pd.DataFrame], pd.DataFrame]:
    """Months of rows whose education rises, and rows to test models on. Nobody is in two."""
    frame = table.frame.sample(frac=1, random_state=seed, ignore_index=True)
    test, frame = frame[:TESTED].reset_index(drop=True), frame[TESTED : TESTED + DRIFTING * MONTH]
    noise = np.random.default_rng(seed).normal(0, DRIFT, len(frame))
    order = np.argsort(frame["education-num"].rank(pct=True).to_numpy() + noise, kind="stable")
    rows = [order[number * MONTH : (number + 1) * MONTH] for number in range(DRIFTING)]
    return [frame.iloc[part].reset_index(drop=True) for part in rows], test


def since(table: Table, seed: int) -> dict[tuple[str, str], tuple[float, ...]]:
    """Errors of pairs and triples, and AUC: of some months and the whole, alone and since the last month."""
    private, test = drifting(table, seed)
    chains: dict[str, list[pd.DataFrame]] = {"alone": [], "since": []}
    errors, before = {}, None
    for number, frame in enumerate(private):
        settings = {"target": table.target, "seed": 100 * seed + number}
        alone = PrivSyn(EPSILON, DELTA, table.schema, **settings).fit(frame).release_
        before = alone if before is None else alone.with_since(before, target=table.target)
        for way, release in (("alone", alone), ("since", before)):
            chains[way].append(release.sample(MONTH, seed=seed))
            if number + 1 in SHOWN:
                errors[str(number + 1), way] = scores(table, frame, chains[way][-1], test)
    whole = pd.concat(private, ignore_index=True)
    for way, made in chains.items():
        errors["all", way] = scores(table, whole, pd.concat(made, ignore_index=True), test)
    return errors


def scores(
    table: Table, real: pd.DataFrame, synthetic: pd.DataFrame, test: pd.DataFrame
) -> tuple[float, ...]:
    """Mean total variation of all pairs and of all triples, and AUC of boosting on rows nobody saw."""
    compared = evaluate(real, synthetic, table.schema, target=table.target, test=test, models=["boosting"])
    return (compared.pair_mean.synthetic, compared.triple_mean.synthetic, compared.boosting_auc.synthetic)


def main() -> None:
    """Both tables of the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_argument(parser)
    parser.add_argument(
        "--months", type=lambda text: [int(part) for part in text.split(",")], default=[2, 12]
    )
    parser.add_argument("--seeds", type=lambda text: [int(part) for part in text.split(",")], default=[0, 1])
    options = parser.parse_args()
    growing, grown = [], []
    for name in ("nltcs", "adult"):
        table = read(options.folder, name)
        at_once = [months(table.frame, table.schema, 1, seed)[0] for seed in options.seeds]
        for parts in options.months:
            errors = [months(table.frame, table.schema, parts, seed) for seed in options.seeds]
            shown = [mean(at_once), *map(mean, zip(*errors, strict=True))]
            growing.append([name, str(parts), *(f"{e:.4f}" for e in shown)])
    runs = [since(read(options.folder, "adult"), seed) for seed in options.seeds]
    for month in (*map(str, SHOWN), "all"):
        means = [
            [mean(numbers) for numbers in zip(*(run[month, way] for run in runs), strict=True)]
            for way in ("alone", "since")
        ]
        grown.append([month, *(" / ".join(f"{number:.3f}" for number in cell) for cell in means)])
    sys.stdout.write(f"{markdown(HEADS, growing)}\n{markdown(GROWN, grown)}")


if __name__ == "__main__":
    main()
