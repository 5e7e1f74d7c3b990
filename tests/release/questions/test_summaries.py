"""Columns that sum up the rows below: questions about them, and what synthetic rows show beside answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Database, Numerical, PrivSyn, Schema, Table


@pytest.fixture(scope="module")
def orders():
    """A model of orders with lines, whose total is the sum of the amounts; also which order has a gift."""
    rng, number = np.random.default_rng(0), 600
    lines = pd.DataFrame({"order": np.repeat(np.arange(number), rng.integers(0, 4, number))})
    lines["amount"] = rng.integers(0, 10, len(lines))
    lines["kind"] = rng.choice(["gift", "own"], len(lines), p=[0.1, 0.9])
    orders = pd.DataFrame({"order": np.arange(number), "shop": rng.choice(["n", "s"], number)})
    orders["total"] = lines.groupby("order")["amount"].sum().reindex(orders["order"], fill_value=0).to_numpy()
    database = Database(
        {
            "orders": Table(
                Schema({"shop": Categorical(["n", "s"]), "total": Numerical(0, 40, integer=True)}),
                key="order",
                constraints=["total == sum(lines.amount)"],
                derive={"gift": "ever(lines.kind == gift)"},
            ),
            "lines": Table(
                Schema({"amount": Numerical(0, 9, integer=True), "kind": Categorical(["gift", "own"])}),
                parent="orders",
                link="order",
            ),
        }
    )
    model = PrivSyn(3.0, 1e-9, database, seed=0).fit({"orders": orders, "lines": lines})
    return model, orders


def test_a_total_that_is_computed_from_rows_below_is_asked_by_its_name(orders):
    model, private = orders
    for question in ("orders: mean of total", "mean of total", "mean of orders.total", "mean of `total`"):
        answer = model.ask(question)
        assert answer.question == question
        assert answer.low <= private["total"].mean() <= answer.high
    share = model.ask("share of total > 9 among shop == 'n'")
    assert share.low <= (private["total"] > 9)[private["shop"] == "n"].mean() <= share.high
    assert "lines: mean of amount" in model.ask("lines: mean of amount among orders: total > 9").question
    assert len(model.ask("lines: mean of amount", by="orders: total")) > 1


def test_rows_beside_a_summary_are_those_that_a_user_computes_from_the_rows_below(orders):
    """Private persons with a gift are counted; what a user has is gifts among the synthetic lines."""
    model, _ = orders
    made = model.sample(seed=0)
    gifts = made["lines"].loc[made["lines"]["kind"] == "gift", "order"].nunique()
    answer = model.ask("number of gift == 'yes'")
    assert answer.rows == pytest.approx(gifts, rel=0.02)
    assert "rows have no column gift: their number is that of ever(lines.kind == gift)" in answer.reason
    total = model.ask("mean of total")
    assert total.rows == pytest.approx(made["orders"]["total"].mean(), rel=0.02)
    assert "rows have no" not in total.reason


def test_deaths_are_as_many_in_persons_as_in_rows():
    """A person who ever has a last row with a value has one: both were counted, and differed."""
    rng, number = np.random.default_rng(0), 1500
    stays = pd.DataFrame({"person": np.repeat(np.arange(number), rng.geometric(0.2, number))})
    stays["day"] = np.arange(len(stays)) % 300
    stays = stays.sort_values(["person", "day"], ignore_index=True)
    dead = (rng.random(number) < 0.3)[stays["person"]] & ~stays.duplicated("person", keep="last")
    stays["outcome"] = np.where(dead, "dead", "home")
    database = Database(
        {
            "persons": Table(Schema({}), key="person", derive={"died": "ever(stays.outcome == dead)"}),
            "stays": Table(
                Schema(
                    {
                        "day": Numerical(0, 299, integer=True),
                        "outcome": Categorical(["home", "dead"]),
                    }
                ),
                parent="persons",
                link="person",
                order="day",
                constraints=["outcome == 'dead' is last"],
            ),
        }
    )
    tables = {"persons": pd.DataFrame({"person": range(number)}), "stays": stays}
    for seed in range(3):
        model = PrivSyn(1.0, 1e-9, database, seed=seed).fit(tables)
        persons = model.ask("number of died == 'yes'")
        rows = model.ask("number of outcome == 'dead'")
        assert rows.estimate == pytest.approx(persons.estimate, rel=1e-3)
        width = persons.high - persons.low  # 3.9 deviations: beyond both is an error of 5.9
        assert width < 400
        assert persons.low - width <= dead.sum() <= persons.high + width
        made = model.sample(seed=seed)["stays"]
        assert (made["outcome"] == "dead").sum() == pytest.approx(persons.estimate, rel=0.05)
