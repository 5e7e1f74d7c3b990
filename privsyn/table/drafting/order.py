"""Whether the order of a column's numbers matters: that of counts and grades does, that of codes does not."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd

from privsyn.table.encoding.dtypes import family

ORDERED = 0.5
"""Least share of what the values explain that their order explains too, unless they are codes."""

ROWS = 10_000
"""Rows that are read, evenly spaced. Of a longer table, fewer than twice as many."""

MOST = 500
"""Other columns that a column is compared with, evenly spaced: all of a wide table would take minutes."""

CLEAR = 3.0
"""Standard deviations above chance by which values must explain other columns to be compared at all."""


class Order:
    """Ranks of all columns of numbers, with mean 0 and variance 1; a missing cell has rank 0.

    Examples
    --------
    >>> size = np.arange(300) % 6
    >>> order = Order(pd.DataFrame({"size": size, "weight": size**2, "code": (size * 5 + 2) % 7}))
    >>> order.is_code("size"), order.is_code("code")
    (False, True)
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._names = [name for name, dtype in frame.dtypes.items() if family(dtype) in ("integer", "real")]
        some = frame[self._names].iloc[:: max(1, len(frame) // ROWS)]
        cells = [column.to_numpy(np.float64, na_value=np.nan) for _, column in some.items()]
        self._cells = np.array([np.where(np.isfinite(c), c, np.nan) for c in cells])
        self._cells = self._cells.reshape(len(cells), len(some))
        ranks = pd.DataFrame(self._cells.T).rank()
        deviation = ranks.std(ddof=0).replace(0.0, np.nan)
        self._ranks = ((ranks - ranks.mean()) / deviation).fillna(0.0).to_numpy(np.float64)
        self._others = np.arange(len(cells))[:: -(-len(cells) // MOST) or 1]
        self._of_others = np.ascontiguousarray(self._ranks[:, self._others])

    def is_code(self, name: str) -> bool:
        """Return whether a column's values explain the ranks of other columns, but their order does not."""
        if name not in self._names:
            return False
        place = self._names.index(name)
        given = np.isfinite(self._cells[place])  # missing cells have no order
        codes, values = pd.factorize(self._cells[place, given])
        rows_of = np.arange(len(values))[:, np.newaxis] == codes
        others = self._of_others[given] - self._of_others[given].mean(axis=0)
        both = np.vstack([rows_of, self._ranks[given, place]]) @ others
        both = both[:, self._others != place]
        freedom = (len(values) - 1) * both.shape[1]  # what they explain by chance
        explained = float((both[:-1].T ** 2 / np.bincount(codes)).sum()) - freedom
        by_order = float((both[-1] ** 2).sum()) / max(len(codes), 1)
        return explained > CLEAR * sqrt(2 * freedom) and by_order < ORDERED * explained
