"""How far two scores on the same test rows may differ by chance.

The influence of a row on a score is the rate at which the score changes as that row weighs more, times the
number of rows. Its mean is zero, and its standard deviation divided by the root of the number of rows is the
standard error of the score. Two models are tried on the same rows, so the standard error of the difference of
their scores is that of the difference of their influences. It covers the choice of the test rows, not that of
the rows that the models learnt from.
"""

from __future__ import annotations

from math import nan, sqrt

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from privsyn.marginals.types import Floats, Mask


def influence_on_auc(truth: Mask, scores: Floats) -> Floats:
    """Return the influence of each row on the AUC.

    Parameters
    ----------
    truth : boolean array of shape (rows,)
        At least one True and one False.
    scores : float array of shape (rows,)

    References
    ----------
    DeLong, DeLong and Clarke-Pearson, "Comparing the areas under two or more correlated receiver operating
    characteristic curves", Biometrics 44, 1988.

    Examples
    --------
    >>> influence_on_auc(np.array([False, False, True, True]), np.array([1.0, 3.0, 2.0, 4.0])).tolist()
    [0.5, -0.5, -0.5, 0.5]
    """
    rows, ranks = len(truth), rankdata(scores)
    positives = int(truth.sum())
    negatives = rows - positives
    below = (ranks[truth] - rankdata(scores[truth])) / negatives  # negatives below each positive
    above = 1 - (ranks[~truth] - rankdata(scores[~truth])) / positives  # positives above each negative
    found = np.empty(rows)
    found[truth] = (below - below.mean()) * rows / positives
    found[~truth] = (above - above.mean()) * rows / negatives
    return found


def influence_on_r2(truth: npt.NDArray, guess: npt.NDArray) -> Floats:
    """Return the influence of each row on R2, which is 1 - mean squared error / variance."""
    squares, spread = (truth - guess) ** 2, (truth - truth.mean()) ** 2
    variance = spread.mean()
    if not variance > 0:
        return np.full(len(truth), nan)
    return np.asarray((squares.mean() * spread / variance - squares) / variance)


def standard_error(one: Floats, other: Floats) -> float:
    """Return the standard error of the difference of two scores from their influences; NaN if unknown.

    >>> standard_error(np.array([1.0, -1.0]), np.array([0.0, 0.0]))
    0.7071067811865476
    """
    if not len(one) or len(one) != len(other):
        return nan
    return sqrt(float(np.mean((one - other) ** 2)) / len(one))
