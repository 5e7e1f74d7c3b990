"""The rows to learn from: at most a number of rows of each person, encoded and kept in memory if they fit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from privsyn.arguments import check_bytes
from privsyn.marginals.packing import Packing
from privsyn.private.contribution import kept_rows
from privsyn.private.rows import CachedWalk, Rows
from privsyn.table.encoding.codec import Codec
from privsyn.table.io.source import RawTable

if TYPE_CHECKING:
    from privsyn.private.sampler import Bits


def bounded(rows: RawTable, unit: str | None, rows_per_unit: int, bits: Bits) -> RawTable:
    """Return the rows to learn from: at most `rows_per_unit` of each person, without the identifiers.

    No row was counted before this, and the other rows are never looked at again.
    """
    if unit is None:
        return rows
    rows.require_again("whose rows they are")
    return rows.bounded(unit, partial(kept_rows, rows_per_unit=rows_per_unit, bits=bits))


def coded(rows: RawTable, codec: Codec, limit: int | str) -> Rows:
    """Return the encoded rows. They may take half of the memory, or all that an iterator needs."""
    memory = check_bytes("memory", limit)
    walk = rows.walk(codec, memory / 2)
    if rows.near:
        most = np.inf if rows.once else memory / 2
        walk = CachedWalk(walk, Packing(codec.domain.sizes), most, rows.require_unchanged)
    return Rows(codec.domain, walk, memory / 4)
