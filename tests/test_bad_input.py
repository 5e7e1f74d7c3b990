"""Whatever a user gets wrong ends in one line that says what and where, exit code 2, and no file left behind.

What looks odd but is legal works. Neither ever shows a cell of the private table.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import CANARY, COLUMNS, SCHEMA, fill, run, table

import privsyn
from privsyn.table.io.read_in_memory import read_in_memory

SETTINGS = "--epsilon 1 --schema schema.yaml"
HEADER = ",".join(COLUMNS)
ROW = f"44,{CANARY},1000.5,2019-01-01"


@dataclass(frozen=True)
class Case:
    """A command line, with what it needs in its folder."""

    label: str
    call: str
    names: str = ""  # what the one line must name; legal calls have no such line
    make: Callable[[], object] = lambda: None


def csv(*lines: str, name: str = "bad.csv", encoding: str = "utf-8") -> Callable[[], object]:
    return lambda: Path(name).write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))


def schema(text: str) -> Callable[[], object]:
    return lambda: Path("bad.yaml").write_text(text)


def column(said: str) -> Callable[[], object]:
    """A schema whose column `job` is as said."""
    return schema(SCHEMA.replace("{kind: categorical, values: [baker, clerk, miller]}", said))


def cut(source: str, target: str) -> None:
    """A copy of a file that ends too early."""
    whole = Path(source).read_bytes()
    Path(target).write_bytes(whole[: len(whole) * 2 // 3])


def junk(name: str) -> Callable[[], object]:
    return lambda: Path(name).write_bytes(bytes(range(256)) * 40 + CANARY.encode())


def other_zip() -> None:
    with zipfile.ZipFile("bad.privsyn", "w") as file:
        file.writestr("word/document.xml", "<w/>")


def parquet(name: str, **columns: object) -> Callable[[], object]:
    """A Parquet file that pandas did not write: nothing in it tells pandas' dtypes."""
    return lambda: pq.write_table(pa.table({key: pa.array(cells) for key, cells in columns.items()}), name)


def synth(data: str = "data.csv", out: str = "out.csv", settings: str = SETTINGS) -> str:
    return f"synth {data} {out} {settings}"


