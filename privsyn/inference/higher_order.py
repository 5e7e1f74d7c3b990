"""Tables of three to five attributes that the pairs do not explain.

Records are synthesised from the pairs alone and counted over every small enough set of attributes. The noisy
distance of the private table from these counts scores each set. The sets that depart most may be measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest
from itertools import combinations
from math import comb, prod

import numpy as np

from privsyn.inference.denoising import denoise
from privsyn.inference.prior.dispersion import (
    DISPERSIONS,
    departure_likelihood,
    pooled_dispersions,
    residual_likelihood,
)
from privsyn.marginals.coarse import coarsen, join
from privsyn.marginals.counting import Tables, block_of
from privsyn.marginals.domain import Attributes, Domain, Records
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement, lift
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros, product
from privsyn.marginals.types import Codes, Floats, keep

LARGEST = 5  # attributes of a table
MOST_CELLS = 6000
MOST_SETS = 1000  # scored sets of one size; limited by run time
SMOOTHING = 0.05  # share of independence in expected counts: cells without records are still possible
MOST_MEASURED = 20  # sets, those that depart most
ROUNDS = 5


@dataclass(frozen=True, eq=False)
class Unexplained:
    """A set of attributes with the counts that the pairs predict, and the prior variance around them.

    Parameters
    ----------
    expected : Marginal
    dispersion : float
        Variance of a cell about its expected count, over that count.
    likelihood : array of shape ``DISPERSIONS.shape``
        Log-likelihood of the dispersions, by the departure.
    """

    expected: Marginal
    dispersion: float
    likelihood: Floats

    def __post_init__(self) -> None:
        keep(self, "likelihood", dtype=np.float64)
        if self.likelihood.shape != DISPERSIONS.shape or not self.dispersion >= 0:
            raise ValueError(f"dispersion {self.dispersion}, likelihood of shape {self.likelihood.shape}")

    @property
    def variance(self) -> Floats:
        """Prior variance of each cell, in records squared."""
        return self.dispersion * self.expected.counts

    def left(self, measured: Measurement) -> Floats:
        """Return the posterior variance of each cell after the measurement."""
        scatter = self.variance + measured.variance
        return np.divide(
            self.variance * measured.variance, scatter, out=np.zeros_like(scatter), where=scatter > 0
        )


def candidates(domain: Domain) -> tuple[Attributes, ...]:
    """Return the sets of three, four and five attributes to be scored, those with the fewest cells.

    At most `MOST_SETS` of each size. A size above three with more sets than that is left out.

    Examples
    --------
    >>> len(candidates(Domain(tuple("abcd"), (2, 2, 2, 2))))
    5
    >>> candidates(Domain(("a", "b"), (2, 2)))
    ()
    """
    found = _triples(np.array(domain.sizes, np.float64)) if len(domain) > 2 else []
    for size in range(4, LARGEST + 1):
        if comb(len(domain), size) > MOST_SETS:
            break
        sets = combinations(range(len(domain)), size)
        small = (
            (cells, axes) for axes in sets if (cells := prod(domain.sizes[a] for a in axes)) <= MOST_CELLS
        )
        found += [axes for _, axes in nsmallest(MOST_SETS, small)]
    return tuple(tuple(domain.names[axis] for axis in axes) for axes in found)


def _triples(sizes: Floats) -> list[tuple[int, ...]]:
    """Return sets of three attributes by increasing number of cells; ties keep the attributes' order.

    1,000 attributes have 166 million such sets, so all sets with the same first attribute are ranked at once.
    """
    second, third = np.triu_indices(len(sizes), 1)
    cells = sizes[second] * sizes[third]
    begin = np.searchsorted(second, np.arange(len(sizes)), side="right")  # first pair after each attribute
    best, fewest = np.zeros((0, 3), np.int64), np.zeros(0)
    for first, start in enumerate(begin[:-2].tolist()):
        all_three = sizes[first] * cells[start:]
        few = all_three < fewest[-1] if len(fewest) == MOST_SETS else all_three <= MOST_CELLS
        places = start + np.flatnonzero(few)
        added = np.stack([np.full(len(places), first), second[places], third[places]], axis=1)
        best, fewest = np.concatenate([best, added]), np.append(fewest, all_three[few])
        order = np.argsort(fewest, kind="stable")[:MOST_SETS]
        best, fewest = best[order], fewest[order]
    return [tuple(axes) for axes in best.tolist()]


def expected_by(records: Records, sets: tuple[Attributes, ...], total: float) -> tuple[Marginal, ...]:
    """Return the counts of records over each set of attributes, scaled to `total`."""
    scale = np.float64(total / len(records))
    counted = Tables(records.domain, sets).count([block_of(records)])
    return tuple(Marginal(records.domain.project(s), c * scale) for s, c in zip(sets, counted, strict=True))


def score_bigger(
    departures: Floats,
    sigma: float,
    found: tuple[Marginal, ...],
    one_ways: tuple[Marginal, ...],
    scatter: float,
    uncertain: tuple[Marginal, ...] = (),
) -> tuple[Unexplained, ...]:
    """Return the sets that depart most from the counts that the pairs predict.

    Parameters
    ----------
    departures : array of shape (sets,)
        Noisy L1 distances from `found`, in records.
    sigma : float
        Standard deviation of their noise, in records.
    found : tuple of Marginal, one per set
    one_ways : tuple of Marginal, one per attribute
    scatter : float
        Variance of a count in `found` over that count, from sampling the records. It adds to a departure.
    """
    one_way = {table.attributes[0]: table for table in one_ways}
    expected = [_smoothed(table, one_way) for table in found]
    likelihoods = [
        departure_likelihood(
            departure,
            sigma,
            table.counts,
            scatter * table.counts + _of_pairs(table, uncertain),
        )
        for departure, table in zip(departures, expected, strict=True)
    ]
    scored = map(Unexplained, expected, pooled_dispersions(likelihoods).tolist(), likelihoods)
    return tuple(sorted(scored, key=lambda scored: -scored.dispersion)[:MOST_MEASURED])


def _of_pairs(table: Marginal, uncertain: tuple[Marginal, ...]) -> Floats:
    """Return the variance of the cells of a table that pairs predict, by the errors of these pairs."""
    variance = np.zeros(table.domain.shape)
    for pair in uncertain:
        if set(pair.attributes) <= set(table.attributes):
            sums = lift(table.project(pair.attributes), table.domain)
            share = np.divide(table.counts, sums, out=np.zeros(table.domain.shape), where=sums > 0)
            variance += lift(pair, table.domain) * share**2
    return variance


def unscored(found: tuple[Marginal, ...], one_ways: tuple[Marginal, ...]) -> tuple[Unexplained, ...]:
    """Return sets of attributes of whose departure nothing is known before they are measured."""
    one_way = {table.attributes[0]: table for table in one_ways}
    nothing = np.zeros(DISPERSIONS.shape)
    return tuple(Unexplained(_smoothed(table, one_way), 1.0, nothing) for table in found)


def denoise_bigger(
    measured: tuple[tuple[Unexplained, Measurement], ...],
    pairs: tuple[Marginal, ...],
    one_ways: tuple[Marginal, ...],
    possible: StructuralZeros = NO_ZEROS,
) -> tuple[Marginal, ...]:
    """Return measured bigger tables shrunk towards the pairs' prediction, with the pairs as margins."""
    fine = [margins_inside(m.attributes, pairs, one_ways) for _, m in measured]
    sides = [_in_groups(side, m) for (_, m), side in zip(measured, fine, strict=True)]
    expected = [
        fit_margins(p.expected if m.groups else possible.fit(p.expected, side), side).counts
        for (p, m), side in zip(measured, sides, strict=True)
    ]
    dispersions = pooled_dispersions(
        [
            p.likelihood + residual_likelihood(m.marginal.counts - e, e, m.variance)
            for (p, m), e in zip(measured, expected, strict=True)
        ]
    )
    found = map(denoise, (m for _, m in measured), expected, dispersions.tolist(), sides)
    return tuple(
        table if m.groups is None else _shared_out(table, m.groups, side, possible)
        for table, (_, m), side in zip(found, measured, fine, strict=True)
    )


