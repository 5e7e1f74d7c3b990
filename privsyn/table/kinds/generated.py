"""Columns that are never read: the cells of synthetic rows are generated or left out."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import gcd, prod
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError, replace_errors, safe_repr
from privsyn.table.encoding.dtypes import TEXT, UNCOUNTED, Dtype, family, number_type, shown_dtype, wide_dtype
from privsyn.table.kinds.column import Column
from privsyn.table.kinds.column_settings import flag, one_of
from privsyn.table.kinds.csv_format import CsvFormat

_FORMAT = re.compile(r"[^{}]*\{(:0?[0-9]{0,3}[dxX]?)?\}[^{}]*")
"""Text around one number."""

PROVIDERS = (
    *("name", "first_name", "last_name", "email", "user_name", "phone_number", "address", "street_address"),
    *("street_name", "city", "postcode", "country", "company", "job", "iban", "license_plate", "ssn"),
    *("ipv4", "uuid4", "url"),
)
"""What Faker may make. A schema may come from a stranger, so not every function of Faker is called."""

_LOCALE = re.compile(r"[a-z]{2,3}_[A-Z]{2}")


class Generated(Column):
    """A column whose cells are never read: they are generated."""

    @abstractmethod
    def maker(self, dtype: Dtype) -> Maker:
        """Return the maker of the cells of a dtype; raise `InputError` if the dtype cannot hold them."""

    def kept_dtype(self, dtype: Dtype) -> str | None:
        """Return the dtype as text; of bytes, that of the texts that are generated."""
        return "object" if family(dtype) in UNCOUNTED else super().kept_dtype(dtype)

    def read_cells(self, cells: pa.ChunkedArray, csv_format: CsvFormat) -> pd.Series:
        """Return missing cells, which are not read, in a dtype that follows from the schema."""
        return pd.Series([None] * len(cells), dtype=TEXT if self.is_text else "Int64")

    @property
    def is_text(self) -> bool:
        """Whether the generated cells are text; else they are numbers, or text if the dtype is."""
        return True


@dataclass(frozen=True)
class Identifier(Generated):
    r"""A column that names the row. Its cells are never read: synthetic rows get generated identifiers.

    Parameters
    ----------
    format : str, optional
        Text around one running number, as in ``"CUST-{:06d}"``. Default: whole numbers from 1 for a dtype of
        numbers, and for a declared column of a CSV; random UUIDs for a dtype of text.
    pattern : str, optional
        A regular expression that the identifiers match, such as ``"[A-Z]{2}-\d{6}"``. See `Pattern`. No two
        rows of a sample have the same identifier.

    Examples
    --------
    >>> Identifier("CUST-{:06d}").format.format(7)
    'CUST-000007'
    """

    format: str | None = None
    pattern: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.pattern is not None:
            if self.format is not None:
                raise InputError("format and pattern exclude each other: give one of them")
            Pattern(self.pattern)  # refuses one that cannot be read
        if self.format is not None and not (isinstance(self.format, str) and _FORMAT.fullmatch(self.format)):
            raise InputError(
                f"format {safe_repr(self.format)} is not text around one number, such as 'CUST-{{:06d}}'"
            )

    @property
    def sentence(self) -> str:
        """What synthetic rows get."""
        if self.pattern is not None:
            made = f"texts like {self.pattern}"
        else:
            made = "generated ones" if self.format is None else f"{self.format!r}, numbered from 1"
        return f"names the row. Its cells are never read; synthetic rows get {made}; none is missing."

    @property
    def is_text(self) -> bool:
        """Whether a format or a pattern is given."""
        return self.format is not None or self.pattern is not None

    def output_type(self, kind: pa.DataType, dtype: Dtype) -> pa.DataType:
        """Return a type of numbers that is wide enough for the identifiers."""
        return pa.from_numpy_dtype(number_type(dtype)) if pa.types.is_primitive(kind) else kind

    def maker(self, dtype: Dtype) -> Maker:
        """Return the maker of identifiers.

        >>> Identifier().maker(np.dtype("int64"))(3, np.random.default_rng(0)).tolist()
        [1, 2, 3]
        >>> Identifier("N{}").maker(np.dtype("int64"))
        Traceback (most recent call last):
        privsyn.errors.InputError: its dtype is int64: leave out the format, or make it text
        """
        kind = family(dtype)
        if self.pattern is not None:
            _check_text(dtype)
            return partial(_texts_of_pattern, dtype, self.pattern)
        if kind in ("integer", "real"):
            if self.format is not None:
                raise InputError(f"its dtype is {dtype}: leave out the format, or make it text")
            return partial(_numbers, wide_dtype(dtype))
        if kind in ("text", "object"):
            return partial(_texts, dtype, self.format)
        raise InputError(
            f"an identifier is text or a whole number, not {kind or shown_dtype(dtype)}: convert it"
        )


@dataclass(frozen=True)
class Faker(Generated):
    """A column of realistic stand-ins, such as names, made by the package Faker. Its cells are never read.

    Parameters
    ----------
    provider : str
        What is made: one of `PROVIDERS`, such as "name", "email", "address" or "phone_number".
    locale : str
        Language and country, such as "de_DE".
    unique : bool
        Whether each text ends in the number of its row, so that no two rows have the same.

    Examples
    --------
    >>> Faker("name", locale="de_DE").is_public
    True
    """

    provider: str = "name"
    locale: str = field(default="en_US", kw_only=True)
    unique: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        one_of("provider", self.provider, PROVIDERS)
        if not isinstance(self.locale, str) or not _LOCALE.fullmatch(self.locale):
            raise InputError(f"locale {safe_repr(self.locale)} is not a language and country such as de_DE")
        object.__setattr__(self, "unique", flag("unique", self.unique))

    @property
    def sentence(self) -> str:
        """What synthetic rows get."""
        made = f"stand-ins of Faker, and none is missing: {self.provider} ({self.locale})"
        return f"never read; synthetic rows get {made}."

    def maker(self, dtype: Dtype) -> Maker:
        """Return the maker of texts."""
        _check_text(dtype)
        with replace_errors('needs Faker: run pip install "privsyn[faker]"', ImportError):
            from faker.config import AVAILABLE_LOCALES
        if self.locale not in AVAILABLE_LOCALES:
            raise InputError(f"Faker has no locale {self.locale}")
        return partial(_stand_ins, dtype, self)


@dataclass(frozen=True)
class Text(Column):
    """A column of free text, which the synthetic table leaves out. Its cells are never read.

    Examples
    --------
    >>> Text().is_public
    True
    """

    left_out = True

    @property
    def sentence(self) -> str:
        """That the column is left out."""
        return "free text. It is never read, and the synthetic table lacks it."

    def kept_dtype(self, dtype: Dtype) -> str | None:
        """Return any dtype, as no cell is read or written."""
        return "object"


def _check_text(dtype: Dtype) -> None:
    if family(dtype) not in ("text", "object"):
        raise InputError(f"its dtype is {dtype}, and generated cells are text: make it text")


Maker = Callable[..., pd.Series]
"""Called as ``maker(n, rng, start)``: returns `n` cells after the first `start`. It sees no table."""


def _numbers(dtype: Dtype, n: int, rng: np.random.Generator, start: int = 0) -> pd.Series:
    """Number rows from 1; raise `InputError` if the dtype is too small for them."""
    kind = number_type(dtype)
    largest = 2 ** (np.finfo(kind).nmant + 1) if family(dtype) == "real" else np.iinfo(kind).max
    if start + n > largest:
        raise InputError(f"its dtype is {dtype}, which cannot number {start + n} rows: give it a wider one")
    return pd.Series(np.arange(start + 1, start + n + 1)).astype(dtype)


def _texts(dtype: Dtype, format: str | None, n: int, rng: np.random.Generator, start: int = 0) -> pd.Series:  # noqa: A002
    """Format numbers from 1 as text, or draw random UUIDs."""
    if format is not None:
        return pd.Series([format.format(number) for number in range(start + 1, start + n + 1)], dtype=dtype)
    bits = rng.bytes(16 * n)
    names = [str(UUID(bytes=bits[16 * row : 16 * row + 16], version=4)) for row in range(n)]
    return pd.Series(names, dtype=dtype)


def _texts_of_pattern(dtype: Dtype, text: str, n: int, rng: np.random.Generator, start: int = 0) -> pd.Series:
    """Return texts of a pattern, all different; raise `InputError` if it has fewer."""
    pattern = Pattern(text)
    if start + n > pattern.size:
        raise InputError(f"its pattern has {pattern.size:,} texts, for {start + n:,} rows: lengthen it")
    return pd.Series([pattern.scattered(row) for row in range(start, start + n)], dtype=dtype)


def _stand_ins(dtype: Dtype, column: Faker, n: int, rng: np.random.Generator, start: int = 0) -> pd.Series:
    """Return realistic texts, each on one line. Faker is seeded by the sample's own generator."""
    import faker

    source = faker.Faker(column.locale)
    source.seed_instance(int(rng.integers(2**63)))
    provide = getattr(source, column.provider)
    texts = [str(provide()).replace("\n", ", ") for _ in range(n)]
    if column.unique:  # what follows the last hyphen before the @ is the number of the row alone
        parts = [text.partition("@") for text in texts]
        texts = [f"{name}-{row}{at}{rest}" for row, (name, at, rest) in enumerate(parts, start + 1)]
    return pd.Series(texts, dtype=dtype)


