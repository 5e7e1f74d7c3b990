r"""Draw the cells of one table from their posterior, from coarse sums to single cells.

A measured sum S of cells with noise variance :math:`\sigma^2` and expected count c is drawn with mean
:math:`c + g (S - c)` and variance :math:`g \sigma^2`, where :math:`g = c^2 / (c^2 + \sigma^2)`. That is the
posterior under a weak prior: a sum departs from the released estimate by about as much as the estimate. A
sum far above its noise is drawn about its measurement, which is unbiased for every private table. A sum
below its noise stays near the estimate, and above 0. The narrower prior of the estimates has less error on
average, but its draws would lie aside of the truth wherever one table departs more than others.

Sums over many cells are known far better than the cells, and decide means and correlations. So sums over 2,
4, ... groups of the ordered codes come first, and finer sums follow within them.

`draw_inside` draws the dependence inside the groups in which a pair was counted. No count shows it. There the
released estimate has the shape of independence or of a copula. Real tables depart from that, most of all in
their tails. So each draw changes the shape, and keeps the sums of the groups. Let w be the rank of a code
inside its group and r its rank in the whole column, both with mean 0 and variance 1. The log density gets a
term :math:`\delta_g w(a) r(b)` for each group g of a, the same for b, and a term :math:`\gamma_{gh} w(a)
w(b)` for each pair of groups. A coefficient is about the change of a correlation inside the group. All have
normal priors with mean 0.
"""

from __future__ import annotations

import numpy as np

from privsyn.inference.ordered.tilt import Trend, ranks_of
from privsyn.marginals.domain import Codes, Floats
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import LEVELS, NO_GROUPS, Grouping, Marginal, Measurement, groups_at
from privsyn.marginals.tolerances import TINY_COUNT

CENTRINGS = 10  # most iterations of removing what contradicts the margins
ITERATIONS = 5  # of proportional fitting after a level
RAKINGS = 5  # iterations over all levels, so that coarse sums hold after finer ones were drawn
LEAST_SUM = 1e-3  # of its expected count: least drawn count of a sum
SAME = 1e-6  # of the total
TINY_SUM = 1e-100  # records: a smaller sum stays as it is, because a ratio to it may overflow
FLOOR = 1e-9  # records: least drawn count of a cell
CERTAIN = 1e6  # shape of a gamma variable above which it is constant


def draw_cells(
    released: Marginal,
    answers: Measurement,
    margins: tuple[Marginal, ...],
    rng: np.random.Generator,
) -> Marginal:
    """Return a table drawn from its posterior, not negative and with the given margins.

    Parameters
    ----------
    released : Marginal
        A cell of 0 stays 0. Within groups of codes that were counted together, counts are shared out as here,
        but for the change of `draw_inside` in a pair.
    answers : Measurement
        Measured counts plus a draw of their noise.
    margins : tuple of Marginal
        They agree with each other. If there are none, the total is that of `released`.
    rng : numpy.random.Generator
    """
    grouping = Grouping(answers.grouping.of_codes(released.domain.shape))
    shaped = draw_inside(released, grouping, rng) if len(released.domain) == 2 else released
    table = fit_margins(shaped, margins)
    coarse = table.join(grouping)
    variance = answers.variance * (coarse.counts > 0)
    deviation = answers.marginal.counts - coarse.counts
    noisy = coarse.counts + _centred(coarse, deviation, variance, margins)
    trend = Trend.draw(table, grouping, noisy, variance, rng)
    if trend is not None:
        table = trend.impose(table, margins)
    targets: list[tuple[Grouping, Floats]] = []
    for level in _levels(coarse):
        joint = grouping.then(level)
        expected, noise = joint.join(table.counts), level.join(variance)
        square = expected**2
        share = np.divide(square, square + noise, out=np.zeros_like(square), where=square > 0)
        mean = np.maximum(expected + share * (level.join(noisy) - expected), LEAST_SUM * expected)
        scatter = share * (1 - share) * noise
        # A gamma variable is positive and has this mean and variance. A normal one clipped at 0 is larger.
        shape = np.divide(mean**2, scatter, out=np.full_like(mean, np.inf), where=scatter > 0)
        certain, least_shape = ~(shape < CERTAIN), np.maximum(shape, LEAST_SUM)
        factor = rng.gamma(np.where(certain, 1.0, least_shape)) / least_shape
        drawn = np.where(certain, mean, mean * factor)
        targets.append((joint, drawn))
        scaled = Marginal(table.domain, joint.scale(table.counts, drawn, TINY_SUM))
        table = fit_margins(scaled, margins, iterations=ITERATIONS)
    for _ in range(RAKINGS if len(targets) > 1 else 0):
        for joint, drawn in reversed(targets):
            table = Marginal(table.domain, joint.scale(table.counts, drawn, TINY_SUM))
    if trend is not None:
        table = trend.impose(fit_margins(table, margins, iterations=ITERATIONS), margins)
    floor = np.where(released.counts > 0, FLOOR, 0.0)
    table = fit_margins(Marginal(table.domain, np.maximum(table.counts, floor)), margins)
    return table if margins else Marginal(table.domain, table.counts * (released.total / table.total))


