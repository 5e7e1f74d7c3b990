"""Weights of a survey: weighted estimates hold, the population is drawn by weight, noise is said."""

from __future__ import annotations

from dataclasses import astuple
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from command import run
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from privsyn import (
    Categorical,
    Database,
    Identifier,
    Numerical,
    PrivSyn,
    Schema,
    Table,
    Weight,
    evaluate,
    load,
    read_schema,
    report,
)
from privsyn.inference.weight_groups import DEPENDENCE, least_error_groups
from privsyn.methods.budget import Split
from privsyn.table.schema.yaml_file import to_yaml

COLUMNS = {
    "id": Identifier(),
    "vote": Categorical(["yes", "no"], nullable=False),
    "age": Numerical(18, 90, integer=True, nullable=False),
}
SURVEY = Schema({**COLUMNS, "w": Weight(0.2, 8)})


def survey(rows: int, seed: int) -> pd.DataFrame:
    """A sample in which those who vote yes are old, and have small weights."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, rows)
    vote = rng.random(rows) < 0.2 + 0.5 * (age > 50)
    weights = np.exp(rng.normal(0.3, 0.5, rows) - 1.0 * vote).clip(0.2, 8)
    return pd.DataFrame({"id": range(rows), "vote": np.where(vote, "yes", "no"), "age": age, "w": weights})


@pytest.fixture(scope="module")
def sample():
    return survey(3000, 0)


@pytest.fixture(scope="module")
def model(sample):
    return PrivSyn(2.0, 1e-9, SURVEY, seed=2).fit(sample)


@given(st.lists(st.tuples(st.floats(0.1, 5), st.floats(0, 90)), min_size=1, max_size=7), st.floats(0.1, 100))
def test_groups_have_the_least_expected_error_of_all(steps, sigma):
    weights, rows = np.cumsum([step for step, _ in steps]), np.array([count + 1e-3 for _, count in steps])
    mean = rows @ weights / rows.sum()

    def error(groups):
        counts = np.bincount(groups, rows)
        centres = np.bincount(groups, rows * weights) / counts
        variances = np.bincount(groups, rows * (weights - centres[groups]) ** 2) / counts
        hidden = (DEPENDENCE * counts) ** 2 @ variances
        return sigma**2 * ((centres - mean) ** 2).sum() + hidden

    size = len(weights)
    divisions = (cuts for number in range(size) for cuts in combinations(range(1, size), number))
    least = min(error(np.searchsorted(cuts, np.arange(size), "right")) for cuts in divisions)
    assert error(least_error_groups(weights, rows, sigma)) == pytest.approx(least, rel=1e-6, abs=1e-6)


@given(st.floats(1e-9, 1e3), st.floats(0.1, 1), st.floats(0, 1))
def test_tables_with_the_weights_leave_the_whole_as_it_is(rho, share, label):
    split = Split.of(rho, one_ways=share)
    split = split.for_label(label * split.rest, (1 - label) * split.one_ways)
    weighted = split.for_weights()
    assert weighted.total == pytest.approx(rho, rel=1e-12)
    assert min(astuple(weighted)) >= -1e-12 * rho
    assert weighted.one_ways == split.one_ways
    assert weighted.weights == pytest.approx(0.25 * (split.rest - split.one_ways), abs=1e-12 * rho)


def test_weighted_estimates_hold_where_those_of_rows_differ(model, sample):
    yes, weights = sample["vote"] == "yes", sample["w"]
    truths = {
        "weighted share of vote == 'yes'": (weights @ yes / weights.sum(), yes.mean()),
        "weighted mean of age": (weights @ sample["age"] / weights.sum(), sample["age"].mean()),
    }
    for question, (weighted, unweighted) in truths.items():
        answer, of_rows = model.ask(question), model.ask(question.removeprefix("weighted "))
        assert answer.low <= weighted <= answer.high < unweighted
        assert of_rows.low <= unweighted <= of_rows.high
        assert "of the sample without weights" in of_rows.reason
        assert "weights" not in answer.reason
    assert model.accuracy_.share("vote == 'yes'", weighted=True)["covered"]
    among = model.ask("weighted share of vote == 'yes' among w >= 1")
    assert among.low <= weights[weights >= 1] @ yes[weights >= 1] / weights[weights >= 1].sum() <= among.high


@pytest.mark.parametrize(("rows", "covered"), [(4000, False), (40_000, True)])
def test_rows_of_large_weights_that_noise_hides_leave_no_interval(rows, covered):
    rng = np.random.default_rng(0)
    large = np.arange(rows) < rows // 100
    table = pd.DataFrame(
        {
            "vote": np.where(rng.random(rows) < np.where(large, 0.9, 0.3), "yes", "no"),
            "w": np.where(large, rng.uniform(50, 100, rows), rng.uniform(0.2, 2, rows)),
        }
    )
    schema = Schema({"vote": COLUMNS["vote"], "w": Weight(0.2, 100)})
    model = PrivSyn(0.5 if not covered else 2.0, 1e-9, schema, seed=0).fit(table)
    share = model.accuracy_.share("vote == 'yes'", weighted=True)
    assert share["covered"] == covered
    if covered:
        assert share["low"] <= np.average(table["vote"] == "yes", weights=table["w"]) <= share["high"]
    else:
        assert "noise may hide rows of very large weights" in str(
            model.ask("weighted share of vote == 'yes'")
        )


def test_the_noise_of_weighted_estimates_is_said(model, tmp_path):
    lines = model.accuracy_.weighted
    assert lines["of"].tolist() == ["vote == 'yes'", "vote == 'no'", "mean"]
    widths = [lines[f"{part}high"] - lines[f"{part}low"] for part in ("", "in_rows_")]
    assert np.allclose(lines["noise"], (widths[0] / widths[1]) ** 2)
    assert f"{lines['noise'].median():.1f} times the noise" in model.outlook()
    assert any("'w' has the weights" in fact for fact in model.ledger_.public_inputs)
    report(model, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Weighted shares and means" in page
    assert "Kish" in page


def test_a_saved_model_and_the_command_know_the_weights(model, tmp_path, capsys):
    path = tmp_path / "model.privsyn"
    model.save(path)
    assert str(load(path).ask("weighted mean of age")) == str(model.ask("weighted mean of age"))
    answered = run(capsys, "ask", path, "weighted mean of age")
    assert answered.out.startswith("weighted mean of age: ")
    drawn = run(capsys, "sample", path, tmp_path / "people.csv", "--rows", 20, "--population")
    assert (drawn.code, list(pd.read_csv(tmp_path / "people.csv"))) == (0, ["id", "vote", "age"])
    assert read_schema_again(tmp_path).columns["w"] == Weight(0.2, 8)


def read_schema_again(folder):
    (folder / "schema.yaml").write_text(to_yaml(SURVEY))
    return read_schema(folder / "schema.yaml")


@pytest.mark.parametrize("rows", [500, 12_000])
def test_the_population_is_drawn_in_proportion_to_the_weights(model, rows):
    people, made = model.sample(rows, population=True, seed=3), model.sample(12_000, seed=3)
    expected = made["w"] @ (made["vote"] == "yes") / made["w"].sum()
    assert list(people) == ["id", "vote", "age"]
    assert (len(people), people["id"].is_unique) == (rows, True)
    assert abs((people["vote"] == "yes").mean() - expected) < 5 * np.sqrt(0.25 / rows)
    assert people.equals(model.sample(rows, population=True, seed=3))


@pytest.mark.parametrize("target", [None, "vote"])
def test_each_column_is_counted_with_the_weights_at_one_sensitivity(target):
    schema = Schema({**COLUMNS, "city": Categorical(list("abc"), nullable=False), "w": Weight(0.2, 8)})
    rows = survey(1500, 2)
    rows.insert(0, "city", np.random.default_rng(0).choice(list("abc"), len(rows)))
    model = PrivSyn(1.0, 1e-9, schema, seed=0, target=target, important=[["vote", "age", "w"]]).fit(rows)
    for question in ("weighted share of vote == 'yes'", "share of city == 'a'"):  # neither has all three
        assert np.isfinite(model.ask(question).low)
    spends = model.ledger_.spends
    for name in ("vote", "age", "city"):
        counted = [spend for spend in spends if spend.what.startswith(f"counts over {name}, w")]
        assert counted
        assert {float(spend.sensitivity) for spend in counted} == {1.0}
    first = [next(s for s in spends if s.what.startswith(f"counts over {n}, w")) for n in ("vote", "city")]
    assert first[0].rho == pytest.approx(first[1].rho)


def test_evaluate_scores_weighted_tables(sample):
    scores = evaluate(sample, sample.assign(w=1.0), SURVEY, models=False)
    assert scores.one_way_mean.synthetic < 0.35  # the column of weights
    assert scores.weighted_one_way_max.synthetic > 0.1
    assert evaluate(sample, sample, SURVEY, models=False).weighted_pair_max.synthetic == 0
    assert "weighted" not in str(evaluate(sample[["vote"]], sample[["vote"]], models=False))


def test_weights_that_cannot_be_are_refused(model):
    for bounds, why in (((0, 8), "above 0"), ((-1, 8), "above 0"), ((None, None), "give the bounds")):
        with refuses(why):
            Weight(*bounds)
    with refuses("never missing"):
        Weight(1, 2, nullable=True)
    with refuses("a table has one at most"):
        Schema({"v": Weight(1, 2), "w": Weight(1, 2)})
    with refuses("is the weight of a row"):
        Schema({"age": Numerical(0, 9), "w": Weight(1, 2)}, constraints=["w <= age"])
    with refuses("rows of a table with a parent have none"):
        Database({"homes": Table(key="home"), "trips": Table(SURVEY, parent="homes", link="home")})
    with refuses("there is no weighted median"):
        model.ask("weighted median of age")
    unknown = model.ask("weighted share of vote == 'yes' among age > 50")
    assert np.isfinite(unknown.low) or "under `important`" in unknown.reason


def test_estimates_without_weights_are_refused():
    rows = pd.DataFrame({"vote": ["yes", "no"] * 50})
    plain = PrivSyn(5.0, 1e-9, Schema({"vote": COLUMNS["vote"]}), seed=0).fit(rows)
    for ask in (
        lambda: plain.ask("weighted share of vote == 'yes'"),
        lambda: plain.sample(5, population=True),
        lambda: plain.accuracy_.weighted,
    ):
        with refuses("kind weight"):
            ask()
