"""Constraints: what is publicly known to hold in every row, as a person says it.

A row that lacks one of the cells that a constraint speaks of keeps it, unless it speaks of missing (None).
How each is kept is told in `rules`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from privsyn.errors import InputError, replace_errors, safe_repr
from privsyn.table.schema.validation import flag

Condition = Mapping[str, Any]
"""For each column one value, a list of values, or a range ``{"low": a, "high": b}``; None is missing."""


@dataclass(frozen=True)
class Forbidden:
    """A combination that no row has: a structural zero.

    Parameters
    ----------
    when : mapping of a column to values
        One value, a list of values, or ``{"low": a, "high": b}`` with either end; None is missing.

    Examples
    --------
    >>> Forbidden({"age": {"high": 15}, "married": "yes"}).columns
    ('age', 'married')
    """

    when: Condition

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", _condition(self.when))

    def __reduce__(self) -> tuple[Any, ...]:
        return Forbidden, (dict(self.when),)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it speaks of."""
        return tuple(self.when)


@dataclass(frozen=True)
class Allowed:
    """The only combinations that rows have.

    Parameters
    ----------
    columns : list of str
    rows : list of lists, or pandas.DataFrame with these columns
        A value for each column.

    Examples
    --------
    >>> Allowed(["city", "country"], [["Oslo", "Norway"], ["Rome", "Italy"]]).rows[1]
    ('Rome', 'Italy')
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Hashable]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _names("columns", self.columns))
        object.__setattr__(self, "rows", _rows(self.rows, self.columns))


@dataclass(frozen=True)
class Determined:
    """A column that follows from others; it is computed, and asks nothing of the private table.

    Parameters
    ----------
    column : str
    by : str or list of str
    mapping : mapping of a value of `by` to a value of `column`
        Where `by` are several columns, of a tuple; combinations it does not list do not occur. A table of
        rows, each with the values of `by` and then that of `column`, will do.

    Examples
    --------
    >>> Determined("country", "city", {"Oslo": "Norway", "Rome": "Italy"}).rows
    (('Oslo', 'Norway'), ('Rome', 'Italy'))
    """

    column: str
    by: str | Sequence[str]
    mapping: Mapping[Any, Hashable] | Sequence[Sequence[Hashable]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", _names("by", (self.by,) if isinstance(self.by, str) else self.by))
        _names("column and by", self.columns)
        said = self.mapping
        if isinstance(said, Mapping):
            alone = len(self.by) == 1
            said = [((key,) if alone else _tuple(key)) + (value,) for key, value in said.items()]
        rows = _rows(said, self.columns)
        if len({row[:-1] for row in rows}) < len(rows):
            raise InputError(f"the mapping to {self.column!r} says two things of one key: drop one")
        object.__setattr__(self, "mapping", rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """What determines, and then what is determined."""
        return (*self.by, self.column)

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """The mapping as rows: the values of `by`, then that of `column`."""
        return self.mapping  # type: ignore[return-value]


@dataclass(frozen=True)
class Increasing:
    """Columns of numbers, or of dates, of which none lies above the next in any row.

    Parameters
    ----------
    columns : list of str
    strict : bool
        Whether each lies below the next.

    Examples
    --------
    >>> Increasing(["ordered", "sent", "delivered"]).strict
    False
    """

    columns: Sequence[str]
    strict: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _names("columns", self.columns))
        if len(self.columns) < 2:
            raise InputError("increasing wants at least two columns")
        object.__setattr__(self, "strict", flag("strict", self.strict))


@dataclass(frozen=True)
class Total:
    """A column of numbers that is the sum of others; it is computed, and asks nothing of the private table.

    Parameters
    ----------
    column : str
    of : list of str, or mapping of str to number
        The parts, each taken as often as the number says, -1 to take it off. Where a part is missing the
        total is.

    Examples
    --------
    >>> Total("net", {"gross": 1, "tax": -1}).columns
    ('gross', 'tax', 'net')
    """

    column: str
    of: Sequence[str] | Mapping[str, float]

    def __post_init__(self) -> None:
        parts = dict(self.of) if isinstance(self.of, Mapping) else dict.fromkeys(_names("of", self.of), 1)
        for name, times in parts.items():
            if isinstance(times, bool) or not isinstance(times, int | float) or not np.isfinite(times):
                raise InputError(f"part {name!r} is taken a number of times, not {safe_repr(times)}")
        object.__setattr__(self, "of", MappingProxyType(parts))
        _names("column and of", self.columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return Total, (self.column, dict(self.of))  # type: ignore[arg-type]

    @property
    def columns(self) -> tuple[str, ...]:
        """The parts, and then the total."""
        return (*self.of, self.column)


@dataclass(frozen=True)
class MissingWhen:
    """A column that is missing in some rows by its nature.

    Parameters
    ----------
    column : str
    when : as of `Forbidden`
        Of other columns: in which rows it is missing.
    only : bool
        Whether it is missing in these rows only.

    Examples
    --------
    >>> MissingWhen("spouse_age", {"married": "no"}).columns
    ('married', 'spouse_age')
    """

    column: str
    when: Condition
    only: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", _condition(self.when))
        object.__setattr__(self, "only", flag("only", self.only))
        _names("column and when", self.columns)

    def __reduce__(self) -> tuple[Any, ...]:
        return _missing_when, (self.column, dict(self.when), self.only)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the condition, and then the one that is missing."""
        return (*self.when, self.column)


