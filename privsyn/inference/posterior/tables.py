"""Draws of all tables together: one-ways first, then pairs with these margins, then bigger tables.

The margins of a pair are known better from all tables together than from the pair. So a pair adds only what
its margins leave open. The noise in that part is independent of the noise in the pair's margins.
All noise is taken as normal, also where it is discrete Laplace: sums of many cells nearly are.

Drawn pairs contradict each other, because each has its own noise. Records that fit them all have other
trends, in house sales weaker ones. So records are made twice: the targets of the second time exceed the drawn
trends by what the first records fell short of them. This meets trends that some records can have; where no
records follow all pairs, a part of the shortfall stays.

Records also need places inside merged codes: shares of the original codes, and their dependence. A merged
code of a number joins many original ones. A synthetic table has the expected shares of these, and they do not
depend on the other columns. No count shows either. So each draw tilts the shares, and lets places inside
merged codes depend on each other as in a Gaussian copula, more strongly, or less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
from scipy.special import ndtr, ndtri

from privsyn.inference.consistency import covariance_of, information_of
from privsyn.inference.exact_counts import with_exact_counts
from privsyn.inference.fitted import Fitted
from privsyn.inference.higher_order import margins_inside
from privsyn.inference.ordered.tilt import Trend, ranks_of
from privsyn.inference.posterior.cells import draw_cells, places_in
from privsyn.marginals.counting import count
from privsyn.marginals.domain import Codes, Floats, Records
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import NO_GROUPS, Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.marginals.tolerances import TINY_VARIANCE

FARTHEST = 3.0  # standard deviations: a number beyond counts as this one, so that no tilt is steep
ENOUGH = 0.1  # standard deviations of the trend of independent records: a gap that does not matter


@dataclass(frozen=True, eq=False)
class Posterior:
    """The tables that the private one could have, given the noisy answers.

    Parameters
    ----------
    fitted : Fitted
    possible : StructuralZeros
    numbers : mapping of an attribute to an array of shape (ordered codes,), optional
        Mean number of the records of each code.
    """

    fitted: Fitted
    possible: StructuralZeros = NO_ZEROS
    numbers: Mapping[str, Floats] = field(default_factory=dict)

    def draw(self, rng: np.random.Generator) -> Fitted:
        """Return the tables of one draw. They agree, are not negative, and have the released total."""
        fitted, first = self.fitted, len(self.fitted.one_ways)
        measured = [certainty.measured for certainty in fitted.certainties]
        drawn = draw_margins(measured[:first], fitted.one_ways, self._factors, rng, self.numbers)
        margins = self.possible.settle(drawn)
        order = sorted(range(len(fitted.marginals)), key=lambda i: len(fitted.marginals[i].attributes))
        tables: dict[int, Marginal] = {}
        for i in order:
            table = fitted.marginals[i]
            smaller = [t for t in tables.values() if len(t.attributes) < len(table.attributes)]
            sides = margins_inside(table.attributes, tuple(smaller), margins)
            tables[i] = self._drawn(measured[first + i], table, sides, rng)
        drawn_tables = replace(
            fitted,
            merging=DrawnPlaces.draw(fitted.merging, rng),
            one_ways=margins,
            marginals=tuple(tables[i] for i in range(len(tables))),
            public_rows=None,  # the same rows in each draw would not differ as the noise does
        )
        return with_exact_counts(drawn_tables, self.possible)

    @cached_property
    def _factors(self) -> list[Floats]:
        return [noise_of(self.fitted, self.possible, name) for name in self.fitted.merging.merged.names]

    def _drawn(
        self,
        measured: Measurement,
        released: Marginal,
        sides: tuple[Marginal, ...],
        rng: np.random.Generator,
    ) -> Marginal:
        """Return one table drawn from its posterior, with the given margins."""
        drawn = draw_cells(released, _with_noise(measured, rng), sides, rng)
        return fit_margins(self.possible.fit(drawn, sides), sides) if self.possible.masks else drawn


def draw_linking(
    table: Marginal, measured: Measurement, one_ways: Sequence[Marginal], rng: np.random.Generator
) -> Marginal:
    """Return a table with attributes of other rows, drawn given the own columns.

    Parameters
    ----------
    table : Marginal
        Released.
    measured : Measurement
    one_ways : sequence of Marginal
        Drawn, of the own attributes. Attributes of other rows keep their released margins, because it is what
        depends on them that is drawn.
    rng : numpy.random.Generator
    """
    own_sides = {side.attributes[0]: side for side in one_ways}
    sides = tuple(
        own_sides[name] if name in own_sides else table.project((name,)) for name in table.attributes
    )
    return draw_cells(table, _with_noise(measured, rng), sides, rng)


def _with_noise(measured: Measurement, rng: np.random.Generator) -> Measurement:
    """Return a measurement with a draw of its noise added to the counts."""
    noise = rng.standard_normal(measured.variance.shape) * np.sqrt(measured.variance)
    counts = Marginal(measured.marginal.domain, measured.marginal.counts + noise)
    return Measurement(counts, measured.variance, measured.grouping)


def made_up(drawn: Fitted, records: Records, numbers: Mapping[str, Floats]) -> Fitted:
    """Return drawn tables whose pairs have trends beyond their own by what the records fell short.

    Parameters
    ----------
    drawn : Fitted
    records : Records
        Made from the drawn tables, in merged codes.
    numbers : mapping of an attribute to an array of shape (ordered codes,)
        Mean number of the records of each code.
    """
    one_ways = {side.attributes[0]: side for side in drawn.one_ways}
    functions = {name: _functions(side, numbers.get(name)) for name, side in one_ways.items()}
    marginals = []
    for table in drawn.marginals:
        if len(table.domain) == 2 and max(table.domain.ordered) > 1:
            a, b = (functions[name] for name in table.attributes)
            synthetic = count(records, table.attributes) * (table.total / len(records))
            wanted = a.T @ (2 * table.counts - synthetic) @ b
            enough = np.full(wanted.shape, ENOUGH * np.sqrt(table.total))
            sides = tuple(one_ways[name] for name in table.attributes)
            table = Trend((a, b), (a, b), NO_GROUPS, wanted, enough).impose(table, sides)
        marginals.append(table)
    return with_exact_counts(replace(drawn, marginals=tuple(marginals)))


def _functions(side: Marginal, numbers: Floats | None) -> Floats:
    """Return the ranks of an attribute and what its numbers add to them, or an indicator for each value."""
    ranks = ranks_of(side)
    if numbers is None or not side.domain.ordered[0] > 1:
        return ranks
    size = len(numbers)
    share = side.counts[:size] / max(float(side.counts[:size].sum()), 1.0)
    scores = numbers - share @ numbers
    scale = float(np.sqrt(share @ scores**2))
    if not scale > 0:
        return ranks
    scores = np.clip(scores / scale, -FARTHEST, FARTHEST)
    rank = ranks[:size, 0]
    scores = scores - share @ scores - (share @ (scores * rank)) * rank
    residual_scale = float(np.sqrt(share @ scores**2))
    return (
        np.column_stack([ranks, np.pad(scores / residual_scale, (0, len(ranks) - size))])
        if residual_scale > 0
        else ranks
    )


TILT = 0.5
"""Prior standard deviation of the mean place in a merged code, in standard deviations of the place.

