"""Rows spread over the cells of a released table, by which conditions weigh the cells."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from privsyn.inference.ratios.weights import Weights
from privsyn.marginals.domain import Attributes, Floats, Integers, Records
from privsyn.marginals.recoding import Merging
from privsyn.table.codec.codec import Codec

if TYPE_CHECKING:
    from privsyn.inference.fitted import Fitted

POINTS = 60_000  # rows, spread over the cells of a table, by which the weights of cells are known
FEW_POINTS = 4_000  # the same for the values of one attribute of several
PLASTIC = 1.324717957244746  # its powers spread points evenly in several dimensions (Roberts 2018)
MOST_CACHED = 8  # sets of attributes whose points are kept in memory


@dataclass(frozen=True, eq=False)
class Points:
    """Rows that lie in the cells of a table as the rows of a release do.

    Parameters
    ----------
    frame : DataFrame
    cells : integer array of shape (rows,)
        The cell of each row, counted along the flattened table; or the original code of one attribute.
    shares : array of shape (rows,)
        The share of each row in its cell.
    shape : tuple of int
    """

    frame: pd.DataFrame
    cells: Integers
    shares: Floats
    shape: tuple[int, ...]

    def mean(self, values: Floats) -> Floats:
        """Return the mean of the values in each cell."""
        size = int(np.prod(self.shape))
        return np.bincount(self.cells, self.shares * values, size).astype(np.float64).reshape(self.shape)

    def weights(self, above: Floats, below: Floats) -> Weights:
        """Return the weights of the cells."""
        first, second = self.mean(above), self.mean(below)
        squares = (
            self.mean(above**2) - first**2,
            self.mean(above * below) - first * second,
            self.mean(below**2) - second**2,
        )
        return Weights(first, second, squares)


class SpreadRows:
    """Rows in the cells of the tables of a release.

    Parameters
    ----------
    fitted : Fitted
        The released counts and the merging of codes.
    """

    def __init__(self, fitted: Fitted) -> None:
        self._fitted = fitted
        self._cache: dict[tuple[Attributes, Attributes], Points] = {}

    def in_all_cells(self, codec: Codec, names: Attributes) -> Points:
        """Return rows in all cells of the merged codes of some attributes; of one, in all its codes.

        They are made once.
        """
        key = codec.names, names
        if key not in self._cache:
            while len(self._cache) >= MOST_CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = self._in_all_cells(codec, names)
        return self._cache[key]

    def _in_all_cells(self, codec: Codec, names: Attributes) -> Points:
        merging = self._fitted.merging.project(codec.domain.names)
        if len(names) == 1:
            points = self.along(codec, names[0], names, POINTS)
            axis = merging.original.names.index(names[0])
            group, share = merging.groups[axis], merging.shares[axis]
            shares = points.shares * share[points.cells]
            return Points(points.frame, group[points.cells], shares, merging.merged.project(names).shape)
        domain = merging.merged.project(names)
        simple = len(names) == len(codec.domain) and not max(codec.domain.ordered)
        simple = simple and merging.merged.sizes == merging.original.sizes
        repeats = 1 if simple else max(POINTS // domain.cells, 1)
        cells = np.repeat(np.arange(domain.cells), repeats)
        codes = dict(zip(names, np.unravel_index(cells, domain.shape), strict=True))
        frame = self._decoded(codec, merging, codes, {}, len(cells))
        return Points(frame, cells, np.full(len(cells), 1 / repeats), domain.shape)

    def along(self, codec: Codec, name: str, names: Attributes, number: int) -> Points:
        """Return rows in each original code of an attribute; the others have their released counts."""
        merging = self._fitted.merging.project(codec.domain.names)
        size = merging.original.size_of[name]
        alone = len(codec.domain) == 1 and not codec.domain.ordered[0]
        repeats = 1 if alone else max(number // size, 1)
        codes = np.repeat(np.arange(size), repeats)
        frame = self._decoded(codec, merging, {}, {name: codes}, len(codes))
        return Points(frame, codes, np.full(len(codes), 1 / repeats), (size,))

    def _decoded(
        self,
        codec: Codec,
        merging: Merging,
        merged: Mapping[str, Integers],
        original: Mapping[str, Integers],
        rows: int,
    ) -> pd.DataFrame:
        """Return rows with some merged or original codes; other attributes have their released counts."""
        index, codes, positions = np.arange(rows) + 0.5, [], []
        for axis, name in enumerate(merging.merged.names):
            positions.append(np.asarray((index * PLASTIC ** -(1 + axis)) % 1, np.float64))
            if name in merged:
                codes.append(merged[name])
            else:
                counts = self._fitted.one_way(name).counts
                position = (index * PLASTIC ** -(0.5 + axis)) % 1
                ends = np.cumsum(counts) / counts.sum()
                codes.append(np.minimum(np.searchsorted(ends, position), len(ends) - 1))
        records = Records(merging.merged, np.stack(codes, axis=1).astype(np.int32))
        restored = np.array(merging.placed(records, positions).codes)
        for name, chosen in original.items():
            restored[:, merging.original.names.index(name)] = chosen
        drawn = Records(merging.original, restored)
        return codec.decode(drawn, np.random.default_rng(0), merging)


def codec_of(codec: Codec, columns: Collection[str], *, constrained: bool = True) -> Codec:
    """Return the codec of some columns, with the constraints that name no other column, or without any."""
    names = {*columns}
    schema = replace(
        codec.schema,
        columns={name: column for name, column in codec.schema.columns.items() if name in names},
        constraints=[c for c in codec.schema.constraints if constrained and names.issuperset(c.columns)],
        important=(),
    )
    return replace(
        codec,
        schema=schema,
        names=tuple(name for name in codec.names if name in names),
        dtypes=tuple(dtype for name, dtype in codec.dtype_of.items() if name in names),
        heaps={name: heaps for name, heaps in codec.heaps.items() if name in names},
        split=tuple(name for name in codec.split if name in names),
        compared=tuple(name for name in codec.compared if name in names),
        without_gaps=tuple(name for name in codec.without_gaps if name in names),
    )
