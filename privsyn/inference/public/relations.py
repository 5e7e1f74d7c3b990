r"""Whether public rows predict how columns depend on each other, before they are weighted to any such answer.

Rows that combine many values can be given nearly any counts of pairs by weights, and still lack the relations
of the private rows. Splitting the noise shows this only if answers err by noise alone. Those about the kept
rows of persons also lean. So public rows are first weighted to single counts alone (raking). Their counts p
of pairs, and those q of independent columns, are compared with the answers y:

.. math:: E_p = \sum_c \Bigl(\frac{(p_c - y_c)^2}{\sigma_c^2} - 1\Bigr), \quad
    E_q = \sum_c \Bigl(\frac{(q_c - y_c)^2}{\sigma_c^2} - 1\Bigr).
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from privsyn.inference.fitted import Fitted
from privsyn.inference.public.weights import weighted_counts
from privsyn.marginals.domain import Floats, Records
from privsyn.marginals.tolerances import TINY_COUNT, TINY_VARIANCE

RAKINGS = 10  # single counts then agree to hundredths
LEFT = 0.4
"""Share of the error of independent columns that public rows may leave. In purchases and households at
epsilon 1 and 5 near rows left up to 0.14, rows with shuffled columns 0.56 to 1.04, and rows of another
subpopulation 1.16 to 3.2."""
CLEAR = 3.0  # standard deviations by which the error of independent columns must exceed the noise to judge


def predict_relations(fitted: Fitted, records: Records) -> bool:
    """Return whether public rows predict the answers about pairs much better than independent columns do.

    They are taken to, if the answers show no relation above their noise.

    Parameters
    ----------
    fitted : Fitted
    records : Records
        Public rows in merged codes, at least one, of some or all attributes.
    """
    names, weights = set(records.domain.names), _raked(fitted, records)
    pairs = [
        certainty.measured
        for certainty in fitted.certainties
        if len(certainty.attributes) == 2 and names.issuperset(certainty.attributes)
    ]
    public = weighted_counts(records, [pair.attributes for pair in pairs], weights)
    error_of_rows, error_of_columns, cells = 0.0, 0.0, 0
    for pair, counts in zip(pairs, public, strict=True):
        first, second = (fitted.one_way(name).counts for name in pair.attributes)
        independent = np.outer(first, second) / max(float(second.sum()), TINY_COUNT)
        variance = np.maximum(pair.variance, TINY_VARIANCE)
        gaps = (pair.grouping.join(table) - pair.marginal.counts for table in (counts, independent))
        of_rows, of_columns = (float(np.sum(gap**2 / variance - 1)) for gap in gaps)
        error_of_rows, error_of_columns = error_of_rows + of_rows, error_of_columns + of_columns
        cells += pair.variance.size
    return error_of_rows <= LEFT * error_of_columns or error_of_columns <= CLEAR * sqrt(2 * cells)


def _raked(fitted: Fitted, records: Records) -> Floats:
    """Return weights with which the rows have the single counts of the model."""
    weights = np.full(len(records), fitted.total / len(records))
    for _ in range(RAKINGS):
        for codes, name in zip(records.codes.T, records.domain.names, strict=True):
            released = fitted.one_way(name).counts
            counts = np.bincount(codes, weights, len(released))
            weights *= (released / np.maximum(counts, TINY_COUNT))[codes]
    return weights
