r"""Pairs of attributes: their expected counts before measurement, and their estimates afterwards.

Expected counts are those of independence. Once all pairs are measured, a latent class model is fitted to
them. The dispersion of a pair about its expected counts is estimated from its dependence score and its
deviations. If these carry little information, it is taken from the other pairs (`dispersion`).

The latent classes are a better expectation than independence: a mixture of a few products.

.. math:: P(a, b) = \sum_k \pi_k \theta_{ka} \theta_{kb}

With a small budget, noise dominates each single pair. All pairs share the classes, which have too few
parameters to fit the noise of each (latent class analysis: Lazarsfeld and Henry, 1968).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import prod
from os import cpu_count
from typing import NamedTuple

import numpy as np

from privsyn.inference import _kernels
from privsyn.inference.hierarchy import PartialPooling, pool, with_spread
from privsyn.inference.measured_columns import Estimate, MeasuredColumns
from privsyn.inference.ordered.concordance import Concordance, with_concordances
from privsyn.inference.prior.dispersion import (
    DISPERSIONS,
    SETTLING_ITERATIONS,
    departure_likelihoods,
    pooled_dispersions,
)
from privsyn.inference.prior.smoothing import CELLS, Prior, Waves, fitted_waves, has_majority, is_smooth
from privsyn.marginals.domain import Attributes, Domain, Floats, Ints
from privsyn.marginals.ipf import CELLS_AT_ONCE, fit_all, fit_margins, sums_of
from privsyn.marginals.marginal import Marginal, Measurement, alike, for_alike, unstacked
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros, product
from privsyn.marginals.tolerances import TINY_COUNT, TINY_SHARE
from privsyn.threads import ahead

# From trials on the five benchmark tables, epsilon 0.2 to 5; the first is a rough mean and was not tuned.
MARGIN_NOISE = 0.5  # share of the one-ways' noise variance that remains after norm-sub
MOST_FOLLOWED = 0.7  # largest share of the noise that the latent classes are assumed to fit


@dataclass(frozen=True, eq=False)
class Pairs:
    """Estimates of one-ways and pairs, and the priors of the pairs.

    Parameters
    ----------
    total : float
        Estimated number of records.
    one_ways : tuple of Marginal, one per attribute
    estimates : tuple of Estimate
        Of the measured pairs.
    waves : Waves
        Prior along the ordered attributes.
    concordances : sequence of Concordance, optional
    exact : tuple of Estimate, optional
        The pairs whose exact counts are public.
    total_variance : float, optional
        Variance of the number of records by noise.
    """

    total: float
    one_ways: tuple[Marginal, ...]
    estimates: tuple[Estimate, ...]
    waves: Waves
    concordances: Sequence[Concordance] = ()
    exact: tuple[Estimate, ...] = ()
    total_variance: float = 0.0

    @property
    def tables(self) -> tuple[Marginal, ...]:
        """The counts of all pairs: the exact ones, then the estimated ones."""
        return tuple(estimate.table for estimate in (*self.exact, *self.estimates))


def variances_in(blocks: Merging, pairs: Pairs) -> tuple[Marginal, ...]:
    """Return the posterior variance of each measured pair with an ordered attribute, in blocks of codes."""
    return tuple(
        Marginal(
            blocks.merged.project(e.attributes),
            pairs.waves.posterior_variance(e, blocks.grouping(e.attributes)),
        )
        for e in pairs.estimates
        if is_smooth(e.table.domain)
    )


def independent_pairs(
    domain: Domain,
    one_ways: tuple[Marginal, ...],
    possible: StructuralZeros = NO_ZEROS,
    pairs: Sequence[Attributes] | None = None,
) -> tuple[Marginal, ...]:
    """Return for `pairs`, or all, the counts of independent attributes, fitted to the structural zeros."""
    pairs = list(combinations(domain.names, 2)) if pairs is None else pairs
    margins = dict(zip(domain.names, one_ways, strict=True))
    shares = {name: one_way.counts / one_way.total for name, one_way in margins.items()}
    domains = [domain.project(pair) for pair in pairs]
    by_index: dict[int, Marginal] = {}
    for indices in alike([d.shape for d in domains], [d.cells for d in domains], CELLS_AT_ONCE):
        some = [domains[i] for i in indices]
        first = np.array([margins[pair.names[0]].counts for pair in some])
        second = np.array([shares[pair.names[1]] for pair in some])
        by_index.update(zip(indices, unstacked(some, _outer(first, second)), strict=True))
    tables = (by_index[i] for i in range(len(domains)))
    return tuple(possible.fit(t, tuple(margins[name] for name in t.attributes)) for t in tables)


def score_pairs(
    measured_columns: MeasuredColumns,
    departures: Floats,
    sigma: float,
    expected: tuple[Marginal, ...],
    waves: Waves,
) -> list[Floats]:
    """Return log-likelihoods of each pair's dispersion, by its noisy departure from independence.

    The counts are counts of randomised cells. Randomisation leaves a share of the dispersion, and adds
    sampling variance.
    """
    blocks, channels = measured_columns.blocks, measured_columns.channels
    measured = {m.attributes[0]: blocks.merge_counts(m) for m in measured_columns.one_ways}
    variance = {
        name: np.einsum("ik,k,ik->i", s.vectors, s.variances, s.vectors)
        for name, group in blocks.group_of.items()
        for s in (waves.along(name, group),)
    }
    likelihoods = np.empty((len(expected), *DISPERSIONS.shape))

    def score(indices: list[int]) -> None:
        some = [expected[index] for index in indices]
        counts = np.array([pair.counts for pair in some])
        signal = np.array([channels.signal(pair.attributes) for pair in some]).reshape(-1, 1, 1)
        prior = counts
        if any(max(pair.domain.ordered) for pair in some):
            sides = (np.array([variance[p.attributes[axis]] for p in some]) for axis in (0, 1))
            ordered = np.array([max(pair.domain.ordered) for pair in some]).reshape(-1, 1, 1) > 0
            prior = np.where(ordered, sums_of(counts).reshape(-1, 1, 1) * _outer(*sides), counts)
        uncertainty = _uncertainty(some, counts, measured) + (1 - signal) * counts
        cells = len(some), -1
        likelihoods[indices] = departure_likelihoods(
            departures[indices], sigma, (signal * prior).reshape(cells), uncertainty.reshape(cells)
        )

    domains = [pair.domain for pair in expected]
    for_alike(score, [d.shape for d in domains], [d.cells for d in domains], CELLS_AT_ONCE)
    likelihoods.setflags(write=False)  # so that no estimate copies its row
    return list(likelihoods)


def estimate_pairs(
    measured_columns: MeasuredColumns,
    measured: tuple[Estimate, ...],
    rng: np.random.Generator,
    concordances: Sequence[Concordance] = (),
) -> Pairs:
    """Return estimates of the measured pairs.

    Pairs with an ordered attribute are shrunk towards independence or a copula (`smoothing`). Other pairs are
    shrunk towards independence, and then towards the latent classes fitted to all pairs. In place of
    independence they have the exact counts of groups of their codes, if these are public.

    Parameters
    ----------
    measured_columns : MeasuredColumns
        Its structural zeros have been applied to all measurements.
    measured : tuple of Estimate, one per pair
        With their measurements, and with what was known before these.
    rng : numpy.random.Generator
    concordances : sequence of Concordance, optional
    """
    answers = measured_columns.about_one_ways(pair.measured for pair in measured)
    total, margins = measured_columns.margins(answers)
    one_way = {margin.attributes[0]: margin for margin in margins}
    tables = []
    for pair in measured:
        sides = tuple(one_way[name] for name in pair.attributes)
        table = measured_columns.zeros.fit(
            product(measured_columns.domain.project(pair.attributes), sides), sides
        )
        if not is_smooth(table.domain):
            table = measured_columns.expected(table, sides)
        seen = measured_columns.channels.beside_margins(pair.measured)
        tables.append(replace(pair, table=table, margins=sides, measured=seen))
    tables, pooling = pool(measured_columns, tables, margins)
    waves = fitted_waves(margins, [pair for pair in tables if is_smooth(pair.table.domain)])
    by_attributes = {pair.attributes: pair for pair in tables}
    by_attributes |= {pair.attributes: pair for pair in _along_waves(measured_columns, tables, waves, total)}
    exact = tuple(table for table in measured_columns.exact_tables if len(table.attributes) == 2)
    by_attributes |= {
        pair.attributes: pair
        for pair in _by_classes(measured_columns, by_attributes, exact, margins, pooling, rng)
    }
    moved = with_concordances(list(by_attributes.values()), concordances)
    estimates = (
        new
        if new.measured is old.measured and new.evidence is old.evidence
        else replace(new, measured=old.measured, evidence=old.evidence)
        for new, old in zip(moved, measured, strict=True)
    )
    variance = measured_columns.variance_of_total(answers)
    return Pairs(total, margins, tuple(estimates), waves, concordances, exact, variance)


def _along_waves(
    measured_columns: MeasuredColumns, tables: list[Estimate], waves: Waves, total: float
) -> Iterator[Estimate]:
    """Yield pairs with an order, shrunk by the prior that explains them better.

    Dispersions are pooled over the pairs with one prior and one kind of mean: independence or a copula.
    """
    apart = replace(waves, apart=True)
    kinds: dict[tuple[bool, Prior], list[tuple[Estimate, Floats]]] = {}
    for pair in tables:
        if not is_smooth(pair.table.domain):
            continue
        table, waves_evidence = waves.expect(pair)
        expected = replace(pair, table=table)
        alternatives: tuple[Prior, ...] = (CELLS, apart) if any(map(has_majority, pair.margins)) else (CELLS,)
        prior: Prior = waves
        evidence = waves_evidence
        for alternative in alternatives:
            (likelihoods,) = alternative.evidence([expected])
            if likelihoods.max() > evidence.max():
                prior, evidence = alternative, likelihoods
        independent = table is pair.table  # what was known before is about departures from independence
        evidence = evidence + pair.evidence if independent else evidence
        kinds.setdefault((independent, prior), []).append((expected, evidence))
    for (_, prior), kind in kinds.items():
        dispersions = pooled_dispersions([evidence for _, evidence in kind], total)
        for index, (pair, _) in enumerate(kind):  # one by one: in threads, so few would wait for each other
            (new,) = _shrunk(prior, [pair], dispersions[index : index + 1])
            if measured_columns.zeros.masks:
                table = measured_columns.zeros.fit(new.table, new.margins)
                new = replace(new, table=fit_margins(table, new.margins))
            yield new


def _by_classes(
    measured_columns: MeasuredColumns,
    tables: Mapping[Attributes, Estimate],
    exact: tuple[Estimate, ...],
    margins: tuple[Marginal, ...],
    pooling: PartialPooling,
    rng: np.random.Generator,
) -> list[Estimate]:
    """Return the nominal pairs, shrunk towards independence, then towards latent classes fitted to all pairs.

    The classes are fitted to the `exact` pairs too.

    The second deviations understate the dispersion, because the classes have fitted part of the noise. That
    part is the number of their parameters over the pairs' degrees of freedom.

    The first dispersions are pooled until they settle. Otherwise many noisy pairs are shrunk too far, and the
    classes with them. The second ones are not, because the classes follow part of the noise: settled, they
    made the pairs of NLTCS worse by 6 % at epsilon 0.1, and those of chains by 5 %.
    """
    nominal = [pair for pair in tables.values() if not is_smooth(pair.table.domain)]
    if not nominal:
        return []
    evidence = list(map(np.add, (pair.evidence for pair in nominal), CELLS.evidence(nominal)))
    dispersions = pooled_dispersions(evidence, iterations=SETTLING_ITERATIONS)
    means = {mean.attributes: mean for mean in CELLS.mean(nominal, dispersions)}
    seen = tuple(means.get(pair.attributes, pair.table) for pair in (*tables.values(), *exact))
    names = [table.attributes for table in seen]
    classes = dict(zip(names, latent_class_pairs(measured_columns.domain, margins, seen, rng), strict=True))
    freedom = sum(prod(size - 1 for size in table.domain.shape) for table in seen)
    followed = min(parameters(measured_columns.domain) / max(freedom, 1), MOST_FOLLOWED)
    expected = [
        measured_columns.zeros.fit(replace(pair.table, counts=classes[pair.attributes]), pair.margins)
        for pair in nominal
    ]
    fitted = [
        pooling.fit(measured_columns.expected(table, pair.margins), pair.margins)
        for table, pair in zip(fit_all(expected, [pair.margins for pair in nominal]), nominal, strict=True)
    ]
    nominal = [replace(pair, table=table) for pair, table in zip(nominal, fitted, strict=True)]
    shrunk = _shrunk(CELLS, nominal, pooled_dispersions(CELLS.evidence(nominal)) * (1 - followed) ** -2)
    return [with_spread(pair, pooling, measured_columns.zeros) for pair in shrunk]


def _shrunk(prior: Prior, tables: list[Estimate], dispersions: Floats) -> list[Estimate]:
    """Return tables with their posterior mean and, as if codes departed independently, its variance."""
    shrunk = []
    for t, d, mean in zip(tables, dispersions.tolist(), prior.mean(tables, dispersions), strict=True):
        noise = t.measured.variance.mean() if t.measured.grouping else t.measured.variance
        variance = 1 / (1 / np.maximum(d * t.table.counts, TINY_COUNT) + 1 / np.maximum(noise, TINY_COUNT))
        variance.setflags(write=False)  # so that the estimate needs no copy
        shrunk.append(replace(t, table=mean, dispersion=d, posterior_variance=variance))
    return shrunk


def _uncertainty(alike: Sequence[Marginal], counts: Floats, one_way: dict[str, Measurement]) -> Floats:
    """Return the variance of pairs' expected counts A x B / n, by the noise in A and B."""
    a, b = (np.array([one_way[p.attributes[axis]].variance for p in alike]) for axis in (0, 1))
    totals = sums_of(counts).reshape(-1, 1)
    rows, columns = counts.sum(axis=2) / totals, counts.sum(axis=1) / totals
    return MARGIN_NOISE * (_outer(a, columns**2) + _outer(rows**2, b))


