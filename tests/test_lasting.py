"""A column that lasts: persons keep their value, and as many change as in the private table."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from command import visible

from privsyn import Categorical, Database, InputError, Numerical, PrivSyn, Schema, Table, load
from privsyn.errors import DisagreementWarning
from privsyn.release import linked_rows
from privsyn.studies.publication.public_page import render

PERSONS = 700
SCHEMA = Schema(
    {
        "year": Numerical(2000, 2011, integer=True, nullable=False),
        "region": Categorical(["north", "south", "east", "isle"], nullable=False),
        "wage": Numerical(0, 9, integer=True, nullable=False),
    }
)


def tables(missing=False):
    """Most persons never move, and some often; people in the north earn more. Some have no row."""
    rng = np.random.default_rng(0)
    number = rng.integers(0, 9, PERSONS)
    often = rng.random(PERSONS) < 0.2
    rows = []
    for person in range(PERSONS):
        region = rng.choice(["north", "south", "east", "isle"], p=[0.5, 0.3, 0.19, 0.01])
        for year in range(number[person]):
            if often[person] and rng.random() < 0.4:
                region = rng.choice(["north", "south", "east"])
            if missing and person % 5 == 0 and year == 3:
                region = None
            rows.append((person, 2000 + year, region, int(rng.integers(0, 5)) + 4 * (region == "north")))
    lives = pd.DataFrame(rows, columns=["id", "year", "region", "wage"])
    return {
        "persons": pd.DataFrame({"id": range(PERSONS), "often": np.where(often, "y", "n")}),
        "lives": lives,
    }


def chosen(model):
    """Return the rules of lives of the release."""
    return [*map(str, model.release_.database.tables["lives"].lives)]


def database(*constraints, schema=SCHEMA, order="year"):
    return Database(
        {
            "persons": Table(Schema({"often": Categorical(["n", "y"], nullable=False)}), key="id"),
            "lives": Table(schema, parent="persons", link="id", order=order, constraints=constraints),
        }
    )


def changes(lives):
    """Return the number of changes of each person with rows."""
    cells = lives.sort_values(["id", "year"], kind="stable")
    codes, parents = pd.factorize(cells["region"], use_na_sentinel=False)[0], cells["id"].to_numpy()
    changed = np.concatenate([[False], (np.diff(codes) != 0) & (np.diff(parents) == 0)])
    return pd.Series(changed).groupby(parents).sum()


def shares(numbers):
    return numbers.clip(upper=4).value_counts(normalize=True).reindex(range(5), fill_value=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [False, True])
def test_as_many_change_as_in_the_private_table_and_depend_on_the_person(missing, tmp_path):
    real = tables(missing)
    schema = replace(
        SCHEMA, columns={**SCHEMA.columns, "region": replace(SCHEMA.columns["region"], nullable=True)}
    )
    declared = database("region lasts", schema=schema if missing else SCHEMA)
    model = PrivSyn(20.0, 1e-9, declared, seed=1).fit(real)
    made = model.sample(seed=2)
    number, wanted = changes(made["lives"]), changes(real["lives"])
    assert np.abs(shares(number) - shares(wanted)).sum() / 2 < 0.05
    assert [*made["persons"].columns] == ["id", "often"]
    often = made["persons"].set_index("id")["often"].reindex(number.index) == "y"
    assert (number[~often] > 0).mean() < (number[often] > 0).mean() - 0.2
    regions = (
        real["lives"]["region"].value_counts(normalize=True),
        made["lives"]["region"].value_counts(normalize=True),
    )
    assert np.abs(regions[0].sub(regions[1], fill_value=0)).sum() / 2 < 0.05
    north = made["lives"].groupby(made["lives"]["region"] == "north")["wage"].mean()
    assert north[True] > north[False] + 3
    model.save(tmp_path / "model.privsyn")
    loaded = load(tmp_path / "model.privsyn")
    pd.testing.assert_frame_equal(loaded.sample(seed=2)["lives"], made["lives"])
    for release in (model.release_, loaded):
        lives = release.tables["lives"]
        assert lives.lasting == ("region",)
        assert {"persons.often"} == {name for name in lives.links.context if name.startswith("persons.")}


def panel(persons=2500):
    """Whether somebody works lasts and depends on sex, which is the same in all rows; pay depends on both."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(persons), rng.integers(1, 6, persons))
    sex = rng.choice(["f", "m"], persons)
    moved = pd.Series(rng.random(len(who)) < 0.05).groupby(who).cumsum().to_numpy() % 2 == 1
    works = (rng.random(persons) < np.where(sex == "f", 0.4, 0.8))[who] ^ moved
    frame = pd.DataFrame({"id": who, "sex": sex[who], "works": np.where(works, "yes", "no")})
    frame["year"] = 2000 + frame.groupby("id").cumcount()
    pay = np.where(works, 5, 0) + np.where(frame["sex"] == "m", 3, 0)
    frame["pay"] = pay + rng.integers(0, 3, len(frame))
    return frame


