"""What cannot work is refused before any budget is spent, and no value that is found makes a run fail."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from refusals import refuses

from privsyn import Categorical, Database, Datetime, Identifier, Numerical, PrivSyn, Schema, Table, Text
from privsyn.errors import ColumnWarning
from privsyn.table.drafting.draft import draft_schema


@pytest.mark.parametrize(
    "schema",
    [Schema({"a": Categorical()}, missing=""), Schema({"a": Categorical(missing="")})],
    ids=["of the schema", "of the column"],
)
def test_an_empty_text_that_is_a_mark_for_missing_is_not_found(schema):
    """It used to be found, and then refused: after the budget was spent."""
    table = pd.DataFrame({"a": ["", "x"] * 600})
    assert set(PrivSyn(5.0, 1e-6, schema).fit(table).sample(300)["a"].dropna()) == {"x", "(other)"}


def test_an_empty_text_that_is_no_mark_is_a_value():
    table = pd.DataFrame({"a": ["", "x"] * 600})
    model = PrivSyn(5.0, 1e-6, Schema({"a": Categorical()})).fit(table)
    assert set(model.release_.codec.schema.columns["a"].values) == {"", "x", "(other)"}


NO_COLUMN = {
    **{
        f"{kind} of pandas": pd.DataFrame({"a": pd.Series([None] * 9, dtype=pd.ArrowDtype(kind))})
        for kind in (pa.string_view(), pa.list_view(pa.int8()), pa.month_day_nano_interval())
    },
    **{
        str(kind): pa.table({"a": pa.nulls(9, kind)})
        for kind in (pa.list_(pa.int64()), pa.struct({"a": pa.int64()}), pa.map_(pa.string(), pa.int64()))
    },
    "complex": pd.DataFrame({"a": [1 + 2j] * 9}),
    "period": pd.DataFrame({"a": pd.period_range("2020", periods=9, freq="D")}),
    "interval": pd.DataFrame({"a": pd.interval_range(0, 9)}),
    "sparse": pd.DataFrame({"a": pd.Series([1.0, 0.0] * 9, dtype="Sparse[float]")}),
}


@pytest.mark.parametrize("table", NO_COLUMN.values(), ids=NO_COLUMN)
@pytest.mark.parametrize("schema", [None, Schema({"a": Categorical(["x"])})], ids=["open", "known"])
def test_a_type_that_no_column_fits_is_refused_in_one_line(table, schema):
    with refuses(r"its dtype is .*: convert it|the Arrow type .* is not supported: cast it to "):
        PrivSyn(1.0, 1e-9, schema).fit(table)


TENS = pd.ArrowDtype(pa.decimal128(5, -2))


@pytest.mark.parametrize(
    ("cells", "column", "words"),
    [
        (pd.Series([Decimal(1200)] * 9, dtype=TENS), Numerical(0, 9900), "convert it to integers"),
        (pd.Series([Decimal(1200)] * 9, dtype=TENS), Numerical(), "convert it to integers"),
        (pd.Series([0.5] * 9, dtype=np.float16), Categorical([0.5, 1.0]), "convert it to float32"),
        (pd.Series([0.5] * 9, dtype=np.float16), Categorical(), "convert it to float32"),
    ],
    ids=["decimal, bounds", "decimal, no bounds", "float16, values", "float16, no values"],
)
def test_a_dtype_that_cannot_come_out_is_refused_before_anything_is_spent(cells, column, words):
    with refuses(words):
        PrivSyn(1.0, 1e-9, Schema({"a": column})).fit(pd.DataFrame({"a": cells}))


BYTES = [
    pa.array([b"1", b"2"] * 200, pa.binary()),
    pa.array([b"1", b"2"] * 200, pa.large_binary()),
    pa.array([b"1", b"2"] * 200, pa.binary(1)),
    pa.array([b"1", b"2"] * 200, pa.binary()).dictionary_encode(),
]


@pytest.mark.parametrize("cells", BYTES, ids=["bytes", "long", "fixed", "dictionary"])
@pytest.mark.parametrize("column", [Numerical(0, 9), Numerical(), Categorical(["1", "2"]), Datetime()])
def test_binary_columns_are_refused_before_anything_is_spent(cells, column):
    """Noise put a number into a synthetic cell, which the binary type then refused in `sample`."""
    table = pa.table({"a": cells, "n": [1, 2] * 200})
    with refuses(r"column 'a': its dtype is .*binary.*: convert it to "):
        PrivSyn(1.0, 1e-9, Schema({"a": column, "n": Numerical(0, 9)})).fit(table)


@pytest.mark.parametrize("cells", BYTES, ids=["bytes", "long", "fixed", "dictionary"])
def test_binary_columns_are_left_out_unless_they_are_identifiers(cells):
    table = pa.table({"photo": cells, "id": cells, "n": [1, 2] * 200})
    with pytest.warns(ColumnWarning, match="'photo'"):
        made = PrivSyn(1.0, 1e-9).fit(table).sample(10)
    assert made.column_names == ["id", "n"]
    assert len(set(made["id"].to_pylist())) == 10
    drafted = draft_schema(table)
    assert (drafted.columns["photo"], drafted.columns["id"]) == (Text(), Identifier())


def test_numbers_in_objects_of_bytes_are_read():
    table = pd.DataFrame({"a": pd.Series([b"3", b"7", b"\xff"] * 200, dtype=object)})
    schema = Schema({"a": Numerical(0, 9, integer=True)})
    made = PrivSyn(50.0, 1e-9, schema, seed=1).fit(table).sample(600)["a"]
    assert set(made.dropna()) == {3, 7}
    assert abs(made.isna().sum() - 200) < 10


def test_of_marks_that_are_numbers_in_the_table_fit_warns_and_of_those_in_a_csv_it_does_not(tmp_path):
    """In a CSV such cells are missing. In a frame they are numbers, which would be clipped to a bound."""
    since = np.where(np.arange(400) % 5, 1990, -9)
    table = pd.DataFrame({"since": since, "n": 1})
    schema = Schema({"since": Numerical(1940, 2030, missing=["-9"]), "n": Numerical(0, 9)}, missing=["?"])
    with pytest.warns(ColumnWarning, match="in 'since'. If some"):
        PrivSyn(9.0, 1e-6, schema, seed=0).fit(table)
    table.to_csv(tmp_path / "rows.csv", index=False)
    made = PrivSyn(9.0, 1e-6, schema, seed=0).fit(tmp_path / "rows.csv").sample(400, seed=1)
    assert 0.1 < made["since"].isna().mean() < 0.3
    person = Table(key="who")
    rows = Table(schema, parent="persons", link="who")
    folder = tmp_path / "both"
    folder.mkdir()
    table.assign(who=range(400)).to_csv(folder / "rows.csv", index=False)
    pd.DataFrame({"who": range(400)}).to_csv(folder / "persons.csv", index=False)
    PrivSyn(9.0, 1e-6, Database({"persons": person, "rows": rows}), seed=0).fit(folder)


@pytest.mark.parametrize("rows", [0, 400])
def test_a_strict_order_of_whole_numbers_without_bounds_has_room_for_its_rows(rows):
    """Bounds with room for two numbers left none for a third: every sample failed."""
    number = np.arange(rows) % 3
    table = pd.DataFrame({"a": number, "b": number + 1, "c": number + 2}, dtype="int16")
    schema = Schema(dict.fromkeys("abc", Numerical()), constraints=["a < b < c"])
    made = PrivSyn(0.02, 1e-9, schema, seed=1).fit(table).sample(50)
    assert ((made["a"] < made["b"]) & (made["b"] < made["c"])).all()


def test_an_order_that_only_missing_cells_keep_is_refused_if_the_dtype_holds_none():
    schema = Schema(dict.fromkeys("abc", Numerical(0, 1, integer=True)), constraints=["a < b < c"])
    table = pd.DataFrame({"a": [0], "b": [1], "c": [1]})
    with refuses("no row can keep constraint 1"):
        PrivSyn(1.0, schema=schema).fit(table)
    PrivSyn(1.0, schema=schema).fit(table.astype("Int64"))


@pytest.mark.parametrize("far", [0, 2**24])
def test_a_sum_of_columns_without_bounds_stays_within_its_dtype(far):
    """Bounds that are found end at powers of 2: their sum was too large after the budget was spent."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 16_400, 400), "b": rng.integers(0, 16_300, 400)})
    table = table.assign(t=table["a"] + table["b"]).clip(upper=2**15 - 1).astype({"t": "int16"})
    table["a"] += far
    schema = Schema(dict.fromkeys("abt", Numerical()), constraints=["t == a + b"])
    made = PrivSyn(3.0, 1e-9, schema, seed=1).fit(table).sample(200)
    assert (made["t"] == made["a"] + made["b"]).all()
    assert made["t"].dtype == "int16"
