"""Columns that are the same in all rows of a person keep the names that the user gave them."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from privsyn import Categorical, Database, Numerical, PrivSyn, Schema, Table, load, report
from privsyn.studies.publication.data_sheet import render

PERSONS = 3000
INTERNAL = re.compile(r"\bany\(|\bstart\(|rows\.(?:sex|born|region)\b|(?:first|changes)\(rows")


def rows_of_persons() -> pd.DataFrame:
    """Rows in order, of persons whose sex and birth stay, and whose region seldom changes."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(PERSONS), 1 + rng.poisson(2, PERSONS))
    sex = rng.choice(["F", "M"], PERSONS, p=[0.6, 0.4])
    frame = pd.DataFrame({"who": who, "sex": sex[who], "born": rng.integers(1950, 1990, PERSONS)[who]})
    frame["year"] = 2000 + frame.groupby("who").cumcount()
    frame["visits"] = np.minimum(rng.poisson(np.where(frame["sex"] == "M", 4, 2)), 9)
    frame["ward"] = np.where(rng.random(len(frame)) < np.where(frame["sex"] == "M", 0.7, 0.3), "a", "b")
    moves = pd.Series(rng.random(len(frame)) < 0.05).groupby(who).cumsum().to_numpy()
    frame["region"] = np.array(["N", "E", "S"])[(rng.integers(0, 3, PERSONS)[who] + moves) % 3]
    return frame


@pytest.fixture(scope="module")
def real():
    return rows_of_persons()


@pytest.fixture(scope="module")
def model(real):
    columns = {
        "sex": Categorical(["F", "M"], nullable=False),
        "born": Numerical(1950, 1989, integer=True, nullable=False),
        "year": Numerical(2000, 2015, integer=True, nullable=False),
        "visits": Numerical(0, 9, integer=True, nullable=False),
        "ward": Categorical(["a", "b"], nullable=False),
        "region": Categorical(["N", "E", "S"], nullable=False),
    }
    table = Table(Schema(columns), constant=["sex", "born"], constraints=["region lasts"])
    settings = {"unit": "who", "identifiers": True, "order": "year", "seed": 0}
    return PrivSyn(5.0, 1e-6, table, **settings).fit(real)


def questions(real):
    """Each question about a constant column, with its answer in the private table."""
    persons = real.drop_duplicates("who")
    ill, male = real[real["ward"] == "a"], real[real["sex"] == "M"]
    return {
        "share of sex == 'M'": (real["sex"] == "M").mean(),
        "rows: share of sex == 'M'": (real["sex"] == "M").mean(),
        "persons: share of sex == 'M'": (persons["sex"] == "M").mean(),
        "number of sex == 'M'": (real["sex"] == "M").sum(),
        "persons: number of sex == 'M'": (persons["sex"] == "M").sum(),
        "share of sex == 'M' among ward == 'a'": (ill["sex"] == "M").mean(),
        "share of ward == 'a' among sex == 'M'": (male["ward"] == "a").mean(),
        "mean of visits among sex == 'M'": male["visits"].mean(),
        "mean of born": real["born"].mean(),
        "mean of born among ward == 'a'": ill["born"].mean(),
        "persons: mean of born": persons["born"].mean(),
        "persons: mean of born among sex == 'M'": persons.loc[persons["sex"] == "M", "born"].mean(),
    }


def test_rows_and_persons_are_asked_by_the_names_of_columns(model, real):
    for question, truth in questions(real).items():
        answer = model.ask(question)
        assert answer.question == question
        assert answer.low <= answer.estimate <= answer.high, str(answer)
        assert answer.low <= truth <= answer.high, str(answer)


@pytest.mark.slow
def test_intervals_of_constant_columns_hold(real):
    """Of 60 intervals of rows in 20 runs at least 50 hold: with 95 % each, fewer do in 1 of 10^4 runs.

    The runs are seeded, so the test does not fail by chance.
    """
    asked = ("share of sex == 'M'", "share of sex == 'M' among ward == 'a'", "mean of born")
    truths, table = questions(real), Table(constant=["sex", "born"], schema=SMALL)
    small, held = real[["who", "sex", "born", "ward"]], 0
    for seed in range(20):
        fitted = PrivSyn(1.0, 1e-6, table, unit="who", identifiers=True, seed=seed).fit(small)
        for question in asked:
            answer = fitted.ask(question)
            held += bool(answer.low <= truths[question] <= answer.high)
    assert held >= 50


SMALL = Schema(
    {
        "sex": Categorical(["F", "M"], nullable=False),
        "born": Numerical(1950, 1989, integer=True, nullable=False),
        "ward": Categorical(["a", "b"], nullable=False),
    }
)


def test_a_constant_column_makes_groups_of_rows(model):
    answers = model.ask("mean of visits", by="sex")
    assert [answer.question for answer in answers] == [
        "mean of visits among sex == 'F'",
        "mean of visits among sex == 'M'",
    ]
    assert answers[0].high < answers[1].estimate
    assert answers[0].estimate < answers[1].low  # the ends allow for rows of persons whom noise hides


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("share of sex == 'M' and ward == 'a'", "'sex' is the same in all rows that belong together"),
        ("median of born", "ask persons: median of born"),
        ("correlation of born and visits", "take several draws"),
        ("share of sexx == 'M'", "did you mean 'sex'"),
        ("share of sex == 'X'", "column 'sex' has no value 'X'"),
        ("people: share of sex == 'M'", "there is no table 'people'"),
    ],
)
def test_what_cannot_be_asked_says_what_can(model, question, words):
    with refuses(words):
        model.ask(question)


