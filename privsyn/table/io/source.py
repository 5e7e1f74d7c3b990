"""The private table, wherever its rows are: a function is applied to each part, and its results are added."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError, replace_errors
from privsyn.marginals.counting import Ask, Block, CountTables, Packing, Walk, block_of
from privsyn.marginals.domain import Ints, Mask
from privsyn.table.codec.codec import Codec
from privsyn.table.io.identifiers import KEY, KeptRows, fingerprints, persons_of
from privsyn.table.io.output_type import PANDAS, OutputType
from privsyn.table.kinds.keys import Key, columns_of
from privsyn.table.schema.schema import Schema
from privsyn.threads import ahead

A = TypeVar("A")
B = TypeVar("B")

Question = Callable[[Iterator[pd.DataFrame]], A]
"""A function of the rows of one part of a table, in one or more frames; the first may have no rows."""

Compute = Callable[[Callable[[A], B], Iterator[A]], Iterator[B]]
"""Applies a function to each batch, in order."""

FAILED = (
    "a part of the table could not be counted: does each have the columns and dtypes announced, and its rows"
    " in the same order each time, and every worker this version of privsyn?"
)

CELLS = 2**22
"""Cells of a batch: about 200,000 rows of 20 columns."""

LEAST_ROWS = 4096  # of a batch: each column of it takes 0.2 ms before the first cell is read

AHEAD = 2  # batches that are read, and as many that are encoded, while others are counted

Stamps = tuple[tuple[Path, tuple[int, int] | None], ...]
"""Files, each with its size and the time of its last change (ns). No row is read for these."""


class Counted(Protocol):
    """What is counted of rows; the counts of two parts of a table add up."""

    def count(self, table: pd.DataFrame) -> Any:
        """Return the counts of some rows. Private."""


@dataclass(frozen=True, eq=False)
class RawTable(ABC):
    """A table in one or more parts. A subclass knows where the parts are.

    Parameters
    ----------
    head : pandas.DataFrame
        No rows: the names and dtypes of the columns.
    public_inputs : tuple of str
        A sentence for the ledger about each fact about the rows that is taken as public, in addition to
        schema and dtypes.
    schema : Schema, optional
        How a file without dtypes was read: the schema's columns, or kinds guessed from the file.
    form : OutputType
        Which kind of table it is.
    once : bool
        The rows can be read once only.
    near : bool
        The rows pass through this process, which may keep their codes.
    lasting : bool
        A batch stays as it is when the next one is read, so threads may encode it meanwhile. A source that
        fills one buffer again and again must not say so: its rows would be counted twice, or not at all.
    stamps : tuple
        The files in which the rows are, if files were given.
    bounds : tuple of KeptRows
        One for each part where the rows of a person are bounded, else empty.
    """

    head: pd.DataFrame
    _: KW_ONLY
    public_inputs: tuple[str, ...] = ()
    schema: Schema | None = None
    form: OutputType = PANDAS
    once: bool = False
    near: bool = True
    lasting: bool = False
    stamps: Stamps = ()
    bounds: tuple[KeptRows, ...] = field(default=(), repr=False)

    @abstractmethod
    def results(self, question: Question[A]) -> list[A]:
        """Return the result for each part, in their order."""

    @abstractmethod
    def ask(self, question: Question[A], add: Callable[[A, A], A]) -> A:
        """Return the sum of the results for all parts; `add` adds two and changes neither.

        A row is in one part, so it moves the sum as far as it moves the result of its part. Every sensitivity
        is therefore that of a table in one place. If a part fails, the whole fails.
        """

    def check(self, codec: Codec) -> None:  # noqa: B027 - most sources take all columns
        """Refuse a column whose codes cannot be made where the rows are, before any question."""

    def counter(self, codec: Codec) -> CountTables | None:
        """Return what counts the coded rows where they are; None if a walk over their codes does."""
        return None

    def walk(self, codec: Codec, memory: float = 0) -> Walk:
        """Return a function that applies another to the codes of all rows.

        A cluster may keep packed codes of `memory` bytes. Codes that pass through this process are the
        caller's to keep.
        """
        compute: Compute[pd.DataFrame, Block] = partial(ahead, threads=AHEAD) if self.lasting else map
        return lambda ask: self.ask(partial(ask_codes, codec, compute, ask), add_counts)

    def tally(
        self, counted: Sequence[Counted], add: Callable[[list[Any], list[Any]], list[Any]]
    ) -> list[Any]:
        """Return what is counted of all rows, for each question; `add` adds the counts of two parts."""
        return self.ask(partial(_counts, counted, add), add)

    def check_search(self, open_schema: Any) -> None:  # noqa: B027 - most sources take all columns
        """Refuse an open column that cannot be counted exactly, before anything is asked.

        Parameters
        ----------
        open_schema : OpenSchema
        """

    def fingerprints(self, unit: Key) -> list[Ints]:
        """Return the `fingerprints` of the rows of each part.

        Parameters
        ----------
        unit : str or tuple of str
            The columns of identifiers.
        """
        for column in columns_of(unit):
            persons_of(self.head, column)  # refuses a missing column, or one of another kind
        source = self.only(unit) if isinstance(unit, str) else self
        return source.results(partial(_fingerprints, unit, KEY))

    def only(self, name: str) -> RawTable:
        """Return the same rows for a question about one column. Some sources can read this column alone."""
        return self

    def column(self, name: str) -> pd.Series:
        """Return a column of all rows of a table in one part. Its dtype follows from the announced one."""
        dtype: Any = self.head[name].dtype
        join = partial(_joined_categories, dtype) if isinstance(dtype, pd.CategoricalDtype) else _joined
        (cells,) = self.only(name).results(lambda frames: join([frame[name] for frame in frames]))
        return cells

    def bounded(
        self,
        unit: Key,
        prints: Sequence[Ints],
        mask: Mask,
        also: tuple[str, ...] = (),
        added: pd.DataFrame | None = None,
    ) -> RawTable:
        """Return the table of some rows, without the identifiers.

        Parameters
        ----------
        unit : str or tuple of str
            The columns of identifiers.
        prints : sequence of arrays
            The fingerprints of the rows of each part.
        mask : array of shape (rows,)
            Which rows of all parts are kept.
        also : tuple of str
            Further columns that are left out.
        added : pandas.DataFrame, optional
            Columns that the rows of a table of one part get.
        """
        ends = np.cumsum([len(part) for part in prints])[:-1]
        bounds = [KeptRows.of(unit, *part) for part in zip(prints, np.split(mask, ends), strict=True)]
        head = self.head.drop(columns=[*columns_of(unit), *also])
        if also or added is not None:
            bounds = [replace(bound, also=also, added=added) for bound in bounds]
        if added is not None:
            head = pd.concat([head, added.iloc[:0]], axis=1)
        return replace(self, head=head, bounds=tuple(bounds))

    def unordered(self, names: Sequence[str]) -> RawTable:
        """Return the table whose columns `names` are categories without an order, as read and as released."""
        bare = {name: self.head[name].cat.as_unordered() for name in names}
        return replace(self, head=self.head.assign(**bare), form=self.form.unordered(names))

    def require_unchanged(self) -> None:
        """Refuse files that were written to since the table was opened.

        This is checked before and after every walk over the rows, also if they are kept in memory. So all
        answers are about the same rows, and a change after the last walk does no harm. A change before it
        ends the run, because a file that is written to during a walk may show one row twice, which would move
        an answer by more than its sensitivity. A run that is ended shows none of its answers.
        """
        require_unchanged(self.stamps)

    def require_again(self, subject: str) -> None:
        """Refuse rows that can be read once only where `subject` must be known before they are coded."""
        if self.once:
            raise InputError(
                f"batches that can be read only once cannot show first {subject}:"
                " give a file, a folder or a whole table"
            )


def _joined(batches: Sequence[pd.Series]) -> pd.Series:
    """Return the cells of all batches, which have one dtype."""
    return pd.concat(batches, ignore_index=True)


def _joined_categories(dtype: pd.CategoricalDtype, batches: Sequence[pd.Series]) -> pd.Series:
    """Return the cells of all batches, with all their categories; `dtype` says of which type these are.

    pandas keeps categories only if all batches have the same. Else it makes cells of another dtype: one row
    with a value of its own would change all cells, such as 1 to 1.0.

    >>> batches = [pd.Series([1, None], dtype=pd.CategoricalDtype([1])), pd.Series([3], dtype="category")]
    >>> joined = _joined_categories(batches[0].dtype, batches)
    >>> joined.cat.categories.tolist(), pd.concat(batches).tolist()
    ([1, 3], [1.0, nan, 3.0])
    """
    code_of_value: dict[tuple[type, Any], int] = {}
    codes = []
    for batch in batches:
        values = [value + 0.0 if type(value) is float else value for value in batch.cat.categories.tolist()]
        # -0.0 is 0.0
        of_batch = [code_of_value.setdefault((type(value), value), len(code_of_value)) for value in values]
        codes.append(np.array([*of_batch, -1])[batch.cat.codes])
    categories = pd.Index([value for _, value in code_of_value], dtype=dtype.categories.dtype)
    joined = pd.Categorical.from_codes(np.concatenate(codes), categories, ordered=dtype.ordered)
    return pd.Series(joined)


def _counts(
    counted: Sequence[Counted],
    add: Callable[[list[Any], list[Any]], list[Any]],
    frames: Iterator[pd.DataFrame],
) -> list[Any]:
    """Return the exact counts of some rows, one for each question. Private."""
    return reduce(add, ([question.count(frame) for question in counted] for frame in frames))


def _fingerprints(unit: Key, key: bytes, frames: Iterator[pd.DataFrame]) -> Ints:
    return np.concatenate([fingerprints(frame, unit, key) for frame in frames])


def ask_codes(
    codec: Codec, compute: Compute[pd.DataFrame, Block], ask: Ask, frames: Iterator[pd.DataFrame]
) -> list[Ints]:
    """Apply a function to the codes of all rows: each is encoded once, before its batch can change."""
    return ask(compute(lambda frame: block_of(codec.encode(frame)), frames))


def ask_and_keep(
    codec: Codec, limit: float, ask: Ask, frames: Iterator[pd.DataFrame]
) -> tuple[list[Ints], list[Block]]:
    """Return the answer for a part, and its packed codes; no codes if they take more than `limit` bytes."""
    blocks: list[Block] = []
    size, pack = 0, Packing(codec.domain.sizes).pack

    def keep(frame: pd.DataFrame) -> Block:
        nonlocal size
        block = block_of(codec.encode(frame))
        packed = pack(block)
        size += sum(column.nbytes for column in packed)
        blocks.append(packed)
        if size > limit:
            blocks.clear()
        return block

    return ask(map(keep, frames)), blocks


def ask_kept(codec: Codec, ask: Ask, blocks: Iterable[Block]) -> list[Ints]:
    """Apply a function to codes that were kept."""
    return ask(map(Packing(codec.domain.sizes).unpack, blocks))


def add_counts(first: list[Ints], second: list[Ints]) -> list[Ints]:
    """Return the sum of two answers."""
    return list(map(operator.add, first, second))


def with_head(
    head: pd.DataFrame, bound: KeptRows | None, frames: Iterator[pd.DataFrame]
) -> Generator[pd.DataFrame]:
    """Yield the frames of a part with the rows that `bound` keeps; the empty `head` if there is no frame."""
    frames_kept = frames if bound is None else bound.rows_of(frames)
    yield next(frames_kept, head)
    yield from frames_kept


def batch_rows(columns: int) -> int:
    """Return how many rows are read at a time.

    >>> batch_rows(15), batch_rows(10_000)
    (279620, 4096)
    """
    return max(LEAST_ROWS, CELLS // max(columns, 1))


def slices(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the rows in batches: to code all at once would take several times their memory."""
    rows = batch_rows(len(frame.columns))
    for start in range(0, len(frame), rows):
        yield frame.iloc[start : start + rows]


