"""A child table with all attributes of its rows: its own, and those of other rows on which they depend.

A release keeps the two apart: rows are made of the own columns, given what they depend on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privsyn.inference.fitted import Certainty, Fitted
from privsyn.marginals.domain import NO_ATTRIBUTES, Domain
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.synthesis.chains import Links

KNOWN = 1e-12  # variance of a count that is known, in records squared


def joined_fit(fitted: Fitted, links: Links) -> Fitted:
    """Return the model of a child table with the attributes of other rows, in the tables that link them.

    How many rows have each code of such an attribute is known before rows are made, and so without noise.

    Parameters
    ----------
    fitted : Fitted
        Of the own columns.
    links : Links
    """
    names, further = fitted.merging.merged.names, NO_ATTRIBUTES
    for table in links.tables:
        new = tuple(name for name in table.attributes if name not in (*names, *further.names))
        further = further.joined(table.domain.project(new))
    if not further.names:
        return fitted
    one_ways = [_one_way(name, links) for name in further.names]
    certainties = [*fitted.certainties[: len(names)]]
    certainties += [
        Certainty(Measurement(table, np.full(table.domain.shape, KNOWN)), 0.0) for table in one_ways
    ]
    certainties += fitted.certainties[len(names) :]
    return replace(
        fitted,
        merging=_beside(fitted.merging, further),
        one_ways=(*fitted.one_ways, *one_ways),
        marginals=(*fitted.marginals, *links.tables),
        certainties=(*certainties, *(Certainty(link.measured, link.error) for link in links.linking)),
    )


def with_tables_of(fitted: Fitted, joined: Fitted) -> Fitted:
    """Return the model of the own columns with the counts of a model of these and further attributes."""
    tables = {table.attributes: table for table in joined.tables}
    return replace(
        fitted,
        one_ways=tuple(tables[table.attributes] for table in fitted.one_ways),
        marginals=tuple(tables[table.attributes] for table in fitted.marginals),
    )


def linked_by(links: Links, joined: Fitted) -> Links:
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
            variance = np.maximum(measured.variance - (certainty.common**2).sum(axis=1), KNOWN)
            certainties[index] = Certainty(replace(measured, variance=variance), certainty.error)
    return replace(fitted, certainties=tuple(certainties))


def _one_way(name: str, links: Links) -> Marginal:
    """Return the counts of an attribute of other rows, by the tables that link it."""
    return next(table for table in links.tables if name in table.attributes).project((name,))


def _beside(merging: Merging, further: Domain) -> Merging:
    """Return the merging with further attributes, whose codes are merged already."""
    groups = tuple(np.arange(size, dtype=np.int32) for size in further.sizes)
    shares = tuple(np.ones(size) for size in further.sizes)
    original, merged = merging.original.joined(further), merging.merged.joined(further)
    return Merging(original, merged, (*merging.groups, *groups), (*merging.shares, *shares))
