"""Rules on the rows of one parent: they hold at the start, and no move of the annealing breaks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from privsyn.marginals.domain import Attributes, Floats, Integers, Ints, Mask
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.synthesis.limits import Limit, RowsWithCode, codes_within
from privsyn.synthesis.synthesise import draw_by_quota

ROUNDS = 20
"""Times that all rows that repeat codes draw again at once. Then each of them takes codes that are free."""


@dataclass(frozen=True, eq=False)
class Step:
    """Which codes of an attribute a row may have after the code of the row before it.

    Parameters
    ----------
    attribute : str
    ranks : integer array of shape (codes,)
        The ranks of the codes of a parent's rows never fall.
    single : boolean array of shape (codes,)
        Codes that at most one row of a parent has. Codes of the same rank may follow each other.

    Examples
    --------
    >>> Step("year", np.arange(3), np.array([True, True, False])).possible.astype(int).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 1]]
    """

    attribute: str
    ranks: Ints
    single: Mask

    @classmethod
    def never_falling(cls, attribute: str, size: int) -> Step:
        """Return the step of an attribute whose codes never decrease."""
        return cls(attribute, np.arange(size), np.zeros(size, np.bool_))

    @property
    def possible(self) -> Mask:
        """Which code of a row may follow which code of the row before it, the earlier row first."""
        before, after = self.ranks[:, np.newaxis], self.ranks
        return (before < after) | ((before == after) & ~(np.eye(len(after), dtype=np.bool_) & self.single))


@dataclass(frozen=True, eq=False)
class DistinctCodes:
    """Attributes in which no two rows of a parent have the same codes.

    Parameters
    ----------
    compared : mapping of an attribute to a boolean array of shape (codes,)
        Rows with other codes, such as that of missing cells, share theirs with any row.
    """

    compared: Mapping[str, Mask]

    @property
    def attributes(self) -> Attributes:
        """The attributes."""
        return tuple(self.compared)

    def number_of(self, rows: Mapping[str, Integers]) -> Ints:
        """Return a number for each row, the same for the same codes; -1 if the row may share its codes."""
        number = np.zeros(len(next(iter(rows.values()))), np.int64)
        shared = np.zeros(len(number), np.bool_)
        for name, compared in self.compared.items():
            number = number * len(compared) + rows[name]
            shared |= ~compared[rows[name]]
        return np.where(shared, -1, number)

    def repeated(self, rows: Mapping[str, Integers], parents: Ints) -> Mask:
        """Return which rows have the codes of a row of the same parent that stands before them."""
        number, repeated = self.number_of(rows), np.zeros(len(parents), np.bool_)
        order = np.lexsort((number, parents))
        repeated[order[1:]] = _same_as_before(number[order], parents[order])
        return repeated


@dataclass(frozen=True, eq=False)
class SiblingRules:
    """All rules on the rows of one parent. No attribute is in two of `steps` and `distinct`.

    Parameters
    ----------
    steps : tuple of Step
    distinct : tuple of DistinctCodes
    few : tuple of RowsWithCode
    """

    steps: tuple[Step, ...] = ()
    distinct: tuple[DistinctCodes, ...] = ()
    few: tuple[RowsWithCode, ...] = ()

    @classmethod
    def of(cls, parts: Sequence[SiblingRules]) -> SiblingRules:
        """Return the rules of all parts."""
        return cls(
            tuple(step for part in parts for step in part.steps),
            tuple(distinct for part in parts for distinct in part.distinct),
            tuple(few for part in parts for few in part.few),
        )

    def start(
        self,
        rows: dict[str, Integers],
        parents: Ints,
        limits: Sequence[Limit],
        weights: Mapping[str, Floats],
        rng: np.random.Generator,
    ) -> None:
        """Change codes in place so that all rules hold, if any codes within the limits keep them.

        Parameters
        ----------
        rows : mapping of an attribute to an array of shape (rows,)
        parents : array of shape (rows,)
            Rows of the same parent stand together.
        limits : sequence of Limit
            Rows that keep them go on to do so.
        weights : mapping of an attribute to an array of shape (codes,)
            How often each code is drawn.
        rng : numpy.random.Generator
        """
        for distinct in self._all_distinct:
            _separate(distinct, rows, parents, limits, weights, rng)
        for step in self.steps:
            codes = rows[step.attribute]
            rows[step.attribute] = codes[np.lexsort((codes, step.ranks[codes], parents))]

    def most_rows(self, limits: Sequence[Limit], parents: Ints) -> Floats:
        """Return for each row how many rows its parent may have, so that codes within the limits keep a rule.

        Parameters
        ----------
        limits : sequence of Limit
            The same for all rows of a parent.
        parents : array of shape (rows,)
        """
        largest = np.full(len(parents), np.inf)
        rows = np.arange(len(parents))
        for distinct in self._all_distinct:
            number, shared = np.ones(len(parents)), np.zeros(len(parents), np.bool_)
            for name, compared in distinct.compared.items():
                number *= _number_within(limits, name, compared, rows)
                shared |= _number_within(limits, name, ~compared, rows) > 0
            largest = np.minimum(largest, np.where(shared, np.inf, number))
        return largest

    @property
    def _all_distinct(self) -> list[DistinctCodes]:
        """What no two rows of a parent share, also by `steps`."""
        singles = [DistinctCodes({step.attribute: step.single}) for step in self.steps if step.single.any()]
        return [*singles, *self.distinct]

    @property
    def distinct_attributes(self) -> frozenset[str]:
        """The attributes of `distinct`."""
        return frozenset(name for distinct in self.distinct for name in distinct.attributes)

    def barred(
        self, attribute: str, rows: Mapping[str, Integers], parents: Ints, moving: Ints
    ) -> tuple[Ints, Ints] | None:
        """Return the codes that rows may not take, as another row of their parent has the same ones.

        Parameters
        ----------
        attribute : str
        rows : mapping of an attribute to an array of shape (rows,)
        parents : array of shape (rows,)
            Rows of the same parent stand together.
        moving : array of shape (moving rows,)
            Indices of rows.

        Returns
        -------
        ends : array of shape (moving rows + 1,)
        codes : flat array, or None for both if no rule is about the attribute
            Those of moving row i stand from ``ends[i]`` to ``ends[i + 1]``.
        """
        distinct = next((rule for rule in self.distinct if attribute in rule.attributes), None)
        if distinct is None:
            return None
        starts = np.flatnonzero(np.diff(parents, prepend=-1))
        sizes = np.diff(starts, append=len(parents))
        parent_of_moving = (np.cumsum(np.diff(parents, prepend=-1) != 0) - 1)[moving]
        lengths = sizes[parent_of_moving]
        begins = np.cumsum(lengths) - lengths
        siblings = np.arange(lengths.sum()) - np.repeat(begins - starts[parent_of_moving], lengths)
        row = np.repeat(moving, lengths)
        same = siblings != row
        for name, compared in distinct.compared.items():
            codes = rows[name][siblings]
            same &= compared[codes]
            if name != attribute:
                same &= codes == rows[name][row]
        ends = np.concatenate([[0], np.cumsum(same)])[np.concatenate([begins, [len(same)]])]
        return ends, rows[attribute][siblings[same]]

    def undone(self, rows: Mapping[str, Integers], parents: Ints, moved: Mask) -> Mask:
        """Return which moved rows have the codes of another row of their parent, as two moved at once."""
        wrong = np.zeros(len(parents), np.bool_)
        for distinct in self.distinct:
            number = distinct.number_of(rows)
            order = np.lexsort((~moved, number, parents))  # a row that did not move is the last of its number
            wrong[order[:-1]] |= _same_as_before(number[order], parents[order])
        return wrong & moved


NO_RULES = SiblingRules()


def _number_within(limits: Sequence[Limit], attribute: str, codes: Mask, rows: Ints) -> Floats:
    """Return how many of some codes each row may have by the limits."""
    possible, kinds = codes_within(limits, attribute, len(codes), rows)
    return (possible & codes[:, np.newaxis]).sum(axis=0)[kinds].astype(np.float64)


def _same_as_before(numbers: Ints, parents: Ints) -> Mask:
    """Return which sorted rows but the first have the parent and the number of the row before; -1 is none."""
    return (np.diff(numbers) == 0) & (np.diff(parents) == 0) & (numbers[1:] >= 0)


def _separate(
    distinct: DistinctCodes,
    rows: dict[str, Integers],
    parents: Ints,
    limits: Sequence[Limit],
    weights: Mapping[str, Floats],
    rng: np.random.Generator,
) -> None:
    """Draw codes again, in place, until no two rows of a parent have the same codes."""
    name = max(distinct.attributes, key=lambda attribute: len(distinct.compared[attribute]))
    size, weight = len(weights[name]), weights[name] + TINY_COUNT
    for _ in range(ROUNDS):
        repeated = np.flatnonzero(distinct.repeated(rows, parents))
        if not len(repeated):
            return
        before = rows[name][repeated].copy()
        drawn = draw_by_quota(weight, len(repeated), rng)
        possible, kinds = codes_within(limits, name, size, repeated)
        rows[name][repeated] = np.where(possible[drawn, kinds], drawn, before)
    _take_free_codes(distinct, rows, parents, limits, weights, rng)


def _take_free_codes(
    distinct: DistinctCodes,
    rows: dict[str, Integers],
    parents: Ints,
    limits: Sequence[Limit],
    weights: Mapping[str, Floats],
    rng: np.random.Generator,
) -> None:
    """Give each row that repeats codes, in place, codes that no row of its parent has, if there are any."""
    sizes = [len(distinct.compared[attribute]) for attribute in distinct.attributes]
    joint = _outer([weights[attribute] + TINY_COUNT for attribute in distinct.attributes])
    compared = _outer([distinct.compared[attribute] for attribute in distinct.attributes])
    number, firsts = distinct.number_of(rows), np.flatnonzero(np.diff(parents, prepend=-1))
    ends = np.append(firsts, len(parents))
    for row in np.flatnonzero(distinct.repeated(rows, parents)).tolist():
        parent = int(np.searchsorted(firsts, row, side="right")) - 1
        of_siblings = number[ends[parent] : ends[parent + 1]]
        chances = joint.copy()
        chances[of_siblings[of_siblings >= 0]] = 0.0
        chances *= _outer(
            [
                codes_within(limits, attribute, len(codes), np.array([row]))[0][:, 0]
                for attribute, codes in distinct.compared.items()
            ]
        )
        if not chances.any():
            continue
        joint_code = int(rng.choice(len(chances), p=chances / chances.sum()))
        number[row] = joint_code if compared[joint_code] else -1
        for attribute, code in zip(distinct.attributes, np.unravel_index(joint_code, sizes), strict=True):
            rows[attribute][row] = code


def _outer(factors: Sequence[Floats | Mask]) -> npt.NDArray[Any]:
    """Return the product of a number, or a truth value, of each attribute for each combination of codes."""
    return np.asarray(reduce(np.multiply.outer, factors)).ravel()
