"""Column: all that differs between the kinds of column, which are listed in `columns`.

A kind is a frozen dataclass whose fields are its settings in a schema file. It makes the encoder for a dtype,
reads the texts of a file, and says what it does. Constraints and encoders see its values as numbers: a listed
value is its place in the list, a time its steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Self

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError
from privsyn.marginals.types import Floats
from privsyn.table.encoding.bounds_cells import BoundsGrid
from privsyn.table.encoding.dtypes import TEXT, Dtype, Family, dtype_text, family, is_wide_float, its
from privsyn.table.encoding.encoders import Encoder
from privsyn.table.encoding.heaps import Lattice
from privsyn.table.encoding.parsing import convert_distinct
from privsyn.table.encoding.steps import multiples_within
from privsyn.table.schema.csv_format import CsvFormat
from privsyn.table.schema.plain_values import changed_settings

HARDLY = 2.0**-20
"""The step of real numbers, in parts of the distance of their bounds: too small to notice."""


class Column(ABC):  # noqa: B024  # a kind that is never counted needs no method
    """What the owner declares public about one column."""

    @property
    def is_public(self) -> bool:
        """Whether nothing about the column is left to be found under privacy."""
        return True

    @classmethod
    def register_as(cls, kind: str) -> None:
        """Give the kind its name in a schema file."""
        COLUMNS[kind] = cls

    def known_by_dtype(self, dtype: Dtype) -> Self:
        """Return the column with what a dtype makes public."""
        return self

    @classmethod
    def draft(cls, present: pd.Series, nullable: bool) -> Coded | None:
        """Return a column of this kind that fits cells, none of them missing; None if the kind does not."""
        return None

    def review(self, cells: pd.Series | None) -> str:
        """Return the comment above the column in a draft from its cells, or from its name and dtype alone."""
        return ""

    @property
    def sentence(self) -> str:
        """What the column does, in a sentence or two of `Schema.explain`."""
        return f"values of kind {type(self).__name__}, which are never counted."

    def to_plain(self, what: str) -> dict[str, Any]:
        """Return the settings that differ from their defaults as plain data; `what` begins an error."""
        return changed_settings(what, self)

    def kept_dtype(self, dtype: Dtype) -> str | None:
        """Return as text the dtype in which the codec keeps the column; None if that cannot be said."""
        return dtype_text(dtype)

    def read_cells(self, cells: pa.ChunkedArray, csv_format: CsvFormat) -> pd.Series:
        """Return texts of a file as cells in the dtype of the column; null is a missing cell."""
        return cells.to_pandas().astype(TEXT)


MOST_NAMED = 10
"""Values that are named one by one."""


def listed(values: Sequence[Any]) -> str:
    """Return values as text, and the number of those that are left out.

    >>> listed(["a", "b"]), listed(range(13))
    ("'a', 'b'", '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 3 more')
    """
    named = ", ".join(map(repr, values[:MOST_NAMED]))
    return f"{named} and {len(values) - MOST_NAMED} more" if len(values) > MOST_NAMED else named


COLUMNS: dict[str, type[Column]] = {}
"""Each kind of column by its name in a schema file."""

FOR_FAMILY: dict[Family, str] = {
    "datetime": "Datetime(low, high)",
    "time": "Time()",
    "duration": "Duration(low, high)",
}
"""The kind that holds the cells of a family of dtypes, if it alone does."""


class Coded(Column):
    """A column that is counted."""

    nullable: bool
    missing: str | Sequence[str]

    @property
    def sentence(self) -> str:
        """What the values are, and whether cells may be missing."""
        if not self.nullable:
            return f"{self.values_sentence} No cell is missing."
        also = f"; {listed(self.missing)} mean that in a file" if self.missing else ""
        return f"{self.values_sentence} A cell may be missing{also}."

    def review(self, cells: pd.Series | None) -> str:
        """Return what was read from the rows, and a question to the reviewer."""
        if cells is None:
            return self.facts_wanted
        if cells.isna().all():
            return ""
        facts = [*self.facts_read(cells), *([] if self.nullable else ["no cell missing"])]
        return " ".join(filter(None, (f"READ: {', '.join(facts)}." if facts else "", self.doubt)))

    def facts_read(self, cells: pd.Series) -> list[str]:
        """Return which settings of a draft were read from the rows."""
        return []

    @property
    def facts_wanted(self) -> str:
        """Which public facts the reviewer may add; empty if none is missing."""
        return ""

    @property
    def doubt(self) -> str:
        """The question to the reviewer whether another kind fits better; empty if there is none."""
        return ""

    @property
    @abstractmethod
    def fate(self) -> str:
        """What becomes of cells that do not fit."""

    def as_read(self, cells: pd.Series) -> pd.Series:
        """Return drafted cells, missing where the column has no such value."""
        return cells

    def numbers(self, cells: pd.Series) -> Floats | None:
        """Return drafted cells as numbers whose order can be compared, NaN if missing; None if it cannot."""
        return None

    @property
    @abstractmethod
    def values_sentence(self) -> str:
        """What the values are, in one sentence."""

    def encoder(self, dtype: Dtype) -> Encoder:
        """Return the encoder of the column; raise `InputError` if the dtype cannot hold its values.

        >>> from privsyn import Numerical
        >>> Numerical(0, 300).encoder(np.dtype("uint8"))
        Traceback (most recent call last):
        privsyn.errors.InputError: its dtype is uint8, which cannot hold the bounds 0 to 300
        """
        kind = family(dtype)
        if kind == "binary":
            raise InputError(f"{its(dtype)}: convert it to numbers or text, or leave it out with kind: text")
        if kind is None or dtype_text(dtype) is None:
            common = "float64" if is_wide_float(dtype) else "numbers, text, dates or categories"
            raise InputError(f"{its(dtype)}: convert it to {common}")
        return self.make_encoder(dtype, kind)

    def bounds_cells(self, dtype: Dtype) -> BoundsGrid | None:
        """Return the public cells in which numbers are counted to find bounds; None if values are found."""
        return None

    @abstractmethod
    def answered(self, found: Any, dtype: Dtype, marks: Sequence[str]) -> Self:
        """Return the column with what was found under privacy.

        Parameters
        ----------
        found : tuple of values or pair of bounds, optional
            None if nothing was found.
        dtype : Dtype
        marks : sequence of str
            The texts that stand for a missing cell.
        """

    def exact_decimals(self, dtype: Dtype) -> int | None:
        """Return the number of decimals, from the schema or else the dtype; None for reals."""
        return self.fixed_decimals

    def lattices(self, dtype: Dtype) -> tuple[Lattice, ...]:
        """Return the lattices whose numbers are counted, coarser than the public grid; the coarsest first."""
        return ()

    def on_lattice(self, step: float, dtype: Dtype) -> Self | None:
        """Return the column with a step that was found; None if the schema has more to say about numbers."""
        return None

    def finest(self, filled: Self, dtype: Dtype) -> Self:
        """Return the completed column in the finest unit that this one, left open, may have."""
        return filled

    def make_encoder(self, dtype: Dtype, family: Family) -> Encoder:
        """Return the encoder for a dtype of a family; raise `InputError` if it cannot hold the values."""
        raise NotImplementedError(f"a {type(self).__name__} has no encoder: give `make_encoder`")

    def read_cells(self, cells: pa.ChunkedArray, csv_format: CsvFormat) -> pd.Series:
        """Return texts of a file as cells in the dtype of the column, each distinct one read once."""
        return convert_distinct(cells, lambda texts: self.read_texts(texts, csv_format))

    def read_texts(self, texts: Sequence[str | None], csv_format: CsvFormat) -> pd.Series:
        """Return texts as cells, each alone, of the same dtype whatever they are. Default: text."""
        return pd.Series(texts, dtype=TEXT)

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """The least and the largest number; the values or bounds are known."""

    @abstractmethod
    def number_of(self, value: Any) -> float:
        """Return the number of a value that a constraint names; refuse one that the column cannot have."""

    @abstractmethod
    def intervals_of(self, ends: Mapping[str, Any]) -> tuple[Floats, Floats]:
        """Return the low and high ends of the intervals in a range, whose `low` or `high` may be absent."""

    @property
    def fixed_decimals(self) -> int | None:
        """How many decimals the numbers have; None if they are real."""
        return 0

    @property
    def resolution(self) -> float:
        """The least distance of two numbers."""
        if self.fixed_decimals is not None:
            return 10.0**-self.fixed_decimals
        low, high = self.bounds
        return max((high - low) * HARDLY, 1e-300)

    @property
    @abstractmethod
    def public_hint(self) -> str:
        """What to do, and how, to make the values or bounds public."""


class Ordinal(Coded):
    """A column whose values have an order, and lie between two bounds."""

    low: Any
    high: Any
    bins: int

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
    def facts_wanted(self) -> str:
        """The bounds."""
        return "" if self.is_public else "low: , high: ?"

    @property
    def fate(self) -> str:
        """What cells become that are out of bounds, or cannot be read."""
        other = "missing if unreadable" if self.nullable else "the lower bound if missing or unreadable"
        return f"are clipped to the bounds, or {other}"

    def bounds_cells(self, dtype: Dtype) -> BoundsGrid:
        """Return zero, and cells that double in width on both sides of it."""
        floats = np.dtype(np.float64)
        return BoundsGrid.numbers(decimals=self.fixed_decimals, dtype=floats, limits=self.limits)

    def answered(self, found: tuple[float, float] | None, dtype: Dtype, marks: Sequence[str]) -> Self:
        """Return the column with the bounds found."""
        return self.with_bounds(found, whole=family(dtype) == "integer")

    def widest(self, dtype: Dtype) -> Self:
        """Return the column with bounds in which the encoder reads every number. Default: any bounds."""
        return self if self.is_public else self.answered(None, dtype, ())

    def with_bounds(self, found: tuple[float, float] | None, *, whole: bool) -> Self:
        """Return the column with bounds that were found under privacy.

        Parameters
        ----------
        found : pair of float, optional
            The bounds as numbers. Default: bounds for a column in which nothing was found.
        whole : bool
            Whether the dtype of the column holds whole numbers only.
        """
        raise InputError(self.public_hint)

    @property
    def public_hint(self) -> str:
        """What to do to make the bounds public."""
        return f"give its bounds: {type(self).__name__}(low, high)"


def _end(bound: Any) -> str:
    """Return a bound without an exponent and without midnight.

    >>> _end(1e-05), _end(90.0), _end(7)
    ('0.00001', '90.0', '7')
    """
    text = str(bound).removesuffix(" 00:00:00")
    return np.format_float_positional(bound, trim="-") if isinstance(bound, float) and "e" in text else text
