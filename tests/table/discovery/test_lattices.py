"""Grids and heaps that the schema does not give: one noisy count a column shows them."""

from __future__ import annotations

from itertools import pairwise, product
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from table.discovery.test_frequent import question as question_of_frequent

from privsyn import Categorical, Datetime, Increasing, Numerical, PrivSyn, Schema, Time
from privsyn.methods.budget import FOR_LATTICES, FOR_ROWS
from privsyn.private.run_ledger import RunLedger
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.lattices import grid_of, heaps_of, likely_grids
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.encoding.steps import NUMBERS, TIMES, Heap, Lattice

ROWS = 20_000


def fitted(column, cells, epsilon=1.0, **settings):
    table = pd.DataFrame({"x": cells})
    schema = None if column is None else Schema({"x": column})
    return PrivSyn(epsilon=epsilon, delta=1e-9, schema=schema, seed=0, **settings).fit(table)


def question(columns, dtypes, constraints=()):
    frame = pd.DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in dtypes.items()})
    unknown = OpenSchema.of(Schema(columns, constraints=constraints), frame)
    return unknown.lattices(unknown.fill({}, {}))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("frequent", [False, True], ids=["grids", "frequent numbers"])
def test_a_row_more_moves_one_count_by_one(frequent, dtype):
    if frequent:
        asked = question_of_frequent({"x": Numerical(-500, 500, decimals=2)}, dtype)
    else:
        asked = question({"x": Numerical(-2e6, 2e6)}, {"x": dtype})
    moves = set()
    for numbers in product((np.nan, 0.0, 1.5, -7.0, 1e300, 0.99), repeat=2):
        for added in (np.nan, 0.0, 5.0, -1e300, np.inf, 0.1 + 0.2, 1 / 3, 500.0, 499.99):
            with np.errstate(over="ignore"):
                more, fewer = (
                    asked.count(pd.DataFrame({"x": np.array(cells, dtype)}))["x"]
                    for cells in ([*numbers, added], numbers)
                )
            moves.add((int(np.abs(more - fewer).max()), int(np.abs(more - fewer).sum())))
    assert moves == {(0, 0), (1, 1)}


def test_the_counts_of_parts_add_up():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"x": np.round(rng.gamma(2, 50, 999), 1), "t": pd.to_datetime(rng.integers(0, 10**9, 999), unit="s")}
    )
    columns = {"x": Numerical(0.0, 900.0), "t": Datetime("1970-01-01", "2005-01-01", unit="s")}
    asked = question(columns, table.dtypes.to_dict())
    whole, parts = asked.count(table), [asked.count(table[:100]), asked.count(table[100:])]
    assert whole.keys() == columns.keys()
    for name, counts in whole.items():
        assert np.array_equal(counts, parts[0][name] + parts[1][name])
        assert counts.sum() == np.count_nonzero(table[name].astype("int64") if name == "t" else table[name])


@pytest.mark.parametrize("listed", [NUMBERS, TIMES])
def test_of_two_lattices_the_later_holds_the_earlier(listed):
    nested = [lattice for lattice in listed if not lattice.offset]
    assert all(one.within(other) and not other.within(one) for one, other in pairwise(nested))


@pytest.mark.parametrize(
    ("column", "dtype", "is_asked"),
    [
        (Numerical(0, 1e6), "float64", True),
        (Numerical(0, 1_000_000), "int64", True),
        (Numerical(0, 500), "int64", False),
        (Numerical(0, 500, integer=True), "float64", False),
        (Numerical(0, 1e6, step=10_000), "float64", False),
        (Numerical(0, 9, decimals=1), "float64", False),
        (Numerical(), "int64", False),
        (Datetime("2015-01-01 00:00", "2015-02-01 08:00"), "datetime64[ns]", True),
        (Datetime("2015-01-01", "2020-01-01"), "datetime64[ns]", False),
        (Datetime("2015-01-01", "2015-01-03", step="1h"), "datetime64[ns]", False),
        (Time(), "object", True),
        (Time(unit="h"), "object", False),
        (Categorical([1.5, 2.5]), "float64", False),
    ],
)
def test_a_grid_is_asked_for_only_where_it_can_matter(column, dtype, is_asked):
    assert bool(question({"x": column}, {"x": dtype}).columns) is is_asked


def test_nothing_is_asked_of_a_table_without_such_columns():
    model = fitted(Numerical(0, 90), np.arange(999) % 90)
    assert not any("grids" in spend.what for spend in model.ledger_.spends)


