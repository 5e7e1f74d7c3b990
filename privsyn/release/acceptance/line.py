"""The released straight line of a slope, and what a private row adds to the sums that test it.

Let u and v be x and y less their means over the released rows, b the released slope and w the error allowed.
The private slope exceeds b + w exactly if the sum of u v - (b + w) u^2 over the private rows is above 0, and
falls short of b - w exactly if the sum of (b - w) u^2 - u v is: see "Acceptance, slopes" in docs/proofs.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privsyn.marginals.domain import Floats, Ints
from privsyn.private.acceptance import UNIT
from privsyn.release.acceptance.layout import Summed

EQUAL = 1e-12
"""Share of the sum of squares below which all numbers count as equal."""

TINY = float(np.finfo(float).tiny)
"""Smallest double of full precision."""

ROUNDING = 1e-6
"""Units that are added before rounding up. Errors of doubles are below 1e-10 units."""


@dataclass(frozen=True)
class Line:
    """A line through the means of some released rows.

    Parameters
    ----------
    y, x : float
        The means.
    slope : float
    square : float
        Sum of the squares of x less its mean.
    """

    y: float
    x: float
    slope: float
    square: float

    @classmethod
    def of(cls, summed: tuple[Summed, ...], products: Floats) -> Line | None:
        """Return the line by least squares, given the sums of `Layout.products`; None if all x are equal.

        If the sums exceed doubles, the slope is not finite.
        """
        rows, sums = products[0, 0], products[0, 1:]
        (_, both), (_, square) = products[1:, 1:] - np.outer(sums, sums) / rows
        if square <= EQUAL * products[2, 2]:
            return None
        y, x = (of.origin + float(total / rows) for of, total in zip(summed, sums, strict=True))
        return cls(y, x, float(both / square), float(square))

    def units(self, summed: tuple[Summed, ...], within: float) -> tuple[Ints, Ints, float] | None:
        """Return what a row in each cell of the table of y and x adds to both sums, and the value of a unit.

        Each is the largest value in the cell, rounded up. Rows that do not count add 0. A unit is chosen such
        that none adds more than `UNIT` + 1. Return None if products of the numbers exceed doubles, or if a
        unit is below the smallest of full precision: cast to integers, such values could be anything.
        """
        y, x = summed
        (low, high), (first, last) = (
            (of.lows - mean, of.highs - mean) for of, mean in ((y, self.y), (x, self.x))
        )
        step = _scale((low, high), (first, last), abs(self.slope) + within) / UNIT
        sides = (
            _largest(low, high, first, last, self.slope + within),
            _largest(-high, -low, first, last, within - self.slope),
        )
        counted = ~np.isnan(np.add.outer(low, first))
        if not (TINY <= step < np.inf and np.isfinite(np.array(sides)[:, counted]).all()):
            return None
        above, below = (np.ceil(np.where(counted, side / step + ROUNDING, 0.0)) for side in sides)
        return above.astype(np.int64), below.astype(np.int64), step


def _scale(y: tuple[Floats, Floats], x: tuple[Floats, Floats], slope: float) -> float:
    """Return a bound of ``|u v| + slope u^2`` over all cells."""
    v, u = (float(np.nanmax(np.abs(ends))) for ends in (y, x))
    return u * (v + slope * u)


def _largest(low: Floats, high: Floats, first: Floats, last: Floats, slope: float) -> Floats:
    """Return the largest ``u v - slope u^2`` in each cell, with v from low to high and u from first to last.

    Given u it is largest at an end of v. For positive u that is ``u high - slope u^2``, for negative u it is
    ``u low - slope u^2``. So it is largest at an end of u, at 0, or at the vertex of one of these parabolas.

    >>> _largest(np.array([-1.0]), np.array([2.0]), np.array([0.0]), np.array([3.0]), 0.5)
    array([[2.]])
    """
    low, high = low[:, np.newaxis], high[:, np.newaxis]
    vertices = (0.0,) if slope == 0 else (0.0, low / (2 * slope), high / (2 * slope))
    places = (first, last, *(np.clip(vertex, first, last) for vertex in vertices))
    values = [np.where(u > 0, u * high, u * low) - slope * u**2 for u in places]
    return np.asarray(np.maximum.reduce(np.broadcast_arrays(*values)))
