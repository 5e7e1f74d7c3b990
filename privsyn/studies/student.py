"""Which model to train on synthetic rows, and on how many of them."""

from __future__ import annotations

from dataclasses import dataclass

BOOSTING_FROM = 1.0
"""The epsilon from which boosting on `TIMES` the rows does best: below it, boosting learns the noise of the
counts. From scores on four tables in docs/engineer.md (experiments/direct.py)."""

TIMES = 5
"""Synthetic rows for boosting, over the number of private rows: more rows have less sampling error."""


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
    >>> Student.for_epsilon(0.2)
    Student(learner='forest', times=1)
    >>> print(Student.for_epsilon(5.0))
    a model to train: boosting, on 5 times as many rows (more rows cost no privacy)
    """

    learner: str
    times: int

    @classmethod
    def for_epsilon(cls, epsilon: float) -> Student:
        """Return the model that usually does best, by the epsilon of one row."""
        return cls("boosting", TIMES) if epsilon >= BOOSTING_FROM else cls("forest", 1)

    def __str__(self) -> str:
        if self.learner == "forest":
            return (
                "a model to train: a random forest with leaves of at least 5 rows; boosting learns the noise"
            )
        return f"a model to train: boosting, on {self.times} times as many rows (more rows cost no privacy)"
