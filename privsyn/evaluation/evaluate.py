"""`evaluate`: compare two tables, or two databases, return scores, and optionally write a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from os import PathLike
from typing import Any

import numpy as np

from privsyn.abilities import NOBODY, check_abilities
from privsyn.evaluation import marginals
from privsyn.evaluation.comparison import Comparison, Learning
from privsyn.evaluation.link_metrics import METRICS_OF_PERSONS, WORST, numbers_of_rows, worst_of
from privsyn.evaluation.linked_comparison import LinkedComparison
from privsyn.evaluation.linked_rows import as_one, read_tables
from privsyn.evaluation.linked_scores import LinkedScores
from privsyn.evaluation.metric import Score
from privsyn.evaluation.numbers import SHARES, Correlations, correlations_of, shapes_of
from privsyn.evaluation.predictions import classes_of, determined_by
from privsyn.evaluation.registry import COLUMN_ERRORS, METRICS, add_metric, compute, try_own
from privsyn.evaluation.scores import Origin, Scores
from privsyn.marginals.domain import Floats
from privsyn.table.database.database import Database
from privsyn.table.database.declared import Table
from privsyn.table.database.yaml_form import as_database
from privsyn.table.schema.schema import Schema


def evaluate(
    real: Any,
    synthetic: Any,
    schema: Schema | Table | Database | str | PathLike[str] | None = None,
    *,
    unit: str | None = None,
    order: str | None = None,
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
        With a database, a mapping of the name of each table to such a table, or the path of a folder, a
        DuckDB or a SQLite file that has them.
    schema : Schema, Table, Database or path of a YAML file, optional
        The columns to compare, with their values and bins. What it leaves open is taken from both tables
        together. Default: all columns. A database also says which rows belong together.
    unit : str, optional
        The column of both tables that identifies a person. Then the rows of each person are compared too: how
        many there are, which follow each other, and what they are together.
    order : str, optional
        With `unit`, the column by which the rows of a person are in order. Default: they have no order, and
        are compared in a random one.
    target : str, optional
        A column that models trained on synthetic rows predict on real ones.
    test : table, optional
        Real rows that the synthetic table was not made from. What is odd about them is in `Scores.remarks`.
        Default: a fixed fifth of `real` is held out when models are trained on real rows. The synthetic table
        then depends, under its noise, on the test rows.
    models : bool or list of str
        Whether to train models, or which: "boosting", "linear", "forest", "mlp", "distilled".
        They take most of the time.
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
        not a compared one; if a further metric fails; if a table lacks the column of identifiers.

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
    database, linked = as_database(schema), None
    words, rules_of_persons = database.words, database.about_persons
    is_alone, learning = database.single is not None, Learning.of(target, models, leave_out)
    if unit is None and order is None and is_alone:
        check_abilities([NOBODY], {"rules": database.about_persons})
        comparison = Comparison.of(real, synthetic, database.schema, test=test, learning=learning)
        comparisons: Mapping[str, Comparison] = {"": comparison}
    else:
        database = as_one(database, unit, order)
        sources = {"real": real, "synthetic": synthetic} | ({} if test is None else {"test": test})
        frames = {which: read_tables(which, source, database) for which, source in sources.items()}
        linked = LinkedComparison.of(frames, database, learning)
        comparisons = linked.comparisons
    for comparison in comparisons.values():
        try_own(comparison)
    tables = {name: score(comparison) for name, comparison in comparisons.items()}
    scores = next(iter(tables.values())) if len(tables) == 1 else joined(tables)
    if linked is not None:
        scores = with_persons(scores, linked)
        if not is_alone or rules_of_persons:
            within = {name: scores_within.pair_mean for name, scores_within in tables.items()}
            scores = replace(scores, linked=LinkedScores.of(linked, within))
    if report is not None:
        from privsyn.evaluation.report import write_report

        compared = comparisons[""] if linked is None else linked
        write_report(report, compared, scores, ledger=ledger, origins=origins, about=words)
    return scores


def score(comparison: Comparison) -> Scores:
    """Return the scores of all metrics of rows, and where the errors are largest."""
    names = comparison.view.domain.names
    errors = {
        1: comparison.once(marginals.one_way_errors)["synthetic"],
        2: comparison.once(marginals.pairs_of)["synthetic"].errors,
        3: comparison.once(marginals.triple_errors)["synthetic"],
    }
    worst = {}
    for order, errors_of_order in errors.items():
        margins = marginals.marginals_of(names, order)
        ranked = np.argsort(-errors_of_order, kind="stable")[:WORST]
        worst[order] = tuple((margins[index], float(errors_of_order[index])) for index in ranked)
    correlations = comparison.once(correlations_of)["synthetic"]
    return Scores(
        real_rows=len(comparison.real),
        synthetic_rows=len(comparison.synthetic),
        test_rows=len(comparison.test),
        columns=names,
        left_out=comparison.view.left_out,
        target=comparison.learning.target,
        values={
            name: Score(nan) if name in METRICS_OF_PERSONS else compute(name, comparison) for name in METRICS
        },
        worst=worst,
        column_errors=_errors_of_columns(comparison, errors[1]),
        pairs=comparison.once(marginals.pairs_of)["synthetic"],
        correlations=correlations,
        worst_correlations=correlations.worst(names, WORST),
        quantiles=_quantiles(comparison),
        classes=classes_of(comparison),
        determined_by=determined_by(comparison),
        leave_out=comparison.learning.leave_out,
        remarks=comparison.remarks,
    )


def joined(tables: Mapping[str, Scores]) -> Scores:
    """Return the scores of several tables as those of one, which has no score of its own."""
    nothing = np.empty((0, 0))
    return Scores(
        real_rows=sum(scores.real_rows for scores in tables.values()),
        synthetic_rows=sum(scores.synthetic_rows for scores in tables.values()),
        test_rows=sum(scores.test_rows for scores in tables.values()),
        columns=tuple(f"{name}.{column}" for name, scores in tables.items() for column in scores.columns),
        left_out=tuple(f"{name}.{column}" for name, scores in tables.items() for column in scores.left_out),
        target=None,
        values=dict.fromkeys(METRICS, Score(nan)),
        worst={},
        column_errors={},
        pairs=marginals.PairErrors(nothing, nothing, nothing),
        correlations=Correlations(nothing, nothing, nothing, nothing),
        tables=tables,
    )


def with_persons(scores: Scores, linked: LinkedComparison) -> Scores:
    """Return the scores with those of rows that belong together."""
    sides, root = (linked.truth, linked.sides["synthetic"]), linked.database.root
    return replace(
        scores,
        values={**scores.values, **{name: compute(name, linked) for name in METRICS_OF_PERSONS}},
        persons=tuple(side.size(root) for side in sides),
        numbers_of_rows=numbers_of_rows(linked),
        worst_of_persons=worst_of(linked),
    )


def _quantiles(comparison: Comparison) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the quantiles of each ordered column, in the real and in the synthetic table."""
    shapes = comparison.once(shapes_of)["synthetic"]
    return {
        name: {
            f"{share:g}": (float(real), float(synthetic))
            for share, real, synthetic in zip(
                SHARES, shapes.real_quantiles[index], shapes.quantiles[index], strict=True
            )
        }
        for index, name in enumerate(comparison.real.numbers)
    }


def _errors_of_columns(comparison: Comparison, errors: Floats) -> dict[str, dict[str, float]]:
    """Return the errors of each column, and its shares of missing and of pooled cells."""
    of_numbers = {
        key: comparison.once(column_errors.errors)["synthetic"]
        for key, column_errors in COLUMN_ERRORS.items()
    }
    index = {name: index for index, name in enumerate(comparison.real.numbers)}
    missing = [
        (table.records.codes == np.array(comparison.view.missing)).mean(axis=0)
        for table in (comparison.real, comparison.synthetic)
    ]
    return {
        name: {
            "error": float(errors[axis]),
            **{
                key: float(errors_of_key[index[name]]) if name in index else nan
                for key, errors_of_key in of_numbers.items()
            },
            "missing_real": float(missing[0][axis]),
            "missing_synthetic": float(missing[1][axis]),
            "pooled": float(np.sum(comparison.pooled.get(name, 0.0))),
            "pooled_values": float(np.size(comparison.pooled.get(name, ()))),
        }
        for axis, name in enumerate(comparison.view.domain)
    }
