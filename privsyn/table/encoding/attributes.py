"""Attributes: what is counted of the columns. A column is one attribute, or several parts of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about
from privsyn.inference.binning import Axis
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Floats, Integers, Mask
from privsyn.table.encoding.choose_encoder import choose_encoder
from privsyn.table.encoding.dtypes import family, holds_missing, parse_dtype
from privsyn.table.encoding.encoders import STRAY, AllMissingEncoder, Encoder, OrderedEncoder
from privsyn.table.encoding.gaps import Gap
from privsyn.table.encoding.grid import FINE
from privsyn.table.encoding.heaps import Heaps
from privsyn.table.encoding.identifiers import IdentifierMaker, make_maker
from privsyn.table.encoding.parts import both_or_neither_missing, encoders_of_parts
from privsyn.table.enforcement.draws import Cells
from privsyn.table.schema.columns import Identifier, Text
from privsyn.table.schema.schema import Schema


@dataclass(frozen=True, eq=False)
class Attributes:
    """The attributes of some columns, in order.

    Parameters
    ----------
    columns : mapping of a column that is counted to its encoder
    nullable : mapping of a column to whether its cells may be missing
    parts : mapping of a column that has several attributes to their names
    gaps : mapping of a column that is encoded as a gap to the gap
    readers : mapping of every column, computed or not, to its encoder
    """

    columns: Mapping[str, Encoder]
    nullable: Mapping[str, bool]
    parts: Mapping[str, tuple[str, ...]]
    gaps: Mapping[str, Gap]
    readers: Mapping[str, Encoder]

    @cached_property
    def encoders(self) -> dict[str, Encoder]:
        """The encoder of each attribute."""
        found = encoders_of_parts(self.columns, self.parts)
        gaps = {name: (gap.name, gap.encoder) for name, gap in self.gaps.items()}
        return dict(gaps.get(name, (name, encoder)) for name, encoder in found.items())

    @cached_property
    def _owners(self) -> dict[str, str]:
        owners = {part: name for name, parts in self.parts.items() for part in parts}
        return owners | {gap.name: name for name, gap in self.gaps.items()}

    def column(self, attribute: str) -> str:
        """Return the column to which an attribute belongs."""
        return self._owners.get(attribute, attribute)

    @property
    def domain(self) -> Domain:
        """The attributes with their number of codes."""
        sizes = (encoder.size + self.nullable[self.column(name)] for name, encoder in self.encoders.items())
        ordered = (encoder.ordered for encoder in self.encoders.values())
        return Domain(tuple(self.encoders), tuple(sizes), tuple(ordered))

    def axes(self, bins: Mapping[str, int]) -> dict[str, Axis]:
        """Return the widths of the cells of each attribute of an ordered column; `bins` are the columns'."""
        return {
            name: Axis(encoder.grid.widths[: encoder.ordered], bins[self.column(name)])
            for name, encoder in self.encoders.items()
            if isinstance(encoder, OrderedEncoder)
        }

    def encode(self, table: pd.DataFrame) -> Records:
        """Return the codes of all rows, in order. The codes of a row depend on its own cells alone."""
        codes = np.empty((len(table), len(self.encoders)), dtype=np.int32, order="F")
        for place, (name, encoder) in enumerate(self.encoders.items()):
            column = self.column(name)
            if column in self.gaps:
                gap = self.gaps[column]
                found = gap.codes({of: self._read(of, table[of]) for of in (*gap.before, column)})
            else:
                found = encoder.encode(table[column])
            codes[:, place] = np.where(found == STRAY, encoder.size if self.nullable[column] else 0, found)
        return Records(self.domain, codes)

    def _read(self, name: str, cells: pd.Series) -> Floats:
        """Return the numbers of a column on a grid; a missing cell is the lower bound where none may be."""
        encoder = cast(OrderedEncoder, self.readers[name])
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


def make_encoders(
    schema: Schema, names: Sequence[str], dtypes: Sequence[str], heaps: Mapping[str, Heaps], *, fine: bool
) -> tuple[dict[str, Encoder], dict[str, IdentifierMaker], dict[str, bool]]:
    """Return the encoders and the makers of identifiers of the columns, and which columns may be missing.

    Parameters
    ----------
    schema : Schema
    names, dtypes : sequences of str
        The columns in the order of the table, and the dtype of each as text.
    heaps, fine : as for `Codec`
    """
    encoders: dict[str, Encoder] = {}
    makers: dict[str, IdentifierMaker] = {}
    nullable: dict[str, bool] = {}
    for name, text in zip(names, dtypes, strict=True):
        match _of_column(schema, name, text, heaps.get(name, ()), fine=fine):
            case Encoder() as encoder:
                encoders[name] = encoder
                nullable[name] = isinstance(encoder, AllMissingEncoder) or (
                    schema.coded[name].nullable and holds_missing(parse_dtype(text))
                )
            case IdentifierMaker() as maker:
                makers[name] = maker
    if not encoders:
        raise InputError("no column is left to be counted: all are identifiers or free text")
    return encoders, makers, nullable


def _of_column(
    schema: Schema, name: str, text: str, heaps: Heaps, *, fine: bool
) -> Encoder | IdentifierMaker | None:
    """Return the encoder or identifier maker of a column; None if the column is left out."""
    column: Any = schema.columns[name]
    dtype = parse_dtype(text)
    if isinstance(column, Text):
        return None
    if family(dtype) == "nothing":
        return AllMissingEncoder(dtype)
    with about(f"column {name!r}"):
        if isinstance(column, Identifier):
            return make_maker(column, dtype)
        encoder = choose_encoder(column, dtype)
        if fine and isinstance(encoder, OrderedEncoder) and name not in schema.computed:
            grid = replace(encoder.grid, heaps=heaps)
            return replace(encoder, grid=grid.fine(max(FINE, column.bins)))
        return encoder
