"""Laws of the scores of ordered columns: correlations, quantiles, tails, standard deviations, group means."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Datetime, Numerical, Schema, Time, evaluate
from privsyn.evaluation import numbers as module
from privsyn.evaluation.encoding import MISSING, coarsen, code_together
from privsyn.evaluation.numbers import SHARES, Shapes, correlations, range_means


def table(seed: int = 0, rows: int = 400) -> pd.DataFrame:
    """Numbers with ties and tails, times, and missing cells that depend on other columns."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 12, rows).astype(float)
    b = a**2 + rng.exponential(20, rows)
    born = pd.Timestamp("2020-01-01") + pd.to_timedelta((b * 3).round(), unit="D")
    frame = pd.DataFrame({"a": a, "b": b.round(3), "born": born, "c": rng.normal(size=rows).round(2)})
    frame.loc[a > 9, "c"] = np.nan
    frame.loc[rng.random(rows) < 0.2, "b"] = np.nan
    frame["group"] = np.where(rng.random(rows) < 0.1, None, np.where(frame["born"] > "2020-06-01", "x", "y"))
    return frame


SCHEMA = Schema(
    {
        "a": Numerical(0, 12),
        "b": Numerical(0, 1000),
        "born": Datetime("2020-01-01", "2030-01-01"),
        "c": Numerical(-10, 10),
        "group": Categorical(["x", "y"]),
    }
)


def numbers(frame):
    found = frame.drop(columns="group")
    return found.assign(born=(found["born"] - pd.Timestamp("1970-01-01")).dt.days)


@pytest.mark.parametrize("method", ["spearman", "pearson"])
def test_correlations_are_those_of_pandas_with_missing_cells_left_out_pair_by_pair(method):
    real, other = table(0), table(1).assign(a=lambda d: d["a"] * 2 % 7)
    scores = evaluate(real, other, SCHEMA, models=False)
    names = ["a", "b", "born", "c"]
    expected = [numbers(frame)[names].corr(method).to_numpy() for frame in (real, other)]
    place = [scores.columns.index(name) for name in names]
    above = np.triu_indices(4, 1)
    truth, ours = (
        getattr(scores.correlations, key)[np.ix_(place, place)][above] for key in (f"real_{method}", method)
    )
    assert truth == pytest.approx(expected[0][above], abs=1e-12)
    assert ours == pytest.approx(expected[1][above], abs=1e-12)
    gaps = np.abs(expected[0] - expected[1])[above]
    assert getattr(scores, f"{method}_mean").synthetic == pytest.approx(gaps.mean())
    assert getattr(scores, f"{method}_max").synthetic == pytest.approx(gaps.max())


def test_the_worst_pairs_are_named_with_both_correlations():
    real = table()
    broken = real.assign(b=real["b"].sample(frac=1, random_state=0).to_numpy())
    scores = evaluate(real, broken, SCHEMA, models=False)
    (pair, truth, found), *others = scores.worst_correlations["spearman"]
    assert set(pair) <= {"a", "b", "born"}
    assert "b" in pair
    assert abs(found) < 0.2 < 0.8 < truth
    assert len(others) == 5
    assert f"worst Spearman's correlation: {pair[0]} x {pair[1]} (real {truth:.2f}" in str(scores)


def test_a_constant_or_empty_column_has_correlation_zero_and_huge_numbers_do_not_overflow():
    columns = np.array([[1.0, 2, 3], [5, 5, 5], [1e300, -1e300, 0], [np.nan, np.nan, 1.0]])
    for matrix in correlations(columns).values():
        assert (matrix[1] == 0).all()
        assert (matrix[3, :3] == 0).all()
    assert correlations(columns)["pearson"][0, 2] == pytest.approx(-0.5)


