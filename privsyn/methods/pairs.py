"""Which pairs are measured, how finely, and with how much of the budget: first those with target and weights.

Only `PrivateTable.marginals` reads rows here. Each table is a question of its own, of sensitivity 1 for one
row. The m tables with the target are as one answer of sensitivity sqrt(m), in which each has its own noise.
So are those with the weights of rows, which count rows in groups of weights, as any column of numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from privsyn.inference.all_rows import answered
from privsyn.inference.consistency import combine_measurements
from privsyn.inference.measured_columns import Estimate, MeasuredColumns, PublicFacts
from privsyn.inference.pairs import Pairs
from privsyn.inference.prior.dispersion import pooled_dispersions
from privsyn.inference.prior.smoothing import CELLS, Prior, Waves, is_smooth
from privsyn.inference.selection import STEPS, Resolutions, allocate_most, curves_of, near_pairs
from privsyn.inference.weight_groups import WeightedPairs
from privsyn.inference.weights import important_in, products_of, weights_of
from privsyn.marginals.domain import Attributes, Floats, Mask
from privsyn.marginals.marginal import NO_GROUPS
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.methods.budget import Split
from privsyn.methods.columns import HALVES, pairs_with_weights
from privsyn.private.measure import PrivateTable

SAMPLING_DISPERSION = 1.0  # of an independent table by sampling alone: least dispersion of a pair
FINER = 1  # level of resolution that an important pair gains: its details matter as much as its trend
COARSEST = 2  # least level of resolution of a number with classes if no score tells how finely: 8 groups
SEVERAL = 3  # classes of a target, which two groups of a number do not tell apart


def measure_first(
    private: PrivateTable,
    measured_columns: MeasuredColumns,
    pairs: Pairs,
    rho: float,
    named: Collection[Attributes],
    weighted: WeightedPairs | None = None,
    coarsest: int = 0,
) -> tuple[MeasuredColumns, Pairs]:
    """Return the measured columns, and the pairs, of which the `named` ones are measured.

    Scores were asked before, but choose no table here: they say how finely each is counted, with which noise.
    For `weighted` pairs and the `coarsest` level see `measure_pairs`.
    """
    names = {*named}
    first = tuple(pair for pair in pairs.estimates if pair.attributes in names)
    if not (rho and first):
        return measured_columns, pairs
    measured_columns, measured = measure_pairs(
        private, measured_columns, replace(pairs, estimates=first), rho, weighted, coarsest
    )
    by_attributes = {pair.attributes: pair for pair in measured}
    estimates = tuple(by_attributes.get(pair.attributes, pair) for pair in pairs.estimates)
    return measured_columns, replace(pairs, estimates=estimates)


def measure_always(
    private: PrivateTable,
    measured_columns: MeasuredColumns,
    pairs: Pairs,
    split: Split,
    columns: Attributes,
    facts: PublicFacts,
) -> tuple[MeasuredColumns, Pairs]:
    """Return the measured columns, and the pairs with the target and with the weights of rows, measured.

    If no scores were asked, columns are counted with classes at the level `COARSEST` or a finer one: all of a
    rare class may be at one end, and noise in cuts may leave most records in one of two groups.
    """
    weighted = pairs_with_weights(columns, facts)
    label = {*near_pairs(columns, 0, facts.target)}.difference(weighted)
    in_classes = facts.target is not None and private.domain.ordered_of[facts.target] <= HALVES
    coarsest = COARSEST if in_classes and not split.departures else 0
    measured_columns, pairs = measure_first(
        private, measured_columns, pairs, split.label, label, coarsest=coarsest
    )
    return measure_first(private, measured_columns, pairs, split.weights, weighted, WeightedPairs.of(facts))


def measure_pairs(
    private: PrivateTable,
    measured_columns: MeasuredColumns,
    pairs: Pairs,
    budget: float,
    weighted: WeightedPairs | None = None,
    coarsest: int = 0,
) -> tuple[MeasuredColumns, tuple[Estimate, ...]]:
    """Return the measured columns, and the pairs worth measuring, measured at their best resolution.

    Pairs that were measured before are measured again where that reduces the error most. If they are
    `weighted`, all pairs are measured, with the same budget, and in groups that make weighted counts certain.
    No pair with an order is measured at a level of resolution below the `coarsest`.
    """
    resolutions = Resolutions(pairs.waves, private.rho_of, measured_columns.groups_at)
    tables = pairs.estimates
    attributes = tuple(pair.attributes for pair in tables)
    before = np.array([pair.is_measured for pair in tables])
    if not budget:
        return measured_columns, tuple(pair for pair in tables if pair.is_measured)
    smooth = np.array(
        [bool(p.measured.grouping) if p.is_measured else is_smooth(p.table.domain) for p in tables]
    )
    dispersions, indices = hoped_dispersions(tables, pairs.waves), np.flatnonzero(smooth & ~before).tolist()
    ordered = [attributes[i] for i in indices]
    levels = range(max(map(resolutions.levels, ordered), default=1))
    errors = np.array(
        [resolutions.errors_at(level, ordered, dispersions[indices], budget) for level in levels]
    )
    in_groups = [
        replace(tables[i], dispersion=dispersions[i]) for i in np.flatnonzero(smooth & before).tolist()
    ]
    smooth_errors = np.empty((np.count_nonzero(smooth), len(STEPS)))
    smooth_errors[before[smooth]] = resolutions.errors_left(in_groups, budget)
    smooth_errors[~before[smooth]] = errors.min(axis=0)
    variances = [_variance_left(tables[i], dispersions[i]) for i in np.flatnonzero(~smooth).tolist()]
    gains, unmeasured = curves_of(variances, smooth_errors, smooth, budget, private.rho_of)
    weights = weights_of(measured_columns.domain, attributes, measured_columns.target)
    weights = weights * products_of(measured_columns.attribute_weights, attributes)
    named = important_in(attributes, measured_columns.important)
    finer = named | _with_classes(measured_columns, attributes)
    jumps = private.law.name == "laplace"
    budgets = np.full(len(tables), budget / len(tables))
    if weighted is None:
        budgets = allocate_most(gains, unmeasured, budget, weights, named, jumps=jumps)
    chosen = np.flatnonzero(budgets).tolist()
    groupings = [pair.measured.grouping if pair.is_measured else NO_GROUPS for pair in tables]
    for row, i in enumerate(indices):
        step = int(np.argmin(np.abs(budget * STEPS - budgets[i])))
        level = max(int(np.argmin(errors[:, row, step])) + FINER * bool(finer[i]), coarsest)
        groupings[i] = resolutions.groups(attributes[i], level)
    if weighted is not None:
        rho = budgets[0] if private.rho_of is None else float(private.rho_of(budgets[:1])[0])
        groupings = [
            grouping
            if pair.is_measured
            else weighted.grouping(grouping, pair.table, measured_columns, 1 / sqrt(2 * rho))
            for pair, grouping in zip(tables, groupings, strict=True)
        ]
    answers = private.marginals(
        tuple(attributes[i] for i in chosen), budgets[chosen], [groupings[i] for i in chosen]
    )
    contribution = private.contribution
    measured_columns, answers = answered(
        measured_columns, pairs.total, answers, contribution.within_squares, contribution.of_tables
    )
    measured = {i: tables[i] for i in np.flatnonzero(before).tolist()}
    for i, answer in zip(chosen, answers, strict=True):
        both = combine_measurements(tables[i].measured, answer) if before[i] else answer
        measured[i] = replace(tables[i], measured=measured_columns.zeros.clean(both))
    return measured_columns, tuple(measured[i] for i in sorted(measured))


def _with_classes(measured_columns: MeasuredColumns, pairs: Sequence[Attributes]) -> Mask:
    """Return which pairs are with a target of `SEVERAL` classes or more: a model tells them all apart."""
    target, domain = measured_columns.target, measured_columns.domain
    several = target is not None and domain.ordered_of[target] <= 2 and domain.size_of[target] >= SEVERAL
    return np.array([several and target in pair for pair in pairs], np.bool_)


def hoped_dispersions(tables: tuple[Estimate, ...], waves: Waves) -> Floats:
    """Return the dispersion of each pair, by its score or its measurement."""
    evidence, total = [pair.evidence for pair in tables], tables[0].table.total
    for index, pair in enumerate(tables):
        if pair.is_measured:
            prior: Prior = waves if is_smooth(pair.table.domain) else CELLS
            evidence[index] = evidence[index] + prior.evidence([pair])[0]
    return np.maximum(pooled_dispersions(evidence, total, hopeful=True), SAMPLING_DISPERSION)


def _variance_left(pair: Estimate, dispersion: float) -> Floats:
    """Return the variance of each cell of a pair: before it is measured, or what a measurement left."""
    variance = dispersion * pair.table.counts
    if not pair.is_measured:
        return variance
    noise = np.maximum(pair.measured.variance, TINY_COUNT)
    return variance * noise / (variance + noise)
