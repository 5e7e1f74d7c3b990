"""No command sends a terminal what a name, a path, a schema or a model holds: it is shown as an escape.

The commands run on a real pseudo-terminal, where progress is drawn as bars.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import threading
import zipfile
from unicodedata import category

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from privsyn import Categorical, Identifier, InputError, Numerical, PrivSyn, Schema, Text, plan, read_schema
from privsyn.cli.common import progress_bars, summary
from privsyn.cli.main import main
from privsyn.errors import printable
from privsyn.release.losses.kinds import Loss
from privsyn.table.schema.yaml_file import parse, to_yaml

EVIL = "\x1b]0;owned\x07\x1b[8m\x9b2J\x85\u202e\u2066\u200b\r\nprivsyn: all is well\x1b[0m"
"""Sets a title, hides, clears the screen (C1), writes backwards, is invisible, and begins a new line."""

SHOWN = r"\x1b]0;owned\x07\x1b[8m\x9b2J\x85\u202e\u2066\u200b\r\nprivsyn: all is well\x1b[0m"

OURS = re.compile(r"\x1b\[(?:[0-9;]*m|[0-9]*[AK]|\?25[hl])")
"""What rich sends to draw bars and help: colours, up a line, clear the line, hide and show the cursor."""

ERASED = re.compile(r"[^\n]*\n\x1b\[\?25h\r\x1b\[1A\x1b\[2K")
"""A line that rich has drawn and erased, such as what is being done."""


class Terminal:
    """A pseudo-terminal in place of both streams; `text` is all that was sent to it."""

    def __init__(self, monkeypatch):
        self.master, self.slave = os.openpty()
        self.sent = b""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        # Stays open as an object: libraries remember what stood in for stdout.
        self.stream = open(self.slave, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        for name in ("stdout", "stderr"):
            monkeypatch.setattr(sys, name, self.stream)
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", "400")

    def _read(self):
        while True:
            try:
                sent = os.read(self.master, 65536)
            except OSError:  # the other end is closed
                return
            self.sent += sent

    def text(self):
        self.stream.flush()
        os.close(self.slave)
        self.reader.join(10)
        os.close(self.master)
        return self.sent.decode("utf-8")


def on_terminal(monkeypatch, *arguments):
    """The exit code of a command, and what it sent."""
    with monkeypatch.context() as patched:
        terminal = Terminal(patched)
        assert sys.stderr.isatty()
        code = main([str(argument) for argument in arguments])
        return code, terminal.text()


def obeyed(sent):
    """What the terminal would obey beside line ends and what rich draws with."""
    plain = OURS.sub("", sent).replace("\r\n", "").replace("\r", "")
    return {character for character in plain if not character.isprintable()}


NUMBER, WORD, OPEN, NAME, NOTE = (f"{name}{EVIL}" for name in ("age", "job", "town", "customer id ", "note"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, a schema and a model in which every text is evil, and so is the name of the folder."""
    folder = tmp_path_factory.mktemp("evil") / f"in{EVIL}"
    folder.mkdir()
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            NUMBER: rng.integers(0, 90, 60),
            WORD: rng.choice([f"a{EVIL}", f"b{EVIL}"], 60),
            OPEN: rng.choice([f"x{EVIL}", f"y{EVIL}"], 60),
            NAME: np.arange(60),
            "who": [f"{place}{EVIL}" for place in range(60)],
            NOTE: "x",
        }
    )
    for name, rows in (("real", 60), ("control", 59)):
        frame[:rows].to_parquet(folder / f"{name}.parquet")
    columns = {
        NUMBER: Numerical(0, 90),
        WORD: Categorical([f"a{EVIL}", f"b{EVIL}"]),
        OPEN: Categorical(),
        NAME: Identifier(),
        NOTE: Text(),
    }
    schema = Schema(columns)
    (folder / "schema.yaml").write_text(to_yaml(schema), encoding="utf-8")
    known = Schema({name: column for name, column in columns.items() if name not in (NAME, NOTE)})
    (folder / "known.yaml").write_text(to_yaml(known), encoding="utf-8")
    frame[[*known.columns]].to_parquet(folder / "synthetic.parquet")
    return folder


