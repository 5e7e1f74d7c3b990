"""Scores by models: they do not diverge with rare classes, and implausible scores give no verdict."""

from __future__ import annotations

import json
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from privsyn import Categorical, Numerical, Schema, evaluate
from privsyn.evaluation import models
from privsyn.evaluation.encoding import code_together
from privsyn.evaluation.models import Task, influence_on_auc, influence_on_r2, learning
from privsyn.evaluation.predictions import standard_error

VALUES = 6


def table_of_classes(*sizes: int, seed: int = 0) -> pd.DataFrame:
    """Eight columns that each depend weakly on a class, with the given number of rows of each class."""
    rng = np.random.default_rng(seed)
    target = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    columns = {}
    for place in range(8):
        shares = np.random.default_rng(place).dirichlet(np.full(VALUES, 3.0), size=len(sizes)).cumsum(axis=1)
        codes = (rng.random((len(target), 1)) > shares[target]).sum(axis=1).clip(0, VALUES - 1)
        columns[f"x{place}"] = codes.astype(str)
    return pd.DataFrame(columns | {"y": np.array(list("abcdefgh"))[target]})


SCHEMA = Schema(
    {f"x{place}": Categorical([str(value) for value in range(VALUES)]) for place in range(8)}
    | {"y": Categorical(list("abcdefgh"))}
)


