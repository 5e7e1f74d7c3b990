"""Move records from cells that have too many of them to cells that have too few, by changing few codes.

Which record of a cell moves is decided by the other tables: of some candidates it is the one after whose move
they fit best, as in the annealing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privsyn.marginals.counting import Tables, block_of, ranks
from privsyn.marginals.domain import Codes, Floats, Ints, Records
from privsyn.synthesis.annealing import NEVER
from privsyn.synthesis.targets import Targets
from privsyn.synthesis.totals.cliques import Clique

CANDIDATES = 25  # records of a cell among which the best one is moved


@dataclass(frozen=True, eq=False)
class CellsOfRecords:
    """The cells of a clique that records are in.

    Parameters
    ----------
    clique : Clique
    axes : tuple of int
        The column of each attribute of the clique.
    cell_of : tuple of integer arrays of shape (codes,), one per attribute
        The cell of each code.
    weights : tuple of arrays of shape (codes,), one per attribute
        How often each code is drawn in its cell: not negative.
    """

    clique: Clique
    axes: tuple[int, ...]
    cell_of: tuple[Codes, ...]
    weights: tuple[Floats, ...]

    def find(self, codes: Codes) -> Ints:
        """Return the cell of each record."""
        pairs = zip(self.axes, self.cell_of, strict=True)
        inside = tuple(cell_of[codes[:, axis]] for axis, cell_of in pairs)
        return np.asarray(np.ravel_multi_index(inside, self.clique.domain.shape), np.int64)

    def changed(self, codes: Codes, goal: int, rng: np.random.Generator) -> Codes:
        """Return codes of records in the cell `goal`; those that are not in it before are drawn."""
        changed = codes.copy()
        wanted = self.clique.codes[:, goal]
        for axis, cell_of, weights, cell in zip(self.axes, self.cell_of, self.weights, wanted, strict=True):
            outside = np.flatnonzero(cell_of[codes[:, axis]] != cell)
            if len(outside):
                inside = np.flatnonzero(cell_of == cell)
                if len(inside) > 1:
                    edges = np.cumsum(weights[inside] + NEVER**-1)
                    drawn = np.searchsorted(edges, rng.random(len(outside)) * edges[-1], side="right")
                    changed[outside, axis] = inside[np.minimum(drawn, len(inside) - 1)]
                else:
                    changed[outside, axis] = inside[0]
        return changed


@dataclass(frozen=True, eq=False)
class Misfit:
    """The sum over the cells of tables of weight times (count - target)^2, while records move.

    Parameters
    ----------
    strides : integer array of shape (columns, tables)
        By how much the place of a record's cell grows with each of its codes; 0 for columns of other tables.
    starts : integer array of shape (tables,)
        The place of the first cell of each table.
    counts, targets, weights : arrays of shape (cells of all tables,)
        The counts change with the records.
    """

    strides: Ints
    starts: Ints
    counts: Floats
    targets: Floats
    weights: Floats

    @classmethod
    def of(cls, records: Records, targets: Targets, axes: Sequence[int]) -> Misfit:
        """Return the misfit of records in the tables that have one of the attributes at `axes`."""
        names = {records.domain.names[axis] for axis in axes}
        tables = [t for t in (*targets.one_ways, *targets.tables) if names.intersection(t.attributes)]
        strides = np.zeros((len(records.domain), len(tables)), np.int64)
        for index, table in enumerate(tables):
            strides[list(records.domain.axes(table.attributes)), index] = table.domain.strides
        starts = np.cumsum([0, *(table.domain.cells for table in tables)])[:-1]
        counts = Tables(records.domain, [table.attributes for table in tables]).count([block_of(records)])
        expected = np.concatenate([(t.counts * (len(records) / t.total)).ravel() for t in tables])
        possible = np.concatenate([targets.zeros.mask(table.domain).ravel() for table in tables])
        weights = np.where(possible, 1 / (expected + 1), NEVER)
        return cls(
            strides, starts, np.concatenate([c.ravel() for c in counts]).astype(float), expected, weights
        )

    def move_best(self, before: Codes, after: Codes) -> int:
        """Return which of some records fits best after its move, and move it in the counts.

        A cell with the count c, target t and weight w changes the misfit by w (2 (c - t) + 1) if it gains a
        record, and by -w (2 (c - t) - 1) if it loses one.

        Parameters
        ----------
        before, after : arrays of shape (records, columns)
            The codes of each record before and after its move.
        """
        sources, goals = (codes.astype(np.int64) @ self.strides + self.starts for codes in (before, after))
        gains = self.weights[goals] * (2 * (self.counts[goals] - self.targets[goals]) + 1)
        losses = self.weights[sources] * (2 * (self.counts[sources] - self.targets[sources]) - 1)
        best = int(np.argmin(np.where(sources == goals, 0.0, gains - losses).sum(axis=1)))
        self.counts[sources[best]] -= 1
        self.counts[goals[best]] += 1
        return best


def move_records(
    codes: Codes, cells: CellsOfRecords, wanted: Ints, misfit: Misfit, rng: np.random.Generator
) -> None:
    """Change codes, in place, until each cell of a clique has the wanted number of records.

    Parameters
    ----------
    codes : array of shape (records, columns)
    cells : CellsOfRecords
        What the clique shares with its parent has the wanted numbers of records, and does not change.
    wanted : array of shape (cells,)
    misfit : Misfit
        Of the records; it stays that of the records.
    rng : numpy.random.Generator
    """
    cell_of_record = cells.find(codes)
    excess = np.bincount(cell_of_record, minlength=len(wanted)) - wanted
    order = rng.permutation(len(codes))
    order = order[np.argsort(cell_of_record[order], kind="stable")]
    ends = np.cumsum(np.bincount(cell_of_record, minlength=len(wanted)))
    members = {
        cell: order[ends[cell] - excess[cell] - wanted[cell] : ends[cell]]
        for cell in np.flatnonzero(excess > 0).tolist()
    }
    for source, goal in _matched(cells.clique, excess, rng):
        records = members[source]
        number = min(CANDIDATES, len(records))
        candidates = (rng.integers(len(records)) + np.arange(number)) % len(records)
        rows = records[candidates]
        before = codes[rows]
        after = cells.changed(before, goal, rng)
        best = misfit.move_best(before, after)
        codes[rows[best]] = after[best]
        records[candidates[best]] = records[-1]
        members[source] = records[:-1]


def _matched(clique: Clique, excess: Ints, rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Yield a cell with a record too many and one with a record too few, until there are none.

    Cells that differ in one attribute are matched first, then those that differ in two, and so on.
    """
    sources, goals = (
        rng.permutation(np.repeat(np.arange(len(excess)), np.maximum(sign * excess, 0))) for sign in (1, -1)
    )
    subsets = [
        subset for size in range(1, len(clique.free) + 1) for subset in combinations(clique.free, size)
    ]
    for subset in subsets:
        if not len(sources):
            return
        groups = clique.group_of_cell(set(clique.domain.names).difference(subset))
        pairs = _pairs(groups[sources], groups[goals])
        yield from zip(sources[pairs[0]].tolist(), goals[pairs[1]].tolist(), strict=True)
        sources, goals = np.delete(sources, pairs[0]), np.delete(goals, pairs[1])
    if len(sources) or len(goals):
        raise ValueError("cells that share what is settled have another number of records than wanted")


def _pairs(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Return the places of elements that are equal, each in one pair at most; as many pairs as possible.

    >>> [indices.tolist() for indices in _pairs(np.array([5, 7, 7]), np.array([7, 7, 7, 4]))]
    [[1, 2], [0, 1]]
    """
    _, numbers = np.unique(np.concatenate([first, second]), return_inverse=True)
    keys = []
    for values in (numbers[: len(first)], numbers[len(first) :]):
        order = np.argsort(values, kind="stable")
        rank = np.empty(len(values), np.int64)
        rank[order] = ranks(values[order])
        keys.append(values * (len(numbers) + 1) + rank)
    _, indices, equal = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    return indices, equal
