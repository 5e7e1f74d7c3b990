"""How often intervals from draws hold: writes a section of docs/inference.md.

    python experiments/draws.py [--runs 200] [--draws 10] [--folder DATA]

Private tables are drawn from a population that is known: a Bayesian network, a Gaussian copula or, with a
folder, two large real tables. A model is fitted to each, and each statistic is estimated from every table of
its draws and pooled. Runs that draws.csv holds already are not repeated. Seeded, and so NOT
PRIVATE. It takes 10 minutes, and half an hour more for the real tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from known_truth import Copula, Network, chain
from runs import DELTA, Row, command, markdown, resumed, write_section
from tables import add_data_argument, read

from privsyn import PrivSyn, Schema, pool

HERE = Path(__file__).parent
ROWS_FILE = HERE / "draws.csv"
ROWS = 5000
POPULATION = 2_000_000
HEADS = (
    "population",
    "statistic",
    "pairs measured",
    "runs",
    "holds (population)",
    "holds (private table)",
    "bias / standard error",
    "width / width from real rows",
)

Estimate = tuple[float, float]
"""An estimate, and its variance as for a sample of rows."""
Statistic = tuple[str, Callable[..., Estimate]]


def mean(x: np.ndarray) -> Estimate:
    """Return the mean and its variance."""
    return float(x.mean()), float(x.var(ddof=1) / len(x))


def difference(x: np.ndarray, group: np.ndarray) -> Estimate:
    """Return the difference of the means of two groups."""
    (first, a), (second, b) = mean(x[group]), mean(x[~group])
    return first - second, a + b


def normal_correlation(x: np.ndarray, y: np.ndarray) -> Estimate:
    """Return Fisher's z of the correlation, with the variance that normal variables have."""
    return float(np.arctanh(np.corrcoef(x, y)[0, 1])), 1 / (len(x) - 3)


def correlation(x: np.ndarray, y: np.ndarray) -> Estimate:
    """Return Fisher's z of the correlation, and its variance by the delta method for any distribution."""
    a, b = ((z - z.mean()) / z.std() for z in (x.astype(float), y.astype(float)))
    r = float((a * b).mean())
    influence = (a * b - r * (a**2 + b**2) / 2) / (1 - r**2)
    return float(np.arctanh(r)), float(influence.var(ddof=1) / len(x))


def odds(x: np.ndarray, y: np.ndarray) -> Estimate:
    """Return the logarithm of the odds ratio of two conditions."""
    cells = np.array([[np.sum(a & b) for b in (y, ~y)] for a in (x, ~x)]) + 0.5
    logs = np.log(cells)
    return float(logs[0, 0] + logs[1, 1] - logs[0, 1] - logs[1, 0]), float((1 / cells).sum())


def logistic(y: np.ndarray, *columns: np.ndarray) -> Estimate:
    """Return the first coefficient of a logistic regression of `y` on the columns."""
    x = np.column_stack([np.ones(len(y)), *columns]).astype(float)
    beta = np.zeros(x.shape[1])
    for _ in range(12):
        p = 1 / (1 + np.exp(-x @ beta))
        information = x.T @ (x * (p * (1 - p))[:, np.newaxis])
        beta = beta + np.linalg.solve(information, x.T @ (y - p))
    return float(beta[1]), float(np.linalg.inv(information)[1, 1])


NETWORK: Mapping[str, Statistic] = {
    "mean of x1": ("x1", lambda a: mean(a)),
    "share, x0 = 0": ("x0", lambda a: mean(a == 0)),
    "share, x0 = 0 and x1 = 0": ("x0 x1", lambda a, b: mean((a == 0) & (b == 0))),
    "group difference, x1 by x0": ("x0 x1", lambda a, b: difference(b, a == 0)),
    "group difference, x3 by x0": ("x0 x3", lambda a, b: difference(b, a == 0)),
    "correlation, x0 x1": ("x0 x1", normal_correlation),
    "correlation, x0 x3": ("x0 x3", normal_correlation),
    "log odds ratio, x1 x2": ("x1 x2", lambda a, b: odds(a >= 2, b >= 2)),
    "log odds ratio, x0 x3": ("x0 x3", lambda a, b: odds(a >= 2, b >= 2)),
    "logistic, x2 on x1 (and x3)": ("x1 x2 x3", lambda a, b, c: logistic(b >= 2, a >= 2, c >= 2)),
    "logistic, x2 on x3 (and x1)": ("x1 x2 x3", lambda a, b, c: logistic(b >= 2, c >= 2, a >= 2)),
}
COPULA: Mapping[str, Statistic] = {
    "mean of a": ("a", lambda a: mean(a)),
    "share, a >= 70": ("a", lambda a: mean(a >= 70)),
    "share, a >= 70 and c < 40": ("a c", lambda a, c: mean((a >= 70) & (c < 40))),
    "group difference, a by b": ("a b", lambda a, b: difference(a, b >= 50)),
    "group difference, c by a": ("a c", lambda a, c: difference(c, a >= 75)),
    "correlation, a b (.79)": ("a b", normal_correlation),
    "correlation, a c (-.48)": ("a c", normal_correlation),
    "correlation, a d (0)": ("a d", normal_correlation),
    "log odds ratio, a c": ("a c", lambda a, c: odds(a >= 50, c >= 50)),
    "logistic, c on a (and d)": ("a c d", lambda a, c, d: logistic(c >= 50, a / 30, d / 30)),
    "logistic, c on d (and a)": ("a c d", lambda a, c, d: logistic(c >= 50, d / 30, a / 30)),
}
FAR: Mapping[str, Statistic] = {
    "mean of x1": NETWORK["mean of x1"],
    **{f"correlation, x0 x{k}": (f"x0 x{k}", normal_correlation) for k in (1, 2, 3)},
}
# The statistics of real tables were chosen before the first run, and no result changed them.
LARGE, RICH, MARRIED = 750_000, ">50K", "Married-civ-spouse"

