"""Records get the counts of known totals exactly, also of tables that overlap, and scaled within one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privsyn.marginals.counting import count
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.known_totals import EXACT, KnownTotals
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal, Measurement
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.synthesis.targets import Targets
from privsyn.synthesis.totals.junction_tree import JunctionTree

SEX, REGION, PLACE, AGE = Domain(("sex", "region", "place", "age"), (2, 2, 5, 6)).names
DOMAIN = Domain((SEX, REGION, PLACE, AGE), (2, 2, 5, 6))
REGION_OF_PLACE = np.array([0, 0, 0, 1, 1])
INSIDE = StructuralZeros(((DOMAIN.project((PLACE, REGION)), REGION_OF_PLACE[:, None] == np.arange(2)),))


def people(n, seed, *, inside=True):
    """Records whose places lie in their regions; or anywhere."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, n) for size in DOMAIN.sizes], axis=1)
    if inside:
        codes[:, 1] = REGION_OF_PLACE[codes[:, 2]]
    return Records(DOMAIN, codes)


def table_of(records, names, groups=NO_GROUPS):
    """The exact counts of records over attributes, in groups of codes."""
    counts = Marginal(records.domain.project(names), count(records, names))
    return Measurement(counts.join(groups), EXACT, groups)


def targets_of(records, zeros=NO_ZEROS):
    domain = records.domain
    one_ways = tuple(Marginal(domain.project((name,)), count(records, (name,)) + 0.5) for name in domain)
    pairs = combinations(domain.names, 2)
    return Targets(
        one_ways, tuple(Marginal(domain.project(p), count(records, p) + 0.5) for p in pairs), zeros
    )


def counts_of(records, tables):
    return [table.grouping.join(count(records, table.attributes)) for table in tables]


def gaps(records, tables, n):
    """By how much counts of records differ at most from those of the tables, scaled to `n` records."""
    scaled = [table.marginal.counts * (n / table.marginal.total) for table in tables]
    return [
        np.abs(seen - counts).max() for seen, counts in zip(counts_of(records, tables), scaled, strict=True)
    ]


