"""Coarse tables: the ordered codes of an attribute joined to a few groups of about equal mass.

Dependence between numbers is usually smooth, so sums over many cells show most of it. A sum has the noise of
only one cell. `LEVELS` are nested: each level halves the groups of the level before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Codes

LEVELS = (2, 4, 8, 16, 32)
"""Number of groups of an attribute with ordered codes. The finest level keeps all codes."""


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


def join(cells: npt.NDArray[Any], groups: Sequence[Codes]) -> npt.NDArray[Any]:
    """Return the cells of a table, summed over joined codes along every axis."""
    for axis, group in enumerate(groups):
        steps = group[1:] - group[:-1]
        if (steps == 1).all():  # each code is a group of its own
            continue
        if (steps < 0).any():
            order = np.argsort(group, kind="stable")
            cells, group = cells.take(order, axis), group[order]
        cells = np.add.reduceat(cells, firsts(group), axis=axis)
    return cells


def firsts(group: Codes) -> npt.NDArray[np.intp]:
    """Return the first code of each group; groups increase along the codes.

    >>> firsts(np.array([0, 0, 1, 2, 2])).tolist()
    [0, 2, 3]
    """
    return np.concatenate([[0], 1 + (group[1:] != group[:-1]).nonzero()[0]])


def joined_domain(domain: Domain, groups: Sequence[Codes]) -> Domain:
    """Return the domain of the groups."""
    sizes = tuple(int(group.max()) + 1 for group in groups)
    ordered = tuple(
        int(group[count - 1]) + 1 if count else 0 for group, count in zip(groups, domain.ordered, strict=True)
    )
    return Domain(domain.names, sizes, ordered)


def coarsen(table: Marginal, groups: tuple[Codes, ...]) -> Marginal:
    """Return a table over joined codes."""
    return Marginal(joined_domain(table.domain, groups), join(table.counts, groups))
