"""Nothing is said of an extreme cell, and no extreme cell or bound loses what is paid for."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Datetime, Duration, Numerical, PrivSyn, Schema, load, report
from privsyn.errors import LossWarning, NoSignalWarning, NotFoundWarning, RefitWarning


def said_of(source, schema, epsilon=50.0, seed=0):
    """The warnings of a run that ends well, but for those on released answers."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        PrivSyn(epsilon, schema=schema, seed=seed).fit(source).sample(5)
    released = (LossWarning, NoSignalWarning, NotFoundWarning, RefitWarning)
    return [str(each.message) for each in said if not issubclass(each.category, released)]


@pytest.mark.parametrize("cell", ["9" * 30, "9" * 300, "9" * 400, "-" + "9" * 30])
@pytest.mark.parametrize("form", ["%-H:%M:%S", "ISO 8601"])
def test_no_length_of_time_has_too_many_digits(cell, form, tmp_path):
    """NumPy warned of the cell, where it became another length of time."""
    texts = ["PT1H", "PT2H", f"P{cell}D"] if form == "ISO 8601" else ["1:00:00", "2:00:00", f"{cell}:00:00"]
    pd.DataFrame({"span": texts}).to_csv(tmp_path / "t.csv", index=False)
    assert not said_of(tmp_path / "t.csv", Schema({"span": Duration("0h", "3h", format=form)}))


def test_a_length_of_time_beyond_the_bounds_is_clipped_to_the_nearer_one(tmp_path):
    texts = ["1:00:00"] * 40 + ["9" * 30 + ":00:00"] * 360
    pd.DataFrame({"span": texts}).to_csv(tmp_path / "t.csv", index=False)
    schema = Schema({"span": Duration("0h", "3h", format="%-H:%M:%S")})
    made = PrivSyn(50.0, schema=schema, seed=0).fit(tmp_path / "t.csv").sample(100)["span"]
    assert (made == pd.Timedelta("3h")).sum() > 50


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [(-1e308, 1e307), (0, 1e308), (-1e300, 1e300)])
def test_no_bounds_are_too_wide_for_a_grid_that_is_found(bounds):
    """A grid of tenths has more steps there than a double, and than the grid of reals has points."""
    table = pd.DataFrame({"x": [1.5, 2.5, 1000.0, 3.0] * 100})
    for seed in range(3):
        assert not said_of(table, Schema({"x": Numerical(*bounds)}), seed=seed)


def test_the_largest_number_of_a_type_may_be_a_bound():
    largest = float(np.finfo(np.float32).max)
    table = pd.DataFrame({"x": pd.Series([1.5, largest] * 200, dtype="float32")})
    assert not said_of(table, None)


def test_a_mark_of_dates_that_are_digits_is_a_date():
    table = pd.DataFrame({"day": [20150131, 20160229, 99991231] * 100})
    schema = Schema({"day": Datetime("2015-01-01", "2017-12-31", format="%Y%m%d", missing=["99991231"])})
    assert not said_of(table, schema)


@pytest.mark.parametrize("zone", ["W-SU", "NZ-CHAT", "Etc/GMT+5", "America/Port-au-Prince"])
def test_every_zone_is_kept(zone, tmp_path):
    days = pd.Series(pd.to_datetime(["2015-01-31", "2016-02-29"] * 50)).dt.tz_localize(zone)
    model = PrivSyn(9.0, schema=Schema({"at": Datetime("2015-01-01", "2017-12-31")})).fit(
        pd.DataFrame({"at": days})
    )
    model.save(tmp_path / "m.privsyn")
    assert load(tmp_path / "m.privsyn").sample(3)["at"].dtype == days.dtype


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series([1.0, 2.0, float("inf"), -float("inf")] * 100),
        pd.Series(pd.Categorical([1.0, 2.0, float("inf"), -float("inf")] * 100)),
        pd.Series([1.0, 2.0, np.float32("inf"), -float("inf")] * 100, dtype=object),
    ],
    ids=["numbers", "categories", "objects"],
)
@pytest.mark.filterwarnings("ignore::privsyn.errors.ColumnWarning")
def test_infinite_numbers_among_values_are_missing_and_not_another_value(cells):
    schema = Schema({"c": Categorical()})
    made = PrivSyn(50.0, schema=schema, seed=1).fit(pd.DataFrame({"c": cells})).sample(400)["c"]
    assert set(made.dropna().unique()) == {1.0, 2.0}
    assert 100 < made.isna().sum() < 300


def test_a_column_near_the_largest_double_has_answers_and_pages(tmp_path):
    """The sum of two such numbers is no double, nor is the range from one to another."""
    rng = np.random.default_rng(0)
    for name, numbers in {"one": rng.random(400), "both": rng.random(400) * rng.choice([-1, 1], 400)}.items():
        table = pd.DataFrame({"a": 1.7e308 * numbers, "b": rng.choice(["x", "y"], 400)})
        model = PrivSyn(3.0, seed=0).fit(table)
        for question in ("mean of a", "median of a", "mean of a among b == 'x'"):
            answer = model.ask(question)
            assert answer.low <= answer.estimate <= answer.high
            assert -1.8e308 < answer.rows < 1.8e308
            assert len(str(answer)) < 600
        report(model, tmp_path / f"{name}.html")
        page = (tmp_path / f"{name}.html").read_text()
        assert "inf" not in re.findall(r"\w+", re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL))


def test_rows_of_persons_near_the_largest_double_have_draws():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"who": np.repeat(np.arange(300), 2), "paid": 1.6e308 * rng.random(600)})
    model = PrivSyn(3.0, schema=Schema({"paid": Numerical(0, 1.7e308)}), unit="who", identifiers=True, seed=0)
    draws = list(model.fit(rows).draws(2))
    assert all(len(drawn) > 0 and drawn["paid"].max() <= 1.7e308 for drawn in draws)
