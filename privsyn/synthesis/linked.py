"""Make the rows of linked tables: each row depends on the rows above it, and on those before it.

The start draws the first row of each parent, then the second rows, and so on. Each attribute follows the one
with the most information on it: another of the same row, one of a row before, or one of a row above. Then the
rows are annealed. A table over a row and one before it counts pairs of neighbours. So the rows move in turn
in two parts, or in three if the second row before counts too. In no part are two rows neighbours: the
neighbours of a row that moves stay.

If a column orders the rows of a parent, such as a date, its codes never decrease among them: they are sorted
at the start, and no move makes one smaller than the previous row's or larger than the next row's. Rows that
were sorted at the end would have other neighbours than those that the tables were fitted with.

If the rows of a parent are in no order, they are shuffled before each sweep. So a table over neighbours is
fitted for any two rows of a parent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from privsyn.marginals.counting import code_type
from privsyn.marginals.domain import Domain, Floats, Integers, Mask
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal
from privsyn.marginals.statistics import mutual_informations
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.synthesis.annealing import (
    COLUMNS,
    NEVER,
    SWEEPS,
    VARIATES,
    Objective,
    anneal_once,
    counted,
    dependence_weights,
    lay_out,
)
from privsyn.synthesis.chains import EXACT, NEXT, POSITION, TINY, Chains
from privsyn.synthesis.limits import Limit, One, move_into
from privsyn.synthesis.synthesise import draw_by_quota, draw_given

HELD = 35.0
"""Weight of a column for each table that holds it, if that is more than `COLUMNS`. A column of children is in
twice as many tables as one of a table alone, and those over rows above contradict each other. With `COLUMNS`,
466 persons of a kind became 140 of 35,000; with 35 they are 352, and pairs have the same errors."""

LINKED_SWEEPS = 2 * SWEEPS  # each moves half of the rows at a time, against targets that move with the others
LIMIT = "limit {}"
"""The name of an attribute of a row: its kind in a `Limit`."""


def synthesise_linked(
    one_ways: Mapping[str, Marginal],
    tables: Sequence[Marginal],
    chains: Chains,
    rng: np.random.Generator,
    sweeps: int = LINKED_SWEEPS,
    zeros: StructuralZeros = NO_ZEROS,
    limits: Sequence[Limit] = (),
    ones: Sequence[One] = (),
) -> dict[str, Integers]:
    """Return the codes of the own attributes of each row.

    Parameters
    ----------
    one_ways : mapping of an own attribute to its counts
    tables : sequence of Marginal
        Over own attributes, those of rows above and those of rows before.
    chains : Chains
    rng : numpy.random.Generator
    sweeps : int
    zeros : StructuralZeros
        Of the own attributes.
    limits : sequence of Limit
        A row leaves a code that it may not have at any price, if another one is left.
    ones : sequence of One
    """
    tables = chains.symmetric(tables, one_ways)
    rows = _start(one_ways, tables, chains, rng)
    for one in ones:
        chances = one.chances(tables, POSITION, chains.given, len(chains.parents))
        size = one_ways[one.attribute].domain.cells
        limits = [*limits, one.limit(rows[one.attribute], chains.parents, chances, size, rng)]
    move_into(limits, rows, one_ways, rng)
    if chains.order is not None:
        codes = rows[chains.order]
        rows[chains.order] = codes[np.lexsort((codes, chains.parents))]
        chains = chains.with_exact(one_ways[chains.order].domain.cells)
    tables = (*tables, *zeros.missing_from(tuple(tables), tuple(one_ways.values())))
    if not (tables or limits) or not len(chains.parents):
        return rows
    views = _views(one_ways, tables, chains, zeros)
    for place, limit in enumerate(limits):
        name = LIMIT.format(place)
        while name in one_ways:
            name += "'"
        chains = replace(chains, given={**chains.given, name: limit.kinds})
        none = np.zeros(limit.possible.size)
        views.append(_View(limit.table(name), NO_GROUPS, none, none + 1, limit.weights))
    return _annealed(rows, one_ways, views, chains, rng, sweeps)


def _start(
    one_ways: Mapping[str, Marginal], tables: Sequence[Marginal], chains: Chains, rng: np.random.Generator
) -> dict[str, Integers]:
    """Draw the rows place by place, and their attributes along the strongest tables of two."""
    edges = _tree(one_ways, tables, {*chains.given, *chains.previous})
    place = chains.positions
    found = {name: np.zeros(len(place), code_type(of.domain.cells)) for name, of in one_ways.items()}
    order, ends = np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))
    for rows in np.split(order, ends)[:-1]:
        known: dict[str, Integers] = {name: codes[rows] for name, codes in chains.given.items()}
        known |= {name: of.of(found[of.column], place, rows) for name, of in chains.previous.items()}
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
    informations = mutual_informations(pairs).tolist()
    weights = {table.attributes: found for table, found in zip(pairs, informations, strict=True)}
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
    """Return the rows, moved towards all tables; rows that are no neighbours move at a time."""
    frame = _Frame.of(rows, one_ways, chains, views)
    turns = chains.lag + 1
    turn, weights = chains.positions % turns, np.concatenate([view.weights for view in views])
    parts = np.concatenate([view.part for view in views])
    wanted = np.concatenate([view.targets for view in views])
    joined = {place: view.grouping for place, view in enumerate(views) if view.grouping}
    tables = tuple(view.table for view in views)
    still = tuple(name for name in frame.domain.names if name not in one_ways)
    most = max(table.domain.cells for table in one_ways.values())
    noise = rng.gumbel(size=VARIATES + most).astype(np.float32)
    for sweep in range(sweeps):
        if not chains.in_order:  # any two rows of a parent are neighbours as often as any others
            shuffled = np.lexsort((rng.random(len(chains.parents)), chains.parents))
            frame.codes[:] = frame.codes[:, shuffled]  # a row that must have a code stays the one that has it
        for now in range(turns):
            frame.look_at_neighbours()
            # The rows that come first take most of what is missing, so a file would begin with unlike rows.
            moving = rng.permutation(np.flatnonzero(turn == now))
            codes = np.take(frame.codes, moving, axis=1).T
            counts = counted(frame.domain, tuple(codes.T), tables, joined)
            missing: Floats = wanted - counted(frame.domain, tuple(frame.codes), tables, joined)
            moves = lay_out(frame.domain, codes, tables, groups=joined, still=still)
            cooling = 1 - (sweep + 1) / sweeps
            objective = Objective(counts, counts + parts * missing, weights)
            anneal_once(codes, moves, objective, cooling, noise, rng)
            for axis in range(len(one_ways)):
                frame.codes[axis, moving] = codes[:, axis]
    return dict(zip(one_ways, frame.codes[: len(one_ways)].copy(), strict=True))  # frees the others


@dataclass(frozen=True, eq=False)
class _View:
    """A table as the rows that move see it.

    Parameters
    ----------
    table : Marginal
        Over attributes of the row, those above, before and after it, in groups.
    grouping : Grouping
        From the codes of the attributes to the cells.
    targets, part, weights : arrays of shape (cells,)
        Counts of all rows; the part of what is missing that they should add; the weight of an error.
    """

    table: Marginal
    grouping: Grouping
    targets: Floats
    part: Floats
    weights: Floats


def _views(
    one_ways: Mapping[str, Marginal], tables: Sequence[Marginal], chains: Chains, zeros: StructuralZeros
) -> list[_View]:
    """Return how a row sees all tables, scaled to the number of rows, and all columns."""
    weighted = [*zip(tables, dependence_weights(tuple(tables)) if tables else (), strict=True)]
    holding = Counter(name for table in tables for name in table.attributes)
    weighted += [(table, max(COLUMNS, HELD * holding[name])) for name, table in one_ways.items()]
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
    """Return how a table is seen by a row: as the row itself, and as one before another row.

    Both of two neighbours could add all that is missing in a table over them. So each adds a half. The
    weights are 0 in cells of which no count is known, else 1.
    """
    names = table.attributes
    linked = [name for name in names if name in chains.previous]
    every = np.ones(table.domain.cells)
    if not linked:
        return [_View(table, NO_GROUPS, table.counts.ravel(), every, every)]
    (name,) = linked
    before = chains.previous[name]
    (other,) = (each for each in names if each != name)
    first = table.project((name, other))
    part = np.full(first.domain.shape, 0.5)
    part[-1] = 1.0  # rows without one before
    found = [_View(first, NO_GROUPS, first.counts.ravel(), part.ravel(), every)]
    size, values = one_ways[before.column].domain.cells, first.domain.sizes[1]
    counts = np.zeros((len(first.counts) - 1, values + 1))
    counts[:, :-1] = first.counts[:-1]
    weights = np.ones(counts.shape)
    weights[:, -1] = 0.0  # how many rows have no next one is not known
    domain = Domain((before.column, NEXT[before.lag - 1] + other), (size, values + 1))
    grouping = Grouping((before.groups, np.arange(values + 1, dtype=np.int32)))
    spread = Marginal(grouping.domain(domain), counts)
    found.append(_View(spread, grouping, counts.ravel(), np.full(counts.size, 0.5), weights.ravel()))
    return found


@dataclass(frozen=True, eq=False)
class _Frame:
    """The rows with what the rows above, before and after them have.

    Parameters
    ----------
    domain : Domain
        The own attributes come first.
    codes : array of shape (attributes, rows)
        Those of own attributes change while the rows are annealed.
    chains : Chains
    following : mapping of an attribute to (own attribute, lag)
        Those of the next row, with a lag of 1, and of the one after it, with 2.
    """

    domain: Domain
    codes: npt.NDArray[np.unsignedinteger]
    chains: Chains
    following: Mapping[str, tuple[str, int]]

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
        sizes |= {name: of.none + 1 for name, of in chains.previous.items()}
        names = dict.fromkeys(name for view in views for name in view.table.attributes)
        after = {which + own: (own, lag) for lag, which in enumerate(NEXT, start=1) for own in one_ways}
        following = {name: after[name] for name in names if name not in sizes}
        sizes |= {name: sizes[own] + 1 for name, (own, _) in following.items()}
        for view in views:  # a code that no person has may still have cells
            if not view.grouping:
                for name, size in view.table.domain.size_of.items():
                    sizes[name] = max(sizes[name], size)
        domain = Domain(tuple(sizes), tuple(sizes.values()))
        codes = np.zeros((len(domain), len(chains.parents)), code_type(max(domain.sizes)))
        known = {**rows, **chains.given}
        for name, axis in zip(known, domain.axes(tuple(known)), strict=True):
            codes[axis] = known[name]
        return cls(domain, codes, chains, following)

    def look_at_neighbours(self) -> None:
        """Write what the rows before and after each row have now."""
        codes = dict(zip(self.domain.names, self.codes, strict=True))  # views, one of each attribute
        rows = np.arange(len(self.chains.parents))
        for name, of in self.chains.previous.items():
            codes[name][:] = of.of(codes[of.column], self.chains.positions, rows)
        for name, (own, lag) in self.following.items():
            codes[name][:-lag] = codes[own][lag:]
            codes[name][self.chains.remaining < lag] = self.domain.size_of[own]
