r"""The share of records that meet a condition on one attribute, with a 95 % interval from its noisy counts.

Let w be the share of the records of each code that meet the condition, M the measured counts, and p the
estimate :math:`\sum w M / \sum M`. The number of records that meet it has, relative to the number of all,
the noise of :math:`\sum (w - p) M` (delta method). Its interval is that of a count, which holds near 0, too.

Where a condition splits a code, no count shows w. Draws of a release let the mean place inside a code vary
by `TILT` standard deviations. To first order this moves w by TILT times its covariance with the place, which
is at most :math:`\sqrt{3} w (1 - w)`. Its square is added to the variance.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from privsyn.inference.error_bars import count_intervals, laplace_intervals
from privsyn.inference.ordered.number_intervals import LEAST_TOTAL, Interval, noise_variance
from privsyn.inference.posterior.places import TILT
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.types import Floats


def share_interval(
    measured: Measurement, released: Marginal, parts: Floats, factor: Floats, *, laplace: bool = False
) -> Interval:
    """Return the released share of records that meet a condition, and its interval.

    Parameters
    ----------
    measured : Measurement
        Of one attribute.
    released : Marginal
    parts : array of shape (codes,)
        Share of the records of each code that meet the condition.
    factor : array of shape (codes, codes)
        The noise in the measured counts is that of F z, with z standard normal; see `mean_interval`.
    laplace : bool
        Whether the noise is discrete Laplace.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> counts = Marginal(Domain(("a",), (2,)), np.array([300.0, 100.0]))
    >>> found = share_interval(Measurement(counts, 100.0), counts, np.array([0.0, 1.0]), 10 * np.eye(2))
    >>> found.estimate, round(found.low, 3), round(found.high, 3)
    (0.25, 0.211, 0.289)
    """
    estimate = min(float(released.counts @ parts) / max(released.total, 1e-9), 1.0)
    counts, total = measured.marginal.counts, measured.marginal.total
    if total <= LEAST_TOTAL * sqrt(float((factor.sum(axis=0) ** 2).sum())):
        return Interval(estimate, 0.0, 1.0)
    share = float(counts @ parts) / total
    weights = parts - share
    inside = TILT * sqrt(3) * parts * (1 - parts) * np.maximum(counts, 0.0)
    variance = noise_variance(weights, factor) + (inside**2).sum()
    rare = min(share, 1 - share)
    intervals_of = laplace_intervals if laplace else count_intervals
    low, high = (
        float(end[0]) / total for end in intervals_of(np.array([rare * total]), np.array([variance]))
    )
    ends = (low, high) if share <= 0.5 else (1 - high, 1 - low)
    return Interval(estimate, *(min(max(end, 0.0), 1.0) for end in ends))