Constraint = Forbidden | Allowed | Determined | Increasing | Total | MissingWhen


def computed_by(constraints: Iterable[Constraint]) -> dict[str, Determined | Total]:
    """The columns that are computed, each with what computes it; refused if two do."""
    found: dict[str, Determined | Total] = {}
    for constraint in constraints:
        if isinstance(constraint, Determined | Total):
            if constraint.column in found:
                raise InputError(f"column {constraint.column!r} is computed by two constraints: drop one")
            found[constraint.column] = constraint
    return found


def _missing_when(column: str, when: Condition, only: bool) -> MissingWhen:
    return MissingWhen(column, when, only=only)


def _names(what: str, names: object) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise InputError(f"{what}: a list of names of columns")
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InputError(f"{what}: names of columns, no two alike")
    return tuple(names)


def _condition(when: object) -> Condition:
    if not isinstance(when, Mapping) or not when:
        raise InputError('when: a mapping of columns to values, such as {"married": "no"}')
    _names("when", tuple(when))
    return MappingProxyType({name: _values(name, said) for name, said in when.items()})


def _values(name: str, said: object) -> object:
    if isinstance(said, Mapping):
        ends = {end: _single(value) for end, value in said.items() if value is not None}
        if not ends or set(said) - {"low", "high"}:
            raise InputError(f"when: {name!r}: a range says low, high or both")
        return ends
    if isinstance(said, list | set | frozenset | tuple):
        return tuple(_single(value) for value in said)
    return _single(said)


def _single(value: Any) -> Any:
    """A value of Python's own types, where NumPy has it in one of its own."""
    if isinstance(value, np.datetime64 | np.timedelta64):  # in nanoseconds their item() is a bare number
        return value.astype(f"{value.dtype.str[1:3]}[us]").item()
    return value.item() if isinstance(value, np.generic) else value


def _rows(rows: Any, columns: Sequence[str]) -> tuple[tuple[Any, ...], ...]:
    if hasattr(rows, "columns") and hasattr(rows, "itertuples"):
        if set(rows.columns) != set(columns):
            raise InputError(f"the rows want the columns {', '.join(columns)}")
        rows = [tuple(row) for row in rows[list(columns)].itertuples(index=False)]
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise InputError("the rows are a list of lists, or a data frame")
    listed = tuple(dict.fromkeys(_tuple(row) for row in rows))
    if not listed or any(len(row) != len(columns) for row in listed):
        raise InputError(f"each row has a value for {', '.join(columns)}, and there is at least one")
    return listed


def _tuple(row: object) -> tuple[Any, ...]:
    cells = tuple(row) if isinstance(row, Sequence) and not isinstance(row, str) else (row,)
    cells = tuple(_single(cell) for cell in cells)
    with replace_errors("a row holds single values"):
        hash(cells)
    if any(cell is None or cell != cell for cell in cells):
        raise InputError("a missing value is not listed: a row that lacks a cell keeps the constraint")
    return cells
