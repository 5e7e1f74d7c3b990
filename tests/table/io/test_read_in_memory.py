"""Tables in and out of files; the draft of a schema."""

from __future__ import annotations

import gzip
import os
from contextlib import suppress
from datetime import time
from decimal import Decimal
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from drafts import draft_text
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import refuses
from strategies import names, tables, texts

from privsyn.errors import InputError
from privsyn.files import atomic_path
from privsyn.synthesizer import PrivSyn
from privsyn.table.codec.codec import Codec
from privsyn.table.drafting.draft import check_schema, draft_schema
from privsyn.table.encoding.dtypes import TEXT, family
from privsyn.table.inferred.number_bounds import FEW_ROWS
from privsyn.table.io.csv_output import formatted
from privsyn.table.io.csv_table import PLAIN, well_formed
from privsyn.table.io.parquet import left_out
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.read_in_memory import read_columns, read_in_memory
from privsyn.table.io.write import write_table
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.columns import Categorical, Datetime, Duration, Identifier, Numerical, Time
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import from_plain, read_schema

DATA = Path(os.environ.get("PRIVSYN_DATA", Path(__file__).parents[4] / "shared" / "data"))
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="needs the tables of PRIVSYN_DATA, which are not shipped"
)

SCHEMA = Schema(
    {
        "age": Numerical(0, 99, integer=True),
        "zip": Categorical(["01234", "98101"]),
        "kids": Categorical([0, 1, 2]),
        "owner": Categorical([True, False]),
        "score": Numerical(0, 1, integer=False),
        "born": Datetime("1900-01-01", "2020-12-31"),
    },
    missing="?",
)
CSV = """\
age,zip,kids,owner,score,born
39,01234,1,True,0.5,1980-02-29
?,?,?,?,?,?
,,,,,
12.7,1234,2.0,true,1,1980-02-30
99999999999999999999999,98101,seven,1,1e400,2000-01-01T10:20:30
"""

MONEY = pd.ArrowDtype(pa.decimal128(9, 2))


def rng():
    return np.random.default_rng(0)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(CSV, encoding="utf-8")
    return path


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def file_of(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_cells_of_a_csv_are_what_the_schema_says(table):
    frame = read_in_memory(table, SCHEMA).frame
    assert frame.dtypes.to_dict() == {
        "age": pd.Int64Dtype(),
        "zip": TEXT,
        "kids": pd.Int64Dtype(),
        "owner": pd.BooleanDtype(),
        "score": np.dtype("float64"),
        "born": np.dtype("datetime64[s]"),
    }
    codec = Codec.for_table(SCHEMA, frame)
    assert codec.encode(frame).codes.tolist() == [
        [12, 0, 1, 0, 16, 21],
        [32, 2, 3, 2, 32, 32],
        [32, 2, 3, 2, 32, 32],
        [4, 2, 2, 0, 31, 32],
        [31, 1, 3, 0, 32, 26],
    ]


def test_one_odd_cell_changes_no_other_row_and_no_dtype(tmp_path, table):
    whole = read_in_memory(table, SCHEMA).frame
    header, *rows = CSV.splitlines()
    for place, row in enumerate(rows):
        alone = read_in_memory(file_of(tmp_path, f"{header}\n{row}\n", "row.csv"), SCHEMA)
        pd.testing.assert_frame_equal(alone.frame, whole.iloc[[place]].reset_index(drop=True))
    assert read_in_memory(file_of(tmp_path, header, "none.csv"), SCHEMA).frame.dtypes.equals(whole.dtypes)


def test_marks_for_missing_are_those_of_the_schema(tmp_path):
    schema = Schema({"a": Categorical(missing="-"), "b": Categorical(["", "x"])}, missing="?")
    frame = read_in_memory(file_of(tmp_path, "a,b\n-,\n?,?\n,x\nNA,-\n"), schema).frame
    assert frame["a"].isna().tolist() == [True, True, True, False]
    assert frame["b"].isna().tolist() == [False, True, False, False]


def test_none_is_an_answer_among_words_and_a_missing_cell_among_numbers(tmp_path):
    path = file_of(tmp_path, "job,kids,joined\nnone,2,None\npart,none,2020-01-31\nNA,0,\n")
    frame = read_in_memory(path).frame
    assert frame["job"].tolist()[:2] == ["none", "part"]
    assert frame.isna().to_numpy().tolist() == [
        [False, False, True],
        [False, True, False],
        [True, False, True],
    ]
    marked = read_in_memory(path, Schema({}, missing="none")).frame
    assert marked["job"].isna().tolist() == [True, False, True]


def test_a_line_end_in_a_cell_may_fall_between_two_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("privsyn.table.io.csv_table.LONGEST_ROW", 50)
    cells = ["x\ny" * place for place in range(1, 9)] * 9
    path = file_of(tmp_path, "a,b\n" + "".join(f'"{cell}",1\n' for cell in cells))
    assert read_in_memory(path, Schema({"a": Categorical(), "b": Categorical()})).frame["a"].tolist() == cells


def test_a_row_is_refused_for_its_length_alone(tmp_path, monkeypatch):
    """The limit is public; the line names it, and no row."""
    assert "none of more than 64 MiB" in well_formed(PLAIN)
    monkeypatch.setattr("privsyn.table.io.csv_table.LONGEST_ROW", 2**20)
    schema = Schema({"a": Categorical(), "b": Categorical()})
    before, after = "no,no\n" * 1000, "x,y\n" * 1000
    whole = file_of(tmp_path, f"a,b\n{before}{'s' * (2**20 - 10)},1\n{after}")
    assert len(read_in_memory(whole, schema).frame) == 2001
    for cell in ("s" * 2**22, f'"{"secret" * 2**20}"'):
        text = f"a,b\n{before}{cell},1\n{after}".encode()
        for packed, ending in ((text, "long.csv"), (gzip.compress(text), "long.csv.gz")):
            path = file_of(tmp_path, packed, ending)
            with refuses() as refused:
                read_in_memory(path, schema)
            assert str(refused.value) == (
                f"{path}: some row is longer than 1 MiB, the longest that is read:"
                " leave out the column of long texts"
            )


def test_values_of_several_types_are_matched_by_their_text(tmp_path):
    schema = Schema({"a": Categorical([1, "one", 2.5, False]), "b": Categorical([0.5, 1])})
    frame = read_in_memory(file_of(tmp_path, "a,b\n1,1.0\none,.5\n2.50,2\nFALSE,x\nno,\n"), schema).frame
    assert frame["a"].tolist()[:4] == [1, "one", 2.5, False]
    assert frame["a"].isna().tolist() == [False, False, False, False, True]
    assert frame["b"].dtype == np.float64
    assert frame["b"].tolist()[:2] == [1, 0.5]
    big = Schema({"a": Categorical([2**53 + 1, 2**53, 10**30])})
    frame = read_in_memory(file_of(tmp_path, f"a\n{2**53}\n{2**53 + 1}\n1{'0' * 30}\n", "big.csv"), big).frame
    assert frame["a"].tolist() == [2**53, 2**53 + 1, 10**30]
    alone = read_in_memory(file_of(tmp_path, "a,b\none,1\n", "one.csv"), schema).frame
    assert alone["a"].dtype == object


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (Numerical(0, 9, integer=True), "Int64"),
        (Numerical(0.0, 9.0, integer=True), "Int64"),
        (Numerical(0, 9, decimals=0), "Int64"),
        (Numerical(0, 10, step=5), "Int64"),
        (Numerical(0, 9, integer=False), "float64"),
        (Numerical(0, 9), "float64"),
        (Numerical(0.0, 9.0), "float64"),
        (Numerical(), "float64"),
    ],
)
def test_whether_numbers_are_whole_is_said_and_not_read_off_the_bounds(tmp_path, column, dtype):
    for cells in ("1\n2\n", "1\n2.5\n", "x\n", ""):
        source = read_in_memory(file_of(tmp_path, "a\n" + cells), Schema({"a": column}))
        assert source.frame.dtypes["a"] == dtype
        assert source.public_inputs == (well_formed(PLAIN),)


