"""Classify dtypes, which are public, and convert them to text and back."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api import types

Dtype = Any  # numpy.dtype or pandas' ExtensionDtype: they share no base class
Family = Literal[
    "integer",
    "real",
    "decimal",
    "boolean",
    "text",
    "datetime",
    "time",
    "duration",
    "category",
    "object",
    "binary",
    "nested",
    "nothing",
]

TEXT: Dtype = pd.Series(["text"]).dtype
"""The dtype of text in the installed pandas: ``str`` from 3.0, ``object`` before."""

OBJECT = np.dtype(object)

TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Ticks in a second, by the unit of a dtype."""

INDEX = pa.int32()
"""Type of a dictionary's indices. Programs choose a width that fits the number of values in the rows."""

_STORED = ("arrow.json", "arrow.uuid")
"""Extension types whose cells are read as they are stored."""

OF_CATEGORIES: tuple[Family, ...] = ("text", "integer", "real", "decimal", "boolean", "object")
"""What categories of pandas hold that can be listed; of objects, perhaps."""

UNCOUNTED: tuple[Family, ...] = ("binary", "nested")
"""Families of cells that no kind of column encodes: bytes, and lists, records and maps."""

TEXTS = ("string", "large_string", "string_view")

CATEGORY, ORDERED_CATEGORY = "category", "ordered category"
_ARROW_TEXT = "arrow string"


def family(dtype: Dtype) -> Family | None:
    """Return the kind of cells that `dtype` holds; None if no column type supports it.

    >>> family(pd.Series([1, None], dtype="Int64").dtype), family(np.dtype("m8[s]"))
    ('integer', 'duration')
    """
    # A category dtype holds cells of the table: it is not kept in a cache.
    return "category" if isinstance(dtype, pd.CategoricalDtype) else _family(dtype)


@cache
def _family(dtype: Dtype) -> Family | None:
    if dtype == OBJECT:
        return "object"
    tests: tuple[tuple[Family, Any], ...] = (
        ("boolean", types.is_bool_dtype),
        ("integer", types.is_integer_dtype),
        ("real", types.is_float_dtype),
        ("datetime", types.is_datetime64_any_dtype),
        ("duration", types.is_timedelta64_dtype),
        ("text", types.is_string_dtype),
    )
    if isinstance(dtype, pd.SparseDtype) or is_wide_float(dtype):
        return None
    if isinstance(dtype, pd.ArrowDtype) and (kind := _arrow_family(dtype.pyarrow_dtype)):
        return kind
    with suppress(NotImplementedError):  # pandas does not support some Arrow types, such as string_view
        return next((name for name, test in tests if test(dtype)), None)
    return None


def _arrow_family(kind: pa.DataType) -> Family | None:
    """Return the family of a type that only Arrow has."""
    tests: tuple[tuple[Family, Any], ...] = (
        ("decimal", pa.types.is_decimal),
        ("time", pa.types.is_time),
        ("duration", pa.types.is_duration),
        ("binary", is_binary),
        ("nested", pa.types.is_nested),
        ("nothing", pa.types.is_null),
    )
    return next((name for name, test in tests if test(kind)), None)


def hint_of(dtype: Dtype) -> str:
    """Return what to do about a column of a dtype that no kind of column encodes."""
    if family(dtype) in UNCOUNTED:
        return "convert it to numbers or text, or leave it out with kind: text"
    if not may_be_listed(dtype):
        categories = dtype.categories.dtype.name.partition("[")[0]  # of a zone or of a width, no matter which
        return f"convert its categories of dtype {categories} to text, as .astype(str) does"
    common = "float64" if is_wide_float(dtype) else "numbers, text, dates or categories"
    return f"convert it to {common}"


def may_be_listed(dtype: Dtype) -> bool:
    """Return whether a list can hold the cells of a dtype, as far as the type of its categories says.

    >>> may_be_listed(pd.CategoricalDtype(["a"])), may_be_listed(pd.CategoricalDtype(pd.interval_range(0, 3)))
    (True, False)
    """
    categories = getattr(dtype, "categories", None)
    return categories is None or family(categories.dtype) in OF_CATEGORIES


def is_wide_float(dtype: Dtype) -> bool:
    """Return whether a dtype is NumPy's ``longdouble`` where it is wider than float64, in which we count."""
    return isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize > 8


def is_binary(kind: pa.DataType) -> bool:
    """Return whether a type of Arrow holds bytes, of any or of one length."""
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    return bool(binary or pa.types.is_fixed_size_binary(kind))


