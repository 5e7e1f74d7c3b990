"""The registry of metrics: every number that `evaluate` computes, in the order in which it is shown."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from privsyn.errors import InputError, replace_errors, safe_repr
from privsyn.evaluation import correlations, marginals, predictions, quantiles, rows
from privsyn.evaluation.metric import Metric, for_each_table

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

ENTRY_POINTS = "privsyn.metrics"
"""The group of entry points that name metrics of other packages."""


def add_metric(place: str) -> str:
    """Register a metric of another module, and return its name.

    Parameters
    ----------
    place : str
        ``"module:function"``, or the name of an entry point of the group ``privsyn.metrics``. The function
        compares the records of two tables and returns a number, as in docs/extending.md; or it is a `Metric`.

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
    if name in METRICS and name not in ADDED:
        raise InputError(f"metric {safe_repr(place)}: there is a metric with this name: rename the function")
    ADDED.add(name)
    METRICS[name] = found if isinstance(found, Metric) else Metric(name, for_each_table(found), headline=True)
    return name


ADDED: set[str] = set()
"""The metrics that `add_metric` registered."""
