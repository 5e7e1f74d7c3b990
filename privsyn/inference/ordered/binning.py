"""Binning: join the fine cells of a number to a few groups, by their expected counts.

A fixed grid is either too coarse for a spike or too fine for the noise. So numbers are first counted in many
fine cells and runs of them (`hierarchy`). All later tables use groups of neighbouring cells: of about equal
mass in the bulk, ever longer in the tails. Careless bounds so cost a few groups only. Within a group, cells
are drawn by their expected counts. This reads released counts only and costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privsyn.marginals.types import Codes, Floats, Ints, Mask, keep

STEP = 1.5
"""Price of a step of the density: STEP * ln(cells) noise variances of squared residuals. A spike needs two
steps, so with 1,000 cells it must stand out by about 5 standard deviations."""

LEAST = 4.0
"""Standard deviations of noise: a group with fewer records is too noisy alone."""

HEAVY = 1 / 32
"""Share of the records: an interval that holds twice as much is halved."""

WHISKER = 1.5  # interquartile ranges (Tukey, Exploratory Data Analysis, 1977)

TINY = 1e-9  # records: a column without any has quartiles too
SPIKE = 2.0
"""Ratio of a cell's density to its neighbours' from which it is a spike. Spikes are joined last."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Public layout of the ordered codes of an attribute.

    Parameters
    ----------
    widths : float array of shape (codes,)
        Number of grid points in each code.
    groups : int
        Largest number of groups after joining.
    """

    widths: Floats
    groups: int

    def __post_init__(self) -> None:
        keep(self, "widths", dtype=np.float64)
        if not (self.widths > 0).all() or self.groups < 1:
            raise ValueError(f"{self.groups} groups of widths of which some are not above 0")


def join_cells(expected: Floats, sigma: float, axis: Axis) -> Codes:
    """Return the group of each cell.

    Parameters
    ----------
    expected : float array of shape (cells,)
        Expected counts, at least 0.
    sigma : float
        Standard deviation of the noise in a cell, in records.
    axis : Axis

    Examples
    --------
    A spike, a plateau, and an empty tail:

    >>> expected = np.array([900.0, 50, 50, 50, 50, 0, 0, 0, 0, 0])
    >>> join_cells(expected, 4.0, Axis(np.ones(10), 4)).tolist()
    [0, 1, 1, 2, 3, 3, 3, 3, 3, 3]
    """
    enough = expected >= max(LEAST * sigma, expected.sum() / axis.groups)
    spikes = _spikes(expected / axis.widths, enough)
    starts = np.union1d(_intervals(expected, axis), [edge for cell in spikes for edge in (cell, cell + 1)])
    starts = starts[starts < len(expected)].astype(np.int64)
    starts = _halved(starts, expected, max(LEAST * sigma, HEAVY * expected.sum()))
    starts = _fewest_lost(starts, expected, set(spikes), axis.groups)
    return (np.searchsorted(starts, np.arange(len(expected)), side="right") - 1).astype(np.int32)


def fit_steps(counts: Floats, sigma: float, widths: Floats) -> Floats:
    """Return the expected counts of a piecewise constant density: least squares with a price per step.

    Dynamic programming over the position of the last step finds the exact optimum. The density is not
    negative.

    Examples
    --------
    >>> fit_steps(np.array([9.0, 11, 10, 30, 31, 29]), 1.0, np.ones(6)).tolist()
    [10.0, 10.0, 10.0, 30.0, 30.0, 30.0]
    """
    cells = len(counts)
    price = STEP * np.log(max(cells, 2)) * sigma**2
    products, squares = widths * counts, widths**2
    # The sum of squared counts is constant: a piece saves the part that its density explains.
    best, last = np.zeros(cells + 1), np.zeros(cells + 1, np.int64)
    for end in range(1, cells + 1):
        # Cumulate backwards from the end. Differences of sums would cancel for narrow cells beside wide ones.
        product, square = (np.cumsum(x[end - 1 :: -1])[::-1] for x in (products, squares))
        costs = best[:end] - np.maximum(product, 0.0) ** 2 / square + price
        last[end] = np.argmin(costs)
        best[end] = costs[last[end]]
    expected, end = np.empty(cells), cells
    while end > 0:
        start = last[end]
        square = squares[start:end].sum()
        density = max(products[start:end].sum(), 0.0) / square
        expected[start:end] = density * widths[start:end]
        end = start
    return expected


def _intervals(expected: Floats, axis: Axis) -> Ints:
    """Return the first cells of `axis.groups` equal intervals of the bulk, and of ever longer ones beyond.

    The bulk lies within the whiskers. Beyond it, each interval is as long as all between it and the median.
    """
    ends = np.cumsum([0.0, *axis.widths])
    below = np.cumsum([0.0, *np.maximum(expected, TINY)])
    first, median, third = np.interp([0.25, 0.5, 0.75], below / below[-1], ends)
    reach = WHISKER * max(third - first, axis.widths.min())
    low, high = max(first - reach, 0.0), min(third + reach, ends[-1])
    edges = [*np.linspace(low, high, axis.groups + 1)[:-1]]
    for start, sign in ((high, 1.0), (low, -1.0)):
        while 0 < start < ends[-1]:
            edges.append(start)
            start += sign * max(abs(start - median), axis.widths.min())
    return np.unique(np.searchsorted(ends[:-1], [0.0, *edges], side="right") - 1)


def _spikes(density: Floats, enough: Mask) -> list[int]:
    """Return the cells with enough records that are at least `SPIKE` times as dense as either neighbour."""
    padded = np.concatenate([[0.0], density, [0.0]])
    return np.flatnonzero(enough & (density >= SPIKE * np.maximum(padded[:-2], padded[2:]))).tolist()


def _halved(starts: Ints, expected: Floats, least: float) -> Ints:
    """Cut runs where they reach half of their records, repeatedly while both parts have `least`."""
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
    """Join neighbours until there are at most `groups`: fewest records first, spikes last."""
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
