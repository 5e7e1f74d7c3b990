"""The rows of each person together, and the bounds on what one person may add to an answer.

If a person may have many rows, neighbouring tables differ by all rows of one person. No noise covers an
unbounded number of rows. So a bound applies to each person, before anything is counted. There are two:

- *rows*: at most k random rows of a person are counted. All k may lie in one cell, so a table of counts has
  sensitivity k, in L1 and in L2.
- *squares*: a person's rows are counted in random order, as long as the sum over the cells of a table of the
  squared number of this person's rows stays at most C^2. The table then has L2 sensitivity C, although up to
  C^2 rows are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from math import prod
from os import cpu_count
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from privsyn.marginals._kernels import add_within_squares
from privsyn.marginals.counting import Block
from privsyn.marginals.domain import Attributes, Domain, Floats, Integers, Ints
from privsyn.marginals.marginal import Grouping
from privsyn.private.noise import release
from privsyn.private.randomness import Noise
from privsyn.private.spend import ROWS_OF_ALL, ROWS_PER_PERSON, STAYS, VALUES_OF_ONE_ROW

if TYPE_CHECKING:
    from privsyn.private.randomness import Bits
    from privsyn.private.spend import QueryLog

NOBODY = -1
"""The code of a row whose person is unknown."""


@dataclass(frozen=True)
class Bound:
    """What one person may add to a table of counts.

    Parameters
    ----------
    limit : int
        At least 1: the most rows, or the root of the largest sum of squares.
    by : "rows" or "squares"

    Examples
    --------
    >>> Bound(3).rows, Bound(3, "squares").rows
    (3, 9)
    """

    limit: int = 1
    by: Literal["rows", "squares"] = "rows"

    @property
    def rows(self) -> int:
        """The most rows of a person that may be counted."""
        return self.limit if self.by == "rows" else self.limit**2


ONE_ROW = Bound()
"""If each row is a person, every row is kept."""


@dataclass(frozen=True)
class Contribution:
    """What one person may add to the answers: public, or chosen from released answers.

    Parameters
    ----------
    limit : int
        The bound of every answer, at least 1.
    squares : bool
        Whether it bounds the squares of a person's counts in tables of several columns. If not, it bounds the
        rows there too.
    of_tables : float, optional
        With squares, an estimate of how many rows are counted in such a table for each that is counted in a
        column: above 0.
    of_columns : float, optional
        An estimate of the share of all rows that is counted in a column: above 0. Default: all.
    of_person : float
        An estimate of how many rows of a person who has some are counted in a column: at least 1.
    classes : str
        The attribute of the classes of persons. In a table with this attribute the bound is on rows. Such
        tables show how all rows of a person are distributed, and a bound on squares would keep more rows of a
        person whose rows differ.
    """

    limit: int = 1
    squares: bool = False
    of_tables: float | None = None
    of_columns: float | None = field(default=None, compare=False)
    of_person: float = field(default=1.0, compare=False)
    classes: str = field(default="", compare=False)

    @property
    def columns(self) -> Bound:
        """In counts of single columns, in sums over rows, and in distances of tables."""
        return Bound(self.limit)

    @property
    def tables(self) -> Bound:
        """In counts of several columns without the classes."""
        return Bound(self.limit, "squares" if self.squares else "rows")

    def of_table(self, attributes: Attributes) -> Bound:
        """In counts of these columns."""
        return self.tables if self.within_squares(attributes) else self.columns

    def within_squares(self, attributes: Attributes) -> bool:
        """Return whether the squares are bounded in counts of these columns."""
        return self.squares and self.classes not in attributes


ONE_ROW_EACH = Contribution()


def first_rows(blocks: Iterable[Block], bound: int) -> Iterator[Block]:
    """Yield each block with no more than the first `bound` rows of each person.

    These depend on the person's rows and their random order alone. So if the person leaves, at most `bound`
    rows leave, and nothing else changes.

    Parameters
    ----------
    blocks : iterable of Block
        The last column has the number of rows of the same person before each row.
    bound : int

    Examples
    --------
    >>> [block] = first_rows([(np.array([5, 6, 7], np.uint8), np.array([0, 1, 0], np.uint32))], 1)
    >>> block[0].tolist()
    [5, 7]
    """
    for block in blocks:
        mask = block[-1] < bound
        yield block if mask.all() else tuple(column[mask] for column in block)


@dataclass(frozen=True, eq=False)
class WithinSquares:
    """Tables of counts to which each person adds a vector of counts of an L2 norm of at most `limit`.

    Parameters
    ----------
    domain : Domain
        Of the codes that are grouped.
    sets : sequence of attributes, one per table
    grouping : Grouping
        Of the codes in the blocks.
    further : sequence of Grouping, one per table
        Of the codes of `domain`. The bound is that of the cells of the groups: the norm in groups may be
        larger than in codes.
    limit : int

    Notes
    -----
    Privacy. What is counted of a person depends on that person's rows and their random order alone. If the
    person leaves, the table loses this vector of counts, and nothing else changes. The sum of its squares is
    at most ``limit**2`` by construction.
    """

    domain: Domain
    sets: Sequence[Attributes]
    grouping: Grouping
    further: Sequence[Grouping]
    limit: int

    def count(self, blocks: Iterable[Block]) -> list[Ints]:
        """Return the counts of all blocks, each table in the shape of its groups.

        Parameters
        ----------
        blocks : iterable of Block
            Each person's rows stand together in one block, in random order. The last column has the number of
            rows of the same person before each row.
        """
        tables = [self._table(*table) for table in zip(self.sets, self.further, strict=True)]
        counts = [np.zeros(prod(shape), np.int64) for _, _, _, shape in tables]

        def add(block: Block, codes: Integers, index: int) -> None:
            axes, firsts, offsets, _ = tables[index]
            add_within_squares(codes[axes], block[-1], firsts, offsets, self.limit, counts[index])

        with ThreadPoolExecutor(cpu_count()) as pool:  # no two threads write to the counts of one table
            for block in blocks:
                codes = np.array(block[:-1], np.result_type(np.uint16, *block[:-1]))  # one loop is compiled
                list(pool.map(partial(add, block, codes), range(len(tables))))
        return [into.reshape(shape) for into, (*_, shape) in zip(counts, tables, strict=True)]

    def _table(self, attributes: Attributes, further: Grouping) -> tuple[Ints, Ints, Ints, tuple[int, ...]]:
        """Return the axes of a table, what each code adds to the number of the cell, and the shape."""
        axes = np.array(self.domain.axes(attributes), np.int64)
        of_codes = further.of_codes(self.domain.project(attributes).shape)
        shape = tuple(int(groups.max()) + 1 for groups in of_codes)
        groups = [self.grouping.groups[axis] for axis in axes] if self.grouping else [...] * len(axes)
        strides = [prod(shape[position + 1 :]) for position in range(len(shape))]
        steps = [codes[group] * step for codes, group, step in zip(of_codes, groups, strides, strict=True)]
        firsts = np.cumsum([0, *map(len, steps)])[:-1]
        return axes, firsts, np.concatenate(steps).astype(np.int64), shape


def random_order(persons: Ints, bits: Bits) -> Ints:
    """Return the places of the rows that belong to somebody: person by person, each person's in random order.

    Parameters
    ----------
    persons : integer array of shape (n,)
        Rows with the same code belong to one person. Rows of `NOBODY` are left out.
    bits : Bits
        One random word per row, by which a person's rows are sorted.

    Notes
    -----
    Privacy. The words are independent, so the order of a person's rows depends only on the words of these
    rows. Remove a person: for any words of the others, their rows are in the same order as before. So for
    every outcome of the words, the promise holds for what depends on each person's rows in their order. It
    also holds for the mixture, because the words have the same distribution on both sides. The words must be
    unpredictable. In the known stream of a generator, a person who joins or leaves would shift the words of
    all later rows. Hence the operating system's entropy, as for noise.

    The order is random, and not that of the table, because tables are often sorted and their first rows
    differ from later ones.

    Rows of nobody are dropped. Counting them as one more person would be unsafe. A row whose identifier was
    lost may belong to anybody. If that person leaves, then besides their rows the choice among nobody's rows
    changes too. Counting each as a separate person would let one person contribute any number of rows.

    Examples
    --------
    >>> words = np.array([5, 1, 3, 2, 9], dtype=np.uint64)
    >>> random_order(np.array([0, 0, 0, 1, -1]), lambda size: words)
    array([1, 2, 0, 3])
    """
    words, rows = bits(len(persons)), np.flatnonzero(persons != NOBODY)
    words, persons = words[rows], persons[rows]
    wide = int(persons.max(initial=1)).bit_length()
    keys = persons.astype(np.uint64) << (64 - wide) | words >> wide  # sorted in half the time
    order = np.argsort(keys)
    if not np.diff(keys[order]).all():  # where the first bits of two words are equal, the last ones decide
        order = np.lexsort((words, persons))
    return rows[order]


def previous_rows(parents: Ints, keys: Floats | None = None) -> Ints:
    """Return the place of the previous row of the same parent, -1 where there is none.

    It depends on the rows of this parent alone, and these are of one person.

    Parameters
    ----------
    parents : integer array of shape (rows,)
        Rows with the same code belong to one parent. The rows of each are in random order.
    keys : array of the same shape, optional
        By which the rows of a parent are sorted; equal ones stay in random order, and those without a key
        come last. Default: the random order.

    Examples
    --------
    >>> previous_rows(np.array([4, 4, 4, 2]), np.array([3.0, 1.0, 2.0, 9.0])).tolist()
    [2, -1, 1, -1]
    """
    by = (parents,) if keys is None else (np.where(np.isnan(keys), np.inf, keys), parents)
    order = np.lexsort(by)  # stable, so that equal keys keep their order
    same = parents[order][1:] == parents[order][:-1]
    previous = np.full(len(parents), -1)
    previous[order[1:][same]] = order[:-1][same]
    return previous


SINGLE = 12
"""Numbers of rows that have a class of their own."""


def classes(largest: int) -> Ints:
    """Return the first number of rows of each class, up to one that contains `largest`.

    Single numbers come first, and then classes that begin half as high again as the one before.

    >>> classes(60)[[0, 1, -2, -1]].tolist()
    [1, 2, 40, 60]
    """
    begins = list(range(1, SINGLE + 1))
    while begins[-1] * 3 // 2 <= largest:
        begins.append(begins[-1] * 3 // 2)
    return np.array(begins, np.int64)


MOST = 100_000
"""Rows of a person from which on all are in one class."""


class NumbersOfRows(Protocol):
    """The exact numbers of rows of all persons, wherever the rows are. Private: the questions below ask."""

    def in_classes(self, begins: Ints) -> Ints:
        """Return how many persons have a number of rows in each class, given the first number of each."""
        ...

    def within(self, bound: int) -> int:
        """Return the number of all rows, of which each person has at most `bound`."""
        ...


@dataclass(frozen=True, eq=False)
class NumbersInMemory:
    """The numbers of rows of persons whose codes are in memory.

    Parameters
    ----------
    persons : integer array of shape (rows,)
        Rows of `NOBODY` are of no person.
    """

    persons: Ints

    @property
    def _each(self) -> Ints:
        return np.bincount(self.persons[self.persons != NOBODY])

    def in_classes(self, begins: Ints) -> Ints:
        """Return how many persons have a number of rows in each class."""
        return np.histogram(self._each, [*begins.tolist(), np.inf])[0].astype(np.int64)

    def within(self, bound: int) -> int:
        """Return the number of all rows, of which each person has at most `bound`."""
        return int(np.minimum(self._each, bound).sum())


def rows_per_person(numbers: NumbersOfRows, log: QueryLog, noise: Noise, rho: float) -> tuple[Ints, float]:
    """Return the noisy number of persons with a number of rows in each of the `classes`, and its variance.

    All rows of a person decide its class, so one person is in one cell: sensitivity 1, however many rows
    there are.
    """
    exact = numbers.in_classes(classes(MOST))
    scale = log.charge(ROWS_PER_PERSON, exact.size, 1.0, rho, noise.law)
    return release(exact, scale, noise), noise.law.variance(scale)


def rows_of_all(
    numbers: NumbersOfRows, bound: int, log: QueryLog, noise: Noise, rho: float
) -> tuple[int, float]:
    """Return the noisy number of all rows, of which each person has at most `bound`, and its variance.

    A person adds the number of its rows, or `bound` if that is smaller, and changes nobody else's number:
    sensitivity `bound`, which follows from public facts and released answers alone.
    """
    exact = np.array([numbers.within(bound)], np.int64)
    scale = log.charge(ROWS_OF_ALL.format(bound), 1, float(bound), rho, noise.law)
    return int(release(exact, scale, noise)[0]), noise.law.variance(scale)


STEPS = 16
"""Parts of one in which a person's share of rows that keep their value is counted."""


