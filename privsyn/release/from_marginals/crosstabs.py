"""Read tables of counts as offices and programs write them: crosstabs, totals, suppressed cells, bands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from privsyn.arguments import check_finite
from privsyn.errors import InputError, did_you_mean, replace_errors, safe_repr, warn_totals
from privsyn.table.encoding.bands import NUMBER, Band, read_band, read_numbers
from privsyn.table.encoding.parsing import is_missing
from privsyn.table.schema.columns import Numerical
from privsyn.table.schema.schema import Schema

COUNT, VARIANCE = "count", "variance"

TOTALS = frozenset(
    ("total", "totals", "grand total", "subtotal", "all", "overall", "sum", "gesamt", "insgesamt", "summe")
)
"""What the row of a total is called, in lower case, unless it is a value of the column."""

COUNTS: Mapping[str, Callable[..., tuple[float, float]]] = {
    rf"{NUMBER}": lambda count: (count, count),
    rf"(?:<|under|fewer than|less than)\s*{NUMBER}": lambda end: (0.0, end - 1),
    rf"(?:<=|≤|up to)\s*{NUMBER}": lambda end: (0.0, end),
    rf"{NUMBER}\s*(?:-|–|to)\s*{NUMBER}": lambda low, high: (low, high),
}
"""How a count is written: patterns, and the smallest and the largest count that each means."""


def as_frames(
    tables: object, schema: Schema, variance: float | None, suppressed: object
) -> tuple[list[pd.DataFrame], tuple[str, ...]]:
    """Return all tables as data frames of columns, counts and variances; and what was assumed of counts.

    Raises
    ------
    InputError
        If a table cannot be read, or lacks counts or variances.
    """
    if variance is not None and check_finite("variance", variance) < 0:
        raise InputError(f"variance must be at least 0; got {safe_repr(variance)}")
    limits: tuple[float, float] | None = None
    if suppressed is not None:
        ends = suppressed if isinstance(suppressed, tuple | list) and len(suppressed) == 2 else (1, 0)
        low, high = (check_finite("suppressed", end) for end in ends)
        if not 0 <= low <= high:
            raise InputError("suppressed is (low, high): the numbers that such a count can be, as (1, 4)")
        limits = low, high
    pairs: Iterable[tuple[object, object]]
    if isinstance(tables, Mapping):
        pairs = tables.items()
    else:
        pairs = [(None, table) for table in (tables if isinstance(tables, list | tuple) else ())]
    frames, totals, facts = list[pd.DataFrame](), list[str](), list[str]()
    for names, table in pairs:
        frame = _long_form(names, table, schema, variance)
        if not names_of(frame):
            raise InputError(f"a table has no column besides {COUNT!r} and {VARIANCE!r}: add one")
        parts = _without_totals(frame, schema)
        totals += [named(parts)] if len(parts) < len(frame) else []
        counted, suppressed_counts = _with_counts(parts, variance, limits)
        if suppressed_counts:
            facts.append(
                f"{suppressed_counts} suppressed counts of {named(parts)}, taken as equally likely numbers"
            )
        frames.append(_with_bands(counted, schema))
    if not frames:
        raise InputError("tables is a list of data frames, or a mapping of columns to (counts, variance)")
    warn_totals(totals)
    return frames, tuple(facts)


def names_of(table: pd.DataFrame) -> tuple[str, ...]:
    """Return the columns that a table counts."""
    return tuple(name for name in table.columns if name not in (COUNT, VARIANCE))


def named(table: pd.DataFrame) -> str:
    """Return the columns that a table counts, for a message."""
    return ", ".join(map(safe_repr, names_of(table))) or "of no column"


def _long_form(names: object, table: Any, schema: Schema, variance: float | None) -> pd.DataFrame:
    """Return a table with one row for each cell: a long frame, a crosstab, a series or an array."""
    if hasattr(table, "to_pandas") and hasattr(table, "columns"):
        table = table.to_pandas()
    if isinstance(table, pd.DataFrame) and COUNT in table.columns:
        return table
    if not isinstance(table, pd.DataFrame | pd.Series):
        if names is not None:
            return _frame_of_array(names, table, schema, variance)
        raise InputError(
            f"each table is a data frame with columns, {COUNT!r} and {VARIANCE!r}, or a crosstab"
        )
    axes = [table.index] if isinstance(table, pd.Series) else [table.index, table.columns]
    attributes = [name for axis in axes for name in axis.names]
    keyed_by = (names,) if isinstance(names, str) else names
    if isinstance(keyed_by, tuple) and not any(name in schema.columns for name in attributes):
        attributes = list(keyed_by)
    keys = [tuple(_several(key)) for key in axes[0]]
    if len(axes) > 1:
        keys = [(*row, *_several(column)) for row in keys for column in axes[1]]
    if not keys or len(attributes) != len(keys[0]) or not all(name in schema.columns for name in attributes):
        unknown = next((name for name in attributes if name is not None and name not in schema.columns), None)
        meant = did_you_mean(unknown, schema.columns)
        raise InputError(
            f"a table without {COUNT!r} is a crosstab or series, and its axes have names of columns; got"
            f" {', '.join(map(safe_repr, attributes))}: rename its columns, or use rename_axis{meant}"
        )
    return pd.DataFrame(keys, columns=attributes, dtype=object).assign(**{COUNT: table.to_numpy().ravel()})


def _several(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _frame_of_array(names: object, cells: object, schema: Schema, variance: float | None) -> pd.DataFrame:
    """Return an array as a data frame; its axes are the listed values, in order, then missing cells."""
    attributes = (names,) if isinstance(names, str) else names
    try:
        counts, noise = cells if isinstance(cells, tuple) and len(cells) == 2 else (cells, variance)
        array = np.asarray(counts, np.float64)
        spread = np.broadcast_to(np.asarray(noise, np.float64), array.shape)
    except (TypeError, ValueError):
        raise InputError(
            f"table {safe_repr(names)}: give (array of counts, variance), a data frame or a series"
        ) from None
    if not isinstance(attributes, tuple) or array.ndim != len(attributes):
        raise InputError(f"table {safe_repr(names)}: the array needs one axis for each column")
    indices = np.indices(array.shape).reshape(array.ndim, -1)
    table = {}
    for name, length, index in zip(attributes, array.shape, indices, strict=True):
        column = schema.columns.get(name)
        if column is None or not column.lists_values:
            raise InputError(
                f"table {safe_repr(names)}: {safe_repr(name)} has no listed values: give a data frame"
            )
        listed = [*column.listed, None]
        if length not in (len(listed) - 1, len(listed)):
            raise InputError(
                f"table {safe_repr(names)}: the axis of {safe_repr(name)} has {length} places:"
                f" {len(column.listed)} values are listed"
            )
        table[name] = pd.Series([listed[k] for k in index.tolist()], dtype=object)
    return pd.DataFrame(table).assign(**{COUNT: array.ravel(), VARIANCE: spread.ravel()})


def _without_totals(table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return a table without rows of totals, which follow from the others."""
    total = np.zeros(len(table), bool)
    for name in names_of(table):
        listed = schema.columns[name].listed if name in schema.columns else ()
        total |= [
            isinstance(value, str) and value.strip().casefold() in TOTALS and value not in listed
            for value in table[name].tolist()
        ]
    if total.all() and len(table):
        raise InputError(f"table {named(table)}: has nothing but totals")
    return table[~total].reset_index(drop=True) if total.any() else table


