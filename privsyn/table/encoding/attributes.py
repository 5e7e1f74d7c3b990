"""Attributes: what is counted of the columns. A column is one attribute, or several parts of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from privsyn.inference.binning import Axis
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Floats, Integers, Mask
from privsyn.table.encoding.encoders import STRAY, Encoder, OrderedEncoder
from privsyn.table.encoding.parts import both_or_neither_missing, encoders_of_parts
from privsyn.table.enforcement.draws import Cells


@dataclass(frozen=True, eq=False)
class Attributes:
    """The attributes of some columns, in order.

    Parameters
    ----------
    columns : mapping of a column that is counted to its encoder
    nullable : mapping of a column to whether its cells may be missing
    parts : mapping of a column that has several attributes to their names
    """

    columns: Mapping[str, Encoder]
    nullable: Mapping[str, bool]
    parts: Mapping[str, tuple[str, ...]]

    @cached_property
    def encoders(self) -> dict[str, Encoder]:
        """The encoder of each attribute."""
        return encoders_of_parts(self.columns, self.parts)

    @cached_property
    def _owners(self) -> dict[str, str]:
        return {part: name for name, parts in self.parts.items() for part in parts}

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
            name: Axis(encoder.grid.widths, bins[self.column(name)])
            for name, encoder in self.encoders.items()
            if isinstance(encoder, OrderedEncoder)
        }

    def encode(self, table: pd.DataFrame) -> Records:
        """Return the codes of all rows, in order. The codes of a row depend on its own cells alone."""
        codes = np.empty((len(table), len(self.encoders)), dtype=np.int32, order="F")
        for place, (name, encoder) in enumerate(self.encoders.items()):
            column = self.column(name)
            found = encoder.encode(table[column])
            codes[:, place] = np.where(found == STRAY, encoder.size if self.nullable[column] else 0, found)
        return Records(self.domain, codes)

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
