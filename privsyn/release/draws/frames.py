"""Draws of one table: data frames, each from its own draw of the private table's counts.

The part of a model that is about some columns is drawn in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from os import cpu_count
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pandas as pd

from privsyn.arguments import check_rows, check_whole
from privsyn.inference.ordered.number_intervals import squarable_unit
from privsyn.inference.posterior.tables import Posterior, made_up
from privsyn.progress import Progress, no_progress
from privsyn.release.accuracy.ordered_columns import OrderedColumns
from privsyn.synthesis.synthesise import ENOUGH
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
        self._model, self.m = model, check_whole("m", m, minimum=2)
        self.n = model.number_of_rows(None) if n is None else check_rows(n, minimum=1)
        model.check_memory(self.n, only_whole=True)
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
    middles = {name: columns.cells(name).middles for name in columns.counted}
    numbers = {name: of_column / squarable_unit(of_column, of_column) for name, of_column in middles.items()}
    return Posterior(model.fitted, model.zeros, numbers)