@pytest.mark.parametrize("rows", [None, 3])
def test_the_ledger_says_what_the_grids_cost(rows):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.random(999), "y": rng.random(999), "id": np.arange(999) // 3})
    schema = Schema({"x": Numerical(0.0, 1.0), "y": Numerical(0.0, 1.0)})
    if rows is None:
        table = table.drop(columns="id")
    unit = None if rows is None else "id"
    model = PrivSyn(epsilon=1.0, delta=1e-9, schema=schema, seed=0, unit=unit, rows_per_unit=rows).fit(table)
    (spend,) = (spend for spend in model.ledger_.spends if spend.what == "grids of x, y")
    assert spend.sensitivity == pytest.approx((model.ledger_.rows_per_unit or 1) * sqrt(2))
    left = model.ledger_.budget * (1 if rows is None else 1 - FOR_ROWS)
    assert spend.rho == pytest.approx(FOR_LATTICES * left, rel=1e-6)
    assert model.ledger_.epsilon(1e-9) <= 1 + 1e-9  # the parts of the budget are rounded; see MARGIN
    assert RunLedger.from_dict(model.ledger_.to_dict()) == model.ledger_


def test_a_table_that_is_read_once_is_not_asked():
    table = pd.DataFrame({"x": np.arange(900.0)})
    model = PrivSyn(epsilon=1.0, delta=1e-9, schema=Schema({"x": Numerical(0.0, 900.0)}), seed=0)
    model.fit(iter([table[:400], table[400:]]))
    assert not any("grids" in spend.what for spend in model.ledger_.spends)


def test_multiples_of_10000_are_kept_without_a_step():
    rng = np.random.default_rng(1)
    pay = 1e4 * np.clip(np.rint(rng.lognormal(3, 0.6, ROWS)), 0, 100)
    for column in (Numerical(0.0, 1e6), None):
        sample = fitted(column, pay).sample(seed=0)["x"].dropna()
        assert (sample % 1e4 == 0).mean() >= 0.95


@pytest.mark.parametrize("column", [Numerical(0.0, 1e6), Numerical(0, 1_000_000), None])
def test_whole_numbers_in_floats_come_out_whole(column):
    ages = np.random.default_rng(1).poisson(40, ROWS).astype(float)
    ages[:300] = np.nan
    sample = fitted(column, ages).sample(seed=0)["x"]
    assert (sample.dropna() % 1 == 0).all()
    assert sample.isna().any()


def test_real_numbers_stay_real():
    model = fitted(Numerical(0.0, 1.0), np.random.default_rng(1).random(ROWS))
    assert model.release_.codec.schema.columns["x"].step is None
    assert (model.sample(999, seed=0)["x"].dropna() * 1000 % 1 != 0).mean() > 0.99


def test_no_grid_is_found_where_noise_could_hide_most_rows():
    assert grid_of(np.array([50, 0, 0]), 10.0, (Lattice(10.0), Lattice(1.0))) is None
    assert grid_of(np.array([500, 3, 0]), 10.0, (Lattice(10.0), Lattice(1.0))) == Lattice(10.0)


@pytest.mark.slow
def test_whole_numbers_stay_whole_under_noise_and_other_numbers_are_never_rounded():
    """Years of education had steps of 0.005. With 1,500 draws, one wrong grid in a thousand would be seen."""
    rng, listed = np.random.default_rng(0), tuple(x for x in NUMBERS if x.step <= 10 and not x.offset)
    kinds = {
        "whole": lambda: rng.integers(0, 18, 2000).astype(float),
        "half of them whole": lambda: np.where(rng.random(2000) < 0.5, 1, rng.random(2000)),
        "real": lambda: rng.random(2000) * 20,
        "cents": lambda: np.round(rng.random(2000) * 20, 2),
    }
    found = {name: [] for name in kinds}
    for _ in range(250):
        seen = {}
        for name, draw in kinds.items():
            numbers = draw()
            lie = [lattice.holds(numbers, np.dtype(float)) & (numbers != 0) for lattice in listed]
            first = np.append(
                np.diff([x.sum() for x in lie], prepend=0), (numbers != 0).sum() - lie[-1].sum()
            )
            seen[name] = (np.rint(first + rng.normal(0, 150, len(first))).astype(int), 150.0, listed)
        for name, grid in likely_grids(seen).items():
            found[name].append(grid.step)
    assert {*found["whole"]} == {1.0}
    assert len(found["whole"]) > 150
    assert not {1.0, 0.5, 0.1} & {*found["real"], *found["half of them whole"], *found["cents"]}


def test_evenly_spread_numbers_have_no_heaps():
    numbers = pd.DataFrame({"x": np.arange(1, 100_001)})
    asked = question({"x": Numerical(0, 100_000)}, {"x": "int64"})
    counts = asked.count(numbers)["x"]
    assert heaps_of(counts, 10.0, asked.columns["x"][1], Lattice(1.0)) == ()


