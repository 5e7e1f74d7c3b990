"""A child table whose links the noise would hide is counted without them, and the release says so."""

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Database, Numerical, PrivSyn, Schema, Table, load, plan, report

KINDS = list("abcd")
CITIES = Schema({"kind": Categorical(KINDS, nullable=False), "size": Numerical(1, 9, integer=True)})
SHOPS = Schema(
    {name: Categorical(KINDS, nullable=False) for name in ("goods", "owner", "street")}
    | {"year": Numerical(1900, 2000, integer=True)}
)


def database(rules=(), **settings):
    shops = Table(SHOPS, key="shop", parent="cities", link="city", constraints=rules, **settings)
    return Database({"cities": Table(CITIES, key="city"), "shops": shops})


def tables(cities=1500):
    """Cities with 2 shops on average; a shop sells what the city is known for, and shops of one age."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, cities)
    of = np.repeat(np.arange(cities), rng.integers(1, 4, cities))
    codes = [kind[of], kind[of], rng.integers(0, 4, len(of))]
    shops = pd.DataFrame({"city": of, "shop": range(len(of))})
    shops = shops.assign(**dict(zip(SHOPS.columns, (np.array(KINDS)[code] for code in codes), strict=False)))
    shops["year"] = 1900 + rng.integers(0, 60, cities)[of] + 10 * pd.Series(of).groupby(of).cumcount()
    size = rng.integers(1, 10, cities)
    return {
        "cities": pd.DataFrame({"city": range(cities), "kind": np.array(KINDS)[kind], "size": size}),
        "shops": shops,
    }


def fitted(epsilon, *, delta=1e-9, seed=0, **settings):
    return PrivSyn(epsilon, delta, database(**settings), seed=seed).fit(tables())


def lost(model):
    return [loss for loss in model.losses_ if loss.kind == "links"]


@pytest.fixture(scope="module")
def drowned():
    return fitted(0.2)


@pytest.fixture(scope="module")
def linked():
    return fitted(8.0)


def test_a_small_epsilon_leaves_no_link_and_says_so(drowned):
    (loss,) = lost(drowned)
    assert loss.column == "shops"
    assert str(loss).startswith("shops: its rows are dealt to the rows of cities at random")
    assert loss.matters
    questions = [spend.what for spend in drowned.ledger_.spends if spend.what.startswith("shops: ")]
    assert questions
    assert not [question for question in questions if "cities" in question or "previous" in question]


def test_a_larger_epsilon_leaves_links(linked):
    assert lost(linked) == []
    made = linked.sample(seed=1)
    shops = made["shops"].merge(made["cities"], on="city")
    assert (shops["goods"] == shops["kind"]).mean() > 0.8
    assert [spend for spend in linked.ledger_.spends if "goods, cities.kind" in spend.what]


@pytest.mark.parametrize("epsilon", [0.2, 0.5])
def test_rows_without_links_have_parents_and_are_as_many(epsilon):
    model = fitted(epsilon)
    assert lost(model)
    made, real = model.sample(1500, seed=1), tables()
    assert set(made["shops"]["city"]) <= set(made["cities"]["city"])
    assert made["shops"]["shop"].is_unique
    per_city = len(made["shops"]) / 1500
    assert per_city == pytest.approx(len(real["shops"]) / 1500, rel=0.5)
    shops = made["shops"].merge(made["cities"], on="city")
    assert (shops["goods"] == shops["kind"]).mean() < 0.5


@pytest.mark.parametrize("order", [None, "year"])
def test_the_verdict_says_no_for_each_kind_of_link(order):
    model = fitted(0.3, order=order)
    assert lost(model)
    other = "other rows of a parent" if order is None else "the row before"
    outlook = model.release_.tables["shops"].outlook()
    assert (
        f"links to cities are no better than independent columns, links to {other} are no better" in outlook
    )
    assert outlook.startswith("No")


def test_what_is_said_is_in_the_file_and_on_the_page(drowned, tmp_path):
    path = tmp_path / "model.privsyn"
    drowned.save(path)
    saved = load(path)
    assert [str(loss) for loss in saved.losses_ if loss.kind == "links"] == [str(lost(drowned)[0])]
    assert saved.tables["shops"].outlook() == drowned.release_.tables["shops"].outlook()
    first, again = drowned.sample(300, seed=3), saved.sample(300, seed=3)
    pd.testing.assert_frame_equal(first["shops"], again["shops"])
    report(saved, tmp_path / "page.html")
    assert "dealt to the rows of cities at random" in (tmp_path / "page.html").read_text()


def test_answers_by_a_column_above_are_not_decided(drowned):
    answers = drowned.ask("shops: share of goods == 'a'", by="kind")
    assert {answer.verdict for answer in answers} == {"not decided"}


def test_rules_on_rows_of_a_parent_keep_links():
    """They hold in either case; rows that must follow each other are counted with each other."""
    model = fitted(0.3, rules=("year rises",), order="year")
    assert lost(model) == []
    year = model.sample(1500, seed=1)["shops"].groupby("city")["year"]
    assert (year.diff().dropna() > 0).all()


def test_no_link_is_left_in_a_pure_run_either():
    assert lost(fitted(0.2, delta=0.0))


def test_a_plan_says_before_the_run_that_links_are_lost():
    def sentences(epsilon):
        return " ".join(
            plan(database(), epsilon, rows=1500, rows_per_parent={"shops": 2.0}).expectations[0].sentences
        )

    assert sentences(0.2).startswith("shops: lost: how many rows a row of cities has")
    assert "lost" not in sentences(8.0)
