"""Ranges of numbers, dates and lengths of time in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from math import floor, log10

import numpy as np

from privsyn.table.encoding.grid import Grid

RangeWords = Callable[[float, float], str]
"""Returns a range as text, from the first point of a bin to the last."""

MISSING = "(missing)"
SECONDS_IN_A_DAY = 86400

GROUPED = 10_000
"""Thousands are separated in columns that reach this number, so not in years and short codes."""

PLAIN_DIGITS, PLAIN_DECIMALS = 15, 12
"""Numbers with more digits or decimals are written with an exponent."""

SAME = 1e-9
"""Relative difference of two numbers up to which they are written alike."""


def number_range(
    low: float, high: float, decimals: int | None = None, *, grouped: bool = True, point: float = 0.0
) -> str:
    """Return a range of numbers as text.

    Parameters
    ----------
    low, high : float
    decimals : int, optional
        Default: as many as both ends need to differ.
    grouped : bool
        Whether thousands are separated.
    point : float
        The length up to which a range of reals is one point.

    Examples
    --------
    >>> number_range(3, 3, 0), number_range(1e6, 1_249_999, 0), number_range(1990, 2004, 0, grouped=False)
    ('3', '1,000,000 to 1,249,999', '1990 to 2004')
    >>> number_range(0.001, 0.25), number_range(2e-16, 1e-15), number_range(1234567.25, 1300000.0)
    ('0.001 to 0.25', '2e-16 to 1e-15', '1,234,567 to 1,300,000')

    Two points that only rounding tells apart are one:

    >>> number_range(0.00001, 0.000010000000000000003), number_range(0.0, 9e-18, point=1e-14)
    ('0.00001', '0')
    """
    if decimals is None:
        high = low if high - low <= point else high
        size = high - low if high - low > SAME * abs(high) else abs(high)
        decimals = max(0, 3 - floor(log10(size))) if size > 0 else 0
    return joined(*(_number(end, decimals, grouped=grouped) for end in (low, high)))


def _number(point: float, decimals: int, *, grouped: bool) -> str:
    """
    >>> _number(3.0, 2, grouped=True), _number(-2e-16, 2, grouped=True), _number(1e300, 0, grouped=True)
    ('3', '0', '1e+300')
    """
    if abs(point) >= 10.0**PLAIN_DIGITS or decimals > PLAIN_DECIMALS:
        return f"{point:.3g}"
    text = f"{round(point, decimals) + 0.0:{',' if grouped else ''}.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def grid_words(grid: Grid) -> RangeWords:
    """Return the function that writes ranges of a grid of numbers."""
    grouped = max(abs(grid.low), abs(grid.high)) >= GROUPED
    point = SAME * (grid.high - grid.low)
    return partial(number_range, decimals=grid.decimals, grouped=grouped, point=point)


def date_range(low: float, high: float, in_a_day: int = 1) -> str:
    """Return a range of times as text: as dates, or with the time of day if the range is short.

    The ends are in days since 1970, or in units of which a day has `in_a_day`.

    >>> date_range(31, 58), date_range(0, 86399, SECONDS_IN_A_DAY), date_range(0, 3599, SECONDS_IN_A_DAY)
    ('1970-02-01 to 1970-02-28', '1970-01-01', '1970-01-01 00:00 to 1970-01-01 00:59')
    """
    whole_days = low % in_a_day == 0 and (high + 1) % in_a_day == 0
    if whole_days or high - low >= 2 * in_a_day:
        return joined(*(str(np.datetime64(int(point // in_a_day), "D")) for point in (low, high)))
    seconds = SECONDS_IN_A_DAY // in_a_day
    unit = "m" if (high - low) * seconds >= 60 else "s"
    times = (np.datetime64(int(point) * seconds, "s").astype(f"datetime64[{unit}]") for point in (low, high))
    return joined(*(str(time).replace("T", " ") for time in times))


def span_range(low: float, high: float, step: int = 1) -> str:
    """Return a range of durations, or of times of day, in units of `step` seconds, as text.

    >>> span_range(90, 120, 60)
    '1:30:00 to 2:00:00'
    """
    return joined(*(str(timedelta(seconds=point * step)) for point in (low, high)))


def bin_labels(grid: Grid, words: RangeWords | None = None) -> list[str]:
    """Return a label for each bin: its first and last point.

    >>> bin_labels(Grid.exact(0, 3, decimals=0, bins=3))
    ['0', '1', '2 to 3']
    """
    return [bin_range(grid, index, index, words or grid_words(grid)) for index in range(grid.bins)]


def bin_range(grid: Grid, first: int, last: int, words: RangeWords) -> str:
    """Return a range from one bin to another: up to its last point, or for reals up to the next bin."""
    low, end = grid.low + grid.edges[[first, last + 1]] / grid.scale
    return words(float(low), float(end - (0 if grid.decimals is None else grid.step)))


def joined(low: str, high: str) -> str:
    """Return a range from its ends."""
    return low if low == high else f"{low} to {high}"
