"""Limits: codes that single rows may not have, because of what is known of other rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privsyn.marginals.domain import Domain, Floats, Integers, Ints, Mask
from privsyn.marginals.marginal import Marginal
from privsyn.synthesis.annealing import NEVER
from privsyn.synthesis.synthesise import draw_by_quota

TINY = 1e-9  # records


@dataclass(frozen=True, eq=False)
class Limit:
    """Which codes of an attribute each row may have, such as those that do not pass its parent's.

    Parameters
    ----------
    attribute : str
    kinds : integer array of shape (rows,)
    possible : boolean array of shape (codes, kinds)
        Which codes the rows of each kind may have.
    """

    attribute: str
    kinds: Ints
    possible: Mask

    def table(self, name: str) -> Marginal:
        """Return a table over the attribute and the kind, which is called `name`. No count is known of it."""
        return Marginal(Domain((self.attribute, name), self.possible.shape), np.zeros(self.possible.shape))

    @property
    def weights(self) -> Floats:
        """The weight of a record in each cell of this table: 0 where it may be."""
        return np.where(self.possible.ravel(), 0.0, NEVER)


def move_into(
    limits: Sequence[Limit],
    rows: Mapping[str, Integers],
    one_ways: Mapping[str, Marginal],
    rng: np.random.Generator,
) -> None:
    """Draw codes again that rows may not have, in place. In an order, rows could else block each other.

    Parameters
    ----------
    limits : sequence of Limit
    rows : mapping of an attribute to its codes
    one_ways : mapping of an attribute to its counts
    rng : numpy.random.Generator
    """
    for name in dict.fromkeys(limit.attribute for limit in limits):
        own = [limit for limit in limits if limit.attribute == name]
        may = np.logical_and.reduce([limit.possible[rows[name], limit.kinds] for limit in own])
        wrong = np.flatnonzero(~may)
        kinds, which = np.unique(np.stack([limit.kinds[wrong] for limit in own]), axis=1, return_inverse=True)
        for place, kind in enumerate(kinds.T):
            possible = [limit.possible[:, of] for limit, of in zip(own, kind, strict=True)]
            weights = (one_ways[name].counts + TINY) * np.logical_and.reduce(possible)
            at = wrong[which.ravel() == place]
            if weights.any():
                rows[name][at] = draw_by_quota(weights, len(at), rng)
