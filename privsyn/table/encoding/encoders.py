"""Encode the cells of one column as codes, and decode codes to cells.

An encoder is made from public facts alone: a column of the schema and a dtype. The code of a cell depends on
no other row, and no cell makes the encoder fail.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.marginals.domain import Floats, Integers, Ints, Mask
from privsyn.table.encoding.dtypes import OBJECT, Dtype, family
from privsyn.table.encoding.grid import FINE, Grid
from privsyn.table.encoding.number_format import NumberFormat
from privsyn.table.encoding.parsing import finite, infinite_among, missing_among, numbers
from privsyn.table.encoding.steps import Heaps
from privsyn.table.encoding.words import MISSING, bin_range, grid_words, joined

INTEGERS = 2.0**62
"""Smaller whole numbers are computed as int64, larger ones as integers of Python."""

WHOLE = 2.0**53
"""From here on every double is a whole number."""

STRAY = -1
"""Code of a cell that is missing, unreadable or not listed. `Codec` replaces it."""


class Encoder(ABC):
    """Base of the encoders: encodes and decodes one column."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of codes, without that of missing."""

    @property
    def ordered(self) -> int:
        """Number of leading codes that have an order."""
        return 0

    def fine(self, heaps: Heaps, bins: int) -> Encoder:
        """Return the encoder of fine cells, at least `bins`; of listed values, itself."""
        return self

    @abstractmethod
    def encode(self, cells: pd.Series) -> Ints:
        """Return the code of each cell; `STRAY` if it is missing, unreadable or not listed."""

    @abstractmethod
    def read(self, cells: pd.Series) -> Floats:
        """Return the number of each cell (see `Span`); NaN if it is missing, unreadable or not listed."""

    @abstractmethod
    def draw(self, codes: Integers, rng: np.random.Generator) -> Floats:
        """Return a number for each code: the place of a listed value, or a random point of a bin."""

    @abstractmethod
    def decode(self, numbers: Floats, missing: Mask) -> pd.Series:
        """Return the cell of each number; a missing cell where `missing` is true."""

    @property
    @abstractmethod
    def extents(self) -> tuple[Floats, Floats]:
        """The smallest and the largest number of each code."""

    @abstractmethod
    def fits(self, cells: pd.Series) -> Mask:
        """Return which cells are listed, or lie within the bounds."""

    @abstractmethod
    def words(self, codes: Integers) -> list[str]:
        """Return a label for each value of a group of codes; neighbouring bins have one label."""


@dataclass(frozen=True, eq=False)
class CategoricalEncoder(Encoder):
    """Encodes listed values; the code is the place in the list.

    Parameters
    ----------
    pool : pandas.Series
        The values, in the dtype of the column; none where the dtype makes all cells missing.
    pooled : int, optional
        The place of the value that replaces all values that are not listed.
    in_order : int, optional
        How many values have an order, from the first one on.
    """

    pool: pd.Series
    pooled: int | None = None
    in_order: int = 0

    @property
    def size(self) -> int:
        """Number of listed values."""
        return len(self.pool)

    @property
    def ordered(self) -> int:
        """How many values have an order."""
        return self.in_order

    def encode(self, cells: pd.Series) -> Ints:
        """Return the place of each cell in the list; `pooled`, if given, for values that are not listed."""
        codes = self._encode(cells)
        if self.pooled is not None:
            codes[(codes == STRAY) & ~missing_cells(cells) & ~_infinite_cells(cells)] = self.pooled
        return codes

    def _encode(self, cells: pd.Series) -> Ints:
        """Return the place of each cell in the list; objects are compared as in Python."""
        if isinstance(cells.dtype, pd.CategoricalDtype):
            codes = self._places(cells.array.categories.tolist())
            return np.array([*codes, STRAY], dtype=np.int64)[cells.array.codes]  # the code of missing is -1
        if getattr(cells.dtype, "storage", "") == "pyarrow":  # five times as fast as `get_indexer`
            texts = pa.array(cells.array)
            codes = pc.index_in(texts, value_set=pa.array(list(self._listed), texts.type))
            return codes.fill_null(STRAY).to_numpy().astype(np.int64)
        if cells.dtype == OBJECT or family(cells.dtype) == "decimal":
            return np.array(self._places(cells), dtype=np.int64)
        return pd.Index(self.pool).get_indexer(pd.Index(cells)).astype(np.int64)

    @cached_property
    def _listed(self) -> dict[Any, int]:
        """The place of each listed value."""
        return {value: code for code, value in enumerate(self.pool.tolist())}

    def _places(self, cells: Iterable[Any]) -> list[int]:
        """Return the place of each cell in the list; `STRAY` if it is not listed."""

        def find(cell: Any) -> int:
            try:
                return self._listed.get(cell, STRAY)
            except Exception:  # lists are not hashable, and objects may raise any exception
                return STRAY

        return [find(cell) for cell in cells]

    def read(self, cells: pd.Series) -> Floats:
        """Return the places; NaN for a cell that is not listed."""
        codes = self.encode(cells)
        return np.where(codes == STRAY, np.nan, codes)

    def draw(self, codes: Integers, rng: np.random.Generator) -> Floats:
        """Return the places."""
        return codes.astype(np.float64)

    @property
    def extents(self) -> tuple[Floats, Floats]:
        """Each place is both ends of its code."""
        codes = np.arange(float(len(self.pool)))
        return codes, codes

    def decode(self, numbers: Floats, missing: Mask) -> pd.Series:
        """Return the value at each place."""
        codes = np.where(missing, -1, numbers).astype(np.int64)
        return pd.Series(self.pool.array.take(codes, allow_fill=bool(missing.any())), dtype=self.pool.dtype)

    def fits(self, cells: pd.Series) -> Mask:
        """Return which cells are listed."""
        return self._encode(cells) != STRAY

    def words(self, codes: Integers) -> list[str]:
        """Return the text of each value."""
        return [MISSING if code == self.size else str(self.pool.iloc[code]) for code in codes.tolist()]