_KNOWN = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
    lambda kind: str(kind) in TEXTS,
    is_binary,
)
"""Tests for the types of plain cells. `io.arrow` reads each as one dtype of pandas, whatever its cells."""


def plain_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type in which cells of an Arrow type are read; None if the type is not supported.

    How Arrow encodes cells does not matter: a run-end encoded column is one of its values. A dictionary stays
    one if its values are plain. The width of its indices depends on the number of its values, so it is fixed.

    >>> plain_type(pa.run_end_encoded(pa.int16(), pa.int64())), plain_type(pa.month_day_nano_interval())
    (DataType(int64), None)
    """
    if pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.bool8":
            return pa.bool_()
        return plain_type(kind.storage_type) if kind.extension_name in _STORED else None
    if not pa.types.is_dictionary(kind):
        return kind if _is_plain(kind) else None
    if _is_plain(kind.value_type) and not pa.types.is_dictionary(kind.value_type):
        return dictionary_type(kind)
    return plain_type(kind.value_type)


def dictionary_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a dictionary with indices of one width."""
    return pa.dictionary(INDEX, kind.value_type, kind.ordered)


def _is_plain(kind: pa.DataType, *, inside: bool = False) -> bool:
    """Return whether pandas reads cells of a type, or of lists and records of it, without our help.

    With `inside` they are those of a list or a record. There Arrow takes no cell from views, and finds all
    cells invalid if one value of a dictionary is. List views without rows end the process in pandas.
    """
    is_list_view = str(kind).startswith(("list_view<", "large_list_view<"))
    if pa.types.is_union(kind) or pa.types.is_run_end_encoded(kind) or is_list_view:
        return False
    if pa.types.is_struct(kind):
        return all(_is_plain(field.type, inside=True) for field in kind)
    if pa.types.is_map(kind):
        return _is_plain(kind.key_type, inside=True) and _is_plain(kind.item_type, inside=True)
    if pa.types.is_dictionary(kind):
        return not inside and _is_plain(kind.value_type)
    if pa.types.is_nested(kind):
        return _is_plain(kind.value_type, inside=True)
    return any(test(kind) for test in _KNOWN) and not (inside and str(kind).endswith("_view"))


def holds_missing(dtype: Dtype) -> bool:
    """Return whether a column of `dtype` can have missing cells. NumPy integers and booleans cannot."""
    return not (isinstance(dtype, np.dtype) and dtype.kind in "iub")


def with_missing(cells: pd.Series) -> pd.Series:
    """Return cells in a dtype with missing ones. Of integers of NumPy pandas would else make floats."""
    if holds_missing(cells.dtype):
        return cells
    empty: Any = np.empty(0, cells.to_numpy().dtype)
    return pd.Series(pd.array(cells.to_numpy(), dtype=pd.array(empty).dtype))


def number_type(dtype: Dtype) -> np.dtype:
    """Return the NumPy type of a column of numbers; float64 for objects and decimals."""
    if dtype == OBJECT or family(dtype) == "decimal":
        return np.dtype(np.float64)
    return np.dtype(getattr(dtype, "numpy_dtype", dtype))


def real_type(dtype: Dtype) -> np.dtype:
    """Return the NumPy type in which a column has real numbers; float64 for all that is not real."""
    return number_type(dtype) if family(dtype) == "real" else np.dtype(np.float64)


_LEAST = {"i": "Int32", "u": "UInt32", "f": "Float64"}
"""The narrowest dtypes that number rows: up to 2 billion, 4 billion and 9 quadrillion."""


def wide_dtype(dtype: Dtype) -> Dtype:
    """Return a dtype of numbers that can number the rows of a table; `dtype` itself if it can.

    >>> wide_dtype(np.dtype("uint8")), wide_dtype(pd.Int16Dtype()), wide_dtype(np.dtype("int64"))
    (dtype('uint32'), Int32Dtype(), dtype('int64'))
    """
    kind = number_type(dtype)
    name = _LEAST[kind.kind]
    wide = np.dtype(name.lower())
    if kind.itemsize >= wide.itemsize:
        return dtype
    if isinstance(dtype, pd.ArrowDtype):
        return pd.ArrowDtype(pa.from_numpy_dtype(wide))
    return wide if isinstance(dtype, np.dtype) else types.pandas_dtype(name)