@pytest.mark.parametrize(
    ("question", "advice"),
    [
        ("share of sex == 'M' and ward == 'a'", "rows: share of ward == 'a' among sex == 'M'"),
        ("rows: number of ward == 'a' and born > 1970", "rows: share of ward == 'a' among born > 1970"),
        (
            "share of sex == 'M' and ward == 'a' and born > 1970 and visits > 3",
            "rows: share of ward == 'a' and visits > 3 among sex == 'M' and born > 1970",
        ),
        ("persons: mean of visits", "rows: mean of visits"),
        ("persons: mean of visits among ward == 'a'", "rows: mean of visits among ward == 'a'"),
        ("persons: share of ward == 'a'", "rows: share of ward == 'a'"),
        ("rows: median of born", "persons: median of born"),
    ],
)
def test_a_question_that_is_advised_is_answered(model, question, advice):
    with refuses(f'ask "?{re.escape(advice)}'):
        model.ask(question)
    assert np.isfinite(model.ask(advice).estimate)


@pytest.mark.parametrize(
    "question",
    [
        "share of sex == 'M' or ward == 'a'",
        "share of visits > 3 among sex == 'M' and ward == 'a'",
        "share of not (sex == 'M' and ward == 'a')",
    ],
)
def test_what_no_counts_join_is_computed_from_a_sample(model, question):
    with refuses("no counts join them in one condition; compute it from a sample"):
        model.ask(question)


def test_no_text_has_an_internal_name(model, tmp_path):
    page, saved = tmp_path / "page.html", tmp_path / "m.privsyn"
    report(model, page)
    model.save(saved)
    texts = [page.read_text(), render(load(saved)), model.ledger_.to_json(), str(model.accuracy_)]
    texts += [*map(str, model.losses_), model.outlook(), str(model.release_.accuracy_["persons"])]
    for text in texts:
        assert not INTERNAL.search(text), INTERNAL.search(text)
    assert "of persons, each counted once" in texts[0]
    assert "| sex | categorical | F, M |" in texts[1]
    assert model.outlook().startswith("Yes") or "6 columns counted, 1 not" in model.outlook()


def test_constant_columns_can_be_given(model):
    made = model.sample(50, given={"sex": "M", "born": (1960, None)}, seed=0)
    assert made["who"].nunique() == 50
    assert set(made["sex"]) == {"M"}
    assert made["born"].min() >= 1960
    with refuses("'ward' may differ from row to row of a person"):
        model.sample(5, given={"ward": "a"})


def test_in_a_database_a_constant_column_is_one_of_its_table(tmp_path):
    """The parent may have a column of the same name: the constant one has that of its table, too."""
    rng = np.random.default_rng(0)
    homes = pd.DataFrame({"home": range(2000), "land": rng.choice(["x", "y"], 2000)})
    people = pd.DataFrame({"home": np.repeat(range(2000), 2), "age": rng.integers(0, 10, 4000)})
    people["land"] = rng.choice(["p", "q"], 2000)[people["home"]]
    database = Database(
        {
            "homes": Table(Schema({"land": Categorical(["x", "y"])}), key="home"),
            "people": Table(
                Schema({"age": Numerical(0, 9, integer=True), "land": Categorical(["p", "q"])}),
                parent="homes",
                link="home",
                constant=["land"],
            ),
        }
    )
    fitted = PrivSyn(5.0, 1e-6, database, seed=0).fit({"homes": homes, "people": people})
    for question, truth in {
        "people: share of land == 'p'": (people["land"] == "p").mean(),
        "homes: share of land == 'x'": (homes["land"] == "x").mean(),
        "people: mean of age among land == 'p'": people.loc[people["land"] == "p", "age"].mean(),
    }.items():
        answer = fitted.ask(question)
        assert answer.low <= truth <= answer.high, str(answer)
    assert "people.land" in set(sum(fitted.accuracy_.tables["columns"], ()))


@pytest.mark.parametrize("name", ["sex", "first(region)", "count(rows)"])
def test_a_summary_with_the_name_of_another_column_of_the_persons_is_refused(real, name):
    """It replaced the constant column, or was replaced by it, in silence."""
    columns = {
        "sex": Categorical(["F", "M"]),
        "region": Categorical(["N", "E", "S"]),
        "visits": Numerical(0, 9),
    }
    table = Table(Schema(columns), constant=["sex"], constraints=["region lasts"])
    settings = {"unit": "who", "identifiers": True, "order": "year", "derive": {name: "mean(visits)"}}
    with refuses(f"two derived columns are called {name!r}: rename one of them"):
        PrivSyn(5.0, 1e-6, table, seed=0, **settings).fit(real[["who", "year", *columns]])


def test_a_column_is_not_asked_whether_it_lasts_if_a_summary_has_the_name_of_its_first_value(real):
    """The run spent its budget and broke off, if the column was found to last."""
    columns = {
        "region": Categorical(["N", "E", "S"]),
        "ward": Categorical(["a", "b"]),
        "visits": Numerical(0, 9),
    }
    settings = {
        "unit": "who",
        "identifiers": True,
        "order": "year",
        "derive": {"first(region)": "mean(visits)"},
    }
    model = PrivSyn(5.0, 1e-6, Schema(columns), seed=0, **settings).fit(real[["who", "year", *columns]])
    asked = [spend.what for spend in model.ledger_.spends if "stays the same" in spend.what]
    assert asked == ["rows: how often ward stays the same"]
