"""Draws of odd answers are finite: counts far from their bounds, tiny counts, hardly any noise."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from privsyn import Numerical, PrivSyn, Schema
from privsyn.errors import NotFoundWarning


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("epsilon", "delta", "reach", "rows"),
    [(1.0, 1e-9, 1e6, 500), (2.97, 1e-9, 1.0, 2), (118.0, 0.0, 5.0, 30), (726.06, 0.0, 9.0, 30)],
)
def test_draws_of_odd_answers_are_finite(epsilon, delta, reach, rows, seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.normal(size=rows), "b": rng.normal(size=rows)})
    schema = Schema({name: Numerical(-reach, reach, nullable=False) for name in table})
    model = PrivSyn(epsilon, delta, schema, seed=seed, allow_weak_privacy=True).fit(table)
    for draw in model.draws(2, 50, seed=seed):
        assert np.isfinite(draw.to_numpy()).all()


def test_a_paid_run_ends_well_where_warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PrivSyn(0.001, 1e-6, seed=0).fit(pd.DataFrame({"age": range(50)}))
    assert model.not_found_ == ("age",)
    with pytest.warns(NotFoundWarning):
        model.fit(pd.DataFrame({"age": range(50)}))
