"""Criteria on a slope: what is tested, in exact arithmetic, and how often verdicts are wrong."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from scipy.stats import binom

from privsyn import Categorical, Numerical, PrivSyn, Schema
from privsyn.marginals.domain import Domain
from privsyn.marginals.recoding import Merging
from privsyn.private.acceptance import UNIT, Sums, margins
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import SeededGaussian, SeededLaplace
from privsyn.release.acceptance import judge
from privsyn.release.acceptance.criteria import read_criteria
from privsyn.release.acceptance.judge import SEED, Line
from privsyn.release.acceptance.layout import Summed

SCHEMA = Schema(
    {
        "sex": Categorical(["F", "M"]),
        "rich": Categorical([False, True], nullable=False),
        "age": Numerical(18, 90, integer=True, nullable=False),
        "pay": Numerical(0, 200, integer=True),
    }
)
SURE, RUNS, RISK = 1e-7, 500, 0.05
numbers = st.lists(st.integers(-9, 9), min_size=2, max_size=5, unique=True).map(sorted)
slopes = st.floats(-4, 4).map(lambda slope: round(slope, 3))
errors = st.floats(0.01, 4).map(lambda error: round(error, 3))


def people(rows=3000, seed=0, each=1.0):
    """Pay grows by `each` a year of age; one in ten has no pay."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, rows)
    pay = np.clip(20 + each * age + rng.normal(0, 10, rows), 0, 200).round()
    pay = pd.Series(pay).where(rng.random(rows) > 0.1).astype("Int64")
    sex, rich = rng.choice(["F", "M"], rows), rng.random(rows) < age / 120
    return pd.DataFrame({"sex": sex, "rich": rich, "age": age, "pay": pay})


def fitted(accept, epsilon=500.0, table=None, **settings):
    return PrivSyn(epsilon, 1e-6, SCHEMA, accept=accept, allow_weak_privacy=True, **settings).fit(
        people() if table is None else table
    )


def slope(y, x):
    both = pd.DataFrame({"y": y, "x": x}).dropna().astype(float)
    return np.polyfit(both["x"], both["y"], 1)[0]


def points(numbers):
    return Summed("a", np.array(numbers, float), np.array(numbers, float))


@given(numbers, numbers, slopes, errors, st.data())
def test_a_slope_is_exceeded_exactly_if_it_is_further_away(ys, xs, released, within, data):
    """Against fractions: the slope of any table of points, through any centre."""
    shape = (len(ys), len(xs))
    cells = st.lists(st.integers(0, 5), min_size=len(ys) * len(xs), max_size=len(ys) * len(xs))
    counts = np.array(data.draw(cells)).reshape(shape)
    line = Line(0.25, 1.0, released, 1.0)
    above, below, step = line.units((points(ys), points(xs)), within)
    u = [Fraction(x - 1) for x in xs]
    v = [Fraction(y) - Fraction(1, 4) for y in ys]
    square = sum(int(counts[i, j]) * u[j] ** 2 for i in range(shape[0]) for j in range(shape[1]))
    both = sum(int(counts[i, j]) * u[j] * v[i] for i in range(shape[0]) for j in range(shape[1]))
    domain = Domain(("y", "x"), shape)
    groups = tuple(np.arange(size, dtype=np.int32) for size in shape)
    merging = Merging(domain, domain, groups, tuple(np.ones(size) for size in shape))
    excess = Sums("s", merging, ("y", "x"), above, below).of(counts)
    if not square:
        assert (excess > 0) == (counts.sum() > 0)  # no slope: not met
        return
    error = abs(both / square - Fraction(released))
    if error > Fraction(within) + Fraction(1, 10**12):
        assert excess > 0
    rounded = 3 * int(counts.sum()) * Fraction(step) / square
    if error < Fraction(within) - rounded:
        assert excess <= 0


@given(numbers, numbers, slopes, errors)
def test_no_row_of_a_cell_adds_more_than_its_units(ys, xs, released, within):
    """And some row of each cell adds nearly as much: the worst case is no worse than need be."""
    line = Line(0.3, -0.2, released, 1.0)
    y, x = (Summed("a", np.array(of[:-1], float), np.array(of[1:], float)) for of in (ys, xs))
    above, below, step = line.units((y, x), within)
    inside = np.linspace(0, 1, 41)
    v = (y.lows[:, None] + inside * (y.highs - y.lows)[:, None] - line.y)[:, None, :, None]
    u = (x.lows[:, None] + inside * (x.highs - x.lows)[:, None] - line.x)[None, :, None, :]
    for units, added in (
        (above, u * v - (released + within) * u**2),
        (below, (released - within) * u**2 - u * v),
    ):
        most = added.max(axis=(2, 3)) / step
        assert (units >= most - 1e-6).all()
        widths = (x.highs - x.lows).max() / 40
        near = abs(abs(released) + within) * widths**2 / step + 2  # between two of the places that were tried
        assert (units <= most + near).all()
    assert max(np.abs(above).max(), np.abs(below).max()) <= UNIT + 1


