"""Contradictions of exact counts: those that a search over all tables finds, and no others."""

from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal, Measurement
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.table.totals.contradiction import ExactTables

EXACT = np.zeros(())
DOMAIN = Domain(("a", "b", "c"), (3, 2, 2), (3, 0, 0))
CELLS = list(product(*map(range, DOMAIN.sizes)))
ROWS = 3
JOINT = np.stack(
    [
        np.bincount(chosen, minlength=len(CELLS)).reshape(DOMAIN.shape)
        for chosen in combinations_with_replacement(range(len(CELLS)), ROWS)
    ]
)
"""All tables of three rows."""

SETS = [names for size in (1, 2, 3) for names in combinations(DOMAIN.names, size)]


def measured(table, names, bands=None):
    """Return the counts of a joint table over some attributes; codes of `a` may be joined to bands."""
    margin = Marginal(DOMAIN, table).project(names)
    groups = {name: np.arange(size, dtype=np.int32) for name, size in DOMAIN.size_of.items()}
    if bands is None or "a" not in names:
        return Measurement(margin, EXACT)
    grouping = Grouping(tuple(np.array(bands, np.int32) if name == "a" else groups[name] for name in names))
    return Measurement(margin.join(grouping), EXACT, grouping)


def sums(tables, names, grouping=NO_GROUPS):
    """Return the counts of many joint tables over some attributes."""
    axes = tuple(1 + axis for axis, name in enumerate(DOMAIN.names) if name not in names)
    margins = tables.sum(axis=axes)
    return np.stack([grouping.join(margin) for margin in margins])


tables_of_rows = st.integers(0, len(JOINT) - 1).map(JOINT.__getitem__)
bands = st.sampled_from([None, [0, 0, 1], [0, 1, 1]])
margins = st.tuples(tables_of_rows, st.sampled_from(SETS), bands)


@given(st.lists(margins, min_size=1, max_size=4), st.sets(st.sampled_from(CELLS), max_size=6))
def test_tables_are_refused_exactly_if_no_table_has_all_of_them(given_margins, impossible):
    tables = tuple(measured(table, names, groups) for table, names, groups in given_margins)
    mask = np.ones(DOMAIN.shape, np.bool_)
    for cell in impossible:
        mask[cell] = False
    zeros = StructuralZeros(((DOMAIN, mask),)) if impossible else NO_ZEROS
    candidates = JOINT[~(JOINT[:, ~mask] > 0).any(axis=1)]

    def exists(chosen):
        fits = np.full(len(candidates), True)
        for table in chosen:
            counts = sums(candidates, table.attributes, table.grouping) if len(candidates) else candidates
            fits &= (counts == table.marginal.counts).reshape(len(candidates), -1).all(axis=1)
        return bool(fits.any())

    in_all = set().union(*(table.attributes for table in tables)) == set(DOMAIN.names)
    problem = ExactTables(tables, DOMAIN, zeros).contradiction()
    if in_all or not impossible:  # zeros of attributes that no table has are not searched
        assert (problem is None) == exists(tables)
    if problem is None:
        return
    assert not exists([tables[index] for index in problem.tables])
    if problem.relation in ("at most", "at least", "nearest", "fractions"):
        for index in problem.tables:
            rest = [tables[other] for other in problem.tables if other != index]
            assert ExactTables(tuple(rest), DOMAIN, zeros).contradiction() is None


@given(tables_of_rows, st.lists(st.tuples(st.sampled_from(SETS), bands), min_size=1, max_size=5))
def test_sums_of_one_table_never_contradict_each_other(table, chosen):
    tables = tuple(measured(table, names, groups) for names, groups in chosen)
    assert ExactTables(tables, DOMAIN, NO_ZEROS).contradiction() is None


@given(
    st.lists(st.integers(0, 5), min_size=4, max_size=4), st.lists(st.integers(0, 5), min_size=2, max_size=2)
)
def test_regions_agree_with_the_sums_of_their_places(of_places, of_regions):
    domain = Domain(("place", "region"), (4, 2))
    regions = np.array([0, 1, 1, 0])
    mask = regions[:, np.newaxis] == np.arange(2)
    places, totals = np.array(of_places, float), np.array(of_regions, float)
    tables = (
        Measurement(Marginal(domain.project(("place",)), places), EXACT),
        Measurement(Marginal(domain.project(("region",)), totals), EXACT),
    )
    exact = ExactTables(
        tables, domain, StructuralZeros(((domain, mask),)), (), {"place": ("region", regions)}
    )
    agree = np.array_equal(np.bincount(regions, places), totals)
    problem = exact.contradiction()
    assert (problem is None) == agree
    if problem is not None and places.sum() == totals.sum():
        (code,) = problem.cell["region"]
        assert problem.counts == (np.bincount(regions, places)[code], totals[code])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_the_contradiction_of_the_fewest_attributes_is_named(order):
    pairs = [np.array([[5, 0], [0, 5]]), np.array([[0, 5], [5, 0]])]
    domain = Domain(("b", "c"), (2, 2))
    tables = [Measurement(Marginal(domain, pair), EXACT) for pair in pairs]
    tables.append(Measurement(Marginal(domain.project(("c",)), np.array([6, 4])), EXACT))
    problem = ExactTables(tuple(tables[index] for index in order), domain, NO_ZEROS).contradiction()
    assert list(problem.cell) == ["c"]
    assert sorted(problem.counts) in ([4.0, 5.0], [5.0, 6.0])
