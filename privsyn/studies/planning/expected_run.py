"""What to expect of linked tables: the split of the budget and the errors, from public facts alone.

The tables are opened without a row. The budget is then divided as in a run, with the expected numbers of rows
per person in place of the noisy ones. Dependences are assumed to be typical: those of three public databases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from privsyn.arguments import check_finite
from privsyn.errors import InputError, did_you_mean, spelled
from privsyn.inference.rows_per_person import RowsPerPerson
from privsyn.methods.budget import FOR_LASTING, FOR_ROWS, TablePlan
from privsyn.methods.budget_of_tables import BudgetOfTables
from privsyn.methods.complete_schema import expected_share
from privsyn.methods.previous_siblings import MOST_VALUES
from privsyn.methods.run_of_tables import Run
from privsyn.methods.table_of_run import POSITIONS, RunTable
from privsyn.private.contribution import MOST, classes
from privsyn.private.noise_laws import Law, law_of
from privsyn.studies.planning.columns import planned_sizes
from privsyn.studies.planning.counted_table import OF_PREVIOUS_ROW, CountedTable
from privsyn.studies.planning.expectation import (
    LARGEST,
    LOST_IF_KEPT,
    NEXT,
    NUMBER,
    PARENT,
    STEP,
    Expectation,
    TableExpectation,
    expected_of,
)
from privsyn.studies.planning.plan import Plan
from privsyn.synthesis.chains import NUMBER_OF_ROWS, POSITION
from privsyn.table.database.derived_columns import most_rows_by_rules, rows_of
from privsyn.table.database.lookups import with_lookups
from privsyn.table.io.csv_table import no_rows

if TYPE_CHECKING:
    from privsyn.marginals.domain import Floats, Ints
    from privsyn.private.randomness import Words
    from privsyn.settings import Settings
    from privsyn.table.database.database import Database
    from privsyn.table.database.declared import Table

ASSUMED_PER_PARENT = 3.0
"""Assumed number of rows of a child table for each row of its parent, if none is given."""

ASSUMED_FURTHER_PERSONS = 1.0
"""Assumed number of rows of a second table of persons for each row of the first, if none is given."""


def opened_without_rows(settings: Settings, database: Database) -> Run:
    """Open the tables of a database as for a run, but without a row."""

    def no_bits(words: int) -> Words:
        if words:
            raise ValueError("a plan draws nothing")
        return np.zeros(0, np.uint64)

    frames: dict[str, object] = {}
    for name, table in with_lookups(database).private.items():  # a column of keys has their dtype
        if table.schema is None or (table.has_data and table.schema.says_nothing):
            raise InputError(f"table {name!r}: a plan needs the columns: declare them")
        order = () if table.only_order is None else (table.only_order,)
        frames[name] = no_rows((*table.keys, *order, *table.schema.columns, *table.lookups), table.schema)
    return Run.of(database, frames, settings, no_bits)


def expected_rows_per_person(roots: int, mean: float, fewest: int, law: Law, rho: float) -> RowsPerPerson:
    """Return what a run would estimate if the numbers of rows were geometric, from `fewest` on.

    Noise moves no count here; it decides which classes stand out of it, as in a run.

    Parameters
    ----------
    roots : int
    mean : float
        Rows of a person.
    fewest : int
    law : Law
    rho : float
        Budget for both questions.

    Examples
    --------
    >>> found = expected_rows_per_person(10_000, 3.0, 1, law_of(1e-9), 1.0)
    >>> found.persons[:3].round().tolist(), round(found.total, -3)
    ([3333.0, 2222.0, 1481.0], 30000.0)
    """
    begins = classes(MOST)
    from_here = share_with(begins, mean, fewest)
    exact = np.rint(-roots * np.diff(from_here, append=0.0)).astype(np.int64)
    rows = RowsPerPerson.of(begins, exact, law.variance(law.scale(rho / 2, 1.0)))
    return rows.with_total(roots * mean, law.variance(law.scale(rho / 2, float(rows.largest))))


def share_with(rows: Ints, mean: float, fewest: int) -> Floats:
    """Return the share of the persons that have some number of rows, or more, if the numbers are geometric.

    >>> share_with(np.array([1, 2, 3]), 2.0, 1).tolist()
    [1.0, 0.5, 0.25]
    """
    more = max(mean - fewest, 0.0)
    return np.asarray(np.power(more / (1 + more), np.maximum(rows - fewest, 0)))


@dataclass(frozen=True, eq=False)
class ExpectedRun:
    """A run on a database that was opened without rows, and what it would know of its persons.

    Parameters
    ----------
    opened : Run
    law : Law
    rho : float
        Of the whole run.
    rows : mapping of a table to its expected number of rows
    rows_per_person : mapping of a child table to RowsPerPerson
    fewest : mapping of a table to the least number of rows of a person
    """

    opened: Run
    law: Law
    rho: float
    rows: Mapping[str, float]
    rows_per_person: Mapping[str, RowsPerPerson]
    fewest: Mapping[str, int]

    @classmethod
    def of(cls, opened: Run, per_parent: Mapping[str, float], roots: int) -> ExpectedRun:
        """Return the run for a number of persons, and for numbers of rows per parent."""
        database, law = opened.database, law_of(opened.settings.promise[1])
        rho = opened.budget(law).rho_of_questions
        means, fewest = dict.fromkeys(database.roots, 1.0), dict.fromkeys(database.roots, 1)
        rows_per_person = dict[str, RowsPerPerson]()
        for name, number in per_parent.items():
            table = database.tables[name]
            if table.parent is None:  # its rows are further persons, each there once
                means[name] = number
                continue
            means[name] = number * means[table.parent]
            fewest[name] = table.fewest_children * fewest[table.parent]
            cost = FOR_ROWS * rho / len(database.below)
            rows_per_person[name] = expected_rows_per_person(roots, means[name], fewest[name], law, cost)
        rows = {name: roots * mean for name, mean in means.items()}
        return cls(opened, law, rho, rows, rows_per_person, fewest)

    def _counted(self, name: str, bound: int) -> float:
        """Return how many rows of a table are counted, at most `bound` of each person.

        The noisy numbers of rows do not say it: where noise hides how many persons have many rows, they have
        few, and all rows seem to be counted.
        """
        roots = self.rows[self.opened.database.root]
        shares = share_with(np.arange(1, bound + 1), self.rows[name] / roots, self.fewest[name])
        return min(roots * float(shares.sum()), self.rows[name])

    @property
    def expected(self) -> tuple[TableExpectation, ...]:
        """What to expect of each table."""
        candidates = self.opened.candidates(self.rows_per_person, self.law, self.rho)
        rest = 1 - FOR_ROWS - FOR_LASTING * bool(candidates)
        database, tables = self.opened.database, self.opened.tables
        plans = BudgetOfTables(database, tables, self.rows_per_person, self.law, rest * self.rho).plans
        counts: dict[str, CountedTable] = {}
        for opened in tables:
            linked = opened if plans[opened.name].lags else opened.without_links()
            level = linked.with_numbers_of_rows(
                self.opened.numbers_of_rows(opened.name, self.rows_per_person)
            )
            counts[level.name] = self._counts(level, plans, counts.get(level.declared.parent or ""))
        return tuple(self._expected(level, plans[level.name], counts) for level in tables)

    def _counts(
        self, level: RunTable, plans: Mapping[str, TablePlan], parent: CountedTable | None
    ) -> CountedTable:
        """Return what is counted of a table, as `Run.learn` and `methods.links` do."""
        plan, open_schema = plans[level.name], level.opened.schema
        codec, sizes = planned_sizes(open_schema, level.opened.codec(open_schema.fill({}, {})))
        bound, rows, pair_rows, above = 1, self.rows[level.name], 1.0, dict[str, int]()
        if parent is not None:
            person_rows, person = level.opened.classes_and_contribution(
                self.rows_per_person[level.name], self.law, plan.rho, level.pairs
            )
            bound, pair_rows = person.limit, person.of_tables or 1.0
            rows = self._counted(level.name, bound)
            above |= {NUMBER_OF_ROWS: len(person_rows.begins)} if person_rows else {}
            if level.has_links:
                above |= parent.below
                above |= {POSITION: POSITIONS} if level.declared.order is not None else {}
        finding = expected_share(open_schema, max(round(rows), 1), plan.rho, self.law, bound)
        columns = dict(zip(codec.domain.names, sizes, strict=True))
        ordered = {name for name, size in codec.domain.ordered_of.items() if size > 2}
        most_below = max((plans[child].groups for child in level.children), default=0)
        below = {f"{level.name}.{c}": _grouped(size, most_below, c in ordered) for c, size in columns.items()}
        below |= {} if parent is None else parent.below
        previous = {
            OF_PREVIOUS_ROW + name: _grouped(size, plan.groups, name in ordered) + 1
            for name, size in columns.items()
        }
        return CountedTable(
            self.law,
            self.law.of_row((1 - finding) * plan.rho, bound),
            max(rows, 1.0),
            columns,
            {name: min(size, plan.groups) if name in ordered else size for name, size in columns.items()},
            bound=bound,
            pair_rows=pair_rows,
            above=above,
            below=below,
            previous=previous if parent is not None and level.has_links else {},
            lags=plan.lags,
            weights=level.above.weights,
            finding=finding,
            ordered=frozenset(ordered),
        )

    def _expected(
        self, level: RunTable, plan: TablePlan, counts: Mapping[str, CountedTable]
    ) -> TableExpectation:
        """Return the mean errors of a table."""
        counted, parent = counts[level.name], level.declared.parent
        numbers = {rows_of(child) for child in level.children}
        columns = [name for name in counted.sizes if name not in numbers]
        errors = dict[str, list[float]]()
        if parent is not None:
            above, number = counts[parent], rows_of(level.name)
            numbers = {rows_of(table) for table in self.rows}
            columns_above = [name for name in above.sizes if name not in numbers]
            pairs = product(columns, (f"{parent}.{name}" for name in columns_above))
            errors[PARENT] = [*map(counted.link_error, pairs)]
            pairs = product(columns, (OF_PREVIOUS_ROW + name for name in columns))
            errors[NEXT] = [*map(counted.link_error, pairs)]
            errors[NUMBER] = [above.one_way_errors[number]]
            errors[NUMBER] += [above.link_error((name, number)) for name in columns_above]
        expected = expected_of(counted, columns, errors, rows=self.rows[level.name])
        return replace(expected, name=level.name, parent=parent, share=plan.rho / self.rho)


def _grouped(size: int, groups: int, ordered: bool) -> int:
    """Return the number of groups of a column of another row; see `groups_at_level`."""
    return min(size, groups if ordered else MOST_VALUES + 1)


def plan_of_tables(
    settings: Settings,
    database: Database,
    numbers: Sequence[int],
    rows_per_parent: Mapping[str, float] | None,
    *,
    rows_given: bool,
) -> Plan:
    """Plan a run on linked tables.

    Parameters
    ----------
    settings : Settings
    database : Database
    numbers : sequence of int
        Numbers of rows of the table without a parent to plan for.
    rows_per_parent : mapping of str to float, optional
        See `plan`.
    rows_given : bool
        Whether the caller gave the number of rows.
    """
    declared, children = dict(rows_per_parent or {}), (*database.roots[1:], *database.below)
    for name in declared:
        if name not in children:
            problem = f"{name!r} is no table with a parent, and no second table of persons"
            raise InputError(f"{spelled('rows_per_parent')}: {problem}{did_you_mean(name, children)}")
    per_parent = {name: _per_parent(name, database.tables[name], declared.get(name)) for name in children}
    opened = opened_without_rows(settings, database)

    def expected(epsilon: float, roots: int) -> tuple[TableExpectation, ...]:
        run = replace(opened, settings=replace(settings, epsilon=epsilon))
        return ExpectedRun.of(run, per_parent, roots).expected

    expectations = []
    for roots in numbers:
        tables, tried = expected(settings.promise[0], roots), settings.promise[0]
        lacking = _links(tables) - _links(tables, LOST_IF_KEPT)
        enough = dict.fromkeys(sorted(lacking), inf)
        while lacking and tried * STEP <= LARGEST:
            tried *= STEP
            links_kept = lacking & _links(expected(tried, roots), LOST_IF_KEPT)
            enough |= dict.fromkeys(links_kept, tried)
            lacking -= links_kept
        expectations.append(Expectation(roots, tables, enough))
    law = law_of(settings.promise[1])
    return Plan(
        *settings.promise,
        opened.budget(law).rho_of_questions,
        {},
        (),
        untyped=False,
        expectations=tuple(expectations),
        rows_given=rows_given,
        per_parent=per_parent,
        assumed=tuple(name for name in per_parent if name not in declared),
    )


def _per_parent(name: str, table: Table, number_declared: float | None) -> float:
    """Return the number of rows for each row of the parent, or of the root, within what the schema says."""
    fewest, declared = table.children or (0, None)
    rules = most_rows_by_rules(table, {} if table.schema is None else table.schema.coded)
    largest = min(declared or inf, rules)
    if number_declared is None:
        assumed = ASSUMED_FURTHER_PERSONS if table.parent is None else ASSUMED_PER_PARENT
        return min(max(assumed, fewest), largest)
    number = check_finite(spelled("rows_per_parent"), number_declared)
    if not max(fewest, 0) <= number <= largest or number <= 0:
        bounded = table.children is not None or largest < inf
        says = "the schema says otherwise (children, or a rule)" if bounded else "give a number above 0"
        raise InputError(f"{spelled('rows_per_parent')}: {name} {number:g}: {says}")
    return number


def _links(tables: Sequence[TableExpectation], lost: float = inf) -> set[tuple[str, str]]:
    """Return the links of which at most this is lost, each with its table."""
    return {(table.name, link) for table in tables for link in table.links if table.lost(link) <= lost}
