r"""Stage 3: shrink each measured table towards its expected counts, further the noisier it is.

Prior: cells have mean :math:`\mu_c` and variance :math:`\tau_c^2 = \kappa \mu_c`. Noise variance:
:math:`\sigma^2`. The posterior mean shrinks the residual by :math:`\tau^2/(\tau^2 + \sigma^2)`. Margins
that are known better from other tables are then imposed; in a 2 x 2 table they hold three quarters of the
noise. Each cell is corrected in proportion to its posterior variance. In between, negative cells are set to
0. The records that this adds are removed in the same proportion, not evenly. Sums of ordered codes are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privsyn.inference import _kernels
from privsyn.marginals.domain import Domain
from privsyn.marginals.grouping import LEVELS, Grouping, firsts, groups_at
from privsyn.marginals.ipf import CELLS_AT_ONCE, fit_alike, kind_of, lift_all, sums_of
from privsyn.marginals.marginal import Marginal, Measurement, for_alike, unstacked
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
    return denoise_all((measurement,), (expected,), np.array([dispersion]), (margins,))[0]


def denoise_all(
    measured: Sequence[Measurement],
    expected: Sequence[Floats],
    dispersions: Floats,
    margins: Sequence[tuple[Marginal, ...]],
) -> list[Marginal]:
    """Return `denoise` of each table. Those of one shape are computed together, unless they have an order."""
    found: dict[int, Marginal] = {}
    domains = [m.marginal.domain for m in measured]
    kinds = [
        (kind_of(domain, sides), place if _has_levels(domain, sides) else -1)
        for place, (domain, sides) in enumerate(zip(domains, margins, strict=True))
    ]

    def settle_alike(places: list[int]) -> None:
        seen = np.array([measured[i].marginal.counts for i in places])
        noise = np.array([measured[i].variance for i in places])
        mean = np.array([expected[i] for i in places])
        prior = dispersions[places].reshape(-1, *(1,) * (mean.ndim - 1)) * mean
        scatter = prior + noise
        # 0/0: keep the measured
        gain = np.divide(prior, scatter, out=np.ones_like(scatter), where=scatter > 0)
        # Expected 0, measured exactly 0: a structural zero, which stays 0.
        floor = FLOOR * (1 + mean) * ((mean > 0) | (noise > 0) | (seen != 0))
        of = [domains[i] for i in places]
        settled = settle(of, mean + gain * (seen - mean), gain * noise, floor, [margins[i] for i in places])
        found.update(zip(places, settled, strict=True))

    for_alike(settle_alike, kinds, [domain.cells for domain in domains], CELLS_AT_ONCE)
    return [found[i] for i in range(len(measured))]


def settle(
    domains: Sequence[Domain],
    counts: Floats,
    variance: Floats,
    floor: Floats,
    margins: Sequence[tuple[Marginal, ...]],
) -> list[Marginal]:
    """Return tables with the given margins and without negative cells.

    In a pair of many cells, noise that is cut off at 0 adds up to many records far from where they belong. It
    weakens every correlation. Sums over groups of ordered codes have less relative noise. So coarse tables
    are settled first, from two groups of each attribute to all codes. Finer tables keep the sums of coarser
    ones.

    Parameters
    ----------
    domains : sequence of Domain, one per table
        Of one shape. If there are several, they have no order.
    counts : array of shape (tables, ...)
    variance : array of the same shape
        Posterior variance; corrections are in proportion to it.
    floor : array of the same shape
        Least count of each cell.
    margins : sequence of tuples of Marginal, one tuple per table
    """
    freedom, each = variance + floor, np.arange(len(counts), dtype=np.int32)
    lifted = lift_all(domains, margins)
    totals = sums_of(lifted[0])
    coarser = tuple(np.zeros(size, np.int32) for size in counts.shape[1:])
    kept = totals.reshape(-1, *(1,) * len(coarser))
    for groups in _levels(domains[0], margins[0]):
        joint = Grouping((each, *groups))
        sums = joint.join(counts)
        limits = [(tuple(map(_coarser_group, groups, coarser)), kept)]
        for side in lifted:
            whole = [group[:size] for group, size in zip(groups, side.shape[1:], strict=True)]
            limits.append(_as_sums(Grouping((each, *whole)).join(side), sums.shape[1:]))
        kept, coarser = _without_negatives(sums, joint.join(freedom), limits), groups
    return unstacked(domains, fit_alike(kept + floor, lifted, totals))


RequiredSums = tuple[tuple[Codes, ...], Floats]
"""The group of each code of each axis, and the required sums over the cells of these groups, per table."""


def _has_levels(domain: Domain, margins: tuple[Marginal, ...]) -> bool:
    """Return whether a table is a pair with an order, and with margins of both attributes."""
    sides = {name for margin in margins for name in margin.attributes}
    return len(domain) == len(sides) == 2 and any(level < max(domain.ordered) for level in LEVELS)


def _levels(domain: Domain, margins: tuple[Marginal, ...]) -> list[tuple[Codes, ...]]:
    """Return groups of the codes of a pair, from coarse to fine; for other tables the codes themselves."""
    every = tuple(np.arange(size, dtype=np.int32) for size in domain.shape)
    if not _has_levels(domain, margins):
        return [every]
    sides = {name: margin.project((name,)) for margin in margins for name in margin.attributes}
    levels = [level for level in LEVELS if level < max(domain.ordered)]
    return [*(tuple(groups_at(sides[name], level) for name in domain.names) for level in levels), every]


def _coarser_group(group: Codes, coarser: Codes) -> Codes:
    """Return the coarser group of each group; both are given for each code."""
    return coarser[firsts(group)]


def _as_sums(lifted: Floats, shape: tuple[int, ...]) -> RequiredSums:
    """Return margins that were lifted to a table's shape: an axis of length 1 is one group."""
    groups = zip(shape, lifted.shape[1:], strict=True)
    return tuple(np.arange(size, dtype=np.int32) % groups for size, groups in groups), lifted


def _without_negatives(counts: Floats, freedom: Floats, limits: list[RequiredSums]) -> Floats:
    """Return counts of at least 0 that have the required sums, up to `REMOVED`."""
    tables, shape = len(counts), counts.shape[1:]
    starts = np.cumsum([0, *(sums[0].size for _, sums in limits)])
    labels = np.empty((len(limits), *shape), np.int64)
    for row, start, (groups, sums) in zip(labels, starts, limits, strict=False):
        row[...] = start + _cells_of(groups, sums.shape[1:])
    targets = np.concatenate([sums.reshape(tables, -1) for _, sums in limits], axis=1)
    found, flat = counts.reshape(tables, -1).copy(), labels.reshape(len(limits), -1)
    _kernels.remove_negatives(found, freedom.reshape(tables, -1), flat, targets, starts, REMOVALS, REMOVED)
    return found.reshape(counts.shape)


def _cells_of(groups: tuple[Codes, ...], shape: tuple[int, ...]) -> Ints:
    """Return the flat index of the sum to which each cell belongs."""
    cells: Ints = np.zeros((), np.int64)
    for group, size in zip(groups, shape, strict=True):
        cells = cells[..., np.newaxis] * size + group
    return cells
