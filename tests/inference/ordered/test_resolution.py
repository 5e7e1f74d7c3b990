"""Resolution: coarse where noise is large, fine where it is small; how budget is split."""

from __future__ import annotations

import numpy as np
import pytest

from privsyn.inference.consistency import combine_one_ways
from privsyn.inference.measured_columns import Estimate
from privsyn.inference.prior.smoothing import Waves
from privsyn.inference.selection import STEPS, Resolutions, slopes_along
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Grouping, Marginal, Measurement

DOMAIN = Domain(("a", "b", "c"), (32, 32, 3), ordered=(32, 32, 0))
SIDES = tuple(
    Marginal(DOMAIN.project((name,)), np.full(size, 9600.0 / size))
    for name, size in zip(DOMAIN.names, DOMAIN.sizes, strict=True)
)


def best_level(rho):
    resolutions = Resolutions(Waves(SIDES))
    errors = [
        resolutions.errors_at(level, [("a", "b")], np.array([100.0]), rho)[0, -1]
        for level in range(resolutions.levels(("a", "b")))
    ]
    return int(np.argmin(errors))


def test_the_more_budget_the_finer():
    levels = [best_level(rho) for rho in (1e-5, 1e-3, 1e-1, 10.0)]
    assert levels == sorted(levels)
    assert levels[0] <= 1
    assert levels[-1] == 4  # all 32 codes


def test_expected_errors_fall_with_the_budget_to_nothing():
    resolutions = Resolutions(Waves(SIDES))
    errors = resolutions.errors_at(4, [("a", "b"), ("a", "c")], np.array([100.0, 100.0]), 1e9)
    assert (np.diff(errors, axis=1) <= 1e-9).all()
    assert (errors[:, -1] < 0.01 * errors[:, 0]).all()


def test_a_second_look_goes_on_from_the_first():
    resolutions, rho = Resolutions(Waves(SIDES)), 0.1
    groups = resolutions.groups(("a", "b"), 1)
    table = Marginal(DOMAIN.project(("a", "b")), np.ones((32, 32))).join(groups)
    once = Measurement(table, 1 / (2 * rho), groups)
    first = resolutions.errors_at(1, [("a", "b")], np.array([100.0]), rho)
    second = resolutions.errors_left([Estimate(table, dispersion=100.0, measured=once)], rho)
    assert second[0, 0] == pytest.approx(first[0, -1])


def test_slopes_are_those_of_the_convex_hull():
    rho = 2.0
    curve = 1 / (1 + 3 * STEPS)
    slopes = slopes_along(np.stack([curve, np.minimum(curve, 0.9 - 0.2 * STEPS)]), rho)
    inner = slice(30, 70)
    np.testing.assert_allclose(slopes[0, inner], (3 / (1 + 3 * STEPS) ** 2 / rho)[inner], rtol=0.02)
    assert (np.diff(slopes, axis=1) <= 1e-12).all()


def test_counts_in_groups_make_one_ways_certain_as_least_squares_do():
    """Against the normal equations of all that was measured."""
    rng = np.random.default_rng(0)
    domain = Domain(("a", "b"), (6, 2), ordered=(6, 0))
    one_ways = tuple(
        Measurement(Marginal(domain.project((name,)), rng.normal(50, 5, size)), 25.0)
        for name, size in zip("ab", (6, 2), strict=True)
    )
    group = np.array([0, 0, 1, 1, 1, 2], np.int32)
    groups = Grouping((group, np.arange(2, dtype=np.int32)))
    joined = Marginal(domain, rng.normal(25, 5, (6, 2))).join(groups)
    (found, _) = combine_one_ways(domain, (*one_ways, Measurement(joined, 4.0, groups)))
    join = np.eye(3)[group].T
    information = np.eye(6) / 25 + join.T @ join / 8  # of two cells with variance 4 each
    informed = one_ways[0].marginal.counts / 25 + join.T @ joined.counts.sum(axis=1) / 8
    np.testing.assert_allclose(found.marginal.counts, np.linalg.solve(information, informed))
    np.testing.assert_allclose(found.variance, np.diag(np.linalg.inv(information)))
