"""Cells that sum up the rows below each row, such as the first cell or the number of changes.

All of it is private: a cell depends on the rows of one parent, which are rows of one person.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about, replace_errors
from privsyn.marginals.domain import Floats, Ints, Mask
from privsyn.table.database.constant_sums import ConstantSum
from privsyn.table.database.declared import Table
from privsyn.table.database.derived_columns import MOST_ROWS, number_of_changes, number_of_rows
from privsyn.table.database.linked_table import LinkedTable, codes_of_listed
from privsyn.table.database.summaries import ANY, CHANGES, EVER, SAME, START, Derived
from privsyn.table.encoding.dtypes import Dtype, shown_dtype, with_missing
from privsyn.table.encoding.parsing import alone, number
from privsyn.table.schema.columns import Categorical, Coded, Column, Numerical, Ordinal, column_of

YES, NO = "yes", "no"


def summary_of(summary: Derived, child: LinkedTable, rows: int) -> tuple[Any, Column]:
    """Return the summary of the rows of each parent, and the kind of such a column.

    A row of the parent is summed up from rows of the same person.
    """
    if summary.how == SAME:
        return _same_sum(summary, child, rows)
    if summary.column is None:
        counts = np.bincount(child.parents[child.parents >= 0], minlength=rows)
        return counts, number_of_rows(Table(), MOST_ROWS)
    column = child.schema.columns.get(summary.column)
    if column is None:
        raise InputError(f"derive: {summary.table!r} has no column {summary.column!r}")
    dtype = child.source.head[summary.column].dtype  # public; categories of all cells follow from the rows
    cells, kind = child.source.column(summary.column), column_of(dtype)
    if summary.how == ANY:
        if not isinstance(column, Coded):
            raise InputError(
                f"constant: no cell of {summary.table}.{summary.column} is counted: leave it out"
            )
        # A row of the parent has one such value, and it is of a row of the same person: whoever is removed
        # changes one row of the root and the rows below it, as before.
        return _first(cells, child.parents, rows), replace(column, nullable=column.may_be_missing(dtype))
    if summary.how in (START, CHANGES):
        return _along(summary, cells, child, rows, column)
    if summary.how not in (EVER, "sum", "mean"):
        if not isinstance(column, Ordinal) or not isinstance(column, type(kind)):
            raise InputError(
                f"{summary}: {summary.column!r} is no column of numbers or times: {_as_read(dtype)}"
            )
        return _chosen(summary, cells, child, rows), replace(column, nullable=True)
    numbers = None
    if isinstance(column, Numerical) and isinstance(kind, Numerical):
        numbers = column.widest(dtype).encoder(dtype).read(cells)
    if summary.how == EVER:
        if isinstance(column, Ordinal) and numbers is None:
            raise InputError(f"derive: ever is about listed values and numbers, not {summary.column!r}")
        equal = _are(cells, summary.value or "") if numbers is None else numbers == number(summary.value)
        ever = np.bincount(child.parents[equal & (child.parents >= 0)], minlength=rows) > 0
        return np.where(ever, YES, NO), Categorical([NO, YES], nullable=False)
    if numbers is None:
        raise InputError(f"{summary}: {summary.column!r} is no column of numbers: {_as_read(dtype)}")
    has = ~np.isnan(numbers) & (child.parents >= 0)
    # NumPy counts in integers if no row has a number, and that would show.
    sums = np.bincount(child.parents[has], numbers[has], minlength=rows).astype(np.float64)
    if summary.how == "sum":
        return np.where(np.isnan(sums), 0.0, sums), Numerical(nullable=False)
    counts = np.bincount(child.parents[has], minlength=rows)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return means, Numerical(getattr(column, "low", None), getattr(column, "high", None))


def _as_read(dtype: Dtype) -> str:
    return f"its dtype here is {shown_dtype(dtype)}; convert it first, or give the file"


def _same_sum(summary: Derived, child: LinkedTable, rows: int) -> tuple[Any, Column]:
    """Return the sum of columns in the first row of each parent that has all of them; and its kind.

    It follows from one row of the same person: whoever is removed changes one row of the root and the rows
    below it, as before. The kind and its bounds are public, as those of the columns are.
    """
    rule = ConstantSum.of(str(summary.column))
    dtypes = child.source.head.dtypes
    columns, numbers = dict[str, Numerical](), dict[str, Floats]()
    for name in rule.columns:
        column = child.schema.columns.get(name)
        if not isinstance(column, Numerical):
            raise InputError(f"{str(rule)!r}: {name!r} is no column of numbers")
        with about(f"{str(rule)!r}: column {name!r}"):
            encoder = column.widest(dtypes[name]).encoder(dtypes[name])
        numbers[name] = encoder.read(child.source.column(name))
        is_whole = column.fixed_decimals is None and column.exact_decimals(dtypes[name]) == 0
        columns[name] = replace(column, integer=True) if is_whole else column
    nullable = any(column.may_be_missing(dtypes[name]) for name, column in columns.items())
    sums = _first(pd.Series(rule.sums(columns, numbers)), child.parents, rows)
    return sums, replace(rule.kind(columns), nullable=nullable)


def _first(cells: pd.Series, parents: Ints, rows: int) -> Any:
    """Return the first cell of each parent that is not missing; missing if there is none."""
    rows_present = np.flatnonzero((parents >= 0) & cells.notna().to_numpy())
    parents_present, first = np.unique(parents[rows_present], return_index=True)
    taken = np.full(rows, -1)
    taken[parents_present] = rows_present[first]
    nullable = with_missing(cells)
    # Of objects that are all text, pandas would else make another dtype, which tells that no other is there.
    return pd.Series(pd.api.extensions.take(nullable.array, taken, allow_fill=True), dtype=nullable.dtype)


def _along(summary: Derived, cells: pd.Series, child: LinkedTable, rows: int, column: Column) -> Any:
    """Return the first cell of each parent, or how often its cells change, and the kind of such a column.

    Both follow from the rows of one parent, which are rows of one person. So a person changes them in the
    row of the root, or in the rows below it, as other columns of these rows.
    """
    if not (isinstance(column, Coded) and column.lists_values and column.is_public):
        raise InputError(f"{summary}: declare {summary.column!r} as categorical, with its list of values")
    order = np.lexsort((np.arange(len(cells)) if child.keys is None else child.keys, child.parents))
    order = order[np.searchsorted(child.parents[order], 0) :]
    parents = child.parents[order]
    begins = np.diff(parents, prepend=-1) != 0
    if summary.how == START:
        taken = np.full(rows, -1)
        taken[parents[begins]] = order[begins]
        nullable = with_missing(cells)
        values = pd.api.extensions.take(nullable.array, taken, allow_fill=True)
        kind = replace(column, nullable=column.may_be_missing(cells.dtype))
        return pd.Series(values, dtype=nullable.dtype), kind
    codes = codes_of_listed(child, str(summary.column))[0][order]
    changes = ~begins & (np.diff(codes, prepend=-1) != 0)
    return np.bincount(parents[changes], minlength=rows), number_of_changes(MOST_ROWS)


def _chosen(summary: Derived, cells: pd.Series, child: LinkedTable, rows: int) -> Any:
    """Return the least, largest, first or last cell of each parent, missing if there is none.

    The dtype follows from that of the cells. Of integers of NumPy it is one with missing cells: else pandas
    would take floats if any parent is without rows.
    """
    cells = with_missing(cells)
    order = np.lexsort((np.arange(len(cells)) if child.keys is None else child.keys, child.parents))
    order = order[np.searchsorted(child.parents[order], 0) :]
    with replace_errors(f"derive: no {summary.how} of {summary.column!r} was found: please report this"):
        groups = cells.iloc[order].groupby(child.parents[order])
        return getattr(groups, summary.how)().reindex(range(rows)).array


def _are(cells: pd.Series, text: str) -> Mask:
    """Return which cells have this text. Each follows from its own cell: pandas writes times by all of them.

    >>> _are(pd.Series([True, None, b"x", "True"], dtype=object), "True").tolist()
    [True, False, False, True]
    """
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return np.append(_are(pd.Series(cells.cat.categories), text), np.False_)[cells.cat.codes]
    return np.array(
        [alone(lambda value: str(value) == text, cell, False) for cell in cells.tolist()], np.bool_
    )
