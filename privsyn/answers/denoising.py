r"""Stage 3: each measured table drawn towards what was expected of it, as far as its noise demands.

Prior: cells at :math:`\mu_c` with variance :math:`\tau_c^2 = \kappa \mu_c`. Measured: with variance
:math:`\sigma^2`. The posterior mean shrinks the residual by :math:`\tau^2/(\tau^2 + \sigma^2)`. Margins
that are known better from elsewhere are then imposed; in a 2 x 2 table three quarters of the noise lie
in the margins. What a cell gives way is in proportion to its posterior variance. Negative cells are set
to 0 in between: the records that this adds are again taken where the variance is, not off every cell.
"""

from __future__ import annotations

from math import isclose

import numpy as np

from privsyn.answers.arrays import Floats, Mask
from privsyn.answers.domain import Domain
from privsyn.answers.marginal import Marginal, Measurement, lift

REMOVALS = 30  # rounds of removing what contradicts the margins, and what is negative, at most
REMOVED = 1e-6  # of the total: a contradiction that is left to proportional fitting
FITTINGS = 30  # rounds over the margins of proportional fitting, at most
FITTED = 1e-12  # of the total: a margin that is missed by less is met
SAME = 1e-9  # of the total: a difference that is rounding
STALLED = 1e-5  # of what is missed: less gained in a round is nothing gained
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

    >>> from privsyn.answers.domain import Domain
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
    freedom = gain * measurement.variance + floor
    sides = _sides(domain, margins)
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
    return fit_margins(Marginal(domain, counts + floor), margins)


def fit_margins(
    table: Marginal, margins: tuple[Marginal, ...], *, rounds: int = FITTINGS, enough: float = FITTED
) -> Marginal:
    """Iterative proportional fitting (Deming and Stephan, 1940): the margins imposed by scaling.

    It ends after so many `rounds`, when no margin is missed by more than a part `enough` of the total, or
    when it gets no nearer: margins that contradict each other, or the table's zeros, cannot all be met. Their
    total always is: what is left is scaled to it, or lies evenly beside the zeros where nothing is left.

    Examples
    --------
    >>> from privsyn.answers.domain import Domain
    >>> square = Domain(("a", "b"), (2, 2))
    >>> a, b = (Marginal(square.project((name,)), np.array([6.0, 2.0])) for name in "ab")
    >>> fit_margins(Marginal(square, np.ones((2, 2))), (a, b)).counts.round(6).tolist()
    [[4.5, 1.5], [1.5, 0.5]]
    """
    counts = table.counts
    sides = _sides(table.domain, margins)
    missed = np.inf
    for _ in range(rounds):
        before, missed = missed, 0.0
        for others, margin in sides:
            sums = counts.sum(axis=others, keepdims=True)
            missed = max(missed, float(np.abs(sums - margin).max()))
            counts = counts * np.divide(margin, sums, out=np.zeros_like(sums), where=sums > 0)
        if missed <= enough * counts.sum() or before - missed <= STALLED * missed:
            break
    return Marginal(
        table.domain, _with_total(counts, table.counts > 0, margins[0].total) if margins else counts
    )


def _with_total(counts: Floats, room: Mask, total: float) -> Floats:
    """The counts with a total that was missed; where there are none, as many in every cell that has room."""
    if not counts.sum() > 0:
        counts = (room if room.any() else ~room).astype(np.float64)
    found = float(counts.sum())
    return counts if isclose(found, total, rel_tol=SAME) else counts * (total / found)


def _sides(domain: Domain, margins: tuple[Marginal, ...]) -> list[tuple[tuple[int, ...], Floats]]:
    """For each margin the axes that it sums out, and its counts in the table's shape."""
    return [
        (
            tuple(axis for axis, name in enumerate(domain.names) if name not in margin.attributes),
            lift(margin, domain),
        )
        for margin in margins
    ]
