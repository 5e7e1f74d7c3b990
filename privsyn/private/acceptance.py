"""Test under privacy how far a table exceeds the errors that a criterion allows, and the verdict.

A criterion compares the private table with released numbers, which are fixed before a row is read. Its
*excess* is a whole number that is above 0 whenever the criterion is not met. So a test needs no exact number
of rows: that is in the excess. Units are 1 / `UNIT` of a row or, for means, of the largest distance of a
number from the released mean.

The verdict says which criteria a release met, by noisy answers with a stated error probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privsyn.marginals.domain import Attributes, Ints, keep
from privsyn.marginals.recoding import Merging
from privsyn.private.noise_laws import Law

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


QUESTION = "acceptance: "
"""How the questions of the tests begin in the ledger."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one criterion. All of it follows from the noisy answer and from released numbers.

    Parameters
    ----------
    what : str
        The criterion.
    met : bool
    bound : float
        The largest error allowed, in the unit of the criterion.
    estimate : float, optional
        The noisy estimate of the error, at least 0.
    safe : float, optional
        With an error of at most this, the table would have been accepted with the stated probability.
    problem : str
        Why the criterion could not be tested, or empty. Then it is not met, and nothing was asked.
    """

    what: str
    met: bool
    bound: float
    estimate: float | None = None
    safe: float | None = None
    problem: str = ""

    def __str__(self) -> str:
        result = "met" if self.met else "NOT MET"
        if self.estimate is None or self.safe is None:
            return f"{self.what}: {result}: {self.problem}"
        sure = "too much noise to tell: raise share or epsilon, or allow a larger error"
        if self.safe > 0:
            sure = f"an error up to {self.safe:.3g} is safe"
        return f"{self.what}: {result} (noisy estimate {self.estimate:.3g}; {sure})"


@dataclass(frozen=True)
class Acceptance:
    """The verdict on all criteria.

    Parameters
    ----------
    share : float
        Part of the budget that was reserved for the tests.
    risk : float
        The largest probability of accepting a table that breaks a criterion, and of refusing one whose errors
        all are at most `Verdict.safe`.
    criteria : tuple of Verdict
    """

    share: float
    risk: float
    criteria: tuple[Verdict, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "criteria", tuple(self.criteria))
        if not (0 < self.share < 1 and 0 < self.risk < 0.5 and self.criteria):
            raise ValueError("a verdict is on criteria, with a share below 1 and a risk below 1/2")

    @property
    def met(self) -> bool:
        """Whether all criteria are met."""
        return all(verdict.met for verdict in self.criteria)

    def to_plain(self) -> dict[str, Any]:
        """Return the verdict as plain data for JSON."""
        return {
            "met": self.met,
            "share": self.share,
            "risk": self.risk,
            "criteria": [dict(vars(verdict)) for verdict in self.criteria],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Acceptance:
        """Return the verdict that `to_plain` wrote."""
        criteria = tuple(Verdict(**line) for line in plain["criteria"])
        for line in criteria:
            numbers = (line.bound, *(x for x in (line.estimate, line.safe) if x is not None))
            right = type(line.met) is bool and isinstance(line.what, str) and isinstance(line.problem, str)
            if not right or not all(type(x) in (int, float) for x in numbers):
                raise TypeError
        return cls(float(plain["share"]), float(plain["risk"]), criteria)

    def __str__(self) -> str:
        result = "ACCEPTED" if self.met else "NOT ACCEPTED"
        return f"{result}: a table that breaks a criterion is accepted with probability at most {self.risk:g}"


def margins(law: Law, scale: float, risk: float, tests: int) -> tuple[int, int]:
    """Return what is added to a noisy excess before it is compared with 0, and how much more is safe.

    Let q be the first number. A criterion is met if the noisy excess is at most -q. An excess above 0 is at
    least 1, so the noise must be at most -q - 1: it is, with probability at most `risk`. All tests accept a
    table that breaks one criterion with at most the probability of that one test.

    With the second number s, an excess of at most -q - s is refused only if the noise is above s, with
    probability at most risk / tests. So a table whose excesses all are so low is refused by any of the tests
    with probability at most `risk` (the union bound).

    Examples
    --------
    >>> from privsyn.private.noise_laws import GAUSSIAN
    >>> margins(GAUSSIAN, 100.0, 0.05, tests=1)
    (165, 165)
    """
    return law.quantile(scale, risk), law.quantile(scale, risk / tests)
