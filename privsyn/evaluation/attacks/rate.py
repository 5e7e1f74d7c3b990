"""Rate: the number of successful attacks, and of all attacks."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Literal

from scipy.stats import binomtest

from privsyn.inference.fitted import MISSED

Interval = tuple[float, float]


@dataclass(frozen=True)
class Rate:
    """The number of successful attacks, and of all attacks.

    >>> Rate(30, 40).value
    0.75
    """

    successes: int
    attacks: int

    def __post_init__(self) -> None:
        if not 0 <= self.successes <= self.attacks:
            raise ValueError(f"{self.successes} of {self.attacks} attacks")

    @property
    def value(self) -> float:
        """Return the share of successes; NaN without attacks."""
        return self.successes / self.attacks if self.attacks else nan

    @property
    def interval(self) -> Interval:
        """Return the 95 % Wilson interval, which also holds where no attack or every attack succeeds."""
        return self._interval("wilson")

    @property
    def exact_interval(self) -> Interval:
        """Return the 95 % interval of Clopper and Pearson, which misses at most one time in twenty."""
        return self._interval("exact")

    def _interval(self, method: Literal["exact", "wilson"]) -> Interval:
        if not self.attacks:
            return nan, nan
        low, high = binomtest(self.successes, self.attacks).proportion_ci(1 - MISSED, method=method)
        return float(low), float(high)