_PART = re.compile(
    r"(?:(?P<digit>\\d)|\\(?P<escaped>[^A-Za-z0-9])|\[(?P<set>[^\]\\^\[]+)\]"
    r"|\((?P<group>[\w -]+(?:\|[\w -]+)*)\)|(?P<plain>[^\\\[\](){}?*+.|^$]))"
    r"(?P<times>\{(?P<low>\d{1,2})(?:,(?P<high>\d{1,2}))?\}|\?)?"
)


class Pattern:
    r"""The texts that match a small regular expression, each with a number.

    It may have letters, escaped signs, ``\d``, sets such as ``[A-Z0-9]``, groups such as ``(EU|US)``, and
    after each of these ``{3}``, ``{2,4}`` or ``?``. At most one part may vary in length. Then no text can
    be read in two ways, so different numbers have different texts.

    Examples
    --------
    >>> pattern = Pattern(r"(EU|US)-[A-C]\d{2}")
    >>> pattern.size, pattern.text(0), pattern.text(599)
    (600, 'EU-A00', 'US-C99')
    """

    def __init__(self, pattern: object) -> None:
        wrong = InputError(
            f"pattern {safe_repr(pattern)}: write letters, \\d, sets such as [A-Z], groups such as (EU|US),"
            " each followed by {3}, {2,4} or ? if it repeats; at most one part may vary in length"
        )
        if not isinstance(pattern, str) or not pattern:
            raise wrong
        parts, at = [], 0
        while at < len(pattern):
            match = _PART.match(pattern, at)
            if match is None:
                raise wrong
            parts.append(_Part(match))
            at = match.end()
        varied = sum(part.low != part.high or part.is_uneven for part in parts)
        if varied > 1 or any(not part.choices or part.low > part.high or part.is_wild for part in parts):
            raise wrong
        self.parts = parts

    @cached_property
    def size(self) -> int:
        """The number of texts."""
        return prod(part.size for part in self.parts)

    def text(self, number: int) -> str:
        """Return the text with a number from 0 to `size` - 1."""
        texts = []
        for part in reversed(self.parts):
            number, choice = divmod(number, part.size)
            texts.append(part.text(choice))
        return "".join(reversed(texts))

    def scattered(self, number: int) -> str:
        """Return another text for each number below `size`, in an order that looks random."""
        step = self.size * 618_033_988_749_895 // 10**15 or 1  # the golden ratio
        while gcd(step, self.size) > 1:
            step += 1
        return self.text((self.size // 3 + number * step) % self.size)


class _Part:
    """Some texts, repeated from `low` to `high` times."""

    def __init__(self, match: re.Match[str]) -> None:
        if match["digit"]:
            choices = list("0123456789")
        elif match["set"]:
            choices = _in_set(match["set"])
        else:
            choices = match["group"].split("|") if match["group"] else [match["escaped"] or match["plain"]]
        self.choices = list(dict.fromkeys(choices))
        times = match["times"]
        self.low = int(match["low"] or 0) if times else 1
        self.high = (int(match["high"] or match["low"]) if match["low"] else 1) if times else 1

    @property
    def is_uneven(self) -> bool:
        """Whether the choices differ in length."""
        return len({len(choice) for choice in self.choices}) > 1

    @property
    def is_wild(self) -> bool:
        """Whether choices of different lengths repeat: these could be read in two ways."""
        return self.is_uneven and (self.low, self.high) != (1, 1)

    @property
    def size(self) -> int:
        return sum(len(self.choices) ** times for times in range(self.low, self.high + 1))

    def text(self, number: int) -> str:
        base, times = len(self.choices), self.low
        while number >= base**times:
            number -= base**times
            times += 1
        texts = []
        for _ in range(times):
            number, choice = divmod(number, base)
            texts.append(self.choices[choice])
        return "".join(reversed(texts))


def _in_set(text: str) -> list[str]:
    """Return the characters of a set such as ``A-Z0-9_``; none if a range runs backwards."""
    characters, at = [], 0
    while at < len(text):
        if text[at + 1 : at + 2] == "-" and at + 2 < len(text):
            first, last = ord(text[at]), ord(text[at + 2])
            if first > last or last - first > 100:
                return []
            characters += [chr(code) for code in range(first, last + 1)]
            at += 3
        else:
            characters.append(text[at])
            at += 1
    return characters
