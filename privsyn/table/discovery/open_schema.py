"""What a schema leaves open: which columns, what their private cells hold, the schema once it is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError, replace_errors
from privsyn.marginals.types import Integers, Ints
from privsyn.table.discovery.bounds import BoundsGrid, cluster, extent
from privsyn.table.discovery.values import by_type, distinct_cells
from privsyn.table.encoding.choose_encoder import choose_encoder, exact_decimals, largest_decimal
from privsyn.table.encoding.codec import Codec
from privsyn.table.encoding.dtypes import OBJECT, TEXT, Dtype, family, number_type
from privsyn.table.encoding.encoders import OrderedEncoder
from privsyn.table.encoding.identifiers import with_identifiers
from privsyn.table.schema.columns import Categorical, Column, Identifier, Numerical, Ordinal
from privsyn.table.schema.derived import add_declared
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.time_columns import Datetime, Duration, Time
from privsyn.table.schema.validation import check_names

Released = Mapping[str, tuple[Ints, float]]
"""For each column the noisy counts of cells, and the standard deviation of their noise."""

OTHER = "other"
"""What a value that is not found becomes where the schema gives no name for it and the dtype holds text."""

FAR = 3
"""Cells of the first ruler: numbers that lie in so few, at most, lie close together and far from zero (years,
degrees, codes), and their bounds are looked at once more."""


@dataclass(frozen=True)
class OpenSchema:
    """A schema that leaves out lists of values or bounds, for a table of given dtypes.

    Made from public facts alone, and what does not fit is refused when it is made, before any budget is
    spent. Only `hold` and `count` read rows.

    Parameters
    ----------
    schema : Schema
    dtypes : mapping of each column of the table to its dtype
    """

    schema: Schema
    dtypes: Mapping[str, Dtype]

    @classmethod
    def of(cls, schema: Schema | None, table: pd.DataFrame) -> OpenSchema:
        """What is open about a table. Without a schema only its names and dtypes are public.

        Examples
        --------
        >>> table = pd.DataFrame({"age": [17, 44], "sex": ["M", "F"], "adult": [False, True]})
        >>> unknown = OpenSchema.of(None, table)
        >>> unknown.values, unknown.bounds, unknown.schema.columns["adult"].values
        (('sex',), ('age',), (False, True))
        """
        check_names(table.columns)
        dtypes = {cast(str, name): dtype for name, dtype in table.dtypes.items()}
        if schema is None:
            schema = by_names(table)
        columns = {
            name: _known_by_dtype(column, dtypes[name]) if name in dtypes else column
            for name, column in schema.columns.items()
        }
        unknown = cls(replace(schema, columns=columns), dtypes)
        Codec.for_table(unknown.fill({}, {}), table)  # complains of what does not fit
        return unknown

    @property
    def values(self) -> tuple[str, ...]:
        """The columns whose values are to be found."""
        return tuple(name for name in self._open if isinstance(self.schema.columns[name], Categorical))

    @property
    def bounds(self) -> tuple[str, ...]:
        """The columns whose bounds are to be found."""
        return tuple(name for name in self._open if not isinstance(self.schema.columns[name], Categorical))

    @property
    def objects(self) -> tuple[str, ...]:
        """Those of `values` whose dtype says nothing of their cells; none where text has that dtype too."""
        return tuple(name for name in self.values if self.dtypes.get(name) == OBJECT != TEXT)

    @property
    def _open(self) -> list[str]:
        columns = self.schema.columns.items()
        return [name for name, c in columns if not c.is_public and name not in self.schema.computed]

    def hold(self, table: pd.DataFrame) -> dict[tuple[str, str], tuple[Sequence[Any], Integers]]:
        """For each of `values` and each type among its cells: the values that occur, and each row's. Private.

        A row's value depends on its cell alone. A cell that is missing, or no text, number or boolean, has
        none: its place is -1.
        """
        held = {}
        for name in self.values:
            for kind, column in self._hold(table[name]).items():
                held[name, kind] = column
        return held

    def _hold(self, cells: pd.Series) -> dict[str, tuple[Sequence[Any], Integers]]:
        with replace_errors("the values could not be counted: please report this, unless memory ran out"):
            return by_type(*distinct_cells(cells, self._marks(str(cells.name))))

    def _marks(self, name: str) -> set[str]:
        """Texts that are no value. The empty text is a value, unless the schema says that it is missing."""
        return {*self.schema.missing, *cast(Categorical, self.schema.columns[name]).missing}

    @property
    def rulers(self) -> dict[str, BoundsGrid]:
        """The cells of the first look, for each of `bounds`."""
        return {name: _ruler(*self._measured(name)) for name in self.bounds}

    def closer(self, cells: Released) -> dict[str, BoundsGrid]:
        """The cells of the second look, by what the first released; for columns that need one."""
        closer, rulers = {}, self.rulers
        for name, (first, last) in _extents(rulers, cells).items():
            low, high = rulers[name].span(first, last)
            if last - first < FAR and low * high > 0:
                closer[name] = rulers[name].between(first, last, step=_step(*self._measured(name)))
        return closer

    def bounds_of(
        self, cells: Released, closer: Mapping[str, BoundsGrid], seen: Released
    ) -> dict[str, tuple[float, float]]:
        """Bounds by what both looks released, the second with its rulers; none where nothing was seen."""
        rulers = self.rulers
        bounds = {name: rulers[name].span(*found) for name, found in _extents(rulers, cells).items()}
        for name, (noisy, sigma) in seen.items():
            if found := cluster(noisy, sigma):
                bounds[name] = closer[name].span(*found)
        return bounds

    def count(self, table: pd.DataFrame, rulers: Mapping[str, BoundsGrid]) -> dict[str, Ints]:
        """For each ruler, how many rows of the column lie in each of its cells. Private.

        Each row is in one cell, or in none where it is missing.
        """
        return {name: self._count(name, ruler, table[name]) for name, ruler in rulers.items()}

    def fill(
        self, values: Mapping[str, tuple[Any, ...]], bounds: Mapping[str, tuple[float, float]]
    ) -> Schema:
        """The schema with what was found; a column of which nothing was found gets what its dtype allows.

        Parameters
        ----------
        values : released values of a column, those with most votes first
        bounds : released bounds of a column's numbers, of its days or its seconds
        """
        found = self._filled(values, bounds)
        with suppress(InputError):
            return replace(self.schema, columns=add_declared(found, self._open, self.schema.constraints))
        # No row within the found bounds keeps the constraints, which need not hold in the private table.
        # `of` has checked that the bounds of an empty table leave one.
        least = self._filled({}, {})
        found |= {name: _hull(found[name], least[name]) for name in self.bounds}
        return replace(self.schema, columns=add_declared(found, self._open, self.schema.constraints))

    def _filled(
        self, values: Mapping[str, tuple[Any, ...]], bounds: Mapping[str, tuple[float, float]]
    ) -> dict[str, Column]:
        columns = dict(self.schema.columns)
        for name in self._open:
            column, dtype = cast(Categorical | Ordinal, columns[name]), self.dtypes.get(name, OBJECT)
            if isinstance(column, Categorical):
                columns[name] = _listed(column, dtype, values.get(name, ()), self.schema.markers(name))
            else:
                columns[name] = column.with_bounds(bounds.get(name), whole=family(dtype) == "integer")
        return columns

    def _measured(self, name: str) -> tuple[Ordinal, Dtype]:
        return cast(Ordinal, self.schema.columns[name]), self.dtypes[name]

    def _count(self, name: str, ruler: BoundsGrid, cells: pd.Series) -> Ints:
        """How many of the numbers, days or seconds of a column lie in each cell. Private."""
        column, dtype = self._measured(name)
        with replace_errors("the numbers could not be counted: please report this, unless memory ran out"):
            wide = self.fill({}, {}).coded[name]
            if isinstance(column, Datetime):
                wide = column.widest
            return ruler.count(cast(OrderedEncoder, choose_encoder(wide, dtype)).read(cells))


def _extents(rulers: Mapping[str, BoundsGrid], cells: Released) -> dict[str, tuple[int, int]]:
    """First and last cell of each column in which something was seen."""
    found = {name: extent(noisy, rulers[name].blocks, sigma) for name, (noisy, sigma) in cells.items()}
    return {name: ends for name, ends in found.items() if ends is not None}


def by_names(table: pd.DataFrame, kinds: Schema | None = None) -> Schema:
    """The schema that names and dtypes speak for; of a file without dtypes, its names and `kinds`."""
    check_names(table.columns)
    dtypes = {cast(str, name): dtype for name, dtype in table.dtypes.items()}
    columns = {name: column_of(dtype) for name, dtype in dtypes.items()}
    return with_identifiers(kinds or Schema(columns), dtypes)


def column_of(dtype: Dtype) -> Column:
    """The column that a dtype speaks for."""
    match family(dtype):
        case "integer" | "real" | "decimal":
            return Numerical()
        case "datetime":
            return Datetime()
        case "time":
            return Time()
        case "duration":
            return Duration()
        case _:
            return Categorical()


def _known_by_dtype(column: Column, dtype: Dtype) -> Column:
    """The column with what its dtype makes public: the two values of a boolean, or that all is missing."""
    if family(dtype) == "nothing":
        return Identifier()  # of which nothing is to be found
    if not isinstance(column, Categorical) or column.is_public or column.other is not None:
        return column
    return replace(column, values=(False, True)) if family(dtype) == "boolean" else column


def _listed(column: Categorical, dtype: Dtype, found: tuple[Any, ...], marks: Sequence[str]) -> Categorical:
    """The found values, and one for all others."""
    kind = family(dtype)
    other = column.other
    if other is None and kind in ("text", "object", "category") and OTHER not in marks:
        other = OTHER
    values = dict.fromkeys(found)  # of values that Python calls equal, the one with most votes
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        with suppress(TypeError):
            values = dict.fromkeys(sorted(values))
    if other is not None:
        values.setdefault(other)
    if not values:
        values = dict.fromkeys(["" if kind in ("text", "object", "category") else 0])
    return replace(column, values=tuple(values), other=other)


def _step(column: Ordinal, dtype: Dtype) -> float | None:
    """Of what the numbers of a column are multiples; None for reals."""
    decimals = exact_decimals(column, dtype) if isinstance(column, Numerical) else column.fixed_decimals
    return None if decimals is None else 10.0**-decimals


def _ruler(column: Ordinal, dtype: Dtype) -> BoundsGrid:
    """Cells over all that the dtype can hold."""
    if isinstance(column, Datetime):
        return BoundsGrid.dates(column.unit or "D")
    doubles = np.dtype(np.float64)
    if not isinstance(column, Numerical):
        return BoundsGrid.numbers(decimals=column.fixed_decimals, dtype=doubles, limits=column.limits)
    decimals = exact_decimals(column, dtype)
    match family(dtype):
        case "integer":
            whole = np.iinfo(number_type(dtype))
            return BoundsGrid.numbers(
                decimals=decimals, dtype=doubles, limits=(float(whole.min), float(whole.max))
            )
        case "decimal":
            most = largest_decimal(dtype)
            return BoundsGrid.numbers(decimals=decimals, dtype=doubles, limits=(-most, most))
        case "real":
            return BoundsGrid.numbers(decimals=decimals, dtype=number_type(dtype))
        case _:
            return BoundsGrid.numbers(decimals=decimals, dtype=doubles)


def _hull(one: Any, other: Any) -> Column:
    """Return the column with bounds that contain those of both."""
    return replace(one, low=min(one.low, other.low), high=max(one.high, other.high))
