"""Frictionless: a Data Package (`datapackage.json`), or a Table Schema alone, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privsyn.errors import InputError, about
from privsyn.table.codebooks.codebook import (
    Codebook,
    CodebookColumn,
    CodebookTable,
    ForeignKey,
    Type,
    in_one_line,
    table_name,
)
from privsyn.table.codebooks.plain import as_list, as_mapping, csv_format, included_bound, read_json

PACKAGE, SCHEMA = "Frictionless Data Package", "Frictionless Table Schema"

TYPES: Mapping[str, Type] = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "any": "",
    "date": "date",
    "datetime": "datetime",
    "time": "time",
    "duration": "duration",
    "year": "integer",
    "yearmonth": "text",
    "object": "object",
    "array": "object",
    "list": "object",
    "geopoint": "object",
    "geojson": "object",
}
"""The types of Table Schema."""

NAMING = ("email", "uri", "uuid")
"""Formats of texts that name rows or persons."""


def recognises(plain: Any) -> bool:
    """Return whether plain data are a Data Package or a Table Schema."""
    if not isinstance(plain, Mapping):
        return False
    return isinstance(plain.get("resources"), list) or isinstance(plain.get("fields"), list)


def read(path: Path, plain: Any) -> Codebook:
    """Return what a Data Package, or a Table Schema, says of its tables."""
    if "fields" in plain:
        return Codebook.of(SCHEMA, [_table(table_name(path.name), plain, {}, path)])
    tables = []
    for resource in as_list("resources", plain["resources"]):
        resource = as_mapping("a resource", resource)
        schema = resource.get("schema")
        if schema is None:  # a file that is no table
            continue
        file = resource.get("path")
        file = file[0] if isinstance(file, list) and file else file
        name = str(resource.get("name") or table_name(str(file or "")))
        with about(f"resource {name!r}"):
            tables.append(_table(table_name(name), _schema(schema, path), resource, path))
    licences = [
        as_mapping("a licence", licence) for licence in as_list("licenses", plain.get("licenses") or [])
    ]
    people = [
        as_mapping("a person", person) for person in as_list("contributors", plain.get("contributors") or [])
    ]
    publishers = [person for person in people if person.get("role") == "publisher"] or people
    return Codebook.of(
        PACKAGE,
        tables,
        title=in_one_line(plain.get("title")),
        licence=", ".join(str(licence.get("name") or licence.get("path") or "") for licence in licences),
        publisher=in_one_line(publishers[0].get("title")) if publishers else "",
        contact=in_one_line(publishers[0].get("email")) if publishers else "",
    )


def _schema(schema: Any, path: Path) -> Mapping[str, Any]:
    """Return a Table Schema that stands in the package, or in a file beside it."""
    if not isinstance(schema, str):
        return as_mapping("schema", schema)
    beside = path.parent / schema
    if "://" in schema or Path(schema).is_absolute() or ".." in Path(schema).parts:
        beside = path.parent / schema.rpartition("/")[2]  # nothing is fetched
    if not beside.is_file():
        raise InputError(f"its schema is {schema!r}: put that file into the folder of the package")
    return as_mapping("schema", read_json(beside))


def _table(name: str, schema: Mapping[str, Any], resource: Mapping[str, Any], path: Path) -> CodebookTable:
    fields = [as_mapping("a field", field) for field in as_list("fields", schema.get("fields"))]
    key = _names(schema.get("primaryKey"))
    links = []
    for plain in as_list("foreignKeys", schema.get("foreignKeys") or []):
        reference = as_mapping("reference", as_mapping("a foreign key", plain).get("reference"))
        target = str(reference.get("resource") or "")
        table = name if target in ("", "self") else table_name(target)
        links.append(ForeignKey(_names(plain.get("fields")), table, _names(reference.get("fields"))))
    points = {str(field["decimalChar"]) for field in fields if field.get("decimalChar")}
    groups = {str(field["groupChar"]) for field in fields if field.get("groupChar")}
    dialect = as_mapping("dialect", resource.get("dialect") or {})
    file = resource.get("path")
    return CodebookTable(
        name=name,
        columns=tuple(_column(field, schema) for field in fields),
        label=in_one_line(resource.get("title") or resource.get("description")),
        key=key,
        links=tuple(links),
        missing=_marks(schema.get("missingValues")),
        csv=csv_format(
            delimiter=dialect.get("delimiter"),
            encoding=resource.get("encoding"),
            point=points.pop() if len(points) == 1 else None,
            thousands=groups.pop() if len(groups) == 1 else None,
        ),
        file=file if isinstance(file, str) else "",
    )


def _names(plain: Any) -> tuple[str, ...]:
    return (plain,) if isinstance(plain, str) else tuple(map(str, as_list("a key", plain or [])))


def _marks(plain: Any) -> tuple[str, ...]:
    """Return the texts of missing cells, which may have labels."""
    marks = as_list("missingValues", plain or [])
    texts = (mark.get("value") if isinstance(mark, Mapping) else mark for mark in marks)
    return tuple(text for text in map(str, texts) if text)


def _column(field: Mapping[str, Any], schema: Mapping[str, Any]) -> CodebookColumn:
    name = field.get("name")
    if not isinstance(name, str):
        raise InputError("a field has no name")
    with about(f"field {name!r}"):
        rules = as_mapping("constraints", field.get("constraints") or {})
        kind, form = TYPES.get(str(field.get("type", "")), ""), field.get("format")
        is_flag = kind == "boolean" and (field.get("trueValues") or field.get("falseValues"))
        values = _values(field, rules)
        if is_flag:
            flags = [*as_list("falseValues", field.get("falseValues") or ["false"])]
            flags += as_list("trueValues", field.get("trueValues") or ["true"])
            values = tuple((str(flag), "") for flag in flags)
        low, high, remarks = rules.get("minimum"), rules.get("maximum"), list[str]()
        if "exclusiveMinimum" in rules:
            low, remarks = included_bound("low", rules["exclusiveMinimum"], kind)
        if "exclusiveMaximum" in rules:
            high, more = included_bound("high", rules["exclusiveMaximum"], kind)
            remarks += more
        numeric = kind in ("integer", "number")
        own_marks = set(_marks(field.get("missingValues")))
        return CodebookColumn(
            name=name,
            type="text" if is_flag else kind,
            label=in_one_line(field.get("title") or field.get("description")),
            values=values,
            ordered=field.get("categoriesOrdered") is True,
            low=low if numeric else _text(low),
            high=high if numeric else _text(high),
            missing=tuple(sorted(own_marks.difference(_marks(schema.get("missingValues"))))),
            required=rules.get("required") is True,
            unique=rules.get("unique") is True or _names(schema.get("primaryKey")) == (name,),
            pattern=rules.get("pattern") if isinstance(rules.get("pattern"), str) else None,
            format=form if kind in ("date", "datetime", "time") and "%" in str(form) else None,
            role="identifier" if kind == "text" and form in NAMING else "",
            remarks=tuple(remarks),
        )


def _values(field: Mapping[str, Any], rules: Mapping[str, Any]) -> tuple[tuple[Any, str], ...]:
    """Return the values of `enum`, or the categories with their labels."""
    if "enum" in rules:
        return tuple((value, "") for value in as_list("enum", rules["enum"]) if value is not None)
    categories = as_list("categories", field.get("categories") or [])
    return tuple(
        (category.get("value"), in_one_line(category.get("label")))
        if isinstance(category, Mapping)
        else (category, "")
        for category in categories
    )


def _text(bound: Any) -> str | None:
    return None if bound is None else str(bound)
