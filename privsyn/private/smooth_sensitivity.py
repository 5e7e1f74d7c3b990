r"""Smooth sensitivity of the median, and Cauchy noise in proportion to it.

The median of most tables hardly moves if a row is added or removed, but that of some moves from bound to
bound. Noise for the worst table would drown the answer, and noise for the table at hand would reveal how
far its own median moves. A *smooth* sensitivity lies between (Nissim, Raskhodnikova and Smith, 2007): it is
at least the local sensitivity, and changes by at most a factor of :math:`e^\beta` from a table to its
neighbour.

**Cauchy noise.** Release :math:`f + S Z / \alpha` for a :math:`\beta`-smooth S, where Z has the density
:math:`h(z) = 1 / (\pi (1 + z^2))`. This is :math:`(\alpha + \beta)`-differentially private:

- *Sliding.* The logarithm of h has the slope :math:`-2 z / (1 + z^2)`, between -1 and 1. Neighbours have
  :math:`|f - f'| \le S`, which is at most :math:`\alpha` in units of the scale. So the density changes by a
  factor of at most :math:`e^\alpha`.
- *Dilation.* The logarithm of :math:`e^t h(e^t z)` has in t the slope :math:`1 - 2 e^{2t} z^2 / (1 + e^{2t}
  z^2)`, between -1 and 1. Scales of neighbours differ by a factor of at most :math:`e^\beta`, and so do the
  densities.

For Cauchy noise this is three times better than the general lemma of the paper, which has :math:`\alpha =
\beta = \epsilon / 6`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import ceil, exp, inf, nextafter

import numpy as np
from mpmath import libmp

from privsyn.marginals.domain import Floats, Ints
from privsyn.private.randomness import Bits
from privsyn.private.samplers.gaussian import GUARD, Tail

NEAR = 1e-12
"""Products of two doubles that are this close, relative to the largest, are compared exactly."""


def lower_median(cells: Ints, low: int) -> int:
    """Return the cell of rank n / 2, rounded up, of n sorted cells; `low` if there is none.

    >>> lower_median(np.array([2, 5, 7, 9]), 0), lower_median(np.array([], int), 0)
    (5, 0)
    """
    return int(cells[ceil(len(cells) / 2) - 1]) if len(cells) else low


def smooth_sensitivity_of_median(cells: Ints, low: int, high: int, beta: float) -> Fraction:
    r"""Return a smooth sensitivity of the lower median, for neighbours that add or remove one cell.

    Let :math:`x_0 =` low, :math:`x_{n+1} =` high, and the sorted cells between. Adding or removing a cell
    of a table y moves its median within a gap between cells (or bounds) that are next to each other in y,
    with L of them up to the gap and R from it on, and :math:`R - L` 0 or 1. (For odd n, median and gap
    below it; for even n, above it.)

    Let y be k rows from x. The gap of y lies within :math:`(x_i, x_j)` for some i < j such that all cells
    strictly between were removed: j - i - 1 rows. Any other row changes R - L, which is n + 1 - j - i before,
    by 1. So the gap is reached with :math:`k = j - i - 1 + \max(0, R - L - 1, L - R)` rows, and not with
    fewer. If R - L exceeds 1, then k does not depend on j, and a larger j has a wider gap. If L exceeds R,
    then k does not depend on i. So it suffices to look at j = n - i and j = n + 1 - i, where k = j - i - 1.

    The result is :math:`\max (x_j - x_i) w_{j-i-1}` with :math:`w_0 = 1` and
    :math:`w_k \ge w_{k+1} \ge e^{-\beta} w_k`, in doubles that are rounded up. A gap that x reaches with k
    rows, a neighbour of x reaches with at most k + 1, and so the result changes by a factor of at most
    :math:`e^\beta`. The products are compared exactly.

    Parameters
    ----------
    cells : sorted integer array, from `low` to `high`
    low, high : int
    beta : float
        Above 0.

    References
    ----------
    Nissim, Raskhodnikova and Smith, "Smooth sensitivity and sampling in private data analysis", 2007, Section
    3.1, have the median of a fixed number of rows.

    Examples
    --------
    >>> round(float(smooth_sensitivity_of_median(np.array([10, 50, 52, 54, 90]), 0, 100, beta=1.0)), 3)
    5.955
    """
    number = len(cells)
    padded = np.concatenate([[low], cells, [high]])
    i = np.arange((number + 2) // 2)
    gaps = np.concatenate([padded[number - i] - padded[i], padded[number + 1 - i] - padded[i]])
    distances = np.concatenate([number - 2 * i - 1, number - 2 * i])
    gaps, distances = gaps[distances >= 0], distances[distances >= 0]
    weights = falling(beta, number + 1)[distances]
    products = gaps * weights
    close = np.flatnonzero(products >= products.max() * (1 - NEAR))
    return max(Fraction(int(gaps[index])) * Fraction(float(weights[index])) for index in close)


def falling(beta: float, size: int) -> Floats:
    """Return doubles from 1, each at least e^-beta times the one before, hardly more, and no larger."""
    ratio = nextafter(nextafter(exp(-beta), inf), inf)  # the error of exp is below 1 unit in the last place
    weights, weight = np.empty(size), 1.0
    for index in range(size):
        weights[index] = weight
        weight = min(weight, nextafter(weight * ratio, inf))
    return weights


def rounded_cauchy(scale: Fraction, limit: int, bits: Bits) -> int:
    """Draw exactly from round(scale Z), cut off at `limit` on both sides, where Z has a Cauchy distribution.

    Rounding and cutting off are post-processing. The tail is P(|Z| > t) = 2 / pi arctan(1 / t).

    Examples
    --------
    Half of all draws deviate by more than the scale:

    >>> rounded_cauchy(Fraction(10), 1000, lambda size: np.full(size, 2**63, np.uint64))
    10
    """
    word = int(bits(1)[0])
    tail = Tail(word >> 1, bits)
    low, high = 0, limit
    while low < high:  # the largest j with U < P(scale |Z| > j - 1/2)
        middle = (low + high + 1) // 2
        edge = (middle - Fraction(1, 2)) / scale
        if tail.below(partial(_tail_units, edge)):
            low = middle
        else:
            high = middle - 1
    return -low if word & 1 else low


def _tail_units(edge: Fraction, bits: int) -> int:
    """Return P(|Z| > edge) in units of 2^-(bits + GUARD / 2); the true value is within -1 and +2 of it."""
    precision = bits + GUARD + 32
    inverse = libmp.from_rational(edge.denominator, edge.numerator, precision)
    quarter = libmp.mpf_div(libmp.mpf_atan(inverse, precision), libmp.mpf_pi(precision), precision)
    return int(libmp.to_fixed(libmp.mpf_shift(quarter, 1), bits + GUARD // 2))
