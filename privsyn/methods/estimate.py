"""From measured tables to a fitted model: all that follows the last question. It reads answers only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from privsyn.inference.consistency import combine_one_ways
from privsyn.inference.fitted import Fitted, one_way_certainty, table_certainties
from privsyn.inference.higher_order import denoise_bigger, expected_by
from privsyn.inference.ordered.concordance import Concordance, within_intervals
from privsyn.inference.pairs import Pairs, estimate_pairs
from privsyn.inference.problem import Estimate, Problem
from privsyn.marginals.domain import Attributes
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.recoding import Merging
from privsyn.synthesis.synthesise import synthesise

MOST_RECORDS = 100_000  # synthesised to find what the pairs leave unexplained
MOST_LOOKUPS = 2 * 10**9  # of cells, to synthesise them: with very many tables, fewer records are made
MOST_TABLES = 5_000  # of pairs that are all synthesised: those of 100 columns
ROUGH = 2  # sweeps over them: unexplained departures show long before the fit is exact


def fit_one_ways(problem: Problem) -> Fitted:
    """Return the model of one-way tables alone."""
    one_ways = problem.one_ways
    total, margins = problem.margins(one_ways)
    certainties = tuple(map(one_way_certainty, map(problem.channels.unbiased, one_ways), margins))
    return Fitted(problem.shared(one_ways), margins, (), total, certainties)


def fit_tables(
    problem: Problem,
    measured: tuple[Estimate, ...],
    bigger: tuple[Estimate, ...],
    rng: np.random.Generator,
    concordances: Sequence[Concordance] = (),
) -> Fitted:
    """Return the model of one-ways, pairs and bigger tables.

    Parameters
    ----------
    problem : Problem
        Its structural zeros have been applied to all measurements.
    measured : tuple of Estimate
        Pairs with their measurements, and with what was known before these.
    bigger : tuple of Estimate
        The same for tables of three and more attributes.
    rng : numpy.random.Generator
    concordances : sequence of Concordance, optional
    """
    domain, zeros, unbiased = problem.domain, problem.zeros, problem.channels.unbiased
    pairs = estimate_pairs(problem, measured, rng, concordances)
    # A table with structural zeros omits rows that break a constraint: error bars of one-ways do not use it.
    whole = (m.measured for m in measured if zeros.of(domain.project(m.attributes)).all())
    combined = tuple(map(unbiased, combine_one_ways(domain, (*problem.one_ways, *whole))))
    shared = problem.shared(combined)
    two_way = tuple(replace(pair, measured=unbiased(pair.measured)) for pair in pairs.estimates)
    two_way = within_intervals(two_way, pairs.one_ways, shared, zeros)
    bigger = tuple(replace(table, measured=unbiased(table.measured)) for table in bigger)
    found = (*two_way, *denoise_bigger(bigger, tuple(t.table for t in two_way), pairs.one_ways, zeros))
    certainties = (*map(one_way_certainty, combined, pairs.one_ways), *table_certainties(found, combined))
    return Fitted(shared, pairs.one_ways, tuple(t.table for t in found), pairs.total, certainties)


def predicted_by_pairs(
    problem: Problem,
    sets: tuple[Attributes, ...],
    pairs: Pairs,
    rng: np.random.Generator,
    blocks: Merging | None = None,
) -> tuple[tuple[Marginal, ...], float]:
    """Return the counts of sets of attributes that the pairs predict, and their variance over the count.

    Records are made from the pairs and counted, in blocks of codes if these are given. With very many pairs
    they have the attributes of the sets alone. What these share through others is then not predicted.
    """
    domain, possible = problem.domain, problem.zeros
    many = len(pairs.tables) > MOST_TABLES and not possible.masks
    needed = set(chain.from_iterable(sets) if many else domain)
    names = tuple(name for name in domain if name in needed)
    one_ways = tuple(table for table in pairs.one_ways if needed.issuperset(table.attributes))
    tables = tuple(table for table in pairs.tables if needed.issuperset(table.attributes))
    tables += possible.missing_from(pairs.tables, pairs.one_ways)
    lookups = ROUGH * sum(len(table.attributes) for table in tables)
    enough = min(round(pairs.total), MOST_RECORDS, MOST_LOOKUPS // max(lookups, 1))
    records = synthesise(domain.project(names), one_ways, tables, enough, rng, sweeps=ROUGH, zeros=possible)
    scatter = pairs.total / len(records)
    records = records if blocks is None else blocks.project(names).merge(records)
    return expected_by(records, sets, pairs.total), scatter
