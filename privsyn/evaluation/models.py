"""Models as judges: what is learnt from synthetic rows is tried on real ones, and tables are told apart.

Imported only when models are wanted: scikit-learn takes a second to load.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, mean_absolute_error, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

from privsyn.evaluation.chance import influence_on_auc, influence_on_r2
from privsyn.evaluation.encoding import Coded, View
from privsyn.marginals.types import Codes, Floats, Ints

MOST_ROWS = 100_000
"""A model learns from at most so many rows."""

MOST_CLASSES = 10
"""A target of more values keeps its commonest; the rest count as one."""

FEW_NUMBERS = 10
"""Numbers that take at most so many values are classes."""

MOST_CATEGORIES = 255
"""What gradient boosting can take; a longer list is handled as if it had an order."""

FEW_ROWS = 10
"""A class of fewer test rows is no part of AUC and F1: its own AUC is off by 0.1 and more by chance alone."""

L2 = 1.0
"""Penalty on the leaves of gradient boosting, XGBoost's default. Without it the value of a leaf is a sum of
gradients divided by a sum of p(1 - p). That sum nearly vanishes for a rare class, so the values explode. On
20,000 rows with rare classes of 30, 20, 10 and 5 rows the mean AUC is 0.58 without and 0.88 with it. Early
stopping alone gives 0.70. With two common classes the AUC changes by less than 0.003."""

PROPENSITY_ROWS = 10_000
SEED = 0


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be predicted, in the form all tables can be asked in.

    Parameters
    ----------
    target : str
    classes : integer array or None
        The class of each code of the target; None where a number is predicted.
    """

    target: str
    classes: Ints | None

    @classmethod
    def of(cls, view: View, real: Coded, target: str) -> Task:
        """Regression for a column of more than `FEW_NUMBERS` different numbers, else classification."""
        if target in real.numbers:
            numbers = real.numbers[target]
            if len(np.unique(numbers[~np.isnan(numbers)])) > FEW_NUMBERS:
                return cls(target, None)
        (axis,) = view.domain.axes((target,))
        size = view.domain.sizes[axis]
        counts = np.bincount(real.records.codes[:, axis], minlength=size)
        if (counts > 0).sum() <= MOST_CLASSES:
            return cls(target, np.arange(size))
        classes = np.full(size, MOST_CLASSES - 1)
        classes[np.argsort(-counts, kind="stable")[: MOST_CLASSES - 1]] = np.arange(MOST_CLASSES - 1)
        return cls(target, classes)

    def split(self, table: Coded) -> tuple[Codes, npt.NDArray]:
        """The other columns in codes, and the target; a row without the number to predict is left out."""
        records = table.records
        (axis,) = records.domain.axes((self.target,))
        features, codes = np.delete(records.codes, axis, axis=1), records.codes[:, axis]
        if self.classes is not None:
            return features, self.classes[codes]
        numbers = table.numbers[self.target]
        known = ~np.isnan(numbers)
        return features[known], numbers[known]


class Judged(NamedTuple):
    """A score, and the influence of each test row on it where that is worked out: see `chance`."""

    score: float
    influence: Floats = np.empty(0)


def learning(view: View, task: Task, train: Coded, test: Coded) -> dict[str, Judged]:
    """Scores on `test` of two models that learnt from `train`.

    A classifier has accuracy, AUC (the mean over classes, each against the rest, where there are more than
    two) and macro-F1, both over the classes of at least `FEW_ROWS` test rows; a regression R2 and the mean
    absolute error in the unit of the target.
    """
    known, answers = task.split(_at_most(train, MOST_ROWS))
    asked, truth = task.split(test)
    if not len(answers) or not len(truth):
        return {}
    scores: dict[str, Judged] = {}
    for name, model in _models(view, task, known, answers).items():
        with _quiet():
            model.fit(known, answers)
            judged = _judge_numbers if task.classes is None else _judge_classes
            scores |= {f"{name}_{score}": value for score, value in judged(model, asked, truth).items()}
    return scores


def guessing(task: Task, train: Coded, test: Coded) -> dict[str, Judged]:
    """The scores of a guess that looks at no other column, under the names that `learning` uses."""
    known, answers = task.split(train)
    asked, truth = task.split(test)
    if not len(answers) or not len(truth):
        return {}
    if task.classes is None:
        scores = _judge_numbers(DummyRegressor().fit(known, answers), asked, truth)
    else:
        scores = _judge_classes(DummyClassifier().fit(known, answers), asked, truth)
    return {f"{model}_{score}": value for model in ("boosting", "linear") for score, value in scores.items()}


