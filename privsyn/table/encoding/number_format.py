"""How numbers are written in text: "$1,234.50", "1.234,50 EUR", "1234.5 %"."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from privsyn.errors import InputError, safe_repr
from privsyn.marginals.domain import Floats
from privsyn.table.encoding.parsing import alone, finite, number

_BLANKS = " \u00a0\u202f"
_EXAMPLE = re.compile(rf"1([,.'_{_BLANKS}]?)234(?:([.,])(5\d*))?")
_SIGNS = "-\u2212"
_DIGITS = re.compile(r"\d+(\.\d*)?|\.\d+")

MOSTLY = 0.95
"""Least share of the texts that a drafted format reads."""

FIRST = 20
"""Texts that are read first: if fewer than half of them are numbers, no other is read."""

CONVENTIONS = ((",", "."), (".", ","), (" ", ","), ("\u00a0", ","), ("\u202f", ","), ("'", "."), (" ", "."))
"""Separators of groups of three digits and decimal signs that are drafted."""

_AROUND = re.compile(r"([^\d.,'()]*)([\d.,' \u00a0\u202f]*\d)(.*)")
_UNIT = re.compile(rf"[{_BLANKS}]?(%|\u2030|[^\W\d_]{{1,4}}(/[^\W\d_]{{1,3}})?)|")


@dataclass(frozen=True)
class NumberFormat:
    """How a number is written, shown by 1234.5 written in this way.

    The digits after the decimal sign say how many there are; without any, numbers are whole. In parentheses
    it shows that numbers below 0 are written in them.

    Examples
    --------
    >>> dollars, euros = NumberFormat("$1,234.50"), NumberFormat("1.234,50 EUR")
    >>> dollars.numbers(["$7.25", "-$1,000.00", "($3.00)", "7.25", "n/a", None]).tolist()
    [7.25, -1000.0, -3.0, 7.25, nan, nan]
    >>> euros.numbers(["1.000,50 EUR"]).tolist(), euros.spell(-12345.5, 2), euros.decimals
    ([1000.5], '-12.345,50 EUR', 2)
    >>> NumberFormat("($1,234.50)").spell(-3, 2), NumberFormat("($1,234.50)").spell(3, 1)
    ('($3.00)', '$3.00')
    >>> NumberFormat("USD")
    Traceback (most recent call last):
    privsyn.errors.InputError: format 'USD' does not show how 1234.5 is written: write it such as '$1,234.50'
    """

    example: str

    def __post_init__(self) -> None:
        found = _EXAMPLE.findall(self.example) if isinstance(self.example, str) else []
        # `split` returns three groups between two texts. A second number could be a second example.
        around = "".join(_EXAMPLE.split(self.example)[::4]) if found else "1"
        if len(found) != 1 or any(sign.isdigit() for sign in around) or found[0][0] == found[0][1] != "":
            raise InputError(
                f"format {safe_repr(self.example)} does not show how 1234.5 is written:"
                " write it such as '$1,234.50'"
            )

    @property
    def _parts(self) -> tuple[str, str, str, str]:
        """What stands before, between groups of digits, before the decimals, and after."""
        found = _EXAMPLE.search(self.example)
        assert found is not None  # noqa: S101  # `__post_init__` has found it
        thousands = found[1]
        point = found[2] or ("," if thousands == "." else ".")
        before, after = self.example[: found.start()], self.example[found.end() :]
        if self._in_parentheses:
            before, after = before[1:], after[:-1]
        return before, thousands, point, after

    @property
    def _in_parentheses(self) -> bool:
        return self.example.startswith("(") and self.example.endswith(")")

    @property
    def decimals(self) -> int:
        """How many digits the example has after the decimal sign."""
        found = _EXAMPLE.search(self.example)
        return len(found[3] or "") if found else 0

    def numbers(self, texts: Sequence[object]) -> Floats:
        """Return each cell as a number; NaN where it is none. A sign may stand before or after the prefix.

        No cell raises, and cells that are no text are numbers as in a column without a format.
        """
        before, thousands, point, after = self._parts
        read = partial(_number, before=before, thousands=thousands, point=point, after=after)
        return finite(np.array([alone(read, text, np.nan) for text in texts], np.float64))

    def spell(self, number: float, decimals: int | None) -> str:
        """Return a number as text, with all its digits if `decimals` is None, and those of the example."""
        before, thousands, point, after = self._parts
        digits = (
            np.format_float_positional(abs(number), trim="-")
            if decimals is None
            else f"{abs(number):.{decimals}f}"
        )
        whole, _, rest = digits.partition(".")
        rest = rest.ljust(self.decimals, "0")
        whole = f"{int(whole):,}".replace(",", thousands)
        is_below = number < 0 and digits.strip("0.") != ""
        text = f"{before}{whole}{point if rest else ''}{rest}{after}"
        if not is_below:
            return text
        return f"({text})" if self._in_parentheses else f"-{text}"


def _number(text: object, before: str, thousands: str, point: str, after: str) -> float:
    if not isinstance(text, str):
        return number(text)
    digits, sign = text.strip(), 1
    if digits.startswith("(") and digits.endswith(")"):
        digits, sign = digits[1:-1].strip(), -1
    for _ in range(2):  # a sign, the prefix, and perhaps the sign
        if digits[:1] in (*_SIGNS, "+") and digits:
            sign, digits = -sign if digits[0] in _SIGNS else sign, digits[1:].strip()
        digits = digits.removeprefix(before.strip()).strip()
    digits = digits.removesuffix(after.strip()).strip()
    digits = digits.replace(thousands, "") if thousands else digits
    digits = digits.replace(point, ".") if point == "." or "." not in digits else ""
    return sign * float(digits) if digits.isascii() and _DIGITS.fullmatch(digits) else np.nan


def number_format(texts: Sequence[str]) -> NumberFormat | None:
    """Return the format in which nearly all texts are numbers; None if there is none.

    >>> number_format(["$7.25", "-$1,234.50"]), number_format(["950 kg", "1.200 kg"])
    (NumberFormat(example='$1,234.50'), NumberFormat(example='1.234 kg'))
    >>> number_format(["12,5 %", "7 %"]), number_format(["A12", "A13"]), number_format(["10.1.2020"])
    (NumberFormat(example='1234,5 %'), None, None)
    """
    first = texts[:FIRST]
    if 2 * sum(_around(text) is not None for text in first) < len(first):
        return None  # most texts are no numbers, and the first show it
    counts = Counter(texts)  # a column often has few distinct texts
    found = [(parts, count) for text, count in counts.items() if (parts := _around(text))]
    if not found or sum(count for _, count in found) < MOSTLY * len(texts):
        return None
    digits: dict[tuple[str, str], Counter[str]] = {}
    for (before, middle, after), count in found:
        digits.setdefault((before, after), Counter())[middle] += count
    before, after = around = max(digits, key=lambda pair: digits[pair].total())
    if not _is_unit(before, after):
        return None
    if any(text.strip().startswith("(") for text in counts):
        before, after = f"({before}", f"{after})"
    return _by_convention(digits[around], len(texts), before, after)


def _around(text: str) -> tuple[str, str, str] | None:
    """Return what stands before a number, its digits, and what stands after; None if it is no number."""
    found = _AROUND.fullmatch(text.strip().strip("()").lstrip(_SIGNS + "+"))
    return (found[1].rstrip(_SIGNS + "+"), found[2], found[3]) if found else None


def _is_unit(before: str, after: str) -> bool:
    """Return whether texts around a number are a currency, a per cent sign, a unit, or empty."""
    currency = any(unicodedata.category(sign) == "Sc" for sign in before + after)
    if currency:
        return len(before.strip()) <= 3 and len(after.strip()) <= 3
    code = re.fullmatch(rf"([A-Z]{{3}}|Fr\.|kr\.?)[{_BLANKS}]|", before)
    return code is not None and _UNIT.fullmatch(after) is not None


def _by_convention(digits: Counter[str], rows: int, before: str, after: str) -> NumberFormat | None:
    """Return the format of digits. A sign that is always followed by three digits separates groups."""
    choices = []
    for thousands, point in CONVENTIONS:
        group, dot = re.escape(thousands), re.escape(point)
        grouped = re.compile(rf"([1-9]\d{{0,2}}({group}\d{{3}})+|0|[1-9]\d{{0,2}})({dot}(?P<decimals>\d+))?")
        plain = re.compile(rf"(0|[1-9]\d*)({dot}(?P<decimals>\d+))?")
        for pattern, sign in ((grouped, thousands), (plain, "")):
            matches = [match for match in map(pattern.fullmatch, digits) if match]
            read = sum(digits[match[0]] for match in matches)
            if read < MOSTLY * rows or (sign and not any(sign in match[1] for match in matches)):
                continue
            if sign and "%" in before + after:
                continue  # interest rates have three decimals rather than thousands of per cent
            decimals = max(len(match["decimals"] or "") for match in matches)
            choices.append((decimals > 0 and not sign, digits.total() - read, sign, point, decimals))
    if not choices:
        return None
    _, _, sign, point, decimals = min(choices, key=lambda choice: choice[:2])
    fraction = f"{point}5{'0' * (decimals - 1)}" if decimals else ""
    if not (before or after or sign or (decimals and point == ",")):
        return None  # a plain number, or a code
    return NumberFormat(f"{before}1{sign}234{fraction}{after}")
