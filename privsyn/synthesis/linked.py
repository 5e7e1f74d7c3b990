"""Make the rows of persons: each row depends on the previous row of the same person, and on the person.

The start draws the first row of each person, then the second rows, and so on. Each attribute follows the one
with the most information on it: another of the same row, one of the previous row, or one of the person. Then
the rows are annealed. A table over the previous row and the row counts pairs of neighbours. So two halves of
the rows, in neither of which two rows are neighbours, move in turn: the neighbours of a row that moves stay.

If a column orders the rows of a parent, such as a date, its codes never decrease among them: they are sorted
at the start, and no move makes one smaller than the previous row's or larger than the next row's. Rows that
were sorted at the end would have other neighbours than those that the tables were fitted with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from privsyn.marginals.counting import code_type, ranks
from privsyn.marginals.domain import Codes, Domain, Floats, Integers, Ints, Mask
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal, Measurement
from privsyn.marginals.statistics import mutual_information
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.synthesis.annealing import (
    COLUMNS,
    NEVER,
    SWEEPS,
    VARIATES,
    anneal_once,
    counted,
    lay_out,
    weights_of,
)
from privsyn.synthesis.synthesise import draw_by_quota, draw_given

TINY = 1e-9  # records
LINKED_SWEEPS = 2 * SWEEPS  # each moves half of the rows at a time, against targets that move with the others
NUMBER_OF_ROWS, SIBLINGS, POSITION = "rows of the person", "rows of the parent", "position"
OF_ROWS = (NUMBER_OF_ROWS, SIBLINGS, POSITION)
"""Attributes of a row: the class of the number of rows of its person, that of the rows of its parent, and its
place among the latter."""
NEXT = "next row's "
"""How the name of an attribute of the next row begins."""
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
class Links:
    """How the rows of a table depend on other rows.

    Parameters
    ----------
    given : mapping of an attribute to a Given
    previous : mapping of an attribute to (own attribute, groups)
        Attributes of the previous row: see `Chains`.
    tables : tuple of Marginal
        Each over own attributes and one of `given` or `previous`.
    measured : tuple of Measurement
        Of each table: draws need the noise in it.
    """

    given: Mapping[str, Given]
    previous: Mapping[str, tuple[str, Codes]]
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
    previous : mapping of an attribute to (own attribute, groups)
        Attributes of the previous row: the code of each code of the own attribute. One code more stands for
        rows without a previous one.
    order : str, optional
        An own attribute whose codes never decrease among the rows of a parent.
    """

    parents: Ints
    given: Mapping[str, Integers]
    previous: Mapping[str, tuple[str, Codes]]
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
        exact = {EXACT + str(self.order): (str(self.order), np.arange(codes, dtype=np.int32))}
        return replace(self, previous={**self.previous, **exact})

    @property
    def positions(self) -> Ints:
        """How many rows of the same parent stand before each row."""
        return ranks(self.parents)


def synthesise_linked(
    one_ways: Mapping[str, Marginal],
    tables: Sequence[Marginal],
    chains: Chains,
    rng: np.random.Generator,
    sweeps: int = LINKED_SWEEPS,
    zeros: StructuralZeros = NO_ZEROS,
) -> dict[str, Integers]:
    """Return the codes of the own attributes of each row.

    Parameters
    ----------
    one_ways : mapping of an own attribute to its counts
    tables : sequence of Marginal
        Over own attributes, those of persons and those of the previous row.
    chains : Chains
    rng : numpy.random.Generator
    sweeps : int
    zeros : StructuralZeros
        Of the own attributes.
    """
    rows = _start(one_ways, tables, chains, rng)
    if chains.order is not None:
        codes = rows[chains.order]
        rows[chains.order] = codes[np.lexsort((codes, chains.parents))]
        chains = chains.with_exact(one_ways[chains.order].domain.cells)
    tables = (*tables, *zeros.missing_from(tuple(tables), tuple(one_ways.values())))
    if not tables or not len(chains.parents):
        return rows
    return _annealed(rows, one_ways, _views(one_ways, tables, chains, zeros), chains, rng, sweeps)


def _start(
    one_ways: Mapping[str, Marginal], tables: Sequence[Marginal], chains: Chains, rng: np.random.Generator
) -> dict[str, Integers]:
    """Draw the rows place by place, and their attributes along the strongest tables of two."""
    edges = _tree(one_ways, tables, {*chains.given, *chains.previous})
    place = chains.positions
    found = {name: np.zeros(len(place), code_type(of.domain.cells)) for name, of in one_ways.items()}
    order, ends = np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))
    for step, rows in enumerate(np.split(order, ends)[:-1]):
        known: dict[str, Integers] = {name: codes[rows] for name, codes in chains.given.items()}
        for name, (own, groups) in chains.previous.items():
            none = np.int32(groups.max() + 1)
            known[name] = np.full(len(rows), none) if not step else groups[found[own][rows - 1]]
        for name, table in edges:
            if table is None:
                known[name] = draw_by_quota(one_ways[name].counts, len(rows), rng)
            else:
                known[name] = draw_given(table, known[table.attributes[0]], rng)
            found[name][rows] = known[name]
    return found


