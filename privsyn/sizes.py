"""How many synthetic rows can be asked for: all that are written in blocks, or as many as memory holds."""

from __future__ import annotations

import os
from math import inf

from privsyn.errors import InputError, plural

MOST_ROWS = 10**10
"""Rows of one sample: those of ten columns are some 400 GB as CSV."""

A_CELL = 8
"""Bytes of a cell of a whole table. Measured: 10 to 12, so that rows that fit are never refused."""

WITH_ROWS_BELOW = "with the rows that belong to them: ask for fewer"
"""What to do if rows of linked tables do not fit: they are made at once, for they depend on each other."""


def memory_of_machine() -> float:
    """Return the bytes of memory of this machine; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return inf


def check_memory(rows: int, cells: float, alternative: str) -> None:
    """Refuse rows whose cells, counted in all tables, do not fit in memory.

    >>> check_memory(10**10, 1e16, "ask for fewer")
    Traceback (most recent call last):
    privsyn.errors.InputError: n: 10,000,000,000 rows do not fit in memory: ask for fewer
    """
    if cells * A_CELL > memory_of_machine():
        raise InputError(f"n: {plural(rows, 'row')} do not fit in memory: {alternative}")
