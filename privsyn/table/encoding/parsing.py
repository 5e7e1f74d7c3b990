"""Parse single cells, of text or of any object, as numbers and times.

Each cell is parsed alone. None raises: a cell that cannot be parsed is missing. So no row affects another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Mask
from privsyn.table.encoding.dtypes import family

A = TypeVar("A")

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
    """Return each cell as float64; NaN where it is no number.

    >>> numbers(["39", b" 4e2", "n/a", None, [1], 10**400, True]).tolist()
    [39.0, 400.0, nan, nan, nan, inf, 1.0]
    """
    return np.fromiter(map(number, cells), dtype=np.float64, count=len(cells))


def number(cell: object) -> float:
    """Return one cell as float64; NaN if it is no number, infinite if it is too large."""
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
        return np.inf if cell > 0 else -np.inf  # type: ignore[operator]


def missing_among(cells: Sequence[object]) -> Mask:
    """Return which cells are missing; a cell that raises when tested is not.

    >>> missing_among([None, np.nan, Decimal("NaN"), Decimal("sNaN"), [None], "", 0]).tolist()
    [True, True, True, False, False, False, False]
    """
    return np.array([alone(_is_missing, cell, False) for cell in cells], dtype=np.bool_)


def _is_missing(cell: object) -> bool:
    return bool(pd.api.types.is_scalar(cell) and pd.isna(cell))  # type: ignore[call-overload]


def moments(cells: Sequence[object], pattern: str | None = None) -> npt.NDArray[np.datetime64]:
    """Return each cell as a local time in whole seconds; NaT where it is no time.

    Text is parsed with `pattern`, as by `datetime.strptime`, or as ISO 8601 if there is no pattern.

    >>> moments(["2015-01-31", "2015-01-31 10:20:30.5+01:00", "31.1.2015", 7]).astype(str).tolist()
    ['2015-01-31T00:00:00', '2015-01-31T10:20:30', 'NaT', 'NaT']
    """
    read = partial(_moment, pattern=pattern)
    return np.array([alone(read, cell, None) for cell in cells], dtype="datetime64[s]")


def _moment(cell: object, pattern: str | None) -> datetime | None:
    if isinstance(cell, str):
        cell = datetime.fromisoformat(cell) if pattern is None else datetime.strptime(cell.strip(), pattern)
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[s]").item()
    if cell is pd.NaT:
        return None
    if isinstance(cell, datetime):
        return datetime(*cell.timetuple()[:6])
    return datetime.combine(cell, time()) if isinstance(cell, date) else None


def clock_seconds(cells: Sequence[object]) -> Floats:
    """Return each cell as seconds since midnight; NaN where it is no time of day.

    >>> clock_seconds(["8:30", "08:30:15.9", time(0, 1), "25:00", 7]).tolist()
    [30600.0, 30615.0, 60.0, nan, nan]
    """
    return np.array([alone(_since_midnight, cell, np.nan) for cell in cells], dtype=np.float64)


def span_seconds(cells: Sequence[object]) -> Floats:
    """Return each cell as a duration in seconds; NaN where it is no duration.

    >>> span_seconds(["1 days 00:00:30", timedelta(minutes=2), "soon", 7]).tolist()
    [86430.0, 120.0, nan, nan]
    """
    return np.array([alone(_length, cell, np.nan) for cell in cells], dtype=np.float64)


def _since_midnight(cell: object) -> float:
    if isinstance(cell, str):
        cell = time.fromisoformat(f"0{cell}" if cell[1:2] == ":" else cell)
    if not isinstance(cell, time):
        return np.nan
    return float(3600 * cell.hour + 60 * cell.minute + cell.second)


def _length(cell: object) -> float:
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
    places = np.concatenate([np.zeros(0, np.int64), *(chunk.indices.to_numpy() for chunk in chunks)])
    return convert(texts).take(places).reset_index(drop=True)


DATES = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y"),
    *("%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y"),
)
"""Formats of dates that are drafted besides ISO 8601, each also with a time of day."""

CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")

OTHERS = 0.05
"""Largest share of the texts in a column of dates that a drafted format does not read."""

LEAST_OF_MIXED = 0.01
"""Least share of the texts that a format of several adds."""

FIRST_CELLS = 20

_LIKE_A_DATE = re.compile(r"(?=.{6}).*(\d\D+\d|\d{8})", re.DOTALL)
"""What every text matches that a drafted format or ISO 8601 reads: two numbers at least, or eight digits."""


def _may_be_dates(cells: Sequence[object]) -> int:
    """Return how many of the cells may be dates: no format need be tried on the others."""
    return sum(not isinstance(cell, str) or bool(_LIKE_A_DATE.match(cell.strip())) for cell in cells)


def date_formats(present: pd.Series) -> list[str | None]:
    """Return the formats that read most cells as dates, and nearly all; None stands for ISO 8601.

    If it is unclear which number is the day, but one choice makes each date a first of a month, take it.

    >>> date_formats(pd.Series(["31.01.2020"])), date_formats(pd.Series(["01/02/2020"]))
    (['%d.%m.%Y'], ['%d/%m/%Y', '%m/%d/%Y'])
    >>> date_formats(pd.Series(["02/01/2020", "11/01/2020"])), date_formats(pd.Series(["May 7, 2020"]))
    (['%m/%d/%Y'], ['%b %d, %Y'])
    """
    clocks = CLOCKS if family(present.dtype) in ("text", "object") else ()
    try:
        places, values = pd.factorize(present)
    except TypeError:
        return []  # cells that are lists
    cells, rows = pd.Index(values).tolist(), np.bincount(places)
    if cells and not all(isinstance(cell, str) for cell in cells):
        return [] if np.isnat(moments(cells)).any() else [None]
    if 2 * _may_be_dates(cells[:FIRST_CELLS]) < len(cells[:FIRST_CELLS]):
        return []  # most texts are no dates, and the first show it
    found: dict[str | None, npt.NDArray[np.datetime64]] = {}
    others: dict[str | None, int] = {}
    for pattern in (None, *(day + clock for day in DATES for clock in clocks)):
        first = np.isnat(moments(cells[:FIRST_CELLS], pattern))
        if 2 * first.sum() > len(first) or (len(cells) <= FIRST_CELLS and first.any()):
            continue
        read = moments(cells, pattern)
        count = int(rows[np.isnat(read)].sum())
        same = any(np.array_equal(read, other, equal_nan=True) for other in found.values())
        if count <= OTHERS * len(present) and not same:
            found[pattern], others[pattern] = read, count
    found = {pattern: read for pattern, read in found.items() if others[pattern] == min(others.values())}
    if len(found) > 1 and len(cells) > 1:
        monthly = [
            pattern
            for pattern, read in found.items()
            if (read == read.astype("datetime64[M]"))[~np.isnat(read)].all()
        ]
        return monthly if len(monthly) == 1 else list(found)
    return list(found)


def mixed_date_formats(present: pd.Series) -> list[tuple[list[str | None], float]]:
    """Return formats that together read nearly all texts as dates, with the share that each adds; or none.

    Formats that add the same texts, as those that begin with the day or the month may do, stand together.

    >>> mixed_date_formats(pd.Series(["31.01.2020", "13.02.2020", "2020-01-31", "02/29/2020"]))
    [(['%d.%m.%Y'], 0.5), ([None], 0.25), (['%m/%d/%Y'], 0.25)]
    >>> mixed_date_formats(pd.Series(["31.01.2020", "in May", "2020-01-31"]))
    []
    """
    counts = present.value_counts(sort=False)
    cells, rows = counts.index.tolist(), counts.to_numpy()
    first = cells[:FIRST_CELLS]
    if 2 * _may_be_dates(first) < len(first):
        return []
    patterns = [None, *(day + clock for day in DATES for clock in CLOCKS)]
    some = {pattern: ~np.isnat(moments(first, pattern)) for pattern in patterns}
    if 2 * np.logical_or.reduce([*some.values()]).sum() < len(first):
        return []  # most texts are no dates, and the first show it
    read = {
        pattern: ~np.isnat(moments(cells, pattern))
        for pattern in patterns
        if some[pattern].any() or len(cells) > FIRST_CELLS
    }
    left, found = np.ones(len(cells), np.bool_), []
    while rows[left].sum() > OTHERS * rows.sum():
        adds = {pattern: int(rows[left & reads].sum()) for pattern, reads in read.items()}
        most = max(adds.values(), default=0)
        if most < LEAST_OF_MIXED * rows.sum():
            return []
        best = [pattern for pattern, add in adds.items() if add == most]
        best = [pattern for pattern in best if np.array_equal(read[pattern] & left, read[best[0]] & left)]
        found.append((best, most / int(rows.sum())))
        left &= ~read[best[0]]
    return found if len(found) > 1 else []


def distinct(cells: pd.Series) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """Return the index of each cell among the distinct ones, -1 if missing, and the distinct cells."""
    with suppress(TypeError):
        places, found = pd.factorize(cells)
        return places, list(found)
    raise InputError(
        f"column {cells.name!r}: contains cells that are neither numbers, dates nor text: drop the column"
    )
