"""Grouping: codes joined to groups, such as neighbouring bins of a number to groups of about equal mass.

Dependence between numbers is usually smooth, so sums over many cells show most of it. A sum has the noise of
only one cell. `LEVELS` are nested: each level halves the groups of the level before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from privsyn.marginals.domain import Domain
from privsyn.marginals.types import Codes, Floats

if TYPE_CHECKING:
    from privsyn.marginals.marginal import Marginal

LEVELS = (2, 4, 8, 16, 32)
"""Number of groups of an attribute with ordered codes. The finest level keeps all codes."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups in which the codes of some attributes are counted.

    Parameters
    ----------
    groups : tuple of integer arrays of shape (codes,), one per attribute, optional
        The group of each code. If there are none, codes are not joined, which costs nothing.

    Examples
    --------
    >>> halves = Grouping((np.array([0, 0, 1, 1]),))
    >>> halves.join(np.array([1, 2, 3, 4])).tolist(), NO_GROUPS.join(np.array([1, 2])).tolist()
    ([3, 7], [1, 2])
    """

    groups: tuple[Codes, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.groups)

    def join(self, cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the cells of a table, summed over joined codes along every axis that has groups."""
        for axis, group in enumerate(self.groups):
            steps = group[1:] - group[:-1]
            if (steps == 1).all():  # each code is a group of its own
                continue
            if (steps < 0).any():
                order = np.argsort(group, kind="stable")
                cells, group = cells.take(order, axis), group[order]
            cells = np.add.reduceat(cells, firsts(group), axis=axis)
        return cells

    def scale(self, cells: Floats, sums: Floats, least: float = 0.0) -> Floats:
        """Return cells scaled to the sums of their groups; those with a sum of at most `least` stay."""
        now = self.join(cells)
        ratio = np.divide(sums, now, out=np.ones_like(now), where=now > least)
        return cells * ratio[np.ix_(*self.groups)]

    def domain(self, codes: Domain) -> Domain:
        """Return the domain of the groups, given that of the codes."""
        if not self.groups:
            return codes
        sizes = tuple(int(group.max()) + 1 for group in self.groups)
        counts = zip(self.groups, codes.ordered, strict=True)
        ordered = tuple(int(group[count - 1]) + 1 if count else 0 for group, count in counts)
        return Domain(codes.names, sizes, ordered)

    def of_codes(self, shape: Sequence[int]) -> tuple[Codes, ...]:
        """Return the group of each code along each axis of a table of codes."""
        return self.groups or tuple(np.arange(size, dtype=np.int32) for size in shape)

    def project(self, axes: Sequence[int]) -> Grouping:
        """Return the groups of the codes along some axes."""
        return Grouping(tuple(self.groups[axis] for axis in axes)) if self.groups else self

    def then(self, later: Grouping) -> Grouping:
        """Return the grouping of codes whose groups are joined again."""
        if not (self and later):
            return self or later
        return Grouping(tuple(second[first] for first, second in zip(self.groups, later.groups, strict=True)))


NO_GROUPS = Grouping()


def groups_at(one_way: Marginal, level: int) -> Codes:
    """Return the group of each code at a level; each code without an order keeps its own group.

    Parameters
    ----------
    one_way : Marginal
        Non-negative counts.
    level : int
        Number of groups, with about equally many records.

    Examples
    --------
    >>> from privsyn.marginals.marginal import Marginal
    >>> age = Domain(("age",), (7,), ordered=(6,))  # the last code is the missing ones'
    >>> groups_at(Marginal(age, np.array([2.0, 2, 2, 0, 6, 3, 9])), 4).tolist()
    [0, 0, 1, 1, 2, 3, 4]
    """
    ordered = one_way.domain.ordered[0]
    counts = one_way.counts[:ordered]
    if ordered <= level or counts.sum() <= 0:
        return np.arange(len(one_way.counts), dtype=np.int32)
    middles = (np.cumsum(counts) - counts / 2) / counts.sum()
    groups = np.minimum((level * middles).astype(np.int64), level - 1)
    places = np.zeros(ordered, np.int64)
    np.cumsum(groups[1:] > groups[:-1], out=places[1:])  # skip groups that hold no code
    others = places[-1] + 1 + np.arange(len(one_way.counts) - ordered)
    return np.concatenate([places, others]).astype(np.int32)


def firsts(group: Codes) -> npt.NDArray[np.intp]:
    """Return the first code of each group; groups increase along the codes.

    >>> firsts(np.array([0, 0, 1, 2, 2])).tolist()
    [0, 2, 3]
    """
    return np.concatenate([[0], 1 + (group[1:] != group[:-1]).nonzero()[0]])
