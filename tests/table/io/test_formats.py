"""Workbooks, databases, and files of Stata and SPSS: what goes in comes out with its types and labels."""

import sqlite3
import warnings
from contextlib import closing
from datetime import date, datetime
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Datetime, Duration, Numerical, PrivSyn, Schema, load
from privsyn.cli.main import main
from privsyn.errors import InputError
from privsyn.table.drafting.draft import draft_schema
from privsyn.table.encoding.dtypes import family
from privsyn.table.io.csv_table import walk_text
from privsyn.table.io.formats import FORMATS, Format, Location, file_of, text_of
from privsyn.table.io.identifiers import persons_of
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.read_in_memory import read_columns, read_in_memory
from privsyn.table.io.write import write_blocks, write_table
from privsyn.table.kinds.csv_format import CsvFormat

EVERY = ["t.csv", "t.parquet", "t.xlsx::People", "t.dta", "t.sav", "t.duckdb::people", "t.sqlite::people"]
LABELS = {"sex": {1: "male", 2: "female"}, "health": {1: "good", 2: "bad", 9: "refused"}}


def needs(name):
    """Skip a test of a format whose library is not installed."""
    library = Location.of(name).format.library
    if library and find_spec(library) is None:
        pytest.skip(f"{library} is not installed")


def people(rows=400):
    rng = np.random.default_rng(0)
    hired = pd.Timestamp("2015-03-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D")
    frame = pd.DataFrame(
        {
            "age": pd.array(rng.integers(18, 90, rows), "Int64"),
            "wage": rng.integers(100, 999, rows) / 4,
            "town": rng.choice(["Rome", "Oslo", "=1+1"], rows),
            "hired": hired,
        }
    )
    frame.loc[3, ["age", "wage", "hired"]] = [pd.NA, np.nan, pd.NaT]  # a blank row of a sheet is no row
    frame.loc[5, "town"] = None
    return frame


def labelled(path, rows=400):
    """Write a file with value labels; in that of SPSS the code 9 of `health` is missing."""
    pyreadstat = pytest.importorskip("pyreadstat")
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "sex": pd.array(rng.choice([1, 2], rows), "Int32"),
            "health": pd.array(rng.choice([1, 2, 9], rows), "Int32"),
            "born": [date(1950 + int(year), 5, 17) for year in rng.integers(0, 50, rows)],
        }
    )
    if path.suffix == ".dta":
        pyreadstat.write_dta(frame, path, variable_value_labels=LABELS)
    else:
        pyreadstat.write_sav(frame, path, variable_value_labels=LABELS, missing_ranges={"health": [9]})
    return frame


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_a_table_comes_back_from_every_format_with_its_types_and_cells(tmp_path, name):
    needs(name)
    frame, path = people(), f"{tmp_path}/{name}"
    write_blocks(iter([frame.iloc[:150], frame.iloc[150:]]), path)
    back = read_in_memory(path).frame
    assert list(back) == list(frame)
    assert [family(dtype) for dtype in back.dtypes] == ["integer", "real", "text", "datetime"]
    for column in frame:
        given = frame[column].notna()
        assert back[column].isna().tolist() == (~given).tolist()
        read, known = (cells[given].astype(str).str[:10] for cells in (back[column], frame[column]))
        assert read.tolist() == known.tolist()
    stream = read_in_batches(path)
    assert list(stream.head.dtypes) == list(back.dtypes)
    assert sum(map(len, stream.frames())) == len(frame)
    if name != "t.csv" and Location.of(name).format.typed:
        assert list(read_columns(path).dtypes) == list(back.dtypes)


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_value_labels_are_public_lists_and_go_out_with_the_codes_that_they_had(tmp_path, ending):
    pyreadstat = pytest.importorskip("pyreadstat")
    source, model = tmp_path / f"in{ending}", tmp_path / "model.privsyn"
    labelled(source)
    health = ("good", "bad", "refused") if ending == ".dta" else ("good", "bad")
    draft = draft_schema(source, read=False)
    assert draft.columns["sex"].values == ("male", "female")
    assert draft.columns["health"].values == draft_schema(source).columns["health"].values == health
    fitted = PrivSyn(epsilon=20, seed=1).fit(source)
    assert "that all texts are in the encoding that the file declares" in fitted.ledger_.public_inputs
    assert fitted.ledger_.public_inputs[-1] == (
        "the value labels in the file, which no program may have made from the rows, as lists of values:"
        " 'sex', 'health'"
    )
    fitted.save(model)
    out = tmp_path / f"out{ending}"
    load(model).sample_to(out, 500, seed=1)
    read = pyreadstat.read_dta if ending == ".dta" else pyreadstat.read_sav
    rows, meta = read(out)
    kept = {code: label for code, label in LABELS["health"].items() if label in health}
    assert meta.variable_value_labels == {"sex": LABELS["sex"], "health": kept}
    assert set(rows["health"].dropna()) == set(kept)
    assert isinstance(rows["born"].dropna().iloc[0], date)


