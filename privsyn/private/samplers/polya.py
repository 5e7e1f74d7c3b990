"""Draw exactly from the Polya distribution, given random bits: shares of discrete Laplace noise.

The Polya (negative binomial) law with real r and ratio p is ``P(j) = Gamma(r + j) / (Gamma(r) j!) p^j (1 -
p)^r`` for j = 0, 1, ... Laws of equal p add up in r. With r = 1 it is geometric, and the difference of two
geometric variables is discrete Laplace. So the differences of two Polya variables with ``r = 1 / h`` of h
owners sum to discrete Laplace noise of the scale ``-1 / ln p`` (docs/proofs.md).

The method is that of `privsyn.private.samplers.gaussian`: a random word gives an integer ``k`` of 63 bits,
and ``U`` in ``[k, k + 1) / 2^63`` is inverted. The draw is the largest j with ``U < P(x >= j)``. A table of
tails in double precision finds it nearly always. Otherwise the draw is *doubtful*, and further bits of ``U``
and arbitrary precision decide it.

References
----------
Goryczka and Xiong, "A comprehensive comparison of multiparty secure additions with differential privacy",
2015, name these shares of noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, expm1

import numpy as np
from mpmath import libmp
from scipy.special import betainc, betaincc

from privsyn.arguments import check_whole
from privsyn.marginals.domain import Floats, Ints
from privsyn.private.randomness import Bits, Words
from privsyn.private.samplers.gaussian import FEWEST, GUARD, Tail, check_scale, in_blocks
from privsyn.private.samplers.laplace import ratio_of

TOLERANCE = 3e-10
"""Bound on the relative error of a tail in double precision, and of U for every k of at least `FEWEST`.

