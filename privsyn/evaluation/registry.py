"""The registry of metrics: every number that `evaluate` computes, in the order in which it is shown."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any

from privsyn.arguments import imported
from privsyn.errors import InputError, replace_errors, safe_repr
from privsyn.evaluation import marginals
from privsyn.evaluation.comparison import LEARNERS, Comparison
from privsyn.evaluation.link_metrics import METRICS_OF_PERSONS
from privsyn.evaluation.linked_comparison import LinkedComparison
from privsyn.evaluation.metric import Errors, Metric, Score, errors_in, for_each_table
from privsyn.evaluation.numbers import METHODS, correlations_of, group_means, range_means, shapes_of
from privsyn.evaluation.predictions import propensity_score, score_of_model

SCORES_OF_MODELS = {
    "accuracy": "accuracy",
    "auc": "AUC",
    "f1": "macro-F1",
    "recall": "mean recall",
    "calibration": "calibration error",
    "r2": "R2",
    "mean_error": "mean error",
}
ERRORS_OF_MODELS = {"mean_error": "unit of the target", "calibration": "probability"}
"""The scores of models of which less is better, and their units."""

MODELS = {
    f"{learner}_{score}": Metric(
        f"{model}, {label}",
        partial(score_of_model, name=f"{learner}_{score}"),
        "Models trained on synthetic rows, tested on real ones",
        ERRORS_OF_MODELS.get(score, label),
        "lower" if score in ERRORS_OF_MODELS else "higher",
        origin=0.5 if score == "auc" else 0.0,
        headline=learner == "boosting" and score in ("auc", "r2"),
    )
    for learner, model in LEARNERS.items()
    for score, label in SCORES_OF_MODELS.items()
}

CELLS, NUMBERS = "Rows and cells", "Numbers and associations"
LIKENESS, DIAGNOSTIC = "Likeness of single rows", "diagnostic, not privacy"
DEVIATIONS = "standard deviations"

of_counts = partial(Errors, group="Tables of counts")
of_numbers = partial(Errors, group=NUMBERS, unit=DEVIATIONS)
of_pairs = partial(Errors, group=NUMBERS, unit="correlation")

PAIRS = errors_in(marginals.pairs_of, lambda results: results.errors)
WEIGHTED = tuple(partial(marginals.weighted_errors, order=order) for order in (1, 2))
CRAMERS_V = errors_in(marginals.pairs_of, lambda results: results.cramers_v_errors)
SPEARMAN = errors_in(correlations_of, lambda results: results.errors("spearman"))
PEARSON = errors_in(correlations_of, lambda results: results.errors("pearson"))
RARE = for_each_table(marginals.rare_covered, codes=True)
UNSEEN = for_each_table(marginals.unseen, codes=True)
BINNED, EXACT = partial(propensity_score, in_bins=True), partial(propensity_score, in_bins=False)
EQUAL = partial(marginals.likeness, measure=marginals.identical_rows)
NEAREST = partial(marginals.likeness, measure=marginals.nearest_row)


COLUMN_ERRORS: dict[str, Errors[Comparison]] = {
    "wasserstein": of_numbers("Wasserstein distance", marginals.wasserstein_of_columns, mean="mean"),
    "quantiles": of_numbers("quantiles", errors_in(shapes_of, lambda results: results.mean_distances)),
    "tail": of_numbers("99 % quantile", errors_in(shapes_of, lambda results: results.tails)),
    "spread": of_numbers(
        "standard deviation",
        errors_in(shapes_of, lambda results: results.spreads),
        unit="1 - smaller / larger",
    ),
}

ERRORS: dict[str, Errors[Comparison]] = {
    "one_way": of_counts("one column", marginals.one_way_errors),
    "pair": of_counts("two columns", PAIRS, headline=True),
    "triple": of_counts("three columns", marginals.triple_errors, headline=True),
    "query": of_counts("range queries", lambda c: c.compare_records(marginals.query_errors), headline=True),
    "weighted_one_way": of_counts("one column, weighted", WEIGHTED[0]),
    "weighted_pair": of_counts("two columns, weighted", WEIGHTED[1]),
    **COLUMN_ERRORS,
    "group_means": of_numbers("group means", lambda c: c.compare_each(partial(group_means, c.view))),
    "range_means": of_numbers("means by range", lambda c: c.compare_each(partial(range_means, c.view))),
    "spearman": of_pairs(METHODS["spearman"], SPEARMAN, headline=True),
    "pearson": of_pairs(METHODS["pearson"], PEARSON),
    "cramers_v": of_pairs("Cramér's V", CRAMERS_V, unit="Cramér's V", mean="mean difference"),
}
"""Errors of which the mean and the largest are metrics."""

METRICS: dict[str, Metric[Any]] = {
    **{key: metric for name, errors in ERRORS.items() for key, metric in errors.metrics(name).items()},
    "missing_patterns": Metric("patterns of missing cells", marginals.missing_patterns, CELLS),
    "rare_covered": Metric("rare values that occur", RARE, CELLS, "share of rare values", "higher"),
    "pooled": Metric("cells with pooled values", marginals.pooled_cells, CELLS, "share of real cells"),
    "unseen": Metric("cells with unseen values", UNSEEN, CELLS, "share of cells"),
    "distinct_rows": Metric("distinct rows", marginals.distinct_rows, CELLS, better="neither"),
    "propensity": Metric("real against synthetic rows, AUC", BINNED, CELLS, "AUC", origin=0.5),
    "propensity_of_numbers": Metric("the same with exact numbers", EXACT, CELLS, "AUC", origin=0.5),
    **METRICS_OF_PERSONS,
    **MODELS,
    "identical_rows": Metric(f"rows equal to a real one ({DIAGNOSTIC})", EQUAL, LIKENESS, better="neither"),
    "nearest_row": Metric(f"columns to nearest row ({DIAGNOSTIC})", NEAREST, LIKENESS, "columns", "neither"),
}

BUILT_IN = frozenset(METRICS)
"""The metrics of this package."""

ENTRY_POINTS = "privsyn.metrics"
"""The group of entry points that name metrics of other packages."""


def add_metric(path: str) -> str:
    """Register a metric of another module, and return its name.

    Parameters
    ----------
    path : str
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
    name, results = imported("metric", path, ENTRY_POINTS)
    if not isinstance(results, Metric) and not callable(results):
        raise InputError(f"metric {safe_repr(path)} is neither a function nor a Metric")
    if name in BUILT_IN:
        raise InputError(f"metric {safe_repr(path)}: there is a metric with this name: rename the function")
    METRICS[name] = (
        results if isinstance(results, Metric) else Metric(name, for_each_table(results), headline=True)
    )
    return name


TRIED_ROWS = 1000
"""Most rows of each table on which a metric of the user is tried; on all rows it may still fail."""


def compute(name: str, comparison: Comparison | LinkedComparison) -> Score:
    """Return the score of a registered metric. The error of a user's metric shows no cell."""
    if name in BUILT_IN:
        return METRICS[name].compute(comparison)
    subject = f"metric {safe_repr(name)}"
    with replace_errors(
        lambda error: f"{subject} raised {type(error).__name__}: call it with two data frames to see why"
    ):
        results: object = METRICS[name].compute(comparison)
    if not isinstance(results, Score):
        raise InputError(f"{subject} must return a Score; got a {type(results).__name__}")
    for value in vars(results).values():
        if not isinstance(value, Real):
            raise InputError(f"{subject} must return a number; got a {type(value).__name__}")
    return results


def try_own(comparison: Comparison) -> None:
    """Compute the user's metrics on some rows, so that one that fails does so before long work."""
    added = [name for name in METRICS if name not in BUILT_IN]
    few = comparison.sample(TRIED_ROWS) if added else comparison
    for name in added:
        compute(name, few)
