"""Parse single cells, of text or of any object, as numbers and times.

Each cell is parsed alone. None raises: a cell that cannot be parsed is missing. So no row affects another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache, partial
from math import isinf
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Mask
from privsyn.table.encoding.time_format import SpanFormat, on_the_clock, read_time, with_digits

A = TypeVar("A")

LARGEST = float(np.finfo(np.float64).max)
"""A whole number beyond all doubles is read as this one, and clipped; an infinite number is missing."""

_LETTERS = re.compile("[A-Za-z]+")

_UNITS = {
    "d": "D",
    "w": "W",
    "H": "h",
    "S": "s",
    **dict.fromkeys(["MIN", "T", "t"], "min"),
    **dict.fromkeys(["MS", "L", "l"], "ms"),
    **dict.fromkeys(["US", "U", "u"], "us"),
    **dict.fromkeys(["NS", "N", "n"], "ns"),
}
"""Replacements for units of time that some version of pandas deprecates. A warning would reveal a cell, and
it cannot be suppressed safely: Python's warning filters apply to all threads of a process."""


def numbers(cells: Sequence[object]) -> Floats:
    """Return each cell as float64; NaN where it is no finite number.

    >>> numbers(["39", b" 4e2", "n/a", None, [1], 10**400, "-inf", True]).tolist()
    [39.0, 400.0, nan, nan, nan, 1.7976931348623157e+308, nan, 1.0]
    """
    return finite(np.fromiter(map(number, cells), dtype=np.float64, count=len(cells)))


def finite(read: Floats) -> Floats:
    """Return numbers with NaN in place of the infinite ones, which count as missing cells everywhere.

    Each number is replaced alone. Clipped to bounds, an infinite one would pass for the largest number there.
    """
    return np.where(np.isfinite(read), read, np.nan)


def number(cell: object) -> float:
    """Return one cell as float64; NaN if it is no number, `LARGEST` if a whole one is larger."""
    return alone(_double, cell, np.nan)


def alone(read: Callable[[object], A], cell: object, unreadable: A) -> A:
    """Return the result for one cell; `unreadable` for an object that raises, which may be any exception."""
    try:
        return read(cell)
    except Exception:
        return unreadable


def _double(cell: object) -> float:
    if not isinstance(cell, str | bytes | float | int | Real | Decimal):
        return np.nan
    try:
        return float(cell)
    except OverflowError:
        return LARGEST if cell > 0 else -LARGEST  # type: ignore[operator]


def missing_among(cells: Sequence[object]) -> Mask:
    """Return which cells are missing; a cell that raises when tested is not.

    >>> missing_among([None, np.nan, Decimal("NaN"), Decimal("sNaN"), [None], "", 0]).tolist()
    [True, True, True, False, False, False, False]
    """
    return np.array([alone(is_missing, cell, False) for cell in cells], dtype=np.bool_)


def infinite_among(cells: Sequence[object]) -> Mask:
    """Return which cells are infinite numbers; a cell that raises when tested is none."""
    return np.array([alone(_is_infinite, cell, False) for cell in cells], dtype=np.bool_)


def _is_infinite(cell: object) -> bool:
    return isinstance(cell, float | np.floating) and isinf(cell)


def is_missing(cell: object) -> bool:
    """Return whether a cell is None, NaN, NaT or `pandas.NA`."""
    return bool(pd.api.types.is_scalar(cell) and pd.isna(cell))  # type: ignore[call-overload]


def moments(
    cells: Sequence[object], pattern: str | None = None, zone: str | None = None
) -> npt.NDArray[np.datetime64]:
    """Return each cell as a local time in whole seconds; NaT where it is no time.

    Text is parsed with `pattern`, see `time_format`, or as ISO 8601 if there is no pattern. So are numbers,
    if the pattern writes digits alone. A time with an offset is taken to the clock of `zone`, if given.

    >>> moments(["2015-01-31", "2015-01-31 10:20:30.5+01:00", "31.1.2015", 7]).astype(str).tolist()
    ['2015-01-31T00:00:00', '2015-01-31T10:20:30', 'NaT', 'NaT']
    >>> moments([20150131, "20150131", 20150141], "%Y%m%d").astype("datetime64[D]").astype(str).tolist()
    ['2015-01-31', '2015-01-31', 'NaT']
    """
    read = partial(_moment, read_text=_reader(pattern), pattern=pattern, zone=zone)
    return np.array([alone(read, cell, None) for cell in cells], dtype="datetime64[s]")


