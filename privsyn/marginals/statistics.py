"""Dependence of two attributes, distance of tables, and graphs: what tables connect, the strongest pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, pairwise

import numpy as np

from privsyn.marginals.domain import Attributes, Floats
from privsyn.marginals.marginal import Marginal


def mutual_information(pair: Marginal) -> float:
    """Return the mutual information, in nats, of a table of two attributes with non-negative counts.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> coins = Domain(("left", "right"), (2, 2))
    >>> round(mutual_information(Marginal(coins, np.array([[5, 0], [0, 5]]))), 6)  # ln 2
    0.693147
    >>> mutual_information(Marginal(coins, np.array([[1, 1], [1, 1]])))
    0.0
    """
    a, b, both = _entropies(pair)
    return max(a + b - both, 0.0)


def coupling(pair: Marginal) -> float:
    """Return mutual information over the smaller of the two entropies, from 0 to 1.

    It is 1 if one attribute is a function of the other.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> places = Domain(("city", "country"), (3, 2))
    >>> round(coupling(Marginal(places, np.array([[5, 0], [3, 0], [0, 9]]))), 6)
    1.0
    """
    a, b, both = _entropies(pair)
    least = min(a, b)
    return min(max((a + b - both) / least, 0.0), 1.0) if least > 0 else 0.0


def pairs_within(tables: tuple[Marginal, ...]) -> dict[Attributes, Marginal]:
    """Return the counts of every pair of attributes that a table holds; the last table wins."""
    return {pair: table.project(pair) for table in tables for pair in combinations(table.attributes, 2)}


def _entropies(pair: Marginal) -> tuple[float, float, float]:
    """Return the entropy of each attribute, and that of both together."""
    return _entropy(pair.counts.sum(axis=1)), _entropy(pair.counts.sum(axis=0)), _entropy(pair.counts.ravel())


def _entropy(counts: Floats) -> float:
    """Return the entropy in nats."""
    shares = counts / counts.sum()
    shares = shares[shares > 0]
    return -float(np.sum(shares * np.log(shares)))


def total_variation(one: Floats, other: Floats) -> float:
    """Return half the sum of absolute differences: the share of rows that would have to change.

    Examples
    --------
    >>> total_variation(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25]))
    0.25
    """
    return float(np.abs(one - other).sum() / 2)


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
