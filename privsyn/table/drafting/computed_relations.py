"""Columns that nearly all rows compute with a row above, such as an age from a year of birth.

Not private: it is read from the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Ints
from privsyn.table.database.computed_above import ComputedAbove
from privsyn.table.database.summaries import Side, text_of
from privsyn.table.drafting.candidates import HEAD_ROWS, Proposal
from privsyn.table.drafting.cross_table_relations import DependentColumns, can_be_read
from privsyn.table.drafting.drafted_table import FEWEST_PAIRS, NEARLY_ALL, DraftedTable
from privsyn.table.enforcement.elapsed import UNITS
from privsyn.table.schema.columns import Coded, Datetime, Numerical

LEAST_OF_SOME = 0.9
"""Share of some rows in which a formula is off by at most one, or all rows are not looked at."""

MOST_BY_CHANCE = 0.5
"""Share of the rows in which a formula may be off by at most one if its numbers are those of other rows."""

LEAST_EXACT = 1 / 3
"""Share of the rows that keep a formula of which others are off by one: else it is another formula.

Of ages in interviews that all take place early in the year few are the difference of the years."""

OFF_BY_ONE = 1.0
"""What ages at a date, and years that are rounded, may be off by."""


@dataclass(frozen=True, eq=False)
class RelatedColumn:
    """A column of numbers or dates, seen from the rows of a table.

    Parameters
    ----------
    side : (table or None, column)
        None is the table itself.
    kind : Numerical or Datetime
    numbers : array of shape (rows,)
        In its own units.
    """

    side: Side
    kind: Coded
    numbers: Floats = field(repr=False)

    @cached_property
    def is_date(self) -> bool:
        """Whether it has dates; else numbers."""
        return isinstance(self.kind, Datetime)

    @cached_property
    def some(self) -> Floats:
        """The numbers of some rows, spread over the table."""
        return self.numbers[:: max(1, len(self.numbers) // HEAD_ROWS)]

    @cached_property
    def width(self) -> float:
        """The range of its numbers; 0 if it has none."""
        present = self.numbers[np.isfinite(self.numbers)]
        return float(np.ptp(present)) if len(present) else 0.0


def computed_with_above(tables: Mapping[str, DraftedTable], dependent: DependentColumns) -> DependentColumns:
    """Return the columns that nearly all rows compute from a column beside and one above, and how.

    Of two columns of a row that follow from each other, the one that spreads more is computed, unless it is
    the order of the rows. `tables` begin with the root. Columns that are `dependent` already are left out.
    """
    computed: dict[str, dict[str, Proposal]] = {name: {} for name in tables}
    for name, table in tables.items():
        if table.parent is None:
            continue
        without = {above: {*dependent[above], *computed[above]} for above in computed}
        columns = [*_related(table, tables, without)]
        here = [column for column in columns if column.side[0] is None]
        here.sort(key=lambda column: -column.width)
        parts: set[str] = set()
        for total, part in product(here, here):
            column, beside = total.side[1], part.side[1]
            taken = column in parts or {column, beside} & computed[name].keys()
            if total is part or taken or column == table.order:
                continue
            for above in columns:
                proposal = None if above.side[0] is None else _proposal(total, part, above)
                if proposal is not None:
                    computed[name][column] = proposal
                    parts.add(beside)
                    break
    return computed


def _related(
    table: DraftedTable, tables: Mapping[str, DraftedTable], without: Mapping[str, set[str]]
) -> Iterator[RelatedColumn]:
    """Yield the columns of numbers and dates that vary, of a table and of those above it, for each row."""
    rows_above: Ints = np.arange(len(table.frame))
    drafted = table
    while True:
        for name, column in drafted.schema.coded.items():
            if isinstance(column, Datetime | Numerical) and name not in without[drafted.name]:
                numbers = column.numbers(drafted.frame[name]) / (
                    column.scale if isinstance(column, Datetime) else 1.0
                )
                side = (None if drafted is table else drafted.name, name)
                related = RelatedColumn(side, column, np.append(numbers, np.nan)[rows_above])
                if related.width > 0:
                    yield related
        if drafted.parent is None:
            return
        rows_above = np.append(drafted.parents, -1)[rows_above]
        drafted = tables[drafted.parent]


def _proposal(total: RelatedColumn, part: RelatedColumn, above: RelatedColumn) -> Proposal | None:
    """Return the formula that nearly all rows keep, or of which nearly all rows are off by at most one."""
    kinds = {text_of(column.side): column.kind for column in (total, part, above)}
    for rule in _formulas(total, part, above):
        with suppress(InputError):
            computation = rule.constraint(kinds).computation(kinds)
            some = {text_of(column.side): column.some for column in (part, above)}
            if not _is_near(total.some - computation.make(some)):
                continue
            parts = {text_of(column.side): column.numbers for column in (part, above)}
            made, numbers = computation.make(parts), {**parts, text_of(total.side): total.numbers}
            complete = np.isfinite(total.numbers - made)
            made, numbers = made[complete], {name: of_rows[complete] for name, of_rows in numbers.items()}
            declared, allowed = numbers[text_of(total.side)], computation.tolerance(total.kind, numbers)
            error = np.abs(declared - made)
            rows, broken, near = len(made), int((error > allowed).sum()), error <= OFF_BY_ONE
            is_exact = broken <= (1 - NEARLY_ALL) * rows
            is_near = near.mean() >= NEARLY_ALL and broken <= (1 - LEAST_EXACT) * rows
            if rows < FEWEST_PAIRS or not (is_exact or is_near) or not can_be_read(rule):
                continue
            of_others = np.abs(declared - np.random.default_rng(0).permutation(made))
            if (of_others <= (allowed if is_exact else OFF_BY_ONE)).mean() > MOST_BY_CHANCE:
                continue
            notes = []
            if (near & (error > allowed)).any():
                far = int((~near).sum())
                notes.append(f"{f'{far:,}' if far else 'none'} of them by more than one")
            try:
                rule.check(kinds)
            except InputError:
                notes.append(f"leave out the bounds of {rule.column}")
            return Proposal(str(rule), rows, broken, "; ".join(notes))
    return None


def _is_near(error: Floats) -> bool:
    """Return whether nearly all complete numbers are off by at most one."""
    complete = error[np.isfinite(error)]
    return len(complete) > 0 and bool((np.abs(complete) <= OFF_BY_ONE).mean() >= LEAST_OF_SOME)


def _formulas(total: RelatedColumn, part: RelatedColumn, above: RelatedColumn) -> Iterator[ComputedAbove]:
    """Yield the formulas by which a column may follow from two others of these kinds."""
    dates = part.is_date + above.is_date
    if not total.is_date and dates == 2:
        for unit in UNITS:
            yield ComputedAbove(total.side, ((part.side, 1), (above.side, -1)), unit)
    elif dates == total.is_date:
        for first, second, sign in ((part, above, -1), (above, part, -1), (part, above, 1)):
            if _is_near(total.some - (first.some + sign * second.some)):  # before a rule is made
                yield ComputedAbove(total.side, ((first.side, 1), (second.side, sign)))
