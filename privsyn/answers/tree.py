"""Stage 4, the start: records drawn attribute by attribute along a tree of strong pairs."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
import numpy as np

from privsyn.answers.arrays import Codes
from privsyn.answers.domain import Attributes, Domain, Records
from privsyn.answers.information import mutual_information, pairs_within
from privsyn.answers.marginal import Marginal
from privsyn.answers.sampling import draw_by_quota, draw_given


def tree_start(
    domain: Domain,
    one_ways: tuple[Marginal, ...],
    tables: tuple[Marginal, ...],
    n: int,
    rng: np.random.Generator,
) -> Records:
    """`n` records along a maximum spanning tree of the pairs that the tables hold.

    Every attribute keeps its one-way counts and every pair on the tree its pair counts, to within
    rounding, so only the other pairs are left to mend. An attribute in no table is drawn alone.

    Parameters
    ----------
    domain : Domain
    one_ways : tuple of Marginal, one for each attribute of the domain, in its order
    tables : tuple of Marginal
        Non-negative, agreeing counts.
    """
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(domain.names)
    for (a, b), table in pairs_within(tables).items():
        graph.add_edge(a, b, weight=mutual_information(table), table=table)
    tree = nx.maximum_spanning_tree(graph)
    columns: dict[str, Codes] = {}
    for parent, child in _walk(tree, domain.names):
        if parent is None:
            columns[child] = draw_by_quota(one_ways[domain.axes((child,))[0]].counts, n, rng)
        else:
            table = tree.edges[parent, child]["table"].project((parent, child))
            columns[child] = draw_given(table, columns[parent], rng)
    return stack(domain, columns, n)


def independent_start(
    domain: Domain, one_ways: tuple[Marginal, ...], n: int, rng: np.random.Generator
) -> Records:
    """`n` records, each attribute by its own counts and in random order: the published start."""
    columns = {name: draw_by_quota(m.counts, n, rng) for name, m in zip(domain.names, one_ways, strict=True)}
    return stack(domain, columns, n)


def stack(domain: Domain, columns: dict[str, Codes], n: int) -> Records:
    """The columns side by side in the domain's order; `n` rows even where there is no column."""
    codes = np.empty((n, len(domain)), np.int32, order="F")
    for place, name in enumerate(domain.names):
        codes[:, place] = columns[name]
    return Records(domain, codes)


def _walk(tree: nx.Graph[str], names: Attributes) -> Iterator[tuple[str | None, str]]:
    """(parent, child) along the tree, parents first; a root of each component comes as (None, root)."""
    seen: set[str] = set()
    for root in names:
        if root not in seen:
            seen.add(root)
            yield None, root
            for parent, child in nx.bfs_edges(tree, root):
                seen.add(child)
                yield parent, child
