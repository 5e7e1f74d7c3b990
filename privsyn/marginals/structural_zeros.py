"""Structural zeros: cells of tables that public constraints rule out.

They cost no privacy and remove noise. A count measured in such a cell is noise, or a row that breaks the
constraint, so it is set to exactly 0. Tables are then fitted over the remaining cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.sparse.csgraph import connected_components

from privsyn.marginals.domain import Attributes, Domain, Ints, Mask
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement, lift

ITERATIONS = 10  # most iterations of reconciling one-way tables with the zeros
MET = 1e-3  # of the total: a smaller gap counts as compatible with the zeros
FITTED = 1e-6  # of the total: a margin with a smaller gap counts as met
FITTINGS = 2**21  # cells scaled in fitting one table: with many zeros, fitting needs many iterations
LEAST_ITERATIONS, MOST_ITERATIONS = 30, 1000  # bounds on these iterations


@dataclass(frozen=True, eq=False)
class StructuralZeros:
    """The cells of some tables that can hold a record.

    Parameters
    ----------
    masks : tuple of (Domain, boolean array of its shape)
        True where a cell is possible.

    Examples
    --------
    A man is not pregnant. There is no constraint on age:

    >>> pair = Domain(("sex", "pregnant"), (2, 2))
    >>> known = StructuralZeros(((pair, np.array([[True, True], [True, False]])),))
    >>> known.mask(Domain(("pregnant", "sex"), (2, 2))).tolist(), known.mask(Domain(("age",), (3,))).tolist()
    ([[True, True], [True, False]], [True, True, True])
    """

    masks: tuple[tuple[Domain, Mask], ...] = ()

    def __post_init__(self) -> None:
        masks = tuple((domain, np.array(mask, np.bool_)) for domain, mask in self.masks)
        for _, mask in masks:
            mask.setflags(write=False)
        object.__setattr__(self, "masks", masks)
        for domain, mask in masks:
            if mask.shape != domain.shape:
                raise ValueError(f"a mask {mask.shape} over a domain of {domain.shape}")

    def mask(self, domain: Domain) -> Mask:
        """Return which cells of a table over `domain` are possible, by the masks that share attributes."""
        possible = np.ones(domain.shape, np.bool_)
        for constrained, mask in self.masks:
            if set(constrained.names) & set(domain.names):
                possible &= lift(Marginal(constrained, mask.astype(np.float64)), domain) > 0
        return possible

    def clean(self, measured: Measurement) -> Measurement:
        """Return a measurement with exact zeros in impossible cells."""
        if not self.masks or measured.grouping:  # a whole group is rarely impossible
            return measured
        mask = self.mask(measured.marginal.domain)
        counts = Marginal(measured.marginal.domain, measured.marginal.counts * mask)
        return Measurement(counts, measured.variance * mask)

    def fit(self, table: Marginal, margins: tuple[Marginal, ...]) -> Marginal:
        """Return a table with its structural zeros, the margins' total and, as far as possible, the margins.

        If all its counts lie in structural zeros, fitting starts from equal counts in the other cells.
        """
        if not self.masks or (mask := self.mask(table.domain)).all() or not mask.any():
            return table
        iterations = min(max(FITTINGS // table.domain.cells, LEAST_ITERATIONS), MOST_ITERATIONS)
        counts = table.counts * mask
        start = Marginal(table.domain, counts if counts.any() else mask.astype(np.float64))
        return fit_margins(start, margins, iterations=iterations, enough=FITTED)

    def settle(self, one_ways: tuple[Marginal, ...]) -> tuple[Marginal, ...]:
        """Return one-way tables that are compatible with the structural zeros.

        Noise, or rows that break a constraint, can make margins that no such table has. Each is then moved
        half way to the margins of the nearest table, until they are compatible. Totals do not change.
        What two columns have in the same rows, such as missing cells by a rule, gets one count.

        Examples
        --------
        >>> pair = Domain(("height", "weight"), (2, 2))
        >>> together = StructuralZeros(((pair, np.eye(2, dtype=np.bool_)),))
        >>> counts = np.array([[80.0, 20.0], [76.0, 24.0]])
        >>> sides = [Marginal(pair.project((name,)), row) for name, row in zip(pair, counts)]
        >>> [side.counts.round(3).tolist() for side in together.settle(tuple(sides))]
        [[78.0, 22.0], [78.0, 22.0]]
        """
        if not self.masks:
            return one_ways
        settled = self._with_equal_counts({table.attributes[0]: table for table in one_ways})
        for _ in range(ITERATIONS):
            missed = 0.0
            for domain, _ in self.masks:
                sides = tuple(settled[name] for name in domain.names)
                table = self.fit(product(domain, sides), sides)
                for side in sides:
                    had = table.project(side.attributes).counts * (side.total / table.total)
                    gap = float(np.abs(had - side.counts).max())
                    if gap > MET * side.total:
                        missed = max(missed, gap)
                        settled[side.attributes[0]] = Marginal(side.domain, (had + side.counts) / 2)
            if not missed:
                break
        settled = self._with_equal_counts(settled)
        return tuple(settled[table.attributes[0]] for table in one_ways)

    def _with_equal_counts(self, columns: Mapping[str, Marginal]) -> dict[str, Marginal]:
        """Return the columns with one count of what two of them have in the same rows."""
        settled = dict(columns)
        for domain in {domain.names: domain for domain, _ in self.masks if len(domain) == 2}.values():
            if (parts := _parts_in_same_rows(self.mask(domain))) is not None:
                sides = [settled[name] for name in domain.names]
                settled |= {side.attributes[0]: side for side in _with_equal_parts(sides, parts)}
        return settled

    def missing_from(
        self, tables: tuple[Marginal, ...], one_ways: tuple[Marginal, ...]
    ) -> tuple[Marginal, ...]:
        """Return a table with zeros, else independent, for each constrained set that no table holds."""
        one_way = {table.attributes[0]: table for table in one_ways}
        added: dict[Attributes, Marginal] = {}
        for domain, _ in self.masks:
            names = set(domain.names)
            if len(names) < 2 or any(names <= set(t.attributes) for t in (*tables, *added.values())):
                continue
            sides = tuple(one_way[name] for name in domain.names)
            inside = tuple(t for t in tables if set(t.attributes) <= names)
            added[domain.names] = self.fit(product(domain, sides), (*sides, *inside))
        return tuple(added.values())


NO_ZEROS = StructuralZeros()


def _parts_in_same_rows(mask: Mask) -> tuple[Ints, Ints] | None:
    """Return the part of each code of two columns, so that a row has codes of one part; None for one part.

    >>> [part.tolist() for part in _parts_in_same_rows(np.array([[1, 1, 0], [0, 0, 1]], np.bool_))]
    [[0, 1], [0, 0, 1]]
    """
    rows = len(mask)
    edges = np.zeros((sum(mask.shape),) * 2, np.bool_)
    edges[:rows, rows:] = mask
    number, labels = connected_components(edges, directed=False)
    parts = labels.astype(np.int64)
    return None if number == 1 else (parts[:rows], parts[rows:])


def _with_equal_parts(sides: Sequence[Marginal], parts: tuple[Ints, Ints]) -> list[Marginal]:
    """Return two one-way tables, scaled so that each part has the mean of its two counts.

    They stay if a part has counts in one table alone: then no scaling makes them equal.
    """
    number = 1 + max(int(part.max()) for part in parts)
    sums = np.array([np.bincount(p, side.counts, number) for p, side in zip(parts, sides, strict=True)])
    if ((sums > 0).any(axis=0) != (sums > 0).all(axis=0)).any():
        return [*sides]
    ratios = np.divide(sums.mean(axis=0), sums, out=np.ones_like(sums), where=sums > 0)
    return [
        Marginal(side.domain, side.counts * ratio[part])
        for side, ratio, part in zip(sides, ratios, parts, strict=True)
    ]


def product(domain: Domain, sides: tuple[Marginal, ...]) -> Marginal:
    """Return the table of independent attributes with the given one-way counts."""
    shares = [side.counts / side.total for side in sides]
    return Marginal(domain, sides[0].total * reduce(np.multiply.outer, shares))
