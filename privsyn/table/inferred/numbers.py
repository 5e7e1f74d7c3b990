"""Columns of numbers, inferred from cells. Not private."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.table.encoding import dtypes
from privsyn.table.inferred.number_bounds import (
    COARSE_RATIO,
    STEPS,
    are_codes,
    are_months,
    bounds_of,
    coarsest_step,
)
from privsyn.table.inferred.number_formats import number_format
from privsyn.table.kinds.numerical import Numerical

LARGEST_RANGE = 1e300
"""Range of numbers that are drafted: larger ones may overflow when their bounds are rounded."""

MOST_DECIMALS = 6


def infer_numbers(present: pd.Series, nullable: bool) -> Numerical | None:
    """Return a column for numbers, with bounds; None for two numbers, or for codes."""
    kind = dtypes.family(present.dtype)
    cells = present.tolist() if kind in ("text", "object") else []
    is_text = kind == "text" or all(isinstance(cell, str) for cell in cells)
    if is_text and (form := number_format(cells)) is not None:
        read = pd.Series(form.numbers(cells)).dropna()
        drafted = infer_numbers(read, nullable or len(read) < len(present))
        return None if drafted is None else replace(drafted, format=form.example)
    if kind == "object":
        present = present if present.map(lambda cell: type(cell) in (int, float)).all() else present[:0]
    elif kind not in ("integer", "real", "decimal"):
        return None
    numbers = np.asarray(present.astype(np.float64), np.float64)
    nullable = nullable or not np.isfinite(numbers).all()  # infinite ones count as missing
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return None
    with np.errstate(over="ignore"):
        decimals = next(
            (d for d in range(MOST_DECIMALS + 1) if (np.round(numbers, d) == numbers).all()), None
        )
    if decimals == 0 and are_months(numbers):
        return None  # of numbers between 202312 and 202401 none is a month
    low, high = float(numbers.min()), float(numbers.max())
    if not high - low < LARGEST_RANGE:
        return None  # `Numerical` needs a finite range, also once bounds are rounded outwards
    step = None
    if decimals is not None and kind != "decimal":
        step = coarsest_step(numbers, STEPS, COARSE_RATIO / 10**decimals)
    if kind != "decimal" and are_codes(numbers, step or (0.0 if decimals is None else 10.0**-decimals)):
        return None
    low, high = bounds_of(numbers, integers=decimals == 0 and kind != "decimal")
    if step is not None:  # to the grid: multiples of the step that hold all numbers
        first, last = math.ceil(round(low / step, 6)), math.floor(round(high / step, 6))
        low, high = round(first * step, decimals), round(last * step, decimals)
    if kind == "integer":
        limits = np.iinfo(dtypes.number_type(present.dtype))
        low, high = max(low, limits.min), min(high, limits.max)
    try:
        if decimals == 0 and kind != "decimal":
            step = None if step is None else int(step)
            return Numerical(int(low), int(high), integer=True, step=step, nullable=nullable)
        integers = None if kind == "decimal" else False
        decimals = decimals if step is None else None
        return Numerical(low, high, integer=integers, decimals=decimals, step=step, nullable=nullable)
    except InputError:
        return None  # too many digits to be a quantity
