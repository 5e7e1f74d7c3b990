"""Dask data frames: each partition is encoded and counted where it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

import pandas as pd

from privsyn.errors import InputError, replace_errors
from privsyn.marginals.counting import Ask, Walk
from privsyn.marginals.domain import Ints
from privsyn.table.codec.codec import Codec
from privsyn.table.io import source as raw
from privsyn.table.io.arrow import readable
from privsyn.table.io.identifiers import KeptRows

A = TypeVar("A")

PARTS = "the dtypes of every part, and that all parts can be made"
"""Public input for a Dask data frame: what produces a part may guess its dtypes from the cells."""

UNKNOWN_CATEGORIES = "__UNKNOWN_CATEGORIES__"
"""Dask's placeholder for categories that it has not computed; each part then has its own."""


@dataclass(frozen=True, eq=False)
class DaskParts(raw.RawTable):
    """A Dask data frame.

    Parameters
    ----------
    parts : tuple of dask.delayed.Delayed
        Each returns a data frame.
    announced : pandas.DataFrame
        No rows: the columns that each part must have, with that of identifiers.
    """

    near: bool = False
    parts: tuple[Any, ...] = ()
    announced: pd.DataFrame = field(default_factory=pd.DataFrame)

    @classmethod
    def of(cls, frame: Any) -> DaskParts:
        """Return the parts of a Dask data frame, with the names and dtypes that it announces."""
        head = pd.DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in frame.dtypes.items()})
        for name, dtype in head.dtypes.items():
            if isinstance(dtype, pd.CategoricalDtype) and UNKNOWN_CATEGORIES in dtype.categories:
                raise InputError(
                    f"column {name!r}: Dask does not know its categories: call .cat.as_known() on it"
                )
        return cls(readable(head), public_inputs=(PARTS,), parts=tuple(frame.to_delayed()), announced=head)

    def results(self, question: raw.Question[A]) -> list[A]:
        """Return the result for each part, in their order."""
        from dask.base import compute

        with _quiet(), replace_errors(raw.FAILED):
            return list(compute(*self.delayed(question)))  # type: ignore[no-untyped-call]

    def ask(self, question: raw.Question[A], add: Callable[[A, A], A]) -> A:
        """Return the sum of the results, added in pairs on the workers."""
        with _quiet(), replace_errors(raw.FAILED):
            return sum_of(self.delayed(question), add).compute()

    def walk(self, codec: Codec, memory: float = 0) -> Walk:
        """Return a function that applies another to the codes of all rows; the workers keep codes."""
        return _KeptWalk(self, codec, memory / len(self.parts))

    def delayed(self, question: raw.Question[A]) -> list[Any]:
        """Return the result for each part, not computed yet."""
        from dask.delayed import delayed

        bounds = self.bounds or [None] * len(self.parts)
        return [
            delayed(_result)(question, self.head, self.announced, bound, part)
            for bound, part in zip(bounds, self.parts, strict=True)
        ]


class _KeptWalk:
    """A walk over the codes of all rows that leaves the codes of small parts with the workers.

    The walk is over the same rows if these are read again, as `docs/performance.md` demands of a frame.

    Parameters
    ----------
    table : DaskParts
    codec : Codec
    most : float
        Bytes that the packed codes of one part may take. Those of a larger part are made again in each walk.
    """

    def __init__(self, table: DaskParts, codec: Codec, limit: float) -> None:
        self._table, self._codec, self._most = table, codec, limit
        self._kept: list[Any] = []

    def __call__(self, ask: Ask) -> list[Ints]:
        """Return the sum of the answers for all parts."""
        with _quiet(), replace_errors(raw.FAILED):
            return self._again(ask) if self._kept else self._first(ask)

    def _first(self, ask: Ask) -> list[Ints]:
        from dask.base import compute, persist
        from dask.delayed import delayed

        both = self._table.delayed(partial(raw.ask_and_keep, self._codec, self._most, ask))
        packed = [delayed(itemgetter(1))(answer_and_codes) for answer_and_codes in both]
        wanted = (
            sum_of([delayed(itemgetter(0))(answer_and_codes) for answer_and_codes in both], raw.add_counts),
            list(map(delayed(bool), packed)),
        )
        wanted, packed = persist(wanted, packed)  # type: ignore[no-untyped-call]
        answer, are_kept = compute(*wanted)  # type: ignore[no-untyped-call]
        self._kept = [codes if is_kept else None for codes, is_kept in zip(packed, are_kept, strict=True)]
        return answer

    def _again(self, ask: Ask) -> list[Ints]:
        from dask.delayed import delayed

        read = self._table.delayed(partial(raw.ask_codes, self._codec, map, ask))
        results = [
            part if codes is None else delayed(raw.ask_kept)(self._codec, ask, codes)
            for part, codes in zip(read, self._kept, strict=True)
        ]
        return sum_of(results, raw.add_counts).compute()


def sum_of(results: list[Any], add: Callable[[A, A], A]) -> Any:
    """Return the sum of results that are not computed yet, added in pairs."""
    from dask.delayed import delayed

    while len(results) > 1:
        pairs = zip(results[::2], results[1::2], strict=False)
        results = [delayed(add)(*pair) for pair in pairs] + results[len(results) // 2 * 2 :]
    return results[0]


def _result(
    question: raw.Question[A],
    head: pd.DataFrame,
    announced: pd.DataFrame,
    bound: KeptRows | None,
    part: pd.DataFrame,
) -> A:
    """Apply a question to a part on a worker, which writes errors to its log: none may quote a row."""
    with replace_errors(raw.FAILED):
        return question(raw.with_head(head, bound, raw.slices(_as_announced(part, announced))))


def _as_announced(part: pd.DataFrame, announced: pd.DataFrame) -> pd.DataFrame:
    """Return the part in cells that can be read; refuse other columns or dtypes, which Dask does not check.

    A cell that is missing or has a fraction turns the integers of its part into floats. Then identifiers
    beyond 2^53 would be dropped there, so one row would remove those of others. And 1 among categories would
    be 1.0, so one row would move the votes of all.
    """
    if list(part.columns) != list(announced.columns) or not all(map(_alike, part.dtypes, announced.dtypes)):
        raise InputError("a part of the table has other columns or dtypes than are announced")
    return readable(part)


def _alike(dtype: Any, announced: Any) -> bool:
    """Return whether two dtypes are equal. Of categories the type is public, and the values are ignored."""
    if isinstance(dtype, pd.CategoricalDtype) and isinstance(announced, pd.CategoricalDtype):
        return dtype.categories.dtype == announced.categories.dtype
    return bool(dtype == announced)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's warning about the size of what is sent: with `unit` the size grows with the rows.

    `distributed` must be imported already. If this were set first, `distributed` would miss its own defaults.
    """
    from dask import config

    if "distributed" not in sys.modules:
        yield
        return
    with config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
        yield
