"""The first line of a CSV is public only as names: what looks like a row is refused, and never quoted."""

from __future__ import annotations

import gzip
import io
import json
from codecs import BOM_UTF8
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from command import Outcome, fill, run

from privsyn import Categorical, InputError, Numerical, Schema, Text, plan, read_schema
from privsyn.files import UnpackedLimit
from privsyn.table.io import csv_table
from privsyn.table.io.csv_table import read_header
from privsyn.table.io.formats import Location
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.kinds.csv_format import CsvFormat

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


LIKE_A_ROW = "its first line looks like a row"


@pytest.mark.parametrize(
    ("command", "line", "words"),
    [
        *((command, ROW, LIKE_A_ROW) for command in COMMANDS),
        (COMMANDS[0], "a,-1.5e3", LIKE_A_ROW),
        (COMMANDS[0], "39,2001,2002,2003,2004", LIKE_A_ROW),
        (COMMANDS[0], "State,2001,2002,2003,2004,ill", LIKE_A_ROW),
        (COMMANDS[0], "a,b, ", "leaves a column without a name"),
        (COMMANDS[0], "39;State-gov;Male", 'csv: {delimiter: ";"}'),
        (COMMANDS[0], "age|sex", 'csv: {delimiter: "|"}'),
        (COMMANDS[0], "age\tsex", r'csv: {delimiter: "\t"}'),
    ],
)
def test_a_row_in_place_of_the_header_is_refused_and_not_quoted(command, line, words, folder, capsys):
    Path("bare.csv").write_text(f"{line}\n{line}\n")
    message = refused(run(capsys, *map(str, command)))
    assert words in message
    assert not any(cell in message for cell in ("39", "State", "Bachelors", "1.5e3"))
    assert {path.name for path in folder.iterdir()} == {"bare.csv"}


def test_years_are_names_where_the_owner_says_that_the_first_line_has_the_names(folder, capsys):
    """Nobody else can tell: a name beside four years may be somebody's row."""
    rows = "".join(f"{state},{n % 3},{n % 5}\n" for n in range(300) for state in ("A", "B"))
    Path("wide.csv").write_text(f"state,2001,2002\n{rows}")
    message = refused(run(capsys, "synth", "wide.csv", "out.csv", "--epsilon", 1))
    assert "if these are names, such as years, give --header, or csv: {header: true} in a schema" in message
    assert run(capsys, "schema", "wide.csv", "-o", "s.yaml", "--header").code == 0
    assert "header: true" in Path("s.yaml").read_text()
    for options in (("--header",), ("--schema", "s.yaml")):
        assert run(capsys, "plan", "wide.csv", "--epsilon", 1, *options).code == 0
        command = ("synth", "wide.csv", "out.csv", "--epsilon", 1, "--seed", 1, "--force", *options)
        assert run(capsys, *command, "--ledger", "l.json").code == 0
        assert csv_table.NAMED in json.loads(Path("l.json").read_text())["public_inputs"]
        assert list(pd.read_csv("out.csv")) == ["state", "2001", "2002"]
        assert run(capsys, "evaluate", "wide.csv", "out.csv", *options).code == 0
    Path("bare.csv").write_text("Ann,2001,2001\nBob,2001,2002\n")
    message = refused(run(capsys, "synth", "bare.csv", "new.csv", "--epsilon", 1))
    assert LIKE_A_ROW in message  # not that two columns have the same name
    Path("bare.csv").write_text("Ann,no,no\nBob,no,yes\n")
    message = refused(run(capsys, "synth", "bare.csv", "new.csv", "--epsilon", 1))
    assert "columns 2 and 3 have the same name: rename one, or add a header if the first line" in message


