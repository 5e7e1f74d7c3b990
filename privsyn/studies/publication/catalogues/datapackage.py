"""datapackage.json: a Data Package of Frictionless Standards, with a Table Schema for each table."""

from __future__ import annotations

import re
from typing import Any

from privsyn.studies.publication.catalogues.published_tables import (
    SPACED,
    TIMES,
    PublishedColumn,
    PublishedTable,
    PublishedTables,
)
from privsyn.table.io.formats import CSV, PARQUET

TYPES = {
    "Text": "string",
    "Integer": "integer",
    "Float": "number",
    "Boolean": "boolean",
    "Date": "date",
    "DateTime": "datetime",
}
"""The types of Table Schema."""

LISTED_AS: dict[str, type | tuple[type, ...]] = {"Text": str, "Integer": int}
"""Of which type all listed values must be, so that they can be an enumeration."""

WHOLE_DATE = 10
"""Characters of a date with a day."""


def datapackage(published: PublishedTables) -> dict[str, Any]:
    """Return the descriptor of a Data Package, as plain data for JSON."""
    words = published.about
    contact = {}
    if words.contact is not None:
        contact = {"path" if words.contact.startswith("http") else "email": words.contact}
    licence = words.licence or ""
    is_url = licence.startswith("http")
    package: dict[str, Any] = {
        "profile": "tabular-data-package",
        "name": slug(words.title or "-".join(table.name for table in published.tables)),
        "id": published.identifier,
        "title": published.title,
        "description": published.description,
        "homepage": words.homepage,
        "created": f"{words.issued}T00:00:00Z" if len(words.issued or "") == WHOLE_DATE else None,
        "keywords": list(words.keywords),
        "licenses": [{"path" if is_url else "name": licence}] if licence else [],
        "contributors": [{"title": words.publisher, "role": "publisher", **contact}]
        if words.publisher
        else [],
        "synthetic": True,
        "privacy": published.privacy,
        "resources": [_resource(table) for table in published.tables],
    }
    return {name: value for name, value in package.items() if value}


def slug(text: str) -> str:
    """Return a name of lower-case letters, digits and hyphens.

    >>> slug("Visits, synthetic (2025)")
    'visits-synthetic-2025'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "synthetic"


def _resource(table: PublishedTable) -> dict[str, Any]:
    schema: dict[str, Any] = {"fields": [_field(column, table) for column in table.columns]}
    schema["missingValues"] = [""]
    if table.key:
        schema["primaryKey"] = list(table.key)
    if table.links:
        schema["foreignKeys"] = [
            {"fields": list(columns), "reference": {"resource": slug(target), "fields": list(key)}}
            for columns, (target, key) in table.links.items()
        ]
    words = table.about
    resource: dict[str, Any] = {
        "profile": "tabular-data-resource",
        "name": slug(table.name),
        "title": None if words is None else words.title,
        "description": None if words is None else words.description,
        "path": table.file,
        "format": table.location.format.name.lower()
        if table.location.format is CSV
        else table.file.rpartition(".")[2],
        "mediatype": table.media,
        "bytes": table.size if table.location.format is CSV else None,  # validators count no others
        "hash": f"sha256:{table.sha256}",
        "rowCount": table.rows,
        "schema": schema,
    }
    if table.location.format is CSV:
        resource["encoding"] = table.csv.encoding
        resource |= {"compression": "gz"} if table.is_packed else {}
        dialect = {
            "delimiter": table.csv.delimiter,
            "quoteChar": '"',
            "doubleQuote": True,
            "skipInitialSpace": table.csv.blank,
        }
        resource["dialect"] = dialect
    return {name: value for name, value in resource.items() if value is not None}


def _field(column: PublishedColumn, table: PublishedTable) -> dict[str, Any]:
    kind = TYPES[column.type]
    lists_texts = bool(column.values) and all(isinstance(value, str) for value in column.values)
    if kind == "string" and table.location.format is not CSV and not lists_texts:
        kind = "any"  # the file has a type of its own, such as a time or a number of a generated column
    reads_as_nan = table.location.format is PARQUET and not column.never_missing
    if kind == "date" and reads_as_nan:
        kind = "datetime"  # which the file holds; Frictionless 5 stops at a NaT among dates
    field: dict[str, Any] = {"name": column.name, "type": kind, "description": column.description}
    if kind == "boolean":
        field |= {"trueValues": ["True", "true"], "falseValues": ["False", "false"]}
    if kind in ("integer", "number") and table.location.format is CSV:
        if table.csv.point != "." and kind == "number":
            field["decimalChar"] = table.csv.point
        if table.csv.thousands is not None:
            field["groupChar"] = table.csv.thousands
    if column.time_format is not None and column.time_format != TIMES[column.type]:
        field["format"] = column.time_format
    constraints: dict[str, Any] = {}
    empty_is_value = "" in column.values
    if column.never_missing and not empty_is_value:
        constraints["required"] = True
    listed_as = LISTED_AS.get(column.type)
    alike = all(type(value) is listed_as for value in column.values)
    if column.values and alike and not empty_is_value:
        constraints["enum"] = list(column.values)
    # Frictionless 5 reads missing cells of Parquet as NaN or NaT, which lie within no bounds.
    if column.bounds is not None and column.type != "Boolean" and not reads_as_nan:
        low, high = column.bounds
        if column.type in TIMES:
            form = column.time_format or TIMES[column.type]
            low, high = low.strftime(form), high.strftime(form)
        if column.type not in TIMES or form in (*TIMES.values(), SPACED):
            constraints |= {"minimum": low, "maximum": high}
    return field | ({"constraints": constraints} if constraints else {})
