r"""Make the rows of linked tables: each row depends on the rows above it, and on one or two rows before it.

**The start** draws the first row of each parent, then the second rows, and so on. A row begins with its
context (columns of the rows above it, the class of the number of rows of its person, its position) and with
columns of the one or two rows before it. Each column b is then drawn from the conditional distribution
:math:`T_{ab} / \sum_b T_{ab}` of the table T that has the most mutual information among those over b and an
attribute a that the row has already.

**Annealing** lowers :math:`\sum_T w_T \sum_c (N_c - T_c)^2 / (T_c + 1)`, where :math:`N_c` is the number of
rows in cell c. A table over a column and one of the previous row counts pairs of neighbours. So a row is in
two of its cells: with its previous row, and with its next row. The rows move in two turns by their position
(in three, if tables are over the second row before), so that the neighbours of a row that moves stay. Both
rows of a pair could add all that is missing in a cell. So a turn aims at half of it:
:math:`N_c + (T_c - N_c) / 2`.

After each turn the rows that moved exchange blocks of tied columns; see `privsyn.synthesis.swaps`. Their
context and their neighbours stay, so a swap changes the tables over a column of the block and one of these.

If a column orders the rows of a parent, such as a date, its codes never decrease among them. They are sorted
at the start, and moves that would break the order have the weight `NEVER`. Rows that were sorted at the end
would have other neighbours than while the tables were fitted.

If the rows of a parent have no order, they are shuffled before each sweep. So a table over neighbours is
fitted for any two rows of a parent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from privsyn.marginals.counting import code_type
from privsyn.marginals.domain import Attributes, Domain, Floats, Integers
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal
from privsyn.marginals.statistics import mutual_informations
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.synthesis.annealing import (
    COLUMNS,
    NEVER,
    SWEEPS,
    VARIATES,
    Objective,
    Proposals,
    anneal_once,
    counted,
    dependence_weights,
    lay_out,
)
from privsyn.synthesis.chains import EXACT, NEXT, POSITION, Chains
from privsyn.synthesis.limits import Limit, UniqueCode, move_into
from privsyn.synthesis.paths import Path, PathMoves, with_changes_of
from privsyn.synthesis.swaps import lay_out_swaps, pair_couplings, tied_blocks
from privsyn.synthesis.synthesise import draw_by_quota, draw_given
from privsyn.synthesis.targets import Targets

HELD = 35.0
"""A column weighs this number times the number of tables over it, and at least `COLUMNS`. A column of a child
table is in twice as many tables as a column of a table without links, and the tables over rows above
contradict each other. With the weight `COLUMNS`, 140 of 35,000 rows had a kind that 466 should have. With
`HELD` it is 352 rows, and pairs have the same errors."""

LINKED_SWEEPS = 2 * SWEEPS  # half of the rows move at a time, against targets that move with the other half
LIMIT = "limit {}"
"""The name of an attribute: the kind of a row in a `Limit`."""


def synthesise_linked(
    targets: Targets,
    chains: Chains,
    rng: np.random.Generator,
    sweeps: int = LINKED_SWEEPS,
    limits: Sequence[Limit] = (),
    unique: Sequence[UniqueCode] = (),
    paths: Sequence[Path] = (),
) -> dict[str, Integers]:
    """Return the codes of the columns of each row.

    Parameters
    ----------
    targets : Targets
        One-ways and structural zeros of the columns, and tables over columns of the row, its context, and
        columns of the rows before it.
    chains : Chains
    rng : numpy.random.Generator
    sweeps : int
    limits : sequence of Limit
        A row leaves a code that it may not have at any price, if it may have another code.
    unique : sequence of UniqueCode
    paths : sequence of Path
        Columns that seldom change along the rows of a parent. These rows have an order.
    """
    one_ways, zeros = targets.columns, targets.zeros
    tables = chains.symmetric(targets.tables, one_ways)
    drawn = {path.attribute: path.start(one_ways[path.attribute], tables, chains, rng) for path in paths}
    tables = with_changes_of(drawn, tables, chains)
    rows = _start(one_ways, tables, chains, drawn, rng)
    for code in unique:
        chances = code.chances(tables, POSITION, chains.context, len(chains.parents))
        size = one_ways[code.attribute].domain.cells
        limits = [*limits, code.limit(rows[code.attribute], chains.parents, chances, size, rng)]
    move_into(limits, rows, one_ways, rng)
    if chains.order is not None:
        codes = rows[chains.order]
        rows[chains.order] = codes[np.lexsort((codes, chains.parents))]
        chains = chains.with_exact(one_ways[chains.order].domain.cells)
    tables = (*tables, *zeros.missing_from(tuple(tables), targets.one_ways))
    if not (tables or limits) or not len(chains.parents):
        return rows
    views = _views(one_ways, tables, chains, zeros)
    for index, limit in enumerate(limits):
        name = LIMIT.format(index)
        while name in one_ways:
            name += "'"
        chains = replace(chains, context={**chains.context, name: limit.kinds})
        none = np.zeros(limit.possible.size)
        views.append(_View(limit.table(name), NO_GROUPS, none, none + 1, limit.weights))
    blocks = tied_blocks(tables, pair_couplings(tables), one_ways.keys() - drawn.keys())
    return _annealed(_Frame.of(rows, one_ways, chains, views), views, blocks, paths, rng, sweeps)


def _start(
    one_ways: Mapping[str, Marginal],
    tables: Sequence[Marginal],
    chains: Chains,
    paths: Mapping[str, Integers],
    rng: np.random.Generator,
) -> dict[str, Integers]:
    """Draw the rows position by position, and their columns along the strongest tables of two attributes.

    The columns of `paths` are drawn already.
    """
    edges = _tree(one_ways, tables, {*chains.context, *chains.previous, *paths})
    positions = chains.positions
    drawn = {
        name: paths.get(name, np.zeros(len(positions))).astype(code_type(source.domain.cells))
        for name, source in one_ways.items()
    }
    order, ends = np.argsort(positions, kind="stable"), np.cumsum(np.bincount(positions))
    for rows in np.split(order, ends)[:-1]:
        codes_of_rows: dict[str, Integers] = {name: codes[rows] for name, codes in chains.context.items()}
        codes_of_rows |= {
            name: source.codes(drawn[source.column], positions, rows)
            for name, source in chains.previous.items()
        }
        codes_of_rows |= {name: codes[rows] for name, codes in paths.items()}
        for name, table in edges:
            if table is None:
                codes_of_rows[name] = draw_by_quota(one_ways[name].counts, len(rows), rng)
            else:
                codes_of_rows[name] = draw_given(table, codes_of_rows[table.attributes[0]], rng)
            drawn[name][rows] = codes_of_rows[name]
    return drawn


def _tree(
    one_ways: Mapping[str, Marginal], tables: Sequence[Marginal], context: set[str]
) -> list[tuple[str, Marginal | None]]:
    """Return the columns in the order in which they are drawn, each with the table that it is drawn from."""
    pairs = [table for table in tables if len(table.attributes) == 2]
    informations = mutual_informations(pairs).tolist()
    weights = {table.attributes: information for table, information in zip(pairs, informations, strict=True)}
    known_names, order = set(context), list[tuple[str, Marginal | None]]()
    while not one_ways.keys() <= known_names:
        best, weight = None, 0.0
        for table in pairs:
            inside = known_names.intersection(table.attributes)
            if len(inside) == 1 and weights[table.attributes] > weight:
                best, weight = table, weights[table.attributes]
        if best is None:
            name = next(name for name in one_ways if name not in known_names)
            order.append((name, None))
        else:
            first, name = best.attributes if best.attributes[0] in known_names else best.attributes[::-1]
            order.append((name, best.project((first, name))))
        known_names.add(name)
    return order


def _annealed(
    frame: _Frame,
    views: Sequence[_View],
    blocks: tuple[Attributes, ...],
    paths: Sequence[Path],
    rng: np.random.Generator,
    sweeps: int,
) -> dict[str, Integers]:
    """Return the rows, moved towards all tables; in each turn no two neighbours move, but for `paths`."""
    chains, one_ways = frame.chains, frame.one_ways
    turns = chains.lag + 1
    turn, weights = chains.positions % turns, np.concatenate([view.weights for view in views])
    parts = np.concatenate([view.part for view in views])
    wanted = np.concatenate([view.targets for view in views])
    joined = {index: view.grouping for index, view in enumerate(views) if view.grouping}
    tables = tuple(view.table for view in views)
    moving_alone = one_ways.keys() - {path.attribute for path in paths}
    still = tuple(name for name in frame.domain.names if name not in moving_alone)
    seen = [(view.table, view.targets, view.weights) for view in views if view.of_row(frame.following)]
    moves_of_paths = [PathMoves.of(path, chains, frame.domain, seen) for path in paths]
    swaps = lay_out_swaps(frame.domain, tables, blocks, joined)
    most_values = max(table.domain.cells for table in one_ways.values())
    noise = rng.gumbel(size=VARIATES + most_values).astype(np.float32)
    for sweep in range(sweeps):
        cooling = 1 - (sweep + 1) / sweeps
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
            objective = Objective(counts, counts + parts * missing, weights)
            anneal_once(codes, Proposals(moves, swaps), objective, cooling, noise, rng)
            for axis in range(len(one_ways)):
                frame.codes[axis, moving] = codes[:, axis]
        for path_moves in moves_of_paths:
            frame.look_at_neighbours()
            path_moves.take(frame.codes, cooling, rng)
    return dict(zip(one_ways, frame.codes[: len(one_ways)].copy(), strict=True))  # frees the others


@dataclass(frozen=True, eq=False)
class _View:
    """A table over attributes of a row that moves.

    Parameters
    ----------
    table : Marginal
        Over columns of the row, its context, and columns of rows before and after it, in groups.
    grouping : Grouping
        The groups of the attributes' codes in the table.
    targets, part, weights : arrays of shape (cells,)
        The count of all rows; the part of the missing count that the moving rows add; the weight of an error.
    """

    table: Marginal
    grouping: Grouping
    targets: Floats
    part: Floats
    weights: Floats

    def of_row(self, following: Mapping[str, object]) -> bool:
        """Return whether no attribute is of a row after it: then the view has the counts of all rows."""
        return following.keys().isdisjoint(self.table.attributes)


def _views(
    one_ways: Mapping[str, Marginal], tables: Sequence[Marginal], chains: Chains, zeros: StructuralZeros
) -> list[_View]:
    """Return the views of all tables and columns, scaled to the number of rows."""
    weighted = [*zip(tables, dependence_weights(tuple(tables)) if tables else (), strict=True)]
    holding = Counter(name for table in tables for name in table.attributes)
    weighted += [(table, max(COLUMNS, HELD * holding[name])) for name, table in one_ways.items()]
    views = []
    for table, weight in weighted:
        factor = len(chains.parents) / max(table.total, TINY_COUNT)
        for view in _seen(Marginal(table.domain, table.counts * factor), one_ways, chains):
            weights = view.weights * weight / (view.targets + 1)
            if zeros.masks and set(one_ways).issuperset(view.table.attributes):
                weights[~zeros.mask(view.table.domain).ravel()] = NEVER
            views.append(replace(view, weights=weights))
    return views if chains.order is None else [*views, *_ordered(chains.order, one_ways, chains)]


def _ordered(order: str, one_ways: Mapping[str, Marginal], chains: Chains) -> list[_View]:
    """Return views of the previous and the next row in which cells out of order have the weight `NEVER`."""
    size = one_ways[order].domain.cells
    domain = Domain((order, EXACT + order), (size, size + 1))
    views = []
    for view in _seen(Marginal(domain, np.zeros(domain.shape)), one_ways, chains):
        before, after = np.indices(view.table.domain.shape)
        wrong = (before > after) & (before < size)  # code `size`: no previous, or no next row
        views.append(replace(view, weights=np.where(wrong, NEVER, 0.0).ravel()))
    return views


def _seen(table: Marginal, one_ways: Mapping[str, Marginal], chains: Chains) -> list[_View]:
    """Return the views of a table; of a table over neighbours two, with the row as the later and the earlier.

    In a view of neighbours each adds half of the missing count. The weights are 1, but 0 in cells whose count
    is unknown: the number of rows without a next row.
    """
    names = table.attributes
    linked = [name for name in names if name in chains.previous]
    every = np.ones(table.domain.cells)
    if not linked:
        return [_View(table, NO_GROUPS, table.counts.ravel(), every, every)]
    (name,) = linked
    before = chains.previous[name]
    (partner,) = (attribute for attribute in names if attribute != name)
    first = table.project((name, partner))
    part = np.full(first.domain.shape, 0.5)
    part[-1] = 1.0  # rows without an earlier row have no neighbour that adds the other half
    views = [_View(first, NO_GROUPS, first.counts.ravel(), part.ravel(), every)]
    size, values = one_ways[before.column].domain.cells, first.domain.sizes[1]
    counts = np.zeros((len(first.counts) - 1, values + 1))
    counts[:, :-1] = first.counts[:-1]
    weights = np.ones(counts.shape)
    weights[:, -1] = 0.0
    domain = Domain((before.column, NEXT[before.lag - 1] + partner), (size, values + 1))
    grouping = Grouping((before.groups, np.arange(values + 1, dtype=np.int32)))
    spread = Marginal(grouping.domain(domain), counts)
    views.append(_View(spread, grouping, counts.ravel(), np.full(counts.size, 0.5), weights.ravel()))
    return views


@dataclass(frozen=True, eq=False)
class _Frame:
    """The codes of the rows: their columns, their context, and the columns of the rows before and after them.

    Parameters
    ----------
    domain : Domain
        The columns of the row itself come first.
    codes : array of shape (attributes, rows)
        The codes of these columns change while the rows are annealed.
    one_ways : mapping of each column of the row to its counts
    chains : Chains
    following : mapping of an attribute to (column, lag)
        Attributes of the next row, with a lag of 1, and of the row after the next, with 2.
    """

    domain: Domain
    codes: npt.NDArray[np.unsignedinteger]
    one_ways: Mapping[str, Marginal]
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
        """Return the frame of rows; attributes of their neighbours are still 0."""
        sizes = {name: table.domain.sizes[0] for name, table in one_ways.items()}
        sizes |= {name: int(codes.max(initial=0)) + 1 for name, codes in chains.context.items()}
        sizes |= {name: previous.none + 1 for name, previous in chains.previous.items()}
        names = dict.fromkeys(name for view in views for name in view.table.attributes)
        after = {
            prefix + column: (column, lag) for lag, prefix in enumerate(NEXT, start=1) for column in one_ways
        }
        following = {name: after[name] for name in names if name not in sizes}
        sizes |= {name: sizes[column] + 1 for name, (column, _) in following.items()}
        for view in views:  # a code that no person has may still have cells
            if not view.grouping:
                for name, size in view.table.domain.size_of.items():
                    sizes[name] = max(sizes[name], size)
        domain = Domain(tuple(sizes), tuple(sizes.values()))
        codes = np.zeros((len(domain), len(chains.parents)), code_type(max(domain.sizes)))
        codes_now = {**rows, **chains.context}
        for name, axis in zip(codes_now, domain.axes(tuple(codes_now)), strict=True):
            codes[axis] = codes_now[name]
        return cls(domain, codes, one_ways, chains, following)

    def look_at_neighbours(self) -> None:
        """Write the attributes of the rows before and after each row."""
        codes = dict(zip(self.domain.names, self.codes, strict=True))  # views, one of each attribute
        rows = np.arange(len(self.chains.parents))
        for name, previous in self.chains.previous.items():
            codes[name][:] = previous.codes(codes[previous.column], self.chains.positions, rows)
        for name, (column, lag) in self.following.items():
            codes[name][:-lag] = codes[column][lag:]
            codes[name][self.chains.remaining < lag] = self.domain.size_of[column]