def test_without_a_schema_all_types_are_read_off_the_file(tmp_path):
    path = file_of(tmp_path, "a,b,c,d,e,f\n1,0.5,True,2015-01-01,01234,\nNA,?,,null,9,\n")
    source = read_in_memory(path)
    assert source.frame.dtypes.tolist() == [
        pd.Int64Dtype(),
        np.float64,
        pd.BooleanDtype(),
        np.dtype("datetime64[s]"),
        TEXT,
        TEXT,
    ]
    assert source.frame.iloc[1].isna().tolist() == [True, True, True, True, False, True]
    assert source.public_inputs[0] == well_formed(PLAIN)
    assert len(source.public_inputs) == 8  # five kinds, of which one is of two columns, and the marks
    assert "that these columns are of text (read off the file): 'e', 'f'" in source.public_inputs
    assert source.public_inputs[-2].endswith(": ? NA N/A n/a #N/A <NA> NaN nan NULL null")
    assert source.public_inputs[-1].endswith("in columns that are not of text: None none")
    assert not any(cell in " ".join(source.public_inputs) for cell in ("0.5", "2015", "01234"))


@pytest.mark.parametrize(
    "cells",
    [
        ["0.0", "1.0", ""],
        ["7.0", "12.0", "3.0"],
        ["TRUE", "FALSE", ""],
        ["true", "false", "true"],
        ["2024-01-31T10:20:30", "2024-02-01T00:00:00", ""],
        ["2024-01-31T10:20:30Z", "2024-02-01T00:00:00Z", ""],
        ["900719925474099328", "12", ""],
        ["1000000000000000128", "12", ""],
    ],
    ids=lambda cells: cells[0],
)
def test_what_is_guessed_of_a_file_is_written_as_it_was_read(tmp_path, cells):
    """Before, TRUE became True, times lost their T, and 19 digits came out with an exponent."""
    path = file_of(tmp_path, "\n".join(["a,b", *(f"{cell},x" for cell in cells), ""]))
    source = read_in_memory(path)
    written = formatted(source.frame, source.schema)["a"].astype(object)
    assert ["" if pd.isna(cell) else str(cell) for cell in written] == cells


def test_arrow_and_polars_tables_keep_integers_that_may_be_missing():
    polars = pytest.importorskip("polars")
    cells = {"a": [1, None], "b": [True, None], "c": ["x", None], "d": [0.5, None]}
    for made in (pa.table(cells), polars.DataFrame(cells)):
        frame = read_in_memory(made).frame
        assert frame.dtypes.tolist()[:2] == [pd.Int64Dtype(), pd.BooleanDtype()]
        assert frame["c"].tolist()[0] == "x"
        assert frame["d"].dtype == np.float64
        full = read_in_memory(made[:1] if isinstance(made, polars.DataFrame) else made.slice(0, 1)).frame
        assert full.dtypes.tolist()[:2] == frame.dtypes.tolist()[:2]


@pytest.mark.parametrize("cells", [[True, False], [1, 2], [0.5], ["x"], [b"x"]])
def test_a_missing_cell_changes_no_dtype_of_a_file_that_pandas_wrote(tmp_path, cells):
    dtypes = []
    for name, more in (("full", cells), ("gap", [*cells, None])):
        pd.DataFrame({"a": pd.Series(more, dtype=object)}).to_parquet(tmp_path / f"{name}.parquet")
        dtypes.append(read_in_memory(tmp_path / f"{name}.parquet").frame.dtypes["a"])
    assert dtypes[0] == dtypes[1]


BOOL8 = pa.bool8()


def encoded(cells):
    """The same column run-end encoded; with rows of booleans also as bool8; both also in dictionaries."""
    cells = pa.array(cells.to_pylist(), cells.type)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array(range(1, len(cells) + 1), pa.int32()), cells)
    yield from (runs, pa.DictionaryArray.from_arrays(pa.array(range(len(cells)), pa.int8()), runs))
    if pa.types.is_boolean(cells.type):
        flags = pa.ExtensionArray.from_storage(BOOL8, cells.cast(pa.int8()))
        ends = pa.array(range(1, len(cells) + 1), pa.int64())
        yield from (flags, pa.RunEndEncodedArray.from_arrays(ends, flags))


TYPED = [
    ([2**60 + 1, 7], pa.int64()),
    ([1.5, -2.5], pa.float16()),
    (["x", "y"], pa.string_view()),
    ([True, False], pa.bool_()),
    ([Decimal("1.25"), Decimal(2)], pa.decimal256(40, 2)),
    ([0, 10**12], pa.timestamp("ms", "Europe/Berlin")),
    ([[1], []], pa.list_(pa.int64())),
]


