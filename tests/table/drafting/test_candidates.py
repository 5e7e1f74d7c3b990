"""Few rows rule out most pairs of columns, and never one that all rows would confirm."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from privsyn.table.drafting.candidates import Drivers, LookUps, driver, possible_sums
from privsyn.table.inferred.ranks import MOST_COLUMNS, Order

SEEDS = range(20)


def determines(one, other):
    """Slow twin: each code has one value, and both columns have the same gaps."""
    same_gaps = ((one < 0) == (other < 0)).all()
    return same_gaps and all(len(set(other[one == code])) == 1 for code in set(one))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_column_that_determines_another_is_a_candidate(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 300))
    codes = []
    for _ in range(12):
        kind = rng.integers(4) if codes else 0
        if kind == 0:  # often with a value of very few rows
            size = int(rng.integers(1, 50))
            column = pd.factorize(rng.choice(size, n, p=rng.dirichlet(np.full(size, 0.1))))[0]
        elif kind == 1:
            column = codes[-1] // 2
        elif kind == 2:
            column = np.where(rng.random(n) < 0.1, -1, codes[-1])
        else:
            column = codes[-1]
        codes.append(pd.factorize(column, use_na_sentinel=False)[0] if column.min() >= 0 else column)
    look_ups = LookUps(codes)
    found = {(one, other) for other in range(12) for one in look_ups.deciding(other).tolist()}
    pairs = combinations(range(12), 2)
    wanted = {p for pair in pairs for p in (pair, pair[::-1]) if determines(codes[p[0]], codes[p[1]])}
    assert wanted <= found


def test_independent_columns_are_no_candidates():
    rng = np.random.default_rng(0)
    codes = [(rng.random(5000) < share).astype(np.int64) for share in rng.uniform(0.01, 0.99, 200)]
    look_ups = LookUps(codes)
    assert sum(len(look_ups.deciding(place)) for place in range(200)) < 5  # of 39,800


@pytest.mark.parametrize("seed", SEEDS)
def test_a_column_that_decides_where_cells_are_missing_is_a_candidate(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 400))
    numbers = rng.integers(0, 40, (3, n)).astype(float)
    numbers[0, rng.random(n) < 0.2] = np.nan
    listed = rng.integers(0, rng.integers(2, 30), (3, n))
    listed[0, rng.random(n) < 0.2] = -1
    known = [(f"n{i}", pd.factorize(row), row) for i, row in enumerate(numbers)]
    known += [(f"c{i}", (row, list(range(row.max() + 1))), None) for i, row in enumerate(listed)]
    drivers = Drivers(known)
    for rows in (numbers[1] < 15, numbers[0] > 30, numbers[0] > 38, listed[1] == 1, listed[0] == 0):
        for missing in (rows, rows | (rng.random(n) < 0.3)):
            if missing.any():
                wanted = [each for each in known if driver(missing, [each])]
                names = [each[0] for each in drivers.candidates_for(missing)]
                assert [each[0] for each in wanted if each[0] not in names] == []
                assert driver(missing, drivers.candidates_for(missing)) == driver(missing, known)


def test_columns_that_decide_nothing_are_no_candidates():
    rng = np.random.default_rng(0)
    known = [(f"c{i}", (rng.integers(0, 8, 5000), list(range(8))), None) for i in range(100)]
    known += [
        (f"n{i}", (np.arange(5000), list(range(5000))), row) for i, row in enumerate(rng.random((100, 5000)))
    ]
    assert Drivers(known).candidates_for(rng.random(5000) < 0.5) == []


def test_all_cells_may_be_missing():
    known = [("c", (np.array([0, 1] * 50), [0, 1]), None)]
    assert Drivers(known).candidates_for(np.ones(100, bool)) == known


@pytest.mark.parametrize("seed", SEEDS)
def test_every_sum_is_a_candidate(seed):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(0, 10.0 ** rng.integers(-3, 9), (12, 50))
    for k in range(4, 12, 2):
        i, j = rng.choice(k, 2, replace=False)
        numbers[k] = (numbers[i] + numbers[j]) * (1 + 5e-7)
    numbers[:, rng.random(50) < 0.2] = np.nan
    numbers[3, 0] = np.inf
    found = set(possible_sums(numbers, 1e-6))
    size, rest = np.abs(numbers), set(range(12))
    for i, j in combinations(range(12), 2):
        for k in rest - {i, j}:
            off = np.abs(numbers[i] + numbers[j] - numbers[k]) > 1e-6 * (size[i] + size[j] + size[k])
            if not off.any() and not np.isinf(numbers[[i, j, k]]).any():
                assert (i, j, k) in found
    assert len(found) < 30


def test_of_very_many_columns_of_numbers_some_are_compared():
    rng = np.random.default_rng(0)
    size = rng.integers(0, 9, 400)
    columns = {f"n{j}": size + rng.integers(0, 2, 400) for j in range(MOST_COLUMNS + 20)}
    order = Order(pd.DataFrame({**columns, "code": (size * 5 + 2) % 9}))
    assert [order.is_code(name) for name in ("n0", "n1", "code")] == [False, False, True]
