"""KnownTotals: tables of exact counts that are public before a run, such as those of a census."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privsyn.marginals.domain import Attributes, Codes, Floats
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.recoding import Merging

EXACT: Floats = np.zeros(())
"""The variance of an exact count."""


@dataclass(frozen=True, eq=False)
class KnownTotals:
    """Tables of exact counts that are public.

    Parameters
    ----------
    tables : tuple of Measurement
        Whole counts of at least 0, in records, with variance 0. All have one total. The `grouping` of a table
        has for each of its attributes the cell of each code. Sizes and codes are those of the domain in which
        rows are encoded, before any merging; in `merge` those after it.

    Raises
    ------
    ValueError
        If a count is not whole or is negative, if a variance is not 0, if two tables have another total, or
        if there is no record.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> domain = Domain(("sex", "age"), (2, 3))
    >>> table = Measurement(Marginal(domain, np.array([[4, 0, 3], [2, 2, 9]])), EXACT)
    >>> totals = KnownTotals((table,))
    >>> totals.total, totals.attributes, totals.covers(("age",)), totals.covers(("age", "region"))
    (20.0, ('sex', 'age'), True, False)
    >>> totals.counts(("age",)).counts.tolist()
    [6.0, 2.0, 12.0]
    """

    tables: tuple[Measurement, ...] = ()

    def __post_init__(self) -> None:
        tables = tuple(map(_by_codes, self.tables))
        object.__setattr__(self, "tables", tables)
        for table in tables:
            counts = table.marginal.counts
            if not ((counts >= 0) & (counts == np.floor(counts)) & np.isfinite(counts)).all():
                raise ValueError(f"counts of {table.attributes} that are no whole numbers of at least 0")
            if table.variance.any():
                raise ValueError(f"counts of {table.attributes} that are not exact")
        if tables and ({table.marginal.total for table in tables} != {self.total} or self.total < 1):
            raise ValueError("tables of exact counts have one total, of at least one record")

    def __bool__(self) -> bool:
        return bool(self.tables)

    @property
    def total(self) -> float:
        """The exact number of records; an ``IndexError`` if there is no table."""
        return self.tables[0].marginal.total

    @property
    def attributes(self) -> Attributes:
        """All attributes that a table has, each once."""
        return tuple(dict.fromkeys(name for table in self.tables for name in table.attributes))

    def about(self, attributes: Attributes) -> tuple[Measurement, ...]:
        """Return the counts over `attributes` of each table that has them all, in groups of their codes."""
        return tuple(
            _by_codes(table.project(attributes))
            for table in self.tables
            if set(attributes).issubset(table.attributes)
        )

    def covers(self, attributes: Attributes) -> bool:
        """Return whether the count of each combination of codes of `attributes` is known."""
        return any(not table.grouping for table in self.about(attributes))

    def counts(self, attributes: Attributes) -> Marginal:
        """Return the counts over attributes that are covered, by code; a ``KeyError`` if they are not."""
        for table in self.about(attributes):
            if not table.grouping:
                return table.marginal
        raise KeyError(attributes)

    def merge(self, merging: Merging) -> KnownTotals:
        """Return the tables by merged codes.

        Raises
        ------
        ValueError
            If a merged code joins codes of two cells: its exact count in each is then unknown.
        """
        return KnownTotals(tuple(_merged(table, merging) for table in self.tables))


def _by_codes(table: Measurement) -> Measurement:
    """Return a table in groups of codes without its groups, if each code is a group of its own."""
    groups = table.grouping.groups
    if not groups or any(len(np.unique(group)) < len(group) for group in groups):
        return table
    domain = table.marginal.domain
    ordered = zip(groups, domain.ordered, strict=True)
    if any((group[:count] != np.arange(count)).any() for group, count in ordered):
        raise ValueError(f"cells of {table.attributes} in another order than their codes")
    return Measurement(Marginal(domain, table.marginal.counts[np.ix_(*groups)]), EXACT)


def _merged(table: Measurement, merging: Merging) -> Measurement:
    """Return a table with the cell of each merged code."""
    cells: list[Codes] = []
    groups = table.grouping.of_codes(table.marginal.counts.shape)
    for name, group in zip(table.attributes, groups, strict=True):
        merged = merging.group_of[name]
        cell = np.zeros(merging.merged.size_of[name], np.int32)
        cell[merged] = group
        if (cell[merged] != group).any():
            raise ValueError(f"merged codes of {name!r} that join cells of known totals")
        cells.append(cell)
    return Measurement(table.marginal, EXACT, Grouping(tuple(cells)))


NO_TOTALS = KnownTotals(())
