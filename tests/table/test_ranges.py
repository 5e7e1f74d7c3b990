"""No number, date or time is clipped to a built-in limit, and infinite numbers are missing cells."""

import sqlite3
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privsyn import Categorical, PrivSyn, Schema

ROWS = 6000


def random(seed=0):
    return np.random.default_rng(seed)


def sampled(table, *, epsilon=4.0, **settings):
    """Return a synthetic table; the warnings are not judged here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PrivSyn(epsilon=epsilon, delta=1e-9, seed=0, **settings).fit(table)
        return model.sample(ROWS)


def with_group(**columns):
    return pd.DataFrame(columns | {"group": random(9).choice(["a", "b", "c"], ROWS)})


BULK = random().normal(100, 15, ROWS)


def assert_near(synthetic, real, *, far=0.25):
    """Compare the quartiles, in parts of their distance."""
    quartiles = np.quantile(np.asarray(real, float), [0.25, 0.5, 0.75])
    drawn = np.quantile(np.asarray(synthetic.dropna(), float), [0.25, 0.5, 0.75])
    assert np.abs(drawn - quartiles).max() < far * np.ptp(quartiles)


def test_infinite_numbers_in_a_file_are_missing(tmp_path):
    numbers = np.where(np.arange(ROWS) % 10 == 0, np.where(np.arange(ROWS) % 20, np.inf, -np.inf), BULK)
    with_group(x=numbers).to_csv(tmp_path / "t.csv", index=False)
    cells = sampled(tmp_path / "t.csv")["x"]
    assert 0.05 < cells.isna().mean() < 0.15
    assert_near(cells, BULK)


def test_infinite_numbers_in_a_database_are_missing(tmp_path):
    with sqlite3.connect(tmp_path / "t.sqlite") as base:
        base.execute("CREATE TABLE t (x REAL, g TEXT)")
        rows = [(9e999 if place % 10 == 0 else number, "a") for place, number in enumerate(BULK.tolist())]
        base.executemany("INSERT INTO t VALUES (?, ?)", rows)
    base.close()
    cells = sampled(tmp_path / "t.sqlite")["x"]
    assert 0.05 < cells.isna().mean() < 0.15
    assert_near(cells, BULK)


TIMES = np.datetime64("2024-03-01") + random(1).integers(0, 300 * 86_400, ROWS).astype("timedelta64[s]")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_keep_their_time_of_day(unit):
    made = sampled(with_group(t=TIMES.astype(f"datetime64[{unit}]")))["t"]
    assert (made.dt.floor("D") == made).mean() < 0.05
    assert made.dt.second.nunique() == 60


@pytest.mark.slow
def test_times_with_a_zone_keep_both():
    local = pd.Series(TIMES).dt.tz_localize("UTC").dt.tz_convert("America/New_York")
    made = sampled(with_group(t=local))["t"]
    assert str(made.dt.tz) == "America/New_York"
    assert (made.dt.floor("D") == made).mean() < 0.05


@pytest.mark.slow
def test_dates_gain_no_times_in_small_tables():
    days = pd.DataFrame({f"d{i}": TIMES[:800].astype("M8[D]").astype("M8[us]") for i in range(4)})
    for seed in range(6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = PrivSyn(epsilon=1, delta=1e-9, seed=seed).fit(days).sample(200)
        assert all((cells.dt.floor("D") == cells).all() for _, cells in made.items())


@pytest.mark.parametrize(
    "numbers",
    [
        BULK * 1e-302,
        BULK * 1e-14,
        BULK * 1e198,
        -BULK * 1e28,
        1_700_000_000_000_000_000 + (BULK * 1e12).astype(np.int64) * 1000,
        (random(2).random(ROWS) * 2.0**64 * 0.99).astype(np.uint64),
        random(2).integers(-(2**63), 2**63 - 1, ROWS),
    ],
    ids=["1e-300", "1e-12", "1e200", "-1e30", "nanoseconds", "uint64", "int64"],
)
def test_numbers_of_any_size_are_kept(numbers):
    made = sampled(with_group(x=numbers))["x"]
    assert made.dtype == numbers.dtype
    assert_near(made, numbers)


@pytest.mark.parametrize("scale", [0, 2, 18])
def test_decimals_of_any_size_are_kept(scale):
    whole = [int(number * 10**6) * 10**25 for number in BULK.tolist()]
    cells = pd.Series(
        pd.array(pa.array([None, *whole[1:]], pa.decimal128(38, 0)), pd.ArrowDtype(pa.decimal128(38, 0)))
    )
    if scale:
        small = pa.array(BULK * 10.0 ** -(scale - 4)).cast(pa.decimal128(38, scale))
        cells = pd.Series(pd.array(small, pd.ArrowDtype(pa.decimal128(38, scale))))
    made = sampled(with_group(x=cells))["x"]
    assert made.dtype == cells.dtype
    assert_near(made, cells.dropna())


@pytest.mark.parametrize(
    ("far", "share"), [(1e300, 0.02), (-1e300, 0.02), (1e9, 0.01), (1e9, 0.2), (-1e9, 0.01), (2.0**62, 0.01)]
)
def test_a_few_far_numbers_do_not_blur_all_others(far, share):
    numbers = np.where(random(3).random(ROWS) < share, far, BULK)
    made = sampled(with_group(x=numbers))["x"]
    assert_near(made[made.between(0, 1000)], BULK)
    assert made.between(0, 1000).mean() > 0.9 - share


@pytest.mark.parametrize("first", ["0001-01-01", "0950-05-01", "1780-01-01", "2150-01-01", "9990-01-01"])
def test_dates_of_all_years_are_kept(first):
    days = np.datetime64(first) + random(4).integers(0, 3000, ROWS).astype("timedelta64[D]")
    made = sampled(with_group(d=days.astype("datetime64[us]")))["d"]
    quartiles = np.quantile(days.astype(np.int64), [0.25, 0.75])
    drawn = np.quantile(made.to_numpy().astype("M8[D]").astype(np.int64), [0.25, 0.75])
    assert np.abs(drawn - quartiles).max() < 800


@pytest.mark.parametrize("share", [0.01, 0.6])
def test_open_ends_do_not_blur_the_other_dates(share):
    days = np.datetime64("2015-01-01") + random(5).integers(0, 2000, ROWS).astype("timedelta64[D]")
    ends = np.where(random(6).random(ROWS) < share, np.datetime64("9999-12-31"), days)
    made = sampled(with_group(d=ends.astype("datetime64[s]")))["d"]
    near = made[made < pd.Timestamp("2100-01-01")]
    assert abs(len(near) / ROWS - (1 - share)) < 0.05
    assert near.dt.to_period("M").nunique() > 60


def test_found_codes_of_a_column_that_is_declared_an_integer_stay_whole_numbers(tmp_path):
    codes = random(7).choice([3, 11, 7, 250], 2000, p=[0.5, 0.3, 0.199, 0.001]).tolist()
    with sqlite3.connect(tmp_path / "t.sqlite") as base:
        base.execute("CREATE TABLE t (course INT, g TEXT)")
        base.executemany("INSERT INTO t VALUES (?, 'a')", [(code,) for code in codes])
    base.close()
    schema = Schema({"course": Categorical(), "g": Categorical(["a"])})
    made = sampled(tmp_path / "t.sqlite", schema=schema)["course"]
    assert set(made.dropna()) == {3, 11, 7}
