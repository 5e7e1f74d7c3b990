"""Weighted shares and means beside those of the rows, and how much more noise they have, at no cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.table.schema.condition import conditions_on_values

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable

MEAN = "mean"
"""Stands in the place of a condition: the mean of a column of numbers."""

MOST_VALUES = 50
"""Listed values of a column that are shown; of more, `share` answers for one."""

LINES = [
    "column",
    "of",
    "in_rows",
    "in_rows_low",
    "in_rows_high",
    "estimate",
    "low",
    "high",
    "noise",
    "covered",
]


Estimate = Callable[..., pd.Series]
"""`share` or `mean` of a table: of a condition or column, with the keyword `weighted`."""


def weighted_estimates(model: FittedTable, share: Estimate, mean: Estimate) -> pd.DataFrame:
    """Return a line for each listed value and each mean of numbers; see `Accuracy.weighted`.

    Raises
    ------
    InputError
        If rows have no weights.
    """
    if model.codec.schema.weight is None:
        raise InputError("rows have no weights: the schema declares no column of kind weight")
    return pd.DataFrame(_lines(model, share, mean), columns=LINES)


def _lines(model: FittedTable, share: Estimate, mean: Estimate) -> Iterator[list[Any]]:
    for name, kind in model.codec.schema.coded.items():
        if name == model.codec.schema.weight or name in model.not_found or name not in model.codec.names:
            continue
        if kind.lists_values and len(kind.listed) <= MOST_VALUES:
            for condition in conditions_on_values(name, kind):
                both = (share(condition, weighted=weighted) for weighted in (False, True))
                yield [name, condition, *_beside(*both)]
        elif kind.has_numbers:
            both = (mean(name, weighted=weighted) for weighted in (False, True))
            yield [name, MEAN, *_beside(*both)]


def _beside(rows: pd.Series, weighted: pd.Series) -> list[Any]:
    """Return both estimates with their intervals, and the squared ratio of their widths."""
    widths = [estimate["high"] - estimate["low"] for estimate in (rows, weighted)]
    noise = (widths[1] / widths[0]) ** 2 if widths[0] > 0 else nan
    ends = [estimate[part] for estimate in (rows, weighted) for part in ("estimate", "low", "high")]
    return [*ends, noise, bool(weighted["covered"])]


def kish_effect(model: FittedTable) -> float:
    """Return Kish's design effect of the weights, 1 + their squared coefficient of variation, as released.

    The number of rows over it is about how many rows of equal weights say as much of the population, if the
    weights have nothing to do with the answers (Kish 1965).
    """
    name = str(model.codec.schema.weight)
    lows, highs = model.codec.encoder_of[name].extents
    weights, rows = (lows + highs) / 2, np.maximum(model.fitted.counts_of(name), 0.0)
    return float(rows.sum() * (rows @ weights**2) / (rows @ weights) ** 2)
