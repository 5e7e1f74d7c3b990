"""DenseMarg and the split of the budget among the tables it chose."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import pi, sqrt

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from reference import binary
from scipy.optimize import minimize

from privsyn.marginals.domain import Domain
from privsyn.methods.paper.learn import allocate, dense_marg

rhos = st.floats(1e-4, 10.0)
cells = st.lists(st.integers(1, 5000), min_size=1, max_size=6).map(lambda c: np.array(c, float))


@st.composite
def dependences_and_domains(draw):
    sizes = draw(st.lists(st.integers(1, 30), min_size=1, max_size=6))
    domain = Domain(tuple("abcdef"[: len(sizes)]), tuple(sizes))
    dependence = st.floats(-500.0, 5000.0, width=32)
    return {pair: draw(dependence) for pair in combinations(domain.names, 2)}, domain


@given(dependences_and_domains(), rhos)
def test_it_is_the_greedy_that_reckons_every_error_afresh(case, rho):
    dependences, domain = case
    fast, slow = dense_marg(dependences, domain, rho), reference.dense_marg(dependences, domain, rho)
    # Errors equal up to rounding may be taken in either order.
    assert fast == slow or reference.expected_error(fast, dependences, domain, rho) == pytest.approx(
        reference.expected_error(slow, dependences, domain, rho), rel=1e-12
    )


@given(dependences_and_domains(), rhos)
def test_every_pair_that_is_kept_made_the_error_smaller(case, rho):
    dependences, domain = case
    chosen = dense_marg(dependences, domain, rho)
    errors = [reference.expected_error(chosen[:k], dependences, domain, rho) for k in range(len(chosen) + 1)]
    assert all(after < before * (1 + 1e-12) for before, after in pairwise(errors))


@given(dependences_and_domains(), rhos)
def test_no_further_pair_would_make_the_error_smaller(case, rho):
    dependences, domain = case
    chosen = dense_marg(dependences, domain, rho)
    error = reference.expected_error(chosen, dependences, domain, rho)
    for pair in set(dependences) - set(chosen):
        assert reference.expected_error((*chosen, pair), dependences, domain, rho) >= error * (1 - 1e-12)


@given(dependences_and_domains(), rhos)
def test_a_negative_dependence_counts_as_none(case, rho):
    dependences, domain = case
    clamped = {pair: max(dependence, 0.0) for pair, dependence in dependences.items()}
    assert dense_marg(dependences, domain, rho) == dense_marg(clamped, domain, rho)


def test_with_a_large_budget_every_dependent_pair_is_measured():
    domain = binary("abcd")
    dependences = dict.fromkeys(combinations(domain.names, 2), 10.0)
    assert set(dense_marg(dependences, domain, 1e9)) == set(dependences)


def test_without_dependence_no_pair_is_measured():
    domain = binary("abc")
    assert dense_marg(dict.fromkeys(combinations(domain.names, 2), 0.0), domain, 1e9) == ()
    assert dense_marg(dict.fromkeys(combinations(domain.names, 2), -1.0), domain, 1e9) == ()


def test_a_single_attribute_has_no_pairs():
    assert dense_marg({}, binary("a"), 1.0) == ()


def test_a_first_pair_that_costs_more_than_it_tells_is_left_out():
    """Four cells at rho = 1/pi cost 4 records."""
    assert dense_marg({("a", "b"): 3.9}, binary("ab"), 1 / pi) == ()
    assert dense_marg({("a", "b"): 4.1}, binary("ab"), 1 / pi) == (("a", "b"),)


@given(cells, rhos)
def test_the_parts_sum_to_the_whole(tables, rho):
    assert allocate(tables, rho).sum() == pytest.approx(rho)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # of SciPy, which clips them
@given(cells, rhos)
def test_the_split_is_the_best(tables, rho):
    def error(shares):
        return sum(c / sqrt(pi * rho * s) for c, s in zip(tables, shares, strict=True))

    split = allocate(tables, rho) / rho
    solved = minimize(
        error,
        np.full(len(tables), 1 / len(tables)),
        bounds=[(1e-4, 1)] * len(tables),
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
    )
    assert error(split) <= error(solved.x / solved.x.sum()) * (1 + 1e-9)


def test_no_tables_take_no_budget():
    assert allocate(np.array([]), 1.0).tolist() == []
