"""DenseMarg and the split of the budget among the tables it chose."""

from __future__ import annotations

from itertools import combinations
from math import pi, sqrt

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
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
