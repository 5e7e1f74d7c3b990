r"""Dispersion: how far the counts of a table lie from their expected counts.

Before a table is measured, its cells have mean :math:`\mu_c` (for example the product of its one-ways) and
standard deviation :math:`\sqrt{\kappa \mu_c}`. The dispersion :math:`\kappa` is 1 for sampling variation in
an independent table; more means dependence. It is the one unknown of a table. It determines what a
measurement would gain, and how much of a measured deviation is noise.

Evidence is stored as log-likelihoods over the grid `DISPERSIONS`, which add up. Dispersions are pooled over
the tables of a run: tables with little evidence get a typical value.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from privsyn.inference import _kernels
from privsyn.marginals.domain import Floats
from privsyn.marginals.marginal import Measurement, for_alike

DISPERSIONS: Floats = np.logspace(-2, 5, 36)
LOGS: Floats = np.log(DISPERSIONS)
MEAN_OF_ABSOLUTE = _kernels.MEAN_OF_ABSOLUTE
MODEL_ERROR = 0.15  # relative error of an expected departure, because cells vary in dispersion
USUAL_SCATTER = 0.3  # least standard deviation of ln(dispersion) among the tables of a run
USUAL = 0.01  # typical dispersion of a table over its number of records, in tables of real columns
UNSURE = 1.5  # standard deviation of its logarithm
SCORED_AT_ONCE = 3000  # cells of tables: their variances at all dispersions take 1 MB
POOLING_ITERATIONS = 30  # of expectation-maximisation, at most; with few, weak evidence is shrunk less far
SETTLING_ITERATIONS = 1000  # the same until the mean and the standard deviation settle
SETTLED = 1e-3  # change of the mean and of the standard deviation of ln(dispersion) that ends them
LEAST_DENSITY = 1e-250  # of the prior, over its largest: a table far away would otherwise give 0 / 0
MOST_POOLED = 20_000  # tables from which both are estimated; of more tables, evenly spaced ones are taken


def departure_likelihood(departure: float, sigma: float, expected: Floats, uncertainty: Floats) -> Floats:
    """Return `departure_likelihoods` of one table: an array of shape ``DISPERSIONS.shape``."""
    alone = expected.reshape(1, -1), uncertainty.reshape(1, -1)
    return np.asarray(departure_likelihoods(np.array([departure]), sigma, *alone)[0])


def departure_likelihoods(departures: Floats, sigma: float, expected: Floats, uncertainty: Floats) -> Floats:
    """Return log-likelihoods of dispersions, from the noisy L1 distances of tables to their expected counts.

    Parameters
    ----------
    departures : array of shape (tables,)
        Noisy sum of absolute differences of each table, in records.
    sigma : float
        Standard deviation of their noise, in records.
    expected : array of shape (tables, cells)
        Expected counts of the cells.
    uncertainty : array of the same shape
        Variance of the expected counts, from the noise of the one-ways. It adds to the departure.

    Returns
    -------
    array of shape (tables, dispersions): log-likelihood of each dispersion, up to a constant.
    """
    expected, uncertainty = (np.require(cells, float, ("C", "W")) for cells in (expected, uncertainty))
    predicted = MEAN_OF_ABSOLUTE * _kernels.sums_of_deviations(expected, uncertainty, DISPERSIONS)
    scale = np.hypot(sigma, MODEL_ERROR * predicted)
    return np.asarray(-0.5 * ((departures[:, np.newaxis] - predicted) / scale) ** 2 - np.log(scale))


def deviation_likelihoods(
    measured: Sequence[Measurement], expected: Sequence[Floats], spreads: Sequence[Floats] | None = None
) -> list[Floats]:
    """Return log-likelihoods of dispersions, from the energy of measured tables' deviations.

    The margins are known better from other tables, so a deviation is centred along every axis. That leaves
    prod(size - 1) degrees of freedom; each cell counts for its share of them. Tables of one shape are
    computed together.

    Parameters
    ----------
    measured : sequence of Measurement
        The noise variance is 0 in a structural zero, where the expected count is 0 too.
    expected : sequence of arrays, each of the shape of its table
        Expected counts of the cells.
    spreads : sequence of arrays of the same shapes, optional
        A dispersion is the variance of a cell over its spread. Default: its expected count.

    Examples
    --------
    Deviations of size 30 with noise variance 1 indicate a dispersion near 900 / 100:

    >>> from privsyn.marginals.domain import Domain
    >>> from privsyn.marginals.marginal import Marginal
    >>> counts = Marginal(Domain(("a", "b"), (2, 2)), 100 + 30.0 * np.array([[1, -1], [-1, 1]]))
    >>> (likelihood,) = deviation_likelihoods([Measurement(counts, 1.0)], [np.full((2, 2), 100.0)])
    >>> bool(8 < DISPERSIONS[likelihood.argmax()] < 50)
    True
    """
    likelihoods = np.empty((len(measured), *DISPERSIONS.shape))

    def compute(indices: list[int]) -> None:
        counts = np.array([expected[i] for i in indices])
        deviations = np.array([measured[i].marginal.counts for i in indices]) - counts
        variances = np.array([measured[i].variance for i in indices])
        spread = counts if spreads is None else np.array([spreads[i] for i in indices])
        likelihoods[indices] = _deviation_likelihoods(deviations, spread, variances)

    for_alike(compute, [e.shape for e in expected], [e.size for e in expected], SCORED_AT_ONCE)
    return list(likelihoods)


def _deviation_likelihoods(deviations: Floats, spread: Floats, variance: Floats) -> Floats:
    """Return `deviation_likelihoods` of tables of one shape, from arrays of shape (tables, ...)."""
    flat, shape = (len(deviations), 1, -1), deviations.shape[1:]
    for axis in range(len(shape)):
        deviations = deviations - deviations.mean(axis=axis + 1, keepdims=True)
    freedom = prod(1 - 1 / size for size in shape)
    variances = spread.reshape(flat) * DISPERSIONS[:, np.newaxis]
    variances += variance.reshape(flat)
    energies = deviations.reshape(flat) ** 2
    certain = variances[:, -1:] == 0  # structural zeros carry no information
    if certain.any():
        variances, energies = np.where(certain, 1.0, variances), np.where(certain, 0.0, energies)
    return np.asarray(-0.5 * (freedom * np.log(variances) + energies / variances).sum(axis=2))


def log_possible(expected: Floats) -> Floats:
    """Return 0 for each of the `DISPERSIONS` that a table of two columns can have, and minus infinity beyond.

    Cramer's V is at most 1: about independence, the sum of (x - mu)^2 / mu is at most n (min(a, b) - 1) in a
    table of n records and a x b cells. Its expected value is (a - 1) (b - 1) times the dispersion, which so
    is at most n / (max(a, b) - 1). Other means are fitted to the answers, so that tables lie nearer to them.

    Parameters
    ----------
    expected : array of shape (a, b)

    Examples
    --------
    >>> float(DISPERSIONS[log_possible(np.full((2, 6), 50.0)) == 0].max().round())
    158.0
    """
    largest = expected.sum() / max(max(expected.shape) - 1, 1)
    above = np.searchsorted(DISPERSIONS, largest)  # the first that is not less, so that the bound is possible
    return np.where(np.arange(len(DISPERSIONS)) <= above, 0.0, -np.inf)


def pooled_dispersions(
    likelihoods: list[Floats],
    total: float | None = None,
    *,
    hopeful: bool = False,
    iterations: int = POOLING_ITERATIONS,
) -> Floats:
    """Return the dispersion of each table, shrunk towards a typical value where there is little evidence.

    ln(dispersion) is modelled as normal among the tables. Its mean and variance are estimated from the
    tables, at most `MOST_POOLED` of them (empirical Bayes, by expectation-maximisation).

    Parameters
    ----------
    likelihoods : list of arrays of shape ``DISPERSIONS.shape``, one per table
    total : float, optional
        Number of records. If given, `USUAL` counts as one more table; it decides where there is no evidence.
    hopeful : bool
        Return arithmetic instead of geometric posterior means.
    iterations : int
        Most iterations of expectation-maximisation. Weak evidence on many tables needs hundreds: each moves
        the mean by the share of the evidence in what is known of a table.

    Returns
    -------
    array of shape (number of tables,): posterior means, geometric by default.

    Examples
    --------
    >>> sharp = -50.0 * np.log(DISPERSIONS / 10.0) ** 2
    >>> pooled_dispersions([sharp, sharp, np.zeros(36)]).round(1).tolist()  # no evidence on the third
    [10.0, 10.0, 10.0]
    """
    table = np.array(likelihoods).reshape(len(likelihoods), len(LOGS))
    mean, scatter = float(LOGS.mean()), float(np.ptp(LOGS)) / 4
    before = np.log([] if total is None else [USUAL * total])
    if total is not None:
        mean, scatter = float(before[0]), UNSURE
    some = table[:: max(-(-len(table) // MOST_POOLED), 1)]
    some = np.exp(some - some.max(axis=1, keepdims=True))
    number = len(some) + len(before)
    for _ in range(iterations if len(table) else 0):
        begun = np.array([mean, scatter])
        prior = np.maximum(np.exp(-0.5 * ((LOGS - mean) / scatter) ** 2), LEAST_DENSITY)
        weights = prior * ((1 / (some @ prior)) @ some)  # posterior probabilities, summed over the tables
        mean = float(weights @ LOGS + before.sum()) / number
        square = float(weights @ (LOGS - mean) ** 2 + len(before) * UNSURE**2) / number
        scatter = max(float(np.sqrt(square)), USUAL_SCATTER)
        if np.abs(begun - (mean, scatter)).max() < SETTLED:
            break
    weights = _posterior(table, mean, scatter)
    return np.asarray(weights @ np.exp(LOGS) if hopeful else np.exp(weights @ LOGS))


def _posterior(table: Floats, mean: float, scatter: float) -> Floats:
    """Return the posterior probabilities of the `DISPERSIONS` of each table, which sum to 1."""
    weights = table - 0.5 * ((LOGS - mean) / scatter) ** 2
    weights = np.exp(weights - weights.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
