"""Criteria of a plan: whether they are likely to be met, from public facts alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf, prod, sqrt

import numpy as np

from privsyn.inference.prior.dispersion import MEAN_OF_ABSOLUTE
from privsyn.marginals.domain import Domain
from privsyn.pages.sections import at_most
from privsyn.private.acceptance import UNIT, margins
from privsyn.private.noise_laws import Law
from privsyn.release.acceptance.criteria import Criteria, Criterion, Margin, Mean, Proportion, Slope, spans
from privsyn.studies.planning.counted_table import USUAL_DEPENDENCE, one_way_error, pair_error, typical_shares
from privsyn.studies.planning.expectation import LARGEST, STEP, Expectation
from privsyn.table.codec.codec import Codec

HOPELESS = 0.1
"""A criterion cannot be met if noise accepts even an exact table with at most this probability."""

USUAL_CORRELATION = 0.3
"""Assumed correlation of the variables of a slope. It matters for errors that are a share of the slope."""

EVEN = sqrt(12)
"""Range over standard deviation of evenly spread numbers."""

LIKELY, UNLIKELY, NEVER = "likely", "unlikely", "cannot be met"


@dataclass(frozen=True)
class PlannedCriterion:
    """Whether a criterion is likely to be met.

    Parameters
    ----------
    criterion : str
    bound : float
        The largest error allowed, in the unit of the criterion.
    error : float
        The expected error of the synthetic table.
    hidden : float
        The error that the noise of the test may hide: the test accepts a table whose measured error is below
        the bound by this much.
    least_bound : float
        With a bound of at most this, an exact table is accepted with a probability of at most `HOPELESS`.
    epsilon : float
        The smallest epsilon tried at which it is likely to be met; infinite if there is none.
    """

    criterion: str
    bound: float
    error: float
    hidden: float
    least_bound: float
    epsilon: float = inf

    @property
    def verdict(self) -> str:
        """Whether it is more likely than not to be met, or cannot be met even by an exact table."""
        if self.bound <= self.least_bound:
            return NEVER
        return LIKELY if self.error + self.hidden <= self.bound else UNLIKELY

    def __str__(self) -> str:
        errors = f"expected error {self.error:.2g}, hidden by noise {self.hidden:.2g}"
        verdict = f"{self.criterion}: {self.verdict} ({errors}"
        if self.verdict == LIKELY:
            return f"{verdict})"
        none = self.epsilon == inf
        enough = (
            f"no epsilon up to {LARGEST:g} would do" if none else f"epsilon {at_most(self.epsilon)} would do"
        )
        return f"{verdict}; {enough})"


Expected = Callable[[float], tuple[Law, float, Expectation]]
"""A function of epsilon that returns the law, the cost of all tests for one row, and what to expect."""


def planned_criteria(
    criteria: Criteria, codec: Codec, domain: Domain, epsilon: float, expected: Expected
) -> tuple[PlannedCriterion, ...]:
    """Return whether each criterion is likely to be met.

    Parameters
    ----------
    criteria : Criteria
    codec : Codec
        With the public values and bounds, as criteria are tested.
    domain : Domain
        The planned number of values or bins of each column.
    epsilon : float
    expected : function of epsilon
        See `Expected`.
    """

    def at(epsilon: float) -> Iterable[PlannedCriterion]:
        law, cost, expectation = expected(epsilon)
        cost_each = cost / len(criteria.criteria)
        for criterion in criteria.criteria:
            error, unit, sensitivity = _of(criterion, codec, domain, law, expectation)
            scale = law.scale(cost_each, sensitivity)
            hidden, _ = margins(law, scale, criteria.risk, len(criteria.criteria))
            least_bound = (hidden - law.quantile(scale, HOPELESS)) * unit
            yield PlannedCriterion(
                str(criterion), _bound(criterion, codec), error, hidden * unit, least_bound
            )

    planned = list(at(epsilon))
    lacking = {index for index, prospect in enumerate(planned) if prospect.verdict != LIKELY}
    tried = epsilon
    while lacking and tried * STEP <= LARGEST:
        tried *= STEP
        for index, prospect in enumerate(at(tried)):
            if index in lacking and prospect.verdict == LIKELY:
                lacking.remove(index)
                planned[index] = replace(planned[index], epsilon=tried)
    return tuple(planned)


def _bound(criterion: Criterion, codec: Codec) -> float:
    if isinstance(criterion, Slope) and criterion.relative:
        y, x = _reaches(criterion, codec)
        return criterion.bound * USUAL_CORRELATION * y / x
    return criterion.bound


def _of(
    criterion: Criterion, codec: Codec, domain: Domain, law: Law, expectation: Expectation
) -> tuple[float, float, float]:
    """Return the expected error, the value of a unit of the excess in its unit, and its sensitivity."""
    rows, sizes = expectation.rows, domain.size_of
    of_pairs = (
        1 / sqrt(2 * law.rho(expectation.root.pair_cost))
        if expectation.root.pair_cost
        else expectation.root.count_noise
    )
    if isinstance(criterion, Margin):
        groups = [min(sizes[name], criterion.groups) for name in criterion.margin]
        if len(groups) == 1:
            spread = sqrt(sizes[criterion.margin[0]] / groups[0])
            error = one_way_error(typical_shares(groups[0]), expectation.root.count_noise * spread, rows)
        else:
            error = sum(
                pair_error(sides, expectation.root.pair_cost, rows, law)
                for sides in combinations(map(typical_shares, groups), 2)
            )
        return min(error, 1.0), 1 / (UNIT * rows), UNIT * (1 + criterion.error)
    met = {
        name: float(span.covers(codec.cells()[name].lows, codec.cells()[name].highs).mean())
        for name, span in spans(criterion.conditions, codec.schema).items()
    }
    share, cells = prod(met.values()), prod(max(part * sizes[name], 1.0) for name, part in met.items())
    among = max(rows * share, 1.0)
    noise = MEAN_OF_ABSOLUTE * (of_pairs if len(criterion.columns) > 1 else expectation.root.count_noise)
    if isinstance(criterion, Proportion):
        largest = USUAL_DEPENDENCE if len(criterion.columns) > 1 else 1.0
        error = min(noise * sqrt(cells) / rows, share, largest)
        return error, (1 + criterion.within) / (UNIT * rows), UNIT
    reaches = _reaches(criterion, codec)
    numbers = prod(sizes[variable] if isinstance(variable, str) else 2 for variable in criterion.variables)
    if isinstance(criterion, Mean):
        (reach,) = reaches
        largest = USUAL_DEPENDENCE if len(criterion.columns) > 1 else 1.0
        error = min(noise * sqrt(cells * numbers) / (EVEN * among), largest) * reach
        return error, (reach / 2 + criterion.bound) / (UNIT * among), UNIT
    y, x = reaches
    error = min(noise * sqrt(cells * numbers) / among, USUAL_CORRELATION) * y / x
    slope = USUAL_CORRELATION * y / x + _bound(criterion, codec)
    unit = x / 2 * (y / 2 + slope * x / 2) / (UNIT * among * (x / EVEN) ** 2)
    return error, unit, UNIT


def _reaches(criterion: Criterion, codec: Codec) -> list[float]:
    """Return the range of each variable, 1 for a condition."""
    cells = codec.cells()
    return [
        float(np.nanmax(cells[variable].highs) - np.nanmin(cells[variable].lows))
        if isinstance(variable, str)
        else 1.0
        for variable in criterion.variables
    ]
