"""Read the values that a conditional sample must have, for all rows or row by row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about, did_you_mean, replace_errors, safe_repr
from privsyn.marginals.domain import Floats
from privsyn.release.conditional import part_inside
from privsyn.table.codec.codec import Codec
from privsyn.table.codec.gaps import Gap
from privsyn.table.enforcement.equal import CopyOf
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.condition import PRESENT, Reader, Span, check_values
from privsyn.table.schema.constraint import Columns, python_value

SIGN = re.compile(r"[<>]|[=!]=|\b(is|in)\b")
"""What a condition has, and a value for a column has not."""


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
    given : mapping of a column to a value or a range, or str, or pandas.DataFrame
        A range is ``(low, high)`` or ``{"low": low, "high": high}``, both ends included; either may be None.
        A list names some of a column's listed values. None, NaN or ``pandas.NA`` means that the cells are
        missing. Text is a condition such as ``"age >= 65 and sex == 'F'"``. Missing cells of a data frame
        are filled in.
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
    elif isinstance(given, Mapping | str):
        if isinstance(given, str):
            with about("given"):
                given = condition_as_given(codec.schema.coded, given)
        ranges = {name: said for name, said in given.items() if isinstance(said, tuple | list | Mapping)}
        spans = {_known(codec, name): _span(codec, name, said) for name, said in ranges.items()}
        cells = {name: [value] * rows for name, value in given.items() if name not in ranges}
        missing = frozenset(_known(codec, name) for name in cells if _is_missing(given[name]))
    else:
        raise InputError(
            f"given is a mapping of columns to values, a text, or a data frame; got {safe_repr(given)}"
        )
    found = {}
    for name, values in cells.items():
        numbers = _Numbers(codec, _known(codec, name), quoting=isinstance(given, Mapping))
        found[name] = np.array([numbers[value] for value in values], np.float64)
    return Given(found, spans, missing)


def condition_as_given(columns: Columns, text: str) -> dict[str, Any]:
    """Return a condition as a mapping of columns to one value, a list of values, or a range.

    >>> from privsyn import Categorical, Numerical
    >>> columns = {"job": Categorical(["a", "b", "c"]), "age": Numerical(0, 99, integer=True)}
    >>> condition_as_given(columns, "age >= 65 and job != 'c'")
    {'age': {'low': 65}, 'job': ['a', 'b']}
    """
    boxes = Reader(columns).boxes(text)
    if len(boxes) != 1:
        raise InputError(f"{safe_repr(text)}: give one range, or values of a list, for each column")
    given = {}
    for name, values in boxes[0].items():
        named = columns[name].all_values if values is PRESENT else values
        alone = isinstance(named, tuple) and len(named) == 1
        given[name] = named[0] if alone else list(named) if isinstance(named, tuple) else named
    return given


def parse_given(columns: Columns, texts: Sequence[str]) -> dict[str, Any]:
    """Parse texts of the command line: ``column=value``, ``column=low..high``, or a condition.

    Either end of a range may be left out. A listed value that contains dots is a value, not a range. No value
    means a missing cell, as in a CSV, unless the empty text is a listed value.

    >>> from privsyn import Categorical, Numerical
    >>> columns = {"zip": Categorical(["01", "02"]), "age": Numerical(0, 9)}
    >>> parse_given(columns, ["zip=01", "age=3.."])
    {'zip': '01', 'age': (3, None)}
    >>> parse_given(columns, ["zip=", "age <= 4"])
    {'zip': None, 'age': {'high': 4}}
    """
    given: dict[str, Any] = {}
    for text in texts:
        name, equals, said = text.partition("=")
        if equals and name in columns and not said.startswith("="):
            read = {name: _read_text(name, columns[name], said)}
        elif SIGN.search(text):
            with about("--given"):
                read = condition_as_given(columns, text)
        elif not equals:
            raise InputError(f"--given needs a column and a value, as in sex=Female; got {safe_repr(text)}")
        else:
            meant = did_you_mean(name, columns)
            raise InputError(
                f"--given {safe_repr(name)}: there is no such column among those to be synthesised{meant}"
            )
        for twice in given.keys() & read:
            raise InputError(
                f"--given {safe_repr(twice)}: is given twice, and a row has one value: give it once"
            )
        given |= read
    return given


def _read_text(name: str, column: Coded, said: str) -> Any:
    """Return a value of the column's type, a range of these, or None for missing."""
    low, dots, high = said.partition("..")
    is_listed = said in map(str, column.listed)
    with replace_errors(f"--given {name}: {safe_repr(said)} is not a number", ValueError):
        if dots and not is_listed:
            return tuple(column.value_of(end) if end else None for end in (low, high))
        return column.value_of(said) if said or is_listed else None


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


def _span(codec: Codec, name: str, said: Any) -> Span:
    """Return a range, or a list of values, as a span; refuse one without any value of the column."""
    try:
        return _read_span(codec, name, said)
    except InputError as error:
        complaint = str(error)
    except Exception:  # an object may raise any exception
        complaint = "its range cannot be read"
    raise InputError(f"given: column {name!r}: {complaint}")


def _read_span(codec: Codec, name: str, said: Any) -> Span:
    column = codec.schema.coded[name]
    if any(maker.column == name and not isinstance(maker, CopyOf | Gap) for maker in codec.computed):
        raise InputError("is computed, so it takes no range: give ranges of what it is computed from")
    if isinstance(said, tuple):
        said = {"low": said[0], "high": said[1]} if len(said) == 2 else {"": said}
    values = check_values(said)
    if isinstance(values, dict) and "high" in values:
        values["high"] = column.high_end(values["high"])
    span = Span.of(column, values)
    if span.missing or (len(span.lows) > 1 and not column.lists_values):
        raise InputError("give one value, one range, or a list if its values are listed")
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
