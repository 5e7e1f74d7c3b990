"""A share of one column is that of its released counts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Datetime, Increasing, Numerical, PrivSyn, Schema
from privsyn.release.draws.frames import FrameDraws

ROWS = 2000
SCHEMA = Schema(
    {
        "a": Categorical(["x", "y", "z"], nullable=False),
        "first": Numerical(0, 50, integer=True, nullable=False),
        "last": Numerical(0, 90, integer=True, nullable=False),
        "seen": Datetime("2020-01-01", "2020-12-31 23:59:59", unit="s"),
        **{f"c{k}": Numerical(0, 1) for k in range(6)},
    },
    constraints=[Increasing(["first", "last"])],
)


def table():
    rng = np.random.default_rng(0)
    a, first = rng.choice(["x", "y", "z"], ROWS, p=[0.6, 0.35, 0.05]), rng.integers(0, 50, ROWS)
    seconds = rng.integers(0, 366 * 86_400, ROWS)
    columns = {"a": a, "first": first, "last": first + rng.integers(0, 40, ROWS)}
    columns["seen"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(seconds, unit="s")
    return pd.DataFrame(
        columns | {f"c{k}": np.clip((a == "x") * 0.3 + rng.random(ROWS), 0, 1) for k in range(6)}
    )


@pytest.fixture(scope="module")
def release():
    return PrivSyn(5.0, 1e-6, SCHEMA, seed=0).fit(table()).release_


def test_the_share_of_a_value_is_that_of_its_released_count_and_needs_no_draw(release, monkeypatch):
    monkeypatch.setattr(FrameDraws, "frame", None)
    counts = release.accuracy_.counts("a").set_index("a")
    total = counts["estimate"].sum()
    for value, count in counts.iterrows():
        found = release.accuracy_.share(f"a == {value!r}")
        assert found["covered"]
        assert found["estimate"] == pytest.approx(count["estimate"] / total, rel=1e-12)
        assert found["low"] - 0.02 <= (table()["a"] == value).mean() <= found["high"] + 0.02
        assert max(found["low"], count["low"] / total) < min(found["high"], count["high"] / total)
    shares = [release.accuracy_.share(where)["estimate"] for where in ("a in ['x', 'y']", "a == 'z'")]
    assert sum(shares) == pytest.approx(1)
    for k in range(6):  # an estimate uses all answers, and may lie outside what its own column's show
        found = release.accuracy_.share(f"c{k} >= 0.5")
        assert found["low"] <= found["estimate"] <= found["high"]
    found = release.accuracy_.share("c0 >= 0.5")
    assert found["low"] - 0.02 <= (table()["c0"] >= 0.5).mean() <= found["high"] + 0.02
