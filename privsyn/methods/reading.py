"""Open a private table: whose rows it has, which rows are read, and what is public about the columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import chain, product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.arguments import check_bytes
from privsyn.errors import spelled, warn_columns, warn_marks
from privsyn.inference.measured_columns import FewCells, PublicFacts
from privsyn.inference.ordered.support import CellCounts
from privsyn.inference.rows_per_person import RowsPerPerson, best_bound
from privsyn.marginals.counting import Packing
from privsyn.marginals.domain import Attributes, Domain
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.methods.complete_schema import Counted
from privsyn.methods.persons import ONE_CLASS, Above, Persons, PersonsInMemory, RowClasses, contribution_of
from privsyn.methods.persons_in_engine import PersonsInEngine
from privsyn.methods.randomise import codec_of_randomised
from privsyn.methods.run_encoding import RunEncoding
from privsyn.private.contribution import ONE_ROW_EACH, Contribution, random_order
from privsyn.private.rows import CachedWalk, Rows, RowsElsewhere
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.frequent import Frequent
from privsyn.table.discovery.open_schema import OpenSchema, marks_of_numbers
from privsyn.table.encoding.steps import NO_HEAPS, Heaps
from privsyn.table.enforcement.determined import Determined
from privsyn.table.enforcement.within import Within
from privsyn.table.engine.engine_table import EngineTable, open_table
from privsyn.table.io.output_type import OutputType
from privsyn.table.io.source import RawTable
from privsyn.table.kinds.keys import Key
from privsyn.table.schema.implied import declared_or_by_names
from privsyn.table.schema.important import Sets
from privsyn.table.schema.schema import Schema
from privsyn.table.totals.totals import NOTHING_KNOWN, Totals

if TYPE_CHECKING:
    from privsyn.methods.run_settings import RunSettings
    from privsyn.private.noise_laws import Law
    from privsyn.private.randomness import Bits
    from privsyn.table.database.linked_table import LinkedTable

OF_PERSON = 3.0  # weight of an error in a table with the class of the number of rows: it reweights all others
OF_LINKED = 10.0  # the same if rows are linked: it also reweights their tables with previous rows


NOTHING_COUNTED: Mapping[str, Counted] = MappingProxyType({})
NONE_FREQUENT: Mapping[str, Frequent] = MappingProxyType({})
LOOKED_UP = "the table in the file {!r}, in which values are looked up: they are in the synthetic table"


def counted_directly(target: str | None, important: Sets, criteria: Collection[str]) -> tuple[str, ...]:
    """Return the columns that a run counts themselves; see `OpenSchema`.

    >>> counted_directly("pay", (("age", "sex"),), ())
    ('pay', 'age', 'sex')
    """
    return (*filter(None, [target]), *chain.from_iterable(important), *criteria)


@dataclass(frozen=True, eq=False)
class Opened:
    """A private table before the first question.

    Parameters
    ----------
    source : RawTable
        All rows.
    data_columns : RawTable
        The columns to learn, without the identifiers. Where persons may have several rows, it has no row: it
        says names, dtypes and the type of the table, and `bounded` returns rows.
    persons : Persons, optional
        Whose rows they are. Default: each row is a person.
    schema : OpenSchema
        What is public about the columns, and what has to be found.
    target : str, optional
        The column to be predicted.
    settings : Settings
    totals : Totals
        Exact counts that are public.
    """

    source: RawTable
    data_columns: RawTable
    persons: Persons | None
    schema: OpenSchema
    target: str | None
    settings: RunSettings
    totals: Totals = NOTHING_KNOWN

    @classmethod
    def of(
        cls,
        table: Any,
        target: str | None,
        settings: RunSettings,
        bits: Bits,
        criteria: Collection[str] = (),
    ) -> Opened:
        """Open a table, with random `bits` to choose the rows of each person. No row is counted.

        The columns of `criteria` are counted themselves.
        """
        schema = settings.database.schema
        source = open_table(table, schema, unit=settings.unit)
        persons = None if settings.unit is None else persons_of(source, settings.unit, bits)
        data_columns = source if persons is None else persons.bounded(source, 0)
        public = public_schema_of(data_columns, schema, source.schema, nullable=settings.nullable)
        totals = Totals.read(settings.totals, public)
        open_schema = open_schema_of(data_columns, totals.complete(public, data_columns.head), target)
        important = settings.matters_most
        weights = () if public.weight is None else (public.weight,)
        counted = counted_directly(target, important, (*weights, *criteria, *totals.columns))
        open_schema = replace(open_schema, counted_directly=counted).with_widest_computed()
        if important:
            open_schema.schema.check_important(spelled("important"), important, read=True)
            public_schema = replace(open_schema.schema, important=important)  # so that the release names them
            open_schema = replace(open_schema, schema=public_schema)
        data_columns = data_columns.unordered(open_schema.unordered)
        opened = cls(source, data_columns, persons, open_schema, target, settings, totals)
        codec = opened.codec(open_schema.fill({}, {}))
        totals.checked(codec)
        data_columns.check(codec)
        data_columns.check_search(open_schema)
        return opened

    def codec(
        self,
        schema: Schema,
        heaps: Mapping[str, Heaps] = NO_HEAPS,
        without_gaps: tuple[str, ...] | None = None,
    ) -> Codec:
        """Return the codec of the rows under a complete schema; see `RunEncoding.codec`."""
        encoding = RunEncoding(
            self.schema,
            self.data_columns.head,
            self.target,
            self.totals,
            fine=self.settings.algorithm.fine_cells,
        )
        return encoding.codec(schema, heaps, without_gaps)

    @property
    def puts_persons_together(self) -> bool:
        """Whether the rows of a person are put together. It decides which questions are asked."""
        return (
            self.persons is not None
            and self.persons.puts_together
            and self.settings.algorithm.accounting is None
        )

    @property
    def counts_rows(self) -> bool:
        """Whether the numbers of rows per person are asked: one row of each person needs no choice.

        In linked tables they also say how many rows each row above has.
        """
        if self.persons is None:
            return False
        return self.settings.most_rows != 1 if self.above is None else self.is_linked

    def classes_and_contribution(
        self, rows: RowsPerPerson, law: Law, rho: float, pairs: int
    ) -> tuple[RowClasses, Contribution]:
        """Return the classes and the contribution, given noisy numbers of rows per person.

        The bound also depends on the budget that is left, and on the number of pairs of columns.

        If the noise hides how many persons have few rows and how many have many, there is one class of all
        persons. Tables with the classes would need much of the budget, to correct for what is not known.
        """
        bound = best_bound(rows, law.rho(rho), pairs, self.settings.rows_per_unit)
        contribution = contribution_of(rows, bound, law, together=self.puts_persons_together)
        unit = "" if self.persons is None else self.persons.unit
        row_classes = (
            RowClasses.without_classes(rows)
            if not self.puts_persons_together or rows.geometric
            else RowClasses.of(f"rows of one {unit}", rows)
        )
        return row_classes.counted_within(rows, bound), contribution

    def bounded(self, bound: int | None) -> RawTable:
        """Return up to `bound` random rows of each person, or all with None, without the identifiers."""
        if self.persons is None:
            return self.data_columns
        return self.persons.bounded(self.source, bound).unordered(self.schema.unordered)

    def coded(
        self, codec: Codec, contribution: Contribution = ONE_ROW_EACH, row_classes: RowClasses = ONE_CLASS
    ) -> Rows:
        """Return the encoded rows, of which each person adds no more than `contribution` to an answer.

        In linked tables all rows are read, because each needs the one before it. The counts are bounded.
        """
        bound = None if self.is_linked else contribution.tables.rows
        rows = self.bounded(bound)
        alone = contribution == ONE_ROW_EACH and not (row_classes or self.is_linked)
        if self.persons is None or not self.persons.puts_together or alone:
            return coded(rows, codec, self.settings.memory)
        memory = check_bytes("memory", self.settings.memory)
        return self.persons.coded(rows, codec, bound, row_classes, memory)

    @property
    def above(self) -> Above | None:
        """What its rows belong to, if it is one of several tables."""
        return None if self.persons is None else self.persons.above

    @property
    def is_linked(self) -> bool:
        """Whether its rows belong to rows of another table."""
        return self.above is not None and self.above.linked

    def given(self, row_classes: RowClasses) -> Domain:
        """Return the attributes that each row has before its own: of its person, and of the rows above it."""
        return row_classes.domain if self.persons is None else self.persons.attributes(row_classes)

    def facts(
        self,
        codec: Codec,
        counted: Mapping[str, Counted] = NOTHING_COUNTED,
        row_classes: RowClasses = ONE_CLASS,
        frequent: Mapping[str, Frequent] = NONE_FREQUENT,
    ) -> PublicFacts:
        """Return what is public about the columns, as coded.

        Parameters
        ----------
        codec : Codec
        counted : mapping of a column to the counts by which its bounds were found, optional
        row_classes : RowClasses, optional
        frequent : mapping of a column to its frequent numbers, optional
        """
        doubtful = tuple(attribute for name in self.schema.open for attribute in codec.attributes_of(name))
        target = None if self.target is None else codec.target_attribute(self.target)
        probabilities = codec.schema.randomised
        important = attribute_sets(codec, codec.schema.important)
        axes, lags = codec.axes, 1 if self.above is None else self.above.lags
        bounds_counts = {
            name: bounds_counts_of(codec, name, counts) for name, counts in counted.items() if name in axes
        }

        def possible(merging: Merging) -> StructuralZeros:
            return codec.possible(merging.project(codec.domain.names))

        return PublicFacts(
            target,
            codec.schema.weight,
            axes,
            possible,
            doubtful,
            probabilities,
            codec.nullable,
            important,
            bounds_counts,
            frequent={
                name: cells_of(codec, name, counts) for name, counts in frequent.items() if name in axes
            },
            context_weights=dict.fromkeys(self.given(row_classes), 1.0)
            | dict.fromkeys(row_classes.domain, OF_LINKED if self.is_linked else OF_PERSON),
            previous=codec.domain.names if self.is_linked and lags else (),
            weights={} if self.above is None else self.above.weights,
            lags=lags,
            lasting=() if self.above is None else self.above.lasting,
            unjoined=() if self.above is None else self.above.numbers,
            ranked=codec.ranked,
            totals=self.totals.encoded(codec),
        )

    def output_type(self, codec: Codec, columns: Collection[str] = ()) -> OutputType:
        """Return the type of the synthetic table: of the codec's columns, and of further `columns`."""
        form = self.source.form.unordered(self.schema.unordered) if columns else self.data_columns.form
        return form.only({*codec.names, *columns}.difference(codec.dropped))


