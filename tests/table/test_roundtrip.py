"""A table goes in and the same kind of table comes out: every type of column, one by one.

For each: same names, same order, same dtype with its categories, unit and zone, missing cells only where
there were some, and no value that the schema does not foresee.
"""

from __future__ import annotations

import enum
import re
import warnings
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from strategies import Grumpy

from privsyn import (
    Categorical,
    CsvFormat,
    Datetime,
    Duration,
    Forbidden,
    Identifier,
    Increasing,
    InputError,
    Numerical,
    PrivSyn,
    Schema,
    Text,
    Time,
    Total,
    load,
)
from privsyn.errors import ColumnWarning
from privsyn.table.codec.codec import Codec
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.io.write import write_table

ROWS = 400
MANY = 50.0  # epsilon: with noise of less than a row, what is there is seen

TIMES = pd.to_datetime(["2020-01-31 08:30:00", "2020-03-01 23:59:59", "2021-12-24 00:00:01"])
SPANS = pd.to_timedelta(["0s", "90s", "1 day 02:00:00"])


def cells(values, dtype):
    """A column of many rows, of few different cells."""
    return pd.Series(list(values) * (ROWS // len(values)), dtype=dtype)


def fitted(table, schema, **settings):
    """A model of the quick method: what a cell is, no method knows."""
    return PrivSyn(MANY, 1e-9, schema, seed=1, **{"method": "published"} | settings).fit(table)


def arrow(kind):
    return pd.ArrowDtype(kind)


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


WHOLE = Numerical(0, 100)
CASES = {
    "bool": (cells([True, False], "bool"), "flags"),
    "nullable boolean": (cells([True, False, None, True], "boolean"), "flags"),
    "boolean of Arrow": (cells([True, None], "bool[pyarrow]"), Categorical([False, True])),
    "int8": (cells([-128, 0, 127, 5], "int8"), Numerical(-128, 127)),
    "int16": (cells([1, 30000], "int16"), Numerical(0, 32767)),
    "int32": (cells([1, 2, 3, 4], "int32"), WHOLE),
    "int64": (cells([1, 2, 3, 4], "int64"), WHOLE),
    "uint8": (cells([0, 255], "uint8"), Numerical(0, 255)),
    "uint16": (cells([0, 65535], "uint16"), Numerical(0, 65535)),
    "uint32": (cells([0, 2**32 - 1], "uint32"), Numerical(0, 2**32 - 1)),
    "uint64": (cells([0, 2**52], "uint64"), Numerical(0, 2**52)),
    "Int8": (cells([1, None, 3, 4], "Int8"), WHOLE),
    "Int64": (cells([1, None, 3, 4], "Int64"), WHOLE),
    "UInt32": (cells([1, None, 3, 4], "UInt32"), WHOLE),
    "int64 of Arrow": (cells([1, None], arrow(pa.int64())), WHOLE),
    "whole numbers in floats": (cells([1.0, None, 3.0, 4.0], "float64"), Numerical(0, 9, integer=True)),
    "float32": (cells([0.5, None, 3.25, 4.0], "float32"), Numerical(0.0, 9.5)),
    "float64": (cells([0.5, None, 3.25, 4.0], "float64"), Numerical(0.0, 9.5)),
    "Float64": (cells([0.5, None, 3.25, 4.0], "Float64"), Numerical(0.0, 9.5)),
    "two decimals": (cells([0.05, None, 3.25, 4.1], "float64"), Numerical(0.0, 9.5, decimals=2)),
    "decimal of Arrow": (
        cells([Decimal("0.05"), None, Decimal("3.25"), Decimal("4.10")], arrow(pa.decimal128(10, 2))),
        Numerical(0, 10),
    ),
    "decimal of Arrow, listed": (
        cells([Decimal("0.05"), Decimal("3.25")], arrow(pa.decimal128(10, 2))),
        Categorical([0.05, 3.25]),
    ),
    "text": (cells(["a", "b", None, "ü"], pd.Series(["a"]).dtype), Categorical(["a", "b", "ü"])),
    "object of text": (cells(["a", "b", None, "ü"], "object"), Categorical(["a", "b", "ü"])),
    "string": (cells(["a", None], "string"), Categorical(["a", "b"])),
    "string[pyarrow]": (cells(["a", None], "string[pyarrow]"), Categorical(["a", "b"])),
    "large string of Arrow": (cells(["a", None], arrow(pa.large_string())), Categorical(["a", "b"])),
    "leading zeros": (cells(["007", "070"], "object"), Categorical(["007", "070"])),
    "categories": (
        cells(["b", "a", None, "b"], pd.CategoricalDtype(["b", "a", "c"])),
        Categorical(["b", "a", "c"]),
    ),
    "ordered categories": (
        cells(["low", None], pd.CategoricalDtype(["low", "mid", "high"], ordered=True)),
        Categorical(["low", "mid", "high"]),
    ),
    "categories of numbers": (cells([3, 1], pd.CategoricalDtype([3, 1])), Categorical([3, 1])),
    "Python's Enum": (cells([Size.SMALL, Size.LARGE, None, Size.SMALL], "object"), Categorical(list(Size))),
    "mixed objects": (cells(["a", 2, 3.5, True], "object"), Categorical(["a", 2, 3.5, True])),
    "days of Arrow": (cells([date(2020, 1, 31), None], "date32[day][pyarrow]"), "days"),
    "objects of date": (
        cells([date(2020, 1, 31), None], "object"),
        Datetime("2020-01-01", "2021-12-31", objects="date"),
    ),
    "objects of datetime": (
        cells([datetime(2020, 1, 31, 8), None], "object"),
        Datetime("2020-01-31 08:00", "2020-01-31 18:00", objects="datetime"),
    ),
    "dates as text": (
        cells(["31.01.2020", "24.12.2021"], "object"),
        Datetime("2020-01-01", "2021-12-31", format="%d.%m.%Y"),
    ),
    "datetime64[s]": (cells(TIMES[:2], "datetime64[s]"), "seconds"),
    "datetime64[ms]": (cells(TIMES[:2], "datetime64[ms]"), "seconds"),
    "datetime64[us]": (cells(TIMES[:2], "datetime64[us]"), "seconds"),
    "datetime64[ns]": (cells([TIMES[0], None], "datetime64[ns]"), "seconds"),
    "datetime with a zone": (cells(TIMES[:2], "datetime64[us, Asia/Tokyo]"), "seconds"),
    "timestamp of Arrow": (cells(TIMES[:2], arrow(pa.timestamp("ms", "UTC"))), "seconds"),
    "timedelta64[s]": (cells(SPANS[:2], "timedelta64[s]"), Duration("0:00", "2 days")),
    "timedelta64[ns]": (cells([SPANS[2], None], "timedelta64[ns]"), Duration("0:00", "2 days", unit="m")),
    "duration of Arrow": (cells([timedelta(1), None], arrow(pa.duration("ms"))), Duration("0:00", "2 days")),
    "objects of timedelta": (cells([timedelta(1), None], "object"), Duration("0:00", "2 days", unit="h")),
    "time of day": (cells([time(8, 30), time(17)], "object"), Time("08:00", "18:00", unit="m")),
    "time of day of Arrow": (cells([time(8, 30), None], arrow(pa.time64("us"))), Time()),
    "time of day as text": (cells(["08:30:00", "17:00:00"], "string"), Time()),
    "nothing but missing": (cells([None, None], "float64"), Numerical(0, 1)),
    "no type": (cells([None, None], arrow(pa.null())), Categorical()),
    "constant": (cells([7, 7], "int64"), Numerical(7, 7)),
    "one row": (pd.Series([7], dtype="Int16"), WHOLE),
}
GIVEN = {
    "flags": Categorical([False, True]),
    "days": Datetime("2020-01-01", "2021-12-31"),
    "seconds": Datetime("2020-01-01", "2021-12-31", unit="s"),
}


def kinds(series):
    """The types of the cells of a column of objects, which no dtype tells."""
    return {type(cell) for cell in series.dropna()} if series.dtype == object else set()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_column_comes_back_as_it_was(name):
    column, known = CASES[name]
    known = (
        Categorical([False, True])
        if known is None
        else GIVEN.get(known, known)
        if isinstance(known, str)
        else known
    )
    table = pd.DataFrame({"before": cells([1, 2], "int64")[: len(column)], "it": column})
    schema = Schema({"it": known, "before": Numerical(1, 2)})
    out = fitted(table, schema).sample(ROWS)
    assert list(out.columns) == ["before", "it"]
    assert out["it"].dtype == column.dtype
    assert kinds(out["it"]) <= kinds(column) or len(column) == 1
    assert out["it"].isna().any() == column.isna().any() or len(column) == 1
    if isinstance(known, Categorical) and known.values is not None:
        assert set(out["it"].dropna()) <= set(column.dropna())
    assert out.index.equals(pd.RangeIndex(ROWS))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privsyn.errors.ColumnWarning")
@pytest.mark.parametrize("name", [name for name, (column, _) in CASES.items() if column.dtype != object])
def test_a_dtype_alone_is_enough(name):
    column = CASES[name][0]
    table = pd.DataFrame({"it": column, "other": cells([1, 2], "int64")[: len(column)]})
    out = fitted(table, None, method="published").sample(50)
    if isinstance(column.dtype, pd.CategoricalDtype):
        assert not out["it"].dtype.ordered  # an order is public if the schema lists the values
    else:
        assert out.dtypes["it"] == column.dtype


@pytest.mark.parametrize(
    "name",
    [
        "objects of date",
        "objects of datetime",
        "dates as text",
        "objects of timedelta",
        "timedelta64[ns]",
        "duration of Arrow",
        "time of day",
        "time of day of Arrow",
        "time of day as text",
        "decimal of Arrow",
        "decimal of Arrow, listed",
        "Python's Enum",
    ],
)
def test_a_cell_is_coded_as_what_it_is(name):
    column, known = CASES[name]
    table = pd.DataFrame({"it": column})
    exact = known if isinstance(known, Categorical) else replace(known, bins=2**20)
    codec = Codec.for_table(Schema({"it": exact}), table)
    assert codec.decode(codec.encode(table), np.random.default_rng(0)).equals(table)


def polars_table():
    return pl.DataFrame(
        {
            "flag": [True, False, None, True] * 100,
            "int8": pl.Series([1, 2, 3, 4] * 100, dtype=pl.Int8),
            "uint64": pl.Series([1, None, 3, 4] * 100, dtype=pl.UInt64),
            "float32": pl.Series([0.5, None, 1.5, 2.0] * 100, dtype=pl.Float32),
            "price": pl.Series([Decimal("1.25"), None] * 200, dtype=pl.Decimal(10, 2)),
            "text": ["a", "b", None, "a"] * 100,
            "size": pl.Series(["S", "L", None, "S"] * 100, dtype=pl.Enum(["S", "M", "L"])),
            "group": pl.Series(["x", "y"] * 200, dtype=pl.Categorical),
            "day": [date(2020, 1, 31), None] * 200,
            "at": pl.Series(
                [datetime(2020, 1, 31, 8, tzinfo=UTC)] * 400, dtype=pl.Datetime("ms", "Asia/Tokyo")
            ),
            "clock": [time(8, 30), None] * 200,
            "span": pl.Series([timedelta(hours=1)] * 400, dtype=pl.Duration("us")),
            "nothing": pl.Series([None] * 400, dtype=pl.Null),
        }
    )


POLARS = Schema(
    {
        "flag": Categorical(),
        "int8": replace(WHOLE, nullable=False),
        "uint64": WHOLE,
        "float32": Numerical(0, 2),
        "price": Numerical(0, 2),
        "text": Categorical(["a", "b"]),
        "size": Categorical(["S", "M", "L"]),
        "group": Categorical(["x", "y"], nullable=False),
        "day": Datetime("2020-01-01", "2020-12-31"),
        "at": Datetime("2020-01-01", "2020-12-31", unit="s", nullable=False),
        "clock": Time(unit="m"),
        "span": Duration("0:00", "2:00", unit="m", nullable=False),
        "nothing": Categorical(),
    }
)


def test_a_polars_table_comes_back_as_one(tmp_path):
    table = polars_table()
    model = fitted(table, POLARS)
    out = model.sample(300)
    assert isinstance(out, pl.DataFrame)
    assert out.schema == table.schema
    missing = {name for name in table.columns if table[name].null_count()}
    assert {name for name in out.columns if out[name].null_count()} == missing
    model.save(tmp_path / "m.privsyn")
    assert load(tmp_path / "m.privsyn").sample(300, seed=1).equals(model.sample(300, seed=1))


def test_without_a_schema_polars_types_stay(tmp_path):
    table = polars_table()
    with pytest.warns(ColumnWarning, match="'size'. If it is public, list the values"):
        out = fitted(table, None).sample(300)
    assert {**out.schema, "size": None} == {**table.schema, "size": None}
    assert isinstance(out.schema["size"], pl.Categorical)  # an Enum has an order


LEVELS = ["low", "mid", "high"]


def ordered_tables():
    """The same ordered categories in pandas, polars and Arrow, and in a file."""
    levels = np.repeat(LEVELS, [900, 1200, 900]).tolist()
    frame = pd.DataFrame({"level": pd.Categorical(levels, LEVELS, ordered=True), "n": 1})
    return {
        "pandas": frame,
        "polars": pl.DataFrame({"level": pl.Series(levels, dtype=pl.Enum(LEVELS)), "n": 1}),
        "Arrow": pa.Table.from_pandas(frame),
        "Parquet": frame,
    }


def is_ordered(cells):
    if isinstance(cells, pl.Series):
        return isinstance(cells.dtype, pl.Enum)
    return cells.type.ordered if isinstance(cells, pa.ChunkedArray) else cells.dtype.ordered


@pytest.mark.parametrize("kind", ordered_tables())
def test_categories_have_the_order_of_the_schema_or_none(kind, tmp_path):
    """Without a schema they came out ordered high < low < mid < other: g >= "mid" was wrong."""
    table = ordered_tables()[kind]
    if kind == "Parquet":
        table.to_parquet(tmp_path / "in.parquet")
        table = tmp_path / "in.parquet"
    for schema, ordered in ((None, False), (Schema({"level": Categorical(LEVELS), "n": WHOLE}), True)):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", ColumnWarning)
            model = fitted(table, schema)
        assert ["'level'" in str(one.message) for one in said] == [True] * (not ordered)
        model.save(tmp_path / "m.privsyn")
        model.release_.sample_to(tmp_path / "out.parquet", 50)
        written = pq.read_schema(tmp_path / "out.parquet").field("level").type
        assert written.ordered == ordered
        for release in (model, load(tmp_path / "m.privsyn")):
            cells = release.sample(50)["level"]
            assert is_ordered(cells) == ordered
            if kind == "pandas" and ordered:
                assert cells.dtype == table["level"].dtype


def test_an_order_among_numbers_of_a_dictionary_is_not_that_of_the_rows():
    """The synthetic rows decided which number came first."""
    shares = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 300), pa.array([2.5, 1.5]), ordered=True)
    out = fitted(pa.table({"share": shares}), Schema({"share": Categorical([1.5, 2.5])})).sample(50)
    assert out.schema.field("share").type == pa.dictionary(pa.int32(), pa.float64())


