r"""Combine measurements of the same counts, and make tables non-negative.

Measurements of a table are averaged by precision. `norm_sub` is the nearest table without negative cells and
with a given sum. The published consistency step is `make_consistent` in `privsyn/methods/paper/learn.py`.

`denoise` shrinks each measured table towards its expected counts, further the noisier it is. Prior: cells
have mean :math:`\mu_c` and variance :math:`\tau_c^2 = \kappa \mu_c`. Noise variance: :math:`\sigma^2`. The
posterior mean shrinks the deviation by :math:`\tau^2/(\tau^2 + \sigma^2)`. Margins that are known better from
other tables are then imposed; in a 2 x 2 table they hold three quarters of the noise. Each cell is corrected
in proportion to its posterior variance. In between, negative cells are set to 0. The records that this adds
are removed in the same proportion, not evenly. Sums of ordered codes are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import fsum
from operator import itemgetter

import numpy as np

from privsyn.inference import _kernels
from privsyn.marginals.domain import Codes, Counts, Domain, Floats, Ints
from privsyn.marginals.ipf import CELLS_AT_ONCE, fit_alike, kind_of, lift_all, sums_of
from privsyn.marginals.marginal import (
    LEVELS,
    Grouping,
    Marginal,
    Measurement,
    alike,
    firsts,
    for_alike,
    groups_at,
    unstacked,
)
from privsyn.marginals.tolerances import TINY_VARIANCE


def estimate_total(measurements: tuple[Measurement, ...]) -> float:
    """Return the number of records: the precision-weighted mean of the tables' sums, at least 1.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> a = Measurement(Marginal(Domain(("a",), (2,)), np.array([6.0, 4.0])), 1.0)
    >>> b = Measurement(Marginal(Domain(("b",), (4,)), np.array([4.0, 4.0, 4.0, 4.0])), 1.0)
    >>> estimate_total((a, b))
    12.0
    """
    sums, variances = np.empty((2, len(measurements)))
    for indices, counts, variance in _stacks(measurements):
        sums[indices], variances[indices] = sums_of(counts), sums_of(variance)
    return max(float(np.average(sums, weights=1 / np.maximum(variances, TINY_VARIANCE))), 1.0)


def variance_of_total(measurements: Iterable[Measurement]) -> float:
    """Return the variance of `estimate_total`.

    >>> from privsyn.marginals.domain import Domain
    >>> a = Measurement(Marginal(Domain(("a",), (2,)), np.array([6.0, 4.0])), 1.0)
    >>> round(variance_of_total((a, a)), 12)
    1.0
    """
    return 1 / fsum(1 / max(float(m.variance.sum()), TINY_VARIANCE) for m in measurements)


def combine_measurements(first: Measurement, second: Measurement) -> Measurement:
    """Return the precision-weighted mean of two measurements of a table.

    Examples
    --------
    >>> domain = Domain(("a",), (2,))
    >>> once = Measurement(Marginal(domain, np.array([8.0, 4.0])), 1.0)
    >>> again = Measurement(Marginal(domain, np.array([4.0, 4.0])), 3.0)
    >>> both = combine_measurements(once, again)
    >>> both.marginal.counts.tolist(), both.variance.tolist()
    ([7.0, 4.0], [0.75, 0.75])
    """
    # Two exact measurements get equal weight.
    first_variance, second_variance = (np.maximum(m.variance, TINY_VARIANCE) for m in (first, second))
    share = second_variance / (first_variance + second_variance)
    counts = share * first.marginal.counts + (1 - share) * second.marginal.counts
    variance = np.where(second.variance > 0, share * first.variance, 0.0)
    return Measurement(Marginal(first.marginal.domain, counts), variance, first.grouping)


def combine_one_ways(domain: Domain, measurements: tuple[Measurement, ...]) -> tuple[Measurement, ...]:
    """Return for each attribute the precision-weighted mean of all its measurements.

    Parameters
    ----------
    domain : Domain
    measurements : tuple of Measurement
        Every attribute is in at least one.

    Returns
    -------
    tuple of Measurement, one per attribute, in the domain's order.
    """
    about: dict[str, dict[int, OneWaySums]] = {name: {} for name in domain.names}
    for indices, counts, variances in _stacks(measurements):
        some = [measurements[index] for index in indices]
        for axis in range(counts.ndim - 1):
            summed = tuple(k + 1 for k in range(counts.ndim - 1) if k != axis)
            sums = zip(indices, some, counts.sum(axis=summed), variances.sum(axis=summed), strict=True)
            for index, m, count, variance in sums:
                about[m.attributes[axis]][index] = count, variance, m.grouping.project((axis,))
    return tuple(
        _together(domain.project((name,)), [entry for _, entry in sorted(tables.items(), key=itemgetter(0))])
        for name, tables in about.items()
    )


def _stacks(measurements: Sequence[Measurement]) -> Iterator[tuple[list[int], Counts, Floats]]:
    """Yield the places, the counts and the variances of measurements of one shape together."""
    domains = [m.marginal.domain for m in measurements]
    for indices in alike([d.shape for d in domains], [d.cells for d in domains], CELLS_AT_ONCE):
        some = [measurements[index] for index in indices]
        yield indices, np.array([m.marginal.counts for m in some]), np.array([m.variance for m in some])


OneWaySums = tuple[Counts, Floats, Grouping]
"""Counts and variances of one attribute, of its codes or of their groups, and these groups."""


def _together(domain: Domain, tables: list[OneWaySums]) -> Measurement:
    """Return the weighted least-squares estimate of one attribute's counts.

    Weights differ by cell: a pool of many values is far less certain than single values. Tables measured in
    groups of codes only inform the sums of groups.
    """
    alone = [(counts, variance) for counts, variance, grouping in tables if not grouping]
    variances = np.array([variance for _, variance in alone])
    precisions = 1 / np.maximum(variances, TINY_VARIANCE)
    measured, exact = np.array([counts for counts, _ in alone]), variances.min(axis=0) == 0
    mean = np.average(measured, axis=0, weights=precisions)
    mean[exact] = measured[variances.argmin(axis=0), np.arange(len(mean))][exact]  # free of rounding
    variance = np.where(exact, 0.0, 1 / precisions.sum(axis=0))
    if len(alone) == len(tables):
        return Measurement(Marginal(domain, mean), variance)
    joined = [
        (grouping.groups[0], counts, group_variance)
        for counts, group_variance, grouping in tables
        if grouping
    ]
    weighted = np.zeros(len(mean))
    for group, counts, group_variance in joined:
        sums = np.bincount(group, mean, len(counts))
        weighted += ((counts - sums) / np.maximum(group_variance, TINY_VARIANCE))[group]
    covariance = covariance_of(variance, information_of((group, noise) for group, _, noise in joined))
    return Measurement(Marginal(domain, mean + covariance @ weighted), np.maximum(np.diag(covariance), 0.0))


def information_of(joined: Iterable[tuple[Codes, Floats]]) -> Floats:
    """Return the information of tables in groups of codes, an array of shape (codes, codes).

    Each table gives the group of each code, of shape (codes,), and a variance per group, of shape (groups,).
    """
    weights = [(group, 1 / np.maximum(variance, TINY_VARIANCE)) for group, variance in joined]
    return np.asarray(sum(weight[group] * (group[:, np.newaxis] == group) for group, weight in weights))


def covariance_of(variance: Floats, information: Floats) -> Floats:
    """Return the covariance (V^-1 + I)^-1 as V (1 + I V)^-1, which does not divide by a variance.

    V is diagonal, with the variances of the codes; I is the information, of shape (codes, codes).
    """
    covariance = np.linalg.solve((np.eye(len(variance)) + information * variance).T, np.diag(variance)).T
    return np.asarray((covariance + covariance.T) / 2)


def average_one_ways(
    domain: Domain,
    measurements: tuple[Measurement, ...],
    total: float,
    settle: Callable[[Measurement, float], Marginal] | None = None,
    unbiased: Callable[[Measurement], Measurement] = lambda measured: measured,
) -> tuple[Marginal, ...]:
    """Return the estimated one-way tables, non-negative and with the given total.

    Parameters
    ----------
    domain : Domain
    measurements : tuple of Measurement
        Every attribute is in at least one.
    total : float
        Sum of each one-way table, in records.
    settle : callable, optional
        Makes a measured one-way table non-negative with that total. Default: `norm_sub`.
    unbiased : callable, optional
        Makes the mean of all measurements unbiased, if the column was randomised.

    Returns
    -------
    tuple of Marginal, one per attribute, in the domain's order.
    """
    return tuple(
        Marginal(measured.marginal.domain, norm_sub(measured.marginal.counts, total))
        if settle is None
        else settle(measured, total)
        for measured in map(unbiased, combine_one_ways(domain, measurements))
    )


def norm_sub(counts: Counts, total: float) -> Counts:
    r"""Return the Euclidean projection of `counts` to :math:`\{x \ge 0, \sum x = total\}`.

    All cells lose the same amount, and cells that would fall below zero are set to zero. Simply clipping the
    negatives would add records.

    Parameters
    ----------
    counts : array of any shape
        Noisy counts, in records.
    total : float
        Sum of the result, in records, at least 0.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 4.3. Computed exactly by sorting: Duchi et al.,
    "Efficient projections onto the l1-ball for learning in high dimensions", ICML 2008, Figure 1.

    Examples
    --------
    >>> norm_sub(np.array([5.0, 2.0, -3.0]), 5.0).tolist()
    [4.0, 1.0, 0.0]
    >>> norm_sub(np.array([-7.0, -9.0]), 4.0).tolist()
    [3.0, 1.0]
    """
    if not total >= 0:
        raise ValueError(f"total {total}: a table cannot hold fewer than 0 records")
    # A shift of all cells does not change the result; with the largest at 0, sums stay small.
    counts = counts - counts.max()
    descending = np.sort(counts, axis=None)[::-1]
    surplus = np.cumsum(descending) - total
    sizes = np.arange(1, len(descending) + 1)
    # The k largest cells stay positive, with the largest k for which the k-th exceeds what each cell loses.
    last = np.flatnonzero(descending * sizes > surplus)
    if not len(last):  # the total is 0
        return np.zeros(counts.shape)
    return np.maximum(counts - surplus[last[-1]] / sizes[last[-1]], 0.0)


REMOVALS = 30  # most iterations of imposing the margins and removing negative counts
REMOVED = 1e-6  # of the total: smaller gaps are left to proportional fitting
FLOOR = 1e-9  # of the expected count: keeps a cell positive, so that fitting can raise it


def denoise(
    measurement: Measurement,
    expected: Floats,
    dispersion: float,
    margins: tuple[Marginal, ...],
    spread: Floats | None = None,
) -> Marginal:
    """Return the posterior mean of a table, non-negative and with the given margins.

    Parameters
    ----------
    measurement : Measurement
    expected : array of the table's shape
        Prior mean, with the given margins.
    dispersion : float
        Prior variance of a cell over its spread.
    margins : tuple of Marginal
        Non-negative counts over some of the table's attributes. They agree with each other.
    spread : array of the table's shape, optional
        Default: the expected counts.

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
    spreads = None if spread is None else (spread,)
    return denoise_all((measurement,), (expected,), np.array([dispersion]), (margins,), spreads)[0]


