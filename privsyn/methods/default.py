"""The default: PrivSyn's stages, each in the form that errs least.

Pairs are scored against the released one-ways (a quarter of InDif's noise), selected and given their
budget in one convex step, and drawn towards what a latent-class model of all pairs expects. A second look
goes to bigger tables that the pairs do not explain, or to the pairs once more (`higher`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import sqrt

import numpy as np
import numpy.typing as npt

from privsyn.answers.allocation import allocate_by_error
from privsyn.answers.consistency import average_looks, average_one_ways, estimate_total
from privsyn.answers.denoising import denoise, fit_margins
from privsyn.answers.domain import Domain
from privsyn.answers.latent import latent_class_pairs, parameters
from privsyn.answers.learnt import Learnt
from privsyn.answers.marginal import Marginal, Measurement
from privsyn.answers.merging import Merging, merge_rare
from privsyn.answers.spread import departure_likelihood, pooled_spreads, residual_likelihood
from privsyn.answers.synthesis import synthesise
from privsyn.methods.higher import WEIGHT, Unexplained, denoise_bigger, unexplained
from privsyn.private.measure import PrivateTable
from privsyn.progress import Progress

Floats = npt.NDArray[np.float64]

# Shares of the whole budget. The one-ways get `one_way_share`, this first look at them included; the pairs
# get what is left. The constants below are from trials on the five tables of the bench, epsilon 0.2 to 5.
FIRST_LOOK = 0.05
DEPARTURES = 0.02
SCORES = 0.03  # of sets of three to five attributes
SECOND_LOOK = 0.22  # at pairs and bigger tables, and the scores too where there are no sets to score

MANY_VALUES = 500  # an attribute of more has its rare values pooled: pairs of such are too large to count
MOST_RECORDS = 100_000  # made to see what the pairs leave unexplained
SAMPLING_SPREAD = 1.0  # an independent table already scatters so much: no pair is thought more certain
MARGIN_NOISE = 0.5  # of the one-ways' noise variance is left after norm-sub; a rough mean, not tuned
MOST_FOLLOWED = 0.7  # of the noise that the latent classes are thought to follow, at most
TINY = 1e-9  # records squared: the variance of a cell that is nearly certain


def learn(private: PrivateTable, rho: float, rng: np.random.Generator, report: Progress) -> Learnt:
    """Ask for one-ways, for how far each pair departs from independence, and for the pairs that pay."""
    report("counting", 0, 4)
    one_ways, share = _one_ways(private, rho)
    total = estimate_total(one_ways)
    merging = merge_rare(one_ways, total, spared=MANY_VALUES)
    private = private.merge(merging)
    one_ways = tuple(merging.merge_counts(one_way) for one_way in one_ways)
    domain = private.domain
    margins = average_one_ways(domain, one_ways, total)
    if len(domain) < 2:
        report("counting", 4, 4)
        return Learnt(merging, margins, (), total)
    report("counting", 1, 4)

    expected = independent_pairs(domain, margins)
    departures, sigma = private.departures(expected, DEPARTURES * rho)
    scores = [
        departure_likelihood(departure, sigma, pair.counts, _uncertainty(pair, one_ways))
        for departure, pair in zip(departures, expected, strict=True)
    ]
    report("counting", 2, 4)

    spreads = np.maximum(pooled_spreads(scores), SAMPLING_SPREAD)
    variances = [spread * pair.counts for spread, pair in zip(spreads, expected, strict=True)]
    rhos = allocate_by_error(variances, (1 - share - DEPARTURES - SCORES - SECOND_LOOK) * rho)
    chosen = np.flatnonzero(rhos)
    measured = private.marginals(tuple(expected[i].attributes for i in chosen), rhos[chosen])
    scores = [scores[i] for i in chosen]
    report("counting", 3, 4)

    first, left = _learn_pairs(merging, one_ways, measured, scores, rng)
    enough = min(round(first.total), MOST_RECORDS)
    records = synthesise(domain, first.one_ways, first.marginals, enough, rng)
    sets = unexplained(private, records, first, SCORES * rho)
    again, bigger = _second_look(
        private, measured, left, sets, (SECOND_LOOK if sets else SECOND_LOOK + SCORES) * rho
    )
    second, _ = _learn_pairs(merging, one_ways, again, scores, rng)
    higher = denoise_bigger(bigger, second.marginals, second.one_ways)
    report("counting", 4, 4)
    return replace(second, marginals=(*second.marginals, *higher))


def _second_look(
    private: PrivateTable,
    pairs: tuple[Measurement, ...],
    left: list[Floats],
    sets: tuple[Unexplained, ...],
    rho: float,
) -> tuple[tuple[Measurement, ...], tuple[tuple[Unexplained, Measurement], ...]]:
    """What is left of the budget, where it takes off most error: on pairs once more, or on bigger tables.

    Parameters
    ----------
    pairs : what was measured of the pairs
    left : for each the variance that is left in its cells
    sets : the bigger tables that might be measured

    Returns
    -------
    The pairs, with what was seen of them the second time; the bigger tables that were measured.
    """
    weights = np.repeat([1.0, WEIGHT], [len(pairs), len(sets)])
    rhos = allocate_by_error([*left, *(s.variance for s in sets)], rho, weights=weights)
    attributes = [m.attributes for m in pairs] + [s.expected.attributes for s in sets]
    chosen = np.flatnonzero(rhos).tolist()
    measured = dict(
        zip(chosen, private.marginals(tuple(attributes[i] for i in chosen), rhos[chosen]), strict=True)
    )
    again = tuple(average_looks((m,), (measured[i],))[0] if i in measured else m for i, m in enumerate(pairs))
    bigger = ((s, measured[i]) for i, s in enumerate(sets, start=len(pairs)) if i in measured)
    return again, tuple(bigger)


def _learn_pairs(
    merging: Merging,
    one_ways: tuple[Measurement, ...],
    measured: tuple[Measurement, ...],
    scores: list[Floats],
    rng: np.random.Generator,
) -> tuple[Learnt, list[Floats]]:
    """What one-ways and pairs tell together, and the variance left in the cells of each pair."""
    total = estimate_total((*one_ways, *measured))
    margins = average_one_ways(merging.merged, (*one_ways, *measured), total)
    pairs, left = _denoise_twice(merging.merged, margins, measured, scores, rng)
    return Learnt(merging, margins, pairs, total), left


def _one_ways(private: PrivateTable, rho: float) -> tuple[tuple[Measurement, ...], float]:
    """The one-ways in two looks, and the share of `rho` that both took together.

    The first look tells how large the table is; the second is as long as the noise then demands.
    """
    first = private.one_ways(FIRST_LOOK * rho)
    share = 1.0
    if len(private.domain) > 1:
        sigma = sqrt(len(private.domain) / (2 * rho))  # of the one-ways, had they the whole budget
        mean_count = estimate_total(first) / np.mean(private.domain.sizes)
        share = one_way_share(float(sigma / mean_count))
    return average_looks(first, private.one_ways((share - FIRST_LOOK) * rho)), share


def one_way_share(noise: float) -> float:
    """Share of the budget for the one-ways.

    The noisier the counts, the more of what can be known of the table at all lies in its one-ways.
    Chosen among powers for the least mean error of pairs over five tables, epsilon 0.2 to 5.

    Parameters
    ----------
    noise : float
        Standard deviation of a one-way count, had they the whole budget, in parts of the mean count.

    Examples
    --------
    >>> [round(one_way_share(noise), 2) for noise in (0.001, 0.01, 0.05, 0.5)]
    [0.1, 0.19, 0.36, 0.5]
    """
    return float(np.clip(0.1 * (noise / 0.002) ** 0.4, 0.1, 0.5))


def independent_pairs(domain: Domain, one_ways: tuple[Marginal, ...]) -> tuple[Marginal, ...]:
    """For every pair of attributes the counts they would have if they were independent."""
    return tuple(
        Marginal(domain.project(a.attributes + b.attributes), np.multiply.outer(a.counts, b.counts) / a.total)
        for a, b in combinations(one_ways, 2)
    )


def _uncertainty(pair: Marginal, one_ways: tuple[Measurement, ...]) -> Floats:
    """Variance of a pair's expected counts A x B / n, by the noise in A and B."""
    a, b = (m for name in pair.attributes for m in one_ways if m.attributes == (name,))
    shares_a, shares_b = pair.counts.sum(axis=1) / pair.total, pair.counts.sum(axis=0) / pair.total
    noise = np.multiply.outer(a.variance, shares_b**2) + np.multiply.outer(shares_a**2, b.variance)
    return MARGIN_NOISE * noise


