"""What two attributes tell of each other, by the definitions."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from strategies import coded_tables

from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.statistics import (
    couplings,
    dependences,
    mutual_informations,
    pairs_within,
    total_variation,
)
from privsyn.marginals.structural_zeros import product

PAIR = Domain(("a", "b"), (3, 4))


def mutual_information(table):
    return mutual_informations([table])[0]


def coupling(table):
    return couplings([table])[0]


@settings(deadline=None)
@given(coded_tables(Domain(("a", "b"), (3, 4))).filter(len))
def test_mutual_information_is_as_defined(records):
    table = reference.count(records, ("a", "b"))
    assert mutual_information(table) == pytest.approx(reference.mutual_information(table), abs=1e-12)
    assert mutual_information(table) >= 0


@settings(deadline=None)
@given(coded_tables(PAIR).filter(len))
def test_coupling_is_symmetric_and_a_share(records):
    forwards, backwards = (reference.count(records, pair) for pair in (("a", "b"), ("b", "a")))
    assert coupling(forwards) == pytest.approx(coupling(backwards), abs=1e-9)
    assert 0 <= coupling(forwards) <= 1


def test_a_function_is_coupled_whole_and_a_noisy_copy_by_half():
    assert coupling(Marginal(PAIR, np.eye(3, 4))) == pytest.approx(1)
    copy = Marginal(Domain(("a", "b"), (2, 2)), np.array([[0.89, 0.11], [0.11, 0.89]]))
    assert coupling(copy) == pytest.approx(0.5, abs=0.001)  # 0.11 bits hold half a bit


def test_many_tables_at_once_are_as_one_by_one():
    """Of several shapes, with and without empty cells: to the last bit, as a tree of pairs depends on it."""
    rng = np.random.default_rng(0)
    shapes = [(2, 2), (3, 40), (1, 5), (12, 16), (3, 40), (2, 2), (12, 16)]
    pairs = [Marginal(Domain(("a", "b"), s), rng.poisson(0.7, s) + np.eye(*s)) for s in shapes]
    assert mutual_informations(pairs).tolist() == list(map(mutual_information, pairs))
    assert couplings(pairs).tolist() == list(map(coupling, pairs))
    tables = [*pairs, Marginal(Domain(("a", "b", "c"), (2, 3, 4)), rng.poisson(2.0, (2, 3, 4)) + 0.5)]
    for table, found in zip(tables, dependences(tables), strict=True):
        sides = tuple(table.project((name,)) for name in table.attributes)
        gap = total_variation(table.counts, product(table.domain, sides).counts)
        assert found == pytest.approx(gap / table.total, rel=1e-12)


def test_pairs_come_from_every_table():
    cube = Marginal(Domain(tuple("abc"), (2, 2, 2)), np.arange(8.0).reshape(2, 2, 2))
    pairs = pairs_within((cube, Marginal(Domain(tuple("cd"), (2, 2)), np.ones((2, 2)))))
    assert list(pairs) == [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]
    assert pairs["a", "c"].counts.tolist() == [[2, 4], [10, 12]]
