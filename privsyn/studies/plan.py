"""Plan a run: the split of its budget, its noise, error, time and memory. It reads no row.

A plan uses only public facts: the schema, the names and types of the columns, and a rough number of rows that
the caller gives. Distributions and dependences are assumed to be typical, so errors are accurate to a factor
of about two. Time and memory are rough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.arguments import check_whole
from privsyn.errors import InputError, plural, printable, spelled
from privsyn.marginals.domain import Domain
from privsyn.methods.discovery import ALL_FOR_BOUNDS, expected_share, reserved_delta
from privsyn.methods.persons import FOR_ROWS
from privsyn.private.accounting import rho_for
from privsyn.private.laws import Law, law_of
from privsyn.release.acceptance.criteria import check_accept
from privsyn.release.acceptance.layout import check_testable
from privsyn.settings import Settings
from privsyn.studies.expectation import Expectation, Named, expect
from privsyn.studies.feasibility import Feasibility, feasible
from privsyn.studies.linked_plan import LinkedPlan, plan_linked
from privsyn.studies.planned_columns import ASSUMED_VALUES, notes, planned_columns, planned_domain
from privsyn.table.codec.codec import Codec
from privsyn.table.database.declared import Database
from privsyn.table.database.yaml_form import as_database
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.io.formats import is_typed
from privsyn.table.schema.schema import Schema, declared
from privsyn.table.schema.yaml_file import SchemaOrPath, as_schema

if TYPE_CHECKING:
    import pandas as pd

ROWS = (1_000, 10_000, 100_000, 1_000_000)
"""Default numbers of rows to plan for."""

ASSUMED_BOUND = 3
"""Assumed bound on a person's rows, if none is given. Runs choose 1 to 5 for persons with 3 rows on average,
at epsilon 0.3 to 3, and 1,000 to 100,000 persons."""

ASSUMED_ROWS = 20  # of a person, all of which the tests of criteria compare
USUAL_DELTA = 1e-9
"""The default delta, with which a plan for pure epsilon is compared."""


@dataclass(frozen=True)
class Plan:
    """The expected results of a run, for one or more numbers of rows.

    Parameters
    ----------
    epsilon, delta : float
        The privacy guarantee.
    rho : float
        The budget for one row: in zCDP, or an epsilon if delta is 0.
    sizes : mapping of a column to its number of values or bins
    to_find : tuple of str
        Columns whose values or bounds are not in the schema.
    untyped : bool
        Whether the table is a file without types, and there is no schema.
    expectations : tuple of Expectation
    given : bool
        Whether the caller gave the number of rows.
    notes : tuple of str
        Sentences on the rows of a person, the bounds and the target.
    advice : str
        How the other law of noise compares at this epsilon: delta 0 if delta is above 0, and `USUAL_DELTA` if
        it is 0. Empty if there is nothing to gain.
    criteria : tuple of Feasibility
        Whether each criterion is likely to be met.
    """

    epsilon: float
    delta: float
    rho: float
    sizes: dict[str, int]
    to_find: tuple[str, ...]
    untyped: bool
    expectations: tuple[Expectation, ...]
    given: bool = False
    notes: tuple[str, ...] = ()
    advice: str = ""
    criteria: tuple[Feasibility, ...] = ()

    def __str__(self) -> str:
        all_rows = self.expectations
        title = "rows of the table, as given" if self.given else "if the table has this many rows"
        lines = [(title, [f"{e.rows:,}" for e in all_rows])]
        for part in all_rows[0].parts:
            lines.append((f"budget for {PARTS.get(part, part)}", [f"{e.parts[part]:.1%}" for e in all_rows]))
        lines.append(("noise in a count of one column", [f"{e.count_noise:,.1f}" for e in all_rows]))
        lines.append(("error of one column, expected", [_error(e.one_way_error) for e in all_rows]))
        if len(self.sizes) > 1:
            lines.append(("error of two columns, expected", [_error(e.pair_error) for e in all_rows]))
        for what in all_rows[0].important:
            lines.append((f"error of {what}, expected", [_error(e.important[what]) for e in all_rows]))
        lines.append(("time of fit and sample, about", [_duration(e.seconds) for e in all_rows]))
        lines.append(("memory, about", [f"{e.memory / 1e9:.1f} GB" for e in all_rows]))
        width = max(len(title) for title, _ in lines)
        columns = len(self.sizes)
        known = [(name, size) for name, size in self.sizes.items() if name not in self.to_find]
        largest = sorted(known, key=lambda item: -item[1])[:3]
        most = ", ".join(f"{name} ({size:,})" for name, size in largest)
        head = [
            f"epsilon {self.epsilon:g} at delta {self.delta:g}",
            f"{plural(columns, 'column')}, {plural(comb(columns, 2), 'pair')}"
            + (f"; most values or cells: {most}" if most else ""),
        ]
        head += [self.advice] if self.advice else []
        if self.to_find:
            head.append(
                f"values or bounds to be found: {', '.join(self.to_find)}"
                f" (planned with {ASSUMED_VALUES} values each)"
            )
        if self.untyped:
            head.append(
                "which columns hold numbers is not known before the file is read:"
                f" to find their bounds takes {ALL_FOR_BOUNDS[0]:.0%} more, or"
                f" up to {ALL_FOR_BOUNDS[1]:.0%} if there are few rows"
            )
        head += self.notes
        table = [f"{title:<{width}}" + "".join(f"{cell:>12}" for cell in cells) for title, cells in lines]
        tests = ["criteria:", *map(str, self.criteria), ""] if self.criteria else []
        return "\n".join(map(printable, [*head, "", *table, "", *tests, *NOTES]))


PARTS = {
    "values, bounds and grids": "finding values and bounds",
    "one-ways": "single columns",
    "scores": "choosing pairs",
}
"""Parts of the budget in plain words."""

NOTES = (
    "An error is the share of rows that would have to change: a mean over all columns or all pairs, which",
    "assumes a typical dependence. `evaluate` measures the same, with the chance of drawing rows on top.",
    "To load the libraries takes a few seconds more. Nothing was spent, and no row was read.",
)


def plan(
    table: Any = None,
    epsilon: float = 1.0,
    delta: float = 1e-9,
    schema: SchemaOrPath | Database | None = None,
    *,
    rows: int | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    target: str | None = None,
    accept: object = None,
    important: Sequence[Sequence[str]] | None = None,
    rows_per_parent: Mapping[str, float] | None = None,
    allow_weak_privacy: bool = False,
) -> Plan | LinkedPlan:
    """Plan ``PrivSyn(epsilon, delta, schema).fit(table)`` from public facts alone.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or a path to a .csv, .csv.gz or .parquet file, optional
        Only the names and dtypes of its columns are read; of a CSV file, the header. Default: the columns of
        the schema. A Schema or a Database is accepted here, too.
    epsilon, delta, schema, unit, rows_per_unit, target, important, accept, allow_weak_privacy
        As for PrivSyn.
    rows : int, optional
        A rough, public number of rows: do not count them. Default: from a thousand to a million. With a
        database, of the table without a parent.
    rows_per_parent : mapping of str to float, optional
        With a database, for each child table a rough, public number of rows for each row of its parent.
        Default: 3.

    Returns
    -------
    Plan, or LinkedPlan if the schema is a database

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
    schema = as_schema(schema) if database is None else None
    if database is None and table is None and declared(schema) is None:
        raise InputError("a plan needs the columns: give a table, a schema, or both")
    settings = Settings(
        epsilon,
        delta,
        schema if database is None else database,
        unit=unit,
        rows_per_unit=rows_per_unit,
        target=target,
        important=important,
        accept=accept,
        allow_weak_privacy=allow_weak_privacy,
    )
    if accept is not None and rows is None:
        raise InputError(f"{spelled('accept')} needs a rough, public number of rows: give rows")
    numbers = ROWS if rows is None else (check_whole("rows", rows, least=1),)
    if database is not None:
        if table is not None:
            raise InputError("several tables are planned from their schema alone: leave out the data")
        return plan_linked(settings, database, numbers, rows_per_parent)
    if rows_per_parent is not None:
        raise InputError("rows per parent are those of several tables: give a schema with tables")
    columns = planned_columns(table, schema, unit)
    domain, open_schema, uncounted, named = planned_domain(columns, schema, settings.matters_most)
    if target is not None:
        open_schema.schema.check_coded("target", target, read=True)
    run = _Run(settings, open_schema, domain, named, numbers)
    criteria = run.feasible(columns)
    epsilon, delta = settings.promise
    rho, expectations = run.expected(epsilon, delta)
    other = () if open_schema.values else run.expected(epsilon, 0.0 if delta else USUAL_DELTA)[1]
    of_persons = run.of_persons(epsilon, delta)
    return Plan(
        epsilon,
        delta,
        rho,
        dict(zip(domain.names, domain.sizes, strict=True)),
        (*open_schema.values, *open_schema.bounds),
        not is_typed(table) and declared(schema) is None,
        expectations,
        rows is not None,
        (*of_persons, *uncounted, *notes(open_schema.schema, target)),
        _advice(delta, expectations, other),
        criteria,
    )


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
    """

    settings: Settings
    open_schema: OpenSchema
    domain: Domain
    important: Named
    rows: tuple[int, ...]

    @property
    def tests(self) -> float:
        """The share of the budget that tests of the criteria cost."""
        return 0.0 if self.settings.criteria is None else self.settings.criteria.share

    @property
    def bound(self) -> int:
        """The bound on a person's rows that is planned for: the largest, or an assumed one."""
        return self.settings.largest_bound if self.settings.most_rows else ASSUMED_BOUND

    def of_persons(self, epsilon: float, delta: float) -> tuple[str, ...]:
        """Return a line on the bound on a person's rows: how it is chosen, and what twice as many cost."""
        if self.settings.largest_bound == 1:
            return ()
        given = "the largest" if self.settings.most_rows else "an assumed"
        twice = _errors(self.expected(epsilon, delta, 2)[1])
        return (
            f"planned with {given} bound, {self.bound} rows of one {self.settings.unit}; the run chooses it"
            f" from noisy numbers of rows per person, which take {FOR_ROWS:.0%} of the budget (the parts"
            f" below are of the rest); twice the bound would double the noise: expected error {twice}",
        )

    def expected(self, epsilon: float, delta: float, times: int = 1) -> tuple[float, tuple[Expectation, ...]]:
        """Return the budget for a row without the tests, and what is expected for each number of rows.

        It is planned for `times` the bound on a person's rows.
        """
        law = law_of(delta)
        left = delta - reserved_delta(delta, self.open_schema)
        person, most = (1 - self.tests) * rho_for(epsilon, left, law.accounting), times * self.bound
        person *= 1.0 if self.settings.largest_bound == 1 else 1 - FOR_ROWS
        rho, find = law.of_row(person, most), partial(expected_share, self.open_schema)
        return rho, tuple(
            expect(self.domain, rho, n, law, finding=find(n, person, law, most), important=self.important)
            for n in self.rows
        )

    def feasible(self, columns: pd.DataFrame) -> tuple[Feasibility, ...]:
        """Return whether each criterion is likely to be met, for a table of these columns."""
        criteria = self.settings.criteria
        if criteria is None:
            return ()
        epsilon, delta = self.settings.promise
        check_accept(criteria, self.open_schema.schema, epsilon)
        fine, target = self.settings.algorithm.fine_cells, self.settings.target
        codec = Codec.for_table(self.open_schema.fill({}, {}), columns, fine=fine, unsplit=(target,))
        check_testable(codec, criteria)

        def with_tests(epsilon: float) -> tuple[Law, float, Expectation]:
            rho, (first, *_) = self.expected(epsilon, delta)
            law, most = law_of(delta), max(self.bound, ASSUMED_ROWS) if self.settings.largest_bound > 1 else 1
            tests = law.of_person(rho * self.tests / (1 - self.tests), self.bound)
            return law, law.of_row(tests, most), first

        return feasible(criteria, codec, self.domain, epsilon, with_tests)


def _advice(delta: float, planned: tuple[Expectation, ...], other: tuple[Expectation, ...]) -> str:
    """Compare the laws of noise: say if delta 0 is as good, or what a delta above 0 would gain."""
    gaussian, pure = (planned, other) if delta else (other, planned)
    if not other:
        return ""
    if all(p.error <= g.error for p, g in zip(pure, gaussian, strict=True)):
        than = f"delta {delta or USUAL_DELTA:g}"
        return f"pure epsilon (delta 0) is expected to be at least as accurate as {than} at this epsilon"
    if delta:
        return ""
    return f"with delta {USUAL_DELTA:g} the expected error is lower: {_errors(gaussian)}"


def _error(share: float) -> str:
    return "" if np.isnan(share) else f"{share:.2%}"


def _errors(expected: tuple[Expectation, ...]) -> str:
    return ", ".join(f"{_error(e.error)} ({e.rows:,} rows)" for e in expected)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