def missing_cells(cells: pd.Series) -> Mask:
    """Return which cells are missing. `isna` fails on objects that cannot be compared with themselves."""
    return missing_among(cells.tolist()) if cells.dtype == OBJECT else cells.isna().to_numpy()


def _infinite_cells(cells: pd.Series) -> Mask:
    """Return which cells are infinite numbers. They are made missing, as in a column of numbers."""
    if family(cells.dtype) == "real":
        return np.isinf(cells.to_numpy(dtype=np.float64, na_value=np.nan))
    if cells.dtype == OBJECT:
        return infinite_among(cells.tolist())
    if isinstance(cells.dtype, pd.CategoricalDtype):
        of_categories = infinite_among(cells.array.categories.tolist())
        return np.append(of_categories, False)[cells.array.codes]  # the code of missing is -1
    return np.zeros(len(cells), np.bool_)


@dataclass(frozen=True, eq=False)
class OrderedEncoder(Encoder):
    """Base of the encoders of numbers and times: values on a grid; the code is the bin."""

    grid: Grid
    dtype: Dtype

    @property
    def size(self) -> int:
        """Number of bins."""
        return self.grid.bins

    @property
    def ordered(self) -> int:
        """Number of bins: all of them are ordered."""
        return self.grid.bins

    @property
    def second(self) -> int:
        """First code of a second part of the bins, in which numbers mean something else; 0 if none."""
        return 0

    def fine(self, heaps: Heaps, bins: int) -> Encoder:
        """Return the encoder of fine cells."""
        return replace(self, grid=replace(self.grid, heaps=heaps).fine(max(FINE, bins)))

    @property
    def extents(self) -> tuple[Floats, Floats]:
        """The first and the last point of each bin."""
        return self.grid.extents

    def draw(self, codes: Integers, rng: np.random.Generator) -> Floats:
        """Return a uniformly drawn point of each bin."""
        return self.grid.draw(codes, rng)

    def encode(self, cells: pd.Series) -> Ints:
        """Return the bin of each cell; the nearest bin for cells outside the bounds."""
        read = self.read(cells)
        return np.where(np.isnan(read), STRAY, self.grid.encode(read))

    def fits(self, cells: pd.Series) -> Mask:
        """Return which cells lie within the bounds."""
        read = self.read(cells)
        # A float32 of 0.1 is above 0.1.
        slack = 0.0 if self.grid.decimals is None else 0.25 * 10.0 ** (-self.grid.decimals)
        return (read >= self.grid.low - slack) & (read <= self.grid.high + slack)

    def words(self, codes: Integers) -> list[str]:
        """Return a range for each run of neighbouring bins."""
        bins = codes[codes < self.size]
        runs = np.split(bins, np.flatnonzero(np.diff(bins) > 1) + 1) if len(bins) else []
        ranges = [bin_range(self.grid, int(run[0]), int(run[-1]), self.range_words) for run in runs]
        return [*ranges, *([MISSING] if len(bins) < len(codes) else [])]

    def range_words(self, low: float, high: float) -> str:
        """Return a range as text, from the first point of a bin to the last. Default: both as cells."""
        return joined(*map(str, self.decode(np.array([low, high]), np.zeros(2, np.bool_))))

    def interval(self, estimate: float, low: float, high: float) -> Sequence[Any]:
        """Return an estimate and the ends of its interval as cells of the column."""
        numbers = np.array([np.rint(estimate), np.floor(low), np.ceil(high)])
        return self.decode(numbers, np.zeros(3, np.bool_)).tolist()

    def distance_words(self, low: float, high: float) -> str:
        """Return a range of distances of two values as text. Default: as numbers."""
        return grid_words(self.grid)(low, high)


