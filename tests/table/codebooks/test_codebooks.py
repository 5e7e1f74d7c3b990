"""Codebooks of each format become schemas: what they say is declared, and what they lack is left open."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from codebook_files import DDI, FRICTIONLESS, KINDS, SQL, write
from command import CANARY, run
from refusals import refuses

import privsyn
from privsyn import Categorical, Database, Datetime, Identifier, Numerical, Text
from privsyn.table.codebooks.readers import JSON


def columns_of(path, table=None):
    schema = privsyn.read_codebook(path, table)
    return dict((schema.tables["people"].schema if isinstance(schema, Database) else schema).columns)


EXPECTED = {
    "people.csv-metadata.json": {
        "id": Identifier(),
        "age": Numerical(0, 110, integer=True, missing="NA"),
        "smokes": Categorical(["N", "J"], nullable=False, missing="NA"),
        "seen": Datetime(format="%d.%m.%Y", missing="NA"),
        "ward": Categorical(["east", "west"], missing="NA"),
        "tags": Text(),
        "visits": Numerical(integer=True, missing="NA"),
    },
    "ddi.xml": {
        "sex": Categorical([1, 2], missing="9"),
        "age": Numerical(0, 110, integer=True, missing=["999", "999.0"]),
        "health": Categorical(["a", "b"], ordered=True),
        "pay": Numerical(decimals=2),
    },
    "redcap.csv": {
        "record": Identifier(),
        "sex": Categorical([1, 2], nullable=False),
        "age": Numerical(0, 110, integer=True, nullable=False),
        "name": Identifier(),
        "born": Datetime(),
        "weight": Numerical(30, 200, decimals=1),
        "sports___1": Categorical([0, 1]),
        "sports___2": Categorical([0, 1]),
        "pregnant": Categorical([1, 0]),
        "remark": Text(),
        "base_complete": Categorical([0, 1, 2]),
    },
    "person.schema.json": {
        "sex": Categorical([1, 2], nullable=False),
        "age": Numerical(0, 110, integer=True, nullable=False),
        "ward": Categorical(["east", "west"]),
        "pay": Numerical(0, 10000, step=0.5),
        "mail": Identifier(),
        "seen": Datetime(),
        "far": Categorical(),
        "tags": Text(),
    },
    "people.sav": {
        "sex": Categorical([1, 2], missing="9"),
        "age": Numerical(
            integer=True, missing=[*map(str, range(900, 1000)), *(f"{n}.0" for n in range(900, 1000))]
        ),
        "score": Numerical(),
    },
    "people.dta": {"sex": Categorical([1, 2, 9]), "age": Numerical(integer=True), "score": Numerical()},
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_codebook_of_one_table_is_its_schema(tmp_path, kind):
    assert columns_of(write(tmp_path, kind)) == EXPECTED[kind]


def test_a_data_package_is_a_database_whose_public_table_is_named(tmp_path):
    path = write(tmp_path, "datapackage.json")
    people = columns_of(path, "people")
    assert people == {
        "id": Identifier(),
        "sex": Categorical([1, 2], nullable=False),
        "age": Numerical(0, 110, integer=True),
        "pay": Numerical(),
        "seen": Datetime(format="%d.%m.%Y"),
        "health": Categorical(["bad", "fair", "good"], ordered=True),
        "smokes": Categorical(["N", "J"]),
        "mail": Identifier(),
        "town": Categorical(),
        "ward": Categorical(["east", "west"]),
        "shape": Text(),
    }
    assert privsyn.read_codebook(path, "people").csv.delimiter == ";"
    database = privsyn.read_codebook(path)
    assert database.about.line == "A survey of people. Licence: CC0-1.0."
    assert database.names == ("people", "visits")
    assert (database.tables["visits"].link, database.tables["visits"].key) == ("person", "visit")
    assert database.tables["visits"].schema.columns["drug"] == Categorical()  # its table is not private


def test_sql_gives_rules_keys_links_and_no_row(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, "people.sql")
    database = privsyn.read_codebook(path)
    people = database.tables["people"]
    assert dict(people.schema.columns) == {
        "sex": Categorical(["m", "f"], nullable=False),
        "age": Numerical(0, 110, integer=True),
        "mood": Categorical(["bad", "good"]),
        "part": Numerical(0, 1, decimals=2),
        "first_seen": Datetime("2020-01-01", "2020-12-31"),
        "last_seen": Datetime(),
    }
    assert (people.key, dict(people.dealt)) == ("id", {"boss": "people"})
    assert [rule.columns for rule in people.schema.constraints] == [("first_seen", "last_seen")]
    assert (database.tables["visits"].parent, database.tables["visits"].link) == ("people", "person")
    done = run(capsys, "schema", "--from", "people.sql")
    assert done.code == 0
    assert "NOT DECLARED: CHECK" in done.out
    assert "In euros" in done.out
    assert CANARY not in done.out + done.err
    assert "no row was read" in done.err
    done = run(capsys, "schema", "--from", "people.sql", "--persons", "visits")
    assert "NOT DECLARED: the table people" in done.out


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_writes_what_it_says_and_rows_are_made_of_it(tmp_path, capsys, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, kind)
    done = run(capsys, "schema", "--from", kind, "-o", "schema.yaml")
    assert done.code == 0, done.err
    text = (tmp_path / "schema.yaml").read_text()
    assert "READ" not in text
    assert text.count("LEFT OPEN: ") == int(done.err.partition("; ")[2].split()[0])
    assert run(capsys, "schema", "--from", kind, "-o", "schema.yaml").code == 2  # it exists


def test_a_codebook_comes_before_rows_which_are_read_for_what_it_lacks(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "ddi.xml")
    rows = {
        "sex": [1, 2] * 60,
        "age": [20, 30, 130, 999] * 30,
        "pay": [number / 4 for number in range(120)],
        "town": ["x", "y"] * 60,
    }
    pd.DataFrame(rows).to_csv("people.csv", index=False)
    done = run(capsys, "schema", "people.csv", "--from", "ddi.xml", "-o", "s.yaml")
    assert done.code == 0, done.err
    columns, text = privsyn.read_schema("s.yaml").columns, (tmp_path / "s.yaml").read_text()
    assert columns["age"] == EXPECTED["ddi.xml"]["age"]
    assert columns["pay"].low is not None  # read from the rows
    assert "NOT IN THE CODEBOOK" in text
    assert "NOT IN THE FILE: column health" in text
    assert privsyn.read_schema("s.yaml").about.title == "A survey of people"
    about_age = text[: text.index("  age:")].splitlines()[-1]
    assert about_age == "  # Age"
    done = run(capsys, "schema", "people.csv", "--from", "ddi.xml", "--from-dtypes", "-o", "unread.yaml")
    assert privsyn.read_schema("unread.yaml").columns["pay"].low is None
    done = run(capsys, "schema", "people.csv", "--check", "ddi.xml")
    assert done.code == 1
    assert "the table lacks column health of the codebook" in done.out
    assert "1 column of the table: 'town'" in done.out
    assert "column 'age': 30 of 120 cells do not fit" in done.out
    assert "NOT PRIVATE" in done.err


def test_a_file_with_labels_has_labels_and_its_codes_are_explained(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "people.sav")
    done = run(capsys, "schema", "people.sav", "--from", "people.sav", "-o", "s.yaml")
    assert done.code == 0, done.err
    assert privsyn.read_schema("s.yaml").columns["sex"] == Categorical(["male", "female"], missing="9")
    assert "1 = male, 2 = female, 9 = refused (missing)" in (tmp_path / "s.yaml").read_text()


def test_several_tables_get_the_keys_of_the_codebook(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "people.sql")
    (tmp_path / "rows").mkdir()
    people = {"id": range(60), "sex": ["m", "f"] * 30, "age": range(60), "mood": ["bad", "good"] * 30}
    pd.DataFrame(people).to_csv("rows/people.csv", index=False)
    visits = {"visit": range(120), "person": [*range(60)] * 2, "cost": [1.5, 2.5] * 60}
    pd.DataFrame(visits).to_csv("rows/visits.csv", index=False)
    done = run(capsys, "schema", "rows", "--from", "people.sql", "-o", "s.yaml")
    assert done.code == 0, done.err
    text = (tmp_path / "s.yaml").read_text()
    assert "The link was declared" in text
    assert "age: {kind: numerical, low: 0, high: 110, integer: true}" in text
    assert "NOT IN THE FILE: columns part, first_seen, last_seen, boss" in text


@pytest.mark.parametrize("ends", [("minimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum")])
def test_bounds_between_whole_numbers_leave_those_inside(tmp_path, ends):
    bounds = dict(zip(ends, (-4.5, 4.5), strict=True))
    for plain in (
        {"fields": [{"name": "a", "type": "integer", "constraints": bounds}]},
        {"properties": {"a": {"type": "integer", **bounds}}},
    ):
        path = tmp_path / "codebook.json"
        path.write_text(json.dumps(plain))
        column = privsyn.read_codebook(path).columns["a"]
        assert (column.low, column.high) == (-4, 4)


def _fields(**constraints: object) -> str:
    return json.dumps({"fields": [{"name": "a", "type": "integer", "constraints": constraints}]})


MALFORMED = {
    "broken.json": "{",
    "list.json": "[1, 2]",
    "fields.json": '{"fields": 3}',
    "nameless.json": '{"fields": [{"type": "integer"}]}',
    "twice.json": '{"fields": [{"name": "a"}, {"name": "a"}]}',
    "bounds.json": _fields(minimum=5, maximum=1),
    "words.json": _fields(enum=["x", 1], minimum=0, maximum=9),
    "objects.json": '{"fields": [{"name": "a", "type": "string", "constraints": {"enum": [{"b": 1}]}}]}',
    "strict.json": _fields(exclusiveMinimum="x"),
    "infinite.json": _fields(minimum=0, maximum=float("inf")),
    "empty.json": '{"resources": []}',
    "far.json": '{"resources": [{"name": "a", "schema": "https://example.org/schema.json"}]}',
    "circle.json": '{"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"$ref": "#/$defs/b"}}}',
    "ref.json": '{"properties": {"a": {"$ref": "#/nowhere"}}}',
    "csvw.json": '{"@context": "http://www.w3.org/ns/csvw", "tableSchema": "far.json"}',
    "broken.xml": "<codeBook>",
    "other.xml": "<html/>",
    "bare.xml": "<codeBook/>",
    "broken.sql": "CREATE TABLE people (id integer",
    "none.sql": "SELECT 1;",
    "apart.sql": "CREATE TABLE a (x integer); CREATE TABLE b (y integer);",
    "data.csv": "a,b\n1,2\n",
    "redcap.csv": '"Variable / Field Name","Field Type","Form Name"\nsex,radio,base\n',
    "broken.sav": "no file of SPSS",
    "only.sas7bcat": "a catalogue",
    "text.txt": "nothing",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_codebook_is_refused_in_one_line(tmp_path, capsys, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(MALFORMED[name])
    with refuses(name):
        privsyn.read_codebook(name)
    done = run(capsys, "schema", "--from", name, "-o", "schema.yaml")
    assert done.code == 2, done
    assert done.err.startswith(f"privsyn: {name}: ")
    assert done.err.count("\n") == 1
    assert not (tmp_path / "schema.yaml").exists()


def test_no_entity_of_xml_is_expanded_and_no_file_is_read(tmp_path, capsys):
    secret = tmp_path / "secret.txt"
    secret.write_text(CANARY)
    entity = f'<?xml version="1.0"?><!DOCTYPE c [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
    path = tmp_path / "ddi.xml"
    path.write_text(DDI.replace('<?xml version="1.0"?>', entity).replace("Sex", "&x;"))
    done = run(capsys, "schema", "--from", path)  # labels are comments
    assert (done.code, CANARY in done.out + done.err) == (0, False)
    assert "1 = male" in done.out


def test_what_is_asked_of_no_table_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "datapackage.json")
    for words, *arguments in (
        ("give DATA",),
        ("takes no --unit", "--from", "datapackage.json", "--unit", "id"),
        ("has no table 'persons'", "--from", "datapackage.json::persons"),
        ("--persons", "--from", "datapackage.json::people", "--persons", "people"),
        ("the codebook has no table 'peeple'", "--from", "datapackage.json", "--persons", "peeple"),
        ("no such file", "--from", "nothing.json"),
    ):
        done = run(capsys, "schema", *arguments)
        assert done.code == 2
        assert words in done.err


def test_each_json_is_read_by_one_format():
    for plain in (FRICTIONLESS, {"fields": []}):
        assert sum(reader.recognises(plain) for reader in JSON) == 1
    assert "CREATE" in SQL
