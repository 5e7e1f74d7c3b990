"""Numerical: a column of numbers between public bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.marginals.domain import Floats
from privsyn.table.encoding import dtypes, steps
from privsyn.table.encoding.bounds_cells import BoundsGrid
from privsyn.table.encoding.encoders import NumericalEncoder
from privsyn.table.encoding.grid import Grid, holds, spacing
from privsyn.table.encoding.number_format import NumberFormat
from privsyn.table.encoding.parsing import distinct, finite, numbers
from privsyn.table.encoding.words import RangeWords, grid_words
from privsyn.table.kinds import column_settings as settings
from privsyn.table.kinds.column import FOR_FAMILY, number_in
from privsyn.table.kinds.csv_format import CsvFormat, as_texts
from privsyn.table.kinds.ordinal import Ordinal


@dataclass(frozen=True)
class Numerical(Ordinal):
    """A column of numbers between public bounds. Numbers outside are clipped to them.

    Parameters
    ----------
    low, high : number, optional
        The public bounds, both included. Default: they are found under privacy, at powers of two and half-way
        between them.
    integer : bool, optional
        Whether all numbers are whole. Default: the dtype decides. A CSV has none: its numbers are real unless
        this, ``decimals=0`` or a whole `step` says otherwise, whether the bounds are written 0 or 0.0.
    decimals : int, optional
        How many decimals all numbers have. Default: those of a decimal dtype, if it has at most four.
    step : number, optional
        All numbers are multiples of it, such as 0.05 or 10_000. A number between two multiples is taken to
        the nearer one. The outermost multiples within the bounds are the first and the last number.
    format : str, optional
        How 1234.5 is written in a column of text or in a CSV, such as ``"$1,234.50"``, ``"1.234,50 EUR"`` or
        ``"1234.5 %"``. Its digits say the number of decimals if nothing else does. Default: a plain number.
    bins : int
        The largest number of intervals that are counted.
    nullable : bool
        Whether a cell may be missing. A cell that is no number counts as missing, or with ``nullable=False``
        as `low`.
    missing : str or list of str
        Texts that mean a missing cell in a file, in addition to the empty cell.

    Examples
    --------
    >>> Numerical(5, 1)
    Traceback (most recent call last):
    privsyn.errors.InputError: low 5 is above high 1
    """

    low: float | None = None
    high: float | None = None
    integer: bool | None = field(default=None, kw_only=True)
    decimals: int | None = field(default=None, kw_only=True)
    step: float | None = field(default=None, kw_only=True)
    format: str | None = field(default=None, kw_only=True)
    bins: int = field(default=32, kw_only=True)
    nullable: bool = field(default=True, kw_only=True)
    missing: str | Sequence[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        settings.normalise_shared(self)
        if self.form is not None and self.integer is self.decimals is self.step is None:
            decimals = self.form.decimals
            settings.normalise(self, **({"decimals": decimals} if decimals else {"integer": True}))
        if self.integer is not None:
            settings.normalise(self, integer=settings.flag("integer", self.integer))
        if self.decimals is not None:
            settings.normalise(
                self, decimals=settings.whole_number("decimals", self.decimals, 0, steps.MAX_DECIMALS)
            )
            if self.integer:
                raise InputError("integer and decimals exclude each other: give one of them")
        if self.step is not None:
            step = steps.number_step(self.step, integer=self.integer, decimals=self.decimals)
            settings.normalise(self, step=step)
        low, high = settings.both_or_neither(self.low, self.high)
        if low is None:
            return
        low, high = settings.number_bounds(low, high)
        if self.integer or self.decimals is not None:
            settings.check_decimals(low, high, self.decimals or 0)
        settings.normalise(self, low=low, high=high)
        if self.step is not None:
            settings.check_decimals(*self.bounds, steps.decimals_of_step(self.step) or 0)

    has_numbers = True

    @property
    def number_range(self) -> tuple[float, float] | None:
        """The bounds."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def form(self) -> NumberFormat | None:
        """How numbers are written as text; None if plainly."""
        return None if self.format is None else NumberFormat(self.format)

    @property
    def noun(self) -> str:
        """What the numbers are, and their step."""
        noun = "numbers" if self.decimals is None else f"numbers with {self.decimals} decimals"
        step = "" if self.step is None else f" in steps of {self.step:g}"
        return f"{'whole numbers' if self.integer else noun}{step}"

    def number_of(self, value: Any) -> float:
        """Return a finite number as a double."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            meant = ""
            with suppress(ValueError):
                meant = did_you_mean(value, [number_in(value)] if isinstance(value, str) else [])
            raise InputError(f"{safe_repr(value)} is not a number{meant}")
        return float(value)

    def with_bounds(self, bounds: tuple[float, float] | None, *, integers: bool) -> Self:
        """Return the column with these bounds, 0 and 1 by default."""
        low, high = bounds or (0.0, 1.0)
        if self.step is not None:
            low, high = steps.multiples_around(low, high, self.step, steps.decimals_of_step(self.step) or 0)
        if integers or self.integer:
            return replace(self, low=int(low), high=int(high))
        return replace(self, low=low, high=high)

    @property
    def fixed_decimals(self) -> int | None:
        """How many decimals the numbers have as far as this column says; None if they are real."""
        if self.step is not None:
            return steps.decimals_of_step(self.step)
        return 0 if self.integer else self.decimals

    @property
    def grid_step(self) -> float | None:
        """The step."""
        return self.step

    def exact_decimals(self, dtype: dtypes.Dtype) -> int | None:
        """Return the number of decimals, from the schema or else the dtype; None for reals.

        >>> Numerical().exact_decimals(np.dtype("int8")), Numerical().exact_decimals(np.dtype("float64"))
        (0, None)
        """
        if dtypes.family(dtype) == "integer" or self.integer:
            return 0
        decimals = self.decimals if self.step is None else self.fixed_decimals
        scale = dtypes.decimals_of(dtype)
        if scale is None:
            return decimals
        if decimals is None:
            return scale if scale <= dtypes.MOST_SCALE else None
        return min(decimals, scale)

    def limits_of(self, dtype: dtypes.Dtype) -> tuple[float, float]:
        """Return the smallest and the largest number that the dtype can hold."""
        kind = dtypes.family(dtype)
        if kind == "integer":
            range_of_dtype = np.iinfo(dtypes.number_type(dtype))
            return float(range_of_dtype.min), dtypes.largest_double(range_of_dtype.max)
        if kind == "decimal":
            return -dtypes.largest_decimal(dtype), dtypes.largest_decimal(dtype)
        return -math.inf, math.inf

    def bounds_cells(self, dtype: dtypes.Dtype) -> BoundsGrid:
        """Return the cells over all numbers that the dtype can hold."""
        decimals, floats = self.exact_decimals(dtype), dtypes.real_type(dtype)
        return BoundsGrid.numbers(decimals=decimals, dtype=floats, limits=self.limits_of(dtype))

    def known_by_dtype(self, dtype: dtypes.Dtype) -> Self:
        """Return a column of whole numbers if the dtype holds no others."""
        is_open = self.integer is None and self.decimals is self.step is None
        return replace(self, integer=True) if is_open and dtypes.family(dtype) == "integer" else self

    def lattices(self, dtype: dtypes.Dtype) -> tuple[steps.Lattice, ...]:
        """Return the round numbers that are coarser than the step or the decimals."""
        decimals = self.exact_decimals(dtype)
        return steps.coarser(steps.NUMBERS, self.step or (0.0 if decimals is None else 10.0**-decimals))

    def on_lattice(self, step: float, dtype: dtypes.Dtype) -> Self | None:
        """Return the column with this step; None if decimals are fixed by the schema or the dtype."""
        scale = dtypes.decimals_of(dtype)
        if self.decimals is not None or (scale is not None and scale <= dtypes.MOST_SCALE):
            return None
        return replace(self, step=int(step) if step == round(step) else step)

    @property
    def data_type(self) -> str:
        """Whether the numbers are whole."""
        return "Integer" if self.fixed_decimals == 0 else "Float"

    def neighbour(self, value: Any, by: int) -> Any:
        """Return the next number of the decimals of the column, or of a double."""
        decimals = 0 if self.integer else self.decimals
        if decimals is None:
            return float(np.nextafter(value, by * np.inf))
        if round(value, decimals) != value:
            return value  # no number of the column lies there
        after = round(value + by * 10**-decimals, decimals)
        return int(after) if decimals == 0 else after

    def value_of(self, text: str) -> float:
        """Return the number."""
        return number_in(text)

    def measured(self, cells: pd.Series) -> Floats:
        """Return the cells as doubles; each distinct one is parsed once."""
        if dtypes.family(cells.dtype) in ("integer", "real"):
            return finite(cells.to_numpy(dtype=np.float64, na_value=np.nan))
        indices, values = distinct(cells)
        return np.append(self._numbers(values), np.nan)[indices]

    def own_grid(self, dtype: dtypes.Dtype) -> Grid:
        """Return the grid of the encoder in doubles: the dtypes of the tables may differ."""
        is_whole = self.integer is None and self.decimals is None and dtypes.family(dtype) == "integer"
        column = replace(self, integer=True) if is_whole else self
        return column._grid(np.dtype(np.float64), "real")

    def words_on(self, grid: Grid, dtype: dtypes.Dtype) -> RangeWords:
        """Return the function that writes ranges of numbers."""
        return grid_words(grid)

    def numbers(self, cells: pd.Series) -> Floats:
        """Return the cells as numbers."""
        if self.format is not None or dtypes.family(cells.dtype) == "text":
            return self.measured(cells)
        return finite(np.asarray(cells.astype("Float64").to_numpy(np.float64, na_value=np.nan)))

    def as_typed(self, cells: pd.Series) -> pd.Series:
        """Return texts as numbers."""
        return pd.Series(self.numbers(cells), cells.index)

    def make_encoder(self, dtype: dtypes.Dtype, family: dtypes.Family) -> NumericalEncoder:
        """Return the encoder; refuse a dtype that cannot hold the bounds, or is too coarse for the step."""
        return NumericalEncoder(self._grid(dtype, family), dtype, self.form, self.exact_decimals(dtype))

    def _grid(self, dtype: dtypes.Dtype, kind: dtypes.Family) -> Grid:
        low, high = self._ends
        if kind not in ("integer", "real", "decimal", "object") and not (kind == "text" and self.format):
            hint = FOR_FAMILY.get(kind, "Categorical([...]), or convert it to numbers")
            raise InputError(f"{dtypes.its(dtype)}, not numbers: use {hint}")
        floats = np.dtype(np.float64)
        if kind == "integer":
            if self.integer is False or self.fixed_decimals:
                raise InputError(f"{dtypes.its(dtype)}: its numbers are whole, so say integer=True")
            range_of_dtype = np.iinfo(dtypes.number_type(dtype))
            if low < range_of_dtype.min or high > range_of_dtype.max:
                raise InputError(f"{dtypes.its(dtype)}, which cannot hold the bounds {low} to {high}")
        elif kind == "real":
            floats = dtypes.number_type(dtype)
        elif kind == "decimal" and max(abs(low), abs(high)) > dtypes.largest_decimal(dtype):
            raise InputError(f"{dtypes.its(dtype)}, which cannot hold the bounds {low} to {high}")
        if kind == "decimal" and dtype.pyarrow_dtype.scale < 0:  # the dtype holds multiples of 10 or 100
            raise InputError(f"{dtypes.its(dtype)}, of a negative scale: convert it to integers")
        decimals = self.exact_decimals(dtype)
        if decimals is not None and (grid := self._exact_grid(decimals, floats, dtype)) is not None:
            return grid
        if np.isnan(spacing(low, high, floats)):
            raise InputError(f"{dtypes.its(dtype)}, which cannot hold the bounds {low} to {high}")
        low, high = (float(floats.type(bound)) for bound in (low, high))  # rounded as in the dtype
        return Grid.real(low, high, bins=self.bins, dtype=floats)

    @property
    def _ends(self) -> tuple[float, float]:
        """The bounds as they were given, or the outermost multiples of the step within them."""
        return (self.low, self.high) if self.step is None else self.bounds  # type: ignore[return-value]

    def _exact_grid(self, decimals: int, floats: np.dtype, dtype: dtypes.Dtype) -> Grid | None:
        """Return the grid of all numbers with these decimals; None if doubles do not tell them apart.

        Then the numbers are encoded as reals, and `decode` rounds them.
        """
        low, high = self._ends
        settings.check_decimals(low, high, decimals)
        if self.step is not None and round(self.step, decimals) != self.step:
            raise InputError(f"{dtypes.its(dtype)}, too coarse for a step of {self.step}")
        if not holds(floats, low, high, decimals) and decimals and floats != np.float64:
            raise InputError(f"{dtypes.its(dtype)}, too coarse for {decimals} decimals from {low} to {high}")
        step = self.step or 10.0**-decimals
        if not holds(floats, low / step, high / step, 0) and not holds(floats, low, high, decimals):
            return None
        return Grid.exact(low, high, decimals=decimals, bins=self.bins, step=self.step)

    def _numbers(self, cells: Sequence[object]) -> Floats:
        return numbers(cells) if self.form is None else self.form.numbers(cells)

    def read_texts(self, texts: Sequence[str | None], csv_format: CsvFormat) -> pd.Series:
        """Return numbers, whole ones if the schema says so."""
        if self.format is not None:
            return self._typed(self._numbers(texts))
        if not csv_format.spells_plainly:
            texts = [None if text is None else csv_format.plain_number(text) for text in texts]
        try:
            read = finite(np.array([np.nan if text is None else float(text) for text in texts], np.float64))
        except ValueError:  # one of them is no plain number
            read = numbers(texts)
        return self._typed(read)

    def write_texts(self, cells: pd.Series, csv_format: CsvFormat) -> pd.Series:
        """Return numbers as text in the format of the column, or with its decimals."""
        kind = dtypes.family(cells.dtype)
        if self.form is not None and kind in ("integer", "real"):
            spell = partial(self.form.spell, decimals=self.fixed_decimals)
            return as_texts(cells, cells.map(spell, na_action="ignore"))
        decimals = 0 if self.integer else self.decimals
        return csv_format.texts(cells, decimals if kind == "real" else None)

    def _typed(self, read: Floats) -> pd.Series:
        if self.fixed_decimals != 0:
            return pd.Series(read)
        missing = np.isnan(read)  # clipping keeps too large numbers out of bounds
        integers = np.rint(np.clip(np.where(missing, 0, read), -(2.0**63), dtypes.largest_double(2**63 - 1)))
        return pd.Series(pd.arrays.IntegerArray(integers.astype(np.int64), missing))
