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
from privsyn.inference.higher_order import GROUPS, candidates, measured_as, score_bigger
from privsyn.inference.ordered.concordance import Concordance, signs_of, with_evidence
from privsyn.inference.pairs import Pairs, estimate_pairs, independent_pairs, score_pairs, variances_in
from privsyn.inference.prior.dispersion import pooled_dispersions
from privsyn.inference.prior.smoothing import Waves, is_smooth
from privsyn.inference.problem import UNKNOWN, Estimate, Problem
from privsyn.inference.selection import STEPS, Resolutions, allocate, near_pairs, slopes_along, slopes_of
from privsyn.marginals.domain import Attributes, Domain
from privsyn.marginals.marginal import NO_GROUPS, Marginal, Measurement
from privsyn.marginals.recoding import Merging, joined
from privsyn.marginals.types import Floats, Mask
from privsyn.methods.columns import measure_columns
from privsyn.methods.estimate import fit_one_ways, fit_tables, predicted_by_pairs
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
    private, problem, one_ways, split = measure_columns(private, rho, facts)
    sets = tuple(s for s in candidates(private.domain, facts.target) if not problem.channels.random(s))
    if private.sums_only:
        sets, split = (), split.without("sets").without("departures")
    elif not sets:
        split = split.without("sets")
    if not split.pairs:
        report("counting", 4, 4)
        return fit_one_ways(problem, one_ways)
    report("counting", 1, 4)

    _, margins = problem.margins(one_ways)
    candidate_pairs = near_pairs(private.domain.names, MOST_CANDIDATES, facts.target)
    expected = independent_pairs(private.domain, margins, problem.zeros, candidate_pairs)
    blocks, waves = joined(private.domain, margins, GROUPS), Waves(margins)
    evidence = _score(private, problem, one_ways, expected, blocks, waves, split.departures)
    concordances = _concordances(private, problem, margins, candidate_pairs, split.concordances)
    split = split if concordances else split.without("concordances")
    evidence = with_evidence(evidence, expected, concordances, waves)
    report("counting", 2, 4)

    resolutions = Resolutions(margins, waves, private.rho_of)
    pairs = _measure_pairs(private, problem, expected, evidence, split.pairs, resolutions)
    found = estimate_pairs(problem, one_ways, pairs, rng, concordances)
    report("counting", 3, 4)

    bigger = _unexplained(private, problem, sets, found, split.sets, rng, blocks)
    pairs, bigger = _measure_again(private, problem, found, bigger, split.second_look)
    fitted = fit_tables(problem, one_ways, pairs, bigger, rng, concordances)
    report("counting", 4, 4)
    return fitted


def _score(
    private: PrivateTable,
    problem: Problem,
    one_ways: tuple[Measurement, ...],
    expected: tuple[Marginal, ...],
    blocks: Merging,
    waves: Waves,
    rho: float,
) -> list[Floats]:
    """Return the evidence of each pair before any is measured: its departure. Flat without a budget.

    The pairs with the target are a question of their own, with less noise: their choice matters more.
    """
    evidence = [UNKNOWN for _ in expected]
    if not rho:
        return evidence
    in_blocks = tuple(map(blocks.merge_counts, one_ways))
    with_target = np.array([problem.target in pair.attributes for pair in expected])
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
        merged = tuple(blocks.merge_table(problem.channels.observed(expected[i])) for i in places)
        departures, sigma = private.departures(merged, cost, blocks, what)
        found = score_pairs(departures, sigma, merged, in_blocks, waves, blocks, problem.channels)
        for place, score in zip(places, found, strict=True):
            evidence[place] = score
    return evidence


def _concordances(
    private: PrivateTable,
    problem: Problem,
    margins: tuple[Marginal, ...],
    candidate_pairs: tuple[Attributes, ...],
    rho: float,
) -> tuple[Concordance, ...]:
    """Return the noisy concordance of each candidate pair of ordered columns; see `Concordance`.

    A pair is left out if a constraint rules out some of its cells, if a column was randomised, or if all
    records of a column are in one half.
    """
    if not rho:
        return ()
    signs = {
        name: signs_of(margin)
        for name, margin in zip(private.domain.names, margins, strict=True)
        if margin.domain.ordered[0] > 2 and not problem.channels.random((name,))
    }
    halved = {name for name, sign in signs.items() if {-1, 1} <= set(sign.tolist())}
    pairs = tuple(
        pair
        for pair in candidate_pairs
        if halved >= set(pair) and problem.zeros.of(private.domain.project(pair)).all()
    )
    if not pairs:
        return ()
    found, variance = private.concordances(pairs, signs, rho)
    return tuple(
        Concordance((a, b), (signs[a], signs[b]), concordance, variance)
        for (a, b), concordance in zip(pairs, found.tolist(), strict=True)
    )


