"""Numbers beyond bounds that were found, as far as released counts show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from privsyn.marginals.domain import Floats, Ints, Mask
from privsyn.table.encoding.bounds_cells import BoundsGrid

NEAREST = 8
"""Cells of each grid next to a bound in which numbers beyond it are looked for. In more, noise hides them."""

SURE = 2.0
"""Standard deviations of the noise above a count that hardly any count without noise exceeds."""


@dataclass(frozen=True)
class Beyond:
    """What is beyond one bound of a column, as shares of the numbers within its bounds.

    Parameters
    ----------
    share : float
        In those of the nearest cells whose sum the noise explains least.
    deviation : float
        Standard deviation of its noise.
    largest : float
        Hardly more are in all of the nearest cells.
    at : float, optional
        Share at the bound itself, if its cell holds no other number of the column.
    noise : float
        Standard deviation of its noise.
    """

    share: float
    deviation: float
    largest: float
    at: float | None = field(default=None, repr=False)
    noise: float = field(default=0.0, repr=False)

    @classmethod
    def of(cls, counts: Floats, variances: Floats, inside: float) -> Beyond:
        """Return what noisy counts of the cells beyond a bound show, the nearest first.

        >>> Beyond.of(np.array([30.0, 50.0, 1.0]), np.full(3, 16.0), 1000.0)
        Beyond(share=0.08, deviation=0.005656854249492381, largest=0.09485640646055102)
        """
        if not len(counts) or inside <= 0:
            return cls(0.0, 0.0, 0.0)
        sums, deviations = np.cumsum(counts) / inside, np.sqrt(np.cumsum(variances)) / inside
        farthest = int((sums / np.maximum(deviations, 1e-300)).argmax())
        return cls(float(sums[farthest]), float(deviations[farthest]), float((sums + SURE * deviations)[-1]))


Counted = tuple[BoundsGrid, Floats | Ints, float]
"""Cells, their noisy counts, and the standard deviation of the noise."""


def beyond_bounds(
    bounds: tuple[float, float], counted: Sequence[Counted], *, is_whole: bool = False
) -> tuple[Beyond, Beyond]:
    """Return what is below and above the bounds of a column.

    Parameters
    ----------
    bounds : pair of float
    counted : sequence of Counted
        The finest grid first. The next one shows what is beyond all of its cells.
    is_whole : bool
        Whether the numbers are whole, so that some cells hold one of them alone.

    Examples
    --------
    >>> grid = BoundsGrid.numbers(decimals=0, dtype=np.dtype("float64"))
    >>> counts = np.where(grid.lows >= 4, 1000.0, 0.0) * (grid.lows < 8)
    >>> counts[grid.zero + 3] = 100.0
    >>> [side.share for side in beyond_bounds((4.0, 7.0), [(grid, counts, 5.0)])]
    [0.05, 0.0]
    """
    finest, rows, noise = counted[0]
    cells = finest.find(np.array(bounds)).tolist() if is_whole else []
    if is_whole and not finest.has_points:  # of reals, 1 is the only whole number in the cell up to 1.5
        bounds = bounds[0] - 0.5, bounds[1] + 0.5
    (low, high), inside = bounds, 0.0
    sides: tuple[list[tuple[Floats | Ints, float]], ...] = ([], [])
    for grid, counts, sigma in counted:
        below: Mask = (grid.lows < low) & (grid.highs <= low)
        above: Mask = (grid.highs > high) & (grid.lows >= high)
        inside = inside or float(counts[~below & ~above].sum())
        sides[0].append((counts[below][::-1][:NEAREST], sigma))
        sides[1].append((counts[above][:NEAREST], sigma))
        low, high = min(low, float(grid.lows[0])), max(high, float(grid.highs[-1]))
    first, second = (
        Beyond.of(
            np.concatenate([counts for counts, _ in side]),
            np.concatenate([np.full(len(counts), sigma**2) for counts, sigma in side]),
            inside,
        )
        for side in sides
    )
    if not cells or inside <= 0 or not all(finest.highs[cell] - finest.lows[cell] <= 1 for cell in cells):
        return first, second
    within = np.sqrt(((finest.lows >= bounds[0]) & (finest.highs <= bounds[1])).sum())
    at = [float(rows[cell]) / inside for cell in cells]  # both counts are noisy
    first, second = (
        replace(side, at=share, noise=float(np.hypot(1.0, share * within)) * noise / inside)
        for side, share in zip((first, second), at, strict=True)
    )
    return first, second
