"""What page and data sheet say of a release: which relationships are kept, and what an attacker can learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, compress
from statistics import fmean
from typing import Any

import numpy as np

from privsyn.evaluation.attacks.trade_off import TradeOff
from privsyn.marginals.domain import Floats
from privsyn.pages.sections import many, percent, rounded, visible
from privsyn.private.run_ledger import RunLedger, over_time_lines, recorded_lines
from privsyn.release.accuracy.outlook import Outlook
from privsyn.release.accuracy.verdicts import HOW_KEPT, KEPT_ROUGHLY, KEPT_WELL, UNDECIDED, Relationship
from privsyn.release.losses.lines import lines_of
from privsyn.release.losses.of_table import in_doubt, spoiled
from privsyn.release.table_model import TableModel

MOST_LEVELS = 14
"""Most values of a column in a table on the page: of unordered columns the most frequent ones."""

MOST_PAIRS = 300
"""Most pairs whose tables are on the page, about 200 kB: the strongest relationships first."""

MOST_LETTERS = 20
"""Most letters of a label in the map."""

LEAST_NAMES, MOST_NAMES = 4, 120
"""Numbers of columns with a map of their pairs."""

FEW = 1 / 3
"""Few pairs are kept well if they are less than this share of those that are decided."""

FOR_TRIALS = "trying out programs, and for no number: noise hides even single columns"
"""What a release is good for whose single columns are poor."""

AS_A_GUIDE = "single columns as a guide: no interval says how near their shares and averages are"
"""The same if noise hides how all columns depend on the number of rows of a person."""

FALSE_ALARMS = (0.01, 0.05, 0.1)
"""Shares of people outside the table whom an attacker takes to be inside, in the worked examples."""


def facts(release: TableModel) -> dict[str, Any]:
    """Return what the templates of both need, by name: `tables` are the `relationships`."""
    rows, errors = relationships(release), errors_of_columns(release).values()
    pairs_overview, outlook = overview(release.codec.domain.names, rows), Outlook.of(release)
    return {
        "ledger": in_values(release.ledger),
        "rows": release.fitted.total,
        "lost": release.accuracy_.not_found,
        "losses": lines_of(release.losses, in_full=True),
        "spoiled": [name for name in spoiled(release) if name not in release.accuracy_.not_found],
        "doubtful": in_doubt(release),
        "tables": rows,
        "overview": pairs_overview,
        "mean_error": fmean(errors) if errors else None,
        "mean_error_of_tables": fmean(row["error"] for row in rows) if rows else None,
        "good_for": good_for(release, outlook, rows, pairs_overview),
        "outlook": str(outlook),
        "verdict": outlook.verdict,
        "level_of_relationships": outlook.level_of_relationships if outlook.columns > 1 else None,
        "links_are": ", ".join(outlook.links_are),
        "no_links": all(link.level == 2 for link in outlook.links),
        "odds": in_plain_words(release.ledger),
    }


def errors_of_columns(release: TableModel) -> dict[str, float]:
    """Return the expected error of each column of which something was found; of several counts, the largest.

    Page, data sheet and `accuracy_` all show this number.
    """
    tables = release.accuracy_.tables
    alone = tables[tables["covered"] & (tables["order"] == 1)]
    errors: dict[str, float] = {}
    for (attribute,), error in alone[["columns", "expected_error"]].itertuples(index=False):
        column = release.codec.column_of(attribute)
        errors[column] = max(error, errors.get(column, 0.0))
    return errors


def relationships(release: TableModel) -> list[dict[str, Any]]:
    """Return the measured tables of several columns, the strongest relationship first.

    The *strength* is the total variation distance between the table and what it would be if its columns were
    independent: the share of rows that would have to change. Its 95 % interval, from `low` to `high`, follows
    from the expected error of the table. Tables with columns of which nothing was found are left out.
    """
    first = len(release.fitted.one_ways)
    covered = release.accuracy_.tables["covered"][first:]
    rows = [
        relationship(certainty.attributes, Relationship.of(certainty, table), certainty.sigma)
        for certainty, table in compress(release.fitted.measured_marginals, covered)
    ]
    return sorted(rows, key=lambda row: -row["strength"])


def relationship(columns: tuple[str, ...], pair: Relationship, sigma: float) -> dict[str, Any]:
    """Return the strength of a relationship, and how well it is kept.

    Parameters
    ----------
    columns : tuple of str
        What pages call its columns.
    pair : Relationship
    sigma : float
        Standard deviation of the noise in a cell of its table, in rows.
    """
    return {
        "columns": columns,
        "strength": pair.strength,
        "error": pair.error,
        "low": max(pair.strength - pair.limit, 0.0),
        "high": min(pair.strength + pair.limit, 1.0),
        "kept": pair.how_kept,
        "cells": pair.cells,
        "sigma": sigma,
    }


def overview(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return how many pairs are kept how well, the best and the worst kept one, and those not measured.

    Pairs ``within`` are columns of larger tables of counts, and no pair of their own.
    The best is kept well and has the largest strength over its error. The worst is kept roughly and has the
    largest strength times error: of a pair that is not decided, the strength is not known. All follows from
    the released tables.
    """
    pairs = [row for row in rows if len(row["columns"]) == 2]
    measured = {frozenset(pair) for row in rows for pair in combinations(row["columns"], 2)}
    well, roughly = ([row for row in pairs if row["kept"] == word] for word in HOW_KEPT[:2])
    by_word = {word: sum(row["kept"] == word for row in pairs) for word in HOW_KEPT}
    unmeasured = [pair for pair in combinations(names, 2) if frozenset(pair) not in measured]
    possible = len(names) * (len(names) - 1) // 2
    return {
        "pairs": possible,
        "within": possible - len(unmeasured) - len(pairs),
        "measured": len(pairs),
        "kept": by_word,
        "few": bool(pairs)
        and by_word[KEPT_WELL] < max(FEW * (by_word[KEPT_WELL] + by_word[KEPT_ROUGHLY]), 1),
        "best": max(well, key=lambda row: row["strength"] / max(row["error"], 1e-12), default=None),
        "worst": max(roughly, key=lambda row: row["strength"] * row["error"], default=None),
        "unmeasured": unmeasured,
    }


