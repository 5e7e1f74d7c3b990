r"""Stage 3: shrink each measured table towards its expected counts, further the noisier it is.

Prior: cells have mean :math:`\mu_c` and variance :math:`\tau_c^2 = \kappa \mu_c`. Noise variance:
:math:`\sigma^2`. The posterior mean shrinks the residual by :math:`\tau^2/(\tau^2 + \sigma^2)`. Margins
that are known better from other tables are then imposed; in a 2 x 2 table they hold three quarters of the
noise. Each cell is corrected in proportion to its posterior variance. In between, negative cells are set to
0. The records that this adds are removed in the same proportion, not evenly. Sums of ordered codes are kept.
"""

from __future__ import annotations

import numpy as np

from privsyn.inference import _kernels
from privsyn.marginals.coarse import LEVELS, firsts, groups_at, join
from privsyn.marginals.domain import Domain
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement, lift
from privsyn.marginals.types import Codes, Floats, Ints

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

    In a pair of many cells, noise that is cut off at 0 adds up to many records far from where they belong. It
    weakens every correlation. Sums over groups of ordered codes have less relative noise. So coarse tables
    are settled first, from two groups of each attribute to all codes. Finer tables keep the sums of coarser
    ones.

    Parameters
    ----------
    estimate : Marginal
    variance : array of the table's shape
        Posterior variance; corrections are in proportion to it.
    floor : array of the same shape
        Least count of each cell.
    margins : tuple of Marginal
    """
    domain, freedom = estimate.domain, variance + floor
    lifted = [lift(margin, domain) for margin in margins]
    coarser = tuple(np.zeros(size, np.int32) for size in domain.shape)
    kept = np.full((1,) * len(domain), margins[0].total)
    for groups in _levels(domain, margins):
        sums = join(estimate.counts, groups)
        limits = [(tuple(map(_coarser_group, groups, coarser)), kept)]
        for side in lifted:
            whole = [group[:size] for group, size in zip(groups, side.shape, strict=True)]
            limits.append(_as_sums(join(side, whole), sums.shape))
        kept, coarser = _without_negatives(sums, join(freedom, groups), limits), groups
    return fit_margins(Marginal(domain, kept + floor), margins)


Sums = tuple[tuple[Codes, ...], Floats]
"""The group of each code of each axis, and the required sums over the cells of these groups."""


def _levels(domain: Domain, margins: tuple[Marginal, ...]) -> list[tuple[Codes, ...]]:
    """Return groups of the codes of a pair, from coarse to fine; for other tables the codes themselves."""
    every = tuple(np.arange(size, dtype=np.int32) for size in domain.shape)
    sides = {name: margin.project((name,)) for margin in margins for name in margin.attributes}
    if len(domain) != 2 or len(sides) < 2:
        return [every]
    levels = [level for level in LEVELS if level < max(domain.ordered)]
    return [*(tuple(groups_at(sides[name], level) for name in domain.names) for level in levels), every]


def _coarser_group(group: Codes, coarser: Codes) -> Codes:
    """Return the coarser group of each group; both are given for each code."""
    return coarser[firsts(group)]


def _as_sums(lifted: Floats, shape: tuple[int, ...]) -> Sums:
    """Return a margin that was lifted to a table's shape: an axis of length 1 is one group."""
    groups = zip(shape, lifted.shape, strict=True)
    return tuple(np.arange(size, dtype=np.int32) % groups for size, groups in groups), lifted


def _without_negatives(counts: Floats, freedom: Floats, limits: list[Sums]) -> Floats:
    """Return counts of at least 0 that have the required sums, up to `REMOVED`."""
    starts = np.cumsum([0, *(sums.size for _, sums in limits)])
    labels = np.empty((len(limits), counts.size), np.int64)
    for row, start, (groups, sums) in zip(labels, starts, limits, strict=False):
        row.reshape(counts.shape)[...] = start + _cells_of(groups, sums.shape)
    targets = np.concatenate([sums.ravel() for _, sums in limits])
    found = counts.ravel().copy()
    _kernels.remove_negatives(found, freedom.ravel(), labels, targets, starts, REMOVALS, REMOVED)
    return found.reshape(counts.shape)


def _cells_of(groups: tuple[Codes, ...], shape: tuple[int, ...]) -> Ints:
    """Return the flat index of the sum to which each cell belongs."""
    cells: Ints = np.zeros((), np.int64)
    for group, size in zip(groups, shape, strict=True):
        cells = cells[..., np.newaxis] * size + group
    return cells
