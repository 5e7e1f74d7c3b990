"""Means of a column that is counted by its distance from another one, among some rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Datetime, Increasing, Numerical, PrivSyn, Schema


@pytest.mark.parametrize("below", [True, False], ids=["part <= total", "total <= more"])
def test_a_total_that_is_counted_by_its_distance_has_a_mean_in_each_group(below):
    """Seeded: in 36 of 36 such answers of another 12 seeds the interval held, and 6 of 9 had none before."""
    rng, rows = np.random.default_rng(0), 4000
    group = rng.choice(["a", "b"], rows)
    total = rng.integers(0, 60, rows) + (group == "a") * rng.integers(10, 40, rows)
    other = rng.binomial(total, 0.2) if below else total + rng.binomial(100 - total, 0.2)
    amount = Numerical(0, 100, integer=True, nullable=False)
    columns = {"other": amount, "total": amount, "group": Categorical(["a", "b"])}
    order = Increasing(["other", "total"] if below else ["total", "other"])
    table = pd.DataFrame({"other": other, "total": total, "group": group})
    for seed in range(2):
        model = PrivSyn(1.0, 1e-9, Schema(columns, constraints=[order]), seed=seed).fit(table)
        for name in columns.keys() - {"group"}:
            for value in "ab":
                answer = model.ask(f"mean of {name} among group == '{value}'")
                assert answer.low <= answer.estimate <= answer.high
                width = answer.high - answer.low  # 3.9 deviations: beyond both is an error of 5.9
                assert width < 20
                truth = table.loc[group == value, name].mean()
                assert answer.low - width <= truth <= answer.high + width


def test_an_answer_without_an_interval_says_which_column_is_counted_by_its_distance():
    rng = np.random.default_rng(0)
    begin = pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 300, 500), "D")
    table = pd.DataFrame({"begin": begin, "end": begin + pd.to_timedelta(rng.integers(0, 9, 500), "D")})
    day = Datetime("2025-01-01", "2025-12-31", nullable=False)
    schema = Schema(dict.fromkeys(table, day), constraints=[Increasing(["begin", "end"])])
    answer = PrivSyn(1.0, 1e-9, schema, seed=0).fit(table).ask("median of end")
    assert pd.isna(answer.low)
    assert answer.reason.endswith("; end is counted by its distance from begin")
