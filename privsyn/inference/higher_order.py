"""Tables of three to five attributes, where the pairs leave something unexplained.

Records made from the pairs alone say what each bigger table should hold if the pairs were all there is to
know. How far the private table departs from that is asked for every small enough set of attributes; those
that depart most may then be measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest
from itertools import combinations
from math import comb, prod

import numpy as np

from privsyn.inference.denoising import denoise
from privsyn.inference.dispersion import (
    DISPERSIONS,
    departure_likelihood,
    pooled_dispersions,
    residual_likelihood,
)
from privsyn.marginals.counting import Tables, block_of
from privsyn.marginals.domain import Attributes, Domain, Records
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement, lift
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.marginals.types import Floats, keep

LARGEST = 5  # attributes of a table
MOST_CELLS = 6000
MOST_SETS = 1000  # of one size: what there is time for
SMOOTHING = 0.05  # part of independence in what is expected: a cell that the records miss is not impossible
MOST_MEASURED = 20  # sets, those that depart most


@dataclass(frozen=True, eq=False)
class Unexplained:
    """A set of attributes, what its counts should be by the pairs, and how far they may depart.

    Parameters
    ----------
    expected : Marginal
    dispersion : float
        Variance of a cell about its expected count, over that count.
    likelihood : array of shape ``DISPERSIONS.shape``
        What the departure says about the dispersion.
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
        """The variance that is left in each cell once it has been measured."""
        scatter = self.variance + measured.variance
        return np.divide(
            self.variance * measured.variance, scatter, out=np.zeros_like(scatter), where=scatter > 0
        )


def candidates(domain: Domain) -> tuple[Attributes, ...]:
    """The sets of attributes to be scored: of three, of four and of five, those with the fewest cells.

    At most `MOST_SETS` of each size, and none of a size of which there are more in all, but for three.

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
    """Three attributes each, those with the fewest cells first, and of as many cells in their order.

    Of a thousand attributes there are 166 million: all that begin with one are looked at together.
    """
    second, third = np.triu_indices(len(sizes), 1)
    cells = sizes[second] * sizes[third]
    begin = np.searchsorted(second, np.arange(len(sizes)), side="right")  # of the pairs after an attribute
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
    """What records made from the pairs hold of each set of attributes, scaled to `total`."""
    scale = np.float64(total / len(records))
    counted = Tables(records.domain, sets).count([block_of(records)])
    return tuple(Marginal(records.domain.project(s), c * scale) for s, c in zip(sets, counted, strict=True))


def score_bigger(
    departures: Floats,
    sigma: float,
    found: tuple[Marginal, ...],
    one_ways: tuple[Marginal, ...],
    scatter: float,
) -> tuple[Unexplained, ...]:
    """The sets that depart most from what records made from the pairs hold of them.

    Parameters
    ----------
    departures : array of shape (sets,)
        Noisy L1 distances from `found`, in records.
    sigma : float, of their noise
    found : tuple of Marginal, one a set
    one_ways : tuple of Marginal, one an attribute
    scatter : float
        Variance of a count in `found` over that count, by the drawing of the records: it adds to a departure.
    """
    one_way = {table.attributes[0]: table for table in one_ways}
    expected = [_smoothed(table, one_way) for table in found]
    likelihoods = [
        departure_likelihood(departure, sigma, table.counts, scatter * table.counts)
        for departure, table in zip(departures, expected, strict=True)
    ]
    scored = map(Unexplained, expected, pooled_dispersions(likelihoods).tolist(), likelihoods)
    return tuple(sorted(scored, key=lambda scored: -scored.dispersion)[:MOST_MEASURED])


def denoise_bigger(
    measured: tuple[tuple[Unexplained, Measurement], ...],
    pairs: tuple[Marginal, ...],
    one_ways: tuple[Marginal, ...],
    possible: StructuralZeros = NO_ZEROS,
) -> tuple[Marginal, ...]:
    """The measured bigger tables drawn towards what the pairs expect, with the pairs as their margins."""
    sides = [_margins(m.attributes, pairs, one_ways) for _, m in measured]
    expected = [
        fit_margins(possible.fit(p.expected, side), side).counts
        for (p, _), side in zip(measured, sides, strict=True)
    ]
    dispersions = pooled_dispersions(
        [
            p.likelihood + residual_likelihood(m.marginal.counts - e, e, m.variance)
            for (p, m), e in zip(measured, expected, strict=True)
        ]
    )
    return tuple(map(denoise, (m for _, m in measured), expected, dispersions.tolist(), sides))


def _margins(
    attributes: Attributes, pairs: tuple[Marginal, ...], one_ways: tuple[Marginal, ...]
) -> tuple[Marginal, ...]:
    """The pairs inside a set of attributes, and the one-ways of those in none of them."""
    inside = tuple(pair for pair in pairs if set(pair.attributes) <= set(attributes))
    held = {name for pair in inside for name in pair.attributes}
    return (*inside, *(o for o in one_ways if o.attributes[0] in set(attributes) - held))


def _smoothed(table: Marginal, one_way: dict[str, Marginal]) -> Marginal:
    """The table with a part of independence mixed in."""
    product: Floats = np.array(table.total)
    for name in table.attributes:
        product = product * lift(one_way[name], table.domain) / one_way[name].total
    return Marginal(table.domain, (1 - SMOOTHING) * table.counts + SMOOTHING * product)
