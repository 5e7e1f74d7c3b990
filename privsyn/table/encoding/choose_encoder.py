"""Choose the encoder of a column for a dtype, and refuse dtypes that cannot hold the column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError, safe_repr
from privsyn.table.encoding.dtypes import (
    Dtype,
    Family,
    decimals_of,
    dtype_text,
    family,
    is_wide_float,
    number_type,
    shown_dtype,
    tick,
)
from privsyn.table.encoding.encoders import CategoricalEncoder, Encoder, NumericalEncoder
from privsyn.table.encoding.grid import Grid
from privsyn.table.encoding.read_texts import READERS
from privsyn.table.encoding.time_encoders import DatetimeEncoder, DurationEncoder, TimeEncoder
from privsyn.table.enforcement.rules import Computation
from privsyn.table.schema.columns import COLUMNS, Categorical, Coded, Column, Generated, Numerical, Text
from privsyn.table.schema.csv_format import CsvFormat
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.steps import SECONDS
from privsyn.table.schema.time_columns import Datetime, Duration, Time, Timed
from privsyn.table.schema.validation import check_column_names, check_decimals, holds, spacing

MOST_SCALE = 4
"""Further decimals are ignored: they are often a program's default, and say little about the numbers."""


_HINTS: dict[Family, str] = {
    "datetime": "Datetime(low, high)",
    "time": "Time()",
    "duration": "Duration(low, high)",
}


def choose_encoder(column: Coded, dtype: Dtype) -> Encoder:
    """Return the encoder of one column; raise `InputError` if the dtype cannot hold its values.

    >>> choose_encoder(Numerical(0, 300), np.dtype("uint8"))
    Traceback (most recent call last):
    privsyn.errors.InputError: its dtype is uint8, which cannot hold the bounds 0 to 300
    """
    kind = family(dtype)
    if kind == "binary":
        raise InputError(f"{_its(dtype)}: convert it to numbers or text, or leave it out with kind: text")
    if kind is None or dtype_text(dtype) is None:
        common = "float64" if is_wide_float(dtype) else "numbers, text, dates or categories"
        raise InputError(f"{_its(dtype)}: convert it to {common}")
    class_ = next(class_ for class_ in type(column).__mro__ if class_ in ENCODERS)
    return ENCODERS[class_](column, dtype, kind)


def _categorical(column: Categorical, dtype: Dtype, kind: Family) -> CategoricalEncoder:
    values = tuple(cast(Any, column.values))
    other = None if column.other is None else values.index(column.other)
    return CategoricalEncoder(_listed(values, dtype, kind), other)


def _listed(values: tuple[Any, ...], dtype: Dtype, kind: Family) -> pd.Series:
    """Return the listed values in the dtype of the column; refuse a dtype in which they are not distinct."""
    if kind in _HINTS:
        raise InputError(f"{_its(dtype)}: use {_HINTS[kind]}")
    if kind == "real" and number_type(dtype) == np.float16:  # pandas cannot look up values in it
        raise InputError(f"{_its(dtype)}: convert it to float32")
    can_hold = _can_hold(dtype, kind)
    for value in values:
        if not can_hold(value):
            raise InputError(f"{_its(dtype)}, which cannot hold the listed value {safe_repr(value)}")
    if kind == "category":
        categories = pd.Index(values, tupleize_cols=False)
        return pd.Series(pd.Categorical(values, categories=categories, ordered=dtype.ordered))
    if kind in ("integer", "real"):  # some dtypes refuse 1.0 for 1, or 2**63 for a float
        values = tuple(map(int if kind == "integer" else float, values))
    if kind == "decimal":
        values = tuple(Decimal(str(value)) for value in values)
    pool = pd.Series(values, dtype=dtype)
    if kind != "object" and not pd.Index(pool).is_unique:
        raise InputError(f"{_its(dtype)}, in which some listed values are equal")
    return pool


def _can_hold(dtype: Dtype, kind: Family) -> Callable[[Any], bool]:
    match kind:
        case "text":
            return lambda value: isinstance(value, str)
        case "boolean":
            return lambda value: isinstance(value, bool)
        case "integer":
            whole = np.iinfo(number_type(dtype))
            return lambda x: _is_number(x) and x == round(x) and whole.min <= x <= whole.max
        case "decimal":
            decimals, most = decimals_of(dtype), largest_decimal(dtype)
            return lambda x: _is_number(x) and x == round(x, decimals) and abs(x) <= most
        case "real":
            largest = float(np.finfo(number_type(dtype)).max)
            return lambda x: _is_number(x) and abs(x) <= largest
        case _:
            return lambda value: True


