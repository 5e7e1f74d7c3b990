"""What the rows of one parent show: their order, what never differs among them, and sums worth having.

Not private: it is read from the rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from privsyn.errors import plural
from privsyn.marginals.domain import Floats, Ints, Mask
from privsyn.table.drafting.keys import words
from privsyn.table.drafting.layout import OF_PEOPLE
from privsyn.table.encoding.dtypes import family
from privsyn.table.schema.columns import Datetime, Numerical
from privsyn.table.schema.schema import Schema

LEAST = 30
"""Rows with another one of the same parent from which something is said: fewer show nothing."""

NEARLY_ALL = 0.99

MOSTLY = 0.9
"""Share of the rows that another number than those beside them must have, for an order by the name."""

IN_TIME = re.compile(
    r"arriv(?:al|ed?)|begin|date|day|depart(?:ure)?|hour|index|month|order|period|position|rank|round|sequence|seq|"
    r"start(?:ed)?|step|time|turn|wave|week|year"
)
"""Words in the name of a number by which rows may be in order."""

MONEY = re.compile(
    r"(?i)amount|charge|cost|dollar|euro|expense|fare|fee|income|paid|pay|price|revenue|salary|sales|spent|"
    r"total|value|wage"
)
"""Names of numbers whose sum is worth having."""


MOST_GAPS = 0.1
"""Share of missing times above which another column of times is rather the order."""


class RowOrder(NamedTuple):
    """How the rows of one parent are in order.

    Parameters
    ----------
    column : str, optional
        By which they are.
    numbering : tuple of str
        The columns that only number them, as 1, 2, 3.
    said : str
        What the rows show.
    """

    column: str | None = None
    numbering: tuple[str, ...] = ()
    said: str = ""


@dataclass(frozen=True, eq=False)
class Siblings:
    """The rows of a table below another one.

    Parameters
    ----------
    name : str
    parent : str
    frame : pandas.DataFrame
    parents : integer array of shape (rows,)
        The row of the parent, -1 where there is none.
    schema : Schema
        The drafted columns of data.
    """

    name: str
    parent: str
    frame: pd.DataFrame
    parents: Ints
    schema: Schema

    @cached_property
    def sorted(self) -> Ints:
        """The rows that have a parent, parent by parent, each in the order of the file."""
        order = np.argsort(self.parents, kind="stable")
        return order[np.searchsorted(self.parents[order], 0) :]

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Each row and the next one of the same parent, in the order of the file."""
        same = np.diff(self.parents[self.sorted]) == 0
        return self.sorted[:-1][same], self.sorted[1:][same]

    def counts(self, rows_above: int) -> str:
        """Return how many rows there are, and how many of each row of the parent."""
        counts = np.bincount(self.parents[self.parents >= 0], minlength=rows_above)
        return (
            f"{plural(len(self.parents), 'row')} below {plural(rows_above, 'row')} of {self.parent}:"
            f" {counts.mean():.2g} on average, at most {counts.max(initial=0):,}, and"
            f" {int((counts == 0).sum()):,} have none"
        )

    def numbers(self, column: str) -> Floats | None:
        """Return a column as numbers or times; None if it has none."""
        drafted, cells = self.schema.columns.get(column), self.frame[column]
        if isinstance(drafted, Datetime | Numerical):
            return drafted.numbers(cells)
        return cells.to_numpy(np.float64, na_value=np.nan) if family(cells.dtype) == "integer" else None

    def _is_distinct(self, numbers: Floats) -> float:
        """Return the share of the rows whose number no row of the same parent before them has."""
        both = pd.DataFrame({"parent": self.parents[self.sorted], "number": numbers[self.sorted]})
        return float((~both.duplicated()).mean())

    def _is_position(self, numbers: Floats) -> bool:
        """Return whether the rows of each parent have different whole numbers, of which the first is 1."""
        given = numbers[self.sorted]
        if not np.isfinite(given).all() or (given != np.rint(given)).any() or self._is_distinct(numbers) < 1:
            return False
        least = pd.Series(given).groupby(self.parents[self.sorted]).min()
        return bool((least == 1).mean() >= MOSTLY)

    def order(self, without: Collection[str]) -> RowOrder:
        """Return how the rows of a parent are in order; the columns `without` are keys."""
        if len(self.pairs[0]) < LEAST:
            return RowOrder()
        names = [str(name) for name in self.frame if name not in without]
        known = {name: self.numbers(name) for name in names}
        found = {
            name: each for name, each in known.items() if each is not None and not self._is_constant(name)
        }
        places = tuple(name for name, each in found.items() if self._is_position(each))
        times = [
            name
            for name in found
            if isinstance(self.schema.columns.get(name), Datetime) and not OF_PEOPLE.search(name)
        ]
        times.sort(key=lambda name: (np.isnan(found[name]).mean() > MOST_GAPS, np.nanmean(found[name])))
        for place in places:
            if not times or not self._increases(found[times[0]], by=found[place]):
                said = f"READ: {place} is 1, 2, ... among the rows of one row of {self.parent}."
                return RowOrder(place, places, said)
        if times:
            others = ", ".join([*times[1:], *places])
            also = f" Others: {others}." if others else ""
            said = (
                f"READ: {times[0]} is a time that differs among the rows of one row of {self.parent}.{also}"
            )
            return RowOrder(times[0], places, said)
        for name, each in found.items():
            distinct, rising = self._is_distinct(each), self._increases(each)
            named = any(map(IN_TIME.fullmatch, words(name)))
            if (named and (rising or distinct >= MOSTLY)) or (rising and distinct == 1):
                why = "their order in the file" if rising else "its name, and they differ"
                return RowOrder(name, (), f"READ: order by {name}, because of {why}.")
        return RowOrder()

    def _increases(self, numbers: Floats, by: Floats | None = None) -> bool:
        """Return whether numbers do not fall from row to row of one parent, and often rise."""
        one, other = self.pairs
        if by is not None:
            order = np.lexsort((by, self.parents))
            same = (np.diff(self.parents[order]) == 0) & (self.parents[order][1:] >= 0)
            one, other = order[:-1][same], order[1:][same]
        steps = numbers[other] - numbers[one]
        steps = steps[np.isfinite(steps)]
        return (
            len(steps) >= LEAST
            and bool((steps >= 0).mean() >= NEARLY_ALL)
            and int((steps > 0).sum()) >= LEAST
        )

    def _is_constant(self, name: str) -> bool:
        return bool(self._same(name).all())

    def _same(self, name: str) -> Mask:
        """Return which pairs of rows of one parent have equal cells."""
        codes = pd.factorize(self.frame[name])[0]
        return codes[self.pairs[0]] == codes[self.pairs[1]]

    def belonging_to_parent(self) -> Iterator[str]:
        """Yield the columns that never differ among the rows of one parent, but among those of others."""
        if len(self.pairs[0]) >= LEAST:
            for name in self.schema.coded:
                codes = pd.factorize(self.frame[name])[0]
                if self._is_constant(name) and len(np.unique(codes)) > 1:
                    yield name

    def summaries(self, order: str | None) -> dict[str, str]:
        """Return summaries of the rows that a row of the parent could have, by the names of columns."""
        found: dict[str, str] = {}
        for name, column in self.schema.coded.items():
            if name == order and isinstance(column, Datetime):
                found |= {
                    f"first_{name}": f"min({self.name}.{name})",
                    f"last_{name}": f"max({self.name}.{name})",
                }
            elif isinstance(column, Numerical) and MONEY.search(name):
                found[f"sum_{name}"] = f"sum({self.name}.{name})"
        return found
