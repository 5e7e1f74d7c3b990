"""How the rows of a child table are linked with other rows, by what was learnt of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from privsyn.inference.all_rows import reweighted
from privsyn.methods.learning import Learned
from privsyn.methods.previous_siblings import OF_PREVIOUS, rows_before
from privsyn.synthesis.chains import NUMBER_OF_ROWS, POSITION, Context, LinkingTable, Links, Previous

if TYPE_CHECKING:
    from privsyn.inference.single_rows import SingleCodes
    from privsyn.marginals.domain import Domain


def of_all_rows(learned: Learned, parent: Learned, column: str, codes: Mapping[str, SingleCodes]) -> Learned:
    """Return the model of all rows. Their number is the sum of `column` over the parent's rows.

    `codes` are those of each column, merged, that at most one row of a person has.
    """
    counts, numbers = parent.cells_of(column)
    total = max(float(counts @ numbers), 1.0)
    fitted, row_classes = learned.fitted, learned.row_classes
    first_rows = {
        name: float(counts @ np.clip(numbers, 0, lag))
        for name, (_, lag) in rows_before(learned.codec.domain.names, len(OF_PREVIOUS)).items()
        if name in fitted.merging.merged.names
    }
    rows = row_classes.rows.scaled_to(total).with_single_codes(codes)
    firsts = first_rows if row_classes else {}
    zeros = learned.codec.possible(fitted.merging)
    fitted = reweighted(
        fitted, row_classes.name, rows, firsts, composition=row_classes.composition, zeros=zeros
    )
    return replace(learned, fitted=fitted)


def links_of(learned: Learned, above: Mapping[str, Context]) -> Links:
    """Return how the rows are linked: tables with attributes of other rows, and where these come from."""
    merging, columns, row_classes = learned.fitted.merging, learned.codec.domain.names, learned.row_classes
    before = rows_before(columns, len(OF_PREVIOUS))
    contexts: dict[str, Context] = {}
    previous: dict[str, Previous] = {}
    for name, groups in merging.group_of.items():
        if name in columns:
            continue
        if name in before:
            column, lag = before[name]
            merged = merging.group_of[column]
            previous_codes = np.zeros(int(merged.max()) + 1, np.int32)
            previous_codes[merged] = groups[: len(merged)]
            previous[name] = Previous(column, previous_codes, lag)
        elif name == NUMBER_OF_ROWS:
            numbers = np.maximum(np.arange(int(row_classes.begins[-1]) + 1), 1)
            contexts[name] = Context("", NUMBER_OF_ROWS, groups[row_classes.codes(numbers)].astype(np.int32))
        elif name == POSITION:
            contexts[name] = Context("", POSITION, groups)
        else:
            contexts[name] = replace(above[name], groups=groups[above[name].groups].astype(np.int32))
    fitted = learned.fitted
    linking = (
        LinkingTable(table, certainty.measured, certainty.error)
        for certainty, table in fitted.measured_marginals
        if not set(columns).issuperset(table.attributes)
    )
    return Links(contexts, previous, tuple(linking))


def with_uncounted(links: Links, above: Mapping[str, Context], columns: Domain, *, in_order: bool) -> Links:
    """Return links with attributes of other rows that no table counts: all their codes are one group.

    So a release says with which rows the rows of the table would be linked.
    """
    contexts = {
        name: replace(context, groups=np.zeros_like(context.groups)) for name, context in above.items()
    }
    if in_order:
        contexts[POSITION] = Context("", POSITION, np.zeros(1, np.int32))
    previous = {
        OF_PREVIOUS[0] + name: Previous(name, np.zeros(size, np.int32))
        for name, size in columns.size_of.items()
    }
    return replace(links, context={**contexts, **links.context}, previous=previous)
