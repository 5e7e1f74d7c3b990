"""Questions in words: the answers of a release, each with a verdict, from released answers alone."""

import dataclasses
import re
from itertools import product
from math import isnan

import numpy as np
import pandas as pd
import pytest
from command import run
from scipy.stats import chi2

from privsyn import (
    Categorical,
    Database,
    Datetime,
    Increasing,
    InputError,
    Numerical,
    PrivSyn,
    Schema,
    Table,
    load,
)
from privsyn.inference.ordered.number_intervals import Interval
from privsyn.release.accuracy.agreement import Disagreement
from privsyn.release.accuracy.verdicts import RowsStatistic, Tolerance, verdict_of
from privsyn.release.questions.answer import Answer
from privsyn.table.schema.condition import Condition

SCHEMA = Schema(
    {
        "severe": Categorical([False, True], nullable=False),
        "again": Categorical(["FALSE", "TRUE"], nullable=False),
        "job title": Categorical(["clerk", "cook", "and"]),
        "age": Numerical(0, 99, integer=True, nullable=False),
        "pay": Numerical(0, 400, nullable=False),
        "day": Datetime("2020-01-01", "2021-12-31", nullable=False),
    }
)


def people(rows=8000, seed=0):
    """Half of those who come again are severe, and a fifth of the others; pay grows with age."""
    rng = np.random.default_rng(seed)
    again = rng.random(rows) < 0.4
    age = rng.integers(0, 100, rows)
    return pd.DataFrame(
        {
            "severe": rng.random(rows) < np.where(again, 0.5, 0.2),
            "again": np.where(again, "TRUE", "FALSE"),
            "job title": rng.choice(["clerk", "cook", "and"], rows),
            "age": age,
            "pay": np.clip(age + rng.normal(150, 20, rows), 0, 400),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 731, rows), "D"),
        }
    )


@pytest.fixture(scope="module")
def model():
    return PrivSyn(3.0, 1e-6, SCHEMA, seed=0).fit(people())


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("ask") / "m.privsyn"
    model.save(path)
    return path


def test_a_rate_has_an_interval_a_verdict_and_what_rows_and_independent_columns_give(model):
    answer, real = model.ask("share of severe among again"), people()
    truth = real["severe"][real["again"] == "TRUE"].mean()
    assert answer.low <= truth <= answer.high
    assert answer.verdict == "keep"
    assert answer.rows == pytest.approx(truth, abs=0.05)
    assert answer.independent == pytest.approx(real["severe"].mean(), abs=0.02)
    assert str(answer).startswith(f"share of severe among again: {answer.estimate:.3g} (")
    assert answer.to_dict()["verdict"] == "keep"


def test_every_form_is_answered_and_the_file_answers_the_same(model, saved):
    real, release = people(), load(saved)
    truths = {
        "share of severe": real["severe"].mean(),
        "Share of not severe and again ?": (~real["severe"] & (real["again"] == "TRUE")).mean(),
        "number of age >= 50": (real["age"] >= 50).sum(),
        "mean of pay": real["pay"].mean(),
        "mean of `pay` among age >= 80": real["pay"][real["age"] >= 80].mean(),
        "median of age": real["age"].median(),
        "correlation of age and pay": real[["age", "pay"]].rank().corr().iloc[0, 1],
        "share of `job title` == 'and' among age < 50": (real["job title"][real["age"] < 50] == "and").mean(),
    }
    for question, truth in truths.items():
        answer = release.ask(question)
        assert answer.estimate == pytest.approx(truth, rel=0.1), question
        assert answer.to_dict() == pytest.approx(model.ask(question).to_dict(), nan_ok=True)


