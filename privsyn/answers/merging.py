"""Stage 1: values too rare to tell from noise are pooled, and shared out again at the end.

A value whose noisy count lies under three standard deviations says nothing by itself, yet would cost
a row of cells in every later table. Categorical values are pooled into one; bins of a number are
joined with their neighbours, so that fine bins become as wide as the noise demands. Everything here
looks at released counts only and costs no privacy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from privsyn.answers.arrays import Codes, Floats, Mask, keep
from privsyn.answers.binning import Axis, join_cells
from privsyn.answers.domain import Attributes, Domain, Records
from privsyn.answers.marginal import Marginal, Measurement
from privsyn.answers.simplex import norm_sub

THRESHOLD = 3.0  # standard deviations; Zhang et al. 2021, Section 5.3


@dataclass(frozen=True, eq=False)
class Merging:
    """Which merged code each original code goes to, and how a merged code is shared out.

    Parameters
    ----------
    original, merged : Domain
        The same attributes before and after.
    groups : tuple of integer arrays, one an attribute, of shape (original size,)
        ``groups[j][v]`` is the merged code of the original code ``v``.
    shares : tuple of float arrays of the same shapes
        Relative weight of an original code within its merged code; the weights of each merged
        code sum to 1.
    """

    original: Domain
    merged: Domain
    groups: tuple[Codes, ...]
    shares: tuple[Floats, ...]

    def __post_init__(self) -> None:
        keep(self, "groups", "shares")
        if self.original.names != self.merged.names:
            raise ValueError(f"attributes {self.original.names} merged to {self.merged.names}")
        for name, before, size, group, share in zip(
            self.merged.names, self.original.sizes, self.merged.sizes, self.groups, self.shares, strict=True
        ):
            if not group.shape == share.shape == (before,):
                raise ValueError(f"attribute {name!r}: groups and shares are not of shape {(before,)}")
            if set(group.tolist()) != set(range(size)):
                raise ValueError(f"attribute {name!r}: its groups are not 0 to {size - 1}")
            if (share < 0).any() or not np.allclose(np.bincount(group, share), 1.0):
                raise ValueError(f"attribute {name!r}: the shares of a merged value do not sum to 1")

    def merge(self, records: Records) -> Records:
        """The records in merged codes, each row by itself: neighbouring tables stay neighbours."""
        columns = [group[records.codes[:, j]] for j, group in enumerate(self.groups)]
        return Records(self.merged, np.stack(columns, axis=1) if columns else records.codes)

    def then(self, other: Merging) -> Merging:
        """Both mergings in one: the other is of what this one leaves."""
        groups = tuple(second[first] for first, second in zip(self.groups, other.groups, strict=True))
        shares = tuple(
            share * further[group]
            for share, further, group in zip(self.shares, other.shares, self.groups, strict=True)
        )
        return Merging(self.original, other.merged, groups, shares)

    def merge_counts(self, table: Measurement) -> Measurement:
        """A measured table in merged codes; counts of joined values add up, and so do their variances."""
        return Measurement(self.merge_table(table.marginal), self.join(table.attributes, table.variance))

    def merge_table(self, table: Marginal) -> Marginal:
        """A table in merged codes; counts of joined values add up."""
        return Marginal(self.merged.project(table.attributes), self.join(table.attributes, table.counts))

    def join(self, attributes: Attributes, cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What stands in the cells of a table over `attributes`, summed over those that are joined."""
        for axis, group in enumerate(self.groups_of(attributes)):
            if not np.array_equal(group, np.arange(len(group))):
                order = np.argsort(group, kind="stable")
                starts = np.flatnonzero(np.diff(group[order], prepend=-1))
                cells = np.add.reduceat(cells.take(order, axis), starts, axis=axis)
        return cells

    def groups_of(self, attributes: Attributes) -> list[Codes]:
        """For each of `attributes` the merged code of each original one."""
        return [self.groups[axis] for axis in self.original.axes(attributes)]

    def restore(self, records: Records, rng: np.random.Generator) -> Records:
        """The records in original codes, each pooled value drawn by its share."""
        columns = np.empty((len(records), len(self.original)), np.int32)
        for j, (group, share) in enumerate(zip(self.groups, self.shares, strict=True)):
            # Original codes laid out group by group, each group a stretch of length 1 of cumulated shares.
            order = np.argsort(group, kind="stable")
            edges = np.cumsum(share[order])
            places = np.searchsorted(edges, records.codes[:, j] + rng.random(len(records)), side="right")
            columns[:, j] = _nearest_in_group(order, group, places, records.codes[:, j])
        return Records(self.original, columns)