def arrow_table():
    return pa.table(
        {
            "day": pa.array([date(2020, 1, 31), None] * 200, pa.date32()),
            "price": pa.array([Decimal("1.25"), Decimal("0.10")] * 200, pa.decimal128(8, 2)),
            "group": pa.array(["x", "y"] * 200).dictionary_encode(),
            "clock": pa.array([time(8, 30), None] * 200, pa.time32("ms")),
            "text": pa.array(["a", "b"] * 200, pa.large_string()),
            "n": pa.array([1, 2] * 200, pa.uint16()),
        },
        schema=pa.schema(
            [
                pa.field("day", pa.date32()),
                pa.field("price", pa.decimal128(8, 2), nullable=False),
                pa.field("group", pa.dictionary(pa.int32(), pa.string())),
                pa.field("clock", pa.time32("ms")),
                pa.field("text", pa.large_string()),
                pa.field("n", pa.uint16()),
            ],
            metadata={"note": "of a program"},
        ),
    )


ARROW = Schema(
    {
        "day": Datetime("2020-01-01", "2020-12-31"),
        "price": Numerical(0, 2, nullable=False),
        "group": Categorical(["x", "y"]),
        "clock": Time(),
        "text": Categorical(["a", "b"]),
        "n": WHOLE,
    }
)


