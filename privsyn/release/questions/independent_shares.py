"""The share of rows that would meet a condition if columns did not depend on each other."""

from __future__ import annotations

from itertools import product
from math import nan
from operator import and_

import numpy as np
import pandas as pd

from privsyn.marginals.domain import Floats
from privsyn.release.table_model import TableModel
from privsyn.table.schema.condition import NO_CONDITION, Condition

POINTS = 20_000
"""Numbers that are spread over the cells of a column."""


def independent_share(
    model: TableModel, condition: Condition, group: Condition, frame: pd.DataFrame
) -> float:
    """Return the share of rows of a group that meet a condition, if columns do not depend on each other.

    A column has its released counts, or the cells of the synthetic rows if it has none. A row is known by the
    boxes of both conditions in which its cells so far lie: the columns follow one by one.
    """
    boxes = (*condition.boxes, *group.boxes)
    shares = {(True,) * len(boxes): 1.0}
    for column in sorted(condition.columns | group.columns):
        numbers, weights = _one_way(model, column, frame)
        if not weights.sum() > 0:
            return nan
        inside = [
            box[column].holds(numbers) if column in box else np.ones(len(numbers), np.bool_) for box in boxes
        ]
        kinds, index = np.unique(np.array(inside).T, axis=0, return_inverse=True)
        of_kinds = np.bincount(index.ravel(), weights) / weights.sum()
        combined: dict[tuple[bool, ...], float] = {}
        by_kind = [*zip(kinds.tolist(), of_kinds.tolist(), strict=True)]
        for (before, share), (kind, more) in product(shares.items(), by_kind):
            both = tuple(map(and_, before, kind))
            combined[both] = combined.get(both, 0.0) + share * more
        shares = combined
    first = len(condition.boxes)
    among = {key: share for key, share in shares.items() if group is NO_CONDITION or any(key[first:])}
    total = sum(among.values())
    return sum(share for key, share in among.items() if any(key[:first])) / total if total > 0 else nan


def _one_way(model: TableModel, column: str, frame: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return numbers of a column and their weights, by its released counts if it has any."""
    codec = model.codec
    if column not in codec.domain.names or codec.attributes_of(column) != (column,):
        return codec.as_compared([column], frame)[column], np.ones(len(frame))
    cells, counts, rng = codec.cells()[column], model.fitted.counts_of(column), np.random.default_rng(0)
    points = 1 if cells.grid is None else max(POINTS // len(counts), 1)
    present = np.repeat(np.arange(len(counts) - cells.nullable), points)
    encoder = codec.encoders[codec.domain.names.index(column)]
    numbers = encoder.draw(present, rng)
    weights = counts[present] / points
    if cells.nullable:
        numbers, weights = np.append(numbers, nan), np.append(weights, counts[-1])
    return numbers, weights
