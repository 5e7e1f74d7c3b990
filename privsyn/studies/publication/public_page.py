"""The public page: a release as one web page. It reads no row and costs no privacy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isnan
from os import PathLike
from typing import Any

from privsyn.arguments import check_release
from privsyn.errors import InputError
from privsyn.files import atomic_path
from privsyn.inference.fitted import LEVEL
from privsyn.pages import sections as pages
from privsyn.pages.diagram import diagram
from privsyn.pages.sections import Section, percent
from privsyn.progress import no_progress
from privsyn.release.accuracy.agreement import Agreement
from privsyn.release.accuracy.outlook import WORDS
from privsyn.release.accuracy.verdicts import HOW_KEPT, KEPT_ROUGHLY, KEPT_WELL, UNDECIDED
from privsyn.release.accuracy.weighted import MEAN, kish_effect
from privsyn.release.linked_agreement import agreements, in_words
from privsyn.release.losses.lines import lines_of
from privsyn.release.release import Release
from privsyn.release.table_model import TableModel
from privsyn.studies.publication import links as linked
from privsyn.studies.publication.answer_table import answer_tables
from privsyn.studies.publication.links import LinksInWords
from privsyn.studies.publication.places import places_in_words
from privsyn.studies.publication.relationships import (
    MOST_PAIRS,
    in_plain_words,
    in_values,
    pair_map,
    pair_table,
    pair_tables,
)
from privsyn.studies.publication.tiles import LIMITS, estimates, in_short
from privsyn.synthesizer import PrivSyn
from privsyn.table.database.derived_columns import rows_of
from privsyn.table.database.opened import ROW
from privsyn.table.kinds.keys import key_in_words

MOST_LOSSES, FEW_NAMES = 3, 3  # lines of the conclusions, and names in one
SECTIONS = (
    Section("public", "In short"),
    Section("conclusions", "What you may conclude, and what not", "Conclusions"),
    Section("answers", "Answers"),
    # What follows is folded.
    Section("drawing", "The tables and how they are linked", "Tables", folded=True),
    Section("losses", "What the run did to the columns", "Losses", folded=True),
    Section("links", "Which links are kept", "Links", folded=True),
    Section("each", "Table by table", folded=True),
    Section("columns", "Columns", folded=True),
    Section("weights", "Weighted shares and means", "Weights", folded=True),
    Section("agreement", "Where rows differ", "Rows", folded=True),
    Section("tables", "Which relationships are kept", "Relationships", folded=True),
    Section("places", "Where values in one group differ", "Groups", folded=True),
    Section("explorer", "Look at a pair of columns", "Pairs", folded=True),
    Section("schema", "What the columns are", "Schema", folded=True),
    Section("rules", "Rules that every synthetic row keeps", "Rules", folded=True),
    Section("covered", "What is covered", folded=True),
    Section("privacy", "Privacy in plain words", "Privacy", folded=True),
    Section("acceptance", "Criteria fixed in advance", "Criteria", folded=True),
    Section("ledger", "What it cost", "Costs", folded=True),
)

OF_ONE = ("columns", "tables", "schema")
OF_LINKED = ("drawing", "each", "explorer", "rules")
"""Sections of a page of one table, and of a page of linked tables. Rows of persons have links on both."""

SEED, ROWS, LEAST_ROWS, CELLS = 0, 50_000, 10_000, 2**20
"""Synthetic rows show what constraints and sampling change; wide tables have fewer of them."""

ROWS_OF_LINKED = 20_000
"""Synthetic rows of the largest linked table."""

FEW_TABLES = 3
"""Tables whose parts of the page are open at first."""

TRUST = {
    KEPT_WELL: "Trust its direction and its size.",
    KEPT_ROUGHLY: "Trust its direction, not its size.",
    UNDECIDED: "Noise may hide or make it: conclude neither a direction nor a size from it.",
}


def report(release: Release | PrivSyn, path: str | PathLike[str]) -> None:
    """Write the released counts, their error bars and the privacy cost to a web page, in one file.

    It uses only the release, so it may be published wherever the release may. The page of several tables also
    shows how they are linked.

    Parameters
    ----------
    release : Release or PrivSyn
        The result of `load`, or a fitted model.
    path : path

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    page = render(check_release(release))
    with atomic_path(path) as partial:
        partial.write_text(page, encoding="utf-8")


