"""Column: all that differs between the kinds of column, which are listed in `schema.columns`.

A kind is a frozen dataclass whose fields are its settings in a schema file. It makes the encoder for a dtype,
reads the texts of a file, and says what it does. Constraints and encoders see its values as numbers: a listed
value is its place in the list, a time its steps.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Self

import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats
from privsyn.table.encoding.bounds_cells import BoundsGrid
from privsyn.table.encoding.dtypes import (
    TEXT,
    UNCOUNTED,
    Dtype,
    Family,
    dtype_text,
    family,
    hint_of,
    holds_missing,
    its,
)
from privsyn.table.encoding.encoders import Encoder
from privsyn.table.encoding.parsing import convert_distinct
from privsyn.table.encoding.steps import Lattice
from privsyn.table.kinds.column_settings import changed_settings
from privsyn.table.kinds.csv_format import CsvFormat

HARDLY = 2.0**-20
"""The step of real numbers, in parts of the distance of their bounds: too small to notice."""


class Column(ABC):  # a kind that is never counted needs no method
    """What the owner declares public about one column."""

    __dataclass_fields__: ClassVar[dict[str, Any]]  # each kind is a dataclass

    lists_values: ClassVar[bool] = False
    """Whether the values are a list without an order, in place of numbers or times between bounds."""

    has_numbers: ClassVar[bool] = False
    """Whether the values are numbers, which can be averaged."""

    left_out: ClassVar[bool] = False
    """Whether the synthetic table lacks the column."""

    keep: float | None = None
    """The probability with which respondents kept a cell; None unless they randomised the column."""

    other: Hashable = None
    """The value that replaces all values that are not listed, if there is one."""

    @property
    def listed(self) -> tuple[Any, ...]:
        """The public list of values; empty if there is none."""
        return ()

    @property
    def data_type(self) -> str:
        """The type of the cells in the words of schema.org."""
        return "Text"

    @property
    def values_in_words(self) -> str:
        """The values in a few words, for the sheet of a release."""
        return "left out" if self.left_out else "generated"

    @property
    def number_range(self) -> tuple[float, float] | None:
        """The bounds of numbers as they were given; None if they are open, or the values are no numbers."""
        return None

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

    @property
    def sentence(self) -> str:
        """What the column does, in a sentence or two of `Schema.explain`."""
        return f"values of kind {type(self).__name__}, which are never counted."

    def to_plain(self, subject: str) -> dict[str, Any]:
        """Return the settings that differ from their defaults as plain data; `subject` begins an error."""
        return changed_settings(subject, self)

    def kept_dtype(self, dtype: Dtype) -> str | None:
        """Return as text the dtype in which the codec keeps the column; None if that cannot be said."""
        return dtype_text(dtype)

    def read_cells(self, cells: pa.ChunkedArray, csv_format: CsvFormat) -> pd.Series:
        """Return texts of a file as cells in the dtype of the column; null is a missing cell."""
        return cells.to_pandas().astype(TEXT)

    def write_texts(self, cells: pd.Series, csv_format: CsvFormat) -> pd.Series:
        """Return cells as a CSV file has them: as text where the schema says how they are written."""
        return csv_format.texts(cells)

    def output_type(self, kind: pa.DataType, dtype: Dtype) -> pa.DataType:
        """Return the Arrow type of synthetic cells of a dtype, from that of the private column."""
        return kind


COMPARES = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
"""The comparisons that need an order."""


MOST_NAMED = 10
"""Values that are named one by one."""


def number_in(text: str) -> float:
    """Return a text as a number, a whole one if it is written so."""
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def in_words(values: Sequence[Any]) -> str:
    """Return values as text, and the number of those that are left out.

    >>> in_words(["a", "b"]), in_words(range(13))
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

    def may_be_missing(self, dtype: Dtype) -> bool:
        """Return whether cells of this dtype may be missing: NumPy integers and booleans cannot."""
        return self.nullable and holds_missing(dtype)

    @property
    def sentence(self) -> str:
        """What the values are, and whether cells may be missing."""
        if not self.nullable:
            return f"{self.values_sentence} No cell is missing."
        also = f"; {in_words(self.missing)} mean that in a file" if self.missing else ""
        return f"{self.values_sentence} A cell may be missing{also}."

    @property
    @abstractmethod
    def all_values(self) -> Any:
        """Every value except missing, as in a condition of `Forbidden`."""

    @abstractmethod
    def compared(self, sign: str, operands: Sequence[Any]) -> list[Any]:
        """Return the values for which a comparison with some values is true, as disjoint sets.

        Parameters
        ----------
        sign : one of ==, !=, <, <=, >, >=, in, not in
        operands : sequence of values; several only for the last two
        """

    @abstractmethod
    def with_listed(self, values: Sequence[Any]) -> Self:
        """Return the column with these values, or with bounds around them."""

    @abstractmethod
    def like(self, column: Self) -> Self:
        """Return the column with the values or bounds of another one of its kind."""

    def value_of(self, text: str) -> Any:
        """Return the value that a text on the command line means; `ValueError` if it is no number."""
        return text

    def constant_of(self, value: Any) -> Any:
        """Return the value that a constant in a condition means."""
        return value

    def high_end(self, value: Any) -> Any:
        """Return the largest value that the high end of a range means."""
        return value

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
        >>> import numpy as np
        >>> Numerical(0, 300).encoder(np.dtype("uint8"))
        Traceback (most recent call last):
        privsyn.errors.InputError: its dtype is uint8, which cannot hold the bounds 0 to 300
        """
        kind = family(dtype)
        if kind is None or kind in UNCOUNTED or dtype_text(dtype) is None:
            raise InputError(f"{its(dtype)}: {hint_of(dtype)}")
        return self.make_encoder(dtype, kind)

    def bounds_cells(self, dtype: Dtype) -> BoundsGrid | None:
        """Return the public cells in which numbers are counted to find bounds; None if values are found."""
        return None

    @abstractmethod
    def answered(self, answer: Any, dtype: Dtype, marks: Sequence[str]) -> Self:
        """Return the column with what was found under privacy.

        Parameters
        ----------
        answer : tuple of values or pair of bounds, optional
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

    def most_codes(self, dtype: Dtype) -> int:
        """Return the largest number of codes that are made for fine cells; 0 if the values are listed."""
        return 0

    @property
    def counted_cycles(self) -> tuple[str, ...]:
        """The cycles that are counted as attributes beside the date; empty if the column is one attribute."""
        return ()

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
