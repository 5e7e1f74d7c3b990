"""No row-dependent property of a container reaches what comes out: no width, order, chunk, index or metadata.

Two neighbouring tables are held in each kind of container, and learnt with the same released answers
(`replay`). Then every byte that the two runs leave must be the same: model, ledger, samples, page and screen.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from command import run
from pyarrow import feather
from replay import Tape

from privsyn import Categorical, Datetime, InputError, Numerical, PrivSyn, Schema
from privsyn.table.io.read_in_batches import DATA_SET
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.schema.yaml_file import to_yaml

JOBS = [f"job {place:03}" for place in range(126)]
"""With one more value pandas' indices are int16, no longer int8."""

UNUSED = [f"job {place:03}" for place in range(200, 329)]
"""With these and one more value the indices of a polars Enum are uint16, no longer uint8."""

NARROW = pa.dictionary(pa.int8(), pa.string())

SCHEMA = Schema(
    {
        "job": Categorical(JOBS),
        "level": Categorical(["low", "mid", "high"]),
        "age": Numerical(0, 99, integer=True),
        "pay": Numerical(0, 5000, decimals=2),
        "start": Datetime("2015-01-01", "2020-12-31"),
        "flag": Categorical([False, True]),
    }
)

PERSONS = {
    "rare and extreme": (150, ["a rare job", "mid", 10**12, -1e300, pd.Timestamp("9998-12-31"), None]),
    "first, and all missing": (0, [None] * 6),
}
"""The place of a person's row, which leaves a gap in the index, or decides an order; and its cells."""