def render(release: Release) -> str:
    """Return the page as text."""
    ledger = in_values(release.ledger)
    compared = _agreements(release)
    values = {
        "about": release.about,
        "linked": release.single is None,
        "agreement": in_words(release.database, compared),
        "ledger": ledger,
        "all_rows": release.ledger.counts_all_rows,
        "odds": in_plain_words(release.ledger),
        "lost": release.not_found,
        "losses": lines_of(release.losses, in_full=True),
        "largest_losses": lines_of(release.losses, shown=FEW_NAMES)[:MOST_LOSSES],
        "acceptance": ledger.get("acceptance"),
        "weights": _weights(release),
        "places": places_in_words(release),
        "few": FEW_NAMES,
        **LIMITS,
    }
    if (model := release.single) is not None:
        gaps, part = _gaps_in_words(release), in_short(model, compared.get(release.database.shown[0]))
        strengths, data = _strengths(model, part["tables"]), pair_tables(model, part["tables"])
        part = _renamed(_without_gaps(part, model), gaps)
        part["columns"] += _of_persons(release)
        links = {name: LinksInWords(release, name) for name in release.database.below}
        values |= dict.fromkeys(OF_LINKED) | part | _in_words(links)
        values |= {
            "answers": answer_tables(release, dict.fromkeys(release.tables, strengths)),
            "kept_best": [
                row for row in part["tables"] if row["kept"] == KEPT_WELL and len(row["columns"]) == 2
            ],
            "number_of_columns": len({*map(model.codec.column_of, model.codec.domain), *model.constant}),
            "schema": [*part["schema"], *(("rule", rule) for rule in linked.rules_of_persons(release))],
            "known": part["mean_error"] is not None,
            "computed": _computed(model),
            "csv": estimates(release.tables if release.is_linked else {"": model}),
            "data": _renamed(data, gaps),
            "map": pair_map([gaps.get(name, name) for name in model.codec.domain.names], part["tables"]),
        }
    else:
        values |= dict.fromkeys(OF_ONE) | _renamed(
            _facts_of_linked(release, compared), _gaps_in_words(release)
        )
    return pages.render("public.html", values, SECTIONS)


def _in_words(links: Mapping[str, LinksInWords]) -> dict[str, Any]:
    """Return what the page shows of links: how many pairs are kept how well, and those that are decided."""
    relationships = [row for links_of_table in links.values() for row in links_of_table.relationships]
    decided = [row for row in relationships if row["kept"] != UNDECIDED]
    return {
        "links": {name: links_of_table.pairs_kept for name, links_of_table in links.items()},
        "lasting": {name: table.lasting for name, table in links.items() if table.lasting},
        "best": sorted(decided, key=lambda row: -row["strength"]),
    }


EACH_PERSON = "of persons, each counted once"


