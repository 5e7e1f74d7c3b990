"""Lagrange interpolation in a prime field, by which Shamir shares of a secret give the secret."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod


def lagrange_weights(at: int, points: Sequence[int], prime: int) -> list[int]:
    """Return the weights with which the values at some points add up to the value at another point.

    The values are those of a polynomial modulo `prime` whose degree is below the number of points (Shamir,
    "How to share a secret", 1979).

    Parameters
    ----------
    at : int
    points : sequence of int
        All different modulo `prime`.
    prime : int

    Examples
    --------
    The polynomial 5 + 2 x has the values 7 at 1 and 11 at 3, and 5 at 0:

    >>> first, second = lagrange_weights(0, [1, 3], 97)
    >>> (first * 7 + second * 11) % 97
    5
    """
    return [
        prod((at - further) * pow(point - further, -1, prime) for further in points if further != point)
        % prime
        for point in points
    ]