def _outer(a: Floats, b: Floats) -> Floats:
    """Return the outer products of the rows of `a` with the same rows of `b`."""
    return a[:, :, np.newaxis] * b[:, np.newaxis]


CLASSES = 20
CLASS_ITERATIONS = 75  # of expectation-maximisation; stopping early helps against fitting noise
START_SCATTER = 0.5  # standard deviation of ln(weight) among classes at the start
MIXTURES = 4  # mixtures whose mean is taken: what each of them fits of the noise depends on its start
KEPT_OPEN = 1e-9  # least share of a value in a class, over its overall share: no value is ruled out


def latent_class_pairs(
    domain: Domain, one_ways: tuple[Marginal, ...], pairs: tuple[Marginal, ...], rng: np.random.Generator
) -> tuple[Floats, ...]:
    """Return the expected counts of each pair, by mixtures of `CLASSES` products fitted to all `pairs`.

    The counts are the mean over `MIXTURES` mixtures, each from a random start of its own.

    Parameters
    ----------
    domain : Domain
    one_ways : tuple of Marginal, one per attribute, in the domain's order
    pairs : tuple of Marginal over two attributes
        Non-negative counts.
    rng : numpy.random.Generator
        Draws the starting classes, of all mixtures before the first is fitted: threads change no result.

    Returns
    -------
    tuple of arrays, one per pair and of its shape, in records.
    """
    if not pairs:
        return ()
    starts = np.cumsum([0, *domain.sizes])
    edges = np.array([[starts[axis] for axis in domain.axes(pair.attributes)] for pair in pairs], np.int64)
    shares = np.concatenate([one_way.counts / one_way.total for one_way in one_ways])[:, np.newaxis]
    shapes, totals = np.array([pair.domain.shape for pair in pairs]), np.empty(len(pairs))
    groups = list(alike([pair.domain.shape for pair in pairs], shapes.prod(axis=1).tolist(), CELLS_AT_ONCE))
    for indices in groups:
        totals[indices] = sums_of(np.array([pairs[index].counts for index in indices]))
    observed = np.concatenate([pair.counts.ravel() for pair in pairs])
    observed /= np.repeat(totals, shapes.prod(axis=1))
    factors = [np.exp(rng.normal(0.0, START_SCATTER, (len(shares), CLASSES))) for _ in range(MIXTURES)]
    fit = partial(_mixture, _Cells(observed, edges, shapes), shares, starts)
    fitted = ahead(fit, factors, min(cpu_count() or 1, MIXTURES))
    classes, values = (np.concatenate(parts, axis=-1) for parts in zip(*fitted, strict=True))
    by_index: dict[int, Floats] = {}
    for indices in groups:
        first, second = (
            values[edges[indices, axis, np.newaxis] + np.arange(shapes[indices[0], axis])] for axis in (0, 1)
        )
        weights = totals[indices, np.newaxis, np.newaxis] * (first * (classes / MIXTURES))
        by_index.update(zip(indices, weights @ second.transpose(0, 2, 1), strict=True))
    return tuple(by_index[index] for index in range(len(pairs)))


