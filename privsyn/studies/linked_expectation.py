"""Expectation for linked tables: the split of the budget and the errors, from public facts alone.

The tables are opened without a row. The budget is then divided as in a run, with the expected numbers of rows
per person in place of the noisy ones. Dependences are assumed to be typical: those of three public databases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import hypot, sqrt
from typing import TYPE_CHECKING

import numpy as np

from privsyn.errors import InputError
from privsyn.inference.rows_per_person import RowsPerPerson
from privsyn.marginals.domain import Attributes, Domain
from privsyn.methods.discovery import expected_share
from privsyn.methods.level import POSITIONS, OpenedLevel
from privsyn.methods.levels import OpenedDatabase, Share
from privsyn.methods.links import MOST_VALUES, PREVIOUS_ROWS
from privsyn.methods.persons import FOR_ROWS
from privsyn.methods.reading import OF_LINKED
from privsyn.private.bounds import MOST, classes
from privsyn.private.laws import Law, law_of
from privsyn.studies.expectation import one_way_error, pair_error, split_for
from privsyn.studies.planned_columns import planned_sizes
from privsyn.synthesis.chains import NUMBER_OF_ROWS, POSITION
from privsyn.table.database.lookups import with_lookups
from privsyn.table.database.opened import rows_of
from privsyn.table.io.csv_table import no_rows

if TYPE_CHECKING:
    from privsyn.methods.budget import Split
    from privsyn.private.randomness import Words
    from privsyn.settings import Settings
    from privsyn.table.database.declared import Database

COLUMN, PAIR, NUMBER, PARENT, NEXT = "column", "pair", "children", "parent_child", "next"

USUAL = {PAIR: 0.2, NUMBER: 0.1, PARENT: 0.15, NEXT: 0.2}
"""Assumed total variation between a table of two columns and the product of its margins. The means in three
public databases, with numbers in eighths, are .20 to .23 (two columns), .13 to .28 (children), .13 to .19
(parent and child) and .14 to .20 (next). docs/persons.md#linked-tables has planned and measured errors."""

OF_ANOTHER_ROW = "previous "
"""How the attributes of the row before are called here."""


@dataclass(frozen=True)
class TableExpectation:
    """What to expect of one table.

    Parameters
    ----------
    name : str
    parent : str or None
    rows : float
        Expected number of rows.
    share : float
        What the table gets of the budget.
    bound : int
        On what a person adds to a table of counts.
    errors : mapping of str to float
        Mean expected total variation of single columns, of pairs of columns, of pairs with a column of the
        parent and of the next row, and of the number of rows of a parent, alone and with each column of the
        parent. Those that the table does not have are left out.
    """

    name: str
    parent: str | None
    rows: float
    share: float
    bound: int
    errors: Mapping[str, float]

    def lost(self, link: str) -> float:
        """Return the error of a link over the error without it."""
        return self.errors[link] / USUAL[link]

    @property
    def links(self) -> list[str]:
        """The links of the table."""
        return [link for link in (NUMBER, PARENT, NEXT) if link in self.errors]


def _no_bits(words: int) -> Words:
    """Return no random words: nothing is drawn where there is no row."""
    if words:
        raise ValueError("a plan draws nothing")
    return np.zeros(0, np.uint64)


def opened_without_rows(settings: Settings, database: Database) -> OpenedDatabase:
    """Open the tables of a database as for a run, but without a row."""
    found: dict[str, object] = {}
    for name, table in with_lookups(database).private.items():  # a column of keys has their dtype
        if table.schema is None or (table.has_data and table.schema.says_nothing):
            raise InputError(f"table {name!r}: a plan needs the columns: declare them")
        order = () if table.only_order is None else (table.only_order,)
        found[name] = no_rows((*table.keys, *order, *table.schema.columns, *table.lookups), table.schema)
    return OpenedDatabase.of(database, found, settings, _no_bits)


def expected_rows_per_person(roots: int, mean: float, least: int, law: Law, rho: float) -> RowsPerPerson:
    """Return what a run would estimate if the numbers of rows were geometric, from `least` on.

    Noise moves no count here; it decides which classes stand out of it, as in a run.

    Parameters
    ----------
    roots : int
    mean : float
        Rows of a person.
    least : int
    law : Law
    rho : float
        Budget for both questions.

    Examples
    --------
    >>> found = expected_rows_per_person(10_000, 3.0, 1, law_of(1e-9), 1.0)
    >>> found.persons[:3].round().tolist(), round(found.total, -3)
    ([3333.0, 2222.0, 1481.0], 30000.0)
    """
    begins, more = classes(MOST), max(mean - least, 0.0)
    from_here = np.power(more / (1 + more), np.maximum(begins - least, 0))
    exact = np.rint(-roots * np.diff(from_here, append=0.0)).astype(np.int64)
    rows = RowsPerPerson.of(begins, exact, law.variance(law.scale(rho / 2, 1.0)))
    return rows.with_total(roots * mean, law.variance(law.scale(rho / 2, float(rows.largest))))


