r"""Intervals of a ratio of two sums over the records: a share, a rate in a group, the mean of a group.

Let :math:`s` and :math:`v` be what a record adds above and below: for a rate of A in a group B the indicators
of A and B, and of B; for a mean the number in B, and the indicator of B. A ratio R is in the interval unless
the answers refute :math:`\sum (s - R v) = 0` at the level of 5 % (Fieller 1954). So no ratio of noisy numbers
is trusted where the noise hides the number of records in the group.

How the sum and its noise follow from what was counted: `joint_counts`.

Near 0 the interval of a share is that of a count (Feldman and Cousins 1998).

References
----------
E. C. Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society B 16 (1954).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt

import numpy as np

from privsyn.inference.fitted import TWO_SIDED, count_intervals, laplace_intervals
from privsyn.inference.ordered.number_intervals import LEAST_TOTAL, Interval
from privsyn.inference.rare_values import NOTHING_HIDDEN, Hidden
from privsyn.inference.ratios.joint_counts import SLACK, JointCounts
from privsyn.inference.ratios.weights import Weights
from privsyn.marginals.domain import Floats
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.tolerances import TINY_COUNT

SAME = 1e-6  # between the ends of the interval of a ratio of exact counts: halvings stop there
STEPS, HALVINGS = 41, 25  # ratios that are tried if the answers refute their own, and halvings at each end


def ratio_interval(
    answers: JointCounts,
    weights: Weights,
    limits: tuple[float, float],
    *,
    hidden: Hidden = NOTHING_HIDDEN,
    laplace: bool = False,
) -> Interval | None:
    """Return the ratio of two sums over the records, and its interval; None if noise hides the lower sum.

    Parameters
    ----------
    answers : JointCounts
    weights : Weights
    limits : pair of float
        The least and the largest ratio. With (0, 1) the upper sum is a part of the lower one.
    hidden : Hidden
        What noise hides of a part.
    laplace : bool
        Whether the noise is discrete Laplace.
    """
    number, low, high = answers.sum_of(weights.below, weights.squares[2]), *limits
    released = float((answers.released * weights.below).sum())
    estimate = float((answers.released * weights.above).sum()) / released if released > 0 else np.nan
    if number.value - number.beside <= LEAST_TOTAL * sqrt(number.variance):
        return Interval(estimate, *limits) if weights.counts_all else None
    upper = answers.sum_of(weights.above, weights.squares[0], weights.place_variance)
    centre = min(max(upper.value / number.value, low), high)
    is_part, flips = limits == (0.0, 1.0), centre > (low + high) / 2
    in_parts = is_part and weights.counts_all
    is_limited = answers.released.ndim == 2 and answers.margins_hold and answers.composition is None
    intervals_of = laplace_intervals if laplace else count_intervals
    slack = SLACK * max(float(np.abs(answers.released * weights.above).sum()), number.value)
    inside_cells = float((answers.released**2 * weights.place_variance).sum())
    unseen = TWO_SIDED * sqrt(hidden.variance + inside_cells)  # margins show neither
    # Answers that lie beyond a limit are taken to be at it, which is nearer to every possible ratio.
    beyond = upper.value - centre * number.value

    def limits_of(weight: Floats, squares: Floats, ratio: float) -> tuple[float, float]:
        """Return the least and the largest possible sum of all records of which `beyond` is the noisy one."""
        total = answers.sum_of(weight, squares, weights.place_variance, parts=in_parts)
        less, more = (total.beside + rows + slack for rows in answers.unlike(weight))
        if not is_part:
            noise = TWO_SIDED * sqrt(total.variance)
            return total.value - noise - less - beyond, total.value + noise + more - beyond
        expected = ratio * number.value
        seen = expected + total.value
        below, above = hidden.missing + less, hidden.meeting + more
        if flips:
            seen, expected, below, above = number.value - seen, number.value - expected, above, below
        ends = intervals_of(np.array([seen]), np.array([total.variance + hidden.variance]))
        low, high = float(ends[0][0]) - below - expected, float(ends[1][0]) + above - expected
        return (-high, -low) if flips else (low, high)

    def accepts(ratio: float) -> bool:
        lowest, highest = weights.ends_at(ratio)
        if is_limited and (
            answers.lower_limit(lowest[0]) > slack + unseen + hidden.missing
            or answers.lower_limit(-highest[0]) > slack + unseen + hidden.meeting
        ):
            return False
        low, high = limits_of(*lowest, ratio)
        if weights.variants:
            _, high = limits_of(*highest, ratio)
        return low <= 0.0 <= high

    ends = _accepted(accepts, low, high, centre)
    is_exact = not number.variance + upper.variance and ends[1] - ends[0] <= SAME
    return Interval(estimate, *((estimate, estimate) if is_exact else ends))


def share_interval(
    measured: Measurement,
    released: Marginal,
    parts: Floats,
    factor: Floats,
    *,
    hidden: Hidden = NOTHING_HIDDEN,
    laplace: bool = False,
) -> Interval:
    """Return the released share of records that meet a condition on one attribute, and its interval.

    Parameters
    ----------
    measured : Measurement
    released : Marginal
    parts : array of shape (codes,)
        Share of the records of each code that meet the condition.
    factor : array of shape (codes, codes)
        The noise in the measured counts is F z, with z standard normal.
    hidden, laplace
        See `ratio_interval`.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> counts = Marginal(Domain(("a",), (2,)), np.array([300.0, 100.0]))
    >>> found = share_interval(Measurement(counts, 100.0), counts, np.array([0.0, 1.0]), 10 * np.eye(2))
    >>> found.estimate, round(found.low, 3), round(found.high, 3)
    (0.25, 0.21, 0.288)
    """
    answers = JointCounts(released.counts, [measured.marginal.counts], [factor], released.domain.ordered)
    squares = parts * np.maximum(1 - parts, 0.0)
    weights = Weights(parts, np.ones_like(parts), (squares, np.zeros_like(parts), np.zeros_like(parts)))
    interval = ratio_interval(answers, weights, (0.0, 1.0), hidden=hidden, laplace=laplace)
    estimate = min(float(released.counts @ parts) / max(released.total, TINY_COUNT), 1.0)
    return Interval(estimate, 0.0, 1.0) if interval is None else replace(interval, estimate=estimate)


def _accepted(
    accepts: Callable[[float], bool], low: float, high: float, centre: float
) -> tuple[float, float]:
    """Return the ends of the interval of numbers that are accepted; the limits if none that is tried is."""
    if not accepts(centre):
        tried = [number for number in np.linspace(low, high, STEPS).tolist() if accepts(number)]
        if not tried:
            return low, high
        centre = min(tried, key=lambda number: abs(number - centre))
    ends = []
    for refused in (low, high):
        end = refused if accepts(refused) else centre
        for _ in range(HALVINGS if end != refused else 0):
            middle = (end + refused) / 2
            end, refused = (middle, refused) if accepts(middle) else (end, middle)
        ends.append(end)
    return ends[0], ends[1]
