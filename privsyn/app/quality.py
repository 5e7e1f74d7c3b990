"""The quality of a synthetic table: its rows beside the public estimates of their release."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from statistics import fmean
from typing import Any

from privsyn.errors import InputError, short
from privsyn.files import closing_files
from privsyn.pages.diagram import diagram
from privsyn.release.accuracy.agreement import Agreement
from privsyn.release.accuracy.outlook import COLUMNS, COLUMNS_ARE, error_inside, level_of_column
from privsyn.release.accuracy.verdicts import strength
from privsyn.release.losses.lines import lines_of
from privsyn.release.losses.of_table import spoiled
from privsyn.release.public_table import TITLE
from privsyn.release.release import Release, load
from privsyn.release.table_model import TableModel
from privsyn.studies.publication.links import (
    LinksInWords,
    boxes,
    called_elsewhere,
    not_published,
    number_of_rows,
    rows_each,
    rules,
)
from privsyn.studies.publication.tiles import LIMITS, in_short
from privsyn.table.database.opened import ROW
from privsyn.table.io.formats import is_csv, tables_in
from privsyn.table.io.formulas import with_formulas
from privsyn.table.io.read_in_batches import read_in_batches

ROWS, ROWS_OF_A_SHEET = 200_000, 20_000
"""Most synthetic rows that are counted, the first ones: more would take longer than a person waits. The cells
of a sheet of Excel take ten times as long as others."""

INVENTED = "invented"
"""What a column is of which nothing was found, beside `COLUMNS_ARE`."""

USABLE, ROUGH = (f"{100 * limit:.0f}" for limit in COLUMNS)
WORDS = f"below {USABLE} of 100", f"{USABLE} to {ROUGH} of 100", f"above {ROUGH} of 100", "nothing was found"
MEANING = dict(zip((*COLUMNS_ARE, INVENTED), WORDS, strict=True))
"""What a column is, and how many of its rows would have to change."""


def quality_of(model: Path, synthetic: Path, name: str = "") -> dict[str, Any]:
    """Return what the screen shows of a release and of its synthetic table. It reads no private row.

    Parameters
    ----------
    model : Path
        The model file.
    synthetic : Path
        The synthetic table; of linked tables, their folder or database.
    name : str
        Of linked tables, the one that is shown.
    """
    released = load(model)
    release = released.tables[name] if name else released.table("this page")
    file = tables_in(synthetic, [name])[name] if name else str(synthetic)
    # The release counts columns that no synthetic table has: numbers and summaries of rows below.
    absent = {*not_published(released, name), *called_elsewhere(released, name)} if name else set[str]()
    agreement, rows, is_whole, uncounted = None, 0, True, ""
    try:
        agreement, rows, is_whole = _counted(release, file, absent)
    except InputError as error:  # the estimates are worth a look also without the rows
        uncounted = str(error)
    values = in_short(release, agreement, beside=True)
    columns, lost = values["columns"], spoiled(release)
    for axis, column in enumerate(columns):
        column["anchor"], inside = f"column-{axis + 1}", error_inside(release.fitted, axis)
        share = lost.get(release.codec.column_of(column["name"]), 0.0)
        column["inside"], column["off"] = inside, min(max(column["error"] + inside, share), 1.0)
        column["cells_lost"] = share
        column["is"] = INVENTED if column["lost"] else COLUMNS_ARE[level_of_column(column["off"])]
    columns = [column for column in columns if column["name"] != ROW]
    tables = _relationships(release, values["tables"], agreement)
    return values | {
        "columns": columns,
        "agreement": [] if agreement is None else list(map(str, agreement.disagreements())),
        "losses": lines_of(released.losses, in_full=True),
        "links": _links(released, name) if name else None,
        "groups": {word: [c for c in columns if c["is"] == word] for word in MEANING},
        "mean_off": fmean(column["off"] for column in columns) if columns else None,
        "words": MEANING,
        "pairs": [row for row in tables if len(row["columns"]) == 2],
        "larger": [row for row in tables if len(row["columns"]) > 2],
        "counted": rows,
        "uncounted": uncounted,
        "scaled": rows != round(release.fitted.total),
        "whole": is_whole,
        "no_cost": not release.ledger.private,
        "public_rows": [short(fact) for fact in release.ledger.public_inputs if fact.startswith(TITLE)],
        **LIMITS,
    }


def _links(release: Release, name: str) -> dict[str, Any]:
    """Return what the screen shows of the links of a table: the diagram, and what is kept of them."""
    of_table = None if release.database.tables[name].parent is None else LinksInWords(release, name)
    return {
        "drawing": diagram("The tables and how they are linked", boxes(release)),
        "name": name,
        "rows": number_of_rows(release, name),
        "each": [rows_each(release, child) for child in release.database.children(name)],
        "kept": [] if of_table is None else of_table.pairs_kept,
        "relationships": []
        if of_table is None
        else [row | {"synthetic": None, "outside": False} for row in of_table.relationships],
        "rules": [rule for table, rule in rules(release) if table == name],
    }


def _counted(release: TableModel, file: str, absent: Collection[str]) -> tuple[Agreement | None, int, bool]:
    """Count the first rows of the table as the release counts; None if it has none.

    Return also how many were counted, and whether they are all. The table has no columns `absent`.
    """
    not_compared = (*release.accuracy_.not_found, *absent)
    agreement, rows = Agreement(release.codec, release.fitted, not_compared), 0
    limit = ROWS_OF_A_SHEET if Path(file).suffix == ".xlsx" else ROWS

    def count(frames: Any) -> bool:
        nonlocal rows
        for frame in frames:
            some = frame.iloc[: limit - rows]
            if is_csv(file):
                some = with_formulas(some)
            agreement.add(some)
            rows += len(some)
            if len(some) < len(frame):
                return False
        return True

    with closing_files():
        (is_whole,) = read_in_batches(file, release.codec.schema.without(absent)).results(count)
    return agreement if rows else None, rows, is_whole


def _relationships(
    release: TableModel, rows: list[dict[str, Any]], agreement: Agreement | None
) -> list[dict[str, Any]]:
    """Add to each relationship its strength in the synthetic rows, and whether that lies in the interval."""
    counts = {} if agreement is None else agreement.counts
    strengths = {
        certainty.attributes: strength(certainty.measured.grouping.join(counts[certainty.attributes] * 1.0))
        for certainty, _ in release.fitted.measured_marginals
        if agreement is not None and agreement.compares(certainty.attributes)
    }
    for row in rows:
        row["synthetic"] = synthetic = strengths.get(row["columns"])
        row["outside"] = synthetic is not None and not row["low"] <= synthetic <= row["high"]
    return rows
