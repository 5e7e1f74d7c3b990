"""Areas in regions: how far their shares stay apart. The numbers are in docs/constraints.md.

    python experiments/places.py [--seeds 5] [--eps 0.2,1,5] [--columns 10,30]

A made table: 170,000 persons, 60 areas in 6 regions, and the share of poor persons from 3 to 26 % by area.
Seeded, and so NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
import pandas as pd
from runs import DELTA, markdown

from privsyn import Categorical, Numerical, PrivSyn, Schema, Within

ROWS, AREAS, REGIONS = 170_000, 60, 6
LEAST, MOST = 0.03, 0.257  # shares of the best and of the worst area
HEADS = (
    "columns",
    "epsilon",
    "worst area",
    "spread",
    "root mean squared error",
    "intervals hold",
    "level of poor",
)


def made(columns: int, seed: int = 0) -> tuple[pd.DataFrame, Schema]:
    """Return a table of at least ten columns, and its schema with the hierarchy."""
    rng = np.random.default_rng(seed)
    region_of = np.repeat(np.arange(REGIONS), AREAS // REGIONS)
    sizes = rng.lognormal(0, 0.6, AREAS)
    area = rng.choice(AREAS, ROWS, p=sizes / sizes.sum())
    region = region_of[area]
    share = np.clip(np.linspace(0.06, 0.18, REGIONS)[region_of] + rng.normal(0, 0.045, AREAS), LEAST, MOST)
    share[[share.argmin(), share.argmax()]] = LEAST, MOST
    age = np.clip(rng.normal(45 + 2 * (region - 2.5), 18), 16, 95).round()
    school = np.clip(rng.normal(3 + 0.3 * (region == 2) - 0.02 * (age - 45), 1.4), 0, 6).astype(int)
    works = (age < 67) & (rng.random(ROWS) < 0.6 + 0.03 * school)
    income = np.exp(rng.normal(9.8 + 0.12 * school + 0.2 * works, 0.6)).clip(0, 200_000).round()
    owns = rng.random(ROWS) < 1 / (1 + np.exp((20_000 - income) / 15_000))
    odds = np.log(share / (1 - share))[area] + 0.4 * (school < 2) - 0.3 * works + 0.05
    poor = rng.random(ROWS) < 1 / (1 + np.exp(-odds))
    codes = {
        "sex": rng.integers(0, 2, ROWS),
        "school": school,
        "works": works,
        "owns": owns,
        "poor": poor,
    }
    numbers = {"age": age, "income": income, "persons": np.minimum(1 + rng.poisson(1.3, ROWS), 7)}
    causes = np.stack([(age - 45) / 18, school - 3, np.log1p(income) - 9.8, poor, region / 2 - 1.25], axis=1)
    for number in range(columns - 10):  # more columns, which depend on some of the first ones
        slopes = rng.normal(size=5) * rng.choice([0, 0.5, 1], 5)
        level = causes @ slopes + 1.5 * rng.normal(size=ROWS)
        if number % 3 == 2:
            numbers[f"n{number}"] = np.clip(50 + 20 * level, -50, 200).round()
        else:
            values = 2 if number % 3 == 0 else int(rng.integers(3, 9))
            codes[f"c{number}"] = np.digitize(level, np.sort(np.quantile(level, rng.random(values - 1))))
    names = [f"A{code:02}" for code in range(AREAS)]
    frame = pd.DataFrame({"area": [names[code] for code in area], "region": [f"R{code}" for code in region]})
    frame = frame.assign(**{name: [f"v{int(code)}" for code in cells] for name, cells in codes.items()})
    frame = frame.assign(**{name: cells.astype(int) for name, cells in numbers.items()})
    bounds = {"age": (16, 95), "income": (0, 200_000), "persons": (1, 7)}
    described = {
        name: Categorical(sorted(frame[name].unique()), nullable=False)
        for name in frame
        if name not in numbers
    }
    described |= {
        name: Numerical(*bounds.get(name, (-50, 200)), integer=True, nullable=False) for name in numbers
    }
    hierarchy = pd.DataFrame({"area": names, "region": [f"R{code}" for code in region_of]})
    return frame, Schema(described, constraints=[Within({"area": "region"}, hierarchy)])


def shares(frame: pd.DataFrame) -> pd.Series:
    """Return the share of poor persons in each area."""
    return (frame["poor"] == "v1").groupby(frame["area"]).mean()


def judged(frame: pd.DataFrame, schema: Schema, epsilon: float, seed: int) -> tuple[list[float], str]:
    """Return what one run makes of the areas, and what it says of them."""
    real = shares(frame)
    model = PrivSyn(epsilon, DELTA, schema, seed=seed).fit(frame[[*schema.columns]])
    rows = shares(model.sample(len(frame), seed=seed)).reindex(real.index).fillna(0.0)
    answers = [model.accuracy_.share("poor == 'v1'", f"area == {area!r}") for area in real.index]
    hold = np.mean([a["low"] <= share <= a["high"] for a, share in zip(answers, real, strict=True)])
    level = next(level.level for level in model.place_levels() if level.column == "poor")
    error = float(np.sqrt(((rows - real) ** 2).mean()))
    return [rows[real.idxmax()], rows.std() / real.std(), error, float(hold)], level or "none"


def main() -> None:
    """Print a line for each number of columns and each epsilon."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--eps", default="0.2,1,5")
    parser.add_argument("--columns", default="10,30")
    settings = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for columns in map(int, settings.columns.split(",")):
        frame, schema = made(columns)
        real = shares(frame)
        sys.stdout.write(f"{columns} columns: shares from {real.min():.3f} to {real.max():.3f}\n")
        for epsilon in map(float, settings.eps.split(",")):
            runs = [judged(frame, schema, epsilon, seed) for seed in range(settings.seeds)]
            worst, spread, error, hold = np.transpose([numbers for numbers, _ in runs])
            levels = sorted({level for _, level in runs})
            lines.append(
                [
                    f"{columns}",
                    f"{epsilon:g}",
                    f"{worst.mean():.3f}",
                    f"{spread.mean():.2f} ({spread.min():.2f} to {spread.max():.2f})",
                    f"{error.mean():.4f}",
                    f"{hold.mean():.0%}",
                    ", ".join(f"{level} {sum(shown == level for _, shown in runs)}" for level in levels),
                ]
            )
            sys.stdout.write(markdown(lines[-1], []).splitlines()[0] + "\n")
            sys.stdout.flush()
    sys.stdout.write(markdown(HEADS, lines))


if __name__ == "__main__":
    main()