def test_rows_without_a_number_add_nothing():
    y = Summed("y", np.array([0.0, 1.0, np.nan]), np.array([0.0, 1.0, np.nan]))
    for units in Line(0.5, 2.0, 0.1, 1.0).units((y, points([0, 5])), 0.1)[:2]:
        assert (units[2] == 0).all()
        assert (units[:2] != 0).all()


def test_the_estimate_is_the_error_of_the_stated_sample():
    """With hardly any noise: numbers, shares of the slope, conditions as variables, and groups of rows."""
    criteria = [
        {"slope": "pay", "against": "age", "within": 0.2},
        {"slope": "pay", "against": "age", "within": "30%"},
        {"slope": {"rich": True}, "against": "age", "within": 0.01},
        {"slope": "pay", "against": {"sex": "F"}, "within": 9},
        {
            "slope": "pay",
            "against": "age",
            "within": 0.4,
            "where": {"sex": "F", "age": {"low": 30, "high": 60}},
        },
    ]
    real = people()
    model = fitted(criteria, seed=0)
    made = model.sample(seed=SEED)
    verdicts = model.ledger_.acceptance.criteria

    def found(table):
        some = table[(table["sex"] == "F") & table["age"].between(30, 60)]
        return [
            slope(table["pay"], table["age"]),
            slope(table["pay"], table["age"]),
            slope(table["rich"], table["age"]),
            slope(table["pay"], table["sex"] == "F"),
            slope(some["pay"], some["age"]),
        ]

    a, b = np.array(found(real)), np.array(found(made))
    off = np.abs(a - b) / [1, abs(b[1]), 1, 1, 1]
    bounds = np.array([verdict.bound for verdict in verdicts])
    assert [verdict.estimate for verdict in verdicts] / bounds == pytest.approx(off / bounds, abs=0.06)
    assert bounds.tolist() == [0.2, 0.3, 0.01, 9, 0.4]
    assert "slope of pay against age within 30 % of it" in verdicts[1].what
    assert model.ledger_.acceptance.met


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "rho"), [(SeededGaussian, 0.005), (SeededLaplace, 0.1)])
def test_500_verdicts_on_a_slope_are_wrong_as_often_as_stated(noise, rho):
    """A table with a slope just outside what is allowed, and one whose error is safe."""
    model = PrivSyn(5.0, 1e-6, SCHEMA, seed=0).fit(people())
    made, other = model.sample(seed=SEED), people(seed=5, each=1.3)
    both = other.dropna()
    x, y = both["age"].to_numpy(float), both["pay"].to_numpy(float)
    mine = made.dropna()
    u, v = x - float(mine["age"].mean()), y - float(mine["pay"].mean())
    error = abs((u @ v) / (u @ u) - slope(made["pay"], made["age"]))
    codes, source = model.release_.codec.encode(other.astype({"sex": "str"})), noise(3)

    def accepted(within):
        (test,) = judge.tests_of(
            model.release_, read_criteria([{"slope": "pay", "against": "age", "within": within}])
        )
        private = PrivateTable(codes, source)
        answers = [private.excesses([test.excess], rho)[0] for _ in range(RUNS)]
        sure, safe = margins(private.law, answers[0][1], RISK, 1)
        return sum(value <= -sure for value, _ in answers), -(test.synthetic + sure + safe) * test.unit

    wrong, _ = accepted(error * 0.9999)
    assert binom.ppf(SURE, RUNS, RISK / 3) <= wrong <= binom.ppf(1 - SURE, RUNS, RISK)
    right, safe = accepted(error * 4)
    # The safe error holds for a private sum of squares as large as the released one; this is within 5 %.
    assert error < 0.95 * safe
    assert RUNS - right <= binom.ppf(1 - SURE, RUNS, RISK)


def test_a_slope_costs_what_the_largest_row_moves_it():
    model = fitted([{"slope": "pay", "against": "age", "within": 0.5}], epsilon=2.0)
    (spend,) = (spend for spend in model.ledger_.spends if spend.what.startswith("acceptance: "))
    made = model.sample(seed=SEED).dropna()
    b, mx, my = slope(made["pay"], made["age"]), made["age"].mean(), made["pay"].mean()
    u, v = np.array([18, 90]) - mx, np.array([0, 200]) - my
    sides = [np.multiply.outer(v, u) - (b + 0.5) * u**2, (b - 0.5) * u**2 - np.multiply.outer(v, u)]
    step = np.abs(u).max() * (np.abs(v).max() + (b + 0.5) * np.abs(u).max()) / UNIT
    assert spend.sensitivity == pytest.approx(np.abs(sides).max() / step, rel=0.01)