@dataclass(frozen=True, eq=False)
class ExpectedRun:
    """A run on a database that was opened without rows, and what it would know of its persons.

    Parameters
    ----------
    opened : OpenedDatabase
    law : Law
    rho : float
        Of the whole run.
    rows : mapping of a table to its expected number of rows
    rows_per_person : mapping of a child table to RowsPerPerson
    """

    opened: OpenedDatabase
    law: Law
    rho: float
    rows: Mapping[str, float]
    rows_per_person: Mapping[str, RowsPerPerson]

    @classmethod
    def of(cls, opened: OpenedDatabase, per_parent: Mapping[str, float], roots: int) -> ExpectedRun:
        """Return the run for a number of persons, and for numbers of rows per parent."""
        database, law = opened.database, law_of(opened.settings.promise[1])
        rho = opened.budget(law).questions
        means, least, found = {database.root: 1.0}, {database.root: 1}, {}
        for name, number in per_parent.items():
            table = database.tables[name]
            means[name], least[name] = number, table.least
            if table.parent is not None:
                means[name], least[name] = number * means[table.parent], table.least * least[table.parent]
            each = FOR_ROWS * rho / len(per_parent)
            found[name] = expected_rows_per_person(roots, means[name], least[name], law, each)
        return cls(opened, law, rho, {name: roots * mean for name, mean in means.items()}, found)

    @property
    def expected(self) -> tuple[TableExpectation, ...]:
        """What to expect of each table."""
        shares = self.opened.shares(self.rows_per_person, self.law, (1 - FOR_ROWS) * self.rho)
        counts: dict[str, _Counts] = {}
        for opened in self.opened.levels:
            level = opened.with_most(self.opened.numbers_of(opened.name, self.rows_per_person))
            counts[level.name] = self._counts(level, shares, counts.get(level.table.parent or ""))
        return tuple(self._expected(level, shares[level.name], counts) for level in self.opened.levels)

    def _counts(self, level: OpenedLevel, shares: Mapping[str, Share], parent: _Counts | None) -> _Counts:
        """Return what is counted of a table, as `OpenedDatabase.learn` and `methods.links` do."""
        share, open_schema = shares[level.name], level.opened.schema
        codec, sizes = planned_sizes(open_schema, level.opened.rows.head)
        bound, rows, part, given = 1, self.rows[level.name], 1.0, dict[str, int]()
        if parent is not None:
            of, person = level.opened.sizes_and_contribution(
                self.rows_per_person[level.name], self.law, share.cost, level.pairs
            )
            bound, part = person.most, person.of_tables or 1.0
            rows *= 1.0 if person.of_columns is None else person.of_columns
            given |= {NUMBER_OF_ROWS: len(of.begins)} if of else {}
            given |= parent.below
            given |= {POSITION: POSITIONS} if level.table.order is not None else {}
        finding = expected_share(open_schema, max(round(rows), 1), share.cost, self.law, bound)
        own = dict(zip(codec.domain.names, sizes, strict=True))
        ordered = {name for name, of in zip(own, codec.domain.ordered, strict=True) if of > 2}
        below = max((shares[child].groups for child in level.children), default=0)
        return _Counts(
            self.law,
            self.law.of_row((1 - finding) * share.cost, bound),
            max(rows, 1.0),
            bound,
            part,
            own,
            {name: min(size, share.groups) if name in ordered else size for name, size in own.items()},
            given,
            {f"{level.name}.{name}": _grouped(size, below, name in ordered) for name, size in own.items()}
            | {name: size for name, size in given.items() if name not in (NUMBER_OF_ROWS, POSITION)},
            {
                OF_ANOTHER_ROW + name: _grouped(size, share.groups, name in ordered) + 1
                for name, size in own.items()
                if parent is not None
            },
            share.lags,
        )

    def _expected(self, level: OpenedLevel, share: Share, counts: Mapping[str, _Counts]) -> TableExpectation:
        """Return the mean errors of a table."""
        own, parent = counts[level.name], level.table.parent
        numbers = {rows_of(child) for child in level.children}
        columns = [name for name in own.own if name not in numbers]
        errors = {
            COLUMN: [own.alone[name] for name in columns],
            PAIR: [own.error(pair, USUAL[PAIR]) for pair in combinations(columns, 2)],
        }
        if parent is not None:
            above, number = counts[parent], rows_of(level.name)
            kept = [name for name in above.own if not any(name == rows_of(t) for t in self.rows)]
            errors[PARENT] = [
                own.error((name, f"{parent}.{other}"), USUAL[PARENT])
                for name, other in product(columns, kept)
            ]
            pairs = product(columns, columns)
            errors[NEXT] = [own.error((name, OF_ANOTHER_ROW + other), USUAL[NEXT]) for name, other in pairs]
            errors[NUMBER] = [above.alone[number]]
            errors[NUMBER] += [above.error((name, number), USUAL[NUMBER]) for name in kept]
        means = {kind: float(np.mean(each)) for kind, each in errors.items() if each}
        rows, cost = self.rows[level.name], share.cost / self.rho
        return TableExpectation(level.name, parent, rows, cost, own.bound, means)


