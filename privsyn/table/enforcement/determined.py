"""Determined: a column whose value follows from other columns, by a mapping."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privsyn.errors import InputError, safe_repr
from privsyn.marginals.domain import Floats, Numbers, keep
from privsyn.table.enforcement.allowed import AllowedRule, check_row, check_rows, derive_listed, numbers_of
from privsyn.table.schema.constraint import Columns, Constraint, check_names
from privsyn.table.schema.rules import Computation, Rule, find_rows


@dataclass(frozen=True)
class Determined(Constraint):
    """Computes a column from others by a mapping, without a query of the private table.

    Parameters
    ----------
    column : str
    by : str or list of str
    mapping : mapping of a value of `by` to a value of `column`
        With several columns in `by`, the keys are tuples, and combinations that are not listed do not occur;
        nor do other numbers of one column of numbers. You can also give a list of rows, each with the values
        of `by` and then that of `column`.
    source : str
        The name of the public file with the mapping, if it was looked up in one: the ledger names it.

    Examples
    --------
    >>> Determined("country", "city", {"Oslo": "Norway", "Rome": "Italy"}).rows
    (('Oslo', 'Norway'), ('Rome', 'Italy'))
    """

    column: str
    by: str | Sequence[str]
    mapping: Mapping[Any, Hashable] | Sequence[Sequence[Hashable]]
    source: str = field(default="", compare=False, repr=False)

    lists_values = True

    def __post_init__(self) -> None:
        if not isinstance(self.source, str):
            raise InputError("source is the name of a file")
        by = check_names("by", (self.by,) if isinstance(self.by, str) else self.by)
        object.__setattr__(self, "by", by)
        check_names("column and by", self.columns)
        rows: Any = self.mapping
        if isinstance(rows, Mapping):
            rows = [((key,) if len(by) == 1 else check_row(key)) + (value,) for key, value in rows.items()]
        rows = check_rows(rows, self.columns)
        if len({row[:-1] for row in rows}) < len(rows):
            raise InputError(f"the mapping gives one key two values of {self.column!r}: drop one")
        object.__setattr__(self, "mapping", rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in `by`, and last the column that they determine."""
        return (*self.by, self.column)

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The mapping as rows: the values of `by`, and last that of `column`."""
        return self.mapping  # type: ignore[return-value]

    @property
    def computes(self) -> str:
        """The determined column."""
        return self.column

    def derive(self, columns: Columns) -> Columns:
        """Fill in the lists and bounds that the mapping makes public."""
        return derive_listed(columns, self.columns, self.rows)

    def check(self, columns: Columns) -> None:
        """Refuse a mapping from one column that leaves out one of its listed values."""
        first, column = self.by[0], columns[self.by[0]]
        if len(self.by) == 1:
            keys = {row[0] for row in self.rows}
            unmapped = [value for value in column.listed if value not in keys]
            if unmapped:
                raise InputError(
                    f"the mapping has no {self.column!r} for {first!r} = {safe_repr(unmapped[0])}"
                )
        for name in self.by:
            if columns[name].nullable and not columns[self.column].nullable:
                raise InputError(
                    f"{name!r} may be missing, and {self.column!r} with it: give both the same nullable"
                )

    def explain(self) -> str:
        """Return what the constraint does, in plain English."""
        return f"{self.column} is looked up by {' and '.join(self.by)}, in a list of {len(self.rows)} rows."

    def rules(self, columns: Columns) -> list[Rule]:
        """Allow only the listed combinations, or numbers; of a column with a list, all values are in it."""
        if len(self.by) == 1 and columns[self.by[0]].listed:
            return []
        keys = [row[:-1] for row in self.rows]
        return [AllowedRule(tuple(self.by), numbers_of(columns, self.by, keys))]

    def computation(self, columns: Columns) -> MappingOf:
        """Return the mapping of the numbers."""
        rows = numbers_of(columns, self.columns, self.rows)
        return MappingOf(self.column, tuple(self.by), rows[:, :-1], rows[:, -1])

    def to_plain(self, listed: Collection[str]) -> dict[str, Any]:
        """Return a mapping with text keys as a mapping, and any other as rows: JSON keys are text."""
        plain = super().to_plain(listed)
        plain.pop("source", None)  # a model file has the mapping itself
        if len(self.by) == 1:
            plain["by"] = self.by[0]
            if all(isinstance(row[0], str) for row in plain["mapping"]):
                plain["mapping"] = dict(plain["mapping"])
        return plain


@dataclass(frozen=True, eq=False)
class MappingOf(Computation):
    """Computes a column from others by a list of keys and values.

    Parameters
    ----------
    column : str
    by : tuple of str
    keys : array of shape (rows, len(by))
    values : array of shape (rows,)
    """

    column: str
    by: tuple[str, ...]
    keys: Floats
    values: Floats

    def __post_init__(self) -> None:
        keep(self, "keys", "values", dtype=np.float64)
        if self.keys.shape != (len(self.values), len(self.by)):
            raise ValueError(f"keys {self.keys.shape} for {len(self.values)} values by {self.by}")

    def make(self, numbers: Numbers) -> Floats:
        """Return the value of each row, NaN where a key is missing."""
        rows = find_rows(self.keys, np.stack([numbers[name] for name in self.by], axis=1))
        return np.where(rows < 0, np.nan, self.values[rows])
