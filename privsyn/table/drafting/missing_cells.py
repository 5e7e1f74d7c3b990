"""Find the column that decides where another one is missing. Not private."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privsyn.marginals.domain import Floats, Ints, Mask

RARE = 1e-9
"""Probability below which missing cells in a group of rows are no chance, if cells are missing at random."""

MOST_VALUES = 50
"""Most values of a column that may decide."""

Driver = tuple[str, tuple[Ints, list[Any]], Floats | None]
"""A column as an expression names it, its codes and values, and its numbers if it has an order."""


def driver(missing: Mask, others: Sequence[Driver]) -> str | None:
    """Return the part of an expression that says when cells are missing, or None.

    It is ``iff ...`` if they are missing in these rows and no others, and ``if ...`` else.

    >>> married = (np.array([0, 1] * 50), ["yes", "no"])
    >>> driver(np.array([False, True] * 50), [("married", married, None)])
    "iff married == 'no'"
    """
    found = [says for each in others if (says := _by_values(missing, *each) or _by_order(missing, *each))]
    found.sort(key=lambda says: (says.startswith("if "), len(says)))
    return found[0] if found else None


def _by_values(missing: Mask, name: str, coded: tuple[Ints, list[Any]], numbers: Floats | None) -> str | None:
    """Return the listed values with which all cells are missing."""
    codes, values = coded
    if not 2 <= len(values) <= MOST_VALUES or numbers is not None:
        return None
    given = codes >= 0
    rows = np.bincount(codes[given], minlength=len(values))
    gone = np.bincount(codes[given], missing[given], minlength=len(values))
    empty = [values[k] for k in np.flatnonzero(gone == rows)]
    if not empty or len(empty) == len(values) or not all(type(v) in (str, int, bool) for v in empty):
        return None
    if not _is_rare(missing, int(rows[gone == rows].sum())):
        return None
    word = "iff" if gone[gone < rows].sum() == 0 else "if"
    values_text = f"== {empty[0]!r}" if len(empty) == 1 else f"in {sorted(empty, key=str)!r}"
    return f"{word} {name} {values_text}"


def _by_order(missing: Mask, name: str, coded: tuple[Ints, list[Any]], numbers: Floats | None) -> str | None:
    """Return the bound below or above which all cells are missing."""
    if numbers is None or not (numbers == np.rint(numbers))[np.isfinite(numbers)].all():
        return None
    given = np.isfinite(numbers)
    gone, present = numbers[given & missing], numbers[given & ~missing]
    if not len(gone) or not len(present):
        return None
    for sign, bound, beyond in (
        ("<", present.min(), gone < present.min()),
        (">", present.max(), gone > present.max()),
    ):
        if abs(bound) < 1e9 and beyond.any() and _is_rare(missing, int(beyond.sum())):
            return f"{'iff' if beyond.all() else 'if'} {name} {sign} {int(bound)}"
    return None


def _is_rare(missing: Mask, rows: int) -> bool:
    """Return whether that many missing cells in a row would be no chance."""
    return bool(missing.mean() ** rows < RARE)
