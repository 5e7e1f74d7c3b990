"""A draft lists values in the order that people give them, and proposes what nearly all rows keep."""

import numpy as np
import pandas as pd
import pytest
from drafts import draft_text

from privsyn.table.drafting.draft import draft_schema

ROWS = np.random.default_rng(17)
N = 3000

SCALES = [
    ["low", "medium", "high"],
    ["S", "M", "L", "XL"],
    ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"],
    ["A+", "A", "A-", "B+", "B"],
    ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
    ["January", "February", "November"],
    ["Nov 2023", "Jan 2024", "Apr 2024"],
    ["<18", "18-24", "25-34", "65+"],
    ["under 18", "18 to 24", "25 or older"],
    ["(-10, 0]", "(0, 10]", "(10, 20]", "(100, 110]"],
    ["0", "1-4", "5-9", "10+"],
    ["Zone 2", "Zone 9", "Zone 10"],
    ["nie", "selten", "oft"],
]


@pytest.mark.parametrize("values", SCALES, ids=lambda values: values[0])
def test_values_of_a_scale_are_listed_in_its_order(values):
    column = draft_schema(pd.DataFrame({"x": ROWS.choice(values, N)})).columns["x"]
    assert column.values == tuple(values)


def test_other_values_are_sorted():
    column = draft_schema(pd.DataFrame({"x": ROWS.choice(["low", "red", "blue"], N)})).columns["x"]
    assert column.values == ("blue", "low", "red")


def test_the_draft_says_that_values_are_in_their_order():
    text = draft_text(
        pd.DataFrame({"x": ROWS.choice(["low", "high"], N), "y": ROWS.choice(["red", "blue"], N)})
    )
    assert "READ: 2 values, in their order, no cell missing." in text
    assert text.count("in their order") == 1


def test_listed_codes_in_a_row_are_proposed_as_numbers():
    """The codes explain the others, but not in their order, so they are listed."""
    code = ROWS.integers(1, 5, N)
    others = {name: ROWS.normal(np.array([0, 3, 0, 3, 0])[code]) for name in "abc"}
    text = draft_text(pd.DataFrame({"code": code, **others}))
    assert "{kind: numerical, low: 1, high: 4, integer: true}" in " ".join(text.replace("\n  #", "").split())


@pytest.mark.parametrize(
    ("first", "last", "period"),
    [
        ("2012-09-23", "2012-09-23", "month"),
        ("2012-01-05", "2012-06-20", "month"),
        ("2012-01-05", "2012-12-20", "month"),
        ("2012-01-05", "2015-12-20", "half-year"),
        ("2002-03-05", "2015-12-20", "year"),
    ],
)
def test_the_period_of_rounded_bounds_is_said_as_it_is(first, last, period):
    days = pd.date_range(first, last, periods=400).normalize()
    assert f"READ: first and last {period}" in draft_text(pd.DataFrame({"day": days}))


@pytest.mark.parametrize(("odd", "proposed"), [(0, True), (5, True), (200, False)])
def test_classes_of_numbers_are_proposed_though_a_few_rows_break_them(odd, proposed):
    grade = ROWS.normal(70, 12, N).round(2)
    letter = np.select([grade >= 90, grade >= 75, grade >= 60], ["A", "B", "C"], "D")
    letter[:odd] = np.where(letter[:odd] == "A", "D", "A")
    text = draft_text(pd.DataFrame({"grade": grade, "letter": letter}))
    assert ("letter == 'B' iff grade >= 75 and grade < 90" in text) == proposed
    assert (f"{odd} break it" in text) == (odd > 0 and proposed)


def test_years_and_months_in_a_number_are_listed():
    """Bounds would give months from 13 to 99."""
    months = pd.date_range("2021-11-01", periods=20, freq="MS").strftime("%Y%m").astype(int)
    column = draft_schema(pd.DataFrame({"month": ROWS.choice(months, N)})).columns["month"]
    assert column.values == tuple(months)


def test_a_unit_may_be_a_ratio():
    column = draft_schema(pd.DataFrame({"speed": [f"{v} km/h" for v in ROWS.integers(0, 130, N)]})).columns[
        "speed"
    ]
    assert (column.format, column.integer) == ("1234 km/h", True)