def test_what_programs_note_beside_the_types_is_not_kept():
    frame = pd.DataFrame({"a": pd.Series([1, 2] * 200, index=range(7, 407))})
    table = pa.Table.from_pandas(frame)  # notes how many rows there are
    assert b"407" in table.schema.metadata[b"pandas"]
    model = fitted(table, None)
    assert model.release_.table().form.types.metadata is None


def test_a_parquet_file_comes_back_in_its_own_types(tmp_path):
    pq.write_table(arrow_table(), tmp_path / "in.parquet")
    model = fitted(tmp_path / "in.parquet", ARROW)
    write_table(model.sample(300), tmp_path / "out.parquet", ARROW, model.release_.table().form)
    assert (
        pq.read_schema(tmp_path / "out.parquet")
        .remove_metadata()
        .equals(arrow_table().schema.remove_metadata())
    )


GERMAN = Schema(
    {
        "plz": Categorical(["01067", "80331"]),
        "datum": Datetime("2020-01-01", "2021-12-31", format="%d.%m.%Y"),
        "betrag": Numerical(0, 10000, decimals=2),
        "anzahl": Numerical(0, 2000000, integer=True),
        "ort": Categorical(['Köln; "Mitte"', "München"]),
        "zeit": Time(unit="m"),
        "dauer": Duration("0:00", "2 days", unit="h"),
    },
    csv=CsvFormat(delimiter=";", encoding="cp1252", point=",", thousands=".", quoting="all"),
)
GERMAN_ROWS = (
    '"plz";"datum";"betrag";"anzahl";"ort";"zeit";"dauer"\n'
    '"01067";"31.01.2020";"1.234,50";"1.500.000";"Köln; ""Mitte""";"08:30:00";"1 days 02:00:00"\n'
    '"80331";"24.12.2021";"0,05";"7";"München";"17:00:00";""\n'
)


