"""Codec: a raw table to integer codes and back, with the columns, order and dtypes of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from privsyn.answers.binning import Axis
from privsyn.answers.domain import Domain, Records
from privsyn.errors import InputError
from privsyn.table.checks import check_names
from privsyn.table.coders import make_coder
from privsyn.table.columns import STRAY, Coder, Nothing, Ordered
from privsyn.table.dtypes import dtype_text, family, holds_missing, parse_dtype
from privsyn.table.grid import FINE
from privsyn.table.kinds import Identifier, Text
from privsyn.table.made import Maker, make_maker
from privsyn.table.schema import Schema
from privsyn.table.schema_file import from_plain, to_plain


@dataclass(frozen=True)
class Codec:
    """Maps every cell of a table to a code, and codes to cells.

    Built from public facts alone: a schema, and the names and dtypes of the table's columns. No row is read
    before `encode`.

    A listed value is coded by its place in the list, a number or a time by its bin. A column has one more
    code, the last, for missing, if the schema says nullable and the dtype can hold a missing cell. A cell
    that fits nothing (missing, unreadable, not listed) gets that code, or code 0 where there is none; a
    number out of bounds is clipped. Identifiers and free text have no codes: `decode` makes the first anew
    and leaves out the second, and neither is looked at.

    Privacy: `encode` maps each row by itself, row ``i`` of the codes being a function of row ``i`` of the
    table and of the public facts. So ``encode(concat(a, b))`` is ``encode(a)`` above ``encode(b)``, and
    tables that differ in one record have codes that differ in one record. No row makes it fail.

    Parameters
    ----------
    schema : Schema
    names : tuple of str
        The columns in the order of the table.
    dtypes : tuple of str
        The dtype of each, as text.
    fine : bool
        Code numbers and times in many fine cells, to be joined to at most `bins` groups by what is released
        of them (`axes`); otherwise in `bins` equal intervals.

    Examples
    --------
    >>> from privsyn.table.schema import Categorical, Numerical
    >>> table = pd.DataFrame({"age": [17, 44, 300], "sex": ["M", None, "?"]})
    >>> schema = Schema({"sex": Categorical(["F", "M"]), "age": Numerical(0, 99, bins=10)})
    >>> codec = Codec.for_table(schema, table)
    >>> codec.domain
    Domain(names=('age', 'sex'), sizes=(10, 3), ordered=(10, 0))
    >>> codec.encode(table).codes.tolist()
    [[1, 1], [4, 2], [9, 2]]
    """

    schema: Schema
    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    fine: bool = False
    domain: Domain = field(init=False, repr=False, compare=False)
    _coders: dict[str, Coder] = field(init=False, repr=False, compare=False)
    _makers: dict[str, Maker] = field(init=False, repr=False, compare=False)
    _nullable: tuple[bool, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _match_names(self.names, self.schema)
        self.schema.require_public()
        coders: dict[str, Coder] = {}
        makers: dict[str, Maker] = {}
        for name, text in zip(self.names, self.dtypes, strict=True):
            match self._column(name, text):
                case Coder() as coder:
                    coders[name] = coder
                case Maker() as maker:
                    makers[name] = maker
        if not coders:
            raise InputError("no column is left to be counted: all are identifiers or free text")
        dtypes = dict(zip(self.names, self.dtypes, strict=True))
        nullable = tuple(
            isinstance(coder, Nothing)
            or (self.schema.coded[name].nullable and holds_missing(parse_dtype(dtypes[name])))
            for name, coder in coders.items()
        )
        sizes = tuple(coder.size + extra for coder, extra in zip(coders.values(), nullable, strict=True))
        object.__setattr__(self, "_coders", coders)
        object.__setattr__(self, "_makers", makers)
        object.__setattr__(self, "_nullable", nullable)
        ordered = tuple(coder.ordered for coder in coders.values())
        object.__setattr__(self, "domain", Domain(tuple(coders), sizes, ordered))

    @property
    def coders(self) -> tuple[Coder, ...]:
        """One for each column, in order."""
        return tuple(self._coders.values())

    @classmethod
    def for_table(cls, schema: Schema, table: pd.DataFrame, *, fine: bool = False) -> Codec:
        """The codec of a table, from its column names and dtypes; its rows are not looked at."""
        names = tuple(table.columns)
        _match_names(names, schema)
        texts = []
        for name, dtype in zip(names, table.dtypes, strict=True):
            text = "object" if isinstance(schema.columns[name], Text) else dtype_text(dtype)
            if text is None:
                raise InputError(f"column {name!r}: its dtype is {dtype}: convert it to a common one")
            texts.append(text)
        return cls(schema, names, tuple(texts), fine)

    @property
    def axes(self) -> dict[str, Axis]:
        """How the cells of each fine column lie: public."""
        return {
            name: Axis(np.diff(coder.grid.edges).astype(np.float64), self.schema.columns[name].bins)  # type: ignore[union-attr]
            for name, coder in self._coders.items()
            if self.fine and isinstance(coder, Ordered)
        }

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that `decode` leaves out."""
        return tuple(name for name, column in self.schema.columns.items() if isinstance(column, Text))

    def encode(self, table: pd.DataFrame) -> Records:
        """The codes of every row, in order."""
        if Codec.for_table(self.schema, table, fine=self.fine) != self:
            raise InputError("the columns or dtypes differ from those the codec was made for")
        with suppress(Exception):  # no row should raise, and none may speak through what is said of it
            return self._codes(table)
        raise InputError("the table could not be coded: please report this, unless memory ran out")

    def _codes(self, table: pd.DataFrame) -> Records:
        codes = np.empty((len(table), len(self.domain)), dtype=np.int32, order="F")
        for place, ((name, coder), extra) in enumerate(
            zip(self._coders.items(), self._nullable, strict=True)
        ):
            found = coder.find(table[name])
            codes[:, place] = np.where(found == STRAY, coder.size if extra else 0, found)
        return Records(self.domain, codes)

    def decode(self, records: Records, rng: np.random.Generator) -> pd.DataFrame:
        """A table with these codes: listed values, and points drawn uniformly within each bin.

        ``encode(decode(records, rng))`` is `records`.
        """
        if records.domain != self.domain:
            raise ValueError(f"records over {records.domain} for a codec of {self.domain}")
        columns = {}
        for place, (name, coder) in enumerate(self._coders.items()):
            codes = records.codes[:, place]
            missing = codes == coder.size
            columns[name] = coder.draw(np.where(missing, 0, codes), missing, rng)
        for name, maker in self._makers.items():
            columns[name] = self._made(name, maker, len(records), rng)
        return pd.DataFrame({name: columns[name] for name in self.names if name in columns}, copy=False)

    def _made(self, name: str, maker: Maker, rows: int, rng: np.random.Generator) -> pd.Series:
        try:
            return maker.make(rows, rng)
        except InputError as error:
            complaint = f"column {name!r}: {error}"
        raise InputError(complaint)

    def misfits(self, table: pd.DataFrame) -> dict[str, int]:
        """How many cells of each column are clipped or turned missing. Private: for the owner's eyes only.

        A missing cell counts where nothing may be missing.
        """
        counts = {}
        for (name, coder), extra in zip(self._coders.items(), self._nullable, strict=True):
            cells = table[name]
            fine = coder.fits(cells) | (cells.isna().to_numpy() if extra else False)
            counts[name] = int((~fine).sum())
        return counts

    def to_dict(self) -> dict[str, Any]:
        """The codec as plain data for JSON; `from_dict` makes it again, without the table."""
        dtypes = dict(zip(self.names, self.dtypes, strict=True))
        return {"schema": to_plain(self.schema), "dtypes": dtypes, "fine": self.fine}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Codec:
        """The codec that `to_dict` wrote."""
        dtypes = plain["dtypes"]
        return cls(from_plain(plain["schema"]), tuple(dtypes), tuple(dtypes.values()), bool(plain["fine"]))

    def _column(self, name: str, text: str) -> Coder | Maker | None:
        """What codes a column, or makes it; None for one that is left out."""
        column, dtype = self.schema.columns[name], parse_dtype(text)
        if isinstance(column, Text):
            return None
        if family(dtype) == "nothing":
            return Nothing(dtype)
        try:
            if isinstance(column, Identifier):
                return make_maker(column, dtype)
            coder = make_coder(column, dtype)
            if self.fine and isinstance(coder, Ordered):
                return replace(coder, grid=coder.grid.fine(max(FINE, column.bins)))  # type: ignore[union-attr]
            return coder
        except InputError as error:
            complaint = f"column {name!r}: {error}"
        raise InputError(complaint)


def _match_names(names: tuple[object, ...], schema: Schema) -> None:
    """Refuse a table whose columns are not those of the schema.

    What the schema knows is public and named; of the table's own names, which may be a row where the header
    is missing, only the place is said.
    """
    check_names(names)
    strange = [place for place, name in enumerate(names, 1) if name not in schema.columns]
    absent = [name for name in schema.columns if name not in names]
    complaints = []
    if absent:
        complaints.append(f"the table has no {_some(absent)}")
    if strange:
        complaints.append(f"the schema does not know {_some(strange)} of the table")
    if complaints:
        raise InputError(f"{' and '.join(complaints)}: mend the schema or the table's header")


def _some(names: Sequence[str | int]) -> str:
    listed = ", ".join(map(repr, names[:5]))
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"column{'s' if len(names) > 1 else ''} {listed}{rest}"
