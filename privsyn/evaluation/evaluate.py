"""`evaluate`: compare two tables, return scores, and optionally write a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from os import PathLike
from typing import Any

import numpy as np

from privsyn.evaluation import marginals
from privsyn.evaluation.comparison import Comparison
from privsyn.evaluation.numbers import SHARES, correlations_of, shapes_of
from privsyn.evaluation.predictions import classes_of, determined_by
from privsyn.evaluation.registry import METRICS, add_metric, compute, try_own
from privsyn.evaluation.scores import Origin, Scores
from privsyn.marginals.domain import Attributes, Floats
from privsyn.table.schema.schema import Schema

WORST = 10
"""Number of marginals of each order that are listed as the worst."""


def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | None = None,
    *,
    target: str | None = None,
    test: Any = None,
    models: bool | Sequence[str] = True,
    leave_out: Sequence[str] = (),
    metrics: Sequence[str] = (),
    report: str | PathLike[str] | None = None,
    ledger: Mapping[str, Any] | None = None,
    origins: Sequence[Origin] = (),
) -> Scores:
    """Measure how far a synthetic table is from the real one. It reads both: NOT PRIVATE.

    Parameters
    ----------
    real, synthetic : pandas, polars or pyarrow table, or a path as for `fit`
    schema : Schema, optional
        The columns to compare, with their values and bins. What it leaves open is taken from both tables
        together. Default: all columns.
    target : str, optional
        A column that models trained on synthetic rows predict on real ones.
    test : table, optional
        Real rows that the synthetic table was not made from. What is odd about them is in `Scores.remarks`.
        Default: a fixed fifth of `real` is held out when models are trained on real rows. The synthetic table
        then depends, under its noise, on the test rows.
    models : bool or list of str
        Whether to train models, or which: "boosting", "linear", "forest", "mlp". They take most of the time.
        Default: the first two.
    leave_out : list of str
        Columns from which models do not learn, such as one that determines the target. Tables of counts have
        them.
    metrics : list of str
        Further metrics, as for `privsyn.evaluation.registry.add_metric`. They are tried on some rows first.
    report : path, optional
        Write the comparison to this path as a web page, in one file.
    ledger : mapping, optional
        The privacy ledger for the report: ``model.ledger_.to_dict()``.
    origins : sequence of Origin
        The sources of the error, for the report: see `privsyn.studies.error_trace.trace`.

    Raises
    ------
    InputError
        If a table is empty, lacks a column or has no number where the real one has them; if the target is not
        a compared column or empty; if the test rows are those of another table; if a column to leave out is
        not a compared one; if a further metric fails.

    Examples
    --------
    >>> import pandas as pd
    >>> real = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": [1, 1, 2, 2]})
    >>> synthetic = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": [1, 2, 2, 2]})
    >>> evaluate(real, synthetic, models=False).pair_mean.synthetic
    0.25
    """
    for metric in metrics:
        add_metric(metric)
    comparison = Comparison.of(
        real, synthetic, schema, test=test, target=target, models=models, leave_out=leave_out
    )
    try_own(comparison)
    scores = score(comparison)
    if report is not None:
        from privsyn.evaluation.report import write_report

        write_report(report, comparison, scores, ledger=ledger, origins=origins)
    return scores


def score(comparison: Comparison) -> Scores:
    """Return the scores of all registered metrics, and where the errors are largest."""
    names = comparison.view.domain.names
    errors = {
        1: comparison.once(marginals.one_way_errors)["synthetic"],
        2: comparison.once(marginals.pairs_of)["synthetic"].errors,
        3: comparison.once(marginals.triple_errors)["synthetic"],
    }
    correlations = comparison.once(correlations_of)["synthetic"]
    return Scores(
        real_rows=len(comparison.real),
        synthetic_rows=len(comparison.synthetic),
        test_rows=len(comparison.test),
        columns=names,
        left_out=comparison.view.left_out,
        target=comparison.target,
        values={name: compute(name, comparison) for name in METRICS},
        worst={order: _worst(marginals.marginals_of(names, order), found) for order, found in errors.items()},
        column_errors=_of_columns(comparison, errors[1]),
        pairs=comparison.once(marginals.pairs_of)["synthetic"],
        correlations=correlations,
        worst_correlations=correlations.worst(names, WORST),
        quantiles=_quantiles(comparison),
        classes=classes_of(comparison),
        determined_by=determined_by(comparison),
        leave_out=comparison.leave_out,
        remarks=comparison.remarks,
    )


def _worst(margins: Sequence[Attributes], errors: Floats) -> tuple[tuple[Attributes, float], ...]:
    order = np.argsort(-errors, kind="stable")[:WORST]
    return tuple((margins[place], float(errors[place])) for place in order)


def _quantiles(comparison: Comparison) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the quantiles of each ordered column, in the real and in the synthetic table."""
    shapes = comparison.once(shapes_of)["synthetic"]
    return {
        name: {
            f"{share:g}": (float(real), float(synthetic))
            for share, real, synthetic in zip(
                SHARES, shapes.real_quantiles[place], shapes.quantiles[place], strict=True
            )
        }
        for place, name in enumerate(comparison.real.numbers)
    }


def _of_columns(comparison: Comparison, errors: Floats) -> dict[str, dict[str, float]]:
    """Return the errors of each column, and its shares of missing and of pooled cells."""
    shapes = comparison.once(shapes_of)["synthetic"]
    of_numbers = {
        "wasserstein": comparison.once(marginals.wasserstein_of_columns)["synthetic"],
        "quantiles": shapes.mean_distances,
        "tail": shapes.tails,
        "spread": shapes.spreads,
    }
    place = {name: place for place, name in enumerate(comparison.real.numbers)}
    missing = [
        (table.records.codes == np.array(comparison.view.missing)).mean(axis=0)
        for table in (comparison.real, comparison.synthetic)
    ]
    return {
        name: {
            "error": float(errors[axis]),
            **{key: float(found[place[name]]) if name in place else nan for key, found in of_numbers.items()},
            "missing_real": float(missing[0][axis]),
            "missing_synthetic": float(missing[1][axis]),
            "pooled": float(np.sum(comparison.pooled.get(name, 0.0))),
            "pooled_values": float(np.size(comparison.pooled.get(name, ()))),
        }
        for axis, name in enumerate(comparison.view.domain)
    }
