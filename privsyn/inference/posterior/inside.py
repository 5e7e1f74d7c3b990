r"""Draw what lies inside the groups in which a pair was counted: no count tells of it.

The released estimate has the shape of independence or of a Gaussian copula inside the groups. Real tables depart
from that, most of all in their tails. So each draw changes the shape, and keeps the sums of the groups. Let w be
the place of a code in its group and r the rank in the whole column, both with mean 0 and variance 1. The log
density gets a term :math:`\delta_g w(a) r(b)` for each group g of a, the same for b, and
:math:`\gamma_{gh} w(a) w(b)` for each cell: about the change of a correlation inside the group.
"""

from __future__ import annotations

import numpy as np

from privsyn.marginals.coarse import join
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Codes, Floats

DELTA = 0.2
"""Prior standard deviation of the change of a correlation inside a group, with the whole of the other column."""

GAMMA = 0.3
"""The same with the place inside the other column's group."""

LARGEST = np.sqrt(3)  # the rank of a column without ties; a rare value would depart too far
TINY = 1e-9  # records


def draw_inside(
    table: Marginal, groups: tuple[Codes, ...], ranks: tuple[Floats, ...], rng: np.random.Generator
) -> Marginal:
    """Return a pair with another shape inside its groups, and the same sums of groups.

    Parameters
    ----------
    table : Marginal
    groups : tuple of integer arrays
    ranks : tuple of arrays of shape (codes, functions)
        Functions of the codes of each attribute, with variance 1: its rank, or one indicator for each value.
    rng : numpy.random.Generator
    """
    sides = [table.project((name,)) for name in table.attributes]
    places = [_places(side, group) for side, group in zip(sides, groups, strict=True)]
    if not any(place.any() for place in places):
        return table
    (a, b), (g, h) = places, groups
    r, s = (f * np.minimum(1.0, LARGEST / np.maximum(np.abs(f).max(axis=0), TINY)) for f in ranks)
    size = [int(group.max()) + 1 for group in groups]
    one = DELTA * rng.standard_normal((size[0], s.shape[1]))
    other = DELTA * rng.standard_normal((size[1], r.shape[1]))
    both = GAMMA * rng.standard_normal(size)
    log = a[:, np.newaxis] * (one[g] @ s.T) + (other[h] @ r.T).T * b
    log += both[np.ix_(g, h)] * np.outer(a, b)
    changed = table.counts * np.exp(log)
    before, after = join(table.counts, groups), join(changed, groups)
    ratio = np.divide(before, after, out=np.zeros_like(before), where=after > 0)
    return Marginal(table.domain, changed * ratio[np.ix_(*groups)])


def _places(side: Marginal, group: Codes) -> Floats:
    """Return the rank of each ordered code inside its group, with mean 0 and variance 1; 0 where it is alone."""
    ordered = side.domain.ordered[0]
    places = np.zeros(len(side.counts))
    if ordered < 2:
        return places
    counts, of = np.maximum(side.counts[:ordered], TINY), group[:ordered]
    ends = np.cumsum(counts)
    ranks, all_of = ends - counts / 2, np.bincount(of, counts)
    ranks = ranks - (np.bincount(of, counts * ranks) / all_of)[of]
    scale = np.sqrt(np.bincount(of, counts * ranks**2) / all_of)[of]
    inside = np.divide(ranks, scale, out=np.zeros_like(ranks), where=scale > TINY)
    places[:ordered] = np.clip(inside, -LARGEST, LARGEST)
    return places
