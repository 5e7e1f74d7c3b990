"""Persons whose rows are in a database: it sorts and bounds them, and numbers and counts come here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privsyn.methods.persons import Persons
from privsyn.private.rows import PersonsElsewhere
from privsyn.table.engine.engine_table import EngineTable
from privsyn.table.engine.rows_in_order import RowsInOrder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from privsyn.marginals.domain import Codes
    from privsyn.methods.persons import Above, RowClasses
    from privsyn.private.contribution import NumbersOfRows
    from privsyn.private.randomness import Bits
    from privsyn.table.codec.codec import Codec
    from privsyn.table.io.source import RawTable
    from privsyn.table.kinds.keys import Key


@dataclass(frozen=True, eq=False, repr=False)
class PersonsInEngine(Persons):
    """Whose rows are whose, as a database computes it. Private.

    Parameters
    ----------
    unit : str or tuple of str
        The columns of identifiers.
    rows : RowsInOrder
    above : Above, optional
        None: tables in a database have no links yet.
    puts_together : bool
        The database can put the rows of a person together.
    """

    unit: Key
    rows: RowsInOrder
    above: Above | None = None
    puts_together: bool = True

    @classmethod
    def of(cls, source: EngineTable, unit: Key, bits: Bits) -> PersonsInEngine:
        """Draw the key by which the rows of each person are sorted. No row is read."""
        key = "".join(f"{word:016x}" for word in bits(4).tolist())
        return cls(unit, RowsInOrder.of(source, unit, key))

    @property
    def numbers(self) -> NumbersOfRows:
        """The numbers of rows of all persons."""
        return self.rows

    def bounded(self, source: RawTable, bound: int | None) -> EngineTable:
        """Return the first `bound` rows of each person, all with None, without the identifiers."""
        return self.rows.bounded(bound)

    def with_above(self, above: Above) -> PersonsInEngine:
        """Refuse links: a table in a database is the only one of its run."""
        raise ValueError("no linked tables in a database")

    def codes_below(self, codes: tuple[Any, ...], positions: int) -> tuple[Any, ...]:
        """Refuse links."""
        raise ValueError("no linked tables in a database")

    def codes_above(
        self, rows: RawTable, codec: Codec, groups: Mapping[int, Codes], above: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Refuse links."""
        raise ValueError("no linked tables in a database")

    def coded(
        self, rows: RawTable, codec: Codec, bound: int | None, row_classes: RowClasses, memory: float
    ) -> PersonsElsewhere:
        """Return the encoded rows, which the database counts."""
        if not isinstance(rows, EngineTable):
            raise ValueError("rows that are not in a database")
        classes = {row_classes.name: row_classes.begins.tolist()} if row_classes else {}
        domain = codec.domain.joined(self.attributes(row_classes))
        return PersonsElsewhere.of(domain, memory / 4, self.rows.coded(rows, codec, classes))