def decimals_of(dtype: Dtype) -> int | None:
    """Return the number of decimals of a decimal dtype; None for other dtypes.

    >>> decimals_of(pd.ArrowDtype(pa.decimal128(10, 2))), decimals_of(np.dtype(np.float64))
    (2, None)
    """
    return max(0, dtype.pyarrow_dtype.scale) if family(dtype) == "decimal" else None


MOST_SCALE = 4
"""Further decimals are ignored: they are often a program's default, and say little about the numbers."""


def largest_decimal(dtype: Dtype) -> float:
    """Return the largest number of a decimal dtype, with at most `MOST_SCALE` decimals.

    >>> largest_decimal(pd.ArrowDtype(pa.decimal128(5, 2)))
    999.99
    """
    kind = dtype.pyarrow_dtype
    decimals = min(max(0, kind.scale), MOST_SCALE)
    return largest_double(10 ** Decimal(kind.precision - kind.scale) - 10 ** Decimal(-decimals))


def largest_double(number: int | Decimal) -> float:
    """Return the largest double that is at most a number, or the one by which it is written.

    >>> largest_double(2**63 - 1), largest_double(Decimal("999.99"))
    (9.223372036854775e+18, 999.99)
    """
    nearest = float(number)
    is_above = int(nearest) > number if abs(nearest) >= 2**53 else False
    return math.nextafter(nearest, -math.inf) if is_above else nearest


def tick(dtype: Dtype) -> str:
    """Return the time unit of a dtype of dates.

    >>> tick(pd.Series([], dtype="datetime64[ms, UTC]").dtype)
    'ms'
    """
    if isinstance(dtype, pd.ArrowDtype):
        kind = dtype.pyarrow_dtype
        return "ms" if pa.types.is_date64(kind) else getattr(kind, "unit", "D")
    return dtype.unit if isinstance(dtype, pd.DatetimeTZDtype) else np.datetime_data(dtype)[0]


CALENDAR = np.datetime64("0001-01-01"), np.datetime64("9999-12-31")
"""The first and the last day of the calendar of Python, of text in ISO form and of databases."""

_NANOSECONDS = np.datetime64("1677-09-22"), np.datetime64("2262-04-10")
"""The first and the last whole day that fit into nanoseconds."""


def days_of(dtype: Dtype) -> tuple[np.datetime64, np.datetime64]:
    """Return the first and the last day that a dtype can hold; of text, those of the calendar."""
    in_nanoseconds = family(dtype) == "datetime" and tick(dtype) == "ns"
    return _NANOSECONDS if in_nanoseconds else CALENDAR


def holds_days(dtype: Dtype) -> bool:
    """Return whether a dtype holds dates without a time of day.

    >>> holds_days(pd.ArrowDtype(pa.date64())), holds_days(np.dtype("datetime64[ms]"))
    (True, False)
    """
    if isinstance(dtype, pd.ArrowDtype):
        return bool(pa.types.is_date(dtype.pyarrow_dtype))
    return family(dtype) == "datetime" and tick(dtype) == "D"


def holds_parts_of_seconds(dtype: Dtype) -> bool:
    """Return whether a dtype of dates holds milliseconds or less.

    >>> holds_parts_of_seconds(np.dtype("datetime64[ns]")), holds_parts_of_seconds(np.dtype("datetime64[s]"))
    (True, False)
    """
    return family(dtype) == "datetime" and not holds_days(dtype) and tick(dtype) not in ("D", "s")


def zone(dtype: Dtype) -> Any:
    """Return the time zone of a dtype of dates; None if it has none.

    >>> zone(pd.ArrowDtype(pa.timestamp("us", tz="Asia/Tokyo")))
    'Asia/Tokyo'
    """
    return getattr(dtype.pyarrow_dtype if isinstance(dtype, pd.ArrowDtype) else dtype, "tz", None)


