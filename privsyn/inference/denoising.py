r"""Stage 3: each measured table drawn towards what was expected of it, as far as its noise demands.

Prior: cells at :math:`\mu_c` with variance :math:`\tau_c^2 = \kappa \mu_c`. Measured: with variance
:math:`\sigma^2`. The posterior mean shrinks the residual by :math:`\tau^2/(\tau^2 + \sigma^2)`. Margins
that are known better from elsewhere are then imposed; in a 2 x 2 table three quarters of the noise lie
in the margins. What a cell gives way is in proportion to its posterior variance. Negative cells are set
to 0 in between: the records that this adds are again taken where the variance is, not off every cell.
"""

from __future__ import annotations

import numpy as np

from privsyn.marginals.ipf import _sides, fit_margins
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.types import Floats

REMOVALS = 30  # rounds of removing what contradicts the margins, and what is negative, at most
REMOVED = 1e-6  # of the total: a contradiction that is left to proportional fitting
FLOOR = 1e-9  # of the expected count: what keeps a cell open to fitting


def denoise(
    measurement: Measurement, expected: Floats, dispersion: float, margins: tuple[Marginal, ...]
) -> Marginal:
    """The posterior mean of a table, non-negative and with the given margins.

    Parameters
    ----------
    measurement : Measurement
    expected : array of the table's shape
        Prior mean; its own margins are those given.
    dispersion : float
        Prior variance of a cell over its expected count.
    margins : tuple of Marginal
        Non-negative counts over parts of the table's attributes, which agree.

    Examples
    --------
    Without noise the measurement stands; drowned in noise, the expectation does:

    >>> from privsyn.marginals.domain import Domain
    >>> square, half = Domain(("a", "b"), (2, 2)), np.array([50.0, 50.0])
    >>> margins = (Marginal(square.project(("a",)), half), Marginal(square.project(("b",)), half))
    >>> table = Marginal(square, np.array([[40.0, 10.0], [10.0, 40.0]]))
    >>> for variance in (1e-9, 1e9):
    ...     kept = denoise(Measurement(table, variance), np.full((2, 2), 25.0), 10.0, margins)
    ...     kept.counts.round(2).tolist()
    [[40.0, 10.0], [10.0, 40.0]]
    [[25.0, 25.0], [25.0, 25.0]]
    """
    domain, measured = measurement.marginal.domain, measurement.marginal.counts
    prior = dispersion * expected
    scatter = prior + measurement.variance
    gain = np.divide(prior, scatter, out=np.ones_like(scatter), where=scatter > 0)  # both exact: measured
    counts = expected + gain * (measured - expected)
    # A cell where nothing is expected and nothing can have been measured is a public zero, and stays one.
    floor = FLOOR * (1 + expected) * ((expected > 0) | (measurement.variance > 0) | (measured != 0))
    return settle(Marginal(domain, counts), gain * measurement.variance, floor, margins)


def settle(estimate: Marginal, variance: Floats, floor: Floats, margins: tuple[Marginal, ...]) -> Marginal:
    """Return an estimate without negative cells and with the given margins.

    Parameters
    ----------
    estimate : Marginal
    variance : array of the table's shape
        Posterior variance: what a cell gives way is in proportion to it.
    floor : array of the same shape
        What is left in a cell at least.
    margins : tuple of Marginal
    """
    counts, freedom = estimate.counts, variance + floor
    sides = _sides(estimate.domain, margins)
    for _ in range(REMOVALS):
        missed = 0.0
        for others, margin in sides:
            excess = counts.sum(axis=others, keepdims=True) - margin
            missed = max(missed, float(np.abs(excess).max()))
            room = freedom.sum(axis=others, keepdims=True)
            counts = counts - freedom * np.divide(excess, room, out=np.zeros_like(room), where=room > 0)
        counts = np.maximum(counts, 0.0)
        if missed <= REMOVED * counts.sum():
            break
    return fit_margins(Marginal(estimate.domain, counts + floor), margins)
