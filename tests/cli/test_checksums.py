"""The list of SHA-512 of what a run published: true of each file, checked by `sha512sum`, signed by a key."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from command import CANARY, run

from privsyn.cli.common.checksums import Checksums
from privsyn.errors import InputError

SYNTH = ("synth", "data.csv", "out.csv", "--epsilon", 1, "--schema", "schema.yaml")
OUTPUTS = {
    "--model": "model.privsyn",
    "--ledger": "ledger.json",
    "--public-report": "public.html",
    "--sheet": "sheet.md",
}
ALL = [word for pair in OUTPUTS.items() for word in pair]
LIST = "SHA512SUMS"


def by_name(path):
    """The digest of each file on a list."""
    return {
        name: digest for digest, name in (line.split("  ") for line in Path(path).read_text().splitlines())
    }


def true_of(names, folder="."):
    return {name: hashlib.sha512(Path(folder, name).read_bytes()).hexdigest() for name in names}


def check(path=LIST, folder="."):
    command = ["sha512sum", "--check", "--strict", "--quiet", path]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def key(tmp_path_factory):
    """A key without a passphrase, in a folder of its own."""
    path = tmp_path_factory.mktemp("ssh") / "id"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "office", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def verified(path, key):
    """Whether the signature beside a list is that of the key, by the tool of whoever reads it."""
    signers = key.with_name("allowed")
    signers.write_text(f"office {key.with_suffix('.pub').read_text()}")
    command = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", "office", "-n", "file", "-s", f"{path}.sig"]
    return (
        subprocess.run(command, input=Path(path).read_bytes(), capture_output=True, check=False).returncode
        == 0
    )


@pytest.mark.slow
def test_each_output_is_on_the_list_and_what_must_not_be_published_is_not(folder, capsys):
    done = run(capsys, *SYNTH, *ALL, "--report", "private.html", "--checksums", LIST, "--budget", "b.jsonl")
    assert done.code == 0, done.err
    assert f"{LIST}: the SHA-512 of each file that may be published" in done.out
    assert by_name(LIST) == true_of(["out.csv", *OUTPUTS.values()])
    assert check().returncode == 0
    assert not Path(f"{LIST}.sig").exists()
    assert CANARY not in Path(LIST).read_text()
    Path("out.csv").write_text("changed\n")
    assert "out.csv: FAILED" in check().stdout


def test_a_model_that_is_kept_only_until_all_is_written_is_not_on_the_list(folder, capsys):
    assert run(capsys, *SYNTH, "--checksums", LIST).code == 0
    assert by_name(LIST) == true_of(["out.csv"])


def test_names_are_relative_to_the_list_and_a_database_is_its_file(folder, capsys):
    Path("lists").mkdir()
    data = ("synth", "data.csv", "made.sqlite::people", "--epsilon", 1, "--schema", "schema.yaml")
    assert run(capsys, *data, "--checksums", f"lists/{LIST}").code == 0
    assert by_name(f"lists/{LIST}") == true_of(["../made.sqlite"], "lists")
    assert check(folder="lists").returncode == 0


def test_an_existing_database_may_have_private_tables_and_gets_no_list(folder, capsys):
    """A digest of their file would confirm guesses of their rows, and call them publishable."""
    with sqlite3.connect("made.sqlite") as database:
        database.execute("create table patients (name text)")
    before = Path("made.sqlite").read_bytes()
    data = ("synth", "data.csv", "made.sqlite::people", "--epsilon", 1, "--schema", "schema.yaml")
    listed = (*data, "--budget", "b.jsonl", "--checksums", LIST)
    assert "made.sqlite exists already" in refused(folder, run(capsys, *listed))
    assert Path("made.sqlite").read_bytes() == before
    Path("linked.yaml").write_text(LINKED)
    Path("in").mkdir()
    linked = ("synth", "in", "made.sqlite", "--epsilon", 1, "--schema", "linked.yaml", "--checksums", LIST)
    assert "made.sqlite exists already" in refused(folder, run(capsys, *linked))


def test_what_can_be_repeated_from_its_seed_gets_no_list(folder, capsys):
    listed = (*SYNTH, "--seed", 1, "--budget", "b.jsonl", "--checksums", LIST)
    assert "a run with --seed is NOT PRIVATE" in refused(folder, run(capsys, *listed))


LINKED = """\
tables:
  homes: {key: home, columns: {region: {kind: categorical, values: [n, s]}}}
  trips: {parent: homes, link: home, columns: {km: {kind: numerical, low: 0, high: 9, integer: true}}}