def test_a_stretched_tail_is_seen_in_its_quantile_and_its_standard_deviation_alone():
    rng = np.random.default_rng(0)
    real = pd.DataFrame({"x": rng.normal(size=5000), "g": "one"})
    far = real.assign(x=np.where(real["x"] > real["x"].quantile(0.97), real["x"] + 5, real["x"]))
    scores = evaluate(real, far, models=False)
    assert scores.tail_max.synthetic == pytest.approx(5 / real["x"].std(ddof=0))
    assert scores.column_errors["x"]["quantiles"] == pytest.approx(scores.tail_max.synthetic / len(SHARES))
    assert scores.spread_max.synthetic == pytest.approx(1 - real["x"].std() / far["x"].std())
    assert scores.quantiles["x"]["0.5"][0] == scores.quantiles["x"]["0.5"][1]
    assert scores.tail_max.real < 0.3


def test_a_column_that_became_constant_is_as_far_as_can_be_and_one_without_numbers_too():
    shapes = Shapes(
        np.array([[1.0], [np.nan], [np.nan], [3.0]]),
        np.array([[1.0], [2.0], [np.nan], [1.0]]),
        np.array([0.0, 0.0, 0.0, 1.0]),
        np.array([2.0, 1.0, 0.0, 0.0]),
    )
    assert shapes.distances.ravel().tolist() == [0, 1, 0, 2]
    assert shapes.spreads.tolist() == [1, 1, 0, 1]


def test_group_means_are_those_of_pandas():
    real, other = table(0), table(1)
    scores = evaluate(real, other, SCHEMA, models=False)
    expected = []
    for name, cells in numbers(real).items():
        ours, theirs = (
            frame.assign(**{name: numbers(frame)[name]}).dropna(subset=[name]).groupby("group")[name]
            for frame in (real, other)
        )
        gap = (ours.mean() - theirs.mean()).abs() / cells.std(ddof=0)
        expected.append((gap * ours.size()).sum() / ours.size().sum())
    assert scores.group_means_mean.synthetic == pytest.approx(np.mean(expected))
    assert scores.group_means_max.synthetic == pytest.approx(np.max(expected))


def test_a_group_without_a_number_counts_one_standard_deviation():
    real = pd.DataFrame({"x": [1.0, 2, 3, 4], "g": ["a", "a", "b", "b"]})
    schema = Schema({"x": Numerical(0, 5), "g": Categorical(["a", "b"])})
    scores = evaluate(real, real.assign(g="a"), schema, models=False)
    mean = abs(1.5 - 2.5) / real["x"].std(ddof=0)
    assert scores.group_means_mean.synthetic == pytest.approx((mean + 1) / 2)


def test_times_of_day_have_scores_too():
    rng = np.random.default_rng(0)
    minutes = rng.integers(0, 1440, 300)
    frame = pd.DataFrame({"at": [f"{m // 60:02}:{m % 60:02}:00" for m in minutes], "x": minutes})
    scores = evaluate(frame, frame, Schema({"at": Time(), "x": Numerical(0, 1440)}), models=False)
    assert scores.correlations.spearman[0, 1] == pytest.approx(1)
    assert scores.quantiles["at"]["0.5"][0] == 60 * scores.quantiles["x"]["0.5"][0]


def test_names_and_keys_of_json_are_stable():
    plain = json.loads(evaluate(table(), table(1), SCHEMA, models=False).to_json())
    metrics = ("spearman", "pearson", "quantiles", "tail", "spread", "group_means", "range_means")
    for name in metrics:
        for part in ("mean", "max"):
            score = plain[f"{name}_{part}"]
            assert score["synthetic"] >= 0
            assert score["real"] is not None
    assert {"error", "cramers_v", "real_cramers_v"} <= plain["pairs"].keys()
    assert {"spearman", "real_spearman", "pearson", "real_pearson"} <= plain["pairs"].keys()
    assert plain["quantiles"]["a"].keys() == {"0.05", "0.25", "0.5", "0.75", "0.95", "0.99"}
    assert {"quantiles", "tail", "spread"} <= plain["column_errors"]["a"].keys()
    assert plain["column_errors"]["group"]["tail"] is None
    assert len(plain["worst_correlations"]["pearson"][0]) == 3


