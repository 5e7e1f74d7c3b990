"""How the rows of a child table are linked with other rows, by what was learnt of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from privsyn.inference.all_rows import reweighted
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.methods.learning import Learned
from privsyn.methods.previous_siblings import OF_PREVIOUS, rows_before
from privsyn.synthesis.chains import NUMBER_OF_ROWS, POSITION, Context, LinkingTable, Links, Previous

if TYPE_CHECKING:
    from privsyn.inference.fitted import Fitted
    from privsyn.marginals.domain import Domain, Floats
    from privsyn.methods.table_of_run import LearnedTable


def of_all_rows(
    learned: Learned,
    parent: str,
    column: str,
    above: Mapping[str, Context],
    tables: Mapping[str, LearnedTable],
    *,
    of_persons: bool,
) -> Learned:
    """Return the model of all rows. Their number is the sum of a column over the parent's rows.

    Parameters
    ----------
    learned : Learned
    parent, column : str
        The table above, and its column with the number of rows.
    above : mapping of an attribute to a Context
    tables : mapping of a table to its LearnedTable
        Those above.
    of_persons : bool
        Whether the rows of the parent are persons. Then their number of rows says their class.
    """
    counts, numbers = tables[parent].learned.cells_of(column)
    total = max(float(counts @ numbers), 1.0)
    fitted, row_classes = learned.fitted, learned.row_classes
    first_rows = {
        name: float(counts @ np.clip(numbers, 0, lag))
        for name, (_, lag) in rows_before(learned.codec.domain.names, len(OF_PREVIOUS)).items()
        if name in fitted.merging.merged.names
    }
    rows = row_classes.rows.scaled_to(total)
    firsts, in_class = first_rows if row_classes else {}, np.ones((len(numbers), 1))
    if of_persons and row_classes:
        classes = row_classes.codes(np.maximum(numbers, 1).astype(np.int64))
        in_class = np.eye(fitted.one_way(row_classes.name).domain.cells)[
            fitted.merging.group_of[row_classes.name][classes]
        ]
    rows_of_codes = rows_by_code(contexts_of(learned, above), column, parent, tables, in_class)
    fitted = reweighted(
        fitted, row_classes.name, rows, firsts, above=rows_of_codes, composition=row_classes.composition
    )
    return replace(learned, fitted=fitted)


def rows_by_code(
    contexts: Mapping[str, Context],
    column: str,
    parent: str,
    tables: Mapping[str, LearnedTable],
    in_class: Floats,
) -> dict[str, Floats]:
    """Return how many rows of a table have each code of the attributes of rows above, and of the position.

    Released tables of the parent say it: m parents with a code, each of n rows, have m n rows with the code.
    No row is read. The bounds on a person's rows, which leave out rows of large families, do not matter.

    Parameters
    ----------
    contexts : mapping of an attribute to a Context
    column : str
        The column of the parent with the number of rows.
    parent : str
    tables : mapping of a table to its LearnedTable
        Those above.
    in_class : array of shape (numbers, classes)
        Whether a person with each number of rows of the column is in each class of persons.

    Returns
    -------
    mapping of an attribute to an array of shape (codes, classes)
    """
    learned, links = tables[parent].learned, tables[parent].links
    fitted, (counts, numbers) = learned.fitted, learned.cells_of(column)
    group, share = fitted.merging.group_of[column], fitted.merging.share_of[column]
    rows_of_parent = np.zeros((fitted.one_way(column).domain.cells, in_class.shape[1]))
    np.add.at(rows_of_parent, group, (share * numbers)[:, np.newaxis] * in_class)
    names = {} if links is None else {(c.table, c.attribute): (n, c) for n, c in links.context.items()}
    rows = {}
    for name, context in contexts.items():
        if name == NUMBER_OF_ROWS:
            continue
        if name == POSITION:
            before = np.arange(len(context.groups))[:, np.newaxis]
            reached = np.clip(numbers - before, 0.0, np.where(before == before[-1], np.inf, 1.0))
            of_codes = (reached * counts) @ in_class
        elif (context.table, context.attribute) == (parent, column):
            of_codes = fitted.one_way(column).counts[:, np.newaxis] * rows_of_parent
        elif context.table == parent:
            of_codes = _table_with(fitted, column, context.attribute).T @ rows_of_parent
        else:
            above = tables[context.table].learned.fitted.one_way(context.attribute).counts
            attribute, of_parent = names[context.table, context.attribute]
            of_groups = _table_with(fitted, column, attribute).T @ rows_of_parent
            sums = np.bincount(of_parent.groups, above, len(of_groups))
            of_codes = (of_groups / np.maximum(sums, TINY_COUNT)[:, np.newaxis])[of_parent.groups]
            of_codes *= above[:, np.newaxis]
        rows[name] = np.zeros((int(context.groups.max()) + 1, in_class.shape[1]))
        np.add.at(rows[name], context.groups, of_codes)
    return rows


def _table_with(fitted: Fitted, column: str, attribute: str) -> Floats:
    """Return the counts of a column and another attribute; if no table has both, of independent ones."""
    counts = fitted.one_way(column).counts
    if attribute not in fitted.merging.merged.names:  # no table counts it
        return counts[:, np.newaxis]
    for table in fitted.marginals:
        if {*table.attributes} == {column, attribute}:
            return table.project((column, attribute)).counts
    one_way = fitted.one_way(attribute)
    return np.outer(counts, one_way.counts / max(one_way.total, TINY_COUNT))


def links_of(learned: Learned, above: Mapping[str, Context]) -> Links:
    """Return how the rows are linked: tables with attributes of other rows, and where these come from."""
    fitted, columns = learned.fitted, learned.codec.domain.names
    previous: dict[str, Previous] = {}
    for name, (column, lag) in rows_before(columns, len(OF_PREVIOUS)).items():
        if name in fitted.merging.group_of:
            groups, merged = fitted.merging.group_of[name], fitted.merging.group_of[column]
            previous_codes = np.zeros(int(merged.max()) + 1, np.int32)
            previous_codes[merged] = groups[: len(merged)]
            previous[name] = Previous(column, previous_codes, lag)
    linking = (
        LinkingTable(table, certainty.measured, certainty.error)
        for certainty, table in fitted.measured_marginals
        if not set(columns).issuperset(table.attributes)
    )
    return Links(contexts_of(learned, above), previous, tuple(linking))


def contexts_of(learned: Learned, above: Mapping[str, Context]) -> dict[str, Context]:
    """Return where the attributes come from that the rows of a table have before they are made."""
    contexts, row_classes, columns = dict[str, Context](), learned.row_classes, learned.codec.domain.names
    before = rows_before(columns, len(OF_PREVIOUS))
    for name, groups in learned.fitted.merging.group_of.items():
        if name in columns or name in before:
            continue
        if name == NUMBER_OF_ROWS:
            numbers = np.maximum(np.arange(int(row_classes.begins[-1]) + 1), 1)
            contexts[name] = Context("", NUMBER_OF_ROWS, groups[row_classes.codes(numbers)].astype(np.int32))
        elif name == POSITION:
            contexts[name] = Context("", POSITION, groups)
        else:
            contexts[name] = replace(above[name], groups=groups[above[name].groups].astype(np.int32))
    return contexts


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
