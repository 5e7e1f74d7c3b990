"""Tables in parts on a cluster: each part is asked where it lies, and what the parts say is added there.

No engine of our own: Dask or Spark does the work, with our codec and our kernel on each part. What travels to
the parts are public settings and what was released; back come sums, and noise is added to those once, in this
process. Where rows of a person are bounded, a fingerprint of each row's identifier comes here too, and which
rows are kept goes back.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import chain
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError
from privsyn.table.arrow_cells import frame_of, readable
from privsyn.table.form import Form
from privsyn.table.persons import Bound
from privsyn.table.quiet import dask_quiet, spark_quiet
from privsyn.table.raw import Question, RawTable
from privsyn.table.stream import batch_rows, slices

A = TypeVar("A")

FAILED = (
    "a part of the table could not be counted: does each have the columns and dtypes announced, and its rows"
    " in the same order each time, and every worker this version of privsyn?"
)

UNREADABLE = "the Spark data frame: cannot be read: can Spark run it, and has Arrow a type for each column?"

MADE = "that all parts can be made"
"""Public of a data frame in parts: what makes them may fail at a cell."""

PARTS = "the dtypes of every part, and that all parts can be made"
"""Public of a Dask data frame: whatever makes its parts may take the dtypes of each off its cells."""

ANSWER = "place int, answer binary"
"""What a part says in Spark: which one it is, and its answer pickled."""

UNKNOWN_CATEGORIES = "__UNKNOWN_CATEGORIES__"
"""What Dask puts in the place of categories that it has not looked for; then each part has its own."""

FEW = 16
"""Parts whose answers all come to this process in Spark: to add them there first would take longer."""

LARGE = 2**19
"""Bytes of bounds that are sent to Spark's workers by themselves: in a question of a megabyte Spark warns of
its size, which with `unit` grows with the number of rows."""


@dataclass(frozen=True, eq=False)
class Parts(RawTable):
    """A table in parts, of which each engine has its own kind.

    Parameters
    ----------
    bounds : tuple of Bound
        One for each part, where some rows are left out; else none.
    """

    near: bool = False
    bounds: tuple[Bound, ...] = field(default=(), repr=False)

    def keep(self, bounds: Sequence[Bound]) -> Parts:
        """The rows of each part that its bound keeps; the choice is made anew each time it is asked."""
        unit = bounds[0].unit
        head, form = self.head.drop(columns=unit), self.form.without((unit,))
        return replace(self, head=head, form=form, bounds=tuple(bounds))


@dataclass(frozen=True, eq=False)
class DaskParts(Parts):
    """A Dask data frame.

    Parameters
    ----------
    parts : tuple of dask.delayed.Delayed
        Each makes a data frame.
    announced : pandas.DataFrame
        No rows: the columns that each part must have, that of identifiers too.
    """

    parts: tuple[Any, ...] = ()
    announced: pd.DataFrame = field(default_factory=pd.DataFrame)

    @classmethod
    def of(cls, frame: Any) -> DaskParts:
        """The parts of a Dask data frame, whose names and dtypes are those it announces."""
        head = pd.DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in frame.dtypes.items()})
        for name, dtype in head.dtypes.items():
            if isinstance(dtype, pd.CategoricalDtype) and UNKNOWN_CATEGORIES in dtype.categories:
                raise InputError(
                    f"column {name!r}: Dask does not know its categories: call .cat.as_known() on it"
                )
        return cls(head, public_inputs=(PARTS,), parts=tuple(frame.to_delayed()), announced=head)

    def each(self, question: Question[A]) -> list[A]:
        """What a question says of each part, in their order."""
        from dask.base import compute

        with dask_quiet():
            return list(_unless_it_fails(partial(compute, *self._asked(question))))

    def ask(self, question: Question[A], add: Callable[[A, A], A]) -> A:
        """What a question says of all rows, added by twos where the answers are."""
        from dask.delayed import delayed

        answers = self._asked(question)
        while len(answers) > 1:
            pairs = zip(answers[::2], answers[1::2], strict=False)
            answers = [delayed(add)(*pair) for pair in pairs] + answers[len(answers) // 2 * 2 :]
        with dask_quiet():
            return _unless_it_fails(answers[0].compute)

    def _asked(self, question: Question[A]) -> list[Any]:
        from dask.delayed import delayed

        bounds = self.bounds or [None] * len(self.parts)
        return [
            delayed(_asked_of_frame)(question, self.head, self.announced, bound, part)
            for bound, part in zip(bounds, self.parts, strict=True)
        ]


def _asked_of_frame(
    question: Question[A],
    head: pd.DataFrame,
    announced: pd.DataFrame,
    bound: Bound | None,
    part: pd.DataFrame,
) -> A:
    return _unless_it_fails(lambda: question(_from_head(head, bound, slices(_as_announced(part, announced)))))


def _as_announced(part: pd.DataFrame, announced: pd.DataFrame) -> pd.DataFrame:
    """The part, in cells that can be read; refused if its columns or dtypes are others: Dask does not look.

    A cell that is missing or has a fraction makes floats of the integers in its part. Then identifiers beyond
    2^53 would be none there, so one row would drop those of others; and 1 among categories would be 1.0, so
    that one row moves the votes of all.
    """
    if list(part.columns) != list(announced.columns) or not all(map(_alike, part.dtypes, announced.dtypes)):
        raise InputError("a part of the table has other columns or dtypes than are announced")
    return readable(part)


def _alike(dtype: Any, announced: Any) -> bool:
    """Whether two dtypes are one; of categories the type is public, and which they are is not asked."""
    if isinstance(dtype, pd.CategoricalDtype) and isinstance(announced, pd.CategoricalDtype):
        return dtype.categories.dtype == announced.categories.dtype
    return bool(dtype == announced)


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
        form = replace(Form.of(empty), kind="pandas")
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


def _from_head(
    head: pd.DataFrame, bound: Bound | None, frames: Iterator[pd.DataFrame]
) -> Iterator[pd.DataFrame]:
    return chain([head], frames if bound is None else bound.kept_of(frames))


def _on_spark(run: Callable[[], A], said: str = FAILED) -> A:
    with spark_quiet():
        return _unless_it_fails(run, said)


def _unless_it_fails(run: Callable[[], A], said: str = FAILED) -> A:
    """What it makes; where it fails, not what the failure says, which may quote a row.

    So on the workers too: what is raised there an engine writes to its logs, on whatever machine.
    """
    with suppress(Exception):
        return run()
    raise InputError(said)
