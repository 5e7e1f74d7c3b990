"""What epsilon paid for is never lost: whatever fails after `fit` leaves the model and its ledger."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import CANARY, COLUMNS, SCHEMA, run, run_apart, table

import privsyn
from privsyn import Datetime, Forbidden, Increasing, InputError, MissingWhen, Numerical, PrivSyn, Schema, load
from privsyn.cli.common import outputs as files
from privsyn.cli.common import summary
from privsyn.evaluation import report as page
from privsyn.private.run_ledger import RunLedger
from privsyn.release import release as releases
from privsyn.studies import error_trace as tracing
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.open_schema import OpenSchema

SYNTH = ("synth", "data.csv", "out.csv", "--epsilon", 1, "--schema", "schema.yaml", "--rows", 40)
RESCUE = Path("out.csv.rescue.privsyn")
KEPT = ("--model", "m.privsyn", "--ledger", "ledger.json")
EVERYTHING = (*SYNTH, "--paper", "--report", "r.html", "--public-report", "p.html")

LATER = {
    "sampling": (PrivSyn, "sample"),
    "writing the table": (releases, "write_blocks"),
    "the public report": (privsyn, "report"),
    "what is said": (summary, "show_files"),
    "tracing": (tracing, "trace"),
    "the comparison": (privsyn, "evaluate"),
    "its page": (page, "write_report"),
}
"""What comes after the model and the ledger, each as the place where it can be made to fail."""

FAILURES = {
    "refused": (lambda: InputError("no"), 2, "privsyn: no; "),
    "a full disk": (lambda: OSError(28, CANARY, "out.csv"), 2, "out.csv: No space left on device"),
    "a defect": (lambda: RuntimeError(CANARY), 1, "internal error (RuntimeError"),
    "no memory": (lambda: MemoryError(CANARY), 1, "internal error (MemoryError"),
    "Ctrl-C": (lambda: KeyboardInterrupt(), 130, "privsyn: interrupted; "),
}


def names(folder):
    return {path.name for path in folder.iterdir()} - {"data.csv", "schema.yaml"}


def fail_at(monkeypatch, step, error):
    """Make a later step fail; the same functions may be used before `fit`, where they work."""
    place, name = LATER[step]
    works, fitted = getattr(place, name), []
    fit = PrivSyn.fit

    def remember(self, data):
        fitted.append(fit(self, data))
        return fitted[0]

    def fail(*arguments, **options):
        if fitted:
            raise error()
        return works(*arguments, **options)

    monkeypatch.setattr(PrivSyn, "fit", remember)
    monkeypatch.setattr(place, name, fail)
    return fitted


def line(failed, code):
    assert failed.code == code
    assert failed.err.count("\n") == 1
    assert CANARY not in failed.err
    return failed.err


STEPS = [(step, "a full disk") for step in LATER]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "failure"),
    [*STEPS, *(("sampling", failure) for failure in FAILURES if failure != "a full disk")],
)
def test_a_failure_after_fit_leaves_the_model_and_the_ledger_and_says_where(
    step, failure, folder, capsys, monkeypatch
):
    error, code, words = FAILURES[failure]
    with monkeypatch.context() as patched:
        fitted = fail_at(patched, step, error)
        said = line(run(capsys, *EVERYTHING, *KEPT), code)
    assert words in said
    assert "written: m.privsyn, ledger.json" in said
    assert "`privsyn sample m.privsyn OUT` draws from the model and costs no privacy" in said
    assert load("m.privsyn").sample(9, seed=1).equals(fitted[0].sample(9, seed=1))
    assert RunLedger.from_json(Path("ledger.json").read_text()) == fitted[0].ledger_
    assert not RESCUE.exists()
    for path in (Path("out.csv"), Path("p.html")):
        assert (str(path) in said.split("written: ")[1]) == path.exists()
    assert not [name for name in names(folder) if name.startswith(".")]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "failure"), [*STEPS, ("sampling", "refused"), ("sampling", "Ctrl-C")])
def test_a_model_that_nobody_asked_for_is_kept_until_all_is_written(
    step, failure, folder, capsys, monkeypatch
):
    error, code, words = FAILURES[failure]
    with monkeypatch.context() as patched:
        fitted = fail_at(patched, step, error)
        said = line(run(capsys, *EVERYTHING), code)
    assert words in said
    assert f"written: {RESCUE}" in said
    assert load(RESCUE).ledger == fitted[0].ledger_
    assert run(capsys, "sample", RESCUE, "more.csv", "--rows", 7).code == 0


def test_a_run_that_ends_well_leaves_no_rescue(folder, capsys):
    assert run(capsys, *EVERYTHING).code == 0
    assert names(folder) == {"out.csv", "r.html", "p.html", "data.csv.budget.jsonl"}


def test_the_model_of_a_failed_run_is_not_overwritten(folder, capsys):
    RESCUE.write_text("paid for")
    said = line(run(capsys, *SYNTH), 2)
    assert said.startswith(f"privsyn: {RESCUE}: is the model of an earlier run that failed: draw from it")
    assert RESCUE.read_text() == "paid for"
    assert run(capsys, *SYNTH, "--model", "m.privsyn").code == 0
    assert RESCUE.read_text() == "paid for"
    assert run(capsys, *SYNTH, "--force").code == 0
    assert not RESCUE.exists()


@pytest.mark.parametrize("there", [True, False])
def test_a_model_that_cannot_be_written_where_it_is_wanted_is_kept_elsewhere(
    there, folder, capsys, monkeypatch
):
    save = PrivSyn.save

    def fail(self, path):
        if Path(path).name == "m.privsyn" or (not there and Path(path).parent == Path()):
            raise InputError(f"{path}: cannot be written (No space left on device)")
        save(self, path)

    monkeypatch.setattr(PrivSyn, "save", fail)
    failed = run(capsys, *SYNTH, *KEPT)
    assert failed.code == 2
    assert failed.err.startswith("privsyn: m.privsyn: cannot be written (No space left on device); written: ")
    place = Path(failed.err.split("written: ")[1].split(",")[0])
    assert (place.parent == Path()) == there
    assert load(place).ledger == RunLedger.from_json(Path("ledger.json").read_text())
    assert len(pd.read_csv("out.csv")) == 40
    assert "m.privsyn: the model" not in failed.out


def test_a_model_that_can_be_written_nowhere_costs_neither_table_nor_ledger(folder, capsys, monkeypatch):
    def fail(self, path):
        raise ValueError(CANARY)

    monkeypatch.setattr(PrivSyn, "save", fail)
    failed = run(capsys, *SYNTH, *KEPT)
    assert (failed.code, failed.err.count("\n")) == (1, 1)
    assert "the model could not be kept; written: ledger.json, out.csv" in failed.err
    assert CANARY not in failed.err
    assert len(pd.read_csv("out.csv")) == 40


def test_a_ledger_that_cannot_be_written_costs_neither_table_nor_model(folder, capsys, monkeypatch):
    def fail(*_):
        raise InputError("ledger.json: cannot be written (No space left on device)")

    monkeypatch.setattr(files, "write_text", fail)
    failed = run(capsys, *SYNTH, *KEPT)
    assert failed.code == 2
    assert "(No space left on device); written: m.privsyn, out.csv; " in failed.err
    assert load("m.privsyn").ledger.promised_epsilon == 1


@pytest.mark.parametrize("word", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_while_the_model_is_written_waits_for_it(word, folder, capsys, monkeypatch):
    save = PrivSyn.save

    def interrupted(self, path):
        signal.raise_signal(word)
        save(self, path)

    monkeypatch.setattr(PrivSyn, "save", interrupted)
    before = signal.getsignal(signal.SIGTERM)
    said = line(run(capsys, *SYNTH, *KEPT), 130)
    assert said.startswith("privsyn: interrupted; written: m.privsyn, ledger.json; ")
    assert load("m.privsyn").ledger == RunLedger.from_json(Path("ledger.json").read_text())
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_model_that_cannot_be_read_back_is_not_called_saved(tmp_path, monkeypatch):
    model = PrivSyn(1.0, 1e-9, seed=1).fit(pd.DataFrame({"a": [1, 2]}))
    (tmp_path / "m.privsyn").write_text("old")

    def fail(path):
        raise InputError(f"{path}: not a saved release")

    monkeypatch.setattr("privsyn.release.saved.file_format.read_model", fail)
    with pytest.raises(
        InputError, match=r"m.privsyn: the model was not saved, because it could not be read back"
    ):
        model.save(tmp_path / "m.privsyn")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


# Real processes


SLOW = """
import time; from privsyn import Release
def blocks(*_, **__):
    print("paid", flush=True); time.sleep(60); yield
