r"""Stage 3: shrink each measured table towards its expected counts, further the noisier it is.

Prior: cells have mean :math:`\mu_c` and variance :math:`\tau_c^2 = \kappa \mu_c`. Noise variance:
:math:`\sigma^2`. The posterior mean shrinks the residual by :math:`\tau^2/(\tau^2 + \sigma^2)`. Margins
that are known better from other tables are then imposed; in a 2 x 2 table they hold three quarters of the
noise. Each cell is corrected in proportion to its posterior variance. In between, negative cells are set to
0. The records that this adds are removed in the same proportion, not evenly.
"""

from __future__ import annotations

import numpy as np

from privsyn.marginals.ipf import _sides, fit_margins
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.types import Floats

REMOVALS = 30  # most rounds of imposing the margins and removing negative counts
REMOVED = 1e-6  # of the total: smaller gaps are left to proportional fitting
FLOOR = 1e-9  # of the expected count: keeps a cell positive, so that fitting can raise it


def denoise(
    measurement: Measurement, expected: Floats, dispersion: float, margins: tuple[Marginal, ...]
) -> Marginal:
    """Return the posterior mean of a table, non-negative and with the given margins.

    Parameters
    ----------
    measurement : Measurement
    expected : array of the table's shape
        Prior mean, with the given margins.
    dispersion : float
        Prior variance of a cell over its expected count.
    margins : tuple of Marginal
        Non-negative counts over some of the table's attributes. They agree with each other.

    Examples
    --------
    With little noise the result is the measurement; with much noise, the expectation:

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
    gain = np.divide(prior, scatter, out=np.ones_like(scatter), where=scatter > 0)  # 0/0: keep the measured
    counts = expected + gain * (measured - expected)
    # Expected 0, measured exactly 0: a structural zero, which stays 0.
    floor = FLOOR * (1 + expected) * ((expected > 0) | (measurement.variance > 0) | (measured != 0))
    return settle(Marginal(domain, counts), gain * measurement.variance, floor, margins)


def settle(estimate: Marginal, variance: Floats, floor: Floats, margins: tuple[Marginal, ...]) -> Marginal:
    """Return an estimate with the given margins and without negative cells.

    Parameters
    ----------
    estimate : Marginal
    variance : array of the table's shape
        Posterior variance; corrections are in proportion to it.
    floor : array of the same shape
        Least count of each cell.
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