def test_names_in_backticks_and_bare_ones_ask_the_same():
    """Also of conditions that begin or end with a backtick, whether an answer has an interval or not."""
    rng = np.random.default_rng(0)
    ill = pd.DataFrame({name: rng.choice(["a", "b"], 400, p=[0.95, 0.05]) for name in ("sex", "is.ill")})
    values = Categorical(["a", "b"], nullable=False)
    release = PrivSyn(0.2, 1e-9, Schema({"sex": values, "is.ill": values}), seed=0).fit(ill)
    bare = release.ask("share of sex == 'a' among sex == 'b' or sex == 'a' and sex == 'b'")
    quoted = release.ask("share of `sex` == 'a' among `sex` == 'b' or `sex` == 'a' and 'b' == `sex`")
    assert quoted.to_dict() | {"question": ""} == pytest.approx(
        bare.to_dict() | {"question": ""}, nan_ok=True
    )
    answers = [
        release.ask(f"share of {words}")
        for words in ("`is.ill` == 'a' among sex == 'b'", "'a' == `is.ill` among 'b' == `sex`")
    ]
    assert answers[0].estimate == answers[1].estimate
    assert isnan(answers[0].low)  # such an answer says why, from the words of the question
    with pytest.raises(InputError, match=r"stands in backticks: `is\.ill`"):
        release.ask("share of is.ill == 'a'")


def test_times_are_answered_as_times(model):
    answer = model.ask("mean of day among severe")
    assert abs(answer.estimate - people()["day"].mean()) < pd.Timedelta(days=40)
    assert abs(answer.rows - answer.independent) < pd.Timedelta(days=60)
    assert answer.low <= answer.estimate <= answer.high


def test_columns_that_are_unrelated_are_no_better_than_independent(model):
    answer = model.ask("correlation of age and day")
    assert answer.independent == 0
    assert answer.verdict in ("keep", "no better than independent columns")
    assert model.ask("share of severe among `job title` == 'cook' and age >= 90").verdict != "keep"


def test_the_independent_answer_of_overlapping_cases_is_exact(model):
    answer, real = model.ask("share of severe or age >= 50 and pay >= 200"), people()
    shares = real["severe"].mean(), (real["age"] >= 50).mean() * (real["pay"] >= 200).mean()
    assert answer.independent == pytest.approx(1 - (1 - shares[0]) * (1 - shares[1]), abs=0.02)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("how many are severe", "ask [weighted] share of CONDITION [among CONDITION], number of CONDITION"),
        (3, "is no question"),
        ("share of seveer", "did you mean 'severe'"),
        ("share of severe among agian", "did you mean 'again'"),
        ("share of age", "'age' alone is no comparison"),
        ("mean of pya", "did you mean 'pay'"),
        ("median of severe", "no median of 'severe'"),
        ("correlation of age", "the form is correlation of COLUMN and COLUMN"),
        ("correlation of age and pya", "did you mean 'pay'"),
        ("number of severe among again", "the form is number of CONDITION"),
        ("people: share of severe", "there is one table"),
        ("share of severe == 'no", "is no condition"),
        ("share of age = 65", "write == for 'is equal to'"),
        ("share of job title == 'cook'", "stands in backticks: `job title`"),
        ("share of `job title` == 'cok'", "column 'job title' has no value 'cok'; did you mean 'cook'?"),
        ("share of severe among again == True", "column 'again' has no value True"),
        ("mean of age where again == 'yes'", "write among in the place of where"),
        ("mean of age among", "the form is [weighted] mean of COLUMN [among CONDITION]"),
    ],
)
def test_what_cannot_be_read_is_one_line_that_says_what_can(model, question, words):
    with pytest.raises(InputError) as error:
        model.ask(question)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.fixture(scope="module")
def hospital():
    """Women have stays of five days, men shorter ones; each patient has two visits."""
    patients = pd.DataFrame({"patient": range(3000), "sex": ["F", "M", "M"] * 1000})
    days = np.repeat(np.where(patients["sex"] == "F", 5, [1, 2, 3] * 1000), 2)
    visits = pd.DataFrame({"patient": np.repeat(range(3000), 2), "days": days})
    database = Database(
        {
            "patients": Table(Schema({"sex": Categorical(["F", "M"])}), key="patient"),
            "visits": Table(
                Schema({"days": Numerical(0, 9, integer=True)}), parent="patients", link="patient"
            ),
        }
    )
    return PrivSyn(5.0, 1e-9, database, seed=0).fit({"patients": patients, "visits": visits}), days


