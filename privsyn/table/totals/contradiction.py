"""Find the smallest contradiction of tables of exact counts: what no table of all their attributes has.

Two tables contradict each other if their sums over the same cells differ. Tables that agree two by two may
still have no joint table.

References
----------
Vorob'ev, "Consistent families of measures and their extensions", 1962: tables whose attributes form an
acyclic hypergraph have a joint table if they agree two by two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations
from typing import Any

import numpy as np

from privsyn.marginals.domain import Domain, Floats, Ints
from privsyn.marginals.marginal import Grouping, Measurement
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.table.totals.joint_table import JointTable, first_codes, groups_by_name

Outer = tuple[str, Ints]
"""The attribute in which the codes of an inner one lie, and its code for each inner code; -1 if unknown."""


@dataclass(frozen=True)
class Contradiction:
    """Counts that no table has.

    Parameters
    ----------
    tables : tuple of int
        The indices of the tables that contradict each other, that of the last count at the end. A table alone
        contradicts structural zeros.
    cell : mapping of attributes to their codes
        The cell in question, in the fewest attributes. Empty if it is the total.
    counts : tuple of float
        What the other tables say of the cell, and what the last one says. Empty if `relation` is "fractions".
    relation : str
        ``"equal"``: two sums that should be equal; ``"zero"``: a count in a structural zero; ``"at most"`` or
        ``"at least"``: a bound that follows from the other tables; ``"nearest"``: the count in the nearest
        joint table of the others; ``"fractions"``: only counts that are not whole have all these sums.
    """

    tables: tuple[int, ...]
    cell: Mapping[str, Ints]
    counts: tuple[float, ...]
    relation: str


@dataclass(frozen=True, eq=False)
class _TableAttribute:
    """An attribute whose codes follow from those of a table: one of its own, or an outer one of these.

    Parameters
    ----------
    axis : int
        Of the table.
    codes : integer array of shape (groups of the axis,)
        A code of the attribute in each group; -1 if it is not known, where nothing is counted.
    groups : integer array of shape (codes of the attribute,)
        The codes that the table tells apart.
    derived : bool
        Whether it is an outer attribute.
    """

    axis: int
    codes: Ints
    groups: Ints
    derived: bool = False

    @property
    def tells_all_apart(self) -> bool:
        """Whether each code is a group of its own."""
        return len(np.unique(self.groups)) == len(self.groups)


@dataclass(frozen=True, eq=False)
class ExactTables:
    """Tables of exact counts of one domain, with what is public about their joint table.

    Parameters
    ----------
    tables : tuple of Measurement
        Whole counts, in records, over groups of codes of the domain.
    domain : Domain
    zeros : StructuralZeros
        Of the codes.
    nullable : collection of attributes
        Those whose last code is that of missing cells.
    outer_of : mapping of an inner attribute to Outer
        Hierarchies: in which region each place lies.
    """

    tables: tuple[Measurement, ...]
    domain: Domain
    zeros: StructuralZeros
    nullable: Collection[str] = ()
    outer_of: Mapping[str, Outer] = field(default_factory=dict)

    def contradiction(self) -> Contradiction | None:
        """Return the smallest contradiction; None if there is none, or the joint table is too large to tell.

        Contradictions of two sums, and of structural zeros, come first, those of the fewest attributes before
        others. The tables of any other contradiction are so few that without one of them there is none.

        Examples
        --------
        >>> from privsyn.marginals.marginal import Marginal
        >>> from privsyn.marginals.structural_zeros import NO_ZEROS
        >>> coins = Domain(("a", "b", "c"), (2, 2, 2))
        >>> def two(names, cells):
        ...     return Measurement(Marginal(coins.project(names), np.array(cells)), np.zeros(()))
        >>> alike, unlike = [[5, 0], [0, 5]], [[0, 5], [5, 0]]
        >>> tables = two(("a", "b"), alike), two(("b", "c"), alike), two(("a", "c"), unlike)
        >>> problem = ExactTables(tables, coins, NO_ZEROS).contradiction()
        >>> problem.tables, problem.counts, problem.relation
        ((0, 1, 2), (5.0, 0.0), 'at least')
        """
        simple = [*self._counted_zeros(), *self._unequal_sums()]
        if simple:
            return min(simple, key=lambda contradiction: len(contradiction.cell))
        every = tuple(range(len(self.tables)))
        for integral in () if self._is_acyclic else (False, True):
            if self._joint(every).exists(integral=integral) is False:
                tables = self._irreducible(every, integral=integral)
                return self._without_joint_table(tables, integral=integral)
        return None

    @cached_property
    def _attributes(self) -> tuple[dict[str, _TableAttribute], ...]:
        """For each table: its attributes, and their outer attributes."""
        return tuple(map(self._attributes_of, self.tables))

    def _attributes_of(self, table: Measurement) -> dict[str, _TableAttribute]:
        attributes = {
            name: _TableAttribute(axis, first_codes(group), group)
            for axis, (name, group) in enumerate(groups_by_name(table).items())
        }
        for name in table.attributes:
            inner, inner_counts = attributes[name], table.project((name,)).marginal.counts
            while name in self.outer_of and inner.tells_all_apart:
                name, outer_codes = self.outer_of[name]
                codes = np.where(inner.codes < 0, -1, outer_codes[inner.codes])
                if name in attributes or inner_counts[codes < 0].any():
                    break
                inner = _TableAttribute(inner.axis, codes, np.arange(self.domain.size_of[name]), derived=True)
                attributes[name] = inner
        return attributes

    def _sums(self, index: int, groups: Mapping[str, Ints]) -> Floats:
        """Return the counts of a table in given groups of codes of its attributes, outer ones included."""
        counts, attributes = self.tables[index].marginal.counts, self._attributes[index]
        joins = [np.zeros((1,) * counts.ndim, np.int64)]
        for name, group in groups.items():
            shape = [-1 if axis == attributes[name].axis else 1 for axis in range(counts.ndim)]
            joins.append(group[attributes[name].codes].reshape(shape))
        sums = np.zeros([1, *(int(group.max()) + 1 for group in groups.values())])
        np.add.at(sums, tuple(np.broadcast_arrays(*joins, counts)[:-1]), counts)
        return np.asarray(sums[0])

    def _counted_zeros(self) -> Iterator[Contradiction]:
        """Yield a count of each table in a cell that no row can have."""
        for index, attributes in enumerate(self._attributes):
            for constrained, _ in self.zeros.masks:
                groups = {name: attributes[name].groups for name in attributes if name in constrained.names}
                if not groups:
                    continue
                mask = self.zeros.mask(self.domain.project(tuple(groups)))
                grouping = Grouping(tuple(group.astype(np.int32) for group in groups.values()))
                sums = self._sums(index, groups)
                wrong = np.argwhere((sums > 0) & (grouping.join(mask.astype(np.float64)) == 0))
                if len(wrong):
                    cell = tuple(map(int, wrong[0]))
                    yield Contradiction((index,), _codes(groups, cell), (0.0, float(sums[cell])), "zero")

    def _unequal_sums(self) -> Iterator[Contradiction]:
        """Yield of each two tables the sums over the fewest attributes that differ."""
        for pair in combinations(range(len(self.tables)), 2):
            shared = [name for name in self._attributes[pair[0]] if self._is_comparable(name, pair)]
            for names in chain.from_iterable(combinations(shared, n) for n in range(len(shared) + 1)):
                groups = {
                    name: _common_coarsening(*(self._attributes[index][name].groups for index in pair))
                    for name in names
                }
                first, second = (self._sums(index, groups) for index in pair)
                if (gaps := np.abs(first - second)).any():
                    cell = tuple(map(int, np.unravel_index(int(np.argmax(gaps)), gaps.shape)))
                    counts = float(first[cell]), float(second[cell])
                    yield Contradiction(pair, _codes(groups, cell), counts, "equal")
                    break

    def _is_comparable(self, name: str, pair: tuple[int, ...]) -> bool:
        """Return whether two tables count all rows by an attribute.

        A row whose place is known and whose region is missing counts in the region of its place in one table,
        and as missing in another.
        """
        first, second = (self._attributes[index].get(name) for index in pair)
        if first is None or second is None:
            return False
        if name not in self.nullable or first.derived == second.derived:
            return True
        direct, index = (second, pair[1]) if first.derived else (first, pair[0])
        missing = (np.arange(len(direct.groups)) == len(direct.groups) - 1).astype(np.int64)
        is_alone = int((direct.groups == direct.groups[-1]).sum()) == 1
        return is_alone and not self._sums(index, {name: missing})[1]

    @property
    def _is_acyclic(self) -> bool:
        """Whether tables that agree two by two have a joint table, by Vorob'ev's theorem.

        Groups of codes are attributes of their own, of which finer groups are parts. They must be nested, all
        tables must count the same rows by an attribute, and each structural zero must be one of a single
        table.
        """
        for pair in combinations(range(len(self.tables)), 2):
            shared = self._attributes[pair[0]].keys() & self._attributes[pair[1]].keys()
            if not all(self._is_comparable(name, pair) for name in shared):
                return False
        groupings: dict[str, dict[bytes, Ints]] = {}
        for name, attribute in chain.from_iterable(attributes.items() for attributes in self._attributes):
            groupings.setdefault(name, {})[attribute.groups.tobytes()] = attribute.groups
        for different in groupings.values():
            for first, second in combinations(different.values(), 2):
                if not (_refines(first, second) or _refines(second, first)):
                    return False
        counted = {name for table in self.tables for name in table.attributes}
        for domain, _ in self.zeros.masks:
            if counted.issuperset(domain.names) and not any(
                all(name in attributes and attributes[name].tells_all_apart for name in domain.names)
                for attributes in self._attributes
            ):
                return False
        return _is_acyclic(
            [
                {
                    (name, key)
                    for name, attribute in attributes.items()
                    for key, groups in groupings[name].items()
                    if _refines(attribute.groups, groups)
                }
                for attributes in self._attributes
            ]
        )

    def _joint(self, indices: Sequence[int]) -> JointTable:
        """Return the joint table of some of the tables."""
        return JointTable(tuple(self.tables[index] for index in indices), self.zeros, self.domain)

    def _irreducible(self, indices: tuple[int, ...], *, integral: bool) -> tuple[int, ...]:
        """Return tables without a joint table, each of which is needed for that: a deletion filter."""
        for index in indices:
            rest = tuple(member for member in indices if member != index)
            if rest and self._joint(rest).exists(integral=integral) is False:
                indices = rest
        return indices

    def _without_joint_table(self, indices: tuple[int, ...], *, integral: bool) -> Contradiction:
        """Return the contradiction of tables without a joint table."""
        if integral:
            return Contradiction(indices, {}, (), "fractions")
        joint = self._joint(indices)
        last = joint.tables[-1]
        cell, count, relation = joint.farthest_cell()
        counts = count, float(last.marginal.counts[cell])
        return Contradiction(indices, _codes(groups_by_name(last), cell), counts, relation)


def _codes(groups: Mapping[str, Ints], cell: Iterable[int]) -> dict[str, Ints]:
    """Return the codes of each attribute in a cell of groups."""
    return {
        name: np.flatnonzero(group == index)
        for (name, group), index in zip(groups.items(), cell, strict=True)
    }


def _refines(fine: Ints, coarse: Ints) -> bool:
    """Return whether each fine group lies in one coarse group."""
    return np.unique(np.stack([fine, coarse]), axis=1).shape[1] == len(np.unique(fine))


def _common_coarsening(first: Ints, second: Ints) -> Ints:
    """Return the finest groups of which each is a union of groups of both, numbered along the codes.

    >>> _common_coarsening(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 2, 3, 3])).tolist()
    [0, 0, 1, 1, 1]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = int(first.max()) + int(second.max()) + 2
    ends = first, second + first.max() + 1
    edges = coo_array((np.ones(len(first)), ends), shape=(size, size))
    parts = connected_components(edges, directed=False)[1][first].tolist()
    order = {part: index for index, part in enumerate(dict.fromkeys(parts))}
    return np.array([order[part] for part in parts])


def _is_acyclic(hypergraph: Sequence[Collection[Any]]) -> bool:
    """Return whether a hypergraph is acyclic: whether Graham's reduction leaves no edge.

    It takes away nodes that are in one edge alone, and edges inside others.

    >>> _is_acyclic([{"a", "b"}, {"b", "c"}]), _is_acyclic([{"a", "b"}, {"b", "c"}, {"a", "c"}])
    (True, False)
    """
    edges = [*map(frozenset, hypergraph)]
    while True:
        shared = [
            frozenset(node for node in edge if sum(node in holder for holder in edges) > 1) for edge in edges
        ]
        maximal = [
            edge
            for index, edge in enumerate(shared)
            if not any(
                edge < holder or (edge == holder and rank < index) for rank, holder in enumerate(shared)
            )
        ]
        if maximal == edges:
            return len(edges) <= 1
        edges = maximal
