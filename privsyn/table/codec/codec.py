"""Encode a table as integer codes, and decode codes to a table of the same columns, order and dtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about, replace_errors
from privsyn.inference.ordered.binning import Axis
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.marginals.types import Floats
from privsyn.table.codec.attributes import Attributes
from privsyn.table.codec.parts import join_rows, split_given, splittable, whole_cells
from privsyn.table.encoding.dtypes import CATEGORY, ORDERED_CATEGORY
from privsyn.table.encoding.encoders import CategoricalEncoder, Encoder, missing_cells
from privsyn.table.encoding.grid import Grid
from privsyn.table.encoding.heaps import NO_HEAPS, Heaps, heaps_from_plain, heaps_to_plain
from privsyn.table.enforcement.draws import Cells, DrawnRows
from privsyn.table.enforcement.feasibility import check_constraints
from privsyn.table.enforcement.gap_rules import rules_with_gaps
from privsyn.table.enforcement.repair import Repair
from privsyn.table.enforcement.rules import Computation
from privsyn.table.schema.header import dtypes_of, match_names
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
    split : tuple of str
        The columns that are counted as several attributes (see `privsyn.table.codec.parts`).
    with_gaps : bool
        Encode columns that increase as gaps (see `privsyn.table.codec.gaps`). False for a
        release that was saved before gaps were known.

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
    split: tuple[str, ...] = ()
    with_gaps: bool = True
    domain: Domain = field(init=False, repr=False, compare=False)
    rules: Repair = field(init=False, repr=False, compare=False)
    _attributes: Attributes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        match_names(self.names, self.schema)
        self.schema.require_public()
        check_constraints(self.schema.coded, self.schema.constraints)
        dtypes = dict(zip(self.names, self.dtypes, strict=True))
        made = Attributes.of(
            self.schema, dtypes, self.heaps, self.split, fine=self.fine, with_gaps=self.with_gaps
        )
        rules = Repair.of(self.schema.coded, self.schema.constraints)
        _check_computed(rules.computations, made.columns, made.nullable)
        object.__setattr__(self, "_attributes", made)
        object.__setattr__(self, "rules", rules_with_gaps(rules, self.schema, made.gaps, made.nullable))
        object.__setattr__(self, "domain", made.domain)

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        """The encoder of each attribute, in order."""
        return tuple(self._attributes.encoders.values())

    @property
    def nullable(self) -> tuple[str, ...]:
        """The attributes whose last code is that of missing cells."""
        return tuple(name for name in self.domain if self._attributes.nullable[self.column_of(name)])

    @property
    def parts(self) -> Mapping[str, tuple[str, ...]]:
        """The attributes of each column that has several."""
        return self._attributes.parts

    def column_of(self, attribute: str) -> str:
        """Return the column to which an attribute belongs: for a gap, the column that it ends in."""
        return self._attributes.column(attribute)

    def attributes_of(self, column: str) -> tuple[str, ...]:
        """Return the attributes of a column: itself, its parts or its gap."""
        return self._attributes.of_column(column)

    def target_attribute(self, column: str) -> str:
        """Return the attribute of a target, or of the first column that it is computed from."""
        by = {computation.column: computation.by[0] for computation in self.computed}
        while (attribute := self.attributes_of(column)[0]) not in self.domain.names:
            column = by[column]
        return attribute

    @classmethod
    def for_table(
        cls,
        schema: Schema,
        table: pd.DataFrame,
        *,
        fine: bool = False,
        heaps: Mapping[str, Heaps] = NO_HEAPS,
        target: str | None = None,
    ) -> Codec:
        """Return the codec of a table, from its names and dtypes alone. The `target` is one attribute."""
        split = splittable(schema, target) if fine else ()
        return cls(schema, tuple(table.columns), dtypes_of(schema, table), fine, heaps, split)

    @property
    def axes(self) -> dict[str, Axis]:
        """The widths of the cells of each fine column. Public, or from released heaps."""
        return self._attributes.axes() if self.fine else {}

    @cached_property
    def listed_texts(self) -> tuple[str, ...]:
        """The columns of text with listed values: public."""
        dtypes = dict(zip(self.names, self.dtypes, strict=True))
        return tuple(name for name in self._attributes.columns if dtypes[name] == "str" and self.listed(name))

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that `decode` leaves out."""
        return self.schema.dropped

    def encode(self, table: pd.DataFrame) -> Records:
        """Return the codes of all rows, in order. Each of `listed_texts` may also be categories.

        An order among categories changes no code.
        """
        own = dict(zip(self.names, self.dtypes, strict=True))
        given = tuple(
            self._coded_as(name, text, own.get(name))
            for name, text in zip(table.columns, dtypes_of(self.schema, table), strict=True)
        )
        if (tuple(table.columns), given) != (self.names, self.dtypes):
            raise InputError("the columns or dtypes differ from those the codec was made for")
        with replace_errors("the table could not be coded: please report this, unless memory ran out"):
            return self._attributes.encode(table)

    def _coded_as(self, name: str, text: str, own: str | None) -> str:
        """Return the dtype as which cells of dtype `text` are encoded, in a column of dtype `own`."""
        if text == CATEGORY and name in self.listed_texts:
            return "str"
        return CATEGORY if (text, own) == (ORDERED_CATEGORY, CATEGORY) else text

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
        """Return each attribute and column as numbers, NaN for missing; the numbers in `fixed` are kept."""
        if records.domain != self.domain:
            raise ValueError(f"records over {records.domain} for a codec of {self.domain}")
        codes = {name: records.codes[:, place] for place, name in enumerate(self.domain)}
        numbers = {name: self._attributes.draw(name, drawn, rng) for name, drawn in codes.items()}
        numbers |= {name: np.array(given) for name, given in fixed.items()}
        whole = {name for name, of in self.parts.items() if not fixed.keys().isdisjoint(of)}
        rows = DrawnRows(numbers, codes, self.cells(merging), frozenset({*fixed, *whole}))
        for name, of in self.parts.items():
            numbers[name] = join_rows(rows, of, self.grid(name), rng)
        if self.schema.constraints:
            self.rules.enforce(rows, rng)
        return numbers | split_given({name: numbers[name] for name in self.parts}, self.parts)

    @property
    def computed(self) -> tuple[Computation, ...]:
        """The computations of computed columns, each after those that it needs."""
        return self.rules.computations

    def own_cells(self, name: str) -> Cells:
        """Return the codes that a column has alone, also if it is computed or encoded as a gap."""
        encoder = self._attributes.columns[name]
        return Cells.unmerged(*encoder.extents, getattr(encoder, "grid", None))

    def grid(self, name: str) -> Grid | None:
        """Return the grid of a column of numbers or times; None for any other."""
        return getattr(self._attributes.columns[name], "grid", None)

    def listed(self, name: str) -> int:
        """Return the number of listed values of a column; 0 for numbers and times."""
        encoder = self._attributes.columns[name]
        return encoder.size if isinstance(encoder, CategoricalEncoder) else 0

    def table(self, numbers: Mapping[str, Floats], rng: np.random.Generator, start: int = 0) -> pd.DataFrame:
        """Return a table from the numbers of each column, NaN for missing, with generated identifiers."""
        columns = {}
        for name, encoder in self._attributes.columns.items():
            missing = np.isnan(numbers[name])
            first = encoder.extents[0][0] if encoder.size else 0.0
            columns[name] = encoder.decode(np.where(missing, first, numbers[name]), missing)
        rows = len(next(iter(columns.values())))
        for name, maker in self._attributes.makers.items():
            with about(f"column {name!r}"):
                columns[name] = maker.make(rows, rng, start)
        return pd.DataFrame({name: columns[name] for name in self.names if name in columns}, copy=False)

    def specimen(self, rng: np.random.Generator, start: int = 0) -> pd.DataFrame:
        """Return rows with every listed value and with missing cells, from public facts alone.

        These rows may break constraints. Identifiers start after `start` rows, as in `decode`.
        """
        rows = 1 + max((self.listed(name) for name in self._attributes.columns), default=0)
        numbers = {}
        for name, encoder in self._attributes.columns.items():
            codes = np.arange(rows) % (encoder.size + self._attributes.nullable[name])
            drawn = encoder.draw(np.where(codes < encoder.size, codes, 0), rng)
            numbers[name] = np.where(codes < encoder.size, drawn, np.nan)
        return self.table(numbers, rng, start)

    def cells(self, merging: Merging | None = None) -> dict[str, Cells]:
        """Return the range of numbers of each code, and how `merging` groups the codes."""
        return self._attributes.cells(merging)

    def possible(self, merging: Merging) -> StructuralZeros:
        """Return the structural zeros of merged tables that the constraints and missing cells imply."""
        cells = self.cells(merging)
        dates = {name: of[0] for name, of in self.parts.items()}
        whole = {name: whole_cells(cells[date]) for name, date in dates.items()}
        ruled = self.rules.possible({**cells, **whole})
        renamed = [(tuple(dates.get(name, name) for name in names), mask) for names, mask in ruled]
        tables = [*renamed, *self._attributes.possible(cells)]
        return StructuralZeros(tuple((merging.merged.project(names), mask) for names, mask in tables))

    def misfits(self, table: pd.DataFrame) -> dict[str, int]:
        """Count the cells of each column that `encode` clips or makes missing. For the owner only: private.

        A missing cell counts if the column may not have missing cells.
        """
        counts = {}
        for name, encoder in self._attributes.columns.items():
            cells = table[name]
            fine = encoder.fits(cells) | (missing_cells(cells) if self._attributes.nullable[name] else False)
            counts[name] = int((~fine).sum())
        return counts

    def read(self, table: pd.DataFrame) -> dict[str, Floats]:
        """Return the cells of each column as numbers, not clipped, NaN where there is none. Private."""
        return {name: encoder.read(table[name]) for name, encoder in self._attributes.columns.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the codec as plain data for JSON, for `from_dict`."""
        dtypes = dict(zip(self.names, self.dtypes, strict=True))
        more = {"heaps": heaps_to_plain(self.heaps), "split": list(self.split)}
        found = {name: plain for name, plain in more.items() if plain}
        facts = {"schema": to_plain(self.schema), "dtypes": dtypes, "fine": self.fine, "gaps": self.with_gaps}
        return {**facts, **found}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Codec:
        """Return the codec that `to_dict` wrote."""
        dtypes, fine = plain["dtypes"], bool(plain["fine"])
        heaps, split = heaps_from_plain(plain.get("heaps", {})), tuple(plain.get("split", ()))
        with_gaps = bool(plain.get("gaps"))  # releases of formats 2 and 3 have none
        schema, names = from_plain(plain["schema"]), tuple(dtypes)
        return cls(schema, names, tuple(dtypes.values()), fine, heaps, split, with_gaps)


def _check_computed(
    computations: Sequence[Computation], encoders: Mapping[str, Encoder], nullable: Mapping[str, bool]
) -> None:
    """Refuse a computed column that cannot hold the decimals or the missing values of its parts."""
    for maker in computations:
        encoder: Any = encoders[maker.column]
        if maker.decimals != 0 and encoder.grid.decimals == 0:
            raise InputError(f"column {maker.column!r} is whole, and not all parts of its sum are")
        for name in maker.by:
            if nullable[name] and not nullable[maker.column]:
                raise InputError(
                    f"column {maker.column!r} is computed from {name!r}, which may be missing: "
                    f"say nullable=False of {name!r}, or choose a dtype that holds missing cells"
                )
