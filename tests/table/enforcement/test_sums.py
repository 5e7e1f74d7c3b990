"""Sums: the bounds of a sum are kept, and a difference of large numbers has its own counts."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privsyn import Categorical, Datetime, Elapsed, InputError, Numerical, PrivSyn, Schema, Total, load
from privsyn.table.drafting.draft import check_schema
from privsyn.table.enforcement.sum_within import SumWithin
from privsyn.table.enforcement.total import solved_for_widest
from privsyn.table.schema.draws import Cells, DrawnRows
from privsyn.table.schema.yaml_file import from_plain, to_plain


def accounts(rows):
    """Firms, whose profit is the small difference of large numbers."""
    rng = np.random.default_rng(0)
    revenue = np.minimum(rng.lognormal(10, 0.8, rows), 400_000).round()
    profit = (revenue * np.clip(rng.normal(0.06, 0.08, rows), -0.3, 0.5)).round()
    table = pd.DataFrame({"revenue": revenue, "costs": revenue - profit, "profit": profit}).astype("int64")
    return table.assign(kind=np.where(profit > 2000, "good", "bad"))


@pytest.mark.parametrize("declared", [True, False])
def test_a_difference_of_large_numbers_keeps_its_spread(declared, tmp_path):
    bounds = {"revenue": (0, 400_000), "costs": (0, 500_000), "profit": (-60_000, 100_000)}
    columns = {
        name: Numerical(*(ends if declared else (None, None)), integer=True) for name, ends in bounds.items()
    }
    schema = Schema(
        {**columns, "kind": Categorical(["good", "bad"])}, constraints=["profit == revenue - costs"]
    )
    private = accounts(8000)
    model = PrivSyn(1.0, 1e-9, schema, seed=1).fit(private)
    assert "profit" in model.release_.codec.domain.names
    model.save(tmp_path / "model")
    rows = load(tmp_path / "model").sample(8000, seed=1)
    assert (rows["profit"] == rows["revenue"] - rows["costs"]).all()
    assert 0.75 < rows["profit"].std() / private["profit"].std() < 1.35
    assert rows["profit"].mean() == pytest.approx(private["profit"].mean(), rel=0.25)
    for name, (low, high) in bounds.items() if declared else ():
        assert rows[name].between(low, high).all()


@pytest.mark.parametrize("open_bounds", [True, False])
def test_days_between_two_dates_are_counted_not_the_later_date(open_bounds):
    rng = np.random.default_rng(0)
    admitted = pd.Timestamp("2018-01-01") + pd.to_timedelta(rng.integers(0, 2000, 6000), "D")
    days = rng.poisson(6, 6000)
    private = pd.DataFrame(
        {"admitted": admitted, "discharged": admitted + pd.to_timedelta(days, "D"), "days": days}
    )
    date = Datetime(nullable=False) if open_bounds else Datetime("2018-01-01", "2023-12-31", nullable=False)
    number = Numerical(integer=True) if open_bounds else Numerical(0, 100, integer=True)
    schema = Schema(
        {"admitted": date, "discharged": date, "days": number}, constraints=["days == discharged - admitted"]
    )
    rows = PrivSyn(1.0, 1e-9, schema, seed=1).fit(private).sample(6000, seed=1)
    assert (rows["days"] == (rows["discharged"] - rows["admitted"]).dt.days).all()
    assert (rows["days"] >= 0).all()
    assert rows["days"].mean() == pytest.approx(6, abs=0.6)


def test_a_sum_stays_in_bounds_that_are_narrower_than_those_of_its_parts():
    rng = np.random.default_rng(0)
    gross = rng.integers(0, 1000, 4000)
    private = pd.DataFrame(
        {"gross": gross, "tax": (gross * 0.2).astype(int), "rate": rng.integers(0, 3, 4000)}
    )
    private.loc[private["tax"] >= 200, "rate"] = 1
    private["net"] = private["gross"] - private["tax"]
    columns = {"gross": Numerical(0, 999, integer=True), "tax": Numerical(0, 999, integer=True)}
    columns |= {"net": Numerical(0, 900, integer=True), "rate": Categorical([0, 1, 2])}
    rules = ["net == gross - tax", "tax >= 200 implies rate >= 1"]  # the second keeps the sum as it is
    rows = PrivSyn(1.0, 1e-9, Schema(columns, constraints=rules), seed=1).fit(private).sample(4000, seed=1)
    assert (rows["net"] == rows["gross"] - rows["tax"]).all()
    assert rows["net"].between(0, 900).all()


def test_the_target_and_important_columns_are_counted_whatever_their_bounds():
    bounds = {"revenue": (0, 400_000), "costs": (0, 500_000), "profit": (-60_000, 100_000)}
    columns = {name: Numerical(*ends, integer=True) for name, ends in bounds.items()}
    schema = Schema(columns, constraints=["profit == revenue - costs"])
    private = accounts(2000).drop(columns="kind")
    model = PrivSyn(1.0, 1e-9, schema, target="costs", seed=1).fit(private)
    assert model.release_.codec.domain.names == ("costs", "profit")


def test_a_sum_that_no_parts_can_reach_is_refused():
    columns = {"net": Numerical(0, 9), "gross": Numerical(100, 700), "tax": Numerical(0, 50)}
    with pytest.raises(InputError, match=r"by its parts 'net' goes from 50.0 to 700.0, beyond its bounds"):
        Schema(columns, constraints=["net == gross - tax"])


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20),
    st.sampled_from([(1, 1), (1, -1), (-1, -1), (2, -1)]),
    st.tuples(st.integers(-20, 20), st.integers(0, 20)),
    st.integers(0, 99),
)
def test_a_row_is_repaired_within_its_groups_if_they_allow_the_sum(rows, factors, ends, seed):
    rule = SumWithin(dict(zip("ab", factors, strict=True)), ends[0], ends[0] + ends[1])
    values = np.arange(10.0)
    cells = Cells(values, values, None, np.repeat([0, 1], 5), np.full(10, 0.2))
    numbers = {
        name: np.array(column, float) for name, column in zip("ab", zip(*rows, strict=True), strict=True)
    }
    codes = {name: column.astype(int) for name, column in numbers.items()}
    possible = rule.possible([cells, cells])[codes["a"] // 5, codes["b"] // 5]
    holding = rule.holds(numbers)
    assert possible[holding].all()
    drawn = DrawnRows(
        {name: column.copy() for name, column in numbers.items()}, codes, {"a": cells, "b": cells}
    )
    broken = np.flatnonzero(~holding & possible)
    rule.repair(drawn, broken, np.random.default_rng(seed))
    assert all((drawn.numbers[name] // 5 == numbers[name] // 5).all() for name in "ab")
    assert rule.holds(drawn.numbers)[broken].all() or factors == (2, -1)


def stays(days_dtype, rows=2000):
    """Dates of a year, and the days from one to the other, which may be below 0."""
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(60, 300, rows), "D")
    days = np.clip(np.rint(rng.normal(5, 12, rows)), -60, 60).astype(int)
    end = start + pd.to_timedelta(days, "D")
    return pd.DataFrame({"start": start, "end": end, "days": days.astype(days_dtype)})


def test_days_with_narrow_bounds_are_counted_themselves_not_as_the_difference_of_two_noisy_dates():
    year = Datetime("2020-01-01", "2020-12-31", nullable=False)
    table = stays("int8")
    columns = {"start": year, "end": year, "days": Numerical(-60, 60, integer=True, nullable=False)}
    schema = Schema(columns, constraints=[Elapsed("days", "start", "end")])
    model = PrivSyn(1.0, 1e-9, schema, seed=0).fit(table)
    assert model.release_.codec.domain.names == ("start", "days")
    rows = model.sample(2000, seed=0)
    assert rows["days"].between(-60, 60).all()
    assert ((rows["end"] - rows["start"]).dt.days == rows["days"]).all()
    assert rows["days"].std() == pytest.approx(table["days"].std(), rel=0.1)
    assert rows["days"].mean() == pytest.approx(table["days"].mean(), abs=1.5)


def test_a_narrow_type_of_days_keeps_the_dates_that_are_found():
    """Their bounds once fell back to a month in 1970, because the days might not fit into 8 bits."""
    table = stays("int8")
    days = Numerical(integer=True, nullable=False)
    columns = {"start": Datetime(nullable=False), "end": Datetime(nullable=False), "days": days}
    schema = Schema(columns, constraints=["days == days(end - start)"])
    rows = PrivSyn(2.0, 1e-6, schema, seed=0).fit(table).sample(2000, seed=0)
    assert rows["start"].dt.year.eq(2020).all()
    assert rows["start"].dt.day_of_year.std() > 40
    assert ((rows["end"] - rows["start"]).dt.days == rows["days"]).all()


def test_minutes_keep_bounds_that_are_narrower_than_the_dates_allow():
    rng = np.random.default_rng(0)
    seen = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 86_400, 1000), "s")
    left = seen + pd.to_timedelta(rng.integers(-600, 3600, 1000), "s")
    minutes = (left - seen) // pd.Timedelta("1min")
    table = pd.DataFrame({"seen": seen, "left": left, "wait": np.asarray(minutes, np.int64)})
    day = Datetime("2023-12-31 00:00", "2024-01-03 00:00", nullable=False)
    wait = Numerical(-10, 60, integer=True, nullable=False)
    columns = {"seen": day, "left": day, "wait": wait}
    schema = Schema(columns, constraints=["wait == minutes(left - seen)"])
    rows = PrivSyn(3.0, 1e-6, schema, seed=0).fit(table).sample(500, seed=0)
    assert rows["wait"].between(-10, 60).all()
    assert ((rows["left"] - rows["seen"]).dt.total_seconds() // 60 == rows["wait"]).all()


@pytest.mark.parametrize("decimals", [None, 3])
def test_shares_add_up_to_one_in_every_row(decimals):
    """Rows of shares added up to .44 to 1.76, and no rule could say that they are shares."""
    shares = np.random.default_rng(0).dirichlet([4, 2, 3], 4000)
    table = pd.DataFrame(shares[:, :2], columns=["food", "rent"]).round(decimals or 9)
    table["rest"] = (1 - table["food"] - table["rent"]).round(decimals or 9)
    column = Numerical(0, 1, decimals=decimals, nullable=False)
    schema = Schema(dict.fromkeys(table, column), constraints=["rest == 1 - food - rent"])
    assert schema.constraints == (Total("rest", {"food": -1, "rent": -1}, constant=1),)
    assert from_plain(to_plain(schema)) == schema
    assert check_schema(table, schema) == ["every cell fits", "every row keeps every constraint"]
    sample = PrivSyn(2.0, 1e-9, schema, seed=0).fit(table).sample(4000, seed=0)
    assert sample.sum(axis=1).to_numpy() == pytest.approx(1, abs=1e-6)
    assert sample.min().min() >= -1e-6
    assert sample.mean().to_list() == pytest.approx(table.mean().to_list(), abs=0.03)


def test_a_sum_with_a_number_is_solved_for_its_widest_column():
    columns = {"net": Numerical(0, 90, integer=True), "gross": Numerical(10, 1000, integer=True)}
    total = Total("net", {"gross": 1}, constant=-10)
    widths, complete = {"net": 90, "gross": 990}, dict.fromkeys(columns, False)
    solved = solved_for_widest(total, columns, complete, widths, total.computable)
    assert solved == Total("gross", {"net": 1}, constant=10)
    assert solved.computation(columns).make({"net": np.array([5.0])}).tolist() == [15.0]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("days == end - start + 1", "a sum of dates has no constant"),
        ("end == start + 3", "a sum of dates has no constant"),
    ],
)
def test_a_number_is_no_part_of_a_sum_of_dates(rule, words):
    date = Datetime("2024-01-01", "2024-12-31")
    with pytest.raises(InputError, match=words):
        Schema({"start": date, "end": date, "days": Numerical(integer=True)}, constraints=[rule])
