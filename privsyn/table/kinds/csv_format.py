"""CsvFormat: the separator, encoding and number format of a CSV file."""

from __future__ import annotations

import codecs
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from privsyn.errors import InputError, safe_repr
from privsyn.table.encoding.dtypes import OBJECT, family
from privsyn.table.kinds.column_settings import flag, normalise, one_of

ENCODINGS = ("utf-8", "latin-1", "iso-8859-15", "cp1250", "cp1251", "cp1252")
"""In each of them the bytes of a quote, a separator and a line end have no other meaning."""

DELIMITERS = (",", ";", "\t", "|")
THOUSANDS = (",", ".", " ", "'", "_", "\u00a0")


@dataclass(frozen=True, kw_only=True)
class CsvFormat:
    r"""The format of a CSV file, for reading and writing.

    Parameters
    ----------
    delimiter : one of comma, semicolon, tab, bar
        Separates two cells.
    encoding : one of `ENCODINGS`, or another name of it, such as windows-1252
    point : "." or ","
        The decimal separator.
    thousands : str, optional
        The separator of groups of three digits, for reading and writing.
    quoting : {"minimal", "all"}
        Whether written cells are quoted where necessary only, or all text is.
    blank : bool
        Whether a blank follows each delimiter, as in ``a, b``. It is no part of the cell. A header that is
        written so says it too.
    header : bool
        Whether the first line has the names of the columns also where it looks like a row, as with years.
        Names are public, and nobody but the owner can tell.

    Examples
    --------
    >>> german = CsvFormat(delimiter=";", point=",", thousands=".", encoding="cp1252")
    >>> german.plain_number("1.234.567,50"), german.spell("1234567.50")
    ('1234567.50', '1.234.567,50')
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    point: Literal[".", ","] = "."
    thousands: str | None = None
    quoting: Literal["minimal", "all"] = "minimal"
    blank: bool = False
    header: bool = False

    def __post_init__(self) -> None:
        if self.delimiter not in DELIMITERS:
            raise InputError(
                f"delimiter {safe_repr(self.delimiter)} is none of comma, semicolon, tab and bar (|)"
            )
        normalise(self, encoding=_usual_name(self.encoding))
        normalise(self, blank=flag("blank", self.blank), header=flag("header", self.header))
        one_of("encoding", self.encoding, ENCODINGS)
        one_of("point", self.point, (".", ","))
        one_of("quoting", self.quoting, ("minimal", "all"))
        if self.thousands is not None and self.thousands not in THOUSANDS:
            raise InputError(
                f"thousands {safe_repr(self.thousands)} is no comma, point, blank, apostrophe or underscore"
            )
        if self.thousands == self.point:
            raise InputError("point and thousands are the same sign: nobody could read such numbers")

    @property
    def spells_plainly(self) -> bool:
        """Whether numbers have a point and no thousands separator."""
        return self.point == "." and self.thousands is None

    def plain_number(self, text: str) -> str:
        """Return a number in this format with a decimal point and no thousands separator."""
        if self.thousands is not None:
            text = text.replace(self.thousands, "")
        return text.replace(self.point, ".")

    def texts(self, cells: pd.Series, decimals: int | None = None) -> pd.Series:
        """Return numbers as text in this format; other cells, and numbers that are spelled plainly, as is."""
        if family(cells.dtype) not in ("integer", "real") or (decimals is None and self.spells_plainly):
            return cells
        texts = cells.map(str if decimals is None else f"{{:.{decimals}f}}".format, na_action="ignore")
        return as_texts(cells, texts.map(self.spell, na_action="ignore"))

    def spell(self, text: str) -> str:
        """Return a number with a decimal point in this format."""
        sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
        integer, point, decimals = digits.partition(".")
        if self.thousands is not None and integer.isdigit():
            integer = f"{int(integer):,}".replace(",", self.thousands)
        return sign + integer + (self.point if point else "") + decimals


def as_texts(cells: pd.Series, texts: pd.Series) -> pd.Series:
    """Return the texts of cells, missing where the cells are."""
    return texts.astype(OBJECT).mask(cells.isna(), None)


def _usual_name(encoding: str) -> str:
    """Return the name in `ENCODINGS` of an encoding; any other text is returned as it is.

    >>> _usual_name("windows-1252"), _usual_name("UTF8"), _usual_name("utf-16")
    ('cp1252', 'utf-8', 'utf-16')
    """
    with suppress(LookupError, TypeError, ValueError):
        codec = codecs.lookup(encoding).name
        return next((name for name in ENCODINGS if codecs.lookup(name).name == codec), encoding)
    return encoding
