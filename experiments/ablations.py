"""What each stage of the default is worth: every row takes one away, or puts the published one in its place.

    python experiments/ablations.py BENCH [--data adult,nltcs] [--eps 0.2,1,5] [--seeds 0,1] [--out FILE]

BENCH is the folder of the bench (bench.py, evaluate.py, domains/); the data lie beside it. One tidy row a run
goes to FILE (experiments/ablations.csv), the means to docs/ablations.md. An ablation changes the program in
passing, so this is the one experiment that reaches behind the public names.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privsyn.answers.denoising import fit_margins
from privsyn.answers.domain import Domain
from privsyn.answers.gum import gradually_update
from privsyn.answers.marginal import Marginal
from privsyn.answers.selection import allocate, dense_marg
from privsyn.answers.simplex import norm_sub

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "ablations.md"


def densemarg(variances, rho, *, weights=None):
    """DenseMarg and its split, in place of the convex step; phi is the departure that is expected."""
    del weights
    names = [(f"{i}a", f"{i}b") for i in range(len(variances))]
    sizes = tuple(size for table in variances for size in (table.size, 1))
    domain = Domain(tuple(name for pair in names for name in pair), sizes)
    phi = {pair: float(np.sqrt(2 / np.pi * v).sum()) for pair, v in zip(names, variances, strict=True)}
    chosen = set(dense_marg(phi, domain, rho))
    cells = np.array(
        [float(v.size) if pair in chosen else 0.0 for pair, v in zip(names, variances, strict=True)]
    )
    rhos = np.zeros(len(variances))
    rhos[cells > 0] = allocate(cells[cells > 0], rho)
    return rhos if chosen else np.full(len(variances), rho / len(variances))


def only_norm_sub(measurement, expected, spread, margins):
    """Norm-sub and the margins, in place of the posterior mean."""
    del expected, spread
    table = measurement.marginal
    counts = norm_sub(table.counts.ravel(), margins[0].total).reshape(table.counts.shape)
    return fit_margins(Marginal(table.domain, counts + 1e-9), margins)


def no_classes(domain, one_ways, pairs, rng):
    """Independence, in place of the latent classes."""
    del rng
    one_way = dict(zip(domain.names, one_ways, strict=True))
    sides = [[one_way[name] for name in pair.attributes] for pair in pairs]
    return tuple(np.multiply.outer(a.counts, b.counts) / a.total for a, b in sides)


def gum(start, tables, rng, sweeps=None):
    """Gradual updates, in place of annealed moves."""
    del sweeps
    return gradually_update(start, tables, rng, rounds=100)


def start_alone(start, tables, rng, sweeps=None):
    """Nothing after the tree."""
    del tables, rng, sweeps
    return start


@dataclass(frozen=True)
class Ablation:
    """One thing taken away: the names that are replaced for the run, by module and attribute."""

    name: str
    replaced: Mapping[str, Any] = field(default_factory=dict)
    preset: str = "default"


ABLATIONS = (
    Ablation("the default"),
    Ablation("scores with InDif's noise", {"privsyn.methods.split.DEPARTURES": 0.02 / 16}),
    Ablation("DenseMarg and its split", {"privsyn.methods.default.allocate_by_error": densemarg}),
    Ablation("norm-sub, no denoising", {"privsyn.answers.pairs.denoise": only_norm_sub}),
    Ablation("no latent classes", {"privsyn.answers.pairs.latent_class_pairs": no_classes}),
    Ablation("spreads not pooled", {"privsyn.answers.spread.USUAL_SCATTER": 10.0}),
    Ablation(
        "no second look", {"privsyn.methods.split.SECOND_LOOK": 1e-9, "privsyn.methods.split.SCORES": 1e-9}
    ),
    Ablation("no bigger tables", {"privsyn.methods.default.candidates": lambda domain: ()}),
    Ablation(
        "one-ways always a tenth",
        {"privsyn.methods.split.GROWTH": 0.0, "privsyn.methods.split.HOPELESS": 1e9},
    ),
    Ablation("large tables as heavy as small", {"privsyn.methods.default.SMALL_FIRST": 0.0}),
    Ablation("rare values merged everywhere", {"privsyn.methods.default.MANY_VALUES": 0}),
    Ablation("tree only", {"privsyn.answers.synthesis.finish": start_alone}),
    Ablation("tree and GUM, no annealing", {"privsyn.answers.synthesis.finish": gum}),
    Ablation("nothing moved together", {"privsyn.answers.finishing.TOGETHER": 2.0}),
    Ablation("as published", preset="paper"),
)


@contextmanager
def replaced(names: Mapping[str, Any]) -> Iterator[None]:
    """The named attributes of modules replaced, and put back."""
    before = {}
    for name, value in names.items():
        module, _, attribute = name.rpartition(".")
        before[name] = getattr(import_module(module), attribute)
        setattr(import_module(module), attribute, value)
    try:
        yield
    finally:
        for name, value in before.items():
            module, _, attribute = name.rpartition(".")
            setattr(import_module(module), attribute, value)


def main() -> None:
    """Run every ablation on every table, and write the rows and their means."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bench", type=Path)
    parser.add_argument("--data", default="adult,br2000,nltcs,hmeq")
    parser.add_argument("--eps", default="0.2,1,5")
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--out", type=Path, default=HERE / "ablations.csv")
    settings = parser.parse_args()
    sys.path.insert(0, str(settings.bench))
    rows = [
        row
        for data in settings.data.split(",")
        for epsilon in map(float, settings.eps.split(","))
        for seed in map(int, settings.seeds.split(","))
        for row in runs(data, epsilon, seed)
    ]
    table = pd.DataFrame(rows)
    table.to_csv(settings.out, index=False, float_format="%.5f")
    PAGE.write_text(page(table), encoding="utf-8")


