"""How the tables of a run divide its budget, given the released numbers of rows per person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt

from privsyn.inference.rows_per_person import RowsPerPerson
from privsyn.methods.budget import OF_KEYS, TablePlan
from privsyn.methods.previous_siblings import groups_for, lags_for, links_drown
from privsyn.methods.table_of_run import RunTable
from privsyn.private.noise_laws import Law
from privsyn.table.database.database import Database
from privsyn.table.database.opened import ROW


@dataclass(frozen=True, eq=False)
class BudgetOfTables:
    """What the tables of a run have together.

    Parameters
    ----------
    database : Database
    tables : tuple of RunTable
    rows_per_person : mapping of a table to RowsPerPerson
        The released numbers, of each table whose rows are counted by person.
    law : Law
    rho : float
        What the questions about all tables may cost together.
    """

    database: Database
    tables: tuple[RunTable, ...]
    rows_per_person: Mapping[str, RowsPerPerson]
    law: Law
    rho: float

    @property
    def plans(self) -> dict[str, TablePlan]:
        """What each table gets of the budget, so that the sum of the errors is smallest.

        Let a table have m pairs of columns, the bound C, n counted rows and the budget rho. The noise in each
        pair is in proportion to C sqrt(m / rho) / n, so the sum over pairs is a / sqrt(rho) with
        a = m^(3/2) C / n. The sum over tables is smallest, for a given sum of budgets, where the derivatives
        a rho^(-3/2) are equal: rho is in proportion to a^(2/3) = m (C / n)^(2/3).

        With delta 0, rho is an epsilon, the noise is in proportion to C m / (epsilon n), and the sum would be
        smallest at m sqrt(C / n). The formula above is used there too.

        A pair of columns of a row and of one above it counts in the tables of both: it is wrong where either
        is.

        A child table of which the noise hides all links is counted without them, and its pairs are fewer.
        Then all shares are computed again. A table with a rule that needs its links keeps them.
        """
        plans = self._plans_of_linked
        tables = tuple(table if plans[table.name].lags else table.without_links() for table in self.tables)
        if [table.has_links for table in tables] == [table.has_links for table in self.tables]:
            return plans
        return replace(self, tables=tables).plans

    @property
    def _plans_of_linked(self) -> dict[str, TablePlan]:
        """The plans of tables that keep the links which they have."""
        even = self.rho / len(self.tables)  # the bound decides the shares: it is chosen for equal shares
        counted = {table.name: self._counted(table, even) for table in self.tables}
        weights = {table.name: self._weight(table, *counted[table.name]) for table in self.tables}
        plans = {}
        for table in self.tables:
            bound, rows = counted[table.name]
            cost = self.rho  # exactly, for a single table
            if len(weights) > 1:
                cost = self.rho * weights[table.name] / sum(weights.values())
            sigma = bound * sqrt(table.pairs / (2 * self.law.rho(cost)))
            lags = 1
            if table.declared.order is not None:  # in random order, any two rows are alike
                lags = lags_for(rows * self.rows_per_person[table.name].share_after(2), sigma)
            if table.declared.parent is not None and not table.needs_links and links_drown(rows, sigma):
                lags = 0
            lags = lags if table.has_links else 0
            plans[table.name] = TablePlan(cost, groups_for(rows, sigma), lags)
        return plans

    def _counted(self, table: RunTable, rho: float) -> tuple[int, float]:
        """Return the bound of a person's rows in a table for a budget `rho`, and how many rows then count.

        A row of the root of a database is a person: the bound is 1. A single table with a unit is its own
        root, and its bound may be higher. That changes nothing: it gets all of the budget, and it has
        neither groups for child rows nor rows before.
        """
        if table.declared.parent is None:
            # How many persons a table has of its own is unknown if no table is below it: as many as others.
            below = [name for name in self.rows_per_person if table.name in self.database.above(name)]
            numbers = [
                float(self.rows_per_person[name].persons.sum()) for name in below or self.rows_per_person
            ]
            return 1, max([1.0, *numbers])
        rows = self.rows_per_person[table.name]
        bound = table.opened.classes_and_contribution(rows, self.law, rho, table.pairs)[1].limit
        return bound, max(float(rows.persons @ rows.rows_within_squares(bound)), 1.0)

    def _weight(self, table: RunTable, bound: int, rows: float) -> float:
        """Return what a table gets of the budget relative to others: see `plans`."""
        linked = (child for child in self.tables if child.has_links)
        below = sum(child.columns for child in linked if table.name in self.database.above(child.name))
        weight = (table.pairs + table.columns * below) * (bound / rows) ** (2 / 3)
        has_keys_alone = tuple(table.opened.schema.schema.coded) == (ROW,)  # no value of its rows is made
        return weight * OF_KEYS if has_keys_alone else weight
