"""Columns of numbers and the format of texts that are numbers, inferred from cells. Not private."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.table.encoding import dtypes
from privsyn.table.encoding.number_format import BLANKS, SIGNS, NumberFormat
from privsyn.table.inferred.number_bounds import (
    COARSE_RATIO,
    STEPS,
    are_codes,
    are_months,
    bounds_of,
    coarsest_step,
)
from privsyn.table.kinds.numerical import Numerical

LEAST_SHARE_READ = 0.95
"""Least share of the texts that a drafted format reads."""

FIRST_TEXTS = 20
"""Texts that are read first: if fewer than half of them are numbers, no other is read."""

CONVENTIONS = ((",", "."), (".", ","), (" ", ","), ("\u00a0", ","), ("\u202f", ","), ("'", "."), (" ", "."))
"""Separators of groups of three digits and decimal signs that are drafted."""

_AROUND = re.compile(r"([^\d.,'()]*)([\d.,' \u00a0\u202f]*\d)(.*)")

_UNIT = re.compile(rf"[{BLANKS}]?(%|\u2030|[^\W\d_]{{1,4}}(/[^\W\d_]{{1,3}})?)|")

LARGEST_RANGE = 1e300
"""Range of numbers that are drafted: larger ones may overflow when their bounds are rounded."""

MOST_DECIMALS = 6


def infer_numbers(present: pd.Series, nullable: bool) -> Numerical | None:
    """Return a column for numbers, with bounds; None for two numbers, or for codes."""
    kind = dtypes.family(present.dtype)
    cells = present.tolist() if kind in ("text", "object") else []
    is_text = kind == "text" or all(isinstance(cell, str) for cell in cells)
    if is_text and (form := number_format(cells)) is not None:
        read = pd.Series(form.numbers(cells)).dropna()
        drafted = infer_numbers(read, nullable or len(read) < len(present))
        return None if drafted is None else replace(drafted, format=form.example)
    if kind == "object":
        present = present if present.map(lambda cell: type(cell) in (int, float)).all() else present[:0]
    elif kind not in ("integer", "real", "decimal"):
        return None
    numbers = np.asarray(present.astype(np.float64), np.float64)
    nullable = nullable or not np.isfinite(numbers).all()  # infinite ones count as missing
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return None
    with np.errstate(over="ignore"):
        decimals = next(
            (d for d in range(MOST_DECIMALS + 1) if (np.round(numbers, d) == numbers).all()), None
        )
    if decimals == 0 and are_months(numbers):
        return None  # of numbers between 202312 and 202401 none is a month
    low, high = float(numbers.min()), float(numbers.max())
    if not high - low < LARGEST_RANGE:
        return None  # `Numerical` needs a finite range, also once bounds are rounded outwards
    step = None
    if decimals is not None and kind != "decimal":
        step = coarsest_step(numbers, STEPS, COARSE_RATIO / 10**decimals)
    if kind != "decimal" and are_codes(numbers, step or (0.0 if decimals is None else 10.0**-decimals)):
        return None
    low, high = bounds_of(numbers, integers=decimals == 0 and kind != "decimal")
    if step is not None:  # to the grid: multiples of the step that hold all numbers
        first, last = math.ceil(round(low / step, 6)), math.floor(round(high / step, 6))
        low, high = round(first * step, decimals), round(last * step, decimals)
    if kind == "integer":
        limits = np.iinfo(dtypes.number_type(present.dtype))
        low, high = max(low, limits.min), min(high, limits.max)
    try:
        if decimals == 0 and kind != "decimal":
            step = None if step is None else int(step)
            return Numerical(int(low), int(high), integer=True, step=step, nullable=nullable)
        integers = None if kind == "decimal" else False
        decimals = decimals if step is None else None
        return Numerical(low, high, integer=integers, decimals=decimals, step=step, nullable=nullable)
    except InputError:
        return None  # too many digits to be a quantity


def number_format(texts: Sequence[str]) -> NumberFormat | None:
    """Return the format in which nearly all texts are numbers; None if there is none.

    >>> number_format(["$7.25", "-$1,234.50"]), number_format(["950 kg", "1.200 kg"])
    (NumberFormat(example='$1,234.50'), NumberFormat(example='1.234 kg'))
    >>> number_format([" 12", "345 "]), number_format(["12", "345"])
    (NumberFormat(example='1234'), None)
    >>> number_format(["12,5 %", "7 %"]), number_format(["A12", "A13"]), number_format(["10.1.2020"])
    (NumberFormat(example='1234,5 %'), None, None)
    """
    first = texts[:FIRST_TEXTS]
    if 2 * sum(_around(text) is not None for text in first) < len(first):
        return None  # most texts are no numbers, and the first show it
    counts = Counter(texts)  # a column often has few distinct texts
    parsed = [(parts, count) for text, count in counts.items() if (parts := _around(text))]
    if not parsed or sum(count for _, count in parsed) < LEAST_SHARE_READ * len(texts):
        return None
    digits: dict[tuple[str, str], Counter[str]] = {}
    for (before, middle, after), count in parsed:
        digits.setdefault((before, after), Counter())[middle] += count
    before, after = around = max(digits, key=lambda pair: digits[pair].total())
    if not _is_unit(before, after):
        return None
    if any(text.strip().startswith("(") for text in counts):
        before, after = f"({before}", f"{after})"
    is_padded = any(text != text.strip() for text in counts)  # else a plain number needs no format
    return _by_convention(digits[around], len(texts), before, after, is_padded=is_padded)


def _around(text: str) -> tuple[str, str, str] | None:
    """Return what stands before a number, its digits, and what stands after; None if it is no number."""
    match = _AROUND.fullmatch(text.strip().strip("()").lstrip(SIGNS + "+"))
    return (match[1].rstrip(SIGNS + "+"), match[2], match[3]) if match else None


def _is_unit(before: str, after: str) -> bool:
    """Return whether texts around a number are a currency, a per cent sign, a unit, or empty."""
    currency = any(unicodedata.category(sign) == "Sc" for sign in before + after)
    if currency:
        return len(before.strip()) <= 3 and len(after.strip()) <= 3
    code = re.fullmatch(rf"([A-Z]{{3}}|Fr\.|kr\.?)[{BLANKS}]|", before)
    return code is not None and _UNIT.fullmatch(after) is not None


def _by_convention(
    digits: Counter[str], rows: int, before: str, after: str, *, is_padded: bool
) -> NumberFormat | None:
    """Return the format of digits. A sign that is always followed by three digits separates groups."""
    choices = []
    for thousands, point in CONVENTIONS:
        group, dot = re.escape(thousands), re.escape(point)
        grouped = re.compile(rf"([1-9]\d{{0,2}}({group}\d{{3}})+|0|[1-9]\d{{0,2}})({dot}(?P<decimals>\d+))?")
        plain = re.compile(rf"(0|[1-9]\d*)({dot}(?P<decimals>\d+))?")
        for pattern, sign in ((grouped, thousands), (plain, "")):
            matches = [match for match in map(pattern.fullmatch, digits) if match]
            read = sum(digits[match[0]] for match in matches)
            if read < LEAST_SHARE_READ * rows or (sign and not any(sign in match[1] for match in matches)):
                continue
            if sign and "%" in before + after:
                continue  # interest rates have three decimals rather than thousands of per cent
            decimals = max(len(match["decimals"] or "") for match in matches)
            choices.append((decimals > 0 and not sign, digits.total() - read, sign, point, decimals))
    if not choices:
        return None
    _, _, sign, point, decimals = min(choices, key=lambda choice: choice[:2])
    fraction = f"{point}5{'0' * (decimals - 1)}" if decimals else ""
    if not (before or after or sign or is_padded or (decimals and point == ",")):
        return None  # a plain number, or a code
    return NumberFormat(f"{before}1{sign}234{fraction}{after}")
