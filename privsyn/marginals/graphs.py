"""Graphs of attributes: which of them tables connect, and a tree of the strongest pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from privsyn.marginals.domain import Attributes


def components(groups: Iterable[Attributes]) -> list[set[str]]:
    """Return the sets of attributes that groups connect, in the order in which each set begins.

    Examples
    --------
    >>> [sorted(part) for part in components([("a", "b"), ("c",), ("d", "b")])]
    [['a', 'b', 'd'], ['c']]
    """
    groups = list(groups)
    names = tuple(dict.fromkeys(name for group in groups for name in group))
    pairs: dict[Attributes, float] = {pair: 1.0 for group in groups for pair in pairwise(group)}
    count, labels = connected_components(_matrix(names, pairs), directed=False)
    return [{names[at] for at in np.flatnonzero(labels == part)} for part in range(count)]


def strongest_tree(
    names: Attributes, weights: Mapping[Attributes, float]
) -> Iterator[tuple[str | None, str]]:
    """Yield (parent, child) along a maximum spanning tree, parents first; roots have the parent None.

    Pairs of weight 0 are not on the tree.

    Examples
    --------
    >>> list(strongest_tree(("a", "b", "c", "d"), {("a", "b"): 1.0, ("b", "c"): 3.0, ("a", "c"): 2.0}))
    [(None, 'a'), ('a', 'c'), ('c', 'b'), (None, 'd')]
    """
    tree = minimum_spanning_tree(-_matrix(names, weights))
    seen: set[str] = set()
    for root, name in enumerate(names):
        if name not in seen:
            order, parents = breadth_first_order(tree, root, directed=False)
            seen.update(names[child] for child in order)
            yield from (
                (names[parents[child]] if parents[child] >= 0 else None, names[child]) for child in order
            )


def _matrix(names: Attributes, weights: Mapping[Attributes, float]) -> coo_array:
    place = {name: at for at, name in enumerate(names)}
    ends = np.array([[place[a], place[b]] for a, b in weights], np.int32).reshape(-1, 2)
    return coo_array((list(weights.values()), (ends[:, 0], ends[:, 1])), shape=(len(names), len(names)))
