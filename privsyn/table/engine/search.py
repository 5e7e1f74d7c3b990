"""The counts by which a schema is completed, in SQL: of the same cells and values as in memory.

Tallies. A row lies in a cell by comparisons with thresholds, where the cells are those of a column's own
values, or by the arithmetic of `RowCells.positions`. What comes back is a count for each public cell.

Values. A text that few rows share must not leave the database. The database adds up the votes for each value
in a temporary table of its own, ranks the values in their order, and answers with ranks and votes alone.
Noise and threshold are here. Then the values are read whose ranks passed, and these are released anyway.

Privacy: cells and votes are those of `privsyn.private.find_values`, so one row, or a person, moves them as
far as there. The number of values and their ranks are private like the exact votes. They only say to which
value each noise is added, as in memory, where the values stand in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from privsyn.marginals.domain import Ints
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.discovery.tally import LARGEST_NUMBER, OpenValues, RowCells, Tally
from privsyn.table.encoding.encoders import OrderedEncoder
from privsyn.table.encoding.time_encoders import DatetimeEncoder
from privsyn.table.engine.arithmetic import literal
from privsyn.table.engine.codes import Columns, breaks_of, double, finite, is_real, refused
from privsyn.table.engine.engine import Cells, Engine
from privsyn.table.engine.expressions import Cell, case
from privsyn.table.engine.scales import DOUBLES, Real, Scale, Whole
from privsyn.table.engine.sqlglot_later import exp
from privsyn.table.engine.steps import steps_of

ROWS = "privsyn_rows"
"""The column with the number of rows that have a value."""


class Search(Columns):
    """The questions of a search about the columns of a table in an engine."""

    def check(self, open_schema: OpenSchema) -> None:
        """Refuse columns that SQL cannot count exactly, before any query.

        Raises
        ------
        InputError
        """
        filled = open_schema.fill({}, {})
        encoders: dict[str, OrderedEncoder] = dict(open_schema.spreads(filled).encoders)
        encoders |= {name: encoder for name, (encoder, _) in open_schema.lattices(filled).columns.items()}
        for cells in open_schema.bounds_question(open_schema.grids).cells.values():
            encoders |= cells.encoders
        for name, encoder in encoders.items():
            self.number(name, encoder)
        for name in open_schema.values:
            self._value(name, frozenset(), frozenset())

    def cells(self, cells: RowCells) -> Cells:
        """Return the cells of a count as an expression over `source`."""
        if self._is_number(cells):
            return Cells(self.written(self._by_value(next(iter(cells.encoders)), cells)), cells.size)
        positions: Callable[[Mapping[str, Any]], Any] = cells.positions
        numbers = {name: self.number(name, encoder) for name, encoder in cells.encoders.items()}
        position = self._kept(positions(numbers).sql)
        if type(cells).cell is RowCells.cell:  # the position is the cell
            return Cells(exp.cast(position, "bigint"), cells.size)
        steps = steps_of(lambda at: cells.cell(DOUBLES.array(at).to_numpy()), (0, DOUBLES.ends[1]))
        return Cells(self.written(_or_null(Cell(position, DOUBLES).steps(steps, -1))), cells.size)

    def group(self, cells: RowCells) -> str | None:
        """Group the rows by the values of a column of few integers: the cell of each is computed once.

        Returns
        -------
        str or None
            The column of `source` with the number of rows of a value; None if the rows are not grouped.
        """
        (name, encoder), *more = cells.encoders.items()
        is_whole = isinstance(self.cell(name).scale, Whole) and not self.dialect.mixes_types
        are_few = is_whole and encoder.grid.points <= self.dialect.finest
        if more or not are_few or self._is_number(cells):  # thresholds take less time than the values
            return None
        column, rows = exp.column(name, quoted=True), exp.alias_(exp.Count(this=exp.Star()), ROWS)
        values = exp.select(column, rows).from_(self.relation).group_by(column.copy())
        self.relation = values.subquery("raw")
        return ROWS

    def _is_number(self, cells: RowCells) -> bool:
        """Return whether the position of a row is the number of its one column."""
        positions: Callable[[Mapping[str, Any]], Any] = cells.positions
        number = self.traced(exp.null())
        return len(cells.encoders) == 1 and positions(dict.fromkeys(cells.encoders, number)) is number

    def votes(self, engine: Engine, question: OpenValues) -> EngineVotes:
        """Return the votes for each value of each column, in temporary tables that the engine writes.

        Privacy: each row gives `question.weights` to its values that are not released, by how many these are.
        """
        names = {name: f"value_{index}" for index, name in enumerate(question.marks)}
        values, kinds, present = list[exp.Expr](), dict[str, type](), list[exp.Expr]()
        for name, alias in names.items():
            released = {
                value
                for (column, _), its_values in question.released.items()
                if column == name
                for value in its_values
            }
            value, kinds[name] = self._value(name, question.marks[name], released)
            values.append(exp.alias_(value, alias))
            is_missing = exp.column(alias).is_(exp.null())
            present.append(case([(is_missing, exp.convert(0))], exp.convert(1)))
        number = present[0]
        for flag in present[1:]:
            number = exp.Add(this=number, expression=flag)
        rows = exp.select(*values).from_(self.source()).subquery("cells")
        voters = exp.select(exp.Star(), exp.alias_(number, "values_left")).from_(rows).subquery("voters")
        weight = case(
            [
                (exp.column("values_left").eq(exp.convert(number)), exp.convert(units))
                for number, units in enumerate(question.weights.tolist())
                if number
            ],
            exp.convert(0),
        )
        tables = {
            name: engine.keep(self._ranked(voters, exp.column(alias), weight, kinds[name]))
            for name, alias in names.items()
        }
        return EngineVotes(engine, tables, kinds)

    def _ranked(self, voters: exp.Expr, value: exp.Expr, weight: exp.Expr, kind: type) -> exp.Select:
        """Return the query of the votes for each value of a column, and of the rank of the value, from 0."""
        units = exp.cast(exp.Sum(this=weight), "bigint")
        counted = exp.select(exp.alias_(value, "value"), exp.alias_(units, "units")).from_(voters.copy())
        counted = counted.where(value.copy().is_(exp.null()).not_()).group_by(value.copy())
        key = self.dialect.text(exp.column("value")) if kind is str else exp.column("value")
        order = exp.Order(expressions=[exp.Ordered(this=key, nulls_first=False)])
        rank = exp.Sub(this=exp.Window(this=exp.RowNumber(), order=order), expression=exp.convert(1))
        ranked = exp.select(exp.alias_(exp.cast(exp.paren(rank), "bigint"), "cell"), "units", "value")
        return ranked.from_(counted.subquery("counted"))

    def _by_value(self, name: str, cells: RowCells) -> exp.Expr:
        """Return the cell of a value by thresholds in the type of its column; NULL if it is in none."""
        cell, encoder = self.cell(name), cells.encoders[name]
        if cell.scale is None:
            raise refused(name, "its bounds are to be found, and its cells are no numbers, dates or times")
        scale = self.dialect.scale(cell.scale)

        def cell_of(values: Scale, numbers: Ints) -> Ints:
            cells_read = encoder.read(values.cells(numbers))
            missing = np.isnan(cells_read)
            return np.where(missing, -1, cells.cell(np.where(missing, 0.0, cells_read)))

        breaks = breaks_of(encoder, scale) if isinstance(encoder, DatetimeEncoder) else ()
        code_of = partial(partial, cell_of)
        return _or_null(self.by_thresholds(Cell(cell.sql, scale), code_of, -1, breaks))

    def _value(self, name: str, marks: Set[str], released: Set[Any]) -> tuple[exp.Expr, type]:
        """Return the value for which a row votes, NULL if there is none, and its type in Python."""
        cell, sizes, excluded = self.cell(name), list[exp.Expr](), list[exp.Expr]()
        value: exp.Expr = cell.sql
        kind: type = str
        if pa.types.is_string(self.types.field(name).type):
            if not self.dialect.orders_by_code_point:
                raise refused(name, "its values are to be found, and text is ordered otherwise there")
            excluded = [self.dialect.text_literal(text) for text in sorted({*marks, *released})]
        elif isinstance(cell.scale, Whole):
            excluded = [exp.convert(number) for number in sorted({*released, *_written_as(int, marks)})]
            kind = int
            if self.dialect.mixes_types:
                sizes.append(exp.not_(is_real(value)))
            if not cell.scale.counts:
                sizes.append(exp.LT(this=value.copy(), expression=exp.convert(LARGEST_NUMBER)))
            elif cell.scale.ends[0] <= -LARGEST_NUMBER:
                sizes.append(exp.GT(this=value.copy(), expression=exp.convert(-LARGEST_NUMBER)))
        elif isinstance(cell.scale, Real):
            excluded = [literal(number) for number in sorted({*released, *_written_as(float, marks)})]
            number, zero = double(finite(cell)), literal(0.0)
            value = case([(number.eq(zero), zero.copy())], number.copy())  # -0.0 is 0.0
            kind = float
            sizes.append(exp.LT(this=exp.Abs(this=number.copy()), expression=literal(float(LARGEST_NUMBER))))
        else:
            raise refused(name, "its values are to be found, and its cells are neither text nor numbers")
        if excluded:
            sizes.append(exp.not_(exp.In(this=exp.paren(value.copy()), expressions=excluded)))
        return case([(exp.and_(*sizes), value.copy())], exp.null()) if sizes else value, kind


@dataclass(frozen=True, eq=False)
class EngineVotes:
    """The votes that an engine has added up; see `privsyn.private.find_values.Ballot`. Private.

    Parameters
    ----------
    engine : Engine
    tables : mapping of a column to the temporary table of its values, with their ranks and votes
    kinds : mapping of a column to the type of its values
    """

    engine: Engine
    tables: Mapping[str, exp.Table]
    kinds: Mapping[str, type]

    def units(self, column: str) -> Ints:
        """Return the votes for each value of a column, in the order of the values."""
        return self.engine.ranked(self.tables[column])

    def values_at(self, column: str, indices: Ints) -> Sequence[Any]:
        """Return the values of some ranks, whose noisy votes passed the threshold."""
        return list(map(self.kinds[column], self.engine.values_at(self.tables[column], indices)))


def tallied(engine: Engine, new_search: Callable[[], Search], questions: Sequence[Any]) -> list[Any]:
    """Return what is counted of all rows, for each question: a `Tally`, or one with `open_values`."""
    tallies = [question for question in questions if isinstance(question, Tally)]
    counts = _counts(engine, new_search, [cells for tally in tallies for cells in tally.cells.values()])
    by_tally = iter([{name: next(counts) for name in tally.cells} for tally in tallies])
    return [
        next(by_tally) if isinstance(question, Tally) else new_search().votes(engine, question.open_values)
        for question in questions
    ]


def _counts(engine: Engine, new_search: Callable[[], Search], cells: Sequence[RowCells]) -> Iterator[Ints]:
    """Yield the counts of the rows in some cells, each in a scan of its own: it computes no other columns."""
    for count in cells:
        search = new_search()
        rows = search.group(count)
        written = search.cells(count)
        yield from engine.count(search.source(), [written], rows)


def _or_null(code: exp.Expr) -> exp.Expr:
    """Return a code, NULL in place of -1."""
    return exp.Nullif(this=code, expression=exp.convert(-1))


def _written_as(kind: type, texts: Set[str]) -> set[Any]:
    """Return the finite numbers of a type that are written as one of some texts.

    >>> _written_as(float, {"-9.0", "-9", "?", "nan"})
    {-9.0}
    """
    numbers = set()
    for text in texts:
        try:
            number = kind(text)
        except ValueError:
            continue
        if str(number) == text and np.isfinite(number):
            numbers.add(number)
    return numbers
