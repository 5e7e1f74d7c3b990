"""The codes of a table's columns in SQL: the same as those that the codec gives to the same cells in memory.

Every code is one of our own encoders', called on values of the column's type. SQL has comparisons with
literals, and whole numbers of days or seconds. What cannot be written so is refused by the column's name.

Privacy: the code of a cell depends on the cells of its own row and on public facts, as in `Codec`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.errors import InputError
from privsyn.marginals.domain import Integers, Ints
from privsyn.table.codec.codec import Codec
from privsyn.table.codec.gaps import Gap
from privsyn.table.codec.parts import DayOfWeek, TimeOf
from privsyn.table.encoding.dtypes import TICKS, zone
from privsyn.table.encoding.encoders import (
    STRAY,
    CategoricalEncoder,
    Encoder,
    NumericalEncoder,
    OrderedEncoder,
)
from privsyn.table.encoding.steps import DAY, SECONDS
from privsyn.table.encoding.time_encoders import DatetimeEncoder, TimeEncoder
from privsyn.table.engine.arithmetic import Traced, literal
from privsyn.table.engine.dialects import Dialect
from privsyn.table.engine.expressions import Cell, case, element, tree
from privsyn.table.engine.scales import (
    DAY_AFTER,
    DAY_BEFORE,
    DOUBLES,
    ROUNDED,
    Clock,
    Days,
    Decimals,
    Moments,
    Real,
    Scale,
    Whole,
    scale_of,
)
from privsyn.table.engine.sqlglot_later import exp
from privsyn.table.engine.steps import CodeOf, steps_of
from privsyn.table.io.arrow import frame_of

HELPER = re.compile(r"privsyn_(\d+)_\d+")
"""The column of a helper, with its level."""

EXACT_DIGITS = 15
"""Decimals of up to 15 digits are whole numbers below 2^53 times a power of ten. Arrow computes them so."""


UTC = (None, "UTC", "Etc/UTC")
"""Zones in which a time is written as it is stored."""

DIRECTLY = " (columns that `important` names are counted themselves)"


@dataclass(eq=False)
class Columns:
    """The columns of a table in an engine, as SQL compares and computes with them.

    Parameters
    ----------
    relation : sqlglot expression
        A subquery with a name: the table.
    types : pyarrow.Schema
        Of its columns.
    dialect : Dialect
    """

    relation: exp.Expr
    types: pa.Schema
    dialect: Dialect
    _helpers: list[dict[str, exp.Expr]] = field(init=False, default_factory=list)

    def source(self) -> exp.Expr:
        """Return the table with the columns that helpers compute."""
        source = self.relation.copy()
        for level, helpers in enumerate(self._helpers):
            if helpers:
                added = (exp.alias_(sql, name, quoted=True) for name, sql in helpers.items())
                query = self.dialect.apart(exp.select(exp.Star(), *added).from_(source))
                source = query.subquery(f"level_{level}")
        return source

    def helper(self, level: int, sql: exp.Expr) -> exp.Expr:
        """Return a column that a subquery computes from those of lower levels, for many places."""
        while len(self._helpers) <= level:
            self._helpers.append({})
        name = f"privsyn_{level}_{len(self._helpers[level])}"
        name = next((its for its, same in self._helpers[level].items() if same == sql), name)
        self._helpers[level][name] = sql
        return exp.column(name, quoted=True)

    def passed(self, cell: exp.Expr, thresholds: Sequence[exp.Expr]) -> exp.Expr:
        """Return how many of some ascending thresholds are not above a cell, by binary search.

        Subquery by subquery, a list has the thresholds in the middle of the intervals that are left.
        """
        rounds = len(thresholds).bit_length()
        padded = [*thresholds, *(exp.null() for _ in range(2**rounds - 1 - len(thresholds)))]
        passed: exp.Expr = exp.convert(0)
        for level in range(rounds):
            width = 2 ** (rounds - level)
            threshold = element(padded[width // 2 - 1 :: width], passed)
            is_passed = exp.GTE(this=cell.copy(), expression=threshold)
            below = exp.Mul(this=exp.convert(2), expression=passed)
            passed = self.helper(
                level, exp.Add(this=below, expression=case([(is_passed, exp.convert(1))], exp.convert(0)))
            )
        return passed

    def cell(self, column: str) -> Cell:
        """Return a column as it is compared.

        A cell of SQLite has a type of its own. In a column of integers, text and blobs are larger than all
        numbers; they and infinite numbers are missing here. Other numbers stay here what they are.
        """
        kind, sql = self.types.field(column).type, exp.column(column, quoted=True)
        if pa.types.is_string(kind):
            return Cell(self.dialect.text(sql))
        if pa.types.is_boolean(kind):
            return Cell(sql)
        scale = scale_of(kind)
        if scale is None or not self.dialect.takes(kind):
            raise refused(column, f"its type there ({kind}) is none of numbers, text, dates and times")
        if self.dialect.mixes_types and isinstance(scale, Whole):
            low, high = DOUBLES.bounds
            is_number = exp.Between(this=sql.copy(), low=low, high=high)
            return Cell(self.helper(0, case([(is_number, sql)], exp.null())), scale)
        return Cell(sql, scale)

    def by_thresholds(
        self, cell: Cell, code_of: Callable[[Scale], CodeOf], missing: int, breaks: Iterable[int] = ()
    ) -> exp.Expr:
        """Return the code of a cell by thresholds. Doubles in SQLite's columns of integers are rounded.

        Parameters
        ----------
        cell : Cell
            Of numbers, dates or times.
        code_of : callable
            Returns the code of each value of a scale. It is `missing` where there is none.
        missing : int
        breaks : iterable of int, optional
            Values at which the code may go down.
        """
        scale = cast(Scale, cell.scale)
        passed = self.passed if self.dialect.has_lists else None
        coded = cell.steps(steps_of(code_of(scale), scale.ends, breaks), missing, passed)
        if not self.dialect.mixes_types or not isinstance(scale, Whole):
            return coded
        reals = Cell(cell.sql, ROUNDED).steps(steps_of(code_of(ROUNDED), ROUNDED.ends), missing)
        return case([(is_real(cell.sql), reals)], coded)

    def day(self, column: str) -> exp.Expr:
        """Return the day of a date or time, in days since 1970."""
        return self.helper(0, self.dialect.day(self._local(column)))

    def second(self, column: str) -> exp.Expr:
        """Return the whole seconds of a time since midnight."""
        return self.helper(0, self.dialect.second(self._local(column)))

    def number(self, name: str, encoder: OrderedEncoder) -> Traced:
        """Return the number that an encoder reads in a column: a double, NULL where there is none."""
        cell = self.cell(name)
        scale = cell.scale
        if isinstance(encoder, NumericalEncoder) and encoder.form is None:
            if self.dialect.mixes_types and isinstance(scale, Whole):
                rounded: Any = np.rint(cast(Any, self.traced(cell.sql)))
                cell = replace(cell, sql=case([(is_real(cell.sql), rounded.sql)], cell.sql))
            if isinstance(scale, Whole | Real):
                return self.traced(self._kept(double(finite(cell))))
            if isinstance(scale, Decimals) and scale.kind.precision <= EXACT_DIGITS:
                return self.traced(self._kept(_double_of_decimals(cell, scale)))
        if isinstance(encoder, DatetimeEncoder) and isinstance(scale, Days | Moments):
            if getattr(scale.kind, "tz", None) not in UTC:
                raise refused(name, "SQL computes with its times, and its time zone is not UTC")
            return self._time(name, encoder, has_times=isinstance(scale, Moments))
        if isinstance(encoder, TimeEncoder) and isinstance(scale, Clock):
            steps: Any = self.traced(double(self.second(name)))
            return self.traced(self._kept(np.floor(steps / float(encoder.step)).sql))
        raise refused(name, "SQL computes with its numbers, and reads its cells with other digits")

    def _time(self, name: str, encoder: DatetimeEncoder, *, has_times: bool) -> Traced:
        """Return days or seconds since 1970, within two days of the bounds; see `DatetimeEncoder.read`."""
        seconds: exp.Expr = exp.Mul(this=exp.cast(self.day(name), "bigint"), expression=exp.convert(DAY))
        if has_times:
            seconds = exp.Add(this=seconds, expression=self.second(name))
        time = self._kept(seconds)
        ends = exp.convert(DAY_BEFORE * DAY), exp.convert(DAY_AFTER * DAY)
        inside: exp.Expr = exp.Between(this=time.copy(), low=ends[0], high=ends[1])
        if marks := _marks(encoder):
            is_mark = exp.In(this=time.copy(), expressions=list(map(exp.convert, marks)))
            inside = exp.and_(inside, exp.not_(is_mark))
        size = SECONDS[encoder.unit]
        low, high = int(encoder.grid.low) * size - 2 * DAY, int(encoder.grid.high) * size + 2 * DAY
        number: Any = self.traced(double(case([(inside, time)], exp.null())))
        number = np.clip(number, float(low), float(high))
        return self.traced(self._kept((number if size == 1 else np.floor(number / float(size))).sql))

    def traced(self, sql: exp.Expr) -> Traced:
        """Return a column with which NumPy's functions compute."""
        return Traced(sql, self.dialect.name, self._kept)

    def _kept(self, sql: exp.Expr) -> exp.Expr:
        """Return a column in place of an expression, one level above those of its columns."""
        levels = [HELPER.fullmatch(column.name) for column in sql.find_all(exp.Column)]
        level = 1 + max((int(match[1]) for match in levels if match), default=0)
        return self.helper(level, self.written(sql))

    def written(self, sql: exp.Expr) -> exp.Expr:
        """Return an expression as text, which a query copies faster than thousands of comparisons."""
        return exp.Var(this=self.dialect.write(sql))

    def _local(self, column: str) -> exp.Expr:
        """Return a date or time without a zone."""
        sql, kind = self.cell(column).sql, self.types.field(column).type
        if getattr(kind, "tz", None) is None:
            return sql
        return exp.AtTimeZone(this=sql, zone=exp.Literal.string("UTC"))


