"""Limits: codes that single rows may not have, because of the codes of other rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privsyn.marginals.counting import ranks
from privsyn.marginals.domain import Codes, Domain, Floats, Integers, Ints, Mask, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.recoding import Merging
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.synthesis.annealing import KEPT
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
        """The weight of a record in each cell of `table`: 0 where it may be, or if there is no such cell."""
        return np.where((self.possible | ~self.possible.any(axis=0)).ravel(), 0.0, KEPT)


@dataclass(frozen=True, eq=False)
class RowsWithCode:
    """How many of the rows of each parent have a code: at most a number, or exactly one.

    Parameters
    ----------
    attribute : str
    code : int
    number : int
        At least 1.
    exactly : bool
        Whether each parent that has rows has that number of rows with the code; it is 1 then.
    first : bool
        Whether that row is the first row of its parent.
    """

    attribute: str
    code: int
    number: int = 1
    exactly: bool = False
    first: bool = False

    def merged(self, groups: Codes) -> RowsWithCode:
        """Return the same condition on the merged code; `groups` has that of each code."""
        return replace(self, code=int(groups[self.code]))

    def chances(
        self, tables: Sequence[Marginal], attribute: str, codes: Mapping[str, Integers], rows: int
    ) -> Floats:
        """Return how likely each row has the code, by a table over it and `attribute`; else 1.

        It is 1, too, if rows may all be without the code.
        """
        for table in tables if self.exactly else ():
            if set(table.attributes) == {attribute, self.attribute}:
                counts = table.project((attribute, self.attribute)).counts
                shares = counts[:, self.code] / np.maximum(counts.sum(axis=1), TINY_COUNT)
                return np.asarray(shares[codes[attribute]], np.float64)
        return np.ones(rows)

    def limit(
        self, codes: Integers, parents: Ints, chances: Floats, size: int, rng: np.random.Generator
    ) -> Limit:
        """Return the limit by which only chosen rows of each parent may, or must, have the code.

        Parameters
        ----------
        codes : array of shape (rows,)
            At the start. Rows of a parent that have the code are chosen first.
        parents : array of shape (rows,)
            Rows of the same parent stand together.
        chances : array of shape (rows,)
            How likely each row has the code; see `chances`.
        size : int
            Number of codes.
        rng : numpy.random.Generator
        """
        has = np.arange(size) == self.code
        of_chosen = has if self.exactly else np.full(size, True)
        chosen = self._chosen(codes, parents, chances, rng)
        return Limit(self.attribute, chosen.astype(np.int64), np.stack([~has, of_chosen], axis=1))

    def _chosen(self, codes: Integers, parents: Ints, chances: Floats, rng: np.random.Generator) -> Mask:
        """Return which rows are among the `number` of their parent that are chosen."""
        likely = np.log(chances + TINY_COUNT) + np.where(codes == self.code, 0.0, LESS)
        score = -ranks(parents).astype(np.float64) if self.first else likely + rng.gumbel(size=len(parents))
        order = np.lexsort((-score, parents))
        chosen = np.zeros(len(parents), np.bool_)
        chosen[order] = ranks(parents[order]) < self.number
        return chosen

    def enforced(self, codes: Integers, parents: Ints, weights: Floats, rng: np.random.Generator) -> Integers:
        """Return codes in which exactly one row of each parent has the code.

        Parameters
        ----------
        codes, parents : arrays of shape (rows,)
        weights : array of shape (codes,)
            Weights of the codes from which the surplus rows with the code draw another.
        rng : numpy.random.Generator
        """
        has = codes == self.code
        chosen = self._chosen(codes, parents, np.where(has, 1.0, 0.0), rng)
        surplus = has & ~chosen
        changed, weights_of_rest = np.array(codes), weights + TINY_COUNT
        weights_of_rest[self.code] = 0.0
        changed[surplus] = draw_by_quota(weights_of_rest, int(surplus.sum()), rng)
        changed[chosen] = self.code
        return changed


def exactly_one(
    ones: Sequence[RowsWithCode],
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
        possible, kinds = codes_within(limits, name, len(one_ways[name].counts), wrong)
        for kind, possible_codes in enumerate(possible.T):
            weights = (one_ways[name].counts + TINY_COUNT) * possible_codes
            at = wrong[kinds == kind]
            if weights.any():
                rows[name][at] = draw_by_quota(weights, len(at), rng)


def codes_within(limits: Sequence[Limit], attribute: str, size: int, rows: Ints) -> tuple[Mask, Ints]:
    """Return which codes of an attribute rows may have by all limits on it.

    Parameters
    ----------
    limits : sequence of Limit
        Those on other attributes are left out.
    attribute : str
    size : int
        Number of codes of the attribute.
    rows : integer array
        Indices of rows.

    Returns
    -------
    possible : boolean array of shape (size, kinds)
    kinds : integer array of shape (rows,)

    Examples
    --------
    >>> limit = Limit("a", np.array([0, 1, 1]), np.array([[True, False], [True, True]]))
    >>> possible, kinds = codes_within([limit, limit], "a", 2, np.array([1, 2]))
    >>> possible.T.tolist(), kinds.tolist()
    ([[False, True]], [0, 0])
    """
    on_attribute = [limit for limit in limits if limit.attribute == attribute]
    if not on_attribute:
        return np.ones((size, 1), np.bool_), np.zeros(len(rows), np.int64)
    kinds_of_rows = np.stack([limit.kinds[rows] for limit in on_attribute])
    kinds, kind_of_row = np.unique(kinds_of_rows, axis=1, return_inverse=True)
    possible = [limit.possible[:, kind] for limit, kind in zip(on_attribute, kinds, strict=True)]
    return np.logical_and.reduce(possible), kind_of_row.ravel()
