"""REDCap: the data dictionary of a project, a CSV with a line for each field."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from privsyn.errors import InputError, about
from privsyn.files import read_text
from privsyn.table.codebooks.codebook import (
    Codebook,
    CodebookColumn,
    CodebookTable,
    Type,
    in_one_line,
    table_name,
)
from privsyn.table.codebooks.plain import number_or_none

KIND = "REDCap data dictionary"

HEADERS = {
    "name": ("variable / field name", "field_name"),
    "form": ("form name", "form_name"),
    "type": ("field type", "field_type"),
    "label": ("field label", "field_label"),
    "choices": (
        "choices, calculations, or slider labels",
        "choices or calculations",
        "select_choices_or_calculations",
    ),
    "validation": (
        "text validation type or show slider number",
        "text_validation_type_or_show_slider_number",
    ),
    "low": ("text validation min", "text_validation_min"),
    "high": ("text validation max", "text_validation_max"),
    "identifier": ("identifier?", "identifier"),
    "branching": ("branching logic (show field only if...)", "branching_logic"),
    "required": ("required field?", "required_field"),
}
"""The titles of the columns of a dictionary, in the export of the page and in that of the API."""

VALIDATIONS: Mapping[str, Type] = {
    "integer": "integer",
    "number": "number",
    "date": "date",
    "datetime": "datetime",
    "time": "time",
}
"""How texts are checked, by the first word of the check. Dates are exported in ISO form."""

NAMING = ("email", "phone", "ssn", "mrn")
FLAGS = {"yesno": ((1, "Yes"), (0, "No")), "truefalse": ((1, "True"), (0, "False"))}
STATES = ((0, "Incomplete"), (1, "Unverified"), (2, "Complete"))
"""What the column of each form has in an export."""


def recognises(head: str) -> bool:
    """Return whether a CSV begins as a data dictionary does."""
    first = head.removeprefix("\ufeff").partition("\n")[0].lower()
    return any(first.lstrip('"').startswith(title) for title in HEADERS["name"])


def read(path: Path) -> Codebook:
    """Return the columns that an export of the project has."""
    rows = csv.DictReader(StringIO(read_text(path).removeprefix("\ufeff"), newline=""))
    titles = {str(title).strip().strip('"').lower(): title for title in rows.fieldnames or ()}
    titles_of_parts = {
        part: next((titles[title] for title in names if title in titles), None)
        for part, names in HEADERS.items()
    }
    if titles_of_parts["name"] is None or titles_of_parts["type"] is None:
        raise InputError("a data dictionary has the columns Variable / Field Name and Field Type")
    columns: list[CodebookColumn] = []
    forms: dict[str, None] = {}
    for line, row in enumerate(rows, 2):
        field = {
            part: (row.get(title) or "").strip() if title else "" for part, title in titles_of_parts.items()
        }
        if not field["name"]:
            raise InputError(f"line {line}: a field without a name")
        with about(f"field {field['name']!r}"):
            columns += _columns(field, first=not columns)
        forms.setdefault(field["form"])
    columns += [
        CodebookColumn(name=f"{form}_complete", type="integer", label="State of the form", values=STATES)
        for form in forms
        if form
    ]
    if not columns:
        raise InputError("the data dictionary has no field")
    return Codebook.of(KIND, [CodebookTable(name=table_name(path.name), columns=tuple(columns))])


def _columns(field: Mapping[str, str], *, first: bool) -> list[CodebookColumn]:
    """Return the columns of a field: one for each box of a checkbox, none for a text on the page."""
    kind, name, label = (
        field["type"].lower(),
        field["name"],
        in_one_line(re.sub("<[^>]*>", " ", field["label"])),
    )
    branching = in_one_line(field["branching"])
    remarks = [f"ASKED ONLY IF {branching}: else its cell is missing."] if branching else []
    required = field["required"].lower() == "y" and not branching
    if kind == "descriptive":
        return []
    if kind == "checkbox":
        boxes = _choices(field["choices"])
        return [
            CodebookColumn(
                name=f"{name}___{re.sub('[^a-z0-9_]', '_', str(code).lower())}",
                type="integer",
                label=f"{label}: {box}",
                values=((0, ""), (1, "")),
                remarks=tuple(remarks),
            )
            for code, box in boxes
        ]
    facts, more = _facts_of(kind, field)
    check = field["validation"].lower().split("_")[0]
    names_person = field["identifier"].lower() == "y" or check in NAMING
    return [
        CodebookColumn(
            name=name,
            label=label,
            required=required,
            unique=first,
            role="identifier" if first or names_person else "prose" if kind == "notes" else "",
            remarks=(*remarks, *more),
            **facts,
        )
    ]


def _facts_of(kind: str, field: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the type of a field, with its values or bounds, and remarks on bounds that are no values."""
    match kind:
        case "yesno" | "truefalse":
            return {"type": "integer", "values": FLAGS[kind]}, []
        case "radio" | "dropdown":
            values = _choices(field["choices"])
            whole_codes = all(isinstance(code, int) for code, _ in values)
            return {"type": "integer" if whole_codes else "text", "values": values}, []
        case "slider":
            low, high = number_or_none(field["low"]), number_or_none(field["high"])
            return {"type": "integer", "low": low or 0, "high": 100 if high is None else high}, []
        case "calc":
            return {"type": "number"}, []
        case "file" | "signature":
            return {"type": "object"}, []
        case "text":
            check = field["validation"].lower()
            type_of = VALIDATIONS.get(check.split("_")[0], "text")
            lowest, highest, remarks = _bounds(field, type_of)
            digits = re.search(r"_([0-9])dp", check)
            decimals = None if digits is None else int(digits[1])
            return {"type": type_of, "low": lowest, "high": highest, "decimals": decimals}, remarks
    return {}, []


def _choices(text: str) -> tuple[tuple[int | str, str], ...]:
    """Return the codes and labels of a list of choices.

    >>> _choices("1, Male | 2, Female | X, None, or other")
    (('1', 'Male'), ('2', 'Female'), ('X', 'None, or other'))
    """
    choices: list[tuple[int | str, str]] = []
    for choice in re.split(r"\||\r?\n|\\n", text):
        code, _, label = (part.strip() for part in choice.partition(","))
        if code:
            match = re.fullmatch("-?(0|[1-9][0-9]*)", code)
            choices.append((int(code) if match else code, in_one_line(label)))
    if not choices:
        raise InputError("it has no choices")
    if not all(isinstance(code, int) for code, _ in choices):  # one list has one type
        return tuple((str(code), label) for code, label in choices)
    return tuple(choices)


def _bounds(field: Mapping[str, str], kind: Type) -> tuple[float | str | None, float | str | None, list[str]]:
    """Return the bounds of a text that is checked, and a remark on one that is no value."""
    bounds: list[float | str | None] = []
    remarks = []
    for end in ("low", "high"):
        text = field[end]
        bound: float | str | None = number_or_none(text) if kind in ("integer", "number") else text or None
        if kind in ("date", "datetime") and text and not re.match("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            bound = None
        if kind == "time" and text and not re.fullmatch("[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?", text):
            bound = None
        if text and (bound is None or kind in ("text", "")):
            remarks.append(f"The codebook's {end} bound is {text}.")
            bound = None
        bounds.append(bound)
    return bounds[0], bounds[1], remarks
