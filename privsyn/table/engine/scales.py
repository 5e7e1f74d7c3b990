"""The values of a column's type in their order, as integers, and how SQL writes them.

A scale turns integers to cells, in the dtype in which the same table is read elsewhere, and to SQL literals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.marginals.domain import Ints
from privsyn.table.encoding.dtypes import CALENDAR, TICKS
from privsyn.table.engine.sqlglot_later import exp
from privsyn.table.io.arrow import frame_of

LARGEST = np.iinfo(np.int64).max

DIGITS = 18
"""Decimals of more digits do not fit in 64 bits."""

CONTEXT = Context(prec=80)
"""Decimals of databases have up to 76 digits, and Python's 28 by default."""

DAY_BEFORE, DAY_AFTER = (np.array(CALENDAR, "datetime64[D]") + np.array([-1, 2])).astype(np.int64).tolist()
"""Days since 1970 around the calendar; see `privsyn.table.encoding.time_encoders`."""


@dataclass(frozen=True)
class Scale(ABC):
    """The values of a type of Arrow, numbered in their order.

    Parameters
    ----------
    kind : pyarrow.DataType
    """

    kind: pa.DataType

    @property
    @abstractmethod
    def ends(self) -> tuple[int, int]:
        """The numbers of the smallest and the largest value, both included."""

    @abstractmethod
    def array(self, numbers: Ints) -> pa.Array:
        """Return the values with these numbers."""

    @abstractmethod
    def number(self, value: pa.Scalar) -> int:
        """Return the number of a value."""

    @abstractmethod
    def literal(self, number: int) -> exp.Expr:
        """Return a value in SQL."""

    @property
    def counts(self) -> bool:
        """Whether the numbers are the values, so that SQL can compute with them."""
        return False

    @property
    def bounds(self) -> tuple[exp.Expr, exp.Expr] | None:
        """The values between which all lie that are numbers; None if the type has no other values."""
        return None

    def cells(self, numbers: Ints) -> pd.Series:
        """Return the values as cells of a data frame, in the dtype of the column."""
        return frame_of(pa.table({"cell": self.array(numbers)}), "the table")["cell"]


@dataclass(frozen=True)
class Whole(Scale):
    """Integers; those of 64 bits without a sign are moved down by 2^63."""

    @property
    def ends(self) -> tuple[int, int]:
        """The range of the type."""
        info = np.iinfo(self.kind.to_pandas_dtype())
        return int(info.min) - self._shift, int(info.max) - self._shift

    @property
    def _shift(self) -> int:
        return 2**63 if self.kind == pa.uint64() else 0

    @property
    def counts(self) -> bool:
        """Whether the numbers are the integers themselves."""
        return not self._shift

    def array(self, numbers: Ints) -> pa.Array:
        """Return the integers."""
        if self._shift:
            return pa.array(numbers.view(np.uint64) ^ np.uint64(self._shift))
        return pa.array(numbers, self.kind)

    def number(self, value: pa.Scalar) -> int:
        """Return the integer, moved down."""
        return int(value.as_py()) - self._shift

    def literal(self, number: int) -> exp.Expr:
        """Return the digits."""
        return exp.convert(number + self._shift)


@dataclass(frozen=True)
class Real(Scale):
    """Finite doubles or floats by their bits. Zero has one number, whatever its sign."""

    @property
    def _types(self) -> tuple[Any, Any]:
        return (np.float64, np.int64) if self.kind == pa.float64() else (np.float32, np.int32)

    @property
    def ends(self) -> tuple[int, int]:
        """The largest finite number on both sides of zero."""
        real, integer = self._types
        largest = int(np.array(np.finfo(real).max).view(integer))
        return -largest, largest

    @property
    def bounds(self) -> tuple[exp.Expr, exp.Expr]:
        """The largest finite number on both sides of zero."""
        low, high = self.ends
        return self.literal(low), self.literal(high)

    def array(self, numbers: Ints) -> pa.Array:
        """Return the numbers."""
        real, integer = self._types
        sizes = np.abs(numbers).astype(integer).view(real)
        return pa.array(np.where(numbers < 0, -sizes, sizes), self.kind)

    def number(self, value: pa.Scalar) -> int:
        """Return the bits, with a sign."""
        real, integer = self._types
        size = int(np.array(abs(value.as_py()), real).view(integer))
        return -size if value.as_py() < 0 else size

    def literal(self, number: int) -> exp.Expr:
        """Return the shortest decimal that is read as this double; a float is a double too."""
        cell = float(self.array(np.array([number]))[0].as_py())
        return exp.cast(exp.Literal.string(repr(cell)), "double")


