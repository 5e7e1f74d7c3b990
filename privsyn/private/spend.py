"""Spend: one look at the private table; what was asked, with how much noise, and so what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from privsyn.private.accounting import rho_of

ONE_WAYS = "one-way counts of every attribute"
"""The question that comes first, in the words of its spends."""


@dataclass(frozen=True)
class Spend:
    """One look at the private table.

    Parameters
    ----------
    what : str
        The question, in words that the public may read.
    answers : int
        How many numbers were released; where values were looked for, which are released in place of their
        votes, in how many columns.
    sensitivity : float
        How far the vector of exact answers can move, in L2, from a table to its neighbour.
    sigma : float
        Scale of the noise in each number, in the unit of the answers.
    delta : float
        What the look costs beside rho: the chance that a threshold lets through what one record alone holds.
        Like every sigma's budget, fixed before the first look.

    Examples
    --------
    >>> Spend("one-way counts", answers=12, sensitivity=2.0, sigma=8.0).rho
    0.03125
    """

    what: str
    answers: int
    sensitivity: float
    sigma: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.what, str):
            raise ValueError(f"what was asked is a text; got {self.what!r}")
        if not self.answers >= 1:
            raise ValueError(f"{self.what}: {self.answers} answers; there is at least 1")
        if not (0 < self.sensitivity < inf and 0 < self.sigma < inf):
            raise ValueError(
                f"{self.what}: sensitivity {self.sensitivity}, sigma {self.sigma}; both finite, above 0"
            )
        if not 0 <= self.delta < 1:
            raise ValueError(f"{self.what}: delta {self.delta}; from 0 to 1, 1 excluded")

    @property
    def rho(self) -> float:
        """The cost, sensitivity^2 / (2 sigma^2), rounded up."""
        return rho_of(self.sigma, self.sensitivity)