def _levels(table: Marginal) -> list[Grouping]:
    """Return the groups of the codes of every attribute, from the coarsest level to single codes."""
    sides = [table.project((name,)) for name in table.attributes]
    groupings = []
    for level in LEVELS:
        if any(side.domain.ordered[0] > level for side in sides):
            groupings.append(Grouping(tuple(groups_at(side, level) for side in sides)))
    return [*groupings, NO_GROUPS]


def _centred(
    expected: Marginal, deviation: Floats, variance: Floats, margins: tuple[Marginal, ...]
) -> Floats:
    """Return the deviation less what contradicts the margins, which are known better.

    Each cell is corrected in proportion to its variance.
    """
    names = expected.attributes
    inside = [margin.attributes for margin in margins] or [()]
    summed = [tuple(axis for axis, name in enumerate(names) if name not in side) for side in inside]
    for _ in range(CENTRINGS):
        missed = 0.0
        for axes in summed:
            excess = deviation.sum(axis=axes, keepdims=True)
            room = variance.sum(axis=axes, keepdims=True)
            missed = max(missed, float(np.abs(excess).max()))
            spread = np.divide(excess, room, out=np.zeros_like(room), where=room > 0)
            deviation = deviation - variance * spread
        if missed <= SAME * expected.total:
            break
    return deviation


WITH_COLUMN = 0.2
"""Prior standard deviation of delta. Of 0.15 to 0.35, this covered correlations in two real tables, and made
intervals of a known Gaussian copula least wide."""

WITH_GROUP = 0.3
"""Prior standard deviation of gamma. With 0.35, and 0.25 for delta, fewer intervals held on four runs of
house sales: the more tables differ, the less can rows follow them."""

FARTHEST = np.sqrt(3)
"""Largest rank: that of a column without ties. The rank of a rare value would be larger."""


def draw_inside(table: Marginal, grouping: Grouping, rng: np.random.Generator) -> Marginal:
    """Return a pair with another shape inside its groups, and the same sums of groups.

    Parameters
    ----------
    table : Marginal
        An attribute without order has one term for each of its values in place of the rank.
    grouping : Grouping
        As measured, with a group for each code.
    rng : numpy.random.Generator
    """
    sides, groups = [table.project((name,)) for name in table.attributes], grouping.groups
    inner_ranks = [
        places_in(side.counts, group, side.domain.ordered[0])
        for side, group in zip(sides, groups, strict=True)
    ]
    if not any(inner_rank.any() for inner_rank in inner_ranks):
        return table
    (a, b), (g, h) = inner_ranks, groups
    r, s = (
        f * np.minimum(1.0, FARTHEST / np.maximum(np.abs(f).max(axis=0), TINY_COUNT))
        for f in map(ranks_of, sides)
    )
    size = [int(group.max()) + 1 for group in groups]
    delta_a = WITH_COLUMN * rng.standard_normal((size[0], s.shape[1]))
    delta_b = WITH_COLUMN * rng.standard_normal((size[1], r.shape[1]))
    gamma = WITH_GROUP * rng.standard_normal(size)
    log = a[:, np.newaxis] * (delta_a[g] @ s.T) + (delta_b[h] @ r.T).T * b
    log += gamma[np.ix_(g, h)] * np.outer(a, b)
    changed = grouping.scale(table.counts * np.exp(log), grouping.join(table.counts))
    return Marginal(table.domain, changed)


def places_in(counts: Floats, group: Codes, ordered: int) -> Floats:
    """Return the rank of each ordered code inside its group, with mean 0 and variance 1; 0 for any other.

    Parameters
    ----------
    counts : array of shape (codes,)
        Records, or shares of the group.
    group : integer array
    ordered : int
        Number of codes with an order; they come first.
    """
    inner_ranks = np.zeros(len(counts))
    if ordered < 2:
        return inner_ranks
    counts, groups = np.maximum(counts[:ordered], TINY_COUNT), group[:ordered]
    ranks, all_of = np.cumsum(counts) - counts / 2, np.bincount(groups, counts)
    ranks = ranks - (np.bincount(groups, counts * ranks) / all_of)[groups]
    scale = np.sqrt(np.bincount(groups, counts * ranks**2) / all_of)[groups]
    inside = np.divide(ranks, scale, out=np.zeros_like(ranks), where=scale > TINY_COUNT)
    inner_ranks[:ordered] = np.clip(inside, -FARTHEST, FARTHEST)
    return inner_ranks
