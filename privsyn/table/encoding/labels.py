"""Codes in words, for people to read: by public facts, and by which codes were counted as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

import numpy as np

from privsyn.marginals.types import Integers
from privsyn.table.encoding.codec import Codec
from privsyn.table.encoding.encoders import CategoricalEncoder, Encoder, OrderedEncoder
from privsyn.table.encoding.grid import Grid
from privsyn.table.encoding.time_encoders import DatetimeEncoder, DurationEncoder, TimeEncoder

Word = Callable[[float], str]

MISSING = "(missing)"
SECONDS_IN_A_DAY = 86400


def labels(codec: Codec, groups: Sequence[Integers]) -> tuple[tuple[str, ...], ...]:
    """Each group of codes of each column in words.

    Parameters
    ----------
    codec : Codec
    groups : for each column the group of each code, from 0 up

    Examples
    --------
    >>> import pandas as pd
    >>> from privsyn import Categorical, Numerical, Schema
    >>> schema = Schema({"age": Numerical(0, 99, bins=4), "sex": Categorical(["F", "M"], nullable=False)})
    >>> codec = Codec.for_table(schema, pd.DataFrame({"age": [1.5], "sex": ["F"]}))
    >>> labels(codec, [np.array([0, 0, 0, 1, 2]), np.array([0, 0])])
    (('0 to 74.25', '74.25 to 99', '(missing)'), ('F (and 1 more)',))
    """
    return tuple(
        tuple(_label(coder, np.flatnonzero(group == place)) for place in range(int(group.max()) + 1))
        for coder, group in zip(codec.coders, groups, strict=True)
    )


def as_number(point: float) -> str:
    """A point of a grid of numbers.

    >>> as_number(3.0), as_number(0.25)
    ('3', '0.25')
    """
    return f"{point:.0f}" if point == round(point) and abs(point) < 1e12 else f"{point:.6g}"


def as_date(point: float, in_a_day: int = 1) -> str:
    """A point of a grid of times, of which so many make a day, by its date.

    >>> as_date(31), as_date(86400 * 31, SECONDS_IN_A_DAY)
    ('1970-02-01', '1970-02-01')
    """
    return str(np.datetime64(int(point // in_a_day), "D"))


def as_span(point: float, step: int = 1) -> str:
    """A point of a grid of lengths of time or times of day, in steps of so many seconds.

    >>> as_span(90, 60)
    '1:30:00'
    """
    return str(timedelta(seconds=point * step))


def bin_labels(grid: Grid, word: Word = as_number) -> list[str]:
    """Each bin in words, by its first and last point.

    >>> bin_labels(Grid.exact(0, 3, decimals=0, bins=3))
    ['0', '1', '2 to 3']
    """
    return [_range(grid, place, place, word) for place in range(grid.bins)]


def _label(coder: Encoder, codes: Integers) -> str:
    """Neighbouring bins by their range; other codes that were counted as one by the first of them."""
    first, last = int(codes[0]), int(codes[-1])
    if isinstance(coder, OrderedEncoder) and last < coder.size and last - first + 1 == len(codes):
        return _range(coder.grid, first, last, _word_of(coder))
    return _word(coder, first) + (f" (and {len(codes) - 1} more)" if len(codes) > 1 else "")


def _word(coder: Encoder, code: int) -> str:
    match coder:
        case _ if code == coder.size:
            return MISSING
        case CategoricalEncoder():
            return str(coder.pool.iloc[code])
        case OrderedEncoder():
            return _range(coder.grid, code, code, _word_of(coder))
        case _:
            raise TypeError(f"no words for a {type(coder).__name__}")


def _word_of(coder: OrderedEncoder) -> Word:
    """How a point of its grid is written."""
    match coder:
        case DatetimeEncoder():
            return partial(as_date, in_a_day=1 if coder.unit == "D" else SECONDS_IN_A_DAY)
        case DurationEncoder() | TimeEncoder():
            return partial(as_span, step=coder.step)
        case _:
            return as_number


def _range(grid: Grid, first: int, last: int, word: Word) -> str:
    """From the first point of one bin to the last of another."""
    low, end = grid.low + grid.edges[[first, last + 1]] / grid.scale
    ends = word(low), word(end - (0 if grid.decimals is None else 10.0**-grid.decimals))
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)
