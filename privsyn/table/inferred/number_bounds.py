"""Bounds and lists of numbers for a draft, which show as little as possible of single rows. Not private."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privsyn.marginals.domain import Floats, Ints
from privsyn.table.encoding.steps import NUMBERS, Lattice

FEW_NUMBERS = 20
"""Most distinct values of a column of numbers that is drafted as a list."""

FEW_TEXTS = 200
"""Most distinct values of a column of text that is drafted as a list, unless most of them occur once."""

FEW_WHOLE = 100
"""Bounds of whole numbers may be exact if they are less than this apart, as for days, weeks or ages."""

FEW_ROWS = 5
"""A value of fewer rows is rare: a draft neither lists it nor takes it as an exact bound. Statistical offices
suppress counts below about this number."""

LEAST_NUMBER = 1e-300  # smaller numbers have no digits to round to

EXTREME_SHARE = 0.001
"""Share of the rows. A number at either end that fewer rows have is ignored when gaps are judged."""

COARSE_RATIO = 5
"""A step is drafted if it is at least this many times that of the decimals."""

_QUARTERS = map(Lattice, (25_000, 2_500, 250, 25, 2.5, 0.25))

STEPS = tuple(sorted((*NUMBERS, *_QUARTERS), key=lambda lattice: -lattice.step))
"""Grids that a draft may propose, the coarsest first."""


def are_codes(numbers: Floats, step: float) -> bool:
    """Return whether numbers are better listed: two of them, or few that leave out most of their grid.

    Gaps are judged between numbers that enough rows have: a single 33 among counts up to 9 is no code.

    >>> [are_codes(np.repeat(numbers, 5), 1) for numbers in ([0, 1], [1, 2, 3], [1, 2, 9])]
    [True, False, True]
    >>> are_codes(np.array([0, 1, 2, 3] * 5 + [33]), 1)
    False
    """
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) <= 2:
        return True
    common = np.flatnonzero(counts >= max(FEW_ROWS, EXTREME_SHARE * len(numbers)))
    if not len(common) or len(values) > FEW_NUMBERS:
        return False
    inner = values[common[0] : common[-1] + 1]
    return 2 * len(inner) * step < float(np.ptp(inner)) + step


def are_months(numbers: Floats) -> bool:
    """Return whether whole numbers are years and months, such as 202401, of more than one year.

    >>> are_months(np.array([202311, 202312, 202401.0])), are_months(np.array([202311, 202313, 202401.0]))
    (True, False)
    """
    years, months = numbers // 100, numbers % 100
    plausible = (years >= 1900) & (years <= 2100) & (months >= 1) & (months <= 12)
    return bool(plausible.all() and years.min() < years.max())


def bounds_of(numbers: Floats, *, integers: bool) -> tuple[float, float]:
    """Return bounds that hold all numbers, rounded outwards to the scale on which they differ.

    A bound is exact if it is not rare and the numbers are whole and in a short range, or if it stands alone:
    the others differ among themselves by less than they are away from it.

    >>> bounds_of(np.repeat([1.0, 31.0], 5), integers=True), bounds_of(np.array([1.0, 31.0]), integers=True)
    ((1.0, 31.0), (0.0, 35.0))
    >>> bounds_of(np.array([0.0] * 5 + [1934, 2015]), integers=True)
    (0.0, 2020.0)
    """
    values, counts = np.unique(numbers, return_counts=True)
    smallest, largest = float(values[0]), float(values[-1])
    low, high = outwards(smallest, largest)
    low_exact, high_exact = (counts[[0, -1]] >= FEW_ROWS).tolist()
    if not (integers and is_short(smallest, largest)):
        gaps = np.diff(values)
        low_alone, high_alone = (
            len(values) > 2 and gaps[end] > largest / 2 - smallest / 2 for end in (0, -1)
        )
        if low_alone:
            high = outwards(float(values[1]), largest)[1]
        if high_alone:
            low = outwards(smallest, float(values[-2]))[0]
        low_exact, high_exact = low_exact and low_alone, high_exact and high_alone
    return smallest if low_exact else low, largest if high_exact else high


def is_exact(low: float | None, high: float | None, numbers: Floats) -> bool:
    """Return whether the bounds of whole numbers are the smallest and the largest of them, and not rare."""
    if low is None or high is None or not is_short(low, high):
        return False
    rows: Ints = np.array([np.count_nonzero(numbers == end) for end in (low, high)])
    return bool((rows >= FEW_ROWS).all())


def is_short(low: float, high: float) -> bool:
    """Return whether bounds of whole numbers are too close together to be rounded.

    >>> is_short(1, 31), is_short(0, 100)
    (True, False)
    """
    return high - low < FEW_WHOLE


def outwards(low: float, high: float) -> tuple[float, float]:
    """Return the two bounds, rounded outwards to one or two digits, at most three of the larger number.

    >>> outwards(17, 90), outwards(0, 4356), outwards(47.1559, 47.7776), outwards(5000.12, 5000.13)
    ((10.0, 90.0), (0.0, 4500.0), (47.1, 47.8), (5000.0, 5020.0))
    >>> outwards(7, 7), outwards(1234.56, 1234.56)
    ((7.0, 8.0), (1200.0, 1400.0))
    """
    largest = max(abs(low), abs(high))
    if largest < LEAST_NUMBER:
        return low, high
    scale = max(high - low, largest / 50) if high > low else largest
    magnitude = math.floor(math.log10(scale))
    leading = scale / 10.0**magnitude
    step = 10.0**magnitude / (5 if leading < 2 else 2 if leading < 5 else 1)
    digits = max(0, 1 - magnitude)
    down, up = math.floor(low / step) * step, math.ceil(high / step) * step
    return round(down, digits), round(up if up > down else down + step, digits)


def coarsest_step(numbers: Floats, lattices: Sequence[Lattice], smallest: float) -> float | None:
    """Return the coarsest step of which all numbers are multiples; None if it is below `smallest`.

    >>> [coarsest_step(np.array(numbers), NUMBERS, 5) for numbers in ([20_000.0, 50_000.0], [1.0, 2.0])]
    [10000.0, None]
    """
    steps = (
        lattice.step
        for lattice in lattices
        if not lattice.offset and lattice.holds(numbers, np.dtype(np.float64)).all()
    )
    step = next(steps, 0.0)
    return step if step >= smallest and numbers.any() else None
