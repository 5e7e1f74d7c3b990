"""Columns that follow from another one, in all rows or all but a few: look-ups, and classes of numbers.

Not private: each proposal was read from the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from math import lgamma, log
from typing import Any

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Codes, Floats, Ints, Mask
from privsyn.table.drafting.candidates import ACCIDENT, Cells, Proposal, is_shared, roundest
from privsyn.table.enforcement.determined import Determined
from privsyn.table.enforcement.within import Within
from privsyn.table.inferred.number_bounds import FEW_NUMBERS, FEW_ROWS
from privsyn.table.schema.columns import Categorical, Datetime, Numerical
from privsyn.table.schema.constraint import Constraint, constraint_to_plain

EXCEPTIONS = 0.005
"""Largest share of the rows that may break a proposal."""

UNLISTED = 0.1
"""Largest share of the rows whose key is too rare to be listed, of a look-up of many keys."""

OF_CHANCE = 0.1
"""Largest share of the exceptions that there would be if each row had the most frequent value."""

LEAST_OTHERS = 30
"""Rows beside those of the most frequent value: of fewer, nothing can be said."""

ROWS_OF_KEY = 20
"""Least mean of the rows of a key. With fewer a key may be a person, and a look-up would publish persons."""

MOST_KEYS = 126
"""Most keys of a look-up that stands in the draft; of more, it is a file beside it."""

MOST_IN_FILE = 5000

MANY, MANY_OF_ONE = 20, 3
"""Least values that lie in those of another column, and least mean of how many lie in one: a hierarchy.

