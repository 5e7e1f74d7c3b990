"""What a rule of the schema makes the same in all rows of a group is answered as certain."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Determined, Forbidden, Numerical, PrivSyn, Schema, Within
from privsyn.release.accuracy.verdicts import BY_SCHEMA
from privsyn.release.questions.certain import certain_share


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
    assert (answer.verdict, answer.reason) == ("keep", BY_SCHEMA)


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


@pytest.fixture(scope="module")
def loans():
    """Grades with their own places, amounts with bounds, and joint incomes that single persons lack."""
    rng = np.random.default_rng(0)
    places = [f"{grade}{number}" for grade in "ABC" for number in range(1, 6)]
    table = pd.DataFrame({"place": rng.choice(places, 3000), "amount": rng.integers(0, 400, 3000) * 100})
    table["grade"], table["paid"] = table["place"].str[0], 1e6 * rng.random(3000)
    table["kind"] = rng.choice(["joint", "single"], 3000, p=[0.1, 0.9])
    table["joint"] = np.where(table["kind"] == "joint", rng.integers(10, 90, 3000), np.nan)
    table["debt"] = np.where(table["kind"] == "joint", rng.integers(0, 50, 3000), np.nan)
    schema = Schema(
        {
            "place": Categorical(places, nullable=False),
            "amount": Numerical(0, 40_000, nullable=False),
            "paid": Numerical(0, 1e6, nullable=False),
            "grade": Categorical(["A", "B", "C"], nullable=False),
            "kind": Categorical(["joint", "single"], nullable=False),
            "joint": Numerical(0, 100),
            "debt": Numerical(0, 60),
        },
        constraints=[
            Within({"place": "grade"}, [[place, place[0]] for place in places]),
            "joint is missing iff kind == 'single'",
            "debt is missing iff kind == 'single'",
        ],
    )
    return PrivSyn(0.3, 1e-6, schema, seed=0).fit(table)


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("share of grade == 'B' among place == 'B3'", 1),
        ("share of grade == 'C' among place in ['B3', 'A1']", 0),
        ("share of place == 'B3' among grade == 'A'", 0),
        ("share of joint is missing among kind == 'single'", 1),
        ("share of joint is missing among kind == 'joint'", 0),
        ("share of kind == 'single' among joint is missing", 1),
        ("share of kind == 'joint' among joint > 50", 1),
        ("share of joint >= 0 among kind == 'joint'", 1),
        ("share of debt is missing among joint is missing", 1),
        ("share of amount >= 0", 1),
        ("share of amount <= 40_000", 1),
        ("share of amount > 40_000", 0),
        ("share of amount is missing", 0),
        ("number of amount is missing", 0),
        ("share of amount >= 500 among amount >= 1000", 1),
        ("share of amount < 500 among amount >= 1000", 0),
    ],
)
def test_hierarchies_missing_cells_and_bounds_make_answers_certain(loans, question, number):
    answer = loans.ask(question)
    assert (answer.estimate, answer.low, answer.high) == (number, number, number)
    assert answer.reason.startswith(BY_SCHEMA)


@pytest.mark.parametrize(
    "question",
    [
        "share of place == 'B3' among grade == 'B'",
        "share of grade == 'B' among place in ['B3', 'A1']",
        "share of joint > 50 among kind == 'joint'",
        "share of joint is missing",
        "share of amount > 0",
        "share of paid != 5",  # inside a cell
        "share of amount >= 500",
        "share of amount >= 1000 among amount >= 500",
        "number of amount >= 0",
    ],
)
def test_what_the_rules_leave_open_is_not_certain(loans, question):
    answer = loans.ask(question)
    assert answer.low != answer.high


def test_no_row_contradicts_an_answer_that_is_certain(loans):
    """Of all pairs of these conditions, in 3,000 synthetic rows, which keep the rules."""
    rows, release = loans.sample(3000, seed=0), loans.release_
    texts = [f"place == '{place}'" for place in ("A1", "B3")] + ["grade == 'B'", "grade != 'B'"]
    texts += [f"{column} is {word}" for column in ("joint", "debt") for word in ("missing", "not missing")]
    texts += [
        "kind == 'single'",
        "joint > 50",
        "joint <= 50 or debt > 10",
        "amount > 20_000",
        "paid <= 1e4",
    ]
    numbers = release.codec.as_compared([*rows], rows)
    conditions = [release.table().condition(text) for text in texts]
    certain = 0
    for subject, group in permutations(conditions, 2):
        share = certain_share(release.table(), subject, group)
        among = group.holds(numbers)
        if share is not None and among.any():
            certain += 1
            assert subject.holds(numbers)[among].mean() == share
    assert certain >= 20


def test_a_question_on_many_columns_needs_no_memory_for_all_their_combinations():
    """Of 20 ** 8 combinations no table is made."""
    names, values = "abcdefgh", list(range(20))
    table = pd.DataFrame(np.random.default_rng(0).integers(0, 20, (300, 8)), columns=list(names))
    schema = Schema({name: Categorical(values, nullable=False) for name in names})
    group = " and ".join(f"{name} == 3" for name in names[1:])
    answer = PrivSyn(1.0, 1e-6, schema, seed=0).fit(table).ask(f"share of a == 3 among {group}")
    assert answer.verdict == "not decided"


@pytest.fixture(scope="module")
def found():
    """Steps, bounds and values that noisy answers chose, and a value that a word replaces."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"price": rng.integers(0, 20, 6000) * 100, "free": rng.integers(0, 20, 6000) * 100})
    table["town"], table["job"] = rng.choice(["a", "b"], 6000), rng.choice(["cook", "smith"], 6000)
    table["open"] = rng.integers(0, 50, 6000)
    table.loc[table["price"] >= 250, "job"] = "smith"
    schema = Schema(
        {
            "price": Numerical(0, 1955, nullable=False),
            "free": Numerical(-55, 1955, nullable=False),
            "open": Numerical(nullable=False),
            "town": Categorical(nullable=False),
            "job": Categorical(["cook", "smith", "rare"], nullable=False),
        },
        constraints=[Forbidden({"price": {"low": 250}, "job": "cook"})],
    )
    return PrivSyn(3.0, 1e-6, schema, seed=0).fit(table)


