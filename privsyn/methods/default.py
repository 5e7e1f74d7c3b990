"""The default: PrivSyn's stages, each in the form that errs least.

Pairs are scored against the released one-ways (a quarter of InDif's noise), selected and given their
budget in one convex step, and drawn towards what a latent-class model of all pairs expects. A second look
goes to bigger tables that the pairs do not explain, or to the pairs once more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

import numpy as np

from privsyn.inference.allocation import allocate_by_error
from privsyn.inference.binning import Axis
from privsyn.inference.consistency import (
    average_one_ways,
    combine_measurements,
    combine_one_ways,
    estimate_total,
)
from privsyn.inference.dispersion import pooled_dispersions
from privsyn.inference.error_bars import one_way_certainty, table_certainty
from privsyn.inference.fitted import Fitted
from privsyn.inference.higher_order import (
    Unexplained,
    candidates,
    denoise_bigger,
    expected_by,
    score_bigger,
)
from privsyn.inference.pairs import Pairs, estimate_pairs, independent_pairs, score_pairs
from privsyn.inference.rare_values import merge_rare
from privsyn.inference.smoothing import in_runs
from privsyn.marginals.domain import Attributes, Domain
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.marginals.types import Floats
from privsyn.methods.budget import FIRST_LOOK, Split
from privsyn.private.measure import PrivateTable
from privsyn.progress import Progress
from privsyn.synthesis.synthesise import synthesise

ANY = 2**31  # values: none are too many
MANY_VALUES = 500  # an attribute of more has its rare values pooled: pairs of such are too large to count
MOST_RECORDS = 100_000  # made to see what the pairs leave unexplained
MOST_LOOKS = (
    2 * 10**9
)  # at cells of tables, to make them: of very many tables there is time for fewer records
ROUGH = 4  # sweeps over them: what is left unexplained shows long before they fit to the last
MOST_PAIRS = 50_000  # measured: those of 300 attributes. With more no sample could be made
SAMPLING_DISPERSION = 1.0  # an independent table already scatters so much: no pair is thought more certain
BIGGER = 0.2  # weight of an error in a bigger table, beside one in a pair
TARGET = 4.0  # weight of an error in a table that holds the target, beside one in another
SMALL_FIRST = 0.25  # power of its cells by which an error weighs less: models learn from small tables


def learn(
    private: PrivateTable,
    rho: float,
    rng: np.random.Generator,
    report: Progress,
    *,
    target: str | None = None,
    axes: Mapping[str, Axis] = MappingProxyType({}),
    possible_after: Callable[[Merging], StructuralZeros] = lambda _: NO_ZEROS,
    doubtful: Collection[str] = (),
) -> Fitted:
    """Ask for one-ways, for how far each pair departs from independence, and for the tables that pay.

    Parameters
    ----------
    private : PrivateTable
    rho : float
        The budget; all of it is spent.
    rng : numpy.random.Generator
        For arithmetic on answers: it draws no noise.
    report : callable
    target : str, optional
        An attribute whose relations to the others matter most.
    axes : mapping of an attribute to its Axis
        Those counted in fine cells, which the first look joins to groups.
    possible_after : function of a Merging
        The public zeros among merged codes.
    doubtful : collection of attributes
        Those whose values were found: nobody may hold what stands for the others, or lie at the bounds.
    """
    report("counting", 0, 4)
    private, merging, one_ways, split = _one_ways(private, rho, axes, doubtful, predict=target is not None)
    sets = candidates(private.domain)
    if not sets:
        split = split.without_scores()
    possible = possible_after(merging)
    total = estimate_total(one_ways)
    margins = possible.settle(average_one_ways(private.domain, one_ways, total))
    if not split.pairs:
        report("counting", 4, 4)
        return Fitted(merging, margins, (), total, tuple(map(one_way_certainty, one_ways, margins)))
    report("counting", 1, 4)

    expected = independent_pairs(private.domain, margins, possible)
    blocks = in_runs(private.domain, margins)
    scores = _score(private, one_ways, expected, blocks, split.departures)
    report("counting", 2, 4)

    measured, scores = _first_look(private, expected, scores, split.pairs, target)
    measured = tuple(map(possible.clean, measured))
    pairs = estimate_pairs(private.domain, one_ways, measured, scores, blocks, rng, possible)
    report("counting", 3, 4)

    unexplained = _unexplained(private, sets, pairs, split.scores, rng, possible)
    measured, bigger = _second_look(private, measured, pairs.left, unexplained, split.second_look, target)
    measured = tuple(map(possible.clean, measured))
    bigger = tuple((candidate, possible.clean(m)) for candidate, m in bigger)
    pairs = estimate_pairs(private.domain, one_ways, measured, scores, blocks, rng, possible)
    tables = (*pairs.tables, *denoise_bigger(bigger, pairs.tables, pairs.one_ways, possible))
    looks = (*measured, *(m for _, m in bigger))
    left = [*pairs.left, *(candidate.left(m) for candidate, m in bigger)]
    # A table with public zeros does not count rows that break a constraint: error bars hold without it.
    whole = tuple(m for m in measured if possible.of(m.marginal.domain).all())
    heard = combine_one_ways(private.domain, (*one_ways, *whole))
    certain = (table_certainty(m, v, t, heard) for m, v, t in zip(looks, left, tables, strict=True))
    report("counting", 4, 4)
    of_columns = map(one_way_certainty, heard, pairs.one_ways)
    return Fitted(merging, pairs.one_ways, tables, pairs.total, (*of_columns, *certain))


def _one_ways(
    private: PrivateTable, rho: float, axes: Mapping[str, Axis], doubtful: Collection[str], *, predict: bool
) -> tuple[PrivateTable, Merging, tuple[Measurement, ...], Split]:
    """The one-ways in two looks, and the private table in merged codes.

    The first look tells how long the second should be, and joins fine cells: the sum of many would be far
    noisier than a group counted as such. Rare values are told by both looks.
    """
    first = private.one_ways(rho * (FIRST_LOOK if len(private.domain) > 1 else 1.0))
    total = estimate_total(first)
    kept = merge_rare(first, total, spared=MANY_VALUES, axes=axes).merged  # apart, by this look alone
    split = Split.for_domain(rho, kept, total, predict=predict)
    joined = merge_rare(first, total, spared=ANY, axes=axes)
    private = private.merge(joined)
    one_ways = tuple(map(joined.merge_counts, first))
    if split.one_ways:
        one_ways = combine_measurements(one_ways, private.one_ways(split.one_ways))
    spared = MANY_VALUES if split.pairs else ANY
    pooled = merge_rare(one_ways, estimate_total(one_ways), spared=spared, doubtful=doubtful)
    one_ways = tuple(map(pooled.merge_counts, one_ways))
    return private.merge(pooled), joined.then(pooled), one_ways, split


def _score(
    private: PrivateTable,
    one_ways: tuple[Measurement, ...],
    expected: tuple[Marginal, ...],
    blocks: Merging,
    rho: float,
) -> list[Floats]:
    """What is to be known of the dispersion of each pair's blocks before any pair is measured."""
    merged = tuple(map(blocks.merge_table, expected))
    departures, sigma = private.departures(merged, rho, blocks)
    return score_pairs(departures, sigma, merged, tuple(map(blocks.merge_counts, one_ways)))


