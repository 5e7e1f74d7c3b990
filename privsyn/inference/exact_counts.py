"""Fit the tables of a model to exact counts that are public."""

from __future__ import annotations

from dataclasses import replace

from privsyn.inference.fitted import Fitted
from privsyn.inference.higher_order import margins_inside
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros


def with_exact_counts(fitted: Fitted, possible: StructuralZeros = NO_ZEROS) -> Fitted:
    """Return the model whose tables have the exact counts of `Fitted.totals`, to rounding.

    Each table is scaled to them and to the smaller tables inside it, smaller tables first. A table of other
    columns stays, because its margins do not change.

    Parameters
    ----------
    fitted : Fitted
    possible : StructuralZeros, optional
        Of the merged codes.
    """
    exact = fitted.totals.merge(fitted.merging)
    if not exact:
        return fitted
    names, tables, pairs = set(exact.attributes), list(fitted.marginals), list[Marginal]()
    one_ways = tuple(exact.fit(table, (), possible.mask(table.domain)) for table in fitted.one_ways)
    for index in sorted(range(len(tables)), key=lambda index: len(tables[index].attributes)):
        table = tables[index]
        if names.intersection(table.attributes):
            sides = margins_inside(table.attributes, tuple(pairs), one_ways)
            tables[index] = exact.fit(table, sides, possible.mask(table.domain))
        if len(table.attributes) == 2:
            pairs.append(tables[index])
    return replace(fitted, one_ways=one_ways, marginals=tuple(tables))
