"""Exact draws of a rounded Gaussian from random bits.

What is drawn is ``round(Z)``, ``Z ~ N(0, sigma^2)``, and it is drawn exactly: the law of the integer is that
of ``round(Z)``, with ``sigma`` the very double given, and no trace of floating point remains for anybody to
read (Mironov, 2012).

How. A random 64-bit word says the sign of ``Z`` and, by ``k`` of 63 bits, that the two-sided tail probability
``U = P(|N(0, sigma^2)| > |Z|)`` lies in ``[k, k + 1) / 2^63``. Double precision turns ``U`` into ``|Z|`` with
an error that has a bound; nearly always every number within the bound rounds to the same integer. Where not,
the draw is *doubtful*, and further bits of ``U`` and arbitrary precision settle it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from math import isfinite, sqrt

import numpy as np
import numpy.typing as npt
from mpmath import libmp
from scipy.special import ndtri

from privsyn.errors import InputError, safe_repr
from privsyn.marginals.types import Ints

Words = npt.NDArray[np.uint64]
Bits = Callable[[int], Words]
"""A source of randomness: ``bits(n)`` is n fresh words of 64 independent fair bits."""

BLOCK = 2**15
"""Words drawn at a time: the working arrays stay in the processor's cache."""

LARGEST_SIGMA = 2.0**40
"""Beyond any count of records; far below where the noise would leave 64 bits."""

TOLERANCE = 1e-10
"""Bound on the error of |Z| / sigma in double precision, for every U that a word of `FEWEST` or more allows.

The width of the interval: with Q and phi the normal's upper tail and density, U = 2 Q(x), so |dx| is d(ln U)
times Mills' ratio Q / phi, which is at most 1.26; the interval's ends are at most 1/k apart in ln U, and
1.26 / 2^35 < 4e-11. The library's inverse: 6e-11 are left for an error that the tests find below 1e-14. The
rounding of U and of the product with sigma: some 1e-15."""

FEWEST = 2**35
"""A smaller k, one word in 2^28, is always doubtful: its interval is wide; that of k = 0 has no end."""

GUARD = 64
"""Binary digits beyond those known of U with which a tail is computed. Half of them are slack for the error
of mpmath, a few units of its last digit; the other half make the comparison finer than U is known."""


def os_entropy(size: int) -> Words:
    """`size` words from the operating system's cryptographic generator."""
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def seeded_bits(rng: np.random.Generator) -> Bits:
    """Words of a NumPy generator: repeatable, and therefore NOT PRIVATE."""
    return lambda size: rng.integers(0, 2**64, size=size, dtype=np.uint64)


def rounded_gaussian(sigma: float, size: int, bits: Bits) -> Ints:
    """Exact draws of round(Z), Z normal with mean 0 and standard deviation `sigma`.

    Parameters
    ----------
    sigma : float
        Above 0 and at most `LARGEST_SIGMA`; taken as the exact value of the double.
    size : int
        How many independent draws.
    bits : Bits
        One word a draw, and one or more for each doubtful draw.

    Examples
    --------
    Half of all draws deviate by more than 0.674 sigma. Here is the word of that tail with either sign:

    >>> rounded_gaussian(10.0, 2, lambda size: np.array([2**63, 2**63 + 1], dtype=np.uint64))
    array([ 7, -7])
    """
    check_sigma(sigma)
    drawn = np.empty(size, dtype=np.int64)
    for start in range(0, size, BLOCK):
        words = bits(min(BLOCK, size - start))
        drawn[start : start + BLOCK] = _rounded_block(sigma, words, bits)
    return drawn


def _rounded_block(sigma: float, words: Words, bits: Bits) -> Ints:
    """One draw for each word: the lowest bit is the sign, the other 63 are k."""
    k = (words >> np.uint64(1)).view(np.int64)
    deviation = k.astype(np.float64)  # becomes, in place: the middle of the interval of U / 2, x, then |Z|
    deviation += 0.5
    deviation *= 2.0**-64
    ndtri(deviation, out=deviation)
    deviation *= -sigma
    nearest = np.rint(deviation)
    drawn = nearest.astype(np.int64)
    deviation -= nearest
    np.abs(deviation, out=deviation)  # from 0, safe, to 1/2, where two integers are equally near
    doubtful = (deviation > 0.5 - TOLERANCE * (1 + sigma)) | (k < FEWEST)
    for place in np.flatnonzero(doubtful):
        drawn[place] = _Tail(int(k[place]), bits).settle(sigma)
    negative = (words & np.uint64(1)).astype(bool)
    np.negative(drawn, out=drawn, where=negative)
    return drawn


class _Tail:
    """A tail probability U, uniform on [0, 1), of which as many bits are drawn as a question needs.

    U lies in ``[numerator, numerator + 1) / 2^known``. A word is added to the 63 bits of k at once: with 127
    bits the guess in `settle` is right to about one integer, and yet another word is next to never needed.
    """

    def __init__(self, k: int, bits: Bits) -> None:
        self.numerator, self.known, self.bits = k, 63, bits
        self._draw()

    def _draw(self) -> None:
        self.numerator = self.numerator << 64 | int(self.bits(1)[0])
        self.known += 64

    def settle(self, sigma: float) -> int:
        """The integer nearest to the |Z| whose tail probability is U."""
        half = (2 * self.numerator + 1) / (1 << self.known + 2)  # division of integers rounds correctly
        nearest = round(-sigma * float(ndtri(half)))
        while self._beyond(nearest + 0.5, sigma):
            nearest += 1
        while nearest > 0 and not self._beyond(nearest - 0.5, sigma):
            nearest -= 1
        return nearest

    def _beyond(self, edge: float, sigma: float) -> bool:
        """Whether |Z| > edge, that is U < erfc(edge / (sigma sqrt 2)); draws bits until it is certain."""
        while True:
            tail = _tail_units(edge, sigma, self.known)
            lowest, end = self.numerator << GUARD // 2, self.numerator + 1 << GUARD // 2
            if end <= tail - 1:
                return True
            if lowest >= tail + 2:
                return False
            self._draw()


def _tail_units(edge: float, sigma: float, known: int) -> int:
    """P(|Z| > edge) in units of 2^-(known + GUARD / 2); the truth lies between this less 1 and this plus 2.

    Rounding down costs up to 1, the error of mpmath far less (its last digit is worth 2^-32 units).
    The functions of `mpmath.libmp` take their precision as an argument, so threads do not disturb each other.
    """
    precision = known + GUARD
    if edge / sigma > 2 * sqrt(precision):  # then erfc(z) < exp(-z^2) < exp(-precision): below any unit
        return 0
    scale = libmp.mpf_mul(libmp.from_float(sigma), libmp.mpf_sqrt(libmp.from_int(2), precision), precision)
    argument = libmp.mpf_div(libmp.from_float(edge), scale, precision)
    return int(libmp.to_fixed(libmp.mpf_erfc(argument, precision), known + GUARD // 2))


def check_sigma(sigma: float) -> None:
    """Refuse a scale that is no scale, or one that would drown any count."""
    if not (isfinite(sigma) and sigma > 0):
        raise InputError(f"sigma is a finite number above 0; got {safe_repr(sigma)}")
    if sigma > LARGEST_SIGMA:
        raise InputError(f"noise of sigma {sigma:.3g} drowns any count: epsilon is too small, raise it")