def good_for(
    release: TableModel, outlook: Outlook, rows: Sequence[dict[str, Any]], pairs_overview: dict[str, Any]
) -> str:
    """Return what a release may be used for, in words: for its public page and its data sheet.

    Parameters
    ----------
    release : TableModel
    outlook : Outlook
        That of the release.
    rows : list of dict
        Those of `relationships`.
    pairs_overview : dict
        The `overview` of them.
    """
    if outlook.is_thin:
        return FOR_TRIALS
    counts = (release.accuracy_.counts(name) for name in release.codec.domain.names)
    if all((table["low"] <= 0).all() and table["high"].min() >= release.fitted.total for table in counts):
        return AS_A_GUIDE  # the interval of each count reaches from 0 to all rows
    if outlook.of_target is not None and outlook.level_of_target < 2:
        model = f"a model that predicts {release.fitted.target}"
        roughly = ", roughly" if outlook.level_of_target else ""
        return f"{model}{roughly}; {_good_for_rows(rows, pairs_overview)}"
    return _good_for_rows(rows, pairs_overview)


def _good_for_rows(rows: Sequence[dict[str, Any]], pairs_overview: dict[str, Any]) -> str:
    """Return for which numbers a release may be used whose columns are not poor, in words."""
    well, pairs = pairs_overview["kept"][KEPT_WELL], many(pairs_overview["pairs"], "pair")
    if all(row["kept"] == UNDECIDED for row in rows):
        alone = "shares and averages of single columns, with their error bars"
        return f"{alone}. Not for what any two columns have to do with each other: noise hides it"
    if pairs_overview["few"]:
        pairs_in_words = "only in the few pairs that are kept well" if well else "hardly"
        some = f"{rounded(well)} of {pairs}{'' if well else ' kept well'}"
        return (
            "shares and averages of single columns, with their error bars;"
            f" relationships between columns: {pairs_in_words} ({some})"
        )
    if not pairs_overview["measured"]:
        return "shares and averages and comparisons of groups, with their error bars"
    pairs_in_words = f"in the pairs of columns that are kept well ({rounded(well)} of {pairs})"
    return f"shares and averages, and comparisons of groups {pairs_in_words}, with their error bars"


