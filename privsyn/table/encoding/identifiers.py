"""Generate identifiers, without reading the data."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
import pandas as pd

from privsyn.errors import InputError, replace_errors
from privsyn.table.encoding.dtypes import Dtype, family, number_type, shown_dtype, wide_dtype
from privsyn.table.schema.generated import Faker, Generated, Identifier, Pattern
from privsyn.table.schema.schema import Schema

_NAMES = (
    r"id|uuid|guid|ssn|iban|e?mail|phone|telephone|passport|mrn|imei|isbn",  # a word of the name
    r"(?:account|customer|patient|person|member|employee|invoice|order|serial|record) ?(?:no|nr|number|code)",
)
_NAMING = re.compile(rf"(?:^| )(?:{'|'.join(_NAMES)})(?:$| )")


class IdentifierMaker(ABC):
    """Base of the makers of identifiers, which depend on no cell of the table."""

    @abstractmethod
    def make(self, n: int, rng: np.random.Generator, start: int = 0) -> pd.Series:
        """Return `n` identifiers that follow the first `start` ones."""


@dataclass(frozen=True)
class NumberMaker(IdentifierMaker):
    """Numbers rows from 1. A narrow dtype is replaced by a wider one, whatever the number of rows."""

    dtype: Dtype

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", wide_dtype(self.dtype))

    def make(self, n: int, rng: np.random.Generator, start: int = 0) -> pd.Series:
        """Return the numbers; raise `InputError` if the dtype is too small for them."""
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
class TextMaker(IdentifierMaker):
    """Formats numbers from 1 as text, or draws random UUIDs."""

    dtype: Dtype
    format: str | None

    def make(self, n: int, rng: np.random.Generator, start: int = 0) -> pd.Series:
        """Return the texts."""
        if self.format is not None:
            numbers = range(start + 1, start + n + 1)
            return pd.Series([self.format.format(number) for number in numbers], dtype=self.dtype)
        bits = rng.bytes(16 * n)
        names = [str(UUID(bytes=bits[16 * row : 16 * row + 16], version=4)) for row in range(n)]
        return pd.Series(names, dtype=self.dtype)


@dataclass(frozen=True)
class PatternMaker(IdentifierMaker):
    """Texts of a pattern, all different."""

    dtype: Dtype
    pattern: str

    def make(self, n: int, rng: np.random.Generator, start: int = 0) -> pd.Series:
        """Return the texts; raise `InputError` if the pattern has fewer."""
        pattern = Pattern(self.pattern)
        if start + n > pattern.size:
            raise InputError(f"its pattern has {pattern.size:,} texts, for {start + n:,} rows: lengthen it")
        return pd.Series([pattern.scattered(row) for row in range(start, start + n)], dtype=self.dtype)


@dataclass(frozen=True)
class FakerMaker(IdentifierMaker):
    """Realistic stand-ins of the package Faker, which is seeded by the sample's own generator."""

    dtype: Dtype
    column: Faker

    def __post_init__(self) -> None:
        with replace_errors('needs Faker: run pip install "privsyn[faker]"', ImportError):
            from faker.config import AVAILABLE_LOCALES
        if self.column.locale not in AVAILABLE_LOCALES:
            raise InputError(f"Faker has no locale {self.column.locale}")

    def make(self, n: int, rng: np.random.Generator, start: int = 0) -> pd.Series:
        """Return the texts, each on one line."""
        import faker

        source = faker.Faker(self.column.locale)
        source.seed_instance(int(rng.integers(2**63)))
        provide = getattr(source, self.column.provider)
        texts = [str(provide()).replace("\n", ", ") for _ in range(n)]
        if self.column.unique:  # what follows the last hyphen before the @ is the number of the row alone
            parts = [text.partition("@") for text in texts]
            texts = [f"{name}-{row}{at}{rest}" for row, (name, at, rest) in enumerate(parts, start + 1)]
        return pd.Series(texts, dtype=self.dtype)


def make_maker(column: Generated, dtype: Dtype) -> IdentifierMaker:
    """Return the maker of identifiers of a dtype; raise `InputError` if the dtype cannot hold them.

    >>> make_maker(Identifier(), np.dtype("int64")).make(3, np.random.default_rng(0)).tolist()
    [1, 2, 3]
    >>> make_maker(Identifier("N{}"), np.dtype("int64"))
    Traceback (most recent call last):
    privsyn.errors.InputError: its dtype is int64: leave out the format, or make it text
    """
    kind = family(dtype)
    pattern = getattr(column, "pattern", None)
    if (isinstance(column, Faker) or pattern is not None) and kind not in ("text", "object"):
        raise InputError(f"its dtype is {dtype}, and generated cells are text: make it text")
    if isinstance(column, Faker):
        return FakerMaker(dtype, column)
    if not isinstance(column, Identifier):
        raise TypeError(f"no maker for a {type(column).__name__}")
    if pattern is not None:
        return PatternMaker(dtype, pattern)
    if kind in ("integer", "real"):
        if column.format is not None:
            raise InputError(f"its dtype is {dtype}: leave out the format, or make it text")
        return NumberMaker(dtype)
    if kind in ("text", "object"):
        return TextMaker(dtype, column.format)
    raise InputError(f"an identifier is text or a whole number, not {kind or shown_dtype(dtype)}: convert it")


def names_rows(name: str) -> bool:
    """Return whether the name of a column looks like that of an identifier.

    >>> [names_rows(name) for name in ("customer_id", "PatientNumber", "e-mail", "Id", "paid", "width")]
    [True, True, True, True, False, False]
    """
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return _NAMING.search(re.sub(r"[\W_]+", " ", words.replace("e-mail", "email")).lower()) is not None


def can_name(dtype: Dtype) -> bool:
    """Return whether a dtype can hold identifiers."""
    return family(dtype) in ("text", "object", "integer", "real", "binary")


def with_identifiers(schema: Schema, dtypes: Mapping[str, Dtype]) -> Schema:
    """Return an inferred schema in which columns with names of identifiers are identifiers.

    This uses only names and dtypes, which are public, and no cell.
    """
    columns = {
        name: Identifier() if name in dtypes and names_rows(name) and can_name(dtypes[name]) else column
        for name, column in schema.columns.items()
    }
    return replace(schema, columns=columns)


def called_identifiers(schema: Schema) -> tuple[str, ...]:
    """Return the columns with generated identifiers whose names look like identifiers."""
    return tuple(
        name for name, column in schema.columns.items() if isinstance(column, Identifier) and names_rows(name)
    )
