"""Persons whose rows are in a database: it sorts and bounds them, and numbers and counts come here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from privsyn.methods.persons import Persons
from privsyn.methods.previous_siblings import rows_before
from privsyn.private.rows import PersonsElsewhere
from privsyn.table.engine.engine_table import EngineTable
from privsyn.table.engine.rows_in_order import RowsInOrder
from privsyn.table.kinds.keys import Key, columns_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from privsyn.marginals.domain import Codes
    from privsyn.methods.persons import Above, RowClasses
    from privsyn.private.contribution import NumbersOfRows
    from privsyn.private.randomness import Bits
    from privsyn.table.codec.codec import Codec
    from privsyn.table.io.source import RawTable


def key_of(bits: Bits) -> str:
    """Draw the key by which a database sorts the rows of each person."""
    return "".join(f"{word:016x}" for word in bits(4).tolist())


@dataclass(frozen=True, eq=False, repr=False)
class PersonsInEngine(Persons):
    """Whose rows are whose, as a database computes it. Private.

    Parameters
    ----------
    unit : str or tuple of str
        The columns of identifiers.
    rows : RowsInOrder
    above : Above, optional
        What each row belongs to in linked tables.
    also : tuple of str
        Further columns that are no data.
    puts_together : bool
        The database can put the rows of a person together.
    """

    unit: Key
    rows: RowsInOrder
    above: Above | None = None
    also: tuple[str, ...] = ()
    puts_together: bool = True

    @classmethod
    def of(cls, source: EngineTable, unit: Key, bits: Bits) -> PersonsInEngine:
        """Return whose rows are whose in one table. No row is read."""
        return cls(unit, RowsInOrder.of(source, unit, key_of(bits)))

    @property
    def numbers(self) -> NumbersOfRows:
        """The numbers of rows of all persons."""
        return self.rows

    def bounded(self, source: RawTable, bound: int | None) -> EngineTable:
        """Return the first `bound` rows of each person, all with None, without the identifiers."""
        return self.rows.bounded(bound, (*columns_of(self.unit), *self.also))

    def with_above(self, above: Above) -> PersonsInEngine:
        """Return the same with other columns of rows above."""
        return replace(self, above=above)

    def codes_below(self, codes: tuple[Any, ...], positions: int) -> tuple[Any, ...]:
        """Return columns of the parent's rows, which the database joins, and the classes of the position."""
        return (*codes, positions) if positions else codes

    def codes_above(
        self, rows: RawTable, codec: Codec, groups: Mapping[int, Codes], above: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Return columns of a temporary table."""
        return self.rows.codes_above(_there(rows), codec, groups, above)

    def coded(
        self, rows: RawTable, codec: Codec, bound: int | None, row_classes: RowClasses, memory: float
    ) -> PersonsElsewhere:
        """Return the encoded rows, which the database counts."""
        classes = {row_classes.name: row_classes.begins.tolist()} if row_classes else {}
        above, before = {}, {}
        if self.above is not None:
            above = dict(zip(self.above.domain.names, self.above.codes, strict=True))
            before = rows_before(codec.domain.names, self.above.lags) if self.above.linked else {}
        coded = self.rows.coded(_there(rows), codec, classes, above, before)
        return PersonsElsewhere.of(codec.domain.joined(self.attributes(row_classes)), memory / 4, coded)


def _there(rows: RawTable) -> EngineTable:
    """Return rows of a table in a database as such."""
    if not isinstance(rows, EngineTable):
        raise ValueError("rows that are in no database")
    return rows