ADULT: Mapping[str, Statistic] = {
    "mean of age": ("age", mean),
    "mean of hours": ("hours-per-week", mean),
    "mean of capital-gain": ("capital-gain", mean),
    "share, age >= 65": ("age", lambda a: mean(a >= 65)),
    "share, rich": ("income", lambda a: mean(a == RICH)),
    "share, rich women": ("sex income", lambda a, b: mean((a == "Female") & (b == RICH))),
    "group difference, hours by sex": ("hours-per-week sex", lambda a, b: difference(a, b == "Male")),
    "group difference, age by income": ("age income", lambda a, b: difference(a, b == RICH)),
    "group difference, education by income": (
        "education-num income",
        lambda a, b: difference(a, b == RICH),
    ),
    "group difference, education by race": ("education-num race", lambda a, b: difference(a, b == "White")),
    "correlation, education hours": ("education-num hours-per-week", correlation),
    "correlation, age hours": ("age hours-per-week", correlation),
    "correlation, age education": ("age education-num", correlation),
    "log odds ratio, income sex": ("income sex", lambda a, b: odds(a == RICH, b == "Male")),
    "log odds ratio, income married": ("income marital-status", lambda a, b: odds(a == RICH, b == MARRIED)),
    "log odds ratio, race sex": ("race sex", lambda a, b: odds(a == "White", b == "Male")),
    "logistic, income on sex (and education)": (
        "income sex education-num",
        lambda a, b, c: logistic(a == RICH, b == "Male", c),
    ),
    "logistic, income on education (and married)": (
        "income education-num marital-status",
        lambda a, b, c: logistic(a == RICH, b, c == MARRIED),
    ),
    "logistic, income on age (and hours)": (
        "income age hours-per-week",
        lambda a, b, c: logistic(a == RICH, b / 10, c / 10),
    ),
    "logistic, income on hours (and sex)": (
        "income hours-per-week sex",
        lambda a, b, c: logistic(a == RICH, b / 10, c == "Male"),
    ),
}
HOUSES: Mapping[str, Statistic] = {
    "mean of price": ("price", mean),
    "mean of sqft_living": ("sqft_living", mean),
    "mean of bedrooms": ("bedrooms", mean),
    "share, price >= 750,000": ("price", lambda a: mean(a >= LARGE)),
    "share, price >= 750,000 and grade >= 9": (
        "price grade",
        lambda a, b: mean((a >= LARGE) & (b >= 9)),
    ),
    "group difference, price by view": ("price view", lambda a, b: difference(a, b > 0)),
    "group difference, price by grade": ("price grade", lambda a, b: difference(a, b >= 9)),
    "group difference, sqft_living by floors": ("sqft_living floors", lambda a, b: difference(a, b >= 2)),
    "correlation, sqft_living price": ("sqft_living price", correlation),
    "correlation, grade price": ("grade price", correlation),
    "correlation, bedrooms price": ("bedrooms price", correlation),
    "correlation, lat price": ("lat price", correlation),
    "correlation, condition yr_built": ("condition yr_built", correlation),
    "log odds ratio, price grade": ("price grade", lambda a, b: odds(a >= LARGE, b >= 9)),
    "log odds ratio, price condition": ("price condition", lambda a, b: odds(a >= LARGE, b >= 4)),
    "logistic, price on sqft_living (and grade)": (
        "price sqft_living grade",
        lambda a, b, c: logistic(a >= LARGE, b / 1000, c),
    ),
    "logistic, price on grade (and condition)": (
        "price grade condition",
        lambda a, b, c: logistic(a >= LARGE, b, c),
    ),
    "logistic, price on bedrooms (and floors)": (
        "price bedrooms floors",
        lambda a, b, c: logistic(a >= LARGE, b, c),
    ),
}


@dataclass(frozen=True, eq=False)
class Rows:
    """A population that is a table."""

    frame: pd.DataFrame
    schema: Schema

    @classmethod
    def of(cls, folder: Path, name: str, *without: str) -> Rows:
        """Read a table, without some columns."""
        table = read(folder, name)
        columns = {name: kind for name, kind in table.schema.columns.items() if name not in without}
        return cls(table.frame[list(columns)], replace(table.schema, columns=columns))

    def draw(self, rows: int, rng: np.random.Generator) -> pd.DataFrame:
        """Return rows drawn with replacement; the whole table if `rows` is at least its length."""
        if rows >= len(self.frame):
            return self.frame
        return self.frame.iloc[rng.integers(0, len(self.frame), rows)].reset_index(drop=True)


