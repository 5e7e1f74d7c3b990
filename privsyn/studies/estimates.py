"""The released counts of single columns as one CSV, which a page carries in a link."""

from __future__ import annotations

import csv
from base64 import b64encode
from io import StringIO

from privsyn.release.release import Release


def estimates(release: Release) -> str:
    """Return the counts of all columns with their 95 % intervals, as the text of a CSV.

    Text that a spreadsheet would run as a formula gets an apostrophe, as with ``excel_safe``.
    """
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(("column", "value", "estimate", "low", "high"))
    for name in release.codec.domain:
        for value, *numbers in release.accuracy_.counts(name).to_numpy().tolist():
            writer.writerow((_safe(name), _safe(str(value)), *(round(number, 1) for number in numbers)))
    return text.getvalue()


def data_link(text: str) -> str:
    """Return a text as an address that holds it.

    >>> data_link("a,b")
    'data:text/csv;charset=utf-8;base64,YSxi'
    """
    return f"data:text/csv;charset=utf-8;base64,{b64encode(text.encode()).decode()}"


def _safe(text: str) -> str:
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text
