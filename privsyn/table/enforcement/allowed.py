"""Allowed: the only combinations of values that occur."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from privsyn.errors import InputError, about, replace_errors, safe_repr
from privsyn.marginals.domain import Array, Floats, Integers, Mask, Numbers
from privsyn.marginals.nearest_rows import nearest_rows
from privsyn.marginals.tolerances import SMALLEST
from privsyn.table.schema.constraint import Columns, Constraint, check_names, python_value
from privsyn.table.schema.draws import Cells, DrawnRows
from privsyn.table.schema.rules import Rule, find_rows

MOST_CELLS = 10_000
"""Combinations of values that `Allowed.where` tries."""

Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Allowed(Constraint):
    """Lists the only combinations of values that occur.

    Parameters
    ----------
    columns : list of str
    rows : list of lists, or pandas.DataFrame with these columns
        One value for each column.

    Examples
    --------
    >>> Allowed(["city", "country"], [["Oslo", "Norway"], ["Rome", "Italy"]]).rows[1]
    ('Rome', 'Italy')
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Hashable]]

    lists_values = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", check_names("columns", self.columns))
        object.__setattr__(self, "rows", check_rows(self.rows, self.columns))

    @classmethod
    def where(cls, values: Mapping[str, Iterable[Hashable]], keeps: Callable[..., object]) -> Allowed:
        """Return the constraint that a function states on a small domain.

        Parameters
        ----------
        values : mapping of a column to all values that it can have
        keeps : function of one value for each column, in the order of `values`
            It says whether a row may have these values. It runs here, once for each combination, and never on
            a private row.

        Examples
        --------
        >>> Allowed.where({"size": "SML", "price": [5, 9]}, lambda size, price: size != "L" or price > 5).rows
        (('S', 5), ('S', 9), ('M', 5), ('M', 9), ('L', 9))
        """
        listed = [tuple(column_values) for column_values in values.values()]
        if (cells := math.prod(map(len, listed))) > MOST_CELLS:
            raise InputError(f"there are {cells:,} combinations: at most {MOST_CELLS:,} can be listed")
        return cls(list(values), [row for row in itertools.product(*listed) if keeps(*row)])

    def derive(self, columns: Columns) -> Columns:
        """Fill in the lists and bounds that the combinations make public."""
        return derive_listed(columns, self.columns, self.rows)  # type: ignore[arg-type]

    def explain(self) -> str:
        """Return what the constraint does, in plain English."""
        return f"{' and '.join(self.columns)} have one of {len(self.rows)} listed combinations."

    def rules(self, columns: Columns) -> list[Rule]:
        """Return the one rule that allows these combinations only."""
        return [AllowedRule(tuple(self.columns), numbers_of(columns, self.columns, self.rows))]  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class AllowedRule(Rule):
    """Allows only the listed combinations, except in rows with a missing cell.

    Parameters
    ----------
    columns : tuple of str
    rows : array of shape (combinations, columns)
    """

    columns: tuple[str, ...]
    rows: Floats

    @property
    def intervals(self) -> list[tuple[str, Floats, Floats]]:
        """The values in the combinations, each of which is an interval."""
        listed = [np.unique(values) for values in self.rows.T]
        return [(name, values, values) for name, values in zip(self.columns, listed, strict=True)]

    def holds(self, numbers: Numbers) -> Mask:
        """Return where the combination is listed."""
        values = np.stack([numbers[name] for name in self.columns], axis=1)
        return np.isnan(values).any(axis=1) | (find_rows(self.rows, values) >= 0)

    def possible(self, cells: list[Cells]) -> Mask:
        """Return the cells of the listed combinations, and those with a missing value."""
        mask = np.zeros([c.merged for c in cells], np.bool_)
        mask[tuple(c.groups[c.find(self.rows[:, j])] for j, c in enumerate(cells))] = True
        for axis, c in enumerate(cells):
            if c.missing >= 0:
                mask[(slice(None),) * axis + (c.missing,)] = True
        return mask

    def repair(self, rows: DrawnRows, at: Integers, rng: np.random.Generator) -> None:
        """Draw a combination from the row's own groups by its weight, or take the most similar one."""
        if not all(name in rows.cells for name in self.columns):
            return
        # Fixed columns come first, so that the most similar combination agrees with them.
        order = sorted(range(len(self.columns)), key=lambda j: self.columns[j] not in rows.fixed)
        listed: list[Array] = []
        wanted: list[Array] = []
        weights = np.ones(len(self.rows))
        for j in order:
            name, c = self.columns[j], rows.cells[self.columns[j]]
            codes = c.find(self.rows[:, j])
            fixed = name in rows.fixed
            listed.append(self.rows[:, j] if fixed else c.groups[codes])
            wanted.append(rows.numbers[name][at] if fixed else rows.merged(name, at))
            weights *= c.shares[codes]
        picked = nearest_rows(listed, weights + SMALLEST, wanted, rng)
        agrees = np.ones(len(at), np.bool_)
        for j, name in enumerate(self.columns):
            if name in rows.fixed:
                agrees &= rows.numbers[name][at] == self.rows[picked, j]
        for j, name in enumerate(self.columns):
            rows.numbers[name][at[agrees]] = self.rows[picked[agrees], j]


def derive_listed(columns: Columns, names: Sequence[str], rows: Rows) -> Columns:
    """Return the columns that are not public, with values or bounds from the combinations."""
    derived: dict[str, Any] = {}
    for j, name in enumerate(names):
        values: list[Any] = [row[j] for row in rows]
        column: Any = columns[name]
        if column.is_public:
            continue
        with suppress(TypeError):  # values without an order have no bounds
            derived[name] = column.with_listed(values)
    return derived


def numbers_of(columns: Columns, names: Sequence[str], rows: Rows) -> Floats:
    """Return combinations as numbers, of shape (rows, columns); refuse a value outside its column."""
    numbers = np.empty((len(rows), len(names)))
    for j, name in enumerate(names):
        with about(f"column {name!r}"):
            number = {value: columns[name].number_of(value) for value in {row[j] for row in rows}}
        low, high = columns[name].bounds
        for value, at in number.items():
            if not low <= at <= high:
                raise InputError(f"column {name!r}: {safe_repr(value)} lies outside its bounds")
        numbers[:, j] = [number[row[j]] for row in rows]
    return numbers


def check_rows(rows: Any, columns: Sequence[str]) -> tuple[tuple[Any, ...], ...]:
    """Return combinations as distinct tuples with a value for each column."""
    if hasattr(rows, "columns") and hasattr(rows, "itertuples"):
        if set(rows.columns) != set(columns):
            raise InputError(f"the rows need the columns {', '.join(columns)}")
        rows = [tuple(row) for row in rows[list(columns)].itertuples(index=False)]
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise InputError("give the rows as a list of lists, or a data frame")
    listed = tuple(dict.fromkeys(check_row(row) for row in rows))
    if not listed or any(len(row) != len(columns) for row in listed):
        raise InputError(f"give at least one row, and in each row a value for {', '.join(columns)}")
    return listed


def check_row(row: object) -> tuple[Any, ...]:
    """Return one combination as a tuple of single values, none of them missing."""
    cells = tuple(row) if isinstance(row, Sequence) and not isinstance(row, str) else (row,)
    cells = tuple(python_value(cell) for cell in cells)
    with replace_errors("a row holds single values"):
        hash(cells)
    if any(cell is None or cell != cell for cell in cells):
        raise InputError("do not list missing values: a row with a missing cell keeps the constraint")
    return cells