@pytest.mark.parametrize(("cells", "kind"), TYPED, ids=[str(kind) for _, kind in TYPED])
def test_how_arrow_encodes_a_column_decides_neither_dtype_nor_cells(cells, kind):
    """pandas made floats of run-end encoded integers where a cell was missing: one row ended a run."""
    for more in (cells, [*cells, None], [None], []):
        plain = pa.array(more, kind)
        expected = read_in_memory(pa.table({"a": plain})).frame
        for made in encoded(plain):
            table = pa.table({"a": made})
            source = read_in_memory(table)
            pd.testing.assert_frame_equal(source.frame, expected)
            pd.testing.assert_frame_equal(read_columns(table), expected[:0])
            frames = list(read_in_batches(ds.InMemoryDataset(table)).frames())
            pd.testing.assert_frame_equal(pd.concat(frames, ignore_index=True), expected)
            assert source.form.types == read_in_memory(pa.table({"a": plain})).form.types
            part = read_in_memory(table.slice(1)).frame
            pd.testing.assert_frame_equal(part, expected[1:].reset_index(drop=True))


@pytest.mark.parametrize(("cells", "kind"), TYPED, ids=[str(kind) for _, kind in TYPED])
def test_columns_of_pandas_that_arrow_encodes_are_of_the_type_of_their_values(cells, kind):
    for more in ([*cells, None], cells, [None]):
        for made in encoded(pa.array(more, kind)):
            frame = pd.DataFrame({"a": pd.Series(made, dtype=pd.ArrowDtype(made.type))})
            read = read_in_memory(frame).frame
            assert read.dtypes["a"] == read_columns(frame).dtypes["a"] == pd.ArrowDtype(kind)
            assert pa.array(read["a"].array).to_pylist() == pa.array(more, kind).to_pylist()


@pytest.mark.parametrize("kind", [pa.string_view(), pa.large_string(), pa.float64(), pa.date32()], ids=str)
def test_no_row_decides_the_dtype_of_a_dictionary_of_pandas(kind):
    dtypes = set()
    for cells in ([], [None], pa.array(["2015-01-02" if "string" in str(kind) else 1]).to_pylist()):
        made = pa.DictionaryArray.from_arrays(pa.array(range(len(cells)), pa.int8()), pa.array(cells, kind))
        frame = pd.DataFrame({"a": pd.Series(made, dtype=pd.ArrowDtype(made.type))})
        dtype = read_in_memory(frame).frame.dtypes["a"]
        dtypes.add("category" if isinstance(dtype, pd.CategoricalDtype) else dtype)
    assert len(dtypes) == 1


UNKNOWN = {
    "month_day_nano_interval": pa.month_day_nano_interval(),
    "arrow.opaque": pa.opaque(pa.int64(), "secret", "secret"),
    "sparse_union": pa.sparse_union([pa.field("secret", pa.int64())]),
    "list": pa.list_(BOOL8),
    "list_view": pa.list_view(pa.int64()),
    "large_list_view": pa.large_list_view(pa.int64()),
    "large_list": pa.large_list(pa.string_view()),
    "struct": pa.struct([("secret", pa.run_end_encoded(pa.int32(), pa.int64()))]),
    "map": pa.map_(pa.string(), pa.month_day_nano_interval()),
    "fixed_size_list": pa.list_(pa.dictionary(pa.int8(), pa.string()), 2),
    "run_end_encoded": pa.run_end_encoded(pa.int32(), pa.month_day_nano_interval()),
    "dictionary": pa.dictionary(pa.int8(), pa.opaque(pa.int64(), "secret", "secret")),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_type_that_pandas_would_choose_a_dtype_for_is_refused_by_name(name):
    """From the schema alone: without rows too, and in a row's stead."""
    schema = pa.schema([("n", pa.int64()), ("odd", UNKNOWN[name])])
    sources = [
        lambda: read_columns(pa.RecordBatchReader.from_batches(schema, [])),
        lambda: read_in_batches(ds.InMemoryDataset([], schema)),
    ]
    with suppress(pa.ArrowNotImplementedError):  # Arrow makes no table of some
        empty, row = schema.empty_table(), pa.table([pa.nulls(1, kind) for kind in schema.types], schema)
        sources += [lambda table=table: read_in_memory(table) for table in (empty, row)]
    for read in sources:
        with refuses() as refused:
            read()
        assert f"column 'odd': the Arrow type {name}" in str(refused.value)
        assert "secret" not in str(refused.value)
    cells = pd.arrays.ArrowExtensionArray(pa.chunked_array([], UNKNOWN[name]))
    with pytest.raises(InputError, match=rf"column 'odd': the Arrow type {name}"):
        read_in_memory(pd.DataFrame({"odd": cells}))


@pytest.mark.parametrize("kind", [pl.Int128, pl.UInt128, pl.List(pl.Int128), pl.Struct({"a": pl.Int128})])
def test_a_type_of_polars_that_arrow_lacks_is_refused_by_name(kind):
    its = "UInt128" if kind == pl.UInt128 else "Int128"
    frame = pl.DataFrame({"odd": [None]}, schema={"odd": kind})
    readers = (read_in_memory, read_columns, read_in_batches, lambda frame: read_in_batches(iter([frame])))
    for read in readers:
        for source in (frame, frame.clear(), frame.lazy()):
            with pytest.raises(InputError, match=f"column 'odd': the polars type {its} is not supported"):
                read(source)
    with pytest.raises(InputError, match="column 'odd': the polars type Object"):
        read_in_memory(pl.DataFrame({"odd": pl.Series([object()], dtype=pl.Object)}))


def test_identifiers_and_json_of_arrow_are_what_they_are_stored_as():
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, None], pa.binary(16)))
    notes = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None]))
    dtypes = read_in_memory(pa.table({"id": ids, "note": notes})).frame.dtypes
    assert dtypes.tolist() == [pd.ArrowDtype(pa.binary(16)), TEXT]


