"""Models that learn from our rows beside a model that is trained on the private rows, and label tables alone.

    python experiments/direct.py BENCH [--data adult,hmeq] [--eps 0.2,1,5] [--seeds 0,1,2] [--methods target]

BENCH is the folder of the bench (coding.py, evaluate.py, raw_tables.py); the data lie beside it. Each method
has the same training rows, public domain, epsilon and delta. Its model is scored on the same test rows:

- direct: interpret's DPExplainableBoosting, untuned, with public bounds (`pip install interpret-core`);
- label tables: the counts of each column with the target by one Gaussian question, and boosting on the rows
  that `from_marginals` makes of them; numbers are cut into 32 equal bins;
- target: boosting, a linear model and a forest on rows of PrivSyn with `target=`, and on five times as many.

Runs have seeds: they are repeatable and NOT PRIVATE. One row a score goes to experiments/direct.csv, the
means to docs/results.md and docs/engineer.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import product
from math import exp, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from runs import DELTA, Row, markdown, resumed, write_section
from scipy.optimize import brentq
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder

from privsyn import Categorical, Distilled, Numerical, PrivSyn, Schema, from_marginals

ROWS = Path(__file__).parent / "direct.csv"
CODED = "adult,br2000,nltcs,hmeq,hotel-bookings"
RAW = "abalone,bean,wine,insurance,obesity,kc-house,characters,adult-raw"
STUDENTS = ("boosting", "linear", "forest", "distilled")
METHODS = ("real", "direct", "label tables", "target")
BINS = 32  # of a number, in label tables and in the linear model
TIMES = 5  # as many rows as were private, for the second score of each student
MOST_ROWS = 100_000  # of which so many times are made: in larger tables they change little


@dataclass(frozen=True)
class Problem:
    """Training and test rows of one table, and what is public of its columns.

    Parameters
    ----------
    columns : mapping of a name to its type
    target : str
    train, test : DataFrame
    nominal : tuple of str
        The features that boosting takes as categories.
    boosting : mapping
        Its options, those of the bench.
    """

    columns: Mapping[str, Categorical | Numerical]
    target: str
    train: pd.DataFrame
    test: pd.DataFrame
    nominal: tuple[str, ...]
    boosting: Mapping[str, Any]

    @property
    def features(self) -> list[str]:
        """All columns but the target."""
        return [name for name in self.columns if name != self.target]

    @property
    def is_regression(self) -> bool:
        """Whether the target is a number."""
        return isinstance(self.columns[self.target], Numerical)

    def bounds(self, name: str) -> tuple[float, float]:
        """Return the public bounds of a column, of a list those of the places in it."""
        kind = self.columns[name]
        return (kind.low, kind.high) if isinstance(kind, Numerical) else (0, len(kind.values) - 1)

    def numbers(self, rows: pd.DataFrame, name: str) -> np.ndarray:
        """Return a column as numbers: of a list, the place of each value."""
        kind = self.columns[name]
        if isinstance(kind, Numerical):
            return rows[name].to_numpy(float)
        return rows[name].map({value: place for place, value in enumerate(kind.values)}).to_numpy(int)

    def matrix(self, rows: pd.DataFrame) -> np.ndarray:
        """Return the features as numbers."""
        return np.column_stack([self.numbers(rows, name) for name in self.features])


def main() -> None:
    """Run what the command line asks for, and write the sections from all rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bench", type=Path)
    parser.add_argument("--data", type=lambda text: text.split(","), default=f"{CODED},{RAW}")
    parser.add_argument(
        "--eps", type=lambda text: [float(part) for part in text.split(",")], default="0.2,1,5"
    )
    parser.add_argument("--seeds", type=lambda text: [int(part) for part in text.split(",")], default="0,1,2")
    parser.add_argument("--methods", type=lambda text: text.split(","), default=",".join(METHODS))
    parser.add_argument(
        "--quick", action="store_true", help="of new runs, boosting on as many rows as were private alone"
    )
    settings = parser.parse_args()
    problems = cache(lambda name: read(settings.bench, name))
    keys = ("data", "method", "epsilon", "seed")
    cases = [
        dict(zip(keys, case, strict=True))
        for case in product(settings.data, settings.methods, settings.eps, settings.seeds)
        if case[1] != "real"
    ]
    if "real" in settings.methods:
        cases += [dict(zip(keys, (name, "real", 0.0, 0), strict=True)) for name in settings.data]
    rows = resumed(ROWS, cases, lambda case: score(problems(case["data"]), case, quick=settings.quick))
    write_section("results.md", "direct", section(rows))
    write_section("engineer.md", "students", students(rows))