@pytest.mark.parametrize(
    "question",
    [
        "share of free == 25",
        "share of free >= 20 and free <= 30",
        "share of free >= 0",
        "share of free <= 1900",
        "share of job == 'cook' among price >= 300",
        "share of open >= 0",
        "share of town is missing",
    ],
)
def test_what_noisy_answers_chose_makes_nothing_certain(found, question):
    assert found.release_.codec.schema.coded["free"].step == 100
    assert _certain(found, question) is None


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("share of free is missing", 0),
        ("share of free >= 500 among free >= 1000", 1),
    ],
)
def test_what_no_step_changes_is_certain(found, question, number):
    assert _certain(found, question) == number


def _certain(model, question):
    text, _, group = question.removeprefix("share of ").partition(" among ")
    table = model.release_.table()
    return certain_share(table, table.condition(text), table.condition(group) if group else None)


@pytest.mark.parametrize(
    "change", [{"uncounted": True}, {"unlisted": (("job", "x"),)}, {"replaced": (("job", "x"),)}, "extremes"]
)
def test_a_condition_that_the_counts_do_not_decide_is_not_certain(found, change):
    condition = found.release_.table().condition("job is missing")
    assert certain_share(found.release_.table(), condition, None) == 0
    changed = replace(condition, **({"extremes": (condition, condition)} if change == "extremes" else change))
    assert certain_share(found.release_.table(), changed, None) is None
    group = found.release_.table().condition("job == 'cook'")
    assert certain_share(found.release_.table(), condition, group) == 0
    assert certain_share(found.release_.table(), group, changed) is None


def test_numbers_cut_to_the_bounds_are_said_beside_a_certain_share():
    table = pd.DataFrame({"x": np.random.default_rng(0).integers(0, 150, 5000)})
    model = PrivSyn(3.0, 1e-6, Schema({"x": Numerical(0, 99, integer=True, nullable=False)}), seed=0).fit(
        table
    )
    answer = model.ask("share of x <= 99")
    assert answer.low == answer.high == 1
    assert answer.reason.startswith(f"{BY_SCHEMA}; of numbers cut to their bounds: 3")