def stamps_of(files: Sequence[Path]) -> Stamps:
    """Return size and time of each file, before anything is read from it."""
    return tuple((file, _stamp(file)) for file in files)


def unchanged(stamps: Stamps, walk: Callable[[], Iterator[A]]) -> Iterator[A]:
    """Yield from `walk`; refuse a file that changed before it began or by its end.

    If the walk fails, a change is reported first: a file that is cut short meanwhile looks damaged.
    """
    require_unchanged(stamps)
    with replace_errors(lambda error: _change(stamps) or str(error), InputError):
        yield from walk()
    require_unchanged(stamps)
    pa.default_memory_pool().release_unused()  # Arrow would keep the memory of the largest batch


def require_unchanged(stamps: Stamps) -> None:
    """Refuse files that have changed."""
    if change := _change(stamps):
        raise InputError(change)


def _change(stamps: Stamps) -> str:
    for file, before in stamps:
        if _stamp(file) != before:
            return f"{file}: was changed while it was read: let nothing write to it, and run again"
    return ""


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return size and time of a file, or None if it cannot be accessed, or is empty.

    Whoever reads a database of SQLite that has a log makes an empty one.
    """
    try:
        status = file.stat()
    except OSError:
        return None
    return (status.st_size, status.st_mtime_ns) if status.st_size else None
