"""Spend, one question to the private table and its cost; Elsewhere, none; QueryLog, all in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

from privsyn.private.noise_laws import LAWS, Law, LawName

ONE_WAY = "one-way counts of"
ONE_WAYS = f"{ONE_WAY} every attribute"
"""The text of the first question, with which its spends begin. A question about one attribute names it."""

BUT_KNOWN = f"{ONE_WAYS} but known ones"
"""The same where some attributes are not asked, because their exact counts are public."""

ROWS_PER_PERSON = "rows per person"
"""The text of the question how many persons have how many rows."""

ROWS_OF_ALL = "rows of all persons, at most {} of each"
"""The text of the question how many rows there are."""

STAYS = "how often {} stays the same"
"""The text of the question how many of a person's rows have the value of the row before."""

VALUES_OF_ONE_ROW = "{} in one row of each person"
"""The text of the question how many persons have each value, in one of their rows."""

PAIRS_DRAWN = "pairs drawn by the exponential mechanism"
"""The question whose answer is not Gaussian, and costs what a Gaussian one does in zCDP alone."""

TERMS: dict[LawName, tuple[str, str]] = {"gaussian": ("sigma", "rho"), "laplace": ("scale", "epsilon")}
"""What the scale and the cost of an answer are called."""


ADD_OR_REMOVE = "add or remove one record"
CHANGE = "change one record"
"""How neighbouring tables differ, if a promise is about one record."""


@dataclass(frozen=True)
class Spend:
    """One question to the private table.

    Parameters
    ----------
    what : str
        The question, in words that may be published.
    answers : int
        How many numbers were released. A search for values releases values, and of each column the sum of
        their votes: then it is the number of columns searched.
    sensitivity : float
        The largest distance between the exact answers on two neighbouring tables: in L2 for Gaussian noise,
        in L1 for Laplace noise.
    sigma : float
        Scale of the noise in each number, in the unit of the answers.
    delta : float
        The cost besides rho: the probability that a threshold reveals what only one person has. Like the
        budget behind every sigma, it is fixed before the first question.
    law : "gaussian" or "laplace"
        The law of the noise. `sigma` is its scale: for Laplace noise not the standard deviation.

    Examples
    --------
    >>> Spend("one-way counts", answers=12, sensitivity=2.0, sigma=8.0).rho
    0.03125
    >>> Spend("one-way counts", answers=12, sensitivity=4.0, sigma=8.0, law="laplace").cost
    0.5
    """

    what: str
    answers: int
    sensitivity: float
    sigma: float
    delta: float = 0.0
    law: LawName = "gaussian"

    def __post_init__(self) -> None:
        if not isinstance(self.what, str):
            raise ValueError(f"the question must be text; got {self.what!r}")
        if not self.answers >= 1:
            raise ValueError(f"{self.what}: answers must be at least 1; got {self.answers}")
        if not (0 < self.sensitivity < inf and 0 < self.sigma < inf):
            raise ValueError(
                f"{self.what}: sensitivity and sigma must be finite and above 0;"
                f" got {self.sensitivity} and {self.sigma}"
            )
        if not 0 <= self.delta < 1:
            raise ValueError(f"{self.what}: delta must be at least 0 and below 1; got {self.delta}")

    @cached_property
    def cost(self) -> float:
        """The cost, rounded up: rho for Gaussian noise, epsilon for Laplace noise."""
        return LAWS[self.law].cost(self.sigma, self.sensitivity)

    @property
    def rho(self) -> float:
        """The cost in zCDP; of Laplace noise epsilon^2 / 2 (Bun and Steinke, 2016, Proposition 1.4)."""
        return self.cost if self.law == "gaussian" else self.cost**2 / 2

    def to_plain(self) -> dict[str, Any]:
        """Return the question as plain data for JSON, with its cost."""
        scale, cost = TERMS[self.law]
        return {
            "what": self.what,
            "answers": self.answers,
            "sensitivity": self.sensitivity,
            scale: self.sigma,
            cost: self.cost,
            "delta": self.delta,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], law: LawName) -> Spend:
        """Return the question that `to_plain` wrote. Its cost is computed again."""
        sensitivity, sigma, delta = (float(plain[name]) for name in ("sensitivity", TERMS[law][0], "delta"))
        return cls(plain["what"], int(plain["answers"]), sensitivity, sigma, delta, law)


@dataclass(frozen=True)
class Elsewhere:
    """No question, because all counts were measured elsewhere: who promises what about them."""

    promise: str

    def __str__(self) -> str:
        return f"the counts were measured elsewhere: {self.promise}"


@dataclass(eq=False)
class QueryLog:
    """All questions to one private table, in order, under whichever domain they were asked.

    Examples
    --------
    >>> from privsyn.private.noise_laws import GAUSSIAN
    >>> log = QueryLog()
    >>> round(log.charge("counts over a", 2, 1.0, cost=0.02, law=GAUSSIAN), 6)
    5.0
    >>> round(log.charge("counts over a", 2, 1.0, cost=0.02, law=GAUSSIAN), 6)
    5.0
    >>> [spend.what for spend in log.spends]
    ['counts over a', 'counts over a (look 2)']
    """

    _spends: list[Spend] = field(default_factory=list)
    _times: Counter[str] = field(default_factory=Counter)
    _table: str = ""

    def about(self, table: str) -> QueryLog:
        """Return the same log for the questions to one of several tables, each of which names the table.

        >>> from privsyn.private.noise_laws import GAUSSIAN
        >>> log = QueryLog()
        >>> round(log.about("visits").charge("rows per person", 2, 1.0, cost=0.02, law=GAUSSIAN), 6)
        5.0
        >>> log.spends[0].what
        'visits: rows per person'
        """
        return QueryLog(self._spends, self._times, f"{table}: ")

    @property
    def spends(self) -> tuple[Spend, ...]:
        """What has been asked so far, and its cost."""
        return tuple(self._spends)

    def charge(
        self, question: str, answers: int, sensitivity: float, cost: float, law: Law, delta: float = 0.0
    ) -> float:
        """Record a question, and return the scale at which its noise costs at most `cost` for a person.

        A question that is asked again gets a number.
        """
        question = f"{self._table}{question}"
        self._times[question] += 1
        look = f"{question} (look {self._times[question]})" if self._times[question] > 1 else question
        scale = law.scale(cost, sensitivity)
        self._spends.append(Spend(look, answers, sensitivity, scale, delta, law.name))
        return scale
