"""Which attributes tables connect, and the tree of the strongest pairs, beside networkx."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from privsyn.marginals.statistics import components, strongest_tree

NAMES = tuple("abcdefg")
pairs = st.sampled_from(list(combinations(NAMES, 2)))


@given(st.dictionaries(pairs, st.integers(0, 5).map(float)))
def test_the_tree_is_as_heavy_as_any_and_names_parents_first(weights):
    graph = nx.Graph()
    graph.add_nodes_from(NAMES)
    graph.add_weighted_edges_from((a, b, weight) for (a, b), weight in weights.items() if weight)
    tree = list(strongest_tree(NAMES, weights))
    found = sum(weights.get((a, b), weights.get((b, a))) for a, b in tree if a is not None)
    assert found == nx.maximum_spanning_tree(graph).size(weight="weight")
    assert sorted(child for _, child in tree) == list(NAMES)
    assert sum(parent is None for parent, _ in tree) == nx.number_connected_components(graph)
    seen = [None]
    for parent, child in tree:
        assert parent in seen
        seen.append(child)


@given(st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True).map(tuple)))
def test_components_are_the_connected_names_in_the_order_of_their_first(groups):
    graph = nx.Graph()
    for group in groups:
        nx.add_path(graph, group)
    expected = sorted(map(sorted, nx.connected_components(graph)))
    found = components(groups)
    assert sorted(map(sorted, found)) == expected
    order = [name for group in groups for name in group]
    firsts = [min(map(order.index, part)) for part in found]
    assert firsts == sorted(firsts)
