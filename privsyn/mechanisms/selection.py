"""The exponential mechanism: draw one of several candidates, better ones more often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isnan, log
from typing import Any

import numpy as np
import pandas as pd

from privsyn.arguments import check_between
from privsyn.errors import InputError
from privsyn.mechanisms.additive import FARTHEST
from privsyn.mechanisms.mechanism import Mechanism
from privsyn.private.composition import Promise
from privsyn.private.noise_laws import LAPLACE
from privsyn.private.samplers.exponential import exponential
from privsyn.private.spend import ADD_OR_REMOVE, Spend


@dataclass(frozen=True, kw_only=True)
class Exponential(Mechanism):
    """The exponential mechanism: P(candidate) is proportional to e^(epsilon score / (2 sensitivity)).

    Parameters
    ----------
    epsilon : float
    sensitivity : float
        How far neighbouring tables can move the score of any candidate.
    monotone : bool
        Your statement that adding a record moves all scores in the same direction. Then the factor 2 is left
        out: the same epsilon draws better candidates.
    seed : int, optional
        For tests: NOT PRIVATE.

    References
    ----------
    McSherry and Talwar, "Mechanism design via differential privacy", 2007.

    Examples
    --------
    >>> m = Exponential(epsilon=1, sensitivity=1, monotone=True)
    >>> m.release({"tea": 12, "coffee": 60, "water": 20})
    'coffee'
    """

    epsilon: float
    sensitivity: float = 1.0
    monotone: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("epsilon", self.epsilon)
        check_between("sensitivity", self.sensitivity)

    @property
    def neighbours(self) -> str | None:
        """Scores that a record moves in one direction are moved in both by a changed one."""
        return ADD_OR_REMOVE if self.monotone else None

    @property
    def spread(self) -> float:
        """How far neighbouring tables can move two scores apart: twice the sensitivity, or once if
        monotone.
        """
        return self.sensitivity if self.monotone else 2 * self.sensitivity

    @property
    def scale(self) -> float:
        """A score counts e^(score / scale) times."""
        return LAPLACE.scale(self.epsilon, self.spread)

    @property
    def spend(self) -> Spend:
        """What one draw costs."""
        return Spend(self.name, 1, self.spread, self.scale, law="laplace")

    @property
    def promise(self) -> Promise:
        """A pure epsilon, with privacy losses in an interval of this length (bounded range)."""
        return Promise.pure(self.spend.cost, bounded_range=True)

    def release(self, scores: Any) -> Any:
        """Return a candidate.

        Parameters
        ----------
        scores : mapping or Series from candidate to score, or sequence of scores
            How many, and of which candidates, is public. What is no number counts as 0.

        Returns
        -------
        The candidate; of a Series, its label; of a sequence, its position.
        """
        labels = scores.index if isinstance(scores, pd.Series) else scores
        named = labels is not scores or isinstance(scores, Mapping)
        candidates = list(labels) if named else list(range(len(scores)))
        values = scores.values() if isinstance(scores, Mapping) else scores
        exact = [score_in(value) for value in values]
        if not exact:
            raise InputError("there is no candidate to draw")
        return candidates[exponential(exact, Fraction(self.scale), self._bits)]

    def interval(self, level: float = 0.95, answer: float = 0.0, *, candidates: int) -> tuple[float, float]:
        """Return between which scores the best candidate lies if the drawn one has the score `answer`.

        With this probability at most scale (ln(candidates) + ln(1 / (1 - level))) above it (McSherry and
        Talwar, 2007).
        """
        gap = self.scale * (log(candidates) - log(1 - check_between("level", level, 1.0)))
        return answer, answer + gap


def score_in(value: Any) -> Fraction:
    """Return a score as an exact number, at most `FARTHEST`; 0 for what is no number.

    Cutting scores off brings no two of them further apart.

    Numbers of NumPy are converted first: their arithmetic has a fixed width, and a product may wrap around.

    >>> score_in(np.int32(7)), score_in(None), score_in(float("inf")) == FARTHEST
    (Fraction(7, 1), Fraction(0, 1), True)
    """
    try:
        number = value.item() if isinstance(value, np.generic) else value
        if isinstance(number, float):
            number = 0 if isnan(number) else min(max(number, -FARTHEST), FARTHEST)
        return min(max(Fraction(number), Fraction(-FARTHEST)), Fraction(FARTHEST))
    except Exception:  # no error may depend on a score
        return Fraction()
