"""The verdict on a release: which criteria it met, by noisy answers with a stated error probability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privsyn.private.laws import Law

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
    >>> from privsyn.private.laws import GAUSSIAN
    >>> margins(GAUSSIAN, 100.0, 0.05, tests=1)
    (165, 165)
    """
    return law.quantile(scale, risk), law.quantile(scale, risk / tests)
