"""Totals: the tables of exact public counts of a run, in the codes of its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about, replace_errors, safe_repr
from privsyn.marginals.domain import Codes, Ints
from privsyn.marginals.known_totals import EXACT, NO_TOTALS, KnownTotals
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.synthesis.totals.junction_tree import JunctionTree
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.bands import Band, read_band
from privsyn.table.encoding.dtypes import family
from privsyn.table.encoding.grid import FINE
from privsyn.table.encoding.steps import Cut
from privsyn.table.enforcement.allowed import numbers_of
from privsyn.table.enforcement.within import Within
from privsyn.table.kinds.column import number_in
from privsyn.table.schema.columns import Coded, Ordinal
from privsyn.table.schema.constraint import python_value
from privsyn.table.schema.schema import Schema
from privsyn.table.totals.contradiction import Contradiction, ExactTables, Outer
from privsyn.table.totals.counts_table import CountsTable, is_missing, read_all

KNOWN = "{} is known: its counts cost nothing and have no error"

NO_ROWS = "no rows were found that have all counts of {}: leave one of them out, or take coarser cells"

CONTRADICT = "totals contradict each other"

NO_NUMBER = "has texts, and the private column has numbers"

ONE_END = "has one end: give the bounds of the column in the schema"

MOST_CUTS = 1024
"""Numbers of one column at which exact counts may make a cell begin."""

MOST_NAMED = 3
"""Codes of a cell that a message names one by one."""


@dataclass(frozen=True, eq=False)
class Totals:
    """The tables of exact counts that a user says are public.

    Parameters
    ----------
    tables : tuple of CountsTable, optional
    """

    tables: tuple[CountsTable, ...] = ()

    @classmethod
    def read(cls, totals: object, schema: Schema) -> Totals:
        """Return the totals of a table of this schema that a user gives, if any; see `read_all`."""
        return NOTHING_KNOWN if totals is None else cls(read_all(totals, schema.columns, schema.csv))

    def __bool__(self) -> bool:
        return bool(self.tables)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all tables, each once."""
        return tuple(dict.fromkeys(name for table in self.tables for name in table.cells.columns))

    @property
    def facts(self) -> tuple[str, ...]:
        """The title, the size and the SHA-256 of each table, for the ledger."""
        return tuple(table.fact for table in self.tables)

    def complete(self, schema: Schema, head: pd.DataFrame) -> Schema:
        """Return the schema with the values, bounds and hierarchies that the totals make public.

        A column whose values the schema does not list has those of the totals: a value that no total counts
        has no row.

        Parameters
        ----------
        schema : Schema
        head : pandas.DataFrame
            Only its dtypes are read: texts of a file are numbers in a column of numbers.
        """
        columns: dict[str, Any] = {}
        for name in self.columns:
            dtype = head[name].dtype
            column = schema.columns[name].known_by_dtype(dtype)
            with about(f"totals: column {name!r}"):
                if not isinstance(column, Coded):
                    raise InputError("is never counted, as an identifier or free text: leave it out")
                if column.keep is not None:
                    raise InputError("was randomised by the respondents, so its counts are not: leave it out")
                if not column.is_public and name not in schema.computed:
                    values = self._values(name, column, schema.markers(name))
                    if family(dtype) in ("integer", "real"):
                        with replace_errors(NO_NUMBER, ValueError):
                            values = [number_in(cell) if isinstance(cell, str) else cell for cell in values]
                    columns[name] = column.with_listed(values)
        constraints = []
        for rule in schema.constraints:
            rows = self._hierarchy(rule, schema) if isinstance(rule, Within) and not rule.rows else []
            constraints.append(rule.with_rows(rows) if isinstance(rule, Within) and rows else rule)
        return replace(schema, columns={**schema.columns, **columns}, constraints=constraints)

    def _values(self, name: str, column: Coded, marks: Collection[str]) -> list[Any]:
        """Return all values of an open column, or the ends of all bands."""
        values: list[Any] = []
        for table in self.tables:
            if name not in table.cells:
                continue
            with about(f"{table.title}: column {name!r}"):
                for cell in table.values(name):
                    if (band := _band(column, cell)) is not None:
                        if np.isinf(band.low) or np.isinf(band.high):
                            raise InputError(f"the band {safe_repr(cell)} {ONE_END}")
                        values += [_as_integer(band.low), _as_integer(band.high)]
                    elif not is_missing(cell, marks):
                        values.append(_value(column, cell))
        if not values:
            raise InputError("all cells are missing: leave it out")
        return values

    def _hierarchy(self, rule: Within, schema: Schema) -> list[tuple[Any, ...]]:
        """Return in which outer value each inner value of a hierarchy lies, by the first table with both.

        A place lies in each region in which the table counts rows of it. A place without any row lies in the
        region beside which it is listed, if that is one region.
        """
        for table in self.tables:
            if not set(rule.columns) <= set(table.cells.columns):
                continue
            columns = []
            for name in rule.columns:
                column, marks = schema.coded[name], schema.markers(name)
                values = [
                    None if is_missing(cell, marks) else _value(column, cell) for cell in table.values(name)
                ]
                columns.append([values[index] for index in table.values_of_rows(name)])
            rows = [row for row in zip(*columns, table.counts.tolist(), strict=True) if None not in row]
            counted = {(inner, outer): None for inner, outer, count in rows if count}
            with_rows = {inner for inner, _ in counted}
            empty = {(inner, outer): None for inner, outer, _ in rows if inner not in with_rows}
            regions = Counter(inner for inner, _ in empty)
            with about(table.title):
                return [*rule.with_rows([*counted, *(pair for pair in empty if regions[pair[0]] == 1)]).rows]
        return []

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence on each table, for a plan."""
        return tuple(KNOWN.format(table.title) for table in self.tables)

    def cuts(self, schema: Schema, head: pd.DataFrame) -> dict[str, list[Cut]]:
        """Return of each column a cut at each end of a band of numbers, or of a single number.

        Parameters
        ----------
        schema : Schema
            Complete.
        head : pandas.DataFrame
            Only its dtypes are read.
        """
        return {name: cuts for name in self.columns if (cuts := self._cuts(name, schema, head))}

    def _cuts(self, name: str, schema: Schema, head: pd.DataFrame) -> list[Cut]:
        """Return where the bands and numbers of a column begin and end, if it has more points than cells."""
        column = schema.coded[name]
        if not isinstance(column, Ordinal) or (grid := column.encoder(head[name].dtype).grid).points <= FINE:
            return []
        points = set[int]()
        for table in self.tables:
            if name not in table.cells:
                continue
            with about(f"{table.title}: column {name!r}"):
                for value in table.values(name):
                    if not is_missing(value, schema.markers(name)):
                        points.update(grid.points_in(*_band_of(column, value)))
        if len(points) > MOST_CUTS:
            raise InputError(
                f"totals: column {name!r} has more than {MOST_CUTS:,} ends of bands: take fewer bands"
            )
        return grid.cuts_at(sorted(points))

    def encoded(self, codec: Codec) -> KnownTotals:
        """Return the tables in the codes of the rows.

        Raises
        ------
        InputError
            If a column is not counted itself; if a value is none of its column; or if a cell comes twice.
        """
        return KnownTotals(tuple(_measured(table, codec) for table in self.tables))

    def checked(self, codec: Codec) -> KnownTotals:
        """Return the tables in the codes of the rows.

        Raises
        ------
        InputError
            As `encoded`; with the smallest contradiction of the tables, or of one and the schema; and if no
            rows are found that have all totals.
        """
        if not self:
            return NO_TOTALS
        measured = tuple(_measured(table, codec) for table in self.tables)
        zeros = _zeros(codec)
        exact = ExactTables(measured, codec.domain, zeros, codec.nullable, _hierarchies(codec))
        if (problem := exact.contradiction()) is not None:
            raise InputError(self._words(problem, exact, codec))
        totals = KnownTotals(measured)
        with replace_errors(NO_ROWS.format(_listed([table.title for table in self.tables])), ValueError):
            JunctionTree.of(totals, codec.domain, zeros).check()
        return totals

    def _words(self, problem: Contradiction, exact: ExactTables, codec: Codec) -> str:
        """Return a contradiction in one sentence."""
        *titles, last = (self.tables[index].title for index in problem.tables)
        numbers = [f"{count:,.10g}" for count in problem.counts]
        cell = ", ".join(
            f"{name} {_few(codec.encoder_of[name].words(codes))}" for name, codes in problem.cell.items()
        )
        if problem.relation == "zero":
            return f"{last} contradicts the schema: {cell} has {numbers[1]} rows, and constraints allow none"
        if problem.relation == "equal":
            of_cell = f"{cell} has {numbers[0]} rows in {titles[0]}"
            of_all = f"{titles[0]} has {numbers[0]} rows in all"
            return f"{CONTRADICT}: {of_cell if cell else of_all} and {numbers[1]} in {last}"
        if problem.relation == "fractions":
            return f"{CONTRADICT}: only fractions of rows have all counts of {_listed([*titles, last])}"
        names = {name for index in problem.tables for name in exact.tables[index].attributes}
        if any(names.issuperset(domain.names) for domain, _ in exact.zeros.masks):
            titles.append("the constraints of the schema")
        bound = "the nearest table has" if problem.relation == "nearest" else f"it has {problem.relation}"
        follows = f"by {_listed(titles)} {bound} {numbers[0]}"
        return f"{CONTRADICT}: {cell} has {numbers[1]} rows in {last}, and {follows}"


NOTHING_KNOWN = Totals()


def _band(column: Coded, cell: Any) -> Band | None:
    """Return the band of numbers that a cell of totals means; None if it is one value."""
    if isinstance(cell, pd.Interval):
        if not isinstance(column, Ordinal):
            raise InputError(f"the interval {cell} is no value of a column of listed values")
        low, high = (column.number_of(python_value(end)) for end in (cell.left, cell.right))
        return Band(low, high, cell.closed)
    if isinstance(cell, str) and isinstance(column, Ordinal) and column.has_numbers:
        band = read_band(cell)
        return None if band is None or band.low == band.high else band
    return None


def _band_of(column: Coded, cell: Any) -> Band:
    """Return the band of numbers that a cell of totals means; of one value, the band of its number."""
    if (band := _band(column, cell)) is not None:
        return band
    number = column.number_of(_value(column, cell))
    return Band(number, number)


def _value(column: Coded, cell: Any) -> Any:
    """Return the value that a cell of totals means."""
    if not isinstance(cell, str):
        return python_value(cell)
    with replace_errors(f"{safe_repr(cell)} is no number and no band of numbers, such as 20-29", ValueError):
        return column.value_of(cell)


def _as_integer(number: float) -> float:
    """Return a number as an integer, if it is one."""
    return int(number) if number == int(number) else number


def _measured(table: CountsTable, codec: Codec) -> Measurement:
    """Return a table of counts in groups of codes; refuse cells that come twice."""
    groups: list[Codes] = []
    indices: list[Ints] = []
    for name in map(str, table.cells.columns):
        with about(f"{table.title}: column {name!r}"):
            group, index = _groups(table, name, codec)
        groups.append(group)
        indices.append(index)
    grouping = Grouping(tuple(groups))
    domain = grouping.domain(codec.domain.project(tuple(map(str, table.cells.columns))))
    counts = np.zeros(domain.shape)
    flat = np.ravel_multi_index(tuple(indices), counts.shape)
    cells, first, repeats = np.unique(flat, return_index=True, return_counts=True)
    if (repeats > 1).any():
        row = table.cells.iloc[int(first[repeats > 1].min())]
        cell = ", ".join(f"{name} {value}" for name, value in row.items())
        raise InputError(f"{table.title}: counts {cell} twice: give each cell one row")
    counts.reshape(-1)[cells] = table.counts[first]
    if not counts.any():
        raise InputError(f"{table.title}: counts no row")
    return Measurement(Marginal(domain, counts), EXACT, grouping)


def _groups(table: CountsTable, name: str, codec: Codec) -> tuple[Codes, Ints]:
    """Return the group of each code of a column, and the group of each row of a table of counts.

    A code that no row names is a group of its own, with the count 0.
    """
    if codec.attributes_of(name) != (name,) or name not in codec.domain.names:
        raise InputError(
            "is computed from others, or counted as its distance to one: leave it out, or the constraint"
        )
    column, marks, cells = codec.schema.coded[name], codec.schema.markers(name), codec.cells()[name]
    values = table.values(name)
    value_of_code = np.full(len(cells.lows), -1)
    first_code = []
    for index, value in enumerate(values):
        if not is_missing(value, marks):
            codes = _codes(column, value, codec, name)
        elif cells.nullable:
            codes = np.array([len(cells.lows) - 1])
        else:
            raise InputError("a cell is missing, and the private column has no missing cells")
        if (taken := value_of_code[codes] >= 0).any():
            rival = values[int(value_of_code[codes[taken][0]])]
            raise InputError(f"{_shown(rival)} and {_shown(value)} have values in common")
        value_of_code[codes] = index
        first_code.append(codes[0])
    begins = (np.diff(value_of_code, prepend=-2) != 0) | (value_of_code < 0)
    group = np.cumsum(begins) - 1
    return group.astype(np.int32), group[np.array(first_code)][table.values_of_rows(name)]


def _codes(column: Coded, cell: Any, codec: Codec, name: str) -> Ints:
    """Return the codes of a value or a band; refuse one that is none of the column, or ends within a code."""
    band = _band_of(column, cell)
    if (grid := codec.grid(name)) is None:
        return np.array([int(band.low)])
    first, behind = grid.points_in(*band)
    if first >= behind:
        raise InputError(f"{_shown(cell)} is no value of the column: correct it, or the bounds in the schema")
    begin, end = np.searchsorted(grid.edges, [first, behind])
    if grid.edges[begin] != first or grid.edges[end] != behind:
        raise ValueError(
            f"{cell} begins or ends within a cell of {name!r}: the codec was made without its cuts"
        )
    return np.arange(begin, end)


def _zeros(codec: Codec) -> StructuralZeros:
    """Return the structural zeros of the codes of the rows."""
    groups = tuple(np.arange(size, dtype=np.int32) for size in codec.domain.sizes)
    return codec.possible(
        Merging(codec.domain, codec.domain, groups, tuple(map(np.ones, codec.domain.sizes)))
    )


def _hierarchies(codec: Codec) -> dict[str, Outer]:
    """Return the outer attribute of each inner one, and in which of its codes each inner code lies."""
    outer_of = {}
    for rule in codec.schema.constraints:
        if isinstance(rule, Within) and set(rule.columns) <= set(codec.domain.names):
            inner, outer = rule.columns
            rows = numbers_of(codec.schema.coded, rule.columns, rule.rows)
            codes = np.full(codec.domain.size_of[inner], -1)
            cells = codec.cells()
            codes[cells[inner].find(rows[:, 0])] = cells[outer].find(rows[:, 1])
            outer_of[inner] = outer, codes
    return outer_of


def _shown(cell: object) -> str:
    """Return a cell of public counts as a message shows it."""
    return safe_repr(cell) if isinstance(cell, str) else str(cell)


def _few(words: list[str]) -> str:
    """Return the first of some values as text."""
    more = f" and {len(words) - MOST_NAMED} more" if len(words) > MOST_NAMED else ""
    return f"{', '.join(words[:MOST_NAMED])}{more}"


def _listed(words: list[str]) -> str:
    """
    >>> _listed(["a"]), _listed(["a", "b"]), _listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
