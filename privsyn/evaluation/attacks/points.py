"""Points: the cells of several tables as coordinates on one scale, and Gower's distance between rows.

Every cell is a coordinate, so that one formula serves numbers, dates and categories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privsyn.evaluation.encoding import Coded
from privsyn.marginals.domain import Floats, Integers

ROWS_AT_ONCE = 16
"""Rows attacked at a time: their distances to the synthetic rows fit in the processor's cache."""

Singles = npt.NDArray[np.float32]
"""Precise enough to find the nearest row, at half the memory traffic of doubles."""

MISSING_COORDINATE = -2.0
"""Further from every number than two numbers are from each other."""


@dataclass(frozen=True, eq=False)
class Points:
    """The cells of a table as coordinates.

    Parameters
    ----------
    cells : (n, d) float array
        Numbers and dates are scaled to [0, 1] over all tables; a missing one is `MISSING_COORDINATE`. Other
        columns hold codes, any two of which are at least 1 apart.
    numbers : tuple of bool
        Whether each column holds numbers or dates.
    """

    cells: Floats
    numbers: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.cells)

    def take(self, rows: Integers) -> Points:
        """Return the rows at these positions."""
        return Points(np.asfortranarray(self.cells[rows]), self.numbers)


def scale_together(tables: Sequence[Coded]) -> list[Points]:
    """Return all tables on the same scale."""
    names = tables[0].records.domain.names
    numbers = tuple(name in tables[0].numbers for name in names)
    # Column-major, because the attacks read whole columns.
    cells = [table.records.codes.astype(np.float64, order="F") for table in tables]
    for axis, name in enumerate(names):
        if numbers[axis]:
            columns = [table.numbers[name] for table in tables]
            present = np.concatenate([column[~np.isnan(column)] for column in columns])
            low, high = (present.min(), present.max()) if len(present) else (0.0, 1.0)
            width = (high / 2 - low / 2) or 1.0  # halves, because high - low may overflow
            for points, column in zip(cells, columns, strict=True):
                scaled = (column / 2 - low / 2) / width
                points[:, axis] = np.where(np.isnan(column), MISSING_COORDINATE, scaled)
    return [Points(table, numbers) for table in cells]


def distances(first: Floats, second: Floats) -> Singles:
    """Return the Gower distances between cells of a column, at most 1, shape (n, m).

    >>> distances(np.array([0.5]), np.array([0.5, 0.25, MISSING_COORDINATE])).tolist()
    [[0.0, 0.25, 1.0]]
    """
    distance = first.astype(np.float32)[:, None] - second.astype(np.float32)[None, :]
    np.abs(distance, out=distance)
    return np.minimum(distance, np.float32(1), out=distance)


def batches(cells: Floats) -> Iterator[Floats]:
    """Yield `ROWS_AT_ONCE` rows at a time."""
    return (cells[start : start + ROWS_AT_ONCE] for start in range(0, len(cells), ROWS_AT_ONCE))


def distance_of_rows(rows: Floats, synthetic: Floats, axes: Iterable[int]) -> Singles:
    """Return the sum of the Gower distances in some columns, shape (rows, synthetic rows)."""
    total = np.zeros((len(rows), len(synthetic)), np.float32)
    for axis in axes:
        total += distances(rows[:, axis], synthetic[:, axis])
    return total
