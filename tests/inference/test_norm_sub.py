"""norm_sub is the nearest non-negative table with the total."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from privsyn.inference.consistency import norm_sub

tables = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12).map(np.array)
totals = st.floats(0, 1e6)


@given(tables, totals)
@example(np.array([-5.0, -7.0, -6.0]), 3.0)
@example(np.array([-5.0, -7.0]), 0.0)
@example(np.array([5.0, 7.0]), 0.0)
@example(np.array([0.0, 0.0]), 0.0)
@example(np.array([-1e6]), 1.0)
def test_it_takes_the_same_from_every_cell_that_stays(counts, total):
    np.testing.assert_allclose(norm_sub(counts, total), reference.norm_sub(counts, total), atol=1e-6)


@given(tables, totals)
@example(np.array([1e18]), 1.0)
@example(np.array([3e16, 2e16, 3e16]), 1.0)
def test_the_total_is_the_one_asked_for(counts, total):
    assert norm_sub(counts, total).sum() == pytest.approx(total, rel=1e-12, abs=1e-9)


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=5).map(np.array), st.floats(0.1, 50))
def test_no_table_with_that_total_is_nearer(counts, total):
    """A quadratic programme, solved by a general method to its own accuracy."""
    solved = minimize(
        lambda x: ((x - counts) ** 2).sum(),
        np.full(len(counts), total / len(counts)),
        jac=lambda x: 2 * (x - counts),
        bounds=[(0, None)] * len(counts),
        constraints={"type": "eq", "fun": lambda x: x.sum() - total, "jac": np.ones_like},
        method="SLSQP",
    )
    nearest = norm_sub(counts, total)
    assert ((nearest - counts) ** 2).sum() <= ((solved.x - counts) ** 2).sum() + 1e-4


@pytest.mark.parametrize("total", [-1.0, np.nan])
def test_fewer_than_no_records_are_refused(total):
    with pytest.raises(ValueError, match="fewer than 0 records"):
        norm_sub(np.ones(3), total)
