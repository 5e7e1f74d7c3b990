"""Conditions: text means what pandas' query means, on rows with and without missing cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privsyn import Categorical, Datetime, Numerical
from privsyn.errors import InputError
from privsyn.table.schema.condition import Condition

COLUMNS = {
    "age": Numerical(0, 5, integer=True),
    "my pay": Numerical(0.0, 2.0),
    "job": Categorical(["a", "b", "c"]),
    "wed": Categorical([True, False]),
    "day": Datetime("2020-01-01", "2020-01-05", unit="D"),
}
DTYPES = {"age": "Int64", "my pay": "Float64", "job": "string", "wed": "boolean", "day": "datetime64[s]"}
DAYS = [f"2020-01-0{k}" for k in range(1, 6)]
# To pandas, a missing text or date differs from any value; a missing number neither does nor does not.
VALUES = {
    "age": st.none() | st.integers(0, 5),
    "my pay": st.none() | st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    "job": st.sampled_from("abc"),
    "wed": st.none() | st.booleans(),
    "day": st.sampled_from(DAYS),
}
TABLES = st.lists(st.fixed_dictionaries(VALUES), min_size=1, max_size=8)

ORDER = st.sampled_from(["<", "<=", ">", ">="])  # to pandas' query, no date equals a text
SIGNS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
EQUAL = st.sampled_from(["==", "!="])
AGES = st.integers(-1, 6).map(str)
PAYS = st.sampled_from(["-1", "0", "0.25", "0.5", "3.0"])

COMPARISONS = st.one_of(
    st.tuples(st.just("age"), SIGNS, AGES).map(" ".join),
    st.tuples(st.just("`my pay`"), SIGNS, PAYS).map(" ".join),
    st.tuples(AGES, SIGNS, st.just("age"), SIGNS, AGES).map(" ".join),
    st.tuples(st.just("job"), EQUAL, st.sampled_from("abcx").map(repr)).map(" ".join),
    st.tuples(st.just("wed"), EQUAL, st.booleans().map(str)).map(" ".join),
    st.tuples(st.just("day"), ORDER, st.sampled_from(DAYS).map(repr)).map(" ".join),
    st.lists(st.sampled_from("abcx"), min_size=1, max_size=3).map("job in {}".format),
    st.just("wed"),
)
JOINED = st.sampled_from([") and (", ") or (", ") & (", ") | ("])
TEXTS = st.recursive(
    COMPARISONS,
    lambda some: st.one_of(
        some.map("not ({})".format),
        some.map("~({})".format),
        st.tuples(st.just("("), some, JOINED, some, st.just(")")).map("".join),
    ),
    max_leaves=4,
)


@given(TEXTS, TABLES)
def test_a_condition_holds_where_the_query_of_pandas_does(text, rows):
    """In pandas' nullable dtypes, whose missing cells make a comparison neither true nor false."""
    frame = pd.DataFrame(rows).astype(DTYPES)
    numbers = {
        name: np.array([np.nan if row[name] is None else column.number_of(row[name]) for row in rows])
        for name, column in COLUMNS.items()
    }
    assert Condition.read(text, COLUMNS).holds(numbers).tolist() == frame.eval(text).fillna(False).tolist()


@given(TEXTS, TABLES)
def test_a_row_meets_a_condition_or_its_negation_unless_a_cell_is_missing(text, rows):
    numbers = {
        name: np.array([np.nan if row[name] is None else column.number_of(row[name]) for row in rows])
        for name, column in COLUMNS.items()
    }
    met, not_met = (Condition.read(said, COLUMNS).holds(numbers) for said in (text, f"not ({text})"))
    whole = ~np.isnan(np.array(list(numbers.values()))).any(axis=0)
    assert not (met & not_met).any()
    assert (met | not_met)[whole].all()


def test_missing_cells_are_named_as_such():
    ages = {"age": np.array([1.0, np.nan])}
    assert Condition.read("age is missing", COLUMNS).holds(ages).tolist() == [False, True]
    assert Condition.read("age is not missing", COLUMNS).holds(ages).tolist() == [True, False]


def test_a_date_equals_its_text():
    days = {"day": np.array([COLUMNS["day"].number_of(day) for day in DAYS])}
    found = Condition.read("day == '2020-01-02' or day in ['2020-01-05']", COLUMNS).holds(days)
    assert found.tolist() == [False, True, False, False, True]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("'\\\\" * 20_000, "longer than"),
        (" or ".join(f"age == {i}" for i in range(101)), "more than 100 combinations"),
        (
            f"({' or '.join(['age > 1'] * 90)}) and ({' or '.join(['age < 4'] * 90)})",
            "more than 100 combinations",
        ),
    ],
)
def test_a_text_that_would_take_long_is_refused_first(text, said):
    with pytest.raises(InputError, match=said):
        Condition.read(text, COLUMNS)
