"""From the rows that bounds keep of each person to all rows: tables reweighted by classes of persons.

Of persons with many rows, bounds leave out most. Within a class of persons with about equally many rows, the
rows that are kept are a random sample. How many rows each class has is known from the released numbers of
rows per person. So a table over a column and the classes is multiplied by the ratio of all rows to kept rows
of each class. Other tables are multiplied by the ratio that they would have if their columns depended on each
other through the classes alone, and fitted to the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privsyn.inference.fitted import Certainty, Fitted
from privsyn.marginals.domain import Floats
from privsyn.marginals.ipf import fit_all
from privsyn.marginals.marginal import Marginal, Measurement, lift

UNCERTAIN = 0.25  # standard deviation of the expected number of rows in a table, over it
MOST = 30.0  # largest ratio: of a class with almost no rows that were kept, the rows show almost nothing
TINY = 1e-9  # records


def scaled_to(total: float, measured: Sequence[Measurement], part: float | None) -> tuple[Measurement, ...]:
    """Return counts of tables, scaled to another number of rows than were counted in them.

    How many rows were counted follows from two estimates: the noisy counts themselves, and the `part` of the
    total that is expected, whose standard deviation is taken to be `UNCERTAIN` times itself. Without a part
    all rows were counted.

    >>> from privsyn.marginals.domain import Domain
    >>> table = Measurement(Marginal(Domain(("a",), (2,)), np.array([30.0, 50.0])), 1.0)
    >>> scaled_to(160.0, [table], 0.6)[0].marginal.counts.round(1).tolist()
    [59.9, 99.8]
    """
    return tuple(measured) if part is None else tuple(_scaled_to(total, table, part) for table in measured)


def _scaled_to(total: float, measured: Measurement, part: float) -> Measurement:
    of_expected, of_counts = (UNCERTAIN * part * total) ** 2, float(measured.variance.sum())
    counted = measured.marginal.total * of_expected + part * total * of_counts
    factor = total / max(counted / (of_expected + of_counts), 1.0)
    counts = Marginal(measured.marginal.domain, factor * measured.marginal.counts)
    return Measurement(counts, factor**2 * measured.variance, measured.grouping)


def reweighted(fitted: Fitted, classes: str, rows: Floats) -> Fitted:
    """Return the model of all rows, without the attribute `classes`.

    Parameters
    ----------
    fitted : Fitted
        Of the rows that were kept.
    classes : str
        The attribute of the classes of persons.
    rows : array of shape (classes,)
        Estimated number of all rows of the persons of each class.
    """
    names = tuple(name for name in fitted.merging.merged.names if name != classes)
    one_ways = {table.attributes[0]: table for table in fitted.one_ways}
    kept, place = one_ways.pop(classes).counts, fitted.merging.original.names.index(classes)
    of_classes = np.bincount(fitted.merging.groups[place], rows)
    ratios, total = np.clip(of_classes / np.maximum(kept, TINY), 0.0, MOST), max(float(rows.sum()), 1.0)
    given = {
        name: table.project((name, classes)).counts / np.maximum(kept, TINY)
        for table in fitted.marginals
        if len(table.attributes) == 2 and classes in table.attributes
        for name in table.attributes
        if name != classes
    }

    def ratio_of(table: Marginal) -> Floats:
        """Return the ratio of all rows to kept rows in each cell, through the classes alone."""
        alone = {name: given[name] for name in table.attributes if name in given}
        if not alone:
            return np.full(table.domain.shape, total / fitted.total)
        now, then = np.zeros(table.domain.shape), np.zeros(table.domain.shape)
        for place, ratio in enumerate(ratios.tolist()):
            of_class = np.full(table.domain.shape, kept[place])
            for name, shares in alone.items():
                of_class = of_class * lift(
                    Marginal(table.domain.project((name,)), shares[:, place]), table.domain
                )
            now, then = now + of_class, then + ratio * of_class
        return np.divide(then, now, out=np.ones_like(now), where=now > TINY)

    columns = {}
    for name, table in one_ways.items():
        counts = table.counts * ratio_of(table)
        columns[name] = Marginal(table.domain, counts * (total / max(float(counts.sum()), TINY)))
    tables = [table for table in fitted.marginals if classes not in table.attributes]
    weighted = [Marginal(table.domain, table.counts * ratio_of(table)) for table in tables]
    margins = [tuple(columns[name] for name in table.attributes) for table in tables]
    fitted_to = fit_all(weighted, margins) if weighted else []
    found = {table.attributes: table for table in (*columns.values(), *fitted_to)}
    before = {table.attributes: table for table in (*one_ways.values(), *tables)}
    certainties = tuple(
        _scaled(certainty, before[certainty.attributes], found[certainty.attributes])
        for certainty in fitted.certainties
        if classes not in certainty.attributes
    )
    return replace(
        fitted,
        merging=fitted.merging.project(names),
        one_ways=tuple(columns.values()),
        marginals=tuple(fitted_to),
        total=total,
        certainties=certainties,
    )


def _scaled(certainty: Certainty, before: Marginal, after: Marginal) -> Certainty:
    """Return the certainty of a table whose counts were multiplied."""
    measured = certainty.measured
    now, then = (measured.grouping.join(table.counts) for table in (before, after))
    ratio = np.divide(then, now, out=np.ones_like(now), where=now > TINY)
    counts = Marginal(measured.marginal.domain, measured.marginal.counts * ratio)
    return Certainty(Measurement(counts, measured.variance * ratio**2, measured.grouping), certainty.error)