def largest_decimal(dtype: Dtype) -> float:
    """Return the largest number of a decimal dtype, with at most `MOST_SCALE` decimals.

    >>> import pyarrow
    >>> largest_decimal(pd.ArrowDtype(pyarrow.decimal128(5, 2)))
    999.99
    """
    kind, decimals = dtype.pyarrow_dtype, cast(int, exact_decimals(Numerical(), dtype))
    return round(10.0 ** (kind.precision - kind.scale) - 10.0**-decimals, decimals)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _number_grid(column: Numerical, dtype: Dtype, kind: Family) -> Grid:
    low, high = _bounds(column)
    if kind not in ("integer", "real", "decimal", "object"):
        hint = _HINTS.get(kind, "Categorical([...]), or convert it to numbers")
        raise InputError(f"{_its(dtype)}, not numbers: use {hint}")
    floats = np.dtype(np.float64)
    if kind == "integer":
        if column.integer is False or column.fixed_decimals:
            raise InputError(f"{_its(dtype)}: its numbers are whole, so say integer=True")
        whole = np.iinfo(number_type(dtype))
        if low < whole.min or high > whole.max:
            raise InputError(f"{_its(dtype)}, which cannot hold the bounds {low} to {high}")
    elif kind == "real":
        floats = number_type(dtype)
    elif kind == "decimal" and max(abs(low), abs(high)) > largest_decimal(dtype):
        raise InputError(f"{_its(dtype)}, which cannot hold the bounds {low} to {high}")
    if kind == "decimal" and dtype.pyarrow_dtype.scale < 0:  # the dtype holds multiples of 10 or 100
        raise InputError(f"{_its(dtype)}, of a negative scale: convert it to integers")
    decimals = exact_decimals(column, dtype)
    if decimals is not None:
        return _exact_grid(column, decimals, floats, dtype)
    if np.isnan(spacing(low, high, floats)):
        raise InputError(f"{_its(dtype)}, which cannot hold the bounds {low} to {high}")
    low, high = (float(floats.type(bound)) for bound in (low, high))  # rounded as in the dtype
    return Grid.real(low, high, bins=column.bins, dtype=floats)


def exact_decimals(column: Numerical, dtype: Dtype) -> int | None:
    """Return the number of decimals, from the schema or else the dtype; None for reals.

    >>> exact_decimals(Numerical(), np.dtype("int8")), exact_decimals(Numerical(), np.dtype("float64"))
    (0, None)
    """
    if family(dtype) == "integer" or column.integer:
        return 0
    decimals, scale = column.decimals if column.step is None else column.fixed_decimals, decimals_of(dtype)
    if decimals is None or scale is None:
        return decimals if scale is None else min(scale, MOST_SCALE)
    return min(decimals, scale)


def _bounds(column: Numerical) -> tuple[float, float]:
    """Return the bounds as they were given, or the outermost multiples of the step within them."""
    return (column.low, column.high) if column.step is None else column.bounds  # type: ignore[return-value]


def _exact_grid(column: Numerical, decimals: int, floats: np.dtype, dtype: Dtype) -> Grid:
    low, high = _bounds(column)
    check_decimals(low, high, decimals)
    if column.step is not None and round(column.step, decimals) != column.step:
        raise InputError(f"{_its(dtype)}, too coarse for a step of {column.step}")
    if not holds(floats, low, high, decimals):
        raise InputError(f"{_its(dtype)}, too coarse for {decimals} decimals from {low} to {high}")
    return Grid.exact(low, high, decimals=decimals, bins=column.bins, step=column.step)


def _datetime(column: Datetime, dtype: Dtype, kind: Family) -> DatetimeEncoder:
    if kind not in ("datetime", "text", "object"):
        raise InputError(f"{_its(dtype)}, not dates: convert it with pandas.to_datetime")
    bounds = np.array([column.low, column.high], dtype="datetime64[s]")
    ticks = {"ns": 10**9, "us": 10**6}.get(tick(dtype), 1) if kind == "datetime" else 1  # ticks in a second
    if max(map(abs, bounds.astype(np.int64).tolist())) >= 2**63 // ticks:
        raise InputError(f"{_its(dtype)}, which cannot hold the bounds {bounds[0]} to {bounds[1]}")
    return DatetimeEncoder(_time_grid(column), dtype, str(column.unit), column.format, column.objects)


