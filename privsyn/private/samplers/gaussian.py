"""Draw exactly from a rounded Gaussian, given random bits.

The draw is ``round(Z)``, where ``Z ~ N(0, sigma^2)``. It is exact: the integer has the distribution of
``round(Z)``, ``sigma`` is the exact value of the given double, and no floating-point artefact reveals the
exact answer (Mironov, 2012).

Method. A random 64-bit word gives the sign of ``Z`` and an integer ``k`` of 63 bits. The two-sided tail
probability ``U = P(|N(0, sigma^2)| > |Z|)`` lies in ``[k, k + 1) / 2^63``. Double precision turns ``U`` into
``|Z|`` with a bounded error. Nearly always, all numbers within the bound round to the same integer. Otherwise
the draw is *doubtful*, and further bits of ``U`` and arbitrary precision decide it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isfinite, sqrt

import numpy as np
from mpmath import libmp
from scipy.special import ndtri

from privsyn.errors import InputError, safe_repr
from privsyn.marginals.domain import Ints
from privsyn.private.randomness import Bits, Words

BLOCK = 2**15
"""Words drawn at a time, so that the working arrays stay in the processor's cache."""

LARGEST_SIGMA = 2.0**40
"""In records: above any count, and far below the point where the noise would exceed 64 bits."""

TOLERANCE = 1e-10
"""Bound on the error of |Z| / sigma in double precision, for every k of at least `FEWEST`.

It has three parts. The width of the interval: let Q and phi be the upper tail and the density of the normal.
Then U = 2 Q(x), so |dx| is d(ln U) times Mills' ratio Q / phi, which is at most 1.26. The ends of the
interval are at most 1/k apart in ln U, and 1.26 / 2^35 < 4e-11. The inverse of the library: 6e-11 remain for
an error that the tests find below 1e-14. The rounding of U and of the product with sigma: about 1e-15."""

FEWEST = 2**35
"""A smaller k, one word in 2^28, is always doubtful: its interval is wide, and that of k = 0 is infinite."""

GUARD = 64
"""Binary digits with which a tail is computed, beyond the known digits of U. Half of them cover the error of
mpmath, a few units in its last digit. The other half make the comparison finer than the known digits of U."""


def rounded_gaussian(sigma: float, size: int, bits: Bits) -> Ints:
    """Draw exactly from round(Z), where Z is normal with mean 0 and standard deviation `sigma`.

    Parameters
    ----------
    sigma : float
        Above 0 and at most `LARGEST_SIGMA`. Its exact value as a double is used.
    size : int
        Number of independent draws.
    bits : Bits
        One word per draw, and one or more for each doubtful draw.

    Examples
    --------
    Half of all draws deviate by more than 0.674 sigma. These are the words of that tail with either sign:

    >>> rounded_gaussian(10.0, 2, lambda size: np.array([2**63, 2**63 + 1], dtype=np.uint64))
    array([ 7, -7])
    """
    check_scale(sigma, "sigma")
    return in_blocks(partial(_rounded_block, sigma, bits), size, bits)


def in_blocks(draw: Callable[[Words], Ints], size: int, bits: Bits) -> Ints:
    """Return `size` draws, one for each word, made by `draw` in blocks that fit the cache."""
    draws = np.empty(size, dtype=np.int64)
    for start in range(0, size, BLOCK):
        draws[start : start + BLOCK] = draw(bits(min(BLOCK, size - start)))
    return draws


def _rounded_block(sigma: float, bits: Bits, words: Words) -> Ints:
    """Draw once for each word: the lowest bit is the sign, the other 63 are k."""
    k = (words >> np.uint64(1)).view(np.int64)
    deviation = k.astype(np.float64)  # in place: the middle of the interval of U / 2, then x, then |Z|
    deviation += 0.5
    deviation *= 2.0**-64
    ndtri(deviation, out=deviation)
    deviation *= -sigma
    nearest = np.rint(deviation)
    draws = nearest.astype(np.int64)
    deviation -= nearest
    np.abs(deviation, out=deviation)  # from 0, safe, to 1/2, where two integers are equally near
    doubtful = (deviation > 0.5 - TOLERANCE * (1 + sigma)) | (k < FEWEST)
    for index in np.flatnonzero(doubtful):
        draws[index] = _Deviation(int(k[index]), bits).settle(sigma)
    negative = (words & np.uint64(1)).astype(bool)
    np.negative(draws, out=draws, where=negative)
    return draws


class Tail:
    """A tail probability U, uniform on [0, 1), which draws as many bits as a question needs.

    U lies in ``[numerator, numerator + 1) / 2^known``. A word is added to the 63 bits of k at the start. With
    127 bits a guess in double precision is right to about one integer, and another word is almost never
    needed.
    """

    def __init__(self, k: int, bits: Bits) -> None:
        self.numerator, self.known, self.bits = k, 63, bits
        self._draw()

    def _draw(self) -> None:
        self.numerator = self.numerator << 64 | int(self.bits(1)[0])
        self.known += 64

    def below(self, units: Callable[[int], int]) -> bool:
        """Return whether U is below a probability; draw bits until it is certain.

        Parameters
        ----------
        units : callable
            Return the probability in units of 2^-(known + GUARD / 2) for a number of known bits. The true
            value is within -1 and +2 of it.
        """
        while True:
            tail = units(self.known)
            lowest, end = self.numerator << GUARD // 2, self.numerator + 1 << GUARD // 2
            if end <= tail - 1:
                return True
            if lowest >= tail + 2:
                return False
            self._draw()


class _Deviation(Tail):
    """The tail probability of a normal deviation."""

    def settle(self, sigma: float) -> int:
        """Return the integer nearest to the |Z| whose tail probability is U."""
        half = (2 * self.numerator + 1) / (1 << self.known + 2)  # division of integers rounds correctly
        nearest = round(-sigma * float(ndtri(half)))
        while self._beyond(nearest + 0.5, sigma):
            nearest += 1
        while nearest > 0 and not self._beyond(nearest - 0.5, sigma):
            nearest -= 1
        return nearest

    def _beyond(self, edge: float, sigma: float) -> bool:
        """Return whether |Z| > edge, so U < erfc(edge / (sigma sqrt 2))."""
        return self.below(lambda bits: _tail_units(edge, sigma, bits))


def _tail_units(edge: float, sigma: float, bits: int) -> int:
    """Return P(|Z| > edge) in units of 2^-(known + GUARD / 2); the true value is within -1 and +2 of it.

    Rounding down costs up to 1, and the error of mpmath far less (its last digit is worth 2^-32 units). The
    functions of `mpmath.libmp` take their precision as an argument, so threads do not disturb each other.
    """
    precision = bits + GUARD
    if edge / sigma > 2 * sqrt(precision):  # then erfc(z) < exp(-z^2) < exp(-precision), less than a unit
        return 0
    scale = libmp.mpf_mul(libmp.from_float(sigma), libmp.mpf_sqrt(libmp.from_int(2), precision), precision)
    argument = libmp.mpf_div(libmp.from_float(edge), scale, precision)
    return int(libmp.to_fixed(libmp.mpf_erfc(argument, precision), bits + GUARD // 2))


def check_scale(scale: float, name: str = "scale") -> None:
    """Refuse a scale that is not a finite number above 0, or one that would exceed every count."""
    if not (isfinite(scale) and scale > 0):
        raise InputError(f"{name} must be a finite number above 0; got {safe_repr(scale)}")
    if scale > LARGEST_SIGMA:
        raise InputError(f"epsilon is too small: noise of {name} {scale:.3g} exceeds every count. Raise it")
