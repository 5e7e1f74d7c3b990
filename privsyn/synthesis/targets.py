"""Targets: the counts that records are made to have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privsyn.marginals.counting import Tables, block_of
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros

LEAST = 1e-6  # records: of a cell that the records beside fill


@dataclass(frozen=True, eq=False)
class Targets:
    """Counts that agree with each other, scaled to the number of records that are made.

    Parameters
    ----------
    one_ways : tuple of Marginal
        One for each attribute, in the order of the records' domain. Without any, records that exist are
        fitted to the tables alone.
    tables : tuple of Marginal
        Non-negative and agreeing with each other and with the one-ways.
    zeros : StructuralZeros
        No record enters one if any other value is left, and records leave them at any price.
    label : str, optional
        The attribute that models will predict. Its moves are cooler; see `Proposals`.
    """

    one_ways: tuple[Marginal, ...]
    tables: tuple[Marginal, ...] = ()
    zeros: StructuralZeros = NO_ZEROS
    label: str | None = None

    @cached_property
    def domain(self) -> Domain:
        """The attributes of the one-ways."""
        domains = [one_way.domain for one_way in self.one_ways]
        return Domain(
            tuple(name for domain in domains for name in domain.names),
            tuple(size for domain in domains for size in domain.sizes),
            tuple(ordered for domain in domains for ordered in domain.ordered),
        )

    @property
    def are_a_star(self) -> bool:
        """Whether all tables are of the label and one column: records drawn along them have all their counts.

        Moves would gain fractions of a record, and make the columns of a class depend on each other.
        """
        pairs = all(len(table.attributes) == 2 and self.label in table.attributes for table in self.tables)
        return pairs and self.label is not None and not self.zeros.masks

    @cached_property
    def columns(self) -> dict[str, Marginal]:
        """The one-ways by their attribute."""
        return dict(zip(self.domain.names, self.one_ways, strict=True))

    def beside(self, records: Records, n: int) -> Targets:
        """Return the targets of the other records, if `records` are some of `n` records with these."""
        fitted = (*self.one_ways, *self.tables)
        counted = Tables(records.domain, [table.attributes for table in fitted]).count([block_of(records)])
        rest = tuple(
            Marginal(
                table.domain,
                np.maximum(table.counts * (n / table.total) - counts, LEAST * (table.counts > 0)),
            )
            for table, counts in zip(fitted, counted, strict=True)
        )
        columns = len(self.one_ways)
        return Targets(rest[:columns], rest[columns:], self.zeros, self.label)