def _in_groups(sides: tuple[Marginal, ...], measured: Measurement) -> tuple[Marginal, ...]:
    if measured.groups is None:
        return sides
    group = dict(zip(measured.attributes, measured.groups, strict=True))
    return tuple(coarsen(side, tuple(group[name] for name in side.attributes)) for side in sides)


def _shared_out(
    sums: Marginal, groups: tuple[Codes, ...], sides: tuple[Marginal, ...], possible: StructuralZeros
) -> Marginal:
    one_way = {name: side.project((name,)) for side in sides for name in side.attributes}
    sizes = tuple(len(group) for group in groups)
    ordered = tuple(one_way[name].domain.ordered[0] for name in sums.attributes)
    domain = Domain(sums.attributes, sizes, ordered)
    table = fit_margins(possible.fit(product(domain, tuple(one_way[n] for n in domain)), sides), sides)
    for _ in range(ROUNDS):
        now = join(table.counts, groups)
        ratio = np.divide(sums.counts, now, out=np.ones_like(now), where=now > 0)
        table = fit_margins(Marginal(domain, table.counts * ratio[np.ix_(*groups)]), sides, rounds=ROUNDS)
    return table


def margins_inside(
    attributes: Attributes, pairs: tuple[Marginal, ...], one_ways: tuple[Marginal, ...]
) -> tuple[Marginal, ...]:
    """Return the pairs inside a set of attributes, and the one-ways of attributes in none of them."""
    inside = tuple(pair for pair in pairs if set(pair.attributes) <= set(attributes))
    held = {name for pair in inside for name in pair.attributes}
    return (*inside, *(o for o in one_ways if o.attributes[0] in set(attributes) - held))


def _smoothed(table: Marginal, one_way: dict[str, Marginal]) -> Marginal:
    """Return the table mixed with a share of independence."""
    product: Floats = np.array(table.total)
    for name in table.attributes:
        product = product * lift(one_way[name], table.domain) / one_way[name].total
    return Marginal(table.domain, (1 - SMOOTHING) * table.counts + SMOOTHING * product)
