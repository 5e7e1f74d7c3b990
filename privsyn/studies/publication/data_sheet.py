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
from privsyn.inference.fitted import LEVEL
from privsyn.pages import sections as pages
from privsyn.pages.sections import percent
from privsyn.private.ledger import Ledger
from privsyn.release.release import Release
from privsyn.release.table_model import TableModel
from privsyn.studies.publication import links as linked
from privsyn.studies.publication.relationships import facts, in_plain_words, in_values
from privsyn.synthesizer import PrivSyn
from privsyn.table.database.synthetic import schema_of
from privsyn.table.io.formats import Location, holds_tables, tables_in
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
    "key": "cr:key",
    "references": "cr:references",
}
"""The names that the metadata use, of schema.org and of Croissant."""


def sheet(
    release: Release | PrivSyn,
    path: str | PathLike[str],
    *,
    data: str | PathLike[str] | None = None,
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
        The synthetic table, or the folder or database with all of them. The metadata then have the names, the
        sizes and the checksums of the files, as Croissant needs. It knows no databases: for one, they are
        those of schema.org alone.

    Raises
    ------
    InputError
        If a file cannot be read or written.
    """
    text = render(check_release(release), None if data is None else Path(data))
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")


def render(release: Release, data: Path | None = None) -> str:
    """Return the sheet as text; `data` is the file of the synthetic table, or what holds the tables."""
    record, single = metadata(release, data), release.single
    values = {
        "ledger": in_values(release.ledger),
        "odds": in_plain_words(release.ledger),
        "name": ("synthetic tables" if single is None else "a synthetic table")
        if data is None
        else data.name,
        "file": data if "recordSet" in record else None,
        "metadata": _json(record),
    }
    if single is not None:
        return pages.render("sheet.md", _in_short(single) | values)
    return pages.render("linked.md", _of_tables(release) | values)


def _of_tables(release: Release) -> dict[str, Any]:
    """Return what the sheet says of linked tables, by name."""
    total, low, high = linked.persons(release)
    return {
        "root": release.database.root,
        "rows": total,
        "low": low,
        "high": high,
        "level": LEVEL,
        "parts": [
            _in_short(model)
            | {
                "name": name,
                "table": release.database.tables[name],
                "each": linked.rows_each(release, name) if name != release.database.root else None,
                "hidden": linked.not_published(release, name),
                "called": linked.called_elsewhere(release, name),
            }
            for name, model in release.tables.items()
        ],
        "lookups": [*release.database.public],
        "links": {name: linked.LinksInWords(release, name).pairs_kept for name in release.database.names[1:]},
        "rules": linked.rules(release),
    }


def _in_short(release: TableModel) -> dict[str, Any]:
    """Return what sheets say of a table, by name."""
    codec, facts_of_table, tables = release.codec, facts(release), release.accuracy_.tables
    alone = tables[tables["covered"] & (tables["order"] == 1)]
    errors = alone["expected_error"].tolist()
    by_column: dict[str, list[float]] = {}
    for (attribute,), error in zip(alone["columns"], errors, strict=True):
        by_column.setdefault(codec.column_of(attribute), []).append(error)
    return facts_of_table | {
        "dropped": codec.dropped,
        "columns": [
            {
                "name": name,
                "kind": kind_of(codec.schema.columns[name]),
                "range": codec.schema.columns[name].values_in_words,
                "error": "not found: cells are invented"
                if name in facts_of_table["lost"]
                else percent(max(by_column[name]))
                if name in by_column
                else "not counted",
            }
            for name in codec.names
        ],
        "typical": median(errors) if errors else None,
    }


def metadata(release: Release, data: Path | None = None) -> dict[str, Any]:
    """Return the metadata as JSON-LD: a schema.org Dataset, and Croissant if each table is a file.

    Parameters
    ----------
    release : Release
    data : path, optional
        The file of the only table, the folder of several files, or a database with all tables.
    """
    database, single = release.database, release.database.single
    tables = [*release.tables] if single is None else [single]
    columns = {name: _columns_of(release, name) for name in tables}
    variables = [
        _variable(database.shown_column(name, column), kind)
        for name, kinds in columns.items()
        for column, kind in kinds.items()
        if kind is not None
    ]
    title = ("Synthetic tables" if single is None else "Synthetic table") if data is None else data.name
    dataset = _dataset(release.ledger, title) | {"variableMeasured": variables}
    if data is None:
        return dataset
    if single is None and holds_tables(data):
        return dataset | {
            "distribution": [_file(Location.of(data), data.name) | {"@type": "sc:DataDownload"}]
        }
    paths = tables_in(data, database.tables) if single is None else {single: data}
    locations = {name: Location.of(path) for name, path in paths.items()}
    files = {name: location.file.name for name, location in locations.items()}
    sets: list[dict[str, Any]] = []
    for name in filter(files.get, database.names):
        table, title, fields = database.tables[name], name if single is None else "rows", []
        for column, kind in columns[name].items():
            text = kind.data_type if kind is not None else "Text"
            field = _field(title, column, text, files[name])
            if single is None and column == table.link:
                parent = database.tables[table.parent or ""].key
                field |= {"references": {"field": {"@id": f"{table.parent}/{parent}"}}}
            fields.append(field)
        key = {"key": {"@id": f"{name}/{table.key}"}} if table.key and single is None else {}
        sets.append({"@type": "cr:RecordSet", "@id": title, "name": title, **key, "field": fields})
    return dataset | {
        "conformsTo": CROISSANT,
        "distribution": [_file(location, files[name]) for name, location in locations.items()],
        "recordSet": sets,
    }


def _columns_of(release: Release, name: str) -> dict[str, Column | None]:
    """Return the columns of a synthetic table; None for those of keys."""
    if (model := release.single) is not None:
        dropped, columns = model.codec.dropped, model.codec.schema.columns
        return {column: columns[column] for column in model.codec.names if column not in dropped}
    codecs = {table: model.codec for table, model in release.tables.items()}
    columns = schema_of(name, release.database, codecs).columns
    return {column: columns.get(column) for column in release.tables[name].columns}


def _dataset(ledger: Ledger, title: str) -> dict[str, Any]:
    """Return the metadata that need no column and no file."""
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": title,
        "description": _description(ledger),
        "isAccessibleForFree": True,
        "measurementTechnique": f"differentially private counts of sets of columns, privsyn {ledger.version}",
    }


def _file(location: Location, name: str) -> dict[str, Any]:
    """Return a file with its size and checksum."""
    with location.file.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{location.file.stat().st_size} B",
        "encodingFormat": "application/gzip" if location.file.suffix == ".gz" else location.format.media,
        "sha256": digest,
    }


def _field(table: str, name: str, kind: str, file: str) -> dict[str, Any]:
    """Return a column of a file."""
    return {
        "@type": "cr:Field",
        "@id": f"{table}/{name}",
        "name": name,
        "dataType": f"sc:{kind}",
        "source": {"fileObject": {"@id": file}, "extract": {"column": name}},
    }


def _description(ledger: Ledger) -> str:
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


def _json(plain: Mapping[str, Any]) -> Markup:
    """Return JSON in which no sign begins a tag, so that it may stand in a web page."""
    text = json.dumps(plain, indent=2, ensure_ascii=False, default=str)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704