def test_a_csv_is_read_and_written_as_its_schema_spells_it(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(GERMAN_ROWS.encode("cp1252"))
    frame = read_in_memory(path, GERMAN).frame
    assert frame["betrag"].tolist() == [1234.5, 0.05]
    assert frame["anzahl"].tolist() == [1_500_000, 7]
    assert frame["datum"].tolist() == [pd.Timestamp(2020, 1, 31), pd.Timestamp(2021, 12, 24)]
    assert frame["plz"].tolist() == ["01067", "80331"]
    write_table(frame, tmp_path / "out.csv", GERMAN)
    assert (tmp_path / "out.csv").read_bytes().decode("cp1252") == GERMAN_ROWS


def test_a_csv_goes_through_the_synthesis_as_its_schema_spells_it(tmp_path):
    path = tmp_path / "in.csv"
    header, *rows = GERMAN_ROWS.splitlines(keepends=True)
    path.write_bytes((header + "".join(rows) * 200).encode("cp1252"))
    write_table(fitted(path, GERMAN).sample(300), tmp_path / "out.csv", GERMAN)
    lines = (tmp_path / "out.csv").read_bytes().decode("cp1252").splitlines()
    assert lines[0] + "\n" == header
    cells = (
        r'"(01067|80331|)"',
        r'"(\d\d\.\d\d\.202[01]|)"',
        r'"((\d\d?\.)?\d{1,3},\d\d|)"',
        r'"(\d{1,3}(\.\d{3})*|)"',
        r'"(Köln; ""Mitte""|München|)"',
        r'"(\d\d:\d\d:00|)"',
        r'"([012] days \d\d:00:00|)"',
    )
    assert all(re.fullmatch(";".join(cells), line) for line in lines[1:])


def test_text_that_an_encoding_lacks_is_one_line(tmp_path):
    schema = Schema({"a": Categorical(["żółw"])}, csv=CsvFormat(encoding="latin-1"))
    with pytest.raises(InputError, match="cannot be written in latin-1: choose utf-8"):
        write_table(pd.DataFrame({"a": ["żółw"]}), tmp_path / "out.csv", schema)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", "a"], "columns 1 and 2 have the same name"),
        (["a", 2], "the name of column 2 is not text"),
        ([("a", "b"), ("a", "c")], "the name of column 1 is not text"),
    ],
)
def test_names_that_are_alike_or_no_text_are_refused(names, words):
    table = pd.DataFrame([[1, 2]] * 9)
    table.columns = names
    with pytest.raises(InputError, match=words):
        PrivSyn(1.0).fit(table)


