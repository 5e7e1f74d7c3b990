"""Public zeros: cells of tables that no record can lie in, by constraints that everybody may know.

They cost no privacy and take noise away: what was measured in such a cell is noise, or a row that breaks the
constraint, and is set to exactly 0. Tables are then fitted among the cells that are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from privsyn.marginals.domain import Attributes, Domain
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement, lift
from privsyn.marginals.types import Mask

ROUNDS = 10  # of bringing margins and public zeros together, at most
MET = 1e-3  # of the total: a margin that is missed by less can be had with the zeros
FITTED = 1e-6  # of the total: a margin that is missed by less is met
FITTINGS = 2**21  # cells that are scaled in fitting one table: with many zeros it takes many rounds,
LEAST, MOST = 30, 1000  # but so many at least and at most


@dataclass(frozen=True, eq=False)
class StructuralZeros:
    """Which cells of some tables can hold a record.

    Parameters
    ----------
    masks : tuple of (Domain, boolean array of its shape)

    Examples
    --------
    A man is not pregnant; of sex and age together nothing is known:

    >>> pair = Domain(("sex", "pregnant"), (2, 2))
    >>> known = StructuralZeros(((pair, np.array([[True, True], [True, False]])),))
    >>> known.of(Domain(("pregnant", "sex"), (2, 2))).tolist(), known.of(Domain(("age",), (3,))).tolist()
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

    def of(self, domain: Domain) -> Mask:
        """Which cells of a table over `domain` are possible, as far as that shows in them."""
        possible = np.ones(domain.shape, np.bool_)
        for of, mask in self.masks:
            if set(of.names) & set(domain.names):
                possible &= lift(Marginal(of, mask.astype(np.float64)), domain) > 0
        return possible

    def clean(self, measured: Measurement) -> Measurement:
        """A measurement with exact zeros where there can be nothing."""
        if not self.masks or measured.groups is not None:  # groups are seldom impossible as a whole
            return measured
        mask = self.of(measured.marginal.domain)
        counts = Marginal(measured.marginal.domain, measured.marginal.counts * mask)
        return Measurement(counts, measured.variance * mask)

    def fit(self, table: Marginal, margins: tuple[Marginal, ...]) -> Marginal:
        """A table with its public zeros, the margins' total and, as far as those allow, the margins.

        Where all that is in it lies in zeros it begins anew, with as much in each cell that is none.
        """
        if not self.masks or (mask := self.of(table.domain)).all() or not mask.any():
            return table
        rounds = min(max(FITTINGS // table.domain.cells, LEAST), MOST)
        counts = table.counts * mask
        start = Marginal(table.domain, counts if counts.any() else mask.astype(np.float64))
        return fit_margins(start, margins, rounds=rounds, enough=FITTED)

    def settle(self, one_ways: tuple[Marginal, ...]) -> tuple[Marginal, ...]:
        """One-ways that tables with the public zeros can have.

        Where noise, or rows that break a constraint, made margins that no such table has, each is moved half
        way to those of the table that comes nearest, until one has them. Totals stay.
        """
        found = {table.attributes[0]: table for table in one_ways}
        for _ in range(ROUNDS if self.masks else 0):
            missed = 0.0
            for domain, _ in self.masks:
                sides = tuple(found[name] for name in domain.names)
                table = self.fit(product(domain, sides), sides)
                for side in sides:
                    had = table.project(side.attributes).counts * (side.total / table.total)
                    gap = float(np.abs(had - side.counts).max())
                    if gap > MET * side.total:
                        missed = max(missed, gap)
                        found[side.attributes[0]] = Marginal(side.domain, (had + side.counts) / 2)
            if not missed:
                break
        return tuple(found[table.attributes[0]] for table in one_ways)

    def missing_from(
        self, tables: tuple[Marginal, ...], one_ways: tuple[Marginal, ...]
    ) -> tuple[Marginal, ...]:
        """For each set of attributes with zeros that no table holds: a table with them, else independent."""
        one_way = {table.attributes[0]: table for table in one_ways}
        found: dict[Attributes, Marginal] = {}
        for domain, _ in self.masks:
            names = set(domain.names)
            if len(names) < 2 or any(names <= set(t.attributes) for t in (*tables, *found.values())):
                continue
            sides = tuple(one_way[name] for name in domain.names)
            inside = tuple(t for t in tables if set(t.attributes) <= names)
            found[domain.names] = self.fit(product(domain, sides), (*sides, *inside))
        return tuple(found.values())


NO_ZEROS = StructuralZeros()


def product(domain: Domain, sides: tuple[Marginal, ...]) -> Marginal:
    """The table of independent attributes."""
    shares = [side.counts / side.total for side in sides]
    return Marginal(domain, sides[0].total * reduce(np.multiply.outer, shares))
