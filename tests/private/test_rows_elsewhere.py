"""Rows of which none is here: whoever has them is asked for counts, and told the bound on each person."""

import numpy as np
import pytest

from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Grouping
from privsyn.private.contribution import Bound, WithinSquares, first_rows
from privsyn.private.rows import PersonsElsewhere, Rows, RowsElsewhere

DOMAIN = Domain(("a", "b"), (3, 2))
BLOCKS = [tuple(np.array(column, np.uint8) for column in ([0, 0, 0, 2, 1], [1, 1, 0, 1, 0], [0, 1, 2, 3, 0]))]
SETS = [("a",), ("a", "b")]
GROUPS = [Grouping((np.array([0, 1, 1]),)), Grouping((np.array([0, 1, 1]), np.array([0, 1])))]
"""Of two persons, one with four rows. The last column has the number of rows of the person before each."""


class Counter:
    """Bounds and counts the rows of persons, as a database would."""

    def first_rows(self, tables, bound):
        return tables.count(first_rows(BLOCKS, bound))

    def within_squares(self, tables, further, norm):
        return WithinSquares(DOMAIN, tables.sets, tables.grouping, further, norm).count(BLOCKS)


def walk(ask):
    return ask(BLOCKS)


@pytest.mark.parametrize("bound", [Bound(1), Bound(2), Bound(9), Bound(1, "squares"), Bound(2, "squares")])
def test_persons_elsewhere_are_counted_within_the_same_bounds(bound):
    here = Rows(DOMAIN, walk, np.inf, of_persons=True)
    there = PersonsElsewhere.of(DOMAIN, np.inf, Counter())
    for counted, expected in zip(
        there.count(SETS, bound, GROUPS), here.count(SETS, bound, GROUPS), strict=True
    ):
        np.testing.assert_array_equal(counted, expected)


def test_rows_elsewhere_are_counted_and_never_walked():
    blocks = [block[:-1] for block in BLOCKS]
    rows = RowsElsewhere.of(DOMAIN, np.inf, lambda tables: tables.count(blocks))
    expected = Rows(DOMAIN, lambda ask: ask(blocks), np.inf).count(SETS)
    for counted, exact in zip(rows.count(SETS), expected, strict=True):
        np.testing.assert_array_equal(counted, exact)
    for elsewhere in (rows, PersonsElsewhere.of(DOMAIN, np.inf, Counter())):
        with pytest.raises(ValueError, match="elsewhere"):
            elsewhere.walk(len)
