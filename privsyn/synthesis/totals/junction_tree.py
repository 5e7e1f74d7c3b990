"""JunctionTree: records whose counts are those of all known totals, exactly.

Of each clique of the totals (see `privsyn.synthesis.totals.cliques`) records get a whole number of each
cell. One table of totals has these numbers, or a rounding finds them near the counts that the records have.
For another number of records, and for blocks of records that add up, the numbers are scaled and rounded.
`privsyn.synthesis.totals.moves` then changes as few codes as it can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privsyn.marginals.domain import Codes, Domain, Floats, Ints, Records
from privsyn.marginals.known_totals import KnownTotals
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.synthesis.targets import Targets
from privsyn.synthesis.totals.cliques import NO_CLIQUE, Clique, cells_of_codes, cliques_of
from privsyn.synthesis.totals.controlled_rounding import EXACTLY, SumBounds, round_counts
from privsyn.synthesis.totals.moves import CellsOfRecords, Misfit, move_records

FITTINGS = 100  # most iterations over the sums of a clique
FITTED = 1e-3  # records: a sum with a smaller gap counts as met
SPARE = 1e-3  # records that a possible cell has at least before fitting, so that it can be filled
SEED = 0  # of the rounding that shows that some records have all totals


@dataclass(frozen=True, eq=False)
class JunctionTree:
    """The cliques of known totals, by which records get the counts of all of them.

    Parameters
    ----------
    domain : Domain
        Of the records.
    total : int
        Number of records that have the totals as they are; 0 if there are none.
    cell_of : mapping of an attribute of totals to an integer array of shape (codes,)
        The cell of each code.
    cliques : tuple of Clique
        Each after its parent.
    """

    domain: Domain
    total: int
    cell_of: Mapping[str, Codes]
    cliques: tuple[Clique, ...]

    @classmethod
    def of(cls, totals: KnownTotals, domain: Domain, zeros: StructuralZeros = NO_ZEROS) -> JunctionTree:
        """Return the junction tree of known totals, which have groups of the codes of a domain."""
        if not totals:
            return cls(domain, 0, {}, ())
        cell_of = cells_of_codes(domain, totals, zeros)
        return cls(domain, round(totals.total), cell_of, cliques_of(domain, cell_of, totals, zeros))

    def check(self) -> None:
        """Raise a ``ValueError`` if no records have all totals."""
        _ = self.tables

    @cached_property
    def tables(self) -> tuple[Ints, ...]:
        """The number of records in each cell of each clique.

        Raises
        ------
        ValueError
            If no records have all totals.
        """
        rng = np.random.default_rng(SEED)
        tables = [
            _table(clique, np.ones(clique.domain.cells, np.int64), [sums.counts for sums in clique.sums], rng)
            for clique in self.cliques
        ]
        return tuple(tables)

    def tables_for(self, n: int, rng: np.random.Generator) -> tuple[Ints, ...]:
        """Return the tables for `n` records, with counts within 1 of the scaled ones where that is possible.

        They have the sum `n`, and agree with each other.
        """
        return self.tables if n == self.total else self._rounded(self.tables, n, rng)

    def tables_of_blocks(self, ends: Sequence[int], rng: np.random.Generator) -> Iterator[tuple[Ints, ...]]:
        """Yield the tables of each block of records, which together are those of `tables_for`.

        Parameters
        ----------
        ends : sequence of int
            End of each block, in records.
        rng : numpy.random.Generator
        """
        tables = self.tables_for(ends[-1], rng)
        before = tuple(np.zeros_like(table) for table in tables)
        for end in ends:
            after = tables if end == ends[-1] else self._rounded(tables, end, rng, before)
            yield tuple(now - then for now, then in zip(after, before, strict=True))
            before = after

    def _rounded(
        self,
        tables: tuple[Ints, ...],
        n: int,
        rng: np.random.Generator,
        before: tuple[Ints, ...] | None = None,
    ) -> tuple[Ints, ...]:
        """Return whole tables of `n` records near the given ones, scaled; none below `before`, if given.

        If `before` is given, none is above the given tables, either.
        """
        if not tables:
            return ()
        counts = np.concatenate(tables)
        filled = np.flatnonzero(counts)
        starts = np.cumsum([0, *map(len, tables)])
        expected = np.asarray(counts * (n / int(tables[0].sum())), np.float64)
        sums = [_of_cells(bounds, filled) for bounds in self._sums(starts, expected, n)]
        bounds = None if before is None else (np.concatenate(before)[filled], counts[filled])
        solution = round_counts(expected[filled], sums, rng, bounds)
        if solution is None:
            raise ValueError("no whole tables agree with each other")  # some of the records of the tables do
        scaled = np.zeros_like(counts)
        scaled[filled] = solution
        return tuple(np.split(scaled, starts[1:-1]))

    def _sums(self, starts: Ints, expected: Floats, n: int) -> Iterator[SumBounds]:
        """Yield that all tables agree and have `n` records; and, as far as possible, rounded totals."""
        for clique, start in zip(self.cliques, starts.tolist(), strict=False):
            groups = clique.group_of_cell(clique.settled)
            cells = start + np.arange(len(groups))
            if clique.parent == NO_CLIQUE:
                yield SumBounds.of(groups, np.array([float(n)]), np.array([float(n)]), start)
            else:
                parent = self.cliques[clique.parent]
                parent_groups = parent.group_of_cell(clique.settled)
                parent_cells = starts[clique.parent] + np.arange(len(parent_groups))
                zero = np.zeros(max(int(groups.max()), int(parent_groups.max())) + 1)
                yield SumBounds(
                    np.concatenate([cells, parent_cells]),
                    np.concatenate([groups, parent_groups]),
                    signs=np.repeat([1, -1], [len(groups), len(parent_groups)]),
                    lows=zero,
                    highs=zero,
                )
            for totals in clique.sums:
                if totals.complete and not totals.of_cells:
                    inside = expected[start : start + len(groups)]
                    scaled = np.bincount(totals.group_of_cell, inside, len(totals.counts))
                    lows, highs = np.floor(scaled + EXACTLY), np.ceil(scaled - EXACTLY)
                    yield SumBounds.of(totals.group_of_cell, lows, highs, start, required=False)

    def enforce(
        self, records: Records, tables: Sequence[Ints], targets: Targets, rng: np.random.Generator
    ) -> Records:
        """Return records with the totals of these tables; as few codes as possible are changed.

        Parameters
        ----------
        records : Records
        tables : sequence of integer arrays of shape (cells,), one per clique
            They have as many records.
        targets : Targets
            Of the records: which of them change is decided by what fits these best.
        rng : numpy.random.Generator
        """
        codes = np.array(records.codes, np.int32, order="F")
        for clique, table in zip(self.cliques, tables, strict=True):
            names = clique.domain.names
            weights = tuple(targets.columns[name].counts for name in names)
            cell_of = tuple(self.cell_of[name] for name in names)
            cells = CellsOfRecords(clique, self.domain.axes(names), cell_of, weights)
            counts = np.bincount(cells.find(codes), minlength=clique.domain.cells)
            wanted = table
            if clique.counts is None:
                totals = [np.bincount(sums.group_of_cell, table, len(sums.counts)) for sums in clique.sums]
                wanted = _table(clique, counts, [np.asarray(sums, np.float64) for sums in totals], rng)
            if (counts != wanted).any():
                axes = self.domain.axes(clique.free)
                misfit = Misfit.of(Records(self.domain, codes), targets, axes)
                move_records(codes, cells, wanted, misfit, rng)
        return Records(self.domain, codes)


def _table(clique: Clique, counts: Ints, totals: Sequence[Floats], rng: np.random.Generator) -> Ints:
    """Return whole counts of the cells of a clique with the given sums, near the given counts.

    Raises
    ------
    ValueError
        If there are none.
    """
    if clique.counts is not None:
        if clique.counts[~clique.possible].any():
            raise ValueError(f"known totals of {clique.domain.names} have records in structural zeros")
        return clique.counts.astype(np.int64)
    inside = np.flatnonzero(clique.possible)
    groups = [sums.group_of_cell[inside] for sums in clique.sums]
    expected = np.maximum(counts[inside], SPARE).astype(np.float64)
    for _ in range(FITTINGS):
        largest_gap = 0.0
        for group, sums in zip(groups, totals, strict=True):
            expected_sums = np.bincount(group, expected, len(sums))
            largest_gap = max(largest_gap, float(np.abs(expected_sums - sums).max()))
            ratio = np.divide(sums, expected_sums, out=np.zeros(len(sums)), where=expected_sums > 0)
            expected = expected * ratio[group]
        if largest_gap < FITTED:
            break
    bounds = [SumBounds.of(group, sums, sums) for group, sums in zip(groups, totals, strict=True)]
    solution = round_counts(expected, bounds, rng)
    if solution is None:
        raise ValueError(f"no records have all known totals of {clique.domain.names}")
    table = np.zeros(clique.domain.cells, np.int64)
    table[inside] = solution
    return table


def _of_cells(sums: SumBounds, cells: Ints) -> SumBounds:
    """Return bounds of the sums of some cells; all others have no record."""
    index = np.searchsorted(cells, sums.cells)
    chosen = np.isin(sums.cells, cells)
    return replace(sums, cells=index[chosen], groups=sums.groups[chosen], signs=sums.signs[chosen])