@pytest.fixture(scope="module")
def of_panel():
    columns = {
        "sex": Categorical(["f", "m"], nullable=False),
        "works": Categorical(["no", "yes"], nullable=False),
        "year": Numerical(2000, 2004, integer=True, nullable=False),
        "pay": Numerical(0, 10, integer=True, nullable=False),
    }
    table = Table(Schema(columns), constant=["sex"], constraints=["works lasts"])
    settings = {"unit": "id", "identifiers": True, "order": "year", "seed": 3}
    return PrivSyn(4.0, 1e-9, table, **settings).fit(panel())


@pytest.mark.slow
def test_rows_show_what_answers_say_of_a_column_that_lasts_and_one_of_the_person(of_panel):
    """Persons and rows were asked with noise of their own; rows are asked about, so rows have it."""
    real = panel()
    for sex in "fm":
        answer = of_panel.ask(f"share of works == 'yes' among sex == '{sex}'")
        assert answer.low <= answer.rows <= answer.high
        assert answer.rows == pytest.approx(answer.estimate, abs=0.035)  # of eight seeds: deviation .011
        true = (real["works"] == "yes")[real["sex"] == sex].mean()
        assert answer.rows == pytest.approx(true, abs=0.05)
    assert of_panel.accuracy_.agreement(of_panel.sample(seed=1)).empty


@pytest.mark.slow
def test_rows_of_given_persons_follow_from_them():
    """What rows have in all persons together is not what those of one sex have."""
    real = panel()
    model = PrivSyn(20.0, 1e-9, split(), seed=1).fit(
        {"persons": real.drop_duplicates("id")[["id", "sex"]], "lives": real.drop(columns="sex")}
    )
    for sex in "fm":
        made = model.sample(1000, given={"sex": sex}, seed=2)
        lives, its_rows = made["lives"], real[real["sex"] == sex]
        assert (made["persons"]["sex"] == sex).all()
        assert lives["pay"].mean() == pytest.approx(its_rows["pay"].mean(), abs=0.5)
        share = (its_rows["works"] == "yes").mean()
        assert (lives["works"] == "yes").mean() == pytest.approx(share, abs=0.06)
    first = model.sample(1000, given={"first(lives.works)": "yes"}, seed=2)["lives"]
    assert (first.groupby("id")["works"].first() == "yes").all()


def split():
    """The panel as two tables; whether somebody works lasts."""
    columns = {
        "works": Categorical(["no", "yes"], nullable=False),
        "year": Numerical(2000, 2004, integer=True, nullable=False),
        "pay": Numerical(0, 10, integer=True, nullable=False),
    }
    persons = Table(Schema({"sex": Categorical(["f", "m"], nullable=False)}), key="id")
    lives = Table(Schema(columns), parent="persons", link="id", order="year", constraints=["works lasts"])
    return Database({"persons": persons, "lives": lives})


@pytest.mark.slow
def test_page_and_sample_say_where_rows_differ_from_the_links(of_panel, monkeypatch):
    """Rows of which each column is as released, but dealt to other persons, differ in their links alone."""
    assert "Where rows differ" not in visible(render(of_panel.release_))
    make = linked_rows.synthesise_linked

    def dealt(*arguments, **keywords):
        rng = np.random.default_rng(0)
        codes = make(*arguments, **keywords)
        order = rng.permutation(len(codes["pay"]))
        return codes | {name: codes[name][order] for name in ("pay", "works")}

    monkeypatch.setattr(linked_rows, "synthesise_linked", dealt)
    with pytest.warns(DisagreementWarning, match=r"(works|pay) x .*of the rows lie in other cells"):
        of_panel.sample(seed=1)
    text = visible(render(of_panel.release_))
    assert re.search(r"Where rows differ.*(pay x sex|sex x pay): \d+% of the rows lie in other cells", text)


def questions(model):
    return [spend.what for spend in model.release_.ledger.spends]


