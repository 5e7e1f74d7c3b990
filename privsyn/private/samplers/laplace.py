"""Draw exactly from the discrete Laplace distribution, given random bits: the noise of pure epsilon.

The law is ``P(x) = (1 - p) / (1 + p) p^|x|`` with ``p = exp(-1 / scale)``, for all whole numbers x. The
method is that of `privsyn.private.samplers.gaussian`: a random 64-bit word gives the sign and an integer
``k`` of 63 bits, and ``U`` in ``[k, k + 1) / 2^63`` is inverted. The two-sided tail is ``P(|x| >= j) = 2
p^j / (1 + p)`` for j >= 1. So ``|x|`` is the largest j with ``U < 2 p^j / (1 + p)``, or 0. Double precision
finds it nearly always. Otherwise the draw is *doubtful*, and further bits of ``U`` and arbitrary precision
decide it.

References
----------
Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", 2020, describe another exact
method, by rejection. The tests compare the distribution with OpenDP, which uses that method.
"""

from __future__ import annotations

from functools import partial
from math import exp

import numpy as np
from mpmath import libmp

from privsyn.marginals.domain import Ints
from privsyn.private.randomness import Bits, Words
from privsyn.private.samplers.gaussian import FEWEST, GUARD, Tail, check_scale, in_blocks

TOLERANCE = 1e-10
"""Bound on the error of |x| / scale in double precision, for every k of at least `FEWEST`.

The ends of the interval of U are at most 1/k apart in ln U, and 1/k < 3e-11. The logarithm and the product
with the scale, each of relative error below 1e-15, contribute less than 1e-13: |x| / scale is at most 45."""


def discrete_laplace(scale: float, size: int, bits: Bits) -> Ints:
    """Draw exactly from the discrete Laplace distribution.

    Parameters
    ----------
    scale : float
        Above 0. Its exact value as a double is used.
    size : int
        Number of independent draws.
    bits : Bits
        One word per draw, and one or more for each doubtful draw.

    Examples
    --------
    At scale 10, |x| is at least 7 with probability 0.522. These words lie just below, with either sign:

    >>> word = int(0.52 * 2**63) * 2
    >>> discrete_laplace(10.0, 2, lambda size: np.array([word, word + 1], dtype=np.uint64))
    array([ 7, -7])
    """
    check_scale(scale)
    return in_blocks(partial(_block, scale, bits), size, bits)


def _block(scale: float, bits: Bits, words: Words) -> Ints:
    """Draw once for each word: the lowest bit is the sign, the other 63 are k."""
    k = (words >> np.uint64(1)).view(np.int64)
    deviation = (k.astype(np.float64) + 0.5) * 2.0**-64 * (1 + ratio_of(scale))  # U (1 + p) / 2
    deviation = -scale * np.log(deviation)
    draws = np.floor(deviation).astype(np.int64)
    away = np.abs(deviation - np.rint(deviation))  # from 0, where two integers are equally near, to 1/2, safe
    doubtful = (away < TOLERANCE * (1 + scale)) | (k < FEWEST)
    for index in np.flatnonzero(doubtful):
        draws[index] = _Magnitude(int(k[index]), bits).settle(scale)
    negative = (words & np.uint64(1)).astype(bool)
    np.negative(draws, out=draws, where=negative)
    return draws


class _Magnitude(Tail):
    """A tail probability U, which draws as many bits as the comparison with a power of p needs."""

    def settle(self, scale: float) -> int:
        """Return the largest j with U < 2 p^j / (1 + p), or 0."""
        u = (2 * self.numerator + 1) / (1 << self.known + 1)
        nearest = max(0, int(-scale * float(np.log(u * (1 + ratio_of(scale)) / 2))))
        while self._reaches(nearest + 1, scale):
            nearest += 1
        while nearest > 0 and not self._reaches(nearest, scale):
            nearest -= 1
        return nearest

    def _reaches(self, j: int, scale: float) -> bool:
        """Return whether |x| >= j, so U < P(|x| >= j)."""
        return self.below(lambda bits: _tail_units(j, scale, bits))


def ratio_of(scale: float) -> float:
    """Return p = exp(-1 / scale); 0 where that is below every double."""
    return exp(-1 / scale) if scale > 1e-3 else 0.0


def _tail_units(j: int, scale: float, bits: int) -> int:
    """Return P(|x| >= j), for j >= 1, in units of 2^-(known + GUARD / 2); the truth is within -1 and +2."""
    precision = bits + GUARD
    if j / scale > precision:  # then p^j < 2^-precision, less than a unit
        return 0
    minus = libmp.mpf_div(libmp.from_int(-1), libmp.from_float(scale), precision + 64)
    power = libmp.mpf_exp(libmp.mpf_mul(minus, libmp.from_int(j), precision + 64), precision)
    divisor = libmp.mpf_add(libmp.from_int(1), libmp.mpf_exp(minus, precision), precision)
    tail = libmp.mpf_div(libmp.mpf_shift(power, 1), divisor, precision)
    return int(libmp.to_fixed(tail, bits + GUARD // 2))
