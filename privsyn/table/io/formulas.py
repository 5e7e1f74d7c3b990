"""Text that a spreadsheet would run as a formula: an apostrophe before it makes it plain text."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pandas as pd

from privsyn.table.encoding.dtypes import family

BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Beginnings of a cell that a spreadsheet may run as a formula (OWASP, "CSV Injection")."""


def without_formulas(frame: pd.DataFrame, numbers: Collection[str] = ()) -> pd.DataFrame:
    """Return the table with an apostrophe before each text that begins like a formula, names included.

    A formula after an apostrophe gets another one, so different texts stay different.

    Parameters
    ----------
    frame : pandas.DataFrame
    numbers : collection of str
        Columns of numbers, which may be text (``-1,5``) and are no formulas.

    Examples
    --------
    >>> frame = pd.DataFrame({"note": ["=1+1", "a=b", None], "gain": ["-5", "3", "4"]})
    >>> without_formulas(frame, ["gain"]).fillna("").to_numpy().tolist()
    [["'=1+1", '-5'], ['a=b', '3'], ['', '4']]
    """
    columns = {
        _escaped(name): cells
        if name in numbers or not has_text(cells)
        else cells.astype(object).map(_escaped)
        for name, cells in frame.items()
    }
    return pd.DataFrame(columns, copy=False)


def with_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table without the apostrophes of `without_formulas`.

    >>> with_formulas(pd.DataFrame({"'=a": ["'=1+1", "''=b", "'c", None]})).fillna("").to_dict("list")
    {'=a': ['=1+1', "'=b", "'c", '']}
    """
    columns = {
        _unescaped(name): cells.map(_unescaped) if family(cells.dtype) in ("text", "object") else cells
        for name, cells in frame.items()
    }
    return pd.DataFrame(columns, copy=False)


def has_text(cells: pd.Series) -> bool:
    """Return whether some cell of a column may be text."""
    return family(cells.dtype) in ("text", "object", "category")


def _escaped(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip("'").startswith(BEGINNINGS) else cell


def _unescaped(cell: Any) -> Any:
    return cell[1:] if isinstance(cell, str) and cell[:1] == "'" and _escaped(cell) != cell else cell
