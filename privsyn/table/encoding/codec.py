"""Codec: a raw table to integer codes and back, with the columns, order and dtypes of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError, replace_errors
from privsyn.inference.binning import Axis
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.marginals.types import Floats, Ints
from privsyn.table.encoding.choose_encoder import choose_encoder, dtypes_of, match_names
from privsyn.table.encoding.dtypes import family, holds_missing, parse_dtype
from privsyn.table.encoding.encoders import (
    STRAY,
    AllMissingEncoder,
    CategoricalEncoder,
    Encoder,
    OrderedEncoder,
    missing_cells,
)
from privsyn.table.encoding.grid import FINE
from privsyn.table.encoding.identifiers import IdentifierMaker, make_maker
from privsyn.table.enforcement.draws import Cells, DrawnRows
from privsyn.table.enforcement.feasibility import check_constraints
from privsyn.table.enforcement.repair import Repair
from privsyn.table.enforcement.rules import Computation
from privsyn.table.schema.columns import Identifier, Ordinal, Text
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import from_plain, to_plain


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
    >>> from privsyn import Categorical, Numerical
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
    _coders: dict[str, Encoder] = field(init=False, repr=False, compare=False)
    _makers: dict[str, IdentifierMaker] = field(init=False, repr=False, compare=False)
    _nullable: dict[str, bool] = field(init=False, repr=False, compare=False)
    _rules: Repair = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        match_names(self.names, self.schema)
        self.schema.require_public()
        check_constraints(self.schema.coded, self.schema.constraints)
        coders: dict[str, Encoder] = {}
        makers: dict[str, IdentifierMaker] = {}
        for name, text in zip(self.names, self.dtypes, strict=True):
            match self._column(name, text):
                case Encoder() as coder:
                    coders[name] = coder
                case IdentifierMaker() as maker:
                    makers[name] = maker
        if not coders:
            raise InputError("no column is left to be counted: all are identifiers or free text")
        dtypes = dict(zip(self.names, self.dtypes, strict=True))
        nullable = {
            name: isinstance(coder, AllMissingEncoder)
            or (self.schema.coded[name].nullable and holds_missing(parse_dtype(dtypes[name])))
            for name, coder in coders.items()
        }
        object.__setattr__(self, "_coders", coders)
        object.__setattr__(self, "_makers", makers)
        object.__setattr__(self, "_nullable", nullable)
        object.__setattr__(self, "_rules", Repair.of(self.schema.coded, self.schema.constraints))
        self._check_computed()
        coded = tuple(name for name in coders if name not in self._rules.computed)
        sizes = tuple(coders[name].size + nullable[name] for name in coded)
        ordered = tuple(coders[name].ordered for name in coded)
        object.__setattr__(self, "domain", Domain(coded, sizes, ordered))

    @property
    def coders(self) -> tuple[Encoder, ...]:
        """One for each column that is coded, in order."""
        return tuple(self._coders[name] for name in self.domain)

    @classmethod
    def for_table(cls, schema: Schema, table: pd.DataFrame, *, fine: bool = False) -> Codec:
        """The codec of a table, from its column names and dtypes; its rows are not looked at."""
        return cls(schema, tuple(table.columns), dtypes_of(schema, table), fine)

    @property
    def axes(self) -> dict[str, Axis]:
        """How the cells of each fine column lie: public."""
        return {
            name: Axis(
                np.diff(coder.grid.edges).astype(np.float64), cast(Ordinal, self.schema.columns[name]).bins
            )
            for name in self.domain
            if self.fine and isinstance(coder := self._coders[name], OrderedEncoder)
        }

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that `decode` leaves out."""
        return self.schema.dropped

    def encode(self, table: pd.DataFrame) -> Records:
        """The codes of every row, in order."""
        if (tuple(table.columns), dtypes_of(self.schema, table)) != (self.names, self.dtypes):
            raise InputError("the columns or dtypes differ from those the codec was made for")
        with replace_errors("the table could not be coded: please report this, unless memory ran out"):
            return self._codes(table)

    def _codes(self, table: pd.DataFrame) -> Records:
        codes = np.empty((len(table), len(self.domain)), dtype=np.int32, order="F")
        for place, name in enumerate(self.domain):
            codes[:, place] = self._find(name, table[name])
        return Records(self.domain, codes)

    def _find(self, name: str, cells: pd.Series) -> Ints:
        coder = self._coders[name]
        found = coder.find(cells)
        return np.where(found == STRAY, coder.size if self._nullable[name] else 0, found)

    def decode(
        self, records: Records, rng: np.random.Generator, merging: Merging | None = None, start: int = 0
    ) -> pd.DataFrame:
        """A table with these codes: listed values, and points drawn uniformly within each bin.

        ``encode(decode(records, rng))`` is `records`, but for rows that break a constraint: they are changed,
        where that will do within the groups of codes that `merging` pooled. Identifiers go on from the
        `start` rows made before.
        """
        return self.table(self.numbers(records, rng, merging), rng, start)

    def numbers(
        self,
        records: Records,
        rng: np.random.Generator,
        merging: Merging | None = None,
        fixed: Mapping[str, Floats] = MappingProxyType({}),
    ) -> dict[str, Floats]:
        """The numbers of `table` for these codes, NaN for missing; those of `fixed` columns are given."""
        if records.domain != self.domain:
            raise ValueError(f"records over {records.domain} for a codec of {self.domain}")
        codes = {name: records.codes[:, place] for place, name in enumerate(self.domain)}
        numbers = {}
        for name, of_column in codes.items():
            missing = of_column == self._coders[name].size
            drawn = self._coders[name].draw(np.where(missing, 0, of_column), rng)
            numbers[name] = np.where(missing, np.nan, drawn) if missing.any() else drawn
        numbers |= {name: np.array(given) for name, given in fixed.items()}
        if self.schema.constraints:
            self._rules.enforce(DrawnRows(numbers, codes, self.cells(merging), frozenset(fixed)), rng)
        return numbers

    @property
    def computed(self) -> tuple[Computation, ...]:
        """What computes columns from others, in the order in which it can."""
        return self._rules.computations

    def listed(self, name: str) -> int:
        """How many values a column lists; 0 if it is one of numbers or times."""
        coder = self._coders[name]
        return coder.size if isinstance(coder, CategoricalEncoder) else 0

    def table(self, numbers: Mapping[str, Floats], rng: np.random.Generator, start: int = 0) -> pd.DataFrame:
        """The cells of numbers by column, NaN standing for missing, and identifiers made anew."""
        columns = {}
        for name, coder in self._coders.items():
            missing = np.isnan(numbers[name])
            first = coder.extents[0][0] if coder.size else 0.0
            columns[name] = coder.cells(np.where(missing, first, numbers[name]), missing)
        rows = len(next(iter(columns.values())))
        for name, maker in self._makers.items():
            columns[name] = self._made(name, maker, rows, rng, start)
        return pd.DataFrame({name: columns[name] for name in self.names if name in columns}, copy=False)

    def specimen(self, rng: np.random.Generator, start: int = 0) -> pd.DataFrame:
        """Return rows in which every listed value occurs, and missing cells, made of public facts alone.

        Constraints are not kept. `start` other rows come before, as for `decode`.
        """
        rows = 1 + max((self.listed(name) for name in self._coders), default=0)
        numbers = {}
        for name, coder in self._coders.items():
            codes = np.arange(rows) % (coder.size + self._nullable[name])
            drawn = coder.draw(np.where(codes < coder.size, codes, 0), rng)
            numbers[name] = np.where(codes < coder.size, drawn, np.nan)
        return self.table(numbers, rng, start)

    def _made(
        self, name: str, maker: IdentifierMaker, n: int, rng: np.random.Generator, start: int
    ) -> pd.Series:
        with replace_errors(lambda error: f"column {name!r}: {error}", InputError):
            return maker.make(n, rng, start)

    def cells(self, merging: Merging | None = None) -> dict[str, Cells]:
        """The codes of each coded column as numbers, and how they were merged."""
        if merging is None:
            return dict(self._unmerged)
        return {
            name: Cells(cells.lows, cells.highs, cells.grid, merging.groups[place], merging.shares[place])
            for place, (name, cells) in enumerate(self._unmerged.items())
        }

    @cached_property
    def _unmerged(self) -> dict[str, Cells]:
        found = {}
        for name in self.domain:
            lows, highs = self._coders[name].extents
            if self._nullable[name]:
                lows, highs = np.append(lows, np.nan), np.append(highs, np.nan)
            found[name] = Cells.unmerged(lows, highs, getattr(self._coders[name], "grid", None))
        return found

    def possible(self, merging: Merging) -> StructuralZeros:
        """Which cells of merged tables the constraints leave."""
        tables = self._rules.possible(self.cells(merging))
        return StructuralZeros(tuple((merging.merged.project(names), mask) for names, mask in tables))

    def _check_computed(self) -> None:
        for maker in self._rules.computations:
            coder: Any = self._coders[maker.column]
            if maker.decimals != 0 and coder.grid.decimals == 0:
                raise InputError(f"column {maker.column!r} is whole, and not all parts of its sum are")
            for name in maker.by:
                if self._nullable[name] and not self._nullable[maker.column]:
                    raise InputError(
                        f"column {maker.column!r} is computed from {name!r}, which may be missing: "
                        f"say nullable=False of {name!r}, or choose a dtype that holds missing cells"
                    )

    def misfits(self, table: pd.DataFrame) -> dict[str, int]:
        """How many cells of each column are clipped or turned missing. Private: for the owner's eyes only.

        A missing cell counts where nothing may be missing.
        """
        counts = {}
        for name, coder in self._coders.items():
            cells = table[name]
            fine = coder.fits(cells) | (missing_cells(cells) if self._nullable[name] else False)
            counts[name] = int((~fine).sum())
        return counts

    def read(self, table: pd.DataFrame) -> dict[str, Floats]:
        """Return the numbers of the cells before any is clipped, NaN for one that has none. Private."""
        return {name: coder.read(table[name]) for name, coder in self._coders.items()}

    def to_dict(self) -> dict[str, Any]:
        """The codec as plain data for JSON; `from_dict` makes it again, without the table."""
        dtypes = dict(zip(self.names, self.dtypes, strict=True))
        return {"schema": to_plain(self.schema), "dtypes": dtypes, "fine": self.fine}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Codec:
        """The codec that `to_dict` wrote."""
        dtypes = plain["dtypes"]
        return cls(from_plain(plain["schema"]), tuple(dtypes), tuple(dtypes.values()), bool(plain["fine"]))

    @staticmethod
    def most_codes(plain: Mapping[str, Any]) -> int:
        """Return how many codes of numbers and times `from_dict` makes at most, without making them.

        Bins of equal width are not counted: no list is made of them.
        """
        schema, codes = from_plain(plain["schema"]), 0
        for name, column in schema.coded.items():
            dtype = parse_dtype(plain["dtypes"][name])
            if isinstance(column, Ordinal) and name not in schema.computed and family(dtype) != "nothing":
                points = cast(OrderedEncoder, choose_encoder(column, dtype)).grid.points
                codes += min(points, max(FINE, column.bins) if plain["fine"] else 0)
        return codes

    def _column(self, name: str, text: str) -> Encoder | IdentifierMaker | None:
        """What codes a column, or makes it; None for one that is left out."""
        column: Any = self.schema.columns[name]
        dtype = parse_dtype(text)
        if isinstance(column, Text):
            return None
        if family(dtype) == "nothing":
            return AllMissingEncoder(dtype)
        with replace_errors(lambda error: f"column {name!r}: {error}", InputError):
            if isinstance(column, Identifier):
                return make_maker(column, dtype)
            coder = choose_encoder(column, dtype)
            if self.fine and isinstance(coder, OrderedEncoder) and name not in self.schema.computed:
                return replace(coder, grid=coder.grid.fine(max(FINE, column.bins)))
            return coder
