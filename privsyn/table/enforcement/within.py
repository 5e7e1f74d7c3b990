"""Within: a column each of whose values lies in one value of another column, as places lie in regions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from privsyn.errors import InputError, safe_repr
from privsyn.table.enforcement.allowed import AllowedRule, Rows, check_rows, derive_listed, numbers_of
from privsyn.table.enforcement.lookup import public_cells
from privsyn.table.schema.constraint import Columns, Constraint, check_names
from privsyn.table.schema.rules import Rule

IN_TWO = "{} {} lies in {} and in {}: each lies in one, so correct the table"
UNKNOWN = (
    "in which {outer!r} each {inner!r} lies is not given: add `table`, a public table of both columns, or"
    " totals with both columns"
)


@dataclass(frozen=True)
class Within(Constraint):
    """States that each value of a column lies in one value of another column: a hierarchy.

    Both columns are counted: what noise hides of the small places can show of their regions. No synthetic row
    has a place in another region.

    Parameters
    ----------
    within : mapping of a column to the column in which its values lie
    table : path of a CSV file with a header and commas, in UTF-8; or pandas.DataFrame, optional
        Public: in which value of the other column each value lies. Of one pair of columns you can also give a
        list of rows, each with a value and the one in which it lies. Default: known totals with both columns
        say so (`totals` of `PrivSyn`).
    source : str
        The name of the file of the table: the ledger names it.

    Examples
    --------
    >>> from privsyn import Categorical, Schema
    >>> columns = {"city": Categorical(["Oslo", "Rome"]), "country": Categorical(["Italy", "Norway"])}
    >>> within = Within({"city": "country"}, [["Oslo", "Norway"], ["Rome", "Italy"]])
    >>> Schema(columns, constraints=[within]).constraints[0].rows
    (('Oslo', 'Norway'), ('Rome', 'Italy'))
    """

    within: Mapping[str, str]
    table: Any = None
    source: str = field(default="", compare=False, repr=False)

    lists_values = True

    def __post_init__(self) -> None:
        if not isinstance(self.within, Mapping) or not self.within:
            raise InputError('within maps columns to columns, as in {"place": "region"}')
        for pair in self.within.items():
            check_names("within", pair)
        object.__setattr__(self, "within", MappingProxyType(dict(self.within)))
        if isinstance(self.table, list | tuple):
            if len(self.within) > 1:
                raise InputError("rows are those of one pair of columns: give a table with all columns")
            object.__setattr__(self, "table", self._checked(check_rows(self.table, self.columns)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns: of one pair, the inner one first."""
        return tuple(dict.fromkeys(name for pair in self.within.items() for name in pair))

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """Each value of the inner column with the value in which it lies; none if that is not given."""
        return self.table if isinstance(self.table, tuple) else ()

    def meant(self, columns: Columns) -> list[Constraint]:
        """Return the constraint of each pair of columns, with the rows of the table if there is one."""
        pairs = [
            replace(self, within={inner: outer}, table=self.rows or None)
            for inner, outer in self.within.items()
        ]
        if self.table is None or self.rows:
            return [*pairs]
        cells = public_cells(self.table, self.columns, columns)
        source = Path(self.table).name if isinstance(self.table, str | Path) else ""
        return [pair.with_rows(zip(*map(cells.get, pair.columns), strict=True), source) for pair in pairs]

    def with_rows(self, rows: Any, source: str = "") -> Within:
        """Return the constraint of one pair of columns with these rows; a row may come twice."""
        return replace(self, table=list(rows), source=source)

    def derive(self, columns: Columns) -> Columns:
        """Fill in the lists and bounds that the rows make public."""
        return derive_listed(columns, self.columns, self.rows) if self.rows else {}

    def check(self, columns: Columns) -> None:
        """Refuse rows that leave out a listed value of the inner column; a hierarchy without rows, too."""
        inner, outer = self.columns
        if not self.rows:
            raise InputError(UNKNOWN.format(inner=inner, outer=outer))
        named = {row[0] for row in self.rows}
        if unnamed := [value for value in columns[inner].listed if value not in named]:
            raise InputError(
                f"the table does not say in which {outer!r} {inner} {safe_repr(unnamed[0])} lies"
            )

    def explain(self) -> str:
        """Return what the constraint does, in plain English."""
        inner, outer = self.columns
        return f"each {inner} lies in one {outer}, in a list of {len(self.rows)} rows."

    def rules(self, columns: Columns) -> list[Rule]:
        """Allow each inner value only with the value in which it lies."""
        return [AllowedRule(self.columns, numbers_of(columns, self.columns, self.rows))] if self.rows else []

    def to_plain(self, listed: Collection[str]) -> dict[str, Any]:
        """Return the columns and the rows: a model file has no other name of the file."""
        plain = super().to_plain(listed)
        plain.pop("source", None)
        return {**plain, "within": dict(self.within)}

    def _checked(self, rows: Rows) -> Rows:
        """Return the rows; refuse a value that lies in two others."""
        first: dict[Any, Any] = {}
        for inner, outer in rows:
            if first.setdefault(inner, outer) != outer:
                values = map(safe_repr, (inner, first[inner], outer))
                raise InputError(IN_TWO.format(self.columns[0], *values))
        return rows
