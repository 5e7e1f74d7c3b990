"""Views: the tables over a row and its neighbours, as they count a row that moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from privsyn.marginals.domain import Codes, Domain, Floats
from privsyn.marginals.marginal import NO_GROUPS, Grouping, Marginal
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.synthesis.annealing import COLUMNS, KEPT, NEVER, dependence_weights
from privsyn.synthesis.chains import EXACT, NEXT, Chains
from privsyn.synthesis.siblings import Step

HELD = 35.0
"""A column weighs this number times the number of tables over it, and at least `COLUMNS`. A column of a child
table is in twice as many tables as a column of a table without links, and the tables over rows above
contradict each other. With the weight `COLUMNS`, 140 of 35,000 rows had a kind that 466 should have. With
`HELD` it is 352 rows, and pairs have the same errors."""


@dataclass(frozen=True, eq=False)
class View:
    """A table over attributes of a row that moves.

    Parameters
    ----------
    table : Marginal
        Over columns of the row, its context, and columns of rows before and after it, in groups.
    grouping : Grouping
        The groups of the attributes' codes in the table.
    targets, part, weights : arrays of shape (cells,)
        The count of all rows; the part of the missing count that the moving rows add; the weight of an error.
    """

    table: Marginal
    grouping: Grouping
    targets: Floats
    part: Floats
    weights: Floats

    def of_row(self, following: Mapping[str, object]) -> bool:
        """Return whether no attribute is of a row after it: then the view has the counts of all rows."""
        return following.keys().isdisjoint(self.table.attributes)

    @classmethod
    def of_column(cls, column: Marginal) -> View:
        """Return the view of the counts of one column of all rows."""
        weights = COLUMNS / (column.counts + 1)
        return cls(column, NO_GROUPS, column.counts, np.ones(column.domain.cells), weights)

    def apart(self, chains: Chains, apart: Mapping[str, Codes]) -> View:
        """Return the view for rows that have codes of some columns apart, given the merged code of each."""
        sources = {prefix + name: name for name in apart for prefix in ("", *NEXT)}
        if not any(name in sources and name not in chains.previous for name in self.table.attributes):
            return self
        groups = list(self.grouping.of_codes(self.table.domain.shape))
        for axis, name in enumerate(self.table.attributes):
            if name in sources and name not in chains.previous:
                codes = apart[sources[name]]
                none = [] if name == sources[name] else [groups[axis][-1]]  # there may be no next row
                groups[axis] = np.append(groups[axis][codes], none).astype(np.int32)
        return replace(self, grouping=Grouping(tuple(groups)))


def views_of_tables(
    one_ways: Mapping[str, Marginal], tables: Sequence[Marginal], chains: Chains, zeros: StructuralZeros
) -> list[View]:
    """Return the views of all tables and columns, scaled to the number of rows."""
    weighted = [*zip(tables, dependence_weights(tuple(tables)) if tables else (), strict=True)]
    holding = Counter(name for table in tables for name in table.attributes)
    weighted += [(table, max(COLUMNS, HELD * holding[name])) for name, table in one_ways.items()]
    views = []
    for table, weight in weighted:
        factor = len(chains.parents) / max(table.total, TINY_COUNT)
        for view in _views_of_table(Marginal(table.domain, table.counts * factor), one_ways, chains):
            weights = view.weights * weight / (view.targets + 1)
            if zeros.masks and set(one_ways).issuperset(view.table.attributes):
                weights[~zeros.mask(view.table.domain).ravel()] = NEVER
            views.append(replace(view, weights=weights))
    return views


def views_of_step(step: Step, one_ways: Mapping[str, Marginal], chains: Chains) -> list[View]:
    """Return views of the previous and the next row in which impossible cells have the weight `KEPT`."""
    size = one_ways[step.attribute].domain.cells
    domain = Domain((step.attribute, EXACT + step.attribute), (size, size + 1))
    views = []
    for view in _views_of_table(Marginal(domain, np.zeros(domain.shape)), one_ways, chains):
        possible = np.full(view.table.domain.shape, True)  # code `size`: no previous, or no next row
        possible[:size, :size] = step.possible
        views.append(replace(view, weights=np.where(possible, 0.0, KEPT).ravel()))
    return views


def _views_of_table(table: Marginal, one_ways: Mapping[str, Marginal], chains: Chains) -> list[View]:
    """Return the views of a table; of a table over neighbours two, with the row as the later and the earlier.

    In a view of neighbours each adds half of the missing count. The weights are 1, but 0 in cells whose count
    is unknown: the number of rows without a next row.
    """
    names = table.attributes
    linked = [name for name in names if name in chains.previous]
    every = np.ones(table.domain.cells)
    if not linked:
        return [View(table, NO_GROUPS, table.counts.ravel(), every, every)]
    (name,) = linked
    before = chains.previous[name]
    (partner,) = (attribute for attribute in names if attribute != name)
    first = table.project((name, partner))
    part = np.full(first.domain.shape, 0.5)
    part[-1] = 1.0  # rows without an earlier row have no neighbour that adds the other half
    views = [View(first, NO_GROUPS, first.counts.ravel(), part.ravel(), every)]
    size, values = one_ways[before.column].domain.cells, first.domain.sizes[1]
    counts = np.zeros((len(first.counts) - 1, values + 1))
    counts[:, :-1] = first.counts[:-1]
    weights = np.ones(counts.shape)
    weights[:, -1] = 0.0
    domain = Domain((before.column, NEXT[before.lag - 1] + partner), (size, values + 1))
    grouping = Grouping((before.groups, np.arange(values + 1, dtype=np.int32)))
    spread = Marginal(grouping.domain(domain), counts)
    views.append(View(spread, grouping, counts.ravel(), np.full(counts.size, 0.5), weights.ravel()))
    return views