def read(bench: Path, name: str) -> Problem:
    """Return a table in the codes of the bench, or as it is if it is one of the raw ones."""
    sys.path.insert(0, str(bench))
    columns: dict[str, Categorical | Numerical]
    if name in CODED.split(","):
        coded = import_module("coding").Problem(name)
        columns = {
            column: Categorical(list(range(size)), nullable=False)
            for column, size in zip(coded.columns, coded.sizes, strict=True)
        }
        target, test = coded.columns[coded.target], pd.DataFrame(coded.test, columns=coded.columns)
        kinds = zip(coded.columns, coded.kinds, coded.sizes, strict=True)
        nominal = tuple(c for c, kind, size in kinds if kind == "cat" and size <= 255 and c != target)
        return Problem(columns, target, coded.train_frame(), test, nominal, {"early_stopping": False})
    tables, folder = import_module("raw_tables"), bench.parent / "data" / "numbers"
    name = name.removesuffix("-raw")
    about = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    train, test = (tables.read(folder, name, part, about) for part in ("train", "test"))
    return Problem(dict(tables.schema(about).columns), about["target"], train, test, (), {})


def score(problem: Problem, case: Row, *, quick: bool) -> Iterator[Row]:
    """Return the score of the directly trained model, or of students that learn from a method's rows."""
    measure = "R2" if problem.is_regression else "AUC"
    epsilon, seed = case["epsilon"], case["seed"]
    students: Sequence[str] = STUDENTS[:1] if quick else STUDENTS
    if case["method"] == "direct":
        classes = 2 if problem.is_regression else len(problem.columns[problem.target].values)
        result = tested(problem, directly(problem, epsilon, seed)) if classes == 2 else np.nan
        yield {"measure": measure, "student": "direct", "times": 1, "score": result}
        return
    if case["method"] == "real":
        tables = {1: problem.train}
    elif case["method"] == "label tables":
        tables, students = {1: from_label_tables(problem, epsilon, seed)}, STUDENTS[:1]
    else:
        model = PrivSyn(epsilon, DELTA, Schema(problem.columns), target=problem.target, seed=seed)
        model.fit(problem.train)
        number = len(problem.train)
        times = (1, TIMES) if TIMES * number <= MOST_ROWS and not quick else (1,)
        tables = {factor: model.sample(factor * number, seed=seed) for factor in times}
    for times, table in tables.items():
        for student in students:
            result = tested(problem, taught(problem, student, table))
            yield {"measure": measure, "student": student, "times": times, "score": result}


def tested(problem: Problem, model: Any) -> float:
    """Return R2 on the test rows, or the mean AUC of each class against the others."""
    features, truth = problem.matrix(problem.test), problem.numbers(problem.test, problem.target)
    if problem.is_regression:
        return float(r2_score(truth, model.predict(features)))
    probabilities = dict(zip(model.classes_, model.predict_proba(features).T, strict=True))
    classes, rows = np.unique(truth, return_counts=True)
    aucs = [
        roc_auc_score(truth == label, probabilities[label]) if label in probabilities else 0.5
        for label in classes[rows < len(truth)]
    ]
    return float(np.mean(aucs))


def taught(problem: Problem, student: str, table: pd.DataFrame) -> Any:
    """Return a model that learnt from rows."""
    features, truth = problem.matrix(table), problem.numbers(table, problem.target)
    if not problem.is_regression and len(np.unique(truth)) < 2:
        return DummyClassifier().fit(features, truth)
    return untaught(problem, student).fit(features, truth)


def untaught(problem: Problem, student: str) -> Any:
    """Return a model that has not learnt yet."""
    if student == "distilled":
        return Distilled(untaught(problem, "boosting"), untaught(problem, "linear"))
    place = {
        "boosting": (HistGradientBoostingClassifier, HistGradientBoostingRegressor),
        "forest": (RandomForestClassifier, RandomForestRegressor),
        "linear": (LogisticRegression, Ridge),
    }[student][problem.is_regression]
    if student == "boosting":
        categories = np.isin(problem.features, problem.nominal)
        return place(random_state=0, categorical_features=categories, **problem.boosting)
    if student == "forest":
        return place(random_state=0, min_samples_leaf=5)
    numbers = [isinstance(problem.columns[name], Numerical) for name in problem.features]
    cut = KBinsDiscretizer(BINS, quantile_method="averaged_inverted_cdf")
    codes = OneHotEncoder(handle_unknown="ignore")
    by_column = make_column_transformer((cut, numbers), (codes, np.logical_not(numbers)))
    return make_pipeline(by_column, place() if problem.is_regression else place(max_iter=300))


def directly(problem: Problem, epsilon: float, seed: int) -> Any:
    """Return interpret's boosting machine, trained on the private rows: every column by its public order."""
    private, features = import_module("interpret.privacy"), problem.features
    options: dict[str, Any] = {
        "feature_types": ["continuous"] * len(features),
        "privacy_bounds": {index: problem.bounds(name) for index, name in enumerate(features)},
        "epsilon": epsilon,
        "delta": DELTA,
        "random_state": seed,
        "n_jobs": 1,
    }
    if problem.is_regression:
        low, high = problem.bounds(problem.target)
        model = private.DPExplainableBoostingRegressor(
            privacy_target_min=low, privacy_target_max=high, **options
        )
    else:
        model = private.DPExplainableBoostingClassifier(**options)
    return model.fit(problem.matrix(problem.train), problem.numbers(problem.train, problem.target))


