"""Rows that come in batches give what the same rows give in memory: the same release, bit for bit."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from refusals import refuses

from privsyn import Categorical, Datetime, InputError, Numerical, PrivSyn, Schema
from privsyn.methods.persons import PersonsInMemory
from privsyn.private.randomness import os_entropy
from privsyn.table.io import csv_table
from privsyn.table.io.dask_source import PARTS
from privsyn.table.io.parquet import UNPACKED
from privsyn.table.io.read_in_batches import BATCHES, DATA_SET, READER, read_in_batches
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.io.spark_source import MADE

KNOWN = Schema(
    {
        "who": Categorical(["a", "b", "c"], other="c"),
        "age": Numerical(0, 99, integer=True),
        "pay": Numerical(0, 5000),
        "day": Datetime("2020-01-01", "2022-12-31"),
        "kind": Categorical(["x", "y"]),
    }
)
OPEN = Schema(
    {
        "who": Categorical(),
        "age": Numerical(integer=True),
        "pay": Numerical(),
        "day": Datetime(),
        "kind": Categorical(),
    }
)


ROWS = 400  # of a batch


def rows(n=900, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "who": rng.choice(["a", "b", "c", "d"], n),
            "age": pd.Series(rng.integers(0, 120, n)).astype("Int64").mask(rng.random(n) < 0.1),
            "pay": rng.gamma(2.0, 500.0, n).round(2),
            "day": pd.Timestamp("2020-03-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "kind": pd.Categorical(rng.choice(["x", "y"], n)),
            "person": rng.integers(0, 400, n).astype(str),
        }
    )
    table["day"] = table["day"].astype("datetime64[us]")
    return table


def saved(table, folder, schema=KNOWN, **settings):
    """What the file that a seeded run leaves holds: ledger, groups and all tables; not the kind of table.

    Nor what the ledger says of the way in which the rows came.
    """
    model = PrivSyn(1.0, 1e-9, schema, seed=3, **{"method": "published"} | settings).fit(table)
    model.save(folder / "m.privsyn")
    with zipfile.ZipFile(folder / "m.privsyn") as file:
        text = json.loads(file.read("release.json"))
        public = text["ledger"]["public_inputs"]
        way = (BATCHES, DATA_SET, MADE, PARTS, READER, UNPACKED)
        text["ledger"]["public_inputs"] = [said for said in public if said not in way]
        del text["tables"]["rows"]["form"]
        return file.read("arrays.npz"), text


@pytest.fixture
def parquet(tmp_path):
    """A Parquet file of many row groups."""
    path = tmp_path / "table.parquet"
    pq.write_table(pa.Table.from_pandas(rows().drop(columns="person")), path, row_group_size=100)
    return path


def make_batches_small(monkeypatch):
    monkeypatch.setattr("privsyn.table.io.source.CELLS", 5 * ROWS)
    monkeypatch.setattr("privsyn.table.io.source.LEAST_ROWS", 1)


@pytest.mark.slow("each case")
@pytest.mark.parametrize(("schema", "method"), [(KNOWN, "published"), (OPEN, "default"), (None, "published")])
def test_all_ways_over_parquet_give_one_release(schema, method, parquet, tmp_path, monkeypatch):
    in_memory = saved(read_in_memory(parquet).frame, tmp_path, schema, method=method)
    folder = tmp_path / "folder"
    folder.mkdir()
    table = pq.read_table(parquet)
    for part, (start, end) in enumerate([(0, 200), (200, 201), (201, 201), (201, 900)]):
        pq.write_table(table.slice(start, end - start), folder / f"part-{part}.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "_old.parquet").write_bytes(b"not read")
    make_batches_small(monkeypatch)
    several = ds.dataset([str(file) for file in sorted(folder.glob("part-*"))])
    ways = [(str(parquet), 0), (folder, "10 kB"), (several, "2GB"), (table, "2GB")]
    for source, memory in ways[2:3] if method == "default" else ways:  # it is slow
        assert saved(source, tmp_path, schema, method=method, memory=memory) == in_memory


def test_batches_that_pass_once_give_the_same_release(parquet, tmp_path, monkeypatch):
    """Where no grid is asked for, which takes a pass of its own."""
    make_batches_small(monkeypatch)
    known = Schema({**KNOWN.columns, "pay": Numerical(0, 5000, step=10)})
    in_memory = saved(read_in_memory(parquet).frame, tmp_path, known)
    table, frame = pq.read_table(parquet), read_in_memory(parquet).frame
    for batches in (
        iter(table.to_batches()),
        table.to_reader(70),
        (table.slice(start, 300) for start in range(0, 900, 300)),
        (frame.iloc[start : start + 300] for start in range(0, 900, 300)),
    ):
        assert saved(batches, tmp_path, known, memory=0) == in_memory


@pytest.mark.slow
@pytest.mark.parametrize("schema", [KNOWN, None], ids=["known", "none"])
def test_a_csv_in_blocks_gives_the_same_release(schema, tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    rows().drop(columns="person").to_csv(path, index=False)
    whole = saved(path, tmp_path, schema)
    make_batches_small(monkeypatch)
    said = csv_table.well_formed(csv_table.PLAIN)
    monkeypatch.setattr(csv_table, "well_formed", lambda dialect: said)
    monkeypatch.setattr(csv_table, "LONGEST_ROW", 10_000)
    assert saved(path, tmp_path, schema, memory=0) == whole


@pytest.mark.slow("each case")
@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_the_rows_of_a_person_are_bounded_over_all_batches(name, tmp_path, monkeypatch):
    path = tmp_path / name
    table = rows()
    table.to_csv(path, index=False) if name.endswith("csv") else table.to_parquet(path, row_group_size=100)
    settings = {"unit": "person", "rows_per_unit": 2}
    whole = saved(path, tmp_path, **settings)
    make_batches_small(monkeypatch)
    assert saved(path, tmp_path, **settings, memory=0) == whole
    source = read_in_batches(path, KNOWN, unit="person")
    kept = PersonsInMemory.of(source, "person", os_entropy).bounded(source, 2).frames()
    assert sum(map(len, kept)) == table.groupby("person").size().clip(upper=2).sum()


def test_the_ledger_of_a_stream_is_that_of_a_table(parquet):
    ledgers = [
        json.loads(PrivSyn(1.0, 1e-9, KNOWN, seed=1).fit(source).ledger_.to_json())
        for source in (parquet, read_in_memory(parquet).frame)
    ]
    ledgers[0]["public_inputs"].remove(UNPACKED)  # of a file alone
    assert ledgers[0] == ledgers[1]


def test_a_table_without_rows_can_be_walked_over(tmp_path):
    empty = rows(0).drop(columns="person")
    empty.to_parquet(tmp_path / "none.parquet")
    for source in (empty, tmp_path / "none.parquet", iter([empty])):
        assert len(PrivSyn(1.0, 1e-9, KNOWN).fit(source).sample(3)) == 3


# --- what cannot be walked over ----------------------------------------------------------------------------


def complaint(source, schema=KNOWN, **settings):
    with pytest.raises(InputError) as raised:
        PrivSyn(1.0, 1e-9, schema, **settings).fit(source)
    assert raised.value.__context__ is None or raised.value.__suppress_context__
    return str(raised.value)


def test_what_must_be_known_first_cannot_pass_once(parquet):
    table = rows()
    assert "values and bounds" in complaint(iter([table.drop(columns="person")]), OPEN)
    assert "whose rows" in complaint(iter([table]), unit="person", rows_per_unit=2)


def test_what_is_no_batch_is_said_by_place():
    table = rows(10).drop(columns="person")
    assert complaint(iter([])).startswith("there is no batch")
    assert complaint(iter([table, 7])).startswith("batch 2 is a int")
    assert complaint(iter([[1, 2]])).startswith("batch 1 is a list")
    assert complaint(iter([table, table.drop(columns="age")])).startswith("batch 2 has other columns")
    assert "dtypes differ" in complaint(iter([table, table.astype({"pay": "float32"})]))
    usual = pa.RecordBatch.from_pandas(table, preserve_index=False)
    renamed = usual.rename_columns([*usual.schema.names[:-1], "end"])
    for odd in (usual.drop_columns(["pay"]), renamed, usual.select(usual.schema.names[::-1])):
        assert complaint(iter([usual, odd])) == "batch 2 has other columns than the first"
    pays = pa.array(["SECRET"] * 10)
    said = complaint(iter([usual, usual.set_column(2, "pay", pays)]))
    assert ("dtypes differ" in said, "SECRET" in said) == (True, False)


def test_a_reader_without_rows_is_a_table_as_with_rows():
    """One row does not decide whether there is a table: the reader's schema says what its columns are."""
    for kind in (
        pa.int8(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.run_end_encoded(pa.int16(), pa.bool_()),
    ):
        row = pa.record_batch([pa.nulls(1, kind)], pa.schema([("a", kind)]))
        heads = [
            read_in_batches(pa.RecordBatchReader.from_batches(row.schema, batches)).head
            for batches in ([], [row])
        ]
        pd.testing.assert_frame_equal(*heads)
    odd = pa.record_batch([pa.nulls(1, pa.month_day_nano_interval())], ["a"])
    said = {complaint(pa.RecordBatchReader.from_batches(odd.schema, batches)) for batches in ([], [odd])}
    assert len(said) == 1


def test_a_reader_that_fails_is_not_quoted():
    def batches():
        yield pa.RecordBatch.from_pandas(rows(5).drop(columns="person"))
        raise pa.ArrowInvalid("secret")

    reader = pa.RecordBatchReader.from_batches(next(batches()).schema, batches())
    assert "secret" not in complaint(reader)

    def lines():
        yield rows(5).drop(columns="person")
        raise ValueError("secret")

    with refuses("cannot be read to their end"):
        PrivSyn(1.0, 1e-9, KNOWN).fit(lines())


def test_the_ledger_says_that_the_dtypes_of_batches_are_public():
    """pandas reads the dtypes of a batch off its cells: one odd cell decides that a run is refused."""
    text = "city,job\n" + "u,1\n" * 30
    schema = Schema({"city": Categorical(["u"]), "job": Numerical(0, 9, integer=True)})
    model = PrivSyn(1.0, 1e-9, schema).fit(pd.read_csv(io.StringIO(text), chunksize=10))
    assert BATCHES in model.ledger_.public_inputs
    odd = pd.read_csv(io.StringIO(text + "u,Ann Lee\n"), chunksize=10)
    assert "Ann" not in complaint(odd, schema)
    whole = PrivSyn(1.0, 1e-9, schema).fit(pd.read_csv(io.StringIO(text)))
    assert BATCHES not in whole.ledger_.public_inputs


def test_a_damaged_file_is_one_line_wherever_the_damage_is(parquet, tmp_path):
    """One that is cut, or has a hole somewhere, is tested in tests/test_faults.py."""
    whole, path = parquet.read_bytes(), tmp_path / "hole.parquet"
    path.write_bytes(whole[:2000] + bytes(3000) + whole[5000:])
    for memory in (0, "2GB"):
        assert complaint(path, memory=memory) == f"{path}: not a Parquet file, or a damaged one"
    assert complaint(ds.dataset([str(parquet), str(path)])).startswith("the data set")


def test_folders_that_are_no_table(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    assert complaint(folder).startswith(f"{folder}: is a folder without a file that ends in .parquet: of one")
    table = rows(10).drop(columns="person")
    table.to_parquet(folder / "a.parquet")
    table.astype({"pay": "float32"}).to_parquet(folder / "b.parquet")
    assert complaint(folder).startswith(f"{folder / 'b.parquet'}: other columns or types than a.parquet")
    (folder / "year=2020").mkdir()
    (folder / "b.parquet").rename(folder / "year=2020" / "b.parquet")
    assert "folders name values" in complaint(folder)


@pytest.mark.parametrize("memory", [-1, "much", "4 apples", True, 1.5, None])
def test_memory_is_bytes(memory):
    with pytest.raises(InputError, match="memory"):
        PrivSyn(1.0, memory=memory)


def test_a_database_with_a_log_is_read_while_nobody_writes(tmp_path):
    """Whoever reads it makes the log, which is empty then: nothing was changed. A new row is a change."""
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as base, base:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("CREATE TABLE t (n INTEGER)")
        base.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(100)])
    source = read_in_batches(tmp_path / "t.sqlite", Schema({"n": Numerical(0, 99, integer=True)}))
    for _ in range(2):
        assert sum(map(len, source.frames())) == 100
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as base:
        base.execute("INSERT INTO t VALUES (7)")
        base.commit()
        with pytest.raises(InputError, match="was changed while it was read"):
            sum(map(len, source.frames()))