@dataclass(frozen=True)
class Rounded(Real):
    """Doubles that are read as whole numbers, half to even."""

    def cells(self, numbers: Ints) -> pd.Series:
        """Return the whole numbers."""
        return super().cells(numbers).round()


DOUBLES, ROUNDED = Real(pa.float64()), Rounded(pa.float64())
"""The order of doubles."""


@dataclass(frozen=True)
class Decimals(Scale):
    """Decimals in units of their last digit. Those beyond 64 bits differ by their sign alone."""

    @property
    def ends(self) -> tuple[int, int]:
        """The largest number of the type's digits, or of 18, on both sides of zero."""
        largest = 10 ** min(self.kind.precision, DIGITS) - 1
        return -largest, largest

    @property
    def bounds(self) -> tuple[exp.Expr, exp.Expr]:
        """The largest decimal on both sides of zero; NaN and infinite ones do not lie between."""
        largest = 10**self.kind.precision - 1
        return self.literal(-largest), self.literal(largest)

    def holds(self, low: float, high: float) -> bool:
        """Return whether all numbers between two bounds differ."""
        return (
            max(abs(low), abs(high)) < 10.0 ** (DIGITS - 1 - self.kind.scale) or self.kind.precision <= DIGITS
        )

    def _decimal(self, number: int) -> Decimal:
        return Decimal(number).scaleb(-self.kind.scale, CONTEXT)

    def array(self, numbers: Ints) -> pa.Array:
        """Return the decimals."""
        return pa.array(map(self._decimal, numbers.tolist()), self.kind)

    def number(self, value: pa.Scalar) -> int:
        """Return the units of the last digit."""
        return int(value.as_py().scaleb(self.kind.scale, CONTEXT))

    def literal(self, number: int) -> exp.Expr:
        """Return the digits as a decimal."""
        text = exp.Literal.string(f"{self._decimal(number):f}")
        return exp.cast(text, f"decimal({self.kind.precision}, {self.kind.scale})")


@dataclass(frozen=True)
class Days(Scale):
    """Dates, in days since 1970.

    Parameters
    ----------
    kind : pyarrow.DataType
    far : bool
        Whether the engine has dates beyond the calendar. All of them are missing cells.
    """

    far: bool = True

    @property
    def ends(self) -> tuple[int, int]:
        """The ends of the calendar, or some days beyond."""
        return _calendar(self.far)

    def array(self, numbers: Ints) -> pa.Array:
        """Return the dates."""
        return pa.array(numbers.astype(np.int32), pa.int32()).cast(self.kind)

    def number(self, value: pa.Scalar) -> int:
        """Return the days."""
        return int(value.value)

    def literal(self, number: int) -> exp.Expr:
        """Return the date."""
        beyond = _beyond(number)
        date = exp.cast(exp.Literal.string(_iso(np.datetime64(number - beyond, "D"))), "date")
        return exp.cast(_later(date, beyond), "date") if beyond else date


