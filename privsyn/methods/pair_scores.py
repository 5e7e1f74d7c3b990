"""What is asked of each pair before any is measured: its departure from independence, and its concordance.

Only `PrivateTable.departures` and `PrivateTable.concordances` read rows here, each for its own budget.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from privsyn.inference.departures import NO_CONCORDANCES, NO_DEPARTURES, Concordances, Departures
from privsyn.inference.measured_columns import UNKNOWN, Estimate, MeasuredColumns, PublicFacts
from privsyn.inference.ordered.concordance import Concordance, signs_of
from privsyn.inference.pairs import Pairs, independent_pairs, score_pairs
from privsyn.inference.prior.smoothing import Waves, is_smooth
from privsyn.inference.selection import near_pairs
from privsyn.inference.weights import TARGET
from privsyn.marginals.domain import Mask
from privsyn.methods.columns import pairs_with_weights
from privsyn.methods.previous_siblings import worth_asking
from privsyn.private.measure import Asked, PrivateTable

MOST_CANDIDATES = 500_000  # scored pairs: those of 1,000 attributes. Each takes 1 KB, and adds noise to all


def ask_departures(
    private: PrivateTable, measured_columns: MeasuredColumns, rho: float, facts: PublicFacts
) -> tuple[Pairs, Departures]:
    """Return what is known of each pair before any is measured: independence, and its departure from it.

    No pair is asked of two attributes of which no record is made, or whose counts are public. The pairs with
    the target are a question of
    their own, with less noise: their choice matters more. Without a budget nothing is asked.

    The departures are those of pairs whose expected counts are the product of their one-way tables: of no
    randomised attribute, without structural zeros, and without exact counts of groups of cells.
    """
    always = (*measured_columns.important, *pairs_with_weights(private.domain.names, facts))
    names = near_pairs(private.domain.names, MOST_CANDIDATES, measured_columns.target, always)
    names = worth_asking(names, facts, private.domain)
    names = tuple(pair for pair in names if not measured_columns.exact.covers(pair))
    margins = measured_columns.alone
    if not names:
        return Pairs(margins[0].total, margins, (), Waves(margins)), NO_DEPARTURES
    one_way = {margin.attributes[0]: margin for margin in margins}
    independent = independent_pairs(private.domain, margins, measured_columns.zeros, names)
    # Along an order, exact counts of groups of codes are steps, which would hide a trend.
    expected = tuple(
        table
        if is_smooth(table.domain)
        else measured_columns.expected(table, tuple(one_way[name] for name in table.attributes))
        for table in independent
    )
    evidence, waves = [UNKNOWN] * len(expected), Waves(margins)
    distances, sigmas = np.zeros(len(expected)), np.full(len(expected), np.inf)
    with_target = np.array([measured_columns.target in pair.attributes for pair in expected])
    # The noise in each of m pairs is in proportion to sqrt(m / rho), or m / epsilon with Laplace noise. So
    # the sum of weight times noise over all pairs is least at these costs.
    exponent = 1 / 2 if private.law.name == "laplace" else 2 / 3
    weights = np.where(with_target, TARGET**exponent, 1.0)
    first = rho * float(weights[with_target].sum() / weights.sum())
    questions: tuple[tuple[Mask, float, Asked], ...] = (
        (with_target, first, "pairs with the target"),
        (~with_target, rho - first, "pairs"),
    )
    for part, cost, subject in questions if rho else ():
        if not part.any():
            continue
        indices = np.flatnonzero(part).tolist()
        merged = tuple(
            measured_columns.blocks.merge_table(measured_columns.channels.observed(expected[i]))
            for i in indices
        )
        departures, sigma = private.departures(merged, cost, measured_columns.blocks, subject)
        distances[part], sigmas[part] = departures, sigma
        for index, score in zip(
            indices, score_pairs(measured_columns, departures, sigma, merged, waves), strict=True
        ):
            evidence[index] = score
    pairs = Pairs(margins[0].total, margins, tuple(map(Estimate, expected, evidence)), waves)
    from_product = np.isfinite(sigmas) & np.array(
        [
            not measured_columns.channels.random(pair.attributes)
            and bool(measured_columns.zeros.mask(pair.domain).all())
            and pair is unfitted
            for pair, unfitted in zip(expected, independent, strict=True)
        ],
        np.bool_,
    )
    blocks = dict(zip(private.domain.names, measured_columns.blocks.groups, strict=True))
    scored = [expected[index].attributes for index in np.flatnonzero(from_product).tolist()]
    return pairs, Departures(tuple(scored), distances[from_product], sigmas[from_product], blocks)


def ask_concordances(
    private: PrivateTable,
    measured_columns: MeasuredColumns,
    pairs: Pairs,
    rho: float,
    ranked: Collection[str] = (),
) -> Pairs:
    """Return the pairs with the noisy concordance of each pair of numbers or times; see `Concordance`.

    The tables of `ranked` columns have few cells, which show it. A pair is also left out if a constraint
    rules out some of its cells, if a column was randomised, or if all records of a column are in one half.
    """
    if not rho:
        return pairs
    signs = {
        margin.attributes[0]: signs_of(margin)
        for margin in pairs.one_ways
        if margin.domain.ordered[0] > 2
        and margin.attributes[0] not in ranked
        and not measured_columns.channels.random(margin.attributes)
    }
    halved = {name for name, sign in signs.items() if {-1, 1} <= set(sign.tolist())}
    attributes_of = {
        index: pair.attributes
        for index, pair in enumerate(pairs.estimates)
        if halved >= set(pair.attributes) and measured_columns.zeros.mask(pair.table.domain).all()
    }
    if not attributes_of:
        return pairs
    answers, variance = private.concordances(tuple(attributes_of.values()), signs, rho)
    estimates, concordances = list(pairs.estimates), []
    for (index, (a, b)), concordance in zip(attributes_of.items(), answers.tolist(), strict=True):
        concordances.append(Concordance({a: signs[a], b: signs[b]}, concordance, variance))
        pair = estimates[index]
        evidence = pair.evidence + concordances[-1].likelihoods(pair.table.counts, pairs.waves)
        estimates[index] = replace(pair, evidence=evidence)
    return replace(pairs, estimates=tuple(estimates), concordances=tuple(concordances))


def released_concordances(concordances: Sequence[Concordance]) -> Concordances:
    """Return the noisy concordances as a release keeps them."""
    if not concordances:
        return NO_CONCORDANCES
    halves = {
        name: int(np.argmax(sign > 0)) for answer in concordances for name, sign in answer.signs.items()
    }
    measured = np.array([answer.measured for answer in concordances])
    pairs = tuple(answer.attributes for answer in concordances)
    return Concordances(pairs, measured, concordances[0].variance, halves)
