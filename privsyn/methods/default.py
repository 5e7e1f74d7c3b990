"""The default: PrivSyn's stages, each in the variant with the least error.

Pairs are scored against the released one-ways, with a quarter of InDif's noise, or less if they have the
target. One convex step selects them and allocates their budget. They are then shrunk towards a latent class
model of all pairs. A second look measures bigger tables that the pairs do not explain, or pairs again.
Where cells are few, all pairs and triples are measured by their residuals, with the second look's budget.

`fit_one_ways` and what follows it in this file read answers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from privsyn.inference.all_rows import answered
from privsyn.inference.consistency import combine_measurements, combine_one_ways
from privsyn.inference.exact_counts import with_exact_counts
from privsyn.inference.fitted import Fitted, one_way_certainty, table_certainties
from privsyn.inference.higher_order import (
    LARGEST,
    MOST_MEASURED,
    all_measured,
    by_label,
    candidates,
    denoise_higher_order,
    expected_by,
    in_finer_groups,
    measured_as,
    score_higher_order,
)
from privsyn.inference.label_strength import with_strength
from privsyn.inference.measured_columns import Estimate, MeasuredColumns, PublicFacts
from privsyn.inference.ordered.concordance import Concordance, within_intervals
from privsyn.inference.pairs import Pairs, estimate_pairs, variances_in
from privsyn.inference.residuals import (
    LARGEST_RESIDUAL,
    exact_residuals,
    one_ways_with,
    residual_budgets,
    residual_cost,
    residual_sets,
    whole_tables,
)
from privsyn.inference.selection import (
    Resolutions,
    allocate,
    allocate_first,
    curves_of,
    expected_errors,
    slopes_of,
)
from privsyn.inference.weights import IMPORTANT, important_in, products_of, weights_of
from privsyn.marginals.domain import Attributes
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.methods.budget import CLEAR, PREVIOUS_ROWS, noise_in_scores
from privsyn.methods.columns import measure_columns
from privsyn.methods.pair_scores import ask_concordances, ask_departures, released_concordances
from privsyn.methods.pairs import hoped_dispersions, measure_always, measure_pairs
from privsyn.methods.previous_siblings import linking_sets, measure_previous
from privsyn.private.contribution import ONE_ROW_EACH
from privsyn.private.measure import PrivateTable
from privsyn.progress import ESTIMATING, MEASURING, Progress, one_step
from privsyn.synthesis.synthesise import synthesise
from privsyn.synthesis.targets import Targets

STAGES = 4  # of questions: one-ways, departures, pairs, second look
BIGGER = 0.2  # weight of an error in a bigger table, relative to one in a pair
IN_GROUPS = 0.8  # the same for a bigger table in groups of numbers: no pair shows what it shows
QUIET = 0.01  # largest mean error of pairs by residuals, of all records: nltcs gains at .004, not at .02
QUIET_WITH_TARGET = 0.002  # the same with a target: models fit the noise of triples; nltcs gains at .0008
MOST_RECORDS = 100_000  # synthesised to find what the pairs leave unexplained
MOST_LOOKUPS = 2 * 10**9  # of cells, to synthesise them: with very many tables, fewer records are made
MOST_TABLES = 5_000  # of pairs that are all synthesised: those of 100 columns
ROUGH = 3  # sweeps over them: unexplained departures show long before the fit is exact


def learn(
    private: PrivateTable, rho: float, rng: np.random.Generator, report: Progress, facts: PublicFacts
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
    private, measured_columns, split = measure_columns(private, rho, facts)
    columns = tuple(name for name in private.domain.names if name not in facts.context_weights)
    begun = measured_columns
    sets, largest = _clear_proposals(private, begun, columns, facts, split.sets)
    if private.sums_only:
        sets, split = (), split.without("sets").without("departures")
    elif not sets or facts.target is not None:
        split = split.for_sets(len(sets), begun.alone[0].total, private.law)
    if not split.asks_pairs:
        report(MEASURING, STAGES, STAGES)
        with one_step(report, ESTIMATING):
            return fit_one_ways(measured_columns)
    if facts.previous and split.pairs:
        private, measured_columns = measure_previous(
            private, measured_columns, PREVIOUS_ROWS * split.pairs, facts
        )
        split = replace(split, pairs=(1 - PREVIOUS_ROWS) * split.pairs)
    report(MEASURING, 1, STAGES)

    pairs, departures = ask_departures(private, measured_columns, split.departures, facts)
    pairs = ask_concordances(private, measured_columns, pairs, split.concordances, facts.ranked)
    split = split if pairs.concordances else split.without("concordances")
    if not pairs.estimates:  # the counts of all are public
        split = replace(split, pairs=0.0, second_look=split.second_look + split.pairs)
    report(MEASURING, 2, STAGES)
    measured_columns, pairs = measure_always(private, measured_columns, pairs, split, columns, facts)

    triples: tuple[Estimate, ...] = ()
    larger = tuple(s for s in sets if len(s) > LARGEST_RESIDUAL)
    with_residuals = split if larger else split.without("sets").without("second_look")
    # With Laplace noise, which leaves no budget for sets, a residual costs no less than its counts.
    if (
        split.sets
        and pairs.estimates
        and private.contribution == ONE_ROW_EACH
        and (rhos := _residual_budgets(measured_columns, pairs, with_residuals.pairs))
    ):
        measured_columns, pairs, triples = _measure_residuals(private, measured_columns, pairs, rhos, rng)
        sets, split = larger, with_residuals
    else:
        measured_columns, measured = measure_pairs(private, measured_columns, pairs, split.pairs)
        pairs = estimate_pairs(measured_columns, measured, rng, pairs.concordances)
    report(MEASURING, 3, STAGES)
    if split.sets and sets and facts.target is not None:
        first = by_label(facts.target, pairs.tables)
        ranked = _proposals(begun, columns, facts, first, largest=largest)
        sets = tuple(s for s in ranked if not triples or len(s) > LARGEST_RESIDUAL)
    bigger = _unexplained(private, measured_columns, sets, pairs, split.sets, rng)
    measured_columns, measured, bigger = _measure_again(
        private, measured_columns, pairs, bigger, split.second_look, facts
    )
    report(MEASURING, STAGES, STAGES)
    with one_step(report, ESTIMATING):
        fitted = fit_tables(measured_columns, measured, (*triples, *bigger), rng, pairs.concordances)
    counted = {
        frozenset(certainty.attributes) for certainty, _ in fitted.measured_marginals if certainty.relates
    }
    concordances = released_concordances(pairs.concordances)
    return replace(fitted, departures=departures.without(counted), concordances=concordances)


def _proposals(
    measured_columns: MeasuredColumns,
    columns: Attributes,
    facts: PublicFacts,
    first: Attributes = (),
    largest: int = LARGEST,
) -> tuple[Attributes, ...]:
    """Return the sets of columns, and those that link rows, which are to be scored; see `candidates`."""
    domain = measured_columns.domain
    sets = candidates(domain.project(columns), facts.target, facts.important, first, largest)
    sets += linking_sets(domain, facts) if facts.previous else ()
    channels, exact = measured_columns.channels, measured_columns.exact
    return tuple(s for s in sets if not (channels.random(s) or exact.covers(s)))


def _clear_proposals(
    private: PrivateTable,
    measured_columns: MeasuredColumns,
    columns: Attributes,
    facts: PublicFacts,
    rho: float,
) -> tuple[tuple[Attributes, ...], int]:
    """Return the sets to be scored with a budget of `rho`, and the most attributes of one with the target.

    These are three if noise would hide the scores: each larger set adds to it, and chance would choose.
    """
    sets = _proposals(measured_columns, columns, facts)
    noise = noise_in_scores(rho, len(sets), private.law)
    if facts.target is None or noise <= CLEAR * measured_columns.alone[0].total:
        return sets, LARGEST
    return _proposals(measured_columns, columns, facts, largest=LARGEST_RESIDUAL), LARGEST_RESIDUAL


def _residual_budgets(measured_columns: MeasuredColumns, pairs: Pairs, rho: float) -> dict[Attributes, float]:
    """Return the budget of the residual of each set of attributes; none if a choice of pairs errs less.

    The pairs decide. If their residuals err less although triples are measured too, the triples are a gain.
    With much noise interactions drown, and classes that pool all pairs know more.
    """
    domain, sets = measured_columns.domain, residual_sets(measured_columns)
    if not sets:
        return {}
    more = np.where(important_in(sets, measured_columns.important), IMPORTANT, 1.0)
    rhos = residual_budgets(domain, sets, more * weights_of(domain, sets, measured_columns.target), rho)
    dispersions = hoped_dispersions(pairs.estimates, pairs.waves)
    variances = [d * t.counts for d, t in zip(dispersions, pairs.tables, strict=True)]
    weights = weights_of(domain, tuple(t.attributes for t in pairs.tables), measured_columns.target)
    chosen = allocate(slopes_of(variances, rho), rho, weights=weights)
    equivalent = np.array([rhos[t.attributes] / residual_cost(t.domain) for t in pairs.tables])
    by_choice, by_residuals = (weights @ expected_errors(variances, costs) for costs in (chosen, equivalent))
    largest = QUIET if measured_columns.target is None else QUIET_WITH_TARGET
    quiet = by_residuals <= largest * 2 * weights.sum() * pairs.total
    return rhos if quiet and by_residuals < by_choice else {}


def _measure_residuals(
    private: PrivateTable,
    measured_columns: MeasuredColumns,
    pairs: Pairs,
    rhos: dict[Attributes, float],
    rng: np.random.Generator,
) -> tuple[MeasuredColumns, Pairs, tuple[Estimate, ...]]:
    """Return the columns with better one-ways, and all pairs and triples, measured by their residuals."""
    answers = private.residuals(tuple(rhos), np.array([*rhos.values()]))
    residuals, exact = dict(zip(rhos, answers, strict=True)), exact_residuals(measured_columns)
    one_ways = counted = measured_columns.one_ways
    if label := tuple(pair.measured for pair in pairs.estimates if pair.is_measured):
        counted = measured_columns.about_one_ways(label)
        one_ways = combine_one_ways(measured_columns.domain, counted)
    one_ways = one_ways_with(one_ways, residuals)  # residuals say nothing of the number of records
    variance = measured_columns.variance_of_total(counted)
    measured = whole_tables(residuals | exact, one_ways)
    measured = {attributes: table for attributes, table in measured.items() if attributes not in exact}
    measured_columns = replace(
        measured_columns, one_ways=one_ways, margins_known=True, total_variance=variance
    )
    two_way = tuple(
        replace(pair, measured=measured.pop(pair.attributes))
        if not pair.is_measured
        else replace(pair, measured=combine_measurements(pair.measured, measured.pop(pair.attributes)))
        for pair in pairs.estimates
    )
    pairs = estimate_pairs(measured_columns, two_way, rng)
    return measured_columns, pairs, all_measured(tuple(measured.values()), pairs.tables, pairs.one_ways)


def _unexplained(
    private: PrivateTable,
    measured_columns: MeasuredColumns,
    sets: tuple[Attributes, ...],
    pairs: Pairs,
    rho: float,
    rng: np.random.Generator,
) -> tuple[Estimate, ...]:
    """Return the sets of attributes that records made from the pairs explain least.

    With a target the sets of each size are a question of their own, of the same cost: a few triples have less
    noise than hundreds of larger sets, which would hide them.
    """
    if not (sets and rho):
        return ()
    blocks = measured_columns.blocks
    predicted, scatter = predicted_by_pairs(measured_columns, sets, pairs, rng, blocks)
    departures, sigmas = np.zeros(len(predicted)), np.zeros(len(predicted))
    sizes = np.array([len(names) if measured_columns.target else 0 for names in sets])
    for size in np.unique(sizes).tolist():
        indices = np.flatnonzero(sizes == size).tolist()
        tables, cost = tuple(predicted[index] for index in indices), rho / len(np.unique(sizes))
        departures[indices], sigmas[indices] = private.departures(tables, cost, blocks, "sets of columns")
    one_ways = tuple(map(blocks.merge_table, pairs.one_ways))
    expected = tuple(Estimate(table, target=measured_columns.target) for table in predicted)
    variances = variances_in(blocks, pairs)
    scored = score_higher_order(departures, sigmas, expected, one_ways, scatter, variances)
    scored.sort(key=lambda s: s.attributes not in measured_columns.important)
    return tuple(replace(s, grouping=blocks.grouping(s.attributes)) for s in scored[:MOST_MEASURED])


def _measure_again(
    private: PrivateTable,
    measured_columns: MeasuredColumns,
    pairs: Pairs,
    sets: tuple[Estimate, ...],
    budget: float,
    facts: PublicFacts,
) -> tuple[MeasuredColumns, tuple[Estimate, ...], tuple[Estimate, ...]]:
    """Spend the rest of the budget where it reduces the error most: on pairs again, or on bigger tables.

    Returns
    -------
    The measured columns; the pairs, combined with their second measurements; the bigger tables.
    """
    once = pairs.estimates
    if not (budget and (once or sets)):
        return measured_columns, once, ()
    tables: tuple[Measurement | Estimate, ...] = (*(pair.measured for pair in once), *sets)
    attributes = tuple(table.attributes for table in tables)
    groupings = [table.grouping for table in tables]
    kind = [
        1.0
        if len(table.attributes) < 3 or table.attributes in measured_columns.important
        else (IN_GROUPS if table.grouping else BIGGER)
        for table in tables
    ]
    weights = np.array(kind) * weights_of(measured_columns.domain, attributes, measured_columns.target)
    weights = weights * products_of(facts.weights, attributes)
    named = important_in(attributes, measured_columns.important)
    smooth = np.array(
        [index < len(once) and bool(grouping) for index, grouping in enumerate(groupings)], np.bool_
    )
    in_groups = [pair for pair in once if pair.measured.grouping]
    errors = Resolutions(pairs.waves, private.rho_of).errors_left(in_groups, budget)
    variances = [
        *(pair.posterior_variance for pair in once if not pair.measured.grouping),
        *(s.variance for s in sets),
    ]
    gains, before = curves_of(variances, errors, smooth, budget, private.rho_of)
    budgets = allocate_first(gains, before, budget, weights, named, jumps=private.law.name == "laplace")
    chosen = np.flatnonzero(budgets).tolist()
    rhos = budgets if private.rho_of is None else private.rho_of(budgets)
    sets = tuple(
        in_finer_groups(table, pairs.one_ways, rho) if rho else table
        for table, rho in zip(sets, rhos[len(once) :].tolist(), strict=True)
    )
    groupings[len(once) :] = [table.grouping for table in sets]
    answers = private.marginals(
        tuple(attributes[i] for i in chosen), budgets[chosen], [groupings[i] for i in chosen]
    )
    contribution = private.contribution
    measured_columns, answers = answered(
        measured_columns, pairs.total, answers, contribution.within_squares, contribution.of_tables
    )
    again, bigger = list(once), []
    for i, answer in zip(chosen, answers, strict=True):
        if i < len(once):
            both = measured_columns.zeros.clean(combine_measurements(once[i].measured, answer))
            again[i] = replace(once[i], measured=both)
        else:
            bigger.append(measured_as(sets[i - len(once)], answer))
    return measured_columns, tuple(again), tuple(bigger)


def fit_one_ways(measured_columns: MeasuredColumns) -> Fitted:
    """Return the model of one-way tables alone."""
    answers = measured_columns.about_one_ways(())
    total, margins = measured_columns.margins(answers)
    combined = combine_one_ways(measured_columns.domain, answers) if measured_columns.exact else answers
    one_ways = tuple(map(measured_columns.channels.unbiased, combined))
    exact = (*measured_columns.exact_tables, *measured_columns.exact_in_groups(margins))
    certainties = (*map(one_way_certainty, one_ways, margins), *table_certainties(exact, one_ways))
    shared, tables = measured_columns.shared(combined), tuple(t.table for t in exact)
    variance = measured_columns.variance_of_total(answers)
    fitted = Fitted(shared, margins, tables, total, certainties, variance, totals=measured_columns.totals)
    return with_exact_counts(fitted, measured_columns.zeros)


def fit_tables(
    measured_columns: MeasuredColumns,
    measured: tuple[Estimate, ...],
    bigger: tuple[Estimate, ...],
    rng: np.random.Generator,
    concordances: Sequence[Concordance] = (),
) -> Fitted:
    """Return the model of one-ways, pairs and bigger tables.

    Parameters
    ----------
    measured_columns : MeasuredColumns
        Its structural zeros have been applied to all measurements.
    measured : tuple of Estimate
        Pairs with their measurements, and with what was known before these.
    bigger : tuple of Estimate
        The same for tables of three and more attributes.
    rng : numpy.random.Generator
    concordances : sequence of Concordance, optional
    """
    domain, zeros, unbiased = (
        measured_columns.domain,
        measured_columns.zeros,
        measured_columns.channels.unbiased,
    )
    pairs = estimate_pairs(measured_columns, measured, rng, concordances)
    # A table with structural zeros omits rows that break a constraint: error bars of one-ways do not use it.
    measured_in_full = (m.measured for m in measured if zeros.mask(domain.project(m.attributes)).all())
    combined = tuple(
        map(unbiased, combine_one_ways(domain, measured_columns.about_one_ways(measured_in_full)))
    )
    shared = measured_columns.shared(combined)
    two_way = tuple(replace(pair, measured=unbiased(pair.measured)) for pair in pairs.estimates)
    two_way = with_strength(two_way, measured_columns.target)
    two_way = within_intervals(two_way, pairs.one_ways, shared, zeros)
    bigger = tuple(replace(table, measured=unbiased(table.measured)) for table in bigger)
    sets = {table.attributes for table in (*two_way, *bigger)}
    exact = (*measured_columns.exact_tables, *measured_columns.exact_in_groups(pairs.one_ways, sets))
    smaller = tuple(t.table for t in (*exact, *two_way) if len(t.attributes) == 2)
    estimates = (*exact, *two_way, *denoise_higher_order(bigger, smaller, pairs.one_ways, zeros))
    certainties = (*map(one_way_certainty, combined, pairs.one_ways), *table_certainties(estimates, combined))
    tables, totals = tuple(t.table for t in estimates), measured_columns.totals
    fitted = Fitted(
        *(shared, pairs.one_ways, tables, pairs.total, certainties, pairs.total_variance),
        totals=totals,
        target=measured_columns.target,
    )
    return with_exact_counts(fitted, zeros)


def predicted_by_pairs(
    measured_columns: MeasuredColumns,
    sets: tuple[Attributes, ...],
    pairs: Pairs,
    rng: np.random.Generator,
    blocks: Merging | None = None,
) -> tuple[tuple[Marginal, ...], float]:
    """Return the counts of sets of attributes that the pairs predict, and their variance over the count.

    Records are made from the pairs and counted, in blocks of codes if these are given. With very many pairs
    they have the attributes of the sets alone. What these share through others is then not predicted.
    """
    domain, possible = measured_columns.domain, measured_columns.zeros
    many = len(pairs.tables) > MOST_TABLES and not possible.masks
    needed = set(chain.from_iterable(sets) if many else domain)
    names = tuple(name for name in domain if name in needed)
    one_ways = tuple(table for table in pairs.one_ways if needed.issuperset(table.attributes))
    tables = tuple(table for table in pairs.tables if needed.issuperset(table.attributes))
    tables += tuple(t.table for t in measured_columns.exact_tables if len(t.attributes) > 2)
    tables += possible.missing_from(pairs.tables, pairs.one_ways)
    lookups = ROUGH * sum(len(table.attributes) for table in tables)
    enough = min(round(pairs.total), MOST_RECORDS, MOST_LOOKUPS // max(lookups, 1))
    records = synthesise(
        Targets(one_ways, tables, possible, measured_columns.target), enough, rng, sweeps=ROUGH
    )
    scatter = pairs.total / len(records)
    records = records if blocks is None else blocks.project(names).merge(records)
    return expected_by(records, sets, pairs.total), scatter
