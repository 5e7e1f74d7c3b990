"""Draw single values again until the records fit all tables at once.

Starting along a tree fits only the pairs on the tree. Here one attribute after the other is drawn again, row
by row. Each value has a cost: how much worse the tables would fit. It is drawn with probability proportional
to exp(-cost / heat), and the heat falls to 0 (simulated annealing: Kirkpatrick et al., Science 1983; this
draw among all values is known as Gibbs sampling). The costs of all values take little longer than that of
one: the cells that a row could move to lie next to each other in memory. If one attribute all but determines
another, neither can move alone. Such pairs also move together. After each sweep pairs of rows exchange whole
blocks of tied attributes; see `privsyn.synthesis.swaps`.

`lay_out` puts the cells of all tables into one array, and finds the tables that each move changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
from math import prod, sqrt
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from privsyn.marginals.counting import Block, Tables, block_of, code_type
from privsyn.marginals.domain import Attributes, Codes, Domain, Floats, Integers, Ints, Records
from privsyn.marginals.marginal import LEVELS, NO_GROUPS, Grouping, Marginal, groups_at
from privsyn.marginals.statistics import dependences
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.marginals.tolerances import TINY_SHARE
from privsyn.synthesis import _kernels
from privsyn.synthesis._kernels import Indices, Move, Swap
from privsyn.synthesis.swaps import lay_out_swaps, pair_couplings, tied_blocks
from privsyn.synthesis.targets import Targets

SWEEPS = 5  # fewer fit wide tables poorly; with more, models learnt from the rows are no better
TEMPERATURE = (
    0.03  # in units of the objective, for each table of a move: colder, rows keep traces of the start
)
MANY_CODES = 2**20  # of records: one byte a code saves 15 % of the time, but its loop is compiled too
VALUES_OF_TWO_BYTES = 2**16  # values: the type of smaller records, whatever their columns
VARIATES = 4096  # random numbers that all draws share, from random places on
NEVER = 1e6  # weight of a record in a structural zero: no table gains as much by a move
KEPT = 1e15  # weight of a row that breaks a rule on several rows: it would leave any structural zero for less
COLUMNS, SUMS = 100.0, 10.0  # weight of a column; of a coarse sum of a pair, times the pair's weight
STRONGEST = 3.0  # largest weight of a table: with 10, unrelated columns of beans get correlations
DENSE = 5.0  # records a cell: with fewer, bigger tables are fitted in groups, and nominal columns not held
COARSE = 6  # groups in a coarse sum: with 4 draws lose more dependence, with 8 beans get false correlations
TIGHT = 0.8  # least coupling of two attributes that are also moved together
SWAPPED = 0.1  # most tables that swaps look up, over the tables that moves look up


def finish(
    start: Records,
    targets: Targets,
    rng: np.random.Generator,
    *,
    sweeps: int | None = None,
    still: Attributes = (),
) -> Records:
    """Return records annealed towards the least sum over cells of w (count - target)^2 / (target + 1).

    The weight w of a table grows with its dependence (see `dependence_weights`). The sum is never larger than
    at the start. If the tables form a tree, the start may be exact.

    Parameters
    ----------
    start : Records
        Starting point; the number of rows is kept.
    targets : Targets
        Tables have a positive total. Attributes in no table do not change. With one-ways, records are also
        fitted to the columns and to coarse sums of pairs. A cell with a target under one half is fitted best
        by a count of 0. So sparse tables alone would move records from thin regions into dense ones. Noisy
        tables that contradict each other would make rare values rarer: small targets weigh most. A column
        without order is held to its counts if no value is rare; see `_frequent`.
    rng : numpy.random.Generator
    sweeps : int, optional
        Number of times that every attribute of every row is drawn again. Default: `SWEEPS`.
    still : tuple of str
        Attributes that do not change.

    Examples
    --------
    Two independent coins become two coins that agree:

    >>> from privsyn.marginals.domain import Domain
    >>> domain = Domain(("left", "right"), (2, 2))
    >>> start = Records(domain, np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50))
    >>> same = Marginal(domain, np.array([[100.0, 0.0], [0.0, 100.0]]))
    >>> records = finish(start, Targets((), (same,)), np.random.default_rng(0))
    >>> bool((records.codes[:, 0] == records.codes[:, 1]).all())
    True
    """
    tables, possible = targets.tables, targets.zeros
    if not tables or not len(start):
        return start
    largest: dict[str, int] = {}  # cells of the largest table of each attribute
    for table in tables:
        for name in table.attributes:
            largest[name] = max(table.domain.cells, largest.get(name, 0))
    one_ways = tuple(t for t in targets.one_ways if t.domain.ordered[0] or _frequent(t, largest, len(start)))
    pairs, groupings = _coarse_pairs(tables, one_ways)
    weight = {table.attributes: w for table, w in zip(tables, dependence_weights(tables), strict=True)}
    sums = tuple(map(Marginal.join, pairs, groupings))
    joined = _sparse(tables, len(start), possible)
    tables = tuple(t.join(joined.get(i, NO_GROUPS)) for i, t in enumerate(tables))
    fitted = (*tables, *sums, *one_ways)
    joined |= enumerate(groupings, start=len(tables))
    wanted = np.concatenate([table.counts.ravel() * (len(start) / table.total) for table in fitted])
    weight_of_table = [weight[t.attributes] for t in tables] + [SUMS * weight[t.attributes] for t in sums]
    weight_of_table += [COLUMNS for _ in one_ways]
    weights = np.repeat(weight_of_table, [table.domain.cells for table in fitted]) / (wanted + 1)
    if possible.masks:
        masks = [
            np.full(table.domain.cells, True) if index in joined else possible.mask(table.domain).ravel()
            for index, table in enumerate(tables)
        ]
        is_possible = np.concatenate(masks)
        weights[: len(is_possible)][~is_possible] = NEVER
    counts = counted(start.domain, block_of(start), fitted, joined)
    misfit = float(weights @ (counts - wanted) ** 2)
    strengths = pair_couplings(tables)
    together = tightly_coupled(strengths)
    moves = lay_out(start.domain, start.codes, fitted, groups=joined, together=together, still=still)
    blocks = tied_blocks(tables, strengths, set(start.domain.names).difference(still))
    swaps = lay_out_swaps(start.domain, fitted, blocks, joined)
    label = None if targets.label is None else start.domain.names.index(targets.label)
    proposals, objective = Proposals(moves, swaps, label), Objective(counts, wanted, weights)
    codes = _anneal(start, proposals, objective, sweeps or SWEEPS, rng)
    return Records(start.domain, codes) if weights @ (counts - wanted) ** 2 < misfit else start


class Objective(NamedTuple):
    """What records are fitted to: the sum over cells of weight times (count - target)^2.

    Parameters
    ----------
    counts : of shape (cells of all tables,)
        Of the records; moves keep them up to date.
    targets, weights : of the same shape
    """

    counts: Ints
    targets: Floats
    weights: Floats


class Proposals(NamedTuple):
    """How records may change.

    Parameters
    ----------
    moves : list of Move
        Of an attribute, or of attributes that move together, in one record.
    swaps : list of Swap
        Of a block of attributes between two records.
    label : int, optional
        The attribute that models will predict, which is in a table with most others. The errors of m tables
        add up like sqrt(m), so its moves have the heat of as many tables. With that of m tables, records of
        other classes enter a class, and the columns of its records come to depend on each other.
    """

    moves: list[Move]
    swaps: list[Swap]
    label: int | None = None

    def tables_of_heat(self, move: Move) -> float:
        """Return how many tables' heat a move has."""
        return sqrt(len(move.starts)) if self.label in move.moved else len(move.starts)


