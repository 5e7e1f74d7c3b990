"""Tables in parts on a cluster: each part is asked where it lies, and what the parts say is added there.

No engine of our own: Dask or Spark does the work, with our codec and our kernel on each part. What travels to
the parts are public settings and what was released; back come sums, and noise is added to those once, in this
process. Where rows of a person are bounded, a fingerprint of each row's identifier comes here too, and which
rows are kept goes back.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa

from privsyn.table.io.arrow import frame_of
from privsyn.table.io.frame_type import FrameType
from privsyn.table.io.source import (
    FAILED,
    Parts,
    Question,
    _from_head,
    _unless_it_fails,
    batch_rows,
    slices,
)

A = TypeVar("A")

UNREADABLE = "the Spark data frame: cannot be read: can Spark run it, and has Arrow a type for each column?"

MADE = "that all parts can be made"
"""Public of a data frame in parts: what makes them may fail at a cell."""

ANSWER = "place int, answer binary"
"""What a part says in Spark: which one it is, and its answer pickled."""

FEW = 16
"""Parts whose answers all come to this process in Spark: to add them there first would take longer."""

LARGE = 2**19
"""Bytes of bounds that are sent to Spark's workers by themselves: in a question of a megabyte Spark warns of
its size, which with `unit` grows with the number of rows."""

LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Of pyspark: they print what failed on the screen, and quote the cell."""

_HUSHED = ContextVar("_HUSHED", default=False)


@dataclass(frozen=True, eq=False)
class SparkParts(Parts):
    """A Spark data frame, classic or of Spark Connect.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    types : pyarrow.Schema
        Of its columns.
    """

    frame: Any = None
    types: pa.Schema = field(default_factory=lambda: pa.schema([]))

    @classmethod
    def of(cls, frame: Any) -> SparkParts:
        """The parts of a Spark data frame, whose names and types are those it announces."""
        announced = _on_spark(lambda: frame.limit(0).toArrow().schema, UNREADABLE)
        types = pa.schema([(column.name, column.type) for column in announced])
        empty = types.empty_table()
        form = replace(FrameType.of(empty), kind="pandas")
        head = frame_of(empty, "the Spark data frame")
        return cls(head, public_inputs=(MADE,), form=form, frame=frame, types=types)

    def each(self, question: Question[A]) -> list[A]:
        """What a question says of each part, in their order."""
        return self._in_order(question, _on_spark(lambda: self._asked(question).collect()))

    def ask(self, question: Question[A], add: Callable[[A, A], A]) -> A:
        """What a question says of all rows; Spark adds the answers of many parts in a tree."""
        if self._by_connect:  # which has no trees
            return reduce(add, self.each(question))
        answers = _on_spark(lambda: self._asked(question).rdd)
        if answers.getNumPartitions() <= FEW:
            return reduce(add, self._in_order(question, _on_spark(answers.collect)))
        seen, both = partial(_and_row, add), partial(_and, add)
        return _on_spark(lambda: answers.treeAggregate(None, seen, both))

    @property
    def _by_connect(self) -> bool:
        return type(self.frame).__module__.startswith("pyspark.sql.connect.")

    def _in_order(self, question: Question[A], said: Sequence[Any]) -> list[A]:
        answers = [_answer_of(row) for row in sorted(said, key=lambda row: row.place)]
        return answers or [question(iter([self.head]))]

    def _asked(self, question: Question[A]) -> Any:
        bounds: Any = self.bounds
        if sum(bound.kept.nbytes for bound in bounds) > LARGE and not self._by_connect:
            bounds = self.frame.sparkSession.sparkContext.broadcast(bounds)
        ask = partial(_asked_of_batches, question, self.head, self.types, bounds)
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of pandas 3: none is used
            return self.frame.mapInArrow(ask, ANSWER)


def _asked_of_batches(
    question: Question[A],
    head: pd.DataFrame,
    types: pa.Schema,
    bounds: Any,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    place, bounds = TaskContext.get().partitionId(), getattr(bounds, "value", bounds)

    def answer() -> bytes:
        frames = _from_head(head, bounds[place] if bounds else None, _frames(types, batches))
        return pickle.dumps(question(frames))

    said = pa.array([_unless_it_fails(answer)], pa.binary())
    yield pa.RecordBatch.from_arrays([pa.array([place], pa.int32()), said], ["place", "answer"])


def _frames(types: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pd.DataFrame]:
    """Spark's batches, of 10,000 rows if not told otherwise, put together to such as we code at once."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= batch_rows(len(types)):
            yield from slices(frame_of(pa.Table.from_batches(waiting).cast(types), "a part"))
            waiting = []
    if waiting:
        yield from slices(frame_of(pa.Table.from_batches(waiting).cast(types), "a part"))


def _and_row(add: Callable[[A, A], A], some: A | None, row: Any) -> A:
    return _and(add, some, _answer_of(row))


def _answer_of(row: Any) -> Any:
    """What `_asked_of_batches` said of a part. Spark unpickles all that its workers send, and so may we."""
    return pickle.loads(row.answer)  # noqa: S301


def _and(add: Callable[[A, A], A], some: A | None, others: A | None) -> Any:
    """Both together, where None is nothing."""
    if some is None or others is None:
        return others if some is None else some
    return add(some, others)


def _on_spark(run: Callable[[], A], said: str = FAILED) -> A:
    with spark_quiet():
        return _unless_it_fails(run, said)


@contextmanager
def dask_quiet() -> Iterator[None]:
    """Let Dask not warn of the size of what is sent, for with `unit` it grows with the number of rows.

    Only where there may be a cluster: set before `distributed` has set all else, it would leave it without.
    """
    from dask import config

    if "distributed" not in sys.modules:
        yield
        return
    with config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
        yield


@contextmanager
def spark_quiet() -> Iterator[None]:
    """Let pyspark not print why something failed, in this thread; what Spark logs is not Python's."""
    from pyspark.logger import PySparkLogger

    for name in LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_heard)  # once, however often it is said
    before = _HUSHED.set(True)
    try:
        yield
    finally:
        _HUSHED.reset(before)


def _is_heard(record: object) -> bool:
    return not _HUSHED.get()
