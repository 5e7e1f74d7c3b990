"""Standard error of the difference of two scores on the same test rows.

The influence of a row on a score is the derivative of the score by the weight of the row, times the number of
rows. Its mean is zero. Its standard deviation, divided by the square root of the number of rows, is the
standard error of the score. Two models are tested on the same rows. The standard error of the difference of
their scores therefore follows from the difference of their influences. It covers the choice of the test rows,
not the choice of the training rows.
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
    influence = np.empty(rows)
    influence[truth] = (below - below.mean()) * rows / positives
    influence[~truth] = (above - above.mean()) * rows / negatives
    return influence


def influence_on_r2(truth: npt.NDArray, guess: npt.NDArray) -> Floats:
    """Return the influence of each row on R2, which is 1 - mean squared error / variance."""
    squares, spread = (truth - guess) ** 2, (truth - truth.mean()) ** 2
    variance = spread.mean()
    if not variance > 0:
        return np.full(len(truth), nan)
    return np.asarray((squares.mean() * spread / variance - squares) / variance)


def standard_error(one: Floats, other: Floats) -> float:
    """Return the standard error of the difference of two scores; NaN without their influences.

    >>> standard_error(np.array([1.0, -1.0]), np.array([0.0, 0.0]))
    0.7071067811865476
    """
    if not len(one) or len(one) != len(other):
        return nan
    return sqrt(float(np.mean((one - other) ** 2)) / len(one))
