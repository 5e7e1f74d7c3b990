"""Join a table of features and a target, as scikit-learn passes them, to one table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError, replace_errors, safe_repr
from privsyn.table.encoding.dtypes import is_wide_float
from privsyn.table.io.arrow import check_type, plain_cells, readable
from privsyn.table.io.read_in_memory import arrow_of

NAMELESS = "target"
"""The name of a target that has none."""


def as_frame(table: Any) -> Any:
    """Return a matrix of NumPy as a data frame with the columns x0, x1, ...; any other table unchanged.

    The dtype of the matrix is that of the columns: no cell decides it.

    >>> as_frame(np.eye(2)).columns.tolist()
    ['x0', 'x1']
    """
    if not isinstance(table, np.ndarray):
        return table
    if table.ndim != 2:
        raise InputError(f"an array must have rows and columns; this one has {table.ndim} dimensions")
    # Without a dtype, pandas would take one from the cells.
    return pd.DataFrame(table, columns=[f"x{place}" for place in range(table.shape[1])], dtype=table.dtype)


def with_target(features: Any, target: Any) -> tuple[Any, str]:
    """Return the features with the target as a further column, and the name of that column.

    Parameters
    ----------
    features : pandas or polars DataFrame, pyarrow Table, or NumPy matrix
    target : pandas or polars Series, NumPy or Arrow array, with as many values
        Rows are matched by their place; a pandas index is not used. A target without a name is called
        "target". It must have a type of its own, because a type that is taken from the cells would reveal
        one of them. A list has none.

    Raises
    ------
    InputError
        If the lengths differ, the name is already a column, the target has no type, or the table is of
        another kind.

    Examples
    --------
    >>> with_target(pd.DataFrame({"age": [20, 30]}), np.array([0, 1]))[0].columns.tolist()
    ['age', 'target']
    """
    features = as_frame(features)
    if isinstance(target, pd.DataFrame) and len(target.columns) == 1:
        target = target.iloc[:, 0]
    name = NAMELESS if (given := getattr(target, "name", None)) is None else given
    if not isinstance(name, str):
        raise InputError(f"the name of the target must be text; got {safe_repr(name)}: rename it")
    columns = getattr(features, "column_names", getattr(features, "columns", ()))
    if name in list(columns):
        raise InputError(
            f"the target {name!r} is already a column: pass the table alone and target={name!r},"
            " or remove the column"
        )
    if not isinstance(features, pd.DataFrame | pa.Table) and not hasattr(features, "hstack"):
        raise InputError(
            f"a target cannot be joined to a {type(features).__name__}: pass one table that contains it,"
            " and target=... with its name"
        )
    if not _has_type(target, features):
        raise InputError(
            f"a target of type {type(target).__name__} has no public type of its values: give a Series with a"
            " dtype, or a NumPy array whose dtype is not object"
        )
    if is_wide_float(dtype := getattr(target, "dtype", None)):
        raise InputError(f"column {name!r}: its dtype is {dtype}: convert it to float64")
    if hasattr(target, "to_arrow") and not hasattr(features, "hstack"):  # of polars
        target = arrow_of(target.to_frame(name))[name]
    if isinstance(target, pd.Series):
        target = readable(target.to_frame(name))[name]
    if isinstance(target, pa.Array | pa.ChunkedArray):
        check_type(name, target.type)
        target = plain_cells(target)
    with replace_errors("the target must have one value for each row of the table"):
        if getattr(target, "ndim", 1) != 1:
            raise ValueError
        return _joined(features, name, target), name


def _has_type(target: Any, features: Any) -> bool:
    """Return whether the type of the values is known without looking at them.

    A pandas Series of objects stays one in a pandas table. Arrow and polars would choose a type by its cells.
    """
    if isinstance(target, pa.Array | pa.ChunkedArray):
        return True
    if isinstance(target, pd.Series) and isinstance(features, pd.DataFrame):
        return True
    return str(getattr(target, "dtype", "object")).lower() != "object"


def _joined(features: Any, name: str, target: Any) -> Any:
    if isinstance(features, pd.DataFrame):
        if isinstance(target, pa.ChunkedArray):
            target = pd.Series(target, dtype=pd.ArrowDtype(target.type))
        # With the index of the table, pandas neither aligns the rows nor chooses another dtype.
        return features.assign(**{name: pd.Series(target).set_axis(features.index)})
    if isinstance(features, pa.Table):
        typed = isinstance(target, pa.ChunkedArray)
        return features.append_column(name, target if typed else pa.array(target))
    import polars as pl

    return features.hstack([pl.Series(name, target)])
