"""Catalogues are written from release and synthetic files, and the validator of each accepts it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from command import CANARY, fill, run
from refusals import refuses

from privsyn import (
    About,
    Categorical,
    CsvFormat,
    Database,
    Datetime,
    Duration,
    Identifier,
    Numerical,
    PrivSyn,
    Schema,
    Table,
    Text,
    Time,
    catalogue,
)
from privsyn.errors import ColumnWarning

FILES = ["datapackage.json", "croissant.json", "dcat.jsonld", "ddi.xml", "README.md"]
WORDS = About(
    title="Visits <b> & more",
    description="One row for each visit.",
    publisher="Office of Health",
    contact="data@health.example",
    licence="CC-BY-4.0",
    issued="2026-11-29",
    keywords=["visits", "hospitals"],
    language="en",
    spatial=["Austria"],
    temporal="2025-01-01/2025-12-31",
    identifier="10.1234/visits",
    homepage="https://health.example/visits",
    health="EHRS",
    access_body="Body <info@body.example>",
)
GERMAN = CsvFormat(delimiter=";", point=",", encoding="cp1252")
COLUMNS = {
    "ward": Categorical(["a", "b|c", "<d>"]),
    "grade": Categorical([1, 2, 3]),
    "flag": Categorical([True, False]),
    "age": Numerical(0, 99, integer=True, nullable=False),
    "pay": Numerical(0, 1000, decimals=2),
    "day": Datetime("2015-01-01", "2015-12-31"),
    "time": Datetime("2015-01-01 08:00", "2015-12-31 18:00"),
    "written": Datetime("2015-01-01", "2015-12-31", format="%d.%m.%Y"),
    "clock": Time("08:00", "18:00"),
    "stay": Duration("0 days", "9 days", unit="h"),
    "id": Identifier(),
    "note": Text(),
}


def rows(count=600):
    rng, first = np.random.default_rng(0), pd.Timestamp("2015-01-01")
    days = first + pd.to_timedelta(rng.integers(0, 300, count), unit="D")
    table = pd.DataFrame(
        {
            "ward": rng.choice(["a", "b|c", "<d>"], count),
            "grade": rng.integers(1, 4, count),
            "flag": rng.random(count) < 0.5,
            "age": rng.integers(0, 99, count),
            "pay": rng.uniform(0, 1000, count).round(2),
            "day": days,
            "time": days + pd.to_timedelta(rng.integers(8 * 3600, 18 * 3600, count), unit="s"),
            "written": days.strftime("%d.%m.%Y"),
            "clock": "09:00",
            "stay": pd.to_timedelta(rng.integers(0, 200, count), unit="h"),
            "id": range(count),
            "note": CANARY,
        }
    )
    table.loc[:60, ["ward", "pay", "day", "time"]] = None
    return table


@pytest.fixture(scope="module")
def release():
    schema = Schema(COLUMNS, about=WORDS, csv=GERMAN)
    with pytest.warns(ColumnWarning, match="note"):
        return PrivSyn(3.0, 1e-6, schema).fit(rows()).release_


@pytest.fixture(scope="module")
def folder(release, tmp_path_factory):
    """The folder of a synthetic table and its catalogues."""
    out = tmp_path_factory.mktemp("out")
    release.sample_to(out / "visits.csv", 200, seed=1)
    assert catalogue(release, out / "visits.csv") == [out / file for file in FILES]
    return out


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """The folder of linked tables with a public one, and their catalogues."""
    out = tmp_path_factory.mktemp("linked")
    wards = pd.DataFrame({"ward": ["a", "b"], "beds": [10, 20]})
    wards.to_csv(out / "wards.csv", index=False)
    tables = {
        "persons": Table(Schema({"age": COLUMNS["age"]}), key="person"),
        "visits": Table(
            Schema({"pay": COLUMNS["pay"]}, about={"title": "Stays", "description": "One row a stay."}),
            parent="persons",
            link="person",
            lookups={"ward": "wards"},
        ),
        "wards": Table(key="ward", public=out / "wards.csv"),
    }
    visits = {"person": np.arange(600) // 2, "pay": np.arange(600.0), "ward": ["a", "b"] * 300}
    persons = {"person": np.arange(300), "age": np.arange(300) % 99}
    private = {"persons": pd.DataFrame(persons), "visits": pd.DataFrame(visits)}
    release = PrivSyn(5.0, 1e-6, Database(tables, about=WORDS)).fit(private).release_
    (out / "rows").mkdir()
    for name, table in release.sample(seed=1).items():
        table.to_csv(out / "rows" / f"{name}.csv", index=False)
    catalogue(release, out / "rows")
    return out / "rows"


def read(folder, file):
    return json.loads((folder / file).read_text(encoding="utf-8"))


def test_the_files_say_what_the_release_and_the_synthetic_file_say(release, folder):
    digest = hashlib.sha256((folder / "visits.csv").read_bytes()).hexdigest()
    for file in FILES:
        text = (folder / file).read_text(encoding="utf-8")
        assert CANARY not in text
        for words in ("epsilon 3, delta 1e-06", "Office of Health", digest):
            assert words in text, (file, words)
    package = read(folder, "datapackage.json")
    assert (package["privacy"]["epsilon"], package["privacy"]["unit"]) == (3.0, "one row")
    (resource,) = package["resources"]
    assert (resource["rowCount"], resource["path"]) == (200, "visits.csv")
    names = [field["name"] for field in resource["schema"]["fields"]]
    assert names == [name for name in COLUMNS if name != "note"]
    front = yaml.safe_load((folder / "README.md").read_text().split("---\n")[1])
    assert (front["license"], front["size_categories"]) == ("cc-by-4.0", ["n<1K"])
    assert front["configs"] == [{"config_name": "default", "data_files": "visits.csv", "sep": ";"}]


def test_dcat_has_what_the_profiles_demand(folder):
    """What DCAT-AP 3 demands, and the shapes of HealthDCAT-AP for public data."""
    dataset = read(folder, "dcat.jsonld")
    of_dcat = {"dct:title", "dct:description"}
    of_health = {
        *("dct:accessRights", "dcatap:applicableLegislation", "dct:identifier", "dcat:theme"),
        *("healthdcatap:hdab", "healthdcatap:healthCategory", "healthdcatap:hasStructuredData"),
        "healthdcatap:hasVariables",
    }
    assert of_dcat | of_health <= dataset.keys()
    (distribution,) = dataset["dcat:distribution"]
    assert {"dcat:accessURL", "dcatap:applicableLegislation"} <= distribution.keys()
    for agent in ("dct:publisher", "healthdcatap:hdab"):
        assert dataset[agent]["cv:contactPoint"]["cv:email"].endswith(".example")
    (table,) = dataset["healthdcatap:hasVariables"]["csvw:table"]
    for column in table["csvw:column"]:
        assert {"csvw:name", "csvw:title", "csvw:datatype", "dct:description"} <= column.keys()


def test_without_words_nothing_is_invented(tmp_path):
    table = pd.DataFrame({"a": ["x", "y"] * 200})
    model = PrivSyn(1.0, 1e-6, Schema({"a": Categorical(["x", "y"])}), seed=0).fit(table)
    model.sample_to(tmp_path / "rows.csv", 5)
    catalogue(model, tmp_path / "rows.csv", tmp_path / "new", only=["datapackage", "dcat"])
    package, dataset = read(tmp_path / "new", "datapackage.json"), read(tmp_path / "new", "dcat.jsonld")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["datapackage.json", "dcat.jsonld"]
    assert not {"licenses", "contributors", "homepage", "created"} & package.keys()
    assert not {"dct:publisher", "dcat:contactPoint", "dcat:theme", "healthdcatap:hdab"} & dataset.keys()
    assert package["privacy"] == {"statement": model.ledger_.warning}


def test_what_is_no_synthetic_table_of_the_model_is_refused(release, tmp_path):
    pd.DataFrame({"ward": ["a"], "zeit": [1]}).to_csv(tmp_path / "other.csv", sep=";", index=False)
    with refuses("the file has no column 'grade': give the synthetic table .*, never the private one"):
        catalogue(release, tmp_path / "other.csv")
    with refuses("only 'dacat': is none of .* did you mean 'dcat'"):
        catalogue(release, tmp_path / "other.csv", only=["dacat"])
    with refuses("catalogues describe files"):
        catalogue(release, tmp_path / "rows.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["other.csv"]


def test_the_command_writes_all_files_or_some(tmp_path, monkeypatch, capsys):
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    settings = ("--epsilon=1", "--schema=schema.yaml", "--model=m.privsyn")
    assert run(capsys, "synth", "data.csv", "first.csv", *settings).code == 0
    Path("out").mkdir()
    assert run(capsys, "sample", "m.privsyn", "out/rows.csv", "--rows", 50).code == 0
    done = run(capsys, "catalogue", "m.privsyn", "out/rows.csv", "--only", "ddi", "--only", "card")
    assert done.code == 0, done.err
    assert sorted(path.name for path in Path("out").iterdir()) == ["README.md", "ddi.xml", "rows.csv"]
    assert "catalogues also ask for title, description, publisher" in done.out
    again = run(capsys, "catalogue", "m.privsyn", "out/rows.csv")
    assert (again.code, "exists already" in again.err, "--force" in again.err) == (2, True, True)
    assert not Path("out/datapackage.json").exists()
    Path("elsewhere").mkdir()
    assert run(capsys, "catalogue", "m.privsyn", "out/rows.csv", "-o", "elsewhere").code == 0
    assert sorted(path.name for path in Path("elsewhere").iterdir()) == sorted(FILES)


def test_new_identifiers_of_persons_are_a_column_too(tmp_path):
    table = pd.DataFrame({"who": np.arange(600) // 2, "ward": ["a", "b"] * 300})
    schema = Schema({"ward": Categorical(["a", "b"])}, about=About(title="Visits"))
    model = PrivSyn(3.0, 1e-6, schema, unit="who", identifiers=True).fit(table)
    model.sample(50).to_csv(tmp_path / "rows.csv", index=False)
    catalogue(model, tmp_path / "rows.csv", only=["datapackage"])
    package = read(tmp_path, "datapackage.json")
    (resource,) = package["resources"]
    assert [field["name"] for field in resource["schema"]["fields"]] == ["who", "ward"]
    assert "foreignKeys" not in resource["schema"]  # the table of persons is not published
    assert package["title"] == "Visits"
    assert "'who'" in package["privacy"]["unit"]


@pytest.fixture(params=["folder", "linked"])
def place(request):
    """The folder of one table, or of linked ones."""
    return request.getfixturevalue(request.param)


@pytest.mark.slow("each case")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the validators themselves
def test_frictionless_finds_that_the_rows_keep_the_data_package(place):
    import frictionless  # these validators take a second each to import

    report = frictionless.validate(str(place / "datapackage.json"))
    assert report.valid, report.flatten(["rowNumber", "fieldName", "type", "note"])[:5]
    table = next(iter(place.glob("*s.csv")))
    text = table.read_text(encoding="cp1252")
    try:  # it does not accept everything
        table.write_text(re.sub(r"\n[^\n]*\n", "\nnot;a,row\n", text, count=1), encoding="cp1252")
        assert not frictionless.validate(str(place / "datapackage.json")).valid
    finally:
        table.write_text(text, encoding="cp1252")


@pytest.mark.slow("each case")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the validators themselves
def test_mlcroissant_accepts_the_metadata_and_reads_the_rows(place):
    import mlcroissant

    dataset = mlcroissant.Dataset(str(place / "croissant.json"))
    assert not dataset.metadata.issues.errors
    assert dataset.metadata.data_collection.startswith("The rows are synthetic.")
    if place.name == "rows":
        for records in dataset.metadata.record_sets:
            assert next(iter(dataset.records(records.id)))


@pytest.mark.slow("each case")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the validators themselves
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # they leave files open
@pytest.mark.parametrize("ending", ["csv.gz", "parquet", "xlsx"])
def test_other_formats_are_accepted_too(release, ending, tmp_path):
    import frictionless
    import mlcroissant

    release.sample_to(tmp_path / f"rows.{ending}", 100, seed=1)
    catalogue(release, tmp_path / f"rows.{ending}")
    report = frictionless.validate(str(tmp_path / "datapackage.json"))
    assert report.valid, report.flatten(["rowNumber", "fieldName", "type", "note"])[:5]
    assert not mlcroissant.Dataset(str(tmp_path / "croissant.json")).metadata.issues.errors


@pytest.mark.slow("each case")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the validators themselves
def test_the_schema_of_ddi_accepts_the_codebook(place):
    from lxml import etree

    document = etree.parse(str(place / "ddi.xml"))
    cases = document.findtext(".//{ddi:codebook:2_5}caseQnty")
    assert int(cases) > 0
    schema = os.environ.get("DDI_SCHEMA", "")
    if not Path(schema).is_file():
        pytest.skip("DDI_SCHEMA is not the path of codebook.xsd of DDI-Codebook 2.5")
    checked = etree.XMLSchema(etree.parse(schema))
    assert checked.validate(document), checked.error_log


@pytest.mark.slow("each case")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the validators themselves
def test_the_shapes_of_dcat_ap_accept_the_dataset(place):
    import pyshacl
    import rdflib

    data = rdflib.Graph().parse(place / "dcat.jsonld", format="json-ld", publicID="https://example.org/")
    dcat = rdflib.Namespace("http://www.w3.org/ns/dcat#")
    assert len([*data.subjects(rdflib.RDF.type, dcat.Distribution)]) == len([*place.glob("*.csv")])
    shapes = os.environ.get("DCAT_SHAPES", "")
    if not shapes or not Path(shapes).is_dir():  # Path("") is the folder of the run
        pytest.skip("DCAT_SHAPES is not the folder of the SHACL shapes of DCAT-AP 3.0.1")
    graph = rdflib.Graph()
    for file in ("shapes.ttl", "range.ttl"):
        graph.parse(Path(shapes) / file)
    conforms, _, text = pyshacl.validate(data, shacl_graph=graph, advanced=True)
    assert conforms, text


@pytest.mark.slow("each case")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the validators themselves
def test_the_hub_reads_the_card(place):
    from huggingface_hub import DatasetCard

    card = DatasetCard.load(place / "README.md")
    assert card.data.license == "cc-by-4.0"
    assert card.data.pretty_name == WORDS.title
    files = [config["data_files"] for config in card.data.to_dict()["configs"]]
    assert all((place / file).is_file() for file in files)


@pytest.mark.slow
def test_keys_lead_to_keys_in_every_catalogue(linked):
    package, croissant = read(linked, "datapackage.json"), read(linked, "croissant.json")
    visits = next(resource for resource in package["resources"] if resource["name"] == "visits")
    keys = {key["fields"][0]: key["reference"]["resource"] for key in visits["schema"]["foreignKeys"]}
    assert keys == {"person": "persons", "ward": "wards"}
    assert (visits["title"], visits["description"]) == ("Stays", "One row a stay.")
    records = next(entry for entry in croissant["recordSet"] if entry["@id"] == "visits")
    link = next(field for field in records["field"] if field["name"] == "person")
    assert link["references"] == {"field": {"@id": "persons/person"}}


def test_the_card_loads_codes_as_texts(tmp_path):
    """Without a dtype pandas reads 0101 as 101."""
    codes = ["0101", "0203", "0999"]
    schema = Schema({"code": Categorical(codes), "n": Numerical(0, 9, integer=True)})
    table = pd.DataFrame({"code": codes * 200, "n": [1, 2] * 300})
    release = PrivSyn(epsilon=1, schema=schema).fit(table).release_
    release.sample(50).to_csv(tmp_path / "rows.csv", index=False)
    catalogue(release, tmp_path / "rows.csv", only=["card"])
    (snippet,) = re.findall("```python\n(.*?)```", (tmp_path / "README.md").read_text(), re.DOTALL)
    names: dict[str, pd.DataFrame] = {}
    exec(snippet.replace("rows.csv", str(tmp_path / "rows.csv")), names)  # noqa: S102 - what a reader does
    assert set(names["rows"]["code"].dropna()) <= set(codes)
    assert names["rows"]["n"].dropna().between(0, 9).all()


def test_whole_numbers_that_are_written_with_a_point_are_numbers(tmp_path):
    """Before, they were said to be text; amounts with a unit are."""
    count = np.arange(200) % 50
    frame = pd.DataFrame({"age": [f"{n}.0" for n in count], "way": [f"{n} km" for n in count]})
    form = {"integer": True, "nullable": False}
    schema = Schema(
        {"age": Numerical(0, 49, format="1234.0", **form), "way": Numerical(0, 49, format="1234 km", **form)}
    )
    release = PrivSyn(3.0, 1e-6, schema, seed=0).fit(frame).release_
    release.sample_to(tmp_path / "t.csv", 50, seed=1)
    catalogue(release, tmp_path / "t.csv")
    fields = json.loads((tmp_path / "croissant.json").read_text())["recordSet"][0]["field"]
    assert [field["dataType"] for field in fields] == ["sc:Float", "sc:Text"]
    fields = json.loads((tmp_path / "datapackage.json").read_text())["resources"][0]["schema"]["fields"]
    assert [field["type"] for field in fields] == ["number", "string"]