def test_a_dtype_that_pandas_cannot_read_back_is_read_from_its_arrow_type():
    """pandas notes the dtype of a list or a dictionary, and fails when it reads the note."""
    listed = pa.list_(pa.int8())
    for kind, dtype in ((listed, pd.ArrowDtype(listed)), (pa.dictionary(pa.int8(), pa.string()), "category")):
        table = pa.Table.from_pandas(pd.DataFrame({"a": pd.Series([None], dtype=pd.ArrowDtype(kind))}))
        assert read_in_memory(table).frame.dtypes["a"] == dtype


def test_what_pandas_noted_holds_where_no_cell_decides_it(tmp_path):
    frame = pd.DataFrame({"a": pd.Categorical(["x", None], ["y", "x"], ordered=True), "b": [1, 2]})
    frame.to_parquet(tmp_path / "t.parquet")
    again = read_in_memory(tmp_path / "t.parquet").frame
    assert again.dtypes["a"] == frame.dtypes["a"]
    assert again.dtypes["b"] == pd.Int64Dtype()


@pytest.mark.parametrize(
    ("noted", "fits", "other"),
    [
        ("Int64", pa.array([1.0]), pa.array([2.5])),
        ("int64[pyarrow]", pa.array(["1"]), pa.array(["x"])),
        ("timestamp[us][pyarrow]", *(pa.array([n]).cast(pa.timestamp("ns")) for n in (1000, 1))),
        ("duration[s][pyarrow]", *(pa.array([n]).cast(pa.duration("us")) for n in (10**6, 1))),
    ],
)
def test_no_cell_of_a_column_replaced_since_pandas_noted_its_dtype_is_read_by_it(noted, fits, other):
    table = pa.Table.from_pandas(pd.DataFrame({"a": pd.Series([None], dtype=noted)}))
    found = [
        read_in_memory(table.slice(0, len(cells)).set_column(0, "a", cells)).frame.dtypes["a"]
        for cells in (fits[:0], fits, other)
    ]
    assert set(found) == {read_in_memory(pa.table({"a": fits})).frame.dtypes["a"]}


def damaged(cells):
    """An Arrow column of text from bytes, whether or not they are UTF-8."""
    ends = np.cumsum([0, *map(len, cells)]).astype("i4")
    return pa.Array.from_buffers(
        pa.string(), len(cells), [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(cells))]
    )


def coded(cells, column):
    """Dtype and codes of one Arrow column."""
    frame = read_in_memory(pa.table({"c": cells})).frame
    return frame.dtypes["c"], Codec.for_table(Schema({"c": column}), frame).encode(frame).codes[:, 0].tolist()


def test_text_that_is_not_utf8_costs_its_own_cell_only():
    text = damaged([b"a", b"secret \xff", b"b", b"secret \xfe", b"2015-01-02"])
    listed = Categorical(["a", "b"])
    for made in (
        text,
        text.cast(pa.large_string()),
        pa.DictionaryArray.from_arrays(pa.array(range(5)), text),
    ):
        dtype, codes = coded(made, listed)
        assert codes == [0, 2, 1, 2, 2]
        for row in range(5):
            alone, code = coded(made.slice(row, 1), listed)
            assert (family(alone), code) == (family(dtype), [codes[row]])
    assert coded(text, Datetime("2015-01-01", "2015-01-03", bins=3))[1] == [3, 3, 3, 3, 1]
    ordered = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), text, ordered=True)
    dtype, codes = coded(ordered, listed)
    assert (dtype.ordered, codes) == (True, [0, 2, 2, 1])


ARROW_TEXT = (
    pd.StringDtype("pyarrow"),
    pd.StringDtype("pyarrow", na_value=np.nan),
    pd.ArrowDtype(pa.string()),
)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ARROW_TEXT, ids=repr)
def test_text_of_pandas_that_is_not_utf8_costs_its_own_cell_only(dtype):
    """`pandas.read_parquet` does not look; to find or to show such a cell fails, and quotes it."""
    cells = [b"a", b"SECRET \xe9", b"b", b"a"] * 30
    text = pd.Series(dtype.__from_arrow__(pa.chunked_array([damaged(cells)])))
    table = pd.DataFrame({"who": text, "y": 1}).set_axis(range(7, 127))
    assert read_in_memory(table).frame.dtypes.equals(table.dtypes)
    assert read_in_memory(table).frame.index.equals(table.index)
    listed, rest = Categorical(["a", "b"]), {"y": Numerical(0, 1)}
    frame = read_in_memory(table).frame
    codes = Codec.for_table(Schema({"who": listed, **rest}), frame).encode(frame).codes[:, 0]
    assert codes.tolist() == [0, 2, 1, 0] * 30
    for settings in (
        {"schema": Schema({"who": listed, **rest})},
        {"schema": Schema({"who": Categorical(), **rest})},
        {"schema": Schema(rest), "unit": "who", "rows_per_unit": 2},
    ):
        PrivSyn(1.0, 1e-6, **settings).fit(table)
        parts = pytest.importorskip("dask.dataframe").from_map(lambda part: part, [table], meta=table[:0])
        PrivSyn(1.0, 1e-6, **settings).fit(parts)


@pytest.mark.parametrize("kind", [pa.list_(pa.date32()), pa.struct([("day", pa.date32())])], ids=str)
def test_no_date_within_a_cell_decides_whether_a_table_can_be_read(kind):
    """Python's dates end in the year 9999, and pandas makes such of those in lists and records."""

    def read(*days):
        cells = [[day] if pa.types.is_list(kind) else {"day": day} for day in days]
        return read_in_memory(pa.table({"a": pa.array(cells, kind)})).frame["a"]

    with_odd, without = read(1, 2**31 - 1, 2), read(1, 2)
    assert with_odd.dtype == without.dtype
    assert with_odd.isna().tolist() == [False, True, False]
    assert list(map(str, with_odd.drop(index=1))) == list(map(str, without))


def nested(values, kind):
    """Lists, records and entries of dictionaries, each with one of the values."""
    ends = pa.array(range(len(values) + 1), pa.int32())
    if kind == "map":
        keys = pa.array(["key"] * len(values))
        return pa.MapArray.from_arrays(ends, keys, values)
    return (
        pa.ListArray.from_arrays(ends, values)
        if kind == "list"
        else pa.StructArray.from_arrays([values], ["value"])
    )


