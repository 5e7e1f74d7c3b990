"""The cliques of a junction tree of known totals: small tables, one after the other, that fix all totals.

Two attributes are neighbours if one table of totals has both, or if structural zeros rule out some of their
pairs. The cliques of this graph, made chordal, form a tree, in which each clique shares attributes with the
one before it (Lauritzen and Spiegelhalter, 1988). If totals fix the counts of what two cliques share, records
get the counts of one clique after the other, and what was settled before stays. Cliques that share what no
table of totals fixes become one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from privsyn.marginals.domain import Attributes, Codes, Domain, Floats, Ints, Mask
from privsyn.marginals.known_totals import KnownTotals
from privsyn.marginals.marginal import Grouping, Marginal, Measurement, common_refinement
from privsyn.marginals.structural_zeros import StructuralZeros

MOST_CELLS = 2**17  # cells of a clique whose counts no table of totals has: rounding them takes seconds
NO_CLIQUE = -1


@dataclass(frozen=True, eq=False)
class KnownSums:
    """Exact counts of groups of the cells of a clique.

    Parameters
    ----------
    group_of_cell : integer array of shape (cells,)
    counts : float array of shape (groups,)
        In records.
    complete : bool
        Whether they are all counts of one table of totals, not sums of these.
    """

    group_of_cell: Ints
    counts: Floats
    complete: bool

    @property
    def of_cells(self) -> bool:
        """Whether each cell is a group, so that the counts of all cells are known."""
        return len(np.unique(self.group_of_cell)) == len(self.group_of_cell)


@dataclass(frozen=True, eq=False)
class Clique:
    """Attributes of which known totals fix sums, or all counts.

    Parameters
    ----------
    domain : Domain
        Of the cells: groups of codes that no table of totals keeps apart.
    parent : int
        The place of the clique before it; `NO_CLIQUE` for the first.
    settled : tuple of str
        The attributes that it shares with its parent.
    sums : tuple of KnownSums
        What all tables of totals imply for these attributes.
    possible : boolean array of shape (cells,)
        Whether a cell can hold a record.
    """

    domain: Domain
    parent: int
    settled: Attributes
    sums: tuple[KnownSums, ...]
    possible: Mask

    @cached_property
    def counts(self) -> Floats | None:
        """The count of each cell, if one table of totals has it."""
        return next((sums.counts[sums.group_of_cell] for sums in self.sums if sums.of_cells), None)

    @property
    def free(self) -> Attributes:
        """The attributes that are not settled."""
        return tuple(name for name in self.domain.names if name not in self.settled)

    @cached_property
    def codes(self) -> Ints:
        """The code of each cell in each attribute, of shape (attributes, cells)."""
        return _codes_of_cells(self.domain)

    def group_of_cell(self, attributes: Iterable[str]) -> Ints:
        """Return a number for each cell, equal for cells that have the same codes of some attributes."""
        inside = set(attributes)
        number = np.zeros(self.domain.cells, np.int64)
        for name, size, codes in zip(self.domain.names, self.domain.sizes, self.codes, strict=True):
            if name in inside:
                number = number * size + codes
        return number


def cells_of_codes(domain: Domain, totals: KnownTotals, zeros: StructuralZeros) -> dict[str, Codes]:
    """Return the cell of each code of the attributes of totals: codes of a cell are alike in all of them.

    Parameters
    ----------
    domain : Domain
        Of the codes by which the totals have their groups.
    totals : KnownTotals
    zeros : StructuralZeros
        Codes of attributes that they connect are kept apart.
    """
    inside = set(totals.attributes)
    groups: dict[str, list[Codes]] = {name: [] for name in domain.names if name in inside}
    for table in totals.tables:
        for name, group in zip(table.attributes, _groups(table, domain), strict=True):
            groups[name].append(group)
    for masked, _ in zeros.masks:
        connected = [name for name in masked.names if name in inside]
        for name in connected if len(connected) > 1 else ():
            groups[name].append(np.arange(domain.size_of[name], dtype=np.int32))
    return {name: common_refinement(listed).astype(np.int32) for name, listed in groups.items()}


def cliques_of(
    domain: Domain, cell_of: Mapping[str, Codes], totals: KnownTotals, zeros: StructuralZeros
) -> tuple[Clique, ...]:
    """Return the cliques, each after its parent.

    Parameters
    ----------
    domain : Domain
        Of the codes by which the totals have their groups.
    cell_of : mapping of an attribute to the cell of each code
    totals : KnownTotals
    zeros : StructuralZeros

    Raises
    ------
    ValueError
        If a clique whose counts no table of totals has is one of more than `MOST_CELLS` cells.
    """
    names = tuple(cell_of)
    cells = Grouping(tuple(cell_of.values())).domain(domain.project(names))
    connected = [table.attributes for table in totals.tables]
    connected += [tuple(name for name in masked.names if name in cell_of) for masked, _ in zeros.masks]
    edges = [tuple(map(names.index, attributes)) for attributes in connected]
    fixed = [
        {names.index(n) for n in table.attributes if cells.size_of[n] == table.marginal.domain.size_of[n]}
        for table in totals.tables
    ]
    cliques = []
    for inside, parent, shared in _tree(len(names), edges, fixed):
        clique_domain = cells.project(tuple(names[i] for i in inside))
        if clique_domain.cells > MOST_CELLS and set(inside) not in fixed:
            raise ValueError(f"{clique_domain.cells} cells of {clique_domain.names}")
        sums = tuple(_known_sums(clique_domain, cell_of, totals, domain))
        settled, possible = tuple(names[i] for i in shared), _possible(clique_domain, zeros, cell_of)
        cliques.append(Clique(clique_domain, parent, settled, sums, possible))
    return tuple(cliques)


def _codes_of_cells(cells: Domain) -> Ints:
    """Return the code of each cell of a domain in each attribute, of shape (attributes, cells)."""
    return np.stack(np.unravel_index(np.arange(cells.cells), cells.shape)).astype(np.int64)


def _groups(table: Measurement, domain: Domain) -> tuple[Codes, ...]:
    """Return the group of each code of a domain along each axis of a table."""
    return table.grouping.of_codes(domain.project(table.attributes).shape)


def _known_sums(
    cells: Domain, cell_of: Mapping[str, Codes], totals: KnownTotals, domain: Domain
) -> Iterator[KnownSums]:
    """Yield the sums over the attributes that a clique with these cells shares with each table of totals."""
    codes = dict(zip(cells.names, _codes_of_cells(cells), strict=True))
    for table in totals.tables:
        shared = tuple(name for name in table.attributes if name in cells.names)
        if not shared:
            continue
        projected, number = table.project(shared), np.zeros(cells.cells, np.int64)
        for name, group, size in zip(
            shared, _groups(projected, domain), projected.marginal.counts.shape, strict=True
        ):
            group_of = np.empty(cells.size_of[name], np.int64)
            group_of[cell_of[name]] = group
            number = number * size + group_of[codes[name]]
        yield KnownSums(number, projected.marginal.counts.ravel(), len(shared) == len(table.attributes))


def _possible(cells: Domain, zeros: StructuralZeros, cell_of: Mapping[str, Codes]) -> Mask:
    """Return which cells can hold a record, by zeros that connect attributes of a clique."""
    codes = dict(zip(cells.names, _codes_of_cells(cells), strict=True))
    possible = np.ones(cells.cells, np.bool_)
    for masked, mask in zeros.masks:
        shared = tuple(name for name in masked.names if name in cells.names)
        if len(shared) > 1:  # each of their codes is a cell
            counts = Marginal(masked, mask.astype(np.float64)).project(shared).counts
            possible &= counts[tuple(np.argsort(cell_of[name])[codes[name]] for name in shared)] > 0
    return possible


def _tree(
    nodes: int, edges: Sequence[tuple[int, ...]], fixed: Sequence[set[int]]
) -> Iterator[tuple[tuple[int, ...], int, tuple[int, ...]]]:
    """Yield the nodes of each clique, the index of its parent, and the nodes that both share.

    Parameters
    ----------
    nodes : int
    edges : sequence of tuple of int
        Nodes that are neighbours of each other.
    fixed : sequence of sets of nodes
        Cliques that share no part of one of these become one.
    """
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(pair for edge in edges for pair in combinations(sorted(edge), 2))
    chordal, _ = nx.complete_to_chordal_graph(graph)
    cliques = sorted(tuple(sorted(clique)) for clique in nx.find_cliques(chordal))
    while True:
        shared = {(i, j): set(cliques[i]) & set(cliques[j]) for i, j in combinations(range(len(cliques)), 2)}
        overlaps: nx.Graph[int] = nx.Graph()
        overlaps.add_nodes_from(range(len(cliques)))
        overlaps.add_weighted_edges_from((i, j, len(nodes)) for (i, j), nodes in shared.items())
        tree = nx.maximum_spanning_tree(overlaps)
        unfixed = [
            (i, j)
            for i, j in map(sorted, tree.edges)
            if not any(shared[i, j] <= attributes for attributes in fixed)
        ]
        if not unfixed:
            break
        joined: nx.Graph[int] = nx.Graph(unfixed)
        joined.add_nodes_from(range(len(cliques)))
        cliques = sorted(
            tuple(sorted({node for i in part for node in cliques[i]}))
            for part in nx.connected_components(joined)
        )
    indices = {0: 0}
    yield cliques[0], NO_CLIQUE, ()
    for parent, child in nx.bfs_edges(tree, 0):
        indices[child] = len(indices)
        yield cliques[child], indices[parent], tuple(sorted(shared[min(parent, child), max(parent, child)]))
