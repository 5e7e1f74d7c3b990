"""Compiled loops of inference; each has a slow twin in tests/reference.py."""

from __future__ import annotations

import numpy as np
from numba import njit

from privsyn.marginals.types import Floats, Ints

LEAST_FITTED = 1e-12  # share of a cell: classes that rule it out altogether do not divide by 0


@njit(cache=True, fastmath=True)  # sums over classes in any order, so that they are done several at once
def add_class_evidence(
    values: Floats, classes: Floats, observed: Floats, row: int, column: int, evidence: Floats
) -> None:
    """Add to `evidence` how much of each value one pair's table puts down to each class.

    Parameters
    ----------
    values, evidence : of shape (values of all attributes, classes)
        The pair's attributes begin at `row` and `column`.
    classes : of shape (classes,), their shares
    observed : of the pair's shape, shares of the table
    """
    part = np.empty(len(classes))
    for i in range(observed.shape[0]):
        for j in range(observed.shape[1]):
            if observed[i, j] <= 0:
                continue
            fitted = 0.0
            for k in range(len(classes)):
                part[k] = classes[k] * values[row + i, k] * values[column + j, k]
                fitted += part[k]
            ratio = observed[i, j] / max(fitted, LEAST_FITTED)
            for k in range(len(classes)):
                evidence[row + i, k] += ratio * part[k]
                evidence[column + j, k] += ratio * part[k]


@njit(cache=True)
def slopes(variances: Floats, ends: Ints, rhos: Floats) -> Floats:
    """How fast each table's expected error falls at each budget: float64 of shape (tables, budgets).

    Parameters
    ----------
    variances : prior variances of the cells of all tables, one table after the other
    ends : of shape (tables,), where each table's cells end
    rhos : of shape (budgets,)
    """
    falls = np.zeros((len(ends), len(rhos)))
    start = 0
    for t in range(len(ends)):
        for c in range(start, ends[t]):
            for r in range(len(rhos)):
                left = variances[c] / (1 + 2 * rhos[r] * variances[c])
                falls[t, r] += left * np.sqrt(left)
        start = ends[t]
    return np.sqrt(2 / np.pi) * falls
