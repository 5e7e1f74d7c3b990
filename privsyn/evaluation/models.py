"""Scores by models: train on synthetic rows and test on real ones, or classify rows as real or synthetic.

Imported only when models are trained: scikit-learn takes a second to load.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata
from sklearn import metrics
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler
from threadpoolctl import threadpool_limits

from privsyn.evaluation.comparison import DEFAULT_LEARNERS
from privsyn.evaluation.distilled import Distilled
from privsyn.evaluation.encoding import Coded, View
from privsyn.marginals.domain import Attributes, Domain, Floats, Ints, Mask

MOST_ROWS = 100_000
"""Largest number of training rows."""

MOST_CLASSES = 10
"""Largest number of classes. Of more values the most frequent are kept; the others form one class."""

FEW_NUMBERS = 10
"""A numeric target with at most this number of distinct values is classified."""

MOST_CATEGORIES = 255
"""Largest number of categories that gradient boosting accepts; longer lists are treated as ordered."""

FEW_ROWS = 10
"""A class of fewer test rows is left out of AUC and F1: its own AUC varies by 0.1 and more by chance."""

L2 = 1.0
"""Penalty on the leaves of gradient boosting, XGBoost's default. Without it the value of a leaf is a sum of
gradients divided by a sum of p(1 - p). That sum nearly vanishes for a rare class, so the values explode. On
20,000 rows with rare classes of 30, 20, 10 and 5 rows the mean AUC is 0.58 without and 0.88 with it. Early
stopping alone gives 0.70. With two common classes the AUC changes by less than 0.003."""

KNOTS = 5
"""Knots of the splines of a number in a linear model, at quantiles. Mean score of 15 tables with 3, 4, 5 and
8 knots: 0.854, 0.858, 0.860 and 0.857 from real rows, 0.774, 0.771, 0.769 and 0.756 from synthetic ones.
Standardised numbers in place of splines lose 0.08 on diamonds, and one wild number of a synthetic row brought
the R2 of two tables below -9,000."""

BINS = 10
"""Bins of a predicted probability."""

PROPENSITY_ROWS = 10_000
FOLDS, TOLD_APART = 3, 8000
"""Parts of the rows for a model that tells persons apart, and most persons of either side."""
SEED = 0


@dataclass(frozen=True, eq=False)
class Task:
    """What is predicted: the target, and its classes if it is classified.

    Parameters
    ----------
    target : str
    classes : integer array or None
        The class of each code of the target; None where a number is predicted.
    leave_out : tuple of str
        Columns from which models do not learn.
    """

    target: str
    classes: Ints | None
    leave_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, view: View, real: Coded, target: str, leave_out: tuple[str, ...] = ()) -> Task:
        """Choose regression for more than `FEW_NUMBERS` distinct numbers, else classification."""
        if target in real.numbers:
            numbers = real.numbers[target]
            if len(np.unique(numbers[~np.isnan(numbers)])) > FEW_NUMBERS:
                return cls(target, None, leave_out)
        (axis,) = view.domain.axes((target,))
        size = view.domain.sizes[axis]
        counts = np.bincount(real.records.codes[:, axis], minlength=size)
        if (counts > 0).sum() <= MOST_CLASSES:
            return cls(target, np.arange(size), leave_out)
        classes = np.full(size, MOST_CLASSES - 1)
        classes[np.argsort(-counts, kind="stable")[: MOST_CLASSES - 1]] = np.arange(MOST_CLASSES - 1)
        return cls(target, classes, leave_out)

    def features(self, domain: Domain) -> Attributes:
        """Return the columns that models learn from."""
        return tuple(name for name in domain.names if name not in (self.target, *self.leave_out))

    def split(self, table: Coded, *, in_bins: bool = False) -> tuple[npt.NDArray, npt.NDArray]:
        """Return the features and the target; rows without a target are left out.

        Numbers are exact, or binned, and other columns are in codes. Models learn from exact numbers:
        in bins real rows would teach as little as synthetic ones, which would hide what the bins cost.
        """
        records = table.records
        (axis,) = records.domain.axes((self.target,))
        cells = records.codes if in_bins else exact_numbers(table)
        features = cells[:, records.domain.axes(self.features(records.domain))]
        codes = records.codes[:, axis]
        if self.classes is not None:
            return features, self.classes[codes]
        numbers = table.numbers[self.target]
        present = ~np.isnan(numbers)
        return features[present], numbers[present]


class ModelScore(NamedTuple):
    """A score; for AUC and R2 the influence of each test row on it: see predictions.py.

    Recall and calibration also have a number of each class: the recall, and the mean predicted probability.
    """

    value: float
    influence: Floats = np.empty(0)
    of_classes: Floats = np.empty(0)


def learning(
    view: View, task: Task, train: Coded, test: Coded, names: Sequence[str] = DEFAULT_LEARNERS
) -> dict[str, ModelScore]:
    """Return the scores on `test` of models trained on `train`, by ``model_score``.

    The models learn from exact numbers and from the codes of other columns: see `Task.split`.

    A classifier has accuracy, AUC, macro-F1, mean recall and calibration error. With more than two classes
    the AUC is the mean over classes, each against the rest. AUC, F1 and recall are over the classes of at
    least `FEW_ROWS` test rows. A regression has R2 and the mean absolute error in the unit of the target.
    """
    if len(train) > MOST_ROWS:
        train = train.take(np.random.default_rng(SEED).choice(len(train), MOST_ROWS, replace=False))
    features, targets = task.split(train)
    test_features, truth = task.split(test)
    if not len(targets) or not len(truth):
        return {}
    evaluate = _score_regression if task.classes is None else _score_classes
    scores: dict[str, ModelScore] = {}
    for name, model in _models(view, task, train.numbers.keys(), targets, names).items():
        with _quiet():
            model.fit(features, targets)
            scores |= {f"{name}_{key}": score for key, score in evaluate(model, test_features, truth).items()}
    return scores


def guessing(
    task: Task, train: Coded, test: Coded, names: Sequence[str] = DEFAULT_LEARNERS
) -> dict[str, ModelScore]:
    """Return the scores of a prediction that uses no other column, under the names of `learning`."""
    features, targets = task.split(train)
    test_features, truth = task.split(test)
    if not len(targets) or not len(truth):
        return {}
    if task.classes is None:
        scores = _score_regression(DummyRegressor().fit(features, targets), test_features, truth)
    else:
        scores = _score_classes(DummyClassifier().fit(features, targets), test_features, truth)
    return {f"{model}_{score}": value for model in names for score, value in scores.items()}


@contextmanager
def _quiet() -> Iterator[None]:
    """Use one thread, and silence convergence warnings: models are compared with the default effort.

    On a busy machine several threads take many times as long as one, because they wait for each other.
    """
    with threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _models(
    view: View, task: Task, numbers: Collection[str], targets: npt.NDArray, names: Sequence[str]
) -> dict[str, Any]:
    """Return the named models, not fitted; one that guesses if there is but one class to learn from."""
    if task.classes is not None and len(np.unique(targets)) < 2:
        return {name: DummyClassifier() for name in names}
    features = task.features(view.domain)
    axes = list(view.domain.axes(features))
    sizes, ordered = np.array(view.domain.sizes)[axes], np.array(view.domain.ordered)[axes]
    nominal = (ordered == 0) & (sizes <= MOST_CATEGORIES)
    is_number = np.isin(features, [*numbers])
    columns = _linear_columns(np.flatnonzero(is_number), np.flatnonzero(~is_number), sizes)
    options: dict[str, Any] = {
        "random_state": SEED,
        "early_stopping": False,
        "categorical_features": nominal,
        "l2_regularization": L2,
    }
    models: dict[str, Any] = {}
    trees: dict[str, Any] = {"min_samples_leaf": 5, "random_state": SEED}
    layer: dict[str, Any] = {"hidden_layer_sizes": (64,), "max_iter": 60, "random_state": SEED}
    if task.classes is None:
        scaled = TransformedTargetRegressor(MLPRegressor(**layer), transformer=StandardScaler())
        models["boosting"] = HistGradientBoostingRegressor(**options)
        models["linear"] = make_pipeline(columns, Ridge())
        models["forest"] = RandomForestRegressor(**trees)
        models["mlp"] = make_pipeline(columns, scaled)
    else:
        logistic = LogisticRegression(max_iter=300, C=1.0, random_state=SEED)
        models["boosting"] = HistGradientBoostingClassifier(**options)
        models["linear"] = make_pipeline(columns, logistic)
        models["forest"] = RandomForestClassifier(**trees)
        models["mlp"] = make_pipeline(columns, MLPClassifier(**layer))
    models["distilled"] = Distilled(models["boosting"], models["linear"])
    return {name: models[name] for name in names}


def _linear_columns(numbers: Ints, categories: Ints, sizes: Ints) -> ColumnTransformer:
    """Return what turns features into columns of a linear model.

    Parameters
    ----------
    numbers, categories : integer arrays
        The places of exact numbers and of codes among the features.
    sizes : integer array
        The number of codes of each feature.

    Notes
    -----
    A category becomes one column for each code. A number becomes cubic splines between `KNOTS` quantiles, and
    a column that says whether it is missing. Beyond the outermost quantiles the splines are constant, so that
    one wild number of a synthetic row bends nothing far away.
    """
    one_hot = OneHotEncoder(categories=[np.arange(sizes[k]) for k in categories], handle_unknown="ignore")
    parts: list[tuple[str, Any, Ints]] = [("categories", one_hot, categories)] if len(categories) else []
    if len(numbers):
        filled = SimpleImputer(strategy="median", keep_empty_features=True)
        splines = make_pipeline(filled, SplineTransformer(KNOTS, knots="quantile", extrapolation="constant"))
        parts += [("numbers", splines, numbers), ("missing", MissingIndicator(features="all"), numbers)]
    return ColumnTransformer(parts)


def _score_classes(model: Any, features: npt.NDArray, truth: npt.NDArray) -> dict[str, ModelScore]:
    probabilities = np.zeros((len(features), int(max(truth.max(), model.classes_.max())) + 1))
    probabilities[:, model.classes_] = model.predict_proba(features)
    guess = probabilities.argmax(axis=1)
    classes = np.arange(probabilities.shape[1])
    present, rows = np.unique(truth, return_counts=True)
    common = present[rows >= FEW_ROWS] if (rows >= FEW_ROWS).any() else present
    return {
        "accuracy": ModelScore(float(metrics.accuracy_score(truth, guess))),
        "auc": _auc(truth, probabilities, present, common),
        "f1": ModelScore(
            float(metrics.f1_score(truth, guess, labels=common, average="macro", zero_division=0))
        ),
        "recall": ModelScore(
            float(metrics.recall_score(truth, guess, labels=common, average="macro", zero_division=0)),
            of_classes=np.asarray(
                metrics.recall_score(truth, guess, labels=classes, average=None, zero_division=0)
            ),
        ),
        "calibration": ModelScore(
            calibration_error(probabilities.max(axis=1), guess == truth),
            of_classes=probabilities.mean(axis=0),
        ),
    }


def calibration_error(confidence: Floats, right: Mask) -> float:
    """Return how far the predicted probabilities are from the shares of right predictions.

    Predictions are joined in ten bins by the probability of the predicted class. The error is the mean over
    bins, weighted by their rows, of the distance of the mean probability from the share of right predictions
    (Naeini, Cooper and Hauskrecht, AAAI 2015).

    >>> round(calibration_error(np.array([0.9, 0.9, 0.6, 0.6]), np.array([True, True, True, False])), 3)
    0.1
    """
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    return float(np.abs(np.bincount(bins, confidence - right, BINS)).sum() / len(confidence))


def _auc(truth: npt.NDArray, probabilities: Floats, present: Ints, common: Ints) -> ModelScore:
    """Return the AUC of two classes, or else the mean over the common ones, each against the rest."""
    if len(present) < 2:
        return ModelScore(np.nan)
    if len(present) == 2:
        no, yes = present
        total = np.maximum(probabilities[:, no] + probabilities[:, yes], 1e-12)
        sides = [(truth == yes, probabilities[:, yes] / total)]
    else:
        sides = [(truth == label, probabilities[:, label]) for label in common]
    return ModelScore(
        float(np.mean([metrics.roc_auc_score(*side) for side in sides])),
        np.mean([influence_on_auc(*side) for side in sides], axis=0),
    )


def _score_regression(model: Any, features: npt.NDArray, truth: npt.NDArray) -> dict[str, ModelScore]:
    guess = model.predict(features)
    r2 = ModelScore(np.nan)
    if len(truth) > 1:
        r2 = ModelScore(float(metrics.r2_score(truth, guess)), influence_on_r2(truth, guess))
    return {"r2": r2, "mean_error": ModelScore(float(metrics.mean_absolute_error(truth, guess)))}


def influence_on_auc(truth: Mask, scores: Floats) -> Floats:
    """Return the influence of each row on the AUC.

    Parameters
    ----------
    truth : boolean array of shape (rows,)
        At least one True and one False.
    scores : float array of shape (rows,)

    References
    ----------
    DeLong, DeLong and Clarke-Pearson, "Comparing the areas under two or more correlated receiver operating
    characteristic curves", Biometrics 44, 1988.

    Examples
    --------
    >>> influence_on_auc(np.array([False, False, True, True]), np.array([1.0, 3.0, 2.0, 4.0])).tolist()
    [0.5, -0.5, -0.5, 0.5]
    """
    rows, ranks = len(truth), rankdata(scores)
    positives = int(truth.sum())
    negatives = rows - positives
    below = (ranks[truth] - rankdata(scores[truth])) / negatives  # negatives below each positive
    above = 1 - (ranks[~truth] - rankdata(scores[~truth])) / positives  # positives above each negative
    influence = np.empty(rows)
    influence[truth] = (below - below.mean()) * rows / positives
    influence[~truth] = (above - above.mean()) * rows / negatives
    return influence


def influence_on_r2(truth: npt.NDArray, guess: npt.NDArray) -> Floats:
    """Return the influence of each row on R2, which is 1 - mean squared error / variance."""
    squares, spread = (truth - guess) ** 2, (truth - truth.mean()) ** 2
    variance = spread.mean()
    if not variance > 0:
        return np.full(len(truth), np.nan)
    return np.asarray((squares.mean() * spread / variance - squares) / variance)


def propensity(view: View, real: Coded, compared: Coded, *, in_bins: bool) -> float:
    """Return the AUC of gradient boosting that classifies rows as real or not; 0.5 is chance.

    It trains on half of the rows and is tested on the other half, with equal numbers of both kinds. Numbers
    are binned, or exact: then differences within a bin count, too.
    """
    rng = np.random.default_rng(SEED)
    rows = min(len(real), len(compared), PROPENSITY_ROWS)
    if rows < 4:
        return np.nan
    samples = [table.take(rng.permutation(len(table))[:rows]) for table in (real, compared)]
    sides = [table.records.codes if in_bins else exact_numbers(table) for table in samples]
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
        probabilities = model.predict_proba(np.vstack([side[half:] for side in sides]))
    return float(metrics.roc_auc_score(truth, probabilities[:, 1]))


def tell_apart(real: Floats, compared: Floats) -> float:
    """Return the AUC of gradient boosting that classifies rows of features as real or not; 0.5 is chance.

    Every row is classified by a model that learnt from two thirds of the rows, without it.
    """
    rng = np.random.default_rng(SEED)
    sides = [rng.permutation(side)[:TOLD_APART] for side in (real, compared)]
    if min(map(len, sides)) < 2 * FOLDS:
        return np.nan
    truth = np.repeat([0, 1], [len(side) for side in sides])
    model = HistGradientBoostingClassifier(max_iter=80, random_state=SEED, early_stopping=False)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    with _quiet():
        guess = cross_val_predict(model, np.vstack(sides), truth, cv=folds, method="predict_proba")
    return float(metrics.roc_auc_score(truth, guess[:, 1]))


def exact_numbers(table: Coded) -> Floats:
    """Return exact numbers, and the codes of other columns."""
    records = table.records
    columns = [table.numbers.get(name, records.codes[:, axis]) for axis, name in enumerate(records.domain)]
    return np.column_stack(columns).astype(np.float64)