def test_linked_tables_are_asked_behind_their_names(hospital):
    model, days = hospital
    assert model.ask("patients: share of sex == 'M'").verdict == "keep"
    assert model.ask("visits: mean of days").estimate == pytest.approx(days.mean(), rel=0.1)
    rate = model.ask("visits: share of days == 5 among patients: sex == 'F'")
    assert rate.estimate > 0.8
    assert rate.rows > 0.8
    assert rate.independent == pytest.approx((days == 5).mean(), abs=0.05)
    assert rate.verdict in ("keep", "direction only")
    of_women = model.ask("visits: mean of days among patients: sex == 'F'")
    assert of_women.rows == pytest.approx(5, abs=0.5)
    assert model.ask("visits: mean of count among sex == 'F'").rows == pytest.approx(2, abs=0.2)
    with pytest.raises(InputError, match="'visits' is not above 'patients'"):
        model.ask("patients: share of sex == 'F' among visits: days > 3")
    some = model.ask("visits: share of count >= 2")
    assert some.estimate > 0.8
    assert some.rows > 0.8
    for short, long in (
        ("mean of days", "visits: mean of days"),
        ("share of sex == 'M'", "patients: share of sex == 'M'"),
        ("share of patients: sex == 'M'", "patients: share of sex == 'M'"),
        ("mean of visits: count", "visits: mean of count"),
        ("mean of days among sex == 'F'", "visits: mean of days among patients: sex == 'F'"),
        ("mean of visits.days among patients.sex == 'F'", "visits: mean of days among patients: sex == 'F'"),
    ):
        answer, named = model.ask(short), model.ask(long)
        assert (answer.question, answer.low, answer.rows) == (short, named.low, named.rows)
    by_sex = [answer.estimate for answer in model.ask("mean of days", by="patients.sex")]
    assert by_sex == pytest.approx(
        [answer.estimate for answer in model.ask("mean of days", by="sex")], nan_ok=True
    )
    for question, words in (
        ("share of sx == 'X'", "no table has a column 'sx'; did you mean 'sex'?"),
        ("count", "is no question, but a column: ask mean of count"),
        ("number of visits", "'visits' is a table, no column: ask of its columns, or mean of count(visits)"),
        ("mean of days by sex", "leave out by, and give by=sex"),
        (
            "mean of days among patients.sex",
            "'sex' is a column, no condition: give by=sex for each of its values",
        ),
        ("share of days == 5 and sex == 'F'", "joins one above it by among: days of visits, sex of patients"),
        ("share of is_old", "no table has a column 'is_old'; there are the tables patients, visits"),
        ("patient: share of sex == 'M'", "there is no table 'patient'; did you mean 'patients'?"),
    ):
        with pytest.raises(InputError, match=re.escape(words)) as error:
            model.ask(question)
        assert str(error.value).startswith(f"{question!r}: ")


