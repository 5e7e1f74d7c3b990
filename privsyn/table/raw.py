"""The private table as it came: what may be asked of its rows, wherever they lie."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import pandas as pd

from privsyn.answers.arrays import Ints, Mask
from privsyn.answers.counting import Ask, Walk, block_of
from privsyn.errors import InputError
from privsyn.table.codec import Codec
from privsyn.table.form import PANDAS, Form
from privsyn.table.persons import KEY, Bound, codes_of, fingerprints, persons_of
from privsyn.table.schema import Schema
from privsyn.table.unchanged import Stamps, require_unchanged

A = TypeVar("A")

Question = Callable[[Iterator[pd.DataFrame]], A]
"""Asked of the rows of one part of a table, in frames, the first of which has no rows."""


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
    form: Form = PANDAS
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
    def keep(self, bounds: Sequence[Bound]) -> RawTable:
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
        return self.keep([Bound.of(unit, *part) for part in zip(parts, kept, strict=True)])

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
