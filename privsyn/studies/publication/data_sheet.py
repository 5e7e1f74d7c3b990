"""The data sheet of a release: questions and answers in Markdown, and metadata for machines in JSON-LD."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

from markupsafe import Markup

from privsyn.arguments import check_release
from privsyn.files import atomic_path
from privsyn.inference.fitted import LEVEL
from privsyn.pages import sections as pages
from privsyn.pages.sections import percent
from privsyn.release.losses.facts import steps_found
from privsyn.release.release import Release
from privsyn.release.table_model import TableModel
from privsyn.studies.publication import links as linked
from privsyn.studies.publication.catalogues.croissant import metadata
from privsyn.studies.publication.relationships import errors_of_columns, facts, in_plain_words, in_values
from privsyn.synthesizer import PrivSyn
from privsyn.table.database.derived_columns import constants
from privsyn.table.kinds.keys import key_in_words
from privsyn.table.schema.yaml_file import kind_of

MOST_VALUES = 12
"""Listed values that the table of columns names."""


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
        part, of_persons = _in_short(model), _in_short(release.tables[release.database.root])["columns"]
        by_name = {column["name"]: column for column in of_persons}
        further = constants(release.database, release.database.shown[0]).items()
        part["columns"] += [by_name[original] | {"name": column} for column, original in further]
        return pages.render("sheet.md", values | {"parts": [part]})
    database = release.database
    total, low, high = linked.number_of_rows(release, database.root)
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
    links = {name: linked.LinksInWords(release, name).pairs_kept for name in database.below}
    values |= {
        "root": database.root,
        "rows": total,
        "low": low,
        "high": high,
        "level": LEVEL,
        "parts": parts,
        "lookups": [*database.public],
        "links": links,
        "lasting": any(line["lasting"] for lines in links.values() for line in lines),
        "rules": linked.rules(release),
    }
    return pages.render("sheet.md", values)


def _in_short(release: TableModel) -> dict[str, Any]:
    """Return what the sheet says of a table, by name."""
    codec, facts_of_table, steps = release.codec, facts(release), steps_found(release)
    errors_in_words = {column: percent(error) for column, error in errors_of_columns(release).items()}
    errors_in_words |= dict.fromkeys(facts_of_table["lost"], "not found: cells are invented")
    return facts_of_table | {
        "dropped": codec.dropped,
        "columns": [
            {
                "name": name,
                "kind": kind_of(codec.schema.columns[name]),
                "range": codec.schema.columns[name].values_in_words
                + (f", rounded to multiples of {steps[name]:g}" if name in steps else ""),
                "error": errors_in_words.get(name, "not counted"),
            }
            for name in codec.names
        ]
        + [
            {
                "name": name,
                "kind": kind_of(kind),
                "range": kind.values_in_words,
                "error": f"not counted: computed as {release.formulas[name]}",
            }
            for name, kind in release.computed_above.items()
        ],
    }
