"""Encode real and synthetic rows with the same bins and lists of values.

Bins and values of the schema are used unchanged, so that tables are compared on the bins of the release. What
the schema leaves open is taken from all tables together. Evaluation reads private rows anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.marginals.domain import Codes, Domain, Floats, Integers, Ints, Records, keep
from privsyn.table.encoding.dtypes import OBJECT
from privsyn.table.encoding.grid import Grid
from privsyn.table.encoding.parsing import distinct
from privsyn.table.encoding.words import MISSING, RangeWords, bin_labels, date_range, number_range
from privsyn.table.encoding.words import SECONDS_IN_A_DAY as DAY
from privsyn.table.inferred.columns import infer_schema
from privsyn.table.schema.columns import Ordinal
from privsyn.table.schema.schema import Schema, called_identifiers, declared

OTHER = "(other values)"

MOST_LEVELS = 10
"""Largest number of levels, apart from missing cells."""


@dataclass(frozen=True, eq=False)
class Coded:
    """A table in codes, with its exact numbers.

    Parameters
    ----------
    records : Records
    numbers : mapping of str to float array
        The cells of each column of numbers or dates (days since 1970), NaN where a cell is missing.
    source : DataFrame
        The table that was encoded.
    source_rows : integer array of shape (rows,) or (rows, columns), optional
        The row of `source` from which each row, or each cell, comes. Default: all rows in order.
    """

    records: Records
    numbers: Mapping[str, Floats]
    source: pd.DataFrame
    source_rows: Integers | None = None

    def __len__(self) -> int:
        return len(self.records)

    def frame(self) -> pd.DataFrame:
        """Return a new table of the compared columns, with their cells as they were given."""
        columns = zip(self.records.domain, self._source_row_of_cells.T, strict=True)
        return pd.DataFrame({name: self.source[name].array.take(rows) for name, rows in columns}, copy=False)

    @property
    def _source_row_of_cells(self) -> Integers:
        """The row of `source` from which each cell comes, an array of shape (rows, columns)."""
        rows = np.arange(len(self)) if self.source_rows is None else self.source_rows
        return np.broadcast_to(rows.reshape(len(self), -1), self.records.codes.shape)

    def take(self, rows: Integers) -> Coded:
        """Return the rows at these positions; positions may repeat."""
        records = Records(self.records.domain, self.records.codes[rows])
        numbers = {name: cells[rows] for name, cells in self.numbers.items()}
        source_rows = rows if self.source_rows is None else self.source_rows[rows]
        return Coded(records, numbers, self.source, source_rows)

    def resample(self, n: int, rng: np.random.Generator) -> Coded:
        """Return `n` rows sampled with replacement: no table of `n` rows is expected to be closer."""
        return self.take(rng.integers(len(self), size=n))

    def unlink(self, n: int, rng: np.random.Generator) -> Coded:
        """Return `n` rows whose columns are sampled independently: correct shares, no dependence."""
        rows = rng.integers(len(self), size=(n, len(self.records.domain)))
        names = self.records.domain.names
        codes = np.take_along_axis(self.records.codes, rows, axis=0)
        return Coded(
            Records(self.records.domain, codes),
            {name: cells[rows[:, names.index(name)]] for name, cells in self.numbers.items()},
            self.source,
            np.take_along_axis(self._source_row_of_cells, rows, axis=0).astype(np.int32),
        )


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of one column.

    Parameters
    ----------
    labels : tuple of str
    of_code : integer array
        The level of each code.
    """

    labels: tuple[str, ...]
    of_code: Ints

    def __post_init__(self) -> None:
        keep(self, "of_code")
        if self.of_code.max(initial=0) >= len(self.labels):
            raise ValueError(f"level {self.of_code.max()} has no label: there are {len(self.labels)} labels")


def coarsen(labels: Sequence[tuple[str, ...]], real: Records) -> tuple[Levels, ...]:
    """Return levels of each column: adjacent bins are merged to similar shares, rare values to one level."""
    result = []
    for axis, (words, size) in enumerate(zip(labels, real.domain.sizes, strict=True)):
        counts = np.bincount(real.codes[:, axis], minlength=size)
        result.append((_merged if real.domain.ordered[axis] else _most_frequent)(words, counts))
    return tuple(result)


def recode(records: Records, levels: tuple[Levels, ...]) -> Records:
    """Return the same rows in levels."""
    domain = Domain(records.domain.names, tuple(len(level.labels) for level in levels))
    columns = [level.of_code[records.codes[:, axis]] for axis, level in enumerate(levels)]
    return Records(domain, np.column_stack(columns))


