"""Equal: two columns that hold the same value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Numbers
from privsyn.table.enforcement.determined import MappingOf
from privsyn.table.kinds.ordinal import ordinal_of
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.constraint import Columns, Constraint, check_names
from privsyn.table.schema.rules import Computation, Rule


@dataclass(frozen=True, init=False)
class Equal(Constraint):
    """Computes a column as a copy of another, without a query of the private table.

    Parameters
    ----------
    names : str
        The column that is counted, and the column that is its copy.
    columns : list of str, optional
        The two names as a list.

    Examples
    --------
    >>> Equal("billed", "paid").computes
    'paid'
    """

    columns: Sequence[str]
    derives_last: ClassVar[bool] = True

    def __init__(self, *names: str, columns: Sequence[str] = ()) -> None:
        object.__setattr__(self, "columns", check_names("equal", names or columns))
        if len(self.columns) != 2:
            raise InputError("equal needs two columns: use one constraint for each pair")

    @property
    def computes(self) -> str:
        """The second column."""
        return self.columns[1]

    def derive(self, columns: Columns) -> Columns:
        """Return the copy with the values or the bounds of the column that is counted."""
        counted, copy = (columns[name] for name in self.columns)
        if type(counted) is not type(copy):
            raise InputError("columns that are equal are of the same kind")
        if copy.is_public or not counted.is_public:
            if copy.is_public and not counted.is_public:
                raise InputError(f"give the values or bounds of {self.columns[0]!r}, or none for both")
            return {}
        return {self.computes: copy.like(counted)}

    def check(self, columns: Columns) -> None:
        """Refuse a copy that lacks a value, or has narrower bounds."""
        counted, copy = (columns[name] for name in self.columns)
        if counted.listed:
            _places(counted, copy)
        elif ordinal_of(counted).scale != ordinal_of(copy).scale:
            raise InputError("columns that are equal have the same unit")
        elif not (copy.bounds[0] <= counted.bounds[0] and counted.bounds[1] <= copy.bounds[1]):
            raise InputError(f"{self.columns[1]!r} has narrower bounds than {self.columns[0]!r}")
        if counted.nullable and not copy.nullable:
            raise InputError(f"{self.columns[0]!r} may be missing, and {self.columns[1]!r} may not")

    def explain(self) -> str:
        """Return what the constraint does, in plain English."""
        return f"{self.columns[1]} is a copy of {self.columns[0]}."

    def rules(self, columns: Columns) -> list[Rule]:
        """Return no rule: the column is computed."""
        return []

    def computation(self, columns: Columns) -> Computation:
        """Return the copy; of listed values, a mapping to the places in the other list."""
        name, copy = self.columns
        column = columns[name]
        if column.listed:
            codes = _places(column, columns[copy])
            return MappingOf(copy, (name,), np.arange(float(len(codes)))[:, np.newaxis], codes)
        return CopyOf(copy, (name,), column.fixed_decimals)


def _places(counted: Coded, copy: Coded) -> Floats:
    """Return the place of each value in the list of the copy."""
    return np.array([copy.number_of(value) for value in counted.listed])


@dataclass(frozen=True, eq=False)
class CopyOf(Computation):
    """Computes a column of numbers or times as a copy of another."""

    column: str
    by: tuple[str, ...]
    decimals: int | None

    def make(self, numbers: Numbers) -> Floats:
        """Return the numbers of the other column."""
        return np.array(numbers[self.by[0]])
