"""The encoders of a table's columns, and of the attributes that are counted of them.

An attribute belongs to a column. Most columns are one attribute. A column of times may be several, its
parts. A column that increases is a gap, whose code depends on the columns before it, too. No other computed
column is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about
from privsyn.inference.ordered.binning import Axis
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Floats, Integers, Mask
from privsyn.table.codec.gaps import Gap, choose_gaps
from privsyn.table.codec.parts import both_or_neither_missing, encoders_of_parts, parts
from privsyn.table.encoding.dtypes import family, holds_missing, parse_dtype
from privsyn.table.encoding.encoders import STRAY, CategoricalEncoder, Encoder, OrderedEncoder
from privsyn.table.encoding.grid import FINE
from privsyn.table.encoding.heaps import Heaps
from privsyn.table.encoding.time_encoders import DatetimeEncoder
from privsyn.table.enforcement.draws import Cells
from privsyn.table.schema.columns import Datetime, Ordinal
from privsyn.table.schema.generated import Generated, Maker
from privsyn.table.schema.schema import Schema


@dataclass(frozen=True, eq=False)
class Attributes:
    """The encoders of a table's columns, and of the attributes that are counted of them, in order.

    Parameters
    ----------
    columns : mapping of a column to its encoder
    makers : mapping of a column to the maker of its identifiers
    nullable : mapping of a column to whether its cells may be missing
    bins : mapping of an ordered column to its number of bins
    computed : set of columns that are not counted
    parts : mapping of a column that has several attributes to their names
    gaps : mapping of a column to its gap
    """

    columns: Mapping[str, Encoder]
    makers: Mapping[str, Maker]
    nullable: Mapping[str, bool]
    bins: Mapping[str, int]
    computed: frozenset[str]
    parts: Mapping[str, tuple[str, ...]]
    gaps: Mapping[str, Gap]

    @classmethod
    def of(
        cls,
        schema: Schema,
        dtypes: Mapping[str, str],
        heaps: Mapping[str, Heaps],
        split: Sequence[str],
        *,
        fine: bool,
        with_gaps: bool,
    ) -> Attributes:
        """Return the attributes of a schema.

        Parameters
        ----------
        schema : Schema
        dtypes : mapping of a column to its dtype as text, in the order of the table
        heaps : mapping of a column to the heaps of its numbers
        split, fine, with_gaps : as for `Codec`
        """
        columns: dict[str, Encoder] = {}
        makers: dict[str, Maker] = {}
        nullable, coded = {}, schema.coded
        for name, text in dtypes.items():
            match _column(schema, name, text, heaps.get(name, ()), fine=fine):
                case Encoder() as encoder:
                    columns[name] = encoder
                    nullable[name] = not encoder.size or (  # of no values, all cells are missing
                        coded[name].nullable and holds_missing(parse_dtype(text))
                    )
                case Maker() as maker:
                    makers[name] = maker
        if not columns:
            raise InputError("no column is left to be counted: all are identifiers or free text")
        gaps = choose_gaps(schema, columns, nullable, fine=fine) if with_gaps else {}
        bins = {name: column.bins for name, column in coded.items() if isinstance(column, Ordinal)}
        several = {
            name: parts(name, cast(Datetime, schema.columns[name]))
            for name in split
            if isinstance(columns[name], DatetimeEncoder) and _later(schema, name) <= set(gaps)
        }
        return cls(columns, makers, nullable, bins, frozenset(schema.computed), several, gaps)

    @cached_property
    def encoders(self) -> dict[str, Encoder]:
        """The encoder of each attribute."""
        found: dict[str, Encoder] = {}
        for name, encoder in self.columns.items():
            if name in self.gaps:
                found[self.gaps[name].name] = self.gaps[name].encoder
            elif name in self.parts:
                whole = cast(DatetimeEncoder, encoder)
                found |= zip(self.parts[name], encoders_of_parts(whole), strict=False)
            elif name not in self.computed:
                found[name] = encoder
        return found

    @cached_property
    def _owners(self) -> dict[str, str]:
        return {part: name for name in self.columns for part in self.of_column(name)}

    def of_column(self, name: str) -> tuple[str, ...]:
        """Return the attributes of a column; a column that is not counted stands for itself."""
        return (self.gaps[name].name,) if name in self.gaps else self.parts.get(name, (name,))

    def column(self, attribute: str) -> str:
        """Return the column to which an attribute belongs: for a gap, the column that it ends in."""
        return self._owners[attribute]

    @cached_property
    def domain(self) -> Domain:
        """The attributes with their number of codes."""
        sizes = (encoder.size + self.nullable[self.column(name)] for name, encoder in self.encoders.items())
        ordered = (encoder.ordered for encoder in self.encoders.values())
        return Domain(tuple(self.encoders), tuple(sizes), tuple(ordered))

    def axes(self) -> dict[str, Axis]:
        """Return the widths of the cells of each attribute of an ordered column."""
        return {
            name: Axis(encoder.grid.widths[: encoder.ordered], self.bins[self.column(name)])
            for name, encoder in self.encoders.items()
            if isinstance(encoder, OrderedEncoder)
        }

    def encode(self, table: pd.DataFrame) -> Records:
        """Return the codes of all rows, in order. The codes of a row depend on its own cells alone."""
        codes = np.empty((len(table), len(self.encoders)), dtype=np.int32, order="F")
        for place, (name, encoder) in enumerate(self.encoders.items()):
            column = self.column(name)
            gap = self.gaps.get(column)
            if gap is not None:
                found = gap.codes({of: self._read(of, table[of]) for of in (*gap.before, column)})
            else:
                found = encoder.encode(table[column])
            codes[:, place] = found
            codes[found == STRAY, place] = encoder.size if self.nullable[column] else 0
        return Records(self.domain, codes)

    def _read(self, name: str, cells: pd.Series) -> Floats:
        """Return the numbers of a column on a grid; a missing cell is the lower bound where none may be."""
        encoder = cast(OrderedEncoder, self.columns[name])
        numbers = encoder.read(cells)
        return numbers if self.nullable[name] else np.where(np.isnan(numbers), encoder.grid.low, numbers)

    def draw(self, name: str, codes: Integers, rng: np.random.Generator) -> Floats:
        """Return a number for each code of an attribute; NaN for missing."""
        encoder = self.encoders[name]
        present = codes != encoder.size
        numbers = np.full(len(codes), np.nan)
        numbers[present] = encoder.draw(codes[present], rng)
        return numbers

    def cells(self, merging: Merging | None = None) -> dict[str, Cells]:
        """Return the range of numbers of each code, and how `merging` groups the codes."""
        if merging is None:
            return dict(self._unmerged)
        return {
            name: Cells(cells.lows, cells.highs, cells.grid, merging.groups[place], merging.shares[place])
            for place, (name, cells) in enumerate(self._unmerged.items())
        }

    @cached_property
    def _unmerged(self) -> dict[str, Cells]:
        found = {}
        for name, encoder in self.encoders.items():
            lows, highs = encoder.extents
            if self.nullable[self.column(name)]:
                lows, highs = np.append(lows, np.nan), np.append(highs, np.nan)
            found[name] = Cells.unmerged(lows, highs, getattr(encoder, "grid", None))
        return found

    def possible(self, cells: Mapping[str, Cells]) -> list[tuple[tuple[str, ...], Mask]]:
        """Return pairs of parts and which of their groups a row can have: all are missing, or none."""
        pairs = [(of[0], part) for name, of in self.parts.items() if self.nullable[name] for part in of[1:]]
        return [(pair, both_or_neither_missing(cells, pair)) for pair in pairs]


def _later(schema: Schema, name: str) -> set[str]:
    """Return the columns that constraints name together with one."""
    naming = [constraint.columns for constraint in schema.constraints if name in constraint.columns]
    return {of for columns in naming for of in columns} - {name}


def _column(schema: Schema, name: str, text: str, heaps: Heaps, *, fine: bool) -> Encoder | Maker | None:
    """Return the encoder or identifier maker of a column; None if the column is left out."""
    column: Any = schema.columns[name]
    dtype = parse_dtype(text)
    if name in schema.dropped:
        return None
    if family(dtype) == "nothing":
        return CategoricalEncoder(pd.Series([], dtype=dtype))
    with about(f"column {name!r}"):
        if isinstance(column, Generated):
            return column.maker(dtype)
        encoder = column.encoder(dtype)
        if fine and isinstance(encoder, OrderedEncoder) and name not in schema.computed:
            grid = replace(encoder.grid, heaps=heaps)
            return replace(encoder, grid=grid.fine(max(FINE, column.bins)))
        return encoder
