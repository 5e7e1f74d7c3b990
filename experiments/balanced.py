"""Is a model trained on classes of equal size as good on real rows? Adult, and its income.

    python experiments/balanced.py adult.csv.gz [--seeds 3]

Gradient boosting is trained on synthetic rows as they are, on as many with both incomes equally often, and
on the real ones, and tested on a fifth of the real rows that no other step saw. The numbers of one seed are
in docs/constraints.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from privsyn import PrivSyn, read_schema

SCHEMA = Path(__file__).parents[1] / "datasets" / "adult" / "schema.yaml"
RICH = ">50K"


def scores(train: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    """Area under the curve, and the mean share of each class that is found, in percent."""
    both = pd.concat([train, test], ignore_index=True)
    features = both.drop(columns="income")
    for name in features.select_dtypes(exclude="number"):
        features[name] = features[name].astype("category").cat.codes
    features, rich = features.astype(float), both["income"].eq(RICH).to_numpy()
    model = HistGradientBoostingClassifier(random_state=0).fit(features[: len(train)], rich[: len(train)])
    chances, truth = model.predict_proba(features[len(train) :])[:, 1], rich[len(train) :]
    return {
        "AUC": roc_auc_score(truth, chances),
        "balanced accuracy": 100 * balanced_accuracy_score(truth, chances > 0.5),
    }


def main() -> None:
    """Print each run at epsilon 1, and the means over seeds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    settings = parser.parse_args()
    real = pd.read_csv(settings.data, na_values="?", skipinitialspace=True)
    found = []
    for seed in range(settings.seeds):
        held = np.random.default_rng(seed).random(len(real)) < 0.2
        train, test = real[~held].reset_index(drop=True), real[held].reset_index(drop=True)
        found.append({"rows": "real", **scores(train, test)})
        model = PrivSyn(1.0, 1e-9, read_schema(SCHEMA), target="income", seed=seed).fit(train)
        for rows, balance in (("as they are", None), ("balanced", "income")):
            sample = model.sample(len(train), balance=balance, seed=seed)
            found.append({"rows": rows, **scores(sample, test)})
            print(found[-1], flush=True)  # noqa: T201
    print(pd.DataFrame(found).groupby("rows").mean().round(4).to_string())  # noqa: T201


if __name__ == "__main__":
    main()
