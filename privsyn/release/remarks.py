"""Remarks on a release for its owner, from released counts alone: they cost no privacy."""

from __future__ import annotations

import numpy as np

from privsyn.inference.fitted import Fitted
from privsyn.table.encoding.codec import Codec

EMPTY = 0.95
"""Share of missing cells from which a column is called empty. Noise leaves some cells in an empty one."""


def empty_columns(codec: Codec, fitted: Fitted) -> tuple[str, ...]:
    """Return the columns of which the release counts nearly all cells as missing."""
    cells, merging, found = codec.cells(fitted.merging), fitted.merging, set()
    for name, one_way, group, share in zip(
        codec.domain.names, fitted.one_ways, merging.groups, merging.shares, strict=True
    ):
        weights = one_way.counts[group] * share
        if weights[np.isnan(cells[name].lows)].sum() > EMPTY * max(weights.sum(), 1.0):
            found.add(codec.column_of(name))
    return tuple(name for name in codec.names if name in found)
