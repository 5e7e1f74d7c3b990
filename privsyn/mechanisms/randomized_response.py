"""Randomised response: each respondent randomises the answer, and whoever collects never sees the truth."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, expm1, floor, sqrt
from typing import Any

import numpy as np

from privsyn.arguments import check_between
from privsyn.errors import InputError, replace_errors
from privsyn.marginals.domain import Floats
from privsyn.mechanisms.mechanism import Mechanism
from privsyn.private.composition import Promise
from privsyn.private.local_privacy import LocalPromise, keep_probability, randomised
from privsyn.private.spend import CHANGE

DECIMALS = 15
"""Digits of a keep-probability, which is rounded down: randomised response draws it as a decimal number."""


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Mechanism):
    """Randomised response over k values: keep the answer with a probability, else draw any value uniformly.

    With two values and keep 1/2 these are two coins: heads, tell the truth; tails, the second coin answers.
    Then epsilon is ln 3.

    Parameters
    ----------
    epsilon : float, optional
        The promise to each respondent. Default: that of `keep`.
    keep : float, optional
        The probability that an answer is kept. Default: that of `epsilon`; 1/2 if neither is said.
    values : sequence, or int
        All values of an answer, or their number k, for 0 to k - 1. Default: False and True.
    seed : int, optional
        For tests: NOT PRIVATE.

    References
    ----------
    Warner, "Randomized response", 1965. Kairouz, Oh and Viswanath, "Extremal mechanisms for local
    differential privacy", 2016.

    Examples
    --------
    >>> coins = RandomizedResponse()
    >>> f"{coins.promise.epsilon:.4f}", coins.keep_probability  # ln 3
    ('1.0986', 0.5)
    >>> answers = RandomizedResponse(epsilon=1, values=("yes", "no"), seed=7).release(["yes"] * 1000)
    >>> sorted(set(answers))
    ['no', 'yes']
    """

    epsilon: float | None = None
    keep: float | None = None
    values: Sequence[Hashable] | int = (False, True)
    choices: tuple[Hashable, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        with replace_errors("values must be two or more different values", (TypeError, ValueError)):
            choices = tuple(range(self.values) if isinstance(self.values, int) else self.values)
            if not 2 <= len(set(choices)) == len(choices):
                raise ValueError
        object.__setattr__(self, "choices", choices)
        if self.epsilon is not None and self.keep is not None:
            raise InputError("say epsilon or keep, not both")
        if self.epsilon is not None:
            check_between("epsilon", self.epsilon)
        keep_probability(self.keep_probability)

    @property
    def keep_probability(self) -> float:
        """The probability that an answer is kept: (e^epsilon - 1) / (e^epsilon - 1 + k), rounded down."""
        if self.epsilon is None:
            return 0.5 if self.keep is None else self.keep
        odds = len(self.choices) * exp(-self.epsilon) / -expm1(-self.epsilon)
        return floor(10**DECIMALS / (1 + odds) * (1 - 1e-13)) / 10**DECIMALS

    @property
    def name(self) -> str:
        """What it is, for a ledger."""
        return "randomised response"

    @property
    def neighbours(self) -> str:
        """Who answered is not hidden, only what."""
        return CHANGE

    @property
    def spend(self) -> LocalPromise:
        """What the answer of one respondent costs."""
        return LocalPromise("answer", self.keep_probability, len(self.choices))

    @property
    def promise(self) -> Promise:
        """A pure epsilon."""
        return Promise.pure(self.spend.epsilon)

    def release(self, answers: Any) -> Any:
        """Return the randomised answer of each respondent.

        Parameters
        ----------
        answers : value, or sequence of values
            Each of them one of `values`; whoever answered otherwise is randomised as the first value.

        Returns
        -------
        value, or list of values
        """
        single = isinstance(answers, str) or not np.iterable(answers)
        codes = {value: code for code, value in enumerate(self.choices)}
        exact = np.array([_code_of(codes, answer) for answer in ([answers] if single else answers)], np.int64)
        drawn = randomised(exact, len(self.choices), self.keep_probability, self._bits)
        released = [self.choices[code] for code in drawn.tolist()]
        return released[0] if single else released

    def estimate(self, released: Sequence[Any]) -> Floats:
        """Return an unbiased estimate of the share of each value among the exact answers.

        (share - (1 - keep) / k) / keep: it may lie below 0 or above 1.
        """
        counts = np.array([sum(answer == value for answer in released) for value in self.choices], np.float64)
        keep = self.keep_probability
        return np.asarray((counts / max(1, len(released)) - (1 - keep) / len(self.choices)) / keep)

    def interval(
        self, level: float = 0.95, answer: float = 0.0, *, respondents: int = 1
    ) -> tuple[float, float]:
        """Return an interval around an estimated share that contains the exact one with this probability.

        Hoeffding's bound: the share of a value among n independent answers is further than t from its mean
        with probability at most 2 e^(-2 n t^2).
        """
        width = sqrt(np.log(2 / (1 - check_between("level", level, 1.0))) / (2 * respondents))
        width /= self.keep_probability
        return answer - width, answer + width


def _code_of(codes: Mapping[Hashable, int], answer: Any) -> int:
    """Return the code of an answer, and 0 for one that is none: no error may depend on it."""
    try:
        return codes.get(answer, 0)
    except TypeError:  # it cannot be hashed
        return 0