The ends of the interval of U are at most 1/k apart in ln U: 3e-11. A table has J <= 2^18 tails. Each is a sum
of at most J probabilities, all above 0, which are products of at most J ratios of three roundings each: less
than 4 J 2^-53 = 1.2e-10. Between the tails of a coarse table the library computes them. The tests find its
error below 1e-13."""

FAR = 20.0
"""In scales: a tail there is at most exp(-20) < 2^-28, which every U with k >= `FEWEST` exceeds."""

DENSE = 2.0**13
"""Largest scale at which the table has every integer up to `FAR` scales."""

COARSE = 2000
"""Integers in the table of a larger scale: bisection finds those between."""


def laplace_share(scale: float, owners: int, size: int, bits: Bits) -> Ints:
    """Draw exactly the difference of two Polya variables with r = 1 / `owners`.

    The sum of `owners` independent shares is discrete Laplace with this scale.

    Parameters
    ----------
    scale : float
        Above 0. Its exact value as a double is used.
    owners : int
        At least 1.
    size : int
        Number of independent shares.
    bits : Bits
        Two words per share, and one or more for each doubtful draw.

    Examples
    --------
    With r = 1/2 and scale 10, a Polya variable is at least 3 with probability 0.457. The words lie just below
    it and just above it:

    >>> words = [int(tail * 2**63) * 2 for tail in (0.45, 0.46)]
    >>> laplace_share(10.0, 2, 1, lambda size: np.array(words, dtype=np.uint64))
    array([1])
    """
    draws = polya(scale, owners, 2 * size, bits)
    return draws[:size] - draws[size:]


def polya(scale: float, owners: int, size: int, bits: Bits) -> Ints:
    """Draw exactly from the Polya distribution with r = 1 / `owners` and p = exp(-1 / scale)."""
    check_scale(scale)
    tails = _tails(scale, check_whole("owners", owners, minimum=1))

    def block(words: Words) -> Ints:
        return _block(tails, bits, words)

    return in_blocks(block, size, bits)


def _block(tails: _Tails, bits: Bits, words: Words) -> Ints:
    """Draw once for each word: its upper 63 bits are k."""
    k = (words >> np.uint64(1)).view(np.int64)
    u = (k.astype(np.float64) + 0.5) * 2.0**-63
    index = np.searchsorted(-tails.values, -u)  # of the first tail that is at most u
    end = np.minimum(index, len(tails.values) - 1)  # beyond the table: k is below `FEWEST`
    draws, above, below = tails.search(
        u, tails.integers[end - 1], tails.integers[end], tails.values[end - 1], tails.values[end]
    )
    doubtful = (u > (1 - TOLERANCE) * above) | (u < (1 + TOLERANCE) * below) | (k < FEWEST)
    for number in np.flatnonzero(doubtful):
        draws[number] = _Draw(int(k[number]), bits).settle(tails)
    return draws


@dataclass(frozen=True)
class _Tails:
    """Tails P(x >= j) in double precision, at increasing integers j from 0.

    Parameters
    ----------
    scale : float
    owners : int
    integers : array of shape (integers,)
    values : array of shape (integers,)
    """

    scale: float
    owners: int
    integers: Ints
    values: Floats

    def search(
        self, u: Floats, low: Ints, high: Ints, above: Floats, below: Floats
    ) -> tuple[Ints, Floats, Floats]:
        """Return the integers whose tails are the last above u, their tails, and the next ones.

        Of the tails, that at `low` is above u, and that at `high` is at most u.
        """
        low, high, above, below = low.copy(), high.copy(), above.copy(), below.copy()
        while (apart := np.flatnonzero(high - low > 1)).size:
            middle = (low[apart] + high[apart]) // 2
            tails = _library_tails(self.scale, self.owners, middle)
            is_above = tails > u[apart]
            low[apart[is_above]], above[apart[is_above]] = middle[is_above], tails[is_above]
            high[apart[~is_above]], below[apart[~is_above]] = middle[~is_above], tails[~is_above]
        return low, above, below


@lru_cache(maxsize=8)
def _tails(scale: float, owners: int) -> _Tails:
    """Return the table of a law: every integer, or for a large scale some of them."""
    last = ceil(FAR * scale) + 1
    if scale > DENSE:
        integers = np.unique(np.rint(np.append(0, np.geomspace(1, last, COARSE)))).astype(np.int64)
        return _Tails(scale, owners, integers, _library_tails(scale, owners, integers))
    r, ratio = 1 / owners, ratio_of(scale)
    j = np.arange(last + 1)
    masses = np.cumprod(np.append((-expm1(-1 / scale)) ** r, ratio * (r + j[:-1]) / (j[:-1] + 1)))
    masses[-1] = _library_tails(scale, owners, j[-1:])[0]  # all that is beyond the table
    values = np.cumsum(masses[::-1])[::-1]
    return _Tails(scale, owners, j, np.append(1.0, values[1:]))


def _library_tails(scale: float, owners: int, j: Ints) -> Floats:
    """Return P(x >= j), a regularised incomplete beta function of p, or of 1 - p where that is smaller."""
    r = 1 / owners
    if scale < 1:
        values = betainc(np.maximum(j, 1), r, ratio_of(scale))
    else:
        values = betaincc(r, np.maximum(j, 1), -expm1(-1 / scale))
    return np.where(j == 0, 1.0, values)


class _Draw(Tail):
    """A tail probability U, which draws as many bits as the comparison with a tail of the law needs."""

    def settle(self, tails: _Tails) -> int:
        """Return the largest j with U < P(x >= j)."""
        u = np.array([(2 * self.numerator + 1) / (1 << self.known + 1)])
        ends = np.array([0, ceil(100 * tails.scale) + 1])  # exp(-100) is below 2^-128
        values = _library_tails(tails.scale, tails.owners, ends)
        (nearest,), _, _ = tails.search(u, ends[:1], ends[1:], values[:1], values[1:])
        j = int(nearest)
        while self._reaches(j + 1, tails):
            j += 1
        while j > 0 and not self._reaches(j, tails):
            j -= 1
        return j

    def _reaches(self, j: int, tails: _Tails) -> bool:
        """Return whether x >= j, so U < P(x >= j)."""
        return self.below(lambda bits: _tail_units(j, tails.scale, tails.owners, bits))


def _tail_units(j: int, scale: float, owners: int, bits: int) -> int:
    """Return P(x >= j), for j >= 1, in units of 2^-(known + GUARD / 2); the truth is within -1 and +2.

    With m the probability of j, and S as in `_series`, P(x >= j) = m S(r + j, j + 1, p) and P(x < j) = m (j /
    r) S(r + j, r + 1, 1 - p). The first is summed where p is the smaller, else the second. The working
    precision has 128 digits more than the result. They cover 1 - p, of which up to 41 are lost, the
    exponents, and the roundings of some thousand terms.
    """
    precision = bits + GUARD
    if j / scale > precision:  # P(x >= j) <= p^j, the tail for r = 1, is less than a unit
        return 0
    working = precision + 128
    minus = libmp.mpf_div(libmp.from_int(-1), libmp.from_float(scale), working)
    ratio = libmp.mpf_exp(minus, working)
    rest = libmp.mpf_sub(libmp.fone, ratio, working)
    mass = _mass(j, owners, minus, rest, working)
    if scale < 1:
        series = _series(j, owners, owners * (j + 1), libmp.to_fixed(ratio, working), working)
        tail = libmp.mpf_mul(mass, series, working)
    else:
        series = _series(j, owners, 1 + owners, libmp.to_fixed(rest, working), working)
        lower = libmp.mpf_mul(libmp.mpf_mul_int(mass, j * owners, working, "n"), series, working)
        tail = libmp.mpf_sub(libmp.fone, lower, working)
    return int(libmp.to_fixed(tail, bits + GUARD // 2))


def _mass(j: int, owners: int, minus: libmp.MPF, rest: libmp.MPF, working: int) -> libmp.MPF:
    """Return P(x = j) = Gamma(r + j) / (Gamma(r) j!) exp(j ln p + r ln(1 - p))."""
    r = libmp.from_rational(1, owners, working)
    logarithm = libmp.mpf_add(
        libmp.mpf_mul_int(minus, j, working, "n"),
        libmp.mpf_mul(r, libmp.mpf_log(rest, working), working),
        working,
    )
    up = libmp.mpf_gamma(libmp.from_rational(1 + owners * j, owners, working), working)
    down = libmp.mpf_mul(
        libmp.mpf_gamma(r, working), libmp.mpf_gamma(libmp.from_int(j + 1), working), working
    )
    return libmp.mpf_mul(libmp.mpf_exp(logarithm, working), libmp.mpf_div(up, down, working), working)


def _series(j: int, owners: int, start: int, z: int, working: int) -> libmp.MPF:
    """Return S(a, c, z) = 1 + a / c z + a (a + 1) / (c (c + 1)) z^2 + ..., the Gauss series of (a, 1; c).

    Here a = j + 1 / owners and c = `start` / owners, so that a term is the one before times ``(1 + owners (j
    + n)) / (start + owners n) z``. All are above 0. The sum ends where terms are below a unit and the ratio,
    which only approaches z, is at most 7/8: what is left out is less than 8 units.
    """
    total = term = 1 << working  # z has as many binary digits
    up, down = 1 + owners * j, start
    while term or 8 * up * z > 7 * down << working:
        term = term * up * z // down >> working
        total += term
        up, down = up + owners, down + owners
    return libmp.from_man_exp(total, -working, working)
