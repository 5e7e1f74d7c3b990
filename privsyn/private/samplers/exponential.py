"""Draw exactly from the exponential mechanism, given random bits.

Candidate i has the probability ``w_i / W`` with ``w_i = exp((s_i - max s) / scale)`` and ``W`` their sum. A
uniform U draws the first candidate whose cumulative probability exceeds it. A random word gives 63 bits of
U. Double precision decides nearly always. Otherwise the draw is *doubtful*, and further bits and arbitrary
precision decide it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np
from mpmath import libmp

from privsyn.private.randomness import Bits
from privsyn.private.samplers.gaussian import GUARD, Tail

TOLERANCE = 1e-10
"""Bound on the error of a cumulative probability in double precision.

The weight e^-x of a candidate has an error below 2e-16, as x is rounded once and x e^-x is below 1. At most
10^5 candidates are added up, each time with a relative error of 2^-53, and their sum is at least 1."""

MOST_CANDIDATES = 10**5

FARTHEST = Fraction(10**4)
"""Exponents end here in double precision, where e^-x is 0: larger ones may be no doubles."""


def exponential(scores: Sequence[Fraction], scale: Fraction, bits: Bits) -> int:
    """Return the position of a candidate, drawn with probability proportional to e^(score / scale).

    Examples
    --------
    Two candidates, of which the second is e^10 times as probable as the first:

    >>> exponential([Fraction(0), Fraction(10)], Fraction(1), lambda size: np.array([2**63], np.uint64))
    1
    """
    best = max(scores)
    exponents = [(best - score) / scale for score in scores]
    cumulative = np.cumsum(np.exp(-np.array([float(min(exponent, FARTHEST)) for exponent in exponents])))
    cumulative /= cumulative[-1]
    uniform = Tail(int(bits(1)[0]) >> 1, bits)
    nearest = (2 * uniform.numerator + 1) / (1 << uniform.known + 1)
    position = int(np.searchsorted(cumulative, nearest, side="right"))
    gaps = np.abs(cumulative[:-1] - nearest)
    if len(scores) <= MOST_CANDIDATES and not (gaps < TOLERANCE).any():
        return position
    low, high = 0, len(scores) - 1  # the first candidate whose cumulative probability exceeds U
    while low < high:
        middle = (low + high) // 2
        if uniform.below(partial(_units, exponents, middle)):
            high = middle
        else:
            low = middle + 1
    return low


def _units(exponents: Sequence[Fraction], last: int, bits: int) -> int:
    """Return the probability of the candidates up to `last` in units of 2^-(bits + GUARD / 2).

    The true value is within -1 and +2 of it.

    Each weight has a relative error below 2^-(bits + GUARD - 1), and so have sums of positive numbers, but
    for as many roundings as they have terms: fewer than 2^20.
    """
    precision = bits + GUARD + 32
    partial = total = libmp.fzero
    for position, exponent in enumerate(exponents):
        minus = libmp.from_rational(-exponent.numerator, exponent.denominator, precision + 64)
        total = libmp.mpf_add(total, libmp.mpf_exp(minus, precision), precision)
        if position == last:
            partial = total
    return int(libmp.to_fixed(libmp.mpf_div(partial, total, precision), bits + GUARD // 2))
