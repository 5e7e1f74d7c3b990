"""What a draft says of cells of text that come out missing, or written in another way. Not private."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from privsyn.errors import plural
from privsyn.table.io.csv_output import formatted
from privsyn.table.io.missing_marks import without_marks
from privsyn.table.schema.columns import Ordinal
from privsyn.table.schema.schema import Schema

_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")
"""A number as all programs write it: 4.7 and 4.70 differ in nothing that is said."""

_DIGITS = re.compile(r"\d+")

FEWEST = 5
"""Cells of a form from which it is shown, as many as of a bound or a value in a draft."""


def spelling_remarks(
    schema: Schema, unread: Mapping[str, int], texts: pa.Table | None
) -> dict[str, tuple[str, ...]]:
    """Return for each column of text which cells come out missing, and which are written in another way.

    A draft is read by the owner, but a cell of few rows is none of those that it quotes. So digits are shown
    as 9, a run of them as one, and a form only if at least `FEWEST` cells have it.

    Parameters
    ----------
    schema : Schema
        The draft.
    unread : mapping of a column to the number of its cells that are not read
        Of a table whose cells are no texts.
    texts : pyarrow.Table, optional
        The cells of a CSV file.

    Examples
    --------
    >>> from privsyn.table.schema.columns import Numerical
    >>> schema = Schema({"change": Numerical(-5, 5, integer=True)})
    >>> many, few = (pa.table({"change": cells}) for cells in (["+3", "-2", "+1", "+4", "+5", "+2"], ["+3"]))
    >>> print(*spelling_remarks(schema, {}, many)["change"])
    READ: REWRITTEN, 5 cells such as '+9' will come out as '9'.
    >>> print(*spelling_remarks(schema, {}, few)["change"])
    READ: REWRITTEN, 1 cell will come out in another way.
    """
    if texts is None:
        return {name: (_others(cells),) for name, cells in unread.items() if cells}
    return {name: tuple(_remarks(name, schema, texts[name])) for name in schema.coded}


def _remarks(name: str, schema: Schema, texts: pa.ChunkedArray) -> Iterator[str]:
    """Yield how many cells come out missing, and how many as another text, with the usual form of these."""
    counts = pc.value_counts(without_marks(texts, schema.markers(name)).drop_null())
    values, rows = counts.field("values"), np.array(counts.field("counts"))
    read = schema.coded[name].read_cells(pa.chunked_array([values]), schema.csv)
    if isinstance(schema.coded[name], Ordinal) and (lost := int(rows[read.isna()].sum())):
        yield _others(lost)
    written = formatted(pd.DataFrame({name: read}), schema)[name].astype(str)
    forms: dict[tuple[str, str], int] = {}
    cells = zip(values.to_pylist(), written, read.notna(), rows.tolist(), strict=True)
    for text, cell, is_read, count in cells:
        if is_read and text != cell and not _is_same_number(text, cell):
            form = _DIGITS.sub("9", text), _DIGITS.sub("9", cell)
            forms[form] = forms.get(form, 0) + count
    if forms:
        text, cell = max(forms, key=lambda form: forms[form])
        ending = f"as {cell!r}" if text != cell else "with other digits"
        number, shown = plural(sum(forms.values()), "cell"), forms[text, cell] >= FEWEST
        example = f" such as {text!r} will come out {ending}" if shown else " will come out in another way"
        yield f"READ: REWRITTEN, {number}{example}."


def _others(cells: int) -> str:
    """Return the remark on cells that are not read."""
    return f"READ: OTHERS, {plural(cells, 'cell')} written in another way. Such cells become missing."


def _is_same_number(text: str, cell: str) -> bool:
    """Return whether two texts are one number, both written plainly."""
    return bool(_PLAIN.fullmatch(text) and _PLAIN.fullmatch(cell) and float(text) == float(cell))
