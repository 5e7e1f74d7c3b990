"""InDif on its grid: the right number, and a sensitivity that no pair of neighbouring tables exceeds."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
import reference
from hypothesis import example, given
from hypothesis import strategies as st
from reference import cells_of
from strategies import StubNoise

from privsyn.marginals.domain import Domain
from privsyn.private.indif import GRID, INDIF_SENSITIVITY, indif_on_grid
from privsyn.private.measure import PrivateTable
from privsyn.private.rows import Rows

shapes = st.tuples(st.integers(1, 4), st.integers(1, 4))
few, many = st.integers(0, 30), st.integers(0, 1000)


@st.composite
def tables(draw, cell=few):
    """A table of counts of two attributes."""
    rows, columns = draw(shapes)
    cells = draw(st.lists(cell, min_size=rows * columns, max_size=rows * columns))
    return np.array(cells, np.int64).reshape(rows, columns)


def all_tables(shape, most):
    """Every table of counts with at most so many records."""

    def fill(cells, left):
        if not cells:
            yield ()
            return
        for count in range(left + 1):
            for rest in fill(cells - 1, left - count):
                yield (count, *rest)

    for counts in fill(shape[0] * shape[1], most):
        yield np.array(counts, np.int64).reshape(shape)


def with_one_more(table, cell):
    more = table.copy()
    more[cell] += 1
    return more


@given(tables())
def test_it_is_indif_rounded_down_to_the_grid(table):
    assert indif_on_grid(table) == floor(GRID * reference.indif(table))


@given(tables(st.integers(0, 2**27)))
@example(np.diag([2**31 // 3] * 3))
@example(np.array([[2**31 - 2, 0], [0, 1]]))
@example(np.array([[2**30, 0], [0, 2**30]]))
def test_it_is_exact_for_two_thousand_million_records(table):
    assert indif_on_grid(table) == floor(GRID * reference.indif(table))


@given(tables(st.integers(0, 2**50)))
@example(np.diag([2**31] * 2))
@example(np.diag([3 * 10**9] * 4))
def test_it_is_exact_for_any_number_of_records(table):
    assert indif_on_grid(table) == floor(GRID * reference.indif(table))


@given(tables())
def test_it_does_not_matter_which_attribute_comes_first(table):
    assert indif_on_grid(table) == indif_on_grid(table.T)


@given(st.lists(st.integers(0, 9), min_size=1), st.lists(st.integers(0, 9), min_size=1))
def test_it_is_0_where_the_table_is_the_product_of_its_margins(a, b):
    assert indif_on_grid(np.multiply.outer(np.array(a), np.array(b))) == 0


def test_it_is_0_for_an_empty_table():
    assert indif_on_grid(np.zeros((2, 3), np.int64)) == 0


@pytest.mark.parametrize(("shape", "most"), [((2, 2), 12), ((2, 3), 8), ((3, 3), 5)])
def test_no_record_moves_it_further_than_its_sensitivity(shape, most):
    """All tables of fewer than `most` records, and for each all that have one more."""
    value = {table.tobytes(): indif_on_grid(table) for table in all_tables(shape, most)}
    furthest = max(
        abs(value[with_one_more(table, cell).tobytes()] - value[table.tobytes()])
        for table in all_tables(shape, most - 1)
        for cell in cells_of(shape)
    )
    assert 3 * GRID < furthest <= INDIF_SENSITIVITY


@given(tables(many), st.data())
def test_nor_does_it_in_larger_tables(table, data):
    cell = tuple(data.draw(st.integers(0, size - 1)) for size in table.shape)
    assert abs(indif_on_grid(with_one_more(table, cell)) - indif_on_grid(table)) <= INDIF_SENSITIVITY


FAMILY = [
    1,
    2,
    3,
    10,
    1000,
    10**6,
    *(2**31 + k for k in (-2, -1, 0, 1)),
    3_037_000_499,
    3_037_000_500,
    2**33,
    2**52,
]
"""Numbers of equal records, also where 64 bits are left: n^2 exceeds 2^63 from 3,037,000,500 on."""


@pytest.mark.parametrize("n", FAMILY)
def test_the_extreme_table_moves_it_by_4n_over_n_plus_1(n):
    """n copies of one pair of values, and one record with both different."""
    before, after = np.array([[n, 0], [0, 0]]), np.array([[n, 0], [0, 1]])
    assert reference.indif(after) - reference.indif(before) == Fraction(4 * n, n + 1)
    assert indif_on_grid(after) - indif_on_grid(before) == 4 * n * GRID // (n + 1)


@pytest.mark.parametrize("n", FAMILY)
@pytest.mark.parametrize("cell", list(cells_of((2, 2))))
def test_no_record_moves_the_extreme_tables_further_than_the_sensitivity(n, cell):
    """Tables of one pair of values, with and without the record that is different in both."""
    for table in (np.array([[n, 0], [0, 0]]), np.array([[n, 0], [0, 1]]), np.diag([n, n])):
        assert abs(indif_on_grid(with_one_more(table, cell)) - indif_on_grid(table)) <= INDIF_SENSITIVITY


def test_the_record_at_which_64_bits_are_full_moves_it_like_any_other():
    """n times InDif of two equal values is nearly n^2: below 2^63 without this record, above it with it."""
    table = np.diag([1_518_500_249, 1_518_500_250])
    for cell in cells_of((2, 2)):
        assert abs(indif_on_grid(with_one_more(table, cell)) - indif_on_grid(table)) <= INDIF_SENSITIVITY


@pytest.mark.parametrize("n", [10**9, 4 * 10**9, 2**40])
def test_the_question_releases_it_whatever_the_number_of_records(n):
    """The published method asks for it; here of a table that a walk over rows would have counted."""
    for extra in (0, 1):
        counts = np.array([[n, 0], [0, extra]])
        rows = Rows(Domain(("a", "b"), (2, 2)), lambda ask, counts=counts: [counts], np.inf)
        asked = PrivateTable(rows, StubNoise()).indifs(1e9)
        assert asked["a", "b"] == indif_on_grid(counts) / GRID


def test_the_sensitivity_is_slack_by_no_more_than_the_grid():
    """It is one step above what the extreme tables approach."""
    nearly = indif_on_grid(np.array([[10**6, 0], [0, 1]]))
    assert nearly == 4 * GRID - 1
    assert INDIF_SENSITIVITY <= 4 * GRID + 1
