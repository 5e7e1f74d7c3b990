"""The axis of a histogram: linear, or stretched where most rows are, so that incomes are not all one bar."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from privsyn.marginals.types import Floats

CENTRAL, CROWDED = (0.1, 0.9), 0.25
"""The axis is stretched if the rows between these quantiles would cover less than this share of it."""

NARROWEST = 1 / 80
"""Smallest width of a bin, as a share of a stretched axis."""


@dataclass(frozen=True)
class Axis:
    r"""An axis from `low` to `high`.

    A stretched axis draws `x` at :math:`\operatorname{asinh}((x - m) / s)`. This is linear near the middle
    and logarithmic far from it, on both sides.

    Parameters
    ----------
    low, high : float
    middle : float
        ``m`` in the formula.
    spread : float
        ``s`` in the formula, the width of the linear part; infinite for a linear axis.

    Examples
    --------
    >>> incomes = np.array([10.0, 20, 30, 40, 50, 1000])
    >>> axis = Axis.of(0, 10_000, incomes, np.ones(6))
    >>> axis.stretched, axis.positions(np.array([0.0, 30, 30.5, 100, 10_000])).round(2).tolist()
    (True, [0.0, 0.15, 0.16, 0.4, 1.0])
    >>> Axis.of(0, 100, incomes, np.ones(6)).stretched
    False
    """

    low: float
    high: float
    middle: float = 0.0
    spread: float = inf

    @classmethod
    def of(cls, low: float, high: float, points: Floats, weights: Floats) -> Axis:
        """Return the axis for points, each with its number of rows as a weight."""
        if not weights.sum() > 0:
            return cls(low, high)
        first, middle, last = _quantiles(points, weights, (CENTRAL[0], 0.5, CENTRAL[1]))
        away = np.abs(points - middle)
        others = weights * (away > 0)
        if last - first >= CROWDED * (high - low) or not others.sum() > 0:
            return cls(low, high)
        return cls(low, high, float(middle), float(_quantiles(away, others, (0.5,))[0]))

    @property
    def stretched(self) -> bool:
        """Whether the axis is not linear."""
        return isfinite(self.spread)

    def positions(self, edges: Floats) -> Floats:
        """Return the positions of the edges of bins, from 0 to 1; on a stretched axis no bin is invisible."""
        if not self.high > self.low:
            return np.linspace(0, 1, len(edges))
        widths = np.diff(self._transform(edges))
        if self.stretched:
            widths = np.maximum(widths, NARROWEST * widths.sum())
        return np.append(0.0, np.cumsum(widths)) / widths.sum()

    def edges(self, bins: int) -> Floats:
        """Return the edges of bins that are equally wide on the axis."""
        first, last = self._transform(np.array([self.low, self.high])).tolist()
        equal = np.linspace(first, last, bins + 1)
        return self.middle + self.spread * np.sinh(equal) if self.stretched else equal

    def _transform(self, points: Floats) -> Floats:
        return np.arcsinh((points - self.middle) / self.spread) if self.stretched else points


def _quantiles(points: Floats, weights: Floats, at: tuple[float, ...]) -> Floats:
    order = np.argsort(points, kind="stable")
    cumulative = np.cumsum(weights[order])
    ranks = np.searchsorted(cumulative, np.array(at) * cumulative[-1])
    return points[order][np.minimum(ranks, len(points) - 1)]
