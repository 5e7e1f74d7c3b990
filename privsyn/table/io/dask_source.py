"""Dask data frames: each partition is coded and counted where it lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd

from privsyn.errors import InputError
from privsyn.table.io.arrow import readable
from privsyn.table.io.persons import KeptRows
from privsyn.table.io.source import Parts, Question, _from_head, _unless_it_fails, slices
from privsyn.table.io.spark_source import A, dask_quiet

PARTS = "the dtypes of every part, and that all parts can be made"
"""Public of a Dask data frame: whatever makes its parts may take the dtypes of each off its cells."""

UNKNOWN_CATEGORIES = "__UNKNOWN_CATEGORIES__"
"""What Dask puts in the place of categories that it has not looked for; then each part has its own."""


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
    bound: KeptRows | None,
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
