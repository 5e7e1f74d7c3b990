"""Peeling: what hangs on one pair is set aside and can be put back, anchor before leaf."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from reference import binary

from privsyn.marginals.marginal import Marginal
from privsyn.methods.paper.gum import components, peel

NAMES = tuple("abcdefg")
every_set = [*combinations(NAMES, 1), *combinations(NAMES, 2), *combinations(NAMES, 3)]
turned = st.sampled_from(every_set).flatmap(st.permutations).map(tuple)
some_sets = st.lists(turned, max_size=8)


def tables_of(sets):
    """A table over each set of attributes, every cell with a count of its own."""
    domains = [binary("".join(attributes)) for attributes in sets]
    return tuple(Marginal(domain, np.arange(domain.cells).reshape(domain.shape)) for domain in domains)


@given(some_sets)
def test_no_table_is_lost_and_a_leaf_is_only_turned(sets):
    tables = tables_of(sets)
    peeled = peel(tables)
    core = list(peeled.core)
    rest = [table for table in tables if not any(table is kept for kept in core)]
    assert len(core) + len(peeled.leaves) == len(tables)
    for leaf in peeled.leaves:
        (place,) = [
            place
            for place, table in enumerate(rest)
            if set(table.attributes) == set(leaf.attributes)
            and np.array_equal(table.project(leaf.attributes).counts, leaf.counts)
        ][:1]
        rest.pop(place)
    assert not rest


@given(some_sets)
def test_every_anchor_is_there_before_its_leaf_and_the_leaf_is_not(sets):
    peeled = peel(tables_of(sets))
    late = [leaf.attributes[1] for leaf in peeled.leaves]
    there = set(NAMES) - set(late)
    assert len(late) == len(set(late))
    assert all(set(table.attributes) <= there for table in peeled.core)
    for leaf in peeled.leaves:
        anchor, name = leaf.attributes
        assert anchor in there
        there.add(name)


@given(some_sets)
def test_nothing_that_hangs_on_one_pair_is_left(sets):
    core = peel(tables_of(sets)).core
    for table in core:
        if len(table.attributes) == 2:
            others = {name for other in core if other is not table for name in other.attributes}
            assert set(table.attributes) <= others


@given(some_sets)
def test_components_are_the_parts_that_no_table_links(sets):
    parts = components(NAMES, tables_of(sets))
    assert sorted(name for part in parts for name in part) == list(NAMES)
    assert all(part == tuple(sorted(part)) for part in parts)
    for attributes in sets:
        assert sum(bool(set(attributes) & set(part)) for part in parts) == 1
    links = nx.Graph([pair for attributes in sets for pair in combinations(attributes, 2)])
    for part in parts:
        assert len(part) == 1 or nx.is_connected(links.subgraph(part))
