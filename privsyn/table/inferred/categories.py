"""Columns of listed values, inferred from cells. Not private."""

from __future__ import annotations

import math

import pandas as pd

from privsyn.table.encoding import dtypes
from privsyn.table.encoding.natural_order import natural_key, scale_of
from privsyn.table.inferred.number_bounds import FEW_NUMBERS, FEW_ROWS, FEW_TEXTS
from privsyn.table.kinds.categorical import Categorical


def infer_categories(present: pd.Series, nullable: bool) -> Categorical | None:
    """Return a column for few distinct values, sorted or in the order of its categories; none is rare."""
    kind = dtypes.family(present.dtype)
    if kind == "boolean":
        return Categorical([False, True], nullable=nullable)
    try:
        rows_of = dict(present.value_counts(sort=False).items())
    except TypeError:
        return None  # cells that are lists
    values = present.cat.categories.tolist() if kind == "category" else present.drop_duplicates().tolist()
    values = [value for value in values if not isinstance(value, float) or math.isfinite(value)]
    if not values or not {type(value) for value in values} <= {str, bool, int, float}:
        return None
    if len(values) > FEW_TEXTS or (len(values) > FEW_NUMBERS and 10 * len(values) > len(present)):
        return None
    rare = {value for value in values if rows_of[value] < FEW_ROWS}
    # Categories without rows are listed if no other is rare; beside rare ones they would show which are.
    if any(rows_of[value] for value in rare) and set(values) != {0, 1}:  # these two reveal nothing
        values, nullable = [value for value in values if value not in rare], True
        if len(values) < 2:
            return None
    if kind == "real" and all(value == round(value) and abs(value) < 2**53 for value in values):
        values = [int(value) for value in values]
    if kind != "category":
        values.sort(key=lambda value: (type(value).__name__, natural_key(value)))
        values = scale_of(values) or values
    return Categorical(values, nullable=nullable)
