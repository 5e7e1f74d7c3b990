"""Ordinal: what all kinds of column have whose values lie between two bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats
from privsyn.table.encoding.bounds_cells import BoundsGrid
from privsyn.table.encoding.dtypes import Dtype, family
from privsyn.table.encoding.encoders import OrderedEncoder
from privsyn.table.encoding.grid import FINE, Grid, holds
from privsyn.table.encoding.steps import multiples_around, multiples_within
from privsyn.table.encoding.words import RangeWords
from privsyn.table.kinds.column import COMPARES, Coded, Column
from privsyn.table.kinds.column_settings import check_decimals, number_bounds


class Ordinal(Coded):
    """A column whose values have an order, and lie between two bounds."""

    low: Any
    high: Any
    bins: int

    if TYPE_CHECKING:

        def encoder(self, dtype: Dtype) -> OrderedEncoder:
            """Return the encoder, which has a grid."""

    @property
    def noun(self) -> str:
        """What a value is called, in the plural."""
        return f"values of kind {type(self).__name__}"

    @property
    def values_sentence(self) -> str:
        """What the values are, their step and their bounds."""
        if not self.is_public:
            return f"{self.noun} between bounds that are found under privacy."
        return f"{self.noun} from {_end(self.low)} to {_end(self.high)}; others are clipped."

    @property
    def is_public(self) -> bool:
        """Whether the bounds are given."""
        return self.low is not None

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds as numbers; with a step, the first and the last multiple within them."""
        low, high = self.number_of(self.low), self.number_of(self.high)
        if self.grid_step is None:
            return low, high
        return multiples_within(low, high, self.grid_step, self.fixed_decimals or 0)

    @property
    def grid_step(self) -> float | None:
        """The number of which all numbers are multiples; None if the schema says nothing about it."""
        return None

    @property
    def resolution(self) -> float:
        """The least distance of two numbers."""
        return super().resolution if self.grid_step is None else self.grid_step

    def intervals_of(self, ends: Mapping[str, Any]) -> tuple[Floats, Floats]:
        """Return the range as one interval."""
        low = self.number_of(ends["low"]) if "low" in ends else -inf
        high = self.number_of(ends["high"]) if "high" in ends else inf
        if low > high:
            raise InputError("the low end of a range is above its high end")
        return np.array([low]), np.array([high])

    @property
    def scale(self) -> float:
        """The size of one unit in the unit in which columns of this kind are compared: for times, seconds."""
        return 1.0

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest number that any column of this kind can have."""
        return -inf, inf

    @property
    def values_in_words(self) -> str:
        """The bounds."""
        return f"{self.low} to {self.high}"

    @property
    def all_values(self) -> Any:
        """The range between the bounds."""
        return {"low": self.low, "high": self.high}

    def compared(self, sign: str, operands: Sequence[Any]) -> list[Any]:
        """Return ranges, and single values for == and in."""
        for value in operands:
            self.number_of(value)  # refuses a value that the column cannot have
        if sign in ("==", "in"):
            return [tuple(dict.fromkeys(operands))]
        if sign in COMPARES:
            end = operands[0] if len(sign) == 2 else self.neighbour(operands[0], -1 if sign == "<" else 1)
            return [{"high" if sign[0] == "<" else "low": end}]
        points = sorted(set(operands), key=self.number_of)
        lows = [None, *(self.neighbour(point, 1) for point in points)]
        highs = [*(self.neighbour(point, -1) for point in points), None]
        ranges = [ends_of(low, high) for low, high in zip(lows, highs, strict=True)]
        return [ends for ends in ranges if not self.is_empty(ends)]

    def neighbour(self, value: Any, by: int) -> Any:
        """Return the next value below (-1) or above (1), or one that is nearer."""
        raise InputError(f"{type(self).__name__} has no next value: compare with <= or >=")

    def is_empty(self, ends: Mapping[str, Any]) -> bool:
        """Return whether a range has no value because its low end is above its high end."""
        return len(ends) == 2 and self.number_of(ends["low"]) > self.number_of(ends["high"])

    def with_listed(self, values: Sequence[Any]) -> Self:
        """Return the column with bounds around these values."""
        return replace(self, low=min(values), high=max(values))

    def like(self, column: Self) -> Self:
        """Return the column with the bounds of another one."""
        return replace(self, low=column.low, high=column.high)

    compared_as: ClassVar[Literal["number", "date"]] = "number"
    """How tables are compared in the column."""

    def measured(self, cells: pd.Series) -> Floats:
        """Return the cells of any table as the numbers by which tables are compared; NaN for missing."""
        return self.widest(cells.dtype).encoder(cells.dtype).read(cells)

    def own_grid(self, dtype: Dtype) -> Grid:
        """Return the grid between the bounds on which tables are compared."""
        return plain_grid(*self.bounds, integers=self.fixed_decimals == 0, bins=self.bins)

    def grid_around(self, low: float, high: float, *, integers: bool) -> Grid:
        """Return the grid on which tables with numbers in a range are compared; `integers` if all are."""
        return plain_grid(low, high, integers=integers, bins=self.bins)

    def words_on(self, grid: Grid, dtype: Dtype) -> RangeWords:
        """Return the function that writes ranges of such a grid."""
        return self.widest(dtype).encoder(dtype).range_words

    @property
    def fate(self) -> str:
        """What cells become that are out of bounds, or cannot be read."""
        missing = "missing if unreadable" if self.nullable else "the lower bound if missing or unreadable"
        return f"are clipped to the bounds, or {missing}"

    def most_codes(self, dtype: Dtype) -> int:
        """Return the number of points, up to the largest number of fine cells."""
        return min(self.encoder(dtype).grid.points, max(FINE, self.bins))

    def bounds_cells(self, dtype: Dtype) -> BoundsGrid:
        """Return zero, and cells that double in width on both sides of it."""
        floats = np.dtype(np.float64)
        return BoundsGrid.numbers(decimals=self.fixed_decimals, dtype=floats, limits=self.limits)

    def answered(self, answer: tuple[float, float] | None, dtype: Dtype, marks: Sequence[str]) -> Self:
        """Return the column with the bounds found."""
        return self.with_bounds(answer, integers=family(dtype) == "integer")

    def widest(self, dtype: Dtype) -> Self:
        """Return the column with bounds in which the encoder reads every number. Default: any bounds."""
        return self if self.is_public else self.answered(None, dtype, ())

    def with_bounds(self, bounds: tuple[float, float] | None, *, integers: bool) -> Self:
        """Return the column with bounds that were found under privacy.

        Parameters
        ----------
        bounds : pair of float, optional
            The bounds as numbers. Default: bounds for a column in which nothing was found.
        integers : bool
            Whether the dtype of the column holds whole numbers only.
        """
        raise InputError(self.public_hint)

    def covering(self, low: float, high: float) -> Self:
        """Return the column with bounds that contain two numbers; as it is if it cannot have such bounds.

        The numbers are bounds that were found under privacy, so nothing may be raised.
        """
        decimals = self.fixed_decimals
        if decimals is not None:
            low, high = multiples_around(low, high, 10.0**-decimals, decimals)
        with suppress(InputError):
            return self.with_bounds((low, high), integers=decimals == 0)
        return self

    @property
    def public_hint(self) -> str:
        """What to do to make the bounds public."""
        return f"give its bounds: {type(self).__name__}(low, high)"


def ordinal_of(column: Column) -> Ordinal:
    """Return a column of numbers or dates as such.

    Raises
    ------
    TypeError
        If the column is of another kind: whoever reads a rule has refused it.
    """
    if not isinstance(column, Ordinal):
        raise TypeError(f"a column of kind {type(column).__name__} has neither numbers nor dates")
    return column


def plain_grid(low: float, high: float, *, integers: bool, bins: int) -> Grid:
    """Return the grid of whole numbers, or of doubles; refuse bounds that are too far apart."""
    low, high = number_bounds(low, high)
    doubles = np.dtype(np.float64)
    if not integers or not holds(doubles, low, high, 0):
        return Grid.real(low, high, bins=bins, dtype=doubles)
    check_decimals(low, high, 0)
    return Grid.exact(low, high, decimals=0, bins=bins)


def ends_of(low: Any, high: Any) -> dict[str, Any]:
    """Return a range as in a condition of `Forbidden`, without an end that is None."""
    return {end: value for end, value in (("low", low), ("high", high)) if value is not None}


def _end(bound: Any) -> str:
    """Return a bound without an exponent and without midnight.

    >>> _end(1e-05), _end(90.0), _end(7)
    ('0.00001', '90.0', '7')
    """
    text = str(bound).removesuffix(" 00:00:00")
    return np.format_float_positional(bound, trim="-") if isinstance(bound, float) and "e" in text else text