@dataclass(eq=False)
class Coding(Columns):
    """The codes of the attributes of a codec, as a query of a table in an engine.

    Parameters
    ----------
    relation : sqlglot expression
        A subquery with a name: the table.
    types : pyarrow.Schema
        Of its columns.
    dialect : Dialect
    codec : Codec

    Raises
    ------
    InputError
        If a column cannot be coded in SQL exactly. No row is read.
    """

    codec: Codec

    def query(self, names: Mapping[str, str] | None = None) -> exp.Select:
        """Return the query of the codes of all rows.

        Parameters
        ----------
        names : mapping of an attribute to the name of its column, optional
            Default: those of `names_of`.
        """
        names = names_of(self.codec) if names is None else names
        sizes = self.codec.domain.size_of
        codes = []
        for attribute, name in names.items():
            code = exp.cast(self.code(attribute), self.dialect.code_type(sizes[attribute]))
            codes.append(exp.alias_(code, name, quoted=True))
        return exp.select(*codes).from_(self.source())

    def check(self) -> None:
        """Refuse a column that cannot be coded in SQL exactly, before any query."""
        for attribute in self.codec.domain.names:
            self.code(attribute)

    def code(self, attribute: str) -> exp.Expr:
        """Return the code of an attribute: a whole number, never NULL."""
        column = self.codec.column_of(attribute)
        encoder = self.codec.encoder_of[attribute]
        missing = encoder.size if attribute in self.codec.nullable else 0
        if gap := self.codec.gaps.get(column):
            return self._gap(gap, missing)
        if not encoder.size:
            return exp.convert(missing)
        if isinstance(encoder, TimeOf | DayOfWeek):
            return self._part(column, encoder, missing)
        if isinstance(encoder, OrderedEncoder):
            return self._steps(column, encoder, missing)
        return self._listed(column, cast(CategoricalEncoder, encoder), missing)

    def _codes_of(self, encoder: Encoder, missing: int, scale: Scale) -> CodeOf:
        def codes(numbers: Ints) -> Ints:
            coded = encoder.encode(scale.cells(numbers))
            return np.where(coded == STRAY, missing, coded).astype(np.int64)

        return codes

    def _steps(self, column: str, encoder: OrderedEncoder, missing: int) -> exp.Expr:
        """Return the code of a column of numbers or times by thresholds."""
        cell = self.cell(column)
        if cell.scale is None and pa.types.is_boolean(self.types.field(column).type):
            cells = frame_of(pa.table({"cell": pa.array([False, True])}), "the table")["cell"]
            codes = np.where((coded := encoder.encode(cells)) == STRAY, missing, coded).tolist()
            pairs = [(_truth_literal(value), code) for value, code in zip([False, True], codes, strict=True)]
            return cell.listed(pairs, missing)
        if cell.scale is None:
            raise refused(column, "its cells are text there")
        is_time = isinstance(encoder, DatetimeEncoder) == isinstance(cell.scale, Days | Moments)
        if not is_time:
            raise refused(column, "dates are written as numbers there")
        scale, breaks = cell.scale, tuple[int, ...]()
        if isinstance(encoder, DatetimeEncoder):
            scale = self.dialect.scale(scale)
            breaks = breaks_of(encoder, scale)
        if isinstance(scale, Decimals) and not scale.holds(encoder.grid.low, encoder.grid.high):
            raise refused(column, "its decimals have more than 18 digits between its bounds")
        code_of = partial(self._codes_of, encoder, missing)
        return self.by_thresholds(replace(cell, scale=scale), code_of, missing, breaks)

    def _listed(self, column: str, encoder: CategoricalEncoder, missing: int) -> exp.Expr:
        """Return the code of a column of listed values."""
        cell, kind = self.cell(column), self.types.field(column).type
        codes = encoder.encode(encoder.pool)
        with_codes = list(zip(pa.Array.from_pandas(encoder.pool).cast(kind), codes.tolist(), strict=True))
        if cell.scale is None:
            is_text = pa.types.is_string(kind)
            key = self.dialect.order if is_text else bool
            literal = self.dialect.text_literal if is_text else _truth_literal
            pairs = [(value.as_py(), code) for value, code in with_codes]
            pairs.sort(key=lambda pair: key(pair[0]))
            return cell.listed([(literal(value), code) for value, code in pairs], missing, encoder.pooled)
        scale = cell.scale
        numbered = sorted((scale.number(value), code) for value, code in with_codes)
        return cell.listed(
            [(scale.literal(number), code) for number, code in numbered], missing, encoder.pooled
        )

    def _part(self, column: str, encoder: TimeOf | DayOfWeek, missing: int) -> exp.Expr:
        """Return the code of the time of day or of the day of the week, one function for all days."""
        cell, times = self.cell(column), encoder.times
        if not isinstance(cell.scale, Moments):
            raise refused(column, "its cells are no times there")
        if str(zone(times.dtype) or "UTC") not in UTC:
            raise refused(column, "its time zone is not UTC: cast it to a time without a zone")
        scale = cast(Moments, self.dialect.scale(cell.scale))
        tick = TICKS[scale.kind.unit]
        code_of = self._codes_of(encoder, missing, scale)
        inside = [int(times.grid.low) * tick, int(times.grid.high) * tick]
        starts = sorted({scale.ends[0], *breaks_of(times, scale), *inside})
        days = _whole_days(times)
        if not days:
            raise refused(column, "its bounds hold no whole day")
        seconds = np.arange(DAY)
        by_second = [code_of((day * DAY + seconds) * tick) for day in days]
        if isinstance(encoder, TimeOf):
            if any(not np.array_equal(by_second[0], codes) for codes in by_second):
                raise refused(column, "its times of day are rounded differently on different days")
            periodic = _by_number(self.second(column), by_second[0])
        else:
            weekdays = [(codes - (day + 3)) % 7 for day, codes in zip(days, by_second, strict=True)]
            if any(not np.array_equal(weekdays[0], moved) for moved in weekdays):
                raise refused(column, "its days are rounded differently on different days")
            moved = _by_number(self.second(column), weekdays[0]) if weekdays[0].any() else exp.convert(0)
            days_since = exp.Add(
                this=self.day(column), expression=exp.Add(this=moved, expression=exp.convert(3))
            )
            periodic = remainder(days_since, 7)
        results = []
        for start in starts:
            number = times.read(scale.cells(np.array([start])))[0]  # NaN: this time marks a missing cell
            is_inside = inside[0] <= start < inside[1] and not np.isnan(number)
            code = int(code_of(np.array([start]))[0])
            results.append(periodic.copy() if is_inside else exp.convert(code))
        coded = tree(cell.sql, [scale.literal(start) for start in starts[1:]], results)
        return case([(cell.sql.copy().is_(exp.null()).not_(), coded)], exp.convert(missing))

    def _gap(self, gap: Gap, missing: int) -> exp.Expr:
        """Return the code of a gap: the steps between numbers, by the arithmetic of `Gap.gap_of`."""
        gap_of: Callable[[Mapping[str, Any]], Any] = gap.gap_of
        columns = *gap.side.columns, gap.column
        steps = self._kept(gap_of({column: self._bounded(column) for column in columns}).sql)

        def code_of(positions: Ints) -> Ints:
            return gap.encoder.grid.encode(DOUBLES.array(positions).to_numpy())

        return Cell(steps, DOUBLES).steps(steps_of(code_of, (0, DOUBLES.ends[1])), missing)

    def _bounded(self, column: str) -> Traced:
        """Return the number of a cell within its bounds, NULL if it is missing; see `Codec._read`."""
        if column in self.codec.schema.computed and column not in self.codec.gaps:
            raise refused(column, f"it is computed, and a distance from it is counted{DIRECTLY}")
        encoder = self.codec.ordered(column)
        number: Any = self.number(column, encoder)
        if self.codec.attributes_of(column)[0] not in self.codec.nullable:
            number = np.where(np.isnan(number), encoder.grid.low, number)
        return self.traced(self._kept(np.clip(number, encoder.grid.low, encoder.grid.high).sql))


