"""The first line of a CSV is public only as names: what looks like a row is refused, and never quoted."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from command import Outcome, fill, run

from privsyn import Categorical, InputError, Numerical, Schema, plan, read_schema
from privsyn.table.io.read import read_table
from privsyn.table.schema.csv_dialect import CsvFormat

ROW = "39,State-gov,77516,Bachelors,Male"
COMMANDS = (
    ("synth", "bare.csv", "out.csv", "--epsilon", 1),
    ("plan", "bare.csv", "--epsilon", 1),
    ("schema", "bare.csv"),
    ("schema", "bare.csv", "--from-dtypes"),
    ("evaluate", "bare.csv", "bare.csv"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(outcome: Outcome) -> str:
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    return outcome.err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("line", "words"),
    [
        (ROW, "its first line looks like a row"),
        ("a,-1.5e3", "its first line looks like a row"),
        ("a,b, ", "leaves a column without a name"),
        ("39;State-gov;Male", 'csv: {delimiter: ";"}'),
        ("age|sex", 'csv: {delimiter: "|"}'),
        ("age\tsex", r'csv: {delimiter: "\t"}'),
    ],
)
def test_a_row_in_place_of_the_header_is_refused_and_not_quoted(command, line, words, folder, capsys):
    Path("bare.csv").write_text(f"{line}\n{line}\n")
    said = refused(run(capsys, *map(str, command)))
    assert words in said
    assert not any(cell in said for cell in ("39", "State", "Bachelors", "1.5e3"))
    assert {path.name for path in folder.iterdir()} == {"bare.csv"}


@pytest.mark.parametrize("command", COMMANDS[:2], ids=lambda command: command[0])
def test_a_row_is_not_quoted_where_a_schema_names_other_columns(command, folder, capsys):
    fill(folder)
    Path("bare.csv").write_text(f"{ROW}\n{ROW}\n")
    assert "looks like a row" in refused(run(capsys, *map(str, command), "--schema", "schema.yaml"))


def test_names_that_are_numbers_are_names_where_a_schema_or_a_unit_says_so(folder):
    Path("years.csv").write_text("2019,2020\n1,2\n")
    schema = Schema({"2019": Numerical(0, 9), "2020": Numerical(0, 9)})
    assert list(read_table("years.csv", schema).frame) == ["2019", "2020"]
    assert plan("years.csv", 1.0, schema=schema, rows=100).sizes.keys() == schema.columns.keys()
    schema = Schema({"2019": Numerical(0, 9)})
    assert plan("years.csv", 1.0, schema=schema, rows=100, unit="2020", rows_per_unit=2).sizes.keys() == {
        "2019"
    }


def test_a_file_of_another_delimiter_is_read_where_the_schema_says_it(folder):
    Path("table.csv").write_text("age;sex\n39;F\n")
    Path("schema.yaml").write_text(
        'csv: {delimiter: ";"}\ncolumns: {age: {kind: categorical}, sex: {kind: categorical}}'
    )
    assert read_table("table.csv", read_schema("schema.yaml")).frame.shape == (1, 2)


def test_one_column_with_a_strange_name_is_one_where_the_schema_names_it(folder):
    Path("table.csv").write_text("yes|no\nyes\n")
    schema = Schema({"yes|no": Categorical(["yes", "no"])})
    assert list(read_table("table.csv", schema).frame) == ["yes|no"]
    with pytest.raises(InputError, match="another delimiter"):
        read_table("table.csv", Schema({"yes": Categorical()}, csv=CsvFormat()))


def test_a_data_frame_has_names_whatever_they_are():
    frame = pd.DataFrame({"2019": [1], "": [2]})
    assert list(read_table(frame).frame) == ["2019", ""]
