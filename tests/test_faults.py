"""An interrupted run or a damaged file costs one line, never a half-written file and never a cell.

Runs are real processes that a signal or a full disk ends; damaged and changing tables are real files.
"""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import CANARY, SCHEMA, fill, run, run_apart, table
from refusals import refuses

from privsyn import InputError, PrivSyn, read_schema
from privsyn.synthesis import synthesise as blocks
from privsyn.table.io.source import stamps_of, unchanged

SETTINGS = ("--epsilon", 1, "--schema", "schema.yaml")
ROWS = 9000

SMALL = """
from privsyn.synthesis import synthesise as blocks
blocks.MOST_ROWS = blocks.LEAST_ROWS = 1000
"""
SLOW = """
import time; from privsyn.release.table_model import TableModel
decoded = TableModel._decoded
def decode(model, records, rng, start, *rest):
    if start >= 4000:
        print("half", flush=True); time.sleep(60)
    return decoded(model, records, rng, start, *rest)
TableModel._decoded = decode
"""
FULL = """
import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "synth", "data.csv", "out.csv", *SETTINGS, "--model", "m.privsyn").code == 0
    monkeypatch.setattr(blocks, "MOST_ROWS", 1000)
    monkeypatch.setattr(blocks, "LEAST_ROWS", 1000)
    return tmp_path


def files(folder):
    return {path.name for path in folder.iterdir()}


def killed(word, *arguments):
    """What a run says that a signal ends in the midst of writing."""
    done = run_apart(*arguments, before=SMALL + SLOW, end=word)
    assert done.out == "half\n"
    return done.code, done.err


def disk_of(size, *arguments):
    """What a run says on a disk where no file may have more bytes."""
    done = run_apart(*arguments, before=FULL.format(size) + SMALL)
    assert done.err.count("\n") == 1
    assert CANARY not in done.out + done.err
    return done.code, done.err


# A run that is ended


@pytest.mark.slow("each case")
@pytest.mark.parametrize("ending", ["csv.gz", "parquet"])
def test_a_sample_that_is_asked_to_end_leaves_what_was_there(ending, folder):
    out = Path(f"more.{ending}")
    out.write_text("old")
    before = files(folder)
    code, err = killed(signal.SIGTERM, "sample", "m.privsyn", out, "--rows", ROWS, "--force")
    assert (code, err) == (130, "privsyn: interrupted; no file is left half written\n")
    assert files(folder) == before
    assert out.read_text() == "old"


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_sample_that_is_killed_leaves_what_was_there_and_the_next_tells_of_the_rest(ending, folder, capsys):
    out = Path(f"more.{ending}")
    out.write_text("old")
    before = files(folder)
    assert killed(signal.SIGKILL, "sample", "m.privsyn", out, "--rows", ROWS, "--force") == (-9, "")
    assert out.read_text() == "old"
    (left,) = files(folder) - before
    done = run(capsys, "sample", "m.privsyn", out, "--rows", 5, "--force")
    assert done.err == (
        f"privsyn: '{left}': was left beside {out} by a run that was killed,"
        " unless one is at work now: delete it\n"
    )
    Path(left).unlink()
    assert run(capsys, "sample", "m.privsyn", out, "--rows", 5, "--force").err == ""


def test_what_is_called_otherwise_was_not_left(folder, capsys):
    for name in (".0123abcd-some.csv", ".0123abcd-more.csv.gz", "0123abcd-more.csv", ".note-more.csv"):
        Path(name).touch()
    assert run(capsys, "sample", "m.privsyn", "more.csv", "--rows", 5).err == ""


# A disk that fills up


@pytest.mark.slow("each case")
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_a_full_disk_is_one_line_and_leaves_nothing(ending, folder):
    before = files(folder)
    code, err = disk_of(40_000, "sample", "m.privsyn", f"more.{ending}", "--rows", ROWS)
    assert (code, err) == (2, f"privsyn: more.{ending}: cannot be written (File too large)\n")
    assert files(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "full", "left"),
    [
        (1000, "n.privsyn", "the model could not be kept; written: out.csv"),
        (30_000, "n.html", "written: n.privsyn, n.json, out.csv; `privsyn sample n.privsyn OUT` draws"),
    ],
)
def test_a_disk_that_fills_while_synth_writes_names_the_file_and_what_is_left(size, full, left, folder):
    options = (
        "--model",
        "n.privsyn",
        "--ledger",
        "n.json",
        "--public-report",
        "n.html",
        "--rows",
        20,
        "--seed",
        3,
        "--no-budget",  # its file would fill the disk before the run begins
    )
    Path(full).write_text("old")
    before = files(folder)
    code, err = disk_of(size, "synth", "data.csv", "out.csv", *SETTINGS, *options, "--force")
    assert code == 2
    assert err.startswith(f"privsyn: {full}: cannot be written (File too large); {left}")
    assert files(folder) - before <= {"n.privsyn", "n.json", "out.csv"}
    assert Path(full).read_text() == "old"


# A table that is damaged, or changes while it is read


@pytest.fixture
def parquet(tmp_path):
    """A Parquet file of many row groups, a folder of such files, and its schema."""
    path = tmp_path / "table.parquet"
    pq.write_table(arrow(300), path, row_group_size=40)
    return path


def arrow(rows):
    return pa.Table.from_pandas(table(rows), preserve_index=False)


@pytest.fixture
def schema(tmp_path):
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    return read_schema(tmp_path / "schema.yaml")


def complaint(source, schema, **settings):
    with refuses(spent=True) as raised:
        PrivSyn(1.0, 1e-9, schema, **settings).fit(source)
    assert CANARY not in str(raised.value)
    return str(raised.value)


def test_a_parquet_file_cut_anywhere_is_one_line(parquet, schema):
    whole = parquet.read_bytes()
    for length in (
        *(len(whole) * twentieth // 20 for twentieth in range(20)),
        len(whole) - 8,
        len(whole) - 1,
    ):
        parquet.write_bytes(whole[:length])
        assert complaint(parquet, schema) == f"{parquet}: not a Parquet file, or a damaged one"


def test_a_folder_with_a_cut_file_in_the_middle_is_one_line(parquet, schema):
    parts = parquet.parent / "parts"
    parts.mkdir()
    for place in range(3):
        (parts / f"{place}.parquet").write_bytes(parquet.read_bytes())
    middle = parts / "1.parquet"
    middle.write_bytes(parquet.read_bytes()[:-4])
    assert complaint(parts, schema) == f"{middle}: not a Parquet file, or a damaged one"


@pytest.mark.slow
def test_a_parquet_file_with_a_hole_is_one_line_or_a_table(parquet, schema):
    """A hole may leave valid cells of one column; then the file is a table."""
    whole, refused = parquet.read_bytes(), 0
    for start in range(0, len(whole), len(whole) // 20):
        parquet.write_bytes(whole[:start] + bytes(60) + whole[start + 60 :])
        try:
            PrivSyn(1.0, 1e-9, schema, memory=0).fit(parquet)
        except InputError:
            assert complaint(parquet, schema, memory=0).startswith(f"{parquet}: ")
            refused += 1
    assert refused >= 5


def shrink(path):
    rewrite(path, table(30))


def grow(path):
    rewrite(path, table(3000))


def rewrite(path, frame):
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path, index=False)


@pytest.mark.parametrize(
    ("change", "name", "unit"),
    [
        (shrink, "table.csv", None),
        (grow, "table.parquet", None),
        (Path.unlink, "table.csv", "who"),
        (Path.unlink, "table.parquet", None),
        (lambda path: path.write_bytes(b"PAR1"), "table.parquet", "who"),
    ],
)
def test_a_file_that_changes_between_two_walks_is_one_line(name, change, unit, tmp_path, schema):
    path = tmp_path / name
    rewrite(path, table(300))
    changed: list[str] = []

    def between(stage, *_):
        if stage != "reading" and not changed:
            changed.append(stage)
            change(path)

    bounded = {} if unit is None else {"unit": unit, "rows_per_unit": 2}
    if unit is not None:
        rewrite(path, table(300).assign(who=np.arange(300) % 40))
    said = complaint(path, schema, memory=0, progress=between, **bounded)
    assert changed
    assert said == f"{path}: was changed while it was read: let nothing write to it, and run again"


def at_stage(after, path, change, stage, done, _):
    if (stage, done) == ("measuring", after):
        change(path)


@pytest.mark.slow("each case")
@pytest.mark.parametrize("memory", [0, "2GB"])
@pytest.mark.parametrize(("name", "change"), [("table.csv", grow), ("table.parquet", Path.unlink)])
@pytest.mark.parametrize("unit", [None, "who"])
def test_a_change_is_refused_until_the_last_question_however_often_rows_are_read(
    name, memory, change, unit, tmp_path, schema
):
    """How often they are read follows from their number, which is private."""
    path = tmp_path / name
    rows = table(300) if unit is None else table(300).assign(who=np.arange(300) % 40)
    for after in range(4):  # after each round of questions but the last
        rewrite(path, rows)
        model = PrivSyn(20.0, 1e-9, schema, memory=memory, seed=1, unit=unit)
        model.progress = partial(at_stage, after, path, change)
        with pytest.raises(InputError, match="was changed while it was read: let nothing write to it"):
            model.fit(path)


@pytest.mark.slow("each case")
@pytest.mark.parametrize("memory", [0, "2GB"])
@pytest.mark.parametrize(("name", "change"), [("table.csv", grow), ("table.parquet", Path.unlink)])
def test_a_change_after_the_last_question_loses_nothing(name, memory, change, tmp_path, schema):
    path = tmp_path / name
    rewrite(path, table(300))
    before = stamps_of([path])
    quiet = PrivSyn(20.0, 1e-9, schema, memory=memory, seed=1).fit(path)
    late = partial(at_stage, 4, path, change)
    touched = PrivSyn(20.0, 1e-9, schema, memory=memory, seed=1, progress=late).fit(path)
    assert stamps_of([path]) != before
    assert touched.ledger_ == quiet.ledger_
    assert touched.sample(seed=1).equals(quiet.sample(seed=1))


def test_a_file_that_changes_during_a_walk_is_refused_at_its_end(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a")

    def walk():
        yield 1
        path.write_text("ab")
        yield 2

    def damaged():
        yield 1
        path.write_text("abc")
        raise InputError("damaged")

    for way, seen in ((walk, [1, 2]), (damaged, [1])):
        found = []
        walked = unchanged(stamps_of([path]), way)
        with pytest.raises(InputError, match="was changed while it was read"):
            found.extend(walked)
        assert found == seen

    def damaged_before():
        yield 1
        raise InputError("damaged")

    with pytest.raises(InputError, match=r"^damaged$"):
        list(unchanged(stamps_of([path]), damaged_before))


def test_a_folder_of_which_some_cannot_be_read_is_not_taken_for_the_whole(parquet, schema, monkeypatch):
    parts = parquet.parent / "parts"
    (parts / "closed").mkdir(parents=True)
    (parts / "_notes").mkdir()
    for place in (parts / "a.parquet", parts / "closed" / "b.parquet", parts / "_notes" / "c.parquet"):
        place.write_bytes(parquet.read_bytes())
    scandir = os.scandir

    def guarded(path):
        if Path(path).name in ("closed", "_notes"):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)  # for the superuser, who runs tests, no folder is closed
    assert complaint(parts, schema) == f"{parts / 'closed'}: cannot be read (Permission denied)"
    (parts / "closed" / "b.parquet").unlink()
    (parts / "closed").rmdir()
    PrivSyn(1.0, 1e-9, schema).fit(parts)
