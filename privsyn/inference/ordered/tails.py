"""Tails of ordered columns: beyond the bulk, noisy counts and a fitted tail decide together.

The noise of many empty cells adds up. Without correction it puts records far from all others, more of them
the wider the bounds are. An empty tail is far likelier than scattered single records. So the counts beyond
Tukey's whisker are modelled as a generalised Pareto tail (Pickands, Annals of Statistics 1975). Its mass,
scale and shape are unknown; it may end with the last group that stands out of the noise; at its start it is
no denser than the group before. Real tails have this shape only roughly, and a few groups do not belong to
the tail at all. So each count gets a posterior mean between what the tail predicts and what was counted.

Beyond the last group that stands out, the tail gets the posterior mean of its mass. If that takes most of the
range, the bounds are careless, and it is often empty: then it gets the median. Cells share the mass by the
posterior geometric mean of their shares, weighted by mass. Arithmetic means would follow the heaviest tails
that are still possible.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from privsyn.inference.consistency import norm_sub
from privsyn.inference.ordered.binning import WHISKER, Axis, fit_steps
from privsyn.inference.prior.counts import posterior_counts
from privsyn.marginals.domain import Codes, Floats, Integers, Ints
from privsyn.marginals.marginal import Marginal, Measurement, groups_at
from privsyn.marginals.recoding import Merging
from privsyn.marginals.tolerances import SMALLEST, TINY_COUNT

STANDS_OUT = 4.0
"""Standard deviations of noise: one of 30,000 empty groups exceeds this by chance."""

RISES = 2.0  # standard deviations by which a group is denser than the one before: tails seldom get denser
BEYOND = 5.0  # standard deviations of the noise's energy, beyond which counts do not fit any steps
WIDER = 1.5  # a group that many times as wide as the one before is no longer part of the bulk
LONG = 2 / 3  # share of the range: the bounds of a longer tail are careless
APART = 8.0  # as STANDS_OUT, for records that earlier, noisier counts put elsewhere in a group than evenly
MISFIT = 0.5  # standard deviation of a group's true count about the fitted tail's, over the fitted tail's
STRANGE = 1e-3  # prior odds that a group is not part of the tail, per standard deviation of its count
SHAPES = (0.0, 1 / 3, 2 / 3, 1.0)  # of the tail: exponential, then heavier
SCALES, MASSES = 24, 32  # grid sizes
SURE = 1e-6  # variance of a count that is known exactly: logarithms need one
LEAST_MASS = 0.05  # times the smaller of one record and a group's noise standard deviation
MOST_MASS = 8.0  # standard deviations of the tail's count, or the count of the group before if larger
SHORTEST, LONGEST = 1 / 8, 4.0  # least scale over the width of the group before; largest over the tail's
# Prior of the share of records beyond a whisker. In 73 ends of columns of real tables, its logarithm had this
# mean and standard deviation. A tail may end with the last group that stands out.
USUAL_SHARE, VARYING, EMPTY = 0.013, 1.6, 0.3
TINY_PROBABILITY = 1e-200
UNUSUAL = 1.0  # prior standard deviation of ln(scale) about that of the interquartile range
POINT = 1.0  # width of a cell of one value: if half of a column is in one, the scale comes from the others


@dataclass(frozen=True, eq=False)
class Tails:
    """Layout and merging of the cells of the ordered attributes; finds and fits their tails.

    Parameters
    ----------
    merging : Merging
    axes : mapping of an attribute to its Axis
    ended : collection of attributes
        The attributes whose first and last group have shares that say where the column ends; see
        `likely_shares`.
    ranked : collection of attributes
        The attributes of listed values that have an order. They have no tail: each value has its own count.
    """

    merging: Merging
    axes: Mapping[str, Axis]
    ended: Collection[str] = ()
    ranked: Collection[str] = ()

    def settle(self, measured: Measurement, total: float) -> Marginal:
        """Return the counts of one attribute, non-negative and with the total; tails by posterior means."""
        if not measured.marginal.domain.ordered[0] or measured.attributes[0] in self.ranked:
            settled = posterior_counts(measured.marginal.counts, measured.variance, total)
            return Marginal(measured.marginal.domain, settled)
        counts, tail = np.array(measured.marginal.counts), np.zeros(len(measured.marginal.counts), np.bool_)
        for codes, cells in self._of(measured):
            merged = self._groups(measured)[codes]
            counts[np.unique(merged)] = np.bincount(merged, cells)[np.unique(merged)]
            tail[merged] = True
        axis, ordered = self.axes.get(measured.attributes[0]), measured.marginal.domain.ordered[0]
        core = np.flatnonzero(~tail[:ordered])
        if axis is not None and len(core) > 1:
            every = np.bincount(self._groups(measured)[: len(axis.widths)], axis.widths)
            widths = every.astype(np.float64)[core]
            variances = measured.variance[core]
            steps = fit_steps(counts[core], float(np.sqrt(variances.mean())), widths)
            counts[core] = steps + _kept(counts[core] - steps, variances)
        counts[~tail] = norm_sub(counts[~tail], max(total - counts[tail].sum(), 0.0))
        return Marginal(measured.marginal.domain, counts * (total / max(counts.sum(), TINY_COUNT)))

    def share(self, measured: tuple[Measurement, ...]) -> Merging:
        """Return the merging in which cells of tails are drawn in proportion to their posterior means."""
        shares = [np.array(share) for share in self.merging.shares]
        for one_way, share in zip(measured, shares, strict=True):
            group = self._groups(one_way)
            for codes, cells in self._of(one_way):
                weights = np.maximum(cells, SMALLEST)
                share[codes] = weights / np.bincount(group[codes], weights)[group[codes]]
        return replace(self.merging, shares=tuple(shares))

    def blocks_of(self, one_way: Marginal, level: int) -> Codes:
        """Return the block of each code of an attribute; those of a number keep much of its variance.

        Blocks of c records and width w have about the least sum of c w: with density p, equal integrals of
        sqrt(p) (Dalenius and Hodges, JASA 54, 1959). So a code has the weight sqrt(c w), and blocks have
        about equal weights. The least variance inside blocks, the sum of c w^2, needs p^(1/3). It gives the
        last block of a long tail so few records that their counts drown in noise. Other attributes have
        blocks of about equal counts.

        Parameters
        ----------
        one_way : Marginal
            Non-negative counts of one attribute.
        level : int
            Number of blocks.

        Examples
        --------
        >>> from privsyn.marginals.domain import Domain
        >>> alone = Domain(("price",), (4,), (4,))
        >>> unmerged = Merging(alone, alone, (np.arange(4),), (np.ones(4),))
        >>> tails = Tails(unmerged, {"price": Axis(np.array([1.0, 1, 1, 9]), 4)})
        >>> tails.blocks_of(Marginal(alone, np.full(4, 8.0)), 2).tolist()
        [0, 0, 0, 1]
        """
        (name,), ordered = one_way.attributes, one_way.domain.ordered[0]
        if name not in self.axes or name in self.ranked or ordered <= level:
            return groups_at(one_way, level)
        cells = self.axes[name].widths
        groups = self.merging.project((name,)).groups[0][: len(cells)]
        widths = np.bincount(groups, cells, minlength=ordered)[:ordered]
        weights = np.append(np.sqrt(one_way.counts[:ordered] * widths), one_way.counts[ordered:])
        return groups_at(Marginal(one_way.domain, weights), level)

    def _groups(self, measured: Measurement) -> Integers:
        return self.merging.project(measured.attributes).groups[0]

    def _of(self, measured: Measurement) -> list[tuple[Ints, Floats]]:
        """Return for each tail its original codes, going outwards, and the expected records of each."""
        axis = self.axes.get(measured.attributes[0])
        if axis is None or measured.marginal.domain.ordered[0] < 2:
            return []
        groups = self._groups(measured)[: len(axis.widths)]
        (column,) = self.merging.original.axes(measured.attributes)
        # Rare values at the end of one part and the start of the other may share a group, which has no tail.
        shared = groups[axis.second] if axis.second and groups[axis.second - 1] == groups[axis.second] else -1
        cells_of_tails = []
        for part in axis.parts:
            codes = np.arange(len(groups))[part]
            codes = codes[groups[codes] != shared]
            first, last = groups[codes[[0, -1]]] if len(codes) else (0, 0)
            if first == last:
                continue
            held, group = slice(first, last + 1), groups[codes] - first
            counts, variances = measured.marginal.counts[held], np.maximum(measured.variance[held], SURE)
            shares, ended = self.merging.shares[column][codes], measured.attributes[0] in self.ended
            tails = _both_tails(counts, variances, group, axis.widths[codes], shares, ended=ended)
            cells_of_tails += [(codes[tail], cells) for tail, cells in tails]
        return cells_of_tails


def _both_tails(
    counts: Floats,
    variances: Floats,
    group: Integers,
    cell_widths: Floats,
    shares: Floats,
    *,
    ended: bool,
) -> Iterator[tuple[Ints, Floats]]:
    """Yield the cells of both tails of one part, going outwards, and the expected records of each.

    Parameters
    ----------
    counts, variances : arrays of shape (groups,)
    group, cell_widths, shares : arrays of shape (cells,)
        The group of each cell, its width, and its share of the group.
    ended : bool
        Whether the shares say where the outermost groups end.
    """
    widths = np.bincount(group, cell_widths).astype(np.float64)
    for step in (1, -1):
        start, clear, before = _edge(counts[::step], variances[::step], widths[::step])
        tail = np.flatnonzero(group >= start if step == 1 else group < len(counts) - start)[::step]
        if before is None or not len(tail):
            continue
        first = np.flatnonzero(np.diff(group[tail], prepend=-1))
        indices = group[tail][first]
        cells, strange = expected_tail(
            TailCounts(counts[indices], variances[indices], cell_widths[tail], first),
            before=before,
            usual=_usual_scale(counts, widths),
            records=max(float(counts.sum()), 1.0),
            clear=clear,
            careless=bool(widths[indices[clear:]].sum() > LONG * widths.sum()),
        )
        moved_records = _known(shares[tail], cell_widths[tail], first) * counts[indices]
        strange[moved_records > APART * np.sqrt(variances[indices])] = 1.0
        strange[-1] = 1.0 if ended else strange[-1]
        sizes = np.diff([*first, len(tail)])
        apart, totals = np.repeat(strange, sizes), np.repeat(np.add.reduceat(cells, first), sizes)
        yield tail, apart * totals * shares[tail] + (1 - apart) * cells


def _known(shares: Floats, widths: Floats, first: Ints) -> Floats:
    """Return the share of each group's records that earlier counts put elsewhere than evenly.

    The outermost group may be very wide, and noise in its cells reaches far. Of it counts by how much its
    outer half exceeds the inner one: such are years beside a 0.
    """
    even = widths / np.repeat(np.add.reduceat(widths, first), np.diff([*first, len(widths)]))
    moved_shares = np.add.reduceat(np.abs(shares - even), first) / 2
    last = slice(first[-1], None)
    outer = np.sign(np.cumsum(even[last]) - even[last] / 2 - 0.5)
    return np.append(moved_shares[:-1], shares[last] @ outer)


def _edge(counts: Floats, variances: Floats, widths: Floats) -> tuple[int, int, tuple[float, float] | None]:
    """Return the first group of the tail, how many of its groups are clear, and a (count, width) before it.

    The tail begins beyond Tukey's whisker, and with the group of the whisker if it is much wider than the one
    before. Up to the last group that stands out, the tail is clear; there, no group is clearly denser than
    the one before: the tail begins after the last that is. Count and width are those of the fewest groups,
    going inwards, that stand out together.
    """
    first, third = _quartiles(counts, widths)
    last = int(np.count_nonzero(np.cumsum(widths) - widths < third + WHISKER * (third - first))) - 1
    last -= last > 0 and widths[last] > WIDER * widths[last - 1]
    density, clear = counts / widths, np.flatnonzero(counts > STANDS_OUT * np.sqrt(variances))
    farthest = max(last, int(clear.max(initial=-1)))
    noise, inner, outer = variances / widths**2, slice(last, farthest), slice(last + 1, farthest + 1)
    rises = density[outer] - density[inner] > RISES * np.sqrt(noise[outer] + noise[inner])
    denser = np.flatnonzero(rises)
    last += int(denser.max(initial=-1)) + 1
    inwards = slice(last, None, -1)
    sums = np.cumsum(counts[inwards])
    enough = np.flatnonzero(sums > STANDS_OUT * np.sqrt(np.cumsum(variances[inwards])))
    if not enough.size:
        return last + 1, farthest - last, None
    near = float(sums[enough[0]]), float(np.cumsum(widths[inwards])[enough[0]])
    return last + 1, farthest - last, near


def _quartiles(counts: Floats, widths: Floats) -> tuple[float, float]:
    """Return the first and third quartile of noisy counts, as distances from the start of the first group."""
    below = np.cumsum(np.concatenate([[0.0], norm_sub(counts, max(float(counts.sum()), 1.0))]))
    first, third = np.interp([0.25, 0.75], below / below[-1], np.cumsum([0.0, *widths]))
    return float(first), float(max(third, first + widths.min()))


def _usual_scale(counts: Floats, widths: Floats) -> float:
    """Return the interquartile range: of all records, or of the others if half of them have one value."""
    first, third = _quartiles(counts, widths)
    heap = int(counts.argmax())
    if widths[heap] <= POINT and 2 * counts[heap] > counts.sum():
        counts_without_heap = counts.copy()
        counts_without_heap[heap] = 0.0
        first, third = _quartiles(counts_without_heap, widths)
    return third - first


class TailCounts(NamedTuple):
    """What was counted in a tail, going outwards.

    Parameters
    ----------
    counts, variances : arrays of shape (groups,)
        Noisy counts of the groups, and their noise variances.
    widths : array of shape (cells,)
    first : integer array of shape (groups,)
        First cell of each group.
    """

    counts: Floats
    variances: Floats
    widths: Floats
    first: Ints


def expected_tail(
    counted: TailCounts,
    *,
    before: tuple[float, float],
    usual: float,
    records: float,
    clear: int = 0,
    careless: bool = False,
) -> tuple[Floats, Floats]:
    """Return the expected records in each cell of a tail, and how likely each group is not part of it.

    Parameters
    ----------
    counted : TailCounts
    before : tuple of float
        Count and width of the groups before the tail; see `_edge`.
    usual : float
        Prior scale of a tail, in units of `widths`; up to `POINT`, all scales are equally likely.
    records : float
        In the whole column.
    clear : int, optional
        Number of groups up to the last that stands out.
    careless : bool, optional
        Whether the bounds are.

    Examples
    --------
    Empty groups next to one of 1,000 records, and thinning ones:

    >>> noise, near = np.full(4, 100.0), {"before": (1e3, 1.0), "usual": 2.0, "records": 4e3}
    >>> for counts, clear in (([3.0, -9, 12, 1], 0), ([53.0, 11, 12, 1], 1)):
    ...     for careless in (False, True):
    ...         counted = TailCounts(np.array(counts), noise, np.ones(4), np.arange(4))
    ...         tail, _ = expected_tail(counted, clear=clear, careless=careless, **near)
    ...         print(careless, tail.round(1).tolist())
    False [3.2, 1.5, 0.9, 0.6]
    True [0.0, 0.0, 0.0, 0.0]
    False [52.1, 10.9, 6.2, 3.2]
    True [52.1, 10.0, 5.5, 2.9]
    """
    counts, variances, widths, first = counted
    lowest = LEAST_MASS * min(float(np.sqrt(variances.min())), 1.0)
    highest = max(before[0], MOST_MASS * float(np.sqrt(variances.sum())), 2 * counts.clip(0).sum(), 1.0)
    masses = np.geomspace(lowest, highest, MASSES)
    prior = np.exp(-0.5 * (np.log(masses / (USUAL_SHARE * records)) / VARYING) ** 2)
    cut = int(np.append(first, len(widths))[clear])
    logs, tails = [], []
    scale = max(usual, before[1]) if usual > POINT else None
    for tail, starts, log_scale in _tails(widths, before, scale):
        denser = masses[:, np.newaxis] * starts > before[0] / before[1]
        for end, likely in ((cut, EMPTY), (len(widths), 1 - EMPTY)):
            some = tail * (np.arange(len(widths)) < end)
            groups = masses[:, np.newaxis, np.newaxis] * np.add.reduceat(some, first, axis=1)
            spread = variances + (MISFIT * groups) ** 2
            fit = np.exp(-0.5 * (counts - groups) ** 2 / spread) + STRANGE
            log = np.log(fit / np.sqrt(spread)).sum(axis=2) + log_scale
            log += np.log(np.maximum(likely * prior / prior.sum(), TINY_PROBABILITY))[:, np.newaxis]
            logs.append(np.where(denser & (end > 0), -np.inf, log))
            tails.append(some)
    log = np.array(logs)
    if np.isneginf(log).all():
        return np.zeros(len(widths)), np.zeros(len(counts))
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    inner, outer = (
        _mean_cells(weights, masses, np.array([tail[:, part] for tail in tails]), median=median)
        for part, median in ((slice(cut), False), (slice(cut, None), careless))
    )
    cells = np.concatenate([inner, outer])
    groups = np.add.reduceat(cells, first)
    rough, deviations = (MISFIT * groups) ** 2, counts - groups
    strange = STRANGE / (STRANGE + np.exp(-0.5 * deviations**2 / (rough + variances)))
    strange = np.round(strange) if careless else strange
    trusted = strange + (1 - strange) * rough / (rough + variances)
    ratio = np.maximum(groups + trusted * deviations, 0.0) / groups
    return np.asarray(cells * np.repeat(ratio, np.diff([*first, len(cells)]))), strange


def _tails(
    widths: Floats, before: tuple[float, float], usual: float | None
) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield for each shape the share of each cell, the density at the start and the log prior, by scale."""
    ends = np.concatenate([[0.0], np.cumsum(widths)])
    scales = np.geomspace(SHORTEST * min(before[1], ends[-1]), LONGEST * ends[-1], SCALES)
    for shape in SHAPES:
        x = ends / scales[:, np.newaxis]
        beyond = np.exp(-x) if shape == 0 else (1 + shape * x) ** (-1 / shape)
        inside = 1 - beyond[:, -1]
        log = np.zeros(SCALES) if usual is None else -0.5 * (np.log(scales / usual) / UNUSUAL) ** 2
        yield -np.diff(beyond, axis=1) / inside[:, np.newaxis], 1 / (scales * inside), log


