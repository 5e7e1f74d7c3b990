"""Label codes and groups of codes for readers, from public facts and the released merging of codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from math import floor, log10

import numpy as np

from privsyn.marginals.types import Floats, Integers
from privsyn.table.encoding.codec import Codec
from privsyn.table.encoding.encoders import CategoricalEncoder, Encoder, OrderedEncoder
from privsyn.table.encoding.gaps import GapEncoder
from privsyn.table.encoding.grid import Grid
from privsyn.table.encoding.time_encoders import DatetimeEncoder, DurationEncoder, TimeEncoder

RangeWords = Callable[[float, float], str]
"""Returns a range as text, from the first point of a bin to the last."""

MISSING = "(missing)"
SECONDS_IN_A_DAY = 86400

NAMED = 3
"""Most values that a label of a group names."""

GROUPED = 10_000
"""Thousands are separated in columns that reach this number, so not in years and short codes."""

PLAIN_DIGITS, PLAIN_DECIMALS = 15, 12
"""Numbers with more digits or decimals are written with an exponent."""


def labels(
    codec: Codec, groups: Sequence[Integers], shares: Sequence[Floats] | None = None
) -> tuple[tuple[str, ...], ...]:
    """Return a label for each group of codes of each column.

    The label of a group of several values begins with their number.

    Parameters
    ----------
    codec : Codec
    groups : sequence of integer arrays of shape (codes,)
        For each column, the group of each code, from 0 up.
    shares : sequence of float arrays of shape (codes,), optional
        For each column, the weight of each code within its group. A rare value has weight 0: it was counted
        with another value, and is never drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> from privsyn import Categorical, Numerical, Schema
    >>> schema = Schema({"age": Numerical(0, 99, bins=4), "city": Categorical(["Bern", "Rome", "Ulm"])})
    >>> codec = Codec.for_table(schema, pd.DataFrame({"age": [1.5], "city": ["Rome"]}))
    >>> labels(codec, [np.array([0, 0, 0, 1, 2]), np.array([1, 0, 1, 1])])
    (('0 to 74.25', '74.25 to 99', '(missing)'), ('Rome', '3 rare values together: Bern, Ulm, (missing)'))
    >>> labels(codec, [np.zeros(5, int), np.zeros(4, int)])
    (('all values: 0 to 99, (missing)',), ('all values: Bern, Rome, Ulm, …',))
    """
    given = [None] * len(groups) if shares is None else shares
    return tuple(map(labels_of, codec.encoders, groups, given))


def labels_of(encoder: Encoder, group: Integers, share: Floats | None = None) -> tuple[str, ...]:
    """Return a label for each group of codes of one column; the arguments are those of `labels`."""
    weights = np.ones(len(group)) if share is None else share
    return tuple(_label(encoder, *one, every=len(group)) for one in _grouped(group, weights))


def members(codec: Codec, groups: Sequence[Integers]) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Return the values, or ranges of neighbouring values, in each group of each column."""
    return tuple(
        tuple(tuple(_words(encoder, codes)) for codes, _ in _grouped(group, np.ones(len(group))))
        for encoder, group in zip(codec.encoders, groups, strict=True)
    )


def number_range(low: float, high: float, decimals: int | None = None, *, grouped: bool = True) -> str:
    """Return a range of numbers as text.

    Parameters
    ----------
    low, high : float
    decimals : int, optional
        Default: as many as both ends need to differ.
    grouped : bool
        Whether thousands are separated.

    Examples
    --------
    >>> number_range(3, 3, 0), number_range(1e6, 1_249_999, 0), number_range(1990, 2004, 0, grouped=False)
    ('3', '1,000,000 to 1,249,999', '1990 to 2004')
    >>> number_range(0.001, 0.25), number_range(2e-16, 1e-15), number_range(1234567.25, 1300000.0)
    ('0.001 to 0.25', '2e-16 to 1e-15', '1,234,567 to 1,300,000')
    """
    if decimals is None:
        size = (high - low) or abs(high)
        decimals = max(0, 3 - floor(log10(size))) if size > 0 else 0
    return _joined(*(_number(point, decimals, grouped=grouped) for point in (low, high)))


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
    return partial(number_range, decimals=grid.decimals, grouped=grouped)