@pytest.mark.parametrize("kind", ["list", "struct", "map"])
@pytest.mark.parametrize("what", ["text", "time"])
def test_an_invalid_value_within_a_cell_moves_no_other_cell(kind, what):
    """A slice of lists or records keeps the values inside all of them, so Arrow finds it invalid too."""
    odd = damaged([b"a", b"b", b"\xff", b"c"])
    if what == "time":
        odd = pa.array([1, 2, -1, 3], pa.int64()).view(pa.time64("us"))
    cells = nested(odd, kind)
    assert read_in_memory(pa.table({"a": cells})).frame["a"].isna().tolist() == [False, False, True, False]
    with pytest.raises(InputError, match="leave it out with kind: text"):
        coded(cells, Categorical(["x"], other="x"))


def test_a_folder_of_parquet_files_is_the_table_of_all_their_rows(tmp_path):
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": ["x", "y", "z"]})
    (tmp_path / "parts" / "more").mkdir(parents=True)
    frame.to_parquet(tmp_path / "whole.parquet")
    frame[:2].to_parquet(tmp_path / "parts" / "0.parquet")
    frame[2:].to_parquet(tmp_path / "parts" / "more" / "1.parquet")
    (tmp_path / "parts" / "notes.csv").write_text("a\n")
    for read in (lambda path: read_in_memory(path).frame, read_columns, draft_schema):
        whole, parts = read(tmp_path / "whole.parquet"), read(tmp_path / "parts")
        if isinstance(whole, pd.DataFrame):
            pd.testing.assert_frame_equal(parts, whole)
        assert isinstance(whole, pd.DataFrame) or parts == whole
    assert left_out(tmp_path / "parts") == (tmp_path / "parts" / "notes.csv",)
    frame.astype({"a": "float64"}).to_parquet(tmp_path / "parts" / "2.parquet")
    for read in (read_in_memory, read_columns):
        with pytest.raises(InputError, match="other columns or types than"):
            read(tmp_path / "parts")


def test_a_parquet_file_with_an_index_gives_columns_only(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="who"))
    frame.to_parquet(tmp_path / "t.parquet")
    assert read_in_memory(tmp_path / "t.parquet").frame.columns.tolist() == ["a"]


@pytest.mark.slow
@given(tables())
def test_codes_survive_every_kind_of_file(tmp_path_factory, table):
    schema, frame = table
    folder = tmp_path_factory.mktemp("files")
    codec = Codec.for_table(schema, frame)
    records = codec.encode(frame)
    write_table(codec.decode(records, rng()), folder / "t.csv.gz")
    # Text is compared without the marks that a file cannot show: an empty cell, or a quoted line end.
    plain = all(
        not isinstance(column, Categorical)
        or all(str(v).isprintable() and str(v).strip() for v in column.values)
        for column in schema.columns.values()
    )
    # Nor can it show that numbers are whole or decimals, unless the schema says so: their bins end elsewhere.
    plain &= all(
        not isinstance(column, Numerical) or column.integer or column.decimals is not None or column.step
        for name, column in schema.columns.items()
        if family(frame[name].dtype) in ("integer", "decimal")
    )
    if plain and all(name.isprintable() for name in frame) and not frame.select_dtypes("float32").size:
        again = read_in_memory(folder / "t.csv.gz", schema).frame
        codes = Codec.for_table(schema, again).encode(again).codes
        sizes = [encoder.size for encoder in codec.encoders]
        assert len(codes) == len(records)
        missing_left_out = np.where(records.codes == sizes, -1, records.codes)
        kept = missing_left_out >= 0
        assert np.array_equal(codes[kept], records.codes[kept])


one_line = names.filter(lambda name: "\n" not in name and "\r" not in name and "\0" not in name)


def test_without_a_schema_numbers_are_read_in_the_dialect_of_the_file(tmp_path):
    cells = {
        "whole": ["1.234.567", "12", "-1.000"],
        "real": ["1.234,5", ",5", "-7,"],
        "date": ["31.12.2020", "01.02.2021", "3.4.21"],
        "groups": ["1.2345", "12.34", "0.123"],
    }
    path = tmp_path / "t.csv"
    pd.DataFrame(cells).to_csv(path, index=False, sep=";")
    schema = Schema({}, csv=CsvFormat(delimiter=";", point=",", thousands="."))
    frame = read_in_memory(path, schema).frame
    assert frame["whole"].tolist() == [1234567, 12, -1000]
    assert frame["real"].tolist() == [1234.5, 0.5, -7]
    assert frame[["date", "groups"]].to_dict("list") == {name: cells[name] for name in ("date", "groups")}


@given(st.lists(one_line, min_size=1, max_size=3, unique=True), st.data())
def test_text_is_read_as_it_was_written(tmp_path_factory, columns, data):
    assume(len(columns) < 2 or not all(name.startswith(" ") for name in columns[1:]))  # "a, b": see `blank`
    row = st.lists(texts, min_size=len(columns), max_size=len(columns))
    rows = data.draw(st.lists(row, max_size=5))
    frame = pd.DataFrame(rows, columns=columns, dtype=TEXT).replace("", None)
    path = tmp_path_factory.mktemp("text") / "t.csv"
    write_table(frame, path)
    schema = Schema({name: Categorical() for name in columns})
    again = read_in_memory(path, schema).frame
    assert list(again.columns) == columns
    assert (
        again.astype(object).where(again.notna(), None).to_numpy().tolist()
        == frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    )


