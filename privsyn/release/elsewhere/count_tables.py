"""Read tables of counts: which codes each cell stands for, its count, and the variance of its noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError, safe_repr
from privsyn.marginals.domain import Attributes, Domain
from privsyn.marginals.types import Codes, Floats, Integers
from privsyn.table.encoding.encoders import CategoricalEncoder, Encoder
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.constraint import python_value
from privsyn.table.schema.schema import Schema

COUNT, VARIANCE = "count", "variance"
UNCOUNTED = -1


@dataclass(frozen=True, eq=False)
class CountTable:
    """A table of counts that somebody released.

    Parameters
    ----------
    attributes : tuple of str
    groups : tuple of integer arrays
        For each attribute the place of each code along the table's axis.
    counts, variance : array of one axis per attribute
        In records, and records squared.
    """

    attributes: Attributes
    groups: tuple[Codes, ...]
    counts: Floats
    variance: Floats


def as_frames(tables: object, schema: Schema) -> list[pd.DataFrame]:
    """Return all tables as data frames of columns, counts and variances.

    Raises
    ------
    InputError
        If a table is neither a data frame nor an array with named axes, or lacks counts or variances.
    """
    if isinstance(tables, Mapping):
        tables = [_of_array(names, cells, schema) for names, cells in tables.items()]
    if not isinstance(tables, Sequence) or not tables:
        raise InputError("tables is a list of data frames, or a mapping of columns to (counts, variance)")
    return [_checked(table) for table in tables]


def _of_array(names: object, cells: object, schema: Schema) -> pd.DataFrame:
    """Return an array as a data frame; its axes are the listed values, in order, then missing cells."""
    attributes = (names,) if isinstance(names, str) else names
    try:
        counts, variance = cast(tuple[Any, Any], cells)
        found = np.asarray(counts, np.float64)
        spread = np.broadcast_to(np.asarray(variance, np.float64), found.shape)
    except (TypeError, ValueError):
        raise InputError(f"table {safe_repr(names)}: give (array of counts, variance)") from None
    if not isinstance(attributes, tuple) or found.ndim != len(attributes):
        raise InputError(f"table {safe_repr(names)}: the array needs one axis for each column")
    places = np.indices(found.shape).reshape(found.ndim, -1)
    table = {}
    for name, length, place in zip(attributes, found.shape, places, strict=True):
        column = schema.columns.get(name)
        if column is None or not column.lists_values:
            raise InputError(
                f"table {safe_repr(names)}: {safe_repr(name)} has no listed values: give a data frame"
            )
        listed = [*column.listed, None]
        if length not in (len(listed) - 1, len(listed)):
            raise InputError(f"table {safe_repr(names)}: the axis of {safe_repr(name)} has {length} places")
        table[name] = pd.Series([listed[k] for k in place.tolist()], dtype=object)
    return pd.DataFrame(table).assign(**{COUNT: found.ravel(), VARIANCE: spread.ravel()})


def _checked(table: object) -> pd.DataFrame:
    if not isinstance(table, pd.DataFrame) or not {COUNT, VARIANCE} < set(table.columns):
        raise InputError(f"each table is a data frame with columns, and {COUNT!r} and {VARIANCE!r}")
    numbers = table[[COUNT, VARIANCE]].apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    if not len(table) or not np.isfinite(numbers).all() or (numbers[:, 1] < 0).any():
        raise InputError(f"table {_named(table)}: counts and variances must be finite, and variances >= 0")
    return table


def names_of(table: pd.DataFrame) -> tuple[str, ...]:
    """Return the columns that a table counts."""
    return tuple(name for name in table.columns if name not in (COUNT, VARIANCE))


def _named(table: pd.DataFrame) -> str:
    return ", ".join(map(safe_repr, names_of(table)))


def holds_missing(frames: Sequence[pd.DataFrame], column: str) -> bool:
    """Return whether some table counts missing cells of a column."""
    return any(map(_is_missing, (v for frame in frames if column in frame for v in frame[column].tolist())))


def _is_missing(value: Any) -> bool:
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def read_counts(
    frame: pd.DataFrame, schema: Schema, encoders: Mapping[str, Encoder], domain: Domain
) -> CountTable:
    """Return a data frame as a table of counts.

    Parameters
    ----------
    frame : pandas.DataFrame
    schema : Schema
    encoders : mapping of a column to its encoder
    domain : Domain
        The codes of the columns, the last of them for missing cells if these are possible.

    Raises
    ------
    InputError
        If the cells do not cover each combination of the columns' values exactly once.
    """
    names = names_of(frame)
    for name in names:
        if name not in encoders:
            raise InputError(f"table {_named(frame)}: no column {safe_repr(name)} is counted: leave it out")
    sizes = [domain.sizes[domain.names.index(name)] for name in names]
    try:
        axes = [
            _axis(frame[name].tolist(), schema.coded[name], encoders[name], size)
            for name, size in zip(names, sizes, strict=True)
        ]
    except InputError as error:
        raise InputError(f"table {_named(frame)}: {error}") from None
    groups, places = zip(*axes, strict=True)
    shape = tuple(int(group.max()) + 1 for group in groups)
    flat = np.ravel_multi_index(places, shape)
    if len(np.unique(flat)) != len(flat) or len(flat) != np.prod(shape):
        raise InputError(f"table {_named(frame)}: each combination of values needs exactly one row")
    counts, variance = np.empty(len(flat)), np.empty(len(flat))
    counts[flat] = frame[COUNT].to_numpy(np.float64)
    variance[flat] = frame[VARIANCE].to_numpy(np.float64)
    return CountTable(names, groups, counts.reshape(shape), variance.reshape(shape))


def _axis(values: list[Any], column: Coded, encoder: Encoder, size: int) -> tuple[Codes, Codes]:
    """Return the place along the axis of each code, and that of each of the values."""
    keys = [None if _is_missing(value) else value for value in values]
    group = np.full(size, UNCOUNTED, np.int32)
    for place, value in enumerate(dict.fromkeys(keys)):
        codes = np.array([encoder.size]) if value is None else _codes(value, column, encoder)
        if not len(codes) or codes.max() >= size or (group[codes] != UNCOUNTED).any():
            raise InputError(f"{safe_repr(value)} has no values of its own: give values or intervals apart")
        group[codes] = place
    if (group == UNCOUNTED).any():
        raise InputError("some values of a column have no count: count all that the schema allows")
    # Places in the order of the codes, in which the tables of the package are.
    _, first, ordered = np.unique(group, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    where = {value: rank[place] for place, value in enumerate(dict.fromkeys(keys))}
    return rank[ordered].astype(np.int32), np.array([where[key] for key in keys], np.int32)


def _codes(value: Any, column: Coded, encoder: Encoder) -> Integers:
    """Return the codes for which a value or an interval of a table stands."""
    if encoder.ordered:
        lows, highs = encoder.extents
        if not isinstance(value, pd.Interval):
            number = column.number_of(python_value(value))
            return np.flatnonzero((lows <= number) & (number <= highs))
        low, high = (column.number_of(python_value(end)) for end in (value.left, value.right))
        middles = (lows + highs) / 2
        above = middles >= low if value.closed_left else middles > low
        return np.flatnonzero(above & (middles <= high if value.closed_right else middles < high))
    listed = cast(CategoricalEncoder, encoder).pool.tolist()
    return np.flatnonzero([one == value for one in listed])