@st.composite
def known(draw):
    """Random records, and tables of their counts in random groups: totals that some records have."""
    size = draw(st.integers(2, 5))
    domain = Domain(tuple("abcde"[:size]), tuple(draw(st.integers(1, 5)) for _ in range(size)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 120))
    shares = [rng.dirichlet(np.ones(codes)) for codes in domain.sizes]
    records = Records(domain, np.stack([rng.choice(len(p), n, p=p) for p in shares], axis=1))
    tables = []
    for names in draw(st.lists(st.permutations(domain.names), min_size=1, max_size=4)):
        inside = tuple(names[: draw(st.integers(1, min(size, 3)))])
        joined = draw(st.booleans())
        groups = [np.arange(domain.size_of[name]) // (2 if joined else 1) for name in inside]
        tables.append(table_of(records, inside, Grouping(tuple(g.astype(np.int32) for g in groups))))
    return records, tables, rng


@given(known())
def test_any_totals_that_some_records_have_are_met_exactly(facts):
    truth, tables, rng = facts
    tree = JunctionTree.of(KnownTotals(tuple(tables)), truth.domain)
    start = Records(truth.domain, rng.integers(0, truth.domain.sizes, (len(truth), len(truth.domain))))
    records = tree.enforce(start, tree.tables_for(len(truth), rng), targets_of(truth), rng)
    assert max(gaps(records, tables, len(truth))) == 0


@given(known(), st.integers(1, 400))
def test_for_another_number_of_records_totals_are_scaled_to_within_one(facts, n):
    truth, tables, rng = facts
    tree = JunctionTree.of(KnownTotals(tuple(tables)), truth.domain)
    start = Records(truth.domain, rng.integers(0, truth.domain.sizes, (n, len(truth.domain))))
    records = tree.enforce(start, tree.tables_for(n, rng), targets_of(truth), rng)
    assert max(gaps(records, tables, n)) < 1 + 1e-6


@given(known(), st.lists(st.integers(0, 300), min_size=1, max_size=5))
def test_blocks_add_up_to_the_totals(facts, sizes):
    truth, tables, rng = facts
    tree, ends = JunctionTree.of(KnownTotals(tuple(tables)), truth.domain), np.cumsum(sizes).tolist()
    blocks = list(tree.tables_of_blocks(ends, rng))
    made = []
    for size, dealt in zip(sizes, blocks, strict=True):
        start = Records(truth.domain, rng.integers(0, truth.domain.sizes, (size, len(truth.domain))))
        made.append(tree.enforce(start, dealt, targets_of(truth), rng).codes)
    assert [int(table.sum()) for table in blocks[0]] == [sizes[0]] * len(tree.cliques)
    if ends[-1]:
        assert max(gaps(Records(truth.domain, np.concatenate(made)), tables, ends[-1])) < 1 + 1e-6


def hierarchy(n=300):
    truth = people(n, seed=1)
    thirds = Grouping((np.arange(5, dtype=np.int32), np.array([0, 0, 1, 1, 2, 2], np.int32)))
    return truth, [table_of(truth, (REGION, SEX)), table_of(truth, (PLACE, AGE), thirds)]


def test_places_lie_in_their_regions_and_both_have_their_totals():
    truth, tables = hierarchy()
    tree = JunctionTree.of(KnownTotals(tuple(tables)), DOMAIN, INSIDE)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        start = people(len(truth), seed=seed + 10, inside=False)
        records = tree.enforce(start, tree.tables_for(len(truth), rng), targets_of(truth, INSIDE), rng)
        assert gaps(records, tables, len(truth)) == [0, 0]
        assert (REGION_OF_PLACE[records.codes[:, 2]] == records.codes[:, 1]).all()


def test_records_that_have_the_totals_stay_as_they_are():
    truth, tables = hierarchy()
    tree = JunctionTree.of(KnownTotals(tuple(tables)), DOMAIN, INSIDE)
    rng = np.random.default_rng(0)
    records = tree.enforce(truth, tree.tables, targets_of(truth, INSIDE), rng)
    assert np.array_equal(records.codes, truth.codes)


def test_no_more_records_change_than_must():
    """One table of totals: each record in a cell that has too many is moved once."""
    truth = people(400, seed=2)
    table = table_of(truth, (SEX, AGE))
    start = people(400, seed=3)
    tree, rng = JunctionTree.of(KnownTotals((table,)), DOMAIN), np.random.default_rng(0)
    records = tree.enforce(start, tree.tables, targets_of(truth), rng)
    surplus = np.maximum(count(start, (SEX, AGE)) - count(truth, (SEX, AGE)), 0).sum()
    assert (records.codes != start.codes).any(axis=1).sum() == surplus
    assert np.array_equal(records.codes[:, 1:3], start.codes[:, 1:3])


def test_the_record_that_moves_is_one_that_fits():
    """Half of the records must become women; who smokes does, because only women smoke."""
    domain = Domain(("sex", "smokes"), (2, 2))
    truth = Records(domain, np.repeat([[0, 1], [1, 0]], 12, axis=0))
    start = Records(domain, np.repeat([[1, 1], [1, 0]], 12, axis=0))
    tree, rng = JunctionTree.of(KnownTotals((table_of(truth, ("sex",)),)), domain), np.random.default_rng(0)
    records = tree.enforce(start, tree.tables, targets_of(truth), rng)
    assert np.array_equal(records.codes, truth.codes)


def test_no_count_is_rounded_up_more_often_than_its_fraction_says():
    """Of 40 cells with 2.5 records each, 20 get 3: each cell in Binomial(100, 1/2) of 100 roundings.

    One of 40 is 32 or more from 50 with a probability below 1e-8.
    """
    domain = Domain(("a",), (40,))
    table = Measurement(Marginal(domain, np.full(40, 5.0)), EXACT)
    tree, rng = JunctionTree.of(KnownTotals((table,)), domain), np.random.default_rng(0)
    threes = sum((tree.tables_for(100, rng)[0] == 3).astype(int) for _ in range(100))
    assert threes.sum() == 100 * 20
    assert (np.abs(threes - 50) < 32).all()


def test_totals_that_no_records_have_are_refused():
    """Each two of three columns of two values differ in all records: no record does that."""
    domain = Domain(("a", "b", "c"), (2, 2, 2))
    unequal = np.array([[0.0, 2.0], [2.0, 0.0]])
    tables = tuple(
        Measurement(Marginal(domain.project(pair), unequal), EXACT) for pair in combinations(domain.names, 2)
    )
    with pytest.raises(ValueError, match="no records have all known totals"):
        _ = JunctionTree.of(KnownTotals(tables), domain).tables


def test_totals_with_records_in_structural_zeros_are_refused():
    truth = people(50, seed=1, inside=False)
    tree = JunctionTree.of(KnownTotals((table_of(truth, (REGION, PLACE)),)), DOMAIN, INSIDE)
    with pytest.raises(ValueError, match="structural zeros"):
        _ = tree.tables


def test_without_totals_nothing_changes():
    tree = JunctionTree.of(KnownTotals(()), DOMAIN)
    records = people(20, seed=0)
    rng = np.random.default_rng(0)
    assert tree.enforce(records, tree.tables_for(20, rng), targets_of(records), rng).codes.tolist() == (
        records.codes.tolist()
    )
    assert list(tree.tables_of_blocks([5, 20], rng)) == [(), ()]
