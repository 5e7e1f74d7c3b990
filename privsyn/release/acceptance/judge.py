"""Judge a release: compare the private table with one synthetic table, by a noisy test of each criterion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Domain
from privsyn.marginals.types import Ints, Mask
from privsyn.private.acceptance.excess import UNIT, Distance, Excess, Sums
from privsyn.private.acceptance.verdict import QUESTION, Acceptance, Verdict, margins
from privsyn.release.acceptance.criteria import Criteria, Margin, Proportion
from privsyn.release.acceptance.layout import Layout, problem
from privsyn.release.release import Release

if TYPE_CHECKING:
    from privsyn.private.measure import PrivateTable

SEED = 0
"""The seed of the synthetic table that is tested: anybody who has the model can draw it again."""


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
        less what the worst cases of `_test` take.
    """

    excess: Excess
    unit: float
    least: int


def judge(release: Release, criteria: Criteria, private: PrivateTable, rho: float) -> Release:
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
    asked = [test for test in tests if isinstance(test, Test)]
    before = len(private.spends)
    noisy = iter(private.excesses([test.excess for test in asked], rho))
    verdicts = []
    for criterion, test in zip(criteria.criteria, tests, strict=True):
        if isinstance(test, Test):
            excess, scale = next(noisy)
            sure, safe = margins(private.law, scale, criteria.risk, len(asked))
            verdict = Verdict(
                str(criterion),
                met=excess <= -sure,
                bound=criterion.bound,
                estimate=max(criterion.bound + excess * test.unit, 0.0),
                safe=max(-(test.least + sure + safe) * test.unit, 0.0),
            )
        else:
            verdict = Verdict(str(criterion), met=False, bound=criterion.bound, problem=test)
        verdicts.append(verdict)
    acceptance = Acceptance(criteria.share, criteria.risk, tuple(verdicts))
    spends = (*release.ledger.spends, *private.spends[before:])
    return replace(release, ledger=replace(release.ledger, spends=spends, acceptance=acceptance))


def tests_of(release: Release, criteria: Criteria) -> list[Test | str]:
    """Return the test of each criterion, or why there is none. All of it follows from the release."""
    codec = release.codec
    problems = [problem(codec, criterion) for criterion in criteria.criteria]
    layouts = [
        Layout.of(codec, release.fitted, criterion)
        for criterion, found in zip(criteria.criteria, problems, strict=True)
        if not found
    ]
    tables = [np.zeros(layout.shape, np.int64) for layout in layouts]
    among, sums = [0] * len(layouts), [0.0] * len(layouts)
    try:
        for block in release.blocks(None, SEED, None):
            numbers = codec.read(block)
            for place, layout in enumerate(layouts):
                tables[place] += layout.count(numbers)
                met, total = layout.met(numbers)
                among[place] += met
                sums[place] += total
    except InputError as error:  # such as no row that keeps the constraints: whoever samples gets this error
        return [f"no synthetic table can be drawn: {error}"] * len(problems)
    tests = map(_test, layouts, tables, among, sums, [codec.domain] * len(layouts))
    return [found or next(tests) for found in problems]


def _test(layout: Layout, table: Ints, among: int, total: float, domain: Domain) -> Test | str:
    """Return the test of a criterion, given the counts of the synthetic table.

    Parameters
    ----------
    among : int
        Synthetic rows that meet the conditions.
    total : float
        Sum of the averaged column over these.

    A cell that a condition cuts counts as the worst case on both sides: a criterion that is not met has an
    excess above 0, whichever private rows of the cell meet the condition.
    """
    criterion, rows = layout.criterion, int(table.sum())
    common = (f"{QUESTION}{criterion}", layout.merging(domain), criterion.columns)
    if not rows:
        return "the synthetic table has no row"
    if isinstance(criterion, Margin):
        allowed = int(Fraction(criterion.error) * UNIT)
        distance = Distance(*common, table, allowed)
        return Test(distance, 1 / (UNIT * rows), distance.of(table))
    within = Fraction(criterion.bound)
    if isinstance(criterion, Proportion):
        above, below, step = _units((0, 1), (0, 1), Fraction(among, rows), within)
        possible, sure = (_all_of(masks).astype(np.int64) for masks in (layout.possible, layout.sure))
        sums = Sums(*common, above[possible], below[sure])
        return Test(sums, float(step) / rows, sums.of(table))
    if not among:
        return "no synthetic row meets its conditions"
    lows, highs = layout.cells[0].lows, layout.cells[0].highs
    numbers = ~np.isnan(lows)
    above, below = np.zeros((2, len(lows)), np.int64)
    above[numbers], below[numbers], step = _units(
        lows[numbers].tolist(), highs[numbers].tolist(), Fraction(total) / among, within
    )
    inside = _all_of(layout.sure[1:])  # the first attribute is averaged and has no condition
    cut = _all_of(layout.possible[1:]) & ~inside
    sides = [
        np.multiply.outer(side, inside.astype(np.int64))
        + np.multiply.outer(np.maximum(side, 0), cut.astype(np.int64))
        for side in (above, below)
    ]
    sums = Sums(*common, *sides)
    return Test(sums, float(step) / among, sums.of(table))


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
