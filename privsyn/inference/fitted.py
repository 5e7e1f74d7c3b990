r"""Fitted: the estimated tables, ready for synthesis, and their errors, estimated from noisy answers.

Two errors are different. An *interval* for a count uses only the noisy answers about that table, whose noise
is known. It is valid for every private table. The *expected error* is the error of the estimate, which also
uses other answers (one-ways, other pairs, latent classes). It is as good as the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from math import log, prod, sqrt

import numpy as np
from scipy.special import ndtr, ndtri

from privsyn.inference.composition import Composition
from privsyn.inference.consistency import variance_of_total
from privsyn.inference.departures import NO_CONCORDANCES, NO_DEPARTURES, Concordances, Departures
from privsyn.inference.measured_columns import Estimate
from privsyn.inference.prior.dispersion import MEAN_OF_ABSOLUTE
from privsyn.inference.public.rows import PublicRows
from privsyn.marginals.domain import Attributes, Floats
from privsyn.marginals.ipf import CELLS_AT_ONCE, sums_of
from privsyn.marginals.known_totals import NO_TOTALS, KnownTotals
from privsyn.marginals.marginal import Marginal, Measurement, alike
from privsyn.marginals.recoding import Merging
from privsyn.marginals.tolerances import TINY_VARIANCE

FURTHEST = 6.0
"""Standard deviations below zero: answers further off are clipped here, for numerical accuracy."""

MISSED = 1 / 20
"""Share of intervals that may miss the true number: all intervals are of the level 1 - MISSED, 95 %."""

LEVEL = f"{1 - MISSED:.0%}"
TWO_SIDED, ONE_SIDED = float(ndtri(1 - MISSED / 2)), float(ndtri(1 - MISSED))  # 1.96 and 1.64
ROUNDING = 1 / 12  # variance added by rounding the noise to whole records, if it is over half a record

HALF = 0.5  # record

NO_COMMON: Floats = np.zeros((0, 0))
NO_COMMON.setflags(write=False)

SMALLEST_MEAN = 1e-4  # standard deviations: smallest mean in the table of intervals
MEANS = 2000
HALVINGS = 50

LEAST_SIGNAL = 2.0
"""How many times as large as its error the estimated number of rows must be, for a table to be made.

Noise alone passes in 2.3 % of runs. In 48 runs on 100 rows at epsilon 1, of 4 to 25 columns, the ratio was
between 5.2 and 17; of 30 rows between 0.4 and 3.9; of 2,000 rows at epsilon 0.00001 at most 1.2.
"""


@dataclass(frozen=True, eq=False)
class Certainty:
    """Error of one released table of counts.

    Parameters
    ----------
    measured : Measurement
        Precision-weighted mean of all measurements of this table.
    error : float
        Expected total variation between the released counts and the true ones: the share of records that
        would have to change.
    common : array of shape (codes, k), optional
        Errors that move many counts of a one-way table together: ``common @ z`` with z standard normal. The
        variances of `measured` contain them. Default: none.
    """  # style: allow

    measured: Measurement
    error: float
    common: Floats = field(default_factory=lambda: NO_COMMON)

    def __post_init__(self) -> None:
        if self.common.size and self.common.shape[:-1] != self.measured.marginal.counts.shape:
            raise ValueError(f"errors in common of {self.common.shape[:-1]} codes")
        if not np.isfinite(self.common).all():
            raise ValueError("an error in common is no finite number")
        if not 0 <= self.error < float("inf"):
            raise ValueError(f"error {self.error}: expected is a number of at least 0")
        if not np.isfinite(self.measured.marginal.counts).all():
            raise ValueError("the measured counts are not all finite")

    @property
    def attributes(self) -> Attributes:
        """Attributes of the table."""
        return self.measured.attributes

    @property
    def relates(self) -> bool:
        """Whether the table tells how its attributes depend on each other: each has two groups or more.

        Of three attributes in groups it is unknown how well, because their coverage has not been measured.
        """
        if len(self.attributes) > 2 and self.measured.grouping:
            return False
        return len(self.attributes) == 1 or min(self.measured.marginal.counts.shape) > 1

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise in a cell, in records: the root of the mean noise variance."""
        return float(np.sqrt(self.measured.variance.mean()))

    def intervals(self, *, laplace: bool = False) -> tuple[Floats, Floats]:
        """Return the ends of a 95 % interval for the true count of each cell.

        The noise is Gaussian or, with `laplace`, discrete Laplace.
        """
        intervals_of = laplace_intervals if laplace else count_intervals
        return intervals_of(self.measured.marginal.counts, self.measured.variance)

    def distance(self, counts: Floats) -> float:
        """Return the expected total variation between given counts and the true ones.

        It covers all that changed the counts: noise, constraints and sampling. Only measurements of this
        table are used; see `expected_distance`.
        """
        return expected_distance(self.measured, counts)


