"""Rows as points: each cell a place in its column, so that one formula serves numbers, dates and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privsyn.evaluation.encoding import Coded
from privsyn.marginals.types import Floats, Integers

Singles = npt.NDArray[np.float32]
"""Precise enough to say who is nearest, and half as much to move."""

MISSING_PLACE = -2.0
"""Further from any number than numbers are from each other."""


@dataclass(frozen=True, eq=False)
class Places:
    """The cells of a table as places.

    Parameters
    ----------
    cells : (n, d) float array
        Numbers and dates from 0 to 1 over the range of all tables, `MISSING_PLACE` where there is none;
        of other columns the code, of which any two are at least 1 apart.
    numbers : tuple of bool
        Which columns are numbers or dates.
    """

    cells: Floats
    numbers: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.cells)

    def take(self, rows: Integers) -> Places:
        """Some of the rows."""
        return Places(np.asfortranarray(self.cells[rows]), self.numbers)


def place_together(tables: Sequence[Coded]) -> list[Places]:
    """All tables on the same scale."""
    names = tables[0].records.domain.names
    numbers = tuple(name in tables[0].numbers for name in names)
    # By columns, for columns are what is read.
    cells = [table.records.codes.astype(np.float64, order="F") for table in tables]
    for axis, name in enumerate(names):
        if numbers[axis]:
            for place, column in enumerate(_scaled([table.numbers[name] for table in tables])):
                cells[place][:, axis] = column
    return [Places(table, numbers) for table in cells]


def _scaled(columns: Sequence[Floats]) -> list[Floats]:
    present = np.concatenate([column[~np.isnan(column)] for column in columns])
    low, high = (present.min(), present.max()) if len(present) else (0.0, 1.0)
    # Halves, for the range of doubles is no double.
    width = (high / 2 - low / 2) or 1.0
    return [np.where(np.isnan(column), MISSING_PLACE, (column / 2 - low / 2) / width) for column in columns]


def distances(one: Floats, other: Floats) -> Singles:
    """How far each place of a column is from each of others, as Gower measures it: at most 1. Shape (n, m).

    >>> distances(np.array([0.5]), np.array([0.5, 0.25, MISSING_PLACE])).tolist()
    [[0.0, 0.25, 1.0]]
    """
    apart = one.astype(np.float32)[:, None] - other.astype(np.float32)[None, :]
    np.abs(apart, out=apart)
    return np.minimum(apart, np.float32(1), out=apart)
