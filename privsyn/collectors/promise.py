"""Promise: what a study promises its contributors before anybody sends a row, and what decides the noise."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Self

from privsyn.arguments import check_whole
from privsyn.errors import InputError, spelled
from privsyn.private.noise_laws import law_of

if TYPE_CHECKING:
    from privsyn.methods.run_settings import RunSettings


def threshold_of(collectors: int) -> int:
    """Return t: how many of the collectors together learn nothing. Any t + 1 can open sums."""
    return (collectors - 1) // 2


@dataclass(frozen=True)
class Promise:
    """The privacy of each row. It is public before the first row, and part of the study's fingerprint.

    Parameters
    ----------
    epsilon, delta : float
    accounting : str
        How the noise follows from epsilon and delta.
    lost : int
        How many collectors may be lost during the questions: the noise of the others must be enough.

    Examples
    --------
    >>> print(Promise(1.0, 1e-9, "gaussian", lost=1))
    epsilon 1 at delta 1e-09 (gaussian accounting), also if 1 collector is lost
    """

    epsilon: float
    delta: float
    accounting: str
    lost: int

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < inf and 0 <= self.delta < 1):
            raise InputError("a study promises an epsilon above 0, and a delta from 0 to below 1")

    @classmethod
    def of(cls, settings: RunSettings, collectors: int, lost: int | None = None) -> Self:
        """Return the promise of a new study. Default: all but t + 1 collectors may be lost."""
        limit = collectors - threshold_of(collectors) - 1
        promise = cls(*_terms(settings), limit if lost is None else lost)
        promise.check_lost(collectors)
        return promise

    def check_lost(self, collectors: int) -> None:
        """Refuse a promise that this number of collectors cannot keep."""
        limit = collectors - threshold_of(collectors) - 1
        if check_whole(spelled("lost"), self.lost) > limit:
            raise InputError(
                f"{spelled('lost')} must be 0 to {limit} of {collectors} collectors, because"
                f" {threshold_of(collectors) + 1} open a sum; got {self.lost}"
            )

    def require_settings(self, settings: RunSettings) -> None:
        """Refuse settings that promise something else."""
        epsilon, delta, accounting = _terms(settings)
        self.require(epsilon=epsilon, delta=delta, accounting=accounting)

    def require(self, **values: object) -> None:
        """Refuse values other than the promised ones: rows were sent for these. None is any value."""
        for name, value in values.items():
            if value is not None and value != (promised := getattr(self, name)):
                raise InputError(
                    f"{spelled(name)} must be {promised}, which the study promised its contributors; got"
                    f" {value}"
                )

    def __str__(self) -> str:
        are_lost = "1 collector is lost" if self.lost == 1 else f"{self.lost} collectors are lost"
        return (
            f"epsilon {self.epsilon:.10g} at delta {self.delta:.10g} ({self.accounting} accounting), also if"
            f" {are_lost}"
        )


def _terms(settings: RunSettings) -> tuple[float, float, str]:
    """Return epsilon, delta and the accounting of settings."""
    epsilon, delta = settings.promise
    return epsilon, delta, settings.algorithm.accounting_of(law_of(delta))
