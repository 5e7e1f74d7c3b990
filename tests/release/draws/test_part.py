"""A part of a release has the same tables of its columns, and those columns alone are drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Datetime, Increasing, Numerical, PrivSyn, Schema
from privsyn.release.draws.frames import FrameDraws, codec_of, part_of
from privsyn.release.release import Release

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


@pytest.mark.slow("each case")
@pytest.mark.parametrize(
    ("asked", "columns"),
    [(["a", "c3"], ["a", "c3"]), (["last"], ["first", "last"]), (["seen", "a"], ["a", "seen"])],
)
def test_a_part_has_the_codes_and_the_tables_of_its_columns_and_of_those_linked_by_constraints(
    release, asked, columns
):
    part = part_of(release.table(), asked)
    whole = release.codec
    assert list(part.codec.names) == columns
    assert part.codec.domain == whole.domain.project(part.codec.domain.names)
    assert {whole.column_of(name) for name in part.codec.domain} == set(columns)
    inside = set(part.codec.domain)
    kept = [t for t in release.fitted.marginals if set(t.attributes) <= inside]
    assert list(part.fitted.marginals) == kept
    sample = Release.of_table(part).sample(500, seed=0)
    assert list(sample) == columns
    assert (sample.dtypes == release.sample(10, seed=0).dtypes[columns]).all()
    if "last" in columns:
        assert (sample["first"] <= sample["last"]).all()


@pytest.mark.slow
def test_the_codec_of_each_column_alone_has_its_codes(release):
    for name in ("a", "first", "c0"):
        alone = codec_of(release.codec, [name], constrained=False)
        assert alone.domain == release.codec.domain.project((name,))


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


def test_a_condition_on_two_columns_draws_these_alone_and_reports_it(release):
    accuracy = release.accuracy_
    pair = next(
        names
        for names in accuracy.tables["columns"]
        if len(names) == 2 and names[0] == "a" and names[1] in table().columns[4:]
    )
    said = []
    found = accuracy.share(f"a == 'x' and {pair[1]} > 0.5", progress=lambda *step: said.append(step))
    assert found["covered"]
    ((columns, frames),) = release.table().accuracy_._estimates._kept.items()
    assert columns == set(pair) == set(frames[0])
    assert said[-1] == ("drawing tables", 20, 20)
    mean = accuracy.mean(pair[1], "a == 'x'", progress=lambda *step: said.append(step))
    assert said[-1] == ("drawing tables", 20, 20)
    assert mean["low"] < table().loc[table()["a"] == "x", pair[1]].mean() < mean["high"]
