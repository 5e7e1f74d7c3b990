"""One line for a column: clipped, charged before it is read, and off by no more than its noise."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from privsyn import Ledger, mechanisms
from privsyn.mechanisms import columns
from privsyn.mechanisms.additive import DiscreteLaplace
from privsyn.mechanisms.columns import Grid, SmoothCauchy, series_of, total
from privsyn.private.spend import CHANGE

BOUNDS = {"low": 18, "high": 90}
AGES = pd.Series([31, 44, 50, 17, 99, 62] * 500, name="age")
ASKED = {
    "count": lambda column, **settings: mechanisms.count(column, **settings),
    "sum": lambda column, **settings: mechanisms.sum(column, **BOUNDS, **settings),
    "mean": lambda column, **settings: mechanisms.mean(column, **BOUNDS, **settings),
    "median": lambda column, **settings: mechanisms.median(column, **BOUNDS, **settings),
    "variance": lambda column, **settings: mechanisms.variance(column, **BOUNDS, **settings),
}
each = pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)


def test_answers_are_those_of_the_clipped_column():
    clipped = AGES.clip(18, 90)
    assert ASKED["count"](AGES, epsilon=50, seed=1) == 3000
    assert ASKED["sum"](AGES, epsilon=500, seed=1) == pytest.approx(clipped.sum(), abs=3)
    assert ASKED["mean"](AGES, epsilon=50, seed=1) == pytest.approx(clipped.mean(), abs=0.05)
    assert ASKED["median"](AGES, epsilon=1000, seed=1) == pytest.approx(44, abs=0.1)
    assert ASKED["variance"](AGES, epsilon=100, seed=1) == pytest.approx(clipped.var(ddof=0), rel=0.01)
    halves = AGES / 2
    assert mechanisms.mean(halves, low=9, high=45, epsilon=50, seed=1) == pytest.approx(
        clipped.mean() / 2, abs=0.05
    )
    assert mechanisms.median(halves, low=9, high=45, epsilon=1000, seed=1) == pytest.approx(22, abs=0.1)


@each
def test_a_question_is_charged_before_anything_is_drawn_or_refused(ask, monkeypatch):
    ledger = Ledger(epsilon=1)
    ask(AGES, epsilon=0.6, ledger=ledger)
    assert ledger.cost == pytest.approx(0.6)
    assert "age" in ledger.charges[0].question
    for kind in (DiscreteLaplace, SmoothCauchy):
        monkeypatch.setattr(kind, "release", lambda *_: pytest.fail("it was drawn"))
    with refuses("has epsilon 0.4 left"):
        ask(AGES, epsilon=0.6, ledger=ledger)
    assert ledger.cost == pytest.approx(0.6)


@each
def test_missing_cells_count_nowhere(ask):
    holed = AGES.astype(float)
    holed[::2] = np.nan
    for column in (
        holed,
        holed.astype("Int64"),
        holed.dropna(),
        holed.to_numpy(),
        list(holed.astype(object)),
    ):
        assert ask(column, epsilon=1.0, seed=1) == pytest.approx(ask(holed, epsilon=1.0, seed=1), abs=1)


@each
def test_an_empty_column_has_an_answer(ask):
    for column in (AGES[:0], pd.Series([None, None]), []):
        assert np.isfinite(ask(column, epsilon=1.0))


def test_cells_of_an_object_column_that_are_no_number_count_as_missing():
    mixed = pd.Series([31, "unknown", 44, None, 50.0], dtype=object)
    assert mechanisms.median(mixed, **BOUNDS, epsilon=1, seed=1) == mechanisms.median(
        [31.0, 44.0, 50.0], **BOUNDS, epsilon=1, seed=1
    )
    with refuses("must hold numbers"):
        mechanisms.sum(pd.Series(pd.to_datetime(["2026-01-01"])), **BOUNDS, epsilon=1)


@pytest.mark.parametrize("bounds", [(5, 5), (9, 1), (float("nan"), 1), (0, float("inf")), (1e300, 1.1e300)])
def test_bounds_that_cannot_be_are_refused(bounds):
    low, high = bounds
    for ask in (mechanisms.sum, mechanisms.mean, mechanisms.variance, mechanisms.median):
        if low != 1e300:
            with refuses():
                ask(AGES, low=low, high=high, epsilon=1)
    with refuses("too close"):
        mechanisms.sum(AGES / 2, low=1e9, high=1e9 + 1e-9 * 1e3, epsilon=1)
    ledger = Ledger(epsilon=1)
    with refuses("too far apart to be squared"):
        mechanisms.variance(AGES, low=0, high=1e160, epsilon=1, ledger=ledger)
    assert not ledger.cost


# --- sensitivities: what one record moves, over all its values and a missing one ---------------------------


def recorded(monkeypatch, ask, column, ledger):
    """The exact answers and the scale of each draw of a question."""
    draws = []
    monkeypatch.setattr(
        DiscreteLaplace, "release", lambda self, exact: draws.append((exact, self.sensitivity)) or exact
    )
    ask(column, epsilon=1, ledger=ledger)
    return draws


@pytest.mark.parametrize("neighbours", ["add or remove one record", CHANGE])
@pytest.mark.parametrize("bounds", [(18, 90), (-5, 3), (0, 1), (-1, 0), (2.5, 2.75), (100, 101)])
@pytest.mark.parametrize("name", ["count", "sum", "mean", "variance"])
def test_no_record_moves_an_answer_further_than_its_sensitivity(monkeypatch, name, bounds, neighbours):
    low, high = bounds

    def ask(column, **settings):
        if name == "count":
            return mechanisms.count(column, **settings)
        return getattr(mechanisms, name)(column, low=low, high=high, **settings)

    cells = [low, high, (low + high) / 2, low + (high - low) / 3, low - 10, high + 10, None]
    start = [low, high, None, high]
    tables = (
        [start, *([*start[:-1], cell] for cell in cells)]
        if neighbours == CHANGE
        else [start, *([*start, cell] for cell in cells)]
    )
    answers = [
        recorded(monkeypatch, ask, pd.Series(table, dtype=float), Ledger(epsilon=9, neighbours=neighbours))
        for table in tables
    ]
    pairs = (
        [(a, b) for a in answers for b in answers]
        if neighbours == CHANGE
        else [(answers[0], b) for b in answers]
    )
    widest = [0.0] * len(answers[0])
    for one, other in pairs:
        for draw, ((exact, sensitivity), (moved, same)) in enumerate(zip(one, other, strict=True)):
            assert sensitivity == same
            widest[draw] = max(widest[draw], abs(exact - moved) / sensitivity)
    assert all(0.99 < share <= 1 for share in widest)


def test_a_changed_record_costs_a_median_both_of_its_moves():
    ledger = Ledger(epsilon=1, neighbours=CHANGE)
    mechanisms.median(AGES, **BOUNDS, epsilon=1, ledger=ledger)
    assert ledger.cost == pytest.approx(1)
    assert [charge.promise.epsilon for charge in ledger.charges] == pytest.approx([0.5, 0.5])


def test_sensitivities_of_persons_are_not_claimed():
    with refuses("one record"):
        mechanisms.count(AGES, epsilon=1, ledger=Ledger(epsilon=1, neighbours="add or remove one person"))


def test_each_cell_lies_within_the_bounds_in_steps_and_sums_are_whole():
    grid = Grid.of(pd.Series([0.1]), -0.3, 0.7)
    cells = grid.cells(pd.Series([-9.0, 0.1, 0.7, np.inf, -np.inf, np.nan]))
    assert cells.min() == grid.low
    assert cells.max() == grid.high
    assert len(cells) == 5
    assert total(np.array([2**62, 2**62, 2**62, -1])) == 3 * 2**62 - 1


@pytest.mark.parametrize("name", ["sum", "mean", "median"])
def test_a_missing_cell_changes_neither_the_type_nor_the_grid_of_an_answer(name, monkeypatch):
    """A column of integers with one missing cell is one of floats: the answer must not show it."""
    grids = []
    monkeypatch.setattr(Grid, "value", lambda self, steps: grids.append(self) or float(steps * self.step))
    ask = ASKED[name]
    for column in (
        [20, 30],
        [20, 30, None],
        [True, 30],
        ["x", 30],
        np.array([20, 30]),
        np.array([20, np.nan]),
    ):
        assert type(ask(column, epsilon=1.0)) is float
    grids += [Grid.of(series_of(column), 18, 90) for column in ([20], [20, None], np.array([20]))]
    assert len({(grid.low, grid.high, grid.step) for grid in grids}) == 1


@pytest.mark.parametrize(
    "cell", [10**400, -(10**400), 2**64, "1e400", [1], {}, 1j, pd.NA, pd.NaT, Decimal("sNaN"), object()]
)
def test_no_cell_is_an_error_or_changes_how_others_are_read(cell):
    base = [1, 2**63, "7", True, 50.5]
    grid = Grid.of(series_of(base), 0, 100)
    alone, beside = grid.cells(series_of(base)), grid.cells(series_of([*base, cell]))
    assert beside[: len(alone)].tolist() == alone.tolist()
    assert len(beside) - len(alone) in (0, 1)


@pytest.mark.parametrize("cell", [Decimal("sNaN"), Decimal("NaN"), np.nan, pd.NA, pd.NaT])
def test_a_missing_cell_of_any_kind_is_not_counted_and_is_no_error(cell):
    column = [31, "x", [1], object(), Decimal(2)]
    count = partial(mechanisms.count, epsilon=1, seed=1)
    assert count([*column, cell]) == count(column) == count(pd.Series([*column, cell], dtype=object))
    assert count([*column, 5]) == count(column) + 1


def test_any_kind_of_column_is_taken():
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    for column in (
        polars.Series("age", [1, None, 3]),
        pyarrow.array([1, None, 3]),
        [1, None, 3],
        (1, None, 3),
    ):
        assert series_of(column).notna().sum() == 2
    assert columns.name_of(series_of(polars.Series("age", [1]))) == "age"


def test_noise_is_that_of_the_ledger():
    """Means with the noise of epsilon: many seeds, and the spread that the scale says."""
    means = [mechanisms.mean(AGES, **BOUNDS, epsilon=0.5, seed=seed) for seed in range(400)]
    expected = np.sqrt(2) * 36 / 0.25 / len(AGES)  # of the noisy sum; that of the number moves it little
    assert 0.8 * expected < np.std(means) < 1.4 * expected


@pytest.mark.parametrize("table", [pd.DataFrame({"age": [1]}), np.ones((2, 2)), {"age": [1]}, "age"])
@each
def test_a_table_is_no_column(ask, table):
    with refuses("give one column, such as table\\['age'\\]"):
        ask(table, epsilon=1.0)


@each
def test_a_ledger_is_a_ledger(ask):
    with refuses("ledger must be a Ledger"):
        ask(AGES, epsilon=1.0, ledger=1)