class _Cells(NamedTuple):
    """The cells of all pairs, as `add_class_evidence` takes them."""

    observed: Floats
    firsts: Ints
    shapes: Ints


def _mixture(cells: _Cells, shares: Floats, starts: Ints, factors: Floats) -> tuple[Floats, Floats]:
    """Return the shares of classes, and of values in each class, that EM fits to `cells`.

    It begins with `shares` of values times `factors`, of shape (values of all attributes, classes).
    """
    values = _per_attribute((shares + TINY_SHARE) * factors, starts)
    classes = np.full(CLASSES, 1 / CLASSES)
    for _ in range(CLASS_ITERATIONS):
        evidence = np.zeros_like(values)
        _kernels.add_class_evidence(values, classes, *cells, evidence)
        classes = evidence.sum(axis=0) / evidence.sum()
        values = _per_attribute(evidence + KEPT_OPEN * shares + TINY_SHARE, starts)
    return classes, values


def parameters(domain: Domain) -> int:
    """Return the number of free parameters of the mixture."""
    return CLASSES * (sum(size - 1 for size in domain.sizes) + 1) - 1


def _per_attribute(values: Floats, starts: Ints) -> Floats:
    """Return weights of shape (values of all attributes, classes), normalised within each attribute."""
    sums = np.add.reduceat(values, starts[:-1], axis=0)
    return values / np.repeat(sums, np.diff(starts), axis=0)
