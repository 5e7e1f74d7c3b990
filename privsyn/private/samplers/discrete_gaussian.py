"""Draw exactly from the discrete Gaussian distribution, given random bits.

The law is ``P(x)`` proportional to ``exp(-x^2 / (2 sigma^2))``, for all whole numbers x. It is no rounded
Gaussian: each has a sampler, a law and an accounting of its own.

Method (Canonne, Kamath and Steinke, 2020, Algorithm 3). With ``t = floor(sigma) + 1``, a discrete Laplace y
of scale t is accepted with probability ``exp(-(|y| - sigma^2 / t)^2 / (2 sigma^2))``, and drawn again
otherwise: the product of both is proportional to the law. A uniform U is compared with that probability. A
random word gives 63 bits of U. Double precision decides nearly always. Otherwise the draw is *doubtful*,
and further bits and arbitrary precision decide it.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import floor

import numpy as np
from mpmath import libmp

from privsyn.marginals.domain import Ints, Mask
from privsyn.private.randomness import Bits
from privsyn.private.samplers.gaussian import BLOCK, GUARD, Tail, check_scale
from privsyn.private.samplers.laplace import discrete_laplace

TOLERANCE = 1e-10
"""Bound on the error of the probability in double precision.

Let e = d^2 / 2 be the exponent. Its d is a difference of two terms in units of sigma: |y| / sigma, at most
d + 1, and sigma / t, at most 1. Each has a relative error below 1e-15, so |de| < (d^2 + 2 d) 1e-14. The
error of exp(-e) is exp(-e) |de|, which is below 1e-13 for every d."""


def discrete_gaussian(sigma: float, size: int, bits: Bits) -> Ints:
    """Draw exactly from the discrete Gaussian distribution.

    Parameters
    ----------
    sigma : float
        Above 0 and at most 2^40. Its exact value as a double is used. The standard deviation is slightly
        less.
    size : int
        Number of independent draws.
    bits : Bits
        Two words and more for each proposal, of which about 3 in 4 are accepted.

    Examples
    --------
    >>> from privsyn.private.randomness import seeded_bits
    >>> draws = discrete_gaussian(3.0, 10_000, seeded_bits(np.random.default_rng(1)))
    >>> f"{draws.std():.1f}"
    '3.0'
    """
    check_scale(sigma, "sigma")
    scale = floor(sigma) + 1
    draws = np.empty(size, np.int64)
    filled = 0
    while filled < size:
        proposals = discrete_laplace(float(scale), min(BLOCK, 2 * (size - filled) + 16), bits)
        accepted = proposals[_accepted(np.abs(proposals), sigma, scale, bits)][: size - filled]
        draws[filled : filled + len(accepted)] = accepted
        filled += len(accepted)
    return draws


def _accepted(magnitudes: Ints, sigma: float, scale: int, bits: Bits) -> Mask:
    """Return which proposals are accepted."""
    k = (bits(len(magnitudes)) >> np.uint64(1)).view(np.int64)
    uniform = (k.astype(np.float64) + 0.5) * 2.0**-63
    exponent = ((magnitudes - sigma * (sigma / scale)) / sigma) ** 2 / 2
    gap = uniform - np.exp(-exponent)
    accepted = gap < 0
    for index in np.flatnonzero(np.abs(gap) < TOLERANCE):
        exact = Fraction(sigma) ** 2
        exact = (int(magnitudes[index]) - exact / scale) ** 2 / (2 * exact)
        accepted[index] = Tail(int(k[index]), bits).below(partial(exponential_units, exact))
    return accepted


def exponential_units(exponent: Fraction, bits: int) -> int:
    """Return e^-exponent in units of 2^-(bits + GUARD / 2); the truth is within -1 and +2."""
    precision = bits + GUARD
    if exponent > precision:  # then e^-exponent < 2^-precision, less than a unit
        return 0
    minus = libmp.from_rational(-exponent.numerator, exponent.denominator, precision + 64)
    return int(libmp.to_fixed(libmp.mpf_exp(minus, precision), bits + GUARD // 2))