Chosen on six runs of each real table of docs/inference.md."""

STRONGEST = 2.0
"""Largest strength of dependence inside merged codes: on average, it is that of a Gaussian copula, 1."""

SWEEPS = 4  # of Gibbs sampling: in the test's copula, places then have 94 % of its dependence
RIDGE = 0.02  # added to the variance of normal scores, because columns may determine each other
EDGE = 1e-12


@dataclass(frozen=True, eq=False)
class DrawnPlaces(Merging):
    """A merging in which places inside merged codes depend on each other.

    Parameters
    ----------
    original, merged, groups, shares
        See `Merging`.
    strength : float
        0 for independent places, 1 for the Gaussian copula of the records.
    """

    strength: float = 0.0

    @classmethod
    def draw(cls, merging: Merging, rng: np.random.Generator) -> DrawnPlaces:
        """Return drawn shares, and a drawn strength."""
        shares = [
            _tilted(group, merging.shares[axis], merging.original.ordered[axis], rng)
            for axis, group in enumerate(merging.groups)
        ]
        strength = STRONGEST * rng.random()
        return cls(merging.original, merging.merged, merging.groups, tuple(shares), strength)

    def restore(self, records: Records, rng: np.random.Generator) -> Records:
        """Return records in original codes; see `Merging.restore`."""
        inside = rng.random(records.codes.shape)
        joined = [
            axis
            for axis, group in enumerate(self.groups)
            if self.merged.ordered[axis] > 2 and len(group) > group.max() + 1
        ]
        if len(joined) > 1 and len(records):
            inside[:, joined] = _dependent(records.codes[:, joined], inside[:, joined], self.strength, rng)
        return self.placed(records, inside.T)


def _tilted(group: Codes, share: Floats, ordered: int, rng: np.random.Generator) -> Floats:
    """Return the shares of original codes with another mean place in each merged code."""
    tilt = TILT * rng.standard_normal(int(group.max()) + 1)
    weight = share * np.exp(tilt[group] * places_in(share, group, ordered))
    return np.asarray(weight / np.bincount(group, weight)[group])


def _dependent(codes: Codes, inside: Floats, strength: float, rng: np.random.Generator) -> Floats:
    """Return places from 0 to 1 inside the codes, uniform in each code.

    Normal scores are drawn given all other columns and the codes, by Gibbs sampling (Hoff, Annals of Applied
    Statistics 2007). Only their order inside each code is used.
    """
    rows, columns = codes.shape
    lows, highs, scores = (np.empty((rows, columns)) for _ in range(3))
    for j in range(columns):
        counts = np.bincount(codes[:, j])
        ends = np.concatenate([[0.0], np.cumsum(counts)]) / rows
        lows[:, j], highs[:, j] = ends[codes[:, j]], ends[codes[:, j] + 1]
        scores[:, j] = _normal(lows[:, j] + inside[:, j] * (highs[:, j] - lows[:, j]))
    lows, highs = _normal(lows), _normal(highs)
    for _ in range(SWEEPS):
        centred = scores - scores.mean(axis=0)
        centred /= np.maximum(centred.std(axis=0), EDGE)
        precision = np.linalg.inv(centred.T @ centred / rows + RIDGE * np.eye(columns))
        for j in range(columns):
            own_precision = precision[j, j]
            mean = strength * (scores[:, j] - scores @ precision[j] / own_precision)
            scale = 1 / np.sqrt(own_precision)
            low, high = ndtr((lows[:, j] - mean) / scale), ndtr((highs[:, j] - mean) / scale)
            drawn = mean + scale * _normal(low + (high - low) * rng.random(rows))
            scores[:, j] = np.clip(drawn, lows[:, j], highs[:, j])
    positions = np.empty((rows, columns))
    for j in range(columns):
        order = np.lexsort((inside[:, j], scores[:, j], codes[:, j]))
        counts = np.bincount(codes[:, j])
        first = (np.cumsum(counts) - counts)[codes[order, j]]
        positions[order, j] = (np.arange(rows) - first + rng.random(rows)) / counts[codes[order, j]]
    return positions


def _normal(shares: Floats) -> Floats:
    return np.asarray(ndtri(np.clip(shares, EDGE, 1 - EDGE)))


ITERATIONS = 50  # of the fixed-point iteration; the variances then agree to a few per cent

DEPARTS = 0.05
"""Prior standard deviation of a mean about the released one, in standard deviations of the numbers.

