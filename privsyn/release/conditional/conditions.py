"""Read the values that a conditional sample must have, for all rows or row by row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about, did_you_mean, replace_errors, safe_repr
from privsyn.marginals.domain import Floats
from privsyn.release.conditional.partial_rows import part_inside
from privsyn.table.codec.codec import Codec
from privsyn.table.codec.gaps import Gap
from privsyn.table.encoding.parsing import alone, is_missing, missing_among
from privsyn.table.enforcement.equal import CopyOf
from privsyn.table.schema.box import PRESENT, Span, check_values
from privsyn.table.schema.condition import Reader
from privsyn.table.schema.constraint import Columns, python_value

SIGN = re.compile(r"[<>]|[=!]=|\b(is|in)\b")
"""What a condition has, and a value for a column has not."""


@dataclass(frozen=True, eq=False)
class Conditions:
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

    @property
    def columns(self) -> frozenset[str]:
        """The columns of which something is given."""
        return frozenset({*self.numbers, *self.spans})


def read_given(codec: Codec, given: object, n: int | None, rows: int) -> Conditions:
    """Return the numbers and ranges that a sample must have.

    A mapping speaks of all rows. It has for a column

    ==============================================  =========================================================
    a value: ``"Female"``, ``3``, a date            all rows have it
    ``None``, ``NaN``, ``pandas.NA``                the cells are missing
    ``(low, high)``, ``{"low": low, "high": high}``  all rows are in this range, both ends included; either
                                                    may be None
    a list, set, array, Series or Index             each row has one of these values, as ``isin`` means it
    ==============================================  =========================================================

    A table has a value for each row: a data frame of pandas or polars, or a table of pyarrow. Its missing
    cells are filled in. Text is a condition such as ``"age >= 65 and sex == 'F'"``. An array or Series with
    as many entries as rows are made is refused: it may be meant row by row.

    Parameters
    ----------
    codec : Codec
    given : mapping of a column to a value, a range or a list of values, or str, or data frame
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
    >>> read.numbers["sex"].tolist(), read.spans["age"].lows.tolist(), read.spans["age"].highs.tolist()
    ([1.0, 1.0], [3.0], [inf])
    """
    if isinstance(given, str):
        with about("given"):
            given = condition_as_given(codec.schema.coded, given)
    if isinstance(given, Mapping):
        return _conditions_of_all_rows(codec, given, rows)
    frame = _frame_of(given)
    if n is not None and n != len(frame):
        raise InputError("given has as many rows as are made: leave out n")
    if not frame.columns.is_unique:
        raise InputError("given has two columns of one name: drop one")
    columns = {}
    for name in frame.columns:
        numbers = _Numbers(codec, _known(codec, name), quoting=False)
        columns[name] = np.array([numbers[value] for value in frame[name].tolist()], np.float64)
    return Conditions(columns)


def _frame_of(rows: object) -> pd.DataFrame:
    """Return a table of partial rows as a data frame of pandas."""
    if isinstance(rows, pd.DataFrame):
        return rows
    if isinstance(rows, pd.Series):
        raise InputError("given: a Series is no table: give a mapping, series.to_dict(), or a data frame")
    for convert in ("to_pandas", "to_frame"):
        if hasattr(rows, "columns") and callable(getattr(rows, convert, None)):
            with replace_errors("given: this table cannot be read: give a pandas.DataFrame"):
                return pd.DataFrame(getattr(rows, convert)())
    raise InputError(
        f"given is a mapping of columns to values, a text, or a data frame; got {safe_repr(rows)}"
    )


def _conditions_of_all_rows(codec: Codec, conditions: Mapping[Any, Any], rows: int) -> Conditions:
    """Return what a mapping says of all rows."""
    numbers: dict[str, Floats] = {}
    spans: dict[str, Span] = {}
    missing = set[str]()
    for key, value in conditions.items():
        name = _known(codec, key)
        if isinstance(value, tuple | Mapping):
            spans[name] = _span(codec, name, value)
        elif (listed := _listed(name, value, rows)) is not None:
            spans[name] = _span(codec, name, listed)
        else:
            numbers[name] = np.full(rows, _Numbers(codec, name, quoting=True)[value])
            missing |= {name} if alone(is_missing, value, False) else set()
    return Conditions(numbers, spans, frozenset(missing))


def _listed(name: str, value: Any, rows: int) -> list[Any] | None:
    """Return the values of a list, set, array, Series or Index; None for a single value.

    Raises
    ------
    InputError
        If it is anything else, or may be meant row by row.
    """
    if isinstance(value, list | set | frozenset):
        return list(value)
    if _is_single(value):
        return None
    for convert in ("tolist", "to_list", "to_pylist"):
        if callable(getattr(value, convert, None)) and hasattr(value, "__len__"):
            values = getattr(value, convert)()
            if isinstance(values, list) and len(values) == rows and rows > 1:
                raise InputError(
                    f"given: column {name!r} has as many values as rows are made: give a data frame for one"
                    " value per row, or list(...) if each row may have any of them"
                )
            return list(values)
    raise InputError(
        f"given: column {name!r}: give a value, a range (low, high) or a list of values;"
        f" got {safe_repr(value)}"
    )


def _is_single(value: Any) -> bool:
    """Return whether a value is one, not several; any object that cannot be iterated is one."""
    return (
        pd.api.types.is_scalar(value) or not hasattr(value, "__iter__") or getattr(value, "shape", None) == ()
    )


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
    conditions = {}
    for name, values in boxes[0].items():
        named = columns[name].all_values if values is PRESENT else values
        alone = isinstance(named, tuple) and len(named) == 1
        conditions[name] = named[0] if alone else list(named) if isinstance(named, tuple) else named
    return conditions


def parse_given(
    columns: Columns, texts: Sequence[str], elsewhere: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Parse texts of the command line: ``column=value``, ``column=low..high``, or a condition.

    Either end of a range may be left out. A listed value that contains dots is a value, not a range. No value
    means a missing cell, as in a CSV, unless the empty text is a listed value. `elsewhere` says of columns
    that cannot be given where they are.

    >>> from privsyn import Categorical, Numerical
    >>> columns = {"zip": Categorical(["01", "02"]), "age": Numerical(0, 9)}
    >>> parse_given(columns, ["zip=01", "age=3.."])
    {'zip': '01', 'age': (3, None)}
    >>> parse_given(columns, ["zip=", "age <= 4"])
    {'zip': None, 'age': {'high': 4}}
    """
    conditions: dict[str, Any] = {}
    for text in texts:
        read: dict[str, Any]
        name, equals, value = text.partition("=")
        if equals and name in columns and not value.startswith("="):
            column, (low, dots, high) = columns[name], value.partition("..")
            is_listed = value in map(str, column.listed)
            with replace_errors(f"--given {name}: {safe_repr(value)} is not a number", ValueError):
                if dots and not is_listed:
                    read = {name: tuple(column.value_of(end) if end else None for end in (low, high))}
                else:
                    read = {name: column.value_of(value) if value or is_listed else None}
        elif SIGN.search(text):
            with about("--given"):
                read = condition_as_given(columns, text)
        elif not equals:
            raise InputError(f"--given needs a column and a value, as in sex=Female; got {safe_repr(text)}")
        elif name in elsewhere:
            raise InputError(f"--given {safe_repr(name)}: {elsewhere[name]}")
        else:
            meant = did_you_mean(name, columns)
            raise InputError(
                f"--given {safe_repr(name)}: there is no such column among those to be synthesised{meant}"
            )
        for twice in conditions.keys() & read:
            raise InputError(
                f"--given {safe_repr(twice)}: is given twice, and a row has one value: give it once"
            )
        conditions |= read
    return conditions


