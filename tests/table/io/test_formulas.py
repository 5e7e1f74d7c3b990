"""Text that a spreadsheet would run as a formula is written with an apostrophe where that is asked for."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
from command import run
from hypothesis import given
from hypothesis import strategies as st

from privsyn import Categorical, CsvFormat, Datetime, InputError, Numerical, PrivSyn, Schema
from privsyn.table.io.formulas import BEGINNINGS, with_formulas, without_formulas
from privsyn.table.io.write import write_table

FORMULAS = [f"{begin}cmd|' /C calc'!A0" for begin in BEGINNINGS]
HARMLESS = ["a=1", "'s-Gravenhage", "", " =1", "7", "#", "ü"]
SCHEMA = Schema(
    {
        "=note": Categorical([*FORMULAS, *HARMLESS], nullable=False),
        "gain": Numerical(-9.5, -1.5, decimals=1),
        "day": Datetime("2020-01-01", "2020-12-31", format="=%d.%m.%Y"),
    },
    csv=CsvFormat(delimiter=";", point=","),
)
TABLE = pd.DataFrame(
    {
        "=note": [*FORMULAS, *HARMLESS] * 40,
        "gain": [-1.5, -9.5] * 360,
        "day": pd.to_datetime(["2020-01-31", "2020-12-01"] * 360),
    }
)


def cells_of(path):
    """The header and the columns of a CSV, as text."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file, delimiter=";")
    return header, [list(column) for column in zip(*rows, strict=True)]


@pytest.fixture(scope="module")
def model():
    return PrivSyn.paper(50.0, 1e-9, SCHEMA, seed=1).fit(TABLE)


def test_no_cell_of_text_begins_a_formula_and_no_name_does(model, tmp_path):
    model.sample_to(tmp_path / "t.csv", 1000, seed=2, excel_safe=True)
    header, (notes, gains, days) = cells_of(tmp_path / "t.csv")
    assert header == ["'=note", "gain", "day"]
    assert not any(cell.startswith(BEGINNINGS) for cell in (*notes, *days))
    assert set(notes) == {f"'{text}" for text in FORMULAS} | set(HARMLESS)
    assert all(cell.startswith("-") for cell in gains if cell)
    assert all(cell.startswith("'=") for cell in days if cell)


def test_without_the_option_nothing_is_changed(model, tmp_path):
    model.sample_to(tmp_path / "t.csv", 1000, seed=2)
    model.sample_to(tmp_path / "safe.csv", 1000, seed=2, excel_safe=True)
    (header, columns), (_, safe) = cells_of(tmp_path / "t.csv"), cells_of(tmp_path / "safe.csv")
    assert header == list(SCHEMA.columns)
    assert set(columns[0]) == {*FORMULAS, *HARMLESS}
    for plain, escaped in zip(columns, safe, strict=True):
        assert all(cell in (text, f"'{text}") for text, cell in zip(plain, escaped, strict=True))


@given(st.lists(st.text(st.sampled_from("'=+-@\t\r\na1 ＝"), max_size=4), unique=True))
def test_texts_stay_apart(texts):
    """So do names, of which none is lost."""
    escaped = without_formulas(pd.DataFrame([texts], columns=texts, dtype=object))
    assert len(set(escaped.columns)) == len(escaped.columns) == len(texts)
    assert not any(name.startswith(BEGINNINGS) for name in escaped.columns)
    assert escaped.to_numpy().ravel().tolist() == escaped.columns.tolist()


@pytest.mark.parametrize(
    "made",
    [
        lambda table: table.astype({"a": "category"}),
        lambda table: table.astype({"a": "string[python]"}),
        lambda table: table.astype(object),
        pl.from_pandas,
        lambda table: pl.from_pandas(table).with_columns(pl.col("a").cast(pl.Categorical)),
        lambda table: pl.from_pandas(table).to_arrow(),
    ],
)
def test_it_is_so_in_whatever_type_the_text_is(made, tmp_path):
    table = pd.DataFrame({"a": ["=1", None, "b"], "n": [-1, 2, -3]})
    assert write_table(made(table), tmp_path / "t.csv", excel_safe=True) == (3, 2)
    assert (tmp_path / "t.csv").read_text() == "a,n\n'=1,-1\n,2\nb,-3\n"


def test_what_is_no_csv_is_refused_before_anything_is_drawn(model, tmp_path):
    with pytest.raises(InputError, match=r"t\.parquet: only a CSV can be made safe for spreadsheets"):
        model.sample_to(tmp_path / "t.parquet", 5, excel_safe=True)
    assert not list(tmp_path.iterdir())


def test_the_commands_take_the_option(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    TABLE[["=note"]].to_csv("data.csv", index=False)
    synth = ("synth", "data.csv", "out.csv", "--epsilon", 50, "--model", "m.privsyn", "--excel-safe")
    assert run(capsys, *synth).code == 0
    assert run(capsys, "sample", "m.privsyn", "more.csv", "--excel-safe", "--rows", 500).code == 0
    for path in ("out.csv", "more.csv"):
        header, (notes,) = cells_of(path)
        assert header == ["'=note"]
        assert any(note.startswith("'=") for note in notes)
        assert not any(note.startswith(BEGINNINGS) for note in notes)
    left = set(tmp_path.iterdir())
    for refused in (
        run(capsys, "synth", "data.csv", "o.parquet", "--epsilon", 50, "--excel-safe"),
        run(capsys, "sample", "m.privsyn", "o.parquet", "--excel-safe"),
    ):
        assert (refused.code, refused.err) == (
            2,
            "privsyn: o.parquet: only a CSV can be made safe for spreadsheets: choose .csv or .csv.gz\n",
        )
    assert set(tmp_path.iterdir()) == left


@given(st.lists(st.text(st.sampled_from("'=+-@\t\r\na1 ＝"), max_size=4), min_size=1, unique=True))
def test_what_was_made_safe_is_read_back_as_it_was(texts):
    frame = pd.DataFrame([texts], columns=texts, dtype=object)
    back = with_formulas(without_formulas(frame))
    assert back.columns.tolist() == texts
    assert back.to_numpy().ravel().tolist() == texts