CONSTRAINTS = [
    (),
    (Increasing(["low", "high"], strict=True),),
    (Total("sum", {"low": 1, "high": 2}),),
    (Forbidden({"low": {"low": 3, "high": 10.5}}),),
]
AS_FLOATS = {
    "float64": lambda table: table,
    "float32": lambda table: table.astype("float32"),
    "Float64": lambda table: table.astype("Float64"),
    "float of Arrow": lambda table: table.astype("double[pyarrow]"),
    "Arrow": lambda table: pa.Table.from_pandas(table, preserve_index=False),
    "polars": pl.from_pandas,
}


@pytest.mark.slow
@pytest.mark.parametrize("made", AS_FLOATS.values(), ids=AS_FLOATS)
@pytest.mark.parametrize("bounds", [{"low": -9, "high": 99}, {}], ids=["given", "found"])
def test_whole_numbers_stay_whole_in_a_dtype_of_floats(made, bounds, tmp_path):
    """A missing cell turns them into floats; the schema says what they are. A CSV shows no point."""
    low, high = cells([0, 7, 20, None], "float64"), cells([30, 41, 33, 57], "float64")
    table = made(pd.DataFrame({"low": low, "high": high, "sum": low + 2 * high}))
    ends = dict.fromkeys(("low", "high"), Numerical(**bounds, integer=True))
    for constraints in CONSTRAINTS if bounds else CONSTRAINTS[:1]:
        schema = Schema({**ends, "sum": Numerical(integer=True)}, constraints=constraints)
        model = PrivSyn.paper(MANY, 1e-9, schema, seed=1).fit(table)
        assert type(model.sample(2)) is type(table)
        model.sample_to(tmp_path / "t.csv", ROWS)
        texts = pd.read_csv(tmp_path / "t.csv", dtype=str).melt()["value"].dropna()
        assert texts.str.fullmatch("-?[0-9]+").all()
        model.sample_to(tmp_path / "t.parquet", ROWS)
        numbers = pd.read_parquet(tmp_path / "t.parquet").astype("float64").melt()["value"].dropna()
        assert len(texts) == pytest.approx(len(numbers), abs=ROWS / 4)
        assert (numbers == numbers.round()).all()