@dataclass(frozen=True)
class Population:
    """A population that is known, and what is estimated of it."""

    source: Network | Copula | Rows
    statistics: Mapping[str, Statistic]
    epsilon: float
    share: float = 1.0  # of the runs
    rows: int = ROWS


MIXED = np.array([[1, 0.8, -0.5, 0], [0.8, 1, -0.4, 0], [-0.5, -0.4, 1, 0.3], [0, 0, 0.3, 1]])
POPULATIONS = {
    "network": Population(Network(chain(4, values=4, stay=0.6)), NETWORK, 1.0),
    "copula": Population(Copula(("a", "b", "c", "d"), MIXED), COPULA, 1.0),
    "network, 8 columns, epsilon 0.1": Population(Network(chain(8, values=4, stay=0.7)), FAR, 0.1, 0.3),
}


def real(folder: Path) -> dict[str, Population]:
    """Return two real tables as populations."""
    return {
        "adult, 20,000 rows": Population(Rows.of(folder, "adult"), ADULT, 1.0, 0.15, 20_000),
        "kc-house, 10,000 rows": Population(Rows.of(folder, "kc-house", "id"), HOUSES, 1.0, 0.15, 10_000),
    }


def estimates(table: pd.DataFrame, statistics: Mapping[str, Statistic]) -> pd.DataFrame:
    """The estimate and the variance of each statistic."""
    pairs = [f(*(table[name].to_numpy() for name in names.split())) for names, f in statistics.values()]
    return pd.DataFrame(pairs, index=list(statistics), columns=["estimate", "variance"])


def run(population: Population, truth: pd.Series, seed: int, draws: int) -> Iterator[Row]:
    """A row for each statistic."""
    private = population.source.draw(population.rows, np.random.default_rng(seed))
    real = estimates(private, population.statistics)
    model = PrivSyn(population.epsilon, DELTA, population.source.schema, seed=seed).fit(private)
    of_draws = [estimates(table, population.statistics) for table in model.draws(draws, seed=seed)]
    values, variances = ([table[name] for table in of_draws] for name in ("estimate", "variance"))
    pooled, near = pool(values, variances), pool(values, [0 * v for v in variances])
    measured = [set(columns) for columns in model.accuracy_.tables["columns"]]
    for name, (columns, _) in population.statistics.items():
        pairs = combinations(columns.split(), 2)
        width = 2 * 1.96 * np.sqrt(real.loc[name, "variance"])
        yield {
            "statistic": name,
            "measured": all(any(set(pair) <= table for table in measured) for pair in pairs),
            "holds": pooled.loc[name, "low"] <= truth[name] <= pooled.loc[name, "high"],
            "near": near.loc[name, "low"] <= real.loc[name, "estimate"] <= near.loc[name, "high"],
            "error": pooled.loc[name, "estimate"] - real.loc[name, "estimate"],
            "standard_error": pooled.loc[name, "standard_error"],
            "width": (pooled.loc[name, "high"] - pooled.loc[name, "low"]) / width,
        }


def section(rows: pd.DataFrame) -> str:
    """Return the page: what its columns are, and the means as Markdown."""
    lines = []
    keys = ["population", "statistic", "measured"]
    for (population, statistic, measured), group in rows.groupby(keys, sort=False):
        if len(group) < 10:
            continue
        numbers = [
            f"{len(group)}",
            f"{group['holds'].mean():.1%}",
            f"{group['near'].mean():.1%}",
            f"{group['error'].mean() / group['standard_error'].mean():+.2f}",
            f"{group['width'].mean():.1f}",
        ]
        lines.append([population, statistic, "yes" if measured else "no", *numbers])
    return f"{markdown(HEADS, lines)}\nMade by `{command()}`."


def main() -> None:
    """Run what has not been run, and write the page."""
    asking = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asking.add_argument("--runs", type=int, default=200)
    asking.add_argument("--draws", type=int, default=10)
    add_data_argument(asking)
    settings = asking.parse_args()
    truths = {}
    populations = POPULATIONS | ({} if settings.folder is None else real(settings.folder))
    for name, population in populations.items():
        table = population.source.draw(POPULATION, np.random.default_rng(12345))
        truths[name] = estimates(table, population.statistics)["estimate"]
    cases = (
        {"population": name, "draws": settings.draws, "seed": seed}
        for name, population in populations.items()
        for seed in range(round(settings.runs * population.share))
    )
    rows = resumed(
        ROWS_FILE,
        cases,
        lambda case: run(
            populations[case["population"]], truths[case["population"]], case["seed"], case["draws"]
        ),
    )
    write_section("inference.md", "draws", section(rows))


if __name__ == "__main__":
    main()
