"""A file in which values are looked up is published: a regular file of some size, and the ledger names it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import run

from privsyn import Categorical, Database, InputError, Lookup, Numerical, PrivSyn, Schema, Table, read_schema
from privsyn import files as limits
from privsyn.release.acceptance.criteria import read_criteria
from privsyn.table.database import lookups

TOWNS = "town,country\nOslo,Norway\nRome,Italy\n"
SCHEMA = """\
columns:
  town: {{kind: categorical, values: [Oslo, Rome]}}
  country: {{kind: categorical}}
constraints:
- lookup: {path}
  by: town
  gives: country
"""
TABLES = """\
tables:
  homes: {{key: home, columns: {{town: {{kind: categorical}}}}}}
  towns: {{public: {path}, key: town}}
"""


def schema(folder, path, text=SCHEMA):
    (folder / "s.yaml").write_text(text.format(path=path))
    return folder / "s.yaml"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="the system has no such device")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/stdin", "pipe", "."])
@pytest.mark.parametrize("kind", ["lookup", "public", "schema", "policy", "accept", "budget"])
def test_a_device_or_a_pipe_is_refused_at_once(device, kind, tmp_path):
    """It may have no end, or wait for ever; so another process reads it."""
    if device == "pipe":
        device = str(tmp_path / "pipe.csv")
        os.mkfifo(device)
    (tmp_path / "t.csv").write_text("town,country\nOslo,Norway\n")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "homes.csv").write_text("home,town\n1,Oslo\n")
    data, given = "t.csv", ["--schema", schema(tmp_path, device)]
    if kind == "public":
        link = tmp_path / "towns.csv"
        link.symlink_to(device)
        data, given = "t", ["--schema", schema(tmp_path, link, TABLES)]
    elif kind != "lookup":
        given = [f"--{kind}", device]
    command = [sys.executable, "-m", "privsyn", "synth", data, "out.csv", "--epsilon", "1", *given]
    done = subprocess.run(
        list(map(str, command)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.PIPE,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out.csv").exists()


def test_a_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    (tmp_path / "towns.csv").write_text(TOWNS)
    whole = schema(tmp_path, "towns.csv")
    read_schema(whole)
    monkeypatch.setattr(limits.read_small, "__defaults__", (20,))
    for read in (
        lambda: Lookup(tmp_path / "towns.csv", "town", "country").meant({}),
        lambda: read_schema(whole),
    ):
        with pytest.raises(InputError, match="is larger than 0 MB: is it the right file"):
            read()
    (tmp_path / "accept.yaml").write_text("criteria: " + "#" * 100)
    with pytest.raises(InputError, match="is larger than"):
        read_criteria(tmp_path / "accept.yaml")
    monkeypatch.setattr(lookups, "MOST_BYTES", 20)
    with pytest.raises(InputError, match="is larger than"):
        lookups.LookupTable.of(tmp_path / "towns.csv", "town")


def test_the_ledger_and_the_output_name_the_file(tmp_path, capsys, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    public = tmp_path / "elsewhere" / "towns.csv"
    public.write_text(TOWNS)
    rows = pd.DataFrame({"town": ["Oslo", "Rome"] * 50, "country": ["Norway", "Italy"] * 50})
    rows.to_csv("t.csv", index=False)
    done = run(
        capsys, "synth", "t.csv", "out.csv", "--epsilon", 5, "--schema", schema(tmp_path / "work", public)
    )
    assert done.code == 0
    assert f"{public}: published with the synthetic table" in done.out
    assert "the table in the file 'towns.csv', in which values are looked up" in done.out
    public.rename("towns.csv")
    near = run(
        capsys, "synth", "t.csv", "o.csv", "--epsilon", 5, "--schema", schema(tmp_path / "work", "towns.csv")
    )
    assert "published with the synthetic table" not in near.out
    facts = PrivSyn(5.0, schema=schema(tmp_path / "work", "towns.csv")).fit(rows).ledger_.public_inputs
    assert sum("'towns.csv'" in fact for fact in facts) == 1
    assert not any(str(tmp_path) in fact for fact in facts)


def test_the_ledger_of_linked_tables_names_the_files(tmp_path):
    (tmp_path / "towns.csv").write_text(TOWNS)
    homes = Schema({"town": Categorical()})
    rooms = Schema(
        {"town": Categorical(["Oslo", "Rome"]), "country": Categorical(), "size": Numerical(0, 9)},
        constraints=[Lookup(tmp_path / "towns.csv", "town", "country")],
    )
    database = Database(
        {
            "homes": Table(homes, key="home", lookups={"town": "towns"}),
            "rooms": Table(rooms, parent="homes", link="home"),
            "towns": Table(public=tmp_path / "towns.csv", key="town"),
        }
    )
    home = np.arange(50)
    towns = np.where(home % 2, "Oslo", "Rome")
    tables = {
        "homes": pd.DataFrame({"home": home, "town": towns}),
        "rooms": pd.DataFrame(
            {"home": home, "town": towns, "country": np.where(home % 2, "Norway", "Italy"), "size": home % 9}
        ),
    }
    facts = PrivSyn(20.0, 1e-6, database).fit(tables).ledger_.public_inputs
    assert sum("'towns.csv'" in fact for fact in facts) == 2
    assert any("the table 'towns' of the file 'towns.csv'" in fact for fact in facts)
