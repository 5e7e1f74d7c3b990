"""What each step for ordered columns is worth: every row takes one step away.

    python experiments/ordered.py --folder DATA [--data households,kc-house] [--eps 1,5] [--seeds 0,1]

The table `households` is generated here; others are read as in tables.py. One row for each run goes to
experiments/ordered.csv, the means to docs/algorithm.md. Runs that the CSV holds are not repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from runs import DELTA, Row, Variant, command, markdown, parser, resumed, write_section
from scipy.stats import norm, wasserstein_distance
from tables import Table, read

from privsyn import Categorical, Numerical, PrivSyn, Schema
from privsyn.inference.ordered.tails import Tails

HERE = Path(__file__).parent

NAMES = ("age", "income", "rent", "savings", "hours")
CORRELATION = np.array(
    [
        [1.0, 0.35, 0.25, 0.50, -0.20],
        [0.35, 1.0, 0.75, 0.60, 0.40],
        [0.25, 0.75, 1.0, 0.35, 0.30],
        [0.50, 0.60, 0.35, 1.0, 0.05],
        [-0.20, 0.40, 0.30, 0.05, 1.0],
    ]
)
REGIONS = ("north", "east", "south", "west")


def households(rows: int = 20_000, seed: int = 0) -> Table:
    """Return generated households: a Gaussian copula with skewed columns, a spike at 0 and wide bounds."""
    rng = np.random.default_rng(seed)
    normal = rng.multivariate_normal(np.zeros(len(NAMES)), CORRELATION, size=rows)
    age, income, rent, savings, hours = norm.cdf(normal).T
    frame = pd.DataFrame(
        {
            "age": np.floor(18 + 72 * age**1.3).astype(int),
            "income": np.round(np.exp(10.3 + 0.6 * norm.ppf(income)), 2),
            "rent": (10 * np.round(np.exp(6.6 + 0.4 * norm.ppf(rent)) / 10)).astype(int),
            "savings": np.where(savings < 0.3, 0, np.exp(9 + 1.5 * norm.ppf(savings))).round(),
            "hours": np.floor(60 * hours**0.7).astype(int),
            "region": np.array(REGIONS)[np.digitize(normal[:, 2] + rng.normal(size=rows), [-1, 0, 1])],
        }
    )
    schema = Schema(
        {
            "age": Numerical(0, 120, integer=True, nullable=False),
            "income": Numerical(0, 1_000_000, decimals=2, nullable=False),
            "rent": Numerical(0, 20_000, integer=True, nullable=False),
            "savings": Numerical(0, 10_000_000, integer=True, nullable=False),
            "hours": Numerical(0, 168, integer=True, nullable=False),
            "region": Categorical(REGIONS, nullable=False),
        }
    )
    return Table("households", frame, schema, None)


def thirty_two(one_way, groups_of):
    """32 groups, in place of the resolution with the least expected error."""
    return [groups_of(one_way, 32)]


def each_code_alone(one_way, smoothness, *, apart=False):
    """One prior variance for all cells, in place of a smooth prior."""
    del smoothness, apart
    shares = np.maximum(one_way.counts, 1e-12 * max(one_way.total, 1.0))
    shares = shares / shares.sum()
    return np.diag(shares) - np.outer(shares, shares)


def independent(kendall, corner, shares):
    """Independence, in place of a copula with tail dependence."""
    del kendall, corner
    return np.outer(*shares)


def no_tails(merging, axes, ended=(), ranked=()):
    """Non-negative counts, in place of the posterior of the tails."""
    del axes, ended
    return Tails(merging, {}, ranked=ranked)


STEPS = (
    Variant("the default"),
    Variant("32 groups, whatever the noise", {"privsyn.inference.selection._levels": thirty_two}),
    Variant("32 groups a column, whatever the noise", {"privsyn.methods.columns.FEWEST_GROUPS": 32}),
    Variant("no concordances", {"privsyn.methods.budget.UNCERTAIN": 0.0}),
    Variant("no shrinkage by frequency", {"privsyn.inference.prior.smoothing.covariance": each_code_alone}),
    Variant("no copula", {"privsyn.inference.prior.smoothing.GAINED": 1e9}),
    Variant("no tail dependence", {"privsyn.inference.prior.smoothing.gumbel": independent}),
    Variant("coarse sums not kept", {"privsyn.inference.consistency.LEVELS": ()}),
    Variant(
        "no tables of three columns",
        {"privsyn.methods.default.candidates": lambda domain, target, important, first=(), largest=5: ()},
    ),
    Variant("no posterior of the tails", {"privsyn.methods.columns.Tails": no_tails}),
    Variant("tails by the posterior median", {"privsyn.inference.ordered.tails.LONG": -1.0}),
    Variant("wide last groups drawn evenly", {"privsyn.inference.ordered.tails.APART": float("-inf")}),
    Variant("all tables weigh the same", {"privsyn.synthesis.annealing.STRONGEST": 1.0}),
    Variant(
        "records not held to columns",
        {"privsyn.synthesis.annealing.COLUMNS": 0.0, "privsyn.synthesis.annealing.SUMS": 0.0},
    ),
)

SCORES = {
    "spearman": "Spearman error",
    "pearson": "Pearson error",
    "wasserstein": "Wasserstein distance / standard deviation",
    "spread": "largest log ratio of standard deviations",
}


def compared(schema: Schema, real: pd.DataFrame, synthetic: pd.DataFrame) -> Row:
    """Return the scores of the ordered columns; numbers of a list, such as identifiers, are none."""
    names = [name for name, column in schema.columns.items() if isinstance(column, Numerical)]
    real, synthetic = real[names].astype(float), synthetic[names].astype(float)
    errors: Row = {}
    for method in ("spearman", "pearson"):
        gap = np.abs(real.corr(method) - synthetic.corr(method)).to_numpy()
        errors[method] = float(np.nanmean(gap[np.triu_indices(len(names), 1)]))
    errors["wasserstein"] = float(
        np.mean([wasserstein_distance(real[name], synthetic[name]) / real[name].std() for name in names])
    )
    errors["spread"] = float(np.abs(np.log(synthetic.std() / real.std())).max())
    return errors


def main() -> None:
    """Run the default without each step on every table, and write the rows and their means."""
    settings = parser(__doc__, data="households,kc-house", eps="1,5", seeds="0,1").parse_args()
    tables = {
        name: households() if name == "households" else read(settings.folder, name) for name in settings.data
    }
    steps = {step.name: step for step in STEPS}

    def make(case: Row) -> Iterator[Row]:
        table = tables[case["data"]]
        with steps[case["variant"]].in_place():
            model = PrivSyn(case["epsilon"], DELTA, table.schema, seed=case["seed"]).fit(table.frame)
            yield compared(table.schema, table.frame, model.sample(len(table.frame), seed=case["seed"]))

    keys = ("data", "epsilon", "seed", "variant")
    runs = (
        dict(zip(keys, run, strict=True))
        for run in product(settings.data, settings.eps, settings.seeds, steps)
    )
    write_section("algorithm.md", "ordered", section(resumed(HERE / "ordered.csv", runs, make)))


def section(rows: pd.DataFrame) -> str:
    """Return a table for each score, with a line for each step and a column for each run."""
    parts = []
    for score, title in SCORES.items():
        means = rows.pivot_table(index="variant", columns=["data", "epsilon"], values=score, sort=False)
        heads = ["", *(f"{data} {epsilon:g}" for data, epsilon in means.columns)]
        lines = [[name, *(f"{x:.3f}" for x in row)] for name, row in means.iterrows()]
        parts.append(f"**{title[0].upper()}{title[1:]}**\n\n{markdown(heads, lines)}")
    text = "\n".join(parts)
    return f"""Delta {DELTA:g}, {rows["seed"].nunique()} seeds, privsyn {version("privsyn")}; made by

    {command()}

{text}"""


if __name__ == "__main__":
    main()