def test_odd_but_legal_files(tmp_path):
    long = "x" * 10_000
    path = file_of(tmp_path, f'\ufeff"größe, m",名\r\n"a\n""b""",{long}\r\n\r\n,\r\n')
    frame = read_in_memory(path, Schema({"größe, m": Categorical(), "名": Categorical()})).frame
    assert frame.columns.tolist() == ["größe, m", "名"]
    assert frame.iloc[0].tolist() == ['a\n"b"', long]
    assert frame.iloc[1].isna().all()
    assert len(read_in_memory(file_of(tmp_path, "a,b\n")).frame) == 0
    assert len(read_in_memory(file_of(tmp_path, "a,b\n1,2")).frame) == 1
    assert read_in_memory(file_of(tmp_path, "a\n1\n", "T.CSV")).frame["a"].tolist() == [1]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("none.csv", None, "there is no such file"),
        ("t.xls", b"x", "the ending is none of .csv, .csv.gz, .parquet"),
        ("t.csv", b"", "is empty"),
        ("t.csv", b"\n\n", "is empty"),
        ("t.csv", b"a,b,a\n1,2,3\n", "columns 1 and 3 have the same name"),
        ("t.csv", b"secret,secret\n1,2\n", "columns 1 and 2 have the same name"),
        ("t.csv", b'a,"b\n1,secret\n2,3\n', "its header does not end with its line"),
        ("t.csv", b'a,"b\n1,"secret"\n2,"3\n', "its header does not end with its line"),
        ("t.csv", b'a,b\n1,"secret\n2,3\n', "some quote is not closed"),
        ("t.csv.gz", gzip.compress(b'a,b\n1,"secret\n2,3\n', mtime=0), "some quote is not closed"),
        ("t.csv", b"a,b\n1,secret,3\n", "the row in line 2 is longer or shorter than the header"),
        ("t.csv", b"\na,b\n1,2\nsecret\n", "the row in line 4 is longer or shorter than the header"),
        ("t.csv", b'a,b\n1,"2\n3"\n\n"s\n",secret,3\n', "the row in line 5 is longer or shorter"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\nsecret\n", mtime=0), "the row in line 3 is longer or shorter"),
        ("t.csv", "a,b\nsecret,é\n".encode("latin-1"), "not text in UTF-8"),
        ("t.csv", "a,b\n1,2\n".encode("utf-16"), "is text in UTF-16: save it as CSV in UTF-8"),
        ("t.csv", b"PAR1\x15\x04secret", "is a Parquet file: let its name end in .parquet"),
        ("t.csv", b"PK\x03\x04secret", "is an Excel or a ZIP file"),
        ("t.csv", gzip.compress(b"a\nsecret\n", mtime=0), "let its name end in .csv.gz"),
        ("t.csv", b'[{"a": "secret"}]', "is JSON: convert it to CSV or Parquet"),
        ("t.csv", bytes(range(256)), "UTF-8|cannot be read|quote"),
        ("t.csv.gz", b"secret", "cannot be read as CSV"),
        (
            "t.csv.gz",
            gzip.compress(b"a,b\n" + b"1,secret\n" * 9999, mtime=0)[:-60],
            "cannot be read as CSV|not a table",
        ),
        ("t.parquet", b"secret", "not a Parquet file"),
        ("t.parquet", b"", "not a Parquet file"),
    ],
)
def test_what_is_no_table_is_one_line_without_a_cell(tmp_path, name, content, complaint):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with refuses(complaint) as error:
        read_in_memory(path)
    assert str(path) in str(error.value)
    assert "secret" not in str(error.value)


