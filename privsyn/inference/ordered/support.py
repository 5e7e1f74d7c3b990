"""Support: which values of a column occur, if its bounds were found under privacy.

Found bounds are generous. The released counts of the values have far more budget, so they decide here. A
value at an end stays only if it stands out of the noise, alone or with its neighbours. A value between others
goes if they lead to expect many rows, and hardly any are counted. So 1, 2 and 5 stay three values, and ages
stay dense. A value that goes is never drawn. The counts by which bounds were found are a second count of the
same rows (`with_counts`). All of this reads released answers only.

The numbers of other columns are counted in groups of cells. Groups at both ends are left out by the same
rule. In the first and the last that remain, only some cells may hold records: a column of 18 to 59 may have a
last group of 57 to 95. `likely_shares` weighs every cell in which the column may end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np

from privsyn.inference.ordered.binning import runs
from privsyn.marginals.domain import Floats, Integers, Ints, Mask
from privsyn.marginals.tolerances import SMALLEST

FALSE_VALUE, FALSE_END = 0.01, 0.05
"""Probabilities that noise alone makes a value stand out, and that it extends the end of a column of at most
`FEW` values, in any column, about."""

LONGER = 0.05
"""The same for one end of a column of more values, and one number of neighbours that stand out together; over
all such numbers noise extends an end about one time in ten. A tail is likelier there, and ends that come
too early cost more: in ten tables at epsilon 1, 3.4 % of the rows lay beyond the synthetic ends with 0.02,
and 2.6 % with this, while 0.34 % of the synthetic rows lay beyond the real ends with both."""

STEEP = 8.0
"""Standard deviations of the count of the last value, above which no tail is likely: the next value would be
seen. Then `FALSE_END` holds. Years of education end so, with 594 rows of 16. Not tuned."""

FEW = 3
"""Values: flags and the like."""

ABSENT, SURELY = 2.0, 3.5
"""Standard deviations that values between others hold at most if no row has them, and by which they hold
fewer rows than their neighbours lead to expect. The second counts if that is at most a `TENTH` of these."""

TENTH = 0.1

CellCounts = tuple[Integers, Floats, Floats]
"""Of a noisy count of groups of cells: the group of each cell, the counts, and their variances."""

NEAR = 4.0
"""Standard deviations by which groups next to the last one stand out together. Then their density counts."""

SPREAD = 0.7
"""Prior standard deviation of the logarithm of the last group's length, about that with their density."""

UNSURE = 0.25
"""Standard deviation of the part of a group's records in one half of it, about the expected half. It was not
tuned."""


IN_LAST = (0.0, 0.8)
"""Shares of the last group's records that its last cell may hold; the others are evenly spread. A third shape
is as likely as either: many columns end with a spike, such as grades of 100, and others, such as ages, thin
out."""

DRAWN = 0.9
"""Posterior probability of the cells in which the column may end that are drawn. With 1, records are drawn
where the end hardly ever is; with 0.5, half of the columns are cut."""


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariance of the noise of some counts: ``diag(variances) - reduction.T @ reduction``.

    As a matrix it would take 7 GB for a column of 30,000 values.

    Parameters
    ----------
    variances : array of shape (counts,)
        Without another count.
    reduction : array of shape (seen, counts)
        What another count says about the noise; see `with_counts`.
    """

    variances: Floats
    reduction: Floats

    @classmethod
    def independent(cls, variances: Floats) -> Covariance:
        """Return the covariance of independent noise of these variances."""
        return cls(variances, np.zeros((0, len(variances))))

    def deviations(self) -> Floats:
        """Return the standard deviation of each count's noise; above 0."""
        return np.sqrt(np.maximum(self.variances - (self.reduction**2).sum(axis=0), SMALLEST))

    def deviations_of_sums(self, indices: Ints) -> Floats:
        """Return the standard deviations of the noise in the first of these counts, the first two, ..."""
        removed = (self.reduction[:, indices].cumsum(axis=1) ** 2).sum(axis=0)
        return np.sqrt(np.maximum(self.variances[indices].cumsum() - removed, SMALLEST))