def _first_look(
    private: PrivateTable,
    expected: tuple[Marginal, ...],
    scores: list[Floats],
    rho: float,
    target: str | None,
) -> tuple[tuple[Measurement, ...], list[Floats]]:
    """The pairs that pay, measured; and their scores."""
    dispersions = np.maximum(pooled_dispersions(scores), SAMPLING_DISPERSION)
    variances = [dispersion * pair.counts for dispersion, pair in zip(dispersions, expected, strict=True)]
    attributes = tuple(pair.attributes for pair in expected)
    rhos = _most(variances, rho, _weights(private.domain, attributes, target))
    chosen = np.flatnonzero(rhos)
    measured = private.marginals(tuple(attributes[i] for i in chosen), rhos[chosen])
    return measured, [scores[i] for i in chosen]


def _most(variances: list[Floats], rho: float, weights: Floats) -> Floats:
    """The budget of each pair, of which at most `MOST_PAIRS` get any: those that would get most of all."""
    rhos = allocate_by_error(variances, rho, weights=weights)
    if np.count_nonzero(rhos) <= MOST_PAIRS:
        return rhos
    kept = np.sort(np.argsort(-rhos, kind="stable")[:MOST_PAIRS])
    most = np.zeros(len(rhos))
    most[kept] = allocate_by_error([variances[i] for i in kept], rho, weights=weights[kept])
    return most


def _unexplained(
    private: PrivateTable,
    sets: tuple[Attributes, ...],
    pairs: Pairs,
    rho: float,
    rng: np.random.Generator,
    possible: StructuralZeros,
) -> tuple[Unexplained, ...]:
    """The sets of attributes of which records made from the pairs tell least."""
    if not sets:
        return ()
    tables = (*pairs.tables, *possible.missing_from(pairs.tables, pairs.one_ways))
    looks = ROUGH * sum(len(table.attributes) for table in tables)
    enough = min(round(pairs.total), MOST_RECORDS, MOST_LOOKS // max(looks, 1))
    records = synthesise(private.domain, pairs.one_ways, tables, enough, rng, sweeps=ROUGH, possible=possible)
    found = expected_by(records, sets, pairs.total)
    departures, sigma = private.departures(found, rho)
    return score_bigger(departures, sigma, found, pairs.one_ways, pairs.total / len(records))


def _second_look(
    private: PrivateTable,
    pairs: tuple[Measurement, ...],
    left: tuple[Floats, ...],
    sets: tuple[Unexplained, ...],
    rho: float,
    target: str | None,
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
    attributes = (*(m.attributes for m in pairs), *(s.expected.attributes for s in sets))
    kind = np.repeat([1.0, BIGGER], [len(pairs), len(sets)])
    weights = kind * _weights(private.domain, attributes, target)
    rhos = allocate_by_error([*left, *(s.variance for s in sets)], rho, weights=weights)
    chosen = np.flatnonzero(rhos).tolist()
    looks = private.marginals(tuple(attributes[i] for i in chosen), rhos[chosen])
    measured = dict(zip(chosen, looks, strict=True))
    again = tuple(
        combine_measurements((m,), (measured[i],))[0] if i in measured else m for i, m in enumerate(pairs)
    )
    bigger = ((s, measured[i]) for i, s in enumerate(sets, start=len(pairs)) if i in measured)
    return again, tuple(bigger)


def _weights(domain: Domain, tables: tuple[Attributes, ...], target: str | None) -> Floats:
    """How much an error in each table matters."""
    cells = np.array([domain.project(attributes).cells for attributes in tables], float)
    return np.where([target in attributes for attributes in tables], TARGET, 1.0) * cells**-SMALL_FIRST
