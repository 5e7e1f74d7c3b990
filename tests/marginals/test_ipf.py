"""Pairs and bigger tables are scaled to their margins; the compiled loop agrees with one over cells."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from privsyn.marginals.domain import Domain
from privsyn.marginals.ipf import fit_all, fit_margins
from privsyn.marginals.marginal import Marginal

compiled = settings(deadline=None)  # the first call compiles


def a_pair(rng, shape, zeros):
    """A table with some zeros, and the margins of another one."""
    domain = Domain(("x", "y"), shape)
    counts, other = (rng.exponential(9.0, shape) * (rng.random(shape) > zeros) for _ in range(2))
    margins = tuple(Marginal(domain, other + 1e-3).project((name,)) for name in "xy")
    return Marginal(domain, counts + (not counts.any())), margins


@compiled
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([(1, 1), (1, 5), (4, 1), (3, 4), (7, 7)]),
    st.sampled_from([0, 0.4]),
)
def test_some_rounds_are_those_of_a_loop_over_cells(seed, shape, zeros):
    table, margins = a_pair(np.random.default_rng(seed), shape, zeros)
    for rounds in (1, 2):  # after two, fitting may end because it no longer improves
        slow = reference.fit_margins(table, margins, rounds)
        if slow.sum() > 0:
            slow *= margins[0].total / slow.sum()
        assert fit_margins(table, margins, iterations=rounds, enough=-1.0).counts == pytest.approx(
            slow, rel=1e-9, abs=1e-9
        )


def test_pairs_of_one_shape_are_fitted_as_alone():
    """One needs no round, one needs some, and one has zeros that its margins contradict."""
    rng, square = np.random.default_rng(0), Domain(("x", "y"), (3, 3))
    exact = Marginal(square, rng.exponential(9.0, (3, 3)))
    own = tuple(exact.project((name,)) for name in "xy")
    apart = Marginal(square, np.diag([1.0, 2.0, 3.0]))
    tables = (exact, a_pair(rng, (3, 3), 0)[0], apart)
    fitted = fit_all(tables, (own, own, own))
    for table, found in zip(tables, fitted, strict=True):
        assert np.array_equal(found.counts, fit_margins(table, own).counts)
    assert fitted[0].counts == pytest.approx(exact.counts)
    for name, margin in zip("xy", own, strict=True):
        assert fitted[1].project((name,)).counts == pytest.approx(margin.counts)
    assert fitted[2].total == pytest.approx(exact.total)
    assert not fitted[2].counts[~np.eye(3, dtype=bool)].any()


def test_counts_too_small_to_be_scaled_are_none():
    """Their margin over their sum is beyond the largest number, and warned of an overflow."""
    cube = Domain(("a", "b", "c"), (2, 2, 2))
    counts = np.ones(cube.shape)
    counts[0] = 5e-324
    table = fit_margins(Marginal(cube, counts), (Marginal(cube.project(("a",)), np.array([6.0, 2.0])),))
    assert np.isfinite(table.counts).all()
    assert table.total == pytest.approx(8.0)
