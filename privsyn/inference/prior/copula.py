r"""Copulas of two ordered attributes: all cells from the two columns and one number.

The Gaussian copula has no tail dependence: of the largest numbers of one column, few go with the largest of
the other. Mehler's formula (1866) makes it a matrix product: the share of a cell is
:math:`\sum_k r^k h_k(a) h_k(b)`, where :math:`h_k(a)` is the integral of the k-th Hermite function over the
normal scores of code a.

The Gumbel copula has tail dependence in one corner (Nelsen, An Introduction to Copulas, 2006, 4.2.4). Its
distribution function is :math:`\exp(-((-\ln u)^\theta + (-\ln v)^\theta)^{1/\theta})`, where
:math:`\theta = 1/(1 - \tau)` and tau is Kendall's rank correlation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from privsyn.marginals.domain import Codes, Floats
from privsyn.marginals.marginal import Grouping, Marginal
from privsyn.marginals.tolerances import TINY_COUNT, TINY_SHARE

TERMS = 100  # of Mehler's sum: 0.97^100 is 0.05, and the terms decrease as well
EACH: Codes = np.arange(TERMS, dtype=np.int32)
CORRELATIONS: Floats = np.linspace(-0.97, 0.97, 98)
POWERS: Floats = CORRELATIONS[:, np.newaxis] ** np.arange(1, TERMS)
KENDALLS: Floats = np.linspace(0.02, 0.94, 47)
RARE = 0.1  # of what independence expects: where a copula expects less, records are unrelated

CLEAR = 2.5
"""Standard deviations of noise from which there are unrelated records. With 2, correlations of abalone have
2 % more error; with 3, those with unrelated rows of `experiments/small_claims.py` have 10 % more."""

MOST_UNRELATED = 0.9  # largest share of unrelated records
ITERATIONS = 3  # of their share, and of the copula of the others

Corner = tuple[bool, bool]
"""For both attributes, whether the tail dependence is among their smallest numbers."""

CORNERS: tuple[Corner, ...] = ((False, False), (False, True), (True, False), (True, True))


def hermite(one_way: Marginal) -> Floats:
    """Return the integrals of the Hermite functions over the ordered codes, of shape (codes, TERMS)."""
    counts = one_way.counts[: one_way.domain.ordered[0]]
    shares = (counts + TINY_COUNT) / (counts + TINY_COUNT).sum()
    scores = ndtri(np.minimum(np.cumsum(shares)[:-1], 1 - TINY_SHARE))
    density = np.exp(-(scores**2) / 2) / np.sqrt(2 * np.pi)
    ends = np.zeros((TERMS, len(shares) + 1))  # the functions at the ends of the codes; 0 at both infinities
    ends[1, 1:-1] = density
    for order in range(2, TERMS):
        ends[order, 1:-1] = scores * ends[order - 1, 1:-1] - np.sqrt(order - 2) * ends[order - 2, 1:-1]
        ends[order] /= np.sqrt(order - 1)
    integrals = np.empty((len(shares), TERMS))
    integrals[:, 0] = shares
    integrals[:, 1:] = -np.diff(ends[1:]).T / np.sqrt(EACH[1:])
    return integrals


def best_correlation(deviation: Floats, groups: tuple[Codes, Codes], sides: tuple[Floats, Floats]) -> float:
    """Return the correlation whose Gaussian copula fits a table best, by least squares.

    Parameters
    ----------
    deviation : array of shape (groups, groups)
        Noisy shares of the groups of ordered codes, minus their shares under independence.
    groups : the group of each ordered code
    sides : the `hermite` integrals of both attributes
    """
    a, b = (Grouping((group, EACH)).join(side)[:, 1:] for side, group in zip(sides, groups, strict=True))
    deviation = _centred(deviation)
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    fit = POWERS @ (a * (deviation @ b)).sum(axis=0)
    size = ((POWERS @ ((a.T @ a) * (b.T @ b))) * POWERS).sum(axis=1)
    return float(CORRELATIONS[np.argmax(2 * fit - size)])


def copula(correlation: float, sides: tuple[Floats, Floats]) -> Floats:
    """Return the shares of all cells of the ordered codes, by the Gaussian copula."""
    a, b = sides
    return np.maximum((a * correlation ** np.arange(TERMS)) @ b.T, TINY_SHARE)


def with_unrelated(
    fit: Callable[[Floats], Floats],
    deviation: Floats,
    groups: tuple[Codes, Codes],
    shares: tuple[Floats, Floats],
    sigma: float,
) -> Floats:
    """Return the shares of all cells by a copula of most records; the others are unrelated.

    Least squares would find few unrelated records, because the dense cells of the diagonal decide. So they
    are counted where the copula expects hardly any record. The copula is then fitted to the rest. Margins are
    known from other tables, so their noise is left out.

    Parameters
    ----------
    fit : callable
        Return the cells of the copula that fits a deviation best.
    deviation, groups
        As for `best_correlation`.
    shares : shares of the codes of both attributes
    sigma : float
        Standard deviation of the noise in a cell of `deviation`.
    """
    unrelated, part, cells = np.outer(*shares), 0.0, fit(deviation)
    join = Grouping(groups).join
    even = join(unrelated)
    for _ in range(ITERATIONS):
        gaps = even - join(cells)
        away = gaps > (1 - RARE) * even
        inner, missing = _centred(away.astype(np.float64)), float(gaps[away].sum())
        excess, noise = missing + float((inner * deviation).sum()), sigma * float(np.linalg.norm(inner))
        if excess <= CLEAR * noise:
            break
        part = min(excess / missing, MOST_UNRELATED)
        cells = fit(deviation / (1 - part))
    return part * unrelated + (1 - part) * cells


def _centred(table: Floats) -> Floats:
    """Return the table less its means along each axis."""
    for axis in range(2):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def best_gumbel(
    deviation: Floats, groups: tuple[Codes, Codes], shares: tuple[Floats, Floats]
) -> tuple[float, Corner]:
    """Return Kendall's correlation and the corner of the Gumbel copula that fits a table best.

    Parameters
    ----------
    deviation, groups
        As for `best_correlation`.
    shares : shares of the codes of both attributes
    """
    a, b = (Grouping((group,)).join(share) for share, group in zip(shares, groups, strict=True))
    gaps = [
        ((gumbel(KENDALLS, corner, (a, b)) - np.outer(a, b) - deviation) ** 2).sum(axis=(1, 2))
        for corner in CORNERS
    ]
    corner, index = np.unravel_index(np.argmin(gaps), np.shape(gaps))
    return float(KENDALLS[index]), CORNERS[corner]


def gumbel(kendall: float | Floats, corner: Corner, shares: tuple[Floats, Floats]) -> Floats:
    """Return the shares of all cells by the Gumbel copula, for each of Kendall's correlations.

    Examples
    --------
    >>> halves = np.array([0.5, 0.5])
    >>> gumbel(0.5, (False, False), (halves, halves)).round(3).tolist()
    [[0.375, 0.125], [0.125, 0.375]]
    """
    turned = [np.flip(share) if low else share for share, low in zip(shares, corner, strict=True)]
    # The last sum is 1 after clipping, however the shares are rounded.
    a, b = (-np.log(np.cumsum([0.0, *share[:-1], 2.0]).clip(TINY_SHARE, 1.0)) for share in turned)
    theta = 1 / (1 - np.asarray(kendall)[..., np.newaxis, np.newaxis])
    below = np.exp(-((a[:, np.newaxis] ** theta + b**theta) ** (1 / theta)))
    cells = np.diff(np.diff(below, axis=-2), axis=-1)
    axes = tuple(axis for axis, low in zip((-2, -1), corner, strict=True) if low)
    return np.maximum(np.flip(cells, axes), TINY_SHARE)