@pytest.fixture(scope="module")
def airline():
    """Each flight has two legs, which repeat its delay, once by another name."""
    airports = pd.DataFrame({"faa": ["JFK", "LGA"], "lon": [-73.8, -73.9]})
    cells = {"origin": ["JFK", "LGA"] * 240, "delay": [1, 2, 3] * 160}
    cells["day"] = pd.date_range("2020-01-01", periods=24).to_list() * 20
    flights = pd.DataFrame({"flight": range(480), **cells})
    legs = flights.loc[flights.index.repeat(2), ["flight", "delay"]].assign(also=lambda rows: rows["delay"])
    delay = Numerical(0, 9, integer=True)
    columns = {"origin": Categorical(), "delay": delay, "day": Datetime("2020-01-01", "2020-01-24")}
    copies = ["delay == flights.delay", "also == flights.delay"]
    schema = Schema({"delay": delay, "also": delay})
    of_legs = Table(schema, parent="flights", link="flight", constraints=copies)
    database = Database(
        {
            "flights": Table(Schema(columns), key="flight", lookups={"origin": "airports"}),
            "legs": of_legs,
            "airports": Table(public=airports, key="faa"),
        }
    )
    return PrivSyn(5.0, 1e-9, database, seed=0).fit({"flights": flights, "legs": legs})


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("number of legs", "'legs' is a table, no column: ask of its columns, or mean of count(legs)"),
        ("number of flights", "'flights' is a table, no column: ask of its columns, or count the rows of"),
        ("mean of count(flights)", "ask of its columns, or count the rows of a sample"),
        ("share of day > 1800", "'day > 1800' is no condition: column 'day': a bound is a date"),
        ("mean of delay + 1", "'delay + 1' is no column: ask of delay"),
        ("mean of lon among origin == 'JFK'", "'lon' is a column of the public table airports, and question"),
        ("flights: share of lon > 0", "are about private ones: ask of flights.origin, or join airports to a"),
        ("flights: mean of delay among lon > 0", "'lon' is a column of the public table airports"),
        ("legs: mean of delay", "is a copy (delay == flights.delay), counted in 'flights' alone"),
        ("legs: mean of also", "is a copy (also == flights.delay), counted in 'flights' alone"),
        ("legs: share of delay > 1", 'ask "flights: share of delay > 1"'),
    ],
)
def test_what_linked_tables_cannot_answer_is_refused_with_what_they_can(airline, question, words):
    with pytest.raises(InputError) as error:
        airline.ask(question)
    assert words in str(error.value)
    if 'ask "' in str(error.value):
        advice = str(error.value).split('ask "')[1].rstrip('"')
        assert airline.ask(advice).question == advice


def test_a_value_of_another_type_is_meant_without_or_with_its_quotes():
    frame = pd.DataFrame({"grade": [7, 8, 9] * 99, "code": ["7", "8", "9"] * 99, "age": [1, 2, 3] * 99})
    columns = {"grade": Categorical([7, 8, 9]), "code": Categorical(["7", "8", "9"]), "age": Numerical(0, 9)}
    model = PrivSyn(5.0, 1e-9, Schema(columns), seed=0).fit(frame)
    for condition, given, meant in (
        ("grade == '9'", {"grade": "9"}, "did you mean 9, no quotes?"),
        ("code == 9", {"code": 9}, "did you mean '9', in quotes?"),
        ("age == '3'", {"age": "3"}, "did you mean 3, no quotes?"),
    ):
        with pytest.raises(InputError, match=re.escape(meant)):
            model.ask(f"share of {condition}")
        with pytest.raises(InputError, match=re.escape(meant)):
            model.sample(9, given=given)


def test_dates_in_the_format_of_their_column_mean_the_same_as_in_iso_form():
    iso, signs = "2020-07-01", ("<", "<=", ">=", ">", "==", "!=")
    for form in ("%d.%m.%Y", "%Y/%m/%d %H:%M:%S", "%Y%m%d"):
        columns = {"day": Datetime("2020-01-01", "2021-12-31", format=form, nullable=False)}
        for sign in signs:
            texts = (f"day {sign} {text!r}" for text in (iso, f"{pd.Timestamp(iso):{form}}"))
            assert len({repr(Condition.read(text, columns).boxes) for text in texts}) == 1
    form = "%d.%m.%Y"
    days = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=200).strftime(form)})
    day = Datetime("2020-01-01", "2020-07-18", format=form, nullable=False)
    release = PrivSyn(5.0, 1e-9, Schema({"day": day}), seed=0).fit(days)
    assert 0.2 < release.ask("share of day < '20.02.2020'").estimate < 0.3
    with pytest.raises(InputError, match="soon"):
        release.ask("share of day >= 'soon'")


def test_numbers_that_round_to_a_thousand_are_written_as_such():
    answer = Answer("median of pressure", 999.7, 999.0, 1000.0, "keep", 1000.0, np.nan, "narrow")
    assert str(answer) == "median of pressure: 1,000 (999 to 1,000), keep: narrow; rows 1,000"
    of_means = Disagreement(("pressure",), "mean", 1013.4, 999.6, 990.0, 1009.0, 1.5)
    assert str(of_means) == "pressure: mean 1,013 in the rows, 1,000 in the release"


