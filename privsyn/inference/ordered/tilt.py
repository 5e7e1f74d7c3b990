"""Trends of pairs with an ordered attribute: drawn from their posterior, and imposed by an exponential tilt.

The trend of two ordered attributes is the sum over records of the product of both ranks, which is Spearman's
correlation. Of an ordered and a nominal attribute, it is the sum of ranks for each nominal value. Two ordered
attributes have these sums too, for each of a few parts of the other attribute. Trends add up many cells, so
they are known better than any cell, and their measurement is unbiased. Cells are not: they cannot fall below
0, and their shape within coarse groups comes from a prior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privsyn.marginals.domain import Codes, Floats, Mask
from privsyn.marginals.ipf import fit_alike, fit_margins, lift_all
from privsyn.marginals.marginal import Grouping, Marginal, groups_at
from privsyn.marginals.tolerances import TINY_COUNT

STEPS = 20  # most steps towards a trend
FEWER = 8  # most steps towards the trends of parts: half steps leave 0.4 % of the gap
LARGEST = 0.5  # largest step
DAMPED = 0.5  # share of a step towards the trends of parts: rows and columns both change each cell
STEEPEST = 50.0  # of ln(ratio of a cell in one step), which keeps it finite
ITERATIONS = 3  # of proportional fitting after a step
ENOUGH = 0.05  # standard deviations of its noise: a trend counts as met
ROUGHLY = 0.2  # the same for a part: it adds at most 4 % to the variance
SAME = 1e-5  # of the records: the same where there is hardly any noise
PARTS = 8  # most parts of an ordered attribute: pairs of numbers are mostly measured in 8 groups or fewer
FIRST = 0.125  # tilt that is tried first
TRIALS = 24  # most tilts that are tried: some 8 doublings, and then halvings
MET = 5e-3  # of the records: largest gap of a margin
STRONGEST = 0.98  # largest correlation that is drawn
FURTHEST = 1.5  # standard deviations: largest mean rank that is drawn for a value or a part


@dataclass(frozen=True, eq=False)
class Trend:
    """The drawn trend of a pair.

    Parameters
    ----------
    fine : pair of arrays of shape (codes, functions)
        The functions of the codes of each attribute: its ranks, or one indicator for each value. If both
        are ordered: the ranks, and one indicator for each part.
    coarse : the same for groups of codes
    grouping : Grouping
    wanted : array of shape (functions, functions)
        Sums over records of the products of both attributes' functions, in groups.
    enough : array of the same shape
        Gaps that do not matter; infinite for the product of two parts.
    """

    fine: tuple[Floats, Floats]
    coarse: tuple[Floats, Floats]
    grouping: Grouping
    wanted: Floats
    enough: Floats

    @classmethod
    def draw(
        cls,
        table: Marginal,
        grouping: Grouping,
        noisy: Floats,
        variance: Floats,
        rng: np.random.Generator,
    ) -> Trend | None:
        """Draw the trend of a pair; None if neither attribute has an order.

        Parameters
        ----------
        table : Marginal
            Released counts.
        grouping : Grouping
            As measured, with a group for each code.
        noisy : array of the groups' shape
            Measured counts plus a draw of their noise.
        variance : array of the same shape
        rng : numpy.random.Generator
        """
        if len(table.domain) != 2 or max(table.domain.ordered) < 2:
            return None
        sides, groups = [table.project((name,)) for name in table.attributes], grouping.groups
        fine = [ranks_of(side) for side in sides]
        both = all(f.shape[1] == 1 for f in fine)
        if both:
            parts = map(_parts, sides, groups)
            fine = [np.hstack(pair) for pair in zip(fine, parts, strict=True)]
        coarse = [_means(f, side.counts, group) for f, side, group in zip(fine, sides, groups, strict=True)]
        a, b = coarse
        now = a.T @ grouping.join(table.counts) @ b
        noise = (a**2).T @ variance @ (b**2)
        wide = np.minimum.outer(*map(_records, sides, fine))
        limits = FURTHEST * wide
        if both:
            limits[0, 0] = STRONGEST * table.total
            correlation = min(abs(now[0, 0]) / max(table.total, 1.0), STRONGEST)
            wide[0, 0] = table.total * (1 - correlation**2)
        share = np.divide(wide**2, wide**2 + noise, out=np.zeros_like(noise), where=wide > 0)
        scatter = np.sqrt(share * (1 - share) * noise) * rng.standard_normal(noise.shape)
        wanted = np.clip(now + share * (a.T @ noisy @ b - now) + scatter, -limits, limits)
        enough = ENOUGH * np.sqrt(noise) + SAME * table.total
        if both:
            moved, (ra, rb) = wanted - now, map(_mean_ranks, sides, fine)
            wanted[0, 1:] += _missing(moved[0, 1:], noise[0, 1:], rb, moved[0, 0])
            wanted[1:, 0] += _missing(moved[1:, 0], noise[1:, 0], ra, moved[0, 0])
            roughly = ROUGHLY * np.sqrt(noise) + SAME * table.total
            enough[0, 1:], enough[1:, 0], enough[1:, 1:] = roughly[0, 1:], roughly[1:, 0], np.inf
        return cls((fine[0], fine[1]), (a, b), grouping, wanted, enough)

    def impose(self, table: Marginal, margins: tuple[Marginal, ...]) -> Marginal:
        """Return the table, tilted until its groups have the trend, with the given margins."""
        every = np.isfinite(self.enough)
        if every.all():
            return fit_margins(self._tilted(table, margins, every), margins)
        trend_of_ranks = np.zeros_like(every)
        trend_of_ranks[0, 0] = True
        table = self._tilted(table, margins, every & ~trend_of_ranks, steps=FEWER, damping=DAMPED)
        return fit_margins(self._tilted(table, margins, trend_of_ranks), margins)

    def _tilted(
        self,
        table: Marginal,
        margins: tuple[Marginal, ...],
        these: Mask,
        steps: int = STEPS,
        damping: float = 1.0,
    ) -> Marginal:
        """Return the table after the step that came closest to these trends; steps may overshoot."""
        (a, b), (u, v) = self.coarse, self.fine
        sides, totals = lift_all([table.domain], [margins]), np.array([margins[0].total])
        counts = best = table.counts
        best_gap = np.inf
        for _ in range(steps + 1):
            sums = self.grouping.join(counts)
            gap = (self.wanted - a.T @ sums @ b) * these
            missed = float((np.abs(gap) / self.enough).max())
            if missed < best_gap:
                best, best_gap = counts, missed
            if missed <= 1:
                break
            room = (a**2).T @ sums @ (b**2)
            step = np.divide(gap, room, out=np.zeros_like(gap), where=these & (room > 0))
            step = np.clip(damping * step, -LARGEST, LARGEST)
            tilt = np.exp(np.clip(u @ step @ v.T, -STEEPEST, STEEPEST))
            counts = fit_alike((counts * tilt)[np.newaxis], sides, totals, iterations=ITERATIONS)[0]
        return Marginal(table.domain, best)


def tilted_to(
    table: Marginal,
    margins: tuple[Marginal, ...],
    direction: Floats,
    statistic: Callable[[Floats], float],
    wanted: float,
    enough: float,
) -> Marginal:
    r"""Return the table times :math:`e^{t d}`, fitted to its margins, with t such that a statistic is met.

    The statistic increases with the tilt t, up to the most that the margins allow. The tilt doubles until it
    has passed what is wanted or cannot be fitted to the margins any more; from then on the bracket is halved.
    If the margins do not allow what is wanted, the table that comes closest is returned, with the smaller
    tilt of two that are as close.

    Parameters
    ----------
    table : Marginal
    margins : tuple of Marginal
    direction : array of the table's shape
        The direction d.
    statistic : callable
        Of an array of counts.
    wanted : float
    enough : float
        The statistic counts as met if it is as close.
    """
    best = nearest = table
    first = wanted - statistic(table.counts)
    best_gap, near, far, passed = abs(first), 0.0, float(np.copysign(FIRST, first)), False
    for _ in range(TRIALS):
        if best_gap <= enough:
            break
        tilt = (near + far) / 2 if passed else far
        counts = nearest.counts * np.exp(np.clip((tilt - near) * direction, -STEEPEST, STEEPEST))
        tilted = fit_margins(Marginal(table.domain, counts), margins, enough=SAME)
        gap = wanted - statistic(tilted.counts)
        gaps = ((np.abs(tilted.project(m.attributes).counts - m.counts).max(), m.total) for m in margins)
        fits = all(missed <= MET * total for missed, total in gaps)
        if fits and (best_gap - abs(gap) > enough or abs(gap) <= enough):
            best, best_gap = tilted, abs(gap)
        passed = passed or not fits or gap * first < 0
        if fits and gap * first > 0:
            nearest, near, far = tilted, tilt, far if passed else 2 * tilt
        else:
            far = tilt
    return fit_margins(best, margins)


def ranks_of(side: Marginal) -> Floats:
    """Return mid-ranks with mean 0 and variance 1 over the records, 0 for codes without order.

    An attribute without any order has an indicator for each code.
    """
    ordered = side.domain.ordered[0]
    if ordered < 2:
        return np.eye(len(side.counts))
    counts = side.counts[:ordered]
    share = counts / max(float(counts.sum()), 1.0)
    ranks = np.cumsum(share) - share / 2
    ranks = ranks - ranks @ share
    scale = float(np.sqrt(ranks**2 @ share))
    scores = np.zeros((len(side.counts), 1))
    scores[:ordered, 0] = ranks / scale if scale > 0 else 0.0
    return scores


def _means(functions: Floats, counts: Floats, group: Codes) -> Floats:
    """Return the mean of each function over the records of each group."""
    weight = np.maximum(counts, TINY_COUNT)
    sums = np.stack([np.bincount(group, weight * column) for column in functions.T], axis=1)
    return np.asarray(sums / np.bincount(group, weight)[:, np.newaxis])


def _records(side: Marginal, functions: Floats) -> Floats:
    """Return the number of records of each function: of all ordered codes, of a value, or of a part."""
    records = np.asarray(side.counts @ functions)
    if ordered := side.domain.ordered[0]:
        records[0] = side.counts[:ordered].sum()
    return records


def _parts(side: Marginal, group: Codes) -> Floats:
    """Return an indicator for each of at most `PARTS` parts of the groups; no column if there are two."""
    part = groups_at(side.join(Grouping((group,))), PARTS)[group]
    size = int(part.max()) + 1
    return np.eye(size)[part] if size > 2 else np.zeros((len(group), 0))


def _mean_ranks(side: Marginal, functions: Floats) -> Floats:
    """Return the mean rank of each part."""
    parts = functions[:, 1:]
    return np.asarray((side.counts * functions[:, 0]) @ parts / np.maximum(side.counts @ parts, TINY_COUNT))


def _missing(moved: Floats, noise: Floats, ranks: Floats, total_move: float) -> Floats:
    """Return what parts have to move further, so that they add up to the move of the whole trend.

    The margins hold the sum of all parts. Each part is corrected in proportion to its noise variance.
    """
    sums = np.stack([np.ones(len(ranks)), ranks])
    short = np.array([0.0, total_move]) - sums @ moved
    return np.asarray(noise * (sums.T @ (np.linalg.pinv((sums * noise) @ sums.T) @ short)))
