"""Stage 3: non-negative tables that agree wherever they overlap.

Several noisy tables measure the same counts. Their common margins are averaged by precision, and each table
spreads the difference evenly. Norm-sub then removes negative cells. This disturbs the agreement slightly, so
both steps are repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter

import numpy as np

from privsyn.marginals.domain import Domain
from privsyn.marginals.grouping import Grouping
from privsyn.marginals.ipf import CELLS_AT_ONCE, sums_of
from privsyn.marginals.marginal import Marginal, Measurement, alike
from privsyn.marginals.types import Codes, Counts, Floats

EXACT = 1e-30  # replaces a variance of 0, so that precisions stay finite


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
    for places, counts, variance in _stacks(measurements):
        sums[places], variances[places] = sums_of(counts), sums_of(variance)
    return max(float(np.average(sums, weights=1 / np.maximum(variances, EXACT))), 1.0)


def combine_measurements(one: Measurement, two: Measurement) -> Measurement:
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
    first_variance, second_variance = (np.maximum(m.variance, EXACT) for m in (one, two))
    share = second_variance / (first_variance + second_variance)
    counts = share * one.marginal.counts + (1 - share) * two.marginal.counts
    return Measurement(Marginal(one.marginal.domain, counts), share * one.variance, one.grouping)


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
    for places, counts, variances in _stacks(measurements):
        some = [measurements[place] for place in places]
        for axis in range(counts.ndim - 1):
            others = tuple(other + 1 for other in range(counts.ndim - 1) if other != axis)
            sums = zip(places, some, counts.sum(axis=others), variances.sum(axis=others), strict=True)
            for place, m, count, variance in sums:
                about[m.attributes[axis]][place] = count, variance, m.grouping.project((axis,))
    return tuple(
        _together(domain.project((name,)), [of for _, of in sorted(tables.items(), key=itemgetter(0))])
        for name, tables in about.items()
    )


def _stacks(measurements: Sequence[Measurement]) -> Iterator[tuple[list[int], Counts, Floats]]:
    """Yield the places, the counts and the variances of measurements of one shape together."""
    domains = [m.marginal.domain for m in measurements]
    for places in alike([d.shape for d in domains], [d.cells for d in domains], CELLS_AT_ONCE):
        some = [measurements[place] for place in places]
        yield places, np.array([m.marginal.counts for m in some]), np.array([m.variance for m in some])


OneWaySums = tuple[Counts, Floats, Grouping]
"""Counts and variances of one attribute, of its codes or of their groups, and these groups."""


def _together(domain: Domain, tables: list[OneWaySums]) -> Measurement:
    """Return the weighted least-squares estimate of one attribute's counts.

    Weights differ by cell: a pool of many values is far less certain than single values. Tables measured in
    groups of codes only inform the sums of groups.
    """
    alone = [(counts, variance) for counts, variance, grouping in tables if not grouping]
    precisions = 1 / np.maximum(np.array([variance for _, variance in alone]), EXACT)
    mean = np.average(np.array([counts for counts, _ in alone]), axis=0, weights=precisions)
    variance = 1 / precisions.sum(axis=0)
    if len(alone) == len(tables):
        return Measurement(Marginal(domain, mean), variance)
    joined = [(grouping.groups[0], counts, of_groups) for counts, of_groups, grouping in tables if grouping]
    weighted = np.zeros(len(mean))
    for group, counts, of_groups in joined:
        sums = np.bincount(group, mean, len(counts))
        weighted += ((counts - sums) / np.maximum(of_groups, EXACT))[group]
    covariance = covariance_of(variance, information_of((group, of) for group, _, of in joined))
    return Measurement(Marginal(domain, mean + covariance @ weighted), np.maximum(np.diag(covariance), 0.0))


def information_of(joined: Iterable[tuple[Codes, Floats]]) -> Floats:
    """Return the information of tables in groups of codes, an array of shape (codes, codes).

    Each table gives the group of each code, of shape (codes,), and a variance per group, of shape (groups,).
    """
    weights = [(group, 1 / np.maximum(variance, EXACT)) for group, variance in joined]
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
    kept = np.arange(1, len(descending) + 1)
    # The largest cells stay positive: those above the amount that each has to lose.
    last = np.flatnonzero(descending * kept > surplus)
    if not len(last):  # the total is 0
        return np.zeros(counts.shape)
    return np.maximum(counts - surplus[last[-1]] / kept[last[-1]], 0.0)