def _anneal(
    start: Records,
    proposals: Proposals,
    objective: Objective,
    sweeps: int,
    rng: np.random.Generator,
) -> Codes:
    """Return annealed codes; the counts become theirs."""
    most_codes = max(start.domain.sizes)
    if start.codes.size < MANY_CODES:
        most_codes = max(most_codes, VALUES_OF_TWO_BYTES)
    codes = start.codes.astype(code_type(most_codes), order="F")  # the kernel reads columns
    most_values = max((len(move.values) for move in proposals.moves), default=0)
    noise = rng.gumbel(size=VARIATES + most_values).astype(np.float32)
    for sweep in range(sweeps):
        anneal_once(codes, proposals, objective, 1 - (sweep + 1) / sweeps, noise, rng)
    return codes.astype(np.int32)


def anneal_once(
    codes: npt.NDArray[np.unsignedinteger],
    proposals: Proposals,
    objective: Objective,
    cooling: float,
    noise: npt.NDArray[np.float32],
    rng: np.random.Generator,
) -> None:
    """Draw all attributes of all rows again, then exchange blocks; codes and counts change in place."""
    swaps, (counts, targets, weights) = proposals.swaps, objective
    for move in proposals.moves:
        heat = TEMPERATURE * cooling * proposals.tables_of_heat(move)  # a cost is a sum over the tables
        cell_counts, weight = counts[move.cells], weights[move.cells]
        costs = (weight * (1 + 2 * (cell_counts - targets[move.cells]))).astype(np.float32)
        _kernels.resample(codes, move, costs, (2 * weight).astype(np.float32), cell_counts, heat, noise, rng)
        counts[move.cells] = cell_counts
    if swaps and len(codes) > 1:
        gaps, steps = 2 * (counts - targets), (2 * weights).astype(np.float32)
        changes = np.stack([weights * (1 + gaps), weights * (1 - gaps)], axis=1).astype(np.float32)
        by_moves, by_swaps = (sum(len(move.starts) for move in made) for made in (proposals.moves, swaps))
        number = int(len(codes) * min(SWAPPED * by_moves / by_swaps, 0.5))
        for swap in swaps:
            pairs = rng.permutation(len(codes))[: 2 * number].reshape(2, number).astype(np.uint32)
            heat = TEMPERATURE * cooling * len(swap.starts)
            _kernels.swap_blocks(codes, swap, pairs, changes, steps, counts, heat, rng)


