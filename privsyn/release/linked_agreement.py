"""Whether rows of linked tables show what their release says, of each table and of the links between rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from privsyn.inference.fitted import Certainty
from privsyn.marginals.counting import code_type
from privsyn.marginals.domain import Domain, Records
from privsyn.release.accuracy.agreement import Agreement
from privsyn.synthesis.chains import NUMBER_OF_ROWS, Chains, Links
from privsyn.table.database.derived_columns import rows_of, same_in_all_rows

if TYPE_CHECKING:
    from privsyn.release.linked_rows import LinkedRows
    from privsyn.table.database.database import Database
    from privsyn.table.database.synthetic import SyntheticRows


BLOCK = 2**18
"""Rows that are counted at once."""


def agreements(linked: LinkedRows, rows: Mapping[str, SyntheticRows]) -> dict[str, Agreement]:
    """Return the comparison of synthetic rows with the release, for each table that has rows."""
    return {name: _agreement(linked, name, rows) for name, made in rows.items() if len(made.parents)}


def in_words(database: Database, compared: Mapping[str, Agreement]) -> list[str]:
    """Return where the rows of all tables differ from the release by more than chance, the worst first."""
    lines = [
        (
            disagreement.ratio,
            f"{shown}: {disagreement}" if (shown := database.shown_name(name)) else str(disagreement),
        )
        for name, agreement in compared.items()
        for disagreement in agreement.disagreements()
    ]
    return [line for _, line in sorted(lines, key=lambda line: -line[0])]


def called(database: Database, name: str, links: Links, attribute: str) -> str:
    """Return what a reader calls an attribute of a row of a child table.

    Parameters
    ----------
    database : Database
    name : str
        The table.
    links : Links
        Its own.
    attribute : str
        A column of the row, or an attribute of the links.
    """
    rows = database.shown_name(name) or "rows"
    if (context := links.context.get(attribute)) is not None:
        if context.table:
            constant = {its: column for column, its in same_in_all_rows(database, name).items()}
            return constant.get(context.attribute) or database.shown_column(context.table, context.attribute)
        parent, root = (
            f"one row of {table}" if database.shown_name(table) else "a person"
            for table in (database.tables[name].parent or "", database.root)
        )
        if context.attribute == NUMBER_OF_ROWS:
            return f"number of {rows} of {root}"
        return f"place among the {rows} of {parent}"
    if (previous := links.previous.get(attribute)) is not None:
        in_order = database.tables[name].order is not None
        which = f"{previous.lag} before" if in_order else "another row of the same parent"
        return f"{database.shown_column(name, previous.column)} ({which})"
    return database.shown_column(name, attribute)


def _agreement(linked: LinkedRows, name: str, rows: Mapping[str, SyntheticRows]) -> Agreement:
    """Return the comparison of the rows of a table with its counts and with those that link them."""
    model, made, codes = linked.tables[name], rows[name], dict(rows[name].codes)
    not_compared = (*model.not_found, *model.unpublished)
    sizes, links = dict(model.fitted.merging.merged.size_of), model.links
    if links is None:
        agreement = Agreement(model.codec, model.fitted, not_compared)
    else:
        numbers = linked.numbers_before(name, rows, made.parents, made.roots)
        chains, indices = Chains.of(made.parents, links, numbers), np.arange(len(made.parents))
        codes |= chains.context
        for attribute, previous in links.previous.items():
            of_previous = previous.codes(made.codes[previous.column], chains.positions, indices)
            codes[attribute] = of_previous.astype(code_type(previous.none + 1))
        lost = {
            attribute
            for attribute, context in links.context.items()
            if context.table and context.attribute in linked.tables[context.table].not_found
        }
        across = [
            (Certainty(linking.measured, linking.error), chains.of_context(linking.table))
            for linking in links.linking
            if lost.isdisjoint(linking.table.attributes)
        ]
        sizes |= {its: size for _, table in across for its, size in table.domain.size_of.items()}
        attributes = (*links.context, *links.previous)
        names = {attribute: called(linked.database, name, links, attribute) for attribute in attributes}
        above = int(rows[linked.database.tables[name].parent or ""].frame[rows_of(name)].sum())
        agreement = Agreement(model.codec, model.fitted, not_compared, across, names, above)
    domain = Domain(tuple(sizes), tuple(sizes.values()))
    for begin in range(0, len(made.parents), BLOCK):
        block = [codes[attribute][begin : begin + BLOCK] for attribute in domain]
        agreement.add_records(Records(domain, np.stack(block, axis=1)))
    return agreement
