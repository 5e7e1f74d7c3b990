"""Shares and means of the rows of linked tables, with intervals."""

import numpy as np
import pandas as pd
import pytest

from privsyn import Accuracy, Categorical, Database, InputError, Numerical, PrivSyn, Schema, Table

NUMBERS = np.random.default_rng(0).integers(0, 5, 2000)
HOMES = pd.DataFrame({"home": range(2000), "town": np.where(NUMBERS > 2, "big", "small")})
PEOPLE = pd.DataFrame({"home": np.repeat(range(2000), NUMBERS)})
PEOPLE["age"] = np.random.default_rng(1).integers(0, 100, len(PEOPLE))
PEOPLE["sex"] = np.where(PEOPLE["age"] % 3 == 0, "F", "M")


def database(**columns):
    age, sex = Numerical(0, 99, integer=True), Categorical(["F", "M"])
    people = Schema({"age": age, "sex": sex, **columns})
    return Database(
        {
            "homes": Table(Schema({"town": Categorical(["big", "small"])}), key="home"),
            "people": Table(people, parent="homes", link="home"),
        }
    )


@pytest.fixture(scope="module")
def accuracy():
    return PrivSyn(3.0, 1e-9, database(), seed=0).fit({"homes": HOMES, "people": PEOPLE}).accuracy_


TRUTHS = {
    "homes: town == 'big'": (NUMBERS > 2).mean(),
    "people: count >= 3": (NUMBERS >= 3).mean(),
    "homes: count(people) >= 3 and town == 'big'": (NUMBERS >= 3).mean(),
    "people: age >= 65": (PEOPLE["age"] >= 65).mean(),
    "people : sex == 'F'": (PEOPLE["sex"] == "F").mean(),
}


@pytest.mark.slow
@pytest.mark.parametrize("where", TRUTHS)
def test_shares_are_of_the_rows_of_one_table(accuracy, where):
    found = accuracy.share(where)
    assert found["covered"]
    assert found["low"] <= TRUTHS[where] <= found["high"]
    assert found["high"] - found["low"] < 0.2


@pytest.mark.slow
def test_means_are_of_the_rows_of_one_table(accuracy):
    for column, truth in {"people: age": PEOPLE["age"].mean(), "people: count": NUMBERS.mean()}.items():
        found = accuracy.mean(column)
        assert found["low"] <= truth <= found["high"]
    assert accuracy.mean("homes: count(people)").equals(accuracy.mean("people: count"))
    of_homes = accuracy.mean("people: count")
    people, homes = (accuracy.by_table[name].model.fitted.total for name in ("people", "homes"))
    assert of_homes["estimate"] == pytest.approx(people / homes)
    assert 0.02 < of_homes["high"] - of_homes["low"] < 0.6  # a few homes with many people may be hidden
    of_women = accuracy.mean("people: age", "sex == 'F'")
    assert of_women["estimate"] == accuracy["people"].mean("age", "sex == 'F'")["estimate"]


def test_it_is_a_mapping_of_the_tables(accuracy):
    assert isinstance(accuracy, Accuracy)
    assert list(accuracy) == ["homes", "people"]
    assert len(accuracy) == 2
    assert "people: <Accuracy" in repr(accuracy)


def test_tables_of_answers_name_the_table_of_each_line(accuracy):
    for name in ("tables", "means", "quantiles", "correlations"):
        together, people = getattr(accuracy, name), getattr(accuracy["people"], name)
        assert together.columns[0] == "table"
        lines = together[together["table"] == "people"].drop(columns="table").reset_index(drop=True)
        pd.testing.assert_frame_equal(lines, people, check_dtype=False)
    counts = accuracy.counts("people: sex")
    pd.testing.assert_frame_equal(counts, accuracy["people"].counts("sex"))
    assert accuracy.counts("homes: count(people)")["estimate"].sum() > 0
    for columns in ((), ("people: sex", "homes: town"), ("sex",)):
        with pytest.raises(InputError, match="as in homes: "):
            accuracy.counts(*columns)


@pytest.mark.parametrize("where", ["age >= 65", "pets: age >= 65", ""])
def test_a_text_without_a_table_is_refused(accuracy, where):
    with pytest.raises(InputError, match="begin with a table, as in homes"):
        accuracy.share(where)


def test_count_in_a_quoted_value_or_name_is_not_the_number_of_rows():
    people = PEOPLE.assign(test=np.where(PEOPLE["age"] < 50, "blood count", "x ray"))
    schema = database(test=Categorical(["blood count", "x ray"]))
    accuracy = PrivSyn(3.0, 1e-9, schema, seed=0).fit({"homes": HOMES, "people": people}).accuracy_
    for where in ("people: test == 'blood count'", 'people: test == "blood count"'):
        found = accuracy.share(where)
        assert found["low"] <= (people["test"] == "blood count").mean() <= found["high"]


def test_a_column_of_that_name_is_meant_before_the_number_of_rows():
    people = PEOPLE.assign(count=PEOPLE["age"] // 50)
    schema = database(count=Numerical(0, 1, integer=True))
    accuracy = PrivSyn(3.0, 1e-9, schema, seed=0).fit({"homes": HOMES, "people": people}).accuracy_
    assert accuracy.share("people: count >= 1")["estimate"] == pytest.approx(0.5, abs=0.05)


def test_a_sample_is_compared_with_what_its_tables_have():
    model = PrivSyn(3.0, 1e-9, database(), seed=0).fit({"homes": HOMES, "people": PEOPLE})
    sample = model.sample(seed=0)
    # It lacks count(people), which is counted
    assert model.accuracy_["homes"].agreement(sample["homes"]).empty
    wrong = sample | {"people": sample["people"].assign(age=0)}
    found = model.accuracy_.agreement(wrong)
    assert found[["table", "columns"]].iloc[0].tolist() == ["people", ("age",)]
    assert model.accuracy_.agreement({"homes": wrong["homes"]}).empty
    with pytest.raises(InputError, match="table 'people': the rows have no column 'age'"):
        model.accuracy_.agreement({"people": sample["homes"]})
    with pytest.raises(InputError, match="by their names: homes, people"):
        model.accuracy_.agreement({"dogs": sample["homes"]})


def test_rows_of_one_person_have_the_questions_of_their_table_and_names_without_it():
    """Bounds and values that were searched for such rows widen intervals, as in a run of independent rows."""
    rng = np.random.default_rng(2)
    rows = pd.DataFrame({"who": rng.integers(0, 500, 1500), "paid": rng.normal(50, 9, 1500).round()})
    settings = {"unit": "who", "identifiers": True, "derive": {"spent": "sum(paid)"}, "seed": 0}
    model = PrivSyn(3.0, 1e-6, **settings).fit(rows)
    release = model.release_
    assert release.tables["rows"].bounds_noise.keys() == {"paid"}
    assert release.tables["persons"].bounds_noise.keys() == {"spent"}
    assert [*release.accuracy_] == ["rows"]
    for epsilon, lost in ((3.0, ()), (0.02, ("spent", "paid"))):
        model = PrivSyn(epsilon, 1e-6, **settings).fit(rows)
        assert model.not_found_ == model.release_.not_found == model.accuracy_.not_found == lost
        assert model.release_.tables["rows"].not_found == lost[1:]