@pytest.mark.slow
def test_a_column_that_lasts_is_found_by_released_answers_and_another_is_not(tmp_path):
    """What is drawn afresh in each row is no column that lasts, nor is one that nearly all rows share."""
    real = tables()
    rng = np.random.default_rng(1)
    real["lives"]["mood"] = rng.choice(["good", "bad"], len(real["lives"]))
    real["lives"]["rare"] = np.where(rng.random(len(real["lives"])) < 0.03, "y", "n")
    further = {"mood": Categorical(["good", "bad"]), "rare": Categorical(["n", "y"])}
    schema = replace(SCHEMA, columns={**SCHEMA.columns, **further})
    model = PrivSyn(20.0, 1e-9, database(schema=schema), seed=1).fit(real)
    assert chosen(model) == ["region lasts"]
    assert "lives: how often mood stays the same" in questions(model)
    number, wanted = changes(model.sample(seed=2)["lives"]), changes(real["lives"])
    assert np.abs(shares(number) - shares(wanted)).sum() / 2 < 0.05
    model.save(tmp_path / "model.privsyn")
    assert [*map(str, load(tmp_path / "model.privsyn").database.tables["lives"].lives)] == ["region lasts"]


@pytest.mark.slow
def test_nothing_is_asked_of_rows_without_order_or_of_columns_that_rules_name():
    real = tables()
    for declared in (database(order=None), database("region stays isle"), database("region lasts")):
        try:
            model = PrivSyn(5.0, 1e-9, declared, seed=1).fit(real)
        except InputError:  # a rule that synthetic rows cannot keep yet
            continue
        assert not [what for what in questions(model) if "stays the same" in what]


@pytest.mark.parametrize(
    ("below", "derive"), [({"constant": ["drug"]}, {}), ({}, {"ill": "ever(doses.drug == a)"})]
)
def test_a_summary_of_rows_below_is_not_asked_whether_it_lasts(below, derive):
    """It is a column with listed values too, of a table whose rows have an order; `region` is asked."""
    doses = Table(
        Schema({"drug": Categorical(["a", "b"], nullable=False)}), parent="lives", link="life", **below
    )
    lives = Table(
        Schema({"region": SCHEMA.columns["region"]}),
        key="life", parent="persons", link="id", order="year", derive=derive,
    )  # fmt: skip
    declared = Database({"persons": Table(Schema({}), key="id"), "lives": lives, "doses": doses})
    number = np.arange(1200)
    real = {
        "persons": pd.DataFrame({"id": range(600)}),
        "lives": pd.DataFrame({"life": number, "id": number // 2, "year": number % 2, "region": "north"}),
        "doses": pd.DataFrame({"life": number, "drug": np.where(number % 3, "a", "b")}),
    }
    model = PrivSyn(5.0, 1e-9, declared, seed=1).fit(real)
    asked = [what for what in questions(model) if "stays the same" in what]
    assert asked == ["lives: how often region stays the same"]
    assert {*model.sample(5, seed=2)["doses"]["drug"]} <= {"a", "b"}


@pytest.mark.slow
def test_with_little_budget_no_column_is_asked_whether_it_lasts():
    """Noise would hide even a column that always stays the same."""
    model = PrivSyn(0.05, 1e-9, database(), seed=1).fit(tables())
    assert not [what for what in questions(model) if "stays the same" in what]
    assert chosen(model) == []


@pytest.mark.slow
def test_a_column_lasts_where_noise_hides_all_other_links():
    """Its first value and its changes are counted with persons, whose noise is far less than that of rows."""
    real = tables()
    rng = np.random.default_rng(1)
    further = {name: Numerical(0, 9, integer=True, nullable=False) for name in "abcdef"}
    for name in further:
        real["lives"][name] = rng.integers(0, 10, len(real["lives"]))
    schema = replace(SCHEMA, columns={**SCHEMA.columns, **further})
    model = PrivSyn(1.5, 1e-9, database(schema=schema), seed=1).fit(real)
    (loss,) = (loss for loss in model.losses_ if loss.kind == "links")
    assert "by their numbers and by what lasts (region)" in str(loss)
    assert chosen(model) == ["region lasts"]
    assert not [what for what in questions(model) if "previous" in what]
    made = changes(model.sample(seed=2)["lives"])
    assert np.abs(shares(made) - shares(changes(real["lives"]))).sum() / 2 < 0.15


@pytest.mark.slow
def test_how_often_a_column_changes_gets_less_of_the_budget_than_the_number_of_rows():
    """Of persons who move often it shows more, and they have no other number of rows."""
    spends = PrivSyn(5.0, 1e-9, database("region lasts"), seed=1).fit(tables()).release_.ledger.spends

    def cost(column):
        return sum(
            spend.rho for spend in spends if spend.what.startswith(f"persons: counts over often, {column}")
        )

    assert cost("count(lives)") > cost("changes(lives.region)") > 0
