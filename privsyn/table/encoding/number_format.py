"""How numbers are written in text: "$1,234.50", "1.234,50 EUR", "1234.5 %"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from privsyn.errors import InputError, safe_repr
from privsyn.marginals.domain import Floats
from privsyn.table.encoding.parsing import alone, finite, number

BLANKS = " \u00a0\u202f"
_EXAMPLE = re.compile(rf"1([,.'_{BLANKS}]?)234(?:([.,])(5\d*|0+))?")
SIGNS = "-\u2212"
_DIGITS = re.compile(r"\d+(\.\d*)?|\.\d+")


@dataclass(frozen=True)
class NumberFormat:
    """How a number is written, shown by 1234.5 written in this way.

    The digits after the decimal sign say how many there are. Without any, numbers are whole; with zeros
    alone they are whole and written with these. In parentheses it shows that numbers below 0 are written in
    them.

    Examples
    --------
    >>> dollars, euros = NumberFormat("$1,234.50"), NumberFormat("1.234,50 EUR")
    >>> dollars.numbers(["$7.25", "-$1,000.00", "($3.00)", "7.25", "n/a", None]).tolist()
    [7.25, -1000.0, -3.0, 7.25, nan, nan]
    >>> euros.numbers(["1.000,50 EUR"]).tolist(), euros.spell(-12345.5, 2), euros.decimals
    ([1000.5], '-12.345,50 EUR', 2)
    >>> NumberFormat("($1,234.50)").spell(-3, 2), NumberFormat("($1,234.50)").spell(3, 1)
    ('($3.00)', '$3.00')
    >>> NumberFormat("1234.0").spell(7, 0), NumberFormat("1234.0").decimals
    ('7.0', 0)
    >>> NumberFormat("USD")
    Traceback (most recent call last):
    privsyn.errors.InputError: format 'USD' does not show how 1234.5 is written: write it such as '$1,234.50'
    """

    example: str

    def __post_init__(self) -> None:
        matches = _EXAMPLE.findall(self.example) if isinstance(self.example, str) else []
        # `split` returns three groups between two texts. A second number could be a second example.
        around = "".join(_EXAMPLE.split(self.example)[::4]) if matches else "1"
        if (
            len(matches) != 1
            or any(sign.isdigit() for sign in around)
            or matches[0][0] == matches[0][1] != ""
        ):
            raise InputError(
                f"format {safe_repr(self.example)} does not show how 1234.5 is written:"
                " write it such as '$1,234.50'"
            )

    @property
    def _parts(self) -> tuple[str, str, str, str]:
        """What stands before, between groups of digits, before the decimals, and after."""
        match = _EXAMPLE.search(self.example)
        assert match is not None  # noqa: S101  # `__post_init__` has found it
        thousands = match[1]
        point = match[2] or ("," if thousands == "." else ".")
        before, after = self.example[: match.start()], self.example[match.end() :]
        if self._in_parentheses:
            before, after = before[1:], after[:-1]
        return before, thousands, point, after

    @property
    def _in_parentheses(self) -> bool:
        return self.example.startswith("(") and self.example.endswith(")")

    @property
    def decimals(self) -> int:
        """How many digits the example has after the decimal sign; none if all are 0."""
        return len(self._fraction) if self._fraction.strip("0") else 0

    @property
    def _fraction(self) -> str:
        """The digits of the example after the decimal sign."""
        match = _EXAMPLE.search(self.example)
        return (match[3] or "") if match else ""

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
        integer, _, rest = digits.partition(".")
        rest = rest.ljust(len(self._fraction), "0")
        integer = f"{int(integer):,}".replace(",", thousands)
        is_below = number < 0 and digits.strip("0.") != ""
        text = f"{before}{integer}{point if rest else ''}{rest}{after}"
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
        if digits[:1] in (*SIGNS, "+") and digits:
            sign, digits = -sign if digits[0] in SIGNS else sign, digits[1:].strip()
        digits = digits.removeprefix(before.strip()).strip()
    digits = digits.removesuffix(after.strip()).strip()
    digits = digits.replace(thousands, "") if thousands else digits
    digits = digits.replace(point, ".") if point == "." or "." not in digits else ""
    return sign * float(digits) if digits.isascii() and _DIGITS.fullmatch(digits) else np.nan