def test_heaps_keep_their_shares():
    rng = np.random.default_rng(1)
    pay = rng.integers(10_000, 99_999, ROWS)
    pay = np.where(rng.random(ROWS) < 0.6, np.round(pay, -3), pay)
    sample = fitted(Numerical(0, 100_000), pay).sample(seed=0)["x"].dropna()
    for step in (1000, 10_000):
        assert abs((sample % step == 0).mean() - (pay % step == 0).mean()) < 0.05
    assert 0.3 < (sample % 10 != 0).mean() < 0.42


def test_round_amounts_are_kept_in_a_table_of_any_width():
    """The noise is that of 2, 20 and 56 columns at epsilon 1. At each, over 100 seeds.

    With little noise a grid of hundreds or less is right for most; with much, heaps keep the thousands.
    """
    rng = np.random.default_rng(1)
    step = rng.choice([25, 100, 500, 1000, 5000], 10_000, p=[0.08, 0.06, 0.08, 0.53, 0.25])
    amounts = (np.round(np.exp(rng.normal(9.55, 0.65, 10_000)) / step).clip(1) * step).clip(1000, 40_000)
    schema = Schema({"x": Numerical(0, 50_000, integer=True)})
    asked = question(schema.columns, {"x": "int64"})
    exact = asked.count(pd.DataFrame({"x": amounts.astype(np.int64)}))["x"]
    true = (amounts % 1000 == 0).mean()
    for sigma in (80.0, 200.0, 320.0):
        kept = []
        for _ in range(100):
            noisy = np.rint(exact + rng.normal(0, sigma, exact.shape)).astype(np.int64)
            found, heaps = asked.fill(schema, {"x": (noisy, sigma)})
            rest = 1 - sum(heap.share for heap in heaps["x"])
            kept.append(
                sum(h.share for h in heaps["x"] if h.step % 1000 == 0)
                + rest * (found.columns["x"].step or 1) / 1000
            )
        assert np.quantile(kept, 0.05) > true - 0.1
        assert abs(np.median(kept) - true) < 0.1


@pytest.mark.slow
def test_noise_makes_no_heaps_in_wide_tables():
    """Of 100 tables of 33 columns of evenly spread whole numbers; 33 had one at 3 standard deviations."""
    columns = {f"x{place}": Numerical(0, 100_000, integer=True) for place in range(33)}
    schema, rng = Schema(columns), np.random.default_rng(1)
    asked = question(columns, dict.fromkeys(columns, "int64"))
    numbers = pd.DataFrame(rng.integers(1, 100_000, (10_000, 33)), columns=list(columns))
    exact, tables = asked.count(numbers), 0
    for _ in range(100):
        noisy = {
            name: (np.rint(n + rng.normal(0, 320.0, n.shape)).astype(np.int64), 320.0)
            for name, n in exact.items()
        }
        _, heaps = asked.fill(schema, noisy)
        tables += bool(heaps)
    assert tables <= 5


def test_whole_numbers_that_missing_cells_made_floats_stay_whole_in_small_tables():
    """Before, half of such flags were numbers around 1 at 1,000 rows, and rare flags were all 0.

    The count of 1 is 40 standard deviations of its noise, and those beside it hide that share 10 times over.
    """
    rng, rows = np.random.default_rng(5), 4000
    frame = pd.DataFrame(
        {
            "flag": rng.integers(0, 2, rows) * 1.0,
            "rare": (rng.random(rows) < 0.1) * 1.0,
            "score": rng.integers(1, 6, rows) * 1.0,
            "rate": np.where(rng.random(rows) < 0.5, 0, rng.normal(1.25, 0.08, rows)),
            "spread": rng.exponential(1, rows),
        }
    )
    frame = frame.where(rng.random(frame.shape) > 0.1)
    model = PrivSyn(2.0, 1e-9, seed=0).fit(frame)
    made = model.sample(seed=0)
    for name, values in (("flag", {0, 1}), ("rare", {0, 1}), ("score", {1, 2, 3, 4, 5})):
        assert made[name].dtype == frame[name].dtype
        assert set(made[name].dropna()) == values
        assert abs(made[name].mean() - frame[name].mean()) < 0.1
        assert abs(made[name].isna().mean() - 0.1) < 0.05
    assert (made["rate"].dropna() % 1 != 0).mean() > 0.3
    assert (made["spread"].dropna() % 1 != 0).mean() > 0.9
    rounded = {loss.column for loss in model.losses_ if loss.kind == "rounded"}
    assert {"flag", "rare", "score"} <= rounded


