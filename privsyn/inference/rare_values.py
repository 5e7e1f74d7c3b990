"""Merge rare values: decide which values are pooled before pairs are counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

import numpy as np

from privsyn.inference.consistency import norm_sub
from privsyn.inference.ordered.binning import Axis, join_cells
from privsyn.inference.ordered.hierarchy import expected_cells
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Codes, Floats, Mask

THRESHOLD = 3.0  # standard deviations; Zhang et al. 2021, Section 5.3


def merge_rare(
    one_ways: tuple[Measurement, ...],
    total: float,
    *,
    join_neighbours: bool = True,
    spared: int = 0,
    axes: Mapping[str, Axis] = MappingProxyType({}),
    doubtful: Collection[str] = (),
    cells: Mapping[str, Floats] = MappingProxyType({}),
    nullable: Mapping[str, float] = MappingProxyType({}),
) -> Merging:
    """Pool the values of each attribute whose noisy count is under `THRESHOLD` standard deviations.

    Parameters
    ----------
    one_ways : tuple of Measurement
        The released one-way table of every attribute, in the domain's order.
    total : float
        Estimated number of records.
    join_neighbours : bool
        Join ordered values with their neighbours. If False, ignore the order, as published.
    spared : int
        Attributes of at most this number of values are not merged, unless they are doubtful.
    axes : mapping of an attribute to its Axis
        Ordered values of these attributes are joined to at most ``groups`` groups; see `join_cells`.
    cells : mapping of an attribute to an array, optional
        The expected count of each ordered value of these, if more is known than `one_ways`.
    doubtful : collection of attributes
        Attributes of which some listed values may not occur.
    nullable : mapping of an attribute to a number of records
        Attributes whose last code is that of missing cells. It is never drawn if its count is under this
        number, and if there is another code: most columns have no missing cell. Not for attributes with an
        axis, whose cells are joined before the second count.

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
    groups, shares, sizes, ordered = [], [], [], []
    for one_way in one_ways:
        counts, sigma = one_way.marginal.counts, np.sqrt(one_way.variance)
        # A tiny weight for every value, so that a group without records is shared out evenly.
        weights = np.maximum(norm_sub(counts, total), np.finfo(float).tiny)
        count = one_way.marginal.domain.ordered[0] if join_neighbours else 0
        thresholds = THRESHOLD * sigma
        name = one_way.attributes[0]
        axis = axes.get(name)
        if axis is not None and count > axis.groups:
            known = counts[:count], one_way.variance[:count]
            expected = cells[name] if name in cells else expected_cells([known], axis.widths, total)
            runs = join_cells(expected, float(sigma[:count].max()), axis)
            weights[:count] = np.maximum(expected, np.finfo(float).tiny * axis.widths)
            others = np.arange(1, len(counts) - count + 1, dtype=np.int32) + runs.max()
            group, dropped = np.concatenate([runs, others]), np.zeros(len(counts), np.bool_)
        else:
            whole = len(counts) <= spared and name not in doubtful
            if whole:
                thresholds = np.full(len(counts), -np.inf)
            if name in nullable:
                thresholds[-1] = nullable[name]
            runs = (
                np.arange(count, dtype=np.int32)
                if whole
                else _join_ordered(counts[:count], thresholds[:count])
            )
            group, dropped = _pool(counts, thresholds, runs)
            # In a pool it would be drawn, so it is dropped there too. What shares its group is drawn instead.
            dropped[-1] |= name in nullable and counts[-1] < thresholds[-1] and group[-1] in group[:-1]
        weights[dropped] = 0.0
        groups.append(group)
        shares.append(weights / np.bincount(group, weights)[group])
        sizes.append(int(group.max()) + 1)
        ordered.append(int(runs.max(initial=-1)) + 1)
    original = Domain(
        tuple(m.attributes[0] for m in one_ways),
        tuple(m.marginal.domain.sizes[0] for m in one_ways),
        tuple(m.marginal.domain.ordered[0] for m in one_ways),
    )
    return Merging(
        original, Domain(original.names, tuple(sizes), tuple(ordered)), tuple(groups), tuple(shares)
    )


def _join_ordered(counts: Floats, thresholds: Floats) -> Codes:
    """Return the run of each ordered value.

    Values before the first that reaches its threshold alone have runs of their own, and so have those after
    the last: they may all be empty.
    """
    clear = np.flatnonzero(counts >= thresholds)
    cuts = [clear[0], clear[-1] + 1] if clear.size else []
    group, size = np.zeros(len(counts), np.int32), 0
    for places in np.split(np.arange(len(counts)), cuts):
        group[places] = size + _join_runs(counts[places], thresholds[places])
        size = int(group[places].max(initial=size - 1)) + 1
    return group


def _join_runs(counts: Floats, thresholds: Floats) -> Codes:
    """Join neighbours from the left until each run reaches its threshold; the rest joins the last run."""
    group = np.zeros(len(counts), np.int32)
    current, held, needed = 0, 0.0, 0.0
    for place, (count, threshold) in enumerate(zip(counts, thresholds, strict=True)):
        group[place] = current
        held, needed = held + count, np.hypot(needed, threshold)
        if held >= needed:
            current, held, needed = current + 1, 0.0, 0.0
    return np.minimum(group, max(current - 1, 0)).astype(np.int32)


def _pool(counts: Floats, thresholds: Floats, runs: Codes) -> tuple[Codes, Mask]:
    """Return the group of each value, and which values are dropped.

    Runs come first, then one group for each common value, then the pool of rare values. A pool that is still
    rare joins the largest value and is dropped.
    """
    rare = counts < thresholds
    rare[: len(runs)] = False
    common = np.cumsum(~rare[len(runs) :]) + runs.max(initial=-1)
    group = np.concatenate([runs, common]).astype(np.int32)
    if rare.any() and not rare.all():
        too_small = counts[rare].sum() < np.sqrt(np.sum(thresholds[rare] ** 2))
        largest = np.argmax(np.where(rare, -np.inf, counts))
        group[rare] = group[largest] if too_small else group.max() + 1
        return group, rare & too_small
    return np.maximum(group, 0), np.zeros(len(counts), np.bool_)