def test_a_workbook_with_years_for_names_says_so_in_its_ledger(folder, capsys):
    """Before, the ledger of a workbook did not say what --header had declared public."""
    pytest.importorskip("openpyxl")
    wide = pd.DataFrame({"state": ["A", "B"] * 100, 2001: [*range(4)] * 50})
    wide.to_excel("wide.xlsx", index=False)
    command = ("synth", "wide.xlsx", "out.csv", "--epsilon", 1, "--seed", 1)
    assert LIKE_A_ROW in refused(run(capsys, *command))
    assert run(capsys, *command, "--header", "--ledger", "l.json").code == 0
    assert csv_table.NAMED in json.loads(Path("l.json").read_text())["public_inputs"]


@pytest.mark.parametrize("command", COMMANDS[:2], ids=lambda command: command[0])
def test_a_row_is_not_quoted_where_a_schema_names_other_columns(command, folder, capsys):
    fill(folder)
    Path("bare.csv").write_text(f"{ROW}\n{ROW}\n")
    assert "looks like a row" in refused(run(capsys, *map(str, command), "--schema", "schema.yaml"))


def test_names_that_are_numbers_are_names_where_a_schema_or_a_unit_says_so(folder):
    Path("years.csv").write_text("2019,2020\n1,2\n")
    schema = Schema({"2019": Numerical(0, 9), "2020": Numerical(0, 9)})
    assert list(read_in_memory("years.csv", schema).frame) == ["2019", "2020"]
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
    assert read_in_memory("table.csv", read_schema("schema.yaml")).frame.shape == (1, 2)


def test_one_column_with_a_strange_name_is_one_where_the_schema_names_it(folder):
    Path("table.csv").write_text("yes|no\nyes\n")
    schema = Schema({"yes|no": Categorical(["yes", "no"])})
    assert list(read_in_memory("table.csv", schema).frame) == ["yes|no"]
    with pytest.raises(InputError, match="looks like it is separated by"):
        read_in_memory("table.csv", Schema({"yes": Categorical()}, csv=CsvFormat()))


def test_a_data_frame_has_names_whatever_they_are():
    frame = pd.DataFrame({"2019": [1], "": [2]})
    assert list(read_in_memory(frame).frame) == ["2019", ""]


# --- no byte after the header is read where no row is ------------------------------------------------------

UNREAD = (
    ("plan", "t.csv", "--epsilon", 1),
    ("plan", "t.csv", "--epsilon", 1, "--schema", "schema.yaml"),
    ("schema", "t.csv", "--from-dtypes"),
)
HEADER = b"age,job,pay,start\n"
POISON = {
    "nothing": b"",
    "not UTF-8": b"39,\xff\xfe,1,2\n",
    "a quote left open": b'39,"clerk,1,2\n',
    "a row that is too short": b"39\n",
    "no text at all": bytes(range(256)) * 40,
    "ends of lines of every kind": b"\r\n\n\r39,clerk,1,2\r",
}


class Sealed(io.FileIO):
    """A file of which no byte can be read but the first ones."""

    first = 0

    def read(self, size: int = -1) -> bytes:
        assert 0 <= size <= self.first - self.tell(), "reads beyond the header"
        return super().read(size)

    def readinto(self, buffer: object) -> int:
        raise AssertionError("reads ahead, into a buffer")


