"""Which rows have the same parent, and what each row has from the rows above and before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privsyn.marginals.counting import code_type, ranks
from privsyn.marginals.domain import Codes, Integers, Ints
from privsyn.marginals.marginal import Marginal, Measurement

NUMBER_OF_ROWS, SIBLINGS, POSITION = "rows of the person", "rows of the parent", "position"
OF_ROWS = (NUMBER_OF_ROWS, SIBLINGS, POSITION)
"""Attributes of a row: the class of the number of rows of its person, that of the rows of its parent, and its
place among the latter."""
NEXT = "next row's ", "second next row's "
"""How the names of the attributes of the next row begin, and of the row after that."""
EXACT = "exact previous "
"""How the name of an attribute of the previous row begins that has all codes, not groups of them."""


@dataclass(frozen=True, eq=False)
class Given:
    """Where the values of an attribute come from that each row has before its own columns are made.

    Parameters
    ----------
    table : str
        The table above that has the column. Empty if it is no column.
    attribute : str
        The column; else `NUMBER_OF_ROWS` or `POSITION`.
    groups : integer array
        The code of each merged code of the column, or of each number from 0. Larger numbers have the last.
    """

    table: str
    attribute: str
    groups: Codes

    def of(self, numbers: Integers) -> Integers:
        """Return the codes of rows.

        >>> Given("", POSITION, np.array([0, 1, 2], np.int32)).of(np.array([1, 9], np.uint8)).tolist()
        [1, 2]
        """
        return self.groups.astype(code_type(int(self.groups.max()) + 1)).take(numbers, mode="clip")


@dataclass(frozen=True, eq=False)
class Previous:
    """Where the values of an attribute come from that each row has from one before it, of the same parent.

    Parameters
    ----------
    column : str
        The own attribute.
    groups : integer array
        The code of each code of the column. One code more stands for rows without such a row.
    lag : int
        How many rows before: 1 or 2.
    """

    column: str
    groups: Codes
    lag: int = 1

    @property
    def none(self) -> int:
        """The code of rows without such a row."""
        return int(self.groups.max()) + 1

    def of(self, codes: Integers, places: Ints, found: Ints) -> Integers:
        """Return the codes of the rows `found`, given the column's codes and each row's place in its parent.

        >>> previous = Previous("a", np.array([0, 1, 1], np.int32))
        >>> previous.of(np.array([2, 0, 1]), np.array([0, 1, 0]), np.arange(3)).tolist()
        [2, 1, 2]
        """
        has = places[found] >= self.lag
        return np.where(has, self.groups[codes[np.where(has, found - self.lag, 0)]], self.none)


@dataclass(frozen=True, eq=False)
class Links:
    """How the rows of a table depend on other rows.

    Parameters
    ----------
    given : mapping of an attribute to a Given
    previous : mapping of an attribute to a Previous
    tables : tuple of Marginal
        Each over own attributes and one of `given` or `previous`.
    measured : tuple of Measurement
        Of each table: draws need the noise in it.
    """

    given: Mapping[str, Given]
    previous: Mapping[str, Previous]
    tables: tuple[Marginal, ...]
    measured: tuple[Measurement, ...]


@dataclass(frozen=True, eq=False)
class Chains:
    """Which rows have the same parent, such as a person, and which attributes follow from others.

    Parameters
    ----------
    parents : integer array of shape (rows,)
        A code of each row's parent. The rows of a parent stand together, in order.
    given : mapping of an attribute to its codes
        What is known of each row before it is made, such as the columns of its parent.
    previous : mapping of an attribute to a Previous
    order : str, optional
        An own attribute whose codes never decrease among the rows of a parent.
    """

    parents: Ints
    given: Mapping[str, Integers]
    previous: Mapping[str, Previous]
    order: str | None = None

    @classmethod
    def of(
        cls,
        parents: Ints,
        links: Links,
        known: Mapping[tuple[str, str], Integers],
        order: str | None = None,
    ) -> Chains:
        """Return the chains of rows of the same parent; `known` has what `Given` may be of."""
        given = {name: of.of(known[of.table, of.attribute]) for name, of in links.given.items()}
        return cls(parents, given, links.previous, order)

    def with_exact(self, codes: int) -> Chains:
        """Return the same with the exact code of `order` in the previous row, of which there are `codes`."""
        exact = {EXACT + str(self.order): Previous(str(self.order), np.arange(codes, dtype=np.int32))}
        return replace(self, previous={**self.previous, **exact})

    @cached_property
    def positions(self) -> Ints:
        """How many rows of the same parent stand before each row."""
        return ranks(self.parents)

    @cached_property
    def remaining(self) -> Ints:
        """How many rows of the same parent stand after each row."""
        return ranks(self.parents[::-1])[::-1]

    @property
    def lag(self) -> int:
        """How many rows before a row have an attribute of it."""
        return max((of.lag for of in self.previous.values()), default=1)
