"""The default: PrivSyn's stages, each in the variant with the least error.

Pairs are scored against the released one-ways, with a quarter of InDif's noise, or less if they have the
target. One convex step selects them and allocates their budget. They are then shrunk towards a latent class
model of all pairs. A second look measures bigger tables that the pairs do not explain, or pairs again.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from privsyn.inference.consistency import combine_measurements
from privsyn.inference.fitted import Fitted
from privsyn.inference.higher_order import GROUPS, Unexplained, candidates, score_bigger
from privsyn.inference.ordered.concordance import with_likelihoods
from privsyn.inference.ordered.resolution import Resolutions
from privsyn.inference.ordered.tails import Tails
from privsyn.inference.pairs import Pairs, estimate_pairs, independent_pairs, score_pairs, variances_in
from privsyn.inference.prior.dispersion import DISPERSIONS, pooled_dispersions
from privsyn.inference.prior.smoothing import Smoother, is_smooth
from privsyn.inference.selection import STEPS, allocate, near_pairs, slopes_along, slopes_of
from privsyn.marginals.channel import Channels
from privsyn.marginals.domain import Attributes, Domain
from privsyn.marginals.grouping import NO_GROUPS
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging, joined
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.marginals.types import Floats, Mask
from privsyn.methods.columns import measure_columns
from privsyn.methods.concordance import measure_concordances
from privsyn.methods.estimate import fit_one_ways, fit_tables, predicted_by_pairs, settled_one_ways
from privsyn.methods.facts import PublicFacts
from privsyn.private.measure import Asked, PrivateTable
from privsyn.progress import Progress

MOST_PAIRS = 50_000  # measured pairs: those of 300 attributes. With more, synthesis is not feasible
MOST_CANDIDATES = 500_000  # scored pairs: those of 1,000 attributes. Each takes 1 KB, and adds noise to all
SAMPLING_DISPERSION = 1.0  # of an independent table by sampling alone: least dispersion of a pair
BIGGER = 0.2  # weight of an error in a bigger table, relative to one in a pair
IN_GROUPS = 0.8  # the same for a bigger table in groups of numbers: no pair shows what it shows
TARGET = 4.0  # weight of an error in a table with the target, relative to one without
LIKELY_TARGET = 2.0  # the same without target and numbers, for a column of fewest values: a likely target
SMOOTH = 2.0  # weight of an error in a table for each ordered attribute: its few components matter most
SMALL_FIRST = 0.25  # with a target: errors weigh cells^-SMALL_FIRST, for models learn from small tables


def learn(
    private: PrivateTable,
    rho: float,
    rng: np.random.Generator,
    report: Progress,
    facts: PublicFacts,
) -> Fitted:
    """Measure one-ways, the departure of each pair from independence, and the tables worth measuring.

    Parameters
    ----------
    private : PrivateTable
    rho : float
        Budget, in zCDP, or an epsilon with Laplace noise; all of it is spent.
    rng : numpy.random.Generator
        For computations on answers; it draws no noise.
    report : callable
    facts : PublicFacts
    """
    report("counting", 0, 4)
    private, merging, one_ways, split = measure_columns(private, rho, facts)
    channels = Channels.for_domain(facts.kept, merging.original).merge(merging)
    sets = tuple(s for s in candidates(private.domain, facts.target) if not channels.random(s))
    if private.sums_only:
        sets, split = (), split.without("sets").without("departures")
    elif not sets:
        split = split.without("sets")
    possible = facts.zeros_after(merging)
    tails = Tails(merging, facts.axes)
    if not split.pairs:
        report("counting", 4, 4)
        return fit_one_ways(merging, one_ways, possible, tails, channels)
    report("counting", 1, 4)

    margins = settled_one_ways(merging, one_ways, possible, tails, channels)
    candidate_pairs = near_pairs(private.domain.names, MOST_CANDIDATES, facts.target)
    expected = independent_pairs(private.domain, margins, possible, candidate_pairs)
    smoother = Smoother(margins)
    blocks = joined(private.domain, margins, GROUPS)
    scores = _score(private, one_ways, expected, blocks, smoother, split.departures, channels, facts.target)
    concordances = measure_concordances(
        private, margins, candidate_pairs, split.concordances, possible, channels
    )
    split = split if concordances else split.without("concordances")
    scores = with_likelihoods(scores, concordances, expected, smoother)
    report("counting", 2, 4)

    resolutions = Resolutions(margins, smoother, private.rho_of)
    measured, scores = _measure_pairs(private, expected, scores, split.pairs, facts.target, resolutions)
    measured = tuple(map(possible.clean, measured))
    pairs = estimate_pairs(
        private.domain, one_ways, measured, scores, rng, possible, tails, channels, concordances
    )
    report("counting", 3, 4)

    unexplained = _unexplained(private, merging, sets, measured, pairs, split.sets, rng, possible, blocks)
    measured, bigger = _measure_again(private, measured, pairs, unexplained, split.second_look, facts.target)
    measured = tuple(map(possible.clean, measured))
    bigger = tuple((candidate, possible.clean(m)) for candidate, m in bigger)
    fitted = fit_tables(
        merging, one_ways, measured, bigger, scores, rng, possible, tails, channels, concordances
    )
    report("counting", 4, 4)
    return fitted


def _score(
    private: PrivateTable,
    one_ways: tuple[Measurement, ...],
    expected: tuple[Marginal, ...],
    blocks: Merging,
    smoother: Smoother,
    rho: float,
    channels: Channels,
    target: str | None,
) -> list[Floats]:
    """Return log-likelihoods of each pair's dispersion, before any is measured; flat without a budget.

    The pairs with the target are a question of their own, with less noise: their choice matters more.
    """
    scores = [np.zeros_like(DISPERSIONS) for _ in expected]
    if not rho:
        return scores
    in_blocks = tuple(map(blocks.merge_counts, one_ways))
    with_target = np.array([target in pair.attributes for pair in expected])
    # The noise in each of m pairs is in proportion to sqrt(m / rho), or m / epsilon with Laplace noise. So
    # the sum of weight times noise over all pairs is least at these costs.
    exponent = 1 / 2 if private.law.name == "laplace" else 2 / 3
    weights = np.where(with_target, TARGET**exponent, 1.0)
    first = rho * float(weights[with_target].sum() / weights.sum())
    questions: tuple[tuple[Mask, float, Asked], ...] = (
        (with_target, first, "pairs with the target"),
        (~with_target, rho - first, "pairs"),
    )
    for part, cost, what in questions:
        if not part.any():
            continue
        places = np.flatnonzero(part).tolist()
        merged = tuple(blocks.merge_table(channels.observed(expected[i])) for i in places)
        departures, sigma = private.departures(merged, cost, blocks, what)
        found = score_pairs(departures, sigma, merged, in_blocks, smoother, blocks, channels)
        for place, score in zip(places, found, strict=True):
            scores[place] = score
    return scores


def _measure_pairs(
    private: PrivateTable,
    expected: tuple[Marginal, ...],
    scores: list[Floats],
    rho: float,
    target: str | None,
    resolutions: Resolutions,
) -> tuple[tuple[Measurement, ...], list[Floats]]:
    """Return the pairs worth measuring, measured at their best resolution, and their scores."""
    dispersions = np.maximum(pooled_dispersions(scores, expected[0].total, hopeful=True), SAMPLING_DISPERSION)
    attributes = tuple(pair.attributes for pair in expected)
    smooth = np.array([is_smooth(pair.domain) for pair in expected])
    gains = np.empty((len(expected), len(STEPS)))
    nominal = np.flatnonzero(~smooth).tolist()
    gains[nominal] = slopes_of([dispersions[i] * expected[i].counts for i in nominal], rho, private.rho_of)
    places = np.flatnonzero(smooth).tolist()
    pairs = [attributes[i] for i in places]
    most = max((resolutions.levels(pair) for pair in pairs), default=0)
    errors = np.array(
        [resolutions.errors_at(level, pairs, dispersions[places], rho) for level in range(most)]
    )
    if places:
        gains[places] = slopes_along(errors.min(axis=0), rho)
    weights = _weights(private.domain, attributes, target)
    rhos = _most(gains, rho, weights, jumps=private.law.name == "laplace")
    chosen = np.flatnonzero(rhos)
    groupings = [NO_GROUPS] * len(expected)
    for row, i in enumerate(places):
        step = int(np.argmin(np.abs(rho * STEPS - rhos[i])))
        level = int(np.argmin(errors[:, row, step]))
        groupings[i] = resolutions.groups(attributes[i], level)
    measured = private.marginals(
        tuple(attributes[i] for i in chosen), rhos[chosen], [groupings[i] for i in chosen]
    )
    return measured, [scores[i] for i in chosen]


def _most(gains: Floats, rho: float, weights: Floats, *, jumps: bool) -> Floats:
    """Return the budget of each pair; at most `MOST_PAIRS`, whose errors fall fastest, get any."""
    rhos = allocate(gains, rho, weights=weights, jumps=jumps)
    if np.count_nonzero(rhos) <= MOST_PAIRS:
        return rhos
    kept = np.sort(np.argsort(-gains[:, 0] * weights * (rhos > 0), kind="stable")[:MOST_PAIRS])
    most = np.zeros(len(rhos))
    most[kept] = allocate(gains[kept], rho, weights=weights[kept], jumps=jumps)
    return most


def _unexplained(
    private: PrivateTable,
    merging: Merging,
    sets: tuple[Attributes, ...],
    measured: tuple[Measurement, ...],
    pairs: Pairs,
    rho: float,
    rng: np.random.Generator,
    possible: StructuralZeros,
    blocks: Merging,
) -> tuple[Unexplained, ...]:
    """Return the sets of attributes that records made from the pairs explain least."""
    if not (sets and rho):
        return ()
    found, scatter = predicted_by_pairs(merging, sets, pairs, rng, possible, blocks)
    departures, sigma = private.departures(found, rho, blocks, "sets of columns")
    one_ways = tuple(map(blocks.merge_table, pairs.one_ways))
    of_pairs = variances_in(blocks, measured, pairs)
    scored = score_bigger(departures, sigma, found, one_ways, scatter, of_pairs)
    return tuple(replace(s, grouping=blocks.grouping(s.expected.attributes)) for s in scored)


def _measure_again(
    private: PrivateTable,
    measured: tuple[Measurement, ...],
    pairs: Pairs,
    sets: tuple[Unexplained, ...],
    rho: float,
    target: str | None,
) -> tuple[tuple[Measurement, ...], tuple[tuple[Unexplained, Measurement], ...]]:
    """Spend the rest of the budget where it reduces the error most: on pairs again, or on bigger tables.

    Parameters
    ----------
    measured : the measured pairs
    pairs : estimates from these
    sets : candidate bigger tables

    Returns
    -------
    The pairs, combined with their second measurements; the bigger tables that were measured.
    """
    if not rho:
        return measured, ()
    attributes = (*(m.attributes for m in measured), *(s.expected.attributes for s in sets))
    kind = [*(1.0 for _ in measured), *(IN_GROUPS if s.grouping else BIGGER for s in sets)]
    weights = np.array(kind) * _weights(private.domain, attributes, target)
    smooth = [i for i, m in enumerate(measured) if m.grouping]
    others = [i for i, m in enumerate(measured) if not m.grouping]
    gains = np.empty((len(attributes), len(STEPS)))
    gains[[*others, *range(len(measured), len(attributes))]] = slopes_of(
        [*(pairs.left[i] for i in others), *(s.variance for s in sets)], rho, private.rho_of
    )
    if smooth:
        resolutions = Resolutions(pairs.one_ways, pairs.smoother, private.rho_of)
        errors = resolutions.errors_left([measured[i] for i in smooth], pairs.dispersions[smooth], rho)
        gains[smooth] = slopes_along(errors, rho)
    rhos = allocate(gains, rho, weights=weights, jumps=private.law.name == "laplace")
    chosen = np.flatnonzero(rhos).tolist()
    groupings = [*(m.grouping for m in measured), *(s.grouping for s in sets)]
    answers = private.marginals(
        tuple(attributes[i] for i in chosen), rhos[chosen], [groupings[i] for i in chosen]
    )
    second = dict(zip(chosen, answers, strict=True))
    again = tuple(combine_measurements(m, second[i]) if i in second else m for i, m in enumerate(measured))
    bigger = ((s, second[i]) for i, s in enumerate(sets, start=len(measured)) if i in second)
    return again, tuple(bigger)


def _weights(domain: Domain, tables: tuple[Attributes, ...], target: str | None) -> Floats:
    """Return the weight of an error in each table."""
    sizes = {
        name: min(ordered, GROUPS) + size - ordered
        for name, size, ordered in zip(domain.names, domain.sizes, domain.ordered, strict=True)
    }
    cells = np.array([prod(sizes[name] for name in attributes) for attributes in tables], float)
    many = {name for name, ordered in zip(domain.names, domain.ordered, strict=True) if ordered > 2}
    if target is not None and many:
        many.add(target)  # what numbers say of it matters as much as what they say of each other
    numbers = [len(many.intersection(attributes)) for attributes in tables]
    smooth = np.power(SMOOTH, numbers)
    wanted, weight = {target}, TARGET
    if target is None:
        wanted = set() if many else {name for name, size in sizes.items() if size == min(sizes.values())}
        weight = LIKELY_TARGET
    targets = np.where([not wanted.isdisjoint(attributes) for attributes in tables], weight, 1.0)
    return np.asarray(targets * smooth * (1.0 if target is None else cells**-SMALL_FIRST))
