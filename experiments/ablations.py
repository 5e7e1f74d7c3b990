"""What each stage of the default is worth: every row takes one away, or puts the published one in its place.

    python experiments/ablations.py --folder DATA [--data adult] [--eps 0.2,1,5] [--seeds 0] [--only STEP]

One tidy row a run goes to experiments/ablations.csv, the means to docs/algorithm.md. Runs that the CSV holds
are not repeated. Steps named by --only, those of ordered.py too, go to experiments/steps.csv and a table of
their own.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from ordered import STEPS
from runs import DELTA, Variant, command, markdown, measured, parser, write_section

from privsyn.inference.consistency import norm_sub
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal
from privsyn.methods.budget import DEPARTURES
from privsyn.methods.paper.gum import gradually_update

HERE = Path(__file__).parent
MEASURES = {
    "one_way_mean": "columns",
    "pair_mean": "pairs",
    "triple_mean": "triples",
    "query_mean": "queries",
    "query_max": "worst query",
    "spearman_mean": "Spearman",
    "pearson_mean": "Pearson",
    "wasserstein_mean": "Wasserstein",
    "spread_max": "spread",
}


def only_norm_sub(measured, expected, dispersions, margins, spreads=None):
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


def gum(start, targets, rng, *, sweeps=None, still=()):
    """Gradual updates, in place of annealing."""
    del sweeps, still
    return gradually_update(start, targets.tables, rng)


def start_alone(start, targets, rng, *, sweeps=None, still=()):
    """Nothing after the tree."""
    del targets, rng, sweeps, still
    return start


def projected(counts, variance, total):
    """Norm-sub, in place of the posterior mean of a column's counts."""
    del variance
    return norm_sub(counts, total)


def constant_share(rho, attributes, total):
    """The least share, however few the records."""
    del rho, attributes, total
    return DEPARTURES


TENTH = {"GROWTH": 0.0, "ENOUGH": 1e9, "HOPELESS": 1e9}
"""With these no noise raises the share of the one-ways."""

ABLATIONS = (
    Variant("the default"),
    Variant("scores with InDif's noise", {"privsyn.methods.budget.DEPARTURES": DEPARTURES / 16}),  # a quarter
    Variant("one share of departures", {"privsyn.methods.budget.departures_share": constant_share}),
    Variant("all groups, whatever the noise", {"privsyn.inference.selection.LEVELS": ()}),
    Variant("norm-sub, no denoising", {"privsyn.inference.prior.smoothing.denoise_all": only_norm_sub}),
    Variant("no latent classes", {"privsyn.inference.pairs.latent_class_pairs": no_classes}),
    Variant("dispersions not pooled", {"privsyn.inference.prior.dispersion.USUAL_SCATTER": 10.0}),
    Variant(
        "no second look", {"privsyn.methods.budget.SECOND_LOOK": 1e-9, "privsyn.methods.budget.SETS": 1e-9}
    ),
    Variant(
        "no bigger tables",
        {"privsyn.methods.default.candidates": lambda domain, target, important, first=(), largest=5: ()},
    ),
    Variant(
        "one-ways always a tenth",
        {f"privsyn.methods.budget.{name}": value for name, value in TENTH.items()},
    ),
    Variant("columns by norm-sub", {"privsyn.inference.ordered.tails.posterior_counts": projected}),
    Variant("rare values merged everywhere", {"privsyn.methods.columns.MANY_VALUES": 0}),
    Variant("tree only", {"privsyn.synthesis.synthesise.finish": start_alone}),
    Variant("tree and GUM, no annealing", {"privsyn.synthesis.synthesise.finish": gum}),
    Variant("nothing moved together", {"privsyn.synthesis.annealing.TIGHT": 2.0}),
    Variant("no blocks exchanged", {"privsyn.synthesis.swaps.TIED": ()}),
    Variant("as published", preset="paper"),
)


def main() -> None:
    """Run every ablation on every table, and write the rows and their means."""
    settings = parser(__doc__, data="adult,br2000,nltcs,hmeq", eps="0.2,1,5", seeds="0,1").parse_args()
    if settings.only:
        rows = measured(HERE / "steps.csv", settings, (*ABLATIONS, *STEPS), models=False)
        write_section("algorithm.md", "steps", steps_alone(rows))
    else:
        rows = measured(HERE / "ablations.csv", settings, ABLATIONS, models=False)
        write_section("algorithm.md", "ablations", section(rows))


def section(rows: pd.DataFrame) -> str:
    """The means of pair error over the default's, a line an ablation and a column a table and epsilon."""
    means = rows.pivot_table(index="variant", columns=["data", "epsilon"], values="pair_mean", sort=False)
    first, ratios = means.loc["the default"], means / means.loc["the default"]
    lines = [["pair error of the default", *(f"{x:.4f}" for x in first)]]
    lines += [[name, *(f"{x:.2f}" for x in row)] for name, row in ratios.drop(index="the default").iterrows()]
    heads = ["", *(f"{data} {epsilon:g}" for data, epsilon in means.columns)]
    return f"""Delta {DELTA:g}, {rows["seed"].nunique()} seeds, privsyn {version("privsyn")}; made by

    {command()}

{markdown(heads, lines)}"""


def steps_alone(rows: pd.DataFrame) -> str:
    """The geometric means of errors over the default's, and the table that is worst by each measure."""
    logs = np.log(rows.set_index(["variant", "data", "epsilon", "seed"]).reindex(columns=list(MEASURES)))
    default, logs = logs.xs("the default"), logs.drop("the default", level="variant")
    logs -= default.reindex(logs.index.droplevel("variant")).to_numpy()
    by_table = logs.groupby(["variant", "data"], sort=False)
    means, errors = by_table.mean(), by_table.sem()
    clear = means.where(means > 2 * errors)
    means = means[(by_table.agg(lambda x: x.abs().max()) > 0).any(axis=1)]  # the step changes these tables
    lines = []
    for name, of_tables in means.groupby("variant", sort=False):
        lines.append([name, *(f"{x:.3f}" for x in np.exp(of_tables.mean()))])
        worst = [column.dropna().nlargest(1) for _, column in clear.loc[name].items()]
        lines.append(
            ["worst table", *(f"{np.exp(x.iloc[0]):.2f} {x.index[0]}" if len(x) else "" for x in worst)]
        )
    return f"""Made by

    {command()}

{markdown(["", *MEASURES.values()], lines)}"""


if __name__ == "__main__":
    main()
