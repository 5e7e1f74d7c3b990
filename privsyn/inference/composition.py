"""Composition: what is unknown of all rows if bounds leave out rows of persons with many.

Within a class of persons with about equally many rows the counted rows are a random sample. Where the noise
hides the classes, or how a column depends on them, a value may be one of persons with few rows, of whom all
are counted, or of those with the most. Of the rows with a value no more is measured than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privsyn.marginals.domain import Floats, keep


@dataclass(frozen=True, eq=False)
class Composition:
    """Shares of the counted rows, and of all rows, that persons have by their number of rows.

    Parameters
    ----------
    counted, all_rows : arrays of shape (classes,)
        Each sums to 1. Classes without counted rows are left out.
    measured : frozenset of attributes
        Their shares in the classes were measured: nothing is unknown of them.
    confused : frozenset of attributes
        Their shares in the classes were measured, but noise hides how many rows the classes have. How far the
        counts of all rows that follow from both may be wrong is not known.
    hidden : float
        At most this share of all rows is of persons with more rows than is seen. They may have any values.
    """

    counted: Floats
    all_rows: Floats
    measured: frozenset[str] = frozenset()
    confused: frozenset[str] = frozenset()
    hidden: float = 0.0

    def __post_init__(self) -> None:
        keep(self, "counted", "all_rows", dtype=np.float64)
        if self.counted.shape != self.all_rows.shape or not len(self.counted) or (self.counted <= 0).any():
            raise ValueError("shares of other classes")
        if not (np.isfinite(self.all_rows) & (self.all_rows >= 0)).all():
            raise ValueError("shares are finite numbers of at least 0")
        if not 0 <= self.hidden < 1:
            raise ValueError(f"a hidden share of {self.hidden}")

    @classmethod
    def of(cls, counted: Floats, all_rows: Floats) -> Composition | None:
        """Return the composition of these numbers of rows; None if there are none."""
        some = counted > 0
        if not some.any():
            return None
        counted, all_rows = counted[some], all_rows[some]
        return cls(counted / counted.sum(), all_rows / all_rows.sum())

    @property
    def distance(self) -> float:
        """The total variation distance of the counted rows from all rows, by persons' numbers of rows."""
        seen = float(np.abs(self.counted - self.all_rows).sum()) / 2
        return self.hidden + (1 - self.hidden) * seen

    @property
    def of_measured(self) -> Composition | None:
        """The composition that leaves open what nothing shows even of measured attributes; None if nothing.

        >>> half = Composition(np.array([0.5, 0.5]), np.array([0.2, 0.8]), hidden=0.1)
        >>> half.of_measured.largest_share(np.array([0.0, 0.5, 1.0])).round(2).tolist()
        [0.1, 0.55, 1.0]
        """
        return Composition(np.ones(1), np.ones(1), hidden=self.hidden) if self.hidden else None

    def largest_share(self, shares: Floats) -> Floats:
        """Return the largest share of all rows that a share of the counted rows may stand for.

        >>> half = Composition(np.array([0.5, 0.5]), np.array([0.2, 0.8]))
        >>> half.largest_share(np.array([0.0, 0.25, 0.5, 1.0])).tolist()
        [0.0, 0.4, 0.8, 1.0]
        """
        counted, all_rows = self._curve
        return np.asarray(self.hidden + (1 - self.hidden) * np.interp(shares, counted, all_rows))

    def share_counted(self, shares: Floats) -> Floats:
        """Return the least share of the counted rows that may stand for a share of all rows."""
        counted, all_rows = self._curve
        seen = np.maximum(shares - self.hidden, 0.0) / (1 - self.hidden)
        return np.asarray(np.interp(seen, all_rows, counted))

    @cached_property
    def _curve(self) -> tuple[Floats, Floats]:
        """The cumulated shares of counted rows and of all rows, from persons with the most rows down."""
        order = np.argsort(-self.all_rows / self.counted, kind="stable")
        counted, all_rows = (np.append(0.0, np.cumsum(rows[order])) for rows in (self.counted, self.all_rows))
        return counted, all_rows

    def least_share(self, shares: Floats) -> Floats:
        """Return the least share of all rows that a share of the counted rows may stand for."""
        return 1 - self.largest_share(1 - shares)

    def largest_mean(self, weights: Floats, shares: Floats) -> float:
        """Return the largest mean weight of all rows, if cells with these `shares` have these weights.

        >>> half = Composition(np.array([0.5, 0.5]), np.array([0.2, 0.8]))
        >>> round(half.largest_mean(np.array([1.0, 5.0]), np.array([0.75, 0.25])), 9)
        2.6
        """
        order = np.argsort(-weights.ravel(), kind="stable")
        reached = self.largest_share(np.minimum(np.cumsum(shares.ravel()[order]), 1.0))
        return float(weights.ravel()[order] @ np.diff(reached, prepend=0.0))
