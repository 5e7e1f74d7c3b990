"""Text that a spreadsheet would run as a formula, and how it is made harmless in a CSV."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pandas as pd

from privsyn.table.encoding.dtypes import family

BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""How a cell begins that a spreadsheet may read as a formula (OWASP, "CSV Injection")."""


def without_formulas(frame: pd.DataFrame, numbers: Collection[str] = ()) -> pd.DataFrame:
    """Return the table with an apostrophe before each text that begins like a formula, names included.

    A formula that has an apostrophe already gets one more, so no two texts become alike.

    Parameters
    ----------
    frame : pandas.DataFrame
    numbers : collection of str
        Columns of numbers, which may be written as text (``-1,5``) and are no formulas.

    Examples
    --------
    >>> frame = pd.DataFrame({"note": ["=1+1", "a=b", None], "gain": ["-5", "3", "4"]})
    >>> without_formulas(frame, ["gain"]).fillna("").to_numpy().tolist()
    [["'=1+1", '-5'], ['a=b', '3'], ['', '4']]
    """
    columns = {
        _escaped(name): cells
        if name in numbers or not _has_text(cells)
        else cells.astype(object).map(_escaped)
        for name, cells in frame.items()
    }
    return pd.DataFrame(columns, copy=False)


def _has_text(cells: pd.Series) -> bool:
    return family(cells.dtype) in ("text", "object", "category")


def _escaped(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip("'").startswith(BEGINNINGS) else cell
