"""Chains: the rows of one parent in their order, and the attributes of a row that are of other rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privsyn.marginals.counting import code_type, ranks
from privsyn.marginals.domain import Codes, Domain, Integers, Ints
from privsyn.marginals.ipf import fit_all, fit_margins
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.tolerances import TINY_COUNT

NUMBER_OF_ROWS, SIBLINGS, POSITION = "rows of the person", "rows of the parent", "position"
OF_ROWS = (NUMBER_OF_ROWS, SIBLINGS, POSITION)
"""Attributes of a row that are no columns: the class of the number of rows of its person, the class of the
number of rows of its parent, and its position among the rows of its parent."""
NEXT = "next row's ", "second next row's "
"""Prefixes of the names of attributes of the next row, and of the row after the next."""
EXACT = "exact previous "
"""Prefix of the name of an attribute of the previous row that has all codes of the column, not groups."""


def unused(name: str, columns: Collection[str]) -> str:
    """Return the name of an attribute that is no column, changed if a column has it.

    >>> unused("position", ["position", "age"])
    "position'"
    """
    while name in columns:
        name += "'"
    return name


@dataclass(frozen=True, eq=False)
class Context:
    """An attribute that each row has before its own columns are made, and where its values come from.

    Parameters
    ----------
    table : str
        The table above that has the column. Empty if it is no column.
    attribute : str
        The column, or one of `OF_ROWS`.
    groups : integer array
        The code of each merged code of the column, or of each number from 0. Larger numbers have the last.
    """

    table: str
    attribute: str
    groups: Codes

    def codes(self, numbers: Integers) -> Integers:
        """Return the codes of rows.

        >>> Context("", POSITION, np.array([0, 1, 2], np.int32)).codes(np.array([1, 9], np.uint8)).tolist()
        [1, 2]
        """
        return self.groups.astype(code_type(int(self.groups.max()) + 1)).take(numbers, mode="clip")


@dataclass(frozen=True, eq=False)
class Previous:
    """An attribute that each row has from an earlier row of the same parent.

    Parameters
    ----------
    column : str
        The column of the earlier row.
    groups : integer array
        The code of each code of the column. One code more stands for rows without an earlier row.
    lag : int
        1 for the previous row, 2 for the row before that.
    """

    column: str
    groups: Codes
    lag: int = 1

    @property
    def none(self) -> int:
        """The code of rows without an earlier row."""
        return int(self.groups.max()) + 1

    def codes(self, codes: Integers, positions: Ints, rows: Ints) -> Integers:
        """Return the codes of some rows from the column's codes and each row's position in its parent.

        >>> previous = Previous("a", np.array([0, 1, 1], np.int32))
        >>> previous.codes(np.array([2, 0, 1]), np.array([0, 1, 0]), np.arange(3)).tolist()
        [2, 1, 2]
        """
        has = positions[rows] >= self.lag
        return np.where(has, self.groups[codes[np.where(has, rows - self.lag, 0)]], self.none)


@dataclass(frozen=True, eq=False)
class LinkingTable:
    """A table of counts that links rows with others.

    Parameters
    ----------
    table : Marginal
    measured : Measurement
        Draws need its noise.
    error : float
        The share of rows that would have to change to make the table the private one. Pages show it.
    """

    table: Marginal
    measured: Measurement
    error: float


@dataclass(frozen=True, eq=False)
class Links:
    """How the rows of a table depend on other rows.

    Parameters
    ----------
    context : mapping of an attribute to a Context
    previous : mapping of an attribute to a Previous
    linking : tuple of LinkingTable
        Each over own attributes and one of `context` or `previous`.
    """

    context: Mapping[str, Context]
    previous: Mapping[str, Previous]
    linking: tuple[LinkingTable, ...]

    @property
    def tables(self) -> tuple[Marginal, ...]:
        """The linking tables as released."""
        return tuple(linking.table for linking in self.linking)


@dataclass(frozen=True, eq=False)
class Chains:
    """Which rows have the same parent, such as a person, and which attributes follow from others.

    Parameters
    ----------
    parents : integer array of shape (rows,)
        A code of each row's parent. The rows of a parent stand together, in order.
    context : mapping of an attribute to its codes
        Attributes that each row has before it is made, such as the columns of its parent.
    previous : mapping of an attribute to a Previous
    in_order : bool
        Whether the rows of a parent have an order. If not, `context` is the same in all rows of a parent,
        and each attribute of `previous` has a lag of 1.
    """

    parents: Ints
    context: Mapping[str, Integers]
    previous: Mapping[str, Previous]
    in_order: bool = True

    @classmethod
    def of(
        cls,
        parents: Ints,
        links: Links,
        numbers: Mapping[tuple[str, str], Integers],
        *,
        in_order: bool = True,
    ) -> Chains:
        """Return the chains of rows; `numbers` has the numbers of each row that a `Context` groups."""
        context = {name: c.codes(numbers[c.table, c.attribute]) for name, c in links.context.items()}
        return cls(parents, context, links.previous, in_order)

    def with_exact(self, sizes: Mapping[str, int]) -> Chains:
        """Return the chains with the codes of own attributes in the previous row as more attributes.

        Parameters
        ----------
        sizes : mapping of an own attribute to its number of codes
        """
        exact = {
            EXACT + name: Previous(name, np.arange(size, dtype=np.int32)) for name, size in sizes.items()
        }
        return replace(self, previous={**self.previous, **exact})

    def apart(self, groups: Mapping[str, Codes]) -> Chains:
        """Return the chains of rows in finer codes of some own attributes; `groups` has the code of each."""
        previous = {
            name: replace(p, groups=p.groups[groups[p.column]]) if p.column in groups else p
            for name, p in self.previous.items()
        }
        return replace(self, previous=previous)

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
        """The largest lag of an attribute of an earlier row; 1 if there is none."""
        return max((previous.lag for previous in self.previous.values()), default=1)

    def symmetric(self, tables: Sequence[Marginal], one_ways: Mapping[str, Marginal]) -> tuple[Marginal, ...]:
        """Return the tables; if the rows have no order, each table over neighbours averaged with its image.

        In a random order, two neighbours are as likely the other way round. So the table of a column a and
        the previous row's b, and the table of b and the previous row's a, estimate the same counts. Both
        become their mean, with half the noise variance. If only one of them was measured, its image stands
        for the other. If a is b, the table becomes symmetric.

        Parameters
        ----------
        tables : sequence of Marginal
            A table with an attribute of the previous row has only one other attribute, an own column.
        one_ways : mapping of an own column to its counts
        """
        if self.in_order:
            return tuple(tables)
        estimates: dict[frozenset[str], list[Marginal]] = {}
        for table in tables:
            images = [self.image_of(table, one_ways)] if self.previous.keys() & table.attributes else []
            for estimate in (table, *images):
                estimates.setdefault(frozenset(estimate.attributes), []).append(estimate)
        means = []
        for first, *further in estimates.values():
            counts = [first.counts, *(estimate.project(first.attributes).counts for estimate in further)]
            means.append(Marginal(first.domain, np.mean(counts, axis=0)))
        return tuple(means)

    def columns_given(
        self, tables: Sequence[Marginal], one_ways: Mapping[str, Marginal]
    ) -> dict[str, Marginal]:
        """Return the counts of own columns that follow from the context of the rows, where it is unusual.

        Of the tables over a column and one attribute of the context, the one that moves the column most
        decides: the counts are the mean of its shares of codes given the attribute.

        Parameters
        ----------
        tables : sequence of Marginal
        one_ways : mapping of an own column to its counts

        Examples
        --------
        All rows have a context with which the value 1 is frequent:

        >>> chains = Chains(np.arange(8), {"sex": np.ones(8, np.int64)}, {})
        >>> table = Marginal(Domain(("a", "sex"), (2, 2)), np.array([[6.0, 1], [2, 3]]))
        >>> chains.columns_given([table], {"a": table.project(("a",))})["a"].counts.tolist()
        [3.0, 9.0]
        """
        columns, moved = dict(one_ways), dict.fromkeys(one_ways, 0.0)
        for table in tables:
            (name, *further) = sorted(table.attributes, key=lambda its: its in self.context)
            if name not in one_ways or len(further) != 1 or further[0] not in self.context:
                continue
            usual, counts = one_ways[name], table.project((name, *further)).counts
            rows = np.bincount(self.context[further[0]], minlength=counts.shape[1])
            among = counts.sum(axis=0)
            shares = (counts[:, among > 0] / among[among > 0]) @ rows[among > 0]
            mean = usual.total * shares / max(float(shares.sum()), TINY_COUNT)
            if (away := float(np.abs(mean - usual.counts).sum())) > moved[name]:
                columns[name], moved[name] = Marginal(usual.domain, mean), away
        return columns

    def of_these_rows(
        self, tables: Sequence[Marginal], one_ways: Mapping[str, Marginal]
    ) -> tuple[Marginal, ...]:
        """Return the tables, fitted to the counts of own columns and to the attributes that the rows have.

        The context is there before the rows are made, so no rows could fit a table with another one.

        Parameters
        ----------
        tables : sequence of Marginal
        one_ways : mapping of an own column to its counts
        """
        number = len(self.parents)
        scaled = {
            name: Marginal(column.domain, column.counts * (number / max(column.total, TINY_COUNT)))
            for name, column in one_ways.items()
        }
        for name, previous in self.previous.items():
            source = one_ways[previous.column].counts
            counts = np.bincount(previous.groups, source, previous.none).astype(np.float64)
            first = int(np.count_nonzero(self.positions < previous.lag))
            counts = counts * ((number - first) / max(float(counts.sum()), TINY_COUNT))
            scaled[name] = Marginal(Domain((name,), (previous.none + 1,)), np.append(counts, first))
        margins = []
        for table in tables:
            margins_of_table = [scaled[name] for name in table.attributes if name in scaled]
            margins.append((*margins_of_table, *self._context_of(table)))
        return tuple(fit_all([Marginal(t.domain, t.counts + TINY_COUNT) for t in tables], margins))

    def of_context(self, table: Marginal) -> Marginal:
        """Return a table with the shares of own codes given the context, and the context of the rows."""
        return fit_margins(table, self._context_of(table))

    def _context_of(self, table: Marginal) -> tuple[Marginal, ...]:
        """Return the counts of the rows by the attributes of the context that a table has, if it has some."""
        if not (names := tuple(name for name in table.attributes if name in self.context)):
            return ()
        domain = table.domain.project(names)
        cells = np.ravel_multi_index([self.context[name] for name in names], domain.shape)
        counts = np.bincount(cells, minlength=domain.cells).astype(np.float64)
        return (Marginal(domain, counts.reshape(domain.shape)),)

    def image_of(self, table: Marginal, one_ways: Mapping[str, Marginal]) -> Marginal:
        r"""Return the table that a table over neighbours becomes if both rows change places.

        Let :math:`T_{ag}` be the number of rows with code a of one column, after a row with a code of group g
        of another column. The image counts rows with code b of that other column, after a row with a code of
        group h of the first:

        .. math:: I_{bh} = \frac{n_b}{\sum_{b' \in g(b)} n_{b'}} \sum_{a \in h} T_{a g(b)}.

        Here :math:`n_b` is the count of b, because no table over neighbours shows the codes of a group. The
        last column of the image counts rows without a previous row. In a random order these are as many as
        the rows without a next row: :math:`n_b - \sum_h I_{bh}`, at least 0.

        Examples
        --------
        The value 0 is followed by 0 or 1, and 1 by 1. So a row with a 1 comes after a 0 or a 1:

        >>> chains = Chains(np.zeros(0, np.int64), {}, {"before": Previous("a", np.array([0, 1], np.int32))})
        >>> table = Marginal(Domain(("a", "before"), (2, 3)), np.array([[6.0, 0, 4], [2, 1, 2]]))
        >>> image = chains.image_of(table, {"a": Marginal(Domain(("a",), (2,)), np.array([10.0, 5]))})
        >>> image.attributes, image.counts.tolist()
        (('a', 'before'), [[6.0, 2.0, 2.0], [0.0, 1.0, 4.0]])
        """
        (name,) = (name for name in table.attributes if name in self.previous)
        (column,) = (column for column in table.attributes if column != name)
        before = self.previous[name]
        ((image, groups),) = ((n, p.groups) for n, p in self.previous.items() if p.column == column)
        counts, neighbours = one_ways[before.column].counts, table.project((column, name)).counts[:, :-1]
        shares = Grouping((before.groups,)).scale(counts, np.ones(before.none))
        joint = Grouping((groups, np.arange(before.none, dtype=np.int32))).join(neighbours)
        following = joint[:, before.groups] * shares
        rows = counts * (table.total / max(float(counts.sum()), TINY_COUNT))
        first = np.maximum(rows - following.sum(axis=0), 0.0)
        domain = Domain((before.column, image), (len(counts), self.previous[image].none + 1))
        return Marginal(domain, np.vstack([following, first]).T)
