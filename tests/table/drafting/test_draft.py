"""Drafts: what is asked about each column, what is not looked at; files of other programs, JSON Schema."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from datetime import date
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from command import run
from drafts import comments, draft_text
from hypothesis import given
from jsonschema import Draft202012Validator
from strategies import tables

from privsyn import (
    Categorical,
    CsvFormat,
    Datetime,
    Duration,
    Identifier,
    InputError,
    Numerical,
    Schema,
    Text,
    Time,
)
from privsyn.table.drafting.draft import check_schema, draft_schema
from privsyn.table.drafting.review import draft_to_review
from privsyn.table.schema.columns import COLUMNS
from privsyn.table.schema.constraint import CONSTRAINTS
from privsyn.table.schema.yaml_file import from_plain, parse, read_schema, to_plain, to_yaml

VALIDATOR = Draft202012Validator(
    json.loads(
        resources.files("privsyn.table.schema").joinpath("schema.schema.json").read_text(encoding="utf-8")
    )
)

ROWS = pd.DataFrame(
    {
        "customer_id": ["secret 1", "secret 2"] * 50,
        "age": range(100),
        "sex": ["F", "M"] * 50,
        "rooms": [0, 1, 2, 3, 33] * 20,
        "price": [i + 0.25 for i in range(100)],
        "notes": [f"secret {i}" for i in range(100)],
        "day": pd.to_datetime(["2020-01-31", None] * 50),
    }
)


def test_bounds_of_a_short_range_of_whole_numbers_are_exact_and_said_to_be():
    rows = pd.DataFrame({"day": range(1, 32), "week": range(22, 53), "income": range(3, 3100, 100)})
    rows = pd.concat([rows] * 5)
    draft = draft_schema(rows).columns
    assert [(c.low, c.high) for c in draft.values()] == [(1, 31), (22, 52), (0, 3500)]
    notes = comments(draft_text(rows))
    assert [notes[name].split(",")[0] for name in rows] == [*["READ: exact bounds"] * 2, "READ: bounds"]


def alone(numbers, once=()):
    """The draft of numbers that five rows have each, and of others that one row has."""
    return draft_schema(pd.DataFrame({"x": [*numbers] * 5 + [*once]})).columns["x"]


def test_numbers_keep_their_order_unless_they_leave_out_most_of_those_between():
    assert alone([1, 2, 3, 4, 5, 6]) == Numerical(1, 6, integer=True, nullable=False)
    assert alone([1.0, 1.5, 2.5]) == Numerical(1.0, 2.5, integer=False, step=0.5, nullable=False)
    assert alone([1, 2, 8, 9]) == Categorical([1, 2, 8, 9], nullable=False)
    assert alone([0, 7, 0]) == Categorical([0, 7], nullable=False)
    assert alone([1 / 3, 2 / 3, 4 / 3]).values == (1 / 3, 2 / 3, 4 / 3)


def test_no_draft_shows_a_number_of_a_single_row():
    """Bedrooms of houses: a single 33 once made them a list, and was in it."""
    assert alone(range(12), once=[33]) == Numerical(0, 35, integer=True, nullable=False)
    assert alone(range(12), once=[12, 13, 17]) == Numerical(0, 18, integer=True, nullable=False)
    assert alone(range(20, 31), once=[17, 92]) == Numerical(10, 100, integer=True, nullable=False)
    assert alone([1, 2, 8, 9], once=[33]) == Categorical([1, 2, 8, 9])
    assert alone([7], once=[1]) == Categorical(nullable=False)
    assert alone([0] * 2000, once=[1]) == Categorical([0, 1], nullable=False)


def test_no_draft_lists_a_text_of_few_rows_and_says_how_many():
    rows = pd.DataFrame({"job": ["cook", "baker"] * 9 + ["king", "queen"] * 4})
    rows["rank"] = pd.Categorical(rows["job"], ["cook", "king", "none", "queen", "baker"])
    draft = draft_schema(rows).columns
    assert draft["job"] == Categorical(["baker", "cook"])
    assert draft["rank"] == Categorical(["cook", "baker"])  # an unused category too shows who is rare
    assert "READ: RARE, 2 values of fewer than 5 rows left out" in comments(draft_text(rows))["job"]
    assert not re.search("king|queen", draft_text(rows))
    assert check_schema(rows, draft_schema(rows))[0].endswith("8 of 26 cells do not fit: they become missing")


def test_words_that_differ_in_blanks_are_remarked_where_values_are_not_listed_and_rare_ones_not_named():
    words = [f"{letter}{number}" for letter in "abc" for number in range(100)]
    rows = pd.DataFrame({"job": [*np.repeat([*words, "cook "], 20), "a7 ", "king", " King"], "n": 1})
    remark = comments(draft_text(rows))["job"]
    assert "SPELLED IN TWO WAYS, 2 words of few rows. Some differ in blanks alone." in remark
    assert "King" not in draft_text(rows)
    rows.loc[:9, "job"] = "a0 "
    assert "SPELLED IN TWO WAYS, 'a0' and 'a0 ', and 2 more" in comments(draft_text(rows))["job"]
    names = pd.DataFrame({"code": [f"{letter}{number}" for letter in "aA" for number in range(500)]})
    assert "SPELLED" not in draft_text(names)  # codes of rows are no words


def test_constraints_are_proposed_for_the_rows_as_the_draft_reads_them():
    """A rare town is not listed: nothing may look it up."""
    town = ["Oslo", "Bergen", "Rome"] * 30 + ["Nome"]
    rows = pd.DataFrame({"town": town, "land": ["N", "N", "I"] * 30 + ["U"], "same": town})
    text = draft_text(rows)
    assert "- same == town" in text
    assert "mapping: {Bergen: N, Oslo: N, Rome: I}" in " ".join(text.split()).replace("#", "")
    assert "Nome" not in text


def test_bounds_are_rounded_to_the_scale_of_numbers_beside_a_lonely_one():
    """The year of a renovation beside 0 for none; a code 9999 beside amounts."""
    years = [*range(1934, 2016)]
    assert alone([0, *years]) == Numerical(0, 2020, integer=True, nullable=False)
    assert alone([*years, 9999]) == Numerical(1930, 9999, integer=True, nullable=False)
    assert alone([0, *years, 4000]) == Numerical(0, 4000, integer=True, nullable=False)
    assert alone(years, once=[0]) == Numerical(0, 2020, integer=True, nullable=False)
    assert alone(years, once=[7]) == Numerical(0, 2020, integer=True, nullable=False)


def test_missing_cells_make_no_number_a_code():
    """Cells that are missing together once seemed to be what the order of a count does not explain."""
    rng = np.random.default_rng(0)
    size = rng.poisson(1, 2000).clip(0, 6).astype(float)
    cost = size * 10 + rng.normal(0, 40, 2000)
    size[:300], cost[:300] = np.nan, 900 + rng.normal(0, 1, 300)
    rows = pd.DataFrame({"size": size, "cost": cost, "third": cost + 1})
    assert isinstance(draft_schema(rows).columns["size"], Numerical)


def test_numbers_whose_order_says_little_about_other_columns_are_listed():
    """A class of ten in no order, and a grade; both explain the length."""
    rng = np.random.default_rng(0)
    code, grade = rng.integers(0, 10, 500), rng.integers(0, 10, 500)
    length = rng.permutation(10)[code] + grade + rng.normal(size=500)
    frame = pd.DataFrame({"code": code, "grade": grade, "length": length, "alone": rng.integers(0, 10, 500)})
    columns = draft_schema(frame).columns
    assert columns["code"] == Categorical(range(10), nullable=False)
    assert columns["grade"] == columns["alone"] == Numerical(0, 9, integer=True, nullable=False)


def test_texts_that_stand_for_missing_are_asked_about_above_their_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("job,age\nbaker,NA\nNone,7\n")
    lines = draft_text(path).splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("missing:"))
    assert "READ: texts in the file that usually stand for a missing cell." in lines[at - 2]
    assert "texts in the file" not in draft_text(ROWS)


def test_a_draft_of_a_csv_by_types_says_that_it_has_none(tmp_path):
    ROWS.to_csv(tmp_path / "t.csv", index=False)
    assert "A CSV has no types" in draft_text(tmp_path / "t.csv", read=False)
    assert "A CSV has no types" not in draft_text(ROWS, read=False)


def test_each_column_is_asked_about_in_a_line():
    text = draft_text(ROWS)
    assert comments(text) == {
        "customer_id": "NAMED LIKE AN IDENTIFIER: not read, new ones are generated."
        " If it is none, say which kind it is. READ: REPEATED. If a person may have several rows, leave this"
        " line out and add --unit customer_id: it protects persons, not rows.",
        "age": "READ: bounds, all whole, no cell missing. READ: it numbers the rows, and no rule names it."
        " To leave it out, write {kind: text}.",
        "sex": "READ: 2 values, no cell missing.",
        "rooms": "READ: 5 values, no cell missing. Counts or amounts? Then bounds reveal less:"
        " {kind: numerical, low: , high: }.",
        "price": "READ: bounds, all multiples of 0.25, no cell missing.",
        "notes": "READ: no cell missing. Common values are found. Free text? {kind: text} leaves it out."
        " READ: UNIQUE, nearly every row has a text of its own. If it names the row: {kind: identifier}.",
        "day": "READ: first and last month.",
    }
    assert "secret" not in text
    assert max(map(len, text.splitlines())) <= 120


def test_from_dtypes_no_row_is_looked_at(tmp_path):
    """The draft of a table is that of the same table with other rows, or none."""
    other = ROWS.assign(age=7, sex="secret", notes=None).astype({"notes": ROWS["notes"].dtype})
    text = draft_text(ROWS, read=False)
    assert text == draft_text(other, read=False) == draft_text(ROWS.iloc[:0], read=False)
    assert comments(text)["age"] == "low: , high: ?"
    assert from_plain(parse(text)).columns == {
        "customer_id": Identifier(),
        "age": Numerical(),
        "sex": Categorical(),
        "rooms": Numerical(),
        "price": Numerical(),
        "notes": Categorical(),
        "day": Datetime(),
    }
    ROWS.to_csv(tmp_path / "t.csv", index=False)
    assert set(draft_schema(tmp_path / "t.csv", read=False).columns.values()) == {Identifier(), Categorical()}
    table = pa.table(
        {"day": pa.array([date(2020, 1, 1)]), "n": pa.array([1], pa.uint8()), "nil": pa.nulls(1)}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    found = draft_schema(tmp_path / "t.parquet", read=False).columns
    assert found["day"] == Datetime()
    assert found["n"] == Numerical()


def test_a_damaged_parquet_file_is_one_line(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"secret")
    with pytest.raises(InputError, match=r"not a Parquet file, or a damaged one$"):
        draft_schema(tmp_path / "t.parquet", read=False)


def test_a_check_tells_what_is_left_out():
    schema = Schema({"notes": Text(), "n": Numerical(0, 9)})
    lines = check_schema(pd.DataFrame({"notes": ["secret"], "n": [10]}), schema)
    assert lines[0] == "column 'notes': free text, left out of the synthetic table"
    assert lines[1].startswith("column 'n': 1 of 1 cells do not fit")


FULL = Schema(
    {
        "a": Categorical(["x", 2, 3.5, True], other="x", nullable=False, missing=["?"]),
        "b": Numerical(0, 9, decimals=2, bins=5),
        "c": Datetime("2020-01-01", "2020-12-31", format="%d.%m.%Y", objects="date"),
        "d": Time("08:00", "18:00", unit="m", objects="text"),
        "e": Duration("-1 day", "2 days 03:00:00", unit="h", bins=7),
        "f": Identifier("N{:04d}"),
        "g": Text(),
        "h": Time(),
        "i": Identifier(),
        "j": Duration(),
    },
    missing="NA",
    csv=CsvFormat(
        delimiter=";", encoding="cp1252", point=",", thousands="\u00a0", quoting="all", header=True
    ),
)


def test_every_option_is_written_and_read_back():
    assert from_plain(parse(to_yaml(FULL))) == FULL
    assert from_plain(json.loads(json.dumps(to_plain(FULL)))) == FULL


@pytest.mark.parametrize("schema", [FULL, draft_schema(ROWS), draft_schema(ROWS, read=False)])
def test_the_json_schema_accepts_what_is_written(schema):
    VALIDATOR.validate(to_plain(schema))
    VALIDATOR.validate(parse(to_yaml(schema)))


@pytest.mark.parametrize("dtype", [object, "str", "string"])
def test_written_numbers_beside_missing_cells_are_numbers_in_any_dtype(dtype):
    cells = pd.Series([None, "$1,000.00", "$2,000.50", "-$0.01", None], dtype=dtype)
    drafted = draft_schema(pd.DataFrame({"paid": cells})).columns["paid"]
    assert (drafted.format, drafted.nullable) == ("$1,234.50", True)


@given(tables())
def test_the_json_schema_accepts_every_draft(table):
    VALIDATOR.validate(parse(to_yaml(draft_schema(table[1]))))


def test_the_json_schema_lists_every_kind_and_its_settings():
    written = VALIDATOR.schema["$defs"]
    for kind, class_ in COLUMNS.items():
        assert set(written[kind]["properties"]) == {"kind", *(field.name for field in fields(class_))}
    kinds = VALIDATOR.schema["properties"]["columns"]["additionalProperties"]["oneOf"]
    assert kinds == [{"$ref": f"#/$defs/{kind}"} for kind in COLUMNS]
    constraint = VALIDATOR.schema["properties"]["constraints"]["items"]["oneOf"][0]
    assert constraint["properties"]["kind"]["enum"] == list(CONSTRAINTS)


def test_the_json_schema_accepts_the_schemas_of_this_package():
    root = Path(__file__).parents[3]
    paths = [path for folder in ("privsyn", "datasets") for path in (root / folder).glob("*/*.yaml")]
    assert paths
    for path in paths:
        VALIDATOR.validate(parse(path.read_text(encoding="utf-8")))
        read_schema(path)


def one(said):
    return f"columns: {{a: {said}}}"


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        "columns: []",
        "columns: {}",
        "columns: {a: {kind: text}}\nrows: 7",
        "columns: {a: {kind: text}}\nmissing: 7",
        "columns: {a: {kind: text}}\nmissing: [7]",
        "columns: {a: {kind: text}}\ncsv: 7",
        "columns: {a: {kind: text}}\ncsv: {rows: 7}",
        "columns: {a: {kind: text}}\ncsv: {delimiter: ab}",
        "columns: {a: {kind: text}}\ncsv: {encoding: utf-16}",
        "columns: {a: {kind: text}}\ncsv: {point: x}",
        "columns: {a: {kind: text}}\ncsv: {thousands: x}",
        "columns: {a: {kind: text}}\ncsv: {quoting: none}",
        "columns: {a: {kind: text}}\ncsv: {delimiter: [a]}",
        one("7"),
        one("{}"),
        one("{kind: words}"),
        one("{kind: [text]}"),
        one("{kind: text, values: [a]}"),
        one("{kind: categorical, values: []}"),
        one("{kind: categorical, values: a}"),
        one("{kind: categorical, values: [a, a]}"),
        one("{kind: categorical, values: [[a]]}"),
        one("{kind: categorical, values: [null]}"),
        one("{kind: categorical, low: 1}"),
        one("{kind: categorical, nullable: 1}"),
        one("{kind: numerical, low: 1}"),
        one("{kind: numerical, low: a, high: b}"),
        one("{kind: numerical, low: true, high: true}"),
        one("{kind: numerical, decimals: -1}"),
        one("{kind: numerical, decimals: 13}"),
        one("{kind: numerical, decimals: 1.5}"),
        one("{kind: numerical, integer: 1}"),
        one("{kind: numerical, integer: true, decimals: 2}"),
        one("{kind: numerical, bins: 0}"),
        one("{kind: numerical, bins: 9999999}"),
        one("{kind: numerical, objects: text}"),
        one("{kind: datetime, high: 2020-01-01}"),
        one("{kind: datetime, low: 2, high: 3}"),
        one("{kind: datetime, unit: m}"),
        one("{kind: datetime, format: 7}"),
        one("{kind: datetime, objects: time}"),
        one("{kind: time, low: 8}"),
        one("{kind: time, low: '25:00'}"),
        one("{kind: time, unit: D}"),
        one("{kind: time, objects: date}"),
        one("{kind: duration, low: 1 day}"),
        one("{kind: duration, low: 1, high: 2}"),
        one("{kind: duration, unit: week}"),
        one("{kind: identifier, format: N}"),
        one("{kind: identifier, format: 7}"),
        one("{kind: identifier, nullable: true}"),
    ],
)
def test_reader_and_json_schema_refuse_the_same(text):
    plain = parse(text)
    assert not VALIDATOR.is_valid(plain)
    with pytest.raises(InputError):
        from_plain(plain)


@pytest.mark.parametrize(
    "said",
    [
        "{kind: numerical, low: 5, high: 1}",
        "{kind: datetime, low: soon, high: late}",
        "{kind: datetime, format: '%H'}",
        "{kind: duration, low: soon, high: late}",
        "{kind: time, low: '18:00', high: '08:00'}",
        "{kind: categorical, values: [1, 1.0, true]}",
    ],
)
def test_what_is_beyond_a_json_schema_the_reader_refuses(said):
    """How two settings lie to each other, and what a text means."""
    with pytest.raises(InputError):
        from_plain(parse(one(said)))


def test_other_readers_of_yaml_agree_on_drafts():
    assert yaml.safe_load(draft_text(ROWS)) == parse(draft_text(ROWS))


def test_names_and_types_make_a_draft_and_a_draft_needs_a_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ROWS.to_csv("data.csv", index=False)
    drafted = run(capsys, "schema", "data.csv", "--from-dtypes", "-o", "s.yaml")
    assert (drafted.code, drafted.out) == (0, "")
    assert "names and types alone" in drafted.err
    refused = run(capsys, "schema")
    assert (refused.code, "give DATA" in refused.err) == (2, True)


def test_the_example_in_the_reference_is_a_schema():
    page = (Path(__file__).parents[3] / "docs" / "schema.md").read_text(encoding="utf-8")
    plain = parse(page.split("```yaml\n")[1].split("```")[0])
    VALIDATOR.validate(plain)
    assert len(from_plain(plain).columns) == 9


def test_the_reference_names_every_option():
    page = (Path(__file__).parents[3] / "docs" / "schema.md").read_text(encoding="utf-8")
    for kind in (Categorical, Numerical, Datetime, Time, Duration, Identifier, CsvFormat):
        assert all(f"`{option.name}`" in page for option in fields(kind)), kind


def test_dates_that_may_begin_with_day_or_month_are_not_guessed_but_remarked():
    rows = pd.DataFrame({"day": ["01/02/2020", "03/04/2021"] * 40})
    assert isinstance(draft_schema(rows).columns["day"], Categorical)
    remark = comments(draft_text(rows))["day"]
    assert 'Write {kind: datetime, format: "%d/%m/%Y"} or {kind: datetime, format: "%m/%d/%Y"}.' in remark


def test_numbers_too_far_apart_for_bounds_get_none():
    wide = pd.DataFrame({"a": [-1.25e308, 1.25e308, *range(50)]})
    assert isinstance(draft_schema(wide).columns["a"], Categorical)


def test_a_draft_warns_of_bounds_far_beyond_most_numbers():
    rng = np.random.default_rng(0)
    pay = rng.normal(3000.0, 500.0, 2000)
    frame = pd.DataFrame({"pay": pay, "tail": np.append(pay[1:], 1e6), "age": rng.integers(0, 99, 2000)})
    notes = comments(draft_text(frame))
    warned = {name: "WIDE: " in notes[name] for name in frame}
    assert warned == {"pay": False, "tail": True, "age": False}
    assert "WIDE" not in draft_text(frame, read=False)


def test_a_step_that_the_rows_show_is_drafted_and_marked_as_read(tmp_path):
    rows = pd.DataFrame(
        {
            "pay": [10_000 * i for i in range(30, 60)] * 3,
            "grade": [i / 2 for i in range(30)] * 3,
            "whole": [*range(30, 60)] * 3,
            "at": pd.Timestamp("2020-01-31") + pd.to_timedelta(15 * np.arange(90), unit="min"),
            "when": pd.Timestamp("2020-01-31") + pd.to_timedelta(61 * np.arange(90), unit="s"),
        }
    )
    columns = draft_schema(rows).columns
    assert [column.step for column in columns.values()] == [10_000, 0.5, None, "15min", None]
    said = comments(draft_text(rows))
    assert "all multiples of 10,000" in said["pay"]
    assert "all multiples of 15min" in said["at"]
    assert from_plain(parse(draft_text(rows))) == draft_schema(rows)
    assert check_schema(rows, draft_schema(rows))[0] == "every cell fits"


def test_a_draft_lists_none_among_words_and_marks_it_among_numbers(tmp_path):
    path = tmp_path / "survey.csv"
    rows = ["none,none,NA", "some,2,x", "none,3,y", "some,4,x", "many,5,y"]
    path.write_text("\n".join(["alcohol,kids,code", *rows * 6, ""]))
    schema = draft_schema(path)
    assert schema.columns["alcohol"].listed == ("many", "none", "some")
    assert (schema.missing, schema.columns["kids"].missing) == (("NA",), ("none",))
    assert check_schema(path, schema) == ["every cell fits"]


def test_a_column_that_numbers_the_rows_is_in_no_rule():
    """`year - row is constant` took the place of `year - worked is constant`: R writes such a column."""
    rng = np.random.default_rng(0)
    person, year = np.repeat(np.arange(200), 8), np.tile(np.arange(1980, 1988), 200)
    panel = pd.DataFrame(
        {"person": person, "year": year, "worked": year - rng.integers(1960, 1980, 200)[person]}
    )
    panel["region"] = np.array([*"nsew"])[person // 50]
    for rows in (panel, panel.drop(index=range(5, 1600, 7))):
        named = rows.assign(row=rows.index + 1)
        drafts = [draft_to_review(frame, unit="person", order="year") for frame in (rows, named)]
        with_rows, without_rows = ({str(p.plain) for p in draft.proposals} for draft in drafts[::-1])
        assert with_rows == without_rows
        assert "year - worked is constant" in with_rows
        assert not any("row" in str(p.plain) for p in drafts[1].apart)
        assert any(note.startswith("READ: it numbers the rows") for note in drafts[1].notes["row"])


def test_an_amount_that_is_mostly_nothing_and_never_above_another_is_drafted_below_it():
    """Of 97 % of the orders nothing came back: any number of another column would be above it by chance."""
    rng = np.random.default_rng(0)
    amount = rng.gamma(2, 50, 2000).round(2)
    back = np.where(rng.random(2000) < 0.03, (amount * rng.random(2000)).round(2), 0)
    text = draft_text(pd.DataFrame({"amount": amount, "back": back, "other": rng.permutation(amount)}))
    assert "back < amount" in text or "back <= amount" in text
    assert "other" not in text[text.index("constraints:") :]
