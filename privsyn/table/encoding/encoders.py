"""Coders: one column of cells to codes and back, made from public facts alone.

A coder knows a column of the schema and a dtype. It maps every cell by itself: a code depends on no other
row, and no cell makes it fail.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.marginals.types import Floats, Integers, Ints, Mask
from privsyn.table.encoding.dtypes import OBJECT, Dtype, family
from privsyn.table.encoding.grid import Grid
from privsyn.table.encoding.parsing import missing_among, numbers

STRAY = -1
"""Stands for the code of a cell that fits nothing, until its column says what that means."""


class Encoder(ABC):
    """One column between cells and codes."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of codes, but for missing."""

    @property
    def ordered(self) -> int:
        """Number of leading codes that have an order."""
        return 0

    @abstractmethod
    def find(self, cells: pd.Series) -> Ints:
        """The code of each cell, `STRAY` for one that is missing, unreadable or not listed."""

    @abstractmethod
    def read(self, cells: pd.Series) -> Floats:
        """The number of each cell (see `spans`), NaN for one that is missing, unreadable or not listed."""

    @abstractmethod
    def draw(self, codes: Integers, rng: np.random.Generator) -> Floats:
        """A number for each code: of a listed value its place, of a bin one of its points."""

    @abstractmethod
    def cells(self, numbers: Floats, missing: Mask) -> pd.Series:
        """The cell of each such number; a missing one where `missing` is true."""

    @property
    @abstractmethod
    def extents(self) -> tuple[Floats, Floats]:
        """The least and the largest number of each code."""

    @abstractmethod
    def fits(self, cells: pd.Series) -> Mask:
        """Which cells the schema foresees: listed, or between the bounds."""


@dataclass(frozen=True, eq=False)
class CategoricalEncoder(Encoder):
    """Listed values; the code is the place in the list.

    Parameters
    ----------
    pool : pandas.Series
        The values, in the dtype of the column.
    other : int, optional
        The place of the one that stands for all that is not listed.
    """

    pool: pd.Series
    other: int | None = None

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.pool)

    def find(self, cells: pd.Series) -> Ints:
        """The place of each cell in the list; one that is not listed has that of `other`, if there is one."""
        found = self._find(cells)
        if self.other is not None:
            found[(found == STRAY) & ~missing_cells(cells)] = self.other
        return found

    def _find(self, cells: pd.Series) -> Ints:
        """The place of each cell in the list; objects are compared as Python does."""
        if isinstance(cells.dtype, pd.CategoricalDtype):
            places = [*_places(cells.cat.categories, self.pool), STRAY]  # pandas' code of missing is -1
            return np.array(places, dtype=np.int64)[cells.cat.codes]
        if cells.dtype == OBJECT or family(cells.dtype) == "decimal":
            return np.array(_places(cells, self.pool), dtype=np.int64)
        if (
            isinstance(cells.dtype, pd.StringDtype) and cells.dtype.storage == "pyarrow"
        ):  # a fifth of the time
            texts = pa.array(cells.array)
            found = pc.index_in(texts, value_set=pa.array(self.pool.tolist(), texts.type))
            return found.fill_null(STRAY).to_numpy().astype(np.int64)
        return pd.Index(self.pool).get_indexer(pd.Index(cells)).astype(np.int64)

    def read(self, cells: pd.Series) -> Floats:
        """The places, NaN for a cell that has none."""
        found = self.find(cells)
        return np.where(found == STRAY, np.nan, found)

    def draw(self, codes: Integers, rng: np.random.Generator) -> Floats:
        """The places themselves."""
        return codes.astype(np.float64)

    @property
    def extents(self) -> tuple[Floats, Floats]:
        """Each place by itself."""
        places = np.arange(float(len(self.pool)))
        return places, places

    def cells(self, numbers: Floats, missing: Mask) -> pd.Series:
        """The value at each place."""
        places = np.where(missing, -1, numbers).astype(np.int64)
        return pd.Series(self.pool.array.take(places, allow_fill=bool(missing.any())), dtype=self.pool.dtype)

    def fits(self, cells: pd.Series) -> Mask:
        """Which cells are listed."""
        return self._find(cells) != STRAY


