"""Does a constraint on two dates cost accuracy? Arrivals and stays, with the constraint, beside free columns.

    python experiments/dates.py

Of each model: the mean stay in days, and the total variation of arrivals by month, at two epsilons. The free
columns are arrival and stay, without any constraint.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from privsyn import Categorical, Datetime, Increasing, Numerical, PrivSyn, Schema

ROWS = 20_000
FIRST = pd.Timestamp("2019-01-01")
WARD_STAYS = {"surgery": 5, "cardiology": 12, "geriatrics": 30}
ARRIVALS = Datetime("2019-01-01", "2023-12-31", nullable=False)
WARD = Categorical(list(WARD_STAYS), nullable=False)


def stays(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """Return arrivals that are denser in the first 15 months, and departures; stays depend on the ward."""
    rng = np.random.default_rng(seed)
    dense = rng.random(rows) < 0.6
    arrival = np.where(dense, rng.integers(0, 456, rows), rng.integers(456, 1735, rows))
    ward = rng.choice(list(WARD_STAYS), rows, p=[0.43, 0.32, 0.25])
    stay = np.minimum(rng.geometric(1 / np.vectorize(WARD_STAYS.get)(ward)), 90)
    return pd.DataFrame(
        {
            "ward": ward,
            "arrival": FIRST + pd.to_timedelta(arrival, "D"),
            "departure": FIRST + pd.to_timedelta(arrival + stay, "D"),
        }
    )


def constrained() -> Schema:
    """Return the schema with the constraint."""
    columns = {"ward": WARD, "arrival": ARRIVALS, "departure": ARRIVALS}
    return Schema(columns, constraints=[Increasing(["arrival", "departure"])])


def free() -> Schema:
    """Return the schema of arrival and stay, without any constraint."""
    return Schema(
        {"ward": WARD, "arrival": ARRIVALS, "stay": Numerical(0, 1825, integer=True, nullable=False)}
    )


def days(frame: pd.DataFrame) -> pd.Series:
    """Return the length of each stay."""
    return frame["stay"] if "stay" in frame else (frame["departure"] - frame["arrival"]).dt.days


def monthly_error(real: pd.DataFrame, sample: pd.DataFrame) -> float:
    """Return the total variation of arrivals by month."""
    shares = [f["arrival"].dt.to_period("M").value_counts(normalize=True) for f in (real, sample)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


def measured(schema: Schema, table: pd.DataFrame, epsilon: float, seed: int) -> pd.DataFrame:
    """Return a sample of a model with the schema."""
    model = PrivSyn(epsilon, 1e-9, schema, seed=seed).fit(table[list(schema.columns)])
    return model.sample(len(table), seed=seed)


def main() -> None:
    """Print one row for each epsilon, seed and schema."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    seeds, real = parser.parse_args().seeds, stays()
    real = real.assign(stay=days(real))
    print(f"real: mean stay {real['stay'].mean():.2f}")  # noqa: T201
    for epsilon in (1.0, 10.0):
        for seed in range(seeds):
            for name, schema in {"constraint": constrained(), "free": free()}.items():
                sample = measured(schema, real, epsilon, seed)
                wards = days(sample).groupby(sample["ward"]).mean().round(1).to_dict()
                print(  # noqa: T201
                    f"epsilon {epsilon:g}, seed {seed}, {name}: mean stay {days(sample).mean():.2f}, "
                    f"arrivals {monthly_error(real, sample):.4f}, by ward {wards}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
