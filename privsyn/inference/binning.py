"""Binning: the fine cells of a number joined to a few groups, by their noisy counts.

A grid that is fixed in advance is either too coarse for a spike or too fine for the noise. So numbers are
counted in many fine cells once, a density with as many steps as stand out of the noise is fitted to the
counts, and all later questions are asked in groups of neighbouring cells. Within a group a cell is drawn by
that density. Everything here looks at released counts only and costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privsyn.marginals.types import Codes, Floats, Ints, Mask, keep

STEP = 1.5
"""A further step of the density must take so many times ln(cells) off the squared residuals, in variances of
the noise: two such for a spike, which so stands out by 5 standard deviations where there are 1,000 cells."""

LEAST = 4.0
"""Standard deviations of noise: a group of fewer records says nothing by itself."""

UNSEEN = 0.7
"""Standard deviations: of a piece with less, so much is taken to be there."""

HEAVY = 1 / 32
"""Of the records: an interval of twice as many is halved."""

SPIKE = 2.0
"""A cell so many times as dense as its neighbours is never joined with them while anything else can be."""


@dataclass(frozen=True, eq=False)
class Axis:
    """How the ordered codes of an attribute lie; public.

    Parameters
    ----------
    widths : float array of shape (codes,)
        How many points of the grid each code holds.
    groups : int
        To how many groups they are joined at most.
    """

    widths: Floats
    groups: int

    def __post_init__(self) -> None:
        keep(self, "widths", dtype=np.float64)
        if not (self.widths > 0).all() or self.groups < 1:
            raise ValueError(f"{self.groups} groups of widths of which some are not above 0")


def join_cells(counts: Floats, sigma: float, axis: Axis) -> tuple[Codes, Floats]:
    """The group of each cell, and how many records the fitted density expects in it.

    Parameters
    ----------
    counts : float array of shape (cells,)
        Noisy.
    sigma : float
        Standard deviation of the noise in each.
    axis : Axis

    Examples
    --------
    A spike, a plain, and a tail in which nothing stands out:

    >>> counts = np.array([900.0, 52, 45, 55, 48, 3, -5, 2, 0, 1])
    >>> group, expected = join_cells(counts, 4.0, Axis(np.ones(10), 4))
    >>> group.tolist(), expected.round().tolist()
    ([0, 1, 1, 2, 3, 3, 3, 3, 3, 3], [900.0, 50.0, 50.0, 50.0, 50.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    """
    expected = fit_steps(counts, sigma, axis.widths)
    enough = expected >= max(LEAST * sigma, expected.sum() / axis.groups)
    spikes = _spikes(expected / axis.widths, enough)
    starts = np.union1d(_equal_intervals(axis), [edge for cell in spikes for edge in (cell, cell + 1)])
    starts = starts[starts < len(counts)].astype(np.int64)
    starts = _halved(starts, expected, max(LEAST * sigma, HEAVY * expected.sum()))
    starts = _fewest_lost(starts, expected, set(spikes), axis.groups)
    return (np.searchsorted(starts, np.arange(len(counts)), side="right") - 1).astype(np.int32), expected


def fit_steps(counts: Floats, sigma: float, widths: Floats, unseen: float = UNSEEN) -> Floats:
    """The counts that a density of few steps expects: least squares, with a price on every step.

    Solved exactly by dynamic programming over the place of the last step. A density is not negative.

    Examples
    --------
    >>> fit_steps(np.array([9.0, 11, 10, 30, 31, 29]), 1.0, np.ones(6)).tolist()
    [10.0, 10.0, 10.0, 30.0, 30.0, 30.0]
    """
    cells = len(counts)
    price = STEP * np.log(max(cells, 2)) * sigma**2
    products, squares = widths * counts, widths**2
    # The squares of the counts are the same for every fit: a piece saves what its density explains of them.
    best, last = np.zeros(cells + 1), np.zeros(cells + 1, np.int64)
    for end in range(1, cells + 1):
        # Summed backwards from the end, not as differences: beside wide cells narrow ones would drown.
        product, square = (np.cumsum(x[end - 1 :: -1])[::-1] for x in (products, squares))
        costs = best[:end] - np.maximum(product, 0.0) ** 2 / square + price
        last[end] = np.argmin(costs)
        best[end] = costs[last[end]]
    expected, end = np.empty(cells), cells
    while end > 0:
        start = last[end]
        square = squares[start:end].sum()
        density = max(products[start:end].sum(), unseen * sigma * np.sqrt(square)) / square
        expected[start:end] = density * widths[start:end]
        end = start
    return expected


def _equal_intervals(axis: Axis) -> Ints:
    """The first cells of as many intervals of equal width as there may be groups."""
    middles = np.cumsum(axis.widths) - axis.widths / 2
    interval = (middles * (axis.groups / axis.widths.sum())).astype(np.int64)
    return np.flatnonzero(np.diff(interval, prepend=-1))


def _spikes(density: Floats, enough: Mask) -> list[int]:
    """Cells of enough records that are at least `SPIKE` times as dense as either neighbour."""
    padded = np.concatenate([[0.0], density, [0.0]])
    return np.flatnonzero(enough & (density >= SPIKE * np.maximum(padded[:-2], padded[2:]))).tolist()


def _halved(starts: Ints, expected: Floats, least: float) -> Ints:
    """Runs cut where they have half of their records, again and again while both parts have `least`."""
    below = np.concatenate([[0.0], np.cumsum(expected)])
    done, open_ = [], list(zip(starts.tolist(), [*starts[1:].tolist(), len(expected)], strict=True))
    while open_:
        start, end = open_.pop()
        half = (below[start] + below[end]) / 2
        cut = start + 1 + int(np.argmin(np.abs(below[start + 1 : end] - half))) if end - start > 1 else start
        if min(below[cut] - below[start], below[end] - below[cut]) >= least:
            open_ += [(start, cut), (cut, end)]
        else:
            done.append(start)
    return np.sort(np.array(done, np.int64))


def _fewest_lost(starts: Ints, expected: Floats, spikes: set[int], groups: int) -> Ints:
    """Neighbours joined, those of the fewest records first and spikes last, until there are few enough."""
    runs, records = starts.tolist(), np.add.reduceat(expected, starts).tolist()
    while len(runs) > groups:
        costs = [
            (runs[place] in spikes or runs[place + 1] in spikes, records[place] + records[place + 1])
            for place in range(len(runs) - 1)
        ]
        place = costs.index(min(costs))
        del runs[place + 1]
        records[place] += records.pop(place + 1)
    return np.array(runs, np.int64)
