"""A table that grows by month, published each month: a table of docs/composition.md.

    python experiments/continual.py --folder DATA [--months 2,12] [--seeds 0,1]

Rows are shuffled and cut into months of equal size. Nobody is in two months. Seeded, and so NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import sys
from statistics import mean
from unittest import mock

import numpy as np
import pandas as pd
from runs import DELTA, markdown
from tables import add_data_argument, read

from privsyn import Categorical, PrivSyn, Release, Schema, evaluate
from privsyn.inference import pairs
from privsyn.marginals.domain import Domain
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal
from privsyn.private.accounting import epsilon_for, rho_for

EPSILON = 1.0
HEADS = ("table", "months", "one run at the end", "a run for each month's rows", "all rows again each month")
PRIOR = ("table, in halves", "second half alone", "first half's release as prior", "the same, twice")
DRAWN = 300_000  # rows of the first release, from which its pairs are counted
INDEPENDENT = 0.03  # share of independence in a prior, so that no cell is impossible


def fitted(frame: pd.DataFrame, schema: Schema, epsilon: float, seed: int) -> Release:
    """One release."""
    return PrivSyn(epsilon, DELTA, schema, seed=seed).fit(frame).release_


def error(frame: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema) -> float:
    """Mean total variation of all pairs."""
    return evaluate(frame, synthetic, schema, models=False).pair_mean.synthetic


def months(frame: pd.DataFrame, schema: Schema, parts: int, seed: int) -> tuple[float, float]:
    """Errors of the whole table: of all months' samples together, and of the last run on all rows."""
    cut = np.array_split(np.random.default_rng(seed).permutation(len(frame)), parts)
    made = [
        fitted(frame.iloc[rows].reset_index(drop=True), schema, EPSILON, seed + 100 * part).sample(seed=seed)
        for part, rows in enumerate(cut)
    ]
    share = epsilon_for(rho_for(EPSILON, DELTA, "gaussian") / parts, DELTA, "gaussian")
    last = fitted(frame, schema, share, seed).sample(seed=seed)
    return error(frame, pd.concat(made, ignore_index=True), schema), error(frame, last, schema)


def with_prior(frame: pd.DataFrame, seed: int) -> tuple[float, float, float]:
    """Errors of the second half, with what is known from the first in place of independence."""
    frame = frame.sample(frac=1, random_state=seed, ignore_index=True).fillna("none").astype(str)
    schema = Schema({name: Categorical(sorted(frame[name].unique()), nullable=False) for name in frame})
    half = len(frame) // 2
    first, second = frame[:half], frame[half:].reset_index(drop=True)
    release = fitted(first, schema, EPSILON, seed)
    codes = release.codec.encode(release.sample(DRAWN, seed=seed)).codes
    product = pairs.product

    def from_prior(domain: Domain, sides: tuple[Marginal, ...]) -> Marginal:
        positions = codes[:, release.codec.domain.axes(domain.names)]
        counts = np.bincount(np.ravel_multi_index(tuple(positions.T), domain.shape), minlength=domain.cells)
        scaled = counts.reshape(domain.shape) * (sides[0].total / DRAWN)
        expected = (1 - INDEPENDENT) * scaled + INDEPENDENT * product(domain, sides).counts
        return fit_margins(Marginal(domain, expected), sides)

    def again(domain: Domain, margins: tuple[Marginal, ...], tables: tuple[Marginal, ...], _: object) -> list:
        marginals = dict(zip(domain.names, margins, strict=True))
        return [from_prior(t.domain, tuple(marginals[name] for name in t.attributes)).counts for t in tables]

    def run() -> float:
        return error(second, fitted(second, schema, EPSILON, seed + 1).sample(len(second), seed=seed), schema)

    alone = run()
    with mock.patch.object(pairs, "product", from_prior):
        once = run()
        with (
            mock.patch.object(pairs, "latent_class_pairs", again),
            mock.patch.object(pairs, "parameters", return_value=0),
        ):
            return alone, once, run()


def main() -> None:
    """Both tables of the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_argument(parser)
    parser.add_argument(
        "--months", type=lambda text: [int(part) for part in text.split(",")], default=[2, 12]
    )
    parser.add_argument("--seeds", type=lambda text: [int(part) for part in text.split(",")], default=[0, 1])
    options = parser.parse_args()
    growing, prior = [], []
    for name in ("nltcs", "adult"):
        table = read(options.folder, name)
        listed = [c for c, column in table.schema.columns.items() if isinstance(column, Categorical)]
        tried = [with_prior(table.frame[listed], seed) for seed in options.seeds]
        prior.append(
            [f"{name}, {len(listed)} columns", *(f"{mean(e):.4f}" for e in zip(*tried, strict=True))]
        )
        at_once = [months(table.frame, table.schema, 1, seed)[0] for seed in options.seeds]
        for parts in options.months:
            errors = [months(table.frame, table.schema, parts, seed) for seed in options.seeds]
            shown = [mean(at_once), *map(mean, zip(*errors, strict=True))]
            growing.append([name, str(parts), *(f"{e:.4f}" for e in shown)])
    sys.stdout.write(f"{markdown(HEADS, growing)}\n{markdown(PRIOR, prior)}")


if __name__ == "__main__":
    main()
