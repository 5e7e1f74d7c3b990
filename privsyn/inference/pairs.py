"""Pairs of attributes: their expected counts before measurement, and their estimates afterwards.

Expected counts are those of independence. Once all pairs are measured, a latent class model is fitted to them
(`mixture`). The dispersion of a pair about its expected counts is estimated from its dependence score and its
residuals. If these carry little information, it is taken from the other pairs (`dispersion`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privsyn.inference.consistency import average_one_ways, estimate_total
from privsyn.inference.denoising import denoise_all
from privsyn.inference.ordered.concordance import Concordance, with_concordances
from privsyn.inference.ordered.tails import Tails
from privsyn.inference.prior.dispersion import (
    DISPERSIONS,
    departure_likelihoods,
    pooled_dispersions,
    residual_likelihoods,
)
from privsyn.inference.prior.mixture import latent_class_pairs, parameters
from privsyn.inference.prior.smoothing import Smoother, fitted_smoother, is_smooth
from privsyn.marginals.channel import NO_CHANNELS, Channels
from privsyn.marginals.domain import Attributes, Domain
from privsyn.marginals.ipf import CELLS_AT_ONCE, fit_all, fit_margins
from privsyn.marginals.marginal import Marginal, Measurement, alike, for_alike, unstacked
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros, product
from privsyn.marginals.types import Floats, keep

# From trials on the five benchmark tables, epsilon 0.2 to 5; the first is a rough mean and was not tuned.
MARGIN_NOISE = 0.5  # share of the one-ways' noise variance that remains after norm-sub
MOST_FOLLOWED = 0.7  # largest share of the noise that the latent classes are assumed to fit
TINY = 1e-9  # records squared: least variance of a cell


@dataclass(frozen=True, eq=False)
class Pairs:
    """Estimates from one-ways and pairs together.

    Parameters
    ----------
    total : float
        Estimated number of records.
    one_ways : tuple of Marginal, one per attribute
    tables : tuple of Marginal
        The measured pairs, denoised.
    left : tuple of arrays
        Posterior variance of the cells of each pair, in records squared.
    dispersions : array of shape (pairs,)
        Dispersion of each pair about its expected counts.
    smoother : Smoother
        Prior along the ordered attributes.
    """

    total: float
    one_ways: tuple[Marginal, ...]
    tables: tuple[Marginal, ...]
    left: tuple[Floats, ...]
    dispersions: Floats
    smoother: Smoother

    def __post_init__(self) -> None:
        keep(self, "left")
        if [table.domain.shape for table in self.tables] != [left.shape for left in self.left]:
            raise ValueError("what is left is not of the tables' shapes")


def variances_in(blocks: Merging, measured: Sequence[Measurement], pairs: Pairs) -> tuple[Marginal, ...]:
    """Return the posterior variance of each measured pair with an ordered attribute, in blocks of codes."""
    smooth = [i for i, m in enumerate(measured) if is_smooth(blocks.original.project(m.attributes))]
    return tuple(
        Marginal(
            blocks.merged.project(measured[i].attributes),
            pairs.smoother.left(
                measured[i], float(pairs.dispersions[i]), blocks.grouping(measured[i].attributes)
            ),
        )
        for i in smooth
    )


def independent_pairs(
    domain: Domain,
    one_ways: tuple[Marginal, ...],
    possible: StructuralZeros = NO_ZEROS,
    pairs: Sequence[Attributes] | None = None,
) -> tuple[Marginal, ...]:
    """Return for `pairs`, or all, the counts of independent attributes, fitted to the structural zeros."""
    margins = dict(zip(domain.names, one_ways, strict=True))
    shares = {name: one_way.counts / one_way.total for name, one_way in margins.items()}
    domains = [domain.project(pair) for pair in pairs or combinations(domain.names, 2)]
    found: dict[int, Marginal] = {}
    for places in alike([d.shape for d in domains], [d.cells for d in domains], CELLS_AT_ONCE):
        some = [domains[i] for i in places]
        first = np.array([margins[pair.names[0]].counts for pair in some])
        second = np.array([shares[pair.names[1]] for pair in some])
        found.update(zip(places, unstacked(some, _outer(first, second)), strict=True))
    tables = (found[i] for i in range(len(domains)))
    return tuple(possible.fit(t, tuple(margins[name] for name in t.attributes)) for t in tables)


def score_pairs(
    departures: Floats,
    sigma: float,
    expected: tuple[Marginal, ...],
    one_ways: tuple[Measurement, ...],
    smoother: Smoother,
    blocks: Merging,
    channels: Channels = NO_CHANNELS,
) -> list[Floats]:
    """Return log-likelihoods of each pair's dispersion, by its noisy departure from independence.

    Counts are those after randomisation. It leaves a share of the dispersion, and adds sampling variance.
    """
    measured = {m.attributes[0]: m for m in one_ways}
    variance = {
        name: np.einsum("ik,k,ik->i", s.vectors, s.variances, s.vectors)
        for name, group in zip(blocks.original.names, blocks.groups, strict=True)
        for s in (smoother.along(name, group),)
    }
    found = np.empty((len(expected), *DISPERSIONS.shape))

    def score(places: list[int]) -> None:
        some = [expected[place] for place in places]
        counts = np.array([pair.counts for pair in some])
        signal = np.array([channels.signal(pair.attributes) for pair in some]).reshape(-1, 1, 1)
        prior = counts
        if any(max(pair.domain.ordered) for pair in some):
            sides = (np.array([variance[p.attributes[axis]] for p in some]) for axis in (0, 1))
            ordered = np.array([max(pair.domain.ordered) for pair in some]).reshape(-1, 1, 1) > 0
            prior = np.where(ordered, _totals(counts) * _outer(*sides), counts)
        uncertainty = _uncertainty(some, counts, measured) + (1 - signal) * counts
        cells = len(some), -1
        found[places] = departure_likelihoods(
            departures[places], sigma, (signal * prior).reshape(cells), uncertainty.reshape(cells)
        )

    domains = [pair.domain for pair in expected]
    for_alike(score, [d.shape for d in domains], [d.cells for d in domains], CELLS_AT_ONCE)
    return list(found)


def estimate_pairs(
    domain: Domain,
    one_ways: tuple[Measurement, ...],
    measured: tuple[Measurement, ...],
    scores: list[Floats],
    rng: np.random.Generator,
    possible: StructuralZeros = NO_ZEROS,
    tails: Tails | None = None,
    channels: Channels = NO_CHANNELS,
    concordances: Sequence[Concordance] = (),
) -> Pairs:
    """Return estimates of the measured pairs.

    Pairs with an ordered attribute are shrunk towards independence or a copula (`smoothing`). Other pairs are
    shrunk towards independence, and then towards the latent classes fitted to all pairs.

    The second residuals understate the dispersion, because the classes have fitted part of the noise. That
    part is the number of their parameters over the pairs' degrees of freedom.

    Parameters
    ----------
    domain : Domain
    one_ways : tuple of Measurement, one per attribute
    measured : tuple of Measurement over two attributes
    scores : list of arrays of shape ``DISPERSIONS.shape``
        Log-likelihoods of the dispersion of each pair, before it was measured.
    rng : numpy.random.Generator
    possible : StructuralZeros
        They have been applied to `measured`.
    tails : Tails, optional
        Layout of the cells of ordered attributes.
    channels : Channels, optional
        Of the randomised attributes. All measurements are of the table after randomisation.
    concordances : sequence of Concordance, optional
    """
    total = estimate_total((*one_ways, *measured))
    settle = None if tails is None else tails.settle
    margins = possible.settle(
        average_one_ways(domain, (*one_ways, *measured), total, settle, channels.unbiased)
    )
    measured = tuple(map(channels.beside_margins, measured))
    one_way = dict(zip(domain.names, margins, strict=True))
    sides = [tuple(one_way[name] for name in m.attributes) for m in measured]
    domains = [domain.project(m.attributes) for m in measured]
    expected = [
        possible.fit(product(pair, side), side).counts for pair, side in zip(domains, sides, strict=True)
    ]
    smooth = [i for i, pair in enumerate(domains) if is_smooth(pair)]
    nominal = [i for i, pair in enumerate(domains) if not is_smooth(pair)]
    smoother = fitted_smoother(margins, [measured[i] for i in smooth], [expected[i] for i in smooth])

    dispersions = np.ones(len(measured))
    tables = list(map(Marginal, domains, expected))
    # Likelihoods by (a copula explains the pair, its cells depart independently).
    kinds: dict[tuple[bool, bool], dict[int, Floats]] = {}
    for i in smooth:
        found, fit = smoother.expect(measured[i], expected[i], sides[i])
        fits = [fit, smoother.likelihood_by_cells(measured[i], found)]
        by_cells = bool(fits[1].max() > fits[0].max())
        kind = kinds.setdefault((found is not expected[i], by_cells), {})
        kind[i] = fits[by_cells] + scores[i] * (found is expected[i])
        expected[i] = found
    for (_, by_cells), kind in kinds.items():
        dispersions[list(kind)] = pooled_dispersions(list(kind.values()), total)
        draw = smoother.denoise_by_cells if by_cells else smoother.denoise
        for i in kind:
            drawn = draw(measured[i], expected[i], dispersions[i], sides[i])
            tables[i] = fit_margins(possible.fit(drawn, sides[i]), sides[i]) if possible.masks else drawn

    def draw_nominal(known: list[Floats], inflated: float = 1.0) -> None:
        residuals = residual_likelihoods([measured[i] for i in nominal], [expected[i] for i in nominal])
        likelihoods = [score + residual for score, residual in zip(known, residuals, strict=True)]
        dispersions[nominal] = pooled_dispersions(likelihoods) * inflated
        priors, margins = [expected[i] for i in nominal], [sides[i] for i in nominal]
        found = denoise_all([measured[i] for i in nominal], priors, dispersions[nominal], margins)
        for i, table in zip(nominal, found, strict=True):
            tables[i] = table

    draw_nominal([scores[i] for i in nominal])
    if nominal:
        classes = latent_class_pairs(domain, margins, tuple(tables), rng)
        freedom = sum((a.domain.cells - 1) * (b.domain.cells - 1) for a, b in sides)
        followed = min(parameters(domain) / max(freedom, 1), MOST_FOLLOWED)
        open_tables = [possible.fit(Marginal(domains[i], classes[i]), sides[i]) for i in nominal]
        for i, table in zip(nominal, fit_all(open_tables, [sides[i] for i in nominal]), strict=True):
            expected[i] = table.counts
        draw_nominal([np.zeros(DISPERSIONS.shape)] * len(nominal), (1 - followed) ** -2)
    moved = with_concordances(tables, measured, concordances, margins)
    left = tuple(
        1 / (1 / np.maximum(dispersion * counts, TINY) + 1 / np.maximum(noise, TINY))
        for noise, counts, dispersion in zip(map(_noise, measured), expected, dispersions, strict=True)
    )
    return Pairs(total, margins, moved, left, dispersions, smoother)


def _noise(measured: Measurement) -> Floats:
    """Return the noise variance of each cell; for groups of codes, their mean."""
    return measured.variance.mean() if measured.grouping else measured.variance


def _uncertainty(alike: Sequence[Marginal], counts: Floats, one_way: dict[str, Measurement]) -> Floats:
    """Return the variance of pairs' expected counts A x B / n, by the noise in A and B."""
    a, b = (np.array([one_way[p.attributes[axis]].variance for p in alike]) for axis in (0, 1))
    totals = _totals(counts)[:, 0]
    return MARGIN_NOISE * (
        _outer(a, (counts.sum(axis=1) / totals) ** 2) + _outer((counts.sum(axis=2) / totals) ** 2, b)
    )


def _totals(counts: Floats) -> Floats:
    """Return the sum of each table, of shape (tables, 1, 1)."""
    return counts.reshape(len(counts), -1).sum(axis=1)[:, np.newaxis, np.newaxis]


def _outer(a: Floats, b: Floats) -> Floats:
    """Return the outer product of each row of `a` with that of `b`."""
    return a[:, :, np.newaxis] * b[:, np.newaxis]
