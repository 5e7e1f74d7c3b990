"""Spark counts with the same codec and kernel: the release is that of the rows in memory, bit for bit."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from clusters import MISSING, connected, spark_session
from table.io.test_read_in_batches import KNOWN, OPEN, complaint, rows, saved

from privsyn import Categorical, InputError, PrivSyn, Schema
from privsyn.marginals.counting import Tables
from privsyn.table.codec.codec import Codec
from privsyn.table.io import spark_source
from privsyn.table.io.identifiers import KeptRows
from privsyn.table.io.read_in_batches import read_in_batches

if MISSING:
    pytest.skip(MISSING, allow_module_level=True)

from pyspark.sql import functions

# Of sockets to the JVM that pyspark leaves to the garbage collector.
pytestmark = [pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.slow("each case")]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The file that Java writes to: Spark's log."""
    return tmp_path_factory.mktemp("spark") / "log"


@pytest.fixture(scope="module")
def spark(log):
    with spark_session(log) as session:
        yield session


def table(n=900):
    """Rows in types that Spark has."""
    whole = pa.Table.from_pandas(rows(n), preserve_index=False).replace_schema_metadata(None)
    types = dict(zip(whole.column_names, whole.schema.types, strict=True))
    texts = dict.fromkeys(("who", "kind", "person"), pa.string())
    return whole.cast(pa.schema({**types, **texts}.items()))


KNOWN_COLUMNS = list(KNOWN.columns)


def in_parts(spark, rows, parts):
    """A data frame in so many parts, and the same rows in the same order in memory."""
    frame = spark.createDataFrame(rows).repartition(parts).cache()  # else each walk may shuffle anew
    return frame, frame.toArrow()


@pytest.mark.slow
def test_parts_on_spark_give_the_same_release(spark, tmp_path):
    frame, whole = in_parts(spark, table().select(KNOWN_COLUMNS), 4)
    assert saved(frame, tmp_path, OPEN) == saved(whole, tmp_path, OPEN)


