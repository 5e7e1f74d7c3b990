"""A row has codes that do not pass what is above it, and is moved no further than needed."""

from itertools import pairwise

import numpy as np
import pytest

from privsyn import Numerical, Schema
from privsyn.table.database.rules import ColumnComparison
from privsyn.table.encoding.grid import Grid
from privsyn.table.enforcement.repair import Repair
from privsyn.table.schema.draws import Cells, DrawnRows

GRID = Grid.exact(0, 19, decimals=0, bins=20)
GROUPS = np.append(np.arange(20) // 4, 5)  # five groups of four numbers, and missing cells
POINTS = np.append(np.arange(20.0), np.nan)
CELLS = Cells(POINTS, POINTS, GRID, GROUPS, np.ones(21))
KEEPS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def rule_of(sign):
    column = Numerical(0, 19, integer=True)
    return ColumnComparison((None, "x"), sign, ("a", "x")).enforced(column, column)


@pytest.mark.parametrize("sign", KEEPS)
def test_a_code_is_allowed_if_one_of_its_numbers_keeps_the_rule(sign):
    above = np.append(np.arange(-1.0, 21.0, 0.5), np.nan)
    kinds, possible = rule_of(sign).allowed(CELLS, above)
    for row, number in enumerate(above.tolist()):
        keeping = KEEPS[sign](np.arange(20), number).reshape(5, 4).any(axis=1) | np.isnan(number)
        assert possible[:, kinds[row]].tolist() == [*keeping, True]


@pytest.mark.parametrize("sign", KEEPS)
def test_a_number_stays_in_its_group_or_moves_to_the_nearest_one(sign):
    rng = np.random.default_rng(0)
    own, above = (of.ravel().astype(float) for of in np.meshgrid(np.arange(20), np.arange(20)))
    numbers = {"x": own.copy(), "a.x": above}
    rows = DrawnRows(numbers, {"x": own.astype(int)}, {"x": CELLS}, frozenset({"a.x"}))
    broken = np.flatnonzero(~KEEPS[sign](own, above))
    rule_of(sign).repair(rows, broken, rng)
    for row in broken.tolist():
        keeping = np.flatnonzero(KEEPS[sign](np.arange(20), above[row]))
        if not len(keeping):
            continue
        assert numbers["x"][row] in keeping
        inside = keeping[keeping // 4 == own[row] // 4]
        if len(inside):
            assert numbers["x"][row] in inside
        else:
            nearest = keeping[np.argmin(np.abs(keeping - own[row]))]
            assert numbers["x"][row] == nearest  # each number is a cell of its own
    kept = np.setdiff1d(np.arange(400), broken)
    assert (numbers["x"][kept] == own[kept]).all()


def test_the_search_for_a_row_begins_with_what_is_fixed():
    """Columns after seven others were tried last, and the search gave up."""
    names = [*"abcdefg", "known"]
    columns = {name: Numerical(0, 20, integer=True, nullable=False) for name in names}
    chain = [f"{low} <= {high}" for low, high in pairwise(names[:-1])]
    repair = Repair.of(columns, Schema(columns, constraints=["known <= a", *chain]).constraints)
    assert repair.example(tuple(names), {"known": 20.0}, {}) == dict.fromkeys(names, 20.0)
