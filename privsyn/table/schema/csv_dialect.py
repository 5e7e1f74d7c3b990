"""How a CSV file is written: what separates its cells, and how its numbers and letters are spelt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from privsyn.errors import InputError, safe_repr
from privsyn.table.schema.validation import one_of

ENCODINGS = ("utf-8", "latin-1", "iso-8859-15", "cp1250", "cp1251", "cp1252")
"""In all of them the bytes of a quote, a separator or the end of a line mean nothing else."""

DELIMITERS = (",", ";", "\t", "|")
THOUSANDS = (",", ".", " ", "'", "_", "\u00a0")


@dataclass(frozen=True, kw_only=True)
class CsvFormat:
    r"""How a CSV file is written, on the way in and out.

    Parameters
    ----------
    delimiter : one of comma, semicolon, tab, bar
        What stands between two cells.
    encoding : one of `ENCODINGS`
    point : "." or ","
        What stands before the decimals of a number.
    thousands : str, optional
        What stands between groups of three digits; it is read and written.
    quoting : {"minimal", "all"}
        Whether a cell is quoted on the way out only where it must be, or every text is.

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

    def __post_init__(self) -> None:
        if self.delimiter not in DELIMITERS:
            raise InputError(
                f"delimiter {safe_repr(self.delimiter)} is none of comma, semicolon, tab and bar (|)"
            )
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
        """Whether numbers are written as programs do."""
        return self.point == "." and self.thousands is None

    def plain_number(self, text: str) -> str:
        """A number spelt so, as programs write it."""
        if self.thousands is not None:
            text = text.replace(self.thousands, "")
        return text.replace(self.point, ".")

    def spell(self, text: str) -> str:
        """A number as programs write it, spelt so."""
        sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
        whole, point, decimals = digits.partition(".")
        if self.thousands is not None and whole.isdigit():
            whole = f"{int(whole):,}".replace(",", self.thousands)
        return sign + whole + (self.point if point else "") + decimals
