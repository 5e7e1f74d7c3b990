"""Tails of ordered columns: beyond the last group that stands out of the noise, a fitted tail.

The noise of many empty cells adds up. Without correction it puts records far from all others, more of them
the wider the bounds are. An empty tail is far likelier than scattered single records. So the counts beyond
the outermost group that stands out are modelled as a generalised Pareto tail (Pickands, Annals of Statistics
1975). Its mass, scale and shape are unknown; at its start it is no denser than the group before. The tail
gets the posterior mean of the mass. If it takes most of the range, the bounds are careless, and it is often
empty: then it gets the median. Cells share the mass by the posterior geometric mean of their shares, weighted
by mass. Arithmetic means would follow the heaviest tails that are still possible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from privsyn.inference.consistency import norm_sub
from privsyn.inference.ordered.binning import Axis, fit_steps
from privsyn.inference.prior.counts import posterior_counts
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Floats, Integers, Mask

STANDS_OUT = 4.0
"""Standard deviations of noise: one of 30,000 empty groups exceeds this by chance."""

BEYOND = 5.0  # standard deviations of the noise's energy, beyond which counts do not fit any tail
AT_BOUND = 3.0  # as STANDS_OUT, for the outermost group: clipping at the bounds often makes it a spike
CARELESS = 0.5  # share of the range: the bounds of a wider outermost group are careless, and clip nothing
TOGETHER = 4.0  # as STANDS_OUT, for the sum of a group and all beyond
CLEARLY = 5.0  # as STANDS_OUT, for a group that is WIDER times as wide as the one before
WIDER = 1.5
LONG = 2 / 3  # share of the range: the bounds of a longer tail are careless
MOSTLY = 0.5  # share of a group's records
SHAPES = (0.0, 0.5, 1.0, 2.0)  # of the tail: exponential, then heavier
SCALES, MASSES = 24, 32  # grid sizes
LEAST_MASS = 0.05  # times the smaller of one record and a group's noise standard deviation
MOST_MASS = 8.0  # standard deviations of the tail's count, or the count of the group before if larger
SHORTEST, LONGEST = 1 / 8, 4.0  # least scale over the width of the group before; largest over the tail's
WHISKER = 1.5  # interquartile ranges (Tukey, Exploratory Data Analysis, 1977)
# Prior of the share of records beyond a whisker. In 73 ends of columns of real tables, its logarithm had this
# mean and standard deviation. With careless bounds an end may be empty.
USUAL_SHARE, VARYING, EMPTY = 0.013, 1.6, 0.3
UNUSUAL = 1.0  # prior standard deviation of ln(scale) about that of the interquartile range


@dataclass(frozen=True, eq=False)
class Tails:
    """Layout and merging of the cells of the ordered attributes; finds and fits their tails.

    Parameters
    ----------
    merging : Merging
    axes : mapping of an attribute to its Axis
    """

    merging: Merging
    axes: Mapping[str, Axis]

    def settle(self, measured: Measurement, total: float) -> Marginal:
        """Return the counts of one attribute, non-negative and with the total; tails by posterior means."""
        if not measured.marginal.domain.ordered[0]:
            settled = posterior_counts(measured.marginal.counts, measured.variance, total)
            return Marginal(measured.marginal.domain, settled)
        found, tail = np.array(measured.marginal.counts), np.zeros(len(measured.marginal.counts), np.bool_)
        for groups, cells in self._of(measured):
            merged = self._groups(measured)[groups]
            found[np.unique(merged)] = np.bincount(merged, cells)[np.unique(merged)]
            tail[merged] = True
        axis, ordered = self.axes.get(measured.attributes[0]), measured.marginal.domain.ordered[0]
        core = np.flatnonzero(~tail[:ordered])
        if axis is not None and len(core) > 1:
            every = np.bincount(self._groups(measured)[: len(axis.widths)], axis.widths)
            widths = every.astype(np.float64)[core]
            variances = measured.variance[core]
            steps = fit_steps(found[core], float(np.sqrt(variances.mean())), widths)
            found[core] = steps + _kept(found[core] - steps, variances)
        found[~tail] = norm_sub(found[~tail], max(total - found[tail].sum(), 0.0))
        return Marginal(measured.marginal.domain, found * (total / max(found.sum(), 1e-9)))

    def share(self, measured: tuple[Measurement, ...]) -> Merging:
        """Return the merging in which cells of tails are drawn in proportion to their posterior means."""
        shares = [np.array(share) for share in self.merging.shares]
        for one_way, share in zip(measured, shares, strict=True):
            group = self._groups(one_way)
            for places, cells in self._of(one_way):
                weights = np.maximum(cells, np.finfo(float).tiny)
                share[places] = weights / np.bincount(group[places], weights)[group[places]]
        return replace(self.merging, shares=tuple(shares))

    def _groups(self, measured: Measurement) -> Integers:
        return self.merging.groups_of(measured.attributes)[0]

    def _of(self, measured: Measurement) -> list[tuple[Mask, Floats]]:
        """Return for each tail its original codes, and the expected number of records of each."""
        axis = self.axes.get(measured.attributes[0])
        ordered = measured.marginal.domain.ordered[0]
        if axis is None or ordered < 2:
            return []
        group = self._groups(measured)[: len(axis.widths)]
        counts, variances = measured.marginal.counts[:ordered], measured.variance[:ordered]
        widths, codes = (
            np.bincount(group, axis.widths).astype(np.float64),
            np.arange(len(self._groups(measured))),
        )
        (place,) = self.merging.original.axes(measured.attributes)
        shares = self.merging.shares[place][: len(group)]
        found = []
        for step in (1, -1):
            outermost = group == (ordered - 1 if step == 1 else 0)
            far = _outer_half(shares[outermost][::step], axis.widths[outermost][::step])
            last, before = _edge(counts[::step], variances[::step], widths[::step], far)
            last = last if step == 1 else ordered - 1 - last
            beyond = group > last if step == 1 else group < last
            if before is not None and beyond.any():
                tail = np.flatnonzero(beyond)[::step]
                first = np.flatnonzero(np.diff(group[tail], prepend=-1))
                places = group[tail][first]
                cells = expected_tail(
                    counts[places],
                    variances[places],
                    axis.widths[tail],
                    first,
                    before=before,
                    usual=float(np.diff(_quartiles(counts, widths))[0]),
                    careless=bool(axis.widths[tail].sum() > LONG * axis.widths.sum()),
                    records=max(float(counts.sum()), 1.0),
                )
                found.append((np.isin(codes, tail), cells[::step]))
        return found


def _outer_half(shares: Floats, widths: Floats) -> float:
    """Return the share of a group's records that earlier counts put beyond the middle of its width."""
    ends = np.cumsum(widths)
    return float(shares[2 * ends - widths > ends[-1]].sum())


