"""Schema: what is public about the columns of a table, in three kinds of column."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from types import MappingProxyType
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.table.grid import holds

MAX_BINS = 2**20
MAX_DECIMALS = 12


@dataclass(frozen=True)
class Categorical:
    """A column of a few listed values.

    Parameters
    ----------
    values : list of hashable values, optional
        The public list. Two values that Python calls equal (``1 == 1.0 == True``) cannot be told apart in a
        table either and count as a duplicate. Left out: the list is not public.
    nullable : bool
        Whether a cell may be missing. A cell whose value is not listed counts as missing, or as the first
        value listed where nothing may be missing.
    missing : str or list of str
        Texts that stand for a missing cell in a file, beside the empty cell.

    Examples
    --------
    >>> Categorical(["Female", "Male"]).values
    ('Female', 'Male')
    """

    values: Sequence[Hashable] | None = None
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        _check_common(self)
        if self.values is None:
            return
        if isinstance(self.values, str | bytes | Mapping | set | frozenset) or not isinstance(
            self.values, Iterable
        ):
            raise InputError(f"values are a list in a fixed order, not a {type(self.values).__name__}")
        values = tuple(value.item() if isinstance(value, np.generic) else value for value in self.values)
        if not values:
            raise InputError("the list of values is empty: list them, or leave the list out")
        _check_distinct(values)
        object.__setattr__(self, "values", values)

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
        The public bounds, both included. Left out: they are not public.
    integer : bool, optional
        Whether all numbers are whole. Left out: the column's dtype decides.
    decimals : int, optional
        Decimals that the numbers have, if they have a fixed number of them.
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
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        _check_common(self)
        _check_count("bins", self.bins, 1, MAX_BINS)
        if self.integer is not None:
            _check_flag("integer", self.integer)
        if self.decimals is not None:
            _check_count("decimals", self.decimals, 0, MAX_DECIMALS)
            if self.integer:
                raise InputError("integer and decimals exclude each other: give one of them")
        _normalise_bounds(self, _number)
        if self.is_public and (self.integer or self.decimals is not None):
            check_decimals(self, self.decimals or 0)

    @property
    def is_public(self) -> bool:
        """Whether the bounds are given."""
        return self.low is not None


@dataclass(frozen=True)
class Datetime:
    """A column of dates or times between public bounds; what lies outside is clipped to them.

    Parameters
    ----------
    low, high : str, date, datetime or numpy.datetime64, optional
        The public bounds, both included; text in ISO form. Times are those of the clock on the wall in the
        column's own time zone, in whole seconds. Left out: they are not public.
    unit : {"D", "s"}, optional
        The step: days or seconds. Left out: days, if neither bound has a time of day.
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
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        _check_common(self)
        _check_count("bins", self.bins, 1, MAX_BINS)
        if self.unit not in (None, "D", "s"):
            raise InputError(f"unit {self.unit!r} is neither 'D' (days) nor 's' (seconds)")
        _normalise_bounds(self, _moment)
        if not self.is_public:
            return
        dates_only = all(isinstance(b, datetime) and b.time() == time() for b in (self.low, self.high))
        if self.unit == "D" and not dates_only:
            raise InputError("unit 'D' wants bounds without a time of day")
        object.__setattr__(self, "unit", self.unit or ("D" if dates_only else "s"))

    @property
    def is_public(self) -> bool:
        """Whether the bounds are given."""
        return self.low is not None


Column = Categorical | Numerical | Datetime


@dataclass(frozen=True)
class Schema:
    """The public facts about a table: its columns by name.

    Parameters
    ----------
    columns : mapping of str to Categorical, Numerical or Datetime
    missing : str or list of str
        Texts that stand for a missing cell in a file, in every column, beside the empty cell.

    Examples
    --------
    >>> schema = Schema({"age": Numerical(17, 90), "job": Categorical(["a", "b"])}, missing="?")
    >>> list(schema.columns), schema.markers("job")
    (['age', 'job'], ('', '?'))
    """

    columns: Mapping[str, Column]
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise InputError('a schema maps names to columns, as in Schema({"age": Numerical(0, 100)})')
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        object.__setattr__(self, "missing", _markers(self.missing))
        check_names(self.columns)
        for name, column in self.columns.items():
            if not isinstance(column, Column):
                raise InputError(f"column {name!r}: {column!r} is not a Categorical, Numerical or Datetime")
            if isinstance(column, Categorical) and column.values:
                both = {str(value) for value in column.values} & {*self.missing, *column.missing}
                if both:
                    raise InputError(f"column {name!r}: {min(both)!r} is both a value and a mark for missing")

    def __reduce__(self) -> tuple[Callable[..., Schema], tuple[object, ...]]:
        # A read-only mapping cannot be copied or pickled; a plain one can.
        return _rebuild, (dict(self.columns), self.missing)

    def markers(self, name: str) -> tuple[str, ...]:
        """The texts that stand for a missing cell of this column in a file."""
        column = self.columns[name]
        listed = column.values if isinstance(column, Categorical) else None
        empty = () if "" in (listed or ()) else ("",)
        return (*empty, *self.missing, *column.missing)

    def require_public(self) -> None:
        """Refuse a schema that leaves out a list of values or the bounds of a column."""
        for name, column in self.columns.items():
            if column.is_public:
                continue
            if isinstance(column, Categorical):
                what, how = "list its values", "Categorical([...])"
            else:
                what, how = "give its bounds", f"{type(column).__name__}(low, high)"
            raise InputError(
                f"column {name!r}: {what}: {how}; finding them under privacy comes with a later version"
            )