"""


def test_of_a_folder_of_linked_tables_each_file_is_on_the_list(folder, capsys, key):
    Path("in").mkdir()
    pd.DataFrame({"home": range(60), "region": ["n", "s"] * 30}).to_csv("in/homes.csv", index=False)
    pd.DataFrame({"home": range(60), "km": [1, 2, 3] * 20}).to_csv("in/trips.csv", index=False)
    Path("linked.yaml").write_text(LINKED)
    linked = ("synth", "in", "made", "--epsilon", 50, "--schema", "linked.yaml", "--sheet", "sheet.md")
    done = run(capsys, *linked, "--checksums", LIST, "--sign", key)
    assert done.code == 0, done.err
    assert by_name(LIST) == true_of(["made/homes.csv", "made/trips.csv", "sheet.md"])
    assert verified(LIST, key)
    assert f"{LIST}.sig: who signed that list" in done.out


@pytest.mark.parametrize("name", ["a b.csv", "naïve.csv", "new\nline.csv", "back\\slash.csv", "-dash.csv"])
def test_sha512sum_reads_the_line_of_any_name(name, tmp_path):
    file = tmp_path / name
    file.write_text("1\n")
    Checksums(tmp_path / LIST).write([file], written := [])
    assert written == [tmp_path / LIST]
    told = check(folder=tmp_path)
    assert (told.returncode, told.stderr) == (0, "")
    command = ["sha512sum", "--", name]
    assert (tmp_path / LIST).read_bytes() == subprocess.check_output(command, cwd=tmp_path)


def test_names_lead_from_the_folder_in_which_a_list_is_really(tmp_path):
    for name in ("there/deep", "here"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "here" / "lists").symlink_to(tmp_path / "there" / "deep")
    table = tmp_path / "here" / "out.csv"
    table.write_text("1\n")
    Checksums(tmp_path / "here" / "lists" / LIST).write([table], [])
    assert check(folder=tmp_path / "here" / "lists").returncode == 0


def test_a_list_is_signed_and_a_changed_one_is_not(folder, capsys, key):
    assert run(capsys, *SYNTH, "--checksums", LIST, "--sign", key).code == 0
    assert verified(LIST, key)
    Path(LIST).write_text(Path(LIST).read_text().replace("out.csv", "other.csv"))
    assert not verified(LIST, key)


def refused(folder, outcome):
    """The one line of a run that was refused before it spent anything."""
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert not list(folder.glob("out*")) + list(folder.glob("*.jsonl")) + list(folder.glob(f"{LIST}*"))
    return outcome.err


def test_a_key_that_does_not_sign_is_refused_before_anything_is_spent(folder, capsys, key, monkeypatch):
    signed = (*SYNTH, "--budget", "b.jsonl", "--checksums", LIST, "--sign")
    assert "give both" in refused(folder, run(capsys, *SYNTH, "--sign", key))
    assert "there is no such file" in refused(folder, run(capsys, *signed, "none"))
    Path("no_key").write_text("text\n")
    Path("no_key").chmod(0o600)
    assert "--sign no_key: ssh-keygen does not sign" in refused(folder, run(capsys, *signed, "no_key"))
    Path("bin").mkdir()
    monkeypatch.setenv("PATH", os.fspath(folder / "bin"))
    assert "--sign needs ssh-keygen" in refused(folder, run(capsys, *signed, key))


def test_a_signature_of_an_earlier_list_does_not_stay_beside_an_unsigned_one(folder, capsys):
    Path(f"{LIST}.sig").write_text("of another list\n")
    told = run(capsys, *SYNTH, "--checksums", LIST, "--force")
    assert told.code == 2
    assert f"{LIST}.sig signs another list: sign the new one with --sign, or remove that file" in told.err
    assert not list(folder.glob("out*"))


def test_the_list_and_its_signature_are_no_other_file(folder, capsys, key):
    for name, words in {
        "out.csv": "--checksums out.csv: is OUT too",
        "data.csv": "--checksums data.csv: is an input too",
        "none/list": "there is no folder none",
    }.items():
        assert words in run(capsys, *SYNTH, "--checksums", name).err
    both = (*SYNTH, "--ledger", f"{LIST}.sig", "--checksums", LIST, "--sign", key)
    assert f"the signature {LIST}.sig: is --ledger too" in run(capsys, *both).err
    assert (
        f"--model {key}: is an input too"
        in run(capsys, *SYNTH, "--model", key, "--force", "--checksums", LIST, "--sign", key).err
    )


@pytest.mark.slow
def test_a_signature_that_fails_after_the_run_loses_nothing(folder, capsys, key, monkeypatch):
    """As of a key that was taken away meanwhile."""
    sign, calls = Checksums._sign, []

    def once(self, content):
        calls.append(content)
        if len(calls) > 1:
            raise InputError("--sign: the key is gone")
        return sign(self, content)

    monkeypatch.setattr(Checksums, "_sign", once)
    Path(f"{LIST}.sig").write_text("of an earlier list\n")
    done = run(capsys, *SYNTH, *ALL, "--checksums", LIST, "--sign", key, "--force")
    assert done.code == 2
    names = ", ".join(["model.privsyn", "ledger.json", "out.csv", "public.html", "sheet.md", LIST])
    assert f"the key is gone; written: {names}" in done.err
    assert by_name(LIST) == true_of(["out.csv", *OUTPUTS.values()])
    assert not Path(f"{LIST}.sig").exists()
    calls.clear()
    done = run(capsys, *SYNTH, "--checksums", LIST, "--sign", key, "--force")
    assert "`privsyn sample out.csv.rescue.privsyn OUT` draws from the model" in done.err
    assert run(capsys, "sample", "out.csv.rescue.privsyn", "again.csv").code == 0


def test_a_table_that_is_not_accepted_has_no_list(folder, capsys):
    Path("criteria.yaml").write_text("criteria: [{margin: [age, pay], error: 0.0001}]\n")
    done = run(capsys, *SYNTH, *ALL, "--accept", "criteria.yaml", "--checksums", LIST)
    assert done.code == 1
    assert not Path(LIST).exists()
