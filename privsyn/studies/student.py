"""Which model to train on synthetic rows, and on how many of them."""

from __future__ import annotations

from dataclasses import dataclass

DISTILLED_FROM = 1.0
"""The epsilon from which boosting does best: below it, it learns the noise of the counts."""

BOOSTING_FROM = 3.0
"""The epsilon from which it needs no linear model as its teacher: what it loses is then more than what it
spares. From scores in docs/engineer.md, at 0.2, 1 and 5 (experiments/direct.py and label_noise.py)."""

TIMES = 5
"""Synthetic rows for boosting, over the number of private rows: more rows have less sampling error."""

WORDS = {
    "forest": "a random forest with leaves of at least 5 rows; boosting learns the noise",
    "distilled": "boosting that a linear model taught (Distilled), on {times} times as many rows (more rows"
    " cost no privacy)",
    "boosting": "boosting, on {times} times as many rows (more rows cost no privacy)",
}


@dataclass(frozen=True)
class Student:
    """A model that learns from synthetic rows.

    Parameters
    ----------
    learner : str
        Its name in `evaluate` and `sweep`.
    times : int
        Synthetic rows to learn from, over the number of private rows.

    Examples
    --------
    >>> Student.for_epsilon(0.2), Student.for_epsilon(1.0)
    (Student(learner='forest', times=1), Student(learner='distilled', times=5))
    >>> print(Student.for_epsilon(5.0))
    a model to train: boosting, on 5 times as many rows (more rows cost no privacy)
    """

    learner: str
    times: int

    @classmethod
    def for_epsilon(cls, epsilon: float) -> Student:
        """Return the model that usually does best, by the epsilon of one row."""
        if epsilon < DISTILLED_FROM:
            return cls("forest", 1)
        return cls("distilled" if epsilon < BOOSTING_FROM else "boosting", TIMES)

    def __str__(self) -> str:
        return f"a model to train: {WORDS[self.learner].format(times=self.times)}"
