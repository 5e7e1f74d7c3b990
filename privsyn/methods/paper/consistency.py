"""Make noisy marginals agree, as published (Section 4.2)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from privsyn.inference.consistency import EXACT, norm_sub
from privsyn.marginals.domain import Attributes
from privsyn.marginals.marginal import Marginal, Measurement, lift

ROUNDS = 60  # most repetitions of averaging and norm-sub
NEGLIGIBLE = 0.01  # records; a negative cell smaller than this ends the repetition


def make_consistent(measurements: tuple[Measurement, ...], total: float) -> tuple[Marginal, ...]:
    """Return non-negative tables with one total that agree on all shared attributes, to 1e-6 records.

    Parameters
    ----------
    measurements : tuple of Measurement
        Over any sets of attributes. One-way tables are treated like all others.
    total : float
        Number of records to which every table sums, above 0.

    Returns
    -------
    tuple of Marginal, one for each measurement, in the same order

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 4.3. The weights are from Qardaji et al.,
    "PriView", SIGMOD 2014, Section 4.4.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> one = Measurement(Marginal(Domain(("a",), (2,)), np.array([7.0, 3.0])), 1.0)
    >>> two = Measurement(Marginal(Domain(("a", "b"), (2, 2)), np.array([[2.0, 2.0], [3.0, 3.0]])), 0.5)
    >>> a, ab = make_consistent((one, two), 10.0)
    >>> a.counts.round(6).tolist(), ab.counts.round(6).tolist()
    ([5.5, 4.5], [[2.75, 2.75], [2.25, 2.25]])
    """
    shared = _shared_sets(tuple(m.attributes for m in measurements))
    weights = {
        attributes: {
            place: _precision(measurement, attributes)
            for place, measurement in enumerate(measurements)
            if set(attributes) <= set(measurement.attributes)
        }
        for attributes in shared
    }
    tables = [m.marginal for m in measurements]
    for _ in range(ROUNDS):
        tables = _agree(tables, weights, total)
        if min(float(table.counts.min()) for table in tables) > -NEGLIGIBLE:
            break
        tables = [Marginal(table.domain, norm_sub(table.counts, total)) for table in tables]
    return _without_negatives(_agree(tables, weights, total), total)


def _shared_sets(all_attributes: tuple[Attributes, ...]) -> list[Attributes]:
    """Return all sets of attributes that two tables share, closed under intersection, smallest first.

    Small sets come first, because an even correction over a larger set does not change a smaller set on which
    the tables already agree.
    """
    shared = {frozenset[str]()}
    new = {frozenset(a) & frozenset(b) for a, b in combinations(all_attributes, 2)}
    while new - shared:
        shared |= new
        new = {a & b for a, b in combinations(shared, 2)}
    return [tuple(sorted(attributes)) for attributes in sorted(shared, key=lambda s: (len(s), sorted(s)))]


def _agree(
    tables: list[Marginal], weights: dict[Attributes, dict[int, float]], total: float
) -> list[Marginal]:
    """Make the tables agree exactly by weighted averages over all shared sets; counts may be negative."""
    tables = list(tables)
    for attributes, weight in weights.items():
        projections = {i: tables[i].project(attributes) for i in weight}
        scale = sum(weight.values())
        mean = np.array(total)
        if attributes:
            mean = sum((weight[i] / scale * p.counts for i, p in projections.items()), np.array(0.0))
        for i, projection in projections.items():
            tables[i] = tables[i].spread(Marginal(projection.domain, mean - projection.counts))
    return tables


def _without_negatives(tables: list[Marginal], total: float) -> tuple[Marginal, ...]:
    """Mix in just enough of a positive, consistent family of tables that no cell is negative.

    The tables of the family are products of one positive distribution per attribute, so they agree. A mixture
    of two consistent families is consistent too, because agreement is linear.
    """
    positive = _positive_one_ways(tables)
    families = []
    for table in tables:
        product = np.array(total)
        for name in table.attributes:
            product = product * lift(positive[name], table.domain)
        families.append(product)
    share = 0.0
    for table, family in zip(tables, families, strict=True):
        short = np.minimum(table.counts, 0.0)
        share = max(share, float(np.max(-short / (family - short))))
    return tuple(
        Marginal(table.domain, np.maximum((1 - share) * table.counts + share * family, 0.0))
        for table, family in zip(tables, families, strict=True)
    )


def _positive_one_ways(tables: list[Marginal]) -> dict[str, Marginal]:
    """Return a distribution for each attribute, close to its counts in the tables, but nowhere 0."""
    found: dict[str, Marginal] = {}
    for table in tables:
        for name in set(table.attributes) - set(found):
            one_way = table.project((name,))
            shares = np.maximum(one_way.counts, 0.0)
            shares /= max(shares.sum(), 1.0)
            uniform = 1.0 / len(shares)
            found[name] = Marginal(one_way.domain, (shares + uniform) / (shares.sum() + 1.0))
    return found


def _precision(measurement: Measurement, attributes: Attributes) -> float:
    """Return the inverse of a measurement's mean noise variance over `attributes`."""
    return 1.0 / max(float(measurement.project(attributes).variance.mean()), EXACT)
