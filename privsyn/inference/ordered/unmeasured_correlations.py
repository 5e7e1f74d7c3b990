r"""Rank correlations of pairs that were not measured, with 95 % intervals.

**From the concordance** of a pair, a noisy answer (see `concordance`). A Gaussian copula gives both the
concordance and Spearman's correlation: an interval of the first is one of the second. Real pairs depart from
a Gaussian copula. Their correlation differs from that of their concordance by `MISFIT`, or so.

**From the distance** D of the pair from independence, in blocks of codes. Departures sum to 0 along both
columns, so the sum of the products of ranks is at most h k D. Here h and k are half the ranges of the mean
ranks of the blocks, and D is the upper end of its interval. This holds for every table in these blocks. Only
inside the blocks a Gaussian copula is assumed, as for measured pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from privsyn.inference.fitted import ROUNDING, TWO_SIDED
from privsyn.inference.ordered.number_intervals import POWERS, Interval, Ranks
from privsyn.inference.ratios.joint_counts import Departure
from privsyn.marginals.domain import Floats
from privsyn.marginals.tolerances import TINY_COUNT

MISFIT = 0.06
"""Standard deviation of a real correlation about the one that belongs to its concordance.

In 413 pairs of the eight tables of numbers in docs/inference.md it is 0.07; in those with a correlation below
0.3, such as pairs that are not measured, 0.054."""

AT_INDEPENDENCE = len(POWERS) // 2  # of the parameters of the copula: independence


@dataclass(frozen=True, eq=False)
class Halves:
    """The two halves of an ordered attribute, whose records a concordance compares.

    Parameters
    ----------
    ranks : Ranks
    first_above : int
        The first merged code of the upper half.
    """

    ranks: Ranks
    first_above: int

    @cached_property
    def signs(self) -> Floats:
        """-1 for each code of the lower half, 1 for each code of the upper half."""
        return np.where(self.ranks.merged < self.first_above, -1.0, 1.0)

    @property
    def coefficients(self) -> Floats:
        """The Hermite coefficients of the signs."""
        return self.signs @ self.ranks.integrals

    @property
    def deviation(self) -> float:
        """The standard deviation of the signs."""
        square, mean = float(self.ranks.shares @ self.signs**2), float(self.ranks.shares @ self.signs)
        return sqrt(max(square - mean**2, 0.0))

    @property
    def mean_with_ranks(self) -> float:
        """The mean product of sign and rank."""
        return float(self.ranks.shares @ (self.signs * self.ranks.middles))


def concordance_interval(
    measured: float, variance: float, columns: tuple[Halves, Halves], records: float
) -> Interval:
    """Return the correlation that belongs to a noisy concordance, and its interval.

    Parameters
    ----------
    measured : float
        Concordant records minus discordant ones, with noise.
    variance : float
        Of the noise, in records squared; with what the noise of single columns adds.
    columns : tuple of Halves
    records : float
        Number of records with an order in both attributes.
    """
    a, b = columns
    spread, rank_spread = a.deviation * b.deviation, a.ranks.deviation * b.ranks.deviation
    if not (spread > 0 and rank_spread > 0 and records >= 1):
        return Interval(0.0, -1.0, 1.0)
    sums = np.maximum.accumulate(POWERS @ (a.coefficients * b.coefficients))
    correlations = POWERS @ (a.ranks.coefficients * b.ranks.coefficients) / rank_spread
    moved, by = (float(np.gradient(curve)[AT_INDEPENDENCE]) for curve in (sums, correlations))
    if not min(moved, by) > 0:
        return Interval(0.0, -1.0, 1.0)
    slope = moved / by
    overlap = a.mean_with_ranks * b.mean_with_ranks / (spread * rank_spread)
    chance = max(1 + (spread / slope) ** 2 - 2 * spread / slope * overlap, 0.0) / records
    error = TWO_SIDED * sqrt((variance + ROUNDING) / records**2 + (chance + MISFIT**2) * slope**2)
    seen = measured / records
    ends = np.array([seen, seen - error, seen + error])
    centre = float(np.interp(ends[0], sums, correlations))
    low = float(np.interp(ends[1], sums, correlations, left=-1.0))
    high = float(np.interp(ends[2], sums, correlations, right=1.0))
    return Interval(*np.clip([centre, low, high], -1.0, 1.0).tolist())


def largest_correlation(departure: Departure, sides: tuple[Ranks, Ranks], records: float) -> float:
    """Return the largest correlation, of either sign, that a noisy distance from independence allows.

    Parameters
    ----------
    departure : Departure
    sides : tuple of Ranks
    records : float
        Number of records with an order in both attributes.
    """
    coarse = [side.in_groups(group) for side, group in zip(sides, departure.blocks.groups, strict=True)]
    h, k = ((float(side.middles.max()) - float(side.middles.min())) / 2 for side in coarse)
    rank_spread = sides[0].deviation * sides[1].deviation
    sums = np.maximum.accumulate(POWERS @ (coarse[0].coefficients * coarse[1].coefficients))
    if not (h * k > 0 and rank_spread > 0):
        return 1.0
    correlations = POWERS @ (sides[0].coefficients * sides[1].coefficients) / rank_spread
    largest = h * k * departure.upper_end / max(records, TINY_COUNT)
    ends = (
        np.interp([largest], sums, correlations, right=1.0),
        np.interp([-largest], sums, correlations, left=-1.0),
    )
    return float(min(np.abs(np.concatenate(ends)).max(), 1.0))


def unmeasured_interval(concordance: Interval | None, largest: float) -> Interval:
    """Return the interval of a correlation from that of its concordance, if any, and the largest."""
    if concordance is None:
        return Interval(0.0, -largest, largest)
    low, high = max(concordance.low, -largest), min(concordance.high, largest)
    if low > high:  # what every table keeps counts
        low, high = -largest, largest
    return Interval(min(max(concordance.estimate, low), high), low, high)


@dataclass(frozen=True, eq=False)
class NoisySigns:
    """The signs of both halves of a column, and the noise in its counts.

    Parameters
    ----------
    signs, shares : arrays of shape (ordered codes,)
        The sign of each merged code, and its share of the records with an order.
    factor : matrix
        See `noise_factor`.
    """

    signs: Floats
    shares: Floats
    factor: Floats

    @property
    def mean(self) -> float:
        """The mean sign."""
        return float(self.signs @ self.shares)

    @property
    def noise(self) -> float:
        """The variance of the sum of all signs, by noise."""
        return float(((self.signs @ self.factor[: len(self.signs)]) ** 2).sum())


def margin_noise(a: NoisySigns, b: NoisySigns) -> float:
    """Return the variance that the noise of two columns adds to the concordance if they are independent."""
    return b.mean**2 * a.noise + a.mean**2 * b.noise
