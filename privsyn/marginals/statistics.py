"""Dependence of two attributes, distance of tables, and graphs: what tables connect, the strongest pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise

import numpy as np

from privsyn.marginals.domain import Attributes, Floats
from privsyn.marginals.marginal import Marginal, alike

AT_ONCE = 2**16
"""Cells of tables that are treated together."""


def mutual_informations(pairs: Sequence[Marginal]) -> Floats:
    """Return the mutual information, in nats, of each table of two attributes with non-negative counts.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> coins = Domain(("left", "right"), (2, 2))
    >>> tables = [Marginal(coins, np.array(counts)) for counts in ([[5, 0], [0, 5]], [[1, 1], [1, 1]])]
    >>> mutual_informations(tables).round(6).tolist()  # ln 2, and independent
    [0.693147, 0.0]
    """
    a, b, both = _entropies(pairs)
    return np.maximum(a + b - both, 0.0)


def couplings(pairs: Sequence[Marginal]) -> Floats:
    """Return each table's mutual information over the smaller of its two entropies, from 0 to 1.

    It is 1 if one attribute is a function of the other.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> places = Domain(("city", "country"), (3, 2))
    >>> couplings([Marginal(places, np.array([[5, 0], [3, 0], [0, 9]]))]).round(6).tolist()
    [1.0]
    """
    a, b, both = _entropies(pairs)
    smaller = np.minimum(a, b)
    return np.clip(np.divide(a + b - both, smaller, out=np.zeros(len(a)), where=smaller > 0), 0.0, 1.0)


def pairs_within(tables: tuple[Marginal, ...]) -> dict[Attributes, Marginal]:
    """Return the counts of every pair of attributes that a table holds; the last table wins."""
    return {pair: table.project(pair) for table in tables for pair in combinations(table.attributes, 2)}


def dependences(tables: Sequence[Marginal]) -> Floats:
    """Return the total variation of each table from independent attributes, as a share of its total."""
    distances = np.empty(len(tables))
    for indices, counts in _stacked(tables):
        sides = [counts.sum(axis=tuple(set(range(1, counts.ndim)) - {k})) for k in range(1, counts.ndim)]
        totals = [side.sum(axis=1, keepdims=True) for side in sides]
        expected = np.ones((len(counts), 1))
        for side, total in zip(sides, totals, strict=True):
            shares = side / total
            expected = (expected[:, :, np.newaxis] * shares[:, np.newaxis, :]).reshape(len(counts), -1)
        counts = counts.reshape(len(counts), -1)
        distances[indices] = np.abs(counts - totals[0] * expected).sum(axis=1) / 2 / counts.sum(axis=1)
    return distances


def _stacked(tables: Sequence[Marginal]) -> Iterator[tuple[list[int], Floats]]:
    """Yield the places of tables of one shape, and their counts as one array: numpy is slow one by one."""
    domains = [table.domain for table in tables]
    for indices in alike([d.shape for d in domains], [d.cells for d in domains], AT_ONCE):
        yield indices, np.stack([tables[index].counts for index in indices])


def _entropies(pairs: Sequence[Marginal]) -> tuple[Floats, Floats, Floats]:
    """Return the entropies, in nats, of the first attribute, the second, and both together, of each table."""
    entropies = np.empty((3, len(pairs)))
    for indices, counts in _stacked(pairs):
        both = counts.reshape(len(counts), -1)
        for k, sums in enumerate((counts.sum(axis=2), counts.sum(axis=1), both)):
            shares = sums / sums.sum(axis=1, keepdims=True)
            positive, nats = shares > 0, np.empty(len(shares))
            number = positive.sum(axis=1)
            for cells in np.unique(number):  # rows with as many empty cells are computed together
                rows = number == cells
                positive_shares = shares[rows][positive[rows]].reshape(-1, cells)
                nats[rows] = -(positive_shares * np.log(positive_shares)).sum(axis=1)
            entropies[k, indices] = nats
    return entropies[0], entropies[1], entropies[2]


def total_variation(p: Floats, q: Floats) -> float:
    """Return half the sum of absolute differences: the share of rows that would have to change.

    Examples
    --------
    >>> total_variation(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25]))
    0.25
    """
    return float(np.abs(p - q).sum() / 2)


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
            queue.extend((child, neighbour) for neighbour in neighbours[child] if neighbour not in seen)


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