def test_a_table_without_numbers_has_no_such_scores():
    frame = pd.DataFrame({"g": ["a", "b"] * 5, "h": ["a", "b", "b", "a", "a"] * 2})
    scores = evaluate(frame, frame, models=False)
    assert not {"spearman_mean", "quantiles_mean", "group_means_mean"} & scores.table().keys()


@pytest.mark.slow
def test_a_sample_of_a_large_table_has_its_correlations(monkeypatch):
    """5,000 of 20,000 rows: standard error 0.007, 0.05 is 7 of them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    frame = pd.DataFrame({"x": x, "y": x + rng.normal(size=len(x))})
    whole = evaluate(frame, frame, models=False).correlations.spearman[0, 1]
    monkeypatch.setattr(module, "WORK", 5_000)
    monkeypatch.setattr(module, "FEWEST_ROWS", 100)
    some = evaluate(frame, frame, models=False).correlations
    assert some.spearman[0, 1] == some.real_spearman[0, 1]
    assert 0 < abs(some.spearman[0, 1] - whole) < 0.05


def test_the_report_shows_quantiles_and_the_worst_correlations(tmp_path):
    path = tmp_path / "report.html"
    evaluate(table(), table(1), SCHEMA, models=False, report=path)
    page = path.read_text()
    assert "Spearman's correlation: real, synthetic" in page.replace("&#39;", "'")
    assert page.count('<summary class="quiet">Quantiles</summary>') == 4
    assert '<th scope="row">99%</th>' in page
    assert "99 % quantile" in page
    assert "2020-" in page[page.index("Quantiles") :]


@pytest.mark.slow
@pytest.mark.parametrize("values", [7, 16, 17, 90])
def test_means_are_compared_within_ranges_of_any_whole_numbers(values):
    """Numbers were grouped by categories alone, however few values a column of whole numbers had."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, values, 3000)
    real = pd.DataFrame({"group": group, "pay": 10.0 * group + rng.normal(size=3000)})
    shuffled = real.assign(pay=rng.permutation(real["pay"]))
    schema = Schema({"group": Numerical(0, values - 1, integer=True), "pay": Numerical(-10, 10.0 * values)})
    assert evaluate(real, real, schema, models=False).range_means_max.synthetic == 0
    found = evaluate(real, shuffled, schema, models=False)
    assert found.range_means_mean.synthetic == pytest.approx(0.87, abs=0.1)
    assert found.range_means_mean.synthetic == pytest.approx(found.range_means_mean.independent, abs=0.1)
    assert "group_means_mean" not in found.table()


def test_means_by_range_are_those_of_pandas():
    real, other = table(0), table(1).assign(a=lambda d: d["a"] * 2 % 7)
    schema = Schema({"a": Numerical(0, 12, integer=True, bins=13), "c": Numerical(-10, 10)})
    tables = [one[["a", "c"]] for one in (real, other)]
    view, (ours, theirs) = code_together(tables, schema)
    levels = dict(zip(view.domain.names, coarsen(view.labels, ours.records), strict=True))
    expected = []
    for number, by in (("a", "c"), ("c", "a")):
        groups = [
            levels[by].of_code[one.records.codes[:, view.domain.names.index(by)]] for one in (ours, theirs)
        ]
        missing = levels[by].labels.index(MISSING) if MISSING in levels[by].labels else -1
        means = [
            one[number].groupby(group).agg(["mean", "count"]).drop(index=missing, errors="ignore")
            for one, group in zip(tables, groups, strict=True)
        ]
        away = (means[0]["mean"] - means[1]["mean"]).abs() / real[number].std(ddof=0)
        away = away.reindex(means[0].index).fillna(1.0)[means[0]["count"] > 0]
        weights = means[0]["count"][away.index]
        expected.append((away * weights).sum() / weights.sum())
    assert range_means(view, ours, theirs) == pytest.approx(expected)