def _time(column: Time, dtype: Dtype, kind: Family) -> TimeEncoder:
    if kind not in ("time", "text", "object"):
        raise InputError(f"{_its(dtype)}, not times of day: convert it to text such as 08:30")
    return TimeEncoder(_time_grid(column), dtype, SECONDS[column.unit], column.objects)


def _duration(column: Duration, dtype: Dtype, kind: Family) -> DurationEncoder:
    if kind not in ("duration", "object"):
        raise InputError(f"{_its(dtype)}, not lengths of time: convert it with pandas.to_timedelta")
    return DurationEncoder(_time_grid(column), dtype, SECONDS[column.unit])


def _time_grid(column: Timed) -> Grid:
    low, high = column.bounds
    return Grid.exact(low, high, decimals=0, bins=column.bins, step=column.grid_step)


ENCODERS: dict[type[Column], Callable[[Any, Dtype, Family], Encoder]] = {
    Categorical: _categorical,
    Numerical: lambda column, dtype, kind: NumericalEncoder(_number_grid(column, dtype, kind), dtype),
    Datetime: _datetime,
    Time: _time,
    Duration: _duration,
}
"""Makes the encoder of each column type; a type that is not listed uses that of its base class."""


def register_column(
    kind: str,
    class_: type[Column],
    make_encoder: Callable[[Any, Dtype, Family], Encoder] | None = None,
    read: Callable[[Any, Sequence[str | None], CsvFormat], pd.Series] | None = None,
) -> None:
    """Register a column type.

    Parameters
    ----------
    kind : str
        The name of the type in a schema file.
    class_ : type
        The frozen dataclass that declares a column.
    make_encoder : callable, optional
        Returns the encoder for a column, a dtype and the family of the dtype. It raises `InputError` if the
        dtype cannot hold the column. Default: that of the base class.
    read : callable, optional
        Returns the cells for a column, texts and a `CsvFormat`. Default: that of the base class.
    """
    COLUMNS[kind] = class_
    if make_encoder is not None:
        ENCODERS[class_] = make_encoder
    if read is not None:
        READERS[class_] = read


def check_computed(
    computations: Sequence[Computation], encoders: Mapping[str, Encoder], nullable: Mapping[str, bool]
) -> None:
    """Refuse a computed column that cannot hold the decimals or the missing values of its parts."""
    for maker in computations:
        encoder: Any = encoders[maker.column]
        if maker.decimals != 0 and encoder.grid.decimals == 0:
            raise InputError(f"column {maker.column!r} is whole, and not all parts of its sum are")
        for name in maker.by:
            if nullable[name] and not nullable[maker.column]:
                raise InputError(
                    f"column {maker.column!r} is computed from {name!r}, which may be missing: "
                    f"say nullable=False of {name!r}, or choose a dtype that holds missing cells"
                )


def _its(dtype: Dtype) -> str:
    return f"its dtype is {shown_dtype(dtype)}"


def dtypes_of(schema: Schema, table: pd.DataFrame) -> tuple[str, ...]:
    """Return the dtype of each column as text; refuse a table that does not fit."""
    match_names(tuple(table.columns), schema)
    texts = []
    for name, dtype in table.dtypes.items():
        column = schema.columns[str(name)]
        # Where no cell is read and a synthetic one, if any, is text, the dtype does not matter.
        is_any = isinstance(column, Text) or (isinstance(column, Generated) and family(dtype) == "binary")
        text = "object" if is_any else dtype_text(dtype)
        if text is None:
            its = shown_dtype(dtype)
            raise InputError(f"column {name!r}: its dtype is {its}: convert it to a common one")
        texts.append(text)
    return tuple(texts)


def match_names(names: tuple[object, ...], schema: Schema) -> None:
    """Refuse a table whose columns are not those of the schema.

    Names in the schema are public. Messages give only the place of the table's own names: in a file without
    a header, the first row is read as names.
    """
    check_column_names(names)
    strange = [place for place, name in enumerate(names, 1) if name not in schema.columns]
    absent = [name for name in schema.columns if name not in names]
    complaints = []
    if absent:
        complaints.append(f"the table has no {_some(absent)}")
    if strange:
        complaints.append(f"the schema does not know {_some(strange)} of the table")
    if complaints:
        raise InputError(f"{' and '.join(complaints)}: change the schema or the table's header")


def _some(names: Sequence[str | int]) -> str:
    listed = ", ".join(map(repr, names[:5]))
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"column{'s' if len(names) > 1 else ''} {listed}{rest}"
