"""Which columns may explain another one, or where it is missing, by few rows; all rows are read for these.

Not private. Each condition is necessary, so the proposals are those that a search through all columns finds.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, comb, floor, log
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from privsyn.errors import plural
from privsyn.marginals.domain import Floats, Ints, Mask
from privsyn.table.inferred.number_bounds import FEW_ROWS
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.constraint import Constraint, constraint_from_plain

RARE_BY_CHANCE = 1e-9
"""Probability below which missing cells in a group of rows are no chance, if cells are missing at random."""

ACCIDENT = 1e-4
"""Probability below which different numbers beyond a bound do not all have missing cells by accident. Rows of
one number, as of one agent or firm, are alike: they are one piece of evidence."""

CODE = re.compile(r"9*[789]")
"""Numbers that stand for a missing answer in questionnaires."""

LEAST_OF_SCALE = 3
"""Consecutive numbers that are a scale: fewer may be classes."""

PLAIN = (0, 1)
"""Numbers that show nothing of a row, however few rows have them."""

MOST_VALUES = 50
"""Most values of a column that may decide."""

Driver = tuple[str, tuple[Ints, list[Any]], Floats | None]
"""A column as an expression names it, its codes and values, and its numbers if it has an order."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one drafted column."""

    name: str
    column: Coded
    raw: pd.Series

    @cached_property
    def coded(self) -> tuple[Ints, list[Any]]:
        """The place of each cell in the list of different values, -1 where it is missing; and the list."""
        codes, values = pd.factorize(self.raw)
        listed: list[Any] = pd.Index(values).tolist()
        if self.column.lists_values:  # missing cells have made whole numbers floats
            listed = [int(v) if isinstance(v, float) and v.is_integer() else v for v in listed]
        return codes.astype(np.int64), listed

    @cached_property
    def missing(self) -> Mask:
        """Where the cells are missing."""
        return np.asarray(self.raw.isna().to_numpy(bool))

    @cached_property
    def numbers(self) -> Floats | None:
        """Numbers, or seconds since 1970, NaN where missing; None for other columns."""
        return self.column.numbers(self.raw)

    @property
    def quoted(self) -> str:
        """The name as an expression needs it."""
        plain = self.name.isidentifier() and not keyword.iskeyword(self.name)
        return self.name if plain and self.name not in ("missing", "implies", "iff") else f"`{self.name}`"


@dataclass(frozen=True, eq=False)
class Proposal:
    """A constraint that rows keep, and how many show it.

    Parameters
    ----------
    plain : str or dict
        The constraint as an expression, or as plain data.
    rows : int, optional
        Default: those without a missing cell in its columns.
    broken : int
        Rows that do not keep it.
    note : str
        What else the owner should know.
    """

    plain: Any
    rows: int | None = None
    broken: int = 0
    note: str = ""

    @property
    def constraint(self) -> str | Constraint:
        """The constraint, as a schema takes it."""
        return self.plain if isinstance(self.plain, str) else constraint_from_plain(1, self.plain)

    @property
    def remarks(self) -> list[str]:
        """How many rows show it, how many break it, and what else the owner should know."""
        return [
            plural(self.rows or 0, "row"),
            *([f"{self.broken:,} break it"] if self.broken else []),
            *([self.note] if self.note else []),
        ]


def code_for_missing(numbers: Floats) -> float | None:
    """Return the only negative number, if it is whole, or one of nines far above all others; of many rows.

    >>> [code_for_missing(np.array([*rest, 0, 1.5, 3] * 9)) for rest in ([-9], [-9, -8], [-0.5], [])]
    [-9.0, None, None, None]
    >>> [code_for_missing(np.array([*rest, 18, 44, 80] * 9)) for rest in ([999], [99], [999, 998], [500])]
    [999.0, None, None, None]
    """
    lowest, highest = float(numbers.min(initial=0.0)), float(numbers.max(initial=0.0))
    rest = numbers[numbers < highest]
    is_nines = re.fullmatch("99+", f"{highest:.0f}") is not None and highest % 1 == 0
    if is_nines and len(rest) and highest - rest.max() > 2 * np.ptp(rest):
        code = highest
    elif lowest % 1 == 0 and (numbers[numbers < 0] == lowest).all():
        code = lowest
    else:
        return None
    return code if code and (numbers == code).sum() >= FEW_ROWS else None