def scores_of(train: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    """Return the scores on a test table of models trained on another."""
    view, (known, tested) = code_together([train, test], SCHEMA)
    task = Task.of(view, known, "y")
    return {name: score.value for name, score in learning(view, task, known, tested).items()}


def loans(seed: int = 0, rows: int = 600) -> pd.DataFrame:
    """A rate that says nearly who is late, by differences within one of ten bins, and a wild amount."""
    rng = np.random.default_rng(seed)
    rate = np.where(rng.random(rows) < 0.02, rng.uniform(0, 100, rows), rng.uniform(10, 19.9, rows))
    late = np.where((rate > 15) ^ (rng.random(rows) < 0.1), "yes", "no")
    return pd.DataFrame({"rate": rate.round(2), "amount": rng.lognormal(8, 2, rows), "late": late})


LOANS = Schema(
    {
        "rate": Numerical(0, 100, decimals=2, bins=10),
        "amount": Numerical(0, 1e7, decimals=2, bins=10),
        "late": Categorical(["no", "yes"]),
    }
)


@pytest.mark.parametrize("schema", [LOANS, None])
def test_models_learn_from_numbers_and_not_from_their_bins(schema):
    """A model that somebody trains outside of this package has the same AUC; rows of bins teach little."""
    real, test = loans(), loans(1)
    in_bins = real.assign(rate=np.floor(real["rate"] / 10) * 10 + 5)
    models = ["boosting", "linear", "forest", "mlp", "distilled"]
    scores = evaluate(real, in_bins, schema, target="late", test=test, models=models)
    outside = HistGradientBoostingClassifier(random_state=0).fit(real[["rate"]], real["late"])
    auc = roc_auc_score(test["late"] == "yes", outside.predict_proba(test[["rate"]])[:, 1])
    assert auc > 0.85
    for name in models:
        assert scores.values[f"{name}_auc"].real > auc - 0.06, name
        assert scores.values[f"{name}_auc"].synthetic < auc - 0.2, name


@pytest.mark.parametrize("models", [["linear"], ["boosting", "forest", "mlp", "distilled"]])
def test_odd_numbers_break_no_model(models):
    """Numbers that are missing, or the same, in one table alone, and one that is far from all others."""
    rng = np.random.default_rng(0)
    real = pd.DataFrame({"x": rng.normal(size=300), "y": rng.normal(size=300), "flat": 1.0})
    real["z"] = real["x"] + real["y"] + rng.normal(0, 0.1, 300)
    other = real.assign(flat=rng.normal(size=300))
    other.loc[:50, "y"] = np.nan
    other.loc[60, "y"] = 1e12
    scores = evaluate(real, other, target="z", models=models)
    assert all(score.synthetic > 0.2 for name, score in scores.learning.items() if name.endswith("r2"))
    assert all(score.real > 0.6 for name, score in scores.learning.items() if name.endswith("r2"))
    flipped = evaluate(other, real, target="z", models=models)
    assert all(np.isfinite(score.synthetic) for score in flipped.learning.values())


@pytest.mark.slow
def test_boosting_does_not_diverge_with_rare_classes(monkeypatch):
    """Without a penalty on its leaves its AUC is 0.57 here, that of the linear model 0.75."""
    monkeypatch.setattr(models, "HistGradientBoostingClassifier", HistGradientBoostingClassifier)  # all trees
    scores = scores_of(table_of_classes(3500, 1500, 10, 7, 5, 3), table_of_classes(*[100] * 6, seed=1))
    assert scores["linear_auc"] > 0.7
    assert scores["boosting_auc"] > scores["linear_auc"] - 0.06


def test_classes_of_few_test_rows_have_no_weight():
    """One test row of a class would move the mean AUC of three classes by up to a third."""
    real, test = table_of_classes(500, 500, 20), table_of_classes(300, 300, 9, seed=2)
    ours, theirs = scores_of(real, test), scores_of(real, test[test.y != "c"])
    for name in ours.keys() - {"boosting_accuracy", "linear_accuracy"}:
        assert ours[name] == pytest.approx(theirs[name], abs=0.02)


@pytest.mark.slow
def test_no_verdict_if_real_rows_are_worse_for_training_than_synthetic_ones():
    good, test = table_of_classes(400, 400), table_of_classes(300, 300, seed=3)
    noise = good.assign(y=np.random.default_rng(0).permutation(good.y))
    refused = evaluate(noise, good, SCHEMA, target="y", test=test)
    assert "No verdict on predicting y" in refused.verdict
    assert "more than 2 standard errors (standard error of the difference 0.0" in refused.verdict
    assert "gradient boosting, AUC (no verdict)" in str(refused)
    fine = evaluate(good, noise, SCHEMA, target="y", test=test)
    assert "No verdict" not in fine.verdict
    assert "(no verdict)" not in str(fine)
    assert "trained on real rows, 0." in fine.verdict


@pytest.mark.slow
def test_the_verdict_uses_the_model_that_scores_higher_on_real_rows():
    """A linear model cannot predict whether two columns are equal."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (800, 2))
    real = pd.DataFrame({"a": bits[:, 0], "b": bits[:, 1], "y": np.where(bits[:, 0] == bits[:, 1], "x", "z")})
    assert "gradient boosting trained on synthetic rows" in evaluate(real, real, target="y").verdict
    straight, test = table_of_classes(400, 400), table_of_classes(300, 300, seed=3)
    scores = evaluate(straight, straight, SCHEMA, target="y", test=test)
    assert "a linear model trained on synthetic rows" in scores.verdict


def test_influences_of_an_auc_are_those_of_delong():
    rng = np.random.default_rng(0)
    truth, scores = rng.random(60) < 0.3, rng.integers(0, 9, 60).astype(float)
    positive, negative = scores[truth], scores[~truth]
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    found = influence_on_auc(truth, scores)
    variance = wins.mean(axis=1).var() / len(positive) + wins.mean(axis=0).var() / len(negative)
    assert standard_error(found, np.zeros(60)) == pytest.approx(sqrt(variance))
    assert found.mean() == pytest.approx(0)


@pytest.mark.slow("each case")
@pytest.mark.parametrize("measure", ["auc", "r2"])
def test_the_standard_error_is_that_of_fresh_test_rows(measure):
    """Two equally good models, 2,000 test tables: |difference| > 1.96 errors in 5 % of them.

    The count is off by more than five standard deviations (a quarter of it) with a chance below 1e-6.
    """
    rng, rejected, runs, rows = np.random.default_rng(0), 0, 2000, 200
    bound = norm.ppf(0.975)
    for _ in range(runs):
        truth = rng.normal(size=rows)
        one, other = truth / 2 + rng.normal(0, 0.5, rows), truth / 2 + rng.normal(0, 0.5, rows)
        if measure == "auc":
            parts = [influence_on_auc(truth > 0.5, guess) for guess in (one, other)]
            ranks = [guess.argsort().argsort()[truth > 0.5].sum() for guess in (one, other)]
            positives = int((truth > 0.5).sum())
            difference = (ranks[0] - ranks[1]) / (positives * (rows - positives))
        else:
            parts = [influence_on_r2(truth, guess) for guess in (one, other)]
            difference = (((truth - other) ** 2).mean() - ((truth - one) ** 2).mean()) / truth.var()
        rejected += abs(difference) > bound * standard_error(*parts)
    assert abs(rejected - 0.05 * runs) < 5 * sqrt(runs * 0.05 * 0.95)


def test_each_class_has_the_recall_and_the_mean_probability_of_each_model(tmp_path):
    """By hand: a column that decides the class, but for the rarest, which nothing tells apart."""
    clear = pd.DataFrame({"x": ["a"] * 300 + ["b"] * 200 + ["c"] * 100})
    real = clear.assign(y=clear["x"].replace({"c": "b"}).where(clear.index < 580, "rare"))
    test = real.iloc[::2]
    report = tmp_path / "r.html"
    scores = evaluate(real, clear.assign(y="a"), target="y", test=test, models=["linear"], report=report)
    rows = {row["label"]: row for row in scores.classes}
    assert [(name, row["rows"], round(row["share"], 3)) for name, row in sorted(rows.items())] == [
        ("a", 150, 0.5),
        ("b", 140, 0.467),
        ("rare", 10, 0.033),
    ]
    for name, recall in (("a", 1), ("b", 1), ("rare", 0)):
        assert rows[name]["linear_recall_real"] == recall
        assert rows[name]["linear_predicted_real"] == pytest.approx(rows[name]["share"], abs=0.01)
        assert rows[name]["linear_recall_synthetic"] == (name == "a")
        assert rows[name]["linear_predicted_synthetic"] == (name == "a")
    assert scores.linear_recall.real == pytest.approx(2 / 3)
    assert scores.linear_calibration.synthetic == pytest.approx(0.5)
    assert scores.linear_calibration.real < 0.05
    assert json.loads(scores.to_json())["classes"][0]["label"] == scores.classes[0]["label"]
    page = report.read_text()
    assert "Classes of y" in page
    assert "100%, 100%" in page


def test_a_number_has_no_classes():
    real = pd.DataFrame({"x": np.arange(200) % 7, "y": np.arange(200)})
    assert evaluate(real, real, target="y", models=["linear"]).classes == ()
    assert evaluate(real, real, target="y", models=False).classes == ()
