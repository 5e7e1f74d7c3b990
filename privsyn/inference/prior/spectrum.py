r"""The prior along an attribute: departures vary smoothly along ordered codes and freely among nominal ones.

The departures of a pair from its expected counts are a Gaussian process :math:`D_{ab} = p_a p_b f(a, b)`,
where p are the shares of the codes. Along ordered codes, f is a sum of cosines in the cumulated share. The
prior variance of the k-th is :math:`k^{-2s}`. Each nominal code has its own value, of variance 1/p. So the
covariance of a pair is the product of one matrix per attribute, times the pair's dispersion. Margins are
known from other tables: D sums to 0 along every axis.

Noise is white in the cells of a table, so the eigenvectors of the two matrices are independent components.
The posterior mean, its variance and the likelihood are sums over them. For a table measured in groups of
codes, the same matrices give the prior inside its groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Codes, Floats, keep

SMOOTHNESS = 0.75
"""Default s: departures between columns of real tables have s between 0.5 and 1.5."""

HARMONICS = 4  # cosines per code: faster ones average out inside the codes
TINY = 1e-12  # least share of a code
NEGLIGIBLE = 1e-9  # of the largest eigenvalue: smaller ones are dropped


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Independent components of the departures along one attribute, for a measurement in groups of codes.

    Parameters
    ----------
    vectors : array of shape (groups, components)
        Orthonormal.
    variances : array of shape (components,)
        Prior variance of each component, for a dispersion of 1 and one record.
    lift : array of shape (codes, components)
        Covariance of each code's departure with each component.
    prior : array of shape (codes,)
        Prior variance of each code's departure.
    """

    vectors: Floats
    variances: Floats
    lift: Floats
    prior: Floats

    def __post_init__(self) -> None:
        keep(self, "vectors", "variances", "lift", "prior")


def covariance(one_way: Marginal, smoothness: float) -> Floats:
    """Return the prior covariance of the departures of an attribute's codes, which sum to 0.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> coin = Marginal(Domain(("coin",), (2,)), np.array([5.0, 5.0]))
    >>> covariance(coin, 1.0).tolist()
    [[0.25, -0.25], [-0.25, 0.25]]
    """
    shares = np.maximum(one_way.counts, TINY * max(one_way.total, 1.0))
    shares = shares / shares.sum()
    found = np.diag(shares)
    ordered = one_way.domain.ordered[0]
    if ordered > 1:
        mass = shares[:ordered].sum()
        ends = np.concatenate([[0.0], np.cumsum(shares[:ordered])]) / mass
        orders = np.arange(1, HARMONICS * ordered + 1)
        waves = np.sqrt(2) * mass * np.diff(np.sin(np.pi * np.outer(ends, orders)), axis=0) / (np.pi * orders)
        smooth = (waves * orders ** (-2 * smoothness)) @ waves.T
        found[:ordered, :ordered] = (smooth + np.outer(shares[:ordered], shares[:ordered])) / mass
    sums = found.sum(axis=1)
    return np.asarray(found - np.outer(sums, sums) / sums.sum())


def spectrum_of(prior: Floats, group: Codes) -> Spectrum:
    """Return the components of a covariance when its codes are measured in groups."""
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    half = np.add.reduceat(prior[:, order], starts, axis=1)
    both = np.add.reduceat(half[order], starts, axis=0)
    variances, vectors = np.linalg.eigh((both + both.T) / 2)
    kept = variances > NEGLIGIBLE * max(float(variances.max(initial=0.0)), TINY)
    vectors = vectors[:, kept]
    return Spectrum(vectors, variances[kept], half @ vectors, np.diag(prior))
