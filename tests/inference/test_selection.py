"""The convex split of the budget: no other split leaves less error."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from privsyn.inference import _kernels
from privsyn.inference.selection import STEPS, allocate, near_pairs, slopes_of

SLACK = 3e-5  # of the least error: slopes are tabled; over 300 random problems it was 9e-6 at most
rhos = st.sampled_from([1e-9, 1e-4, 0.01, 1.0, 1e3])
seeds = st.integers(0, 2**32 - 1)


def split_of(variances, rho, weights=None):
    """The split of `rho` over tables whose cells have these prior variances."""
    return allocate(slopes_of(variances, rho), rho, weights=weights)


def draw_tables(seed, most=6):
    """Prior variances of a few tables, of very different sizes and scales."""
    rng = np.random.default_rng(seed)
    shapes = rng.integers(1, 8, (rng.integers(1, most + 1), 2))
    return [10 ** rng.uniform(-3, 8) * rng.dirichlet(np.full(a * b, 0.5)).reshape(a, b) for a, b in shapes]


@given(seeds, rhos)
def test_slopes_are_those_of_a_loop_over_tables(seed, rho):
    tables, budgets = draw_tables(seed), rho * STEPS
    cells, ends = np.concatenate([t.ravel() for t in tables]), np.cumsum([t.size for t in tables])
    slow = [[reference.slope(table, budget) for budget in budgets] for table in tables]
    np.testing.assert_allclose(_kernels.slopes(cells, ends, budgets), slow, rtol=1e-12)


@settings(deadline=None)
@given(seeds, rhos)
def test_the_parts_sum_to_the_whole(seed, rho):
    split = split_of(draw_tables(seed), rho)
    assert (split >= 0).all()
    assert split.sum() == pytest.approx(rho, rel=1e-12)


@settings(deadline=None, max_examples=50)
@given(seeds, rhos)
def test_a_general_method_finds_nothing_better(seed, rho):
    """From equal shares, and from the split itself."""
    variances = draw_tables(seed)
    split = split_of(variances, rho)
    error = reference.error_left(variances, split)
    scale = reference.error_left(variances, np.zeros(len(split)))
    for start in (np.full(len(split), 1 / len(split)), split / rho):
        solved = minimize(
            lambda shares: reference.error_left(variances, rho * np.maximum(shares, 0)) / scale,
            start,
            jac=lambda shares: [
                -rho * reference.slope(v, rho * max(share, 0)) / scale
                for v, share in zip(variances, shares, strict=True)
            ],
            bounds=[(0, 1)] * len(split),
            constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1, "jac": np.ones_like},
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 300},
        )
        shares = np.maximum(solved.x, 0)
        best = reference.error_left(variances, rho * shares / shares.sum())
        assert error <= best * (1 + SLACK)


def test_a_table_with_too_little_to_gain_gets_nothing():
    """Slopes at 0 are sqrt(2 / pi) v^1.5; the first table's falls to a billionth only at rho = 3e5."""
    split = split_of([np.array([100.0]), np.array([1e-6])], 1.0)
    assert split.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("others", [1, 3])
def test_a_certain_table_gets_nothing(others):
    certain, unsure = np.zeros((2, 2)), np.full((2, 2), 1e6)
    split = split_of([certain, *[unsure] * others], 0.3)
    np.testing.assert_allclose(split, [0.0, *[0.3 / others] * others])


@pytest.mark.parametrize("variance", [0.0, 1e-20])
def test_where_all_are_certain_all_get_the_same(variance):
    np.testing.assert_allclose(split_of([np.full(4, variance)] * 3, 0.3), [0.1] * 3)


def test_a_share_below_the_first_step_costs_next_to_nothing():
    """One table has its best share at a tenth of the first step; three others share the rest equally."""
    rho, best = 1e3, STEPS[1] / 10
    many = 1e8
    kept = many / (1 + 2 * rho * (1 - best) / 3 * many)  # of their variance
    variances = [*[np.array([many])] * 3, np.array([kept / (1 - 2 * best * rho * kept)])]
    split = split_of(variances, rho)
    assert split[:3] == pytest.approx([rho / 3] * 3, rel=2 * STEPS[1])
    assert 0 <= split[3] <= STEPS[1] * rho
    ideal = [*[rho * (1 - best) / 3] * 3, rho * best]
    error, least = (reference.error_left(variances, budgets) for budgets in (split, ideal))
    assert least <= error <= least * (1 + 1e-12)


@settings(deadline=None, max_examples=20)
@given(seeds, rhos)
def test_an_error_that_matters_twice_is_weighed_twice(seed, rho):
    """No split nearby and none at random leaves less of the weighted error."""
    variances = draw_tables(seed)
    weights = np.random.default_rng(seed).uniform(0, 2, len(variances))
    split = split_of(variances, rho, weights=weights)
    assert split.sum() == pytest.approx(rho, rel=1e-12)

    def error(budgets):
        return sum(
            w * reference.error_left([v], [r]) for w, v, r in zip(weights, variances, budgets, strict=True)
        )

    rng = np.random.default_rng(seed)
    for shares in (split / rho * rng.uniform(0.8, 1.25, len(split)), rng.dirichlet(np.ones(len(split)))):
        assert error(split) <= error(rho * shares / shares.sum()) * (1 + SLACK)


def test_thousands_of_tables_are_split():
    rng = np.random.default_rng(0)
    variances = [10 ** rng.uniform(-2, 6) * rng.dirichlet(np.ones(9)) for _ in range(2000)]
    split = split_of(variances, 0.5)
    assert split.sum() == pytest.approx(0.5, rel=1e-12)
    slopes = np.array([reference.slope(v, r) for v, r in zip(variances, split, strict=True)])
    assert (slopes <= 1.03 * slopes[split > 0].min()).all()


@pytest.mark.parametrize("most", [0, 1, 11, 12, 21, 65, 66, 1000])
def test_near_pairs_are_all_pairs_or_those_of_least_distance(most):
    """Twelve columns have 66 pairs: eleven at distance 1, ten at distance 2, and so on."""
    names = tuple("abcdefghijkl")
    every = list(combinations(names, 2))
    found = near_pairs(names, most)
    distances = {pair: names.index(pair[1]) - names.index(pair[0]) for pair in every}
    width = max((distances[pair] for pair in found), default=0)
    assert list(found) == [pair for pair in every if distances[pair] <= width]
    assert len(found) <= most
    assert len(found) == 66 or len(found) + 11 - width > most
    assert set(near_pairs(names, most, "d")) == {*found, *(pair for pair in every if "d" in pair)}


@pytest.mark.parametrize("seed", [1870, 2783, 3071])
def test_no_table_gets_a_budget_that_rounding_leaves(seed):
    """Its noise would exceed every count. Here a table had 1e-16 of the budget."""
    rng = np.random.default_rng(seed)
    variances = [10 ** rng.uniform(1, 5) * np.ones((2, 2)) for _ in range(int(rng.integers(2, 6)))]
    split = split_of(variances, 10 ** rng.uniform(-4, 0))
    assert split[split > 0].min() > 1e-9 * split.sum()
