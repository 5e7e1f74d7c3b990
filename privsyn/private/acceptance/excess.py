"""How far a private table exceeds the errors that a criterion allows: whole numbers of small sensitivity.

A criterion compares the private table with released numbers, which are fixed before a row is read. Its
*excess* is a whole number that is above 0 whenever the criterion is not met. So a test needs no exact number
of rows: that is in the excess. Units are 1 / `UNIT` of a row or, for means, of the largest distance of a
number from the released mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privsyn.marginals.domain import Attributes
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Ints, keep

UNIT = 2**16
"""Units of a whole row, because noise is added to integers only."""

MOST_UNITS = 2 * UNIT
"""Units that a row may add to a sum. Larger sums would wrap around, far beyond any sensitivity."""


class Excess(Protocol):
    """A statistic of one table of counts."""

    @property
    def what(self) -> str:
        """The criterion, for the ledger."""
        ...

    @property
    def merging(self) -> Merging:
        """How the codes are joined before they are counted. Public or released."""
        ...

    @property
    def attributes(self) -> Attributes:
        """The attributes of the table."""
        ...

    @property
    def sensitivity(self) -> int:
        """The most by which one row more moves the excess."""
        ...

    def of(self, counts: Ints) -> int:
        """Return the excess of a table of exact counts. Private."""
        ...


@dataclass(frozen=True, eq=False)
class Distance:
    """The total variation distance of a table from fixed counts E, less the allowed `error`.

    Let N be the exact counts, n their sum and T that of E. In rows the excess is ``sum |N - n E / T| / 2 -
    error n``. It is at most 0 exactly if the distance of the shares, ``sum |N / n - E / T| / 2``, is at most
    the error.

    Sensitivity. One more row adds 1 to one cell c of N, and E / T to the expected counts n E / T. So the
    first term moves by at most ``sum |e_c - E / T| / 2 = 1 - E_c / T``, which is at most 1, and the second by
    the error. Rounding up to whole units keeps a bound of whole units: together at most ``UNIT + allowed``.

    Parameters
    ----------
    what : str
    merging : Merging
    attributes : tuple of str
    expected : integer array
        E, with a sum above 0.
    allowed : int
        The error in units, rounded down.
    """

    what: str
    merging: Merging
    attributes: Attributes
    expected: Ints
    allowed: int

    def __post_init__(self) -> None:
        keep(self, "expected")

    @property
    def sensitivity(self) -> int:
        """The most by which one row more moves the excess."""
        return UNIT + self.allowed

    def of(self, counts: Ints) -> int:
        """Return the excess, in Python's integers, which do not overflow."""
        exact, fixed = counts.ravel().astype(object), self.expected.ravel().astype(object)
        rows, total = int(exact.sum()), int(fixed.sum())
        distance = int(np.abs(total * exact - rows * fixed).sum())
        return -(-UNIT * distance // (2 * total)) - self.allowed * rows


@dataclass(frozen=True, eq=False)
class Sums:
    """The larger of two sums over all rows; each cell adds a fixed number of units, rounded up.

    For a mean within w of a released mean m, a row with the number x adds x - m - w to the first sum and
    m - x - w to the second. Both are at most 0 exactly if the mean of the private rows is within w of m. Rows
    that the criterion is not about add 0.

    Sensitivity. One more row adds the numbers of its cell to both sums. So each moves by at most the largest
    number in any cell, and the larger of two numbers moves by at most that too.

    Parameters
    ----------
    what : str
    merging : Merging
    attributes : tuple of str
    above, below : integer arrays
        What a row in each cell adds to the two sums.

    Raises
    ------
    ValueError
        If it adds more than `MOST_UNITS` units, such as the smallest integer, which has no absolute value.
    """

    what: str
    merging: Merging
    attributes: Attributes
    above: Ints
    below: Ints

    def __post_init__(self) -> None:
        keep(self, "above", "below")
        if any(side.min() < -MOST_UNITS or side.max() > MOST_UNITS for side in (self.above, self.below)):
            raise ValueError("a row adds more units to a sum than it may")

    @property
    def sensitivity(self) -> int:
        """The most by which one row more moves the excess."""
        return int(max(np.abs(self.above).max(), np.abs(self.below).max(), 1))

    def of(self, counts: Ints) -> int:
        """Return the excess. A row adds at most `MOST_UNITS`, so sums of 2^45 rows fit in 64 bits."""
        return max(int((self.above * counts).sum()), int((self.below * counts).sum()))