@contextmanager
def _quiet() -> Iterator[None]:
    """One thread, and no word of a model that would want more steps: it is compared as it is.

    Threads that wait for a core that something else holds take many times as long as one thread alone.
    """
    with threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _models(view: View, task: Task, known: npt.NDArray, answers: npt.NDArray) -> dict[str, Any]:
    (axis,) = view.domain.axes((task.target,))
    sizes = np.delete(view.domain.sizes, axis)
    ordered = np.delete(view.domain.ordered, axis)
    nominal = (ordered == 0) & (sizes <= MOST_CATEGORIES)
    one_hot = OneHotEncoder(categories=[np.arange(size) for size in sizes], handle_unknown="ignore")
    options: dict[str, Any] = {
        "random_state": SEED,
        "early_stopping": False,
        "categorical_features": nominal,
        "l2_regularization": L2,
    }
    if task.classes is None:
        boosting: Any = HistGradientBoostingRegressor(**options)
        return {"boosting": boosting, "linear": make_pipeline(one_hot, Ridge())}
    if len(np.unique(answers)) < 2:
        return {"boosting": DummyClassifier(), "linear": DummyClassifier()}
    return {
        "boosting": HistGradientBoostingClassifier(**options),
        "linear": make_pipeline(one_hot, LogisticRegression(max_iter=300, C=1.0, random_state=SEED)),
    }


def _judge_classes(model: Any, asked: npt.NDArray, truth: npt.NDArray) -> dict[str, Judged]:
    chances = np.zeros((len(asked), int(max(truth.max(), model.classes_.max())) + 1))
    chances[:, model.classes_] = model.predict_proba(asked)
    guess = chances.argmax(axis=1)
    present, rows = np.unique(truth, return_counts=True)
    common = present[rows >= FEW_ROWS] if (rows >= FEW_ROWS).any() else present
    return {
        "accuracy": Judged(float(accuracy_score(truth, guess))),
        "auc": _auc(truth, chances, present, common),
        "f1": Judged(float(f1_score(truth, guess, labels=common, average="macro", zero_division=0))),
    }


def _auc(truth: npt.NDArray, chances: Floats, present: Ints, common: Ints) -> Judged:
    """Return the AUC of two classes, or else the mean over the common ones, each against the rest."""
    if len(present) < 2:
        return Judged(np.nan)
    if len(present) == 2:
        no, yes = present
        both = np.maximum(chances[:, no] + chances[:, yes], 1e-12)
        sides = [(truth == yes, chances[:, yes] / both)]
    else:
        sides = [(truth == one, chances[:, one]) for one in common]
    return Judged(
        float(np.mean([roc_auc_score(*side) for side in sides])),
        np.mean([influence_on_auc(*side) for side in sides], axis=0),
    )


def _judge_numbers(model: Any, asked: npt.NDArray, truth: npt.NDArray) -> dict[str, Judged]:
    guess = model.predict(asked)
    r2 = Judged(np.nan)
    if len(truth) > 1:
        r2 = Judged(float(r2_score(truth, guess)), influence_on_r2(truth, guess))
    return {"r2": r2, "mean_error": Judged(float(mean_absolute_error(truth, guess)))}


def propensity(view: View, real: Coded, other: Coded, *, in_bins: bool) -> float:
    """The AUC of gradient boosting at telling real rows from others; 0.5 where it cannot.

    It learns from half of the rows and is tried on the other half, as many real ones as others. It sees
    numbers in bins, or as they are: then what happens within a bin gives rows away, too.
    """
    rng = np.random.default_rng(SEED)
    rows = min(len(real), len(other), PROPENSITY_ROWS)
    if rows < 4:
        return np.nan
    drawn = [table.take(rng.permutation(len(table))[:rows]) for table in (real, other)]
    sides = [table.records.codes if in_bins else _as_they_are(table) for table in drawn]
    domain = view.domain
    nominal = [
        not bins and s <= MOST_CATEGORIES for bins, s in zip(domain.ordered, domain.sizes, strict=True)
    ]
    model = HistGradientBoostingClassifier(
        random_state=SEED, early_stopping=False, categorical_features=nominal
    )
    half = rows // 2
    truth = np.repeat([0, 1], rows - half)
    with _quiet():
        model.fit(np.vstack([side[:half] for side in sides]), np.repeat([0, 1], half))
        chances = model.predict_proba(np.vstack([side[half:] for side in sides]))
    return float(roc_auc_score(truth, chances[:, 1]))


def _as_they_are(table: Coded) -> Floats:
    """Numbers as they are, and the codes of what has none."""
    records = table.records
    columns = [table.numbers.get(name, records.codes[:, axis]) for axis, name in enumerate(records.domain)]
    return np.column_stack(columns).astype(np.float64)


def _at_most(table: Coded, rows: int) -> Coded:
    if len(table) <= rows:
        return table
    return table.take(np.random.default_rng(SEED).choice(len(table), rows, replace=False))
