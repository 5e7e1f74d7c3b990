r"""Intervals for counts of which a noisy answer is known: right 95 times in a hundred, and never below zero.

A count of few records measured with much noise is often seen below zero. To cut the usual
:math:`x \pm 1.96 \sigma` off at zero would be right 97.5 times in a hundred where nobody is, and would now
and then leave nothing. Ordering what might be seen by its likelihood ratio gives neither trouble: Feldman
and Cousins, "Unified approach to the classical statistical analysis of small signals", Physical Review D 57,
1998, Section IV B.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import ndtr

from privsyn.answers.arrays import Floats

COVERAGE = 0.95
TWO_SIDED = 1.959963984540054  # standard normal quantile of 0.975
ONE_SIDED = 1.6448536269514722  # of 0.95
ROUNDING = (
    1 / 12
)  # variance that rounding the noise to whole records adds, but where it is under half a record

LEAST = 1e-4  # standard deviations: a bound nearer to zero than this is not told from it
STEPS = 2000
HALVINGS = 50


def count_intervals(seen: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Lower and upper ends of 95 % intervals for counts, by noisy answers alone.

    Whatever the true counts, from 0 up, each interval holds its own with probability 0.95.

    Parameters
    ----------
    seen : array
        Noisy answers, in records.
    variance : array of the same shape
        Of their noise.

    Examples
    --------
    >>> low, high = count_intervals(np.array([500.0, 0.0, -300.0]), np.full(3, 100.0**2))
    >>> low.round().tolist(), high.round().tolist()
    ([304.0, 0.0, 0.0], [696.0, 196.0, 42.0])
    """
    sigma = np.sqrt(variance + ROUNDING)
    means, lowest, highest = _accepted()
    places = seen / sigma
    low = np.where(places < highest[-1], np.interp(places, highest, means, left=0.0), places - TWO_SIDED)
    high = np.where(places < lowest[-1], np.interp(places, lowest, means), places + TWO_SIDED)
    return low * sigma, high * sigma


@cache
def _accepted() -> tuple[Floats, Floats, Floats]:
    r"""Means near zero, and the least and the largest that may be seen of each, in standard deviations.

    The likelihood ratio of :math:`x < 0` is :math:`e^{x\mu - \mu^2/2}` and that of :math:`x \ge 0` is
    :math:`e^{-(x - \mu)^2/2}`. They are equal at :math:`\mu + t` and at :math:`(\mu^2 - t^2) / 2\mu`, and t
    is such that 95 % of what is seen lies between. From :math:`\mu = 1.96` on it stays there.
    """
    means = np.geomspace(LEAST, TWO_SIDED, STEPS)
    short, long = np.full(STEPS, ONE_SIDED), np.full(STEPS, TWO_SIDED)
    for _ in range(HALVINGS):
        reach = (short + long) / 2
        enough = ndtr(reach) - ndtr(-(means**2 + reach**2) / (2 * means)) >= COVERAGE
        short, long = np.where(enough, short, reach), np.where(enough, reach, long)
    return means, (means**2 - long**2) / (2 * means), means + long