def merge_rare(
    one_ways: tuple[Measurement, ...],
    total: float,
    *,
    join_neighbours: bool = True,
    spared: int = 0,
    axes: Mapping[str, Axis] = MappingProxyType({}),
    doubtful: Collection[str] = (),
) -> Merging:
    """Pool the values of each attribute whose noisy count is under `THRESHOLD` standard deviations.

    Parameters
    ----------
    one_ways : tuple of Measurement
        The released one-way table of every attribute, in the domain's order.
    total : float
        Estimated number of records.
    join_neighbours : bool
        Join ordered values with their neighbours; otherwise, as published, order is not looked at.
    spared : int
        Attributes of at most so many values are left as they are, unless they are doubtful.
    axes : mapping of an attribute to its Axis
        The ordered values of these are joined to groups, if they are more than those; see `join_cells`.
    doubtful : collection of attributes
        Nobody says that each of their values occurs.

    Examples
    --------
    >>> counts = Marginal(Domain(("city",), (4,)), np.array([90.0, 2.0, 40.0, 30.0]))
    >>> merging = merge_rare((Measurement(counts, 25.0),), 162.0)
    >>> merging.merged.sizes, merging.groups[0].tolist()
    ((3,), [0, 0, 1, 2])

    The one rare value is itself too small a pool, so it joins the largest value and is not drawn again:

    >>> merging.shares[0].tolist()
    [1.0, 0.0, 1.0, 1.0]
    """
    groups, shares, sizes, ordered = [], [], [], []
    for one_way in one_ways:
        counts, sigma = one_way.marginal.counts, np.sqrt(one_way.variance)
        # A trace of weight for every value, so that a group is shared out evenly where nothing is known.
        weights = np.maximum(norm_sub(counts, total), np.finfo(float).tiny)
        count = one_way.marginal.domain.ordered[0] if join_neighbours else 0
        thresholds = THRESHOLD * sigma
        axis = axes.get(one_way.attributes[0])
        if axis is not None and count > axis.groups:
            runs, expected = join_cells(counts[:count], float(sigma[:count].max()), axis)
            weights[:count] = np.maximum(expected, np.finfo(float).tiny * axis.widths)
            others = np.arange(1, len(counts) - count + 1, dtype=np.int32) + runs.max()
            group, dropped = np.concatenate([runs, others]), np.zeros(len(counts), np.bool_)
        elif len(counts) <= spared and one_way.attributes[0] not in doubtful:
            group, dropped = np.arange(len(counts), dtype=np.int32), np.zeros(len(counts), np.bool_)
            runs = group[:count]
        else:
            runs = _join_runs(counts[:count], thresholds[:count])
            group, dropped = _pool(counts, thresholds, runs)
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


def _join_runs(counts: Floats, thresholds: Floats) -> Codes:
    """Neighbours joined from the left until each run reaches its threshold; what is left joins the last."""
    group = np.zeros(len(counts), np.int32)
    current, held, needed = 0, 0.0, 0.0
    for place, (count, threshold) in enumerate(zip(counts, thresholds, strict=True)):
        group[place] = current
        held, needed = held + count, np.hypot(needed, threshold)
        if held >= needed:
            current, held, needed = current + 1, 0.0, 0.0
    return np.minimum(group, max(current - 1, 0)).astype(np.int32)


def _pool(counts: Floats, thresholds: Floats, runs: Codes) -> tuple[Codes, Mask]:
    """The runs, then a group for each other value, the rare ones in one pool, the last; and what is dropped.

    A pool that is still rare joins the largest value and is dropped.
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


def _nearest_in_group(
    order: npt.NDArray[np.intp], group: Codes, places: npt.NDArray[np.intp], wanted: Codes
) -> Codes:
    """The drawn original codes; a draw that rounding pushed over its group's edge comes back in."""
    sizes = np.bincount(group)
    first = np.cumsum(sizes) - sizes
    return order[np.clip(places, first[wanted], first[wanted] + sizes[wanted] - 1)].astype(np.int32)