@dataclass(frozen=True)
class Moments(Scale):
    """Times, in ticks since 1970; of a zone, in UTC.

    Parameters
    ----------
    kind : pyarrow.DataType
    far : bool
        As for `Days`.
    """

    far: bool = True

    @property
    def ends(self) -> tuple[int, int]:
        """The ends of the calendar, or some days beyond; the range of the type if that is narrower."""
        first, last = _calendar(self.far)
        day = 86400 * TICKS[self.kind.unit]
        return max(first * day, 1 - LARGEST), min((last + 1) * day - 1, LARGEST)

    def array(self, numbers: Ints) -> pa.Array:
        """Return the times."""
        return pa.array(numbers, pa.int64()).cast(self.kind)

    def number(self, value: pa.Scalar) -> int:
        """Return the ticks."""
        return int(value.value)

    def literal(self, number: int) -> exp.Expr:
        """Return the time; with an offset of zero, if the column has a zone."""
        day = 86400 * TICKS[self.kind.unit]
        beyond = _beyond(number // day)
        text = _iso(np.datetime64(number - beyond * day, self.kind.unit)).replace("T", " ")
        if self.kind.tz is None:
            return _later(exp.cast(exp.Literal.string(text), "timestamp"), beyond)
        return _later(exp.cast(exp.Literal.string(f"{text}+00:00"), "timestamptz"), beyond)


@dataclass(frozen=True)
class Clock(Scale):
    """Times of day, in ticks since midnight."""

    @property
    def ends(self) -> tuple[int, int]:
        """Midnight, and the last tick of a day."""
        return 0, 86400 * TICKS[self.kind.unit] - 1

    def array(self, numbers: Ints) -> pa.Array:
        """Return the times of day."""
        width = pa.int32() if self.kind.bit_width == 32 else pa.int64()
        return pa.array(numbers, pa.int64()).cast(width).cast(self.kind)

    def number(self, value: pa.Scalar) -> int:
        """Return the ticks."""
        return int(value.value)

    def literal(self, number: int) -> exp.Expr:
        """Return the time of day."""
        text = _iso(np.datetime64(number, self.kind.unit)).partition("T")[2]
        return exp.cast(exp.Literal.string(text), "time")


def scale_of(kind: pa.DataType) -> Scale | None:
    """Return the scale of a type of Arrow; None if its values have no numbers.

    >>> scale_of(pa.int8()).ends, scale_of(pa.string())
    ((-128, 127), None)
    >>> scale_of(pa.date32()).literal(0).sql(), scale_of(pa.float64()).literal(0).sql()
    ("CAST('1970-01-01' AS DATE)", "CAST('0.0' AS DOUBLE)")
    """
    if pa.types.is_integer(kind):
        return Whole(kind)
    if kind in (pa.float32(), pa.float64()):
        return Real(kind)
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision:
        return Decimals(kind)
    if pa.types.is_date(kind):
        return Days(kind) if pa.types.is_date32(kind) else None
    if pa.types.is_timestamp(kind):
        return Moments(kind)
    return Clock(kind) if pa.types.is_time(kind) else None


def _calendar(far: bool) -> tuple[int, int]:
    """Return the first and the last day of the calendar, or of a range that is some days wider."""
    return (DAY_BEFORE - 1, DAY_AFTER + 1) if far else (DAY_BEFORE + 1, DAY_AFTER - 2)


def _beyond(day: int) -> int:
    """Return by how many days a day lies beyond the calendar, which dates in SQL text end with."""
    first, last = _calendar(far=False)
    return day - min(max(day, first), last)


def _later(moment: exp.Expr, days: int) -> exp.Expr:
    """Return a date or time some days later."""
    if not days:
        return moment
    interval = exp.Interval(this=exp.Literal.string(str(days)), unit=exp.var("DAY"))
    return exp.paren(exp.Add(this=moment, expression=interval))


def _iso(moment: np.datetime64) -> str:
    """Return a date or time as ISO 8601 writes it, without a fraction of zero."""
    return (
        str(np.datetime_as_string(moment))
        .removesuffix(".000000000")
        .removesuffix(".000000")
        .removesuffix(".000")
    )
