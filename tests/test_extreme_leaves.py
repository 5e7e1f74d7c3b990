"""A row of extreme cells that leaves moves no answer further than the ledger says, and leaves nothing else.

The second run is without the row, or without all rows of one person. It gets the released answers of the
first, so the models of both must be the same, byte by byte. The columns have numbers, dates and times of
every size, in each of which the row is as far from the others as it can be.
"""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from replay import Answers, moved

from privsyn import Categorical, Datetime, Duration, Numerical, PrivSyn, Schema, Time, load
from privsyn.errors import LossWarning, NoSignalWarning, NotFoundWarning, RefitWarning
from privsyn.methods import reading
from privsyn.owners.party import Alone

ROWS, MANY = 400, 30
LARGEST = float(np.finfo(np.float64).max)

KINDS = {
    "real": ("float64", [1.5, 2.25, 1e3], Numerical()),
    "price": ("float64", [2.5, 9.99, 1e3], Numerical(decimals=2)),
    "whole": ("int64", [1, 5, 70], Numerical()),
    "huge": ("int64", [2**60 + 7, 2**60 + 900, 2**61], Numerical()),
    "single": ("float32", [1.5, 2.25, 1e3], Numerical()),
    "cost": (pd.ArrowDtype(pa.decimal128(38, 2)), ["1.25", "12.50", "3.00"], Numerical()),
    "day": ("str", ["2015-01-31", "2016-02-29", "2017-05-05"], Datetime()),
    "at": ("datetime64[s]", ["2015-01-31T10:20", "2016-02-29", "2017-05-05"], Datetime()),
    "digits": ("Int64", [20150131, 20160229, 20170505], Datetime(format="%Y%m%d")),
    "clock": ("str", ["8:30 am", "9:15 pm", "12:00 am"], Time(format="%-I:%M %p")),
    "span": ("str", ["26:03:04", "1:00:00", "0:30:00"], Duration(format="%-H:%M:%S")),
    "offset": (
        "str",
        ["2024-01-31T10:20:00+01:00", "2024-07-31T10:20:00+02:00", "2024-08-01T00:00:00+02:00"],
        Datetime(format="%Y-%m-%dT%H:%M:%S%:z", zone="Europe/Berlin"),
    ),
}
"""Each kind of column: its dtype, usual cells, and what the schema says of it."""

EXTREMES = [
    {
        "real": LARGEST,
        "price": -LARGEST,
        "whole": 2**63 - 1,
        "huge": -(2**63),
        "single": float(np.finfo(np.float32).max),
        "cost": "9" * 36 + ".99",
        "day": "9999-12-31",
        "at": "9999-12-31T23:59:59",
        "digits": 99991231,
        "clock": "11:59 pm",
        "span": "9" * 300 + ":00:00",
        "offset": "9999-12-31T23:59:59-12:00",
    },
    {
        "real": 5e-324,
        "price": 1e300,
        "whole": -(2**63),
        "huge": 2**63 - 1,
        "single": 1e-45,
        "cost": "-" + "9" * 36 + ".99",
        "day": "0001-01-01",
        "at": "0001-01-01",
        "digits": 2**63 - 1,
        "clock": "12:00 am",
        "span": "-" + "9" * 30 + ":00:00",
        "offset": "0001-01-01T00:00:00+12:00",
    },
    {
        "real": float("inf"),
        "price": float("-inf"),
        "whole": 0,
        "huge": 0,
        "single": float("inf"),
        "cost": None,
        "day": "no date",
        "at": "-9999-01-01",
        "digits": -5,
        "clock": "25:00 pm",
        "span": "1:75:00",
        "offset": None,
    },
]
"""Rows of cells that are as far as can be, on both sides, and of cells that count as missing."""

MISSING = EXTREMES[-1]


def table_of(extreme, names, rows):
    """The usual rows, and `rows` more with the extreme cells."""
    rng, columns = np.random.default_rng(5), {}
    for name in names:
        dtype, usual, _ = KINDS[name]
        cells = [*(usual[place] for place in rng.integers(0, 3, ROWS)), *[extreme[name]] * rows]
        if name == "cost":
            cells = [None if cell is None else Decimal(cell) for cell in cells]
        if name == "at":
            cells = np.array(cells, dtype="datetime64[s]")
        columns[name] = pd.Series(cells, dtype=dtype)
    who = [*(f"p{place // 2}" for place in range(ROWS)), *["far"] * rows]
    return pd.DataFrame(columns | {"who": pd.Series(who, dtype="str")})


def left_by(table, words, answers, schema, settings, path):
    """Fit with these words for the rows, and return the ledger and the bytes of the model."""
    with answers.run(), pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        for of_released in (LossWarning, NoSignalWarning, NotFoundWarning, RefitWarning):
            warnings.simplefilter("ignore", of_released)
        patch.setattr(Alone, "bits", lambda _: lambda size: words[:size])
        patch.setattr(reading, "best_bound", lambda *_: 4)
        fitted = PrivSyn(40.0, schema=schema, seed=1, **settings).fit(table)
    fitted.save(path)
    return fitted.ledger_, path.read_bytes()


RUNS = {
    "default": {},
    "pure": {"delta": 0.0},
    "published": {"method": "published"},
    "parameters": {
        "method": "published",
        "parameters": {"split": (0.3, 0.5, 0.2), "gamma": 90, "overlap": 1, "rounds": 3},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("persons", [False, True], ids=["rows", "persons"])
@pytest.mark.parametrize("settings", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("extreme", EXTREMES, ids=["largest", "smallest", "missing"])
def test_a_row_of_extreme_cells_moves_nothing_further_than_the_ledger_says(
    extreme, settings, persons, tmp_path
):
    numbers, times = list(KINDS)[:6], list(KINDS)[6:]
    for names in (numbers, times):
        rows = MANY if persons else 1
        table = table_of(extreme, names, rows)
        words = np.random.default_rng(8).permutation(len(table)).astype(np.uint64)
        columns = {name: KINDS[name][-1] for name in names}
        schema = Schema(columns if persons else columns | {"who": Categorical(["p0"])})
        asked = settings | ({"unit": "who"} if persons else {})
        first = Answers()
        ledger, model = left_by(table, words, first, schema, asked, tmp_path / "whole")
        second = Answers(first.released)
        rest = table[:ROWS]
        assert left_by(rest, words[:ROWS], second, schema, asked, tmp_path / "rest") == (ledger, model)
        ratios = {
            spend.what: moved(some, others, spend.law) / spend.sensitivity
            for spend, some, others in zip(ledger.spends, first.exact, second.exact, strict=True)
        }
        assert max(ratios.values()) <= 1 + 1e-12
        if extreme is not MISSING:
            assert max(ratio for what, ratio in ratios.items() if "bounds" in what) > 0.5


# --- nothing is said of a cell -----------------------------------------------------------------------------


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


# --- what is paid for is not lost --------------------------------------------------------------------------


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
@pytest.mark.filterwarnings("ignore::privsyn.errors.ObjectsWarning")
def test_infinite_numbers_among_values_are_missing_and_not_another_value(cells):
    schema = Schema({"c": Categorical()})
    made = PrivSyn(50.0, schema=schema, seed=1).fit(pd.DataFrame({"c": cells})).sample(400)["c"]
    assert set(made.dropna().unique()) == {1.0, 2.0}
    assert 100 < made.isna().sum() < 300
