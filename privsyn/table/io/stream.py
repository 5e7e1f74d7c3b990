"""A table that is walked over batch by batch, as often as need be, and is never in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from privsyn.errors import InputError
from privsyn.files import check_file
from privsyn.table.io.arrow import frame_of
from privsyn.table.io.arrow_schema import public_schema
from privsyn.table.io.csv_columns import CsvTable
from privsyn.table.io.csv_text import walk_text
from privsyn.table.io.frame_type import FrameType
from privsyn.table.io.parquet_folder import parts_of
from privsyn.table.io.persons import KeptRows
from privsyn.table.io.read import ending_of, parquet_schema, read_table
from privsyn.table.io.source import Question, RawTable, batch_rows, slices, stamps_of, unchanged
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.validation import check_names

A = TypeVar("A")

BATCHES = "the dtypes of every batch, and that all batches can be made"
"""Public of batches: pandas takes the dtypes of each off its cells, unless it is told them."""

DATA_SET = "that every file of the data set can be read in the data set's types"
"""Public of a pyarrow.dataset: its first file decides these types, by the width of its indices too."""


@dataclass(frozen=True, eq=False)
class Stream(RawTable):
    """A table to be walked over: it is one part.

    Parameters
    ----------
    batches : callable
        A walk over the rows: frames that have the columns of `head`. The order is the same each time.
    """

    batches: Callable[[], Iterator[pd.DataFrame]]

    def frames(self) -> Iterator[pd.DataFrame]:
        """A walk over the rows, at least one frame, for the first has none."""
        yield self.head
        yield from self.batches()

    def each(self, question: Question[A]) -> list[A]:
        """What a question says of the one part."""
        return [question(self.frames())]

    def ask(self, question: Question[A], add: Callable[[A, A], A]) -> A:
        """What a question says of all rows, one frame after the other."""
        return question(self.frames())

    def keep(self, bounds: Sequence[KeptRows]) -> Stream:
        """The rows that are kept; the choice is made anew on each walk."""
        (bound,) = bounds
        return replace(
            self,
            head=self.head.drop(columns=bound.unit),
            batches=lambda: bound.kept_of(self.batches()),
        )


def open_table(source: object, schema: Schema | None = None, *, unit: str | None = None) -> RawTable:
    """A way over the rows of a table, wherever it is.

    Parameters
    ----------
    source : data frame, Arrow table, path to a file or a folder of Parquet files, Arrow data set, Dask or
        Spark data frame, or batches
        Batches are whatever iterates over Arrow record batches, tables or data frames; they are walked over
        once.
    schema : Schema, optional
        Says what the cells of a CSV file are. Without it their types are read off the file.
    unit : str, optional
        The column of identifiers, of which no type is guessed.

    Examples
    --------
    >>> ages = open_table(pd.DataFrame({"age": [17, 44, 90]}))
    >>> len(ages.head), [len(frame) for frame in ages.frames()]
    (0, [0, 3])
    """
    if isinstance(source, str | PathLike):
        path = Path(source)
        if ending_of(path) == ".parquet":
            return _parquet(parts_of(path))
        check_file(path)
        return _csv(path, schema, unit)
    engine = type(source).__module__.split(".")[0]
    if engine in ("dask", "pyspark"):
        from privsyn.table.io.dask_source import DaskParts
        from privsyn.table.io.spark_source import SparkParts

        return DaskParts.of(source) if engine == "dask" else SparkParts.of(source)
    if isinstance(source, Iterator):
        return _batches(source)
    if hasattr(source, "scanner") and hasattr(source, "schema"):  # pyarrow.dataset, which few have imported
        stream = _arrow(source.schema, partial(_scan, source), "the data set")
        return replace(stream, public_inputs=(DATA_SET,))
    table = read_table(source, schema, unit=unit)
    return Stream(table.frame.iloc[:0], partial(slices, table.frame), form=table.form)


def _csv(path: Path, schema: Schema | None, unit: str | None) -> Stream:
    stamps = stamps_of((path,))
    table = CsvTable.open(path, schema, unit)
    empty = pa.table({name: pa.array([], pa.string()) for name in table.columns})
    walk = partial(unchanged, stamps, partial(_csv_frames, table))
    public = table.public_inputs
    return Stream(table.frame(empty), walk, public_inputs=public, schema=table.schema, stamps=stamps)


def _csv_frames(table: CsvTable) -> Iterator[pd.DataFrame]:
    rows = batch_rows(len(table.columns))
    for text in walk_text(table.path, table.spelling):
        for start in range(0, text.num_rows, rows):
            yield table.frame(text.slice(start, rows))


def _parquet(files: tuple[Path, ...]) -> Stream:
    """Parquet files of one schema, one after the other."""
    stamps = stamps_of(files)
    walk = partial(unchanged, stamps, partial(_walk_parquet, files))
    return replace(_arrow(parquet_schema(files), walk, str(files[0])), stamps=stamps)


def _walk_parquet(files: tuple[Path, ...]) -> Iterator[pa.RecordBatch]:
    for path in files:
        whole = False
        with suppress(Exception), pq.ParquetFile(path, buffer_size=2**20) as file:
            yield from file.iter_batches(batch_rows(len(file.schema_arrow.names)))
            whole = True
        if not whole:
            raise InputError(f"{path}: not a Parquet file, or a damaged one")


def _scan(source: Any) -> Iterator[pa.RecordBatch]:
    complaint = ""
    try:
        yield from source.to_batches(batch_size=batch_rows(len(source.schema.names)))
    except Exception:  # its text may quote a cell
        complaint = "the data set: cannot be read to its end: is some file damaged, or of another schema?"
    if complaint:
        raise InputError(complaint)


def _arrow(schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]], what: str) -> Stream:
    empty = schema.empty_table()
    form = replace(FrameType.of(empty), kind="pandas")
    return Stream(frame_of(empty, what), partial(_arrow_frames, batches, schema, what), form=form)


def _arrow_frames(
    batches: Callable[[], Iterator[pa.RecordBatch]], schema: pa.Schema, what: str
) -> Iterator[pd.DataFrame]:
    """Frames of the columns of `schema`; its metadata, not that of each file, decides their dtypes."""
    names = public_schema(schema).names
    for batch in batches():
        table = pa.Table.from_batches([batch]).select(names).replace_schema_metadata(schema.metadata)
        yield frame_of(table, what)


def _batches(source: Iterator[Any]) -> Stream:
    """What comes in batches and does not come again. The first is looked at for its columns."""
    first = _next(source)
    if first is None:
        raise InputError("there is no batch to learn from: its columns cannot be known")
    head = _frame(first, 1).iloc[:0]
    told = () if isinstance(source, pa.RecordBatchReader) else (BATCHES,)  # a reader's have one schema
    return Stream(head, partial(_batch_frames, first, source, head), public_inputs=told, once=True)


def _batch_frames(first: Any, rest: Iterator[Any], head: pd.DataFrame) -> Iterator[pd.DataFrame]:
    place = 1
    batch: Any = first
    while batch is not None:
        frame = _frame(batch, place)
        if list(frame.columns) != list(head.columns):
            raise InputError(f"batch {place} has other columns than the first")
        yield from slices(frame)
        batch, place = _next(rest), place + 1


def _next(source: Iterator[Any]) -> Any:
    with suppress(Exception):  # whoever makes the batches may quote a cell, as pandas does
        return next(source, None)
    raise InputError("the batches cannot be read to their end: walk over them by themselves to see why")


def _frame(batch: Any, place: int) -> pd.DataFrame:
    if isinstance(batch, pa.RecordBatch):
        batch = pa.Table.from_batches([batch])
    with suppress(InputError):
        frame = read_table(batch).frame
        check_names(frame.columns, f"batch {place}: ")
        return frame
    raise InputError(f"batch {place} is a {type(batch).__name__}: give record batches, tables or data frames")
