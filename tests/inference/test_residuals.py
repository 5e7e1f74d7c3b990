"""Residuals and their margins make up the tables, and no part of a table is less certain than it says."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import fsum

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import coded_tables

from privsyn.inference.measured_columns import MeasuredColumns
from privsyn.inference.residuals import (
    one_ways_with,
    residual_budgets,
    residual_cost,
    residual_sets,
    whole_tables,
)
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.structural_zeros import StructuralZeros

SMALL = Domain(("a", "b", "c", "d"), (2, 3, 2, 4))
SETS = residual_sets(MeasuredColumns(reference.unmerged(SMALL)))


def exact(records, names, variance=1.0):
    return Measurement(reference.count(records, names), variance)


@given(coded_tables(SMALL))
def test_residuals_of_all_parts_make_up_the_whole_table(records):
    one_ways = tuple(exact(records, (name,)) for name in SMALL.names)
    residuals = {s: Measurement(exact(records, s).marginal.residual, 1.0) for s in SETS}
    one_ways = one_ways_with(one_ways, residuals)
    whole = whole_tables(residuals, one_ways) | {table.attributes: table for table in one_ways}
    assert whole.keys() == set(SETS)
    for names, table in whole.items():
        if len(records):  # the number of records is taken as at least 1
            assert np.allclose(table.marginal.counts, exact(records, names).marginal.counts)


weights = st.lists(st.floats(0.1, 10), min_size=len(SETS), max_size=len(SETS))


@given(weights, st.floats(1e-6, 1e3))
def test_smaller_tables_are_at_least_as_certain_as_a_table_says_of_its_sums(given_weights, rho):
    """A residual with variance v over k cells has the variance v k / m in each of m cells of a table."""
    budgets = residual_budgets(SMALL, SETS, np.array(given_weights), rho)
    assert fsum(budgets.values()) == pytest.approx(rho)
    noise = {s: residual_cost(SMALL.project(s)) / (2 * budget) for s, budget in budgets.items()}
    for table in SETS:
        for size in range(1, len(table)):
            for part in combinations(table, size):
                cells = SMALL.project(part).cells / SMALL.project(table).cells
                assert noise[part] * cells <= noise[table] * (1 + 1e-9)


@given(st.lists(st.floats(0.1, 1000), min_size=5, max_size=5), st.integers(2, 5), st.integers(2, 5))
def test_no_sum_of_a_one_way_table_is_less_certain_than_it_says(variances, size, attributes):
    """The covariance of the counts, worked out from what they are made of, is at most the stated one."""
    names = tuple("abcde"[:attributes])
    domain = Domain(names, (size,) * attributes)
    known, added = variances[:attributes], variances[::-1][:attributes]
    zero = Marginal(domain.project(("a",)), np.zeros(size))
    one_ways = tuple(
        Measurement(replace(zero, domain=domain.project((n,))), v) for n, v in zip(names, known, strict=True)
    )
    residuals = {
        (n,): Measurement(replace(zero, domain=domain.project((n,))), v)
        for n, v in zip(names, added, strict=True)
    }
    stated = one_ways_with(one_ways, residuals)[0].variance
    centre = np.eye(size) - 1 / size
    share = added[0] / (known[0] + added[0])
    precision = 1 / np.array(known)
    own = precision / precision.sum()  # weights of the sums in the total
    covariance = share**2 * known[0] * np.eye(size) + (1 - share) ** 2 * added[0] * centre
    total = size * float(own**2 @ np.array(known))
    covariance += ((1 - share) ** 2 * total + 2 * share * (1 - share) * own[0] * size * known[0]) / size**2
    assert np.linalg.eigvalsh(np.diag(stated) - covariance).min() >= -1e-9 * stated.max()


@pytest.mark.parametrize(
    "domain",
    [
        Domain(("a", "b"), (2, 2)),
        Domain(("a", "b", "c"), (2, 1, 2)),
        Domain(("a", "b", "c"), (2, 20, 200)),
        Domain(("a", "b", "c"), (2, 2, 4), (0, 0, 4)),
        Domain(tuple(f"c{i}" for i in range(20)), (2,) * 20),
    ],
    ids=["pairs alone", "one code", "many cells", "an order", "many triples"],
)
def test_no_residuals_are_asked_where_a_table_is_large_ordered_or_has_one_code(domain):
    assert residual_sets(MeasuredColumns(reference.unmerged(domain))) == ()


def test_no_residuals_are_asked_beside_structural_zeros():
    """A table with them omits rows that break a constraint; its residual has other margins."""
    domain = Domain(("a", "b", "c"), (2, 2, 2))
    zeros = StructuralZeros(((domain.project(("a", "b")), np.array([[True, False], [True, True]])),))
    assert residual_sets(MeasuredColumns(reference.unmerged(domain)))
    assert residual_sets(MeasuredColumns(reference.unmerged(domain), zeros)) == ()
