"""A table in codes, with its numbers and its cells, and coarser codes: a pair of columns fits on a screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from privsyn.marginals.domain import Domain, Floats, Integers, Ints, Records, keep
from privsyn.table.encoding.words import MISSING

OTHER = "(other values)"

MOST_LEVELS = 10
"""Largest number of levels, apart from missing cells."""


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


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of one column.

    Parameters
    ----------
    labels : tuple of str
    of_code : integer array
        The level of each code.
    """

    labels: tuple[str, ...]
    of_code: Ints

    def __post_init__(self) -> None:
        keep(self, "of_code")
        if self.of_code.max(initial=0) >= len(self.labels):
            raise ValueError(f"level {self.of_code.max()} has no label: there are {len(self.labels)} labels")


def coarsen(labels: Sequence[tuple[str, ...]], real: Records) -> tuple[Levels, ...]:
    """Return levels of each column: adjacent bins are merged to similar shares, rare values to one level."""
    result = []
    for axis, (words, size) in enumerate(zip(labels, real.domain.sizes, strict=True)):
        counts = np.bincount(real.codes[:, axis], minlength=size)
        result.append((_merged if real.domain.ordered[axis] else _most_frequent)(words, counts))
    return tuple(result)


def recode(records: Records, levels: tuple[Levels, ...]) -> Records:
    """Return the same rows in levels."""
    domain = Domain(records.domain.names, tuple(len(level.labels) for level in levels))
    columns = [level.of_code[records.codes[:, axis]] for axis, level in enumerate(levels)]
    return Records(domain, np.column_stack(columns))


def _merged(labels: tuple[str, ...], counts: Ints) -> Levels:
    """Merge adjacent bins until a level has its share of the rows."""
    missing = labels[-1] == MISSING
    bins = len(labels) - missing
    weights = counts[:bins].astype(np.float64)
    middle = (np.cumsum(weights) - weights / 2) / max(weights.sum(), 1)
    rough = np.arange(bins) if bins <= MOST_LEVELS else np.minimum(middle * MOST_LEVELS, MOST_LEVELS - 1)
    used, level = np.unique(rough.astype(np.int64), return_inverse=True)
    words = []
    for place in range(len(used)):
        first, *_, last = [part for label in np.array(labels[:bins])[level == place] for part in _ends(label)]
        words.append(first if first == last else f"{first} to {last}")
    if missing:
        words.append(MISSING)
        level = np.append(level, len(used))
    return Levels(tuple(words), level)


def _ends(label: str) -> tuple[str, str]:
    first, _, last = label.partition(" to ")
    return first, last or first


def _most_frequent(labels: tuple[str, ...], counts: Ints) -> Levels:
    """Return the most frequent values, and one level for the others."""
    missing = labels[-1] == MISSING
    values = len(labels) - missing
    order = np.argsort(-counts[:values], kind="stable")
    kept = order if values <= MOST_LEVELS else order[: MOST_LEVELS - 1]
    words = [labels[code] for code in kept]
    level = np.full(values, len(kept))
    level[kept] = np.arange(len(kept))
    if len(kept) < values:
        words.append(OTHER)
    if missing:
        level = np.append(level, len(words))
        words.append(MISSING)
    return Levels(tuple(words), level)