def crafted(folder, tmp_path):
    """A model in which all that may be text is evil."""
    schema = Schema({NUMBER: Numerical(0, 90), WORD: Categorical([f"a{EVIL}", "b"]), NOTE: Text()})
    frame = pd.read_parquet(folder / "real.parquet")[[NUMBER, WORD, NOTE]].assign(who=range(60))
    model = PrivSyn(3.0, 1e-6, schema, unit="who", rows_per_unit=1, seed=1)
    with pytest.warns(match="free text"):
        model.fit(frame).save(tmp_path / "honest")
    with zipfile.ZipFile(tmp_path / "honest") as file:
        text, arrays = json.loads(file.read("release.json")), file.read("arrays.npz")
    ledger = text["ledger"]
    ledger["unit"] = ledger["version"] = ledger["randomness"] = EVIL
    ledger["public_inputs"] = [f"that {EVIL}"]
    for spend in ledger["spends"]:
        spend["what"] = f"values of {EVIL}"
    path = tmp_path / f"m{EVIL}"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("release.json", json.dumps(text))
        file.writestr("arrays.npz", arrays)
    return path


EPSILON = ("--epsilon", 3)
COMMANDS = {
    "synth": lambda f, o: [
        "synth", f / "real.parquet", o / "out.csv", *EPSILON, "--schema", f / "schema.yaml", "--unit", "who",
        "--rows-per-unit", 1, "--target", WORD, "--model", o / "m.privsyn", "--ledger", o / "l.json",
        "--report", o / "r.html", "--public-report", o / "p.html",
    ],
    "synth without a schema": lambda f, o: [
        "synth", f / "real.parquet", o / "out.parquet", "--epsilon", 0.01, "--verbose",
    ],
    "sample": lambda f, o: ["sample", crafted(f, o), o / "more.csv", "--rows", 20],
    "report": lambda f, o: ["report", crafted(f, o), o / "page.html"],
    "schema": lambda f, o: ["schema", f / "real.parquet"],
    "schema --check": lambda f, o: [
        "schema", f / "real.parquet", "--check", f / "schema.yaml", "--unit", "who",
    ],
    "plan": lambda f, o: [
        "plan", f / "real.parquet", *EPSILON, "--schema", f / "schema.yaml", "--unit", "who",
        "--rows-per-unit", 2,
    ],
    "evaluate": lambda f, o: [
        "evaluate", f / "real.parquet", f / "synthetic.parquet", "--schema", f / "known.yaml",
        "--target", WORD, "--json", o / "s.json", "--report", o / "e.html",
    ],
    "attack": lambda f, o: [
        "attack", f / "real.parquet", f / "synthetic.parquet", f / "control.parquet",
        "--schema", f / "known.yaml", "--json", o / "a.json",
    ],
    "sweep": lambda f, o: [
        "sweep", f / "real.parquet", *EPSILON, "--seeds", 1, "--schema", f / "schema.yaml",
        "--out", o / "s.csv", "--no-models",
    ],
    "demo": lambda f, o: ["demo", "--out", o],
}  # fmt: skip


@pytest.mark.slow("each case")
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_lets_a_text_from_elsewhere_command_the_terminal(command, folder, tmp_path, monkeypatch):
    out = tmp_path / f"out{EVIL}"
    out.mkdir()
    if command == "sweep":  # reads all columns of the schema, and has no unit
        pd.read_parquet(folder / "real.parquet").drop(columns="who").to_parquet(out / "table.parquet")
    arguments = COMMANDS[command](folder, out)
    if command == "sweep":
        arguments[1] = out / "table.parquet"
    code, sent = on_terminal(monkeypatch, *arguments)
    assert code in ((0, 1) if command == "synth without a schema" else (0,)), sent  # 1: too little signal
    assert not obeyed(sent)
    assert "\x1b[8m" not in sent  # which rich does not send
    assert (r"\e]0;owned\a\e[8m" if command == "schema" else SHOWN) in sent  # YAML has escapes of its own
    assert "\nprivsyn: all is well" not in sent


REFUSED = {
    "synth": lambda f, o: ["synth", f / "real.parquet", o / "no.csv", *EPSILON, "--schema", o / "none.yaml"],
    "sample": lambda f, o: ["sample", o / "none", o / "out.csv"],
    "sample --given": lambda f, o: ["sample", crafted(f, o), o / "o.csv", "--given", f"{EVIL}=1"],
    "report": lambda f, o: ["report", o / "none", o / "page.html"],
    "sweep of a model": lambda f, o: ["sweep", crafted(f, o), "--target", EVIL],
    "schema": lambda f, o: ["schema", f / "real.parquet", "--check", o / "none.yaml"],
    "plan": lambda f, o: ["plan", f / "real.parquet", *EPSILON, "--target", EVIL],
    "evaluate": lambda f, o: ["evaluate", f / "real.parquet", f / "synthetic.parquet"],
    "attack": lambda f, o: ["attack", f / "real.parquet", o / "none.parquet", f / "control.parquet"],
    "sweep": lambda f, o: ["sweep", f / "real.parquet", "--epsilon", EVIL, "--out", o / "s.csv"],
    "demo": lambda f, o: ["demo", "--out", f / "real.parquet"],
    "an unknown option": lambda f, o: ["synth", f"--{EVIL}"],
    "an unknown command": lambda f, o: [EVIL],
}