@pytest.mark.slow
def test_the_answers_of_many_parts_are_added_on_spark(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(spark_source, "FEW_PARTS", 2)
    frame, whole = in_parts(spark, table().select(KNOWN_COLUMNS), 5)
    assert saved(frame, tmp_path) == saved(whole, tmp_path)


def test_the_rows_of_a_person_are_bounded_over_all_parts(spark, tmp_path):
    frame, whole = in_parts(spark, table(), 4)
    settings = {"unit": "person", "rows_per_unit": 2}
    assert saved(frame, tmp_path, **settings) == saved(whole, tmp_path, **settings)


def test_bounds_of_many_rows_are_sent_by_themselves(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(spark_source, "LARGE_BYTES", 0)
    frame, whole = in_parts(spark, table(), 2)
    settings = {"unit": "person", "rows_per_unit": 2}
    assert saved(frame, tmp_path, **settings) == saved(whole, tmp_path, **settings)


def test_rows_are_encoded_once_and_spark_keeps_their_codes(spark, tmp_path):
    def note(folder, batches):
        (folder / uuid4().hex).touch()
        yield from batches

    frame, whole = in_parts(spark, table(300).select(KNOWN_COLUMNS), 2)
    with warnings.catch_warnings(action="ignore"):
        noted = read_in_batches(frame.mapInArrow(partial(note, tmp_path), frame.schema))
    codec = Codec.for_table(KNOWN, noted.head, fine=True)
    walk, in_memory = noted.walk(codec), read_in_batches(whole).walk(codec)
    for names in (("who",), ("age", "kind")):
        count = Tables(codec.domain, [names]).count
        np.testing.assert_array_equal(walk(count), in_memory(count))
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
def test_what_spark_reads_from_files_gives_what_arrow_reads_from_them(spark, tmp_path):
    whole = table(300).select(KNOWN_COLUMNS)
    pq.write_table(whole, tmp_path / "t.parquet", row_group_size=50)
    arrow_csv.write_csv(whole, tmp_path / "t.csv")
    parquet = spark.read.parquet(str(tmp_path / "t.parquet"))
    text = spark.read.csv(
        str(tmp_path / "t.csv"),
        header=True,
        schema="who string, age bigint, pay double, day timestamp_ntz, kind string",
    )
    in_memory = saved(whole, tmp_path, OPEN)
    assert saved(parquet, tmp_path, OPEN) == saved(text, tmp_path, OPEN) == in_memory


@pytest.mark.filterwarnings("ignore::privsyn.errors.ColumnWarning")  # bytes are objects
def test_types_are_those_of_the_same_table_in_arrow(spark, tmp_path):
    day = datetime(2020, 1, 1, 12)
    row = {
        "small": pa.array([1, None] * 50, pa.int8()),
        "flag": pa.array([True, None] * 50),
        "price": pa.array([Decimal("1.25"), None] * 50, pa.decimal128(8, 2)),
        "date": pa.array([day.date(), None] * 50),
        "clock": pa.array([day, None] * 50, pa.timestamp("us")),
        "zoned": pa.array([day, None] * 50, pa.timestamp("us", "UTC")),
        "long": pa.array([timedelta(days=3), None] * 50),
        "raw": pa.array([b"1", None] * 50),
    }
    frame, whole = in_parts(spark, pa.table(row), 2)
    assert read_in_batches(frame).head.dtypes.to_dict() == read_in_batches(whole).head.dtypes.to_dict()
    assert saved(frame, tmp_path, None) == saved(whole, tmp_path, None)


def test_a_frame_without_rows_or_parts_can_be_learnt_from(spark):
    empty = spark.createDataFrame(table(5).select(KNOWN_COLUMNS)).where("false")
    assert empty.rdd.getNumPartitions() == 0
    assert len(PrivSyn(1.0, 1e-9, KNOWN).fit(empty).sample(3)) == 3
    bounded = spark.createDataFrame(table(5)).where("false")
    assert len(PrivSyn(1.0, 1e-9, KNOWN, unit="person", rows_per_unit=1).fit(bounded).sample(3)) == 3


@pytest.mark.slow
def test_a_frame_of_spark_connect_gives_the_same_release(spark, tmp_path):
    rows = table(300).select(KNOWN_COLUMNS)
    with connected(spark) as client, warnings.catch_warnings(action="ignore"):
        remote = client.createDataFrame(rows).repartition(2).cache()
        assert not hasattr(remote, "_jdf")
        assert saved(remote, tmp_path, OPEN) == saved(remote.toArrow(), tmp_path, OPEN)


# --- what goes wrong ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_part_that_fails_is_one_line_that_does_not_quote_it(spark):
    def fail(batches):
        raise ValueError("secret")

    frame = spark.createDataFrame(table().select(KNOWN_COLUMNS))
    with warnings.catch_warnings(action="ignore"):
        failing = frame.mapInArrow(fail, frame.schema)
    assert complaint(failing).startswith("a part of the table could not be counted")


@pytest.mark.slow
def test_a_part_that_fails_once_changes_nothing(spark, tmp_path):
    frame, whole = in_parts(spark, table().select(KNOWN_COLUMNS), 2)

    def fail_once(flag, batches):
        for place, batch in enumerate(batches):
            yield batch
            if place == 0 and not flag.exists():
                flag.touch()
                raise ValueError("secret")

    with warnings.catch_warnings(action="ignore"):
        failing = frame.mapInArrow(partial(fail_once, tmp_path / "failed"), frame.schema)
    assert saved(failing, tmp_path) == saved(whole, tmp_path)
    assert (tmp_path / "failed").exists()


def shuffled(frame):
    """The same rows, in another order on each walk."""

    def shuffle(batches):
        for batch in batches:
            yield batch.take(np.random.default_rng().permutation(len(batch)))

    with warnings.catch_warnings(action="ignore"):
        return frame.mapInArrow(shuffle, frame.schema)


@pytest.mark.slow
def test_parts_that_change_their_order_from_walk_to_walk_are_refused(spark):
    frame = shuffled(spark.createDataFrame(table()))
    assert "same order each time" in complaint(frame, unit="person", rows_per_unit=2)


def test_columns_that_no_table_can_have_are_one_line(spark):
    assert "have the same name" in complaint(spark.sql("select 1 as a, 2 as a"), None)
    assert complaint(spark.sql("select make_interval(1) as a"), None).startswith("the Spark data frame")


# --- the log -----------------------------------------------------------------------------------------------


def refused(run):
    with pytest.raises(InputError):
        run()


@pytest.mark.slow
def test_nothing_of_ours_is_in_the_log_of_spark(spark, log, capfd):
    """Nor on the screen. What fails in the user's own frame Spark quotes, but not the loggers of Python."""
    schema = Schema({"town": Categorical(["a", "b"])})
    cells = pa.table({"who": ["x", "SECRET", "y", "SECRET"] * 50, "town": ["a", "b", "SECRET", "a"] * 50})

    def fail(frames):
        raise ValueError("SECRET")

    spark.sparkContext.setLogLevel("WARN")
    before = log.stat().st_size
    frame = spark.createDataFrame(cells).repartition(2)
    bounded = PrivSyn(1.0, 1e-9, schema, unit="who", rows_per_unit=1)
    bounded.fit(frame)
    refused(partial(bounded.fit, shuffled(frame)))
    town = read_in_batches(frame.select("town"))
    refused(partial(town.results, fail))
    refused(partial(town.ask, fail, None))
    many = KeptRows("who", 0, np.zeros(1_030_000, np.uint8), b"", b"")  # of 8,240,000 rows
    none = replace(many, mask=many.mask[:0])
    assert replace(town, bounds=(many, none)).results(lambda frames: 0) == [0, 0]
    texts = spark.createDataFrame(pa.table({"town": ["UNREADABLE"]}))
    failing = texts.select(functions.col("town").cast("int"))
    refused(partial(PrivSyn(1.0, 1e-9).fit, failing))
    spark.sparkContext.setLogLevel("OFF")
    said = log.read_bytes()[before:].decode() + "".join(capfd.readouterr())
    worker_logs = [path.read_text() for path in log.parent.glob("work/**/stderr")]
    assert len(worker_logs) == 2
    assert all("ERROR" in text for text in (said, *worker_logs))  # so the logs are on
    said += "".join(worker_logs)
    assert "SECRET" not in said
    assert "QueryContextLogger" not in said
    assert "large task binary" not in said


@pytest.mark.slow
def test_the_example_of_a_page_runs(spark, tmp_path):
    """Here, where there is a session: one Java for all tests. It stops the session, so it comes last."""
    page = (Path(__file__).parents[3] / "docs" / "engineer.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (example,) = [block for block in blocks if "pyspark" in block]
    train = rows(300).rename(columns={"age": "prestige"})[["who", "prestige"]]
    schema = Schema({"who": KNOWN.columns["who"], "prestige": KNOWN.columns["age"]})
    here = example.replace("train.parquet", str(tmp_path / "train.parquet"))
    with warnings.catch_warnings(action="ignore"):
        exec(here, {"train": train, "schema": schema, "PrivSyn": PrivSyn})  # noqa: S102 - our own page