def _denoise_twice(
    domain: Domain,
    margins: tuple[Marginal, ...],
    measured: tuple[Measurement, ...],
    scores: list[Floats],
    rng: np.random.Generator,
) -> tuple[tuple[Marginal, ...], list[Floats]]:
    """The pairs drawn towards independence, and then towards the classes fitted to the result.

    The second time the residuals understate the spread, for the classes have followed some of the noise:
    as much as they have parameters, beside the pairs' degrees of freedom.
    """
    one_way = dict(zip(domain.names, margins, strict=True))
    sides = [tuple(one_way[name] for name in m.attributes) for m in measured]
    independent = [np.multiply.outer(a.counts, b.counts) / a.total for a, b in sides]
    spreads = pooled_spreads(
        [s + r for s, r in zip(scores, _residual_likelihoods(measured, independent), strict=True)]
    )
    pairs = tuple(map(denoise, measured, independent, spreads, sides))

    classes = [
        fit_margins(Marginal(pair.domain, counts), side).counts
        for pair, counts, side in zip(
            pairs, latent_class_pairs(domain, margins, pairs, rng), sides, strict=True
        )
    ]
    freedom = sum((a.domain.cells - 1) * (b.domain.cells - 1) for a, b in sides)
    followed = min(parameters(domain) / max(freedom, 1), MOST_FOLLOWED)
    spreads = pooled_spreads(_residual_likelihoods(measured, classes)) / (1 - followed) ** 2
    left = [
        1 / (1 / np.maximum(spread * counts, TINY) + 1 / m.variance)
        for m, counts, spread in zip(measured, classes, spreads, strict=True)
    ]
    return tuple(map(denoise, measured, classes, spreads, sides)), left


def _residual_likelihoods(measured: tuple[Measurement, ...], expected: list[Floats]) -> list[Floats]:
    return [
        residual_likelihood(m.marginal.counts - counts, counts, m.variance)
        for m, counts in zip(measured, expected, strict=True)
    ]
