"""Measure two numbers that agree in most rows and are unrelated in the others: do the others survive?

    python experiments/contaminated.py [--seeds 3] [--rows 5000,24000] [--eps 0.5,1,5] [--out rows.csv]

Of each cell of the grid: the mean error of Spearman's correlation of the synthetic rows; how many real
correlations lie in their 95 % interval, and how many estimates; the share of rows far off (ranks more than
half apart) over the real one, and how often this ratio is between 0.6 and 1.5.
The correlation, the share of unrelated rows and the margins vary. The tables are seeded: NOT PRIVATE.
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
import pandas as pd
from runs import DELTA, Row

from privsyn import Numerical, PrivSyn, Schema

CORRELATIONS, UNRELATED = (0.8, 0.9, 0.99), (0.0, 0.1, 0.2, 0.3)
MARGINS = {"normal": (100.0, lambda z: 50 + 10 * z), "lognormal": (1000.0, lambda z: np.exp(3 + 0.8 * z))}
FEW = 0.01  # of the rows: a smaller share of rows far off is not compared
FEW_ROWS = 1e-9  # keeps a ratio finite


def table(rows: int, correlation: float, unrelated: float, margin: str, seed: int) -> pd.DataFrame:
    """Return two columns, unrelated in some of the rows."""
    rng, (high, of) = np.random.default_rng(seed), MARGINS[margin]
    a, other, alone = rng.normal(size=(3, rows))
    b = np.where(rng.random(rows) < unrelated, alone, correlation * a + np.sqrt(1 - correlation**2) * other)
    return pd.DataFrame({"a": of(a), "b": of(b)}).clip(0, high)


def far_off(numbers: pd.DataFrame) -> float:
    """Return the share of rows whose ranks are more than half of the rows apart."""
    ranks = numbers.rank(pct=True)
    return float(((ranks["a"] - ranks["b"]).abs() > 0.5).mean())


def run(one: Row, seed: int) -> Row:
    """Return what one release keeps."""
    real = table(one["rows"], one["correlation"], one["unrelated"], one["margin"], seed)
    bounds = Numerical(0, MARGINS[one["margin"]][0], nullable=False)
    model = PrivSyn(one["epsilon"], DELTA, Schema({"a": bounds, "b": bounds}), seed=seed).fit(real)
    synthetic, found = model.sample(seed=seed), model.accuracy_.correlations.iloc[0]
    truth = real.corr("spearman").iloc[0, 1]
    return {
        "error": abs(synthetic.corr("spearman").iloc[0, 1] - truth),
        "estimate off": abs(found["estimate"] - truth),
        "holds": found["low"] <= truth <= found["high"],
        "width": found["high"] - found["low"],
        "inside": found["low"] <= found["estimate"] <= found["high"],
        "far real": far_off(real),
        "far": far_off(synthetic),
    }


def main() -> None:
    """Print a line for each cell of the grid, and the means."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=lambda text: list(map(int, text.split(","))), default="5000,24000")
    parser.add_argument("--eps", type=lambda text: list(map(float, text.split(","))), default="0.5,1,5")
    parser.add_argument("--out")
    given = parser.parse_args()
    grid = product(given.rows, given.eps, CORRELATIONS, UNRELATED, MARGINS)
    keys = ["rows", "epsilon", "correlation", "unrelated", "margin"]
    asked = [dict(zip(keys, one, strict=True)) for one in grid]
    runs = enumerate(one for one in asked for _ in range(given.seeds))  # no two share their noise
    rows = pd.DataFrame([one | run(one, number) for number, one in runs])
    if given.out:
        rows.to_csv(given.out, index=False)
    rows["ratio"] = (rows["far"] / rows["far real"].clip(FEW_ROWS)).where(rows["far real"] > FEW)
    rows["kept"] = rows["ratio"].between(0.6, 1.5).where(rows["ratio"].notna())
    names = ["error", "holds", "inside", "ratio", "kept"]
    for by in (keys[:4], keys[:2]):
        print(rows.groupby(by)[names].mean().astype(float).round(4).to_string())  # noqa: T201
    print(rows[names].astype(float).mean().round(4).to_string())  # noqa: T201


if __name__ == "__main__":
    main()
