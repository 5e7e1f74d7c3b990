"""Hierarchical counts: a column is counted in fine cells, in runs of eight cells, and in runs of eight runs.

The noise of many cells adds up: the sum of half a column's cells is far noisier than one count of it. Runs
show where the records are, and cells show which values are frequent. The counts are combined in two steps.
Upwards, each run gets the least-squares estimate from its own count and those of its children (Hay et al.,
PVLDB 2010). Downwards, the children of a run share its records evenly by width, unless their counts stand out
of the noise; those are shrunk towards even shares (James and Stein 1961). So the noise of empty cells stays
within runs that hold records.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from privsyn.inference.consistency import norm_sub
from privsyn.marginals.domain import Domain
from privsyn.marginals.grouping import Grouping
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Codes, Floats

BRANCHES = 8
"""Children of a run; the last run has the rest."""

LEVELS = 3  # cells, runs, and runs of runs
BEYOND = 2.0  # standard deviations of the noise's energy, below which the children share evenly
TINY = float(np.finfo(float).tiny)


def runs(cells: int) -> Codes:
    """Return the run of each of some neighbouring cells.

    >>> runs(17).tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    return np.minimum(np.arange(cells) // BRANCHES, max(cells // BRANCHES, 1) - 1).astype(np.int32)


def in_runs(domain: Domain, names: Collection[str]) -> Merging:
    """Return the merging of the ordered codes of some attributes to runs."""
    groups = []
    for name, size, ordered in zip(domain.names, domain.sizes, domain.ordered, strict=True):
        group = runs(ordered) if name in names else np.arange(ordered, dtype=np.int32)
        others = np.arange(size - ordered, dtype=np.int32) + group.max(initial=-1) + 1
        groups.append(np.concatenate([group, others]))
    shares = tuple(1 / np.bincount(group)[group] for group in groups)
    return Merging(domain, Grouping(tuple(groups)).domain(domain), tuple(groups), shares)


def expected_cells(levels: Sequence[tuple[Floats, Floats]], widths: Floats, total: float) -> Floats:
    """Return the expected number of records in each cell, at least 0 and with the total.

    Parameters
    ----------
    levels : sequence of (counts, variances)
        Noisy counts of the cells, of their runs, of the runs of these, and so on.
    widths : array of shape (cells,)
    total : float

    Examples
    --------
    A spike, and a run of which nothing but noise is seen:

    >>> cells, noise = np.zeros(16), np.full(16, 25.0)
    >>> cells[[2, 9]] = 98.0, 8.0
    >>> levels = [(cells, noise), (np.array([99.0, 1.0]), noise[:2])]
    >>> expected_cells(levels, np.ones(16), 100.0).round().tolist()
    [0.0, 0.0, 97.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    estimates, spans = [levels[0]], [np.asarray(widths, np.float64)]
    for counts, variances in levels[1:]:
        run = runs(len(spans[-1]))
        sums, noise = (np.bincount(run, of).astype(np.float64) for of in estimates[-1])
        gain = noise / np.maximum(noise + variances, TINY)
        estimates.append((sums + gain * (counts - sums), gain * variances))
        spans.append(np.bincount(run, spans[-1]).astype(np.float64))
    found = _shared(total, *estimates[-1], spans[-1])
    for (counts, variances), span in zip(estimates[-2::-1], spans[-2::-1], strict=True):
        starts = np.flatnonzero(np.diff(runs(len(span)), prepend=-1))[1:]
        parts = (np.split(of, starts) for of in (counts, variances, span))
        found = np.concatenate([_shared(*family) for family in zip(found.tolist(), *parts, strict=True)])
    return found


def _shared(total: float, counts: Floats, variances: Floats, widths: Floats) -> Floats:
    """Return the part of a run's records that each of its children gets."""
    even = widths * (total / widths.sum())
    if len(counts) < 2 or total <= 0:
        return even
    noise = np.maximum(variances, TINY)
    departures = counts - even
    departures = departures - noise * (departures.sum() / noise.sum())
    energy, freedom = float(np.sum(departures**2 / noise)), len(counts) - 1
    if energy < freedom + BEYOND * np.sqrt(2 * freedom):
        return even
    return norm_sub(even + (1 - max(freedom - 2, 0) / energy) * departures, total)