def denoise_all(
    measured: Sequence[Measurement],
    expected: Sequence[Floats],
    dispersions: Floats,
    margins: Sequence[tuple[Marginal, ...]],
    spreads: Sequence[Floats] | None = None,
) -> list[Marginal]:
    """Return `denoise` of each table. Tables of one shape without an order are computed together."""
    denoised: dict[int, Marginal] = {}
    domains = [m.marginal.domain for m in measured]
    kinds = [
        (kind_of(domain, sides), index if _has_levels(domain, sides) else -1)
        for index, (domain, sides) in enumerate(zip(domains, margins, strict=True))
    ]

    def settle_alike(indices: list[int]) -> None:
        seen = np.array([measured[i].marginal.counts for i in indices])
        noise = np.array([measured[i].variance for i in indices])
        mean = np.array([expected[i] for i in indices])
        spread = mean if spreads is None else np.array([spreads[i] for i in indices])
        prior = dispersions[indices].reshape(-1, *(1,) * (mean.ndim - 1)) * spread
        scatter = prior + noise
        # 0/0: keep the measured
        gain = np.divide(prior, scatter, out=np.ones_like(scatter), where=scatter > 0)
        # Expected 0, measured exactly 0: a structural zero, which stays 0.
        floor = FLOOR * (1 + mean) * ((mean > 0) | (noise > 0) | (seen != 0))
        some = [domains[i] for i in indices]
        settled = settle(
            some, mean + gain * (seen - mean), gain * noise, floor, [margins[i] for i in indices]
        )
        denoised.update(zip(indices, settled, strict=True))

    for_alike(settle_alike, kinds, [domain.cells for domain in domains], CELLS_AT_ONCE)
    return [denoised[i] for i in range(len(measured))]


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
    freedom, tables = variance + floor, np.arange(len(counts), dtype=np.int32)
    lifted = lift_all(domains, margins)
    totals = sums_of(lifted[0])
    coarser = tuple(np.zeros(size, np.int32) for size in counts.shape[1:])
    coarse_sums = totals.reshape(-1, *(1,) * len(coarser))
    for groups in _levels(domains[0], margins[0]):
        joint = Grouping((tables, *groups))
        sums = joint.join(counts)
        limits = [(tuple(old[firsts(new)] for new, old in zip(groups, coarser, strict=True)), coarse_sums)]
        for side in lifted:
            side_groups = [group[:size] for group, size in zip(groups, side.shape[1:], strict=True)]
            joined = Grouping((tables, *side_groups)).join(side)  # an axis of length 1 is one group
            axes = zip(sums.shape[1:], joined.shape[1:], strict=True)
            limits.append((tuple(np.arange(size, dtype=np.int32) % length for size, length in axes), joined))
        starts = np.cumsum([0, *(required[0].size for _, required in limits)])
        labels = np.empty((len(limits), *sums.shape[1:]), np.int64)
        for row, start, (codes, required) in zip(labels, starts, limits, strict=False):
            flat: Ints = np.zeros((), np.int64)  # index of the sum to which each cell belongs
            for group, size in zip(codes, required.shape[1:], strict=True):
                flat = flat[..., np.newaxis] * size + group
            row[...] = start + flat
        targets = np.concatenate([required.reshape(len(counts), -1) for _, required in limits], axis=1)
        required_sums = _kernels.RequiredSums(labels.reshape(len(limits), -1), targets, starts)
        cells, free = sums.reshape(len(counts), -1).copy(), joint.join(freedom).reshape(len(counts), -1)
        _kernels.remove_negatives(cells, free, required_sums, REMOVALS, REMOVED)
        coarse_sums, coarser = cells.reshape(sums.shape), groups
    return unstacked(domains, fit_alike(coarse_sums + floor, lifted, totals))


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