def from_label_tables(problem: Problem, epsilon: float, seed: int) -> pd.DataFrame:
    """Return rows that know nothing but the noisy counts of each column with the target.

    One row more or less changes one cell of each of m tables by 1. So the Gaussian noise of each cell has the
    standard deviation sqrt(m) / mu.
    """
    sizes, cut = {}, {}
    for name, kind in problem.columns.items():
        low, high = problem.bounds(name)
        numbers = problem.numbers(problem.train, name)
        sizes[name] = BINS if isinstance(kind, Numerical) else len(kind.values)
        if isinstance(kind, Numerical):
            numbers = ((numbers - low) / (high - low) * BINS).clip(0, BINS - 1)
        cut[name] = numbers.astype(int)
    rng, sigma = np.random.default_rng(100 + seed), sqrt(len(problem.features)) / mu_for(epsilon, DELTA)
    tables = {}
    for name in problem.features:
        shape = sizes[name], sizes[problem.target]
        cells = np.ravel_multi_index((cut[name], cut[problem.target]), shape)
        counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
        tables[name, problem.target] = (counts + rng.normal(0, sigma, shape).round(), sigma**2)
    codes = Schema({name: Categorical(list(range(size)), nullable=False) for name, size in sizes.items()})
    made = from_marginals(codes, tables, seed=seed).sample(len(problem.train), seed=seed)
    for name, kind in problem.columns.items():
        low, high = problem.bounds(name)
        places = made[name].to_numpy(int)
        made[name] = (
            low + (high - low) * (places + rng.random(len(made))) / BINS
            if isinstance(kind, Numerical)
            else np.array(kind.values, object)[places]
        )
    return made


def mu_for(epsilon: float, delta: float) -> float:
    """Return the largest mu of Gaussian noise within epsilon and delta (Balle and Wang 2018, Theorem 8)."""

    def excess(mu: float) -> float:
        return norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta

    return float(brentq(excess, 1e-4, 20))


def section(rows: pd.DataFrame) -> str:
    """Return the mean score of each method's boosting, for each table and epsilon."""
    rows = rows[(rows["times"] == 1) & rows["student"].isin(["direct", STUDENTS[0]])]
    real = rows[rows["method"] == "real"].set_index("data")["score"]
    groups = rows.groupby(["data", "epsilon", "method"], sort=False)["score"]
    means, runs = groups.mean(), groups.count()
    lines = []
    for data, measure in rows[["data", "measure"]].drop_duplicates().itertuples(index=False):
        for epsilon in sorted(set(rows.loc[rows["data"] == data, "epsilon"]) - {0.0}):
            scores = [means.get((data, epsilon, method), np.nan) for method in METHODS[1:]]
            best = np.nanmax([*scores[:2], -np.inf])
            texts = [f"{number:.3f}".replace("nan", "-") for number in scores]
            if texts[-1] == "-":
                continue
            texts[-1] = f"**{texts[-1]}**" if scores[-1] >= best else texts[-1]
            ahead = f"{scores[-1] - best:+.3f}"
            of_real = f"{real.get(data, np.nan):.3f}".replace("nan", "-")
            number = str(runs[data, epsilon, "target"])
            lines.append([data, measure, f"{epsilon:g}", of_real, *texts, ahead, number])
    heads = ("table", "score", "epsilon", "real rows", *METHODS[1:-1], "our rows", "ahead by", "runs")
    return markdown(heads, lines)


def students(rows: pd.DataFrame) -> str:
    """Return the mean score of each student on our rows, and on five times as many, where all have one."""
    rows = rows[rows["method"] == "target"]
    runs = rows.groupby(["data", "epsilon", "seed"])["student"].transform("nunique")
    rows = rows[runs == len(STUDENTS)]
    means = rows.groupby(["data", "measure", "epsilon", "student", "times"], sort=False)["score"].mean()
    names = list(product((1, TIMES), STUDENTS))
    lines = []
    for data, measure, epsilon in dict.fromkeys(key[:3] for key in means.index):
        scores = [means.get((data, measure, epsilon, name, times), np.nan) for times, name in names]
        texts = [f"**{x:.3f}**" if x == np.nanmax(scores) else f"{x:.3f}" for x in scores]
        lines.append([data, measure, f"{epsilon:g}", *(text.replace("nan", "-") for text in texts)])
    heads = [name if times == 1 else f"{name}, {times} x" for times, name in names]
    return markdown(("table", "score", "epsilon", *heads), lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)  # bins of equal numbers; seeds that make noise repeatable
    main()