@dataclass(frozen=True, eq=False)
class AllMissingEncoder(Encoder):
    """A column of which the dtype says that all cells are missing."""

    dtype: Dtype

    @property
    def size(self) -> int:
        """No codes but for missing."""
        return 0

    def find(self, cells: pd.Series) -> Ints:
        """All missing."""
        return np.full(len(cells), STRAY, dtype=np.int64)

    def read(self, cells: pd.Series) -> Floats:
        """No numbers."""
        return np.full(len(cells), np.nan)

    def draw(self, codes: Integers, rng: np.random.Generator) -> Floats:
        """No numbers."""
        return np.full(len(codes), np.nan)

    def cells(self, numbers: Floats, missing: Mask) -> pd.Series:
        """Missing cells."""
        return pd.Series([None] * len(numbers), dtype=self.dtype)

    @property
    def extents(self) -> tuple[Floats, Floats]:
        """No codes, no numbers."""
        return np.empty(0), np.empty(0)

    def fits(self, cells: pd.Series) -> Mask:
        """No cell; but none is there."""
        return np.zeros(len(cells), dtype=np.bool_)


def missing_cells(cells: pd.Series) -> Mask:
    """Which cells are missing. pandas fails as a whole at an object that cannot be compared with itself."""
    return missing_among(cells.tolist()) if cells.dtype == OBJECT else cells.isna().to_numpy()


def _places(cells: Any, pool: Any) -> list[int]:
    place = {value: code for code, value in enumerate(pool)}

    def find(cell: Any) -> int:
        try:
            return place.get(cell, STRAY)
        except Exception:  # a list is not hashable, and an object may raise what it likes
            return STRAY

    return [find(cell) for cell in cells]


@dataclass(frozen=True, eq=False)
class OrderedEncoder(Encoder):
    """Whatever lies on a grid; the code is the bin."""

    grid: Grid
    dtype: Dtype

    @property
    def size(self) -> int:
        """Number of bins."""
        return self.grid.bins

    @property
    def ordered(self) -> int:
        """All of them."""
        return self.grid.bins

    @property
    def extents(self) -> tuple[Floats, Floats]:
        """The first and the last point of each bin."""
        return self.grid.extents

    def draw(self, codes: Integers, rng: np.random.Generator) -> Floats:
        """A point of each bin, uniformly."""
        return self.grid.draw(codes, rng)

    def find(self, cells: pd.Series) -> Ints:
        """The bin of each cell; outside the bounds, the nearest."""
        read = self.read(cells)
        return np.where(np.isnan(read), STRAY, self.grid.encode(read))

    def fits(self, cells: pd.Series) -> Mask:
        """Which cells lie between the bounds."""
        read = self.read(cells)
        slack = 0.0 if self.grid.decimals is None else 0.25 / self.grid.scale  # a float32 of 0.1 is above 0.1
        return (read >= self.grid.low - slack) & (read <= self.grid.high + slack)


@dataclass(frozen=True, eq=False)
class NumericalEncoder(OrderedEncoder):
    """Numbers between bounds; in a column of objects they may be Python's decimals."""

    decimal: bool = False

    def read(self, cells: pd.Series) -> Floats:
        """The cells as doubles."""
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would tell of a cell
            if cells.dtype == OBJECT:
                return numbers(cells.tolist())
            if family(cells.dtype) == "decimal":
                return pa.array(cells.array).cast(pa.float64()).to_numpy(zero_copy_only=False)
            return cells.to_numpy(dtype=np.float64, na_value=np.nan)

    def cells(self, numbers: Floats, missing: Mask) -> pd.Series:
        """The numbers; whole ones stay integers where the dtype leaves the choice."""
        drawn = pd.Series(numbers)
        if family(self.dtype) == "decimal":
            return self._decimals(drawn, missing)
        if self.decimal:
            return pd.Series([Decimal(text) for text in self._texts(drawn)], dtype=object).mask(missing)
        whole = self.grid.decimals == 0 and family(self.dtype) in ("integer", "object")
        return (drawn.astype(np.int64) if whole else drawn).astype(self.dtype).mask(missing)

    def _decimals(self, drawn: pd.Series, missing: Mask) -> pd.Series:
        """The numbers in Arrow's decimals; those of the grid first, or the digits of a double would show."""
        exact = pa.array([Decimal(text) for text in self._texts(drawn)], self.dtype.pyarrow_dtype)
        cells = pc.if_else(pa.array(missing), pa.scalar(None, exact.type), exact)
        return pd.Series(pd.array(cells, dtype=self.dtype))

    def _texts(self, drawn: pd.Series) -> list[str]:
        """The numbers as they are written with the decimals of the grid."""
        decimals = self.grid.decimals
        return [repr(number) if decimals is None else f"{number:.{decimals}f}" for number in drawn.tolist()]
