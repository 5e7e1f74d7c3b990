r"""The Gaussian copula of two ordered attributes: all cells from one correlation.

Mehler's formula (1866) makes it a matrix product: the share of a cell is
:math:`\sum_k r^k h_k(a) h_k(b)`, where :math:`h_k(a)` is the integral of the k-th Hermite function over the
normal scores of code a.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from privsyn.marginals.coarse import join
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Codes, Floats

TERMS = 100  # of Mehler's sum: 0.97^100 is 0.05, and the terms decrease as well
EACH: Codes = np.arange(TERMS, dtype=np.int32)
CORRELATIONS: Floats = np.linspace(-0.97, 0.97, 98)
POWERS: Floats = CORRELATIONS[:, np.newaxis] ** np.arange(1, TERMS)


def hermite(one_way: Marginal) -> Floats:
    """Return the integrals of the Hermite functions over the ordered codes, of shape (codes, TERMS)."""
    counts = one_way.counts[: one_way.domain.ordered[0]]
    shares = (counts + 1e-9) / (counts + 1e-9).sum()
    scores = ndtri(np.minimum(np.cumsum(shares)[:-1], 1 - 1e-12))
    density = np.exp(-(scores**2) / 2) / np.sqrt(2 * np.pi)
    integrals = np.empty((len(shares), TERMS))
    integrals[:, 0] = shares
    before, now = np.zeros(len(scores)), density
    for order in range(1, TERMS):
        ends = np.concatenate([[0.0], now, [0.0]])
        integrals[:, order] = -np.diff(ends) / np.sqrt(order)
        before, now = now, (scores * now - np.sqrt(order - 1) * before) / np.sqrt(order)
    return integrals


def best_correlation(residual: Floats, groups: tuple[Codes, Codes], sides: tuple[Floats, Floats]) -> float:
    """Return the correlation whose copula fits a table best, by least squares.

    Parameters
    ----------
    residual : array of shape (groups, groups)
        Noisy shares of the groups of ordered codes, minus those under independence.
    groups : the group of each ordered code
    sides : the `hermite` integrals of both attributes
    """
    a, b = (join(side, (group, EACH))[:, 1:] for side, group in zip(sides, groups, strict=True))
    for axis in range(2):
        residual = residual - residual.mean(axis=axis, keepdims=True)
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    fit = POWERS @ (a * (residual @ b)).sum(axis=0)
    size = ((POWERS @ ((a.T @ a) * (b.T @ b))) * POWERS).sum(axis=1)
    return float(CORRELATIONS[np.argmax(2 * fit - size)])


def copula(correlation: float, sides: tuple[Floats, Floats]) -> Floats:
    """Return the shares of all cells of the ordered codes."""
    a, b = sides
    return np.maximum((a * correlation ** np.arange(TERMS)) @ b.T, 1e-12)
