"""Plan a run: the split of its budget, its noise, error, time and memory. It reads no row.

A plan uses only public facts: the schema, the names and types of the columns, and a rough number of rows that
the caller gives. Distributions are assumed to be typical. How strongly columns depend on each other is not
public, so no single number is near the error of pairs of every table: it has a range. Time and memory are
rough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.arguments import check_whole
from privsyn.errors import InputError, spelled
from privsyn.marginals.domain import Domain
from privsyn.marginals.known_totals import NO_TOTALS, KnownTotals
from privsyn.methods.budget import FOR_ROWS
from privsyn.methods.complete_schema import expected_share, reserved_delta
from privsyn.methods.run_encoding import RunEncoding
from privsyn.private.accounting import rho_for
from privsyn.private.noise_laws import Law, law_of
from privsyn.release.acceptance.criteria import check_accept
from privsyn.release.acceptance.layout import check_testable
from privsyn.settings import Settings
from privsyn.studies.planning.columns import (
    Named,
    notes,
    planned_columns,
    planned_domain,
    planned_totals,
)
from privsyn.studies.planning.counted_table import CountedTable
from privsyn.studies.planning.criteria import PlannedCriterion, planned_criteria
from privsyn.studies.planning.expectation import Expectation, expected_of
from privsyn.studies.planning.expected_run import ASSUMED_PER_PARENT, plan_of_tables
from privsyn.studies.planning.plan import Plan, errors_in_words
from privsyn.table.database.database import ROWS as ROWS_OF_PERSONS
from privsyn.table.database.database import Database
from privsyn.table.database.yaml_form import as_database
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.io.formats import is_typed
from privsyn.table.schema.schema import Schema, declared
from privsyn.table.schema.yaml_file import SchemaOrPath
from privsyn.table.totals.totals import NOTHING_KNOWN

if TYPE_CHECKING:
    import pandas as pd

    from privsyn.studies.planning.public_gain import PublicGain

ROWS = (1_000, 10_000, 100_000, 1_000_000)
"""Default numbers of rows to plan for."""

ASSUMED_BOUND = 3
"""Assumed bound on a person's rows, if none is given. Runs choose 1 to 5 for persons with 3 rows on average,
at epsilon 0.3 to 3, and 1,000 to 100,000 persons."""

ASSUMED_ROWS = 20  # of a person, all of which the tests of criteria compare
USUAL_DELTA = 1e-9
"""The default delta, with which a plan for pure epsilon is compared."""


def plan(
    table: Any = None,
    epsilon: float = 1.0,
    delta: float = 1e-9,
    schema: SchemaOrPath | Database | None = None,
    *,
    rows: int | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    identifiers: bool = False,
    order: str | None = None,
    target: str | None = None,
    accept: object = None,
    important: Sequence[Sequence[str]] | None = None,
    nullable: bool = True,
    totals: object = None,
    rows_per_parent: Mapping[str, float] | None = None,
    public: Any = None,
    allow_weak_privacy: bool = False,
) -> Plan:
    """Plan ``PrivSyn(epsilon, delta, schema).fit(table)`` from public facts alone.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or a path to a .csv, .csv.gz or .parquet file, optional
        Only the names and dtypes of its columns are read; of a CSV file, the header. Default: the columns of
        the schema. A Schema or a Database is accepted here, too.
    epsilon, delta, schema, unit, rows_per_unit, identifiers, order, target, important, nullable, totals,
    accept, allow_weak_privacy
        As for PrivSyn. With `identifiers` persons and their rows are planned as two linked tables, called
        persons and rows.
    rows : int, optional
        A rough, public number of rows: do not count them. Default: from a thousand to a million. With a
        database, of the table without a parent.
    rows_per_parent : mapping of str to float, optional
        With a database, for each child table a rough, public number of rows for each row of its parent.
        Default: 3. For a second table of persons, the number for each row of the first. Default: 1.
    public : table, or the path of one, optional
        A table that is public, such as last year's: the plan says what it would gain if the private table
        is like it. Its rows are read, and a run is simulated on half of them. It needs `rows`.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If a setting is impossible.

    Examples
    --------
    >>> from privsyn import Categorical, Numerical
    >>> schema = Schema({"age": Numerical(16, 100, integer=True), "sex": Categorical(["Female", "Male"])})
    >>> planned = plan(schema, 1.0, rows=10_000)
    >>> planned.sizes, f"{planned.expectations[0].pair_error:.3f}"
    ({'age': 33, 'sex': 3}, '0.021')
    """
    if isinstance(table, Schema | Database):
        if schema is not None:
            raise InputError("two schemas: give a table and a schema, or the schema alone")
        table, schema = None, table
    database = as_database(schema)
    schema, is_alone = database.schema, database.single is not None
    if is_alone and table is None and declared(schema) is None:
        raise InputError("a plan needs the columns: give a table, a schema, or both")
    settings = Settings(
        epsilon,
        delta,
        database,
        unit=unit,
        rows_per_unit=rows_per_unit,
        identifiers=identifiers,
        order=order,
        target=target,
        important=important,
        nullable=nullable,
        totals=totals,
        accept=accept,
        allow_weak_privacy=allow_weak_privacy,
    )
    _check_numbers(settings, rows, public)
    schema = schema if nullable else settings.declared.public or schema
    numbers = ROWS if rows is None else (check_whole("rows", rows, minimum=1),)
    if not is_alone:
        if table is not None:
            raise InputError("several tables are planned from their schema alone: leave out the data")
        return plan_of_tables(settings, database, numbers, rows_per_parent, rows_given=rows is not None)
    if identifiers:
        return _plan_of_persons(settings, table, numbers, rows_per_parent, rows_given=rows is not None)
    if rows_per_parent is not None:
        raise InputError(f"{spelled('rows_per_parent')} is about several tables: give a schema with tables")
    columns = planned_columns(table, schema, unit)
    tables, schema = planned_totals(columns, schema, totals)
    domain, open_schema, uncounted, named = planned_domain(columns, schema, settings, tables)
    if target is not None:
        open_schema.schema.check_coded("target", target, read=True)
    codec = RunEncoding(open_schema, columns, target, tables, fine=settings.algorithm.fine_cells).codec()
    run = _Run(settings, open_schema, domain, named, numbers, tables.checked(codec))
    criteria = run.criteria(columns)
    epsilon, delta = settings.promise
    rho, expectations = run.expected(epsilon, delta)
    return Plan(
        epsilon,
        delta,
        rho,
        domain.size_of,
        (*open_schema.values, *open_schema.bounds),
        not is_typed(table) and declared(schema) is None,
        expectations,
        rows is not None,
        (*run.of_persons(epsilon, delta), *uncounted, *tables.notes, *run.notes),
        run.advice(expectations),
        criteria,
        in_parts=codec.split,
        public_gain=_public_gain(public, settings, schema, columns, numbers[0]),
    )


def _check_numbers(settings: Settings, rows: int | None, public: Any) -> None:
    """Refuse a plan of criteria or of a public table that lacks a number of rows, or is of several tables."""
    for name, value in (("accept", settings.accept), ("public", public)):
        if value is not None and rows is None:
            raise InputError(f"{spelled(name)} needs a rough, public number of rows: give {spelled('rows')}")
    is_alone = settings.declared.database.single is not None
    if public is not None and (not is_alone or settings.unit is not None):
        subject = "several tables" if not is_alone else f"persons ({spelled('unit')})"
        raise InputError(f"{spelled('public')} is planned for one table of single rows, not for {subject}")


def _plan_of_persons(
    settings: Settings,
    table: Any,
    numbers: Sequence[int],
    rows_per_parent: Mapping[str, float] | None,
    *,
    rows_given: bool,
) -> Plan:
    """Plan a run on one table whose rows belong together: persons, and for each some of the rows."""
    schema = settings.declared.database.schema
    if declared(schema) is None:
        raise InputError("rows that belong together are planned from a schema with their columns: give one")
    if table is not None:
        planned_columns(table, schema, settings.unit)
    mean = (rows_per_parent or {}).get(ROWS_OF_PERSONS, ASSUMED_PER_PARENT)
    persons = [max(round(number / mean), 1) for number in numbers]
    return plan_of_tables(settings, settings.database, persons, rows_per_parent, rows_given=rows_given)


def _public_gain(
    public: Any, settings: Settings, schema: Schema | None, columns: pd.DataFrame, rows: int
) -> PublicGain | None:
    """Return what a public table would gain, of a run that is simulated with its rows."""
    if public is None:
        return None
    from privsyn.studies.planning.public_gain import simulate_public_gain  # it runs the whole program

    return simulate_public_gain(public, settings, schema, [*map(str, columns.columns)], rows)


@dataclass(frozen=True)
class _Run:
    """What is known of a run without its rows.

    Parameters
    ----------
    settings : Settings
    open_schema : OpenSchema
    domain : Domain
    important : mapping of a set of columns that matters most to the sets of attributes that are counted
    rows : tuple of int
        The numbers of rows that are planned for.
    totals : KnownTotals
    """

    settings: Settings
    open_schema: OpenSchema
    domain: Domain
    important: Named
    rows: tuple[int, ...]
    totals: KnownTotals = NO_TOTALS

    @property
    def tests(self) -> float:
        """The share of the budget that tests of the criteria cost."""
        return 0.0 if self.settings.criteria is None else self.settings.criteria.share

    @property
    def bound(self) -> int:
        """The bound on a person's rows that is planned for: the largest, or an assumed one."""
        return self.settings.largest_bound if self.settings.most_rows else ASSUMED_BOUND

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences on the columns and the target."""
        settings = self.settings
        return notes(self.open_schema.schema, settings.target, settings.promise[0] / self.bound)

    def of_persons(self, epsilon: float, delta: float) -> tuple[str, ...]:
        """Return a line on the bound on a person's rows: how it is chosen, and what twice as many cost."""
        if self.settings.largest_bound == 1:
            return ()
        bound_in_words = "the largest" if self.settings.most_rows else "an assumed"
        twice = errors_in_words(self.expected(epsilon, delta, 2)[1])
        return (
            f"planned with {bound_in_words} bound, {self.bound} rows of one {self.settings.unit}; the run"
            f" chooses it from noisy numbers of rows per person, which take {FOR_ROWS:.0%} of the budget (the"
            f" parts below are of the rest); twice the bound would double the noise: expected error {twice}",
        )

    def expected(self, epsilon: float, delta: float, times: int = 1) -> tuple[float, tuple[Expectation, ...]]:
        """Return the budget for a row without the tests, and what is expected for each number of rows.

        It is planned for `times` the bound on a person's rows.
        """
        law = law_of(delta)
        delta_of_counts = delta - reserved_delta(delta, self.open_schema)
        person = (1 - self.tests) * rho_for(epsilon, delta_of_counts, law.accounting)
        bound = times * self.bound
        person *= 1.0 if self.settings.largest_bound == 1 else 1 - FOR_ROWS
        rho, find = law.of_row(person, bound), partial(expected_share, self.open_schema)
        return rho, tuple(self._expected(n, law, rho, find(n, person, law, bound)) for n in self.rows)

    def _expected(self, rows: int, law: Law, rho: float, finding: float) -> Expectation:
        """Return what to expect, given the budget of a row and the share of it for finding values."""
        sizes = self.domain.size_of
        sets = tuple(columns for alternatives in self.important.values() for columns in alternatives)
        exact = tuple(table.attributes for table in self.totals.tables if not table.grouping)
        rest, weighted = (1 - finding) * rho, self.open_schema.schema.weight is not None
        ordered = frozenset(name for name, size in self.domain.ordered_of.items() if size > 2)
        table = CountedTable(
            *(law, rest, rows),
            sizes=sizes,
            groups=sizes,
            important=sets,
            finding=finding,
            exact=exact,
            ordered=ordered,
            weighted=weighted,
        )
        important = {
            words: float(np.mean([*map(table.error, group)])) for words, group in self.important.items()
        }
        return Expectation(rows, (expected_of(table, tuple(sizes), important=important, rows=rows),))

    def advice(self, planned: tuple[Expectation, ...]) -> str:
        """Compare the laws of noise: say if delta 0 is as good, or what a delta above 0 would gain.

        Delta 0 is as good if none of the errors of the plan is larger.
        """
        epsilon, delta = self.settings.promise
        if self.open_schema.values:
            return ""
        _, other_law = self.expected(epsilon, 0.0 if delta else USUAL_DELTA)
        gaussian, pure = (planned, other_law) if delta else (other_law, planned)
        if all(p.is_no_worse_than(g) for p, g in zip(pure, gaussian, strict=True)):
            than = f"delta {delta or USUAL_DELTA:g}"
            return f"pure epsilon (delta 0) is expected to be at least as accurate as {than} at this epsilon"
        if delta:
            return ""
        if all(g.error < p.error for p, g in zip(pure, gaussian, strict=True)):
            return f"with delta {USUAL_DELTA:g} the expected error is lower: {errors_in_words(gaussian)}"
        return f"with delta {USUAL_DELTA:g} some of the errors below are lower and some higher: plan it too"

    def criteria(self, columns: pd.DataFrame) -> tuple[PlannedCriterion, ...]:
        """Return whether each criterion is likely to be met, for a table of these columns."""
        criteria = self.settings.criteria
        if criteria is None:
            return ()
        epsilon, delta = self.settings.promise
        check_accept(criteria, self.open_schema.schema, epsilon)
        fine = self.settings.algorithm.fine_cells
        encoding = RunEncoding(self.open_schema, columns, self.settings.target, NOTHING_KNOWN, fine=fine)
        codec = encoding.codec()
        check_testable(codec, criteria)

        def with_tests(epsilon: float) -> tuple[Law, float, Expectation]:
            rho, (first, *_) = self.expected(epsilon, delta)
            law = law_of(delta)
            bound = max(self.bound, ASSUMED_ROWS) if self.settings.largest_bound > 1 else 1
            tests = law.of_person(rho * self.tests / (1 - self.tests), self.bound)
            return law, law.of_row(tests, bound), first

        return planned_criteria(criteria, codec, self.domain, epsilon, with_tests)
