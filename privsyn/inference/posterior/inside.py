r"""Draw the dependence inside the groups in which a pair was counted. No count shows it.

There the released estimate has the shape of independence or of a copula. Real tables depart from
that, most of all in their tails. So each draw changes the shape, and keeps the sums of the groups. Let w be
the rank of a code inside its group and r its rank in the whole column, both with mean 0 and variance 1. The
log density gets a term :math:`\delta_g w(a) r(b)` for each group g of a, the same for b, and a term
:math:`\gamma_{gh} w(a) w(b)` for each pair of groups. A coefficient is about the change of a correlation
inside the group. All have normal priors with mean 0.
"""

from __future__ import annotations

import numpy as np

from privsyn.inference.ordered.tilt import ranks_of
from privsyn.marginals.grouping import Grouping
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Codes, Floats

WITH_COLUMN = 0.2
"""Prior standard deviation of delta. Of 0.15 to 0.35, this covered correlations in two real tables, and made
intervals of a known Gaussian copula least wide."""

WITH_GROUP = 0.3
"""Prior standard deviation of gamma. With 0.35, and 0.25 for delta, fewer intervals held on four runs of
house sales: the more tables differ, the less can rows follow them."""

FARTHEST = np.sqrt(3)
"""Largest rank: that of a column without ties. The rank of a rare value would be larger."""

TINY = 1e-9  # records


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
    places = [
        places_in(side.counts, group, side.domain.ordered[0])
        for side, group in zip(sides, groups, strict=True)
    ]
    if not any(place.any() for place in places):
        return table
    (a, b), (g, h) = places, groups
    r, s = (
        f * np.minimum(1.0, FARTHEST / np.maximum(np.abs(f).max(axis=0), TINY)) for f in map(ranks_of, sides)
    )
    size = [int(group.max()) + 1 for group in groups]
    one = WITH_COLUMN * rng.standard_normal((size[0], s.shape[1]))
    other = WITH_COLUMN * rng.standard_normal((size[1], r.shape[1]))
    both = WITH_GROUP * rng.standard_normal(size)
    log = a[:, np.newaxis] * (one[g] @ s.T) + (other[h] @ r.T).T * b
    log += both[np.ix_(g, h)] * np.outer(a, b)
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
    places = np.zeros(len(counts))
    if ordered < 2:
        return places
    counts, of = np.maximum(counts[:ordered], TINY), group[:ordered]
    ranks, all_of = np.cumsum(counts) - counts / 2, np.bincount(of, counts)
    ranks = ranks - (np.bincount(of, counts * ranks) / all_of)[of]
    scale = np.sqrt(np.bincount(of, counts * ranks**2) / all_of)[of]
    inside = np.divide(ranks, scale, out=np.zeros_like(ranks), where=scale > TINY)
    places[:ordered] = np.clip(inside, -FARTHEST, FARTHEST)
    return places
