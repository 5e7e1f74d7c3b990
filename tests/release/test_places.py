"""Places in regions: what a release says of them, and that rows keep the differences that stand out."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Database, Datetime, PrivSyn, Schema, Table, Within, load, report
from privsyn.errors import LossWarning

AREAS = [f"A{code:02}" for code in range(60)]
HIERARCHY = pd.DataFrame({"area": AREAS, "region": [f"R{code // 10}" for code in range(60)]})


def people(rows=40_000):
    """Areas differ in `ill`, regions in `poor`, and neither in `left`."""
    rng = np.random.default_rng(0)
    area = rng.integers(0, 60, rows)
    ill = rng.random(rows) < np.where(area % 10 < 5, 0.03, 0.25)
    poor = rng.random(rows) < 0.1 + 0.06 * (area // 10)
    left = rng.random(rows) < 0.5
    cells = {"ill": ill, "poor": poor, "left": left}
    return pd.DataFrame(
        {"area": np.array(AREAS)[area], "region": [f"R{code // 10}" for code in area]}
        | {name: np.where(meets, "yes", "no") for name, meets in cells.items()}
    )


def schema(**within):
    names = {"area": AREAS, "region": sorted(set(HIERARCHY["region"]))}
    columns = names | {name: ["no", "yes"] for name in ("ill", "poor", "left")}
    described = {name: Categorical(values, nullable=False) for name, values in columns.items()}
    return Schema(described, constraints=[Within({"area": "region"}, HIERARCHY)] if not within else [])


def fitted(epsilon, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LossWarning)
        return PrivSyn(epsilon, schema=schema(), seed=0, **settings).fit(people())


@pytest.fixture(scope="module")
def model():
    return fitted(3.0)


@pytest.mark.slow
def test_a_release_says_at_which_level_places_differ(model, tmp_path):
    levels = {level.column: level.level for level in model.place_levels()}
    assert levels == {"ill": "area", "poor": "region", "left": ""}
    model.save(tmp_path / "model.privsyn")
    again = load(tmp_path / "model.privsyn")
    assert again.place_levels() == model.place_levels()
    report(again, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "ill: values of &#39;area&#39; in one &#39;region&#39; differ" in page
    assert "Which values of area may I compare?" in page  # in the words of the schema: they may be no places
    assert "values lie in groups: each value of area in one of region" in page
    words = re.sub("<(script|style).*?</\\1>", "", page, flags=re.DOTALL)
    assert not re.search(r">[^<]*\bplaces?\b", words)
    assert page.count('data-label="beside it">above it') >= 20
    assert page.count('data-label="beside it">below it') >= 20


@pytest.mark.slow
def test_rows_keep_the_differences_and_intervals_hold(model):
    real, rows = people(), model.sample(seed=1)
    shares = [(frame["ill"] == "yes").groupby(frame["area"]).mean() for frame in (real, rows)]
    assert 0.9 < shares[1].std() / shares[0].std() < 1.1
    answers = model.ask("share of ill == 'yes'", by="area")
    assert len(answers) == 60
    hold = [answer.low <= share <= answer.high for answer, share in zip(answers, shares[0], strict=True)]
    assert sum(hold) >= 48  # of intervals of 95 %: fewer with a probability below 1e-6


@pytest.mark.slow
def test_a_loss_names_the_columns_in_which_places_may_differ_and_no_others(model):
    with pytest.warns(LossWarning, match="area: values in one 'region' are made alike"):
        noisy = PrivSyn(0.1, schema=schema(), seed=0).fit(people())
    [loss] = [loss for loss in noisy.losses_ if loss.kind == "places"]
    assert "in poor, left: no count shows how" in str(loss)  # areas differ visibly in `ill`
    assert {level.column: level.is_hidden for level in noisy.place_levels()} == {
        "ill": False,
        "poor": True,
        "left": True,
    }
    # With more budget the answers bound how areas differ in columns in which they are alike.
    assert not any(loss.kind == "places" for loss in model.losses_)
    bounded = [level for level in model.place_levels() if level.level != "area"]
    assert all(0 < level.may_differ < 0.02 for level in bounded)
    assert all("in one 'region' differ by less than" in str(level) for level in bounded)


def test_the_parts_of_a_column_of_times_are_named_apart(tmp_path):
    rng = np.random.default_rng(2)
    at = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 731 * 1440, 3000), unit="min")
    rows = people(3000)[["area", "region"]].assign(at=at)
    times = Datetime("2020-01-01 00:00", "2021-12-31 23:59", unit="min", nullable=False)
    areas = {name: column for name, column in schema().columns.items() if name in rows}
    described = Schema(areas | {"at": times}, constraints=[Within({"area": "region"}, HIERARCHY)])
    with pytest.warns(LossWarning):
        model = PrivSyn(0.3, schema=described, seed=0).fit(rows)
    levels = model.place_levels()
    parts = ["at (date)", "at (time of day)", "at (day of week)"]
    assert [(level.column, str(level).split(":")[0]) for level in levels] == [("at", part) for part in parts]
    [loss] = [loss for loss in model.losses_ if loss.kind == "places"]
    hidden = [level.compared for level in levels if level.is_hidden]
    assert len(hidden) >= 2
    assert f"in {', '.join(hidden)}: no count shows how" in str(loss)
    report(model, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert all(f"<li>{part}: " in page for part in parts)


@pytest.mark.slow
def test_a_linked_table_has_levels_and_a_schema_without_a_hierarchy_has_none():
    homes = people(3000).rename_axis("home").reset_index()
    visits = pd.DataFrame({"home": np.arange(3000), "kind": np.where(np.arange(3000) % 2, "a", "b")})
    database = Database(
        {
            "homes": Table(schema(), key="home"),
            "visits": Table(Schema({"kind": Categorical(["a", "b"])}), link="home", parent="homes"),
        }
    )
    model = PrivSyn(20.0, schema=database, seed=0).fit({"homes": homes, "visits": visits})
    assert {level.table for level in model.place_levels()} == {"homes"}
    assert "homes.ill" in str(model.place_levels()[0])
    alone = PrivSyn(1.0, schema=schema(without=True), seed=0).fit(people(500))
    assert alone.place_levels() == ()