def seal(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """Let no table be read beyond its first bytes."""
    plainly = Path.open

    def opened(path: Path, mode: str = "r", *options: object, **more: object) -> IO[Any]:
        if not path.name.startswith("t.csv"):
            return plainly(path, mode, *options, **more)
        file = Sealed(path)
        file.first = first
        return file if more.get("buffering") == 0 else io.BufferedReader(file)

    monkeypatch.setattr(Path, "open", opened)


@pytest.mark.slow
@pytest.mark.parametrize("poison", POISON.values(), ids=POISON)
@pytest.mark.parametrize("command", UNREAD, ids=["plan", "plan with a schema", "schema"])
def test_no_byte_after_the_header_of_a_csv_is_read(command, poison, folder, capsys, monkeypatch):
    fill(folder)
    Path("t.csv").write_bytes(HEADER)
    alone = run(capsys, *command)
    assert alone.code == 0
    Path("t.csv").write_bytes(HEADER + poison)
    seal(monkeypatch, len(HEADER))
    assert run(capsys, *command) == alone


@pytest.mark.parametrize("command", [(*command[:1], "t.csv.gz", *command[2:]) for command in UNREAD])
def test_no_more_of_a_packed_csv_is_read_than_its_header_needs(command, folder, capsys, monkeypatch):
    fill(folder)
    rows = np.random.default_rng(0).bytes(20_000)
    Path("t.csv.gz").write_bytes(gzip.compress(HEADER, mtime=0))
    alone = run(capsys, *command)
    assert alone.code == 0
    packed = gzip.compress(HEADER + rows, mtime=0)
    Path("t.csv.gz").write_bytes(packed[:400] + b"\0" * 30_000)
    seal(monkeypatch, 400)
    assert run(capsys, *command) == alone


def test_of_a_parquet_file_only_the_footer_is_decoded(folder, capsys):
    fill(folder)
    table = pd.DataFrame({"age": [17] * 90, "job": pd.Categorical(["baker"] * 90), "pay": 1.5, "start": "x"})
    table.to_parquet("t.parquet")
    whole = Path("t.parquet").read_bytes()
    pages = pq.read_metadata("t.parquet").serialized_size + 8
    for options in (("plan", "t.parquet", "--epsilon", 1), ("schema", "t.parquet", "--from-dtypes")):
        Path("t.parquet").write_bytes(whole)
        read = run(capsys, *options)
        Path("t.parquet").write_bytes(whole[:4] + b"\xff" * (len(whole) - pages - 4) + whole[-pages:])
        assert run(capsys, *options) == read
        assert read.code == 0


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_the_header_is_the_first_line_that_is_not_blank(name, folder):
    names = ["age", 'a "b", c', "é"]
    for before in (b"", b"\n\r\n", BOM_UTF8, BOM_UTF8 + b"\r\n"):
        for ending in (b"\n", b"\r\n", b"\r", b""):
            parts = [b"", before, 'age,"a ""b"", c",é'.encode(), ending, b"1,2,3" * bool(ending)]
            # A gzip file may consist of several, joined.
            Path(name).write_bytes(b"".join(map(gzip.compress, parts) if name.endswith("gz") else parts))
            assert read_header(Location.of(name), CsvFormat()) == names
            assert read_in_memory(name, Schema(dict.fromkeys(names, Text()))).frame.shape == (bool(ending), 3)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "is empty: its first line"),
        ("t.csv", b"\n\r\n", "is empty: its first line"),
        ("t.csv", b'a,"b\nc",d\n', "its header does not end with its line"),
        ("t.csv", b"a,\xff\n1,2\n", "not text in UTF-8: use --encoding"),
        ("t.csv", "a,b\n1,2\n".encode("utf-16-le"), "its header has a NUL byte"),
        ("t.csv", b"GIF8\0\0\n1,2\n", "its header has a NUL byte"),
        ("t.csv", b"a" * 101, "its first line is longer than 1 MB"),
        ("t.csv.gz", b"", "is empty: its first line"),
        ("t.csv.gz", b"age,job\n", "cannot be read as CSV"),
        ("t.csv.gz", gzip.compress(b"age,job\n", mtime=0)[:15], "cannot be read as CSV"),
    ],
)
def test_a_header_that_cannot_be_read_is_one_line(name, content, words, folder, capsys, monkeypatch):
    monkeypatch.setattr(csv_table, "LONGEST_LINE", 100)
    Path(name).write_bytes(content)
    for command in (("plan", name, "--epsilon", 1), ("schema", name, "--from-dtypes")):
        assert words in refused(run(capsys, *command))


@pytest.mark.slow
def test_a_compressed_csv_without_end_is_refused_when_it_is_too_long(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"a,b\n" + b"1,2\n" * 30_000_000)
    monkeypatch.setattr(csv_table, "LIMIT", UnpackedLimit(2**22, 200))
    with pytest.raises(InputError, match=r"t\.csv\.gz: unpacks to more than "):
        read_in_batches(path)
