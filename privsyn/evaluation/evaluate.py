"""`evaluate`: two tables in, scores out, and a report of them if asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import nan
from os import PathLike
from typing import Any

import numpy as np

from privsyn.errors import InputError, safe_repr
from privsyn.evaluation import rows as values
from privsyn.evaluation.chance import standard_error
from privsyn.evaluation.comparison import Comparison
from privsyn.evaluation.encoding import Coded
from privsyn.evaluation.marginals import (
    MOST_PAIRS,
    TRIPLES,
    compare_pairs,
    margin_errors,
    query_errors,
    sample_of_margins,
)
from privsyn.evaluation.scores import Origin, Score, Scores
from privsyn.marginals.domain import Attributes, Records
from privsyn.marginals.types import Floats
from privsyn.table.schema.schema import Schema

WORST = 10


def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | None = None,
    *,
    target: str | None = None,
    test: Any = None,
    models: bool = True,
    report: str | PathLike[str] | None = None,
    ledger: Mapping[str, Any] | None = None,
    origins: Sequence[Origin] = (),
) -> Scores:
    """How far a synthetic table is from the real one, beside yardsticks. It reads both: NOT PRIVATE.

    Parameters
    ----------
    real, synthetic : pandas, polars or pyarrow table, or a path as for `fit`
    schema : Schema, optional
        Which columns to compare, on which values and bins. What it leaves open, or all of it where there is
        none, is read off both tables together.
    target : str, optional
        A column that models are to learn from synthetic rows and to predict on real ones.
    test : table, optional
        Real rows that the synthetic table was not made from. Without it a fifth of `real`, by a fixed seed,
        is held out when models learn from real rows; the synthetic table has then seen, under its noise, the
        rows it is tried on.
    models : bool
        Whether to train any: they take most of the time.
    report : path, optional
        Where to write the comparison as a web page, in one file.
    ledger : mapping, optional
        What the synthetic table cost, for the report: ``model.ledger_.to_dict()``.
    origins : sequence of Origin
        Where its error comes from, for the report: see `privsyn.studies.error_trace.trace`.

    Raises
    ------
    InputError
        If a table is empty or lacks a column, or the target is none.

    Examples
    --------
    >>> import pandas as pd
    >>> real = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": [1, 1, 2, 2]})
    >>> synthetic = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": [1, 2, 2, 2]})
    >>> evaluate(real, synthetic, models=False).pair_mean.synthetic
    0.25
    """
    comparison = Comparison.of(real, synthetic, schema, test=test)
    if target is not None and target not in comparison.view.domain.names:
        raise InputError(f"target {safe_repr(target)}: is none of the columns that are compared")
    scores = score(comparison, target, models=models)
    if report is not None:
        from privsyn.evaluation.report.report import write_report

        write_report(report, comparison, scores, ledger=ledger, origins=origins)
    return scores


def score(comparison: Comparison, target: str | None, *, models: bool) -> Scores:
    """All scores of a comparison."""
    names = comparison.view.domain.names
    ones, triples = sample_of_margins(names, 1, len(names)), sample_of_margins(names, 3, TRIPLES)
    one_way = comparison.beside(_on_codes(partial(margin_errors, margins=ones)))
    triple = comparison.beside(_on_codes(partial(margin_errors, margins=triples)))
    pairs = comparison.beside(_on_codes(compare_pairs))
    moved = comparison.beside(_each(values.numbers_moved))
    errors = {
        "one_way": one_way,
        "pair": {name: found.errors for name, found in pairs.items()},
        "triple": triple,
        "query": comparison.beside(_on_codes(query_errors)),
        "wasserstein": {name: np.array([*found.values()]) for name, found in moved.items()},
        "cramers_v": {name: found.cramers_v_errors for name, found in pairs.items()},
        "spearman": {name: found.spearman_errors for name, found in pairs.items()},
    }
    synthetic = pairs["synthetic"]
    return Scores(
        real_rows=len(comparison.real),
        synthetic_rows=len(comparison.synthetic),
        test_rows=len(comparison.test),
        columns=names,
        left_out=comparison.view.left_out,
        target=target,
        **{f"{name}_mean": _summary(found, np.mean) for name, found in errors.items()},
        **{f"{name}_max": _summary(found, np.max) for name, found in errors.items()},
        **_of_rows(comparison),
        propensity=_propensity(comparison, in_bins=True) if models else Score(nan),
        propensity_of_numbers=_propensity(comparison, in_bins=False) if models else Score(nan),
        learning=_learning(comparison, target) if models and target is not None else {},
        worst={
            1: _worst(ones, one_way["synthetic"]),
            2: _worst(sample_of_margins(names, 2, MOST_PAIRS), synthetic.errors),
            3: _worst(triples, triple["synthetic"]),
        },
        column_errors=_of_columns(comparison, one_way["synthetic"], moved["synthetic"]),
        pairs=synthetic,
    )


def _on_codes(
    measure: Callable[[Records, Mapping[str, Records]], dict[str, Any]],
) -> Callable[[Coded, Mapping[str, Coded]], dict[str, Any]]:
    """A measure of records as one of coded tables."""
    return lambda real, others: measure(real.records, {name: table.records for name, table in others.items()})


def _each(
    measure: Callable[[Coded, Coded], Any],
) -> Callable[[Coded, Mapping[str, Coded]], dict[str, Any]]:
    """A measure of one table as one of several."""
    return lambda real, others: {name: measure(real, table) for name, table in others.items()}


def _summary(found: Mapping[str, Floats], summarise: Callable[[Floats], Any]) -> Score:
    return Score(**{name: float(summarise(errors)) if len(errors) else nan for name, errors in found.items()})


def _worst(margins: Sequence[Attributes], errors: Floats) -> tuple[tuple[Attributes, float], ...]:
    order = np.argsort(-errors, kind="stable")[:WORST]
    return tuple((margins[place], float(errors[place])) for place in order)


def _of_rows(comparison: Comparison) -> dict[str, Score]:
    """Scores of whole rows and of single values."""

    def beside(measure: Callable[[Records, Records], float]) -> Score:
        found = comparison.beside(_each(lambda real, other: measure(real.records, other.records)))
        return Score(**found)

    alike = {"identical_rows": values.identical_rows, "nearest_row": values.nearest_row}
    synthetic, real = comparison.synthetic.records, comparison.real.records
    return {
        "missing_patterns": beside(partial(values.missing_patterns, comparison.view)),
        "rare_covered": beside(values.rare_covered),
        "unseen": beside(values.unseen),
        "distinct_rows": Score(
            values.distinct_rows(synthetic),
            real=values.distinct_rows(real),
            independent=values.distinct_rows(comparison.independent.records),
        ),
    } | {
        name: Score(
            measure(real, synthetic),
            held_out=measure(comparison.train.records, comparison.test.records),
            independent=measure(real, comparison.independent.records),
        )
        for name, measure in alike.items()
    }


def _of_columns(
    comparison: Comparison, errors: Floats, moved: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Of each column by itself: its error, how far its numbers moved, what is missing."""
    missing = [
        (table.records.codes == np.array(comparison.view.missing)).mean(axis=0)
        for table in (comparison.real, comparison.synthetic)
    ]
    return {
        name: {
            "error": float(errors[axis]),
            "wasserstein": moved.get(name, nan),
            "missing_real": float(missing[0][axis]),
            "missing_synthetic": float(missing[1][axis]),
        }
        for axis, name in enumerate(comparison.view.domain)
    }


def _propensity(comparison: Comparison, *, in_bins: bool) -> Score:
    from privsyn.evaluation.models import propensity

    tell = partial(propensity, comparison.view, in_bins=in_bins)
    return Score(
        tell(comparison.real, comparison.synthetic),
        held_out=tell(comparison.train, comparison.test),
        independent=tell(comparison.real, comparison.independent),
    )


def _learning(comparison: Comparison, target: str) -> dict[str, Score]:
    """What models learn from synthetic rows, and from real ones, both tried on the same real rows."""
    from privsyn.evaluation.models import ModelScore, Task, guessing, learning

    view, real_rows, test = comparison.view, comparison.train, comparison.test
    task = Task.of(view, real_rows, target)
    synthetic = learning(view, task, comparison.synthetic, test)
    real, guess = learning(view, task, real_rows, test), guessing(task, real_rows, test)
    unknown = ModelScore(nan)
    return {
        name: Score(
            judged.value,
            real=real.get(name, unknown).value,
            independent=guess.get(name, unknown).value,
            standard_error=standard_error(judged.influence, real.get(name, unknown).influence),
        )
        for name, judged in synthetic.items()
    }
