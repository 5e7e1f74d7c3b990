"""Is the default ever worse than columns drawn alone, for the same promise? Tables of every shape.

    python experiments/robustness.py [--quick] [--seeds 3]

Each table has one hidden value behind all its columns, or none; sizes go from 100 to 1,000,000 rows, 1 to 60
columns, 2 to 1,000 values. Beside the default stand independent columns, with the whole budget spent on the
one-ways. The means go to docs/robustness.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from itertools import combinations, islice

import numpy as np
import pandas as pd
from runs import DELTA, write_section

from privsyn import Categorical, PrivSyn, Schema
from privsyn.inference.consistency import average_one_ways, estimate_total
from privsyn.marginals.domain import Domain, Records
from privsyn.private.accounting import rho_for
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import noise_source
from privsyn.synthesis.synthesise import synthesise
from privsyn.synthesis.targets import Targets

MOST_PAIRS = 50  # that are scored
# rows, columns, values, epsilon
SHAPES = (
    (100, 5, 2, 1.0),
    (100, 5, 50, 1.0),
    (100, 60, 2, 0.1),
    (1_000, 1, 1_000, 1.0),
    (1_000, 20, 10, 0.1),
    (1_000, 20, 10, 10.0),
    (5_000, 13, 32, 0.2),
    (20_000, 8, 100, 1.0),
    (20_000, 60, 8, 1.0),
    (20_000, 60, 2, 0.1),
    (50_000, 4, 1_000, 1.0),
    (50_000, 4, 1_000, 10.0),
    (1_000_000, 3, 5, 0.1),
    (1_000_000, 10, 20, 1.0),
)


def table(n: int, d: int, k: int, dependent: bool, rng: np.random.Generator) -> np.ndarray:
    """Codes of shape (n, d), uneven counts; half of the cells show the hidden value, if there is one."""
    shares = 1 / np.arange(1, k + 1)
    codes = rng.choice(k, (n, d), p=shares / shares.sum())
    if not dependent:
        return codes
    hidden = rng.choice(k, (n, 1), p=shares / shares.sum())
    return np.where(rng.random((n, d)) < 0.5, hidden, codes)


def default(codes: np.ndarray, k: int, epsilon: float, seed: int) -> np.ndarray:
    """Synthetic codes by the default."""
    frame = pd.DataFrame(codes, columns=[f"c{j}" for j in range(codes.shape[1])])
    schema = Schema({name: Categorical(list(range(k)), nullable=False) for name in frame})
    return PrivSyn(epsilon, DELTA, schema, seed=seed).fit(frame).sample(len(codes), seed=seed).to_numpy()


def alone(codes: np.ndarray, k: int, epsilon: float, seed: int) -> np.ndarray:
    """Synthetic codes by the one-ways, with the whole budget."""
    domain = Domain(tuple(f"c{j}" for j in range(codes.shape[1])), (k,) * codes.shape[1])
    private = PrivateTable(Records(domain, codes), noise_source(seed))
    noisy = private.one_ways(rho_for(epsilon, DELTA, "gaussian"))
    one_ways = average_one_ways(domain, noisy, estimate_total(noisy))
    return synthesise(Targets(one_ways), len(codes), np.random.default_rng(seed)).codes


def error(codes: np.ndarray, synthetic: np.ndarray, k: int) -> float:
    """Mean total variation over the pairs; over the columns, where there is one."""
    d = codes.shape[1]
    sets = list(islice(combinations(range(d), 2), MOST_PAIRS)) or [(0,)]
    weights = [np.array([k, 1]) if len(s) == 2 else np.array([1]) for s in sets]
    counts = [
        [np.bincount(x[:, list(s)] @ w, minlength=k ** len(s)) / len(x) for x in (codes, synthetic)]
        for s, w in zip(sets, weights, strict=True)
    ]
    return float(np.mean([np.abs(a - b).sum() / 2 for a, b in counts]))


def runs(shapes: tuple[tuple[int, int, int, float], ...], seeds: int) -> Iterator[dict[str, object]]:
    """One row a shape, the mean over seeds."""
    for n, d, k, epsilon in shapes:
        for dependent in (True, False):
            found = []
            for seed in range(seeds):
                codes = table(n, d, k, dependent, np.random.default_rng(seed))
                begun = time.perf_counter()
                synthetic = default(codes, k, epsilon, seed)
                seconds = time.perf_counter() - begun
                found.append(
                    (error(codes, synthetic, k), error(codes, alone(codes, k, epsilon, seed), k), seconds)
                )
            ours, independent, seconds = np.mean(found, axis=0)
            row = {"rows": n, "columns": d, "values": k, "epsilon": epsilon, "dependent": dependent}
            yield row | {
                "default": ours,
                "alone": independent,
                "ratio": ours / independent,
                "seconds": seconds,
            }


def main() -> None:
    """Run all shapes and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small tables only")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    settings = parser.parse_args()
    shapes = tuple(s for s in SHAPES if s[0] * s[1] <= 100_000) if settings.quick else SHAPES
    seeds = settings.seeds
    rows = pd.DataFrame(runs(shapes, seeds))
    lines = ["| " + " | ".join(rows.columns) + " |", "|---" * len(rows.columns) + "|"]
    for row in rows.itertuples(index=False):
        head = f"| {row.rows:,} | {row.columns} | {row.values:,} | {row.epsilon:g} | "
        about = "yes" if row.dependent else "no"
        lines.append(
            head + f"{about} | {row.default:.3f} | {row.alone:.3f} | {row.ratio:.2f} | {row.seconds:.1f} |"
        )
    write_section(
        "robustness.md",
        "robustness",
        f"""Delta {DELTA:g}, {seeds} seeds, privsyn {version("privsyn")}; made by

    {" ".join(["python experiments/robustness.py", *sys.argv[1:]])}

"""
        + "\n".join(lines),
    )


if __name__ == "__main__":
    main()