Noise hides the small ones. It would hide the coarser ones too, if these were computed and not counted.
"""

BOTH_WAYS = "the reverse holds, too"

ALIKE = 2
"""A key that itself follows from one of at most this many times as many values is no key of its own."""

NO = (0, "no", "No", "NO", "N", "n")
"""Values of a flag that say no."""

SAMPLE = 2000
"""Rows that are read of all pairs of columns."""


def dependences(cells: Sequence[Cells], wanted: Collection[str]) -> dict[str, list[Proposal]]:
    """Return the proposals for each wanted column that follows from another one.

    Examples
    --------
    >>> import pandas as pd
    >>> from privsyn.table.drafting.draft import draft_schema
    >>> age = np.arange(3000) % 90
    >>> rows = pd.DataFrame({"age": age, "group": np.where(age < 18, "child", "adult")})
    >>> columns = draft_schema(rows).columns
    >>> [found] = dependences([Cells(name, columns[name], rows[name]) for name in rows], {"group"})["group"]
    >>> found.plain, found.rows
    ("group == 'adult' iff age >= 18", 3000)
    """
    proposals_of: dict[str, list[Proposal]] = {}
    keys: dict[str, int] = {}
    if not cells or len(cells[0].raw) < LEAST_OTHERS:
        return proposals_of
    some = np.random.default_rng(0).permutation(len(cells[0].raw))[:SAMPLE]
    codes = np.array([column.coded[0][some] for column in cells])
    rows = np.ascontiguousarray(codes.T, np.int32)
    sizes = np.array([len(column.coded[1]) for column in cells])
    # The coarsest column decides: a region follows from its district rather than from its postcode.
    for k in np.argsort(sizes, kind="stable").tolist():
        key_column = cells[k]
        candidates = _seldom_differing(rows, k) if _is_key(key_column) else set()
        if key_column.numbers is not None:
            candidates |= _seldom_changing(codes, key_column.numbers[some])
        for j in sorted(candidates):
            value_column = cells[j]
            finer = sizes[k] > sizes[j] or (sizes[k] == sizes[j] and k < j)
            # A real column does not follow: noise in the last digit is no value.
            kind = value_column.column
            exact = isinstance(kind, Numerical) and kind.fixed_decimals is not None
            can_follow = sizes[j] >= 2 and (kind.listed or exact)
            free = value_column.name in wanted and value_column.name not in proposals_of
            if not (finer and free and can_follow):
                continue
            if proposals := _classes(key_column, value_column) or _look_up(key_column, value_column):
                proposals_of[value_column.name], keys[value_column.name] = proposals, k
    # Of a shop's size and kind, the kind follows from the shop, not from the size, though fewer of these.
    for name, k in [*keys.items()]:
        root = keys.get(cells[k].name, k)
        if sizes[root] <= ALIKE * sizes[k] and root != k:
            value_column = next(column for column in cells if column.name == name)
            proposals_of[name] = _look_up(cells[root], value_column) or proposals_of[name]
    return proposals_of


def _seldom_differing(rows: Codes, k: int) -> set[int]:
    """Return the columns that seldom differ in two rows with the same value of column k, and vary.

    In a wide table few do. So most are ruled out by some of these pairs of rows.
    """
    order = np.argsort(rows[:, k], kind="stable")
    first = np.flatnonzero(np.diff(rows[order, k]) == 0)
    # Each exception makes two differences. The screen lets three times as many pass, as it reads few rows.
    limit = 6 * EXCEPTIONS * len(first) + 4
    some = first[:: max(int(len(first) / (4 * limit)), 1)]
    candidates = np.flatnonzero((rows[order[some]] != rows[order[some + 1]]).sum(axis=0) <= limit)
    differ = rows[np.ix_(order[first], candidates)] != rows[np.ix_(order[first + 1], candidates)]
    candidates = candidates[
        (differ.sum(axis=0) <= limit) & (rows[:, candidates] != rows[0, candidates]).any(axis=0)
    ]
    return set(candidates.tolist()) - {k}


def _seldom_changing(codes: Ints, numbers: Floats) -> set[int]:
    """Return the columns that change hardly more often along the numbers than they have values."""
    order = np.argsort(numbers, kind="stable")
    ordered = codes[:, order[np.isfinite(numbers[order])]]
    both = (ordered[:, 1:] >= 0) & (ordered[:, :-1] >= 0)
    changes = ((np.diff(ordered, axis=1) != 0) & both).sum(axis=1)
    values = codes.max(axis=1) + 1
    limit = values + 6 * EXCEPTIONS * len(order)  # each exception makes two changes; see `_seldom_differing`
    return set(np.flatnonzero((changes < limit) & (values > 1) & (values <= FEW_NUMBERS)).tolist())


def _is_key(cells: Cells) -> bool:
    """Return whether a look-up may have the values of a column as keys: listed ones, texts, whole numbers."""
    column = cells.column
    is_whole = isinstance(column, Numerical) and column.fixed_decimals == 0
    return is_whole or isinstance(column, Categorical)


def _look_up(key_column: Cells, value_column: Cells) -> list[Proposal]:
    """Return the look-up of one column in another, if nearly all rows keep it, and not by chance."""
    (keys, names), (codes, values) = key_column.coded, value_column.coded
    if len(names) > MOST_IN_FILE or not _is_key(key_column):
        return []
    complete = (keys >= 0) & (codes >= 0)
    both = np.zeros((len(names), len(values)), np.int64)
    np.add.at(both, (keys[complete], codes[complete]), 1)
    rows, largest = both.sum(axis=1), both.max(axis=1)
    listed = largest >= FEW_ROWS  # neither a key nor its value is that of a few rows
    wrong = int((rows - largest)[listed].sum())
    gaps = int(((keys >= 0) != (codes >= 0)).sum())  # they speak against a rule, but none of them breaks it
    rare = int(rows[~listed].sum())
    rows_of_rarer_values = len(codes) - int(np.bincount(codes + 1).max())
    followed = np.unique(both.argmax(axis=1)[listed])
    few = MOST_KEYS if listed.sum() <= MOST_KEYS else 0
    if (
        rows.sum() < ROWS_OF_KEY * max(int(listed.sum()), 1)
        or rows_of_rarer_values < LEAST_OTHERS
        or len(followed) < 2
        or wrong + gaps > min(EXCEPTIONS * len(codes), OF_CHANCE * rows_of_rarer_values)
        or rare > (EXCEPTIONS if few else UNLISTED) * len(codes)
    ):
        return []
    listed_rows = [(names[k], values[both[k].argmax()]) for k in np.flatnonzero(listed).tolist()]
    note = BOTH_WAYS if len(followed) == len(listed_rows) == len(values) else ""
    note = f"{rare:,} of these only as their {key_column.name} is rare, and so not listed" if rare else note
    note = "; ".join(filter(None, [note, f"{gaps:,} without one of both cells keep it" if gaps else ""]))
    with suppress(InputError):
        rule = rule_of(key_column, value_column, in_order(listed_rows))
        return [Proposal(constraint_to_plain(rule), int(rows.sum()), wrong + rare, note)]
    return []


def rule_of(key_column: Cells, value_column: Cells, rows: Sequence[tuple[Any, Any]]) -> Constraint:
    """Return the rule that each key has one value: a hierarchy of many keys in few values, or a look-up."""
    is_listed = all(isinstance(cells.column, Categorical) for cells in (key_column, value_column))
    values = {value for _, value in rows}
    if is_listed and len(rows) >= max(MANY, MANY_OF_ONE * len(values)):
        return Within({key_column.name: value_column.name}, list(rows))
    return Determined(value_column.name, key_column.name, rows)


def in_order(rows: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the rows of a look-up by key: numbers, then texts."""
    numbers = sorted(row for row in rows if isinstance(row[0], int | float))
    return numbers + sorted((row for row in rows if not isinstance(row[0], int | float)), key=str)