WRONG = (
    # The table
    Case("no such file", synth("absent.csv"), "absent.csv"),
    Case("no columns", synth("bad.parquet"), "column", lambda: pd.DataFrame().to_parquet("bad.parquet")),
    Case("a quote left open", synth("bad.csv"), "quote", csv(HEADER, ROW, f'44,"{CANARY},1,2019-01-01', ROW)),
    Case("junk called .csv.gz", synth("bad.csv.gz"), "bad.csv.gz", junk("bad.csv.gz")),
    # The settings
    *(
        Case(f"epsilon {value}", synth(settings=f"--schema schema.yaml --epsilon {value}"), "epsilon")
        for value in ("0", "-1", "nan", "inf", "one")
    ),
    Case("no epsilon", synth(settings="--schema schema.yaml"), "--epsilon"),
    *(Case(f"delta {value}", synth() + f" --delta {value}", "delta") for value in ("1", "-1", "nan", "few")),
    *(Case(f"rows {value}", synth() + f" --rows {value}", "--rows") for value in ("-1", "1.5", "many")),
    *(Case(f"seed {value}", synth() + f" --seed {value}", "--seed") for value in ("-1", "dice")),
    Case("an unknown option", synth() + " --espilon 2", "--espilon"),
    Case("an option without its value", synth() + " --rows", "--rows"),
    Case("an unknown command", "synht data.csv out.csv", "synht"),
    Case("an argument too few", "synth data.csv --epsilon 1", "OUT"),
    Case("an argument too many", synth() + " third.csv", "third.csv"),
    # The outputs
    Case("no such folder", synth(out="absent/out.csv"), "absent"),
    Case("a folder where nothing can be written", synth(out="/proc/out.csv"), "/proc/out.csv"),
    Case("a folder as the output", synth(out="bad.csv"), "bad.csv", lambda: Path("bad.csv").mkdir()),
    # A pipe of our own stands for all devices: a defect must never replace one of the machine's.
    Case("a pipe as the output", synth() + " --ledger pipe", "pipe", lambda: os.mkfifo("pipe")),
    Case("an output of unknown ending", synth(out="out.txt"), "out.txt"),
    Case("the table as its own output", synth(out="./data.csv"), "data.csv"),
    Case("the schema as an output", synth() + " --ledger schema.yaml", "schema.yaml"),
    Case("one file for two outputs", synth() + " --model out.csv", "out.csv"),
    Case("no such folder for the model", synth() + " --model absent/m.privsyn", "--model"),
    Case("no such folder for the ledger", synth() + " --ledger absent/l.json", "--ledger"),
    # The schema
    Case("no such schema", synth(settings="--epsilon 1 --schema absent.yaml"), "absent.yaml"),
    *(
        Case(label, synth(settings="--epsilon 1 --schema bad.yaml"), names, make)
        for label, names, make in (
            ("a schema that is a folder", "bad.yaml", lambda: Path("bad.yaml").mkdir()),
            ("a schema that is not YAML", "bad.yaml", schema("columns: {age: [")),
            ("a schema that is junk", "bad.yaml", junk("bad.yaml")),
            ("a date that is none", "'job'", column("{kind: datetime, low: 2015-02-30, high: 2016-01-01}")),
            (
                "a column that the table lacks",
                "'shoe'",
                schema(SCHEMA + "  shoe: {kind: categorical, values: [a]}\n"),
            ),
            ("a column that the schema lacks", "column 1", schema(SCHEMA.replace("  age", "  # age"))),
        )
    ),
    Case("a draft and a check", "schema data.csv --check schema.yaml -o draft.yaml", "--check"),
    Case("a draft of no such file", "schema absent.csv", "absent.csv"),
    Case("a draft over the table", "schema data.csv -o data.csv", "data.csv"),
    Case(
        "a check of another table's schema",
        "schema data.csv --check bad.yaml",
        "'a'",
        schema("columns: {a: {kind: numerical, low: 0, high: 1}}"),
    ),
    # The model
    Case("no such model", "sample absent.privsyn out.csv", "absent.privsyn"),
    Case(
        "a folder as the model",
        "sample bad.privsyn out.csv",
        "bad.privsyn",
        lambda: Path("bad.privsyn").mkdir(),
    ),
    Case("a table as the model", "sample data.csv out.csv", "data.csv"),
    Case(
        "a model cut short",
        "sample bad.privsyn out.csv",
        "bad.privsyn",
        lambda: cut("m.privsyn", "bad.privsyn"),
    ),
    Case("a zip of something else", "sample bad.privsyn out.csv", "bad.privsyn", other_zip),
    Case("the model as its own output", "sample m.privsyn m.privsyn", "m.privsyn"),
    Case("a sample of -1 rows", "sample m.privsyn out.csv --rows -1", "--rows"),
)