def codes_beside_scale(values: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the codes for missing beside a scale of consecutive numbers, and it; else two empty lists.

    A scale has at least three numbers. A code stands apart from it, and is negative, or 7, 8, 9, 97, 98, 999.

    >>> codes_beside_scale([1, 2, 3, 4, 5, 98, 99]), codes_beside_scale([1, 2, 3, 9, 12])
    (([98, 99], [1, 2, 3, 4, 5]), ([], []))
    """
    codes = [value for value in values if value < 0 or CODE.fullmatch(str(value))]
    scale = sorted(set(values) - set(codes))
    consecutive = len(scale) >= LEAST_OF_SCALE and scale[-1] - scale[0] == len(scale) - 1
    if not codes or not consecutive or any(scale[0] - 1 <= code <= scale[-1] + 1 for code in codes):
        return [], []
    return sorted(codes), scale


def driver(missing: Mask, columns: Sequence[Driver]) -> tuple[str, int] | None:
    """Return the part of an expression that says when cells are missing, and in how many rows; or None.

    It is ``iff ...`` if they are missing in these rows and no others, and ``if ...`` else.

    >>> married = (np.array([0, 1] * 50), ["yes", "no"])
    >>> driver(np.array([False, True] * 50), [("married", married, None)])
    ("iff married == 'no'", 50)
    >>> unknown = (np.array([0, 1, -1, 0] * 50), ["yes", "no"])
    >>> driver(np.array([False, True, True, False] * 50), [("married", unknown, None)])
    ("iff married == 'no' or married is missing", 100)
    """
    expressions = (_by_values(missing, *column) or _by_order(missing, *column) for column in columns)
    # Sorting is stable: of equals the first.
    return min(
        filter(None, expressions), key=lambda says: (says[0].startswith("if "), len(says[0])), default=None
    )


def _by_values(
    missing: Mask, name: str, coded: tuple[Ints, list[Any]], numbers: Floats | None
) -> tuple[str, int] | None:
    """Return the listed values with which all cells are missing."""
    codes, values = coded
    if not 2 <= len(values) <= MOST_VALUES or numbers is not None:
        return None
    present = codes >= 0
    rows = np.bincount(codes[present], minlength=len(values))
    gone = np.bincount(codes[present], missing[present], minlength=len(values))
    empty = [values[k] for k in np.flatnonzero(gone == rows)]
    if not empty or len(empty) == len(values) or not all(type(v) in (str, int, bool) for v in empty):
        return None
    if not _is_rare(missing, int(rows[gone == rows].sum())):
        return None
    values_text = f"== {empty[0]!r}" if len(empty) == 1 else f"in {sorted(empty, key=str)!r}"
    decided = np.isin(codes, np.flatnonzero(gone == rows))
    return _sentence(f"{name} {values_text}", decided, missing, name, ~present)


def _by_order(
    missing: Mask, name: str, coded: tuple[Ints, list[Any]], numbers: Floats | None
) -> tuple[str, int] | None:
    """Return the bound below or above which all cells are missing."""
    if numbers is None or not (numbers == np.rint(numbers))[np.isfinite(numbers)].all():
        return None
    present_rows = np.isfinite(numbers)
    for sign, side in (("<", numbers), (">", -numbers)):
        gone, cells_present = side[present_rows & missing], side[present_rows & ~missing]
        if not len(gone) or not len(cells_present) or not (beyond := gone < cells_present.min()).any():
            continue
        # Rows of one number, as of one agent or firm, are alike: they are one piece of evidence.
        values, all_values = len(np.unique(gone[beyond])), len(np.unique(side[present_rows]))
        if beyond.all():  # by chance these are just the outermost of all numbers
            chance = 2 / comb(all_values, values) if gone.any() else 0.0  # 0 is usually no amount
        else:
            chance = float((len(gone) / (len(gone) + len(cells_present))) ** values)
        rows = int(beyond.sum())
        bound, unit = roundest(gone[beyond].max(), cells_present.min())
        if chance < ACCIDENT and _is_rare(missing, rows) and is_shared(bound, unit, side[present_rows]):
            text = f"{name} {sign} {bound if sign == '<' else 0 - bound:.15g}"
            return _sentence(text, present_rows & (side < cells_present.min()), missing, name, ~present_rows)
    return None


def _sentence(condition: str, decided: Mask, missing: Mask, name: str, unknown: Mask) -> tuple[str, int]:
    """Return what a condition says of missing cells, given where it is true and where it is unknown.

    Where the deciding cell is missing too, the condition is unknown: these rows count like all others.
    """
    if unknown.any() and missing[unknown].all():
        condition, decided = f"{condition} or {name} is missing", decided | unknown
    return f"{'iff' if (decided == missing).all() else 'if'} {condition}", int(decided.sum())


def roundest(below: float, above: float) -> tuple[float, float]:
    """Return the number with the fewest digits that is above one number and not above another, and its unit.

    The unit is that of its last digit, and 0 for a number of too many digits.

    >>> roundest(17, 18), roundest(15, 23), roundest(0.19, 0.26), roundest(-42, -39)
    ((18.0, 1.0), (20.0, 10.0), (0.2, 0.1), (-40.0, 10.0))
    """
    for decimals in range(-12, 13):
        scaled = above * 10.0**decimals
        bound = round(floor(scaled + 1e-9) / 10.0**decimals, max(decimals, 0))
        if below < bound <= above:
            return bound, round(10.0**-decimals, max(decimals, 0))
    return above, 0.0


def is_shared(bound: float, unit: float, numbers: Floats) -> bool:
    """Return whether a bound of a rule is 0 or 1, or enough rows have the numbers that its last digit shows.

    The bound is the lowest of these numbers, rounded down. Of a few rows it would give their number away.

    >>> numbers = np.array([20_082_301.0, 20_082_322, 20_082_322])
    >>> is_shared(20_082_322.0, 1.0, numbers), is_shared(20_082_322.0, 1.0, np.repeat(numbers, 3))
    (False, True)
    """
    shown = (numbers >= bound) & (numbers < bound + unit) | (numbers == bound)
    return abs(bound) in PLAIN or int(shown.sum()) >= FEW_ROWS


def _is_rare(missing: Mask, rows: int) -> bool:
    """Return whether that many missing cells in a row would be no chance."""
    return bool(missing.mean() ** rows < RARE_BY_CHANCE)


LEAST_WEIGHT = 1e-300

NEAR_ONE = 1e-3
"""A weight this near to 1 is that of a part of a sum, up to rounded cells."""

HEAD_ROWS = 64
"""Rows that are read of all columns."""


class LookUps:
    """Columns of a few values each, of which one may determine another.

    Parameters
    ----------
    codes : sequence of arrays of shape (rows,)
        For each column the value of each row, as a number from 0 to 126; -1 where it is missing.

    Examples
    --------
    >>> LookUps([np.arange(100) % 4, np.arange(100) % 2, np.arange(100) % 3]).deciding(1).tolist()
    [0]
    """

    def __init__(self, codes: Sequence[Ints]) -> None:
        # Row by row, because few rows are read of all columns. Missing cells have the code 0.
        self._codes = np.array([column + 1 for column in codes], np.int8, ndmin=2).T.copy()
        sizes = self._codes.max(axis=0, initial=0).astype(np.int64) + 1
        self._starts = np.cumsum(sizes) - sizes
        self._last = np.empty(sizes.sum(), np.int8)
        patterns: dict[bytes, int] = {}
        gaps = (np.packbits(column < 0).tobytes() for column in codes)
        self._gaps = np.array([patterns.setdefault(pattern, len(patterns)) for pattern in gaps])

    def deciding(self, index: int) -> Ints:
        """Return the columns that may determine a column: where one is equal in two rows, so is it."""
        values = self._codes[:, index]
        order = np.argsort(values, kind="stable")
        rows_of = np.bincount(values)
        before = np.repeat(np.cumsum(rows_of) - rows_of, rows_of)
        few = max(HEAD_ROWS // len(rows_of), 2)  # of each value, so that rare ones are read
        rows = order[np.arange(len(values)) - before < few]
        wanted = values[rows, np.newaxis]
        cells = self._codes[rows] + self._starts
        self._last[cells] = wanted
        alike = (self._last[cells] == wanted).all(axis=0) & (self._gaps == self._gaps[index])
        alike[index] = False
        return np.flatnonzero(alike)


class Drivers:
    """Columns that may decide where other columns are missing.

    Parameters
    ----------
    known : sequence of `Driver`
    """

    def __init__(self, columns: Sequence[Driver]) -> None:
        self._known = columns
        groups, owners, sizes = [], [], []
        ends, of_ends = [], []
        for index, (_, (codes, values), numbers) in enumerate(columns):
            if numbers is not None:
                for first in _ends(numbers):
                    ends.append(np.resize(first, HEAD_ROWS))
                    of_ends.append(index)
            elif 2 <= len(values) <= MOST_VALUES:
                rows_of = np.bincount(codes + 1, minlength=len(values) + 1)
                order, stops = np.argsort(codes, kind="stable"), np.cumsum(rows_of)
                for code in range(len(values)):
                    size, stop = int(rows_of[code + 1]), int(stops[code + 1])
                    groups.append(np.resize(order[stop - size : stop][:HEAD_ROWS], HEAD_ROWS))
                    owners.append(index)
                    sizes.append(size)
        self._groups, self._ends = (
            np.array(rows, np.int64).reshape(-1, HEAD_ROWS) for rows in (groups, ends)
        )
        self._owners, self._of_ends = np.array(owners, np.int64), np.array(of_ends, np.int64)
        self._sizes = np.array(sizes, np.float64)

    def candidates_for(self, missing: Mask) -> list[Driver]:
        """Return the columns that `driver` has to examine, given where a column is missing."""
        share = float(missing.mean())
        # Rows that are no chance.
        rows_needed = HEAD_ROWS if share == 1 else max(ceil(log(RARE_BY_CHANCE) / log(share)) - 1, 1)
        empty = missing[self._groups].all(axis=1)
        rows = np.bincount(self._owners[empty], self._sizes[empty], len(self._known))
        beyond = missing[self._ends[:, :rows_needed]].all(axis=1)
        indices = np.union1d(np.flatnonzero(rows >= rows_needed), self._of_ends[beyond])
        return [self._known[index] for index in indices.tolist()]


def _ends(numbers: Floats) -> Iterator[Ints]:
    """Yield the rows with the lowest and with the highest numbers, from the outermost on."""
    present = np.flatnonzero(np.isfinite(numbers))
    if not len(present):
        return
    for side in (numbers[present], -numbers[present]):
        few = np.argpartition(side, min(HEAD_ROWS, len(side)) - 1)[:HEAD_ROWS]
        yield present[few[np.argsort(side[few])]]


def possible_sums(numbers: Floats, rounding: float) -> Iterator[tuple[int, int, int]]:
    """Yield rows i < j and k of which the third may be the sum of the first two.

    Weighted sums over all cells of a row add up if the cells do. They are compared instead of the cells.

    Parameters
    ----------
    numbers : array of shape (rows, cells)
        Rows with other gaps (NaN) add up to no row.
    rounding : float
        Largest error of a sum of cells, relative to the sum of their absolute values.

    Examples
    --------
    >>> list(possible_sums(np.array([[1.0, 2.0], [4.0, 9.0], [3.0, 7.0]]), 1e-6))
    [(0, 2, 1)]
    """
    weights = 1 + np.random.default_rng(0).random(numbers.shape[1])
    finite = ~np.isinf(numbers).any(axis=1)
    cells = np.where(np.isfinite(numbers), numbers, 0.0)
    sums, sizes = cells @ weights, np.abs(cells) @ weights
    order = np.flatnonzero(finite)[np.argsort(sums[finite], kind="stable")]
    ordered = sums[order]
    for i in range(len(sums)):
        both = sums[i] + sums[i + 1 :]
        slack = 3 * rounding * (sizes[i] + sizes[i + 1 :])
        first = np.searchsorted(ordered, both - slack, side="left")
        last = np.searchsorted(ordered, both + slack, side="right")
        for near in np.flatnonzero(last > first).tolist():
            for k in sorted(order[first[near] : last[near]].tolist()):
                if k not in (i, i + 1 + near):
                    yield i, i + 1 + near, k


def extreme_rows(numbers: Floats) -> list[Ints]:
    """Return for each column the rows with the cells furthest from zero, without missing and infinite ones.

    Examples
    --------
    >>> [sorted(rows.tolist()) for rows in extreme_rows(np.array([[0.0, 0.0, 7.0]]))]
    [[0, 1, 2]]
    """
    sizes = np.where(np.isfinite(numbers), np.abs(numbers), -1.0)
    few = min(HEAD_ROWS // 4, sizes.shape[1])
    return [np.argpartition(row, -few)[-few:] for row in sizes]


def sum_of_many(
    numbers: Floats, total: int, without: Sequence[int], extremes: Sequence[Ints]
) -> tuple[int, ...]:
    """Return three columns or more that may add up to another, by least squares in some rows; or none.

    Parameters
    ----------
    numbers : array of shape (columns, rows)
        Columns with other gaps (NaN) are no parts.
    total : int
    without : sequence of int
        Columns that are no parts.
    extremes : sequence of arrays of int
        For each column rows that show its weight: a part may be zero in nearly all others.

    Examples
    --------
    >>> parts = np.random.default_rng(0).gamma(1, 9, (4, 200))
    >>> columns = np.vstack([parts, parts[:3].sum(axis=0)])
    >>> sum_of_many(columns, 4, [], extreme_rows(columns))
    (0, 1, 2)
    """
    gone = np.isnan(numbers)
    alike = (gone == gone[total]).all(axis=1)
    alike[[total, *without]] = False
    parts = np.flatnonzero(alike)
    is_complete = np.isfinite(numbers[total]) & np.isfinite(numbers[parts]).all(axis=0)
    rows = np.flatnonzero(is_complete)[: 4 * len(parts) + HEAD_ROWS]
    if len(parts) < 3 or len(rows) <= len(parts):
        return ()
    rows = np.unique(np.concatenate([rows, *(extremes[part] for part in parts.tolist())]))
    rows = rows[is_complete[rows]]
    cells = numbers[np.ix_(parts, rows)].T
    scale = np.maximum(np.abs(cells).max(axis=0), LEAST_WEIGHT)
    try:
        weights = nnls(cells / scale, numbers[total, rows])[0] / scale
    except RuntimeError:  # too many steps
        return ()
    near_one = np.flatnonzero(np.abs(weights - 1) < NEAR_ONE)
    return tuple(parts[near_one].tolist()) if len(near_one) >= 3 else ()