def dtype_text(dtype: Dtype) -> str | None:
    """Return `dtype` as text that `parse_dtype` reads back; None if there is no such text.

    Of a category dtype the text says only whether it is ordered. Its categories usually come from the rows,
    which are private, so the schema lists the values instead.

    >>> dtype_text(pd.CategoricalDtype(["a", "b"], ordered=True)), dtype_text(np.dtype("u1"))
    ('ordered category', 'uint8')
    """
    if isinstance(dtype, pd.CategoricalDtype):
        return ORDERED_CATEGORY if dtype.ordered else CATEGORY
    if isinstance(dtype, pd.ArrowDtype):
        kind = dtype.pyarrow_dtype
        if pa.types.is_decimal(kind):
            return f"arrow decimal{kind.bit_width} {kind.precision} {kind.scale}"
        if pa.types.is_time(kind):
            return f"arrow time{kind.bit_width} {kind.unit}"
        if pa.types.is_duration(kind):
            return f"arrow duration64 {kind.unit}"
        if pa.types.is_null(kind):
            return "arrow null"
    text = str(dtype)
    if text == "str":
        return text  # how it is stored does not matter
    if isinstance(dtype, pd.StringDtype):
        text = f"string[{dtype.storage}]"
    elif isinstance(dtype, pd.ArrowDtype) and pa.types.is_string(dtype.pyarrow_dtype):
        text = _ARROW_TEXT  # "string[pyarrow]" is another dtype in pandas
    try:
        return text if parse_dtype(text) == dtype else None
    except (TypeError, ValueError, NotImplementedError):
        return None


def shown_dtype(dtype: Dtype) -> str:
    """Return the name of a dtype for messages. Categories and nested types may reveal cells, so drop them.

    >>> shown_dtype(pd.CategoricalDtype(["rare"])), shown_dtype(pd.ArrowDtype(pa.list_(pa.int8())))
    ('category', 'list[pyarrow]')
    """
    if isinstance(dtype, pd.CategoricalDtype):
        return CATEGORY
    if isinstance(dtype, pd.ArrowDtype):
        return f"{str(dtype.pyarrow_dtype).partition('<')[0]}[pyarrow]"
    return str(dtype)


def its(dtype: Dtype) -> str:
    """Return the words with which errors about the dtype of a column begin."""
    return f"its dtype is {shown_dtype(dtype)}"


@lru_cache(1024)
def parse_dtype(text: str) -> Dtype:
    """Return the dtype that `dtype_text` wrote; a category dtype has no categories.

    Raises
    ------
    ValueError
        If the text is another one. It may come from a model file, and pandas reads more: texts of a gigabyte
        a cell (``S1000000000``), records, zones that are the name of a file.
    """
    if not _WRITTEN.fullmatch(text):
        raise ValueError("no dtype that is written to a model file")
    if text in (CATEGORY, ORDERED_CATEGORY):
        return pd.CategoricalDtype(ordered=text == ORDERED_CATEGORY)
    if match := _EXOTIC.fullmatch(text):
        return pd.ArrowDtype(_exotic_type(*match.groups()))
    if text == _ARROW_TEXT:
        return pd.ArrowDtype(pa.string())
    if text == "str":
        return TEXT
    return types.pandas_dtype(text)


_EXOTIC = re.compile(
    r"arrow (decimal|time|duration|null)([0-9]{0,3})(?: ?([0-9]{1,2}|s|ms|us|ns)(?: (-?[0-9]{1,2}))?)?"
)
"""Text of Arrow types that pandas cannot parse."""

_UNIT = r"(s|ms|us|ns)"
_ZONE = (
    r"(?!dateutil)([A-Za-z0-9_]{1,32}([+-][A-Za-z0-9:]{1,5})?(/[A-Za-z0-9_+-]{1,32}){0,3}|[+-][0-9:]{2,5})"
)
_OF_NUMPY = rf"[<>=]?(i[1248]|u[1248]|f[248]|M8\[{_UNIT}\]|m8\[{_UNIT}\])|bool|object"
_OF_PANDAS = rf"[Uu]?[Ii]nt(8|16|32|64)|[Ff]loat(16|32|64)|boolean|(datetime|timedelta)64\[{_UNIT}\]"
_OF_ARROW = (
    rf"bool|u?int(8|16|32|64)|halffloat|float|double|(large_)?(string|binary)|(string|binary)_view"
    rf"|date32\[day\]|date64\[ms\]|timestamp\[{_UNIT}(, tz={_ZONE})?\]"
)
_WRITTEN = re.compile(
    rf"(ordered )?category|str|string(\[(python|pyarrow)\])?|arrow string|{_EXOTIC.pattern}|{_OF_NUMPY}"
    rf"|{_OF_PANDAS}|datetime64\[{_UNIT}, {_ZONE}\]|({_OF_ARROW})\[pyarrow\]"
)
"""Text of every dtype in which a column can be kept."""


def _exotic_type(name: str, bits: str, first: Any, scale: Any) -> pa.DataType:
    if name == "decimal":
        return getattr(pa, f"decimal{bits}")(int(first), int(scale))
    if name == "time":
        return getattr(pa, f"time{bits}")(first)
    return pa.duration(first) if name == "duration" else pa.null()