def test_the_share_and_the_number_of_the_same_rows_have_one_verdict_and_rare_ones_are_called_rare():
    rng = np.random.default_rng(1)
    kinds, shares = ["a", "b", "c", "d", "e"], [0.6, 0.35, 0.044, 0.005, 0.001]
    frame = pd.DataFrame({"kind": rng.choice(kinds, 20_000, p=shares), "sex": rng.choice(["f", "m"], 20_000)})
    columns = {"kind": Categorical(kinds, nullable=False), "sex": Categorical(["f", "m"], nullable=False)}
    reasons = {}
    for seed in range(4):
        release = PrivSyn(0.1, 1e-9, Schema(columns), seed=seed).fit(frame)
        for kind in kinds:
            share, number = (release.ask(f"{what} of kind == {kind!r}") for what in ("share", "number"))
            assert share.verdict == number.verdict, (seed, kind)
            reasons[kind, seed] = share.reason, number.reason
            is_open = share.low < share.high / 2
            assert (
                is_open
                == share.reason.startswith("rare, at most")
                == number.reason.startswith("rare, at most")
            )
    assert all(reasons["a", seed][0] == "the interval is narrow" for seed in range(4))
    assert all(
        re.match(r"rare, at most [0-9.]+% of the rows, and", reasons["e", seed][0]) for seed in range(4)
    )


def test_verdicts():
    """The number alone decides: narrow, apart from independent columns, or neither."""
    rows = RowsStatistic(0.3, 0.01)
    for low, high, independent, several, verdict in (
        (0.28, 0.32, 0.3, True, "keep"),
        (0.28, 0.32, 0.1, False, "keep"),
        (0.2, 0.4, 0.1, True, "direction only"),
        (0.25, 0.35, 0.29, True, "no better than independent columns"),
        (0.2, 0.4, 0.29, True, "not decided"),
        (0.2, 0.4, 0.22, True, "not decided"),
        (0.2, 0.4, np.nan, False, "not decided"),
        (np.nan, np.nan, 0.1, True, "not decided"),
        (np.nan, np.nan, 0.3, True, "not decided"),
    ):
        interval = Interval(0.3, low, high)
        assert verdict_of(interval, Tolerance(0.03, 0.01), rows, independent, several=several)[0] == verdict
    away = RowsStatistic(0.5, 0.01)
    narrow = Interval(0.3, 0.28, 0.32)
    assert verdict_of(narrow, Tolerance(0.03, 0.01), away, np.nan, several=False)[0] == "not decided"
    assert verdict_of(narrow, Tolerance(0.03, 0.01), away, 0.1, several=True)[0] == "direction only"


def test_a_release_that_is_mostly_noise_answers_without_rows():
    model = PrivSyn(0.01, 1e-6, SCHEMA, seed=3).fit(people(20))
    assert model.release_.too_little_signal
    answer = model.ask("share of severe")
    assert isnan(answer.rows)
    assert answer.verdict == "not decided"


