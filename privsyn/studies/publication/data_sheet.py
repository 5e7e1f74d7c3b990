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
from privsyn.private.run_ledger import over_time_lines
from privsyn.release.release import Release
from privsyn.release.table_model import TableModel
from privsyn.studies.publication import links as linked
from privsyn.studies.publication.relationships import facts, in_plain_words, in_values
from privsyn.synthesizer import PrivSyn
from privsyn.table.database.synthetic import schema_of
from privsyn.table.io.formats import Location, holds_tables, tables_in
from privsyn.table.kinds.keys import key_in_words
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
    record, is_linked = metadata(release, data), release.single is None
    title = "synthetic tables" if is_linked else "a synthetic table"
    json_text = json.dumps(record, indent=2, ensure_ascii=False, default=str)
    for sign in "<>&":  # none begins a tag, so that the metadata may stand in a web page
        json_text = json_text.replace(sign, f"\\u{ord(sign):04x}")
    values: dict[str, Any] = {
        "about": release.about,
        "linked": is_linked,
        "digest": release.digest,
        "ledger": in_values(release.ledger),
        "odds": in_plain_words(release.ledger),
        "name": title if data is None else data.name,
        "file": data if "recordSet" in record else None,
        "metadata": Markup(json_text),  # noqa: S704
    }
    if (model := release.single) is not None:
        return pages.render("sheet.md", values | {"parts": [_in_short(model)]})
    database = release.database
    total, low, high = linked.persons(release)
    parts = []
    for name, model in release.tables.items():
        part, called = _in_short(model), linked.called_elsewhere(release, name)
        part["columns"] = [
            column | {"name": called.get(column["name"], column["name"])}
            for column in part["columns"]
            if column["name"] not in linked.not_published(release, name)
        ]
        rows_each = None if name not in database.below else linked.rows_each(release, name)
        declared = database.tables[name]
        link = key_in_words(declared.link)
        parts.append(part | {"name": name, "table": declared, "link": link, "each": rows_each})
    values |= {
        "root": database.root,
        "rows": total,
        "low": low,
        "high": high,
        "level": LEVEL,
        "parts": parts,
        "lookups": [*database.public],
        "links": {name: linked.LinksInWords(release, name).pairs_kept for name in database.below},
        "rules": linked.rules(release),
    }
    return pages.render("sheet.md", values)


def _in_short(release: TableModel) -> dict[str, Any]:
    """Return what the sheet says of a table, by name."""
    codec, facts_of_table, tables = release.codec, facts(release), release.accuracy_.tables
    alone = tables[tables["covered"] & (tables["order"] == 1)]
    errors = alone["expected_error"].tolist()
    errors_in_words: dict[str, str] = {}
    largest: dict[str, float] = {}
    for (attribute,), error in alone[["columns", "expected_error"]].itertuples(index=False):
        column = codec.column_of(attribute)
        largest[column] = max(error, largest.get(column, 0.0))
        errors_in_words[column] = percent(largest[column])
    errors_in_words |= dict.fromkeys(facts_of_table["lost"], "not found: cells are invented")
    return facts_of_table | {
        "dropped": codec.dropped,
        "columns": [
            {
                "name": name,
                "kind": kind_of(codec.schema.columns[name]),
                "range": codec.schema.columns[name].values_in_words,
                "error": errors_in_words.get(name, "not counted"),
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
    database, single, ledger = release.database, release.database.single, release.ledger
    if ledger.elsewhere is not None:
        description = f"Synthetic rows from counts that were measured elsewhere: {ledger.elsewhere}."
    elif ledger.warning is not None:
        description = ledger.warning
    else:
        promise = f"epsilon {ledger.promised_epsilon:g}, delta {ledger.promised_delta:g}"
        promise = ", ".join([promise, *over_time_lines(ledger)])
        description = (
            f"Synthetic version of a private table with {promise}; neighbouring tables: {ledger.neighbours}."
        )
    columns = {name: _columns_of(release, name) for name in database.shown}
    variables = []
    for name, columns_of_table in columns.items():
        for column, kind in columns_of_table.items():
            if kind is not None:  # only what the released schema says
                shown, values = database.shown_column(name, column), kind.values_in_words
                variable: dict[str, Any] = {"@type": "sc:PropertyValue", "name": shown, "description": values}
                if (ends := kind.number_range) is not None:
                    variable |= {"minValue": ends[0], "maxValue": ends[1]}
                variables.append(variable)
    title = "Synthetic tables" if single is None else "Synthetic table"
    dataset = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": title if data is None else data.name,
        "description": description,
        "isAccessibleForFree": True,
        "measurementTechnique": f"differentially private counts of sets of columns, privsyn {ledger.version}",
        "variableMeasured": variables,
    }
    if data is None:
        return dataset
    if single is None and holds_tables(data):
        file = _file(Location.of(data), data.name)
        return dataset | {"distribution": [file | {"@type": "sc:DataDownload"}]}
    paths = tables_in(data, database.tables) if single is None else {single: data}
    locations = {name: Location.of(path) for name, path in paths.items()}
    return dataset | {
        "conformsTo": CROISSANT,
        "distribution": [_file(location, location.file.name) for location in locations.values()],
        "recordSet": [
            _record_set(release, name, columns[name], locations[name].file.name)
            for name in database.names
            if name in locations
        ],
    }


def _record_set(
    release: Release, name: str, columns: Mapping[str, Column | None], file: str
) -> dict[str, Any]:
    """Return the columns of a file, with the key of the table and the key to which its rows lead."""
    database, fields = release.database, []
    table = database.tables[name]
    for column, kind in columns.items():
        field = {
            "@type": "cr:Field",
            "@id": f"{name}/{column}",
            "name": column,
            "dataType": f"sc:{'Text' if kind is None else kind.data_type}",
            "source": {"fileObject": {"@id": file}, "extract": {"column": column}},
        }
        if column in table.link_columns:
            its_key = database.tables[table.parent or ""].key_columns[table.link_columns.index(column)]
            field |= {"references": {"field": {"@id": f"{table.parent}/{its_key}"}}}
        fields.append(field)
    ids = [{"@id": f"{name}/{column}"} for column in table.key_columns]
    key = {"key": ids[0] if len(ids) == 1 else ids} if ids else {}
    return {"@type": "cr:RecordSet", "@id": name, "name": name, **key, "field": fields}


def _columns_of(release: Release, name: str) -> dict[str, Column | None]:
    """Return the columns of a synthetic table; None for those of keys."""
    if (model := release.single) is not None:
        dropped, columns = model.codec.dropped, model.codec.schema.columns
        return {column: columns[column] for column in model.codec.names if column not in dropped}
    codecs = {table: model.codec for table, model in release.tables.items()}
    computed_above = release.tables[name].computed_above
    columns = schema_of(name, release.database, codecs, computed_above).columns
    return {column: columns.get(column) for column in release.tables[name].columns}


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
