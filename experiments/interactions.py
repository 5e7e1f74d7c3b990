"""Interactions of two and four columns that are known, and what models learn of them from our rows.

    python experiments/interactions.py [--data rare,xor] [--eps 0.2,0.5,1,5,50] [--seeds 0,1,2]

Each table has 20,000 rows, 12 features and a target of two classes: six numbers and six columns of up to
eight values. No pair tells anything of the target, so a method that keeps pairs alone has an AUC of 0.5:

- xor: two columns of two values;
- product: the sign of the product of two numbers;
- four: an even number of three values that are 1 and one number above 0;
- rare: a class of 2 %, in which the sum of two columns of four values is a multiple of four.

`measured` says whether the columns of the interaction were measured together with the target. `contrast` is
how much likelier the class is where the interaction says so, over that in the real rows. AUC is that of
boosting on 10,000 other rows. Runs have seeds: they are repeatable and NOT PRIVATE. One row a run goes to
experiments/interactions.csv, and the means to docs/engineer.md.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from runs import DELTA, Row, markdown, resumed, write_section
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from privsyn import Categorical, Numerical, PrivSyn, Schema

ROWS = Path(__file__).parent / "interactions.csv"
TRAIN, TEST = 20_000, 10_000
SIZES = {"a": 2, "b": 2, "c": 2, "d": 4, "e": 4, "f": 8}
NUMBERS = ("u", "v", "w", "x", "y", "z")
RULES: dict[str, tuple[tuple[str, ...], float, float, Callable[[pd.DataFrame], pd.Series]]] = {
    "xor": (("a", "b"), 0.9, 0.1, lambda rows: (rows["a"] ^ rows["b"]) == 1),
    "product": (("u", "v"), 0.9, 0.1, lambda rows: rows["u"] * rows["v"] > 0),
    "four": (
        ("a", "b", "c", "u"),
        0.9,
        0.1,
        lambda rows: (rows["a"] + rows["b"] + rows["c"] + (rows["u"] > 0)) % 2 == 0,
    ),
    "rare": (("d", "e"), 0.074, 0.002, lambda rows: (rows["d"] + rows["e"]) % 4 == 0),
}
"""Of each table: the columns, the share of the class where the rule holds and where not, and the rule."""
SCHEMA = Schema(
    {name: Categorical(list(range(size)), nullable=False) for name, size in {**SIZES, "target": 2}.items()}
    | {name: Numerical(-4, 4, nullable=False) for name in NUMBERS}
)


def main() -> None:
    """Run what the command line asks for, and write the section from all rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=lambda text: text.split(","), default=",".join(RULES))
    parser.add_argument(
        "--eps", type=lambda text: [float(part) for part in text.split(",")], default="0.2,0.5,1,5,50"
    )
    parser.add_argument("--seeds", type=lambda text: [int(part) for part in text.split(",")], default="0,1,2")
    settings = parser.parse_args()
    keys = ("data", "epsilon", "seed")
    cases = product(settings.data, settings.eps, settings.seeds)
    rows = resumed(ROWS, [dict(zip(keys, case, strict=True)) for case in cases], score)
    write_section("engineer.md", "interactions", section(rows))


def draw(name: str, number: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return so many rows of a table."""
    rows = pd.DataFrame({column: rng.integers(0, size, number) for column, size in SIZES.items()})
    rows[[*NUMBERS]] = rng.normal(size=(number, len(NUMBERS))).clip(-4, 4)
    _, inside, outside, rule = RULES[name]
    return rows.assign(target=(rng.random(number) < np.where(rule(rows), inside, outside)).astype(int))


def score(case: Row) -> Iterator[Row]:
    """Return what a run kept of an interaction."""
    name, rng = case["data"], np.random.default_rng((2026, case["seed"]))
    train, test = draw(name, TRAIN, rng), draw(name, TEST, rng)
    model = PrivSyn(case["epsilon"], DELTA, SCHEMA, target="target", seed=case["seed"]).fit(train)
    made, columns = model.sample(TRAIN, seed=case["seed"]), {*RULES[name][0], "target"}
    measured = any(columns <= set(attributes) for attributes in model.accuracy_.tables["columns"])
    yield {
        "measured": int(measured),
        "contrast": contrast(name, made) / contrast(name, train),
        "auc": auc(made, test),
        "auc_real": auc(train, test),
    }


def contrast(name: str, rows: pd.DataFrame) -> float:
    """Return the share of the class where the rule holds, less that where it does not."""
    holds = RULES[name][-1](rows)
    return float(rows.loc[holds, "target"].mean() - rows.loc[~holds, "target"].mean())


def auc(train: pd.DataFrame, test: pd.DataFrame) -> float:
    """Return the AUC of boosting, or one half if there is one class."""
    features = [column for column in test if column != "target"]
    if train["target"].nunique() < 2:
        return 0.5
    model = HistGradientBoostingClassifier(random_state=0).fit(train[features], train["target"])
    return float(roc_auc_score(test["target"], model.predict_proba(test[features])[:, 1]))


def section(rows: pd.DataFrame) -> str:
    """Return the runs in which each interaction was measured, and what rows kept of it."""
    lines = []
    order = list(RULES)
    rows = rows.sort_values(
        ["data", "epsilon"], key=lambda keys: keys.map(order.index) if keys.name == "data" else keys
    )
    for (data, epsilon), runs in rows.groupby(["data", "epsilon"], sort=False):
        scores = [f"{runs[column].mean():.2f}" for column in ("contrast", "auc", "auc_real")]
        lines.append([data, f"{epsilon:g}", f"{runs['measured'].sum()} of {len(runs)}", *scores])
    heads = ("table", "epsilon", "measured", "contrast, of real", "AUC", "AUC, real rows")
    return markdown(heads, lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)  # seeds that make noise repeatable
    main()