def test_empty_folders_and_strangers_are_refused(tmp_path):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(InputError, match=r"is a folder without a file that ends in \.parquet"):
        read_in_memory(tmp_path / "t.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="is a folder or device"):
        read_in_memory(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match=r"a table is a pandas or polars DataFrame, .* not a list"):
        read_in_memory([1, 2])
    double = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(InputError, match="columns 1 and 2 have the same name"):
        read_in_memory(double)


def test_a_column_or_a_row_is_no_table_and_is_not_shown():
    frame = pd.DataFrame({"a": ["secret", "b"]}, index=["secret", "x"])
    polars = pytest.importorskip("polars")
    for series in (frame["a"], frame.iloc[0], polars.Series("a", ["secret"])):
        for read in (read_in_memory, read_columns, PrivSyn(1.0).fit):
            with refuses(r"a Series is no table: give a data frame, as df") as error:
                read(series)
            assert "secret" not in str(error.value)
    with pytest.raises(InputError, match="not a ChunkedArray"):
        read_in_memory(pa.chunked_array([["secret"]]))


@pytest.mark.parametrize("text", ["a,b\n1,secret", "secret," * 50])
def test_a_table_given_for_its_path_is_not_shown(text):
    with pytest.raises(InputError, match=r"^the ending is none of") as error:
        read_in_memory(text)
    assert "secret" not in str(error.value)


def test_a_csv_looks_as_people_write_it(tmp_path):
    frame = pd.DataFrame(
        {
            "age": pd.array([39, None], dtype="Int64"),
            "zip": pd.Series(["01234", 'a,"b"'], dtype=TEXT),
            "born": pd.to_datetime(["1980-02-29", "2000-01-01"]),
            "owner": pd.array([True, None], dtype="boolean"),
            "score": [0.5, np.nan],
        }
    ).set_index(pd.Index([5, 6]))
    write_table(frame, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes().decode() == (
        'age,zip,born,owner,score\n39,01234,1980-02-29,True,0.5\n,"a,""b""",2000-01-01,,\n'
    )


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_the_same_table_gives_the_same_bytes(tmp_path, monkeypatch, name):
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    write_table(frame, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    monkeypatch.setattr("time.time", lambda: 0.0)
    write_table(frame, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first
    assert names_in(tmp_path) == [name]


def fail(target, error):
    with atomic_path(target) as part:
        part.write_text("half")
        raise error


def test_nothing_half_written_is_left(tmp_path):
    target = tmp_path / "t.txt"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        fail(target, KeyboardInterrupt())
    assert target.read_text() == "old"
    with pytest.raises(InputError, match=r"t.txt: cannot be written \(No space left on device\)"):
        fail(target, OSError(28, "No space left on device"))
    assert names_in(tmp_path) == ["t.txt"]
    with atomic_path(target) as part:
        part.write_text("new")
    assert target.read_text() == "new"


def test_a_link_still_leads_to_the_file(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    with atomic_path(tmp_path / "link.txt") as part:
        part.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_where_nothing_can_be_written_is_said(tmp_path):
    frame = pd.DataFrame({"a": [1]})
    with pytest.raises(InputError, match="there is no folder"):
        write_table(frame, tmp_path / "none" / "t.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        write_table(frame, tmp_path / "d.csv")
    with pytest.raises(InputError, match="the ending is none of"):
        write_table(frame, tmp_path / "t.xls")
    with pytest.raises(InputError, match="mixes types"):
        write_table(pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="cannot be written"):
        write_table(frame, tmp_path / ("x" * 300 + ".csv"))
    assert names_in(tmp_path) == ["d.csv"]


def test_a_draft_says_what_it_read(tmp_path):
    rows = [
        f"{17 + i % 60},{i % 3},{'FM?'[i % 3]},name {i},{i / 100},2015-0{1 + i % 9}-01" for i in range(300)
    ]
    path = file_of(tmp_path, "age,kids,sex,name,score,day\n" + "\n".join(rows) + "\n")
    text = draft_text(path)
    assert text.startswith("# DRAFT, made from the rows")
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    schema = read_schema(tmp_path / "s.yaml")
    assert schema == Schema(
        {
            "age": Numerical(17, 76, integer=True, nullable=False),
            "kids": Numerical(0, 2, integer=True, nullable=False),
            "sex": Categorical(["F", "M"]),
            "name": Categorical(nullable=False),
            "score": Numerical(0.0, 3.0, integer=False, decimals=2, nullable=False),
            "day": Datetime("2015-01-01", "2015-09-30", nullable=False),
        },
        missing="?",
    )


def test_a_real_column_stays_real_through_its_draft(tmp_path):
    path = file_of(tmp_path, "a,b\n" + "".join(f"{i / 2},{i}.{i:07}\n" for i in range(201)))
    (tmp_path / "s.yaml").write_text(draft_text(path), encoding="utf-8")
    schema = read_schema(tmp_path / "s.yaml")
    assert (schema.columns["a"].low, schema.columns["a"].high) == (0, 100)
    assert read_in_memory(path, schema).frame.dtypes.tolist() == [np.float64, np.float64]


def test_a_draft_of_a_frame_fits_its_dtypes():
    frame = pd.DataFrame(
        {
            "small": np.arange(256, dtype="uint8"),
            "flag": [True, False] * 128,
            "size": pd.Categorical(["s", "l"] * 128, categories=["s", "m", "l"], ordered=True),
            "at": pd.date_range("2015-01-01", periods=256, freq="h"),
            "iso": ["2015-01-01", "2016-02-02"] * 128,
            "empty": [None] * 256,
            "lists": [[1]] * 256,
            "half": np.linspace(0, 1, 256),
            "number": pd.Series(range(256), dtype=object),
            "large": np.arange(256) + 2**60,
            "person_id": np.arange(256) + 2**60,
            "clock": pd.Series([time(8, 30)] * 256, dtype=pd.ArrowDtype(pa.time64("us"))),
            "price": pd.Series([Decimal(i) / 100 for i in range(256)], dtype=MONEY),
            "span": pd.Series(pd.to_timedelta(range(256), unit="s")),
        }
    )
    columns = draft_schema(frame).columns
    assert columns["small"] == Numerical(0, 255, integer=True, nullable=False)
    assert columns["flag"] == Categorical([False, True], nullable=False)
    assert columns["size"] == Categorical(["s", "m", "l"], nullable=False)
    assert columns["at"] == Datetime("2015-01-01", "2015-01-31 23:59:59", step="1h", nullable=False)
    assert columns["iso"] == Datetime("2015-01-01", "2016-02-29", nullable=False)
    assert columns["empty"] == Categorical()
    assert columns["half"] == Numerical(0.0, 1.0, integer=False, nullable=False)
    assert columns["number"] == Numerical(0, 300, integer=True, nullable=False)
    assert columns["span"] == Duration("0:00", "1:00", nullable=False)
    assert columns["clock"] == Time(nullable=False)
    assert columns["price"] == Numerical(0, 3, decimals=2, nullable=False)
    assert columns["person_id"] == Identifier()
    for name in ("lists", "large"):
        assert columns[name] == Categorical(nullable=False)


@given(tables())
def test_a_draft_never_fails_and_fits(table):
    frame = pd.concat([table[1]] * 5, ignore_index=True)  # no value is rare
    schema = draft_schema(frame)
    listed = {name: column for name, column in schema.columns.items() if column.is_public}
    if listed:
        misfits = Codec.for_table(Schema(listed), frame[list(listed)]).misfits(frame)
        # The codec reads no words for missing cells: whoever reads the table has made these missing.
        unread = {name: (np.inf, -np.inf, *column.missing) for name, column in listed.items()}
        expected = {name: sum(cell in unread[name] for cell in frame[name].dropna()) for name in listed}
        assert misfits == expected


def test_amounts_that_name_another_column_keep_their_format():
    frame = pd.DataFrame({"paid": ["$0.00"] * 9 + ["$0.02", "$0.01"], "late": [0] * 10 + [1]})
    column = draft_schema(pd.concat([frame] * 5, ignore_index=True)).columns["paid"]
    assert isinstance(column, Numerical)
    assert column.format == "$1234.50"


def test_a_check_counts_what_does_not_fit(table):
    assert check_schema(table, SCHEMA) == [
        "column 'age': 1 of 5 cells do not fit: they are clipped to the bounds, or missing if unreadable",
        "column 'zip': 1 of 5 cells do not fit: they become missing",
        "column 'kids': 1 of 5 cells do not fit: they become missing",
        "column 'score': 1 of 5 cells do not fit: they are clipped to the bounds, or missing if unreadable",
        "column 'born': 1 of 5 cells do not fit: they are clipped to the bounds, or missing if unreadable",
    ]
    frame = pd.DataFrame({"a": [1, 2, 9]})
    assert check_schema(frame, Schema({"a": Numerical(0, 9)})) == ["every cell fits"]


@needs_data
@pytest.mark.parametrize(
    "name", ["adult", "br2000", "hmeq", "hotel-bookings", "kc-house", "military", "nltcs"]
)
def test_real_tables_go_out_and_in_again(tmp_path, name):
    path = tmp_path / "head.csv"
    with gzip.open(DATA / f"{name}.csv.gz", "rt", encoding="utf-8") as file:
        path.write_text("".join(islice(file, 3000)), encoding="utf-8")
    draft = draft_schema(path)
    source = read_in_memory(path, draft)
    kept = {column: facts for column, facts in draft.columns.items() if facts.is_public}
    schema, frame = Schema(kept, missing=draft.missing), source.frame[list(kept)]
    codec = Codec.for_table(schema, frame)
    for column, misfits in codec.misfits(frame).items():  # a draft lists no value of fewer than five rows
        rows = frame[column].value_counts() if isinstance(kept[column], Categorical) else pd.Series([0])
        assert misfits == rows[rows < FEW_ROWS].sum()
    records = codec.encode(frame)
    write_table(codec.decode(records, rng()), tmp_path / "t.csv")
    again = read_in_memory(tmp_path / "t.csv", schema).frame
    assert np.array_equal(codec.encode(again).codes, records.codes)


@needs_data
def test_the_schema_of_adult_fits_adult():
    schema = read_schema(Path(__file__).parents[3] / "datasets" / "adult" / "schema.yaml")
    assert check_schema(DATA / "adult.csv.gz", schema) == ["every cell fits"]
    assert (
        from_plain(
            Codec.for_table(schema, read_in_memory(DATA / "adult.csv.gz", schema).frame).to_dict()["schema"]
        )
        == schema
    )


ODD = {
    "a date within a day": (pa.date64(), [0, 86_400_000], 86_400_001),
    "a time after midnight": (pa.time64("us"), [1, 2], 86_400 * 10**6 + 5),
}


@pytest.mark.parametrize(("kind", "sound", "odd"), ODD.values(), ids=ODD)
def test_a_cell_that_is_none_of_its_type_changes_no_other_and_no_dtype(kind, sound, odd):
    """Arrow does not check what a producer or a file says; one such cell once emptied the whole column."""

    def read(numbers):
        return read_in_memory(pa.table({"a": pa.array(numbers, pa.int64()).view(kind)})).frame["a"]

    with_odd, without = read([sound[0], odd, sound[1]]), read(sound)
    assert with_odd.dtype == without.dtype
    assert with_odd.isna().tolist() == [False, True, False]
    assert with_odd.drop(index=1).tolist() == without.tolist()


IN_DICTIONARIES = {
    "not a number": (pa.float64(), [0.0, 2.5], float("nan")),
    "a zero below zero": (pa.float32(), [0.0, 2.5], -0.0),
    "a day after the year 9999": (pa.date32(), [0, 1], 2**31 - 1),
}


@pytest.mark.parametrize(("kind", "usual", "odd"), IN_DICTIONARIES.values(), ids=IN_DICTIONARIES)
def test_no_cell_decides_whether_a_dictionary_can_be_read_nor_as_what(kind, usual, odd, tmp_path):
    """Categories of pandas hold neither: such a cell once made the whole table unreadable."""

    def read(numbers):
        cells = (
            pa.array(numbers, pa.int32()).view(kind) if pa.types.is_date(kind) else pa.array(numbers, kind)
        )
        table = pa.table({"a": cells.dictionary_encode()})
        pq.write_table(table, tmp_path / "t.parquet")
        frame = read_in_memory(table).frame
        assert read_in_memory(tmp_path / "t.parquet").frame.dtypes["a"] == frame.dtypes["a"]
        for source in (table, tmp_path / "t.parquet"):
            assert read_columns(source).dtypes["a"] == frame.dtypes["a"]
        return frame["a"]

    with_odd, without = read([usual[0], odd, usual[1]]), read(usual)
    assert with_odd.dtype == without.dtype
    assert pa.array(with_odd.array).take([0, 2]).equals(pa.array(without.array))


def test_a_dictionary_of_numbers_comes_out_as_one():
    table = pa.table({"a": pa.array([0.5, 2.5, None] * 20).dictionary_encode()})
    model = PrivSyn(1.0, 1e-6, Schema({"a": Categorical([0.5, 2.5])}), method="published").fit(table)
    assert model.sample(9).schema == table.schema


@pytest.mark.parametrize(
    ("kind", "low", "odd"),
    [
        (pa.date64(), 0, 86_400_001),
        (pa.date64(), 0, 5),
        (pa.time32("s"), 1, 86_405),
        (pa.time32("ms"), 0, -7),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_rows_are_read_alike_whichever_others_stand_above_or_below(kind, low, odd, place):
    """What is read of two tables, one above the other, is what is read of each."""

    def cells(numbers):
        whole = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.chunked_array([pa.array(numbers, whole).view(kind)])

    def read(made):
        return read_in_memory(pa.table({"a": made})).frame

    numbers = [low, low, low]
    numbers[place] = odd
    for a, b in ((numbers, [low]), ([low], numbers), (numbers, [odd]), ([odd], [low])):
        one, two = cells(a), cells(b)
        both = pa.chunked_array([*one.chunks, *two.chunks])
        above = pd.concat([read(one), read(two)], ignore_index=True)
        pd.testing.assert_frame_equal(read(both), above)
        pd.testing.assert_frame_equal(read(both.combine_chunks()), above)


def test_a_lazy_frame_of_polars_is_the_table_that_it_makes():
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"age": [20, None, 40], "sex": ["f", "m", "f"]})
    lazy = read_in_memory(table.lazy().filter(polars.col("sex").is_not_null()))
    whole = read_in_memory(table)
    assert lazy.form == whole.form
    pd.testing.assert_frame_equal(lazy.frame, whole.frame)
    secret = table.lazy().select(polars.col("sex").cast(polars.Int64))
    with refuses("cannot be collected"):
        read_in_memory(secret)
    assert lazy.public_inputs == ("that the lazy frame can be collected",)
    assert whole.public_inputs == ()


def test_that_a_stream_can_be_read_is_public():
    """A relation computes its cells when they are read, and one of them may end that."""
    duckdb = pytest.importorskip("duckdb")
    table, connection = pa.table({"x": ["1", "2", "x7"]}), duckdb.connect()
    connection.register("t", table)
    relation = connection.sql("select cast(x as integer) x from t where x < '9'")
    assert read_in_memory(relation).public_inputs == ("that the Arrow stream can be read to its end",)
    assert read_in_memory(table).public_inputs == ()
    failing = connection.sql("select cast(x as integer) x from t")
    with pytest.raises(InputError, match="the Arrow stream cannot be read to its end: read it yourself"):
        read_in_memory(failing)


def test_a_query_of_duckdb_is_an_arrow_table():
    duckdb = pytest.importorskip("duckdb")
    people = duckdb.arrow(pa.table({"age": [20, None, 40], "sex": ["f", "m", "f"]}))
    relation = people.filter("sex = 'f'").project("age, sex")
    read = read_in_memory(relation)
    assert read.form.kind == "pyarrow"
    assert read.frame["age"].tolist() == [20, 40]


def test_a_dict_is_refused_with_what_to_do():
    for tables_or_columns in ({"age": [1, 2]}, {"homes": pd.DataFrame({"age": [1]})}):
        with pytest.raises(InputError, match=r"give pd.DataFrame.*schema=Database.*privsyn schema FOLDER"):
            PrivSyn(1.0, 1e-9).fit(tables_or_columns)
