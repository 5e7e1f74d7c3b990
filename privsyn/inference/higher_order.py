"""Tables of three to five attributes that the pairs do not explain.

Records are synthesised from the pairs alone and counted over every small enough set of attributes. The noisy
distance of the private table from these counts scores each set. The sets that depart most may be measured.

The ordered codes of an attribute are joined into few groups, so that tables with numbers have few cells too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import comb, prod, sqrt

import numpy as np

from privsyn.inference.consistency import denoise
from privsyn.inference.measured_columns import Estimate, sizes_in_blocks
from privsyn.inference.prior.dispersion import (
    LOGS,
    MEAN_OF_ABSOLUTE,
    departure_likelihood,
    deviation_likelihoods,
    pooled_dispersions,
)
from privsyn.marginals.counting import Tables, block_of
from privsyn.marginals.domain import Attributes, Codes, Domain, Floats, Mask, Records
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Grouping, Marginal, Measurement, firsts, groups_at, lift
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros, product

LARGEST = 5  # attributes of a table; three if one of them is ordered
MOST_CELLS = 6000
MOST_CODES = 2**18  # cells of a set over all codes: they are kept, 2 MB, until the set is rejected
MOST_SETS = 1000  # scored sets of one size; limited by run time
MOST_WITH_TARGET = 500  # of the target with three or four others: all of 12 others, the first of more
INSIDE_ERROR = 0.1  # relative error of the part of a departure that smaller sets inside explain
SMOOTHING = 0.05  # share of independence in expected counts: cells without records are still possible
MOST_MEASURED = 60  # sets that may be measured; with 20, triples of nltcs at epsilon 5 err more
FINER_GROUPS = 16, 8  # of ordered codes in a set that is measured, where noise allows; scored in 4
CLEAR_CELL = 5.0  # mean count of a cell of finer groups, in standard deviations of its noise
ITERATIONS = 5  # of fitting single codes to the counts of their groups


def candidates(
    domain: Domain,
    target: str | None = None,
    important: Sequence[Attributes] = (),
    first: Attributes = (),
    largest: int = LARGEST,
) -> tuple[Attributes, ...]:
    """Return the sets of three to `largest` attributes which are to be scored.

    Few sets are scored with less noise than many. Of three attributes those with the fewest cells are scored,
    at most `MOST_SETS`. With an ordered attribute they hold the target or, without a target, a nominal
    attribute, which may be what a model predicts.

    Without a target, four and five are nominal attributes, and a size with more than `MOST_SETS` sets is left
    out. With a target all hold it, and as many other attributes as have at most `MOST_WITH_TARGET` such sets:
    those named `first`, then those of the fewest cells. Sets that are `important` are always candidates,
    unless they have more than `MOST_CODES` cells.

    Examples
    --------
    >>> len(candidates(Domain(tuple("abcd"), (2, 2, 2, 2))))
    5
    >>> candidates(Domain(("a", "b"), (2, 2)))
    ()
    >>> [names for names in candidates(Domain(tuple("abcd"), (2, 2, 2, 2)), "d") if len(names) == 4]
    [('a', 'b', 'c', 'd')]
    """
    sizes = [*sizes_in_blocks(domain).values()]
    numbers = {axis for axis, ordered in enumerate(domain.ordered) if ordered > 2}
    free = np.array([axis not in numbers for axis in range(len(domain))])
    wanted = free if target is None else np.array([name == target for name in domain.names])
    chosen = _triples(np.array(sizes, np.float64), wanted, free) if len(domain) > 2 else []
    for size in range(4, largest + 1):
        if target is not None:
            sets = _with_target(domain, domain.names.index(target), size, first)
        elif comb(len(domain), size) > MOST_SETS:
            break
        else:
            sets = [s for s in combinations(range(len(domain)), size) if numbers.isdisjoint(s)]
        small = ((cells, axes) for axes in sets if (cells := prod(sizes[a] for a in axes)) <= MOST_CELLS)
        chosen += [axes for _, axes in sorted(small)]
    chosen = list(dict.fromkeys([*(domain.axes(s) for s in important if len(s) > 2), *chosen]))
    countable = (axes for axes in chosen if prod(domain.sizes[axis] for axis in axes) <= MOST_CODES)
    return tuple(tuple(domain.names[axis] for axis in axes) for axes in countable)


def _with_target(domain: Domain, target: int, size: int, first: Attributes) -> list[tuple[int, ...]]:
    """Return sets of the target and of others, of as many as have at most `MOST_WITH_TARGET` such sets."""
    sizes = sizes_in_blocks(domain)
    by_cells = sorted(domain.names, key=lambda name: sizes[name])
    features = [axis for axis in domain.axes(tuple(dict.fromkeys([*first, *by_cells]))) if axis != target]
    number = size - 1
    while number < len(features) and comb(number + 1, size - 1) <= MOST_WITH_TARGET:
        number += 1
    return [tuple(sorted((*axes, target))) for axes in combinations(features[:number], size - 1)]


def by_label(target: str, tables: Sequence[Marginal]) -> Attributes:
    """Return the attributes that have a table with the target, those first that tell most of it.

    Each class weighs alike: the sum over classes y of the L1 distance of P(attribute | y) from P(attribute).

    >>> domains = [Domain((name, "y"), (2, 2)) for name in "ab"]
    >>> by_label("y", [Marginal(domains[0], np.ones((2, 2))), Marginal(domains[1], np.eye(2))])
    ('b', 'a')
    """
    strengths = {}
    for table in tables:
        if target in table.attributes and len(table.attributes) == 2:
            axis = table.attributes.index(target)
            counts = np.moveaxis(table.counts, axis, -1)
            shares = counts / np.maximum(counts.sum(axis=0), 1e-9)
            overall = counts.sum(axis=1, keepdims=True) / max(float(counts.sum()), 1e-9)
            strengths[table.attributes[1 - axis]] = float(np.abs(shares - overall).sum())
    return tuple(sorted(strengths, key=lambda name: -strengths[name]))


def _triples(sizes: Floats, wanted: Mask, free: Mask) -> list[tuple[int, ...]]:
    """Return sets of three attributes by increasing number of cells; ties keep the attributes' order.

    One of the three is `wanted`, or all are `free`. Both are masks of shape (attributes,).
    1,000 attributes have 166 million such sets, so all sets with the same first attribute are ranked at once.
    """
    second, third = np.triu_indices(len(sizes), 1)
    cells = sizes[second] * sizes[third]
    one_wanted, both_free = wanted[second] | wanted[third], free[second] & free[third]
    begin = np.searchsorted(second, np.arange(len(sizes)), side="right")  # first pair after each attribute
    best, fewest = np.zeros((0, 3), np.int64), np.zeros(0)
    smallest = np.minimum.accumulate(cells[::-1])[::-1]  # of each pair and all after it
    for first, start in enumerate(begin[:-2].tolist()):
        if len(fewest) == MOST_SETS and sizes[first] * smallest[start] >= fewest[-1]:
            continue  # no set is better: 5,000 attributes have 21 billion
        all_three = sizes[first] * cells[start:]
        few = all_three < fewest[-1] if len(fewest) == MOST_SETS else all_three <= MOST_CELLS
        few &= wanted[first] | one_wanted[start:] | (free[first] & both_free[start:])
        indices = start + np.flatnonzero(few)
        added = np.stack([np.full(len(indices), first), second[indices], third[indices]], axis=1)
        best, fewest = np.concatenate([best, added]), np.append(fewest, all_three[few])
        order = np.argsort(fewest, kind="stable")[:MOST_SETS]
        best, fewest = best[order], fewest[order]
    return [tuple(axes) for axes in best.tolist()]


def expected_by(records: Records, sets: tuple[Attributes, ...], total: float) -> tuple[Marginal, ...]:
    """Return the counts of records over each set of attributes, scaled to `total`."""
    scale = np.float64(total / len(records))
    counted = Tables(records.domain, sets).count([block_of(records)])
    return tuple(Marginal(records.domain.project(s), c * scale) for s, c in zip(sets, counted, strict=True))


def score_higher_order(
    departures: Floats,
    sigmas: float | Floats,
    predicted: tuple[Estimate, ...],
    one_ways: tuple[Marginal, ...],
    scatter: float,
    pair_variances: tuple[Marginal, ...] = (),
) -> list[Estimate]:
    """Return the sets, those first that depart most from the counts that the pairs predict.

    A set departs at least as far as the smaller sets inside it. So their estimated variance adds to what its
    distance is expected to be, and its dispersion is what it adds to them.

    Parameters
    ----------
    departures : array of shape (sets,)
        Noisy L1 distances from `predicted`, in records.
    sigmas : float or array of shape (sets,)
        Standard deviation of the noise in each, in records.
    predicted : tuple of Estimate, one per set
        The counts that the pairs predict.
    one_ways : tuple of Marginal, one per attribute
    scatter : float
        Variance of a predicted count over that count, from sampling the records. It adds to a departure.
    pair_variances : tuple of Marginal, optional
        Variance of the cells of estimated pairs. It adds to a departure too, but no bigger table reduces it.
    """
    one_way = {table.attributes[0]: table for table in one_ways}
    likelihoods: list[Floats] = []
    scored: list[Estimate] = []
    variances: list[Marginal] = []
    scores = list(zip(predicted, departures.tolist(), np.broadcast_to(sigmas, len(predicted)), strict=True))
    for size in sorted({len(estimate.attributes) for estimate in predicted}):
        for estimate, departure, sigma in scores:
            if len(estimate.attributes) != size:
                continue
            table = estimate.table
            uncertainty = scatter * table.counts + _inherited(table, pair_variances)
            both = np.sqrt(uncertainty + _inherited(table, variances))
            inside = MEAN_OF_ABSOLUTE * float((both - np.sqrt(uncertainty)).sum())
            noise = float(np.hypot(sigma, INSIDE_ERROR * inside))
            spread = estimate.spread(table)
            likelihoods.append(departure_likelihood(departure - inside, noise, spread, uncertainty))
            scored.append(replace(estimate, table=_smoothed(table, one_way), evidence=likelihoods[-1]))
        dispersions = pooled_dispersions(likelihoods).tolist()
        scored = [replace(s, dispersion=d) for s, d in zip(scored, dispersions, strict=True)]
        variances = [Marginal(s.table.domain, s.variance) for s in scored]
    return sorted(scored, key=lambda estimate: -estimate.dispersion)


def _inherited(table: Marginal, variances: Sequence[Marginal]) -> Floats:
    """Return the variance of each cell that follows from the `variances` of smaller tables inside it."""
    inherited, names = np.zeros(table.domain.shape), set(table.attributes)
    for smaller in variances:
        if names.issuperset(smaller.attributes):
            sums = lift(table.project(smaller.attributes), table.domain)
            share = np.divide(table.counts, sums, out=np.zeros(table.domain.shape), where=sums > 0)
            inherited += lift(smaller, table.domain) * share**2
    return inherited


def unscored(predicted: tuple[Marginal, ...], one_ways: tuple[Marginal, ...]) -> tuple[Estimate, ...]:
    """Return estimates of sets that were not scored before they are measured."""
    one_way = {table.attributes[0]: table for table in one_ways}
    return tuple(Estimate(_smoothed(table, one_way)) for table in predicted)


def in_finer_groups(table: Estimate, one_ways: tuple[Marginal, ...], rho: float) -> Estimate:
    """Return an estimate in as many groups of ordered codes as stand out of the noise of a measurement.

    The mean cell of the finer groups holds at least `CLEAR_CELL` standard deviations of its noise. Expected
    counts are shared out by the one-ways, and deviations evenly: each of k cells in place of one has
    dispersion / k.

    Parameters
    ----------
    table : Estimate
        In groups as `groups_at` makes them, at a level that divides `FINER_GROUPS`; otherwise it stays.
    one_ways : tuple of Marginal
    rho : float
        Budget of the measurement, in zCDP.
    """
    one_way, coarse = {side.attributes[0]: side for side in one_ways}, table.table
    sides = tuple(one_way[name] for name in table.attributes)
    sizes, ordered = zip(*((side.domain.sizes[0], side.domain.ordered[0]) for side in sides), strict=True)
    codes = Domain(table.attributes, sizes, ordered)
    for level in FINER_GROUPS if table.grouping else ():
        even = tuple(groups_at(side, level) for side in sides)
        finer = Grouping(tuple(map(_refined, table.grouping.groups, even)))
        domain = finer.domain(codes)
        clear = coarse.total * sqrt(2 * rho) >= CLEAR_CELL * domain.cells
        if clear and coarse.domain.cells < domain.cells <= MOST_CELLS:
            break
    else:
        return table
    joined = tuple(side.join(Grouping((group,))) for side, group in zip(sides, finer.groups, strict=True))
    of_finer = zip(table.grouping.groups, finer.groups, strict=True)
    within = Grouping(tuple(group[firsts(fine)] for group, fine in of_finer))
    counts = within.scale(product(domain, joined).counts, coarse.counts)
    parts = domain.cells / coarse.domain.cells
    return replace(
        table,
        table=Marginal(domain, counts),
        grouping=finer,
        evidence=np.interp(LOGS + np.log(parts), LOGS, table.evidence),
        dispersion=table.dispersion / parts,
    )


def _refined(group: Codes, second: Codes) -> Codes:
    """Return the groups of codes that share a group of both groupings.

    Columns are estimated again after the first groups were made, so even groups may cross these.

    >>> _refined(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])).tolist()
    [0, 1, 2, 2]
    """
    both = group.astype(np.int64) * (int(second.max()) + 1) + second
    return np.unique(both, return_inverse=True)[1].astype(np.int32)


def measured_as(table: Estimate, measured: Measurement) -> Estimate:
    """Return an estimate of a bigger table with its measurement, and the posterior variance."""
    scatter = table.variance + measured.variance
    posterior_variance = np.divide(
        table.variance * measured.variance, scatter, out=np.zeros_like(scatter), where=scatter > 0
    )
    return replace(table, measured=measured, posterior_variance=posterior_variance)


def all_measured(
    answers: Sequence[Measurement], pairs: tuple[Marginal, ...], one_ways: tuple[Marginal, ...]
) -> tuple[Estimate, ...]:
    """Return estimates of tables that were measured without a score. Their deviations show their dispersions.

    Before the measurement a table has the counts that follow from its pairs without any interaction of more.
    """
    one_way = {table.attributes[0]: table for table in one_ways}
    expected = []
    for answer in answers:
        independent = product(answer.marginal.domain, tuple(one_way[name] for name in answer.attributes))
        expected.append(fit_margins(independent, margins_inside(answer.attributes, pairs, one_ways)))
    dispersions = pooled_dispersions(deviation_likelihoods(answers, [table.counts for table in expected]))
    scored = (Estimate(table, dispersion=d) for table, d in zip(expected, dispersions.tolist(), strict=True))
    return tuple(map(measured_as, scored, answers))


def denoise_higher_order(
    tables: tuple[Estimate, ...],
    pairs: tuple[Marginal, ...],
    one_ways: tuple[Marginal, ...],
    possible: StructuralZeros = NO_ZEROS,
) -> tuple[Estimate, ...]:
    """Return measured bigger tables shrunk towards the pairs' prediction, with the pairs as margins.

    With a target the smaller of these tables come first, and are margins of the larger. A larger table that
    is shrunk to the pairs alone would contradict what a smaller one inside shows.
    """
    sizes = np.array([0 if t.target is None else len(t.attributes) for t in tables])
    likelihoods: list[Floats] = []
    denoised: dict[int, Estimate] = {}
    for size in np.unique(sizes).tolist():
        indices = np.flatnonzero(sizes == size).tolist()
        smaller = (*pairs, *(estimate.table for estimate in denoised.values()))
        fine = [margins_inside(tables[i].attributes, smaller, one_ways) for i in indices]
        begun = [_first_estimate(tables[i], sides, possible) for i, sides in zip(indices, fine, strict=True)]
        evidence = deviation_likelihoods(
            [t.measured for t in begun], [t.table.counts for t in begun], [t.spread(t.table) for t in begun]
        )
        likelihoods += [t.evidence + e for t, e in zip(begun, evidence, strict=True)]
        dispersions = pooled_dispersions(likelihoods)[-len(begun) :]
        for i, t, sides, dispersion in zip(indices, begun, fine, dispersions.tolist(), strict=True):
            table = denoise(t.measured, t.table.counts, dispersion, t.margins, t.spread(t.table))
            if t.measured.grouping:
                table = _in_codes(table, t.measured.grouping, sides, possible)
            denoised[i] = replace(t, table=table)
    return tuple(denoised[i] for i in range(len(tables)))


def _first_estimate(table: Estimate, fine: tuple[Marginal, ...], possible: StructuralZeros) -> Estimate:
    """Return an estimate that has these margins, in the groups of its measurement."""
    axes = table.measured.marginal.domain.axes
    sides = tuple(side.join(table.measured.grouping.project(axes(side.attributes))) for side in fine)
    expected = table.table if table.measured.grouping else possible.fit(table.table, sides)
    return replace(table, table=fit_margins(expected, sides), margins=sides)


def _in_codes(
    groups: Marginal, grouping: Grouping, fine: tuple[Marginal, ...], possible: StructuralZeros
) -> Marginal:
    """Return counts of single codes that have the sums of their groups, and follow the sides inside these."""
    one_way = {name: side.project((name,)) for side in fine for name in side.attributes}
    alone = tuple(one_way[name] for name in groups.attributes)
    ordered = tuple(side.domain.ordered[0] for side in alone)
    domain = Domain(groups.attributes, tuple(map(len, grouping.groups)), ordered)
    table = fit_margins(possible.fit(product(domain, alone), fine), fine)
    for _ in range(ITERATIONS):
        scaled = Marginal(domain, grouping.scale(table.counts, groups.counts))
        table = fit_margins(scaled, fine, iterations=ITERATIONS)
    return table


def margins_inside(
    attributes: Attributes, pairs: tuple[Marginal, ...], one_ways: tuple[Marginal, ...]
) -> tuple[Marginal, ...]:
    """Return the tables of pairs and more inside a set, and the one-ways of attributes in none of them."""
    names = set(attributes)
    inside = tuple(pair for pair in pairs if names.issuperset(pair.domain.names))
    uncovered = names.difference(*(pair.attributes for pair in inside))
    return (*inside, *(o for o in one_ways if o.attributes[0] in uncovered))


def _smoothed(table: Marginal, one_way: dict[str, Marginal]) -> Marginal:
    """Return the table mixed with a share of independence."""
    product: Floats = np.array(table.total)
    for name in table.attributes:
        product = product * lift(one_way[name], table.domain) / one_way[name].total
    return Marginal(table.domain, (1 - SMOOTHING) * table.counts + SMOOTHING * product)
