"""Judge a release: compare the private table with one synthetic table, by a noisy test of each criterion.

Each criterion is a statistic: what a private row adds to it, in the worst case of its cell.

For a slope, let u and v be x and y less their means over the released rows, b the released slope and w the
error allowed. The private slope exceeds b + w exactly if the sum of u v - (b + w) u^2 over the private rows
is above 0, and falls short of b - w exactly if the sum of (b - w) u^2 - u v is: see "Acceptance, slopes" in
docs/proofs.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Floats, Ints
from privsyn.marginals.tolerances import SMALLEST
from privsyn.private.acceptance import QUESTION, UNIT, Acceptance, Distance, Excess, Sums, Verdict, margins
from privsyn.release.acceptance.criteria import Criteria, Margin, Proportion, Slope
from privsyn.release.acceptance.layout import CUT, SURE, Layout, Summed, problem
from privsyn.release.release import Release

if TYPE_CHECKING:
    from privsyn.private.measure import PrivateTable

SEED = 0
"""The seed of the synthetic table that is tested: anybody who has the model can draw it again."""

TOO_FAR = "sums or products of its numbers are not doubles: narrow the bounds, or take another unit"

EQUAL = 1e-12
"""Share of the sum of squares below which all numbers count as equal."""


ROUNDING = 1e-6
"""Units that are added before rounding up. Errors of doubles are below 1e-10 units."""


@dataclass(frozen=True, eq=False)
class Test:
    """A criterion as a statistic.

    Parameters
    ----------
    excess : Excess
    unit : float
        The value of one unit of the excess, in the unit of the criterion.
    synthetic : int
        The excess of the synthetic table itself, which has no error. It is below 0 by the allowed error,
        less what the worst cases of `test_of` take.
    """

    excess: Excess
    unit: float
    synthetic: int


def judge(release: Release[Any], criteria: Criteria, private: PrivateTable, rho: float) -> Release[Any]:
    """Return the release with the verdict in the ledger, and what the tests cost.

    The private table is compared with `Release.sample` of seed `SEED`, which follows from the release. So all
    numbers of the tests are fixed before they are asked.

    Parameters
    ----------
    release : Release
    criteria : Criteria
    private : PrivateTable
        In the codes of the release's codec.
    rho : float
        Budget of all tests together, for one row.
    """
    tests = tests_of(release, criteria)
    testable = [test for test in tests if isinstance(test, Test)]
    before = len(private.spends)
    noisy = iter(private.excesses([test.excess for test in testable], rho))
    verdicts = []
    part = private.contribution.of_columns or 1.0  # of as many rows as the synthetic table has, these count
    for criterion, test in zip(criteria.criteria, tests, strict=True):
        if isinstance(test, Test):
            excess, scale = next(noisy)
            sure, safe = margins(private.law, scale, criteria.risk, len(testable))
            verdict = Verdict(
                str(criterion),
                met=excess <= -sure,
                bound=criterion.bound,
                estimate=max(criterion.bound + excess * test.unit / part, 0.0),
                safe=max(-(test.synthetic + (sure + safe) / part) * test.unit, 0.0),
            )
        else:
            verdict = Verdict(str(criterion), met=False, bound=criterion.bound, problem=test)
        verdicts.append(verdict)
    acceptance = Acceptance(criteria.share, criteria.risk, tuple(verdicts))
    charges = (*release.ledger.charges, *private.spends[before:])
    return release.with_ledger(replace(release.ledger, charges=charges, acceptance=acceptance))


def tests_of(release: Release, criteria: Criteria) -> list[Test | str]:
    """Return the test of each criterion, or why there is none. All of it follows from the release."""
    codec = release.codec
    problems = [problem(codec, criterion) for criterion in criteria.criteria]
    layouts = [
        Layout.of(codec, release.fitted, criterion)
        for criterion, reason in zip(criteria.criteria, problems, strict=True)
        if not reason
    ]
    tables = [np.zeros(layout.shape, np.int64) for layout in layouts]
    products = [np.zeros((1 + len(layout.summed),) * 2) for layout in layouts]
    try:
        for block in release.table().blocks(release.estimated_rows, SEED, None):
            numbers = codec.read(block)
            for index, layout in enumerate(layouts):
                tables[index] += layout.count(numbers)
                products[index] += layout.products(numbers)
    except InputError as error:  # such as no row that keeps the constraints: whoever samples gets this error
        return [f"no synthetic table can be drawn: {error}"] * len(problems)
    tests = map(test_of, layouts, tables, products)
    return [reason or next(tests) for reason in problems]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def test_of(layout: Layout, table: Ints, products: Floats) -> Test | str:
    """Return the test of a criterion, or why there is none.

    A cell that a condition cuts counts as the worst case on both sides: a criterion that is not met has an
    excess above 0, whichever private rows of the cell meet the condition.

    Parameters
    ----------
    layout : Layout
    table : integer array
        The counts of the synthetic table.
    products : float array
        Of its rows; see `Layout.products`.
    """
    criterion, rows = layout.criterion, int(table.sum())
    common = (f"{QUESTION}{criterion}", layout.merging, criterion.columns)
    if not rows:
        return "the synthetic table has no row"
    if isinstance(criterion, Margin):
        allowed = int(Fraction(criterion.error) * UNIT)
        distance = Distance(*common, table, allowed)
        return Test(distance, 1 / (UNIT * rows), distance.of(table))
    within, among = Fraction(criterion.bound), round(float(products[0, 0]))
    if isinstance(criterion, Proportion):
        above, below, step = _units([0.0, 1.0], [0.0, 1.0], Fraction(among, rows), within)
        possible, sure = (layout.met(state).astype(np.int64) for state in (CUT, SURE))
        sums = Sums(*common, above[possible], below[sure])
        return Test(sums, float(step) / rows, sums.of(table))
    if not among:
        return "no synthetic row meets its conditions"
    if not np.isfinite(products[0]).all():
        return TOO_FAR
    if not isinstance(criterion, Slope):
        (variable,) = layout.summed
        middle = Fraction(variable.origin) + Fraction(float(products[0, 1])) / among
        above, below, step = _units(variable.lows.tolist(), variable.highs.tolist(), middle, within)
        sums = Sums(*common, *_sides(layout, above, below))
        return Test(sums, float(step) / among, sums.of(table))
    line = Line.of(layout.summed, products)
    if line is None:
        return "all synthetic rows have the same regressor"
    if not (share := abs(line.slope) if criterion.relative else 1.0):
        return "the released slope is 0: give an error that is no percentage"
    units = line.units(layout.summed, criterion.bound * share)
    if units is None or not isfinite(unit := units[2] / line.square / share):
        return TOO_FAR
    sums = Sums(*common, *_sides(layout, *units[:2]))
    if (synthetic := sums.of(table)) >= 0:
        return "its numbers are counted in cells too wide for this error: allow more or give a step"
    return Test(sums, unit, synthetic)


def _sides(layout: Layout, above: Ints, below: Ints) -> list[Ints]:
    """Return what a row in each cell of the table adds, given what it adds if it meets the conditions.

    The first axes are those of the variables.
    """
    inside = layout.met(SURE).astype(np.int64)
    cut = layout.met(CUT).astype(np.int64) - inside
    further = tuple(range(above.ndim, inside.ndim))
    return [
        np.expand_dims(side, further) * inside + np.expand_dims(np.maximum(side, 0), further) * cut
        for side in (above, below)
    ]


def _units(
    lows: Sequence[float], highs: Sequence[float], middle: Fraction, within: Fraction
) -> tuple[Ints, Ints, Fraction]:
    """Return what a row in each cell adds to both sums of `Sums`, rounded up, and the value of a unit.

    A number may lie anywhere in its cell. The ends of the cell are the worst cases, so a criterion that is
    not met has an excess above 0 wherever the numbers lie. Rows without a number, NaN, add 0.
    """
    numbered = np.flatnonzero(~np.isnan(lows)).tolist()
    first, last = ([Fraction(ends[cell]) for cell in numbered] for ends in (lows, highs))
    step = (max(max(last) - middle, middle - min(first), Fraction(0)) + within) / UNIT
    above, below = np.zeros((2, len(lows)), np.int64)
    above[numbered] = [ceil((high - middle - within) / step) for high in last]
    below[numbered] = [ceil((middle - low - within) / step) for low in first]
    return above, below, step


@dataclass(frozen=True)
class Line:
    """A line through the means of some released rows.

    Parameters
    ----------
    y, x : float
        The means.
    slope : float
    square : float
        Sum of the squares of x less its mean.
    """

    y: float
    x: float
    slope: float
    square: float

    @classmethod
    def of(cls, summed: tuple[Summed, ...], products: Floats) -> Line | None:
        """Return the line by least squares, given the sums of `Layout.products`; None if all x are equal.

        If the sums exceed doubles, the slope is not finite.
        """
        rows, sums = products[0, 0], products[0, 1:]
        (_, both), (_, square) = products[1:, 1:] - np.outer(sums, sums) / rows
        if square <= EQUAL * products[2, 2]:
            return None
        y, x = (variable.origin + float(total / rows) for variable, total in zip(summed, sums, strict=True))
        return cls(y, x, float(both / square), float(square))

    def units(self, summed: tuple[Summed, ...], within: float) -> tuple[Ints, Ints, float] | None:
        """Return what a row in each cell of the table of y and x adds to both sums, and the value of a unit.

        Each is the largest value in the cell, rounded up. Rows that do not count add 0. A unit is chosen such
        that none adds more than `UNIT` + 1. Return None if products of the numbers exceed doubles, or if a
        unit is below the smallest of full precision: cast to integers, such values could be anything.
        """
        y, x = summed
        (low, high), (first, last) = (
            (variable.lows - mean, variable.highs - mean) for variable, mean in ((y, self.y), (x, self.x))
        )
        v, u = (float(np.nanmax(np.abs(ends))) for ends in ((low, high), (first, last)))
        step = u * (v + (abs(self.slope) + within) * u) / UNIT  # |u v| + slope u^2 is at most UNIT steps
        sides = (
            _largest(low, high, first, last, self.slope + within),
            _largest(-high, -low, first, last, within - self.slope),
        )
        counted = ~np.isnan(np.add.outer(low, first))
        if not (SMALLEST <= step < np.inf and np.isfinite(np.array(sides)[:, counted]).all()):
            return None
        above, below = (np.ceil(np.where(counted, side / step + ROUNDING, 0.0)) for side in sides)
        return above.astype(np.int64), below.astype(np.int64), step


def _largest(low: Floats, high: Floats, first: Floats, last: Floats, slope: float) -> Floats:
    """Return the largest ``u v - slope u^2`` in each cell, with v from low to high and u from first to last.

    Given u it is largest at an end of v. For positive u that is ``u high - slope u^2``, for negative u it is
    ``u low - slope u^2``. So it is largest at an end of u, at 0, or at the vertex of one of these parabolas.

    >>> _largest(np.array([-1.0]), np.array([2.0]), np.array([0.0]), np.array([3.0]), 0.5)
    array([[2.]])
    """
    low, high = low[:, np.newaxis], high[:, np.newaxis]
    vertices = (0.0,) if slope == 0 else (0.0, low / (2 * slope), high / (2 * slope))
    candidates = (first, last, *(np.clip(vertex, first, last) for vertex in vertices))
    values = [np.where(u > 0, u * high, u * low) - slope * u**2 for u in candidates]
    return np.asarray(np.maximum.reduce(np.broadcast_arrays(*values)))
