"""The registry of metrics: every number that `evaluate` computes, in the order in which it is shown."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from numbers import Real
from typing import TYPE_CHECKING

from privsyn.errors import InputError, replace_errors, safe_repr
from privsyn.evaluation import correlations, marginals, predictions, quantiles, rows
from privsyn.evaluation.metric import Metric, Score, for_each_table

if TYPE_CHECKING:
    from privsyn.evaluation.comparison import Comparison

METRICS: dict[str, Metric] = {
    **marginals.ERRORS,
    **rows.NUMBERS,
    **quantiles.QUANTILES,
    **correlations.CORRELATIONS,
    **marginals.ASSOCIATIONS,
    **rows.ROWS,
    **predictions.PROPENSITY,
    **predictions.MODELS,
    **rows.LIKENESS,
}

BUILT_IN = frozenset(METRICS)
"""The metrics of this package."""

ENTRY_POINTS = "privsyn.metrics"
"""The group of entry points that name metrics of other packages."""


def add_metric(place: str) -> str:
    """Register a metric of another module, and return its name.

    Parameters
    ----------
    place : str
        ``"module:function"``, or the name of an entry point of the group ``privsyn.metrics``. The function
        compares two data frames and returns a number, as in docs/extending.md; or it is a `Metric`.

    Raises
    ------
    InputError
        If there is no such function, or its name is taken by a metric of this package.

    Examples
    --------
    >>> add_metric("mymodule:mode_errors")  # doctest: +SKIP
    'mode_errors'
    """
    module, _, name = place.partition(":")
    if name:
        with replace_errors(f"metric {safe_repr(place)}: it cannot be imported"):
            found = getattr(import_module(module), name)
    else:
        points = entry_points(group=ENTRY_POINTS, name=place)
        if not points:
            raise InputError(
                f"metric {safe_repr(place)}: write module:function, or the name of an entry point"
            )
        name = place
        with replace_errors(f"metric {safe_repr(place)}: it cannot be imported"):
            found = next(iter(points)).load()
    if not isinstance(found, Metric) and not callable(found):
        raise InputError(f"metric {safe_repr(place)} is neither a function nor a Metric")
    if name in BUILT_IN:
        raise InputError(f"metric {safe_repr(place)}: there is a metric with this name: rename the function")
    METRICS[name] = found if isinstance(found, Metric) else Metric(name, for_each_table(found), headline=True)
    return name


TRIED_ROWS = 1000
"""Most rows of each table on which a metric of the user is tried; on all rows it may still fail."""


def compute(name: str, comparison: Comparison) -> Score:
    """Return the score of a registered metric. The error of a user's metric shows no cell."""
    if name in BUILT_IN:
        return METRICS[name].compute(comparison)
    subject = f"metric {safe_repr(name)}"
    with replace_errors(
        lambda error: f"{subject} raised {type(error).__name__}: call it with two data frames to see why"
    ):
        found: object = METRICS[name].compute(comparison)
    if not isinstance(found, Score):
        raise InputError(f"{subject} must return a Score; got a {type(found).__name__}")
    for value in vars(found).values():
        if not isinstance(value, Real):
            raise InputError(f"{subject} must return a number; got a {type(value).__name__}")
    return found


def try_own(comparison: Comparison) -> None:
    """Compute the user's metrics on some rows, so that one that fails does so before long work."""
    own = [name for name in METRICS if name not in BUILT_IN]
    few = comparison.sample(TRIED_ROWS) if own else comparison
    for name in own:
        compute(name, few)