def _classes(number_column: Cells, class_column: Cells) -> list[Proposal]:
    """Return that each value of a column stands for an interval of numbers, in an expression for each.

    A few rows may break them.
    """
    numbers, (codes, values) = number_column.numbers, class_column.coded
    if numbers is None or not 2 <= len(values) <= FEW_NUMBERS:
        return []
    complete = np.isfinite(numbers) & (codes >= 0)
    numbers, codes = numbers[complete], codes[complete]
    rows, rows_of_rarer_values = len(codes), len(codes) - int(np.bincount(codes).max(initial=0))
    in_class = _in_intervals(numbers, codes)
    if rows - in_class.sum() > min(EXCEPTIONS * rows, OF_CHANCE * rows_of_rarer_values):
        return []
    numbers, codes = numbers[in_class], codes[in_class]
    if np.bincount(codes, minlength=len(values)).min() < LEAST_OTHERS:
        return []
    low, high = np.full(len(values), np.inf), np.full(len(values), -np.inf)
    np.minimum.at(low, codes, numbers)
    np.maximum.at(high, codes, numbers)
    order = np.argsort(low)
    low, high = low[order], high[order]
    if (high[:-1] >= low[1:]).any() or not _is_no_accident(number_column, numbers, low, high):
        return []
    named = [values[k] for k in order.tolist()]
    between = [_between(number_column, *ends) for ends in np.column_stack([high[:-1], low[1:]]).tolist()]
    if not all(is_shared(bound, unit, numbers) for bound, unit, _ in between):
        return []
    bounds = [(bound, text) for bound, _, text in between]
    expressions = []
    for k, value in enumerate(named):
        inside = []
        if k > 0:
            bound, text = bounds[k - 1]
            inside.append(f"{number_column.quoted} {'>' if bound == high[k - 1] else '>='} {text}")
        if k < len(bounds):
            bound, text = bounds[k]
            inside.append(f"{number_column.quoted} {'<=' if bound == high[k] else '<'} {text}")
        expressions.append(f"{class_column.quoted} == {value!r} iff {' and '.join(inside)}")
    # One class follows from the others: of a flag it is the 0, and else the first.
    left_out = 1 if len(named) == 2 and named[1] in NO else 0
    broken = rows - len(codes)
    return [Proposal(expression, rows, broken) for k, expression in enumerate(expressions) if k != left_out]


def _in_intervals(numbers: Floats, codes: Ints) -> Mask:
    """Return which rows lie between the bounds that part the classes with the fewest errors.

    Classes are in the order of their medians. At the bound of two of them, the rows of lower classes below it
    minus those of higher classes below it are the most.

    >>> ages, classes = np.array([3.0, 5, 17, 18, 40, 70, 90]), np.array([0, 0, 0, 1, 1, 1, 0])
    >>> _in_intervals(ages, classes).tolist()
    [True, True, True, True, True, True, False]
    """
    names = np.unique(codes)
    names = names[np.argsort([float(np.median(numbers[codes == name])) for name in names])]
    rank = np.empty(int(codes.max(initial=0)) + 1, np.int64)
    rank[names] = np.arange(len(names))
    ranks, order = rank[codes], np.argsort(numbers, kind="stable")
    ends = np.append(np.diff(numbers[order]) > 0, True)
    predicted = np.zeros(len(codes), np.int64)
    for level in range(1, len(names)):
        below = ranks[order] < level
        right = np.append(0, np.cumsum(np.where(below, 1, -1)))
        right[1:][~ends] = -len(codes) - 1  # rows of one number stay together
        predicted[order[int(right.argmax()) :]] += 1
    return predicted == ranks


def _is_no_accident(number_column: Cells, numbers: Floats, low: Floats, high: Floats) -> bool:
    """Return whether classes that each have an interval of numbers to themselves are no accident.

    Rows of one number are one piece of evidence. If D different numbers fall into classes at random, all k
    classes are intervals with probability k! prod(d_i!) / D!. It shows nothing if no number is left out
    between the ends: then the classes say no more than the rows. A 0 of its own is usually no amount.
    """
    distinct = np.unique(numbers)
    is_whole = number_column.column.fixed_decimals == 0 and not isinstance(number_column.column, Datetime)
    if is_whole and len(distinct) == distinct[-1] - distinct[0] + 1:
        return True
    if len(low) == 2 and low[0] == high[0] == 0:
        return True
    sizes = np.searchsorted(distinct, high, side="right") - np.searchsorted(distinct, low, side="left")
    of_sizes = sum(lgamma(size + 1) for size in sizes.tolist())
    return lgamma(len(low) + 1) + of_sizes - lgamma(len(distinct) + 1) < log(ACCIDENT)


def _between(number_column: Cells, below: float, above: float) -> tuple[float, float, str]:
    """Return the roundest number or date above one and up to the other, its unit, and its text.

    0 stays an end. The unit of a date is in seconds.
    """
    if not isinstance(number_column.column, Datetime):
        bound, unit = (0.0, 0.0) if below == 0 else roundest(below, above)
        return bound, unit, f"{bound:.15g}"
    for time_unit in ("Y", "M", "D", "s"):
        moment = np.datetime64(int(above), "s").astype(f"datetime64[{time_unit}]")
        start, end = ((moment + k).astype("datetime64[s]").astype(np.int64) for k in (0, 1))
        if int(start) > below:
            break
    text = str(moment.astype("datetime64[s]")).replace("T", " ").removesuffix(" 00:00:00")
    return float(start), float(end - start), f"'{text}'"