def _gaps_in_words(release: Release) -> dict[str, str]:
    """Return what the page calls each gap, a distance between two columns that is counted for the later one.

    Readers know the columns: "left (after arrived)" stands for "left - arrived".
    """
    names: dict[str, str] = {}
    for table, model in release.tables.items():
        for gap in model.codec.gaps.values():
            words = f"{gap.column} (beside {', '.join(gap.side.columns)})"
            names |= {gap.name: words, f"{table}.{gap.name}": f"{table}.{words}"}
    return names


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return lists and mappings with each text that is one of the names replaced."""
    match value:
        case dict():
            return {key: _renamed(inner, names) for key, inner in value.items()}
        case list() | tuple() if type(value) in (list, tuple):
            return type(value)(_renamed(inner, names) for inner in value)
        case str():
            return names.get(value, value)
    return value


def _without_gaps(part: dict[str, Any], model: TableModel) -> dict[str, Any]:
    """Return what the page shows of a table, without gaps among its columns."""
    gaps = {gap.name for gap in model.codec.gaps.values()}
    return part | {"columns": [column for column in part["columns"] if column["name"] not in gaps]}


def _of_persons(release: Release) -> list[dict[str, Any]]:
    """Return what the page shows of the columns that were counted once for each person."""
    if not (names := linked.constant_columns(release)):
        return []
    columns = {
        column["name"]: column for column in in_short(release.tables[release.database.root], None)["columns"]
    }
    tiles = [(column, columns[original]) for column, original in names.items()]
    return [
        tile | {"name": column, "facts": "; ".join(filter(None, [EACH_PERSON, tile["facts"]]))}
        for column, tile in tiles
    ]


def _computed(model: TableModel) -> list[dict[str, Any]]:
    """Return what the page shows of the columns that are computed in each row: how, and no counts."""
    formulas = {name: str(rule) for name, rule in model.formulas.items()}
    gaps = {gap.column for gap in model.codec.gaps.values()}
    formulas |= {
        maker.column: f"from {', '.join(maker.by)}"
        for maker in model.codec.computed
        if maker.column not in gaps and maker.column not in model.codec.domain.names
    }
    return [{"name": name, "formula": formula} for name, formula in formulas.items()]


def _strengths(model: TableModel, rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return for each column the sum of the strengths of its pairs that are decided."""
    strengths: dict[str, float] = {}
    for row in rows:
        if row["kept"] != UNDECIDED:
            for name in map(model.codec.column_of, row["columns"]):
                strengths[name] = strengths.get(name, 0.0) + row["strength"]
    return strengths


def _weights(release: Release) -> dict[str, Any] | None:
    """Return the weighted estimates of the table whose rows have weights; None if there is none."""
    for model in release.tables.values():
        if (name := model.codec.schema.weight) is not None:
            effect = kish_effect(model)
            lines = model.accuracy_.weighted.to_dict("records")
            for line in lines:
                show = partial(_ends, is_share=line["of"] != MEAN)
                line["rows"] = show(line["in_rows"], line["in_rows_low"], line["in_rows_high"])
                line["weighted"] = show(line["estimate"], line["low"], line["high"])
            return {"name": name, "effect": effect, "rows": model.fitted.total / effect, "lines": lines}
    return None


def _ends(estimate: float, low: float, high: float, *, is_share: bool) -> str:
    """Return an estimate and its interval as text; the estimate alone without an interval."""
    if isnan(low):
        return f"{percent(estimate) if is_share else pages.number(estimate)} (no interval)"
    first, second, third = (
        map(percent, (estimate, low, high)) if is_share else pages.interval(estimate, low, high)
    )
    return f"{first} ({second} to {third})"


