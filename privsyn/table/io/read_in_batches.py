"""Open a table that is read batch by batch, as often as needed, and is never in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError, replace_errors
from privsyn.files import check_file, close_at_end
from privsyn.marginals.counting import Walk
from privsyn.table.codec.codec import Codec
from privsyn.table.io import source as raw
from privsyn.table.io.arrow import empty_table, frame_of, public_schema
from privsyn.table.io.csv_table import CsvTable, walk_text
from privsyn.table.io.formats import PARQUET, Location
from privsyn.table.io.output_type import OutputType
from privsyn.table.io.parquet import UNPACKED, parquet_schema, parts_of, walk_parquet
from privsyn.table.io.read_in_memory import known_of, open_typed, read_in_memory
from privsyn.table.kinds.keys import columns_of
from privsyn.table.schema.schema import Schema, check_column_names
from privsyn.threads import ahead

A = TypeVar("A")

READER = "that all batches can be made"
BATCHES = f"the dtypes of every batch, and {READER}"
"""Public input for batches: by default pandas guesses the dtypes of each from its cells."""

DATA_SET = "that every file of the data set can be read in the data set's types"
"""Public input for a pyarrow.dataset: its first file decides these types, and the width of indices."""


@dataclass(frozen=True, eq=False)
class Stream(raw.RawTable):
    """A table of one part that is read in batches.

    Parameters
    ----------
    batches : callable
        Returns an iterator over all rows: frames with the columns of the source, in the same order each time.
    with_categories : callable, optional
        Returns the same rows with some columns of text as categories, which a Parquet file stores.
    of_column : callable, optional
        Returns the same rows with one column alone, read faster than all.
    """

    batches: Callable[[], Iterator[pd.DataFrame]]
    with_categories: Callable[[Sequence[str]], Iterator[pd.DataFrame]] | None = None
    of_column: Callable[[str], Iterator[pd.DataFrame]] | None = None

    def walk(self, codec: Codec, memory: float = 0) -> Walk:
        """Return a function that applies another to the codes of all rows. Categories are coded faster."""
        if self.with_categories is None:
            return super().walk(codec, memory)
        batches = partial(self.with_categories, codec.listed_texts)
        return replace(self, batches=batches, with_categories=None).walk(codec, memory)

    def only(self, name: str) -> raw.RawTable:
        """Return the same rows for a question about one column."""
        if self.of_column is None:
            return self
        return replace(
            self, head=self.head[[name]], batches=partial(self.of_column, name), with_categories=None
        )

    def frames(self) -> Generator[pd.DataFrame]:
        """Yield the rows that are kept, at least one frame."""
        frames = raw.with_head(self.head, self.bounds[0] if self.bounds else None, self.batches())
        close_at_end(frames.close)
        return frames

    def results(self, question: raw.Question[A]) -> list[A]:
        """Return the result for the one part."""
        return [question(self.frames())]

    def ask(self, question: raw.Question[A], add: Callable[[A, A], A]) -> A:
        """Return the result for all rows."""
        return question(self.frames())


def read_in_batches(
    source: object, schema: Schema | None = None, *, unit: str | tuple[str, ...] | None = None
) -> raw.RawTable:
    """Open a table, wherever its rows are.

    Parameters
    ----------
    source : data frame, Arrow table, path to a file or a folder of Parquet files, Arrow data set, Dask or
        Spark data frame, batches, or a RawTable
        Batches are an iterator over Arrow record batches, tables or data frames. They are read once.
    schema : Schema, optional
        Says how the cells of a CSV file are read. Without it their types are guessed from the file.
    unit : str or tuple of str, optional
        The columns of identifiers, whose types are not guessed.

    Examples
    --------
    >>> ages = read_in_batches(pd.DataFrame({"age": [17, 44, 90]}))
    >>> len(ages.head), [len(frame) for frame in ages.frames()]
    (0, [3])
    """
    if isinstance(source, str | PathLike):
        location = Location.of(source)
        if location.format is PARQUET:
            return _parquet(parts_of(location.file))
        check_file(location.file)
        units = columns_of(unit)
        return _typed(location, schema, units) if location.format.typed else _csv(location, schema, units)
    if isinstance(source, raw.RawTable):
        return source
    engine = type(source).__module__.split(".")[0]
    if engine in ("dask", "pyspark"):
        from privsyn.table.io.dask_source import DaskParts
        from privsyn.table.io.spark_source import SparkParts

        return DaskParts.of(source) if engine == "dask" else SparkParts.of(source)
    if isinstance(source, Iterator):
        return _batches(source)
    if hasattr(source, "scanner") and hasattr(source, "schema"):  # a pyarrow.dataset, not imported here
        stream = _arrow(source.schema, partial(_scan, source), "the data set")
        return replace(stream, public_inputs=(DATA_SET,))
    table = read_in_memory(source, schema, unit=unit)
    walk, public = partial(raw.slices, table.frame), table.public_inputs
    return Stream(table.frame.iloc[:0], walk, public_inputs=public, form=table.form, lasting=True)


def _typed(location: Location, schema: Schema | None, units: tuple[str, ...]) -> Stream:
    stamps = raw.stamps_of((location.file,))
    opened = open_typed(location, schema)
    walk = partial(raw.unchanged, stamps, opened.batches)
    stream = _arrow(opened.schema, walk, str(location))
    schema_of_labels, form = known_of(opened, stream.head.drop(columns=list(units), errors="ignore"))
    return replace(
        stream, public_inputs=opened.public_inputs, schema=schema_of_labels, form=form, stamps=stamps
    )


def _csv(location: Location, schema: Schema | None, units: tuple[str, ...]) -> Stream:
    logs = (location.file.with_name(f"{location.file.name}-wal"),) if location.format.name == "SQLite" else ()
    stamps = raw.stamps_of((location.file, *logs))  # SQLite may write the newest rows into its log
    table = CsvTable.open(location, schema, units)
    empty = pa.table({name: pa.array([], pa.string()) for name in table.columns})
    walk = partial(raw.unchanged, stamps, partial(_csv_frames, table))

    def of_column(name: str) -> Iterator[pd.DataFrame]:
        alone = replace(table, columns={name: table.columns[name]})
        return raw.unchanged(stamps, partial(_csv_frames, alone))

    stream = Stream(table.frame(empty), walk, public_inputs=table.public_inputs, of_column=of_column)
    return replace(stream, schema=table.schema, form=table.form, stamps=stamps, lasting=True)


def _csv_frames(table: CsvTable) -> Iterator[pd.DataFrame]:
    rows = raw.batch_rows(len(table.columns))
    for text in walk_text(table.location, table.dialect, table.formats, table.columns):
        for start in range(0, text.num_rows, rows):
            yield table.frame(text.slice(start, rows))


def _parquet(files: tuple[Path, ...]) -> Stream:
    stamps, schema = raw.stamps_of(files), parquet_schema(files)
    walk = partial(walk_parquet, files, raw.batch_rows(len(schema.names)))

    def frames(texts: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
        batches = partial(raw.unchanged, stamps, partial(walk, texts))
        return _arrow_frames(batches, schema, str(files[0]))

    def of_column(name: str) -> Iterator[pd.DataFrame]:
        batches = partial(raw.unchanged, stamps, partial(walk, columns=[name]))
        column = pa.schema([schema.field(name)], schema.metadata)
        return _arrow_frames(batches, column, str(files[0]))

    stream = _arrow(schema, walk, str(files[0]))
    return replace(
        stream,
        public_inputs=(UNPACKED,),
        batches=frames,
        with_categories=frames,
        of_column=of_column,
        stamps=stamps,
    )


def _scan(source: Any) -> Iterator[pa.RecordBatch]:
    with replace_errors(
        "the data set: cannot be read to its end: is some file damaged, or of another schema?"
    ):
        yield from source.to_batches(batch_size=raw.batch_rows(len(source.schema.names)))


def _arrow(schema: pa.Schema, batches: Callable[[], Iterator[pa.RecordBatch]], subject: str) -> Stream:
    empty = empty_table(schema, subject)
    form = replace(OutputType.of(empty), kind="pandas")
    return Stream(
        frame_of(empty, subject), partial(_arrow_frames, batches, schema, subject), form=form, lasting=True
    )


def _arrow_frames(
    batches: Callable[[], Iterator[pa.RecordBatch]], schema: pa.Schema, subject: str
) -> Iterator[pd.DataFrame]:
    """Yield frames of the columns of `schema`; its metadata, not that of each file, decides their dtypes."""
    names = public_schema(schema).names

    def frame(batch: pa.RecordBatch) -> pd.DataFrame:
        table = pa.Table.from_batches([batch]).select(names)
        return frame_of(table.replace_schema_metadata(schema.metadata), subject)

    return ahead(frame, batches(), raw.AHEAD)


def _batches(source: Iterator[Any]) -> Stream:
    """Open batches that can be read once. The columns are those of the first, or of a reader without any."""
    first = _next(source)
    if first is None and isinstance(source, pa.RecordBatchReader):
        first = empty_table(source.schema, "batch 1: the table")
    if first is None:
        raise InputError("there is no batch, so the columns are unknown: give at least one")
    head = _frame(first, 1).iloc[:0]
    public = (READER,) if isinstance(source, pa.RecordBatchReader) else (BATCHES,)  # a reader has one schema
    return Stream(head, partial(_batch_frames, first, source, head), public_inputs=public, once=True)


def _batch_frames(first: Any, rest: Iterator[Any], head: pd.DataFrame) -> Iterator[pd.DataFrame]:
    batch, number = first, 1
    while batch is not None:
        frame = _frame(batch, number)
        if list(frame.columns) != list(head.columns):
            raise InputError(f"batch {number} has other columns than the first")
        yield from raw.slices(frame)
        batch, number = _next(rest), number + 1


def _next(source: Iterator[Any]) -> Any:
    """Return the next batch, or None at the end. The errors of what produces them may quote a cell."""
    with replace_errors("the batches cannot be read to their end: iterate over them yourself to see why"):
        return next(source, None)


def _frame(batch: Any, number: int) -> pd.DataFrame:
    if isinstance(batch, pa.RecordBatch):
        batch = pa.Table.from_batches([batch])
    readers = ("to_arrow", "collect", "__arrow_c_stream__")
    is_table = isinstance(batch, pd.DataFrame) or any(hasattr(type(batch), reader) for reader in readers)
    no_table = f"batch {number} is a {type(batch).__name__}: give record batches, tables or data frames"
    with replace_errors(lambda error: f"batch {number}: {error}" if is_table else no_table, InputError):
        frame = read_in_memory(batch).frame
        check_column_names(frame.columns)
        return frame
