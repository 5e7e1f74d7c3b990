"""Which rows have the same parent, and what each row has from the rows above and before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privsyn.marginals.counting import code_type, ranks
from privsyn.marginals.domain import Codes, Domain, Integers, Ints
from privsyn.marginals.marginal import Grouping, Marginal, Measurement

TINY = 1e-9  # records
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

    def of(self, codes: Integers, positions: Ints, rows: Ints) -> Integers:
        """Return the codes of some rows from the column's codes and each row's position in its parent.

        >>> previous = Previous("a", np.array([0, 1, 1], np.int32))
        >>> previous.of(np.array([2, 0, 1]), np.array([0, 1, 0]), np.arange(3)).tolist()
        [2, 1, 2]
        """
        has = positions[rows] >= self.lag
        return np.where(has, self.groups[codes[np.where(has, rows - self.lag, 0)]], self.none)


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
    errors : tuple of float
        Of each table: the share of rows that would have to change to make it the private one. Pages show it.
    """

    given: Mapping[str, Given]
    previous: Mapping[str, Previous]
    tables: tuple[Marginal, ...]
    measured: tuple[Measurement, ...]
    errors: tuple[float, ...]


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
    in_order : bool
        Whether the order of the rows of a parent means anything. If not, `given` is the same in all of them,
        and attributes are of the previous row alone.
    """

    parents: Ints
    given: Mapping[str, Integers]
    previous: Mapping[str, Previous]
    order: str | None = None
    in_order: bool = True

    @classmethod
    def of(
        cls,
        parents: Ints,
        links: Links,
        known: Mapping[tuple[str, str], Integers],
        order: str | None = None,
        *,
        in_order: bool = True,
    ) -> Chains:
        """Return the chains of rows of the same parent; `known` has what `Given` may be of."""
        given = {name: of.of(known[of.table, of.attribute]) for name, of in links.given.items()}
        return cls(parents, given, links.previous, order, in_order)

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
        return max((previous.lag for previous in self.previous.values()), default=1)

    def symmetric(self, tables: Sequence[Marginal], one_ways: Mapping[str, Marginal]) -> tuple[Marginal, ...]:
        """Return the tables with those over neighbours and their mirror images, if the rows are in no order.

        In a random order, two neighbours are as likely the other way round. So the table of a column a and
        the previous row's b, and that of b and the previous row's a, are two estimates of the same counts.
        Both become their mean, with half the noise variance. If only one was measured, it is the estimate of
        the other. Where a is b, the table becomes symmetric.

        Parameters
        ----------
        tables : sequence of Marginal
            Those with an attribute of the previous row have one other attribute, an own one.
        one_ways : mapping of an own attribute to its counts
        """
        if self.in_order:
            return tuple(tables)
        found: dict[frozenset[str], list[Marginal]] = {}
        for table in tables:
            images = [self.image_of(table, one_ways)] if self.previous.keys() & table.attributes else []
            for each in (table, *images):
                found.setdefault(frozenset(each.attributes), []).append(each)
        means = []
        for first, *others in found.values():
            counts = [first.counts, *(other.project(first.attributes).counts for other in others)]
            means.append(Marginal(first.domain, np.mean(counts, axis=0)))
        return tuple(means)

    def image_of(self, table: Marginal, one_ways: Mapping[str, Marginal]) -> Marginal:
        """Return what a table over neighbours says of them if they change places.

        The own attribute is that of the previous row then, and its codes are joined to groups. The other one
        is now in codes: those of a group have shares as in all rows. As many rows of each code have no
        previous row as have no next one: all rows of the code but those that are the previous row of another.

        Examples
        --------
        The value 0 is followed by 0 or 1, and 1 by 1. So whoever has 1 comes after 0 or 1:

        >>> chains = Chains(np.zeros(0, np.int64), {}, {"before": Previous("a", np.array([0, 1], np.int32))})
        >>> table = Marginal(Domain(("a", "before"), (2, 3)), np.array([[6.0, 0, 4], [2, 1, 2]]))
        >>> image = chains.image_of(table, {"a": Marginal(Domain(("a",), (2,)), np.array([10.0, 5]))})
        >>> image.attributes, image.counts.tolist()
        (('a', 'before'), [[6.0, 2.0, 2.0], [0.0, 1.0, 4.0]])
        """
        (name,) = (each for each in table.attributes if each in self.previous)
        (own,) = (each for each in table.attributes if each != name)
        before = self.previous[name]
        ((image, of_own),) = ((each, of) for each, of in self.previous.items() if of.column == own)
        column, counts = one_ways[before.column].counts, table.project((own, name)).counts[:, :-1]
        shares = Grouping((before.groups,)).scale(column, np.ones(before.none))
        joint = Grouping((of_own.groups, np.arange(before.none, dtype=np.int32))).join(counts)
        following = joint[:, before.groups] * shares
        everyone = column * (table.total / max(float(column.sum()), TINY))
        first = np.maximum(everyone - following.sum(axis=0), 0.0)
        domain = Domain((before.column, image), (len(column), of_own.none + 1))
        return Marginal(domain, np.vstack([following, first]).T)
