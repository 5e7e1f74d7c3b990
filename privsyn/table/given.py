"""What a sample is to have: values of some columns, for all rows, or row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from privsyn.answers.arrays import Floats
from privsyn.errors import InputError, shown
from privsyn.table.codec import Codec
from privsyn.table.spans import bounds_of, number_of


def read_given(codec: Codec, given: object, n: int | None, rows: int) -> dict[str, Floats]:
    """The numbers of the given cells by column, NaN where none is given.

    Parameters
    ----------
    codec : Codec
    given : mapping of a column to a value, or pandas.DataFrame
        A cell that is missing is to be filled in.
    n : int, optional
        What the caller said of the number of rows; of a data frame they are as many as it has.
    rows : int
        How many a mapping is for.

    Examples
    --------
    >>> from privsyn import Categorical, Numerical, Schema
    >>> schema = Schema({"sex": Categorical(["F", "M"]), "age": Numerical(0, 9)})
    >>> codec = Codec(schema, ("sex", "age"), ("object", "int64"))
    >>> {name: numbers.tolist() for name, numbers in read_given(codec, {"sex": "M"}, None, 2).items()}
    {'sex': [1.0, 1.0]}
    """
    if isinstance(given, pd.DataFrame):
        if n is not None and n != len(given):
            raise InputError("given has as many rows as are made: leave out n")
        cells = {name: given[name].tolist() for name in given.columns} if given.columns.is_unique else None
        if cells is None:
            raise InputError("given has two columns of one name: drop one")
    elif isinstance(given, Mapping):
        cells = {name: [value] * rows for name, value in given.items()}
    else:
        raise InputError(f"given is a mapping of columns to values, or a data frame; got {shown(given)}")
    found = {}
    for name, values in cells.items():
        if name not in codec.schema.coded:
            raise InputError(f"given: there is no column {shown(name)} among those to be synthesised")
        numbers = _Numbers(codec, name, quoting=isinstance(given, Mapping))
        found[name] = np.array([numbers[value] for value in values], np.float64)
    return found


class _Numbers(dict[Any, float]):
    """The number of each value of a column, worked out when it is first asked for.

    A complaint quotes the value of a mapping, which somebody wrote; rows of a data frame may be of people.
    """

    def __init__(self, codec: Codec, name: str, *, quoting: bool) -> None:
        super().__init__()
        self.column, self.name, self.codec, self.quoting = codec.schema.coded[name], name, codec, quoting

    def __getitem__(self, value: Any) -> float:
        if not pd.api.types.is_scalar(value):
            raise InputError(f"given: column {self.name!r} wants one value a row")
        try:
            return np.nan if pd.isna(value) else super().__getitem__(value)
        except InputError as error:
            complaint = str(error)
        except Exception:  # an object may raise what it likes
            complaint = f"{shown(value)} cannot be read"
        complaint = complaint if self.quoting else "it has a value that cannot be there"
        raise InputError(f"given: column {self.name!r}: {complaint}")

    def __missing__(self, value: Any) -> float:
        number = number_of(self.column, value.item() if isinstance(value, np.generic) else value)
        low, high = bounds_of(self.column)
        if not low <= number <= high:
            raise InputError(f"{shown(value)} lies outside its bounds")
        cells = self.codec.cells().get(self.name)
        if cells is not None:
            snapped = float(cells.snap(np.array([number]))[0])
            if np.isnan(snapped):
                raise InputError(f"{shown(value)} is not one of its numbers")
            is_real = cells.grid is not None and cells.grid.decimals is None
            number = number if is_real else snapped  # what is given stays as it is said
        self[value] = number
        return number


def patterns(given: Mapping[str, Floats]) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """The sets of columns that are given together, each with its rows."""
    names = tuple(given)
    known = np.stack([~np.isnan(given[name]) for name in names], axis=1)
    which, rows = np.unique(known, axis=0, return_inverse=True)
    for place, pattern in enumerate(which):
        some = tuple(name for name, is_given in zip(names, pattern, strict=True) if is_given)
        yield some, np.flatnonzero(rows.ravel() == place)