ODD_CSV = (
    ("a header and no row", csv(HEADER, name="odd.csv")),
    ("one row", csv(HEADER, ROW, name="odd.csv")),
    ("a column all missing", csv(HEADER, *["44,,1000.5,2019-01-01"] * 50, name="odd.csv")),
    ("columns in another order", lambda: table()[COLUMNS[::-1]].to_csv("odd.csv", index=False)),
    ("numbers among text", csv(HEADER, *[ROW, f"{CANARY},7,x,y"] * 50, name="odd.csv")),
    ("a cell of 10,000 characters", csv(HEADER, ROW, f"44,{CANARY * 1000},1,", name="odd.csv")),
    ("unicode", csv(HEADER, ROW, "44,Bäcker 🥖,1,2019-01-01", name="odd.csv")),
    ("a byte order mark", csv("\ufeff" + HEADER, ROW, name="odd.csv")),
    ("lines of Windows", csv(HEADER + "\r", ROW + "\r", name="odd.csv")),
    ("infinite cells", csv(HEADER, "inf,clerk,-inf,2019-01-01", "nan,clerk,inf,", name="odd.csv")),
)
ODD_PARQUET = (("columns of nothing", parquet("odd.parquet", **{name: [None, None] for name in COLUMNS})),)
ODD = (
    *(Case(label, synth("odd.csv"), make=make) for label, make in ODD_CSV),
    *(Case(label, synth("odd.parquet"), make=make) for label, make in ODD_PARQUET),
)
LEGAL = (
    *ODD,
    Case("no rows asked for", synth() + " --rows 0"),
    Case("an output that is there", synth() + " --force", make=csv("old", name="out.csv")),
    Case("epsilon of a million", synth() + " --epsilon 1e6 --allow-weak-privacy"),
    Case("epsilon of next to nothing", synth() + " --epsilon 1e-3"),
)


def label(case: Case) -> str:
    return case.label


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    fill(folder)
    settings = privsyn.PrivSyn(1.0, 1e-9, privsyn.table.schema.yaml_file.read_schema(folder / "schema.yaml"))
    settings.fit(folder / "data.csv").save(folder / "m.privsyn")
    return folder / "m.privsyn"


@pytest.fixture
def folder(tmp_path, model, monkeypatch) -> Path:
    fill(tmp_path)
    shutil.copy(model, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes | None]:
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.slow
@pytest.mark.parametrize("case", WRONG, ids=label)
def test_a_mistake_ends_in_one_line_and_leaves_nothing(case, folder, capsys):
    case.make()
    before = contents(folder)
    ended = run(capsys, *case.call.split())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("privsyn: ")
    assert ended.err.count("\n") == 1
    assert case.names in ended.err
    assert CANARY not in ended.err
    assert contents(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize("case", LEGAL, ids=label)
def test_what_is_odd_but_legal_works(case, folder, capsys):
    case.make()
    ended = run(capsys, *case.call.split())
    if ended.code == 1:  # of a few rows there is a model, from which nobody draws by mistake
        assert "out.csv: not written: too little signal" in ended.out
        assert CANARY not in ended.out
        ended = run(capsys, "sample", "out.csv.rescue.privsyn", "out.csv", "--rows", 20)
    assert (ended.code, ended.err) == (0, "")
    assert CANARY not in ended.out
    written = read_in_memory("out.csv").frame
    assert sorted(written.columns) == sorted(COLUMNS)
    assert not written.astype(str).apply(lambda cells: cells.str.contains(CANARY)).any(axis=None)


@pytest.mark.slow
@pytest.mark.parametrize("case", ODD, ids=label)
def test_a_table_that_is_odd_but_legal_can_be_drafted_and_checked(case, folder, capsys):
    case.make()
    data = case.call.split()[1]
    drafted = run(capsys, "schema", data, "-o", "draft.yaml")
    assert (drafted.code, "no rows to draft from" in drafted.err) in ((0, False), (2, True))
    assert (drafted.code == 2) == (case.label == "a header and no row")
    checked = run(capsys, "schema", data, "--check", "schema.yaml")
    assert checked.code == ("no cell of a column fits" in checked.err)  # as where no job is listed


def test_a_misspelt_key_of_a_schema_is_answered_by_the_one_that_was_meant(tmp_path):
    (tmp_path / "s.yaml").write_text("colums: {a: {kind: text}}")
    with pytest.raises(privsyn.InputError, match=r"did you mean 'columns'\?$"):
        privsyn.read_schema(tmp_path / "s.yaml")
    (tmp_path / "s.yaml").write_text("columns:\n  a: {kind: categorical, vaules: [x]}\n")
    with pytest.raises(privsyn.InputError, match=r"'vaules' is not known here.*; did you mean 'values'\?$"):
        privsyn.read_schema(tmp_path / "s.yaml")
