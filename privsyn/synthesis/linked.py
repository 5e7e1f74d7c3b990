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

Some columns follow rules from row to row; see `privsyn.synthesis.siblings`. If a column orders the rows of a
parent, such as a date, its codes never decrease among them. They are sorted at the start, and moves that
would break the order have the weight `KEPT`. Rows that were sorted at the end would have other neighbours
than while the tables were fitted. A rule may need the codes that were merged. Then rows have these, and the
tables count them in groups.

If the rows of a parent have no order, they are shuffled before each sweep. So a table over neighbours is
fitted for any two rows of a parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from privsyn.marginals.counting import code_type
from privsyn.marginals.domain import Attributes, Codes, Domain, Floats, Integers, Ints
from privsyn.marginals.marginal import NO_GROUPS, Marginal
from privsyn.marginals.statistics import mutual_informations
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.synthesis._kernels import Move
from privsyn.synthesis.annealing import SWEEPS, VARIATES, Objective, Proposals, anneal_once, counted, lay_out
from privsyn.synthesis.chains import NEXT, POSITION, Chains, unused
from privsyn.synthesis.limits import Limit, move_into
from privsyn.synthesis.paths import Path, PathMoves, tables_of_firsts, with_changes_of
from privsyn.synthesis.siblings import NO_RULES, SiblingRules
from privsyn.synthesis.swaps import lay_out_swaps, pair_couplings, tied_blocks
from privsyn.synthesis.synthesise import draw_by_quota, draw_given
from privsyn.synthesis.targets import Targets
from privsyn.synthesis.views import View, views_of_step, views_of_tables

LINKED_SWEEPS = 2 * SWEEPS  # half of the rows move at a time, against targets that move with the other half
LIMIT, FIRST = "limit {}", "first row of the parent"
"""Names of attributes: the kind of a row in a `Limit`, and whether a row is the first of its parent."""


@dataclass(frozen=True, eq=False)
class Apart:
    """The codes of a column that were merged, and that rows have all the same.

    Parameters
    ----------
    groups : integer array of shape (codes,)
        The merged code of each code.
    shares : array of shape (codes,)
        The share of each code in its merged code.
    ordered : int
        Number of leading codes that have an order.
    """

    groups: Codes
    shares: Floats
    ordered: int

    def one_way(self, merged: Marginal) -> Marginal:
        """Return the counts of the codes, given those of the merged codes."""
        domain = Domain(merged.attributes, (len(self.groups),), (self.ordered,))
        return Marginal(domain, merged.counts[self.groups] * self.shares)

    def drawn(self, merged: Integers, rng: np.random.Generator) -> Integers:
        """Return a code for each row, given its merged code."""
        codes = np.zeros(len(merged), code_type(len(self.groups)))
        for group in range(int(self.groups.max()) + 1):
            rows = np.flatnonzero(merged == group)
            weights = np.where(self.groups == group, self.shares, 0.0)
            codes[rows] = draw_by_quota(weights, len(rows), rng)
        return codes


@dataclass(frozen=True, eq=False)
class Requirements:
    """What synthetic rows must keep, however far from the tables that takes them.

    Parameters
    ----------
    limits : sequence of Limit
        A row leaves a code that it may not have at any price, if it may have another code.
    rules : SiblingRules
    paths : sequence of Path
        Columns that seldom change along the rows of a parent. These rows have an order.
    of_firsts : sequence of tuple of str
        Which columns of paths, in the first row of a parent, and which attributes of the context were counted
        together.
    conditional : bool
        Whether the rows above have given values, so that columns follow their context, not their counts.
    apart : mapping of a column to an Apart
        The columns of which each row has a code that was merged. None is in `paths`. Limits and rules are in
        these codes.
    """

    limits: Sequence[Limit] = ()
    rules: SiblingRules = NO_RULES
    paths: Sequence[Path] = ()
    of_firsts: Sequence[Attributes] = ()
    conditional: bool = False
    apart: Mapping[str, Apart] = field(default_factory=dict)


NO_REQUIREMENTS = Requirements()


