"""Spreads: of a column of an order and its gap, the one that spreads less is counted."""

from itertools import repeat
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import StubNoise

from privsyn import Categorical, Datetime, Numerical, PrivSyn, Schema
from privsyn.methods.budget import FOR_SPREADS
from privsyn.methods.complete_schema import discover
from privsyn.private.find_values import Finder
from privsyn.settings import Settings
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.discovery.spreads import SpreadQuestion
from privsyn.table.io.read_in_batches import read_in_batches

AMOUNTS = Schema(
    {"loan": Numerical(0, 40_000, integer=True), "paid": Numerical(0, 40_000, integer=True)},
    constraints=["paid <= loan"],
)


def loans(rows):
    """Loans, of most of which little is paid back: the gap is as wide as the loan."""
    rng = np.random.default_rng(0)
    loan = rng.choice([5000, 10_000, 20_000, 40_000], rows)
    return pd.DataFrame({"loan": loan, "paid": (loan * rng.beta(1, 9, rows)).astype(int)})


def prices(rows):
    """The lowest and the highest price of a day: the gap is far narrower than both."""
    rng = np.random.default_rng(0)
    low = rng.integers(1000, 30_000, rows)
    return pd.DataFrame({"loan": low + rng.poisson(40, rows), "paid": low})


@pytest.mark.parametrize(
    ("table", "counted", "order"),
    [(loans, ("loan", "paid"), "paid <= loan"), (prices, ("paid", "loan - paid"), "paid <= loan")],
)
@pytest.mark.parametrize("bounds", [(0, 40_000), (None, None)])
def test_the_narrower_of_a_column_and_its_gap_is_counted(table, counted, order, bounds):
    number = Numerical(*bounds, integer=True)
    schema = Schema({"loan": number, "paid": number}, constraints=[order])
    private = table(20_000)
    model = PrivSyn(1.0, 1e-9, schema, seed=1).fit(private)
    assert any(spend.what.startswith("spreads of ") for spend in model.ledger_.spends)
    assert set(model.release_.codec.domain.names) == set(counted)
    rows = model.sample(20_000, seed=1)
    assert (rows["paid"] <= rows["loan"]).all()
    gap, real = ((frame["loan"] - frame["paid"]).astype(float) for frame in (rows, private))
    assert gap.mean() == pytest.approx(real.mean(), rel=0.1)
    assert rows["paid"].mean() == pytest.approx(private["paid"].mean(), rel=0.1)


@pytest.mark.parametrize("decimals", [0, None])
def test_a_gap_that_is_0_in_many_rows_is_counted(decimals):
    """Of reals no two numbers were equal, and of whole numbers hardly any."""
    rng, rows = np.random.default_rng(1), 10_000
    private = loans(rows).astype(float)
    private["loan"] = (private["loan"] - rng.uniform(0, 99, rows)).round(decimals or 9)
    paid = (private["loan"] * rng.beta(1, 9, rows)).round(decimals or 9)
    private["paid"] = np.where(np.arange(rows) < 0.4 * rows, private["loan"], paid)
    number = Numerical(0, 40_000, decimals=decimals, nullable=False)
    schema = Schema({"loan": number, "paid": number}, constraints=["paid <= loan"])
    model = PrivSyn(1.0, 1e-9, schema, seed=1).fit(private)
    assert "loan - paid" in model.release_.codec.domain.names
    sample = model.sample(rows, seed=1)
    assert (sample["paid"] <= sample["loan"]).all()
    assert (sample["paid"] == sample["loan"]).mean() == pytest.approx(0.4, abs=0.03)
    assert sample.mean().to_list() == pytest.approx(private.mean().to_list(), rel=0.1)


@pytest.mark.parametrize(
    ("tied", "strict", "counted"), [(400, False, False), (50, False, True), (400, True, True)]
)
def test_only_many_rows_without_a_gap_change_which_is_counted(tied, strict, counted):
    rule = "paid < loan" if strict else "paid <= loan"
    question = SpreadQuestion.of(Schema(AMOUNTS.columns, constraints=[rule]), {})
    [(name, gap)] = question.columns.items()
    wide, narrow = np.zeros((2, question.cells[name].size), np.int64)
    wide[[0, 20, 55]] = tied, 500 - tied // 2, 500 - tied // 2
    narrow[[2, 3]] = 500
    assert (name in question.without_gaps({name: (narrow, 5.0), gap.name: (wide, 5.0)})) == counted


def test_dates_keep_their_gap_and_amounts_do_not_where_noise_hides_both():
    dates = Datetime("2020-01-01", "2024-12-31")
    columns = {**AMOUNTS.columns, "start": dates, "end": dates, "sex": Categorical(["F", "M"])}
    schema = Schema(columns, constraints=["paid <= loan", "start <= end"])
    question = SpreadQuestion.of(schema, {})
    assert set(question.without_gaps({})) == set(question.by_default) == {"paid", "loan"}
    noise = {
        name: (np.zeros(9, np.int64), 100.0)
        for gap in question.columns.values()
        for name in (gap.column, gap.name)
    }
    assert set(question.without_gaps(noise)) == {"paid", "loan"}


numbers = st.one_of(st.floats(), st.none())


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=9), st.data())
def test_a_row_less_moves_each_count_of_spreads_by_one_in_one_cell(rows, data):
    columns = {"low": Numerical(-9.0, 1e9), "high": Numerical(0.0, 1e12)}
    table = pd.DataFrame(rows, columns=["low", "high"], dtype=float)
    schema = OpenSchema.of(Schema(columns, constraints=["low <= high"]), table).schema
    question = SpreadQuestion.of(schema, dict(table.dtypes))
    assert question.columns
    less = table.drop(index=data.draw(st.sampled_from(range(len(table)))))
    more, fewer = question.count(table), question.count(less)
    assert more.keys() == fewer.keys()
    for name in more:
        assert np.abs(more[name] - fewer[name]).sum() <= 1


def test_orders_in_which_rules_across_tables_name_a_column_are_left_as_gaps():
    assert SpreadQuestion.of(AMOUNTS, {}, compared=("loan",)).without_gaps({}) == ()


@pytest.mark.parametrize("rows_per_unit", [1, 3])
def test_the_question_is_charged_for_all_rows_of_a_person_and_leaves_with_noise(rows_per_unit, monkeypatch):
    """Each count has the 7 of the noise in it, where the columns are chosen."""
    seen, without_gaps = [], SpreadQuestion.without_gaps
    monkeypatch.setattr(
        SpreadQuestion,
        "without_gaps",
        lambda question, released: seen.append(released) or without_gaps(question, released),
    )
    columns = {name: Numerical(0, 99, integer=True) for name in ("low", "mid", "high")}
    table = pd.DataFrame(dict.fromkeys(columns, [3] * 200))
    open_schema = OpenSchema.of(Schema(columns, constraints=["low <= mid <= high"]), table)
    finder = Finder(StubNoise(repeat(7)), rows_per_unit)
    found = discover(open_schema, read_in_batches(table), Settings(1.0), rho=10.0, delta=0.0, finder=finder)
    (spend,) = finder.log.spends
    assert spend.rho == pytest.approx(10 * FOR_SPREADS)
    assert found.share == FOR_SPREADS
    (released,) = seen
    assert spend.what == f"spreads of {', '.join(released)}"
    assert len(released) == 4
    assert spend.sensitivity == rows_per_unit * sqrt(4)
    for noisy, _ in released.values():
        assert noisy.min() == 7
        assert noisy.sum() == len(table) + 7 * noisy.size