def _merged(labels: tuple[str, ...], counts: Ints) -> Levels:
    """Merge adjacent bins until a level has its share of the rows."""
    missing = labels[-1] == MISSING
    bins = len(labels) - missing
    weights = counts[:bins].astype(np.float64)
    middle = (np.cumsum(weights) - weights / 2) / max(weights.sum(), 1)
    rough = np.arange(bins) if bins <= MOST_LEVELS else np.minimum(middle * MOST_LEVELS, MOST_LEVELS - 1)
    used, level = np.unique(rough.astype(np.int64), return_inverse=True)
    words = []
    for index in range(len(used)):
        first, *_, last = [part for label in np.array(labels[:bins])[level == index] for part in _ends(label)]
        words.append(first if first == last else f"{first} to {last}")
    if missing:
        words.append(MISSING)
        level = np.append(level, len(used))
    return Levels(tuple(words), level)


def _ends(label: str) -> tuple[str, str]:
    first, _, last = label.partition(" to ")
    return first, last or first


def _most_frequent(labels: tuple[str, ...], counts: Ints) -> Levels:
    """Return the most frequent values, and one level for the others."""
    missing = labels[-1] == MISSING
    values = len(labels) - missing
    order = np.argsort(-counts[:values], kind="stable")
    frequent = order if values <= MOST_LEVELS else order[: MOST_LEVELS - 1]
    words = [labels[code] for code in frequent]
    level = np.full(values, len(frequent))
    level[frequent] = np.arange(len(frequent))
    if len(frequent) < values:
        words.append(OTHER)
    if missing:
        level = np.append(level, len(words))
        words.append(MISSING)
    return Levels(tuple(words), level)


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


