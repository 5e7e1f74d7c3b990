"""The columns of a table, and those of listed values, inferred from cells. Not private."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from privsyn.errors import InputError
from privsyn.table.encoding.dtypes import UNCOUNTED, Dtype, family
from privsyn.table.encoding.natural_order import natural_key, scale_of
from privsyn.table.inferred.dates import infer_dates, infer_durations, infer_times
from privsyn.table.inferred.number_bounds import FEW_NUMBERS, FEW_ROWS, FEW_TEXTS
from privsyn.table.inferred.numbers import infer_numbers
from privsyn.table.inferred.ranks import Order
from privsyn.table.inferred.time_formats import LARGEST_UNREAD, NO_DATE, counts_of_texts, distinct_texts
from privsyn.table.schema.columns import (
    Categorical,
    Coded,
    Column,
    Datetime,
    Duration,
    Identifier,
    Numerical,
    Text,
    Time,
)
from privsyn.table.schema.schema import Schema, holds_identifiers

MOST_WORDS = 5
"""Different words in a column of numbers that are named."""

FEWEST_NUMBERS, LEAST_SHARE_OF_NUMBERS = 30, 0.1
"""Cells beside the words, and their share, from which a column is one of numbers or times."""

_WORD = re.compile(r"\D*|[<>≤≥=~]+ ?\d+(?:[.,]\d+)?")
"""Texts that are no numbers: without digits, or bounds such as <5."""

_GONE = re.compile(
    r"(?i)[-–—.?*#x/ ]+|[<>≤≥=~]+ ?\d.*|n\W?[adk]\W?|nan|null|none|nil|unk.*|miss.*|refus.*|do ?n.?.?t know|"
    r"not? .*|inval.*|error|trace|bdl|other|never|und.*|k\.? ?a\.?|keine?.*|unbek.*|nicht.*|ohne.*|inconnu.*|"
    r"desconoc.*|tbd|pending"
)
"""Words that usually mean that there is no number."""

_ANSWER = re.compile(r"(?i)[<>≤≥=~]+ ?\d.*|none|nil|other|never|trace|ohne.*")
"""Those of them that are classes beside few numbers: <5 beside 5 to 9 hours of sleep."""

_PLAIN = re.compile(r"[-+]?(?:0|[1-9]\d*)(?:\.\d+)?|[-+]?\.\d+")

Draft = Callable[[pd.Series], Coded]

UNIQUE = 0.99
"""Share of different cells from which a column may name rows."""


def infer_categories(present: pd.Series, nullable: bool) -> Categorical | None:
    """Return a column for few distinct values, sorted or in the order of its categories; none is rare."""
    kind = family(present.dtype)
    if kind == "boolean":
        return Categorical([False, True], nullable=nullable)
    try:
        rows_of = dict(present.value_counts(sort=False).items())
    except TypeError:
        return None  # cells that are lists
    values = present.cat.categories.tolist() if kind == "category" else present.drop_duplicates().tolist()
    values = [value for value in values if not isinstance(value, float) or math.isfinite(value)]
    if not values or not {type(value) for value in values} <= {str, bool, int, float}:
        return None
    if len(values) > FEW_TEXTS or (len(values) > FEW_NUMBERS and 10 * len(values) > len(present)):
        return None
    rare = {value for value in values if rows_of[value] < FEW_ROWS}
    # Categories without rows are listed if no other is rare; beside rare ones they would show which are.
    if any(rows_of[value] for value in rare) and set(values) != {0, 1}:  # these two reveal nothing
        values, nullable = [value for value in values if value not in rare], True
        if len(values) < 2:
            return None
    if kind == "real" and all(value == round(value) and abs(value) < 2**53 for value in values):
        values = [int(value) for value in values]
    if kind != "category":
        values.sort(key=lambda value: (type(value).__name__, natural_key(value)))
        values = scale_of(values) or values
    return Categorical(values, nullable=nullable)


INFERRED: list[Callable[[pd.Series, bool], Coded | None]] = [
    infer_dates,  # first, as dates may be written as numbers
    infer_numbers,
    infer_times,
    infer_durations,
    infer_categories,  # last, as a list fits any cells
]
"""What returns a column of one kind for the cells that are not missing, and whether others are; or None."""


class InferredColumns(NamedTuple):
    """The columns of a table, as its cells show them.

    Parameters
    ----------
    columns : dict
        The kind of each column.
    frame : pandas.DataFrame
        The rows, with texts of numbers and times read.
    unread : dict
        For each column of such texts how many are not in its format.
    """

    columns: dict[str, Column]
    frame: pd.DataFrame
    unread: dict[str, int]


def infer_schema(frame: pd.DataFrame) -> Schema:
    """Return a schema that fits the cells of a data frame.

    >>> infer_schema(pd.DataFrame({"age": [*range(17, 93)] * 5})).columns["age"].high
    92
    """
    return Schema(infer_columns(frame.copy(deep=False), in_file=False).columns)


def infer_columns(
    frame: pd.DataFrame,
    *,
    in_file: bool,
    labelled: Mapping[str, Column] | None = None,
    declared: Mapping[str, Column] | None = None,
) -> InferredColumns:
    """Return the kind of each column of a table. Columns of `frame` are replaced where texts are read.

    Parameters
    ----------
    frame : pandas.DataFrame
    in_file : bool
        Whether the table is a file whose cells are read as text.
    labelled : mapping of a column to its kind, optional
        What the value labels of a file say.
    declared : mapping of a column to its kind, optional
        Of a table of several, whose keys are known: columns that are named like identifiers are identifiers
        only if nearly all cells differ.
    """
    has_keys, declared = declared is not None, declared or {}
    columns: dict[str, Column] = {}
    for name, cells in frame.items():
        if str(name) in declared:
            columns[str(name)] = declared[str(name)]
        elif holds_identifiers(str(name), cells.dtype) and (not has_keys or names_each_row(cells)):
            columns[str(name)] = Identifier()
        elif family(cells.dtype) in UNCOUNTED:
            columns[str(name)] = Text()
        else:
            in_words = without_words(cells.dropna(), _infer_from_all, in_file=in_file)
            columns[str(name)] = in_words or _infer_from_all(cells)
    formats = {column.format for column in columns.values() if isinstance(column, Datetime)} - {None}
    unread = {}
    for name, column in [*columns.items()]:
        kind = family(frame[name].dtype)
        digits = isinstance(column, Datetime) and kind in ("integer", "real")
        if not (digits or kind in ("text", "object")) or name in declared:
            continue
        if formats and isinstance(column, Categorical):
            dates = infer_dates(frame[name].dropna(), column.nullable, formats)
            columns[name] = column = dates or column
        if isinstance(column, Numerical | Datetime | Time | Duration):
            texts, present = frame[name], frame[name].notna()
            frame[name] = column.as_typed(frame[name])
            unread[name] = int((present & frame[name].isna() & ~texts.isin(column.missing)).sum())
    columns |= {name: column for name, column in (labelled or {}).items() if name in columns}
    order = Order(frame)
    for name, column in columns.items():
        if (
            isinstance(column, Numerical)
            and column.format
            is None  # "$0.00" is an amount, and its text is no number that a list could hold
            and frame[name].nunique() <= FEW_NUMBERS
            and order.is_code(name)
            and not order.has_neighbours(name, least_columns=1)
        ):
            columns[name] = infer_categories(frame[name].dropna(), column.nullable) or column
    return InferredColumns(columns, frame, unread)


def names_each_row(cells: pd.Series) -> bool:
    """Return whether nearly all cells differ, as names of rows do."""
    present = cells.dropna()
    return len(present) > 0 and present.nunique() >= UNIQUE * len(present)


def _infer_from_all(cells: pd.Series) -> Coded:
    """Return the column of the first kind that fits the cells."""
    present = cells.dropna()
    nullable = len(present) < len(cells)
    columns = (infer(present, nullable) for infer in INFERRED)
    fitting = (column for column in columns if column is not None and _can_hold(column, cells.dtype))
    return next(fitting, Categorical(nullable=nullable))


def _can_hold(column: Coded, dtype: Dtype) -> bool:
    try:
        column.encoder(dtype)
    except InputError:
        return False
    return True


def without_words(present: pd.Series, draft: Draft, *, in_file: bool) -> Coded | None:
    """Return a column of numbers or times whose other texts are missing cells; None if it is none.

    Parameters
    ----------
    present : pandas.Series
        Cells of which none is missing.
    draft : callable
        Returns the column of other cells.
    in_file : bool
        Whether the table is a file whose cells are read as text. In others the numbers need a format.

    Examples
    --------
    >>> from privsyn.table.schema.columns import Categorical
    >>> cells = pd.Series([*map(str, range(50)), *["unknown"] * 5])
    >>> column = without_words(cells, lambda rest: Categorical(), in_file=True)
    >>> column.low, column.high, column.integer, column.missing
    (0, 50, True, ('unknown',))
    """
    if not distinct_texts(present):
        return None
    counts = counts_of_texts(present)
    for pattern, kinds in ((_WORD, (Numerical, Datetime, Time, Duration)), (NO_DATE, (Datetime, Time))):
        words = [text for text in counts.index if pattern.fullmatch(text)]
        common = [text for text in words if counts[text] >= FEW_ROWS]
        rows_of_words = counts[words].sum()
        rare = rows_of_words - counts[common].sum()
        few = len(present) - rows_of_words < max(FEWEST_NUMBERS, LEAST_SHARE_OF_NUMBERS * len(present))
        if not common or len(common) > MOST_WORDS or rare > LARGEST_UNREAD * len(present) or few:
            continue
        rest = present[~present.map(str.strip).isin(words)]
        column: Coded | None = draft(rest)
        if Numerical in kinds and not isinstance(column, kinds):
            column = _numbers(rest, common, in_file=in_file)
        if isinstance(column, Time):  # 00:00 is no date, but a time of day
            common = [text for text in common if column.as_typed(pd.Series([text])).isna().all()]
        if isinstance(column, kinds) and common:
            return replace(column, nullable=True, missing=tuple(common))
    return None


def _numbers(rest: pd.Series, words: list[str], *, in_file: bool) -> Numerical | None:
    """Return the column of plain numbers. Few of them with words or open ends are rather classes."""
    is_plain = rest.isin([text for text in rest.unique() if _PLAIN.fullmatch(text.strip())])
    plain = rest[is_plain]
    if len(plain) < (1 - LARGEST_UNREAD) * len(rest):
        return None
    if plain.nunique() <= FEW_NUMBERS:
        gone = all(_GONE.fullmatch(word) and not _ANSWER.fullmatch(word) for word in words)
        if not gone or (counts_of_texts(rest[~is_plain]) >= FEW_ROWS).any():  # such as 10+
            return None
    numbers = pd.to_numeric(plain)
    column = infer_numbers(numbers, nullable=True)
    if column is None or in_file:
        return column
    decimals = column.fixed_decimals
    form = "1234" if decimals == 0 else f"1234.{'5'.ljust(decimals or 1, '0')}"
    return replace(column, format=form)
