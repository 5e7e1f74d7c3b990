"""PublicRows: weighted rows of a public table, of which a part of the synthetic rows is drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privsyn.marginals.domain import Floats, Records, keep


@dataclass(frozen=True, eq=False)
class PublicRows:
    """Weighted rows of a public table, of which a part of the synthetic rows is drawn.

    Parameters
    ----------
    records : Records
        In merged codes, in their order. The attributes may be some of those of the model.
    weights : array of shape (records,)
        Not negative.
    share : float
        Share of the synthetic rows that are public rows, from 0 to 1.
    """

    records: Records
    weights: Floats
    share: float

    def __post_init__(self) -> None:
        keep(self, "weights", dtype=np.float64)
        if self.weights.shape != (len(self.records),) or not (self.weights >= 0).all():
            raise ValueError(f"weights of shape {self.weights.shape} for {len(self.records)} rows")
        if not (0 <= self.share <= 1 and self.weights.sum() > 0):
            raise ValueError(f"share {self.share} of rows with the weight {self.weights.sum()}")
