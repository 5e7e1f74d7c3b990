"""A table in codes, with its numbers and its cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from privsyn.marginals.domain import Records
from privsyn.marginals.types import Floats, Integers


@dataclass(frozen=True, eq=False)
class Coded:
    """A table in codes, with its exact numbers.

    Parameters
    ----------
    records : Records
    numbers : mapping of str to float array
        The cells of each column of numbers or dates (days since 1970), NaN where a cell is missing.
    source : DataFrame
        The table that was encoded.
    source_rows : integer array of shape (rows,) or (rows, columns), optional
        The row of `source` from which each row, or each cell, comes. Default: all rows in order.
    """

    records: Records
    numbers: Mapping[str, Floats]
    source: pd.DataFrame
    source_rows: Integers | None = None

    def __len__(self) -> int:
        return len(self.records)

    def frame(self) -> pd.DataFrame:
        """Return a new table of the compared columns, with their cells as they were given."""
        columns = zip(self.records.domain, self._source_row_of_cells.T, strict=True)
        return pd.DataFrame({name: self.source[name].array.take(rows) for name, rows in columns}, copy=False)

    @property
    def _source_row_of_cells(self) -> Integers:
        """The row of `source` from which each cell comes, an array of shape (rows, columns)."""
        rows = np.arange(len(self)) if self.source_rows is None else self.source_rows
        return np.broadcast_to(rows.reshape(len(self), -1), self.records.codes.shape)

    def take(self, rows: Integers) -> Coded:
        """Return the rows at these positions; positions may repeat."""
        records = Records(self.records.domain, self.records.codes[rows])
        numbers = {name: cells[rows] for name, cells in self.numbers.items()}
        source_rows = rows if self.source_rows is None else self.source_rows[rows]
        return Coded(records, numbers, self.source, source_rows)

    def resample(self, n: int, rng: np.random.Generator) -> Coded:
        """Return `n` rows sampled with replacement: no table of `n` rows is expected to be closer."""
        return self.take(rng.integers(len(self), size=n))

    def unlink(self, n: int, rng: np.random.Generator) -> Coded:
        """Return `n` rows whose columns are sampled independently: correct shares, no dependence."""
        rows = rng.integers(len(self), size=(n, len(self.records.domain)))
        names = self.records.domain.names
        codes = np.take_along_axis(self.records.codes, rows, axis=0)
        return Coded(
            Records(self.records.domain, codes),
            {name: cells[rows[:, names.index(name)]] for name, cells in self.numbers.items()},
            self.source,
            np.take_along_axis(self._source_row_of_cells, rows, axis=0).astype(np.int32),
        )
