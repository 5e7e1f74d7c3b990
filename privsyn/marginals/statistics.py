"""Measures of dependence between the two attributes of a table, and of distance between tables."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from privsyn.marginals.domain import Attributes
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Floats


def mutual_information(pair: Marginal) -> float:
    """Return the mutual information, in nats, of a table of two attributes with non-negative counts.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> coins = Domain(("left", "right"), (2, 2))
    >>> round(mutual_information(Marginal(coins, np.array([[5, 0], [0, 5]]))), 6)  # ln 2
    0.693147
    >>> mutual_information(Marginal(coins, np.array([[1, 1], [1, 1]])))
    0.0
    """
    a, b, both = _entropies(pair)
    return max(a + b - both, 0.0)


def coupling(pair: Marginal) -> float:
    """Return mutual information over the smaller of the two entropies, from 0 to 1.

    It is 1 if one attribute is a function of the other.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> places = Domain(("city", "country"), (3, 2))
    >>> round(coupling(Marginal(places, np.array([[5, 0], [3, 0], [0, 9]]))), 6)
    1.0
    """
    a, b, both = _entropies(pair)
    least = min(a, b)
    return min(max((a + b - both) / least, 0.0), 1.0) if least > 0 else 0.0


def pairs_within(tables: tuple[Marginal, ...]) -> dict[Attributes, Marginal]:
    """Return the counts of every pair of attributes that a table holds; the last table wins."""
    return {pair: table.project(pair) for table in tables for pair in combinations(table.attributes, 2)}


def _entropies(pair: Marginal) -> tuple[float, float, float]:
    """Return the entropy of each attribute, and that of both together."""
    return _entropy(pair.counts.sum(axis=1)), _entropy(pair.counts.sum(axis=0)), _entropy(pair.counts.ravel())


def _entropy(counts: Floats) -> float:
    """Return the entropy in nats."""
    shares = counts / counts.sum()
    shares = shares[shares > 0]
    return -float(np.sum(shares * np.log(shares)))


def total_variation(one: Floats, other: Floats) -> float:
    """Return half the sum of absolute differences: the share of rows that would have to change.

    Examples
    --------
    >>> total_variation(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25]))
    0.25
    """
    return float(np.abs(one - other).sum() / 2)
