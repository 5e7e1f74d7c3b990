"""Measure whether grids and the time of day survive: times in minutes, and salaries in steps of 10,000.

    python experiments/grids.py [--seeds 3] [--times 1500000]

Of the times: the total variation of the hour of the day, of the day of the week, and of the hour with another
column; and how many synthetic times have seconds, which no real one has. Of the salaries: which share are
multiples of 10,000, with `step` in the schema and without. 98 % of the real ones are.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from runs import DELTA

from privsyn import Categorical, Datetime, Numerical, PrivSyn, Schema

EPSILONS = (0.2, 1.0, 5.0)
PEOPLE = 20_000


def rides(rows: int, seed: int = 0) -> pd.DataFrame:
    """Return times in minutes: two years with rush hours, few rides at weekends, members in rush hours."""
    rng = np.random.default_rng(seed)
    hours = np.exp(-((np.arange(24) - 8) ** 2) / 4) + 1.2 * np.exp(-((np.arange(24) - 17) ** 2) / 6) + 0.05
    hour = rng.choice(24, rows, p=hours / hours.sum())
    date = pd.Timestamp("2022-01-03") + pd.to_timedelta(
        7 * rng.integers(0, 104, rows) + rng.choice(7, rows, p=[0.17] * 5 + [0.1, 0.05]), "D"
    )
    member = rng.random(rows) < np.where(np.isin(hour, [7, 8, 9, 16, 17, 18]), 0.8, 0.3)
    start = date + pd.to_timedelta(60 * hour + rng.integers(0, 60, rows), "min")
    return pd.DataFrame({"start": start, "member": np.where(member, "yes", "no")})


def salaries(rows: int = PEOPLE, seed: int = 0) -> pd.DataFrame:
    """Return salaries; all but one in fifty are multiples of 10,000."""
    rng = np.random.default_rng(seed)
    exact = np.clip(np.exp(rng.normal(11, 0.5, rows)), 10_000, 1_000_000).round(2)
    return pd.DataFrame({"salary": np.where(rng.random(rows) < 0.98, np.round(exact, -4), exact)})


def differ(real: pd.Series, synthetic: pd.Series) -> float:
    """Return the total variation of two columns of values."""
    shares = [column.value_counts(normalize=True) for column in (real, synthetic)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


def fit_and_sample(table: pd.DataFrame, schema: Schema, epsilon: float, seed: int) -> pd.DataFrame:
    """Return a sample of a model of the table."""
    return PrivSyn(epsilon, DELTA, schema, seed=seed).fit(table).sample(len(table), seed=seed)


def times(rows: int, epsilon: float, seed: int) -> str:
    """Return the errors of the times, as text."""
    table = rides(rows)
    listed = Categorical(["no", "yes"], nullable=False)
    schema = Schema(
        {"start": Datetime("2022-01-01", "2024-01-01", unit="min", nullable=False), "member": listed}
    )
    sample = fit_and_sample(table, schema, epsilon, seed)
    real, copied = table["start"].dt, sample["start"].dt
    hours, week = differ(real.hour, copied.hour), differ(real.dayofweek, copied.dayofweek)
    joint = differ(*(f["start"].dt.hour.astype(str) + f["member"] for f in (table, sample)))
    seconds = int((copied.second != 0).sum())
    return f"hours {hours:.4f}, weekdays {week:.4f}, hours with members {joint:.4f}, {seconds} with seconds"


def multiples(epsilon: float, seed: int) -> str:
    """Return which share of the salaries are multiples of 10,000, with `step` and without."""
    table, shares = salaries(), []
    for step in (10_000, None):
        schema = Schema({"salary": Numerical(0, 1_000_000, step=step, nullable=False)})
        sample = fit_and_sample(table, schema, epsilon, seed)["salary"]
        shares.append(float((sample % 10_000 == 0).mean()))
    return f"multiples of 10,000: {shares[0]:.1%} with step, {shares[1]:.1%} without"


def main() -> None:
    """Print a line for each epsilon and seed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--times", type=int, default=1_500_000)
    given = parser.parse_args()
    for epsilon in EPSILONS:
        for seed in range(given.seeds):
            found = multiples(epsilon, seed), times(given.times, epsilon, seed)
            print(f"epsilon {epsilon:g}, seed {seed}: {'; '.join(found)}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
