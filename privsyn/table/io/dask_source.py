"""Dask data frames: each partition is encoded and counted where it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pandas as pd

from privsyn.errors import InputError, replace_errors
from privsyn.table.io.arrow import readable
from privsyn.table.io.persons import KeptRows
from privsyn.table.io.source import FAILED, Question, RawTable, slices, with_head

A = TypeVar("A")

PARTS = "the dtypes of every part, and that all parts can be made"
"""Public input for a Dask data frame: what produces a part may guess its dtypes from the cells."""

UNKNOWN_CATEGORIES = "__UNKNOWN_CATEGORIES__"
"""Dask's placeholder for categories that it has not computed; each part then has its own."""


@dataclass(frozen=True, eq=False)
class DaskParts(RawTable):
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
        return cls(head, public_inputs=(PARTS,), parts=tuple(frame.to_delayed()), announced=head)

    def each(self, question: Question[A]) -> list[A]:
        """Return the result for each part, in their order."""
        from dask.base import compute

        with _quiet(), replace_errors(FAILED):
            return list(compute(*self._delayed(question)))  # type: ignore[no-untyped-call]

    def ask(self, question: Question[A], add: Callable[[A, A], A]) -> A:
        """Return the sum of the results, added in pairs on the workers."""
        from dask.delayed import delayed

        results = self._delayed(question)
        while len(results) > 1:
            pairs = zip(results[::2], results[1::2], strict=False)
            results = [delayed(add)(*pair) for pair in pairs] + results[len(results) // 2 * 2 :]
        with _quiet(), replace_errors(FAILED):
            return results[0].compute()

    def _delayed(self, question: Question[A]) -> list[Any]:
        from dask.delayed import delayed

        bounds = self.bounds or [None] * len(self.parts)
        return [
            delayed(_result)(question, self.head, self.announced, bound, part)
            for bound, part in zip(bounds, self.parts, strict=True)
        ]


def _result(
    question: Question[A],
    head: pd.DataFrame,
    announced: pd.DataFrame,
    bound: KeptRows | None,
    part: pd.DataFrame,
) -> A:
    """Apply a question to a part on a worker, which writes errors to its log: none may quote a row."""
    with replace_errors(FAILED):
        return question(with_head(head, bound, slices(_as_announced(part, announced))))


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
