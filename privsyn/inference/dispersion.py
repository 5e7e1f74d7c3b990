r"""How far the counts of a table lie from what was expected of them.

Before a table is measured its cells are expected at :math:`\mu_c` (say, the product of its one-ways),
give or take a standard deviation :math:`\sqrt{\kappa \mu_c}`: 1 is the scatter of chance in an
independent table, more is dependence. The dispersion :math:`\kappa` is the one unknown of a table. It says
what measuring the table would bring, and how much of what was measured is noise.

What the answers say about it is kept as log-likelihoods over the grid `DISPERSIONS`, which add up, and the
tables of one run are taken as alike: a table about which little is known gets what is usual among them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from privsyn.marginals.marginal import Measurement
from privsyn.marginals.types import Floats

DISPERSIONS: Floats = np.logspace(-2, 5, 36)
MEAN_OF_ABSOLUTE = float(np.sqrt(2 / np.pi))  # mean of |Z| of a standard normal Z
MODEL_ERROR = 0.15  # of an expected departure: cells do not all spread alike
USUAL_SCATTER = 0.3  # least standard deviation, in ln(dispersion), among the tables of a run
USUAL = 0.01  # dispersion of a table over its records, in tables of real columns
UNSURE = 1.5  # standard deviation of its logarithm
POOLING_ROUNDS = 30  # of expectation-maximisation; it settles in fewer


def departure_likelihood(departure: float, sigma: float, expected: Floats, uncertainty: Floats) -> Floats:
    """What the released L1 distance between a table and its expected counts says about the dispersion.

    Parameters
    ----------
    departure : float
        Noisy sum of absolute differences, in records.
    sigma : float
        Standard deviation of its noise.
    expected : array
        Expected counts of the cells.
    uncertainty : array of the same shape
        Variance of the expected counts themselves: noise of the one-ways, which adds to the departure.

    Returns
    -------
    array of shape ``DISPERSIONS.shape``: log-likelihood of each dispersion, up to a constant.
    """
    variances = np.multiply.outer(DISPERSIONS, expected.ravel()) + uncertainty.ravel()
    predicted = MEAN_OF_ABSOLUTE * np.sqrt(variances).sum(axis=1)
    scale = np.hypot(sigma, MODEL_ERROR * predicted)
    return np.asarray(-0.5 * ((departure - predicted) / scale) ** 2 - np.log(scale))


def residual_likelihood(residual: Floats, expected: Floats, variance: float | Floats) -> Floats:
    """What a measured table says about its dispersion, by the energy of its residuals.

    The margins are known better from elsewhere, so the residual is centred along every axis; that
    leaves prod(size - 1) degrees of freedom, and each cell counts for its share of them.

    Parameters
    ----------
    residual : array
        Noisy counts less expected ones.
    expected : array of the same shape
    variance : float or array of the same shape
        Of the noise in each cell; 0 where nothing is expected either, in a public zero.

    Examples
    --------
    Residuals of size 30 with noise of variance 1 speak for a dispersion near 900 / 100:

    >>> likelihood = residual_likelihood(30.0 * np.array([[1, -1], [-1, 1]]), np.full((2, 2), 100.0), 1.0)
    >>> bool(8 < DISPERSIONS[likelihood.argmax()] < 50)
    True
    """
    for axis in range(residual.ndim):
        residual = residual - residual.mean(axis=axis, keepdims=True)
    freedom = float(np.prod([1 - 1 / size for size in residual.shape]))
    variances = (
        np.multiply.outer(DISPERSIONS, expected.ravel()) + np.broadcast_to(variance, expected.shape).ravel()
    )
    told = variances[-1] > 0  # a public zero tells nothing
    variances = variances[:, told]
    energy = residual.ravel()[told] ** 2 / variances
    return np.asarray(-0.5 * (freedom * np.log(variances) + energy).sum(axis=1))


def residual_likelihoods(measured: Iterable[Measurement], expected: Iterable[Floats]) -> list[Floats]:
    """The same of each of some tables, by how far they were measured from what was expected of them."""
    return [
        residual_likelihood(m.marginal.counts - counts, counts, m.variance)
        for m, counts in zip(measured, expected, strict=True)
    ]


def pooled_dispersions(
    likelihoods: list[Floats], total: float | None = None, *, hopeful: bool = False
) -> Floats:
    """The dispersion of each table, those about which little is known drawn to what is usual.

    ln(dispersion) is taken as normal among the tables, its mean and variance estimated from all of them
    (empirical Bayes, by expectation-maximisation).

    Parameters
    ----------
    likelihoods : list of arrays of shape ``DISPERSIONS.shape``, one a table
    total : float, optional
        Number of records. With it, `USUAL` stands beside the tables as one more: it decides where they say
        nothing.

    Returns
    -------
    array of shape (number of tables,): geometric posterior means.

    Examples
    --------
    >>> sharp = -50.0 * np.log(DISPERSIONS / 10.0) ** 2
    >>> pooled_dispersions([sharp, sharp, np.zeros(36)]).round(1).tolist()  # the third says nothing
    [10.0, 10.0, 10.0]
    """
    grid = np.log(DISPERSIONS)
    table = np.array(likelihoods).reshape(len(likelihoods), len(grid))
    mean, scatter = float(grid.mean()), float(np.ptp(grid)) / 4
    means = np.full(len(table), mean)
    before = [] if total is None else [float(np.log(USUAL * total))]
    if before:
        mean, scatter = before[0], UNSURE
    for _ in range(POOLING_ROUNDS if len(table) else 0):
        posterior = table - 0.5 * ((grid - mean) / scatter) ** 2
        weights = np.exp(posterior - posterior.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        means = weights @ grid
        mean = float(np.mean([*means, *before]))
        squares = [*(weights @ (grid - mean) ** 2), *(UNSURE**2 for _ in before)]
        scatter = max(float(np.sqrt(np.mean(squares))), USUAL_SCATTER)
    if hopeful:
        posterior = table - 0.5 * ((grid - mean) / scatter) ** 2
        weights = np.exp(posterior - posterior.max(axis=1, keepdims=True))
        return np.asarray((weights @ np.exp(grid)) / weights.sum(axis=1))
    return np.exp(means)
