"""README.md: a dataset card for hubs such as Hugging Face, which read its front matter."""

from __future__ import annotations

from typing import Any

from privsyn.pages.sections import render
from privsyn.studies.publication.catalogues.published_tables import PublishedTable, PublishedTables
from privsyn.table.io.formats import CSV
from privsyn.table.schema.yaml_file import dump

SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
    (10**8, "10M<n<100M"),
    (10**9, "100M<n<1B"),
)
"""The classes of a hub for the number of rows below a limit."""

HUB_LICENCES = (
    *("cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nd-4.0", "cc-by-nc-sa-4.0"),
    *("odbl", "pddl", "etalab-2.0"),
)
"""Identifiers of licences that the hub knows; others need a name and a link."""

OTHER_NAMES = {"odbl-1.0": "odbl", "pddl-1.0": "pddl"}

MOST_SHOWN = 60
"""Columns in the table of the card."""


def card(published: PublishedTables) -> str:
    """Return the card: front matter in YAML, and a page in Markdown."""
    values = {
        "published": published,
        "about": published.about,
        "ledger": published.release.ledger,
        "most": MOST_SHOWN,
        "single": published.tables[0] if len(published.tables) == 1 else None,
    }
    return f"---\n{dump(front_matter(published), flow=False)}---\n\n{render('card.md', values)}"


def front_matter(published: PublishedTables) -> dict[str, Any]:
    """Return what the hub reads."""
    words, rows = published.about, max(table.rows for table in published.tables)
    tags = ["synthetic", "differential-privacy", "privsyn", "croissant", *words.keywords]
    front: dict[str, Any] = {
        "pretty_name": published.title,
        **_licence(words.licence),
        "language": list(words.language),
        "size_categories": [next((name for limit, name in SIZES if rows < limit), "n>1B")],
        "tags": list(dict.fromkeys(tags)),
        "configs": [_config(table, published) for table in published.tables],
    }
    return {name: value for name, value in front.items() if value}


def _licence(licence: str | None) -> dict[str, str]:
    if licence is None:
        return {}
    lower = OTHER_NAMES.get(licence.lower(), licence.lower())
    if lower in HUB_LICENCES:
        return {"license": lower}
    link = licence if licence.startswith("http") else f"https://spdx.org/licenses/{licence}.html"
    return {
        "license": "other",
        "license_name": licence if licence != link else "custom",
        "license_link": link,
    }


def _config(table: PublishedTable, published: PublishedTables) -> dict[str, Any]:
    name = "default" if len(published.tables) == 1 else table.name
    config: dict[str, Any] = {"config_name": name, "data_files": table.file}
    if table.location.format is CSV and table.csv.delimiter != ",":
        config["sep"] = table.csv.delimiter
    return config
