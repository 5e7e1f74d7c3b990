"""The codec: codes and cells, and the laws that privacy rests on."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from itertools import product
from string import ascii_letters

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import refuses
from strategies import GrumpyNumber, GrumpyText, Incomparable, OfNoType, coded_tables, junk, tables

from privsyn.errors import InputError
from privsyn.marginals.domain import Records
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.dtypes import TEXT
from privsyn.table.encoding.grid import Grid
from privsyn.table.encoding.parsing import span_seconds
from privsyn.table.encoding.steps import Heap
from privsyn.table.schema.columns import Categorical, Datetime, Duration, Numerical, Time
from privsyn.table.schema.schema import Schema

INTERVALS = pd.CategoricalDtype(pd.interval_range(0, 3))
DATES = pd.CategoricalDtype(pd.date_range("2020-01-01", periods=3))
DECIMAL = pd.ArrowDtype(pa.decimal128(5, 2))


def rng():
    return np.random.default_rng(0)


def codec_of(column, cells, dtype=None):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=dtype)})
    return Codec.for_table(Schema({"x": column}), frame), frame


def codes_of(column, cells, dtype=None):
    codec, frame = codec_of(column, cells, dtype)
    return codec.encode(frame).codes[:, 0].tolist()


def back(column, cells, dtype=None):
    """The cells after a trip to codes and back."""
    codec, frame = codec_of(column, cells, dtype)
    return codec.decode(codec.encode(frame), rng())["x"]


@given(tables(), st.data())
def test_decoded_codes_are_encoded_to_themselves(table, data):
    codec = Codec.for_table(*table)
    records = data.draw(coded_tables(codec.domain))
    again = codec.encode(codec.decode(records, rng()))
    assert np.array_equal(again.codes, records.codes)


@given(tables())
def test_every_row_is_encoded_alone(table):
    schema, frame = table
    codec = Codec.for_table(schema, frame)
    whole = codec.encode(frame).codes
    for row in range(len(frame)):
        assert np.array_equal(codec.encode(frame.iloc[[row]]).codes, whole[[row]])


@pytest.mark.slow
@given(tables())
def test_encoding_commutes_with_concatenation(table):
    schema, frame = table
    codec = Codec.for_table(schema, frame)
    twice = pd.concat([frame, frame.iloc[::-1]])
    codes = codec.encode(frame).codes
    assert np.array_equal(codec.encode(twice).codes, np.vstack([codes, codes[::-1]]))


@given(tables())
def test_codec_and_domain_know_no_row(table):
    schema, frame = table
    codec = Codec.for_table(schema, frame)
    assert Codec.for_table(schema, frame.iloc[:0]) == codec
    assert Codec.for_table(schema, frame.iloc[:0]).domain == codec.domain


@given(tables())
def test_columns_order_and_dtypes_are_kept(table):
    schema, frame = table
    codec = Codec.for_table(schema, frame)
    decoded = codec.decode(codec.encode(frame), rng())
    assert list(decoded.columns) == list(frame.columns)
    for name in frame:
        if frame[name].dtype == "category":  # its categories are the schema's, not the table's
            assert decoded[name].cat.categories.tolist() == list(schema.columns[name].values)
        else:
            assert decoded[name].dtype == frame[name].dtype


@given(tables(), st.data())
def test_only_what_the_schema_says_comes_out(table, data):
    schema, frame = table
    codec = Codec.for_table(schema, frame)
    decoded = codec.decode(data.draw(coded_tables(codec.domain)), rng())
    for name, column in schema.columns.items():
        cells = decoded[name]
        assert column.nullable or not cells.isna().any()
        present = cells.dropna()
        if isinstance(column, Categorical):
            assert set(present) <= set(pd.Series(column.values, dtype=present.dtype))
        elif isinstance(column, Numerical) and column.form is not None:
            numbers = column.form.numbers(present.tolist())
            assert ((numbers >= column.low) & (numbers <= column.high)).all()
        elif isinstance(column, Numerical):
            bounds = [column.low, column.high]
            if "decimal" in str(frame[name].dtype):
                bounds = [Decimal(str(bound)) for bound in bounds]
            low, high = pd.Series(bounds, dtype=frame[name].dtype)
            assert present.between(low, high).all()
        elif isinstance(column, Time | Duration):
            assert all(column.low <= cell <= column.high for cell in present)
        else:
            if isinstance(present.dtype, pd.DatetimeTZDtype):
                present = present.dt.tz_localize(None)
            times = [datetime.fromisoformat(str(cell)) for cell in present]
            assert all(column.low <= time <= column.high for time in times)


@pytest.mark.slow
@given(st.lists(junk, max_size=8), st.booleans())
@example([Decimal("sNaN"), Incomparable(2)], True)
@example([GrumpyText("$5"), GrumpyNumber(5)], True)
def test_no_cell_raises(cells, nullable):
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name in "abcdefgh"})
    schema = Schema(
        {
            "a": Categorical(["", 0, True, 2.5], nullable=nullable),
            "b": Numerical(-5, 5, nullable=nullable),
            "c": Datetime("1999-12-31", "2000-01-01", nullable=nullable),
            "d": Time("08:00", "18:00", nullable=nullable),
            "e": Duration("-1 day", "1 day", nullable=nullable),
            "f": Datetime("1999-12-31", "2000-01-01", format="%d.%m.%Y", nullable=nullable),
            "g": Categorical(["", 0, "other"], other="other", nullable=nullable),
            "h": Numerical(-5, 5, format="$1,234.50", nullable=nullable),
        }
    )
    codec = Codec.for_table(schema, frame)
    assert set(codec.misfits(frame)) == set("abcdefgh")
    whole = codec.encode(frame).codes
    rows = [codec.encode(frame.iloc[[row]]).codes for row in range(len(frame))]
    assert np.array_equal(np.vstack([whole[:0], *rows]), whole)


def test_nor_does_one_of_a_class_that_raises():
    test_no_cell_raises.hypothesis.inner_test([OfNoType(), 0], True)  # Hypothesis would fail at it


def test_no_length_of_time_makes_pandas_warn(recwarn):
    """A warning would tell of a cell; to keep it back would touch the filters of all threads."""
    units = [*ascii_letters, *map("".join, product(ascii_letters, repeat=2))]
    longer = ["MIN", "Min", "min", "DAYS", "Hours", "SEC", "micros", "weeks", "P1DT3H", "-P1DT3H"]
    texts = [f"3 {unit}" for unit in (*units, *longer)]
    warnings.simplefilter("always")  # until the test ends
    span_seconds([*texts, *longer, "1 day 3 H", "3H20MIN", np.timedelta64(5, "s"), np.timedelta64(5, "M")])
    assert not recwarn.list
    lengths = span_seconds(["1 d", "1 w", "3 H", "2 MIN", "5 S", "1 day 3 H", "P1DT3H", "-3.5 H"])
    assert lengths.tolist() == [86400, 604800, 10800, 120, 5, 97200, 97200, -12600]


def test_bins_of_a_grid_differ_by_one_point_at_most():
    for points in (1, 2, 31, 32, 74, 2**53 - 1):
        for bins in (1, 2, 32, 1000):
            grid = Grid.exact(0, points - 1, decimals=0, bins=bins)
            widths = {
                end - start
                for start, end in zip(grid.edges[:-1].tolist(), grid.edges[1:].tolist(), strict=True)
            }
            assert grid.edges[0] == 0
            assert grid.edges[-1] == points
            assert max(widths) - min(widths) <= 1
            assert min(widths) >= 1


def test_points_are_drawn_uniformly_within_a_bin():
    # 7 points, 70,000 draws: a count is binomial with mean 10,000 and standard deviation 93. Six of these
    # on either side are left by one of 7 counts with probability < 7 * 2e-9 a run.
    grid = Grid.exact(0, 13, decimals=0, bins=2)
    drawn = grid.draw(np.ones(70_000, dtype=int), np.random.default_rng())
    counts = np.bincount(drawn.astype(int), minlength=14)
    assert counts[:7].sum() == 0
    assert (abs(counts[7:] - 10_000) < 6 * 93).all()


def test_an_unlisted_value_is_missing_or_else_the_first():
    assert codes_of(Categorical(["b", "a"]), ["a", "z", None, "A"], object) == [1, 2, 2, 2]
    assert codes_of(Categorical(["b", "a"], nullable=False), ["a", "z", None, "A"], object) == [1, 0, 0, 0]


def test_a_dtype_that_cannot_be_missing_has_no_code_for_it():
    codec, _ = codec_of(Numerical(0, 9), [3, 4], "int64")
    assert codec.domain.sizes == (10,)
    assert codes_of(Categorical([5, 6]), [6, 7], "int8") == [1, 0]
    codec, _ = codec_of(Numerical(0, 9), [3, None], "Int64")
    assert codec.domain.sizes == (11,)
    assert codec.domain.ordered == (10,)


def test_codes_of_a_bench_go_through_unchanged():
    codes = np.arange(32)
    frame = pd.DataFrame({"a": codes, "b": codes % 5})
    schema = Schema(
        {
            "a": Numerical(0, 31, integer=True, bins=32, nullable=False),
            "b": Categorical(list(range(5)), nullable=False),
        }
    )
    codec = Codec.for_table(schema, frame)
    assert np.array_equal(codec.encode(frame).codes, frame.to_numpy())
    pd.testing.assert_frame_equal(codec.decode(codec.encode(frame), rng()), frame)


def test_whole_numbers_in_a_float_column_stay_whole():
    drawn = back(Numerical(0, 1000, integer=True, bins=3), [1.0, np.nan, 999.0])
    assert drawn.dtype == np.float64
    assert drawn.isna().tolist() == [False, True, False]
    assert (drawn.dropna() == drawn.dropna().round()).all()


def test_decimals_are_those_of_the_nearest_double():
    drawn = back(Numerical(-1, 1, decimals=2, bins=1), [0.0] * 500)
    assert all(value == float(f"{value:.2f}") for value in drawn)
    grid = Grid.exact(-1, 1, decimals=2, bins=201)
    assert grid.draw(np.arange(201), rng()).tolist() == [k / 100 for k in range(-100, 101)]
    assert grid.encode(np.array([k / 100 for k in range(-100, 101)])).tolist() == list(range(201))


def test_dates_are_cut_to_the_day_also_before_1970():
    column = Datetime("1969-12-30", "1970-01-02", bins=4)
    cells = [
        "1969-12-30 23:59:59",
        "1969-12-31 00:00:00",
        "1969-12-31 23:59:59.999",
        "1970-01-01 00:00",
        None,
    ]
    for dtype in ("datetime64[ns]", "datetime64[us]", "timestamp[us][pyarrow]", object):
        assert codes_of(column, pd.to_datetime(pd.Series(cells), format="ISO8601"), dtype) == [0, 1, 1, 2, 4]
    assert codes_of(column, cells, TEXT) == [0, 1, 1, 2, 4]


def test_a_zone_keeps_its_clock():
    cells = pd.Series(pd.to_datetime(["2015-07-01 00:30", "2015-07-02 23:30"])).dt.tz_localize(
        "Europe/Berlin"
    )
    column = Datetime("2015-06-30", "2015-07-02", bins=3)
    assert codes_of(column, cells) == [1, 2]
    assert back(column, cells).tolist() == [
        pd.Timestamp("2015-07-01", tz="Europe/Berlin"),
        pd.Timestamp("2015-07-02", tz="Europe/Berlin"),
    ]


def test_changes_of_the_clock_do_not_fail():
    column = Datetime("2015-03-29 01:00", "2015-03-29 04:00", bins=1)
    cells = pd.Series(pd.to_datetime(["2015-03-29 00:30"] * 200)).dt.tz_localize("Europe/Berlin")
    assert len(back(column, cells)) == 200
    column = Datetime("2015-10-25 01:00", "2015-10-25 04:00", bins=1)
    assert len(back(column, cells)) == 200


def test_dates_in_a_column_of_text_come_back_as_text():
    drawn = back(Datetime("2015-01-01", "2015-01-01"), ["2015-01-01", "?", None], TEXT)
    assert drawn.dtype == TEXT
    assert drawn.isna().tolist() == [False, True, True]
    assert drawn[0] == "2015-01-01"
    assert back(Datetime("2015-01-01 08:00", "2015-01-01 08:00"), ["x"], object).isna().all()


def test_categories_are_those_of_the_schema():
    cells = pd.Series(
        ["low", "high", "secret"], dtype=pd.CategoricalDtype(["secret", "high", "low"], ordered=True)
    )
    drawn = back(Categorical(["low", "mid", "high"]), cells)
    assert drawn.dtype == pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    assert drawn.isna().tolist() == [False, False, True]


def test_small_floats_are_told_apart_as_their_own_type_does():
    assert codes_of(Categorical([0.1, 0.2]), [0.2, 0.1, 0.3], "float32") == [1, 0, 2]
    one = back(Numerical(2**24 + 1, 2**24 + 1), [0.0], "float32")  # a bound that it cannot hold
    assert one.tolist() == [2**24]
    drawn = back(Numerical(0, 0.1, bins=7), np.linspace(0, 0.1, 50), "float32")
    assert drawn.dtype == np.float32
    assert drawn.between(np.float32(0), np.float32(0.1)).all()


def test_bounds_too_close_for_their_type_are_one_bin():
    assert codes_of(Numerical(1.0, 1.0), [0.0, 1.0, 2.0]) == [0, 0, 0]
    assert codes_of(Numerical(1.0, 1.0 + 1e-15), [0.0, 1.0, 2.0]) == [0, 0, 0]


@pytest.mark.parametrize(
    ("column", "dtype", "complaint"),
    [
        (Categorical(["a"]), "int64", "its dtype is int64, which cannot hold the listed value 'a'"),
        (Categorical([300]), "uint8", "cannot hold the listed value 300"),
        (Categorical([True]), "int64", "cannot hold the listed value True"),
        (Categorical([1.5]), "int64", "cannot hold the listed value 1.5"),
        (Categorical([1]), "bool", "cannot hold the listed value 1"),
        (Categorical([1]), "string", "cannot hold the listed value 1"),
        (Categorical([0.1, 0.1 + 1e-12]), "float32", "in which some listed values are equal"),
        (Categorical(["2015-01-01"]), "datetime64[ns]", r"use Datetime\(low, high\)"),
        (Numerical(0, 1), "datetime64[ns]", r"not numbers: use Datetime\(low, high\)"),
        (Numerical(0, 1), "bool", r"not numbers: use Categorical"),
        (Numerical(0, 1), "category", "its dtype is category, not numbers"),
        (Categorical(["a"]), INTERVALS, "convert its categories of dtype interval to text"),
        (Categorical(["a"]), DATES, "convert its categories of dtype datetime64 to text"),
        (Numerical(0, 300), "uint8", "cannot hold the bounds 0 to 300"),
        (Numerical(0, 1e5), "float16", "cannot hold the bounds 0 to 100000.0"),
        (Numerical(0.5, 1), "int64", "the bounds of whole numbers are whole numbers, not 0.5"),
        (Numerical(0, 1, integer=False), "int64", "so say integer=True"),
        (Numerical(0, 1, decimals=2), "int64", "so say integer=True"),
        (Numerical(0, 1000, decimals=5), "float32", "too coarse for 5 decimals"),
        (Datetime("2015-01-01", "2016-01-01"), "int64", "not dates"),
        (Datetime("0001-01-01", "2016-01-01"), "datetime64[ns]", "cannot hold the bounds"),
        (Datetime("0001-01-01", "2016-01-01"), "datetime64[ns, UTC]", "cannot hold the bounds"),
        (Categorical([1]), "timedelta64[ns]", r"use Duration\(low, high\)"),
        (Categorical([1]), "period[D]", "convert it"),
        (Categorical([1]), pd.ArrowDtype(pa.time32("s")), r"use Time\(\)"),
        (Categorical([1.005]), DECIMAL, "cannot hold the listed value 1.005"),
        (Categorical([1000]), DECIMAL, "cannot hold the listed value 1000"),
        (Numerical(0, 1000), DECIMAL, "cannot hold the bounds 0 to 1000"),
        (Time(), "int64", "not times of day: convert it"),
        (Duration("0:00", "1 day"), "int64", "not lengths of time: convert it"),
        (Categorical([1]), "complex128", "convert it"),
        (Categorical([1]), "Sparse[int64]", "convert it"),
    ],
)
def test_a_dtype_that_cannot_fit_is_refused(column, dtype, complaint):
    frame = pd.DataFrame({"x": pd.Series([], dtype=dtype)})
    with pytest.raises(InputError, match=f"^column 'x': .*{complaint}"):
        Codec.for_table(Schema({"x": column}), frame)


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["a", "b", "id"], "the schema does not know column 3 of the table"),
        (["id", "b", "no"], "the table has no column 'a' and the schema does not know columns 1, 3 of"),
        (["a", "b", *"cdefghi"], "columns 3, 4, 5, 6, 7 and 2 more of the table"),
        (["a"], "the table has no column 'b'"),
        (["a", "b", "a"], "columns 1 and 3 have the same name"),
        (["a", "b", 3], "the name of column 3 is not text"),
        ([], "the table has no columns 'a', 'b'"),
        ([("a", "b")], "the name of column 1 is not text"),
    ],
)
def test_columns_that_differ_from_the_schema_are_named(names, complaint):
    frame = pd.DataFrame(np.zeros((2, len(names)), dtype=int))
    frame.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    with pytest.raises(InputError, match=complaint) as error:
        Codec.for_table(Schema({"a": Numerical(0, 1), "b": Numerical(0, 1)}), frame)
    assert not any(name in str(error.value) for name in ("'id'", "'c'"))


def test_a_table_of_other_dtypes_is_refused():
    codec, frame = codec_of(Numerical(0, 9), [1, 2], "int64")
    with pytest.raises(InputError, match="dtypes differ"):
        codec.encode(frame.astype("float64"))


def test_whatever_fails_in_coding_is_one_line_without_a_cause(monkeypatch):
    def fail(*_):
        raise RuntimeError("secret")

    codec, frame = codec_of(Numerical(0, 9), [1, 2], "int64")
    monkeypatch.setattr("privsyn.table.encoding.encoders.NumericalEncoder.read", fail)
    with refuses(r"^the table could not be coded: please report this"):
        codec.encode(frame)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo", "America/New_York", "+05:00"])
def test_times_beyond_the_calendar_are_missing(unit, zone):
    """Some programs write infinity so: a date at a bound would pass for one of the calendar."""
    far, codes = [2**63 - 1, -(2**63) + 1], [2, 2]
    if unit == "ns":  # which does not reach so far
        codes = [1, 0]
    else:
        ends = np.array(["9999-12-31T23:59:59", "0001-01-01T00:00:00"], dtype=f"M8[{unit}]")
        far, codes = far + ends.astype(np.int64).tolist(), [*codes, 1, 0]
    times = pa.array(far).cast(pa.timestamp(unit, tz=zone))
    for mapper in (None, pd.ArrowDtype):
        cells = pa.table({"x": times}).to_pandas(types_mapper=mapper)["x"]
        assert codes_of(Datetime("2015-01-01", "2015-12-31", bins=2), cells) == codes
        if unit != "ns":
            assert codes_of(Datetime("0001-01-01", "9999-12-31", bins=2), cells) == codes


@pytest.mark.parametrize(("kind", "day"), [(pa.date32(), 1), (pa.date64(), 86_400_000)])
def test_days_beyond_the_year_9999_are_missing(kind, day):
    days = [2**31 - 1, -(2**31), 3_000_000, 16_436, -1, None]
    counts = pa.array([None if d is None else d * day for d in days], pa.int32() if day == 1 else pa.int64())
    cells = pa.table({"x": counts.cast(kind)}).to_pandas(types_mapper=pd.ArrowDtype)["x"]
    column = Datetime("1969-12-31", "2015-01-01", bins=2**20)
    assert codes_of(column, cells) == [16_438, 16_438, 16_438, 16_437, 0, 16_438]
    assert back(column, cells).dtype == pd.ArrowDtype(kind)


def test_a_length_of_time_in_a_unit_that_is_old_is_read_without_a_warning():
    """pandas warns of the H in a cell; here a warning is an error, and the cell would be missing."""
    frame = pd.DataFrame({"a": pd.Series(["0 days", "1 H", "soon"], dtype=object)})
    codec = Codec.for_table(Schema({"a": Duration("0 days", "1 day", bins=24)}), frame)
    assert codec.encode(frame).codes[:, 0].tolist() == [0, 1, 24]


def test_a_number_too_big_for_a_double_gives_no_warning():
    cells = np.array(["1", "1e4000", "nan"], dtype=np.longdouble)
    assert codes_of(Numerical(0, 9, integer=False, bins=2), cells.astype(object)) == [0, 2, 2]


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="longdouble is float64 here")
@pytest.mark.parametrize("column", [Numerical(0, 9), Numerical(0, 9, integer=False), Categorical([1, 2])])
def test_a_column_of_long_doubles_is_refused_in_one_line(column):
    """Some columns ended in an OverflowError when their cells were drawn."""
    with pytest.raises(InputError, match=r"^column 'x': its dtype is float128: convert it to float64$"):
        codec_of(column, [1, 2], np.longdouble)


def test_records_of_another_domain_are_refused():
    codec, _ = codec_of(Numerical(0, 9), [1, 2], "int64")
    other, _ = codec_of(Numerical(0, 8), [1, 2], "int64")
    with pytest.raises(ValueError, match="records over"):
        codec.decode(Records(other.domain, np.zeros((1, 1), dtype=int)), rng())


def test_a_schema_with_gaps_makes_no_codec():
    with pytest.raises(InputError, match="list its values"):
        codec_of(Categorical(), ["a"])


@pytest.mark.parametrize(
    "dtype",
    [
        pd.StringDtype("python"),
        pd.StringDtype("pyarrow"),
        pd.ArrowDtype(pa.string()),
        pd.ArrowDtype(pa.large_string()),
        TEXT,
    ],
)
def test_every_dtype_of_text_is_kept(dtype):
    codec, frame = codec_of(Categorical(["a", "b"]), ["b", None, "z"], dtype)
    codec = Codec.from_dict(codec.to_dict())
    assert codec.encode(frame).codes[:, 0].tolist() == [1, 2, 2]
    assert codec.decode(codec.encode(frame), rng())["x"].dtype == dtype


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_every_unit_and_zone_of_dates_is_kept(unit):
    cells = ["2015-01-01 10:00", None]
    column = Datetime("2015-01-01 10:00", "2015-01-01 10:00", nullable=True)
    plain = pd.Series(pd.to_datetime(cells))
    zoned = plain.dt.tz_localize("Europe/Berlin")
    for made, dtype in (
        (plain, f"datetime64[{unit}]"),
        (plain, f"timestamp[{unit}][pyarrow]"),
        (zoned, f"datetime64[{unit}, Europe/Berlin]"),
        (zoned, pd.ArrowDtype(pa.timestamp(unit, tz="Europe/Berlin"))),
    ):
        made = made.astype(dtype)
        pd.testing.assert_series_equal(back(column, made), made, check_names=False)


def test_misfits_count_what_would_change():
    column = Numerical(0, 9, integer=True)
    codec, frame = codec_of(column, [5.0, 10.0, -1.0, np.nan, np.inf])
    assert codec.misfits(frame) == {"x": 3}
    codec, frame = codec_of(Categorical(["a"], nullable=False), ["a", "b", None], object)
    assert codec.misfits(frame) == {"x": 2}
    codec, frame = codec_of(
        Datetime("2015-01-01", "2015-01-02"), [datetime(2015, 1, 2, 9), datetime(2016, 1, 1)]
    )
    assert codec.misfits(frame) == {"x": 1}


def test_a_heap_of_very_many_points_costs_no_memory():
    grid = replace(Grid.exact(0, 10**14, decimals=0, bins=32), heaps=(Heap(10.0, 0.0, 0.5),))
    assert len(grid.fine().edges) < 1000
