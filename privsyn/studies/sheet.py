"""The data sheet of a release: questions and answers in Markdown, and metadata for machines in JSON-LD."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import file_digest
from os import PathLike
from pathlib import Path
from statistics import median
from typing import Any

from markupsafe import Markup

from privsyn.arguments import check_release
from privsyn.files import atomic_path
from privsyn.pages import sections as pages
from privsyn.pages.sections import percent
from privsyn.release.release import Release
from privsyn.studies.release_facts import facts
from privsyn.synthesizer import PrivSyn
from privsyn.table.io.formats import Place
from privsyn.table.schema.columns import Column
from privsyn.table.schema.yaml_file import kind_of

MOST_VALUES = 12
"""Listed values that the table of columns names."""

CROISSANT = "http://mlcommons.org/croissant/1.0"

CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "recordSet": "cr:recordSet",
    "field": "cr:field",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "source": "cr:source",
    "fileObject": "cr:fileObject",
    "extract": "cr:extract",
    "column": "cr:column",
}
"""The names that the metadata use, of schema.org and of Croissant."""


def sheet(
    release: Release | PrivSyn, path: str | PathLike[str], *, data: str | PathLike[str] | None = None
) -> None:
    """Write the data sheet of a release: a text to be completed by hand, with metadata for machines.

    It uses only the release, and the synthetic file if one is given. So it may be published wherever these
    may.

    Parameters
    ----------
    release : Release or PrivSyn
        The result of `load`, or a fitted model.
    path : path
        A Markdown file.
    data : path, optional
        The synthetic table. The metadata then have its name, its size and its checksum, as Croissant needs.

    Raises
    ------
    InputError
        If a file cannot be read or written.
    """
    text = render(check_release(release), None if data is None else Path(data))
    with atomic_path(path) as place:
        place.write_text(text, encoding="utf-8")


def render(release: Release, data: Path | None = None) -> str:
    """Return the sheet as text."""
    codec, known, tables = release.codec, facts(release), release.accuracy_.tables
    alone = tables[tables["covered"] & (tables["order"] == 1)]
    errors = alone["expected_error"].tolist()
    by_column: dict[str, list[float]] = {}
    for (attribute,), error in zip(alone["columns"], errors, strict=True):
        by_column.setdefault(codec.column_of(attribute), []).append(error)
    values = known | {
        "name": "a synthetic table" if data is None else data.name,
        "file": data,
        "dropped": codec.dropped,
        "columns": [
            {
                "name": name,
                "kind": kind_of(codec.schema.columns[name]),
                "range": codec.schema.columns[name].values_in_words,
                "error": "not found: cells are invented"
                if name in known["lost"]
                else percent(max(by_column[name]))
                if name in by_column
                else "not counted",
            }
            for name in codec.names
        ],
        "typical": median(errors) if errors else None,
        "metadata": Markup(_without_tags(metadata(release, data))),  # noqa: S704
    }
    return pages.render("sheet.md", values)


def metadata(release: Release, data: Path | None = None) -> dict[str, Any]:
    """Return the metadata as JSON-LD: a schema.org Dataset, and Croissant if there is a file."""
    codec, ledger = release.codec, release.ledger
    names = [name for name in codec.names if name not in codec.dropped]
    title = "Synthetic table" if data is None else data.name
    plain: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": title,
        "description": _description(release),
        "isAccessibleForFree": True,
        "measurementTechnique": f"differentially private counts of sets of columns, privsyn {ledger.version}",
        "variableMeasured": [_variable(name, codec.schema.columns[name]) for name in names],
    }
    if data is None:
        return plain
    place = Place.of(data)
    kind, data = place.format.media, place.file
    with data.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"rows/{name}",
            "name": name,
            "dataType": f"sc:{codec.schema.columns[name].data_type}",
            "source": {"fileObject": {"@id": data.name}, "extract": {"column": name}},
        }
        for name in names
    ]
    return plain | {
        "conformsTo": CROISSANT,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": data.name,
                "name": data.name,
                "contentUrl": data.name,
                "contentSize": f"{data.stat().st_size} B",
                "encodingFormat": "application/gzip" if data.suffix == ".gz" else kind,
                "sha256": digest,
            }
        ],
        "recordSet": [{"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}],
    }


def _description(release: Release) -> str:
    ledger = release.ledger
    if ledger.elsewhere is not None:
        return f"Synthetic rows from counts that were measured elsewhere: {ledger.elsewhere}."
    if ledger.warning is not None:
        return ledger.warning
    promise = f"epsilon {ledger.promised_epsilon:g}, delta {ledger.promised_delta:g}"
    return f"Synthetic version of a private table with {promise}; neighbouring tables: {ledger.neighbours}."


def _variable(name: str, column: Column) -> dict[str, Any]:
    """Return a column as a schema.org PropertyValue; only what the released schema says."""
    variable: dict[str, Any] = {
        "@type": "sc:PropertyValue",
        "name": name,
        "description": column.values_in_words,
    }
    if (ends := column.number_range) is not None:
        variable |= {"minValue": ends[0], "maxValue": ends[1]}
    return variable


def _without_tags(plain: Mapping[str, Any]) -> str:
    """Return JSON in which no sign begins a tag, so that it may stand in a web page."""
    text = json.dumps(plain, indent=2, ensure_ascii=False, default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
