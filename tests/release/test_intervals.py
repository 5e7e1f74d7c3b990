"""Intervals of shares, rates and group means hold, and say when nothing is known: through the public package.

Laws are tested on 200 releases of one table, each with noise of its own. Bounds are those of a binomial
distribution: a right rule fails each law with a probability below 1e-6.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from privsyn import (
    Categorical,
    Database,
    Determined,
    Equal,
    InputError,
    Numerical,
    PrivSyn,
    Schema,
    Table,
    from_marginals,
    load,
)

RUNS = 200
COUNTS = np.array([[310.0, 6.0], [250.0, 134.0], [98.0, 202.0]])
"""Rows by x (0, 1, 2) and y (1, 5): one cell is below its noise, and the columns depend on each other."""

SCHEMA = Schema({"x": Categorical([0, 1, 2], nullable=False), "y": Categorical([1, 5], nullable=False)})
ROWS = COUNTS.sum()

ASKED = {
    "a share above its noise": (lambda a: a.share("x == 2 and y == 5"), 202 / ROWS),
    "a share below its noise": (lambda a: a.share("x == 0 and y == 5"), 6 / ROWS),
    "a share of two cells": (lambda a: a.share("x == 0 and y == 5 or x == 2 and y == 1"), 104 / ROWS),
    "a rate": (lambda a: a.share("y == 5", "x == 2"), 202 / 300),
    "a rate below its noise": (lambda a: a.share("x == 0", where="y == 5"), 6 / 342),
    "a group mean": (lambda a: a.mean("y", "x == 1"), (250 + 5 * 134) / 384),
}


def released(rng, sigma=15.0, pair=True):
    """Noisy counts of both columns and of the pair."""

    def noisy(counts, error):
        return counts + rng.normal(0, error, counts.shape), error**2

    tables = {("x",): noisy(COUNTS.sum(axis=1), 8.0), ("y",): noisy(COUNTS.sum(axis=0), 8.0)}
    if pair:
        tables["x", "y"] = noisy(COUNTS, sigma)
    return from_marginals(SCHEMA, tables, "noise of this test", seed=0)


@pytest.fixture(scope="module")
def accuracies():
    rng = np.random.default_rng(0)
    return [released(rng).accuracy_ for _ in range(RUNS)]


def held(accuracies, ask, truth):
    answers = list(map(ask, accuracies))
    assert all(answer["covered"] for answer in answers)
    assert all(answer["low"] <= answer["estimate"] <= answer["high"] for answer in answers)
    return sum(answer["low"] <= truth <= answer["high"] for answer in answers)


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
def test_95_of_100_intervals_hold(accuracies, name):
    """More than 95 where the estimate lies outside, to which an interval is extended, or limits cut it."""
    assert binom.ppf(5e-7, RUNS, 0.95) <= held(accuracies, *ASKED[name]) <= binom.ppf(1 - 5e-7, RUNS, 0.985)


def test_an_interval_is_no_narrower_than_the_noise_that_margins_leave(accuracies):
    """Of a 3 x 2 table they take off all but (1 - 1/3) (1 - 1/2) of the variance of a cell."""
    widths = [
        (answer["high"] - answer["low"]) * ROWS
        for answer in (accuracy.share("x == 2 and y == 5") for accuracy in accuracies[:50])
    ]
    assert np.mean(widths) > 2 * 1.95 * 15 * (2 / 3 * 1 / 2) ** 0.5
    counts = accuracies[0].counts("x", "y")
    assert np.mean(widths) < (counts["high"] - counts["low"]).max()


def test_a_pair_that_was_not_measured_has_what_its_margins_allow():
    accuracy = released(np.random.default_rng(1), pair=False).accuracy_
    found = accuracy.share("x == 2 and y == 5")
    assert found["covered"]
    assert found["low"] <= 202 / ROWS <= found["high"]
    assert found["high"] <= accuracy.share("x == 2")["high"] + 0.02  # no more than have x == 2
    most = accuracy.share("x != 2 or y == 1")
    assert most["low"] >= 1 - accuracy.share("x == 2")["high"] - 0.02
    rate = accuracy.share("y == 5", "x == 2")
    assert (rate["low"], rate["high"]) == pytest.approx((0, 1), abs=1e-6)


def dependent(rows, seed=0, columns=12):
    """Columns of three values: the second copies the first in two of three rows, the others are alone."""
    rng = np.random.default_rng(seed)
    table = {f"c{k}": rng.integers(0, 3, rows) for k in range(columns)}
    table["c1"] = np.where(rng.random(rows) < 2 / 3, table["c0"], table["c1"])
    schema = {name: Categorical([0, 1, 2], nullable=False) for name in table}
    return pd.DataFrame(table), Schema(schema)


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_the_distance_by_which_pairs_are_chosen_bounds_those_that_were_not(epsilon, tmp_path):
    table, schema = dependent(4000)
    model = PrivSyn(epsilon, 1e-9, schema, seed=0).fit(table)
    accuracy = model.accuracy_
    measured = {frozenset(columns) for columns in accuracy.tables["columns"] if len(columns) > 1}
    names = list(table)
    others = [(a, b) for a in names for b in names if a < b and {a, b} not in measured]
    assert others
    narrower = 0
    for a, b in others:
        found = accuracy.share(f"{a} == 0 and {b} == 0")
        assert found["covered"]
        assert found["low"] <= ((table[a] == 0) & (table[b] == 0)).mean() <= found["high"]
        narrower += found["high"] < accuracy.share(f"{a} == 0")["estimate"] - 0.02
    assert narrower or epsilon < 0.5  # than what the margins alone allow
    model.save(tmp_path / "model")
    again = load(tmp_path / "model").accuracy_
    a, b = others[0]
    pd.testing.assert_series_equal(
        again.share(f"{a} == 0 and {b} == 0"), accuracy.share(f"{a} == 0 and {b} == 0")
    )


def test_what_nothing_relates_and_groups_that_noise_hides_are_not_covered():
    table, schema = dependent(4000)
    accuracy = PrivSyn(0.3, 1e-9, schema, seed=0).fit(table).accuracy_
    three = accuracy.share("c0 == 1 and c1 == 1 and c2 == 1")
    assert not three["covered"]
    assert np.isnan([three["low"], three["high"]]).all()
    assert 0 < three["estimate"] < 1
    rare = pd.DataFrame({"lake": np.where(np.arange(4000) < 12, "y", "n"), "pay": [1.0, 2, 3, 4] * 1000})
    lakes = Schema({"lake": Categorical(["y", "n"], nullable=False), "pay": Numerical(0, 9, nullable=False)})
    accuracy = PrivSyn(0.3, 1e-9, lakes, seed=0).fit(rare).accuracy_
    for found in (accuracy.mean("pay", "lake == 'y'"), accuracy.share("pay > 2", "lake == 'y'")):
        assert not found["covered"]
        assert np.isnan([found["low"], found["high"]]).all()
    many = accuracy.mean("pay", "lake == 'n'")
    assert many["covered"]
    assert 0 <= many["low"] < 2.5 < many["high"] <= 9


def test_columns_that_follow_from_others_are_answered_by_these():
    """A mapping and a copy: their shares, rates and means are those of the columns that were counted."""
    rng = np.random.default_rng(0)
    city, sick = rng.choice(["Oslo", "Bergen", "Rome"], 3000), rng.random(3000) < 0.3
    pay = rng.integers(0, 10, 3000)
    table = pd.DataFrame(
        {"city": city, "country": np.where(city == "Rome", "Italy", "Norway"), "sick": sick, "pay": pay}
    ).assign(again=pay)
    columns = {
        "city": Categorical(["Oslo", "Bergen", "Rome"], nullable=False),
        "country": Categorical(["Italy", "Norway"], nullable=False),
        "sick": Categorical([False, True], nullable=False),
        "pay": Numerical(0, 9, integer=True, nullable=False),
        "again": Numerical(0, 9, integer=True, nullable=False),
    }
    country = {"Oslo": "Norway", "Bergen": "Norway", "Rome": "Italy"}
    rules = [Determined("country", "city", country), Equal("pay", "again")]
    accuracy = PrivSyn(3.0, 1e-9, Schema(columns, constraints=rules), seed=0).fit(table).accuracy_
    pairs = {
        "country == 'Italy'": "city == 'Rome'",
        "country == 'Italy' and sick": "city == 'Rome' and sick",
        "again >= 5 and country == 'Italy'": "pay >= 5 and city == 'Rome'",
    }
    for computed, counted in pairs.items():
        found, known = accuracy.share(computed), accuracy.share(counted)
        assert found["covered"]
        assert known["covered"]
        assert [*found[["estimate", "low", "high"]]] == pytest.approx(
            [*known[["estimate", "low", "high"]]], abs=0.01
        )
    rate = accuracy.share("sick", "country == 'Italy'")
    assert rate["low"] <= sick[city == "Rome"].mean() <= rate["high"]
    mean = accuracy.mean("again", "country == 'Italy'")
    assert mean["covered"]
    assert mean["low"] <= pay[city == "Rome"].mean() <= mean["high"]


def test_a_gap_and_a_sum_are_answered_by_the_columns_that_were_counted():
    rng = np.random.default_rng(0)
    first, goods = rng.integers(0, 50, 4000), rng.integers(0, 20, 4000)
    table = pd.DataFrame(
        {"first": first, "last": first + rng.poisson(np.where(first > 25, 12, 3)).clip(max=40)}
    )
    table = table.assign(goods=goods, fee=rng.integers(0, 10, 4000) + 5 * (goods > 10))
    table["total"] = table["goods"] + table["fee"]
    bounds = {"first": 50, "last": 90, "goods": 20, "fee": 20, "total": 40}
    columns = {name: Numerical(0, high, integer=True, nullable=False) for name, high in bounds.items()}
    rules = ["first <= last", "total == goods + fee"]
    accuracy = PrivSyn(3.0, 1e-9, Schema(columns, constraints=rules), seed=0).fit(table).accuracy_
    for where in ("last > 40", "first > 20 and last > 40", "total > 15", "total > 15 and goods > 10"):
        found = accuracy.share(where)
        assert found["covered"], where
        assert found["low"] - 0.01 <= len(table.query(where)) / 4000 <= found["high"] + 0.01, where
    mean = accuracy.mean("last", "first > 30")
    assert mean["low"] - 0.1 <= table["last"][first > 30].mean() <= mean["high"] + 0.1
    assert not accuracy.share("last > 40 and total > 15")["covered"]  # four columns


def test_few_persons_with_many_rows_are_in_the_interval():
    """Bounds leave out rows of persons with many rows, whose ward is another: half of their rows are seen."""
    rng = np.random.default_rng(0)
    rows = rng.poisson(np.where(rng.random(3000) < 0.41, 4, 1))
    visits = pd.DataFrame({"person": np.repeat(np.arange(3000), rows)})
    wards = rng.choice(["eyes", "ears"], len(visits))
    visits["ward"] = np.where(np.repeat(rows, rows) > 3, "dialysis", wards)
    visits["days"] = np.where(visits["ward"] == "dialysis", 9, rng.integers(0, 5, len(visits)))
    ward = Categorical(["dialysis", "ears", "eyes"], nullable=False)
    schema = Schema({"ward": ward, "days": Numerical(0, 9, integer=True, nullable=False)})
    for seed in range(3):
        accuracy = PrivSyn(1.0, 1e-9, schema, unit="person", seed=seed).fit(visits).accuracy_
        counts = accuracy.counts("ward").set_index("ward")
        for ward in ("dialysis", "ears", "eyes"):
            found, truth = accuracy.share(f"ward == {ward!r}"), (visits["ward"] == ward).mean()
            assert not found["covered"] or found["low"] <= truth <= found["high"], (seed, ward)
            assert counts.loc[ward, "low"] <= truth * len(visits) * 1.1
            assert truth * len(visits) * 0.9 <= counts.loc[ward, "high"]
        mean, quantiles = accuracy.means.iloc[0], accuracy.quantiles.set_index("share")
        assert mean["low"] <= visits["days"].mean() <= mean["high"]
        assert quantiles.loc[0.5, "low"] <= visits["days"].median() <= quantiles.loc[0.5, "high"]


def test_rows_of_a_child_table_are_answered_by_columns_of_its_parent():
    rng, held = np.random.default_rng(0), []
    patients = pd.DataFrame({"key": range(4000), "old": rng.random(4000) < 0.4})
    number = rng.integers(0, 3, 4000)
    visits = pd.DataFrame({"key": np.repeat(patients["key"].to_numpy(), number)})
    of_old = np.repeat(patients["old"].to_numpy(), number)
    visits["ward"] = np.where(rng.random(len(visits)) < np.where(of_old, 0.8, 0.3), "eyes", "ears")
    visits["days"] = rng.poisson(np.where(of_old, 5, 2)).clip(max=15)
    ward, days = Categorical(["ears", "eyes"]), Numerical(0, 15, integer=True)
    database = Database(
        {
            "patients": Table(Schema({"old": Categorical([False, True])}), key="key"),
            "visits": Table(
                Schema({"ward": ward, "days": days}), parent="patients", link="key", children="0..2"
            ),
        }
    )
    for seed in range(3):
        model = PrivSyn(3.0, 1e-9, database, seed=seed).fit({"patients": patients, "visits": visits})
        rate = model.accuracy_.share("visits: ward == 'eyes'", "patients: old")
        mean = model.accuracy_.mean("visits: days", where="patients: not old")
        for found, truth, width in (
            (rate, (visits["ward"] == "eyes")[of_old].mean(), 0.3),
            (mean, visits["days"][~of_old].mean(), 1.5),
        ):
            assert found["covered"]
            assert found["high"] - found["low"] < width
            held.append(found["low"] <= truth <= found["high"])
    assert sum(held) >= 2  # of 6, fewer in one of 10^6 runs
    with pytest.raises(InputError, match="no condition"):
        model.accuracy_.share("patients: old", "visits: ward == 'eyes'")  # no table above


@pytest.mark.parametrize(
    ("condition", "where", "words"),
    [
        ("x == 0", "z == 1", "no column 'z'"),
        ("x == 0", "y", "no condition"),
        ("x ==", "y == 1", "no condition"),
        ("x == 0", 7, "no condition"),
    ],
)
def test_what_is_no_group_is_refused(accuracies, condition, where, words):
    with pytest.raises(InputError, match=words):
        accuracies[0].share(condition, where)


def test_the_number_of_rows_counts_each_answer_once():
    """Each answer over all rows sums to their number. Counts of a pair were taken twice, for both columns.

    The interval was 0.81 times as wide, and 52 of 60 held.
    """
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 2000)
    rows = pd.DataFrame({"a": first, "b": np.where(rng.random(2000) < 0.8, first, rng.integers(0, 4, 2000))})
    schema = Schema({name: Categorical([0, 1, 2, 3], nullable=False) for name in "ab"})
    release = PrivSyn(1.0, 1e-9, schema, seed=0).fit(rows).release_
    counted = [
        spend for spend in release.ledger_.spends if "counts" in spend.what and "distance" not in spend.what
    ]
    tables = {spend.what: 2 if "every attribute" in spend.what else 1 for spend in counted}
    assert any("look 2" in what for what in tables)
    precision = sum(
        tables[spend.what] / (spend.answers / tables[spend.what] * spend.sigma**2) for spend in counted
    )
    answer = release.ask("number of a >= 0")
    assert (answer.high - answer.low) / 2 == pytest.approx(1.96 * precision**-0.5, rel=0.01)


@pytest.mark.slow
def test_the_count_of_a_value_with_which_rare_ones_are_counted_is_in_its_interval():
    """Before, 55 in 100: the interval was of the sum, and rare values have more noise than their sum."""
    grades = {"B": 3000, "C": 2600, "A": 2400, "D": 1400, "E": 330, "F": 58, "G": 12}
    table = pd.DataFrame({"grade": np.repeat(list(grades), list(grades.values()))})
    table["home"] = np.resize(["rent", "own", "rent"], len(table))
    runs, held, joined = 60, 0, 0
    for seed in range(runs):
        counts = PrivSyn(1.0, 1e-9, seed=seed).fit(table).accuracy_.counts("grade").set_index("grade")
        held += counts.loc["B", "low"] <= grades["B"] <= counts.loc["B", "high"]
        joined += "(other)" not in counts.index
    assert joined > 5
    assert held >= binom.ppf(1e-7, runs, 0.94)