def _with_counts(
    table: pd.DataFrame, variance: float | None, limits: tuple[float, float] | None
) -> tuple[pd.DataFrame, int]:
    """Return a table with counts and variances as numbers, and how many counts were suppressed.

    A suppressed count between a and b is taken as each whole number in between with equal probability: it has
    their mean, and beside the noise the variance ((b - a + 1)^2 - 1) / 12.
    """
    if VARIANCE not in table.columns and variance is None:
        raise InputError(
            f"table {named(table)}: has no {VARIANCE!r}: add this column, or give variance=...; 0 if its"
            " counts are exact and public"
        )
    read = [_count(cell) or limits for cell in table[COUNT].tolist()]
    if None in read:
        number = sum(ends is None for ends in read)
        raise InputError(
            f"table {named(table)}: {number} counts are blank or signs: say what they can be, as"
            " suppressed=(0, 4), or correct them"
        )
    ends = np.array(read, np.float64).reshape(-1, 2)
    noise = pd.to_numeric(table[VARIANCE], errors="coerce") if VARIANCE in table.columns else variance
    spread = np.broadcast_to(np.asarray(noise, np.float64), len(table))
    if not len(table) or not np.isfinite(ends).all() or not np.isfinite(spread).all() or (spread < 0).any():
        raise InputError(f"table {named(table)}: counts and variances must be finite, and variances >= 0")
    width = ends[:, 1] - ends[:, 0]
    counts = {COUNT: ends.mean(axis=1), VARIANCE: spread + ((width + 1) ** 2 - 1) / 12}
    return table.assign(**counts), int((width > 0).sum())


