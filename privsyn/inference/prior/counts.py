r"""Counts of an unordered column: posterior means under a prior that is estimated from the same counts.

Norm-sub subtracts one amount from all cells. Rare values then lose most of their records, and the noise of
empty cells stays where it is positive. Here the true counts are independent draws from an unknown
distribution, given their sum. The distribution is a nonparametric maximum likelihood estimate (Kiefer and
Wolfowitz 1956; Laird, JASA 1978) by EM, shrunk towards one that is uniform in the logarithm of the count. The
more cells a column has, the less it is shrunk.

A factor :math:`e^{\lambda x}` on the distribution of each count x keeps the sum: independent counts have
nearly this distribution, given their sum. To a cell far above the noise it adds :math:`\lambda` times the
variance, as norm-sub does.
"""

from __future__ import annotations

import numpy as np

from privsyn.inference import _kernels
from privsyn.inference.consistency import norm_sub
from privsyn.marginals.domain import Counts, Floats
from privsyn.marginals.tolerances import SMALLEST, TINY_VARIANCE

FAR = 8.0  # standard deviations: cells above need no prior
BEYOND = 4.0  # standard deviations by which the grid of counts exceeds them
SMALLEST_COUNT = 0.05  # standard deviations: the smallest count of the grid above 0
RATIO = 1.06  # of neighbouring counts of the grid

# From the columns of four benchmark tables, whole and cut to 3,000 rows, epsilon 0.2 and 1.
EMPTY = 0.5  # prior share of empty cells; the rest is uniform in the logarithm of the count
CELLS = 10.0  # weight of this prior, in cells
STEPS = 8  # of EM; more change the errors by less than 1 %
HALVINGS = 30


def posterior_counts(counts: Counts, variance: Floats, total: float) -> Counts:
    """Return the posterior means of a column's counts, given their sum.

    Fewer than three cells say too little about a prior: their counts are projected by norm-sub.

    Parameters
    ----------
    counts : array of shape (cells,)
        Noisy counts, in records.
    variance : array of shape (cells,)
        Their noise variances.
    total : float
        Sum of the result, in records.

    Examples
    --------
    >>> noisy = np.array([900.0, 60.0, 12.0, 9.0, -14.0, 8.0, -11.0, 10.0])
    >>> posterior_counts(noisy, np.full(8, 100.0), 960.0).round().tolist()
    [896.0, 55.0, 2.0, 2.0, 1.0, 2.0, 1.0, 2.0]
    >>> norm_sub(noisy, 960.0).round().tolist()
    [894.0, 54.0, 6.0, 2.0, 0.0, 2.0, 0.0, 4.0]
    """
    if len(counts) < 3 or not total > 0:
        return norm_sub(counts, total)
    counts, variance = np.array(counts, float), np.full(counts.shape, np.maximum(variance, TINY_VARIANCE))
    sigma = np.sqrt(variance)
    near = counts < FAR * sigma
    smallest, largest = np.log(SMALLEST_COUNT * sigma.min()), np.log((FAR + BEYOND) * sigma.max())
    steps = np.arange(smallest, largest, np.log(RATIO))
    grid = np.concatenate([[0.0], np.exp(steps)])
    start = np.full(len(grid), (1 - EMPTY) / len(steps))
    start[0] = EMPTY
    seen = np.maximum(counts / sigma, -FAR)[near, np.newaxis]
    likelihood = np.exp(-0.5 * (seen - grid / sigma[near, np.newaxis]) ** 2)

    cells = _kernels.SeenCells(counts, variance, near, likelihood, grid)
    largest, limit = float(grid[-1]), FAR / float(sigma.max())

    def tilted(law: Floats, tilt: float) -> Floats:
        return np.asarray(law * np.exp(tilt * grid - max(tilt * largest, 0.0)))

    def means(law: Floats, tilt: float) -> Counts:
        settled, prior = counts + tilt * variance, tilted(law, tilt)
        settled[near] = likelihood @ (prior * grid) / _evidence(likelihood, prior)
        return np.maximum(settled, 0.0)

    def best_tilt(law: Floats) -> float:
        return _kernels.best_tilt(cells, law, total, limit, HALVINGS)

    law = start
    for _ in range(STEPS):
        prior = tilted(law, best_tilt(law))
        expected = prior * (likelihood / _evidence(likelihood, prior)[:, np.newaxis]).sum(axis=0)
        law = (expected + CELLS * start) / (near.sum() + CELLS)
    settled = means(law, best_tilt(law))
    return settled * (total / settled.sum()) if settled.sum() > 0 else norm_sub(counts, total)


def _evidence(likelihood: Floats, prior: Floats) -> Floats:
    return np.asarray(np.maximum(likelihood @ prior, SMALLEST))
