"""The registry of metrics: every number that `evaluate` computes, in the order in which it is shown."""

from __future__ import annotations

from privsyn.evaluation import columns, correlations, marginals, predictions, rows
from privsyn.evaluation.metric import Metric

METRICS: dict[str, Metric] = {
    **marginals.ERRORS,
    **rows.NUMBERS,
    **columns.COLUMNS,
    **correlations.CORRELATIONS,
    **marginals.ASSOCIATIONS,
    **rows.ROWS,
    **predictions.PROPENSITY,
    **predictions.MODELS,
    **rows.LIKENESS,
}