def _mean_cells(weights: Floats, masses: Floats, tails: Floats, *, median: bool) -> Floats:
    """Return the mean cells of a part of the tail: posterior weights are of shape (tails, masses, scales)."""
    sums = masses[:, np.newaxis] * tails.sum(axis=2)[:, np.newaxis]
    mean = float((weights * sums).sum())
    shares = np.einsum(
        "tms,tsc->c",
        weights * sums / max(mean, TINY_PROBABILITY),
        np.log(np.maximum(tails, TINY_PROBABILITY)),
    )
    cells = np.exp(shares - shares.max(initial=-np.inf))
    if median:
        order = np.argsort(sums, axis=None)
        likely = weights.ravel()[order]
        mean = float(np.interp(0.5, np.cumsum(likely) - likely / 2, sums.ravel()[order]))
    return np.asarray(np.maximum(cells * (mean / max(cells.sum(), TINY_PROBABILITY)), TINY_PROBABILITY))


def _kept(deviations: Floats, variances: Floats) -> Floats:
    """Return the part to keep of counts that no steps explain: 0, unless their energy exceeds the noise's.

    Of exact counts all is kept.

    >>> _kept(np.array([3.0, 1.0, 0.0]), np.array([0.0, 4.0, 0.0])).tolist()
    [3.0, 0.0, 0.0]
    """
    noisy = variances > 0
    if not noisy.any():
        return deviations
    energy = float(np.mean(deviations[noisy] ** 2 / variances[noisy]))
    excess = max(energy - 1 - BEYOND * np.sqrt(2 / np.count_nonzero(noisy)), 0.0)
    return np.where(noisy, deviations * (excess / (excess + 1)), deviations)