def synthesise_linked(
    targets: Targets,
    chains: Chains,
    rng: np.random.Generator,
    sweeps: int = LINKED_SWEEPS,
    requirements: Requirements = NO_REQUIREMENTS,
) -> dict[str, Integers]:
    """Return the codes of the columns of each row: merged ones, but for columns that are apart.

    Parameters
    ----------
    targets : Targets
        One-ways and structural zeros of the columns, and tables over columns of the row, its context, and
        columns of the rows before it.
    chains : Chains
    rng : numpy.random.Generator
    sweeps : int
    requirements : Requirements
    """
    one_ways, zeros = targets.columns, targets.zeros
    rules, paths, apart = requirements.rules, requirements.paths, requirements.apart
    tables = chains.symmetric(targets.tables, one_ways)
    if requirements.conditional:
        one_ways = chains.columns_given(tables, one_ways)
        tables = chains.of_these_rows(tables, one_ways)
    drawn = {path.attribute: path.start(one_ways[path.attribute], tables, chains, rng) for path in paths}
    tables = with_changes_of(drawn, tables, chains)
    rows = _start(one_ways, tables, chains, drawn, rng)
    finest = dict(one_ways)
    for name, codes_apart in apart.items():
        rows[name], finest[name] = codes_apart.drawn(rows[name], rng), codes_apart.one_way(one_ways[name])
    sizes = {name: table.domain.cells for name, table in finest.items()}
    limits = list(requirements.limits)
    for few in rules.few:
        name = few.attribute
        merged = few.merged(apart[name].groups) if name in apart else few
        chances = merged.chances(tables, POSITION, chains.context, len(chains.parents))
        limits.append(few.limit(rows[name], chains.parents, chances, sizes[name], rng))
    move_into(limits, rows, finest, rng)
    weights = {name: table.counts for name, table in finest.items()}
    rules.start(rows, chains.parents, limits, weights, rng)
    tables = (*tables, *zeros.missing_from(tuple(tables), tuple(one_ways.values())))
    if not (tables or limits) or not len(chains.parents):
        return rows
    merged_codes = {name: codes_apart.groups for name, codes_apart in apart.items()}
    views = [view.apart(chains, merged_codes) for view in views_of_tables(one_ways, tables, chains, zeros)]
    for name in apart:
        scaled = finest[name].counts * (len(chains.parents) / max(finest[name].total, TINY_COUNT))
        views.append(View.of_column(Marginal(finest[name].domain, scaled)))
    chains = chains.apart(merged_codes)
    chains = chains.with_exact({step.attribute: sizes[step.attribute] for step in rules.steps})
    for step in rules.steps:
        views += views_of_step(step, finest, chains)
    for index, limit in enumerate(limits):
        name = unused(LIMIT.format(index), one_ways)
        chains = replace(chains, context={**chains.context, name: limit.kinds})
        none = np.zeros(limit.possible.size)
        views.append(View(limit.table(name), NO_GROUPS, none, none + 1, limit.weights))
    is_first = unused(FIRST, one_ways)
    chains = replace(chains, context={**chains.context, is_first: (chains.positions == 0).astype(np.uint8)})
    # A swap looks at no other row of a parent.
    swapped = one_ways.keys() - drawn.keys() - rules.distinct_attributes
    blocks = tied_blocks(tables, pair_couplings(tables), swapped)
    frame = _Frame.of(rows, finest, chains, views, merged_codes)
    return _annealed(frame, views, blocks, requirements, rng, sweeps)


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
    views: Sequence[View],
    blocks: tuple[Attributes, ...],
    requirements: Requirements,
    rng: np.random.Generator,
    sweeps: int,
) -> dict[str, Integers]:
    """Return the rows, moved towards all tables; in each turn no two neighbours move, but for paths."""
    chains, one_ways, paths, rules = frame.chains, frame.one_ways, requirements.paths, requirements.rules
    turns = chains.lag + 1
    turn, weights = chains.positions % turns, np.concatenate([view.weights for view in views])
    parts = np.concatenate([view.part for view in views])
    wanted = np.concatenate([view.targets for view in views])
    joined = {index: view.grouping for index, view in enumerate(views) if view.grouping}
    tables = tuple(view.table for view in views)
    moving_alone = one_ways.keys() - {path.attribute for path in paths}
    still = tuple(name for name in frame.domain.names if name not in moving_alone)
    seen = [(view.table, view.targets, view.weights) for view in views if view.of_row(frame.following)]
    seen += tables_of_firsts(requirements.of_firsts, unused(FIRST, one_ways), frame.domain, frame.codes)
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
            moves = [_without_barred(move, frame, rules, moving) for move in moves]
            objective = Objective(counts, counts + parts * missing, weights)
            anneal_once(codes, Proposals(moves, swaps), objective, cooling, noise, rng)
            frame.move(moving, codes, rules)
        for path_moves in moves_of_paths:
            frame.look_at_neighbours()
            codes_in_tables = frame.merged_codes
            path_moves.take(codes_in_tables, cooling, rng)
            (axis,) = frame.domain.axes((path_moves.path.attribute,))
            frame.codes[axis] = codes_in_tables[axis]
    return dict(zip(one_ways, frame.codes[: len(one_ways)].copy(), strict=True))  # frees the others


