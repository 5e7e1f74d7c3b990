"""dcat.jsonld: a dataset in DCAT-AP 3, and in HealthDCAT-AP if it has categories of health data."""

from __future__ import annotations

import re
from typing import Any

from privsyn.studies.publication.catalogues.published_tables import PublishedTable, PublishedTables

AUTHORITY = "http://publications.europa.eu/resource/authority"

CONTEXT = {
    "adms": "http://www.w3.org/ns/adms#",
    "csvw": "http://www.w3.org/ns/csvw#",
    "cv": "http://data.europa.eu/m8g/",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dcatap": "http://data.europa.eu/r5r/",
    "dct": "http://purl.org/dc/terms/",
    "eli": "http://data.europa.eu/eli/ontology#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "healthdcatap": "http://healthdataportal.eu/ns/health#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "spdx": "http://spdx.org/rdf/terms#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}

LICENCES = {
    "CC0-1.0": "CC0",
    "CC-BY-4.0": "CC_BY_4_0",
    "CC-BY-SA-4.0": "CC_BYSA_4_0",
    "CC-BY-NC-4.0": "CC_BYNC_4_0",
    "CC-BY-ND-4.0": "CC_BYND_4_0",
    "CC-BY-NC-SA-4.0": "CC_BYNCSA_4_0",
}
"""Licences in the table of the Publications Office; others are named by SPDX."""

LANGUAGES = {
    "bg": "BUL",
    "cs": "CES",
    "da": "DAN",
    "de": "DEU",
    "el": "ELL",
    "en": "ENG",
    "es": "SPA",
    "et": "EST",
    "fi": "FIN",
    "fr": "FRA",
    "ga": "GLE",
    "hr": "HRV",
    "hu": "HUN",
    "it": "ITA",
    "lt": "LIT",
    "lv": "LAV",
    "mt": "MLT",
    "nl": "NLD",
    "pl": "POL",
    "pt": "POR",
    "ro": "RON",
    "sk": "SLK",
    "sl": "SLV",
    "sv": "SWE",
    "no": "NOR",
    "is": "ISL",
}
"""Languages of the European Economic Area in the table of the Publications Office."""

FILE_TYPES = {"CSV": "CSV", "Excel": "XLSX", "Parquet": "PARQUET"}
"""Formats in the table of the Publications Office."""

EHDS = "http://data.europa.eu/eli/reg/2025/327/oj"
"""The regulation on the European Health Data Space."""

LEGISLATION = {"@id": EHDS, "@type": "eli:LegalResource"}

HEALTH_CATEGORIES = "https://hdeu-dcat.data.health.europa.eu/resource/authority/healthcategories"

DATATYPES = {
    "Text": "string",
    "Integer": "integer",
    "Float": "number",
    "Boolean": "boolean",
    "Date": "date",
    "DateTime": "datetime",
}
"""The types of CSV on the Web."""

DATES = {4: "gYear", 7: "gYearMonth", 10: "date"}
"""The types of XML Schema by the number of characters."""


def dcat(published: PublishedTables) -> dict[str, Any]:
    """Return the dataset as JSON-LD. IRIs without a scheme are relative to the place of the file."""
    words, health = published.about, bool(published.about.health)
    publisher = _agent(words.publisher, words.contact) if words.publisher else None
    dataset: dict[str, Any] = {
        "@context": CONTEXT,
        "@id": _iri_of(published.identifier),
        "@type": "dcat:Dataset",
        "dct:title": _text(published.title),
        "dct:description": _text(published.description),
        "dct:identifier": published.identifier,
        "dct:publisher": publisher,
        "dcat:contactPoint": _contact_point(words.publisher, words.contact) if words.contact else None,
        "dct:issued": _date(words.issued) if words.issued else None,
        "dcat:keyword": [_text(keyword) for keyword in words.keywords],
        "dcat:landingPage": {"@id": words.homepage, "@type": "foaf:Document"} if words.homepage else None,
        "dct:language": [_language(code) for code in words.language],
        "dct:spatial": [_location(name) for name in words.spatial],
        "dct:temporal": _period(words.temporal) if words.temporal else None,
        "dct:accessRights": {"@id": f"{AUTHORITY}/access-right/PUBLIC", "@type": "dct:RightsStatement"},
        "dct:type": _concept(f"{AUTHORITY}/dataset-type/SYNTHETIC_DATA", "Synthetic data"),
        "dct:provenance": {
            "@type": "dct:ProvenanceStatement",
            "rdfs:label": _text(published.privacy["statement"]),
        },
        "dcat:distribution": [_distribution(table, published) for table in published.tables],
    }
    if health:
        dataset |= _health_terms(published)
    return {name: value for name, value in dataset.items() if value}


def _health_terms(published: PublishedTables) -> dict[str, Any]:
    """Return the terms of HealthDCAT-AP."""
    words = published.about
    categories = [name if name.startswith("http") else f"{HEALTH_CATEGORIES}/{name}" for name in words.health]
    name, contact = words.access_body_parts
    return {
        "dcatap:applicableLegislation": LEGISLATION,
        "dcat:theme": _concept(f"{AUTHORITY}/data-theme/HEAL", "Health"),
        "healthdcatap:healthCategory": [
            _concept(iri, name) for iri, name in zip(categories, words.health, strict=True)
        ],
        "healthdcatap:hdab": _agent(name, contact) if name else None,
        "healthdcatap:hasStructuredData": _typed("true", "boolean"),
        "healthdcatap:numberOfRecords": _typed(
            str(sum(table.rows for table in published.tables)), "nonNegativeInteger"
        ),
        "healthdcatap:populationCoverage": _text("Synthetic records, which describe no person."),
        "healthdcatap:hasVariables": {
            "@type": "csvw:TableGroup",
            "dct:title": _text(published.title),
            "csvw:table": [_variables(table) for table in published.tables],
        },
    }


def _variables(table: PublishedTable) -> dict[str, Any]:
    columns = [
        {
            "@type": "csvw:Column",
            "csvw:name": column.name,
            "csvw:title": column.name,
            "csvw:datatype": DATATYPES[column.type],
            "dct:description": _text(column.description or column.name),
        }
        for column in table.columns
    ]
    return {"@type": "csvw:Table", "dct:title": _text(table.name), "csvw:column": columns}


def _distribution(table: PublishedTable, published: PublishedTables) -> dict[str, Any]:
    words = published.about
    distribution: dict[str, Any] = {
        "@type": "dcat:Distribution",
        "dct:title": _text(table.file),
        "dcat:accessURL": {"@id": words.homepage or _relative(table.file)},
        "dcat:downloadURL": {"@id": _relative(table.file)},
        "dcat:mediaType": {
            "@id": f"http://www.iana.org/assignments/media-types/{table.location.format.media}",
            "@type": "dct:MediaType",
        },
        "dct:license": _licence(words.licence) if words.licence else None,
        "dcat:byteSize": _typed(str(table.size), "nonNegativeInteger"),
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {
                "@id": "http://spdx.org/rdf/terms#checksumAlgorithm_sha256",
                "@type": "spdx:ChecksumAlgorithm",
            },
            "spdx:checksumValue": _typed(table.sha256, "hexBinary"),
        },
    }
    if (file_type := FILE_TYPES.get(table.location.format.name)) is not None:
        distribution["dct:format"] = {
            "@id": f"{AUTHORITY}/file-type/{file_type}",
            "@type": "dct:MediaTypeOrExtent",
        }
    if table.is_packed:
        distribution["dcat:compressFormat"] = {
            "@id": "http://www.iana.org/assignments/media-types/application/gzip",
            "@type": "dct:MediaType",
        }
    if words.health:
        distribution["dcatap:applicableLegislation"] = LEGISLATION
    return {name: value for name, value in distribution.items() if value}