def _tree(
    one_ways: Mapping[str, Marginal], tables: Sequence[Marginal], given: set[str]
) -> list[tuple[str, Marginal | None]]:
    """Return the own attributes in the order in which they are drawn, each with the table that it follows."""
    pairs = [table for table in tables if len(table.attributes) == 2]
    weights = {table.attributes: mutual_information(table) for table in pairs}
    known, order = set(given), list[tuple[str, Marginal | None]]()
    while len(order) < len(one_ways):
        best, weight = None, 0.0
        for table in pairs:
            inside = known.intersection(table.attributes)
            if len(inside) == 1 and weights[table.attributes] > weight:
                best, weight = table, weights[table.attributes]
        if best is None:
            name = next(name for name in one_ways if name not in known)
            order.append((name, None))
        else:
            first, name = best.attributes if best.attributes[0] in known else best.attributes[::-1]
            order.append((name, best.project((first, name))))
        known.add(name)
    return order


def _annealed(
    rows: dict[str, Integers],
    one_ways: Mapping[str, Marginal],
    views: Sequence[_View],
    chains: Chains,
    rng: np.random.Generator,
    sweeps: int,
) -> dict[str, Integers]:
    """Return the rows, moved towards all tables; half of the rows move at a time."""
    frame = _Frame.of(rows, one_ways, chains, views)
    halves, weights = chains.positions % 2, np.concatenate([view.weights for view in views])
    parts = np.concatenate([view.part for view in views])
    wanted = np.concatenate([view.targets for view in views])
    joined = {place: view.grouping for place, view in enumerate(views) if view.grouping}
    tables = tuple(view.table for view in views)
    still = tuple(name for name in frame.domain.names if name not in one_ways)
    most = max(table.domain.cells for table in one_ways.values())
    noise = rng.gumbel(size=VARIATES + most).astype(np.float32)
    for sweep in range(sweeps):
        for half in (0, 1):
            frame.look_at_neighbours()
            # The rows that come first take most of what is missing, so a file would begin with unlike rows.
            moving = rng.permutation(np.flatnonzero(halves == half))
            codes = np.take(np.ascontiguousarray(frame.codes.T), moving, axis=0)
            counts = counted(frame.domain, tuple(codes.T), tables, joined)
            missing: Floats = wanted - counted(frame.domain, tuple(frame.codes), tables, joined)
            moves = lay_out(frame.domain, codes, tables, groups=joined, still=still)
            cooling = 1 - (sweep + 1) / sweeps
            anneal_once(codes, moves, counts, counts + parts * missing, weights, cooling, noise, rng)
            for axis in range(len(one_ways)):
                frame.codes[axis, moving] = codes[:, axis]
    return dict(zip(one_ways, frame.codes[: len(one_ways)].copy(), strict=True))  # frees the others


@dataclass(frozen=True, eq=False)
class _View:
    """A table as the rows of one half see it.

    Parameters
    ----------
    table : Marginal
        Over attributes of the row, its person, the previous and the next row, in groups.
    grouping : Grouping
        From the codes of the attributes to the cells.
    targets, part, weights : arrays of shape (cells,)
        Counts of all rows; the part of what is missing that this half should add; the weight of an error.
    """

    table: Marginal
    grouping: Grouping
    targets: Floats
    part: Floats
    weights: Floats


def _views(
    one_ways: Mapping[str, Marginal], tables: Sequence[Marginal], chains: Chains, zeros: StructuralZeros
) -> list[_View]:
    """Return how one half of the rows sees all tables, scaled to the number of rows, and all columns."""
    weighted = [*zip(tables, weights_of(tuple(tables)), strict=True)]
    weighted += [(table, COLUMNS) for table in one_ways.values()]
    found = []
    for table, weight in weighted:
        factor = len(chains.parents) / max(table.total, TINY)
        for view in _seen(Marginal(table.domain, table.counts * factor), one_ways, chains):
            weights = view.weights * weight / (view.targets + 1)
            weights[~_possible(view, one_ways, zeros)] = NEVER
            found.append(replace(view, weights=weights))
    return found if chains.order is None else [*found, *_ordered(chains.order, one_ways, chains)]