def _without_barred(move: Move, frame: _Frame, rules: SiblingRules, moving: Ints) -> Move:
    """Return the move of an attribute without the codes that rules forbid beside other rows of a parent."""
    name = frame.domain.names[int(move.moved[0])]
    codes = dict(zip(frame.one_ways, frame.codes, strict=False))
    barred = rules.barred(name, codes, frame.chains.parents, moving)
    if barred is None:
        return move
    ends, codes_barred = (array.astype(np.uint32) for array in barred)
    return move._replace(barred_ends=ends, barred=codes_barred)


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
    groups : mapping of a column of the row to the merged code of each of its codes
        The columns whose codes are apart.
    """

    domain: Domain
    codes: npt.NDArray[np.unsignedinteger]
    one_ways: Mapping[str, Marginal]
    chains: Chains
    following: Mapping[str, tuple[str, int]]
    groups: Mapping[str, Codes]

    @classmethod
    def of(
        cls,
        rows: Mapping[str, Integers],
        one_ways: Mapping[str, Marginal],
        chains: Chains,
        views: Sequence[View],
        groups: Mapping[str, Codes],
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
            codes_of = map(len, view.grouping.groups) if view.grouping else view.table.domain.sizes
            for name, size in zip(view.table.attributes, codes_of, strict=True):
                sizes[name] = max(sizes[name], size)
        domain = Domain(tuple(sizes), tuple(sizes.values()))
        codes = np.zeros((len(domain), len(chains.parents)), code_type(max(domain.sizes)))
        codes_now = {**rows, **chains.context}
        for name, axis in zip(codes_now, domain.axes(tuple(codes_now)), strict=True):
            codes[axis] = codes_now[name]
        return cls(domain, codes, one_ways, chains, following, groups)

    def move(self, moving: Ints, codes: Integers, rules: SiblingRules) -> None:
        """Give rows their new codes. Those that another row of their parent shares with them stay.

        Two rows of a parent may take the same codes at once: rows of its other part did not move. The codes
        that a row had before kept all rules.

        Parameters
        ----------
        moving : array of shape (moving rows,)
        codes : array of shape (moving rows, attributes)
        rules : SiblingRules
        """
        columns = len(self.one_ways)
        before = self.codes[:columns, moving]
        self.codes[:columns, moving] = codes[:, :columns].T
        moved = np.zeros(self.codes.shape[1], np.bool_)
        moved[moving] = bool(rules.distinct)
        while moved.any():
            rows = dict(zip(self.one_ways, self.codes, strict=False))
            undone = rules.undone(rows, self.chains.parents, moved)
            if not undone.any():
                break
            at = np.flatnonzero(undone[moving])
            self.codes[:columns, moving[at]] = before[:, at]
            moved &= ~undone

    @property
    def merged_codes(self) -> Integers:
        """The codes as the tables count them."""
        if not self.groups:
            return self.codes
        codes = self.codes.copy()
        for name, groups in self.groups.items():
            (axis,) = self.domain.axes((name,))
            codes[axis] = groups[codes[axis]]
        return codes

    def look_at_neighbours(self) -> None:
        """Write the attributes of the rows before and after each row."""
        codes = dict(zip(self.domain.names, self.codes, strict=True))  # views, one of each attribute
        rows = np.arange(len(self.chains.parents))
        for name, previous in self.chains.previous.items():
            codes[name][:] = previous.codes(codes[previous.column], self.chains.positions, rows)
        for name, (column, lag) in self.following.items():
            codes[name][:-lag] = codes[column][lag:]
            codes[name][self.chains.remaining < lag] = self.domain.size_of[column]
