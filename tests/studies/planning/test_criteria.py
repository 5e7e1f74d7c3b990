"""Whether criteria can be met is said before anything is spent, and comes about."""

import numpy as np
import pandas as pd
import pytest
from command import run

from privsyn import Categorical, InputError, Numerical, PrivSyn, Schema, plan
from privsyn.studies.planning.criteria import LIKELY, NEVER, PlannedCriterion

ROWS = 5000
SCHEMA = Schema(
    {
        "sex": Categorical(["F", "M"], nullable=False),
        "job": Categorical(list("abcd"), nullable=False),
        "age": Numerical(0, 99, integer=True, nullable=False),
    }
)
CRITERIA = {
    "criteria": [
        {"margin": ["sex", "job"], "error": 0.05},
        {"margin": ["job"], "error": 0.05},
        {"mean": "age", "within": 3},
        {"mean": "age", "within": 3, "where": {"sex": "F"}},
        {"proportion": {"sex": "F", "age": {"low": 50}}, "within": 0.05},
        {"slope": "age", "against": {"sex": "F"}, "within": 8},
        {"slope": {"sex": "F"}, "against": "age", "within": "90%"},
    ]
}


def people():
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], ROWS)
    age = np.clip(rng.normal(45, 18, ROWS) + 12 * (sex == "F"), 0, 99).round().astype(int)
    return pd.DataFrame({"sex": sex, "job": rng.choice(list("abcd"), ROWS), "age": age})


def planned(epsilon, **settings):
    return plan(SCHEMA, epsilon, rows=ROWS, accept=CRITERIA, **settings).criteria


@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_what_is_likely_is_met_and_what_cannot_be_met_is_not(delta):
    """Runs are seeded: nothing is left to chance."""
    for epsilon, verdict, met in ((20.0, LIKELY, True), (0.01, NEVER, False)):
        assert {one.verdict for one in planned(epsilon, delta=delta)} == {verdict}
        model = PrivSyn(epsilon, delta, SCHEMA, accept=CRITERIA, seed=0).fit(people())
        assert {one.met for one in model.ledger_.acceptance.criteria} == {met}


def test_the_epsilon_that_would_do_does():
    for one in planned(0.05):
        assert one.verdict != LIKELY
        (again,) = [other for other in planned(1.001 * one.epsilon) if other.criterion == one.criterion]
        assert again.verdict == LIKELY
        (before,) = [other for other in planned(one.epsilon / 1.3) if other.criterion == one.criterion]
        assert before.verdict != LIKELY


def test_the_tests_take_their_share_of_the_budget():
    with_tests, without = plan(SCHEMA, 1.0, rows=ROWS, accept=CRITERIA), plan(SCHEMA, 1.0, rows=ROWS)
    assert with_tests.rho == pytest.approx(0.9 * without.rho)
    assert without.criteria == ()


def test_noise_that_hides_the_bound_is_said_with_the_epsilon_that_would_do():
    assert str(PlannedCriterion("it", 0.1, 0.01, 0.2, 0.15)) == (
        "it: cannot be met (expected error 0.01, hidden by noise 0.2; no epsilon up to 100 would do)"
    )
    assert "; epsilon 0.48 would do)" in str(PlannedCriterion("it", 0.1, 0.06, 0.05, 0.01, 0.4768))
    assert str(PlannedCriterion("it", 0.1, 0.01, 0.02, 0.01)).endswith("hidden by noise 0.02)")


def test_criteria_that_synth_refuses_are_refused_by_plan():
    for criterion, said in (
        ({"mean": "sex", "within": 1}, "no column of numbers"),
        ({"margin": ["nobody"], "error": 0.1}, "nobody"),
    ):
        with pytest.raises(InputError, match=said):
            plan(SCHEMA, 1.0, rows=ROWS, accept=[criterion])
    with pytest.raises(InputError, match="rows"):
        plan(SCHEMA, 1.0, accept=CRITERIA)


def test_plan_prints_a_line_for_each_criterion(folder, capsys):
    (folder / "c.yaml").write_text("criteria: [{margin: [job], error: 0.2}, {mean: age, within: 20}]\n")
    options = ("--epsilon", 1, "--schema", "schema.yaml", "--rows", 4000, "--accept", "c.yaml")
    done = run(capsys, "plan", "data.csv", *options)
    assert done.code == 0
    assert "total variation of job at most 0.2: likely (expected error " in done.out
    assert "mean of age within 20: likely (expected error " in done.out
    assert run(capsys, "plan", "data.csv", *options[:4], "--accept", "c.yaml").code == 2
