"""What the public page says of places: at which level each column differs, and numbers by place."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np

from privsyn.inference.hierarchy import Hierarchy, links_of
from privsyn.pages.sections import interval, visible
from privsyn.release.places import MOST_PLACES, MOST_SHOWN, PlaceLevel
from privsyn.release.questions.groups import conditions_by
from privsyn.release.release import Release
from privsyn.release.table_model import TableModel

ABOVE, BELOW, ALIKE, HIDDEN = "above it", "below it", "not distinguished", "hidden by noise"
"""What the interval of a place says beside the estimate of its region."""


def places_in_words(release: Release) -> dict[str, Any] | None:
    """Return what the page shows of all hierarchies of places; None if no schema has one."""
    levels = release.place_levels()
    if not levels:
        return None
    models = {model.name: model for model in release.tables.values()}
    differing = [level for level in levels if level.level == level.inner]
    # The parts of a column of times have one mean.
    shown = [*{(level.table, level.column, level.inner): level for level in differing}.values()]
    tables = [_by_place(models[level.table], level) for level in shown[:MOST_SHOWN]]
    hierarchies = dict.fromkeys((level.table, level.inner, level.outer) for level in levels)
    return {
        "lines": list(map(str, levels)),
        "columns": list(dict.fromkeys(inner for _, inner, _ in hierarchies)),
        "hierarchies": [f"each value of {inner} in one of {outer}" for _, inner, outer in hierarchies],
        "tables": list(filter(None, tables)),
        "most": MOST_SHOWN,
    }


def _by_place(model: TableModel, level: PlaceLevel) -> dict[str, Any] | None:
    """Return the share or mean of a column in each place, with its interval and what it says."""
    inner, outer = (model.codec.schema.coded.get(name) for name in (level.inner, level.outer))
    kind = model.codec.schema.coded.get(level.column)
    if inner is None or outer is None or kind is None or not (inner.lists_values and outer.lists_values):
        return None
    if len(inner.listed) > MOST_PLACES:
        return None
    statistic = f"mean of {level.column}"
    condition = ""
    if kind.lists_values:
        counts = model.fitted.counts_of(level.column)[: len(kind.listed)]
        index = int(np.argmin(counts) if len(counts) == 2 else np.argmax(counts))
        condition = conditions_by(model, level.column)[index]
        statistic = f"share of {condition}"
    elif not kind.has_numbers:
        return None

    def estimate(where: str) -> tuple[float, float, float]:
        group = model.accuracy_.group(where)
        row = (
            model.accuracy_.share(condition, group)
            if condition
            else model.accuracy_.mean(level.column, group)
        )
        return float(row["estimate"]), float(row["low"]), float(row["high"])

    merging = model.fitted.merging
    links = links_of(Hierarchy.of(model.zeros), model.zeros, model.fitted.one_ways)
    regions = links[level.inner].argmax(axis=1)[merging.group_of[level.inner]]
    wheres = conditions_by(model, level.outer)
    of_regions = [estimate(where) for where in wheres[: len(outer.listed)]]
    rows = []
    in_words = zip(inner.listed, conditions_by(model, level.inner), regions.tolist(), strict=False)
    for value, where, code in in_words:
        region = int(np.flatnonzero(merging.group_of[level.outer] == code)[0])
        if region >= len(of_regions):
            continue
        numbers = estimate(where)
        words = interval(*numbers)
        name = str(outer.listed[region])
        rows.append(
            {
                "place": visible(value),
                "region": name,
                "words": words,
                "verdict": _verdict(numbers, of_regions[region][0]),
            }
        )
    return {"statistic": statistic, "inner": level.inner, "outer": level.outer, "rows": rows}


def _verdict(numbers: tuple[float, float, float], around: float) -> str:
    """Return what an interval says beside the estimate of the region.

    >>> _verdict((0.2, 0.15, 0.25), 0.1), _verdict((0.2, 0.05, 0.35), 0.1)
    ('above it', 'not distinguished')
    """
    _, low, high = numbers
    if isnan(low) or isnan(high) or isnan(around):
        return HIDDEN
    return ABOVE if low > around else BELOW if high < around else ALIKE