def pair_map(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the map of all measured pairs, the stronger the darker; None if there are hardly any.

    A pair that is not decided is pale, whatever its strength.

    The place of a cell is that of its table in `pair_tables`.
    """
    pairs = [row for row in rows if len(row["columns"]) == 2]
    if not LEAST_NAMES <= len(names) <= MOST_NAMES or not pairs:
        return None
    unit, largest = max(8, min(20, 560 // len(names))), max(*map(_decided, pairs), 1e-9)
    labels = short_labels(names)
    margin = 12 + 5 * max(map(len, labels))
    cells = []
    for index, row in enumerate(pairs):
        first, second = sorted(map(names.index, row["columns"]))
        power, *ends = (percent(row[part]) for part in ("strength", "low", "high"))
        title = f"{' × '.join(row['columns'])}: {power} ({' to '.join(ends)}), {row['kept']}"
        shade = f"{0.06 + 0.94 * _decided(row) / largest:.2f}"
        cells.append(
            {"x": margin + first * unit, "y": second * unit, "shade": shade, "title": title, "place": index}
        )
    size = len(names) * unit
    return {
        "unit": unit,
        "left": margin,
        "width": 2 * margin + size,
        "height": size,
        "names": labels,
        "cells": cells,
    }


def short_labels(names: Sequence[str]) -> list[str]:
    """Return names of at most `MOST_LETTERS` letters. No two are equal if no two of the names are.

    >>> short_labels(["age", "income of the household before", "income of the household after"])
    ['age', 'income of…old before', 'income of…hold after']
    >>> short_labels(["x" * 30 + "a" + "x" * 30, "x" * 61])
    ['1 xxxxxxx…xxxxxxxxxx', '2 xxxxxxx…xxxxxxxxxx']
    """
    half = MOST_LETTERS // 2
    short = [name if len(name) <= MOST_LETTERS else f"{name[: half - 1]}…{name[-half:]}" for name in names]
    if len(set(short)) == len(short):
        return short
    return [
        f"{number} {label[: half - 1 - len(f'{number} ')]}…{label[-half:]}"
        if short.count(label) > 1
        else label
        for number, label in enumerate(short, 1)
    ]


def _decided(row: dict[str, Any]) -> float:
    """Return the strength of a pair, 0 if it is not decided."""
    return 0.0 if row["kept"] == UNDECIDED else row["strength"]


def pair_tables(release: TableModel, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the counts of the strongest pairs, as plain data: values, estimates and 95 % intervals."""
    pairs = [row["columns"] for row in rows if len(row["columns"]) == 2]
    return [pair_table(release, pair) for pair in pairs[:MOST_PAIRS]]


def pair_table(release: TableModel, columns: tuple[str, str]) -> dict[str, Any]:
    """Return the counts of a measured pair, with at most `MOST_LEVELS` values of each column."""
    a, b = columns
    frame = release.accuracy_.labelled_counts(a, b)
    shape = (-1, int((frame[a] == frame[a].iloc[0]).sum()))
    grids = {part: frame[part].to_numpy(float).reshape(shape) for part in ("estimate", "low", "high")}
    words = frame[a].to_numpy().reshape(shape)[:, 0], frame[b].to_numpy().reshape(shape)[0]
    return most_frequent(columns, words, grids)


def most_frequent(
    columns: tuple[str, str], words: Sequence[np.ndarray], grids: Mapping[str, Floats]
) -> dict[str, Any]:
    """Return the counts of a pair, given the `words` of its values and all `grids` of counts."""
    totals = [grids["estimate"].sum(axis=1 - axis) for axis in (0, 1)]
    # The most frequent values, in the order of the column.
    shown = [np.sort(np.argsort(-total, kind="stable")[:MOST_LEVELS]) for total in totals]
    return {
        "columns": [*columns],
        "levels": [
            [visible(word) for word in values[keep]] for values, keep in zip(words, shown, strict=True)
        ],
        "omitted": [max(len(values) - MOST_LEVELS, 0) for values in words],
        **{part: np.rint(grid[np.ix_(*shown)]).astype(int).ravel().tolist() for part, grid in grids.items()},
    }


def in_values(ledger: RunLedger) -> dict[str, Any]:
    """Return what pages and sheets show of a ledger."""
    return ledger.to_dict() | {
        "kept": ledger.kept,
        "remarks": [*over_time_lines(ledger), *recorded_lines(ledger)],
    }


def in_plain_words(ledger: RunLedger) -> dict[str, Any] | None:
    """Return the numbers of the promise that a page explains; None if there is no promise of this run.

    With Gaussian noise a whole run is as private as one number with Gaussian noise that a person moves by mu
    standard deviations, plus the delta that thresholds reserve. The bounds for `guess` and `found` are those
    of the best test between the two cases (Dong, Roth and Su, 2019). With a delta of 0 they are those of
    randomised response.

    Returns
    -------
    mapping
        ``guess``: the largest probability of a right guess whether a person is in the table, if half of the
        people asked about are. ``found``: pairs of a rate of false alarms and the largest rate at which
        people in the table are recognised. ``contents``: the largest probability of a right guess which of
        two equally likely contents a person has who is in the table. ``promise``: epsilon and delta of all
        releases that the rows are made from. ``times``: e to the power of this epsilon.
        ``together``: words behind ``guess``, if there are earlier releases: it is about all of them, and
        what this one alone allows. ``who``: whom the promise protects. ``local``: whether the respondents
        randomised their answers.
    """
    if not ledger.private or ledger.elsewhere is not None:
        return None
    local, plain = ledger.all_local, ledger.to_dict()
    test, together = TradeOff.of_ledger(plain), ""
    if ledger.since is not None:
        alone = percent(TradeOff.of_ledger(ledger.alone.to_dict()).guess)
        together = f" with this release and the earlier ones together (with this one alone, at most {alone})"
    return {
        "guess": test.guess,
        "together": together,
        "found": [] if local else [(rate, test.recognised(rate)) for rate in FALSE_ALARMS],
        "contents": test.guess if local else TradeOff.of_ledger(plain, steps=2).guess,
        "promise": plain.get("since", plain)["promise"],
        "times": test.odds,
        "who": "person" if local or ledger.unit is not None or ledger.root is not None else "record",
        "local": local,
    }
