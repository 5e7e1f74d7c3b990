"""Limits: codes that single rows may not have, because of the codes of other rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privsyn.marginals.counting import ranks
from privsyn.marginals.domain import Domain, Floats, Integers, Ints, Mask, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.recoding import Merging
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.synthesis.annealing import NEVER
from privsyn.synthesis.synthesise import draw_by_quota

LESS = -5.0  # added to the log weight with which a row is chosen, if it did not have the code at the start


@dataclass(frozen=True, eq=False)
class Limit:
    """Which codes of an attribute each row may have, such as dates that are not before its parent's.

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
        """Return an empty table over the attribute and the kind, which is called `name`."""
        return Marginal(Domain((self.attribute, name), self.possible.shape), np.zeros(self.possible.shape))

    @property
    def weights(self) -> Floats:
        """The weight of a record in each cell of `table`: 0 where it may be."""
        return np.where(self.possible.ravel(), 0.0, NEVER)


@dataclass(frozen=True, eq=False)
class UniqueCode:
    """A code of an attribute that exactly one of the rows of each parent has.

    Parameters
    ----------
    attribute : str
    code : int
    first : bool
        Whether that row is the first row of its parent.
    """

    attribute: str
    code: int
    first: bool

    def merged(self, merging: Merging) -> UniqueCode:
        """Return the same condition on the merged code."""
        (axis,) = merging.original.axes((self.attribute,))
        return replace(self, code=int(merging.groups[axis][self.code]))

    def chances(
        self, tables: Sequence[Marginal], attribute: str, codes: Mapping[str, Integers], rows: int
    ) -> Floats:
        """Return how likely each row has the code, by a table over it and `attribute`; else 1."""
        for table in tables:
            if set(table.attributes) == {attribute, self.attribute}:
                counts = table.project((attribute, self.attribute)).counts
                shares = counts[:, self.code] / np.maximum(counts.sum(axis=1), TINY_COUNT)
                return np.asarray(shares[codes[attribute]], np.float64)
        return np.ones(rows)

    def limit(
        self, codes: Integers, parents: Ints, chances: Floats, size: int, rng: np.random.Generator
    ) -> Limit:
        """Return the limit by which one row of each parent must have the code and no other row may have it.

        Parameters
        ----------
        codes : array of shape (rows,)
            At the start. If a row of a parent has the code, one of these rows is chosen.
        parents : array of shape (rows,)
            Rows of the same parent stand together.
        chances : array of shape (rows,)
            How likely each row has the code; see `chances`.
        size : int
            Number of codes.
        rng : numpy.random.Generator
        """
        kinds = np.zeros(len(parents), np.int64)
        kinds[self._chosen(codes, parents, chances, rng)] = 1
        has = np.arange(size) == self.code
        return Limit(self.attribute, kinds, np.stack([~has, has], axis=1))

    def _chosen(self, codes: Integers, parents: Ints, chances: Floats, rng: np.random.Generator) -> Integers:
        """Return the index of one row of each parent."""
        likely = np.log(chances + TINY_COUNT) + np.where(codes == self.code, 0.0, LESS)
        score = -ranks(parents).astype(np.float64) if self.first else likely + rng.gumbel(size=len(parents))
        order = np.lexsort((score, parents))
        return order[np.diff(parents[order], append=-1) != 0]

    def enforced(self, codes: Integers, parents: Ints, weights: Floats, rng: np.random.Generator) -> Integers:
        """Return codes in which exactly one row of each parent has the code.

        Parameters
        ----------
        codes, parents : arrays of shape (rows,)
        weights : array of shape (codes,)
            Weights of the codes from which the surplus rows with the code draw another.
        rng : numpy.random.Generator
        """
        chosen = self._chosen(codes, parents, np.where(codes == self.code, 1.0, 0.0), rng)
        surplus = codes == self.code
        surplus[chosen] = False
        changed, weights_of_rest = np.array(codes), weights + TINY_COUNT
        weights_of_rest[self.code] = 0.0
        changed[surplus] = draw_by_quota(weights_of_rest, int(surplus.sum()), rng)
        changed[chosen] = self.code
        return changed


def exactly_one(
    ones: Sequence[UniqueCode],
    records: Records,
    one_ways: Sequence[Marginal],
    merging: Merging,
    parents: Ints,
    rng: np.random.Generator,
) -> Records:
    """Return records in original codes, in which one row of each parent has the code of each of `ones`."""
    if not ones:
        return records
    codes = np.array(records.codes)
    for unique in ones:
        (axis,) = records.domain.axes((unique.attribute,))
        weights = merging.spread(one_ways[axis])
        codes[:, axis] = unique.enforced(codes[:, axis], parents, weights, rng)
    return Records(records.domain, codes)


def move_into(
    limits: Sequence[Limit],
    rows: Mapping[str, Integers],
    one_ways: Mapping[str, Marginal],
    rng: np.random.Generator,
) -> None:
    """Draw codes again that limits exclude, in place: rows in an order could otherwise block each other.

    Parameters
    ----------
    limits : sequence of Limit
    rows : mapping of an attribute to its codes
    one_ways : mapping of an attribute to its counts
    rng : numpy.random.Generator
    """
    for name in dict.fromkeys(limit.attribute for limit in limits):
        excluding = [limit for limit in limits if limit.attribute == name]
        allowed = np.logical_and.reduce([limit.possible[rows[name], limit.kinds] for limit in excluding])
        wrong = np.flatnonzero(~allowed)
        kinds, which = np.unique(
            np.stack([limit.kinds[wrong] for limit in excluding]), axis=1, return_inverse=True
        )
        for index, kind in enumerate(kinds.T):
            possible = [limit.possible[:, column] for limit, column in zip(excluding, kind, strict=True)]
            weights = (one_ways[name].counts + TINY_COUNT) * np.logical_and.reduce(possible)
            at = wrong[which.ravel() == index]
            if weights.any():
                rows[name][at] = draw_by_quota(weights, len(at), rng)
