"""Whose rows are whose, and in which order, as SQL: the windows over the rows of each person.

An order of rows is a function of the rows of one person and of the key of the run. No random function of the
engine is called, no place of a row in a table is read, and each order is total. So if a person leaves, the
same rows of everybody else are counted; see docs/proofs.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from typing import Literal

from privsyn.table.engine.sqlglot_later import exp
from privsyn.table.io.identifiers import ABSENT, SPACES, UNDECODED

PERSON, ORDER, ROWS = "privsyn_person", "privsyn_order", "privsyn_rows"
"""Columns: the hash of the person, how many rows of the person stand before the row, and how many it has."""

PARENT, KEY = "privsyn_parent", "privsyn_key"
"""Columns of linked tables: the `ORDER` of the parent's row, and the hash of the row's own key."""

_LINK = "privsyn_link"
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

    def _part(self, name: str, family: Family) -> exp.Expr:
        """Return the keyed hash of one column of identifiers."""
        keyed = _joined(_text(self.key), self._identifier(column(name), family))
        return exp.Substring(
            this=hashed(keyed, self.dialect), start=exp.convert(1), length=exp.convert(LETTERS)
        )

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


def hashed(text: exp.Expr, dialect: str) -> exp.Expr:
    """Return the SHA-256 of a text in UTF-8, in hexadecimal."""
    match dialect:
        case "sqlite":
            return exp.Anonymous(this=SQLITE_HASH, expressions=[exp.cast(text, "blob")])
        case "postgres":  # of which sqlglot writes the digits
            text = exp.Anonymous(this="CONVERT_TO", expressions=[text, _text("UTF8")])
        case "trino":
            text = exp.Anonymous(this="TO_UTF8", expressions=[text])
    digest = exp.SHA2(this=text, length=exp.convert(256))
    if dialect == "bigquery":
        return exp.Anonymous(this="TO_HEX", expressions=[digest])
    if dialect == "tsql":
        return exp.Anonymous(
            this="CONVERT", expressions=[exp.Var(this="VARCHAR(64)"), digest, exp.convert(2)]
        )
    return digest


def in_order(persons: exp.Expr, names: Sequence[str], dialect: str) -> exp.Select:
    """Return some columns, and of each row the person, the order and the number of rows of the person.

    The rows of a person are sorted by a keyed hash of their cells and of which of equal rows each is. Rows of
    one hash are sorted by their cells, so that no two rows that differ can change places. Which of equal rows
    comes first makes no difference.

    Parameters
    ----------
    persons : sqlglot expression
        Rows with the column `PERSON`.
    names : sequence of str
        The columns whose cells decide the order. All that is counted of a row must follow from them.
    dialect : str
    """
    person, content, times = column(PERSON), column(_CONTENT), column(_TIMES)
    written: exp.Expr = person
    for name in names:
        cell = _joined(_text("|"), exp.cast(column(name), "text"))
        written = _joined(written, exp.func("COALESCE", cell, _text("-")))
    contents = exp.select("*", exp.alias_(hashed(written, dialect), _CONTENT, quoted=True))
    contents = contents.from_(persons.copy())
    equals = _row_number([person, content], [*map(column, names)] or [content])
    numbered = exp.select("*", exp.alias_(equals, _TIMES, quoted=True)).from_(_subquery(contents))
    mixed = _joined(_joined(content, _text("|")), exp.cast(times, "text"))
    order = exp.Sub(
        this=_row_number([person], [hashed(mixed, dialect), content, times]), expression=exp.convert(1)
    )
    rows = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[person])
    return exp.select(
        *map(column, names),
        person,
        exp.alias_(order, ORDER, quoted=True),
        exp.alias_(rows, ROWS, quoted=True),
    ).from_(_subquery(numbered))


def first_of_each(rows: exp.Select) -> exp.Select:
    """Return the first row of each person, which is then the only one: a row of the root of linked tables."""
    alone = exp.alias_(exp.convert(1), ROWS, quoted=True)
    names = [expression.alias_or_name for expression in rows.selects]
    columns = [alone if name == ROWS else column(name) for name in names]
    return exp.select(*columns).from_(first_rows(_subquery(rows), 1))


def with_key_of_person(rows: exp.Select) -> exp.Select:
    """Return the rows of the root of linked tables, in which the key of a row is its person."""
    return rows.select(exp.alias_(column(PERSON), KEY, quoted=True))


def below(
    relation: exp.Expr, names: Sequence[str], link: Identity, parents: exp.Expr, key: Identity | None
) -> exp.Subquery:
    """Return rows of a child table with their person, and with the place of the parent's row among its rows.

    Rows whose link leads nowhere are left out. Of two rows with one key, the first in their order is meant.

    Parameters
    ----------
    relation : sqlglot expression
        The child table.
    names : sequence of str
    link : Identity
    parents : sqlglot expression
        The rows of the parent table in their order, with the columns `PERSON`, `ORDER` and `KEY`.
    key : Identity, optional
        Of the rows themselves, if there are tables below.
    """
    keys = [] if key is None else [exp.alias_(key.person, KEY, quoted=True)]
    link_of_row = exp.alias_(link.person, _LINK, quoted=True)
    rows = exp.select(*map(column, names), *keys, link_of_row).from_(relation.copy()).subquery("child")
    times = exp.alias_(_row_number([column(KEY)], [column(PERSON), column(ORDER)]), _TIMES, quoted=True)
    numbered = exp.select(column(KEY), column(PERSON), column(ORDER), times).from_(parents.copy())
    first = exp.select(
        exp.alias_(column(KEY), _LINK, quoted=True),
        column(PERSON),
        exp.alias_(column(ORDER), PARENT, quoted=True),
    ).from_(_subquery(numbered))
    first = first.where(exp.EQ(this=column(_TIMES), expression=exp.convert(1)), _present(column(KEY)))
    carried = [exp.column(name, table="child", quoted=True) for name in names]
    carried += [exp.column(KEY, table="child", quoted=True) for _ in keys]
    above = [exp.column(name, table="parent", quoted=True) for name in (PERSON, PARENT)]
    same = exp.EQ(
        this=exp.column(_LINK, table="child", quoted=True),
        expression=exp.column(_LINK, table="parent", quoted=True),
    )
    joined = exp.select(*carried, *above).from_(rows).join(first.subquery("parent"), on=same)
    return _subquery(joined)


def with_numbers(rows: exp.Expr, children: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return rows in their order with the number of rows below each in some child tables.

    Parameters
    ----------
    rows : sqlglot expression
    children : mapping of a name to the rows of a child table
        With the columns `PERSON` and `PARENT`.
    """
    for name, child in children.items():
        number = exp.alias_(exp.Count(this=exp.Star()), name, quoted=True)
        counted = exp.select(column(PERSON), exp.alias_(column(PARENT), _LINK, quoted=True), number).from_(
            child.copy()
        )
        counted = counted.group_by(column(PERSON), column(PARENT))
        there = exp.column(name, table="numbers", quoted=True)
        total = exp.alias_(exp.func("COALESCE", there, exp.convert(0)), name, quoted=True)
        named = (
            rows.copy()
            if isinstance(rows, exp.Subquery)
            else exp.alias_(rows.copy(), "rows_of_persons", table=True)
        )
        everything = exp.Column(this=exp.Star(), table=exp.to_identifier("rows_of_persons"))
        same = same_row(ORDER, "numbers", _LINK)
        joined = exp.select(everything, total).from_(named)
        rows = _subquery(joined.join(counted.subquery("numbers"), on=same, join_type="left"))
    return rows