def counted(
    domain: Domain, block: Block, tables: tuple[Marginal, ...], joined: Mapping[int, Grouping]
) -> Ints:
    """Return the counts of all tables, one behind the other; tables with groups count joined codes."""
    sets = list(dict.fromkeys(table.attributes for table in tables))
    by_attributes = dict(zip(sets, Tables(domain, sets).count([block]), strict=True))
    counts = [
        joined.get(i, NO_GROUPS).join(by_attributes[table.attributes]) for i, table in enumerate(tables)
    ]
    if any(
        table_counts.shape != table.domain.shape for table_counts, table in zip(counts, tables, strict=True)
    ):
        raise ValueError("a table has another shape than its counts")  # compiled loops do not look
    return np.concatenate([table_counts.ravel() for table_counts in counts])


def _frequent(one_way: Marginal, largest: Mapping[str, int], n: int) -> bool:
    """Return whether even the rarest value has `DENSE` records for each cell that it has in a table.

    A column with rarer values is left free: held to them, no value could move in a table of few records.
    """
    (name,) = one_way.attributes
    rarest = one_way.counts[one_way.counts > 0].min(initial=one_way.total) * (n / one_way.total)
    return bool(rarest >= DENSE * (largest.get(name, 0) / one_way.domain.cells))


def _sparse(tables: tuple[Marginal, ...], n: int, possible: StructuralZeros) -> dict[int, Grouping]:
    """Return the place of each sparse table of three or more attributes, and the groups to fit it in."""
    groupings: dict[int, Grouping] = {}
    for index, table in enumerate(tables):
        big = len(table.attributes) > 2 and max(table.domain.ordered) > 2
        if big and table.domain.cells * DENSE > n and possible.mask(table.domain).all():
            sides = [table.project((name,)) for name in table.attributes]
            for level in LEVELS:
                grouping = Grouping(tuple(groups_at(side, level) for side in sides))
                if index not in groupings or DENSE * grouping.domain(table.domain).cells <= n:
                    groupings[index] = grouping
    return groupings


def _coarse_pairs(
    tables: tuple[Marginal, ...], one_ways: tuple[Marginal, ...]
) -> tuple[list[Marginal], list[Grouping]]:
    """Return the pairs of ordered attributes, and few groups of the codes of each."""
    group = {one_way.attributes[0]: groups_at(one_way, COARSE) for one_way in one_ways}
    pairs = [
        table
        for table in tables
        if len(table.attributes) == 2
        and min(table.domain.ordered) > COARSE
        and set(table.attributes) <= set(group)
    ]
    return pairs, [Grouping(tuple(group[name] for name in t.attributes)) for t in pairs]


def dependence_weights(tables: tuple[Marginal, ...]) -> list[float]:
    """Return the weight of each table: its dependence over the median one's, from 1 to `STRONGEST`.

    Noisy tables contradict each other, and no records fit them all. What records miss is dependence: a strong
    one becomes weaker. So weak tables, mostly noise, give way. The dependence of a table is its total
    variation from independent attributes.
    """
    dependence = dependences(tables)
    middle = max(float(np.median(dependence)), TINY_SHARE)
    return [float(weight) for weight in np.clip(dependence / middle, 1.0, STRONGEST)]


def tightly_coupled(strengths: Mapping[Attributes, float]) -> tuple[Attributes, ...]:
    """Return each attribute's most tightly coupled pair, if above `TIGHT`; no pair twice."""
    strongest: dict[str, tuple[float, Attributes]] = {}
    for pair, strength in strengths.items():
        for name in pair if strength >= TIGHT else ():
            strongest[name] = max(strongest.get(name, (TIGHT, ())), (strength, pair))
    return tuple(sorted({pair for _, pair in strongest.values() if pair}))


class _Table(NamedTuple):
    """The place of each cell of a table among those of all tables; the groups of its attributes' codes."""

    cells: Indices
    groups: dict[int, Codes]