def occurring(
    counts: Floats, covariance: Covariance, deviations: Callable[[float], float], columns: int = 1
) -> Mask:
    """Return which values occur; all of them if none stands out of the noise.

    Parameters
    ----------
    counts : array of shape (values,)
        Noisy counts in the order of the values.
    covariance : Covariance
        Of their noise; see `with_counts`.
    deviations : function of a probability
        Standard deviations that noise exceeds with it, such as `Law.deviations`.
    columns : int
        Number of columns that share the probabilities of an error.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> covariance = Covariance.independent(np.full(8, 100.0))
    >>> occurring(np.array([3.0, 400, 380, -9, 12, 310, 11, -15]), covariance, norm.isf).nonzero()[0].tolist()
    [1, 2, 5]
    >>> occurring(np.array([3.0, 60, 38, 22, 12, 50, 11, -15]), covariance, norm.isf).nonzero()[0].tolist()
    [1, 2, 3, 4, 5]
    """
    clear = _clear(counts, covariance, deviations, columns)
    present = _between_ends(clear, counts, covariance, deviations, columns, steep=STEEP)
    for before, after in pairwise(clear.tolist()):
        if after == before + 1:
            continue
        # Values between two clear ones may hold no rows, although their neighbours do.
        sigma = covariance.deviations_of_sums(np.arange(before + 1, after))[-1]
        expected = min(counts[before], counts[after]) * (after - before - 1)
        seen = counts[before + 1 : after].sum()
        limit = np.clip(TENTH * expected, ABSENT * sigma, SURELY * sigma)
        present[before + 1 : after] = not (seen < limit and expected - seen > ABSENT * sigma)
    return present


def occurring_groups(
    counts: Floats, covariance: Covariance, deviations: Callable[[float], float], columns: int = 1
) -> Mask:
    """Return which groups of cells occur: as `occurring`, but all that lie between two that do.

    >>> from scipy.stats import norm
    >>> counts = np.array([3.0, 400, 380, -9, 310, 11])
    >>> occurring_groups(counts, Covariance.independent(np.full(6, 100.0)), norm.isf).nonzero()[0].tolist()
    [1, 2, 3, 4]
    """
    clear = _clear(counts, covariance, deviations, columns)
    return _between_ends(clear, counts, covariance, deviations, columns, steep=inf)


def with_counts(
    counts: Floats, variances: Floats, group: Integers, shares: Floats, cell_counts: CellCounts | None
) -> tuple[Floats, Covariance]:
    """Return the counts of groups after another count of the cells, and the covariance of their noise.

    It counted the same rows with noise of its own, in other groups: one count of 16 to 23 says more
    about all numbers from 17 on than seven counts. Both are combined by least squares. A group of which only
    a part belongs to one of its groups has that part of its records there, give or take `UNSURE`.

    If it also chose the bounds, its count is too high at an end that only noise made, so a false end
    may stay.

    Parameters
    ----------
    counts, variances : arrays of shape (groups,)
    group, shares : arrays of shape (cells,)
        The group of each cell, and its share of the group.
    cell_counts : CellCounts, optional
        Without it the counts stay as they are, with independent noise.

    Examples
    --------
    >>> place, seen = np.array([0, 1, 1, 1]), (np.array([900.0, 30.0]), np.full(2, 100.0))
    >>> counts, covariance = with_counts(
    ...     np.array([900.0, -9, 30, 60]), np.full(4, 300.0), np.arange(4), np.ones(4), (place, *seen)
    ... )
    >>> counts.round().tolist(), bool(covariance.deviations_of_sums(np.array([1, 2, 3]))[-1] < 10)
    ([900.0, -24.0, 15.0, 45.0], True)
    """
    if cell_counts is None:
        return counts, Covariance.independent(variances)
    count_of_cell, seen, variances_seen = cell_counts
    held, count_of_cell = np.unique(count_of_cell, return_inverse=True)
    parts = np.zeros((len(held), len(counts)))
    np.add.at(parts, (count_of_cell, group), shares)
    unsure = (UNSURE * 4 * parts * (1 - parts) * np.maximum(counts, 0.0)) ** 2
    both = parts * variances
    within = both @ parts.T + np.diag(np.maximum(variances_seen[held] + unsure.sum(axis=1), SMALLEST))
    root = np.linalg.cholesky(within)  # within = root @ root.T
    reduction = np.linalg.solve(root, both)
    return counts + reduction.T @ np.linalg.solve(root, seen[held] - parts @ counts), Covariance(
        variances, reduction
    )