def _edge(
    counts: Floats, variances: Floats, widths: Floats, far: float
) -> tuple[int, tuple[float, float] | None]:
    """Return the last group before the tail, and a (count, width) next to it.

    The last group stands out alone or together with all beyond, or lies within Tukey's whiskers. If it is
    wide and the outermost, or hardly stands out, most of its records may lie at its start: then the tail
    begins with it. It does not if most of them are known to be `far`, and stand out: they are a group apart,
    such as years beside a 0. Count and width are those of the fewest groups, going inwards, that stand out
    together.

    Parameters
    ----------
    counts, variances, widths : float arrays of shape (groups,)
    far : float
        Share of the records of the outermost group in the outer half of its width.
    """
    at_bound = STANDS_OUT if widths[-1] > CARELESS * widths.sum() else AT_BOUND
    needed = np.append(np.full(len(counts) - 1, STANDS_OUT), at_bound)
    alone = np.flatnonzero(counts > needed * np.sqrt(variances))
    beyond = np.cumsum(counts[::-1])[::-1] > TOGETHER * np.sqrt(np.cumsum(variances[::-1])[::-1])
    first, third = _quartiles(counts, widths)
    whisker = np.flatnonzero(np.cumsum(widths) - widths < third + WHISKER * (third - first))
    last = max(part.max(initial=-1) for part in (alone, np.flatnonzero(beyond), whisker))
    if last > 0 and widths[last] > WIDER * widths[last - 1]:
        clear = CLEARLY * np.sqrt(variances[last])
        apart = far > MOSTLY and far * counts[last] >= clear
        last -= counts[last] < clear or (last == len(counts) - 1 and not apart)
    inwards = slice(last, None, -1)
    sums = np.cumsum(counts[inwards])
    enough = np.flatnonzero(sums > STANDS_OUT * np.sqrt(np.cumsum(variances[inwards])))
    if last < 0 or not enough.size:
        return 0, None
    return int(last), (float(sums[enough[0]]), float(np.cumsum(widths[inwards])[enough[0]]))


