"""The publisher's words go from the schema to the model and all pages, and are checked."""

from __future__ import annotations

import json
from datetime import date
from importlib import resources

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from refusals import refuses

from privsyn import (
    About,
    Categorical,
    Database,
    Numerical,
    PrivSyn,
    Schema,
    Table,
    evaluate,
    load,
    report,
    sheet,
)
from privsyn.table.database.yaml_form import as_database, database_to_plain
from privsyn.table.schema.yaml_file import dump, from_plain, read_about_file, to_plain

WORDS = About(
    title="Visits <b>",
    description="One row for each visit.\nNot of persons.",
    publisher="Office of Health",
    contact="data@health.example",
    licence="cc-by-4.0",
    issued=date(2026, 11, 29),
    keywords=["visits", "hospitals"],
    language="en",
    spatial=["Austria"],
    temporal="2025-01-01/2025-12-31",
    identifier="10.1234/visits",
    homepage="https://health.example/visits",
)
COLUMNS = {"ward": Categorical(["a", "b"]), "age": Numerical(0, 99, integer=True)}
ROWS = pd.DataFrame({"ward": ["a", "b"] * 300, "age": np.arange(600) % 100})


def check_pages(release, folder, real, schema):
    """Save the release and read it back; its pages and the report begin with the words."""
    release.save(folder / "model.privsyn")
    read = load(folder / "model.privsyn")
    assert read.about == WORDS
    assert read.digest == release.digest
    report(read, folder / "page.html")
    sheet(read, folder / "sheet.md")
    evaluate(real, read.sample(seed=0), schema, models=False, report=folder / "report.html")
    for page in ("page.html", "report.html"):
        head = (folder / page).read_text().partition("</header>")[0]
        assert "<h1>Visits &lt;b&gt;</h1>" in head
        for words in ("Office of Health, 2026-11-29", "CC-BY-4.0", "data@health.example", "Not of persons."):
            assert words in head, (page, words)
    text = (folder / "sheet.md").read_text()
    assert text.startswith("# Data sheet: Visits &lt;b&gt;\n")
    assert "- **Licence:** CC-BY-4.0\n" in text


def test_the_words_on_a_table_reach_the_model_and_its_pages(tmp_path):
    schema = Schema(COLUMNS, about=WORDS)
    check_pages(PrivSyn(1.0, 1e-6, schema, seed=0).fit(ROWS).release_, tmp_path, ROWS, schema)


@pytest.mark.slow
def test_the_words_on_linked_tables_reach_the_model_and_its_pages(tmp_path):
    persons = pd.DataFrame({"id": np.arange(300), "age": np.arange(300) % 100})
    visits = pd.DataFrame({"id": np.arange(600) // 2, "ward": ["a", "b"] * 300})
    tables = {
        "persons": Table(Schema({"age": COLUMNS["age"]}), key="id"),
        "visits": Table(
            Schema({"ward": COLUMNS["ward"]}, about={"title": "Stays"}), parent="persons", link="id"
        ),
    }
    database, real = Database(tables, about=WORDS), {"persons": persons, "visits": visits}
    release = PrivSyn(3.0, 1e-6, database, seed=0).fit(real).release_
    check_pages(release, tmp_path, real, database)
    assert load(tmp_path / "model.privsyn").tables["visits"].codec.schema.about == About(title="Stays")
    (tmp_path / "tables.yaml").write_text(dump(database_to_plain(database)))
    assert as_database(tmp_path / "tables.yaml") == database


def test_a_schema_of_words_alone_leaves_all_columns_open(tmp_path):
    (tmp_path / "words.yaml").write_text("about: {title: Visits, issued: 2026}\n")
    model = PrivSyn(1.0, 1e-6, tmp_path / "words.yaml", seed=0).fit(ROWS)
    assert model.release_.about == About(title="Visits", issued="2026")
    assert [*model.release_.codec.names] == ["ward", "age"]


def test_what_is_written_is_read_again_and_is_valid():
    schema = Schema(COLUMNS, about=WORDS)
    plain = to_plain(schema)
    assert from_plain(plain) == schema
    text = resources.files("privsyn.table.schema").joinpath("schema.schema.json").read_text("utf-8")
    validator = Draft202012Validator(json.loads(text))
    validator.validate(plain)
    assert not validator.is_valid(plain | {"about": {"titel": "Visits"}})


@pytest.mark.parametrize(
    ("plain", "words"),
    [
        ({"titel": "a"}, "about: 'titel' is not known here: .* did you mean 'title'"),
        ({"title": "a\nb"}, "about: title is one line"),
        ({"title": 3}, "about: title is a text"),
        ({"contact": "an office"}, "about: contact is an e-mail address or a URL"),
        ({"licence": "free to use"}, "about: licence is an SPDX identifier such as CC-BY-4.0, or a URL"),
        ({"issued": "29.11.2026"}, "about: issued has a date such as 2026-11-29"),
        ({"issued": "2026-02-30"}, "about: issued has a date such as 2026-11-29"),
        ({"temporal": "2016/2015"}, "about: temporal is a date, or a start and an end"),
        ({"language": "English"}, "about: language is a code such as en"),
        ({"keywords": {"a": 1}}, "about: keywords is a text or a list of texts"),
        ({"homepage": "ftp://a"}, "about: homepage is a URL"),
        ("Visits", "'about:' is a mapping"),
    ],
)
def test_wrong_words_are_refused_in_one_line(plain, words):
    with refuses(words):
        from_plain(to_plain(Schema(COLUMNS)) | {"about": plain})


@pytest.mark.parametrize("text", ["- title: Visits\n", "Visits\n", "about: Visits\n"])
def test_a_file_of_words_that_holds_no_settings_is_refused(text, tmp_path):
    (tmp_path / "words.yaml").write_text(text)
    with refuses("words.yaml: 'about:' is a mapping"):
        read_about_file(tmp_path / "words.yaml")


def test_one_of_several_tables_has_no_publisher_of_its_own():
    table = Table(Schema(COLUMNS, about=About(publisher="Office")), key="id")
    with refuses("table 'persons': about: publisher is of all tables"):
        Database({"persons": table})