def test_identifiers_are_made_anew_by_their_dtype():
    table = pd.DataFrame(
        {
            "number": cells([70_001, 70_002], "int32"),
            "float": cells([70_001, None], "float64"),
            "uuid": cells(["secret", "person"], "string"),
            "customer": cells(["secret", None], "object"),
            "n": cells([1, 2], "int64"),
        }
    )
    names = {"number": Identifier(), "float": Identifier(), "uuid": Identifier()}
    schema = Schema({**names, "customer": Identifier("CUST-{:06d}"), "n": WHOLE})
    out = fitted(table, schema).sample(ROWS)
    assert out.dtypes.equals(table.dtypes)
    assert list(out.columns) == list(table.columns)
    assert out["number"].tolist() == out["float"].tolist() == list(range(1, ROWS + 1))
    assert out["customer"].tolist()[:2] == ["CUST-000001", "CUST-000002"]
    assert out["uuid"].nunique() == ROWS
    assert all(str(UUID(name)) == name for name in out["uuid"])


def test_identifiers_and_free_text_are_not_looked_at():
    """The release of a table, noise and all, is that of the same table with other names and texts."""
    schema = Schema({"id": Identifier(), "notes": Text(), "n": WHOLE})

    def released(names, notes):
        table = pd.DataFrame({"id": names, "notes": notes, "n": cells([1, 2], "int64")})
        with pytest.warns(ColumnWarning, match=r"free text is left out of the synthetic table: 'notes'"):
            model = fitted(table, schema)
        return model.sample(ROWS, seed=3), model.ledger_

    one = released(cells(["a", "b"], "object"), cells(["secret", None], "object"))
    other = released(cells([Grumpy(), None], "object"), cells([[1], {}], "object"))
    assert one[0].equals(other[0])
    assert one[1] == other[1]
    assert list(one[0].columns) == ["id", "n"]


