"""Pool values that are too rare to tell from noise, and restore them at the end.

A value whose noisy count is under three standard deviations carries almost no information, yet costs a row
of cells in every later table. Rare categorical values are pooled into one. Bins of a number are joined with
their neighbours, so that their width suits the noise. This reads released counts only and costs no privacy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privsyn.marginals.domain import Attributes, Codes, Domain, Floats, Records, keep
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal, Measurement


@dataclass(frozen=True, eq=False)
class Merging:
    """The merged code of each original code, and how to draw original codes again.

    Parameters
    ----------
    original, merged : Domain
        The same attributes before and after merging.
    groups : tuple of integer arrays of shape (original size,), one per attribute
        ``groups[j][v]`` is the merged code of the original code ``v``.
    shares : tuple of float arrays of the same shapes
        Probability of an original code within its merged code. They sum to 1 for each merged code.
    """

    original: Domain
    merged: Domain
    groups: tuple[Codes, ...]
    shares: tuple[Floats, ...]

    def __post_init__(self) -> None:
        keep(self, "groups", "shares")
        if self.original.names != self.merged.names:
            raise ValueError(f"attributes {self.original.names} merged to {self.merged.names}")
        if not len(self.groups) == len(self.shares) == len(self.merged):
            raise ValueError("groups and shares of other attributes")
        for name, size in self.merged.size_of.items():
            before, group, share = self.original.size_of[name], self.group_of[name], self.share_of[name]
            if not group.shape == share.shape == (before,):
                raise ValueError(f"attribute {name!r}: groups and shares are not of shape {(before,)}")
            if set(group.tolist()) != set(range(size)):
                raise ValueError(f"attribute {name!r}: its groups are not 0 to {size - 1}")
            if (share < 0).any() or not np.allclose(np.bincount(group, share), 1.0):
                raise ValueError(f"attribute {name!r}: the shares of a merged value do not sum to 1")

    @cached_property
    def group_of(self) -> dict[str, Codes]:
        """The merged code of each code, for each attribute."""
        return dict(zip(self.original.names, self.groups, strict=True))

    @cached_property
    def share_of(self) -> dict[str, Floats]:
        """The share of each code in its merged code, for each attribute."""
        return dict(zip(self.original.names, self.shares, strict=True))

    def merge(self, records: Records) -> Records:
        """Return records in merged codes, row by row: neighbouring tables stay neighbours."""
        columns = [group[records.codes[:, j]] for j, group in enumerate(self.groups)]
        return Records(self.merged, np.stack(columns, axis=1) if columns else records.codes)

    def project(self, attributes: Attributes) -> Merging:
        """Return the merging of the codes of `attributes` alone, in the order given."""
        original, merged = (domain.project(attributes) for domain in (self.original, self.merged))
        shares = tuple([self.share_of[name] for name in attributes])
        groups = tuple([self.group_of[name] for name in attributes])
        return Merging(original, merged, groups, shares)

    def then(self, later: Merging) -> Merging:
        """Return this merging followed by `later`, which merges this one's merged codes."""
        groups = Grouping(self.groups).then(Grouping(later.groups)).groups
        shares = tuple(
            self.share_of[name] * later.share_of[name][group] for name, group in self.group_of.items()
        )
        return Merging(self.original, later.merged, groups, shares)

    def apart(self, attributes: Attributes) -> Merging:
        """Return the merging that leaves the codes of some attributes as they are."""
        groups, shares, sizes = list(self.groups), list(self.shares), list(self.merged.sizes)
        ordered = list(self.merged.ordered)
        for axis in self.original.axes(attributes):
            sizes[axis], ordered[axis] = self.original.sizes[axis], self.original.ordered[axis]
            groups[axis], shares[axis] = np.arange(sizes[axis], dtype=np.int32), np.ones(sizes[axis])
        merged = Domain(self.merged.names, tuple(sizes), tuple(ordered))
        return Merging(self.original, merged, tuple(groups), tuple(shares))

    def merge_counts(self, table: Measurement) -> Measurement:
        """Return a measured table in merged codes; counts and variances of joined values add up."""
        variance = self.grouping(table.attributes).join(table.variance)
        return Measurement(self.merge_table(table.marginal), variance)

    def merge_table(self, table: Marginal) -> Marginal:
        """Return a table in merged codes; counts of joined values add up."""
        if not (grouping := self.grouping(table.attributes)):
            return table
        return Marginal(self.merged.project(table.attributes), grouping.join(table.counts))

    def spread(self, one_way: Marginal) -> Floats:
        """Return the count of each original code of an attribute, from the counts of its merged codes."""
        (axis,) = self.merged.axes(one_way.attributes)
        return one_way.counts[self.groups[axis]] * self.shares[axis]

    def grouping(self, attributes: Attributes) -> Grouping:
        """Return the merged codes of `attributes` as groups; none if all codes keep their numbers."""
        if self._recoded.isdisjoint(attributes):
            return NO_GROUPS
        return Grouping(tuple([self.group_of[name] for name in attributes]))

    @cached_property
    def _recoded(self) -> frozenset[str]:
        """The attributes that have a code with another number after merging."""
        return frozenset(
            name for name, group in self.group_of.items() if not np.array_equal(group, np.arange(len(group)))
        )

    def restore(self, records: Records, rng: np.random.Generator) -> Records:
        """Return records in original codes, each drawn by its share of the merged code."""
        return self.placed(records, (rng.random(len(records)) for _ in self.groups))

    def placed(self, records: Records, positions: Iterable[Floats]) -> Records:
        """Return records in original codes.

        Parameters
        ----------
        records : Records
        positions : iterable of arrays of shape (records,), one per attribute
            From 0 to 1: the position in the cumulated shares of the record's merged code.
        """
        columns = records.codes.copy(order="F")
        for j, (group, share, position) in enumerate(zip(self.groups, self.shares, positions, strict=True)):
            if self.original.names[j] not in self._recoded:
                continue
            # Sort original codes by group. Each group spans a length of 1 of the cumulated shares.
            order = np.argsort(group, kind="stable")
            edges = np.cumsum(share[order])
            drawn = np.searchsorted(edges, records.codes[:, j] + position, side="right")
            sizes = np.bincount(group)
            firsts, merged = np.cumsum(sizes) - sizes, records.codes[:, j]
            # Rounding may move a draw outside its group.
            columns[:, j] = order[np.clip(drawn, firsts[merged], firsts[merged] + sizes[merged] - 1)]
        return Records(self.original, columns)


def joined(domain: Domain, groups: tuple[Codes, ...]) -> Merging:
    """Return the merging of each attribute's codes to groups, in which they have equal shares."""
    shares = tuple(1 / np.bincount(group)[group] for group in groups)
    return Merging(domain, Grouping(groups).domain(domain), groups, shares)