def _ordered(order: str, one_ways: Mapping[str, Marginal], chains: Chains) -> list[_View]:
    """Return views in which only cells out of order have a weight: no row may be in them."""
    size = one_ways[order].domain.cells
    domain = Domain((order, EXACT + order), (size, size + 1))
    found = []
    for view in _seen(Marginal(domain, np.zeros(domain.shape)), one_ways, chains):
        before, after = np.indices(view.table.domain.shape)
        wrong = (before > after) & (before < size)  # code `size`: no previous, or no next row
        found.append(replace(view, weights=np.where(wrong, NEVER, 0.0).ravel()))
    return found


def _possible(view: _View, one_ways: Mapping[str, Marginal], zeros: StructuralZeros) -> Mask:
    """Return which cells of a table may have rows."""
    if not zeros.masks or not set(one_ways).issuperset(view.table.attributes):
        return np.full(view.table.domain.cells, True)
    return zeros.of(view.table.domain).ravel()


def _seen(table: Marginal, one_ways: Mapping[str, Marginal], chains: Chains) -> list[_View]:
    """Return how a table is seen by a row: as the row itself, and as the previous row of another one.

    Both halves of the rows could add all that is missing in a table over neighbours. So each adds a half. The
    weights are 0 in cells of which no count is known, else 1.
    """
    names = table.attributes
    linked = [name for name in names if name in chains.previous]
    every = np.ones(table.domain.cells)
    if not linked:
        return [_View(table, NO_GROUPS, table.counts.ravel(), every, every)]
    (name,) = linked
    own, groups = chains.previous[name]
    (other,) = (each for each in names if each != name)
    first = table.project((name, other))
    part = np.full(first.domain.shape, 0.5)
    part[-1] = 1.0  # rows without a previous one
    found = [_View(first, NO_GROUPS, first.counts.ravel(), part.ravel(), every)]
    size, values = one_ways[own].domain.sizes[0], first.domain.sizes[1]
    counts = np.zeros((len(first.counts) - 1, values + 1))
    counts[:, :-1] = first.counts[:-1]
    weights = np.ones(counts.shape)
    weights[:, -1] = 0.0  # how many rows have no next one is not known
    domain = Domain((own, NEXT + other), (size, values + 1))
    grouping = Grouping((groups, np.arange(values + 1, dtype=np.int32)))
    spread = Marginal(grouping.domain(domain), counts)
    found.append(_View(spread, grouping, counts.ravel(), np.full(counts.size, 0.5), weights.ravel()))
    return found


@dataclass(frozen=True, eq=False)
class _Frame:
    """The rows with what their persons, their previous and their next rows have.

    Parameters
    ----------
    domain : Domain
        The own attributes come first.
    codes : array of shape (attributes, rows)
        Those of own attributes change while the rows are annealed.
    previous : mapping of an attribute to (own attribute, groups)
        See `Chains`.
    following : mapping of an attribute to an own attribute
        Those of the next row.
    first, last : arrays of shape (rows,)
        Whether a row has no previous one, and no next one.
    """

    domain: Domain
    codes: npt.NDArray[np.unsignedinteger]
    previous: Mapping[str, tuple[str, Codes]]
    following: Mapping[str, str]
    first: Mask
    last: Mask

    @classmethod
    def of(
        cls,
        rows: Mapping[str, Integers],
        one_ways: Mapping[str, Marginal],
        chains: Chains,
        views: Sequence[_View],
    ) -> _Frame:
        """Return the rows, whose neighbours are not yet known."""
        sizes = {name: table.domain.sizes[0] for name, table in one_ways.items()}
        sizes |= {name: int(codes.max(initial=0)) + 1 for name, codes in chains.given.items()}
        sizes |= {name: int(groups.max()) + 2 for name, (_, groups) in chains.previous.items()}
        names = dict.fromkeys(name for view in views for name in view.table.attributes)
        following = {name: name.removeprefix(NEXT) for name in names if name not in sizes}
        sizes |= {name: sizes[own] + 1 for name, own in following.items()}
        for view in views:  # a code that no person has may still have cells
            if not view.grouping:
                for name, size in view.table.domain.size_of.items():
                    sizes[name] = max(sizes[name], size)
        domain = Domain(tuple(sizes), tuple(sizes.values()))
        codes = np.zeros((len(domain), len(chains.parents)), code_type(max(domain.sizes)))
        known = {**rows, **chains.given}
        for name, axis in zip(known, domain.axes(tuple(known)), strict=True):
            codes[axis] = known[name]
        first = chains.positions == 0
        return cls(domain, codes, chains.previous, following, first, np.append(first[1:], np.True_))

    def look_at_neighbours(self) -> None:
        """Write what the previous and the next row of each row have now."""
        codes = dict(zip(self.domain.names, self.codes, strict=True))  # views, one of each attribute
        for name, (own, groups) in self.previous.items():
            codes[name][1:] = groups[codes[own][:-1]]
            codes[name][self.first] = groups.max() + 1
        for name, own in self.following.items():
            codes[name][:-1] = codes[own][1:]
            codes[name][self.last] = self.domain.size_of[own]
