"""What a rule of the schema makes the same in all rows of a group is answered as certain."""

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Determined, Forbidden, Numerical, PrivSyn, Schema


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    years = rng.choice([9, 12, 17], 600, p=[0.7, 0.29, 0.01])
    table = pd.DataFrame({"years": years, "level": np.select([years > 16, years > 9], [3, 2], 1)})
    table["degree"] = np.where(years > 16, "yes", "no")
    table["age"] = rng.choice(["child", "adult"], 600)
    table["married"] = np.where((table["age"] == "adult") & (rng.random(600) < 0.5), "yes", "no")
    schema = Schema(
        {
            "years": Categorical([9, 12, 17], nullable=False),
            "level": Numerical(1, 3, integer=True, nullable=False),
            "degree": Categorical(["no", "yes"], nullable=False),
            "age": Categorical(["adult", "child"], nullable=False),
            "married": Categorical(["no", "yes"], nullable=False),
        },
        constraints=[
            Determined("level", "years", {9: 1, 12: 2, 17: 3}),
            Determined("degree", "years", {9: "no", 12: "no", 17: "yes"}),
            Forbidden({"age": "child", "married": "yes"}),
        ],
    )
    return PrivSyn(0.2, 1e-6, schema, seed=0).fit(table)


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("share of degree == 'yes' among years == 17", 1),
        ("share of degree == 'yes' among years <= 12", 0),
        ("share of degree == 'yes' among level == 3", 1),
        ("mean of level among years == 17", 3),
        ("share of married == 'yes' among age == 'child'", 0),
        ("share of age == 'adult' among married == 'yes'", 1),
    ],
)
def test_a_rule_makes_an_answer_certain_whatever_the_noise(model, question, number):
    answer = model.ask(question)
    assert (answer.estimate, answer.low, answer.high) == (number, number, number)
    assert (answer.verdict, answer.reason) == ("keep", "it is known exactly")


@pytest.mark.parametrize(
    "question",
    [
        "share of degree == 'yes'",
        "share of years == 12 among degree == 'no'",
        "mean of level among degree == 'no'",
        "share of married == 'yes' among age == 'adult'",
        "share of age == 'adult' among married == 'no'",
    ],
)
def test_no_other_answer_is_certain(model, question):
    answer = model.ask(question)
    assert answer.low != answer.high


def test_a_question_on_many_columns_needs_no_memory_for_all_their_combinations():
    """Of 20 ** 8 combinations no table is made."""
    names, values = "abcdefgh", list(range(20))
    table = pd.DataFrame(np.random.default_rng(0).integers(0, 20, (300, 8)), columns=list(names))
    schema = Schema({name: Categorical(values, nullable=False) for name in names})
    group = " and ".join(f"{name} == 3" for name in names[1:])
    answer = PrivSyn(1.0, 1e-6, schema, seed=0).fit(table).ask(f"share of a == 3 among {group}")
    assert answer.verdict == "not decided"
