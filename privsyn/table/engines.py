"""Tables in parts on a cluster: each part is coded and counted where it lies, and counts are summed there.

No engine of our own: Dask does the work, with our codec and our kernel on each part. What travels are the
public codec to the parts and sums of counts to this process, where noise is added once. Identifiers, and
columns of which values or bounds are to be found, pass through this process part by part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from privsyn.answers.arrays import Ints
from privsyn.answers.counting import Ask, Walk, block_of
from privsyn.errors import InputError
from privsyn.table.codec import Codec
from privsyn.table.persons import KEY, drop_rows
from privsyn.table.stream import Stream, slices


@dataclass(frozen=True, eq=False)
class DaskStream(Stream):
    """A Dask data frame.

    Parameters
    ----------
    parts : sequence of dask.delayed.Delayed
        Each makes a data frame.
    """

    parts: Sequence[Any] = ()

    @classmethod
    def of(cls, frame: Any) -> DaskStream:
        """The stream of a Dask data frame, whose names and dtypes are those it announces."""
        head = pd.DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in frame.dtypes.items()})
        return cls(head, partial(_walk, frame.to_delayed()), near=False, parts=frame.to_delayed())

    def walk(self, codec: Codec) -> Walk:
        """A walk over the blocks of each part, where it lies; the counts are summed by twos."""
        return partial(_sum, self.parts, codec)

    def keep(self, kept: npt.NDArray[np.bool_], unit: str, persons: npt.NDArray[np.int64]) -> DaskStream:
        """The rows that are kept, of those whose `persons` were looked at; without the identifiers."""
        from dask.delayed import delayed

        sizes = [_computed(delayed(len)(part)) for part in self.parts]
        cuts = np.cumsum(sizes)[:-1]
        parts = [
            delayed(drop_rows)(part, mask, unit, codes, KEY)
            for part, mask, codes in zip(
                self.parts, np.split(kept, cuts), np.split(persons, cuts), strict=True
            )
        ]
        return replace(self, head=self.head.drop(columns=unit), batches=partial(_walk, parts), parts=parts)


def _walk(parts: Sequence[Any]) -> Iterator[pd.DataFrame]:
    for part in parts:
        yield from slices(_computed(part))


def _sum(parts: Sequence[Any], codec: Codec, ask: Ask) -> list[Ints]:
    from dask.delayed import delayed

    answers = [delayed(_answer)(codec, ask, part) for part in parts]
    while len(answers) > 1:
        pairs = zip(answers[::2], answers[1::2], strict=False)
        answers = [delayed(_add)(*pair) for pair in pairs] + answers[len(answers) // 2 * 2 :]
    return _computed(answers[0])


def _answer(codec: Codec, ask: Ask, part: pd.DataFrame) -> list[Ints]:
    return ask(block_of(codec.encode(frame)) for frame in slices(part))


def _add(some: list[Ints], others: list[Ints]) -> list[Ints]:
    return [a + b for a, b in zip(some, others, strict=True)]


def _computed(task: Any) -> Any:
    """What a task makes; where it fails, not what the failure says, which may quote a row."""
    with suppress(Exception):
        return task.compute()
    raise InputError(
        "a part of the table could not be counted: does each have the columns and dtypes announced,"
        " and its rows in the same order each time?"
    )
