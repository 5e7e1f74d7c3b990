"""The table of counts that a criterion is about: its cells, and which of them meet the conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from math import prod

import numpy as np

from privsyn.errors import InputError, about
from privsyn.inference.fitted import Fitted
from privsyn.marginals.coarse import groups_at, joined_domain
from privsyn.marginals.domain import Domain
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Codes, Floats, Integers, Ints, Mask
from privsyn.release.acceptance.criteria import Criteria, Criterion, Margin, Mean, Proportion, spans
from privsyn.table.encoding.codec import Codec
from privsyn.table.enforcement.draws import Cells

MOST_CELLS = 2**20
"""Largest table that is compared."""


def problem(codec: Codec, criterion: Criterion) -> str:
    """Return why a criterion cannot be tested on tables of this codec; empty if it can."""
    if not set(criterion.columns) <= set(codec.domain):
        return "a column is counted in parts, or as the gap to another"
    if isinstance(criterion, Margin):
        axes = codec.domain.axes(criterion.columns)
        ordered = [codec.domain.ordered[axis] for axis in axes]
        others = [codec.domain.sizes[axis] - many for axis, many in zip(axes, ordered, strict=True)]
        cells = [few + min(many, criterion.groups) for few, many in zip(others, ordered, strict=True)]
        return "its table has too many cells" if prod(cells) > MOST_CELLS else ""
    if isinstance(criterion, Mean):
        of = codec.cells()[criterion.mean]
        widest = float(np.nanmax(of.highs - of.lows)) if (~np.isnan(of.lows)).any() else 0.0
        if widest >= criterion.within:
            return f"its numbers are counted in cells of up to {widest:g}: narrow the bounds or give a step"
    return ""


def check_testable(codec: Codec, criteria: Criteria) -> None:
    """Refuse criteria that cannot be tested, before any question is asked."""
    for place, criterion in enumerate(criteria.criteria, 1):
        if found := problem(codec, criterion):
            with about(f"criterion {place}"):
                raise InputError(found)


@dataclass(frozen=True, eq=False)
class Layout:
    """The table of counts of a criterion.

    Parameters
    ----------
    criterion : Margin, Mean or Proportion
    cells : tuple of Cells
        The codes of each attribute as numbers.
    groups : tuple of integer arrays
        The group of each code.
    met : tuple of bool arrays
        For each attribute, whether a group meets the conditions.
    """

    criterion: Criterion
    cells: tuple[Cells, ...]
    groups: tuple[Codes, ...]
    met: tuple[Mask, ...]

    @classmethod
    def of(cls, codec: Codec, fitted: Fitted, criterion: Criterion) -> Layout:
        """Return the layout. A cell of numbers meets a condition if its middle does."""
        names, known = criterion.columns, codec.cells()
        cells = tuple(known[name] for name in names)
        where = spans(_conditions(criterion), codec.schema)
        groups: list[Codes] = []
        mets: list[Mask] = []
        for name, axis, of in zip(names, codec.domain.axes(names), cells, strict=True):
            group: Integers = np.arange(len(of.lows))
            met = np.ones(len(group), bool)
            if name in where:
                met, group = np.unique(where[name].holds((of.lows + of.highs) / 2), return_inverse=True)
            elif isinstance(criterion, Margin) and codec.domain.ordered[axis]:
                coarse = groups_at(fitted.one_ways[axis], criterion.groups)
                group = coarse[fitted.merging.groups[axis]]
                met = np.ones(int(group.max()) + 1, bool)
            groups.append(group.astype(np.int32))
            mets.append(met)
        return cls(criterion, cells, tuple(groups), tuple(mets))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the table."""
        return tuple(map(len, self.met))

    @property
    def inside(self) -> Mask:
        """Whether the rows of each cell meet all conditions."""
        return np.asarray(reduce(np.logical_and.outer, self.met))

    def merging(self, domain: Domain) -> Merging:
        """Return the merging that joins the codes of these attributes and keeps those of all others."""
        groups = dict(zip(self.criterion.columns, self.groups, strict=True))
        both = tuple(
            groups.get(name, np.arange(size, dtype=np.int32))
            for name, size in zip(domain.names, domain.sizes, strict=True)
        )
        shares = tuple(1 / np.bincount(group)[group] for group in both)
        return Merging(domain, joined_domain(replace(domain, ordered=()), both), both, shares)

    def count(self, numbers: Mapping[str, Floats]) -> Ints:
        """Count synthetic rows, given the numbers of each column."""
        places = np.ravel_multi_index(self._codes(numbers), self.shape)
        return np.bincount(places, minlength=prod(self.shape)).reshape(self.shape).astype(np.int64)

    def sum(self, numbers: Mapping[str, Floats]) -> float:
        """Return the sum of the averaged column over the synthetic rows that meet the conditions."""
        if not isinstance(self.criterion, Mean):
            return 0.0
        met = self.inside[tuple(self._codes(numbers))]
        return float(np.nansum(numbers[self.criterion.mean][met]))

    def _codes(self, numbers: Mapping[str, Floats]) -> list[Codes]:
        columns = zip(self.criterion.columns, self.cells, self.groups, strict=True)
        return [group[cells.find(numbers[name])] for name, cells, group in columns]


def _conditions(criterion: Criterion) -> Mapping:
    match criterion:
        case Mean():
            return criterion.where
        case Proportion():
            return criterion.proportion
    return {}
