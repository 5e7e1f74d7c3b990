"""Metrics by models: propensity scores, and models that are trained on synthetic and tested on real rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import nan
from typing import TYPE_CHECKING

from privsyn.errors import InputError
from privsyn.evaluation.chance import standard_error
from privsyn.evaluation.metric import Metric, Score

if TYPE_CHECKING:
    from privsyn.evaluation.comparison import Comparison

LEARNERS = {
    "boosting": "gradient boosting",
    "linear": "linear model",
    "forest": "random forest",
    "mlp": "neural network",
}
"""The models that can be trained, and their labels."""

DEFAULT = ("boosting", "linear")

GROUP = "Models trained on synthetic rows, tested on real ones"


def chosen_learners(models: bool | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the models to train.

    >>> chosen_learners(True), chosen_learners(["forest"]), chosen_learners(False)
    (('boosting', 'linear'), ('forest',), ())
    """
    if isinstance(models, bool):
        return DEFAULT if models else ()
    if isinstance(models, str) or not set(models) <= set(LEARNERS):
        raise InputError(f"models are True, False or a list of {', '.join(LEARNERS)}")
    return tuple(dict.fromkeys(models))


def _propensity(comparison: Comparison, *, in_bins: bool) -> Score:
    if not comparison.models:
        return Score(nan)
    from privsyn.evaluation.models import propensity

    auc = partial(propensity, comparison.view, in_bins=in_bins)
    return Score(
        auc(comparison.real, comparison.synthetic),
        held_out=auc(comparison.train, comparison.test),
        independent=auc(comparison.real, comparison.independent),
    )


PROPENSITY = {
    name: Metric(label, partial(_propensity, in_bins=in_bins), "Rows and cells", "AUC", origin=0.5)
    for name, label, in_bins in (
        ("propensity", "real against synthetic rows, AUC", True),
        ("propensity_of_numbers", "the same with exact numbers", False),
    )
}


def _learning(comparison: Comparison) -> dict[str, Score]:
    """Return the scores of models trained on synthetic and on real rows, tested on the same real rows."""
    if not comparison.models or comparison.target is None:
        return {}
    from privsyn.evaluation.models import ModelScore, Task, guessing, learning

    view, train, test = comparison.view, comparison.train, comparison.test
    task = Task.of(view, train, comparison.target)
    names = comparison.models
    synthetic = learning(view, task, comparison.synthetic, test, names)
    real, guess = learning(view, task, train, test, names), guessing(task, train, test, names)
    unknown = ModelScore(nan)
    return {
        name: Score(
            score.value,
            real=real.get(name, unknown).value,
            independent=guess.get(name, unknown).value,
            standard_error=standard_error(score.influence, real.get(name, unknown).influence),
        )
        for name, score in synthetic.items()
    }


def _score_of_model(name: str) -> Callable[[Comparison], Score]:
    return lambda comparison: comparison.once(_learning).get(name, Score(nan))


MODELS = {
    (name := f"{model}_{score}"): Metric(
        f"{model_label}, {label}",
        _score_of_model(name),
        GROUP,
        "unit of the target" if score == "mean_error" else label,
        "lower" if score == "mean_error" else "higher",
        origin=0.5 if score == "auc" else 0.0,
        headline=name in ("boosting_auc", "boosting_r2"),
    )
    for model, model_label in LEARNERS.items()
    for score, label in (
        ("accuracy", "accuracy"),
        ("auc", "AUC"),
        ("f1", "macro-F1"),
        ("r2", "R2"),
        ("mean_error", "mean error"),
    )
}
