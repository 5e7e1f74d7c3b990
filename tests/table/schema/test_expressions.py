"""Expressions: each means what a reader expects; nothing in them is run; what no kind keeps is refused."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, time
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from privsyn import (
    Allowed,
    Categorical,
    Datetime,
    Duration,
    Elapsed,
    Equal,
    Forbidden,
    Increasing,
    InputError,
    MissingWhen,
    Numerical,
    PrivSyn,
    Schema,
    Time,
    Total,
)
from privsyn.table.enforcement.repair import rows_that_keep
from privsyn.table.schema.expressions import parse_expression
from privsyn.table.schema.yaml_file import from_plain, parse, to_plain

COLUMNS = {
    "age": Numerical(0, 4, integer=True),
    "pay": Numerical(0.0, 2.0),
    "job": Categorical(["a", "b", "c"]),
    "wed": Categorical([True, False]),
}
VALUES = {
    "age": [None, *range(5)],
    "pay": [None, 0.0, 0.5, 1.0],
    "job": [None, *"abc"],
    "wed": [None, True, False],
}

MEANINGS = [
    (
        "age < 2 implies job is missing",
        lambda age, pay, job, wed: not (age is not None and age < 2) or job is None,
    ),
    ("age < 2 iff job is missing", lambda age, pay, job, wed: age is None or ((age < 2) == (job is None))),
    ("age >= 2", lambda age, pay, job, wed: age is None or age >= 2),
    ("2 > age", lambda age, pay, job, wed: age is None or age < 2),
    ("1 <= age < 4 and job != 'c'", lambda age, pay, job, wed: (age is None or 1 <= age < 4) and job != "c"),
    ("age not in [1, 3]", lambda age, pay, job, wed: age not in (1, 3)),
    ("age < 1.5 or pay > 0.5", lambda age, pay, job, wed: None in (age, pay) or age < 1.5 or pay > 0.5),
    (
        "not (age > 2 and job in ['a', 'b'])",
        lambda age, pay, job, wed: not (age is not None and age > 2 and job in ("a", "b")),
    ),
    (
        "wed == True and job == 'a' implies age >= 3 and pay > 0",
        lambda age, pay, job, wed: (
            not (wed is True and job == "a") or ((age is None or age >= 3) and (pay is None or pay > 0))
        ),
    ),
    (
        "wed == True or job == 'a' implies age == 3",
        lambda age, pay, job, wed: not (wed is True or job == "a") or age in (None, 3),
    ),
    ("job is missing or age is missing", lambda age, pay, job, wed: job is None or age is None),
    ("job is not missing", lambda age, pay, job, wed: job is not None),
    ("age <= 3 and not job == 'b'", lambda age, pay, job, wed: (age is None or age <= 3) and job != "b"),
    ("(age > 1) & ~wed", lambda age, pay, job, wed: (age is None or age > 1) and wed is not True),
    ("wed implies age == 3", lambda age, pay, job, wed: wed is not True or age in (None, 3)),
    ("age > 1 implies age != 3", lambda age, pay, job, wed: age != 3),
]


@pytest.mark.parametrize(("text", "keeps"), MEANINGS, ids=[text for text, _ in MEANINGS])
def test_an_expression_means_the_rows_that_a_reader_expects(text, keeps):
    """A missing cell keeps a comparison; a row must keep all constraints of the expression."""
    rows = list(product(*VALUES.values()))
    numbers = {
        name: np.array([np.nan if row[j] is None else COLUMNS[name].number_of(row[j]) for row in rows])
        for j, name in enumerate(VALUES)
    }
    kept = np.ones(len(rows), np.bool_)
    for constraint in Schema(COLUMNS, constraints=[text]).constraints:
        kept &= rows_that_keep(COLUMNS, constraint, numbers)
    assert kept.tolist() == [keeps(*row) for row in rows]


TIMES = {name: Datetime("2020-01-01", "2020-12-31") for name in ("start", "middle", "end")}
SUMS = {name: Numerical(0, 9, integer=True) for name in ("a", "b")} | {
    "total": Numerical(),
    "the sum": Numerical(),
}


@pytest.mark.parametrize(
    ("text", "constraints"),
    [
        ("end >= start", [Increasing(["start", "end"])]),
        ("start < middle < end", [Increasing(["start", "middle", "end"], strict=True)]),
        ("end >= middle >= start", [Increasing(["start", "middle", "end"])]),
        (
            "start < middle <= end",
            [Increasing(["start", "middle"], strict=True), Increasing(["middle", "end"])],
        ),
        ("total == a + b", [Total("total", ["a", "b"])]),
        ("a + b == total", [Total("total", ["a", "b"])]),
        ("`the sum` == 2 * a - b * 1.5", [Total("the sum", {"a": 2, "b": -1.5})]),
        ("total == a", [Equal("a", "total")]),
        ("a == years(end - start)", [Elapsed("a", "start", "end", unit="years")]),
        ("hours(end - start) == a", [Elapsed("a", "start", "end", unit="hours")]),
        ("0 <= a <= b", [Forbidden({"a": {"high": -1}}), Increasing(["a", "b"])]),
        (
            "day < '2020-03-01' implies a == 0",
            [
                Forbidden({"day": {"high": datetime(2020, 2, 29)}, "a": {"high": -1}}),
                Forbidden({"day": {"high": datetime(2020, 2, 29)}, "a": {"low": 1}}),
            ],
        ),
        ("at >= '08:00' ", [Forbidden({"at": {"high": time(7, 59, 59)}})]),
        ("a > 3 implies day is missing", [MissingWhen("day", {"a": {"low": 4}})]),
    ],
)
def test_an_expression_becomes_the_kinds_there_are(text, constraints):
    columns = {**TIMES, **SUMS, "day": Datetime("2020-01-01", "2020-12-31"), "at": Time()}
    assert parse_expression(text, columns) == constraints


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("size > 1", {2, 4, None}),
        ("size <= 3", {1, 2, None}),
        ("1 < size < 4", {2, None}),
        ("size != 2", {1, 4, None}),
    ],
)
def test_listed_numbers_are_compared_as_numbers(text, kept):
    columns = {"size": Categorical([1, 2, 4])}
    (*constraints,) = Schema(columns, constraints=[text]).constraints
    numbers = {"size": np.array([0.0, 1.0, 2.0, np.nan])}
    found = np.logical_and.reduce([rows_that_keep(columns, each, numbers) for each in constraints])
    assert {value for value, keeps in zip([1, 2, 4, None], found, strict=True) if keeps} == kept


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a != b", "no kind of constraint compares two columns by !="),
        ("a + b <= total", "a column alone"),
        ("total == a + 'x'", "a sum has columns"),
        ("total == a + True", "a sum has columns"),
        ("total == a / 5", "a sum has columns"),
        ("a == weeks(b - total)", "unit 'weeks' is none of years, months, days"),
        ("a == years(b - total - a)", "one side of each comparison is a column alone"),
        ("a == 5 implies a <= b", "not with another"),
        ("job == nurse implies a == 5", "text stands in quotes: job == 'nurse'"),
        ("job > 'a'", "needs numbers or dates"),
        ("job == 'd'", "not one of its values"),
        ("open == 'd'", "needs the list of values"),
        ("a < 'x'", "not a number"),
        ("nobody == 5", "no column 'nobody'"),
        ("job == a", "same kind"),
        ("job is None", "'missing' or 'not missing'"),
        ("job is missing", "missing in every row"),
        ("a <= 9 or a > 9", "true of every row"),
        ("a ==", "cannot be read"),
        ("a == 1 implies b == 1 implies b == 2", "cannot be read"),
        ("a", "no comparison"),
        ("a in []", "a list of values"),
        ("a < 1e999", "a value is a number"),
        ("__import__('os').getcwd() == 'x'", "a column alone"),
        ("a.real == 1", "it names a table"),
        ("[x for x in a] == 1", "a column alone"),
        ("a == 10 ** 10 ** 10", "a value is a number"),
        ("(lambda: a)() < 1", "a column alone"),
        ("a == " + "-" * 990 + "b", "nested too deeply"),
        ("a == 1 " + " " * 1000, "at most 1000 characters"),
        (" and ".join(f"(a < {k} or b < {k})" for k in range(9)) + " implies job == 'a'", "more than 100"),
    ],
)
def test_what_no_kind_keeps_is_refused_in_one_line(text, words):
    columns = {**SUMS, "job": Categorical(["a", "b"]), "open": Categorical()}
    with refuses() as refused:
        Schema(columns, constraints=["a <= b", text])
    assert str(refused.value).startswith("constraint 2: ")
    assert words in str(refused.value)


PIECES = [*"ab 1<=>!'()[],.*-+\"`#\n", " implies ", " or ", " not ", " is missing", "a < 3", "b in [1]"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_no_text_raises_another_error(text):
    with suppress(InputError):
        Schema({"a": Numerical(0, 9), "b": Numerical(0, 9)}, constraints=[text])


ENDS = {
    "day": (Datetime("2024-01-01", "2024-12-31"), "2024-07-01"),
    "moment": (Datetime("2024-01-01 00:00", "2024-12-31 12:00"), "2024-07-01 00:00:01"),
    "time": (Time("00:00", "23:59"), "08:30"),
    "length": (Duration("0s", "9h"), "1h"),
    "number": (Numerical(0.0, 9.0), "3.5"),
}


@pytest.mark.parametrize("form", ["x {} {} implies job == 'b'", "job == 'a' iff x {} {}", "{1} {0} x"])
@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("kind", ENDS)
def test_a_rule_with_an_end_comes_back_from_a_file_as_it_was(kind, sign, form):
    """An end that was computed was a date and not text, and `privsyn synth` refused the schema."""
    column, end = ENDS[kind]
    rule = form.format(sign, end if kind == "number" else repr(end))
    schema = Schema({"x": column, "job": COLUMNS["job"]}, constraints=[rule])
    again = from_plain(json.loads(json.dumps(to_plain(schema))))
    assert again == schema
    assert [each.rules(schema.coded) for each in schema.constraints]


def test_expressions_hold_in_every_synthetic_row_and_are_written_as_constraints():
    rng = np.random.default_rng(0)
    age = rng.integers(0, 80, 2000)
    room, extras = rng.integers(0, 90, 2000), rng.integers(0, 30, 2000)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 2000), "D")
    rows = pd.DataFrame(
        {
            "age": age,
            "job": np.where(age < 15, None, rng.choice(["baker", "cook"], 2000)),
            "start": start,
            "end": start + pd.to_timedelta(rng.integers(0, 20, 2000), "D"),
            "room": room,
            "extras": extras,
            "total": room + extras,
        }
    )
    schema = from_plain(
        parse(
            """
