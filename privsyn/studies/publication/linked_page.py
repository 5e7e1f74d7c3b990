"""The public page of several tables: what was released of each, and how they are linked. It reads no row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

from privsyn.errors import InputError
from privsyn.inference.fitted import LEVEL
from privsyn.pages import sections as pages
from privsyn.pages.diagram import diagram
from privsyn.pages.sections import Section, percent
from privsyn.progress import no_progress
from privsyn.release.agreement import Agreement
from privsyn.release.losses.lines import lines_of
from privsyn.release.release import Release
from privsyn.studies.publication import links as linked
from privsyn.studies.publication.links import LinksInWords
from privsyn.studies.publication.relationships import KEPT, MOST_PAIRS, in_plain_words, in_values, pair_table
from privsyn.studies.publication.tiles import LIMITS, SEED, estimates, in_short
from privsyn.table.database.opened import ROW, rows_of

SECTIONS = (
    Section("public", "In short"),
    Section("drawing", "The tables and how they are linked", "Tables"),
    Section("losses", "What the run did to the columns", "Losses"),
    Section("links", "Which links are kept", "Links"),
    Section("each", "Table by table"),
    Section("explorer", "Look at a pair of columns", "Pairs"),
    Section("rules", "Rules that every synthetic row keeps", "Rules"),
    Section("covered", "What is covered"),
    Section("privacy", "Privacy in plain words", "Privacy"),
    Section("ledger", "What it cost", "Costs"),
)

ROWS = 20_000
"""Synthetic rows of the largest table: they show what constraints and sampling change."""

FEW_TABLES = 3
"""Tables whose parts of the page are open at first."""

TRUST = {
    KEPT[0]: "Trust its direction and its size.",
    KEPT[1]: "Trust its direction, not its size.",
    KEPT[2]: "Noise may hide or make it: conclude neither a direction nor a size from it.",
}

Links = Mapping[str, LinksInWords]
"""The links of each table that has a parent."""


def render_linked(release: Release) -> str:
    """Return the page of several tables as text."""
    agreement = _compared(release)
    links = {name: LinksInWords(release, name) for name in release.database.names[1:]}
    tables = [_table(release, name, agreement.get(name), links.get(name)) for name in release.tables]
    data = _pairs(tables, release, links)
    total, low, high = linked.persons(release)
    root, ledger = release.database.root, release.ledger
    values = {
        "ledger": in_values(ledger),
        "odds": in_plain_words(ledger),
        "root": root,
        "rows": total,
        "low": low,
        "high": high,
        "each_other": [linked.rows_each(release, name) for name in release.database.names[1:]],
        "drawing": diagram("The tables and how they are linked", linked.boxes(release)),
        "lookups": {
            name: (table.key, len(table.public.frame)) for name, table in release.database.public.items()
        },
        "numbers": {name: number for number, name in enumerate(release.tables, 1)},
        "kept_words": KEPT,
        "tables": tables,
        "uses": _uses(tables),
        "open": len(tables) <= FEW_TABLES,
        "links": {name: links[name].pairs_kept for name in links},
        "best": _best(links),
        "rules": linked.rules(release),
        "csv": estimates(release.tables),
        "lost": release.not_found,
        "losses": lines_of(release.losses),
        "drawn": min((table["drawn"] for table in tables), default=0),
        "uncovered": _joined(tables, "uncovered"),
        "data": data,
        "explorer": data,
        "known": any(table["typical"] is not None for table in tables),
        **LIMITS,
    }
    return pages.render("linked.html", values, SECTIONS)


def _compared(release: Release) -> dict[str, Agreement]:
    """Compare synthetic rows of each table with its release; nothing if no rows can be sampled.

    The largest table then has about `ROWS` rows.
    """
    totals = {name: model.fitted.total for name, model in release.tables.items()}
    scale = max(1.0, max(totals.values()) / ROWS)
    try:
        persons = max(round(totals[release.database.root] / scale), 1)
        made = release.linked_rows.sample(persons, None, SEED, no_progress)
    except InputError:  # the page says that the constraints are not covered
        return {}
    agreements = {}
    for name, rows in made.items():
        table = release.tables[name]
        if len(rows.frame):
            agreements[name] = Agreement(table.codec, table.fitted, table.accuracy_.not_found)
            agreements[name].add(rows.frame)
    return agreements


def _table(
    release: Release, name: str, agreement: Agreement | None, links: LinksInWords | None
) -> dict[str, Any]:
    """Return what the page says of one table."""
    model, table = release.tables[name], release.database.tables[name]
    values = in_short(model, agreement)
    numbers = {rows_of(child): child for child in release.database.children(name)}
    hidden = linked.not_published(release, name)
    called = linked.called_elsewhere(release, name)
    columns = {
        column["name"]: column | {"name": called.get(column["name"], column["name"])}
        for column in values["columns"]
        if column["name"] != ROW
    }
    children = [linked.rows_each(release, child) for child in numbers.values()]
    errors = [column["error"] for column in columns.values() if not column["lost"]]
    return values | {
        "name": name,
        "key": table.key,
        "link": table.link,
        "parent": table.parent,
        "order": table.order,
        "outlook": release.outlooks()[name],
        # The mean from both numbers of rows is the more accurate one, and said beside the tile.
        "children": [rows | {"tile": columns[rows["column"]] | {"facts": ""}} for rows in children],
        "columns": [column for name_of_column, column in columns.items() if name_of_column not in numbers],
        "summaries": [column for column in columns if column in hidden and column not in numbers],
        "typical": median(errors) if errors else None,
        "across": [] if links is None else links.relationships,
    }


def _uses(tables: list[dict[str, Any]]) -> list[tuple[list[str], str]]:
    """Return what tables may be used for, and which: those with the same words together."""
    tables_by_use: dict[str, list[str]] = {}
    for table in tables:
        if table["typical"] is not None and table["columns"]:
            tables_by_use.setdefault(table["good_for"], []).append(table["name"])
    return [(names, text) for text, names in tables_by_use.items()]


def _best(links: Links) -> list[dict[str, Any]]:
    """Return the pairs across tables that are kept well or roughly, the strongest first."""
    rows = [
        row
        for links_of_table in links.values()
        for row in links_of_table.relationships
        if row["kept"] != KEPT[2]
    ]
    return sorted(rows, key=lambda row: -row["strength"])


def _pairs(tables: list[dict[str, Any]], release: Release, links: Links) -> list[dict[str, Any]]:
    """Return the counts of the strongest pairs, or shares if they link rows, each with a sentence."""
    rows_and_counts: list[tuple[dict[str, Any], Callable[[], dict[str, Any]]]] = []
    for table in tables:
        name = table["name"]
        own_rows = [row for row in table["tables"] if len(row["columns"]) == 2]
        rows_and_counts += [(row, partial(_own_pair, release, name, row)) for row in own_rows]
        if name in links:
            across = [row for row in links[name].relationships if len(row["columns"]) == 2]
            rows_and_counts += [(row, partial(links[name].shares, row)) for row in across]
    rows_and_counts.sort(key=lambda pair: -pair[0]["strength"])
    return [counts() | {"said": _in_words(row)} for row, counts in rows_and_counts[:MOST_PAIRS]]


def _own_pair(release: Release, name: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of a pair of columns of one table, whose names are those of the whole page."""
    columns = [f"{name}.{column}" for column in row["columns"]]
    return pair_table(release.tables[name], row["columns"]) | {"columns": columns}


def _in_words(row: dict[str, Any]) -> str:
    """Return how well a relationship is kept, as a sentence."""
    low, high = percent(row["low"]), percent(row["high"])
    strength = f"Strength {percent(row['strength'])}, {LEVEL} interval {low} to {high}: {row['kept']}."
    return f"{strength} {TRUST[row['kept']]}"


def _joined(tables: list[dict[str, Any]], key: str) -> dict[str, list[str]]:
    """Return what all tables list, each name with its table."""
    joined: dict[str, list[str]] = {}
    for table in tables:
        for title, names in table[key].items():
            joined.setdefault(title, []).extend(f"{table['name']}.{name}" for name in names)
    return joined