def check_decimals(column: Numerical, decimals: int) -> None:
    """Refuse bounds that have more decimals than the column, or too many digits for a double."""
    what = "whole numbers" if decimals == 0 else f"numbers of {decimals} decimals"
    for bound in (column.low, column.high):
        if bound is not None and round(bound, decimals) != bound:
            raise InputError(f"the bounds of {what} are {what}, not {bound}")
    low, high = cast(float, column.low), cast(float, column.high)
    if not holds(np.dtype(np.float64), low, high, decimals):
        raise InputError(f"{what} from {low} to {high} have too many digits for a double")


def check_names(names: Iterable[object], where: str = "") -> None:
    """Refuse column names that are not text, or two alike; `where` begins the complaint."""
    seen: set[object] = set()
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{where}the column name {name!r} is not text: rename the column")
        if name in seen:
            raise InputError(f"{where}two columns are named {name!r}: rename one")
        seen.add(name)


def _rebuild(columns: dict[str, Column], missing: tuple[str, ...]) -> Schema:
    return Schema(columns, missing=missing)


def _check_common(column: Column) -> None:
    _check_flag("nullable", column.nullable)
    object.__setattr__(column, "missing", _markers(column.missing))


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InputError(f"{name} is true or false, not {value!r}")


def _check_count(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise InputError(f"{name} is a whole number from {low} to {high}, not {value!r}")


def _check_distinct(values: tuple[Any, ...]) -> None:
    seen: set[Any] = set()
    for value in values:
        try:
            hash(value)
        except TypeError:
            raise InputError(f"the value {value!r} is not hashable") from None
        if pd.api.types.is_scalar(value) and pd.isna(value):
            raise InputError("a missing value is not listed: say nullable=True")
        if value in seen:
            raise InputError(f"the value {value!r} is listed twice (1, 1.0 and True are one value)")
        seen.add(value)


def _markers(missing: object) -> tuple[str, ...]:
    texts = (missing,) if isinstance(missing, str) else missing
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"missing is a text or a list of texts, not {missing!r}")
    return tuple(texts)


def _normalise_bounds(column: Numerical | Datetime, normal: Callable[[object], object]) -> None:
    if (column.low is None) != (column.high is None):
        raise InputError("give both bounds, low and high, or neither")
    if column.low is None:
        return
    low, high = normal(column.low), normal(column.high)
    if low > high:  # type: ignore[operator]
        raise InputError(f"low {column.low} is above high {column.high}")
    if isinstance(low, float | int) and not math.isfinite(float(high) - float(low)):  # type: ignore[arg-type]
        raise InputError(f"the bounds {low} and {high} lie too far apart")
    object.__setattr__(column, "low", low)
    object.__setattr__(column, "high", high)


def _number(bound: object) -> float:
    if isinstance(bound, np.generic):
        bound = bound.item()
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        raise InputError(f"the bound {bound!r} is not a number")
    try:
        finite = math.isfinite(float(bound))
    except OverflowError:
        finite = False
    if not finite:
        raise InputError(f"the bound {bound!r} is not a finite number")
    return bound


def _moment(bound: object) -> datetime:
    if isinstance(bound, np.datetime64):
        bound = bound.astype("datetime64[us]").item()
    if isinstance(bound, str):
        try:
            bound = datetime.fromisoformat(bound)
        except ValueError:
            raise InputError(f"the bound {bound!r} is not a date such as 2015-01-31") from None
    if isinstance(bound, date) and not isinstance(bound, datetime):
        bound = datetime.combine(bound, time())
    if not isinstance(bound, datetime) or pd.isna(bound):
        raise InputError(f"the bound {bound!r} is not a date")
    if bound.tzinfo is not None or bound.microsecond:
        raise InputError(f"the bound {bound.isoformat()} wants whole seconds and no time zone")
    return datetime(*bound.timetuple()[:6])