def _reader(pattern: str | None) -> Callable[[str], datetime]:
    """Return a function that reads times in text, each text once."""
    return cache(datetime.fromisoformat if pattern is None else partial(read_time, pattern=pattern))


def _moment(
    cell: object, read_text: Callable[[str], datetime], pattern: str | None, zone: str | None
) -> datetime | None:
    cell = with_digits(cell, pattern)
    if isinstance(cell, str):
        cell = on_the_clock(read_text(cell), zone)
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[s]").item()
    if cell is pd.NaT:
        return None
    if isinstance(cell, datetime):
        return datetime(*cell.timetuple()[:6])
    return datetime.combine(cell, time()) if isinstance(cell, date) else None


def clock_seconds(cells: Sequence[object], pattern: str | None = None) -> Floats:
    """Return each cell as seconds since midnight; NaN where it is no time of day. `pattern` as in `moments`.

    >>> clock_seconds(["8:30", "08:30:15.9", time(0, 1), "25:00", 7]).tolist()
    [30600.0, 30615.0, 60.0, nan, nan]
    >>> clock_seconds(["8:30 pm", 2030], "%I:%M %p").tolist(), clock_seconds([830, "0830"], "%H%M").tolist()
    ([73800.0, nan], [30600.0, 30600.0])
    """
    read = partial(_since_midnight, read_text=_reader(pattern), pattern=pattern)
    return np.array([alone(read, cell, np.nan) for cell in cells], dtype=np.float64)


def span_seconds(cells: Sequence[object], form: SpanFormat | None = None) -> Floats:
    """Return each cell as a duration in seconds; NaN where it is no duration.

    >>> span_seconds(["1 days 00:00:30", timedelta(minutes=2), "soon", 7]).tolist()
    [86430.0, 120.0, nan, nan]
    """
    read = partial(_length, form=form)
    return np.array([alone(read, cell, np.nan) for cell in cells], dtype=np.float64)


def _since_midnight(cell: object, read_text: Callable[[str], datetime], pattern: str | None) -> float:
    cell = with_digits(cell, pattern)
    if isinstance(cell, str) and pattern is not None:
        cell = read_text(cell).time()
    if isinstance(cell, str):
        cell = time.fromisoformat(f"0{cell}" if cell[1:2] == ":" else cell)
    if not isinstance(cell, time):
        return np.nan
    return float(3600 * cell.hour + 60 * cell.minute + cell.second)


def _length(cell: object, form: SpanFormat | None) -> float:
    if isinstance(cell, str) and form is not None:
        return form.seconds(cell)
    if isinstance(cell, str) and not cell.startswith(("P", "-P")):  # ISO 8601 has capitals only
        cell = _LETTERS.sub(lambda unit: _UNITS.get(unit[0], unit[0]), cell)
    return (
        pd.Timedelta(cell).total_seconds() if isinstance(cell, str | timedelta | np.timedelta64) else np.nan
    )


def convert_distinct(
    cells: pa.ChunkedArray, convert: Callable[[Sequence[str | None]], pd.Series]
) -> pd.Series:
    """Return the converted cells; each distinct text is converted once, and the dtype is `convert`'s.

    `convert` converts each text alone, and all its results have one dtype. So a cell does not depend on the
    others; only the time does, which is no secret of privsyn (docs/privacy.md).
    """
    chunks = pc.dictionary_encode(cells, null_encoding="encode").chunks  # the last has all distinct texts
    texts = chunks[-1].dictionary.to_pylist() if chunks else []
    indices = np.concatenate([np.zeros(0, np.int64), *(chunk.indices.to_numpy() for chunk in chunks)])
    return convert(texts).take(indices).reset_index(drop=True)


def distinct(cells: pd.Series) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """Return the index of each cell among the distinct ones, -1 if missing, and the distinct cells."""
    with suppress(TypeError):
        indices, values = pd.factorize(cells)
        return indices, list(values)
    raise InputError(
        f"column {cells.name!r}: contains cells that are neither numbers, dates nor text: drop the column"
    )