Release.sample_blocks = blocks
"""


@pytest.mark.slow
@pytest.mark.parametrize("word", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_while_it_samples_leaves_the_model(word, folder, capsys):
    ended = run_apart(*SYNTH, before=SLOW, end=word)
    assert ended.out == "paid\n"
    if word != signal.SIGKILL:
        assert ended.code == 130
        assert ended.err.startswith(f"privsyn: interrupted; written: {RESCUE}; ")
    assert "out.csv" not in names(folder)
    assert run(capsys, "sample", RESCUE, "out.csv", "--rows", 40).code == 0


@pytest.mark.slow("each case")
def test_a_disk_that_fills_up_while_the_table_is_written_leaves_the_model(folder, capsys):
    full = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))"
    )
    done = run_apart(*SYNTH[:-1], 9000, before=full)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith(f"privsyn: out.csv: cannot be written (File too large); written: {RESCUE}; ")
    assert run(capsys, "sample", RESCUE, "out.csv", "--rows", 40).code == 0


@pytest.mark.slow
def test_a_reader_that_goes_away_costs_nothing(folder):
    """As the end of a pipe to head does."""
    program = [Path(sys.executable).with_name("privsyn"), *map(str, EVERYTHING)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as begun:
        begun.stdout.close()
        _, err = begun.communicate(timeout=60)
    assert (begun.returncode, err) == (0, "")
    assert names(folder) == {"out.csv", "r.html", "p.html", "data.csv.budget.jsonl"}


# What can be known before


@pytest.fixture
def unasked(monkeypatch):
    """Nothing may be asked of the table."""
    monkeypatch.setattr(PrivSyn, "fit", lambda *_: pytest.fail("epsilon was spent"))


TEXT = "columns:\n  a: {kind: categorical, values: [ž, x]}\n  n: {kind: numerical, low: 0, high: 9}\n"


def test_a_table_that_the_encoding_cannot_hold_is_refused_before(folder, capsys, unasked):
    Path("latin.yaml").write_text(f"csv: {{encoding: latin-1}}\n{TEXT}")
    Path("latin.csv").write_text("a,n\nx,1\n")
    said = line(run(capsys, "synth", "latin.csv", "out.csv", "--epsilon", 1, "--schema", "latin.yaml"), 2)
    assert said == "privsyn: out.csv: some text cannot be written in latin-1: choose utf-8\n"


def test_values_that_parquet_cannot_hold_are_refused_before(folder, capsys, unasked):
    Path("mixed.yaml").write_text(TEXT.replace("ž", "7, true"))
    Path("mixed.csv").write_text("a,n\nx,1\n")
    said = line(run(capsys, "synth", "mixed.csv", "out.parquet", "--epsilon", 1, "--schema", "mixed.yaml"), 2)
    assert said.startswith("privsyn: out.parquet: some column mixes types: write .csv")


def test_a_table_that_vanishes_costs_the_comparison_alone(folder, capsys, monkeypatch):
    fit = PrivSyn.fit

    def vanish(self, data):
        fitted = fit(self, data)
        Path(data).unlink()
        return fitted

    monkeypatch.setattr(PrivSyn, "fit", vanish)
    said = line(run(capsys, *EVERYTHING), 2)
    assert said.startswith(f"privsyn: data.csv: there is no such file; written: {RESCUE}, out.csv, p.html; ")


def test_identifiers_that_end_before_the_rows_are_refused_before(folder, capsys, unasked):
    pd.DataFrame({"id": pd.Series([1, 2], dtype="int32"), "n": [1, 2]}).to_parquet("table.parquet")
    Path("id.yaml").write_text("columns: {id: {kind: identifier}, n: {kind: numerical, low: 0, high: 9}}")
    command = ("synth", "table.parquet", "out.csv", "--epsilon", 1, "--schema", "id.yaml", "--rows")
    said = line(run(capsys, *command, 3_000_000_000), 2)
    assert "cannot number 3000000000 rows: give it a wider one" in said
    with pytest.raises(pytest.fail.Exception):
        run(capsys, *command, 100)


def test_a_comparison_of_no_rows_is_refused_before(folder, capsys, unasked):
    assert "--report compares rows" in line(run(capsys, *EVERYTHING[:-1], "p.html", "--rows", 0), 2)


def test_a_schema_that_does_not_come_back_is_refused_before(folder, capsys, unasked, monkeypatch):
    other = privsyn.Schema({name: privsyn.Categorical(["x"]) for name in COLUMNS})
    monkeypatch.setattr("privsyn.table.codec.codec.from_plain", lambda plain: other)
    assert "the schema does not come back from a model file" in line(run(capsys, *SYNTH), 2)


def test_free_text_is_told_of_before_the_first_question():
    """A caller to whom warnings are errors has spent nothing."""
    model = PrivSyn(1.0, 1e-9, privsyn.Schema({"a": privsyn.Text(), "b": privsyn.Categorical(["x"])}))
    model.progress = lambda stage, *_: stage == "reading" or pytest.fail("epsilon was spent")
    with pytest.raises(privsyn.errors.ColumnWarning):
        model.fit(pd.DataFrame({"a": ["x"], "b": ["x"]}))


@pytest.mark.slow
def test_a_report_of_a_table_with_free_text_is_written(folder, capsys):
    table().assign(note=CANARY).to_csv("data.csv", index=False)
    Path("schema.yaml").write_text(SCHEMA + "  note: {kind: text}\n")
    done = run(capsys, *EVERYTHING)
    assert (done.code, done.err) == (0, "")
    assert CANARY not in Path("r.html").read_text()


def test_no_bounds_that_are_found_contradict_the_constraints():
    """Whatever noise makes of them: it would be found out after epsilon is spent."""
    rng = np.random.default_rng(0)
    dtypes = {"x": "float64", "y": "float64", "n": "int64", "d": "datetime64[s]"}
    frame = pd.DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in dtypes.items()})
    columns = {"x": Numerical(), "y": Numerical(), "n": Numerical(), "d": Datetime()}
    constraints = [
        Forbidden({"x": {"low": 3}}),
        Increasing(["x", "y"], strict=True),
        Forbidden({"d": {"low": "2020-01-01"}}),
        MissingWhen("y", {"n": {"low": 5}}, only=True),
        Forbidden({"n": [0, 2, 3]}),
    ]
    for _ in range(60):
        some = [constraints[place] for place in np.flatnonzero(rng.integers(2, size=5))]
        open_schema = OpenSchema.of(Schema(columns, constraints=some), frame)
        lows = dict(zip("xynd", rng.integers(-20, 20_000, 4).tolist(), strict=True))
        bounds = {name: (float(low), float(low + 9)) for name, low in lows.items()}
        found = open_schema.fill({}, bounds)
        Codec.for_table(found, frame, fine=True)
        for name in "xyn":
            assert found.columns[name].low <= bounds[name][0] < bounds[name][1] <= found.columns[name].high


@pytest.mark.slow
def test_no_bounds_that_are_found_stop_columns_of_other_units_that_increase():
    """Bounds of one column go over to others, which may have no such number: seconds in a column of days."""
    rng = np.random.default_rng(1)
    dtypes = {"x": "float64", "i": "int64", "f": "float32", "cents": "float64"}
    dates = dict.fromkeys(["day", "minute", "when"], "datetime64[s]")
    frame = pd.DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in (dtypes | dates).items()})
    columns = {"x": Numerical(), "i": Numerical(), "f": Numerical(), "cents": Numerical(decimals=2)}
    columns |= {"day": Datetime(unit="D"), "minute": Datetime(unit="min"), "when": Datetime()}
    for _ in range(60):
        orders = [Increasing(rng.permutation(list(kind)).tolist()) for kind in (dtypes, dates)]
        open_schema = OpenSchema.of(Schema(columns, constraints=orders), frame)
        numbers = {name: np.sort(10.0 ** rng.uniform(0, 19, 2) * rng.choice([-1, 1], 2)) for name in dtypes}
        numbers |= {"i": np.round(numbers["i"] % 2**40), "cents": np.round(numbers["cents"] % 1e6, 2)}
        times = {
            name: rng.integers(0, 20_000, 2) * per for name, per in zip(dates, (1, 1440, 1), strict=True)
        }
        bounds = {name: tuple(map(float, np.sort(ends))) for name, ends in (numbers | times).items()}
        Codec.for_table(open_schema.fill({}, bounds), frame, fine=True)


def test_no_other_file_has_the_name_of_the_rescue_model(folder, capsys):
    done = run(capsys, *SYNTH, "--ledger", "out.csv.rescue.privsyn")
    assert done.code == 2
    assert "choose another name" in done.err
    assert not names(folder)
