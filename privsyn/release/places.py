"""At which level places differ, by released answers: within their region, among regions, or not visibly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privsyn.inference.hierarchy import Hierarchy, differs, largest_difference, links_of, summed, with_sums
from privsyn.marginals.marginal import Measurement
from privsyn.table.enforcement.within import Within

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable


MATTERS = 0.02
"""Share of its rows by which a place may differ unseen from its region before a loss names the column."""

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
    may_differ : float
        By how much places may differ from their region beyond the chance of their rows, as far as the
        answers show (95 % limit): a mean total variation, from 0 to 1; 1 if the column is not counted.
    part : str
        What is compared of a column of times that is counted in parts, such as ``at (time of day)``; else "".

    Examples
    --------
    >>> print(PlaceLevel("", "ill", "town", "county", "county", True, 0.05))
    ill: the noise hides how values of 'town' in one 'county' differ; values of 'county' differ
    >>> print(str(PlaceLevel("", "ill", "town", "land", "land", True, 0.004)).split("; ")[0])
    ill: values of 'town' in one 'land' differ by less than 0.4 % of rows, beyond chance
    """

    table: str
    column: str
    inner: str
    outer: str
    level: str
    is_counted: bool
    may_differ: float
    part: str = ""

    @property
    def compared(self) -> str:
        """What is compared: the column, or a part of its times."""
        return self.part or self.column

    @property
    def is_hidden(self) -> bool:
        """Whether places of one region may differ by more than `MATTERS`, and no answer shows it."""
        return self.level != self.inner and self.may_differ > MATTERS

    def __str__(self) -> str:
        name = f"{self.table}.{self.compared}" if self.table else self.compared
        inner, outer = repr(self.inner), repr(self.outer)
        if self.level == self.inner:
            return f"{name}: values of {inner} in one {outer} differ"
        why = "the noise hides" if self.is_counted else "no table of counts shows"
        hidden = f"{why} how values of {inner} in one {outer} differ"
        if not self.is_hidden:
            share = max(math.ceil(1000 * self.may_differ) / 10, 0.1)
            hidden = (
                f"values of {inner} in one {outer} differ by less than {share:.1f} % of rows, beyond chance"
            )
        if self.level:
            return f"{name}: {hidden}; values of {outer} differ"
        return f"{name}: {hidden}; the noise hides how values of {outer} differ"


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
            level, may_differ = "", 1.0
            if around is not None:
                shares = np.outer(*(one_way[name] / max(one_way[name].sum(), 1.0) for name in above))
                level = outer if differs(around, shares * fitted.total, outer) else ""
            if answer is not None:
                table = counts[pair].counts if pair[0] == inner else counts[pair].counts.T
                sums_of_codes = link.T @ table
                shares = sums_of_codes / np.maximum(sums_of_codes.sum(axis=1, keepdims=True), 1.0)
                expected = table.sum(axis=1, keepdims=True) * (link @ shares)
                expected = expected if pair[0] == inner else expected.T
                level = inner if differs(answer, expected, inner) else level
                may_differ = largest_difference(answer, expected, inner)
            name = codec.column_of(beside)
            part = beside if name in codec.parts else ""
            yield PlaceLevel(model.name, name, inner, outer, level, answer is not None, may_differ, part)
