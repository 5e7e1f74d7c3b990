"""The start: records along a tree of the strongest pairs, which then need no mending."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import coded_tables

from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.statistics import couplings
from privsyn.synthesis.synthesise import independent_start, tree_start
from privsyn.synthesis.targets import Targets

TREES = {
    "chain": ["ab", "bc", "cd"],
    "star": ["ba", "bc", "bd"],
    "forest": ["ab", "cd"],
    "isolated": ["da"],
    "no tables": [],
}
seeds = st.integers(0, 2**32 - 1)
DOMAIN = Domain(tuple("abcd"), (3, 1, 4, 2))
rows = coded_tables(DOMAIN, max_rows=40).filter(len)


def tables_of(records, sets):
    return tuple(reference.count(records, tuple(attributes)) for attributes in sets)


def start(records, sets, n, seed=0):
    one_ways = tables_of(records, records.domain.names)
    return tree_start(Targets(one_ways, tables_of(records, sets)), n, np.random.default_rng(seed))


@settings(deadline=None)
@given(rows, st.sampled_from(list(TREES)), st.integers(1, 3), seeds)
def test_every_pair_of_a_tree_is_met_exactly(records, shape, times, seed):
    """Without an edge are pairs that are exactly independent: they are met on average."""
    begun = start(records, TREES[shape], times * len(records), seed)
    assert (begun.domain, len(begun)) == (DOMAIN, times * len(records))
    for table in tables_of(records, [*DOMAIN.names, *TREES[shape]]):
        if len(table.domain) == 1 or couplings([table])[0] > 1e-9:
            assert reference.distance(begun, table) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("codes", [256, 257, 2**16 + 1])
def test_columns_of_many_codes_keep_their_pairs(codes):
    """Their rows are sorted by codes of 8, 16 or 32 bits."""
    domain = Domain(("a", "b"), (codes, 2))
    records = Records(domain, np.stack([np.arange(codes), np.arange(codes) % 2], axis=1))
    found = start(records, ["ab"], codes)
    assert np.array_equal(np.bincount(found.codes[:, 0], minlength=codes), np.ones(codes))
    assert np.array_equal(found.codes[:, 1], found.codes[:, 0] % 2)


@settings(deadline=None)
@given(rows, st.sampled_from(list(TREES)), st.integers(0, 200), seeds)
def test_any_number_of_rows_meets_a_tree_to_rounding(records, shape, n, seed):
    """Each quota is off by less than one row, and what is off at a parent is off at its child.

    Without an edge are pairs that are exactly independent: they are met on average.
    """
    begun = start(records, TREES[shape], n, seed)
    tables = tables_of(records, [*DOMAIN.names, *TREES[shape]])
    assert len(begun) == n
    for table in tables:
        if len(table.domain) == 1 or couplings([table])[0] > 1e-9:
            assert reference.distance(begun, table) <= sum(other.domain.cells for other in tables)


def dependent_records(n=400):
    """Each attribute is the one before with some noise, more and more of it; d comes back to a."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 3, n)]
    for share in (0.1, 0.2, 0.5):
        columns.append(np.where(rng.random(n) < share, rng.integers(0, 3, n), columns[-1]))
    return Records(Domain(tuple("abcd"), (3,) * 4), np.stack(columns, axis=1))


@pytest.mark.parametrize("sets", [["ab", "bc", "cd", "da"], ["abc", "cd", "da"], ["dab", "bc", "cd"]])
def test_of_a_cycle_only_the_weakest_pair_is_not_met(sets):
    records = dependent_records()
    pairs = {a + b: reference.count(records, (a, b)) for a, b in ("ab", "bc", "cd", "ad")}
    assert min(pairs, key=lambda pair: reference.mutual_information(pairs[pair])) == "ad"
    begun = start(records, sets, len(records))
    for pair, table in pairs.items():
        assert (reference.distance(begun, table) == pytest.approx(0.0, abs=1e-9)) == (pair != "ad")


def test_the_tree_is_the_strongest_there_is():
    """Compared with every spanning tree of the complete graph on four attributes."""
    records = dependent_records()
    every = {pair: reference.count(records, pair) for pair in combinations("abcd", 2)}
    strength = {pair: reference.mutual_information(table) for pair, table in every.items()}
    trees = [
        edges
        for edges in combinations(every, 3)
        if nx.is_tree(nx.Graph(list(edges))) and len(set(sum(edges, ()))) == 4
    ]
    best = max(trees, key=lambda edges: sum(strength[pair] for pair in edges))
    begun = start(records, ["".join(pair) for pair in every], len(records))
    met = [pair for pair, table in every.items() if reference.distance(begun, table) < 1e-9]
    assert len(trees) == 16
    assert met == list(best)


def test_independent_columns_keep_their_counts_and_lose_their_links():
    n = 3000
    same = Records(Domain(("a", "b"), (2, 2)), np.repeat(np.arange(2), n // 2)[:, None].repeat(2, axis=1))
    one_ways = tables_of(same, "ab")
    begun = independent_start(same.domain, one_ways, n, np.random.default_rng(0))
    assert all(reference.distance(begun, table) == 0 for table in one_ways)
    agreeing = (begun.codes[:, 0] == begun.codes[:, 1]).sum()
    # Hypergeometric with variance n / 4: within 5.5 standard deviations but for 4e-8.
    assert abs(agreeing - n / 2) < 5.5 * np.sqrt(n / 4)


def test_the_order_of_rows_is_random():
    """Which of 20 rows holds the one odd value: 100 times each of 2000, within 5.5 standard deviations."""
    odd = Marginal(Domain(("a",), (2,)), np.array([1.0, 19.0]))
    rng = np.random.default_rng(1)
    places = [int(np.argmin(tree_start(Targets((odd,)), 20, rng).codes)) for _ in range(2000)]
    assert (np.abs(np.bincount(places, minlength=20) - 100) < 5.5 * np.sqrt(100)).all()
