r"""Columns that lie in one another, such as places in regions: pairs with a place are shrunk to its region.

Structural zeros say in which code o of an outer column each code i of an inner column lies. Summed over the
inner codes, an answer about (i, x) is an answer about (o, x), for any third column x. What is known of (o, x)
is then the expected table of (i, x):

.. math:: \mu_{ix} = x_i \sum_o P(o | i) P(x | o)

So an inner code without evidence is like its outer code, not like the whole table (partial pooling).

A posterior mean has less spread among inner codes than there is: departures d of variance tau^2 with noise of
variance sigma^2 are multiplied by g = tau^2 / (tau^2 + sigma^2), and g d has the variance g tau^2. Where they
stand out of the noise, they are multiplied by the root of g, so that their variance is tau^2 (constrained
empirical Bayes: Louis 1984; Ghosh, JASA 1992).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from privsyn.inference.consistency import combine_measurements
from privsyn.inference.measured_columns import UNKNOWN, Estimate, MeasuredColumns
from privsyn.inference.prior.dispersion import DISPERSIONS, deviation_likelihoods, pooled_dispersions
from privsyn.inference.prior.smoothing import CELLS, Prior, Waves, is_smooth
from privsyn.marginals.domain import Attributes, Domain, Floats
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal, Measurement
from privsyn.marginals.structural_zeros import StructuralZeros, product
from privsyn.marginals.tolerances import TINY_COUNT

CLEAR = 4.5  # log-likelihood that a dispersion gains over those of chance: three standard deviations
POSSIBLE = 1.92  # log-likelihood below the largest one that a dispersion may have: 95 % limits
CHANCE = 1.0  # dispersion of codes that are alike, and differ by the chance of their rows
FITTINGS = 20  # most rounds of fitting a table to the sums of its outer codes and to its margins
MET = 1e-6  # of the total: a smaller change in a round ends them


@dataclass(frozen=True)
class Hierarchy:
    """Which column lies in which.

    Parameters
    ----------
    outer : mapping of a column to the one in which its codes lie
    """

    outer: Mapping[str, str]

    @classmethod
    def of(cls, zeros: StructuralZeros) -> Hierarchy:
        """Return what structural zeros say of columns without order: most codes of one lie in one of another.

        Missing cells, and values that are counted together, may lie in several.

        >>> pair = Domain(("city", "country"), (4, 2))
        >>> zeros = StructuralZeros(((pair, np.array([[1, 0], [1, 0], [0, 1], [1, 1]])),))
        >>> dict(Hierarchy.of(zeros).outer)
        {'city': 'country'}
        """
        outer: dict[str, str] = {}
        for domain, mask in zeros.masks:
            if len(domain) != 2 or is_smooth(domain):
                continue
            for (inner, around), possible in ((domain.names, mask), (domain.names[::-1], mask.T)):
                codes, outer_codes = possible.shape
                several = np.count_nonzero(possible.sum(axis=1) != 1)
                if codes > outer_codes > 1 and 2 * several < codes:
                    outer.setdefault(inner, around)
        return cls(MappingProxyType(outer))

    def around(self, name: str) -> Attributes:
        """Return the columns in which a column lies, the nearest first.

        >>> Hierarchy({"town": "county", "county": "land"}).around("town")
        ('county', 'land')
        """
        columns: list[str] = []
        while name in self.outer and self.outer[name] not in columns:
            name = self.outer[name]
            columns.append(name)
        return tuple(columns)

    def inner_of(self, pair: Attributes) -> str | None:
        """Return the column of a pair that lies in a third one; None if there is none."""
        for name, beside in (pair, pair[::-1]):
            if name in self.outer and beside not in self.around(name) and name not in self.around(beside):
                return name
        return None

    def outer_pair(self, pair: Attributes, domain: Domain) -> Attributes:
        """Return a pair with its inner column replaced by the outer one, in the order of a domain."""
        inner = self.inner_of(pair)
        if inner is None:
            raise ValueError(f"{pair} has no inner column")
        names = {self.outer[inner], *pair} - {inner}
        return tuple(name for name in domain if name in names)

    def path(self, pair: Attributes, domain: Domain) -> tuple[Attributes, ...]:
        """Return a pair, then the pair of the outer column, and so on to the outermost ones.

        >>> towns = Hierarchy({"town": "county", "county": "land"})
        >>> towns.path(("ill", "town"), Domain(("ill", "town", "county", "land"), (2, 9, 4, 2)))
        (('ill', 'town'), ('ill', 'county'), ('ill', 'land'))
        """
        if self.inner_of(pair) is None:
            return (pair,)
        return (pair, *self.path(self.outer_pair(pair, domain), domain))


@dataclass(frozen=True, eq=False)
class PartialPooling:
    """What is known of the pairs with outer columns.

    Parameters
    ----------
    hierarchy : Hierarchy
    links : mapping of an inner column to an array of shape (its codes, outer codes)
        The probability of each outer code, given the inner one.
    outer_tables : mapping of a pair with an inner column to the table with its outer column
    """

    hierarchy: Hierarchy = field(default_factory=lambda: Hierarchy({}))
    links: Mapping[str, Floats] = field(default_factory=lambda: MappingProxyType({}))
    outer_tables: Mapping[Attributes, Marginal] = field(default_factory=lambda: MappingProxyType({}))

    def expected(self, table: Marginal, sides: tuple[Marginal, ...], zeros: StructuralZeros) -> Marginal:
        """Return a table whose inner codes are like their outer codes, with the margins `sides`."""
        inner = self.hierarchy.inner_of(table.attributes)
        if inner is None or table.attributes not in self.outer_tables:
            return table
        outer = _with_first(self.outer_tables[table.attributes], self.hierarchy.outer[inner])
        shares = outer / np.maximum(outer.sum(axis=1, keepdims=True), TINY_COUNT)
        of_inner = next(side.counts for side in sides if side.attributes == (inner,))
        counts = of_inner[:, np.newaxis] * (self.links[inner] @ shares)
        if table.attributes[0] != inner:
            counts = counts.T
        return fit_margins(zeros.fit(replace(table, counts=counts), sides), sides)

    def fit(self, table: Marginal, sides: tuple[Marginal, ...]) -> Marginal:
        """Scale a table to the sums over the inner codes of each outer code, and to its margins."""
        inner = self.hierarchy.inner_of(table.attributes)
        if inner is None or table.attributes not in self.outer_tables:
            return table
        outer, link = (
            _with_first(self.outer_tables[table.attributes], self.hierarchy.outer[inner]),
            self.links[inner],
        )
        for _ in range(FITTINGS):
            counts = _with_first(table, inner)
            sums = link.T @ counts
            ratio = np.divide(outer, sums, out=np.ones_like(sums), where=sums > TINY_COUNT)
            scaled = counts * (link @ ratio)
            before, table = table, replace(table, counts=scaled if table.attributes[0] == inner else scaled.T)
            table = fit_margins(table, sides)
            if np.abs(table.counts - before.counts).max() <= MET * max(table.total, 1.0):
                break
        return table


def pool(
    measured_columns: MeasuredColumns, tables: Sequence[Estimate], margins: Sequence[Marginal]
) -> tuple[list[Estimate], PartialPooling]:
    """Return pairs with outer codes as the mean of their inner codes, and what is known of the outer codes.

    The answers about a pair with an outer column are combined with the sums of those about the inner column.

    Parameters
    ----------
    measured_columns : MeasuredColumns
    tables : sequence of Estimate
        Measured pairs, with independence or exact counts of groups as mean.
    margins : sequence of Marginal, one per attribute
    """
    hierarchy, domain = Hierarchy.of(measured_columns.zeros), measured_columns.domain
    pairs = {table.attributes: table for table in tables}
    paths = {
        names: path
        for names in pairs
        if len(path := hierarchy.path(names, domain)) > 1
        and not any(map(measured_columns.channels.random, path))
    }
    if not paths:
        return list(tables), PartialPooling()
    pooling = PartialPooling(hierarchy, links_of(hierarchy, measured_columns.zeros, margins))
    steps = {path[index]: len(path) - 1 - index for path in paths.values() for index in range(len(path))}
    answers = {names: pairs[names].measured for names in steps if names in pairs}
    outer_pairs: dict[Attributes, Attributes] = {}
    for names in sorted(steps, key=lambda names: -steps[names]):  # innermost first
        inner = hierarchy.inner_of(names)
        if inner is not None:
            around = outer_pairs[names] = hierarchy.outer_pair(names, domain)
            sums = summed(answers[names], inner, hierarchy.outer[inner], pooling.links[inner], domain)
            answers[around] = measured_columns.zeros.clean(with_sums(answers.get(around), sums))
    outer_tables: dict[Attributes, Marginal] = {}
    for step in range(max(steps.values())):  # outermost first
        outer = [names for names in dict.fromkeys(outer_pairs.values()) if steps[names] == step]
        outer_tables |= _estimates(measured_columns, outer, answers, margins, pooling)
        by_inner = {names: outer_tables[pair] for names, pair in outer_pairs.items() if pair in outer_tables}
        pooling = replace(pooling, outer_tables=MappingProxyType(by_inner))
    pooled = []
    for table in tables:
        names = table.attributes
        if names in answers and not table.measured.grouping:
            table = replace(table, measured=answers[names])
        if names in pooling.outer_tables:  # what was known before is about departures from independence
            mean = pooling.expected(table.table, table.margins, measured_columns.zeros)
            mean = measured_columns.expected(mean, table.margins)
            table = replace(table, table=mean, evidence=UNKNOWN)
        pooled.append(table)
    return pooled, pooling


def with_spread(shrunk: Estimate, pooling: PartialPooling, zeros: StructuralZeros) -> Estimate:
    """Return an estimate whose inner codes differ as much as the true ones do, if they differ visibly.

    Parameters
    ----------
    shrunk : Estimate
        A measured pair after it was shrunk.
    pooling : PartialPooling
    zeros : StructuralZeros
    """
    inner = pooling.hierarchy.inner_of(shrunk.attributes)
    if inner is None or shrunk.attributes not in pooling.outer_tables:
        return shrunk
    mean = pooling.expected(shrunk.table, shrunk.margins, zeros).counts
    axis = shrunk.attributes.index(inner)
    evidence, spread = _departures(shrunk.measured, mean, axis)
    if not _stands_out(evidence):
        return shrunk
    weights = np.exp(evidence - evidence.max())
    variance = float(np.exp(weights @ np.log(DISPERSIONS) / weights.sum())) * spread
    gain = variance / np.maximum(variance + shrunk.measured.variance, TINY_COUNT)
    departures = Marginal(shrunk.table.domain, shrunk.measured.marginal.counts - mean).residual.counts
    counts = np.where(mean > 0, np.maximum(mean + np.sqrt(gain) * departures, 0.0), 0.0)
    return replace(shrunk, table=pooling.fit(replace(shrunk.table, counts=counts), shrunk.margins))


def differs(measured: Measurement, expected: Floats, name: str) -> bool:
    """Return whether codes of an attribute depart from what is expected by more than noise and chance.

    Parameters
    ----------
    measured : Measurement
        Of a pair.
    expected : array
        Expected counts of its codes, without groups.
    name : str
        The attribute of places.
    """
    return _stands_out(_departures(measured, expected, measured.attributes.index(name))[0])


def largest_difference(measured: Measurement, expected: Floats, name: str) -> float:
    """Return by how much codes of an attribute may depart from what is expected, beyond the chance of rows.

    It is the mean total variation between the rows of a code and what is expected of them, for the largest
    dispersion that the answers do not rule out: of normal departures of variance v, half the sum of
    sqrt(2 v / pi), over all rows.

    Parameters
    ----------
    measured, expected, name
        As for `differs`.

    Returns
    -------
    float
        A share of the rows, from 0 to 1.
    """
    evidence, spread = _departures(measured, expected, measured.attributes.index(name))
    last = int(np.flatnonzero(evidence >= evidence.max() - POSSIBLE)[-1])
    dispersion = float(DISPERSIONS[min(last + 1, len(DISPERSIONS) - 1)])  # the limit lies between both
    deviations = np.sqrt(2 / np.pi * max(dispersion - CHANCE, 0.0) * spread)
    return min(float(deviations.sum()) / 2 / max(float(expected.sum()), TINY_COUNT), 1.0)


def _departures(measured: Measurement, expected: Floats, axis: int) -> tuple[Floats, Floats]:
    """Return the log-likelihood of each dispersion, and the variance of each cell for a dispersion of 1.

    With a dispersion of 1, places differ by the chance of their rows: a share p of n by n p (1 - p). It is
    divided by what centring leaves of the noise, as the likelihood takes both to shrink alike.
    """
    counts = measured.grouping.join(expected)
    shares = counts.sum(axis=axis, keepdims=True) / max(float(counts.sum()), TINY_COUNT)
    spread = counts * (1 - shares) / (1 - 1 / max(counts.shape[1 - axis], 2))
    (evidence,) = deviation_likelihoods([measured], [counts], [spread])
    return evidence, spread


def _stands_out(evidence: Floats) -> bool:
    return bool(evidence.max() - evidence[DISPERSIONS <= CHANCE].max() > CLEAR)


def links_of(hierarchy: Hierarchy, zeros: StructuralZeros, one_ways: Sequence[Marginal]) -> dict[str, Floats]:
    """Return for each inner column the probability of each outer code, given each inner one."""
    one_way, links = {table.attributes[0]: table for table in one_ways}, dict[str, Floats]()
    for pair in hierarchy.outer.items():
        sides = tuple(one_way[name] for name in pair)
        domain = Domain(pair, tuple(len(side.counts) for side in sides))
        table = zeros.fit(product(domain, sides), sides)
        counts = np.where(zeros.mask(table.domain), np.maximum(table.counts, TINY_COUNT), 0.0)
        links[pair[0]] = counts / counts.sum(axis=1, keepdims=True)
    return links


def _estimates(
    measured_columns: MeasuredColumns,
    pairs: Sequence[Attributes],
    answers: Mapping[Attributes, Measurement],
    margins: Sequence[Marginal],
    pooling: PartialPooling,
) -> dict[Attributes, Marginal]:
    """Return the table of each pair with an outer column, shrunk from its answers."""
    tables, estimates = dict[Attributes, Marginal](), list[Estimate]()
    one_way = {margin.attributes[0]: margin for margin in margins}
    for names in pairs:
        if measured_columns.exact.covers(names):
            tables[names] = measured_columns.exact.counts(names)
            continue
        sides = tuple(one_way[name] for name in names)
        domain = measured_columns.domain.project(names)
        table = measured_columns.zeros.fit(product(domain, sides), sides)
        table = pooling.expected(table, sides, measured_columns.zeros)
        estimates.append(Estimate(table, measured=answers[names], margins=sides))
    priors: tuple[tuple[Prior, bool], ...] = ((CELLS, False), (Waves(margins), True))
    for prior, smooth in priors:
        kind = [estimate for estimate in estimates if is_smooth(estimate.table.domain) == smooth]
        if kind:
            means = prior.mean(kind, pooled_dispersions(prior.evidence(kind)))
            tables |= {mean.attributes: mean for mean in means}
    return tables


def with_sums(answer: Measurement | None, sums: Measurement) -> Measurement:
    """Return an answer combined with the sums of another one; the answer alone if either is in groups."""
    if answer is None:
        return sums
    return answer if answer.grouping or sums.grouping else combine_measurements(answer, sums)


def summed(answer: Measurement, inner: str, outer: str, link: Floats, domain: Domain) -> Measurement:
    """Return an answer about a pair with an inner column as one about the pair with the outer column."""
    axis = answer.attributes.index(inner)
    beside = answer.attributes[1 - axis]
    counts = link.T @ _with_first(answer.marginal, inner)
    variance = (link.T**2) @ _with_first(Marginal(answer.marginal.domain, answer.variance), inner)
    names = tuple(name for name in domain if name in (outer, beside))
    if names[0] != outer:
        counts, variance = counts.T, variance.T
    grouping = NO_GROUPS
    if answer.grouping:
        groups = {
            beside: answer.grouping.groups[1 - axis],
            outer: np.arange(domain.size_of[outer], dtype=np.int32),
        }
        grouping = Grouping(tuple(groups[name] for name in names))
    return Measurement(Marginal(grouping.domain(domain.project(names)), counts), variance, grouping)


def _with_first(table: Marginal, name: str) -> Floats:
    """Return the counts of a pair with the axis of one attribute first."""
    return table.counts if table.attributes[0] == name else table.counts.T
