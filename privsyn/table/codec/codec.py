"""Encode a table as integer codes, and decode codes to a table of the same columns, order and dtypes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about, replace_errors
from privsyn.inference.ordered.binning import Axis
from privsyn.marginals.domain import Domain, Floats, Integers, Mask, Records
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.table.codec import parts
from privsyn.table.codec.gap_rules import rules_with_gaps
from privsyn.table.codec.gaps import Gap, choose_gaps, counted_by_default
from privsyn.table.codec.rule_cuts import rule_cuts
from privsyn.table.encoding.dtypes import CATEGORY, ORDERED_CATEGORY, family, parse_dtype
from privsyn.table.encoding.encoders import (
    STRAY,
    CategoricalEncoder,
    Encoder,
    OrderedEncoder,
    has_grid,
    missing_cells,
)
from privsyn.table.encoding.grid import Grid
from privsyn.table.encoding.steps import NO_HEAPS, Heaps, heaps_from_plain, heaps_to_plain, with_cuts
from privsyn.table.encoding.time_encoders import DatetimeEncoder
from privsyn.table.enforcement.compared import NOTHING_ABOVE, KnownAbove
from privsyn.table.enforcement.repair import Repair, check_constraints
from privsyn.table.kinds.generated import Maker
from privsyn.table.schema.columns import Generated
from privsyn.table.schema.draws import Cells, DrawnRows
from privsyn.table.schema.rules import Computation, check_computed
from privsyn.table.schema.schema import Schema, dtypes_of, match_names
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
        Released, or cuts of rules and of exact counts, which are public. They decide where fine cells begin.
    split : tuple of str
        The columns that are counted as several attributes (see `privsyn.table.codec.parts`).
    compared : tuple of str
        The columns that rules across tables name: they are counted, not encoded as gaps, if that is possible.
    without_gaps : tuple of str
        The columns of orders that are counted, not encoded as gaps: they spread less than their gaps.

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
    compared: tuple[str, ...] = ()
    without_gaps: tuple[str, ...] = ()
    rules: Repair = field(init=False, repr=False, compare=False)
    parts: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    gaps: Mapping[str, Gap] = field(init=False, repr=False, compare=False)
    _columns: Mapping[str, Encoder] = field(init=False, repr=False, compare=False)
    _nullable: Mapping[str, bool] = field(init=False, repr=False, compare=False)
    _makers: Mapping[str, Maker] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        match_names(self.names, self.schema)
        schema, coded = self.schema, self.schema.coded
        schema.require_public()
        check_constraints(coded, schema.constraints)
        dtypes = {
            name: parse_dtype(text) for name, text in self.dtype_of.items() if name not in schema.dropped
        }
        columns: dict[str, Encoder] = {}
        makers, nullable = {}, {}
        for name, dtype in dtypes.items():
            with about(f"column {name!r}"):
                if family(dtype) == "nothing":
                    columns[name], nullable[name] = CategoricalEncoder(pd.Series([], dtype=dtype)), True
                elif name in coded:
                    encoder = coded[name].encoder(dtype)
                    if self.fine and name not in schema.computed:
                        bins = getattr(coded[name], "bins", 0)
                        encoder = encoder.fine(self.heaps.get(name, ()), bins)
                    columns[name] = encoder
                    nullable[name] = coded[name].may_be_missing(dtype) or not encoder.size
                else:
                    makers[name] = cast(Generated, schema.columns[name]).maker(dtype)
        if not columns:
            raise InputError("no column is left to be counted: all are identifiers or free text")
        gaps = choose_gaps(schema, columns, nullable, self.compared, self.without_gaps, fine=self.fine)
        several = {
            name: parts.parts(name, schema.coded[name])
            for name in self.split
            if columns[name].size and name not in gaps and parts.named_with(schema, name) <= set(gaps)
        }
        rules = Repair.of(coded, schema.constraints)
        check_computed(rules.computations, columns, nullable)
        made = {"_columns": columns, "_makers": makers, "_nullable": nullable, "gaps": gaps, "parts": several}
        made["rules"] = rules_with_gaps(rules, schema, gaps, nullable)
        for key, value in made.items():
            object.__setattr__(self, key, value)

    @cached_property
    def dtype_of(self) -> dict[str, str]:
        """The dtype of each column, as text."""
        return dict(zip(self.names, self.dtypes, strict=True))

    @cached_property
    def encoder_of(self) -> dict[str, Encoder]:
        """The encoder of each attribute. A column that is computed has none, unless it is a gap."""
        encoders: dict[str, Encoder] = {}
        for name, encoder in self._columns.items():
            if name in self.gaps:
                encoders[self.gaps[name].name] = self.gaps[name].encoder
            elif name in self.parts:
                times = cast(DatetimeEncoder, encoder)
                encoders |= zip(self.parts[name], parts.encoders_of_parts(times), strict=False)
            elif name not in self.schema.computed:
                encoders[name] = encoder
        return encoders

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        """The encoder of each attribute, in order."""
        return tuple(self.encoder_of.values())

    @cached_property
    def domain(self) -> Domain:
        """The attributes with their number of codes."""
        sizes = (encoder.size + self._may_miss(name) for name, encoder in self.encoder_of.items())
        ordered = (encoder.ordered for encoder in self.encoders)
        return Domain(tuple(self.encoder_of), tuple(sizes), tuple(ordered))

    def _may_miss(self, attribute: str) -> bool:
        return self._nullable[self.column_of(attribute)]

    @property
    def nullable(self) -> tuple[str, ...]:
        """The attributes whose last code is that of missing cells."""
        return tuple(filter(self._may_miss, self.domain))

    @cached_property
    def _owners(self) -> dict[str, str]:
        return {part: name for name in self._columns for part in self.attributes_of(name)}

    def column_of(self, attribute: str) -> str:
        """Return the column to which an attribute belongs: for a gap, the column that it ends in."""
        return self._owners[attribute]

    def attributes_of(self, column: str) -> tuple[str, ...]:
        """Return the attributes of a column: itself, its parts or its gap."""
        return (self.gaps[column].name,) if column in self.gaps else self.parts.get(column, (column,))

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
        unsplit: Collection[str | None] = (),
        compared: tuple[str, ...] = (),
        without_gaps: tuple[str, ...] | None = None,
    ) -> Codec:
        """Return the codec of a table, from its names and dtypes alone. No column of `unsplit` is split.

        By default `without_gaps` are those of `counted_by_default`.
        """
        split, dtypes = parts.splittable(schema, unsplit) if fine else (), dtypes_of(schema, table)
        heaps = with_cuts(heaps, rule_cuts(schema, table)) if fine else heaps
        if without_gaps is None:
            without_gaps = counted_by_default(schema, compared)
        return cls(schema, tuple(table.columns), dtypes, fine, heaps, split, compared, without_gaps)

    @property
    def axes(self) -> dict[str, Axis]:
        """The widths of the cells of each fine column. Public, or from released heaps."""
        return {
            name: Axis(
                encoder.grid.widths,
                self.schema.ordinal(self.column_of(name)).bins,
                encoder.second,
                encoder.grid.starts,
                encoder.grid.marks,
            )
            for name, encoder in self.encoder_of.items()
            if self.fine and has_grid(encoder)
        }

    @property
    def ranked(self) -> tuple[str, ...]:
        """The attributes of listed values that have an order."""
        return tuple(
            name for name, encoder in self.encoder_of.items() if encoder.ordered and not has_grid(encoder)
        )

    @cached_property
    def listed_texts(self) -> tuple[str, ...]:
        """The columns of text with listed values: public."""
        return tuple(name for name in self._columns if self.dtype_of[name] == "str" and self.listed(name))

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns that `decode` leaves out."""
        return self.schema.dropped

    def encode(self, table: pd.DataFrame) -> Records:
        """Return the codes of each row. Each of `listed_texts` may also be categories, in any order."""
        dtypes = dict(zip(table.columns, dtypes_of(self.schema, table), strict=True))
        for name, text in dtypes.items():
            declared = self.dtype_of.get(name, text)
            as_text = text == CATEGORY and name in self.listed_texts
            # No cell of other columns is read: identifiers of many rows may have a wider dtype.
            if as_text or name not in self.schema.coded or (text, declared) == (ORDERED_CATEGORY, CATEGORY):
                dtypes[name] = declared
        if list(dtypes.items()) != list(self.dtype_of.items()):
            raise InputError("the columns or dtypes differ from those the codec was made for")
        with replace_errors("the table could not be coded: please report this, unless memory ran out"):
            return self._encode(table)

    def _encode(self, table: pd.DataFrame) -> Records:
        """Return the codes of all rows, in order. The codes of a row depend on its own cells alone."""
        codes = np.empty((len(table), len(self.encoders)), dtype=np.int32, order="F")
        for axis, (name, encoder) in enumerate(self.encoder_of.items()):
            column = self.column_of(name)
            if gap := self.gaps.get(column):
                column_codes = gap.codes(
                    {attribute: self._read(attribute, table) for attribute in (*gap.side.columns, column)}
                )
            else:
                column_codes = encoder.encode(table[column])
            codes[:, axis] = column_codes
            codes[column_codes == STRAY, axis] = encoder.size if self._nullable[column] else 0
        return Records(self.domain, codes)

    def _read(self, name: str, table: pd.DataFrame) -> Floats:
        """Return the numbers of a column as rows of a sample can have them: within its bounds, or computed.

        A missing cell is the lower bound where none may be. No cell of a computed column is read.
        """
        making = [
            constraint for constraint in self.computed if constraint.column == name and name not in self.gaps
        ]
        parts = {part: self._read(part, table) for constraint in making for part in constraint.by}
        numbers = making[0].make(parts) if making else self._columns[name].read(table[name])
        grid = self.grid(name)
        low, high = (grid.low, grid.high) if grid else (0.0, np.inf)
        return np.clip(numbers if self._nullable[name] else np.nan_to_num(numbers, nan=low), low, high)

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
        above: KnownAbove = NOTHING_ABOVE,
        still: Collection[str] = (),
    ) -> dict[str, Floats]:
        """Return each attribute and column as numbers, NaN for missing.

        Those `fixed` or `above` are kept, and so are the drawn ones of the attributes that are `still`.
        """
        if records.domain != self.domain:
            raise ValueError(f"records over {records.domain} for a codec of {self.domain}")
        codes = {name: records.codes[:, axis] for axis, name in enumerate(self.domain)}
        numbers = {name: _draw(self.encoder_of[name], drawn, rng) for name, drawn in codes.items()}
        fixed = {**fixed, **above.numbers}
        numbers |= {name: np.array(cells) for name, cells in fixed.items()}
        joined = {name for name, split in self.parts.items() if not fixed.keys().isdisjoint(split)}
        rows = DrawnRows(numbers, codes, self.cells(merging), frozenset({*fixed, *joined, *still}))
        for name, split in self.parts.items():
            room = rows.room(split[0], np.arange(len(records)))
            numbers[name] = parts.join([numbers[part] for part in split], room, self.grid(name), rng)
        self.rules.joined(above.rules, above.columns).enforce(rows, rng)
        return numbers | parts.split_given({name: numbers[name] for name in self.parts}, self.parts)

    def drawn(
        self,
        names: Collection[str],
        records: Records,
        merging: Merging,
        above: KnownAbove,
        rng: np.random.Generator,
    ) -> dict[str, Floats]:
        """Return some attributes as numbers within their codes that keep the rules `above`, NaN for missing.

        Constraints of the schema are not enforced.
        """
        codes = {name: records.codes[:, axis] for axis, name in enumerate(self.domain)}
        numbers = {name: _draw(self.encoder_of[name], codes[name], rng) for name in names}
        numbers_above = {name: np.array(cells) for name, cells in above.numbers.items()}
        rows = DrawnRows(numbers | numbers_above, codes, self.cells(merging), frozenset(numbers_above))
        for rule in above.rules:
            if rule.drawn_column in names:
                rule.repair(rows, np.flatnonzero(~rule.holds(rows.numbers)), rng)
        return {name: rows.numbers[name] for name in names}

    @property
    def computed(self) -> tuple[Computation, ...]:
        """The computations of computed columns, each after those that it needs."""
        return self.rules.computations

    def own_cells(self, name: str) -> Cells:
        """Return the codes that a column has alone, also if it is computed or encoded as a gap."""
        return Cells.unmerged(*self._columns[name].extents, self.grid(name))

    def ordered(self, name: str) -> OrderedEncoder:
        """Return the encoder that a column of numbers or times has alone.

        Raises
        ------
        TypeError
            If the column is of another kind: whoever asks has refused it.
        """
        encoder = self._columns[name]
        if not has_grid(encoder):
            raise TypeError(f"the column {name!r} has neither numbers nor times")
        return encoder

    def grid(self, name: str) -> Grid | None:
        """Return the grid of a column of numbers or times; None for any other."""
        return getattr(self._columns[name], "grid", None)

    def interval(self, name: str, estimate: float, low: float, high: float) -> Sequence[Any]:
        """Return an estimate and the ends of its interval as cells of a column of numbers or times."""
        return self.ordered(name).interval(estimate, low, high)

    def listed(self, name: str) -> int:
        """Return the number of listed values of a column; 0 for numbers and times."""
        return 0 if has_grid(encoder := self._columns[name]) else encoder.size

    def table(self, numbers: Mapping[str, Floats], rng: np.random.Generator, start: int = 0) -> pd.DataFrame:
        """Return a table from the numbers of each column, NaN for missing, with generated identifiers."""
        columns = {}
        for name, encoder in self._columns.items():
            missing = np.isnan(numbers[name])
            first = encoder.extents[0][0] if encoder.size else 0.0
            columns[name] = encoder.decode(np.where(missing, first, numbers[name]), missing)
        rows = len(next(iter(columns.values())))
        for name, maker in self._makers.items():
            with about(f"column {name!r}"):
                columns[name] = maker(rows, rng, start)
        return pd.DataFrame({name: columns[name] for name in self.names if name in columns}, copy=False)

    def specimen(self, rng: np.random.Generator, start: int = 0) -> pd.DataFrame:
        """Return rows with every listed value and with missing cells, from public facts alone.

        These rows may break constraints. Identifiers start after `start` rows, as in `decode`.
        """
        rows = 1 + max((self.listed(name) for name in self._columns), default=0)
        sizes = {name: encoder.size + self._nullable[name] for name, encoder in self._columns.items()}
        codes = {name: np.arange(rows) % size for name, size in sizes.items()}
        numbers = {name: _draw(self._columns[name], drawn, rng) for name, drawn in codes.items()}
        return self.table(numbers, rng, start)

    def cells(self, merging: Merging | None = None) -> dict[str, Cells]:
        """Return the range of numbers of each code, and how `merging` groups the codes."""
        if merging is None:
            return dict(self._unmerged)
        return {
            name: Cells(cells.lows, cells.highs, cells.grid, merging.groups[axis], merging.shares[axis])
            for axis, (name, cells) in enumerate(self._unmerged.items())
        }

    @cached_property
    def _unmerged(self) -> dict[str, Cells]:
        return {
            name: Cells.unmerged(
                *encoder.extents, getattr(encoder, "grid", None), nullable=self._may_miss(name)
            )
            for name, encoder in self.encoder_of.items()
        }

    def possible(self, merging: Merging) -> StructuralZeros:
        """Return the structural zeros of merged tables that the constraints and missing cells imply."""
        cells = self.cells(merging)
        dates = {name: attributes[0] for name, attributes in self.parts.items()}
        dates_cells = {name: parts.whole_cells(cells[date]) for name, date in dates.items()}
        ruled = self.rules.possible({**cells, **dates_cells})
        renamed = [(tuple(dates.get(name, name) for name in names), mask) for names, mask in ruled]
        split = [
            (attributes[0], part)
            for name, attributes in self.parts.items()
            if self._nullable[name]
            for part in attributes[1:]
        ]
        tables = [*renamed, *((pair, parts.both_or_neither_missing(cells, pair)) for pair in split)]
        return StructuralZeros(tuple((merging.merged.project(names), mask) for names, mask in tables))

    def misfits(self, table: pd.DataFrame) -> dict[str, int]:
        """Count the cells of each column that `encode` clips or makes missing. For the owner only: private.

        A missing cell counts if the column may not have missing cells.
        """
        return {name: int((~self.fits(name, table[name])).sum()) for name in self._columns}

    def fits(self, name: str, cells: pd.Series) -> Mask:
        """Return which cells of a column `encode` neither clips nor makes missing. Private, as the cells."""
        encoder = self._columns[name]
        return encoder.fits(cells) | (missing_cells(cells) if self._nullable[name] else False)

    def columns_behind(self, attribute: str) -> set[str]:
        """Return the columns from whose cells the codes of an attribute follow."""
        column = self.column_of(attribute)
        columns = {column, *(self.gaps[column].side.columns if column in self.gaps else ())}
        computed = {made.column: made.by for made in self.computed if made.column not in self.gaps}
        return {part for name in columns for part in computed.get(name, (name,))}

    def read(self, table: pd.DataFrame) -> dict[str, Floats]:
        """Return the cells of each column as numbers, not clipped, NaN where there is none. Private."""
        encoders = {name: encoder for name, encoder in self._columns.items() if name in table}
        return {name: encoder.read(table[name]) for name, encoder in encoders.items()}

    def has_times(self, name: str) -> bool:
        """Return whether the cells of a column are dates or times."""
        column = self.schema.coded.get(name)
        return column is not None and not column.lists_values and not column.has_numbers

    def numbers_of(self, name: str, rows: pd.DataFrame) -> Floats:
        """Return a column of synthetic rows as numbers, NaN where there is none; times in its units."""
        if self.has_times(name):
            return self.read(rows[[name]])[name]
        return pd.to_numeric(rows[name], errors="coerce").to_numpy(np.float64, na_value=np.nan)

    def as_compared(self, names: Collection[str], rows: pd.DataFrame) -> dict[str, Floats]:
        """Return columns of synthetic rows as the numbers that conditions compare."""
        numbers = self.read(rows[[*names]])
        for name in numbers:  # cells of a narrow dtype are not exactly the numbers that they stand for
            if (decimals := self.schema.coded[name].fixed_decimals) is not None:
                numbers[name] = np.round(numbers[name], decimals)
        return numbers

    def to_dict(self) -> dict[str, Any]:
        """Return the codec as plain data for JSON, for `from_dict`."""
        columns = {"split": [*self.split], "compared": [*self.compared], "without_gaps": [*self.without_gaps]}
        facts = {"schema": to_plain(self.schema), "dtypes": dict(self.dtype_of), "fine": self.fine}
        more = {"heaps": heaps_to_plain(self.heaps), **columns}
        return facts | {name: plain for name, plain in more.items() if plain}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Codec:
        """Return the codec that `to_dict` wrote."""
        dtypes, heaps = plain["dtypes"], heaps_from_plain(plain.get("heaps", {}))
        chosen = (tuple(plain.get(names, ())) for names in ("split", "compared", "without_gaps"))
        schema, texts, fine = from_plain(plain["schema"]), tuple(dtypes.values()), bool(plain["fine"])
        return cls(schema, tuple(dtypes), texts, fine, heaps, *chosen)


def _draw(encoder: Encoder, codes: Integers, rng: np.random.Generator) -> Floats:
    """Return a number for each code; NaN for missing."""
    present = codes != encoder.size
    numbers = np.full(len(codes), np.nan)
    numbers[present] = encoder.draw(codes[present], rng)
    return numbers
