"""Gower distances: every cell is a coordinate, so that one formula serves numbers, dates and categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privsyn.evaluation.coded import Coded
from privsyn.marginals.types import Floats, Integers

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
            for points, column in zip(cells, _scaled([t.numbers[name] for t in tables]), strict=True):
                points[:, axis] = column
    return [Points(table, numbers) for table in cells]


def _scaled(columns: Sequence[Floats]) -> list[Floats]:
    present = np.concatenate([column[~np.isnan(column)] for column in columns])
    low, high = (present.min(), present.max()) if len(present) else (0.0, 1.0)
    # Halves, because high - low may overflow.
    width = (high / 2 - low / 2) or 1.0
    return [
        np.where(np.isnan(column), MISSING_COORDINATE, (column / 2 - low / 2) / width) for column in columns
    ]


def distances(one: Floats, other: Floats) -> Singles:
    """Return the Gower distances between cells of a column, at most 1, shape (n, m).

    >>> distances(np.array([0.5]), np.array([0.5, 0.25, MISSING_COORDINATE])).tolist()
    [[0.0, 0.25, 1.0]]
    """
    distance = one.astype(np.float32)[:, None] - other.astype(np.float32)[None, :]
    np.abs(distance, out=distance)
    return np.minimum(distance, np.float32(1), out=distance)