def persons_of(source: RawTable, unit: Key, bits: Bits) -> Persons:
    """Return whose rows are whose, with random `bits` for the order of each person's. No row is counted."""
    if isinstance(source, EngineTable):
        return PersonsInEngine.of(source, unit, bits)
    return PersonsInMemory.of(source, unit, bits)


def persons_of_linked(table: LinkedTable, bits: Bits) -> Persons:
    """Return whose rows are whose in one of several tables, with random `bits` for their order."""
    if table.elsewhere is not None:
        return PersonsInEngine(table.unit, table.elsewhere, Above(), table.also)
    return PersonsInMemory.of_linked(table, random_order(table.persons, bits))


def looked_up(schema: Schema) -> tuple[str, ...]:
    """Return a sentence for the ledger about each file in which a schema looks values up."""
    rules = (rule for rule in schema.constraints if isinstance(rule, Determined | Within) and rule.source)
    return tuple(dict.fromkeys(LOOKED_UP.format(rule.source) for rule in rules))


def pairs_of(columns: int) -> int:
    """Return the number of pairs of columns, at least 1."""
    return max(columns * (columns - 1) // 2, 1)


def bounds_counts_of(codec: Codec, name: str, counted: Counted) -> CellCounts:
    """Return in which of the released counts of a grid each fine cell of a column lies, by its last point.

    Most bounds of the grid are round numbers, which many rows share: they belong to the cells above.
    """
    grid, noisy, sigma = counted
    _, highs = codec.encoder_of[name].extents
    return grid.find(highs), noisy.astype(np.float64), np.full(len(noisy), sigma**2)


def cells_of(codec: Codec, name: str, frequent: Frequent) -> FewCells:
    """Return the cells of frequent numbers, those of one point, with their counts."""
    grid = codec.ordered(name).grid
    numbers = grid.snap(frequent.numbers)
    cells = grid.encode(numbers)
    alone = (grid.extents[0][cells] == numbers) & (np.diff(grid.edges)[cells] == 1)
    return cells[alone], frequent.rows[alone], frequent.variances[alone]


def attribute_sets(codec: Codec, sets: Sets) -> tuple[Attributes, ...]:
    """Return the sets of attributes of sets of columns: one of each column, in the domain's order."""
    axis_of = {name: axis for axis, name in enumerate(codec.domain.names)}
    chosen = (product(*map(codec.attributes_of, columns)) for columns in sets)
    ordered = (
        tuple(sorted(set(attributes), key=axis_of.__getitem__)) for attributes in chain.from_iterable(chosen)
    )
    return tuple(dict.fromkeys(attributes for attributes in ordered if len(attributes) > 1))


def public_schema_of(
    rows: RawTable, schema: Schema | None, guessed: Schema | None, *, nullable: bool
) -> Schema:
    """Return the schema of the columns: as given, or as names and dtypes imply.

    Parameters
    ----------
    rows : RawTable
        Only its names, dtypes and Arrow's declarations "not null" are read.
    schema : Schema, optional
    guessed : Schema, optional
        How a file without dtypes was read. It counts if there is no schema.
    nullable : bool
        With False no column may have missing cells.
    """
    public = declared_or_by_names(schema, rows.head, guessed)
    return public.without_missing(rows.form.never_missing if nullable else None)


def open_schema_of(rows: RawTable, public: Schema, target: str | None) -> OpenSchema:
    """Return what is public about the columns, checked; warn of columns that come out differently.

    Parameters
    ----------
    rows : RawTable
        Only its names and dtypes are read.
    public : Schema
        See `public_schema_of`.
    target : str, optional
    """
    open_schema = OpenSchema.of(public, rows.head)
    if open_schema.schema.randomised:
        codec_of_randomised(open_schema.schema, rows.head)  # refuses a dtype that cannot hold all values
    if target is not None:
        open_schema.schema.check_coded("target", target, read=True)
    warn_columns(open_schema.schema.dropped, open_schema.objects, open_schema.unordered)
    warn_marks(() if rows.schema is not None else marks_of_numbers(open_schema.schema, rows.head))
    return open_schema


def coded(rows: RawTable, codec: Codec, limit: int | str) -> Rows:
    """Return the encoded rows. They may take half of the memory, or all that an iterator needs."""
    memory = check_bytes("memory", limit)
    if (counter := rows.counter(codec)) is not None:
        return RowsElsewhere.of(codec.domain, memory / 4, counter)
    walk = rows.walk(codec, memory / 2)
    if rows.near:
        cache = np.inf if rows.once else memory / 2
        walk = CachedWalk(walk, Packing(codec.domain.sizes), cache, rows.require_unchanged)
    return Rows(codec.domain, walk, memory / 4)