def test_prices_that_end_in_99_are_kept():
    rng = np.random.default_rng(1)
    price = np.round(rng.gamma(2, 20, ROWS), 2)
    price = np.where(rng.random(ROWS) < 0.5, np.floor(price) + 0.99, price)
    sample = fitted(Numerical(0.0, 300.0), price).sample(seed=0)["x"].dropna()
    assert (np.round(sample * 100) == sample * 100).mean() > 0.5  # whole cents, up to rounding
    assert abs((np.round(sample * 100) % 100 == 99).mean() - 0.5) < 0.05


def test_minutes_come_without_seconds():
    rng = np.random.default_rng(1)
    at = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 365 * 1440, ROWS), unit="min")
    for column in (Datetime("2015-01-01", "2016-01-01", unit="s"), None):
        sample = fitted(column, at).sample(seed=0)["x"].dropna()
        assert (sample.dt.second == 0).all()
        assert sample.dt.minute.nunique() == 60


def test_days_without_a_schema_come_without_times():
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(np.arange(ROWS) % 365, unit="D")
    sample = fitted(None, days).sample(seed=0)["x"].dropna()
    assert (sample == sample.dt.normalize()).all()


def test_numbers_that_a_constraint_names_stay_possible():
    columns = {"x": Numerical(0.0, 100.0), "y": Numerical(0.0, 100.0)}
    frame = pd.DataFrame({"x": np.arange(ROWS) % 99.0, "y": np.arange(ROWS) % 99.0})
    schema = Schema(columns, constraints=[Increasing(["x", "y"])])
    model = PrivSyn(epsilon=1.0, delta=1e-9, schema=schema, seed=0).fit(frame)
    sample = model.sample(999, seed=0).dropna()
    assert (sample["x"] <= sample["y"]).all()
    assert (sample % 1 == 0).all(axis=None)


@pytest.mark.parametrize("low", [0.0, 0.3, -2.5])
def test_every_point_of_a_heaped_grid_is_drawn_in_its_own_bin(low):
    column = Numerical(low, 1000.0, step=0.1)
    heaps = {"x": (Heap(10.0, 0.0, 0.3), Heap(1.0, 0.0, 0.5))}
    codec = Codec(Schema({"x": column}), ("x",), ("float64",), True, heaps)
    (coder,) = codec.encoders
    rng = np.random.default_rng(0)
    codes = rng.integers(0, coder.size, 50_000)
    numbers = coder.draw(codes, rng)
    assert np.array_equal(coder.grid.encode(numbers), codes)
    assert np.allclose(numbers * 10, np.rint(numbers * 10))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["str", "object", "string"])
def test_times_as_text_without_bounds_keep_their_time_of_day(dtype):
    start = pd.Timestamp("2020-01-01")
    times = pd.Series(start + pd.to_timedelta(np.random.default_rng(0).integers(0, 10**5, 2000), unit="min"))
    table = pd.DataFrame({"at": times.dt.strftime("%Y-%m-%d %H:%M").astype(dtype)})
    made = PrivSyn(5.0, 1e-6, Schema({"at": Datetime()}), seed=0).fit(table).sample(300)
    assert pd.to_datetime(made["at"]).dt.hour.nunique() > 12


def test_noise_in_the_counts_of_other_lattices_does_not_thin_a_heap():
    """Over 50 noises: the share of a heap that holds every number. With the noise of all counts: .85."""
    shares = []
    for seed in range(50):
        noise = np.random.default_rng(seed).normal(0, 60.0, len(NUMBERS) + 1)
        counts = np.zeros(len(NUMBERS) + 1)
        counts[NUMBERS.index(Lattice(10_000))] = 1000
        found = heaps_of(np.rint(counts + noise).astype(np.int64), 60.0, NUMBERS, Lattice(1))
        shares.append(sum(heap.share for heap in found if heap.step == 10_000))
    assert np.mean(shares) > 0.97


def test_halves_that_stand_out_alone_keep_their_grid():
    """With noise of 90, 400 halves of 4,000 numbers are hidden in the sum of all finer lattices."""
    listed = tuple(Lattice(step) for step in (10, 5, 1, 0.5, 0.1, 0.05, 0.01, 0.005, 0.001))
    halves = np.array([0, 0, 3600, 400, 0, 0, 0, 0, 0, 0])
    assert grid_of(halves, 90.0, listed) == Lattice(0.5)
    assert grid_of(np.where(halves == 400, 200, halves), 90.0, listed) == Lattice(1)


def test_half_of_the_numbers_on_no_grid_may_be_whole():
    """Noise hid the others in the first column, and shows too many in the second."""
    listed = (Lattice(10), Lattice(5), Lattice(1), Lattice(0.5), Lattice(0.1), Lattice(0.01))
    assert not likely_grids({"visits": (np.array([70, 70, 560, 0, 0, 0, 150]), 100.0, listed)})
    assert likely_grids({"visits": (np.array([80, 80, 640, 0, 0, 0, 150]), 100.0, listed)})
