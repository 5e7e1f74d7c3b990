"""Tables with the target that noise hides, shown as strongly as what they say was measured.

An estimate is a posterior mean: it departs from independence by a share of what was measured. Where noise
hides all tables with the target, so little is left that sampling noise hides it from a model of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod, sqrt

import numpy as np

from privsyn.inference.consistency import FLOOR
from privsyn.inference.measured_columns import Estimate
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.structural_zeros import product
from privsyn.marginals.tolerances import TINY_COUNT, TINY_SHARE


def with_strength(pairs: Sequence[Estimate], target: str | None) -> tuple[Estimate, ...]:
    r"""Return the pairs; departures of those with the target are multiplied by one factor of at least 1.

    With the departures e of the estimates and d of the measured counts, in cells whose noise has the variance
    v, the gain is

    .. math:: g = \sum e^2 / v \; / \sum e d / v

    over all cells of all tables with the target. The factor is 1 / sqrt(g): posterior means have g times the
    variance of the true values, and so they get the same variance (constrained empirical Bayes: Louis, JASA
    1984). What one column says relative to another does not change. Without noise g is 1. Posterior variances
    become expected squared errors about the new counts.

    Parameters
    ----------
    pairs : sequence of Estimate
        With their measurements and their margins, which stay.
    target : str, optional
        The attribute that models will predict. If it is a number, all pairs stay: models predict means, and
        posterior means err least. A model of classes is judged by how it orders rows.
    """
    estimated = measured = 0.0
    departures: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for index, pair in enumerate(pairs):
        if target not in pair.attributes or pair.table.domain.ordered_of[target] > 2:
            continue
        independent, join = product(pair.table.domain, pair.margins).counts, pair.measured.grouping.join
        departure = pair.table.counts - independent
        weighted = join(departure) / np.maximum(pair.measured.variance, TINY_COUNT)
        estimated += float((weighted * join(departure)).sum())
        measured += float((weighted * (pair.measured.marginal.counts - join(independent))).sum())
        departures[index] = independent, departure
    if estimated <= TINY_SHARE or measured <= estimated:
        return tuple(pairs)
    factor, estimates = sqrt(measured / estimated), list(pairs)
    for index, (independent, departure) in departures.items():
        pair = pairs[index]
        floor = np.minimum(pair.table.counts, FLOOR * (1 + independent))
        counts = np.maximum(independent + factor * departure, floor)
        table = fit_margins(replace(pair.table, counts=counts), pair.margins)
        shift = table.counts - pair.table.counts
        if shift.shape != pair.posterior_variance.shape:
            shift = pair.measured.grouping.join(shift)
        # The squared error is that of the posterior mean and shift^2. Posterior variances are those of codes
        # that depart independently, and margins leave a shift fewer degrees of freedom.
        free = prod(1 - 1 / max(size, 2) for size in shift.shape)
        errors = pair.posterior_variance + shift**2 / free
        estimates[index] = replace(pair, table=table, posterior_variance=errors)
    return tuple(estimates)
