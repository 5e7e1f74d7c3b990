"""Make the rows of persons: each row depends on the previous row of the same person, and on the person.

The start draws the first row of each person, then the second rows, and so on. Each attribute follows the one
with the most information on it: another of the same row, one of the previous row, or one of the person. Then
the rows are annealed. A table over the previous row and the row counts pairs of neighbours. So two halves of
the rows, in neither of which two rows are neighbours, move in turn: the neighbours of a row that moves stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privsyn.marginals.counting import code_type, count, ranks
from privsyn.marginals.domain import Codes, Domain, Floats, Integers, Ints, Mask, Records
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal, Measurement
from privsyn.marginals.statistics import mutual_information
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.synthesis.annealing import COLUMNS, NEVER, SWEEPS, VARIATES, anneal_once, lay_out, weights_of
from privsyn.synthesis.synthesise import draw_by_quota, draw_given, stack

TINY = 1e-9  # records
NUMBER_OF_ROWS, POSITION = "rows of the person", "position"
"""Attributes of a row: the class of the number of rows of its person, and its place among its siblings."""
NEXT = "next "
"""How the name of an attribute of the next row begins."""


@dataclass(frozen=True, eq=False)
class Given:
    """Where the values of an attribute come from that each row has before its own columns are drawn.

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

    def of(self, numbers: Integers) -> Codes:
        """Return the codes of rows."""
        return np.asarray(self.groups[np.minimum(numbers, len(self.groups) - 1)], np.int32)


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
    """

    parents: Ints
    given: Mapping[str, Codes]
    previous: Mapping[str, tuple[str, Codes]]

    @classmethod
    def of(cls, parents: Ints, links: Links, known: Mapping[tuple[str, str], Integers]) -> Chains:
        """Return the chains of rows of the same parent; `known` has what `Given` may be of."""
        given = {name: of.of(known[of.table, of.attribute]) for name, of in links.given.items()}
        return cls(parents, given, links.previous)

    @property
    def positions(self) -> Ints:
        """How many rows of the same parent stand before each row."""
        return ranks(self.parents)


def synthesise_linked(
    one_ways: Mapping[str, Marginal],
    tables: Sequence[Marginal],
    chains: Chains,
    rng: np.random.Generator,
    sweeps: int = SWEEPS,
    zeros: StructuralZeros = NO_ZEROS,
) -> dict[str, Codes]:
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
    tables = (*tables, *zeros.missing_from(tuple(tables), tuple(one_ways.values())))
    if not tables or not len(chains.parents):
        return rows
    return _annealed(rows, one_ways, _views(one_ways, tables, chains, zeros), chains, rng, sweeps)


def _start(
    one_ways: Mapping[str, Marginal], tables: Sequence[Marginal], chains: Chains, rng: np.random.Generator
) -> dict[str, Codes]:
    """Draw the rows place by place, and their attributes along the strongest tables of two."""
    edges = _tree(one_ways, tables, {*chains.given, *chains.previous})
    place, n = chains.positions, len(chains.parents)
    found = {name: np.zeros(n, np.int32) for name in one_ways}
    for step in range(int(place.max(initial=-1)) + 1):
        rows = np.flatnonzero(place == step)
        known: dict[str, Codes] = {name: codes[rows] for name, codes in chains.given.items()}
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
    rows: dict[str, Codes],
    one_ways: Mapping[str, Marginal],
    views: Sequence[_View],
    chains: Chains,
    rng: np.random.Generator,
    sweeps: int,
) -> dict[str, Codes]:
    """Return the rows, moved towards all tables; half of the rows move at a time."""
    halves, weights = chains.positions % 2, np.concatenate([view.weights for view in views])
    joined = {place: view.grouping for place, view in enumerate(views) if view.grouping}
    most = max(table.domain.cells for table in one_ways.values())
    noise = rng.gumbel(size=VARIATES + most).astype(np.float32)
    for sweep in range(sweeps):
        for half in (0, 1):
            frame = _frame(rows, one_ways, chains, views)
            # The rows that come first take most of what is missing, so a file would begin with unlike rows.
            moving = rng.permutation(np.flatnonzero(halves == half))
            start = Records(frame.domain, frame.codes[moving])
            now = [_counts(frame, view) for view in views]
            counts = [_counts(start, view) for view in views]
            missing = [view.part * (view.targets - of) for view, of in zip(views, now, strict=True)]
            targets = np.concatenate([c + m for c, m in zip(counts, missing, strict=True)])
            still = tuple(name for name in frame.domain.names if name not in one_ways)
            moves = lay_out(start, tuple(view.table for view in views), groups=joined, still=still)
            codes = np.ascontiguousarray(start.codes.astype(code_type(max(frame.domain.sizes))))
            cooling = 1 - (sweep + 1) / sweeps
            anneal_once(codes, moves, np.concatenate(counts), targets, weights, cooling, noise, rng)
            for axis, name in enumerate(one_ways):
                rows[name][moving] = codes[:, axis]
    return rows


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


def _frame(
    rows: Mapping[str, Codes], one_ways: Mapping[str, Marginal], chains: Chains, views: Sequence[_View]
) -> Records:
    """Return the rows with what their persons, their previous and their next rows have."""
    place = chains.positions
    has_next = np.append(place[1:] > 0, False)
    columns, sizes = dict(rows), {name: table.domain.sizes[0] for name, table in one_ways.items()}
    for name, codes in chains.given.items():
        columns[name], sizes[name] = codes, int(codes.max(initial=0)) + 1
    for name, (own, groups) in chains.previous.items():
        none = int(groups.max()) + 1
        columns[name] = np.where(place > 0, groups[np.roll(rows[own], 1)], none).astype(np.int32)
        sizes[name] = none + 1
    for view in views:
        for name in view.table.attributes:
            if name not in columns:
                other = name.removeprefix(NEXT)
                sizes[name] = sizes[other] + 1
                columns[name] = np.where(has_next, np.roll(rows[other], -1), sizes[other]).astype(np.int32)
    for view in views:  # a code that no person has may still have cells
        if not view.grouping:
            for name, size in view.table.domain.size_of.items():
                sizes[name] = max(sizes[name], size)
    domain = Domain(tuple(columns), tuple(sizes[name] for name in columns))
    return stack(domain, columns, len(place))


def _counts(records: Records, view: _View) -> Ints:
    names = view.table.attributes
    of = records.domain.project(names)
    counts = count(records, names)
    joined = view.grouping.join(counts) if view.grouping else counts
    if joined.shape != view.table.domain.shape:
        raise ValueError(f"counts over {of.shape} for a table of {view.table.domain.shape}")
    return np.asarray(joined.ravel(), np.int64)