def _grouped(size: int, groups: int, ordered: bool) -> int:
    """Return the number of groups of a column of another row; see `groups_at_level`."""
    return min(size, groups if ordered else MOST_VALUES + 1)


@dataclass(frozen=True, eq=False)
class _Counts:
    """What is counted of a table, and the errors that this leaves.

    Parameters
    ----------
    law : Law
    rho : float
        Budget of a row.
    rows : float
        Number of rows that are counted in columns.
    bound : int
        Of a person.
    part : float
        Rows that are counted in a table of two columns, for each that is counted in a column.
    own, coarse : mapping of an own column to its number of codes, and to that in tables of two columns
    given : mapping of an attribute of the person, or of a row above, to its number of codes
    below : mapping of each attribute that rows below know to its number of codes
    previous : mapping of an attribute of the row before to its number of codes
    lags : int
        See `Share`.
    """

    law: Law
    rho: float
    rows: float
    bound: int
    part: float
    own: Mapping[str, int]
    coarse: Mapping[str, int]
    given: Mapping[str, int]
    below: Mapping[str, int]
    previous: Mapping[str, int]
    lags: int

    @cached_property
    def _split(self) -> tuple[Split, float]:
        """The parts of the budget, and what of it a pair gets, of those that weigh 1."""
        counted = {**self.coarse, **self.given}
        split, _ = split_for(Domain(tuple(counted), tuple(counted.values())), self.rho, self.rows, self.law)
        pairs = [*combinations(self.own, 2), *product(self.own, [*self.given, *self.previous])]
        weights = sum(map(_weight, pairs)) + (self.lags - 1) * len(self.own)
        left = split.pairs * (1 - PREVIOUS_ROWS * bool(self.previous)) + split.second_look
        return split, left / max(weights, 1.0)

    @cached_property
    def alone(self) -> dict[str, float]:
        """The error of each own column."""
        return self._of_columns(self.own)

    @cached_property
    def _margins(self) -> dict[str, float]:
        """The errors of columns and given attributes in as many groups as a pair has."""
        return self._of_columns({**self.coarse, **self.given})

    def _of_columns(self, sizes: Mapping[str, int]) -> dict[str, float]:
        """Return the errors of columns of these sizes. Each pair also measures its two columns."""
        (split, each), every = self._split, [*self.own.values(), *self.given.values()]
        of_pairs = self.part**2 * self.law.rho(each) * sum(1 / size for size in every)
        of_columns = sum(self.law.rho(cost / len(every)) for cost in (split.first_look, split.one_ways))
        sigma = 1 / sqrt(2 * (of_columns + of_pairs))
        return {name: one_way_error(size, sigma, self.rows) for name, size in sizes.items()}

    def error(self, pair: Attributes, dependence: float) -> float:
        """Return the expected error of the table of two attributes, with the chance of their margins."""
        sizes = {**self.coarse, **self.given, **self.previous}
        cost = self.part**2 * _weight(pair) * self._split[1]
        between = pair_error(tuple(sizes[name] for name in pair), cost, self.rows, self.law, dependence)
        margins = (self._margins[name.removeprefix(OF_ANOTHER_ROW)] for name in pair)
        return hypot(between, *margins)


def _weight(pair: Attributes) -> float:
    """Return how the budget of a pair is in proportion to that of others, with errors that weigh more."""
    return float(OF_LINKED ** (2 / 3)) if NUMBER_OF_ROWS in pair else 1.0
