"""Records follow drawn pairs that contradict each other, once trends are made up for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import reference

from privsyn import Numerical, PrivSyn, Schema
from privsyn.inference.ordered.tilt import ranks_of
from privsyn.inference.posterior.tables import FARTHEST, Posterior, _functions, made_up
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal

ROWS = 4000
NAMES = tuple("abcdefghij")


@pytest.fixture(scope="module")
def release():
    """Ten numbers with one common cause, and much noise."""
    rng = np.random.default_rng(0)
    scores = 0.85 * rng.standard_normal((ROWS, 1)) + 0.53 * rng.standard_normal((ROWS, len(NAMES)))
    table = pd.DataFrame(np.clip(100 + 25 * scores, 0, 200).round(), columns=list(NAMES))
    schema = Schema({name: Numerical(0, 200, nullable=False) for name in NAMES})
    return PrivSyn(0.5, 1e-9, schema, seed=2).fit(table).release_


def trend(table):
    a, b = (ranks_of(table.project((name,)))[:, 0] for name in table.attributes)
    return float(a @ table.counts @ b) / table.total


@pytest.mark.slow
def test_records_have_the_drawn_trends_once_what_they_miss_is_made_up_for(release):
    """The mean over 45 pairs and three draws shrinks by a third. Here the first records exceed the trends."""
    drawn, first, second = [], [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        one = Posterior(release.fitted).draw(rng)
        records = replace(release.table(), fitted=one).records(ROWS, rng)
        again = replace(release.table(), fitted=made_up(one, records, {})).records(ROWS, rng)
        for table in one.marginals:
            if len(table.domain) == 2:
                drawn.append(trend(table))
                for found, made in ((first, records), (second, again)):
                    found.append(trend(reference.count(made, table.attributes)))
    short, left = (np.mean(drawn) - np.mean(found) for found in (first, second))
    assert abs(short) > 0.02
    assert abs(left) < 0.85 * abs(short)


@pytest.mark.slow
def test_a_trend_that_the_records_follow_does_not_change(release):
    records = release.table().records(ROWS, np.random.default_rng(0))
    followed = replace(
        release.fitted,
        marginals=tuple(reference.count(records, t.attributes) for t in release.fitted.marginals),
    )
    for before, after in zip(followed.marginals, made_up(followed, records, {}).marginals, strict=True):
        assert trend(after) == pytest.approx(trend(before), abs=0.005)


def test_numbers_add_to_ranks_what_ranks_do_not_have():
    side = Marginal(Domain(("a",), (5,), (4,)), np.array([40.0, 30, 20, 10, 7]))
    functions = _functions(side, np.array([0.0, 1, 2, 50]))
    moments = functions.T @ np.diag(side.counts) @ functions / 100
    np.testing.assert_allclose(moments, np.eye(2), atol=1e-12)
    assert np.abs(functions[4]).max() == 0
    assert _functions(side, np.array([3.0, 3, 3, 3])).shape == (5, 1)
    far = _functions(Marginal(side.domain, np.array([1e4, 1e4, 1e4, 1, 0])), np.array([0.0, 1, 2, 1e9]))
    assert np.abs(far[:, 0]).max() < FARTHEST