def _agent(name: str | None, contact: str | None) -> dict[str, Any]:
    agent: dict[str, Any] = {"@type": "foaf:Agent", "foaf:name": _text(name or "")}
    if contact is not None:
        page = {"cv:contactPage": {"@id": contact, "@type": "foaf:Document"}}
        way = page if contact.startswith("http") else {"cv:email": contact}
        agent["cv:contactPoint"] = {"@type": "cv:ContactPoint", **way}
    return agent


def _contact_point(name: str | None, contact: str) -> dict[str, Any]:
    way = (
        {"vcard:hasURL": {"@id": contact}}
        if contact.startswith("http")
        else {"vcard:hasEmail": {"@id": f"mailto:{contact}"}}
    )
    return {"@type": "vcard:Kind", **({"vcard:fn": name} if name else {}), **way}


def _concept(iri: str, label: str) -> dict[str, Any]:
    return {"@id": iri, "@type": "skos:Concept", "skos:prefLabel": _text(label)}


def _licence(licence: str) -> dict[str, Any]:
    if licence.startswith("http"):
        iri = licence
    elif licence in LICENCES:
        iri = f"{AUTHORITY}/licence/{LICENCES[licence]}"
    else:
        iri = f"http://spdx.org/licenses/{licence}"
    return {"@id": iri, "@type": "dct:LicenseDocument"}


def _language(code: str) -> dict[str, Any]:
    short = code.partition("-")[0]
    name = LANGUAGES.get(short)
    iri = f"{AUTHORITY}/language/{name}" if name else f"http://id.loc.gov/vocabulary/iso639-1/{short}"
    return {"@id": iri, "@type": "dct:LinguisticSystem"}


def _location(name: str) -> dict[str, Any]:
    if name.startswith("http"):
        return {"@id": name, "@type": "dct:Location"}
    return {"@type": "dct:Location", "skos:prefLabel": _text(name)}


def _period(temporal: str) -> dict[str, Any]:
    start, _, end = temporal.partition("/")
    return {"@type": "dct:PeriodOfTime", "dcat:startDate": _date(start), "dcat:endDate": _date(end or start)}


def _date(day: str) -> dict[str, str]:
    return _typed(day, DATES[len(day)])


def _typed(text: str, type_: str) -> dict[str, str]:
    return {"@value": text, "@type": f"xsd:{type_}"}


def _text(text: str) -> dict[str, str]:
    return {"@value": text, "@language": "en"}


def _relative(file: str) -> str:
    """Return a file name as a relative IRI.

    >>> _relative("a b.csv")
    'a%20b.csv'
    """
    from urllib.parse import quote

    return quote(file)


def _iri_of(identifier: str) -> str:
    """Return the IRI of an identifier.

    >>> _iri_of("10.1234/visits"), _iri_of("sha256:1f2e"), _iri_of("https://a.example/b")
    ('https://doi.org/10.1234/visits', '#dataset', 'https://a.example/b')
    """
    if identifier.startswith("http"):
        return identifier
    return f"https://doi.org/{identifier}" if re.match(r"10\.\d{4,}/", identifier) else "#dataset"