@pytest.mark.parametrize(("ending", "name"), [*product(("csv", "parquet", "json"), ("q.yaml", "q.txt"))])
def test_the_command_answers_a_file_of_questions(saved, tmp_path, capsys, ending, name):
    lines = ["share of severe among again", "mean of day"]
    listed = [f"- {line}" for line in lines] if name == "q.yaml" else ["# mine", *lines, ""]
    (tmp_path / name).write_text("\n".join(listed))
    out = tmp_path / f"answers.{ending}"
    done = run(capsys, "ask", saved, "--questions", tmp_path / name, "--out", out)
    assert (done.code, done.out) == (0, f"{out}: 2 answers\n")
    readers = {"csv": pd.read_csv, "parquet": pd.read_parquet, "json": pd.read_json}
    table = readers[ending](out)
    assert list(table["question"]) == lines
    assert list(table)[:5] == ["question", "estimate", "low", "high", "verdict"]
    assert "2020" in str(table["estimate"][1]) or "2021" in str(table["estimate"][1])


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("q.txt", "# mine\nshare of severe\n\nmean of pya\nmean of age\n", "line 4"),
        ("q.yaml", "- share of severe\n- mean of pya\n- mean of age\n", "question 2"),
    ],
)
def test_a_question_that_cannot_be_read_leaves_the_others_their_answers(
    saved, tmp_path, capsys, name, text, place
):
    (tmp_path / name).write_text(text)
    done = run(capsys, "ask", saved, "--questions", tmp_path / name)
    assert done.code == 2
    assert [line.split(":")[0] for line in done.out.splitlines()] == ["share of severe", "mean of age"]
    (line,) = done.err.splitlines()
    assert line.startswith(f"privsyn: {tmp_path / name}, {place}: 'mean of pya': there is no column 'pya'")
    assert "did you mean 'pay'" in line
    out = tmp_path / "a.csv"
    done = run(capsys, "ask", saved, "--questions", tmp_path / name, "--out", out)
    assert (done.code, done.out) == (2, f"{out}: 2 answers, and 1 question without one\n")
    table = pd.read_csv(out)
    assert table["question"].tolist() == ["share of severe", "mean of pya", "mean of age"]
    assert table["verdict"][1] == "no answer"
    assert table["reason"][1].startswith("there is no column 'pya'")
    assert isnan(table["estimate"][1])


def test_the_command_prints_answers_and_refuses_in_one_line(saved, tmp_path, capsys):
    done = run(capsys, "ask", saved, "share of severe", "median of age")
    assert done.code == 0
    assert [line.split(":")[0] for line in done.out.splitlines()] == ["share of severe", "median of age"]
    done = run(capsys, "ask", saved, "share of severe", "--by", "again")
    assert done.code == 0
    groups = ["share of severe among again == 'FALSE'", "share of severe among again == 'TRUE'"]
    assert [line.split(": ")[0] for line in done.out.splitlines()] == groups
    done = run(capsys, "ask", saved, "share of severe", "share of seveer")
    assert done.code == 2
    assert done.out.startswith("share of severe: ")
    assert done.err.startswith("privsyn: 'share of seveer': 'seveer' is no condition: ")
    for arguments, words in (
        ((), "ask a question"),
        (("share of seveer",), "did you mean 'severe'"),
        (("share of severe", "--by", "agian"), "there is no column 'agian'; did you mean 'again'?"),
        (("number of severe", "--by", "again"), "`by` divides the rows of a share or a mean"),
        (("share of severe", "--out", tmp_path / "a.xlsx"), "let its name end in .csv, .parquet or .json"),
        (("--questions", tmp_path / "none.txt"), "none.txt"),
    ):
        done = run(capsys, "ask", saved, *arguments)
        assert done.code == 2
        assert words in done.err
        assert len(done.err.splitlines()) == 1


def test_rows_are_divided_by_a_column_of_a_table_above(hospital):
    model, _ = hospital
    question, by = "visits: share of days == 5", "patients: sex"
    answers = model.ask(question, by=by)
    groups = ["patients: sex == 'F'", "patients: sex == 'M'", "patients: sex is missing"]
    assert [answer.question for answer in answers] == [f"{question} among {group}" for group in groups]
    assert answers[:2] == tuple(model.ask(f"{question} among {group}") for group in groups[:2])
    assert answers[0].estimate > 0.8 > 0.2 > answers[1].estimate
    assert answers[2].verdict == "not decided"
    assert answers[2].reason == "noise hides how many rows there are in the group"
    short = model.ask("share of days == 5", by="sex")
    assert [answer.low for answer in short[:2]] == [answer.low for answer in answers[:2]]
    assert [answer.rows for answer in model.ask("visits: mean of count", by="sex")][:2] == pytest.approx(
        [2, 2], abs=0.2
    )