def has_grid(encoder: Encoder) -> TypeGuard[OrderedEncoder]:
    """Return whether an encoder is of numbers or times, whose codes are bins of a grid."""
    return isinstance(encoder, OrderedEncoder)


@dataclass(frozen=True, eq=False)
class NumericalEncoder(OrderedEncoder):
    """Encodes numbers within bounds; in a column of text they have a format.

    Parameters
    ----------
    form : NumberFormat, optional
    decimals : int, optional
        Those to which drawn numbers are rounded. The grid has none where doubles do not tell them apart.
    """

    form: NumberFormat | None = None
    decimals: int | None = None

    def interval(self, estimate: float, low: float, high: float) -> Sequence[Any]:
        """Return the numbers, which may lie between those of the column."""
        return estimate, low, high

    def range_words(self, low: float, high: float) -> str:
        """Return a range of numbers as text."""
        return self.distance_words(low, high)

    def read(self, cells: pd.Series) -> Floats:
        """Return the cells as float64; NaN if they are missing, unreadable or infinite."""
        return finite(self._read(cells))

    def _read(self, cells: pd.Series) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):  # a warning would reveal a cell
            if self.form is not None and family(cells.dtype) in ("text", "object"):
                return self.form.numbers(cells.tolist())
            if cells.dtype == OBJECT:
                return numbers(cells.tolist())
            if family(cells.dtype) == "decimal":
                return pa.array(cells.array).cast(pa.float64()).to_numpy(zero_copy_only=False)
            return cells.to_numpy(dtype=np.float64, na_value=np.nan)

    def decode(self, numbers: Floats, missing: Mask) -> pd.Series:
        """Return the numbers in the column's dtype; whole numbers in a column of objects are integers."""
        if self.grid.decimals is None and self.decimals is not None:
            is_whole = np.abs(numbers) >= WHOLE  # rounded, they would overflow
            rounded = np.round(np.where(is_whole, 0.0, numbers), self.decimals)
            numbers = np.clip(np.where(is_whole, numbers, rounded), self.grid.low, self.grid.high)
        drawn = pd.Series(numbers)
        if family(self.dtype) == "decimal":
            return self._decimals(drawn, missing)
        if self.form is not None and family(self.dtype) in ("text", "object"):
            texts = [self.form.spell(number, self.decimals) for number in drawn.tolist()]
            return pd.Series(texts, dtype=self.dtype).mask(missing)
        if self.decimals == 0 and family(self.dtype) in ("integer", "object"):
            drawn = self._whole(drawn)
        return drawn.astype(self.dtype).mask(missing)

    def _whole(self, drawn: pd.Series) -> pd.Series:
        """Return whole numbers, multiples of the step also where doubles are less exact."""
        step = round(self.grid.step) if self.grid.decimals == 0 else 1
        steps = np.rint(drawn.to_numpy() / step)
        if max(abs(self.grid.low), abs(self.grid.high)) < INTEGERS:
            return pd.Series(steps.astype(np.int64) * step)
        return pd.Series([int(count) * step for count in steps.tolist()], dtype=object)

    def _decimals(self, drawn: pd.Series, missing: Mask) -> pd.Series:
        """Return Arrow decimals, rounded to those of the column, or all digits of a float would show."""
        kind = self.dtype.pyarrow_dtype
        if self.decimals is None:
            texts = [np.format_float_positional(number, kind.scale) for number in drawn.tolist()]
        else:
            texts = [f"{number:.{self.decimals}f}" for number in drawn.tolist()]
        exact = pa.array(map(Decimal, texts), kind)
        cells = pc.if_else(pa.array(missing), pa.scalar(None, exact.type), exact)
        return pd.Series(pd.array(cells, dtype=self.dtype))