def _measure_pairs(
    private: PrivateTable,
    problem: Problem,
    expected: tuple[Marginal, ...],
    evidence: list[Floats],
    rho: float,
    resolutions: Resolutions,
) -> tuple[Estimate, ...]:
    """Return the pairs worth measuring, measured at their best resolution."""
    dispersions = np.maximum(
        pooled_dispersions(evidence, expected[0].total, hopeful=True), SAMPLING_DISPERSION
    )
    attributes = tuple(pair.attributes for pair in expected)
    smooth = np.array([is_smooth(pair.domain) for pair in expected])
    gains = np.empty((len(attributes), len(STEPS)))
    nominal = np.flatnonzero(~smooth).tolist()
    variances = [dispersions[i] * expected[i].counts for i in nominal]
    gains[nominal] = slopes_of(variances, rho, private.rho_of)
    places = np.flatnonzero(smooth).tolist()
    pairs = [attributes[i] for i in places]
    most = max((resolutions.levels(pair) for pair in pairs), default=0)
    errors = np.array(
        [resolutions.errors_at(level, pairs, dispersions[places], rho) for level in range(most)]
    )
    if places:
        gains[places] = slopes_along(errors.min(axis=0), rho)
    weights = _weights(private.domain, attributes, problem.target)
    rhos = _most(gains, rho, weights, jumps=private.law.name == "laplace")
    chosen = np.flatnonzero(rhos)
    groupings = [NO_GROUPS] * len(attributes)
    for row, i in enumerate(places):
        step = int(np.argmin(np.abs(rho * STEPS - rhos[i])))
        level = int(np.argmin(errors[:, row, step]))
        groupings[i] = resolutions.groups(attributes[i], level)
    measured = private.marginals(
        tuple(attributes[i] for i in chosen), rhos[chosen], [groupings[i] for i in chosen]
    )
    return tuple(
        Estimate(expected[i], evidence[i], measured=problem.zeros.clean(m))
        for i, m in zip(chosen, measured, strict=True)
    )


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
    problem: Problem,
    sets: tuple[Attributes, ...],
    pairs: Pairs,
    rho: float,
    rng: np.random.Generator,
    blocks: Merging,
) -> tuple[Estimate, ...]:
    """Return the sets of attributes that records made from the pairs explain least."""
    if not (sets and rho):
        return ()
    found, scatter = predicted_by_pairs(problem, sets, pairs, rng, blocks)
    departures, sigma = private.departures(found, rho, blocks, "sets of columns")
    one_ways = tuple(map(blocks.merge_table, pairs.one_ways))
    scored = score_bigger(departures, sigma, found, one_ways, scatter, variances_in(blocks, pairs))
    return tuple(replace(s, grouping=blocks.grouping(s.attributes)) for s in scored)


def _measure_again(
    private: PrivateTable, problem: Problem, pairs: Pairs, sets: tuple[Estimate, ...], rho: float
) -> tuple[tuple[Estimate, ...], tuple[Estimate, ...]]:
    """Spend the rest of the budget where it reduces the error most: on pairs again, or on bigger tables.

    Returns
    -------
    The pairs, combined with their second measurements; the bigger tables that were measured.
    """
    once = pairs.estimates
    if not rho:
        return once, ()
    attributes = tuple(table.attributes for table in (*once, *sets))
    groupings = [*(pair.measured.grouping for pair in once), *(s.grouping for s in sets)]
    kind = [*(1.0 for _ in once), *(IN_GROUPS if s.grouping else BIGGER for s in sets)]
    weights = np.array(kind) * _weights(private.domain, attributes, problem.target)
    smooth = [i for i, pair in enumerate(once) if pair.measured.grouping]
    others = [i for i, pair in enumerate(once) if not pair.measured.grouping]
    gains = np.empty((len(attributes), len(STEPS)))
    gains[[*others, *range(len(once), len(attributes))]] = slopes_of(
        [*(once[i].left for i in others), *(s.variance for s in sets)], rho, private.rho_of
    )
    if smooth:
        resolutions = Resolutions(pairs.one_ways, pairs.waves, private.rho_of)
        gains[smooth] = slopes_along(resolutions.errors_left([once[i] for i in smooth], rho), rho)
    rhos = allocate(gains, rho, weights=weights, jumps=private.law.name == "laplace")
    chosen = np.flatnonzero(rhos).tolist()
    answers = private.marginals(
        tuple(attributes[i] for i in chosen), rhos[chosen], [groupings[i] for i in chosen]
    )
    again, bigger = list(once), []
    for i, answer in zip(chosen, answers, strict=True):
        if i < len(once):
            both = problem.zeros.clean(combine_measurements(once[i].measured, answer))
            again[i] = replace(once[i], measured=both)
        else:
            bigger.append(measured_as(sets[i - len(once)], problem.zeros.clean(answer)))
    return tuple(again), tuple(bigger)


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
