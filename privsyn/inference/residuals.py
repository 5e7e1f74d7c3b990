r"""All pairs and triples by their residuals: what each table adds to the tables over fewer of its attributes.

A table of counts repeats what its margins say. In a triple of binary attributes seven eighths of a
measurement do. Residuals repeat nothing, and :math:`\prod (1 - 1/k)` of the budget gives them the same noise.
Where cells are few, all triples then cost less than a choice among pairs.

The residual of a set S of attributes is part of every table over S and others. It has the weight
:math:`w_S`, the sum over these tables. With noise variance :math:`c_S / 2 \rho_S`, the weighted sum of
variances is least at :math:`\rho_S \propto \sqrt{c_S w_S}`.

References
----------
Xiao et al., "An optimal and scalable matrix mechanism for noisy marginals under convex loss functions",
NeurIPS 2023 (ResidualPlanner).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations
from math import comb, fsum, prod, sqrt

import numpy as np

from privsyn.inference.consistency import estimate_total, variance_of_total
from privsyn.inference.higher_order import MOST_CELLS, MOST_SETS
from privsyn.inference.measured_columns import MeasuredColumns
from privsyn.marginals.domain import Attributes, Domain, Floats
from privsyn.marginals.known_totals import EXACT
from privsyn.marginals.marginal import Marginal, Measurement, lift
from privsyn.marginals.tolerances import TINY_VARIANCE

LARGEST_RESIDUAL = 3  # attributes of a residual


def residual_sets(measured_columns: MeasuredColumns) -> tuple[Attributes, ...]:
    """Return all sets of one to three attributes, or none if some cannot be measured by their residuals.

    Every attribute has at least two codes, without an order, and was not randomised. No constraint rules out
    a cell. Triples are few, and have few cells. Sets whose exact counts are public are left out.
    """
    domain, sizes = measured_columns.domain, sorted(measured_columns.domain.sizes)
    few = len(sizes) >= LARGEST_RESIDUAL and comb(len(sizes), LARGEST_RESIDUAL) <= MOST_SETS
    if not few or sizes[0] < 2 or prod(sizes[-LARGEST_RESIDUAL:]) > MOST_CELLS or max(domain.ordered) > 2:
        return ()
    if measured_columns.zeros.masks or measured_columns.channels.random(domain.names):
        return ()
    by_size = (combinations(domain.names, size) for size in range(1, LARGEST_RESIDUAL + 1))
    return tuple(s for s in chain.from_iterable(by_size) if not measured_columns.exact.covers(s))


def exact_residuals(measured_columns: MeasuredColumns) -> dict[Attributes, Measurement]:
    """Return the residuals of the sets of two and three attributes whose exact counts are public."""
    covered = (table.attributes for table in measured_columns.exact_tables)
    sets = (s for names in covered for size in (2, LARGEST_RESIDUAL) for s in combinations(names, size))
    counts = map(measured_columns.exact.counts, dict.fromkeys(sets))
    return {table.attributes: Measurement(table.residual, EXACT) for table in counts}


def residual_cost(domain: Domain) -> float:
    """Return what a residual costs, over what a table of counts with the same noise costs.

    >>> residual_cost(Domain(("a", "b", "c"), (2, 2, 2)))
    0.125
    """
    return prod(1 - 1 / size for size in domain.sizes)


def residual_budgets(
    domain: Domain, sets: Sequence[Attributes], weights: Floats, rho: float
) -> dict[Attributes, float]:
    """Split `rho` over the residuals of `sets` for the least weighted variance of all tables over them.

    Parts of a set that are not among `sets` are known, and cost nothing.

    One-way tables, pairs and triples count equally: the weights of each size are scaled to a sum of 1.

    Parameters
    ----------
    domain : Domain
    sets : sequence of attributes
    weights : array of shape (sets,)
        Weight of an error in the table over each set, relative to others of its size.
    rho : float

    Examples
    --------
    >>> coins = Domain(("a", "b"), (2, 2))
    >>> budgets = residual_budgets(coins, [("a",), ("b",), ("a", "b")], np.ones(3), 1.0)
    >>> [round(budget, 3) for budget in budgets.values()]
    [0.388, 0.388, 0.224]
    """
    sizes = np.array(list(map(len, sets)))
    shares = weights / np.bincount(sizes, weights)[sizes]
    gathered = dict.fromkeys(sets, 0.0)
    for attributes, share in zip(sets, shares.tolist(), strict=True):
        for part in filter(gathered.__contains__, _parts(attributes)):
            gathered[part] += share
    parts = {s: sqrt(residual_cost(domain.project(s)) * weight) for s, weight in gathered.items()}
    total = fsum(parts.values())
    return {s: rho * (part / total) for s, part in parts.items()}


def _parts(attributes: Attributes) -> Iterator[Attributes]:
    """Yield all sets of at least one of the attributes, smaller ones first."""
    return chain.from_iterable(combinations(attributes, size) for size in range(1, len(attributes) + 1))


def one_ways_with(
    one_ways: tuple[Measurement, ...], residuals: Mapping[Attributes, Measurement]
) -> tuple[Measurement, ...]:
    r"""Return the one-way tables, combined with their residuals; each keeps the sum that all tables estimate.

    A table without a residual is known, and stays.

    A table with the noise variance v and its residual are averaged with weights s and 1 - s, by precision.
    What the residual measures then has the variance s v. The sum over the size has
    :math:`s^2 v + (1 - s^2) V`, where V is the variance of the estimated total over the size. The larger of
    both is stated, so that no sum of cells is less certain than stated.
    """
    total, total_variance = estimate_total(one_ways), variance_of_total(one_ways)
    combined = []
    for measured in one_ways:
        if (residual := residuals.get(measured.attributes)) is None:
            combined.append(measured)
            continue
        size = residual.marginal.counts.size
        noise, added = (
            np.maximum(measured.variance, TINY_VARIANCE),
            np.maximum(residual.variance, TINY_VARIANCE),
        )
        share = added / (noise + added)
        counts = share * measured.marginal.counts + (1 - share) * (residual.marginal.counts + total / size)
        variance = np.maximum(share * noise, share**2 * noise + (1 - share**2) * (total_variance / size))
        combined.append(Measurement(Marginal(measured.marginal.domain, counts), variance))
    return tuple(combined)


def whole_tables(
    residuals: Mapping[Attributes, Measurement], one_ways: tuple[Measurement, ...]
) -> dict[Attributes, Measurement]:
    """Return a measurement of each pair and triple, from its residual and the residuals of its parts.

    The stated variance is the noise variance of the table's own residual, as if cells were independent. The
    margins are at least as certain as margins of such cells: otherwise the variance is raised to the variance
    of the total. So a posterior that takes the margins from elsewhere has the right noise, and intervals are
    not too narrow.

    Parameters
    ----------
    residuals : mapping from attributes to Measurement
        Of all sets of two and three attributes; others are not read.
    one_ways : tuple of Measurement, one per attribute
    """
    total, total_variance = estimate_total(one_ways), variance_of_total(one_ways)
    parts = {m.attributes: m.marginal.residual for m in one_ways}
    parts |= {s: m.marginal for s, m in residuals.items() if len(s) > 1}
    tables = {}
    for attributes, measured in residuals.items():
        if len(attributes) < 2:
            continue
        domain = measured.marginal.domain
        counts = np.full(domain.shape, total / domain.cells)
        for part in _parts(attributes):
            counts = counts + lift(parts[part], domain) * (parts[part].domain.cells / domain.cells)
        variance = np.maximum(measured.variance, total_variance / domain.cells)
        tables[attributes] = Measurement(Marginal(domain, counts), variance)
    return tables
