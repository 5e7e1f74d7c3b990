"""Nothing of a row is in anything that a run leaves or says, and no row decides whether, or how, it fails.

A marker in one row is looked for in all files, texts and exceptions. Neighbouring tables must end alike: both
go through, or both fail in the same words. And the rows may be read at the rim and on the private side only.
"""

from __future__ import annotations

import base64
import csv
import json
import logging
import os
import sys
import traceback
import warnings
import zipfile
from contextlib import suppress
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from types import FunctionType

import numpy as np
import pandas as pd
import pytest
from command import fill, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import Grumpy, junk, tables

from privsyn import Categorical, Datetime, Duration, InputError, Numerical, PrivSyn, Schema, Text, Time, load
from privsyn.errors import ColumnWarning, LossWarning, NoSignalWarning, NotFoundWarning, RefitWarning
from privsyn.methods import reading
from privsyn.private.measure import PrivateTable
from privsyn.table.encoding.dtypes import OBJECT, TEXT
from privsyn.table.io.read_in_batches import read_in_batches

EXAMPLES = int(os.environ.get("FUZZ", "40"))  # `make fuzz` says 10,000
METHODS = ["default", "published"]
# The default method sees codes alone, as the other does, and takes ten times as long.
SELDOM_DEFAULT = st.sampled_from(["published"] * 9 + ["default"])
both = pytest.mark.parametrize("method", METHODS)

WORD, NUMBER, DAY = "zqmarkxw", 918273645, "1987-03-05"
MARKS = (WORD, str(NUMBER), DAY, "1987, 3, 5")

SCHEMA = Schema(
    {
        "age": Numerical(16, 100, integer=True),
        "job": Categorical(["baker", "clerk"]),
        "pay": Numerical(0, 5000, decimals=2),
        "start": Datetime("2015-01-01", "2020-12-31"),
        "note": Categorical(["yes", "no"], nullable=False),
    }
)


class Talkative(Grumpy):
    """An object that tells all when shown, and raises when touched."""

    def __repr__(self):
        return WORD