@pytest.mark.parametrize("command", REFUSED)
def test_nor_does_any_refusal(command, folder, tmp_path, monkeypatch):
    out = tmp_path / f"out{EVIL}"
    out.mkdir()
    code, sent = on_terminal(monkeypatch, *REFUSED[command](folder, out))
    assert code == 2
    assert not obeyed(sent)
    assert "\x1b[8m" not in sent
    left = ERASED.sub("", sent)
    assert OURS.sub("", left).lstrip("\r\n").startswith("privsyn: ")
    assert left.count("\n") == 1


def test_progress_is_still_drawn_on_a_terminal(folder, tmp_path, monkeypatch):
    command = [
        "synth",
        folder / "synthetic.parquet",
        tmp_path / "o.csv",
        *EPSILON,
        "--schema",
        folder / "known.yaml",
    ]
    code, sent = on_terminal(monkeypatch, *command)
    assert code == 0
    assert "measuring" in sent
    assert "\x1b[?25l" in sent  # the cursor is hidden while bars move


@pytest.mark.parametrize("bars", ["progress", "countdown"])
def test_a_stage_is_neither_obeyed_nor_taken_for_markup(bars, monkeypatch):
    with monkeypatch.context() as patched:
        terminal = Terminal(patched)
        with getattr(progress_bars, bars)() as report:
            for done in range(3):
                report(f"[red]stage[/] {EVIL}", done, 2)
        sent = terminal.text()
    assert f"[red]stage[/] {SHOWN}" in OURS.sub("", sent)
    assert not obeyed(sent)
    assert "\x1b[8m" not in sent


def test_progress_in_a_pipe_is_not_obeyed_either(capsys):
    with progress_bars.countdown() as report:
        report(EVIL, 1, 2)
    assert capsys.readouterr().err == f"1 of 2 {SHOWN}\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_what_the_terminal_cannot_show_makes_no_run_fail(encoding, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    names = ("é", "年齢", "\ud800")
    summary.show_losses([Loss(name, "identifiers", None, "replaced by generated IDs") for name in names])
    stream.flush()
    said = stream.buffer.getvalue().decode(encoding)
    assert ": é, \\u5e74\\u9f62, \\ud800\n" in said.replace("\\xe9", "é")


@given(st.text())
def test_what_is_printable_is_one_line_and_says_what_there_was(text):
    line = printable(text)
    assert all(character.isprintable() or category(character) == "Zs" for character in line)
    assert line.encode("utf-8").decode("utf-8") == line
    assert len(f"{line}.".splitlines()) == 1
    if text.isprintable():
        assert line == text


@pytest.mark.parametrize("text", ["", "naïve", "年齢", "a\u00a0b", "\u3000", "a b", "👍", "a\\x1b"])
def test_what_does_no_harm_stays_as_it_is(text):
    assert printable(text) == text


@given(st.text(min_size=1), st.text())
def test_a_schema_file_holds_no_control_character_and_is_read_back(name, value):
    schema = Schema({name: Categorical([value, f"{value}{EVIL}"]), "and more": Numerical(0, 1)})
    text = to_yaml(schema)
    assert printable(text.replace("\n", "")) == text.replace("\n", "")
    assert list(parse(text)["columns"]) == [*schema.columns]
    assert yaml.safe_load(text)["columns"][name]["values"] == [value, f"{value}{EVIL}"]


def test_texts_of_the_library_are_safe_to_print(folder, tmp_path):
    schema = read_schema(folder / "schema.yaml")
    assert NUMBER in schema.columns
    for text in (str(plan(schema, 1.0)), str(PrivSyn(1.0, 1e-6, schema))):
        assert printable(text.replace("\n", "")) == text.replace("\n", "")
    with pytest.raises(InputError) as refused:
        PrivSyn(1.0, 1e-6, schema, target=EVIL)
    assert printable(str(refused.value)) == str(refused.value)
