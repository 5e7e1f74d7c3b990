"""Convert the cells of a CSV, which are text, to the dtype of their column type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.table.encoding.parsing import clock_seconds, moments, numbers, span_seconds
from privsyn.table.schema.columns import Column, Numerical, Ordinal
from privsyn.table.schema.csv_format import CsvFormat
from privsyn.table.schema.time_columns import Datetime, Duration, Time


def _read_numbers(column: Numerical, texts: Sequence[str | None], csv_format: CsvFormat) -> pd.Series:
    if not csv_format.spells_plainly:
        texts = [None if text is None else csv_format.plain_number(text) for text in texts]
    try:
        read = np.array([np.nan if text is None else float(text) for text in texts], np.float64)
    except ValueError:  # one of them is no number
        read = numbers(texts)
    if column.fixed_decimals != 0:
        return pd.Series(read)
    missing = np.isnan(read)  # clipping keeps too large numbers out of bounds
    whole = np.rint(np.clip(np.where(missing, 0, read), -(2.0**62), 2.0**62))
    return pd.Series(pd.arrays.IntegerArray(whole.astype(np.int64), missing))


def _read_times(column: Time, texts: Sequence[str | None], csv_format: CsvFormat) -> pd.Series:
    seconds = clock_seconds(texts)
    times = pa.array(np.nan_to_num(seconds).astype(np.int32), pa.time32("s"), mask=np.isnan(seconds))
    return pd.Series(pd.array(times, dtype=pd.ArrowDtype(pa.time32("s"))))


def _read_durations(column: Duration, texts: Sequence[str | None], csv_format: CsvFormat) -> pd.Series:
    seconds = span_seconds(texts)
    return pd.Series(np.nan_to_num(seconds).astype("timedelta64[s]")).mask(np.isnan(seconds))


READERS: dict[type[Column], Callable[[Any, Sequence[str | None], CsvFormat], pd.Series]] = {
    Numerical: _read_numbers,
    Datetime: lambda column, texts, csv_format: pd.Series(moments(texts, column.format)),
    Time: _read_times,
    Duration: _read_durations,
}
"""Converts the texts of a CSV to cells, for each column type with bounds."""


def read_texts(column: Ordinal, cells: pa.ChunkedArray, csv_format: CsvFormat) -> pd.Series:
    """Return texts of a CSV as cells of the column's dtype; null is a missing cell."""
    class_ = next(class_ for class_ in type(column).__mro__ if class_ in READERS)
    return convert_distinct(cells, lambda texts: READERS[class_](column, texts, csv_format))


def convert_distinct(
    cells: pa.ChunkedArray, convert: Callable[[Sequence[str | None]], pd.Series]
) -> pd.Series:
    """Return the converted cells; each distinct text is converted once, and the dtype is `convert`'s.

    `convert` converts each text alone, and all its results have one dtype. So a cell does not depend on the
    others; only the time does, which is no secret of privsyn (docs/privacy.md).
    """
    chunks = pc.dictionary_encode(cells, null_encoding="encode").chunks  # the last has all distinct texts
    texts = chunks[-1].dictionary.to_pylist() if chunks else []
    places = np.concatenate([np.zeros(0, np.int64), *(chunk.indices.to_numpy() for chunk in chunks)])
    return convert(texts).take(places).reset_index(drop=True)
