"""Encoders: the encoder of each column of a schema, and of each attribute that is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about
from privsyn.marginals.types import Floats, Ints
from privsyn.table.encoding.choose_encoder import choose_encoder
from privsyn.table.encoding.dtypes import family, holds_missing, parse_dtype
from privsyn.table.encoding.encoders import STRAY, AllMissingEncoder, Encoder, OrderedEncoder
from privsyn.table.encoding.gaps import Gap, choose_gaps
from privsyn.table.encoding.grid import FINE
from privsyn.table.encoding.heaps import Heaps
from privsyn.table.encoding.identifiers import IdentifierMaker, make_maker
from privsyn.table.schema.columns import Identifier, Text
from privsyn.table.schema.schema import Schema


@dataclass(frozen=True, eq=False)
class Encoders:
    """The encoders of a table's columns, and of the attributes that are counted.

    Parameters
    ----------
    columns : mapping of a column to its encoder
    makers : mapping of a column to the maker of its identifiers
    attributes : mapping of an attribute to its encoder
        Each column that is not computed, or its gap.
    gaps : mapping of a column to its gap
    nullable : mapping of a column or an attribute to whether it may be missing
    """

    columns: Mapping[str, Encoder]
    makers: Mapping[str, IdentifierMaker]
    attributes: Mapping[str, Encoder]
    gaps: Mapping[str, Gap]
    nullable: Mapping[str, bool]

    @classmethod
    def of(
        cls,
        schema: Schema,
        names: Sequence[str],
        dtypes: Sequence[str],
        heaps: Mapping[str, Heaps],
        *,
        fine: bool,
        with_gaps: bool,
    ) -> Encoders:
        """Return the encoders of the columns of a schema, in the order of the table.

        Parameters
        ----------
        schema : Schema
        names, dtypes : sequences of str
            The columns in the order of the table, and the dtype of each as text.
        heaps : mapping of a column to the heaps of its numbers
        fine, with_gaps : bool
            As for `Codec`.
        """
        columns: dict[str, Encoder] = {}
        makers: dict[str, IdentifierMaker] = {}
        nullable = {}
        for name, text in zip(names, dtypes, strict=True):
            match _column(schema, name, text, heaps.get(name, ()), fine=fine):
                case Encoder() as encoder:
                    columns[name] = encoder
                    nullable[name] = isinstance(encoder, AllMissingEncoder) or (
                        schema.coded[name].nullable and holds_missing(parse_dtype(text))
                    )
                case IdentifierMaker() as maker:
                    makers[name] = maker
        if not columns:
            raise InputError("no column is left to be counted: all are identifiers or free text")
        gaps = choose_gaps(schema, columns, nullable, fine=fine) if with_gaps else {}
        attributes: dict[str, Encoder] = {}
        for name, encoder in columns.items():
            if name in gaps:
                attributes[gaps[name].name] = gaps[name].encoder
                nullable[gaps[name].name] = nullable[name]
            elif name not in schema.computed:
                attributes[name] = encoder
        return cls(columns, makers, attributes, gaps, nullable)

    def find(self, attribute: str, table: pd.DataFrame) -> Ints:
        """Return the code of an attribute in each row. Private: each row alone."""
        encoder = self.attributes[attribute]
        gap = next((gap for gap in self.gaps.values() if gap.name == attribute), None)
        if gap is not None:
            found = gap.codes({name: self._read(name, table[name]) for name in (*gap.before, gap.column)})
        else:
            found = encoder.encode(table[attribute])
        return np.where(found == STRAY, encoder.size if self.nullable[attribute] else 0, found)

    def _read(self, name: str, cells: pd.Series) -> Floats:
        """Return the numbers of a column on a grid; a missing cell is the lower bound where none may be."""
        encoder = cast(OrderedEncoder, self.columns[name])
        numbers = encoder.read(cells)
        return numbers if self.nullable[name] else np.where(np.isnan(numbers), encoder.grid.low, numbers)


def _column(
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
