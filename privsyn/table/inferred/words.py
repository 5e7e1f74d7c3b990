"""Columns of numbers or times in which a few words stand for missing cells. Not private.

Words for ranges of values are in `encoding/words.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from privsyn.table.inferred.number_bounds import FEW_NUMBERS, FEW_ROWS
from privsyn.table.inferred.numbers import infer_numbers
from privsyn.table.inferred.time_formats import LARGEST_UNREAD, NO_DATE, counts_of_texts, distinct_texts
from privsyn.table.schema.columns import Coded, Datetime, Duration, Numerical, Time

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
