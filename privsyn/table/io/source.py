"""The private table as it came: what may be asked of its rows, wherever they lie."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.marginals.counting import Ask, Walk, block_of
from privsyn.marginals.types import Ints, Mask
from privsyn.table.encoding.codec import Codec
from privsyn.table.io.frame_type import PANDAS, FrameType
from privsyn.table.io.persons import KEY, KeptRows, codes_of, fingerprints, persons_of
from privsyn.table.schema.schema import Schema

A = TypeVar("A")

Question = Callable[[Iterator[pd.DataFrame]], A]
"""Asked of the rows of one part of a table, in frames, the first of which has no rows."""

FAILED = (
    "a part of the table could not be counted: does each have the columns and dtypes announced, and its rows"
    " in the same order each time, and every worker this version of privsyn?"
)

CELLS = 2**21
"""Of a batch: some 100,000 rows of a usual table, far fewer of a wide one."""

LEAST_ROWS = 1024

T = TypeVar("T")

Stamps = tuple[tuple[Path, tuple[int, int] | None], ...]
"""Files, each with its size and when it was last written to: what can be said without a look at a row."""


@dataclass(frozen=True, eq=False)
class RawTable(ABC):
    """A table of which questions are asked, part by part; one that is in one place is one part.

    Parameters
    ----------
    head : pandas.DataFrame
        No rows: the names and dtypes of the columns.
    public_inputs : tuple of str
        Facts about the rows that neither schema nor dtypes give and that are taken as public: one sentence
        each, for the ledger.
    schema : Schema, optional
        What a file without dtypes was taken to hold: the schema's columns, or kinds read off the file.
    form : Form
        Which kind of table it is.
    once : bool
        The rows can be walked over once only.
    near : bool
        The rows pass through this process, which may keep their codes.
    stamps : tuple
        The files in which the rows are, if it is these that were given.
    """

    head: pd.DataFrame
    _: KW_ONLY
    public_inputs: tuple[str, ...] = ()
    schema: Schema | None = None
    form: FrameType = PANDAS
    once: bool = False
    near: bool = True
    stamps: Stamps = ()

    @abstractmethod
    def each(self, question: Question[A]) -> list[A]:
        """What a question says of each part, in their order."""

    @abstractmethod
    def ask(self, question: Question[A], add: Callable[[A, A], A]) -> A:
        """What a question says of all rows: `add` makes one answer of two parts', and changes neither.

        A row is in one part, so it moves a sum of answers as far as it moves the answer of its part: every
        sensitivity is what it is for a table in one place. Where a part fails, so does the whole.
        """

    @abstractmethod
    def keep(self, bounds: Sequence[KeptRows]) -> RawTable:
        """The rows of each part that its bound keeps."""

    def walk(self, codec: Codec) -> Walk:
        """A walk over the rows in codes: what a function says of all blocks."""
        return lambda ask: self.ask(partial(_coded, codec, ask), _add)

    def bounded(self, unit: str, choose: Callable[[Ints], Mask]) -> RawTable:
        """The rows that are kept, without the identifiers.

        Parameters
        ----------
        unit : str
            The column of identifiers.
        choose : callable
            Returns which rows are kept, from a code for each: the same for all rows of a person, -1 for none.
        """
        persons_of(self.head, unit)  # refuses a column that is not there, or of another kind
        parts = self.each(partial(_fingerprints, unit, KEY))
        ends = np.cumsum([len(prints) for prints in parts])[:-1]
        kept = np.split(choose(codes_of(np.concatenate(parts))), ends)
        return self.keep([KeptRows.of(unit, *part) for part in zip(parts, kept, strict=True)])

    def require_unchanged(self) -> None:
        """Refuse files that were written to since the table was opened."""
        require_unchanged(self.stamps)

    def require_again(self, what: str) -> None:
        """Refuse rows that pass once where something has to be known of them before they are coded."""
        if self.once:
            raise InputError(
                f"batches that pass once cannot tell first {what}: give a file, a folder or a whole table"
            )


def _fingerprints(unit: str, key: bytes, frames: Iterator[pd.DataFrame]) -> Ints:
    return np.concatenate([fingerprints(frame, unit, key) for frame in frames])


def _coded(codec: Codec, ask: Ask, frames: Iterator[pd.DataFrame]) -> list[Ints]:
    return ask(block_of(codec.encode(frame)) for frame in frames)


def _add(some: list[Ints], others: list[Ints]) -> list[Ints]:
    return list(map(operator.add, some, others))


@dataclass(frozen=True, eq=False)
class Parts(RawTable):
    """A table in parts, of which each engine has its own kind.

    Parameters
    ----------
    bounds : tuple of Bound
        One for each part, where some rows are left out; else none.
    """

    near: bool = False
    bounds: tuple[KeptRows, ...] = field(default=(), repr=False)

    def keep(self, bounds: Sequence[KeptRows]) -> Parts:
        """The rows of each part that its bound keeps; the choice is made anew each time it is asked."""
        unit = bounds[0].unit
        return replace(self, head=self.head.drop(columns=unit), bounds=tuple(bounds))


def _from_head(
    head: pd.DataFrame, bound: KeptRows | None, frames: Iterator[pd.DataFrame]
) -> Iterator[pd.DataFrame]:
    return chain([head], frames if bound is None else bound.kept_of(frames))


def _unless_it_fails(run: Callable[[], A], said: str = FAILED) -> A:
    """What it makes; where it fails, not what the failure says, which may quote a row.

    So on the workers too: what is raised there an engine writes to its logs, on whatever machine.
    """
    with suppress(Exception):
        return run()
    raise InputError(said)


def batch_rows(columns: int) -> int:
    """How many rows are read at a time.

    >>> batch_rows(15), batch_rows(10_000)
    (139810, 1024)
    """
    return max(LEAST_ROWS, CELLS // max(columns, 1))


def slices(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The rows of a frame: to code all at once would take several times their memory."""
    rows = batch_rows(len(frame.columns))
    for start in range(0, len(frame), rows):
        yield frame.iloc[start : start + rows]


def stamps_of(files: Sequence[Path]) -> Stamps:
    """What the files are before anything is read of them."""
    return tuple((file, _stamp(file)) for file in files)


def unchanged(stamps: Stamps, walk: Callable[[], Iterator[T]]) -> Iterator[T]:
    """One walk, refused before it begins and when it ends if a file is no longer what it was."""
    failed: InputError | None = None
    require_unchanged(stamps)
    try:
        yield from walk()
    except InputError as error:
        failed = error
    require_unchanged(stamps)  # before all else: a file that is cut short meanwhile looks damaged
    if failed is not None:
        raise failed


def require_unchanged(stamps: Stamps) -> None:
    """Refuse files that are no longer what they were."""
    for file, before in stamps:
        if _stamp(file) != before:
            raise InputError(f"{file}: was changed while it was read: let nothing write to it, and run again")


def _stamp(file: Path) -> tuple[int, int] | None:
    """None if there is no such file, or none that can be looked at."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
