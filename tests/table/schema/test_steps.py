"""Steps: values of a column are multiples of a public number."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privsyn import Datetime, Duration, InputError, Numerical, PrivSyn, Schema, Time, load
from privsyn.marginals.domain import Records
from privsyn.table.codec.codec import Codec
from privsyn.table.schema.yaml_file import from_plain, parse, to_plain, to_yaml

DECIMAL = pd.ArrowDtype(pa.decimal128(8, 2))

COLUMNS = [
    (Numerical(0, 1e6, step=10_000), "float64", 1e4),
    (Numerical(0, 1_000_000, step=10_000), "int64", 1e4),
    (Numerical(-3, 7.02, step=0.05), "float64", 0.05),
    (Numerical(0, 20, step=0.25), "float32", 0.25),
    (Numerical(17, 90, step=5, integer=True), "Int16", 5.0),
    (Numerical(0, 20, step=0.5), DECIMAL, 0.5),
]


def any_codes(codec):
    rng = np.random.default_rng(0)
    size = codec.domain.sizes[0]
    return Records(codec.domain, rng.integers(0, size, (2000, 1)))


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize(("column", "dtype", "step"), COLUMNS)
def test_every_number_is_a_multiple_of_the_step(column, dtype, step, fine):
    frame = pd.DataFrame({"x": pd.Series([], dtype=dtype)})
    codec = Codec.for_table(Schema({"x": column}), frame, fine=fine)
    numbers = codec.decode(any_codes(codec), np.random.default_rng(1))["x"].dropna().astype(float)
    assert np.allclose(numbers / step, np.rint(numbers / step), atol=1e-6)
    assert column.low <= numbers.min() <= numbers.max() <= column.high


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize(
    ("column", "seconds"),
    [
        (Datetime("2015-01-01", "2015-12-31", step="15min"), 900),
        (Datetime("2015-01-01 08:30", "2015-03-01 23:59:59", unit="h"), 3600),
        (Datetime("2015-01-01 08:30", "2015-03-01 23:59:59", step="1d", unit="s"), 86400),
        (Time(step="5min"), 300),
        (Time(step="30 min", unit="m"), 1800),
        (Duration("0:00", "9 days", step="1h"), 3600),
    ],
)
def test_every_time_is_a_multiple_of_the_step(column, seconds, fine):
    codec = Codec(Schema({"x": column}), ("x",), (DTYPES[type(column)],), fine)
    cells = codec.decode(any_codes(codec), np.random.default_rng(1))["x"].dropna()
    ticks = pd.to_timedelta(cells.astype(str)) if isinstance(column, Time) else cells
    units = pd.Series(ticks).astype("int64" if not isinstance(column, Time) else "timedelta64[s]")
    assert (units.astype("int64") % seconds == 0).all()


DTYPES = {Datetime: "datetime64[s]", Time: "object", Duration: "timedelta64[s]"}


def test_a_number_off_the_grid_is_taken_to_the_nearest_multiple():
    frame = pd.DataFrame({"x": [14_999.0, 15_001.0, -5.0, 2e6, np.nan]})
    codec = Codec.for_table(Schema({"x": Numerical(0, 50_000, step=10_000)}), frame)
    decoded = codec.decode(codec.encode(frame), np.random.default_rng(0))["x"]
    assert decoded[:4].tolist() == [10_000, 20_000, 0, 50_000]
    assert decoded[4:].isna().all()


def test_a_time_off_the_grid_is_taken_to_the_nearest_multiple():
    frame = pd.DataFrame({"x": pd.to_datetime(["2015-01-01 10:20", "2015-01-01 10:40", "2014-01-01 00:00"])})
    codec = Codec.for_table(Schema({"x": Datetime("2015-01-01 00:30", "2015-01-02", step="1h")}), frame)
    decoded = codec.decode(codec.encode(frame), np.random.default_rng(0))["x"]
    assert decoded.dt.strftime("%d %H:%M").tolist() == ["01 10:00", "01 11:00", "01 01:00"]


@pytest.mark.parametrize(("column", "dtype", "step"), COLUMNS)
def test_bins_never_split_a_grid_point(column, dtype, step):
    codec = Codec(Schema({"x": column}), ("x",), (str(dtype) if dtype is not DECIMAL else "object",), True)
    lows, highs = codec.encoders[0].extents
    assert np.allclose(lows[1:] - highs[:-1], step, rtol=1e-5)


def test_a_step_is_read_back_as_it_was_written():
    columns = {f"c{place}": column for place, (column, _, _) in enumerate(COLUMNS)}
    columns |= {"t": Time(step="15min"), "d": Duration(step="1h"), "m": Datetime(unit="min")}
    schema = Schema(columns)
    assert from_plain(json.loads(json.dumps(to_plain(schema)))) == schema
    assert from_plain(parse(to_yaml(schema))) == schema
    assert "m: {kind: datetime, step: 1min}" in to_yaml(schema)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Numerical(0, 9, step=0), "step is a number above 0, not 0"),
        (lambda: Numerical(0, 9, step="1h"), "step is a number above 0, not '1h'"),
        (lambda: Numerical(0, 9, step=1 / 3), "has more than 12 decimals"),
        (lambda: Numerical(0, 9, step=0.5, integer=True), "the step of whole numbers is whole, not 0.5"),
        (lambda: Numerical(0, 9, step=0.5, decimals=1), "step and decimals exclude each other"),
        (lambda: Numerical(1, 9, step=10), "no multiple of the step lies between 1.0 and 9.0"),
        (lambda: Datetime(step="soon"), "step is a length of time such as 30s"),
        (lambda: Datetime(unit="h", step=0), "step is a length of time such as 30s"),
        (lambda: Datetime(step="7h"), "a day is no whole number of steps of '7h'"),
        (lambda: Datetime(step="1h", unit="D"), "step '1h' is no whole number of units 'D'"),
        (lambda: Time("08:01", "08:09", step="15min"), "no multiple of the step lies between"),
        (lambda: codec_of(Numerical(0, 9, step=0.5), "int64"), "its numbers are whole"),
        (lambda: codec_of(Numerical(0, 9, step=0.005), DECIMAL), "too coarse for a step of 0.005"),
    ],
)
def test_a_step_that_cannot_be_is_refused_in_one_line(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()


def codec_of(column, dtype):
    return Codec.for_table(Schema({"x": column}), pd.DataFrame({"x": pd.Series([], dtype=dtype)}))


def test_bounds_that_are_found_are_moved_to_multiples_of_the_step():
    assert Numerical(step=5).with_bounds((17.0, 41.0), integers=False).bounds == (15.0, 45.0)
    found = Datetime(unit="h").with_bounds((0.0, 86399.0), integers=False)
    assert found.bounds == (0.0, 82800.0)
    assert Duration(step="1h").with_bounds((-100.0, 100.0), integers=True).bounds == (-3600.0, 3600.0)


@pytest.mark.parametrize("unit", [None, "s"])
def test_midnights_between_bounds_with_a_time_of_day_can_be_saved(unit, tmp_path):
    """Of times that are all midnights, the found step is a day while the bounds have times."""
    midnights = pd.DataFrame({"at": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(2000) % 28, "D")})
    column = Datetime("2020-01-01", "2020-01-31 23:59:59", unit=unit)
    model = PrivSyn(100.0, 1e-9, Schema({"at": column}), seed=0).fit(midnights)
    assert model.release_.codec.schema.columns["at"].step == "1d"
    model.save(tmp_path / "m.privsyn")
    again = load(tmp_path / "m.privsyn")
    assert again.codec.schema.columns["at"] == model.release_.codec.schema.columns["at"]
    assert (again.sample(50, seed=1)["at"].dt.normalize() == again.sample(50, seed=1)["at"]).all()
