"""Spark data frames: each partition is encoded and counted where it is.

Public settings and released answers are sent to the partitions. Sums come back, and noise is added to these
once, in this process. Where the rows of a person are bounded, a fingerprint of each row's identifier also
comes to this process, and which rows are kept is sent back.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa

from privsyn.errors import replace_errors
from privsyn.table.io.arrow import frame_of
from privsyn.table.io.output_type import OutputType
from privsyn.table.io.source import FAILED, Question, RawTable, batch_rows, slices, with_head

A = TypeVar("A")

UNREADABLE = "the Spark data frame: cannot be read: can Spark run it, and has Arrow a type for each column?"

MADE = "that all parts can be made"
"""Public input for a data frame in parts: what produces them may fail at a cell."""

ANSWER = "place int, answer binary"
"""Schema of the result of a part: its number, and its pickled answer."""

FEW = 16
"""Parts. Up to this number, answers are added in this process; a tree in Spark would take longer."""

LARGE = 2**19
"""Bytes. Larger bounds are broadcast to the workers: Spark warns of the size of a question above a megabyte,
and with `unit` that grows with the number of rows."""

LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Loggers of pyspark that print errors on the screen and quote the cell."""

_SILENT = ContextVar("_SILENT", default=False)


@dataclass(frozen=True, eq=False)
class SparkParts(RawTable):
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
        empty = types.empty_table()
        form = replace(OutputType.of(empty), kind="pandas")
        head = frame_of(empty, "the Spark data frame")
        return cls(head, public_inputs=(MADE,), form=form, frame=frame, types=types)

    def each(self, question: Question[A]) -> list[A]:
        """Return the result for each part, in their order."""
        with _on_spark():
            rows = self._results(question).collect()
        return self._in_order(question, rows)

    def ask(self, question: Question[A], add: Callable[[A, A], A]) -> A:
        """Return the sum of the results; Spark adds those of many parts in a tree."""
        if self._is_remote:  # Spark Connect has no trees
            return reduce(add, self.each(question))
        with _on_spark():
            results = self._results(question).rdd
        if results.getNumPartitions() > FEW:
            with _on_spark():
                return results.treeAggregate(None, partial(_add_row, add), partial(_add_some, add))
        with _on_spark():
            rows = results.collect()
        return reduce(add, self._in_order(question, rows))

    @property
    def _is_remote(self) -> bool:
        return type(self.frame).__module__.startswith("pyspark.sql.connect.")

    def _in_order(self, question: Question[A], rows: Sequence[Any]) -> list[A]:
        answers = [_answer_of(row) for row in sorted(rows, key=lambda row: row.place)]
        return answers or [question(iter([self.head]))]

    def _results(self, question: Question[A]) -> Any:
        bounds: Any = self.bounds
        if sum(bound.kept.nbytes for bound in bounds) > LARGE and not self._is_remote:
            bounds = self.frame.sparkSession.sparkContext.broadcast(bounds)
        ask = partial(_result, question, self.head, self.types, bounds)
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # about pandas 3
            return self.frame.mapInArrow(ask, ANSWER)


def _result(
    question: Question[A],
    head: pd.DataFrame,
    types: pa.Schema,
    bounds: Any,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Apply a question to a part on a worker, which writes errors to its log: none may quote a row."""
    from pyspark import TaskContext

    place, bounds = TaskContext.get().partitionId(), getattr(bounds, "value", bounds)
    with replace_errors(FAILED):
        frames = with_head(head, bounds[place] if bounds else None, _frames(types, batches))
        answer = pa.array([pickle.dumps(question(frames))], pa.binary())
    yield pa.RecordBatch.from_arrays([pa.array([place], pa.int32()), answer], ["place", "answer"])


def _frames(types: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pd.DataFrame]:
    """Join Spark's batches, of 10,000 rows by default, to batches of the size that we encode at once."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= batch_rows(len(types)):
            yield from slices(frame_of(pa.Table.from_batches(waiting).cast(types), "a part"))
            waiting = []
    if waiting:
        yield from slices(frame_of(pa.Table.from_batches(waiting).cast(types), "a part"))


def _answer_of(row: Any) -> Any:
    """Return the answer of a part. Spark itself unpickles all that its workers send."""
    return pickle.loads(row.answer)  # noqa: S301


def _add_row(add: Callable[[A, A], A], some: A | None, row: Any) -> A:
    return _add_some(add, some, _answer_of(row))


def _add_some(add: Callable[[A, A], A], some: A | None, others: A | None) -> Any:
    """Return the sum, where None is the empty sum."""
    if some is None or others is None:
        return others if some is None else some
    return add(some, others)


@contextmanager
def _on_spark(message: str = FAILED) -> Iterator[None]:
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