def date_range(low: float, high: float, in_a_day: int = 1) -> str:
    """Return a range of times as text: as dates, or with the time of day if the range is short.

    The ends are in days since 1970, or in units of which a day has `in_a_day`.

    >>> date_range(31, 58), date_range(0, 86399, SECONDS_IN_A_DAY), date_range(0, 3599, SECONDS_IN_A_DAY)
    ('1970-02-01 to 1970-02-28', '1970-01-01', '1970-01-01 00:00 to 1970-01-01 00:59')
    """
    whole_days = low % in_a_day == 0 and (high + 1) % in_a_day == 0
    if whole_days or high - low >= 2 * in_a_day:
        return _joined(*(str(np.datetime64(int(point // in_a_day), "D")) for point in (low, high)))
    seconds = SECONDS_IN_A_DAY // in_a_day
    unit = "m" if (high - low) * seconds >= 60 else "s"
    times = (np.datetime64(int(point) * seconds, "s").astype(f"datetime64[{unit}]") for point in (low, high))
    return _joined(*(str(time).replace("T", " ") for time in times))


def span_range(low: float, high: float, step: int = 1) -> str:
    """Return a range of durations, or of times of day, in units of `step` seconds, as text.

    >>> span_range(90, 120, 60)
    '1:30:00 to 2:00:00'
    """
    return _joined(*(str(timedelta(seconds=point * step)) for point in (low, high)))


def bin_labels(grid: Grid, words: RangeWords | None = None) -> list[str]:
    """Return a label for each bin: its first and last point.

    >>> bin_labels(Grid.exact(0, 3, decimals=0, bins=3))
    ['0', '1', '2 to 3']
    """
    return [_range(grid, place, place, words or grid_words(grid)) for place in range(grid.bins)]


def _grouped(group: Integers, share: Floats) -> list[tuple[Integers, Floats]]:
    """Return the codes of each group, and their weights."""
    every = [np.flatnonzero(group == place) for place in range(int(group.max()) + 1)]
    return [(codes, share[codes]) for codes in every]


def _label(encoder: Encoder, codes: Integers, share: Floats, *, every: int) -> str:
    """Return the label of a group: its only value or range, or the number of its values."""
    words = _words(encoder, codes)
    if len(words) == 1:
        return words[0]
    kept, rare = _words(encoder, codes[share > 0]), _words(encoder, codes[share == 0])
    if len(kept) == 1 and rare:
        return f"{kept[0]}, with {'few missing cells' if rare == [MISSING] else _together(rare)}"
    return f"all values: {_few(words)}" if len(codes) == every else _together(words)


def _together(words: list[str]) -> str:
    """
    >>> _together(["a", "b", "c", "d"]), _together(["a"])
    ('4 rare values together: a, b, c, …', '1 rare value: a')
    """
    return (
        f"{len(words)} rare values together: {_few(words)}" if len(words) > 1 else f"1 rare value: {words[0]}"
    )


def _few(words: list[str]) -> str:
    """Return at most `NAMED` labels as text."""
    return f"{', '.join(words[:NAMED])}{', …' if len(words) > NAMED else ''}"


def _words(encoder: Encoder, codes: Integers) -> list[str]:
    """Return the label of each value of a group; neighbouring bins have one label."""
    match encoder:
        case CategoricalEncoder():
            return [
                MISSING if code == encoder.size else str(encoder.pool.iloc[code]) for code in codes.tolist()
            ]
        case OrderedEncoder():
            bins = codes[codes < encoder.size]
            runs = np.split(bins, np.flatnonzero(np.diff(bins) > 1) + 1) if len(bins) else []
            words = range_words(encoder)
            ranges = [_range(encoder.grid, int(run[0]), int(run[-1]), words) for run in runs]
            return [*ranges, *([MISSING] if len(bins) < len(codes) else [])]
        case _:
            raise TypeError(f"no words for a {type(encoder).__name__}")


def range_words(encoder: OrderedEncoder) -> RangeWords:
    """Return the function that writes ranges of a column."""
    match encoder:
        case GapEncoder():
            return partial(_gap_range, encoder)
        case DatetimeEncoder():
            return partial(date_range, in_a_day=1 if encoder.unit == "D" else SECONDS_IN_A_DAY)
        case DurationEncoder() | TimeEncoder():
            return partial(span_range, step=encoder.step)
        case _:
            return grid_words(encoder.grid)


def _range(grid: Grid, first: int, last: int, words: RangeWords) -> str:
    """Return a range from one bin to another: up to its last point, or for reals up to the next bin."""
    low, end = grid.low + grid.edges[[first, last + 1]] / grid.scale
    return words(float(low), float(end - (0 if grid.decimals is None else grid.step)))


def _joined(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _gap_range(encoder: GapEncoder, low: float, high: float) -> str:
    """Return a range of distances or, where no column before is given, of the column itself, as text."""
    of = encoder.of
    if low > encoder.farthest:
        start = of.grid.low - encoder.distances / encoder.grid.scale
        return f"no {encoder.before[-1]}: {range_words(of)(start + low, start + high)}"
    if isinstance(of, DatetimeEncoder):
        return number_range(low, high, 0) if of.unit == "D" else span_range(low, high)
    return range_words(of)(low, high)
