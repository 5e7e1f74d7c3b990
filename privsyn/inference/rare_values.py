"""Merge rare values: decide which values are pooled before pairs are counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from privsyn.inference.consistency import norm_sub
from privsyn.inference.ordered.binning import NO_CELLS, Axis, expected_cells, join_cells, marks_alone
from privsyn.marginals.domain import Codes, Domain, Floats, Ints, Mask
from privsyn.marginals.marginal import Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.tolerances import SMALLEST

ONE_SIDED = 1.645  # standard deviations: in one of 20 answers the noise is further below 0
THRESHOLD = 3.0  # standard deviations; Zhang et al. 2021, Section 5.3


def merge_cells(
    one_ways: tuple[Measurement, ...],
    total: float,
    axes: Mapping[str, Axis],
    cells: Mapping[str, Floats] = MappingProxyType({}),
) -> Merging:
    """Join the ordered values of some attributes to at most ``groups`` groups; see `join_cells`.

    Parameters
    ----------
    one_ways : tuple of Measurement
        The released one-way table of every attribute, in the domain's order.
    total : float
        Estimated number of records.
    axes : mapping of an attribute to its Axis
        Attributes of at most as many ordered values as groups stay as they are, and so do all others.
    cells : mapping of an attribute to an array, optional
        The expected count of each ordered value of these, if more is known than `one_ways`.
    """
    merged = []
    for one_way in one_ways:
        (name,), (ordered,) = one_way.attributes, one_way.marginal.domain.ordered
        axis, weights, runs = axes.get(name), _weights(one_way, total), np.arange(ordered, dtype=np.int32)
        if axis is not None and ordered > axis.groups:
            measured = one_way.marginal.counts[:ordered], one_way.variance[:ordered]
            expected = cells[name] if name in cells else expected_cells([measured], axis.widths, total)
            sigma = float(np.sqrt(measured[1]).max())
            alone = () if axis.second else marks_alone(measured[0], sigma, axis)
            runs = join_cells(expected, sigma, axis, alone)
            weights[:ordered] = np.maximum(expected, SMALLEST * axis.widths)
        nominal = np.arange(1, len(weights) - ordered + 1, dtype=np.int32) + runs.max(initial=-1)
        merged.append((np.concatenate([runs, nominal]), weights, runs))
    return _merging(one_ways, merged)


def merge_rare(
    one_ways: tuple[Measurement, ...],
    total: float,
    *,
    spared: int = 0,
    doubtful: Collection[str] = (),
    nullable: Mapping[str, float] = MappingProxyType({}),
    occurs: Mapping[str, Mask] = MappingProxyType({}),
    starts: Mapping[str, Ints] = MappingProxyType({}),
) -> Merging:
    """Pool the values of each attribute whose noisy count is under `THRESHOLD` standard deviations.

    Ordered values join their neighbours, and the threshold of a pool grows with the noise of its values.

    Parameters
    ----------
    one_ways : tuple of Measurement
        The released one-way table of every attribute, in the domain's order.
    total : float
        Estimated number of records.
    spared : int
        Attributes of at most this number of values are not merged, unless they are doubtful.
    doubtful : collection of attributes
        Attributes of which some listed values may not occur.
    nullable : mapping of an attribute to a number of records
        Attributes whose last code is that of missing cells. It is never drawn if its count is under this
        number, and if there is another code: most columns have no missing cell.
    occurs : mapping of an attribute to an array, optional
        Which ordered codes occur. A code that does not occur is never drawn. It has the group of the last
        code before it that occurs, or of the first code that occurs.
    starts : mapping of an attribute to an array, optional
        Ordered codes that never join the code before them.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> from privsyn.marginals.marginal import Marginal
    >>> counts = Marginal(Domain(("city",), (4,)), np.array([90.0, 2.0, 40.0, 30.0]))
    >>> merging = merge_rare((Measurement(counts, 25.0),), 162.0)
    >>> merging.merged.sizes, merging.groups[0].tolist()
    ((3,), [0, 0, 1, 2])

    The pool of the one rare value is still too small, so it joins the largest value and is never drawn:

    >>> merging.shares[0].tolist()
    [1.0, 0.0, 1.0, 1.0]
    """
    variance = min((float(one_way.variance.sum()) for one_way in one_ways), default=np.inf)
    merged = []
    for one_way in one_ways:
        counts, (name,), weights = one_way.marginal.counts, one_way.attributes, _weights(one_way, total)
        count = one_way.marginal.domain.ordered[0]
        is_spared = len(counts) <= spared and name not in doubtful
        thresholds = np.full(len(counts), -np.inf) if is_spared else THRESHOLD * np.sqrt(one_way.variance)
        if name in nullable:
            thresholds[-1] = nullable[name]
        some = occurs.get(name, np.ones(len(counts), np.bool_))[:count]
        first = starts.get(name, NO_CELLS)
        first = np.cumsum(some)[first] - some[first]  # among those that occur
        runs = _join_ordered(counts[:count][some], thresholds[:count][some], first)
        runs = np.arange(len(runs), dtype=np.int32) if is_spared else runs
        runs = runs[np.maximum(np.cumsum(some) - 1, 0)]
        group, dropped = _pool(counts, thresholds, runs, total, THRESHOLD * variance**0.5)
        dropped[:count] |= ~some
        # In a pool it would be drawn, so it is dropped there too. What shares its group is drawn instead.
        dropped[-1] |= name in nullable and counts[-1] < thresholds[-1] and group[-1] in group[:-1]
        weights[dropped] = 0.0
        merged.append((group, weights, runs))
    return _merging(one_ways, merged)


def merge_rare_as_published(one_ways: tuple[Measurement, ...], total: float) -> Merging:
    """Pool the values as `merge_rare`, but ignore their order, and judge the pool like a single value.

    So the pool is kept if its own count reaches the threshold of a value.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 5.3.
    """
    merged, no_runs = [], np.zeros(0, np.int32)
    for one_way in one_ways:
        counts, weights = one_way.marginal.counts, _weights(one_way, total)
        thresholds = np.broadcast_to(THRESHOLD * np.sqrt(one_way.variance), counts.shape)
        group, dropped = _pool(counts, thresholds, no_runs, total, np.inf, single=True)
        weights[dropped] = 0.0
        merged.append((group, weights, no_runs))
    return _merging(one_ways, merged)


class PooledValues(NamedTuple):
    """The values of an attribute, and with which others each was pooled.

    Parameters
    ----------
    group : integer array of shape (values,)
        The merged code of each value.
    shares : array of shape (values,)
        Its share of the records of this code; 0 if it is never drawn.
    variance : array of shape (values,)
        Of the noise in its count when rare values were pooled; 0 if it was not judged alone. Later answers
        about the merged code are more precise, and say nothing of the values in it.
    """

    group: Codes
    shares: Floats
    variance: Floats

    def hidden_records(self, measured: Measurement) -> Floats:
        """Return how many records of each merged code may have a value that is never drawn.

        Values that have fewer than `THRESHOLD` standard deviations of their noisy sum may share the code of
        another, and are never drawn. If they had more records than this, their sum would be above the
        threshold 19 times in 20.

        >>> from privsyn.marginals.domain import Domain
        >>> from privsyn.marginals.marginal import Marginal
        >>> counts = Marginal(Domain(("a",), (2,)), np.array([300.0, 100.0]))
        >>> values = PooledValues(np.array([0, 0, 1]), np.array([1.0, 0, 1]), np.full(3, 400.0))
        >>> values.hidden_records(Measurement(counts, 100.0)).round(2).tolist()
        [92.9, 0.0]
        """
        rare, size = self.shares == 0, len(measured.variance)
        noise = np.maximum(measured.variance, np.bincount(self.group, rare * self.variance, size))
        return np.where(
            np.bincount(self.group, rare, size) > 0, (THRESHOLD + ONE_SIDED) * np.sqrt(noise), 0.0
        )


class Hidden(NamedTuple):
    """What noise hides of the records that meet a condition.

    Parameters
    ----------
    variance : float
        Of their number, because the shares of values that have one code follow from noisy counts.
    missing, meeting : float
        How many may miss the condition, and how many may meet it, because their values are never drawn.
    """

    variance: float = 0.0
    missing: float = 0.0
    meeting: float = 0.0

    @classmethod
    def of(cls, measured: Measurement, values: PooledValues, met: Floats) -> Hidden:
        """Return what is hidden, at most as many records of each code as `PooledValues.hidden_records` says.

        Parameters
        ----------
        measured : Measurement
            Of one attribute, in merged codes.
        values : PooledValues
        met : array of shape (values,)
            The share of the records of each value that meet the condition.

        Examples
        --------
        The second of three values is hidden behind the first:

        >>> from privsyn.marginals.domain import Domain
        >>> from privsyn.marginals.marginal import Marginal
        >>> counts = Marginal(Domain(("a",), (2,)), np.array([300.0, 100.0]))
        >>> values = PooledValues(np.array([0, 0, 1]), np.array([1.0, 0, 1]), np.full(3, 100.0))
        >>> hidden = Hidden.of(Measurement(counts, 100.0), values, np.array([0.0, 1, 0]))
        >>> hidden.variance, hidden.missing, round(hidden.meeting, 2)
        (100.0, 0.0, 46.45)
        """
        group, shares = values.group, values.shares
        usual, rare = np.bincount(group, shares * met)[group], shares == 0
        limits = values.hidden_records(measured)
        missing, meeting = (np.unique(group[rare & some]) for some in (met < usual, met > usual))
        size = len(measured.variance)
        mixed = np.bincount(group, met, size) * np.bincount(group, 1 - met, size) > 0
        return cls(
            float(measured.variance[mixed].sum()),
            float(np.linalg.norm(limits[missing])),
            float(np.linalg.norm(limits[meeting])),
        )

    def beyond(self, missing: float, meeting: float) -> Hidden:
        """Return what is hidden if these numbers of records more may miss the condition, and meet it."""
        return Hidden(self.variance, self.missing + missing, self.meeting + meeting)


NOTHING_HIDDEN = Hidden()


def _weights(one_way: Measurement, total: float) -> Floats:
    """Return the weight of each value, never 0, so that a group without records is shared out evenly."""
    return np.maximum(norm_sub(one_way.marginal.counts, total), SMALLEST)


def _merging(one_ways: tuple[Measurement, ...], merged: list[tuple[Codes, Floats, Codes]]) -> Merging:
    """Return the merging of all attributes, from the groups and weights of their values and their runs."""
    domains = [one_way.marginal.domain for one_way in one_ways]
    names = tuple(domain.names[0] for domain in domains)
    original = Domain(names, tuple(d.sizes[0] for d in domains), tuple(d.ordered[0] for d in domains))
    sizes = tuple(int(group.max()) + 1 for group, _, _ in merged)
    ordered = tuple(int(runs.max(initial=-1)) + 1 for _, _, runs in merged)
    shares = tuple(weights / np.bincount(group, weights)[group] for group, weights, _ in merged)
    return Merging(original, Domain(names, sizes, ordered), tuple(group for group, _, _ in merged), shares)


def _join_ordered(counts: Floats, thresholds: Floats, starts: Ints) -> Codes:
    """Return the run of each ordered value; one begins at each of `starts`.

    Neighbours are joined from the left until each run reaches its threshold; the rest joins the last run. A
    value that reaches its threshold alone ends its run, too. Else the noise of empty values before it could
    hide it, and it would join a spike. The values before the first such value have runs of their own, and so
    have the values after the last: they may all be empty.
    """
    clear = np.flatnonzero(counts >= thresholds)
    cuts = np.union1d([clear[0], clear[-1] + 1] if clear.size else NO_CELLS, starts)
    group, size = np.zeros(len(counts), np.int32), 0
    for indices in np.split(np.arange(len(counts)), cuts):
        current, held, needed = size, 0.0, 0.0
        for index in indices.tolist():
            group[index] = current
            held, needed = held + counts[index], np.hypot(needed, thresholds[index])
            if held >= needed or counts[index] >= thresholds[index]:
                current, held, needed = current + 1, 0.0, 0.0
        group[indices] = np.minimum(group[indices], max(current - 1, size))
        size = int(group[indices].max(initial=size - 1)) + 1
    return group


def _pool(
    counts: Floats,
    thresholds: Floats,
    runs: Codes,
    total: float,
    total_threshold: float,
    *,
    single: bool = False,
) -> tuple[Codes, Mask]:
    """Return the group of each value, and which values are dropped.

    Runs come first, then one group for each common value, then the pool of rare values. A pool that is still
    rare joins the largest value and is dropped. If rare values are very many,
    their sum is noisier than the `total` less the common values, which then decides; `total_threshold` is the
    threshold of the total. If `single`, the pool is judged like a single value.
    """
    rare = counts < thresholds
    rare[: len(runs)] = False
    common = np.cumsum(~rare[len(runs) :]) + runs.max(initial=-1)
    group = np.concatenate([runs, common]).astype(np.int32)
    if rare.any() and not rare.all():
        pool, rare_thresholds = counts[rare].sum(), thresholds[rare]
        pool_threshold = rare_thresholds.max() if single else np.linalg.norm(rare_thresholds)
        rest, rest_threshold = (
            total - counts[~rare].sum(),
            np.sqrt(total_threshold**2 + np.sum(thresholds[~rare] ** 2)),
        )
        too_small = rest < rest_threshold if rest_threshold < pool_threshold else pool < pool_threshold
        largest = np.argmax(np.where(rare, -np.inf, counts))
        group[rare] = group[largest] if too_small else group.max() + 1
        return group, rare & too_small
    return np.maximum(group, 0), np.zeros(len(counts), np.bool_)
