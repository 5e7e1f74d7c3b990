"""From measured tables to a fitted model: all that follows the last question. It reads answers only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from privsyn.inference.consistency import average_one_ways, combine_one_ways, estimate_total
from privsyn.inference.error_bars import one_way_certainty, table_certainties
from privsyn.inference.fitted import Fitted
from privsyn.inference.higher_order import Unexplained, denoise_bigger, expected_by
from privsyn.inference.ordered.concordance import Concordance, within_intervals
from privsyn.inference.ordered.tails import Tails
from privsyn.inference.pairs import Pairs, estimate_pairs
from privsyn.marginals.channel import NO_CHANNELS, Channels
from privsyn.marginals.domain import Attributes
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.marginals.types import Floats
from privsyn.synthesis.synthesise import synthesise

MOST_RECORDS = 100_000  # synthesised to find what the pairs leave unexplained
MOST_LOOKUPS = 2 * 10**9  # of cells, to synthesise them: with very many tables, fewer records are made
MOST_TABLES = 5_000  # of pairs that are all synthesised: those of 100 columns
ROUGH = 2  # sweeps over them: unexplained departures show long before the fit is exact

BiggerTables = Sequence[tuple[Unexplained, Measurement]]


def settled_one_ways(
    merging: Merging,
    one_ways: tuple[Measurement, ...],
    possible: StructuralZeros,
    tails: Tails,
    channels: Channels = NO_CHANNELS,
) -> tuple[Marginal, ...]:
    """Return the estimated one-way tables, by the one-way answers alone."""
    total = estimate_total(one_ways)
    domain, unbiased = merging.merged, channels.unbiased
    return possible.settle(average_one_ways(domain, one_ways, total, tails.settle, unbiased))


def fit_one_ways(
    merging: Merging,
    one_ways: tuple[Measurement, ...],
    possible: StructuralZeros,
    tails: Tails,
    channels: Channels = NO_CHANNELS,
) -> Fitted:
    """Return the model of one-way tables alone."""
    margins = settled_one_ways(merging, one_ways, possible, tails, channels)
    certainties = tuple(map(one_way_certainty, map(channels.unbiased, one_ways), margins))
    return Fitted(tails.share(one_ways), margins, (), estimate_total(one_ways), certainties)


def fit_tables(
    merging: Merging,
    one_ways: tuple[Measurement, ...],
    measured: tuple[Measurement, ...],
    bigger: BiggerTables,
    scores: list[Floats],
    rng: np.random.Generator,
    possible: StructuralZeros,
    tails: Tails,
    channels: Channels = NO_CHANNELS,
    concordances: Sequence[Concordance] = (),
) -> Fitted:
    """Return the model of one-ways, pairs and bigger tables.

    Parameters
    ----------
    merging : Merging
        To the codes in which the tables were measured.
    one_ways : tuple of Measurement, one per attribute
    measured : tuple of Measurement over two attributes
    bigger : sequence of (Unexplained, Measurement)
    scores : list of arrays, one per pair
        Log-likelihoods of the dispersion of each pair, before it was measured.
    rng : numpy.random.Generator
    possible : StructuralZeros
        They have been applied to all measurements.
    tails : Tails
    channels : Channels, optional
        Of the columns that were randomised. Their measurements are not unbiased yet.
    concordances : sequence of Concordance, optional
    """
    domain = merging.merged
    pairs = estimate_pairs(domain, one_ways, measured, scores, rng, possible, tails, channels, concordances)
    unbiased = tuple(map(channels.unbiased, (*measured, *(m for _, m in bigger))))
    left = [*pairs.left, *(candidate.left(m) for candidate, m in bigger)]
    # A table with structural zeros omits rows that break a constraint: error bars of one-ways do not use it.
    whole = tuple(m for m in measured if possible.of(domain.project(m.attributes)).all())
    combined = tuple(map(channels.unbiased, combine_one_ways(domain, (*one_ways, *whole))))
    shared = tails.share(combined)
    two_way = within_intervals(pairs.tables, unbiased[: len(measured)], pairs.one_ways, shared, possible)
    tables = (*two_way, *denoise_bigger(tuple(bigger), two_way, pairs.one_ways, possible))
    certain = table_certainties(unbiased, left, tables, combined)
    certainties = (*map(one_way_certainty, combined, pairs.one_ways), *certain)
    return Fitted(shared, pairs.one_ways, tables, pairs.total, certainties)


def predicted_by_pairs(
    merging: Merging,
    sets: tuple[Attributes, ...],
    pairs: Pairs,
    rng: np.random.Generator,
    possible: StructuralZeros,
    blocks: Merging | None = None,
) -> tuple[tuple[Marginal, ...], float]:
    """Return the counts of sets of attributes that the pairs predict, and their variance over the count.

    Records are made from the pairs and counted, in blocks of codes if these are given. With very many pairs
    they have the attributes of the sets alone. What these share through others is then not predicted.
    """
    many = len(pairs.tables) > MOST_TABLES and not possible.masks
    needed = set(chain.from_iterable(sets) if many else merging.merged)
    names = tuple(name for name in merging.merged if name in needed)
    one_ways = tuple(table for table in pairs.one_ways if needed.issuperset(table.attributes))
    tables = tuple(table for table in pairs.tables if needed.issuperset(table.attributes))
    tables += possible.missing_from(pairs.tables, pairs.one_ways)
    lookups = ROUGH * sum(len(table.attributes) for table in tables)
    enough = min(round(pairs.total), MOST_RECORDS, MOST_LOOKUPS // max(lookups, 1))
    domain = merging.merged.project(names)
    records = synthesise(domain, one_ways, tables, enough, rng, sweeps=ROUGH, zeros=possible)
    scatter = pairs.total / len(records)
    records = records if blocks is None else blocks.project(names).merge(records)
    return expected_by(records, sets, pairs.total), scatter