def shares_that_stay(
    column: str, persons: Ints, previous: Ints, codes: Ints, log: QueryLog, noise: Noise, rho: float
) -> tuple[Floats, float]:
    """Return the noisy sum of persons' shares of rows with the value of the row before, and a noisy number.

    The number is that of the persons who have such rows. A share is rounded down to a multiple of 1 over
    `STEPS`. All rows of a person decide it. So a person adds at most 1 to each of the two numbers: in whole
    numbers at most `STEPS`, and together the root of 2 times as much, or twice as much in L1.

    Parameters
    ----------
    column : str
    persons, previous, codes : integer arrays of shape (rows,)
        Whose row it is, the place of the row before it or -1, and the code of the column.
    log : QueryLog
    noise : Noise
    rho : float

    Returns
    -------
    The two numbers, and the variance of each.
    """
    later = np.flatnonzero((persons != NOBODY) & (previous >= 0))
    size = int(persons.max(initial=0)) + 1
    rows = np.bincount(persons[later], minlength=size)
    same = np.bincount(persons[later], codes[later] == codes[previous[later]], minlength=size).astype(
        np.int64
    )
    exact = np.array([(STEPS * same // np.maximum(rows, 1)).sum(), STEPS * np.count_nonzero(rows)], np.int64)
    scale = log.charge(STAYS.format(column), 2, STEPS * noise.law.joint(2), rho, noise.law)
    return release(exact, scale, noise) / STEPS, noise.law.variance(scale) / STEPS**2


def values_of_one_row(
    column: str, codes: Ints, size: int, log: QueryLog, noise: Noise, rho: float
) -> tuple[Ints, float]:
    """Return the noisy number of persons with each code of a column in one random row, and its variance.

    Removing a person removes one row of `codes`, so one count changes by 1: sensitivity 1.

    Parameters
    ----------
    column : str
    codes : integer array of shape (persons,)
        Of the first row of each person in the random order.
    size : int
    log : QueryLog
    noise : Noise
    rho : float
    """
    exact = np.bincount(codes, minlength=size).astype(np.int64)
    scale = log.charge(VALUES_OF_ONE_ROW.format(column), size, 1.0, rho, noise.law)
    return release(exact, scale, noise), noise.law.variance(scale)
