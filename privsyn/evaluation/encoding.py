"""Encode real and synthetic rows with the same bins and lists of values.

Bins and values of the schema are used unchanged, so that tables are compared on the bins of the release. What
the schema leaves open is taken from all tables together. Evaluation reads private rows anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.evaluation.coded import OTHER, Coded
from privsyn.marginals.domain import Codes, Domain, Floats, Records
from privsyn.table.drafting.draft import draft_schema
from privsyn.table.encoding.dtypes import OBJECT
from privsyn.table.encoding.grid import Grid
from privsyn.table.encoding.parsing import distinct
from privsyn.table.encoding.words import MISSING, RangeWords, bin_labels, date_range
from privsyn.table.encoding.words import SECONDS_IN_A_DAY as DAY
from privsyn.table.schema.columns import Ordinal
from privsyn.table.schema.header import called_identifiers
from privsyn.table.schema.schema import Schema, declared

MOST_VALUES = 500
"""Largest number of values or bins of a column; rarer values are counted together."""


Kind = Literal["category", "number", "date"]


@dataclass(frozen=True, eq=False)
class View:
    """The domain and the labels that all tables of a comparison share.

    Parameters
    ----------
    domain : Domain
    kinds : tuple of "category", "number" or "date"
    labels : tuple of tuple of str
        ``labels[j][c]`` is the label of code ``c`` of column ``j``.
    ranges : tuple of functions, or None for a category
        The function that formats a range of each column's `Coded.numbers`.
    left_out : tuple of str
        Columns that are not compared: their names look like identifiers, and there is no schema.
    """

    domain: Domain
    kinds: tuple[Kind, ...]
    labels: tuple[tuple[str, ...], ...]
    ranges: tuple[RangeWords | None, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[int, ...]:
        """Return the code of a missing cell in each column; -1 where no cell is missing."""
        return tuple(len(labels) - 1 if labels[-1] == MISSING else -1 for labels in self.labels)


def code_together(
    tables: Sequence[pd.DataFrame], schema: Schema | None = None, *, most_values: int | None = MOST_VALUES
) -> tuple[View, tuple[Coded, ...]]:
    """Encode all tables with the same codes.

    Parameters
    ----------
    tables : sequence of pandas.DataFrame
        Without a schema the first table determines the kind of each column.
    schema : Schema, optional
        Its columns are compared; without a schema, all columns. Identifiers and free text are not.
    most_values : int, optional
        The number of values of a category that keep a code; rarer ones share one. None: all do.

    Raises
    ------
    InputError
        If a column is absent from a table, cannot be read, or no column is left to compare.

    Examples
    --------
    >>> real, synthetic = pd.DataFrame({"a": ["x", "y", None]}), pd.DataFrame({"a": ["x", "z"]})
    >>> view, (one, two) = code_together([real, synthetic])
    >>> view.labels[0], one.records.codes.T.tolist(), two.records.codes.T.tolist()
    (('x', 'y', 'z', '(missing)'), [[0, 1, 3]], [[0, 2]])
    """
    schema = declared(schema)
    chosen = draft_schema(tables[0]) if schema is None else schema
    coded_columns = chosen.coded
    if not coded_columns:
        raise InputError("no column can be compared: all are identifiers or free text")
    encoded = []
    for name, column in coded_columns.items():
        cells = [_column(table, name) for table in tables]
        if column.lists_values:
            marks = () if schema is None else schema.markers(name)
            values = None if schema is None else column.listed or None
            encoded.append(_categories(cells, values, marks, most_values))
        else:
            given = schema is not None and column.is_public
            encoded.append(_bins(cells, cast(Ordinal, column), given=given))
    sizes, ordered = tuple(len(one.labels) for one in encoded), tuple(one.ordered for one in encoded)
    domain = Domain(tuple(coded_columns), sizes, ordered)
    coded = tuple(
        Coded(
            Records(domain, np.column_stack([one.codes[index] for one in encoded])),
            {
                name: one.numbers[index]
                for name, one in zip(coded_columns, encoded, strict=True)
                if one.numbers
            },
            table,
        )
        for index, table in enumerate(tables)
    )
    left_out = called_identifiers(chosen) if schema is None else ()
    kinds, labels, ranges = zip(*((one.kind, one.labels, one.ranges) for one in encoded), strict=True)
    return View(domain, kinds, labels, ranges, left_out), coded


@dataclass(frozen=True, eq=False)
class _Column:
    """One column of all tables: the codes for each table, and the numbers if it has any."""

    kind: Kind
    labels: tuple[str, ...]
    codes: Sequence[Codes]
    ordered: int = 0
    numbers: Sequence[Floats] = ()
    ranges: RangeWords | None = None


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    if name not in table.columns:
        raise InputError(f"column {name!r} is not in both tables: compare tables with the same columns")
    return table[name]


def _categories(
    cells: Sequence[pd.Series], values: Sequence[Any] | None, marks: Sequence[str], most: int | None
) -> _Column:
    """Encode values; those outside the list, or beyond the `most` common ones, share one code."""
    if values is None and len({isinstance(one, str) for table in cells for one in table.dropna()[:1]}) > 1:
        cells = [one.convert_dtypes().astype("string") for one in cells]  # a file has texts, a frame numbers
    factors = [distinct(one.astype(OBJECT)) for one in cells]
    counts: Counter[Any] = Counter()
    for places, values_in in factors:
        counts.update(dict(zip(values_in, np.bincount(places[places >= 0]).tolist(), strict=True)))
    for mark in marks:
        counts.pop(mark, None)
    listed = [value for value, _ in counts.most_common()] if values is None else list(values)
    if most is not None and len(listed) > most:
        listed = sorted(listed, key=lambda value: -counts[value])[:most]
    code = {value: place for place, value in enumerate(listed)}
    words = [*map(str, listed), *([OTHER] if counts.keys() - code.keys() else [])]
    other, missing = len(listed), len(words)
    found = []
    for places, values_in in factors:
        codes = [missing if value in marks else code.get(value, other) for value in values_in]
        found.append(np.array([*codes, missing], np.int32)[places])
    if not words or any((one == missing).any() for one in found):
        words.append(MISSING)
    return _Column("category", tuple(words), found)


def _bins(cells: Sequence[pd.Series], column: Ordinal, *, given: bool) -> _Column:
    """Encode numbers or dates in bins; missing cells have a code of their own."""
    column = replace(column, bins=min(column.bins, MOST_VALUES))  # type: ignore[type-var]
    floats = [np.where(np.isfinite(one), one, np.nan) for one in map(column.measured, cells)]
    grid = column.own_grid(cells[0].dtype) if given else _grid_around(column, floats, cells[0].name)
    dates = column.compared_as == "date"
    in_a_day = int(DAY / column.scale) if dates and given else 1
    points = [one * DAY if in_a_day > 1 else np.floor(one) if dates else one for one in floats]
    codes = [
        np.where(np.isnan(one), grid.bins, grid.encode(at)).astype(np.int32)
        for one, at in zip(floats, points, strict=True)
    ]
    words = partial(date_range, in_a_day=in_a_day) if dates else column.words_on(grid, cells[0].dtype)
    missing = (MISSING,) if any(np.isnan(one).any() for one in floats) else ()
    labels = (*bin_labels(grid, words), *missing)
    return _Column(column.compared_as, labels, codes, grid.bins, floats, _days_in_words if dates else words)


def _grid_around(column: Ordinal, floats: Sequence[Floats], name: object) -> Grid:
    """Return the grid with bounds around the rows of all tables."""
    present = np.concatenate([one[~np.isnan(one)] for one in floats])
    low, high = (float(present.min()), float(present.max())) if len(present) else (0.0, 0.0)
    whole = bool((present == np.rint(present)).all()) and max(abs(low), abs(high)) < 2**53
    with suppress(InputError):  # its text quotes the bounds, which are cells here
        return column.grid_around(low, high, whole=whole)
    raise InputError(f"column {name!r}: its range is too wide to be compared: give bounds in a schema")


def _days_in_words(low: float, high: float) -> str:
    """Format a range of times in days since 1970."""
    return date_range(low * DAY, high * DAY + DAY - 1 if high == int(high) else high * DAY, DAY)
