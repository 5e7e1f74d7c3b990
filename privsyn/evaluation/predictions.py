"""Metrics by models: propensity scores, and models that are trained on synthetic and tested on real rows.

The standard error of the difference of two scores on the same test rows follows from influences.

The influence of a row on a score is the derivative of the score by the weight of the row, times the number of
rows. Its mean is zero. Its standard deviation, divided by the square root of the number of rows, is the
standard error of the score. Two models are tested on the same rows. The standard error of the difference of
their scores therefore follows from the difference of their influences. It covers the choice of the test rows,
not the choice of the training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import nan, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.evaluation.comparison import Comparison
from privsyn.evaluation.encoding import OTHER
from privsyn.evaluation.metric import Score
from privsyn.marginals.domain import Floats

if TYPE_CHECKING:
    from privsyn.evaluation.models import ModelScore, Task

DETERMINES = 0.95
"""A column determines the target if it removes this share of the errors of a guess without any column."""


def propensity_score(comparison: Comparison, *, in_bins: bool) -> Score:
    """Return the AUC of a model that classifies rows as real or not; NaN if no model is trained."""
    if not comparison.learning.models:
        return Score(nan)
    from privsyn.evaluation.models import propensity

    auc = partial(propensity, comparison.view, in_bins=in_bins)
    return Score(
        auc(comparison.real, comparison.synthetic),
        held_out=auc(comparison.train, comparison.test),
        independent=auc(comparison.real, comparison.independent),
    )


def _trained(comparison: Comparison) -> tuple[Task, dict[str, dict[str, ModelScore]]] | None:
    """Return the task, and the scores of models that learnt from each table, tested on the same real rows."""
    learning_settings = comparison.learning
    if not learning_settings.models or learning_settings.target is None:
        return None
    from privsyn.evaluation.models import Task, guessing, learning

    view, train, test = comparison.view, comparison.train, comparison.test
    task = Task.of(view, train, learning_settings.target, learning_settings.leave_out)
    names = learning_settings.models
    return task, {
        "synthetic": learning(view, task, comparison.synthetic, test, names),
        "real": learning(view, task, train, test, names),
        "guess": guessing(task, train, test, names),
    }


def _learning(comparison: Comparison) -> dict[str, Score]:
    """Return the scores of models trained on synthetic and on real rows, tested on the same real rows."""
    if (trained := comparison.once(_trained)) is None:
        return {}
    from privsyn.evaluation.models import ModelScore

    real, guess, unknown = trained[1]["real"], trained[1]["guess"], ModelScore(nan)
    return {
        name: Score(
            score.value,
            real=real.get(name, unknown).value,
            independent=guess.get(name, unknown).value,
            standard_error=standard_error(score.influence, real.get(name, unknown).influence),
        )
        for name, score in trained[1]["synthetic"].items()
    }


def score_of_model(comparison: Comparison, name: str) -> Score:
    """Return a score of a model; NaN if it was not trained, or if the target has no such score."""
    return comparison.once(_learning).get(name, Score(nan))


def classes_of(comparison: Comparison) -> tuple[dict[str, Any], ...]:
    """Return a row for each class of the target among the test rows; none if a number is predicted.

    It has the number and the share of test rows, and for each model that learnt from synthetic rows and from
    real ones the recall (the share of its rows that are found) and the mean predicted probability. This is
    equal to the share if the model is calibrated.
    """
    trained = comparison.once(_trained)
    if trained is None or trained[0].classes is None:
        return ()
    task, scores = trained
    (axis,) = comparison.view.domain.axes((task.target,))
    truth = task.split(comparison.test)[1]
    rows = []
    for class_of_target, number in zip(*np.unique(truth, return_counts=True), strict=True):
        codes = np.flatnonzero(task.classes == class_of_target)
        label = comparison.view.labels[axis][codes[0]] if len(codes) == 1 else OTHER
        row = {"label": label, "rows": int(number), "share": float(number / len(truth))}
        for name in comparison.learning.models:
            for table in ("synthetic", "real"):
                for part, score in (("recall", "recall"), ("predicted", "calibration")):
                    score_of_model = scores[table].get(f"{name}_{score}")
                    shares = () if score_of_model is None else score_of_model.of_classes
                    row[f"{name}_{part}_{table}"] = (
                        float(shares[class_of_target]) if class_of_target < len(shares) else 0.0
                    )
        rows.append(row)
    return tuple(rows)


def determined_by(comparison: Comparison) -> tuple[str, ...]:
    """Return the columns each of which alone determines the target in the real rows, or nearly.

    The prediction is the most frequent class, or the mean number, of the training rows with the same code. A
    column determines the target if its prediction removes at least the share `DETERMINES` of the errors on
    test rows that a prediction without any column makes: wrong classes, or squared distances of numbers.
    Without models there are none.
    """
    from privsyn.evaluation.models import FEW_ROWS

    trained = comparison.once(_trained)
    if trained is None:
        return ()
    task, domain = trained[0], comparison.view.domain
    tables = comparison.train, comparison.test
    (features, labels), (test_features, truth) = (task.split(table, in_bins=True) for table in tables)
    if not len(labels) or len(truth) < FEW_ROWS:
        return ()
    determining = []
    for name, codes, test_codes in zip(task.features(domain), features.T, test_features.T, strict=True):
        (size,) = domain.project((name,)).sizes
        if task.classes is None:
            rows = np.bincount(codes, minlength=size)
            sums = np.bincount(codes, labels, minlength=size)
            guess = np.divide(sums, rows, out=np.full(size, labels.mean()), where=rows > 0)
            errors = [
                float(((truth - prediction) ** 2).sum()) for prediction in (guess[test_codes], labels.mean())
            ]
        else:
            classes = int(task.classes.max()) + 1
            counts = np.bincount(codes * np.int64(classes) + labels, minlength=size * classes)
            counts = counts.reshape(size, classes)
            usual = counts.sum(axis=0).argmax()
            guess = np.where(counts.any(axis=1), counts.argmax(axis=1), usual)
            errors = [float((truth != prediction).sum()) for prediction in (guess[test_codes], usual)]
        enough = errors[1] > 0 if task.classes is None else errors[1] >= FEW_ROWS
        if enough and errors[0] <= (1 - DETERMINES) * errors[1]:
            determining.append(name)
    return tuple(determining)


def about_determining(columns: Sequence[str], target: str | None) -> list[str]:
    """Return a sentence on columns that determine the target: a prediction from them is no quality.

    >>> about_determining((), "income")
    []
    """
    if not columns:
        return []
    alone = "alone determines" if len(columns) == 1 else "each determine"
    return [
        f"This says little about quality: in the real rows, {', '.join(columns)} {alone} {target}, or nearly."
        f" Leave out what determines it (leave_out={[*columns]}, or --leave-out)."
    ]


def standard_error(influences: Floats, influences_real: Floats) -> float:
    """Return the standard error of the difference of two scores; NaN without their influences.

    >>> standard_error(np.array([1.0, -1.0]), np.array([0.0, 0.0]))
    0.7071067811865476
    """
    if not len(influences) or len(influences) != len(influences_real):
        return nan
    return sqrt(float(np.mean((influences - influences_real) ** 2)) / len(influences))
