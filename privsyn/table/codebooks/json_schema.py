"""JSON Schema of an object, or of a list of objects: each property is a column."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privsyn.errors import InputError, about
from privsyn.table.codebooks.codebook import (
    Codebook,
    CodebookColumn,
    CodebookTable,
    Type,
    in_one_line,
    table_name,
)
from privsyn.table.codebooks.plain import as_list, as_mapping, included_bound, number_or_none

KIND = "JSON Schema"

TYPES: Mapping[str, Type] = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "object": "object",
    "array": "object",
}

FORMATS: Mapping[str, Type] = {
    "date": "date",
    "date-time": "datetime",
    "time": "time",
    "duration": "duration",
}
"""The formats of texts that are times."""

NAMING = ("email", "idn-email", "uri", "iri", "uuid", "hostname", "ipv4", "ipv6")
"""Formats of texts that name rows or persons."""

MOST_REFERENCES = 50

ELSEWHERE = "reference to another file"
"""Where a resolved schema has what it says of a reference that is not followed."""


def recognises(plain: Any) -> bool:
    """Return whether plain data are a JSON Schema."""
    if not isinstance(plain, Mapping):
        return False
    is_named = "json-schema.org" in str(plain.get("$schema", ""))
    return is_named or isinstance(plain.get("properties"), Mapping)


def read(path: Path, plain: Any) -> Codebook:
    """Return what a JSON Schema says of the objects that it describes."""
    schema = _resolved(plain, plain)
    if "items" in schema and "properties" not in schema:
        schema = _resolved(as_mapping("items", schema["items"]), plain)
    properties = as_mapping("properties", schema.get("properties") or {})
    required = set(map(str, as_list("required", schema.get("required") or [])))
    columns = []
    for name, described in properties.items():
        with about(f"property {name!r}"):
            columns.append(_column(str(name), _resolved(described, plain), name in required))
    table = CodebookTable(
        name=table_name(path.name.replace(".schema", "")),
        columns=tuple(columns),
        label=in_one_line(schema.get("title") or schema.get("description")),
    )
    return Codebook.of(KIND, [table], title=in_one_line(plain.get("title")))


def _resolved(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with the references inside the file, and all parts of `allOf`, put in."""
    merged = dict(as_mapping("a schema", {} if schema is True else schema))
    for _ in range(MOST_REFERENCES):
        if "$ref" not in merged:
            break
        reference = str(merged.pop("$ref"))
        if not reference.startswith("#"):
            merged[ELSEWHERE] = reference
            break
        merged = dict(_target(reference, root)) | merged
    else:
        raise InputError("its references lead in a circle")
    for part in as_list("allOf", merged.pop("allOf", [])):
        inner = _resolved(part, root) if part is not schema else {}
        properties = {**inner.get("properties", {}), **merged.get("properties", {})}
        needed = [*inner.get("required", []), *merged.get("required", [])]
        merged = inner | merged
        merged |= {"properties": properties} if properties else {}
        merged |= {"required": needed} if needed else {}
    return merged


def _target(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of the file to which a reference leads."""
    part: Any = root
    for step in filter(None, reference[1:].split("/")):
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(part, Mapping) or step not in part:
            raise InputError(f"its reference {reference!r} leads nowhere")
        part = part[step]
    return as_mapping("a schema", part)


def _column(name: str, schema: Mapping[str, Any], required: bool) -> CodebookColumn:
    choices = schema.get("anyOf") or schema.get("oneOf") or []
    parts = [part for part in choices if isinstance(part, Mapping)]
    values: list[tuple[Any, str]] = []
    if "enum" in schema:
        values = [(value, "") for value in as_list("enum", schema["enum"])]
    elif "const" in schema:
        values = [(schema["const"], "")]
    elif parts and all("const" in part for part in parts):
        values = [
            (part["const"], in_one_line(part.get("title") or part.get("description"))) for part in parts
        ]
    alternatives = [part for part in parts if part.get("type") != "null"]
    label = in_one_line(schema.get("title") or schema.get("description"))
    is_nullable = len(alternatives) < len(parts)
    if not values and len(alternatives) == 1:  # a value, or null
        schema = {**schema, **alternatives[0]}
        values = [(value, "") for value in schema.get("enum", [])]
    types = schema.get("type", "")
    types = [kind for kind in (types if isinstance(types, list) else [types]) if isinstance(kind, str)]
    is_nullable |= "null" in types or any(value is None for value, _ in values)
    types = [kind for kind in types if kind != "null"]
    kind: Type = TYPES.get(types[0], "") if len(types) == 1 else ""
    values = [(value, label_of) for value, label_of in values if value is not None]
    if values and all(type(value) in (int, float) for value, _ in values):
        kind = kind or "number"
    if any(isinstance(value, list | dict) for value, _ in values):
        kind, values = "object", []
    if kind == "boolean":
        values = []
    form = str(schema.get("format", ""))
    low, high, remarks = schema.get("minimum"), schema.get("maximum"), list[str]()
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if above not in (None, False):  # True in draft 4: the bound is `minimum`
        low, remarks = included_bound("low", low if above is True else above, kind)
    if below not in (None, False):
        high, more = included_bound("high", high if below is True else below, kind)
        remarks += more
    if ELSEWHERE in schema:
        remarks.append(f"Its values are in another file, {schema[ELSEWHERE]}, which is not read.")
    step_of = number_or_none(schema.get("multipleOf"))
    return CodebookColumn(
        name=name,
        type=FORMATS.get(form, kind) if kind == "text" else kind,
        label=label or in_one_line(schema.get("title") or schema.get("description")),
        values=tuple(values),
        low=number_or_none(low),
        high=number_or_none(high),
        required=required and not is_nullable,
        pattern=schema.get("pattern") if isinstance(schema.get("pattern"), str) else None,
        step=step_of if step_of != 1 else None,
        role="identifier" if kind == "text" and form in NAMING else "",
        remarks=tuple(remarks),
    )