def _count(cell: Any) -> tuple[float, float] | None:
    """Return the smallest and the largest number that a count can be; None if it does not say.

    >>> _count(7), _count("1,234"), _count("<5"), _count("1-4"), _count("*"), _count("")
    ((7.0, 7.0), (1234.0, 1234.0), (0.0, 4.0), (1.0, 4.0), None, None)
    """
    if is_missing(cell):
        return None
    if not isinstance(cell, str):
        number = float(cell)
        return number, number
    return read_numbers(cell.strip().casefold(), COUNTS)


def _with_bands(table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return a table in which bands of numbers that are written as text are intervals."""
    bands = {
        name: _bands(table[name].tolist(), column)
        for name in names_of(table)
        if isinstance(column := schema.columns.get(name), Numerical)
        and any(isinstance(value, str) for value in table[name].tolist())
    }
    return table.assign(**{name: pd.Series(values, dtype=object) for name, values in bands.items()})


def _bands(values: Sequence[Any], column: Numerical) -> list[Any]:
    """Return the values and bands of a column of numbers. A band ends where the next one begins.

    >>> print(*_bands(["Under 18 years", "18-64", "65+", "7"], Numerical(0, 99, integer=True)))
    [0.0, 18.0) [18.0, 64.0] [65.0, 99.0] 7.0
    >>> print(*_bands(["0 to 10", "10 to 20"], Numerical(0.0, 20.0)))
    [0.0, 10.0) [10.0, 20.0]
    """
    read = dict[Any, Any]()
    for value in values:
        if not isinstance(value, str):
            continue
        if (band := read_band(value)) is None:
            raise InputError(
                f"{safe_repr(value)} is no number or band: write 18-24, 65+, under 18, or pandas.Interval"
            )
        if band == Band(band.low, band.low):
            read[value] = band.low
            continue
        pairs = zip((band.low, band.high), column.bounds, strict=True)
        low, high = (end if isfinite(end) else bound for end, bound in pairs)
        with replace_errors(f"{safe_repr(value)} is no band of numbers: its ends are in the wrong order"):
            read[value] = pd.Interval(low, high, band.closed)
    bands = sorted((band for band in read.values() if isinstance(band, pd.Interval)), key=lambda b: b.left)
    step = 0 if column.fixed_decimals is not None else 1
    shorter = {
        band: pd.Interval(band.left, after.left, "left" if band.closed_left else "neither")
        for band, after in pairwise(bands)
        if band.closed_right and after.closed_left and 0 <= after.left - band.right <= step
    }
    read = {value: shorter.get(band, band) for value, band in read.items()}
    return [read[value] if isinstance(value, str) else value for value in values]
