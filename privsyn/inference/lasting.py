"""Which columns last along the rows of a parent, by released answers."""

from __future__ import annotations

from math import sqrt

import numpy as np

from privsyn.marginals.domain import Floats, Ints
from privsyn.marginals.tolerances import TINY_SHARE

LASTS = 0.5
"""Least share of a column's rows that stay the same beyond chance, for the column to last."""

CLEAR = 3.0
"""Standard deviations by which that share must exceed chance."""


def can_be_seen_to_last(persons: float, variance: float) -> bool:
    """Return whether `lasts` could be true of a column that always stays the same.

    With s = 1 and b = 0 the noise of the first two numbers alone must leave `CLEAR` standard deviations.

    Parameters
    ----------
    persons : float
        Who have two rows or more, and therefore one with a row before it.
    variance : float
        Of the noise in the sum of the shares and in the number of persons.

    Examples
    --------
    >>> can_be_seen_to_last(1000.0, 100.0**2), can_be_seen_to_last(1000.0, 300.0**2)
    (True, False)
    """
    return persons >= CLEAR * sqrt(2 * variance)


def lasts(stays: Floats, stays_variance: float, values: Ints, values_variance: float) -> bool:
    r"""Return whether a column lasts.

    Let s be the mean share of a person's rows with the value of the row before, and
    :math:`b = \sum_v p_v^2` the probability that two persons have the same value. The share beyond chance is
    :math:`(s - b) / (1 - b)`, as in Cohen's kappa. A column lasts if it is at least `LASTS`, and s exceeds b
    by `CLEAR` standard deviations of the noise.

    Parameters
    ----------
    stays : array of shape (2,)
        The sum of the shares, and the number of persons: noisy.
    stays_variance : float
        Of the noise in each.
    values : integer array of shape (values,)
        The number of persons with each value in one row: noisy.
    values_variance : float
        Of the noise in each.

    Examples
    --------
    >>> lasts(np.array([900.0, 1000.0]), 100.0, np.array([500, 500]), 100.0)
    True
    >>> lasts(np.array([900.0, 1000.0]), 100.0, np.array([950, 50]), 100.0)
    False
    >>> lasts(np.array([9.0, 10.0]), 100.0, np.array([5, 5]), 100.0)
    False
    """
    persons, all_values = float(stays[1]), float(values.sum())
    if min(persons, all_values) <= 0:
        return False
    share = float(np.clip(stays[0] / persons, 0.0, 1.0))
    squares = float((values.astype(np.float64) ** 2 - values_variance).sum())  # without bias by the noise
    chance = float(np.clip(squares / all_values**2, 1 / len(values), 1.0))
    variance = stays_variance * (1 + share**2) / persons**2
    variance += 4 * chance * values_variance / all_values**2  # of sum p^2, by the noise in each p
    beyond = share - chance
    return beyond >= LASTS * max(1 - chance, TINY_SHARE) and beyond >= CLEAR * sqrt(variance)