@pytest.mark.parametrize(
    ("criterion", "words"),
    [
        ({"slope": "sex", "against": "age", "within": 1}, "'sex' is no column of numbers: name a value"),
        ({"slope": "pay", "against": "pay", "within": 1}, "slope and against are different columns"),
        ({"slope": "pay", "within": 1}, "'against' is missing"),
        ({"slope": "pay", "against": "age"}, "'within' is missing"),
        ({"slope": "pay", "against": "agee", "within": 1}, r"did you mean 'age'\?"),
        ({"slope": ["pay"], "against": "age", "within": 1}, "slope is one column of numbers, or a condition"),
        (
            {"slope": "pay", "against": {"sex": "F", "rich": True}, "within": 1},
            "against is one column of numbers",
        ),
        ({"slope": "pay", "against": {"sex": "X"}, "within": 1}, "'X' is not one of its values"),
        (
            {"slope": {"rich": True}, "against": "age", "within": 1, "where": {"rich": True}},
            "both in the slope and",
        ),
        ({"slope": "pay", "against": "age", "within": "10"}, 'a number or a share such as "10%"'),
        ({"slope": "pay", "against": "age", "within": "100%"}, "within must be above 0 and below 1"),
        ({"slope": "pay", "against": "age", "within": 0}, "within must be above 0"),
        ({"slope": "pay", "against": "age", "within": 1, "where": 3}, "conditions are a mapping"),
    ],
)
def test_slopes_that_cannot_be_tested_are_refused_before_anything_is_spent(criterion, words):
    with refuses(words):
        fitted([criterion])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("criterion", "table", "problem"),
    [
        ({"slope": "pay", "against": "age", "within": 1e-6}, people(), ""),
        (
            {"slope": "pay", "against": {"sex": "F"}, "within": 1},
            people().assign(sex="M"),
            "the same regressor",
        ),
        (
            {"slope": "pay", "against": {"rich": True}, "within": 1, "where": {"sex": "F"}},
            people().assign(sex="M"),
            "no synthetic row meets its conditions",
        ),
    ],
)
def test_a_slope_that_cannot_be_judged_is_not_met(criterion, table, problem):
    (verdict,) = fitted([criterion], table=table).ledger_.acceptance.criteria
    assert not verdict.met
    assert problem in verdict.problem


def test_numbers_in_cells_too_wide_for_the_error_are_named():
    schema = Schema({name: Numerical(0.0, 1e6, nullable=False) for name in ("a", "b")})
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 1e6, 1000)
    table = pd.DataFrame({"a": a, "b": (a + rng.uniform(0, 1e6, 1000)) / 2})
    model = PrivSyn(
        500.0,
        1e-6,
        schema,
        allow_weak_privacy=True,
        accept=[{"slope": "b", "against": "a", "within": "0.1%"}],
    ).fit(table)
    (verdict,) = model.ledger_.acceptance.criteria
    assert (verdict.met, "in cells too wide for this error" in verdict.problem) == (False, True)
    assert not [spend for spend in model.ledger_.spends if spend.what.startswith("acceptance")]


@pytest.mark.parametrize(
    ("y", "x", "criterion"),
    [
        (1e300, 1e10, {"slope": "y", "against": "x", "within": 1}),
        (1e300, 1e10, {"slope": "y", "against": "x", "within": "10%"}),
        (1e160, 1e160, {"slope": "y", "against": "x", "within": 1e-3}),
        (1e-180, 1e-140, {"slope": "y", "against": "x", "within": 1e-60}),
        (8e307, 1.0, {"mean": "y", "within": 1e307}),
    ],
)
def test_numbers_whose_sums_are_no_doubles_are_not_asked_about(y, x, criterion):
    """Such sums, cast to integers, were -2^63 units for each row, with a stated sensitivity of 1."""
    schema = Schema({"y": Numerical(-y, y, nullable=False), "x": Numerical(0, x, nullable=False)})
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"y": y * rng.uniform(-1, 1, 301), "x": x * rng.random(301)})
    model = PrivSyn(5.0, 1e-6, schema, seed=1, accept=[criterion]).fit(table)
    (verdict,) = model.ledger_.acceptance.criteria
    assert (verdict.met, "are not doubles" in verdict.problem) == (False, True)
    assert not [spend for spend in model.ledger_.spends if spend.what.startswith("acceptance")]


def test_a_yaml_file_has_a_percentage_without_quotes(tmp_path):
    path = tmp_path / "criteria.yaml"
    path.write_text("criteria:\n  - {slope: pay, against: age, within: 10%, where: {sex: F}}\n")
    (read,) = read_criteria(path).criteria
    assert (read.relative, read.bound) == (True, 0.1)
    assert str(read) == "slope of pay against age where sex = F within 10 % of it"


def test_a_refused_slope_leaves_a_verdict_alone():
    """The judgement of another table under hardly any noise: not met, and the estimate is its error."""
    model = PrivSyn(5.0, 1e-6, SCHEMA, seed=0).fit(people())
    codes = model.release_.codec.encode(people(each=1.3).astype({"sex": "str"}))
    spent = model.release_.with_ledger(replace(model.ledger_, charges=()))
    criteria = read_criteria([{"slope": "pay", "against": "age", "within": "10%"}])
    judged = judge.judge(spent, criteria, PrivateTable(codes, SeededGaussian(2)), 0.5)
    (verdict,) = judged.ledger.acceptance.criteria
    assert not verdict.met
    assert verdict.estimate == pytest.approx(0.3, abs=0.1)