def _agreements(release: Release) -> dict[str, Agreement]:
    """Compare synthetic rows of each table, and their links, with the release; nothing if there are none.

    The largest of linked tables has about `ROWS_OF_LINKED` rows.
    """
    totals = {name: model.fitted.total for name, model in release.tables.items()}
    try:
        if not release.is_linked and (model := release.single) is not None:
            most_rows = min(ROWS, max(LEAST_ROWS, CELLS // len(model.codec.domain)))
            return {release.database.root: model.compared(min(round(model.fitted.total), most_rows), SEED)}
        scale = max(1.0, max(totals.values()) / ROWS_OF_LINKED)
        persons = max(round(totals[release.database.root] / scale), 1)
        synthetic = release.linked_rows.sample(persons, None, SEED, no_progress)
    except InputError:  # no row satisfies the constraints; the page says that they are not covered
        return {}
    return agreements(release.linked_rows, synthetic)


def _word_of(parts: Sequence[dict[str, Any]]) -> str:
    """Return the word on relationships that tables of several columns share; Roughly if they share none."""
    levels = {part["level_of_relationships"] for part in parts if part["mean_error"] is not None} - {None}
    return WORDS[max(levels, default=0) if len(levels) < 2 else 1]


def _facts_of_linked(release: Release, compared: dict[str, Agreement]) -> dict[str, Any]:
    """Return what the page shows of linked tables: of each, and of their links."""
    database = release.database
    links = {name: LinksInWords(release, name) for name in database.below}
    parts = [_part(release, name, compared.get(name), links.get(name)) for name in release.tables]
    total, low, high = linked.number_of_rows(release, database.root)
    tables_by_use: dict[str, list[str]] = {}
    uncovered: dict[str, list[str]] = {}
    for part in parts:
        if part["mean_error"] is not None and part["columns"]:
            tables_by_use.setdefault(part["good_for"], []).append(part["name"])
        for reason, columns in part["uncovered"].items():
            uncovered.setdefault(reason, []).extend(f"{part['name']}.{column}" for column in columns)
    data = _pairs(release, parts, links)
    strengths = {part["name"]: _strengths(release.tables[part["name"]], part["tables"]) for part in parts}
    return {
        "answers": answer_tables(release, strengths),
        "parts": parts,
        "known": any(part["mean_error"] is not None for part in parts),
        "word": _word_of(parts),
        "root": database.root,
        "rows": total,
        "low": low,
        "high": high,
        "each_other": {name: linked.rows_each(release, name) for name in database.below},
        "other_roots": {name: linked.number_of_rows(release, name) for name in database.roots[1:]},
        "drawing": diagram("The tables and how they are linked", linked.boxes(release)),
        "lookups": {
            name: (key_in_words(table.key), len(table.public.frame))
            for name, table in database.public.items()
        },
        "numbers": {name: number for number, name in enumerate(release.tables, 1)},
        "kept_words": HOW_KEPT,
        "uses": [(names, use) for use, names in tables_by_use.items()],
        "open": len(parts) <= FEW_TABLES,
        **_in_words(links),
        "rules": linked.rules(release),
        "csv": estimates(release.tables),
        "drawn": min((part["drawn"] for part in parts), default=0),
        "uncovered": uncovered,
        "data": data,
        "explorer": data,
    }


def _part(
    release: Release, name: str, agreement: Agreement | None, links: LinksInWords | None
) -> dict[str, Any]:
    """Return what the page shows of one of linked tables."""
    model, table = release.tables[name], release.database.tables[name]
    values = _without_gaps(in_short(model, agreement), model)
    numbers = {rows_of(child): child for child in release.database.children(name)}
    hidden = linked.not_published(release, name)
    called = linked.called_elsewhere(release, name)
    columns = {
        column["name"]: column | {"name": called.get(column["name"], column["name"])}
        for column in values["columns"]
        if column["name"] != ROW
    }
    children = [linked.rows_each(release, child) for child in numbers.values()]
    return values | {
        "name": name,
        "key": key_in_words(table.key),
        "link": key_in_words(table.link),
        "parent": table.parent,
        "order": table.order,
        # The mean from both numbers of rows is the more accurate one, and said beside the tile.
        "children": [rows | {"tile": columns[rows["column"]] | {"facts": ""}} for rows in children],
        "columns": [column for name_of_column, column in columns.items() if name_of_column not in numbers],
        "computed": _computed(model),
        "summaries": [column for column in columns if column in hidden and column not in numbers],
        "across": [] if links is None else links.relationships,
    }


def _pairs(
    release: Release, parts: list[dict[str, Any]], links: dict[str, LinksInWords]
) -> list[dict[str, Any]]:
    """Return the counts of the strongest pairs, or shares if they link rows, each with a sentence."""

    def counts_of(name: str, row: dict[str, Any]) -> dict[str, Any]:
        columns = [f"{name}.{column}" for column in row["columns"]]  # their names on the whole page
        return pair_table(release.tables[name], row["columns"]) | {"columns": columns}

    rows: list[tuple[dict[str, Any], Callable[[], dict[str, Any]]]] = []
    for part in parts:
        name = part["name"]
        rows += [(row, partial(counts_of, name, row)) for row in part["tables"] if len(row["columns"]) == 2]
        if name in links:
            across = [row for row in links[name].relationships if len(row["columns"]) == 2]
            rows += [(row, partial(links[name].shares, row)) for row in across]
    rows.sort(key=lambda pair: -pair[0]["strength"])
    pairs = []
    for row, counts in rows[:MOST_PAIRS]:
        strength, low, high = (percent(row[part]) for part in ("strength", "low", "high"))
        sentence = f"Strength {strength}, {LEVEL} interval {low} to {high}: {row['kept']}."
        pairs.append(counts() | {"said": f"{sentence} {TRUST[row['kept']]}"})
    return pairs
