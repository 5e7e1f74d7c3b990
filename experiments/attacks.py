"""What attacks find in synthetic tables of Adult: of this program, a copy, and columns drawn alone.

    python experiments/attacks.py adult.csv.gz [--eps 1,10]

A fifth of the rows is held out. Seeded, so that the table in docs/evaluate.md comes out again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from privsyn import PrivSyn, attack, read_schema

SCHEMA = read_schema(Path(__file__).parents[1] / "datasets" / "adult" / "schema.yaml")


def main() -> None:
    """Print the risks of each attack on each table, with their intervals."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--eps", default="1,10")
    settings = parser.parse_args()
    adult = pd.read_csv(settings.data, na_values="?", skipinitialspace=True)
    rng = np.random.default_rng(0)
    held_out = rng.random(len(adult)) < 0.2
    train, control = adult[~held_out], adult[held_out]
    made = {
        f"epsilon {epsilon}": PrivSyn(float(epsilon), 1e-9, SCHEMA, seed=0).fit(train).sample(seed=0)
        for epsilon in settings.eps.split(",")
    }
    made["columns alone"] = train.apply(lambda column: rng.permutation(column.to_numpy()))
    made["a copy"] = train
    shown = {}
    for name, table in made.items():
        risks = attack(train, table, control, SCHEMA)
        print(f"\n{name}\n{risks}", flush=True)  # noqa: T201
        shown[name] = {
            what: f"{risk.value:.1%} ({risk.interval[0]:.1%} to {risk.interval[1]:.1%})"
            for what, risk in risks.attacks.items()
        }
    print(pd.DataFrame(shown).to_string())  # noqa: T201


if __name__ == "__main__":
    main()
