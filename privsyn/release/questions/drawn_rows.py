"""Synthetic rows that stand beside the answers of a release."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Ints, Mask
from privsyn.progress import no_progress
from privsyn.release.linked_rows import LinkedRows
from privsyn.release.table_model import TableModel
from privsyn.table.database.child_summaries import summary_of
from privsyn.table.database.database import Database
from privsyn.table.database.derived_columns import rows_of, summaries_of
from privsyn.table.database.linked_table import LinkedTable
from privsyn.table.database.summaries import ANY, CHANGES, SAME, START, Derived
from privsyn.table.database.synthetic import SyntheticRows
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.write import stacked
from privsyn.table.schema.condition import NO_CONDITION, Condition

SEED, ROWS = 0, 50_000
"""The seed of the rows, and the most rows of a table."""

EXACT = (ANY, SAME, START, CHANGES)
"""Summaries of rows below that are drawn first, and that the rows below have exactly."""


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Synthetic rows of a release, the same each time.

    Parameters
    ----------
    database : Database
    tables : mapping of a table to its TableModel
    most_rows : int
        Of a table.
    """

    database: Database
    tables: Mapping[str, TableModel]
    most_rows: int = ROWS

    def met(self, table: str, home: str, condition: Condition) -> Mask:
        """Return which synthetic rows of a table meet a condition on columns of a table `home`."""
        frame, codec = self.frame(home), self.tables[home].codec
        met = np.ones(len(frame), np.bool_)
        if condition is not NO_CONDITION:
            met = condition.holds(codec.as_compared(condition.columns, frame))
        return met[self.index(table, home)]

    def weights(self, table: str) -> Floats:
        """Return the weights of synthetic rows of a table that has some."""
        codec = self.tables[table].codec
        return codec.numbers_of(str(codec.schema.weight), self.frame(table))

    def index(self, table: str, home: str) -> Ints:
        """Return the row of a table `home`, the same or one above, to which each row belongs."""
        rows = np.arange(len(self.frame(table)))
        while table != home:
            rows, table = self._rows[table].parents[rows], self.database.tables[table].parent or ""
        return rows

    def frame(self, table: str) -> pd.DataFrame:
        """Return synthetic rows of a table, the same each time; no row if none can be made."""
        if table in self._rows:
            return self._frame_of(table)
        return self.tables[table].codec.specimen(np.random.default_rng(SEED)).iloc[:0]

    def _frame_of(self, table: str) -> pd.DataFrame:
        """Return synthetic rows of a table, with its hidden columns computed from the synthetic rows below.

        That is how a user computes them, who does not have these columns.
        """
        if table not in self._frames:
            frame = self._rows[table].frame
            columns = {
                column: pd.Series(self._summary(summary, len(frame))).astype(frame[column].dtype)
                for column, summary in self.hidden(table).items()
            }
            self._frames[table] = frame.assign(**columns)
        return self._frames[table]

    def hidden(self, table: str) -> dict[str, Derived]:
        """Return the columns that synthetic rows do not have, with what each sums up of the rows below."""
        return {
            column: summary
            for column, summary in summaries_of(self.database, table).items()
            if summary.how not in EXACT and column != rows_of(summary.table)
            if summary.table in self._rows and column in self._rows[table].frame
        }

    def _summary(self, summary: Derived, rows: int) -> Any:
        """Return the summary of synthetic rows for each row of their parent."""
        below, codec = self._rows[summary.table], self.tables[summary.table].codec
        persons = np.zeros(len(below.parents), np.int64)
        source, nothing = read_in_batches(below.frame), pd.DataFrame(index=range(0))
        child = LinkedTable(source, "", (), persons, below.parents, None, (), nothing, codec.schema)
        return summary_of(summary, child, rows)[0]

    @cached_property
    def _frames(self) -> dict[str, pd.DataFrame]:
        return {}

    @cached_property
    def _rows(self) -> Mapping[str, SyntheticRows]:
        linked, root = LinkedRows(self.database, self.tables), self.tables[self.database.root]
        scale = max(1.0, max(model.fitted.total for model in self.tables.values()) / self.most_rows)
        number = max(round(root.fitted.total / scale), 1)
        with suppress(InputError):  # mostly noise, or no row satisfies the constraints
            root.number_of_rows(None)
            if not self.database.is_linked:
                return {self.database.root: linked.root_rows(stacked(root.blocks(number, SEED, None)))}
            return linked.sample(number, None, SEED, no_progress)
        return {}