def runs(data: str, epsilon: float, seed: int) -> Iterator[dict[str, Any]]:
    """One row an ablation."""
    import bench  # the folder that the command line names
    import evaluate
    from coding import Problem

    problem = Problem(data)
    for ablation in ABLATIONS:
        with replaced(ablation.replaced):
            codes, seconds = bench.run_ours(problem, epsilon, 1e-9, seed, ablation.preset, False)
        of = (codes, problem.train, problem.test, problem.sizes, problem.kinds, problem.target)
        scores = evaluate.evaluate(*of, ml=False)
        kept = {"pair": scores["tvd2_mean"], "triple": scores["tvd3_mean"], "query": scores["query_mae"]}
        about = {"data": data, "epsilon": epsilon, "seed": seed, "ablation": ablation.name}
        yield about | kept | {"seconds": seconds["run_s"], "version": version("privsyn")}


def page(rows: pd.DataFrame) -> str:
    """The means of pair error over the default's, a line an ablation and a column a table and epsilon."""
    means = rows.pivot_table(index="ablation", columns=["data", "epsilon"], values="pair", sort=False)
    ratios = means / means.loc["the default"]
    heads = [f"{data} {epsilon:g}" for data, epsilon in means.columns]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    first = means.loc["the default"]
    lines.append("| pair error of the default | " + " | ".join(f"{x:.4f}" for x in first) + " |")
    for name, row in ratios.drop(index="the default").iterrows():
        lines.append(f"| {name} | " + " | ".join(f"{x:.2f}" for x in row) + " |")
    seeds = rows["seed"].nunique()
    return (
        f"""# What each stage is worth

Mean pair error with one thing taken away, over that of the default (above 1: worse without it), by table and
epsilon; delta 1e-9, {seeds} seeds, privsyn {version("privsyn")}. Triples, queries and seconds are in
`experiments/ablations.csv`. Two seeds tell differences of 2 or 3 in a hundred from chance, no smaller ones.
Made by

    python experiments/ablations.py BENCH

"""
        + "\n".join(lines)
        + "\n"
    )


if __name__ == "__main__":
    main()
