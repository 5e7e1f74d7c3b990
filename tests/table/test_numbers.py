"""Numbers that look right: heaps, spikes, tails and amounts are no further off than the noise explains.

A table of one column is asked for its fine cells once. A count of the rows below an edge of a cell sums at
most all cells, each with noise of the sigma in the ledger: the walk of these sums stays within 5.5 sigma
sqrt(cells) but for a chance of 2e-7 (reflection), and the rows drawn stay within their own bound (Dvoretzky,
Kiefer, Wolfowitz) but for as much. Within a cell numbers are drawn evenly.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pandas as pd
import pytest

from privsyn import Datetime, Numerical, PrivSyn, Schema
from privsyn.table.codec.codec import Codec

ROWS, DRAWN = 20_000, 200_000
Z = 5.5
SLIP = sqrt(log(2 / 1e-7) / (2 * DRAWN))

rng = np.random.default_rng(5)
HOURS = np.where(rng.random(ROWS) < 0.5, 40, np.clip(np.rint(rng.normal(42, 12, ROWS) / 5) * 5, 1, 99))
GAIN = np.where(rng.random(ROWS) < 0.92, 0, np.minimum(rng.lognormal(8, 1.2, ROWS), 99_999))
LOSS = np.where(rng.random(ROWS) < 0.5, -GAIN, rng.normal(0, 300, ROWS).clip(-99_999, 99_999))
CASES = {
    "heaped whole numbers": (HOURS.astype("int64"), Numerical(1, 99)),
    "a spike at zero and a long tail": (GAIN.astype("int64"), Numerical(0, 99_999)),
    "losses and gains": (np.rint(LOSS).astype("int64"), Numerical(-99_999, 99_999)),
    "skewed amounts in cents": (
        np.round(np.minimum(rng.lognormal(10.5, 0.6, ROWS), 500_000), 2),
        Numerical(0, 500_000, decimals=2),
    ),
    "a heavy tail of reals": (np.minimum(rng.pareto(1.1, ROWS), 1e6), Numerical(0.0, 1e6)),
    "tenths around zero": (
        np.round(rng.normal(5, 10, ROWS).clip(-40, 60), 1),
        Numerical(-40, 60, decimals=1),
    ),
    "a spike at each bound": (np.clip(rng.normal(50, 60, ROWS), 0, 100), Numerical(0.0, 100.0)),
}


def below(numbers, edges):
    """The share of numbers below each edge."""
    return np.searchsorted(np.sort(numbers), edges) / len(numbers)


def edges_of(column, dtype):
    codec = Codec.for_table(Schema({"x": column}), pd.DataFrame({"x": np.array([], dtype)}), fine=True)
    grid = codec.grid("x")
    half = 0.5 / grid.scale  # an edge lies between two points
    return np.append(grid.low + grid.edges[:-1] / grid.scale - half, np.inf)


def excess(numbers, drawn, column, sigma):
    """By how much the worst count below an edge is further off than the noise explains, if above 0."""
    edges = edges_of(column, numbers.dtype)
    off = np.abs(below(numbers, edges) - below(drawn, edges)).max()
    return off - Z * sigma * sqrt(len(edges)) / ROWS - SLIP


def of_cells(model):
    """The noise on the fine cells. Sums over runs of cells, asked as well, only make the counts better."""
    (found,) = (s for s in model.ledger_.spends if s.what == "one-way counts of every attribute")
    return found


@pytest.fixture(scope="module", params=CASES)
def case(request):
    numbers, column = CASES[request.param]
    model = PrivSyn(1.0, 1e-9, Schema({"x": column})).fit(pd.DataFrame({"x": numbers}))
    spend = of_cells(model)
    return numbers, column, model.sample(DRAWN)["x"], spend.sigma


def test_every_range_is_as_right_as_its_noise(case):
    numbers, column, drawn, sigma = case
    present = drawn.dropna().to_numpy(float)
    assert excess(numbers, present, column, sigma) <= 0


def test_quantiles_lie_between_those_a_little_lower_and_higher(case):
    """A quantile of the synthetic column is one of the real one, at a level off by the error of a count."""
    numbers, column, drawn, sigma = case
    edges = edges_of(column, numbers.dtype)
    slack = Z * sigma * sqrt(len(edges)) / ROWS + SLIP
    for level in (0.1, 0.25, 0.5, 0.75, 0.9):
        found = drawn.quantile(level)
        cell = np.searchsorted(edges, found, side="right")
        low, high = edges[max(cell - 1, 0)], edges[min(cell, len(edges) - 1)]
        assert below(numbers, low) - slack <= level <= below(numbers, high) + slack


def test_no_number_lies_outside_the_bounds_or_between_the_points(case):
    numbers, column, drawn, _ = case
    present = drawn.dropna()
    assert present.between(column.low, column.high).all()
    assert drawn.dtype == numbers.dtype
    if column.decimals is not None:
        assert (present.round(column.decimals) == present).all()


@pytest.mark.parametrize(
    "name", ["heaped whole numbers", "a spike at zero and a long tail", "losses and gains"]
)
def test_a_check_of_ranges_would_see_equal_intervals(name):
    """Two-sided: rows of the published algorithm, drawn evenly within 32 equal intervals, fail the bound."""
    numbers, column = CASES[name]
    grid = np.linspace(column.low, column.high + 1, 33)
    cell = np.searchsorted(grid, numbers, side="right") - 1
    even = np.floor(grid[cell] + rng.random(ROWS) * (grid[1] - grid[0]))
    assert excess(numbers, even, column, 2.7) > 0


@pytest.mark.parametrize(("value", "share"), [(40, (HOURS == 40).mean()), (50, (HOURS == 50).mean())])
def test_a_heap_keeps_its_height(value, share):
    model = PrivSyn(1.0, 1e-9, Schema({"x": Numerical(1, 99)})).fit(
        pd.DataFrame({"x": HOURS.astype("int64")})
    )
    spend = of_cells(model)
    found = (model.sample(DRAWN)["x"] == value).mean()
    assert abs(found - share) <= Z * spend.sigma / ROWS * 2 + SLIP


def test_what_is_clipped_comes_out_at_the_bounds():
    numbers, column = CASES["a spike at each bound"]
    model = PrivSyn(1.0, 1e-9, Schema({"x": column})).fit(pd.DataFrame({"x": numbers * 1.0}))
    drawn = model.sample(DRAWN)["x"]
    for bound in (column.low, column.high):
        assert abs((drawn == bound).mean() - (numbers == bound).mean()) < 0.01


def test_bounds_that_are_found_hold_every_number():
    table = pd.DataFrame({"x": CASES["skewed amounts in cents"][0]})
    model = PrivSyn(1.0, 1e-9).fit(table)
    found = model.release_.codec.schema.columns["x"]
    assert model.sample(DRAWN)["x"].dropna().between(found.low, found.high).all()


def test_days_of_a_peak_stay_days():
    days = np.datetime64("2020-01-01") + np.where(rng.random(ROWS) < 0.3, 100, rng.integers(0, 366, ROWS))
    column = Datetime("2020-01-01", "2020-12-31")
    table = pd.DataFrame({"x": pd.Series(days).astype("datetime64[s]")})
    model = PrivSyn(1.0, 1e-9, Schema({"x": column})).fit(table)
    drawn = model.sample(DRAWN)["x"].dropna()
    assert (drawn == drawn.dt.floor("D")).all()
    share = (drawn == pd.Timestamp("2020-04-10")).mean()
    spend = of_cells(model)
    assert abs(share - (table["x"] == "2020-04-10").mean()) <= 2 * Z * spend.sigma / ROWS + SLIP
