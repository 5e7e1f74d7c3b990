"""Judge a release: compare the private table with one synthetic table, by a noisy test of each criterion."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from privsyn.errors import InputError
from privsyn.private.acceptance import Acceptance, Verdict, margins
from privsyn.release.acceptance.criteria import Criteria
from privsyn.release.acceptance.layout import Layout, problem
from privsyn.release.acceptance.statistic import Test, test_of
from privsyn.release.release import Release

if TYPE_CHECKING:
    from privsyn.private.measure import PrivateTable

SEED = 0
"""The seed of the synthetic table that is tested: anybody who has the model can draw it again."""


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
    charges = (*release.ledger.charges, *private.spends[before:])
    return replace(release, ledger=replace(release.ledger, charges=charges, acceptance=acceptance))


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
    products = [np.zeros((1 + len(layout.summed),) * 2) for layout in layouts]
    try:
        for block in release.blocks(None, SEED, None):
            numbers = codec.read(block)
            for place, layout in enumerate(layouts):
                tables[place] += layout.count(numbers)
                products[place] += layout.products(numbers)
    except InputError as error:  # such as no row that keeps the constraints: whoever samples gets this error
        return [f"no synthetic table can be drawn: {error}"] * len(problems)
    tests = map(test_of, layouts, tables, products, [codec.domain] * len(layouts))
    return [found or next(tests) for found in problems]
