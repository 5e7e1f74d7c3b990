"""Distilled: a model that learns what another one predicts, in place of what rows show."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import validate_data

from privsyn.evaluation.delegate import Delegate


class Distilled(Delegate):
    """A model that learns what another one predicts, its teacher, in place of what rows show.

    A synthetic row shows one class, drawn from the probabilities that the release gives it. Models that look
    for interactions, such as boosting, learn the chance in these draws. So a teacher that cannot, such as a
    linear model, learns from the rows first. Then the model learns each row once for each class, with the
    teacher's probability as its weight, or the number that the teacher predicts. What the teacher does not
    see is lost.

    Parameters
    ----------
    estimator : classifier, regressor or Pipeline of scikit-learn
        The `fit` of a classifier takes `sample_weight`, that of the last step of a pipeline.
    teacher : classifier, regressor or Pipeline of scikit-learn
        A classifier has `predict_proba`.

    Attributes
    ----------
    estimator_, teacher_ : estimator
        Both as they learnt.
    classes_ : array of the classes that the teacher knows
        Of a classifier alone.
    feature_names_in_, n_features_in_ : array of str, int
        The columns of X, and their number.

    References
    ----------
    Hinton, Vinyals and Dean, "Distilling the knowledge in a neural network", 2015.

    Examples
    --------
    One row of four with a low x is sick by chance. The tree learns how likely that is, and not which row:

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = np.array([[0.0], [1], [2], [3], [7], [8], [9], [10]]), np.array([0, 1, 0, 0, 1, 1, 1, 1])
    >>> tree = DecisionTreeClassifier(random_state=0)
    >>> tree.fit(X, y).predict(X).tolist()
    [0, 1, 0, 0, 1, 1, 1, 1]
    >>> Distilled(tree, LogisticRegression()).fit(X, y).predict(X).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """

    _required_parameters = ("estimator", "teacher")

    def __init__(self, estimator: Any, teacher: Any) -> None:
        self.estimator = estimator
        self.teacher = teacher

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a copy of the teacher on the rows, and a copy of the model on what it predicts for them."""
        validate_data(self, X, skip_check_array=True)  # takes names and number of columns
        self.teacher_, model = clone(self.teacher).fit(X, y), clone(self.estimator)
        if not is_classifier(self.teacher):
            self.estimator_ = model.fit(X, self.teacher_.predict(X))
            return self
        probabilities, classes = self.teacher_.predict_proba(X), self.teacher_.classes_
        rows = np.tile(np.arange(len(probabilities)), len(classes))
        step = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
        weights = {f"{step}sample_weight": probabilities.T.ravel()}
        target = np.repeat(classes, len(probabilities))
        self.estimator_ = model.fit(_safe_indexing(_with_rows(X), rows), target, **weights)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return the description of the model that learns: a classifier stays one."""
        return get_tags(self.estimator)


def _with_rows(table: Any) -> Any:
    """Return a table whose rows can be taken by their numbers."""
    if hasattr(table, "tocsr"):  # a sparse matrix
        return table.tocsr()
    return table if hasattr(table, "shape") else np.asarray(table)