def _clear(
    counts: Floats, covariance: Covariance, deviations: Callable[[float], float], columns: int
) -> Ints:
    """Return the places of the counts that stand out of the noise alone."""
    standing_out = float(deviations(FALSE_VALUE / (columns * len(counts))))
    return np.flatnonzero(counts > standing_out * covariance.deviations())


def _between_ends(
    clear: Ints,
    counts: Floats,
    covariance: Covariance,
    deviations: Callable[[float], float],
    columns: int,
    *,
    steep: float,
) -> Mask:
    """Return the counts from the first to the last that belong to the column; all if none is clear."""
    if not len(clear):
        return np.ones(len(counts), np.bool_)
    first, last = int(clear[0]), int(clear[-1])
    strict = float(deviations(FALSE_END / (2 * columns)))
    usual = strict if last - first < FEW else float(deviations(LONGER))
    if first == last and len(counts) > 1:  # the other value of a flag may be too rare to be seen
        first, last = (first - 1, last) if first else (0, 1)
    indices, sigmas = np.arange(len(counts)), covariance.deviations()
    further = [
        _further(outwards, counts, covariance, strict if counts[end] > steep * sigmas[end] else usual)
        for end, outwards in ((first, indices[:first][::-1]), (last, indices[last + 1 :]))
    ]
    return (indices >= first - further[0]) & (indices <= last + further[1])


def _further(outwards: Ints, counts: Floats, covariance: Covariance, needed: float) -> int:
    """Return how many of these values, going outwards, belong to the column too: they stand out together."""
    number = 0
    while True:
        beyond = outwards[number:]
        clear = np.flatnonzero(np.cumsum(counts[beyond]) > needed * covariance.deviations_of_sums(beyond))
        if not len(clear):
            return number
        number += int(clear[0]) + 1


def counts_of_levels(levels: Sequence[tuple[Floats, Floats]]) -> list[CellCounts]:
    """Return the counts of the cells, of their runs, of the runs of these, and so on; see `runs`."""
    looks: list[CellCounts] = []
    for counts, variances in levels:
        groups = runs(len(looks[-1][1]))[looks[-1][0]] if looks else np.arange(len(counts))
        looks.append((groups, counts, variances))
    return looks


class GroupedCells(NamedTuple):
    """The cells of a column: arrays of shape (cells,).

    Parameters
    ----------
    group : integer array
    shares : array
        The share of each cell in its group.
    widths : array
    """

    group: Integers
    shares: Floats
    widths: Floats


