"""croissant.json: metadata of MLCommons Croissant, with its vocabulary for responsible AI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privsyn.release.release import Release
from privsyn.studies.publication.catalogues.published_tables import (
    PublishedTable,
    PublishedTables,
    columns_of,
    made_of,
)
from privsyn.table.io.formats import Location, holds_tables
from privsyn.table.schema.about import About

CROISSANT = "http://mlcommons.org/croissant/1.0"
RESPONSIBLE = "http://mlcommons.org/croissant/RAI/1.0"

TERMS = (
    *("citeAs", "column", "data", "dataType", "equivalentProperty", "examples", "extract", "field"),
    *(
        "fileObject",
        "fileProperty",
        "fileSet",
        "format",
        "includes",
        "isLiveDataset",
        "jsonPath",
        "key",
        "md5",
    ),
    *("parentField", "path", "recordSet", "references", "regex", "repeated", "replace", "separator"),
    *("samplingRate", "source", "subField", "transform"),
)
"""The terms of Croissant."""

CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{term: f"cr:{term}" for term in TERMS},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}
"""The names that the metadata use, of schema.org, of Croissant and of its part on responsible AI."""

ENCODINGS = {"CSV": "text/csv", "Parquet": "application/x-parquet"}
"""How the specification calls formats. Compressed files have that of what is inside."""

SPDX = "https://spdx.org/licenses/"

COLLECTION = (
    "The rows are synthetic. privsyn {version} counted columns and sets of columns of a private table, added"
    " noise to every count, and drew rows that agree with the noisy counts. No row is copied."
)
LIMITS = (
    "Rows describe no person: do not look for anybody in them.",
    "Values that few rows have may be missing, and so may combinations. Small groups are least accurate.",
    "A relationship that was not measured may be missing. The public page says which ones are kept.",
)
USES = (
    "Writing and testing code, teaching, and exploring relationships that the public page calls kept.",
    "Numbers for publication: take them from the released counts with their intervals, not from the rows.",
)
BIASES = (
    "Noise hides small groups first. Biases of the private table stay in the synthetic one.",
    "Rare values are pooled, and weak relationships are shrunk towards none.",
)


def croissant(published: PublishedTables) -> dict[str, Any]:
    """Return the metadata of synthetic files as JSON-LD."""
    dataset = dataset_of(published.release, published.title)
    dataset["description"] = published.description
    return dataset | {
        "conformsTo": [CROISSANT, RESPONSIBLE],
        **responsible(published),
        "distribution": [_file(table) for table in published.tables],
        "recordSet": [_record_set(table, published) for table in published.tables],
    }


def metadata(release: Release[Any], data: Path | None = None) -> dict[str, Any]:
    """Return the metadata as JSON-LD: a schema.org Dataset, and Croissant if each table is a file.

    Parameters
    ----------
    release : Release
    data : path, optional
        The file of the only table, the folder of several files, or a database with all tables.
    """
    if data is None:
        return dataset_of(release, "Synthetic tables" if release.single is None else "Synthetic table")
    if release.single is None and holds_tables(data):
        location = Location.of(data)
        table = PublishedTable(data.name, (), None, (), {}, location)
        file = _file(table) | {"@type": "sc:DataDownload"}
        return dataset_of(release, data.name) | {"distribution": [file]}
    return croissant(PublishedTables.of(release, data))


def dataset_of(release: Release[Any], title: str) -> dict[str, Any]:
    """Return the Dataset of schema.org: the publisher's words, the promise and the columns."""
    database, words = release.database, release.about or About()
    variables = []
    for name in database.shown:
        for column, kind in columns_of(release, name).items():
            if kind is not None:  # only what the released schema says
                shown, values = database.shown_column(name, column), kind.values_in_words
                variable: dict[str, Any] = {"@type": "sc:PropertyValue", "name": shown, "description": values}
                if (ends := kind.number_range) is not None:
                    variable |= {"minValue": ends[0], "maxValue": ends[1]}
                variables.append(variable)
    contact = words.contact
    publisher = {"@type": "sc:Organization", "name": words.publisher}
    if contact is not None:
        publisher |= {"url" if contact.startswith("http") else "email": contact}
    licence = words.licence
    dataset = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": words.title or title,
        "description": " ".join(filter(None, [words.description, made_of(release.ledger)])),
        "isAccessibleForFree": True,
        "measurementTechnique": (
            f"differentially private counts of sets of columns, privsyn {release.ledger.version}"
        ),
        "license": licence if licence is None or licence.startswith("http") else f"{SPDX}{licence}.html",
        "publisher": publisher if words.publisher else None,
        "creator": publisher if words.publisher else None,
        "datePublished": words.issued,
        "keywords": list(words.keywords),
        "inLanguage": list(words.language),
        "spatialCoverage": list(words.spatial),
        "temporalCoverage": words.temporal,
        "identifier": words.identifier,
        "url": words.homepage,
        "citeAs": cited(words) if words.publisher and words.title else None,
        "variableMeasured": variables,
    }
    return {name: value for name, value in dataset.items() if value}


