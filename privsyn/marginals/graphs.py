"""Graphs of attributes: which of them tables connect, and a tree of the strongest pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from privsyn.marginals.domain import Attributes


def components(groups: Iterable[Attributes]) -> list[set[str]]:
    """Return the sets of attributes that groups connect, in the order in which each set begins.

    Examples
    --------
    >>> [sorted(part) for part in components([("a", "b"), ("c",), ("d", "b")])]
    [['a', 'b', 'd'], ['c']]
    """
    forest = _Forest()
    parts: dict[str, set[str]] = {}
    names = dict.fromkeys(name for group in groups for name in forest.join(group))
    for name in names:
        parts.setdefault(forest.root(name), set()).add(name)
    return list(parts.values())


def strongest_tree(
    names: Attributes, weights: Mapping[Attributes, float]
) -> Iterator[tuple[str | None, str]]:
    """Yield (parent, child) along a maximum spanning tree, parents first; roots have the parent None.

    Pairs of weight 0 are not on the tree. Of equal weights the first wins (Kruskal, 1956).

    Examples
    --------
    >>> list(strongest_tree(("a", "b", "c", "d"), {("a", "b"): 1.0, ("b", "c"): 3.0, ("a", "c"): 2.0}))
    [(None, 'a'), ('a', 'c'), ('c', 'b'), (None, 'd')]
    """
    forest, neighbours = _Forest(), {name: list[str]() for name in names}
    for a, b in sorted(weights, key=weights.__getitem__, reverse=True):
        if weights[a, b] > 0 and forest.root(a) != forest.root(b):
            forest.join((a, b))
            neighbours[a].append(b)
            neighbours[b].append(a)
    seen: set[str] = set()
    for name in names:
        queue: list[tuple[str | None, str]] = [(None, name)] if name not in seen else []
        for parent, child in queue:  # the body appends to it
            seen.add(child)
            yield parent, child
            queue.extend((child, other) for other in neighbours[child] if other not in seen)


class _Forest:
    """Sets of connected names; each has one of its names as root."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def root(self, name: str) -> str:
        """Return the root of the name's set; halve the path to it for the next call."""
        above = self._above.setdefault(name, name)
        while above != name:
            above = self._above[name] = self._above[above]
            name, above = above, self._above[above]
        return name

    def join(self, group: Attributes) -> Attributes:
        """Join the sets of the names of a group; return the group."""
        for a, b in pairwise(group):
            self._above[self.root(b)] = self.root(a)
        return group
