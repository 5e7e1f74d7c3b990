"""Drafts of tables, with what the rows of one parent show: their order, constants, and sums worth having.

Not private: it is read from the rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from privsyn.errors import plural
from privsyn.marginals.domain import Floats, Ints
from privsyn.table.drafting.keys import words
from privsyn.table.encoding.dtypes import family
from privsyn.table.schema.columns import Column, Datetime, Numerical, Text
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.subjects import OF_PEOPLE

FEWEST_PAIRS = 30
"""Pairs of neighbours of one parent, and of those that rise, that show something: fewer may by chance."""

NEARLY_ALL = 0.99
"""Least share of the steps from row to row that do not fall, if numbers rise: a few rows may be misplaced."""

LEAST_DISTINCT = 0.9
"""Least share of the rows whose number no row of the same parent before them has, for an order by the name;
and of the parents whose first row has the number 1, if numbers are positions."""

IN_TIME = re.compile(
    r"arriv(?:al|ed?)|begin|date|day|depart(?:ure)?|hour|index|month|order|period|position|rank|round|sequence|seq|"
    r"start(?:ed)?|step|time(?:stamp)?|turn|wave|week|year"
)
"""Words in the name of a number by which rows may be in order."""

OF_OTHERS = {"code", "id", "key", "ref"}
"""Last words in the names of numbers that name rows of other tables, if rows share a number."""

MONEY = re.compile(
    r"(?i)amount|charge|cost|dollar|euro|expense|fare|fee|income|paid|pay|price|revenue|salary|sales|spent|"
    r"total|value|wage"
)
"""Names of numbers whose sum is worth having."""

MOST_GAPS = 0.1
"""Share of missing times above which another column of times is rather the order."""

MOST_SKIPPED = 2
"""Largest row number over the number of rows: numbers of rows that were taken out are missing."""

FEW_CHILDREN = 20
"""Most child rows of which a draft proposes that no row has more."""


@dataclass(frozen=True, eq=False)
class DraftedTable:
    """The draft of one private table, and what the rows of one parent show.

    Parameters
    ----------
    name : str
    schema : Schema
        The columns of data.
    frame : pandas.DataFrame
        These columns, as the draft reads them.
    spelling : mapping of a column to texts
        Which texts are not read, or come out written in another way.
    links : mapping
        Key, parent, link and order, as in a schema file.
    parents : integer array of shape (rows,)
        The row of the parent, -1 where there is none, as in the root.
    numbering : tuple of str
        The columns that only number the rows of one parent, as 1, 2, 3.
    remark : str
        What the rows show about their order.
    """

    name: str
    schema: Schema
    frame: pd.DataFrame
    spelling: Mapping[str, tuple[str, ...]]
    links: Mapping[str, str]
    parents: Ints
    numbering: tuple[str, ...] = ()
    remark: str = ""

    @property
    def parent(self) -> str | None:
        """The table to whose rows the rows belong; None for the root."""
        return self.links.get("parent")

    @property
    def order(self) -> str | None:
        """The column by which the rows of one parent are in order."""
        return self.links.get("order")

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

    @cached_property
    def row_numbers(self) -> frozenset[str]:
        """The columns that number the rows of the table: they say nothing, so no rule names them."""
        return row_numbers(self.schema, self.frame)

    def counts(self, rows_above: int) -> str:
        """Return how many rows there are, and how many of each row of the parent."""
        counts = np.bincount(self.parents[self.parents >= 0], minlength=rows_above)
        none, largest, mean = int((counts == 0).sum()), int(counts.max(initial=0)), float(counts.mean())
        return (
            f"{plural(len(self.parents), 'row')} below {plural(rows_above, 'row')} of {self.parent}:"
            f" {mean:{',.0f' if mean >= 10 else '.2g'}} on average, at most {largest:,}, and"
            f" {f'{none:,} have none' if none else 'all have some'}"
        )

    def children(self, rows_above: int) -> str:
        """Return how many rows a row of the parent may have, as a schema says it; "" if nothing is shown."""
        counts = np.bincount(self.parents[self.parents >= 0], minlength=rows_above)
        fewest, largest = int(counts.all()), int(counts.max(initial=0))
        if 0 < largest <= FEW_CHILDREN:
            return f"{fewest}..{largest}"
        return "1.." if fewest else ""

    def numbers(self, column: str) -> Floats | None:
        """Return a column as numbers or times; None if it has none."""
        drafted, cells = self.schema.columns.get(column), self.frame[column]
        if isinstance(drafted, Datetime | Numerical):
            return drafted.numbers(cells)
        return cells.to_numpy(np.float64, na_value=np.nan) if family(cells.dtype) == "integer" else None

    def _share_distinct(self, numbers: Floats) -> float:
        """Return the share of the rows whose number no row of the same parent before them has."""
        both = pd.DataFrame({"parent": self.parents[self.sorted], "number": numbers[self.sorted]})
        return float((~both.duplicated()).mean())

    def _is_position(self, numbers: Floats) -> bool:
        """Return whether the rows of each parent have different whole numbers, of which the first is 1."""
        positions = numbers[self.sorted]
        is_whole = bool(np.isfinite(positions).all() and (positions == np.rint(positions)).all())
        if not is_whole or self._share_distinct(numbers) < 1:
            return False
        lowest = pd.Series(positions).groupby(self.parents[self.sorted]).min()
        return bool((lowest == 1).mean() >= LEAST_DISTINCT)

    def in_order(self, keys: Collection[str]) -> DraftedTable:
        """Return the table with an order of the rows of one parent, if there is one; it is none of `keys`."""
        column, numbering, remark = self._order(keys)
        columns: dict[str, Column] = {**self.schema.columns, **dict.fromkeys(numbering, Text())}
        frame, links = self.frame, self.links
        if column is not None:
            links = {**links, "order": column}
        if column in numbering:  # it is no data: synthetic rows are numbered again
            columns.pop(column)
            frame = frame.drop(columns=[column])
        schema = replace(self.schema, columns=columns)
        return replace(self, schema=schema, frame=frame, links=links, numbering=numbering, remark=remark)

    def _order(self, keys: Collection[str]) -> tuple[str | None, tuple[str, ...], str]:
        """Return the column by which the rows of a parent are in order, those that number them, and a remark.

        It is a position or a time; the time if it says the same, and more. Else it is a number that rises in
        the order of the file, or one with such a name.
        """
        if len(self.pairs[0]) < FEWEST_PAIRS:
            return None, (), ""
        numbers_of = {name: self.numbers(name) for name in map(str, self.frame) if name not in keys}
        varying = {
            name: numbers
            for name, numbers in numbers_of.items()
            if numbers is not None and not self._is_constant(name)
        }
        positions = tuple(name for name, numbers in varying.items() if self._is_position(numbers))
        dates = [name for name in varying if isinstance(self.schema.columns.get(name), Datetime)]
        times = [name for name in dates if not OF_PEOPLE.search(name)]
        late = {name: _lateness(name, varying, times) for name in times}
        times.sort(key=lambda name: (np.isnan(varying[name]).mean() > MOST_GAPS, late[name]))
        rows = f"among the rows of one row of {self.parent}."
        for name in positions:
            if not times or not self._increases(varying[times[0]], by=varying[name]):
                return name, positions, f"READ: {name} is 1, 2, ... {rows}"
        if times:
            also = f" Others: {', '.join([*times[1:], *positions])}." if times[1:] or positions else ""
            return times[0], positions, f"READ: {times[0]} is a time that differs {rows}{also}"
        for name, numbers in varying.items():
            if words(name)[-1] in OF_OTHERS and pd.Series(numbers).duplicated().any():
                continue  # rows that were sorted by what they name, as by the film of a rating
            distinct, rising = self._share_distinct(numbers), self._increases(numbers)
            named = any(map(IN_TIME.fullmatch, words(name)))
            if (named and (rising or distinct >= LEAST_DISTINCT)) or (rising and distinct == 1):
                why = "their order in the file" if rising else "its name, and they differ"
                return name, (), f"READ: order by {name}, because of {why}."
        return None, (), ""

    def _increases(self, numbers: Floats, by: Floats | None = None) -> bool:
        """Return whether numbers do not fall from row to row of one parent, and often rise.

        The rows are in the order of the file, or of the numbers `by`.
        """
        earlier, later = self.pairs
        if by is not None:
            order = np.lexsort((by, self.parents))
            same = (np.diff(self.parents[order]) == 0) & (self.parents[order][1:] >= 0)
            earlier, later = order[:-1][same], order[1:][same]
        steps = numbers[later] - numbers[earlier]
        steps = steps[np.isfinite(steps)]
        enough = len(steps) >= FEWEST_PAIRS and int((steps > 0).sum()) >= FEWEST_PAIRS
        return enough and bool((steps >= 0).mean() >= NEARLY_ALL)

    def _is_constant(self, name: str) -> bool:
        """Return whether each row has the cell of the next one of the same parent."""
        codes = pd.factorize(self.frame[name])[0]
        return bool((codes[self.pairs[0]] == codes[self.pairs[1]]).all())

    def belonging_to_parent(self) -> Iterator[str]:
        """Yield the columns that never differ among the rows of one parent, but among those of others."""
        if len(self.pairs[0]) >= FEWEST_PAIRS:
            for name in self.schema.coded:
                alike = len(np.unique(pd.factorize(self.frame[name])[0])) < 2
                if not alike and self._is_constant(name):
                    yield name

    def telling_apart(self) -> str | None:
        """Return a column that tells apart the rows of each parent, as the years of a person do.

        Chance does not: of the pairs of neighbours, `FEWEST_PAIRS` or more would have the same cell. It has
        fewer values than there are parents. None if there is no such column.
        """
        parents = len(np.unique(self.parents))
        for name in self.schema.coded:
            codes = pd.factorize(self.frame[name])[0]
            alike = float(((np.bincount(codes[codes >= 0]) / max(len(codes), 1)) ** 2).sum())
            if len(self.pairs[0]) * alike < FEWEST_PAIRS or codes.max(initial=-1) >= parents - 1:
                continue
            if self._share_distinct(codes.astype(np.float64)) == 1:
                return name
        return None

    def summaries(self, without: Collection[str]) -> dict[str, str]:
        """Return summaries of the rows that a row of the parent could have, by the names of columns."""
        expressions: dict[str, str] = {}
        for name, column in self.schema.without(without).coded.items():
            if name == self.order and isinstance(column, Datetime):
                expressions |= {
                    f"first_{name}": f"min({self.name}.{name})",
                    f"last_{name}": f"max({self.name}.{name})",
                }
            elif isinstance(column, Numerical) and MONEY.search(name):
                expressions[f"sum_{name}"] = f"sum({self.name}.{name})"
        return expressions


def row_numbers(schema: Schema, frame: pd.DataFrame) -> frozenset[str]:
    """Return the columns that number the rows of a table, as programs write that save tables as files.

    The numbers begin with 0 or 1. Either none is missing, or they rise in the order of the file.

    >>> rows = pd.DataFrame({"": [1, 2, 5, 6], "n": [2, 0, 3, 1], "year": [1, 1, 2, 3], "at": [1, 5, 20, 90]})
    >>> columns = {name: Numerical(0, 99, integer=True, nullable=False) for name in rows}
    >>> sorted(row_numbers(Schema(columns), rows))
    ['', 'n']
    """
    names = set()
    for name, column in schema.coded.items():
        if isinstance(column, Numerical) and len(frame):
            numbers = column.numbers(frame[name])
            first, last, rows = numbers.min(), numbers.max(), len(numbers)  # NaN if a cell is missing
            if first in (0, 1) and last <= MOST_SKIPPED * rows and (numbers == np.rint(numbers)).all():
                all_there = last - first == rows - 1 and len(np.unique(numbers)) == rows
                if all_there or (np.diff(numbers) > 0).all():
                    names.add(name)
    return frozenset(names)


def _lateness(name: str, numbers_of: Mapping[str, Floats], times: Collection[str]) -> float:
    """Return in which share of the rows that have both a time is later than another one, on average.

    >>> times = {"sent": np.array([3, np.nan, 2]), "ordered": np.array([1, 9, 1.0])}
    >>> [_lateness(name, times, times) for name in times]
    [0.5, 0.0]
    """
    shares = []
    for second in times:
        complete = np.isfinite(numbers_of[name]) & np.isfinite(numbers_of[second])
        shares.append((numbers_of[name] > numbers_of[second]).sum() / max(complete.sum(), 1))
    return float(np.mean(shares))