def test_a_mean_number_of_rows_in_a_group_has_what_noise_hides_of_the_rows_of_all(hospital):
    """Larger numbers count as the largest one seen, so the intervals of groups once held too rarely."""
    model, _ = hospital
    everyone = model.ask("visits: mean of count")
    for sex in ("F", "M"):
        group = model.ask(f"visits: mean of count among sex == '{sex}'")
        for end in ("low", "high"):
            ratios = [abs(getattr(answer, end) / answer.estimate - 1) for answer in (group, everyone)]
            assert ratios[0] > 0.99 * ratios[1]


def test_numbers_and_times_are_divided_into_quarters_which_hold_each_row_once(model):
    for column in ("age", "pay", "day"):
        parts = [
            model.ask(answer.question.replace("mean of age among", "share of"))
            for answer in model.ask("mean of age", by=column)
        ]
        assert len(parts) == 4
        assert sum(part.rows for part in parts) == pytest.approx(1)
        assert all(part.rows == pytest.approx(0.25, abs=0.05) for part in parts)


@pytest.mark.parametrize(
    ("question", "by", "words"),
    [
        ("visits: mean of days", "sx", "no table above has the column 'sx'"),
        ("visits: mean of days", "patients: sx", "there is no column 'sx'; did you mean 'sex'?"),
        ("patients: share of sex == 'F'", "visits: days", "'visits' is not above 'patients'"),
        ("visits: number of days == 5", "sex", "`by` divides the rows of a share or a mean"),
        ("visits: mean of days among days > 2", "sex", "in the place of among"),
    ],
)
def test_what_cannot_divide_rows_is_one_line(hospital, question, by, words):
    with pytest.raises(InputError, match=re.escape(words)):
        hospital[0].ask(question, by=by)


def test_without_counts_of_a_pair_the_rows_answer_and_the_reason_says_what_is_lacking():
    """Two columns of patients are in no table of visits, and there once was no estimate and no reason."""
    rng = np.random.default_rng(0)
    patients = pd.DataFrame({"patient": range(500), "sex": ["F", "M"] * 250, "old": ["yes", "no"] * 250})
    visits = pd.DataFrame({"patient": np.repeat(range(500), 2), "ward": rng.choice(list("abcdef"), 1000)})
    text = {"sex": Categorical(["F", "M"], nullable=False), "old": Categorical(["no", "yes"], nullable=False)}
    ward = Schema({"ward": Categorical(list("abcdef"), nullable=False)})
    database = Database(
        {
            "patients": Table(Schema(text), key="patient"),
            "visits": Table(ward, parent="patients", link="patient"),
        }
    )
    model = PrivSyn(10.0, 1e-9, database, seed=0).fit({"patients": patients, "visits": visits})
    two = model.ask("visits: share of ward == 'a' among patients: sex == 'F' and old == 'yes'")
    assert two.reason == "rows are counted with one column of patients at a time"
    assert two.estimate == two.rows
    assert isnan(two.low)
    assert two.verdict == "not decided"


@pytest.mark.slow
def test_the_reason_names_a_column_that_is_counted_by_its_distance_and_a_set_gives_the_interval():
    rng, rows = np.random.default_rng(0), 4000
    table = pd.DataFrame({"lo": rng.integers(0, 50, rows), "sex": rng.choice(["f", "m"], rows)})
    table["hi"] = table["lo"] + rng.integers(0, 5, rows)
    columns = {
        **dict.fromkeys(["lo", "hi"], Numerical(0, 60, integer=True, nullable=False)),
        "sex": Categorical(["f", "m"], nullable=False),
    }
    schema = Schema(columns, constraints=[Increasing(["lo", "hi"])])
    answer = PrivSyn(2.0, 1e-9, schema, seed=0).fit(table).ask("share of hi >= 30 among sex == 'f'")
    assert np.isnan(answer.low)
    assert (
        "hi is counted by its distance from lo: no table of counts has all of these with sex" in answer.reason
    )
    assert answer.reason.endswith("as a set under `important` they may have one")
    named = dataclasses.replace(schema, important=[["lo", "hi", "sex"]])
    answer = PrivSyn(2.0, 1e-9, named, seed=0).fit(table).ask("share of hi >= 30 among sex == 'f'")
    assert answer.low <= answer.estimate <= answer.high


