"""From the rows that bounds keep of each person to all rows: tables reweighted by classes of persons.

Of persons with many rows, bounds leave out most. Within a class of persons with about equally many rows, the
rows that are kept are a random sample. How many rows each class has is known from the released numbers of
rows per person. So a table over a column and the classes is multiplied by the ratio of all rows to kept rows
of each class. Other tables are multiplied by the ratio that they would have if their columns depended on each
other through the classes alone, and fitted to the columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from privsyn.inference.fitted import Certainty, Fitted
from privsyn.marginals.domain import Attributes, Floats
from privsyn.marginals.ipf import fit_all
from privsyn.marginals.marginal import Marginal, Measurement, lift

UNCERTAIN = 0.25  # standard deviation of the expected number of rows in a table, over it
MOST = 30.0  # largest ratio: of a class with almost no rows that were kept, the rows show almost nothing
TINY = 1e-9  # records
NO_FIRSTS: Mapping[str, float] = MappingProxyType({})


def scaled_to(total: float, measured: Sequence[Measurement], part: float | None) -> tuple[Measurement, ...]:
    """Return counts of tables, scaled to another number of rows than were counted in them.

    How many rows were counted follows from two estimates: the noisy counts themselves, and the `part` of the
    total that is expected, whose standard deviation is taken to be `UNCERTAIN` times itself. Without a part
    all rows were counted.

    >>> from privsyn.marginals.domain import Domain
    >>> table = Measurement(Marginal(Domain(("a",), (2,)), np.array([30.0, 50.0])), 1.0)
    >>> scaled_to(160.0, [table], 0.6)[0].marginal.counts.round(1).tolist()
    [60.0, 99.9]
    """
    return tuple(measured) if part is None else tuple(_scaled_to(total, table, part) for table in measured)


def _scaled_to(total: float, measured: Measurement, part: float) -> Measurement:
    of_expected, of_counts = (UNCERTAIN * part * total) ** 2, float(measured.variance.sum())
    counted = measured.marginal.total * of_expected + part * total * of_counts
    factor = total / max(counted / (of_expected + of_counts), 1.0)
    counts = Marginal(measured.marginal.domain, factor * measured.marginal.counts)
    return Measurement(counts, factor**2 * measured.variance, measured.grouping)


def reweighted(fitted: Fitted, classes: str, rows: Floats, firsts: Mapping[str, float] = NO_FIRSTS) -> Fitted:
    """Return the model of all rows.

    Parameters
    ----------
    fitted : Fitted
        Of the rows that were kept.
    classes : str
        The attribute of the classes of persons.
    rows : array of shape (classes,)
        Estimated number of all rows of the persons of each class.
    firsts : mapping of an attribute of the previous row to a number, optional
        The number of rows without a previous row, which is the last code.
    """
    kept, place = fitted.one_way(classes).counts, fitted.merging.original.names.index(classes)
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
        if classes in table.attributes:
            own = Marginal(table.domain.project((classes,)), ratios)
            return np.broadcast_to(lift(own, table.domain), table.domain.shape)
        alone = {name: given[name] for name in table.attributes if name in given}
        if not alone:
            return np.full(table.domain.shape, total / fitted.total)
        now, then = np.zeros(table.domain.shape), np.zeros(table.domain.shape)
        for place, ratio in enumerate(ratios.tolist()):
            of_class = np.full(table.domain.shape, kept[place])
            for name, shares in alone.items():
                share = Marginal(table.domain.project((name,)), shares[:, place])
                of_class = of_class * lift(share, table.domain)
            now, then = now + of_class, then + ratio * of_class
        return np.divide(then, now, out=np.ones_like(now), where=now > TINY)

    columns = {}
    for table in fitted.one_ways:
        (name,), counts = table.attributes, table.counts * ratio_of(table)
        if name in firsts:
            others = counts[:-1] * (max(total - firsts[name], 0.0) / max(float(counts[:-1].sum()), TINY))
            counts = np.append(others, firsts[name])
        columns[name] = Marginal(table.domain, counts * (total / max(float(counts.sum()), TINY)))
    weighted = [Marginal(table.domain, table.counts * ratio_of(table)) for table in fitted.marginals]
    margins = [tuple(columns[name] for name in table.attributes) for table in weighted]
    tables = fit_all(weighted, margins) if weighted else []
    before, after = (*fitted.one_ways, *fitted.marginals), (*columns.values(), *tables)
    return replace(
        fitted,
        one_ways=tuple(columns.values()),
        marginals=tuple(tables),
        total=total,
        certainties=tuple(map(_scaled, fitted.certainties, before, after)),
    )


def multiplied(fitted: Fitted, factor: float) -> Fitted:
    """Return the model of `factor` times as many rows, in the same proportions."""
    before = (*fitted.one_ways, *fitted.marginals)
    after = [Marginal(table.domain, factor * table.counts) for table in before]
    columns = len(fitted.one_ways)
    return replace(
        fitted,
        one_ways=tuple(after[:columns]),
        marginals=tuple(after[columns:]),
        total=factor * fitted.total,
        certainties=tuple(map(_scaled, fitted.certainties, before, after)),
    )


def only(fitted: Fitted, names: Attributes) -> Fitted:
    """Return the model of some of the attributes."""
    wanted = set(names)
    if wanted.issuperset(fitted.merging.merged.names):
        return fitted
    return replace(
        fitted,
        merging=fitted.merging.project(names),
        one_ways=tuple(map(fitted.one_way, names)),
        marginals=tuple(table for table in fitted.marginals if wanted.issuperset(table.attributes)),
        certainties=tuple(each for each in fitted.certainties if wanted.issuperset(each.attributes)),
    )


def _scaled(certainty: Certainty, before: Marginal, after: Marginal) -> Certainty:
    """Return the certainty of a table whose counts were multiplied."""
    measured = certainty.measured
    now, then = (measured.grouping.join(table.counts) for table in (before, after))
    ratio = np.divide(then, now, out=np.ones_like(now), where=now > TINY)
    counts = Marginal(measured.marginal.domain, measured.marginal.counts * ratio)
    return Certainty(Measurement(counts, measured.variance * ratio**2, measured.grouping), certainty.error)