Chosen on six runs of each real table of docs/inference.md, with the widths in `cells` and below."""

STEEPEST = 2.0  # largest tilt: it moves the mean of a normal column by as many standard deviations
HALVINGS = 30  # of the interval of tilts: its ends then agree to 4e-9
NO_NUMBERS: Mapping[str, Floats] = MappingProxyType({})


def noise_factor(combined: Measurement, tables: Iterable[Measurement]) -> Floats:
    r"""Return a matrix F such that F z, with z standard normal, has the noise of a combined one-way table.

    Tables measured in groups of codes inform sums of cells only. The noise of cells in one group is then
    negatively correlated, with covariance :math:`C = (V^{-1} + I)^{-1}`: V is the diagonal of variances
    before these tables were used, and I their information. A release states the diagonal of C. V follows by
    iteration.

    Parameters
    ----------
    combined : Measurement
        Of one attribute, from all tables.
    tables : iterable of Measurement
        The tables that hold the attribute and contributed to `combined`.
    """
    name = combined.attributes
    joined = [(m.grouping.groups[0], m.variance) for m in (t.project(name) for t in tables) if m.grouping]
    if not (joined and combined.variance.any()):
        return np.diag(np.sqrt(combined.variance))
    stated = np.maximum(combined.variance, TINY_VARIANCE)
    information, alone = information_of(joined), stated
    for _ in range(ITERATIONS):
        covariance = covariance_of(alone, information)
        alone = alone * stated / np.maximum(np.diag(covariance), TINY_VARIANCE)
    values, vectors = np.linalg.eigh(covariance_of(alone, information))
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.where(combined.variance[:, np.newaxis] > 0, factor, 0.0)


def noise_of(fitted: Fitted, possible: StructuralZeros, name: str) -> Floats:
    """Return the `noise_factor` of one attribute of a release.

    Where persons have many rows, the errors in common stand beside the others. These are taken as
    independent: larger tables keep other rows of a person than columns do, so what they say of sums of codes
    does not make these more certain.
    """
    first, domain = len(fitted.one_ways), fitted.merging.merged
    certainty = fitted.one_way_certainty(name)
    if certainty.common.size:
        alone = certainty.measured.variance - (certainty.common**2).sum(axis=1)
        return np.hstack([np.diag(np.sqrt(np.maximum(alone, TINY_VARIANCE))), certainty.common])
    answers = [c.measured for c in fitted.certainties[first:] if name in c.attributes]
    # Tables with structural zeros did not contribute to the one-way tables.
    used = [m for m in answers if m.variance.any() and possible.mask(domain.project(m.attributes)).all()]
    used += fitted.totals.merge(fitted.merging).sums(domain.project((name,)))
    return noise_factor(certainty.measured, used)


def draw_margins(
    measured: Sequence[Measurement],
    released: Sequence[Marginal],
    factors: Sequence[Floats],
    rng: np.random.Generator,
    numbers: Mapping[str, Floats] = NO_NUMBERS,
) -> tuple[Marginal, ...]:
    """Return one-way tables drawn from their posterior, with the released totals.

    Attributes that have `numbers`, the mean number of each ordered code, get a mean from its posterior too.
    """
    drawn = []
    for m, table, factor in zip(measured, released, factors, strict=True):
        noise = factor @ rng.standard_normal(factor.shape[1])
        answers = Measurement(Marginal(table.domain, m.marginal.counts + noise), m.variance)
        cells = draw_cells(table, answers, (), rng)
        number = numbers.get(table.attributes[0])
        drawn.append(cells if number is None else _with_mean(cells, answers, table, number, factor, rng))
    return tuple(drawn)


def _with_mean(
    drawn: Marginal,
    answers: Measurement,
    released: Marginal,
    number: Floats,
    factor: Floats,
    rng: np.random.Generator,
) -> Marginal:
    """Return the table, tilted until its numbers have a mean drawn from its posterior.

    A few records far out decide the mean of a skewed number. Their cells are below the noise, so that they
    are drawn near the estimate. The mean itself is drawn about its measurement.
    """
    size = len(number)
    counts, expected, noisy = (t.counts[:size] for t in (drawn, released, answers.marginal))
    if not min(expected.sum(), noisy.sum(), counts.sum()) > 0:
        return drawn
    middle = float(expected @ number / expected.sum())
    spread = float(np.sqrt(expected @ (number - middle) ** 2 / expected.sum()))
    if not spread > 0:
        return drawn
    scores = (number - middle) / spread
    noise = float((((scores @ factor[:size]) / expected.sum()) ** 2).sum())
    share = DEPARTS**2 / (DEPARTS**2 + noise)
    scatter = float(np.sqrt(share * (1 - share) * noise)) * rng.standard_normal()
    wanted = share * float(scores @ noisy / noisy.sum()) + scatter
    low, high = -STEEPEST, STEEPEST
    for _ in range(HALVINGS):
        tilt = (low + high) / 2
        power = tilt * scores
        weight = counts * np.exp(np.minimum(power - power[counts > 0].max(), 0.0))
        low, high = (tilt, high) if weight @ scores < wanted * weight.sum() else (low, tilt)
    tilted = np.array(drawn.counts)
    tilted[:size] = weight * (counts.sum() / weight.sum())
    return Marginal(drawn.domain, tilted)
