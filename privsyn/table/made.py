"""Columns that are made without the data: identifiers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.table.dtypes import Dtype, family, number_type
from privsyn.table.kinds import Identifier


class Maker(ABC):
    """A column whose cells depend on no cell of the table."""

    @abstractmethod
    def make(self, n: int, rng: np.random.Generator, start: int = 0) -> pd.Series:
        """The column of `n` rows, before which `start` others have been made."""


@dataclass(frozen=True)
class NumberMaker(Maker):
    """Whole numbers from 1."""

    dtype: Dtype

    def make(self, n: int, rng: np.random.Generator, start: int = 0) -> pd.Series:
        """The numbers; an `InputError` if the dtype does not reach so far."""
        floats = family(self.dtype) == "real"
        kind = number_type(self.dtype)
        most = 2 ** (np.finfo(kind).nmant + 1) if floats else np.iinfo(kind).max
        if start + n > most:
            rows = start + n
            raise InputError(
                f"its dtype is {self.dtype}, which cannot number {rows} rows: give it a wider one"
            )
        return pd.Series(np.arange(start + 1, start + n + 1)).astype(self.dtype)


@dataclass(frozen=True)
class TextMaker(Maker):
    """Text around whole numbers from 1, or random UUIDs."""

    dtype: Dtype
    format: str | None

    def make(self, n: int, rng: np.random.Generator, start: int = 0) -> pd.Series:
        """The names."""
        if self.format is not None:
            numbers = range(start + 1, start + n + 1)
            return pd.Series([self.format.format(number) for number in numbers], dtype=self.dtype)
        bits = rng.bytes(16 * n)
        names = [str(UUID(bytes=bits[16 * row : 16 * row + 16], version=4)) for row in range(n)]
        return pd.Series(names, dtype=self.dtype)


def make_maker(column: Identifier, dtype: Dtype) -> Maker:
    """The maker of identifiers of a dtype; an `InputError` where it can hold none.

    >>> make_maker(Identifier(), np.dtype("int64")).make(3, np.random.default_rng(0)).tolist()
    [1, 2, 3]
    >>> make_maker(Identifier("N{}"), np.dtype("int64"))
    Traceback (most recent call last):
    privsyn.errors.InputError: its dtype is int64: leave out the format, or make it text
    """
    kind = family(dtype)
    if kind in ("integer", "real"):
        if column.format is not None:
            raise InputError(f"its dtype is {dtype}: leave out the format, or make it text")
        return NumberMaker(dtype)
    if kind in ("text", "object"):
        return TextMaker(dtype, column.format)
    raise InputError(f"an identifier is text or a whole number, not {kind or dtype}: convert it")