@pytest.mark.slow
def test_intervals_of_statistics_of_persons_are_neither_too_narrow_nor_too_wide():
    """Of 40 fits; a chi-squared variable of 40 degrees is outside these ends in one of a million.

    Errors are taken as normal with half of the interval over 1.96 as deviation. Noise of counts is.
    """
    rng = np.random.default_rng(1)
    sex, number = rng.choice(["F", "M"], 3000), rng.poisson(1.5, 3000)
    patients = pd.DataFrame({"patient": range(3000), "sex": sex})
    visits = pd.DataFrame({"patient": np.repeat(range(3000), number)})
    visits["ward"] = rng.choice(["eyes", "surgery"], len(visits))
    two = [Categorical(values, nullable=False) for values in (["F", "M"], ["eyes", "surgery"])]
    database = Database(
        {
            "patients": Table(Schema({"sex": two[0]}), key="patient"),
            "visits": Table(Schema({"ward": two[1]}), parent="patients", link="patient"),
        }
    )
    truths = {
        "patients: share of sex == 'F'": (sex == "F").mean(),
        "visits: share of count >= 1": (number >= 1).mean(),
    }
    squares = dict.fromkeys(truths, 0.0)
    for seed in range(40):
        model = PrivSyn(1.0, 1e-9, database, seed=seed).fit({"patients": patients, "visits": visits})
        for question, truth in truths.items():
            answer = model.ask(question)
            assert answer.low <= answer.estimate <= answer.high
            deviation = (answer.high - answer.low) / 2 / 1.96
            squares[question] += (((answer.low + answer.high) / 2 - truth) / deviation) ** 2
    low, high = chi2.ppf([5e-7, 1 - 5e-7], 40)
    assert all(low < total < high for total in squares.values()), squares


def test_a_median_of_one_value_is_not_called_certain_by_the_schema():
    """The noise is far below the rows with 3, so both ends of the interval are 3. No rule says so."""
    rows = pd.DataFrame({"grade": np.repeat([1, 2, 3, 4, 5], [50, 60, 900, 70, 40])})
    schema = Schema({"grade": Numerical(1, 5, integer=True, nullable=False)})
    answer = PrivSyn(1.0, 1e-9, schema, seed=0).fit(rows).release_.ask("median of grade")
    assert (answer.low, answer.estimate, answer.high, answer.verdict) == (3, 3, 3, "keep")
    assert answer.reason == "both ends of the interval are this value"


def test_estimates_without_an_interval_are_those_of_the_rows_that_are_drawn():
    """Rows made without their links had .31 of three columns, and linked ones .49."""
    rng = np.random.default_rng(0)
    who, wave = np.repeat(np.arange(600), 3), np.tile([1, 2, 3], 600)
    start = rng.choice([6, 8, 10], 600)[who]
    rows = pd.DataFrame({"who": who, "wave": wave, "start": start, "age": start + 2 * wave})
    rows["sex"] = rng.choice(["f", "m"], 600)[who]
    schema = Schema(
        {
            "wave": Numerical(1, 3, integer=True, nullable=False),
            "start": Numerical(6, 10, integer=True, nullable=False),
            "age": Numerical(8, 16, integer=True, nullable=False),
            "sex": Categorical(["f", "m"], nullable=False),
        }
    )
    model = PrivSyn(1.0, 1e-9, schema, seed=0, unit="who", identifiers=True, order="wave").fit(rows)
    answer = model.release_.ask("share of sex == 'f' among age > 9 and start < 9 and wave == 2")
    assert np.isnan(answer.low)
    assert answer.estimate == answer.rows
    for pair in ("age and wave", "age and start", "start and wave"):
        correlation = model.release_.ask(f"correlation of {pair}")
        assert not np.isnan(correlation.low) or correlation.estimate == correlation.rows
    assert "rows are like" not in answer.reason or abs(answer.rows - answer.independent) < 0.1
