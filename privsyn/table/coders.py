"""Which coder a column of the schema gets for a dtype, and which dtypes it cannot have."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError, shown
from privsyn.table.checks import check_decimals
from privsyn.table.columns import Coder, Listed, Number, Time
from privsyn.table.dtypes import Dtype, Family, dtype_text, family, number_type, tick
from privsyn.table.grid import Grid, holds, spacing
from privsyn.table.schema import Categorical, Column, Datetime, Numerical


def make_coder(column: Column, dtype: Dtype) -> Coder:
    """The coder of one column; an `InputError` where the dtype cannot hold what the schema says.

    >>> make_coder(Numerical(0, 300), np.dtype("uint8"))
    Traceback (most recent call last):
    privsyn.errors.InputError: its dtype is uint8, which cannot hold the bounds 0 to 300
    """
    kind = family(dtype)
    if kind is None or dtype_text(dtype) is None:
        raise InputError(f"{_its(dtype)}: convert it to numbers, text, dates or categories")
    match column:
        case Categorical():
            values = tuple(cast(Any, column.values))
            other = None if column.other is None else values.index(column.other)
            return Listed(_listed(values, dtype, kind), other)
        case Numerical():
            return Number(_number_grid(column, dtype, kind), dtype)
        case Datetime():
            return _time(column, dtype, kind)


def _listed(values: tuple[Any, ...], dtype: Dtype, kind: Family) -> pd.Series:
    """The listed values in the dtype of the column, if that holds them all and keeps them apart."""
    if kind == "datetime":
        raise InputError(f"{_its(dtype)}: use Datetime(low, high)")
    for value in values:
        if not _held(value, dtype, kind):
            raise InputError(f"{_its(dtype)}, which cannot hold the listed value {shown(value)}")
    if kind == "category":
        categories = pd.Index(values, tupleize_cols=False)
        return pd.Series(pd.Categorical(values, categories=categories, ordered=dtype.ordered))
    if kind in ("integer", "real"):  # or a dtype may refuse 1.0 for 1, or 2**63 for a float
        values = tuple(map(int if kind == "integer" else float, values))
    pool = pd.Series(values, dtype=dtype)
    if kind != "object" and not pd.Index(pool).is_unique:
        raise InputError(f"{_its(dtype)}, which cannot tell all listed values apart")
    return pool


def _held(value: Any, dtype: Dtype, kind: Family) -> bool:
    match kind:
        case "text":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            whole = np.iinfo(number_type(dtype))
            return _is_number(value) and value == round(value) and whole.min <= value <= whole.max
        case "real":
            return _is_number(value) and abs(value) <= float(np.finfo(number_type(dtype)).max)
        case _:
            return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _number_grid(column: Numerical, dtype: Dtype, kind: Family) -> Grid:
    low, high = cast(float, column.low), cast(float, column.high)
    if kind not in ("integer", "real", "object"):
        hint = "Datetime(low, high)" if kind == "datetime" else "Categorical([...]), or convert it to numbers"
        raise InputError(f"{_its(dtype)}, not numbers: use {hint}")
    floats = np.dtype(np.float64)
    if kind == "integer":
        if column.integer is False or column.decimals:
            raise InputError(f"{_its(dtype)}: its numbers are whole, so say integer=True")
        whole = np.iinfo(number_type(dtype))
        if low < whole.min or high > whole.max:
            raise InputError(f"{_its(dtype)}, which cannot hold the bounds {low} to {high}")
    elif kind == "real":
        floats = number_type(dtype)
    if kind == "integer" or column.integer:
        return _exact_grid(column, 0, floats, dtype)
    if column.decimals is not None:
        return _exact_grid(column, column.decimals, floats, dtype)
    if np.isnan(spacing(low, high, floats)):
        raise InputError(f"{_its(dtype)}, which cannot hold the bounds {low} to {high}")
    return Grid.real(low, high, bins=column.bins, dtype=floats)


def _exact_grid(column: Numerical, decimals: int, floats: np.dtype, dtype: Dtype) -> Grid:
    low, high = cast(float, column.low), cast(float, column.high)
    check_decimals(low, high, decimals)
    if not holds(floats, low, high, decimals):
        raise InputError(f"{_its(dtype)}, too coarse for {decimals} decimals from {low} to {high}")
    return Grid.exact(low, high, decimals=decimals, bins=column.bins)


def _time(column: Datetime, dtype: Dtype, kind: Family) -> Time:
    if kind not in ("datetime", "text", "object"):
        raise InputError(f"{_its(dtype)}, not dates: convert it with pandas.to_datetime")
    bounds = np.array([column.low, column.high], dtype="datetime64[s]")
    ticks = {"ns": 10**9, "us": 10**6}.get(tick(dtype), 1) if kind == "datetime" else 1  # in a second
    if max(map(abs, bounds.astype(np.int64).tolist())) >= 2**63 // ticks:
        raise InputError(f"{_its(dtype)}, which cannot hold the bounds {bounds[0]} to {bounds[1]}")
    low, high = bounds.astype(f"datetime64[{column.unit}]").astype(np.int64).tolist()
    return Time(Grid.exact(low, high, decimals=0, bins=column.bins), dtype, str(column.unit))


def _its(dtype: Dtype) -> str:
    # The categories are left out: as a rule they were read off the rows.
    return f"its dtype is {'category' if isinstance(dtype, pd.CategoricalDtype) else dtype}"
