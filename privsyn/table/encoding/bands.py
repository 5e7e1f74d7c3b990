"""Bands of numbers as people write them: 18-24, 65+, under 18, (20, 30]."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import inf
from typing import Literal, NamedTuple, TypeVar

NUMBER = r"(-?\d[\d,]*(?:\.\d+)?)"
"""A number in a pattern, whose commas are between thousands."""

UNITS = re.compile(r"\b(?:years? of age|years? old|years?|yrs?|aged?|ages|jahre)\b")

T = TypeVar("T")


class Band(NamedTuple):
    """The numbers from a low to a high end.

    Parameters
    ----------
    low, high : float
    closed : both, left, right or neither
        Which ends belong to it.
    """

    low: float
    high: float
    closed: Literal["both", "left", "right", "neither"] = "both"


TO, LESS, MORE = r"(?:-|–|—|to|bis)", r"(?:less|under|below|younger)", r"(?:over|above|older|more|mehr|älter)"

BANDS: Mapping[str, Callable[..., Band]] = {
    NUMBER: lambda number: Band(number, number),
    rf"{NUMBER}\s*{TO}\s*{NUMBER}": Band,
    rf"{NUMBER}\s*{TO}\s*(?:<|under|below|less than)\s*{NUMBER}": lambda low, high: Band(low, high, "left"),
    rf"{NUMBER}\s*(?:\+|plus|(?:and|or)\s+{MORE})": lambda low: Band(low, inf),
    rf"(?:≥|>=|ab)\s*{NUMBER}": lambda low: Band(low, inf),
    rf"(?:>|{MORE}(?:\s+than)?|über|plus de)\s*{NUMBER}": lambda low: Band(low, inf, "right"),
    rf"(?:<|{LESS}(?:\s+than)?|unter|moins(?:\s+de)?)\s*{NUMBER}": lambda high: Band(-inf, high, "left"),
    rf"(?:≤|<=|up to|bis)\s*{NUMBER}": lambda high: Band(-inf, high),
    rf"{NUMBER}\s*(?:and|or)\s+{LESS}": lambda high: Band(-inf, high),
    rf"\[\s*{NUMBER}\s*,\s*{NUMBER}\s*\]": Band,
    rf"\[\s*{NUMBER}\s*,\s*{NUMBER}\s*\)": lambda low, high: Band(low, high, "left"),
    rf"\(\s*{NUMBER}\s*,\s*{NUMBER}\s*\]": lambda low, high: Band(low, high, "right"),
    rf"\(\s*{NUMBER}\s*,\s*{NUMBER}\s*\)": lambda low, high: Band(low, high, "neither"),
}
"""How a number or a band of numbers is written: patterns, and what each means."""


def read_band(text: str) -> Band | None:
    """Return the band that a text means; of a number alone, the band of that number; None if it is no band.

    >>> read_band("Under 18 years"), read_band("65 and over"), read_band("1,000 to 2,000")
    (Band(low=-inf, high=18.0, closed='left'), Band(low=65.0, high=inf, closed='both'), \
Band(low=1000.0, high=2000.0, closed='both'))
    >>> read_band("7"), read_band("rest")
    (Band(low=7.0, high=7.0, closed='both'), None)
    """
    return read_numbers(UNITS.sub("", text.casefold()).strip(), BANDS)


def read_numbers(text: str, patterns: Mapping[str, Callable[..., T]]) -> T | None:
    """Return what the first fitting pattern makes of its numbers; None if none fits."""
    for pattern, make in patterns.items():
        if match := re.fullmatch(pattern, text):
            return make(*(float(number.replace(",", "")) for number in match.groups()))
    return None
