"""A child table with all attributes of its rows: its own, and those of other rows on which they depend.

A release keeps the two apart: rows are made of the own columns, given what they depend on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from privsyn.inference.fitted import Certainty, Fitted
from privsyn.marginals.domain import Domain, Floats
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.synthesis.chains import LinkingTable, Links

NEARLY_EXACT = 1e-12  # records squared: variance of a count without noise, whose precision is finite


def joined_domain(domain: Domain, links: Links) -> Domain:
    """Return the domain of the own attributes, and of those of other rows in the tables that link them."""
    for table in links.tables:
        further = tuple(name for name in table.attributes if name not in domain.names)
        domain = domain.joined(table.domain.project(further))
    return domain


def joined_fit(fitted: Fitted, links: Links, context: Mapping[str, Floats]) -> Fitted:
    """Return the model of a child table with the attributes of other rows, in the tables that link them.

    The tables that link rows with those above were counted in the kept rows of each person. So how many rows
    have a code of such a table is wrong, but not how their columns depend on it. The tables, and their
    answers, are scaled to the numbers that follow from the rows above.

    Parameters
    ----------
    fitted : Fitted
        Of the own columns.
    links : Links
    context : mapping of an attribute of rows above to an array of shape (codes,)
        How many rows have each code.
    """
    columns, joined = fitted.merging.merged, joined_domain(fitted.merging.merged, links)
    further = joined.project(tuple(name for name in joined.names if name not in columns.names))
    if not further.names:
        return fitted
    margins = dict[str, Marginal]()
    for name in set(further.names).intersection(context):
        domain = further.project((name,))
        counts = np.ones(domain.cells)  # no code is ruled out because no row above was drawn with it
        counts[: len(context[name])] += context[name]
        margins[name] = Marginal(domain, counts * (fitted.total / max(float(counts.sum()), TINY_COUNT)))
    linking = [_scaled(linking, margins) for linking in links.linking]
    one_ways = [
        next(link.table for link in linking if name in link.table.attributes).project((name,))
        for name in further.names
    ]
    answers = [Measurement(table, np.full(table.domain.shape, NEARLY_EXACT)) for table in one_ways]
    return replace(
        fitted,
        merging=_beside(fitted.merging, further),
        one_ways=(*fitted.one_ways, *one_ways),
        marginals=(*fitted.marginals, *(link.table for link in linking)),
        certainties=(
            *fitted.certainties[: len(columns)],
            *(Certainty(measured, 0.0) for measured in answers),
            *fitted.certainties[len(columns) :],
            *(Certainty(link.measured, link.error) for link in linking),
        ),
    )


def _scaled(linking: LinkingTable, margins: Mapping[str, Marginal]) -> LinkingTable:
    """Return a table that links rows, and its answers, with other numbers of rows above."""
    table, measured = linking.table, linking.measured
    sides = tuple(margins[name] for name in table.attributes if name in margins)
    if not sides:
        return linking
    scaled = fit_margins(table, sides)
    before, after = measured.grouping.join(table.counts), measured.grouping.join(scaled.counts)
    ratio = np.divide(after, before, out=np.ones_like(before), where=before > TINY_COUNT)
    counts = Marginal(measured.marginal.domain, measured.marginal.counts * ratio)
    answers = Measurement(counts, measured.variance * ratio**2, measured.grouping)
    return replace(linking, table=scaled, measured=answers)


def with_tables_of(fitted: Fitted, joined: Fitted) -> Fitted:
    """Return the model of the own columns with the counts of a model of these and further attributes."""
    tables = {table.attributes: table for table in joined.tables}
    return replace(
        fitted,
        one_ways=tuple(tables[table.attributes] for table in fitted.one_ways),
        marginals=tuple(tables[table.attributes] for table in fitted.marginals),
    )


def links_with_tables_of(links: Links, joined: Fitted) -> Links:
    """Return the links with the counts of a model that has their tables."""
    tables = {table.attributes: table for table in joined.marginals}
    linking = (replace(link, table=tables[link.table.attributes]) for link in links.linking)
    return replace(links, linking=tuple(linking))


def with_noise_alone(fitted: Fitted) -> Fitted:
    """Return the model, whose columns have no errors but the noise of their counts.

    What the numbers of rows per person add to the errors of a column is no noise that could be drawn afresh.
    """
    certainties = list(fitted.certainties)
    for index, certainty in enumerate(certainties):
        if certainty.common.size:
            measured = certainty.measured
            variance = np.maximum(measured.variance - (certainty.common**2).sum(axis=1), NEARLY_EXACT)
            certainties[index] = Certainty(replace(measured, variance=variance), certainty.error)
    return replace(fitted, certainties=tuple(certainties))


def _beside(merging: Merging, further: Domain) -> Merging:
    """Return the merging with further attributes, whose codes are merged already."""
    groups = tuple(np.arange(size, dtype=np.int32) for size in further.sizes)
    shares = tuple(np.ones(size) for size in further.sizes)
    original, merged = merging.original.joined(further), merging.merged.joined(further)
    return Merging(original, merged, (*merging.groups, *groups), (*merging.shares, *shares))
