"""The texts of a file that stand for a missing cell, as "NA" does."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

MARKS = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
"""Texts that stand for a missing cell if no schema says which do."""

ANSWERS = ("None", "none")
"""Texts that do so too in a column of numbers, times or truth values. In a column of text they are values."""

ALL_MARKS = (*MARKS, *ANSWERS)


def without_marks(cells: pa.ChunkedArray, marks: Sequence[str]) -> pa.ChunkedArray:
    """Return the cells with null in place of the texts that stand for missing."""
    return pc.if_else(
        pc.is_in(cells, value_set=pa.array(marks, pa.string())), pa.scalar(None, pa.string()), cells
    )