def test_a_missing_code_of_spss_is_missing_and_a_code_without_a_label_too(tmp_path):
    frame = labelled(tmp_path / "t.sav")
    read = read_in_memory(tmp_path / "t.sav").frame
    assert (read["health"].isna() == (frame["health"] == 9)).all()
    assert read["health"].cat.categories.tolist() == ["good", "bad"]


def test_no_row_decides_which_labels_are_listed(tmp_path):
    labelled(tmp_path / "few.dta", rows=1)
    labelled(tmp_path / "many.dta")
    few, many = (draft_schema(tmp_path / name, read=False) for name in ("few.dta", "many.dta"))
    assert few == many
    heads = [read_in_batches(tmp_path / name).head.dtypes.tolist() for name in ("few.dta", "many.dta")]
    assert heads[0] == heads[1]


def test_a_number_with_a_few_labels_stays_a_number_unless_the_schema_lists_them(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / "t.dta"
    frame = pd.DataFrame({"score": pd.array([1, 4, 7], "Int32")})
    pyreadstat.write_dta(frame, path, variable_value_labels={"score": {1: "never", 7: "always"}})
    assert read_in_memory(path).frame["score"].tolist() == [1, 4, 7]
    schema = Schema({"score": Categorical(["never", "always"])})
    assert read_in_memory(path, schema).frame["score"].astype(object).fillna("").tolist() == [
        "never",
        "",
        "always",
    ]


def test_text_is_never_a_formula_in_a_workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    write_table(people(), tmp_path / "t.xlsx")
    cells = [cell for row in openpyxl.load_workbook(tmp_path / "t.xlsx").active for cell in row]
    assert any(cell.value == "=1+1" for cell in cells)
    assert "f" not in {cell.data_type for cell in cells}


def test_dates_of_a_sheet_are_read_under_the_format_of_the_schema(tmp_path):
    needs("t.xlsx")
    frame = people()[["hired", "town"]]
    write_table(frame, tmp_path / "t.xlsx")
    schema = Schema({"hired": Datetime(format="%d.%m.%Y"), "town": Categorical()})
    read = read_in_memory(tmp_path / "t.xlsx", schema).frame["hired"]
    assert read.isna().sum() == 1


def test_no_duration_or_time_of_a_sheet_ends_a_run_or_joins_two_persons(tmp_path):
    """A number of 123456789 days ended the run, and times in one second were one identifier."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["worked", "who"])
    for place, hours in enumerate([0.5, 0.25, 123456789.0]):
        book.active.append([hours, datetime(2020, 1, 1, 10, 0, 0, place * 100_000)])
        book.active.cell(place + 2, 1).number_format = "[h]:mm"
    book.save(tmp_path / "t.xlsx")
    schema = Schema({"worked": Duration("0h", "48h")})
    read = read_in_memory(tmp_path / "t.xlsx", schema, unit="who").frame
    assert read["worked"].isna().tolist() == [False, False, True]
    assert read["who"].nunique() == 3


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_no_date_of_a_file_of_labels_gives_a_warning(tmp_path, ending):
    pyreadstat, path = pytest.importorskip("pyreadstat"), tmp_path / f"t{ending}"
    seen = pd.DataFrame({"seen": [21000.0, 21001.0, 1e306]})
    if ending == ".dta":
        pyreadstat.write_dta(seen, path, variable_format={"seen": "%td"})
    else:
        pyreadstat.write_sav(seen, path, variable_format={"seen": "DATE11"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_in_memory(path).frame["seen"].isna().tolist() == [False, False, True]


def test_a_number_of_a_sheet_or_database_is_itself_whatever_the_format_of_texts(tmp_path):
    """The number 1234.5 was read as 12345 EUR, and any date as 1234.5 EUR."""
    cells = [1234.5, "2.500,50 EUR", -7, 10**18, date(2020, 1, 2), 0.25, None]
    schema = Schema({"pay": Numerical(0, 9000, format="1.234,50 EUR"), "row": Numerical(integer=True)})
    for name in ("t.xlsx", "t.sqlite"):
        needs(name)
        if name == "t.xlsx":
            frame = pd.DataFrame({"pay": pd.Series(cells, dtype=object), "row": range(len(cells))})
            write_table(frame, tmp_path / name)
        else:
            with closing(sqlite3.connect(tmp_path / name)) as base, base:
                base.execute("create table t (pay, row integer)")
                texts = [str(cell) if isinstance(cell, date) else cell for cell in cells]
                base.executemany("insert into t values (?, ?)", zip(texts, range(len(cells)), strict=True))
        read = read_in_memory(tmp_path / name, schema).frame["pay"].tolist()
        assert read[:4] + read[5:6] == [1234.5, 2500.5, -7.0, 1e18, 0.25]
        assert np.isnan([read[4], read[6]]).all()


def test_a_query_is_read_and_its_text_is_in_the_ledger(tmp_path):
    for name in ("t.duckdb", "t.sqlite"):
        needs(name)
        write_table(people(), f"{tmp_path}/{name}::people")
        query = "select age, wage / 2 half from people where age > 40 order by age"
        stream = read_in_batches(f"{tmp_path}/{name}::{query}")
        (frame,) = stream.frames()
        assert list(frame) == ["age", "half"]
        assert (frame["age"] > 40).all()
        assert any("select age, wage / 2 half from people" in fact for fact in stream.public_inputs)


def test_a_plan_does_not_run_a_query_so_no_cell_decides_how_it_ends(tmp_path, monkeypatch, capsys):
    """It says that no row was read."""
    needs("t.duckdb")
    monkeypatch.chdir(tmp_path)
    write_table(people(), "t.duckdb::people")
    source = "t.duckdb::select town::int n, age from people order by n"
    assert main(["plan", source, "--epsilon", "1"]) == 0
    assert "no row was read" in capsys.readouterr().out
    assert main(["synth", source, "out.csv", "--epsilon", "1"]) == 2
    assert "the query does not run" in capsys.readouterr().err


def test_of_a_view_the_ledger_says_what_it_says_of_a_query_but_not_its_text(tmp_path):
    """One cell may end its run, and a row of it may come from many rows of the tables that it reads."""
    view = "create view grouped as select max(age) age from people where town <> 'Zachariah' group by town"
    for name in ("t.duckdb", "t.sqlite"):
        needs(name)
        write_table(people(), f"{tmp_path}/{name}::people")
        if name == "t.sqlite":
            with closing(sqlite3.connect(tmp_path / name)) as base, base:
                base.execute(view)
        else:
            with pytest.importorskip("duckdb").connect(str(tmp_path / name)) as base:
                base.execute(view)
        said = read_in_batches(f"{tmp_path}/{name}::grouped").public_inputs
        assert any("that the view 'grouped' runs without an error" in fact for fact in said)
        assert any("a row of its result" in fact for fact in said)
        assert MARK not in str(said)
        assert "result" not in str(read_in_batches(f"{tmp_path}/{name}::people").public_inputs)


def test_a_table_of_a_database_is_replaced_and_the_others_stay(tmp_path):
    for name in ("t.duckdb", "t.sqlite"):
        needs(name)
        for table, rows in (("a", 30), ("b", 20), ("a", 10)):
            write_table(people(rows), f"{tmp_path}/{name}::{table}")
        assert [len(read_in_memory(f"{tmp_path}/{name}::{table}").frame) for table in "ab"] == [10, 20]


MARK = "Zachariah"


def test_no_row_of_a_replaced_table_stays_in_the_file_of_a_database(tmp_path):
    for name in ("t.duckdb", "t.sqlite"):
        needs(name)
        marked = people(500).assign(town=[f"{MARK} {place % 5}" for place in range(500)])
        for table in (marked, people(30)):
            write_table(table, f"{tmp_path}/{name}::a")
        left = [file.name for file in tmp_path.iterdir() if MARK.encode() in file.read_bytes()]
        assert not left
        assert not list(tmp_path.glob("*.compact"))


def test_values_of_an_enum_of_duckdb_are_found_not_read_off_its_type(tmp_path):
    """Such a type is often made from the rows: CREATE TYPE t AS ENUM (SELECT DISTINCT town FROM people)."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as base:
        base.execute(f"CREATE TABLE people (town ENUM ('Oslo', 'Rome', '{MARK}'))")
        base.execute(
            "INSERT INTO people SELECT 'Oslo' FROM range(400) UNION ALL SELECT 'Rome' FROM range(300)"
        )
        base.execute("INSERT INTO people VALUES (?)", [MARK])
    model = PrivSyn(epsilon=5, seed=1).fit(tmp_path / "t.duckdb")
    values = set(model.release_.codec.schema.columns["town"].values)
    assert {"Oslo", "Rome"} <= values
    assert MARK not in values
    model.sample_to(f"{tmp_path}/out.duckdb::people", 20, seed=1)
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as base:
        assert base.sql("FROM people").types[0].id == "enum"
    assert MARK.encode() not in (tmp_path / "out.duckdb").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("t.duckdb::select town::int n from people", "the query does not run"),
        ("t.duckdb::select * from 'other.csv'", "the query does not run"),
        ("t.duckdb::from people; drop table people", "a query must be one SELECT"),
        ("t.duckdb::nobody", "has no table 'nobody', but 'people'"),
        ("t.sqlite::select random() n from people", "the query does not run"),
        ("t.sqlite::select date('now') n from people", "cannot use 'now'"),
        ("t.sqlite::with a as (select 1) delete from people", "the query does not run"),
        ("t.sqlite::nobody", "has no table 'nobody', but 'people'"),
        ("t.xlsx::nobody", "has no sheet 'nobody', but 'Sheet1'"),
        ("bad.xlsx", "not an Excel workbook"),
        ("bad.dta", "not a file of Stata"),
        ("bad.sav", "not a file of SPSS"),
        ("bad.duckdb", "not a DuckDB database"),
        ("bad.sqlite", "not a SQLite database"),
        ("none.sqlite::people", "there is no such file"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_line_without_a_cell(tmp_path, monkeypatch, capsys, source, words):
    needs(source)
    monkeypatch.chdir(tmp_path)
    name = Location.of(source).file.name
    if name.startswith("bad"):
        (tmp_path / name).write_text(f"{MARK}\n" * 200)
    elif name.startswith("t."):
        place = name if name == "t.xlsx" else f"{name}::people"
        write_table(people().assign(town=MARK), place)
    assert main(["synth", source, "out.csv", "--epsilon", "1"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert MARK not in error
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("form", [form for form in FORMATS if form.extra], ids=lambda form: form.name)
def test_a_missing_library_is_one_line_that_names_its_package_and_the_extra(form):
    absent = Format(form.endings, form.name, form.typed, form.module, "no_such_library", form.extra)
    with pytest.raises(InputError, match=rf"pip install no_such_library \(extra \[{form.extra}\]\)"):
        absent.require()


def test_a_table_and_its_synthetic_copy_are_not_in_one_database(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_table(people(), "t.sqlite::people")
    before = (tmp_path / "t.sqlite").read_bytes()
    assert main(["synth", "t.sqlite::people", "t.sqlite::synthetic", "--epsilon", "1"]) == 2
    assert "is an input too" in capsys.readouterr().err
    assert (tmp_path / "t.sqlite").read_bytes() == before
    assert file_of(tmp_path / "t.sqlite::people") == tmp_path / "t.sqlite"


def test_a_file_that_ends_with_db_is_a_sqlite_database(tmp_path, capsys):
    write_table(people(), tmp_path / "t.sqlite")
    (tmp_path / "t.sqlite").rename(tmp_path / "t.db")
    assert len(read_in_memory(tmp_path / "t.db").frame) == len(people())
    (tmp_path / "other.db").write_bytes(b"DUCK" * 2000)
    assert main(["synth", str(tmp_path / "other.db"), str(tmp_path / "o.csv"), "--epsilon", "1"]) == 2
    assert "not a SQLite database" in capsys.readouterr().err


def test_a_cell_of_sqlite_that_its_type_does_not_allow_is_missing_alone(tmp_path):
    base = sqlite3.connect(tmp_path / "t.sqlite")
    base.execute("create table t (age integer, name text)")
    base.executemany("insert into t values (?, ?)", [(1, "a"), ("many", b"\xff"), (3, "c")])
    base.commit()
    base.close()
    frame = read_in_memory(tmp_path / "t.sqlite").frame
    assert family(frame["age"].dtype) == "integer"
    assert frame["age"].isna().tolist() == [False, True, False]


def test_two_large_keys_of_sqlite_stay_two(tmp_path):
    """Numbers of floating point would join them, and two persons with them."""
    large = 2**53
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as base, base:
        base.execute("create table t (who integer, n int)")
        base.executemany(
            "insert into t values (?, 1)", [(large,), (large + 1,), ("many",), (-(2**63),), (None,)]
        )
    stream = read_in_batches(tmp_path / "t.sqlite", unit="who")
    assert family(stream.head["who"].dtype) == "integer"
    (frame,) = stream.frames()
    assert frame["who"].dropna().tolist() == [large, large + 1, -(2**63)]
    assert persons_of(frame, "who").tolist() == [0, 1, -1, 2, -1]


def test_cells_of_sqlite_are_the_text_of_each_cell_however_many_types_a_column_has(tmp_path):
    """Columns of one type are converted together."""
    columns = {
        "whole": [1, None, -(2**63)],
        "real": [2.0, 0.1, float("inf")],
        "text": [b"a", "\xe4".encode(), None],
        "damaged": [b"a", b"\xff", b"b"],
        "mixed": [2**60, 2.0**60, "1"],
        "none": [None, None, None],
    }
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as base, base:
        base.execute(f"create table t ({', '.join(columns)})")
        base.executemany("insert into t values (?, ?, ?, ?, ?, ?)", zip(*columns.values(), strict=True))
    (read,) = walk_text(Location.of(tmp_path / "t.sqlite"), CsvFormat())
    assert read.to_pydict() == {
        name: [text_of(cell, CsvFormat()) for cell in cells] for name, cells in columns.items()
    }


def test_a_column_of_sqlite_alone_has_the_order_of_the_rows(tmp_path):
    """SQLite would give it in the order of its index."""
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as base, base:
        base.execute("create table t (age int, who text, primary key (who))")
        base.executemany("insert into t values (?, ?)", [(1, "c"), (2, "a"), (3, "b")])
    source = read_in_batches(tmp_path / "t.sqlite", unit="who")
    (alone,) = source.only("who").frames()
    (whole,) = source.frames()
    assert alone.columns.tolist() == ["who"]
    assert alone["who"].tolist() == whole["who"].tolist() == ["c", "a", "b"]
