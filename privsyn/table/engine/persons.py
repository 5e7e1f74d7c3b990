"""Whose rows are whose, and in which order, as SQL: the windows over the rows of each person.

An order of rows is a function of the rows of one person and of the key of the run. No random function of the
engine is called, no place of a row in a table is read, and each order is total. So if a person leaves, the
same rows of everybody else are counted; see docs/proofs.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from typing import Literal

from sqlglot import exp

from privsyn.table.io.identifiers import ABSENT, SPACES, UNDECODED

PERSON, ORDER, ROWS = "privsyn_person", "privsyn_order", "privsyn_rows"
"""Columns: the hash of the person, how many rows of the person stand before the row, and how many it has."""

_CONTENT, _TIMES = "privsyn_content", "privsyn_times"  # the hash of all cells; which of equal rows a row is

Family = Literal["text", "integer", "double", "single"]
"""How identifiers are written; see `privsyn.table.io.identifiers.identifiers`."""

DIGITS = {"double": 53, "single": 24}  # of a whole number in binary

LETTERS = 32  # of a hash in hexadecimal: 128 bits, as many as a fingerprint of `identifiers` has

SQLITE_HASH = "privsyn_sha256"
"""SQLite has no SHA-256. This function is registered there, and runs in this process, beside the engine."""


def sqlite_sha256(text: bytes | None) -> str | None:
    r"""Return the SHA-256 of a text in hexadecimal, None if its bytes are no text.

    >>> sqlite_sha256(b"Ann")[:8], sqlite_sha256(b"\xff")
    ('17239b6e', None)
    """
    try:
        return None if text is None else sha256(text.decode("utf-8").encode("utf-8")).hexdigest()
    except UnicodeDecodeError:
        return None


def column(name: str) -> exp.Column:
    """Return a column of a query, quoted."""
    return exp.column(name, quoted=True)


@dataclass(frozen=True)
class Identity:
    """The columns that identify a person, and the key by which they are hashed.

    Parameters
    ----------
    columns : tuple of (str, family)
        Each with how its cells are written.
    key : str
        Letters and digits, drawn for one run. It is neither stored nor logged.
    dialect : str
        As sqlglot calls it.
    """

    columns: tuple[tuple[str, Family], ...]
    key: str
    dialect: str

    @property
    def person(self) -> exp.Expr:
        """The keyed hash of the identifiers of a row, NULL where it has none.

        Two rows share it if their identifiers are written alike; else with a probability of 2^-128. The cells
        of the row alone decide it.
        """
        return reduce(_joined, [self._part(name, family) for name, family in self.columns])

    def rows(self, relation: exp.Expr, names: Sequence[str]) -> exp.Subquery:
        """Return some columns and the person of all rows that belong to somebody."""
        person = exp.alias_(self.person, PERSON, quoted=True)
        persons = exp.select(*map(column, names), person).from_(relation.copy())
        return _subquery(exp.select("*").from_(_subquery(persons)).where(_present(column(PERSON))))

    def in_order(self, relation: exp.Expr, names: Sequence[str]) -> exp.Select:
        """Return some columns, and of each row the person, the order and the number of rows of the person.

        The rows of a person are sorted by a keyed hash of their cells and of which of equal rows each is.
        Rows of one hash are sorted by their cells, so that no two rows that differ can change places. Which
        of equal rows comes first makes no difference.

        Parameters
        ----------
        relation : sqlglot expression
            A table, or a subquery with a name.
        names : sequence of str
            The columns whose cells decide the order. All that is counted of a row must follow from them.
        """
        person, content, times = column(PERSON), column(_CONTENT), column(_TIMES)
        written: exp.Expr = person
        for name in names:
            cell = _joined(_text("|"), exp.cast(column(name), "text"))
            written = _joined(written, exp.func("COALESCE", cell, _text("-")))
        contents = exp.select("*", exp.alias_(self._hash(written), _CONTENT, quoted=True))
        contents = contents.from_(self.rows(relation, names))
        equals = _row_number([person, content], [*map(column, names)] or [content])
        numbered = exp.select("*", exp.alias_(equals, _TIMES, quoted=True)).from_(_subquery(contents))
        mixed = _joined(_joined(content, _text("|")), exp.cast(times, "text"))
        order = exp.Sub(
            this=_row_number([person], [self._hash(mixed), content, times]), expression=exp.convert(1)
        )
        rows = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[person])
        return exp.select(
            *map(column, names),
            person,
            exp.alias_(order, ORDER, quoted=True),
            exp.alias_(rows, ROWS, quoted=True),
        ).from_(_subquery(numbered))

    def _part(self, name: str, family: Family) -> exp.Expr:
        """Return the keyed hash of one column of identifiers."""
        keyed = _joined(_text(self.key), self._identifier(column(name), family))
        return exp.Substring(this=self._hash(keyed), start=exp.convert(1), length=exp.convert(LETTERS))

    def _hash(self, text: exp.Expr) -> exp.Expr:
        """Return the SHA-256 of a text in UTF-8, in hexadecimal."""
        match self.dialect:
            case "sqlite":
                return exp.Anonymous(this=SQLITE_HASH, expressions=[exp.cast(text, "blob")])
            case "postgres":  # of which sqlglot writes the digits
                text = exp.Anonymous(this="CONVERT_TO", expressions=[text, _text("UTF8")])
            case "trino":
                text = exp.Anonymous(this="TO_UTF8", expressions=[text])
        digest = exp.SHA2(this=text, length=exp.convert(256))
        if self.dialect == "bigquery":
            return exp.Anonymous(this="TO_HEX", expressions=[digest])
        if self.dialect == "tsql":
            return exp.Anonymous(
                this="CONVERT", expressions=[exp.Var(this="VARCHAR(64)"), digest, exp.convert(2)]
            )
        return digest

    def _identifier(self, cell: exp.Expr, family: Family) -> exp.Expr:
        """Return an identifier as text, NULL where the cell is none; see `identifiers`."""
        text = exp.cast(cell, "text")
        if family == "integer":
            return self._typed(cell, ["integer"], text)
        if family != "text":  # below this number, no two whole numbers are the same double or float
            below = exp.LT(this=exp.Abs(this=cell), expression=exp.convert(2 ** DIGITS[family]))
            has_no_fraction = exp.EQ(this=exp.Floor(this=cell), expression=cell)
            return _if(exp.and_(below, has_no_fraction), exp.cast(exp.cast(cell, "bigint"), "text"))
        trimmed = exp.Trim(this=text, expression=_text(SPACES), position="BOTH")
        absent = exp.In(this=trimmed, expressions=[_text(mark) for mark in sorted(ABSENT)])
        undecoded = exp.StrPosition(this=text, substr=_text(UNDECODED))
        is_identifier = exp.and_(exp.not_(absent), exp.EQ(this=undecoded, expression=exp.convert(0)))
        return self._typed(cell, ["text", "integer"], _if(is_identifier, text))

    def _typed(self, cell: exp.Expr, types: Sequence[str], value: exp.Expr) -> exp.Expr:
        """Return a value where a cell is of one of some types: in SQLite each cell has a type of its own."""
        if self.dialect != "sqlite":
            return value
        kind = exp.Anonymous(this="TYPEOF", expressions=[cell])
        return _if(exp.In(this=kind, expressions=[*map(_text, types)]), value)


def first_rows(rows: exp.Expr, bound: int) -> exp.Subquery:
    """Return the first `bound` rows of each person."""
    within = exp.LT(this=column(ORDER), expression=exp.convert(bound))
    return _subquery(exp.select("*").from_(rows.copy()).where(within))


def within_squares(rows: exp.Expr, cell: exp.Expr, norm: int) -> exp.Subquery:
    """Return the cell of each row within squares: of each person, their sum is at most ``norm**2``.

    A row that is the r-th of its person in a cell lifts the sum of the squares by r^2 - (r - 1)^2 = 2 r - 1,
    which is above 0. So the running sum never falls, and the rows before the first that would exceed the
    bound are those with a running sum of at most ``norm**2``. Up to `norm` rows of a person never exceed
    it.

    Parameters
    ----------
    rows : sqlglot expression
        With the columns `PERSON`, `ORDER` and `ROWS`.
    cell : sqlglot expression
        Of the groups that are counted.
    norm : int
    """
    person, order, name = column(PERSON), column(ORDER), column("cell")
    named = exp.alias_(cell.copy(), "cell", quoted=True)
    few = exp.select(named).from_(rows.copy())
    few = few.where(exp.LTE(this=column(ROWS), expression=exp.convert(norm)))
    many = exp.select(named.copy(), person, order).from_(rows.copy())
    many = many.where(
        exp.GT(this=column(ROWS), expression=exp.convert(norm)),
        exp.LT(this=order, expression=exp.convert(norm**2)),  # each row lifts the sum by 1 at least
    )
    times = exp.alias_(_row_number([person, name], [order]), _TIMES, quoted=True)
    numbered = exp.select(name, person, order, times).from_(_subquery(many))
    lift = exp.Sub(this=exp.Mul(this=exp.convert(2), expression=column(_TIMES)), expression=exp.convert(1))
    running = exp.Window(
        this=exp.Sum(this=lift),
        partition_by=[person],
        order=_sorted([order]),
        spec=exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"),
    )
    squares = exp.select(name, exp.alias_(running, "squares", quoted=True)).from_(_subquery(numbered))
    within = exp.LTE(this=column("squares"), expression=exp.convert(norm**2))
    counted = exp.select(name).from_(_subquery(squares)).where(within)
    return _subquery(exp.union(few, counted, distinct=False))


def rows_of_each(persons: exp.Expr) -> exp.Subquery:
    """Return the number of rows of each person, as `ROWS`. It stays in the engine."""
    rows = exp.alias_(exp.Count(this=exp.Star()), ROWS, quoted=True)
    return _subquery(exp.select(rows).from_(persons.copy()).group_by(column(PERSON)))


def class_of(begins: Sequence[int]) -> exp.Expr:
    """Return the class of `ROWS`, of which `begins` has the first of each class, from 1."""
    code, rows = exp.Case(), column(ROWS)
    for number in range(len(begins) - 1, 0, -1):
        code = code.when(exp.GTE(this=rows, expression=exp.convert(begins[number])), exp.convert(number))
    return code.else_(exp.convert(0)) if len(begins) > 1 else exp.convert(0)


def _text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def _joined(first: exp.Expr, second: exp.Expr) -> exp.Expr:
    """Return two texts as one, NULL if one of them is."""
    return exp.DPipe(this=first, expression=second)


def _present(cell: exp.Expr) -> exp.Expr:
    return exp.not_(exp.Is(this=cell, expression=exp.null()))


def _if(condition: exp.Expr, value: exp.Expr) -> exp.Case:
    return exp.Case().when(condition, value)


def _row_number(partition: Sequence[exp.Expr], order: Sequence[exp.Expr]) -> exp.Window:
    return exp.Window(this=exp.RowNumber(), partition_by=[*partition], order=_sorted(order))


def _sorted(keys: Sequence[exp.Expr]) -> exp.Order:
    """Return an order for which it makes no difference where the engine puts NULL."""
    return exp.Order(expressions=[exp.Ordered(this=key) for key in keys])


def _subquery(query: exp.Query) -> exp.Subquery:
    return query.subquery("rows_of_persons")