def one_way_certainty(measured: Measurement, table: Marginal) -> Certainty:
    """Return the certainty of a one-way table.

    Parameters
    ----------
    measured : Measurement
        Mean of all its noisy answers.
    table : Marginal
        The released counts: non-negative, and consistent with the constraints.
    """  # style: allow
    return Certainty(measured, expected_distance(measured, table.counts))


def expected_distance(measured: Measurement, counts: Floats) -> float:
    r"""Return the expected total variation between given counts and the true ones.

    A true count is modelled as normal about its noisy answer, truncated to :math:`t \ge 0`. With :math:`\mu`
    the answer, :math:`\sigma` the noise and :math:`a = (c - \mu) / \sigma`, :math:`b = -\mu / \sigma`, the
    mean of :math:`|t - c|` is
    :math:`\sigma (2 \varphi(a) - \varphi(b) + a (2 \Phi(a) - 1 - \Phi(b))) / (1 - \Phi(b))`.

    Parameters
    ----------
    measured : Measurement
    counts : array of the table's shape, not negative
        In records. Their total is taken as the true one.

    Examples
    --------
    Noise of 10 records in each of two cells; then a constraint moved 100 of 200 records:

    >>> from privsyn.marginals.domain import Domain
    >>> measured = Measurement(Marginal(Domain(("a",), (2,)), np.array([150.0, 50.0])), 100.0)
    >>> round(expected_distance(measured, np.array([150.0, 50.0])), 3)
    0.028
    >>> round(expected_distance(measured, np.array([50.0, 150.0])), 3)
    0.5
    """  # style: allow
    total = float(counts.sum())
    sigma = np.sqrt(np.maximum(_centred(measured.variance), TINY_VARIANCE))
    seen = measured.marginal.counts - (measured.marginal.total - total) / counts.size
    below = np.minimum(-seen / sigma, FURTHEST)
    away = counts / sigma + below
    bells = 2 * _bell(away) - _bell(below)
    mean = sigma * (bells + away * (2 * ndtr(away) - 1 - ndtr(below))) / ndtr(-below)
    return min(float(np.maximum(mean, 0.0).sum()) / (2 * max(total, 1.0)), 1.0)


def _bell(x: Floats) -> Floats:
    """Return the density of the standard normal distribution."""
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def table_certainties(tables: Sequence[Estimate], one_ways: Sequence[Measurement]) -> list[Certainty]:
    """Return the certainty of each table that was measured and then fitted to the one-ways, in order.

    A table that was measured over joined codes has the expected error of its groups. Tables of one shape are
    computed together.

    Parameters
    ----------
    tables : sequence of Estimate
        The released counts. The posterior variance has the table's shape, or the shape of its groups.
    one_ways : sequence of Measurement
        Mean of all measurements of each attribute of the tables. Their noise adds to the errors.
    """
    noise = {one_way.attributes[0]: one_way.variance for one_way in one_ways}
    joined = list(map(_in_groups, tables))
    errors = np.empty(len(joined))
    for indices in alike([c.shape for c, _ in joined], [c.size for c, _ in joined], CELLS_AT_ONCE):
        some = [tables[i].measured for i in indices]
        counts, variance = map(np.array, zip(*(joined[i] for i in indices), strict=True))
        variance *= prod(1 - 1 / size for size in counts.shape[1:])
        # If the model is right, deviations have the noise variance minus the variance of the estimate. An
        # excess over this by more than chance (one standard deviation) is attributed to the model.
        noise_variance = np.array([m.variance for m in some])
        energy = sums_of((np.array([m.marginal.counts for m in some]) - counts) ** 2)
        excess = energy - sums_of(noise_variance - variance) - np.sqrt(2 * sums_of(noise_variance**2))
        misfits = 1.0 + np.maximum(excess, 0.0) / np.maximum(sums_of(variance), TINY_VARIANCE)
        variance *= misfits.reshape(-1, *(1,) * (counts.ndim - 1))
        for axis, size in enumerate(counts.shape[1:]):
            summed = tuple(k + 1 for k in range(counts.ndim - 1) if k != axis)
            margin = counts.sum(axis=summed, keepdims=True)
            share = np.divide(counts, margin, out=np.zeros(counts.shape), where=margin > 0)
            side = np.array([m.grouping.project((axis,)).join(noise[m.attributes[axis]]) for m in some])
            variance += side.reshape(-1, *(1,) * axis, size, *(1,) * (counts.ndim - axis - 2)) * share**2
        deviations = MEAN_OF_ABSOLUTE * sums_of(np.sqrt(np.maximum(variance, TINY_VARIANCE)))
        errors[indices] = np.minimum(deviations / (2 * np.maximum(sums_of(counts), 1.0)), 1.0)
        errors[indices] *= sums_of(noise_variance) > 0  # exact counts are met
    return list(map(Certainty, (t.measured for t in tables), errors.tolist()))


