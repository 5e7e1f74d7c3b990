"""Draws: several synthetic tables, each from its own draw of the private table's counts.

The part of a release that is about some columns is drawn in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from os import PathLike, cpu_count
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import pandas as pd

from privsyn.abilities import check_abilities
from privsyn.arguments import check_whole
from privsyn.errors import InputError
from privsyn.inference.fitted import Fitted
from privsyn.inference.posterior.tables import Posterior, made_up
from privsyn.progress import Progress, no_progress
from privsyn.release.accuracy_of_numbers import OrderedColumns
from privsyn.synthesis.synthesise import ENOUGH
from privsyn.table.codec.codec import Codec
from privsyn.table.io.write import stacked, write_blocks
from privsyn.threads import ahead

if TYPE_CHECKING:
    from privsyn.release.release import Release


NUMBER = "draw"
"""The column of a file that says to which draw a row belongs, from 1 up."""

T = TypeVar("T")

MOST_THREADS = 4
"""Tables that are made at once: each takes memory."""


class Draws(Sequence[Any]):
    """Synthetic tables that differ as much as the noise leaves the private table open.

    A sequence of tables of the same type as the private one. Each is made when it is asked for, and is the
    same each time.

    Parameters
    ----------
    release : Release
    m : int
        Number of tables, at least 2.
    n : int, optional
        Rows of each, at least 1. Default: the private estimate of the table's row count.
    seed : int, optional
    progress : callable, optional
    """

    def __init__(
        self,
        release: Release[Any],
        m: int,
        n: int | None = None,
        seed: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._release, self._m = release, check_whole("m", m, least=2)
        self._n = release.number_of_rows(None) if n is None else check_whole("n", n, least=1)
        self._entropy = np.random.SeedSequence(None if seed is None else check_whole("seed", seed)).entropy
        self._report = progress or no_progress
        self._posterior, self._kinds = posterior_of(release), release.kinds

    def __len__(self) -> int:
        return self._m

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self[k] for k in range(self._m)[place]]
        return self._table(range(self._m)[place])

    def __repr__(self) -> str:
        return f"<Draws: {self._m} tables of {self._n} rows from {self._release!r}>"

    def __iter__(self) -> Iterator[Any]:
        return self._made(self._table)

    def _table(self, k: int) -> Any:
        """Return one table, of the type of the private one."""
        return self._release.form.cast(self.frame(k), self._release.codec.schema)

    def frames(self) -> Iterator[pd.DataFrame]:
        """Yield all tables as pandas data frames."""
        return self._made(self.frame)

    def _made(self, make: Callable[[int], T]) -> Iterator[T]:
        """Yield what is made of each place. Threads make the next ones; this changes no table."""
        threads = min(cpu_count() or 1, MOST_THREADS)
        with closing(ahead(make, range(self._m), threads)) as made:
            for k in range(self._m):
                self._report("drawing tables", k, self._m)
                yield next(made)
            self._report("drawing tables", self._m, self._m)

    def to_file(self, path: str | PathLike[str], *, excel_safe: bool = False) -> tuple[int, int]:
        """Write all tables to one file, one below the other, with the number of the draw in column "draw".

        Returns
        -------
        rows, columns : int

        Raises
        ------
        InputError
            If the file cannot be written, the table has a column of that name, or its rows are linked.
        """
        check_abilities(self._kinds, {"draws": self})
        codec, form = self._release.codec, self._release.form
        if NUMBER in codec.names:
            raise InputError(f"a column is called {NUMBER!r}, as is that of the draws: save them one by one")
        blocks = (
            pd.concat([pd.Series(k, frame.index, name=NUMBER), frame], axis=1)
            for k, frame in enumerate(self.frames(), start=1)
        )
        return write_blocks(blocks, path, codec.schema, form, excel_safe=excel_safe)

    def frame(self, k: int) -> pd.DataFrame:
        """Return one table as a pandas data frame."""
        posterior, synthesis = np.random.SeedSequence(self._entropy, spawn_key=(k,)).spawn(2)
        rng = np.random.default_rng(posterior)
        drawn = self._posterior.draw(rng)
        records = replace(self._release, fitted=drawn).records(min(self._n, ENOUGH), rng)
        drawn = made_up(drawn, records, self._posterior.numbers)
        # With this total, exactly n records are made. More records, thinned to n, would add sampling noise.
        release = replace(self._release, fitted=replace(drawn, total=float(self._n)))
        return stacked(release.blocks(self._n, int(synthesis.generate_state(1)[0]), None))


def posterior_of(release: Release) -> Posterior:
    """Return the tables that the private one could have, given a release."""
    columns = OrderedColumns(release.codec, release.fitted)
    numbers = {name: columns.cells(name).middles for name in columns.counted}
    return Posterior(release.fitted, release.zeros, numbers)


DRAWS = 20
MOST_ROWS = 20_000  # of a draw: its rows are fitted to the counts, so fewer add little


def frames_of(
    release: Release[Any], columns: frozenset[str] | None, progress: Progress | None
) -> Iterator[pd.DataFrame]:
    """Yield draws of some columns; for None, one synthetic table of all columns."""
    rows = min(round(release.fitted.total), MOST_ROWS)
    if columns is None:
        yield stacked(release.blocks(rows, 0, progress))
    else:
        yield from part_of(release, columns).draws(DRAWS, rows, seed=0, progress=progress).frames()


def part_of(release: Release, columns: Collection[str]) -> Release:
    """Return the release of some columns, and of those that constraints link with them.

    It has the one-way tables of these columns, and the tables of several columns that have no others.
    """
    codec, fitted = codec_of(release.codec, columns), release.fitted
    inside, first = set(codec.domain), len(fitted.one_ways)
    alone = [release.codec.domain.names.index(name) for name in codec.domain]
    kept = [place for place, table in enumerate(fitted.marginals) if inside >= set(table.attributes)]
    part = Fitted(
        fitted.merging.project(codec.domain.names),
        tuple(fitted.one_ways[place] for place in alone),
        tuple(fitted.marginals[place] for place in kept),
        fitted.total,
        tuple(fitted.certainties[place] for place in (*alone, *(first + place for place in kept))),
    )
    return replace(release, codec=codec, fitted=part)


def codec_of(codec: Codec, columns: Collection[str], *, constrained: bool = True) -> Codec:
    """Return the codec of some columns, and of those that constraints link with them.

    With `constrained` False there are no constraints, and no further columns.
    """
    names, chosen = set(columns), codec.schema.constraints if constrained else ()
    while linked := {n for c in chosen if names & set(c.columns) for n in c.columns} - names:
        names |= linked
    schema = replace(
        codec.schema,
        columns={name: column for name, column in codec.schema.columns.items() if name in names},
        constraints=[constraint for constraint in chosen if names & set(constraint.columns)],
    )
    return replace(
        codec,
        schema=schema,
        names=tuple(name for name in codec.names if name in names),
        dtypes=tuple(dtype for name, dtype in zip(codec.names, codec.dtypes, strict=True) if name in names),
        heaps={name: heaps for name, heaps in codec.heaps.items() if name in names},
        split=tuple(name for name in codec.split if name in names),
        compared=tuple(name for name in codec.compared if name in names),
    )
