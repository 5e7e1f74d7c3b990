r"""Intervals of a ratio of two sums over the records: a share, a rate in a group, the mean of a group.

Let :math:`s` and :math:`v` be what a record adds above and below: for a rate of A in a group B the indicators
of A and B, and of B; for a mean the number in B, and the indicator of B. A ratio R is in the interval unless
the answers refute :math:`\sum (s - R v) = 0` at the level of 5 % (Fieller 1954). So no ratio of noisy numbers
is trusted where the noise hides the number of records in the group.

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

Where the condition of a share cuts a code, all of its records may lie on either side: the interval has both.
Where that of a group does, the mean weight inside the code is uncertain by `TILT` standard deviations of the
weight, and in a cell of n records by :math:`1/\sqrt n` of them more. Where the weight is a number of the
cell, its mean may be anywhere in it, as in `number_intervals`.

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

Near 0 the interval of a share is that of a count (Feldman and Cousins 1998).

References
----------
E. C. Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society B 16 (1954).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from math import sqrt

import numpy as np

from privsyn.inference.composition import Composition
from privsyn.inference.fitted import TWO_SIDED, count_intervals, laplace_intervals, with_rounding
from privsyn.inference.ordered.number_intervals import LEAST_TOTAL, Interval, noise_variance
from privsyn.inference.posterior.cells import places_in
from privsyn.inference.posterior.tables import TILT
from privsyn.inference.rare_values import NOTHING_HIDDEN, Hidden
from privsyn.marginals.domain import Codes, Floats
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal, Measurement
from privsyn.marginals.tolerances import TINY_COUNT

BEYOND = 3.0
"""Standard deviations by which limits from margins are widened: they hide less than 0.3 % of true sums."""

LEAST_TILT = 0.25
"""Least standard deviation of the mean place inside a group of codes, in standard deviations of the place. It
allows for dependences inside groups that are not seen between them."""

NO_PLACES: Floats = np.zeros(1)
NO_PLACES.setflags(write=False)
SLACK = 1e-9  # of a sum: without noise, as of exact counts, the rest is rounding
SAME = 1e-6  # between the ends of the interval of a ratio of exact counts: halvings stop there
STEPS, HALVINGS = 41, 25  # ratios that are tried if the answers refute their own, and halvings at each end


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
class Weights:
    """What the records of each cell add above and below the line of a ratio.

    Parameters
    ----------
    above, below : arrays of the shape of the table
        Mean over the records of each cell.
    squares : tuple of three such arrays
        Variance above, covariance, and variance below, among the records of each cell.
    place_variance : array that broadcasts to this shape
        Variance of the mean above that is due to numbers of unknown place in their cell. Default: none.
    extremes : pair of Weights, optional
        The least and the largest that the records may add above, where no count shows which of those of a
        cell meet a condition. Default: none is unknown.
    """

    above: Floats
    below: Floats
    squares: tuple[Floats, Floats, Floats]
    place_variance: Floats = field(default_factory=lambda: NO_PLACES)
    extremes: tuple[Weights, Weights] | None = None

    @property
    def ends(self) -> tuple[Weights, Weights]:
        """The least and the largest weights."""
        return self.extremes or (self, self)

    @property
    def counts_all(self) -> bool:
        """Whether the lower sum is the number of all records."""
        return bool(np.allclose(self.below, 1.0))

    @classmethod
    def ones(cls, size: int) -> Weights:
        """Return weights by which each record counts as one."""
        return cls(np.ones(size), np.ones(size), (np.zeros(size), np.zeros(size), np.zeros(size)))

    @property
    def moments(self) -> tuple[Floats, Floats, Floats]:
        """The mean square above, mean product, and mean square below, in each cell."""
        means = self.above**2, self.above * self.below, self.below**2
        first, both, second = (s + m for s, m in zip(self.squares, means, strict=True))
        return first, both, second

    @classmethod
    def of_moments(
        cls, above: Floats, below: Floats, moments: Iterable[Floats], place_variance: Floats
    ) -> Weights:
        """Return the weights with these means and `moments`."""
        first, both, second = moments
        squares = first - above**2, both - above * below, second - below**2
        return cls(above, below, squares, place_variance)

    def times(self, further: Weights) -> Weights:
        """Return the products with the weights of a further attribute, which do not depend on each other."""
        outer, sizes = np.multiply.outer, (self.above.shape, further.above.shape)
        first, second = (
            np.broadcast_to(weights.place_variance, size)
            for weights, size in zip((self, further), sizes, strict=True)
        )
        place_variance = outer(first, further.above**2 + second) + outer(self.above**2, second)
        moments = map(outer, self.moments, further.moments)
        above, below = outer(self.above, further.above), outer(self.below, further.below)
        product = Weights.of_moments(above, below, moments, place_variance)
        if self.extremes is None and further.extremes is None:
            return product
        lowest, highest = (first.times(second) for first, second in zip(self.ends, further.ends, strict=True))
        return replace(product, extremes=(lowest, highest))

    def joined(self, groups: Codes, records: Floats) -> Weights:
        """Return the weights of groups of codes, of which each code has some records."""
        shares = records / np.bincount(groups, records)[groups]

        def mean(values: Floats) -> Floats:
            return np.bincount(groups, shares * values).astype(np.float64)

        place_variance = np.bincount(groups, shares**2 * self.place_variance).astype(np.float64)
        joined = Weights.of_moments(
            mean(self.above), mean(self.below), map(mean, self.moments), place_variance
        )
        if self.extremes is None:
            return joined
        lowest, highest = (end.joined(groups, records) for end in self.extremes)
        return replace(joined, extremes=(lowest, highest))

    def at(self, ratio: float) -> tuple[Floats, Floats]:
        """Return the mean and variance of `above` - ratio `below` in each cell."""
        first, both, second = self.squares
        return self.above - ratio * self.below, first - 2 * ratio * both + ratio**2 * second


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


def ratio_interval(
    answers: JointCounts,
    weights: Weights,
    limits: tuple[float, float],
    *,
    hidden: Hidden = NOTHING_HIDDEN,
    laplace: bool = False,
) -> Interval | None:
    """Return the ratio of two sums over the records, and its interval; None if noise hides the lower sum.

    Parameters
    ----------
    answers : JointCounts
    weights : Weights
    limits : pair of float
        The least and the largest ratio. With (0, 1) the upper sum is a part of the lower one.
    hidden : Hidden
        What noise hides of a part.
    laplace : bool
        Whether the noise is discrete Laplace.
    """
    number, low, high = answers.sum_of(weights.below, weights.squares[2]), *limits
    released = float((answers.released * weights.below).sum())
    estimate = float((answers.released * weights.above).sum()) / released if released > 0 else np.nan
    if number.value - number.beside <= LEAST_TOTAL * sqrt(number.variance):
        return Interval(estimate, *limits) if weights.counts_all else None
    upper = answers.sum_of(weights.above, weights.squares[0], weights.place_variance)
    centre = min(max(upper.value / number.value, low), high)
    is_part, flips = limits == (0.0, 1.0), centre > (low + high) / 2
    in_parts = is_part and weights.counts_all
    is_limited = answers.released.ndim == 2 and answers.margins_hold and answers.composition is None
    intervals_of = laplace_intervals if laplace else count_intervals
    slack = SLACK * max(float(np.abs(answers.released * weights.above).sum()), number.value)
    inside_cells = float((answers.released**2 * weights.place_variance).sum())
    unseen = TWO_SIDED * sqrt(hidden.variance + inside_cells)  # margins show neither
    # Answers that lie beyond a limit are taken to be at it, which is nearer to every possible ratio.
    beyond = upper.value - centre * number.value

    def limits_of(weights: Weights, ratio: float) -> tuple[float, float]:
        """Return the least and the largest possible sum of all records of which `beyond` is the noisy one."""
        weight, squares = weights.at(ratio)
        total = answers.sum_of(weight, squares, weights.place_variance, parts=in_parts)
        less, more = (total.beside + rows + slack for rows in answers.unlike(weight))
        if not is_part:
            noise = TWO_SIDED * sqrt(total.variance)
            return total.value - noise - less - beyond, total.value + noise + more - beyond
        expected = ratio * number.value
        seen = expected + total.value
        below, above = hidden.missing + less, hidden.meeting + more
        if flips:
            seen, expected, below, above = number.value - seen, number.value - expected, above, below
        ends = intervals_of(np.array([seen]), np.array([total.variance + hidden.variance]))
        low, high = float(ends[0][0]) - below - expected, float(ends[1][0]) + above - expected
        return (-high, -low) if flips else (low, high)

    def accepts(ratio: float) -> bool:
        (lowest, _), (highest, _) = (end.at(ratio) for end in weights.ends)
        if is_limited and (
            answers.lower_limit(lowest) > slack + unseen + hidden.missing
            or answers.lower_limit(-highest) > slack + unseen + hidden.meeting
        ):
            return False
        ends = [limits_of(end, ratio) for end in dict.fromkeys(weights.ends)]
        return ends[0][0] <= 0.0 <= ends[-1][1]

    ends = _accepted(accepts, low, high, centre)
    is_exact = not number.variance + upper.variance and ends[1] - ends[0] <= SAME
    return Interval(estimate, *((estimate, estimate) if is_exact else ends))


def share_interval(
    measured: Measurement,
    released: Marginal,
    parts: Floats,
    factor: Floats,
    *,
    hidden: Hidden = NOTHING_HIDDEN,
    laplace: bool = False,
) -> Interval:
    """Return the released share of records that meet a condition on one attribute, and its interval.

    Parameters
    ----------
    measured : Measurement
    released : Marginal
    parts : array of shape (codes,)
        Share of the records of each code that meet the condition.
    factor : array of shape (codes, codes)
        The noise in the measured counts is F z, with z standard normal.
    hidden, laplace
        See `ratio_interval`.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> counts = Marginal(Domain(("a",), (2,)), np.array([300.0, 100.0]))
    >>> found = share_interval(Measurement(counts, 100.0), counts, np.array([0.0, 1.0]), 10 * np.eye(2))
    >>> found.estimate, round(found.low, 3), round(found.high, 3)
    (0.25, 0.21, 0.288)
    """
    answers = JointCounts(released.counts, [measured.marginal.counts], [factor], released.domain.ordered)
    squares = parts * np.maximum(1 - parts, 0.0)
    weights = Weights(parts, np.ones_like(parts), (squares, np.zeros_like(parts), np.zeros_like(parts)))
    interval = ratio_interval(answers, weights, (0.0, 1.0), hidden=hidden, laplace=laplace)
    estimate = min(float(released.counts @ parts) / max(released.total, TINY_COUNT), 1.0)
    return Interval(estimate, 0.0, 1.0) if interval is None else replace(interval, estimate=estimate)


def _accepted(
    accepts: Callable[[float], bool], low: float, high: float, centre: float
) -> tuple[float, float]:
    """Return the ends of the interval of numbers that are accepted; the limits if none that is tried is."""
    if not accepts(centre):
        tried = [number for number in np.linspace(low, high, STEPS).tolist() if accepts(number)]
        if not tried:
            return low, high
        centre = min(tried, key=lambda number: abs(number - centre))
    ends = []
    for refused in (low, high):
        end = refused if accepts(refused) else centre
        for _ in range(HALVINGS if end != refused else 0):
            middle = (end + refused) / 2
            end, refused = (middle, refused) if accepts(middle) else (end, middle)
        ends.append(end)
    return ends[0], ends[1]
