"""Schema: what is public about the columns of a table, in a few kinds of column."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from types import MappingProxyType
from typing import Literal

import numpy as np

from privsyn.errors import InputError, shown
from privsyn.table.checks import (
    all_whole,
    both_or_neither,
    check_decimals,
    count,
    distinct_values,
    flag,
    marks,
    normalise,
    number_bounds,
    one_of,
    time_bounds,
    time_format,
)
from privsyn.table.constraints import Constraint, computed_by
from privsyn.table.csv_format import CsvFormat
from privsyn.table.kinds import MAX_BINS, Duration, Identifier, Text, Time

MAX_DECIMALS = 12


@dataclass(frozen=True)
class Categorical:
    """A column of a few listed values.

    Parameters
    ----------
    values : list of hashable values, optional
        The public list. Two values that Python calls equal (``1 == 1.0 == True``) cannot be told apart in a
        table either and count as a duplicate. Left out: the list is not public, and the values that enough
        rows share are found under privacy.
    other : hashable value, optional
        What a value that is not listed, or not found, becomes. Left out: if the values were listed, missing,
        or the first one where nothing may be missing; if they were found, ``"other"`` where the column's
        dtype can hold that, and else missing or the one most frequent.
    nullable : bool
        Whether a cell may be missing. Where nothing may be, a missing cell counts as the first value.
    missing : str or list of str
        Texts that stand for a missing cell in a file, beside the empty cell.

    Examples
    --------
    >>> Categorical(["Female", "Male"]).values
    ('Female', 'Male')
    >>> Categorical(["Rome", "Oslo"], other="elsewhere").values
    ('Rome', 'Oslo', 'elsewhere')
    """

    values: Sequence[Hashable] | None = None
    other: Hashable = field(default=None, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        normalise(self, nullable=flag("nullable", self.nullable), missing=marks(self.missing))
        if self.other is not None:
            normalise(self, other=distinct_values([self.other])[0])
        if self.values is not None:
            values = distinct_values(self.values)
            extra = () if self.other is None or self.other in values else (self.other,)
            normalise(self, values=values + extra)

    @property
    def is_public(self) -> bool:
        """Whether the list of values is given."""
        return self.values is not None


@dataclass(frozen=True)
class Numerical:
    """A column of numbers between public bounds; what lies outside is clipped to them.

    Parameters
    ----------
    low, high : number, optional
        The public bounds, both included. Left out: they are not public, and are found under privacy, at
        powers of two and half-way between them.
    integer : bool, optional
        Whether all numbers are whole. Left out: the column's dtype decides; in a CSV, which has none, they
        are whole if both bounds are written without a point and no decimals are given.
    decimals : int, optional
        Decimals that the numbers have, if they have a fixed number of them. Left out: those of a decimal
        dtype, if it has at most four.
    objects : {"number", "decimal"}
        What a column of Python objects holds: plain numbers, or `decimal.Decimal`.
    bins : int
        At most so many equal intervals are told apart.
    nullable : bool
        Whether a cell may be missing. A cell that is no number counts as missing, or as `low` where nothing
        may be missing.
    missing : str or list of str
        Texts that stand for a missing cell in a file, beside the empty cell.

    Examples
    --------
    >>> Numerical(5, 1)
    Traceback (most recent call last):
    privsyn.errors.InputError: low 5 is above high 1
    """

    low: float | None = None
    high: float | None = None
    integer: bool | None = field(default=None, kw_only=True)
    decimals: int | None = field(default=None, kw_only=True)
    objects: Literal["number", "decimal"] = field(default="number", kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        normalise(self, nullable=flag("nullable", self.nullable), missing=marks(self.missing))
        normalise(self, bins=count("bins", self.bins, 1, MAX_BINS))
        one_of("objects", self.objects, ("number", "decimal"))
        if self.integer is not None:
            normalise(self, integer=flag("integer", self.integer))
        if self.decimals is not None:
            normalise(self, decimals=count("decimals", self.decimals, 0, MAX_DECIMALS))
            if self.integer:
                raise InputError("integer and decimals exclude each other: give one of them")
        low, high = both_or_neither(self.low, self.high)
        if low is None:
            return
        low, high = number_bounds(low, high)
        if self.integer or self.decimals is not None:
            check_decimals(low, high, self.decimals or 0)
        normalise(self, low=low, high=high)

    @property
    def is_public(self) -> bool:
        """Whether the bounds are given."""
        return self.low is not None

    @property
    def is_whole(self) -> bool:
        """Whether all numbers are whole as far as this column says, which is what counts in a CSV.

        >>> Numerical(0, 9).is_whole, Numerical(0.0, 9.0).is_whole, Numerical(0, 9, integer=False).is_whole
        (True, False, False)
        """
        if self.integer is not None or self.decimals is not None:
            return bool(self.integer)
        low, high = self.low, self.high
        return isinstance(low, int) and isinstance(high, int) and all_whole(low, high)


@dataclass(frozen=True)
class Datetime:
    """A column of dates or times between public bounds; what lies outside is clipped to them.

    Parameters
    ----------
    low, high : str, date, datetime or numpy.datetime64, optional
        The public bounds, both included; text in ISO form. Times are those of the clock on the wall in the
        column's own time zone, in whole seconds. Left out: they are not public, and are found under privacy,
        to the month.
    unit : {"D", "s"}, optional
        The step: days or seconds. Left out: days, if neither bound has a time of day, or none is given.
    format : str, optional
        How text says a date, in a column of text or in a CSV: as ``datetime.strftime`` knows it, such as
        ``"%d.%m.%Y"``. Left out: in ISO form.
    objects : {"text", "date", "datetime"}
        What a column of Python objects holds.
    bins, nullable, missing
        As for `Numerical`.

    Examples
    --------
    >>> Datetime("2015-01-01", "2020-12-31").unit
    'D'
    >>> Datetime("2015-01-01 08:00", "2015-01-01 18:00").unit
    's'
    """

    low: str | date | np.datetime64 | None = None
    high: str | date | np.datetime64 | None = None
    unit: Literal["D", "s"] | None = field(default=None, kw_only=True)
    format: str | None = field(default=None, kw_only=True)
    objects: Literal["text", "date", "datetime"] = field(default="text", kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        normalise(self, nullable=flag("nullable", self.nullable), missing=marks(self.missing))
        normalise(self, bins=count("bins", self.bins, 1, MAX_BINS))
        one_of("objects", self.objects, ("text", "date", "datetime"))
        if self.format is not None:
            normalise(self, format=time_format(self.format))
        if self.unit is not None and (not isinstance(self.unit, str) or self.unit not in ("D", "s")):
            raise InputError(f"unit {shown(self.unit)} is neither 'D' (days) nor 's' (seconds)")
        low, high = both_or_neither(self.low, self.high)
        if low is None:
            return
        low, high = time_bounds(low, high)
        dates_only = low.time() == high.time() == time()
        if self.unit == "D" and not dates_only:
            raise InputError("unit 'D' wants bounds without a time of day")
        normalise(self, low=low, high=high, unit=self.unit or ("D" if dates_only else "s"))

    @property
    def is_public(self) -> bool:
        """Whether the bounds are given."""
        return self.low is not None


Ordinal = Numerical | Datetime | Time | Duration
"""What is coded by its place between two bounds."""

Coded = Categorical | Ordinal
"""What is counted."""

Column = Coded | Identifier | Text


@dataclass(frozen=True)
class Schema:
    """The public facts about a table: its columns by name.

    Parameters
    ----------
    columns : mapping of str to Categorical, Numerical, Datetime, Time, Duration, Identifier or Text
    missing : str or list of str
        Texts that stand for a missing cell in a file, in every column, beside the empty cell.
    csv : CsvFormat, optional
        How a CSV file is written.
    constraints : list of Forbidden, Allowed, Determined, Increasing, Total or MissingWhen
        What holds in every row, and is public; see `privsyn.table.constraints`.

    Examples
    --------
    >>> schema = Schema({"age": Numerical(17, 90), "job": Categorical(["a", "b"])}, missing="?")
    >>> list(schema.columns), schema.markers("job")
    (['age', 'job'], ('', '?'))
    """

    columns: Mapping[str, Column]
    missing: str | Sequence[str] = field(default=(), kw_only=True)
    csv: CsvFormat = field(default=CsvFormat(), kw_only=True)
    constraints: Sequence[Constraint] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.csv, CsvFormat):
            raise InputError(f"csv is a CsvFormat, not {shown(self.csv)}")
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise InputError('a schema maps names to columns, as in Schema({"age": Numerical(0, 100)})')
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        object.__setattr__(self, "missing", marks(self.missing))
        for name, column in self.columns.items():
            if not isinstance(name, str):
                raise InputError(f"the column name {shown(name)} is not text: rename the column")
            if not isinstance(column, Column):
                raise InputError(
                    f"column {name!r}: {shown(column)} is not a Categorical, Numerical, Datetime or the like"
                )
            if isinstance(column, Categorical):
                known = column.values or (() if column.other is None else (column.other,))
                both = {str(value) for value in known} & {*self.missing, *column.missing}
                if both:
                    raise InputError(
                        f"column {name!r}: {shown(min(both))} is both a value and a mark for missing"
                    )
        from privsyn.table.compiling import settle_columns  # which knows the columns above

        columns, constraints = settle_columns(self.columns, self.constraints)
        object.__setattr__(self, "columns", MappingProxyType(columns))
        object.__setattr__(self, "constraints", constraints)

    def __reduce__(self) -> tuple[Callable[..., Schema], tuple[object, ...]]:
        # A read-only mapping cannot be copied or pickled; a plain one can.
        return _rebuild, (dict(self.columns), self.missing, self.csv, self.constraints)

    @property
    def computed(self) -> tuple[str, ...]:
        """The columns that constraints compute from others: nothing is asked about them."""
        return tuple(computed_by(self.constraints))

    def markers(self, name: str) -> tuple[str, ...]:
        """The texts that stand for a missing cell of this column in a file."""
        column = self.columns[name]
        listed = column.values if isinstance(column, Categorical) else None
        empty = () if "" in (listed or ()) else ("",)
        return (*empty, *self.missing, *getattr(column, "missing", ()))

    @property
    def coded(self) -> dict[str, Coded]:
        """The columns that are counted: all but identifiers and free text."""
        return {name: column for name, column in self.columns.items() if isinstance(column, Coded)}

    def require_public(self) -> None:
        """Refuse a schema in which a list of values or the bounds of a column are still to be found."""
        for name, column in self.columns.items():
            if column.is_public:
                continue
            if isinstance(column, Categorical):
                what, how = "list its values", "Categorical([...])"
            else:
                what, how = "give its bounds", f"{type(column).__name__}(low, high)"
            raise InputError(f"column {name!r}: {what}: {how}; only `fit` finds them under privacy")


def _rebuild(
    columns: dict[str, Column],
    missing: tuple[str, ...],
    csv: CsvFormat,
    constraints: tuple[Constraint, ...],
) -> Schema:
    return Schema(columns, missing=missing, csv=csv, constraints=constraints)
