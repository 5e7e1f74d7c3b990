"""The data sheet: filled from the release alone, and its metadata are JSON-LD that programs can read."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import CANARY, fill, run, visible

from privsyn import Categorical, Datetime, Identifier, Numerical, PrivSyn, Schema, Text, load, sheet
from privsyn.errors import ColumnWarning
from privsyn.pages.sections import in_markdown
from privsyn.studies.publication.catalogues.croissant import CROISSANT, RESPONSIBLE
from privsyn.studies.publication.data_sheet import render
from privsyn.studies.publication.public_page import render as render_page

EVIL = "a|b <script>*x*"
SCHEMA = Schema(
    {
        EVIL: Categorical(["x", "```"], nullable=False),
        "pay": Numerical(0, 100, integer=True),
        "real": Numerical(0.0, 1.0),
        "flag": Categorical([True, False]),
        "day": Datetime("2015-01-01", "2015-12-31"),
        "id": Identifier(),
        "note": Text(),
    }
)


@pytest.fixture(scope="module")
def release():
    rows = pd.DataFrame(
        {
            EVIL: ["x", "```"] * 200,
            "pay": range(400),
            "real": [0.5] * 400,
            "flag": [True, False] * 200,
            "day": pd.to_datetime(["2015-03-04"] * 400),
            "id": range(400),
            "note": [CANARY] * 400,
        }
    )
    accept = {"risk": 1e-9, "criteria": [{"margin": ["pay"], "error": 1e-4}]}  # so it is never met by chance
    with pytest.warns(ColumnWarning):
        return PrivSyn(2.0, 1e-6, SCHEMA, accept=accept).fit(rows).release_


@pytest.mark.parametrize("unit", [None, "who"])
def test_page_and_sheet_have_one_expected_error(unit):
    """Rows that are drawn differ from the release: their error is another number."""
    rng = np.random.default_rng(0)
    who, year = np.repeat(np.arange(150), 3), np.tile([1, 2, 3], 150)
    rows = pd.DataFrame({"who": who, "year": year, "pay": rng.integers(0, 50, 450)})
    bounds = {"year": Numerical(1, 3, integer=True), "pay": Numerical(0, 50, integer=True)}
    of_persons = {"unit": unit, "identifiers": True, "order": "year"} if unit else {}
    schema = Schema(bounds if unit else {"who": Identifier()} | bounds)
    release = PrivSyn(1.0, 1e-9, schema, **of_persons).fit(rows).release_
    text, page = render(release), visible(render_page(release))
    named = re.search(r"columns have an expected error of ([\d.]+%) on average", text)[1]
    assert f"equal to the private one, {named} of its rows would have to change on average" in page
    assert f"pay expected error {re.search(r'pay [|] .* [|] ([0-9.]+%) [|]', text)[1]}" in page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rows_per_unit", "rows_per_unit"),
        ("a__b é_1", "a__b é_1"),
        ("_a_ __b__ c_", "&#95;a&#95; &#95;&#95;b&#95;&#95; c&#95;"),
        ("a*b*|`c`", "a&#42;b&#42;&#124;&#96;c&#96;"),
        ("<b>&[x](y)!\\", "&lt;b&gt;&amp;&#91;x&#93;(y)&#33;&#92;"),
    ],
)
def test_only_signs_that_markdown_would_obey_are_escaped(text, shown):
    """An underscore inside a word was shown as its code by programs that do not decode it."""
    assert str(in_markdown(text)) == shown


def described(text):
    """The metadata of a sheet."""
    return json.loads(re.search(r"^```json\n(.*?)^```$", text, re.S | re.M)[1])


def test_the_sheet_is_made_of_the_release_alone_and_escapes_names(release, tmp_path):
    release.save(tmp_path / "m.privsyn")
    text = render(release)
    assert render(load(tmp_path / "m.privsyn")) == text
    assert f"SHA-256 `{release.digest}`" in text
    assert CANARY not in text
    assert "<script" not in text
    assert "a&#124;b &lt;script&gt;&#42;x&#42;" in text
    assert "epsilon 2, delta 1e-06" in text
    assert "Free text was left out: note." in text
    assert "total variation of pay at most 0.0001: NOT MET" in text
    assert "Not accepted" in text
    assert text.count("TODO") >= 5
    assert "\n| pay | numerical | 0 to 100 |" in text


def test_the_metadata_are_a_dataset_of_schema_org(release):
    plain = described(render(release))
    assert plain["@type"] == "sc:Dataset"
    names = [variable["name"] for variable in plain["variableMeasured"]]
    assert names == [name for name in SCHEMA.columns if name != "note"]
    pay = next(variable for variable in plain["variableMeasured"] if variable["name"] == "pay")
    assert (pay["minValue"], pay["maxValue"]) == (0, 100)
    assert "distribution" not in plain
    assert "conformsTo" not in plain


def test_with_a_file_the_metadata_are_croissant(release, tmp_path):
    file = tmp_path / "rows.csv"
    release.sample_to(file, 50)
    sheet(release, tmp_path / "sheet.md", data=file)
    plain = described((tmp_path / "sheet.md").read_text())
    assert plain["conformsTo"] == [CROISSANT, RESPONSIBLE]
    (distribution,) = plain["distribution"]
    assert distribution["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    (rows,) = plain["recordSet"]
    columns = [field["source"]["extract"]["column"] for field in rows["field"]]
    assert columns == pd.read_csv(file).columns.tolist()
    types = {field["name"]: field["dataType"] for field in rows["field"]}
    assert types["pay"] == "sc:Integer"
    assert (types["real"], types["flag"], types["day"]) == ("sc:Float", "sc:Boolean", "sc:Date")


def test_a_seeded_release_says_first_that_it_is_not_private():
    rows = pd.DataFrame({"a": ["x", "y"] * 50})
    text = render(PrivSyn(1.0, 1e-6, Schema({"a": Categorical(["x", "y"])}), seed=0).fit(rows).release_)
    assert text.index("NOT PRIVATE") < text.index("## Motivation")
    assert described(text)["description"].startswith("NOT PRIVATE")
    assert "right with probability" not in text


def test_the_commands_write_a_sheet(tmp_path, monkeypatch, capsys):
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    settings = ("--epsilon", 1, "--schema", "schema.yaml", "--model", "m.privsyn")
    made = run(capsys, "synth", "data.csv", "out.csv", *settings, "--sheet", "sheet.md")
    assert made.code == 0
    assert "sheet.md: the data sheet" in made.out
    assert described(Path("sheet.md").read_text())["name"] == "Synthetic table: out"
    assert CANARY not in Path("sheet.md").read_text()
    assert run(capsys, "report", "m.privsyn", "page.html", "--sheet", "again.md").code == 0
    assert described(Path("again.md").read_text())["name"] == "Synthetic table"
    wrong = run(capsys, "report", "m.privsyn", "other.html", "--sheet", "again.txt")
    assert (wrong.code, "let its name end in .md" in wrong.err) == (2, True)
