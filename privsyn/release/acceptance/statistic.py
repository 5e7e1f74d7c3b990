"""Each criterion as a statistic: what a private row adds to it, in the worst case of its cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import ceil, isfinite

import numpy as np

from privsyn.marginals.domain import Attributes, Domain, Floats, Ints, Mask
from privsyn.marginals.recoding import Merging
from privsyn.private.acceptance import QUESTION, UNIT, Distance, Excess, Sums
from privsyn.release.acceptance.criterion import Margin, Proportion
from privsyn.release.acceptance.layout import Layout
from privsyn.release.acceptance.line import Line
from privsyn.release.acceptance.slope import Slope

TOO_FAR = "sums or products of its numbers are not doubles: narrow the bounds, or take another unit"


@dataclass(frozen=True, eq=False)
class Test:
    """A criterion as a statistic.

    Parameters
    ----------
    excess : Excess
    unit : float
        The value of one unit of the excess, in the unit of the criterion.
    least : int
        The excess of the synthetic table itself, which has no error. It is below 0 by the allowed error,
        less what the worst cases of `test_of` take.
    """

    excess: Excess
    unit: float
    least: int


def test_of(layout: Layout, table: Ints, products: Floats, domain: Domain) -> Test | str:
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
    domain : Domain
    """
    criterion, rows = layout.criterion, int(table.sum())
    common = (f"{QUESTION}{criterion}", layout.merging(domain), criterion.columns)
    if not rows:
        return "the synthetic table has no row"
    if isinstance(criterion, Margin):
        allowed = int(Fraction(criterion.error) * UNIT)
        distance = Distance(*common, table, allowed)
        return Test(distance, 1 / (UNIT * rows), distance.of(table))
    within, among = Fraction(criterion.bound), round(float(products[0, 0]))
    if isinstance(criterion, Proportion):
        above, below, step = _units((0, 1), (0, 1), Fraction(among, rows), within)
        possible, sure = (_all_of(masks).astype(np.int64) for masks in (layout.possible, layout.sure))
        sums = Sums(*common, above[possible], below[sure])
        return Test(sums, float(step) / rows, sums.of(table))
    if not among:
        return "no synthetic row meets its conditions"
    if not np.isfinite(products[0]).all():
        return TOO_FAR
    if isinstance(criterion, Slope):
        return _slope_test(criterion, layout, table, products, common)
    (of,) = layout.summed
    numbers = ~np.isnan(of.lows)
    above, below = np.zeros((2, len(of.lows)), np.int64)
    middle = Fraction(of.origin) + Fraction(float(products[0, 1])) / among
    above[numbers], below[numbers], step = _units(
        of.lows[numbers].tolist(), of.highs[numbers].tolist(), middle, within
    )
    sums = Sums(*common, *_sides(layout, above, below))
    return Test(sums, float(step) / among, sums.of(table))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _slope_test(
    criterion: Slope, layout: Layout, table: Ints, products: Floats, common: tuple[str, Merging, Attributes]
) -> Test | str:
    """Return the test of a slope: see `privsyn.release.acceptance.line`."""
    line = Line.of(layout.summed, products)
    if line is None:
        return "all synthetic rows have the same regressor"
    if not (share := abs(line.slope) if criterion.relative else 1.0):
        return "the released slope is 0: give an error that is no percentage"
    units = line.units(layout.summed, criterion.bound * share)
    if units is None or not isfinite(unit := units[2] / line.square / share):
        return TOO_FAR
    above, below, _ = units
    sums = Sums(*common, *_sides(layout, above, below))
    if (least := sums.of(table)) >= 0:
        return "its numbers are counted in cells too wide for this error: allow more or give a step"
    return Test(sums, unit, least)


def _sides(layout: Layout, above: Ints, below: Ints) -> list[Ints]:
    """Return what a row in each cell of the table adds, given what it adds if it meets the conditions.

    The first axes are those of the variables.
    """
    inside = _all_of(layout.sure).astype(np.int64)
    cut = _all_of(layout.possible).astype(np.int64) - inside
    others = tuple(range(above.ndim, inside.ndim))
    return [
        np.expand_dims(side, others) * inside + np.expand_dims(np.maximum(side, 0), others) * cut
        for side in (above, below)
    ]


def _all_of(masks: Sequence[Mask]) -> Mask:
    """Return in which cells of a table all attributes are in their mask."""
    return np.asarray(reduce(np.logical_and.outer, masks, np.array(True)))


def _units(
    lows: Sequence[float], highs: Sequence[float], middle: Fraction, within: Fraction
) -> tuple[Ints, Ints, Fraction]:
    """Return what a row in each cell adds to both sums of `Sums`, rounded up, and the value of a unit.

    A number may lie anywhere in its cell. The ends of the cell are the worst cases, so a criterion that is
    not met has an excess above 0 wherever the numbers lie.
    """
    first, last = list(map(Fraction, lows)), list(map(Fraction, highs))
    step = (max(max(last) - middle, middle - min(first), Fraction(0)) + within) / UNIT
    above = [ceil((high - middle - within) / step) for high in last]
    below = [ceil((middle - low - within) / step) for low in first]
    return np.array(above, np.int64), np.array(below, np.int64), step
