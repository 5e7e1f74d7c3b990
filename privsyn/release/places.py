"""At which level places differ, by released answers: within their region, among regions, or not visibly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privsyn.inference.hierarchy import Hierarchy, differs, links_of, summed, with_sums
from privsyn.marginals.marginal import Measurement
from privsyn.table.enforcement.within import Within

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable


MOST_SHOWN, MOST_PLACES = 3, 200
"""Columns of which the page shows an estimate for each place, and the most places of which it does."""


@dataclass(frozen=True)
class PlaceLevel:
    """At which level of a hierarchy of places a column differs, by the released answers.

    Parameters
    ----------
    table : str
        The table; "" if there is only one.
    column : str
    inner, outer : str
        The column of places, and the column in which they lie.
    level : str
        The column whose values can be distinguished: `inner` if places of one region differ; `outer` if
        regions differ, and the noise hides how places of one region do; "" if it hides both.
    is_counted : bool
        Whether the column was counted together with the places. If not, places of a region are made alike.

    Examples
    --------
    >>> print(PlaceLevel("", "ill", "town", "county", "county", True))
    ill: the noise hides how values of 'town' in one 'county' differ; values of 'county' differ
    """

    table: str
    column: str
    inner: str
    outer: str
    level: str
    is_counted: bool

    def __str__(self) -> str:
        name = f"{self.table}.{self.column}" if self.table else self.column
        inner, outer = repr(self.inner), repr(self.outer)
        if self.level == self.inner:
            return f"{name}: values of {inner} in one {outer} differ"
        why = "the noise hides" if self.is_counted else "no table of counts shows"
        hidden = f"{why} how values of {inner} in one {outer} differ"
        if self.level:
            return f"{name}: {hidden}; values of {outer} differ"
        return f"{name}: {hidden}, and the noise hides how values of {outer} differ"


def levels_of_places(model: FittedTable) -> Iterator[PlaceLevel]:
    """Yield for each hierarchy of columns and each other column of a table at which level it differs.

    A level differs if its answers depart from what the level above gives by more than noise and the chance
    of the rows; see `differs`.
    """
    fitted, codec = model.fitted, model.codec
    declared = {c.columns for c in codec.schema.constraints if isinstance(c, Within)}
    if not declared:
        return
    hierarchy = Hierarchy.of(model.zeros)
    domain, links = fitted.merging.merged, links_of(hierarchy, model.zeros, fitted.one_ways)
    measured = {certainty.attributes: certainty.measured for certainty, _ in fitted.measured_marginals}
    counts = {table.attributes: table for table in fitted.marginals}
    one_way = {table.attributes[0]: table.counts for table in fitted.one_ways}
    for inner, outer in hierarchy.outer.items():
        if (inner, outer) not in declared:  # another rule ties these columns
            continue
        for beside in codec.domain:
            pair = tuple(name for name in domain if name in (inner, beside))
            if len(pair) < 2 or hierarchy.inner_of(pair) != inner:
                continue
            above = hierarchy.outer_pair(pair, domain)
            answer, link = measured.get(pair), links[inner]
            around: Measurement | None = measured.get(above)
            if answer is not None:
                sums = summed(answer, inner, outer, link, domain)
                around = with_sums(around, sums)
            level = ""
            if around is not None:
                shares = np.outer(*(one_way[name] / max(one_way[name].sum(), 1.0) for name in above))
                level = outer if differs(around, shares * fitted.total, outer) else ""
            if answer is not None:
                table = counts[pair].counts if pair[0] == inner else counts[pair].counts.T
                sums_of_codes = link.T @ table
                shares = sums_of_codes / np.maximum(sums_of_codes.sum(axis=1, keepdims=True), 1.0)
                expected = table.sum(axis=1, keepdims=True) * (link @ shares)
                level = (
                    inner if differs(answer, expected if pair[0] == inner else expected.T, inner) else level
                )
            name = codec.column_of(beside)
            yield PlaceLevel(model.name, name, inner, outer, level, answer is not None)
