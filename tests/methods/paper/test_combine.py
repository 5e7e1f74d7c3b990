"""Combine: cliques of pairs become one table, as if all cliques had been listed."""

from __future__ import annotations

from itertools import combinations
from time import process_time

import pytest
import reference
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import binary

from privsyn.marginals.domain import Domain
from privsyn.methods.paper import learn
from privsyn.methods.paper.learn import combine
from privsyn.methods.paper.parameters import PAPER


@st.composite
def graphs(draw, max_attributes=9):
    """A domain and some of its pairs; sizes such that some cliques are just too large."""
    count = draw(st.integers(2, max_attributes))
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 7, 17, 70]), min_size=count, max_size=count))
    domain = Domain(tuple("abcdefghi"[:count]), tuple(sizes))
    every = list(combinations(domain.names, 2))
    return tuple(draw(st.lists(st.sampled_from(every), unique=True))), domain


def complete(domain):
    return tuple(combinations(domain.names, 2))


def cliques(tables):
    return [table for table in tables if len(table) > 2]


@given(graphs())
@example((complete(binary("abcdefghi")), binary("abcdefghi")))
def test_it_takes_what_the_paper_takes_from_a_list_of_all_cliques(case):
    assert combine(*case) == reference.combine(*case)


@given(graphs(max_attributes=6), st.sampled_from([1, 8, 50, 10_000]), st.integers(0, 2))
def test_other_bounds_are_those_of_the_list_too(case, gamma, overlap):
    assert combine(*case, gamma=gamma, overlap=overlap) == reference.combine(*case, gamma, overlap)


@given(graphs())
def test_the_order_of_the_pairs_does_not_change_what_is_combined(case):
    pairs, domain = case
    assert cliques(combine(pairs, domain)) == cliques(combine(pairs[::-1], domain))


@settings(deadline=None)
@given(st.integers(1, 2), st.data())
def test_a_search_cut_short_still_gives_tables_that_fit(steps, data):
    pairs, domain = data.draw(graphs())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learn, "MOST_CLIQUES", steps)
        tables = combine(pairs, domain)
    assert all(any(set(pair) <= set(table) for table in tables) for pair in pairs)
    assert all(domain.project(clique).cells <= PAPER.gamma for clique in cliques(tables))


@pytest.mark.parametrize("attributes", [30, 60])
@pytest.mark.parametrize("size", [2, 3, None])
def test_a_complete_graph_ends_quickly(attributes, size):
    """There are 2^30 cliques and more; a second is a hundred times what the search takes."""
    sizes = tuple(2 + j % 20 for j in range(attributes)) if size is None else (size,) * attributes
    domain = Domain(tuple(f"x{j}" for j in range(attributes)), sizes)
    begin = process_time()
    tables = combine(complete(domain), domain)
    assert process_time() - begin < 1.0
    assert len(tables[0]) == {2: 12, 3: 7, None: len(tables[0])}[size]
    assert set(complete(domain)) == {pair for table in tables for pair in combinations(table, 2)}