def _in_groups(table: Estimate) -> tuple[Floats, Floats]:
    """Return the counts of a table and their posterior variance, in the groups in which it was measured."""
    measured, variance = table.measured, table.posterior_variance
    if variance.shape != measured.variance.shape:
        # Errors inside a group may all have one sign. Their sum varies no more than the group's noise.
        variance = np.minimum(measured.grouping.join(np.sqrt(variance)) ** 2, measured.variance)
    return measured.grouping.join(table.table.counts), variance


def _centred(variance: Floats) -> Floats:
    """Return the variance of a cell after centring along every axis: a share of prod(1 - 1/size)."""
    return variance * prod(1 - 1 / size for size in variance.shape)


def _reach(deviation: float, *, laplace: bool) -> float:
    """Return half the width of a 95 % interval of a rounded sum with this standard deviation of its noise."""
    wide = log(1 / MISSED) / sqrt(2) if laplace else TWO_SIDED
    return wide * sqrt(float(with_rounding(np.array(deviation**2))))


def count_intervals(seen: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of 95 % intervals for counts, from noisy answers alone.

    For any true counts of at least 0, each interval covers its count with probability 0.95. That of an exact
    count, of variance 0, has no width.

    Parameters
    ----------
    seen : array
        Noisy answers, in records.
    variance : array of the same shape
        Noise variance of each, in records squared.

    Examples
    --------
    >>> low, high = count_intervals(np.array([500.0, 0.0, -300.0]), np.full(3, 100.0**2))
    >>> low.round().tolist(), high.round().tolist()
    ([304.0, 0.0, 0.0], [696.0, 196.0, 42.0])
    """
    sigma = np.sqrt(variance + ROUNDING)
    means, lowest, highest = _accepted()
    standardised = seen / sigma
    low = np.where(
        standardised < highest[-1],
        np.interp(standardised, highest, means, left=0.0),
        standardised - TWO_SIDED,
    )
    high = np.where(
        standardised < lowest[-1], np.interp(standardised, lowest, means), standardised + TWO_SIDED
    )
    exact = variance == 0
    return np.where(exact, seen, low * sigma), np.where(exact, seen, high * sigma)


def with_rounding(variance: Floats) -> Floats:
    """Return the variance of noise that is rounded to whole records; an exact count has none.

    >>> with_rounding(np.array([1.0, 0.0])).round(3).tolist()
    [1.083, 0.0]
    """
    return variance + ROUNDING * (variance > 0)


def laplace_intervals(seen: Floats, variance: Floats) -> tuple[Floats, Floats]:
    r"""Return `count_intervals` for discrete Laplace noise or sums of it, with a coverage of at least 0.95.

    A single answer has the widest tails: for :math:`\mu \ge t = b \ln 20` it lies within t of its mean with
    probability 0.95. Below, answers are accepted from minus infinity, because the likelihood ratio of every
    :math:`x < 0` is the same, :math:`e^{-\mu / b}`; then :math:`b \ln 10` above the mean is enough. A sum of
    many answers is nearly normal. It stays within t with probability 0.966, and its one-sided quantile is
    1.645 standard deviations, slightly above :math:`b \ln 10`. Half a record is added, because
    :math:`P(|X| > t + 1/2) \le e^{-t/b}` for whole numbers.
    """
    scale = 1 / (2 * np.arcsinh(1 / np.sqrt(2 * np.maximum(variance, TINY_VARIANCE))))
    one_sided, two_sided = np.sqrt(2) * ONE_SIDED * scale, np.log(1 / MISSED) * scale
    from_below, from_above = seen - one_sided - HALF, seen - two_sided - HALF
    low = np.where(from_above >= two_sided, from_above, np.minimum(from_below, two_sided))
    low, high = np.maximum(low, 0.0), np.maximum(seen, 0.0) + two_sided + HALF
    exact = variance == 0
    return np.where(exact, seen, low), np.where(exact, seen, high)


@cache
def _accepted() -> tuple[Floats, Floats, Floats]:
    r"""Return means near zero, and the smallest and largest accepted answer of each, in standard deviations.

    The likelihood ratio of :math:`x < 0` is :math:`e^{x\mu - \mu^2/2}` and that of :math:`x \ge 0` is
    :math:`e^{-(x - \mu)^2/2}`. They are equal at :math:`\mu + t` and at :math:`(\mu^2 - t^2) / 2\mu`; t is
    chosen so that 95 % of answers lie between. From :math:`\mu = 1.96` on, t is constant.
    """
    means = np.geomspace(SMALLEST_MEAN, TWO_SIDED, MEANS)
    short, long = np.full(MEANS, ONE_SIDED), np.full(MEANS, TWO_SIDED)
    for _ in range(HALVINGS):
        reach = (short + long) / 2
        enough = ndtr(reach) - ndtr(-(means**2 + reach**2) / (2 * means)) >= 1 - MISSED
        short, long = np.where(enough, short, reach), np.where(enough, reach, long)
    return means, (means**2 - long**2) / (2 * means), means + long


@dataclass(frozen=True, eq=False)
class Fitted:
    """Estimates from all noisy answers; the private table is not needed any more.

    Parameters
    ----------
    merging : Merging
        How values were pooled, and how to restore them.
    one_ways : tuple of Marginal, one per attribute, in merged codes
    marginals : tuple of Marginal
        Counts over several attributes each. Overlapping tables agree: in the published method to hundredths
        of a record in each cell; in the default as far as proportional fitting converged, within a few per
        cent of the rows at worst.
    total : float
        Estimated number of rows, at least 1.
    certainties : tuple of Certainty
        Errors of the one-ways, then of the marginals.
    total_variance : float
        Variance of the total's error, if bounds leave out rows of persons with many, or if persons without
        columns of data are counted by their numbers of rows. Else 0: the columns estimate the total.
    departures : Departures
        Of the pairs whose tables do not relate their columns, or that have none.
    composition : Composition, optional
        Of the counted rows and of all rows, if bounds leave out rows of persons with many.
    concordances : Concordances
        Of the pairs of numbers.
    public_rows : PublicRows, optional
        Of which a part of the synthetic rows is drawn. The tables are those of all synthetic rows.
    totals : KnownTotals
        Exact counts that are public, by original codes. The tables agree with them.
    target : str, optional
        The attribute to be predicted, which is the label of records; see `Targets`.
    """

    merging: Merging
    one_ways: tuple[Marginal, ...]
    marginals: tuple[Marginal, ...]
    total: float
    certainties: tuple[Certainty, ...]
    total_variance: float = 0.0
    departures: Departures = NO_DEPARTURES
    composition: Composition | None = None
    concordances: Concordances = NO_CONCORDANCES
    public_rows: PublicRows | None = None
    totals: KnownTotals = NO_TOTALS
    target: str | None = None

    def __post_init__(self) -> None:
        names = tuple(name for one_way in self.one_ways for name in one_way.attributes)
        if names != self.merging.merged.names:
            raise ValueError(f"one-way tables of {names} over a domain of {self.merging.merged.names}")
        tables = [table.attributes for table in self.tables]
        if [certainty.attributes for certainty in self.certainties] != tables:
            raise ValueError(f"certainties of other tables than {tables}")
        if not 1 <= self.total < float("inf"):
            raise ValueError(f"total {self.total}: at least one row is estimated")
        if not 0 <= self.total_variance < float("inf"):
            raise ValueError(f"variance {self.total_variance}: a finite number of at least 0")
        sizes = self.merging.merged.size_of
        if any(block.shape != (sizes.get(name),) for name, block in self.departures.blocks.items()):
            raise ValueError("blocks of other codes")
        ordered = self.merging.merged.ordered_of
        if not all(0 < half < ordered.get(name, 0) for name, half in self.concordances.halves.items()):
            raise ValueError("halves of other codes")
        self.totals.merge(self.merging)  # raises if they are of other codes

    def one_way(self, name: str) -> Marginal:
        """Return the counts of one attribute."""
        return self.one_ways[self.merging.merged.axes((name,))[0]]

    def counts_of(self, name: str) -> Floats:
        """Return the count of each original code of one attribute."""
        return self.merging.spread(self.one_way(name))

    def one_way_certainty(self, name: str) -> Certainty:
        """Return the certainty of the counts of one attribute."""
        return self.certainties[self.merging.merged.axes((name,))[0]]

    @property
    def error_of_total(self) -> float:
        """Standard deviation of the total's error: by `total_variance`, or by the noise of the one-ways."""
        return sqrt(self.total_variance) or self.noise_of_total

    def reach_of_total(self, *, laplace: bool) -> float:
        """Return half the width of the 95 % interval of the number of rows.

        A sum of discrete Laplace answers is within ln(20) / sqrt(2) of their standard deviation with
        probability 0.95 or more. Noise is rounded to whole records.
        """
        return _reach(self.error_of_total, laplace=laplace)

    def interval_of_total(self, *, laplace: bool) -> tuple[float, float]:
        """Return the ends of the 95 % interval of the number of rows. All pages and answers show this one."""
        reach = self.reach_of_total(laplace=laplace)
        return max(self.total - reach, 0.0), self.total + reach

    @property
    def noise_of_total(self) -> float:
        """Standard deviation of the noise in the mean of the columns' sums; 0 if the number is public.

        Where `total_variance` is that of persons, each of whom is counted once, it is theirs.
        """
        if self.totals:
            return 0.0
        if self.total_variance and self.composition is None:
            return sqrt(self.total_variance)
        columns = self.certainties[: len(self.one_ways)]
        return sqrt(variance_of_total(certainty.measured for certainty in columns))

    def reach_of_noise(self, *, laplace: bool) -> float:
        """Return half the width of an interval of the number of rows that is no narrower than its noise."""
        return _reach(max(self.error_of_total, self.noise_of_total), laplace=laplace)

    @property
    def is_mostly_noise(self) -> bool:
        """Whether the total is so near to its noise that there may be no row at all."""
        return self.total < LEAST_SIGNAL * self.noise_of_total

    def composition_of(self, names: Attributes) -> Composition | None:
        """Return what is unknown of all rows with a value of some attributes; None if nothing is."""
        composition = self.composition
        if composition is None or not composition.measured.issuperset(names):
            return composition
        return composition.of_measured

    def of_all_rows(self, names: Attributes, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the ends of intervals of counts, moved to the extremes of what is unknown of all rows."""
        composition, total = self.composition_of(names), self.total
        if composition is None:
            return low, high
        if not composition.confused.isdisjoint(names):
            return np.zeros_like(low), np.full_like(high, total)
        lowest = composition.least_share(np.minimum(low / total, 1.0))
        return total * lowest, total * composition.largest_share(np.minimum(high / total, 1.0))

    @property
    def tables(self) -> tuple[Marginal, ...]:
        """The one-ways, then the marginals."""
        return (*self.one_ways, *self.marginals)

    @property
    def with_certainties(self) -> list[tuple[Certainty, Marginal]]:
        """Each table with its certainty: first the one-ways, then the marginals."""
        return list(zip(self.certainties, self.tables, strict=True))

    @property
    def measured_marginals(self) -> list[tuple[Certainty, Marginal]]:
        """Each table of several attributes with its certainty."""
        return self.with_certainties[len(self.one_ways) :]