def is_real(sql: exp.Expr) -> exp.Expr:
    """Return whether a number of SQLite is a double."""
    return exp.Anonymous(this="TYPEOF", expressions=[sql.copy()]).eq(exp.Literal.string("real"))


def remainder(number: exp.Expr, by: int) -> exp.Expr:
    """Return the remainder of a whole number, from 0 up: in SQL that of a number below 0 is below 0."""
    first = exp.Mod(this=exp.paren(number), expression=exp.convert(by))
    return exp.Mod(this=exp.paren(first + by), expression=exp.convert(by))


def names_of(codec: Codec) -> dict[str, str]:
    """Return the column of each attribute in the table of codes.

    Names of columns of a user may differ in case alone, which some engines do not tell apart.
    """
    return {attribute: f"code_{axis}" for axis, attribute in enumerate(codec.domain.names)}


def grouped(name: str, groups: Integers, dialect: Dialect) -> exp.Expr:
    """Return a column of codes in joined codes.

    >>> grouped("code_0", np.array([0, 0, 1, 1, 0]), Dialect.of("postgres")).sql()
    'CASE WHEN code_0 < 2 THEN 0 WHEN code_0 < 4 THEN 1 ELSE 0 END'
    """
    column = exp.column(name)
    if np.array_equal(groups, np.arange(len(groups))):
        return column
    if dialect.has_lists:
        return element(list(map(exp.convert, groups.tolist())), column)
    return _by_number(column, groups)


