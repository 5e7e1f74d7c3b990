"""How far apart two tables of shares are."""

from __future__ import annotations

import numpy as np

from privsyn.answers.arrays import Floats


def total_variation(one: Floats, other: Floats) -> float:
    """Half the summed difference of the shares: the share of rows that would have to move.

    Examples
    --------
    >>> total_variation(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25]))
    0.25
    """
    return float(np.abs(one - other).sum() / 2)
