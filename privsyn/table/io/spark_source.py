"""Spark data frames: each partition is encoded and counted where it is.

Public settings and released answers are sent to the partitions. Sums come back, and noise is added to these
once, in this process. Where the rows of a person are bounded, a fingerprint of each row's identifier also
comes to this process, and which rows are kept is sent back.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, TypeVar
from weakref import finalize

import pandas as pd
import pyarrow as pa

from privsyn.errors import replace_errors
from privsyn.marginals.counting import Ask, Packing, Walk, block_of
from privsyn.marginals.domain import Ints
from privsyn.table.codec.codec import Codec
from privsyn.table.io import source as raw
from privsyn.table.io.arrow import empty_table, frame_of
from privsyn.table.io.output_type import OutputType

A = TypeVar("A")

UNREADABLE = "the Spark data frame: cannot be read: can Spark run it, and has Arrow a type for each column?"

MADE = "that all parts can be made"
"""Public input for a data frame in parts: what produces them may fail at a cell."""

ANSWER = "place int, answer binary"
"""Schema of the results of a part: its number, and a pickled answer or the packed codes of a batch."""

FEW_PARTS = 16
"""Parts. Up to this number, answers are added in this process; a tree in Spark would take longer."""

LARGE_BYTES = 2**19
"""Bytes. Larger bounds are broadcast to the workers: Spark warns of the size of a question above a megabyte,
and with `unit` that grows with the number of rows."""

LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Loggers of pyspark that print errors on the screen and quote the cell."""

_SILENT = ContextVar("_SILENT", default=False)


@dataclass(frozen=True, eq=False)
class SparkParts(raw.RawTable):
    """A Spark data frame, classic or of Spark Connect.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    types : pyarrow.Schema
        Of its columns.
    """

    near: bool = False
    frame: Any = None
    types: pa.Schema = field(default_factory=lambda: pa.schema([]))

    @classmethod
    def of(cls, frame: Any) -> SparkParts:
        """Return the parts of a Spark data frame, with the names and types that it announces."""
        with _on_spark(UNREADABLE):
            announced = frame.limit(0).toArrow().schema
        types = pa.schema([(column.name, column.type) for column in announced])
        empty = empty_table(types, "the Spark data frame")
        form = replace(OutputType.of(empty), kind="pandas")
        head = frame_of(empty, "the Spark data frame")
        return cls(head, public_inputs=(MADE,), form=form, frame=frame, types=types)

    def results(self, question: raw.Question[A]) -> list[A]:
        """Return the result for each part, in their order."""
        with _on_spark():
            rows = self._results(question).collect()
        return _in_order(rows) or [self._of_no_rows(question)]

    def ask(self, question: raw.Question[A], add: Callable[[A, A], A]) -> A:
        """Return the sum of the results; Spark adds those of many parts in a tree."""
        with _on_spark():
            answer = self._sum(self._results(question), add)
        return self._of_no_rows(question) if answer is None else answer

    def walk(self, codec: Codec, memory: float = 0) -> Walk:
        """Return a function that applies another to the codes of all rows; Spark keeps packed codes.

        It keeps them in the memory that it has for this, and makes those of a part again if they do not fit.
        They are not limited by `memory`. They are dropped with the function.
        """
        from pyspark import StorageLevel

        with _on_spark():
            packed = self._apply(partial(_packed, codec)).persist(StorageLevel.MEMORY_ONLY)

        def walk(ask: Ask) -> list[Ints]:
            with _on_spark():
                answer = self._sum(_mapped(packed, partial(_counted, codec, ask)), raw.add_counts)
            return self._of_no_rows(partial(raw.ask_codes, codec, map, ask)) if answer is None else answer

        finalize(walk, _drop, packed).atexit = False
        return walk

    @property
    def _is_remote(self) -> bool:
        return type(self.frame).__module__.startswith("pyspark.sql.connect.")

    def _of_no_rows(self, question: raw.Question[A]) -> A:
        return question(iter([self.head]))

    def _results(self, question: raw.Question[A]) -> Any:
        return self._apply(partial(_result, question))

    def _apply(self, function: Callable[[Iterator[pd.DataFrame]], Iterator[bytes]]) -> Any:
        """Return the frame of what a function yields for each part."""
        bounds: Any = self.bounds
        if sum(bound.mask.nbytes for bound in bounds) > LARGE_BYTES and not self._is_remote:
            bounds = self.frame.sparkSession.sparkContext.broadcast(bounds)
        return _mapped(self.frame, partial(_applied, function, self.head, self.types, bounds))

    def _sum(self, results: Any, add: Callable[[A, A], A]) -> A | None:
        """Return the sum of the results of all parts, None if there are none."""
        if not self._is_remote and results.rdd.getNumPartitions() > FEW_PARTS:  # Spark Connect has no trees
            return results.rdd.treeAggregate(None, partial(_add_row, add), partial(_add_some, add))
        return reduce(partial(_add_some, add), _in_order(results.collect()), None)


