"""Tables measured by OpenDP against our own: as good a synthetic table? The numbers are in docs/inference.md.

    python experiments/elsewhere.py [--folder DATA] [--runs 5]

Eight columns of Adult. `PrivSyn` spends epsilon 1 as it chooses. OpenDP's Gaussian mechanism and the noise of
this program spend the same rho in equal parts on all one-way tables and pairs, and `from_marginals` makes a
release of each. Their noise has no seed.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np
import opendp.prelude as dp
import pandas as pd
from runs import DELTA
from tables import add_data_argument, read

from privsyn import Categorical, PrivSyn, Schema, evaluate, from_marginals
from privsyn.private.noise import ExactGaussian

COLUMNS = (
    *("workclass", "education", "marital-status", "occupation", "relationship"),
    *("race", "sex", "income"),
)


def exact(table: pd.DataFrame, columns: tuple[str, ...], schema: Schema) -> np.ndarray:
    """Return the counts of a table. One row more or less moves one count by 1."""
    levels = [list(schema.columns[name].values) for name in columns]
    codes = [pd.Categorical(table[name], of).codes for name, of in zip(columns, levels, strict=True)]
    shape = [len(of) for of in levels]
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape))).reshape(shape)


def by_opendp(counts: np.ndarray, sigma: float) -> np.ndarray:
    """Return the counts with OpenDP's noise."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    return np.reshape(dp.m.make_gaussian(*space, scale=sigma)(counts.ravel().tolist()), counts.shape)


def by_privsyn(counts: np.ndarray, sigma: float) -> np.ndarray:
    """Return the counts with the noise of this program."""
    return counts + ExactGaussian().draw(sigma, counts.size).reshape(counts.shape)


def main() -> None:
    """Print the mean error of pairs of each run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_argument(parser)
    parser.add_argument("--runs", type=int, default=5)
    settings = parser.parse_args()
    dp.enable_features("contrib")
    table = read(settings.folder, "adult").frame[list(COLUMNS)].fillna("?")
    schema = Schema({name: Categorical(sorted(table[name].unique()), nullable=False) for name in COLUMNS})
    asked = [*((name,) for name in COLUMNS), *combinations(COLUMNS, 2)]
    errors = []
    for seed in range(settings.runs):
        own = PrivSyn(1.0, DELTA, schema, seed=seed).fit(table)
        sigma = float(np.sqrt(len(asked) / (2 * own.ledger_.rho)))
        releases = [own.release_]
        for noisy in (by_privsyn, by_opendp):
            counts = {names: (noisy(exact(table, names, schema), sigma), sigma**2) for names in asked}
            releases.append(from_marginals(schema, counts, "epsilon 1", seed=seed))
        made = [release.sample(len(table), seed=seed) for release in releases]
        errors.append([evaluate(table, one, schema, models=False).pair_mean.synthetic for one in made])
        pairs = (own.accuracy_.tables["order"] == 2).sum()
        print(f"run {seed}: {pairs} of {len(asked) - len(COLUMNS)} pairs", errors[-1], flush=True)  # noqa: T201
    means, spread = np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1)
    for name, mean, sd in zip(("PrivSyn", "same tables, our noise", "OpenDP"), means, spread, strict=True):
        print(f"{name}: {mean:.4f} +- {sd:.4f}")  # noqa: T201


if __name__ == "__main__":
    main()
