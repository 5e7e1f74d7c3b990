"""One small codebook of each kind, about the same table, written for these tests."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

FRICTIONLESS = {
    "title": "A survey of people",
    "licenses": [{"name": "CC0-1.0"}],
    "resources": [
        {
            "name": "people",
            "path": "people.csv",
            "dialect": {"delimiter": ";"},
            "schema": {
                "missingValues": ["", "NA"],
                "primaryKey": "id",
                "fields": [
                    {"name": "id", "type": "integer"},
                    {
                        "name": "sex",
                        "type": "integer",
                        "title": "Sex",
                        "categories": [{"value": 1, "label": "male"}, {"value": 2, "label": "female"}],
                        "constraints": {"required": True},
                    },
                    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 110}},
                    {"name": "pay", "type": "number", "constraints": {"minimum": 0}},
                    {"name": "seen", "type": "date", "format": "%d.%m.%Y"},
                    {
                        "name": "health",
                        "type": "string",
                        "categories": ["bad", "fair", "good"],
                        "categoriesOrdered": True,
                    },
                    {"name": "smokes", "type": "boolean", "trueValues": ["J"], "falseValues": ["N"]},
                    {"name": "mail", "type": "string", "format": "email"},
                    {"name": "town", "type": "string"},
                    {"name": "ward", "type": "string", "constraints": {"pattern": "^(east|west)$"}},
                    {"name": "shape", "type": "geojson"},
                ],
            },
        },
        {
            "name": "visits",
            "path": "visits.csv",
            "schema": {
                "primaryKey": "visit",
                "fields": [
                    {"name": "visit", "type": "integer"},
                    {"name": "person", "type": "integer"},
                    {"name": "drug", "type": "string"},
                    {
                        "name": "day",
                        "type": "date",
                        "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"},
                    },
                ],
                "foreignKeys": [
                    {"fields": "person", "reference": {"resource": "people", "fields": "id"}},
                    {"fields": "drug", "reference": {"resource": "drugs", "fields": "drug"}},
                ],
            },
        },
        {
            "name": "drugs",
            "path": "drugs.csv",
            "schema": {"primaryKey": "drug", "fields": [{"name": "drug", "type": "string"}]},
        },
    ],
}

CSVW = {
    "@context": "http://www.w3.org/ns/csvw",
    "url": "people.csv",
    "dc:title": "A survey of people",
    "tableSchema": {
        "null": "NA",
        "primaryKey": "id",
        "columns": [
            {"name": "id", "titles": "id", "datatype": "integer"},
            {
                "name": "age_years",
                "titles": {"en": "age"},
                "datatype": {"base": "integer", "minimum": 0, "maximum": "110"},
            },
            {"name": "smokes", "datatype": {"base": "boolean", "format": "J|N"}, "required": True},
            {"name": "seen", "datatype": {"base": "date", "format": "dd.MM.yyyy"}},
            {"name": "ward", "datatype": {"base": "string", "format": "east|west"}},
            {"name": "tags", "separator": " "},
            {"name": "visits", "datatype": "nonNegativeInteger"},
        ],
    },
}

DDI = """<?xml version="1.0"?>
<codeBook xmlns="ddi:codebook:2_5" version="2.5">
 <stdyDscr><citation><titlStmt><titl>A survey of people</titl></titlStmt></citation></stdyDscr>
 <fileDscr ID="F1"><fileTxt><fileName>people.csv</fileName></fileTxt></fileDscr>
 <dataDscr>
  <var name="sex" files="F1" intrvl="discrete"><labl>Sex</labl>
   <catgry><catValu>1</catValu><labl>male</labl></catgry>
   <catgry><catValu>2</catValu><labl>female</labl></catgry>
   <catgry missing="Y"><catValu>9</catValu><labl>refused</labl></catgry>
   <varFormat type="numeric"/></var>
  <var name="age" files="F1" intrvl="discrete"><labl>Age</labl>
   <valrng><range min="0" max="110"/></valrng>
   <invalrng><item VALUE="999"/></invalrng>
   <sumStat type="min">17</sumStat><varFormat type="numeric"/></var>
  <var name="health" files="F1" nature="ordinal"><labl>Health</labl>
   <catgry><catValu>a</catValu><labl>bad</labl></catgry>
   <catgry><catValu>b</catValu><labl>good</labl></catgry>
   <varFormat type="character"/></var>
  <var name="pay" files="F1" dcml="2" intrvl="contin"><labl>Pay</labl><varFormat type="numeric"/></var>
 </dataDscr>
