"""List the distinct values of a column's private cells that a schema can list, and the value of each row.

The value of a row is a function of its own cell, independent of all other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from privsyn.marginals.domain import Integers
from privsyn.table.encoding.dtypes import OBJECT
from privsyn.table.encoding.encoders import STRAY

LARGEST = 2**63
"""Numbers of this size or larger are not found."""


def distinct_cells(cells: pd.Series, marks: set[str]) -> tuple[Sequence[Any], Integers]:
    """Return the distinct values, and the place of each row's value. The order of rows changes no value."""
    values: list[Any]
    if cells.dtype == OBJECT:
        # 1, 1.0 and True are equal. Keep their types, or the first row would decide which one is listed.
        keys = [None if plain is None else (type(plain), plain) for plain in map(_plain, cells)]
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        codes = np.fromiter((places[key] for key in keys), np.int64, len(keys))
        values = [None if key is None else key[1] for key in places]
    elif isinstance(cells.dtype, pd.CategoricalDtype):
        codes, values = cells.cat.codes.to_numpy().astype(np.int64), cells.cat.categories.tolist()
    else:
        found, uniques = pd.factorize(cells)
        codes, values = found.astype(np.int64), uniques.tolist()
    values = [_plain(float(value) if type(value) is Decimal else value) for value in values]
    values = [value + 0.0 if type(value) is float else value for value in values]  # -0.0 is 0.0
    sound = np.array([_is_sound(value, marks) for value in [*values, None]], np.bool_)
    return values, np.where(sound[codes], codes, STRAY)


def by_type(values: Sequence[Any], codes: Integers) -> dict[str, tuple[Sequence[Any], Integers]]:
    """Return the distinct values of each type, and the place of each row's value among them.

    >>> held = by_type([1, True], np.array([0, 1, 1, -1]))
    >>> {kind: (values, codes.tolist()) for kind, (values, codes) in held.items()}
    {'bool': ([True], [-1, 0, 0, -1]), 'int': ([1], [0, -1, -1, -1])}
    """
    types = [type(value) for value in values]
    held: dict[str, tuple[Sequence[Any], Integers]] = {}
    for kind in sorted({bool, int, float, str}.intersection(types), key=lambda kind: kind.__name__):
        distinct = dict.fromkeys(value for value, its in zip(values, types, strict=True) if its is kind)
        if len(distinct) == len(values):
            return {kind.__name__: (values, codes)}
        places = {value: place for place, value in enumerate(distinct)}
        of = [places[value] if its is kind else STRAY for value, its in zip(values, types, strict=True)]
        held[kind.__name__] = list(distinct), np.array([*of, STRAY])[codes]
    return held


def _plain(cell: Any) -> bool | int | float | str | None:
    """Return a Python string, number or boolean, also for NumPy scalars; None for other objects."""
    try:
        plain = cell.item() if issubclass(type(cell), np.generic) else cell
    except Exception:  # a subclass may raise any exception
        return None
    its = type(plain)  # a type may raise if hashed or compared, so test identity
    return plain if its is str or its is int or its is float or its is bool else None


def _is_sound(value: Any, marks: set[str]) -> bool:
    """Return whether a schema and a file can hold a value: it is no mark of missing, and not too large."""
    if type(value) is str:  # half of a surrogate pair cannot be written in any file
        return value not in marks and value.encode("utf-8", "ignore") == value.encode("utf-8", "replace")
    return type(value) in (bool, int, float) and abs(value) < LARGEST and str(value) not in marks
