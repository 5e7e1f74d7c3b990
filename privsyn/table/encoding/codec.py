"""Encode a table as integer codes, and decode codes to a table of the same columns, order and dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about, replace_errors
from privsyn.inference.binning import Axis
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.marginals.types import Floats
from privsyn.table.encoding.choose_encoder import check_computed, dtypes_of, match_names
from privsyn.table.encoding.encoders import CategoricalEncoder, Encoder, OrderedEncoder, missing_cells
from privsyn.table.encoding.gap_rules import rules_with_gaps
from privsyn.table.encoding.heaps import NO_HEAPS, Heaps, heaps_from_plain, heaps_to_plain
from privsyn.table.encoding.identifiers import IdentifierMaker
from privsyn.table.encoding.make_encoders import Encoders
from privsyn.table.enforcement.draws import Cells, DrawnRows
from privsyn.table.enforcement.feasibility import check_constraints
from privsyn.table.enforcement.repair import Repair
from privsyn.table.enforcement.rules import Computation
from privsyn.table.schema.columns import Ordinal
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import from_plain, to_plain


@dataclass(frozen=True)
class Codec:
    """Encodes every cell of a table as an integer, and decodes integers to cells.

    A codec is built from public facts alone: a schema, and the names and dtypes of the columns. The code of a
    listed value is its place in the list; that of a number or a time is its bin. If the schema and the dtype
    allow missing cells, these have the last code. A cell that fits no code is encoded as missing, or as 0 if
    there is no such code. Numbers out of bounds are clipped. Identifiers and free text are never read:
    `decode` generates identifiers and leaves out text.

    Privacy: row ``i`` of the codes is a function of row ``i`` of the table and of the public facts. So
    ``encode(concat(a, b))`` is ``encode(a)`` above ``encode(b)``, and tables that differ in one record have
    codes that differ in one record. No row makes `encode` fail.

    Parameters
    ----------
    schema : Schema
    names : tuple of str
        The columns in the order of the table.
    dtypes : tuple of str
        The dtype of each, as text.
    fine : bool
        Encode numbers and times in many fine cells, which released counts later join to at most `bins` groups
        (see `axes`). Default: `bins` equal intervals.
    heaps : mapping of a column to the heaps of its numbers, optional
        Released. Only `decode` uses them.
    with_gaps : bool
        Encode columns that increase as gaps (see `privsyn.table.encoding.gaps`). False for a release that was
        saved before gaps were known.

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
    heaps: Mapping[str, Heaps] = field(default_factory=dict, repr=False)
    with_gaps: bool = True
    domain: Domain = field(init=False, repr=False, compare=False)
    _encoders: Encoders = field(init=False, repr=False, compare=False)
    rules: Repair = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        match_names(self.names, self.schema)
        self.schema.require_public()
        check_constraints(self.schema.coded, self.schema.constraints)
        made = Encoders.of(
            self.schema, self.names, self.dtypes, self.heaps, fine=self.fine, with_gaps=self.with_gaps
        )
        rules = Repair.of(self.schema.coded, self.schema.constraints)
        check_computed(rules.computations, made.columns, made.nullable)
        object.__setattr__(self, "_encoders", made)
        object.__setattr__(self, "rules", rules_with_gaps(rules, self.schema, made.gaps, made.nullable))
        attributes = made.attributes
        sizes = tuple(encoder.size + made.nullable[name] for name, encoder in attributes.items())
        ordered = tuple(encoder.ordered for encoder in attributes.values())
        object.__setattr__(self, "domain", Domain(tuple(attributes), sizes, ordered))

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        """The encoder of each encoded column, in order."""
        return tuple(self._encoders.attributes.values())

    @classmethod
    def for_table(
        cls, schema: Schema, table: pd.DataFrame, *, fine: bool = False, heaps: Mapping[str, Heaps] = NO_HEAPS
    ) -> Codec:
        """Return the codec of a table. This reads its column names and dtypes, but no row."""
        return cls(schema, tuple(table.columns), dtypes_of(schema, table), fine, heaps)

    @property
    def axes(self) -> dict[str, Axis]:
        """The widths of the cells of each fine column. Public, or from released heaps."""
        return {
            name: Axis(
                encoder.grid.widths[: encoder.ordered],
                cast(Ordinal, self.schema.columns[self.column_of(name)]).bins,
            )
            for name, encoder in self._encoders.attributes.items()
            if self.fine and isinstance(encoder, OrderedEncoder)
        }

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that `decode` leaves out."""
        return self.schema.dropped

    def encode(self, table: pd.DataFrame) -> Records:
        """Return the codes of all rows, in order."""
        if (tuple(table.columns), dtypes_of(self.schema, table)) != (self.names, self.dtypes):
            raise InputError("the columns or dtypes differ from those the codec was made for")
        with replace_errors("the table could not be coded: please report this, unless memory ran out"):
            return self._codes(table)

    def _codes(self, table: pd.DataFrame) -> Records:
        codes = np.empty((len(table), len(self.domain)), dtype=np.int32, order="F")
        for place, name in enumerate(self.domain):
            codes[:, place] = self._encoders.find(name, table)
        return Records(self.domain, codes)

    def column_of(self, attribute: str) -> str:
        """Return the column that an attribute encodes: for a gap, the column that it ends in."""
        return next((name for name, gap in self._encoders.gaps.items() if gap.name == attribute), attribute)

    def attribute_of(self, column: str) -> str:
        """Return the attribute that encodes a column: its gap, if it has one."""
        gap = self._encoders.gaps.get(column)
        return column if gap is None else gap.name

    def decode(
        self, records: Records, rng: np.random.Generator, merging: Merging | None = None, start: int = 0
    ) -> pd.DataFrame:
        """Return a table with these codes: listed values, and points drawn uniformly within each bin.

        ``encode(decode(records, rng))`` equals `records`, except in rows that break a constraint. These rows
        are repaired, if possible within the groups of `merging`. Identifiers start after `start` rows.
        """
        return self.table(self.numbers(records, rng, merging), rng, start)

    def numbers(
        self,
        records: Records,
        rng: np.random.Generator,
        merging: Merging | None = None,
        fixed: Mapping[str, Floats] = MappingProxyType({}),
    ) -> dict[str, Floats]:
        """Return each column as numbers, NaN for missing; the numbers in `fixed` are kept."""
        if records.domain != self.domain:
            raise ValueError(f"records over {records.domain} for a codec of {self.domain}")
        codes = {name: records.codes[:, place] for place, name in enumerate(self.domain)}
        numbers = {}
        for name, of_column in codes.items():
            present = of_column != self._encoders.attributes[name].size
            numbers[name] = np.full(len(of_column), np.nan)
            numbers[name][present] = self._encoders.attributes[name].draw(of_column[present], rng)
        numbers |= {name: np.array(given) for name, given in fixed.items()}
        if self.schema.constraints:
            self.rules.enforce(DrawnRows(numbers, codes, self.cells(merging), frozenset(fixed)), rng)
        return numbers

    @property
    def computed(self) -> tuple[Computation, ...]:
        """The computations of computed columns, each after those that it needs."""
        return self.rules.computations

    def own_cells(self, name: str) -> Cells:
        """Return the codes that a column has alone, also if it is computed or encoded as a gap."""
        encoder = self._encoders.columns[name]
        return Cells.unmerged(*encoder.extents, getattr(encoder, "grid", None))

    def listed(self, name: str) -> int:
        """Return the number of listed values of a column; 0 for numbers and times."""
        encoder = self._encoders.columns[name]
        return encoder.size if isinstance(encoder, CategoricalEncoder) else 0

    def table(self, numbers: Mapping[str, Floats], rng: np.random.Generator, start: int = 0) -> pd.DataFrame:
        """Return a table from the numbers of each column, NaN for missing, with generated identifiers."""
        columns = {}
        for name, encoder in self._encoders.columns.items():
            missing = np.isnan(numbers[name])
            first = encoder.extents[0][0] if encoder.size else 0.0
            columns[name] = encoder.decode(np.where(missing, first, numbers[name]), missing)
        rows = len(next(iter(columns.values())))
        for name, maker in self._encoders.makers.items():
            columns[name] = self._made(name, maker, rows, rng, start)
        return pd.DataFrame({name: columns[name] for name in self.names if name in columns}, copy=False)

    def specimen(self, rng: np.random.Generator, start: int = 0) -> pd.DataFrame:
        """Return rows with every listed value and with missing cells, from public facts alone.

        These rows may break constraints. Identifiers start after `start` rows, as in `decode`.
        """
        rows = 1 + max((self.listed(name) for name in self._encoders.columns), default=0)
        numbers = {}
        for name, encoder in self._encoders.columns.items():
            codes = np.arange(rows) % (encoder.size + self._encoders.nullable[name])
            drawn = encoder.draw(np.where(codes < encoder.size, codes, 0), rng)
            numbers[name] = np.where(codes < encoder.size, drawn, np.nan)
        return self.table(numbers, rng, start)

    def _made(
        self, name: str, maker: IdentifierMaker, n: int, rng: np.random.Generator, start: int
    ) -> pd.Series:
        with about(f"column {name!r}"):
            return maker.make(n, rng, start)

    def cells(self, merging: Merging | None = None) -> dict[str, Cells]:
        """Return the range of numbers of each code, and how `merging` groups the codes."""
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
            lows, highs = self._encoders.attributes[name].extents
            if self._encoders.nullable[name]:
                lows, highs = np.append(lows, np.nan), np.append(highs, np.nan)
            found[name] = Cells.unmerged(lows, highs, getattr(self._encoders.attributes[name], "grid", None))
        return found

    def possible(self, merging: Merging) -> StructuralZeros:
        """Return the structural zeros of merged tables that the constraints imply."""
        tables = self.rules.possible(self.cells(merging))
        return StructuralZeros(tuple((merging.merged.project(names), mask) for names, mask in tables))

    def misfits(self, table: pd.DataFrame) -> dict[str, int]:
        """Count the cells of each column that `encode` clips or makes missing. For the owner only: private.

        A missing cell counts if the column may not have missing cells.
        """
        counts = {}
        for name, encoder in self._encoders.columns.items():
            cells = table[name]
            fine = encoder.fits(cells) | (missing_cells(cells) if self._encoders.nullable[name] else False)
            counts[name] = int((~fine).sum())
        return counts

    def read(self, table: pd.DataFrame) -> dict[str, Floats]:
        """Return the cells of each column as numbers, not clipped, NaN where there is none. Private."""
        return {name: encoder.read(table[name]) for name, encoder in self._encoders.columns.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the codec as plain data for JSON, for `from_dict`."""
        dtypes = dict(zip(self.names, self.dtypes, strict=True))
        more = {"heaps": heaps_to_plain(self.heaps)} if self.heaps else {}
        said = {"schema": to_plain(self.schema), "dtypes": dtypes, "fine": self.fine, "gaps": self.with_gaps}
        return {**said, **more}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Codec:
        """Return the codec that `to_dict` wrote."""
        dtypes, fine = plain["dtypes"], bool(plain["fine"])
        heaps = heaps_from_plain(plain.get("heaps", {}))
        with_gaps = bool(plain.get("gaps"))  # releases of 0.1.0 have none
        return cls(from_plain(plain["schema"]), tuple(dtypes), tuple(dtypes.values()), fine, heaps, with_gaps)