def refused(column: str, reason: str) -> InputError:
    """Return the error about a column whose codes SQL cannot compute exactly."""
    return InputError(
        f"column {column!r}: cannot be coded in the database, as {reason}: leave it out of the schema with"
        " kind: text, cast it in a view, or give the table as a file"
    )


def breaks_of(encoder: DatetimeEncoder, scale: Scale) -> tuple[int, ...]:
    """Return where codes of times may go down: around the calendar, and at dates that stand for none."""
    if isinstance(scale, Days):
        return DAY_BEFORE, DAY_AFTER + 1, *(at // DAY + step for at in _marks(encoder) for step in (0, 1))
    tick = TICKS[cast(Moments, scale).kind.unit]
    marks = [at + step for at in _marks(encoder) for step in (0, 1)]
    seconds = [DAY_BEFORE * DAY, DAY_AFTER * DAY + 1, *marks]
    low, high = scale.ends
    return tuple(
        second * tick for second in (*seconds, *_changes_of_zone(encoder)) if low < second * tick <= high
    )


def _marks(encoder: DatetimeEncoder) -> list[int]:
    """Return the times that stand for none, in seconds since 1970."""
    return np.array(encoder.marks, "datetime64[s]").astype(np.int64).tolist()


def _changes_of_zone(encoder: DatetimeEncoder) -> list[int]:
    """Return the seconds since 1970 at which the local time of a column jumps, near its bounds."""
    if zone(encoder.dtype) is None:
        return []
    unit = 1 if encoder.unit == "s" else DAY
    low, high = (
        int(end) * unit + days * DAY for end, days in ((encoder.grid.low, -4), (encoder.grid.high, 4))
    )
    hours = np.arange(max(low, DAY_BEFORE * DAY), min(high, DAY_AFTER * DAY), 900)
    times = pd.Series(hours.astype("datetime64[s]")).dt.tz_localize("UTC").dt.tz_convert(zone(encoder.dtype))
    local = times.dt.tz_localize(None).to_numpy().astype("datetime64[s]").astype(np.int64)
    jumps = np.flatnonzero(np.diff(local - hours)) + 1
    return hours[jumps].tolist()


def _whole_days(encoder: DatetimeEncoder) -> list[int]:
    """Return some days that lie between the bounds as a whole, and in which no time stands for none."""
    low, high = -(-int(encoder.grid.low) // DAY), int(encoder.grid.high) // DAY - 1
    marked = {mark // DAY for mark in _marks(encoder)}
    days = [day for day in (low, low + 1, (low + high) // 2, high - 1, high) if low <= day <= high]
    return [day for day in dict.fromkeys(days) if day not in marked]


def _by_number(number: exp.Expr, codes: Integers) -> exp.Expr:
    """Return the code at the place that a number says, by thresholds where the codes change."""
    changes = (np.flatnonzero(np.diff(codes)) + 1).tolist()
    results = [exp.convert(int(codes[at])) for at in (0, *changes)]
    return tree(number, list(map(exp.convert, changes)), results)


def _truth_literal(value: bool) -> exp.Expr:
    return exp.true() if value else exp.false()


def finite(cell: Cell) -> exp.Expr:
    """Return a number, NULL if it is not finite."""
    if not isinstance(cell.scale, Real):
        return cell.sql.copy()
    low, high = map(cell.scale.literal, cell.scale.ends)
    return case([(exp.Between(this=cell.sql.copy(), low=low, high=high), cell.sql.copy())], exp.null())


def double(sql: exp.Expr) -> exp.Expr:
    """Return a number as a double."""
    return exp.cast(sql.copy(), "double")


def _double_of_decimals(cell: Cell, scale: Decimals) -> exp.Expr:
    """Return a decimal as a double: its digits times a power of ten."""
    digits, power = f"decimal({scale.kind.precision + 1}, 0)", 10**scale.kind.scale
    units = exp.cast(exp.Mul(this=cell.sql.copy(), expression=exp.convert(power)), digits)
    return exp.Mul(
        this=double(exp.cast(units, "bigint")), expression=literal(float(f"1e-{scale.kind.scale}"))
    )