def neighbours(person: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table, and the same table without one row."""
    rows = np.arange(3 * len(JOBS))
    others = pd.DataFrame(
        {
            "job": pd.Series(np.resize(JOBS, len(rows)), dtype="str"),
            "level": pd.Series(np.resize(["low", "mid", "high", "high"], len(rows)), dtype="str"),
            "age": pd.array(20 + rows % 60, "Int64"),
            "pay": 1000.25 + rows,
            "start": np.datetime64("2016-02-29", "s") + (rows % 900).astype("timedelta64[D]"),
            "flag": pd.array(rows % 3 == 0, "boolean"),
        }
    )
    place, cells = PERSONS[person]
    row = pd.DataFrame(dict(zip(others, ([cell] for cell in cells), strict=True))).astype(others.dtypes)
    table = pd.concat([others[:place], row, others[place:]], ignore_index=True)
    return table, table.drop(index=place)


# --- six containers and more: each decides all that it can by the rows ------------------------------------


def in_pandas(table: pd.DataFrame) -> pd.DataFrame:
    held = table.astype(
        {"job": "category", "level": pd.CategoricalDtype(table["level"].dropna().unique(), ordered=True)}
    )
    held.attrs["rows"] = len(held)
    return held


def in_polars(table: pd.DataFrame) -> pl.DataFrame:
    jobs = pl.Enum([*UNUSED, *table["job"].dropna().unique()])
    frame = pl.from_pandas(table.reset_index(drop=True))
    frame = frame.with_columns(pl.col("job").cast(jobs), pl.col("level").cast(pl.Categorical))
    return pl.concat([frame[start : start + 100] for start in range(0, len(frame), 100)], rechunk=False)


def in_arrow(table: pd.DataFrame) -> pa.Table:
    whole = pa.Table.from_pandas(in_pandas(table))  # notes the index, or has it as a column
    return pa.Table.from_batches(whole.to_batches(max_chunksize=100))


def in_arrow_dtypes(table: pd.DataFrame) -> pd.DataFrame:
    return in_arrow(table).to_pandas(types_mapper=pd.ArrowDtype)


def in_arrow_file(table: pd.DataFrame) -> ds.Dataset:
    feather.write_feather(in_arrow(table), "data.arrow", chunksize=100)
    return ds.dataset("data.arrow", format="ipc")


def in_parquet(table: pd.DataFrame) -> Path:
    in_pandas(table).to_parquet("data.parquet", row_group_size=100)
    return Path("data.parquet")


def in_parquet_of_polars(table: pd.DataFrame) -> Path:
    in_polars(table).write_parquet("data.parquet", row_group_size=100)
    return Path("data.parquet")


def in_csv(table: pd.DataFrame) -> Path:
    table.to_csv("data.csv", index=False)
    return Path("data.csv")


def in_folder(table: pd.DataFrame) -> Path:
    """The second file has another index, and other categories, if a person's row is before or in it."""
    Path("data").mkdir()
    for start in (0, 130, 260):
        in_pandas(table[start : start + 130]).to_parquet(f"data/{start}.parquet")
    return Path("data")


def in_runs(table: pd.DataFrame) -> pa.Table:
    """Columns in runs of equal cells, and flags of a byte each."""
    whole = pa.Table.from_pandas(table, preserve_index=False)
    for place, (name, cells) in enumerate(zip(whole.column_names, whole.columns, strict=True)):
        if name == "flag":
            whole = whole.set_column(place, name, pa.chunked_array([in_bytes(cells)]))
        elif name != "start":
            whole = whole.set_column(place, name, pc.run_end_encode(cells))
    return whole


def in_bytes(cells: pa.ChunkedArray) -> pa.ExtensionArray:
    return pa.ExtensionArray.from_storage(pa.bool8(), cells.cast(pa.int8()).combine_chunks())


def in_runs_of_pandas(table: pd.DataFrame) -> pd.DataFrame:
    return in_runs(table).replace_schema_metadata().to_pandas(types_mapper=pd.ArrowDtype)


CONTAINERS = {
    "pandas": in_pandas,
    "polars": in_polars,
    "Arrow": in_arrow,
    "Parquet file": in_parquet,
    "CSV file": in_csv,
    "folder of Parquet files": in_folder,
    "pandas in Arrow's dtypes": in_arrow_dtypes,
    "Arrow file as a data set": in_arrow_file,
    "Parquet file of polars": in_parquet_of_polars,
    "run-end encoded in Arrow": in_runs,
    "run-end encoded in pandas": in_runs_of_pandas,
}
of_orders = pytest.mark.filterwarnings("ignore::privsyn.errors.ColumnWarning")  # open ones are left out
each = pytest.mark.parametrize("hold", CONTAINERS.values(), ids=CONTAINERS)


ENDINGS = ("privsyn", "json", "txt", "pickle", "csv", "parquet")
"""Of the files that `left_by_python` writes."""


def left_by_python(source: object, schema: Schema | None, **settings: object) -> None:
    """Write all that a model says or gives to files.

    A report and a loaded model follow from a release and from its file, whose bytes are compared.
    """
    told = []
    model = PrivSyn(1.0, 1e-9, schema, seed=3, progress=lambda *step: told.append(step), **settings)
    model.fit(source)
    Path("python.txt").write_text("\n".join(map(str, (model, model.release_, model.ledger_, told))))
    model.save("python.privsyn")
    Path("python.json").write_text(model.ledger_.to_json())
    Path("python.pickle").write_bytes(pickle.dumps((model.release_, model.sample(200, seed=1))))
    for ending in ("csv", "parquet"):
        model.release_.sample_to(f"python.{ending}", 200, seed=1)


def left_by_commands(
    source: Path, schema: Schema | None, capfd: pytest.CaptureFixture[str], *method: str
) -> str:
    """What commands that read a table write, and what they say."""
    known = () if schema is None else ("--schema", "schema.yaml")
    if schema is not None:
        Path("schema.yaml").write_text(to_yaml(schema))
    files = ("--model", "m.privsyn", "--ledger", "ledger.json", "--public-report", "page.html")
    said = [
        run(capfd, "synth", source, "synth.parquet", "--epsilon", 1, "--seed", 3, *known, *files, *method),
        run(capfd, "plan", source, "--epsilon", 1, *known),
        run(capfd, "schema", source, "--from-dtypes"),
    ]
    assert [outcome.code for outcome in said] == [0] * 3
    for path in Path().glob("*.budget.jsonl"):  # a run has a name and a time, of which its rows know nothing
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text(json.dumps([line | dict.fromkeys(("begins", "ends", "when")) for line in lines]))
    return repr(said)


Replay = Callable[[Sequence[Any], Callable[[Any], Any], Callable[[Any], Any]], dict[str, list[bytes | None]]]


@pytest.fixture
def replay(tmp_path, monkeypatch, capfd) -> Replay:
    """A function that learns two tables with the same answers, and says what of all they leave differs.

    Each is held by `hold`, in a folder of its own, and handed to `leave`.
    """

    def replay(tables, hold, leave):
        tape, left = Tape(), []
        for name, table, answers in zip("ab", tables, (tape.record, tape.replay), strict=True):
            (tmp_path / name).mkdir()
            monkeypatch.chdir(tmp_path / name)
            source = hold(table)
            inputs = set(Path().rglob("*"))
            capfd.readouterr()
            with answers():
                said = leave(source)
            files = {str(path): path.read_bytes() for path in set(Path().rglob("*")) - inputs}
            left.append(files | {"screen": repr((said, capfd.readouterr())).encode()})
        assert {f"python.{ending}" for ending in ENDINGS} < left[0].keys()
        pairs = {name: [files.get(name) for files in left] for name in left[0].keys() | left[1].keys()}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    return replay


@pytest.mark.slow
@of_orders
@pytest.mark.parametrize("person", PERSONS)
@pytest.mark.parametrize("name", CONTAINERS)
def test_neighbours_with_the_same_answers_leave_the_same_bytes(name, person, replay, capfd):
    """Each container with each person and with each schema, in turn. A method sees codes, and no
    container: the default, which is slow, learns from two containers, with all four together.
    """
    hold, rare = CONTAINERS[name], person == "rare and extreme"
    schema = SCHEMA if rare == ([*CONTAINERS].index(name) % 2 == 0) else None
    slow = hold in (in_pandas, in_parquet)
    method = "default" if slow else "published"

    def leave(source):
        left_by_python(source, schema, method=method)
        if not (rare and isinstance(source, Path)):
            return None
        return left_by_commands(source, schema, capfd, *([] if slow else ["--paper"]))

    assert replay(neighbours(person), hold, leave) == {}


@pytest.mark.slow
@each
def test_neighbours_of_one_unit_leave_the_same_bytes(hold, replay):
    def hold_with_persons(table):
        return hold(table.assign(who=[f"person {row // 2}" for row in table.index]))

    def leave(source):
        left_by_python(source, SCHEMA, unit="who", rows_per_unit=2, method="published")
        assert "who" not in pd.read_csv("python.csv").columns

    assert replay(neighbours("rare and extreme"), hold_with_persons, leave) == {}


TYPES = {
    "float": (pa.float32(), [1.0, 2.5], [None, float("nan"), -float("inf")]),
    "whole": (pa.uint64(), [1, 2], [None, 2**64 - 1]),
    "text": (pa.large_string(), ["x", "y"], [None, "\0" * 5000]),
    "bytes": (pa.binary(), [b"x", b"y"], [None, b"\xff"]),
    "codes": (pa.binary(2), [b"xx", b"yy"], [None, b"\xff\xff"]),
    "day": (pa.date32(), [0, 365], [None, 2**31 - 1]),
    "at": (pa.timestamp("ms", "Europe/Berlin"), [0, 10**12], [None, -(2**62)]),
    "clock": (pa.time64("us"), [0, 10**9], [None, 86_399_999_999]),
    "span": (pa.duration("us"), [10**9, 10**10], [None, -(10**17)]),
    "price": (pa.decimal128(10, 2), [Decimal("1.25"), Decimal(2)], [None, Decimal("99999999.99")]),
    "nothing": (pa.null(), [None], [None]),
    "group": (NARROW, ["x", "y"], [None, "z"]),
    "rank": (pa.dictionary(pa.int8(), pa.int64()), [1, 2], [None, 3]),
    "share": (pa.dictionary(pa.int8(), pa.float64()), [1.0, 2.5], [None, -0.0]),
    "runs": (pa.run_end_encoded(pa.int32(), pa.int64()), [1, 2], [None, 2**62]),
    "byte": (pa.bool8(), [1, 0], [None, 7]),
}
"""Arrow's types, each with usual cells and with odd ones. Lists and records are refused."""


def of_all_types(odd: int | None) -> pa.Table:
    """A table whose first row has odd cells, or that lacks this row."""
    columns = {}
    for name, (kind, usual, strange) in TYPES.items():
        cells = [*([] if odd is None else [strange[odd % len(strange)]]), *usual * (300 // len(usual))]
        encoded = pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind)
        plain = pa.array(cells, kind.value_type if encoded else getattr(kind, "storage_type", kind))
        if pa.types.is_dictionary(kind):
            plain = plain.dictionary_encode().cast(kind)
        elif pa.types.is_run_end_encoded(kind):
            plain = pc.run_end_encode(plain)
        elif kind == pa.bool8():
            plain = pa.ExtensionArray.from_storage(kind, plain)
        columns[name] = plain
    return pa.table(columns)


def in_parquet_of_arrow(table: pa.Table) -> Path:
    table = table.drop_columns("runs")  # Parquet has none
    pq.write_table(table, "data.parquet", row_group_size=50)
    return Path("data.parquet")


of_bytes = pytest.mark.filterwarnings("ignore::privsyn.errors.ColumnWarning")  # bytes are left out


@pytest.mark.slow
@of_bytes
@pytest.mark.parametrize("hold", [lambda table: table, in_parquet_of_arrow], ids=["Arrow", "Parquet"])
@pytest.mark.parametrize("odd", range(3))
def test_no_cell_of_any_type_decides_more_than_its_answer(odd, hold, replay):
    leave = partial(left_by_python, schema=None, method="published" if odd else "default")
    assert replay((of_all_types(odd), of_all_types(None)), hold, leave) == {}


def test_the_replay_finds_a_number_that_follows_from_the_rows(replay):
    def leave(source):
        left_by_python(source, SCHEMA)
        return len(source)

    assert list(replay(neighbours("rare and extreme"), in_pandas, leave)) == ["screen"]


# --- one property at a time --------------------------------------------------------------------------------


def fitted(table, schema=None):
    return PrivSyn(1.0, 1e-9, schema, seed=1).fit(table)


@pytest.mark.parametrize("values", [126, 127, 40_000])
def test_index_width_does_not_depend_on_rows(values, tmp_path):
    jobs = [f"job {place}" for place in range(values)]
    schema = Schema({"job": Categorical(JOBS)})
    for table in (
        pa.Table.from_pandas(pd.DataFrame({"job": pd.Categorical(jobs)})),
        pl.DataFrame({"job": pl.Series(jobs, dtype=pl.Enum(jobs))}),
    ):
        model = fitted(table, schema)
        assert model.release_.table().form.types.field("job").type.index_type == pa.int32()
        model.release_.sample_to(tmp_path / "out.parquet", 9)
        assert pq.read_schema(tmp_path / "out.parquet").field("job").type.index_type == pa.int32()
    assert fitted(table, schema).sample(9).schema["job"] == pl.Enum(JOBS)


def test_an_index_of_pandas_is_no_column_of_a_model():
    """pandas stores an index as a column only if rows were dropped from between others."""
    frame = pd.DataFrame({"age": range(100)})
    tables = [pa.Table.from_pandas(each) for each in (frame, frame.drop(index=[7, 8, 11]))]
    assert [table.column_names[1:] for table in tables] == [[], ["__index_level_0__"]]
    for table in tables:
        assert fitted(table).release_.table().form.types == pa.schema([("age", pa.int64())])


def test_files_of_a_folder_may_differ_in_what_their_rows_decide(tmp_path):
    """Index, width of indices and metadata; nullability is declared, and must be the same."""
    frame = in_pandas(neighbours("rare and extreme")[0])
    for name, part in (("a", frame[:90]), ("b", frame.drop(index=[3, 5])), ("c", frame[:0])):
        part.assign(job=part["job"].cat.remove_unused_categories()).to_parquet(tmp_path / f"{name}.parquet")
    assert len({str(pq.read_schema(path)) for path in tmp_path.iterdir()}) == 3
    assert len(read_in_memory(tmp_path).frame) == 90 + len(frame) - 2
    assert fitted(tmp_path, SCHEMA).sample(9).columns.tolist() == list(frame)
    strict = pq.read_table(tmp_path / "c.parquet").schema
    strict = strict.set(3, strict.field("pay").with_nullable(False))
    pq.write_table(strict.empty_table(), tmp_path / "d.parquet")
    with pytest.raises(InputError, match=r"d\.parquet: other columns or types than a\.parquet"):
        fitted(tmp_path, SCHEMA)


def test_a_dictionary_of_arrow_in_pandas_is_a_category_and_its_width_is_not_shown():
    held = pd.Series(["x", "y", None] * 30, dtype=pd.ArrowDtype(NARROW), index=range(7, 97))
    out = fitted(pd.DataFrame({"a": held}), Schema({"a": Categorical(["x", "y"])})).sample(9)
    assert out["a"].dtype == pd.CategoricalDtype(["x", "y"])
    nested = pd.Series([["x"]] * 90, dtype=pd.ArrowDtype(pa.list_(NARROW)))
    for settings in ({}, {"unit": "a", "rows_per_unit": 1}):
        with pytest.raises(InputError, match="the Arrow type list") as error:
            PrivSyn(1.0, 1e-9, **settings).fit(pd.DataFrame({"a": nested, "b": 1}))
        assert "int8" not in str(error.value)


@of_bytes
@pytest.mark.parametrize(("rare", "type_"), [([], pa.int64()), (list(range(3, 303)), pa.string())])
def test_a_dictionary_of_numbers_has_room_for_what_is_not_found(tmp_path, rare, type_):
    numbers = [1, 2] * 300 + rare
    table = pa.table({"a": pa.array(numbers).dictionary_encode(), "b": pa.array([b"xy"] * len(numbers))})
    model = fitted(table)
    assert model.sample(50).schema.field("a").type == pa.dictionary(pa.int32(), type_)
    model.release_.sample_to(tmp_path / "out.parquet", 50)


def test_that_a_data_set_can_be_read_is_public_for_its_first_file_decides_its_types(tmp_path):
    """The indices of a later file may not fit those of the first."""
    for name, values in (("0", 100), ("1", 200)):
        jobs = pd.Categorical([f"job {place}" for place in range(values)])
        pd.DataFrame({"job": jobs}).to_parquet(tmp_path / f"{name}.parquet")
    data_set = ds.dataset(tmp_path)
    with pytest.raises(InputError, match="the data set: cannot be read to its end"):
        fitted(data_set, Schema({"job": Categorical(JOBS)}))
    assert DATA_SET in fitted(ds.dataset(tmp_path / "0.parquet")).ledger_.public_inputs
    fitted(tmp_path, Schema({"job": Categorical(JOBS)}))
