"""KnownTotals: tables of exact counts that are public before a run, such as those of a census."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from privsyn.marginals.domain import Attributes, Codes, Counts, Domain, Floats, Mask
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.recoding import Merging

EXACT: Floats = np.zeros(())
"""The variance of an exact count."""

VARIANCE_OF_SUMS: Floats = np.array(0.01)
"""Records squared: the variance that an exact sum of codes is given among noisy counts of these codes. With 0
their covariance could not be computed. Tables are fitted to the exact sums afterwards."""

ITERATIONS = 2000  # most iterations of fitting a table to exact counts
MET = 1e-12  # of the total: a smaller gap is rounding
STALLED = 1e-6  # stop when an iteration reduces the sum of all gaps by less than this share
REACHED = 1e-9  # of the total: with a larger gap after all iterations, zeros of the table were in the way
OPENED = 1e-6  # share of independence by which a table is then mixed, so that no cell is 0 for no reason


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

    def inside(self, attributes: Attributes) -> tuple[Measurement, ...]:
        """Return what is known of `attributes`: of each table the counts over those of them that it has."""
        tables: dict[Attributes, list[Measurement]] = {}
        for table in self.tables:
            shared = tuple(name for name in attributes if name in table.attributes)
            counts, before = _by_codes(table.project(shared)), tables.get(shared, [])
            if not counts.grouping:
                tables[shared] = [counts]
            elif all(measured.grouping for measured in before):
                tables[shared] = [*before, counts]
        return tuple(chain.from_iterable(tables.values()))

    def sets(self, domain: Domain) -> tuple[Attributes, ...]:
        """Return each pair of attributes of a table, then all attributes of each larger table.

        Attributes are in the order of `domain`.
        """
        sets = [tuple(name for name in domain if name in table.attributes) for table in self.tables]
        pairs = chain.from_iterable(combinations(names, 2) for names in sets)
        return tuple(dict.fromkeys([*pairs, *(names for names in sets if len(names) > 2)]))

    def merge(self, merging: Merging) -> KnownTotals:
        """Return the tables by merged codes, with the domain of these.

        Raises
        ------
        ValueError
            If a merged code joins codes of two cells: its exact count in each is then unknown.
        """
        return KnownTotals(tuple(_merged(table, merging) for table in self.tables))

    def divide(self, merging: Merging) -> Merging:
        """Return the merging with its merged codes divided until none joins codes of two cells.

        Examples
        --------
        >>> age = Domain(("age",), (4,), (4,))
        >>> halves = Domain(("age",), (2,), (2,))
        >>> merging = Merging(age, halves, (np.array([0, 0, 1, 1]),), (np.full(4, 0.5),))
        >>> bands = Grouping((np.array([0, 1, 1, 1]),))
        >>> known = Measurement(Marginal(halves, np.array([5.0, 4.0])), EXACT, bands)
        >>> KnownTotals((known,)).divide(merging).groups[0].tolist()
        [0, 1, 2, 2]
        """
        groups, shares, ordered = [], [], []
        for name, before, weights in zip(merging.original, merging.groups, merging.shares, strict=True):
            count = merging.original.ordered_of[name]
            group, tables = before, self.about((name,))
            for table in tables:
                group = _divided(group, table.grouping.of_codes(before.shape)[0], count)
            sums = np.bincount(group, weights)[group]
            even = 1 / np.bincount(group)[group]
            groups.append(group)
            shares.append(np.divide(weights, sums, out=even, where=sums > 0) if tables else weights)
            ordered.append(int(group[count - 1]) + 1 if count else 0)
        sizes = tuple(int(group.max()) + 1 for group in groups)
        merged = Domain(merging.original.names, sizes, tuple(ordered))
        return Merging(merging.original, merged, tuple(groups), tuple(shares))

    def sums(self, domain: Domain) -> tuple[Measurement, ...]:
        """Return the exact sums of codes of each attribute of `domain` that is not covered.

        They are answers about groups of codes, with `VARIANCE_OF_SUMS`: about the group of all codes, if a
        table does not have the attribute.

        Examples
        --------
        >>> age = Domain(("age",), (3,))
        >>> young = Grouping((np.array([0, 0, 1]),))
        >>> known = Measurement(Marginal(Domain(("age",), (2,)), np.array([6.0, 4.0])), EXACT, young)
        >>> (answer,) = KnownTotals((known,)).sums(age)
        >>> answer.marginal.counts.tolist(), answer.grouping.groups[0].tolist()
        ([6.0, 4.0], [0, 0, 1])
        """
        answers = []
        for name, size in domain.size_of.items():
            for table in () if self.covers((name,)) else self.inside((name,)):
                groups = table.grouping.groups or (np.zeros(size, np.int32),)
                counts = table.marginal.counts.reshape(-1)
                of_groups = Marginal(Domain((name,), (len(counts),)), counts)
                answers.append(Measurement(of_groups, VARIANCE_OF_SUMS, Grouping(groups)))
        return tuple(answers)

    def fit(
        self, table: Marginal, sides: tuple[Marginal, ...] = (), possible: Mask | None = None
    ) -> Marginal:
        """Scale a table to its exact counts and to other margins, by iterative proportional fitting.

        Parameters
        ----------
        table : Marginal
            Not negative.
        sides : tuple of Marginal, optional
            Other margins, which agree with the exact counts.
        possible : array of bool of the table's shape, optional
            Where a cell may hold a record. Default: everywhere.
        """
        if not self:
            return table
        margins = (*(Measurement(side, EXACT) for side in sides), *self.inside(table.attributes))
        required = [_required(table.domain, margin) for margin in margins]
        counts, missed = _scaled(table.counts, required, self.total)
        if missed > REACHED * self.total:
            opened = np.full(table.domain.shape, OPENED * self.total / table.domain.cells)
            counts, _ = _scaled(
                table.counts + (opened if possible is None else opened * possible), required, self.total
            )
        return Marginal(table.domain, counts)


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
        if len(group) != len(merged):
            raise ValueError(f"known totals of other codes of {name!r}")
        cell[merged] = group
        if (cell[merged] != group).any():
            raise ValueError(f"merged codes of {name!r} that join cells of known totals")
        cells.append(cell)
    counts = _by_codes(Measurement(table.marginal, EXACT, Grouping(tuple(cells))))
    if counts.grouping:
        return counts
    return Measurement(Marginal(merging.merged.project(table.attributes), counts.marginal.counts), EXACT)


def _divided(group: Codes, cells: Codes, ordered: int) -> Codes:
    """Return groups of codes, divided by their cells: along an order where either changes, else by both."""
    steps = (np.diff(group[:ordered]) != 0) | (np.diff(cells[:ordered]) != 0)
    runs = np.concatenate([[0], np.cumsum(steps)])[:ordered]
    both = group[ordered:].astype(np.int64) * (int(cells.max()) + 1) + cells[ordered:]
    nominal = np.unique(both, return_inverse=True)[1].reshape(-1) + runs.max(initial=-1) + 1
    return np.concatenate([runs, nominal]).astype(np.int32)


Required = tuple[tuple[int, ...], Grouping, Counts]
"""Axes of a table that are summed out, the groups of the codes along the others, and the sums required."""


def _required(domain: Domain, measured: Measurement) -> Required:
    """Return what a table over `domain` has to meet."""
    names = tuple(name for name in domain if name in measured.attributes)
    summed = tuple(axis for axis, name in enumerate(domain) if name not in names)
    measured = measured.project(names)
    return summed, measured.grouping, measured.marginal.counts


def _scaled(counts: Counts, required: Sequence[Required], total: float) -> tuple[Counts, float]:
    """Return counts scaled to the required sums, and the largest gap before the last iteration."""
    missed = gaps = float("inf")
    for _ in range(ITERATIONS):
        before, gaps, missed = gaps, 0.0, 0.0
        for summed, grouping, target in required:
            sums = grouping.join(np.asarray(counts.sum(axis=summed)))
            gap = np.abs(sums - target)
            gaps, missed = gaps + float(gap.sum()), max(missed, float(gap.max()))
            ratio = np.divide(target, sums, out=np.zeros_like(sums), where=sums > 0)
            ratio = ratio[np.ix_(*grouping.groups)] if grouping else ratio
            counts = counts * np.expand_dims(ratio, summed)
        if missed <= MET * total or before - gaps <= STALLED * gaps:
            break
    return counts, missed


NO_TOTALS = KnownTotals(())
