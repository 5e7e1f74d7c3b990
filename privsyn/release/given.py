"""Read the values that a conditional sample must have, for all rows or row by row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.marginals.domain import Floats
from privsyn.release.ranges import part_inside
from privsyn.table.codec.codec import Codec
from privsyn.table.codec.gaps import Gap
from privsyn.table.enforcement.equal import CopyOf
from privsyn.table.enforcement.rules import Span
from privsyn.table.schema.columns import Ordinal
from privsyn.table.schema.constraint import python_value


@dataclass(frozen=True, eq=False)
class Given:
    """The numbers and ranges that the rows of a sample must have.

    Parameters
    ----------
    numbers : mapping of a column to a number for each row, NaN where none is given
    spans : mapping of a column to the span of its numbers in all rows
    missing : set of the columns whose cell is missing in all rows; their numbers are NaN
    """

    numbers: Mapping[str, Floats] = field(default_factory=dict)
    spans: Mapping[str, Span] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()


def read_given(codec: Codec, given: object, n: int | None, rows: int) -> Given:
    """Return the numbers and ranges that a sample must have.

    Parameters
    ----------
    codec : Codec
    given : mapping of a column to a value or a range, or pandas.DataFrame
        A range is ``(low, high)`` or ``{"low": low, "high": high}``, both ends included; either may be None.
        None, NaN or ``pandas.NA`` for a column means that its cells are missing. Missing cells of a data
        frame are filled in.
    n : int, optional
        The number of rows that the caller asks for. It must be that of a data frame.
    rows : int
        Number of rows if `given` is a mapping.

    Examples
    --------
    >>> from privsyn import Categorical, Numerical, Schema
    >>> schema = Schema({"sex": Categorical(["F", "M"]), "age": Numerical(0, 9)})
    >>> codec = Codec(schema, ("sex", "age"), ("object", "int64"))
    >>> read = read_given(codec, {"sex": "M", "age": (3, None)}, None, 2)
    >>> read.numbers["sex"].tolist(), read.spans["age"].ends
    ([1.0, 1.0], [3.0, inf])
    """
    spans, missing = {}, frozenset[str]()
    if isinstance(given, pd.DataFrame):
        if n is not None and n != len(given):
            raise InputError("given has as many rows as are made: leave out n")
        if not given.columns.is_unique:
            raise InputError("given has two columns of one name: drop one")
        cells = {name: given[name].tolist() for name in given.columns}
    elif isinstance(given, Mapping):
        ranges = {name: said for name, said in given.items() if isinstance(said, tuple | Mapping)}
        spans = {_known(codec, name): _span(codec, name, said) for name, said in ranges.items()}
        cells = {name: [value] * rows for name, value in given.items() if name not in ranges}
        missing = frozenset(_known(codec, name) for name in cells if _is_missing(given[name]))
    else:
        raise InputError(f"given is a mapping of columns to values, or a data frame; got {safe_repr(given)}")
    found = {}
    for name, values in cells.items():
        numbers = _Numbers(codec, _known(codec, name), quoting=isinstance(given, Mapping))
        found[name] = np.array([numbers[value] for value in values], np.float64)
    return Given(found, spans, missing)


def _is_missing(value: Any) -> bool:
    """Return whether a value means a missing cell, such as None, NaN or NaT."""
    with suppress(Exception):  # an object may raise any exception
        return pd.api.types.is_scalar(value) and bool(pd.isna(value))
    return False


def _known(codec: Codec, name: Any) -> str:
    if name not in codec.schema.coded:
        meant = did_you_mean(name, codec.schema.coded)
        raise InputError(f"given: there is no column {safe_repr(name)} among those to be synthesised{meant}")
    return str(name)


def _span(codec: Codec, name: str, said: tuple[Any, ...] | Mapping[str, Any]) -> Span:
    """Return a range as a span; refuse a range without any value of the column."""
    try:
        return _read_span(codec, name, said)
    except InputError as error:
        complaint = str(error)
    except Exception:  # an object may raise any exception
        complaint = "its range cannot be read"
    raise InputError(f"given: column {name!r}: {complaint}")


def _read_span(codec: Codec, name: str, said: tuple[Any, ...] | Mapping[str, Any]) -> Span:
    column = codec.schema.coded[name]
    names = ("low", "high") if len(said) == 2 else range(len(said))
    ends: dict[Any, Any] = dict(said if isinstance(said, Mapping) else zip(names, said, strict=True))
    if set(ends) - {"low", "high"}:
        raise InputError("a range has a low and a high end, either of them None")
    ends = {end: python_value(value) for end, value in ends.items() if value is not None}
    if not ends:
        raise InputError("a range needs a low or a high end")
    if any(maker.column == name and not isinstance(maker, CopyOf | Gap) for maker in codec.computed):
        raise InputError("is computed, so it takes no range: give ranges of what it is computed from")
    if isinstance(column, Ordinal) and "high" in ends:
        ends["high"] = column.high_end(ends["high"])
    span = Span.of(column, ends)
    if not part_inside(codec.own_cells(name), span).any():
        raise InputError("none of its values lies in the range")
    return span


class _Numbers(dict[Any, float]):
    """Caches the number of each value of a column.

    Errors quote a value of a mapping, which the caller wrote. They quote no cell of a data frame, whose rows
    may describe people.
    """

    def __init__(self, codec: Codec, name: str, *, quoting: bool) -> None:
        super().__init__()
        self.column, self.name, self.quoting = codec.schema.coded[name], name, quoting
        self.cells = codec.own_cells(name)

    def __getitem__(self, value: Any) -> float:
        if not pd.api.types.is_scalar(value):
            raise InputError(f"given: column {self.name!r} needs one value per row")
        try:
            return np.nan if pd.isna(value) else super().__getitem__(value)
        except InputError as error:
            complaint = str(error)
        except Exception:  # an object may raise any exception
            complaint = f"{safe_repr(value)} cannot be read"
        complaint = complaint if self.quoting else "it has a value that cannot be there"
        raise InputError(f"given: column {self.name!r}: {complaint}")

    def __missing__(self, value: Any) -> float:
        number = self.column.number_of(python_value(value))
        low, high = self.column.bounds
        if not low <= number <= high:
            raise InputError(f"{safe_repr(value)} lies outside its bounds")
        snapped = float(self.cells.snap(np.array([number]))[0])
        if np.isnan(snapped):
            raise InputError(f"{safe_repr(value)} is not one of its numbers")
        grid = self.cells.grid
        is_real = grid is not None and grid.decimals is None
        number = number if is_real else snapped  # keep a given real number exactly
        self[value] = number
        return number


def patterns(
    given: Mapping[str, Floats], missing: Collection[str] = ()
) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """Yield each set of columns that are given together, with its rows; those `missing` are given as such."""
    names = tuple(given)
    known = np.stack([~np.isnan(given[name]) | (name in missing) for name in names], axis=1)
    which, rows = np.unique(known, axis=0, return_inverse=True)
    for place, pattern in enumerate(which):
        some = tuple(name for name, is_given in zip(names, pattern, strict=True) if is_given)
        yield some, np.flatnonzero(rows.ravel() == place)
