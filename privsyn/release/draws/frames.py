"""Draws of one table: data frames, each from its own draw of the private table's counts.

The part of a model that is about some columns is drawn in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import replace
from os import cpu_count
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pandas as pd

from privsyn.arguments import check_whole
from privsyn.inference.fitted import Fitted
from privsyn.inference.posterior.tables import Posterior, made_up
from privsyn.progress import Progress, no_progress
from privsyn.release.accuracy_of_numbers import OrderedColumns
from privsyn.synthesis.synthesise import ENOUGH
from privsyn.table.codec.codec import Codec
from privsyn.table.io.write import stacked
from privsyn.threads import ahead

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable

T = TypeVar("T")

MOST_THREADS = 4
"""Tables that are made at once: each takes memory."""


class FrameDraws:
    """Tables of rows that are independent of other rows, which differ as the noise does.

    Parameters
    ----------
    model : FittedTable
    m : int
        Number of tables, at least 2.
    n : int, optional
        Rows of each, at least 1. Default: the private estimate of the table's row count.
    seed : int, optional
    progress : callable, optional
    """

    def __init__(
        self,
        model: FittedTable,
        m: int,
        n: int | None = None,
        seed: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._model, self.m = model, check_whole("m", m, least=2)
        self.n = model.number_of_rows(None) if n is None else check_whole("n", n, least=1)
        self.entropy = np.random.SeedSequence(None if seed is None else check_whole("seed", seed)).entropy
        self._report = progress or no_progress
        self._posterior = posterior_of(model)

    def frame(self, k: int) -> pd.DataFrame:
        """Return one table as a data frame of pandas: the same each time."""
        posterior, synthesis = np.random.SeedSequence(self.entropy, spawn_key=(k,)).spawn(2)
        rng = np.random.default_rng(posterior)
        drawn = self._posterior.draw(rng)
        records = replace(self._model, fitted=drawn).records(min(self.n, ENOUGH), rng)
        drawn = made_up(drawn, records, self._posterior.numbers)
        # With this total, exactly n records are made. More records, thinned to n, would add sampling noise.
        model = replace(self._model, fitted=replace(drawn, total=float(self.n)))
        return stacked(model.blocks(self.n, int(synthesis.generate_state(1)[0]), None))

    def each(self, make: Callable[[int], T]) -> Iterator[T]:
        """Yield what is made of the place of each draw. Threads make the next ones; this changes none."""
        threads = min(cpu_count() or 1, MOST_THREADS)
        with closing(ahead(make, range(self.m), threads)) as made:
            for k in range(self.m):
                self._report("drawing tables", k, self.m)
                yield next(made)
            self._report("drawing tables", self.m, self.m)


def posterior_of(model: FittedTable) -> Posterior:
    """Return the tables that the private one could have, given the model of the released one."""
    columns = OrderedColumns(model.codec, model.fitted)
    numbers = {name: columns.cells(name).middles for name in columns.counted}
    return Posterior(model.fitted, model.zeros, numbers)


DRAWS = 20
MOST_ROWS = 20_000  # of a draw: its rows are fitted to the counts, so fewer add little


def frames_of(
    model: FittedTable, columns: frozenset[str] | None, progress: Progress | None
) -> Iterator[pd.DataFrame]:
    """Yield draws of some columns; for None, one synthetic table of all columns."""
    rows = min(round(model.fitted.total), MOST_ROWS)
    if columns is None:
        yield stacked(model.blocks(rows, 0, progress))
    else:
        draws = FrameDraws(part_of(model, columns), DRAWS, rows, 0, progress)
        yield from draws.each(draws.frame)


def part_of(model: FittedTable, columns: Collection[str]) -> FittedTable:
    """Return the model of some columns, and of the columns that constraints link with them.

    It has the one-way tables of these columns, and the marginals that have no further column.
    """
    codec, fitted = codec_of(model.codec, columns), model.fitted
    names, first = set(codec.domain), len(fitted.one_ways)
    one_ways = [model.codec.domain.names.index(name) for name in codec.domain]
    marginals = [index for index, table in enumerate(fitted.marginals) if names >= set(table.attributes)]
    part = Fitted(
        fitted.merging.project(codec.domain.names),
        tuple(fitted.one_ways[index] for index in one_ways),
        tuple(fitted.marginals[index] for index in marginals),
        fitted.total,
        tuple(fitted.certainties[index] for index in (*one_ways, *(first + index for index in marginals))),
    )
    return replace(model, codec=codec, fitted=part)


def codec_of(codec: Codec, columns: Collection[str], *, constrained: bool = True) -> Codec:
    """Return the codec of some columns, and of the columns that constraints link with them.

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
        without_gaps=tuple(name for name in codec.without_gaps if name in names),
    )