def same_row(order: str, partner: str, order_there: str) -> exp.Expr:
    """Return the condition under which rows of `rows_of_persons` and of another query are of one person.

    They have one number in their order, too.
    """
    orders = exp.EQ(
        this=exp.column(order, table="rows_of_persons", quoted=True),
        expression=exp.column(order_there, table=partner, quoted=True),
    )
    persons = exp.EQ(
        this=exp.column(PERSON, table="rows_of_persons", quoted=True),
        expression=exp.column(PERSON, table=partner, quoted=True),
    )
    return exp.and_(persons, orders)


def siblings(order: str | None) -> tuple[list[exp.Expr], exp.Order]:
    """Return the partition of the rows of one parent, and their order: by a column, missing cells last."""
    keys: list[exp.Expr] = [column(ORDER)]
    if order is not None:
        is_missing = exp.Is(this=column(order), expression=exp.null())
        last = exp.Case().when(is_missing, exp.convert(1)).else_(exp.convert(0))
        keys = [last, column(order), *keys]
    return [column(PERSON), column(PARENT)], _sorted(keys)


def position(order: str | None, classes: int) -> exp.Expr:
    """Return the position of a row among those of its parent, from 0; the last class has all others."""
    partition, by = siblings(order)
    number = exp.Sub(
        this=exp.Window(this=exp.RowNumber(), partition_by=partition, order=by), expression=exp.convert(1)
    )
    last = exp.convert(classes - 1)
    return exp.Case().when(exp.LT(this=number, expression=last), number.copy()).else_(last.copy())


def previous(code: exp.Expr, order: str | None, lag: int, none: int) -> exp.Expr:
    """Return the code of a row some rows before of the same parent, `none` where there is no such row."""
    partition, by = siblings(order)
    before = exp.Lag(this=code, offset=exp.convert(lag))
    window = exp.Window(this=before, partition_by=partition, order=by)
    return exp.func("COALESCE", window, exp.convert(none))


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
