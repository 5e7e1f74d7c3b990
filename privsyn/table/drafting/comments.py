"""The comment above a column of a draft: what was read from the rows, and a question to the reviewer."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
import pandas as pd

from privsyn.errors import plural
from privsyn.table.encoding.natural_order import scale_of
from privsyn.table.inferred.dates import PERIODS, months_between
from privsyn.table.inferred.number_bounds import FEW_NUMBERS, FEW_ROWS, is_exact
from privsyn.table.schema.columns import (
    Categorical,
    Coded,
    Column,
    Datetime,
    Duration,
    Identifier,
    Numerical,
    Ordinal,
    Time,
)

MOST_DIFFERENT, ROWS_A_NUMBER = 60, 20
"""Most different numbers of a column of decimals that is said to have few, and rows to each on average."""

STEP_TOLERANCE = 0.01
"""Distance from a multiple of a step, in steps, up to which a number counts as one."""

MANY_NUMBERS = 5
"""Numbers in a list. A list this long may show the value of a single row."""


def comment_on(column: Column, cells: pd.Series | None) -> str:
    """Return the comment above a drafted column, from its cells, or without them from its name and dtype."""
    if isinstance(column, Identifier):
        return (
            "NAMED LIKE AN IDENTIFIER: not read, new ones are generated. If it is none, say which kind it is."
        )
    if not isinstance(column, Coded):
        return ""
    if cells is None:
        return facts_wanted(column)
    if cells.isna().all():
        return ""
    facts = [*facts_read(column, cells), *([] if column.nullable else ["no cell missing"])]
    return " ".join(filter(None, (f"READ: {', '.join(facts)}." if facts else "", doubt(column))))


@singledispatch
def facts_wanted(column: Coded) -> str:
    """Return which public facts the reviewer may add; an empty text if none is missing."""
    return ""


@facts_wanted.register
def _(column: Categorical) -> str:
    wanted = "values: ? Or is it {kind: numerical}, {kind: datetime}, {kind: text}?"
    return "" if column.is_public else wanted


@facts_wanted.register
def _(column: Ordinal) -> str:
    return "" if column.is_public else "low: , high: ?"


@singledispatch
def facts_read(column: Coded, cells: pd.Series) -> list[str]:
    """Return which settings of a drafted column were read from the rows."""
    return []


@facts_read.register
def _(column: Categorical, cells: pd.Series) -> list[str]:
    in_order = column.ordered or scale_of(column.listed) == list(column.listed)
    text = f"{plural(len(column.listed), 'value')}{', in their order' if in_order else ''}"
    return [] if column.values is None else [text]


@facts_read.register
def _(column: Numerical, cells: pd.Series) -> list[str]:
    is_plain = not column.integer and not column.decimals
    exact = column.integer and is_exact(column.low, column.high, cells.dropna().to_numpy(np.float64))
    digits = "all whole" if column.integer else plural(column.decimals or 0, "decimal")
    return [
        *([] if column.format is None else ["format"]),
        "exact bounds" if exact else "bounds",
        *([] if is_plain else [digits]),
        *([] if column.step is None else [f"all multiples of {column.step:,}"]),
        *(few_numbers(cells) if is_plain and column.step is None else []),
    ]


def few_numbers(cells: pd.Series) -> list[str]:
    """Return a remark if a column of decimals has few different numbers: synthetic rows do not keep them."""
    numbers = cells.dropna()
    different = numbers.nunique()
    if different > MOST_DIFFERENT or len(numbers) < ROWS_A_NUMBER * different:
        return []
    frequent = np.sort([number for number, rows in numbers.value_counts().items() if rows >= FEW_ROWS])
    gap = float(np.diff(frequent).min(initial=np.inf))
    multiples = frequent / gap
    is_step = gap < np.inf and np.allclose(multiples, multiples.round(), rtol=0, atol=STEP_TOLERANCE)
    step = f"`step: {gap:.6g}`" if is_step else "a `step`"
    return [f"only {plural(different, 'different number')}: rows get others too, unless {step} is given"]


@facts_read.register
def _(column: Datetime, cells: pd.Series) -> list[str]:
    seconds = column.numbers(cells)
    low, high = (column.since(bound).total_seconds() for bound in (column.low, column.high))
    inside = seconds[(seconds >= low) & (seconds <= high)]
    first, last = (inside.min(), inside.max()) if len(inside) else (low, high)
    months = months_between(np.datetime64(int(first), "s"), np.datetime64(int(last), "s"))
    offsets = f"the offsets are those of {column.zone}, and perhaps of other zones"
    return [
        *([] if column.format is None else ["format"]),
        *([] if column.zone is None else [offsets]),
        f"first and last {PERIODS[months]}",
        *([] if column.step is None else [f"all multiples of {column.step}"]),
    ]


@facts_read.register
def _(column: Time, cells: pd.Series) -> list[str]:
    step = [] if column.step is None else [f"all multiples of {column.step}"]
    return [] if column.format is None else [f"times of day, format {column.format}", *step]


@facts_read.register
def _(column: Duration, cells: pd.Series) -> list[str]:
    return [*([] if column.format is None else [f"lengths of time, format {column.format}"]), "bounds"]


@singledispatch
def doubt(column: Coded) -> str:
    """Return the question whether another kind fits better; an empty text if there is none."""
    return ""


@doubt.register
def _(column: Categorical) -> str:
    if column.values is None:
        return "Common values are found. Free text? {kind: text} leaves it out."
    if sum(type(value) in (int, float) for value in column.values) >= MANY_NUMBERS:
        return "Counts or amounts? Then bounds reveal less: {kind: numerical, low: , high: }."
    is_code = len(column.values) > 2 and all(type(value) is int for value in column.values)
    if is_code and column.ordered is None:
        bounds = f"low: {column.values[0]}, high: {column.values[-1]}"
        numbers = f"{{kind: numerical, {bounds}, integer: true}}"
        return f"In an order? Then add ordered: true, or numbers keep it: {numbers}."
    if len(column.values) > 2 and column.ordered is None and scale_of(column.listed) == list(column.listed):
        return "Does the order matter? Then ordered: true keeps correlations, and blurs single values."
    return ""


@doubt.register
def _(column: Numerical) -> str:
    if column.low is None or column.high is None or not column.integer:
        return ""
    if column.high - column.low >= FEW_NUMBERS:
        return ""
    return "Codes or classes? Then list them: {kind: categorical, values: [ ]}."


@doubt.register
def _(column: Duration) -> str:
    pattern = column.format
    if pattern is None or ":" not in pattern or "%D" in pattern:
        return ""
    clock = pattern if pattern.count(":") > 1 else pattern.replace("%-M", "%-H").replace("%S", "%M")
    return f'Times of day? Then {{kind: time, format: "{clock}"}}.'
