"""Delegate: a model of scikit-learn that learns in its own way, and predicts by the model that it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted


def _delegated(name: str) -> Any:
    """Return a method that calls the method of this name of the fitted model, where the model has one."""

    def has_method(model: Delegate) -> bool:
        return hasattr(getattr(model, "estimator_", model.estimator), name)

    def method(self: Delegate, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, name)(X)

    method.__name__, method.__doc__ = name, f"Return `{name}` of the model that learnt."
    return available_if(has_method)(method)


def _learnt(name: str) -> Any:
    """Return a property: what the fitted model learnt under this name."""

    def attribute(model: Delegate) -> Any:
        return getattr(model.estimator_, name)

    return property(attribute, doc=f"`{name}` of the model that learnt.")


class Delegate(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # without types
    """A model that predicts as `estimator_` does, which `fit` makes of a copy of `estimator`."""

    estimator: Any
    estimator_: Any

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def score(self, X: Any, y: Any) -> float:
        """Return the score of the model on rows. On real rows it is NOT PRIVATE if the rows are."""
        check_is_fitted(self)
        score: float = self.estimator_.score(X, y)
        return score

    predict: Callable[[Any], Any] = _delegated("predict")
    predict_proba: Callable[[Any], Any] = _delegated("predict_proba")
    predict_log_proba: Callable[[Any], Any] = _delegated("predict_log_proba")
    decision_function: Callable[[Any], Any] = _delegated("decision_function")
    classes_ = _learnt("classes_")