def _known(codec: Codec, name: Any) -> str:
    if name not in codec.schema.coded:
        meant = did_you_mean(name, codec.schema.coded)
        raise InputError(f"given: there is no column {safe_repr(name)} among those to be synthesised{meant}")
    return str(name)


def _span(codec: Codec, name: str, selection: Any) -> Span:
    """Return a range, or a list of values, as a span; refuse one without any value of the column."""
    try:
        column = codec.schema.coded[name]
        if any(maker.column == name and not isinstance(maker, CopyOf | Gap) for maker in codec.computed):
            raise InputError(
                "is computed, so it takes no range or list: give those of what it is computed from"
            )
        if isinstance(selection, list):
            return _one_of(codec, name, selection)
        if isinstance(selection, tuple):
            if len(selection) != 2:
                raise InputError("a range has low, high or both, as (30, 40) or (30, None): or give a list")
            if any(isinstance(value, str) for value in column.listed):
                raise InputError("its values are text, and a tuple is a range (low, high): give a list")
            selection = {"low": selection[0], "high": selection[1]}
        values = check_values(selection)
        if isinstance(values, dict) and "high" in values:
            values["high"] = column.high_end(values["high"])
        span = Span.of(column, values)
        if not part_inside(codec.own_cells(name), span).any():
            raise InputError("none of its values lies in the range")
        return span
    except InputError as error:
        complaint = str(error)
    except Exception:  # an object may raise any exception
        complaint = "its range cannot be read"
    raise InputError(f"given: column {name!r}: {complaint}")


def _one_of(codec: Codec, name: str, values: list[Any]) -> Span:
    """Return the numbers of listed values: each row has any of these numbers."""
    if not values:
        raise InputError("the list is empty: give at least one value")
    if any(missing_among(values)):
        raise InputError("a list has no missing value: give None alone, or values alone")
    cells, numbers = codec.own_cells(name), _Numbers(codec, name, quoting=True)
    if name in codec.parts or (cells.grid is not None and cells.grid.decimals is None):
        raise InputError("give one value, or a range (low, high): its values are too many for a list")
    distinct = np.unique([numbers.number(value) for value in values])
    return Span(distinct, distinct, missing=False)


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
        try:
            if not _is_single(value):
                raise InputError("needs one value per row")
            return np.nan if pd.isna(value) else self.number(value)
        except InputError as error:
            complaint = str(error)
        except Exception:  # an object may raise any exception
            complaint = f"{safe_repr(value)} cannot be read"
        complaint = complaint if self.quoting else "it has a value that cannot be there"
        raise InputError(f"given: column {self.name!r}: {complaint}")

    def number(self, value: Any) -> float:
        """Return the number of a value that is not missing."""
        return super().__getitem__(value)

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