def lay_out(
    domain: Domain,
    codes: Integers,
    tables: tuple[Marginal, ...],
    *,
    groups: Mapping[int, Grouping] = MappingProxyType({}),
    together: tuple[Attributes, ...] = (),
    still: Attributes = (),
) -> list[Move]:
    """Return a move of each pair `together` and of each other attribute in a table, but none of `still`.

    Parameters
    ----------
    domain : Domain
    codes : array of shape (n, d)
        Of the start.
    tables : tuple of Marginal
    groups : mapping of a place to a Grouping
        Of the tables that join codes.
    together : tuple of pairs of attributes
    still : tuple of attributes
    """
    begin, holding = 0, dict[int, dict[int, _Table]]()
    codes_of = cache(partial(np.arange, dtype=np.int32))
    for index, table in enumerate(tables):
        axes = domain.axes(table.attributes)
        groups_of_axes = groups.get(index, NO_GROUPS).groups or [
            codes_of(size) for size in table.domain.shape
        ]
        cells = np.arange(begin, begin + table.domain.cells, dtype=np.uint32).reshape(table.domain.shape)
        begin += table.domain.cells
        laid_out = _Table(cells, dict(zip(axes, groups_of_axes, strict=True)))
        for axis in axes:
            holding.setdefault(axis, {})[index] = laid_out
    fixed = set(domain.axes(still))
    pairs = [axes for axes in map(domain.axes, together) if not fixed & set(axes)]
    alone = set(holding) - fixed - {axis for axes in pairs for axis in axes}
    moves: list[tuple[int, ...]] = [*((axis,) for axis in sorted(alone)), *pairs]
    held = ({index: t for axis in moved for index, t in holding[axis].items()} for moved in moves)
    return [_move(domain, codes, moved, tables.values()) for moved, tables in zip(moves, held, strict=True)]


def _move(domain: Domain, codes: Integers, moved: tuple[int, ...], tables: Iterable[_Table]) -> Move:
    sizes = [domain.sizes[axis] for axis in moved]
    cells_of_rows = np.ravel_multi_index([codes[:, axis] for axis in moved], sizes)
    cells_used = np.flatnonzero(np.bincount(cells_of_rows, minlength=prod(sizes)))
    values = dict(zip(moved, np.unravel_index(cells_used, sizes), strict=True))
    indices = np.full(prod(sizes), len(cells_used))
    indices[cells_used] = np.arange(len(cells_used))
    alike: dict[tuple[int, bytes], list[_Table]] = {}
    for table in tables:
        grouping, moved_last = _rows_of_cells(table, values)
        alike.setdefault(grouping, []).append(moved_last)
    held = [table for group in alike.values() for table in group]
    offsets = [
        group * prod(cells.shape[k + 1 :])
        for cells, groups in held
        for k, group in enumerate(groups.values())
    ]
    move = Move(
        moved=np.array([moved[0], moved[-1]]),
        values=np.stack([values[moved[0]], values[moved[-1]]], axis=1),
        strides=np.array([sizes[1], 1] if len(moved) > 1 else [1, 0]),
        indices=indices,
        groups=np.array([np.frombuffer(group, np.int64) for _, group in alike]),
        widths=np.array([width for width, _ in alike]),
        tables=np.cumsum([0, *map(len, alike.values())]),
        starts=np.cumsum([0, *(cells.size for cells, _ in held[:-1])]),
        axis_starts=np.cumsum([0, *(len(groups) for _, groups in held)]),
        axes=np.array([axis for _, groups in held for axis in groups]),
        blocks=np.cumsum([0, *map(len, offsets)])[:-1],
        offsets=np.concatenate([[], *offsets]),
        cells=np.concatenate([cells.ravel() for cells, _ in held]),
        barred_ends=np.zeros(1, np.uint32),
        barred=np.zeros(0, np.uint32),
    )
    return Move(*(array.astype(np.uint32, copy=False) for array in move))


def _rows_of_cells(
    table: _Table, values: Mapping[int, npt.NDArray[np.int64]]
) -> tuple[tuple[int, bytes], _Table]:
    """Return the number of groups and the group of each value; the table with the moved attributes last."""
    axes = list(table.groups)
    inner = [axis for axis in values if axis in table.groups]
    fixed = {axis: group for axis, group in table.groups.items() if axis not in inner}
    cells = table.cells.transpose([axes.index(axis) for axis in (*fixed, *inner)])
    shape = cells.shape[len(fixed) :]
    codes = [table.groups[axis][values[axis]] for axis in inner]
    group = codes[0] if len(codes) == 1 else np.ravel_multi_index(codes, shape)
    rows = cells if len(codes) == 1 else cells.reshape(*cells.shape[: len(fixed)], prod(shape))
    return (prod(shape), group.astype(np.int64).tobytes()), _Table(rows, fixed)
