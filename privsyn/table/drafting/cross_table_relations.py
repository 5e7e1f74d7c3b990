"""What follows from another table, or is compared with one: copies, sums of rows below, and orders of dates.

Not private: it is read from the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import permutations, product

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Ints
from privsyn.table.database.computed_above import ComputedAbove
from privsyn.table.database.rules import EQUAL, ColumnComparison, read_across
from privsyn.table.database.summaries import COUNT, SUM, Computed, Derived
from privsyn.table.drafting.candidates import HEAD_ROWS, Proposal
from privsyn.table.drafting.drafted_table import FEWEST_PAIRS, DraftedTable
from privsyn.table.drafting.keys import KeyedTable
from privsyn.table.drafting.layout import Layout
from privsyn.table.drafting.relations import sign_between
from privsyn.table.encoding.dtypes import family
from privsyn.table.kinds.keys import columns_of
from privsyn.table.schema.columns import Datetime, Numerical
from privsyn.table.schema.rules import ROUNDING

DependentColumns = Mapping[str, Mapping[str, Proposal]]
"""Of each table the columns that follow from another table, each with the constraint that says so."""


def copies_from_above(
    tables: Mapping[str, DraftedTable], keyed: Mapping[str, KeyedTable], layout: Layout
) -> DependentColumns:
    """Return the columns that have the cell of a row above in every row; `tables` begin with the root.

    One of the same name is preferred, then one of the nearest table. One that is a copy itself is not copied.
    Rows without a parent do not count.
    """
    copies: dict[str, dict[str, Proposal]] = {}
    for table in tables.values():
        copies[table.name] = _copies(table, tables, keyed, layout, copies)
    return copies


def _copies(
    table: DraftedTable,
    tables: Mapping[str, DraftedTable],
    keyed: Mapping[str, KeyedTable],
    layout: Layout,
    copies_above: DependentColumns,
) -> dict[str, Proposal]:
    """Return the copies of one table; those of the tables above are `copies_above`."""
    copies: dict[str, Proposal] = {}
    cells, rows_above, below = keyed[table.name].frame, np.arange(len(table.frame)), table
    second_keys = (column for name, column in layout.left_out if name == table.name)
    own_columns = [
        name
        for name in dict.fromkeys([*table.schema.coded, *second_keys])
        if (codes := _codes(cells[name])) is not None
        and len(codes) - int(np.bincount(codes + 1).max(initial=0)) >= FEWEST_PAIRS  # not all by accident
    ]
    while below.parent is not None:
        rows_above = np.append(below.parents, -1)[rows_above]
        below = tables[below.parent]
        linked, above = rows_above >= 0, keyed[below.name].frame
        mine = {column: _comparable(cells[column][linked]) for column in own_columns}
        names = [*below.schema.coded, *columns_of(layout.keys[below.name])]
        for same, name in product(
            (True, False), (name for name in names if name not in copies_above[below.name])
        ):
            there = _comparable(above[name].take(rows_above[linked]))
            for column in own_columns:
                copied = ColumnComparison((None, column), EQUAL, (below.name, name))
                taken = column in copies or column == table.order
                if (name == column) is not same or taken or not can_be_read(copied):
                    continue
                if _equal(mine[column], there):
                    copies[column] = Proposal(str(copied), len(there))
    return copies


def sums_of_rows(tables: Mapping[str, DraftedTable], copies: DependentColumns) -> DependentColumns:
    """Return the columns that are, in every row, a sum of a column of the rows below, or their number."""
    proposals: dict[str, dict[str, Proposal]] = {name: {} for name in tables}
    for child in tables.values():
        if child.parent is None:
            continue
        above, at = tables[child.parent], child.parents
        parts: dict[str | None, Floats] = {None: np.ones(len(at))}
        parts |= {name: part for name, part in _numbers_of(child) if name not in copies[child.name]}
        linked, rows = at >= 0, len(above.frame)
        sums = {
            name: np.bincount(at[linked], np.nan_to_num(part[linked]), minlength=rows)
            for name, part in parts.items()
        }
        several = np.bincount(at[linked], minlength=rows) > 1
        for total, numbers in _numbers_of(above):
            if total in copies[above.name] or total == above.order or several.sum() < FEWEST_PAIRS:
                continue
            for name, summed in sums.items():
                error = np.abs(summed - numbers)
                differ = int((numbers != np.median(numbers)).sum())  # not all by accident
                if differ >= FEWEST_PAIRS and (error <= ROUNDING * np.maximum(np.abs(numbers), 1)).all():
                    summary = Derived(COUNT if name is None else SUM, child.name, name)
                    rule = str(Computed((None, total), summary))
                    if Computed.read(rule) == Computed((None, total), summary):
                        proposals[above.name].setdefault(total, Proposal(rule, len(numbers)))
    return proposals


def orders_with_above(
    tables: Mapping[str, DraftedTable], dependent: DependentColumns
) -> Mapping[str, list[tuple[str, Proposal]]]:
    """Return the dates of each table that all rows keep on one side of a date above, and the rules.

    They keep them not by chance. A rule is left out if others that are found imply it, and so is a column
    that follows from another table. `tables` begin with the root.
    """
    rules: dict[str, list[tuple[str, Proposal]]] = {name: [] for name in tables}
    pairs_in_order: dict[str, set[tuple[tuple[str, str], tuple[str, str]]]] = {}
    for name, table in tables.items():
        dates = dict(_dates_above(table, tables, dependent))
        own_dates = [column for column in dates if column[0] == name]
        above = [column for column in dates if column[0] != name]
        pairs = [*permutations(own_dates, 2), *product(own_dates, above), *product(above, own_dates)]
        pairs_in_order[name] = {(low, high) for low, high in pairs if sign_between(dates[low], dates[high])}
        if table.parent is not None:
            pairs_in_order[name] |= pairs_in_order[table.parent]
        for low, high in pairs:
            implied = any({(low, between), (between, high)} <= pairs_in_order[name] for between in dates)
            if (low, high) in pairs_in_order[name] and low[0] != high[0] and not implied:
                rule = ColumnComparison(low, "<=", high).seen_from(name)
                if can_be_read(rule):
                    rows = int(np.isfinite(dates[low] - dates[high]).sum())
                    note = f"let the bounds of {rule.column} reach those of {rule.name}"
                    table_above, column_above = rule.above
                    with suppress(InputError):  # else the drafted bounds leave some rows no value
                        schema_above = tables[table_above].schema
                        rule.check(table.schema.coded[rule.column], schema_above.coded[column_above])
                        note = ""
                    rules[name].append((rule.column, Proposal(str(rule), rows, note=note)))
    return rules


def _dates_above(
    table: DraftedTable, tables: Mapping[str, DraftedTable], dependent: DependentColumns
) -> Iterator[tuple[tuple[str, str], Floats]]:
    """Yield the dates of a table and of the rows above it, for each of its rows."""
    rows_above, drafted = np.arange(len(table.frame)), table
    while True:
        for name, column in drafted.schema.coded.items():
            if isinstance(column, Datetime) and name not in dependent[drafted.name]:
                yield (drafted.name, name), np.append(column.numbers(drafted.frame[name]), np.nan)[rows_above]
        if drafted.parent is None:
            return
        rows_above = np.append(drafted.parents, -1)[rows_above]
        drafted = tables[drafted.parent]


def _numbers_of(table: DraftedTable) -> Iterator[tuple[str, Floats]]:
    """Yield the drafted columns of numbers, as numbers."""
    for name, column in table.schema.coded.items():
        if isinstance(column, Numerical):
            yield name, column.numbers(table.frame[name])


def can_be_read(rule: ColumnComparison | ComputedAbove) -> bool:
    """Return whether the text of a rule means it again: not if a name has a backtick."""
    with suppress(InputError):
        return read_across([str(rule)])[0] == (rule,)
    return False


def _codes(cells: pd.Series) -> Ints | None:
    """Return the place of each cell among the different ones; None if they cannot be compared, as lists."""
    with suppress(TypeError, NotImplementedError):
        return np.asarray(pd.factorize(cells)[0])
    return None


def _comparable(cells: pd.Series) -> Floats | pd.Series:
    """Return cells as numbers, where they are numbers or truth values; a missing one is -infinity."""
    if family(cells.dtype) in ("integer", "real", "boolean"):
        return cells.to_numpy(np.float64, na_value=-np.inf)
    return cells.reset_index(drop=True)


def _equal(cells: Floats | pd.Series, above: Floats | pd.Series) -> bool:
    """Return whether each cell is that of the row above; some rows are looked at first."""
    for rows in (slice(None, None, max(1, len(cells) // HEAD_ROWS)), slice(None)):
        first, second = cells[rows], above[rows]
        if isinstance(first, pd.Series) and isinstance(second, pd.Series):
            both = None
            if family(first.dtype) == family(second.dtype):
                both = _codes(pd.concat([first, second], ignore_index=True))
            equal = both is not None and bool((both[: len(first)] == both[len(first) :]).all())
        else:
            equal = type(first) is type(second) and np.array_equal(first, second)
        if not equal:
            return False
    return len(cells) > 0
