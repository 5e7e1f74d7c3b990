"""What each stage of the default is worth: every row takes one away, or puts the published one in its place.

    python experiments/ablations.py --folder DATA [--data adult,nltcs] [--eps 0.2,1,5] [--seeds 0,1]

One tidy row a run goes to experiments/ablations.csv, the means to docs/ablations.md. Runs that the CSV holds
are not repeated.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from runs import DELTA, Variant, command, markdown, measured, parser

from privsyn.inference.consistency import norm_sub
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.structural_zeros import NO_ZEROS
from privsyn.methods.paper.gum import gradually_update

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "ablations.md"


def only_norm_sub(measured, expected, dispersions, margins):
    """Norm-sub and the margins, in place of the posterior means."""
    del expected, dispersions
    tables = [
        norm_sub(m.marginal.counts.ravel(), sides[0].total).reshape(m.marginal.counts.shape)
        for m, sides in zip(measured, margins, strict=True)
    ]
    started = (Marginal(m.marginal.domain, table + 1e-9) for m, table in zip(measured, tables, strict=True))
    return list(map(fit_margins, started, margins))


def no_classes(domain, one_ways, pairs, rng):
    """Independence, in place of the latent classes."""
    del rng
    one_way = dict(zip(domain.names, one_ways, strict=True))
    sides = [[one_way[name] for name in pair.attributes] for pair in pairs]
    return tuple(np.multiply.outer(a.counts, b.counts) / a.total for a, b in sides)


def gum(start, tables, rng, *, one_ways=(), sweeps=None, possible=NO_ZEROS, still=()):
    """Gradual updates, in place of annealing."""
    del sweeps, possible, still
    return gradually_update(start, tables, rng, rounds=100)


def start_alone(start, tables, rng, *, one_ways=(), sweeps=None, possible=NO_ZEROS, still=()):
    """Nothing after the tree."""
    del tables, rng, one_ways, sweeps, possible, still
    return start


def projected(counts, variance, total):
    """Norm-sub, in place of the posterior mean of a column's counts."""
    del variance
    return norm_sub(counts, total)


ABLATIONS = (
    Variant("the default"),
    Variant("scores with InDif's noise", {"privsyn.methods.budget.DEPARTURES": 0.02 / 16}),
    Variant("all groups, whatever the noise", {"privsyn.inference.selection.LEVELS": ()}),
    Variant("norm-sub, no denoising", {"privsyn.inference.prior.smoothing.denoise_all": only_norm_sub}),
    Variant("no latent classes", {"privsyn.inference.pairs.latent_class_pairs": no_classes}),
    Variant("dispersions not pooled", {"privsyn.inference.prior.dispersion.USUAL_SCATTER": 10.0}),
    Variant(
        "no second look", {"privsyn.methods.budget.SECOND_LOOK": 1e-9, "privsyn.methods.budget.SETS": 1e-9}
    ),
    Variant("no bigger tables", {"privsyn.methods.default.candidates": lambda domain, target: ()}),
    Variant(
        "one-ways always a tenth",
        {"privsyn.methods.budget.GROWTH": 0.0, "privsyn.methods.budget.HOPELESS": 1e9},
    ),
    Variant("columns by norm-sub", {"privsyn.inference.ordered.tails.posterior_counts": projected}),
    Variant("rare values merged everywhere", {"privsyn.methods.columns.MANY_VALUES": 0}),
    Variant("tree only", {"privsyn.synthesis.synthesise.finish": start_alone}),
    Variant("tree and GUM, no annealing", {"privsyn.synthesis.synthesise.finish": gum}),
    Variant("nothing moved together", {"privsyn.synthesis.annealing.TIGHT": 2.0}),
    Variant("as published", preset="paper"),
)


def main() -> None:
    """Run every ablation on every table, and write the rows and their means."""
    settings = parser(__doc__, data="adult,br2000,nltcs,hmeq", eps="0.2,1,5", seeds="0,1").parse_args()
    rows = measured(HERE / "ablations.csv", settings, ABLATIONS, models=False)
    PAGE.write_text(page(rows), encoding="utf-8")


def page(rows: pd.DataFrame) -> str:
    """The means of pair error over the default's, a line an ablation and a column a table and epsilon."""
    means = rows.pivot_table(index="variant", columns=["data", "epsilon"], values="pair_mean", sort=False)
    first, ratios = means.loc["the default"], means / means.loc["the default"]
    lines = [["pair error of the default", *(f"{x:.4f}" for x in first)]]
    lines += [[name, *(f"{x:.2f}" for x in row)] for name, row in ratios.drop(index="the default").iterrows()]
    heads = ["", *(f"{data} {epsilon:g}" for data, epsilon in means.columns)]
    return f"""# What each stage is worth

Mean pair error with one stage removed, over that of the default (above 1: worse without it), by table and
epsilon; delta {DELTA:g}, {rows["seed"].nunique()} seeds, privsyn {version("privsyn")}. Triples, queries
and seconds are in `experiments/ablations.csv`. Two seeds tell differences of 2 or 3 in a hundred from chance,
one seed of 5; smaller ones say nothing. Made by

    {command()}

{markdown(heads, lines)}"""


if __name__ == "__main__":
    main()