def likely_shares(
    counts: Floats, variances: Floats, occurs: Mask, cells: GroupedCells, looks: Sequence[CellCounts]
) -> Floats:
    """Return the share of each cell in its group, where the first and the last group may end in any cell.

    Each of these cells predicts the counts of all groups, given the group's records. A prior says that the
    group is about as dense as those next to it. The shares are posterior means; see `DRAWN`.

    Parameters
    ----------
    counts, variances : arrays of shape (groups,)
        Noisy counts of the groups, and the variances of their noise.
    occurs : boolean array of shape (groups,)
    cells : GroupedCells
        With the shares so far.
    looks : sequence of CellCounts

    Examples
    --------
    Ten records in each of the first 13 cells, and none in the others:

    >>> cells, noise = np.where(np.arange(32) < 13, 10.0, 0.0), np.full(32, 4.0)
    >>> looks = counts_of_levels([(cells, noise), (cells.reshape(4, 8).sum(axis=1), noise[:4])])
    >>> group = np.repeat([0, 1, 2], [5, 5, 22])
    >>> counts = np.bincount(group, cells)
    >>> some, even = np.ones(3, np.bool_), 1 / np.bincount(group)[group]
    >>> grouped = GroupedCells(group, even, np.ones(32))
    >>> found = likely_shares(counts, noise[:3], some, grouped, looks)
    >>> found[10:16].round(2).tolist()
    [0.34, 0.33, 0.33, 0.0, 0.0, 0.0]
    """
    group, shares, widths = cells
    likely, lengths = np.array(shares), np.bincount(group, widths)
    records = np.where(occurs, np.maximum(counts, 0.0), 0.0)
    first, last = np.flatnonzero(occurs)[[0, -1]]
    for end, inner in (
        (last, np.arange(last - 1, first - 1, -1)),
        (first, np.arange(first + 1, last + 1)),
    ):
        outwards = np.flatnonzero(group == end)[:: 1 if end == last else -1]
        if not len(inner) or len(outwards) < 2 or records[end] <= 0:
            continue
        sums, noise = np.cumsum(counts[inner]), np.sqrt(np.cumsum(variances[inner]))
        near = int(np.append(np.flatnonzero(sums > NEAR * noise), len(inner) - 1)[0])
        density = float(sums[near] / lengths[inner[: near + 1]].sum())
        elsewhere = np.where(group == end, 0.0, likely * records[group])
        expected = float(records[end] / density) if density > 0 else float(lengths[end])
        likely[outwards] = _ending(
            float(records[end]), expected, outwards, widths[outwards], elsewhere, looks
        )
    return likely


def _ending(
    records: float,
    expected: float,
    cells: Ints,
    widths: Floats,
    elsewhere: Floats,
    looks: Sequence[CellCounts],
) -> Floats:
    """Return the shares of the cells of the last group, going outwards; see `likely_shares`.

    Parameters
    ----------
    records, expected : float
        The group's records, and the length that the density of its neighbours implies.
    cells : integer array
    widths : float array, of these cells
    elsewhere : float array
        Expected records of all other cells; 0 in these.
    looks : sequence of CellCounts
    """
    lengths, alone = np.cumsum(widths), np.eye(len(cells))
    even = np.tril(np.ones_like(alone)) * widths / lengths[:, np.newaxis]
    away = lengths[:, np.newaxis] - lengths + widths / 2  # from the end to the middle of each cell
    thinning = np.tril(widths * away)
    thinning /= thinning.sum(axis=1, keepdims=True)
    shapes = np.array([*(share * alone + (1 - share) * even for share in IN_LAST), thinning])
    # Any point may be the end; `expected` is that of the logarithm of the length. A group that thins out is
    # as dense as its neighbours only at its start, and so twice as long.
    usual = np.array([expected, expected, 2 * expected])[:, np.newaxis]
    log = np.log(widths / lengths) - 0.5 * (np.log(lengths / usual) / SPREAD) ** 2
    for count_of_cell, counts, variances in looks:
        starts = np.flatnonzero(np.diff(count_of_cell[cells], prepend=-1))
        at = count_of_cell[cells][starts]
        seen = counts[at] - np.bincount(count_of_cell, elsewhere, minlength=len(counts))[at]
        predicted = records * np.add.reduceat(shapes, starts, axis=2)
        log -= 0.5 * ((seen - predicted) ** 2 / np.maximum(variances[at], SMALLEST)).sum(axis=2)
    likely = np.exp(log - log.max())
    likely /= likely.sum()
    mean = np.einsum("se,sec->c", likely, shapes)
    drawn = np.cumsum(likely.sum(axis=0)) - likely.sum(axis=0) < DRAWN
    return np.where(drawn, mean, 0.0) / mean[drawn].sum()