def _mapped(frame: Any, function: Callable[[int, Iterator[pa.RecordBatch]], Iterator[bytes]]) -> Any:
    with warnings.catch_warnings(action="ignore", category=FutureWarning):  # about pandas 3
        return frame.mapInArrow(partial(_on_worker, function), ANSWER)


def _on_worker(
    function: Callable[[int, Iterator[pa.RecordBatch]], Iterator[bytes]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Apply a function to a part on a worker, which writes errors to its log: none may quote a row."""
    from pyspark import TaskContext

    number = TaskContext.get().partitionId()
    with replace_errors(raw.FAILED):
        for answer in function(number, batches):
            cells = pa.array([number], pa.int32()), pa.array([answer], pa.binary())
            yield pa.RecordBatch.from_arrays(list(cells), ["place", "answer"])


def _applied(
    function: Callable[[Iterator[pd.DataFrame]], Iterator[bytes]],
    head: pd.DataFrame,
    types: pa.Schema,
    bounds: Any,
    number: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[bytes]:
    bounds = getattr(bounds, "value", bounds)
    return function(raw.with_head(head, bounds[number] if bounds else None, _frames(types, batches)))


def _result(question: raw.Question[A], frames: Iterator[pd.DataFrame]) -> Iterator[bytes]:
    yield pickle.dumps(question(frames))


def _packed(codec: Codec, frames: Iterator[pd.DataFrame]) -> Iterator[bytes]:
    """Yield the packed codes of each batch."""
    packing = Packing(codec.domain.sizes)
    for frame in frames:
        yield pickle.dumps(packing.pack(block_of(codec.encode(frame))))


def _counted(codec: Codec, ask: Ask, _place: int, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """Yield the answer for the packed codes of a part. Spark kept what `_packed` pickled in its workers."""
    blocks = (pickle.loads(cell.as_py()) for batch in batches for cell in batch.column(1))  # noqa: S301
    yield pickle.dumps(raw.ask_kept(codec, ask, blocks))


def _drop(packed: Any) -> None:
    """Let Spark forget codes; the session may have ended before."""
    with suppress(Exception):
        packed.unpersist()


def _frames(types: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pd.DataFrame]:
    """Join Spark's batches, of 10,000 rows by default, to batches of the size that we encode at once."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= raw.batch_rows(len(types)):
            yield from raw.slices(frame_of(pa.Table.from_batches(waiting).cast(types), "a part"))
            waiting = []
    if waiting:
        yield from raw.slices(frame_of(pa.Table.from_batches(waiting).cast(types), "a part"))


def _in_order(rows: Sequence[Any]) -> list[Any]:
    """Return the answers of all parts, in their order."""
    return [_answer_of(row) for row in sorted(rows, key=lambda row: row.place)]


def _answer_of(row: Any) -> Any:
    """Return the answer of a part. A worker could run code here: docs/privacy.md says whom that trusts."""
    return pickle.loads(row.answer)  # noqa: S301


def _add_row(add: Callable[[A, A], A], some: A | None, row: Any) -> A:
    return _add_some(add, some, _answer_of(row))


def _add_some(add: Callable[[A, A], A], first: A | None, second: A | None) -> Any:
    """Return the sum, where None is the empty sum."""
    if first is None or second is None:
        return second if first is None else first
    return add(first, second)


@contextmanager
def _on_spark(message: str = raw.FAILED) -> Iterator[None]:
    """Replace errors by a message and let pyspark print none in this thread. Spark's own log stays."""
    from pyspark.logger import PySparkLogger

    for name in LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_allowed)  # adding it again changes nothing
    before = _SILENT.set(True)
    try:
        with replace_errors(message):
            yield
    finally:
        _SILENT.reset(before)


def _is_allowed(record: object) -> bool:
    return not _SILENT.get()