PARTS = 8
"""Classes of a number, with similar shares of the real rows."""


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes in which the cells of a column are compared.

    Parameters
    ----------
    cuts : float array
        Where classes of numbers begin, after the first one; empty for a category.
    words : tuple of str
        The label of each class. The last one is that of missing cells, whether or not there are any.
    """

    cuts: Floats
    words: tuple[str, ...]

    @classmethod
    def of(cls, view: View, real: Coded, name: str) -> Classes:
        """Return octiles of the real numbers, or the values of a category."""
        (axis,) = view.domain.axes((name,))
        if name not in real.numbers:
            labels = view.labels[axis]
            return cls(np.empty(0), labels if labels[-1] == MISSING else (*labels, MISSING))
        numbers = real.numbers[name]
        numbers = np.sort(numbers[~np.isnan(numbers)])
        if not len(numbers):
            return cls(np.empty(0), ("numbers", MISSING))
        cuts = np.unique(np.quantile(numbers, np.arange(1, PARTS) / PARTS))
        ends = np.searchsorted(numbers, cuts, side="left")
        inside = np.split(numbers, ends)
        words = view.ranges[axis] or number_range
        return cls(cuts, (*(words(part[0], part[-1]) if len(part) else "" for part in inside), MISSING))

    def code(self, codes: Integers, numbers: Floats | None) -> Ints:
        """Return the class of each cell."""
        missing = len(self.words) - 1
        if numbers is None:
            return codes.astype(np.int64)
        classes = np.searchsorted(self.cuts, np.nan_to_num(numbers), side="right")
        return np.where(np.isnan(numbers), missing, classes)


def code_by_name(
    tables: Mapping[str, pd.DataFrame], schema: Schema | None = None, *, most_values: int | None = MOST_VALUES
) -> tuple[View, dict[str, Coded]]:
    """Encode all tables with the same codes; see `code_together`."""
    view, coded = code_together([*tables.values()], schema, most_values=most_values)
    return view, dict(zip(tables, coded, strict=True))


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
    chosen = infer_schema(tables[0]) if schema is None else schema
    coded_columns = chosen.coded
    if not coded_columns:
        raise InputError("no column can be compared: all are identifiers or free text")
    encoded = {}
    for name, column in coded_columns.items():
        if not all(name in table.columns for table in tables):
            raise InputError(f"column {name!r} is not in both tables: compare tables with the same columns")
        cells = [table[name] for table in tables]
        if column.lists_values:
            marks = () if schema is None else schema.markers(name)
            values = None if schema is None else column.listed or None
            encoded[name] = _categories(cells, values, marks, most_values)
        else:
            public = schema is not None and column.is_public
            encoded[name] = _bins(cells, chosen.ordinal(name), public=public)
    columns = encoded.values()
    sizes = tuple(len(encoded_column.labels) for encoded_column in columns)
    ordered = tuple(encoded_column.ordered for encoded_column in columns)
    domain = Domain(tuple(encoded), sizes, ordered)
    coded = tuple(
        Coded(
            Records(domain, np.column_stack([encoded_column.codes[index] for encoded_column in columns])),
            {
                name: encoded_column.numbers[index]
                for name, encoded_column in encoded.items()
                if encoded_column.numbers
            },
            table,
        )
        for index, table in enumerate(tables)
    )
    left_out = called_identifiers(chosen) if schema is None else ()
    kinds = tuple(encoded_column.kind for encoded_column in columns)
    labels = tuple(encoded_column.labels for encoded_column in columns)
    ranges = tuple(encoded_column.ranges for encoded_column in columns)
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


def _categories(
    cells: Sequence[pd.Series], values: Sequence[Any] | None, marks: Sequence[str], limit: int | None
) -> _Column:
    """Encode values; those outside the list, or beyond the `limit` common ones, share one code."""
    if values is None:
        are_texts = {isinstance(cell, str) for table_cells in cells for cell in table_cells.dropna()[:1]}
        if len(are_texts) > 1:  # a file has texts, a frame numbers
            cells = [table_cells.convert_dtypes().astype("string") for table_cells in cells]
    factors = [distinct(table_cells.astype(OBJECT)) for table_cells in cells]
    counts: Counter[Any] = Counter()
    for indices, values_in in factors:
        counts.update(dict(zip(values_in, np.bincount(indices[indices >= 0]).tolist(), strict=True)))
    for mark in marks:
        counts.pop(mark, None)
    listed = [value for value, _ in counts.most_common()] if values is None else list(values)
    if limit is not None and len(listed) > limit:
        listed = sorted(listed, key=lambda value: -counts[value])[:limit]
    code = {value: index for index, value in enumerate(listed)}
    words = [*map(str, listed), *([OTHER] if counts.keys() - code.keys() else [])]
    pooled_code, missing = len(listed), len(words)
    codes_of_tables = []
    for indices, values_in in factors:
        codes = [missing if value in marks else code.get(value, pooled_code) for value in values_in]
        codes_of_tables.append(np.array([*codes, missing], np.int32)[indices])
    if not words or any((table_cells == missing).any() for table_cells in codes_of_tables):
        words.append(MISSING)
    return _Column("category", tuple(words), codes_of_tables)


def _bins(cells: Sequence[pd.Series], column: Ordinal, *, public: bool) -> _Column:
    """Encode numbers or dates in bins; missing cells have a code of their own."""
    column = replace(column, bins=min(column.bins, MOST_VALUES))
    floats = [np.where(np.isfinite(numbers), numbers, np.nan) for numbers in map(column.measured, cells)]
    grid: Grid | None = None
    if public:
        grid = column.own_grid(cells[0].dtype)
    else:  # with bounds around the rows of all tables
        present = np.concatenate([numbers[~np.isnan(numbers)] for numbers in floats])
        low, high = (float(present.min()), float(present.max())) if len(present) else (0.0, 0.0)
        integers = bool((present == np.rint(present)).all()) and max(abs(low), abs(high)) < 2**53
        with suppress(InputError):  # its text quotes the bounds, which are cells here
            grid = column.grid_around(low, high, integers=integers)
    if grid is None:
        name = cells[0].name
        raise InputError(f"column {name!r}: its range is too wide to be compared: give bounds in a schema")
    dates = column.compared_as == "date"
    in_a_day = int(DAY / column.scale) if dates and public else 1
    points = [
        numbers * DAY if in_a_day > 1 else np.floor(numbers) if dates else numbers for numbers in floats
    ]
    codes = [
        np.where(np.isnan(numbers), grid.bins, grid.encode(at)).astype(np.int32)
        for numbers, at in zip(floats, points, strict=True)
    ]
    words = partial(date_range, in_a_day=in_a_day) if dates else column.words_on(grid, cells[0].dtype)
    missing = (MISSING,) if any(np.isnan(numbers).any() for numbers in floats) else ()
    labels = (*bin_labels(grid, words), *missing)
    return _Column(column.compared_as, labels, codes, grid.bins, floats, _days_in_words if dates else words)


def _days_in_words(low: float, high: float) -> str:
    """Format a range of times in days since 1970."""
    return date_range(low * DAY, high * DAY + DAY - 1 if high == int(high) else high * DAY, DAY)
