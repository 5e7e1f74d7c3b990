r"""What was counted about some attributes together, and the sum of weights over the records with its noise.

**Of one attribute** the sum follows from its counts. **Of a measured table** of several attributes, let w be
the weight s - R v of a cell and

.. math:: w = m + \sum_k f_k + e

where :math:`f_k` is what w depends on along attribute k alone. The first two parts are sums over single
attributes, which are known better from all tables together. Only e needs the measured cells: their own
counts are unbiased for every table. No estimate that is shrunk enters. The noise of e is that of its cells.
For a cell of a 2 x 2 table it has half the standard deviation of the cell's own count. Every choice of f is
unbiased. Inside a group of codes it is the mean of w over the rows of that group, so that e varies little
there: an amount of which the group holds 62 % of all "yes" counts with 62 % of the noise of its own count.

**Of a pair that was not measured**, the sum of e differs from 0 by at most
:math:`\min \lVert e - f - g \rVert_\infty D`: D is the L1 distance of the pair from the product of its
margins, and f and g any weights along one attribute, because departures from independence sum to 0 along
both. For a share of two conditions that is D / 4. D has a released noisy answer, by which pairs were chosen;
its upper end counts. Where it was not asked, or says little, the margins say how much is possible: no share
of A and B exceeds that of A, or of B (Frechet). For any weights that is the dual of a transport problem.

Where a condition cuts a code, all of its records may lie on either side: the interval has both. A mean
weight inside a code is uncertain by `TILT` standard deviations of the weight, and in a cell of n records
by :math:`1/\sqrt n` of them more. Where the weight is a number of the cell, its mean may be anywhere in
it, as in `number_intervals`.

**Where it splits a group of codes** in which a pair was counted, the counts of the attribute itself say where
the records of the group lie. Open is how much their mean place depends on the other attribute. That is
estimated. Let :math:`m_a` be the mean place of the records in group a of the other attribute, in standard
deviations of the place, and :math:`\nu_a^2` its noise variance. From group to group the place moves by
:math:`d_a^2 = (m_a - \bar m)^2 + \nu_a^2`. Let :math:`r_{ga}` be the records in groups g and a over what
independence gives, and :math:`\sigma_{ga}^2` its noise variance. If it goes on inside g as between the
neighbours of g, the place moves there by :math:`s_{ga}^2 = ((r_{g+1,a} - r_{g-1,a})^2 / 4 + \sigma_{ga}^2 /
2) / 12 r_{ga}^2`, because a group has the width of :math:`\sqrt{12}` standard deviations. The largest of
:math:`s_{ga}^2`, :math:`d_a^2` and the mean of all :math:`d_a^2` is taken; at least the square of
`LEAST_TILT`, and at most that of `TILT`, as if nothing were known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import sqrt

import numpy as np

from privsyn.inference.composition import Composition
from privsyn.inference.fitted import count_intervals, with_rounding
from privsyn.inference.ordered.number_intervals import noise_variance
from privsyn.inference.posterior.cells import places_in
from privsyn.inference.posterior.tables import TILT
from privsyn.inference.ratios.weights import NO_PLACES
from privsyn.marginals.domain import Codes, Floats
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Measurement
from privsyn.marginals.tolerances import TINY_COUNT

BEYOND = 3.0
"""Standard deviations by which limits from margins are widened: they hide less than 0.3 % of true sums."""

LEAST_TILT = 0.25
"""Least standard deviation of the mean place inside a group of codes, in standard deviations of the place. It
allows for dependences inside groups that are not seen between them."""

SLACK = 1e-9  # of a sum: without noise, as of exact counts, the rest is rounding


@dataclass(frozen=True, eq=False)
class Departure:
    """The noisy L1 distance of a pair from the product of its margins.

    Parameters
    ----------
    distance, sigma : float
        In records, and the standard deviation of its noise.
    blocks : Grouping
        Of the codes: the distance is that of a table in blocks.
    """

    distance: float
    sigma: float
    blocks: Grouping

    @property
    def upper_end(self) -> float:
        """The upper end of the interval of the distance."""
        _, high = count_intervals(np.array([self.distance]), np.array([self.sigma**2]))
        return float(high[0])


@dataclass(frozen=True, eq=False)
class Sum:
    """The sum of weights over the records: its estimate, noise variance, and how far it may lie beside it."""

    value: float
    variance: float
    beside: float = 0.0


@dataclass(frozen=True, eq=False)
class JointCounts:
    """What was answered about some attributes together.

    Parameters
    ----------
    released : array of the shape of their table
        The released counts; of a pair that was not measured, the product of its margins.
    margins : sequence of arrays, one per attribute
        The measured counts of each attribute.
    factors : sequence of matrices, one per attribute
        The noise in the margins is F z, with z standard normal; see `noise_factor`.
    ordered : sequence of int, one per attribute
        Number of codes with an order; they come first.
    measured : Measurement, optional
        The measured counts of the table. Default: it was not measured.
    margins_hold : bool
        Whether the table counts the rows that its margins count: no constraint left any out.
    departure : Departure, optional
        Of a pair that was not measured.
    composition : Composition, optional
        Of the counted rows and of all rows. Default: all rows are like the counted ones.
    """

    released: Floats
    margins: Sequence[Floats]
    factors: Sequence[Floats]
    ordered: Sequence[int]
    measured: Measurement | None = None
    margins_hold: bool = True
    departure: Departure | None = None
    composition: Composition | None = None

    @property
    def _grouping(self) -> Grouping:
        if self.measured is not None:
            return self.measured.grouping
        return self.departure.blocks if self.departure is not None else NO_GROUPS

    @cached_property
    def _shares(self) -> list[Floats]:
        """The released share of each code of each attribute."""
        axes = range(self.released.ndim)
        sides = [self.released.sum(axis=tuple(k for k in axes if k != axis)) + TINY_COUNT for axis in axes]
        return [side / side.sum() for side in sides]

    @cached_property
    def _filled(self) -> Floats:
        """The released counts, with a little in each cell so that every group has a mean weight."""
        return self.released + TINY_COUNT * self._product

    @cached_property
    def _product(self) -> Floats:
        """The table of independent attributes with these shares; its sum is 1."""
        return np.asarray(reduce(np.multiply.outer, self._shares))

    @cached_property
    def _sums(self) -> Floats:
        """The same counts in groups of codes."""
        return self._grouping.join(self._filled)

    @cached_property
    def _groups(self) -> tuple[Codes, ...]:
        return self._grouping.of_codes(self.released.shape)

    @cached_property
    def _tilt(self) -> Floats:
        """By how many standard deviations mean weights may depend on other attributes inside groups of codes.

        Of several attributes that were counted in groups, the largest; of the shape of the groups.
        """
        sides = [
            self._tilts(axis)
            for axis, (group, share, ordered) in enumerate(
                zip(self._groups, self._shares, self.ordered, strict=True)
            )
            if places_in(share, group, ordered).any()
        ]
        return np.maximum.reduce(sides) if sides else np.zeros(1)

    def _tilts(self, axis: int) -> Floats:
        """Return by how many standard deviations the mean place along an axis may depend on the other axes.

        It is estimated from groups, up to their noise: how much their mean place moves, and how much their
        share changes from one to the next. See the module.

        Returns
        -------
        array of the shape of the table in groups
        """
        if self.measured is None:
            return np.full((1,) * self.released.ndim, TILT)
        counts = np.maximum(self._sums, TINY_COUNT)
        variance = np.broadcast_to(self.measured.variance, counts.shape)
        other_axes = tuple(k for k in range(counts.ndim) if k != axis)
        side, rows = counts.sum(axis=other_axes), counts.sum(axis=axis, keepdims=True)
        groups = int(self._groups[axis][: self.ordered[axis]].max(initial=-1)) + 1  # with an order: the first
        ranks = _lifted(places_in(side, np.zeros(len(side), np.int64), groups), axis, counts.ndim)
        means = (counts * ranks).sum(axis=axis, keepdims=True) / rows
        noise = (variance * ranks**2).sum(axis=axis, keepdims=True) / rows**2
        moved = (means - np.average(means, weights=rows)) ** 2 + noise
        squares = np.maximum(moved, np.average(moved, weights=rows)) + np.zeros(counts.shape)
        if groups > 1:
            expected = rows * _lifted(side, axis, counts.ndim) / counts.sum()
            ratios, errors = (
                np.moveaxis(values, axis, 0)[:groups]
                for values in (counts / expected, variance / expected**2)
            )
            slopes = (np.gradient(ratios, axis=0) ** 2 + gradient_noise(errors)) / (12 * ratios**2)
            in_order = np.moveaxis(squares, axis, 0)[:groups]
            np.maximum(in_order, slopes, out=in_order)
        return np.clip(np.sqrt(squares), LEAST_TILT, TILT)

    def sum_of(
        self, weights: Floats, squares: Floats, place_variance: Floats = NO_PLACES, *, parts: bool = False
    ) -> Sum:
        """Return the sum over the records of weights with this mean and variance in each cell.

        With `parts`, the weights inside a cell are two numbers with a difference of 1. `Weights` has the
        variance of places.
        """
        axes = range(weights.ndim)
        along = [np.zeros(size) for size in weights.shape]
        rest = np.array(weights, np.float64)
        if weights.ndim == 1:
            along, rest = [rest], np.zeros(len(rest))
        elif self.margins_hold:
            mean = float(np.average(weights, weights=self._expected))
            along = [self._averaged(weights, axis) - mean for axis in axes]
            along[0] = along[0] + mean
            rest = rest - sum(_lifted(side, axis, weights.ndim) for axis, side in enumerate(along))
        sums = self._sums
        spread = 3 * squares**2 if parts else np.maximum(squares, 0.0)
        # Beside the shape inside a cell, chance: each record of it has a place of its own.
        inside = self.released**2 * np.maximum(TILT**2 * spread, place_variance)
        inside = inside + self.released * np.maximum(squares, 0.0)
        beside, value, variance = 0.0, 0.0, float(inside.sum())
        means = self._grouping.join(self._filled * rest) / sums
        if weights.ndim > 1:  # groups of codes have a shape, and chance, too
            variance += float(((self._tilt**2 * sums**2 + sums) * self._spread(rest, means)).sum())
        rest = means
        if weights.ndim > 1 and self.margins_hold:
            rest = self._centred(rest, along)
        if self.measured is not None and weights.ndim > 1:
            value = float((rest * self.measured.marginal.counts).sum())
            variance += float((rest**2 * with_rounding(self.measured.variance)).sum())
        elif weights.ndim > 1:
            distance = np.inf if self.departure is None else self.departure.upper_end
            beside = float(np.abs(rest).max()) * min(distance, 2 * float(sums.sum()))
        for side, counts, factor in zip(along, self.margins, self.factors, strict=True):
            value += float(side @ counts)
            variance += float(noise_variance(side, factor))
        return Sum(value, variance, beside)

    @cached_property
    def _expected(self) -> Floats:
        """The released counts of a measured table; else the product of its margins, up to a factor."""
        return self._filled if self.measured is not None else self._product

    def _averaged(self, weights: Floats, axis: int) -> Floats:
        """Return the mean weight of each code along an axis, by the rows of its group over the other axes."""
        rows = np.moveaxis(self._expected, axis, 0).reshape(weights.shape[axis], -1)
        group = self._groups[axis]
        of_groups = np.zeros((int(group.max()) + 1, rows.shape[1]))
        np.add.at(of_groups, group, rows)
        shares = of_groups / of_groups.sum(axis=1, keepdims=True)
        return np.asarray((np.moveaxis(weights, axis, 0).reshape(rows.shape) * shares[group]).sum(axis=1))

    def _spread(self, rest: Floats, means: Floats) -> Floats:
        """Return the variance of weights inside each group cell, and a standard deviation of its noise.

        A tail whose own counts are hidden by noise may hold rows that the released counts do not show. Both
        are added as squares, so that noise matters where it is not small beside the variance.
        """
        squares = (rest - means[np.ix_(*self._groups)]) ** 2
        moments, noise = self._grouping.join(self._filled * squares), np.zeros(means.shape)
        for axis, (group, factor) in enumerate(zip(self._groups, self.factors, strict=True)):
            if len(group) == means.shape[axis]:  # no code shares a group
                continue
            groups = list(self._groups)
            groups[axis] = np.arange(len(group), dtype=np.int32)
            of_others = Grouping(tuple(groups))
            mean = of_others.join(self._filled * squares) / of_others.join(self._filled)
            mean = np.moveaxis(mean, axis, 0)
            covariance = np.where(group[:, np.newaxis] == group, factor @ factor.T, 0.0)
            of_groups = np.zeros((means.shape[axis], *mean.shape[1:]))
            np.add.at(of_groups, group, mean * np.tensordot(covariance, mean, 1))
            rows = self._sums.sum(axis=tuple(k for k in range(means.ndim) if k != axis), keepdims=True)
            noise += np.moveaxis(of_groups, 0, axis) * (self._sums / rows) ** 2
        varies = moments > SLACK * self._grouping.join(self._filled * rest**2)
        return np.where(varies, np.sqrt(moments**2 + noise), 0.0) / self._sums

    def _centred(self, rest: Floats, along: list[Floats]) -> Floats:
        """Return weights of groups without what depends on one attribute, which is added to `along`.

        Of a measured table that is its mean, so that the noise is least; else its middle, so that the largest
        weight is.
        """
        axes = range(rest.ndim)
        for axis in axes:
            other_axes = tuple(k for k in axes if k != axis)
            if self.measured is None:
                side = (rest.max(axis=other_axes) + rest.min(axis=other_axes)) / 2
            else:
                side = rest.mean(axis=other_axes)
            rest = rest - _lifted(side, axis, rest.ndim)
            if self.measured is not None:  # else the sum of the pair's product along it is 0 already
                along[axis] = along[axis] + side[self._groups[axis]]
        return rest

    def unlike(self, weights: Floats) -> tuple[float, float]:
        """Return how much less and more the sum may be because all rows are unlike the counted ones."""
        if self.composition is None:
            return 0.0, 0.0
        total = max(float(self.released.sum()), TINY_COUNT)
        shares = self.released / total
        usual = float((weights * shares).sum())
        largest = self.composition.largest_mean(weights, shares)
        smallest = -self.composition.largest_mean(-weights, shares)
        return total * max(usual - smallest, 0.0), total * max(largest - usual, 0.0)

    def lower_limit(self, weights: Floats) -> float:
        r"""Return the least sum of weights over the records of a pair that its margins allow, less noise.

        The sum is at least :math:`\sum_i u_i a_i + \sum_j v_j b_j` for all :math:`u_i + v_j \le w_{ij}`.
        Three such u are tried, each with the largest v.
        """
        sums = []
        for rows in (np.zeros(len(weights)), weights.min(axis=1), weights.max(axis=1)):
            sides = rows, (weights - rows[:, np.newaxis]).min(axis=0)
            value = sum(float(side @ counts) for side, counts in zip(sides, self.margins, strict=True))
            noise = sum(
                float(((side @ factor) ** 2).sum()) for side, factor in zip(sides, self.factors, strict=True)
            )
            sums.append(value - BEYOND * sqrt(noise))
        return max(sums)


def gradient_noise(variances: Floats) -> Floats:
    """Return the variance of `np.gradient` along the first axis, of values with independent noise.

    Between two values it is a quarter of the sum of their variances; at an end, which has a neighbour on one
    side, it is the sum of both.

    >>> gradient_noise(np.array([1.0, 2.0, 3.0])).tolist()
    [3.0, 1.0, 5.0]
    """
    padded = np.concatenate([variances[:1], variances, variances[-1:]])
    noise: Floats = (padded[:-2] + padded[2:]) / 4
    noise[0], noise[-1] = variances[:2].sum(axis=0), variances[-2:].sum(axis=0)
    return noise


def _lifted(side: Floats, axis: int, ndim: int) -> Floats:
    """Return an array along one axis in a shape that broadcasts over `ndim` axes."""
    return side.reshape(*(1,) * axis, -1, *(1,) * (ndim - axis - 1))