def cited(words: About) -> str:
    """Return how the publisher is cited.

    >>> cited(About(title="Visits", publisher="Office", issued="2026-11", identifier="10.1234/visits"))
    'Office (2026). Visits. 10.1234/visits'
    """
    year = f" ({words.issued[:4]})" if words.issued else ""
    address = words.identifier or words.homepage
    return f"{words.publisher}{year}. {words.title}.{f' {address}' if address else ''}"


def responsible(published: PublishedTables) -> dict[str, Any]:
    """Return what Croissant's vocabulary for responsible AI asks, as far as the release says it."""
    words, ledger = published.about, published.release.ledger
    fields: dict[str, Any] = {
        "rai:dataCollection": COLLECTION.format(version=ledger.version),
        "rai:dataCollectionType": ["Others: synthetic data under differential privacy"],
        "rai:dataCollectionRawData": "A private table, which is not published.",
        "rai:dataCollectionTimeframe": words.temporal.split("/") if words.temporal else None,
        "rai:dataManipulationProtocol": made_of(ledger),
        "rai:personalSensitiveInformation": [
            f"The cells are synthetic; the columns may be about sensitive matters. {made_of(ledger)}"
        ],
        "rai:dataLimitations": list(LIMITS),
        "rai:dataBiases": list(BIASES),
        "rai:dataUseCases": list(USES),
        "rai:dataReleaseMaintenancePlan": (
            "Other releases from the same private table add to the privacy loss of this one."
        ),
    }
    return {name: value for name, value in fields.items() if value}


def _record_set(table: PublishedTable, published: PublishedTables) -> dict[str, Any]:
    """Return the columns of a file, with the key of the table and the keys to which its rows lead."""
    leads_to = {
        column: f"{target}/{key}"
        for columns, (target, keys) in table.links.items()
        for column, key in zip(columns, keys, strict=True)
    }
    name = table.name
    fields = []
    for column in table.columns:
        field: dict[str, Any] = {
            "@type": "cr:Field",
            "@id": f"{name}/{column.name}",
            "name": column.name,
            "description": column.description,
            "dataType": f"sc:{column.type}",
            "source": {"fileObject": {"@id": table.file}, "extract": {"column": column.name}},
        }
        if column.name in leads_to:
            field |= {"references": {"field": {"@id": leads_to[column.name]}}}
        fields.append(field)
    ids = [{"@id": f"{name}/{column}"} for column in table.key]
    key = {"key": ids[0] if len(ids) == 1 else ids} if ids else {}
    words = table.about
    description = {} if words is None or not words.description else {"description": words.description}
    return {"@type": "cr:RecordSet", "@id": name, "name": name, **description, **key, "field": fields}


def _file(table: PublishedTable) -> dict[str, Any]:
    """Return a file with its size and checksum."""
    return {
        "@type": "cr:FileObject",
        "@id": table.file,
        "name": table.file,
        "contentUrl": table.file,
        "contentSize": f"{table.size} B",
        "encodingFormat": ENCODINGS.get(table.location.format.name, table.media),
        "sha256": table.sha256,
    }