columns:
  age: {kind: numerical, low: 0, high: 80, integer: true, nullable: false}
  job: {kind: categorical, values: [baker, cook]}
  start: {kind: datetime, low: 2024-01-01, high: 2024-12-31, nullable: false}
  end: {kind: datetime, low: 2024-01-01, high: 2025-01-31, nullable: false}
  room: {kind: numerical, low: 0, high: 90, nullable: false}
  extras: {kind: numerical, low: 0, high: 30, nullable: false}
  total: {kind: numerical}
constraints:
  - end >= start
  - total == room + extras
  - age < 15 iff job is missing
  - job == 'cook' implies age >= 18
"""
        )
    )
    assert from_plain(to_plain(schema)) == schema
    assert {entry["kind"] for entry in to_plain(schema)["constraints"]} == {
        "increasing",
        "total",
        "missing",
        "forbidden",
    }
    made = PrivSyn(epsilon=2.0, delta=1e-6, schema=schema, seed=0).fit(rows).sample(1000, seed=0)
    assert (made["end"] >= made["start"]).all()
    assert (made["total"] == made["room"] + made["extras"]).all()
    assert ((made["age"] < 15) == made["job"].isna()).all()
    assert (made.loc[made["job"] == "cook", "age"] >= 18).all()


def test_a_python_function_states_a_constraint_on_a_small_domain():
    listed = Allowed.where({"age": range(5), "job": ["a", "b"]}, lambda age, job: job == "a" or age > 2)
    assert ((1, "b") in listed.rows, (3, "b") in listed.rows, len(listed.rows)) == (False, True, 7)
    with pytest.raises(InputError, match=r"1,000,000 combinations: at most 10,000"):
        Allowed.where({"a": range(1000), "b": range(1000)}, lambda a, b: a < b)