def marked(rows=60):
    """A table in whose last row, and its label, is nothing that the schema knows."""
    table = pd.DataFrame(
        {
            "age": np.arange(rows) % 80 + 18,
            "job": pd.Categorical(["baker", "clerk"] * (rows // 2 - 1) + ["clerk", WORD]),
            "pay": np.linspace(100, 4000, rows).round(2),
            "start": pd.Series(["2016-02-29"] * (rows - 1) + [DAY], dtype="datetime64[s]"),
            "note": pd.Series(["yes"] * (rows - 1) + [Talkative()], dtype=object),
        },
        index=pd.Index([*map(str, range(rows - 1)), WORD]),
    )
    table.loc[WORD, ["age", "pay"]] = NUMBER
    return table


def marks_in(text):
    return [mark for mark in MARKS if mark in text]


def all_of(error):
    """Everything that Python would print of an exception and of those behind it, hidden ones included."""
    told = "".join(traceback.format_exception(error))
    behind = [error.__cause__, error.__context__]
    return told + "".join(repr(one) + all_of(one) for one in behind if one is not None)


def end(source, schema, method="published"):
    """How a run ends: with the text of an `InputError` that has nothing behind it, or well.

    Then what is returned is the warning on columns of objects, or None. Any other exception is a crash.
    """
    complaint = None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ColumnWarning)
        for on_released in (NotFoundWarning, LossWarning, NoSignalWarning):  # they depend on these alone
            warnings.simplefilter("ignore", on_released)
        warnings.simplefilter("ignore", RefitWarning)  # it depends on names alone
        try:
            PrivSyn(0.5, 1e-9, schema, method=method).fit(source).sample(5)
        except InputError as error:
            complaint = error
    if complaint is None:
        return "".join(str(one.message) for one in warned) or None
    assert complaint.__cause__ is None
    assert complaint.__context__ is None
    assert "\n" not in str(complaint)
    return str(complaint)


OBJECTS = {
    "texts": ["a", "b"] * 20,
    "times": [time(8, 30), time(9, 1)] * 20,
    "one time": ["a"] * 39 + [time(8, 30)],
    "dates": [date(2020, 1, 31)] * 40,
    "decimals": [Decimal("1.5"), None] * 20,
    "nothing": [None] * 40,
    "no rows": [],
}


@pytest.mark.skipif(OBJECT == TEXT, reason="this pandas keeps text in columns of objects")
@pytest.mark.parametrize("schema", [None, Schema({"at": Categorical(), "n": Numerical(0, 1)})])
def test_that_a_column_of_objects_is_not_read_is_said_whatever_its_cells(schema):
    """Of times of day without a schema nothing came out, and nobody said so."""
    tables = [
        pd.DataFrame({"at": pd.Series(cells, dtype=object), "n": np.arange(len(cells)) % 2})
        for cells in OBJECTS.values()
    ]
    said = {end(table, schema) for table in tables}
    assert len(said) == 1
    assert "only text, numbers and booleans are synthesised: 'at'. Declare others" in said.pop()


def test_nothing_is_said_of_objects_that_are_declared():
    table = pd.DataFrame(
        {
            "at": pd.Series(OBJECTS["times"], dtype=object),
            "day": pd.Series(OBJECTS["dates"], dtype=object),
            "cost": pd.Series(OBJECTS["decimals"], dtype=object),
            "name": pd.Series(OBJECTS["texts"], dtype=object),
        }
    )
    schema = Schema(
        {
            "at": Time(),
            "day": Datetime("2020-01-01", "2020-12-31", objects="date"),
            "cost": Numerical(0, 9, decimals=2),
            "name": Categorical(["a", "b"]),
        }
    )
    assert end(table, schema) is None


# --- a marker in one row -----------------------------------------------------------------------------------


@both
def test_no_mark_of_a_row_is_in_what_a_run_leaves(method, tmp_path, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    told = []
    model = PrivSyn(1.0, 1e-9, SCHEMA, method=method, progress=lambda *step: told.append(step)).fit(marked())
    model.save(tmp_path / "m.privsyn")
    kept = load(tmp_path / "m.privsyn")
    with zipfile.ZipFile(tmp_path / "m.privsyn") as file:
        contents = "".join(file.read(name).decode("latin-1") for name in file.namelist())
    texts = (
        contents,
        model.ledger_.to_json(),
        str(model.ledger_),
        repr(model.ledger_),
        repr(kept),
        str(told),
    )
    said = "".join([*texts, *capfd.readouterr(), caplog.text, repr(vars(model)), repr(kept.codec)])
    assert not marks_in(said + kept.sample(200).to_csv())


def test_no_list_of_values_that_a_type_carries_is_in_a_model(tmp_path):
    """polars notes all values of an Enum beside the type. One in a list or a record is refused by name."""
    pl = pytest.importorskip("polars")
    kind = pl.Enum([WORD, "baker"])
    jobs = pl.Series(["baker"] * 40, dtype=kind)
    table = pl.DataFrame({"job": jobs, "note": jobs})
    schema = Schema({"job": Categorical(["baker"]), "note": Text()})
    for inside in (pl.Series([["baker"]] * 40, dtype=pl.List(kind)), pl.DataFrame({"job": jobs}).to_struct()):
        with pytest.raises(InputError, match=r"column 'more': the Arrow type .*is not supported") as error:
            PrivSyn(1.0, 1e-9, method="published").fit(table.with_columns(inside.alias("more")))
        assert not marks_in(str(error.value))
    with pytest.warns(ColumnWarning):
        model = PrivSyn(1.0, 1e-9, schema, method="published").fit(table)
    model.save(tmp_path / "m.privsyn")
    with zipfile.ZipFile(tmp_path / "m.privsyn") as file:
        types = base64.b64decode(json.loads(file.read("release.json"))["tables"]["rows"]["form"]["types"])
    assert not marks_in((tmp_path / "m.privsyn").read_bytes().decode("latin-1") + types.decode("latin-1"))
    assert load(tmp_path / "m.privsyn").table().form.types.names == ["job"]
    assert load(tmp_path / "m.privsyn").sample(3).columns == ["job"]


MISTAKES = {
    "a column is not in the schema": lambda table: table.assign(more=table["job"]),
    "a column is missing": lambda table: table.drop(columns="pay"),
    "categories where numbers should be": lambda table: table.assign(age=table["job"]),
    "dates where a list should be": lambda table: table.assign(note=table["start"]),
    "numbers where dates should be": lambda table: table.assign(start=table["pay"]),
    "flags where numbers should be": lambda table: table.assign(age=table["age"] == NUMBER),
    "differences of time": lambda table: table.assign(age=table["start"] - pd.Timestamp(DAY)),
    "periods": lambda table: table.assign(start=table["start"].dt.to_period("D")),
    "intervals": lambda table: table.assign(age=pd.cut(table["age"], 3).astype(object)),
    "long doubles": lambda table: table.assign(age=table["age"].astype(np.longdouble)),
    "complex numbers": lambda table: table.assign(age=table["age"].astype(complex)),
    "rows in the header's stead": lambda table: table.set_axis([WORD, NUMBER, DAY, "a", "b"], axis=1),
    "names that are alike": lambda table: table.set_axis([WORD] * 5, axis=1),
    "two-level names": lambda table: pd.concat({WORD: table}, axis=1),
    "a list in the table's stead": lambda table: table.to_numpy().tolist(),
    "a text in the table's stead": lambda table: table.drop(columns="note").to_csv(),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_no_mark_of_a_row_is_in_a_complaint_nor_behind_it(mistake):
    """And the neighbour without the row gets the same words."""

    ends = [end(MISTAKES[mistake](table), SCHEMA) for table in (marked(), marked().drop(index=WORD))]
    assert ends[0] == ends[1]
    assert not marks_in(str(ends))


COMMANDS = [
    (),
    ("--delta", "2"),
    ("--delta", "0"),
    ("--epsilon", "0"),
    ("--epsilon", WORD[:2]),
    ("--rows", "-1"),
    ("--seed", "-1"),
    ("--schema", "absent.yaml"),
    ("--schema", "data.csv"),
    ("--schema", "less.yaml"),
    ("--schema", "more.yaml"),
    ("--schema", "broken.yaml"),
    ("--model", "."),
    ("--model", "absent/m.privsyn"),
    ("--ledger", "out.csv"),
    ("--unknown", "x"),
    ("--paper",),
    ("--rows", "0", "--model", "m.privsyn", "--ledger", "ledger.json"),
]
LINES = {
    "well-formed": f"{NUMBER},{WORD},{NUMBER},{DAY}\n",
    "quoted": f'{NUMBER},"{WORD}, ""{WORD}""\n{WORD}",{NUMBER},{DAY}\n',
    "too short": f"{NUMBER},{WORD}\n",
    "too long": f"{NUMBER},{WORD},{NUMBER},{DAY},{WORD}\n",
    "quote open": f'{NUMBER},"{WORD},{NUMBER},{DAY}\n',
    "no text": f"{NUMBER},{WORD}\0,{NUMBER},{DAY}\n",
    "not UTF-8": f"{NUMBER},{WORD}\xff,{NUMBER},{DAY}\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table on disk and a folder for temporary files of its own."""
    fill(tmp_path)
    plain = (tmp_path / "schema.yaml").read_text()
    (tmp_path / "less.yaml").write_text(plain.replace("job:", "jib:"))
    (tmp_path / "more.yaml").write_text(plain + "  more: {kind: categorical, values: [a]}\n")
    (tmp_path / "broken.yaml").write_text(plain.replace("{", "[", 1))
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    return tmp_path


def outcome(folder, capsys, line, options):
    """What one command printed and left, beside what was there; its exit code; and no mark in any of it."""
    rows = (folder / "data.csv").read_text().splitlines(keepends=True)[:40]
    (folder / "data.csv").write_bytes("".join([*rows, line]).encode("latin-1"))
    before = set(folder.rglob("*"))
    # So large an epsilon that noise never hides the number of rows: else the exit code depended on it.
    done = run(capsys, "synth", "data.csv", "out.csv", "--epsilon", 50, "--schema", "schema.yaml", *options)
    left = set(folder.rglob("*")) - before
    told = done.out + done.err + "".join(path.read_bytes().decode("latin-1") for path in left)
    for path in left & {folder / "m.privsyn"}:
        with zipfile.ZipFile(path) as file:
            told += "".join(file.read(name).decode("latin-1") for name in file.namelist())
    assert not marks_in(told)
    assert not any((folder / "scratch").iterdir())
    for path in left:
        path.unlink()
    return done.code, done.err, sorted(path.name for path in left)


@pytest.mark.slow
@pytest.mark.parametrize("options", COMMANDS, ids=" ".join)
def test_no_mark_of_a_row_is_in_what_a_command_says_or_leaves(options, folder, capsys):
    """And without the row exit code, complaint and files are the same."""
    whole = (folder / "data.csv").read_bytes()
    ends = []
    for line in (LINES["well-formed"], LINES["quoted"], ""):
        (folder / "data.csv").write_bytes(whole)
        ends.append(outcome(folder, capsys, line, options))
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize("line", LINES)
def test_no_mark_of_a_damaged_row_is_told(line, folder, capsys):
    """That a file is well-formed is public, and the ledger says so; what stands in the damaged row is not."""
    code, complaint, _ = outcome(folder, capsys, LINES[line], ())
    assert code in (0, 2)
    assert complaint.count("\n") == (code == 2)


def test_the_search_finds_a_mark_in_what_stands_behind_an_exception():
    def shout():
        try:
            raise KeyError(WORD)
        except KeyError:
            raise InputError("no") from None

    with pytest.raises(InputError) as raised:
        shout()
    assert marks_in(all_of(raised.value)) == [WORD]


# --- where rows may be read --------------------------------------------------------------------------------

READINGS = ("__len__", "min", "max", "unique", "nunique", "value_counts", "describe", "sum", "mean", "isin")
ALLOWED = ("privsyn.table.", "privsyn.private.")


def room():
    """The module of this package that is at work: the innermost, above this file."""
    frame = sys._getframe(2)
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("privsyn."):
        frame = frame.f_back
    return "" if frame is None else frame.f_globals["__name__"]


def guard(method):
    def guarded(self, *arguments, **options):
        if not room().startswith(ALLOWED):
            raise AssertionError(f"{room()} reads the rows: {method.__name__}")
        return method(self, *arguments, **options)

    return guarded


class GuardedColumn(pd.Series):
    @property
    def _constructor(self):
        return GuardedColumn


class GuardedTable(pd.DataFrame):
    """A table whose size and cells can be read at the rim and on the private side, and nowhere else."""

    @property
    def _constructor(self):
        return GuardedTable

    @property
    def _constructor_sliced(self):
        return GuardedColumn

    @property
    def shape(self):
        return guard(pd.DataFrame.shape.fget)(self)


for kind, base in ((GuardedColumn, pd.Series), (GuardedTable, pd.DataFrame)):
    for name in READINGS:
        if hasattr(base, name):
            setattr(kind, name, guard(getattr(base, name)))


@pytest.fixture
def guarded(monkeypatch):
    """Both forms of the rows are watched: the table that comes in, and its codes."""
    kept = {}

    def read(private):
        if not room().startswith("privsyn.private."):
            raise AssertionError(f"{room()} reads the codes")
        return kept[id(private)]

    def keep(private, records):
        kept[id(private)] = records

    def guarded_table(table, schema, **options):
        found = read_in_batches(table, schema, **options)
        return replace(
            found, head=GuardedTable(found.head), batches=lambda: map(GuardedTable, found.batches())
        )

    monkeypatch.setattr(PrivateTable, "_rows", property(read, keep), raising=False)
    monkeypatch.setattr(reading, "open_table", guarded_table)


@both
@pytest.mark.parametrize("people", [{}, {"unit": "who", "rows_per_unit": 2}])
def test_rows_are_read_at_the_rim_and_on_the_private_side_alone(method, people, guarded, tmp_path):
    table = marked().astype({"note": str})
    if people:
        table["who"] = np.arange(len(table)) // 3
    table.to_csv(tmp_path / "table.csv", index=False)
    for source in (table, tmp_path / "table.csv"):
        model = PrivSyn(1.0, 1e-9, SCHEMA, method=method, **people).fit(source)
        model.save(tmp_path / "m.privsyn")
        assert len(model.sample(10)) == 10


@both
@pytest.mark.parametrize("rows", [0, 1, 60])
def test_what_may_come_out_is_the_schemas_whatever_the_rows_hold(method, rows):
    table = marked().drop(index=WORD)[:rows]
    fitted = PrivSyn(1.0, 1e-9, SCHEMA, method=method, seed=0).fit(table)  # noise may look like a grid
    sizes = fitted.release_.codec.domain.sizes
    # Cells or bins, or listed values, and missing where the dtype can be.
    assert sizes == ((85, 3, 474, 493, 2) if method == "default" else (32, 3, 33, 33, 2))


READERS = [lambda table: len(table), lambda table: table["age"].max(), lambda table: table.shape]


@pytest.mark.parametrize("reader", READERS)
def test_the_guard_stops_a_reader_elsewhere(reader, guarded):
    """The same lines, as if they stood in another room."""
    elsewhere = {"__name__": "privsyn.methods.somewhere", "__builtins__": __builtins__}
    with pytest.raises(AssertionError, match="reads the rows"):
        FunctionType(reader.__code__, elsewhere)(GuardedTable(marked()))
    with pytest.raises(AssertionError, match="reads the codes"):
        FunctionType((lambda private: private._rows).__code__, elsewhere)(PrivateTable(None, None))


# --- neighbours end alike ----------------------------------------------------------------------------------


@st.composite
def odd_neighbours(draw):
    """A schema that may not fit, a table, and the same table without one row, in which anything may stand."""
    schema, table = draw(tables(max_rows=6))
    columns = dict(schema.columns)
    if draw(st.integers(0, 3)) == 0:  # then some column is described as another kind
        other, _ = draw(tables(max_columns=1, max_rows=0))
        columns[draw(st.sampled_from(list(columns)))] = next(iter(other.columns.values()))
    if len(table) == 0:
        return Schema(columns), table, table
    row = draw(st.integers(0, len(table) - 1))
    for place, dtype in enumerate(table.dtypes):
        if dtype == OBJECT and draw(st.booleans()):
            cells = table.iloc[:, place].tolist()
            cells[row] = draw(junk)
            filled = np.empty(len(cells), object)
            filled[:] = cells
            table.isetitem(place, pd.Series(filled, table.index, dtype=object))
    return Schema(columns), table, table.drop(index=table.index[row])


@pytest.mark.slow
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(case=odd_neighbours(), method=SELDOM_DEFAULT)
def test_fuzz_neighbours_end_alike(case, method):
    schema, table, neighbour = case
    assert end(table, schema, method) == end(neighbour, schema, method)


@st.composite
def odd_neighbours_of_an_open_schema(draw):
    """As above, but lists and bounds, or the schema altogether, are left out."""
    schema, table, neighbour = draw(odd_neighbours())
    bare = {kind: kind() for kind in (Categorical, Numerical, Datetime, Duration)}
    columns = {name: draw(st.sampled_from([bare.get(type(c), c), c])) for name, c in schema.columns.items()}
    return draw(st.sampled_from([None, Schema(columns)])), table, neighbour


@pytest.mark.slow
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(case=odd_neighbours_of_an_open_schema(), method=SELDOM_DEFAULT)
def test_fuzz_neighbours_end_alike_where_values_and_bounds_are_found(case, method):
    schema, table, neighbour = case
    assert end(table, schema, method) == end(neighbour, schema, method)


cells = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["", "?", "NA", "1e400", "-0", "NaN", "inf", "1_0", "٣", "2015-02-30", "true", "0x1", '"', "\r"]
    ),
    st.integers().map(str),
    st.floats().map(str),
)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(st.lists(cells, min_size=5, max_size=5), min_size=1, max_size=6), packed=st.booleans())
def test_fuzz_no_cell_of_a_well_formed_csv_decides_anything(rows, packed, tmp_path_factory):
    """Whatever the cells, the run goes through, for the table and for its neighbour."""
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / ("table.csv.gz" if packed else "table.csv")
    text = [text.encode("utf-8", "replace").decode() for row in rows for text in row]
    for kept in (rows, rows[:-1]):
        frame = pd.DataFrame(
            [text[5 * i : 5 * i + 5] for i in range(len(kept))], columns=list(SCHEMA.columns)
        )
        frame.to_csv(path, index=False, quoting=csv.QUOTE_ALL)
        assert end(path, SCHEMA) is None


@settings(max_examples=EXAMPLES)
@given(content=st.binary(max_size=200) | st.text(alphabet='a,"\n\r;1é\0 ', max_size=60).map(str.encode))
def test_fuzz_no_file_crashes_a_run(content, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    for name in ("table.csv", "table.csv.gz", "table.parquet", "schema.yaml"):
        (folder / name).write_bytes(content)
        with suppress(InputError):
            PrivSyn(0.5, 1e-9, Schema({"a": Categorical(["1"])})).fit(folder / name)


@both
def test_the_order_of_columns_is_the_tables_own_and_public(method):
    turned = marked()[["note", "start", "pay", "job", "age"]]
    model = PrivSyn(1.0, 1e-9, SCHEMA, method=method).fit(turned)
    assert list(model.sample(3).columns) == list(turned.columns)
    assert json.loads(model.ledger_.to_json())["public_inputs"][0].startswith("the names, the order")