</codeBook>
"""

REDCAP = """\
"Variable / Field Name","Form Name","Section Header","Field Type","Field Label",\
"Choices, Calculations, OR Slider Labels","Field Note","Text Validation Type OR Show Slider Number",\
"Text Validation Min","Text Validation Max",Identifier?,"Branching Logic (Show field only if...)",\
"Required Field?"
record,base,,text,Number,,,,,,,,
sex,base,,radio,"<b>Sex</b>","1, male | 2, female",,,,,,,y
age,base,,text,Age,,,integer,0,110,,,y
name,base,,text,Name,,,,,,y,,
born,base,,text,Born,,,date_dmy,1900-01-01,today,,,
weight,base,,text,Weight,,,number_1dp,30,200,,[sex] = '2',
sports,base,,checkbox,Sports,"1, chess | 2, golf",,,,,,,
pregnant,base,,yesno,Pregnant?,,,,,,,[sex] = '2',y
remark,base,,notes,Remark,,,,,,,,
hint,base,,descriptive,Please read,,,,,,,,
"""

JSON_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A person",
    "type": "object",
    "required": ["sex", "age"],
    "$defs": {"place": {"type": "string", "enum": ["east", "west"]}},
    "properties": {
        "sex": {"oneOf": [{"const": 1, "title": "male"}, {"const": 2, "title": "female"}]},
        "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 111},
        "ward": {"$ref": "#/$defs/place"},
        "pay": {"type": ["number", "null"], "minimum": 0, "maximum": 10000, "multipleOf": 0.5},
        "mail": {"type": "string", "format": "email"},
        "seen": {"type": "string", "format": "date"},
        "far": {"$ref": "other.json#/far"},
        "tags": {"type": "array"},
    },
}

SQL = """\
CREATE TYPE mood AS ENUM ('bad', 'good');
CREATE DOMAIN share AS numeric(3,2) CHECK (VALUE >= 0 AND VALUE <= 1);
CREATE TABLE people (
  id integer PRIMARY KEY,
  sex char(1) NOT NULL CHECK (sex IN ('m', 'f')),
  age smallint CHECK (age BETWEEN 0 AND 110),
  mood mood,
  part share,
  first_seen date CHECK (first_seen >= '2020-01-01' AND first_seen <= '2020-12-31'),
  last_seen date,
  boss integer REFERENCES people (ID),
  CHECK (first_seen <= last_seen),
  CHECK (length(sex) = 1)
);
INSERT INTO people VALUES (1, 'm', 17, 'bad', .5, '2020-01-01', '2020-01-01; kanarie7391', NULL);
CREATE TABLE visits (visit integer PRIMARY KEY, person integer NOT NULL, cost numeric(8,2));
ALTER TABLE ONLY visits ADD CONSTRAINT of_person FOREIGN KEY (person) REFERENCES people(id);
COMMENT ON COLUMN visits.cost IS 'In euros';
"""


def write(folder: Path, kind: str) -> Path:
    """Write the codebook of a kind into a folder, and return its path."""
    texts = {
        "datapackage.json": json.dumps(FRICTIONLESS),
        "people.csv-metadata.json": json.dumps(CSVW),
        "ddi.xml": DDI,
        "redcap.csv": REDCAP,
        "person.schema.json": json.dumps(JSON_SCHEMA),
        "people.sql": SQL,
    }
    path = folder / kind
    if kind in texts:
        path.write_text(texts[kind])
    else:
        write_statistics_file(path)
    return path


KINDS = (
    *(
        "datapackage.json",
        "people.csv-metadata.json",
        "ddi.xml",
        "redcap.csv",
        "person.schema.json",
        "people.sql",
    ),
    *("people.sav", "people.dta"),
)


def write_statistics_file(path: Path) -> None:
    """Write rows of SPSS or Stata with value labels; the codebook is the head of the file."""
    import pyreadstat

    frame = pd.DataFrame({"sex": [1, 2, 9, 1], "age": [20, 30, 40, 999], "score": [0.0, 10.0, 5.0, 1.0]})
    labels = {"sex": {1: "male", 2: "female", 9: "refused"}, "score": {0: "never", 10: "always"}}
    if path.suffix == ".sav":
        pyreadstat.write_sav(
            frame,
            path,
            column_labels={"sex": "Sex", "age": "Age"},
            variable_value_labels=labels,
            missing_ranges={"sex": [9], "age": [{"lo": 900, "hi": 999}]},
            variable_measure={"sex": "nominal"},
            variable_format={"age": "F8.0", "sex": "F8.0"},
        )
    else:
        labels = {name: texts for name, texts in labels.items() if name == "sex"}
        whole = frame.astype({"sex": "int32", "age": "int32"})
        pyreadstat.write_dta(whole, path, column_labels={"sex": "Sex"}, variable_value_labels=labels)