@pytest.mark.parametrize(
    ("column", "dtype", "words"),
    [
        (Identifier("N{}"), "int64", "column 'it': its dtype is int64: leave out the format"),
        (Identifier(), "bool", "column 'it': an identifier is text or a whole number, not boolean"),
        (Identifier(), "datetime64[ns]", "not datetime: convert it"),
    ],
)
def test_an_identifier_of_a_strange_dtype_is_refused(column, dtype, words):
    table = pd.DataFrame({"it": cells([1, 0], dtype), "n": cells([1, 2], "int64")})
    with pytest.raises(InputError, match=words):
        fitted(table, Schema({"it": column, "n": WHOLE}))


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("uint8", "uint32"),
        ("int16", "int32"),
        ("Int8", "Int32"),
        ("UInt16", "UInt32"),
        ("int8[pyarrow]", "int32[pyarrow]"),
        ("float16", "float64"),
        ("Float32", "Float64"),
        ("uint32", "uint32"),
        ("int64", "int64"),
    ],
)
@pytest.mark.parametrize("rows", [3, ROWS])
def test_the_width_of_an_identifier_depends_on_its_dtype_alone(narrow, wide, rows):
    table = pd.DataFrame({"it": cells([1, 0], narrow), "n": cells([1, 2], "int64")})
    made = fitted(table, Schema({"it": Identifier(), "n": WHOLE})).sample(rows)["it"]
    assert str(made.dtype) == wide
    assert made.tolist() == list(range(1, rows + 1))


@pytest.mark.parametrize("nullable", [False, True])
def test_identifiers_of_arrow_and_polars_are_widened_too(nullable, tmp_path):
    fields = [pa.field("it", pa.uint8(), nullable=nullable), pa.field("n", pa.int64())]
    table = pa.table({"it": [7] * ROWS, "n": [1, 2] * (ROWS // 2)}, schema=pa.schema(fields))
    schema = Schema({"it": Identifier(), "n": WHOLE})
    model = fitted(table, schema)
    assert model.sample().schema.field("it") == pa.field("it", pa.uint32(), nullable=nullable)
    model.sample_to(tmp_path / "out.parquet")
    assert pq.read_schema(tmp_path / "out.parquet").field("it").type == pa.uint32()
    polars = pytest.importorskip("polars")
    assert fitted(polars.from_arrow(table), schema).sample().schema["it"] == polars.UInt32


def test_an_identifier_that_runs_out_of_numbers_says_so():
    maker = Identifier().maker(np.dtype("int32"))
    with pytest.raises(InputError, match="its dtype is int32, which cannot number 3000000000 rows"):
        maker(10, np.random.default_rng(0), 3_000_000_000 - 10)


@pytest.mark.parametrize("text", ["N", "{}{}", "{0}", "{:s}", "{:.2f}", "{x}", "{:06d}}", 7])
def test_a_format_holds_one_whole_number(text):
    with pytest.raises(InputError, match="is not text around one number"):
        Identifier(text)


def test_a_target_is_a_column_that_is_counted():
    with pytest.raises(InputError, match="target 'id' is free text or generated, so nothing is learnt of it"):
        PrivSyn(1.0, 1e-9, Schema({"id": Identifier(), "n": WHOLE}), target="id")


def test_identifiers_of_a_csv_are_not_looked_at(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("id,code,n\n" + "secret,secret,1\nperson,,2\n" * 200)
    schema = Schema({"id": Identifier(), "code": Identifier("C{:04d}"), "n": WHOLE})
    out = fitted(path, schema).sample(3)
    assert out["id"].tolist() == [1, 2, 3]
    assert out["code"].tolist() == ["C0001", "C0002", "C0003"]
