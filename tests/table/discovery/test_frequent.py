"""Single numbers that many rows share: one noisy count a column shows them."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd
import pytest

from privsyn import Numerical, PrivSyn, Schema
from privsyn.methods.budget import FOR_ROWS, LEAST_FOR_FREQUENT, MOST_FOR_FREQUENT
from privsyn.methods.complete_schema import frequent_share
from privsyn.methods.reading import cells_of
from privsyn.private.noise_laws import GAUSSIAN, LAPLACE
from privsyn.private.run_ledger import RunLedger
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.frequent import (
    DENSER,
    FALSE_DISCOVERY_RATE,
    MOST_FOUND,
    MOST_OF_TABLE,
    MOST_POINTS,
    Frequent,
    FrequentQuestion,
    Points,
    find_frequent,
)
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.encoding.grid import FINE, Grid
from privsyn.table.encoding.steps import Heap

ROWS = 20_000
PRICE = Numerical(0, 500, decimals=2, nullable=False)


def prices(seed=0, rows=ROWS):
    """A fifth of all prices is 12.99, a tenth 9.50; the others are spread."""
    rng = np.random.default_rng(seed)
    spread = np.round(np.clip(rng.lognormal(3, 1, rows), 0.01, 499.99), 2)
    which = rng.random(rows)
    return np.where(which < 0.2, 12.99, np.where(which < 0.3, 9.5, spread))


def question(columns, dtype="float64"):
    frame = pd.DataFrame({name: pd.Series([], dtype=dtype) for name in columns})
    unknown = OpenSchema.of(Schema(columns), frame)
    return FrequentQuestion.of(unknown.lattices(unknown.fill({}, {})))


def asked_of(model):
    return [spend for spend in model.ledger_.spends if spend.what.startswith("frequent numbers of ")]


def singles(codec, name="x"):
    return [heap.offset for heap in codec.heaps.get(name, ()) if not heap.step]


def test_the_counts_of_parts_add_up():
    table, asked = pd.DataFrame({"x": prices(rows=999)}), question({"x": PRICE})
    (whole, one, two) = (asked.count(part)["x"] for part in (table, table[:100], table[100:]))
    assert np.array_equal(whole, one + two)
    assert whole.sum() == len(table)
    assert whole[1298] == (table["x"] == 12.99).sum()


def test_only_numbers_of_the_grid_between_the_bounds_are_counted():
    points = Points.between(-1.0, 1.0, 0.25)
    assert points.numbers(np.arange(points.size)).tolist() == [-0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75]
    numbers = np.array([-1.0, -0.75, 0.0, 0.3, 0.75, 0.75, 1.0, np.nan, np.inf])
    positions = points.positions(numbers, np.dtype(float))
    assert np.array_equal(
        positions, [np.nan, 0, np.nan, np.nan, 6, 6, np.nan, np.nan, np.nan], equal_nan=True
    )
    assert Points.between(0.0, 0.25, 0.25).size == 0


@pytest.mark.parametrize(
    ("column", "step"),
    [
        (PRICE, 0.01),
        (Numerical(0, 2_000, integer=True), 1.0),
        (Numerical(0, 10_000, decimals=2), 0.05),  # a million cents are too many
        (Numerical(0, 10**9, integer=True), 5_000),
        (Numerical(0, 10**6, step=1_000), 1_000),
        (Numerical(0, 500.0), None),  # reals, as long as no grid is found
        (Numerical(0, 400, integer=True), None),  # each number has a cell anyway
    ],
)
def test_the_finest_grid_of_few_enough_numbers_is_counted(column, step):
    asked = question({"x": column}).columns
    assert [points.step for _, points in asked.values()] == ([] if step is None else [pytest.approx(step)])
    assert all(0 < points.size <= MOST_POINTS for _, points in asked.values())


def test_many_columns_together_have_few_numbers():
    asked = question({f"x{j}": Numerical(0, 2_000, decimals=2) for j in range(20)}).columns
    assert len(asked) == 20
    assert sum(points.size for _, points in asked.values()) <= MOST_OF_TABLE


@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_frequent_prices_keep_their_share(delta):
    table = pd.DataFrame({"x": prices()})
    model = PrivSyn(epsilon=2.0, delta=delta, schema=Schema({"x": PRICE}), seed=0).fit(table)
    assert {*singles(model.release_.codec)} == {12.99, 9.5}
    made = model.sample(ROWS, seed=0)["x"]
    for price in (12.99, 9.5):
        assert (made == price).mean() == pytest.approx((table["x"] == price).mean(), rel=0.05)
    others = [x[~x.isin([12.99, 9.5])].sort_values() for x in (table["x"], made)]
    assert np.quantile(others[1], [0.25, 0.5, 0.75]) == pytest.approx(
        np.quantile(others[0], [0.25, 0.5, 0.75]), rel=0.1
    )


def test_a_grid_that_is_found_is_enough():
    table = pd.DataFrame({"x": prices()})
    model = PrivSyn(epsilon=2.0, delta=1e-9, schema=Schema({"x": Numerical(0.0, 500.0)}), seed=0).fit(table)
    assert {12.99, 9.5} <= {*singles(model.release_.codec)}


@pytest.mark.parametrize("parts", [1, 3])
def test_files_are_counted_as_frames_are(tmp_path, parts):
    table = pd.DataFrame({"x": prices()})
    for place in range(parts):
        table[place::parts].to_parquet(tmp_path / f"{place}.parquet")
    settings = {"epsilon": 2.0, "delta": 1e-9, "schema": Schema({"x": PRICE}), "seed": 0}
    one, other = (PrivSyn(**settings).fit(source) for source in (table, tmp_path))
    assert one.release_.codec.heaps == other.release_.codec.heaps != {}


@pytest.mark.slow
def test_noise_alone_makes_hardly_any_frequent_number():
    """One table in 100 by chance: 13 or more of 200 with a probability of 2e-7, for each law."""
    rng = np.random.default_rng(0)
    draws = {GAUSSIAN: rng.normal, LAPLACE: lambda mean, sigma, size: rng.laplace(0, sigma / sqrt(2), size)}
    for law, draw in draws.items():
        tables = ({name: draw(0, 10, 10_000) for name in "ab"} for _ in range(200))
        found = [find_frequent(seen, 10.0, law.deviations) for seen in tables]
        assert sum(map(bool, found)) < 13


def test_numbers_as_frequent_as_their_neighbours_are_none():
    counts = np.random.default_rng(0).normal(1_000, 10, 5_000)
    counts[2_000], counts[3_000] = 0.9 * DENSER * 1_000, 1.2 * DENSER * 1_000
    assert find_frequent({"x": counts}, 10.0, GAUSSIAN.deviations)["x"].tolist() == [3_000]


def test_a_column_has_a_limited_number_of_them():
    counts = np.zeros(5_000)
    counts[::50] = np.arange(100, 200)
    (found,) = find_frequent({"x": counts}, 1.0, GAUSSIAN.deviations).values()
    assert np.array_equal(found, np.arange(5_000)[::50][-MOST_FOUND:])


def test_others_that_stand_out_lower_what_a_number_needs():
    needed = float(GAUSSIAN.deviations(np.array(FALSE_DISCOVERY_RATE / 10_000)))
    alone, beside = np.zeros(10_000), np.zeros(10_000)
    alone[5_000] = beside[5_000] = 10 * needed - 1  # 200 neighbours on average have a little of it
    beside[500:4_500:400] = 100.0
    assert find_frequent({"x": alone}, 10.0, GAUSSIAN.deviations) == {}
    assert 5_000 in find_frequent({"x": beside}, 10.0, GAUSSIAN.deviations)["x"]


@pytest.mark.parametrize("rows", [None, 3])
def test_the_ledger_says_what_they_cost(rows):
    table = pd.DataFrame({"x": prices(), "y": prices(1), "id": np.arange(ROWS) // 3})
    unit = None if rows is None else "id"
    table = table if unit else table.drop(columns="id")
    schema = Schema({"x": PRICE, "y": PRICE})
    model = PrivSyn(epsilon=2.0, delta=1e-9, schema=schema, seed=0, unit=unit, rows_per_unit=rows).fit(table)
    (spend,) = asked_of(model)
    assert (spend.what, spend.answers) == ("frequent numbers of x, y", 2 * 49_999)
    assert spend.sensitivity == pytest.approx(sqrt(2))  # one row of each person
    left = model.ledger_.budget * (1 if rows is None else 1 - FOR_ROWS)
    assert LEAST_FOR_FREQUENT * 0.999 < spend.rho / left < MOST_FOR_FREQUENT * 1.001
    assert model.ledger_.epsilon(1e-9) <= 2 + 1e-9
    assert RunLedger.from_dict(model.ledger_.to_dict()) == model.ledger_
    assert {12.99, 9.5} <= {*singles(model.release_.codec)}


def test_persons_with_several_rows_have_them_counted_in_proportion():
    """Of the three rows of a person, one shows which prices are frequent; all show how frequent."""
    table = pd.DataFrame({"x": prices(), "id": np.arange(ROWS) // 3})
    settings = {"epsilon": 2.0, "delta": 1e-9, "schema": Schema({"x": PRICE}), "seed": 0}
    model = PrivSyn(**settings, unit="id", rows_per_unit=3).fit(table)
    made = model.sample(ROWS, seed=0)["x"]
    assert (made == 12.99).mean() == pytest.approx((table["x"] == 12.99).mean(), rel=0.1)


def test_they_are_looked_for_only_where_they_would_stand_out():
    schema = Schema({"x": PRICE})
    few, many = (pd.DataFrame({"x": prices(rows=rows)}) for rows in (1_000, ROWS))
    assert not asked_of(PrivSyn(epsilon=1.0, delta=1e-9, schema=schema, seed=0).fit(few))
    assert asked_of(PrivSyn(epsilon=1.0, delta=1e-9, schema=schema, seed=0).fit(many))
    model = PrivSyn(epsilon=1.0, delta=1e-9, schema=schema, seed=0)
    assert not asked_of(model.fit(iter([many[:900], many[900:]])))  # it is read once
    nothing = FrequentQuestion({})
    assert frequent_share(1e9, nothing, 0.01, GAUSSIAN) == 0


def test_more_rows_need_less_of_the_budget():
    asked = question({"x": PRICE})
    shares = [frequent_share(size, asked, 0.0166, GAUSSIAN) for size in (1e3, 1e4, 2e4, 3e4, 1e6)]
    assert shares[0] == 0 < shares[-1] == LEAST_FOR_FREQUENT
    assert shares[1:] == sorted(shares[1:], reverse=True)
    assert frequent_share(1e4, asked, 0.0166, GAUSSIAN, rows_per_unit=9) == 0


def test_frequent_numbers_have_cells_of_one_point():
    heaps = (Heap(1.0, 0.99, 0.3), Heap(0.0, 12.99, 0.0), Heap(0.0, 9.505, 0.0))
    column = Grid.exact(0, 500, decimals=2, bins=32)
    cells = Grid(**{**vars(column), "heaps": heaps}).fine()
    assert cells.frequent.tolist() == [1299]  # 9.505 is no multiple of a cent
    assert {1299, 1300} <= {*cells.edges.tolist()}
    assert cells.bins <= FINE + 3
    place = cells.encode(np.array([12.99]))
    assert cells.draw(place, np.random.default_rng(0)).tolist() == [12.99]
    reals = Grid.real(0, 500, bins=32, dtype=np.dtype(float))
    assert not Grid(**{**vars(reals), "heaps": heaps}).frequent.size


def test_counts_of_large_numbers_are_not_lost():
    """Rounded to 12 decimals, 388,605,000 becomes a little less, which is no point of the grid."""
    schema, number = Schema({"x": Numerical(0, 10**9, step=5000)}), 388_605_000
    found = Points.between(0.0, 1e9, 5000.0).numbers(np.array([number // 5000 - 1]))
    heaps = {"x": (Heap(0.0, float(found[0]), 0.0),)}
    codec = Codec.for_table(schema, pd.DataFrame({"x": [0.0]}), fine=True, heaps=heaps)
    places, rows, _ = cells_of(codec, "x", Frequent(found, np.array([70.0]), np.ones(1)))
    assert rows.tolist() == [70.0]
    assert codec.grid("x").extents[0][places].tolist() == [number]


def test_counts_of_one_row_stand_for_all_rows_of_a_person():
    """A person has one row or, half of them, two: the second row has the price as often as the first."""
    rng, one, both = np.random.default_rng(0), [], []
    for _ in range(4_000):
        first, second = rng.random((2, 1_000)) < 0.1
        second &= rng.random(1_000) < 0.5
        one.append(first.sum())
        both.append(first.sum() + second.sum())
    scaled = Frequent(np.full(4_000, 9.5), np.array(one, float), np.zeros(4_000)).scaled(1.5)
    errors = scaled.rows - np.array(both)
    # The mean is within 0.5 and the variance within a fifth: 5 and 9 standard deviations.
    assert abs(errors.mean()) < 0.5
    assert scaled.variances.mean() == pytest.approx(errors.var(), rel=0.2)