def _quartiles(counts: Floats, widths: Floats) -> tuple[float, float]:
    """Return the first and third quartile of noisy counts, as distances from the start of the first group."""
    below = np.cumsum(np.concatenate([[0.0], norm_sub(counts, max(float(counts.sum()), 1.0))]))
    first, third = np.interp([0.25, 0.75], below / below[-1], np.cumsum([0.0, *widths]))
    return float(first), float(max(third, first + widths.min()))


def expected_tail(
    counts: Floats,
    variances: Floats,
    widths: Floats,
    first: Integers,
    *,
    before: tuple[float, float],
    usual: float,
    careless: bool = False,
    records: float,
) -> Floats:
    """Return the expected number of records in each cell of a tail.

    Parameters
    ----------
    counts, variances : arrays of shape (groups,)
        Noisy counts of the tail's groups, going outwards, and their noise variances.
    widths : array of shape (cells,)
    first : integer array of shape (groups,)
        First cell of each group.
    before : tuple of float
        Count and width of the groups before the tail; see `_edge`.
    usual : float
        Prior scale of a tail, in units of `widths`.
    careless : bool, optional
        Whether the bounds are.
    records : float
        In the whole column.

    Examples
    --------
    Empty groups next to one of 1,000 records, and thinning ones:

    >>> noise, near = np.full(4, 100.0), {"before": (1e3, 1.0), "usual": 1.0, "records": 4e3}
    >>> for counts in ([3.0, -9, 12, 1], [53.0, 11, 12, 1]):
    ...     for careless in (False, True):
    ...         tail = expected_tail(
    ...             np.array(counts), noise, np.ones(4), np.arange(4), careless=careless, **near
    ...         )
    ...         print(careless, tail.round(1).tolist())
    False [2.9, 1.0, 0.5, 0.3]
    True [0.0, 0.0, 0.0, 0.0]
    False [51.6, 13.1, 5.4, 2.6]
    True [44.3, 11.2, 4.6, 2.3]
    """
    ends = np.concatenate([[0.0], np.cumsum(widths)])
    usual = max(usual, before[1])
    scales = np.geomspace(SHORTEST * min(before[1], ends[-1]), LONGEST * ends[-1], SCALES)
    most = max(before[0], MOST_MASS * float(np.sqrt(variances.sum())), 1.0)
    least = LEAST_MASS * min(float(np.sqrt(variances.min())), 1.0)
    masses = np.geomspace(least, most, MASSES)
    prior = np.exp(-0.5 * (np.log(masses / (USUAL_SHARE * records)) / VARYING) ** 2)
    prior *= (1 - EMPTY) / prior.sum()
    prior[0] += EMPTY
    logs, tails = [], []
    for shape in SHAPES:
        x = ends / scales[:, np.newaxis]
        beyond = np.exp(-x) if shape == 0 else (1 + shape * x) ** (-1 / shape)
        inside = 1 - beyond[:, -1:]
        tail = -np.diff(beyond, axis=1) / inside  # of shape (scales, cells)
        grouped = np.add.reduceat(tail, first, axis=1)
        residuals = counts - masses[:, np.newaxis, np.newaxis] * grouped
        log = -0.5 * (residuals**2 / variances).sum(axis=2) - 0.5 * (np.log(scales / usual) / UNUSUAL) ** 2
        log += np.log(np.maximum(prior, np.finfo(float).tiny))[:, np.newaxis]
        denser = masses[:, np.newaxis] / (scales * inside[:, 0]) > before[0] / before[1]
        logs.append(np.where(denser, -np.inf, log))
        tails.append(tail)
    log = np.array(logs)
    if np.isneginf(log).all():
        return np.zeros(len(widths))
    weights = np.exp(log - log.max())
    weights /= weights.sum()

    tail = np.log(np.maximum(tails, np.finfo(float).tiny))
    likely = weights.sum(axis=(0, 2))
    mean = float(likely @ masses)
    cells = np.exp(np.einsum("smh,shc->c", weights * masses[:, np.newaxis] / mean, tail))
    cells *= (float(np.interp(0.5, np.cumsum(likely), masses)) if careless else mean) / cells.sum()
    groups = np.add.reduceat(cells, first)
    kept = np.maximum(groups + _kept(counts - groups, variances), 0.0)
    return np.asarray(cells * np.repeat(kept / groups, np.diff([*first, len(cells)])))


def _kept(residuals: Floats, variances: Floats) -> Floats:
    """Return the part to keep of counts that no tail explains: 0, unless their energy exceeds the noise's."""
    freedom = len(residuals)
    energy = float(np.mean(residuals**2 / variances))
    excess = max(energy - 1 - BEYOND * np.sqrt(2 / freedom), 0.0)
    return residuals * (excess / (excess + 1))
